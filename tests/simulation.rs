//! The simulator: what is generated, what is conserved whatever the schedule, and what the modes do. All of it is on a
//! virtual clock, so times are exact.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use pagewise::engine::{Batching, Engine, EngineOptions, Priority, RequestId};
use pagewise::kv::GroupConfig;
use pagewise::model::BatchLimits;
use pagewise::simulation::{
    Arrival, Arrivals, CostModel, Lengths, Outcome, Percentiles, SimForward, Simulation, VirtualClock, Workload, draw,
    run, simulate, tokenizer,
};
use pollster::block_on;

/// Small enough that the managers' own checks, which run at every step of a test, do not take long.
fn small(arrivals: Arrivals, spread: f64) -> Simulation {
    let mut workload = Workload::mixed(arrivals, 40, spread);
    for class in &mut workload.classes {
        for lengths in [&mut class.prompt, &mut class.answer] {
            *lengths = Lengths { mean: lengths.mean / 10.0, min: 1, max: 200, ..*lengths };
        }
    }
    Simulation {
        workload,
        cost: CostModel::INTEGRATED,
        kv_tokens: 4096,
        context_length: 512,
        max_running: 8,
        budget_tokens: 128,
        ..Simulation::default()
    }
}

const MODES: [(Batching, bool); 5] = [
    (Batching::None, true),
    (Batching::Static, true),
    (Batching::Static, false),
    (Batching::Continuous, false),
    (Batching::Continuous, true),
];

const POISSON: Arrivals = Arrivals::Poisson { per_s: 20.0 };
const BURSTS: Arrivals = Arrivals::Bursts { per_s: 20.0, size: 8 };

/// All modes over all kinds of arrival, with plenty of blocks and with few.
fn simulations() -> Vec<Simulation> {
    let mut simulations = Vec::new();
    for arrivals in [Arrivals::AtOnce, POISSON, BURSTS] {
        for kv_tokens in [4096, 640] {
            for (batching, chunked_prefill) in MODES {
                simulations.push(Simulation { kv_tokens, batching, chunked_prefill, ..small(arrivals, 1.0) });
            }
        }
    }
    simulations
}

#[test]
fn a_seed_decides_everything() {
    let simulation = small(BURSTS, 1.0);
    let outcome = simulate(&simulation).unwrap();
    assert_eq!(simulate(&simulation).unwrap(), outcome);
    let other = Workload { seed: 2, ..simulation.workload.clone() };
    assert_ne!(simulate(&Simulation { workload: other, ..simulation }).unwrap().requests, outcome.requests);
}

#[test]
fn every_request_gets_exactly_its_tokens_in_order() {
    for simulation in simulations() {
        let arrivals = simulation.workload.generate(SimForward::IDS).unwrap();
        let outcome = simulate(&simulation).unwrap();
        assert_eq!(outcome.requests.len(), arrivals.len());
        for (request, arrival) in outcome.requests.iter().zip(&arrivals) {
            assert_eq!(Some(request.ids.len()), arrival.request.max_tokens);
            assert_eq!((request.num_prompt, request.at_ms), (arrival.request.prompt.len(), arrival.at_ms));
            assert_eq!(request.token_ms.len(), request.ids.len());
            assert!(request.token_ms.is_sorted_by(|a, b| a < b), "a step yields one token at most");
            assert!(0.0 <= request.queue_ms && request.queue_ms < request.ttft_ms());
            assert!(request.ttft_ms() <= request.end_to_end_ms());
            let gaps: f64 = request.gaps_ms().sum();
            assert!((request.ttft_ms() + gaps - request.end_to_end_ms()).abs() < 1e-6);
        }
    }
}

