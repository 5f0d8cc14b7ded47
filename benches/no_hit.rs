//! What the prefix cache costs where it finds nothing: looking, storing, and giving up older blocks, per step.
//!
//! `cargo bench --bench no_hit`, with SmolLM2-135M on the native adapter. Requests that share nothing run through the engine
//! over a model that computes nothing, with the cache and without; the difference is held against the time that the real
//! model takes for a step. Fails if it is 1 % of a decode step or of a prefill step, or more.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

use std::rc::Rc;
use std::time::Instant;

use pagewise::Result;
use pagewise::compute::{Gpu, GpuOptions};
use pagewise::engine::{CacheOptions, Engine, EngineOptions, Event, Request, SamplingParams};
use pagewise::gguf::{self, FileSource};
use pagewise::kv::GroupConfig;
use pagewise::model::{Batch, BatchLimits, Forward, GpuModel, Logits, ModelOptions, load_gpu};
use pagewise::text::Tokenizer;
use pollster::block_on;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/SmolLM2-135M-Instruct.Q4_1.gguf");
const CONTEXT_LENGTH: usize = 4096;
/// Of each request; three of them fill the pool, and from then on each drives out another.
const NUM_PROMPT: usize = 1024;
const NUM_ANSWER: usize = 512;
/// Requests of a round, and rounds, of which the median counts.
const NUM_REQUESTS: usize = 20;
const NUM_ROUNDS: usize = 15;
const MAX_SHARE: f64 = 0.01;

/// Computes nothing; draws a token that differs with its position.
struct Nothing {
    limits: BatchLimits,
}

impl Forward for Nothing {
    fn limits(&self) -> BatchLimits {
        self.limits
    }

    async fn forward(&mut self, batch: &Batch) -> Result<Vec<u32>> {
        let draw = |&row: &u32| 1000 + batch.tokens[row as usize].position % 1000;
        Ok(batch.rows.iter().map(draw).collect())
    }
}

/// Microseconds of a step, mean over many.
#[derive(Debug, Clone, Copy, Default)]
struct StepTimes {
    prefill_us: f64,
    decode_us: f64,
}

/// Runs prompts that differ from their first token on, one after another. Taking a request counts as prefill, what is
/// done when it ends as decode.
fn run<F: Forward>(engine: &mut Engine<F>, prompts: &[Vec<u32>], num_answer: usize, enabled: bool) -> StepTimes {
    let start = Instant::now();
    let now = || 1e3 * start.elapsed().as_secs_f64();
    let (mut prefill_ms, mut decode_ms, mut num_prefill, mut num_decode) = (0.0, 0.0, 0_u32, 0_u32);
    for prompt in prompts {
        let request = Request {
            prompt: prompt.clone(),
            max_tokens: Some(num_answer),
            sampling: SamplingParams::greedy(),
            ignore_end_of_generation: true,
            cache: CacheOptions { enabled, ..CacheOptions::default() },
            ..Request::default()
        };
        let mut before = now();
        engine.submit(request, before).unwrap();
        let mut is_prefill = true;
        while engine.has_work() {
            let events = block_on(engine.step(now));
            let after = now();
            let (sum, count) =
                if is_prefill { (&mut prefill_ms, &mut num_prefill) } else { (&mut decode_ms, &mut num_decode) };
            *sum += after - before;
            *count += 1;
            before = after;
            is_prefill &= events.is_empty();
            assert!(!events.iter().any(|event| matches!(event, Event::Failed { .. })), "{events:?}");
        }
    }
    StepTimes {
        prefill_us: 1e3 * prefill_ms / f64::from(num_prefill),
        decode_us: 1e3 * decode_ms / f64::from(num_decode),
    }
}

/// Prompts number `first..first + num`.
fn prompts(first: usize, num: usize, len: usize, vocab: usize) -> Vec<Vec<u32>> {
    // The first token tells them apart, so nothing is found; the others are all over the vocabulary.
    let id = |index: usize| u32::try_from((index * 7919 + 13) % vocab).unwrap();
    let prompt = |index: usize| (0..len).map(|offset| id(index + offset)).collect();
    (first..first + num).map(prompt).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The engine's own time per step, with the cache on and off: medians, round by round in turns.
fn control_plane(
    limits: BatchLimits,
    groups: &[GroupConfig],
    tokenizer: &Rc<Tokenizer>,
    vocab: usize,
) -> [StepTimes; 2] {
    let engine = || Engine::new(Nothing { limits }, Rc::clone(tokenizer), groups.to_vec(), EngineOptions::default());
    let mut engines = [engine(), engine()];
    let mut rounds = [Vec::new(), Vec::new()];
    // The first round fills the pool and is not counted.
    for round in 0..=NUM_ROUNDS {
        let prompts = prompts(round * NUM_REQUESTS, NUM_REQUESTS, NUM_PROMPT, vocab);
        for (index, enabled) in [true, false].into_iter().enumerate() {
            let times = run(&mut engines[index], &prompts, NUM_ANSWER, enabled);
            if round > 0 {
                rounds[index].push(times);
            }
        }
    }
    let stats = engines[0].cache_stats();
    assert_eq!((stats.num_hits, stats.num_lookups), (0, ((NUM_ROUNDS + 1) * NUM_REQUESTS) as u64), "nothing is found");
    assert!(stats.num_evicted > 0, "the pool is full");
    rounds.map(|rounds| StepTimes {
        prefill_us: median(rounds.iter().map(|times| times.prefill_us).collect()),
        decode_us: median(rounds.iter().map(|times| times.decode_us).collect()),
    })
}

fn open() -> (GpuModel, Rc<Tokenizer>) {
    assert!(std::path::Path::new(MODEL).exists(), "{MODEL} is missing: run `npm run fetch-models`");
    let source = FileSource::open(MODEL).unwrap();
    let gguf = block_on(gguf::open(&source)).unwrap();
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
    let gpu = block_on(Gpu::open(&GpuOptions::default())).unwrap();
    let options = ModelOptions { context_length: Some(CONTEXT_LENGTH), ..ModelOptions::default() };
    (block_on(load_gpu(&gguf, &source, gpu, &options, |_| Ok(()))).unwrap(), tokenizer)
}

fn main() {
    let (model, tokenizer) = open();
    let (limits, groups, vocab) = (model.limits(), model.groups(), model.vocab());
    println!("{} on {}", model.config().name, model.executor().gpu().name());
    let [on, off] = control_plane(limits, &groups, &tokenizer, vocab);
    let mut engine = Engine::new(model, tokenizer, groups, EngineOptions::default());
    // Short, so that attention is cheap: the shortest steps there are.
    let step = [0, 1, 2].map(|index| run(&mut engine, &prompts(index, 1, 2 * limits.max_tokens, vocab), 16, false));
    let num_tokens = limits.max_tokens;
    println!("microseconds per step             cache on   cache off        cost    the model's step    share");
    for (what, on, off, step) in [
        (format!("prefill, {num_tokens} tokens"), on.prefill_us, off.prefill_us, step.map(|s| s.prefill_us)),
        ("decode, 1 token".to_owned(), on.decode_us, off.decode_us, step.map(|s| s.decode_us)),
    ] {
        let (cost, step) = (on - off, median(step.to_vec()));
        let share = cost / step;
        println!("{what:30}{on:12.2}{off:12.2}{cost:12.2}{step:20.0}{:8.4} %", 100.0 * share);
        println!("  1 % of a step of {:.3} ms", 100.0 * cost.max(0.0) / 1e3);
        assert!(share < MAX_SHARE, "below {} % of a step is wanted", 100.0 * MAX_SHARE);
    }
}
