//! What a step is asked besides the tokens that it draws.

use super::batch::Batch;
use super::loaded::Model;
use crate::compute::{BufferId, Executor};
use crate::kernels::{MAX_TOP_LOGITS, NO_TOKEN, POOL_WORDS, SCORE_WORDS, top_word};

/// What a step told besides ids; empty where nothing was asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepExtras {
    /// One per entry of [`Batch::tops`].
    pub scores: Vec<RowScores>,
    /// One per entry of [`Batch::pools`]: the sum of the tokens' last hidden states, behind the output norm. Shape [P, D].
    pub pools: Vec<Vec<f32>>,
}

/// Natural logarithms of probabilities under the model's own distribution: the softmax of its logits, before penalties,
/// biases, masks, temperature and everything else that changes what is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct RowScores {
    /// Of the token that was drawn.
    pub drawn: f32,
    /// The most probable tokens with theirs, the most probable first; of equals the one with the smaller id.
    pub top: Vec<(u32, f32)>,
}

/// What a step in flight is read for, beside the ids.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    /// Row and number, as in the batch.
    tops: Vec<(usize, usize)>,
    num_pools: usize,
}

impl Asked {
    pub(super) fn of(batch: &Batch) -> Self {
        let tops = batch.tops.iter().map(|top| (top.row as usize, top.num as usize)).collect();
        Self { tops, num_pools: batch.pools.len() }
    }
}

impl<E: Executor> Model<E> {
    /// Writes what a batch asks besides.
    pub(super) fn write_extras(&mut self, batch: &Batch) {
        if !batch.tops.is_empty() {
            let num_edits = u32::try_from(batch.edits.len()).unwrap_or(0);
            let mut tops = vec![0; batch.rows.len()];
            batch.tops.iter().for_each(|top| tops[top.row as usize] = top_word(top.num, num_edits));
            self.executor.write(self.io.tops, 0, &tops);
        }
        let mut pools = Vec::with_capacity(POOL_WORDS * batch.pools.len());
        pools.extend(batch.pools.iter().flat_map(|pool| [pool.first, pool.num]));
        self.executor.write(self.io.pools, 0, &pools);
    }

    /// What is to be read after a step of so many rows, the ids first.
    pub(super) fn reads(&self, num_rows: usize, asked: &Asked) -> Vec<(BufferId, usize)> {
        let mut reads = vec![(self.io.ids, num_rows)];
        if !asked.tops.is_empty() {
            reads.extend([(self.io.top_ids, num_rows * MAX_TOP_LOGITS), (self.io.scores, num_rows * SCORE_WORDS)]);
        }
        if asked.num_pools > 0 {
            reads.push((self.io.pooled, asked.num_pools * self.config.width));
        }
        reads
    }

    /// The same, read.
    pub(super) fn extras(&self, asked: &Asked, read: Vec<Vec<u32>>) -> StepExtras {
        let mut read = read.into_iter();
        let mut extras = StepExtras::default();
        if !asked.tops.is_empty() {
            let (ids, scores) = (read.next().unwrap_or_default(), read.next().unwrap_or_default());
            let scores = ids.chunks_exact(MAX_TOP_LOGITS).zip(scores.chunks_exact(SCORE_WORDS));
            let scores: Vec<_> = scores.collect();
            extras.scores = asked.tops.iter().map(|&(row, num)| row_scores(num, scores[row])).collect();
        }
        if asked.num_pools > 0 {
            let pooled = read.next().unwrap_or_default();
            let pool = |words: &[u32]| words.iter().map(|&word| f32::from_bits(word)).collect();
            extras.pools = pooled.chunks_exact(self.config.width).map(pool).collect();
        }
        extras
    }
}

/// A row's, of `num` tokens beside the drawn one.
fn row_scores(num: usize, (ids, scores): (&[u32], &[u32])) -> RowScores {
    let value = |at: usize| f64::from(f32::from_bits(scores[at]));
    let log_sum = value(0) + value(1).ln();
    #[expect(clippy::cast_possible_truncation, reason = "rounded to what logits are stored in")]
    let log_probability = |at: usize| (value(at) - log_sum) as f32;
    let top = ids.iter().take(num).enumerate().filter(|&(_, &id)| id != NO_TOKEN);
    RowScores { drawn: log_probability(2), top: top.map(|(place, &id)| (id, log_probability(3 + place))).collect() }
}
