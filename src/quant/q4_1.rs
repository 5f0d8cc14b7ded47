//! Q4_1: weight = scale * q + minimum.
//!
//! GGUF block: f16 scale, f16 minimum, then 16 bytes as in Q4_0.
//! Packed row: the same, five words a block.

use super::{CHUNK_ELEMENTS, Codec, layout};

const BLOCK_BYTES: usize = 20;

pub(super) const CODEC: Codec = Codec {
    name: "Q4_1",
    stem: "q4_1",
    ggml_type: 3,
    block_elements: 32,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/q4_1.wgsl"),
    is_packable: true,
};

const BLOCK_WORDS: usize = 5;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    for (index, out) in packed.iter_mut().enumerate() {
        *out = layout::word(gguf, index);
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    let (blocks, _) = packed.as_chunks::<BLOCK_WORDS>();
    for (block, chunk) in blocks.iter().zip(out.as_chunks_mut::<CHUNK_ELEMENTS>().0) {
        let [scale, min] = layout::halves(block[0]);
        for (quad, bytes) in chunk.as_chunks_mut::<4>().0.iter_mut().zip(layout::nibbles(&block[1..])) {
            *quad = layout::quad(bytes).map(|q| scale * q + min);
        }
    }
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<32>().0) {
        let (scale, min) = (layout::half_at(block, 0), layout::half_at(block, 2));
        for (j, &byte) in block[4..].iter().enumerate() {
            out[j] = scale * f32::from(byte & 15) + min;
            out[j + 16] = scale * f32::from(byte >> 4) + min;
        }
    }
}
