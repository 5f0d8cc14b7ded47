//! Calls written as a JSON object: `{"name": …, "arguments": {…}}`, read character by character.

use serde_json::Value;

use super::{Draft, Status, escape};

/// Brackets that may be open at once.
const MAX_DEPTH: usize = 128;
/// Bytes of a key, a name or a number.
const MAX_WORD_BYTES: usize = 512;

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    String,
    Escaped,
    /// So many digits of `\u` are missing.
    Digits(u8),
    /// A number, or true, false or null.
    Word,
}

/// Where the value that is being read goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Arguments,
    /// The arguments as JSON within a string.
    ArgumentsText,
    Other,
}

/// Reads one object.
#[derive(Debug)]
pub(super) struct JsonCall {
    next: Next,
    open: Vec<char>,
    field: Field,
    /// Whether the string that is being read is a key.
    is_key: bool,
    /// The key, name, text or number that is being read, as it is written.
    word: String,
    /// Whether the object is the arguments, not the whole call.
    is_bare: bool,
}

impl JsonCall {
    /// Reads a call from its `{` on.
    pub(super) fn new() -> Self {
        let (open, word) = (Vec::new(), String::new());
        Self { next: Next::Value, open, field: Field::Other, is_key: false, word, is_bare: false }
    }

    /// Reads arguments alone, from their `{` on.
    pub(super) fn arguments() -> Self {
        Self { field: Field::Arguments, is_bare: true, ..Self::new() }
    }

    /// Takes the next character.
    pub(super) fn push(&mut self, c: char, draft: &mut Draft) -> Result<Status, String> {
        // A number or a word ends with whatever comes behind it.
        if self.next == Next::Word && matches!(c, ',' | '}' | ']' | ' ' | '\t' | '\n' | '\r') {
            self.end_word(draft)?;
        }
        let before = self.next;
        let is_space = matches!(c, ' ' | '\t' | '\n' | '\r');
        match self.next {
            Next::String | Next::Escaped | Next::Digits(_) => self.push_text(c, draft)?,
            Next::Word => self.push_word(c)?,
            _ if is_space => {}
            Next::Key | Next::KeyOrEnd if c == '"' => self.begin_string(true),
            Next::Colon if c == ':' => self.begin_value(),
            Next::Value | Next::ValueOrEnd if !matches!(c, '}' | ']' | ',' | ':') => self.push_value(c)?,
            Next::CommaOrEnd if c == ',' => {
                self.next = if self.open.last() == Some(&'{') { Next::Key } else { Next::Value };
            }
            Next::KeyOrEnd | Next::ValueOrEnd | Next::CommaOrEnd if matches!(c, '}' | ']') => self.close(c)?,
            _ => return Err(format!("{c:?} where {} is needed", needed(self.next))),
        }
        self.copy(c, before, draft);
        if self.open.is_empty() && self.next == Next::CommaOrEnd {
            return Ok(Status::Done);
        }
        Ok(Status::More)
    }

    /// Hands a character of the arguments on.
    fn copy(&self, c: char, before: Next, draft: &mut Draft) {
        if self.field != Field::Arguments {
            return;
        }
        let depth = if self.is_bare { 0 } else { 1 };
        let closes = self.open.len() == depth && matches!(c, '}' | ']') && before != Next::String;
        let is_text = matches!(before, Next::String);
        if self.open.len() > depth || closes {
            let mut text = String::new();
            // A line break within a text is no JSON, but plain enough.
            if is_text && u32::from(c) < 0x20 {
                escape(c, &mut text)
            } else {
                text.push(c)
            }
            draft.push(&text);
        }
    }

    fn depth(&self) -> usize {
        self.open.len()
    }

    fn begin_string(&mut self, is_key: bool) {
        self.is_key = is_key;
        self.next = Next::String;
        self.word.clear();
    }

    /// The value of a key begins.
    fn begin_value(&mut self) {
        self.next = Next::Value;
        if self.depth() == 1 && !self.is_bare {
            self.field = match self.word.as_str() {
                "name" => Field::Name,
                "arguments" | "parameters" => Field::Arguments,
                _ => Field::Other,
            };
        }
        self.word.clear();
    }

