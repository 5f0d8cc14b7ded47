//! Real models against the ids and prompts that llama.cpp and transformers give.

use std::rc::Rc;

use pagewise::gguf::Metadata;
use pagewise::text::{ChatTemplate, Detokenizer, RenderOptions, Tokenizer};
use serde::Deserialize;

use crate::support::{GEMMA3, SMOLLM2, golden, real_metadata};

#[derive(Deserialize)]
struct Cases<C> {
    cases: Vec<C>,
}

#[derive(Deserialize)]
struct TokenizerCase {
    name: String,
    text: String,
    ids: Vec<u32>,
    ids_parse_special: Vec<u32>,
    ids_parse_special_add_special: Vec<u32>,
    #[serde(default)]
    pieces_hex: Option<Vec<String>>,
    #[serde(default)]
    detok_roundtrips: Option<bool>,
    #[serde(default)]
    detok_parse_special_hex: Option<String>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check_tokenizer(model: &str, file: &str, num_cases: usize) {
    let Some(metadata) = real_metadata(model) else { return };
    let tokenizer = Rc::new(Tokenizer::from_metadata(&metadata).unwrap());
    let golden = golden(file);
    assert_eq!(Some(tokenizer.vocab_size() as u64), golden["n_vocab"].as_u64());
    let cases: Cases<TokenizerCase> = serde_json::from_value(golden).unwrap();
    assert_eq!(cases.cases.len(), num_cases);
    for case in cases.cases {
        let (name, text) = (&case.name, case.text.as_str());
        assert_eq!(tokenizer.encode(text, false, false).unwrap(), case.ids, "{name}: plain");
        assert_eq!(tokenizer.encode(text, false, true).unwrap(), case.ids_parse_special, "{name}: special");
        let full = tokenizer.encode(text, true, true).unwrap();
        assert_eq!(full, case.ids_parse_special_add_special, "{name}: special, with BOS");
        if let Some(pieces) = &case.pieces_hex {
            let found: Vec<_> = case.ids.iter().map(|&id| hex(&tokenizer.token_bytes(id).unwrap())).collect();
            assert_eq!(&found, pieces, "{name}: pieces");
        }
        let text_back = tokenizer.decode(&case.ids_parse_special, false);
        if case.detok_roundtrips == Some(true) {
            assert_eq!(text_back, text, "{name}: back");
        } else {
            assert_eq!(Some(hex(text_back.as_bytes())), case.detok_parse_special_hex, "{name}: back");
        }
        let mut detokenizer = Detokenizer::new(tokenizer.clone());
        let mut streamed: String = case.ids_parse_special.iter().map(|&id| detokenizer.push(id)).collect();
        streamed += &detokenizer.finish();
        assert_eq!(streamed, tokenizer.decode(&case.ids_parse_special, true), "{name}: streamed");
    }
}

#[test]
fn smollm2_ids_are_golden() {
    check_tokenizer(SMOLLM2, "smollm2.tokenizer.json", 58);
}

#[test]
fn gemma3_ids_are_golden() {
    check_tokenizer(GEMMA3, "gemma3.tokenizer.json", 58);
}

#[derive(Deserialize)]
struct ChatCase {
    name: String,
    messages: serde_json::Value,
    add_generation_prompt: bool,
    text: String,
    ids: Vec<u32>,
}

#[test]
fn smollm2_prompts_are_golden() {
    let Some(metadata) = real_metadata(SMOLLM2) else { return };
    let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
    let template = ChatTemplate::from_metadata(&metadata).unwrap().unwrap();
    let cases: Cases<ChatCase> = serde_json::from_value(golden("smollm2.chat.json")).unwrap();
    assert_eq!(cases.cases.len(), 6);
    for case in cases.cases {
        let options = RenderOptions { add_generation_prompt: case.add_generation_prompt, ..RenderOptions::default() };
        let text = template.render(&case.messages, &options).unwrap();
        assert_eq!(text, case.text, "{}", case.name);
        assert_eq!(tokenizer.encode_prompt(&text).unwrap(), case.ids, "{}", case.name);
    }
}

fn names(metadata: &Metadata, ids: &[u32]) -> Vec<String> {
    let tokens = metadata.strings("tokenizer.ggml.tokens").unwrap();
    ids.iter().map(|&id| tokens.get(id as usize).unwrap().to_owned()).collect()
}

#[test]
fn ends_of_generation_are_those_of_llama_cpp() {
    for (model, ends) in [
        (SMOLLM2, ["<|endoftext|>", "<|im_end|>", "<reponame>"].as_slice()),
        (GEMMA3, &["<eos>", "<end_of_turn>", "</s>"]),
    ] {
        let Some(metadata) = real_metadata(model) else { return };
        let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
        assert_eq!(names(&metadata, tokenizer.end_of_generation()), ends, "{model}");
    }
}

#[test]
fn gemma_without_a_template_has_none() {
    let Some(metadata) = real_metadata(GEMMA3) else { return };
    assert!(ChatTemplate::from_metadata(&metadata).unwrap().is_none());
}
