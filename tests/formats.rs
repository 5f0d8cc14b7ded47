//! Models of random weights in formats with codebooks, from file to logits: the native adapter against the CPU executor.
//! `kernels.rs` has the kernels of every format.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/gguf_writer.rs"]
mod gguf_writer;

use gguf_writer::{GgufWriter, MemorySource};
use pagewise::compute::{Gpu, GpuOptions, Purpose, Tuning};
use pagewise::engine::{Evaluation, evaluate};
use pagewise::gguf::{Gguf, open};
use pagewise::kernels::KvFormat;
use pagewise::model::{DeviceInfo, Graph, Logits, ModelConfig, ModelOptions, load_cpu, load_gpu, plan};
use pagewise::quant::Format;
use pollster::block_on;

const WIDTH: usize = 256;
const VOCAB: usize = 48;
/// Formats that one file uses: of the embedding, q and k, v and the attention's output, the gate, up and down, the logits.
/// So one dispatch has to read q, k and v in two formats, and another the gate and up.
const FORMATS_A_FILE: usize = 6;
/// Type id of f32 metadata.
const F32_VALUE: u32 = 6;

/// Rows of the format's reference blocks, each beginning with another one.
fn rows(format: Format, num_rows: usize) -> Vec<u8> {
    let name = if format == Format::F32 { "F16.f32".to_owned() } else { format!("{}.blocks", format.name()) };
    let blocks = std::fs::read(format!("{}/tests/data/quants/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let blocks: Vec<_> = blocks.chunks_exact(format.block_bytes()).collect();
    let blocks_a_row = WIDTH / format.block_elements();
    (0..num_rows * blocks_a_row).flat_map(|index| blocks[(index + index / 37) % blocks.len()].to_vec()).collect()
}

/// A one-layer model.
fn model(formats: &[Format]) -> (Gguf, MemorySource) {
    let mut writer = GgufWriter::default().string("general.architecture", "llama");
    for (key, value) in [
        ("context_length", 64),
        ("embedding_length", 256),
        ("block_count", 1),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("feed_forward_length", 256),
    ] {
        writer = writer.u32(&format!("llama.{key}"), value);
    }
    writer = writer.value("llama.attention.layer_norm_rms_epsilon", F32_VALUE, &1e-5_f32.to_le_bytes());
    for name in ["output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"] {
        let ones: Vec<u8> = (0..WIDTH).flat_map(|_| 1.0_f32.to_le_bytes()).collect();
        writer = writer.tensor(&format!("{name}.weight"), &[WIDTH as u64], 0, &ones);
    }
    let tensors = [
        ("token_embd", VOCAB, 0),
        ("blk.0.attn_q", WIDTH, 1),
        ("blk.0.attn_k", WIDTH / 2, 1),
        ("blk.0.attn_v", WIDTH / 2, 2),
        ("blk.0.attn_output", WIDTH, 2),
        ("blk.0.ffn_gate", WIDTH, 3),
        ("blk.0.ffn_up", WIDTH, 4),
        ("blk.0.ffn_down", WIDTH, 4),
        ("output", VOCAB, 5),
    ];
    for (name, num_rows, role) in tensors {
        let format = formats[role % formats.len()];
        let id = (0..100).find(|&id| Format::from_ggml_type(id) == Some(format)).unwrap();
        let shape = [WIDTH as u64, num_rows as u64];
        writer = writer.tensor(&format!("{name}.weight"), &shape, id, &rows(format, num_rows));
    }
    let source = writer.source();
    (block_on(open(&source)).unwrap(), source)
}

fn logits(model: &mut impl Logits) -> Vec<f32> {
    // Six rows in a step, then one: both kernels of a projection.
    let sequences = [2, 3].map(|first| Evaluation { ids: vec![first, 40, 7, 21], positions: vec![0, 3] });
    let mut all = block_on(evaluate(model, &sequences, 3)).unwrap();
    all.extend(block_on(evaluate(model, &sequences[..1], 1)).unwrap());
    all.into_iter().flatten().flatten().collect()
}

#[test]
fn codebook_formats_from_file_to_logits() {
    let mut formats: Vec<_> = Format::ALL.into_iter().filter(|format| !format.codebook().is_empty()).collect();
    formats.extend([Format::Q3K, Format::Iq4Xs, Format::Iq4Nl, Format::Tq1_0, Format::Mxfp4]);
    let options = ModelOptions { kv: KvFormat::F32, ..ModelOptions::default() };
    // Software adapters and GPUs multiply many rows with different kernels.
    let tunings = [Tuning::SOFTWARE, Tuning::GPU];
    assert_eq!(formats.len(), FORMATS_A_FILE * tunings.len());
    for (formats, tuning) in formats.chunks(FORMATS_A_FILE).zip(tunings) {
        let (gguf, source) = model(formats);
        let expected = logits(&mut block_on(load_cpu(&gguf, &source, &options)).unwrap());
        let largest = expected.iter().fold(0.0, |largest: f32, logit| largest.max(logit.abs()));
        assert!(largest.is_finite() && largest > 0.0, "{formats:?}");
        let gpu = block_on(Gpu::open(&GpuOptions { tuning: Some(tuning), ..GpuOptions::default() })).unwrap();
        let mut on_gpu = block_on(load_gpu(&gguf, &source, gpu, &options, |_| Ok(()))).unwrap();
        assert_eq!(on_gpu.executor().gpu().tuning(), tuning, "{formats:?}: the probe fell back");
        let actual = logits(&mut on_gpu);
        assert_eq!(actual.len(), expected.len());
        for (actual, expected) in actual.iter().zip(&expected) {
            let distance = (actual - expected).abs() / largest;
            assert!(distance < 1e-4, "{formats:?}: {actual}, expected {expected}; largest {largest}");
        }
    }
}

#[test]
fn every_part_of_a_split_tensor_has_its_codebook() {
    for format in Format::ALL {
        let (gguf, _) = model(&[format]);
        let config = ModelConfig::from_gguf(&gguf).unwrap();
        let (_, mut layout, _) = plan(&config, &gguf, &DeviceInfo::BASELINE, &ModelOptions::default()).unwrap();
        // Room for 14 rows and a codebook, and not for a word more.
        let room = 4 * format.buffer_words(14, WIDTH);
        layout.binding_bytes = room as u64;
        let graph = Graph::record(&config, &gguf, &layout).unwrap();
        let mut num_parts = 0;
        for buffer in graph.recording.buffers() {
            // Those that may be split are named after their rows.
            if buffer.purpose == Purpose::Weights && buffer.label.contains('[') {
                let bytes = 4 * buffer.size_words;
                let rows = bytes - 4 * format.codebook().len();
                assert!(bytes <= room, "{format}: {} has {bytes} bytes", buffer.label);
                assert_eq!(rows % (4 * format.packed_row_words(WIDTH)), 0, "{format}: {}", buffer.label);
                num_parts += 1;
            }
        }
        // 48 rows twice, 256 three times, and pairs of 256: 7 of those fit.
        let least = 2 * VOCAB.div_ceil(14) + 3 * WIDTH.div_ceil(14) + WIDTH.div_ceil(7);
        assert!(num_parts >= least, "{format}: {num_parts} parts, {least} at least");
    }
}
