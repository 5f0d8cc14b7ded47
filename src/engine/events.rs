//! What a step tells its caller.

use super::RequestId;
use super::caching::CacheReport;
use super::metrics::{Timings, Usage};
use super::output::FinishReason;
use crate::Error;

/// What a step brought.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// How far a request is that has no token yet; only if it asked for that.
    Progress {
        /// Whose.
        request: RequestId,
        /// How far.
        progress: Progress,
    },
    /// A request's answer grew.
    Text {
        /// Whose answer.
        request: RequestId,
        /// What may be shown now: whole characters, and nothing that may begin a stop string. May be empty.
        text: String,
        /// The tokens sampled since the last event, one that ends the answer included.
        ids: Vec<u32>,
        /// One per id, if the request asked for them.
        logprobs: Vec<TokenLogprobs>,
    },
    /// An answer is complete; nothing follows.
    Finished {
        /// Whose answer.
        request: RequestId,
        /// Why it ended.
        reason: FinishReason,
        /// Its tokens.
        usage: Usage,
        /// Its times.
        timings: Timings,
        /// What the prefix cache did for it.
        cache: CacheReport,
        /// The mean of its prompt's last hidden states, of length 1, if it asked for that. Shape `[D]`.
        embedding: Option<Vec<f32>>,
    },
    /// A request failed; nothing follows.
    Failed {
        /// Which one.
        request: RequestId,
        /// Why.
        error: Error,
    },
}

impl Event {
    /// Whose event it is.
    pub fn request(&self) -> RequestId {
        match self {
            Self::Progress { request, .. }
            | Self::Text { request, .. }
            | Self::Finished { request, .. }
            | Self::Failed { request, .. } => *request,
        }
    }
}

/// How probable a drawn token was, and what else was: see [`RowScores`](crate::model::RowScores).
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprobs {
    /// The token that was drawn.
    pub token: TokenLogprob,
    /// The most probable tokens, the most probable first; the drawn one may be among them.
    pub top: Vec<TokenLogprob>,
    /// Whether it only ends the answer: then it is no part of it.
    pub is_end: bool,
}

/// A token and its log-probability.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprob {
    /// Which one.
    pub id: u32,
    /// The natural logarithm of its probability.
    pub logprob: f32,
    /// The bytes that it adds to the text at its place; those of control tokens are as they are written.
    pub bytes: Vec<u8>,
}

/// How far a request is that has no token yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// It waits.
    Waiting {
        /// Requests that will be served before it.
        position: usize,
        /// How long that is expected to take; `None` until an answer has ended to learn from.
        estimated_wait_ms: Option<f64>,
    },
    /// Its prompt is being computed.
    Prefill {
        /// Tokens of the prompt.
        total: usize,
        /// Those that the prefix cache had.
        cached: usize,
        /// Those that are there now, cached ones included.
        computed: usize,
    },
}
