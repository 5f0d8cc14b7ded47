//! What a block costs the prefix cache, with 10^5 blocks in it: finding, and storing (which evicts as well).
//!
//! `cargo bench --bench prefix_lookup`. Fails if either takes more than a microsecond. On Linux time is what this thread
//! had of a processor, so that other work on the machine counts less.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

mod common;

use std::hint::black_box;
use std::rc::Rc;

use common::Clock;
use pagewise::kv::{BLOCK_SIZE, GroupConfig, KvManager, Retention};

const NUM_BLOCKS: usize = 100_000;
/// Of a prompt: 4,096 tokens.
const PROMPT_BLOCKS: usize = 256;
const MAX_NS: f64 = 1000.0;

fn prompt(index: usize) -> Vec<u32> {
    // The first block differs already, so the root has many children.
    let first = u32::try_from(index * 1_000_000).unwrap();
    (0..).map(|offset: u32| first + offset).take(PROMPT_BLOCKS * BLOCK_SIZE + 1).collect()
}

fn store(kv: &mut KvManager, tokens: &[u32], retention: &Rc<Retention>) {
    let hit = kv.find("", tokens);
    let table = kv.start("", &hit, tokens.len(), Rc::clone(retention));
    kv.grow(table, tokens.len()).unwrap();
    kv.commit(table, tokens, tokens.len());
    kv.finish(table, tokens, tokens.len());
}

/// Nanoseconds per block of `work` over all prompts: the best of a few rounds.
fn measure(prompts: &[Vec<u32>], rounds: usize, mut work: impl FnMut(&[u32])) -> f64 {
    let clock = Clock::start();
    let round = |_| {
        let before = clock.ns();
        prompts.iter().for_each(|prompt| work(prompt));
        (clock.ns() - before) / (prompts.len() * PROMPT_BLOCKS) as f64
    };
    (0..rounds).map(round).fold(f64::INFINITY, f64::min)
}

fn main() {
    let num_prompts = NUM_BLOCKS / PROMPT_BLOCKS;
    let empty = || KvManager::new(vec![GroupConfig { num_blocks: NUM_BLOCKS + num_prompts, window: None }]);
    let prompts: Vec<_> = (0..num_prompts).map(prompt).collect();
    let others: Vec<_> = (num_prompts..2 * num_prompts).map(prompt).collect();
    let retention = Rc::new(Retention::default());
    let mut kv = empty();
    let mut filling = f64::INFINITY;
    for _ in 0..3 {
        kv = empty();
        filling = filling.min(measure(&prompts, 1, |prompt| store(&mut kv, prompt, &retention)));
    }
    assert!(kv.cache_stats().num_blocks >= NUM_BLOCKS - PROMPT_BLOCKS);
    let finding = measure(&prompts, 5, |prompt| {
        let hit = black_box(kv.find("", black_box(prompt)));
        assert_eq!(hit.num_tokens(), PROMPT_BLOCKS * BLOCK_SIZE);
    });
    let missing = measure(&others, 5, |prompt| assert_eq!(kv.find("", black_box(prompt)).num_tokens(), 0));
    let starting = measure(&prompts, 3, |prompt| {
        let hit = kv.find("", prompt);
        let table = kv.start("", &hit, prompt.len(), Rc::clone(&retention));
        kv.finish(table, prompt, PROMPT_BLOCKS * BLOCK_SIZE);
    });
    // Each half drives out the other.
    let evicting = [&others, &prompts, &others]
        .map(|prompts| measure(prompts, 1, |prompt| store(&mut kv, prompt, &retention)))
        .into_iter()
        .fold(f64::INFINITY, f64::min);
    println!("{} cached blocks, prompts of {PROMPT_BLOCKS} blocks; nanoseconds per block", kv.cache_stats().num_blocks);
    let figures = [
        ("find", finding),
        ("find, cold (of the whole prompt)", missing),
        ("find, hold, use and let go", starting),
        ("store into free blocks", filling),
        ("store, evicting another", evicting),
    ];
    figures.iter().for_each(|(what, ns)| println!("{what:34} {ns:7.1}"));
    for (what, ns) in figures {
        assert!(ns <= MAX_NS, "{what}: {ns} ns a block, {MAX_NS} allowed");
    }
}
