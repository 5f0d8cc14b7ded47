//! The engine's metrics as Prometheus reads them: its text format, version 0.0.4.
//!
//! Names are vLLM's where it has the same figure, with `pagewise:` for `vllm:`, so that its dashboards need one change.
//! Times are in seconds.

use std::fmt::Write as _;

use super::histogram::{BUCKETS_PER_OCTAVE, Histogram};
use super::metrics::EngineMetrics;

/// What comes out of a histogram's numbers.
#[derive(Clone, Copy)]
enum Unit {
    /// Milliseconds, written as seconds.
    Milliseconds,
    /// As it is.
    Count,
}

/// The metrics as text; `model_name` labels every sample, unless it is empty.
pub fn prometheus(metrics: &EngineMetrics, model_name: &str) -> String {
    let mut page = Page { text: String::new(), label: label("model_name", model_name) };
    page.gauges(metrics);
    page.counters(metrics);
    page.histograms(metrics);
    page.text
}

struct Page {
    text: String,
    /// The label of every sample, or nothing.
    label: String,
}

impl Page {
    fn gauges(&mut self, metrics: &EngineMetrics) {
        self.gauge("num_requests_running", "Requests that hold blocks.", metrics.num_running as f64);
        self.gauge("num_requests_waiting", "Requests that wait for a step.", metrics.num_waiting as f64);
        self.gauge("kv_cache_usage_perc", "Share of KV blocks that sequences hold, 0 to 1.", metrics.kv_usage);
    }

    fn counters(&mut self, metrics: &EngineMetrics) {
        let totals = [
            ("num_preemptions_total", "Times that a sequence gave its blocks to another.", metrics.num_preemptions),
            ("prompt_tokens_total", "Tokens of prompts.", metrics.prompt_tokens),
            ("prompt_tokens_cached_total", "Tokens of prompts that the prefix cache had.", metrics.cached_tokens),
            ("generation_tokens_total", "Tokens sampled.", metrics.generated_tokens),
            ("overshot_tokens_total", "Tokens sampled behind an answer's end.", metrics.overshot_tokens),
            ("steps_ahead_total", "Steps submitted before the one before was read back.", metrics.num_steps_ahead),
            ("computed_tokens_total", "Tokens that went through the model.", metrics.computed_tokens),
            ("prefix_cache_queries_total", "Tokens looked for in the prefix cache.", metrics.prefix_queries),
            ("prefix_cache_hits_total", "Tokens found in the prefix cache.", metrics.prefix_hits),
            ("requests_cancelled_total", "Requests that their owner ended.", metrics.num_cancelled),
            ("requests_rejected_total", "Requests refused because the queue was full.", metrics.num_rejected),
            ("requests_expired_total", "Requests that ran out of their time.", metrics.num_expired),
            ("requests_failed_total", "Requests that failed.", metrics.num_failed),
            ("out_of_memory_total", "Steps that failed for want of memory.", metrics.num_out_of_memory),
        ];
        for (name, help, value) in totals {
            self.head(name, help, "counter");
            self.sample(name, "", value);
        }
        let name = "request_success_total";
        self.head(name, "Complete answers, by why they ended.", "counter");
        self.sample(name, &label("finished_reason", "stop"), metrics.num_finished.stop);
        self.sample(name, &label("finished_reason", "length"), metrics.num_finished.length);
    }

    fn histograms(&mut self, metrics: &EngineMetrics) {
        use Unit::{Count, Milliseconds};
        for (name, help, unit, histogram) in [
            ("time_to_first_token_seconds", "From arrival to the first token.", Milliseconds, &metrics.ttft_ms),
            ("inter_token_latency_seconds", "Between two tokens of an answer.", Milliseconds, &metrics.inter_token_ms),
            (
                "request_time_per_output_token_seconds",
                "Mean between an answer's tokens.",
                Milliseconds,
                &metrics.tpot_ms,
            ),
            ("request_queue_time_seconds", "From arrival to the first step.", Milliseconds, &metrics.queue_ms),
            ("e2e_request_latency_seconds", "From arrival to the end of the answer.", Milliseconds, &metrics.e2e_ms),
            ("step_time_seconds", "Duration of a step.", Milliseconds, &metrics.step_ms),
            ("gpu_step_time_seconds", "The GPU's part of a step.", Milliseconds, &metrics.gpu_step_ms),
            ("encode_time_seconds", "Handing a step to the GPU.", Milliseconds, &metrics.encode_ms),
            ("iteration_tokens_total", "Tokens of a step.", Count, &metrics.step_tokens),
            ("iteration_sequences", "Sequences of a step.", Count, &metrics.step_sequences),
        ] {
            self.histogram(name, help, unit, histogram);
        }
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        self.sample(name, "", value);
    }

    fn histogram(&mut self, name: &str, help: &str, unit: Unit, histogram: &Histogram) {
        self.head(name, help, "histogram");
        for (bound, count) in histogram.cumulative(BUCKETS_PER_OCTAVE as usize) {
            self.sample(&format!("{name}_bucket"), &label("le", &unit.of(bound).to_string()), count);
        }
        self.sample(&format!("{name}_bucket"), &label("le", "+Inf"), histogram.count());
        self.sample(&format!("{name}_sum"), "", unit.of(histogram.sum()));
        self.sample(&format!("{name}_count"), "", histogram.count());
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP pagewise:{name} {help}\n# TYPE pagewise:{name} {kind}");
    }

    fn sample(&mut self, name: &str, more: &str, value: impl std::fmt::Display) {
        let labels = [self.label.as_str(), more].into_iter().filter(|label| !label.is_empty());
        let labels = labels.collect::<Vec<_>>().join(",");
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        let _ = writeln!(self.text, "pagewise:{name}{labels} {value}");
    }
}

impl Unit {
    fn of(self, value: f64) -> f64 {
        match self {
            // In whole microseconds a bound has a short decimal form.
            Self::Milliseconds => (value * 1000.0).round() / 1e6,
            Self::Count => value,
        }
    }
}

/// `name="value"`, or nothing without a value.
fn label(name: &str, value: &str) -> String {
    if value.is_empty() {
        return String::new();
    }
    let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    format!("{name}=\"{value}\"")
}
