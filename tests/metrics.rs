//! Histograms and the Prometheus text of the engine's metrics.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use pagewise::engine::{EngineMetrics, FinishedCounts, Histogram, prometheus};
use proptest::prelude::*;

fn filled(values: &[f64]) -> Histogram {
    let mut histogram = Histogram::times();
    values.iter().for_each(|&value| histogram.record(value));
    histogram
}

#[test]
fn an_empty_histogram_has_no_quantiles() {
    let histogram = Histogram::times();
    assert_eq!((histogram.count(), histogram.sum(), histogram.max(), histogram.quantile(0.5)), (0, 0.0, None, None));
}

#[test]
fn a_single_value_is_every_quantile() {
    for value in [0.0, 0.05, 0.06, 7.3, 1e9] {
        let histogram = filled(&[value]);
        for q in [0.0, 0.5, 0.99, 1.0] {
            assert_eq!(histogram.quantile(q), Some(value));
        }
        assert_eq!((histogram.sum(), histogram.max()), (value, Some(value)));
    }
}

#[test]
fn what_is_no_time_is_handled() {
    let histogram = filled(&[f64::NAN, -3.0]);
    assert_eq!((histogram.count(), histogram.sum(), histogram.max()), (1, 0.0, Some(0.0)));
    assert_eq!(filled(&[f64::INFINITY]).quantile(0.5), Some(f64::INFINITY));
}

#[test]
fn a_cleared_histogram_is_as_new() {
    let mut histogram = filled(&[1.0, 2.0]);
    histogram.clear();
    assert_eq!(histogram, Histogram::times());
    histogram.record(3.0);
    assert_eq!(histogram, filled(&[3.0]));
}

#[test]
fn a_summary_has_the_figures() {
    let summary = filled(&[10.0; 4]).summary();
    assert_eq!((summary.count, summary.sum, summary.max), (4, 40.0, Some(10.0)));
    assert_eq!([summary.p50, summary.p90, summary.p95, summary.p99], [Some(10.0); 4]);
    let json = serde_json::to_value(filled(&[10.0])).unwrap();
    assert_eq!(json["p99"], 10.0);
}

proptest! {
    /// A quantile lies within a bucket's ratio of the exact one.
    #[test]
    fn quantiles_are_near_the_exact_ones(mut values in prop::collection::vec(0.06..1e6_f64, 1..200), q in 0.01..1.0_f64) {
        let histogram = filled(&values);
        values.sort_by(f64::total_cmp);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let exact = values[((q * values.len() as f64).ceil() as usize - 1).min(values.len() - 1)];
        let found = histogram.quantile(q).unwrap();
        let ratio = 2_f64.powf(0.25) * 1.000_001;
        prop_assert!(found <= exact * ratio && found >= exact / ratio, "{found} for {exact}");
    }

    /// A higher share never has a lower value.
    #[test]
    fn quantiles_ascend(values in prop::collection::vec(0.0..1e8_f64, 1..100)) {
        let histogram = filled(&values);
        let quantiles: Vec<_> = (0..=100).map(|q| histogram.quantile(f64::from(q) / 100.0).unwrap()).collect();
        prop_assert!(quantiles.is_sorted(), "{quantiles:?}");
        prop_assert_eq!(quantiles[100], histogram.max().unwrap());
    }
}

/// One sample line.
#[derive(Debug, Clone, PartialEq)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// A family of the exposition: its type and its samples.
type Families = BTreeMap<String, (String, Vec<Sample>)>;

fn is_name(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

/// Reads `name="value",...` up to the closing brace; returns what follows it.
fn labels(mut rest: &str) -> (BTreeMap<String, String>, &str) {
    let mut found = BTreeMap::new();
    loop {
        let (name, tail) = rest.split_once("=\"").unwrap();
        assert!(is_name(name) && !name.contains(':'), "{name}");
        let mut value = String::new();
        let mut chars = tail.char_indices();
        let end = loop {
            match chars.next().unwrap() {
                (_, '\\') => match chars.next().unwrap().1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    c => panic!("unknown escape {c}"),
                },
                (at, '"') => break at + 1,
                (_, c) => value.push(c),
            }
        };
        assert!(found.insert(name.to_owned(), value).is_none(), "{name} twice");
        rest = &tail[end..];
        if let Some(tail) = rest.strip_prefix('}') {
            return (found, tail);
        }
        rest = rest.strip_prefix(',').unwrap();
    }
}

