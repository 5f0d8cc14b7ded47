//! Serving a workload: requests are submitted when they arrive, steps follow each other, and everything is noted.

use std::collections::BTreeMap;

use super::report::Report;
use super::workload::Arrival;
use crate::engine::{Engine, Event, RequestId, StepTrace};
use crate::model::Forward;
use crate::{Error, Result};

/// Where the time comes from: a virtual clock, or a real one that the caller brings.
pub trait Clock {
    /// The time, in milliseconds since the workload began.
    fn now_ms(&self) -> f64;
    /// Lets time pass until `ms`.
    fn wait_until(&self, ms: f64);
}

/// One request that was served.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestOutcome {
    /// What the engine called it; [`StepTrace`] does too.
    pub request: RequestId,
    /// Index of its class.
    pub class: usize,
    /// When it arrived.
    pub at_ms: f64,
    /// From arrival to the start of its first step.
    pub queue_ms: f64,
    /// When each of its tokens was there, on the clock.
    pub token_ms: Vec<f64>,
    /// Tokens of the prompt.
    pub num_prompt: usize,
    /// Tokens of the prompt that the prefix cache had.
    pub num_cached: usize,
    /// The answer.
    pub ids: Vec<u32>,
}

impl RequestOutcome {
    /// From arrival to the first token.
    pub fn ttft_ms(&self) -> f64 {
        self.token_ms.first().map_or(0.0, |ms| ms - self.at_ms)
    }

    /// From arrival to the last token.
    pub fn end_to_end_ms(&self) -> f64 {
        self.token_ms.last().map_or(0.0, |ms| ms - self.at_ms)
    }

    /// Times between a token and the next.
    pub fn gaps_ms(&self) -> impl Iterator<Item = f64> + '_ {
        self.token_ms.windows(2).map(|pair| pair[1] - pair[0])
    }
}

/// What became of a workload.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// One per request, in order of arrival.
    pub requests: Vec<RequestOutcome>,
    /// Every step.
    pub steps: Vec<StepTrace>,
    /// From the start to the last token.
    pub makespan_ms: f64,
    /// Sequences that could run at once.
    pub num_slots: usize,
    /// Tokens that went through the model, those computed again included.
    pub computed_tokens: u64,
    /// Times that a running sequence had to give up its blocks.
    pub num_preemptions: u64,
}

impl Outcome {
    /// The figures of all requests.
    pub fn report(&self) -> Report {
        Report::new(self, |_| true)
    }

    /// The figures of the requests of a class; those of the machine are of all.
    pub fn report_of(&self, class: usize) -> Report {
        Report::new(self, |request| request.class == class)
    }
}

/// Serves `arrivals`, which are in order of arrival, with an engine that has nothing else to do.
///
/// `num_slots` is what occupancy is measured against: the sequences that may run at once.
///
/// # Errors
/// That of the first request that is refused or fails.
pub async fn run<F: Forward>(
    engine: &mut Engine<F>,
    arrivals: &[Arrival],
    clock: &impl Clock,
    num_slots: usize,
) -> Result<Outcome> {
    let before = engine.metrics();
    let mut outcomes = Vec::with_capacity(arrivals.len());
    let mut indices = BTreeMap::new();
    let mut steps = Vec::new();
    engine.set_tracing(true);
    let mut coming = arrivals.iter().peekable();
    loop {
        while let Some(arrival) = coming.next_if(|arrival| arrival.at_ms <= clock.now_ms()) {
            let request = engine.submit(arrival.request.clone(), arrival.at_ms)?;
            indices.insert(request, outcomes.len());
            outcomes.push(RequestOutcome {
                request,
                class: arrival.class,
                at_ms: arrival.at_ms,
                queue_ms: 0.0,
                token_ms: Vec::new(),
                num_prompt: arrival.request.prompt.len(),
                num_cached: 0,
                ids: Vec::new(),
            });
        }
        if !engine.has_work() {
            let Some(next) = coming.peek() else { break };
            clock.wait_until(next.at_ms);
            continue;
        }
        for event in engine.step(|| clock.now_ms()).await {
            note(event, &indices, &mut outcomes, clock.now_ms())?;
        }
        steps.extend(engine.take_trace());
    }
    engine.set_tracing(false);
    let after = engine.metrics();
    Ok(Outcome {
        makespan_ms: outcomes.iter().filter_map(|outcome| outcome.token_ms.last()).fold(0.0, |a, &b| b.max(a)),
        requests: outcomes,
        steps,
        num_slots,
        computed_tokens: after.computed_tokens - before.computed_tokens,
        num_preemptions: after.num_preemptions - before.num_preemptions,
    })
}

fn note(
    event: Event,
    indices: &BTreeMap<RequestId, usize>,
    outcomes: &mut [RequestOutcome],
    now_ms: f64,
) -> Result<()> {
    let Some(outcome) = indices.get(&event.request()).and_then(|&index| outcomes.get_mut(index)) else {
        return Err(Error::WrongResult("an event of a request that is not of this workload".into()));
    };
    match event {
        Event::Text { ids, .. } => {
            outcome.token_ms.extend(ids.iter().map(|_| now_ms));
            outcome.ids.extend(ids);
        }
        Event::Finished { timings, usage, .. } => {
            outcome.queue_ms = timings.queue_ms;
            outcome.num_cached = usage.cached_tokens;
        }
        Event::Failed { error, .. } => return Err(error),
        Event::Progress { .. } => {}
    }
    Ok(())
}
