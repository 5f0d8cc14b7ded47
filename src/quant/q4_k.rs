//! Q4_K: weight = (d * scale) * q - (dmin * minimum).
//!
//! GGUF block of 256: f16 d, f16 dmin, twelve bytes with a 6-bit scale and minimum for each of eight chunks, then 128
//! bytes; byte `32 p + j` has weight `j` of chunk `2 p` in its low nibble and weight `j` of chunk `2 p + 1` in its high one.
//! Packed block, 36 words: d and dmin; three words of scales (`layout::pack_scales`); four words for each chunk.

use super::{CHUNK_ELEMENTS, Codec, layout};

const BLOCK_BYTES: usize = 144;

pub(super) const CODEC: Codec = Codec {
    name: "Q4_K",
    stem: "q4_k",
    ggml_type: 12,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/q4_k.wgsl"),
    is_packable: true,
};

const BLOCK_WORDS: usize = 36;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(packed.as_chunks_mut::<BLOCK_WORDS>().0) {
        out[0] = layout::word(block, 0);
        out[1..4].copy_from_slice(&layout::pack_scales(&block[4..16]));
        layout::pack_nibble_pairs(&block[16..], |chunk, word, bits| out[4 + 4 * chunk + word] = bits);
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    let (blocks, _) = packed.as_chunks::<BLOCK_WORDS>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<256>().0) {
        let [d, dmin] = layout::halves(block[0]);
        for (index, chunk) in out.as_chunks_mut::<CHUNK_ELEMENTS>().0.iter_mut().enumerate() {
            let (scale, min) = layout::unpack_scales(&block[1..4], index);
            let (scale, min) = (d * scale, dmin * min);
            let nibbles = layout::nibbles(&block[4 + 4 * index..]);
            for (quad, bytes) in chunk.as_chunks_mut::<4>().0.iter_mut().zip(nibbles) {
                *quad = layout::quad(bytes).map(|q| scale * q - min);
            }
        }
    }
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<256>().0) {
        let (d, dmin) = (layout::half_at(block, 0), layout::half_at(block, 2));
        for (chunk, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (scale, min) = layout::scale_min(&block[4..16], chunk);
            let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
            for (j, out) in out.iter_mut().enumerate() {
                let q = (block[16 + 32 * (chunk / 2) + j] >> (4 * (chunk % 2))) & 15;
                *out = scale * f32::from(q) - min;
            }
        }
    }
}
