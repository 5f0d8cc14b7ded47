//! What needs neither a model nor a GPU: the prompt doctor and the memory calculator.

use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

use super::to_js;
use crate::doctor::explain;
use crate::model::{KvMemory, KvShape};
use crate::{Error, Result};

/// Why `next` does not continue `previous`. Both are JSON texts, as a request would carry them.
///
/// # Errors
/// `bad_request` for what is no prompt.
#[wasm_bindgen(js_name = explainMiss)]
pub fn explain_miss(previous: &str, next: &str) -> Result<JsValue, JsValue> {
    let read = |text: &str, which: &str| {
        serde_json::from_str(text).map_err(|error| Error::BadRequest(format!("the {which} prompt: {error}")))
    };
    to_js(&explain(&read(previous, "previous")?, &read(next, "next")?)?)
}

/// `KvMemoryParams` of `js/src/memory.ts`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PageShape {
    num_layers: usize,
    #[serde(default)]
    num_sliding_layers: usize,
    #[serde(default)]
    window: usize,
    kv_heads: usize,
    head_dim: usize,
    context_length: usize,
    kv: Option<String>,
    num_sequences: Option<usize>,
}

/// `KvMemory` of `js/src/memory.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PageMemory {
    bytes_per_token: u64,
    bytes_per_token_beyond_window: u64,
    full_bytes: u64,
    sliding_bytes: u64,
    total_bytes: u64,
}

/// What a KV cache takes, of `KvMemoryParams` as JSON.
///
/// # Errors
/// `bad_request` for fields that are missing, unknown or out of range.
#[wasm_bindgen(js_name = kvMemory)]
pub fn kv_memory(params: &str) -> Result<JsValue, JsValue> {
    let params: PageShape =
        serde_json::from_str(params).map_err(|error| Error::BadRequest(format!("params: {error}")))?;
    let full_layers = params.num_layers.checked_sub(params.num_sliding_layers).ok_or_else(|| {
        let (sliding, all) = (params.num_sliding_layers, params.num_layers);
        Error::BadRequest(format!("numSlidingLayers: {sliding}, of {all} layers in all"))
    })?;
    let shape = KvShape {
        full_layers,
        sliding_layers: params.num_sliding_layers,
        window: params.window,
        kv_heads: params.kv_heads,
        head_dim: params.head_dim,
    };
    let format = params.kv.as_deref().unwrap_or("f16");
    let memory = shape.memory(format, params.context_length, params.num_sequences.unwrap_or(1))?;
    let KvMemory { bytes_per_token, bytes_per_token_beyond_window, full_bytes, sliding_bytes, total_bytes } = memory;
    to_js(&PageMemory { bytes_per_token, bytes_per_token_beyond_window, full_bytes, sliding_bytes, total_bytes })
}
