//! Who computes how many tokens in the next step.
//!
//! The rules, complete: (1) running sequences first, in order of arrival, each up to what is left of the step's
//! budget; (2) if one cannot grow, the last of the running ones is preempted: it lets go of its blocks and later
//! computes those again that the prefix cache has not kept; (3) then waiting ones are admitted, in order of arrival,
//! each starting behind what the cache has of it; (4) none in a step that preempted; (5) none while a running one is
//! computing its next block; (6) pinned blocks are given up only for a sequence that runs alone. The oldest sequence
//! therefore always moves on, and what fits alone is always finished.

use std::collections::VecDeque;
use std::rc::Rc;

use super::RequestId;
use super::sequence::Sequence;
use crate::kv::{BLOCK_SIZE, Hit, KvManager, TableId};
use crate::model::BatchLimits;

/// A sequence that has block tables.
pub(super) struct Running {
    pub(super) sequence: Sequence,
    pub(super) table: TableId,
    /// Tokens whose keys and values are in the cache.
    pub(super) num_computed: usize,
}

/// One running sequence's part of a step: its tokens `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Index among the running sequences.
    pub(super) index: usize,
    /// First position to compute.
    pub(super) start: usize,
    /// One past the last.
    pub(super) end: usize,
    /// Whether the part ends the sequence, so that the next token is drawn.
    pub(super) samples: bool,
}

/// What is left of a step.
struct Room {
    tokens: usize,
    sequences: usize,
    rows: usize,
    edits: usize,
    copies: usize,
}

/// How a sequence leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    /// What it computed stays in the cache.
    Finished,
    /// What it computed cannot be trusted.
    Failed,
}

/// The queues.
#[derive(Default)]
pub(super) struct Scheduler {
    /// In order of arrival.
    waiting: VecDeque<Sequence>,
    /// In order of arrival, all of it before `waiting`.
    running: Vec<Running>,
    /// Sequences that run at once, at most.
    max_running: usize,
    pub(super) num_preemptions: u64,
}

impl Scheduler {
    pub(super) fn new(max_running: usize) -> Self {
        Self { max_running, ..Self::default() }
    }

    pub(super) fn add(&mut self, sequence: Sequence) {
        self.waiting.push_back(sequence);
    }

    pub(super) fn num_waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn running(&self) -> &[Running] {
        &self.running
    }

    pub(super) fn running_mut(&mut self) -> &mut [Running] {
        &mut self.running
    }

    /// Plans a step and takes the blocks it needs. Empty only if there is no sequence.
    pub(super) fn schedule(&mut self, kv: &mut KvManager, limits: &BatchLimits) -> Vec<Part> {
        let mut room = Room {
            tokens: limits.max_tokens,
            sequences: limits.max_sequences,
            rows: limits.max_rows,
            edits: limits.max_edits,
            copies: limits.max_copies,
        };
        let mut plan = Vec::new();
        let num_preemptions = self.num_preemptions;
        let mut index = 0;
        while index < self.running.len() && room.tokens > 0 && room.sequences > 0 {
            self.make_reach(index, kv);
            if index < self.running.len() {
                plan.extend(self.place(index, kv, &mut room));
            }
            index += 1;
        }
        while self.num_preemptions == num_preemptions && self.admit(kv, &room, limits) {
            plan.extend(self.place(self.running.len() - 1, kv, &mut room));
        }
        plan
    }

    /// Preempts from the end until the sequence at `index` can grow by a token, or is preempted itself.
    fn make_reach(&mut self, index: usize, kv: &mut KvManager) {
        while let Some(running) = self.running.get(index)
            && kv.reach_with(running.table, self.running.len() == 1) <= running.num_computed
            && let Some(last) = self.running.pop()
        {
            kv.finish(last.table, last.sequence.tokens(), last.num_computed);
            self.waiting.push_front(last.sequence);
            self.num_preemptions += 1;
        }
    }

