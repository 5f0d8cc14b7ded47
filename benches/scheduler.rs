//! What a step costs beside the forward pass, at 64 running and 1,000 waiting requests.
//!
//! `cargo bench --bench scheduler`. The forward pass is free, so that all of a step is the engine's: planning and building the
//! batch until the forward pass is called; taking note of the result, and making text (the detokeniser, a token for each
//! sequence), after it. Fails if planning and building takes more than 50 microseconds, the median of all steps.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use pagewise::Result;
use pagewise::engine::{Engine, EngineOptions, Event, Request, SamplingParams};
use pagewise::kv::{BLOCK_SIZE, GroupConfig};
use pagewise::model::{Batch, BatchLimits, Forward};
use pagewise::simulation::tokenizer;
use pollster::block_on;

const NUM_RUNNING: usize = 64;
const NUM_WAITING: usize = 1000;
const PROMPT_TOKENS: usize = 256;
const MAX_US: f64 = 50.0;

/// Returns at once, and remembers when it was called and when it returned.
struct Free {
    limits: BatchLimits,
    called: Rc<Cell<Option<(Instant, usize, usize)>>>,
    /// Rows of the step that was submitted.
    num_rows: usize,
}

impl Forward for Free {
    fn limits(&self) -> BatchLimits {
        self.limits
    }

    fn submit(&mut self, batch: &Batch) -> Result<()> {
        self.called.set(Some((Instant::now(), batch.tokens.len(), batch.tables[0].len())));
        self.num_rows = batch.rows.len();
        Ok(())
    }

    async fn collect(&mut self) -> Result<Vec<u32>> {
        Ok(vec![97; self.num_rows])
    }
}

/// What is asked of the engine.
struct Case {
    name: &'static str,
    /// Tokens of an answer: short ones end and make place, so that steps admit.
    max_tokens: usize,
    /// Blocks for so many sequences.
    num_fitting: usize,
    /// Slots.
    max_running: usize,
    /// How many other prompts begin like a prompt, of blocks that are being computed.
    shared_tokens: usize,
}

#[derive(Default)]
struct Times {
    before: Vec<Duration>,
    after: Vec<Duration>,
    all: Vec<Duration>,
    num_tokens: usize,
    num_sequences: usize,
}

fn request(index: usize, case: &Case) -> Request {
    // Numbers in base 90, so that no two prompts begin alike, but for what they share.
    let digit = |position: usize| index / 90_usize.pow(u32::try_from(position % 4).unwrap()) % 90;
    let id = |position: usize| 32 + if position < case.shared_tokens { position % 7 } else { digit(position) };
    Request {
        prompt: (0..PROMPT_TOKENS).map(|position| u32::try_from(id(position)).unwrap()).collect(),
        max_tokens: Some(case.max_tokens),
        sampling: SamplingParams::greedy(),
        ignore_end_of_generation: true,
        ..Request::default()
    }
}

fn measure(case: &Case, num_steps: usize) -> Times {
    let called = Rc::new(Cell::new(None));
    let blocks = |num_tokens: usize| num_tokens.div_ceil(BLOCK_SIZE);
    let limits = BatchLimits {
        max_tokens: 512,
        max_sequences: 2 * NUM_RUNNING,
        max_rows: 2 * NUM_RUNNING,
        max_edits: 0,
        max_copies: 2 * NUM_RUNNING * BLOCK_SIZE,
        context_length: 4096,
        max_blocks: blocks(4096),
    };
    let num_blocks = case.num_fitting * blocks(PROMPT_TOKENS + case.max_tokens.min(2048));
    let options = EngineOptions { max_running: case.max_running, max_waiting: usize::MAX, ..EngineOptions::default() };
    let forward = Free { limits, called: Rc::clone(&called), num_rows: 0 };
    let groups = vec![GroupConfig { num_blocks, window: None }];
    let mut engine = Engine::new(forward, tokenizer().unwrap(), groups, options);
    let start = Instant::now();
    let now = || 1e3 * start.elapsed().as_secs_f64();
    let mut next = 0;
    let mut times = Times::default();
    let mut num_warm = 0;
    while times.all.len() < num_steps {
        while engine.metrics().num_running + engine.metrics().num_waiting < NUM_RUNNING + NUM_WAITING {
            engine.submit(request(next, case), now()).unwrap();
            next += 1;
        }
        let begin = Instant::now();
        let events = block_on(engine.step(now));
        let end = Instant::now();
        assert!(!events.iter().any(|event| matches!(event, Event::Failed { .. })));
        let (called, num_tokens, num_sequences) = called.take().unwrap();
        // Until all prompts of the first ones are computed.
        num_warm += usize::from(engine.metrics().num_running >= NUM_RUNNING);
        if num_warm > 50 {
            times.before.push(called - begin);
            times.after.push(end - called);
            times.all.push(end - begin);
            times.num_tokens += num_tokens;
            times.num_sequences += num_sequences;
        }
    }
    let mean = times.num_sequences as f64 / times.all.len() as f64;
    assert!(mean > 0.9 * NUM_RUNNING as f64, "{}: {mean} sequences a step", case.name);
    times
}

/// The median, and what 99 of 100 steps do not exceed, in microseconds.
fn spread(times: &mut [Duration]) -> (f64, f64) {
    times.sort();
    let us = |time: Duration| 1e6 * time.as_secs_f64();
    (us(times[times.len() / 2]), us(times[times.len() * 99 / 100]))
}

fn main() {
    let cases = [
        Case { name: "all slots taken, decode", max_tokens: 3000, num_fitting: 80, max_running: 64, shared_tokens: 0 },
        Case { name: "blocks short, preempting", max_tokens: 64, num_fitting: 64, max_running: 128, shared_tokens: 0 },
        Case {
            name: "answers of 64 tokens, admitting",
            max_tokens: 64,
            num_fitting: 80,
            max_running: 64,
            shared_tokens: 0,
        },
        Case {
            name: "the same, 128 tokens shared",
            max_tokens: 64,
            num_fitting: 80,
            max_running: 64,
            shared_tokens: 128,
        },
    ];
    println!(
        "{NUM_RUNNING} running, {NUM_WAITING} waiting, prompts of {PROMPT_TOKENS} tokens; microseconds a step: median (P99)\n"
    );
    println!("| case | sequences a step | tokens | plan and batch | commit and text | all |");
    println!("| --- | --: | --: | --: | --: | --: |");
    let mut slow = Vec::new();
    for case in cases {
        let mut times = measure(&case, 2000);
        let [num_sequences, num_tokens] =
            [times.num_sequences, times.num_tokens].map(|num| num as f64 / times.all.len() as f64);
        let [before, after, all] =
            [&mut times.before, &mut times.after, &mut times.all].map(|times| spread(times.as_mut_slice()));
        let cell = |(median, p99): (f64, f64)| format!("{median:.1} ({p99:.1})");
        println!(
            "| {} | {num_sequences:.0} | {num_tokens:.0} | {} | {} | {} |",
            case.name,
            cell(before),
            cell(after),
            cell(all)
        );
        slow.extend((before.0 > MAX_US).then(|| format!("{}: {:.1}", case.name, before.0)));
    }
    assert!(slow.is_empty(), "planning takes more than {MAX_US} microseconds a step: {slow:?}");
}
