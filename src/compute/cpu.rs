//! Replays a recording with the kernels' CPU twins. Slow and plain: it defines what the GPU has to compute.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;

use super::executor::{Executor, nothing_in_flight};
use super::recording::{BufferId, Recording, Step};
use crate::Result;

/// The buffers of one dispatch, in binding order.
#[derive(Debug)]
pub struct Bindings<'a> {
    buffers: Vec<&'a RefCell<Vec<u32>>>,
}

impl Bindings<'_> {
    /// Binding `index` as words.
    pub fn u32(&self, index: usize) -> Ref<'_, [u32]> {
        Ref::map(self.buffers[index].borrow(), Vec::as_slice)
    }

    /// Binding `index` as words, to write.
    pub fn u32_mut(&self, index: usize) -> RefMut<'_, [u32]> {
        RefMut::map(self.buffers[index].borrow_mut(), Vec::as_mut_slice)
    }

    /// Binding `index` as floats.
    pub fn f32(&self, index: usize) -> Ref<'_, [f32]> {
        Ref::map(self.u32(index), bytemuck::cast_slice)
    }

    /// Binding `index` as floats, to write.
    pub fn f32_mut(&self, index: usize) -> RefMut<'_, [f32]> {
        RefMut::map(self.u32_mut(index), bytemuck::cast_slice_mut)
    }
}

/// Owns a recording and the memory of its buffers.
#[derive(Debug)]
pub struct CpuExecutor {
    recording: Rc<Recording>,
    memory: Vec<RefCell<Vec<u32>>>,
    /// What was read after each step in flight: a step is computed when it is started.
    in_flight: VecDeque<Vec<Vec<u32>>>,
}

impl CpuExecutor {
    /// Allocates the recording's buffers, zeroed.
    pub fn new(recording: Rc<Recording>) -> Self {
        let memory = recording.buffers().iter().map(|b| RefCell::new(vec![0; b.size_words])).collect();
        Self { recording, memory, in_flight: VecDeque::new() }
    }
}

impl Executor for CpuExecutor {
    fn recording(&self) -> &Recording {
        &self.recording
    }

    fn write(&mut self, buffer: BufferId, offset_words: usize, words: &[u32]) {
        self.memory[buffer.0].get_mut()[offset_words..offset_words + words.len()].copy_from_slice(words);
    }

    fn start(&mut self, num_begun: usize, step: &Step, _: usize, reads: &[(BufferId, usize)]) -> Result<()> {
        for dispatch in self.recording.dispatches()[num_begun..].iter().filter(|d| d.class.runs(step)) {
            let buffers = dispatch.buffers.iter().map(|id| &self.memory[id.0]).collect();
            dispatch.kernel.twin(step, &Bindings { buffers });
        }
        let read = reads.iter().map(|&(id, num_words)| self.memory[id.0].borrow()[..num_words].to_vec());
        self.in_flight.push_back(read.collect());
        Ok(())
    }

    async fn finish(&mut self) -> Result<Vec<Vec<u32>>> {
        self.in_flight.pop_front().ok_or_else(nothing_in_flight)
    }

    fn num_in_flight(&self) -> usize {
        self.in_flight.len()
    }

    async fn read(&mut self, ranges: &[(BufferId, usize, usize)]) -> Result<Vec<u32>> {
        let range =
            |&(id, offset, len): &(BufferId, usize, usize)| self.memory[id.0].borrow()[offset..][..len].to_vec();
        Ok(ranges.iter().flat_map(range).collect())
    }

    async fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
