//! TQ1_0: weight = d * (q - 1), q in 0..3.
//!
//! GGUF block of 256: 52 bytes of up to five digits of base 3, f16 d. A byte is a fraction of 256ths, so that multiplying it
//! by 3 moves the next digit above the point. The weights of digit `n` in the first 32 bytes come first, 32 for each `n`;
//! then 16 for each digit of the next 16 bytes; then four for each of four digits of the last four bytes.
//! Packed row: as of TQ2_0, two bits a weight instead of 1.6: that decodes by shifts alone, and memory grows by 22 %.

use super::{Codec, blocks, layout, tq2_0};

const BLOCK_BYTES: usize = 54;

pub(super) const CODEC: Codec = Codec {
    name: "TQ1_0",
    stem: "tq1_0",
    ggml_type: 34,
    block_elements: 256,
    block_bytes: BLOCK_BYTES,
    packed_block_bytes: 66,
    codebook: None,
    pack_row,
    unpack_row: tq2_0::unpack_row,
    dequantize,
    wgsl: include_str!("../../shaders/quant/tq1_0.wgsl"),
    is_packable: false,
};

const BLOCK_WORDS: usize = 16;

fn pack_row(gguf: &[u8], packed: &mut [u32]) {
    blocks::pack_split(gguf, packed, 52, |block: &[u8; BLOCK_BYTES]| {
        let mut out = [0; BLOCK_WORDS];
        for i in 0..256 {
            // Weight i is in byte i % 4 of quad i / 4; four quads share a word.
            out[i / 16] |= u32::from(digit(block, i)) << (8 * (i % 4) + 2 * (i / 4 % 4));
        }
        out
    });
}

fn dequantize(gguf: &[u8], out: &mut [f32]) {
    blocks::dequantize(gguf, out, |block: &[u8; BLOCK_BYTES], i| {
        layout::half_at(block, 52) * (f32::from(digit(block, i)) - 1.0)
    });
}

/// The base-3 digit of weight `i`.
fn digit(block: &[u8], i: usize) -> u8 {
    let (byte, n) = match i {
        0..160 => (i % 32, i / 32),
        160..240 => (32 + i % 16, (i - 160) / 16),
        _ => (48 + i % 4, (i - 240) / 4),
    };
    let fraction = block[byte].wrapping_mul([1, 3, 9, 27, 81][n]);
    let [_, digit] = (u16::from(fraction) * 3).to_le_bytes();
    digit
}
