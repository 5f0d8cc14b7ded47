//! Small cases of every kernel with random inputs: tests run all of them on every adapter, and the probe runs the
//! smallest ones on the visitor's device at load. What the twin computes is right by definition.

use std::rc::Rc;

use half::f16;

use super::{
    Attention, CopyRows, EDIT_WORDS, EditLogits, Embed, Epilogue, GatherRows, KvFormat, Projection, RmsNorm,
    RmsNormAdd, RopeStore, SAMPLING_WORDS, Sample, TOKEN_WORDS, random::Random, word,
};
use crate::compute::{
    BufferId, CpuExecutor, Executor, Gpu, GpuExecutor, Purpose, Recording, RowClass, Rows, Step, Tuning,
};
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
        Case { name, recording: self.recording, inputs: self.inputs, step, outputs, is_exact }
    }
}

/// Blocks of two sequences, interleaved and in descending order: nothing is where a contiguous cache would have it.
fn table_entry(sequence: usize, block: usize) -> u32 {
    word((TABLE_STRIDE - 1 - block) * 2 + sequence)
}

const TABLE_STRIDE: usize = 8;

fn step(num_tokens: usize) -> Step {
    Step { num_tokens: word(num_tokens), num_rows: word(num_tokens), num_edits: 0, num_copies: 0 }
}

/// A projection of `t` rows in every way that the tuning offers for that many.
pub fn projection(tuning: &Tuning, format: Format, [t, n, k]: [usize; 3], epilogue: Epilogue) -> Case {
    let mut b = Builder::new();
    let num_rows = n * if epilogue.is_gated() { 2 } else { 1 };
    let weights = b.random.weights(format, num_rows, k);
    let weights = b.input("weights", weights);
    let (x, y) = (b.floats("x", t * k), b.floats("y", t * (n + 3)));
    let p = Projection { format, k, n, epilogue, rows: Rows::Sampled, out_stride: n + 3, out_offset: 2 };
    p.record(&mut b.recording, tuning, weights, x, y);
    b.finish(format!("projection {} {epilogue:?} t={t} n={n} k={k}", format.name()), step(t), vec![y], false)
}

/// Embedding rows of a split table.
pub fn embed(format: Format, t: usize, d: usize) -> Case {
    let mut b = Builder::new();
    let tokens = b.tokens(t, 0, 24);
    let tokens = b.input("tokens", tokens);
    let x = b.floats("x", t * d);
    for part in 0..2 {
        let weights = b.random.weights(format, 16, d);
        let weights = b.input("weights", weights);
        let kernel = Embed { format, d, first_row: 16 * part, num_rows: 16, scale: 2.5 };
        b.recording.dispatch(kernel, &[weights, tokens, x], RowClass::Any);
    }
    b.finish(format!("embed {} t={t} d={d}", format.name()), step(t), vec![x], true)
}

/// Both norms and the gathering of rows.
pub fn norms(tuning: &Tuning, t: usize, d: usize) -> Case {
    let mut b = Builder::new();
    let (o, w, w_next) = (b.floats("o", t * d), b.floats("w", d), b.floats("w_next", d));
    let (x, y, z, gathered) =
        (b.floats("x", t * d), b.floats("y", t * d), b.floats("z", t * d), b.floats("gathered", t * d));
    let rows = b.input("rows", (0..word(t)).rev().collect());
    b.recording.dispatch(RmsNorm::new(d, 1e-5, tuning), &[o, w, z], RowClass::Any);
    b.recording.dispatch(RmsNormAdd::new(d, 1e-6, tuning), &[z, w, w_next, x, y], RowClass::Any);
    b.recording.dispatch(GatherRows { d }, &[y, rows, gathered], RowClass::Any);
    b.finish(format!("norms t={t} d={d}"), step(t), vec![x, y, gathered], false)
}

/// Numbers of an attention case.
#[derive(Debug, Clone, Copy)]
pub struct AttentionShape {
    /// Tokens.
    pub t: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Values of a head.
    pub head_dim: usize,
    /// Sliding window.
    pub window: Option<usize>,
    /// Format of the cache.
    pub kv: KvFormat,
    /// Gemma's way (QK norm, pairs half a head apart) instead of Llama's.
    pub neox: bool,
}

