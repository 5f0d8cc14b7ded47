//! What a step brought, for the page.

use serde::Serialize;

use super::error::retry_after_ms;
use super::logprobs::PageLogprobs;
use crate::Error;
use crate::engine::{CacheReport, Progress, Timings, Usage};
use crate::text::ToolCallError;

/// `RequestEvent` of `js/src/protocol.ts`; `request` is the page's id, `choice` the index of the answer.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum PageEvent {
    Text {
        request: u32,
        choice: usize,
        text: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        logprobs: Vec<PageLogprobs>,
    },
    Call {
        request: u32,
        choice: usize,
        index: usize,
        id: String,
        name: String,
    },
    Arguments {
        request: u32,
        choice: usize,
        index: usize,
        text: String,
    },
    Malformed {
        request: u32,
        choice: usize,
        index: Option<usize>,
        text: String,
        error: ToolCallError,
    },
    Progress {
        request: u32,
        progress: PageProgress,
    },
    Finished {
        request: u32,
        choice: usize,
        reason: &'static str,
        usage: PageUsage,
        timings: Timings,
        cache: CacheReport,
        #[serde(skip_serializing_if = "Option::is_none")]
        embedding: Option<Vec<f32>>,
    },
    Failed {
        request: u32,
        error: PageError,
    },
}

/// `RequestProgress` of `js/src/openai.ts`.
#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(super) enum PageProgress {
    Waiting { position: usize, estimated_wait_ms: Option<f64> },
    Prefill { total: usize, cached: usize, computed: usize },
}

impl From<Progress> for PageProgress {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::Waiting { position, estimated_wait_ms } => Self::Waiting { position, estimated_wait_ms },
            Progress::Prefill { total, cached, computed } => Self::Prefill { total, cached, computed },
        }
    }
}

/// Tokens in OpenAI's shape.
#[derive(Debug, Serialize)]
pub(super) struct PageUsage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: PromptTokensDetails,
}

#[derive(Debug, Serialize)]
struct PromptTokensDetails {
    cached_tokens: usize,
}

impl From<Usage> for PageUsage {
    fn from(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.total_tokens,
            prompt_tokens_details: PromptTokensDetails { cached_tokens: usage.cached_tokens },
        }
    }
}

/// An error as data.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageError {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        Self { code: error.code(), message: error.to_string(), retry_after_ms: retry_after_ms(&error) }
    }
}
