//! Chat templates: a list of messages to the text that the model was trained on.
//!
//! A template is a program that came with the file. It runs in a sandbox (`minijinja`) that reaches nothing, and on
//! a budget that bounds the time it takes and the memory it fills.

use std::cell::OnceCell;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, Value, context};
use serde_json::Map;

use super::ToolSupport;
use super::template_functions;
use super::template_limits;
use super::template_values;
use crate::gguf::Metadata;
use crate::{Error, Result};

/// What a rendering may use up: about one unit an instruction and one per 64 bytes of text it makes.
const FUEL: u64 = 1_000_000;
/// How deep macros, loops and blocks may nest; a page's stack is small.
const MAX_DEPTH: usize = 100;
/// Bytes of a template's source.
const MAX_SOURCE_BYTES: usize = 1 << 20;
/// Bytes of a rendered prompt.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

const NAME: &str = "chat_template";

/// A model's chat template, parsed.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    /// `bos_token`, `eos_token` and the like, where the model has them.
    tokens: Vec<(&'static str, String)>,
    /// Once it was asked for.
    tool_support: OnceCell<ToolSupport>,
}

/// What a template sees besides the messages.
#[derive(Debug, Clone, Default)]
pub struct RenderOptions {
    /// End the text with the opening of an answer.
    pub add_generation_prompt: bool,
    /// What `strftime_now` says: seconds since 1970, in the time zone that the text should name.
    pub now_unix_s: i64,
    /// Variables for this template, such as `tools` or `enable_thinking`; they win over all others.
    pub extra: Map<String, serde_json::Value>,
}

impl ChatTemplate {
    /// Reads the chat template from a model's metadata; `None` if it has none.
    ///
    /// # Errors
    /// `unsupported_model` when the template is not valid Jinja; `corrupt_model` when its tokens are out of range.
    pub fn from_metadata(metadata: &Metadata) -> Result<Option<Self>> {
        let Some(source) = metadata.opt_str("tokenizer.chat_template")? else { return Ok(None) };
        let tokens = metadata.strings("tokenizer.ggml.tokens")?;
        let mut named = Vec::new();
        for (name, key) in
            [("bos_token", "bos"), ("eos_token", "eos"), ("unk_token", "unknown"), ("pad_token", "padding")]
        {
            let key = format!("tokenizer.ggml.{key}_token_id");
            let Some(id) = metadata.opt_u32(&key)? else { continue };
            let text = tokens
                .get(id as usize)
                .ok_or_else(|| Error::CorruptModel(format!("{key}: token {id} of a vocabulary of {}", tokens.len())))?;
            named.push((name, text.to_owned()));
        }
        Self::new(source, named).map(Some)
    }

    /// Parses a template. `tokens` are variables that every rendering sees, such as `bos_token`.
    ///
    /// # Errors
    /// `unsupported_model` when it is not valid Jinja or unreasonably long.
    pub fn new(source: &str, tokens: Vec<(&'static str, String)>) -> Result<Self> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(Error::UnsupportedModel(format!(
                "the chat template has {} bytes; {MAX_SOURCE_BYTES} are allowed",
                source.len()
            )));
        }
        template_limits::check(source)?;
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(unusable)?);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(MAX_DEPTH);
        template_functions::add_to(&mut environment);
        template_values::add_to(&mut environment);
        let source_to_run = template_values::with_kept_values(&without_generation_tags(source));
        environment.add_template_owned(NAME, source_to_run).map_err(unusable)?;
        Ok(Self { environment, source: source.to_owned(), tokens, tool_support: OnceCell::new() })
    }

    /// The template as the file has it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What it knows of tools.
    pub fn tool_support(&self) -> ToolSupport {
        *self.tool_support.get_or_init(|| ToolSupport::of(self))
    }

    /// Renders messages. Pass the result to [`super::Tokenizer::encode_prompt`], which takes care of a BOS that the
    /// template already wrote.
    ///
    /// # Errors
    /// `bad_request` when the template refuses the messages (with its own words), cannot make sense of them, takes
    /// too long or writes too much; `unsupported_model` when it uses something that there is not.
    pub fn render(&self, messages: &serde_json::Value, options: &RenderOptions) -> Result<String> {
        // A template may ask whether these are none, so they are always there.
        let given = context! {
            messages => Value::from(Serde(messages)),
            add_generation_prompt => options.add_generation_prompt,
            tools => Value::from(()),
            documents => Value::from(()),
            ..template_functions::clock(options.now_unix_s)
        };
        let tokens = Value::from_pairs(self.tokens.iter().map(|(name, text)| (*name, Value::from(text.as_str()))));
        let extra = Value::from(Serde(&options.extra));
        let template = self.environment.get_template(NAME).map_err(unusable)?;
        let mut text = Bounded::default();
        let rendered = template.render_captured_to(context! { ..extra, ..given, ..tokens }, &mut text);
        if text.full {
            return Err(Error::BadRequest(format!(
                "the chat template wrote more than the {MAX_OUTPUT_BYTES} bytes allowed"
            )));
        }
        rendered.map_err(|error| refused(&error)).map(drop)?;
        String::from_utf8(text.bytes).map_err(|_| Error::BadRequest("the chat template did not write text".to_owned()))
    }
}

/// Output that refuses to grow beyond the limit.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    full: bool,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_OUTPUT_BYTES {
            self.full = true;
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn unusable(error: minijinja::Error) -> Error {
    Error::UnsupportedModel(format!("the chat template is not valid: {error}"))
}

fn refused(error: &minijinja::Error) -> Error {
    if let Some(message) = template_functions::raised(error) {
        return Error::BadRequest(format!("the chat template refuses these messages: {message}"));
    }
    match error.kind() {
        ErrorKind::OutOfFuel => {
            Error::BadRequest(format!("rendering the chat template took more than the {FUEL} steps allowed"))
        }
        ErrorKind::UnknownFilter | ErrorKind::UnknownFunction | ErrorKind::UnknownTest | ErrorKind::SyntaxError => {
            Error::UnsupportedModel(format!("the chat template needs something that is not supported: {error}"))
        }
        _ => Error::BadRequest(format!("the chat template cannot render these messages: {error}")),
    }
}

/// Turns `{% generation %}` blocks, which mark an answer for training and show nothing, into blocks that are always
/// rendered; the space around them is trimmed as before.
fn without_generation_tags(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(len) = rest[start..].find("%}") else { break };
        let tag = &rest[start + 2..start + len];
        let word = tag.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim();
        let replacement = match word {
            "generation" => Some("if true"),
            "endgeneration" => Some("endif"),
            _ => None,
        };
        text.push_str(&rest[..start + 2]);
        match replacement {
            Some(replacement) => text.push_str(&tag.replace(word, replacement)),
            None => text.push_str(tag),
        }
        rest = &rest[start + len..];
    }
    text.push_str(rest);
    text
}
