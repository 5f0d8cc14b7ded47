//! Q5_0: weight = scale * (q - 16).
//!
//! GGUF block: f16 scale, a word of fifth bits (bit `j` belongs to weight `j`), then 16 bytes as in Q4_0.
//! Packed row: of every block five words, the fifth bits spread so that those of quad `q` are
//! `(word >> q) & 0x01010101`, and the 16 bytes; then the scales, two a word.

use super::{CHUNK_ELEMENTS, Codec, layout};

const BLOCK_BYTES: usize = 22;

pub(super) const CODEC: Codec = Codec {
    name: "Q5_0",
    stem: "q5_0",
    ggml_type: 6,
    block_elements: 32,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/q5_0.wgsl"),
    is_packable: true,
};

const CHUNK_WORDS: usize = 5;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    let (quants, scales) = packed.split_at_mut(CHUNK_WORDS * blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        layout::set_half(scales, index, layout::half_bits_at(block, 0));
        let words = &mut quants[CHUNK_WORDS * index..][..CHUNK_WORDS];
        words[0] = layout::spread_bits(layout::word_at(block, 2));
        for word in 0..4 {
            words[1 + word] = layout::word(&block[6..], word);
        }
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    let (chunks, _) = out.as_chunks_mut::<CHUNK_ELEMENTS>();
    let (quants, scales) = packed.split_at(CHUNK_WORDS * chunks.len());
    for (index, chunk) in chunks.iter_mut().enumerate() {
        let scale = layout::get_half(scales, index);
        let quads = layout::five_bit_quads(&quants[CHUNK_WORDS * index..]);
        for (out, quad) in chunk.as_chunks_mut::<4>().0.iter_mut().zip(quads) {
            *out = quad.map(|q| scale * (q - 16.0));
        }
    }
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<32>().0) {
        let scale = layout::half_at(block, 0);
        let fifth = layout::word_at(block, 2);
        for (j, out) in out.iter_mut().enumerate() {
            let nibble = (block[6 + j % 16] >> (4 * (j / 16))) & 15;
            let q = nibble | (u8::from((fifth >> j) & 1 == 1) << 4);
            *out = scale * f32::from(q.cast_signed() - 16);
        }
    }
}
