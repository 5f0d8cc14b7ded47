//! A model's bytes, read by JavaScript.

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::error::read_error;
use crate::engine::SnapshotSource;
use crate::gguf::ByteSource;
use crate::{Error, Result};

#[wasm_bindgen]
extern "C" {
    /// What the worker hands over: `ByteSource` of `js/src/wasm.ts`.
    pub type JsByteSource;

    #[wasm_bindgen(method, getter, js_name = numParts)]
    fn num_parts(this: &JsByteSource) -> u32;

    #[wasm_bindgen(method, catch, js_name = partLength)]
    fn part_length(this: &JsByteSource, part: u32) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn read(this: &JsByteSource, part: u32, offset: f64, length: u32) -> Result<Promise, JsValue>;
}

/// A [`ByteSource`] over a JavaScript object.
pub(super) struct JsSource {
    object: JsByteSource,
}

impl JsSource {
    pub(super) fn new(object: JsByteSource) -> Self {
        Self { object }
    }
}

impl ByteSource for JsSource {
    fn num_parts(&self) -> usize {
        self.object.num_parts() as usize
    }

    async fn part_len(&self, part: usize) -> Result<u64> {
        let value = settle(self.object.part_length(narrow(part)?)).await?;
        let length = value.as_f64().filter(|length| (0.0..=MAX_SAFE_INTEGER).contains(length) && length.fract() == 0.0);
        let length = length.ok_or_else(|| Error::Network(format!("part {part} has no length")))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: a safe integer")]
        Ok(length as u64)
    }

    async fn read(&self, part: usize, offset: u64, len: usize) -> Result<Vec<u8>> {
        let value = settle(self.object.read(narrow(part)?, number(offset), narrow(len)?)).await?;
        let bytes = value.dyn_into::<Uint8Array>();
        let bytes = bytes.map_err(|_| Error::Network(format!("part {part} was not read as bytes")))?.to_vec();
        if bytes.len() != len {
            let got = bytes.len();
            return Err(Error::Network(format!("part {part}: {len} bytes asked at {offset}, {got} received")));
        }
        Ok(bytes)
    }
}

/// A [`SnapshotSource`] over the only part of such an object.
pub(super) struct JsSnapshot {
    source: JsSource,
    len: u64,
}

impl JsSnapshot {
    pub(super) async fn open(object: JsByteSource) -> Result<Self> {
        let source = JsSource::new(object);
        let len = source.part_len(0).await?;
        Ok(Self { source, len })
    }
}

impl SnapshotSource for JsSnapshot {
    fn len(&self) -> u64 {
        self.len
    }

    async fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.source.read(0, offset, len).await
    }
}

/// The largest integer up to which a JavaScript number is exact.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

async fn settle(promise: Result<Promise, JsValue>) -> Result<JsValue> {
    let promise = promise.map_err(|error| read_error(&error))?;
    JsFuture::from(promise).await.map_err(|error| read_error(&error))
}

fn narrow(value: usize) -> Result<u32> {
    u32::try_from(value).map_err(|_| Error::BadRequest(format!("{value} is over {}", u32::MAX)))
}

/// Sizes and offsets of files are far below 2^53, up to which this is exact.
#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 bytes")]
pub(super) fn number(value: u64) -> f64 {
    value as f64
}
