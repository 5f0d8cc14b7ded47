//! Q5_1: weight = scale * q + minimum.
//!
//! GGUF block: f16 scale, f16 minimum, a word of fifth bits (bit `j` belongs to weight `j`), 16 bytes as in Q4_0.
//! Packed row: the same, six words a block, with the fifth bits spread as in Q5_0.

use super::{CHUNK_ELEMENTS, Codec, layout};

const BLOCK_BYTES: usize = 24;

pub(super) const CODEC: Codec = Codec {
    name: "Q5_1",
    stem: "q5_1",
    ggml_type: 7,
    block_elements: 32,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/q5_1.wgsl"),
    is_packable: true,
};

const BLOCK_WORDS: usize = 6;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(packed.as_chunks_mut::<BLOCK_WORDS>().0) {
        *out = std::array::from_fn(|word| layout::word(block, word));
        out[1] = layout::spread_bits(out[1]);
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    let (blocks, _) = packed.as_chunks::<BLOCK_WORDS>();
    for (block, chunk) in blocks.iter().zip(out.as_chunks_mut::<CHUNK_ELEMENTS>().0) {
        let [scale, min] = layout::halves(block[0]);
        for (out, quad) in chunk.as_chunks_mut::<4>().0.iter_mut().zip(layout::five_bit_quads(&block[1..])) {
            *out = quad.map(|q| scale * q + min);
        }
    }
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<32>().0) {
        let (scale, min) = (layout::half_at(block, 0), layout::half_at(block, 2));
        let fifth = layout::word_at(block, 4);
        for (j, out) in out.iter_mut().enumerate() {
            let nibble = (block[8 + j % 16] >> (4 * (j / 16))) & 15;
            let q = nibble | (u8::from((fifth >> j) & 1 == 1) << 4);
            *out = scale * f32::from(q) + min;
        }
    }
}
