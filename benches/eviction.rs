//! Which eviction policy meets a target for the time to first token: a generated trace of conversations, replayed.
//!
//! `cargo bench --bench eviction`. The trace is seeded. Conversations begin at random times (exponential gaps); the
//! number of turns is heavy-tailed (Pareto, shape 1.2, at most 60), so are the lengths of messages and answers
//! (log-normal) and the pauses between turns (log-normal). Every conversation starts with one of four system prompts.
//! As in the paper (Zhang et al., "Tail-Optimized Caching for LLM Inference", 2025), a turn's time to first token is its
//! uncached tokens over the prefill speed: no queueing. The manager decides exactly as in the engine.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a benchmark")]

use std::rc::Rc;

use pagewise::kv::{BLOCK_SIZE, GroupConfig, KvManager, Policy, Retention};

const TARGET_MS: u32 = 200;
/// What a laptop's GPU does with a model of a billion parameters.
const PREFILL_TOKENS_PER_S: u32 = 4000;
const NUM_CONVERSATIONS: usize = 6000;
const MAX_TOKENS: usize = 16_384;

struct Random(u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Above 0, at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }

    fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        let normal = (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos();
        median * (sigma * normal).exp()
    }

    fn pareto(&mut self, shape: f64) -> f64 {
        self.unit().powf(-1.0 / shape)
    }
}

/// A prompt that arrives, and the length of its answer.
struct Turn {
    at_ms: f64,
    conversation: usize,
    /// Tokens of the conversation up to the answer.
    prompt_len: usize,
    answer_len: usize,
}

fn trace() -> Vec<Turn> {
    let mut random = Random(2510_15152);
    let mut turns = Vec::new();
    let mut begins_ms = 0.0;
    for conversation in 0..NUM_CONVERSATIONS {
        begins_ms += random.exponential(6_000.0);
        let mut at_ms = begins_ms;
        let mut len = system_len(conversation);
        for _ in 0..random.pareto(1.2).min(60.0) as usize {
            let prompt_len = len + random.log_normal(60.0, 1.2).ceil() as usize;
            let answer_len = random.log_normal(220.0, 0.8).ceil() as usize;
            len = prompt_len + answer_len;
            if len > MAX_TOKENS {
                break;
            }
            turns.push(Turn { at_ms, conversation, prompt_len, answer_len });
            at_ms += random.log_normal(45_000.0, 1.0);
        }
    }
    turns.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
    turns
}

fn system_len(conversation: usize) -> usize {
    [64, 160, 320, 640][conversation % 4]
}

fn tokens(turn: &Turn) -> Vec<u32> {
    let system = turn.conversation % 4;
    let id = |position: usize| {
        let owner = if position < system_len(system) { system } else { 4 + turn.conversation };
        (owner * 2 * MAX_TOKENS + position) as u32
    };
    (0..turn.prompt_len + turn.answer_len).map(id).collect()
}

/// Times to first token in milliseconds, sorted.
fn replay(turns: &[Turn], num_blocks: usize, policy: Policy) -> Vec<f64> {
    let mut kv = KvManager::new(vec![GroupConfig { num_blocks, window: None }]);
    kv.set_policy(policy);
    let retention = Rc::new(Retention::default());
    let mut times = Vec::new();
    for turn in turns {
        kv.set_now(turn.at_ms as u64);
        let tokens = tokens(turn);
        let prompt = &tokens[..turn.prompt_len];
        let found = kv.find("", prompt);
        let shorter = kv.without_tail(found.clone());
        let hit = [found, shorter].into_iter().find(|hit| kv.admits_hit(hit, tokens.len(), true)).unwrap();
        times.push((turn.prompt_len - hit.num_tokens()) as f64 * 1000.0 / f64::from(PREFILL_TOKENS_PER_S));
        let table = kv.start("", &hit, turn.prompt_len, Rc::clone(&retention));
        // The last token of an answer is drawn, not computed.
        let num_computed = tokens.len() - 1;
        // The rows are copied in the first step, which lets go of their source.
        kv.commit(table, &tokens, hit.num_tokens());
        kv.grow(table, num_computed).unwrap();
        kv.commit(table, &tokens, num_computed);
        kv.finish(table, &tokens, num_computed);
    }
    times.sort_by(f64::total_cmp);
    times
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// How much less `new` is than `old`, in per cent.
fn less(new: f64, old: f64) -> f64 {
    if old == 0.0 { 0.0 } else { 100.0 * (old - new) / old }
}

fn main() {
    let turns = trace();
    let mean_new = turns.iter().map(|turn| turn.prompt_len).sum::<usize>() / turns.len();
    println!("{} turns of {NUM_CONVERSATIONS} conversations, {mean_new} tokens in a prompt on average", turns.len());
    println!("target {TARGET_MS} ms at {PREFILL_TOKENS_PER_S} tokens/s; times in ms\n");
    println!("  blocks  policy              P50     P90     P95     P99  violations    P90%    P95%  violations%");
    for num_blocks in [1_100, 2_000, 4_000, 6_000, 8_000, 12_000] {
        let tail_aware = |next_turn_tokens| Policy::TailAware {
            ttft_target_ms: TARGET_MS,
            prefill_tokens_per_s: PREFILL_TOKENS_PER_S,
            next_turn_tokens,
        };
        // What the next message brings: of the trace's log-normal lengths the mean, and what 95 % of them stay below.
        let policies =
            [("lru", Policy::Lru), ("tail_aware mean", tail_aware(123)), ("tail_aware p95", tail_aware(432))];
        let mut base = None;
        for (name, policy) in policies {
            let times = replay(&turns, num_blocks, policy);
            let [p50, p90, p95, p99] = [50, 90, 95, 99].map(|percent| percentile(&times, percent));
            let violations = times.iter().filter(|&&ms| ms > f64::from(TARGET_MS)).count() as f64;
            print!("{num_blocks:8}  {name:16} {p50:7.1}{p90:8.1}{p95:8.1}{p99:8.1}{violations:12}");
            let (b90, b95, b_violations) = *base.get_or_insert((p90, p95, violations));
            if policy != Policy::Lru {
                let saved = [less(p90, b90), less(p95, b95), less(violations, b_violations)];
                print!("{:8.1}{:8.1}{:13.1}", saved[0], saved[1], saved[2]);
            }
            println!();
        }
    }
    const { assert!(MAX_TOKENS / BLOCK_SIZE <= 1_100, "the smallest cache holds the longest conversation") };
}