    /// Gives the sequence at `index` what the step has left for it and grows its tables.
    fn place(&mut self, index: usize, kv: &mut KvManager, room: &mut Room) -> Option<Part> {
        let Running { sequence, table, num_computed: start } = &self.running[index];
        let (len, start) = (sequence.tokens().len(), *start);
        let end = len.min(start + room.tokens).min(kv.reach_with(*table, self.running.len() == 1));
        let samples = end == len && !sequence.is_prefill_only;
        let num_copies = kv.num_copies(*table);
        let num_edits = if samples { sequence.edits.len() } else { 0 };
        let has_rows = room.rows >= usize::from(samples) && room.edits >= num_edits && room.copies >= num_copies;
        if end <= start || room.sequences == 0 || !has_rows {
            return None;
        }
        kv.grow(*table, end)?;
        room.tokens -= end - start;
        room.sequences -= 1;
        room.rows -= usize::from(samples);
        room.edits -= num_edits;
        room.copies -= num_copies;
        Some(Part { index, start, end, samples })
    }

    /// Moves the first waiting sequence to the running ones if the step and the pools have room for it.
    fn admit(&mut self, kv: &mut KvManager, room: &Room, limits: &BatchLimits) -> bool {
        let has_room = room.tokens > 0 && room.sequences > 0 && self.running.len() < self.max_running;
        let Some(sequence) = self.waiting.front().filter(|_| has_room) else {
            return false;
        };
        let hit = sequence.caching.as_ref().map(|(salt, _)| kv.find(salt, sequence.tokens()));
        if hit.as_ref().is_some_and(|hit| self.is_being_computed(sequence, hit)) {
            return false;
        }
        let Some(hit) = self.fit(sequence.tokens().len(), hit.unwrap_or_default(), kv, limits) else {
            return false;
        };
        let Some(mut sequence) = self.waiting.pop_front() else {
            return false;
        };
        let table = match &sequence.caching {
            Some((salt, retention)) => kv.start(salt, &hit, sequence.tokens().len(), Rc::clone(retention)),
            None => kv.create(),
        };
        sequence.note_hit(sequence.caching.is_some().then_some(&hit));
        self.running.push(Running { sequence, table, num_computed: hit.num_tokens() });
        true
    }

    /// The hit if a sequence of `num_tokens` fits with it: with all of its blocks, not only those of its first part, or it would soon
    /// be preempted again. Rows are only copied if there is room for their source as well.
    pub(super) fn fit(&self, num_tokens: usize, hit: Hit, kv: &KvManager, limits: &BatchLimits) -> Option<Hit> {
        let fits = |hit: &Hit| kv.admits_hit(hit, num_tokens, self.running.is_empty());
        if hit.num_rows() * kv.num_groups() <= limits.max_copies && fits(&hit) {
            return Some(hit);
        }
        Some(kv.without_tail(hit)).filter(fits)
    }

    /// Whether a running sequence will soon have the block that would make the hit longer.
    fn is_being_computed(&self, sequence: &Sequence, hit: &Hit) -> bool {
        let end = (hit.num_tokens() / BLOCK_SIZE + 1) * BLOCK_SIZE;
        let salt = |sequence: &Sequence| sequence.caching.as_ref().map(|(salt, _)| salt.clone());
        let Some(wanted) = sequence.tokens().get(..end).filter(|_| end < sequence.tokens().len()) else {
            return false;
        };
        let computes = |running: &Running| {
            running.num_computed < end
                && running.sequence.tokens().get(..end) == Some(wanted)
                && salt(&running.sequence) == salt(sequence)
        };
        self.running.iter().any(computes)
    }

    /// Takes a sequence out, wherever it is, and lets go of its blocks.
    pub(super) fn remove(&mut self, id: RequestId, kv: &mut KvManager, leaving: Leaving) -> Option<Sequence> {
        if let Some(index) = self.running.iter().position(|running| running.sequence.id == id) {
            let Running { mut sequence, table, num_computed } = self.running.remove(index);
            match leaving {
                Leaving::Finished => sequence.written_tokens += kv.finish(table, sequence.tokens(), num_computed),
                Leaving::Failed => kv.discard(table),
            }
            return Some(sequence);
        }
        let index = self.waiting.iter().position(|sequence| sequence.id == id)?;
        self.waiting.remove(index)
    }

    /// The ids of all sequences, in order of arrival.
    pub(super) fn ids(&self) -> Vec<RequestId> {
        let running = self.running.iter().map(|running| running.sequence.id);
        running.chain(self.waiting.iter().map(|sequence| sequence.id)).collect()
    }
}
