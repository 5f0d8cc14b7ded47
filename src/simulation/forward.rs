//! A forward pass that takes time and computes nothing.

use std::cell::Cell;
use std::rc::Rc;

use super::cost::CostModel;
use super::run::Clock;
use crate::Result;
use crate::gguf::{Array, Metadata, Value};
use crate::model::{Batch, BatchLimits, Forward};
use crate::text::Tokenizer;

/// A time that only moves when something takes time. Copies share it.
#[derive(Debug, Clone, Default)]
pub struct VirtualClock(Rc<Cell<f64>>);

impl VirtualClock {
    fn advance(&self, ms: f64) {
        self.0.set(self.0.get() + ms);
    }
}

impl Clock for VirtualClock {
    fn now_ms(&self) -> f64 {
        self.0.get()
    }

    fn wait_until(&self, ms: f64) {
        self.0.set(self.0.get().max(ms));
    }
}

/// Takes what the cost model says, and answers every row with the same id.
#[derive(Debug)]
pub struct SimForward {
    cost: CostModel,
    limits: BatchLimits,
    clock: VirtualClock,
    /// What the step that was submitted takes, and its rows.
    submitted: Option<(f64, usize)>,
}

/// What is generated: a letter, so that text comes out at once.
const ID: u32 = 97;
/// Bytes and the end of generation.
const VOCAB_SIZE: usize = 257;

impl SimForward {
    /// Ids that prompts may consist of: printable bytes.
    pub const IDS: std::ops::Range<u32> = 32..127;

    /// A model that takes batches of `limits` and whose steps move `clock`.
    pub fn new(cost: CostModel, limits: BatchLimits, clock: VirtualClock) -> Self {
        Self { cost, limits, clock, submitted: None }
    }
}

impl Forward for SimForward {
    fn limits(&self) -> BatchLimits {
        self.limits
    }

    fn submit(&mut self, batch: &Batch) -> Result<()> {
        self.limits.check(batch)?;
        self.submitted = Some((self.cost.step_ms(batch), batch.rows.len()));
        Ok(())
    }

    async fn collect(&mut self) -> Result<Vec<u32>> {
        let (ms, num_rows) = self.submitted.take().unwrap_or_default();
        self.clock.advance(ms);
        Ok(vec![ID; num_rows])
    }
}

/// The tokenizer of a model that only exists as numbers: one token per byte.
///
/// # Errors
/// None that a caller could cause.
pub fn tokenizer() -> Result<Rc<Tokenizer>> {
    let byte = |byte: usize| format!("<0x{byte:02X}>");
    let tokens = (0..VOCAB_SIZE - 1).map(byte).chain(["</s>".to_owned()]).collect();
    // GGUF's kinds: 6 is a byte, 3 a control token.
    let kinds = (0..VOCAB_SIZE).map(|id| if id + 1 < VOCAB_SIZE { 6 } else { 3 }).collect();
    let metadata = Metadata::new([
        ("tokenizer.ggml.model".to_owned(), Value::String("llama".to_owned())),
        ("tokenizer.ggml.tokens".to_owned(), Value::Array(Array::Strings(tokens))),
        ("tokenizer.ggml.token_type".to_owned(), Value::Array(Array::I32(kinds))),
        ("tokenizer.ggml.scores".to_owned(), Value::Array(Array::F32(vec![0.0; VOCAB_SIZE]))),
        ("tokenizer.ggml.eos_token_id".to_owned(), Value::U32(256)),
        ("tokenizer.ggml.add_bos_token".to_owned(), Value::Bool(false)),
    ])?;
    Ok(Rc::new(Tokenizer::from_metadata(&metadata)?))
}
