//! The step loop.

use std::rc::Rc;

use super::batch::assemble;
use super::caching::CacheReport;
use super::groups::CacheGroups;
use super::metrics::{EngineMetrics, Timings, Usage};
use super::output::{FinishReason, Output};
use super::sampling::{LogitEdits, bad_value, derived_seed};
use super::scheduler::{Leaving, Part, Scheduler};
use super::sequence::Sequence;
use super::{Request, RequestId};
use crate::kv::{GroupConfig, KvManager, Policy};
use crate::model::{BatchLimits, Forward};
use crate::text::Tokenizer;
use crate::{Error, Result};

/// What can be chosen when an engine is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOptions {
    /// Sequences that run at once, at most (and no more than the model's batches take).
    pub max_running: usize,
    /// Requests that wait, at most.
    pub max_waiting: usize,
    /// Tokens of a step, at most (and no more than the model's batches take).
    pub budget_tokens: usize,
    /// Requests without a seed get one derived from this.
    pub seed: u64,
    /// How the prefix cache chooses what to give up.
    pub cache_policy: Policy,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            max_running: usize::MAX,
            max_waiting: 256,
            budget_tokens: usize::MAX,
            seed: 0,
            cache_policy: Policy::Lru,
        }
    }
}

/// What a step brought.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A request's answer grew.
    Text {
        /// Whose answer.
        request: RequestId,
        /// What may be shown now: whole characters, and nothing that may begin a stop string. May be empty.
        text: String,
        /// The tokens sampled since the last event, one that ends the answer included.
        ids: Vec<u32>,
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
    },
    /// A request failed; nothing follows.
    Failed {
        /// Which one.
        request: RequestId,
        /// Why.
        error: Error,
    },
}

/// Serves requests with one model. Not re-entrant: what arrives during a step waits for its end.
pub struct Engine<F: Forward> {
    forward: F,
    tokenizer: Rc<Tokenizer>,
    pub(super) kv: KvManager,
    pub(super) scheduler: Scheduler,
    pub(super) groups: CacheGroups,
    /// Of a step: the model's, narrowed by the options.
    pub(super) limits: BatchLimits,
    options: EngineOptions,
    next_id: u64,
    /// The counters; what describes the present is filled in when asked.
    metrics: EngineMetrics,
}

impl<F: Forward> Engine<F> {
    /// An engine without requests. `groups` describes the pools that `forward` has allocated.
    pub fn new(forward: F, tokenizer: Rc<Tokenizer>, groups: Vec<GroupConfig>, options: EngineOptions) -> Self {
        let mut limits = forward.limits();
        limits.max_tokens = limits.max_tokens.min(options.budget_tokens).max(1);
        let max_running = options.max_running.min(limits.max_sequences).max(1);
        let mut kv = KvManager::new(groups);
        kv.set_policy(options.cache_policy);
        Self {
            forward,
            tokenizer,
            kv,
            scheduler: Scheduler::new(max_running),
            groups: CacheGroups::default(),
            limits,
            options,
            next_id: 0,
            metrics: EngineMetrics::default(),
        }
    }

    /// Tokens that a prompt and its answer may have together.
    pub fn context_length(&self) -> usize {
        self.kv.longest_sequence().min(self.limits.context_length)
    }

    /// The model.
    pub fn forward(&self) -> &F {
        &self.forward
    }

    /// The model, for [`super::evaluate`]: only while there is no work, because that writes the blocks. The prefix cache
    /// is empty afterwards.
    pub fn forward_mut(&mut self) -> &mut F {
        self.kv.clear();
        &mut self.forward
    }

    /// The blocks and who holds them.
    pub fn kv(&self) -> &KvManager {
        &self.kv
    }

    /// The counters and the present state.
    pub fn metrics(&self) -> EngineMetrics {
        EngineMetrics {
            num_waiting: self.scheduler.num_waiting(),
            num_running: self.scheduler.running().len(),
            num_preemptions: self.scheduler.num_preemptions,
            kv: self.kv.stats(),
            ..self.metrics.clone()
        }
    }

    /// Takes a request; its answer comes from [`Engine::step`].
    ///
    /// # Errors
    /// `bad_request` for a value out of range, `context_too_long` if it can never fit, `queue_full`.
    pub fn submit(&mut self, request: Request, now_ms: f64) -> Result<RequestId> {
        let (max_tokens, edits) = self.check_request(&request)?;
        let num_waiting = self.scheduler.num_waiting();
        if num_waiting >= self.options.max_waiting {
            return Err(Error::QueueFull { asked: num_waiting + 1, allowed: self.options.max_waiting });
        }
        let id = RequestId(self.next_id);
        let seed = derived_seed(self.options.seed, self.next_id);
        let output = Output::new(&request, &self.tokenizer, max_tokens);
        self.next_id += 1;
        self.scheduler.add(Sequence::new(id, request, seed, edits, output, now_ms));
        Ok(id)
    }

