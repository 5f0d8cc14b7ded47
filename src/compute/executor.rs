//! Who replays a recording.

use super::recording::{BufferId, Recording, Step};
use crate::{Error, Result};

/// Owns the memory of a recording and replays it.
pub trait Executor {
    /// What it replays.
    fn recording(&self) -> &Recording;
    /// Writes words into a buffer, before anything that is run later.
    fn write(&mut self, buffer: BufferId, offset_words: usize, words: &[u32]);
    /// Hands the device those of a step's dispatches that lie before [`Recording::num_before_draw`], so that it computes while
    /// the rest is prepared; returns how many dispatches of the recording were handed over, none where nobody else computes.
    ///
    /// # Errors
    /// As [`Executor::start`].
    fn begin(&mut self, _step: &Step, _num_submits: usize) -> Result<usize> {
        Ok(0)
    }
    /// Hands the device the dispatches of a step of these sizes behind the first `num_begun`, in `num_submits` submissions, and
    /// what is to be read afterwards: the first words of each buffer in `reads`. Never waits; [`Executor::finish`] does.
    /// Everything is done in the order in which it was handed over, writes included, so several steps may be in flight.
    ///
    /// # Errors
    /// `device_lost`, `out_of_memory`: the step is not in flight then.
    fn start(&mut self, num_begun: usize, step: &Step, num_submits: usize, reads: &[(BufferId, usize)]) -> Result<()>;
    /// Waits for the oldest step in flight and returns what was to be read. If it is dropped, the step stays in flight;
    /// with its end, good or bad, it is not any more.
    ///
    /// # Errors
    /// `device_lost`, `out_of_memory`: nothing that was computed may be used then.
    fn finish(&mut self) -> impl Future<Output = Result<Vec<Vec<u32>>>>;
    /// Steps that were started and not finished.
    fn num_in_flight(&self) -> usize;
    /// Starts a step and finishes it. What was in flight before is waited for and thrown away.
    ///
    /// # Errors
    /// As [`Executor::start`] and [`Executor::finish`].
    fn run(
        &mut self,
        step: &Step,
        num_submits: usize,
        reads: &[(BufferId, usize)],
    ) -> impl Future<Output = Result<Vec<Vec<u32>>>> {
        let started = self.start(0, step, num_submits, reads);
        async move {
            started?;
            while self.num_in_flight() > 1 {
                self.finish().await?;
            }
            self.finish().await
        }
    }
    /// Reads words, each range from an offset in a buffer on, one after the other, after everything that was written or run
    /// before. They are held in memory twice: ask for a few MiB at a time.
    ///
    /// # Errors
    /// As [`Executor::finish`].
    fn read(&mut self, ranges: &[(BufferId, usize, usize)]) -> impl Future<Output = Result<Vec<u32>>>;
    /// Milliseconds that the device needed for the step that was finished last, where it can tell.
    fn device_ms(&self) -> Option<f64> {
        None
    }
    /// Milliseconds that the CPU needed to start that step: writing what changed, encoding and submitting. `None` where the
    /// CPU also computes.
    fn encode_ms(&self) -> Option<f64> {
        None
    }
    /// Waits until everything written has reached the device, so that staging memory does not pile up.
    ///
    /// # Errors
    /// As [`Executor::finish`].
    fn flush(&mut self) -> impl Future<Output = Result<()>>;
}

/// The error of waiting for a step when none is in flight.
pub(super) fn nothing_in_flight() -> Error {
    Error::WrongResult("no step is in flight".into())
}
