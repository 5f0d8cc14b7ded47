//! The step loop.

use std::rc::Rc;

use super::batch::assemble;
use super::events::{Event, Progress};
use super::groups::CacheGroups;
use super::metrics::EngineMetrics;
use super::options::EngineOptions;
use super::output::{FinishReason, Output};
use super::pace::Pace;
use super::queue::Rank;
use super::recorder::{Present, Recorder, StepRecord};
use super::sampling::derived_seed;
use super::scheduler::{Batching, Leaving, Part, Plan, Rules, Scheduler};
use super::sequence::Sequence;
use super::trace::{StepPart, StepTrace, Tracer};
use super::{Request, RequestId};
use crate::kv::{GroupConfig, KvManager, Restoring};
use crate::model::{BatchLimits, Forward};
use crate::text::Tokenizer;
use crate::{Error, Result};

/// Serves requests with one model. Not re-entrant: what arrives during a step waits for its end.
pub struct Engine<F: Forward> {
    pub(super) forward: F,
    pub(super) tokenizer: Rc<Tokenizer>,
    pub(super) kv: KvManager,
    pub(super) scheduler: Scheduler,
    pub(super) groups: CacheGroups,
    /// Of a step: the model's, narrowed by the options.
    pub(super) limits: BatchLimits,
    options: EngineOptions,
    next_id: u64,
    recorder: Recorder,
    pace: Pace,
    tracer: Tracer,
    /// What was found before a step was computed; told after it.
    early: Vec<Event>,
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
            tokenizer,
            kv,
            scheduler: Scheduler::new(rules),
            groups: CacheGroups::default(),
            limits,
            options,
            next_id: 0,
            recorder: Recorder::new(),
            pace: Pace::default(),
            tracer: Tracer::default(),
            early: Vec::new(),
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
    /// `bad_request` for a value out of range, `context_too_long` if it can never fit, `queue_full`.
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
            Sequence::new(rank.of(id), id, request.clone(), seed, edits.clone(), output, now_ms)
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

    /// Whether a step would do anything.
    pub fn has_work(&self) -> bool {
        self.scheduler.waiting().len() > 0 || !self.scheduler.running().is_empty() || !self.early.is_empty()
    }

    /// Computes one step. `now` is the time in milliseconds. A step that is dropped before it ends did not happen.
    ///
    /// A failed step fails its requests, and no token of it is used; a lost device fails all requests.
    pub async fn step(&mut self, now: impl Fn() -> f64) -> Vec<Event> {
        self.abort_restore();
        let start_ms = now();
        self.kv.set_now(whole_ms(start_ms));
        for (id, error) in self.scheduler.expired(start_ms) {
            let event = self.end(id, Err(error), Leaving::Finished, start_ms);
            self.early.extend(event);
        }
        let num_running = self.scheduler.running().len();
        let budget = self.options.step_target_ms.map_or(self.limits.max_tokens, |target_ms| {
            self.pace.budget(target_ms, num_running, self.limits.max_tokens)
        });
        let plan = self.scheduler.schedule(&mut self.kv, &self.limits, budget);
        debug_assert_eq!(self.kv.check(), Ok(()));
        if plan.parts.is_empty() {
            assert!(self.scheduler.ids().is_empty(), "the first sequence always fits");
            return std::mem::take(&mut self.early);
        }
        for part in &plan.parts {
            let sequence = &mut self.scheduler.running_mut()[part.index].sequence;
            if let Some(queue_ms) = sequence.clock.start(start_ms).filter(|_| !sequence.is_further) {
                self.recorder.started(queue_ms, sequence.num_prompt(), sequence.num_cached());
            }
            self.groups.note(sequence);
        }
        let mut batch = assemble(&plan.parts, self.scheduler.running(), &self.kv);
        let num_tokens = batch.tokens.len();
        batch.num_submits =
            self.options.step_target_ms.map_or(1, |target_ms| self.pace.num_submits(target_ms, num_tokens));
        let result = self.forward.forward(&batch).await;
        let end_ms = now();
        let result = result.and_then(|ids| match ids.len() == batch.rows.len() {
            true => Ok(ids),
            false => Err(Error::WrongResult(format!("{} ids for {} rows", ids.len(), batch.rows.len()))),
        });
        let mut events = std::mem::take(&mut self.early);
        if let Err(error) = &result {
            self.recorder.step_failed(error);
        }
        match result {
            Ok(ids) => {
                self.recorder.step(StepRecord {
                    wall_ms: end_ms - start_ms,
                    gpu_ms: self.forward.gpu_ms(),
                    encode_ms: self.forward.encode_ms(),
                    num_tokens,
                    num_sequences: plan.parts.len(),
                });
                self.pace.note_step(num_tokens, end_ms - start_ms);
                self.trace(&plan, start_ms, end_ms);
                self.commit(&plan.parts, &ids, end_ms, &mut events);
            }
            Err(error @ Error::DeviceLost(_)) => self.fail(self.scheduler.ids(), &error, end_ms, &mut events),
            Err(error) => self.fail(self.ids(&plan.parts), &error, end_ms, &mut events),
        }
        self.report_waiting(&mut events);
        events
    }

