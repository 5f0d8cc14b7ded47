//! Blocks, tables and pools: worked examples, and random operations against a naive model.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use pagewise::kv::{BLOCK_SIZE, BlockPool, GroupConfig, KvManager, TableId};
use proptest::prelude::*;

const FULL: GroupConfig = GroupConfig { num_blocks: 10, window: None };

fn manager(full_blocks: usize, sliding: Option<(usize, usize)>) -> KvManager {
    let mut groups = vec![GroupConfig { num_blocks: full_blocks, window: None }];
    groups.extend(sliding.map(|(num_blocks, window)| GroupConfig { num_blocks, window: Some(window) }));
    KvManager::new(groups)
}

#[test]
fn a_pool_hands_out_the_block_that_was_free_for_longest() {
    let mut pool = BlockPool::new(3);
    assert_eq!([pool.take(), pool.take(), pool.take(), pool.take()], [Some(0), Some(1), Some(2), None]);
    pool.release(1);
    pool.release(0);
    assert_eq!((pool.num_free(), pool.num_used(), pool.peak_used()), (2, 1, 3));
    assert_eq!([pool.take(), pool.take(), pool.take()], [Some(1), Some(0), None]);
}

#[test]
fn a_shared_block_is_free_after_its_last_release() {
    let mut pool = BlockPool::new(1);
    let block = pool.take().unwrap();
    pool.hold(block);
    pool.release(block);
    assert_eq!((pool.ref_count(block), pool.take()), (1, None));
    pool.release(block);
    assert_eq!((pool.ref_count(block), pool.num_free()), (0, 1));
}

#[test]
#[should_panic(expected = "released twice")]
fn a_double_release_is_a_bug() {
    let mut pool = BlockPool::new(1);
    let block = pool.take().unwrap();
    pool.release(block);
    pool.release(block);
}

#[test]
#[should_panic(expected = "cannot be shared")]
fn a_free_block_cannot_be_shared() {
    BlockPool::new(1).hold(0);
}

#[test]
fn a_pool_check_sees_wrong_counts() {
    let mut pool = BlockPool::new(2);
    let block = pool.take().unwrap();
    assert_eq!(pool.check(&[1, 0]), Ok(()));
    assert!(pool.check(&[0, 0]).unwrap_err().contains("K1"));
    assert!(pool.check(&[2, 0]).unwrap_err().contains("K1"));
    pool.release(block);
    assert!(pool.check(&[1, 0]).is_err());
}

#[test]
fn growing_takes_blocks_only_at_borders_and_nothing_when_it_cannot() {
    let mut kv = KvManager::new(vec![FULL]);
    let id = kv.create();
    kv.grow(id, 1).unwrap();
    kv.grow(id, BLOCK_SIZE).unwrap();
    assert_eq!(kv.table(id, 0).blocks(), [0]);
    kv.grow(id, BLOCK_SIZE + 1).unwrap();
    assert_eq!(kv.table(id, 0).blocks(), [0, 1]);
    assert_eq!(kv.table(id, 0).slot(19), 19);
    assert_eq!(kv.reach(id), 160);
    assert_eq!(kv.grow(id, 161), None);
    assert_eq!(kv.table(id, 0).blocks(), [0, 1]);
    let stats = kv.stats()[0];
    assert_eq!((stats.num_blocks, stats.used, stats.free, stats.peak), (10, 2, 8, 2));
    kv.release(id);
    assert_eq!((kv.stats()[0].used, kv.stats()[0].peak, kv.num_sequences()), (0, 2, 0));
    kv.check().unwrap();
}

#[test]
fn all_groups_grow_or_none() {
    let mut kv = manager(10, Some((2, 8)));
    let id = kv.create();
    assert_eq!(kv.grow(id, 3 * BLOCK_SIZE), None);
    assert_eq!((kv.stats()[0].used, kv.stats()[1].used), (0, 0));
    kv.grow(id, 2 * BLOCK_SIZE).unwrap();
    assert_eq!((kv.stats()[0].used, kv.stats()[1].used), (2, 2));
}

#[test]
fn release_goes_from_the_tail() {
    let mut kv = KvManager::new(vec![FULL]);
    let id = kv.create();
    kv.grow(id, 10 * BLOCK_SIZE).unwrap();
    kv.release(id);
    let id = kv.create();
    kv.grow(id, 3 * BLOCK_SIZE).unwrap();
    assert_eq!(kv.table(id, 0).blocks(), [9, 8, 7]);
}

