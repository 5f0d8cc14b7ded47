//! The largest vocabulary in use must leave a page's 100 MB of WebAssembly memory nearly untouched.
//!
//! A test program of its own: other tests would blur the measurement.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "text/support.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod support;

use pagewise::text::Tokenizer;

use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

#[test]
fn a_vocabulary_of_262144_tokens_takes_few_megabytes() {
    const ALLOWED_BYTES: usize = 12 << 20;
    let Some(metadata) = support::real_metadata(support::GEMMA3) else { return };
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
    let loading = HEAP.peak_usage() - before;
    let held = HEAP.current_usage() - before;
    let text = "Memory stays small, 漢字 too. ".repeat(1000);
    HEAP.reset_peak_usage();
    let ids = tokenizer.encode(&text, true, true).unwrap();
    let encoding = HEAP.peak_usage() - before - held;
    println!("{loading} bytes to load, {held} held, {encoding} more for {} ids of {} bytes", ids.len(), text.len());
    assert!(loading < ALLOWED_BYTES, "{loading} bytes to load, {ALLOWED_BYTES} allowed");
    assert!(encoding < 100 * text.len(), "{encoding} bytes for a text of {}", text.len());
}
