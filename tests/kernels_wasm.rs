//! Every kernel variant in a browser against its CPU twin: Chromium compiles WGSL with Tint, and is strict where naga
//! is not. `kernels.rs` does the same natively.
#![cfg(target_arch = "wasm32")]
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/kernel_cases.rs"]
mod kernel_cases;

use kernel_cases::{Cases, TUNINGS};
use pagewise::compute::{Gpu, GpuOptions, Tuning};
use wasm_bindgen::prelude::*;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_dedicated_worker);

// What the npm package's worker does (js/src/gpu.ts), because wgpu's web backend knows no `subgroups`.
#[wasm_bindgen(inline_js = "
    let wrapped = false;
    export function requestSubgroups() {
        if (wrapped) return;
        wrapped = true;
        const original = GPUAdapter.prototype.requestDevice;
        GPUAdapter.prototype.requestDevice = function (descriptor = {}) {
            if (!this.features.has('subgroups')) throw new Error('the adapter has no subgroups');
            const requiredFeatures = [...(descriptor.requiredFeatures ?? []), 'subgroups'];
            return original.call(this, { ...descriptor, requiredFeatures });
        };
    }
")]
extern "C" {
    #[wasm_bindgen(js_name = requestSubgroups)]
    fn request_subgroups();
}

async fn check(cases: Cases) {
    check_with(&TUNINGS, cases).await;
}

async fn check_with(tunings: &[Tuning], cases: Cases) {
    request_subgroups();
    let mut failures = Vec::new();
    for &tuning in tunings {
        let options = GpuOptions { tuning: Some(tuning), subgroups: true, ..GpuOptions::default() };
        let gpu = Gpu::open(&options).await.unwrap();
        for case in cases(&tuning).into_iter().filter(|case| gpu.has_f16() || !case.needs_f16()) {
            if let Err(error) = case.check(&gpu).await {
                failures.push(format!("{tuning:?}: {error}"));
            }
        }
        gpu.destroy();
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[wasm_bindgen_test]
async fn projections_of_every_format() {
    // A format's piece is the same in every kernel, tiles meet all of them natively, and compiling takes most of the time.
    check_with(&[TUNINGS[0], TUNINGS[2]], kernel_cases::projections_of_every_format).await;
}

#[wasm_bindgen_test]
async fn projections_of_every_epilogue_around_the_tiles() {
    check(kernel_cases::projections_of_every_epilogue).await;
}

#[wasm_bindgen_test]
async fn projections_that_normalise_and_of_two_formats() {
    check(kernel_cases::fused_projections).await;
}

#[wasm_bindgen_test]
async fn projections_whose_lanes_read_for_each_other() {
    check(kernel_cases::projections_in_quads).await;
}

#[wasm_bindgen_test]
async fn projections_in_f16() {
    check(kernel_cases::projections_in_f16).await;
}

#[wasm_bindgen_test]
async fn embeddings_of_every_format() {
    check(kernel_cases::embeddings_of_every_format).await;
}

#[wasm_bindgen_test]
async fn norms() {
    check(kernel_cases::norms).await;
}

#[wasm_bindgen_test]
async fn attention_over_the_paged_cache() {
    check(kernel_cases::attention).await;
}

#[wasm_bindgen_test]
async fn what_is_not_finite_stays_so_in_an_f16_cache() {
    check(kernel_cases::values_beyond_f16).await;
}

#[wasm_bindgen_test]
async fn row_copies() {
    check(kernel_cases::row_copies).await;
}

#[wasm_bindgen_test]
async fn sampling() {
    check(kernel_cases::sampling).await;
}

#[wasm_bindgen_test]
async fn log_probabilities() {
    check(kernel_cases::log_probabilities).await;
}

#[wasm_bindgen_test]
async fn pools() {
    check(kernel_cases::pools).await;
}
