//! What a header says of a tensor.

use super::cursor::{Cursor, Parse, Stop};
use super::limits::{MAX_DIMENSION, MAX_DIMENSIONS, MAX_TENSOR_NAME_BYTES};
use crate::quant::Format;
use crate::{Error, Result};
use std::collections::HashSet;

/// Where a tensor is, and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name such as `blk.0.attn_q.weight`.
    pub name: String,
    /// Sizes in GGUF order: `shape[0]` is the length of a row, whose elements are adjacent.
    pub shape: Vec<usize>,
    /// How its rows are stored.
    pub format: Format,
    /// The part of a split file that has it.
    pub part: usize,
    /// Offset of its first byte in that part.
    pub offset: u64,
    /// Bytes it takes.
    pub size_bytes: u64,
}

impl TensorInfo {
    /// Elements of a row.
    pub fn row_elements(&self) -> usize {
        self.shape[0]
    }

    /// Rows over all further dimensions.
    pub fn num_rows(&self) -> usize {
        self.shape[1..].iter().product()
    }

    /// Reads an entry of the tensor list. `offset` stays relative to the tensor data until [`place`].
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Parse<TensorInfo> {
        let name = cursor.string("bytes of a tensor name", MAX_TENSOR_NAME_BYTES)?;
        Self::parse_unnamed(cursor, name).map_err(|stop| match stop {
            Stop::Bad { offset, message } => Stop::Bad { offset, message: format!("tensor `{name}`: {message}") },
            other => other,
        })
    }

    fn parse_unnamed(cursor: &mut Cursor<'_>, name: &str) -> Parse<TensorInfo> {
        let start = cursor.clone();
        let num_dimensions = cursor.u32()?;
        if num_dimensions == 0 || u64::from(num_dimensions) > MAX_DIMENSIONS {
            return start.bad(format!("{num_dimensions} dimensions, 1 to {MAX_DIMENSIONS} allowed"));
        }
        let mut shape = Vec::with_capacity(num_dimensions as usize);
        for _ in 0..num_dimensions {
            let at = cursor.clone();
            let size = cursor.u64()?;
            if size == 0 || size > MAX_DIMENSION {
                return at.bad(format!("a dimension of {size}, 1 to {MAX_DIMENSION} allowed"));
            }
            shape.push(usize::try_from(size).or_else(|_| at.bad(format!("a dimension of {size} is too large")))?);
        }
        let at = cursor.clone();
        let type_id = cursor.u32()?;
        let format = Format::from_ggml_type(type_id).ok_or_else(|| Stop::Failed(unsupported(name, type_id)))?;
        let size_bytes = match size_of(&shape, format) {
            Ok(size_bytes) => size_bytes,
            Err(message) => return at.bad(message),
        };
        let offset = cursor.u64()?;
        Ok(TensorInfo { name: name.to_owned(), shape, format, part: 0, offset, size_bytes })
    }
}

fn size_of(shape: &[usize], format: Format) -> Result<u64, String> {
    let block = format.block_elements();
    if !shape[0].is_multiple_of(block) {
        return Err(format!("rows of {} elements, {format} needs a multiple of {block}", shape[0]));
    }
    // Each size is at most MAX_DIMENSION, so no product of two overflows.
    let rows = shape[1..].iter().try_fold(1, |rows, &size| {
        let rows = rows * size as u64;
        if rows > MAX_DIMENSION {
            Err(format!("{rows} rows or more, at most {MAX_DIMENSION} allowed"))
        } else {
            Ok(rows)
        }
    })?;
    Ok((shape[0] / block) as u64 * format.block_bytes() as u64 * rows)
}

/// Makes the offsets of a part's tensors absolute and checks that each lies in the file, aligned, named and placed as no
/// other.
///
/// # Errors
/// `corrupt_model` otherwise.
pub(super) fn place(tensors: &mut [TensorInfo], data_offset: u64, alignment: u64, file_size: u64) -> Result<()> {
    for tensor in tensors.iter_mut() {
        let TensorInfo { name, offset, size_bytes, .. } = tensor;
        if !offset.is_multiple_of(alignment) {
            let message = format!("tensor `{name}`: offset {offset} is no multiple of the alignment {alignment}");
            return Err(Error::CorruptModel(message));
        }
        let end = data_offset.checked_add(*offset).and_then(|start| start.checked_add(*size_bytes));
        if end.is_none_or(|end| end > file_size) {
            return Err(Error::CorruptModel(format!(
                "tensor `{name}`: {size_bytes} bytes at offset {offset} of the data at {data_offset} go past the end of the file, \
                 which has {file_size} bytes; is the download complete?"
            )));
        }
        *offset += data_offset;
    }
    check_names(tensors)?;
    let mut order: Vec<&TensorInfo> = tensors.iter().collect();
    order.sort_by_key(|tensor| tensor.offset);
    for pair in order.windows(2) {
        if pair[0].offset + pair[0].size_bytes > pair[1].offset {
            let [first, second] = [&pair[0].name, &pair[1].name];
            return Err(Error::CorruptModel(format!("tensors `{first}` and `{second}` overlap")));
        }
    }
    Ok(())
}

/// Checks that no name occurs twice.
///
/// # Errors
/// `corrupt_model` otherwise.
pub(super) fn check_names(tensors: &[TensorInfo]) -> Result<()> {
    let mut names = HashSet::with_capacity(tensors.len());
    match tensors.iter().find(|tensor| !names.insert(tensor.name.as_str())) {
        Some(tensor) => Err(Error::CorruptModel(format!("tensor `{}` occurs twice", tensor.name))),
        None => Ok(()),
    }
}

fn unsupported(name: &str, type_id: u32) -> Error {
    let known = match type_id {
        9 => " (Q8_1)",
        15 => " (Q8_K)",
        24 => " (I8)",
        25 => " (I16)",
        26 => " (I32)",
        27 => " (I64)",
        28 => " (F64)",
        40 => " (NVFP4)",
        _ => "",
    };
    let supported = Format::ALL.map(Format::name).join(", ");
    Error::UnsupportedModel(format!("tensor `{name}` has type {type_id}{known}; supported are {supported}"))
}
