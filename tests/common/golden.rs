//! Reading the reference values, and the rules for comparing with them.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::rc::Rc;

use pagewise::compute::{Executor, Gpu, GpuOptions, Tuning};
use pagewise::engine::{Engine, EngineOptions, Event, Request, SamplingParams};
use pagewise::gguf::Gguf;
use pagewise::model::{Logits, Model};
use pagewise::text::Tokenizer;
use pollster::block_on;
use serde_json::Value;

/// A greedy token is compared only while the reference's best logit leads by this: below, rounding may decide.
const GREEDY_MARGIN: f64 = 0.02;
/// The argmax must agree wherever the best logit leads by this.
const ARGMAX_MARGIN: f64 = 0.05;

/// Logits expected at one position: (token id, logit), the best first where they are sorted.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) position: usize,
    pub(crate) logits: Vec<(usize, f64)>,
    /// How far llama.cpp is from them when it rounds activations to bytes, where that is known.
    pub(crate) llama_cpp: Option<f64>,
}

/// A prompt and what is known of it.
pub(crate) struct Prompt {
    pub(crate) name: String,
    pub(crate) ids: Vec<u32>,
    pub(crate) rows: Vec<Row>,
    pub(crate) greedy: Vec<u32>,
    pub(crate) margins: Vec<f64>,
}

impl Prompt {
    pub(crate) fn positions(&self) -> Vec<usize> {
        self.rows.iter().map(|row| row.position).collect()
    }
}

/// A real model and its prompts.
pub(crate) struct Reference {
    pub(crate) path: String,
    pub(crate) prompts: Vec<Prompt>,
}

impl Reference {
    /// The prompts that software adapters compute in seconds.
    pub(crate) fn short(&self) -> Vec<Prompt> {
        let copy = |p: &Prompt| Prompt {
            name: p.name.clone(),
            ids: p.ids.clone(),
            rows: p.rows.clone(),
            greedy: p.greedy.clone(),
            margins: p.margins.clone(),
        };
        self.prompts.iter().filter(|prompt| prompt.ids.len() < 50).map(copy).collect()
    }
}

