//! What a file's metadata says of the architecture, in one form for all of them.

use crate::gguf::{Gguf, Metadata};
use crate::kernels::Epilogue;
use crate::{Error, Result};

/// Architectures that this engine runs, as GGUF names them.
pub const SUPPORTED: [&str; 2] = ["llama", "gemma3"];

/// Largest width, vocabulary or context, and longest window that makes a difference.
const MAX_SIZE: usize = 1 << 24;

/// GGUF's number of pooling by the mean; 0 is none.
const MEAN_POOLING: usize = 1;

/// The numbers of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// GGUF's name of the architecture.
    pub architecture: String,
    /// The model's own name, if it has one.
    pub name: String,
    /// Layers.
    pub num_layers: usize,
    /// D, model width.
    pub width: usize,
    /// H, query heads.
    pub heads: usize,
    /// Key and value heads, a divisor of H.
    pub kv_heads: usize,
    /// Values of a head.
    pub head_dim: usize,
    /// Width of the feed-forward part.
    pub feed_forward: usize,
    /// V.
    pub vocab: usize,
    /// Tokens that the model was trained to attend over.
    pub context_length: usize,
    /// Of all norms.
    pub epsilon: f32,
    /// Multiplies embeddings.
    pub embedding_scale: f32,
    /// Multiplies queries.
    pub query_scale: f32,
    /// The gate's function.
    pub gate: Epilogue,
    /// Heads of q and k are normalised.
    pub qk_norm: bool,
    /// Blocks end in a norm of their own.
    pub post_norm: bool,
    /// Rotation of layers that see the whole context.
    pub rope: Rope,
    /// Sliding-window layers, if there are any.
    pub sliding: Option<Sliding>,
    /// Whether the mean of its last hidden states may stand for a text: unless the file asks for another pooling.
    pub pools_by_mean: bool,
}

/// Rotary position embedding of one kind of layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rope {
    /// Leading dimensions of a head that are rotated.
    pub dim: usize,
    /// Base of the geometric series of frequencies.
    pub base: f64,
    /// Positions are divided by this (linear scaling).
    pub divisor: f64,
    /// Pairs are half a head apart instead of neighbours.
    pub neox: bool,
    /// The file's `rope_freqs.weight` divides the frequencies.
    pub has_factors: bool,
}

/// Layers that see only the last tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sliding {
    /// Tokens that a query sees, its own included.
    pub window: usize,
    /// Every `period`-th layer sees the whole context instead.
    pub period: usize,
    /// Their rotation.
    pub rope: Rope,
}

