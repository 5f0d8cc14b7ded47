//! GGUF files that are right: values, tensors, versions, parts, reads.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

#[path = "common/gguf_writer.rs"]
mod gguf_writer;

use gguf_writer::{GgufWriter, MemorySource, string_bytes};
use pagewise::Error;
use pagewise::gguf::{
    Array, ByteSource, FileSource, Gguf, Metadata, Parser, Progress, StringArray, Value, limits, open, part_names,
};
use pagewise::quant::Format;
use pollster::block_on;

fn small() -> GgufWriter {
    GgufWriter::default()
        .string("general.architecture", "llama")
        .u32("llama.block_count", 2)
        .strings("tokenizer.ggml.tokens", &["a", "", "\u{e9}\u{1f600}"])
        .f32_tensor("token_embd.weight", &[32, 3])
        .tensor("blk.0.attn_q.weight", &[256, 2], 12, &[7; 2 * 144])
}

fn open_one(writer: &GgufWriter) -> Gguf {
    block_on(open(&writer.source())).unwrap()
}

#[test]
fn both_versions_are_read() {
    for version in [2, 3] {
        let gguf = open_one(&GgufWriter { version, ..small() });
        assert_eq!(gguf.metadata.str("general.architecture").unwrap(), "llama");
        let names: Vec<&str> = gguf.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        assert_eq!(names, ["token_embd.weight", "blk.0.attn_q.weight"]);
    }
}

#[test]
fn tensors_lie_where_the_file_has_them() {
    let source = small().source();
    let gguf = block_on(open(&source)).unwrap();
    let tensor = gguf.tensor("blk.0.attn_q.weight").unwrap();
    assert_eq!((tensor.shape.as_slice(), tensor.format), ([256, 2].as_slice(), Format::Q4K));
    assert_eq!((tensor.row_elements(), tensor.num_rows(), tensor.size_bytes), (256, 2, 288));
    let bytes = block_on(source.read(0, tensor.offset, 288)).unwrap();
    assert_eq!(bytes, [7; 288]);
    let tensor = gguf.tensor("token_embd.weight").unwrap();
    assert_eq!(tensor.offset % 32, 0);
    let bytes = block_on(source.read(0, tensor.offset + 4 * 95, 4)).unwrap();
    assert_eq!(bytes, 95_f32.to_le_bytes());
    assert_eq!(gguf.tensor_bytes(), 288 + 4 * 96);
    assert_eq!(gguf.file_bytes, source.parts[0].len() as u64);
    assert!(gguf.tensor("output.weight").unwrap_err().to_string().contains("`output.weight`"));
}

#[test]
fn alignment_is_that_of_the_file() {
    let writer = GgufWriter { alignment: 256, ..GgufWriter::default() }.u32("general.alignment", 256);
    let gguf = open_one(&writer.f32_tensor("a", &[3]).f32_tensor("b", &[1]));
    assert_eq!(gguf.tensors[0].offset % 256, 0);
    assert_eq!(gguf.tensors[1].offset, gguf.tensors[0].offset + 256);
}

#[test]
fn every_value_type_is_read() {
    let writer = GgufWriter::default()
        .value("u8", 0, &[200])
        .value("i8", 1, &[200])
        .value("u16", 2, &60_000_u16.to_le_bytes())
        .value("i16", 3, &(-2_i16).to_le_bytes())
        .value("i32", 5, &(-3_i32).to_le_bytes())
        .value("f32", 6, &1.5_f32.to_le_bytes())
        .value("bool", 7, &[1])
        .value("u64", 10, &(1_u64 << 40).to_le_bytes())
        .value("i64", 11, &(-4_i64).to_le_bytes())
        .value("f64", 12, &0.1_f64.to_le_bytes());
    let expected = [
        ("u8", Value::U8(200)),
        ("i8", Value::I8(-56)),
        ("u16", Value::U16(60_000)),
        ("i16", Value::I16(-2)),
        ("i32", Value::I32(-3)),
        ("f32", Value::F32(1.5)),
        ("bool", Value::Bool(true)),
        ("u64", Value::U64(1 << 40)),
        ("i64", Value::I64(-4)),
        ("f64", Value::F64(0.1)),
    ];
    let gguf = open_one(&writer);
    let found: Vec<(&str, &Value)> = gguf.metadata.iter().collect();
    assert_eq!(found, expected.iter().map(|(key, value)| (*key, value)).collect::<Vec<_>>());
}

