//! What an answer with calls may look like, as a Lark grammar with JSON Schemas in it: for answers that have to be calls, and
//! for arguments that have to keep to their schema.

use serde_json::{Value, json};

use super::super::{Constraint, Schema};
use super::{Tool, ToolFormat};
use crate::{Error, Result};

/// A grammar, and the schemas that it names.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolGrammar {
    /// In Lark; `@name` stands for JSON that the schema of that name allows.
    pub lark: String,
    /// The schemas.
    pub schemas: Vec<ToolSchema>,
}

/// A schema that a grammar names.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSchema {
    /// What the grammar calls it.
    pub name: String,
    /// JSON Schema.
    pub schema: Value,
    /// What errors call it: the field of the request.
    pub field: String,
}

impl From<ToolGrammar> for Constraint {
    fn from(ToolGrammar { lark, schemas }: ToolGrammar) -> Self {
        let schema = |ToolSchema { name, schema, field }| Schema { name, json: Value::to_string(&schema), field };
        let schemas = schemas.into_iter().map(schema).collect();
        Self::Lark { grammar: lark, schemas, field: "tools".to_owned() }
    }
}

/// Which calls an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    /// Text, calls, or both: as the model wants.
    Auto,
    /// At least one call and nothing else.
    Required,
    /// Calls of this function, an index into the tools, and nothing else.
    Only(usize),
}

impl ToolGrammar {
    /// The grammar of an answer; `None` where the model is free. `control` tells the id of a marker that is a control token.
    ///
    /// # Errors
    /// `bad_request` where schemas are to be kept to and the format has no JSON.
    pub fn new(
        format: ToolFormat,
        tools: &[Tool],
        choice: ToolChoice,
        is_parallel: bool,
        control: impl Fn(&str) -> Option<u32>,
    ) -> Result<Option<Self>> {
        let is_strict = tools.iter().any(|tool| tool.is_strict);
        if choice == ToolChoice::Auto && !is_strict {
            return Ok(None);
        }
        let is_json = !matches!(format, ToolFormat::FunctionGemma | ToolFormat::Gemma);
        if let Some(index) = tools.iter().position(|tool| tool.is_strict).filter(|_| !is_json) {
            let what = format!("tools[{index}].function.strict: calls in the format {} are no JSON", format.name());
            return Err(Error::BadRequest(format!("{what}, so no schema can be kept to")));
        }
        let mark = |text: &str| control(text).map_or_else(|| quoted(text), |id| format!("<[{id}]>"));
        let allowed = |index: usize| !matches!(choice, ToolChoice::Only(only) if only != index);
        let mut grammar = Self { lark: String::new(), schemas: Vec::new() };
        let mut calls = Vec::new();
        let mut rules = String::new();
        for (index, tool) in tools.iter().enumerate().filter(|(index, _)| allowed(*index)) {
            calls.push(format!("call_{index}"));
            let rule = grammar.call(format, (index, tool), is_json, &mark);
            rules.push_str(&format!("call_{index}: {rule}\n"));
        }
        let (all, more) = answer(format, is_parallel, &mark);
        grammar.lark = match choice {
            ToolChoice::Auto => {
                format!("start: TEXT | TEXT? calls\n{}", text(format, control(format.opener()).is_some()))
            }
            _ => "start: calls\n".to_owned(),
        };
        grammar.lark += &format!("calls: {all}\ncall: {}\n{rules}{more}", calls.join(" | "));
        if !is_json {
            grammar.lark += &values(format, &mark);
        }
        Ok(Some(grammar))
    }

    /// The call of one function, but for what is around calls.
    fn call(
        &mut self,
        format: ToolFormat,
        (index, tool): (usize, &Tool),
        is_json: bool,
        mark: &impl Fn(&str) -> String,
    ) -> String {
        let name = &tool.name;
        if is_json {
            let empty = || json!({ "type": "object", "properties": {}, "additionalProperties": false });
            let schema = tool.parameters.clone().unwrap_or_else(empty);
            let field = format!("tools[{index}].function.parameters");
            self.schemas.push(ToolSchema { name: format!("tool_{index}"), schema, field });
        }
        let json = |key: &str| {
            let head = quoted(&format!("{{\"name\": {}, \"{key}\": ", Value::from(name.as_str())));
            format!("{head} @tool_{index} \"}}\"")
        };
        match format {
            ToolFormat::Hermes => {
                format!("{} \"\\n\" {} \"\\n\" {}", mark("<tool_call>"), json("arguments"), mark("</tool_call>"))
            }
            ToolFormat::Llama3 => json("parameters"),
            ToolFormat::Mistral => json("arguments"),
            ToolFormat::FunctionGemma => {
                let head = quoted(&format!("call:{name}"));
                format!("{} {head} object {}", mark("<start_function_call>"), mark("<end_function_call>"))
            }
            ToolFormat::Gemma => format!("{} (argument (\", \" argument)*)? \")\"", quoted(&format!("{name}("))),
        }
    }
}

/// Calls one after the other, and further rules.
fn answer(format: ToolFormat, is_parallel: bool, mark: &impl Fn(&str) -> String) -> (String, String) {
    let list = |between: &str| match is_parallel {
        true => format!("call ({between} call)*"),
        false => "call".to_owned(),
    };
    match format {
        ToolFormat::Hermes => (list("\"\\n\""), String::new()),
        ToolFormat::Llama3 => (list("\"; \""), String::new()),
        ToolFormat::Mistral => (format!("{} \"[\" {} \"]\"", mark("[TOOL_CALLS]"), list("\", \"")), String::new()),
        ToolFormat::FunctionGemma => (list(""), String::new()),
        ToolFormat::Gemma => (format!("\"```tool_code\\n\" {} \"\\n```\"", list("\"\\n\"")), String::new()),
    }
}

/// Text before a call, or instead of one.
fn text(format: ToolFormat, is_control: bool) -> String {
    let opener = format.opener();
    match format {
        // A call begins without an opener.
        ToolFormat::Llama3 => "TEXT: /[^{](.|\\n)*/\n".to_owned(),
        _ if is_control => "TEXT: /(.|\\n)+/\n".to_owned(),
        _ => {
            let escaped = |c: char| if "\\.+*?()|[]{}^$/".contains(c) { format!("\\{c}") } else { c.to_string() };
            let opener: String = opener.chars().map(escaped).collect();
            format!("TEXT: /(.|\\n)+/ & ~/(.|\\n)*{opener}(.|\\n)*/\n")
        }
    }
}

/// Values in the notations that are no JSON.
fn values(format: ToolFormat, mark: &impl Fn(&str) -> String) -> String {
    let common = "NUMBER: /-?[0-9]{1,15}(\\.[0-9]{1,15})?/\nKEY: /[A-Za-z_][A-Za-z0-9_]{0,63}/\n";
    if format == ToolFormat::FunctionGemma {
        let quote = mark("<escape>");
        return format!(
            "object: \"{{\" (pair (\",\" pair)*)? \"}}\"\npair: KEY \":\" value\n\
             value: {quote} WORDS? {quote} | NUMBER | \"true\" | \"false\" | \"null\" | object | \"[\" (value (\",\" value)*)? \"]\"\n\
             WORDS: /[^<]+/\n{common}"
        );
    }
    format!(
        "argument: KEY \"=\" value\n\
         value: STRING | NUMBER | \"True\" | \"False\" | \"None\" | \"[\" (value (\", \" value)*)? \"]\"\n\
         STRING: /\"([^\"\\\\\\n]|\\\\[\"\\\\nt])*\"/\n{common}"
    )
}

/// A text as Lark writes it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
