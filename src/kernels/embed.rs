//! Token ids to rows of the embedding; see `shaders/embed.wgsl`.

use super::{NOT_FINITE, constant, word};
use crate::compute::{Access, Bindings, Kernel, Shader, Step};
use crate::quant::Format;

/// Words of a token's record in the batch: id, position, sequence, slot per layer group.
pub const TOKEN_WORDS: usize = 5;
/// In the place of an id: the one that the step before drew for the row in the other bits.
pub const DRAWN: u32 = 0x8000_0000;

/// `x[t] = scale * E[id[t]]` for one part of the embedding. Shapes: E [rows, D], ids drawn by the step before `[R]`,
/// x [T, D].
#[derive(Debug, Clone)]
pub struct Embed {
    /// How the embedding is stored.
    pub format: Format,
    /// D, a multiple of 32.
    pub d: usize,
    /// The part's first vocabulary id.
    pub first_row: usize,
    /// The part's rows.
    pub num_rows: usize,
    /// Multiplies every value.
    pub scale: f32,
}

impl Kernel for Embed {
    fn shader(&self) -> Shader {
        let shader = Shader::new("embed", include_str!("../../shaders/embed.wgsl"));
        Shader { format: Some(self.format.wgsl()), ..shader }
    }

    fn access(&self) -> &'static [Access] {
        &[Access::Read, Access::Read, Access::Read, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("K", constant(self.d)),
            ("ROW_WORDS", constant(self.format.packed_row_words(self.d))),
            ("FIRST_ROW", constant(self.first_row)),
            ("NUM_ROWS", constant(self.num_rows)),
            ("SCALE", f64::from(self.scale)),
        ]
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        [(step.num_tokens * word(self.d / 32)).div_ceil(64), 1, 1]
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (weights, tokens, drawn, mut x) = (bindings.u32(0), bindings.u32(1), bindings.u32(2), bindings.f32_mut(3));
        let words = self.format.packed_row_words(self.d);
        for t in 0..step.num_tokens as usize {
            let id = resolved(tokens[t * TOKEN_WORDS], &drawn) as usize;
            if (self.first_row..self.first_row + self.num_rows).contains(&id) {
                let row = &mut x[t * self.d..][..self.d];
                self.format.unpack_row(&weights[(id - self.first_row) * words..][..words], row);
                row.iter_mut().for_each(|value| *value *= self.scale);
            }
        }
    }
}

/// The id of a token. Where no id was drawn, anything will do: whoever it belongs to has failed by then.
fn resolved(id: u32, drawn: &[u32]) -> u32 {
    if id < DRAWN {
        return id;
    }
    Some(drawn[(id - DRAWN) as usize]).filter(|&id| id != NOT_FINITE).unwrap_or(0)
}
