//! What the prefix cache costs where it finds nothing: looking, storing, and giving up older blocks, per step.
//!
//! `cargo bench --bench no_hit`, with SmolLM2-135M on the native adapter. Requests that share nothing run through the engine
//! over a model that computes nothing, with the cache and without; the difference is held against the time that the real
//! model takes for a step. Fails if it is 1 % of a prefill step or of a decode step, or more.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

mod common;

use std::rc::Rc;
use std::time::Instant;

use common::Clock;
use pagewise::Result;
use pagewise::compute::{Gpu, GpuOptions};
use pagewise::engine::{CacheOptions, Engine, EngineOptions, Event, Request, SamplingParams};
use pagewise::gguf::{self, FileSource};
use pagewise::model::{Batch, BatchLimits, Forward, GpuModel, Logits, ModelOptions, load_gpu};
use pagewise::text::Tokenizer;
use pollster::block_on;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/SmolLM2-135M-Instruct.Q4_1.gguf");
const CONTEXT_LENGTH: usize = 4096;
/// Requests of a round, and rounds, of which the median counts.
const NUM_REQUESTS: usize = 20;
const NUM_ROUNDS: usize = 15;
const MAX_SHARE: f64 = 0.01;

/// Computes nothing; draws a token that differs with its position.
struct Nothing {
    limits: BatchLimits,
    /// What the step that was submitted draws.
    ids: Vec<u32>,
}

impl Forward for Nothing {
    fn limits(&self) -> BatchLimits {
        self.limits
    }

    fn submit(&mut self, batch: &Batch) -> Result<()> {
        let draw = |&row: &u32| 1000 + batch.tokens[row as usize].position % 1000;
        self.ids = batch.rows.iter().map(draw).collect();
        Ok(())
    }

    async fn collect(&mut self) -> Result<Vec<u32>> {
        Ok(std::mem::take(&mut self.ids))
    }
}

/// What a request is made of.
#[derive(Debug, Clone, Copy)]
struct Load {
    what: &'static str,
    num_prompt: usize,
    num_answer: usize,
}

/// Runs prompts one after another and returns the number of steps that it took.
fn run<F: Forward>(engine: &mut Engine<F>, prompts: Vec<Vec<u32>>, num_answer: usize, enabled: bool) -> u32 {
    let mut num_steps = 0;
    for prompt in prompts {
        let request = Request {
            prompt,
            max_tokens: Some(num_answer),
            sampling: SamplingParams::greedy(),
            ignore_end_of_generation: true,
            cache: CacheOptions { enabled, ..CacheOptions::default() },
            ..Request::default()
        };
        engine.submit(request, 0.0).unwrap();
        while engine.has_work() {
            let events = block_on(engine.step(|| 0.0));
            assert!(!events.iter().any(|event| matches!(event, Event::Failed { .. })), "{events:?}");
            num_steps += 1;
        }
    }
    num_steps
}

/// Prompts number `first..first + num`.
fn prompts(first: usize, num: usize, len: usize, vocab: usize) -> Vec<Vec<u32>> {
    // The first token tells them apart, so nothing is found; the others are all over the vocabulary.
    let id = |index: usize| u32::try_from((index * 7919 + 13) % vocab).unwrap();
    let prompt = |index: usize| (0..len).map(|offset| id(index + offset)).collect();
    (first..first + num).map(prompt).collect()
}

/// The engine's own microseconds per step, with the cache and without: medians over rounds, in turns.
fn own_us(real: &Engine<GpuModel>, tokenizer: &Rc<Tokenizer>, load: Load) -> [f64; 2] {
    let limits = real.forward().limits();
    let engine = || {
        let nothing = Nothing { limits, ids: Vec::new() };
        Engine::new(nothing, Rc::clone(tokenizer), real.forward().groups(), EngineOptions::default())
    };
    let mut engines = [engine(), engine()];
    let mut rounds = [Vec::new(), Vec::new()];
    let clock = Clock::start();
    // The first round fills the pool and is not counted.
    for round in 0..=NUM_ROUNDS {
        for (index, enabled) in [true, false].into_iter().enumerate() {
            let prompts = prompts(round * NUM_REQUESTS, NUM_REQUESTS, load.num_prompt, real.forward().vocab());
            let before = clock.ns();
            let num_steps = run(&mut engines[index], prompts, load.num_answer, enabled);
            let step_us = (clock.ns() - before) / f64::from(num_steps) / 1e3;
            rounds[index].extend((round > 0).then_some(step_us));
        }
    }
    let stats = engines[0].cache_stats();
    assert_eq!((stats.num_hits, stats.num_lookups), (0, ((NUM_ROUNDS + 1) * NUM_REQUESTS) as u64), "nothing is found");
    assert!(stats.num_evicted > 0, "the pool is full");
    rounds.map(|mut rounds| {
        rounds.sort_by(f64::total_cmp);
        rounds[NUM_ROUNDS / 2]
    })
}

/// The real model's microseconds per step: the fastest of a few short runs, which attend to little.
fn step_us(real: &mut Engine<GpuModel>, load: Load) -> f64 {
    let vocab = real.forward().vocab();
    let run = |index| {
        let prompts = prompts(index, 1, load.num_prompt.min(64), vocab);
        let start = Instant::now();
        let num_steps = run(real, prompts, load.num_answer.min(16), false);
        1e6 * start.elapsed().as_secs_f64() / f64::from(num_steps)
    };
    (0..4).map(run).fold(f64::INFINITY, f64::min)
}

fn open() -> (Engine<GpuModel>, Rc<Tokenizer>) {
    assert!(std::path::Path::new(MODEL).exists(), "{MODEL} is missing: run `npm run fetch-models`");
    let source = FileSource::open(MODEL).unwrap();
    let gguf = block_on(gguf::open(&source)).unwrap();
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
    let gpu = block_on(Gpu::open(&GpuOptions::default())).unwrap();
    let options = ModelOptions { context_length: Some(CONTEXT_LENGTH), ..ModelOptions::default() };
    let model = block_on(load_gpu(&gguf, &source, gpu, &options, |_| Ok(()))).unwrap();
    let groups = model.groups();
    (Engine::new(model, Rc::clone(&tokenizer), groups, EngineOptions::default()), tokenizer)
}

fn main() {
    let (mut real, tokenizer) = open();
    let (model, num_tokens) = (real.forward(), real.forward().limits().max_tokens);
    println!("{} on {}", model.config().name, model.executor().gpu().name());
    println!("prefill: {num_tokens} tokens a step, decode: 1; microseconds per step\n");
    println!("            cache on   cache off        cost    the model's step      share     1 % of a step of");
    let loads = [
        Load { what: "prefill", num_prompt: 1024, num_answer: 1 },
        Load { what: "decode", num_prompt: 1, num_answer: 1024 },
    ];
    for load in loads {
        let [on, off] = own_us(&real, &tokenizer, load);
        let (cost, step) = (on - off, step_us(&mut real, load));
        let (share, whole_ms) = (cost / step, cost / MAX_SHARE / 1e3);
        println!("{:8}{on:12.2}{off:12.2}{cost:12.2}{step:20.0}{:9.6} %{whole_ms:17.3} ms", load.what, 100.0 * share);
        assert!(share < MAX_SHARE, "below {} % of a step is wanted", 100.0 * MAX_SHARE);
    }
}
