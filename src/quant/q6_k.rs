//! Q6_K: weight = (d * scale) * (q - 32), a scale per 16 weights.
//!
//! GGUF block of 256: 128 bytes of low nibbles, 64 bytes of high pairs, 16 signed scales, f16 d. Chunk `c` is chunk `i = c % 4`
//! of half `h = c / 4`; of its weight `j`, the nibble is in byte `64 h + 32 (i % 2) + j`, low for `i < 2`, and the pair at
//! bit `2 i` of byte `32 h + j`.
//! Packed row: of every block 52 words, the scales in four and each chunk in six (four of nibbles; two of pairs, those of
//! quad `q` being `(word[q / 4] >> 2 (q % 4)) & 0x03030303`); then the d's, two a word.

use super::{CHUNK_ELEMENTS, Codec, layout};

const BLOCK_BYTES: usize = 210;

pub(super) const CODEC: Codec = Codec {
    name: "Q6_K",
    stem: "q6_k",
    ggml_type: 14,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/q6_k.wgsl"),
    is_packable: true,
};

const BLOCK_WORDS: usize = 52;
const CHUNK_WORDS: usize = 6;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    let (quants, scales) = packed.split_at_mut(BLOCK_WORDS * blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        layout::set_half(scales, index, layout::half_bits_at(block, 208));
        let out = &mut quants[BLOCK_WORDS * index..][..BLOCK_WORDS];
        let (scales_out, chunks) = out.split_at_mut(4);
        scales_out.copy_from_slice(&std::array::from_fn::<_, 4, _>(|word| layout::word(&block[192..], word)));
        for (chunk, words) in chunks.as_chunks_mut::<CHUNK_WORDS>().0.iter_mut().enumerate() {
            let (half, i) = (chunk / 4, chunk % 4);
            let low = &block[64 * half + 32 * (i % 2)..];
            let nibbles = |q| (layout::word(low, q) >> (4 * (i / 2))) & 0x0f0f_0f0f;
            let high = &block[128 + 32 * half..];
            let pairs = |q| (layout::word(high, q) >> (2 * i)) & 0x0303_0303;
            *words = std::array::from_fn(|word| match word {
                0..4 => nibbles(word) | (nibbles(word + 4) << 4),
                _ => (0..4).fold(0, |bits, q| bits | (pairs(4 * (word - 4) + q) << (2 * q))),
            });
        }
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    let (out, _) = out.as_chunks_mut::<256>();
    let (quants, factors) = packed.split_at(BLOCK_WORDS * out.len());
    for (index, (block, out)) in quants.as_chunks::<BLOCK_WORDS>().0.iter().zip(out).enumerate() {
        let d = layout::get_half(factors, index);
        for (c, chunk) in out.as_chunks_mut::<CHUNK_ELEMENTS>().0.iter_mut().enumerate() {
            let [s0, s1, s2, s3] = block[c / 2].to_le_bytes();
            let scales = if c % 2 == 0 { [s0, s1] } else { [s2, s3] };
            let words = &block[4 + CHUNK_WORDS * c..];
            let nibbles = layout::nibbles(words);
            for (q, quad) in chunk.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                let scale = d * f32::from(scales[q / 4].cast_signed());
                let pairs = (words[4 + q / 4] >> (2 * (q % 4))) & 0x0303_0303;
                *quad = layout::quad(nibbles[q] | (pairs << 4)).map(|q| scale * (q - 32.0));
            }
        }
    }
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<256>().0) {
        let d = layout::half_at(block, 208);
        for (index, out) in out.iter_mut().enumerate() {
            let (half, i, j) = (index / 128, index / 32 % 4, index % 32);
            let nibble = (block[64 * half + 32 * (i % 2) + j] >> (4 * (i / 2))) & 15;
            let pair = (block[128 + 32 * half + j] >> (2 * i)) & 3;
            let scale = d * f32::from(block[192 + index / 16].cast_signed());
            *out = scale * f32::from((nibble | (pair << 4)).cast_signed() - 32);
        }
    }
}