#[test]
fn every_array_type_is_read() {
    let cases: [(u32, &[u8], Array); 12] = [
        (0, &[1, 255], Array::U8(vec![1, 255])),
        (1, &[1, 255], Array::I8(vec![1, -1])),
        (2, &[1, 0, 0, 1], Array::U16(vec![1, 256])),
        (3, &[1, 0, 255, 255], Array::I16(vec![1, -1])),
        (4, &[1, 0, 0, 0, 0, 1, 0, 0], Array::U32(vec![1, 256])),
        (5, &[1, 0, 0, 0, 255, 255, 255, 255], Array::I32(vec![1, -1])),
        (6, &[0, 0, 128, 63, 0, 0, 0, 64], Array::F32(vec![1.0, 2.0])),
        (7, &[0, 1], Array::Bool(vec![false, true])),
        (8, &[string_bytes("ab"), string_bytes("")].concat(), Array::Strings(["ab", ""].iter().collect())),
        (10, &[[1; 8], [0; 8]].concat(), Array::U64(vec![0x0101_0101_0101_0101, 0])),
        (11, &[[255; 8], [0; 8]].concat(), Array::I64(vec![-1, 0])),
        (12, &[1_f64.to_le_bytes(), 2_f64.to_le_bytes()].concat(), Array::F64(vec![1.0, 2.0])),
    ];
    for (type_id, bytes, expected) in cases {
        let gguf = open_one(&GgufWriter::default().array("k", type_id, 2, bytes).array("empty", type_id, 0, &[]));
        assert_eq!(gguf.metadata.get("k"), Some(&Value::Array(expected.clone())));
        assert_eq!(expected.len(), 2);
        let Some(Value::Array(empty)) = gguf.metadata.get("empty") else { panic!("no array") };
        assert!(empty.is_empty());
    }
}

#[test]
fn string_arrays_keep_their_borders() {
    let strings = ["a", "", "\u{e9}\u{1f600}", "b"];
    let array: StringArray = strings.iter().collect();
    assert_eq!(array.iter().collect::<Vec<_>>(), strings);
    assert_eq!(
        (0..5).map(|index| array.get(index)).collect::<Vec<_>>(),
        [Some("a"), Some(""), Some("\u{e9}\u{1f600}"), Some("b"), None]
    );
    assert_eq!(array.len(), 4);
}

