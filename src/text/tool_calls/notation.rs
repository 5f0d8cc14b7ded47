//! The notations of arguments that are no JSON, as rules of a grammar: Python, and FunctionGemma's with marks around texts.

use serde_json::Value;

use super::{ToolFormat, marked_call, python};

/// How arguments are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notation {
    /// `name="text", other={"a": True}`.
    Python,
    /// `{name:<escape>text<escape>,other:{a:true}}`.
    Marked {
        /// `<escape>`, as grammars write it.
        quote: String,
        /// Whether that is a token of its own, which no text has.
        is_control: bool,
    },
}

const MARK: &str = "<escape>";
/// Fifteen digits, which every reader of numbers keeps.
const NUMBERS: &str = "INTEGER: /-?(0|[1-9][0-9]{0,14})/\nNUMBER: /-?(0|[1-9][0-9]{0,14})(\\.[0-9]{1,15})?/\n";
const KEY: &str = "KEY: /[A-Za-z_][A-Za-z0-9_]{0,63}/\n";

impl Notation {
    /// The notation of a format; `None` where it is JSON. `mark` is how a grammar writes a marker.
    pub(super) fn new(format: ToolFormat, mark: &impl Fn(&str) -> String) -> Option<Self> {
        match format {
            ToolFormat::Hermes | ToolFormat::Llama3 | ToolFormat::Mistral => None,
            ToolFormat::Gemma => Some(Self::Python),
            ToolFormat::FunctionGemma => {
                let quote = mark(MARK);
                Some(Self::Marked { is_control: quote != quoted(MARK), quote })
            }
        }
    }

    /// What a format is called that has it.
    pub(super) fn format(&self) -> ToolFormat {
        if *self == Self::Python { ToolFormat::Gemma } else { ToolFormat::FunctionGemma }
    }

    /// The rule of any arguments.
    pub(super) fn any_arguments(&self) -> &'static str {
        if *self == Self::Python { "arguments" } else { "object" }
    }

    /// What is between elements, arguments and fields.
    pub(super) fn comma(&self) -> &'static str {
        if *self == Self::Python { "\", \"" } else { "\",\"" }
    }

    /// The name of an argument, with what is behind it; `None` if it cannot be written.
    pub(super) fn argument(&self, name: &str) -> Option<String> {
        match self {
            Self::Python => {
                let is_word = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
                is_word.then(|| quoted(&format!("{name}=")))
            }
            Self::Marked { .. } => self.key(name),
        }
    }

    /// The name of a field, with what is behind it; `None` if it cannot be written.
    pub(super) fn key(&self, name: &str) -> Option<String> {
        match self {
            Self::Python => Some(quoted(&format!("{}: ", Value::from(name)))),
            Self::Marked { .. } => {
                let is_word = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || ",:{}[]<".contains(c));
                is_word.then(|| quoted(&format!("{name}:")))
            }
        }
    }

    /// Any name of a field, with what is behind it.
    pub(super) fn any_key(&self) -> &'static str {
        if *self == Self::Python { "STRING \": \"" } else { "KEY \":\"" }
    }

    /// A value, as it is; `None` if it cannot be written.
    pub(super) fn literal(&self, value: &Value) -> Option<String> {
        let Self::Marked { quote, is_control } = self else { return Some(quoted(&python::write(value))) };
        if !self.can_hold(value) {
            return None;
        }
        let mut text = String::new();
        marked_call::write(value, &mut text);
        if !is_control {
            return Some(quoted(&text));
        }
        let parts: Vec<String> = text.split(MARK).map(quoted).collect();
        Some(parts.join(&format!(" {quote} ")))
    }

    fn can_hold(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => !text.contains(MARK),
            Value::Array(values) => values.iter().all(|value| self.can_hold(value)),
            Value::Object(fields) => fields.iter().all(|(key, value)| self.key(key).is_some() && self.can_hold(value)),
            _ => true,
        }
    }

    /// True or false.
    pub(super) fn boolean(&self) -> &'static str {
        if *self == Self::Python { "(\"True\" | \"False\")" } else { "(\"true\" | \"false\")" }
    }

    /// Nothing.
    pub(super) fn null(&self) -> &'static str {
        if *self == Self::Python { "\"None\"" } else { "\"null\"" }
    }

    /// Any text.
    pub(super) fn any_text(&self) -> String {
        match self {
            Self::Python => "STRING".to_owned(),
            Self::Marked { quote, .. } => format!("({quote} WORDS? {quote})"),
        }
    }

    /// A text of so many characters; `None` where texts have escapes, which cannot be counted so.
    pub(super) fn text(&self, min: u64, max: Option<u64>) -> Option<String> {
        let Self::Marked { quote, is_control } = self else { return None };
        let (letter, up_to) = (letter(*is_control), max.map_or_else(String::new, |max| max.to_string()));
        let text = match (min, max) {
            (_, Some(0)) => String::new(),
            (0, _) => format!(" /{letter}{{1,{up_to}}}/?"),
            _ => format!(" /{letter}{{{min},{up_to}}}/"),
        };
        Some(format!("({quote}{text} {quote})"))
    }

    /// The rules of any value that others name: `arguments` or `object`, `value`, `INTEGER`, `NUMBER`, and of any text.
    pub(super) fn rules(&self) -> String {
        let own = match self {
            Self::Python => "arguments: (argument (\", \" argument)*)?\nargument: KEY \"=\" value\n\
                             STRING: /\"([^\"\\\\\\n]|\\\\[\"\\\\nt])*\"/\n"
                .to_owned(),
            Self::Marked { is_control, .. } => format!("WORDS: /{}+/\n", letter(*is_control)),
        };
        let (text, comma, boolean, null) = (self.any_text(), self.comma(), self.boolean(), self.null());
        let (open, close, key) = (quoted("{"), quoted("}"), self.any_key());
        format!(
            "value: {text} | NUMBER | {boolean} | {null} | object | array\n\
             array: \"[\" (value ({comma} value)*)? \"]\"\n\
             object: {open} (pair ({comma} pair)*)? {close}\npair: {key} value\n\
             {own}{NUMBERS}{KEY}"
        )
    }
}

/// A character of a text, as an expression.
fn letter(is_control: bool) -> &'static str {
    if is_control { "(.|\\n)" } else { "[^<]" }
}

/// A text as Lark writes it. Brackets are escaped: whoever counts those of a grammar would count them too.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        match c {
            '(' | ')' | '[' | ']' | '{' | '}' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            // Lark has no such character in a text.
            '\u{7f}' => quoted.push_str("\\u007f"),
            c => quoted.push(c),
        }
    }
    quoted
}
