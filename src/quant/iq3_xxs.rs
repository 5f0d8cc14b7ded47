//! IQ3_XXS: weight = ((d * (scale + 1/2)) / 2) * m, m one of eight magnitudes with a sign, a 4-bit scale per 32 weights.
//!
//! GGUF block of 256: f16 d; 64 bytes, the quads of the codebook that are the magnitudes of four weights each; then a word
//! for each chunk: seven signs for each eight weights, the eighth making the number of minuses even, and the scale in the
//! top four bits.
//! Packed row: three words of every chunk (two of quads, that of the signs), then the d's, two a word.

use super::codebook::{self, IQ3_XXS};
use super::{Codec, blocks, layout};

const BLOCK_BYTES: usize = 98;

pub(super) const CODEC: Codec = Codec {
    name: "IQ3_XXS",
    stem: "iq3_xxs",
    ggml_type: 18,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: Some(|| codebook::quad_words(&IQ3_XXS, magnitude)),
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/iq3_xxs.wgsl"),
    is_packable: false,
};

const BLOCK_WORDS: usize = 24;

/// What a digit of the codebook stands for: the odd multiples of 4, but for the last one.
fn magnitude(digit: u16) -> u8 {
    [4, 12, 20, 28, 36, 44, 52, 62][usize::from(digit & 7)]
}

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack_split(gguf, packed, 0, |block: &[u8; BLOCK_BYTES]| {
        std::array::from_fn::<_, BLOCK_WORDS, _>(|word| match word % 3 {
            2 => layout::word(&block[66..], word / 3),
            part => layout::word(&block[2..], word / 3 * 2 + part),
        })
    });
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    blocks::unpack_split(packed, out, |block: &[u32; BLOCK_WORDS], d, chunk| {
        let words = &block[3 * chunk..][..3];
        let scale = d * (0.25 + 0.5 * f32::from(words[2].to_le_bytes()[3] >> 4));
        let signs = codebook::chunk_signs(words[2]);
        let quads = std::array::from_fn(|q| IQ3_XXS[usize::from(words[q / 4].to_le_bytes()[q % 4])]);
        codebook::quad_weights(quads, magnitude, |magnitude, i| scale * codebook::signed(magnitude, signs, i))
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        let (at, octet, j) = (66 + 4 * (i / 32), i / 8 % 4, i % 8);
        let seven = (layout::word_at(block, at) >> (7 * octet)) & 127;
        let is_negative = if j < 7 { (seven >> j) & 1 == 1 } else { !seven.count_ones().is_multiple_of(2) };
        let digits = codebook::digits(IQ3_XXS[usize::from(block[2 + i / 4])]);
        let magnitude = f32::from(magnitude(digits[i % 4]));
        let scale = layout::half_at(block, 0) * (0.5 + f32::from(block[at + 3] >> 4)) * 0.5;
        scale * if is_negative { -magnitude } else { magnitude }
    });
}
