//! How waiting sequences come to run: what the cache has of them, and whether they fit.

use std::rc::Rc;

use super::RequestId;
use super::queue::Rank;
use super::running::Running;
use super::scheduler::{Batching, Plan, Room, Scheduler, Turn};
use super::sequence::Sequence;
use crate::kv::{BLOCK_SIZE, Hit, KvManager, TableId};
use crate::model::BatchLimits;

/// Waiting sequences that are passed over in a step because what they need is being computed.
const MAX_PASSED_OVER: usize = 8;

impl Scheduler {
    /// Moves waiting sequences to the running ones, as far as the step and the pools have room for them.
    pub(super) fn admit_all(
        &mut self,
        kv: &mut KvManager,
        room: &mut Room,
        limits: &BatchLimits,
        plan: &mut Plan,
        turn: Turn,
    ) {
        let mut passed_over = Vec::new();
        while let Some(sequence) = self.waiting.after(passed_over.last().copied())
            && self.num_slots() > 0
            && self.has_room(room)
        {
            let hit = find(sequence, kv);
            if self.is_being_computed(sequence, &hit) {
                if passed_over.len() == MAX_PASSED_OVER {
                    return;
                }
                passed_over.push(sequence.rank);
                continue;
            }
            let Some(hit) = self.fit(sequence, hit, kv, limits) else { return };
            let rank = sequence.rank;
            self.admit(rank, &hit, kv);
            self.place(self.running.len() - 1, kv, room, plan, turn);
        }
    }

    /// Whether the step has room for another sequence. A static batch is filled though its prompts wait for later steps.
    fn has_room(&self, room: &Room) -> bool {
        self.rules.batching == Batching::Static || (room.tokens > 0 && room.sequences > 0)
    }

    /// Moves a waiting sequence to the running ones.
    fn admit(&mut self, rank: Rank, hit: &Hit, kv: &mut KvManager) {
        if let Some(sequence) = self.waiting.take(rank) {
            self.start(sequence, hit, kv);
        }
    }

    /// Lets a sequence run behind what the cache has of it.
    fn start(&mut self, mut sequence: Sequence, hit: &Hit, kv: &mut KvManager) {
        let table = match &sequence.caching {
            Some((salt, retention)) => kv.start(salt, hit, sequence.tokens().len(), Rc::clone(retention)),
            None => kv.create(),
        };
        sequence.note_hit(sequence.caching.is_some().then_some(hit));
        self.running.push(Running::new(sequence, table, hit.num_tokens()));
    }

    /// Parts choices, whose prompt is computed and who have a first token each, from each other, as far as they are still
    /// there. The prompt's last block goes to the cache, and all of them go on from there with a copy of its rows; those
    /// that find no place wait.
    pub(super) fn part_choices(&mut self, ids: &[RequestId], kv: &mut KvManager, limits: &BatchLimits) {
        let is_one = |running: &Running| ids.contains(&running.sequence.id) && !running.sequence.choices.is_empty();
        let Some(index) = self.running.iter().position(is_one) else { return };
        let Running { mut sequence, table, num_computed, .. } = self.running.remove(index);
        if sequence.caching.is_none() {
            return self.part_uncached(sequence, table, num_computed, kv);
        }
        sequence.written_tokens += kv.finish(table, sequence.tokens(), num_computed);
        let choices = std::mem::take(&mut sequence.choices);
        for sequence in std::iter::once(sequence).chain(choices) {
            let hit = find(&sequence, kv);
            match self.fit(&sequence, hit, kv, limits).filter(|_| self.num_slots() > 0) {
                Some(hit) => self.start(sequence, &hit, kv),
                None => self.waiting.push(sequence),
            }
        }
    }

    /// Parts choices that leave nothing in the cache: the first goes on where it is, the others hold the prompt's full blocks
    /// as well and compute what lies behind them for themselves.
    fn part_uncached(&mut self, mut sequence: Sequence, table: TableId, num_computed: usize, kv: &mut KvManager) {
        let choices = std::mem::take(&mut sequence.choices);
        self.running.push(Running::new(sequence, table, num_computed));
        let num_blocks = num_computed / BLOCK_SIZE;
        for choice in choices {
            let place = if self.num_slots() > 0 { kv.fork(table, num_blocks) } else { None };
            match place {
                Some(place) if kv.reach_with(place, false) >= choice.tokens().len() => {
                    self.running.push(Running::new(choice, place, num_blocks * BLOCK_SIZE));
                }
                Some(place) => {
                    kv.release(place);
                    self.waiting.push(choice);
                }
                None => self.waiting.push(choice),
            }
        }
    }

    /// The hit if the sequence fits with it.
    pub(super) fn fit(&self, sequence: &Sequence, hit: Hit, kv: &KvManager, limits: &BatchLimits) -> Option<Hit> {
        self.fit_tokens(sequence.tokens().len(), hit, kv, limits)
    }

    /// The hit if a sequence of `num_tokens` fits with it: with all of its blocks, not only those of its first part, or it
    /// would soon be preempted again. Rows are only copied if there is room for their source as well.
    pub(super) fn fit_tokens(&self, num_tokens: usize, hit: Hit, kv: &KvManager, limits: &BatchLimits) -> Option<Hit> {
        let fits = |hit: &Hit| kv.admits_hit(hit, num_tokens, self.running.is_empty());
        if hit.num_rows() * kv.num_groups() <= limits.max_copies && fits(&hit) {
            return Some(hit);
        }
        Some(kv.without_tail(hit)).filter(fits)
    }

    /// Whether a running sequence will soon have the block that would make the hit longer.
    pub(super) fn is_being_computed(&self, sequence: &Sequence, hit: &Hit) -> bool {
        let end = (hit.num_tokens() / BLOCK_SIZE + 1) * BLOCK_SIZE;
        let Some((salt, _)) = &sequence.caching else { return false };
        let Some(wanted) = sequence.tokens().get(..end).filter(|_| end < sequence.tokens().len()) else {
            return false;
        };
        let computes = |running: &Running| {
            running.num_computed < end
                && running.sequence.tokens().get(..end) == Some(wanted)
                && running.sequence.caching.as_ref().is_some_and(|(other, _)| other == salt)
        };
        self.running.iter().any(computes)
    }
}

/// What the cache has of a sequence.
pub(super) fn find(sequence: &Sequence, kv: &KvManager) -> Hit {
    sequence.caching.as_ref().map_or_else(Hit::default, |(salt, _)| kv.find(salt, sequence.tokens()))
}
