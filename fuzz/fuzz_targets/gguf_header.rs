//! Any bytes as the header of a GGUF file, which is as long as they are or claims to be longer.
#![no_main]
#![allow(dead_code, reason = "the parser needs only a part of these modules")]

// The sources themselves instead of the library: it would bring the whole GPU layer into an instrumented build.
#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/gguf/mod.rs"]
mod gguf;
#[path = "../../src/quant/mod.rs"]
mod quant;
pub use error::{Error, Result};

use gguf::{Parser, Progress};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, file)) = data.split_first() else { return };
    // The low bits say how much longer the file claims to be, the high ones how much of each read arrives.
    let claimed = [0, 4096, 1 << 40, u64::MAX][usize::from(choice & 3)];
    let file_size = (file.len() as u64).saturating_add(claimed);
    let piece = if choice < 128 { usize::MAX } else { 1 + usize::from(choice >> 2) };
    let mut parser = Parser::new(file_size);
    let mut fed = 0_u64;
    loop {
        match parser.advance() {
            Err(_) => return,
            Ok(Progress::Need { offset, len }) => {
                assert!(len > 0 && offset + len as u64 <= file_size, "{len} bytes at {offset} of {file_size}");
                if fed > 1 << 20 {
                    return;
                }
                let start = usize::try_from(offset).unwrap().min(file.len());
                let mut bytes = file[start..].iter().copied().take(len.min(piece)).collect::<Vec<u8>>();
                if bytes.is_empty() {
                    // Past the bytes we have: zeros, as from a file with a hole.
                    bytes = vec![0; len];
                }
                fed += bytes.len() as u64;
                parser.feed(&bytes);
            }
            Ok(Progress::Done(header)) => {
                for tensor in &header.tensors {
                    assert!(tensor.offset.checked_add(tensor.size_bytes).is_some_and(|end| end <= file_size));
                    assert_eq!(tensor.row_elements() % tensor.format.block_elements(), 0);
                }
                return;
            }
        }
    }
});
