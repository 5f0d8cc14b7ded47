//! IQ2_S: weight = ((d * (scale + 1/2)) / 4) * m, m one of 8, 25, 43 with a sign, a 4-bit scale per 16 weights.
//!
//! GGUF block of 256: f16 d; 32 bytes, the low bits of the octets that are the magnitudes of eight weights each; 32 bytes of
//! signs, a bit a weight; eight bytes, the high pairs of a chunk's four octets; eight bytes of scales, a chunk's first in
//! the low nibble.
//! Packed row: of every block 20 words, then the d's, two a word. The block: for each chunk 16 bits, its scales in the
//! low byte and the high pairs above; two words for each chunk (low bits, signs).

use super::codebook::{self, IQ2_S};
use super::{Codec, blocks, layout};

const BLOCK_BYTES: usize = 82;

pub(super) const CODEC: Codec = Codec {
    name: "IQ2_S",
    stem: "iq2_s",
    ggml_type: 22,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: Some(|| codebook::octet_words(&IQ2_S)),
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/iq2_s.wgsl"),
    is_packable: false,
};

const BLOCK_WORDS: usize = 20;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack_split(gguf, packed, 0, |block: &[u8; BLOCK_BYTES]| {
        let mut out = [0; BLOCK_WORDS];
        for chunk in 0..8 {
            layout::set_half(&mut out, chunk, u16::from_le_bytes([block[74 + chunk], block[66 + chunk]]));
            out[4 + 2 * chunk] = layout::word(&block[2..], chunk);
            out[5 + 2 * chunk] = layout::word(&block[34..], chunk);
        }
        out
    });
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    blocks::unpack_split(packed, out, |block: &[u32; BLOCK_WORDS], d, chunk| {
        let [scales, high] = layout::half_bits(block, chunk).to_le_bytes();
        let scales = [scales & 15, scales >> 4].map(|scale| d * (0.125 + 0.25 * f32::from(scale)));
        let (low, signs) = (block[4 + 2 * chunk].to_le_bytes(), block[5 + 2 * chunk]);
        let octets = std::array::from_fn(|octet| {
            let high = (high >> (2 * octet)) & 3;
            IQ2_S[usize::from(u16::from_le_bytes([low[octet], high]))]
        });
        codebook::octet_weights(octets, |digit, i| {
            scales[i / 16] * codebook::signed(codebook::iq2_magnitude(digit), signs, i)
        })
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        let (chunk, octet, j) = (i / 32, i / 8, i % 8);
        let high = (block[66 + chunk] >> (2 * (octet % 4))) & 3;
        let index = usize::from(block[2 + octet]) | (usize::from(high) << 8);
        let magnitude = [8.0, 25.0, 43.0, 62.0][usize::from(codebook::digit(IQ2_S[index], j))];
        let scale = (block[74 + chunk] >> (4 * (i / 16 % 2))) & 15;
        let scale = layout::half_at(block, 0) * (0.5 + f32::from(scale)) * 0.25;
        scale * if (block[34 + octet] >> j) & 1 == 1 { -magnitude } else { magnitude }
    });
}