impl ModelConfig {
    /// Reads the configuration.
    ///
    /// # Errors
    /// `unsupported_model` for an architecture, or a variation of one, that this engine does not run;
    /// `corrupt_model` for numbers that contradict each other.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self> {
        let metadata = &gguf.metadata;
        let architecture = metadata.str("general.architecture")?.to_owned();
        if !SUPPORTED.contains(&architecture.as_str()) {
            return Err(Error::UnsupportedModel(format!(
                "architecture {architecture:?} is not supported; supported are {}",
                SUPPORTED.join(", ")
            )));
        }
        let keys = Keys { metadata, architecture: &architecture };
        let vocab = gguf.tensor("token_embd.weight")?.num_rows();
        if let Some(crate::gguf::Value::Array(tokens)) = metadata.get("tokenizer.ggml.tokens")
            && tokens.len() > vocab
        {
            let message = format!("a vocabulary of {} tokens, token_embd.weight has {vocab} rows", tokens.len());
            return Err(Error::CorruptModel(message));
        }
        let is_gemma = architecture == "gemma3";
        let width = keys.size("embedding_length")?;
        let heads = keys.size("attention.head_count")?;
        let kv_heads = keys.optional_size("attention.head_count_kv")?.unwrap_or(heads);
        if heads == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(Error::CorruptModel(format!("{heads} heads over {kv_heads} key-value heads")));
        }
        let head_dim = keys.optional_size("attention.key_length")?.unwrap_or(width / heads);
        let num_layers = keys.size("block_count")?;
        let rope = keys.rope(head_dim, is_gemma, gguf.find("rope_freqs.weight").is_some())?;
        let config = Self {
            name: metadata.opt_str("general.name")?.unwrap_or(&architecture).to_owned(),
            num_layers,
            width,
            heads,
            kv_heads,
            head_dim,
            feed_forward: keys.size("feed_forward_length")?,
            vocab,
            context_length: keys.size("context_length")?,
            epsilon: metadata.f32(&keys.key("attention.layer_norm_rms_epsilon"))?,
            embedding_scale: if is_gemma { square_root(width) } else { 1.0 },
            query_scale: 1.0 / square_root(query_width(is_gemma, num_layers, width, heads, head_dim)),
            gate: if is_gemma { Epilogue::GeluGate } else { Epilogue::SiluGate },
            qk_norm: is_gemma,
            post_norm: is_gemma,
            rope,
            sliding: if is_gemma { keys.sliding(rope)? } else { None },
            pools_by_mean: keys.optional_size("pooling_type")?.is_none_or(|kind| kind <= MEAN_POOLING),
            architecture,
        };
        config.check(&config.keys(metadata))?;
        Ok(config)
    }

    fn keys<'a>(&'a self, metadata: &'a Metadata) -> Keys<'a> {
        Keys { metadata, architecture: &self.architecture }
    }

    /// Whether a layer sees only a window.
    pub fn is_sliding(&self, layer: usize) -> bool {
        self.sliding.is_some_and(|sliding| !(layer + 1).is_multiple_of(sliding.period))
    }

    /// The windows of the layer groups, the whole-context group first; a model has one group or both.
    pub fn groups(&self) -> Vec<Option<usize>> {
        let sliding = (0..self.num_layers).filter(|&layer| self.is_sliding(layer)).count();
        let window = self.sliding.map(|sliding| sliding.window);
        match sliding {
            0 => vec![None],
            all if all == self.num_layers => vec![window],
            _ => vec![None, window],
        }
    }

    /// The layer group of a layer: an index into [`ModelConfig::groups`].
    pub fn group(&self, layer: usize) -> usize {
        usize::from(self.is_sliding(layer) && self.groups().len() == 2)
    }

    /// Refuses what would be computed wrongly.
    fn check(&self, keys: &Keys<'_>) -> Result<()> {
        let unsupported = |what: String| Err(Error::UnsupportedModel(format!("{}: {what}", self.architecture)));
        for key in ["expert_count", "attention.clamp_kqv", "final_logit_softcapping", "attn_logit_softcapping"] {
            if keys.metadata.get(&keys.key(key)).is_some_and(|value| !is_zero(value)) {
                return unsupported(format!("{} is not supported", keys.key(key)));
            }
        }
        if keys.optional_size("attention.value_length")?.is_some_and(|length| length != self.head_dim) {
            return unsupported(format!("keys of {} and values of another length are not supported", self.head_dim));
        }
        let sizes = [self.num_layers, self.width, self.feed_forward, self.vocab, self.context_length, self.head_dim];
        if sizes.contains(&0) || sizes.iter().any(|&size| size > MAX_SIZE) || self.num_layers > 1024 {
            return Err(Error::CorruptModel(format!(
                "{} layers, width {}, feed-forward width {}, {} tokens of vocabulary, context {}, heads of {}: each has to be \
                 1 to {MAX_SIZE}, and layers 1 to 1024",
                self.num_layers, self.width, self.feed_forward, self.vocab, self.context_length, self.head_dim
            )));
        }
        // On 32-bit targets a product that wraps would pass for the tensors' shapes.
        if self.heads.checked_mul(self.head_dim).is_none_or(|size| size > MAX_SIZE) {
            let [heads, head_dim] = [self.heads, self.head_dim];
            return Err(Error::CorruptModel(format!("{heads} heads of {head_dim} values, at most {MAX_SIZE} in all")));
        }
        if !(self.epsilon.is_finite() && self.epsilon >= 0.0) {
            let key = keys.key("attention.layer_norm_rms_epsilon");
            return Err(Error::CorruptModel(format!("{key} is {}", self.epsilon)));
        }
        if !self.head_dim.is_multiple_of(4) || self.head_dim > 512 || !self.rope.dim.is_multiple_of(2) {
            return unsupported(format!(
                "heads of {} values, {} rotated, are not supported",
                self.head_dim, self.rope.dim
            ));
        }
        for (what, size) in [
            ("width", self.width),
            ("feed-forward width", self.feed_forward),
            ("width of all heads", self.heads * self.head_dim),
        ] {
            if !size.is_multiple_of(32) {
                return unsupported(format!(
                    "a {what} of {size} is not supported: weight rows are read 32 values at a time"
                ));
            }
        }
        if self.rope.dim > self.head_dim {
            return Err(Error::CorruptModel(format!("{} of {} dimensions rotated", self.rope.dim, self.head_dim)));
        }
        Ok(())
    }
}

