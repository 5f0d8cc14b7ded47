//! Times matrix kernels alone, for each way of choosing them, on every adapter there is.
//!
//! `cargo bench --bench projection [-- ADAPTER-NAME-PART]` prints giga multiply-adds per second for the shapes of
//! SmolLM2-135M: one row (decode) and 32 rows (prefill).
#![allow(clippy::unwrap_used, reason = "benchmark")]

use std::rc::Rc;
use std::time::Instant;

use pagewise::compute::{Executor, Gpu, GpuExecutor, GpuOptions, Purpose, Recording, Reduce, Rows, Step, Tuning};
use pagewise::kernels::{Epilogue, Projection};
use pagewise::quant::Format;
use pollster::block_on;

/// Dispatches of the same projection in one step, so that submitting is not what is measured.
const REPEATS: usize = 20;

fn main() {
    let adapter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let tunings = [
        ("software", Tuning::SOFTWARE),
        ("wide software", Tuning::WIDE_SOFTWARE),
        ("wide software, subgroups", Tuning { reduce: Reduce::Subgroup, ..Tuning::WIDE_SOFTWARE }),
        ("gpu", Tuning::GPU),
        ("gpu, bytes for many rows", Tuning { int8: true, ..Tuning::GPU }),
        ("gpu, subgroups of 4", Tuning { reduce: Reduce::Subgroup, lanes: 4, ..Tuning::GPU }),
    ];
    for (name, tuning) in tunings {
        let options = GpuOptions { adapter: adapter.clone(), tuning: Some(tuning), ..GpuOptions::default() };
        let gpu = block_on(Gpu::open(&options)).unwrap();
        println!("{} / {name}", gpu.name());
        for (format, n, k, epilogue) in [
            (Format::Q4_1, 1536, 576, Epilogue::SiluGate),
            (Format::Q4_1, 576, 1536, Epilogue::Add),
            (Format::Q8_0, 12288, 576, Epilogue::Store),
        ] {
            let rates = [1, 32].map(|rows| rate(&gpu, format, [rows, n, k], epilogue));
            println!(
                "  {} {n} x {k} {epilogue:?}: 1 row {:.2}, 32 rows {:.2} GMAC/s",
                format.name(),
                rates[0],
                rates[1]
            );
        }
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "benchmark")]
fn rate(gpu: &Gpu, format: Format, [rows, n, k]: [usize; 3], epilogue: Epilogue) -> f64 {
    let num_weight_rows = n * if epilogue.is_gated() { 2 } else { 1 };
    let mut recording = Recording::new();
    let weights = recording.buffer("weights", format.buffer_words(num_weight_rows, k), Purpose::Weights);
    let x = recording.buffer("x", rows * k, Purpose::Scratch);
    let y = recording.buffer("y", rows * n, Purpose::Scratch);
    let projection = Projection { format, k, n, epilogue, rows: Rows::Tokens, out_stride: n, out_offset: 0 };
    for _ in 0..REPEATS {
        projection.record(&mut recording, &gpu.tuning(), weights, x, y);
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