    fn push_value(&mut self, c: char) -> Result<(), String> {
        if self.depth() == 0 && c != '{' {
            return Err(format!("{c:?} where an object is needed"));
        }
        let is_field = self.depth() == 1 && !self.is_bare;
        match c {
            '{' | '[' => {
                if is_field && (self.field == Field::Name || self.field == Field::Arguments && c == '[') {
                    return Err(
                        if self.field == Field::Name { "the name is no text" } else { "arguments in a list" }.into()
                    );
                }
                if self.open.len() == MAX_DEPTH {
                    return Err(format!("more than {MAX_DEPTH} brackets are open"));
                }
                self.open.push(c);
                self.next = if c == '{' { Next::KeyOrEnd } else { Next::ValueOrEnd };
            }
            '"' => {
                if is_field && self.field == Field::Arguments {
                    self.field = Field::ArgumentsText;
                }
                self.begin_string(false);
            }
            c => {
                self.next = Next::Word;
                self.word.clear();
                self.word.push(c);
            }
        }
        Ok(())
    }

    fn push_text(&mut self, c: char, draft: &mut Draft) -> Result<(), String> {
        let is_kept = self.is_key || (self.depth() == 1 && matches!(self.field, Field::Name | Field::ArgumentsText));
        if self.next == Next::String && c == '"' {
            self.next = if self.is_key { Next::Colon } else { Next::CommaOrEnd };
            return self.end_text(draft);
        }
        if is_kept {
            if self.word.len() >= MAX_WORD_BYTES && self.field != Field::ArgumentsText {
                return Err(format!("a name of more than {MAX_WORD_BYTES} bytes"));
            }
            if self.next == Next::String && u32::from(c) < 0x20 { escape(c, &mut self.word) } else { self.word.push(c) }
        }
        self.next = match (self.next, c) {
            (Next::String, '\\') => Next::Escaped,
            (Next::Escaped, 'u') => Next::Digits(4),
            (Next::Escaped, '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => Next::String,
            (Next::Escaped, _) => return Err(format!("\\{c} is no escape of JSON")),
            (Next::Digits(left), c) if c.is_ascii_hexdigit() => {
                if left == 1 {
                    Next::String
                } else {
                    Next::Digits(left - 1)
                }
            }
            (Next::Digits(_), _) => return Err(format!("{c:?} where a hexadecimal digit is needed")),
            (next, _) => next,
        };
        Ok(())
    }

    /// A text is complete: a key stays in `word`, the name and arguments go on.
    fn end_text(&mut self, draft: &mut Draft) -> Result<(), String> {
        let is_field = self.depth() == 1 && !self.is_bare && !self.is_key;
        let text = || serde_json::from_str::<String>(&format!("\"{}\"", self.word)).map_err(|error| error.to_string());
        if self.is_key && self.depth() == 1 {
            self.word = text()?;
        } else if is_field && self.field == Field::Name {
            draft.name = Some(text()?);
        } else if is_field && self.field == Field::ArgumentsText {
            let json = text()?;
            if !serde_json::from_str::<Value>(&json).is_ok_and(|value| value.is_object()) {
                return Err("the arguments are a text that is no JSON object".into());
            }
            draft.push(&json);
        }
        Ok(())
    }

    fn push_word(&mut self, c: char) -> Result<(), String> {
        self.word.push(c);
        if self.word.len() > MAX_WORD_BYTES || !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')) {
            return Err(format!("{:?} is no value of JSON", self.word));
        }
        Ok(())
    }

    fn end_word(&mut self, draft: &mut Draft) -> Result<(), String> {
        if !matches!(self.word.as_str(), "true" | "false" | "null") && !is_number(&self.word) {
            return Err(format!("{:?} is no value of JSON", self.word));
        }
        self.next = Next::CommaOrEnd;
        if self.depth() == 1 && !self.is_bare {
            match self.field {
                Field::Name => return Err("the name is no text".into()),
                Field::Arguments if self.word == "null" => {
                    draft.push("{}");
                    self.field = Field::Other;
                }
                Field::Arguments => return Err("the arguments are no object".into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn close(&mut self, c: char) -> Result<(), String> {
        let opened = if c == '}' { '{' } else { '[' };
        if self.open.pop() != Some(opened) {
            return Err(format!("{c:?} closes nothing"));
        }
        self.next = Next::CommaOrEnd;
        Ok(())
    }
}

/// Whether a word is a number of JSON, of any size: nobody here has to count with it.
fn is_number(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let word = word.strip_prefix('-').unwrap_or(word);
    let (number, exponent) = word.split_once(['e', 'E']).unwrap_or((word, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    digits(whole) && (whole == "0" || !whole.starts_with('0')) && digits(fraction) && digits(exponent)
}

fn needed(next: Next) -> &'static str {
    match next {
        Next::Value | Next::ValueOrEnd => "a value",
        Next::Key | Next::KeyOrEnd => "a key",
        Next::Colon => "a colon",
        _ => "a comma or the end",
    }
}
