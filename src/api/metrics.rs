//! How the engine is doing, for the page.

use js_sys::{ArrayBuffer, WebAssembly};
use serde::Serialize;
use wasm_bindgen::JsCast;

use crate::engine::{EngineMetrics, FinishedCounts, HistogramSummary};
use crate::kv::GroupStats;

/// `EngineMetrics` of `js/src/metrics-types.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMetrics {
    num_waiting: usize,
    num_running: usize,
    kv: Vec<PagePool>,
    kv_usage: f64,
    num_steps: u64,
    num_steps_ahead: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    generated_tokens: u64,
    overshot_tokens: u64,
    computed_tokens: u64,
    prefix_hit_rate: Option<f64>,
    num_preemptions: u64,
    num_finished: FinishedCounts,
    num_cancelled: u64,
    num_rejected: u64,
    num_expired: u64,
    num_failed: u64,
    num_out_of_memory: u64,
    ttft_ms: HistogramSummary,
    tpot_ms: HistogramSummary,
    inter_token_ms: HistogramSummary,
    queue_ms: HistogramSummary,
    e2e_ms: HistogramSummary,
    step_ms: HistogramSummary,
    gpu_step_ms: HistogramSummary,
    encode_ms: HistogramSummary,
    step_tokens: HistogramSummary,
    step_sequences: HistogramSummary,
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
        let pool = |pool: &GroupStats| PagePool { num_blocks: pool.num_blocks, used: pool.used, peak: pool.peak };
        Self {
            num_waiting: metrics.num_waiting,
            num_running: metrics.num_running,
            kv: metrics.kv.iter().map(pool).collect(),
            kv_usage: metrics.kv_usage,
            num_steps: metrics.num_steps,
            num_steps_ahead: metrics.num_steps_ahead,
            prompt_tokens: metrics.prompt_tokens,
            cached_tokens: metrics.cached_tokens,
            generated_tokens: metrics.generated_tokens,
            overshot_tokens: metrics.overshot_tokens,
            computed_tokens: metrics.computed_tokens,
            prefix_hit_rate: metrics.prefix_hit_rate(),
            num_preemptions: metrics.num_preemptions,
            num_finished: metrics.num_finished,
            num_cancelled: metrics.num_cancelled,
            num_rejected: metrics.num_rejected,
            num_expired: metrics.num_expired,
            num_failed: metrics.num_failed,
            num_out_of_memory: metrics.num_out_of_memory,
            ttft_ms: metrics.ttft_ms.summary(),
            tpot_ms: metrics.tpot_ms.summary(),
            inter_token_ms: metrics.inter_token_ms.summary(),
            queue_ms: metrics.queue_ms.summary(),
            e2e_ms: metrics.e2e_ms.summary(),
            step_ms: metrics.step_ms.summary(),
            gpu_step_ms: metrics.gpu_step_ms.summary(),
            encode_ms: metrics.encode_ms.summary(),
            step_tokens: metrics.step_tokens.summary(),
            step_sequences: metrics.step_sequences.summary(),
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
