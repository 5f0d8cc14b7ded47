//! Many requests of every kind on a small pool, on the native adapter.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::cell::Cell;
use std::rc::Rc;

use common::golden::{open_gpu, tiny_model};
use common::load::{NUM_REQUESTS, fifth, round, serve};
use pagewise::engine::{Engine, EngineOptions, Event, Request, SamplingParams, Timeouts};
use pagewise::gguf::{self, FileSource};
use pagewise::kernels::KvFormat;
use pagewise::kv::GroupConfig;
use pagewise::model::{Forward, Logits as _, ModelOptions, load_gpu};
use pagewise::text::Tokenizer;
use pollster::block_on;

/// The answer of a request that has the engine for itself.
fn alone<F: Forward>(engine: &mut Engine<F>, request: &Request) -> Vec<u32> {
    engine.cache_clear();
    engine.submit(Request { timeouts: Timeouts::default(), ..request.clone() }, 0.0).unwrap();
    let mut answer = Vec::new();
    let clock_ms = Cell::new(0.0);
    let now = || clock_ms.replace(clock_ms.get() + 5.0);
    while engine.has_work() {
        for event in block_on(engine.step(now)) {
            if let Event::Text { ids, .. } = event {
                answer.extend(ids);
            }
        }
    }
    answer
}

/// One round here; ten with `PAGEWISE_LONG=1`, as the fake model does them in any case.
#[test]
fn two_hundred_mixed_requests_answer_as_they_do_alone() {
    let num_rounds = if std::env::var("PAGEWISE_LONG").is_ok_and(|value| value == "1") { 10 } else { 1 };
    let mut num_preemptions = 0;
    for name in ["tiny-llama", "tiny-gemma3"] {
        let (path, _) = tiny_model(name);
        let source = FileSource::open(&path).unwrap();
        let gguf = block_on(gguf::open(&source)).unwrap();
        let options = ModelOptions {
            kv: KvFormat::F32,
            context_length: Some(512),
            max_sequences: Some(128),
            ..ModelOptions::default()
        };
        let load = || block_on(load_gpu(&gguf, &source, open_gpu().remove(0), &options, |_| Ok(()))).unwrap();
        let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
        let model = load();
        let groups = model.groups();
        let mut solo = Engine::new(load(), Rc::clone(&tokenizer), groups.clone(), EngineOptions::default());
        let rounds: Vec<_> = (0..num_rounds).map(|seed| round(seed, tokenizer.vocab_size())).collect();
        let num_blocks = rounds.iter().map(|round| fifth(round)).min().unwrap();
        let narrow = |group: GroupConfig| GroupConfig { num_blocks: num_blocks.min(group.num_blocks), ..group };
        let groups = groups.into_iter().map(narrow).collect();
        let mut engine = Engine::new(model, tokenizer, groups, EngineOptions::default());
        for round in &rounds {
            let outcome = serve(&mut engine, round, |index| alone(&mut solo, &round[index].request));
            println!("{name}: {outcome:?}, {} preemptions", engine.metrics().num_preemptions);
            assert_eq!(outcome.finished + outcome.expired + outcome.aborted, NUM_REQUESTS);
        }
        num_preemptions += engine.metrics().num_preemptions;
    }
    assert!(num_preemptions > 0, "the pools are too large to matter");
}

/// The adapter as a GPU would be used: there, long steps are cut.
#[test]
fn a_step_in_many_submissions_computes_the_same() {
    let (path, prompts) = tiny_model("tiny-llama");
    let source = FileSource::open(&path).unwrap();
    let gguf = block_on(gguf::open(&source)).unwrap();
    let options = ModelOptions { kv: KvFormat::F32, context_length: Some(256), ..ModelOptions::default() };
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
    let request = Request {
        prompt: prompts[0].ids.clone(),
        max_tokens: Some(12),
        sampling: SamplingParams::greedy(),
        ignore_end_of_generation: true,
        ..Request::default()
    };
    let answer = |step_target_ms| {
        let model = block_on(load_gpu(&gguf, &source, open_gpu().remove(1), &options, |_| Ok(()))).unwrap();
        assert!(model.executor().gpu().tuning().cuts_steps);
        let groups = model.groups();
        let options = EngineOptions { step_target_ms, ..EngineOptions::default() };
        let mut engine = Engine::new(model, Rc::clone(&tokenizer), groups, options);
        let answer = alone(&mut engine, &request);
        let gpu_ms = engine.forward().gpu_ms();
        println!("the last step took {gpu_ms:?} ms on the device");
        assert!(gpu_ms.is_none_or(|ms| ms > 0.0));
        let metrics = engine.metrics();
        assert_eq!(metrics.encode_ms.count(), metrics.num_steps);
        assert!(engine.forward().encode_ms().is_some_and(|ms| ms > 0.0 && ms <= metrics.encode_ms.sum()));
        answer
    };
    // Steps take 5 ms by the clock of `alone`, so all but the first are cut as often as can be.
    assert_eq!(answer(Some(1e-6)), answer(None));
}
