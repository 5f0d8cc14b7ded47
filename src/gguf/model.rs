//! A whole model file, in one part or several.

use super::limits::{MAX_PARTS, MAX_TENSORS};
use super::metadata::Metadata;
use super::parser::{Header, Parser, Progress};
use super::tensor::{self, TensorInfo};
use crate::{Error, Result};

/// Where the bytes of a model come from: files, ranges of a URL, the browser's private file system.
pub trait ByteSource {
    /// Number of parts; 1 unless the file is split.
    fn num_parts(&self) -> usize;
    /// Bytes of a part.
    fn part_len(&self, part: usize) -> impl Future<Output = Result<u64>>;
    /// Exactly `len` bytes of a part from `offset`.
    fn read(&self, part: usize, offset: u64, len: usize) -> impl Future<Output = Result<Vec<u8>>>;
}

/// What the headers of all parts say.
#[derive(Debug, Clone, PartialEq)]
pub struct Gguf {
    /// Metadata of the first part.
    pub metadata: Metadata,
    /// Tensors of all parts.
    pub tensors: Vec<TensorInfo>,
    /// Bytes of all parts.
    pub file_bytes: u64,
}

impl Gguf {
    /// The tensor with this name.
    pub fn find(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// The tensor with this name.
    ///
    /// # Errors
    /// `corrupt_model` when there is none.
    pub fn tensor(&self, name: &str) -> Result<&TensorInfo> {
        self.find(name).ok_or_else(|| Error::CorruptModel(format!("tensor `{name}` is missing")))
    }

    /// Bytes of all tensors.
    pub fn tensor_bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.size_bytes).sum()
    }
}

/// Reads the headers of all parts; no tensor data is read.
///
/// # Errors
/// Those of [`Parser::advance`] and of the source; `bad_request` when the parts are not those that the first one names, in
/// order; `corrupt_model` when they do not fit together.
pub async fn open(source: &impl ByteSource) -> Result<Gguf> {
    let num_parts = source.num_parts();
    if num_parts == 0 || num_parts > MAX_PARTS {
        return Err(Error::BadRequest(format!("a model of {num_parts} parts, 1 to {MAX_PARTS} allowed")));
    }
    let mut gguf = Gguf { metadata: Metadata::default(), tensors: Vec::new(), file_bytes: 0 };
    for part in 0..num_parts {
        let part_bytes = source.part_len(part).await?;
        let header = read_header(source, part, part_bytes).await.map_err(|error| in_part(error, part, num_parts))?;
        check_part(&header.metadata, part, num_parts)?;
        gguf.file_bytes = gguf.file_bytes.saturating_add(part_bytes);
        gguf.tensors.extend(header.tensors.into_iter().map(|tensor| TensorInfo { part, ..tensor }));
        if gguf.tensors.len() as u64 > MAX_TENSORS {
            let message = format!(
                "{} tensors in the first {} parts, at most {MAX_TENSORS} allowed",
                gguf.tensors.len(),
                part + 1
            );
            return Err(Error::CorruptModel(message));
        }
        if part == 0 {
            gguf.metadata = header.metadata;
        }
    }
    tensor::check_names(&gguf.tensors)?;
    if let Some(asked) = gguf.metadata.opt_u64("split.tensors.count")?.filter(|_| num_parts > 1)
        && asked != gguf.tensors.len() as u64
    {
        let found = gguf.tensors.len();
        return Err(Error::CorruptModel(format!("the first part promises {asked} tensors, all parts have {found}")));
    }
    Ok(gguf)
}

async fn read_header(source: &impl ByteSource, part: usize, part_bytes: u64) -> Result<Header> {
    let mut parser = Parser::new(part_bytes);
    loop {
        match parser.advance()? {
            Progress::Done(header) => return Ok(header),
            Progress::Need { offset, len } => {
                let bytes = source.read(part, offset, len).await?;
                if bytes.len() != len {
                    let got = bytes.len();
                    return Err(Error::Network(format!("{len} bytes asked at {offset}, {got} received")));
                }
                parser.feed(&bytes);
            }
        }
    }
}

/// Checks that a part is the one it should be.
fn check_part(metadata: &Metadata, part: usize, num_parts: usize) -> Result<()> {
    // 0 as well as 1 occurs in files that are not split.
    let count = metadata.opt_u64("split.count")?.unwrap_or(1).max(1);
    if count != num_parts as u64 {
        return Err(Error::BadRequest(format!(
            "the model is split into {count} parts, {num_parts} given: give all of them"
        )));
    }
    let number = metadata.opt_u64("split.no")?.unwrap_or(0);
    if num_parts > 1 && number != part as u64 {
        let [place, number] = [part as u64 + 1, number.saturating_add(1)];
        return Err(Error::BadRequest(format!(
            "part {number} of the model was given as part {place}: give them in order"
        )));
    }
    Ok(())
}

/// Says which part an error is about.
fn in_part(error: Error, part: usize, num_parts: usize) -> Error {
    if num_parts == 1 {
        return error;
    }
    let say = |message: String| format!("part {} of {num_parts}: {message}", part + 1);
    match error {
        Error::CorruptModel(message) => Error::CorruptModel(say(message)),
        Error::UnsupportedModel(message) => Error::UnsupportedModel(say(message)),
        Error::Network(message) => Error::Network(say(message)),
        other => other,
    }
}
