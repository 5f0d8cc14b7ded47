//! `explain`: why a prompt cannot reuse an earlier one's cache.

use crate::output::{self, printable};
use pagewise::doctor::{self, Explanation, Side};
use pagewise::{Error, Result};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Explain where and why a prompt parts from an earlier one, and what to move so that a prefix cache hits.
///
/// A file holds a list of messages, or a request: an object with `messages` or `prompt`, and optionally `system`,
/// `tools`, `model`, `template` and `token_counts`. What is not JSON is a prompt as plain text.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The earlier prompt.
    previous: PathBuf,
    /// The prompt that was to continue it; one of both may be `-`, standard input.
    next: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if [&args.previous, &args.next].iter().all(|path| path.as_path() == Path::new("-")) {
        return Err(Error::BadRequest("only one of both prompts can be standard input, `-`".to_owned()));
    }
    let explanation = doctor::explain(&read(&args.previous)?, &read(&args.next)?)?;
    if args.json {
        output::print_json(&json!(explanation));
    } else {
        output::print(&to_text(&explanation));
    }
    Ok(())
}

/// JSON, or plain text where it is none. A file called `.json` has to be JSON.
fn read(path: &Path) -> Result<Value> {
    let name = path.display();
    let text =
        if path == Path::new("-") { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(path) };
    let text = text.map_err(|error| Error::BadRequest(format!("cannot read `{name}`: {error}")))?;
    // Some editors begin a file with a mark of its encoding, which is no part of the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    match serde_json::from_str(text) {
        Ok(value @ (Value::Array(_) | Value::Object(_))) => Ok(value),
        Err(error) if is_json => Err(Error::BadRequest(format!("`{name}`: {error}"))),
        Ok(value) if is_json => Ok(value),
        _ => Ok(Value::from(text)),
    }
}

fn to_text(found: &Explanation) -> String {
    let mut text = format!("{}\n", printable(&found.summary));
    if let (Some(previous), Some(next)) = (&found.previous, &found.next) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  - {}\n  + {}\n", side(previous), side(next));
    }
    if !found.also.is_empty() {
        let also: Vec<String> = found.also.iter().map(|cause| name(&json!(cause))).collect();
        let _ = writeln!(text, "\nBehind it, also: {}.", also.join(", "));
    }
    if let Some(advice) = &found.advice {
        let _ = writeln!(text, "\n{advice}");
    }
    text
}

/// The difference between its surroundings.
fn side(side: &Side) -> String {
    format!("{}[{}]{}", printable(&side.before), printable(&side.text), printable(&side.after))
}

fn name(cause: &Value) -> String {
    cause.as_str().unwrap_or_default().replace('_', " ")
}
