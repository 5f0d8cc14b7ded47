//! With real models on the first adapter there is, and beside it what the simulator says of the same workload.

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use pagewise::Result;
use pagewise::compute::{Gpu, GpuOptions};
use pagewise::engine::{Engine, StepTrace};
use pagewise::gguf::{self, FileSource};
use pagewise::kernels::KvFormat;
use pagewise::kv::GroupConfig;
use pagewise::model::{Batch, BatchLimits, Forward, GpuModel, Logits, ModelOptions, load_gpu};
use pagewise::simulation::{
    Arrival, Arrivals, Class, Clock, CostModel, Lengths, Outcome, Report, SimForward, VirtualClock, Workload, run,
    tokenizer,
};
use pagewise::text::Tokenizer;
use pollster::block_on;

use crate::table::{COLUMNS, cells, head, number, row};
use crate::{MODES, Mode};

const CONTEXT_LENGTH: usize = 512;
const NUM_SLOTS: usize = 8;

/// The machine's clock.
struct RealClock(Instant);

impl Clock for RealClock {
    fn now_ms(&self) -> f64 {
        1e3 * self.0.elapsed().as_secs_f64()
    }

    fn wait_until(&self, ms: f64) {
        let left_ms = ms - self.now_ms();
        if left_ms > 0.0 {
            std::thread::sleep(Duration::from_secs_f64(left_ms / 1e3));
        }
    }
}

/// Milliseconds of processor time that this process has used: on a software adapter, what computing takes whatever else the
/// machine does. Linux counts it in hundredths of a second; elsewhere `None`.
fn cpu_ms() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // User and system time are the 12th and 13th field after the name, which may hold spaces.
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    let ticks: Vec<f64> = fields.skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    Some(10.0 * ticks.iter().sum::<f64>())
}

/// A model and what it is asked.
struct Case {
    file: &'static str,
    /// Runs of each mode, in turns; the fastest counts, because other work on the machine only slows.
    num_rounds: usize,
    workloads: Vec<(&'static str, Workload)>,
}

/// Short prompts and answers: what a software adapter computes while somebody waits.
fn workload(arrivals: Arrivals, num_requests: usize, spread: f64, scale: f64) -> Workload {
    let lengths = |mean: f64, spread, max| Lengths { mean: mean * scale, spread, min: 1, max };
    let class = |name: &str, share, prompt, answer| Class {
        name: name.to_owned(),
        share,
        prompt: lengths(prompt, 0.3, 160),
        answer: lengths(answer, spread, 90),
        priority: 0,
    };
    let classes = vec![class("short", 0.75, 10.0, 8.0), class("long", 0.25, 60.0, 16.0)];
    Workload { seed: 7, num_requests, arrivals, classes, shared_prefix_tokens: 0 }
}

/// Prints all tables.
pub(crate) fn print() {
    let tiny = |arrivals, spread| workload(arrivals, 48, spread, 2.0);
    let small = |arrivals, spread| workload(arrivals, 12, spread, 1.0);
    let cases = [
        Case {
            file: "tiny-llama-f16.gguf",
            num_rounds: 2,
            workloads: vec![
                ("all at once, spread 0", tiny(Arrivals::AtOnce, 0.0)),
                ("all at once, spread 1", tiny(Arrivals::AtOnce, 1.0)),
                ("Poisson, 20/s, spread 1", tiny(Arrivals::Poisson { per_s: 20.0 }, 1.0)),
                ("bursts of 12, 20/s, spread 1", tiny(Arrivals::Bursts { per_s: 20.0, size: 12 }, 1.0)),
            ],
        },
        Case {
            file: "SmolLM2-135M-Instruct.Q4_1.gguf",
            num_rounds: 1,
            workloads: vec![
                ("all at once, spread 0", small(Arrivals::AtOnce, 0.0)),
                ("all at once, spread 1", small(Arrivals::AtOnce, 1.0)),
            ],
        },
    ];
    cases.iter().for_each(measure);
}

fn load(file: &str) -> (GpuModel, Rc<Tokenizer>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(file);
    assert!(path.exists(), "{} is missing: run `npm run fetch-models`", path.display());
    let source = FileSource::open(&path).unwrap();
    let gguf = block_on(gguf::open(&source)).unwrap();
    let gpu = block_on(Gpu::open(&GpuOptions::default())).unwrap();
    let options = ModelOptions {
        // In half precision, a near-tie could be decided by the order in which a kernel adds.
        kv: KvFormat::F32,
        context_length: Some(CONTEXT_LENGTH),
        max_sequences: Some(NUM_SLOTS),
        ..ModelOptions::default()
    };
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
    (block_on(load_gpu(&gguf, &source, gpu, &options, |_| Ok(()))).unwrap(), tokenizer)
}

/// A row that was measured.
struct Row<'a> {
    name: &'a str,
    workload: &'a Workload,
    mode: Mode,
    report: Report,
}

