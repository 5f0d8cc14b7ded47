//! The sans-IO parser of one file's header: it asks for bytes and never reads them itself.

use super::cursor::{Cursor, Stop};
use super::limits::{
    DEFAULT_ALIGNMENT, FIRST_READ_BYTES, MAX_ALIGNMENT, MAX_HEADER_BYTES, MAX_KEY_BYTES, MAX_METADATA_ENTRIES,
    MAX_READ_BYTES, MAX_TENSORS, MIN_ALIGNMENT,
};
use super::metadata::Metadata;
use super::tensor::{self, TensorInfo};
use super::value::Value;
use crate::{Error, Result};

/// Shortest metadata entry: key length, type, a byte.
const MIN_ENTRY_BYTES: u64 = 8 + 4 + 1;
/// Shortest tensor entry: name length, number of dimensions, one dimension, type, offset.
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 8 + 4 + 8;

/// What a file says before its tensor data.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// GGUF version, 2 or 3.
    pub version: u32,
    /// The key-value part.
    pub metadata: Metadata,
    /// The tensors in file order; their part is 0.
    pub tensors: Vec<TensorInfo>,
    /// Offset of the tensor data.
    pub data_offset: u64,
}

/// What the parser wants, or has.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// Feed it `len` bytes of the file from `offset`; `len` is never 0 and the range lies in the file.
    Need {
        /// Where to read.
        offset: u64,
        /// How many bytes.
        len: usize,
    },
    /// The header is complete; the parser has nothing further to give.
    Done(Header),
}

/// Reads a header from bytes that come in pieces. It keeps only the bytes of the entry it is in the middle of.
///
/// ```
/// # use pagewise::gguf::{Parser, Progress};
/// # fn read(file: &[u8]) -> pagewise::Result<()> {
/// let mut parser = Parser::new(file.len() as u64);
/// let header = loop {
///     match parser.advance()? {
///         Progress::Need { offset, len } => parser.feed(&file[offset as usize..][..len]),
///         Progress::Done(header) => break header,
///     }
/// };
/// # Ok(()) }
/// # assert!(read(b"GGUX").is_err());
/// ```
#[derive(Debug)]
pub struct Parser {
    file_size: u64,
    buffer: Vec<u8>,
    /// Offset in the file of `buffer[0]`.
    base: u64,
    /// Index in `buffer` of the first byte that is not parsed.
    parsed: usize,
    next_read: usize,
    stage: Stage,
    version: u32,
    metadata: Metadata,
    metadata_left: usize,
    tensors: Vec<TensorInfo>,
    tensors_left: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Preamble,
    Metadata,
    Tensors,
}

impl Parser {
    /// A parser for a file of this many bytes.
    pub fn new(file_size: u64) -> Self {
        Self {
            file_size,
            buffer: Vec::new(),
            base: 0,
            parsed: 0,
            next_read: FIRST_READ_BYTES,
            stage: Stage::Preamble,
            version: 0,
            metadata: Metadata::default(),
            metadata_left: 0,
            tensors: Vec::new(),
            tensors_left: 0,
        }
    }

