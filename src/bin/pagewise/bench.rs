//! `bench`: how fast a model runs here, and how far that is from what has to be done.

use crate::device::{self, DeviceArgs, ExecutorKind, MemoryArgs, NativeModel};
use crate::output;
use pagewise::compute::{ExecutorStats, Step};
use pagewise::engine::{CacheOptions, Engine, Event, Request, SamplingParams, Timings};
use pagewise::gguf::Gguf;
use pagewise::kernels::KvFormat;
use pagewise::model::{Choice, DEFAULT_CONTEXT_LENGTH, Logits, ModelConfig, ModelOptions};
use pagewise::text::Tokenizer;
use pagewise::{Error, Result};
use pollster::block_on;
use serde::Serialize;
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

/// Prompt of the run before the measured ones: long enough for the kernels that take many rows.
const WARM_UP_TOKENS: usize = 8;

/// Measure speed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GGUF file, or the first part of a split one.
    model: PathBuf,
    /// Tokens of the prompt.
    #[arg(long, value_name = "TOKENS", default_value_t = 64)]
    prompt_tokens: usize,
    /// Tokens of the answer.
    #[arg(long, value_name = "TOKENS", default_value_t = 16)]
    max_tokens: usize,
    /// Measured runs.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Of all runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    /// `None` of nothing.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<_> = values.collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let half = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 };
        Some(Self { median, min, max })
    }
}

/// What one decode step does, at the middle of the answer. Bytes are those of weight matrices and of the KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct DecodeStep {
    num_dispatches: usize,
    /// Of the layer that has most.
    num_dispatches_per_layer: usize,
    position: usize,
    weight_bytes: u64,
    kv_bytes: u64,
    read_bytes: u64,
    /// Every weight once, as in the file, and every key and value in reach once.
    fewest_bytes: u64,
    /// `None` where there are no commands to encode.
    encode_ms: Option<f64>,
}

impl DecodeStep {
    fn of(model: &NativeModel, gguf: &Gguf, args: &Args, encode_ms: Option<f64>) -> Self {
        let position = args.prompt_tokens + args.max_tokens / 2;
        let longest = u32::try_from(position + 1).unwrap_or(u32::MAX);
        let step = Step { num_tokens: 1, num_rows: 1, longest, ..Step::default() };
        let runs = |grid: [u32; 3]| grid.iter().all(|&size| size > 0);
        let dispatches = || {
            let all = model.recording().dispatches().iter();
            all.filter(|dispatch| dispatch.class.runs(&step) && runs(dispatch.kernel.grid(&step)))
        };
        let weight_bytes = dispatches().map(|dispatch| dispatch.kernel.weight_bytes()).sum();
        let kv_bytes = dispatches().map(|dispatch| dispatch.kernel.cache_bytes(position)).sum();
        Self {
            num_dispatches: dispatches().count(),
            num_dispatches_per_layer: model.layer_dispatches(),
            position,
            weight_bytes,
            kv_bytes,
            read_bytes: weight_bytes + kv_bytes,
            fewest_bytes: matrix_bytes(gguf) + cache_bytes(model.config(), args.memory.kv.format(), position),
            encode_ms,
        }
    }
}

/// Bytes of the matrices that every token is multiplied with, as the file stores them. Of an embedding that is not the
/// output matrix as well, only a row is read.
fn matrix_bytes(gguf: &Gguf) -> u64 {
    let has_output = gguf.find("output.weight").is_some();
    let is_used = |name: &str| name != "token_embd.weight" || !has_output;
    let matrices = gguf.tensors.iter().filter(|tensor| tensor.num_rows() > 1 && is_used(&tensor.name));
    matrices.map(|tensor| tensor.size_bytes).sum()
}

/// Bytes of the keys and values that a token at `position` attends to, over all layers.
fn cache_bytes(config: &ModelConfig, kv: KvFormat, position: usize) -> u64 {
    let row_bytes = 4 * kv.row_words(config.kv_heads * config.head_dim);
    let reach = |layer| {
        let window = config.sliding.filter(|_| config.is_sliding(layer)).map_or(usize::MAX, |sliding| sliding.window);
        window.min(position + 1)
    };
    (0..config.num_layers).map(|layer| (2 * row_bytes * reach(layer)) as u64).sum()
}

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    adapter: String,
    executor: &'static str,
    kernels: Option<Choice>,
    kv: &'static str,
    context_length: usize,
    prompt_tokens: usize,
    max_tokens: usize,
    num_runs: u32,
    prefill_tokens_per_s: Option<Spread>,
    decode_tokens_per_s: Option<Spread>,
    ttft_ms: Option<Spread>,
    decode_step: DecodeStep,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let opened = device::open(&args.model)?;
    let gguf = &opened.1;
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata)?);
    let num_tokens = args.prompt_tokens.saturating_add(args.max_tokens);
    let memory = args.memory.with_context_for(num_tokens, DEFAULT_CONTEXT_LENGTH, gguf)?;
    let options = ModelOptions { max_sequences: Some(1), ..memory.options() };
    let model = NativeModel::load(&opened, &args.device, &options)?;
    let groups = model.groups();
    let mut engine = Engine::new(model, tokenizer, groups, args.device.engine_options());
    measure(&mut engine, WARM_UP_TOKENS.min(args.prompt_tokens), args.max_tokens.min(2))?;
    let runs = (0..args.runs).map(|_| measure(&mut engine, args.prompt_tokens, args.max_tokens));
    let runs = runs.collect::<Result<Vec<_>>>()?;
    // Some drivers wait in a submission for the one before: alone, a step shows what handing it over takes.
    engine.set_max_steps_ahead(Some(1));
    let alone = measure(&mut engine, WARM_UP_TOKENS.min(args.prompt_tokens), args.max_tokens.min(8))?;

    let spread = |value: fn(&Timings) -> Option<f64>| Spread::of(runs.iter().filter_map(|run| value(&run.timings)));
    let model = engine.forward();
    let report = Report {
        model: model.config().name.clone(),
        adapter: model.adapter().to_owned(),
        executor: match args.device.executor {
            ExecutorKind::Gpu => "gpu",
            ExecutorKind::Cpu => "cpu",
        },
        kernels: model.kernels(),
        kv: args.memory.kv.name(),
        context_length: engine.context_length(),
        prompt_tokens: args.prompt_tokens,
        max_tokens: args.max_tokens,
        num_runs: args.runs,
        prefill_tokens_per_s: spread(|timings| timings.prefill_tokens_per_s),
        decode_tokens_per_s: spread(|timings| timings.decode_tokens_per_s),
        ttft_ms: spread(|timings| Some(timings.ttft_ms)),
        decode_step: DecodeStep::of(model, gguf, args, alone.encode_ms),
    };
    if args.json {
        output::print_json(&json!(report));
    } else {
        output::print(&to_text(&report));
    }
    Ok(())
}

