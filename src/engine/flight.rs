//! Steps that were submitted and not collected.

use super::RequestId;
use super::running::Running;
use super::scheduler::{Part, Plan};
use super::sequence::DrawnRow;
use super::trace::StepPart;
use crate::kv::TableId;
use crate::model::RowScores;
use crate::{Error, Result};

/// A step in flight. Sequences may end, be cancelled or join while it is computed, so it names those of its parts by what
/// they held when it was submitted.
pub(super) struct Flight {
    pub(super) parts: Vec<FlightPart>,
    /// Whose token each of its rows draws.
    pub(super) rows: Vec<RequestId>,
    /// Whether each row's log-probabilities are wanted.
    tops: Vec<bool>,
    pub(super) preempted: Vec<RequestId>,
    pub(super) num_tokens: usize,
    /// When it was planned.
    pub(super) start_ms: f64,
    /// Whether others were in flight when it was submitted.
    pub(super) is_ahead: bool,
    /// Whether one before it failed: then nothing that it computes is used.
    pub(super) is_void: bool,
}

/// One sequence's part of a step in flight.
pub(super) struct FlightPart {
    /// Names a run of a sequence, from its start to its end or preemption.
    pub(super) table: TableId,
    /// Where the sequence was among the running ones: it likely still is.
    pub(super) index: usize,
    pub(super) num_rows: usize,
    /// Whether its tokens are pooled.
    pub(super) embeds: bool,
    pub(super) part: StepPart,
}

impl Flight {
    /// The step that `plan` asks for.
    pub(super) fn new(plan: Plan, running: &[Running], num_tokens: usize, start_ms: f64, is_ahead: bool) -> Self {
        let (mut rows, mut tops) = (Vec::new(), Vec::new());
        let part = |&Part { index, start, end, samples }: &Part| {
            let Running { sequence, table, .. } = &running[index];
            let before = rows.len();
            if samples {
                rows.extend(sequence.ids());
                tops.resize(rows.len(), sequence.logprobs.is_some());
            }
            let num_prompt = sequence.num_prompt();
            let part = StepPart { request: sequence.id, start, end, num_prompt, samples };
            FlightPart { table: *table, index, num_rows: rows.len() - before, embeds: sequence.embeds, part }
        };
        let parts = plan.parts.iter().map(part).collect();
        Self { parts, rows, tops, preempted: plan.preempted, num_tokens, start_ms, is_ahead, is_void: false }
    }

    /// What each row drew, if the model says as much as it was asked.
    pub(super) fn drawn(&self, ids: &[u32], scores: Vec<RowScores>) -> Result<Vec<DrawnRow>> {
        let num_tops = self.tops.iter().filter(|&&top| top).count();
        if ids.len() != self.rows.len() || scores.len() != num_tops {
            let (num_rows, num_scores) = (self.rows.len(), scores.len());
            let of_rows = format!("{} ids for {num_rows} rows", ids.len());
            return Err(Error::WrongResult(format!("{of_rows}, {num_scores} log-probabilities for {num_tops}")));
        }
        let mut scores = scores.into_iter();
        let rows = self.rows.iter().zip(ids).zip(&self.tops);
        let row = |((&request, &id), &top)| DrawnRow { request, id, scores: if top { scores.next() } else { None } };
        Ok(rows.map(row).collect())
    }

    /// Makes nothing of it count.
    pub(super) fn make_void(&mut self) {
        self.is_void = true;
        self.parts.clear();
        self.rows.clear();
        self.tops.clear();
    }
}