/// What the trace says must add up to what the requests asked for and what the clock says.
#[test]
fn tokens_and_time_are_conserved() {
    let mut num_preempting = 0;
    for simulation in simulations() {
        let outcome = simulate(&simulation).unwrap();
        let mut computed: BTreeMap<RequestId, usize> = BTreeMap::new();
        let mut drawn: BTreeMap<RequestId, usize> = BTreeMap::new();
        let (mut now_ms, mut num_tokens) = (0.0, 0);
        for step in &outcome.steps {
            assert!(step.start_ms >= now_ms, "steps do not overlap");
            let (mut tokens, mut context, mut pairs) = (0, 0, 0);
            for part in &step.parts {
                assert!(part.start < part.end);
                tokens += part.end - part.start;
                context += part.end;
                pairs += (part.start + 1..=part.end).sum::<usize>();
                *computed.entry(part.request).or_default() += part.end - part.start;
                *drawn.entry(part.request).or_default() += usize::from(part.samples);
            }
            assert!(tokens <= simulation.budget_tokens && step.parts.len() <= simulation.max_running);
            let distinct: BTreeSet<_> = step.parts.iter().map(|part| part.request).collect();
            assert_eq!(distinct.len(), step.parts.len());
            let [tokens_f, context, pairs] = [tokens, context, pairs].map(|sum| f64::from(u32::try_from(sum).unwrap()));
            let expected_ms = simulation.cost.step_ms_of(tokens_f, context, pairs);
            assert!((step.end_ms - step.start_ms - expected_ms).abs() < 1e-6, "a step takes what the model says");
            now_ms = step.end_ms;
            num_tokens += tokens;
        }
        assert_eq!(num_tokens as u64, outcome.computed_tokens);
        assert_eq!(now_ms, outcome.makespan_ms);
        assert_eq!(outcome.steps.iter().map(|step| step.preempted.len() as u64).sum::<u64>(), outcome.num_preemptions);
        for request in &outcome.requests {
            assert_eq!(drawn[&request.request], request.ids.len());
            // The last token of an answer is drawn, never computed.
            let least = request.num_prompt - request.num_cached + request.ids.len() - 1;
            assert!(computed[&request.request] >= least);
            if outcome.num_preemptions == 0 {
                assert_eq!(computed[&request.request], least);
            }
        }
        num_preempting += usize::from(outcome.num_preemptions > 0);
        let report = outcome.report();
        assert!(0.0 < report.occupancy && report.occupancy <= 1.0, "{}", report.occupancy);
        assert_eq!(report.generated_tokens, outcome.requests.iter().map(|request| request.ids.len()).sum::<usize>());
        let per_class: usize = (0..3).map(|class| outcome.report_of(class).generated_tokens).sum();
        assert_eq!(per_class, report.generated_tokens);
    }
    assert!(num_preempting >= 4, "{num_preempting} simulations ran out of blocks: the laws are not tested under it");
}

#[test]
fn no_mode_is_faster_than_continuous_batching() {
    for arrivals in [Arrivals::AtOnce, POISSON, BURSTS] {
        for cost in [CostModel::SOFTWARE, CostModel::INTEGRATED, CostModel::SERVER] {
            for spread in [0.0, 1.0, 1.5] {
                let makespan_ms =
                    |batching| simulate(&Simulation { cost, batching, ..small(arrivals, spread) }).unwrap().makespan_ms;
                let [continuous, fixed, none] =
                    [Batching::Continuous, Batching::Static, Batching::None].map(makespan_ms);
                let case = format!("{arrivals:?} {spread}: {continuous} {fixed} {none}");
                assert!(continuous <= fixed && continuous <= none, "{case}");
            }
        }
    }
}

#[test]
fn the_modes_are_what_they_are_called() {
    let steps = |batching, chunked_prefill| {
        let simulation = Simulation { batching, chunked_prefill, ..small(BURSTS, 1.0) };
        simulate(&simulation).unwrap().steps
    };
    assert!(steps(Batching::None, true).iter().all(|step| step.parts.len() == 1));
    // A static batch is closed: nobody begins while somebody of an earlier batch has more to come.
    let mut batch: BTreeSet<RequestId> = BTreeSet::new();
    let mut num_batches = 0;
    for step in steps(Batching::Static, true) {
        let here: BTreeSet<_> = step.parts.iter().map(|part| part.request).collect();
        if here.is_disjoint(&batch) {
            num_batches += 1;
            batch.clear();
        }
        batch.extend(&here);
        assert!(batch.len() <= 8, "more than the slots: somebody joined a batch that was running");
    }
    assert!((5..40).contains(&num_batches), "{num_batches}");
    // Without chunks, parts of prompts and of answers never share a step; with them, they do.
    let mixes = |steps: Vec<pagewise::engine::StepTrace>| {
        let is_mixed = |step: &pagewise::engine::StepTrace| {
            step.parts.iter().any(|part| part.start < part.num_prompt)
                && step.parts.iter().any(|part| part.start >= part.num_prompt)
        };
        steps.iter().filter(|step| is_mixed(step)).count()
    };
    assert_eq!(mixes(steps(Batching::Continuous, false)), 0);
    assert!(mixes(steps(Batching::Continuous, true)) > 0);
}

#[test]
fn chunks_trade_the_long_prompts_first_token_for_the_others_tail() {
    let simulate = |chunked_prefill, budget_tokens| {
        let mut workload = Workload::mixed(Arrivals::Poisson { per_s: 10.0 }, 60, 0.5);
        workload.classes.iter_mut().for_each(|class| class.answer.mean = 20.0);
        let simulation = Simulation { workload, chunked_prefill, budget_tokens, ..Simulation::default() };
        simulate(&simulation).unwrap()
    };
    let (chunked, whole) = (simulate(true, 512), simulate(false, 16_384));
    let tail = |outcome: &Outcome| outcome.report_of(0).inter_token_ms.max;
    let long = |outcome: &Outcome| outcome.report_of(1).ttft_ms.p50;
    assert!(tail(&chunked) < tail(&whole) / 2.0, "{} {}", tail(&chunked), tail(&whole));
    assert!(long(&chunked) > long(&whole), "{} {}", long(&chunked), long(&whole));
}

