//! IQ4_NL: weight = scale * value(q), one of 16 values that lie closer together near zero.
//!
//! GGUF block: f16 scale, then 16 bytes as in Q4_0.
//! Packed row: the 4-bit parts of every block as four words each, then the scales, two a word.

use super::{CHUNK_ELEMENTS, Codec, layout};

const BLOCK_BYTES: usize = 18;

pub(super) const CODEC: Codec = Codec {
    name: "IQ4_NL",
    stem: "iq4_nl",
    ggml_type: 20,
    block_elements: 32,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/iq4_nl.wgsl"),
    is_packable: false,
};

const CHUNK_WORDS: usize = 4;

/// What a nibble stands for.
pub(super) const VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// The same without a table, which shaders do not index well: a polynomial, rounded down. Before rounding it is at least
/// 0.06 away from any integer, a thousand times what f32 arithmetic in any order, fused or not, can be off.
pub(super) fn value(nibble: f32) -> f32 {
    let y = nibble - 8.0;
    ((((0.001_58 * y + 0.0819) * y - 0.016) * y + 11.438) * y + 1.921).floor()
}

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    let (quants, scales) = packed.split_at_mut(CHUNK_WORDS * blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        layout::set_half(scales, index, layout::half_bits_at(block, 0));
        for word in 0..CHUNK_WORDS {
            quants[CHUNK_WORDS * index + word] = layout::word(&block[2..], word);
        }
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    let (chunks, _) = out.as_chunks_mut::<CHUNK_ELEMENTS>();
    let (quants, scales) = packed.split_at(CHUNK_WORDS * chunks.len());
    for (index, chunk) in chunks.iter_mut().enumerate() {
        let scale = layout::get_half(scales, index);
        let nibbles = layout::nibbles(&quants[CHUNK_WORDS * index..]);
        for (quad, bytes) in chunk.as_chunks_mut::<4>().0.iter_mut().zip(nibbles) {
            *quad = layout::quad(bytes).map(|q| scale * value(q));
        }
    }
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<32>().0) {
        let scale = layout::half_at(block, 0);
        for (j, &byte) in block[2..].iter().enumerate() {
            out[j] = scale * f32::from(VALUES[usize::from(byte & 15)]);
            out[j + 16] = scale * f32::from(VALUES[usize::from(byte >> 4)]);
        }
    }
}
