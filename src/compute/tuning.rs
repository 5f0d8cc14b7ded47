//! How kernels are chosen for an adapter: the one place where software adapters and real GPUs part ways.
//!
//! On adapters that compute on the CPU a barrier costs more than the work between two of them, so data is shared in
//! registers, and few lanes share a row: none on SwiftShader, eight on lavapipe, whose vectors are that wide (measured with
//! `cargo bench --bench projection`). There norms stay apart: a lane's part of a norm is as much work as the row of weights
//! that it is computed for, and launching a kernel costs little. On GPUs many lanes share a row, so that neighbouring lanes read neighbouring words,
//! and tiles are shared in workgroup memory.

use super::shader::Reduce;

/// What kernels are chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdapterKind {
    /// Computes on the CPU, four lanes at a time.
    SwiftShader,
    /// Computes on the CPU: lavapipe, WARP, or one that does not tell its name.
    Software,
    /// Computes on a GPU.
    Gpu,
}

impl AdapterKind {
    /// Tells from an adapter's names, and from whether it says that it computes on the CPU.
    pub fn of(names: &str, is_cpu: bool) -> Self {
        let names = names.to_lowercase();
        let is_known = ["llvmpipe", "lavapipe", "warp", "basic render"].iter().any(|known| names.contains(known));
        if names.contains("swiftshader") {
            Self::SwiftShader
        } else if is_known || is_cpu {
            Self::Software
        } else {
            Self::Gpu
        }
    }
}

/// How many rows are multiplied with a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManyRows {
    /// From registers alone, without barriers.
    Registers,
    /// As [`ManyRows::Registers`], but four lanes read rows for each other; only where the adapter has subgroups.
    Quads,
    /// From tiles in workgroup memory.
    Tile {
        /// Rows of x in a tile: 32 or 64.
        rows: u32,
    },
    /// As [`ManyRows::Tile`], multiplied in f16 and added up in f32; only where the adapter has f16.
    TileF16 {
        /// Rows of x in a tile: 32 or 64.
        rows: u32,
    },
    /// In products of bytes, where the format's weights are such, else as [`ManyRows::Tile`]: activations are rounded.
    Int8,
}

impl ManyRows {
    /// What takes no workgroup memory, where the adapter's smallest subgroup has so many lanes, or 1 without subgroups.
    pub fn from_registers(subgroup_lanes: u32) -> Self {
        if subgroup_lanes >= 4 { Self::Quads } else { Self::Registers }
    }
}

/// How the invocations of a workgroup share rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    /// How lanes that share a row add up.
    pub reduce: Reduce,
    /// Lanes that share a row: a power of two, 1 exactly when `reduce` is `Lane`.
    pub lanes: u32,
    /// Invocations in a workgroup.
    pub workgroup: u32,
}

impl Lanes {
    /// Each row has a lane of its own.
    pub const ALONE: Self = Self { reduce: Reduce::Lane, lanes: 1, workgroup: 16 };

    /// Rows that a workgroup handles.
    pub fn groups(&self) -> u32 {
        self.workgroup / self.lanes
    }

    /// The same without subgroups.
    fn without_subgroups(self) -> Self {
        if self.reduce == Reduce::Subgroup { Self { reduce: Reduce::Workgroup, ..self } } else { self }
    }
}

/// How few rows attend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FewAttention {
    /// One dispatch rotates and stores; in a second one every (token, head) reads its keys and values itself.
    PerQuery,
    /// One dispatch does all that, split over the sequence, and heads share what they read; a second one ends it where
    /// there are several splits.
    Split,
}

/// How many rows attend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManyAttention {
    /// Every (token, head) reads its keys and values itself.
    PerQuery,
    /// Queries that share keys and values are lanes that read them together.
    Shared,
    /// Keys and values are shared in workgroup memory.
    Tile,
}

/// Numbers and pieces that kernels are recorded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// How lanes that share a row add up.
    pub reduce: Reduce,
    /// Lanes that share a row: a power of two, 1 exactly when `reduce` is `Lane`.
    pub lanes: u32,
    /// Invocations in a workgroup.
    pub workgroup: u32,
    /// Lanes that share a sampled row's logits. At least `lanes`: the vocabulary is long enough to pay for barriers, and
    /// lavapipe ends what goes around more than 65,535 times.
    pub sample_lanes: u32,
    /// Lanes when one row is multiplied, or few.
    pub matvec: Lanes,
    /// Weight rows that a lane takes at once when one row is multiplied: 2 or 4.
    pub rows_per_lane: u32,
    /// Multiply one row in products of bytes, where the formats' weights are such: activations are rounded.
    pub one_in_bytes: bool,
    /// How many rows are multiplied.
    pub many: ManyRows,
    /// Whether the projections of one row normalise their input on the way, which saves two dispatches a layer.
    pub fused_norms: bool,
    /// How few rows attend.
    pub few_attention: FewAttention,
    /// How many rows attend.
    pub many_attention: ManyAttention,
    /// Tokens of a sequence at least that few rows attend to as one task.
    pub split_tokens: usize,
    /// Tasks that a sequence is split into at most; partial results are kept for all of them.
    pub most_splits: usize,
    /// Quads of queries that a lane keeps when few rows attend, at most 256: heads share a key as far as that goes.
    pub query_quads: usize,
    /// Lanes that share a position when few rows attend: a power of two, at most `lanes`, 1 without subgroups.
    pub row_lanes: u32,
    /// Most tokens in a step.
    pub max_tokens: usize,
    /// How often an invocation may go around its loops: lavapipe ends them at 65,535 and says nothing.
    pub max_rounds: Option<usize>,
    /// Whether a long step is cut into several submissions, so that others who draw on the same device get their turn.
    /// Where the CPU computes, a page is drawn by other threads, and more submissions only delay it
    /// (`benches/frames/run.mjs`).
    pub cuts_steps: bool,
}

