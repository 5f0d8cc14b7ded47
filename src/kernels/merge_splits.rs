//! The end of attention that was split over the sequence; see `shaders/merge_splits.wgsl`.

use super::attend_split::Splits;
use super::{constant, word};
use crate::compute::{Access, Bindings, Kernel, Shader, Step};

/// Puts together what the splits of [`super::attend_split::AttendSplit`] have left in `out`.
#[derive(Debug, Clone)]
pub(super) struct MergeSplits(pub(super) Splits);

impl Kernel for MergeSplits {
    fn shader(&self) -> Shader {
        Shader::new("merge_splits", include_str!("../../shaders/merge_splits.wgsl"))
    }

    fn access(&self) -> &'static [Access] {
        &[Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("HEADS", constant(self.0.attention.heads)),
            ("HEAD_QUADS", constant(self.0.attention.head_dim / 4)),
            ("WINDOW", constant(self.0.attention.window.unwrap_or(0))),
            ("SPLIT_TOKENS", constant(self.0.attention.tuning.split_tokens)),
            ("MOST_SPLITS", constant(self.0.attention.tuning.most_splits)),
            ("PARTIALS", constant(self.0.partials() / 4)),
            ("WORKGROUP", f64::from(self.0.attention.tuning.workgroup)),
        ]
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        if self.0.num(step) == 1 {
            return [0; 3];
        }
        let num_quads = word(self.0.attention.heads * self.0.attention.head_dim / 4);
        [(step.num_tokens * num_quads).div_ceil(self.0.attention.tuning.workgroup), 1, 1]
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let mut out = bindings.f32_mut(0);
        let (head_dim, num_splits) = (self.0.attention.head_dim, self.0.num(step));
        if num_splits == 1 {
            return;
        }
        for row in 0..step.num_tokens as usize * self.0.attention.heads {
            let partials = (0..num_splits).map(|split| self.0.partial(row, split, num_splits));
            let highest = partials.clone().map(|at| out[at]).fold(f32::MIN, f32::max);
            let mut sum = vec![0.0; head_dim];
            let mut total = 0.0;
            for at in partials {
                let weight = (out[at] - highest).exp();
                total += weight * out[at + 1];
                sum.iter_mut().zip(&out[at + 4..]).for_each(|(sum, value)| *sum += weight * value);
            }
            out[row * head_dim..][..head_dim].iter_mut().zip(&sum).for_each(|(out, sum)| *out = sum / total);
        }
    }
}
