//! A sequence that runs, and how far it will be when all steps in flight are collected.

use super::sequence::Sequence;
use crate::kv::TableId;
use crate::model::Token;

/// No step: they are numbered from 1 on.
const NOT_KNOWN: (u64, u32) = (0, 0);

/// A sequence that has block tables.
pub(super) struct Running {
    pub(super) sequence: Sequence,
    pub(super) table: TableId,
    /// Tokens whose keys and values are in the cache.
    pub(super) num_computed: usize,
    /// The same once all steps in flight are collected.
    pub(super) num_submitted: usize,
    /// Tokens that steps in flight draw for it.
    pub(super) num_pending: usize,
    /// The step that draws the last of them, and its row.
    last_draw: (u64, u32),
}

impl Running {
    /// A sequence of which the first tokens are computed.
    pub(super) fn new(sequence: Sequence, table: TableId, num_computed: usize) -> Self {
        let (num_submitted, num_pending, last_draw) = (num_computed, 0, NOT_KNOWN);
        Self { sequence, table, num_computed, num_submitted, num_pending, last_draw }
    }

    /// Takes note that step `number` computes its tokens up to `end`, and in which of its rows it draws the next, if it does.
    pub(super) fn note_submitted(&mut self, number: u64, end: usize, row: Option<u32>) {
        self.num_submitted = end;
        if let Some(row) = row {
            self.num_pending += 1;
            self.last_draw = (number, row);
        }
    }

    /// Forgets what is in flight.
    pub(super) fn forget_submitted(&mut self) {
        self.num_submitted = self.num_computed;
        self.num_pending = 0;
    }

    /// Has it wait until what is being drawn is known: it may be for choices that left meanwhile.
    pub(super) fn forget_row(&mut self) {
        self.last_draw = NOT_KNOWN;
    }

    /// Tokens that are known, and those that are being drawn.
    pub(super) fn len(&self) -> usize {
        self.sequence.tokens().len() + self.num_pending
    }

    /// Whether more than its last token is to be computed.
    pub(super) fn is_prefilling(&self) -> bool {
        self.len() - self.num_submitted > 1
    }

    /// Whether a step in flight computes some of its tokens.
    pub(super) fn is_in_flight(&self) -> bool {
        self.num_submitted > self.num_computed
    }

    /// Whether there is something to compute that step `number` can compute.
    pub(super) fn can_go_on(&self, number: u64) -> bool {
        let follows = || self.last_draw.0 + 1 == number && self.sequence.can_run_ahead(self.num_pending);
        self.num_submitted < self.len() && (self.num_pending == 0 || follows())
    }

    /// The token at `position`, of those that are known or being drawn.
    pub(super) fn token(&self, position: usize) -> Token {
        self.sequence.tokens().get(position).map_or(Token::Drawn(self.last_draw.1), |&id| Token::Id(id))
    }
}
