//! From a file to an engine, or to what its header says.

use std::collections::BTreeMap;
use std::rc::Rc;

use js_sys::Function;
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

use super::cache::block_bytes;
use super::describe::{self, Description, Info};
use super::engine::WasmEngine;
use super::source::{JsByteSource, JsSource, number};
use super::{from_js, to_js};
use crate::compute::{AdapterKind, Gpu, GpuOptions, Tuning};
use crate::engine::{Batching, Engine, EngineOptions};
use crate::gguf::{self, Gguf};
use crate::kernels::KvFormat;
use crate::model::{
    self, DEFAULT_MAX_SEQUENCES, DeviceInfo, LoadProgress, Logits as _, ModelConfig, ModelOptions, Plan, Precision,
    TUNING_BUDGET_MS, Tuned, tuning_key,
};
use crate::text::{ChatTemplate, Tokenizer, ToolFormat};

/// `EngineOptions` of `js/src/protocol.ts`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageOptions {
    context_length: Option<usize>,
    max_gpu_bytes: Option<u64>,
    kv: PageKv,
    max_running: Option<usize>,
    max_queued: Option<usize>,
    max_steps_ahead: Option<usize>,
    max_step_tokens: Option<usize>,
    batching: Option<PageBatching>,
    chunked_prefill: Option<bool>,
    autotune: bool,
    precision: PagePrecision,
    /// How the model writes calls of tools; absent: as its template shows.
    tool_format: Option<String>,
    /// Choices of kernels that were measured before, by their keys.
    #[serde(default)]
    remembered: BTreeMap<String, String>,
    /// Absent when a plan is made where there is no GPU.
    adapter: Option<PageAdapter>,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PageKv {
    F16,
    F32,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PageBatching {
    Continuous,
    Static,
    None,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PagePrecision {
    Full,
    Fast,
}

/// `AdapterProbe` of `js/src/protocol.ts`, as far as it is used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageAdapter {
    vendor: String,
    architecture: String,
    description: String,
    is_software: bool,
    subgroups: bool,
    max_buffer_bytes: u64,
}

impl PageAdapter {
    /// What it tells of itself, in words.
    fn names(&self) -> String {
        let words = [&self.vendor, &self.architecture, &self.description];
        words.into_iter().map(String::as_str).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// `MemoryPlan` of `js/src/types.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PagePlan {
    weights_bytes: u64,
    step_weights_bytes: u64,
    kv_bytes_per_token: u64,
    kv_bytes: u64,
    scratch_bytes: u64,
    total_bytes: u64,
    context_length: usize,
    trained_context_length: usize,
    kv: PageKv,
}

impl PagePlan {
    fn new(plan: &Plan, kv: PageKv) -> Self {
        Self {
            weights_bytes: plan.weights_bytes,
            step_weights_bytes: plan.step_weights_bytes,
            kv_bytes_per_token: plan.kv_bytes_per_token,
            kv_bytes: plan.kv_bytes,
            scratch_bytes: plan.scratch_bytes,
            total_bytes: plan.total_bytes,
            context_length: plan.context_length,
            trained_context_length: plan.max_context_length,
            kv,
        }
    }
}

impl PageOptions {
    fn model(&self) -> ModelOptions {
        let kv = match self.kv {
            PageKv::F16 => KvFormat::F16,
            PageKv::F32 => KvFormat::F32,
        };
        let (context_length, memory_limit) = (self.context_length, self.max_gpu_bytes);
        // A step has room for at least as many as by default: choices of a request are drawn from one step.
        let max_sequences = self.max_running.map(|num| num.max(DEFAULT_MAX_SEQUENCES));
        ModelOptions { context_length, kv, memory_limit, max_sequences, ..ModelOptions::default() }
    }

    fn engine(&self) -> EngineOptions {
        let defaults = EngineOptions::default();
        EngineOptions {
            max_running: self.max_running.unwrap_or(defaults.max_running),
            max_waiting: self.max_queued.unwrap_or(defaults.max_waiting),
            max_steps_ahead: self.max_steps_ahead,
            budget_tokens: self.max_step_tokens.unwrap_or(defaults.budget_tokens),
            batching: match self.batching {
                Some(PageBatching::Continuous) => Batching::Continuous,
                Some(PageBatching::Static) => Batching::Static,
                Some(PageBatching::None) => Batching::None,
                None => defaults.batching,
            },
            chunked_prefill: self.chunked_prefill.unwrap_or(defaults.chunked_prefill),
            ..defaults
        }
    }

    fn gpu(&self) -> GpuOptions {
        let Some(adapter) = &self.adapter else { return GpuOptions::default() };
        GpuOptions { hint: adapter.names(), subgroups: adapter.subgroups, ..GpuOptions::default() }
    }

    /// The device to plan for. Lanes do not change how much memory is needed.
    fn device(&self) -> DeviceInfo {
        self.adapter.as_ref().map_or(DeviceInfo::BASELINE, |adapter| DeviceInfo {
            binding_bytes: adapter.max_buffer_bytes,
            tuning: Tuning::choose(AdapterKind::of(&adapter.names(), adapter.is_software), 1),
        })
    }
}

/// Tells JavaScript how far loading is: `callback(phase, loaded_bytes, total_bytes)`.
fn report(callback: &Function, phase: &str, loaded: u64, total: u64) {
    // A callback that throws is the worker's bug, and no reason to stop loading.
    drop(callback.call3(&JsValue::NULL, &phase.into(), &number(loaded).into(), &number(total).into()));
}

/// Reads, plans and uploads a model. `on_progress(phase, loaded_bytes, total_bytes)` is called on the way.
#[wasm_bindgen(js_name = loadEngine)]
pub async fn load_engine(source: JsByteSource, options: JsValue, on_progress: Function) -> Result<WasmEngine, JsValue> {
    let options: PageOptions = from_js(options, "options")?;
    let source = JsSource::new(source);
    report(&on_progress, "header", 0, 0);
    // Without a usable GPU nothing is read at all.
    let gpu = Gpu::open(&options.gpu()).await?;
    let built = build(&source, &options, &gpu, &on_progress).await;
    if built.is_err() {
        gpu.destroy();
    }
    Ok(built?)
}

async fn build(
    source: &JsSource,
    options: &PageOptions,
    gpu: &Gpu,
    on_progress: &Function,
) -> crate::Result<WasmEngine> {
    let gguf = gguf::open(source).await?;
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata)?);
    let template = ChatTemplate::from_metadata(&gguf.metadata)?;
    let tool_format = options.tool_format.as_deref().and_then(ToolFormat::named);
    let mut total = gguf.tensor_bytes();
    let progress = |progress| {
        match progress {
            LoadProgress::Probe | LoadProgress::Compile => report(on_progress, "compile", 0, total),
            LoadProgress::Weights { loaded_bytes, total_bytes } => {
                total = total_bytes;
                report(on_progress, "weights", loaded_bytes, total_bytes);
            }
        }
        Ok(())
    };
    let (tuned, key) = tune(&gguf, gpu, options).await?;
    let model = model::load_gpu(&gguf, source, tuned.gpu.clone(), &options.model(), progress).await?;
    report(on_progress, "ready", total, total);
    let (plan, groups) = (model.plan().clone(), model.groups());
    let num_blocks: Vec<_> = groups.iter().map(|group| group.num_blocks).collect();
    let block_bytes = block_bytes(&num_blocks, plan.kv_bytes, plan.kv_bytes_per_token);
    let engine = Engine::new(model, Rc::clone(&tokenizer), groups, options.engine());
    let info = Info {
        name: describe::text(&gguf.metadata, "general.name"),
        architecture: describe::architecture(&gguf.metadata),
        quantisation: describe::quantisation(&gguf.tensors),
        num_parameters: describe::num_parameters(&gguf.tensors),
        context_length: engine.context_length(),
        trained_context_length: plan.max_context_length,
        vocab_size: tokenizer.vocab_size(),
        kv: options.kv,
        gpu_bytes: plan.total_bytes,
        memory: PagePlan::new(&plan, options.kv),
        has_chat_template: template.is_some(),
        tuning: describe::KernelTuning::new(&tuned),
        measured: describe::MeasuredTuning::new(&tuned, key),
    };
    Ok(WasmEngine::new(engine, gpu.clone(), tokenizer, template, info, block_bytes, tool_format))
}

