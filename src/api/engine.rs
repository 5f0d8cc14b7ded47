//! The engine, as a JavaScript class.

use std::collections::BTreeMap;
use std::rc::Rc;

use js_sys::{Float32Array, Function, Uint8Array};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use super::answers::Answer;
use super::cache::{PageBlock, PageCache, PageCacheEvent, PagePrefix, PageRestored, PageStats};
use super::describe::Info;
use super::grammar::{GrammarModule, JsCompiler};
use super::metrics::PageMetrics;
use super::prompt::{Memory, Renderer};
use super::request::{Beginning, PageRequest};
use super::source::{JsByteSource, JsSnapshot};
use super::tools::ToolAnswer;
use super::trace::{PageAnswer, PageStep};
use super::{from_js, to_js};
use crate::Error;
use crate::compute::Gpu;
use crate::engine::{Engine, Evaluation, RequestId, evaluate, prometheus};
use crate::kv::BlockView;
use crate::model::{Forward, GpuModel};
use crate::text::{CallLog, ChatTemplate, PromptLog, Tokenizer, ToolFormat, Transcripts, call_ids_key};

#[wasm_bindgen]
extern "C" {
    /// Milliseconds on the worker's clock.
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    pub(super) fn now_ms() -> f64;
}

/// A loaded model that serves requests. While [`WasmEngine::step`] is pending, no other method may be called.
#[wasm_bindgen]
pub struct WasmEngine {
    pub(super) engine: Engine<GpuModel>,
    gpu: Gpu,
    pub(super) tokenizer: Rc<Tokenizer>,
    pub(super) template: Option<ChatTemplate>,
    info: Info,
    /// Bytes of a block of each layer group.
    block_bytes: Vec<u64>,
    /// Ids of earlier conversations.
    pub(super) transcripts: Transcripts,
    /// Answers with calls, as the model wrote them.
    pub(super) calls: CallLog,
    /// How the model writes calls, if that was said at load.
    tool_format: Option<ToolFormat>,
    /// Prompts that went through the prefix cache.
    pub(super) log: PromptLog,
    /// The requests that the engine has: one for each choice of the page's.
    pub(super) answers: BTreeMap<RequestId, Answer>,
    /// Steps that were traced and not fetched yet.
    steps: Vec<PageStep>,
}

impl WasmEngine {
    pub(super) fn new(
        engine: Engine<GpuModel>,
        gpu: Gpu,
        tokenizer: Rc<Tokenizer>,
        template: Option<ChatTemplate>,
        info: Info,
        block_bytes: Vec<u64>,
        tool_format: Option<ToolFormat>,
    ) -> Self {
        let transcripts = Transcripts::new(tokenizer.clone());
        let (calls, log) = (CallLog::default(), PromptLog::default());
        let (answers, steps) = (BTreeMap::new(), Vec::new());
        Self {
            engine,
            gpu,
            tokenizer,
            template,
            info,
            block_bytes,
            transcripts,
            calls,
            tool_format,
            log,
            answers,
            steps,
        }
    }

    /// How conversations become texts.
    pub(super) fn renderer(&self) -> Renderer<'_> {
        Renderer::new(self.template.as_ref(), self.tool_format, &self.calls)
    }

    /// Keeps what was traced, while those it is about are in the books.
    fn keep_trace(&mut self) {
        let answer_of = |request| Some(self.answers.get(&request)?.page);
        let steps = self.engine.take_trace().into_iter().map(|step| PageStep::new(step, answer_of));
        self.steps.extend(steps);
    }

    /// The ids that a prompt which begins with `prefix` begins with.
    fn prefix_ids(&mut self, prefix: JsValue) -> crate::Result<Vec<u32>> {
        let beginning: Beginning = from_js(prefix, "prefix")?;
        let renderer = Renderer::new(self.template.as_ref(), self.tool_format, &self.calls);
        beginning.encode(&mut Memory::Used(&mut self.transcripts), renderer)
    }
}

#[wasm_bindgen]
impl WasmEngine {
    /// What was loaded.
    pub fn info(&self) -> Result<JsValue, JsValue> {
        to_js(&self.info)
    }

    /// The choice of kernels, if it was measured by this load, and the key to remember it under.
    #[wasm_bindgen(js_name = measuredTuning)]
    pub fn measured_tuning(&self) -> Result<JsValue, JsValue> {
        to_js(&self.info.measured)
    }

    /// Gives it what compiles constraints, before the first request that has one.
    #[wasm_bindgen(js_name = useGrammars)]
    pub fn use_grammars(&mut self, module: GrammarModule) -> Result<(), JsValue> {
        self.engine.set_grammar_compiler(Box::new(JsCompiler::new(module, &self.tokenizer)?));
        Ok(())
    }

