//! F32: the words of the file.

use super::{Codec, layout};

pub(super) const CODEC: Codec = Codec {
    name: "F32",
    stem: "f32",
    ggml_type: 0,
    block_elements: 1,
    block_bytes: 4,
    packed_block_bytes: 4,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/f32.wgsl"),
    is_packable: false,
};

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    for (index, out) in packed.iter_mut().enumerate() {
        *out = layout::word(gguf, index);
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    for (out, &word) in out.iter_mut().zip(packed) {
        *out = f32::from_bits(word);
    }
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    for (out, bytes) in out.iter_mut().zip(gguf.as_chunks::<4>().0) {
        *out = f32::from_le_bytes(*bytes);
    }
}
