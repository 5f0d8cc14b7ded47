//! Everything a file can ask for has a limit. Real files stay far below each of these.

/// Longest header: metadata, tensor list and the preamble before them.
pub const MAX_HEADER_BYTES: u64 = 64 << 20;
/// Most metadata entries.
pub const MAX_METADATA_ENTRIES: u64 = 16_384;
/// Most tensors, over all parts of a split file.
pub const MAX_TENSORS: u64 = 65_536;
/// Longest metadata key; the specification's own limit.
pub const MAX_KEY_BYTES: u64 = 65_535;
/// Longest string value, and longest string in an array.
pub const MAX_STRING_BYTES: u64 = 16 << 20;
/// Longest tensor name.
pub const MAX_TENSOR_NAME_BYTES: u64 = 256;
/// Most elements of one array.
pub const MAX_ARRAY_ELEMENTS: u64 = 4 << 20;
/// Most dimensions of a tensor.
pub const MAX_DIMENSIONS: u64 = 4;
/// Longest row of a tensor, and most rows over all further dimensions: bytes of a row fit in 32 bits.
pub const MAX_DIMENSION: u64 = 1 << 28;
/// Smallest alignment of tensor data.
pub const MIN_ALIGNMENT: u64 = 8;
/// Largest alignment of tensor data.
pub const MAX_ALIGNMENT: u64 = 1 << 20;
/// Alignment of tensor data when the file does not say.
pub const DEFAULT_ALIGNMENT: u64 = 32;
/// Most parts of a split file.
pub const MAX_PARTS: usize = 1024;
/// Bytes of the first read of a header; each further one doubles, up to [`MAX_READ_BYTES`].
pub const FIRST_READ_BYTES: usize = 256 << 10;
/// Most bytes of one read of a header.
pub const MAX_READ_BYTES: usize = 4 << 20;
