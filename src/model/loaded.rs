//! A model on a device: loading its weights, and running steps.

use std::collections::VecDeque;
use std::rc::Rc;

use super::batch::{Batch, BatchLimits, Forward, Logits, RowMask};
use super::blocks::{KvLayer, numbers};
use super::config::ModelConfig;
use super::extras::{Asked, StepExtras};
use super::forward::{Graph, Io, Layout};
use super::plan::{DeviceInfo, ModelOptions, Plan, plan};
use super::probe::probe;
use super::rope::angles;
use super::weights::Placement;
use super::xxh64::Xxh64;
use crate::compute::{CpuExecutor, Executor, Gpu, GpuExecutor, Recording, Tuning};
use crate::gguf::{ByteSource, Gguf};
use crate::kernels::NOT_FINITE;
use crate::kv::GroupConfig;
use crate::{Error, Result};

/// Bytes of a tensor read and packed at a time: bounds the memory that loading takes.
const WINDOW_BYTES: usize = 4 << 20;
/// Bytes written before waiting for the device to take them.
const FLUSH_BYTES: u64 = 32 << 20;
/// Positions of rotation angles made at a time.
const ANGLES_WINDOW: usize = 256;

/// Steps on the device's queue, at most: more would only let it overshoot further.
const MAX_AHEAD: usize = 4;

/// How far loading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadProgress {
    /// Kernels are being tried on the device.
    Probe,
    /// Memory is being allocated and kernels compiled.
    Compile,
    /// Weights are being read.
    Weights {
        /// Bytes of the file's tensors that are on the device.
        loaded_bytes: u64,
        /// Bytes of all of them.
        total_bytes: u64,
    },
}

/// A loaded model.
#[derive(Debug)]
pub struct Model<E: Executor> {
    pub(super) executor: E,
    pub(super) config: ModelConfig,
    pub(super) layout: Layout,
    plan: Plan,
    pub(super) io: Io,
    pub(super) kv_layers: Vec<KvLayer>,
    layer_dispatches: usize,
    /// The masks that are on the device, by their place there.
    pub(super) masks: Vec<Rc<[u32]>>,
    /// What the steps in flight are read for.
    asked: VecDeque<Asked>,
    /// What the step that was collected last told besides.
    extras: StepExtras,
    /// Hash of the numbers and the weights.
    pub(super) fingerprint: u64,
}

/// A model on a GPU.
pub type GpuModel = Model<GpuExecutor>;
/// A model on the CPU: slow, and what the GPU is compared with.
pub type CpuModel = Model<CpuExecutor>;

/// Loads a model onto a GPU. `progress` may end loading by returning an error, which becomes the result.
///
/// # Errors
/// Those of [`plan`], of the source, of the device, and of `progress`.
pub async fn load_gpu(
    gguf: &Gguf,
    source: &impl ByteSource,
    gpu: Gpu,
    options: &ModelOptions,
    mut progress: impl FnMut(LoadProgress) -> Result<()>,
) -> Result<GpuModel> {
    let config = ModelConfig::from_gguf(gguf)?;
    let device =
        DeviceInfo { binding_bytes: gpu.limits().binding_bytes.min(gpu.limits().buffer_bytes), tuning: gpu.tuning() };
    // Whether it fits is said before anything is computed; the probe may then change the kernels, not the sizes.
    let (_, layout, _) = plan(&config, gguf, &device, options)?;
    progress(LoadProgress::Probe)?;
    let gpu = probe(gpu, &config, gguf, &layout).await?;
    let device = DeviceInfo { tuning: gpu.tuning(), ..device };
    let (plan, layout, graph) = plan(&config, gguf, &device, options)?;
    progress(LoadProgress::Compile)?;
    let make = async |recording| {
        let executor = GpuExecutor::new(gpu.clone(), recording).await?;
        gpu.forget_pipelines();
        Ok(executor)
    };
    Model::load(config, (plan, layout, graph), source, make, progress).await
}