fn read(name: &str) -> Value {
    let path = format!("{}/tests/data/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn numbers<T>(value: &Value, convert: impl Fn(&Value) -> Option<T>) -> Vec<T> {
    value.as_array().unwrap().iter().map(|item| convert(item).unwrap()).collect()
}

fn ids(value: &Value) -> Vec<u32> {
    numbers(value, |id| u32::try_from(id.as_u64()?).ok())
}

/// A committed tiny model and its prompts; every logit of a row is known.
pub(crate) fn tiny_model(name: &str) -> (String, Vec<Prompt>) {
    let all = read("tiny");
    let prompt = |(index, case): (usize, &Value)| Prompt {
        name: format!("{name} {index}"),
        ids: ids(&case["ids"]),
        rows: numbers(&case["rows"], |row| {
            let logits = numbers(&row["logits"], Value::as_f64).into_iter().enumerate().collect();
            Some(Row { position: usize::try_from(row["pos"].as_u64()?).ok()?, logits, llama_cpp: None })
        }),
        greedy: ids(&case["greedy"]),
        margins: numbers(&case["greedy_margin"], Value::as_f64),
    };
    let prompts = all["cases"][name].as_array().unwrap().iter().enumerate().map(prompt).collect();
    (format!("{}/models/{name}-f16.gguf", env!("CARGO_MANIFEST_DIR")), prompts)
}

/// A real model and its prompts; the twenty largest logits of a row are known. `None`, and a line that says so, when
/// models are to be skipped.
pub(crate) fn real_model(name: &str) -> Option<Reference> {
    let file = match name {
        "smollm2" => "SmolLM2-135M-Instruct.Q4_1.gguf",
        _ => "gemma-3-270m-q4_k_m.gguf",
    };
    let path = format!("{}/models/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("PAGEWISE_SKIP_MODELS").is_ok_and(|value| value == "1") {
        println!("skipped: {file} (PAGEWISE_SKIP_MODELS=1)");
        return None;
    }
    assert!(std::path::Path::new(&path).exists(), "{path} is missing: run `npm run fetch-models`");
    let all = read(&format!("{name}.logits"));
    let prompt = |case: &Value| Prompt {
        name: format!("{name} {}", case["name"].as_str().unwrap()),
        ids: ids(&case["ids"]),
        rows: numbers(&case["positions"], |row| {
            let best = numbers(&row["exact_top20"], |pair| {
                Some((usize::try_from(pair[0].as_u64()?).ok()?, pair[1].as_f64()?))
            });
            let position = usize::try_from(row["pos"].as_u64()?).ok()?;
            Some(Row { position, logits: best, llama_cpp: row["llamacpp_max_abs_diff"].as_f64() })
        }),
        greedy: ids(&case["greedy_exact"]["ids"]),
        margins: numbers(&case["greedy_exact"]["greedy_margin"], Value::as_f64),
    };
    Some(Reference { path, prompts: all["prompts"].as_array().unwrap().iter().map(prompt).collect() })
}

/// Of the known logits.
pub(crate) fn largest_difference(row: &Row, actual: &[f32]) -> f64 {
    let distance = |&(id, expected): &(usize, f64)| (f64::from(actual[id]) - expected).abs();
    row.logits.iter().map(distance).fold(0.0, f64::max)
}

/// Fails unless every known logit is within `tolerance` and the best token is the same where it clearly leads.
pub(crate) fn close(prompt: &Prompt, logits: &[Vec<f32>], tolerance: f32) {
    assert_eq!(logits.len(), prompt.rows.len(), "{}: rows", prompt.name);
    for (row, actual) in prompt.rows.iter().zip(logits) {
        let worst = largest_difference(row, actual);
        let at = format!("{} position {}", prompt.name, row.position);
        println!("{at}: largest difference {worst:.1e}");
        assert!(worst <= f64::from(tolerance), "{at}: largest difference {worst}, {tolerance} allowed");
        let mut sorted = row.logits.clone();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
        if sorted[0].1 - sorted[1].1 > ARGMAX_MARGIN {
            let best = (0..actual.len()).max_by(|&a, &b| actual[a].total_cmp(&actual[b])).unwrap();
            assert_eq!(best, sorted[0].0, "{at}: argmax");
        }
    }
}

/// Fails unless the engine's greedy answers to all prompts, run side by side, begin with the reference's tokens.
pub(crate) fn greedy<E: Executor>(model: Model<E>, gguf: &Gguf, prompts: &[Prompt], num: usize) {
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
    let groups = model.groups();
    let mut engine = Engine::new(model, tokenizer, groups, EngineOptions::default());
    let submit = |prompt: &Prompt| {
        let request = Request {
            prompt: prompt.ids.clone(),
            max_tokens: Some(num),
            sampling: SamplingParams::greedy(),
            ignore_end_of_generation: true,
            ..Request::default()
        };
        engine.submit(request, 0.0).unwrap()
    };
    let requests: Vec<_> = prompts.iter().map(submit).collect();
    let mut answers = vec![Vec::new(); prompts.len()];
    while engine.has_work() {
        for event in block_on(engine.step(|| 0.0)) {
            match event {
                Event::Text { request, ids, .. } => {
                    answers[requests.iter().position(|&r| r == request).unwrap()].extend(ids);
                }
                Event::Failed { error, .. } => panic!("{error}"),
                Event::Finished { .. } | Event::Progress { .. } => {}
            }
        }
    }
    for (prompt, answer) in prompts.iter().zip(answers) {
        let clear = prompt.margins.iter().take_while(|&&margin| margin >= GREEDY_MARGIN).count().min(num);
        assert_eq!(answer[..clear], prompt.greedy[..clear], "{}: greedy tokens", prompt.name);
        println!("{}: {clear} greedy tokens agree", prompt.name);
    }
}

/// The native adapter: as it chooses itself, as a GPU would be used, and with WebGPU's default limits alone.
pub(crate) fn open_gpu() -> Vec<Gpu> {
    let gpu_way = GpuOptions { tuning: Some(Tuning::GPU), ..GpuOptions::default() };
    let baseline = GpuOptions { baseline: true, ..GpuOptions::default() };
    let open = |options| block_on(Gpu::open(&options)).unwrap();
    [GpuOptions::default(), gpu_way, baseline].map(open).into()
}
