//! Calls written as Python: `name(key="text", other=1)`, one or several, with literals as arguments.

use serde_json::{Map, Number, Value};

use super::Tool;

/// Lists and dictionaries within each other.
const MAX_DEPTH: usize = 64;

/// Reads the calls of a piece of code, one after the other. Arguments without a name are those of the tool's schema, in its
/// order.
pub(super) struct Calls<'a> {
    reader: Reader<'a>,
    tools: &'a [Tool],
}

/// A call: its name, its arguments as JSON.
pub(super) type Call = (String, String);

impl<'a> Calls<'a> {
    pub(super) fn new(code: &'a str, tools: &'a [Tool]) -> Self {
        Self { reader: Reader { rest: code }, tools }
    }

    /// The code that is not read yet.
    pub(super) fn rest(&self) -> &'a str {
        self.reader.rest
    }

    /// The next call, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Call>, String> {
        let reader = &mut self.reader;
        // Statements, or the elements of a list.
        reader.rest = reader.rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '[' | ']'));
        if reader.rest.is_empty() {
            return Ok(None);
        }
        let mut name = reader.name()?;
        reader.expect('(')?;
        let is_printed = name == "print";
        if is_printed {
            name = reader.name()?;
            reader.expect('(')?;
        }
        let tool = self.tools.iter().find(|tool| tool.name == name);
        let arguments = reader.arguments(tool.map_or_else(Vec::new, Tool::parameter_names))?;
        if is_printed {
            reader.expect(')')?;
        }
        Ok(Some((name, Value::Object(arguments).to_string())))
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, c: char) -> bool {
        let is_there = self.peek() == Some(c);
        if is_there {
            self.rest = &self.rest[c.len_utf8()..];
        }
        is_there
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.take(c) { Ok(()) } else { Err(format!("{:?} where {c:?} is needed", self.shown())) }
    }

    /// A little of what comes.
    fn shown(&self) -> String {
        self.rest.chars().take(20).collect()
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        self.peek();
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn name(&mut self) -> Result<String, String> {
        let word = self.word(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
        match word.is_empty() {
            true => Err(format!("{:?} where the name of a function is needed", self.shown())),
            false => Ok(word.to_owned()),
        }
    }

    /// Arguments up to the bracket that closes them.
    fn arguments(&mut self, names: Vec<&str>) -> Result<Map<String, Value>, String> {
        let (mut arguments, mut names) = (Map::new(), names.into_iter());
        while !self.take(')') {
            let before = self.rest;
            let word = self.word(|c| c.is_alphanumeric() || c == '_');
            let key = if !word.is_empty() && self.take('=') {
                word.to_owned()
            } else {
                self.rest = before;
                let name = names.next().ok_or("an argument without a name")?;
                name.to_owned()
            };
            let value = self.value(0)?;
            arguments.insert(key, value);
            if !self.take(',') && self.peek() != Some(')') {
                return Err(format!("{:?} behind an argument", self.shown()));
            }
        }
        Ok(arguments)
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} brackets are open"));
        }
        match self.peek() {
            Some(quote @ ('"' | '\'')) => self.text(quote).map(Value::from),
            Some(open @ ('[' | '(')) => {
                self.take(open);
                let (close, mut values) = (if open == '[' { ']' } else { ')' }, Vec::new());
                while !self.take(close) {
                    values.push(self.value(depth + 1)?);
                    if !self.take(',') && self.peek() != Some(close) {
                        return Err(format!("{:?} behind an element", self.shown()));
                    }
                }
                Ok(Value::Array(values))
            }
            Some('{') => {
                self.take('{');
                let mut fields = Map::new();
                while !self.take('}') {
                    let Some(quote @ ('"' | '\'')) = self.peek() else { return Err("a key that is no text".into()) };
                    let key = self.text(quote)?;
                    self.expect(':')?;
                    fields.insert(key, self.value(depth + 1)?);
                    if !self.take(',') && self.peek() != Some('}') {
                        return Err(format!("{:?} behind a value", self.shown()));
                    }
                }
                Ok(Value::Object(fields))
            }
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Result<Value, String> {
        let word = self.word(|c| c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'));
        let digits = word.replace('_', "");
        match word {
            "True" | "true" => Ok(Value::Bool(true)),
            "False" | "false" => Ok(Value::Bool(false)),
            "None" | "null" => Ok(Value::Null),
            _ if digits.parse::<i64>().is_ok() => Ok(digits.parse::<i64>().map_or(Value::Null, Value::from)),
            _ => {
                let number = digits.parse::<f64>().ok().and_then(Number::from_f64);
                number
                    .map(Value::Number)
                    .ok_or_else(|| format!("{:?} is no literal", word.chars().take(20).collect::<String>()))
            }
        }
    }

    /// A text within quotes, of one or of three.
    fn text(&mut self, quote: char) -> Result<String, String> {
        let triple = quote.to_string().repeat(3);
        let end = if self.rest.starts_with(&triple) { triple } else { quote.to_string() };
        self.rest = &self.rest[end.len()..];
        let mut text = String::new();
        loop {
            if let Some(rest) = self.rest.strip_prefix(end.as_str()) {
                self.rest = rest;
                return Ok(text);
            }
            let mut chars = self.rest.chars();
            match chars.next() {
                Some('\\') => {
                    match chars.next() {
                        Some('n') => text.push('\n'),
                        Some('t') => text.push('\t'),
                        Some('r') => text.push('\r'),
                        Some('b') => text.push('\u{8}'),
                        Some('f') => text.push('\u{c}'),
                        Some('u') if chars.as_str().get(..4).is_some_and(is_hexadecimal) => {
                            let (digits, rest) = chars.as_str().split_at(4);
                            text.push(character(digits));
                            chars = rest.chars();
                        }
                        Some('\n') => {}
                        Some(c @ ('\\' | '\'' | '"')) => text.push(c),
                        // What is no escape stays as it is.
                        Some(c) => text.extend(['\\', c]),
                        None => return Err("a text that does not end".into()),
                    }
                }
                Some(c) => text.push(c),
                None => return Err("a text that does not end".into()),
            }
            self.rest = chars.as_str();
        }
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The character of a number; half of a pair is none.
fn character(digits: &str) -> char {
    u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// A JSON object as arguments.
pub(super) fn write_arguments(arguments: &Value) -> String {
    let fields = arguments.as_object().into_iter().flatten();
    fields.map(|(key, value)| format!("{key}={}", write(value))).collect::<Vec<_>>().join(", ")
}

/// A value as a literal.
pub(super) fn write(value: &Value) -> String {
    let all = |texts: Vec<String>| texts.join(", ");
    match value {
        Value::Null => "None".into(),
        Value::Bool(is) => if *is { "True" } else { "False" }.into(),
        Value::Array(values) => format!("[{}]", all(values.iter().map(write).collect())),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), write(value));
            format!("{{{}}}", all(fields.iter().map(field).collect()))
        }
        other => other.to_string(),
    }
}
