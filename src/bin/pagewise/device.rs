//! What the subcommands that compute have in common: their flags, and a model on the device that was asked for.

use crate::{output, tuning};
use pagewise::Result;
use pagewise::compute::{Executor, ExecutorStats, Gpu, GpuOptions, Recording};
use pagewise::engine::EngineOptions;
use pagewise::gguf::{FileSource, Gguf};
use pagewise::kernels::KvFormat;
use pagewise::kv::GroupConfig;
use pagewise::model::{
    Batch, BatchLimits, CpuModel, Forward, GpuModel, Logits, ModelConfig, ModelOptions, RowMask, StepExtras,
};
use pagewise::model::{
    Choice, DeviceInfo, Precision, TUNING_BUDGET_MS, TuningSource, autotune, load_cpu, load_gpu, plan, tuning_key,
};
use pollster::block_on;
use std::path::Path;

/// How keys and values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kv {
    /// Half precision.
    F16,
    /// Single precision.
    F32,
}

impl Kv {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kv::F16 => "f16",
            Kv::F32 => "f32",
        }
    }

    pub(crate) fn format(self) -> KvFormat {
        match self {
            Kv::F16 => KvFormat::F16,
            Kv::F32 => KvFormat::F32,
        }
    }
}

/// Who computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExecutorKind {
    /// The kernels' shaders on a GPU, or on a software adapter.
    Gpu,
    /// The kernels' twins on one CPU core: slow.
    Cpu,
}

/// Flags that decide how much memory a model takes.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct MemoryArgs {
    /// How keys and values are stored.
    #[arg(long, value_enum, default_value = "f16")]
    pub(crate) kv: Kv,
    /// Tokens that a prompt and its answer may have.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) context: Option<usize>,
    /// Memory that the model may take on the device.
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory_limit: Option<u64>,
    /// Tokens computed at a time, at most.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_tokens_per_step: Option<usize>,
}

impl MemoryArgs {
    pub(crate) fn options(&self) -> ModelOptions {
        ModelOptions {
            context_length: self.context,
            kv: self.kv.format(),
            memory_limit: self.memory_limit,
            max_tokens: self.max_tokens_per_step,
            max_sequences: None,
        }
    }

    /// A context of at least `least` tokens and of `num_tokens` where there is need for more, unless one was asked for.
    pub(crate) fn with_context_for(self, num_tokens: usize, least: usize, gguf: &Gguf) -> Result<Self> {
        let least = least.min(ModelConfig::from_gguf(gguf)?.context_length);
        Ok(Self { context: self.context.or(Some(num_tokens.max(least))), ..self })
    }
}

/// Flags that decide where a model runs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DeviceArgs {
    /// Who computes.
    #[arg(long, value_enum, default_value = "gpu")]
    pub(crate) executor: ExecutorKind,
    /// Take the adapter whose name contains this.
    #[arg(long, value_name = "NAME-PART")]
    adapter: Option<String>,
    /// Use WebGPU's default limits and no optional feature, whatever the adapter offers.
    #[arg(long)]
    baseline: bool,
    /// Steps on the device's queue at once, at most 4: 1 reads each one's tokens before the next is submitted. As many as
    /// keep the device busy by default.
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u8).range(1..))]
    max_steps_ahead: Option<u8>,
    /// Choose kernels by a fixed table instead of timing them (once for a model's shapes; remembered in the user's cache folder).
    #[arg(long)]
    no_autotune: bool,
    /// `fast` lets timing choose kernels that round activations to 8 bits or to f16.
    #[arg(long, value_enum, default_value = "full", conflicts_with = "no_autotune")]
    precision: PrecisionArg,
}

/// How exactly prompts and answers are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PrecisionArg {
    /// In f32.
    Full,
    /// As fast as possible.
    Fast,
}

impl DeviceArgs {
    /// How the engine works on it.
    pub(crate) fn engine_options(&self) -> EngineOptions {
        EngineOptions { max_steps_ahead: self.max_steps_ahead.map(usize::from), ..EngineOptions::default() }
    }
}

/// Opens a model to be run: what cannot run at all is told first, whatever else may be wrong with the file.
///
/// # Errors
/// Those of [`output::open_model`], and `unsupported_model`.
pub(crate) fn open(path: &Path) -> Result<(FileSource, Gguf)> {
    let opened = output::open_model(path)?;
    ModelConfig::from_gguf(&opened.1)?;
    Ok(opened)
}

/// A device with its kernels chosen for a model. Nothing is measured for one that does not fit.
async fn tuned(
    gpu: impl Future<Output = Result<Gpu>>,
    gguf: &Gguf,
    args: &DeviceArgs,
    options: &ModelOptions,
) -> Result<Gpu> {
    let gpu = gpu.await?;
    if args.no_autotune {
        return Ok(gpu);
    }
    let precision = match args.precision {
        PrecisionArg::Full => Precision::Full,
        PrecisionArg::Fast => Precision::Fast,
    };
    let config = ModelConfig::from_gguf(gguf)?;
    let device =
        DeviceInfo { binding_bytes: gpu.limits().binding_bytes.min(gpu.limits().buffer_bytes), tuning: gpu.tuning() };
    plan(&config, gguf, &device, options)?;
    let key = tuning_key(&gpu, &config, gguf, precision);
    let tuned = autotune(gpu, &config, gguf, precision, tuning::recall(&key).as_deref(), TUNING_BUDGET_MS).await?;
    if tuned.source == TuningSource::Measured
        && let Ok(choice) = serde_json::to_string(&tuned.choice)
    {
        tuning::remember(&key, choice);
    }
    Ok(tuned.gpu)
}

