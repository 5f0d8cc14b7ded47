//! What the length of a conversation costs its next turn: time to first token, cold and with the history in the cache.
//!
//! `cargo bench --bench second_turn [-- HISTORY...]`, with SmolLM2-135M on the native adapter; minutes on one that
//! computes on the CPU. A turn brings 16 new tokens behind a history of 128 to 4,096. Cold, all of it is computed.
//! Warm, only the 16 are, but their attention still reads the history's keys and values: the time cannot be quite
//! independent of the history. Processor time is given too: where the adapter computes on the CPU, it says more than the
//! clock on a machine that does other work as well. Fails if its slope over the history (least squares) is 5 % or more of the cold one's.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

mod common;

use std::rc::Rc;
use std::time::Instant;

use common::process_ms;
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

    /// The time to the first token, and what was computed.
    fn turn(&mut self, prompt: Vec<u32>) -> (Ttft, Usage) {
        let (start, cpu_before_ms) = (self.start, process_ms());
        let now = || 1e3 * start.elapsed().as_secs_f64();
        let sampling = SamplingParams::greedy();
        let request = Request { prompt, max_tokens: Some(1), sampling, ..Request::default() };
        self.engine.submit(request, now()).unwrap();
        loop {
            for event in block_on(self.engine.step(now)) {
                match event {
                    Event::Text { .. } | Event::Progress { .. } => {}
                    Event::Finished { usage, timings, .. } => {
                        let cpu_ms = process_ms().zip(cpu_before_ms).map_or(0.0, |(after, before)| after - before);
                        return (Ttft { wall_ms: timings.ttft_ms, cpu_ms }, usage);
                    }
                    Event::Failed { error, .. } => panic!("{error}"),
                }
            }
        }
    }
}

/// Milliseconds to a first token: as the user waits, and what all processors of the machine did.
#[derive(Debug, Clone, Copy)]
struct Ttft {
    wall_ms: f64,
    cpu_ms: f64,
}

struct Times {
    history: usize,
    cold: Ttft,
    /// Medians.
    warm: Ttft,
}

impl Times {
    fn measure(server: &mut Server, history: usize) -> Self {
        server.engine.cache_clear();
        let (cold, usage) = server.turn(server.prompt(history, 0));
        assert_eq!(usage.cached_tokens, 0);
        let warm = |turn| {
            let (warm, usage) = server.turn(server.prompt(history, turn));
            assert_eq!(usage.cached_tokens, history, "a warm turn computes what is new");
            warm
        };
        let warm: Vec<_> = (1..=NUM_WARM).map(warm).collect();
        let median = |value: fn(&Ttft) -> f64| {
            let mut values: Vec<_> = warm.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values[NUM_WARM / 2]
        };
        Self { history, cold, warm: Ttft { wall_ms: median(|t| t.wall_ms), cpu_ms: median(|t| t.cpu_ms) } }
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
    println!("{NUM_NEW} new tokens behind a history; first token after, in ms; (processor time of all threads)\n");
    println!("history      cold                warm, median of {NUM_WARM}");
    let mut times = Vec::new();
    for history in histories {
        let measured = Times::measure(&mut server, history);
        let Times { cold, warm, .. } = measured;
        let (cold, warm) = ([cold.wall_ms, cold.cpu_ms], [warm.wall_ms, warm.cpu_ms]);
        println!("{history:7}{:10.0} ({:8.0}){:10.1} ({:8.1})", cold[0], cold[1], warm[0], warm[1]);
        times.push(measured);
    }
    if times.len() < 2 {
        return;
    }
    let share = |what: &str, value: fn(&Ttft) -> f64| {
        let (cold, warm) = (slope(&times, |t| value(&t.cold)), slope(&times, |t| value(&t.warm)));
        println!("{what}: cold {cold:.3}, warm {warm:.4}: {:.2} %", 100.0 * warm / cold);
        warm / cold
    };
    println!("\nslope over the history, ms per token");
    let wall = share("time", |t| t.wall_ms);
    share("processor time", |t| t.cpu_ms);
    assert!(wall < MAX_SHARE, "below {} % of the cold slope is wanted", 100.0 * MAX_SHARE);
}
