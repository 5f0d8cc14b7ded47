//! Who computes how many tokens in the next step.
//!
//! The rules, complete: (1) running sequences first, in order of arrival, each up to what is left of the step's
//! budget; (2) if one cannot grow, the last of the running ones is preempted: it lets go of its blocks and is
//! computed again later; (3) then waiting ones are admitted, in order of arrival; (4) none in a step that preempted.
//! The oldest sequence therefore always moves on, and what fits alone is always finished.

use std::collections::VecDeque;

use super::RequestId;
use super::sequence::Sequence;
use crate::kv::{KvManager, TableId};
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
        while self.num_preemptions == num_preemptions && self.admit(kv, &room) {
            plan.extend(self.place(self.running.len() - 1, kv, &mut room));
        }
        plan
    }

    /// Preempts from the end until the sequence at `index` can grow by a token, or is preempted itself.
    fn make_reach(&mut self, index: usize, kv: &mut KvManager) {
        while let Some(running) = self.running.get(index)
            && kv.reach(running.table) <= running.num_computed
            && let Some(last) = self.running.pop()
        {
            kv.release(last.table);
            self.waiting.push_front(last.sequence);
            self.num_preemptions += 1;
        }
    }

    /// Gives the sequence at `index` what the step has left for it and grows its tables.
    fn place(&mut self, index: usize, kv: &mut KvManager, room: &mut Room) -> Option<Part> {
        let Running { sequence, table, num_computed: start } = &self.running[index];
        let (len, start) = (sequence.tokens().len(), *start);
        let end = len.min(start + room.tokens).min(kv.reach(*table));
        let samples = end == len;
        let num_edits = if samples { sequence.edits.len() } else { 0 };
        if end <= start || room.sequences == 0 || room.rows < usize::from(samples) || room.edits < num_edits {
            return None;
        }
        kv.grow(*table, end)?;
        room.tokens -= end - start;
        room.sequences -= 1;
        room.rows -= usize::from(samples);
        room.edits -= num_edits;
        Some(Part { index, start, end, samples })
    }

    /// Moves the first waiting sequence to the running ones if the step and the pools have room for it.
    fn admit(&mut self, kv: &mut KvManager, room: &Room) -> bool {
        let has_room = room.tokens > 0 && room.sequences > 0 && self.running.len() < self.max_running;
        // All of its blocks, not only those of its first part: or it would soon be preempted again.
        let fits = |sequence: &mut Sequence| has_room && kv.admits(sequence.tokens().len());
        let Some(sequence) = self.waiting.pop_front_if(fits) else {
            return false;
        };
        self.running.push(Running { sequence, table: kv.create(), num_computed: 0 });
        true
    }

    /// Takes a sequence out, wherever it is, and frees its blocks.
    pub(super) fn remove(&mut self, id: RequestId, kv: &mut KvManager) -> Option<Sequence> {
        if let Some(index) = self.running.iter().position(|running| running.sequence.id == id) {
            let running = self.running.remove(index);
            kv.release(running.table);
            return Some(running.sequence);
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
