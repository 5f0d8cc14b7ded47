//! The cases that every kernel variant is checked with, natively and in a browser: shapes around the tile sizes.
#![allow(dead_code, reason = "each test binary uses a part")]

use pagewise::compute::{FewAttention, ManyAttention, ManyRows, Reduce, Tuning};
use pagewise::kernels::cases::{self, AttentionShape, Case};
use pagewise::kernels::{Epilogue, KvFormat};
use pagewise::quant::Format;

/// Every way of choosing kernels. Four lanes: the width of SwiftShader's subgroups, and every other adapter has more.
/// Splits are shorter than anywhere, because the cases' sequences are.
pub(crate) const TUNINGS: [Tuning; 3] = [
    Tuning { split_tokens: 32, most_splits: 2, ..Tuning::SOFTWARE },
    Tuning::GPU,
    Tuning {
        rows_per_lane: 2,
        many: ManyRows::Tile { rows: 32 },
        split_tokens: 16,
        row_lanes: 2,
        ..Tuning::GPU.with_lanes(Reduce::Subgroup, 4)
    },
];

/// A group of cases, for one way of choosing kernels.
pub(crate) type Cases = fn(&Tuning) -> Vec<Case>;

/// All of them.
pub(crate) fn all(tuning: &Tuning) -> Vec<Case> {
    let groups: [Cases; 14] = [
        projections_of_every_format,
        projections_of_every_epilogue,
        fused_projections,
        projections_in_quads,
        projections_in_f16,
        projections_in_bytes,
        embeddings_of_every_format,
        norms,
        attention,
        values_beyond_f16,
        row_copies,
        sampling,
        log_probabilities,
        pools,
    ];
    groups.iter().flat_map(|cases| cases(tuning)).collect()
}

