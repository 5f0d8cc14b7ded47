//! The operations of the forward pass: one file per kernel, holding its numbers, its recorder's checks and its CPU
//! twin. The WGSL of the same name is in `shaders/`.

mod attend_split;
mod attention;
mod attention_shared;
mod attention_tile;
pub mod cases;
mod copy_rows;
mod drawn_logits;
mod edit_logits;
mod embed;
mod gather_rows;
mod matmul;
mod matmul_few;
mod matmul_int8;
mod matmul_tile;
mod matvec;
mod merge_splits;
mod pool_rows;
mod projection;
mod random;
mod rms_norm;
mod rms_norm_add;
mod rope_store;
mod sample;
mod self_attention;
mod top_logits;

pub use attention::{Attention, KvFormat};
pub use copy_rows::{COPY_WORDS, CopyRows};
pub use drawn_logits::DrawnLogits;
pub use edit_logits::{EDIT_WORDS, EditLogits, SAMPLING_WORDS};
pub use embed::{DRAWN, Embed, TOKEN_WORDS};
pub use gather_rows::GatherRows;
pub use matmul::MatMul;
pub use matmul_few::MatMulFew;
pub use matmul_int8::MatMulInt8;
pub use matmul_tile::MatMulTile;
pub use matvec::MatVec;
pub use pool_rows::{POOL_WORDS, PoolRows};
pub use projection::{Epilogue, FusedNorm, Operand, Projection};
pub use rms_norm::RmsNorm;
pub use rms_norm_add::RmsNormAdd;
pub use rope_store::RopeStore;
pub use sample::{NOT_FINITE, Sample, mask_words};
pub use self_attention::{AttentionBuffers, SelfAttention};
pub use top_logits::{MAX_TOP_LOGITS, NO_TOKEN, SCORE_WORDS, TopLogits, top_word};

/// A size as the `u32` that shaders count in.
///
/// # Panics
/// Beyond `u32`: no buffer that fits a binding is that large.
fn word(size: usize) -> u32 {
    u32::try_from(size).expect("sizes of a recording fit 32 bits")
}

/// A size as the value of an `override` constant.
fn constant(size: usize) -> f64 {
    f64::from(word(size))
}
