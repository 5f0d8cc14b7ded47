//! How many dispatches a layer takes in decode: each costs a GPU microseconds in which it reads no weights.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/gguf_writer.rs"]
mod gguf_writer;

use gguf_writer::GgufWriter;
use pagewise::compute::{RowClass, Rows, Step, Tuning};
use pagewise::gguf::{FileSource, Gguf, open};
use pagewise::model::{DeviceInfo, Graph, ModelConfig, ModelOptions, plan};
use pagewise::quant::Format;
use pollster::block_on;

const NUM_LAYERS: usize = 2;
/// Type id of f32 metadata.
const F32_VALUE: u32 = 6;

/// The kernels that run in a step of one token, sampling left out.
fn stems(graph: &Graph) -> Vec<&'static str> {
    let step = Step { num_tokens: 1, num_rows: 1, ..Step::default() };
    let dispatches = graph.recording.dispatches().iter();
    let in_layers = dispatches.filter(|d| d.class.runs(&step) && d.class != RowClass::one(Rows::Sampled));
    in_layers.map(|d| d.kernel.shader().stem).collect()
}

fn record(gguf: &Gguf, tuning: Tuning, binding_bytes: u64) -> Graph {
    let config = ModelConfig::from_gguf(gguf).unwrap();
    let device = DeviceInfo { tuning, ..DeviceInfo::BASELINE };
    let (_, mut layout, _) = plan(&config, gguf, &device, &ModelOptions::default()).unwrap();
    layout.binding_bytes = binding_bytes;
    Graph::record(&config, gguf, &layout).unwrap()
}

/// A Llama of two layers with these formats of q, k, v, the gate and the up-projection.
fn mixed([q, k, v, gate, up]: [Format; 5]) -> Gguf {
    let mut writer = GgufWriter::default().string("general.architecture", "llama");
    for (key, value) in [
        ("context_length", 64),
        ("embedding_length", 256),
        ("block_count", 2),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 4),
        ("feed_forward_length", 256),
    ] {
        writer = writer.u32(&format!("llama.{key}"), value);
    }
    writer = writer.value("llama.attention.layer_norm_rms_epsilon", F32_VALUE, &1e-5_f32.to_le_bytes());
    let mut tensors = vec![("token_embd".to_owned(), Format::Q4K), ("output".to_owned(), Format::Q6K)];
    let mut norms = vec!["output_norm".to_owned()];
    for layer in 0..NUM_LAYERS {
        let parts = [("attn_q", q), ("attn_k", k), ("attn_v", v), ("attn_output", Format::Q4K)];
        let parts = parts.into_iter().chain([("ffn_gate", gate), ("ffn_up", up), ("ffn_down", Format::Q6K)]);
        tensors.extend(parts.map(|(part, format)| (format!("blk.{layer}.{part}"), format)));
        norms.extend(["attn_norm", "ffn_norm"].map(|part| format!("blk.{layer}.{part}")));
    }
    for name in norms {
        writer = writer.f32_tensor(&format!("{name}.weight"), &[256]);
    }
    for (name, format) in tensors {
        let id = (0..100).find(|&id| Format::from_ggml_type(id) == Some(format)).unwrap();
        writer = writer.tensor(&format!("{name}.weight"), &[256, 256], id, &vec![0; 256 * format.row_bytes(256)]);
    }
    block_on(open(&writer.source())).unwrap()
}

#[test]
fn a_layer_takes_six_dispatches_where_norms_are_fused() {
    let mut files: Vec<_> = (["tiny-llama", "tiny-gemma3"].iter())
        .map(|name| {
            let path = format!("{}/models/{name}-f16.gguf", env!("CARGO_MANIFEST_DIR"));
            block_on(open(&FileSource::open(path).unwrap())).unwrap()
        })
        .collect();
    files.push(mixed([Format::Q4K, Format::Q4K, Format::Q6K, Format::Q4K, Format::Q6K]));
    files.push(mixed([Format::Q8_0, Format::Q4K, Format::Q4K, Format::Q4K, Format::Q4K]));
    for gguf in files {
        let num_layers = ModelConfig::from_gguf(&gguf).unwrap().num_layers;
        let graph = record(&gguf, Tuning::GPU, 128 << 20);
        assert!(graph.layer_dispatches <= 6, "{} dispatches a layer", graph.layer_dispatches);
        let stems = stems(&graph);
        let count = |stem: &str| stems.iter().filter(|&&found| found == stem).count();
        assert_eq!(count("matvec"), 4 * num_layers, "q k v, output, gate and up, down: {stems:?}");
        // Only the output norm.
        assert_eq!(count("rms_norm") + count("rms_norm_add"), 1, "{stems:?}");

        let graph = record(&gguf, Tuning { fused_norms: false, ..Tuning::GPU }, 128 << 20);
        let stems = self::stems(&graph);
        assert_eq!(stems.iter().filter(|stem| stem.starts_with("rms_norm")).count(), 2 * num_layers + 1, "{stems:?}");
    }
}

#[test]
fn what_has_more_than_two_formats_or_parts_takes_more_dispatches() {
    let num = |gguf: &Gguf, binding_bytes| {
        let stems = stems(&record(gguf, Tuning::GPU, binding_bytes));
        stems.iter().filter(|&&stem| stem == "matvec").count()
    };
    let three = mixed([Format::Q4K, Format::Q6K, Format::Q8_0, Format::Q4K, Format::Q4K]);
    assert_eq!(num(&three, 128 << 20), 5 * NUM_LAYERS);
    let alternating = mixed([Format::Q4K, Format::Q6K, Format::Q4K, Format::Q4K, Format::Q4K]);
    assert_eq!(num(&alternating, 128 << 20), 5 * NUM_LAYERS);
    // Room for 128 rows of Q6_K, the largest format: everything but embedding and logits is split.
    let split = mixed([Format::Q4K, Format::Q4K, Format::Q6K, Format::Q4K, Format::Q6K]);
    let room = 4 * Format::Q6K.buffer_words(128, 256) as u64;
    // q and k in parts of 128 to 186 rows, the last with the first of v: 3 + 2 - 1; the output's 2; gate and up 2 + 2; down 2.
    assert_eq!(num(&split, room), (4 + 2 + 4 + 2) * NUM_LAYERS);
}
