//! What an adapter can do at best: copying memory, and multiplying matrices of f32.

use std::rc::Rc;

use pagewise::Result;
use pagewise::compute::{
    Access, AdapterKind, Bindings, BufferId, Executor, Gpu, GpuExecutor, Kernel, ManyRows, Purpose, Recording,
    RowClass, Rows, Shader, Step, Tuning,
};
use pagewise::kernels::{Epilogue, Projection};
use pagewise::quant::Format;
use web_time::Instant;

/// The two limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peak {
    /// Bytes read and written in a millisecond of copying.
    pub(crate) copy_bytes_per_ms: f64,
    /// Floating-point operations in a millisecond of the best product, two for each multiply-add.
    pub(crate) flops_per_ms: f64,
    /// Which product that was.
    pub(crate) best_matmul: &'static str,
}

/// Runs of a measurement, of which the fastest counts.
const RUNS: usize = 5;

#[derive(Debug)]
struct Copy {
    num_quads: u32,
}

impl Kernel for Copy {
    fn shader(&self) -> Shader {
        Shader::new("copy", include_str!("copy.wgsl"))
    }

    fn access(&self) -> &'static [Access] {
        &[Access::Read, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    fn grid(&self, _: &Step) -> [u32; 3] {
        let workgroups = self.num_quads.div_ceil(256);
        let columns = workgroups.min(32_768);
        [columns, workgroups.div_ceil(columns), 1]
    }

    fn twin(&self, _: &Step, bindings: &Bindings<'_>) {
        bindings.u32_mut(1).copy_from_slice(&bindings.u32(0));
    }
}

#[derive(Debug)]
struct MatMulF32 {
    m: u32,
    n: u32,
    k: u32,
}

impl Kernel for MatMulF32 {
    fn shader(&self) -> Shader {
        Shader::new("matmul_f32", include_str!("matmul.wgsl"))
    }

    fn access(&self) -> &'static [Access] {
        &[Access::Read, Access::Read, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![("K", self.k.into()), ("N", self.n.into())]
    }

    fn grid(&self, _: &Step) -> [u32; 3] {
        [self.n / 64, self.m / 64, 1]
    }

    fn twin(&self, _: &Step, bindings: &Bindings<'_>) {
        let (a, b, mut c) = (bindings.f32(0), bindings.f32(1), bindings.f32_mut(2));
        let (k, n) = (self.k as usize, self.n as usize);
        for (row, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
            for (column, c) in b.chunks_exact(k).zip(c) {
                *c = row.iter().zip(column).map(|(a, b)| a * b).sum();
            }
        }
    }
}

impl Peak {
    /// Measures an adapter.
    ///
    /// # Errors
    /// What the device reports.
    pub(crate) async fn measure(gpu: &Gpu) -> Result<Self> {
        let is_gpu = gpu.kind() == AdapterKind::Gpu;
        let copy_bytes_per_ms = copy(gpu, if is_gpu { 256 << 20 } else { 64 << 20 }).await?;
        let sizes = if is_gpu { [1024, 4096, 4096] } else { [128, 512, 512] };
        let many = ManyRows::from_registers(gpu.subgroup_lanes());
        let mut best = ("", 0.0);
        let ways = [
            ("a plain 64 x 64 tile", None),
            ("our kernel without tiles", Some(Tuning { many, ..Tuning::SOFTWARE })),
            ("our tiles", Some(Tuning::GPU)),
        ];
        for (name, tuning) in ways {
            let flops = matmul(gpu, sizes, tuning).await?;
            if flops > best.1 {
                best = (name, flops);
            }
        }
        Ok(Self { copy_bytes_per_ms, flops_per_ms: best.1, best_matmul: best.0 })
    }
}

/// The fastest of some runs, by the device's clock where it has one.
async fn fastest_ms(gpu: &Gpu, recording: Recording, step: Step, read: BufferId) -> Result<f64> {
    let mut executor = GpuExecutor::new(gpu.clone(), Rc::new(recording)).await?;
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        executor.run(&step, 1, &[(read, 1)]).await?;
        let wall_ms = 1e3 * start.elapsed().as_secs_f64();
        best = best.min(executor.device_ms().unwrap_or(wall_ms));
    }
    Ok(best)
}

async fn copy(gpu: &Gpu, wanted_bytes: u64) -> Result<f64> {
    const REPEATS: usize = 8;
    let bytes = wanted_bytes.min(gpu.limits().binding_bytes).min(gpu.limits().buffer_bytes) / 4096 * 4096;
    let words = usize::try_from(bytes / 4).unwrap_or(usize::MAX);
    let mut recording = Recording::new();
    let [from, to] = ["from", "to"].map(|label| recording.buffer(label, words, Purpose::Scratch));
    let num_quads = u32::try_from(bytes / 16).unwrap_or(u32::MAX);
    for _ in 0..REPEATS {
        recording.dispatch(Copy { num_quads }, &[from, to], RowClass::Any);
    }
    let ms = fastest_ms(gpu, recording, Step::default(), to).await?;
    Ok((2 * bytes * REPEATS as u64) as f64 / ms)
}

async fn matmul(gpu: &Gpu, [m, n, k]: [usize; 3], tuning: Option<Tuning>) -> Result<f64> {
    const REPEATS: usize = 4;
    let mut recording = Recording::new();
    let [x, weights, y] = [("x", m * k), ("weights", n * k), ("y", m * n)]
        .map(|(label, words)| recording.buffer(label, words, Purpose::Scratch));
    let word = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    for _ in 0..REPEATS {
        let Some(tuning) = tuning else {
            recording.dispatch(MatMulF32 { m: word(m), n: word(n), k: word(k) }, &[x, weights, y], RowClass::Any);
            continue;
        };
        let (epilogue, rows) = (Epilogue::Store, Rows::Tokens);
        let p = Projection { format: Format::F32, k, n, epilogue, rows, out_stride: n, out_offset: 0, epsilon: 0.0 };
        p.record(&mut recording, &tuning, weights, x, y);
    }
    let step = Step { num_tokens: word(m), ..Step::default() };
    let ms = fastest_ms(gpu, recording, step, y).await?;
    Ok((2 * m * n * k * REPEATS) as f64 / ms)
}