impl Tuning {
    /// For SwiftShader, and what every adapter can fall back to: lanes share nothing.
    pub const SOFTWARE: Self = Self {
        reduce: Reduce::Lane,
        lanes: 1,
        workgroup: 32,
        sample_lanes: 256,
        matvec: Lanes::ALONE,
        rows_per_lane: 4,
        one_in_bytes: false,
        many: ManyRows::Registers,
        fused_norms: false,
        few_attention: FewAttention::Split,
        many_attention: ManyAttention::Shared,
        split_tokens: 64,
        most_splits: 16,
        query_quads: 64,
        row_lanes: 1,
        max_tokens: 32,
        max_rounds: Some(65_000),
        cuts_steps: false,
    };

    /// For other adapters that compute on the CPU, without subgroups. What lanes share at a split's ends costs lavapipe
    /// much, so splits are few.
    pub const WIDE_SOFTWARE: Self = Self { most_splits: 8, ..Self::SOFTWARE }.with_lanes(Reduce::Workgroup, 8);

    /// For GPUs, without subgroups.
    pub const GPU: Self = Self {
        reduce: Reduce::Workgroup,
        lanes: 32,
        workgroup: 128,
        sample_lanes: 256,
        matvec: Lanes { reduce: Reduce::Workgroup, lanes: 32, workgroup: 128 },
        rows_per_lane: 4,
        one_in_bytes: false,
        many: ManyRows::Tile { rows: 64 },
        fused_norms: true,
        few_attention: FewAttention::Split,
        many_attention: ManyAttention::Tile,
        split_tokens: 64,
        most_splits: 128,
        query_quads: 16,
        row_lanes: 1,
        max_tokens: 256,
        max_rounds: None,
        cuts_steps: true,
    };

    /// The same with other lanes, of all kernels.
    pub const fn with_lanes(self, reduce: Reduce, lanes: u32) -> Self {
        let matvec = Lanes { reduce, lanes, ..self.matvec };
        Self { reduce, lanes, matvec, ..self }
    }

    /// Picks for an adapter. `subgroup_lanes` is its smallest subgroup, or 1 if it has none.
    pub fn choose(kind: AdapterKind, subgroup_lanes: u32) -> Self {
        let many = ManyRows::from_registers(subgroup_lanes);
        let choice = match kind {
            AdapterKind::SwiftShader => return Self { many, ..Self::SOFTWARE },
            AdapterKind::Software => Self { many, ..Self::WIDE_SOFTWARE },
            AdapterKind::Gpu => Self::GPU,
        };
        // Subgroups narrower than eight save little over a tree in workgroup memory.
        if subgroup_lanes < 8 {
            return choice;
        }
        Self { row_lanes: 8, ..choice.with_lanes(Reduce::Subgroup, subgroup_lanes.min(choice.lanes)) }
    }

    /// This choice and safer ones, to be tried in order: without rounding, then without subgroups, then without anything that
    /// lanes share.
    pub fn fallbacks(self) -> Vec<Self> {
        let mut all = vec![self];
        let mut last = self;
        let many = match self.many {
            ManyRows::TileF16 { rows } => ManyRows::Tile { rows },
            ManyRows::Int8 => ManyRows::Tile { rows: 64 },
            exact => exact,
        };
        let in_f32 = Self { many, one_in_bytes: false, ..self };
        let lanes = Lanes { reduce: self.reduce, lanes: self.lanes, workgroup: self.workgroup }.without_subgroups();
        let row_lanes = if lanes.reduce == self.reduce { self.row_lanes } else { 1 };
        let many = if many == ManyRows::Quads { ManyRows::Registers } else { many };
        let shared = Self { reduce: lanes.reduce, matvec: self.matvec.without_subgroups(), row_lanes, many, ..in_f32 };
        for safer in [in_f32, shared] {
            if safer != last {
                last = safer;
                all.push(last);
            }
        }
        let alone = Self {
            few_attention: FewAttention::PerQuery,
            many_attention: ManyAttention::PerQuery,
            max_tokens: self.max_tokens,
            max_rounds: self.max_rounds,
            cuts_steps: self.cuts_steps,
            ..Self::SOFTWARE
        };
        if last != alone {
            all.push(alone);
        }
        all
    }

    /// The longest context that attention can walk, for heads of so many values.
    pub fn max_context(&self, head_dim: usize) -> usize {
        let Some(max_rounds) = self.max_rounds else { return usize::MAX };
        let quads = head_dim / 4;
        // Rounds for so many positions: over the quads of each key, and of each value.
        let per_query = max_rounds * self.lanes as usize / (2 * quads);
        let few = match self.few_attention {
            FewAttention::PerQuery => per_query,
            FewAttention::Split => max_rounds * self.lanes as usize * self.most_splits / quads,
        };
        let many = match self.many_attention {
            ManyAttention::Shared => max_rounds * 8 / quads,
            ManyAttention::PerQuery | ManyAttention::Tile => per_query,
        };
        few.min(many)
    }

    /// Rows a workgroup handles when each has `lanes` lanes.
    pub fn groups(&self) -> u32 {
        self.workgroup / self.lanes
    }
}
