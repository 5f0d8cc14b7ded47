//! What each step held, for drawing and for measuring.

use std::collections::VecDeque;

use super::RequestId;

/// Steps that are kept when nobody fetches them.
pub const MAX_TRACED_STEPS: usize = 1024;

/// One sequence's part of a step: its positions `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepPart {
    /// Whose.
    pub request: RequestId,
    /// First position that was computed.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// Tokens of its prompt; what is beyond was generated.
    pub num_prompt: usize,
    /// Whether a token was drawn for it.
    pub samples: bool,
}

/// A step that was computed.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepTrace {
    /// When it was planned, on the caller's clock.
    pub start_ms: f64,
    /// When its tokens were there.
    pub end_ms: f64,
    /// What the device says it took, where it can tell.
    pub gpu_ms: Option<f64>,
    /// What the CPU took to hand it to the device, where that is somebody else.
    pub encode_ms: Option<f64>,
    /// Requests that waited meanwhile.
    pub num_waiting: usize,
    /// What it computed.
    pub parts: Vec<StepPart>,
    /// Who had to give up its blocks before it.
    pub preempted: Vec<RequestId>,
}

/// The latest steps, if they are asked for.
#[derive(Debug, Default)]
pub(super) struct Tracer {
    steps: Option<VecDeque<StepTrace>>,
}

impl Tracer {
    pub(super) fn set(&mut self, is_on: bool) {
        self.steps = is_on.then(VecDeque::new);
    }

    /// Keeps a step; it is only made when somebody wants it.
    pub(super) fn push(&mut self, step: impl FnOnce() -> StepTrace) {
        if let Some(steps) = &mut self.steps {
            if steps.len() == MAX_TRACED_STEPS {
                steps.pop_front();
            }
            steps.push_back(step());
        }
    }

    pub(super) fn take(&mut self) -> Vec<StepTrace> {
        self.steps.as_mut().map_or_else(Vec::new, |steps| steps.drain(..).collect())
    }
}
