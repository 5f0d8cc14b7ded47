//! Many requests of every kind on a small pool, on the native adapter.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::rc::Rc;

use common::golden::{open_gpu, tiny_model};
use common::load::{NUM_REQUESTS, fifth, round, serve};
use pagewise::engine::{Engine, EngineOptions, Event, Request, Timeouts};
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
    while engine.has_work() {
        for event in block_on(engine.step(|| 0.0)) {
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