    /// Queues a request, with all its choices, under the page's id; returns the number of tokens of its prompt.
    pub fn submit(&mut self, id: u32, request: JsValue, arrived_ms: f64) -> Result<u32, JsValue> {
        let request: PageRequest = from_js(request, "request")?;
        let num_choices = request.num_choices;
        let renderer = Renderer::new(self.template.as_ref(), self.tool_format, &self.calls);
        let mut memory = Memory::Used(&mut self.transcripts);
        let (request, prompt, reading) = request.into_request(&mut memory, renderer, &self.tokenizer)?;
        let seed = request.sampling.seed.unwrap_or_default();
        let prompt = Rc::new(prompt);
        let salt = request.cache.enabled.then(|| request.cache.salt.clone());
        let num_prompt = u32::try_from(prompt.ids.len()).unwrap_or(u32::MAX);
        for (choice, request) in self.engine.submit_choices(request, num_choices, arrived_ms)?.into_iter().enumerate() {
            let page = PageAnswer { request: id, choice };
            let (prompt, salt) = (Rc::clone(&prompt), salt.clone());
            let key = call_ids_key(seed, &prompt.ids, choice);
            let tools = reading.clone().map(|reading| ToolAnswer::new(reading, key));
            self.answers.insert(request, Answer { page, prompt, salt, ids: Vec::new(), text: String::new(), tools });
        }
        Ok(num_prompt)
    }

    /// Ends a request; no event of it follows. Unknown ids are ignored: the answer may have ended already.
    pub fn cancel(&mut self, id: u32) {
        self.end_all(id);
    }

    /// Whether a step would do anything.
    #[wasm_bindgen(js_name = hasWork)]
    pub fn has_work(&self) -> bool {
        self.engine.has_work()
    }

    /// Runs one step and returns its events.
    pub async fn step(&mut self) -> Result<JsValue, JsValue> {
        let events = self.engine.step(now_ms).await;
        self.keep_trace();
        let events: Vec<_> = events.into_iter().flat_map(|event| self.page_events(event)).collect();
        to_js(&events)
    }

    /// How it is doing.
    pub fn metrics(&self) -> Result<JsValue, JsValue> {
        to_js(&PageMetrics::from(self.engine.metrics()))
    }

    /// The same in Prometheus' text format; the name labels every sample.
    #[wasm_bindgen(js_name = metricsText)]
    pub fn metrics_text(&self, model_name: &str) -> String {
        prometheus(&self.engine.metrics(), model_name)
    }

    /// Sets the milliseconds that a submission to the GPU should take; undefined: no limit.
    #[wasm_bindgen(js_name = setStepTarget)]
    pub fn set_step_target(&mut self, ms: Option<f64>) {
        self.engine.set_step_target(ms);
    }

    /// Has steps traced from now on, or no longer.
    #[wasm_bindgen(js_name = setTracing)]
    pub fn set_tracing(&mut self, is_on: bool) {
        self.engine.set_tracing(is_on);
        self.steps.clear();
    }

    /// The steps that were traced since the last call.
    #[wasm_bindgen(js_name = takeTrace)]
    pub fn take_trace(&mut self) -> Result<JsValue, JsValue> {
        to_js(&std::mem::take(&mut self.steps))
    }

    /// Text to ids.
    pub fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<u32>, JsValue> {
        Ok(self.tokenizer.encode(text, add_special, parse_special)?)
    }

    /// Ids to text.
    pub fn detokenize(&self, ids: &[u32], skip_special: bool) -> String {
        self.tokenizer.decode(ids, skip_special)
    }

    /// Counters of the prefix cache.
    #[wasm_bindgen(js_name = cacheStats)]
    pub fn cache_stats(&self) -> Result<JsValue, JsValue> {
        to_js(&PageStats::new(self.engine.cache_stats(), self.engine.cache_groups()))
    }

    /// Every block of the KV cache.
    #[wasm_bindgen(js_name = cacheBlocks)]
    pub fn cache_blocks(&self) -> Result<JsValue, JsValue> {
        let now_ms = whole_ms(now_ms());
        let mut holders: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (request, group, block) in self.engine.cache_holders() {
            holders.entry((group, block)).or_default().extend(self.answers.get(&request).map(|answer| answer.page));
        }
        let page = |view: BlockView| {
            PageBlock::new(view, holders.remove(&(view.group, view.block)).unwrap_or_default(), now_ms)
        };
        to_js(&self.engine.cache_blocks().into_iter().map(page).collect::<Vec<_>>())
    }

    /// The prefixes that the cache has.
    #[wasm_bindgen(js_name = cachePrefixes)]
    pub fn cache_prefixes(&self) -> Result<JsValue, JsValue> {
        let now_ms = whole_ms(now_ms());
        let page = |prefix| PagePrefix::new(prefix, now_ms, &self.block_bytes);
        to_js(&self.engine.cache_prefixes().into_iter().map(page).collect::<Vec<_>>())
    }

    /// Pins a prefix; returns its tokens that the cache has.
    #[wasm_bindgen(js_name = cachePin)]
    pub fn cache_pin(&mut self, salt: &str, prefix: JsValue) -> Result<usize, JsValue> {
        let ids = self.prefix_ids(prefix)?;
        Ok(self.engine.cache_pin(salt, &ids))
    }

