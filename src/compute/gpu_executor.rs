//! Replays a recording on a GPU. Buffers, pipelines and bind groups are made at load; a step writes small buffers,
//! submits once (or a few times, to let others in between) and maps one buffer.

mod profile;

use std::collections::HashMap;
use std::rc::Rc;

use web_time::Instant;

use super::executor::Executor;
use super::gpu::Gpu;
use super::recording::{Access, BufferId, BufferInfo, Dispatch, Recording, RowClass, Step};
use super::stopwatch::{STOPWATCH_BYTES, Stopwatch};
use crate::{Error, Result};

/// A dispatch, compiled.
#[derive(Debug)]
struct Compiled {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    class: RowClass,
}

/// What replaying has cost the CPU since the executor was made.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ExecutorStats {
    /// Times the recording was replayed.
    pub num_steps: u64,
    /// Time spent writing buffers, encoding commands and submitting them, the writes of loading included.
    pub encode_ms: f64,
}

/// Owns a recording and the GPU memory of its buffers.
#[derive(Debug)]
pub struct GpuExecutor {
    gpu: Gpu,
    recording: Rc<Recording>,
    buffers: Vec<wgpu::Buffer>,
    compiled: Vec<Compiled>,
    step: wgpu::Buffer,
    readback: wgpu::Buffer,
    stopwatch: Option<Stopwatch>,
    stats: ExecutorStats,
    /// Time spent on writes since the last run.
    write_ms: f64,
    /// Of the last run, the writes before it included.
    encode_ms: Option<f64>,
}

impl GpuExecutor {
    /// Allocates the recording's buffers, zeroed, and compiles its kernels.
    ///
    /// # Errors
    /// `out_of_memory` at the first buffer that does not fit, `wrong_result` if a kernel does not compile here.
    pub async fn new(gpu: Gpu, recording: Rc<Recording>) -> Result<Self> {
        let mut buffers = Vec::with_capacity(recording.buffers().len());
        for info in recording.buffers() {
            buffers.push(allocate(&gpu, info).await?);
        }
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let step = create(&gpu, "step", size_of::<Step>() as u64, usage);
        let readback = create_readback(&gpu, 256);
        let compiled = Compiler::new(&gpu, &step).compile_all(&recording, &buffers).await?;
        gpu.fault()?;
        let stopwatch = Stopwatch::new(&gpu.device, &gpu.queue);
        let stats = ExecutorStats::default();
        let (write_ms, encode_ms) = (0.0, None);
        Ok(Self { gpu, recording, buffers, compiled, step, readback, stopwatch, stats, write_ms, encode_ms })
    }

    /// The device it runs on.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// What replaying has cost the CPU so far.
    pub fn stats(&self) -> ExecutorStats {
        self.stats
    }

    /// Waits until the device has done everything that was submitted.
    async fn done(&self) -> Result<()> {
        let (sender, receiver) = futures_channel::oneshot::channel();
        self.gpu.queue.on_submitted_work_done(move || {
            // The receiver only goes away when the wait itself was dropped.
            let _ = sender.send(());
        });
        wait(&self.gpu)?;
        // A lost device drops the callback: the fault below says so.
        let _ = receiver.await;
        self.gpu.fault()
    }

    /// The commands of a step, cut into `num_submits` parts of about as many dispatches.
    fn encode(&self, step: &Step, num_submits: usize, reads: &[(BufferId, usize)]) -> Vec<wgpu::CommandBuffer> {
        let grids = self.compiled.iter().zip(self.recording.dispatches()).filter_map(|(compiled, dispatch)| {
            let grid = dispatch.kernel.grid(step);
            (compiled.class.runs(step) && grid.iter().all(|&size| size > 0)).then_some((compiled, grid))
        });
        let active: Vec<_> = grids.collect();
        let num_submits = if self.gpu.tuning().cuts_steps { num_submits.max(1) } else { 1 };
        let part_size = active.len().div_ceil(num_submits).max(1);
        // Even nothing is read back.
        let num_parts = active.len().div_ceil(part_size).max(1);
        let mut commands = Vec::with_capacity(num_parts);
        for index in 0..num_parts {
            let part = active.iter().skip(index * part_size).take(part_size);
            let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let (is_first, is_last) = (index == 0, index + 1 == num_parts);
            let timestamp_writes = self.stopwatch.as_ref().and_then(|watch| watch.writes(is_first, is_last));
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
            for &(compiled, [x, y, z]) in part {
                pass.set_pipeline(&compiled.pipeline);
                pass.set_bind_group(0, &compiled.bind_group, &[]);
                pass.dispatch_workgroups(x, y, z);
            }
            drop(pass);
            if is_last {
                self.encode_reads(&mut encoder, reads);
            }
            commands.push(encoder.finish());
        }
        commands
    }