fn is_zero(value: &crate::gguf::Value) -> bool {
    use crate::gguf::Value;
    match value {
        Value::U32(0) | Value::U64(0) => true,
        Value::F32(number) => *number == 0.0,
        _ => false,
    }
}

fn square_root(size: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "sizes are below 2^24")]
    let size = size as f32;
    size.sqrt()
}

/// Gemma 3 27B, which is told by its 62 layers, scales queries by the width per head instead of the head's length.
fn query_width(is_gemma: bool, num_layers: usize, width: usize, heads: usize, head_dim: usize) -> usize {
    if is_gemma && num_layers == 62 { width / heads } else { head_dim }
}

/// Metadata under the architecture's prefix.
struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    fn size(&self, name: &str) -> Result<usize> {
        self.metadata.u32(&self.key(name)).map(|size| size as usize)
    }

    fn optional_size(&self, name: &str) -> Result<Option<usize>> {
        Ok(self.metadata.opt_u32(&self.key(name))?.map(|size| size as usize))
    }

    fn rope(&self, head_dim: usize, neox: bool, has_factors: bool) -> Result<Rope> {
        let base = self.metadata.opt_f32(&self.key("rope.freq_base"))?.unwrap_or(10_000.0);
        let kind = self.metadata.opt_str(&self.key("rope.scaling.type"))?.unwrap_or("none");
        let divisor = match kind {
            "none" => 1.0,
            "linear" => self.metadata.f32(&self.key("rope.scaling.factor"))?,
            other => {
                let key = self.key("rope.scaling.type");
                return Err(Error::UnsupportedModel(format!("{key} is {other:?}; supported are none, linear")));
            }
        };
        if !(base.is_finite() && base > 0.0 && divisor.is_finite() && divisor > 0.0) {
            return Err(Error::CorruptModel(format!("rope base {base}, scaling factor {divisor}")));
        }
        let dim = self.optional_size("rope.dimension_count")?.unwrap_or(head_dim);
        Ok(Rope { dim, base: base.into(), divisor: divisor.into(), neox, has_factors })
    }

    /// Gemma 3: five sliding-window layers to one that sees the whole context, with a rotation of their own.
    fn sliding(&self, rope: Rope) -> Result<Option<Sliding>> {
        let Some(window) = self.optional_size("attention.sliding_window")?.filter(|&window| window > 0) else {
            return Ok(None);
        };
        let base = self.metadata.opt_f32(&self.key("rope.freq_base_swa"))?.unwrap_or(10_000.0);
        let rope = Rope { base: base.into(), divisor: 1.0, ..rope };
        Ok(Some(Sliding { window: window.min(MAX_SIZE), period: 6, rope }))
    }
}
