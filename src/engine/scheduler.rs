//! Who computes how many tokens in the next step.
//!
//! The rules, complete. All sequences have one order ([`super::queue::Rank`]: arrival, less a head start for priority), and
//! in it
//! (1) running ones are served first, each up to what is left of the step's budget;
//! (2) if one cannot grow, the last of the running ones is preempted: it lets go of its blocks and later computes those
//!     again that the prefix cache has not kept;
//! (3) then waiting ones are admitted, each starting behind what the cache has of it;
//! (4) none in a step that preempted for growth;
//! (5) one whose next block a running sequence is computing is passed over, a few of them at most;
//! (6) pinned blocks are given up only for a sequence that runs alone;
//! (7) a waiting one that lacks a place preempts those that come after it in the order.
//! The first in the order therefore always moves on, what fits alone is always finished, and nobody starves: only those
//! who arrived within the head start can come before one who waits.
//!
//! A step may be planned while others are in flight ([`Turn::is_ahead`]). The rules are the same, and a sequence then counts
//! as long as it will be once they are collected; whose next token only a step in flight knows can go on in the step right
//! behind that one, where the device finds it. Nobody is preempted meanwhile: whatever is in flight is collected first.
//!
//! [`Batching`] and [`Rules::chunked_prefill`] bend the rules, for comparison and teaching.

use super::RequestId;
use super::admission::find;
use super::batch::narrow;
use super::queue::Queue;
use super::running::Running;
use super::sequence::Sequence;
use crate::kv::{KvManager, TableId};
use crate::model::BatchLimits;

/// When waiting requests join those that run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Batching {
    /// In every step that has room.
    #[default]
    Continuous,
    /// When nothing runs: a batch is filled, and computed until its last answer ends.
    Static,
    /// One at a time.
    None,
}

/// How the scheduler works.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) batching: Batching,
    /// Whether a step mixes parts of prompts with answers. Otherwise prompts are computed first and whole, as far as a
    /// batch takes them, and answers stand still meanwhile.
    pub(super) chunked_prefill: bool,
    /// Sequences that run at once, at most.
    pub(super) max_running: usize,
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
    /// Whether the part ends the sequence, so that the next token is drawn: one for each of its choices.
    pub(super) samples: bool,
}

/// What a step computes.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    /// Who lost its blocks.
    pub(super) preempted: Vec<RequestId>,
}

/// Which step is planned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// Its number among all that were submitted.
    pub(super) number: u64,
    /// Whether others are in flight.
    pub(super) is_ahead: bool,
}

