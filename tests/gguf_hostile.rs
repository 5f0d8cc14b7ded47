//! GGUF files that are wrong: a rejection per limit, and messages that say what was asked and what is allowed.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

#[path = "common/gguf_writer.rs"]
mod gguf_writer;

use gguf_writer::{ARRAY, F32, GgufWriter, STRING, U32};
use pagewise::gguf::{ByteSource, Parser, Progress, limits, open};
use pagewise::{Error, Result};
use pollster::block_on;

fn opened(file: Vec<u8>) -> Result<()> {
    block_on(open(&gguf_writer::MemorySource::new(vec![file]))).map(|_| ())
}

/// Asserts the code, and that the message has each of the texts.
#[track_caller]
fn refused(result: Result<()>, code: &str, texts: &[&str]) {
    let error = result.expect_err("refused");
    let message = error.to_string();
    assert_eq!(error.code(), code, "{message}");
    for text in texts {
        assert!(message.contains(text), "`{text}` is not in: {message}");
    }
}

#[track_caller]
fn corrupt(writer: &GgufWriter, texts: &[&str]) {
    refused(opened(writer.build()), "corrupt_model", texts);
}

/// A file that is really longer than its first bytes: lengths in it are not refused for lack of bytes.
struct Endless(Vec<u8>);

impl ByteSource for Endless {
    fn num_parts(&self) -> usize {
        1
    }

    async fn part_len(&self, _: usize) -> Result<u64> {
        Ok(1 << 50)
    }

    async fn read(&self, _: usize, offset: u64, len: usize) -> Result<Vec<u8>> {
        let start = usize::try_from(offset).unwrap().min(self.0.len());
        let mut bytes = self.0[start..(start + len).min(self.0.len())].to_vec();
        bytes.resize(len, 0);
        Ok(bytes)
    }
}

#[track_caller]
fn corrupt_endless(writer: &GgufWriter, texts: &[&str]) {
    refused(block_on(open(&Endless(writer.header()))).map(|_| ()), "corrupt_model", texts);
}

#[test]
fn other_files_are_named() {
    refused(opened(b"{\"a\": 1}".to_vec()), "corrupt_model", &["not a GGUF file", "{\\\"a\\\""]);
    let version = |version| opened(GgufWriter { version, ..GgufWriter::default() }.build());
    refused(version(1), "unsupported_model", &["version 1", "2 and 3"]);
    refused(version(4), "unsupported_model", &["version 4", "2 and 3"]);
    refused(version(3 << 24), "unsupported_model", &["big-endian"]);
    refused(opened(Vec::new()), "corrupt_model", &["byte 0", "the file has 0 left"]);
}

#[test]
fn counts_are_limited() {
    let tensors = GgufWriter { num_tensors: Some(limits::MAX_TENSORS + 1), ..GgufWriter::default() };
    corrupt_endless(&tensors, &["byte 8", "65537 tensors, at most 65536"]);
    corrupt(&GgufWriter { num_tensors: Some(2), ..GgufWriter::default() }, &["2 tensors need 64 bytes"]);
    let entries = GgufWriter { num_entries: Some(limits::MAX_METADATA_ENTRIES + 1), ..GgufWriter::default() };
    corrupt_endless(&entries, &["byte 16", "16385 metadata entries, at most 16384"]);
    corrupt(&GgufWriter { num_entries: Some(u64::MAX), ..GgufWriter::default() }, &["18446744073709551615"]);
}

#[test]
fn metadata_lengths_are_limited() {
    let writer = GgufWriter::default;
    let key = "k".repeat(limits::MAX_KEY_BYTES as usize + 1);
    corrupt(&writer().u32(&key, 1), &["byte 24", "65536 bytes of a metadata key, at most 65535"]);
    let too_long = (limits::MAX_STRING_BYTES + 1).to_le_bytes();
    corrupt_endless(&writer().value("s", STRING, &too_long), &["`s`", "16777217 bytes of a string, at most 16777216"]);
    let too_many = limits::MAX_ARRAY_ELEMENTS + 1;
    let texts = ["`a`", "4194305 array elements, at most 4194304"];
    corrupt_endless(&writer().array("a", 0, too_many, &[]), &texts);
    corrupt_endless(&writer().array("a", STRING, too_many, &[]), &texts);
    corrupt_endless(&writer().array("a", STRING, 1, &too_long), &["`a`", "16777217 bytes of a string"]);
    // Within the limit, but more than the file has.
    corrupt(&writer().array("a", 12, 1000, &[0; 16]), &["`a`", "1000 array elements need 8000 bytes, the file has"]);
    corrupt(&writer().value("s", STRING, &1000_u64.to_le_bytes()), &["`s`", "1000 bytes of a string need"]);
}

#[test]
fn headers_are_limited_as_a_whole() {
    // Arrays that are each within the limit: 20 of 4 MiB.
    let elements = vec![0; limits::MAX_ARRAY_ELEMENTS as usize];
    let writer = (0..20).fold(GgufWriter::default(), |writer, index| {
        writer.array(&format!("a{index}"), 0, limits::MAX_ARRAY_ELEMENTS, &elements)
    });
    corrupt(&writer, &["header of more than 67108864 bytes, at most 67108864"]);
}

