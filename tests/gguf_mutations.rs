//! Right headers with a few bytes changed: no panic, and memory in proportion to what was fed.
//!
//! The only test of its binary, because it measures the memory of the whole process.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

#[path = "common/gguf_writer.rs"]
mod gguf_writer;

use gguf_writer::GgufWriter;
use pagewise::gguf::{Header, Parser, Progress};
use peak_alloc::PeakAlloc;
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn valid() -> Vec<u8> {
    let tokens: Vec<String> = (0..50).map(|index| format!("t{index}")).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    GgufWriter { alignment: 64, ..GgufWriter::default() }
        .string("general.architecture", "llama")
        .u32("general.alignment", 64)
        .value("flag", 7, &[1])
        .strings("tokenizer.ggml.tokens", &tokens)
        .array("scores", 6, 4, &[0; 16])
        .array("wide", 12, 4, &[0; 32])
        .f32_tensor("token_embd.weight", &[64, 2])
        .tensor("blk.0.attn_q.weight", &[256], 12, &[0; 144])
        .build()
}

/// Parses as if the file were `file_size` long, zeros after its end, up to a megabyte of them.
fn parse(file: &[u8], file_size: u64) -> (pagewise::Result<Header>, usize) {
    let mut parser = Parser::new(file_size);
    let mut fed = 0;
    loop {
        match parser.advance() {
            Err(error) => return (Err(error), fed),
            Ok(Progress::Done(header)) => return (Ok(header), fed),
            Ok(Progress::Need { offset, len }) => {
                assert!(len > 0 && offset + len as u64 <= file_size, "{len} bytes at {offset} of {file_size}");
                if fed > 1 << 20 {
                    return (Err(pagewise::Error::Cancelled), fed);
                }
                let start = (offset as usize).min(file.len());
                let mut bytes = file[start..(start + len).min(file.len())].to_vec();
                bytes.resize(len, 0);
                parser.feed(&bytes);
                fed += len;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_headers_neither_panic_nor_take_memory(
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            any::<u8>(),
            prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff]),
        ]), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        claimed in prop_oneof![Just(0_u64), 0..10_000_u64, Just(1 << 40), Just(u64::MAX)],
    ) {
        let mut file = valid();
        let untouched = changes.is_empty() && cut.is_none();
        for (index, byte) in changes {
            let index = index.index(file.len());
            file[index] = byte;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        let file_size = (file.len() as u64).saturating_add(claimed);
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let (result, fed) = parse(&file, file_size);
        let peak = ALLOCATOR.peak_usage().saturating_sub(before);
        prop_assert!(peak < 16 * fed + (64 << 10), "{peak} bytes of memory for {fed} bytes of header");
        match result {
            Ok(header) => for tensor in header.tensors {
                prop_assert!(tensor.offset.checked_add(tensor.size_bytes).is_some_and(|end| end <= file_size));
                prop_assert!(tensor.num_rows() > 0 && tensor.row_elements() > 0);
            },
            Err(error) => prop_assert!(!untouched, "{error}"),
        }
    }
}
