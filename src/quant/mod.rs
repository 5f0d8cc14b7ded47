//! Block formats of GGUF weights: how they are stored, and how a GPU buffer holds them.
//!
//! Each format is one file here and one WGSL piece of the same stem in `shaders/quant/`. A file has the format's two
//! decoders, written independently so that each tests the other: `dequantize` reads GGUF bytes as the format is
//! specified, `unpack_row` reads our packed layout exactly as the WGSL piece does.
//!
//! The packed layout holds a row in `ceil(GGUF bytes / 4)` words (TQ1_0 in as many as TQ2_0). Rows are independent.
//! Weights are rearranged within their block so that any 32 consecutive weights of a row (a *chunk*) lie in words of
//! their own, each read once: of eight quads of weights, word `w` of the 4-bit parts has quad `w` in its low nibbles and
//! quad `w + 4` in its high ones. Where a GGUF block is no multiple of four bytes, its f16 scale moves to a section after
//! all blocks of the row. A buffer of rows ends in the format's codebook, if it has one.
//!
//! Products in both decoders are exact in f32 (an f16 scale times small integers, 24 bits together at most), so neither
//! the order of factors nor contraction into fused multiply-add can change a bit.

mod bf16;
mod blocks;
mod codebook;
mod f16;
mod f32;
mod iq1_m;
mod iq1_s;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;
mod iq4_nl;
mod iq4_xs;
mod layout;
mod mxfp4;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod tq1_0;
mod tq2_0;

/// Weights per chunk, what the WGSL piece's `load_chunk` decodes at once.
pub const CHUNK_ELEMENTS: usize = 32;

/// A block format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// 32-bit float.
    F32,
    /// 16-bit float.
    F16,
    /// The upper half of a 32-bit float.
    Bf16,
    /// 4 bits and a scale per 32 weights.
    Q4_0,
    /// 4 bits, a scale and a minimum per 32 weights.
    Q4_1,
    /// 5 bits and a scale per 32 weights.
    Q5_0,
    /// 5 bits, a scale and a minimum per 32 weights.
    Q5_1,
    /// 8 bits and a scale per 32 weights.
    Q8_0,
    /// 2 bits; 4-bit scale and minimum per 16 weights; f16 factors of those per 256.
    Q2K,
    /// 3 bits; 6-bit scale per 16 weights; f16 factor of those per 256.
    Q3K,
    /// 4 bits; 6-bit scale and minimum per 32 weights; f16 factors of those per 256.
    Q4K,
    /// 5 bits; 6-bit scale and minimum per 32 weights; f16 factors of those per 256.
    Q5K,
    /// 6 bits; 8-bit scale per 16 weights; f16 factor of those per 256.
    Q6K,
    /// Eight weights of -1, 0, 1 at once from a codebook; 3-bit scale and an offset per 32 weights.
    Iq1S,
    /// Eight weights of -1, 0, 1 at once from a codebook; 3-bit scale per 16 weights, an offset per 8.
    Iq1M,
    /// Eight magnitudes at once from a codebook of 256; 4-bit scale per 32 weights.
    Iq2Xxs,
    /// Eight magnitudes at once from a codebook of 512; 4-bit scale per 16 weights.
    Iq2Xs,
    /// Eight magnitudes at once from a codebook of 1024; 4-bit scale per 16 weights.
    Iq2S,
    /// Four magnitudes at once from a codebook of 256; 4-bit scale per 32 weights.
    Iq3Xxs,
    /// Four magnitudes at once from a codebook of 512; 4-bit scale per 32 weights.
    Iq3S,
    /// One of 16 uneven values, and a scale per 32 weights.
    Iq4Nl,
    /// One of 16 uneven values; 6-bit scale per 32 weights; f16 factor of those per 256.
    Iq4Xs,
    /// -1, 0 or 1 in base 3, and a scale per 256 weights.
    Tq1_0,
    /// -1, 0 or 1 in two bits, and a scale per 256 weights.
    Tq2_0,
    /// 4-bit float, and a power of two per 32 weights.
    Mxfp4,
}