#[test]
fn metadata_values_are_checked() {
    let writer = GgufWriter::default;
    corrupt(&writer().value("v", 13, &[0; 8]), &["`v`", "value type 13, 0 to 12"]);
    corrupt(&writer().array("v", 13, 0, &[]), &["`v`", "array element type 13, 0 to 12"]);
    corrupt(&writer().array("v", ARRAY, 1, &[0; 12]), &["`v`", "array of arrays"]);
    corrupt(&writer().value("v", 7, &[2]), &["`v`", "bool of 2"]);
    corrupt(&writer().array("v", 7, 2, &[1, 3]), &["`v`", "bool of 3"]);
    corrupt(&writer().value("v", STRING, b"\x02\0\0\0\0\0\0\0\xc3\x28"), &["`v`", "not UTF-8"]);
    // Whole characters only together: each string must be UTF-8 by itself.
    corrupt(&writer().array("v", STRING, 2, b"\x01\0\0\0\0\0\0\0\xc3\x01\0\0\0\0\0\0\0\xa9"), &["`v`", "not UTF-8"]);
    corrupt(&writer().u32("v", 1).u32("w", 1).u32("v", 2), &["`v` occurs twice"]);
}

#[test]
fn alignment_is_checked() {
    for alignment in [0, 4, 48, 1 << 21] {
        let writer = GgufWriter::default().u32("general.alignment", alignment).f32_tensor("a", &[32]);
        corrupt(&writer, &["`general.alignment`", &format!("{alignment} found"), "8 to 1048576"]);
    }
    let writer = GgufWriter::default().string("general.alignment", "32");
    corrupt(&writer, &["`general.alignment`", "string found"]);
}

#[test]
fn tensor_entries_are_checked() {
    let tensor = |shape: &[u64], type_id| {
        GgufWriter { data: vec![0; 4096], ..GgufWriter::default() }.tensor_at("t", shape, type_id, 0)
    };
    let name = "n".repeat(limits::MAX_TENSOR_NAME_BYTES as usize + 1);
    let writer = GgufWriter::default().f32_tensor(&name, &[32]);
    corrupt(&writer, &["257 bytes of a tensor name, at most 256"]);
    corrupt(&tensor(&[1; 5], F32), &["`t`", "5 dimensions, 1 to 4"]);
    corrupt(&tensor(&[], F32), &["`t`", "0 dimensions, 1 to 4"]);
    corrupt(&tensor(&[32, 0], F32), &["`t`", "a dimension of 0, 1 to 268435456"]);
    corrupt(&tensor(&[limits::MAX_DIMENSION + 1], F32), &["`t`", "a dimension of 268435457"]);
    corrupt(&tensor(&[32, limits::MAX_DIMENSION, 2], F32), &["`t`", "536870912 rows or more, at most 268435456"]);
    corrupt(&tensor(&[48], 2), &["`t`", "rows of 48 elements, Q4_0 needs a multiple of 32"]);
    let supported = ["`t`", "Q8_K", "supported are F32, F16, BF16, Q4_0", "IQ2_XXS", "MXFP4"];
    refused(opened(tensor(&[256], 15).build()), "unsupported_model", &supported);
    refused(opened(tensor(&[256], 1000).build()), "unsupported_model", &["`t`", "type 1000"]);
}

#[test]
fn tensors_lie_in_the_file_and_apart() {
    let writer = || GgufWriter { data: vec![0; 4096], ..GgufWriter::default() };
    corrupt(&writer().tensor_at("t", &[32], F32, 8), &["`t`", "offset 8", "alignment 32"]);
    corrupt(&writer().tensor_at("t", &[1024], F32, 32), &["`t`", "4096 bytes at offset 32", "past the end"]);
    corrupt(&writer().tensor_at("t", &[32], F32, u64::MAX - 31), &["`t`", "past the end"]);
    corrupt(&writer().tensor_at("t", &[32], F32, 0).tensor_at("t", &[32], F32, 128), &["tensor `t` occurs twice"]);
    let overlap = writer().tensor_at("later", &[32], F32, 96).tensor_at("first", &[32], F32, 0);
    corrupt(&overlap, &["`first` and `later` overlap"]);
    let adjacent = writer().tensor_at("later", &[32], F32, 128).tensor_at("first", &[32], F32, 0);
    opened(adjacent.build()).unwrap();
}

#[test]
fn no_beginning_of_a_file_is_taken_for_it() {
    let writer = GgufWriter::default().u32("k", 1).strings("tokens", &["a", "bc"]).string("s", "text");
    let file = writer.f32_tensor("t", &[32]).build();
    for len in 0..file.len() {
        refused(opened(file[..len].to_vec()), "corrupt_model", &[]);
    }
    opened(file).unwrap();
}

#[test]
fn reads_that_come_short_are_errors() {
    struct Short(Vec<u8>);
    impl ByteSource for Short {
        fn num_parts(&self) -> usize {
            1
        }
        async fn part_len(&self, _: usize) -> Result<u64> {
            Ok(self.0.len() as u64)
        }
        async fn read(&self, _: usize, _: u64, len: usize) -> Result<Vec<u8>> {
            Ok(self.0[..len - 1].to_vec())
        }
    }
    let result = block_on(open(&Short(GgufWriter::default().u32("k", 1).build())));
    assert!(matches!(result, Err(Error::Network(_))));
}

#[test]
fn what_the_parser_needs_lies_in_the_file() {
    // The value's type id is cut off: nothing is left to ask for.
    let mut file = GgufWriter::default().u32("k", 1).header();
    file.truncate(file.len() - 6);
    let mut parser = Parser::new(file.len() as u64);
    assert_eq!(parser.advance().unwrap(), Progress::Need { offset: 0, len: file.len() });
    parser.feed(&file);
    assert_eq!(parser.advance().unwrap_err().code(), "corrupt_model");
    assert_eq!(U32, 4);
}
