//! Every kernel variant on the native adapter against its CPU twin; `kernels_wasm.rs` does the same in a browser.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/kernel_cases.rs"]
mod kernel_cases;

use kernel_cases::{Cases, TUNINGS};
use pagewise::compute::{Gpu, GpuOptions};

fn check(cases: Cases) {
    for tuning in TUNINGS {
        let options = GpuOptions { tuning: Some(tuning), ..GpuOptions::default() };
        let gpu = pollster::block_on(Gpu::open(&options)).unwrap();
        for case in cases(&tuning).into_iter().filter(|case| gpu.has_f16() || !case.needs_f16()) {
            if let Err(error) = pollster::block_on(case.check(&gpu)) {
                panic!("{tuning:?}: {error}");
            }
        }
    }
}

#[test]
fn projections_of_every_format() {
    check(kernel_cases::projections_of_every_format);
}

#[test]
fn projections_of_every_epilogue_around_the_tiles() {
    check(kernel_cases::projections_of_every_epilogue);
}

#[test]
fn projections_whose_lanes_read_for_each_other() {
    check(kernel_cases::projections_in_quads);
}

#[test]
fn projections_in_bytes() {
    check(kernel_cases::projections_in_bytes);
}

#[test]
fn projections_that_normalise_and_of_two_formats() {
    check(kernel_cases::fused_projections);
}

#[test]
fn projections_in_f16() {
    check(kernel_cases::projections_in_f16);
}

#[test]
fn embeddings_of_every_format() {
    check(kernel_cases::embeddings_of_every_format);
}

#[test]
fn norms() {
    check(kernel_cases::norms);
}

#[test]
fn attention_over_the_paged_cache() {
    check(kernel_cases::attention);
}

#[test]
fn what_is_not_finite_stays_so_in_an_f16_cache() {
    check(kernel_cases::values_beyond_f16);
}

#[test]
fn row_copies() {
    check(kernel_cases::row_copies);
}

#[test]
fn sampling() {
    check(kernel_cases::sampling);
}

#[test]
fn log_probabilities() {
    check(kernel_cases::log_probabilities);
}

#[test]
fn pools() {
    check(kernel_cases::pools);
}
