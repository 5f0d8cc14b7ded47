//! Pagewise: a language-model engine for the web page.
//!
//! Layers, each allowed to use only those named in `docs/ARCHITECTURE.md` (a test enforces it):
//! [`gguf`] and [`quant`] read model files, [`text`] turns text into token ids and back, [`kv`] hands out cache
//! blocks, [`compute`] records and replays dispatches, [`kernels`] are the operations, [`model`] is the forward
//! pass, [`engine`] is the loop that serves requests, [`simulation`] runs it on a virtual clock. [`doctor`] compares
//! prompts and stands alone. `api` is the only module that knows JavaScript.

#[cfg(target_arch = "wasm32")]
pub mod api;
pub mod compute;
pub mod doctor;
pub mod engine;
mod error;
pub mod gguf;
pub mod kernels;
pub mod kv;
pub mod model;
pub mod quant;
pub mod simulation;
pub mod text;

pub use error::{Error, Result};
