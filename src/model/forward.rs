//! The forward pass: written once, records only.

use super::batch::{BatchLimits, MAX_GROUPS};
use super::blocks::KvLayer;
use super::config::{ModelConfig, Rope};
use super::weights::{Part, Placement, Placer};
use crate::Result;
use crate::compute::{BufferId, Purpose, Recording, RowClass, Rows, Tuning};
use crate::gguf::Gguf;
use crate::kernels::{
    Attention, COPY_WORDS, CopyRows, EDIT_WORDS, EditLogits, Embed, Epilogue, GatherRows, KvFormat, Projection,
    RmsNorm, RmsNormAdd, RopeStore, SAMPLING_WORDS, Sample, TOKEN_WORDS,
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
    /// Dispatches of one layer when there are few rows, the most of any.
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
    /// [R, 10 words]
    pub samplings: BufferId,
    /// [edits, 5 words]
    pub edits: BufferId,
    /// [copies, 3 words]
    pub copies: BufferId,
    /// [R, V] f32
    pub logits: BufferId,
    /// `[R]`
    pub ids: BufferId,
}

/// Activations that all layers share.
#[derive(Debug, Clone, Copy)]
struct Activations {
    x: BufferId,      // [T, D] residual stream
    h: BufferId,      // [T, D] normalised
    o: BufferId,      // [T, D] a block's output before its closing norm
    qkv: BufferId,    // [T, (H + 2 KVH) * head_dim]
    q: BufferId,      // [T, H * head_dim] rotated
    mixed: BufferId,  // [T, H * head_dim] attention's output
    hidden: BufferId, // [T, F]
    last: BufferId,   // [R, D]
}

struct Recorder<'a> {
    config: &'a ModelConfig,
    layout: &'a Layout,
    recording: Recording,
    placer: Placer<'a>,
    io: Io,
    act: Activations,
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
        let act = declare_activations(&mut recording, config, &layout.limits);
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
        edits: scratch("edits", limits.max_edits * EDIT_WORDS),
        copies: scratch("copies", limits.max_copies * COPY_WORDS),
        logits: scratch("logits", limits.max_rows * config.vocab),
        ids: scratch("ids", limits.max_rows),
    }
}

