//! Helpers that the packed layouts share.

use half::f16;

/// The little-endian word at byte `4 * index`.
pub(super) fn word(bytes: &[u8], index: usize) -> u32 {
    let at = 4 * index;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The word at byte `at`.
pub(super) fn word_at(bytes: &[u8], at: usize) -> u32 {
    word(&bytes[at..], 0)
}

/// The bits of the f16 at byte `at`.
pub(super) fn half_bits_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The f16 at byte `at`.
pub(super) fn half_at(bytes: &[u8], at: usize) -> f32 {
    f16::from_bits(half_bits_at(bytes, at)).to_f32()
}

/// Both f16 of a word, low half first.
pub(super) fn halves(word: u32) -> [f32; 2] {
    let [a, b, c, d] = word.to_le_bytes();
    [f16::from_le_bytes([a, b]).to_f32(), f16::from_le_bytes([c, d]).to_f32()]
}

/// Writes 16 bits into half `index` of a section. Halves are written in ascending order: an even one clears its word.
pub(super) fn set_half(section: &mut [u32], index: usize, bits: u16) {
    let word = &mut section[index / 2];
    if index.is_multiple_of(2) {
        *word = u32::from(bits);
    } else {
        *word |= u32::from(bits) << 16;
    }
}

/// The f16 in half `index` of a section.
pub(super) fn get_half(section: &[u32], index: usize) -> f32 {
    halves(section[index / 2])[index % 2]
}

/// The four bytes of a word, as a quad of weights.
pub(super) fn quad(word: u32) -> [f32; 4] {
    word.to_le_bytes().map(f32::from)
}

/// Splits the words of a 4-bit part into the nibbles of its eight quads, one per byte: word `w` has quad `w` in its
/// low nibbles and quad `w + 4` in its high ones.
pub(super) fn nibbles(words: &[u32]) -> [u32; 8] {
    std::array::from_fn(|quad| (words[quad % 4] >> (4 * (quad / 4))) & 0x0f0f_0f0f)
}

/// Rearranges fifth bits from GGUF's order (bit `j` belongs to weight `j`) so that those of quad `q` are
/// `(word >> q) & 0x01010101`.
pub(super) fn spread_bits(bits: u32) -> u32 {
    // The product puts a copy of the nibble at bits 0, 7, 14, 21; of these, bit i of the nibble is wanted at bit 8 i.
    (0..8).fold(0, |word, q| word | (((((bits >> (4 * q)) & 15) * 0x0020_4081) & 0x0101_0101) << q))
}

/// The values 0..32 of a chunk's quads from its five words: spread fifth bits, then the 4-bit part.
pub(super) fn five_bit_quads(words: &[u32]) -> [[f32; 4]; 8] {
    let low = nibbles(&words[1..5]);
    std::array::from_fn(|q| quad(low[q] | (((words[0] >> q) & 0x0101_0101) << 4)))
}

/// Packs the scales and minimums of a Q4_K or Q5_K block: the low four bits of the scales in word 0 and of the
/// minimums in word 1, a nibble per chunk; the high two bits of both in word 2, scale first.
pub(super) fn pack_scales(gguf: &[u8]) -> [u32; 3] {
    let mut words = [0; 3];
    for chunk in 0..8 {
        let (scale, min) = scale_min(gguf, chunk);
        let (scale, min) = (u32::from(scale), u32::from(min));
        words[0] |= (scale & 15) << (4 * chunk);
        words[1] |= (min & 15) << (4 * chunk);
        words[2] |= ((scale >> 4) | ((min >> 4) << 2)) << (4 * chunk);
    }
    words
}

/// The inverse of [`pack_scales`] for one chunk: scale and minimum.
pub(super) fn unpack_scales(words: &[u32], chunk: usize) -> (f32, f32) {
    let shift = 4 * chunk;
    let high = words[2] >> shift;
    let scale = ((words[0] >> shift) & 15) | ((high & 3) << 4);
    let min = ((words[1] >> shift) & 15) | ((high & 12) << 2);
    #[allow(clippy::cast_precision_loss, reason = "six bits")]
    (scale as f32, min as f32)
}

/// Six-bit scale and minimum of a chunk from the twelve bytes of a GGUF Q4_K or Q5_K block.
pub(super) fn scale_min(gguf: &[u8], chunk: usize) -> (u8, u8) {
    if chunk < 4 {
        (gguf[chunk] & 63, gguf[chunk + 4] & 63)
    } else {
        let low = gguf[chunk + 4];
        ((low & 15) | ((gguf[chunk - 4] >> 6) << 4), (low >> 4) | ((gguf[chunk] >> 6) << 4))
    }
}

/// Rearranges the 128 bytes of 4-bit parts of a Q4_K or Q5_K block. There, 32 bytes hold two chunks, the even one in the
/// low nibbles; here each chunk gets four words of its own. Calls `put(chunk, word, bits)`.
pub(super) fn pack_nibble_pairs(gguf: &[u8], mut put: impl FnMut(usize, usize, u32)) {
    for (pair, bytes) in gguf.as_chunks::<32>().0.iter().enumerate() {
        for index in 0..4 {
            let (first, second) = (word(bytes, index), word(bytes, index + 4));
            put(2 * pair, index, (first & 0x0f0f_0f0f) | ((second & 0x0f0f_0f0f) << 4));
            put(2 * pair + 1, index, ((first >> 4) & 0x0f0f_0f0f) | (second & 0xf0f0_f0f0));
        }
    }
}

/// A chunk's 2-bit parts from the bytes of a Q2_K, Q3_K or TQ2_0 block. There, 32 bytes hold four chunks, the first in
/// the lowest bits; here each chunk gets two words of its own: the pairs of quad `q` are
/// `(words[q / 4] >> 2 (q % 4)) & 0x03030303`.
pub(super) fn pack_pairs(gguf: &[u8], chunk: usize) -> [u32; 2] {
    let quad = |q| (word(&gguf[32 * (chunk / 4)..], q) >> (2 * (chunk % 4))) & 0x0303_0303;
    std::array::from_fn(|half| (0..4).fold(0, |bits, q| bits | (quad(4 * half + q) << (2 * q))))
}

/// The 2-bit parts of a chunk's eight quads, one per byte, from its two words.
pub(super) fn pairs(words: &[u32]) -> [u32; 8] {
    std::array::from_fn(|q| (words[q / 4] >> (2 * (q % 4))) & 0x0303_0303)
}

/// Half `index` of a section as bits.
pub(super) fn half_bits(section: &[u32], index: usize) -> u16 {
    let [a, b, c, d] = section[index / 2].to_le_bytes();
    u16::from_le_bytes(if index.is_multiple_of(2) { [a, b] } else { [c, d] })
}
