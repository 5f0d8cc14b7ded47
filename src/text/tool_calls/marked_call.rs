//! Calls as FunctionGemma writes them: `call:name{key:<escape>text<escape>,other:1}`, made into JSON on the way.

use serde_json::Value;

use super::{Draft, Status, escape};

const CALL: &str = "call:";
const QUOTE: &str = "<escape>";
/// Bytes of a name, a key or a number.
const MAX_WORD_BYTES: usize = 512;
/// Brackets that may be open at once.
const MAX_DEPTH: usize = 128;

/// Reads one call.
#[derive(Debug, Default)]
pub(super) struct MarkedCall {
    /// Characters that may be the beginning of a quote.
    held: String,
    /// The name, key or number that is being read.
    word: String,
    open: Vec<char>,
    is_text: bool,
    /// Whether a value was written since the last comma, colon or bracket.
    has_value: bool,
    is_key: bool,
}

impl MarkedCall {
    /// Takes the next character.
    pub(super) fn push(&mut self, c: char, draft: &mut Draft) -> Result<Status, String> {
        if draft.name.is_none() {
            return self.push_head(c, draft);
        }
        self.held.push(c);
        if self.held == QUOTE {
            self.held.clear();
            return self.push_quote(draft).map(|()| Status::More);
        }
        while !QUOTE.starts_with(self.held.as_str()) {
            let first = self.held.remove(0);
            if self.push_plain(first, draft)? == Status::Done {
                return Ok(Status::Done);
            }
        }
        Ok(Status::More)
    }

    fn push_head(&mut self, c: char, draft: &mut Draft) -> Result<Status, String> {
        if c != '{' {
            self.word.push(c);
            let is_begun = self.word.starts_with(CALL) || CALL.starts_with(self.word.as_str());
            return match is_begun && self.word.len() <= MAX_WORD_BYTES {
                true => Ok(Status::More),
                false => Err(format!("{:?} where {CALL} and a name are needed", self.word)),
            };
        }
        let name = self.word.strip_prefix(CALL).unwrap_or_default().trim();
        if name.is_empty() {
            return Err("a call without a name".into());
        }
        draft.name = Some(name.to_owned());
        self.word.clear();
        self.begin('{', draft)?;
        Ok(Status::More)
    }

    fn begin(&mut self, c: char, draft: &mut Draft) -> Result<(), String> {
        if self.open.len() == MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} brackets are open"));
        }
        self.open.push(c);
        (self.is_key, self.has_value) = (c == '{', false);
        draft.push(&c.to_string());
        Ok(())
    }

    fn push_quote(&mut self, draft: &mut Draft) -> Result<(), String> {
        if self.is_key && !self.is_text || self.has_value || !self.word.is_empty() {
            return Err(format!("{QUOTE} where no text can be"));
        }
        draft.push("\"");
        self.has_value = self.is_text;
        self.is_text = !self.is_text;
        Ok(())
    }

    fn push_plain(&mut self, c: char, draft: &mut Draft) -> Result<Status, String> {
        if self.is_text {
            let mut text = String::new();
            escape(c, &mut text);
            draft.push(&text);
            return Ok(Status::More);
        }
        match c {
            ':' if self.is_key => {
                let key = std::mem::take(&mut self.word);
                draft.push(&Value::from(key.trim()).to_string());
                draft.push(":");
                (self.is_key, self.has_value) = (false, false);
            }
            '{' | '[' if !self.is_key && !self.has_value && self.word.trim().is_empty() => self.begin(c, draft)?,
            ',' | '}' | ']' => return self.end_value(c, draft),
            c if self.has_value && !c.is_whitespace() => return Err(format!("{c:?} behind a value")),
            c if c.is_whitespace() && self.word.is_empty() => {}
            c => self.word.push(c),
        }
        match self.word.len() > MAX_WORD_BYTES {
            true => Err(format!("a word of more than {MAX_WORD_BYTES} bytes")),
            false => Ok(Status::More),
        }
    }

    /// A value ends, and perhaps what it is in.
    fn end_value(&mut self, c: char, draft: &mut Draft) -> Result<Status, String> {
        let word = std::mem::take(&mut self.word);
        let word = word.trim();
        let last = self.open.last().copied();
        if !word.is_empty() {
            if self.is_key {
                return Err(format!("the key {word:?} has no value"));
            }
            // What is no number and has no quotes is a text all the same.
            let value = serde_json::from_str(word).unwrap_or_else(|_| Value::from(word));
            draft.push(&value.to_string());
        } else if !self.has_value && !(c != ',' && (self.is_key || last == Some('['))) {
            return Err(format!("{c:?} where a value is needed"));
        }
        self.has_value = true;
        if c == ',' {
            draft.push(",");
            (self.is_key, self.has_value) = (last == Some('{'), false);
            return Ok(Status::More);
        }
        if last != Some(if c == '}' { '{' } else { '[' }) {
            return Err(format!("{c:?} closes nothing"));
        }
        self.open.pop();
        self.is_key = false;
        draft.push(&c.to_string());
        Ok(if self.open.is_empty() { Status::Done } else { Status::More })
    }
}

/// JSON in this notation.
pub(super) fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, value)) in fields.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                text.push_str(key);
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for (index, value) in values.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                write(value, text);
            }
            text.push(']');
        }
        Value::String(value) => text.push_str(&format!("{QUOTE}{value}{QUOTE}")),
        other => text.push_str(&other.to_string()),
    }
}
