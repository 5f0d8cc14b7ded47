//! What a caller asks for.

use super::caching::CacheOptions;
use super::deadline::Timeouts;
use super::sampling::{SamplingParams, bad_value};
use crate::model::MAX_TOP_LOGITS;
use crate::text::Constraint;
use crate::{Error, Result};

/// The most stop strings of one request.
pub const MAX_STOP_STRINGS: usize = 16;

/// The longest stop string, in bytes of UTF-8: that much text may be held back.
pub const MAX_STOP_STRING_BYTES: usize = 1024;

/// Priorities go from minus this to this.
pub const MAX_PRIORITY: i32 = 1000;

/// Names a request of one engine; each of several choices has a name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct RequestId(pub u64);

/// Levels of priority that have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Somebody watches: a head start over all others.
    Interactive,
    /// The default.
    Normal,
    /// Nobody waits for it.
    Batch,
}

impl Priority {
    /// The number that stands for it.
    pub const fn level(self) -> i32 {
        match self {
            Self::Interactive => 1,
            Self::Normal => 0,
            Self::Batch => -1,
        }
    }
}

/// One answer to be generated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Token ids, at least one.
    pub prompt: Vec<u32>,
    /// The most tokens of the answer; `None` means until the context is full.
    pub max_tokens: Option<usize>,
    /// How tokens are drawn.
    pub sampling: SamplingParams,
    /// Added to logits before drawing: -100 to 100, or negative infinity to forbid the token.
    pub logit_bias: Vec<(u32, f32)>,
    /// Only these tokens are ever drawn, at any temperature and whatever is added to their logits; `None` means all. The
    /// model's own end is one of them only if it is listed.
    pub allowed_token_ids: Option<Vec<u32>>,
    /// What the answer has to be; not together with `allowed_token_ids`. It ends where it is complete, or is cut by
    /// `max_tokens` and stop rules.
    pub constraint: Option<Constraint>,
    /// The answer ends before any of these.
    pub stop: Vec<String>,
    /// The answer ends at any of these, beside the model's own end-of-generation tokens.
    pub stop_token_ids: Vec<u32>,
    /// Go on after the model's own end-of-generation tokens (benchmarks, comparisons).
    pub ignore_end_of_generation: bool,
    /// Compute the prompt and answer nothing: it ends with `length` and no token. A later request starts warm.
    pub prefill_only: bool,
    /// Tell the log-probability of each drawn token, and those of so many of the most probable ones, 0 to
    /// [`crate::model::MAX_TOP_LOGITS`]; see [`RowScores`](crate::model::RowScores).
    pub logprobs: Option<usize>,
    /// Compute the prompt and answer with its embedding: the mean of its tokens' last hidden states, of length 1. The prefix
    /// cache is not used, because every token has to be computed.
    pub embeds: bool,
    /// Control tokens that show in the text as they are written, though others do not: those that open and close tool calls.
    pub shown_token_ids: Vec<u32>,
    /// How the prefix cache is to be used.
    pub cache: CacheOptions,
    /// A head start of so many times [`super::EngineOptions::priority_step_ms`]; see [`Priority`]. At most
    /// [`MAX_PRIORITY`] either way.
    pub priority: i32,
    /// When it is given up.
    pub timeouts: Timeouts,
    /// Report its place in the queue and how much of its prompt is computed.
    pub reports_progress: bool,
}

/// The most answers to one request.
pub const MAX_CHOICES: usize = 16;

impl Request {
    /// Checks everything that needs no knowledge of the context.
    ///
    /// # Errors
    /// `bad_request` naming the field, what was asked and what is allowed.
    pub(super) fn validate(&self, vocab_size: usize) -> Result<()> {
        self.sampling.validate()?;
        self.cache.validate()?;
        self.timeouts.validate()?;
        if !(-MAX_PRIORITY..=MAX_PRIORITY).contains(&self.priority) {
            return Err(bad_value("priority", self.priority, format_args!("-{MAX_PRIORITY} to {MAX_PRIORITY}")));
        }
        if self.prompt.is_empty() {
            return Err(bad_value("prompt", "0 tokens", "at least 1"));
        }
        if self.max_tokens == Some(0) {
            return Err(bad_value("max_tokens", 0, "at least 1"));
        }
        if let Some(asked) = self.logprobs.filter(|&num| num > MAX_TOP_LOGITS) {
            return Err(bad_value("top_logprobs", asked, format_args!("0 to {MAX_TOP_LOGITS}")));
        }
        let allowed_ids = self.allowed_token_ids.as_deref();
        if allowed_ids.is_some() && self.constraint.is_some() {
            // Together they might allow nothing in the middle of an answer.
            let why =
                "allowed_token_ids: not together with a response_format, grammar or regex, which allow tokens too";
            return Err(Error::BadRequest(why.into()));
        }
        if let Some(num) = allowed_ids.map(<[u32]>::len).filter(|num| !(1..=vocab_size).contains(num)) {
            return Err(bad_value("allowed_token_ids", format_args!("{num} ids"), format_args!("1 to {vocab_size}")));
        }
        let lists = [
            ("prompt", self.prompt.as_slice()),
            ("stop_token_ids", &self.stop_token_ids),
            ("allowed_token_ids", allowed_ids.unwrap_or_default()),
        ];
        for (name, ids) in lists {
            if let Some(&id) = ids.iter().find(|&&id| id as usize >= vocab_size) {
                return Err(bad_value(name, format_args!("token id {id}"), format_args!("below {vocab_size}")));
            }
        }
        if self.stop.len() > MAX_STOP_STRINGS {
            let allowed = format_args!("at most {MAX_STOP_STRINGS}");
            return Err(bad_value("stop", format_args!("{} strings", self.stop.len()), allowed));
        }
        let is_bad = |stop: &&String| !(1..=MAX_STOP_STRING_BYTES).contains(&stop.len());
        if let Some(stop) = self.stop.iter().find(is_bad) {
            let asked = format_args!("a string of {} bytes", stop.len()).to_string();
            return Err(bad_value("stop", asked, format_args!("1 to {MAX_STOP_STRING_BYTES} bytes")));
        }
        Ok(())
    }
}
