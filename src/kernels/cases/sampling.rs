//! Cases of the logits' edits and the draw.

use super::{Builder, Case, step};
use crate::compute::{Purpose, RowClass, Step, Tuning};
use crate::kernels::{EDIT_WORDS, EditLogits, SAMPLING_WORDS, Sample, mask_words, word};

/// Rows with every kind of sampling, after edits; the last ones draw from what a mask allows: a few tokens, one whose logit
/// is edited to be forbidden, and of a row that is broken.
pub fn sample(tuning: &Tuning, vocab: usize) -> Case {
    let mut b = Builder::new();
    // temperature, top-k, top-p, min-p, then the penalties
    let rows: [(f32, u32, f32, f32, [f32; 3]); 11] = [
        (0.0, 0, 1.0, 0.0, [1.0, 0.0, 0.0]),
        (1.0, 0, 1.0, 0.0, [1.0, 0.0, 0.0]),
        (0.7, 5, 1.0, 0.0, [1.3, 0.0, 0.0]),
        (1.5, 0, 0.6, 0.0, [1.0, 0.4, 0.2]),
        (0.9, 20, 0.8, 0.05, [1.1, -0.4, 0.2]),
        (0.8, 1, 1.0, 0.0, [1.0, 0.0, 0.0]),
        (1.0, 0, 1.0, 0.0, [1.0, 0.0, 0.0]),
        (0.0, 0, 1.0, 0.0, [1.0, 0.0, 0.0]),
        (2.0, 30, 0.9, 0.01, [1.0, 0.0, 0.0]),
        (1.0, 0, 1.0, 0.0, [1.0, 0.0, 0.0]),
        (0.5, 3, 1.0, 0.0, [1.0, 0.0, 0.0]),
    ];
    // By row: the tokens that its mask allows.
    let masks: [(usize, &[usize]); 4] = [(7, &[1, 5, 33]), (8, &[0, 2, 31, 32, 39]), (9, &[18]), (10, &[3, 4, 5])];
    let mut logits: Vec<u32> = b.random.floats(rows.len() * vocab);
    logits.iter_mut().for_each(|bits| *bits = (8.0 * f32::from_bits(*bits)).to_bits());
    // The second where its own mask forbids it.
    logits[6 * vocab + vocab / 2] = f32::NAN.to_bits();
    logits[10 * vocab + 7] = f32::INFINITY.to_bits();
    // High, but forbidden.
    logits[7 * vocab + 6] = 1e6_f32.to_bits();
    let logits = b.input("logits", logits);
    let mut samplings = Vec::with_capacity(rows.len() * SAMPLING_WORDS);
    for (counter, (temperature, top_k, top_p, min_p, penalties)) in (0..).zip(rows) {
        samplings.extend([temperature.to_bits(), top_k, top_p.to_bits(), min_p.to_bits()]);
        samplings.extend(penalties.map(f32::to_bits));
        // Masks are numbered backwards: no row's mask is at the place of the row.
        let mask = masks.iter().position(|(row, _)| word(*row) == counter).map_or(0, |index| word(masks.len() - index));
        samplings.extend([0x1234_5678, 9, counter, mask]);
    }
    let mut mask_bits = vec![0; masks.len() * mask_words(vocab)];
    for (bits, (_, allowed)) in mask_bits.chunks_exact_mut(mask_words(vocab)).rev().zip(masks) {
        allowed.iter().for_each(|token| bits[token / 32] |= 1 << (token % 32));
    }
    let masks = b.input("masks", mask_bits);
    let samplings = b.input("samplings", samplings);
    let mut edits = Vec::new();
    for row in 0..word(rows.len()) {
        edits.extend([row, row, 1, 2, 0.5_f32.to_bits(), row, row + 9, 0, 0, (-1e30_f32).to_bits()]);
    }
    let num_edits = word(edits.len() / EDIT_WORDS);
    let edits = b.input("edits", edits);
    let ids = b.recording.buffer("ids", rows.len(), Purpose::Scratch);
    b.recording.dispatch(EditLogits { vocab }, &[edits, samplings, logits], RowClass::Any);
    b.recording.dispatch(Sample::new(vocab, tuning), &[logits, samplings, masks, ids], RowClass::Any);
    b.finish(format!("sample vocab={vocab}"), Step { num_edits, ..step(rows.len()) }, vec![ids], true)
}
