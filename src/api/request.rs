//! Requests, as the page's checked data.

use serde::Deserialize;

use super::cache::PageCache;
use crate::engine::{CacheOptions, Request, SamplingParams, Timeouts};
use crate::text::{ChatTemplate, Constraint, Prompt, RenderOptions};
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
    /// Compute the prompt, without the opening of an answer, and answer nothing.
    #[serde(default)]
    prefill_only: bool,
}

/// How a prompt's text becomes ids: what was generated before keeps its own.
pub(super) type Encode<'a> = dyn FnMut(&str) -> Result<Vec<u32>> + 'a;

/// What is to be continued or answered.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Input {
    Messages(serde_json::Value),
    Text(String),
    Ids(Vec<u32>),
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
    /// Renders and tokenises; returns the prompt as it was asked too.
    pub(super) fn into_request(
        self,
        encode: &mut Encode,
        template: Option<&ChatTemplate>,
    ) -> Result<(Request, Prompt)> {
        let prompt = self.input.encode(encode, template, !self.prefill_only)?;
        let cache = match self.cache {
            Some(cache) => cache.into_options(&self.input, &prompt.ids, encode, template)?,
            None => CacheOptions::default(),
        };
        let page = self.sampling;
        let request = Request {
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
        Ok((request, prompt))
    }
}

impl Input {
    /// Renders and tokenises.
    pub(super) fn encode(
        &self,
        encode: &mut Encode,
        template: Option<&ChatTemplate>,
        add_generation_prompt: bool,
    ) -> Result<Prompt> {
        let (messages, text) = match self {
            Self::Messages(messages) => (Some(messages), render(template, messages, add_generation_prompt)?),
            Self::Text(text) => (None, text.clone()),
            Self::Ids(ids) => return Ok(Prompt { ids: ids.clone(), ..Prompt::default() }),
        };
        let ids = encode(&text)?;
        Ok(Prompt { messages: messages.cloned(), add_generation_prompt, text: Some(text), ids })
    }
}

/// The prompt's text.
pub(super) fn render(
    template: Option<&ChatTemplate>,
    messages: &serde_json::Value,
    add_generation_prompt: bool,
) -> Result<String> {
    let template = template.ok_or_else(|| {
        let why = "messages: this model's file has no chat template; use completions, with a prompt";
        Error::BadRequest(why.into())
    })?;
    let options = RenderOptions { add_generation_prompt, now_unix_s: local_unix_s(), ..Default::default() };
    template.render(messages, &options)
}

/// Seconds since 1970 in the visitor's time zone: templates name today's date.
#[expect(clippy::cast_possible_truncation, reason = "seconds since 1970 fit")]
fn local_unix_s() -> i64 {
    let now = js_sys::Date::new_0();
    (now.get_time() / 1000.0 - now.get_timezone_offset() * 60.0) as i64
}
