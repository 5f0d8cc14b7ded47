//! Who computes how many tokens in the next step.
//!
//! The rules, complete. All sequences have one order ([`Rank`]: arrival, less a head start for priority), and in it
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
//! [`Batching`] and [`Rules::chunked_prefill`] bend the rules, for comparison and teaching.

use std::rc::Rc;

use super::RequestId;
use super::queue::{Queue, Rank};
use super::sequence::Sequence;
use crate::kv::{BLOCK_SIZE, Hit, KvManager, TableId};
use crate::model::BatchLimits;

/// Waiting sequences that are passed over in a step because what they need is being computed.
const MAX_PASSED_OVER: usize = 8;

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

/// A sequence that has block tables.
pub(super) struct Running {
    pub(super) sequence: Sequence,
    pub(super) table: TableId,
    /// Tokens whose keys and values are in the cache.
    pub(super) num_computed: usize,
}

impl Running {
    /// Whether more than its last token is to be computed.
    fn is_prefilling(&self) -> bool {
        self.sequence.tokens().len() - self.num_computed > 1
    }
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
pub(super) struct Scheduler {
    rules: Rules,
    waiting: Queue,
    /// In order, when a step is planned; whoever joins later in the step comes last.
    running: Vec<Running>,
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

    /// Plans a step of `budget` tokens and takes the blocks it needs. Empty only if there is no sequence.
    pub(super) fn schedule(&mut self, kv: &mut KvManager, limits: &BatchLimits, budget: usize) -> Plan {
        let mut room = Room {
            tokens: if self.rules.chunked_prefill { budget } else { limits.max_tokens },
            sequences: limits.max_sequences,
            rows: limits.max_rows,
            edits: limits.max_edits,
            copies: limits.max_copies,
        };
        let mut plan = Plan::default();
        self.running.sort_by_key(|running| running.sequence.rank);
        let is_open = self.rules.batching != Batching::Static || self.running.is_empty();
        self.displace(kv, limits, &mut plan);
        let num_displaced = plan.preempted.len();
        if self.rules.chunked_prefill {
            self.place_all(kv, &mut room, &mut plan, |_| true);
        } else {
            self.place_all(kv, &mut room, &mut plan, Running::is_prefilling);
        }
        if is_open && plan.preempted.len() == num_displaced {
            self.admit_all(kv, &mut room, limits, &mut plan);
        }
        if plan.parts.is_empty() && !self.rules.chunked_prefill {
            self.running.sort_by_key(|running| running.sequence.rank);
            self.place_all(kv, &mut room, &mut plan, |_| true);
        }
        self.num_preemptions += plan.preempted.len() as u64;
        plan
    }

    /// Rule 7.
    fn displace(&mut self, kv: &mut KvManager, limits: &BatchLimits, plan: &mut Plan) {
        while let (Some(first), Some(last)) = (self.waiting.first(), self.running.last())
            && self.rules.batching == Batching::Continuous
            && first.rank < last.sequence.rank
        {
            let hit = find(first, kv);
            if self.is_being_computed(first, &hit) || self.num_slots() > 0 && self.fit(first, hit, kv, limits).is_some()
            {
                break;
            }
            self.preempt_last(kv, plan);
        }
    }

    /// Takes the blocks of the last running sequence away.
    fn preempt_last(&mut self, kv: &mut KvManager, plan: &mut Plan) {
        if let Some(last) = self.running.pop() {
            kv.finish(last.table, last.sequence.tokens(), last.num_computed);
            plan.preempted.push(last.sequence.id);
            self.waiting.push(last.sequence);
        }
    }

    /// Gives running sequences what the step has for them, in order.
    fn place_all(&mut self, kv: &mut KvManager, room: &mut Room, plan: &mut Plan, is_meant: impl Fn(&Running) -> bool) {
        let mut index = 0;
        while index < self.running.len() && room.tokens > 0 && room.sequences > 0 {
            if is_meant(&self.running[index]) {
                self.make_reach(index, kv, plan);
                if index < self.running.len() {
                    self.place(index, kv, room, plan);
                }
            }
            index += 1;
        }
    }

    /// Preempts from the end until the sequence at `index` can grow by a token, or is preempted itself.
    fn make_reach(&mut self, index: usize, kv: &mut KvManager, plan: &mut Plan) {
        while let Some(running) = self.running.get(index)
            && kv.reach_with(running.table, self.running.len() == 1) <= running.num_computed
        {
            self.preempt_last(kv, plan);
        }
    }

    /// Gives the sequence at `index` what the step has left for it and grows its tables.
    fn place(&mut self, index: usize, kv: &mut KvManager, room: &mut Room, plan: &mut Plan) {
        let Running { sequence, table, num_computed: start } = &self.running[index];
        let (len, start) = (sequence.tokens().len(), *start);
        let end = len.min(start + room.tokens).min(kv.reach_with(*table, self.running.len() == 1));
        if end < len && !self.rules.chunked_prefill && !plan.parts.is_empty() {
            // It would not be whole: the next step begins with it.
            return;
        }
        let samples = end == len && !sequence.is_prefill_only;
        let num_rows = if samples { 1 + sequence.choices.len() } else { 0 };
        let num_edits = if samples { sequence.num_edits() } else { 0 };
        let num_copies = kv.num_copies(*table);
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

    /// Moves waiting sequences to the running ones, as far as the step and the pools have room for them.
    fn admit_all(&mut self, kv: &mut KvManager, room: &mut Room, limits: &BatchLimits, plan: &mut Plan) {
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
            self.place(self.running.len() - 1, kv, room, plan);
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
        self.running.push(Running { sequence, table, num_computed: hit.num_tokens() });
    }

    /// Parts choices, whose prompt is computed and who have a first token each, from each other, as far as they are still
    /// there. The prompt's last block goes to the cache, and all of them go on from there with a copy of its rows; those
    /// that find no place wait.
    pub(super) fn part_choices(&mut self, ids: &[RequestId], kv: &mut KvManager, limits: &BatchLimits) {
        let is_one = |running: &Running| ids.contains(&running.sequence.id) && !running.sequence.choices.is_empty();
        let Some(index) = self.running.iter().position(is_one) else { return };
        let Running { mut sequence, table, num_computed } = self.running.remove(index);
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

    /// The hit if the sequence fits with it.
    fn fit(&self, sequence: &Sequence, hit: Hit, kv: &KvManager, limits: &BatchLimits) -> Option<Hit> {
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
    fn is_being_computed(&self, sequence: &Sequence, hit: &Hit) -> bool {
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

    /// Takes a sequence out, wherever it is, and lets go of its blocks. Choices that share its prompt stay.
    pub(super) fn remove(&mut self, id: RequestId, kv: &mut KvManager, leaving: Leaving) -> Option<Sequence> {
        if let Some(index) = self.running.iter().position(|running| running.sequence.ids().any(|other| other == id)) {
            if let Some(choice) = self.running[index].sequence.split_off(id) {
                return Some(choice);
            }
            let Running { mut sequence, table, num_computed } = self.running.remove(index);
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

/// What the cache has of a sequence.
fn find(sequence: &Sequence, kv: &KvManager) -> Hit {
    sequence.caching.as_ref().map_or_else(Hit::default, |(salt, _)| kv.find(salt, sequence.tokens()))
}