#[test]
fn a_window_lets_go_of_blocks_that_no_query_can_reach() {
    let mut kv = manager(10, Some((3, 20)));
    let id = kv.create();
    kv.grow(id, 3 * BLOCK_SIZE).unwrap();
    // The query at 34 sees 15..=34, the query at 35 sees 16..=35.
    kv.release_unreachable(id, 34);
    assert_eq!((kv.table(id, 1).num_released(), kv.table(id, 0).num_released()), (0, 0));
    kv.release_unreachable(id, 35);
    assert_eq!((kv.table(id, 1).num_released(), kv.table(id, 0).num_released()), (1, 0));
    assert_eq!((kv.stats()[0].used, kv.stats()[1].used), (3, 2));
    kv.grow(id, 4 * BLOCK_SIZE).unwrap();
    assert_eq!(kv.table(id, 1).blocks(), [0, 1, 2, 0]);
    assert_eq!(kv.table(id, 1).held(), [1, 2, 0]);
    kv.check().unwrap();
}

#[test]
#[should_panic(expected = "outside the table's blocks 1..3")]
fn a_slot_before_the_window_is_a_bug() {
    let mut kv = manager(10, Some((3, 20)));
    let id = kv.create();
    kv.grow(id, 3 * BLOCK_SIZE).unwrap();
    kv.release_unreachable(id, 35);
    kv.table(id, 1).slot(15);
}

#[test]
fn a_window_bounds_what_a_long_sequence_needs() {
    // A window of 17 positions touches two blocks at most, of 18 three.
    assert_eq!(manager(100, Some((2, 17))).longest_sequence(), 1600);
    assert_eq!(manager(100, Some((2, 18))).longest_sequence(), 32);
    assert!(manager(100, Some((2, 17))).admits(1600));
    assert!(!manager(100, Some((2, 18))).admits(33));
    // And it is enough: one token at a time up to the end of the full group.
    let mut kv = manager(20, Some((2, 17)));
    let id = kv.create();
    for position in 0..320 {
        kv.release_unreachable(id, position);
        kv.grow(id, position + 1).unwrap();
        kv.check().unwrap();
    }
}

#[test]
fn a_fork_shares_full_blocks_that_both_can_still_read() {
    let mut kv = manager(10, Some((10, 20)));
    let source = kv.create();
    kv.grow(source, 50).unwrap();
    let fork = kv.fork(source, 3).unwrap();
    assert_eq!(kv.fork(source, 4), None, "the fourth block is not full");
    kv.grow(fork, 49).unwrap();
    assert_eq!(kv.table(fork, 0).blocks(), [0, 1, 2, 4]);
    assert_eq!(kv.stats()[0].used, 5);
    kv.check().unwrap();
    kv.release_unreachable(source, 49);
    assert_eq!(kv.table(source, 1).num_released(), 1);
    assert_eq!(kv.fork(source, 2), None, "the query at 32 would see 13..=32");
    kv.release(source);
    kv.check().unwrap();
    assert_eq!(kv.stats()[0].used, 4);
    kv.release(fork);
    assert_eq!((kv.stats()[0].used, kv.stats()[1].used), (0, 0));
}

/// One random operation; indices are taken modulo what exists.
#[derive(Debug, Clone)]
enum Op {
    Create,
    Fork { sequence: usize, num_blocks: usize },
    Grow { sequence: usize, num_tokens: usize },
    Slide { sequence: usize, back: usize },
    Release { sequence: usize },
}

fn op() -> impl Strategy<Value = Op> {
    let sequence = any::<usize>();
    prop_oneof![
        2 => Just(Op::Create),
        1 => (sequence, 0..4_usize).prop_map(|(sequence, num_blocks)| Op::Fork { sequence, num_blocks }),
        6 => (sequence, 1..40_usize).prop_map(|(sequence, num_tokens)| Op::Grow { sequence, num_tokens }),
        3 => (sequence, 0..20_usize).prop_map(|(sequence, back)| Op::Slide { sequence, back }),
        2 => sequence.prop_map(|sequence| Op::Release { sequence }),
    ]
}

/// What a sequence should look like, kept the slow way.
#[derive(Debug, Clone)]
struct Naive {
    id: TableId,
    num_tokens: usize,
    /// First position that is still to be computed: earlier queries will not come.
    next: usize,
    /// Per group: the table when last seen; later ones must start with it.
    seen: Vec<Vec<u32>>,
}

impl Naive {
    /// Indices of blocks that are held, by definition: those with a position that a query from `next` on can see.
    fn held(&self, window: Option<usize>) -> Vec<usize> {
        let reachable = |position: usize| window.is_none_or(|window| position + window > self.next);
        (0..self.num_tokens.div_ceil(BLOCK_SIZE))
            .filter(|index| (index * BLOCK_SIZE..(index + 1) * BLOCK_SIZE).any(reachable))
            .collect()
    }
}

/// The manager next to its naive twin.
struct Pair {
    kv: KvManager,
    configs: Vec<GroupConfig>,
    live: Vec<Naive>,
}

impl Pair {
    fn new(configs: Vec<GroupConfig>) -> Self {
        Self { kv: KvManager::new(configs.clone()), configs, live: Vec::new() }
    }

