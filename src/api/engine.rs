//! The engine, as a JavaScript class.

use std::collections::BTreeMap;
use std::rc::Rc;

use js_sys::Float32Array;
use wasm_bindgen::prelude::*;

use super::describe::Info;
use super::events::PageEvent;
use super::metrics::PageMetrics;
use super::request::{PageRequest, render};
use super::{from_js, to_js};
use crate::Error;
use crate::compute::Gpu;
use crate::engine::{Engine, Evaluation, Event, RequestId, evaluate};
use crate::model::{Forward, GpuModel};
use crate::text::{ChatTemplate, Tokenizer};

#[wasm_bindgen]
extern "C" {
    /// Milliseconds on the worker's clock.
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn now_ms() -> f64;
}

/// A loaded model that serves requests. While [`WasmEngine::step`] is pending, no other method may be called.
#[wasm_bindgen]
pub struct WasmEngine {
    engine: Engine<GpuModel>,
    gpu: Gpu,
    tokenizer: Rc<Tokenizer>,
    template: Option<ChatTemplate>,
    info: Info,
    /// The page's ids of the requests that the engine has.
    ids: BTreeMap<RequestId, u32>,
}

impl WasmEngine {
    pub(super) fn new(
        engine: Engine<GpuModel>,
        gpu: Gpu,
        tokenizer: Rc<Tokenizer>,
        template: Option<ChatTemplate>,
        info: Info,
    ) -> Self {
        Self { engine, gpu, tokenizer, template, info, ids: BTreeMap::new() }
    }

    fn page_event(&mut self, event: Event) -> Option<PageEvent> {
        match event {
            Event::Text { text, .. } if text.is_empty() => None,
            Event::Text { request, text, .. } => {
                self.ids.get(&request).map(|&request| PageEvent::Text { request, text })
            }
            Event::Finished { request, reason, usage, timings } => {
                let request = self.ids.remove(&request)?;
                Some(PageEvent::Finished { request, reason, usage, timings })
            }
            Event::Failed { request, error } => {
                let request = self.ids.remove(&request)?;
                Some(PageEvent::Failed { request, error: error.into() })
            }
        }
    }
}

#[wasm_bindgen]
impl WasmEngine {
    /// What was loaded.
    pub fn info(&self) -> Result<JsValue, JsValue> {
        to_js(&self.info)
    }

    /// Queues a request under the page's id; returns the number of tokens of its prompt.
    pub fn submit(&mut self, id: u32, request: JsValue, arrived_ms: f64) -> Result<u32, JsValue> {
        let request: PageRequest = from_js(request, "request")?;
        let request = request.into_request(&self.tokenizer, self.template.as_ref())?;
        let num_prompt = u32::try_from(request.prompt.len()).unwrap_or(u32::MAX);
        let request = self.engine.submit(request, arrived_ms)?;
        self.ids.insert(request, id);
        Ok(num_prompt)
    }

    /// Ends a request; no event of it follows. Unknown ids are ignored: the answer may have ended already.
    pub fn cancel(&mut self, id: u32) {
        let found = self.ids.iter().find(|&(_, &page)| page == id).map(|(&request, _)| request);
        if let Some(request) = found {
            self.ids.remove(&request);
            self.engine.cancel(request);
        }
    }

    /// Whether a step would do anything.
    #[wasm_bindgen(js_name = hasWork)]
    pub fn has_work(&self) -> bool {
        self.engine.has_work()
    }

    /// Runs one step and returns its events.
    pub async fn step(&mut self) -> Result<JsValue, JsValue> {
        let events = self.engine.step(now_ms).await;
        let events: Vec<_> = events.into_iter().filter_map(|event| self.page_event(event)).collect();
        to_js(&events)
    }

    /// How it is doing.
    pub fn metrics(&self) -> Result<JsValue, JsValue> {
        to_js(&PageMetrics::from(self.engine.metrics()))
    }

    /// Text to ids.
    pub fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<u32>, JsValue> {
        Ok(self.tokenizer.encode(text, add_special, parse_special)?)
    }

    /// Ids to text.
    pub fn detokenize(&self, ids: &[u32], skip_special: bool) -> String {
        self.tokenizer.decode(ids, skip_special)
    }

    /// The model's scores for the token after each of `positions` (ascending) in `ids`: one array of the vocabulary's
    /// length each.
    pub async fn logits(&mut self, ids: Vec<u32>, positions: Vec<u32>) -> Result<Vec<Float32Array>, JsValue> {
        if self.engine.has_work() {
            return Err(Error::BadRequest("logits can be asked for while nothing is being generated".into()).into());
        }
        let positions = positions.into_iter().map(|position| position as usize).collect();
        let model = self.engine.forward_mut();
        let chunk = model.limits().max_tokens;
        let mut rows = evaluate(model, &[Evaluation { ids, positions }], chunk).await?;
        let rows = rows.pop().unwrap_or_default();
        Ok(rows.iter().map(|row| Float32Array::from(row.as_slice())).collect())
    }

    /// Messages to the text of a prompt.
    #[wasm_bindgen(js_name = applyTemplate)]
    pub fn apply_template(&self, messages: JsValue, add_generation_prompt: bool) -> Result<String, JsValue> {
        let messages = from_js(messages, "messages")?;
        Ok(render(self.template.as_ref(), &messages, add_generation_prompt)?)
    }
}

impl Drop for WasmEngine {
    /// Frees the GPU memory at once, not when the worker's garbage is collected.
    fn drop(&mut self) {
        self.gpu.destroy();
    }
}
