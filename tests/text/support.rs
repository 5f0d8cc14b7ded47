//! Vocabularies made for tests, and the metadata of real models.

use std::path::PathBuf;

use pagewise::gguf::{Array, FileSource, Metadata, StringArray, Value, open};

/// Entries of a header, to be changed before they become metadata.
#[derive(Clone)]
pub(crate) struct Entries(Vec<(String, Value)>);

impl Entries {
    /// Sets a key of the tokenizer.
    pub(crate) fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self = self.without(key);
        self.0.push((full(key), value.into()));
        self
    }

    /// Removes a key of the tokenizer.
    pub(crate) fn without(mut self, key: &str) -> Self {
        self.0.retain(|(name, _)| *name != full(key));
        self
    }

    pub(crate) fn metadata(self) -> Metadata {
        Metadata::new(self.0).unwrap()
    }
}

fn full(key: &str) -> String {
    if key == "chat_template" { format!("tokenizer.{key}") } else { format!("tokenizer.ggml.{key}") }
}

pub(crate) fn strings<S: AsRef<str>>(strings: impl IntoIterator<Item = S>) -> Value {
    Value::Array(Array::Strings(strings.into_iter().collect::<StringArray>()))
}

pub(crate) fn floats(values: impl IntoIterator<Item = f32>) -> Value {
    Value::Array(Array::F32(values.into_iter().collect()))
}

pub(crate) fn ints(values: impl IntoIterator<Item = i32>) -> Value {
    Value::Array(Array::I32(values.into_iter().collect()))
}

/// The kinds of tokens in GGUF.
pub(crate) const NORMAL: i32 = 1;
pub(crate) const UNKNOWN: i32 = 2;
pub(crate) const CONTROL: i32 = 3;
pub(crate) const USER: i32 = 4;
pub(crate) const UNUSED: i32 = 5;
pub(crate) const BYTE: i32 = 6;

/// The character by which byte-level vocabularies write a byte.
pub(crate) fn byte_char(byte: u8) -> char {
    let kept = |byte: u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    if kept(byte) {
        return char::from(byte);
    }
    let index = (0..byte).filter(|&other| !kept(other)).count();
    char::from_u32(0x100 + u32::try_from(index).unwrap()).unwrap()
}

/// How a byte-level vocabulary writes a text.
pub(crate) fn byte_text(text: &str) -> String {
    text.bytes().map(byte_char).collect()
}

/// A byte-level vocabulary: id = byte for the first 256, then what the merges make, then these special tokens.
pub(crate) fn byte_level(pre: &str, merges: &[(&str, &str)], special: &[(&str, i32)]) -> Entries {
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_char(byte).to_string()).collect();
    tokens.extend(merges.iter().map(|(left, right)| byte_text(left) + &byte_text(right)));
    let mut types = vec![NORMAL; tokens.len()];
    tokens.extend(special.iter().map(|(text, _)| (*text).to_owned()));
    types.extend(special.iter().map(|(_, kind)| *kind));
    let merges = merges.iter().map(|(left, right)| format!("{} {}", byte_text(left), byte_text(right)));
    Entries(Vec::new())
        .set("model", "gpt2")
        .set("pre", pre)
        .set("tokens", strings(tokens))
        .set("token_type", ints(types))
        .set("merges", strings(merges))
}

/// A SentencePiece vocabulary: `<unk>`, `<s>`, `</s>`, 256 byte tokens from id 3 on, then these from id 259 on.
pub(crate) fn sentencepiece(more: &[(&str, f32, i32)]) -> Entries {
    let mut tokens = vec!["<unk>".to_owned(), "<s>".to_owned(), "</s>".to_owned()];
    tokens.extend((0..=255).map(|byte: u8| format!("<0x{byte:02X}>")));
    tokens.extend(more.iter().map(|(text, ..)| (*text).to_owned()));
    let types = [UNKNOWN, CONTROL, CONTROL].into_iter().chain([BYTE; 256]).chain(more.iter().map(|&(.., kind)| kind));
    let scores = [0.0; 259].into_iter().chain(more.iter().map(|&(_, score, _)| score));
    Entries(Vec::new())
        .set("model", "llama")
        .set("tokens", strings(tokens))
        .set("scores", floats(scores))
        .set("token_type", ints(types))
}

pub(crate) const SMOLLM2: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
pub(crate) const GEMMA3: &str = "gemma-3-270m-q4_k_m.gguf";

/// The metadata of a real model, or `None` where models are to be skipped.
pub(crate) fn real_metadata(file: &str) -> Option<Metadata> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("models").join(file);
    if !path.exists() {
        if std::env::var_os("PAGEWISE_SKIP_MODELS").is_some_and(|value| value == "1") {
            println!("skipped: models/{file} is missing");
            return None;
        }
        panic!("models/{file} is missing: run `npm run fetch-models`");
    }
    let source = FileSource::open(path).unwrap();
    Some(pollster::block_on(open(&source)).unwrap().metadata)
}

/// A golden file.
pub(crate) fn golden(file: &str) -> serde_json::Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/text").join(file);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
