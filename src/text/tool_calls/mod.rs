//! Tool calls: what a model is told of functions that it may call, and its calls read back from what it writes.
//!
//! Every family of models writes calls in a way of its own, a [`ToolFormat`]. [`ToolStream`] reads an answer as it comes:
//! text that is no call is content, and a call's arguments are handed on piece by piece. The invariant to remember: what
//! cannot be read as a call is never lost, but comes back as it was written, with a note of why.

mod call_log;
mod conversation;
mod delta;
mod format;
mod grammar;
mod ids;
mod instructions;
mod json_call;
mod marked_call;
mod named_call;
mod notation;
mod python;
mod schema_rules;
mod stream;

pub use call_log::{CallLog, ToldAnswer};
pub use conversation::{ToolSupport, render_chat};
pub use delta::{ToolCallError, ToolCallErrorKind, ToolDelta};
pub use format::ToolFormat;
pub use grammar::{ToolChoice, ToolGrammar, ToolSchema};
pub use ids::call_ids_key;
pub use stream::ToolStream;

use serde_json::Value;

use instructions::format_tools;

use crate::{Error, Result};

/// A function that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What its arguments have to be: a JSON Schema of an object; `None` if nothing is said of them.
    pub parameters: Option<Value>,
    /// Whether calls have to keep to `parameters`.
    pub is_strict: bool,
}

impl Tool {
    /// The functions of a list in OpenAI's shape: `{type: "function", function: {name, description, parameters, strict}}`.
    ///
    /// # Errors
    /// `bad_request` that names the field.
    pub fn list(tools: &Value) -> Result<Vec<Self>> {
        let tools = tools.as_array().ok_or_else(|| Error::BadRequest("tools: a list is needed".into()))?;
        let tool = |(index, tool): (usize, &Value)| {
            let function = &tool["function"];
            let name = function["name"]
                .as_str()
                .ok_or_else(|| Error::BadRequest(format!("tools[{index}].function.name: a name is needed")))?;
            Ok(Self {
                name: name.to_owned(),
                parameters: function.get("parameters").filter(|schema| schema.is_object()).cloned(),
                is_strict: function["strict"] == Value::Bool(true),
            })
        };
        tools.iter().enumerate().map(tool).collect()
    }

    /// The names of its parameters, in the schema's order: what arguments without a name are.
    fn parameter_names(&self) -> Vec<&str> {
        let properties = self.parameters.as_ref().and_then(|schema| schema["properties"].as_object());
        properties.map_or_else(Vec::new, |properties| properties.keys().map(String::as_str).collect())
    }
}

/// A call as far as it is read, filled by the readers of the formats.
#[derive(Debug, Default)]
struct Draft {
    /// The function, once it is known.
    name: Option<String>,
    /// JSON of the arguments that was not handed on yet.
    arguments: String,
    /// Whether any was.
    has_arguments: bool,
}

impl Draft {
    fn push(&mut self, text: &str) {
        self.has_arguments |= !text.is_empty();
        self.arguments.push_str(text);
    }
}

/// Whether a call goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    More,
    Done,
}

/// A character within a JSON string, escaped if it has to be.
fn escape(c: char, text: &mut String) {
    match c {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        c if u32::from(c) < 0x20 => text.push_str(&format!("\\u{:04x}", u32::from(c))),
        c => text.push(c),
    }
}
