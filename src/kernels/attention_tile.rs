//! Attention of many tokens on GPUs; see `shaders/attention_tile.wgsl`.

use super::{Attention, word};
use crate::compute::{Access, Bindings, Kernel, Shader, Step};

/// Workgroup memory that queries take, at most: half of what every device has.
const QUERY_BYTES: usize = 8 << 10;
/// Workgroup memory that a tile of keys or values takes, at most; scores take no more than half of the rest.
const TILE_BYTES: usize = 4352;
/// Queries of a workgroup, at most.
const MOST_QUERIES: usize = 32;
/// Positions of a tile, at most.
const MOST_POSITIONS: usize = 16;
/// Invocations of a workgroup.
const WIDTH: usize = 128;

/// Queries that share tiles of keys and values in workgroup memory.
#[derive(Debug, Clone)]
pub(super) struct AttentionTile {
    attention: Attention,
    /// Queries of a workgroup.
    queries: usize,
    /// Positions of a tile.
    tile: usize,
}

impl AttentionTile {
    /// Whether the kernel can do it: an invocation has a quad of a head.
    pub(super) fn is_for(attention: &Attention) -> bool {
        attention.head_dim / 4 <= WIDTH
    }

    /// The same as `attention`, with as much in a workgroup as fits.
    pub(super) fn new(attention: Attention) -> Self {
        let queries = power_of_two(QUERY_BYTES / 4 / attention.head_dim, MOST_QUERIES);
        let row_bytes = 4 * (attention.kv.row_words(attention.head_dim) + 1);
        let tile = power_of_two(TILE_BYTES / row_bytes, MOST_POSITIONS);
        Self { attention, queries, tile }
    }
}

/// The largest power of two of at most `num` and `most`: what divides by a number does so in every loop.
fn power_of_two(num: usize, most: usize) -> usize {
    1 << num.clamp(1, most).ilog2()
}

impl Kernel for AttentionTile {
    fn shader(&self) -> Shader {
        let shader = Shader::new("attention_tile", include_str!("../../shaders/attention_tile.wgsl"));
        let quads = self.attention.head_dim / 4;
        let consts = vec![
            ("HEAD_QUADS", word(quads)),
            ("QUERIES", word(self.queries)),
            ("TILE", word(self.tile)),
            ("ROW_WORDS", word(self.attention.kv.row_words(self.attention.head_dim))),
            ("SCORES", word((self.queries * self.tile).div_ceil(WIDTH))),
            ("SUMS", word(self.queries.div_ceil(WIDTH / quads))),
        ];
        Shader { consts, ..shader }
    }

    fn access(&self) -> &'static [Access] {
        self.attention.access()
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        self.attention.numbers()
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        let shared_heads = word(self.attention.heads / self.attention.kv_heads);
        [(step.num_tokens * shared_heads).div_ceil(word(self.queries)), word(self.attention.kv_heads), 1]
    }

    fn cache_bytes(&self, position: usize) -> u64 {
        let workgroups = (self.attention.heads / self.attention.kv_heads).div_ceil(self.queries);
        (self.attention.kv_heads * workgroups) as u64 * self.attention.head_bytes(self.attention.num_seen(position))
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        self.attention.twin(step, bindings);
    }
}
