//! What a step brought, for the page.

use serde::Serialize;

use crate::Error;
use crate::engine::{CacheReport, FinishReason, Timings, Usage};

/// `RequestEvent` of `js/src/protocol.ts`; `request` is the page's id.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum PageEvent {
    Text { request: u32, text: String },
    Finished { request: u32, reason: FinishReason, usage: PageUsage, timings: Timings, cache: CacheReport },
    Failed { request: u32, error: PageError },
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
pub(super) struct PageError {
    code: &'static str,
    message: String,
}

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}
