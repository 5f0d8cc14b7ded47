//! What the length of a conversation costs its next turn: time to first token, cold and with the history in the cache.
//!
//! `cargo bench --bench second_turn [-- HISTORY...]`, with SmolLM2-135M on the native adapter; minutes on one that
//! computes on the CPU. A turn brings 16 new tokens behind a history of 128 to 4,096. Cold, all of it is computed.
//! Warm, only the 16 are, but their attention still reads the history's keys and values: the time cannot be quite
//! independent of the history. Fails if its slope over the history (least squares) is 5 % or more of the cold one's.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

use std::rc::Rc;
use std::time::Instant;

use pagewise::compute::{Gpu, GpuOptions};
use pagewise::engine::{Engine, EngineOptions, Event, Request, SamplingParams, Usage};
use pagewise::gguf::{self, FileSource};
use pagewise::model::{GpuModel, Logits, ModelOptions, load_gpu};
use pagewise::text::Tokenizer;
use pollster::block_on;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/SmolLM2-135M-Instruct.Q4_1.gguf");
const HISTORIES: [usize; 6] = [128, 256, 512, 1024, 2048, 4096];
/// Tokens of the new turn: a short message.
const NUM_NEW: usize = 16;
/// Warm turns of each length, of which the median counts.
const NUM_WARM: usize = 5;
const MAX_SHARE: f64 = 0.05;

struct Server {
    engine: Engine<GpuModel>,
    vocab: usize,
    start: Instant,
}

impl Server {
    fn open(context_length: usize) -> Self {
        assert!(std::path::Path::new(MODEL).exists(), "{MODEL} is missing: run `npm run fetch-models`");
        let source = FileSource::open(MODEL).unwrap();
        let gguf = block_on(gguf::open(&source)).unwrap();
        let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
        let gpu = block_on(Gpu::open(&GpuOptions::default())).unwrap();
        let options = ModelOptions { context_length: Some(context_length), ..ModelOptions::default() };
        let model = block_on(load_gpu(&gguf, &source, gpu, &options, |_| Ok(()))).unwrap();
        println!("{} on {}", model.config().name, model.executor().gpu().name());
        let (vocab, groups) = (model.vocab(), model.groups());
        let engine = Engine::new(model, tokenizer, groups, EngineOptions::default());
        Self { engine, vocab, start: Instant::now() }
    }

    /// The history with the new tokens of its turn number `turn`, which differ from the first on.
    fn prompt(&self, history: usize, turn: usize) -> Vec<u32> {
        // Multiples of a prime far apart are all over the vocabulary.
        let id = |index: usize| u32::try_from((index * 7919 + 13) % self.vocab).unwrap();
        let new = |index: usize| id(1_000_003 * (turn + 1) + index);
        (0..history).map(id).chain((0..NUM_NEW).map(new)).collect()
    }

    /// Milliseconds to the first token, and what was computed.
    fn turn(&mut self, prompt: Vec<u32>) -> (f64, Usage) {
        let start = self.start;
        let now = || 1e3 * start.elapsed().as_secs_f64();
        let sampling = SamplingParams::greedy();
        let request = Request { prompt, max_tokens: Some(1), sampling, ..Request::default() };
        self.engine.submit(request, now()).unwrap();
        loop {
            for event in block_on(self.engine.step(now)) {
                match event {
                    Event::Text { .. } => {}
                    Event::Finished { usage, timings, .. } => return (timings.ttft_ms, usage),
                    Event::Failed { error, .. } => panic!("{error}"),
                }
            }
        }
    }
}

struct Times {
    history: usize,
    cold_ms: f64,
    /// Sorted.
    warm_ms: Vec<f64>,
}

impl Times {
    fn measure(server: &mut Server, history: usize) -> Self {
        server.engine.cache_clear();
        let (cold_ms, usage) = server.turn(server.prompt(history, 0));
        assert_eq!(usage.cached_tokens, 0);
        let warm = |turn| {
            let (warm_ms, usage) = server.turn(server.prompt(history, turn));
            assert_eq!(usage.cached_tokens, history, "a warm turn computes what is new");
            warm_ms
        };
        let mut warm_ms: Vec<_> = (1..=NUM_WARM).map(warm).collect();
        warm_ms.sort_by(f64::total_cmp);
        Self { history, cold_ms, warm_ms }
    }

    fn warm_median_ms(&self) -> f64 {
        self.warm_ms[NUM_WARM / 2]
    }
}

/// By least squares, in milliseconds per token of history.
fn slope(times: &[Times], value: impl Fn(&Times) -> f64) -> f64 {
    let count = times.len() as f64;
    let mean_x = times.iter().map(|t| t.history as f64).sum::<f64>() / count;
    let mean_y = times.iter().map(&value).sum::<f64>() / count;
    let covariance: f64 = times.iter().map(|t| (t.history as f64 - mean_x) * (value(t) - mean_y)).sum();
    let variance: f64 = times.iter().map(|t| (t.history as f64 - mean_x).powi(2)).sum();
    covariance / variance
}

fn main() {
    let mut histories: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    if histories.is_empty() {
        histories = HISTORIES.to_vec();
    }
    let longest = histories.iter().copied().max().unwrap_or(0);
    let mut server = Server::open(longest + NUM_NEW + 1);
    server.turn(server.prompt(48, 0));
    println!("{NUM_NEW} new tokens behind a history; first token after, in ms\n");
    println!("history      cold      warm  (fastest to slowest of {NUM_WARM})");
    let mut times = Vec::new();
    for history in histories {
        let measured = Times::measure(&mut server, history);
        let Times { cold_ms, warm_ms, .. } = &measured;
        let (warm, fastest, slowest) = (measured.warm_median_ms(), warm_ms[0], warm_ms[NUM_WARM - 1]);
        println!("{history:7}{cold_ms:10.0}{warm:10.1}  ({fastest:.1} to {slowest:.1})");
        times.push(measured);
    }
    if times.len() < 2 {
        return;
    }
    let (cold, warm) = (slope(&times, |t| t.cold_ms), slope(&times, Times::warm_median_ms));
    println!("\nslope, ms per token of history: cold {cold:.3}, warm {warm:.4}: {:.2} %", 100.0 * warm / cold);
    assert!(warm < MAX_SHARE * cold, "below {} % of the cold slope is wanted", 100.0 * MAX_SHARE);
}