fn declare_activations(recording: &mut Recording, config: &ModelConfig, limits: &BatchLimits) -> Activations {
    let mut rows = |label: &str, num_rows, width| recording.buffer(label, num_rows * width, Purpose::Scratch);
    let (tokens, attention) = (limits.max_tokens, config.heads * config.head_dim);
    Activations {
        x: rows("x", tokens, config.width),
        h: rows("h", tokens, config.width),
        o: rows("o", tokens, config.width),
        qkv: rows("qkv", tokens, attention + 2 * config.kv_heads * config.head_dim),
        q: rows("q", tokens, attention),
        mixed: rows("mixed", tokens, attention),
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
            self.recording.dispatch(kernel, &[part.buffer, self.io.tokens, self.act.x], RowClass::Any);
        }
        Ok((parts, tensor.format))
    }

    /// Records all layers, from the embedding in x to the output norm in h.
    fn layers(&mut self) -> Result<usize> {
        let width = self.config.width;
        let mut most = 0;
        let first = self.placer.vector(&mut self.recording, "blk.0.attn_norm.weight", width)?;
        self.norm(first);
        for layer in 0..self.config.num_layers {
            let before = self.recording.dispatches().len();
            self.attention(layer)?;
            let norm = self.placer.vector(&mut self.recording, &format!("blk.{layer}.ffn_norm.weight"), width)?;
            self.close_block(layer, "post_attention_norm", norm)?;
            self.feed_forward(layer)?;
            let next = if layer + 1 < self.config.num_layers {
                format!("blk.{}.attn_norm.weight", layer + 1)
            } else {
                "output_norm.weight".to_owned()
            };
            let norm = self.placer.vector(&mut self.recording, &next, width)?;
            self.close_block(layer, "post_ffw_norm", norm)?;
            let few = |class: RowClass| matches!(class, RowClass::Any | RowClass::Few(_));
            most = most.max(self.recording.dispatches()[before..].iter().filter(|d| few(d.class)).count());
        }
        Ok(most)
    }

    /// From h, normalised, to attention's output added to x (or, before a closing norm, stored in o).
    fn attention(&mut self, layer: usize) -> Result<()> {
        let ModelConfig { width, heads, kv_heads, head_dim, .. } = *self.config;
        let (act, tuning) = (self.act, self.layout.tuning);
        let name = |part: &str| format!("blk.{layer}.attn_{part}.weight");
        let (inner, kv_width) = (heads * head_dim, kv_heads * head_dim);
        let q = self.placer.tensor(&name("q"), &[width, inner])?;
        let k = self.placer.tensor(&name("k"), &[width, kv_width])?;
        let v = self.placer.tensor(&name("v"), &[width, kv_width])?;
        // Neighbours of one format share a dispatch.
        let mut offset = 0;
        for same in [q, k, v].chunk_by(|a, b| a.format == b.format) {
            for part in self.placer.stack(&mut self.recording, same) {
                self.project(
                    &part,
                    same[0].format,
                    width,
                    Epilogue::Store,
                    act.h,
                    act.qkv,
                    (inner + 2 * kv_width, offset),
                );
            }
            offset += same.iter().map(|tensor| tensor.num_rows()).sum::<usize>();
        }

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
        let kernel = RopeStore {
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
        let buffers = [act.qkv, self.angles[group], norms, self.io.tokens, act.q, k_cache, v_cache];
        self.recording.dispatch(kernel, &buffers, RowClass::Any);
        let limits = &self.layout.limits;
        let kernel = Attention {
            heads,
            kv_heads,
            head_dim,
            window: window.map(|sliding| sliding.window),
            table_offset: group * limits.max_sequences * limits.max_blocks,
            table_stride: limits.max_blocks,
            kv: self.layout.kv,
            tuning,
        };
        let buffers = [act.q, k_cache, v_cache, self.io.tokens, self.io.tables, act.mixed];
        self.recording.dispatch(kernel, &buffers, RowClass::Any);
        let output = self.placer.tensor(&name("output"), &[inner, width])?;
        self.project_back(&[output], inner, act.mixed);
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

    fn feed_forward(&mut self, layer: usize) -> Result<()> {
        let (width, inner) = (self.config.width, self.config.feed_forward);
        let gate = self.placer.tensor(&format!("blk.{layer}.ffn_gate.weight"), &[width, inner])?;
        let up = self.placer.tensor(&format!("blk.{layer}.ffn_up.weight"), &[width, inner])?;
        if gate.format != up.format {
            return Err(crate::Error::UnsupportedModel(format!(
                "{} is stored as {} and {} as {}: one format for both is supported",
                gate.name, gate.format, up.name, up.format
            )));
        }
        for part in self.placer.gated(&mut self.recording, gate, up) {
            self.project(&part, gate.format, width, self.config.gate, self.act.h, self.act.hidden, (inner, 0));
        }
        let down = self.placer.tensor(&format!("blk.{layer}.ffn_down.weight"), &[inner, width])?;
        self.project_back(&[down], inner, self.act.hidden);
        Ok(())
    }

    /// A projection back to the model's width: added to x, or stored in o where a closing norm comes first.
    fn project_back(&mut self, tensors: &[&crate::gguf::TensorInfo], k: usize, input: BufferId) {
        let (output, epilogue) =
            if self.config.post_norm { (self.act.o, Epilogue::Store) } else { (self.act.x, Epilogue::Add) };
        for part in self.placer.stack(&mut self.recording, tensors) {
            self.project(&part, tensors[0].format, k, epilogue, input, output, (self.config.width, 0));
        }
    }

    /// Ends a block: its closing norm, if the model has one, the residual, and the next block's norm in h.
    fn close_block(&mut self, layer: usize, post: &str, next: BufferId) -> Result<()> {
        if !self.config.post_norm {
            self.norm(next);
            return Ok(());
        }
        let name = format!("blk.{layer}.{post}.weight");
        let post = self.placer.vector(&mut self.recording, &name, self.config.width)?;
        let kernel = RmsNormAdd::new(self.config.width, self.config.epsilon, &self.layout.tuning);
        self.recording.dispatch(kernel, &[self.act.o, post, next, self.act.x, self.act.h], RowClass::Any);
        Ok(())
    }

    fn norm(&mut self, weights: BufferId) {
        let kernel = RmsNorm::new(self.config.width, self.config.epsilon, &self.layout.tuning);
        self.recording.dispatch(kernel, &[self.act.x, weights, self.act.h], RowClass::Any);
    }

    #[expect(clippy::too_many_arguments, reason = "a projection is its operands")]
    fn project(
        &mut self,
        part: &Part,
        format: crate::quant::Format,
        k: usize,
        epilogue: Epilogue,
        x: BufferId,
        y: BufferId,
        (out_stride, offset): (usize, usize),
    ) {
        let out_offset = offset + part.first;
        let projection = Projection { format, k, n: part.num, epilogue, rows: Rows::Tokens, out_stride, out_offset };
        projection.record(&mut self.recording, &self.layout.tuning, part.buffer, x, y);
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
            };
            projection.record(&mut self.recording, &self.layout.tuning, part.buffer, act.last, io.logits);
        }
        self.recording.dispatch(EditLogits { vocab }, &[io.edits, io.samplings, io.logits], RowClass::Any);
        let kernel = Sample::new(vocab, &self.layout.tuning);
        self.recording.dispatch(kernel, &[io.logits, io.samplings, io.ids], RowClass::Any);
        Ok(())
    }
}

const _: () = assert!(MAX_GROUPS == 2, "TOKEN_WORDS has room for two slots");
