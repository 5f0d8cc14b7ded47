//! Replays a recording on a GPU. Buffers, pipelines and bind groups are made at load; a step writes small buffers,
//! submits once (or a few times, to let others in between) and maps one buffer. Several steps may be in flight: the queue
//! keeps everything in order, so each needs nothing of its own but the buffer that it is read from.

mod profile;

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use web_time::Instant;

use super::compiler::{Compiled, Compiler};
use super::executor::{Executor, nothing_in_flight};
use super::gpu::Gpu;
use super::readback::{Readback, create_readback, wait_for};
use super::recording::{BufferId, BufferInfo, Recording, Step};
use super::stopwatch::{STOPWATCH_BYTES, Stopwatch};
use crate::{Error, Result};

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
    /// Steps that were started and not finished, in order.
    in_flight: VecDeque<Flight>,
    /// Buffers to read from that no step in flight uses.
    readbacks: Vec<wgpu::Buffer>,
    stopwatch: Option<Stopwatch>,
    stats: ExecutorStats,
    /// Time spent on writes since the last start.
    write_ms: f64,
    /// Of the step that was finished last.
    encode_ms: Option<f64>,
}

/// A step in flight.
#[derive(Debug)]
struct Flight {
    readback: Readback,
    /// Words of each buffer that is read, behind the timestamps.
    reads: Vec<usize>,
    /// What it cost to start it, the writes before it included.
    encode_ms: f64,
}

/// The first words of each buffer that are to be read, and where they are to be copied.
type Reading<'a> = (&'a [(BufferId, usize)], &'a wgpu::Buffer);