    /// The most tokens of a request's answer, and the edits of its logits.
    pub(super) fn check_request(&self, request: &Request) -> Result<(usize, LogitEdits)> {
        let vocab_size = self.tokenizer.vocab_size();
        request.validate(vocab_size)?;
        let allowed = self.context_length();
        let asked = request.prompt.len().saturating_add(request.max_tokens.unwrap_or(1));
        if asked > allowed {
            return Err(Error::ContextTooLong { asked, allowed });
        }
        let max_tokens = request.max_tokens.unwrap_or(allowed - request.prompt.len());
        let edits = LogitEdits::new(request, vocab_size)?;
        let (most, max_edits) = (edits.most(max_tokens, vocab_size), self.limits.max_edits);
        if most > max_edits {
            let allowed = format!("{max_edits} (a lower max_tokens or no penalties would help)");
            return Err(bad_value("logits changed by penalties and logit_bias", most, allowed));
        }
        Ok((max_tokens, edits))
    }

    /// Ends a request and frees what it holds. No event follows; false if there is no such request any more.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        self.scheduler.remove(id, &mut self.kv, Leaving::Finished).is_some()
    }

    /// Whether a step would do anything.
    pub fn has_work(&self) -> bool {
        self.scheduler.num_waiting() > 0 || !self.scheduler.running().is_empty()
    }

    /// Computes one step. `now` is the time in milliseconds. A step that is dropped before it ends did not happen.
    ///
    /// A failed step fails its requests, and no token of it is used; a lost device fails all requests.
    pub async fn step(&mut self, now: impl Fn() -> f64) -> Vec<Event> {
        let start_ms = now();
        self.kv.set_now(whole_ms(start_ms));
        let plan = self.scheduler.schedule(&mut self.kv, &self.limits);
        debug_assert_eq!(self.kv.check(), Ok(()));
        if plan.is_empty() {
            assert!(!self.has_work(), "the oldest sequence always fits");
            return Vec::new();
        }
        for part in &plan {
            let sequence = &mut self.scheduler.running_mut()[part.index].sequence;
            sequence.clock.start(start_ms);
            self.groups.note(sequence);
        }
        let batch = assemble(&plan, self.scheduler.running(), &self.kv);
        match self.forward.forward(&batch).await {
            Ok(ids) if ids.len() == batch.rows.len() => {
                self.metrics.num_steps += 1;
                self.metrics.computed_tokens += batch.tokens.len() as u64;
                self.commit(&plan, &ids, now())
            }
            Ok(ids) => {
                let error = format!("{} ids for {} rows", ids.len(), batch.rows.len());
                self.fail(self.ids(&plan), &Error::WrongResult(error))
            }
            Err(error @ Error::DeviceLost(_)) => self.fail(self.scheduler.ids(), &error),
            Err(error) => self.fail(self.ids(&plan), &error),
        }
    }

    fn ids(&self, plan: &[Part]) -> Vec<RequestId> {
        plan.iter().map(|part| self.scheduler.running()[part.index].sequence.id).collect()
    }

    /// Takes note of what was computed and hands out the sampled `ids`, one per part that samples.
    fn commit(&mut self, plan: &[Part], ids: &[u32], now_ms: f64) -> Vec<Event> {
        let mut events = Vec::new();
        let mut finished = Vec::new();
        let mut ids = ids.iter();
        for part in plan {
            let running = &mut self.scheduler.running_mut()[part.index];
            let request = running.sequence.id;
            let id = part.samples.then(|| ids.next().copied()).flatten();
            if let Some(id) = id.filter(|&id| id as usize >= self.tokenizer.vocab_size()) {
                let error = format!("token id {id} sampled, below {} allowed", self.tokenizer.vocab_size());
                finished.push((request, Err(Error::WrongResult(error))));
                continue;
            }
            running.num_computed = part.end;
            running.sequence.written_tokens += self.kv.commit(running.table, running.sequence.tokens(), part.end);
            self.kv.release_unreachable(running.table, part.end);
            if let Some(id) = id {
                self.metrics.generated_tokens += 1;
                let (text, reason) = running.sequence.push(id, now_ms);
                events.push(Event::Text { request, text, ids: vec![id] });
                finished.extend(reason.map(|reason| (request, Ok(reason))));
            } else if running.sequence.is_prefill_only && part.end == running.sequence.tokens().len() {
                finished.push((request, Ok(FinishReason::Length)));
            }
        }
        events.extend(finished.into_iter().filter_map(|(request, end)| self.end(request, end)));
        events
    }

    /// Takes a sequence out; returns its last event.
    fn end(&mut self, request: RequestId, end: Result<FinishReason>) -> Option<Event> {
        let leaving = if end.is_ok() { Leaving::Finished } else { Leaving::Failed };
        let sequence = self.scheduler.remove(request, &mut self.kv, leaving)?;
        Some(match end {
            Ok(reason) => {
                let usage = sequence.usage();
                let timings = sequence.clock.timings(usage.prompt_tokens - usage.cached_tokens);
                Event::Finished { request, reason, usage, timings, cache: sequence.report() }
            }
            Err(error) => Event::Failed { request, error },
        })
    }

    /// Ends requests with an error.
    fn fail(&mut self, requests: Vec<RequestId>, error: &Error) -> Vec<Event> {
        requests.into_iter().filter_map(|request| self.end(request, Err(error.clone()))).collect()
    }
}

/// A time as the cache counts: whole milliseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float beyond the range saturates")]
pub(super) fn whole_ms(ms: f64) -> u64 {
    ms as u64
}
