//! Cases of the logits' edits, the draw, what is told of it, and pooling.

use super::{Builder, Case, step};
use crate::compute::{Purpose, RowClass, Step, Tuning};
use crate::kernels::{
    DrawnLogits, EDIT_WORDS, EditLogits, MAX_TOP_LOGITS, PoolRows, SAMPLING_WORDS, SCORE_WORDS, Sample, TopLogits,
    mask_words, top_word, word,
};

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
    let originals = b.recording.buffer("originals", num_edits as usize, Purpose::Scratch);
    b.recording.dispatch(EditLogits { vocab }, &[edits, samplings, logits, originals], RowClass::Any);
    b.recording.dispatch(Sample::new(vocab, tuning), &[logits, samplings, masks, ids], RowClass::Any);
    b.finish(format!("sample vocab={vocab}"), Step { num_edits, ..step(rows.len()) }, vec![ids], true)
}

/// Rows that want from none to all of the log-probabilities that there can be, with equal logits among them, drawn greedily
/// after edits that take the place of the best token from it. `of_ids` looks at the tokens, else at their scores.
pub fn log_probabilities(tuning: &Tuning, vocab: usize, of_ids: bool) -> Case {
    const TOPS: [Option<u32>; 5] = [None, Some(0), Some(5), Some(20), None];
    let mut b = Builder::new();
    let mut values = b.random.floats(TOPS.len() * vocab);
    values.iter_mut().for_each(|bits| *bits = (8.0 * f32::from_bits(*bits)).to_bits());
    for row in values.chunks_exact_mut(vocab) {
        // The best, three times, and one that an edit brings above it.
        [2, vocab / 2, vocab - 1].iter().for_each(|&token| row[token] = 9.0_f32.to_bits());
        row[4] = 1.5_f32.to_bits();
    }
    let rows = || 0..word(TOPS.len());
    let edits: Vec<u32> =
        rows().flat_map(|row| [row, 5, 0, 0, 1.0_f32.to_bits(), row, 4, 0, 0, 9_f32.to_bits()]).collect();
    // The last two rows draw what no edit changed.
    let edits = edits[..3 * 2 * EDIT_WORDS].to_vec();
    let num_edits = word(edits.len() / EDIT_WORDS);
    let sampling = [0, 0, 1.0_f32.to_bits(), 0, 1.0_f32.to_bits(), 0, 0, 0, 0, 0, 0];
    let logits = b.input("logits", values);
    let tops = b.input("tops", TOPS.iter().map(|top| top.map_or(0, |num| top_word(num, num_edits))).collect());
    let edits = b.input("edits", edits);
    let samplings = b.input("samplings", rows().flat_map(|_| sampling).collect());
    let mut scratch = |label: &str, words| b.recording.buffer(label, words, Purpose::Scratch);
    let originals = scratch("originals", num_edits as usize);
    let (masks, ids) = (scratch("masks", mask_words(vocab)), scratch("ids", TOPS.len()));
    let (top_ids, scores) =
        (scratch("top ids", TOPS.len() * MAX_TOP_LOGITS), scratch("scores", TOPS.len() * SCORE_WORDS));
    b.recording.dispatch(TopLogits::new(vocab, tuning), &[logits, tops, top_ids, scores], RowClass::Tops);
    b.recording.dispatch(EditLogits { vocab }, &[edits, samplings, logits, originals], RowClass::Any);
    b.recording.dispatch(Sample::new(vocab, tuning), &[logits, samplings, masks, ids], RowClass::Any);
    let drawn = [logits, ids, edits, originals, tops, scores];
    b.recording.dispatch(DrawnLogits { vocab }, &drawn, RowClass::Tops);
    let step = Step { num_edits, num_tops: 3, ..step(TOPS.len()) };
    let outputs = if of_ids { vec![ids, top_ids] } else { vec![scores] };
    b.finish(format!("log-probabilities vocab={vocab}"), step, outputs, of_ids)
}

/// Pools of one row, of several and of all.
pub fn pool_rows(t: usize, d: usize) -> Case {
    let mut b = Builder::new();
    let x = b.floats("x", t * d);
    let pools = [[0, t], [t - 1, 1], [t / 2, t - t / 2]];
    let words = b.input("pools", pools.as_flattened().iter().map(|&value| word(value)).collect());
    let y = b.recording.buffer("y", pools.len() * d, Purpose::Scratch);
    b.recording.dispatch(PoolRows { d }, &[x, words, y], RowClass::Pools);
    b.finish(format!("pool_rows t={t} d={d}"), Step { num_pools: word(pools.len()), ..step(t) }, vec![y], false)
}
