//! The largest vocabularies in use must leave a page's 100 MB of WebAssembly memory nearly untouched.
//!
//! A test program of its own: other tests would blur the measurement.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "text/support.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod support;

use pagewise::gguf::Metadata;
use pagewise::text::Tokenizer;
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Loads a vocabulary and encodes a text within these many bytes of heap.
fn check(name: &str, metadata: &Metadata, allowed_bytes: usize) {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let tokenizer = Tokenizer::from_metadata(metadata).unwrap();
    let loading = HEAP.peak_usage() - before;
    let held = HEAP.current_usage() - before;
    let text = "Memory stays small, 漢字 too. ".repeat(1000);
    HEAP.reset_peak_usage();
    let ids = tokenizer.encode(&text, true, true).unwrap();
    let encoding = HEAP.peak_usage() - before - held;
    println!("{name}: {loading} bytes to load, {held} held, {encoding} more for {} bytes of text", text.len());
    assert!(ids.len() > 1000);
    assert!(loading < allowed_bytes, "{name}: {loading} bytes to load, {allowed_bytes} allowed");
    assert!(encoding < 400 * text.len(), "{name}: {encoding} bytes for a text of {}", text.len());
}

/// As many tokens and merges as Llama 3 has: all texts of up to three of 50 characters, and all ways to merge them.
fn as_large_as_llama3() -> Metadata {
    let letters: Vec<String> = ('A'..='z').take(50).map(String::from).collect();
    let pairs: Vec<String> = letters.iter().flat_map(|a| letters.iter().map(move |b| format!("{a}{b}"))).collect();
    let triples = pairs.iter().flat_map(|ab| letters.iter().map(move |c| format!("{ab}{c}")));
    let triples: Vec<String> = triples.collect();
    let splits =
        |text: &String| (1..text.len()).map(|at| format!("{} {}", &text[..at], &text[at..])).collect::<Vec<_>>();
    let merges: Vec<String> = pairs.iter().chain(&triples).flat_map(splits).collect();
    assert_eq!((merges.len(), triples.len()), (252_500, 125_000));
    let bytes = (0..=255_u8).map(|byte| support::byte_char(byte).to_string());
    let bytes = bytes.filter(|byte| !letters.contains(byte)).collect::<Vec<_>>();
    let tokens = bytes.iter().chain(&letters).chain(&pairs).chain(&triples);
    let base = support::byte_level("dbrx", &[], &[]).without("token_type");
    base.set("tokens", support::strings(tokens)).set("merges", support::strings(merges)).metadata()
}

#[test]
fn large_vocabularies_take_few_megabytes() {
    check("as large as Llama 3", &as_large_as_llama3(), 64 << 20);
    for (model, allowed_bytes) in [(support::GEMMA3, 12 << 20), (support::SMOLLM2, 20 << 20)] {
        let Some(metadata) = support::real_metadata(model) else { return };
        check(model, &metadata, allowed_bytes);
    }
}
