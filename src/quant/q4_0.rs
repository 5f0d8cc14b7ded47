//! Q4_0: weight = scale * (q - 8).
//!
//! GGUF block: f16 scale, then 16 bytes; byte `j` has weight `j` in its low nibble and weight `j + 16` in its high one.
//! Packed row: those 16 bytes of every block as four words each, then the scales, two a word.

use super::{CHUNK_ELEMENTS, Codec, layout};

const BLOCK_BYTES: usize = 18;

pub(super) const CODEC: Codec = Codec {
    name: "Q4_0",
    stem: "q4_0",
    ggml_type: 2,
    block_elements: 32,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/q4_0.wgsl"),
    is_packable: true,
};

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    let (quants, scales) = packed.split_at_mut(4 * blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        layout::set_half(scales, index, layout::half_bits_at(block, 0));
        for word in 0..4 {
            quants[4 * index + word] = layout::word(&block[2..], word);
        }
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    let (chunks, _) = out.as_chunks_mut::<CHUNK_ELEMENTS>();
    let (quants, scales) = packed.split_at(4 * chunks.len());
    for (index, chunk) in chunks.iter_mut().enumerate() {
        let scale = layout::get_half(scales, index);
        let nibbles = layout::nibbles(&quants[4 * index..]);
        for (quad, bytes) in chunk.as_chunks_mut::<4>().0.iter_mut().zip(nibbles) {
            *quad = layout::quad(bytes).map(|q| scale * (q - 8.0));
        }
    }
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<32>().0) {
        let scale = layout::half_at(block, 0);
        for (j, &byte) in block[2..].iter().enumerate() {
            out[j] = scale * f32::from((byte & 15).cast_signed() - 8);
            out[j + 16] = scale * f32::from((byte >> 4).cast_signed() - 8);
        }
    }
}
