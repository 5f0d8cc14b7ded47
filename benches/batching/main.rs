//! What batching is worth: none, static, continuous, and continuous with chunked prefill, on the same workloads.
//!
//! `cargo bench --bench batching [-- simulated | live]` prints Markdown. Simulated: the real engine on a virtual clock, on
//! a cost model of a server's GPU, 1,000 requests and 256 slots. Live: the tiny model that is committed, and SmolLM2
//! (`npm run fetch-models`), on the first adapter there is. It fails if an answer is not complete, or if a live greedy answer
//! depends on the mode; never because of a time.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a benchmark")]

mod live;
mod simulated;
mod table;

use pagewise::engine::{Batching, EngineOptions};

/// A way to batch.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    pub(crate) name: &'static str,
    pub(crate) batching: Batching,
    pub(crate) chunked_prefill: bool,
}

pub(crate) const MODES: [Mode; 4] = [
    Mode { name: "none", batching: Batching::None, chunked_prefill: true },
    Mode { name: "static", batching: Batching::Static, chunked_prefill: true },
    Mode { name: "continuous", batching: Batching::Continuous, chunked_prefill: false },
    Mode { name: "continuous, chunked", batching: Batching::Continuous, chunked_prefill: true },
];

impl Mode {
    pub(crate) fn options(self) -> EngineOptions {
        EngineOptions {
            batching: self.batching,
            chunked_prefill: self.chunked_prefill,
            max_waiting: usize::MAX,
            ..EngineOptions::default()
        }
    }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let is_wanted = |part: &str| wanted.as_deref().is_none_or(|wanted| wanted == part);
    if is_wanted("simulated") {
        simulated::print();
    }
    if is_wanted("live") {
        live::print();
    }
}
