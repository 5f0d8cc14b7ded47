//! Cases of the matrix kernels, the embedding and the norms.

use super::{Builder, Case, step};
use crate::compute::{RowClass, Rows, Tuning};
use crate::kernels::{
    DRAWN, Embed, Epilogue, FusedNorm, GatherRows, NOT_FINITE, Operand, Projection, RmsNorm, RmsNormAdd, TOKEN_WORDS,
    word,
};
use crate::quant::Format;

/// A projection of `t` rows in every way that the tuning offers for that many.
pub fn projection(tuning: &Tuning, format: Format, [t, n, k]: [usize; 3], epilogue: Epilogue) -> Case {
    let mut b = Builder::new();
    let num_rows = n * if epilogue.is_gated() { 2 } else { 1 };
    let weights = b.random.weights(format, num_rows, k);
    let weights = b.input("weights", weights);
    let (x, y) = (b.floats("x", t * k), b.floats("y", t * (n + 3)));
    let p = Projection { format, k, n, epilogue, rows: Rows::Sampled, out_stride: n + 3, out_offset: 2, epsilon: 0.0 };
    p.record(&mut b.recording, tuning, weights, x, y);
    b.finish(format!("projection {} {epilogue:?} t={t} n={n} k={k}", format.name()), step(t), vec![y], false)
}

/// A projection in products of bytes, of values that bytes hold exactly: then nothing is lost, and any error shows.
pub fn projection_in_bytes(tuning: &Tuning, format: Format, [t, n, k]: [usize; 3], epilogue: Epilogue) -> Case {
    let mut b = Builder::new();
    let num_rows = n * if epilogue.is_gated() { 2 } else { 1 };
    let weights = b.random.weights(format, num_rows, k);
    let weights = b.input("weights", weights);
    let x = (0..t * k).map(|at| if at % 32 == 5 { -127.0 } else { (127.0 * b.random.float()).round() });
    let x = x.map(|value: f32| (value / 127.0).to_bits()).collect();
    let (x, y) = (b.input("x", x), b.floats("y", t * (n + 3)));
    let p = Projection { format, k, n, epilogue, rows: Rows::Sampled, out_stride: n + 3, out_offset: 2, epsilon: 0.0 };
    p.record(&mut b.recording, tuning, weights, x, y);
    b.finish(format!("projection in bytes {} {epilogue:?} t={t} n={n} k={k}", format.name()), step(t), vec![y], false)
}

/// A projection of many rows from tiles in f16. One row has a value beyond f16's range: its outputs are no numbers.
pub fn projection_in_f16(tuning: &Tuning, format: Format, [t, n, k]: [usize; 3], epilogue: Epilogue) -> Case {
    let mut case = projection(tuning, format, [t, n, k], epilogue);
    let (_, x) = &mut case.inputs[1];
    x[k + 3] = (-7e4_f32).to_bits();
    case.name += " in f16";
    case.tolerance = F16_TOLERANCE;
    case
}

/// As the other tolerance, for products and sums of 32 in f16. On lavapipe the worst value of the tests is off by 0.009, and
/// outputs by 0.0007 of their root mean square.
const F16_TOLERANCE: f32 = 0.02;

/// The case in products of bytes of values that bytes do not hold: where the device and the twin round one of them to
/// different sides, which their norms' last bits decide, outputs differ by a quantum of it.
pub fn rounded(mut case: Case) -> Case {
    case.name += " in bytes";
    case.tolerance = INT8_TOLERANCE;
    case
}

/// As the other tolerance: a quantum is 1/127 of the largest of 32 values, weights are one at most.
const INT8_TOLERANCE: f32 = 0.02;

