//! Times one layer's attention, in every way of recording it, on every adapter there is.
//!
//! `cargo bench --bench attention [-- ADAPTER-NAME-PART] [--rows=1,32] [--contexts=128,1024] [--shape=64] [--only=NAME-PART]
//! [--wall]` prints milliseconds of a step of 1, 32 or 256 rows that ends a context of so many tokens, for the shapes of
//! SmolLM2-135M and Gemma 3 270M, and how many times faster than `plain` each other way is: the two dispatches without
//! sharing that every adapter once had. On Linux the milliseconds are those that the process computes, unless `--wall` asks
//! for those that pass, as a GPU wants. Rounds alternate, the best counts. Results must be those of `plain`.
#![allow(clippy::unwrap_used, reason = "benchmark")]

use std::rc::Rc;
use std::time::Instant;

use pagewise::compute::{
    BufferId, Executor, FewAttention, Gpu, GpuExecutor, GpuOptions, ManyAttention, Purpose, Recording, Reduce,
    RowClass, Step, Tuning,
};
use pagewise::kernels::{Attention, AttentionBuffers, KvFormat, RopeStore, SelfAttention, TOKEN_WORDS};
use pollster::block_on;

const ROUNDS: usize = 2;
/// How far a way may be from the first: sums are added up in another order, and f16 rounds to either side.
const TOLERANCE: f32 = 2e-3;

/// Heads, key-value heads, values of a head.
const SHAPES: [(&str, [usize; 3]); 2] = [("9 / 3 x 64", [9, 3, 64]), ("4 / 1 x 256", [4, 1, 256])];

fn main() {
    let argument = |name: &str| std::env::args().find_map(|a| a.strip_prefix(&format!("--{name}=")).map(str::to_owned));
    let numbers = |name: &str, default: &str| -> Vec<usize> {
        let list = argument(name).unwrap_or_else(|| default.to_owned());
        list.split(',').map(|number| number.parse().unwrap()).collect()
    };
    let adapter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let (only, shape_part) = (argument("only").unwrap_or_default(), argument("shape").unwrap_or_default());
    let names = ways(Tuning::GPU).into_iter().map(|(name, _)| name);
    let names: Vec<_> = names.filter(|name| name.contains(&only) || *name == "plain").collect();
    let contexts = numbers("contexts", "128,512,2048,8192");
    for num_rows in numbers("rows", "1,32,256") {
        for (shape_name, shape) in SHAPES.into_iter().filter(|(name, _)| name.contains(&shape_part)) {
            println!("\n{num_rows} rows, {shape_name}, f16 cache: ms (times faster), compiling first");
            println!("| way | compile | {} |", contexts.iter().map(usize::to_string).collect::<Vec<_>>().join(" | "));
            println!("| --- | --: |{}", " --: |".repeat(contexts.len()));
            let mut rows: Vec<_> = names.iter().map(|name| (*name, 0.0_f64, String::new())).collect();
            for &context in contexts.iter().filter(|&&context| context >= num_rows) {
                let results = compare(adapter.as_ref(), &names, shape, num_rows, context);
                for ((_, compile, cells), (compile_ms, ms, ratio)) in rows.iter_mut().zip(results) {
                    *compile = compile.max(compile_ms);
                    cells.push_str(&format!(" {ms:.2} ({ratio:.2}x) |"));
                }
            }
            for (name, compile, cells) in rows {
                println!("| {name} | {compile:.0} |{cells}");
            }
        }
    }
}

/// For each way: milliseconds to compile, milliseconds of a step, and how many times faster that is than the first way's.
fn compare(
    adapter: Option<&String>,
    names: &[&str],
    shape: [usize; 3],
    num_rows: usize,
    context: usize,
) -> Vec<(f64, f64, f64)> {
    let bench = |name: &&str| Bench::new(adapter.cloned(), name, shape, num_rows, context);
    let mut benches: Vec<_> = names.iter().map(bench).collect();
    let expected = benches[0].result();
    for (name, bench) in names.iter().zip(&mut benches) {
        let worst = bench.result().iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < TOLERANCE, "{name} differs by {worst} at {context}");
    }
    let mut best = vec![f64::MAX; names.len()];
    for _ in 0..ROUNDS {
        for (best, bench) in best.iter_mut().zip(&mut benches) {
            *best = best.min(bench.step_ms());
        }
    }
    benches.iter().zip(&best).map(|(bench, &ms)| (bench.compile_ms, ms, best[0] / ms)).collect()
}

/// The ways that are compared, on an adapter whose own choice is given.
fn ways(own: Tuning) -> Vec<(&'static str, Tuning)> {
    let split = |query_quads| Tuning { few_attention: FewAttention::Split, query_quads, ..own };
    let many = |many_attention| Tuning { many_attention, ..own };
    let row_lanes = if own.reduce == Reduce::Subgroup { own.lanes.min(8) } else { 1 };
    vec![
        ("plain", own),
        ("own choice", own),
        ("shared", many(ManyAttention::Shared)),
        ("tile", many(ManyAttention::Tile)),
        ("split, 16 quads a lane", split(16)),
        ("split, 64 quads a lane", split(64)),
        ("split, lanes share rows", Tuning { row_lanes, ..split(16) }),
    ]
}

struct Bench {
    executor: GpuExecutor,
    step: Step,
    out: BufferId,
    out_words: usize,
    compile_ms: f64,
}

