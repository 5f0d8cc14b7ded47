//! Who waits, in the order in which they will be served.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::RequestId;
use super::sequence::Sequence;

/// A sequence's place among all others, waiting or running: the first goes first.
///
/// It is the time of arrival, moved back by a fixed time for each level of priority. A level is therefore a head start:
/// whoever waits long enough comes before every later arrival, whatever its priority, and the order of two sequences never
/// changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    due_us: i64,
    id: RequestId,
}

impl Rank {
    pub(super) fn new(id: RequestId, arrived_ms: f64, priority: i32, priority_step_ms: f64) -> Self {
        Self { due_us: whole_us(arrived_ms - f64::from(priority) * priority_step_ms), id }
    }

    /// The place right behind, of another choice of the same request.
    pub(super) fn of(self, id: RequestId) -> Self {
        Self { id, ..self }
    }
}

/// Waiting sequences.
#[derive(Default)]
pub(super) struct Queue {
    sequences: BTreeMap<Rank, Sequence>,
    /// When each that has a deadline must be given up.
    expiries: BTreeSet<(i64, Rank)>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.sequences.len()
    }

    pub(super) fn push(&mut self, sequence: Sequence) {
        self.expiries.extend(expiry(&sequence));
        self.sequences.insert(sequence.rank, sequence);
    }

    pub(super) fn first(&self) -> Option<&Sequence> {
        self.sequences.values().next()
    }

    /// The first behind `rank`; the first of all behind none.
    pub(super) fn after(&self, rank: Option<Rank>) -> Option<&Sequence> {
        let start = rank.map_or(Bound::Unbounded, Bound::Excluded);
        self.sequences.range((start, Bound::Unbounded)).next().map(|(_, sequence)| sequence)
    }

    pub(super) fn get(&self, rank: Rank) -> Option<&Sequence> {
        self.sequences.get(&rank)
    }

    pub(super) fn take(&mut self, rank: Rank) -> Option<Sequence> {
        let sequence = self.sequences.remove(&rank)?;
        if let Some(expiry) = expiry(&sequence) {
            self.expiries.remove(&expiry);
        }
        Some(sequence)
    }

    /// Sequences in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Sequence> {
        self.sequences.values()
    }

    /// Sequences in order. Ranks and deadlines stay as they are.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sequence> {
        self.sequences.values_mut()
    }

    /// The ranks of those whose deadline has passed.
    pub(super) fn expired(&self, now_ms: f64) -> Vec<Rank> {
        let now_us = whole_us(now_ms);
        self.expiries.iter().take_while(|(at_us, _)| *at_us <= now_us).map(|&(_, rank)| rank).collect()
    }
}

fn expiry(sequence: &Sequence) -> Option<(i64, Rank)> {
    Some((whole_us(sequence.deadline()?.at_ms), sequence.rank))
}

/// A time as the order counts: whole microseconds.
#[expect(clippy::cast_possible_truncation, reason = "a float beyond the range saturates")]
fn whole_us(ms: f64) -> i64 {
    (ms * 1000.0).round() as i64
}