    /// Lets go of blocks that were to be filled and never were.
    pub(super) fn abort_restore(&mut self) {
        if let Some(restoring) = self.restoring.take() {
            self.kv.abort_restore(restoring);
        }
    }

    fn ids(&self, parts: &[Part]) -> Vec<RequestId> {
        parts.iter().flat_map(|part| self.scheduler.running()[part.index].sequence.ids()).collect()
    }

    fn trace(&mut self, plan: &Plan, start_ms: f64, end_ms: f64) {
        let running = self.scheduler.running();
        let part = |&Part { index, start, end, samples }: &Part| {
            let sequence = &running[index].sequence;
            StepPart { request: sequence.id, start, end, num_prompt: sequence.num_prompt(), samples }
        };
        self.tracer.push(|| StepTrace {
            start_ms,
            end_ms,
            gpu_ms: self.forward.gpu_ms(),
            encode_ms: self.forward.encode_ms(),
            num_waiting: self.scheduler.waiting().len(),
            parts: plan.parts.iter().map(part).collect(),
            preempted: plan.preempted.clone(),
        });
    }

    /// Takes note of what was computed and hands out the sampled `ids`: one per choice of each part that samples.
    fn commit(&mut self, parts: &[Part], ids: &[u32], now_ms: f64, events: &mut Vec<Event>) {
        let mut finished = Vec::new();
        let mut parted = Vec::new();
        let mut rest = ids;
        let vocab_size = self.tokenizer.vocab_size();
        for part in parts {
            let running = &mut self.scheduler.running_mut()[part.index];
            let sequence = &mut running.sequence;
            let drawn;
            (drawn, rest) = rest.split_at(if part.samples { 1 + sequence.choices.len() } else { 0 });
            if let Some(id) = drawn.iter().find(|&&id| id as usize >= vocab_size) {
                let error = Error::WrongResult(format!("token id {id} sampled, below {vocab_size} allowed"));
                finished.extend(sequence.ids().map(|id| (id, Err(error.clone()), Leaving::Failed)));
                continue;
            }
            running.num_computed = part.end;
            sequence.written_tokens += self.kv.commit(running.table, sequence.tokens(), part.end);
            self.kv.release_unreachable(running.table, part.end);
            events.extend(sequence.prefill_progress(part.start, part.end));
            if drawn.len() > 1 {
                parted.push(sequence.ids().collect::<Vec<_>>());
            }
            for drawn in sequence.draw(drawn, now_ms) {
                self.recorder.token(drawn.time);
                events.push(Event::Text { request: drawn.request, text: drawn.text, ids: vec![drawn.id] });
                finished.extend(drawn.end.map(|reason| (drawn.request, Ok(reason), Leaving::Finished)));
            }
            if sequence.is_prefill_only && part.end == sequence.tokens().len() {
                finished.push((sequence.id, Ok(FinishReason::Length), Leaving::Finished));
            }
        }
        for (request, end, leaving) in finished {
            events.extend(self.end(request, end, leaving, now_ms));
        }
        for ids in parted {
            self.scheduler.part_choices(&ids, &mut self.kv, &self.limits);
        }
    }

    /// Tells those who wait and want to know where they are.
    fn report_waiting(&mut self, events: &mut Vec<Event>) {
        let (num_running, num_slots) = (self.scheduler.running().len(), self.scheduler.num_slots());
        let pace = self.pace;
        for (position, sequence) in self.scheduler.waiting_mut().iter_mut().enumerate() {
            let estimated_wait_ms = pace.wait_ms((position + 1).saturating_sub(num_slots), num_running);
            let progress = Progress::Waiting { position, estimated_wait_ms };
            events.extend(sequence.changed_progress(progress));
        }
    }

    /// How long it will take until so many requests have left the queue.
    fn wait_ms(&self, num_requests: usize) -> Option<f64> {
        self.pace.wait_ms(num_requests, self.scheduler.running().len())
    }

    /// Takes a sequence out; returns its last event.
    fn end(&mut self, request: RequestId, end: Result<FinishReason>, leaving: Leaving, now_ms: f64) -> Option<Event> {
        let sequence = self.scheduler.remove(request, &mut self.kv, leaving)?;
        Some(match end {
            Ok(reason) => {
                sequence.clock.service_ms(now_ms).into_iter().for_each(|ms| self.pace.note_answer(ms));
                let usage = sequence.usage();
                let timings = sequence.clock.timings(usage.prompt_tokens - usage.cached_tokens);
                self.recorder.finished(reason, &timings, sequence.clock.elapsed_ms(now_ms));
                Event::Finished { request, reason, usage, timings, cache: sequence.report() }
            }
            Err(error) => {
                self.recorder.failed(&error);
                Event::Failed { request, error }
            }
        })
    }

    /// Ends requests with an error that makes all they computed suspect.
    fn fail(&mut self, requests: Vec<RequestId>, error: &Error, now_ms: f64, events: &mut Vec<Event>) {
        let end = |request| self.end(request, Err(error.clone()), Leaving::Failed, now_ms);
        events.extend(requests.into_iter().filter_map(end));
    }
}

/// A time as the cache counts: whole milliseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float beyond the range saturates")]
pub(super) fn whole_ms(ms: f64) -> u64 {
    ms as u64
}
