//! The forward pass: written once, records only.

use super::batch::{BatchLimits, MAX_GROUPS};
use super::blocks::KvLayer;
use super::config::{ModelConfig, Rope};
use super::weights::{Part, Placement, Placer};
use crate::Result;
use crate::compute::{BufferId, Purpose, Recording, RowClass, Rows, Step, Tuning};
use crate::gguf::Gguf;
use crate::kernels::{
    AttentionBuffers, COPY_WORDS, CopyRows, DrawnLogits, EDIT_WORDS, EditLogits, Embed, Epilogue, GatherRows, KvFormat,
    MAX_TOP_LOGITS, Operand, POOL_WORDS, PoolRows, Projection, RopeStore, SAMPLING_WORDS, SCORE_WORDS, Sample,
    SelfAttention, TOKEN_WORDS, TopLogits, mask_words,
};
use crate::kv::GroupConfig;

/// What a recording is built for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The largest batch.
    pub limits: BatchLimits,
    /// The pools, one per layer group of the model.
    pub groups: Vec<GroupConfig>,
    /// How keys and values are stored.
    pub kv: KvFormat,
    /// Largest range that a binding may cover.
    pub binding_bytes: u64,
    /// The adapter's kernels.
    pub tuning: Tuning,
}

/// The recorded forward pass, and the buffers that a step writes and reads.
#[derive(Debug)]
pub struct Graph {
    /// All buffers and dispatches.
    pub recording: Recording,
    /// Weights to load.
    pub placements: Vec<Placement>,
    /// Rotation tables to fill.
    pub angles: Vec<(BufferId, Rope)>,
    /// The file's frequency factors for the rotation tables.
    pub rope_factors: Option<Placement>,
    /// What a step writes and reads.
    pub io: Io,
    /// Where each layer's keys and values are, in order.
    pub kv_layers: Vec<KvLayer>,
    /// Dispatches of one layer when there is one row, the most of any.
    pub layer_dispatches: usize,
}

/// The buffers that a step writes and reads.
#[derive(Debug, Clone, Copy)]
pub struct Io {
    /// [T, 5 words]
    pub tokens: BufferId,
    /// [groups, S, max_blocks]
    pub tables: BufferId,
    /// `[R]`
    pub rows: BufferId,
    /// [R, 11 words]
    pub samplings: BufferId,
    /// [edits, 5 words]
    pub edits: BufferId,
    /// [R, ceil(V / 32) words]
    pub masks: BufferId,
    /// [copies, 3 words]
    pub copies: BufferId,
    /// [R, V] f32
    pub logits: BufferId,
    /// `[R]`
    pub ids: BufferId,
    /// `[R]`
    pub tops: BufferId,
    /// [R, 20]
    pub top_ids: BufferId,
    /// [R, 23] f32
    pub scores: BufferId,
    /// [S, 2 words]
    pub pools: BufferId,
    /// [S, D] f32
    pub pooled: BufferId,
    /// `[edits]` f32
    pub originals: BufferId,
}

/// Activations that all layers share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Activations {
    pub(super) x: BufferId,      // [T, D] residual stream
    pub(super) x_next: BufferId, // [T, D] the residual stream behind a closing norm, which then changes places with x
    pub(super) h: BufferId,      // [T, D] normalised
    pub(super) o: BufferId,      // [T, D] a block's output before its closing norm
    pub(super) qkv: BufferId,    // [T, (H + 2 KVH) * head_dim]
    pub(super) q: BufferId,      // [T, H * head_dim] rotated
    pub(super) mixed: BufferId,  // [T, H * head_dim] attention's output, and its splits'
    pub(super) hidden: BufferId, // [T, F]
    pub(super) last: BufferId,   // [R, D]
}

pub(super) struct Recorder<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) layout: &'a Layout,
    pub(super) recording: Recording,
    pub(super) placer: Placer<'a>,
    io: Io,
    pub(super) act: Activations,
    kv_layers: Vec<KvLayer>,
    /// One per layer group.
    angles: Vec<BufferId>,
    /// Bound where a model has no QK norm.
    no_head_norms: Option<BufferId>,
}

