//! The flat arrays that one step of the forward pass reads.
//!
//! A batch is ragged: any number of sequences, each with any number of tokens. It knows nothing of requests or text.

use std::rc::Rc;

use super::extras::StepExtras;
use crate::kernels::MAX_TOP_LOGITS;
use crate::kv::GroupConfig;
use crate::{Error, Result};

/// At most this many layer groups: layers that see the whole context, and sliding-window layers.
pub const MAX_GROUPS: usize = 2;

/// Which token a row computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// The one with this vocabulary id.
    Id(u32),
    /// The one that this row (an index into [`Batch::rows`]) of the step submitted just before draws.
    Drawn(u32),
}

/// One token of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRow {
    /// Which one.
    pub token: Token,
    /// 0-based position in its sequence.
    pub position: u32,
    /// Index of its sequence in this step, the row of [`Batch::tables`] that its attention reads.
    pub sequence: u32,
    /// The slot its keys and values are written to, per layer group (block id x block size + offset).
    pub slots: [u32; MAX_GROUPS],
}

/// How one sampled row turns logits into a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowSampling {
    /// 0 means greedy.
    pub temperature: f32,
    /// Keep only the k largest logits; 0 means all.
    pub top_k: u32,
    /// Keep the smallest set whose probability reaches this; 1 means all.
    pub top_p: f32,
    /// Drop tokens less probable than this share of the most probable one; 0 means none.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens seen; 1 means none.
    pub repetition_penalty: f32,
    /// Subtracted once per earlier occurrence among generated tokens.
    pub frequency_penalty: f32,
    /// Subtracted once if the token occurred among generated tokens.
    pub presence_penalty: f32,
    /// Seed of the counter-based generator.
    pub seed: u64,
    /// Counter of the generator: the position of the token being drawn.
    pub counter: u32,
}

impl RowSampling {
    /// Plain argmax.
    pub const GREEDY: Self = Self {
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        repetition_penalty: 1.0,
        frequency_penalty: 0.0,
        presence_penalty: 0.0,
        seed: 0,
        counter: 0,
    };
}

/// A change to one logit of one sampled row, applied before sampling: first the penalties of the row, then `bias`.
/// At most one edit per (row, token).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogitEdit {
    /// Index into [`Batch::rows`].
    pub row: u32,
    /// Vocabulary id.
    pub token: u32,
    /// 1 if the repetition penalty applies (the token is in the prompt or the answer), else 0.
    pub seen: u32,
    /// Occurrences among the generated tokens, for frequency and presence penalties.
    pub count: u32,
    /// Added last; may be negative infinity to forbid the token.
    pub bias: f32,
}

/// The tokens that a sampled row may draw: no other is ever drawn, whatever its logit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowMask {
    /// Index into [`Batch::rows`].
    pub row: u32,
    /// A bit per vocabulary id, the lowest bit of the first word first; at least one is set. Masks that stay the same from
    /// step to step are best shared: what is on the device already is not written again.
    pub allowed: Rc<[u32]>,
}

/// A sampled row whose log-probabilities are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowTop {
    /// Index into [`Batch::rows`].
    pub row: u32,
    /// How many tokens to tell of beside the drawn one, 0 to [`MAX_TOP_LOGITS`]: the most probable ones.
    pub num: u32,
}

/// Neighbouring tokens whose last hidden states are wanted, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenPool {
    /// Index into [`Batch::tokens`].
    pub first: u32,
    /// Tokens, at least one.
    pub num: u32,
}

/// One token's row of the KV cache copied to another slot, in every layer of a layer group, before the step's tokens are
/// computed: how a partly filled block is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCopy {
    /// Layer group.
    pub group: u32,
    /// Slot to read.
    pub from: u32,
    /// Slot to write; no copy of the step reads it.
    pub to: u32,
}

/// What one step computes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Tokens, grouped by sequence, positions ascending within each.
    pub tokens: Vec<TokenRow>,
    /// Per layer group: block tables, one `Vec` per sequence of the step, indexed by `position / block size`.
    /// Entries of released sliding-window blocks may hold anything below the pool's size; they are not read.
    pub tables: Vec<Vec<Vec<u32>>>,
    /// Indices into `tokens` of the rows whose logits are wanted, ascending; the same one several times for several
    /// draws from its logits.
    pub rows: Vec<u32>,
    /// One per entry of `rows`.
    pub sampling: Vec<RowSampling>,
    /// Sparse changes to the logits.
    pub edits: Vec<LogitEdit>,
    /// Masks of those rows that have one, at most one each.
    pub masks: Vec<RowMask>,
    /// Those rows whose log-probabilities are wanted, at most once each.
    pub tops: Vec<RowTop>,
    /// Tokens to pool.
    pub pools: Vec<TokenPool>,
    /// Cache rows to copy first.
    pub copies: Vec<RowCopy>,
    /// Submissions to cut the step into, so that others get at the device in between; 0 is the same as 1.
    pub num_submits: usize,
}

impl Batch {
    /// Adds masks of rows that have none.
    pub fn add_masks(&mut self, masks: Vec<RowMask>) {
        self.masks.extend(masks);
        self.masks.sort_by_key(|mask| mask.row);
    }
}

