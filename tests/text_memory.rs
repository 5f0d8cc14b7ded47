//! The largest vocabulary in use must leave a page's 100 MB of WebAssembly memory nearly untouched.
//!
//! A test program of its own: other tests would blur the measurement.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "text/support.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod support;

use pagewise::text::Tokenizer;

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

#[test]
fn a_vocabulary_of_262144_tokens_takes_few_megabytes() {
    const ALLOWED_BYTES: u64 = 16 << 20;
    let Some(metadata) = support::real_metadata(support::GEMMA3) else { return };
    let (Some(before), true) = (status("VmRSS"), std::fs::write("/proc/self/clear_refs", "5").is_ok()) else {
        println!("skipped: the memory of a process is only measured on Linux");
        return;
    };
    let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
    let ids = tokenizer.encode(&"Memory stays small, 漢字 too. ".repeat(1000), true, true).unwrap();
    let (after, peak) = (status("VmRSS").unwrap(), status("VmHWM").unwrap());
    println!("{} bytes held, {} at the peak, {} ids", after - before, peak - before, ids.len());
    assert!(peak - before < ALLOWED_BYTES, "{} bytes, {ALLOWED_BYTES} allowed", peak - before);
}
