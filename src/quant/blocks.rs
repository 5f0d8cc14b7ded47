//! Walking a row of 256-weight blocks.

use super::{CHUNK_ELEMENTS, layout};

/// Weights of a block.
const BLOCK_ELEMENTS: usize = 256;

/// The weights of a chunk.
pub(super) type Quads = [[f32; 4]; 8];

/// Packs block by block.
pub(super) fn pack<const BYTES: usize, const WORDS: usize>(
    gguf: &[u8],
    packed: &mut [u32],
    block: impl Fn(&[u8; BYTES]) -> [u32; WORDS],
) {
    for (gguf, out) in gguf.as_chunks::<BYTES>().0.iter().zip(packed.as_chunks_mut::<WORDS>().0) {
        *out = block(gguf);
    }
}

/// Packs block by block, but the f16 at byte `factor_at` of each goes to a section after all blocks.
pub(super) fn pack_split<const BYTES: usize, const WORDS: usize>(
    gguf: &[u8],
    packed: &mut [u32],
    factor_at: usize,
    block: impl Fn(&[u8; BYTES]) -> [u32; WORDS],
) {
    let (blocks, _) = gguf.as_chunks::<BYTES>();
    let (words, factors) = packed.split_at_mut(WORDS * blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        layout::set_half(factors, index, layout::half_bits_at(block, factor_at));
    }
    pack(gguf, words, block);
}

/// Decodes chunk by chunk what [`pack`] wrote: `chunk(block, number)`.
pub(super) fn unpack<const WORDS: usize>(
    packed: &[u32],
    out: &mut [f32],
    chunk: impl Fn(&[u32; WORDS], usize) -> Quads,
) {
    let (blocks, _) = packed.as_chunks::<WORDS>();
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<BLOCK_ELEMENTS>().0) {
        for (number, out) in out.as_chunks_mut::<CHUNK_ELEMENTS>().0.iter_mut().enumerate() {
            out.copy_from_slice(chunk(block, number).as_flattened());
        }
    }
}

/// Decodes chunk by chunk what [`pack_split`] wrote: `chunk(block, factor, number)`.
pub(super) fn unpack_split<const WORDS: usize>(
    packed: &[u32],
    out: &mut [f32],
    chunk: impl Fn(&[u32; WORDS], f32, usize) -> Quads,
) {
    let (blocks, factors) = packed.split_at(out.len() / BLOCK_ELEMENTS * WORDS);
    for (index, out) in out.as_chunks_mut::<BLOCK_ELEMENTS>().0.iter_mut().enumerate() {
        let factor = layout::get_half(factors, index);
        unpack(&blocks[WORDS * index..][..WORDS], out, |block, number| chunk(block, factor, number));
    }
}

/// Decodes GGUF bytes weight by weight: `weight(block, number)`.
pub(super) fn dequantize<const BYTES: usize>(
    gguf: &[u8],
    out: &mut [f32],
    weight: impl Fn(&[u8; BYTES], usize) -> f32,
) {
    for (block, out) in gguf.as_chunks::<BYTES>().0.iter().zip(out.as_chunks_mut::<BLOCK_ELEMENTS>().0) {
        for (number, out) in out.iter_mut().enumerate() {
            *out = weight(block, number);
        }
    }
}
