//! IQ2_XXS: weight = ((d * (scale + 1/2)) / 4) * m, m one of 8, 25, 43 with a sign, a 4-bit scale per 32 weights.
//!
//! GGUF block of 256: f16 d; then for each chunk four bytes, the octets of the codebook that are the magnitudes of eight
//! weights each, and a word: seven signs for each octet, the eighth making the number of minuses even, and the scale in
//! the top four bits.
//! Packed row: those two words of every chunk, then the d's, two a word.

use super::codebook::{self, IQ2_XXS};
use super::{Codec, blocks, layout};

const BLOCK_BYTES: usize = 66;

pub(super) const CODEC: Codec = Codec {
    name: "IQ2_XXS",
    stem: "iq2_xxs",
    ggml_type: 16,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: Some(|| codebook::octet_words(&IQ2_XXS)),
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/iq2_xxs.wgsl"),
    is_packable: false,
};

const BLOCK_WORDS: usize = 16;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack_split(gguf, packed, 0, |block: &[u8; BLOCK_BYTES]| {
        std::array::from_fn::<_, BLOCK_WORDS, _>(|word| layout::word(&block[2..], word))
    });
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    blocks::unpack_split(packed, out, |block: &[u32; BLOCK_WORDS], d, chunk| {
        let (indices, word) = (block[2 * chunk].to_le_bytes(), block[2 * chunk + 1]);
        let scale = d * (0.125 + 0.25 * f32::from(word.to_le_bytes()[3] >> 4));
        let signs = codebook::chunk_signs(word);
        codebook::octet_weights(indices.map(|index| IQ2_XXS[usize::from(index)]), |digit, i| {
            scale * codebook::signed(codebook::iq2_magnitude(digit), signs, i)
        })
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        let (at, octet, j) = (2 + 8 * (i / 32), i / 8 % 4, i % 8);
        let word = layout::word_at(block, at + 4);
        let seven = (word >> (7 * octet)) & 127;
        let is_negative = if j < 7 { (seven >> j) & 1 == 1 } else { !seven.count_ones().is_multiple_of(2) };
        let digit = codebook::digit(IQ2_XXS[usize::from(block[at + octet])], j);
        let magnitude = [8.0, 25.0, 43.0, 62.0][usize::from(digit)];
        let scale = layout::half_at(block, 0) * (0.5 + f32::from(block[at + 7] >> 4)) * 0.25;
        scale * if is_negative { -magnitude } else { magnitude }
    });
}
