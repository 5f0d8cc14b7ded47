//! What comes back from the device: one mapped buffer for each step in flight.

use futures_channel::oneshot;

use super::gpu::Gpu;
use crate::{Error, Result};

/// Words on their way back. Waiting for them can be given up and taken up again.
#[derive(Debug)]
pub(super) struct Readback {
    buffer: wgpu::Buffer,
    num_bytes: u64,
    submission: wgpu::SubmissionIndex,
    mapped: Mapped,
}

#[derive(Debug)]
enum Mapped {
    Pending(oneshot::Receiver<Result<(), wgpu::BufferAsyncError>>),
    /// What came of it.
    Done(Result<(), String>),
}

impl Readback {
    /// Begins to read the front of `buffer`, into which `submission` copies. Of no bytes, it only tells when that is done.
    pub(super) fn new(gpu: &Gpu, buffer: wgpu::Buffer, num_bytes: u64, submission: wgpu::SubmissionIndex) -> Self {
        let (sender, receiver) = oneshot::channel();
        // The receiver only goes away when nobody wants the words any more.
        if num_bytes > 0 {
            buffer.map_async(wgpu::MapMode::Read, 0..num_bytes, move |result| drop(sender.send(result)));
        } else {
            gpu.queue.on_submitted_work_done(move || drop(sender.send(Ok(()))));
        }
        Self { buffer, num_bytes, submission, mapped: Mapped::Pending(receiver) }
    }

    /// Reads the front of `buffer`, which is destroyed then.
    ///
    /// # Errors
    /// `device_lost`.
    pub(super) async fn once(
        gpu: &Gpu,
        buffer: wgpu::Buffer,
        num_bytes: u64,
        submission: wgpu::SubmissionIndex,
    ) -> Result<Vec<u32>> {
        let mut readback = Self::new(gpu, buffer, num_bytes, submission);
        readback.wait(gpu).await?;
        let (words, buffer) = readback.take(gpu)?;
        buffer.destroy();
        gpu.fault()?;
        Ok(words)
    }

    /// Waits until the words are there, or until it is known why they will not come.
    pub(super) async fn wait(&mut self, gpu: &Gpu) -> Result<()> {
        // What came of it is kept, because a channel tells only once.
        if let Mapped::Pending(receiver) = &mut self.mapped {
            wait_for(gpu, Some(self.submission.clone()))?;
            self.mapped = Mapped::Done(match receiver.await {
                Ok(result) => result.map_err(|error| error.to_string()),
                Err(_) => Err("the request was dropped".into()),
            });
        }
        match &self.mapped {
            Mapped::Done(Err(why)) => Err(lost(gpu, why)),
            _ => gpu.fault(),
        }
    }

    /// The words, after [`Readback::wait`], and the buffer, which may be used again.
    pub(super) fn take(self, gpu: &Gpu) -> Result<(Vec<u32>, wgpu::Buffer)> {
        if self.num_bytes == 0 {
            return Ok((Vec::new(), self.buffer));
        }
        let words = {
            let view = self.buffer.get_mapped_range(0..self.num_bytes);
            bytemuck::pod_collect_to_vec(&view.map_err(|error| lost(gpu, &error.to_string()))?)
        };
        self.buffer.unmap();
        Ok((words, self.buffer))
    }
}

/// Some browsers fail a read before they say that the device is gone: the failure is remembered as that.
fn lost(gpu: &Gpu, why: &str) -> Error {
    gpu.note_loss(format!("reading from it failed: {why}"));
    gpu.fault().err().unwrap_or_else(|| Error::DeviceLost(why.to_owned()))
}

/// Lets native callbacks run, those of a submission or of all; in a browser the event loop does.
pub(super) fn wait_for(gpu: &Gpu, submission_index: Option<wgpu::SubmissionIndex>) -> Result<()> {
    let polled = gpu.device.poll(wgpu::PollType::Wait { submission_index, timeout: None });
    polled.map(drop).map_err(|error| Error::DeviceLost(format!("waiting for the GPU failed: {error}")))
}

/// A buffer that can be read.
pub(super) fn create_readback(gpu: &Gpu, size: u64) -> wgpu::Buffer {
    gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("readback"),
        size,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}
