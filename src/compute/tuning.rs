//! How kernels are chosen for an adapter: the one place where software adapters and real GPUs part ways.
//!
//! On adapters that compute on the CPU a barrier costs more than the work between two of them, so every row gets one
//! lane and data is shared in registers. On GPUs many lanes share a row, so that neighbouring lanes read neighbouring
//! words, and tiles are shared in workgroup memory.

use super::shader::Reduce;

/// Numbers and pieces that kernels are recorded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// How lanes that share a row add up.
    pub reduce: Reduce,
    /// Lanes that share a row: a power of two, 1 exactly when `reduce` is `Lane`.
    pub lanes: u32,
    /// Invocations in a workgroup.
    pub workgroup: u32,
    /// Lanes that share a sampled row's logits. At least `lanes`: the vocabulary is long enough to pay for barriers.
    pub sample_lanes: u32,
    /// Multiply many rows from tiles in workgroup memory (else from registers).
    pub tiled: bool,
    /// Most tokens in a step.
    pub max_tokens: usize,
}

impl Tuning {
    /// For adapters that compute on the CPU.
    pub const SOFTWARE: Self =
        Self { reduce: Reduce::Lane, lanes: 1, workgroup: 32, sample_lanes: 16, tiled: false, max_tokens: 32 };

    /// For GPUs, without subgroups.
    pub const GPU: Self =
        Self { reduce: Reduce::Workgroup, lanes: 32, workgroup: 128, sample_lanes: 256, tiled: true, max_tokens: 256 };

    /// Picks for an adapter. `subgroup_lanes` is its smallest subgroup, or 1 if it has none.
    pub fn choose(software: bool, subgroup_lanes: u32) -> Self {
        if software {
            return Self::SOFTWARE;
        }
        if subgroup_lanes >= 16 {
            let lanes = subgroup_lanes.min(32);
            return Self { reduce: Reduce::Subgroup, lanes, ..Self::GPU };
        }
        Self::GPU
    }

    /// This choice and safer ones, to be tried in order: without subgroups, then without anything that lanes share.
    pub fn fallbacks(self) -> Vec<Self> {
        let mut choices = vec![self, Self::GPU, Self { max_tokens: self.max_tokens, ..Self::SOFTWARE }];
        match self.reduce {
            Reduce::Subgroup => {}
            Reduce::Workgroup => drop(choices.remove(1)),
            Reduce::Lane => choices.truncate(1),
        }
        choices
    }

    /// Rows a workgroup handles when each has `lanes` lanes.
    pub fn groups(&self) -> u32 {
        self.workgroup / self.lanes
    }
}
