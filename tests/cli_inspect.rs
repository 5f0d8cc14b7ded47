//! `pagewise inspect`: what it prints, and how it fails.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/gguf_writer.rs"]
mod gguf_writer;

use gguf_writer::GgufWriter;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny-llama-f16.gguf");

fn inspect(model: &Path, flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pagewise")).arg("inspect").arg(model).args(flags).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("pagewise-inspect-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn json_describes_the_whole_file() {
    let output = inspect(Path::new(TINY), &["--json"]);
    assert!(output.status.success());
    let report = json(&output);
    let file_bytes = std::fs::metadata(TINY).unwrap().len();
    assert_eq!(report["architecture"], "llama");
    assert_eq!((report["num_parts"].as_u64(), report["file_bytes"].as_u64()), (Some(1), Some(file_bytes)));
    let tensors = report["tensors"].as_array().unwrap();
    assert_eq!(report["num_tensors"].as_u64(), Some(tensors.len() as u64));
    let sum = |list: &[Value], key: &str| list.iter().map(|entry| entry[key].as_u64().unwrap()).sum::<u64>();
    let formats = report["formats"].as_array().unwrap();
    assert_eq!(sum(formats, "size_bytes"), sum(tensors, "size_bytes"));
    assert_eq!(report["tensor_bytes"].as_u64(), Some(sum(tensors, "size_bytes")));
    assert_eq!(sum(formats, "num_tensors"), tensors.len() as u64);
    assert_eq!(sum(formats, "num_elements"), report["num_elements"].as_u64().unwrap());
    let tokens = &report["metadata"]["tokenizer.ggml.tokens"];
    assert_eq!(tokens["first"].as_array().unwrap().len(), 8);
    assert!(tokens["len"].as_u64().unwrap() > 8);
    // An f32 is shown as the shortest decimal that it is.
    assert_eq!(report["metadata"]["llama.attention.layer_norm_rms_epsilon"].to_string(), "0.00001");
}

#[test]
fn text_lists_formats_metadata_and_tensors() {
    let output = inspect(Path::new(TINY), &[]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["(llama)", "\nFormats\n", "\nMetadata\n  general.architecture = \"llama\"", "\nTensors\n", "F16"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    assert!(text.lines().any(|line| line.starts_with("  token_embd.weight")), "{text}");
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let path = folder("control").join("m.gguf");
    let writer = GgufWriter::default().string("a\x1bkey", "v\u{9b}alue").f32_tensor("t\x1b[2J", &[4]);
    std::fs::write(&path, writer.build()).unwrap();
    let text = String::from_utf8(inspect(&path, &[]).stdout).unwrap();
    assert!(text.contains("a\\u{1b}key = \"v\\u{9b}alue\"") && text.contains("t\\u{1b}[2J"), "{text}");
    std::fs::write(&path, writer.f32_tensor("t\x1b[2J", &[4]).build()).unwrap();
    let text = String::from_utf8(inspect(&path, &[]).stderr).unwrap();
    assert!(text.contains("t\\u{1b}[2J"), "{text}");
}

#[test]
fn errors_have_a_code_and_exit_status_1() {
    let output = inspect(Path::new("no/such/model.gguf"), &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let error = &json(&output)["error"];
    assert_eq!(error["code"], "bad_request");
    assert!(error["message"].as_str().unwrap().contains("no/such/model.gguf"));
    let output = inspect(Path::new("no/such/model.gguf"), &[]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error (bad_request): cannot open"));
    let output = inspect(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")), &["--json"]);
    assert_eq!(json(&output)["error"]["code"], "corrupt_model");
}

#[test]
fn split_models_are_one_and_a_missing_part_is_named() {
    let folder = folder("split");
    let part = |number: u16, name: &str| {
        let writer = GgufWriter::default().value("split.no", 2, &number.to_le_bytes());
        writer.value("split.count", 2, &2_u16.to_le_bytes()).f32_tensor(name, &[32]).build()
    };
    let [first, second] = [1, 2].map(|number| folder.join(format!("m-{number:05}-of-00002.gguf")));
    std::fs::write(&first, part(0, "a")).unwrap();
    let error = json(&inspect(&first, &["--json"]));
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("part 2 of 2") && message.contains("m-00002-of-00002.gguf"), "{message}");
    std::fs::write(&second, part(1, "b")).unwrap();
    let report = json(&inspect(&first, &["--json"]));
    assert_eq!((report["num_parts"].as_u64(), report["num_tensors"].as_u64()), (Some(2), Some(2)));
    assert_eq!(report["tensors"][1]["part"], 1);
    let error = json(&inspect(&second, &["--json"]));
    assert!(error["error"]["message"].as_str().unwrap().contains("give the first part"), "{error}");
    // The same file under a name that does not say it is a part.
    let alone = folder.join("alone.gguf");
    std::fs::copy(&first, &alone).unwrap();
    let error = json(&inspect(&alone, &["--json"]));
    assert!(error["error"]["message"].as_str().unwrap().contains("split into 2 parts, 1 given"), "{error}");
}