/// Decode is bound by bandwidth, so its steps do not tell what the tokens of a prompt will cost.
#[test]
fn a_step_target_holds_when_a_long_prompt_comes_after_a_while_of_decoding() {
    let mut workload = Workload::mixed(Arrivals::Poisson { per_s: 5.0 }, 60, 0.5);
    workload.classes.iter_mut().for_each(|class| class.answer.mean = 50.0);
    let longest_ms = |step_target_ms| {
        let simulation =
            Simulation { workload: workload.clone(), step_target_ms, budget_tokens: 8192, ..Simulation::default() };
        let outcome = simulate(&simulation).unwrap();
        outcome.steps.iter().map(|step| step.end_ms - step.start_ms).fold(0.0, f64::max)
    };
    assert!(longest_ms(None) > 100.0, "{}", longest_ms(None));
    assert!(longest_ms(Some(30.0)) < 45.0, "{}", longest_ms(Some(30.0)));
}

#[test]
fn workloads_are_what_they_say() {
    let mean = |lengths: Vec<usize>| lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
    let answers = |arrivals: &[Arrival]| arrivals.iter().map(|a| a.request.max_tokens.unwrap()).collect::<Vec<_>>();
    let mut workload = Workload::mixed(Arrivals::Poisson { per_s: 5.0 }, 4000, 0.0);
    workload.classes.truncate(1);
    let even = workload.generate(0..100).unwrap();
    assert!(answers(&even).iter().all(|&len| len == 150));
    let end_s = even.last().unwrap().at_ms / 1000.0;
    assert!((760.0..840.0).contains(&end_s), "4,000 requests at 5 a second: {end_s} s");
    workload.classes[0].answer.spread = 1.0;
    let uneven = workload.generate(0..100).unwrap();
    assert!((140.0..160.0).contains(&mean(answers(&uneven))), "the spread does not change the mean");
    let long = answers(&uneven).iter().filter(|&&len| len > 450).count();
    assert!((100..400).contains(&long), "{long} of 4,000 answers are thrice as long as the mean");
    // What is not concerned stays as it is.
    let rest = |arrivals: &[Arrival]| arrivals.iter().map(|a| (a.at_ms.to_bits(), a.request.prompt.clone())).collect();
    let [even, uneven]: [Vec<_>; 2] = [rest(&even), rest(&uneven)];
    assert_eq!(even, uneven);

    let bursts = Workload::mixed(Arrivals::Bursts { per_s: 10.0, size: 7 }, 24, 1.0).generate(5..9).unwrap();
    let mut sizes: Vec<usize> = bursts.chunk_by(|a, b| a.at_ms == b.at_ms).map(<[_]>::len).collect();
    assert_eq!(sizes.pop(), Some(3));
    assert_eq!(sizes, [7, 7, 7]);
    assert!(bursts.iter().flat_map(|a| &a.request.prompt).all(|id| (5..9).contains(id)));
}

#[test]
fn a_shared_prefix_is_computed_once() {
    let mut simulation = small(POISSON, 1.0);
    simulation.workload.shared_prefix_tokens = 64;
    let outcome = simulate(&simulation).unwrap();
    assert!(outcome.requests[1..].iter().all(|request| request.num_cached >= 64));
    let without = simulate(&Simulation { prefix_cache: false, ..simulation }).unwrap();
    assert!(without.requests.iter().all(|request| request.num_cached == 0));
    assert!(without.computed_tokens >= outcome.computed_tokens + 39 * 64);
}

#[test]
fn the_cost_of_a_step_is_its_bytes_or_its_arithmetic() {
    let cost = CostModel {
        overhead_ms: 1.0,
        weight_bytes: 1e6,
        kv_bytes_per_token: 1e3,
        parameters: 1e6,
        attention_flops_per_pair: 1e3,
        bytes_per_s: 1e9,
        flops_per_s: 1e11,
    };
    // One token after 99 others: 1 MB of weights, 100 kB and 1 kB of keys and values at 1 GB/s.
    assert!((cost.step_ms_of(1.0, 100.0, 100.0) - 2.101).abs() < 1e-9);
    // 100 tokens from the start: 2e8 operations and 5,050 pairs of 1,000 at 1e11 a second.
    assert!((cost.step_ms_of(100.0, 100.0, 5050.0) - 3.0505).abs() < 1e-9);
}