/// What is left of a step.
pub(super) struct Room {
    pub(super) tokens: usize,
    pub(super) sequences: usize,
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
pub(super) struct Scheduler {
    pub(super) rules: Rules,
    pub(super) waiting: Queue,
    /// In order, when a step is planned; whoever joins later in the step comes last.
    pub(super) running: Vec<Running>,
    pub(super) num_preemptions: u64,
}

impl Scheduler {
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, waiting: Queue::default(), running: Vec::new(), num_preemptions: 0 }
    }

    pub(super) fn waiting(&self) -> &Queue {
        &self.waiting
    }

    pub(super) fn waiting_mut(&mut self) -> &mut Queue {
        &mut self.waiting
    }

    pub(super) fn running(&self) -> &[Running] {
        &self.running
    }

    pub(super) fn running_mut(&mut self) -> &mut [Running] {
        &mut self.running
    }

    /// The running sequence that has a table. `index` is where it was when the step was planned.
    pub(super) fn holder_mut(&mut self, table: TableId, index: usize) -> Option<&mut Running> {
        let is_there = self.running.get(index).is_some_and(|running| running.table == table);
        let index = if is_there { index } else { self.running.iter().position(|running| running.table == table)? };
        self.running.get_mut(index)
    }

    /// Takes note that step `number` was submitted, with its parts in order.
    pub(super) fn note_submitted(&mut self, number: u64, parts: &[Part]) {
        let mut row = 0;
        for part in parts {
            let running = &mut self.running[part.index];
            running.note_submitted(number, part.end, part.samples.then_some(row));
            row += if part.samples { narrow(1 + running.sequence.choices.len()) } else { 0 };
        }
    }

    /// Forgets what is in flight: it is computed again.
    pub(super) fn forget_submitted(&mut self) {
        self.running.iter_mut().for_each(Running::forget_submitted);
    }

    /// Sequences that could run now beside those that do.
    pub(super) fn num_slots(&self) -> usize {
        self.rules.max_running.saturating_sub(self.running.len())
    }

    /// Of these, slots that a request which comes now gets in the next step.
    pub(super) fn num_open_slots(&self) -> usize {
        if self.rules.batching == Batching::Static && !self.running.is_empty() { 0 } else { self.num_slots() }
    }

    /// Whether a sequence is there and was computed on.
    pub(super) fn has_started(&self, id: RequestId) -> bool {
        let running = self.running.iter().map(|running| &running.sequence);
        let mut all = running.chain(self.waiting.iter());
        all.find(|sequence| sequence.ids().any(|other| other == id)).is_some_and(|found| found.clock.has_started())
    }

    /// Plans a step of `budget` tokens and takes the blocks it needs. Empty only if there is no sequence, or if what is in
    /// flight must be collected first.
    pub(super) fn schedule(&mut self, kv: &mut KvManager, limits: &BatchLimits, budget: usize, turn: Turn) -> Plan {
        let mut plan = Plan::default();
        if !self.fill(&mut plan, kv, limits, budget, turn) {
            // Tables may have grown; they will not again.
            return Plan::default();
        }
        self.num_preemptions += plan.preempted.len() as u64;
        plan
    }

    /// Plans a step; false if somebody would have to be preempted while steps are in flight.
    fn fill(&mut self, plan: &mut Plan, kv: &mut KvManager, limits: &BatchLimits, budget: usize, turn: Turn) -> bool {
        let mut room = Room {
            tokens: if self.rules.chunked_prefill { budget } else { limits.max_tokens },
            sequences: limits.max_sequences,
            rows: limits.max_rows,
            edits: limits.max_edits,
            copies: limits.max_copies,
        };
        self.running.sort_by_key(|running| running.sequence.rank);
        let is_open = self.rules.batching != Batching::Static || self.running.is_empty();
        if !self.displace(kv, limits, plan, turn) {
            return false;
        }
        let num_displaced = plan.preempted.len();
        let is_chunked = self.rules.chunked_prefill;
        if !self.place_all(kv, &mut room, plan, turn, |running| is_chunked || running.is_prefilling()) {
            return false;
        }
        if is_open && plan.preempted.len() == num_displaced {
            self.admit_all(kv, &mut room, limits, plan, turn);
        }
        if plan.parts.is_empty() && !is_chunked {
            self.running.sort_by_key(|running| running.sequence.rank);
            return self.place_all(kv, &mut room, plan, turn, |_| true);
        }
        true
    }

    /// Rule 7. False if it must wait for steps in flight.
    fn displace(&mut self, kv: &mut KvManager, limits: &BatchLimits, plan: &mut Plan, turn: Turn) -> bool {
        while let (Some(first), Some(last)) = (self.waiting.first(), self.running.last())
            && self.rules.batching == Batching::Continuous
            && first.rank < last.sequence.rank
        {
            let hit = find(first, kv);
            if self.is_being_computed(first, &hit) || self.num_slots() > 0 && self.fit(first, hit, kv, limits).is_some()
            {
                break;
            }
            if turn.is_ahead {
                return false;
            }
            self.preempt_last(kv, plan);
        }
        true
    }

    /// Takes the blocks of the last running sequence away.
    fn preempt_last(&mut self, kv: &mut KvManager, plan: &mut Plan) {
        if let Some(last) = self.running.pop() {
            debug_assert!(!last.is_in_flight(), "what a step in flight writes is not given up");
            kv.finish(last.table, last.sequence.tokens(), last.num_computed);
            plan.preempted.push(last.sequence.id);
            self.waiting.push(last.sequence);
        }
    }

    /// Gives running sequences what the step has for them, in order. False if one must wait for steps in flight.
    fn place_all(
        &mut self,
        kv: &mut KvManager,
        room: &mut Room,
        plan: &mut Plan,
        turn: Turn,
        is_meant: impl Fn(&Running) -> bool,
    ) -> bool {
        let mut index = 0;
        while index < self.running.len() && room.tokens > 0 && room.sequences > 0 {
            let running = &self.running[index];
            if running.can_go_on(turn.number) && is_meant(running) {
                if !self.make_reach(index, kv, plan, turn) {
                    return false;
                }
                if index < self.running.len() {
                    self.place(index, kv, room, plan, turn);
                }
            }
            index += 1;
        }
        true
    }

    /// Preempts from the end until the sequence at `index` can grow by a token, or is preempted itself. False if it must
    /// wait for steps in flight.
    fn make_reach(&mut self, index: usize, kv: &mut KvManager, plan: &mut Plan, turn: Turn) -> bool {
        while let Some(running) = self.running.get(index)
            && kv.reach_with(running.table, self.running.len() == 1) <= running.num_submitted
        {
            if turn.is_ahead {
                return false;
            }
            self.preempt_last(kv, plan);
        }
        true
    }

    /// Gives the sequence at `index` what the step has left for it and grows its tables.
    pub(super) fn place(&mut self, index: usize, kv: &mut KvManager, room: &mut Room, plan: &mut Plan, turn: Turn) {
        let running = &self.running[index];
        if !running.can_go_on(turn.number) {
            return;
        }
        let Running { sequence, table, num_submitted: start, .. } = running;
        let (len, start) = (running.len(), *start);
        let end = len.min(start + room.tokens).min(kv.reach_with(*table, self.running.len() == 1));
        if end < len && !self.rules.chunked_prefill && !plan.parts.is_empty() {
            // It would not be whole: the next step begins with it.
            return;
        }
        let samples = end == len && !sequence.is_prefill_only;
        let num_rows = if samples { 1 + sequence.choices.len() } else { 0 };
        let num_edits = if samples { sequence.num_edits() } else { 0 };
        // A step in flight makes them.
        let num_copies = if running.is_in_flight() { 0 } else { kv.num_copies(*table) };
        let has_rows = room.rows >= num_rows && room.edits >= num_edits && room.copies >= num_copies;
        if end <= start || room.sequences == 0 || !has_rows || kv.grow(*table, end).is_none() {
            return;
        }
        room.tokens -= end - start;
        room.sequences -= 1;
        room.rows -= num_rows;
        room.edits -= num_edits;
        room.copies -= num_copies;
        plan.parts.push(Part { index, start, end, samples });
    }

    /// Takes a sequence out, wherever it is, and lets go of its blocks. Choices that share its prompt stay.
    pub(super) fn remove(&mut self, id: RequestId, kv: &mut KvManager, leaving: Leaving) -> Option<Sequence> {
        if let Some(index) = self.running.iter().position(|running| running.sequence.ids().any(|other| other == id)) {
            if let Some(choice) = self.running[index].sequence.split_off(id) {
                self.running[index].forget_row();
                return Some(choice);
            }
            let Running { mut sequence, table, num_computed, .. } = self.running.remove(index);
            match leaving {
                Leaving::Finished => sequence.written_tokens += kv.finish(table, sequence.tokens(), num_computed),
                Leaving::Failed => kv.discard(table),
            }
            return Some(sequence);
        }
        let rank = self.waiting.iter().find(|sequence| sequence.ids().any(|other| other == id))?.rank;
        let mut sequence = self.waiting.take(rank)?;
        let Some(choice) = sequence.split_off(id) else { return Some(sequence) };
        self.waiting.push(sequence);
        Some(choice)
    }

    /// The ids of all sequences, in order.
    pub(super) fn ids(&self) -> Vec<RequestId> {
        let running = self.running.iter().map(|running| &running.sequence);
        running.chain(self.waiting.iter()).flat_map(Sequence::ids).collect()
    }

    /// The ids of those whose deadline has passed, with why.
    pub(super) fn expired(&self, now_ms: f64) -> Vec<(RequestId, crate::Error)> {
        let ranks = self.waiting.expired(now_ms);
        let waiting = ranks.iter().filter_map(|&rank| self.waiting.get(rank));
        let running = self.running.iter().map(|running| &running.sequence);
        let late = |sequence: &Sequence| sequence.deadline().filter(|deadline| deadline.at_ms <= now_ms);
        let both = running.chain(waiting).filter_map(|sequence| Some((sequence, late(sequence)?)));
        both.flat_map(|(sequence, deadline)| sequence.ids().map(move |id| (id, deadline.error()))).collect()
    }
}
