//! Block formats: GGUF bytes against reference values, the packed layout against those, the WGSL pieces through naga.
#![allow(clippy::unwrap_used, reason = "tests")]

use pagewise::quant::{CHUNK_ELEMENTS, Format};
use proptest::prelude::*;
use std::path::PathBuf;

fn data(format: Format, extension: &str) -> Vec<u8> {
    let name = format!("{}.{extension}", format.name());
    std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/quants").join(name)).unwrap()
}

/// GGUF bytes and the weights that they stand for. F32 has no reference file: the file of F16 gives both.
fn golden(format: Format) -> (Vec<u8>, Vec<u32>) {
    let source = if format == Format::F32 { Format::F16 } else { format };
    let values = data(source, "f32");
    let bits = values.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    (if format == Format::F32 { values } else { data(format, "blocks") }, bits)
}

/// Bit patterns; all NaNs are one.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }).collect()
}

fn packed(format: Format, gguf: &[u8], num_elements: usize) -> Vec<u32> {
    let mut packed = vec![0xdead_beef; format.packed_row_words(num_elements)];
    format.pack_row(gguf, &mut packed);
    packed
}

#[test]
fn dequantize_equals_the_reference() {
    for format in Format::ALL {
        let (gguf, expected) = golden(format);
        let mut out = vec![f32::NAN; expected.len()];
        format.dequantize(&gguf, &mut out);
        assert_eq!(bits(&out), expected, "{format}");
    }
}

#[test]
fn packed_rows_hold_the_reference_values() {
    for format in Format::ALL {
        let (gguf, expected) = golden(format);
        // The whole file as one row, and as rows of one, two and three of the smallest possible lengths: an odd number of
        // scales leaves half a word.
        let unit = CHUNK_ELEMENTS.max(format.block_elements());
        for row in [expected.len(), unit, 2 * unit, 3 * unit] {
            for (gguf, expected) in gguf.chunks_exact(format.row_bytes(row)).zip(expected.chunks_exact(row)) {
                let mut out = vec![f32::NAN; row];
                format.unpack_row(&packed(format, gguf, row), &mut out);
                assert_eq!(bits(&out), expected, "{format}, rows of {row}");
            }
        }
    }
}

#[test]
fn packing_wastes_no_word() {
    for format in Format::ALL {
        for row in [256, 512, 768, 2304] {
            // TQ1_0 takes the layout of TQ2_0, which decodes faster.
            let stored = if format == Format::Tq1_0 { Format::Tq2_0 } else { format };
            assert_eq!(format.packed_row_words(row), stored.row_bytes(row).div_ceil(4), "{format} {row}");
        }
    }
}

#[test]
fn names_and_type_ids_are_those_of_gguf() {
    let expected = [
        (0, "F32", 1, 4),
        (1, "F16", 1, 2),
        (30, "BF16", 1, 2),
        (2, "Q4_0", 32, 18),
        (3, "Q4_1", 32, 20),
        (6, "Q5_0", 32, 22),
        (7, "Q5_1", 32, 24),
        (8, "Q8_0", 32, 34),
        (10, "Q2_K", 256, 84),
        (11, "Q3_K", 256, 110),
        (12, "Q4_K", 256, 144),
        (13, "Q5_K", 256, 176),
        (14, "Q6_K", 256, 210),
        (19, "IQ1_S", 256, 50),
        (29, "IQ1_M", 256, 56),
        (16, "IQ2_XXS", 256, 66),
        (17, "IQ2_XS", 256, 74),
        (22, "IQ2_S", 256, 82),
        (18, "IQ3_XXS", 256, 98),
        (21, "IQ3_S", 256, 110),
        (20, "IQ4_NL", 32, 18),
        (23, "IQ4_XS", 256, 136),
        (34, "TQ1_0", 256, 54),
        (35, "TQ2_0", 256, 66),
        (39, "MXFP4", 32, 17),
    ];
    assert_eq!(Format::ALL.len(), expected.len());
    for (format, (id, name, elements, bytes)) in Format::ALL.into_iter().zip(expected) {
        assert_eq!(Format::from_ggml_type(id), Some(format));
        assert_eq!((format.name(), format.stem()), (name, name.to_lowercase().as_str()));
        assert_eq!((format.block_elements(), format.block_bytes()), (elements, bytes));
    }
    let known = (0..1000).filter(|&id| Format::from_ggml_type(id).is_some()).count();
    assert_eq!(known, Format::ALL.len());
}

