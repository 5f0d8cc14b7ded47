//! The table.

use std::fmt::Write as _;

use pagewise::Result;
use pagewise::compute::Gpu;
use pagewise::quant::Format;

use crate::Plan;
use crate::measure::Subject;
use crate::peak::Peak;
use crate::synthetic::Shape;

/// The context at which kernels are taken apart.
const KERNELS_AT: usize = 1024;

/// The adapter and its limits, and the head of the table.
pub(crate) fn head(gpu: &Gpu, peak: &Peak) -> String {
    format!(
        "{}: copies {:.1} GB/s, multiplies f32 matrices at {:.1} GFLOP/s ({})\n\n\
         | model | format | what | ms | tokens/s | limit, ms | of the limit | with the CPU, ms |\n\
         | --- | --- | --- | --: | --: | --: | --: | --: |",
        gpu.name(),
        peak.copy_bytes_per_ms / 1e6,
        peak.flops_per_ms / 1e6,
        peak.best_matmul
    )
}

/// What there was no time for.
pub(crate) fn left_out(shape: &Shape, format: Format) -> String {
    format!("| {} | {format} | left out: the time is up |", shape.name)
}

/// Measures a model and prints its rows; returns the table of its kernels.
///
/// # Errors
/// What the device reports.
pub(crate) async fn model(
    subject: &mut Subject,
    shape: &Shape,
    format: Format,
    plan: &Plan,
    peak: &Peak,
    print: impl Fn(&str),
) -> Result<String> {
    let row = |what: &str, ms: f64, tokens: f64, limit_ms: f64, wall_ms: f64| {
        let (rate, share) = (1e3 * tokens / ms, 100.0 * limit_ms / ms);
        let name = shape.name;
        print(&format!(
            "| {name} | {format} | {what} | {ms:.2} | {rate:.1} | {limit_ms:.2} | {share:.0} % | {wall_ms:.2} |"
        ));
    };
    let mut shares = Vec::new();
    for &context in &plan.contexts {
        let times = subject.decode(context, 1).await?;
        let limit_ms = (subject.weight_bytes() + subject.cache_bytes(context)) as f64 / peak.copy_bytes_per_ms;
        row(&format!("decode at {context}"), times.best_known_ms(), 1.0, limit_ms, times.wall_ms);
        shares.push((context, limit_ms / times.best_known_ms()));
    }
    // What a small batch costs beyond one: weights are read once for all of it.
    for num_tokens in [2, 4] {
        let Some(&context) = plan.contexts.first().filter(|&&context| context >= num_tokens) else { break };
        let times = subject.decode(context, num_tokens).await?;
        let limit_ms = (subject.weight_bytes() + subject.cache_bytes(context)) as f64 / peak.copy_bytes_per_ms;
        let what = format!("decode of {num_tokens} at {context}");
        row(&what, times.best_known_ms(), num_tokens as f64, limit_ms, times.wall_ms);
    }
    let tokens = plan.prompt_tokens;
    let times = subject.prefill(tokens).await?;
    let limit_ms = (2 * tokens as u64 * shape.layer_weights()) as f64 / peak.flops_per_ms;
    row(&format!("prefill of {tokens}"), times.best_known_ms(), tokens as f64, limit_ms, times.wall_ms);
    Ok(kernels(subject, shape, format, plan, peak).await? + &beyond_the_bytes(shape, format, &shares))
}

/// What a long context costs beyond the bytes that attention must read there: 100 % is nothing.
fn beyond_the_bytes(shape: &Shape, format: Format, shares: &[(usize, f64)]) -> String {
    let (Some((short, at_short)), Some((long, at_long))) = (shares.first(), shares.last()) else {
        return String::new();
    };
    let percent = 100.0 * at_long / at_short;
    format!(
        "\n{} {format}: decode at {long} has {percent:.0} % of the rate at {short}, beyond the bytes it must read\n",
        shape.name
    )
}

async fn kernels(subject: &mut Subject, shape: &Shape, format: Format, plan: &Plan, peak: &Peak) -> Result<String> {
    let context = plan.contexts.iter().copied().filter(|&context| context <= KERNELS_AT).max().unwrap_or(1);
    let Some(kernels) = subject.kernels(context).await? else { return Ok(String::new()) };
    let mut text = format!(
        "\n{} {format}, {} layers, loaded in {:.1} s; a decode step at {context}, each dispatch alone:\n\n\
         | kernel | dispatches | ms | GB/s | of the copy's |\n| --- | --: | --: | --: | --: |\n",
        shape.name,
        shape.layers(),
        subject.load_s
    );
    for (name, times) in kernels {
        let rate = times.bytes as f64 / times.ms;
        let (gb_per_s, share) = (rate / 1e6, 100.0 * rate / peak.copy_bytes_per_ms);
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "| {name} | {} | {:.3} | {gb_per_s:.1} | {share:.0} % |", times.num_dispatches, times.ms);
    }
    Ok(text)
}