fn measure(case: &Case) {
    let (mut model, tokenizer) = load(case.file);
    println!("\n## Live: {} on {}\n", case.file, model.executor().gpu().name());
    let max_tokens = model.limits().max_tokens;
    println!(
        "{NUM_SLOTS} slots, {max_tokens} tokens a step at most; P50 / P95 / P99 of the best of {} runs.",
        case.num_rounds
    );
    head(&[&["arrivals", "mode", "steps", "CPU ms a token"], &COLUMNS[..]].concat(), 2);
    // Control tokens come first in both vocabularies.
    let vocab = u32::try_from(model.vocab()).unwrap();
    let (mut all_steps, mut rows) = (Vec::new(), Vec::new());
    for (name, workload) in &case.workloads {
        let arrivals = workload.generate(vocab / 4..vocab).unwrap();
        let mut answers: Option<Vec<Vec<u32>>> = None;
        let mut best: [Option<(Outcome, Option<f64>)>; MODES.len()] = [const { None }; MODES.len()];
        for _ in 0..case.num_rounds {
            for (best, mode) in best.iter_mut().zip(MODES) {
                let before_ms = cpu_ms();
                let outcome = serve(&mut model, &tokenizer, mode, &arrivals);
                let used_ms = cpu_ms().zip(before_ms).map(|(after, before)| after - before);
                check(&outcome, &arrivals, &mut answers);
                if best.as_ref().is_none_or(|(best, _)| outcome.makespan_ms < best.makespan_ms) {
                    *best = Some((outcome, used_ms));
                }
            }
        }
        let mut base = Vec::new();
        for (mode, (outcome, used_ms)) in MODES.into_iter().zip(best.into_iter().flatten()) {
            let report = outcome.report();
            base.push(report.generated_tokens_per_s);
            let used = used_ms.map_or_else(|| "-".to_owned(), |ms| number(ms / report.generated_tokens as f64));
            let first = [(*name).to_owned(), mode.name.to_owned(), outcome.steps.len().to_string(), used];
            row(&[&first[..], &cells(&report, &base)].concat());
            all_steps.extend(outcome.steps);
            rows.push(Row { name, workload, mode, report });
        }
    }
    let (fixed_ms, token_ms) = fit(&all_steps);
    println!(
        "\nA step takes {fixed_ms:.2} ms and {token_ms:.3} ms a token (least squares over {} steps).",
        all_steps.len()
    );
    compare(&rows, model.limits(), model.groups(), fixed_ms, token_ms);
}

/// The model for one engine after another.
struct Borrowed<'a>(&'a mut GpuModel);

impl Forward for Borrowed<'_> {
    fn limits(&self) -> BatchLimits {
        self.0.limits()
    }

    fn submit(&mut self, batch: &Batch) -> Result<()> {
        self.0.submit(batch)
    }

    async fn collect(&mut self) -> Result<Vec<u32>> {
        self.0.collect().await
    }

    fn max_ahead(&self) -> usize {
        self.0.max_ahead()
    }

    fn encode_ms(&self) -> Option<f64> {
        self.0.encode_ms()
    }

    fn gpu_ms(&self) -> Option<f64> {
        self.0.gpu_ms()
    }
}

/// Serves the workload with an engine of its own, whose cache is empty.
fn serve(model: &mut GpuModel, tokenizer: &Rc<Tokenizer>, mode: Mode, arrivals: &[Arrival]) -> Outcome {
    let groups = model.groups();
    let mut engine = Engine::new(Borrowed(model), Rc::clone(tokenizer), groups, mode.options());
    let clock = RealClock(Instant::now());
    block_on(run(&mut engine, arrivals, &clock, NUM_SLOTS)).unwrap()
}

/// Every answer is complete, and the same in every mode.
fn check(outcome: &Outcome, arrivals: &[Arrival], answers: &mut Option<Vec<Vec<u32>>>) {
    for (request, arrival) in outcome.requests.iter().zip(arrivals) {
        assert_eq!(Some(request.ids.len()), arrival.request.max_tokens);
    }
    let ids: Vec<_> = outcome.requests.iter().map(|request| request.ids.clone()).collect();
    assert_eq!(ids.len(), arrivals.len());
    assert_eq!(&ids, answers.get_or_insert(ids.clone()), "an answer depends on how requests are batched");
}

/// Fixed milliseconds of a step and those per token, by least squares.
fn fit(steps: &[StepTrace]) -> (f64, f64) {
    let (mut n, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for step in steps {
        let tokens = step.parts.iter().map(|part| part.end - part.start).sum::<usize>() as f64;
        let ms = step.end_ms - step.start_ms;
        n += 1.0;
        x += tokens;
        y += ms;
        xx += tokens * tokens;
        xy += tokens * ms;
    }
    let token_ms = (n * xy - x * y) / (n * xx - x * x);
    (((y - token_ms * x) / n).max(0.0), token_ms)
}

/// The same workloads on the virtual clock, where a step costs what was fitted.
fn compare(rows: &[Row], limits: BatchLimits, groups: Vec<GroupConfig>, fixed_ms: f64, token_ms: f64) {
    let cost = CostModel {
        overhead_ms: fixed_ms,
        weight_bytes: 0.0,
        kv_bytes_per_token: 0.0,
        // 2 operations each at 1e9 a second.
        parameters: token_ms * 1e6 / 2.0,
        attention_flops_per_pair: 0.0,
        bytes_per_s: 1.0,
        flops_per_s: 1e9,
    };
    head(&["arrivals", "mode", "tokens/s: measured", "simulated", "TTFT P50, s: measured", "simulated"], 2);
    for Row { name, workload, mode, report } in rows {
        let arrivals = workload.generate(SimForward::IDS).unwrap();
        let clock = VirtualClock::default();
        let forward = SimForward::new(cost, limits, clock.clone());
        let mut engine = Engine::new(forward, tokenizer().unwrap(), groups.clone(), mode.options());
        let simulated = block_on(run(&mut engine, &arrivals, &clock, NUM_SLOTS)).unwrap().report();
        row(&[
            (*name).to_owned(),
            mode.name.to_owned(),
            number(report.generated_tokens_per_s),
            number(simulated.generated_tokens_per_s),
            number(report.ttft_ms.p50 / 1e3),
            number(simulated.ttft_ms.p50 / 1e3),
        ]);
    }
}
