//! Q8_0: weight = scale * q, q signed.
//!
//! GGUF block: f16 scale, then 32 signed bytes.
//! Packed row: those bytes of every block as eight words each, then the scales, two a word.

use super::{CHUNK_ELEMENTS, Codec, layout};

const BLOCK_BYTES: usize = 34;

pub(super) const CODEC: Codec = Codec {
    name: "Q8_0",
    stem: "q8_0",
    ggml_type: 8,
    block_elements: 32,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/q8_0.wgsl"),
    is_packable: true,
};

const CHUNK_WORDS: usize = 8;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    let (quants, scales) = packed.split_at_mut(CHUNK_WORDS * blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        layout::set_half(scales, index, layout::half_bits_at(block, 0));
        for word in 0..CHUNK_WORDS {
            quants[CHUNK_WORDS * index + word] = layout::word(&block[2..], word);
        }
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    let (chunks, _) = out.as_chunks_mut::<CHUNK_ELEMENTS>();
    let (quants, scales) = packed.split_at(CHUNK_WORDS * chunks.len());
    for (index, chunk) in chunks.iter_mut().enumerate() {
        let scale = layout::get_half(scales, index);
        for (quad, word) in chunk.as_chunks_mut::<4>().0.iter_mut().zip(&quants[CHUNK_WORDS * index..]) {
            *quad = word.to_le_bytes().map(|byte| scale * f32::from(byte.cast_signed()));
        }
    }
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<32>().0) {
        let scale = layout::half_at(block, 0);
        for (out, byte) in out.iter_mut().zip(&block[2..]) {
            *out = scale * f32::from(byte.cast_signed());
        }
    }
}
