//! IQ3_S: weight = (d * (2 * scale + 1)) * m, m odd, 1 to 15, with a sign, a 4-bit scale per 32 weights.
//!
//! GGUF block of 256: f16 d; 64 bytes, the low bits of the quads that are the magnitudes of four weights each; eight bytes, the
//! ninth bits of a chunk's quads; 32 bytes of signs, a bit a weight; four bytes of scales, the even chunk's in the low
//! nibble.
//! Packed row: of every block 27 words, then the d's, two a word. The block: the scales; two words of ninth bits, a byte
//! a chunk; three words for each chunk (two of low bits, one of signs).

use super::codebook::{self, IQ3_S};
use super::{Codec, blocks, layout};

const BLOCK_BYTES: usize = 110;

pub(super) const CODEC: Codec = Codec {
    name: "IQ3_S",
    stem: "iq3_s",
    ggml_type: 21,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: Some(|| codebook::quad_words(&IQ3_S, magnitude)),
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/iq3_s.wgsl"),
    is_packable: false,
};

const BLOCK_WORDS: usize = 27;

/// What a digit of the codebook stands for.
fn magnitude(digit: u16) -> u8 {
    [1, 3, 5, 7, 9, 11, 13, 15][usize::from(digit & 7)]
}

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack_split(gguf, packed, 0, |block: &[u8; BLOCK_BYTES]| {
        std::array::from_fn::<_, BLOCK_WORDS, _>(|word| match word {
            0 => layout::word_at(block, 106),
            1..3 => layout::word(&block[66..], word - 1),
            _ if word % 3 == 2 => layout::word(&block[74..], word / 3 - 1),
            _ => layout::word(&block[2..], (word / 3 - 1) * 2 + word % 3),
        })
    });
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    blocks::unpack_split(packed, out, |block: &[u32; BLOCK_WORDS], d, chunk| {
        let [scale, ..] = ((block[0] >> (4 * chunk)) & 15).to_le_bytes();
        let scale = d * (2.0 * f32::from(scale) + 1.0);
        let ninth = block[1 + chunk / 4].to_le_bytes()[chunk % 4];
        let words = &block[3 + 3 * chunk..][..3];
        let quads = std::array::from_fn(|q| {
            let low = words[q / 4].to_le_bytes()[q % 4];
            IQ3_S[usize::from(u16::from_le_bytes([low, (ninth >> q) & 1]))]
        });
        codebook::quad_weights(quads, magnitude, |magnitude, i| scale * codebook::signed(magnitude, words[2], i))
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        let (chunk, quad) = (i / 32, i / 4);
        let ninth = (block[66 + chunk] >> (quad % 8)) & 1;
        let index = usize::from(block[2 + quad]) | (usize::from(ninth) << 8);
        let magnitude = f32::from(magnitude(codebook::digits(IQ3_S[index])[i % 4]));
        let scale = (block[106 + chunk / 2] >> (4 * (chunk % 2))) & 15;
        let scale = layout::half_at(block, 0) * f32::from(2 * scale + 1);
        scale * if (block[74 + i / 8] >> (i % 8)) & 1 == 1 { -magnitude } else { magnitude }
    });
}