    /// Copies what is to be read back, behind the timestamps.
    fn encode_reads(&self, encoder: &mut wgpu::CommandEncoder, reads: &[(BufferId, usize)]) {
        let mut offset = self.stopwatch_bytes();
        if let Some(watch) = &self.stopwatch {
            watch.resolve(encoder, &self.readback);
        }
        for &(id, num_words) in reads {
            let bytes = 4 * num_words as u64;
            encoder.copy_buffer_to_buffer(&self.buffers[id.0], 0, &self.readback, offset, bytes);
            offset += bytes;
        }
    }

    fn stopwatch_bytes(&self) -> u64 {
        if self.stopwatch.is_some() { STOPWATCH_BYTES } else { 0 }
    }
}

impl Executor for GpuExecutor {
    fn recording(&self) -> &Recording {
        &self.recording
    }

    fn write(&mut self, buffer: BufferId, offset_words: usize, words: &[u32]) {
        if words.is_empty() {
            return;
        }
        let start = Instant::now();
        self.gpu.queue.write_buffer(&self.buffers[buffer.0], 4 * offset_words as u64, bytemuck::cast_slice(words));
        let write_ms = elapsed_ms(start);
        self.write_ms += write_ms;
        self.stats.encode_ms += write_ms;
    }

    async fn run(&mut self, step: &Step, num_submits: usize, reads: &[(BufferId, usize)]) -> Result<Vec<Vec<u32>>> {
        self.gpu.fault()?;
        let num_words = reads.iter().map(|&(_, num_words)| num_words).sum::<usize>();
        let read_bytes = self.stopwatch_bytes() + 4 * num_words as u64;
        if read_bytes > self.readback.size() {
            // Only the first step that asks for logits comes here.
            self.readback = create_readback(&self.gpu, read_bytes);
        }
        let start = Instant::now();
        self.gpu.queue.write_buffer(&self.step, 0, bytemuck::bytes_of(step));
        for commands in self.encode(step, num_submits, reads) {
            self.gpu.queue.submit([commands]);
        }
        let encode_ms = elapsed_ms(start);
        self.encode_ms = Some(std::mem::take(&mut self.write_ms) + encode_ms);
        self.stats.encode_ms += encode_ms;
        self.stats.num_steps += 1;
        let words = if read_bytes > 0 {
            map(&self.gpu, &self.readback, read_bytes).await?
        } else {
            // Not waiting would put all chunks of a long prompt on the queue, where nothing can be cancelled any more.
            self.done().await?;
            Vec::new()
        };
        self.gpu.fault()?;
        let (times, mut rest) = words.split_at(words.len() - num_words);
        if let Some(watch) = &mut self.stopwatch {
            watch.read(times);
        }
        let split = reads.iter().map(|&(_, num_words)| {
            let (head, tail) = rest.split_at(num_words);
            rest = tail;
            head.to_vec()
        });
        Ok(split.collect())
    }

    async fn read(&mut self, ranges: &[(BufferId, usize, usize)]) -> Result<Vec<u32>> {
        self.gpu.fault()?;
        let bytes = ranges.iter().map(|&(_, _, num_words)| 4 * num_words as u64).sum();
        if bytes == 0 {
            return Ok(Vec::new());
        }
        // Of its own, because reading is rare and the steps' buffer small.
        let staging = create_readback(&self.gpu, bytes);
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut end = 0;
        for &(id, offset_words, num_words) in ranges {
            let (from, size) = (4 * offset_words as u64, 4 * num_words as u64);
            encoder.copy_buffer_to_buffer(&self.buffers[id.0], from, &staging, end, size);
            end += size;
        }
        self.gpu.queue.submit([encoder.finish()]);
        let words = map(&self.gpu, &staging, bytes).await;
        staging.destroy();
        self.gpu.fault()?;
        words
    }

    fn device_ms(&self) -> Option<f64> {
        self.stopwatch.as_ref().and_then(Stopwatch::last_ms)
    }

    fn encode_ms(&self) -> Option<f64> {
        self.encode_ms
    }

    async fn flush(&mut self) -> Result<()> {
        // Writes travel with a submission.
        self.gpu.queue.submit([]);
        self.write_ms = 0.0;
        self.done().await
    }
}

fn elapsed_ms(start: Instant) -> f64 {
    1e3 * start.elapsed().as_secs_f64()
}

/// Lets native callbacks run; in a browser the event loop does.
fn wait(gpu: &Gpu) -> Result<()> {
    let polled = gpu.device.poll(wgpu::PollType::wait_indefinitely());
    polled.map(drop).map_err(|error| Error::DeviceLost(format!("waiting for the GPU failed: {error}")))
}

fn create(gpu: &Gpu, label: &str, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    gpu.device.create_buffer(&wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false })
}

fn create_readback(gpu: &Gpu, bytes: u64) -> wgpu::Buffer {
    create(gpu, "readback", bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST)
}

