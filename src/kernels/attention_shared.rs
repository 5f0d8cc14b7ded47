//! Attention of many tokens on adapters that compute on the CPU; see `shaders/attention_shared.wgsl`.

use super::{Attention, constant, word};
use crate::compute::{Access, Bindings, Kernel, Shader, Step};

/// Queries of a workgroup: what the vectors of a CPU hold.
const WIDTH: usize = 8;

/// Queries that walk the positions together.
#[derive(Debug, Clone)]
pub(super) struct AttentionShared(pub(super) Attention);

impl AttentionShared {
    /// Whether heads are made of pairs of quads, as the kernel takes them.
    pub(super) fn is_for(attention: &Attention) -> bool {
        attention.head_dim.is_multiple_of(8)
    }
}

impl Kernel for AttentionShared {
    fn shader(&self) -> Shader {
        let shader = Shader::new("attention_shared", include_str!("../../shaders/attention_shared.wgsl"));
        Shader { consts: vec![("HEAD_QUADS", word(self.0.head_dim / 4))], ..shader }
    }

    fn access(&self) -> &'static [Access] {
        self.0.access()
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let mut constants = self.0.numbers();
        constants.push(("WIDTH", constant(WIDTH)));
        constants
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        let shared_heads = word(self.0.heads / self.0.kv_heads);
        [(step.num_tokens * shared_heads).div_ceil(word(WIDTH)), word(self.0.kv_heads), 1]
    }

    fn cache_bytes(&self, position: usize) -> u64 {
        let num_reads = self.0.kv_heads * (self.0.heads / self.0.kv_heads).div_ceil(WIDTH);
        num_reads as u64 * self.0.head_bytes(self.0.num_seen(position))
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        self.0.twin(step, bindings);
    }
}
