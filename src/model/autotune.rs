//! Choosing kernels by timing them on the device, at the shapes of the model that will run.
//!
//! Few rows (decode) and many rows (prefill) are timed apart, with the feed-forward part of the first layer, which is most
//! of a layer. The table's choice comes first, and another replaces it only where that is clearly faster. What is chosen
//! is checked by [`super::probe`] like anything else.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use web_time::Instant;

use super::config::ModelConfig;
use crate::compute::{BufferId, Executor, Gpu, GpuExecutor, Purpose, Recording, RowClass, Rows, Step, Tuning};
use crate::gguf::{Gguf, TensorInfo};
use crate::kernels::{Epilogue, Projection};
use crate::{Error, Result};

/// Milliseconds within which candidates are begun, unless somebody has more time: with the last one's and the rematches, timing
/// takes a second and a half.
pub const TUNING_BUDGET_MS: f64 = 1000.0;
/// Runs of a candidate, of which the fastest counts.
const RUNS: usize = 3;
/// Where a run takes long, one has to do: no run begins so many milliseconds after the first.
const LONG_RUNS_MS: f64 = 60.0;
/// What a candidate may take of the best one's time to replace it: clocks and machines are noisy, and the table's choice
/// is the best known one.
const LEAST_GAIN: f64 = 0.95;
/// Bytes of weights that few rows are timed with, so that not all of them stay in caches.
const FEW_ROWS_BYTES: usize = 64 << 20;

/// How exactly prompts and answers are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Only kernels that compute in f32.
    Full,
    /// Also those that round activations, to bytes or to f16.
    Fast,
}

/// Where a choice comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TuningSource {
    /// [`Tuning::choose`].
    Table,
    /// Timed now.
    Measured,
    /// Timed before.
    Remembered,
}

/// A choice by the names of its parts, which later versions may not have any more: then it is made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// How few rows are multiplied.
    pub few_rows: String,
    /// How many rows are multiplied.
    pub many_rows: String,
}

/// What a candidate took.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// The candidate.
    pub name: String,
    /// Milliseconds.
    pub ms: f64,
}

/// A device with its kernels chosen.
#[derive(Debug)]
pub struct Tuned {
    /// The device.
    pub gpu: Gpu,
    /// Where the choice comes from.
    pub source: TuningSource,
    /// The choice.
    pub choice: Choice,
    /// All candidates that were timed, in order.
    pub timings: Vec<Timing>,
    /// Milliseconds that timing took.
    pub tune_ms: f64,
}

impl Tuned {
    /// The table's choice.
    pub fn by_table(gpu: Gpu) -> Self {
        let choice = Choice::of(&gpu.tuning());
        Self { gpu, source: TuningSource::Table, choice, timings: Vec::new(), tune_ms: 0.0 }
    }
}

impl Choice {
    /// The names of a tuning's parts.
    pub fn of(tuning: &Tuning) -> Self {
        Self { few_rows: tuning.one_row_name(), many_rows: tuning.many_rows_name() }
    }
}

/// What a choice is remembered under: it holds as long as the device, its driver, the model's shapes and Pagewise are these.
pub fn tuning_key(gpu: &Gpu, config: &ModelConfig, gguf: &Gguf, precision: Precision) -> String {
    let format = |name: &str| gguf.find(name).map_or("", |tensor| tensor.format.name());
    let formats = ["blk.0.ffn_gate.weight", "blk.0.ffn_down.weight"].map(format);
    let ModelConfig { width, feed_forward, gate, .. } = config;
    let (version, identity) = (env!("CARGO_PKG_VERSION"), gpu.identity());
    format!("{version} {identity} {width}x{feed_forward} {gate:?} {formats:?} {precision:?}")
}