/// Chooses kernels, and says what the choice is to be remembered under. Of a model that cannot run, nothing is measured.
async fn tune(gguf: &Gguf, gpu: &Gpu, options: &PageOptions) -> crate::Result<(Tuned, String)> {
    let config = ModelConfig::from_gguf(gguf)?;
    let precision = match options.precision {
        PagePrecision::Full => Precision::Full,
        PagePrecision::Fast => Precision::Fast,
    };
    let key = tuning_key(gpu, &config, gguf, precision);
    if !options.autotune {
        return Ok((Tuned::by_table(gpu.clone()), key));
    }
    let device = DeviceInfo { tuning: gpu.tuning(), ..options.device() };
    model::plan(&config, gguf, &device, &options.model())?;
    let remembered = options.remembered.get(&key).map(String::as_str);
    Ok((model::autotune(gpu.clone(), &config, gguf, precision, remembered, TUNING_BUDGET_MS).await?, key))
}

/// Describes a file from its header.
#[wasm_bindgen]
pub async fn inspect(source: JsByteSource) -> Result<JsValue, JsValue> {
    let gguf = gguf::open(&JsSource::new(source)).await?;
    to_js(&Description::new(&gguf, check(&gguf).err().map(|error| error.to_string())))
}

/// Whether a file could run on a device that is large enough.
fn check(gguf: &Gguf) -> crate::Result<()> {
    Tokenizer::from_metadata(&gguf.metadata)?;
    ChatTemplate::from_metadata(&gguf.metadata)?;
    plan_for(gguf, &DeviceInfo::BASELINE, &ModelOptions::default()).map(drop)
}

fn plan_for(gguf: &Gguf, device: &DeviceInfo, options: &ModelOptions) -> crate::Result<Plan> {
    let config = ModelConfig::from_gguf(gguf)?;
    model::plan(&config, gguf, device, options).map(|(plan, ..)| plan)
}

/// Plans memory from a file's header.
#[wasm_bindgen]
pub async fn plan(source: JsByteSource, options: JsValue) -> Result<JsValue, JsValue> {
    let options: PageOptions = from_js(options, "options")?;
    let gguf = gguf::open(&JsSource::new(source)).await?;
    let plan = plan_for(&gguf, &options.device(), &options.model())?;
    to_js(&PagePlan::new(&plan, options.kv))
}
