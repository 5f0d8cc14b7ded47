//! What a model takes on an adapter, beside what it would take at the adapter's limits.

use std::collections::BTreeMap;

use pagewise::compute::{Dispatch, Executor, Gpu, Step};
use pagewise::gguf::Gguf;
use pagewise::kernels::KvFormat;
use pagewise::kv::BLOCK_SIZE;
use pagewise::model::{Batch, Forward, GpuModel, ModelOptions, RowSampling, Token, TokenRow, load_gpu};
use pagewise::quant::Format;
use pagewise::{Error, Result};
use web_time::Instant;

use crate::synthetic::Shape;

/// Steps of a measurement, of which the median counts.
const STEPS: usize = 5;

/// One step, or the steps of one prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// From handing it to the device until the ids are back.
    pub(crate) wall_ms: f64,
    /// By the device's clock, where it has one.
    pub(crate) gpu_ms: Option<f64>,
}

impl Times {
    /// The device's time, or else all of it.
    pub(crate) fn best_known_ms(self) -> f64 {
        self.gpu_ms.unwrap_or(self.wall_ms)
    }
}

/// The dispatches of a step that run one kernel on one kind of weights.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KernelTimes {
    pub(crate) num_dispatches: usize,
    pub(crate) ms: f64,
    /// Of weights and of the cache, that they read.
    pub(crate) bytes: u64,
}

/// A model of random weights on a device.
pub(crate) struct Subject {
    model: GpuModel,
    gguf: Gguf,
    pub(crate) load_s: f64,
}

impl Subject {
    /// Loads a shape with room for `context_length` tokens.
    ///
    /// # Errors
    /// Those of loading: `out_of_memory` where it does not fit.
    pub(crate) async fn load(gpu: &Gpu, shape: &Shape, format: Format, context_length: usize) -> Result<Self> {
        let start = Instant::now();
        let (gguf, source) = shape.open(format).await?;
        let options = ModelOptions {
            context_length: Some(context_length),
            kv: KvFormat::F16,
            max_sequences: Some(1),
            ..ModelOptions::default()
        };
        let model = load_gpu(&gguf, &source, gpu.clone(), &options, |_| Ok(())).await?;
        Ok(Self { model, gguf, load_s: start.elapsed().as_secs_f64() })
    }

    /// Bytes of the matrices that a decode step reads, as the file stores them.
    pub(crate) fn weight_bytes(&self) -> u64 {
        let has_output = self.gguf.find("output.weight").is_some();
        let is_read = |name: &str| name != "token_embd.weight" || !has_output;
        let matrices = self.gguf.tensors.iter().filter(|tensor| tensor.num_rows() > 1 && is_read(&tensor.name));
        matrices.map(|tensor| tensor.size_bytes).sum()
    }

    /// Bytes of keys and values that a token at the end of a context reads, each once.
    pub(crate) fn cache_bytes(&self, context: usize) -> u64 {
        context as u64 * self.model.plan().kv_bytes_per_token
    }

    /// A step of the tokens `from..to` of one sequence, whose last token's logits are sampled.
    fn batch(from: usize, to: usize) -> Result<Batch> {
        let word = |value: usize| u32::try_from(value).map_err(|_| Error::BadRequest(format!("a position of {value}")));
        let mut batch = Batch { rows: vec![word(to - from - 1)?], ..Batch::default() };
        batch.tables = vec![vec![(0..word(to.div_ceil(BLOCK_SIZE))?).collect()]];
        batch.sampling = vec![RowSampling::GREEDY];
        for position in from..to {
            let position = word(position)?;
            batch.tokens.push(TokenRow {
                token: Token::Id(1 + position % 1000),
                position,
                sequence: 0,
                slots: [position; 2],
            });
        }
        Ok(batch)
    }

    async fn time(&mut self, batch: &Batch) -> Result<Times> {
        let start = Instant::now();
        self.model.forward(batch).await?;
        Ok(Times { wall_ms: 1e3 * start.elapsed().as_secs_f64(), gpu_ms: self.model.gpu_ms() })
    }

    /// The last tokens of a context in one step. Whatever is in the cache is as good as what a prompt would leave there, and
    /// tokens of one sequence cost what those of several do.
    pub(crate) async fn decode(&mut self, context: usize, num_tokens: usize) -> Result<Times> {
        let batch = Self::batch(context - num_tokens, context)?;
        self.time(&batch).await?;
        let mut all = Vec::new();
        for _ in 0..STEPS {
            all.push(self.time(&batch).await?);
        }
        Ok(median(all))
    }

    /// A prompt from its first token on, in steps as large as the model takes.
    pub(crate) async fn prefill(&mut self, num_tokens: usize) -> Result<Times> {
        let size = self.model.limits().max_tokens;
        // The first time, kernels are cold.
        self.time(&Self::batch(0, size.min(num_tokens))?).await?;
        let mut sum = Times { wall_ms: 0.0, gpu_ms: Some(0.0) };
        for from in (0..num_tokens).step_by(size) {
            let times = self.time(&Self::batch(from, (from + size).min(num_tokens))?).await?;
            sum.wall_ms += times.wall_ms;
            sum.gpu_ms = sum.gpu_ms.zip(times.gpu_ms).map(|(sum, ms)| sum + ms);
        }
        Ok(sum)
    }

    /// A decode step's kernels, by kernel and by what they are multiplied with. `None` without timestamps.
    pub(crate) async fn kernels(&mut self, context: usize) -> Result<Option<BTreeMap<String, KernelTimes>>> {
        // Fills the step's buffers; its numbers are those of the last step.
        self.decode(context, 1).await?;
        let longest = u32::try_from(context).unwrap_or(u32::MAX);
        let step = Step { num_tokens: 1, num_rows: 1, longest, ..Step::default() };
        let Some(times) = self.model.executor_mut().profile(&step).await? else { return Ok(None) };
        let recording = self.model.executor().recording();
        let mut kernels = BTreeMap::<String, KernelTimes>::new();
        for (index, ms) in times {
            let dispatch = &recording.dispatches()[index];
            let weights =
                dispatch.buffers.iter().map(|&id| recording.info(id).label.as_str()).find_map(kind_of_weights);
            let entry = kernels.entry(name_of(dispatch, weights)).or_default();
            entry.num_dispatches += 1;
            entry.ms += ms;
            entry.bytes += dispatch.kernel.weight_bytes() + dispatch.kernel.cache_bytes(context - 1);
        }
        Ok(Some(kernels))
    }
}

fn name_of(dispatch: &Dispatch, weights: Option<String>) -> String {
    let stem = dispatch.kernel.shader().stem;
    weights.map_or_else(|| stem.to_owned(), |weights| format!("{stem} {weights}"))
}

/// `attn_q` of `blk.7.attn_q.weight[0..2048]`; nothing of norms and of what are no weights.
fn kind_of_weights(label: &str) -> Option<String> {
    let (name, _) = label.split_once(".weight[")?;
    Some(name.rsplit('.').next().unwrap_or(name).to_owned())
}

fn median(mut all: Vec<Times>) -> Times {
    all.sort_by(|a, b| a.best_known_ms().total_cmp(&b.best_known_ms()));
    all[all.len() / 2]
}