/// Rotation, storing, and attention over what was stored: positions before the batch hold random keys and values.
pub fn attention(tuning: &Tuning, shape: AttentionShape) -> Case {
    let AttentionShape { t, heads, kv_heads, head_dim, window, kv, neox } = shape;
    let mut b = Builder::new();
    let tokens = b.tokens(t, 37, 1);
    let tokens = b.input("tokens", tokens);
    let tables = (0..2).flat_map(|s| (0..TABLE_STRIDE).map(move |block| table_entry(s, block))).collect();
    let tables = b.input("tables", tables);
    let qkv = b.floats("qkv", t * (heads + 2 * kv_heads) * head_dim);
    let angles = (0..16 * TABLE_STRIDE * head_dim / 2).flat_map(|_| {
        let (sin, cos) = b.random.float().sin_cos();
        [cos.to_bits(), sin.to_bits()]
    });
    let angles = angles.collect();
    let angles = b.input("angles", angles);
    let norms = b.floats("norms", 2 * head_dim);
    let (q, out) = (b.floats("q", t * heads * head_dim), b.floats("out", t * heads * head_dim));
    let num_values = 2 * TABLE_STRIDE * 16 * kv_heads * head_dim;
    let [k_cache, v_cache] = ["k", "v"].map(|label| {
        let words = match kv {
            KvFormat::F32 => b.random.floats(num_values),
            KvFormat::F16 => b.random.floats(num_values).chunks_exact(2).map(half_pair).collect(),
        };
        b.input(label, words)
    });
    let rope = RopeStore {
        heads,
        kv_heads,
        head_dim,
        rope_dim: head_dim,
        neox,
        qk_norm: neox.then_some(1e-6),
        scale: 0.25,
        kv,
        group: 0,
        tuning: *tuning,
    };
    b.recording.dispatch(rope, &[qkv, angles, norms, tokens, q, k_cache, v_cache], RowClass::Any);
    let attention = Attention {
        heads,
        kv_heads,
        head_dim,
        window,
        table_offset: 0,
        table_stride: TABLE_STRIDE,
        kv,
        tuning: *tuning,
    };
    b.recording.dispatch(attention, &[q, k_cache, v_cache, tokens, tables, out], RowClass::Any);
    b.finish(format!("{shape:?}"), step(t), vec![q, out], false)
}

/// Values that an f16 cache cannot hold: those beyond its range become the nearest finite one, and what is not finite
/// stays so, because a made-up number in its place would end in an answer instead of an error.
pub fn store_of_values_beyond_f16(tuning: &Tuning) -> Case {
    const T: usize = 3;
    const HEAD_DIM: usize = 32;
    let mut b = Builder::new();
    let tokens = b.tokens(T, 5, 1);
    let tokens = b.input("tokens", tokens);
    let mut qkv = b.random.floats(T * 3 * HEAD_DIM);
    for (at, value) in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e6, -1e6].into_iter().enumerate() {
        // Of the first token's key, and of the last one's value.
        qkv[HEAD_DIM + 2 * at] = value.to_bits();
        qkv[(3 * T - 1) * HEAD_DIM + 5 * at] = value.to_bits();
    }
    let qkv = b.input("qkv", qkv);
    // No rotation, so that what is stored is exact.
    let angles = (0..16 * HEAD_DIM / 2).flat_map(|_| [1.0_f32.to_bits(), 0]).collect();
    let angles = b.input("angles", angles);
    let (norms, q) = (b.floats("norms", 2 * HEAD_DIM), b.floats("q", T * HEAD_DIM));
    let num_words = 2 * TABLE_STRIDE * 16 * HEAD_DIM / 2;
    let caches = ["k", "v"].map(|label| b.input(label, vec![0; num_words]));
    let rope = RopeStore {
        heads: 1,
        kv_heads: 1,
        head_dim: HEAD_DIM,
        rope_dim: HEAD_DIM,
        neox: false,
        qk_norm: None,
        scale: 1.0,
        kv: KvFormat::F16,
        group: 0,
        tuning: *tuning,
    };
    b.recording.dispatch(rope, &[qkv, angles, norms, tokens, q, caches[0], caches[1]], RowClass::Any);
    b.finish("store of values beyond f16".to_owned(), step(T), caches.to_vec(), true)
}

