//! The cases that every kernel variant is checked with, natively and in a browser: shapes around the tile sizes.
#![allow(dead_code, reason = "each test binary uses a part")]

use pagewise::compute::{Reduce, Tuning};
use pagewise::kernels::cases::{self, AttentionShape, Case};
use pagewise::kernels::{Epilogue, KvFormat};
use pagewise::quant::Format;

/// Every way of choosing kernels. Four lanes: the width of SwiftShader's subgroups, and every other adapter has more.
pub(crate) const TUNINGS: [Tuning; 3] =
    [Tuning::SOFTWARE, Tuning::GPU, Tuning { reduce: Reduce::Subgroup, lanes: 4, ..Tuning::GPU }];

/// A group of cases, for one way of choosing kernels.
pub(crate) type Cases = fn(&Tuning) -> Vec<Case>;

/// All of them.
pub(crate) fn all(tuning: &Tuning) -> Vec<Case> {
    let groups: [Cases; 9] = [
        projections_of_every_format,
        projections_of_every_epilogue,
        projections_in_bytes,
        embeddings_of_every_format,
        norms,
        attention,
        values_beyond_f16,
        row_copies,
        sampling,
    ];
    groups.iter().flat_map(|cases| cases(tuning)).collect()
}

pub(crate) fn projections_of_every_format(tuning: &Tuning) -> Vec<Case> {
    // A piece knows nothing of how lanes add up, so few rows are multiplied under one tuning only, many under both that
    // choose other kernels for them: compiling takes most of the time.
    let t = if tuning.reduce == Reduce::Subgroup { 1 } else { 9 };
    Format::ALL.map(|format| cases::projection(tuning, format, [t, 37, 512], Epilogue::Store)).into()
}

pub(crate) fn projections_of_every_epilogue(tuning: &Tuning) -> Vec<Case> {
    let shapes = [(1, 1, 32), (2, 65, 64), (4, 128, 96), (5, 31, 32), (8, 33, 160), (33, 130, 64), (64, 64, 64)];
    let case =
        |epilogue| move |(t, n, k): (usize, usize, usize)| cases::projection(tuning, Format::Q4_1, [t, n, k], epilogue);
    let epilogues = [Epilogue::Store, Epilogue::Add, Epilogue::SiluGate, Epilogue::GeluGate];
    epilogues.into_iter().flat_map(|epilogue| shapes.map(case(epilogue))).collect()
}

pub(crate) fn projections_in_bytes(tuning: &Tuning) -> Vec<Case> {
    // One kernel, whatever the tuning.
    if *tuning != Tuning::GPU {
        return Vec::new();
    }
    let packable = Format::ALL.into_iter().filter(|format| format.is_packable());
    let formats = packable.map(|format| cases::projection_int8(tuning, format, [9, 37, 512], Epilogue::Store));
    let gated = cases::projection_int8(tuning, Format::Q4_1, [34, 33, 96], Epilogue::SiluGate);
    formats.chain([gated]).collect()
}

pub(crate) fn embeddings_of_every_format(tuning: &Tuning) -> Vec<Case> {
    // One kernel, whatever the tuning.
    if *tuning == TUNINGS[0] { Format::ALL.map(|format| cases::embed(format, 5, 256)).into() } else { Vec::new() }
}

pub(crate) fn norms(tuning: &Tuning) -> Vec<Case> {
    [(1, 4), (1, 576), (31, 640), (33, 64), (129, 132)].map(|(t, d)| cases::norms(tuning, t, d)).into()
}

pub(crate) fn attention(tuning: &Tuning) -> Vec<Case> {
    let mut all = Vec::new();
    for (heads, kv_heads) in [(1, 1), (4, 2), (9, 3), (8, 1)] {
        for (t, head_dim, window, neox) in [(1, 64, None, false), (2, 256, Some(8), true), (65, 32, Some(33), true)] {
            if t == 65 && heads != 9 {
                // Many tokens take software adapters seconds, and heads are independent of them.
                continue;
            }
            for kv in [KvFormat::F16, KvFormat::F32] {
                all.push(cases::attention(tuning, AttentionShape { t, heads, kv_heads, head_dim, window, kv, neox }));
            }
        }
    }
    all
}

pub(crate) fn values_beyond_f16(tuning: &Tuning) -> Vec<Case> {
    vec![cases::store_of_values_beyond_f16(tuning)]
}

pub(crate) fn row_copies(_: &Tuning) -> Vec<Case> {
    [(1, 1), (3, 64), (16, 96)].map(|(num_copies, row_words)| cases::copy_rows(num_copies, row_words)).into()
}

pub(crate) fn sampling(tuning: &Tuning) -> Vec<Case> {
    [40, 255, 3000].map(|vocab| cases::sample(tuning, vocab)).into()
}
