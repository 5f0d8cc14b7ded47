//! Small cases of every kernel with random inputs: tests run all of them on every adapter, and the probe runs the
//! smallest ones on the visitor's device at load. What the twin computes is right by definition.

mod attention;
mod projection;
mod sampling;

use std::rc::Rc;

pub use attention::{AttentionShape, attention, copy_rows, store_of_values_beyond_f16};
pub use projection::{embed, fused_projection, norms, projection, projection_in_bytes, projection_in_f16, rounded};
pub use sampling::{log_probabilities, pool_rows, sample};

use super::{TOKEN_WORDS, random::Random, word};
use crate::compute::{BufferId, CpuExecutor, Executor, Gpu, GpuExecutor, Purpose, Recording, Step};
use crate::quant::Format;
use crate::{Error, Result};

/// A buffer and what is written into it.
type Input = (BufferId, Vec<u32>);

/// A recording with its inputs, and where to look at what it computes.
#[derive(Debug)]
pub struct Case {
    /// What is computed, with its numbers.
    pub name: String,
    recording: Recording,
    inputs: Vec<Input>,
    step: Step,
    outputs: Vec<BufferId>,
    is_exact: bool,
    tolerance: f32,
}

/// Builds a [`Case`].
struct Builder {
    random: Random,
    recording: Recording,
    inputs: Vec<Input>,
}

impl Builder {
    fn new() -> Self {
        Self { random: Random::new(), recording: Recording::new(), inputs: Vec::new() }
    }

    fn input(&mut self, label: &str, words: Vec<u32>) -> BufferId {
        let id = self.recording.buffer(label, words.len(), Purpose::Scratch);
        self.inputs.push((id, words));
        id
    }

    fn floats(&mut self, label: &str, num: usize) -> BufferId {
        let words = self.random.floats(num);
        self.input(label, words)
    }

    /// `t` tokens of two sequences that alternate, with slots in a shuffled pool of `num_blocks` blocks.
    fn tokens(&mut self, t: usize, first_position: usize, vocab: usize) -> Vec<u32> {
        let mut words = Vec::with_capacity(t * TOKEN_WORDS);
        for i in 0..t {
            let (position, sequence) = (first_position + i / 2, i % 2);
            let slot = table_entry(sequence, position / 16) * 16 + word(position % 16);
            let id = self.random.bits() % word(vocab);
            words.extend([id, word(position), word(sequence), slot, slot]);
        }
        words
    }

    fn finish(self, name: String, step: Step, outputs: Vec<BufferId>, is_exact: bool) -> Case {
        let Self { recording, inputs, .. } = self;
        Case { name, recording, inputs, step, outputs, is_exact, tolerance: TOLERANCE }
    }
}

/// A row of random weights as a GGUF file stores it, none of them larger than one.
pub fn random_row(format: Format, num_elements: usize) -> Vec<u8> {
    Random::new().gguf_row(format, num_elements)
}

/// Blocks of two sequences, interleaved and in descending order: nothing is where a contiguous cache would have it.
fn table_entry(sequence: usize, block: usize) -> u32 {
    word((NUM_BLOCKS - 1 - block) * 2 + sequence)
}

/// Blocks of a sequence.
const NUM_BLOCKS: usize = 8;

fn step(num_tokens: usize) -> Step {
    Step { num_tokens: word(num_tokens), num_rows: word(num_tokens), ..Step::default() }
}

impl Case {
    /// What is run.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Whether only devices with f16 can run it.
    pub fn needs_f16(&self) -> bool {
        self.recording.dispatches().iter().any(|dispatch| dispatch.kernel.shader().f16)
    }

    /// Runs the case on the device and on the CPU and compares.
    ///
    /// # Errors
    /// `wrong_result` with the first value that differs, or what the device reports.
    pub async fn check(mut self, gpu: &Gpu) -> Result<()> {
        // What does not run is not compiled either: on some devices that takes most of the time.
        self.recording.keep(|class| class.runs(&self.step));
        let recording = Rc::new(self.recording);
        let run = (self.inputs.as_slice(), &self.step, self.outputs.as_slice());
        let expected = execute(&mut CpuExecutor::new(recording.clone()), run).await?;
        let actual = execute(&mut GpuExecutor::new(gpu.clone(), recording).await?, run).await?;
        for (output, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            for (at, (&actual, &expected)) in actual.iter().zip(expected).enumerate() {
                let (a, e) = (f32::from_bits(actual), f32::from_bits(expected));
                let is_close = (a - e).abs() <= self.tolerance * (1.0 + e.abs()) || a.is_nan() && e.is_nan();
                if actual != expected && (self.is_exact || !is_close) {
                    return Err(Error::WrongResult(format!(
                        "{} on {}: output {output} word {at} is {a} ({actual}), expected {e} ({expected})",
                        self.name,
                        gpu.name()
                    )));
                }
            }
        }
        Ok(())
    }
}

/// How far a device may be from the twin, absolutely and relatively: sums are added up in another order.
const TOLERANCE: f32 = 5e-5;

async fn execute(
    executor: &mut impl Executor,
    (inputs, step, outputs): (&[Input], &Step, &[BufferId]),
) -> Result<Vec<Vec<u32>>> {
    for (buffer, words) in inputs {
        executor.write(*buffer, 0, words);
    }
    let reads: Vec<_> = outputs.iter().map(|&id| (id, executor.recording().info(id).size_words)).collect();
    executor.run(step, 1, &reads).await
}
