//! Q2_K: weight = (d * scale) * q - (dmin * minimum), a scale and a minimum per 16 weights.
//!
//! GGUF block of 256: 16 bytes, each a scale in its low nibble and a minimum in its high one; 64 bytes of pairs, those of
//! chunk `c` at bit `2 (c % 4)` of bytes `32 (c / 4) + j`; f16 d, f16 dmin.
//! Packed block, 21 words: d and dmin; the four words of scales; two words for each chunk (`layout::pack_pairs`).

use super::{Codec, blocks, layout};

const BLOCK_BYTES: usize = 84;

pub(super) const CODEC: Codec = Codec {
    name: "Q2_K",
    stem: "q2_k",
    ggml_type: 10,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/q2_k.wgsl"),
    is_packable: true,
};

const BLOCK_WORDS: usize = 21;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack(gguf, packed, |block: &[u8; BLOCK_BYTES]| {
        let mut out = [0; BLOCK_WORDS];
        out[0] = layout::word_at(block, 80);
        for word in 0..4 {
            out[1 + word] = layout::word(block, word);
        }
        for chunk in 0..8 {
            out[5 + 2 * chunk..][..2].copy_from_slice(&layout::pack_pairs(&block[16..80], chunk));
        }
        out
    });
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    blocks::unpack(packed, out, |block: &[u32; BLOCK_WORDS], chunk| {
        let [d, dmin] = layout::halves(block[0]);
        let factors = layout::half_bits(&block[1..5], chunk).to_le_bytes();
        let pairs = layout::pairs(&block[5 + 2 * chunk..]);
        std::array::from_fn(|q| {
            let byte = factors[q / 4];
            let (scale, min) = (d * f32::from(byte & 15), dmin * f32::from(byte >> 4));
            layout::quad(pairs[q]).map(|q| scale * q - min)
        })
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        let (d, dmin) = (layout::half_at(block, 80), layout::half_at(block, 82));
        let factors = block[i / 16];
        let q = (block[16 + 32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
        (d * f32::from(factors & 15)) * f32::from(q) - dmin * f32::from(factors >> 4)
    });
}
