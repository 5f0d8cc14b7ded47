//! Steps that are submitted ahead draw what they draw one by one: on the CPU executor and on the native adapter.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::rc::Rc;

use common::golden::{open_gpu, tiny_model};
use pagewise::compute::Executor;
use pagewise::engine::{Engine, EngineMetrics, EngineOptions, Event, Request, RequestId, SamplingParams};
use pagewise::gguf::{self, FileSource, Gguf};
use pagewise::kernels::KvFormat;
use pagewise::model::{Logits as _, Model, ModelOptions, load_cpu, load_gpu};
use pagewise::text::Tokenizer;
use pollster::block_on;

/// Greedy, drawn, penalised, and drawn from what a mask allows.
fn requests(prompt: &[u32]) -> [Request; 4] {
    let make = |skip: usize, max_tokens, sampling| Request {
        prompt: prompt[skip..].to_vec(),
        max_tokens: Some(max_tokens),
        sampling,
        ignore_end_of_generation: true,
        ..Request::default()
    };
    let drawn = SamplingParams { seed: Some(7), top_k: 40, ..SamplingParams::default() };
    let penalised = SamplingParams { presence_penalty: 1.0, ..SamplingParams::greedy() };
    let masked = Request { allowed_token_ids: Some(vec![5, 40, 41, 99]), ..make(3, 20, drawn.clone()) };
    [make(0, 24, SamplingParams::greedy()), make(1, 16, drawn), make(2, 9, penalised), masked]
}

/// The answers when up to `num` steps are in flight.
fn answers<E: Executor>(model: Model<E>, gguf: &Gguf, prompt: &[u32], num: usize) -> (Vec<Vec<u32>>, EngineMetrics) {
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
    let groups = model.groups();
    let options = EngineOptions { max_steps_ahead: Some(num), ..EngineOptions::default() };
    let mut engine = Engine::new(model, tokenizer, groups, options);
    let mut answers: BTreeMap<RequestId, Vec<u32>> = BTreeMap::new();
    for request in requests(prompt) {
        answers.insert(engine.submit(request, 0.0).unwrap(), Vec::new());
    }
    while engine.has_work() {
        for event in block_on(engine.step(|| 0.0)) {
            match event {
                Event::Text { request, ids, .. } => answers.get_mut(&request).unwrap().extend(ids),
                Event::Failed { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
        engine.kv().check().unwrap();
    }
    (answers.into_values().collect(), engine.metrics())
}

fn check<E: Executor>(mut load: impl FnMut() -> Model<E>, gguf: &Gguf, prompt: &[u32]) {
    let (expected, metrics) = answers(load(), gguf, prompt, 1);
    assert_eq!(metrics.num_steps_ahead, 0);
    assert_eq!(expected.iter().map(Vec::len).collect::<Vec<_>>(), [24, 16, 9, 20]);
    assert!(expected[3].iter().all(|id| [5, 40, 41, 99].contains(id)), "{:?}", expected[3]);
    let (actual, metrics) = answers(load(), gguf, prompt, 4);
    assert_eq!(actual, expected);
    assert!(metrics.num_steps_ahead > 10);
    assert_eq!((metrics.generated_tokens, metrics.overshot_tokens), (24 + 16 + 9 + 20, 0));
}

#[test]
fn tiny_models_answer_the_same_with_one_step_in_flight_and_with_four() {
    for name in ["tiny-llama", "tiny-gemma3"] {
        let (path, prompts) = tiny_model(name);
        let source = FileSource::open(&path).unwrap();
        let gguf = block_on(gguf::open(&source)).unwrap();
        let options = ModelOptions { kv: KvFormat::F32, context_length: Some(128), ..ModelOptions::default() };
        let prompt = &prompts[0].ids;
        check(|| block_on(load_cpu(&gguf, &source, &options)).unwrap(), &gguf, prompt);
        for (index, _) in open_gpu().iter().enumerate() {
            let load = || {
                let gpu = open_gpu().swap_remove(index);
                block_on(load_gpu(&gguf, &source, gpu, &options, |_| Ok(()))).unwrap()
            };
            check(load, &gguf, prompt);
        }
    }
}
