//! Saved prefixes on models: brought back into a new engine they are found, and the answer is the one that is computed
//! without the cache (K9); another model, other weights or another KV format refuses them.
//!
//! A longer prompt, with what it takes and saves, runs with `PAGEWISE_LONG=1`.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::Instant;

use common::golden::{open_gpu, real_model, tiny_model};
use common::server::{Server, open};
use pagewise::compute::Executor;
use pagewise::engine::{CacheOptions, Usage};
use pagewise::gguf::Gguf;
use pagewise::kernels::KvFormat;
use pagewise::kv::BLOCK_SIZE;
use pagewise::model::{KvBlocks as _, Model, ModelOptions, Xxh64, load_cpu, load_gpu};
use pagewise::{Error, Result};
use pollster::block_on;

fn options(kv: KvFormat, context_length: usize) -> ModelOptions {
    ModelOptions { kv, context_length: Some(context_length), ..ModelOptions::default() }
}

impl<E: Executor> Server<E> {
    fn save(&mut self, prefix: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let sink = |chunk: Vec<u8>| {
            bytes.extend(chunk);
            Ok(())
        };
        block_on(self.0.cache_save("", prefix, 0.0, sink)).unwrap();
        bytes
    }

    /// Tokens that came back.
    fn restore(&mut self, bytes: &[u8]) -> Result<usize> {
        let restored = block_on(self.0.cache_restore(bytes, &CacheOptions::default(), 0.0))?;
        self.0.kv().check().unwrap();
        Ok(restored.num_tokens)
    }
}

/// A conversation that is saved, and goes on elsewhere.
fn check<A: Executor, B: Executor>(name: &str, old: Model<A>, new: Model<B>, gguf: &Gguf, prompt: &[u32], num: usize) {
    let (mut old, mut new) = (Server::new(old, gguf), Server::new(new, gguf));
    let (answer, _) = old.answer(prompt, num, true);
    let conversation = [prompt, &answer].concat();
    let bytes = old.save(&conversation);
    let turn = [conversation.as_slice(), &[5, 9, 7]].concat();
    let (expected, _) = new.answer(&turn, num, false);
    let num_tokens = new.restore(&bytes).unwrap();
    // The last token of an answer is drawn and never computed.
    assert_eq!(num_tokens, (conversation.len() - 1) / BLOCK_SIZE * BLOCK_SIZE, "{name}");
    let (second, usage) = new.answer(&turn, num, true);
    assert_eq!((second, usage.cached_tokens), (expected, num_tokens), "{name}");
    // What came back can be saved again: it is the same.
    assert_eq!(new.save(&conversation), bytes, "{name}");
}

#[test]
fn tiny_models_go_on_in_a_new_engine() {
    for name in ["tiny-llama", "tiny-gemma3"] {
        let (path, prompts) = tiny_model(name);
        let (gguf, source) = open(&path);
        for kv in [KvFormat::F32, KvFormat::F16] {
            let options = options(kv, 256);
            let cpu = || block_on(load_cpu(&gguf, &source, &options)).unwrap();
            let prompt = &prompts[0].ids;
            // Longer than a window of the tiny Gemma.
            check(&format!("{name} {kv:?} on the CPU"), cpu(), cpu(), &gguf, prompt, 40);
            for gpu in open_gpu() {
                let load = |gpu| block_on(load_gpu(&gguf, &source, gpu, &options, |_| Ok(()))).unwrap();
                let lanes = gpu.tuning().lanes;
                let (old, new) = (load(gpu.clone()), load(gpu));
                assert_eq!(old.kv_identity(), cpu().kv_identity(), "a model is the same on every device");
                check(&format!("{name} {kv:?}, {lanes} lanes"), old, new, &gguf, prompt, 40);
            }
        }
    }
}

#[test]
fn other_models_weights_and_formats_refuse_it() {
    let (path, prompts) = tiny_model("tiny-llama");
    let load = |path: &str, kv| {
        let (gguf, source) = open(path);
        let model = block_on(load_cpu(&gguf, &source, &options(kv, 256))).unwrap();
        Server::new(model, &gguf)
    };
    let mut old = load(&path, KvFormat::F32);
    old.answer(&prompts[0].ids, 24, true);
    let bytes = old.save(&prompts[0].ids);
    let refused = |path: &str, kv, why: &str| match load(path, kv).restore(&bytes) {
        Err(Error::BadRequest(message)) => assert!(message.contains(why), "{message}"),
        other => panic!("{other:?}"),
    };
    refused(&path, KvFormat::F16, "keys and values in f32, the engine in f16");
    refused(&tiny_model("tiny-gemma3").0, KvFormat::F32, "of another model");
    // The lowest bit of one weight, in the middle of the file.
    let mut file = std::fs::read(&path).unwrap();
    let middle = file.len() / 2;
    file[middle] ^= 1;
    let changed = format!("{}/one-weight.gguf", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&changed, file).unwrap();
    refused(&changed, KvFormat::F32, "other weights");
    assert_eq!(load(&path, KvFormat::F32).restore(&bytes), Ok(prompts[0].ids.len() / BLOCK_SIZE * BLOCK_SIZE));
}

#[test]
fn real_models_go_on_in_a_new_engine() {
    for name in ["smollm2", "gemma3"] {
        let Some(reference) = real_model(name) else { continue };
        let (gguf, source) = open(&reference.path);
        let gpu = open_gpu().remove(0);
        for kv in [KvFormat::F16, KvFormat::F32] {
            let load = || block_on(load_gpu(&gguf, &source, gpu.clone(), &options(kv, 256), |_| Ok(()))).unwrap();
            check(&format!("{name} {kv:?}"), load(), load(), &gguf, &reference.prompts[1].ids, 4);
        }
    }
}

/// Prints what it takes, and what computing it again would.
#[test]
fn a_long_prefix_comes_back() {
    if std::env::var("PAGEWISE_LONG").is_err() {
        return;
    }
    for name in ["smollm2", "gemma3"] {
        let Some(reference) = real_model(name) else { continue };
        let (gguf, source) = open(&reference.path);
        let gpu = open_gpu().remove(0);
        let load =
            || block_on(load_gpu(&gguf, &source, gpu.clone(), &options(KvFormat::F16, 1024), |_| Ok(()))).unwrap();
        let num_tokens = 640;
        let prefix: Vec<_> = reference.prompts[1].ids.iter().copied().cycle().take(num_tokens).collect();
        let mut old = Server::new(load(), &gguf);
        let time = |what: &str, run: &mut dyn FnMut()| {
            let start = Instant::now();
            run();
            println!("{name}: {what} in {:.1} ms", 1e3 * start.elapsed().as_secs_f64());
        };
        time("640 tokens computed", &mut || drop(old.answer(&prefix, 1, true)));
        let mut bytes = Vec::new();
        time("saved", &mut || bytes = old.save(&prefix));
        println!("{name}: {} bytes, {} a token", bytes.len(), bytes.len() / num_tokens);
        time("hashed", &mut || println!("{:x}", Xxh64::of(0, &bytes)));
        let (mut new, next) = (Server::new(load(), &gguf), [prefix.as_slice(), &[5, 9, 7]].concat());
        time("restored", &mut || assert_eq!(new.restore(&bytes), Ok(num_tokens)));
        let mut usage = Usage::default();
        time("first token after it", &mut || usage = new.answer(&next, 1, true).1);
        assert_eq!(usage.cached_tokens, num_tokens);
    }
}