/// Projections of rows that are normalised on the way, if they are few: `n` outputs by weights of each of two formats,
/// or, with a gated epilogue, the gate by one and the up-projection by the other. Weights of one format are one buffer.
pub fn fused_projection(
    tuning: &Tuning,
    formats: [Format; 2],
    [t, n, k]: [usize; 3],
    epilogue: Epilogue,
    closes_a_block: bool,
) -> Case {
    let mut b = Builder::new();
    let is_one = formats[0] == formats[1];
    let weights: Vec<_> = (formats[usize::from(is_one)..].iter())
        .map(|&format| {
            let weights = b.random.weights(format, if is_one { 2 * n } else { n }, k);
            b.input("weights", weights)
        })
        .collect();
    let norms = b.floats("norms", 2 * k);
    let [x, o, x_next, h] = ["x", "o", "x_next", "h"].map(|label| b.floats(label, t * k));
    let width = if epilogue.is_gated() { n } else { 2 * n };
    let y = b.floats("y", t * (width + 1));
    let epsilon = 1e-5;
    let class = if tuning.fused_norms { RowClass::more_than_one(Rows::Tokens) } else { RowClass::Any };
    let norm = if closes_a_block {
        b.recording.dispatch(RmsNormAdd::new(k, epsilon, tuning), &[o, norms, x, x_next, h], class);
        FusedNorm::AddNorm { x, o, norms, x_next }
    } else {
        b.recording.dispatch(RmsNorm::new(k, epsilon, tuning), &[x, norms, h], class);
        FusedNorm::Norm { x, weights: norms }
    };
    let operand = Operand { rows: h, fused: tuning.fused_norms.then_some(norm) };
    let projection = |format, n, epilogue, out_offset| Projection {
        format,
        k,
        n,
        epilogue,
        rows: Rows::Tokens,
        out_stride: width + 1,
        out_offset,
        epsilon,
    };
    let gate = epilogue.is_gated().then_some(epilogue);
    if let [weights] = weights[..] {
        projection(formats[0], width, epilogue, 1).record(&mut b.recording, tuning, weights, operand, y);
    } else {
        let (epilogue, second) = if gate.is_some() { (Epilogue::Store, 1) } else { (epilogue, 1 + n) };
        let pair = [projection(formats[0], n, epilogue, 1), projection(formats[1], n, epilogue, second)];
        let weights = [weights[0], weights[1]];
        Projection::record_pair(pair, gate, &mut b.recording, tuning, weights, operand, y);
    }
    let names = formats.map(Format::name);
    let name = format!("fused {names:?} {epilogue:?} t={t} n={n} k={k}, closes a block: {closes_a_block}");
    b.finish(name, step(t), vec![y, x_next], false)
}

/// Embedding rows of a split table; from the second on, every other token is one that the step before drew.
pub fn embed(format: Format, t: usize, d: usize) -> Case {
    let mut b = Builder::new();
    let mut tokens = b.tokens(t, 0, 24);
    let mut drawn: Vec<u32> = tokens.chunks_exact(TOKEN_WORDS).rev().map(|token| token[0] + 8).collect();
    for (row, token) in tokens.chunks_exact_mut(TOKEN_WORDS).enumerate().skip(1).step_by(2) {
        token[0] = DRAWN | word(row);
    }
    // Nothing was drawn for the first of them.
    drawn.iter_mut().skip(1).take(1).for_each(|id| *id = NOT_FINITE);
    let (tokens, drawn) = (b.input("tokens", tokens), b.input("drawn", drawn));
    let x = b.floats("x", t * d);
    for part in 0..2 {
        let weights = b.random.weights(format, 16, d);
        let weights = b.input("weights", weights);
        let kernel = Embed { format, d, first_row: 16 * part, num_rows: 16, scale: 2.5 };
        b.recording.dispatch(kernel, &[weights, tokens, drawn, x], RowClass::Any);
    }
    b.finish(format!("embed {} t={t} d={d}", format.name()), step(t), vec![x], true)
}

/// Both norms and the gathering of rows.
pub fn norms(tuning: &Tuning, t: usize, d: usize) -> Case {
    let mut b = Builder::new();
    let (o, w, norms) = (b.floats("o", t * d), b.floats("w", d), b.floats("norms", 2 * d));
    let [x, x_next, y, z, gathered] = ["x", "x_next", "y", "z", "gathered"].map(|label| b.floats(label, t * d));
    let rows = b.input("rows", (0..word(t)).rev().collect());
    b.recording.dispatch(RmsNorm::new(d, 1e-5, tuning), &[o, w, z], RowClass::Any);
    b.recording.dispatch(RmsNormAdd::new(d, 1e-6, tuning), &[z, norms, x, x_next, y], RowClass::Any);
    b.recording.dispatch(GatherRows { d }, &[y, rows, gathered], RowClass::Any);
    b.finish(format!("norms t={t} d={d}"), step(t), vec![x_next, y, gathered], false)
}
