//! Headers whose numbers contradict each other, or would end in a crash further on, are refused.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/gguf_writer.rs"]
mod gguf_writer;

use gguf_writer::GgufWriter;
use pagewise::Result;
use pagewise::gguf::open;
use pagewise::model::ModelConfig;
use pollster::block_on;

const F32: u32 = 6;

/// A header of 8 tokens, with `more` in front: a key that is there already is not written again.
fn config(architecture: &str, more: GgufWriter) -> Result<ModelConfig> {
    let mut writer = more.string("general.architecture", architecture);
    let sizes = [
        ("context_length", 64),
        ("embedding_length", 128),
        ("block_count", 1),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("feed_forward_length", 64),
    ];
    let has = |writer: &GgufWriter, key: &str| writer.entries.iter().any(|(name, _)| name == key);
    for (key, value) in sizes.map(|(key, value)| (format!("{architecture}.{key}"), value)) {
        if !has(&writer, &key) {
            writer = writer.u32(&key, value);
        }
    }
    let key = format!("{architecture}.attention.layer_norm_rms_epsilon");
    if !has(&writer, &key) {
        writer = writer.value(&key, F32, &1e-5_f32.to_le_bytes());
    }
    let gguf = block_on(open(&writer.f32_tensor("token_embd.weight", &[128, 8]).source())).unwrap();
    ModelConfig::from_gguf(&gguf)
}

#[track_caller]
fn corrupt(more: GgufWriter, text: &str) {
    let error = config("llama", more).expect_err("refused");
    assert_eq!(error.code(), "corrupt_model", "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn the_header_of_these_tests_is_right() {
    config("llama", GgufWriter::default()).unwrap();
    config("gemma3", GgufWriter::default()).unwrap();
}

#[test]
fn an_epsilon_that_is_no_number_is_not_left_to_the_shader_compiler() {
    for epsilon in [f32::NAN, f32::INFINITY, -1.0] {
        let key = "llama.attention.layer_norm_rms_epsilon";
        corrupt(GgufWriter::default().value(key, F32, &epsilon.to_le_bytes()), key);
    }
}

#[test]
fn heads_whose_width_wraps_in_32_bits_are_refused() {
    let heads = GgufWriter::default().u32("llama.attention.head_count", (1 << 30) + 4);
    corrupt(heads.u32("llama.attention.key_length", 32), "1073741828 heads of 32 values");
}

#[test]
fn more_tokens_than_embeddings_are_refused() {
    let tokens = |num: usize| {
        let tokens: Vec<String> = (0..num).map(|index| index.to_string()).collect();
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        GgufWriter::default().strings("tokenizer.ggml.tokens", &tokens)
    };
    corrupt(tokens(9), "9 tokens");
    // Fewer are common: embeddings are padded.
    config("llama", tokens(7)).unwrap();
}

#[test]
fn a_window_beyond_every_context_does_not_overflow() {
    let window = GgufWriter::default().u32("gemma3.attention.sliding_window", u32::MAX);
    let sliding = config("gemma3", window).unwrap().sliding.unwrap();
    assert_eq!(sliding.window, 1 << 24);
}
