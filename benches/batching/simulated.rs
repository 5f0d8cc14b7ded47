//! On a virtual clock.

use std::time::Instant;

use pagewise::engine::Batching;
use pagewise::simulation::{Arrivals, Class, CostModel, Lengths, Outcome, Simulation, Workload, simulate};

use crate::table::{COLUMNS, cells, head, number, percentiles, row};
use crate::{MODES, Mode};

const NUM_REQUESTS: usize = 1000;
/// Deviations of the logarithm of answer lengths: all the same, as in chats, and wider.
const SPREADS: [f64; 3] = [0.0, 1.0, 1.5];
/// Requests of a burst.
const BURST: usize = 50;

/// Simulates, and checks that every answer is complete.
fn complete(simulation: &Simulation) -> Outcome {
    let outcome = simulate(simulation).unwrap();
    let arrivals = simulation.workload.generate(32..127).unwrap();
    assert_eq!(outcome.requests.len(), arrivals.len());
    for (request, arrival) in outcome.requests.iter().zip(&arrivals) {
        assert_eq!(Some(request.ids.len()), arrival.request.max_tokens);
    }
    outcome
}

fn with(simulation: &Simulation, mode: Mode) -> Simulation {
    let Mode { batching, chunked_prefill, .. } = mode;
    // Whole prompts need a step that takes the longest.
    let budget_tokens = if chunked_prefill { simulation.budget_tokens } else { simulation.context_length };
    Simulation { batching, chunked_prefill, budget_tokens, ..simulation.clone() }
}

/// Prints all tables.
pub(crate) fn print() {
    let start = Instant::now();
    println!("## Simulated: Llama 3.1 8B in f16 on an H100\n");
    println!("{:?}", CostModel::SERVER);
    println!("{NUM_REQUESTS} requests, 256 slots, KV for 420,000 tokens; P50 / P95 / P99.");
    at_once();
    arriving();
    chunks();
    variance();
    published();
    slots();
    println!("\nSimulated in {:.1} s.", start.elapsed().as_secs_f64());
}

fn at_once() {
    println!("\n### All requests at once");
    head(&[&["answers", "mode"], &COLUMNS[..]].concat(), 2);
    for spread in SPREADS {
        let workload = Workload::mixed(Arrivals::AtOnce, NUM_REQUESTS, spread);
        modes(&Simulation { workload, ..Simulation::default() }, &format!("spread {spread}"));
    }
}

fn arriving() {
    println!("\n### Arriving over time, spread 1");
    head(&[&["arrivals", "mode"], &COLUMNS[..]].concat(), 2);
    for per_s in [2.0, 10.0, 30.0] {
        for arrivals in [Arrivals::Poisson { per_s }, Arrivals::Bursts { per_s, size: BURST }] {
            let name = match arrivals {
                Arrivals::Bursts { size, .. } => format!("{per_s}/s in bursts of {size}"),
                _ => format!("{per_s}/s, Poisson"),
            };
            let workload = Workload::mixed(arrivals, NUM_REQUESTS, 1.0);
            modes(&Simulation { workload, ..Simulation::default() }, &name);
        }
    }
}

/// A row per mode.
fn modes(simulation: &Simulation, name: &str) {
    let mut base = Vec::new();
    for mode in MODES {
        let report = complete(&with(simulation, mode)).report();
        base.push(report.generated_tokens_per_s);
        row(&[vec![name.to_owned(), mode.name.to_owned()], cells(&report, &base)].concat());
    }
}

/// What chunks do to whom.
fn chunks() {
    println!("\n### Chunked prefill: 10 requests/s (Poisson), spread 1, by class; P50 / P95 / P99");
    head(
        &[
            "prompts",
            "tokens/s",
            "short chat: inter-token, ms",
            "TTFT, ms",
            "long document: TTFT, ms",
            "longest gap, ms",
        ],
        1,
    );
    let whole = Mode { chunked_prefill: false, ..MODES[3] };
    for (name, mode, budget_tokens) in [
        ("whole", whole, 0),
        ("chunks of 8192", MODES[3], 8192),
        ("chunks of 2048", MODES[3], 2048),
        ("chunks of 512", MODES[3], 512),
        ("chunks for steps of 30 ms", MODES[3], 8192),
        ("chunks for steps of 15 ms", MODES[3], 8192),
    ] {
        let workload = Workload::mixed(Arrivals::Poisson { per_s: 10.0 }, NUM_REQUESTS, 1.0);
        let step_target_ms = match name {
            "chunks for steps of 30 ms" => Some(30.0),
            "chunks for steps of 15 ms" => Some(15.0),
            _ => None,
        };
        let simulation = Simulation { workload, budget_tokens, step_target_ms, ..Simulation::default() };
        let outcome = complete(&with(&simulation, mode));
        let (all, short, long) = (outcome.report(), outcome.report_of(0), outcome.report_of(1));
        row(&[
            name.to_owned(),
            number(all.generated_tokens_per_s),
            percentiles(short.inter_token_ms, 1.0),
            percentiles(short.ttft_ms, 1.0),
            percentiles(long.ttft_ms, 1.0),
            number(all.inter_token_ms.max),
        ]);
    }
}

