//! What a model is told of functions where its template says nothing of them.

use serde_json::Value;

use super::ToolFormat;

/// The functions, and how to call them. `tools` is a list in OpenAI's shape.
pub(super) fn format_tools(format: ToolFormat, tools: &Value) -> String {
    let tools = tools.as_array().into_iter().flatten();
    let lines = tools.map(|tool| tool["function"].to_string()).collect::<Vec<_>>().join("\n");
    let arguments = "{\"key\": \"value\"}";
    let example = format.write("function_name", arguments);
    let several = match format {
        ToolFormat::Llama3 => "Several calls have a semicolon between them.",
        ToolFormat::Mistral => "Several calls are several objects in the list.",
        _ => "Several calls follow each other.",
    };
    let result = format.write_result("…");
    format!(
        "You can call these functions, one a line:\n<tools>\n{lines}\n</tools>\n\
         Write a call exactly like this, and nothing behind it:\n{example}\n\
         {several} What a call returned comes back like this:\n{result}\n\
         Answer directly where no call helps."
    )
}
