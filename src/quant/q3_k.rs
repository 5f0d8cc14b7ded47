//! Q3_K: weight = (d * (scale - 32)) * (q - 4), a scale per 16 weights.
//!
//! GGUF block of 256: 32 bytes of high bits, chunk `c`'s at bit `c` of byte `j`; 64 bytes of pairs as in Q2_K; twelve bytes of
//! 6-bit scales (of scale `i` the low nibble in byte `i % 8`, low for `i < 8`, and the high pair at bit `2 (i / 4)` of byte
//! `8 + i % 4`); f16 d.
//! Packed row: of every block 27 words, then the d's, two a word. The block: the low nibbles of the scales in two words
//! and the high pairs in one, in their order; three words for each chunk (high bits, those of quad `q` being
//! `(word >> q) & 0x01010101`; two of pairs).

use super::{Codec, blocks, layout};

const BLOCK_BYTES: usize = 110;

pub(super) const CODEC: Codec = Codec {
    name: "Q3_K",
    stem: "q3_k",
    ggml_type: 11,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/q3_k.wgsl"),
    is_packable: true,
};

const BLOCK_WORDS: usize = 27;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack_split(gguf, packed, 108, |block: &[u8; BLOCK_BYTES]| {
        let mut out = [0; BLOCK_WORDS];
        for i in 0..16 {
            let scale = u32::from(scale(block, i));
            out[i / 8] |= (scale & 15) << (4 * (i % 8));
            out[2] |= (scale >> 4) << (2 * i);
        }
        for (chunk, out) in out[3..].as_chunks_mut::<3>().0.iter_mut().enumerate() {
            let high = |q| (layout::word(block, q) >> chunk) & 0x0101_0101;
            let [low, high_half] = layout::pack_pairs(&block[32..96], chunk);
            *out = [(0..8).fold(0, |bits, q| bits | (high(q) << q)), low, high_half];
        }
        out
    });
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    blocks::unpack_split(packed, out, |block: &[u32; BLOCK_WORDS], d, chunk| {
        let low = block[chunk / 4].to_le_bytes()[chunk % 4];
        let high = block[2].to_le_bytes()[chunk / 2] >> (4 * (chunk % 2));
        let scales = [(low & 15) | ((high & 3) << 4), (low >> 4) | ((high & 12) << 2)];
        let words = &block[3 + 3 * chunk..];
        let pairs = layout::pairs(&words[1..]);
        std::array::from_fn(|q| {
            let scale = d * (f32::from(scales[q / 4]) - 32.0);
            let bits = ((words[0] >> q) & 0x0101_0101) << 2;
            layout::quad(pairs[q] | bits).map(|q| scale * (q - 4.0))
        })
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        let scale = layout::half_at(block, 108) * (f32::from(scale(block, i / 16)) - 32.0);
        let pair = (block[32 + 32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
        let bit = (block[i % 32] >> (i / 32)) & 1;
        scale * (f32::from(pair | (bit << 2)) - 4.0)
    });
}

/// Scale `i` of a GGUF block, six bits.
fn scale(block: &[u8], i: usize) -> u8 {
    let low = (block[96 + i % 8] >> (4 * (i / 8))) & 15;
    let high = (block[104 + i % 4] >> (2 * (i / 4))) & 3;
    low | (high << 4)
}
