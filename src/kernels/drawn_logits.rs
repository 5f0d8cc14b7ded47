//! What the drawn tokens' logits were before edits; see `shaders/drawn_logits.wgsl`.

use super::{EDIT_WORDS, SCORE_WORDS, constant};
use crate::compute::{Access, Bindings, Kernel, Reduce, Shader, Step};

/// Shapes: logits `[R, V]`, ids `[R]`, edits [E, 5 words], originals `[E]`, tops `[R]`, scores `[R, 23]`.
#[derive(Debug, Clone)]
pub struct DrawnLogits {
    /// V.
    pub vocab: usize,
}

impl Kernel for DrawnLogits {
    fn shader(&self) -> Shader {
        let shader = Shader::new("drawn_logits", include_str!("../../shaders/drawn_logits.wgsl"));
        Shader { reduce: Some(Reduce::Workgroup), ..shader }
    }

    fn access(&self) -> &'static [Access] {
        &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Read, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![("V", constant(self.vocab)), ("LANES", 64.0), ("GROUPS", 1.0)]
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        [step.num_rows, 1, 1]
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (logits, ids, edits) = (bindings.f32(0), bindings.u32(1), bindings.u32(2));
        let (originals, tops, mut scores) = (bindings.f32(3), bindings.u32(4), bindings.f32_mut(5));
        for r in 0..step.num_rows as usize {
            let id = ids[r] as usize;
            if tops[r] == 0 || id >= self.vocab {
                continue;
            }
            let mut edits = edits.chunks_exact(EDIT_WORDS).take(tops[r] as usize >> 8);
            let edited = edits.position(|edit| edit[0] as usize == r && edit[1] as usize == id);
            scores[r * SCORE_WORDS + 2] = edited.map_or(logits[r * self.vocab + id], |at| originals[at]);
        }
    }
}
