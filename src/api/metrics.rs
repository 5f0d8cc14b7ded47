//! How the engine is doing, for the page.

use js_sys::{ArrayBuffer, WebAssembly};
use serde::Serialize;
use wasm_bindgen::JsCast;

use crate::engine::EngineMetrics;

/// `EngineMetrics` of `js/src/types.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMetrics {
    num_waiting: usize,
    num_running: usize,
    num_steps: u64,
    computed_tokens: u64,
    generated_tokens: u64,
    num_preemptions: u64,
    kv: Vec<PagePool>,
    wasm_memory_bytes: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PagePool {
    num_blocks: usize,
    used: usize,
    peak: usize,
}

impl From<EngineMetrics> for PageMetrics {
    fn from(metrics: EngineMetrics) -> Self {
        let pool =
            |pool: &crate::kv::GroupStats| PagePool { num_blocks: pool.num_blocks, used: pool.used, peak: pool.peak };
        Self {
            num_waiting: metrics.num_waiting,
            num_running: metrics.num_running,
            num_steps: metrics.num_steps,
            computed_tokens: metrics.computed_tokens,
            generated_tokens: metrics.generated_tokens,
            num_preemptions: metrics.num_preemptions,
            kv: metrics.kv.iter().map(pool).collect(),
            wasm_memory_bytes: wasm_memory_bytes(),
        }
    }
}

/// Bytes of the module's memory, which never shrinks: the most that was ever in use.
fn wasm_memory_bytes() -> u32 {
    let memory = wasm_bindgen::memory().dyn_into::<WebAssembly::Memory>();
    let buffer = memory.ok().and_then(|memory| memory.buffer().dyn_into::<ArrayBuffer>().ok());
    buffer.map_or(0, |buffer| buffer.byte_length())
}
