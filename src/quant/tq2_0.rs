//! TQ2_0: weight = d * (q - 1), q in two bits.
//!
//! GGUF block of 256: 64 bytes of pairs as in Q2_K, f16 d.
//! Packed row: two words for each chunk (`layout::pack_pairs`), then the d's, two a word.

use super::{Codec, blocks, layout};

const BLOCK_BYTES: usize = 66;

pub(super) const CODEC: Codec = Codec {
    name: "TQ2_0",
    stem: "tq2_0",
    ggml_type: 35,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/tq2_0.wgsl"),
    is_packable: false,
};

const BLOCK_WORDS: usize = 16;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack_split(gguf, packed, 64, |block: &[u8; BLOCK_BYTES]| {
        let words: [_; BLOCK_WORDS] = std::array::from_fn(|word| layout::pack_pairs(block, word / 2)[word % 2]);
        words
    });
}

/// Also that of TQ1_0, whose packed rows are the same.
pub(super) fn unpack_row(packed: &[u32], out: &mut [f32]) {
    blocks::unpack_split(packed, out, |block: &[u32; BLOCK_WORDS], d, chunk| {
        layout::pairs(&block[2 * chunk..]).map(|bytes| layout::quad(bytes).map(|q| d * (q - 1.0)))
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        let q = (block[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
        layout::half_at(block, 64) * (f32::from(q) - 1.0)
    });
}