/// Loads a model for the CPU executor.
///
/// # Errors
/// As [`load_gpu`].
pub async fn load_cpu(gguf: &Gguf, source: &impl ByteSource, options: &ModelOptions) -> Result<CpuModel> {
    let config = ModelConfig::from_gguf(gguf)?;
    let device =
        DeviceInfo { binding_bytes: u64::from(u32::MAX), tuning: Tuning { max_rounds: None, ..Tuning::SOFTWARE } };
    let planned = plan(&config, gguf, &device, options)?;
    let make = async |recording| Ok(CpuExecutor::new(recording));
    Model::load(config, planned, source, make, |_| Ok(())).await
}

impl<E: Executor> Model<E> {
    async fn load(
        config: ModelConfig,
        (plan, layout, graph): (Plan, Layout, Graph),
        source: &impl ByteSource,
        make: impl AsyncFnOnce(Rc<Recording>) -> Result<E>,
        mut progress: impl FnMut(LoadProgress) -> Result<()>,
    ) -> Result<Self> {
        let Graph { recording, mut placements, angles, rope_factors, io, kv_layers, layer_dispatches } = graph;
        let executor = make(Rc::new(recording)).await?;
        let mut hash = Xxh64::new(0);
        hash.update(&numbers(&config));
        let (masks, asked, extras, fingerprint) = (Vec::new(), VecDeque::new(), StepExtras::default(), 0);
        let mut model =
            Self { executor, config, layout, plan, io, kv_layers, layer_dispatches, masks, asked, extras, fingerprint };
        let factors = match rope_factors {
            Some(placement) => read_floats(source, &placement).await?,
            None => Vec::new(),
        };
        hash.update(bytemuck::cast_slice(&factors));
        for (buffer, rope) in angles {
            let positions = model.layout.limits.max_blocks * crate::kv::BLOCK_SIZE;
            let factors = if rope.has_factors { factors.as_slice() } else { &[] };
            for first in (0..positions).step_by(ANGLES_WINDOW) {
                let table = self::angles(&rope, factors, first, ANGLES_WINDOW.min(positions - first));
                model.executor.write(buffer, first * rope.dim, bytemuck::cast_slice(&table));
            }
        }
        placements.sort_by_key(|p| (p.tensor.part, p.tensor.offset, p.first_row));
        model.read_weights(&placements, source, &mut hash, &mut progress).await?;
        model.fingerprint = hash.finish();
        Ok(model)
    }

    /// Streams every placement through a small window, in file order: whatever the device, `hash` sees the same bytes.
    async fn read_weights(
        &mut self,
        placements: &[Placement],
        source: &impl ByteSource,
        hash: &mut Xxh64,
        progress: &mut impl FnMut(LoadProgress) -> Result<()>,
    ) -> Result<()> {
        let row_bytes = |p: &Placement| p.tensor.format.row_bytes(p.tensor.row_elements());
        let total_bytes = placements.iter().map(|p| (p.num_rows * row_bytes(p)) as u64).sum();
        let (mut loaded_bytes, mut flushed_bytes) = (0, 0);
        for placement in placements {
            let tensor = &placement.tensor;
            let (bytes, k) = (row_bytes(placement), tensor.row_elements());
            let words = tensor.format.packed_row_words(k);
            if placement.first_row == 0 {
                hash.update(format!("{} {} {:?}", tensor.name, tensor.format, tensor.shape).as_bytes());
            }
            if placement.offset_words == 0 {
                self.write_codebook(placement);
            }
            let window = (WINDOW_BYTES / bytes).max(1);
            for first in (0..placement.num_rows).step_by(window) {
                let num = window.min(placement.num_rows - first);
                let offset = tensor.offset + ((placement.first_row + first) * bytes) as u64;
                let read = source.read(tensor.part, offset, num * bytes).await?;
                if read.len() != num * bytes {
                    let (name, got) = (&tensor.name, read.len());
                    return Err(Error::Network(format!("tensor {name}: {} bytes asked, {got} read", num * bytes)));
                }
                hash.update(&read);
                let mut packed = vec![0; num * words];
                for (row, packed) in read.chunks_exact(bytes).zip(packed.chunks_exact_mut(words)) {
                    tensor.format.pack_row(row, packed);
                }
                self.executor.write(placement.buffer, placement.offset_words + first * words, &packed);
                loaded_bytes += (num * bytes) as u64;
                if loaded_bytes - flushed_bytes >= FLUSH_BYTES {
                    self.executor.flush().await?;
                    flushed_bytes = loaded_bytes;
                }
                progress(LoadProgress::Weights { loaded_bytes, total_bytes })?;
            }
        }
        self.executor.flush().await
    }

