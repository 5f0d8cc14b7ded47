//! `chat` of the command line, on the committed tiny model: later turns find the earlier ones, and answer the same.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny-llama-f16.gguf");

fn chat(args: &[&str], input: impl AsRef<[u8]>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagewise"));
    command.args(["chat", TINY, "--temperature", "0", "--max-tokens", "8", "--executor", "cpu"]).args(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_ref()).unwrap();
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

/// A message of so many letters; each is a token of this model.
fn letters(num: usize) -> String {
    "zq".repeat(num.div_ceil(2))[..num].to_owned()
}

#[test]
fn a_message_that_does_not_fit_is_refused_and_the_conversation_goes_on() {
    let (short, long) = (letters(26), letters(90));
    let input = format!("{short}\n{long}\n{short}\n/undo\n/undo\n{long}\n{short}\n/clear\n{short}\n/clear\n/undo\n");
    let lines = turns(&["--context", "128"], &input);
    let is_refused = |line: &Value| line["error"]["code"] == "context_too_long";
    let refused: Vec<_> = (0..lines.len()).filter(|&index| is_refused(&lines[index])).collect();
    assert_eq!((lines.len(), refused), (11, vec![1, 6]), "{lines:#?}");
    // 41 of the first turn's prompt, 8 of its answer, 106 of the message with its frame, 8 for the answer.
    assert!(lines[1]["error"]["message"].as_str().unwrap().ends_with("tokens asked, 128 allowed"), "{lines:#?}");
    // As if the refused one had never been there.
    let without = turns(&["--context", "128"], &format!("{short}\n{short}\n"));
    assert_eq!((&lines[0]["ids"], &lines[2]["ids"]), (&without[0]["ids"], &without[1]["ids"]));
    let left = |line: &Value| (line["taken_back_turns"].as_u64().unwrap(), line["turns"].as_u64().unwrap());
    assert_eq!([3, 4, 7, 9, 10].map(|index| left(&lines[index])), [(1, 1), (1, 0), (1, 0), (1, 0), (0, 0)]);
    assert_eq!(lines[8]["ids"], lines[0]["ids"], "what was cleared is not in the prompt any more");
}

#[test]
fn a_refused_message_is_told_with_numbers_and_ways_out() {
    let output = chat(&["--context", "128"], format!("{}\n/clear\n{}\n", letters(150), letters(105)));
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let refusal = text.lines().next().unwrap();
    assert!(refusal.starts_with("[not sent: context too long: 173 tokens asked, 128 allowed."), "{text}");
    assert!(["/undo", "/clear", "--overflow drop-oldest"].iter().all(|way| refusal.contains(way)), "{text}");
    assert!(text.contains("[0 turns taken back, 0 left]"), "{text}");
    // This one fits, and its answer fills the context to the end.
    assert!(text.trim_end().ends_with("; the context is full]"), "{text}");
}

#[test]
fn the_oldest_turns_are_left_out_if_that_is_wanted() {
    let args = ["--context", "256", "--overflow", "drop-oldest", "--system", "Be brief."];
    let turn = |index: usize| format!("{}{}\n", &"abcdefg"[index..=index], letters(25));
    let input = format!("{}{}\n{}", (0..6).map(turn).collect::<String>(), letters(250), turn(6));
    let lines = turns(&args, &input);
    let left_out: Vec<_> = lines.iter().map(|line| line["left_out_turns"].as_u64()).collect();
    let cut = left_out.iter().position(|&left_out| left_out > Some(0)).unwrap();
    assert!(tokens(&lines[cut], "total_tokens") <= 128, "half of the context is free again: {lines:#?}");
    assert!(tokens(&lines[cut], "cached_tokens") >= 9, "the system prompt of nine letters stays");
    let [before, after] = [&lines[cut], &lines[cut + 1]];
    assert!(tokens(after, "cached_tokens") >= tokens(before, "prompt_tokens"), "the next turn finds all of it");
    assert_eq!(after["left_out_turns"], 0);
    // What does not fit alone is refused, and nothing is left out for it.
    assert_eq!(lines[6]["error"]["code"], "context_too_long");
    assert!(tokens(&lines[7], "cached_tokens") >= tokens(&lines[5], "prompt_tokens"));
    let output = chat(&args, &input);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("[the context is full: the oldest 3 turns left out]"), "{text}");
}

#[test]
fn a_line_that_is_no_utf8_is_refused_and_the_conversation_goes_on() {
    let output = chat(&["--json"], b"Hi\n\xff\xfe\nAgain\r\n");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(lines[1]["error"]["code"], "bad_request");
    assert!(tokens(&lines[2], "cached_tokens") > 0, "the first turn is still there: {text}");
    let spoken = String::from_utf8(chat(&[], b"\xff\n").stdout).unwrap();
    assert_eq!(spoken, "[not sent: a line that is no UTF-8]\n");
}
