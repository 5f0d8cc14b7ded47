//! The simulator, for the page: the engine's own scheduler on a machine that does not exist.

use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

use super::to_js;
use crate::engine::StepTrace;
use crate::simulation::{CostModel, Outcome, Report, RequestOutcome, Simulation, simulate};
use crate::{Error, Result};

/// `SimulationParams` of `js/src/simulation.ts`, with names as the simulator writes them.
#[derive(Debug, Deserialize)]
struct PageSimulation {
    /// A machine by its name, in the place of `cost`.
    machine: Option<Machine>,
    /// Requests that steps are told of.
    #[serde(default)]
    num_traced: usize,
    #[serde(flatten)]
    simulation: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Machine {
    Software,
    Integrated,
    Server,
    A100Opt13b,
}

impl Machine {
    fn cost(self) -> CostModel {
        match self {
            Self::Software => CostModel::SOFTWARE,
            Self::Integrated => CostModel::INTEGRATED,
            Self::Server => CostModel::SERVER,
            Self::A100Opt13b => CostModel::A100_OPT_13B,
        }
    }
}

/// `SimulationResult` of `js/src/simulation.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PageOutcome {
    report: Report,
    classes: Vec<Report>,
    requests: Vec<PageRequestOutcome>,
    steps: Vec<PageStep>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PageRequestOutcome {
    class: usize,
    at_ms: f64,
    start_ms: f64,
    first_token_ms: f64,
    end_ms: f64,
    num_prompt: usize,
    num_cached: usize,
    num_generated: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PageStep {
    start_ms: f64,
    end_ms: f64,
    num_tokens: usize,
    num_sequences: usize,
    num_waiting: usize,
    parts: Vec<PagePart>,
    preempted: Vec<usize>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PagePart {
    request: usize,
    start: usize,
    end: usize,
    num_prompt: usize,
    samples: bool,
}

impl PageOutcome {
    /// Of a workload of so many classes; steps tell of the first `num_traced` requests.
    fn new(outcome: &Outcome, num_classes: usize, num_traced: usize) -> Self {
        let num_traced = num_traced.min(outcome.requests.len());
        Self {
            report: outcome.report(),
            classes: (0..num_classes).map(|class| outcome.report_of(class)).collect(),
            requests: outcome.requests.iter().map(PageRequestOutcome::new).collect(),
            steps: outcome.steps.iter().map(|step| PageStep::new(step, &outcome.requests[..num_traced])).collect(),
        }
    }
}

impl PageRequestOutcome {
    fn new(request: &RequestOutcome) -> Self {
        Self {
            class: request.class,
            at_ms: request.at_ms,
            start_ms: request.at_ms + request.queue_ms,
            first_token_ms: request.at_ms + request.ttft_ms(),
            end_ms: request.at_ms + request.end_to_end_ms(),
            num_prompt: request.num_prompt,
            num_cached: request.num_cached,
            num_generated: request.ids.len(),
        }
    }
}

impl PageStep {
    fn new(step: &StepTrace, traced: &[RequestOutcome]) -> Self {
        // Ids are given in order of arrival.
        let index_of = |id| traced.binary_search_by_key(&id, |request| request.request).ok();
        let part = |part: &crate::engine::StepPart| {
            let &crate::engine::StepPart { request, start, end, num_prompt, samples } = part;
            Some(PagePart { request: index_of(request)?, start, end, num_prompt, samples })
        };
        Self {
            start_ms: step.start_ms,
            end_ms: step.end_ms,
            num_tokens: step.parts.iter().map(|part| part.end - part.start).sum(),
            num_sequences: step.parts.len(),
            num_waiting: step.num_waiting,
            parts: step.parts.iter().filter_map(part).collect(),
            preempted: step.preempted.iter().filter_map(|&request| index_of(request)).collect(),
        }
    }
}

/// Runs a simulation, of `SimulationParams` as JSON.
///
/// # Errors
/// `bad_request` for a field that is unknown, missing or out of range, `context_too_long` when a request can never fit.
#[wasm_bindgen(js_name = simulate)]
pub fn simulate_serving(params: &str) -> Result<JsValue, JsValue> {
    let bad = |error: serde_json::Error| Error::BadRequest(format!("simulate: {error}"));
    let PageSimulation { machine, num_traced, simulation } = serde_json::from_str(params).map_err(bad)?;
    let is_both = machine.is_some() && simulation.contains_key("cost");
    let mut simulation: Simulation = serde_json::from_value(simulation.into()).map_err(bad)?;
    if let Some(machine) = machine {
        if is_both {
            return Err(Error::BadRequest("simulate: a machine and a cost are given, one is allowed".into()).into());
        }
        simulation.cost = machine.cost();
    }
    let outcome = simulate(&simulation)?;
    to_js(&PageOutcome::new(&outcome, simulation.workload.classes.len(), num_traced))
}