/// Rows of two layer groups copied within one layer's caches: only its own group's are.
pub fn copy_rows(num_copies: usize, row_words: usize) -> Case {
    let mut b = Builder::new();
    let slot = |index: usize| word(16 + 3 * index);
    let copies = (0..num_copies).flat_map(|i| [word(i % 2), slot(i), slot(num_copies + i)]).collect();
    let copies = b.input("copies", copies);
    let caches = ["k", "v"].map(|label| b.floats(label, (16 + 6 * num_copies) * row_words));
    b.recording.dispatch(CopyRows { row_words, group: 1 }, &[copies, caches[0], caches[1]], RowClass::Copies);
    let step = Step { num_copies: word(num_copies), ..step(1) };
    b.finish(format!("copy_rows copies={num_copies} row_words={row_words}"), step, caches.to_vec(), true)
}

fn half_pair(pair: &[u32]) -> u32 {
    let [low, high] = [pair[0], pair[1]].map(|bits| u32::from(f16::from_f32(f32::from_bits(bits)).to_bits()));
    low | high << 16
}

/// Rows with every kind of sampling, after edits.
pub fn sample(tuning: &Tuning, vocab: usize) -> Case {
    let mut b = Builder::new();
    // temperature, top-k, top-p, min-p, then the penalties
    let rows: [(f32, u32, f32, f32, [f32; 3]); 7] = [
        (0.0, 0, 1.0, 0.0, [1.0, 0.0, 0.0]),
        (1.0, 0, 1.0, 0.0, [1.0, 0.0, 0.0]),
        (0.7, 5, 1.0, 0.0, [1.3, 0.0, 0.0]),
        (1.5, 0, 0.6, 0.0, [1.0, 0.4, 0.2]),
        (0.9, 20, 0.8, 0.05, [1.1, -0.4, 0.2]),
        (0.8, 1, 1.0, 0.0, [1.0, 0.0, 0.0]),
        (1.0, 0, 1.0, 0.0, [1.0, 0.0, 0.0]),
    ];
    let mut logits: Vec<u32> = b.random.floats(rows.len() * vocab);
    logits.iter_mut().for_each(|bits| *bits = (8.0 * f32::from_bits(*bits)).to_bits());
    logits[6 * vocab + vocab / 2] = f32::NAN.to_bits();
    let logits = b.input("logits", logits);
    let mut samplings = Vec::with_capacity(rows.len() * SAMPLING_WORDS);
    for (counter, (temperature, top_k, top_p, min_p, penalties)) in (0..).zip(rows) {
        samplings.extend([temperature.to_bits(), top_k, top_p.to_bits(), min_p.to_bits()]);
        samplings.extend(penalties.map(f32::to_bits));
        samplings.extend([0x1234_5678, 9, counter]);
    }
    let samplings = b.input("samplings", samplings);
    let mut edits = Vec::new();
    for row in 0..word(rows.len()) {
        edits.extend([row, row, 1, 2, 0.5_f32.to_bits(), row, row + 9, 0, 0, (-1e30_f32).to_bits()]);
    }
    let num_edits = word(edits.len() / EDIT_WORDS);
    let edits = b.input("edits", edits);
    let ids = b.recording.buffer("ids", rows.len(), Purpose::Scratch);
    b.recording.dispatch(EditLogits { vocab }, &[edits, samplings, logits], RowClass::Any);
    b.recording.dispatch(Sample::new(vocab, tuning), &[logits, samplings, ids], RowClass::Any);
    b.finish(format!("sample vocab={vocab}"), Step { num_edits, ..step(rows.len()) }, vec![ids], true)
}

impl Case {
    /// What is run.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Runs the case on the device and on the CPU and compares.
    ///
    /// # Errors
    /// `wrong_result` with the first value that differs, or what the device reports.
    pub async fn check(self, gpu: &Gpu) -> Result<()> {
        let recording = Rc::new(self.recording);
        let run = (self.inputs.as_slice(), &self.step, self.outputs.as_slice());
        let expected = execute(&mut CpuExecutor::new(recording.clone()), run).await?;
        let actual = execute(&mut GpuExecutor::new(gpu.clone(), recording).await?, run).await?;
        for (output, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            for (at, (&actual, &expected)) in actual.iter().zip(expected).enumerate() {
                let (a, e) = (f32::from_bits(actual), f32::from_bits(expected));
                let is_close = !self.is_exact && (a - e).abs() <= TOLERANCE * (1.0 + e.abs());
                if actual != expected && !is_close {
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