    /// Writes the codebook of the format at the end of a buffer, where shaders look for it.
    fn write_codebook(&mut self, placement: &Placement) {
        let codebook = placement.tensor.format.codebook();
        if !codebook.is_empty() {
            let num_words = self.executor.recording().info(placement.buffer).size_words;
            self.executor.write(placement.buffer, num_words - codebook.len(), &codebook);
        }
    }

    /// The model's numbers.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// What it takes on the device.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Who replays the forward pass.
    pub fn executor(&self) -> &E {
        &self.executor
    }

    /// The same, to measure with.
    pub fn executor_mut(&mut self) -> &mut E {
        &mut self.executor
    }

    /// Dispatches of one layer in decode, the most of any layer.
    pub fn layer_dispatches(&self) -> usize {
        self.layer_dispatches
    }
}

impl<E: Executor> Forward for Model<E> {
    fn limits(&self) -> BatchLimits {
        self.layout.limits
    }

    fn submit(&mut self, batch: &Batch) -> Result<()> {
        let step = self.write(batch)?;
        let asked = Asked::of(batch);
        self.executor.start(0, &step, batch.num_submits, &self.reads(batch.rows.len(), &asked))?;
        self.asked.push_back(asked);
        Ok(())
    }

    fn submit_masked(&mut self, mut batch: Batch, masks: &mut dyn FnMut() -> Vec<RowMask>) -> Result<()> {
        let step = self.write(&batch)?;
        let num_begun = self.executor.begin(&step, batch.num_submits)?;
        batch.add_masks(masks());
        self.write_samplings(&batch)?;
        let asked = Asked::of(&batch);
        self.executor.start(num_begun, &step, batch.num_submits, &self.reads(batch.rows.len(), &asked))?;
        self.asked.push_back(asked);
        Ok(())
    }

    async fn collect(&mut self) -> Result<Vec<u32>> {
        let read = self.executor.finish().await;
        let asked = self.asked.pop_front().unwrap_or_default();
        let mut read = read?;
        let ids = if read.is_empty() { Vec::new() } else { read.remove(0) };
        self.extras = self.extras(&asked, read);
        match ids.iter().position(|&id| id == NOT_FINITE) {
            None => Ok(ids),
            Some(row) => {
                Err(Error::WrongResult(format!("the logits of row {row} are not finite: nothing was drawn from them")))
            }
        }
    }

    fn take_extras(&mut self) -> StepExtras {
        std::mem::take(&mut self.extras)
    }

    fn pool_width(&self) -> Option<usize> {
        self.config.pools_by_mean.then_some(self.config.width)
    }

    fn max_ahead(&self) -> usize {
        MAX_AHEAD
    }

    fn gpu_ms(&self) -> Option<f64> {
        self.executor.device_ms()
    }

    fn encode_ms(&self) -> Option<f64> {
        self.executor.encode_ms()
    }
}

impl<E: Executor> Logits for Model<E> {
    fn vocab(&self) -> usize {
        self.config.vocab
    }

    fn groups(&self) -> Vec<GroupConfig> {
        self.layout.groups.clone()
    }

    async fn logits(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>> {
        let step = self.write(batch)?;
        let vocab = self.config.vocab;
        self.asked.clear();
        let read = self.executor.run(&step, batch.num_submits, &[(self.io.logits, batch.rows.len() * vocab)]).await?;
        Ok(read[0].chunks_exact(vocab).map(|row| bytemuck::cast_slice(row).to_vec()).collect())
    }
}

async fn read_floats(source: &impl ByteSource, placement: &Placement) -> Result<Vec<f32>> {
    let tensor = &placement.tensor;
    let bytes = source.read(tensor.part, tensor.offset, 4 * tensor.row_elements()).await?;
    Ok(bytemuck::pod_collect_to_vec(&bytes))
}
