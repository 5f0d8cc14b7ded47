//! Every kernel variant on the native adapter against its CPU twin, on shapes around the tile sizes.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use pagewise::compute::{Gpu, GpuOptions, Reduce, Tuning};
use pagewise::kernels::{Epilogue, KvFormat, cases};
use pagewise::quant::Format;

/// The adapter's own choice, and every other way of choosing that it can run.
fn gpus() -> Vec<Gpu> {
    let tunings = [Tuning::SOFTWARE, Tuning::GPU, Tuning { reduce: Reduce::Subgroup, lanes: 4, ..Tuning::GPU }];
    let open = |tuning| {
        let options = GpuOptions { tuning: Some(tuning), ..GpuOptions::default() };
        pollster::block_on(Gpu::open(&options)).unwrap()
    };
    tunings.into_iter().map(open).collect()
}

fn check(case: impl Fn(&Tuning) -> cases::Case) {
    for gpu in gpus() {
        let case = case(&gpu.tuning());
        if let Err(error) = pollster::block_on(case.check(&gpu)) {
            panic!("{:?}: {error}", gpu.tuning());
        }
    }
}

#[test]
fn projections_of_every_format() {
    for format in Format::ALL {
        for (t, epilogue) in [(1, Epilogue::Store), (9, Epilogue::Store)] {
            check(|tuning| cases::projection(tuning, format, [t, 37, 512], epilogue));
        }
    }
}

#[test]
fn projections_of_every_epilogue_around_the_tiles() {
    for epilogue in [Epilogue::Store, Epilogue::Add, Epilogue::SiluGate, Epilogue::GeluGate] {
        for (t, n, k) in [(1, 1, 32), (2, 65, 64), (4, 128, 96), (5, 31, 32), (8, 33, 160), (33, 130, 64), (64, 64, 64)]
        {
            check(|tuning| cases::projection(tuning, Format::Q4_1, [t, n, k], epilogue));
        }
    }
}

#[test]
fn embeddings_of_every_format() {
    for format in Format::ALL {
        check(|_| cases::embed(format, 5, 256));
    }
}

#[test]
fn norms() {
    for (t, d) in [(1, 4), (1, 576), (31, 640), (33, 64), (129, 132)] {
        check(|tuning| cases::norms(tuning, t, d));
    }
}

#[test]
fn attention_over_the_paged_cache() {
    for (heads, kv_heads) in [(1, 1), (4, 2), (9, 3), (8, 1)] {
        for (t, head_dim, window, neox) in [(1, 64, None, false), (2, 256, Some(8), true), (65, 32, Some(33), true)] {
            for kv in [KvFormat::F16, KvFormat::F32] {
                let shape = cases::AttentionShape { t, heads, kv_heads, head_dim, window, kv, neox };
                check(|tuning| cases::attention(tuning, shape));
            }
        }
    }
}

#[test]
fn sampling() {
    for vocab in [40, 255, 3000] {
        check(|tuning| cases::sample(tuning, vocab));
    }
}
