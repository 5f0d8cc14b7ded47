//! Cached rows copied to other slots; see `shaders/copy_rows.wgsl`.

use super::{constant, word};
use crate::compute::{Access, Bindings, Kernel, Shader, Step};

/// Words of a copy: layer group, slot to read, slot to write.
pub const COPY_WORDS: usize = 3;

/// `k[to] = k[from]; v[to] = v[from]` for the copies of one layer group. Shapes: copies [C, 3 words], caches [slots,
/// row_words].
#[derive(Debug, Clone)]
pub struct CopyRows {
    /// Words of a cache row.
    pub row_words: usize,
    /// The layer's group.
    pub group: usize,
}

impl Kernel for CopyRows {
    fn shader(&self) -> Shader {
        Shader::new("copy_rows", include_str!("../../shaders/copy_rows.wgsl"))
    }

    fn access(&self) -> &'static [Access] {
        &[Access::Read, Access::ReadWrite, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![("ROW_WORDS", constant(self.row_words)), ("KV_GROUP", constant(self.group))]
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        [(step.num_copies * word(self.row_words)).div_ceil(64), 1, 1]
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (copies, mut k, mut v) = (bindings.u32(0), bindings.u32_mut(1), bindings.u32_mut(2));
        for copy in copies.chunks_exact(COPY_WORDS).take(step.num_copies as usize) {
            let &[group, from, to] = copy else { continue };
            if group as usize == self.group {
                let from = from as usize * self.row_words;
                k.copy_within(from..from + self.row_words, to as usize * self.row_words);
                v.copy_within(from..from + self.row_words, to as usize * self.row_words);
            }
        }
    }
}
