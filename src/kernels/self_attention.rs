//! Attention of a layer as adapters want it recorded: one way for few rows, another for many.

use super::attend_split::{AttendSplit, Splits};
use super::attention_shared::AttentionShared;
use super::attention_tile::AttentionTile;
use super::merge_splits::MergeSplits;
use super::{Attention, RopeStore};
use crate::compute::{BufferId, FewAttention, ManyAttention, Recording, RowClass, Rows, Tuning};

/// From queries, keys and values to what attention makes of them.
#[derive(Debug, Clone)]
pub struct SelfAttention {
    /// How heads are rotated and stored.
    pub rope: RopeStore,
    /// How they are attended to: the same shapes.
    pub attention: Attention,
}

/// The buffers of [`SelfAttention`]; shapes as in [`RopeStore`] and [`Attention`].
#[derive(Debug, Clone, Copy)]
pub struct AttentionBuffers {
    /// What the projection leaves.
    pub qkv: BufferId,
    /// Rotation angles.
    pub angles: BufferId,
    /// Weights of QK norm.
    pub norms: BufferId,
    /// The step's tokens.
    pub tokens: BufferId,
    /// Block tables.
    pub tables: BufferId,
    /// The layer's keys.
    pub k_cache: BufferId,
    /// The layer's values.
    pub v_cache: BufferId,
    /// Rotated queries, for many rows.
    pub q: BufferId,
    /// The result: at least [`Attention::out_len`] floats.
    pub out: BufferId,
}

impl SelfAttention {
    /// Records it for few and for many rows.
    pub fn record(self, recording: &mut Recording, buffers: AttentionBuffers) {
        let AttentionBuffers { qkv, angles, norms, tokens, tables, k_cache, v_cache, q, out } = buffers;
        let Tuning { few_attention, many_attention, .. } = self.attention.tuning;
        let class = RowClass::few(Rows::Tokens);
        let (rope_buffers, buffers) =
            ([qkv, angles, norms, tokens, q, k_cache, v_cache], [q, k_cache, v_cache, tokens, tables, out]);
        match few_attention {
            FewAttention::PerQuery => {
                recording.dispatch(self.rope.clone(), &rope_buffers, class);
                recording.dispatch(self.attention.clone(), &buffers, class);
            }
            FewAttention::Split => {
                let splits = Splits::new(self.attention.clone());
                let few = AttendSplit::new(self.rope.clone(), splits.clone());
                recording.dispatch(few, &[qkv, angles, norms, tokens, tables, k_cache, v_cache, out], class);
                if splits.can_split() {
                    recording.dispatch(MergeSplits(splits), &[out], class);
                }
            }
        }
        let class = RowClass::many(Rows::Tokens);
        recording.dispatch(self.rope, &rope_buffers, class);
        match many_attention {
            ManyAttention::Shared if AttentionShared::is_for(&self.attention) => {
                recording.dispatch(AttentionShared(self.attention), &buffers, class);
            }
            ManyAttention::Tile if AttentionTile::is_for(&self.attention) => {
                recording.dispatch(AttentionTile::new(self.attention), &buffers, class);
            }
            ManyAttention::PerQuery | ManyAttention::Shared | ManyAttention::Tile => {
                recording.dispatch(self.attention, &buffers, class)
            }
        }
    }
}

impl Attention {
    /// Floats of the result in steps of up to `max_tokens` tokens, with what kernels keep behind it.
    pub fn out_len(&self, max_tokens: usize) -> usize {
        let len = max_tokens * self.heads * self.head_dim;
        match self.tuning.few_attention {
            FewAttention::PerQuery => len,
            FewAttention::Split => Splits::new(self.clone()).out_len().max(len),
        }
    }
}
