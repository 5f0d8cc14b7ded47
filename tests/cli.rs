//! The native command line on a tiny model: what each subcommand prints, and how it fails. `inspect` has more in
//! `cli_inspect.rs`.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/gguf_writer.rs"]
mod gguf_writer;

use gguf_writer::GgufWriter;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny-llama-f16.gguf");
const VOCAB: usize = 320;

fn pagewise(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pagewise")).args(args).output().unwrap()
}

/// `COMMAND TINY ARGS --json`, which must succeed.
fn report(command: &str, args: &[&str]) -> Value {
    let output = pagewise(&[&[command, TINY], args, &["--json"]].concat());
    assert!(output.status.success(), "{command} {args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(command: &str, args: &[&str]) -> String {
    let output = pagewise(&[&[command, TINY], args].concat());
    assert!(output.status.success(), "{command} {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A file of its own for a test.
fn write(name: &str, content: impl AsRef<[u8]>) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn logits(args: &[&str]) -> Vec<Vec<f64>> {
    serde_json::from_value(report("logits", args)["logits"].clone()).unwrap()
}

fn ids(answer: &Value) -> Vec<u64> {
    serde_json::from_value(answer["ids"].clone()).unwrap()
}

fn largest_difference(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    assert_eq!((a.len(), a[0].len()), (b.len(), b[0].len()));
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn logits_come_in_the_order_asked_for() {
    let whole = report("logits", &["--ids", "43,307,79,82", "--kv", "f32"]);
    assert_eq!(whole["positions"], serde_json::json!([0, 1, 2, 3]));
    let whole: Vec<Vec<f64>> = serde_json::from_value(whole["logits"].clone()).unwrap();
    assert!(whole.len() == 4 && whole.iter().all(|row| row.len() == VOCAB));
    assert!(largest_difference(&whole[..1], &whole[1..2]) > 1.0, "positions differ");
    let some = report("logits", &["--ids", "43,307,79,82", "--kv", "f32", "--positions", "2,0,2"]);
    assert_eq!(some["positions"], serde_json::json!([2, 0, 2]));
    let some: Vec<Vec<f64>> = serde_json::from_value(some["logits"].clone()).unwrap();
    assert!(largest_difference(&some, &[whole[2].clone(), whole[0].clone(), whole[2].clone()]) < 1e-3);
}

#[test]
fn logits_do_not_depend_on_executor_chunk_adapter_or_device_limits() {
    let args = ["--ids", "43,307,79,82,15,275,278", "--kv", "f32", "--positions", "0,6"];
    let expected = logits(&[&args[..], &["--executor", "cpu"]].concat());
    let ways: [&[&str]; 5] = [
        &[],
        &["--chunk", "1"],
        &["--chunk", "3"],
        &["--baseline"],
        &["--max-tokens-per-step", "2", "--context", "32"],
    ];
    for flags in ways {
        let difference = largest_difference(&logits(&[&args[..], flags].concat()), &expected);
        assert!(difference < 1e-3, "{flags:?}: {difference}");
    }
    let half = logits(&["--ids", "43,307,79,82,15,275,278", "--positions", "0,6"]);
    let difference = largest_difference(&half, &expected);
    assert!(difference > 0.0 && difference < 3e-2, "f16: {difference}");
}

#[test]
fn logits_as_a_table_show_the_largest_first() {
    let table = text("logits", &["--ids", "43,307", "--positions", "1"]);
    let lines: Vec<_> = table.lines().collect();
    assert!(lines.len() == 11 && lines[0].starts_with("position 1, after 307  "), "{table}");
    let shown: Vec<f64> = lines[1..].iter().map(|l| l.split_whitespace().next().unwrap().parse().unwrap()).collect();
    assert!(shown.is_sorted_by(|a, b| a >= b), "{table}");
    let row = &logits(&["--ids", "43,307", "--positions", "1"])[0];
    assert!((row.iter().copied().fold(f64::MIN, f64::max) - shown[0]).abs() < 1e-3, "{table}");
}

#[test]
fn generate_reports_its_answer() {
    let args = ["--prompt", "Hello world", "--max-tokens", "6", "--temperature", "0", "--kv", "f32"];
    let answer = report("generate", &args);
    assert_eq!(ids(&answer).len(), 6);
    assert_eq!(answer["finish_reason"], "length");
    let usage = &answer["usage"];
    assert_eq!(usage["completion_tokens"], 6);
    assert_eq!(usage["total_tokens"].as_u64(), usage["prompt_tokens"].as_u64().map(|prompt| prompt + 6));
    let timings = &answer["timings"];
    assert!(timings["ttft_ms"].as_f64().unwrap() > 0.0 && timings["decode_tokens_per_s"].as_f64().unwrap() > 0.0);
    assert!(!answer["adapter"].as_str().unwrap().is_empty());
    assert_eq!(text("generate", &args).trim_end_matches('\n'), answer["text"].as_str().unwrap().trim_end_matches('\n'));
    let on_cpu = report("generate", &[&args[..], &["--executor", "cpu"]].concat());
    assert_eq!((ids(&on_cpu), &on_cpu["text"]), (ids(&answer), &answer["text"]));
    assert_eq!(on_cpu["adapter"], "none (CPU executor)");
}

#[test]
fn the_same_seed_gives_the_same_text() {
    let answer = |seed: &str, executor: &str| {
        let args = ["--prompt", "Hello", "--max-tokens", "8", "--kv", "f32", "--seed", seed, "--executor", executor];
        report("generate", &args)
    };
    let first = answer("7", "gpu");
    assert_eq!(first["seed"], 7);
    for executor in ["gpu", "cpu"] {
        let again = answer("7", executor);
        assert_eq!((ids(&again), &again["text"]), (ids(&first), &first["text"]), "{executor}");
    }
    assert_ne!(ids(&answer("8", "gpu")), ids(&first));
    // A seed from the clock is reported, so that the answer can be had again.
    let unseeded = report("generate", &["--prompt", "Hello", "--max-tokens", "8", "--kv", "f32"]);
    let again = answer(&unseeded["seed"].to_string(), "gpu");
    assert_eq!(ids(&again), ids(&unseeded));
}

#[test]
fn sampling_flags_and_stops_reach_the_engine() {
    // What the GPU makes of them is the business of other tests; without it there is less to wait for.
    let base = ["--prompt", "Hello", "--max-tokens", "6", "--executor", "cpu"];
    let greedy = [&base[..], &["--temperature", "0"]].concat();
    let with = |flags: &[&str]| report("generate", &[&greedy[..], flags].concat());
    let plain = ids(&with(&[]));
    assert_eq!(ids(&with(&["--logit-bias", "40=100", "--logit-bias", "41=-5"])), [40; 6]);
    let forbidden = with(&["--logit-bias", &format!("{}=-inf", plain[0])]);
    assert!(!ids(&forbidden).contains(&plain[0]));
    // Pushed to one token, penalties push away from it again.
    let pushed = ["--logit-bias", "40=100"];
    let penalised = with(&[&pushed[..], &["--logit-bias", "41=99", "--presence-penalty", "2"]].concat());
    assert_eq!(ids(&penalised)[..2], [40, 41]);
    let negative = with(&[&pushed[..], &["--frequency-penalty", "-0.5", "--repetition-penalty", "1.1"]].concat());
    assert_eq!(ids(&negative), [40; 6]);
    let warm = ["--temperature", "2", "--seed", "1"];
    for flags in [["--top-k", "1"], ["--top-p", "0"], ["--min-p", "1"]] {
        assert_eq!(ids(&report("generate", &[&base[..], &warm, &flags].concat())), plain, "{flags:?}");
    }
    let stopped = with(&["--logit-bias", "40=100", "--stop-token-id", "41", "--stop-token-id", "40"]);
    assert_eq!((&stopped["finish_reason"], ids(&stopped)), (&"stop".into(), vec![40]));
    let character = with(&pushed)["text"].as_str().unwrap().chars().next().unwrap().to_string();
    let stopped = with(&[&pushed[..], &["--stop", "not there", "--stop", &character.repeat(3)]].concat());
    assert_eq!((&stopped["finish_reason"], ids(&stopped).len(), &stopped["text"]), (&"stop".into(), 3, &"".into()));
}

#[test]
fn constraints_shape_the_answer() {
    let base = ["--prompt", "Hello", "--max-tokens", "40", "--executor", "cpu", "--seed", "1"];
    let with = |flag: &str, value: &str| report("generate", &[&base[..], &[flag, value]].concat());
    let schema =
        write("schema.json", r#"{"type": "object", "properties": {"n": {"enum": [1, 22]}}, "required": ["n"]}"#);
    let answer = with("--json-schema", &schema);
    let value: Value = serde_json::from_str(answer["text"].as_str().unwrap()).unwrap_or_default();
    assert!(answer["finish_reason"] == "length" || [1, 22].map(Value::from).contains(&value["n"]), "{answer}");
    let answer = with("--regex", "(yes|no)!");
    assert!(["yes!", "no!"].contains(&answer["text"].as_str().unwrap()), "{answer}");
    let answer = with("--grammar", &write("grammar.lark", "start: \"a\" b\nb: \"c\""));
    assert_eq!((&answer["text"], &answer["finish_reason"]), (&"ac".into(), &"stop".into()));
    let output =
        pagewise(&[&["generate", TINY], &base[..], &["--json-schema", &write("bad.json", r#"{"not": {}}"#)]].concat());
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("bad_request") && error.contains("bad.json: not is not supported"), "{error}");
}

#[test]
fn messages_go_through_the_models_template() {
    let path = write("messages.json", r#"[{"role": "user", "content": "Hello"}]"#);
    let greedy = ["--max-tokens", "4", "--temperature", "0"];
    let chat = report("generate", &[&["--messages", &path][..], &greedy].concat());
    let prompt = report("generate", &[&["--prompt", "Hello"][..], &greedy].concat());
    assert!(chat["usage"]["prompt_tokens"].as_u64().unwrap() > prompt["usage"]["prompt_tokens"].as_u64().unwrap());
    let rendered = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    let same = report("generate", &[&["--prompt", rendered][..], &greedy].concat());
    assert_eq!((&same["usage"], ids(&same)), (&chat["usage"], ids(&chat)));
}

#[test]
fn bench_counts_what_a_step_does() {
    let flags = ["--prompt-tokens", "12", "--max-tokens", "4", "--runs", "2"];
    let bench = report("bench", &flags);
    for speed in ["prefill_tokens_per_s", "decode_tokens_per_s", "ttft_ms"] {
        let [min, median, max] = ["min", "median", "max"].map(|key| bench[speed][key].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= max, "{speed}: {bench}");
    }
    assert_eq!((&bench["kv"], &bench["num_runs"], &bench["executor"]), (&"f16".into(), &2.into(), &"gpu".into()));
    let step = &bench["decode_step"];
    let number = |key: &str| step[key].as_u64().unwrap();
    // 4 layers; an embedding and a norm before them, rows, output matrix and sampling after them.
    assert!(number("num_dispatches_per_layer") <= 9, "{step}");
    // A context as short as this is not split, so that the layers have nothing to merge.
    assert_eq!(number("num_dispatches"), 4 * (number("num_dispatches_per_layer") - 1) + 5);
    // Matrices in f16: [128, 320] out, and per layer q, k, v, output, gate, up and down of 4 heads over 2, 256 inside.
    let layer = 128 * (128 + 64 + 64 + 128 + 3 * 256);
    assert_eq!(number("weight_bytes"), 2 * (128 * 320 + 4 * layer));
    // Keys and values in f16: 2 heads of 32 in 4 layers, for positions 0 to 14.
    let cache = 15 * 4 * 2 * 2 * 64;
    assert_eq!(number("fewest_bytes"), number("weight_bytes") + cache);
    // Each is read once for both query heads that share it, and the token's own comes from the projection.
    let read = cache / 15 * 14;
    assert_eq!((number("kv_bytes"), number("read_bytes")), (read, number("weight_bytes") + read));
    assert!(step["encode_ms"].as_f64().unwrap() > 0.0);
    let on_cpu = report("bench", &[&flags[..], &["--executor", "cpu", "--kv", "f32"]].concat());
    assert_eq!((&on_cpu["decode_step"]["encode_ms"], &on_cpu["kv"]), (&Value::Null, &"f32".into()));
    let table = text("bench", &flags);
    assert!(table.contains("decode tokens/s") && table.contains("CPU encode"), "{table}");
}

#[test]
fn inspect_plans_memory_or_says_why_not() {
    let plan = &report("inspect", &[])["plan"];
    let number = |key: &str| plan[key].as_u64().unwrap();
    assert_eq!(number("total_bytes"), number("weights_bytes") + number("kv_bytes") + number("scratch_bytes"));
    assert_eq!((number("context_length"), number("kv_bytes_per_token")), (512, 4 * 2 * 2 * 64));
    let wide = &report("inspect", &["--kv", "f32", "--context", "64"])["plan"];
    assert_eq!((wide["context_length"].as_u64(), wide["kv_bytes_per_token"].as_u64()), (Some(64), Some(2048)));
    assert!(text("inspect", &[]).contains("\nMemory on the device\n"));
    let small = report("inspect", &["--memory-limit", "1000"]);
    assert_eq!((&small["plan"], &small["cannot_run"]["code"]), (&Value::Null, &"out_of_memory".into()));
    let path = write("other.gguf", GgufWriter::default().string("general.architecture", "mamba").build());
    let shown = String::from_utf8(pagewise(&["inspect", &path]).stdout).unwrap();
    let reason = "\nCannot run: architecture \"mamba\" is not supported; supported are llama, gemma3\n";
    assert!(shown.contains(reason), "{shown}");
}

#[test]
fn errors_have_a_code_a_message_and_exit_status_1() {
    let other = write("mamba.gguf", GgufWriter::default().string("general.architecture", "mamba").build());
    let not_a_list = write("object.json", "{}");
    let long = "Hello ".repeat(40);
    let cases: [(&[&str], &str, &str); 16] = [
        (&["logits", "no/such.gguf", "--ids", "1"], "bad_request", "no/such.gguf"),
        (&["logits", &other, "--ids", "1"], "unsupported_model", "\"mamba\""),
        (&["generate", &other, "--prompt", "a"], "unsupported_model", "\"mamba\""),
        (&["bench", &other], "unsupported_model", "supported are llama, gemma3"),
        (&["logits", TINY, "--ids", "1,320"], "bad_request", "token id 320, 320 in the vocabulary"),
        (&["logits", TINY, "--ids", "1,2", "--positions", "2"], "bad_request", "positions [2] of 2 tokens"),
        (&["logits", TINY, "--ids", "1,2", "--chunk", "0"], "bad_request", "0 tokens in a step"),
        (&["generate", TINY, "--prompt", &long, "--context", "32"], "context_too_long", "32 allowed"),
        (&["generate", TINY, "--prompt", "a", "--context", "513"], "context_too_long", "513 tokens asked, 512 allowed"),
        (&["generate", TINY, "--prompt", "a", "--memory-limit", "1000"], "out_of_memory", "1000 bytes allowed"),
        (&["generate", TINY, "--prompt", "a", "--adapter", "no such"], "no_webgpu", "\"no such\""),
        (&["generate", TINY, "--prompt", "a", "--temperature", "-1"], "bad_request", "temperature: -1 asked"),
        (&["generate", TINY, "--messages", "no/such.json"], "bad_request", "no/such.json"),
        (&["generate", TINY, "--messages", &not_a_list], "bad_request", "a list of messages is needed"),
        (&["bench", TINY, "--prompt-tokens", "600"], "context_too_long", "512 allowed"),
        (&["bench", TINY, "--prompt-tokens", "0"], "bad_request", "prompt: 0 tokens asked"),
    ];
    for (args, code, message) in cases {
        let output = pagewise(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = &report["error"];
        assert!(error["code"] == code, "{args:?}: {error}");
        assert!(error["message"].as_str().unwrap().contains(message), "{args:?}: {error}");
    }
    // Without --json it goes to standard error.
    let output = pagewise(&["logits", TINY, "--ids", "320"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("error (bad_request): token id 320"), "{stderr}");
}

#[test]
fn wrong_usage_is_exit_status_2() {
    let cases: [&[&str]; 8] = [
        &["logits", TINY],
        &["logits", TINY, "--ids", "1,x"],
        &["logits", TINY, "--ids", "1", "--executor", "tpu"],
        &["generate", TINY],
        &["generate", TINY, "--prompt", "a", "--messages", "b"],
        &["generate", TINY, "--prompt", "a", "--logit-bias", "5"],
        &["bench", TINY, "--runs", "0"],
        &["no-such-command"],
    ];
    for args in cases {
        let output = pagewise(args);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}");
        assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: "), "{args:?}");
    }
}

#[test]
fn generate_tells_how_probable_its_tokens_were() {
    let args = ["--prompt", "Once", "--max-tokens", "3", "--temperature", "0", "--kv", "f32"];
    let answer = report("generate", &[&args[..], &["--logprobs", "2"]].concat());
    let told = answer["logprobs"].as_array().unwrap();
    assert_eq!(told.iter().map(|token| token["id"].as_u64().unwrap()).collect::<Vec<_>>(), ids(&answer));
    let first = &told[0];
    // Greedy: the drawn token is the most probable one.
    assert_eq!(
        (&first["id"], &first["logprob"]),
        (&first["top_logprobs"][0]["id"], &first["top_logprobs"][0]["logprob"])
    );
    let encoded = pagewise(&["tokenize", TINY, "Once", "--add-special"]);
    let prompt = ids(&serde_json::from_slice(&encoded.stdout).unwrap());
    let list = prompt.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let row = logits(&["--ids", &list, "--kv", "f32"]).pop().unwrap();
    let sum: f64 = row.iter().map(|logit| logit.exp()).sum();
    let expected = row[usize::try_from(first["id"].as_u64().unwrap()).unwrap()] - sum.ln();
    assert!((first["logprob"].as_f64().unwrap() - expected).abs() < 1e-3, "{first}, {expected}");
    assert!(report("generate", &args).get("logprobs").is_none());
    let lines = text("generate", &[&args[..], &["--logprobs", "1"]].concat());
    assert_eq!(lines.lines().filter(|line| line.contains("  |")).count(), 3, "{lines}");
}

#[test]
fn embed_gives_unit_vectors_and_says_how_near_they_are() {
    let found = report("embed", &["one", "two", "one"]);
    let vectors: Vec<Vec<f64>> = serde_json::from_value(found["embeddings"].clone()).unwrap();
    let dot = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(a, b)| a * b).sum::<f64>();
    assert!((dot(0, 0) - 1.0).abs() < 1e-5 && (dot(0, 2) - 1.0).abs() < 1e-5 && dot(0, 1) < 0.999);
    let table = text("embed", &["one", "two"]);
    assert_eq!(table.lines().map(|line| line.split_whitespace().count()).collect::<Vec<_>>(), [2, 2], "{table}");
}
