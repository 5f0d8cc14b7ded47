//! `template`: messages to the prompt that the model's chat template makes of them.

use crate::output;
use pagewise::gguf::Gguf;
use pagewise::text::{ChatTemplate, RenderOptions, Tokenizer};
use pagewise::{Error, Result};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Render messages with the model's chat template.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GGUF file, or the first part of a split one.
    model: PathBuf,
    /// JSON file with a list of messages, or with an object of `messages` and further variables of the template, such
    /// as `tools` or `add_generation_prompt`; `-` reads standard input.
    messages: PathBuf,
    /// Do not end with the opening of an answer.
    #[arg(long)]
    no_generation_prompt: bool,
    /// Print JSON: `{"text": "...", "ids": [...]}`.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (_, gguf) = output::open_model(&args.model)?;
    let text = render(&gguf, &args.messages, !args.no_generation_prompt)?;
    if args.json {
        let ids = Tokenizer::from_metadata(&gguf.metadata)?.encode_prompt(&text)?;
        output::print_line(&json!({ "text": text, "ids": ids }));
    } else {
        output::print(&text);
    }
    Ok(())
}

/// The prompt that a model's template makes of the messages in a file.
///
/// # Errors
/// `unsupported_model` without a template, and those of [`read_messages`] and of rendering.
pub(crate) fn render(gguf: &Gguf, messages: &Path, add_generation_prompt: bool) -> Result<String> {
    let template = of_model(gguf)?;
    let (messages, extra) = read_messages(messages)?;
    template.render(&messages, &RenderOptions { add_generation_prompt, now_unix_s: now_unix_s(), extra })
}

/// The model's template.
///
/// # Errors
/// `unsupported_model` when it has none or one that cannot be used.
pub(crate) fn of_model(gguf: &Gguf) -> Result<ChatTemplate> {
    let template = ChatTemplate::from_metadata(&gguf.metadata)?;
    template.ok_or_else(|| Error::UnsupportedModel("the model has no chat template".to_owned()))
}

/// Now, for templates that name the date.
pub(crate) fn now_unix_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs()).cast_signed()
}

/// Messages from a file, and the variables beside them.
///
/// # Errors
/// `bad_request` when the file cannot be read, or holds neither a list nor an object with one.
fn read_messages(path: &Path) -> Result<(Value, Map<String, Value>)> {
    let name = path.display();
    let text =
        if path == Path::new("-") { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(path) };
    let text = text.map_err(|error| Error::BadRequest(format!("cannot read `{name}`: {error}")))?;
    let bad = |why: String| Error::BadRequest(format!("`{name}`: {why}"));
    let missing = || bad("a list of messages is needed, or an object with `messages`".to_owned());
    match serde_json::from_str(&text).map_err(|error| bad(error.to_string()))? {
        messages @ Value::Array(_) => Ok((messages, Map::new())),
        Value::Object(mut all) => {
            let messages = all.shift_remove("messages").filter(Value::is_array).ok_or_else(missing)?;
            Ok((messages, all))
        }
        _ => Err(missing()),
    }
}