/// Bytes of a buffer to read ids from.
const READBACK_BYTES: u64 = 256;

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
        let compiled = Compiler::new(&gpu, &step).compile_all(&recording, &buffers).await?;
        gpu.fault()?;
        let stopwatch = Stopwatch::new(&gpu.device, &gpu.queue);
        let stats = ExecutorStats::default();
        let (in_flight, readbacks) = (VecDeque::new(), Vec::new());
        let (write_ms, encode_ms) = (0.0, None);
        Ok(Self {
            gpu,
            recording,
            buffers,
            compiled,
            step,
            in_flight,
            readbacks,
            stopwatch,
            stats,
            write_ms,
            encode_ms,
        })
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
        wait_for(&self.gpu, None)?;
        // A lost device drops the callback: the fault below says so.
        let _ = receiver.await;
        self.gpu.fault()
    }

    /// The commands of a step's dispatches in `range`, cut into `num_submits` parts of about as many dispatches. The last ones
    /// of the recording end with what is to be read.
    fn encode(
        &self,
        range: Range<usize>,
        step: &Step,
        num_submits: usize,
        reading: Option<Reading<'_>>,
    ) -> Vec<wgpu::CommandBuffer> {
        let begins = range.start == 0;
        let all = self.compiled.iter().zip(self.recording.dispatches());
        let grids = all.skip(range.start).take(range.len()).filter_map(|(compiled, dispatch)| {
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
            let (is_first, is_last) = (begins && index == 0, index + 1 == num_parts && reading.is_some());
            let timestamp_writes = self.stopwatch.as_ref().and_then(|watch| watch.writes(is_first, is_last));
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
            for &(compiled, [x, y, z]) in part {
                pass.set_pipeline(&compiled.pipeline);
                pass.set_bind_group(0, &compiled.bind_group, &[]);
                pass.dispatch_workgroups(x, y, z);
            }
            drop(pass);
            if let Some((reads, readback)) = reading.filter(|_| is_last) {
                self.encode_reads(&mut encoder, reads, readback);
            }
            commands.push(encoder.finish());
        }
        commands
    }

    /// Copies what is to be read back, behind the timestamps.
    fn encode_reads(&self, encoder: &mut wgpu::CommandEncoder, reads: &[(BufferId, usize)], readback: &wgpu::Buffer) {
        let mut offset = self.stopwatch_bytes();
        if let Some(watch) = &self.stopwatch {
            watch.resolve(encoder, readback);
        }
        for &(id, num_words) in reads {
            let bytes = 4 * num_words as u64;
            encoder.copy_buffer_to_buffer(&self.buffers[id.0], 0, readback, offset, bytes);
            offset += bytes;
        }
    }

    /// A buffer that so much can be read from: one that is free, or a new one in its place.
    fn free_readback(&mut self, num_bytes: u64) -> wgpu::Buffer {
        let fitting = self.readbacks.iter().position(|buffer| buffer.size() >= num_bytes);
        // Only the first step that asks for logits finds them all too small.
        match fitting.map(|index| self.readbacks.swap_remove(index)) {
            Some(buffer) => buffer,
            None => {
                self.readbacks.pop();
                create_readback(&self.gpu, num_bytes.max(READBACK_BYTES))
            }
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

    fn begin(&mut self, step: &Step, num_submits: usize) -> Result<usize> {
        self.gpu.fault()?;
        let num_begun = self.recording.num_before_draw();
        let start = Instant::now();
        self.gpu.queue.write_buffer(&self.step, 0, bytemuck::bytes_of(step));
        for commands in self.encode(0..num_begun, step, num_submits, None) {
            self.gpu.queue.submit([commands]);
        }
        // Counted with the start that follows, and not what is done in between.
        let begin_ms = elapsed_ms(start);
        self.write_ms += begin_ms;
        self.stats.encode_ms += begin_ms;
        Ok(num_begun)
    }

    fn start(&mut self, num_begun: usize, step: &Step, num_submits: usize, reads: &[(BufferId, usize)]) -> Result<()> {
        self.gpu.fault()?;
        // What is left of a step that has begun is little.
        let num_submits = if num_begun == 0 { num_submits } else { 1 };
        let num_words = reads.iter().map(|&(_, num_words)| num_words).sum::<usize>();
        let read_bytes = self.stopwatch_bytes() + 4 * num_words as u64;
        let buffer = self.free_readback(read_bytes);
        let start = Instant::now();
        self.gpu.queue.write_buffer(&self.step, 0, bytemuck::bytes_of(step));
        let mut submission = None;
        for commands in self.encode(num_begun..self.compiled.len(), step, num_submits, Some((reads, &buffer))) {
            submission = Some(self.gpu.queue.submit([commands]));
        }
        let submission = submission.unwrap_or_else(|| self.gpu.queue.submit([]));
        let encode_ms = elapsed_ms(start);
        self.stats.encode_ms += encode_ms;
        self.stats.num_steps += 1;
        self.in_flight.push_back(Flight {
            readback: Readback::new(&self.gpu, buffer, read_bytes, submission),
            reads: reads.iter().map(|&(_, num_words)| num_words).collect(),
            encode_ms: std::mem::take(&mut self.write_ms) + encode_ms,
        });
        Ok(())
    }

    async fn finish(&mut self) -> Result<Vec<Vec<u32>>> {
        let Some(flight) = self.in_flight.front_mut() else { return Err(nothing_in_flight()) };
        let waited = match self.gpu.fault() {
            Ok(()) => flight.readback.wait(&self.gpu).await,
            fault => fault,
        };
        let Flight { readback, reads, encode_ms } = self.in_flight.pop_front().ok_or_else(nothing_in_flight)?;
        waited?;
        let (words, buffer) = readback.take(&self.gpu)?;
        self.readbacks.push(buffer);
        self.encode_ms = Some(encode_ms);
        let (times, mut rest) = words.split_at(words.len() - reads.iter().sum::<usize>());
        if let Some(watch) = &mut self.stopwatch {
            watch.read(times);
        }
        let split = reads.into_iter().map(|num_words| {
            let (head, tail) = rest.split_at(num_words);
            rest = tail;
            head.to_vec()
        });
        Ok(split.collect())
    }

    fn num_in_flight(&self) -> usize {
        self.in_flight.len()
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
        let submission = self.gpu.queue.submit([encoder.finish()]);
        Readback::once(&self.gpu, staging, bytes, submission).await
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

fn create(gpu: &Gpu, label: &str, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    gpu.device.create_buffer(&wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false })
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
