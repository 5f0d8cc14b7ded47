//! Who replays a recording.

use super::recording::{BufferId, Recording, Step};
use crate::Result;

/// Owns the memory of a recording and replays it.
pub trait Executor {
    /// What it replays.
    fn recording(&self) -> &Recording;
    /// Writes words into a buffer, before anything that is run later.
    fn write(&mut self, buffer: BufferId, offset_words: usize, words: &[u32]);
    /// Replays the recording for a step of these sizes, in `num_submits` submissions, then reads the first words of each
    /// buffer in `reads`.
    ///
    /// # Errors
    /// `device_lost`, `out_of_memory`: nothing that was computed may be used then.
    fn run(
        &mut self,
        step: &Step,
        num_submits: usize,
        reads: &[(BufferId, usize)],
    ) -> impl Future<Output = Result<Vec<Vec<u32>>>>;
    /// Reads words, each range from an offset in a buffer on, one after the other, after everything that was written or run
    /// before. They are held in memory twice: ask for a few MiB at a time.
    ///
    /// # Errors
    /// As [`Executor::run`].
    fn read(&mut self, ranges: &[(BufferId, usize, usize)]) -> impl Future<Output = Result<Vec<u32>>>;
    /// Milliseconds that the device needed for the last run, where it can tell.
    fn device_ms(&self) -> Option<f64> {
        None
    }
    /// Milliseconds that the CPU needed for the last run: writing what changed, encoding and submitting. `None` where the
    /// CPU also computes.
    fn encode_ms(&self) -> Option<f64> {
        None
    }
    /// Waits until everything written has reached the device, so that staging memory does not pile up.
    ///
    /// # Errors
    /// As [`Executor::run`].
    fn flush(&mut self) -> impl Future<Output = Result<()>>;
}