    /// Blocks that are held in a group: the union over sequences.
    fn used(&self, group: usize) -> usize {
        let window = self.configs[group].window;
        let blocks = |naive: &Naive| {
            let table = self.kv.table(naive.id, group).blocks().to_vec();
            naive.held(window).into_iter().map(move |index| table[index]).collect::<Vec<_>>()
        };
        self.live.iter().flat_map(blocks).collect::<BTreeSet<_>>().len()
    }

    fn apply(&mut self, op: &Op) {
        let pick = |sequence: usize| (!self.live.is_empty()).then(|| sequence % self.live.len());
        match *op {
            Op::Create => {
                let id = self.kv.create();
                self.live.push(Naive { id, num_tokens: 0, next: 0, seen: vec![vec![]; self.configs.len()] });
            }
            Op::Fork { sequence, num_blocks } => {
                let Some(index) = pick(sequence) else { return };
                self.fork(index, num_blocks);
            }
            Op::Grow { sequence, num_tokens } => {
                let Some(index) = pick(sequence) else { return };
                self.grow(index, num_tokens);
            }
            Op::Slide { sequence, back } => {
                let Some(index) = pick(sequence) else { return };
                let naive = &mut self.live[index];
                naive.next = naive.next.max(naive.num_tokens.saturating_sub(back));
                self.kv.release_unreachable(naive.id, naive.next);
            }
            Op::Release { sequence } => {
                let Some(index) = pick(sequence) else { return };
                self.kv.release(self.live.remove(index).id);
            }
        }
    }

    fn fork(&mut self, index: usize, num_blocks: usize) {
        let source = self.live[index].clone();
        let next = num_blocks * BLOCK_SIZE;
        let fork = Naive { num_tokens: next, next, ..source.clone() };
        let can_read = |config: &GroupConfig| {
            let held = source.held(config.window);
            fork.held(config.window).iter().all(|block| held.contains(block))
        };
        let expected = next <= source.num_tokens && self.configs.iter().all(can_read);
        let id = self.kv.fork(source.id, num_blocks);
        assert_eq!(id.is_some(), expected);
        if let Some(id) = id {
            let seen = source.seen.iter().map(|table| table[..num_blocks].to_vec()).collect();
            self.live.push(Naive { id, seen, ..fork });
        }
    }

    fn grow(&mut self, index: usize, num_tokens: usize) {
        let naive = &self.live[index];
        let target = naive.num_tokens + num_tokens;
        let missing = target.div_ceil(BLOCK_SIZE) - naive.num_tokens.div_ceil(BLOCK_SIZE);
        let fits = |(group, config): (usize, &GroupConfig)| self.used(group) + missing <= config.num_blocks;
        let expected = self.configs.iter().enumerate().all(fits);
        assert_eq!(self.kv.grow(naive.id, target).is_some(), expected, "{target} tokens");
        if expected {
            self.live[index].num_tokens = target;
        }
    }

    /// Everything that can be seen from outside agrees with the naive twin.
    fn compare(&mut self) {
        self.kv.check().unwrap();
        assert_eq!(self.kv.num_sequences(), self.live.len());
        for (group, config) in self.configs.iter().enumerate() {
            assert_eq!(self.kv.stats()[group].used, self.used(group));
            // Slots that will be written belong to one sequence only (K2), written or not they never move (K8).
            let mut owners = BTreeMap::new();
            for naive in &mut self.live {
                let table = self.kv.table(naive.id, group);
                assert!(table.blocks().starts_with(&naive.seen[group]), "K8: entries changed");
                assert_eq!(table.held().len(), naive.held(config.window).len());
                naive.seen[group] = table.blocks().to_vec();
                if naive.num_tokens % BLOCK_SIZE != 0 && naive.next <= naive.num_tokens {
                    let slot = table.slot(naive.num_tokens - 1);
                    assert_eq!(owners.insert(slot, naive.id), None, "K2: two writers of one block");
                }
            }
        }
    }
}

proptest! {
    // 100 runs of 100 operations; `check()` and the comparison run after each.
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_agree_with_a_naive_model(
        full_blocks in 4..24_usize,
        sliding in proptest::option::of((3..12_usize, 1..50_usize)),
        ops in proptest::collection::vec(op(), 100),
    ) {
        let mut configs = vec![GroupConfig { num_blocks: full_blocks, window: None }];
        configs.extend(sliding.map(|(num_blocks, window)| GroupConfig { num_blocks, window: Some(window) }));
        let mut pair = Pair::new(configs);
        for op in &ops {
            pair.apply(op);
            pair.compare();
        }
        while let Some(naive) = pair.live.pop() {
            pair.kv.release(naive.id);
            pair.compare();
        }
        prop_assert!(pair.kv.stats().iter().all(|stats| stats.used == 0));
    }
}
