//! IQ2_XS: weight = ((d * (scale + 1/2)) / 4) * m, m one of 8, 25, 43 with a sign, a 4-bit scale per 16 weights.
//!
//! GGUF block of 256: f16 d; then for each eight weights 16 bits: nine for an octet of the codebook, their magnitudes, and
//! seven signs, the eighth making the number of minuses even; then eight bytes of scales, a chunk's first in the low
//! nibble.
//! Packed row: of every block 18 words, then the d's, two a word. The block: the scales; the two words of each chunk.

use super::codebook::{self, IQ2_XS};
use super::{Codec, blocks, layout};

const BLOCK_BYTES: usize = 74;

pub(super) const CODEC: Codec = Codec {
    name: "IQ2_XS",
    stem: "iq2_xs",
    ggml_type: 17,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: Some(|| codebook::octet_words(&IQ2_XS)),
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/iq2_xs.wgsl"),
    is_packable: false,
};

const BLOCK_WORDS: usize = 18;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack_split(gguf, packed, 0, |block: &[u8; BLOCK_BYTES]| {
        std::array::from_fn::<_, BLOCK_WORDS, _>(|word| match word {
            0..2 => layout::word(&block[66..], word),
            _ => layout::word(&block[2..], word - 2),
        })
    });
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    blocks::unpack_split(packed, out, |block: &[u32; BLOCK_WORDS], d, chunk| {
        let scales = block[chunk / 4].to_le_bytes()[chunk % 4];
        let scales = [scales & 15, scales >> 4].map(|scale| d * (0.125 + 0.25 * f32::from(scale)));
        let octets = std::array::from_fn(|octet| layout::half_bits(&block[2 + 2 * chunk..], octet));
        let signs = (0..4)
            .fold(0, |signs, octet| signs | (codebook::eight_signs(u32::from(octets[octet] >> 9)) << (8 * octet)));
        codebook::octet_weights(octets.map(|octet| IQ2_XS[usize::from(octet & 511)]), |digit, i| {
            scales[i / 16] * codebook::signed(codebook::iq2_magnitude(digit), signs, i)
        })
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        let (bits, j) = (layout::half_bits_at(block, 2 + 2 * (i / 8)), i % 8);
        let seven = bits >> 9;
        let is_negative = if j < 7 { (seven >> j) & 1 == 1 } else { !seven.count_ones().is_multiple_of(2) };
        let digit = codebook::digit(IQ2_XS[usize::from(bits & 511)], j);
        let magnitude = [8.0, 25.0, 43.0, 62.0][usize::from(digit)];
        let scale = (block[66 + i / 32] >> (4 * (i / 16 % 2))) & 15;
        let scale = layout::half_at(block, 0) * (0.5 + f32::from(scale)) * 0.25;
        scale * if is_negative { -magnitude } else { magnitude }
    });
}
