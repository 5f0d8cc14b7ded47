//! A prompt as the list of texts that a cache would see.

use serde_json::{Map, Value};

use crate::{Error, Result};

/// A request's prompt, front to back.
#[derive(Debug, Clone)]
pub(super) struct Prompt {
    /// What renders it: two prompts of different models or templates share nothing.
    pub(super) model: Option<String>,
    pub(super) template: Option<String>,
    pub(super) segments: Vec<Segment>,
    /// Tokens of each segment, if the caller counted them.
    pub(super) tokens: Option<Vec<usize>>,
}

/// Where a segment comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Tools,
    Message(usize),
    Text,
}

/// A stretch of the prompt that is rendered as a whole.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) origin: Origin,
    /// The speaker; empty for tools and plain text.
    pub(super) role: String,
    pub(super) text: Vec<char>,
}

impl Segment {
    fn new(origin: Origin, role: &str, text: &str) -> Self {
        Self { origin, role: role.to_owned(), text: text.chars().collect() }
    }

    pub(super) fn is_same(&self, other: &Segment) -> bool {
        self.role == other.role && self.text == other.text
    }

    /// Text that the application writes, not one of the speakers.
    pub(super) fn is_written_by_app(&self) -> bool {
        matches!(self.role.as_str(), "" | "system")
    }
}

impl Prompt {
    /// Reads a text, a list of messages, or a request: `messages` or `prompt`, and optionally `system`, `tools`, `model`,
    /// `template`, `token_counts`.
    ///
    /// # Errors
    /// `bad_request`, `which` prompt it was and what is wrong with it.
    pub(super) fn parse(value: &Value, which: &str) -> Result<Self> {
        let bad = |why: &str| Error::BadRequest(format!("the {which} prompt: {why}"));
        let empty = Map::new();
        let request = value.as_object().unwrap_or(&empty);
        let content = request.get("messages").or_else(|| request.get("prompt")).unwrap_or(value);
        let mut segments = Vec::new();
        if let Some(tools) = request.get("tools").filter(|tools| !is_empty(tools)) {
            segments.push(Segment::new(Origin::Tools, "", &unmarked(tools).to_string()));
        }
        if let Some(system) = request.get("system").filter(|system| !is_empty(system)) {
            segments.push(Segment::new(Origin::Text, "system", &content_text(system)));
        }
        match content {
            Value::String(text) => segments.push(Segment::new(Origin::Text, "", text)),
            Value::Array(messages) => {
                for (index, message) in messages.iter().enumerate() {
                    let message = message.as_object().ok_or_else(|| bad("every message has to be an object"))?;
                    segments.push(read_message(index, message).ok_or_else(|| bad("every message needs a `role`"))?);
                }
            }
            _ => return Err(bad("a text, a list of messages, or an object with `messages` or `prompt` is needed")),
        }
        let text = |key: &str| request.get(key).and_then(Value::as_str).map(str::to_owned);
        let tokens = request.get("token_counts").filter(|counts| !counts.is_null());
        let tokens = tokens.map(|counts| token_counts(counts, &segments).map_err(|why| bad(&why))).transpose()?;
        Ok(Self { model: text("model"), template: text("template"), segments, tokens })
    }

    /// The size of the first `num_segments` segments, and of `num_chars` characters of the next one; in tokens when
    /// `in_tokens`, where a segment's tokens are taken to be evenly spread over its text.
    pub(super) fn size(&self, num_segments: usize, num_chars: usize, in_tokens: bool) -> usize {
        let counts = self.tokens.as_ref().filter(|_| in_tokens);
        let of = |index: usize, segment: &Segment| counts.map_or(segment.text.len(), |counts| counts[index]);
        let whole = self.segments.iter().enumerate().take(num_segments).map(|(index, segment)| of(index, segment));
        let part = self.segments.get(num_segments).map_or(0, |segment| {
            of(num_segments, segment) * num_chars.min(segment.text.len()) / segment.text.len().max(1)
        });
        whole.sum::<usize>() + part
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty)
}

/// One count for each segment; tools may go without.
fn token_counts(counts: &Value, segments: &[Segment]) -> Result<Vec<usize>, String> {
    let wrong = || "`token_counts` has to be a list of numbers, one for each message".to_owned();
    let read = |count: &Value| count.as_u64().and_then(|count| usize::try_from(count).ok()).filter(|&c| c < 1 << 31);
    let mut read: Vec<usize> =
        counts.as_array().ok_or_else(wrong)?.iter().map(read).collect::<Option<_>>().ok_or_else(wrong)?;
    let has_tools = segments.first().is_some_and(|segment| segment.origin == Origin::Tools);
    if has_tools && read.len() + 1 == segments.len() {
        read.insert(0, 0);
    }
    if read.len() != segments.len() {
        return Err(format!("`token_counts` has {} numbers for {} parts", read.len(), segments.len()));
    }
    Ok(read)
}

/// A message's text with everything that a template renders of it.
fn read_message(index: usize, message: &Map<String, Value>) -> Option<Segment> {
    let role = match message.get("role")?.as_str()? {
        "developer" => "system",
        role => role,
    };
    let mut text = String::new();
    for key in ["reasoning_content", "reasoning", "thinking"] {
        if let Some(thinking) = message.get(key).and_then(Value::as_str).filter(|thinking| !thinking.is_empty()) {
            text.push_str(&format!("<think>{thinking}</think>"));
        }
    }
    text.push_str(&message.get("content").map(content_text).unwrap_or_default());
    for key in ["tool_calls", "function_call", "tool_call_id"] {
        if let Some(value) = message.get(key).filter(|value| !is_empty(value)) {
            text.push_str(&format!("\n{key}: {}", unmarked(value)));
        }
    }
    let name = message.get("name").and_then(Value::as_str);
    let role = name.map_or_else(|| role.to_owned(), |name| format!("{role} {name}"));
    Some(Segment::new(Origin::Message(index), &role, &text))
}

/// Text, or the texts of parts one after another; other parts as JSON.
fn content_text(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(part_text).collect(),
        other => unmarked(other).to_string(),
    }
}

fn part_text(part: &Value) -> String {
    match (part.get("type").and_then(Value::as_str), part) {
        (_, Value::String(text)) => text.clone(),
        (Some("thinking"), _) => {
            format!("<think>{}</think>", part.get("thinking").and_then(Value::as_str).unwrap_or_default())
        }
        (Some("text" | "input_text" | "output_text") | None, _) if part.get("text").is_some_and(Value::is_string) => {
            part["text"].as_str().unwrap_or_default().to_owned()
        }
        _ => unmarked(part).to_string(),
    }
}

/// A value without cache breakpoints, which steer the cache and are no part of the prompt.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(unmarked).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(key, _)| *key != "cache_control");
            Value::Object(fields.map(|(key, value)| (key.clone(), unmarked(value))).collect())
        }
        plain => plain.clone(),
    }
}
