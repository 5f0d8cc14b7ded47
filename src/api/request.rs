//! Requests, as the page's checked data.

use serde::Deserialize;
use serde_json::Value;

use super::cache::PageCache;
use super::prompt::{Memory, Renderer};
use super::tools::{PageTools, ToolReading};
use crate::engine::{CacheOptions, Request, SamplingParams, Timeouts};
use crate::text::{Constraint, Prompt, Tokenizer};
use crate::{Error, Result};

/// `EngineRequest` of `js/src/protocol.ts`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PageRequest {
    input: Input,
    /// Answers to be generated.
    pub(super) num_choices: usize,
    priority: i32,
    deadline_ms: Option<f64>,
    queue_timeout_ms: Option<f64>,
    total_timeout_ms: Option<f64>,
    reports_progress: bool,
    max_tokens: Option<usize>,
    sampling: PageSampling,
    stop: Vec<String>,
    stop_token_ids: Vec<u32>,
    logit_bias: Vec<(u32, f32)>,
    allowed_token_ids: Option<Vec<u32>>,
    constraint: Option<Constraint>,
    cache: Option<PageCache>,
    tools: Option<PageTools>,
    logprobs: Option<usize>,
    /// Answer with the prompt's embedding.
    #[serde(default)]
    embeds: bool,
    /// Compute the prompt, without the opening of an answer, and answer nothing.
    #[serde(default)]
    prefill_only: bool,
}

/// What is to be continued or answered.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Input {
    Messages(Value),
    Text(String),
    Ids(Vec<u32>),
}

/// `EnginePrefix` of `js/src/protocol.ts`: messages, with what they may call, or ids.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Beginning {
    messages: Option<Value>,
    /// In OpenAI's shape.
    tools: Option<Value>,
    ids: Option<Vec<u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PageSampling {
    temperature: f32,
    top_k: u32,
    top_p: f32,
    min_p: f32,
    repetition_penalty: f32,
    frequency_penalty: f32,
    presence_penalty: f32,
    seed: i64,
}

impl PageRequest {
    /// Renders and tokenises; returns the prompt as it was asked too, and what its answers are read with if they may have
    /// calls.
    pub(super) fn into_request(
        self,
        memory: &mut Memory<'_>,
        renderer: Renderer<'_>,
        tokenizer: &Tokenizer,
    ) -> Result<(Request, Prompt, Option<ToolReading>)> {
        let tools = self.tools.as_ref().map(|tools| &tools.list);
        let renderer = renderer.with_tools(tools);
        let mut prompt = match &self.input {
            // What is embedded is somebody's text, whatever it looks like.
            Input::Text(text) if self.embeds => {
                Prompt { ids: tokenizer.encode(text, true, false)?, text: Some(text.clone()), ..Prompt::default() }
            }
            input => input.encode(memory, renderer, !self.prefill_only)?,
        };
        prompt.tools = tools.cloned();
        let cache = match self.cache {
            Some(cache) => cache.into_options(&self.input, &prompt.ids, memory, renderer)?,
            None => CacheOptions::default(),
        };
        let page = self.sampling;
        let mut request = Request {
            prompt: prompt.ids.clone(),
            max_tokens: self.max_tokens,
            sampling: SamplingParams {
                temperature: page.temperature,
                top_k: page.top_k,
                top_p: page.top_p,
                min_p: page.min_p,
                repetition_penalty: page.repetition_penalty,
                frequency_penalty: page.frequency_penalty,
                presence_penalty: page.presence_penalty,
                seed: Some(page.seed.cast_unsigned()),
            },
            logit_bias: self.logit_bias,
            allowed_token_ids: self.allowed_token_ids,
            constraint: self.constraint,
            stop: self.stop,
            stop_token_ids: self.stop_token_ids,
            prefill_only: self.prefill_only,
            logprobs: self.logprobs,
            embeds: self.embeds,
            cache,
            priority: self.priority,
            timeouts: Timeouts {
                deadline_ms: self.deadline_ms,
                total_ms: self.total_timeout_ms,
                queue_ms: self.queue_timeout_ms,
            },
            reports_progress: self.reports_progress,
            ..Request::default()
        };
        let reading = match &self.tools {
            // Nothing is drawn that could be a call.
            Some(_) if self.prefill_only => None,
            Some(tools) => Some(tools.apply(renderer.format()?, tokenizer, &mut request)?),
            None => None,
        };
        Ok((request, prompt, reading))
    }
}

impl Beginning {
    /// The ids that a prompt which begins so begins with.
    pub(super) fn encode(self, memory: &mut Memory<'_>, renderer: Renderer<'_>) -> Result<Vec<u32>> {
        let input = match (self.messages, self.ids) {
            (Some(messages), None) => Input::Messages(messages),
            (None, Some(ids)) => Input::Ids(ids),
            _ => return Err(Error::BadRequest("prefix: either messages or ids are needed".into())),
        };
        Ok(input.encode(memory, renderer.with_tools(self.tools.as_ref()), false)?.ids)
    }
}

impl Input {
    /// Renders and tokenises.
    pub(super) fn encode(
        &self,
        memory: &mut Memory<'_>,
        renderer: Renderer<'_>,
        add_generation_prompt: bool,
    ) -> Result<Prompt> {
        let (messages, text) = match self {
            Self::Messages(messages) => {
                (Some(messages), renderer.render_best(messages, add_generation_prompt, memory)?)
            }
            Self::Text(text) => (None, text.clone()),
            Self::Ids(ids) => return Ok(Prompt { ids: ids.clone(), ..Prompt::default() }),
        };
        let ids = memory.encode(&text)?;
        Ok(Prompt { messages: messages.cloned(), add_generation_prompt, text: Some(text), ids, tools: None })
    }
}