/// The largest batch a loaded model takes: buffers are allocated once, at load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Tokens in a step.
    pub max_tokens: usize,
    /// Sequences in a step.
    pub max_sequences: usize,
    /// Sampled rows in a step.
    pub max_rows: usize,
    /// Logit edits in a step.
    pub max_edits: usize,
    /// Row copies in a step.
    pub max_copies: usize,
    /// Tokens of a sequence.
    pub context_length: usize,
    /// Blocks in one sequence's table: as many as `context_length` tokens touch.
    pub max_blocks: usize,
}

impl BatchLimits {
    /// Whether a batch fits and is consistent: kernels trust it.
    ///
    /// # Errors
    /// `bad_request` with what was asked and what is allowed.
    pub fn check(&self, batch: &Batch) -> Result<()> {
        let num_sequences = batch.tables.iter().map(Vec::len).max().unwrap_or(0);
        let num_blocks = batch.tables.iter().flatten().map(Vec::len).max().unwrap_or(0);
        let sizes = [
            ("tokens", batch.tokens.len(), self.max_tokens),
            ("sequences", num_sequences, self.max_sequences),
            ("sampled rows", batch.rows.len(), self.max_rows),
            ("logit edits", batch.edits.len(), self.max_edits),
            ("masks", batch.masks.len(), self.max_rows),
            ("log-probabilities", batch.tops.len(), self.max_rows),
            ("pools", batch.pools.len(), self.max_sequences),
            ("row copies", batch.copies.len(), self.max_copies),
            ("blocks in a table", num_blocks, self.max_blocks),
        ];
        for (what, asked, allowed) in sizes {
            if asked > allowed {
                return Err(Error::BadRequest(format!("{asked} {what} in a step, {allowed} allowed")));
            }
        }
        let rows_fit = batch.rows.iter().all(|&row| (row as usize) < batch.tokens.len())
            && batch.masks.iter().all(|mask| (mask.row as usize) < batch.rows.len())
            && batch.tops.iter().all(|top| (top.row as usize) < batch.rows.len() && top.num as usize <= MAX_TOP_LOGITS)
            && batch.pools.iter().all(|pool| (pool.first + pool.num) as usize <= batch.tokens.len());
        let is_known = |row: &TokenRow| !matches!(row.token, Token::Drawn(drawn) if drawn as usize >= self.max_rows);
        if batch.tokens.is_empty()
            || !rows_fit
            || !batch.tokens.iter().all(is_known)
            || batch.sampling.len() != batch.rows.len()
        {
            return Err(Error::BadRequest("a step's rows do not match its tokens".into()));
        }
        Ok(())
    }
}

/// A loaded model, as the engine sees it.
pub trait Forward {
    /// The largest batch it takes.
    fn limits(&self) -> BatchLimits;
    /// Hands a step to the device and never waits. Steps are computed in the order in which they were submitted.
    ///
    /// # Errors
    /// `device_lost`, `bad_request` for a batch that does not fit. The step was not submitted then.
    fn submit(&mut self, batch: &Batch) -> Result<()>;
    /// As [`Forward::submit`], for a batch that lacks masks: `masks` makes them, for rows that have none, while the device
    /// computes what comes before the draw.
    ///
    /// # Errors
    /// As [`Forward::submit`].
    fn submit_masked(&mut self, mut batch: Batch, masks: &mut dyn FnMut() -> Vec<RowMask>) -> Result<()> {
        batch.add_masks(masks());
        self.submit(&batch)
    }
    /// Waits for the oldest step that was submitted and not collected, and returns one token id per entry of its `rows`.
    /// If it is dropped, that step is still to be collected.
    ///
    /// # Errors
    /// `device_lost`, or `wrong_result` when a sampled row has no finite maximum. The step is collected then, and those
    /// submitted behind it are still to be.
    fn collect(&mut self) -> impl Future<Output = Result<Vec<u32>>>;
    /// What the step that was collected last was asked besides: log-probabilities and pools, in the batch's order. Taken once.
    fn take_extras(&mut self) -> StepExtras {
        StepExtras::default()
    }
    /// D, the width of hidden states, where they can be pooled.
    fn pool_width(&self) -> Option<usize> {
        None
    }
    /// Steps that may be submitted and not collected.
    fn max_ahead(&self) -> usize {
        1
    }
    /// Submits a step and collects it, when no other is in flight.
    ///
    /// # Errors
    /// As [`Forward::submit`] and [`Forward::collect`].
    fn forward(&mut self, batch: &Batch) -> impl Future<Output = Result<Vec<u32>>> {
        let submitted = self.submit(batch);
        async move {
            submitted?;
            self.collect().await
        }
    }
    /// Milliseconds that the device needed for the step that was collected last, where it can tell.
    fn gpu_ms(&self) -> Option<f64> {
        None
    }
    /// Milliseconds that the CPU needed to hand that step to the device, where that is somebody else.
    fn encode_ms(&self) -> Option<f64> {
        None
    }
}

/// A loaded model whose logits can be read, not only sampled from.
pub trait Logits: Forward {
    /// V, the vocabulary.
    fn vocab(&self) -> usize;
    /// The KV pools it has allocated, one per layer group.
    fn groups(&self) -> Vec<GroupConfig>;
    /// Runs a step and returns the logits of its rows, before edits. Shape [rows, V].
    ///
    /// # Errors
    /// As [`Forward::forward`]. Steps that are in flight are thrown away.
    fn logits(&mut self, batch: &Batch) -> impl Future<Output = Result<Vec<Vec<f32>>>>;
}
