//! Answers with calls, kept as the model wrote them.
//!
//! A conversation comes back with the calls in OpenAI's shape, and a template may write them otherwise than the model did:
//! with other spaces, say. Then nothing behind the first difference could be reused of what was computed. So the text of an
//! answer is remembered under its calls, and whoever renders the conversation may put it in their place.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::ToolDelta;

/// Answers remembered, at most.
const MAX_ANSWERS: usize = 256;
/// Bytes of them, at most.
const MAX_BYTES: usize = 4 << 20;

/// What is told of an answer, put together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToldAnswer {
    content: String,
    /// Id, name and arguments.
    calls: Vec<(String, String, String)>,
}

impl ToldAnswer {
    /// Takes note of what is told.
    pub fn note(&mut self, delta: &ToolDelta) {
        match delta {
            ToolDelta::Content(text) => self.content.push_str(text),
            ToolDelta::Call { id, name, .. } => self.calls.push((id.clone(), name.clone(), String::new())),
            ToolDelta::Arguments { text, .. } => {
                if let Some((.., arguments)) = self.calls.last_mut() {
                    arguments.push_str(text);
                }
            }
            ToolDelta::Malformed { index, raw, .. } => {
                self.content.push_str(raw);
                if index.is_some() {
                    self.calls.pop();
                }
            }
        }
    }

    /// Whether a message of a conversation is this answer.
    fn is(&self, message: &Value) -> bool {
        let Some(calls) = message["tool_calls"].as_array() else { return false };
        let is_call = |((id, name, arguments), call): (&(String, String, String), &Value)| {
            let function = &call["function"];
            call["id"] == id.as_str()
                && function["name"] == name.as_str()
                && function["arguments"] == arguments.as_str()
        };
        let content = message["content"].as_str().unwrap_or_default();
        calls.len() == self.calls.len() && self.calls.iter().zip(calls).all(is_call) && content == self.content
    }
}

/// Remembers answers with calls, the latest first.
#[derive(Debug, Default)]
pub struct CallLog {
    entries: VecDeque<(ToldAnswer, String)>,
}

impl CallLog {
    /// Remembers that the model wrote `raw`, of which `told` was told. Answers without calls need no remembering.
    pub fn remember(&mut self, told: ToldAnswer, raw: String) {
        if told.calls.is_empty() || raw.len() > MAX_BYTES {
            return;
        }
        self.entries.push_front((told, raw));
        let mut num_bytes = self.entries.iter().map(|(_, raw)| raw.len()).sum::<usize>();
        while self.entries.len() > MAX_ANSWERS || num_bytes > MAX_BYTES {
            num_bytes -= self.entries.pop_back().map_or(0, |(_, raw)| raw.len());
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The messages with every answer that is remembered as the model wrote it; `None` if none is.
    pub fn as_written(&self, messages: &Value) -> Option<Value> {
        let mut messages = messages.as_array()?.clone();
        let mut is_changed = false;
        for message in &mut messages {
            if let Some((_, raw)) = self.entries.iter().find(|(told, _)| told.is(message)) {
                *message = json!({ "role": "assistant", "content": raw });
                is_changed = true;
            }
        }
        is_changed.then_some(Value::Array(messages))
    }
}