/// The reference rows look up a part of each codebook: this is all of them, as digests (FNV-1a) of the points in their
/// order, computed from the reference's tables.
#[test]
fn codebooks_are_those_of_the_format() {
    let expected: [(Format, usize, u64); 7] = [
        (Format::Iq1S, 1024, 0x03f1_8808_17ee_ffa4),
        (Format::Iq1M, 1024, 0x03f1_8808_17ee_ffa4),
        (Format::Iq2Xxs, 128, 0x6fca_17f5_c451_905d),
        (Format::Iq2Xs, 256, 0x29d6_ac8e_0e6b_14e3),
        (Format::Iq2S, 512, 0x641f_9aa3_fbd9_8694),
        (Format::Iq3Xxs, 256, 0xdfa5_dc83_d6a1_55d5),
        (Format::Iq3S, 512, 0xfa37_020c_25b4_4829),
    ];
    let mut with_codebook = Vec::new();
    for (format, num_words, digest) in expected {
        let bytes: Vec<u8> = format.codebook().into_iter().flat_map(u32::to_le_bytes).collect();
        let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        assert_eq!(bytes.len(), 4 * num_words, "{format}");
        assert_eq!(bytes.iter().fold(0xcbf2_9ce4_8422_2325, fnv), digest, "{format}");
        assert_eq!(format.buffer_words(3, 512), 3 * format.packed_row_words(512) + num_words);
        with_codebook.push(format);
    }
    for format in Format::ALL.into_iter().filter(|format| !with_codebook.contains(format)) {
        assert!(format.codebook().is_empty(), "{format}");
    }
}

/// Scales of every kind that a file can hold: the twins agree on all of them.
#[test]
fn hostile_blocks_decode_alike() {
    // Infinities, NaNs, the largest and the smallest halves, both zeros; as bytes, every value.
    let halves = [0x7c00, 0xfc00, 0x7e00, 0xffff, 0x7c01, 0x7bff, 0xfbff, 0x0001, 0x8001, 0x0000, 0x8000];
    let patterns = halves.map(u16::to_le_bytes).into_iter().chain((0..=255).map(|byte| [byte, byte]));
    for pattern in patterns {
        for format in Format::ALL {
            let row = 3 * CHUNK_ELEMENTS.max(format.block_elements());
            for first in [0, 1] {
                let mut gguf: Vec<u8> = (0..format.row_bytes(row)).map(|at| pattern[(at + first) % 2]).collect();
                if let Some(last) = gguf.last_mut() {
                    *last ^= 0x55;
                }
                let (mut expected, mut out) = (vec![0.0; row], vec![1.0; row]);
                format.dequantize(&gguf, &mut expected);
                format.unpack_row(&packed(format, &gguf, row), &mut out);
                assert_eq!(bits(&out), bits(&expected), "{format} filled with {pattern:?}");
            }
        }
    }
}

/// What a weight takes in the file and in the GPU's memory, as the table in docs/kernels.md has it.
#[test]
fn the_table_of_formats_is_true() {
    let mut table =
        String::from("| format | ggml type | bits in the file | bits in GPU memory | codebook bytes a buffer |\n");
    table.push_str("| --- | --- | --- | --- | --- |\n");
    for format in Format::ALL {
        // A row long enough that padding to a word does not show.
        let row = 1 << 20;
        let id = (0..1000).find(|&id| Format::from_ggml_type(id) == Some(format)).unwrap();
        let file = 8.0 * format.row_bytes(row) as f64 / f64::from(1 << 20);
        let memory = 32.0 * format.packed_row_words(row) as f64 / f64::from(1 << 20);
        assert!(memory <= 1.3 * file, "{format}: {memory} bits for {file}");
        table.push_str(&format!("| {format} | {id} | {file} | {memory} | {} |\n", 4 * format.codebook().len()));
    }
    // Formatters align the columns: the same but for spaces and dashes.
    let plain = |text: &str| text.replace([' ', '-'], "");
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/kernels.md")).unwrap();
    assert!(plain(&docs).contains(&plain(&table)), "docs/kernels.md should have\n{table}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes at all: the packed layout decodes to what the GGUF bytes decode to, bit by bit.
    #[test]
    fn unpacked_equals_dequantized(which in 0..Format::ALL.len(), units in 1_usize..5, seed in any::<u64>()) {
        let format = Format::ALL[which];
        let row = units * CHUNK_ELEMENTS.max(format.block_elements());
        let mut state = seed | 1;
        let gguf: Vec<u8> = (0..format.row_bytes(row)).map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        }).collect();
        let mut expected = vec![0.0; row];
        format.dequantize(&gguf, &mut expected);
        let mut out = vec![1.0; row];
        format.unpack_row(&packed(format, &gguf, row), &mut out);
        prop_assert_eq!(bits(&out), bits(&expected), "{}", format);
    }
}

/// A kernel around the piece, as its real users are.
const KERNEL: &str = "
override K: u32 = 256u;
override ROW_WORDS: u32 = 256u;
@group(0) @binding(0) var<storage, read> weights: array<u32>;
@group(0) @binding(1) var<storage, read_write> decoded: array<vec4<f32>>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let chunks = K / 32u;
    let quads = load_chunk(id.x / chunks, id.x % chunks);
    for (var q = 0u; q < 8u; q++) {
        decoded[id.x * 8u + q] = quads[q];
    }
}
";

#[test]
fn every_wgsl_piece_is_valid() {
    for format in Format::ALL {
        let source = format!("{KERNEL}{}", format.wgsl());
        let module = naga::front::wgsl::parse_str(&source)
            .unwrap_or_else(|error| panic!("{format}: {}", error.emit_to_string(&source)));
        // `unpack2x16float`, which every WebGPU device has.
        let capabilities = naga::valid::Capabilities::SHADER_FLOAT16_IN_FLOAT32;
        naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities)
            .validate(&module)
            .unwrap_or_else(|error| panic!("{format}: {error:?}"));
    }
}
