//! Models of real shapes with random weights, made as they are read: nothing is downloaded, nothing is stored.

use std::cell::RefCell;

use pagewise::gguf::{ByteSource, Gguf, TensorInfo};
use pagewise::kernels::cases::random_row;
use pagewise::quant::Format;
use pagewise::{Error, Result};

use crate::gguf_writer::GgufWriter;

/// The numbers of a model of the `llama` architecture.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    layers: usize,
    width: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    feed_forward: usize,
    vocab: usize,
    /// The embedding is the output matrix as well.
    tied: bool,
}

/// Tokens that every shape says it was trained for.
const CONTEXT_LENGTH: usize = 16_384;

/// Qwen3's heads are normalised, which `llama` does not know: its matrices and its cache are these all the same.
pub(crate) const SHAPES: [Shape; 4] = [
    Shape {
        name: "SmolLM2-135M",
        layers: 30,
        width: 576,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        feed_forward: 1536,
        vocab: 49_152,
        tied: true,
    },
    Shape {
        name: "Qwen3-0.6B",
        layers: 28,
        width: 1024,
        heads: 16,
        kv_heads: 8,
        head_dim: 128,
        feed_forward: 3072,
        vocab: 151_936,
        tied: true,
    },
    Shape {
        name: "Llama-3.2-1B",
        layers: 16,
        width: 2048,
        heads: 32,
        kv_heads: 8,
        head_dim: 64,
        feed_forward: 8192,
        vocab: 128_256,
        tied: true,
    },
    Shape {
        name: "Llama-3.1-8B",
        layers: 32,
        width: 4096,
        heads: 32,
        kv_heads: 8,
        head_dim: 128,
        feed_forward: 14_336,
        vocab: 128_256,
        tied: false,
    },
];

impl Shape {
    pub(crate) fn layers(&self) -> usize {
        self.layers
    }

    /// Weights that every token of a prompt is multiplied with: all matrices of all layers.
    pub(crate) fn layer_weights(&self) -> u64 {
        let attention = self.width * self.head_dim * (2 * self.heads + 2 * self.kv_heads);
        (self.layers * (attention + 3 * self.width * self.feed_forward)) as u64
    }

    /// Names and shapes of the matrices, in GGUF's order of sizes.
    fn matrices(&self) -> Vec<(String, [usize; 2])> {
        let (d, inner, kv) = (self.width, self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let mut all = vec![("token_embd.weight".to_owned(), [d, self.vocab])];
        if !self.tied {
            all.push(("output.weight".to_owned(), [d, self.vocab]));
        }
        let ff = self.feed_forward;
        let of_layer = [
            ("attn_q", [d, inner]),
            ("attn_k", [d, kv]),
            ("attn_v", [d, kv]),
            ("attn_output", [inner, d]),
            ("ffn_gate", [d, ff]),
            ("ffn_up", [d, ff]),
            ("ffn_down", [ff, d]),
        ];
        for layer in 0..self.layers {
            all.extend(of_layer.map(|(part, shape)| (format!("blk.{layer}.{part}.weight"), shape)));
        }
        all
    }

    fn norms(&self) -> Vec<String> {
        let of_layer = |layer| ["attn_norm", "ffn_norm"].map(|part| format!("blk.{layer}.{part}.weight"));
        (0..self.layers).flat_map(of_layer).chain(["output_norm.weight".to_owned()]).collect()
    }

    /// The model with its matrices in a format.
    pub(crate) async fn open(&self, format: Format) -> Result<(Gguf, RandomSource)> {
        let size = |value: usize| u32::try_from(value).map_err(|_| Error::BadRequest(format!("a size of {value}")));
        let mut file = GgufWriter::default().string("general.architecture", "llama").string("general.name", self.name);
        for (key, value) in [
            ("block_count", self.layers),
            ("embedding_length", self.width),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
            ("attention.key_length", self.head_dim),
            ("attention.value_length", self.head_dim),
            ("rope.dimension_count", self.head_dim),
            ("feed_forward_length", self.feed_forward),
            ("context_length", CONTEXT_LENGTH),
        ] {
            file = file.u32(&format!("llama.{key}"), size(value)?);
        }
        file = file.value("llama.attention.layer_norm_rms_epsilon", 6, &1e-5_f32.to_le_bytes());
        let vector = self.norms().into_iter().map(|name| (name, vec![self.width], Format::F32));
        let matrices = self.matrices().into_iter().map(|(name, shape)| (name, shape.to_vec(), format));
        let mut end = 0;
        for (name, shape, format) in vector.chain(matrices) {
            let sizes: Vec<_> = shape.iter().map(|&size| size as u64).collect();
            file = file.tensor_at(&name, &sizes, format.ggml_type(), end);
            let bytes = shape[1..].iter().product::<usize>() * format.row_bytes(shape[0]);
            end += (bytes as u64).next_multiple_of(32);
        }
        let header = file.build();
        let mut source = RandomSource { len: header.len() as u64 + end, header, gguf: None, row: RefCell::default() };
        let gguf = pagewise::gguf::open(&source).await?;
        source.gguf = Some(gguf.clone());
        Ok((gguf, source))
    }
}

/// The header, and behind it rows of random weights: one row per kind of tensor, again and again.
#[derive(Debug)]
pub(crate) struct RandomSource {
    header: Vec<u8>,
    len: u64,
    gguf: Option<Gguf>,
    /// The row that was made last, with its format and length.
    row: RefCell<Option<(Format, usize, Vec<u8>)>>,
}

impl RandomSource {
    fn tensor_at(&self, offset: u64) -> Option<&TensorInfo> {
        let tensors = self.gguf.as_ref()?.tensors.iter();
        tensors.filter(|tensor| tensor.offset <= offset).max_by_key(|tensor| tensor.offset)
    }
}

impl ByteSource for RandomSource {
    fn num_parts(&self) -> usize {
        1
    }

    async fn part_len(&self, _: usize) -> Result<u64> {
        Ok(self.len)
    }

    async fn read(&self, _: usize, offset: u64, len: usize) -> Result<Vec<u8>> {
        let Some(tensor) = self.tensor_at(offset) else {
            // The parser asks for more than the header while it does not know where that ends.
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.header.len());
            let mut bytes = self.header[start..(start + len).min(self.header.len())].to_vec();
            bytes.resize(len, 0);
            return Ok(bytes);
        };
        let (format, k) = (tensor.format, tensor.row_elements());
        let mut made = self.row.borrow_mut();
        if made.as_ref().is_none_or(|(f, n, _)| (*f, *n) != (format, k)) {
            *made = Some((format, k, random_row(format, k)));
        }
        let row = made.as_ref().map(|(_, _, row)| row.as_slice()).unwrap_or_default();
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            bytes.extend_from_slice(&row[..row.len().min(len - bytes.len())]);
        }
        Ok(bytes)
    }
}
