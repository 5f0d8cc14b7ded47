//! The border to JavaScript: the only module that knows `wasm_bindgen`, `js_sys`, `web_sys` and `serde_wasm_bindgen`.
//!
//! It translates and does nothing else: what comes in is plain data checked by serde, what goes out is plain data or an
//! error object `{code, message}`. Everything runs in one worker. While [`WasmEngine::step`] is pending the engine is
//! borrowed, and any other call on it would throw: the worker queues what arrives meanwhile.

mod answers;
mod cache;
mod describe;
mod engine;
mod error;
mod events;
mod explain;
mod grammar;
mod loading;
mod logprobs;
mod metrics;
mod policy;
mod prompt;
mod pure;
mod request;
mod simulate;
mod source;
mod tools;
mod trace;

pub use engine::WasmEngine;
pub use error::set_panic_handler;
pub use grammar::GrammarModule;
pub use loading::{inspect, load_engine, plan};
pub use pure::{explain_miss, kv_memory};
pub use simulate::simulate_serving;
pub use source::JsByteSource;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::JsValue;

use crate::{Error, Result};

/// Plain data for JavaScript: maps become objects, `None` becomes null.
fn to_js(value: &impl Serialize) -> Result<JsValue, JsValue> {
    value.serialize(&serde_wasm_bindgen::Serializer::json_compatible()).map_err(JsValue::from)
}

/// Plain data from JavaScript; `what` names it in the error.
fn from_js<T: DeserializeOwned>(value: JsValue, what: &str) -> Result<T> {
    serde_wasm_bindgen::from_value(value).map_err(|error| Error::BadRequest(format!("{what}: {error}")))
}