#[test]
fn getters_convert_what_fits_and_explain_the_rest() {
    let metadata = Metadata::new([
        ("n".to_owned(), Value::I64(7)),
        ("negative".to_owned(), Value::I32(-1)),
        ("f".to_owned(), Value::from(0.5)),
        ("name".to_owned(), Value::from("x")),
        ("flag".to_owned(), Value::from(true)),
        ("types".to_owned(), Value::Array(Array::I32(vec![1, 2]))),
        ("scores".to_owned(), Value::Array(Array::F32(vec![0.25]))),
    ])
    .unwrap();
    assert_eq!(metadata.u32("n").unwrap(), 7);
    assert_eq!(metadata.f32("f").unwrap(), 0.5);
    assert_eq!(metadata.str("name").unwrap(), "x");
    assert!(metadata.bool("flag").unwrap());
    assert_eq!(metadata.u32s("types").unwrap(), [1, 2]);
    assert_eq!(metadata.i32s("types").unwrap(), [1, 2]);
    assert_eq!(metadata.f32s("scores").unwrap(), [0.25]);
    assert_eq!(metadata.opt_u32("absent").unwrap(), None);
    let message = |error: Error| error.to_string();
    let absent = message(metadata.u32("absent").unwrap_err());
    assert!(absent.contains("`absent` is missing") && absent.contains("integer"), "{absent}");
    let negative = message(metadata.opt_u32("negative").unwrap_err());
    assert!(negative.contains("`negative`") && negative.contains("i32 -1 found"), "{negative}");
    let wrong = message(metadata.strings("types").unwrap_err());
    assert!(wrong.contains("array of strings wanted, array of 2 i32 found"), "{wrong}");
    assert!(metadata.u32s("scores").is_err() && metadata.f32("n").is_err() && metadata.str("n").is_err());
    let twice = Metadata::new([("k".to_owned(), Value::from(1)), ("k".to_owned(), Value::from(2))]);
    assert_eq!(twice.unwrap_err().code(), "corrupt_model");
}

#[test]
fn the_header_may_arrive_byte_by_byte() {
    let file = small().build();
    let expected = open_one(&small());
    let mut parser = Parser::new(file.len() as u64);
    let header = loop {
        match parser.advance().unwrap() {
            Progress::Need { offset, .. } => parser.feed(&file[offset as usize..][..1]),
            Progress::Done(header) => break header,
        }
    };
    assert_eq!(header.tensors, expected.tensors);
    assert_eq!(header.metadata, expected.metadata);
}

#[test]
fn long_headers_are_read_in_growing_pieces_and_data_is_not() {
    let tokens: Vec<String> = (0..100_000).map(|index| format!("token{index}")).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let writer = GgufWriter::default().strings("tokenizer.ggml.tokens", &tokens);
    let source = writer.tensor("big", &[1 << 20, 8], 0, &vec![0; 32 << 20]).source();
    let gguf = block_on(open(&source)).unwrap();
    assert!(gguf.metadata.strings("tokenizer.ggml.tokens").unwrap().iter().eq(tokens));
    let reads = source.reads.borrow();
    let mut next = 0;
    for (index, &(_, offset, len)) in reads.iter().enumerate() {
        assert_eq!(offset, next, "reads are adjacent");
        assert_eq!(len, (limits::FIRST_READ_BYTES << index).min(limits::MAX_READ_BYTES));
        next += len as u64;
    }
    assert!(next < 4 << 20, "{next} bytes read for a header of 1.9 MB");
}

fn split(number: u16, count: u16, total: u32) -> GgufWriter {
    GgufWriter::default()
        .value("split.no", 2, &number.to_le_bytes())
        .value("split.count", 2, &count.to_le_bytes())
        .u32("split.tensors.count", total)
}

#[test]
fn parts_are_read_as_one_model() {
    let first = split(0, 3, 2).string("general.architecture", "llama");
    let second = split(1, 3, 2).f32_tensor("a", &[32]);
    let third = split(2, 3, 2).f32_tensor("b", &[64]);
    let source = MemorySource::new([&first, &second, &third].map(GgufWriter::build).to_vec());
    let gguf = block_on(open(&source)).unwrap();
    assert_eq!(gguf.metadata.str("general.architecture").unwrap(), "llama");
    let places: Vec<(&str, usize)> = gguf.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.part)).collect();
    assert_eq!(places, [("a", 1), ("b", 2)]);
    let b = gguf.tensor("b").unwrap();
    assert_eq!(block_on(source.read(b.part, b.offset + 4 * 63, 4)).unwrap(), 63_f32.to_le_bytes());
    assert_eq!(gguf.file_bytes, source.parts.iter().map(|part| part.len() as u64).sum::<u64>());
}

