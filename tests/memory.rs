//! The memory calculator: numbers that are known, and what popular texts get wrong.
#![allow(clippy::unwrap_used, reason = "tests")]

use pagewise::Error;
use pagewise::gguf::{FileSource, TensorInfo, open};
use pagewise::model::{DeviceInfo, KV_FORMATS, KvMemory, KvShape, ModelConfig, ModelOptions, plan};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;
const LARGE: KvShape = KvShape { full_layers: 80, sliding_layers: 0, window: 0, kv_heads: 8, head_dim: 128 };
/// Gemma 3 1B: 26 layers, every sixth sees the whole context.
const SLIDING: KvShape = KvShape { full_layers: 4, sliding_layers: 22, window: 512, kv_heads: 1, head_dim: 256 };

fn total(shape: KvShape, format: &str, context: usize) -> u64 {
    shape.memory(format, context, 1).unwrap().total_bytes
}

#[test]
fn a_70b_with_128k_tokens_is_40_gib() {
    let found = LARGE.memory("f16", 131_072, 1).unwrap();
    let right = KvMemory {
        bytes_per_token: 327_680,
        bytes_per_token_beyond_window: 327_680,
        full_bytes: 40 * GIB,
        sliding_bytes: 0,
        total_bytes: 40 * GIB,
    };
    assert_eq!(found, right);
    assert_eq!(LARGE.memory("f16", 131_072, 3).unwrap().total_bytes, 120 * GIB);
}

#[test]
fn memory_is_linear_in_the_context_not_quadratic() {
    let one = total(LARGE, "f16", 1024);
    for times in [2, 3, 10, 128] {
        assert_eq!(total(LARGE, "f16", 1024 * times), one * times as u64);
    }
}

#[test]
fn quantising_keys_and_values_shrinks_them() {
    let [f32, f16, bf16, q8_0, q4_0] = KV_FORMATS.map(|format| total(LARGE, format, 131_072));
    assert_eq!((f32, bf16), (2 * f16, f16));
    // 34 and 18 bytes for 32 values instead of 64.
    assert_eq!((q8_0, q4_0), (f16 / 64 * 34, f16 / 64 * 18));
}

#[test]
fn windows_bound_what_sliding_layers_keep() {
    let row = 2 * 256 * 2;
    let found = SLIDING.memory("f16", 32_768, 1).unwrap();
    assert_eq!((found.bytes_per_token, found.bytes_per_token_beyond_window), (26 * row, 4 * row));
    assert_eq!((found.full_bytes, found.sliding_bytes), (4 * row * 32_768, 22 * row * 512));
    assert_eq!(total(SLIDING, "f16", 100), 26 * row * 100);
    let all_full = KvShape { full_layers: 26, sliding_layers: 0, ..SLIDING };
    assert!(5 * total(SLIDING, "f16", 32_768) < total(all_full, "f16", 32_768));
}

#[test]
fn a_partial_block_is_a_whole_one() {
    let odd = KvShape { kv_heads: 1, head_dim: 48, full_layers: 1, ..LARGE };
    assert_eq!(total(odd, "q8_0", 1), 2 * 2 * 34);
}

#[test]
fn a_model_file_says_its_own_shape() {
    for (file, right) in [("tiny-llama-f16", None), ("tiny-gemma3-f16", Some(()))] {
        let path = format!("{}/models/{file}.gguf", env!("CARGO_MANIFEST_DIR"));
        let gguf = pollster::block_on(open(&FileSource::open(std::path::Path::new(&path)).unwrap())).unwrap();
        let config = ModelConfig::from_gguf(&gguf).unwrap();
        let shape = KvShape::of(&config);
        assert_eq!(shape.full_layers + shape.sliding_layers, config.num_layers);
        assert_eq!((shape.sliding_layers > 0, shape.window > 0), (right.is_some(), right.is_some()), "{file}");
    }
}