#[test]
fn percentiles_are_values_of_the_list() {
    let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
    let Percentiles { p50, p95, p99, max, mean } = Percentiles::of(values);
    assert_eq!((p50, p95, p99, max, mean), (100.0, 190.0, 198.0, 200.0, 100.5));
    assert_eq!(Percentiles::of(vec![7.0]).p50, 7.0);
    assert_eq!(Percentiles::of(Vec::new()), Percentiles::default());
}

#[test]
fn what_a_page_sends_is_checked() {
    let json = serde_json::to_value(Simulation { batching: Batching::Static, ..Simulation::default() }).unwrap();
    assert_eq!(
        (json["batching"].as_str(), json["workload"]["arrivals"]["kind"].as_str()),
        (Some("static"), Some("poisson"))
    );
    let back: Simulation = serde_json::from_value(json).unwrap();
    assert_eq!(back, Simulation { batching: Batching::Static, ..Simulation::default() });
    assert!(serde_json::from_str::<Simulation>(r#"{"bathcing": "none"}"#).is_err());
    let error = |change: fn(&mut Simulation)| {
        let mut simulation = small(POISSON, 1.0);
        change(&mut simulation);
        simulate(&simulation).unwrap_err().to_string()
    };
    assert!(error(|s| s.workload.num_requests = 1_000_000).contains("num_requests: 1000000 asked, 1 to 10000 allowed"));
    assert!(error(|s| s.workload.arrivals = Arrivals::Poisson { per_s: f64::NAN }).contains("per_s: NaN"));
    assert!(error(|s| s.workload.arrivals = Arrivals::Bursts { per_s: 1.0, size: 0 }).contains("size: 0"));
    assert!(error(|s| s.workload.classes.clear()).contains("classes: 0"));
    assert!(error(|s| s.workload.classes[0].answer.min = 0).contains("answer.min: 0"));
    assert!(error(|s| s.workload.classes[0].prompt.max = 0).contains("prompt.max: 0 asked, 1"));
    assert!(error(|s| s.workload.classes[0].priority = 1001).contains("priority: 1001"));
    assert!(error(|s| s.cost.bytes_per_s = 0.0).contains("bytes_per_s: 0"));
    assert!(error(|s| s.max_running = 0).contains("max_running: 0"));
    assert!(error(|s| s.kv_tokens = 100).contains("kv_tokens: 100 asked, 512"));
    assert!(error(|s| s.step_target_ms = Some(0.0)).contains("step_target_ms: 0"));
    assert!(error(|s| s.workload.shared_prefix_tokens = 512).contains("context too long"));
}

/// Four requests, three slots, sixteen tokens a step, blocks for 80 tokens; a step takes 10 ms and 1 ms a token.
fn worked_example() -> Outcome {
    let cost = CostModel {
        overhead_ms: 10.0,
        weight_bytes: 0.0,
        kv_bytes_per_token: 0.0,
        parameters: 500.0,
        attention_flops_per_pair: 0.0,
        bytes_per_s: 1.0,
        flops_per_s: 1e6,
    };
    let limits = BatchLimits {
        max_tokens: 16,
        max_sequences: 3,
        max_rows: 3,
        max_edits: 0,
        max_copies: 48,
        context_length: 80,
        max_blocks: 5,
    };
    let arrival = |at_ms, num_prompt: u32, num_answer, priority: Priority| {
        let mut arrival = Workload::default().generate(SimForward::IDS).unwrap().remove(0);
        // No two prompts begin alike.
        arrival.request.prompt = (0..num_prompt).map(|position| 32 + (num_prompt * 7 + position) % 90).collect();
        arrival.request.max_tokens = Some(num_answer);
        arrival.request.priority = priority.level();
        Arrival { at_ms, ..arrival }
    };
    let arrivals = [
        arrival(0.0, 40, 6, Priority::Normal),
        arrival(0.0, 14, 8, Priority::Normal),
        arrival(30.0, 12, 5, Priority::Normal),
        arrival(60.0, 20, 4, Priority::Interactive),
    ];
    let clock = VirtualClock::default();
    let forward = SimForward::new(cost, limits, clock.clone());
    let groups = vec![GroupConfig { num_blocks: 5, window: None }];
    let mut engine = Engine::new(forward, tokenizer().unwrap(), groups, EngineOptions::default());
    block_on(run(&mut engine, &arrivals, &clock, 3)).unwrap()
}

/// The drawing in the documentation is the one that the engine makes.
#[test]
fn the_worked_example_is_true() {
    let drawing = draw(&worked_example(), &["A", "B", "C", "D, interactive"]);
    println!("{drawing}");
    let path = format!("{}/docs/scheduling.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(&format!("```text\n{drawing}```")), "docs/scheduling.md draws this differently:\n{drawing}");
}