impl Graph {
    /// Records the forward pass of a model. Nothing is allocated or read.
    ///
    /// # Errors
    /// `corrupt_model` for missing or misshapen tensors, `unsupported_model` for tensors it would ignore.
    pub fn record(config: &ModelConfig, gguf: &Gguf, layout: &Layout) -> Result<Self> {
        let mut recording = Recording::new();
        let io = declare_io(&mut recording, config, layout);
        let act = declare_activations(&mut recording, config, layout);
        let placer = Placer::new(gguf, layout.binding_bytes);
        let (kv_layers, angles) = (Vec::new(), Vec::new());
        let mut recorder =
            Recorder { config, layout, recording, placer, io, act, kv_layers, angles, no_head_norms: None };
        let angles = recorder.declare_angles();
        let rope_factors = recorder.rope_factors()?;
        let embedding = recorder.embed()?;
        let layer_dispatches = recorder.layers()?;
        recorder.logits(embedding)?;
        recorder.placer.check_all_used(&config.architecture)?;
        let Recorder { recording, placer, io, kv_layers, .. } = recorder;
        let placements = placer.placements;
        Ok(Self { recording, placements, angles, rope_factors, io, kv_layers, layer_dispatches })
    }
}

fn declare_io(recording: &mut Recording, config: &ModelConfig, layout: &Layout) -> Io {
    let limits = &layout.limits;
    let mut scratch = |label: &str, words| recording.buffer(label, words, Purpose::Scratch);
    Io {
        tokens: scratch("tokens", limits.max_tokens * TOKEN_WORDS),
        tables: scratch("tables", layout.groups.len() * limits.max_sequences * limits.max_blocks),
        rows: scratch("rows", limits.max_rows),
        samplings: scratch("samplings", limits.max_rows * SAMPLING_WORDS),
        masks: scratch("masks", limits.max_rows * mask_words(config.vocab)),
        edits: scratch("edits", limits.max_edits * EDIT_WORDS),
        copies: scratch("copies", limits.max_copies * COPY_WORDS),
        logits: scratch("logits", limits.max_rows * config.vocab),
        ids: scratch("ids", limits.max_rows),
        tops: scratch("tops", limits.max_rows),
        top_ids: scratch("top ids", limits.max_rows * MAX_TOP_LOGITS),
        scores: scratch("scores", limits.max_rows * SCORE_WORDS),
        pools: scratch("pools", limits.max_sequences * POOL_WORDS),
        pooled: scratch("pooled", limits.max_sequences * config.width),
        originals: scratch("originals", limits.max_edits),
    }
}

fn declare_activations(recording: &mut Recording, config: &ModelConfig, layout: &Layout) -> Activations {
    let limits = &layout.limits;
    let mut rows = |label: &str, num_rows, width| recording.buffer(label, num_rows * width, Purpose::Scratch);
    let (tokens, attention) = (limits.max_tokens, config.heads * config.head_dim);
    Activations {
        x: rows("x", tokens, config.width),
        x_next: rows("x_next", if config.post_norm { tokens } else { 1 }, config.width),
        h: rows("h", tokens, config.width),
        o: rows("o", tokens, config.width),
        qkv: rows("qkv", tokens, attention + 2 * config.kv_heads * config.head_dim),
        q: rows("q", tokens, attention),
        mixed: rows("mixed", 1, layout.attention(config, 0, None).out_len(tokens)),
        hidden: rows("hidden", tokens, config.feed_forward),
        last: rows("last", limits.max_rows, config.width),
    }
}

