//! `explain` and `memory` of the command line.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Exit status and standard output.
fn run(args: &[&str], input: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagewise"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // Wrong usage ends the process before it reads.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn json(args: &[&str], input: &str) -> Value {
    let (status, text) = run(args, input);
    assert_eq!(status, Some(0), "{args:?}: {text}");
    serde_json::from_str(&text).unwrap()
}

/// A file with this content, under a name of its own.
fn file(name: &str, content: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

#[test]
fn explain_tells_what_changed() {
    let at = |time: &str| format!(r#"[{{"role": "system", "content": "It is {time}. Be kind."}}]"#);
    let previous = file("previous.json", &at("10:00"));
    let found = json(&["explain", &previous, "-", "--json"], &at("10:05"));
    assert_eq!((&found["cause"], &found["miss"]), (&json!("timestamp"), &json!(true)));
    assert_eq!(found["place"], json!({ "part": "message", "message": 0, "role": "system", "character": 10 }));
    let (status, text) = run(&["explain", &previous, "-"], &at("10:05"));
    assert_eq!(status, Some(0));
    assert!(text.contains("  - It is [10:00]. Be kind.\n  + It is [10:05]. Be kind.\n"), "{text}");
    assert!(text.contains("last user message"), "{text}");
}

#[test]
fn explain_takes_plain_text_and_refuses_broken_json() {
    let previous = file("previous.txt", "Once upon");
    assert_eq!(json(&["explain", &previous, "-", "--json"], "Once upon a time")["cause"], "appended");
    let broken = file("broken.json", "[{");
    for (previous, next) in [(&broken, &previous), (&previous, &"no/such/file".to_owned())] {
        let (status, text) = run(&["explain", previous, next, "--json"], "");
        assert_eq!(status, Some(1), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["error"]["code"], "bad_request");
    }
}

#[test]
fn memory_of_numbers() {
    let large = ["memory", "--layers", "80", "--kv-heads", "8", "--head-dim", "128", "--context", "131072"];
    let (status, text) = run(&large, "");
    assert_eq!(status, Some(0));
    assert!(text.contains("* f16      40.00 GiB   320.00 KiB a token"), "{text}");
    assert!(text.contains("f16: 42,949,672,960 bytes"), "{text}");
    let found = json(&[&large[..], &["--kv", "q8_0", "--sequences", "2", "--json"]].concat(), "");
    assert_eq!(found["memory"]["total_bytes"], json!(2_u64 * (40 << 30) / 64 * 34));
    let sliding = [&large[..], &["--sliding-layers", "79", "--window", "1024", "--json"]].concat();
    assert_eq!(json(&sliding, "")["memory"]["bytes_per_token_beyond_window"], 4096);
}

#[test]
fn memory_of_a_file() {
    let found = json(&["memory", "models/tiny-gemma3-f16.gguf", "--json"], "");
    assert!(found["sliding_layers"].as_u64() > Some(0) && found["window"].as_u64() > Some(0), "{found}");
    let [short, long] = ["16", "32"].map(|context| {
        json(&["memory", "models/tiny-llama-f16.gguf", "--context", context, "--json"], "")["memory"]["total_bytes"]
            .as_u64()
    });
    assert_eq!(short.map(|bytes| 2 * bytes), long);
}

#[test]
fn memory_wants_a_file_or_all_numbers() {
    for args in [
        &["memory"][..],
        &["memory", "--layers", "80"],
        &[
            "memory",
            "models/tiny-llama-f16.gguf",
            "--layers",
            "80",
            "--kv-heads",
            "8",
            "--head-dim",
            "128",
            "--context",
            "1",
        ],
        &["memory", "models/tiny-llama-f16.gguf", "--kv", "q3"],
    ] {
        assert_eq!(run(args, "").0, Some(2), "{args:?}");
    }
}

#[test]
fn explain_takes_files_that_begin_with_a_byte_order_mark() {
    let messages = r#"[{"role": "user", "content": "Hi"}]"#;
    let plain = file("plain.json", messages);
    for name in ["marked.json", "marked"] {
        let marked = file(name, &format!("\u{feff}{messages}"));
        assert_eq!(json(&["explain", &marked, &plain, "--json"], "")["cause"], "identical", "{name}");
    }
}

#[test]
fn explain_reads_standard_input_once() {
    let (status, text) = run(&["explain", "-", "-", "--json"], "Once upon a time");
    assert_eq!(status, Some(1), "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["error"]["code"], "bad_request");
}
