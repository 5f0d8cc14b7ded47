//! Draws a token from a row of logits; see `shaders/sample.wgsl`.

use super::{SAMPLING_WORDS, constant};
use crate::compute::{Access, Bindings, Kernel, Reduce, Shader, Step, Tuning};

/// Stands for a token where a row's logits are not finite.
pub const NOT_FINITE: u32 = u32::MAX;

/// The logit of a token that a mask forbids. No bias makes one as low, and it is finite like every other.
const FORBIDDEN: f32 = -3.0e38;
/// Nothing below is drawn.
const LOWEST_ALLOWED: f32 = -1.0e38;

/// Words of a mask over `vocab` tokens: a bit each, set for those that may be drawn.
pub const fn mask_words(vocab: usize) -> usize {
    vocab.div_ceil(32)
}

/// Draws one token per row. Shapes: logits `[R, V]`, samplings `[R, 11 words]`, masks `[R, ceil(V / 32)]`, ids `[R]`.
#[derive(Debug, Clone)]
pub struct Sample {
    vocab: usize,
    lanes: u32,
    reduce: Reduce,
}

impl Sample {
    /// Rows of `vocab` logits, with the adapter's lanes.
    pub fn new(vocab: usize, tuning: &Tuning) -> Self {
        Self { vocab, lanes: tuning.sample_lanes, reduce: Reduce::Workgroup }
    }
}

impl Kernel for Sample {
    fn shader(&self) -> Shader {
        let shader = Shader::new("sample", include_str!("../../shaders/sample.wgsl"));
        Shader { reduce: Some(self.reduce), ..shader }
    }

    fn access(&self) -> &'static [Access] {
        &[Access::ReadWrite, Access::Read, Access::Read, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![("V", constant(self.vocab)), ("LANES", f64::from(self.lanes)), ("GROUPS", 1.0)]
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        [step.num_rows, 1, 1]
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (mut logits, samplings, masks, mut ids) =
            (bindings.f32_mut(0), bindings.u32(1), bindings.u32(2), bindings.u32_mut(3));
        let mask_words = mask_words(self.vocab);
        for r in 0..step.num_rows as usize {
            let row = &mut logits[r * self.vocab..][..self.vocab];
            let sampling = &samplings[r * SAMPLING_WORDS..][..SAMPLING_WORDS];
            let mask = (sampling[10] as usize).checked_sub(1).map(|mask| &masks[mask * mask_words..][..mask_words]);
            ids[r] = draw(row, mask, sampling);
        }
    }
}

/// Draws from one row, of the tokens that the mask allows.
fn draw(row: &mut [f32], mask: Option<&[u32]>, words: &[u32]) -> u32 {
    let is_broken = row.iter().any(|logit| !logit.is_finite());
    if let Some(mask) = mask {
        let is_allowed = |token: usize| mask[token / 32] >> (token % 32) & 1 != 0;
        row.iter_mut().enumerate().filter(|(token, _)| !is_allowed(*token)).for_each(|(_, logit)| *logit = FORBIDDEN);
    }
    if is_broken {
        return NOT_FINITE;
    }
    let highest = row.iter().copied().fold(f32::MIN, f32::max);
    let temperature = f32::from_bits(words[0]);
    let score = |token: u32, logit: f32| {
        if temperature == 0.0 {
            logit
        } else {
            (logit - highest) / temperature + gumbel([words[7], words[8]], [words[9], token])
        }
    };
    let lowest = if temperature == 0.0 { LOWEST_ALLOWED } else { lowest_kept(row, words, highest) };
    let mut best = (f32::MIN, NOT_FINITE);
    for (token, &logit) in (0..).zip(&*row) {
        if logit >= lowest && score(token, logit) > best.0 {
            best = (score(token, logit), token);
        }
    }
    best.1
}

/// The lowest logit that top-k, top-p and min-p keep. Equal logits are kept or dropped together.
fn lowest_kept(row: &[f32], words: &[u32], highest: f32) -> f32 {
    let [temperature, top_p, min_p] = [words[0], words[2], words[3]].map(f32::from_bits);
    let top_k = words[1] as usize;
    let mut sorted = row.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut lowest = f32::MIN;
    if top_k > 0 && top_k < row.len() {
        lowest = sorted[top_k - 1];
    }
    lowest = lowest.max(LOWEST_ALLOWED);
    if top_p < 1.0 {
        let mass = |logit: f32| ((logit - highest) / temperature).exp();
        let kept = sorted.iter().copied().take_while(|&logit| logit >= lowest);
        let wanted = top_p * kept.clone().map(mass).sum::<f32>();
        let mut sum = 0.0;
        for logit in kept {
            sum += mass(logit);
            if sum >= wanted {
                lowest = logit;
                break;
            }
        }
    }
    if min_p > 0.0 {
        lowest = lowest.max(highest + temperature * min_p.ln());
    }
    lowest
}

/// Gumbel noise from a seed and a counter.
fn gumbel(key: [u32; 2], counter: [u32; 2]) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "23 bits are exact")]
    let uniform_draw = ((threefry(key, counter) >> 9) as f32 + 0.5) / 8_388_608.0;
    -(-uniform_draw.ln()).ln()
}

/// Threefry-2x32 with 20 rounds (Salmon et al. 2011): the first word.
fn threefry(key: [u32; 2], counter: [u32; 2]) -> u32 {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let keys = [key[0], key[1], 0x1BD1_1BDA ^ key[0] ^ key[1]];
    let mut x = [counter[0].wrapping_add(keys[0]), counter[1].wrapping_add(keys[1])];
    for round in 0..5 {
        for rotation in ROTATIONS[round % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(rotation) ^ x[0];
        }
        x[0] = x[0].wrapping_add(keys[(round + 1) % 3]);
        x[1] = x[1].wrapping_add(keys[(round + 2) % 3]).wrapping_add(super::word(round + 1));
    }
    x[0]
}

#[cfg(test)]
mod tests {
    use super::threefry;

    /// The known answers published with the generator (Random123, threefry2x32, 20 rounds).
    #[test]
    fn threefry_known_answers() {
        assert_eq!(threefry([0, 0], [0, 0]), 0x6b20_0159);
        assert_eq!(threefry([u32::MAX; 2], [u32::MAX; 2]), 0x1cb9_96fc);
        assert_eq!(threefry([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3]), 0xc492_3a9c);
    }
}