/// Chooses kernels for a model: as `remembered` where that names candidates of today, else by timing, for `budget_ms` or as
/// long as one candidate of few and one of many rows take.
///
/// # Errors
/// `device_lost`. A candidate that fails otherwise is not chosen.
pub async fn autotune(
    gpu: Gpu,
    config: &ModelConfig,
    gguf: &Gguf,
    precision: Precision,
    remembered: Option<&str>,
    budget_ms: f64,
) -> Result<Tuned> {
    let table = gpu.tuning();
    let may_round = precision == Precision::Fast;
    let few = table.one_row_candidates(gpu.subgroup_lanes(), may_round);
    let many = table.many_rows_candidates(gpu.subgroup_lanes(), gpu.has_f16() && may_round, may_round);
    let remembered = remembered.and_then(|text| serde_json::from_str::<Choice>(text).ok());
    let named = remembered.and_then(|choice| {
        let few = few.iter().find(|tuning| tuning.one_row_name() == choice.few_rows)?;
        let many = many.iter().find(|tuning| tuning.many_rows_name() == choice.many_rows)?;
        Some((few.with_many_rows_of(many), choice))
    });
    if let Some((tuning, choice)) = named {
        let gpu = gpu.with_tuning(tuning);
        return Ok(Tuned { gpu, source: TuningSource::Remembered, choice, timings: Vec::new(), tune_ms: 0.0 });
    }
    let mut contest = Contest { gpu: &gpu, config, gguf, start: Instant::now(), timings: Vec::new() };
    // A half of the time for either: what the first leaves, the second has.
    let few = contest.winner(&few, false, budget_ms / 2.0).await?;
    let many = contest.winner(&many, true, budget_ms).await?;
    let tuning = few.with_many_rows_of(&many);
    let (timings, tune_ms) = (std::mem::take(&mut contest.timings), contest.elapsed_ms());
    let choice = Choice::of(&tuning);
    Ok(Tuned { gpu: gpu.with_tuning(tuning), source: TuningSource::Measured, choice, timings, tune_ms })
}

struct Contest<'a> {
    gpu: &'a Gpu,
    config: &'a ModelConfig,
    gguf: &'a Gguf,
    start: Instant,
    timings: Vec<Timing>,
}

