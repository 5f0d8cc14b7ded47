//! Tool calls of a request, for the page.

use serde::Deserialize;
use serde_json::Value;

use super::events::PageEvent;
use super::trace::PageAnswer;
use crate::Result;
use crate::engine::Request;
use crate::text::{Tokenizer, ToldAnswer, Tool, ToolChoice, ToolDelta, ToolFormat, ToolGrammar, ToolStream};

/// `EngineTools` of `js/src/protocol.ts`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PageTools {
    /// In OpenAI's shape.
    pub(super) list: Value,
    /// Whether the answer has to be a call.
    is_required: bool,
    /// The only one that may be called.
    only: Option<usize>,
    /// Whether an answer may have several calls.
    is_parallel: bool,
}

/// What a request's answers are read with.
#[derive(Debug, Clone)]
pub(super) struct ToolReading {
    format: ToolFormat,
    tools: Vec<Tool>,
    is_parallel: bool,
    /// Whether an answer is either calls or a text that has to be something.
    is_either: bool,
}

impl PageTools {
    /// Has a request show the marks of calls and keep to what the choice of tools says.
    pub(super) fn apply(
        &self,
        format: ToolFormat,
        tokenizer: &Tokenizer,
        request: &mut Request,
    ) -> Result<ToolReading> {
        let tools = Tool::list(&self.list)?;
        let id = |text: &&str| tokenizer.encode(text, false, true).ok().filter(|ids| ids.len() == 1).map(|ids| ids[0]);
        let control = |text: &str| id(&text).filter(|&id| tokenizer.is_special(id));
        request.shown_token_ids = format.markers().iter().filter_map(|text| control(text)).collect();
        request.stop_token_ids.extend(format.ends().iter().filter_map(id));
        let choice = match self.only {
            Some(index) => ToolChoice::Only(index),
            None if self.is_required => ToolChoice::Required,
            None => ToolChoice::Auto,
        };
        // Where an answer has to be calls, what a text would have to be does not matter.
        let text = request.constraint.take().filter(|_| choice == ToolChoice::Auto);
        let is_either = text.is_some();
        let choice = if is_either { ToolChoice::Required } else { choice };
        let grammar = ToolGrammar::new(format, &tools, choice, self.is_parallel, control)?;
        request.constraint = match (grammar, text) {
            (Some(grammar), Some(text)) => Some(grammar.or(text)),
            (grammar, text) => grammar.map(Into::into).or(text),
        };
        Ok(ToolReading { format, tools, is_parallel: self.is_parallel, is_either })
    }
}

/// An answer that may have calls.
pub(super) struct ToolAnswer {
    stream: ToolStream,
    told: ToldAnswer,
    is_parallel: bool,
}

impl ToolAnswer {
    /// Reads nothing yet; `key` makes the ids of calls.
    pub(super) fn new(ToolReading { format, tools, is_parallel, is_either }: ToolReading, key: u64) -> Self {
        let stream = ToolStream::new(format, tools, key);
        let stream = if is_either { stream.calls_or_text() } else { stream };
        Self { stream, told: ToldAnswer::default(), is_parallel }
    }

    /// What a piece of the answer brings.
    pub(super) fn push(&mut self, text: &str, page: PageAnswer) -> Vec<PageEvent> {
        let deltas = self.stream.push(text);
        self.tell(deltas, page)
    }

    /// What the end brings.
    pub(super) fn finish(&mut self, page: PageAnswer) -> Vec<PageEvent> {
        let deltas = self.stream.finish();
        self.tell(deltas, page)
    }

    /// Whether there are calls to be made.
    pub(super) fn has_calls(&self) -> bool {
        self.stream.num_complete() > 0
    }

    /// Whether nothing that could follow is wanted.
    pub(super) fn is_enough(&self) -> bool {
        !self.is_parallel && self.has_calls()
    }

    /// What was told of it.
    pub(super) fn into_told(self) -> ToldAnswer {
        self.told
    }

    fn tell(&mut self, deltas: Vec<ToolDelta>, PageAnswer { request, choice }: PageAnswer) -> Vec<PageEvent> {
        deltas.iter().for_each(|delta| self.told.note(delta));
        let event = |delta| match delta {
            ToolDelta::Content(text) => PageEvent::Text { request, choice, text, logprobs: Vec::new() },
            ToolDelta::Call { index, id, name } => PageEvent::Call { request, choice, index, id, name },
            ToolDelta::Arguments { index, text } => PageEvent::Arguments { request, choice, index, text },
            ToolDelta::Malformed { index, raw, error } => {
                PageEvent::Malformed { request, choice, index, text: raw, error }
            }
        };
        deltas.into_iter().map(event).collect()
    }
}