impl Recorder<'_> {
    fn declare_angles(&mut self) -> Vec<(BufferId, Rope)> {
        let positions = self.layout.limits.max_blocks * crate::kv::BLOCK_SIZE;
        let ropes: Vec<_> = (self.config.groups().iter())
            .map(|window| match (window, self.config.sliding) {
                (Some(_), Some(sliding)) => sliding.rope,
                _ => self.config.rope,
            })
            .collect();
        let mut angles = Vec::new();
        for rope in ropes {
            // cos and sin of rope.dim / 2 angles
            let buffer = self.recording.buffer("angles", positions * rope.dim.max(2), Purpose::Scratch);
            self.angles.push(buffer);
            angles.push((buffer, rope));
        }
        angles
    }

    fn rope_factors(&mut self) -> Result<Option<Placement>> {
        if !self.config.rope.has_factors {
            return Ok(None);
        }
        // The factors go into the angles on the CPU; the placement only says where to read them.
        let len = self.config.rope.dim / 2;
        self.placer.vector_into(self.angles[0], 0, "rope_freqs.weight", len)?;
        Ok(self.placer.placements.pop())
    }

    fn embed(&mut self) -> Result<(Vec<Part>, crate::quant::Format)> {
        let (d, vocab) = (self.config.width, self.config.vocab);
        let tensor = self.placer.tensor("token_embd.weight", &[d, vocab])?;
        let parts = self.placer.stack(&mut self.recording, &[tensor]);
        for part in &parts {
            let scale = self.config.embedding_scale;
            let kernel = Embed { format: tensor.format, d, first_row: part.first, num_rows: part.num, scale };
            let buffers = [part.buffer, self.io.tokens, self.io.ids, self.act.x];
            self.recording.dispatch(kernel, &buffers, RowClass::Any);
        }
        Ok((parts, tensor.format))
    }

    /// Records all layers, from the embedding in x to the output norm in h.
    fn layers(&mut self) -> Result<usize> {
        let num_layers = self.config.num_layers;
        let attention_norm = |layer: usize| format!("blk.{layer}.attn_norm.weight");
        let one = Step { num_tokens: 1, num_rows: 1, ..Step::default() };
        let mut most = 0;
        let mut input = self.first_block(&attention_norm(0))?;
        for layer in 0..num_layers {
            let before = self.recording.dispatches().len();
            self.attention(layer, input)?;
            let middle = self.next_block(layer, "post_attention_norm", &format!("blk.{layer}.ffn_norm.weight"))?;
            self.feed_forward(layer, middle)?;
            if layer + 1 < num_layers {
                input = self.next_block(layer, "post_ffw_norm", &attention_norm(layer + 1))?;
            }
            most = most.max(self.recording.dispatches()[before..].iter().filter(|d| d.class.runs(&one)).count());
        }
        self.last_block(num_layers - 1, "post_ffw_norm", "output_norm.weight")?;
        Ok(most)
    }

    /// From the block's input, normalised, to attention's output added to x (or, before a closing norm, stored in o).
    fn attention(&mut self, layer: usize, input: Operand) -> Result<()> {
        let ModelConfig { width, heads, kv_heads, head_dim, .. } = *self.config;
        let (act, tuning) = (self.act, self.layout.tuning);
        let name = |part: &str| format!("blk.{layer}.attn_{part}.weight");
        let (inner, kv_width) = (heads * head_dim, kv_heads * head_dim);
        let q = self.placer.tensor(&name("q"), &[width, inner])?;
        let k = self.placer.tensor(&name("k"), &[width, kv_width])?;
        let v = self.placer.tensor(&name("v"), &[width, kv_width])?;
        self.project(&[q, k, v], Epilogue::Store, input, act.qkv);

        let group = self.config.group(layer);
        let window = if self.config.is_sliding(layer) { self.config.sliding } else { None };
        let rope = window.map_or(self.config.rope, |sliding| sliding.rope);
        let slots = self.layout.groups[group].num_blocks * crate::kv::BLOCK_SIZE;
        let words = slots * self.layout.kv.row_words(kv_width);
        let k_cache = self.recording.buffer(format!("k.{layer}"), words, Purpose::Kv);
        let v_cache = self.recording.buffer(format!("v.{layer}"), words, Purpose::Kv);
        self.kv_layers.push(KvLayer { group, k: k_cache, v: v_cache });
        let kernel = CopyRows { row_words: self.layout.kv.row_words(kv_width), group };
        self.recording.dispatch(kernel, &[self.io.copies, k_cache, v_cache], RowClass::Copies);
        let norms = self.head_norms(layer)?;
        let rope = RopeStore {
            heads,
            kv_heads,
            head_dim,
            rope_dim: rope.dim,
            neox: rope.neox,
            qk_norm: self.config.qk_norm.then_some(self.config.epsilon),
            scale: self.config.query_scale,
            kv: self.layout.kv,
            group,
            tuning,
        };
        let window = window.map(|sliding| sliding.window);
        let attention = self.layout.attention(self.config, group, window);
        let buffers = AttentionBuffers {
            qkv: act.qkv,
            angles: self.angles[group],
            norms,
            tokens: self.io.tokens,
            tables: self.io.tables,
            k_cache,
            v_cache,
            q: act.q,
            out: act.mixed,
        };
        SelfAttention { rope, attention }.record(&mut self.recording, buffers);
        let output = self.placer.tensor(&name("output"), &[inner, width])?;
        self.project_back(output, act.mixed);
        Ok(())
    }

    /// The weights of QK norm, q's and then k's; one unused word for models without.
    fn head_norms(&mut self, layer: usize) -> Result<BufferId> {
        let head_dim = self.config.head_dim;
        if !self.config.qk_norm {
            let recording = &mut self.recording;
            let none = || recording.buffer("no head norms", 1, Purpose::Scratch);
            return Ok(*self.no_head_norms.get_or_insert_with(none));
        }
        let norms = self.recording.buffer(format!("head norms {layer}"), 2 * head_dim, Purpose::Weights);
        self.placer.vector_into(norms, 0, &format!("blk.{layer}.attn_q_norm.weight"), head_dim)?;
        self.placer.vector_into(norms, head_dim, &format!("blk.{layer}.attn_k_norm.weight"), head_dim)?;
        Ok(norms)
    }

    /// Logits of the wanted rows, and a token drawn from each.
    fn logits(&mut self, (embedding, embedding_format): (Vec<Part>, crate::quant::Format)) -> Result<()> {
        let (d, vocab) = (self.config.width, self.config.vocab);
        let (io, act) = (self.io, self.act);
        let (parts, format) = if self.placer.has("output.weight") {
            let output = self.placer.tensor("output.weight", &[d, vocab])?;
            (self.placer.stack(&mut self.recording, &[output]), output.format)
        } else {
            (embedding, embedding_format)
        };
        self.recording.dispatch(PoolRows { d }, &[act.h, io.pools, io.pooled], RowClass::Pools);
        self.recording.dispatch(GatherRows { d }, &[act.h, io.rows, act.last], RowClass::Any);
        for part in parts {
            let projection = Projection {
                format,
                k: d,
                n: part.num,
                epilogue: Epilogue::Store,
                rows: Rows::Sampled,
                out_stride: vocab,
                out_offset: part.first,
                epsilon: 0.0,
            };
            projection.record(&mut self.recording, &self.layout.tuning, part.buffer, act.last, io.logits);
        }
        self.recording.mark_draw();
        self.draw();
        Ok(())
    }

    /// Draws a token from each row of logits, and says how probable it was.
    fn draw(&mut self) {
        let (io, vocab, tuning) = (self.io, self.config.vocab, &self.layout.tuning);
        let top = TopLogits::new(vocab, tuning);
        self.recording.dispatch(top, &[io.logits, io.tops, io.top_ids, io.scores], RowClass::Tops);
        let edits = [io.edits, io.samplings, io.logits, io.originals];
        self.recording.dispatch(EditLogits { vocab }, &edits, RowClass::Any);
        let sample = Sample::new(vocab, tuning);
        self.recording.dispatch(sample, &[io.logits, io.samplings, io.masks, io.ids], RowClass::Any);
        let drawn = [io.logits, io.ids, io.edits, io.originals, io.tops, io.scores];
        self.recording.dispatch(DrawnLogits { vocab }, &drawn, RowClass::Tops);
    }
}

const _: () = assert!(MAX_GROUPS == 2, "TOKEN_WORDS has room for two slots");
