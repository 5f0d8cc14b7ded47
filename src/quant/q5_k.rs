//! Q5_K: weight = (d * scale) * q - (dmin * minimum).
//!
//! GGUF block of 256: as Q4_K, with 32 bytes of fifth bits before the 128 bytes; bit `c` of byte `j` belongs to weight `j`
//! of chunk `c`.
//! Packed block, 44 words: d and dmin; three words of scales (`layout::pack_scales`); for each chunk a word of fifth
//! bits, spread as in Q5_0, and four words.

use super::{CHUNK_ELEMENTS, Codec, layout};

const BLOCK_BYTES: usize = 176;

pub(super) const CODEC: Codec = Codec {
    name: "Q5_K",
    stem: "q5_k",
    ggml_type: 13,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: BLOCK_BYTES,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/q5_k.wgsl"),
    is_packable: true,
};

const BLOCK_WORDS: usize = 44;
const CHUNK_WORDS: usize = 5;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    let (blocks, _) = gguf.as_chunks::<BLOCK_BYTES>();
    for (block, out) in blocks.iter().zip(packed.as_chunks_mut::<BLOCK_WORDS>().0) {
        out[0] = layout::word(block, 0);
        out[1..4].copy_from_slice(&layout::pack_scales(&block[4..16]));
        for chunk in 0..8 {
            out[4 + CHUNK_WORDS * chunk] =
                (0..8).fold(0, |bits, q| bits | (((layout::word(&block[16..], q) >> chunk) & 0x0101_0101) << q));
        }
        layout::pack_nibble_pairs(&block[48..], |chunk, word, bits| out[5 + CHUNK_WORDS * chunk + word] = bits);
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    let (blocks, _) = packed.as_chunks::<BLOCK_WORDS>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<256>().0) {
        let [d, dmin] = layout::halves(block[0]);
        for (index, chunk) in out.as_chunks_mut::<CHUNK_ELEMENTS>().0.iter_mut().enumerate() {
            let (scale, min) = layout::unpack_scales(&block[1..4], index);
            let (scale, min) = (d * scale, dmin * min);
            let quads = layout::five_bit_quads(&block[4 + CHUNK_WORDS * index..]);
            for (out, quad) in chunk.as_chunks_mut::<4>().0.iter_mut().zip(quads) {
                *out = quad.map(|q| scale * q - min);
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
                let nibble = (block[48 + 32 * (chunk / 2) + j] >> (4 * (chunk % 2))) & 15;
                let q = nibble | (((block[16 + j] >> chunk) & 1) << 4);
                *out = scale * f32::from(q) - min;
            }
        }
    }
}
