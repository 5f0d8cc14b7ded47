//! Logits and greedy text against reference values, on the CPU executor and on the native adapter.
//!
//! `tests/data/golden` says what each value is. The two long prompts and full greedy text run with `PAGEWISE_LONG=1`.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::golden::{Prompt, Reference, close, greedy, largest_difference, open_gpu, real_model, tiny_model};
use common::server::open;
use pagewise::compute::{Executor, Gpu, GpuOptions, ManyRows, Tuning};
use pagewise::engine::{Engine, EngineOptions, Evaluation, evaluate};
use pagewise::kernels::KvFormat;
use pagewise::model::{
    DeviceInfo, Forward as _, Logits as _, Model, ModelConfig, ModelOptions, load_cpu, load_gpu, plan, probe,
};
use pagewise::text::Tokenizer;
use pollster::block_on;

fn options(kv: KvFormat) -> ModelOptions {
    ModelOptions { kv, context_length: Some(512), ..ModelOptions::default() }
}

/// Runs every prompt and compares its logits; `chunk` tokens a step.
fn check<E: Executor>(model: &mut Model<E>, prompts: &[Prompt], chunk: usize, tolerance: f32) {
    for prompt in prompts {
        let sequence = Evaluation { ids: prompt.ids.clone(), positions: prompt.positions() };
        let logits = block_on(evaluate(model, &[sequence], chunk)).unwrap();
        close(prompt, &logits[0], tolerance);
    }
}

#[test]
fn tiny_models_on_the_cpu() {
    for (path, prompts) in [tiny_model("tiny-llama"), tiny_model("tiny-gemma3")] {
        let (gguf, source) = open(&path);
        let mut model = block_on(load_cpu(&gguf, &source, &options(KvFormat::F32))).unwrap();
        check(&mut model, &prompts, 32, 1e-3);
        greedy(model, &gguf, &prompts, 24);
    }
}

#[test]
fn tiny_models_on_the_gpu() {
    for (path, prompts) in [tiny_model("tiny-llama"), tiny_model("tiny-gemma3")] {
        let (gguf, source) = open(&path);
        for gpu in open_gpu() {
            let mut model = block_on(load_gpu(&gguf, &source, gpu, &options(KvFormat::F32), |_| Ok(()))).unwrap();
            check(&mut model, &prompts, 32, 1e-3);
            // One prefill = token by token = chunks of 7 = two sequences interleaved.
            check(&mut model, &prompts, 1, 1e-3);
            check(&mut model, &prompts, 7, 1e-3);
            let both: Vec<_> = (prompts.iter())
                .map(|prompt| Evaluation { ids: prompt.ids.clone(), positions: prompt.positions() })
                .collect();
            for (prompt, logits) in prompts.iter().zip(block_on(evaluate(&mut model, &both, 5)).unwrap()) {
                close(prompt, &logits, 1e-3);
            }
            greedy(model, &gguf, &prompts, 24);
        }
    }
}

fn real_model_on_the_cpu(reference: &Reference) {
    let (gguf, source) = open(&reference.path);
    let mut model = block_on(load_cpu(&gguf, &source, &options(KvFormat::F32))).unwrap();
    check(&mut model, &reference.short(), 32, 2e-3);
}

fn real_model_on_the_gpu(reference: &Reference, num_greedy: usize) {
    let (gguf, source) = open(&reference.path);
    for (kv, tolerance) in [(KvFormat::F32, 2e-3), (KvFormat::F16, 3e-2)] {
        let gpu = open_gpu().remove(0);
        let mut model = block_on(load_gpu(&gguf, &source, gpu, &options(kv), |_| Ok(()))).unwrap();
        assert!(model.layer_dispatches() <= 8, "{} dispatches a layer", model.layer_dispatches());
        check(&mut model, &reference.short(), 32, tolerance);
        if kv == KvFormat::F32 {
            check(&mut model, &reference.short()[..1], 7, tolerance);
            check(&mut model, &reference.short()[..1], 1, tolerance);
            greedy(model, &gguf, &reference.short()[..2], num_greedy);
        }
    }
}

#[test]
fn smollm2_on_the_cpu() {
    if let Some(reference) = real_model("smollm2") {
        real_model_on_the_cpu(&reference);
    }
}

#[test]
fn smollm2_on_the_gpu() {
    if let Some(reference) = real_model("smollm2") {
        real_model_on_the_gpu(&reference, 8);
    }
}

#[test]
fn gemma3_on_the_cpu() {
    if let Some(reference) = real_model("gemma3") {
        real_model_on_the_cpu(&reference);
    }
}