struct Run {
    timings: Timings,
    /// Mean over the steps after the first token.
    encode_ms: Option<f64>,
}

/// Runs one request whose length is certain.
fn measure(engine: &mut Engine<NativeModel>, prompt_tokens: usize, max_tokens: usize) -> Result<Run> {
    let vocab = engine.forward().vocab();
    let request = Request {
        prompt: prompt(prompt_tokens, vocab),
        max_tokens: Some(max_tokens),
        sampling: SamplingParams::greedy(),
        ignore_end_of_generation: true,
        // Every run has the same prompt: the prefix cache would leave nothing to measure.
        cache: CacheOptions { enabled: false, ..CacheOptions::default() },
        ..Request::default()
    };
    let start = Instant::now();
    let now = || 1e3 * start.elapsed().as_secs_f64();
    engine.submit(request, now())?;
    let mut after_prefill = None;
    while engine.has_work() {
        for event in block_on(engine.step(now)) {
            match event {
                Event::Text { .. } => after_prefill = after_prefill.or(engine.forward().stats()),
                Event::Finished { timings, .. } => {
                    let encode_ms = after_prefill.zip(engine.forward().stats()).and_then(mean_encode_ms);
                    return Ok(Run { timings, encode_ms });
                }
                Event::Progress { .. } => {}
                Event::Failed { error, .. } => return Err(error),
            }
        }
    }
    Err(Error::WrongResult("the answer did not end".into()))
}

fn mean_encode_ms((before, after): (ExecutorStats, ExecutorStats)) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "steps of a benchmark")]
    let num_steps = (after.num_steps - before.num_steps) as f64;
    (num_steps > 0.0).then(|| (after.encode_ms - before.encode_ms) / num_steps)
}

/// Token ids all over the vocabulary, the same every time.
fn prompt(num_tokens: usize, vocab: usize) -> Vec<u32> {
    // Consecutive multiples of a prime far apart; a model has far fewer tokens than a u32 can count.
    let id = |index: usize| u32::try_from(index.wrapping_mul(7919).wrapping_add(13) % vocab).unwrap_or(0);
    (0..num_tokens).map(id).collect()
}

fn to_text(report: &Report) -> String {
    let Report { model, adapter, kv, context_length, prompt_tokens, max_tokens, num_runs, .. } = report;
    let spread = |spread: Option<Spread>| {
        let Some(Spread { median, min, max }) = spread else { return "-".to_owned() };
        format!("{median:.2} ({min:.2} to {max:.2})")
    };
    let step = report.decode_step;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{} on {}", output::printable(model), output::printable(adapter));
    let _ = writeln!(text, "{prompt_tokens} prompt tokens, {max_tokens} generated, {num_runs} runs");
    if let Some(Choice { few_rows, many_rows }) = &report.kernels {
        let _ = writeln!(text, "matrix kernels    {few_rows}; {many_rows}");
    }
    let _ = writeln!(text, "KV cache          {kv}, {context_length} tokens");
    let _ = writeln!(text, "prefill tokens/s  {}", spread(report.prefill_tokens_per_s));
    let _ = writeln!(text, "decode tokens/s   {}", spread(report.decode_tokens_per_s));
    let _ = writeln!(text, "first token, ms   {}", spread(report.ttft_ms));
    let _ = writeln!(
        text,
        "dispatches        {} a decode step, {} a layer",
        step.num_dispatches, step.num_dispatches_per_layer
    );
    let _ = writeln!(
        text,
        "bytes read        {} a decode step at position {} ({} of weights, {} of KV), {} the fewest",
        output::size(step.read_bytes),
        step.position,
        output::size(step.weight_bytes),
        output::size(step.kv_bytes),
        output::size(step.fewest_bytes),
    );
    if let Some(encode_ms) = step.encode_ms {
        let _ = writeln!(text, "CPU encode        {encode_ms:.3} ms a decode step");
    }
    text
}
