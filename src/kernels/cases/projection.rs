//! Cases of the matrix kernels, the embedding and the norms.

use super::{Builder, Case, step};
use crate::compute::{RowClass, Rows, Tuning};
use crate::kernels::{Embed, Epilogue, GatherRows, Projection, RmsNorm, RmsNormAdd, word};
use crate::quant::Format;

/// A projection of `t` rows in every way that the tuning offers for that many.
pub fn projection(tuning: &Tuning, format: Format, [t, n, k]: [usize; 3], epilogue: Epilogue) -> Case {
    let mut b = Builder::new();
    let num_rows = n * if epilogue.is_gated() { 2 } else { 1 };
    let weights = b.random.weights(format, num_rows, k);
    let weights = b.input("weights", weights);
    let (x, y) = (b.floats("x", t * k), b.floats("y", t * (n + 3)));
    let p = Projection { format, k, n, epilogue, rows: Rows::Sampled, out_stride: n + 3, out_offset: 2 };
    p.record(&mut b.recording, tuning, weights, x, y);
    b.finish(format!("projection {} {epilogue:?} t={t} n={n} k={k}", format.name()), step(t), vec![y], false)
}

/// A projection in products of bytes, of values that bytes hold exactly: then nothing is lost, and any error shows.
pub fn projection_int8(tuning: &Tuning, format: Format, [t, n, k]: [usize; 3], epilogue: Epilogue) -> Case {
    let mut b = Builder::new();
    let num_rows = n * if epilogue.is_gated() { 2 } else { 1 };
    let weights = b.random.weights(format, num_rows, k);
    let weights = b.input("weights", weights);
    let x = (0..t * k).map(|at| if at % 32 == 5 { -127.0 } else { (127.0 * b.random.float()).round() });
    let x = x.map(|value: f32| (value / 127.0).to_bits()).collect();
    let (x, y) = (b.input("x", x), b.floats("y", t * (n + 3)));
    let p = Projection { format, k, n, epilogue, rows: Rows::Sampled, out_stride: n + 3, out_offset: 2 };
    p.record(&mut b.recording, &Tuning { int8: true, ..*tuning }, weights, x, y);
    b.finish(format!("projection in bytes {} {epilogue:?} t={t} n={n} k={k}", format.name()), step(t), vec![y], false)
}

/// Embedding rows of a split table.
pub fn embed(format: Format, t: usize, d: usize) -> Case {
    let mut b = Builder::new();
    let tokens = b.tokens(t, 0, 24);
    let tokens = b.input("tokens", tokens);
    let x = b.floats("x", t * d);
    for part in 0..2 {
        let weights = b.random.weights(format, 16, d);
        let weights = b.input("weights", weights);
        let kernel = Embed { format, d, first_row: 16 * part, num_rows: 16, scale: 2.5 };
        b.recording.dispatch(kernel, &[weights, tokens, x], RowClass::Any);
    }
    b.finish(format!("embed {} t={t} d={d}", format.name()), step(t), vec![x], true)
}

/// Both norms and the gathering of rows.
pub fn norms(tuning: &Tuning, t: usize, d: usize) -> Case {
    let mut b = Builder::new();
    let (o, w, w_next) = (b.floats("o", t * d), b.floats("w", d), b.floats("w_next", d));
    let (x, y, z, gathered) =
        (b.floats("x", t * d), b.floats("y", t * d), b.floats("z", t * d), b.floats("gathered", t * d));
    let rows = b.input("rows", (0..word(t)).rev().collect());
    b.recording.dispatch(RmsNorm::new(d, 1e-5, tuning), &[o, w, z], RowClass::Any);
    b.recording.dispatch(RmsNormAdd::new(d, 1e-6, tuning), &[z, w, w_next, x, y], RowClass::Any);
    b.recording.dispatch(GatherRows { d }, &[y, rows, gathered], RowClass::Any);
    b.finish(format!("norms t={t} d={d}"), step(t), vec![x, y, gathered], false)
}
