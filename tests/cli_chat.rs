//! `chat` of the command line, on the committed tiny model: later turns find the earlier ones, and answer the same.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny-llama-f16.gguf");

fn chat(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagewise"));
    command.args(["chat", TINY, "--temperature", "0", "--max-tokens", "8", "--executor", "cpu"]).args(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn turns(args: &[&str], input: &str) -> Vec<Value> {
    let output = chat(&[args, &["--json"]].concat(), input);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn tokens(turn: &Value, name: &str) -> u64 {
    turn["usage"][name].as_u64().unwrap()
}

#[test]
fn a_later_turn_computes_only_what_is_new() {
    let input = "Tell me about pages.\n\nAnd of books?\nMore\n";
    let system = ["--system", "You answer briefly."];
    let warm = turns(&system, input);
    assert_eq!(warm.len(), 3);
    assert_eq!((tokens(&warm[0], "cached_tokens"), &warm[0]["cache"]["miss"]["reason"]), (0, &"cold".into()));
    for pair in warm.windows(2) {
        // The last token of an answer was sampled, and nothing was computed for it. An answer with half a character is
        // not found again (this model writes such), but its prompt is.
        let is_whole = !pair[0]["text"].as_str().unwrap().contains(char::REPLACEMENT_CHARACTER);
        let least = if is_whole { tokens(&pair[0], "total_tokens") - 1 } else { tokens(&pair[0], "prompt_tokens") };
        assert!(tokens(&pair[1], "cached_tokens") >= least, "{pair:?}");
        assert_eq!(pair[1]["cache"]["read_tokens"], pair[1]["usage"]["cached_tokens"]);
    }
    let cold = turns(&[&system[..], &["--no-cache"]].concat(), input);
    for (warm, cold) in warm.iter().zip(&cold) {
        assert_eq!((tokens(cold, "cached_tokens"), &cold["cache"]["miss"]["reason"]), (0, &"disabled".into()));
        assert_eq!(warm["ids"], cold["ids"]);
    }
}

#[test]
fn a_turn_says_what_was_cached_and_computed() {
    let output = chat(&[], "Hi\nAgain\n");
    let text = String::from_utf8(output.stdout).unwrap();
    let summaries: Vec<_> = text.lines().filter(|line| line.contains("prompt tokens cached")).collect();
    assert_eq!(summaries.len(), 2, "{text}");
    assert!(summaries[0].starts_with("[0 of "), "{text}");
    assert!(!summaries[1].starts_with("[0 of "), "{text}");
}

#[test]
fn a_wrong_value_ends_it() {
    let output = chat(&["--top-p", "3", "--json"], "Hi\n");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["error"]["code"], "bad_request");
}
