//! IQ4_XS: weight = (d * (scale - 32)) * value(q), with the 16 values of IQ4_NL and a 6-bit scale per 32 weights.
//!
//! GGUF block of 256: f16 d; 16 bits, the high pair of chunk `c`'s scale at bit `2 c`; four bytes, the low nibble of chunk
//! `c`'s scale at bit `4 c` of the word; 16 bytes for each chunk as in Q4_0.
//! Packed block: the same, 34 words.

use super::iq4_nl::{VALUES, value};
use super::{Codec, blocks, layout};

const BLOCK_BYTES: usize = 136;

pub(super) const CODEC: Codec = Codec {
    name: "IQ4_XS",
    stem: "iq4_xs",
    ggml_type: 23,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/iq4_xs.wgsl"),
    is_packable: false,
};

const BLOCK_WORDS: usize = 34;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack(gguf, packed, |block: &[u8; BLOCK_BYTES]| {
        std::array::from_fn::<_, BLOCK_WORDS, _>(|word| layout::word(block, word))
    });
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    blocks::unpack(packed, out, |block: &[u32; BLOCK_WORDS], chunk| {
        let [d, _] = layout::halves(block[0]);
        let high = ((block[0] >> 16) >> (2 * chunk)) & 3;
        let low = (block[1] >> (4 * chunk)) & 15;
        let [scale, ..] = (low | (high << 4)).to_le_bytes();
        let scale = d * (f32::from(scale) - 32.0);
        layout::nibbles(&block[2 + 4 * chunk..]).map(|bytes| layout::quad(bytes).map(|q| scale * value(q)))
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        let (chunk, j) = (i / 32, i % 32);
        let low = (block[4 + chunk / 2] >> (4 * (chunk % 2))) & 15;
        let high = (block[2 + chunk / 4] >> (2 * (chunk % 4))) & 3;
        let scale = layout::half_at(block, 0) * (f32::from(low | (high << 4)) - 32.0);
        let nibble = (block[8 + 16 * chunk + j % 16] >> (4 * (j / 16))) & 15;
        scale * f32::from(VALUES[usize::from(nibble)])
    });
}
