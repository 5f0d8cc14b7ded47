//! The step loop: what is planned, what is in flight, and what becomes of it.

use super::ahead::Collected;
use super::batch::{assemble, guide_masks, guided};
use super::engine::whole_ms;
use super::events::{Event, Progress};
use super::flight::Flight;
use super::output::FinishReason;
use super::recorder::StepRecord;
use super::scheduler::{Leaving, Turn};
use super::sequence::{Drawn, DrawnRow};
use super::trace::StepTrace;
use super::{Engine, RequestId};
use crate::model::{Forward, StepExtras};
use crate::{Error, Result};

/// How a request ends.
type End = (RequestId, Result<FinishReason>, Leaving);

impl<F: Forward> Engine<F> {
    /// Submits steps until as many are in flight as it takes to keep the device busy, and collects the oldest. `now` is the
    /// time in milliseconds. If it is dropped while it waits, nothing is lost: the next call collects that step first.
    ///
    /// A failed step fails its requests, and no token of it is used; what was submitted behind it is thrown away and, for
    /// those that were not in it, computed again. A lost device fails all requests.
    pub async fn step(&mut self, now: impl Fn() -> f64) -> Vec<Event> {
        self.abort_restore();
        let start_ms = now();
        self.kv.set_now(whole_ms(start_ms));
        for (id, error) in self.scheduler.expired(start_ms) {
            let event = self.end(id, Err(error), Leaving::Finished, start_ms);
            self.early.extend(event);
        }
        while self.in_flight.len() < self.num_steps_ahead() && self.submit_step(start_ms) {}
        let collected = if self.in_flight.is_empty() { None } else { Some(self.forward.collect().await) };
        let mut events = std::mem::take(&mut self.early);
        if let Some((flight, result)) = self.in_flight.pop_front().zip(collected) {
            let result = result.map(|ids| (ids, self.forward.take_extras()));
            self.conclude(&flight, result, now(), &mut events);
        }
        self.report_waiting(&mut events);
        events
    }

    /// Steps that are to be in flight.
    fn num_steps_ahead(&self) -> usize {
        let wanted = self.options.max_steps_ahead.unwrap_or_else(|| self.ahead.num_steps());
        wanted.clamp(1, self.forward.max_ahead().max(1))
    }

    /// Plans a step and submits it. False if there is nothing to compute before what is in flight is collected.
    fn submit_step(&mut self, now_ms: f64) -> bool {
        let num_running = self.scheduler.running().len();
        let max_tokens = self.limits.max_tokens;
        let target_ms = self.options.step_target_ms;
        let budget = target_ms.map_or(max_tokens, |target_ms| self.pace.budget(target_ms, num_running, max_tokens));
        let turn = Turn { number: self.num_submitted + 1, is_ahead: !self.in_flight.is_empty() };
        let plan = self.scheduler.schedule(&mut self.kv, &self.limits, budget, turn);
        debug_assert_eq!(self.kv.check(), Ok(()));
        if plan.parts.is_empty() {
            let is_stuck = !turn.is_ahead && !self.scheduler.ids().is_empty();
            assert!(!is_stuck, "the first sequence always fits");
            return false;
        }
        for part in &plan.parts {
            let sequence = &mut self.scheduler.running_mut()[part.index].sequence;
            if let Some(queue_ms) = sequence.clock.start(now_ms).filter(|_| !sequence.is_further) {
                self.recorder.started(queue_ms, sequence.num_prompt(), sequence.num_cached());
            }
            self.groups.note(sequence);
        }
        let mut batch = assemble(&plan.parts, self.scheduler.running(), &self.kv);
        let num_tokens = batch.tokens.len();
        batch.num_submits = target_ms.map_or(1, |target_ms| self.pace.num_submits(target_ms, num_tokens));
        let masks = guided(&plan.parts, self.scheduler.running());
        let running = self.scheduler.running_mut();
        let submitted = match masks.is_empty() {
            true => self.forward.submit(&batch),
            false => self.forward.submit_masked(batch, &mut || guide_masks(&masks, running)),
        };
        let parts = plan.parts.clone();
        let flight = Flight::new(plan, self.scheduler.running(), num_tokens, now_ms, turn.is_ahead);
        if let Err(error) = submitted {
            let mut events = std::mem::take(&mut self.early);
            self.fail_step(&flight, &error, now_ms, &mut events);
            self.early = events;
            return false;
        }
        self.num_submitted = turn.number;
        self.scheduler.note_submitted(turn.number, &parts);
        self.recorder.submitted(turn.is_ahead);
        self.in_flight.push_back(flight);
        true
    }

