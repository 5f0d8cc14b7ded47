//! The engine: requests come in, are seen and cancelled; `step.rs` computes them.

use std::collections::VecDeque;
use std::rc::Rc;

use super::ahead::Ahead;
use super::events::Event;
use super::flight::Flight;
use super::groups::CacheGroups;
use super::guide::Guide;
use super::metrics::EngineMetrics;
use super::options::EngineOptions;
use super::output::Output;
use super::pace::Pace;
use super::queue::Rank;
use super::recorder::{Present, Recorder};
use super::sampling::derived_seed;
use super::scheduler::{Batching, Leaving, Rules, Scheduler};
use super::sequence::Sequence;
use super::trace::{StepTrace, Tracer};
use super::{Request, RequestId};
use crate::kv::{GroupConfig, KvManager, Restoring};
use crate::model::{BatchLimits, Forward};
use crate::text::{Compile, Grammars, Tokenizer};
use crate::{Error, Result};

/// Serves requests with one model. Not re-entrant: what arrives during a step waits for its end.
pub struct Engine<F: Forward> {
    pub(super) forward: F,
    pub(super) tokenizer: Rc<Tokenizer>,
    grammars: Grammars,
    pub(super) kv: KvManager,
    pub(super) scheduler: Scheduler,
    pub(super) groups: CacheGroups,
    /// Of a step: the model's, narrowed by the options.
    pub(super) limits: BatchLimits,
    pub(super) options: EngineOptions,
    next_id: u64,
    pub(super) recorder: Recorder,
    pub(super) pace: Pace,
    pub(super) ahead: Ahead,
    pub(super) tracer: Tracer,
    /// What was found before a step was computed; told after it.
    pub(super) early: Vec<Event>,
    /// Steps that were submitted and not collected, the oldest first.
    pub(super) in_flight: VecDeque<Flight>,
    /// Steps that were ever submitted.
    pub(super) num_submitted: u64,
    /// When the last step was collected, and whether there was more to compute then.
    pub(super) last_end_ms: f64,
    pub(super) was_busy: bool,
    /// Blocks that are being filled.
    pub(super) restoring: Option<Restoring>,
}

