//! Choosing kernels by timing them: what is offered, what is remembered, and that a choice is checked like any other.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use pagewise::compute::{Gpu, GpuOptions, Reduce};
use pagewise::gguf::{self, FileSource, Gguf};
use pagewise::model::{
    Choice, DeviceInfo, ModelConfig, ModelOptions, Precision, TuningSource, autotune, plan, probe, tuning_key,
};
use pollster::block_on;

/// Milliseconds: tests are not about what fits into the time.
const NO_HURRY: f64 = 1e6;

fn open(name: &str) -> (Gguf, ModelConfig) {
    let path = format!("{}/models/{name}-f16.gguf", env!("CARGO_MANIFEST_DIR"));
    let gguf = block_on(gguf::open(&FileSource::open(path).unwrap())).unwrap();
    let config = ModelConfig::from_gguf(&gguf).unwrap();
    (gguf, config)
}

fn gpu() -> Gpu {
    block_on(Gpu::open(&GpuOptions::default())).unwrap()
}

#[test]
fn a_choice_is_measured_once_and_then_remembered() {
    let (gguf, config) = open("tiny-llama");
    let table = gpu().tuning();
    let measured = block_on(autotune(gpu(), &config, &gguf, Precision::Full, None, NO_HURRY)).unwrap();
    assert_eq!(measured.source, TuningSource::Measured);
    let names: Vec<_> = measured.timings.iter().map(|timing| timing.name.as_str()).collect();
    assert_eq!(names[0], table.one_row_name(), "the table's choice is timed first");
    assert!(names.contains(&table.many_rows_name().as_str()) && names.len() > 2, "{names:?}");
    assert_eq!(BTreeSet::from_iter(&names).len(), names.len(), "nothing is timed twice: {names:?}");
    assert!(measured.timings.iter().all(|timing| timing.ms > 0.0));
    assert!(names.contains(&measured.choice.few_rows.as_str()) && names.contains(&measured.choice.many_rows.as_str()));
    // Nothing was replaced by what is no faster.
    let ms = |name: &str| measured.timings.iter().find(|timing| timing.name == name).unwrap().ms;
    assert!(ms(&measured.choice.few_rows) <= ms(&table.one_row_name()));
    assert!(ms(&measured.choice.many_rows) <= ms(&table.many_rows_name()));

    let text = serde_json::to_string(&measured.choice).unwrap();
    let remembered = block_on(autotune(gpu(), &config, &gguf, Precision::Full, Some(&text), NO_HURRY)).unwrap();
    assert_eq!((remembered.source, &remembered.choice), (TuningSource::Remembered, &measured.choice));
    assert_eq!(remembered.gpu.tuning(), measured.gpu.tuning());
    assert!(remembered.timings.is_empty());
    let tuning = measured.gpu.tuning();
    let (_, layout, _) = plan(&config, &gguf, &DeviceInfo::BASELINE, &ModelOptions::default()).unwrap();
    assert_eq!(block_on(probe(measured.gpu, &config, &gguf, &layout)).unwrap().tuning(), tuning);
}

#[test]
fn what_is_remembered_must_name_candidates_of_today() {
    let (gguf, config) = open("tiny-llama");
    let table = gpu().tuning();
    let choice = |few: &str, many: &str| {
        let choice = Choice { few_rows: few.to_owned(), many_rows: many.to_owned() };
        serde_json::to_string(&choice).unwrap()
    };
    let rounding = choice(&table.one_row_name(), "tiles in bytes");
    let texts =
        ["", "{}", "[1]", &choice("7 of 9 lanes", "registers"), &choice(&table.one_row_name(), "magic"), &rounding];
    for text in texts {
        let tuned = block_on(autotune(gpu(), &config, &gguf, Precision::Full, Some(text), NO_HURRY)).unwrap();
        assert_eq!(tuned.source, TuningSource::Measured, "{text}");
    }
    let tuned = block_on(autotune(gpu(), &config, &gguf, Precision::Fast, Some(&rounding), NO_HURRY)).unwrap();
    assert_eq!((tuned.source, tuned.choice.many_rows.as_str()), (TuningSource::Remembered, "tiles in bytes"));
}

#[test]
fn rounding_is_timed_only_where_it_is_allowed() {
    let (gguf, config) = open("tiny-gemma3");
    let timed = |precision| {
        let tuned = block_on(autotune(gpu(), &config, &gguf, precision, None, NO_HURRY)).unwrap();
        tuned.timings.into_iter().any(|timing| timing.name == "tiles in bytes")
    };
    assert!(!timed(Precision::Full));
    assert!(timed(Precision::Fast));
}

#[test]
fn keys_tell_devices_models_and_precisions_apart() {
    let (llama, llama_config) = open("tiny-llama");
    let (gemma, gemma_config) = open("tiny-gemma3");
    let baseline = block_on(Gpu::open(&GpuOptions { baseline: true, ..GpuOptions::default() })).unwrap();
    assert_eq!(baseline.subgroup_lanes(), 1);
    assert!(baseline.tuning().one_row_candidates(1, true).iter().all(|way| way.matvec.reduce != Reduce::Subgroup));
    let keys = [
        tuning_key(&gpu(), &llama_config, &llama, Precision::Full),
        tuning_key(&gpu(), &llama_config, &llama, Precision::Fast),
        tuning_key(&gpu(), &gemma_config, &gemma, Precision::Full),
        tuning_key(&baseline, &llama_config, &llama, Precision::Full),
    ];
    assert_eq!(BTreeSet::from_iter(&keys).len(), keys.len(), "{keys:#?}");
    assert_eq!(keys[0], tuning_key(&gpu(), &llama_config, &llama, Precision::Full));
}
