//! IQ1_S: weight = (d * (2 * scale + 1)) * (t + delta), t one of -1, 0, 1, delta an eighth up or down, a 3-bit scale and a
//! delta per 32 weights.
//!
//! GGUF block of 256: f16 d; 32 bytes, the low bits of the octets that are the t of eight weights each; then 16 bits for each
//! chunk: the three high bits of its four octets, the scale, and whether delta is down.
//! Packed row: of every block twelve words, then the d's, two a word. The block: eight words of low bits, one a chunk;
//! the 16 bits of each chunk.

use super::codebook::{self, IQ1};
use super::{Codec, blocks, layout};

const BLOCK_BYTES: usize = 50;

pub(super) const CODEC: Codec = Codec {
    name: "IQ1_S",
    stem: "iq1_s",
    ggml_type: 19,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: Some(|| codebook::octet_words(&IQ1)),
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/iq1_s.wgsl"),
    is_packable: false,
};

const BLOCK_WORDS: usize = 12;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack_split(gguf, packed, 0, |block: &[u8; BLOCK_BYTES]| {
        std::array::from_fn::<_, BLOCK_WORDS, _>(|word| layout::word(&block[2..], word))
    });
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    blocks::unpack_split(packed, out, |block: &[u32; BLOCK_WORDS], d, chunk| {
        let bits = layout::half_bits(&block[8..], chunk);
        let [_, top] = bits.to_le_bytes();
        let scale = d * (2.0 * f32::from((top >> 4) & 7) + 1.0);
        let offset = if top >= 128 { -1.125 } else { -0.875 };
        let low = block[chunk].to_le_bytes();
        let octets =
            std::array::from_fn(|octet| IQ1[usize::from(u16::from(low[octet]) | ((bits >> (3 * octet)) & 7) << 8)]);
        codebook::octet_weights(octets, |digit, _| scale * (digit + offset))
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        let octet = i / 8;
        let bits = layout::half_bits_at(block, 34 + 2 * (i / 32));
        let index = u16::from(block[2 + octet]) | ((bits >> (3 * (octet % 4))) & 7) << 8;
        let t = f32::from(codebook::digit(IQ1[usize::from(index)], i % 8)) - 1.0;
        let scale = layout::half_at(block, 0) * f32::from(2 * ((bits >> 12) & 7) + 1);
        scale * (t + if bits & 0x8000 == 0 { 0.125 } else { -0.125 })
    });
}