pub(crate) fn projections_of_every_format(tuning: &Tuning) -> Vec<Case> {
    // A piece knows nothing of how lanes add up, so one row is multiplied under one tuning only, many under both that
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

pub(crate) fn projections_in_quads(tuning: &Tuning) -> Vec<Case> {
    if tuning.reduce != Reduce::Subgroup {
        return Vec::new();
    }
    let tuning = Tuning { many: ManyRows::Quads, ..*tuning };
    let shapes = [
        ([9, 1, 32], Epilogue::Store),
        ([15, 37, 96], Epilogue::Add),
        ([16, 64, 64], Epilogue::SiluGate),
        ([17, 131, 64], Epilogue::GeluGate),
        ([33, 520, 32], Epilogue::Store),
    ];
    shapes.map(|(shape, epilogue)| cases::projection(&tuning, Format::Q4_1, shape, epilogue)).into()
}

pub(crate) fn projections_in_bytes(tuning: &Tuning) -> Vec<Case> {
    // One kernel, whatever else the tuning says.
    if *tuning != Tuning::GPU {
        return Vec::new();
    }
    let tuning = Tuning { many: ManyRows::Int8, ..*tuning };
    let packable = Format::ALL.into_iter().filter(|format| format.is_packable());
    let formats = packable.map(|format| cases::projection_in_bytes(&tuning, format, [9, 37, 512], Epilogue::Store));
    let gated = cases::projection_in_bytes(&tuning, Format::Q4_1, [34, 33, 96], Epilogue::SiluGate);
    let few = Tuning { one_in_bytes: true, ..tuning };
    let one_row = [Format::Q4_0, Format::Q6K].map(|format| {
        let shape = [1, 37, format.block_elements().max(96)];
        cases::projection_in_bytes(&few, format, shape, Epilogue::Add)
    });
    let two = cases::fused_projection(&few, [Format::Q4K, Format::Q6K], [1, 9, 512], Epilogue::Store, true);
    let rounded = cases::rounded(two);
    formats.chain([gated, rounded]).chain(one_row).collect()
}

pub(crate) fn fused_projections(tuning: &Tuning) -> Vec<Case> {
    use Format::{Iq2Xxs, Iq3S, Q4_1, Q4K, Q6K, Q8_0};
    // Whatever a tuning chooses for its adapters.
    let tuning = Tuning { fused_norms: true, ..*tuning };
    let cases = [
        ([Q4_1, Q4_1], [1, 19, 96], Epilogue::Store, false),
        ([Q4K, Q6K], [1, 37, 512], Epilogue::Store, true),
        ([Q8_0, Q4_1], [4, 33, 160], Epilogue::SiluGate, false),
        // Both end in codebooks.
        ([Iq2Xxs, Iq3S], [1, 5, 256], Epilogue::GeluGate, true),
        ([Q4_1, Q4_1], [1, 18, 1536], Epilogue::GeluGate, true),
        // Several rows are normalised before, and take the gate first.
        ([Q4_1, Q8_0], [9, 37, 64], Epilogue::SiluGate, true),
        ([Q4_1, Q8_0], [9, 37, 64], Epilogue::GeluGate, false),
    ];
    let case = |(formats, shape, epilogue, closes)| cases::fused_projection(&tuning, formats, shape, epilogue, closes);
    if tuning.reduce == Reduce::Subgroup {
        // How lanes add up, with and without a closing norm; compiling takes most of the time.
        return cases.into_iter().take(2).map(case).collect();
    }
    let mut cases: Vec<_> = cases.map(case).into();
    let apart = Tuning { fused_norms: false, ..tuning };
    cases.push(cases::fused_projection(&apart, [Q4_1, Q8_0], [1, 5, 64], Epilogue::Store, true));
    // What a gate and an up-projection that are split take.
    cases.push(cases::projection(&tuning, Q4_1, [2, 31, 64], Epilogue::TimesSilu));
    cases.push(cases::projection(&tuning, Q4_1, [3, 6, 32], Epilogue::TimesGelu));
    cases
}

pub(crate) fn projections_in_f16(tuning: &Tuning) -> Vec<Case> {
    let ManyRows::Tile { rows } = tuning.many else { return Vec::new() };
    if tuning.reduce != Reduce::Workgroup {
        // The kernel adds nothing up across lanes.
        return Vec::new();
    }
    let tuning = Tuning { many: ManyRows::TileF16 { rows }, ..*tuning };
    let case = |(format, shape, epilogue)| cases::projection_in_f16(&tuning, format, shape, epilogue);
    let cases = [
        (Format::Q4_1, [33, 65, 512], Epilogue::Store),
        (Format::Q6K, [65, 37, 256], Epilogue::SiluGate),
        (Format::F32, [9, 5, 1536], Epilogue::Add),
    ];
    cases.map(case).into()
}

pub(crate) fn embeddings_of_every_format(tuning: &Tuning) -> Vec<Case> {
    // One kernel, whatever the tuning.
    if *tuning == TUNINGS[0] { Format::ALL.map(|format| cases::embed(format, 5, 256)).into() } else { Vec::new() }
}

pub(crate) fn norms(tuning: &Tuning) -> Vec<Case> {
    [(1, 4), (1, 576), (31, 640), (33, 64), (129, 132)].map(|(t, d)| cases::norms(tuning, t, d)).into()
}

pub(crate) fn attention(tuning: &Tuning) -> Vec<Case> {
    let shape = |t, position, [heads, kv_heads, head_dim]: [usize; 3], window, kv, neox| AttentionShape {
        t,
        position,
        heads,
        kv_heads,
        head_dim,
        window,
        kv,
        neox,
        ..AttentionShape::SMALL
    };
    let (half, full) = (KvFormat::F16, KvFormat::F32);
    // Compiling takes most of the time, so every shape of heads comes with one window and one format, and runs with few
    // tokens and many.
    let mut shapes = Vec::new();
    for (t, position) in [(1, 0), (1, 63), (2, 64), (4, 100), (5, 30), (33, 60)] {
        shapes.push(shape(t, position, [9, 3, 64], None, half, false));
    }
    for (t, position) in [(1, 32), (4, 31), (5, 95), (33, 1)] {
        shapes.push(shape(t, position, [4, 2, 32], Some(33), full, true));
    }
    for (t, position) in [(1, 90), (3, 7), (9, 20)] {
        shapes.push(shape(t, position, [4, 1, 256], Some(40), half, true));
    }
    for (t, position) in [(2, 90), (7, 64)] {
        shapes.push(shape(t, position, [2, 2, 128], None, full, false));
        shapes.push(shape(t, position, [8, 1, 32], Some(8), half, true));
    }
    let mut all: Vec<_> = shapes.into_iter().map(|shape| cases::attention(tuning, shape)).collect();
    // What every adapter can fall back to.
    let plain = Tuning { few_attention: FewAttention::PerQuery, many_attention: ManyAttention::PerQuery, ..*tuning };
    for (t, position) in [(2, 37), (65, 45)] {
        all.push(cases::attention(&plain, shape(t, position, [9, 3, 64], Some(33), half, true)));
    }
    all
}

pub(crate) fn values_beyond_f16(tuning: &Tuning) -> Vec<Case> {
    // Few tokens and many: different kernels store them.
    [3, 6].map(|t| cases::store_of_values_beyond_f16(tuning, t)).into()
}

pub(crate) fn row_copies(_: &Tuning) -> Vec<Case> {
    [(1, 1), (3, 64), (16, 96)].map(|(num_copies, row_words)| cases::copy_rows(num_copies, row_words)).into()
}

pub(crate) fn sampling(tuning: &Tuning) -> Vec<Case> {
    // The last is Gemma's: lavapipe ends what goes around more than 65,535 times, and says nothing. Chromium does not take it.
    let vocabs: &[usize] = if cfg!(target_arch = "wasm32") { &[40, 255, 3000] } else { &[40, 255, 3000, 262_144] };
    vocabs.iter().map(|&vocab| cases::sample(tuning, vocab)).collect()
}

pub(crate) fn log_probabilities(tuning: &Tuning) -> Vec<Case> {
    // Fewer tokens than can be asked for, too.
    let case = |vocab| [true, false].map(|of_ids| cases::log_probabilities(tuning, vocab, of_ids));
    [9, 255, 3000].into_iter().flat_map(case).collect()
}

pub(crate) fn pools(_: &Tuning) -> Vec<Case> {
    [(1, 4), (33, 260), (130, 64)].map(|(t, d)| cases::pool_rows(t, d)).into()
}
