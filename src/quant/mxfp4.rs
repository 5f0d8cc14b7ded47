//! MXFP4: weight = scale * value(q), the scale a power of two, the value a 4-bit float, doubled to be an integer.
//!
//! GGUF block: a byte, the scale's exponent with a bias of 128; then 16 bytes as in Q4_0. The top bit of a nibble is
//! the sign; minus zero is zero.
//! Packed row: the 4-bit parts of every block as four words each, then the exponents, four a word.
//!
//! The two smallest scales are subnormal in f32; a device may take them for zero, so weights below 2^-123 may vanish.

use super::{CHUNK_ELEMENTS, Codec, layout};

const BLOCK_BYTES: usize = 17;

pub(super) const CODEC: Codec = Codec {
    name: "MXFP4",
    stem: "mxfp4",
    ggml_type: 39,
    block_elements: 32,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/mxfp4.wgsl"),
    is_packable: false,
};

const CHUNK_WORDS: usize = 4;

/// What a nibble stands for.
const VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The same by shifting: the magnitudes are the nibbles of this word.
const MAGNITUDES: u32 = 0xC864_3210;

/// 2^(exponent - 128).
fn scale(exponent: u8) -> f32 {
    match u32::from(exponent) {
        subnormal @ 0..2 => f32::from_bits(0x0020_0000 << subnormal),
        normal => f32::from_bits((normal - 1) << 23),
    }
}

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    let (quants, exponents) = packed.split_at_mut(CHUNK_WORDS * blocks.len());
    exponents.fill(0);
    for (index, block) in blocks.iter().enumerate() {
        exponents[index / 4] |= u32::from(block[0]) << (8 * (index % 4));
        for word in 0..CHUNK_WORDS {
            quants[CHUNK_WORDS * index + word] = layout::word(&block[1..], word);
        }
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    let (chunks, _) = out.as_chunks_mut::<CHUNK_ELEMENTS>();
    let (quants, exponents) = packed.split_at(CHUNK_WORDS * chunks.len());
    for (index, chunk) in chunks.iter_mut().enumerate() {
        let scale = scale(exponents[index / 4].to_le_bytes()[index % 4]);
        let nibbles = layout::nibbles(&quants[CHUNK_WORDS * index..]);
        for (quad, bytes) in chunk.as_chunks_mut::<4>().0.iter_mut().zip(nibbles) {
            *quad = bytes.to_le_bytes().map(|nibble| {
                let [magnitude, ..] = ((MAGNITUDES >> (4 * (nibble & 7))) & 15).to_le_bytes();
                let magnitude = magnitude.cast_signed();
                scale * f32::from(if nibble >= 8 { -magnitude } else { magnitude })
            });
        }
    }
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<32>().0) {
        let scale = scale(block[0]);
        for (j, &byte) in block[1..].iter().enumerate() {
            out[j] = scale * f32::from(VALUES[usize::from(byte & 15)]);
            out[j + 16] = scale * f32::from(VALUES[usize::from(byte >> 4)]);
        }
    }
}
