//! The largest logits of a row, and its softmax's denominator; see `shaders/top_logits.wgsl`.

use super::constant;
use crate::compute::{Access, Bindings, Kernel, Reduce, Shader, Step, Tuning};

/// Tokens of a row, at most.
pub const MAX_TOP_LOGITS: usize = 20;
/// Words of a row's scores: the largest logit m, the sum of `exp(logit - m)`, the drawn token's logit, the largest logits.
pub const SCORE_WORDS: usize = 3 + MAX_TOP_LOGITS;

/// Stands for a token where the vocabulary has no more.
pub const NO_TOKEN: u32 = u32::MAX;

/// What a row wants to know, for these kernels: `num` tokens beside the drawn one, in a step of so many edits. 0 is nothing.
pub const fn top_word(num: u32, num_edits: u32) -> u32 {
    num_edits << 8 | (1 + num)
}

/// Shapes: logits `[R, V]`, tops `[R]`, ids `[R, 20]`, scores `[R, 23]`.
#[derive(Debug, Clone)]
pub struct TopLogits {
    vocab: usize,
    lanes: u32,
    reduce: Reduce,
}

impl TopLogits {
    /// Rows of `vocab` logits, with the adapter's lanes.
    pub fn new(vocab: usize, tuning: &Tuning) -> Self {
        Self { vocab, lanes: tuning.sample_lanes, reduce: Reduce::Workgroup }
    }
}

impl Kernel for TopLogits {
    fn shader(&self) -> Shader {
        let shader = Shader::new("top_logits", include_str!("../../shaders/top_logits.wgsl"));
        Shader { reduce: Some(self.reduce), ..shader }
    }

    fn access(&self) -> &'static [Access] {
        &[Access::Read, Access::Read, Access::ReadWrite, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![("V", constant(self.vocab)), ("LANES", f64::from(self.lanes)), ("GROUPS", 1.0)]
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        [step.num_rows, 1, 1]
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (logits, tops, mut ids, mut scores) =
            (bindings.f32(0), bindings.u32(1), bindings.u32_mut(2), bindings.f32_mut(3));
        for r in 0..step.num_rows as usize {
            let Some(num) = (tops[r] as usize & 0xff).min(MAX_TOP_LOGITS + 1).checked_sub(1) else { continue };
            let row = &logits[r * self.vocab..][..self.vocab];
            let scores = &mut scores[r * SCORE_WORDS..][..SCORE_WORDS];
            let highest = row.iter().copied().fold(f32::MIN, f32::max);
            scores[0] = highest;
            // In f64: added up one by one in f32, a large vocabulary's sum is off in its fourth digit.
            let sum: f64 = row.iter().map(|logit| f64::from((logit - highest).exp())).sum();
            #[expect(clippy::cast_possible_truncation, reason = "rounded to what scores are stored in")]
            let sum = sum as f32;
            scores[1] = sum;
            let mut sorted: Vec<(u32, f32)> = (0..).zip(row.iter().copied()).collect();
            sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
            sorted.resize(num.max(sorted.len()), (NO_TOKEN, LOWEST));
            for (place, (id, logit)) in sorted.into_iter().take(num).enumerate() {
                ids[r * MAX_TOP_LOGITS + place] = id;
                scores[3 + place] = logit;
            }
        }
    }
}

/// What is written beside [`NO_TOKEN`].
const LOWEST: f32 = -3.0e38;
