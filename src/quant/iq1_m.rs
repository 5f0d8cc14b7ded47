//! IQ1_M: weight = (d * (2 * scale + 1)) * (t + delta), t one of -1, 0, 1, delta an eighth up or down, a 3-bit scale per 16
//! weights and a delta per eight.
//!
//! GGUF block of 256: 32 bytes, the low bits of the octets that are the t of eight weights each; 16 bytes, a nibble an octet:
//! its three high bits, and whether delta is down; four times 16 bits: four scales, and at the top a nibble of the f16
//! d, its lowest first.
//! Packed block: the same, 14 words.

use super::codebook::{self, IQ1};
use super::{Codec, blocks, layout};
use half::f16;

const BLOCK_BYTES: usize = 56;

pub(super) const CODEC: Codec = Codec {
    name: "IQ1_M",
    stem: "iq1_m",
    ggml_type: 29,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: Some(|| codebook::octet_words(&IQ1)),
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/iq1_m.wgsl"),
    is_packable: false,
};

const BLOCK_WORDS: usize = 14;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack(gguf, packed, |block: &[u8; BLOCK_BYTES]| {
        std::array::from_fn::<_, BLOCK_WORDS, _>(|word| layout::word(block, word))
    });
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    blocks::unpack(packed, out, |block: &[u32; BLOCK_WORDS], chunk| {
        let bits = layout::half_bits(&block[8..], chunk);
        let low = block[chunk].to_le_bytes();
        let octets =
            std::array::from_fn(|octet| IQ1[usize::from(u16::from(low[octet]) | ((bits >> (4 * octet)) & 7) << 8)]);
        let d = (0..4).fold(0, |d, nibble| d | (layout::half_bits(&block[12..], nibble) >> 12) << (4 * nibble));
        let d = f16::from_bits(d).to_f32();
        let scales = layout::half_bits(&block[12..], chunk / 2) >> (6 * (chunk % 2));
        let scales = [scales & 7, (scales >> 3) & 7].map(|scale| d * (2.0 * f32::from(scale) + 1.0));
        codebook::octet_weights(octets, |digit, i| {
            let is_down = (bits >> (4 * (i / 8) + 3)) & 1 == 1;
            scales[i / 16] * (digit + if is_down { -1.125 } else { -0.875 })
        })
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        let [a, b, c, d] = [48, 50, 52, 54].map(|at| layout::half_bits_at(block, at));
        let factor = f16::from_bits((a >> 12) | ((b >> 12) << 4) | ((c >> 12) << 8) | ((d >> 12) << 12)).to_f32();
        let group = i / 16;
        let scale = ([a, b, c, d][group / 4] >> (3 * (group % 4))) & 7;
        let octet = i / 8;
        let nibble = (block[32 + octet / 2] >> (4 * (octet % 2))) & 15;
        let index = usize::from(block[octet]) | (usize::from(nibble & 7) << 8);
        let t = f32::from(codebook::digit(IQ1[index], i % 8)) - 1.0;
        (factor * f32::from(2 * scale + 1)) * (t + if nibble & 8 == 0 { 0.125 } else { -0.125 })
    });
}
