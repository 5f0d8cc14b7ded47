//! Keys and values as data: what makes them interchangeable, and reading and writing those of a block.

use super::batch::Forward;
use super::config::{ModelConfig, Rope, Sliding};
use super::loaded::Model;
use crate::Result;
use crate::compute::{BufferId, Executor};
use crate::kernels::KvFormat;
use crate::kv::{BLOCK_SIZE, BlockId};

/// Where a layer's keys and values are. Shape of each buffer: [slots, row].
#[derive(Debug, Clone, Copy)]
pub struct KvLayer {
    /// Layer group.
    pub group: usize,
    /// Keys.
    pub k: BufferId,
    /// Values.
    pub v: BufferId,
}

/// Whose keys and values these are. Where two are equal, one model's mean the same to the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvIdentity {
    /// What the model calls itself, for messages.
    pub name: String,
    /// A hash of the numbers of the model and of all its weights.
    pub model: u64,
    /// How they are stored: `f16` or `f32`.
    pub kv: &'static str,
    /// Per layer group, the 4-byte words of a block.
    pub block_words: Vec<usize>,
}

/// A loaded model whose keys and values can be read and written by the block, while no step runs.
pub trait KvBlocks: Forward {
    /// Whose they are.
    fn kv_identity(&self) -> KvIdentity;
    /// The words of blocks (of a layer group each), one after the other: for each layer of the group its keys, then its
    /// values.
    ///
    /// # Errors
    /// As [`Forward::forward`].
    fn read_blocks(&mut self, blocks: &[(usize, BlockId)]) -> impl Future<Output = Result<Vec<u32>>>;
    /// Writes the words of a block, before any later step.
    ///
    /// # Panics
    /// If there are more or fewer than a block has.
    fn write_block(&mut self, group: usize, block: BlockId, words: &[u32]);
    /// Waits until everything written has reached the device.
    ///
    /// # Errors
    /// As [`Forward::forward`].
    fn flush(&mut self) -> impl Future<Output = Result<()>>;
}

impl<E: Executor> Model<E> {
    /// Words of a block in one buffer: its rows are adjacent there.
    fn row_words(&self) -> usize {
        BLOCK_SIZE * self.layout.kv.row_words(self.config.kv_heads * self.config.head_dim)
    }

    /// The buffers of a layer group, in the order of a block's words.
    fn kv_buffers(&self, group: usize) -> impl Iterator<Item = BufferId> {
        self.kv_layers.iter().filter(move |layer| layer.group == group).flat_map(|&KvLayer { k, v, .. }| [k, v])
    }
}

impl<E: Executor> KvBlocks for Model<E> {
    fn kv_identity(&self) -> KvIdentity {
        let words = |group| self.kv_buffers(group).count() * self.row_words();
        KvIdentity {
            name: self.config.name.clone(),
            model: self.fingerprint,
            kv: match self.layout.kv {
                KvFormat::F16 => "f16",
                KvFormat::F32 => "f32",
            },
            block_words: (0..self.layout.groups.len()).map(words).collect(),
        }
    }

    async fn read_blocks(&mut self, blocks: &[(usize, BlockId)]) -> Result<Vec<u32>> {
        let len = self.row_words();
        let rows = |&(group, block): &(usize, BlockId)| {
            self.kv_buffers(group).map(move |buffer| (buffer, block as usize * len, len))
        };
        let ranges: Vec<_> = blocks.iter().flat_map(rows).collect();
        self.executor.read(&ranges).await
    }

    fn write_block(&mut self, group: usize, block: BlockId, words: &[u32]) {
        let len = self.row_words();
        let buffers: Vec<_> = self.kv_buffers(group).collect();
        assert_eq!(words.len(), buffers.len() * len, "words of a block of group {group}");
        for (buffer, rows) in buffers.into_iter().zip(words.chunks_exact(len)) {
            self.executor.write(buffer, block as usize * len, rows);
        }
    }

    async fn flush(&mut self) -> Result<()> {
        self.executor.flush().await
    }
}

/// All numbers of a model that its keys and values depend on, as bytes to be hashed.
pub(super) fn numbers(config: &ModelConfig) -> Vec<u8> {
    // Named one by one, so that a new number cannot be forgotten.
    let ModelConfig {
        architecture,
        name: _,
        num_layers,
        width,
        heads,
        kv_heads,
        head_dim,
        feed_forward,
        vocab,
        context_length: _,
        epsilon,
        embedding_scale,
        query_scale,
        gate,
        qk_norm,
        post_norm,
        rope,
        sliding,
        pools_by_mean: _,
    } = config;
    let sizes = [num_layers, width, heads, kv_heads, head_dim, feed_forward, vocab];
    let scales = [epsilon, embedding_scale, query_scale].map(|number| number.to_bits());
    let of_rope = |Rope { dim, base, divisor, neox, has_factors }: &Rope| {
        (*dim, base.to_bits(), divisor.to_bits(), *neox, *has_factors)
    };
    let windows = sliding.as_ref().map(|Sliding { window, period, rope }| (window, period, of_rope(rope)));
    let flags = (gate, qk_norm, post_norm);
    format!("{architecture} {sizes:?} {scales:?} {flags:?} {:?} {windows:?}", of_rope(rope)).into_bytes()
}