#[test]
fn gemma3_on_the_gpu() {
    if let Some(reference) = real_model("gemma3") {
        real_model_on_the_gpu(&reference, 8);
    }
}

/// Rounding activations to bytes moves logits less than llama.cpp's own rounding does: at most, and on average.
fn products_of_bytes(name: &str) {
    let Some(reference) = real_model(name) else { return };
    let (gguf, source) = open(&reference.path);
    let options = GpuOptions {
        tuning: Some(Tuning { many: ManyRows::Int8, one_in_bytes: true, ..Tuning::GPU }),
        ..GpuOptions::default()
    };
    let gpu = block_on(Gpu::open(&options)).unwrap();
    let mut model = block_on(load_gpu(&gguf, &source, gpu, &self::options(KvFormat::F32), |_| Ok(()))).unwrap();
    let (mut all_ours, mut all_theirs) = (Vec::new(), Vec::new());
    // Many rows at once, and of one prompt one row after the other.
    let chunks = [1, 32].into_iter().chain(std::iter::repeat(32));
    let prompts = reference.short();
    for (prompt, chunk) in prompts[..1].iter().chain(&prompts).zip(chunks) {
        let sequence = Evaluation { ids: prompt.ids.clone(), positions: prompt.positions() };
        let logits = block_on(evaluate(&mut model, &[sequence], chunk)).unwrap().remove(0);
        for (row, actual) in prompt.rows.iter().zip(&logits) {
            let (ours, theirs) = (largest_difference(row, actual), row.llama_cpp.unwrap());
            assert!(ours > 1e-3, "{} position {}: nothing was rounded", prompt.name, row.position);
            all_ours.push(ours);
            all_theirs.push(theirs);
        }
    }
    let largest = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
    let sum = |all: &[f64]| all.iter().sum::<f64>();
    println!("{name}: largest difference {:.2}, llama.cpp {:.2}", largest(&all_ours), largest(&all_theirs));
    assert!(largest(&all_ours) <= largest(&all_theirs), "{all_ours:?}, llama.cpp {all_theirs:?}");
    assert!(sum(&all_ours) <= sum(&all_theirs), "{all_ours:?}, llama.cpp {all_theirs:?}");
}

#[test]
fn products_of_bytes_on_smollm2() {
    products_of_bytes("smollm2");
}

#[test]
fn products_of_bytes_on_gemma3() {
    products_of_bytes("gemma3");
}

/// Every prompt, the long ones included, and all 48 greedy tokens.
#[test]
fn long_prompts_and_whole_answers_on_the_gpu() {
    if std::env::var("PAGEWISE_LONG").is_err() {
        return;
    }
    for name in ["smollm2", "gemma3"] {
        let Some(reference) = real_model(name) else { continue };
        let (gguf, source) = open(&reference.path);
        let options = ModelOptions { context_length: Some(1280), kv: KvFormat::F32, ..ModelOptions::default() };
        let gpu = open_gpu().remove(0);
        let mut model = block_on(load_gpu(&gguf, &source, gpu, &options, |_| Ok(()))).unwrap();
        check(&mut model, &reference.prompts, 32, 2e-3);
        greedy(model, &gguf, &reference.prompts, 48);
    }
}

/// The probe passes where kernels are right, for every way of choosing them.
#[test]
fn the_probe_passes_on_the_native_adapter() {
    for name in ["tiny-llama", "tiny-gemma3"] {
        let (gguf, _) = open(&tiny_model(name).0);
        let config = ModelConfig::from_gguf(&gguf).unwrap();
        let (_, layout, _) = plan(&config, &gguf, &DeviceInfo::BASELINE, &ModelOptions::default()).unwrap();
        for gpu in open_gpu() {
            let tuning = gpu.tuning();
            assert_eq!(block_on(probe(gpu, &config, &gguf, &layout)).unwrap().tuning(), tuning);
        }
    }
}

/// A context that is no multiple of the block size is kept to, not rounded up.
#[test]
fn the_context_is_exactly_what_was_asked_for() {
    let (gguf, source) = open(&tiny_model("tiny-llama").0);
    let options = ModelOptions { context_length: Some(100), ..ModelOptions::default() };
    let model = block_on(load_cpu(&gguf, &source, &options)).unwrap();
    assert_eq!((model.plan().context_length, model.limits().context_length), (100, 100));
    let tokenizer = std::rc::Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
    let groups = model.groups();
    let engine = Engine::new(model, tokenizer, groups, EngineOptions::default());
    assert_eq!(engine.context_length(), 100);
}