/// Everything that tells one format from another.
struct Codec {
    name: &'static str,
    stem: &'static str,
    ggml_type: u32,
    block_elements: usize,
    block_bytes: usize,
    /// Bytes of a block in our layout; a row is padded to whole words.
    packed_block_bytes: usize,
    codebook: Option<fn() -> Vec<u32>>,
    pack_row: fn(&[u8], &mut [u32]),
    unpack_row: fn(&[u32], &mut [f32]),
    dequantize: fn(&[u8], &mut [f32]),
    wgsl: &'static str,
    /// Whether the WGSL piece has `load_packed` as well.
    is_packable: bool,
}

impl Format {
    /// Every format, in the order of the enum.
    pub const ALL: [Format; 25] = [
        Format::F32,
        Format::F16,
        Format::Bf16,
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q5_1,
        Format::Q8_0,
        Format::Q2K,
        Format::Q3K,
        Format::Q4K,
        Format::Q5K,
        Format::Q6K,
        Format::Iq1S,
        Format::Iq1M,
        Format::Iq2Xxs,
        Format::Iq2Xs,
        Format::Iq2S,
        Format::Iq3Xxs,
        Format::Iq3S,
        Format::Iq4Nl,
        Format::Iq4Xs,
        Format::Tq1_0,
        Format::Tq2_0,
        Format::Mxfp4,
    ];