#[test]
fn wrong_sets_of_parts_are_refused() {
    let [first, second] = [split(0, 2, 2).f32_tensor("a", &[32]), split(1, 2, 2).f32_tensor("b", &[32])];
    let refused = |parts: &[&GgufWriter]| {
        let source = MemorySource::new(parts.iter().map(|part| part.build()).collect());
        let error = block_on(open(&source)).unwrap_err();
        (error.code(), error.to_string())
    };
    let (code, message) = refused(&[&first]);
    assert!(code == "bad_request" && message.contains("split into 2 parts, 1 given"), "{message}");
    let (code, message) = refused(&[&second, &first]);
    assert!(code == "bad_request" && message.contains("part 2 of the model was given as part 1"), "{message}");
    let (code, message) = refused(&[&first, &split(1, 2, 2).f32_tensor("a", &[32])]);
    assert!(code == "corrupt_model" && message.contains("tensor `a` occurs twice"), "{message}");
    let (code, message) = refused(&[&first, &split(1, 2, 2)]);
    assert!(code == "corrupt_model" && message.contains("promises 2 tensors, all parts have 1"), "{message}");
    let (code, message) = refused(&[&first, &GgufWriter { magic: *b"GGML", ..second }]);
    assert!(code == "corrupt_model" && message.contains("part 2 of 2"), "{message}");
    let (code, message) = refused(&[]);
    assert!(code == "bad_request" && message.contains("0 parts"), "{message}");
}

#[test]
fn names_of_parts_follow_from_the_first() {
    assert_eq!(part_names("m.gguf").unwrap(), ["m.gguf"]);
    assert_eq!(part_names("a-00001-of-00002.gguf").unwrap(), ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"]);
    // Not the pattern: other digits, other ending.
    for name in ["a-1-of-2.gguf", "a-00001-of-00002.bin", "-of-.gguf", "a-0000x-of-00002.gguf"] {
        assert_eq!(part_names(name).unwrap(), [name]);
    }
    let second = part_names("a-00002-of-00002.gguf").unwrap_err();
    assert!(second.code() == "bad_request" && second.to_string().contains("part 2 of 2"));
    assert!(part_names("a-00001-of-99999.gguf").unwrap_err().to_string().contains("99999 parts, 1 to 1024 allowed"));
    assert!(part_names("a-00001-of-00000.gguf").is_err());
}

#[test]
fn files_find_their_parts() {
    let folder = std::env::temp_dir().join(format!("pagewise-gguf-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let first = folder.join("m-00001-of-00002.gguf");
    std::fs::write(&first, split(0, 2, 2).f32_tensor("a", &[32]).build()).unwrap();
    let error = FileSource::open(&first).unwrap_err();
    assert!(error.code() == "bad_request" && error.to_string().contains("part 2 of 2"), "{error}");
    std::fs::write(folder.join("m-00002-of-00002.gguf"), split(1, 2, 2).f32_tensor("b", &[32]).build()).unwrap();
    let source = FileSource::open(&first).unwrap();
    let gguf = block_on(open(&source)).unwrap();
    let b = gguf.tensor("b").unwrap();
    assert_eq!(block_on(source.read(1, b.offset + 4, 4)).unwrap(), 1_f32.to_le_bytes());
    assert_eq!(block_on(source.read(1, b.offset, 1 << 20)).unwrap_err().code(), "network");
    assert!(FileSource::open(&folder).unwrap_err().to_string().contains("directory"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_tiny_model_is_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny-llama-f16.gguf");
    let gguf = block_on(open(&FileSource::open(path).unwrap())).unwrap();
    assert_eq!(gguf.metadata.str("general.architecture").unwrap(), "llama");
    let embedding = gguf.tensor("token_embd.weight").unwrap();
    let num_tokens = gguf.metadata.strings("tokenizer.ggml.tokens").unwrap().len();
    assert_eq!(embedding.num_rows(), num_tokens);
    assert!(gguf.tensors.iter().any(|tensor| tensor.format == Format::F16));
}
