//! What a model is, from its header alone, as plain data.

use std::collections::BTreeMap;

use serde::Serialize;

use super::loading::{PageKv, PagePlan};
use crate::gguf::{Array, Gguf, Metadata, TensorInfo, Value};
use crate::model::{Choice, Tuned, TuningSource};

/// Elements of an array that a description shows.
const MAX_SHOWN: usize = 16;

/// `EngineInfo` of `js/src/types.ts`, less what the worker knows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Info {
    pub(super) name: String,
    pub(super) architecture: String,
    pub(super) quantisation: &'static str,
    pub(super) num_parameters: u64,
    pub(super) context_length: usize,
    pub(super) trained_context_length: usize,
    pub(super) vocab_size: usize,
    pub(super) kv: PageKv,
    pub(super) gpu_bytes: u64,
    pub(super) memory: PagePlan,
    pub(super) has_chat_template: bool,
    pub(super) tuning: KernelTuning,
    #[serde(skip)]
    pub(super) measured: Option<MeasuredTuning>,
}

/// `KernelTuning` of `js/src/types.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KernelTuning {
    source: TuningSource,
    few_rows: String,
    many_rows: String,
    tune_ms: f64,
}

impl KernelTuning {
    pub(super) fn new(tuned: &Tuned) -> Self {
        let Choice { few_rows, many_rows } = tuned.choice.clone();
        Self { source: tuned.source, few_rows, many_rows, tune_ms: tuned.tune_ms }
    }
}

/// A choice that was measured by this load, and what it is to be remembered under.
#[derive(Debug, Serialize)]
pub(super) struct MeasuredTuning {
    key: String,
    choice: String,
}

impl MeasuredTuning {
    pub(super) fn new(tuned: &Tuned, key: String) -> Option<Self> {
        // Two texts always make JSON.
        let choice = || serde_json::to_string(&tuned.choice).unwrap_or_default();
        (tuned.source == TuningSource::Measured).then(|| Self { key, choice: choice() })
    }
}

/// `ModelDescription` of `js/src/types.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Description {
    name: String,
    architecture: String,
    quantisation: &'static str,
    num_parameters: u64,
    file_bytes: u64,
    context_length: u64,
    is_supported: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsupported_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template: Option<String>,
    metadata: BTreeMap<String, serde_json::Value>,
    tensors: Vec<Tensor>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tensor {
    name: String,
    shape: Vec<usize>,
    format: &'static str,
    size_bytes: u64,
}

impl Description {
    /// `unsupported_reason` says why it cannot run, if it cannot.
    pub(super) fn new(gguf: &Gguf, unsupported_reason: Option<String>) -> Self {
        let metadata = &gguf.metadata;
        let tensor = |tensor: &TensorInfo| Tensor {
            name: tensor.name.clone(),
            shape: tensor.shape.clone(),
            format: tensor.format.name(),
            size_bytes: tensor.size_bytes,
        };
        Self {
            name: text(metadata, "general.name"),
            architecture: architecture(metadata),
            quantisation: quantisation(&gguf.tensors),
            num_parameters: num_parameters(&gguf.tensors),
            file_bytes: gguf.file_bytes,
            context_length: trained_context_length(metadata),
            is_supported: unsupported_reason.is_none(),
            unsupported_reason,
            chat_template: Some(text(metadata, "tokenizer.chat_template")).filter(|source| !source.is_empty()),
            metadata: metadata.iter().map(|(key, value)| (key.to_owned(), shown(value))).collect(),
            tensors: gguf.tensors.iter().map(tensor).collect(),
        }
    }
}

/// A text of the metadata; empty when there is none, or when it is no text.
pub(super) fn text(metadata: &Metadata, key: &str) -> String {
    metadata.opt_str(key).ok().flatten().unwrap_or_default().to_owned()
}

/// The file's architecture; empty when it names none.
pub(super) fn architecture(metadata: &Metadata) -> String {
    text(metadata, "general.architecture")
}

/// Tokens that the model was trained for; 0 when the file does not say.
fn trained_context_length(metadata: &Metadata) -> u64 {
    let key = format!("{}.context_length", architecture(metadata));
    metadata.opt_u64(&key).ok().flatten().unwrap_or(0)
}

/// Elements of all tensors.
pub(super) fn num_parameters(tensors: &[TensorInfo]) -> u64 {
    tensors.iter().map(|tensor| tensor.shape.iter().map(|&size| size as u64).product::<u64>()).sum()
}

/// The format that most bytes of weights are in.
pub(super) fn quantisation(tensors: &[TensorInfo]) -> &'static str {
    let mut bytes = BTreeMap::new();
    for tensor in tensors {
        *bytes.entry(tensor.format.name()).or_insert(0) += tensor.size_bytes;
    }
    bytes.into_iter().max_by_key(|&(_, bytes)| bytes).map_or("", |(name, _)| name)
}

/// A value as JSON; of an array, its length and its first elements.
fn shown(value: &Value) -> serde_json::Value {
    match value {
        Value::U8(value) => (*value).into(),
        Value::I8(value) => (*value).into(),
        Value::U16(value) => (*value).into(),
        Value::I16(value) => (*value).into(),
        Value::U32(value) => (*value).into(),
        Value::I32(value) => (*value).into(),
        Value::F32(value) => (*value).into(),
        Value::Bool(value) => (*value).into(),
        Value::String(value) => value.as_str().into(),
        Value::U64(value) => exact(*value),
        Value::I64(value) => exact(*value),
        Value::F64(value) => (*value).into(),
        Value::Array(array) => serde_json::json!({ "length": array.len(), "head": head(array) }),
    }
}

fn head(array: &Array) -> Vec<serde_json::Value> {
    fn first<T: Copy + Into<serde_json::Value>>(values: &[T]) -> Vec<serde_json::Value> {
        values.iter().take(MAX_SHOWN).map(|&value| value.into()).collect()
    }
    match array {
        Array::U8(values) => first(values),
        Array::I8(values) => first(values),
        Array::U16(values) => first(values),
        Array::I16(values) => first(values),
        Array::U32(values) => first(values),
        Array::I32(values) => first(values),
        Array::F32(values) => first(values),
        Array::Bool(values) => first(values),
        Array::Strings(values) => values.iter().take(MAX_SHOWN).map(Into::into).collect(),
        Array::U64(values) => values.iter().take(MAX_SHOWN).map(|&value| exact(value)).collect(),
        Array::I64(values) => values.iter().take(MAX_SHOWN).map(|&value| exact(value)).collect(),
        Array::F64(values) => first(values),
    }
}

/// A number, or text where JavaScript's numbers would round it.
fn exact<T: Copy + ToString + Into<serde_json::Value> + TryInto<i64>>(value: T) -> serde_json::Value {
    const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;
    match value.try_into() {
        Ok(small) if (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(&small) => value.into(),
        _ => value.to_string().into(),
    }
}