    /// Unpins a prefix; returns the tokens that are not pinned any more.
    #[wasm_bindgen(js_name = cacheUnpin)]
    pub fn cache_unpin(&mut self, salt: &str, prefix: JsValue) -> Result<usize, JsValue> {
        let ids = self.prefix_ids(prefix)?;
        Ok(self.engine.cache_unpin(salt, &ids))
    }

    /// Drops what begins with a prefix and is not in use; returns the number of blocks.
    #[wasm_bindgen(js_name = cacheEvict)]
    pub fn cache_evict(&mut self, salt: &str, prefix: JsValue) -> Result<usize, JsValue> {
        let ids = self.prefix_ids(prefix)?;
        Ok(self.engine.cache_evict(salt, &ids))
    }

    /// Hands what the cache has of a prefix to `sink(bytes)`, piece by piece; returns the number of tokens.
    #[wasm_bindgen(js_name = cacheSave)]
    pub async fn cache_save(&mut self, salt: String, prefix: JsValue, sink: Function) -> Result<usize, JsValue> {
        let ids = self.prefix_ids(prefix)?;
        let sink = |bytes: Vec<u8>| {
            let called = sink.call1(&JsValue::NULL, &Uint8Array::from(bytes.as_slice()));
            called.map(drop).map_err(|_| Error::Network("the saved prefix could not be kept".into()))
        };
        Ok(self.engine.cache_save(&salt, &ids, now_ms(), sink).await?.num_tokens)
    }

    /// Brings back what `cacheSave` wrote.
    #[wasm_bindgen(js_name = cacheRestore)]
    pub async fn cache_restore(&mut self, source: JsByteSource, options: JsValue) -> Result<JsValue, JsValue> {
        let options = from_js::<PageCache>(options, "options")?.without_breakpoints();
        let source = JsSnapshot::open(source).await?;
        let restored = self.engine.cache_restore(&source, &options, now_ms()).await?;
        // A conversation that goes on is encoded as it was: the ids of its answers are not those of their text.
        self.transcripts.remember("", &[], &restored.ids);
        to_js(&PageRestored::from(&restored))
    }

    /// What the cache would do for a request now, and why; nothing changes.
    #[wasm_bindgen(js_name = cacheExplain)]
    pub fn cache_explain(&self, request: JsValue) -> Result<JsValue, JsValue> {
        let request: PageRequest = from_js(request, "request")?;
        let mut memory = Memory::Seen(&self.transcripts);
        let (request, prompt, _) = request.into_request(&mut memory, self.renderer(), &self.tokenizer)?;
        let report = self.engine.cache_explain(&request, now_ms())?;
        to_js(&self.explanation(&request.cache.salt, &prompt, report)?)
    }

    /// Drops everything that is not in use, and what is kept of conversations; returns the number of blocks.
    #[wasm_bindgen(js_name = cacheClear)]
    pub fn cache_clear(&mut self) -> usize {
        self.transcripts.clear();
        self.calls.clear();
        self.log.clear();
        self.engine.cache_clear()
    }

    /// What happened in the prefix cache since the last call.
    #[wasm_bindgen(js_name = cacheEvents)]
    pub fn cache_events(&mut self) -> Result<JsValue, JsValue> {
        to_js(&self.engine.cache_events().into_iter().map(PageCacheEvent::from).collect::<Vec<_>>())
    }

    /// The model's scores for the token after each of `positions` (ascending) in `ids`: one array of the vocabulary's
    /// length each.
    pub async fn logits(&mut self, ids: Vec<u32>, positions: Vec<u32>) -> Result<Vec<Float32Array>, JsValue> {
        let positions = positions.into_iter().map(|position| position as usize).collect();
        let model = self.engine.forward_alone().await?;
        let chunk = model.limits().max_tokens;
        let mut rows = evaluate(model, &[Evaluation { ids, positions }], chunk).await?;
        let rows = rows.pop().unwrap_or_default();
        Ok(rows.iter().map(|row| Float32Array::from(row.as_slice())).collect())
    }

    /// Messages, and tools where there are any, to the text of a prompt.
    #[wasm_bindgen(js_name = applyTemplate)]
    pub fn apply_template(
        &self,
        messages: JsValue,
        tools: JsValue,
        add_generation_prompt: bool,
    ) -> Result<String, JsValue> {
        let messages = from_js(messages, "messages")?;
        let tools: Option<Value> = from_js(tools, "tools")?;
        Ok(self.renderer().with_tools(tools.as_ref()).render(&messages, add_generation_prompt)?)
    }
}

/// A time as the cache counts: whole milliseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float beyond the range saturates")]
fn whole_ms(ms: f64) -> u64 {
    ms as u64
}

impl Drop for WasmEngine {
    /// Frees the GPU memory at once, not when the worker's garbage is collected.
    fn drop(&mut self) {
        self.gpu.destroy();
    }
}