/// Parses the text format and holds it to its rules: heads before samples, no family or sample twice, names and values
/// well-formed, a line feed at the end.
fn parse(text: &str) -> Families {
    assert!(text.ends_with('\n') && !text.contains("\n\n"));
    let mut families = Families::new();
    let mut open = String::new();
    let mut seen = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# HELP ") {
            let (name, help) = head.split_once(' ').unwrap();
            assert!(is_name(name) && !help.is_empty() && !families.contains_key(name), "{line}");
            open = name.to_owned();
        } else if let Some(head) = line.strip_prefix("# TYPE ") {
            let (name, kind) = head.split_once(' ').unwrap();
            assert!(name == open && ["counter", "gauge", "histogram"].contains(&kind), "{line}");
            families.insert(open.clone(), (kind.to_owned(), Vec::new()));
        } else {
            let end = line.find(['{', ' ']).unwrap();
            let (name, rest) = line.split_at(end);
            let (labels, rest) = rest.strip_prefix('{').map_or((BTreeMap::new(), rest), labels);
            let value = rest.strip_prefix(' ').unwrap().parse().unwrap();
            let (kind, samples) = families.get_mut(&open).unwrap();
            let suffix = name.strip_prefix(open.as_str()).unwrap();
            let allowed: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(is_name(name) && allowed.contains(&suffix), "{line}");
            assert!(kind != "counter" || (open.ends_with("_total") && value >= 0.0), "{line}");
            let key = (name.to_owned(), labels.clone());
            assert!(!seen.contains(&key), "{line}");
            seen.push(key);
            samples.push(Sample { name: name.to_owned(), labels, value });
        }
    }
    families
}

/// A histogram's buckets ascend and end with all of its values.
fn check_histogram(name: &str, samples: &[Sample]) {
    let of = |suffix: &str| -> Vec<&Sample> {
        samples.iter().filter(|sample| sample.name == format!("{name}{suffix}")).collect()
    };
    let bucket = |sample: &Sample| (sample.labels["le"].replace("+Inf", "inf").parse::<f64>().unwrap(), sample.value);
    let buckets: Vec<_> = of("_bucket").into_iter().map(bucket).collect();
    assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1), "{name}: {buckets:?}");
    assert_eq!(buckets.last().unwrap().0, f64::INFINITY);
    assert_eq!(of("_count").iter().map(|sample| sample.value).collect::<Vec<_>>(), [buckets.last().unwrap().1]);
    assert_eq!(of("_sum").len(), 1);
}

fn example() -> EngineMetrics {
    EngineMetrics {
        num_running: 2,
        num_waiting: 3,
        kv_usage: 0.25,
        prompt_tokens: 100,
        generated_tokens: 7,
        num_finished: FinishedCounts { stop: 4, length: 5 },
        ttft_ms: filled(&[0.05, 0.1, 10.0, 1e9]),
        ..EngineMetrics::default()
    }
}

#[test]
fn the_text_is_a_valid_exposition() {
    for (metrics, model) in [(EngineMetrics::default(), ""), (example(), "a \"model\"\\\n")] {
        let families = parse(&prometheus(&metrics, model));
        assert!(families.keys().all(|name| name.starts_with("pagewise:")), "{:?}", families.keys());
        for (name, (kind, samples)) in &families {
            assert!(!samples.is_empty(), "{name}");
            let has_model = |sample: &Sample| sample.labels.get("model_name").map(String::as_str) == Some(model);
            assert!(samples.iter().all(|sample| has_model(sample) || model.is_empty()), "{name}: {samples:?}");
            if kind == "histogram" {
                check_histogram(name, samples);
            }
        }
    }
}

#[test]
fn the_text_has_the_figures_in_seconds() {
    let families = parse(&prometheus(&example(), ""));
    let value = |name: &str, labels: &[(&str, &str)]| {
        let (family, sample) = name.split_once('/').unwrap_or((name, name));
        let labels: BTreeMap<_, _> = labels.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let is_it = |s: &&Sample| s.name == format!("pagewise:{sample}") && s.labels == labels;
        families[&format!("pagewise:{family}")].1.iter().find(is_it).map(|sample| sample.value)
    };
    assert_eq!(value("num_requests_running", &[]), Some(2.0));
    assert_eq!(value("num_requests_waiting", &[]), Some(3.0));
    assert_eq!(value("kv_cache_usage_perc", &[]), Some(0.25));
    assert_eq!(value("prompt_tokens_total", &[]), Some(100.0));
    assert_eq!(value("generation_tokens_total", &[]), Some(7.0));
    assert_eq!(value("request_success_total", &[("finished_reason", "stop")]), Some(4.0));
    assert_eq!(value("request_success_total", &[("finished_reason", "length")]), Some(5.0));
    let ttft = "time_to_first_token_seconds";
    assert_eq!(value(&format!("{ttft}/{ttft}_sum"), &[]), Some(1_000_000.010_15));
    for (le, count) in [("0.00005", 1.0), ("0.0001", 2.0), ("0.0064", 2.0), ("0.0128", 3.0), ("+Inf", 4.0)] {
        assert_eq!(value(&format!("{ttft}/{ttft}_bucket"), &[("le", le)]), Some(count), "{le}");
    }
}
