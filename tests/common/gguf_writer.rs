//! Builds GGUF files, right ones and wrong ones, and serves them from memory.
#![allow(clippy::cast_possible_truncation, reason = "tests")]
#![allow(dead_code, reason = "each test binary uses a part")]

use pagewise::gguf::ByteSource;
use pagewise::{Error, Result};
use std::cell::RefCell;

/// Type ids of metadata values.
pub(crate) const U32: u32 = 4;
pub(crate) const STRING: u32 = 8;
pub(crate) const ARRAY: u32 = 9;
/// Type id of F32 tensors.
pub(crate) const F32: u32 = 0;

/// A file being built. Fields are public so that a test can make any of them wrong.
#[derive(Debug, Clone)]
pub(crate) struct GgufWriter {
    pub(crate) magic: [u8; 4],
    pub(crate) version: u32,
    pub(crate) num_tensors: Option<u64>,
    pub(crate) num_entries: Option<u64>,
    pub(crate) alignment: usize,
    /// Key and value with its type id.
    pub(crate) entries: Vec<(String, Vec<u8>)>,
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) data: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) type_id: u32,
    pub(crate) offset: u64,
}

impl Default for GgufWriter {
    fn default() -> Self {
        Self {
            magic: *b"GGUF",
            version: 3,
            num_tensors: None,
            num_entries: None,
            alignment: 32,
            entries: Vec::new(),
            tensors: Vec::new(),
            data: Vec::new(),
        }
    }
}

pub(crate) fn string_bytes(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

impl GgufWriter {
    pub(crate) fn value(mut self, key: &str, type_id: u32, bytes: &[u8]) -> Self {
        self.entries.push((key.to_owned(), [&type_id.to_le_bytes(), bytes].concat()));
        self
    }

    pub(crate) fn u32(self, key: &str, value: u32) -> Self {
        self.value(key, U32, &value.to_le_bytes())
    }

    pub(crate) fn string(self, key: &str, value: &str) -> Self {
        self.value(key, STRING, &string_bytes(value))
    }

    /// An array whose elements are already bytes; `len` need not be true.
    pub(crate) fn array(self, key: &str, element_type: u32, len: u64, elements: &[u8]) -> Self {
        self.value(key, ARRAY, &[&element_type.to_le_bytes()[..], &len.to_le_bytes(), elements].concat())
    }

    pub(crate) fn strings(self, key: &str, values: &[&str]) -> Self {
        let elements: Vec<u8> = values.iter().flat_map(|text| string_bytes(text)).collect();
        self.array(key, STRING, values.len() as u64, &elements)
    }

    /// A tensor with its data after that of the others.
    pub(crate) fn tensor(mut self, name: &str, shape: &[u64], type_id: u32, data: &[u8]) -> Self {
        self.data.resize(self.data.len().next_multiple_of(self.alignment), 0);
        let offset = self.data.len() as u64;
        self.data.extend_from_slice(data);
        self.tensor_at(name, shape, type_id, offset)
    }

    /// A tensor anywhere, without data.
    pub(crate) fn tensor_at(mut self, name: &str, shape: &[u64], type_id: u32, offset: u64) -> Self {
        self.tensors.push(Tensor { name: name.to_owned(), shape: shape.to_vec(), type_id, offset });
        self
    }

    /// An F32 tensor of consecutive numbers.
    pub(crate) fn f32_tensor(self, name: &str, shape: &[u64]) -> Self {
        let len: u64 = shape.iter().product();
        let data: Vec<u8> = (0..len).flat_map(|index| (index as f32).to_le_bytes()).collect();
        self.tensor(name, shape, F32, &data)
    }

    /// Everything before the padding and the data.
    pub(crate) fn header(&self) -> Vec<u8> {
        let mut file = self.magic.to_vec();
        file.extend(self.version.to_le_bytes());
        file.extend(self.num_tensors.unwrap_or(self.tensors.len() as u64).to_le_bytes());
        file.extend(self.num_entries.unwrap_or(self.entries.len() as u64).to_le_bytes());
        for (key, value) in &self.entries {
            file.extend(string_bytes(key));
            file.extend(value);
        }
        for tensor in &self.tensors {
            file.extend(string_bytes(&tensor.name));
            file.extend((tensor.shape.len() as u32).to_le_bytes());
            file.extend(tensor.shape.iter().flat_map(|size| size.to_le_bytes()));
            file.extend(tensor.type_id.to_le_bytes());
            file.extend(tensor.offset.to_le_bytes());
        }
        file
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let mut file = self.header();
        file.resize(file.len().next_multiple_of(self.alignment), 0);
        file.extend(&self.data);
        file
    }

    pub(crate) fn source(&self) -> MemorySource {
        MemorySource::new(vec![self.build()])
    }
}

/// Parts in memory; remembers what was read.
#[derive(Debug, Default)]
pub(crate) struct MemorySource {
    pub(crate) parts: Vec<Vec<u8>>,
    /// Part, offset and length of each read.
    pub(crate) reads: RefCell<Vec<(usize, u64, usize)>>,
}

impl MemorySource {
    pub(crate) fn new(parts: Vec<Vec<u8>>) -> Self {
        Self { parts, reads: RefCell::default() }
    }
}

impl ByteSource for MemorySource {
    fn num_parts(&self) -> usize {
        self.parts.len()
    }

    async fn part_len(&self, part: usize) -> Result<u64> {
        Ok(self.parts[part].len() as u64)
    }

    async fn read(&self, part: usize, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.reads.borrow_mut().push((part, offset, len));
        let start = usize::try_from(offset).map_err(|_| Error::Network("offset".to_owned()))?;
        let range = self.parts[part].get(start..start + len);
        range.map(<[u8]>::to_vec).ok_or_else(|| Error::Network(format!("{len} bytes at {offset} are not there")))
    }
}