/// Creates one buffer inside error scopes: a buffer that does not fit is an error here, not gibberish later.
async fn allocate(gpu: &Gpu, info: &BufferInfo) -> Result<wgpu::Buffer> {
    let asked = 4 * info.size_words as u64;
    let limits = gpu.limits();
    let allowed = limits.buffer_bytes.min(limits.binding_bytes);
    if asked > allowed {
        return Err(Error::OutOfMemory { what: info.label.clone(), asked, allowed });
    }
    let memory = gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
    let validation = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let buffer = create(gpu, &info.label, asked, usage);
    let (validation, memory) = (validation.pop().await, memory.pop().await);
    match validation.or(memory) {
        None => Ok(buffer),
        Some(_) => Err(Error::OutOfMemory { what: info.label.clone(), asked, allowed: 0 }),
    }
}

async fn map(gpu: &Gpu, buffer: &wgpu::Buffer, bytes: u64) -> Result<Vec<u32>> {
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let (sender, receiver) = futures_channel::oneshot::channel();
    buffer.map_async(wgpu::MapMode::Read, 0..bytes, move |result| {
        // As above.
        let _ = sender.send(result);
    });
    wait(gpu)?;
    // Some browsers fail the read before they say that the device is gone: the failure is remembered as that.
    let lost = |why: String| {
        gpu.note_loss(format!("reading from it failed: {why}"));
        gpu.fault().err().unwrap_or(Error::DeviceLost(why))
    };
    match receiver.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(lost(error.to_string())),
        Err(_) => return Err(lost("the request was dropped".into())),
    }
    let words = {
        let view = buffer.get_mapped_range(0..bytes).map_err(|error| lost(error.to_string()))?;
        bytemuck::pod_collect_to_vec(&view)
    };
    buffer.unmap();
    Ok(words)
}

/// Compiles each distinct pipeline once.
struct Compiler<'a> {
    gpu: &'a Gpu,
    step: &'a wgpu::Buffer,
    modules: HashMap<String, wgpu::ShaderModule>,
    layouts: HashMap<&'static [Access], wgpu::BindGroupLayout>,
    pipelines: HashMap<(String, String), wgpu::ComputePipeline>,
}

impl<'a> Compiler<'a> {
    fn new(gpu: &'a Gpu, step: &'a wgpu::Buffer) -> Self {
        Self { gpu, step, modules: HashMap::new(), layouts: HashMap::new(), pipelines: HashMap::new() }
    }

    async fn compile_all(mut self, recording: &Recording, buffers: &[wgpu::Buffer]) -> Result<Vec<Compiled>> {
        let mut compiled = Vec::with_capacity(recording.dispatches().len());
        for dispatch in recording.dispatches() {
            let pipeline = self.pipeline(dispatch).await?;
            let bind_group = self.bind_group(dispatch, buffers);
            compiled.push(Compiled { pipeline, bind_group, class: dispatch.class });
        }
        Ok(compiled)
    }

    async fn pipeline(&mut self, dispatch: &Dispatch) -> Result<wgpu::ComputePipeline> {
        let shader = dispatch.kernel.shader();
        let source = shader.compose(cfg!(target_arch = "wasm32"));
        let constants = dispatch.kernel.constants();
        let key = (source, format!("{constants:?}"));
        if let Some(pipeline) = self.pipelines.get(&key) {
            return Ok(pipeline.clone());
        }
        let device = &self.gpu.device;
        let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let module = self.modules.entry(key.0.clone()).or_insert_with(|| {
            let source = wgpu::ShaderSource::Wgsl(key.0.as_str().into());
            device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(shader.stem), source })
        });
        let layout =
            self.layouts.entry(dispatch.kernel.access()).or_insert_with_key(|access| bind_group_layout(device, access));
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(shader.stem),
            bind_group_layouts: &[Some(layout)],
            immediate_size: 0,
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(shader.stem),
            layout: Some(&layout),
            module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &constants,
                zero_initialize_workgroup_memory: false,
            },
            cache: None,
        });
        if let Some(error) = scope.pop().await {
            return Err(Error::WrongResult(format!(
                "the kernel {} does not compile on {}: {error}",
                shader.stem,
                self.gpu.name()
            )));
        }
        self.pipelines.insert(key, pipeline.clone());
        Ok(pipeline)
    }

    fn bind_group(&self, dispatch: &Dispatch, buffers: &[wgpu::Buffer]) -> wgpu::BindGroup {
        let bound = dispatch.buffers.iter().map(|id| &buffers[id.0]).chain([self.step]);
        let entries: Vec<_> = (0..)
            .zip(bound)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(dispatch.kernel.shader().stem),
            layout: &self.layouts[dispatch.kernel.access()],
            entries: &entries,
        })
    }
}

fn bind_group_layout(device: &wgpu::Device, access: &[Access]) -> wgpu::BindGroupLayout {
    let storage = access.iter().map(|a| wgpu::BufferBindingType::Storage { read_only: *a == Access::Read });
    let entries: Vec<_> = (0..)
        .zip(storage.chain([wgpu::BufferBindingType::Uniform]))
        .map(|(binding, ty)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        })
        .collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries })
}
