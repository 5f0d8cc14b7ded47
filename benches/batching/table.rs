//! Markdown tables.

use pagewise::simulation::{Percentiles, Report};

/// Prints a row of cells.
pub(crate) fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

/// Prints the head of a table; what follows the first columns is aligned to the right.
pub(crate) fn head(names: &[&str], num_left: usize) {
    println!();
    row(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let rule = |index: usize| if index < num_left { "---" } else { "--:" }.to_owned();
    row(&(0..names.len()).map(rule).collect::<Vec<_>>());
}

/// P50 / P95 / P99 of times, in seconds or milliseconds.
pub(crate) fn percentiles(times: Percentiles, unit_ms: f64) -> String {
    [times.p50, times.p95, times.p99].map(|ms| number(ms / unit_ms)).join(" / ")
}

/// Three digits that count.
pub(crate) fn number(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// The columns that all tables have.
pub(crate) const COLUMNS: [&str; 8] =
    ["tokens/s", "occupancy", "preempted", "TTFT, s", "inter-token, ms", "end to end, s", "over static", "over none"];

/// Their cells; `base` is the generated tokens per second of the modes that there are so far: none, static.
pub(crate) fn cells(report: &Report, base: &[f64]) -> Vec<String> {
    let ratio = |base: Option<&f64>| {
        base.map_or_else(|| "-".to_owned(), |base| format!("{:.2}x", report.generated_tokens_per_s / base))
    };
    vec![
        number(report.generated_tokens_per_s),
        format!("{:.0} %", 100.0 * report.occupancy),
        report.num_preemptions.to_string(),
        percentiles(report.ttft_ms, 1000.0),
        percentiles(report.inter_token_ms, 1.0),
        percentiles(report.end_to_end_ms, 1000.0),
        ratio(base.get(1)),
        ratio(base.first()),
    ]
}
