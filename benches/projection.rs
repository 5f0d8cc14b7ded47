//! Times matrix kernels alone, for each way of choosing them, on every adapter there is.
//!
//! `cargo bench --bench projection [-- ADAPTER-NAME-PART [TUNING-NAME-PART]]` prints giga multiply-adds per second for the
//! shapes of SmolLM2-135M: one row (decode; with 2 and with 4 weight rows a lane, and normalised on the way), 4 rows (a small batch), and 32 (prefill).
#![allow(clippy::unwrap_used, reason = "benchmark")]

use std::rc::Rc;
use std::time::Instant;

use pagewise::compute::{
    Executor, Gpu, GpuExecutor, GpuOptions, ManyRows, Purpose, Recording, Reduce, Rows, Step, Tuning,
};
use pagewise::kernels::{Epilogue, FusedNorm, Operand, Projection};
use pagewise::quant::Format;
use pollster::block_on;

/// Dispatches of the same projection in one step, so that submitting is not what is measured.
const REPEATS: usize = 20;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let (adapter, part) = (arguments.next(), arguments.next().unwrap_or_default());
    let tunings = [
        ("software", Tuning::SOFTWARE),
        ("wide software", Tuning::WIDE_SOFTWARE),
        ("wide software, subgroups", Tuning::WIDE_SOFTWARE.with_lanes(Reduce::Subgroup, 8)),
        ("gpu", Tuning::GPU),
        ("gpu, bytes for many rows", Tuning { many: ManyRows::Int8, ..Tuning::GPU }),
        ("gpu, subgroups of 4", Tuning::GPU.with_lanes(Reduce::Subgroup, 4)),
    ];
    for (name, tuning) in tunings.into_iter().filter(|(name, _)| name.contains(&part)) {
        let options = GpuOptions { adapter: adapter.clone(), tuning: Some(tuning), ..GpuOptions::default() };
        let gpu = block_on(Gpu::open(&options)).unwrap();
        println!("{} / {name}", gpu.name());
        for (format, n, k, epilogue) in [
            (Format::Q4_1, 1536, 576, Epilogue::SiluGate),
            (Format::Q4_1, 576, 1536, Epilogue::Add),
            (Format::Q8_0, 12288, 576, Epilogue::Store),
        ] {
            let few = [2, 4].map(|rows_per_lane| {
                let gpu = gpu.clone().with_tuning(Tuning { rows_per_lane, ..tuning });
                [false, true].map(|is_normed| rate(&gpu, format, [1, n, k], epilogue, is_normed))
            });
            let [several, many] = [4, 32].map(|rows| rate(&gpu, format, [rows, n, k], epilogue, false));
            println!(
                "  {} {n} x {k} {epilogue:?}: 1 row {few:.2?} ([2, 4] a lane: [plain, normalised]), 4 rows {several:.2}, 32 rows {many:.2} GMAC/s",
                format.name()
            );
        }
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "benchmark")]
fn rate(gpu: &Gpu, format: Format, [rows, n, k]: [usize; 3], epilogue: Epilogue, is_normed: bool) -> f64 {
    let num_weight_rows = n * if epilogue.is_gated() { 2 } else { 1 };
    let mut recording = Recording::new();
    let weights = recording.buffer("weights", format.buffer_words(num_weight_rows, k), Purpose::Weights);
    let x = recording.buffer("x", rows * k, Purpose::Scratch);
    let y = recording.buffer("y", rows * n, Purpose::Scratch);
    let projection =
        Projection { format, k, n, epilogue, rows: Rows::Tokens, out_stride: n, out_offset: 0, epsilon: 0.0 };
    let norm = recording.buffer("norm", k, Purpose::Scratch);
    let fused = is_normed.then_some(FusedNorm::Norm { x, weights: norm });
    for _ in 0..REPEATS {
        projection.record(&mut recording, &gpu.tuning(), weights, Operand { rows: x, fused }, y);
    }
    let mut executor = block_on(GpuExecutor::new(gpu.clone(), Rc::new(recording))).unwrap();
    let step = Step { num_tokens: rows as u32, ..Step::default() };
    let mut best = f64::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        block_on(executor.run(&step, 1, &[(y, 1)])).unwrap();
        best = best.min(start.elapsed().as_secs_f64());
    }
    (REPEATS * rows * num_weight_rows * k) as f64 / best / 1e9
}