impl<F: Forward> Engine<F> {
    /// An engine without requests. `groups` describes the pools that `forward` has allocated.
    pub fn new(forward: F, tokenizer: Rc<Tokenizer>, groups: Vec<GroupConfig>, options: EngineOptions) -> Self {
        let mut limits = forward.limits();
        limits.max_tokens = limits.max_tokens.min(options.budget_tokens).max(1);
        let max_running = match options.batching {
            Batching::None => 1,
            _ => options.max_running.min(limits.max_sequences).max(1),
        };
        let rules = Rules { batching: options.batching, chunked_prefill: options.chunked_prefill, max_running };
        let mut kv = KvManager::new(groups);
        kv.set_policy(options.cache_policy);
        Self {
            forward,
            grammars: Grammars::new(Rc::clone(&tokenizer)),
            tokenizer,
            kv,
            scheduler: Scheduler::new(rules),
            groups: CacheGroups::default(),
            limits,
            options,
            next_id: 0,
            recorder: Recorder::new(),
            pace: Pace::default(),
            ahead: Ahead::default(),
            tracer: Tracer::default(),
            early: Vec::new(),
            in_flight: VecDeque::new(),
            num_submitted: 0,
            last_end_ms: f64::NEG_INFINITY,
            was_busy: false,
            restoring: None,
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

    /// The model, for [`super::evaluate`], which writes the blocks: the prefix cache is empty afterwards. What was submitted
    /// ahead of answers that have ended is waited for.
    ///
    /// # Errors
    /// `bad_request` while there are requests.
    pub async fn forward_alone(&mut self) -> Result<&mut F> {
        if self.has_requests() {
            return Err(Error::BadRequest("logits can be asked for while nothing is being generated".into()));
        }
        while !self.in_flight.is_empty() {
            // Nothing of it is used; a lost device shows with whatever comes next.
            drop(self.forward.collect().await);
            self.in_flight.pop_front();
        }
        self.kv.clear();
        Ok(&mut self.forward)
    }

    /// The blocks and who holds them.
    pub fn kv(&self) -> &KvManager {
        &self.kv
    }

    /// The counters and the present state.
    pub fn metrics(&self) -> EngineMetrics {
        self.recorder.snapshot(Present {
            num_waiting: self.scheduler.waiting().len(),
            num_running: self.scheduler.running().len(),
            num_preemptions: self.scheduler.num_preemptions,
            kv: self.kv.stats(),
            cache: self.kv.cache_stats(),
        })
    }

    /// Sets how long a submission to the device should take, in milliseconds: the step's budget and the number of
    /// submissions that a step is cut into follow what steps are measured to take. A page keeps drawing if the device is
    /// free in between. `None` takes as many tokens as there are and submits a step at once.
    pub fn set_step_target(&mut self, target_ms: Option<f64>) {
        self.options.step_target_ms = target_ms.filter(|ms| *ms > 0.0);
    }

    /// Sets [`EngineOptions::max_steps_ahead`]; steps that are in flight stay there.
    pub fn set_max_steps_ahead(&mut self, max_steps: Option<usize>) {
        self.options.max_steps_ahead = max_steps;
    }

    /// Gives it what compiles constraints, where that is not linked but loaded.
    pub fn set_grammar_compiler(&mut self, compiler: Box<dyn Compile>) {
        self.grammars.set_compiler(compiler);
    }

    /// Whether what each step holds is kept for [`Engine::take_trace`].
    pub fn set_tracing(&mut self, is_on: bool) {
        self.tracer.set(is_on);
    }

    /// The steps since the last call, the latest [`super::MAX_TRACED_STEPS`] of them.
    pub fn take_trace(&mut self) -> Vec<StepTrace> {
        self.tracer.take()
    }

    /// Takes a request; its answer comes from [`Engine::step`].
    ///
    /// # Errors
    /// As [`Engine::submit_choices`].
    pub fn submit(&mut self, request: Request, now_ms: f64) -> Result<RequestId> {
        Ok(self.submit_choices(request, 1, now_ms)?[0])
    }

    /// Takes a request for several answers. Its prompt is computed once, the first token of each is drawn from the same
    /// logits, and they go on as requests of their own, each with an id (and, but for the first, a seed) of its own. They
    /// share the prompt through the prefix cache: without it, each computes it again. What is more than a step can draw
    /// follows in the same way, behind what the cache has then.
    ///
    /// # Errors
    /// `bad_request` for a value out of range or a constraint that cannot be compiled, `context_too_long` if it can never fit,
    /// `queue_full`.
    pub fn submit_choices(&mut self, request: Request, num_choices: usize, now_ms: f64) -> Result<Vec<RequestId>> {
        let (max_tokens, edits) = self.check_request(&request, num_choices)?;
        // Whoever gets a free slot in the next step waits for nobody.
        let asked = (self.scheduler.waiting().len() + 1).saturating_sub(self.scheduler.num_open_slots());
        let allowed = self.options.max_waiting;
        if asked > allowed {
            self.recorder.rejected();
            let retry_after_ms = self.wait_ms(1).map(|ms| whole_ms(ms.ceil().max(1.0)));
            return Err(Error::QueueFull { asked, allowed, retry_after_ms });
        }
        let matcher = request.constraint.as_ref().map(|constraint| self.grammars.compile(constraint)).transpose()?;
        let guide = matcher.map(Guide::new);
        let ids: Vec<_> = (self.next_id..).take(num_choices).map(RequestId).collect();
        self.next_id += num_choices as u64;
        let rank = Rank::new(ids[0], now_ms, request.priority, self.options.priority_step_ms);
        let make = |(index, &id): (u64, &RequestId)| {
            let seed = match request.sampling.seed {
                Some(seed) if index == 0 => seed,
                Some(seed) => derived_seed(seed, index),
                None => derived_seed(self.options.seed, id.0),
            };
            let output = Output::new(&request, &self.tokenizer, max_tokens);
            let sequence = Sequence::new(rank.of(id), id, request.clone(), seed, edits.clone(), output, now_ms);
            // A token that is not drawn has no probability.
            let jumps_ahead = self.options.jumps_ahead && request.logprobs.is_none();
            sequence.guided(guide.as_ref().map(Guide::fork), jumps_ahead)
        };
        let mut choices: Vec<_> = (0..).zip(&ids).map(make).collect();
        choices.iter_mut().skip(1).for_each(Sequence::make_further);
        while !choices.is_empty() {
            let rest = choices.split_off(self.limits.max_rows.min(choices.len()));
            let mut first = choices.remove(0);
            first.choices = std::mem::replace(&mut choices, rest);
            self.scheduler.waiting_mut().push(first);
        }
        Ok(ids)
    }

    /// Whether a request is there and something of it was computed, or is being computed.
    pub fn has_started(&self, id: RequestId) -> bool {
        self.scheduler.has_started(id)
    }

    /// Ends a request and frees what it holds. No event follows; false if there is no such request any more.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        self.early.retain(|event| event.request() != id);
        let is_there = self.scheduler.remove(id, &mut self.kv, Leaving::Finished).is_some();
        if is_there {
            self.recorder.cancelled();
        }
        is_there
    }

    /// Whether a step would do anything. When all answers have ended, that may be to collect what was submitted ahead.
    pub fn has_work(&self) -> bool {
        self.has_requests() || !self.in_flight.is_empty()
    }

    /// Whether somebody waits for an event.
    fn has_requests(&self) -> bool {
        let has_sequences = self.scheduler.waiting().len() > 0 || !self.scheduler.running().is_empty();
        has_sequences || !self.early.is_empty()
    }

    /// Lets go of blocks that were to be filled and never were.
    pub(super) fn abort_restore(&mut self) {
        if let Some(restoring) = self.restoring.take() {
            self.kv.abort_restore(restoring);
        }
    }

    /// How long it will take until so many requests have left the queue.
    fn wait_ms(&self, num_requests: usize) -> Option<f64> {
        self.pace.wait_ms(num_requests, self.scheduler.running().len())
    }
}

/// A time as the cache counts: whole milliseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float beyond the range saturates")]
pub(super) fn whole_ms(ms: f64) -> u64 {
    ms as u64
}
