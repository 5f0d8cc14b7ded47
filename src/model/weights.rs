//! Where each tensor's rows go: which buffer, how many rows, from where in the file.

use std::collections::{HashMap, HashSet};

use crate::compute::{BufferId, Purpose, Recording};
use crate::gguf::{Gguf, TensorInfo};
use crate::quant::Format;
use crate::{Error, Result};

/// Rows of a tensor that are packed one after the other into a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Where they go.
    pub buffer: BufferId,
    /// The first word in it.
    pub offset_words: usize,
    /// The tensor.
    pub tensor: TensorInfo,
    /// Its first row.
    pub first_row: usize,
    /// How many.
    pub num_rows: usize,
}

/// A buffer of weight rows for one projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The rows.
    pub buffer: BufferId,
    /// The first output they compute.
    pub first: usize,
    /// How many outputs.
    pub num: usize,
}

/// Most rows of one part: keeps every grid below WebGPU's 65,535 workgroups a dimension.
const MAX_PART_ROWS: usize = 1 << 18;

/// Declares weight buffers and notes what is to be read into them.
#[derive(Debug)]
pub(super) struct Placer<'a> {
    gguf: &'a Gguf,
    index: HashMap<&'a str, &'a TensorInfo>,
    used: HashSet<&'a str>,
    binding_bytes: usize,
    /// What to read.
    pub(super) placements: Vec<Placement>,
}

impl<'a> Placer<'a> {
    /// Buffers will have at most `binding_bytes`.
    pub(super) fn new(gguf: &'a Gguf, binding_bytes: u64) -> Self {
        let index = gguf.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        let binding_bytes = usize::try_from(binding_bytes).unwrap_or(usize::MAX);
        Self { gguf, index, used: HashSet::new(), binding_bytes, placements: Vec::new() }
    }

    /// A tensor of this shape, in GGUF order.
    ///
    /// # Errors
    /// `corrupt_model` if it is missing or has another shape.
    pub(super) fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<&'a TensorInfo> {
        let tensor = *self.index.get(name).ok_or_else(|| Error::CorruptModel(format!("tensor {name} is missing")))?;
        if tensor.shape != shape {
            let found = &tensor.shape;
            return Err(Error::CorruptModel(format!("tensor {name} has shape {found:?}, {shape:?} expected")));
        }
        self.used.insert(&tensor.name);
        Ok(tensor)
    }

    /// Whether the file has this tensor.
    pub(super) fn has(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// A vector of f32, read whole.
    ///
    /// # Errors
    /// As [`Placer::tensor`]; `unsupported_model` if it is not stored as F32.
    pub(super) fn vector(&mut self, recording: &mut Recording, name: &str, len: usize) -> Result<BufferId> {
        let buffer = recording.buffer(name, len, Purpose::Weights);
        self.vector_into(buffer, 0, name, len)?;
        Ok(buffer)
    }

    /// As [`Placer::vector`], into a buffer that exists.
    ///
    /// # Errors
    /// As [`Placer::vector`].
    pub(super) fn vector_into(&mut self, buffer: BufferId, offset_words: usize, name: &str, len: usize) -> Result<()> {
        let tensor = self.tensor(name, &[len])?.clone();
        if tensor.format != Format::F32 {
            let format = tensor.format;
            return Err(Error::UnsupportedModel(format!("tensor {name} is stored as {format}, F32 expected")));
        }
        self.placements.push(Placement { buffer, offset_words, tensor, first_row: 0, num_rows: 1 });
        Ok(())
    }

    /// The rows of one tensor after the other, in as many buffers as the binding limit needs. All have one format.
    pub(super) fn stack(&mut self, recording: &mut Recording, tensors: &[&TensorInfo]) -> Vec<Part> {
        let rows: Vec<_> = tensors.iter().map(|tensor| tensor.num_rows()).collect();
        let total = rows.iter().sum();
        self.split(recording, tensors, total, 1, |first, num| {
            let mut start = 0;
            let mut ranges = Vec::new();
            for (index, &len) in rows.iter().enumerate() {
                let (from, to) = (first.max(start), (first + num).min(start + len));
                if from < to {
                    ranges.push((index, from - start, to - from));
                }
                start += len;
            }
            ranges
        })
    }

    /// A gate and an up-projection: each part holds the same rows of both, the gate's first.
    pub(super) fn gated(&mut self, recording: &mut Recording, gate: &TensorInfo, up: &TensorInfo) -> Vec<Part> {
        let total = gate.num_rows();
        self.split(recording, &[gate, up], total, 2, |first, num| vec![(0, first, num), (1, first, num)])
    }

    /// Cuts `total` outputs of `rows_per_output` rows each into parts that fit a binding; `ranges` says which rows of
    /// which tensor make up a part: (tensor, first row, rows).
    fn split(
        &mut self,
        recording: &mut Recording,
        tensors: &[&TensorInfo],
        total: usize,
        rows_per_output: usize,
        ranges: impl Fn(usize, usize) -> Vec<(usize, usize, usize)>,
    ) -> Vec<Part> {
        let (format, k) = (tensors[0].format, tensors[0].row_elements());
        let (words, codebook) = (format.packed_row_words(k), format.codebook().len());
        let room = (self.binding_bytes / 4).saturating_sub(codebook);
        let most = (room / (words * rows_per_output)).clamp(1, MAX_PART_ROWS / rows_per_output);
        let mut parts = Vec::new();
        for first in (0..total).step_by(most) {
            let num = most.min(total - first);
            let label = format!("{}[{first}..{}]", tensors[0].name, first + num);
            let buffer = recording.buffer(label, format.buffer_words(num * rows_per_output, k), Purpose::Weights);
            let mut offset_words = 0;
            for (index, first_row, num_rows) in ranges(first, num) {
                let tensor = tensors[index].clone();
                self.placements.push(Placement { buffer, offset_words, tensor, first_row, num_rows });
                offset_words += num_rows * words;
            }
            parts.push(Part { buffer, first, num });
        }
        parts
    }

    /// Refuses a file with tensors that the forward pass would ignore: its output would be wrong.
    ///
    /// # Errors
    /// `unsupported_model` naming the first.
    pub(super) fn check_all_used(&self, architecture: &str) -> Result<()> {
        match self.gguf.tensors.iter().find(|tensor| !self.used.contains(tensor.name.as_str())) {
            None => Ok(()),
            Some(tensor) => Err(Error::UnsupportedModel(format!(
                "{architecture}: tensor {} is not one that this engine's forward pass uses",
                tensor.name
            ))),
        }
    }
}