/// Where static batching is worst: hardly any prompt, so that a step costs about the same whoever is left in it, and a batch
/// takes as long as its longest answer.
fn variance() {
    println!(
        "\n### Continuous over static, by the variance of answers: all at once, 16 prompt tokens, 128 answer tokens on average"
    );
    let slots: [usize; 4] = [8, 32, 64, 128];
    let names: Vec<String> = slots.iter().map(|slots| format!("{slots} slots")).collect();
    head(&[&["spread"][..], &names.iter().map(String::as_str).collect::<Vec<_>>()].concat(), 1);
    for spread in [0.0, 0.5, 1.0, 1.5, 2.0] {
        let class = Class {
            name: "all".to_owned(),
            share: 1.0,
            prompt: Lengths { mean: 16.0, spread: 0.0, min: 16, max: 16 },
            answer: Lengths { mean: 128.0, spread, min: 1, max: 4096 },
            priority: 0,
        };
        let workload = Workload { classes: vec![class], ..Workload::mixed(Arrivals::AtOnce, NUM_REQUESTS, 0.0) };
        let ratio = |max_running| {
            let per_s = |batching| {
                let simulation =
                    Simulation { workload: workload.clone(), max_running, batching, ..Simulation::default() };
                complete(&simulation).report().generated_tokens_per_s
            };
            format!("{:.2}x", per_s(Batching::Continuous) / per_s(Batching::Static))
        };
        row(&[vec![spread.to_string()], slots.map(ratio).to_vec()].concat());
    }
}

/// The set-up of the best-known measurement, as far as it is public: OPT 13B on an A100 of 40 GB, 1,000 prompts of 512 tokens,
/// answers of 128 tokens on average with an exponential tail up to 1,536. Blocks for 15,000 tokens are left beside the
/// weights. Frameworks without paging reserve the longest answer for each sequence: 7 of 2,048 tokens.
fn published() {
    println!("\n### OPT 13B on an A100 of 40 GB: all at once, 512 prompt tokens, 128 answer tokens on average");
    head(&["keys and values", "mode", "slots", "tokens/s", "occupancy", "over static with reserved memory"], 2);
    let class = Class {
        name: "all".to_owned(),
        share: 1.0,
        prompt: Lengths { mean: 512.0, spread: 0.0, min: 512, max: 512 },
        // As wide as an exponential distribution.
        answer: Lengths { mean: 128.0, spread: 0.833, min: 1, max: 1536 },
        priority: 0,
    };
    let workload = Workload {
        seed: 1,
        num_requests: NUM_REQUESTS,
        arrivals: Arrivals::AtOnce,
        classes: vec![class],
        shared_prefix_tokens: 0,
    };
    let cost = CostModel::A100_OPT_13B;
    let simulation = Simulation { workload, cost, kv_tokens: 15_008, context_length: 2048, ..Simulation::default() };
    let mut base = None;
    for (memory, mode, max_running) in [
        ("reserved", MODES[1], 7),
        ("reserved", MODES[3], 7),
        ("paged", MODES[1], 256),
        ("paged", MODES[3], 256),
        ("-", MODES[0], 1),
    ] {
        let report = complete(&with(&Simulation { max_running, ..simulation.clone() }, mode)).report();
        let base = *base.get_or_insert(report.total_tokens_per_s);
        row(&[
            memory.to_owned(),
            mode.name.to_owned(),
            max_running.to_string(),
            number(report.generated_tokens_per_s),
            format!("{:.0} %", 100.0 * report.occupancy),
            format!("{:.2}x", report.total_tokens_per_s / base),
        ]);
    }
}

/// How the ratios depend on the slots and on the machine.
fn slots() {
    println!("\n### Continuous over static and over none, by slots: all at once, spread 1, 200 requests");
    let slots: [usize; 6] = [2, 4, 8, 16, 64, 256];
    let names: Vec<String> = slots.iter().map(usize::to_string).collect();
    head(&[&["machine"][..], &names.iter().map(String::as_str).collect::<Vec<_>>()].concat(), 1);
    for (name, cost) in [
        ("8B on an H100", CostModel::SERVER),
        ("1B on an integrated GPU", CostModel::INTEGRATED),
        ("135M on a software adapter", CostModel::SOFTWARE),
    ] {
        let ratios = |max_running| {
            let per_s = |batching| {
                // Not so many documents that nothing else is seen.
                let workload = Workload::mixed(Arrivals::AtOnce, 200, 1.0);
                let simulation =
                    Simulation { workload, cost, max_running, batching, budget_tokens: 512, ..Simulation::default() };
                complete(&simulation).report().generated_tokens_per_s
            };
            let continuous = per_s(Batching::Continuous);
            format!("{:.2}x, {:.2}x", continuous / per_s(Batching::Static), continuous / per_s(Batching::None))
        };
        row(&[vec![name.to_owned()], slots.map(ratios).to_vec()].concat());
    }
}
