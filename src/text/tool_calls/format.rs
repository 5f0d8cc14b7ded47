//! The ways in which models write calls.

use super::super::ChatTemplate;
use crate::{Error, Result};

/// How a family of models writes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolFormat {
    /// Hermes, Qwen and many others: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`.
    Hermes,
    /// Llama 3: `{"name": …, "parameters": {…}}`, alone or behind `<|python_tag|>`; several with `;` between.
    Llama3,
    /// Mistral: `[TOOL_CALLS][{"name": …, "arguments": {…}}, …]`, or `[TOOL_CALLS]name[ARGS]{…}` once for each.
    Mistral,
    /// FunctionGemma: `<start_function_call>call:name{key:<escape>text<escape>,…}<end_function_call>`.
    FunctionGemma,
    /// Gemma, as its guides prompt it: Python calls in a block of code that is marked `tool_code`.
    Gemma,
}

impl ToolFormat {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Hermes, Self::Llama3, Self::Mistral, Self::FunctionGemma, Self::Gemma];

    /// What it is called in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hermes => "hermes",
            Self::Llama3 => "llama3",
            Self::Mistral => "mistral",
            Self::FunctionGemma => "functiongemma",
            Self::Gemma => "gemma",
        }
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The one that a template's text shows.
    pub fn of_template(source: &str) -> Option<Self> {
        let has = |text: &str| source.contains(text);
        if has("<function=") && has("<parameter=") {
            // A format of tags within `<tool_call>`, which nobody here reads.
            return None;
        }
        let shown = [
            ("<start_function_call>", Self::FunctionGemma),
            ("[TOOL_CALLS]", Self::Mistral),
            ("<tool_call>", Self::Hermes),
            ("<|python_tag|>", Self::Llama3),
            ("\"parameters\": dictionary of argument name", Self::Llama3),
            ("tool_code", Self::Gemma),
        ];
        shown.into_iter().find(|(text, _)| has(text)).map(|(_, format)| format)
    }

    /// The format of a model's calls: what was asked for, else what its template shows, else, where the template knows
    /// nothing of tools, the one that most models know.
    ///
    /// # Errors
    /// `bad_request` where the template takes tools in a way that is not known.
    pub fn choose(asked: Option<Self>, template: Option<&ChatTemplate>) -> Result<Self> {
        let shown = || template.and_then(|template| Self::of_template(template.source()));
        if let Some(format) = asked.or_else(shown) {
            return Ok(format);
        }
        if template.is_some_and(|template| template.tool_support().takes_tools) {
            let known = Self::ALL.map(Self::name).join(", ");
            let why = "this model's chat template does not show how it writes calls";
            return Err(Error::BadRequest(format!("tools: {why}; load it with toolFormat, one of {known}")));
        }
        Ok(Self::Hermes)
    }

    /// Control tokens that open, divide and close calls: whoever reads the answer has to see them.
    pub fn markers(self) -> &'static [&'static str] {
        match self {
            Self::Hermes => &["<tool_call>", "</tool_call>"],
            Self::Llama3 => &["<|python_tag|>"],
            Self::Mistral => &["[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"],
            Self::FunctionGemma => &["<start_function_call>", "<end_function_call>", "<escape>"],
            Self::Gemma => &[],
        }
    }

    /// Tokens that end an answer with calls, beside the model's own.
    pub fn ends(self) -> &'static [&'static str] {
        match self {
            Self::FunctionGemma => &["<start_function_response>"],
            _ => &[],
        }
    }

    /// What opens a call, or a list of them.
    pub(super) fn opener(self) -> &'static str {
        match self {
            Self::Hermes => "<tool_call>",
            Self::Llama3 => "<|python_tag|>",
            Self::Mistral => "[TOOL_CALLS]",
            Self::FunctionGemma => "<start_function_call>",
            Self::Gemma => "```tool_code",
        }
    }

    /// What closes it, if not the end of the answer.
    pub(super) fn closer(self) -> Option<&'static str> {
        match self {
            Self::Hermes => Some("</tool_call>"),
            Self::FunctionGemma => Some("<end_function_call>"),
            Self::Gemma => Some("```"),
            Self::Llama3 | Self::Mistral => None,
        }
    }

    /// How a call in JSON begins: what is before its arguments.
    pub(super) fn json_head(self, name: &str) -> String {
        let key = if self == Self::Llama3 { "parameters" } else { "arguments" };
        format!("{{\"name\": {}, \"{key}\": ", serde_json::Value::from(name))
    }

    /// A call as a model of this format writes it. `arguments` is JSON.
    pub(super) fn write(self, name: &str, arguments: &str) -> String {
        let head = self.json_head(name);
        match self {
            Self::Hermes => format!("<tool_call>\n{head}{arguments}}}\n</tool_call>"),
            Self::Llama3 => format!("{head}{arguments}}}"),
            Self::Mistral => format!("[TOOL_CALLS][{head}{arguments}}}]"),
            Self::FunctionGemma => {
                let value = serde_json::from_str(arguments).unwrap_or_default();
                let mut text = String::new();
                super::marked_call::write(&value, &mut text);
                format!("<start_function_call>call:{name}{text}<end_function_call>")
            }
            Self::Gemma => {
                let value = serde_json::from_str(arguments).unwrap_or_default();
                format!("```tool_code\n{name}({})\n```", super::python::write_arguments(&value))
            }
        }
    }

    /// How a model of this format is shown what a call returned, where its template does not say.
    pub(super) fn write_result(self, content: &str) -> String {
        match self {
            Self::Gemma => format!("```tool_output\n{content}\n```"),
            _ => format!("<tool_response>\n{content}\n</tool_response>"),
        }
    }

    /// What stands between calls of one answer.
    pub(super) fn between(self) -> &'static str {
        match self {
            Self::Llama3 => "; ",
            Self::FunctionGemma => "",
            _ => "\n",
        }
    }
}
