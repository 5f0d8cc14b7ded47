//! The prefix cache never changes an answer (K9): on models, on the CPU executor and on the native adapter.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::golden::{open_gpu, real_model, tiny_model};
use common::server::{Server, open};
use pagewise::compute::Executor;
use pagewise::gguf::Gguf;
use pagewise::kernels::KvFormat;
use pagewise::model::{Model, ModelOptions, load_cpu, load_gpu};
use pollster::block_on;

/// Cold, warm, after a follow-up turn, after an edit in the middle of a block, and after an eviction: always the answer
/// that is computed without the cache.
fn check<E: Executor>(model: Model<E>, gguf: &Gguf, prompt: &[u32], num: usize) {
    let mut server = Server::new(model, gguf);
    let (expected, usage) = server.answer(prompt, num, false);
    assert_eq!(usage.cached_tokens, 0);
    let (cold, usage) = server.answer(prompt, num, true);
    assert_eq!((cold.as_slice(), usage.cached_tokens), (expected.as_slice(), 0), "cold");
    let (warm, usage) = server.answer(prompt, num, true);
    assert_eq!(warm, expected, "warm");
    assert_eq!(usage.cached_tokens, prompt.len() - 1, "all but the last token of the prompt are reused (K7)");

    // A second turn computes the new tokens alone. The last token of the answer was drawn but never computed.
    let new = [5, 9, 7];
    let turn = [prompt, &expected, &new].concat();
    let (expected_turn, _) = server.answer(&turn, num, false);
    let (second, usage) = server.answer(&turn, num, true);
    assert_eq!(second, expected_turn, "second turn");
    assert_eq!(turn.len() - usage.cached_tokens, new.len() + 1, "the second turn computes its new tokens");

    // An edit reuses what lies before it, to the token.
    let mut edited = turn.clone();
    let at = prompt.len() / 2;
    edited[at] = 11;
    let (expected_edit, _) = server.answer(&edited, num, false);
    let (edit, usage) = server.answer(&edited, num, true);
    assert_eq!(edit, expected_edit, "edited");
    assert_eq!(usage.cached_tokens, at, "reuse ends at the edit");

    server.0.cache_clear();
    let (cleared, usage) = server.answer(&turn, num, true);
    assert_eq!((cleared, usage.cached_tokens), (expected_turn, 0), "cleared");
}

#[test]
fn tiny_models_answer_the_same_with_and_without_the_cache() {
    for name in ["tiny-llama", "tiny-gemma3"] {
        let (path, prompts) = tiny_model(name);
        let (gguf, source) = open(&path);
        for kv in [KvFormat::F32, KvFormat::F16] {
            let options = ModelOptions { kv, context_length: Some(256), ..ModelOptions::default() };
            check(block_on(load_cpu(&gguf, &source, &options)).unwrap(), &gguf, &prompts[0].ids, 8);
            for gpu in open_gpu() {
                let model = block_on(load_gpu(&gguf, &source, gpu, &options, |_| Ok(()))).unwrap();
                check(model, &gguf, &prompts[0].ids, 8);
            }
        }
    }
}

#[test]
fn real_models_answer_the_same_with_and_without_the_cache() {
    for name in ["smollm2", "gemma3"] {
        let Some(reference) = real_model(name) else { continue };
        let (gguf, source) = open(&reference.path);
        let options = ModelOptions { kv: KvFormat::F32, context_length: Some(256), ..ModelOptions::default() };
        let model = block_on(load_gpu(&gguf, &source, open_gpu().remove(0), &options, |_| Ok(()))).unwrap();
        check(model, &gguf, &reference.prompts[1].ids, 4);
    }
}
