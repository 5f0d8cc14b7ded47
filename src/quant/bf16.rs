//! BF16: two weights per word, the earlier one in the low half.

use super::{Codec, layout};
use half::bf16;

pub(super) const CODEC: Codec = Codec {
    name: "BF16",
    stem: "bf16",
    ggml_type: 30,
    block_elements: 1,
    block_bytes: 2,
    packed_block_bytes: 2,
    codebook: None,
    pack_row,
    unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/bf16.wgsl"),
    is_packable: false,
};

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    for (index, out) in packed.iter_mut().enumerate() {
        *out = layout::word(gguf, index);
    }
}

fn unpack_row(packed: &[u32], out: &mut [f32]) {
    for (out, &word) in out.as_chunks_mut::<2>().0.iter_mut().zip(packed) {
        *out = [f32::from_bits(word << 16), f32::from_bits(word & 0xffff_0000)];
    }
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    for (out, bytes) in out.iter_mut().zip(gguf.as_chunks::<2>().0) {
        *out = bf16::from_le_bytes(*bytes).to_f32();
    }
}
