//! Conversations and texts as the ids of a prompt.

use serde_json::Value;

use crate::text::{CallLog, ChatTemplate, RenderOptions, ToolFormat, Transcripts, render_chat};
use crate::{Error, Result};

/// What is kept of earlier prompts: what was generated before keeps its ids.
pub(super) enum Memory<'a> {
    /// To be remembered as used.
    Used(&'a mut Transcripts),
    /// Nothing changes.
    Seen(&'a Transcripts),
}

impl Memory<'_> {
    /// The ids of a prompt's text.
    pub(super) fn encode(&mut self, text: &str) -> Result<Vec<u32>> {
        match self {
            Self::Used(transcripts) => transcripts.encode_prompt(text),
            Self::Seen(transcripts) => transcripts.peek_prompt(text),
        }
    }

    fn continued_len(&self, text: &str) -> usize {
        match self {
            Self::Used(transcripts) => transcripts.continued_len(text),
            Self::Seen(transcripts) => transcripts.continued_len(text),
        }
    }
}

/// How conversations become texts.
#[derive(Clone, Copy)]
pub(super) struct Renderer<'a> {
    template: Option<&'a ChatTemplate>,
    /// What was asked for at load.
    format: Option<ToolFormat>,
    calls: &'a CallLog,
    tools: Option<&'a Value>,
}

impl<'a> Renderer<'a> {
    /// Conversations without tools.
    pub(super) fn new(template: Option<&'a ChatTemplate>, format: Option<ToolFormat>, calls: &'a CallLog) -> Self {
        Self { template, format, calls, tools: None }
    }

    /// The same with these tools, in OpenAI's shape.
    pub(super) fn with_tools(self, tools: Option<&'a Value>) -> Self {
        Self { tools, ..self }
    }

    /// How the model writes calls.
    pub(super) fn format(&self) -> Result<ToolFormat> {
        ToolFormat::choose(self.format, self.template)
    }

    /// The prompt's text, as the template writes it.
    pub(super) fn render(&self, messages: &Value, add_generation_prompt: bool) -> Result<String> {
        let template = self.template.ok_or_else(|| {
            let why = "messages: this model's file has no chat template; use completions, with a prompt";
            Error::BadRequest(why.into())
        })?;
        let options = RenderOptions { add_generation_prompt, now_unix_s: local_unix_s(), ..Default::default() };
        let format = match self.tools {
            Some(_) => self.format()?,
            // Of a format that is not known, results alone are told as most models know them.
            None => self.format().unwrap_or(ToolFormat::Hermes),
        };
        render_chat(template, messages, self.tools, format, &options)
    }

    /// The same, with earlier answers as the model wrote them where more of them can be continued so.
    pub(super) fn render_best(&self, messages: &Value, opens: bool, memory: &Memory<'_>) -> Result<String> {
        let plain = self.render(messages, opens);
        let Some(written) = self.calls.as_written(messages).and_then(|messages| self.render(&messages, opens).ok())
        else {
            return plain;
        };
        match plain {
            Ok(plain) if memory.continued_len(&plain) >= memory.continued_len(&written) => Ok(plain),
            // Some templates refuse several calls at once, even those that their model has made.
            _ => Ok(written),
        }
    }
}

/// Seconds since 1970 in the visitor's time zone: templates name today's date.
#[expect(clippy::cast_possible_truncation, reason = "seconds since 1970 fit")]
fn local_unix_s() -> i64 {
    let now = js_sys::Date::new_0();
    (now.get_time() / 1000.0 - now.get_timezone_offset() * 60.0) as i64
}
