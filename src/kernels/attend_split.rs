//! Attention of few tokens, split over the sequence; see `shaders/attend_split.wgsl`.

use super::attention::BLOCK_SIZE;
use super::rope_store::ROTATE;
use super::{Attention, RopeStore, TOKEN_WORDS, constant, word};
use crate::compute::{Access, Bindings, FEW_ROWS, Kernel, Reduce, Shader, Step, Tuning};

/// How attention of few tokens is split, and where `out` holds what: [T, H * head_dim], and then, for each of those heads
/// and each split, what [`AttendSplit`] leaves for [`super::merge_splits::MergeSplits`].
#[derive(Debug, Clone)]
pub(super) struct Splits {
    pub(super) attention: Attention,
}

impl Splits {
    pub(super) fn new(attention: Attention) -> Self {
        Self { attention }
    }

    /// Positions that the longest sequence of a step sees.
    fn num_seen(&self, step: &Step) -> usize {
        self.attention.num_seen((step.longest as usize).max(1) - 1)
    }

    /// Positions of a split.
    fn span(&self, step: &Step) -> usize {
        let Tuning { split_tokens, most_splits, .. } = self.attention.tuning;
        self.num_seen(step).div_ceil(most_splits).max(split_tokens)
    }

    /// Splits of the longest sequence of a step.
    pub(super) fn num(&self, step: &Step) -> usize {
        self.num_seen(step).div_ceil(self.span(step))
    }

    /// Floats of `out` before the partial results.
    pub(super) fn partials(&self) -> usize {
        FEW_ROWS as usize * self.attention.heads * self.attention.head_dim
    }

    /// Where a (token, head) and split leave their partial result.
    pub(super) fn partial(&self, row: usize, split: usize, num_splits: usize) -> usize {
        self.partials() + (row * num_splits + split) * (self.attention.head_dim + 4)
    }

    /// The most splits that a sequence can have.
    fn most(&self) -> usize {
        let Tuning { split_tokens, most_splits, .. } = self.attention.tuning;
        let longest = self.attention.table_stride * BLOCK_SIZE;
        self.attention.num_seen(longest - 1).div_ceil(split_tokens).min(most_splits)
    }

    /// Whether a sequence can have several splits.
    pub(super) fn can_split(&self) -> bool {
        self.most() > 1
    }

    /// Floats that `out` must have.
    pub(super) fn out_len(&self) -> usize {
        if !self.can_split() {
            return self.partials();
        }
        self.partial(FEW_ROWS as usize * self.attention.heads, 0, self.most())
    }
}

/// Rotates, stores and attends, for at most [`FEW_ROWS`] tokens.
#[derive(Debug, Clone)]
pub(super) struct AttendSplit {
    rope: RopeStore,
    splits: Splits,
    /// Query heads that share a read of their key-value head.
    shared_heads: usize,
    /// Lanes that share a position.
    slices: usize,
}

impl AttendSplit {
    /// The two kernels for many rows in one.
    pub(super) fn new(rope: RopeStore, splits: Splits) -> Self {
        let quads = splits.attention.head_dim / 4;
        let mut slices = splits.attention.tuning.row_lanes as usize;
        while !quads.is_multiple_of(slices) {
            slices /= 2;
        }
        let shared_heads = splits.attention.shared_heads(quads / slices);
        Self { rope, splits, shared_heads, slices }
    }

    /// Tasks in a workgroup. Where each has a lane of its own there are few of them, and a workgroup keeps to one core.
    fn groups(&self) -> u32 {
        const VECTOR_LANES: u32 = 4;
        if self.splits.attention.tuning.reduce == Reduce::Lane { VECTOR_LANES } else { 1 }
    }
}

impl Kernel for AttendSplit {
    fn shader(&self) -> Shader {
        let shader = Shader::new("attend_split", include_str!("../../shaders/attend_split.wgsl"));
        let consts = vec![
            ("QUADS", word(self.splits.attention.head_dim / 4 / self.slices)),
            ("SLICES", word(self.slices)),
            ("SHARED_HEADS", word(self.shared_heads)),
            // What a lane finds in private memory it should use often; several lanes have less to do each.
            ("BATCH", if self.splits.attention.tuning.lanes == 1 { 8 } else { 4 }),
        ];
        let heads = match self.shared_heads {
            1 => include_str!("../../shaders/lib/heads_1.wgsl"),
            2 => include_str!("../../shaders/lib/heads_2.wgsl"),
            3 => include_str!("../../shaders/lib/heads_3.wgsl"),
            _ => include_str!("../../shaders/lib/heads_4.wgsl"),
        };
        Shader { reduce: Some(self.splits.attention.tuning.reduce), pieces: vec![ROTATE, heads], consts, ..shader }
    }

    fn access(&self) -> &'static [Access] {
        use Access::{Read, ReadWrite};
        &[Read, Read, Read, Read, Read, ReadWrite, ReadWrite, ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let mut constants = self.rope.numbers();
        let is_new = |name: &str| ["WINDOW", "TABLE_OFFSET", "TABLE_STRIDE"].contains(&name);
        constants.extend(self.splits.attention.numbers().into_iter().filter(|&(name, _)| is_new(name)));
        constants.push(("SPLIT_TOKENS", constant(self.splits.attention.tuning.split_tokens)));
        constants.push(("MOST_SPLITS", constant(self.splits.attention.tuning.most_splits)));
        constants.push(("PARTIALS", constant(self.splits.partials() / 4)));
        constants.push(("LANES", f64::from(self.splits.attention.tuning.lanes)));
        constants.push(("GROUPS", f64::from(self.groups())));
        constants
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        let num_tasks = self.splits.num(step) * self.splits.attention.heads / self.shared_heads;
        [(step.num_tokens * word(num_tasks)).div_ceil(self.groups()), 1, 1]
    }

    fn cache_bytes(&self, position: usize) -> u64 {
        // Its own key and value it has from the projection.
        let num_reads = self.splits.attention.heads / self.shared_heads;
        num_reads as u64 * self.splits.attention.head_bytes(self.splits.attention.num_seen(position) - 1)
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (qkv, angles, norms) = (bindings.f32(0), bindings.f32(1), bindings.f32(2));
        let (tokens, tables) = (bindings.u32(3), bindings.u32(4));
        let (mut k, mut v, mut out) = (bindings.u32_mut(5), bindings.u32_mut(6), bindings.f32_mut(7));
        let attention = &self.splits.attention;
        let head_dim = attention.head_dim;
        let num_rows = step.num_tokens as usize * attention.heads;
        let mut q = vec![0.0; num_rows * head_dim];
        self.rope.apply(step, (&qkv, &angles, &norms, &tokens), (&mut q, &mut k, &mut v));
        let (num_splits, span) = (self.splits.num(step), self.splits.span(step));
        for row in 0..num_rows {
            let position = tokens[row / attention.heads * TOKEN_WORDS + 1] as usize;
            let first = position + 1 - attention.num_seen(position);
            for split in 0..num_splits {
                let begin = (first + split * span).min(position + 1);
                let positions = begin..(begin + span).min(position + 1);
                let at = if num_splits == 1 { row * head_dim } else { self.splits.partial(row, split, num_splits) + 4 };
                let sum = &mut out[at..][..head_dim];
                let (highest, total) = attention.part(row, positions, (&q, &k, &v), (&tokens, &tables), sum);
                if num_splits == 1 {
                    sum.iter_mut().for_each(|value| *value /= total);
                } else {
                    out[at - 4..at].copy_from_slice(&[highest, total, 0.0, 0.0]);
                }
            }
        }
    }
}
