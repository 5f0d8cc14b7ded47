//! How long each dispatch of a step takes: every one in a pass of its own, between two timestamps.

use super::{GpuExecutor, create, create_readback};
use crate::Result;
use crate::compute::readback::Readback;
use crate::compute::recording::Step;

/// Timestamps of one query set, at most (WebGPU's limit).
const MAX_TIMESTAMPS: u32 = 4096;

impl GpuExecutor {
    /// Replays the recording for a step of these sizes and tells the milliseconds of each dispatch by its index in the
    /// recording. `None` where the device has no timestamps, or not enough of them. Passes of their own keep dispatches from
    /// overlapping: the sum is more than what a step takes.
    ///
    /// # Errors
    /// As [`crate::compute::Executor::run`].
    pub async fn profile(&mut self, step: &Step) -> Result<Option<Vec<(usize, f64)>>> {
        self.gpu.fault()?;
        let runs = |&(index, grid): &(usize, [u32; 3])| {
            self.compiled[index].class.runs(step) && grid.iter().all(|&size| size > 0)
        };
        let grids = self.recording.dispatches().iter().map(|dispatch| dispatch.kernel.grid(step));
        let active: Vec<_> = grids.enumerate().filter(runs).collect();
        let count = 2 * u32::try_from(active.len()).unwrap_or(u32::MAX / 2);
        let device = &self.gpu.device;
        if !device.features().contains(wgpu::Features::TIMESTAMP_QUERY) || count > MAX_TIMESTAMPS {
            return Ok(None);
        }
        let descriptor = wgpu::QuerySetDescriptor { label: Some("profile"), ty: wgpu::QueryType::Timestamp, count };
        let queries = device.create_query_set(&descriptor);
        let bytes = 8 * u64::from(count);
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let resolved = create(&self.gpu, "profile", bytes, usage);
        let readback = create_readback(&self.gpu, bytes);
        self.gpu.queue.write_buffer(&self.step, 0, bytemuck::bytes_of(step));
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for (first, &(index, [x, y, z])) in (0..).step_by(2).zip(&active) {
            let timestamp_writes = Some(wgpu::ComputePassTimestampWrites {
                query_set: &queries,
                beginning_of_pass_write_index: Some(first),
                end_of_pass_write_index: Some(first + 1),
            });
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
            pass.set_pipeline(&self.compiled[index].pipeline);
            pass.set_bind_group(0, &self.compiled[index].bind_group, &[]);
            pass.dispatch_workgroups(x, y, z);
        }
        encoder.resolve_query_set(&queries, 0..count, &resolved, 0);
        encoder.copy_buffer_to_buffer(&resolved, 0, &readback, 0, bytes);
        let submission = self.gpu.queue.submit([encoder.finish()]);
        let words = Readback::once(&self.gpu, readback, bytes, submission).await?;
        resolved.destroy();
        let period_ms = f64::from(self.gpu.queue.get_timestamp_period()) / 1e6;
        let tick = |pair: &[u32]| u64::from(pair[0]) | u64::from(pair[1]) << 32;
        let ms = |times: &[u32]| tick(&times[2..]).saturating_sub(tick(times)) as f64 * period_ms;
        Ok(Some(active.iter().zip(words.chunks_exact(4)).map(|(&(index, _), times)| (index, ms(times))).collect()))
    }
}