    /// Takes the bytes that [`Progress::Need`] asked for, or as many of the first of them as there are at hand.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.parsed);
        self.base += self.parsed as u64;
        self.parsed = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Parses what has arrived.
    ///
    /// # Errors
    /// `corrupt_model` for a file that is no GGUF, is damaged, or asks for more than the limits allow, `unsupported_model` for
    /// a GGUF that is not little-endian and of version 2 or 3, or has a tensor of a format we do not know.
    pub fn advance(&mut self) -> Result<Progress> {
        loop {
            let mut cursor = Cursor::new(&self.buffer, self.parsed, self.base, self.file_size);
            let step = match self.stage {
                Stage::Preamble => Self::preamble(&mut cursor).map(|(version, tensors_left, metadata_left)| {
                    (self.version, self.tensors_left, self.metadata_left) = (version, tensors_left, metadata_left);
                    self.stage = Stage::Metadata;
                }),
                Stage::Metadata if self.metadata_left == 0 => {
                    self.stage = Stage::Tensors;
                    continue;
                }
                Stage::Metadata => Self::entry(&mut cursor, &mut self.metadata).map(|()| self.metadata_left -= 1),
                Stage::Tensors if self.tensors_left == 0 => return self.finish().map(Progress::Done),
                Stage::Tensors => TensorInfo::parse(&mut cursor).map(|tensor| {
                    self.tensors.push(tensor);
                    self.tensors_left -= 1;
                }),
            };
            match step {
                Ok(()) => self.parsed = cursor.at(),
                Err(Stop::Short) => return self.need(),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Bad { offset, message }) => {
                    return Err(Error::CorruptModel(format!("GGUF header, byte {offset}: {message}")));
                }
            }
        }
    }

    fn need(&mut self) -> Result<Progress> {
        let offset = self.base + self.buffer.len() as u64;
        if offset >= MAX_HEADER_BYTES {
            let message = format!("a GGUF header of more than {offset} bytes, at most {MAX_HEADER_BYTES} allowed");
            return Err(Error::CorruptModel(message));
        }
        let left = self.file_size.min(MAX_HEADER_BYTES).saturating_sub(offset);
        let len = usize::try_from(left).map_or(self.next_read, |left| left.min(self.next_read));
        assert_ne!(len, 0, "the cursor tells a file that is too short");
        self.next_read = (2 * self.next_read).min(MAX_READ_BYTES);
        Ok(Progress::Need { offset, len })
    }

    /// Version, number of tensors, number of metadata entries.
    fn preamble(cursor: &mut Cursor<'_>) -> Result<(u32, usize, usize), Stop> {
        let failed = |message: String| Err(Stop::Failed(Error::UnsupportedModel(message)));
        let magic = cursor.array::<4>()?;
        if &magic != b"GGUF" {
            let message = format!("not a GGUF file: it starts with `{}`", magic.escape_ascii());
            return Err(Stop::Failed(Error::CorruptModel(message)));
        }
        let version = cursor.u32()?;
        if (1..=3).contains(&version.swap_bytes()) {
            return failed("a big-endian GGUF file; only little-endian ones are supported".to_owned());
        }
        if !(2..=3).contains(&version) {
            return failed(format!("GGUF version {version}; versions 2 and 3 are supported"));
        }
        let num_tensors = cursor.count("tensors", MAX_TENSORS, MIN_TENSOR_BYTES)?;
        let num_entries = cursor.count("metadata entries", MAX_METADATA_ENTRIES, MIN_ENTRY_BYTES)?;
        Ok((version, num_tensors, num_entries))
    }

    fn entry(cursor: &mut Cursor<'_>, metadata: &mut Metadata) -> Result<(), Stop> {
        let start = cursor.clone();
        let key = cursor.string("bytes of a metadata key", MAX_KEY_BYTES)?;
        let value = Value::parse(cursor).map_err(|stop| match stop {
            Stop::Bad { offset, message } => Stop::Bad { offset, message: format!("metadata key `{key}`: {message}") },
            other => other,
        })?;
        metadata.insert(key.to_owned(), value).or_else(|key| start.bad(format!("metadata key `{key}` occurs twice")))
    }

    fn finish(&mut self) -> Result<Header> {
        let alignment = self.metadata.opt_u64("general.alignment")?.unwrap_or(DEFAULT_ALIGNMENT);
        if !alignment.is_power_of_two() || !(MIN_ALIGNMENT..=MAX_ALIGNMENT).contains(&alignment) {
            return Err(Error::CorruptModel(format!(
                "metadata key `general.alignment`: {alignment} found, a power of two from {MIN_ALIGNMENT} to {MAX_ALIGNMENT} wanted"
            )));
        }
        let data_offset = (self.base + self.parsed as u64).next_multiple_of(alignment);
        let mut tensors = std::mem::take(&mut self.tensors);
        tensor::place(&mut tensors, data_offset, alignment, self.file_size)?;
        self.buffer = Vec::new();
        Ok(Header { version: self.version, metadata: std::mem::take(&mut self.metadata), tensors, data_offset })
    }
}
