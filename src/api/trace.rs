//! What steps did, for the page.

use serde::Serialize;

use crate::engine::{RequestId, StepPart, StepTrace};

/// An answer as the page knows it: its id of the request, and the index of the choice.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct PageAnswer {
    pub(super) request: u32,
    pub(super) choice: usize,
}

/// `WasmStep` of `js/src/wasm.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageStep {
    start_ms: f64,
    end_ms: f64,
    gpu_ms: Option<f64>,
    encode_ms: Option<f64>,
    num_waiting: usize,
    parts: Vec<PagePart>,
    preempted: Vec<PageAnswer>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PagePart {
    request: u32,
    choice: usize,
    start: usize,
    end: usize,
    num_prompt: usize,
    samples: bool,
}

impl PageStep {
    /// `answer_of` says whose an id is; what nobody owns any more is left out.
    pub(super) fn new(step: StepTrace, answer_of: impl Fn(RequestId) -> Option<PageAnswer>) -> Self {
        let part = |part: StepPart| {
            let StepPart { request, start, end, num_prompt, samples } = part;
            let PageAnswer { request, choice } = answer_of(request)?;
            Some(PagePart { request, choice, start, end, num_prompt, samples })
        };
        Self {
            start_ms: step.start_ms,
            end_ms: step.end_ms,
            gpu_ms: step.gpu_ms,
            encode_ms: step.encode_ms,
            num_waiting: step.num_waiting,
            parts: step.parts.into_iter().filter_map(part).collect(),
            preempted: step.preempted.into_iter().filter_map(&answer_of).collect(),
        }
    }
}
