//! Trusting a device: the kernels that a model will use, on small inputs, against their CPU twins.
//!
//! Drivers compute wrongly in silence. Each way of choosing kernels is tried until one passes; if none does, the model is
//! not loaded.

use std::collections::BTreeSet;

use super::config::ModelConfig;
use super::forward::Layout;
use crate::compute::{Gpu, Tuning};
use crate::gguf::Gguf;
use crate::kernels::Epilogue;
use crate::kernels::cases::{self, AttentionShape, Case};
use crate::quant::Format;
use crate::{Error, Result};

/// Finds a tuning whose kernels compute rightly on the device, the device's own choice first.
///
/// # Errors
/// `wrong_result` with the first kernel of each tuning that does not; whatever the device reports.
pub async fn probe(gpu: Gpu, config: &ModelConfig, gguf: &Gguf, layout: &Layout) -> Result<Gpu> {
    let mut failures = Vec::new();
    for tuning in gpu.tuning().fallbacks() {
        let candidate = gpu.clone().with_tuning(tuning);
        match check(&candidate, config, gguf, layout).await {
            Ok(()) => return Ok(candidate),
            Err(Error::WrongResult(failure)) => failures.push(failure),
            Err(other) => return Err(other),
        }
    }
    Err(Error::WrongResult(format!("this device computes wrongly: {}", failures.join("; "))))
}

async fn check(gpu: &Gpu, config: &ModelConfig, gguf: &Gguf, layout: &Layout) -> Result<()> {
    for case in cases(&gpu.tuning(), config, gguf, layout) {
        case.check(gpu).await?;
    }
    Ok(())
}

/// The kernels of this model at the smallest sizes that exercise them, but with its own constants wherever a case can have
/// them: then what is tried is the very pipeline that will run, and compiled once.
fn cases(tuning: &Tuning, config: &ModelConfig, gguf: &Gguf, layout: &Layout) -> Vec<Case> {
    let stored: BTreeSet<_> = gguf.tensors.iter().filter(|t| t.shape.len() > 1).map(|t| t.format.name()).collect();
    let formats: Vec<_> = Format::ALL.into_iter().filter(|format| stored.contains(format.name())).collect();
    let mut cases = Vec::new();
    for &format in &formats {
        let k = format.block_elements().max(64);
        cases.push(cases::projection(tuning, format, [1, 5, k], Epilogue::Add));
        cases.push(cases::projection(tuning, format, [3, 9, k], config.gate));
        cases.push(cases::projection(tuning, format, [9, 37, k], config.gate));
    }
    // Two of its formats in one dispatch, and the norm that the model has between its blocks.
    if let (Some(&first), Some(&last)) = (formats.first(), formats.last()) {
        let k = first.block_elements().max(last.block_elements()).max(64);
        cases.push(cases::fused_projection(tuning, [first, last], [1, 5, k], config.gate, config.post_norm));
    }
    if let Some(embedding) = gguf.find("token_embd.weight") {
        cases.push(cases::embed(embedding.format, 3, embedding.format.block_elements().max(32)));
    }
    cases.push(cases::norms(tuning, 3, 64));
    // Few tokens behind more positions than a split has, and many.
    for (t, position, window) in [(3, 70, None), (5, 13, config.sliding.map(|_| 8))] {
        let shape = AttentionShape {
            t,
            position,
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
            window,
            kv: layout.kv,
            neox: config.rope.neox,
            epsilon: config.epsilon,
            scale: config.query_scale,
            table_stride: layout.limits.max_blocks,
        };
        cases.push(cases::attention(tuning, shape));
    }
    cases.push(cases::copy_rows(3, layout.kv.row_words(config.kv_heads * config.head_dim)));
    cases.push(cases::sample(tuning, config.vocab));
    cases.extend([true, false].map(|of_ids| cases::log_probabilities(tuning, config.vocab, of_ids)));
    cases.push(cases::pool_rows(5, config.width));
    cases
}
