//! Cases of attention and of what writes the paged cache.

use half::f16;

use super::{Builder, Case, NUM_BLOCKS, step, table_entry};
use crate::compute::{RowClass, Step, Tuning};
use crate::kernels::{Attention, AttentionBuffers, CopyRows, KvFormat, RopeStore, SelfAttention, word};

/// Numbers of an attention case.
#[derive(Debug, Clone, Copy)]
pub struct AttentionShape {
    /// Tokens: two thirds of the first sequence, the rest of a second that has just begun.
    pub t: usize,
    /// Position of the first token.
    pub position: usize,
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
    /// Added to the mean square of the QK norm.
    pub epsilon: f32,
    /// What queries are multiplied by.
    pub scale: f32,
    /// Blocks of the longest sequence that there could be, of which a case has a few.
    pub table_stride: usize,
}

impl AttentionShape {
    /// Numbers that need no thought.
    pub const SMALL: Self = Self {
        t: 1,
        position: 0,
        heads: 1,
        kv_heads: 1,
        head_dim: 32,
        window: None,
        kv: KvFormat::F32,
        neox: false,
        epsilon: 1e-6,
        scale: 0.25,
        table_stride: NUM_BLOCKS,
    };
}

/// Rotation, storing, and attention over what was stored: positions before the batch hold random keys and values.
pub fn attention(tuning: &Tuning, shape: AttentionShape) -> Case {
    let AttentionShape { t, position, heads, kv_heads, head_dim, window, kv, neox, epsilon, scale, table_stride } =
        shape;
    let table_stride = table_stride.max(NUM_BLOCKS);
    let mut b = Builder::new();
    let first = (2 * t).div_ceil(3);
    let places = (0..t).map(|i| if i < first { (0, position + i) } else { (1, 2 + i - first) });
    let longest = word(position + first);
    let tokens = places.flat_map(|(sequence, position)| {
        let slot = table_entry(sequence, position / 16) * 16 + word(position % 16);
        [0, word(position), word(sequence), slot, slot]
    });
    let tokens = tokens.collect();
    let tokens = b.input("tokens", tokens);
    let mut tables = vec![0; 2 * table_stride];
    for (sequence, table) in tables.chunks_exact_mut(table_stride).enumerate() {
        table.iter_mut().zip(0..NUM_BLOCKS).for_each(|(entry, block)| *entry = table_entry(sequence, block));
    }
    let tables = b.input("tables", tables);
    let qkv = b.floats("qkv", t * (heads + 2 * kv_heads) * head_dim);
    let angles = (0..16 * NUM_BLOCKS * head_dim / 2).flat_map(|_| {
        let (sin, cos) = b.random.float().sin_cos();
        [cos.to_bits(), sin.to_bits()]
    });
    let angles = angles.collect();
    let angles = b.input("angles", angles);
    let norms = b.floats("norms", 2 * head_dim);
    let attention = Attention { heads, kv_heads, head_dim, window, table_offset: 0, table_stride, kv, tuning: *tuning };
    let (q, out) = (b.floats("q", t * heads * head_dim), b.floats("out", attention.out_len(t)));
    let num_values = 2 * NUM_BLOCKS * 16 * kv_heads * head_dim;
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
        qk_norm: neox.then_some(epsilon),
        scale,
        kv,
        group: 0,
        tuning: *tuning,
    };
    let buffers = AttentionBuffers { qkv, angles, norms, tokens, tables, k_cache, v_cache, q, out };
    SelfAttention { rope, attention }.record(&mut b.recording, buffers);
    let step = Step { longest, ..step(t) };
    let mut outputs = vec![q, out];
    if kv == KvFormat::F32 {
        // Halves may be rounded to either side.
        outputs.extend([k_cache, v_cache]);
    }
    b.finish(format!("{shape:?}"), step, outputs, false)
}

/// Values that an f16 cache cannot hold: those beyond its range become the nearest finite one, and what is not finite
/// stays so, because a made-up number in its place would end in an answer instead of an error.
pub fn store_of_values_beyond_f16(tuning: &Tuning, t: usize) -> Case {
    const HEAD_DIM: usize = 32;
    let mut b = Builder::new();
    let tokens = b.tokens(t, 5, 1);
    let tokens = b.input("tokens", tokens);
    let mut qkv = b.random.floats(t * 3 * HEAD_DIM);
    for (at, value) in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e6, -1e6].into_iter().enumerate() {
        // Of the first token's key, and of the last one's value.
        qkv[HEAD_DIM + 2 * at] = value.to_bits();
        qkv[(3 * t - 1) * HEAD_DIM + 5 * at] = value.to_bits();
    }
    let qkv = b.input("qkv", qkv);
    // No rotation, so that what is stored is exact.
    let angles = (0..16 * HEAD_DIM / 2).flat_map(|_| [1.0_f32.to_bits(), 0]).collect();
    let angles = b.input("angles", angles);
    let (norms, q) = (b.floats("norms", 2 * HEAD_DIM), b.floats("q", t * HEAD_DIM));
    let num_words = 2 * NUM_BLOCKS * 16 * HEAD_DIM / 2;
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
    let attention = Attention {
        heads: 1,
        kv_heads: 1,
        head_dim: HEAD_DIM,
        window: None,
        table_offset: 0,
        table_stride: NUM_BLOCKS,
        kv: KvFormat::F16,
        tuning: *tuning,
    };
    let tables = (0..2).flat_map(|s| (0..NUM_BLOCKS).map(move |block| table_entry(s, block))).collect();
    let (tables, out) = (b.input("tables", tables), b.floats("out", attention.out_len(t)));
    let [k_cache, v_cache] = caches;
    let buffers = AttentionBuffers { qkv, angles, norms, tokens, tables, k_cache, v_cache, q, out };
    SelfAttention { rope, attention }.record(&mut b.recording, buffers);
    let step = Step { longest: word(5 + t.div_ceil(2)), ..step(t) };
    b.finish(format!("store of values beyond f16, t={t}"), step, caches.to_vec(), true)
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