    /// The format with this type id in a GGUF file, if we know it.
    pub fn from_ggml_type(id: u32) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.codec().ggml_type == id)
    }

    /// Type id of a GGUF file.
    pub fn ggml_type(self) -> u32 {
        self.codec().ggml_type
    }

    /// Name as in GGUF, such as `Q4_K`.
    pub fn name(self) -> &'static str {
        self.codec().name
    }

    /// Stem of its files, such as `q4_k`.
    pub fn stem(self) -> &'static str {
        self.codec().stem
    }

    /// The WGSL piece that defines `fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8>`, to be put after a kernel
    /// that declares `weights: array<u32>`, `override K: u32` and `override ROW_WORDS: u32`. The buffer ends in
    /// [`Format::codebook`].
    pub fn wgsl(self) -> &'static str {
        self.codec().wgsl
    }

    /// Whether its weights are small integers but for a scale and a minimum per 16, so that products of bytes can be used:
    /// the WGSL piece then defines `fn load_packed(row: u32, chunk: u32) -> array<vec4<u32>, 3>` too.
    pub fn is_packable(self) -> bool {
        self.codec().is_packable
    }

    /// Weights in a GGUF block; a row has a whole number of blocks.
    pub fn block_elements(self) -> usize {
        self.codec().block_elements
    }

    /// Bytes of a GGUF block.
    pub fn block_bytes(self) -> usize {
        self.codec().block_bytes
    }

    /// Bytes of a row in a GGUF file. `num_elements` must be a multiple of [`Format::block_elements`].
    ///
    /// # Panics
    /// When it is not.
    pub fn row_bytes(self, num_elements: usize) -> usize {
        let codec = self.codec();
        assert_eq!(num_elements % codec.block_elements, 0, "{num_elements} weights are no whole {} blocks", codec.name);
        num_elements / codec.block_elements * codec.block_bytes
    }

    /// Words of a row in our packed layout.
    ///
    /// # Panics
    /// As [`Format::row_bytes`].
    pub fn packed_row_words(self, num_elements: usize) -> usize {
        let num_blocks = self.row_bytes(num_elements) / self.block_bytes();
        (num_blocks * self.codec().packed_block_bytes).div_ceil(4)
    }

    /// Words of a buffer of packed rows: the rows, then the codebook.
    ///
    /// # Panics
    /// As [`Format::row_bytes`].
    pub fn buffer_words(self, num_rows: usize, num_elements: usize) -> usize {
        num_rows * self.packed_row_words(num_elements) + self.codebook().len()
    }

    /// What a buffer of rows of this format ends in, because the WGSL piece reads it there: the codebook of an IQ format,
    /// nothing for most.
    pub fn codebook(self) -> Vec<u32> {
        self.codec().codebook.map(|codebook| codebook()).unwrap_or_default()
    }

    /// Turns a row of a GGUF file into our packed layout. Every word of `packed` is written.
    ///
    /// # Panics
    /// When `gguf` is not a whole number of blocks and of chunks, or `packed` is not of the matching length.
    pub fn pack_row(self, gguf: &[u8], packed: &mut [u32]) {
        let num_elements = self.elements_of(gguf);
        assert_eq!(num_elements % CHUNK_ELEMENTS, 0, "a row of {num_elements} weights is no whole chunks");
        assert_eq!(packed.len(), self.packed_row_words(num_elements), "words of a packed row");
        (self.codec().pack_row)(gguf, packed);
    }

    /// Decodes a packed row: the twin of the WGSL piece.
    ///
    /// # Panics
    /// When the lengths do not match or `out` is no whole number of chunks.
    pub fn unpack_row(self, packed: &[u32], out: &mut [f32]) {
        assert_eq!(out.len() % CHUNK_ELEMENTS, 0, "a row of {} weights is no whole chunks", out.len());
        assert_eq!(packed.len(), self.packed_row_words(out.len()), "words of a packed row");
        (self.codec().unpack_row)(packed, out);
    }

    /// Decodes GGUF bytes.
    ///
    /// # Panics
    /// When `gguf` is not a whole number of blocks or `out` is not of the matching length.
    pub fn dequantize(self, gguf: &[u8], out: &mut [f32]) {
        assert_eq!(out.len(), self.elements_of(gguf), "weights in {} bytes of {}", gguf.len(), self.name());
        (self.codec().dequantize)(gguf, out);
    }

    fn elements_of(self, gguf: &[u8]) -> usize {
        let codec = self.codec();
        assert_eq!(gguf.len() % codec.block_bytes, 0, "{} bytes are no whole {} blocks", gguf.len(), codec.name);
        gguf.len() / codec.block_bytes * codec.block_elements
    }

    fn codec(self) -> &'static Codec {
        match self {
            Format::F32 => &f32::CODEC,
            Format::F16 => &f16::CODEC,
            Format::Bf16 => &bf16::CODEC,
            Format::Q4_0 => &q4_0::CODEC,
            Format::Q4_1 => &q4_1::CODEC,
            Format::Q5_0 => &q5_0::CODEC,
            Format::Q5_1 => &q5_1::CODEC,
            Format::Q8_0 => &q8_0::CODEC,
            Format::Q2K => &q2_k::CODEC,
            Format::Q3K => &q3_k::CODEC,
            Format::Q4K => &q4_k::CODEC,
            Format::Q5K => &q5_k::CODEC,
            Format::Q6K => &q6_k::CODEC,
            Format::Iq1S => &iq1_s::CODEC,
            Format::Iq1M => &iq1_m::CODEC,
            Format::Iq2Xxs => &iq2_xxs::CODEC,
            Format::Iq2Xs => &iq2_xs::CODEC,
            Format::Iq2S => &iq2_s::CODEC,
            Format::Iq3Xxs => &iq3_xxs::CODEC,
            Format::Iq3S => &iq3_s::CODEC,
            Format::Iq4Nl => &iq4_nl::CODEC,
            Format::Iq4Xs => &iq4_xs::CODEC,
            Format::Tq1_0 => &tq1_0::CODEC,
            Format::Tq2_0 => &tq2_0::CODEC,
            Format::Mxfp4 => &mxfp4::CODEC,
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
