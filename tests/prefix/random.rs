//! Random arrivals with shared prefixes, forks, cancels, preemption, eviction, expiry and pins.

use std::collections::BTreeSet;

use pagewise::kv::{BLOCK_SIZE, GroupConfig, KvManager, Policy, Restoring, Retention};

use crate::world::{Content, Saved, Sequence, World, contents};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

struct Run {
    random: Random,
    world: World,
    /// Prompts that were there before, to begin like.
    history: Vec<(String, Vec<u32>)>,
    /// Everything that any row may hold.
    known: BTreeSet<Content>,
    /// Tables without the cache, that share blocks of a sequence.
    forks: Vec<pagewise::kv::TableId>,
    /// Prefixes that were saved.
    saved: Vec<Saved>,
    /// One of them, on its way back.
    restoring: Option<(Restoring, Saved)>,
    now_ms: u64,
    num_hits: usize,
    num_restored: usize,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let full = GroupConfig { num_blocks: 3 + random.below(30), window: None };
        // Queries that see only themselves need no cache at all, which the naive model would count as a hit.
        let window = 2 + random.below(50);
        // At least what a lone sequence needs.
        let sliding = GroupConfig { num_blocks: window.div_ceil(16) + 1 + random.below(12), window: Some(window) };
        let configs = match random.below(4) {
            0 => vec![full, sliding],
            1 => vec![sliding],
            _ => vec![full],
        };
        let mut world = World::new(configs);
        world.kv.set_policy(policy(&mut random));
        let (history, known) = (vec![(String::new(), Vec::new())], BTreeSet::new());
        Self {
            random,
            world,
            history,
            known,
            forks: Vec::new(),
            saved: Vec::new(),
            restoring: None,
            now_ms: 0,
            num_hits: 0,
            num_restored: 0,
        }
    }

    fn tokens(&mut self, num: usize) -> Vec<u32> {
        // Few different ones, so that prefixes meet; the largest id that is allowed is among them.
        (0..num).map(|_| [0, 7, u32::MAX - 1][self.random.below(20).saturating_sub(17)]).collect()
    }

    fn arrive(&mut self) {
        let (salt, mut tokens) = self.history[self.random.below(self.history.len())].clone();
        let salt = if self.random.below(10) == 0 { "other".to_owned() } else { salt };
        tokens.truncate(self.random.below(tokens.len() + 1));
        let num_new = 1 + self.random.below(60);
        tokens.extend(self.tokens(num_new));
        let most = self.world.kv.longest_sequence().min(200);
        tokens.truncate(most);
        let retention = self.retention(tokens.len());
        self.known.extend(contents(&salt, &tokens));
        if let Some((_, hit)) = self.world.start(&salt, &tokens, retention) {
            self.num_hits += usize::from(hit.num_tokens() > 0);
            self.remember(salt, tokens);
        }
    }

    fn remember(&mut self, salt: String, tokens: Vec<u32>) {
        if self.history.len() > 20 {
            let index = self.random.below(self.history.len());
            self.history.swap_remove(index);
        }
        self.history.push((salt, tokens));
    }

    fn retention(&mut self, num_tokens: usize) -> Retention {
        let priority = i32::try_from(self.random.below(3)).unwrap();
        let ttl_ms = (self.random.below(3) == 0).then(|| self.random.below(200) as u64);
        let breakpoint = (self.random.below(num_tokens + 1), self.random.below(400) as u64);
        let breakpoints = if self.random.below(4) == 0 { vec![breakpoint] } else { vec![] };
        let pin_tokens = if self.random.below(8) == 0 { self.random.below(num_tokens + 1) } else { 0 };
        let name = (self.random.below(5) == 0).then(|| (num_tokens / 16 * 16, "name".to_owned()));
        Retention { priority, ttl_ms, breakpoints, pin_tokens, name }
    }

    fn operate(&mut self) {
        let num_live = self.world.live.len();
        match self.random.below(28) {
            0..6 => self.arrive(),
            6..14 if num_live > 0 => {
                let (index, num_tokens) = (self.random.below(num_live), 1 + self.random.below(50));
                self.world.compute(index, num_tokens);
            }
            14 if num_live > 0 => self.generate(num_live),
            15..17 if num_live > 0 => {
                let index = self.random.below(num_live);
                let Sequence { salt, tokens, .. } = self.world.live[index].clone();
                self.remember(salt, tokens);
                self.world.finish(index);
            }
            17 if num_live > 0 => {
                let id = self.world.live.swap_remove(self.random.below(num_live)).id;
                if self.random.below(2) == 0 { self.world.kv.release(id) } else { self.world.kv.discard(id) }
            }
            18 if num_live > 0 && self.forks.len() < 2 => {
                let Sequence { id, num_computed, .. } = self.world.live[self.random.below(num_live)];
                let num_blocks = self.random.below(num_computed / BLOCK_SIZE + 1);
                self.forks.extend(self.world.kv.fork(id, num_blocks));
            }
            19 => {
                self.forks.pop().into_iter().for_each(|id| self.world.kv.release(id));
            }
            20 => {
                self.now_ms += self.random.below(100) as u64;
                let (salt, tokens) = self.history[self.random.below(self.history.len())].clone();
                let foreseen = self.world.kv.find_at(self.now_ms, &salt, &tokens);
                self.world.kv.set_now(self.now_ms);
                assert_eq!(self.world.kv.find(&salt, &tokens), foreseen);
            }
            21 => self.steer(),
            22..24 => self.save(),
            24..27 => self.restore(),
            _ => {}
        }
        self.world.check(&self.known);
    }

    fn save(&mut self) {
        let (salt, tokens) = self.history[self.random.below(self.history.len())].clone();
        let saved = self.world.save(&salt, &tokens);
        if saved.tokens.is_empty() {
            return;
        }
        if self.saved.len() > 5 {
            self.saved.remove(0);
        }
        if self.random.below(2) == 0 {
            self.world.kv.evict(&salt, &saved.tokens[..BLOCK_SIZE]);
        }
        self.saved.push(saved);
    }

    /// Begins to bring a prefix back, or ends what was begun; anything may happen in between.
    fn restore(&mut self) {
        if let Some((restoring, saved)) = self.restoring.take() {
            if self.random.below(4) == 0 {
                self.world.kv.abort_restore(restoring);
                return;
            }
            let retention = self.retention(saved.tokens.len());
            self.num_restored += self.world.finish_restore(restoring, &saved, retention);
        } else if !self.saved.is_empty() {
            let saved = self.saved[self.random.below(self.saved.len())].clone();
            self.restoring = self.world.begin_restore(&saved).map(|restoring| (restoring, saved));
        }
    }

    /// A sequence goes on with tokens of its own.
    fn generate(&mut self, num_live: usize) {
        let index = self.random.below(num_live);
        let num_new = 1 + self.random.below(3);
        let more = self.tokens(num_new);
        let most = self.world.kv.longest_sequence();
        let sequence = &mut self.world.live[index];
        sequence.tokens.extend(more);
        sequence.tokens.truncate(most);
        self.known.extend(contents(&sequence.salt, &sequence.tokens));
    }

    fn steer(&mut self) {
        let (salt, mut tokens) = self.history[self.random.below(self.history.len())].clone();
        tokens.truncate(self.random.below(tokens.len() + 1));
        let kv: &mut KvManager = &mut self.world.kv;
        match self.random.below(8) {
            0..2 => assert_eq!(kv.pin(&salt, &tokens) % BLOCK_SIZE, 0),
            2..5 => assert_eq!(kv.unpin(&salt, &tokens) % BLOCK_SIZE, 0),
            5 => assert!(kv.evict(&salt, &tokens) <= kv.blocks().len()),
            6 => kv.set_policy(policy(&mut self.random)),
            _ => {
                kv.clear();
                let is_left = |view: &pagewise::kv::BlockView| view.cached.is_some() && view.num_holders == 0;
                assert!(!kv.blocks().iter().any(is_left), "what nobody holds is gone");
            }
        }
    }

    /// Ends everything; then every block is free and can be had. Returns the number of hits, and of blocks restored.
    fn end(mut self) -> (usize, usize) {
        self.restoring.take().into_iter().for_each(|(restoring, _)| self.world.kv.abort_restore(restoring));
        while !self.world.live.is_empty() {
            self.world.finish(0);
        }
        self.forks.iter().for_each(|&id| self.world.kv.release(id));
        self.world.check(&self.known);
        for stats in self.world.kv.stats() {
            assert_eq!((stats.used, stats.free), (0, stats.num_blocks));
        }
        let num_tokens = self.world.kv.longest_sequence().min(64);
        let id = self.world.kv.create();
        for position in 0..num_tokens {
            self.world.kv.release_unreachable(id, position);
            self.world.kv.grow(id, position + 1).unwrap();
        }
        self.world.kv.check().unwrap();
        assert_eq!(self.world.kv.cache_stats().num_restored, self.num_restored as u64);
        (self.num_hits, self.num_restored)
    }
}

fn policy(random: &mut Random) -> Policy {
    match random.below(2) {
        0 => Policy::Lru,
        _ => Policy::TailAware { ttft_target_ms: 50, prefill_tokens_per_s: 1000, next_turn_tokens: 5 },
    }
}

#[test]
fn random_operations_agree_with_a_naive_model() {
    let is_long = std::env::var_os("PAGEWISE_LONG").is_some();
    let num_runs = if is_long { 5000 } else { 50 };
    let (mut num_hits, mut num_restored) = (0, 0);
    for seed in 0..num_runs {
        let mut run = Run::new(seed);
        (0..200).for_each(|_| run.operate());
        let (hits, restored) = run.end();
        num_hits += hits;
        num_restored += restored;
    }
    println!("{num_hits} hits, {num_restored} blocks restored");
    let few = usize::try_from(num_runs).unwrap() / 50;
    assert!(num_hits > 500 * few, "{num_hits} hits: the operations test nothing");
    assert!(num_restored > 60 * few, "{num_restored} blocks restored: the operations test nothing");
}