#[test]
fn a_step_has_room_for_as_many_as_are_asked_for_and_can_be_bound() {
    let path = format!("{}/models/tiny-llama-f16.gguf", env!("CARGO_MANIFEST_DIR"));
    let gguf = pollster::block_on(open(&FileSource::open(std::path::Path::new(&path)).unwrap())).unwrap();
    let config = ModelConfig::from_gguf(&gguf).unwrap();
    let room = |max_sequences, binding_bytes| {
        let options = ModelOptions { context_length: Some(512), max_sequences, ..ModelOptions::default() };
        let device = DeviceInfo { binding_bytes, ..DeviceInfo::BASELINE };
        let (_, layout, graph) = plan(&config, &gguf, &device, &options).unwrap();
        let largest = graph.recording.buffers().iter().map(|buffer| 4 * buffer.size_words as u64).max().unwrap();
        assert!(largest <= binding_bytes);
        layout.limits.max_sequences
    };
    let [narrow, wide] = [1 << 20, 128 << 20];
    assert_eq!([None, Some(1), Some(24), Some(10_000)].map(|asked| room(asked, wide)), [4, 1, 24, 256]);
    // Of each sequence, edits of 512 tokens and 1,024 biases, 20 bytes each.
    assert_eq!(room(Some(10_000), narrow), (1 << 20) / (20 * 1536));
}

#[test]
fn a_step_reads_every_weight_but_an_embedding_table_of_its_own() {
    let path = format!("{}/models/tiny-gemma3-f16.gguf", env!("CARGO_MANIFEST_DIR"));
    let mut gguf = pollster::block_on(open(&FileSource::open(std::path::Path::new(&path)).unwrap())).unwrap();
    let config = ModelConfig::from_gguf(&gguf).unwrap();
    let planned =
        |gguf: &_| plan(&config, gguf, &DeviceInfo::BASELINE, &ModelOptions::default()).map(|(plan, ..)| plan).unwrap();
    let tied = planned(&gguf);
    assert_eq!(tied.step_weights_bytes, tied.weights_bytes);
    let embedding = gguf.find("token_embd.weight").unwrap().clone();
    let table_bytes = embedding.size_bytes;
    gguf.tensors.push(TensorInfo { name: "output.weight".to_owned(), ..embedding });
    let untied = planned(&gguf);
    assert_eq!(untied.weights_bytes, tied.weights_bytes + table_bytes);
    assert_eq!(untied.step_weights_bytes, tied.step_weights_bytes);
}

#[test]
fn what_cannot_be_is_refused() {
    let bad = [
        LARGE.memory("q3_0", 1, 1),
        LARGE.memory("F16", 1, 1),
        LARGE.memory("f16", usize::MAX, 1),
        LARGE.memory("f16", 1 << 31, 1 << 31),
        KvShape { full_layers: 0, ..LARGE }.memory("f16", 1, 1),
        KvShape { kv_heads: 0, ..LARGE }.memory("f16", 1, 1),
        KvShape { head_dim: usize::MAX, ..LARGE }.memory("f16", 1, 1),
        KvShape { window: 0, ..SLIDING }.memory("f16", 1, 1),
    ];
    for found in bad {
        assert!(matches!(found, Err(Error::BadRequest(_))), "{found:?}");
    }
}

proptest! {
    /// Counted token by token and layer by layer.
    #[test]
    fn as_counted(
        full_layers in 1_usize..4, sliding_layers in 0_usize..4, window in 1_usize..50, kv_heads in 1_usize..5,
        context in 0_usize..120, format in 0..KV_FORMATS.len(),
    ) {
        let shape = KvShape { full_layers, sliding_layers, window, kv_heads, head_dim: 32 };
        let head_bytes = [128, 64, 64, 34, 18][format];
        let mut counted = 0;
        for layer in 0..full_layers + sliding_layers {
            for token in 0..context {
                if layer < full_layers || token + window >= context {
                    counted += 2 * head_bytes * kv_heads as u64;
                }
            }
        }
        prop_assert_eq!(total(shape, KV_FORMATS[format], context), counted);
    }
}
