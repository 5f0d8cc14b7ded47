//! One request on its way.

use std::rc::Rc;

use super::batch::narrow;
use super::caching::CacheReport;
use super::metrics::{Clock, Usage};
use super::output::{FinishReason, Output};
use super::sampling::LogitEdits;
use super::{Request, RequestId};
use crate::kv::{Hit, Retention};
use crate::model::RowSampling;

/// A prompt, what was generated after it, and all that is needed to go on. Where its keys and values are is the
/// scheduler's knowledge: a sequence can lose its blocks at any time and be computed again.
pub(super) struct Sequence {
    pub(super) id: RequestId,
    /// The prompt and the answer so far.
    tokens: Vec<u32>,
    num_prompt: usize,
    sampling: RowSampling,
    pub(super) edits: LogitEdits,
    output: Output,
    pub(super) clock: Clock,
    /// Whether the prompt is computed and nothing drawn.
    pub(super) is_prefill_only: bool,
    /// The salt to be cached under and for how long, if at all.
    pub(super) caching: Option<(String, Rc<Retention>)>,
    /// The key that it is counted under, until it was.
    pub(super) group: Option<String>,
    /// `None` until it was looked for in the cache.
    report: Option<CacheReport>,
    /// Tokens that it brought into the cache.
    pub(super) written_tokens: usize,
}

impl Sequence {
    /// A sequence whose request is valid and fits; `seed` is used if the request has none.
    pub(super) fn new(
        id: RequestId,
        request: Request,
        seed: u64,
        edits: LogitEdits,
        output: Output,
        now_ms: f64,
    ) -> Self {
        Self {
            id,
            num_prompt: request.prompt.len(),
            is_prefill_only: request.prefill_only,
            group: request.cache.group.clone(),
            caching: request.cache.enabled.then(|| {
                let retention = request.cache.retention(request.prompt.len());
                (request.cache.salt, retention)
            }),
            report: None,
            written_tokens: 0,
            sampling: request.sampling.row(request.sampling.seed.unwrap_or(seed)),
            edits,
            output,
            tokens: request.prompt,
            clock: Clock::new(now_ms),
        }
    }

    /// The prompt and the answer so far.
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// How the next token is drawn. The counter is its position, so an answer does not depend on what else runs.
    pub(super) fn row(&self) -> RowSampling {
        RowSampling { counter: narrow(self.tokens.len()), ..self.sampling }
    }

    /// Appends a sampled token; returns the text that may be shown now, and why the sequence ends, if it does.
    pub(super) fn push(&mut self, token: u32, now_ms: f64) -> (String, Option<FinishReason>) {
        self.tokens.push(token);
        self.edits.push(token);
        self.clock.token(now_ms);
        self.output.push(token)
    }

    /// Takes note of what the cache had when the sequence ran for the first time. After a preemption it finds its own.
    pub(super) fn note_hit(&mut self, hit: Option<&Hit>) {
        self.report.get_or_insert_with(|| CacheReport::of(hit, &self.tokens));
    }

    /// What the cache did for it.
    pub(super) fn report(&self) -> CacheReport {
        CacheReport { written_tokens: self.written_tokens, ..self.report.unwrap_or_default() }
    }

    pub(super) fn usage(&self) -> Usage {
        Usage {
            cached_tokens: self.report.map_or(0, |report| report.read_tokens),
            prompt_tokens: self.num_prompt,
            completion_tokens: self.tokens.len() - self.num_prompt,
            total_tokens: self.tokens.len(),
        }
    }
}
