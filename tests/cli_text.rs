//! `tokenize`, `detokenize` and `template` of the command line, on the committed tiny model.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const MODEL: &str = "models/tiny-llama-f16.gguf";

/// Exit status and standard output.
fn run(args: &[&str], input: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagewise"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn json(args: &[&str], input: &str) -> Value {
    let (status, text) = run(args, input);
    assert_eq!(status, Some(0), "{args:?}: {text}");
    serde_json::from_str(&text).unwrap()
}

fn error_code(args: &[&str], input: &str) -> Value {
    let (status, text) = run(args, input);
    assert_eq!(status, Some(1), "{args:?}: {text}");
    serde_json::from_str::<Value>(&text).unwrap()["error"]["code"].clone()
}

#[test]
fn text_to_ids_and_back() {
    let text = " the <|im_end|>é";
    let plain = json(&["tokenize", MODEL, text], "");
    let special = json(&["tokenize", MODEL, "--special", text], "");
    let ids = |found: &Value| found["ids"].as_array().unwrap().clone();
    assert!(!ids(&plain).contains(&json!(2)) && ids(&special).contains(&json!(2)));
    assert_eq!(special["pieces"][ids(&special).iter().position(|id| *id == 2).unwrap()], "<|im_end|>");
    for found in [&plain, &special] {
        assert_eq!(json(&["detokenize", MODEL, &found["ids"].to_string()], ""), json!({ "text": text }));
    }
    assert_eq!(json(&["detokenize", MODEL, "--skip-special", "2,2", "2"], ""), json!({ "text": "" }));
    assert_eq!(error_code(&["detokenize", MODEL, "1,320"], ""), "bad_request");
    assert_eq!(error_code(&["detokenize", MODEL, "-1"], ""), "bad_request");
    assert_eq!(error_code(&["tokenize", "no/such.gguf", "a"], ""), "bad_request");
}

#[test]
fn messages_to_a_prompt() {
    let list = r#"[{"role": "user", "content": "Hi"}]"#;
    let prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(run(&["template", MODEL, "-"], list), (Some(0), prompt.to_owned()));
    let closed = "<|im_start|>user\nHi<|im_end|>\n";
    assert_eq!(run(&["template", MODEL, "-", "--no-generation-prompt"], list).1, closed);
    let object = format!(r#"{{"messages": {list}, "add_generation_prompt": false}}"#);
    let found = json(&["template", MODEL, "-", "--json"], &object);
    assert_eq!(found["text"], closed);
    assert_eq!((&found["ids"][0], found["ids"].as_array().unwrap().contains(&json!(2))), (&json!(1), true));
    for bad in ["{}", "3", "[", r#"{"messages": 3}"#] {
        assert_eq!(error_code(&["template", MODEL, "-", "--json"], bad), "bad_request", "{bad}");
    }
}
