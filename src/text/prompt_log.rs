//! The latest prompts, kept to say why a new one was not reused.
//!
//! The cache knows tokens only. Whether a difference comes from a message or from what the chat template wrote around the
//! messages (a date, a tool list) can be told only by who remembers the messages. The invariant to remember: a prompt
//! never meets one of another salt here either.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::Result;

/// Prompts remembered, at most.
const MAX_PROMPTS: usize = 64;
/// Bytes of texts and ids remembered, at most.
const MAX_BYTES: usize = 8 << 20;

/// A prompt in all its shapes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompt {
    /// The messages that it was rendered from; `None` for one that came as text or ids.
    pub messages: Option<Value>,
    /// Whether it ends with the opening of an answer.
    pub add_generation_prompt: bool,
    /// Its text; `None` for one that came as ids.
    pub text: Option<String>,
    /// Its token ids.
    pub ids: Vec<u32>,
    /// The tools that the messages were rendered with, in OpenAI's shape.
    pub tools: Option<Value>,
}

/// A prompt that was answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoggedPrompt {
    /// What it was cached under.
    pub salt: String,
    /// As it was asked.
    pub prompt: Prompt,
    /// What was answered.
    pub answer: String,
    /// The ids of the prompt and the answer.
    pub ids: Vec<u32>,
}

/// Remembers prompts, the latest first.
#[derive(Debug, Default)]
pub struct PromptLog {
    entries: VecDeque<LoggedPrompt>,
    num_bytes: usize,
}

impl PromptLog {
    /// Remembers a prompt with its answer, in place of those that it continues.
    pub fn remember(&mut self, entry: LoggedPrompt) {
        self.entries.retain(|old| old.salt != entry.salt || !entry.ids.starts_with(&old.ids));
        self.entries.push_front(entry);
        self.num_bytes = self.entries.iter().map(LoggedPrompt::num_bytes).sum();
        while self.entries.len() > MAX_PROMPTS || self.num_bytes > MAX_BYTES {
            let dropped = self.entries.pop_back();
            self.num_bytes -= dropped.map_or(0, |entry| entry.num_bytes());
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.num_bytes = 0;
    }

    /// The prompt under a salt that begins with the most of `ids`, the latest of several.
    pub fn most_alike(&self, salt: &str, ids: &[u32]) -> Option<&LoggedPrompt> {
        // The last of several that are the greatest is taken, so the latest has to come last.
        self.entries.iter().rev().filter(|entry| entry.salt == salt).max_by_key(|entry| common(&entry.ids, ids))
    }

    /// The latest prompt under a salt that parts from `ids` at `position`, where it has `expected`.
    pub fn parting(&self, salt: &str, ids: &[u32], position: usize, expected: u32) -> Option<&LoggedPrompt> {
        let parts_there = |entry: &&LoggedPrompt| {
            entry.salt == salt && entry.ids.get(position) == Some(&expected) && common(&entry.ids, ids) == position
        };
        self.entries.iter().find(parts_there)
    }
}

impl LoggedPrompt {
    fn num_bytes(&self) -> usize {
        let text = self.prompt.text.as_ref().map_or(0, String::len);
        // Messages hold about as much as the text that they were made into.
        2 * text + self.answer.len() + 4 * (self.ids.len() + self.prompt.ids.len())
    }

    /// Whether what the template wrote is why `next` parts from this prompt at token `position`, and no message is.
    ///
    /// That is so if this prompt's own messages, rendered again the way `next` was, part from it at the same place and go
    /// on there as `next` does. `render` does that, for messages and whether an answer is opened; `encode` makes ids of
    /// the text.
    ///
    /// # Errors
    /// Those of `render` and `encode`.
    pub fn is_template_changed(
        &self,
        next: &Prompt,
        position: usize,
        render: impl FnOnce(&Value, bool) -> Result<String>,
        encode: impl FnOnce(&str) -> Result<Vec<u32>>,
    ) -> Result<bool> {
        let (Some(messages), Some(was), Some(is)) = (&self.prompt.messages, &self.prompt.text, &next.text) else {
            return Ok(false);
        };
        if next.messages.is_none() || position >= self.prompt.ids.len() {
            return Ok(false);
        }
        let again = render(messages, self.prompt.add_generation_prompt)?;
        let [was, is, now] = [was, is, &again].map(|text| text.as_bytes());
        let at = common(was, is);
        let parts_alike = at < was.len() && common(was, now) == at && common(now, is) > at;
        Ok(parts_alike && common(&self.ids, &encode(&again)?) == position)
    }

    /// The messages and the answer; `None` if the prompt came as text or ids.
    pub fn conversation(&self) -> Option<Value> {
        let mut messages = self.prompt.messages.clone()?;
        if let (Some(list), false) = (messages.as_array_mut(), self.answer.is_empty()) {
            list.push(json!({ "role": "assistant", "content": self.answer }));
        }
        Some(messages)
    }
}

/// How much two lists begin with in common.
fn common<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