impl Contest<'_> {
    fn elapsed_ms(&self) -> f64 {
        1e3 * self.start.elapsed().as_secs_f64()
    }

    /// The fastest of the candidates, of which the first is the table's. Ends before `until_ms`, unless a single candidate
    /// takes longer.
    async fn winner(&mut self, candidates: &[Tuning], is_many: bool, until_ms: f64) -> Result<Tuning> {
        let (mut table, mut best) = (None::<Entrant>, None::<Entrant>);
        let mut longest_ms = 0.0_f64;
        for &tuning in candidates {
            let start_ms = self.elapsed_ms();
            // Compiling takes most of the time, about as long for each.
            if start_ms + longest_ms > until_ms {
                break;
            }
            let name = if is_many { tuning.many_rows_name() } else { tuning.one_row_name() };
            match self.enter(tuning, is_many).await {
                Ok((entrant, ms)) => {
                    self.timings.push(Timing { name, ms });
                    let to_beat = best.as_ref().or(table.as_ref()).map_or(f64::INFINITY, |other| other.ms);
                    if table.is_none() && tuning == candidates[0] {
                        table = Some(entrant);
                    } else if ms < LEAST_GAIN * to_beat {
                        best = Some(entrant);
                    }
                }
                Err(error @ Error::DeviceLost(_)) => return Err(error),
                // It does not compile, or does not fit: the others will do.
                Err(_) => {}
            }
            longest_ms = longest_ms.max(self.elapsed_ms() - start_ms);
        }
        match (table, best) {
            (Some(table), Some(best)) => rematch(table, best).await,
            (_, Some(only)) => Ok(only.tuning),
            _ => Ok(candidates[0]),
        }
    }

    /// Compiles a candidate and times it.
    async fn enter(&self, tuning: Tuning, is_many: bool) -> Result<(Entrant, f64)> {
        let (recording, output) = self.feed_forward(&tuning, is_many)?;
        let executor = GpuExecutor::new(self.gpu.clone().with_tuning(tuning), Rc::new(recording)).await?;
        let num_tokens = if is_many { u32::try_from(tuning.max_tokens).unwrap_or(u32::MAX) } else { 1 };
        let step = Step { num_tokens, ..Step::default() };
        let mut entrant = Entrant { tuning, executor, step, output, ms: f64::INFINITY };
        // The first run is a warm-up, and shows what fails.
        entrant.run().await?;
        entrant.ms = f64::INFINITY;
        let first = Instant::now();
        for _ in 0..RUNS {
            entrant.run().await?;
            if 1e3 * first.elapsed().as_secs_f64() > LONG_RUNS_MS {
                break;
            }
        }
        let ms = entrant.ms;
        Ok((entrant, ms))
    }

    /// The first layer's gate, up and down-projections, of zeros, for either class of rows.
    fn feed_forward(&self, tuning: &Tuning, is_many: bool) -> Result<(Recording, BufferId)> {
        let (width, inner) = (self.config.width, self.config.feed_forward);
        let gate = self.gguf.tensor("blk.0.ffn_gate.weight")?;
        let down = self.gguf.tensor("blk.0.ffn_down.weight")?;
        let num_tokens = if is_many { tuning.max_tokens } else { 1 };
        let mut recording = Recording::new();
        let x = recording.buffer("x", num_tokens * width, Purpose::Scratch);
        let hidden = recording.buffer("hidden", num_tokens * inner, Purpose::Scratch);
        let bytes = 2 * gate.size_bytes + down.size_bytes;
        let fitting = FEW_ROWS_BYTES / usize::try_from(bytes).unwrap_or(usize::MAX).max(1);
        for _ in 0..if is_many { 1 } else { fitting.clamp(1, 8) } {
            for (tensor, epilogue, [input, output]) in
                [(gate, self.config.gate, [x, hidden]), (down, Epilogue::Add, [hidden, x])]
            {
                self.project(&mut recording, tuning, tensor, epilogue, [input, output]);
            }
        }
        let wanted = if is_many { RowClass::many } else { RowClass::one };
        recording.keep(|class| class == wanted(Rows::Tokens));
        Ok((recording, x))
    }

    /// A projection of as many of the tensor's rows as a binding holds.
    fn project(
        &self,
        recording: &mut Recording,
        tuning: &Tuning,
        tensor: &TensorInfo,
        epilogue: Epilogue,
        [x, y]: [BufferId; 2],
    ) {
        let (format, k, num_outputs) = (tensor.format, tensor.row_elements(), tensor.num_rows());
        let rows_per_output = if epilogue.is_gated() { 2 } else { 1 };
        let words = format.buffer_words(rows_per_output, k) as u64;
        let room = usize::try_from(self.gpu.limits().binding_bytes / (4 * words)).unwrap_or(usize::MAX);
        let n = num_outputs.min(room.max(1));
        let weights = recording.buffer("weights", format.buffer_words(n * rows_per_output, k), Purpose::Weights);
        let projection = Projection {
            format,
            k,
            n,
            epilogue,
            rows: Rows::Tokens,
            out_stride: num_outputs,
            out_offset: 0,
            epsilon: 0.0,
        };
        projection.record(recording, tuning, weights, x, y);
    }
}

/// A candidate, compiled.
struct Entrant {
    tuning: Tuning,
    executor: GpuExecutor,
    step: Step,
    output: BufferId,
    /// Of the fastest run, by the device's clock where it has one.
    ms: f64,
}

impl Entrant {
    async fn run(&mut self) -> Result<()> {
        let start = Instant::now();
        self.executor.run(&self.step, 1, &[(self.output, 1)]).await?;
        let wall_ms = 1e3 * start.elapsed().as_secs_f64();
        self.ms = self.ms.min(self.executor.device_ms().unwrap_or(wall_ms));
        Ok(())
    }
}

/// The table's choice against the best of the others, in turns: what one of them met on the machine when it was timed, such as
/// other work or a clock that was still rising, both meet now.
async fn rematch(mut table: Entrant, mut best: Entrant) -> Result<Tuning> {
    (table.ms, best.ms) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        table.run().await?;
        best.run().await?;
    }
    Ok(if best.ms < LEAST_GAIN * table.ms { best.tuning } else { table.tuning })
}