/// A model, and who computes it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a process has one of them")]
pub(crate) enum NativeModel {
    Cpu(CpuModel),
    Gpu(GpuModel),
}

impl NativeModel {
    /// Loads a model.
    ///
    /// # Errors
    /// Those of the adapter, of planning and of loading.
    pub(crate) fn load(
        (source, gguf): &(FileSource, Gguf),
        device: &DeviceArgs,
        options: &ModelOptions,
    ) -> Result<Self> {
        if device.executor == ExecutorKind::Cpu {
            return block_on(load_cpu(gguf, source, options)).map(NativeModel::Cpu);
        }
        let gpu_options =
            GpuOptions { baseline: device.baseline, adapter: device.adapter.clone(), ..GpuOptions::default() };
        let gpu = block_on(tuned(Gpu::open(&gpu_options), gguf, device, options))?;
        block_on(load_gpu(gguf, source, gpu, options, |_| Ok(()))).map(NativeModel::Gpu)
    }

    /// The adapter's name; without one, that there is none.
    pub(crate) fn adapter(&self) -> &str {
        match self {
            NativeModel::Cpu(_) => "none (CPU executor)",
            NativeModel::Gpu(model) => model.executor().gpu().name(),
        }
    }

    /// How its matrix kernels were chosen; `None` where there are none.
    pub(crate) fn kernels(&self) -> Option<Choice> {
        match self {
            NativeModel::Cpu(_) => None,
            NativeModel::Gpu(model) => Some(Choice::of(&model.executor().gpu().tuning())),
        }
    }

    pub(crate) fn config(&self) -> &ModelConfig {
        match self {
            NativeModel::Cpu(model) => model.config(),
            NativeModel::Gpu(model) => model.config(),
        }
    }

    pub(crate) fn layer_dispatches(&self) -> usize {
        match self {
            NativeModel::Cpu(model) => model.layer_dispatches(),
            NativeModel::Gpu(model) => model.layer_dispatches(),
        }
    }

    pub(crate) fn recording(&self) -> &Recording {
        match self {
            NativeModel::Cpu(model) => model.executor().recording(),
            NativeModel::Gpu(model) => model.executor().recording(),
        }
    }

    /// What replaying has cost the CPU; `None` where the CPU does everything.
    pub(crate) fn stats(&self) -> Option<ExecutorStats> {
        match self {
            NativeModel::Cpu(_) => None,
            NativeModel::Gpu(model) => Some(model.executor().stats()),
        }
    }
}

impl Forward for NativeModel {
    fn limits(&self) -> BatchLimits {
        match self {
            NativeModel::Cpu(model) => model.limits(),
            NativeModel::Gpu(model) => model.limits(),
        }
    }

    fn submit(&mut self, batch: &Batch) -> Result<()> {
        match self {
            NativeModel::Cpu(model) => model.submit(batch),
            NativeModel::Gpu(model) => model.submit(batch),
        }
    }

    fn submit_masked(&mut self, batch: Batch, masks: &mut dyn FnMut() -> Vec<RowMask>) -> Result<()> {
        match self {
            NativeModel::Cpu(model) => model.submit_masked(batch, masks),
            NativeModel::Gpu(model) => model.submit_masked(batch, masks),
        }
    }

    async fn collect(&mut self) -> Result<Vec<u32>> {
        match self {
            NativeModel::Cpu(model) => model.collect().await,
            NativeModel::Gpu(model) => model.collect().await,
        }
    }

    fn take_extras(&mut self) -> StepExtras {
        match self {
            NativeModel::Cpu(model) => model.take_extras(),
            NativeModel::Gpu(model) => model.take_extras(),
        }
    }

    fn pool_width(&self) -> Option<usize> {
        match self {
            NativeModel::Cpu(model) => model.pool_width(),
            NativeModel::Gpu(model) => model.pool_width(),
        }
    }

    fn max_ahead(&self) -> usize {
        match self {
            NativeModel::Cpu(model) => model.max_ahead(),
            NativeModel::Gpu(model) => model.max_ahead(),
        }
    }

    fn gpu_ms(&self) -> Option<f64> {
        match self {
            NativeModel::Cpu(_) => None,
            NativeModel::Gpu(model) => model.gpu_ms(),
        }
    }

    fn encode_ms(&self) -> Option<f64> {
        match self {
            NativeModel::Cpu(_) => None,
            NativeModel::Gpu(model) => model.encode_ms(),
        }
    }
}

impl Logits for NativeModel {
    fn vocab(&self) -> usize {
        self.config().vocab
    }

    fn groups(&self) -> Vec<GroupConfig> {
        match self {
            NativeModel::Cpu(model) => model.groups(),
            NativeModel::Gpu(model) => model.groups(),
        }
    }

    async fn logits(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>> {
        match self {
            NativeModel::Cpu(model) => model.logits(batch).await,
            NativeModel::Gpu(model) => model.logits(batch).await,
        }
    }
}
