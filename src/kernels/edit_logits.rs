//! Penalties and biases on single logits; see `shaders/edit_logits.wgsl`.

use super::constant;
use crate::compute::{Access, Bindings, Kernel, Shader, Step};

/// Words of an edit: row, token, seen, count, bias.
pub const EDIT_WORDS: usize = 5;
/// Words of a row's sampling parameters: temperature, top-k, top-p, min-p, three penalties, seed (2), counter, mask.
pub const SAMPLING_WORDS: usize = 11;

/// Applies sparse edits, and keeps what was there. Shapes: edits [E, 5 words], samplings [R, 11 words], logits [R, V],
/// originals `[E]`.
#[derive(Debug, Clone)]
pub struct EditLogits {
    /// V.
    pub vocab: usize,
}

impl Kernel for EditLogits {
    fn shader(&self) -> Shader {
        Shader::new("edit_logits", include_str!("../../shaders/edit_logits.wgsl"))
    }

    fn access(&self) -> &'static [Access] {
        &[Access::Read, Access::Read, Access::ReadWrite, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![("V", constant(self.vocab))]
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        [step.num_edits.div_ceil(64), 1, 1]
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (edits, samplings) = (bindings.u32(0), bindings.f32(1));
        let (mut logits, mut originals) = (bindings.f32_mut(2), bindings.f32_mut(3));
        let edits = edits.chunks_exact(EDIT_WORDS).take(step.num_edits as usize);
        for (edit, original) in edits.zip(originals.iter_mut()) {
            let [row, token, seen, count, bias] = edit else { continue };
            let sampling = &samplings[*row as usize * SAMPLING_WORDS..][..SAMPLING_WORDS];
            let [repetition, frequency, presence] = [sampling[4], sampling[5], sampling[6]];
            let logit = &mut logits[*row as usize * self.vocab + *token as usize];
            *original = *logit;
            if *seen != 0 {
                *logit = if *logit > 0.0 { *logit / repetition } else { *logit * repetition };
            }
            if *count > 0 {
                #[expect(clippy::cast_precision_loss, reason = "counts of tokens in a context are small")]
                let penalty = *count as f32 * frequency + presence;
                *logit -= penalty;
            }
            *logit += f32::from_bits(*bias);
        }
    }
}