    /// Makes events of a step that was collected.
    fn conclude(
        &mut self,
        flight: &Flight,
        result: Result<(Vec<u32>, StepExtras)>,
        now_ms: f64,
        events: &mut Vec<Event>,
    ) {
        let result = result.and_then(|(ids, StepExtras { scores, pools })| match flight.is_void {
            true => Ok((Vec::new(), pools)),
            false => Ok((flight.drawn(&ids, scores)?, pools)),
        });
        // The device begins with a step when it has done the one before.
        let start_ms = flight.start_ms.max(self.last_end_ms);
        let idle_ms = if self.was_busy { start_ms - self.last_end_ms } else { 0.0 };
        match result {
            Ok((drawn, pools)) if !flight.is_void => {
                let wall_ms = now_ms - start_ms;
                let (gpu_ms, encode_ms) = (self.forward.gpu_ms(), self.forward.encode_ms());
                let (num_tokens, num_sequences) = (flight.num_tokens, flight.parts.len());
                self.recorder.step(StepRecord { wall_ms, gpu_ms, encode_ms, num_tokens, num_sequences });
                self.pace.note_step(num_tokens, wall_ms);
                let was_alone = !flight.is_ahead && self.in_flight.is_empty();
                self.ahead.note(Collected { wall_ms: idle_ms + wall_ms, gpu_ms, encode_ms, was_alone });
                self.trace(flight, start_ms, now_ms);
                self.commit(flight, drawn, pools, now_ms, events);
            }
            Err(error) if !flight.is_void || matches!(error, Error::DeviceLost(_)) => {
                self.fail_step(flight, &error, now_ms, events);
            }
            _ => {}
        }
        self.last_end_ms = now_ms;
        self.was_busy = !self.scheduler.running().is_empty();
    }

    fn trace(&mut self, flight: &Flight, start_ms: f64, end_ms: f64) {
        self.tracer.push(|| StepTrace {
            start_ms,
            end_ms,
            gpu_ms: self.forward.gpu_ms(),
            encode_ms: self.forward.encode_ms(),
            num_waiting: self.scheduler.waiting().len(),
            parts: flight.parts.iter().map(|part| part.part).collect(),
            preempted: flight.preempted.clone(),
        });
    }

    /// Takes note of what was computed and hands out what was drawn. What belongs to nobody any more was computed for
    /// nothing: somebody ended or was cancelled while it was in flight.
    fn commit(
        &mut self,
        flight: &Flight,
        drawn: Vec<DrawnRow>,
        pools: Vec<Vec<f32>>,
        now_ms: f64,
        events: &mut Vec<Event>,
    ) {
        let mut ends: Vec<End> = Vec::new();
        let mut parted = Vec::new();
        let mut num_used = 0;
        let (mut rows, mut pools) = (drawn.into_iter(), pools.into_iter());
        let vocab_size = self.tokenizer.vocab_size();
        for part in &flight.parts {
            let drawn: Vec<_> = rows.by_ref().take(part.num_rows).collect();
            let pooled = if part.embeds { pools.next() } else { None };
            let Some(running) = self.scheduler.holder_mut(part.table, part.index) else { continue };
            let sequence = &mut running.sequence;
            if let Some(row) = drawn.iter().find(|row| row.id as usize >= vocab_size) {
                let error = Error::WrongResult(format!("token id {} sampled, below {vocab_size} allowed", row.id));
                ends.extend(sequence.ids().map(|id| (id, Err(error.clone()), Leaving::Failed)));
                num_used += drawn.len();
                continue;
            }
            let (start, end) = (part.part.start, part.part.end);
            running.num_computed = end;
            running.num_pending -= usize::from(part.part.samples);
            sequence.written_tokens += self.kv.commit(running.table, sequence.tokens(), end);
            self.kv.release_unreachable(running.table, end);
            events.extend(sequence.prefill_progress(start, end));
            if part.part.samples && !sequence.choices.is_empty() {
                parted.push(sequence.ids().collect::<Vec<_>>());
            }
            for Drawn { request, ids, times, text, logprobs, end } in sequence.draw(drawn, now_ms) {
                num_used += 1;
                times.into_iter().for_each(|time| self.recorder.token(time));
                events.push(Event::Text { request, text, ids, logprobs });
                ends.extend(end.map(|end| (request, end, Leaving::Finished)));
            }
            if let Some(sums) = pooled {
                sequence.pool(start, &sums);
            }
            if sequence.is_prefill_only && end == sequence.tokens().len() {
                let end = sequence.check_pooled().map(|()| FinishReason::Length);
                ends.push((sequence.id, end, Leaving::Finished));
            }
        }
        self.recorder.overshot(flight.rows.len() - num_used);
        for (request, end, leaving) in ends {
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

    /// Ends an answer where it is, as a stop rule would: its owner has enough. `None` if it has ended already.
    pub fn finish(&mut self, request: RequestId, now_ms: f64) -> Option<Event> {
        self.early.retain(|event| event.request() != request);
        self.end(request, Ok(FinishReason::Stop), Leaving::Finished, now_ms)
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
                let (cache, embedding) = (sequence.report(), sequence.embedding());
                Event::Finished { request, reason, usage, timings, cache, embedding }
            }
            Err(error) => {
                self.recorder.failed(&error);
                Event::Failed { request, error }
            }
        })
    }

    /// Ends the requests of a step, or all if the device is lost, with an error that makes all they computed suspect. What
    /// was submitted behind the step may build on it.
    fn fail_step(&mut self, flight: &Flight, error: &Error, now_ms: f64, events: &mut Vec<Event>) {
        self.recorder.step_failed(error);
        let mut requests = Vec::new();
        if matches!(error, Error::DeviceLost(_)) {
            requests = self.scheduler.ids();
        } else {
            for part in &flight.parts {
                let running = self.scheduler.holder_mut(part.table, part.index);
                requests.extend(running.iter().flat_map(|running| running.sequence.ids()));
            }
        }
        let end = |request| self.end(request, Err(error.clone()), Leaving::Failed, now_ms);
        events.extend(requests.into_iter().filter_map(end));
        self.in_flight.iter_mut().for_each(Flight::make_void);
        self.scheduler.forget_submitted();
    }
}
