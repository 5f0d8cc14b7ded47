//! What an answer with calls may look like, as a Lark grammar with JSON Schemas in it: for answers that have to be calls, and
//! for arguments that have to keep to their schema.

use serde_json::{Value, json};

use super::super::{Constraint, Schema};
use super::notation::{Notation, quoted};
use super::schema_rules::SchemaRules;
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
    /// Arguments of a strict function keep to its schema, others are any object.
    ///
    /// # Errors
    /// `bad_request` that names the place in a schema that cannot be kept to.
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
        let mark = |text: &str| control(text).map_or_else(|| quoted(text), |id| format!("<[{id}]>"));
        let allowed = |index: usize| !matches!(choice, ToolChoice::Only(only) if only != index);
        let notation = Notation::new(format, &mark);
        let mut grammar = Self { lark: String::new(), schemas: Vec::new() };
        let mut calls = Vec::new();
        let mut rules = String::new();
        for (index, tool) in tools.iter().enumerate().filter(|(index, _)| allowed(*index)) {
            calls.push(format!("call_{index}"));
            let arguments = match &notation {
                Some(notation) => grammar.plain_arguments(notation, (index, tool), &mut rules)?,
                None => grammar.json_arguments((index, tool))?,
            };
            rules.push_str(&format!("call_{index}: {}\n", call(format, &tool.name, &arguments, &mark)));
        }
        let opener = (format != ToolFormat::Llama3).then(|| mark(format.opener()));
        let opener = opener.as_deref().unwrap_or("\"\"");
        grammar.lark = match choice {
            ToolChoice::Auto => beginning(format, control(format.opener()).is_some()),
            _ => "start: open calls\n".to_owned(),
        };
        let calls = calls.join(" | ");
        grammar.lark += &format!("open: {opener}\ncalls: {}\ncall: {calls}\n{rules}", answer(format, is_parallel));
        grammar.lark += &notation.map_or_else(String::new, |notation| notation.rules());
        Ok(Some(grammar))
    }

    /// An answer that is either calls, as this grammar of answers without text has them, or what `answer` says.
    pub fn or(self, answer: Constraint) -> Constraint {
        Constraint::AnyOf { parts: vec![answer, self.into()] }
    }

    /// The arguments of a call in JSON.
    fn json_arguments(&mut self, (index, tool): (usize, &Tool)) -> Result<String> {
        let field = field(index);
        let schema = match &tool.parameters {
            _ if !tool.is_strict => json!({ "type": "object" }),
            None => json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            Some(schema) => of_objects(schema, &field)?,
        };
        let name = format!("tool_{index}");
        let arguments = format!("@{name}");
        self.schemas.push(ToolSchema { name, schema, field });
        Ok(arguments)
    }

    /// The arguments of a call in a notation that is no JSON.
    fn plain_arguments(
        &mut self,
        notation: &Notation,
        (index, tool): (usize, &Tool),
        rules: &mut String,
    ) -> Result<String> {
        if !tool.is_strict {
            return Ok(notation.any_arguments().to_owned());
        }
        let none = || json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let schema = tool.parameters.clone().unwrap_or_else(none);
        let of_tool = SchemaRules::new(notation, &schema, format!("tool_{index}"), field(index));
        let (arguments, more, schemas) = of_tool.arguments()?;
        rules.push_str(&more);
        self.schemas.extend(schemas);
        Ok(arguments)
    }
}

/// What errors call the schema of a tool.
fn field(index: usize) -> String {
    format!("tools[{index}].function.parameters")
}

/// A schema that allows only objects, as arguments are.
fn of_objects(schema: &Value, field: &str) -> Result<Value> {
    let mut schema = schema.clone();
    let (Value::Object(fields), object) = (&mut schema, Value::from("object")) else { return Ok(schema) };
    let is_object = match fields.get("type") {
        None => true,
        Some(Value::Array(types)) => types.contains(&object),
        Some(one) => *one == object,
    };
    if !is_object {
        return Err(Error::BadRequest(format!("{field}/type: arguments are an object")));
    }
    fields.insert("type".to_owned(), object);
    Ok(schema)
}

/// The call of a function, but for what is around calls and opens them.
fn call(format: ToolFormat, name: &str, arguments: &str, mark: &impl Fn(&str) -> String) -> String {
    let json = || format!("{} {arguments} {}", quoted(&format.json_head(name)), quoted("}"));
    match format {
        ToolFormat::Hermes => format!("\"\\n\" {} \"\\n\" {}", json(), mark("</tool_call>")),
        ToolFormat::Llama3 | ToolFormat::Mistral => json(),
        ToolFormat::FunctionGemma => {
            format!("{} {arguments} {}", quoted(&format!("call:{name}")), mark("<end_function_call>"))
        }
        ToolFormat::Gemma => format!("{} {arguments} {}", quoted(&format!("{name}(")), quoted(")")),
    }
}

/// Calls one after the other, behind what opens the first.
fn answer(format: ToolFormat, is_parallel: bool) -> String {
    let list = |between: &str| match is_parallel {
        true => format!("call ({between} call)*"),
        false => "call".to_owned(),
    };
    match format {
        ToolFormat::Hermes => list("\"\\n\" open"),
        ToolFormat::Llama3 => list("\"; \""),
        ToolFormat::Mistral => format!("\"[\" {} \"]\"", list("\", \"")),
        ToolFormat::FunctionGemma => list("open"),
        ToolFormat::Gemma => format!("\"\\n\" {} \"\\n```\"", list("\"\\n\"")),
    }
}

/// How an answer begins that has text, calls or both.
fn beginning(format: ToolFormat, is_control: bool) -> String {
    match format {
        // A call begins without an opener, and nothing says behind a text that one begins.
        ToolFormat::Llama3 => "start: TEXT | calls\nTEXT: /[^{](.|\\n)*/\n".to_owned(),
        _ if is_control => "start: TEXT | TEXT? open calls\nTEXT: /(.|\\n)+/\n".to_owned(),
        // The longest word is taken: a text must end before an opener, or with it, but not within.
        _ => {
            let opener = format.opener();
            let escaped = |c: char| if "\\.+*?()|[]{}^$/".contains(c) { format!("\\{c}") } else { c.to_string() };
            let escaped: String = opener.chars().map(escaped).collect();
            format!(
                "start: TEXT | OPENED calls\nOPENED: PLAIN {}\nTEXT: /(.|\\n)+/ & PLAIN\n\
                 PLAIN: /(.|\\n)*/ & ~/(.|\\n)*{escaped}(.|\\n)*/\n",
                quoted(opener)
            )
        }
    }
}