impl Bench {
    #[allow(clippy::cast_possible_truncation, reason = "benchmark")]
    fn new(adapter: Option<String>, way: &str, shape: [usize; 3], num_rows: usize, context: usize) -> Self {
        let [heads, kv_heads, head_dim] = shape;
        let gpu = block_on(Gpu::open(&GpuOptions { adapter, ..GpuOptions::default() })).unwrap();
        let tuning = ways(gpu.tuning()).into_iter().find(|(name, _)| *name == way).unwrap().1;
        let mut recording = Recording::new();
        let table_stride = context.div_ceil(16);
        let (rope, attention) = kernels(shape, table_stride, tuning);
        let mut buffer = |label: &str, words| recording.buffer(label, words, Purpose::Scratch);
        let cache_words = table_stride * 16 * kv_heads * head_dim / 2;
        let buffers = AttentionBuffers {
            qkv: buffer("qkv", num_rows * (heads + 2 * kv_heads) * head_dim),
            angles: buffer("angles", 16 * table_stride * head_dim),
            norms: buffer("norms", 1),
            tokens: buffer("tokens", num_rows * TOKEN_WORDS),
            tables: buffer("tables", table_stride),
            k_cache: buffer("k", cache_words),
            v_cache: buffer("v", cache_words),
            q: buffer("q", num_rows * heads * head_dim),
            out: buffer("out", attention.out_len(num_rows)),
        };
        let AttentionBuffers { qkv, angles, norms, tokens, tables, k_cache, v_cache, q, out } = buffers;
        if way == "plain" {
            recording.dispatch(rope, &[qkv, angles, norms, tokens, q, k_cache, v_cache], RowClass::Any);
            recording.dispatch(attention, &[q, k_cache, v_cache, tokens, tables, out], RowClass::Any);
        } else {
            SelfAttention { rope, attention }.record(&mut recording, buffers);
        }
        let sizes: Vec<_> = recording.buffers().iter().map(|info| info.size_words).collect();
        let start = Stopwatch::start();
        let mut executor = block_on(GpuExecutor::new(gpu, Rc::new(recording))).unwrap();
        let mut random = 1_u32;
        let mut float = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        let half = |value: f32| u32::from(half::f16::from_f32(value).to_bits());
        executor.write(qkv, 0, &(0..sizes[0]).map(|_| float().to_bits()).collect::<Vec<_>>());
        executor.write(angles, 0, &(0..sizes[1]).map(|_| float().to_bits()).collect::<Vec<_>>());
        for cache in [k_cache, v_cache] {
            let words: Vec<_> = (0..cache_words).map(|_| half(float()) | half(float()) << 16).collect();
            executor.write(cache, 0, &words);
        }
        let first = context - num_rows;
        let token = |index: usize| [0, (first + index) as u32, 0, (first + index) as u32, 0];
        executor.write(tokens, 0, &(0..num_rows).flat_map(token).collect::<Vec<_>>());
        executor.write(tables, 0, &(0..table_stride as u32).collect::<Vec<_>>());
        let step = Step { num_tokens: num_rows as u32, longest: context as u32, ..Step::default() };
        let mut bench = Self { executor, step, out, out_words: num_rows * heads * head_dim, compile_ms: 0.0 };
        // The first run compiles.
        block_on(bench.executor.run(&bench.step, 1, &[])).unwrap();
        bench.compile_ms = start.ms();
        bench
    }

    fn result(&mut self) -> Vec<f32> {
        let words = block_on(self.executor.run(&self.step, 1, &[(self.out, self.out_words)])).unwrap();
        words[0].iter().map(|&bits| f32::from_bits(bits)).collect()
    }

    /// Of several steps, so that threads which wake up count little.
    fn step_ms(&mut self) -> f64 {
        let (start, mut num) = (Stopwatch::start(), 0.0);
        while num < 20.0 && start.wall.elapsed().as_millis() < 100 {
            block_on(self.executor.run(&self.step, 1, &[])).unwrap();
            num += 1.0;
        }
        start.ms() / num
    }
}

/// Milliseconds that the process computes, where the system tells (Linux): adapters that compute on the CPU are compared
/// while others compute, too. Elsewhere and on GPUs, those that pass.
struct Stopwatch {
    wall: Instant,
    cpu_ms: Option<f64>,
}

impl Stopwatch {
    fn start() -> Self {
        Self { wall: Instant::now(), cpu_ms: Self::cpu_ms() }
    }

    fn ms(&self) -> f64 {
        match (self.cpu_ms, Self::cpu_ms()) {
            (Some(start), Some(end)) => end - start,
            _ => 1e3 * self.wall.elapsed().as_secs_f64(),
        }
    }

    fn cpu_ms() -> Option<f64> {
        if std::env::args().any(|argument| argument == "--wall") {
            return None;
        }
        let threads = std::fs::read_dir("/proc/self/task").ok()?;
        let run = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<f64>().ok()
        };
        Some(threads.filter_map(|thread| run(thread.ok()?)).sum::<f64>() / 1e6)
    }
}

fn kernels([heads, kv_heads, head_dim]: [usize; 3], table_stride: usize, tuning: Tuning) -> (RopeStore, Attention) {
    let kv = KvFormat::F16;
    let (window, table_offset) = (None, 0);
    let rope = RopeStore {
        heads,
        kv_heads,
        head_dim,
        rope_dim: head_dim,
        neox: true,
        qk_norm: None,
        scale: 0.125,
        kv,
        group: 0,
        tuning,
    };
    (rope, Attention { heads, kv_heads, head_dim, window, table_offset, table_stride, kv, tuning })
}
