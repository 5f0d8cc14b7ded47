//! Conversations with tools as prompts: through the model's own template where it knows tools, else in a way that any
//! template takes, with the functions in the system message and calls and results as text.

use serde_json::{Map, Value, json};

use super::super::{ChatTemplate, RenderOptions};
use super::ids::short_id;
use super::{ToolFormat, format_tools};
use crate::Result;

/// What a template knows of tools: found out by rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolSupport {
    /// It shows the model the functions.
    pub takes_tools: bool,
    /// It shows calls and their results.
    pub takes_results: bool,
    /// It wants arguments as text, not as an object.
    wants_text: bool,
}

impl ToolSupport {
    /// Finds out what a template does with tools.
    pub(in super::super) fn of(template: &ChatTemplate) -> Self {
        let user = json!({ "role": "user", "content": "question" });
        let parameters = json!({ "type": "object", "properties": { "a": { "type": "string", "description": "b" } } });
        let function = json!({ "name": "known_function", "description": "c", "parameters": parameters });
        let tools = json!([{ "type": "function", "function": function }]);
        let render = |messages: Value| template.render(&messages, &with_tools(&tools, &RenderOptions::default()));
        let shows = |messages: Value, texts: &[&str]| {
            render(messages).is_ok_and(|text| texts.iter().all(|wanted| text.contains(wanted)))
        };
        let exchange = |arguments: Value| {
            let function = json!({ "name": "called_function", "arguments": arguments });
            let call = json!({ "id": "abcdefgh1", "type": "function", "function": function });
            let result =
                json!({ "role": "tool", "tool_call_id": "abcdefgh1", "name": "called_function", "content": "output" });
            json!([user.clone(), { "role": "assistant", "content": "", "tool_calls": [call] }, result])
        };
        let wanted = ["called_function", "some_key", "some_value", "output"];
        let takes_objects = shows(exchange(json!({ "some_key": "some_value" })), &wanted);
        let takes_texts = || shows(exchange(json!("{\"some_key\": \"some_value\"}")), &wanted);
        let wants_text = !takes_objects && takes_texts();
        Self {
            takes_tools: shows(json!([user.clone()]), &["known_function"]),
            takes_results: takes_objects || wants_text,
            wants_text,
        }
    }
}

/// Renders a conversation that may have tools, in OpenAI's shape: `tools` are what the model is told of, `messages` may have
/// calls (`tool_calls`, their arguments as text) and results (role `tool`).
///
/// # Errors
/// As [`ChatTemplate::render`].
pub fn render_chat(
    template: &ChatTemplate,
    messages: &Value,
    tools: Option<&Value>,
    format: ToolFormat,
    options: &RenderOptions,
) -> Result<String> {
    let list = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let tools = tools.filter(|tools| tools.as_array().is_some_and(|tools| !tools.is_empty()));
    if tools.is_none() && !list.iter().any(|message| is_result(message) || has_calls(message)) {
        return template.render(messages, options);
    }
    let support = template.tool_support();
    if support.takes_tools && support.takes_results {
        let messages = adapted(list, format, support.wants_text);
        let options = tools.map_or_else(|| options.clone(), |tools| with_tools(tools, options));
        return template.render(&messages, &options);
    }
    template.render(&in_words(list, tools, format), options)
}

fn with_tools(tools: &Value, options: &RenderOptions) -> RenderOptions {
    let mut extra = options.extra.clone();
    extra.insert("tools".to_owned(), tools.clone());
    RenderOptions { extra, ..options.clone() }
}

fn is_result(message: &Value) -> bool {
    message["role"] == "tool"
}

fn has_calls(message: &Value) -> bool {
    message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty())
}

/// The name of the function whose call has an id.
fn called<'a>(messages: &'a [Value], id: &Value) -> Option<&'a Value> {
    let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    calls.into_iter().rev().find(|call| &call["id"] == id).map(|call| &call["function"]["name"])
}

/// Messages as templates that know tools want them: arguments as objects, results with the name of their function.
fn adapted(messages: &[Value], format: ToolFormat, wants_text: bool) -> Value {
    let shorten = |id: &mut Value| {
        if let (ToolFormat::Mistral, Some(text)) = (format, id.as_str()) {
            *id = short_id(text).into();
        }
    };
    let adapt = |message: &Value| {
        let mut message = message.clone();
        if is_result(&message)
            && message["name"].is_null()
            && let Some(name) = called(messages, &message["tool_call_id"])
        {
            message["name"] = name.clone();
        }
        if is_result(&message) {
            shorten(&mut message["tool_call_id"]);
        }
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            shorten(&mut call["id"]);
            let arguments = &mut call["function"]["arguments"];
            if let (false, Some(Ok(object))) = (wants_text, arguments.as_str().map(serde_json::from_str::<Map<_, _>>)) {
                *arguments = Value::Object(object);
            }
        }
        message
    };
    messages.iter().map(adapt).collect()
}

/// Messages for templates that know nothing of tools.
fn in_words(messages: &[Value], tools: Option<&Value>, format: ToolFormat) -> Value {
    let mut all: Vec<Value> = Vec::with_capacity(messages.len() + 1);
    let mut was_result = false;
    for message in messages {
        let content = message["content"].as_str().unwrap_or_default();
        if is_result(message) {
            let result = format.write_result(content);
            match all.last_mut().filter(|_| was_result) {
                // Many templates want the roles to take turns.
                Some(last) => {
                    last["content"] = (last["content"].as_str().unwrap_or_default().to_owned() + "\n" + &result).into()
                }
                None => all.push(json!({ "role": "user", "content": result })),
            }
        } else if has_calls(message) {
            let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
                let function = &call["function"];
                format.write(
                    function["name"].as_str().unwrap_or_default(),
                    function["arguments"].as_str().unwrap_or("{}"),
                )
            });
            let calls = calls.collect::<Vec<_>>().join(format.between());
            let between = if content.is_empty() { "" } else { "\n" };
            all.push(json!({ "role": "assistant", "content": format!("{content}{between}{calls}") }));
        } else {
            all.push(message.clone());
        }
        was_result = is_result(message);
    }
    if let Some(tools) = tools {
        let told = format_tools(format, tools);
        match all.first_mut().filter(|first| first["role"] == "system") {
            Some(first) => {
                first["content"] = format!("{}\n\n{told}", first["content"].as_str().unwrap_or_default()).into()
            }
            None => all.insert(0, json!({ "role": "system", "content": told })),
        }
    }
    Value::Array(all)
}
