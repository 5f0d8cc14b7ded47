//! What a step brought, for the page.

use serde::Serialize;

use crate::Error;
use crate::engine::{FinishReason, Timings, Usage};

/// `RequestEvent` of `js/src/protocol.ts`; `request` is the page's id.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum PageEvent {
    Text { request: u32, text: String },
    Finished { request: u32, reason: FinishReason, usage: Usage, timings: Timings },
    Failed { request: u32, error: PageError },
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
