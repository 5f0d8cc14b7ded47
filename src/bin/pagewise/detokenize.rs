//! `detokenize`: ids to text.

use crate::output;
use pagewise::text::Tokenizer;
use pagewise::{Error, Result};
use serde_json::json;
use std::path::PathBuf;

/// Turn token ids into text, as JSON: `{"text": "..."}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GGUF file, or the first part of a split one.
    model: PathBuf,
    /// Ids, separated by commas or spaces; a JSON array will do.
    #[arg(required = true, allow_hyphen_values = true)]
    ids: Vec<String>,
    /// Leave out special tokens, such as `<|im_end|>`.
    #[arg(long)]
    skip_special: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (_, gguf) = output::open_model(&args.model)?;
    let tokenizer = Tokenizer::from_metadata(&gguf.metadata)?;
    let ids = parse_ids(&args.ids.join(","))?;
    if let Some(id) = ids.iter().find(|&&id| id as usize >= tokenizer.vocab_size()) {
        return Err(Error::BadRequest(format!("id {id}: the vocabulary has {} tokens", tokenizer.vocab_size())));
    }
    output::print_line(&json!({ "text": tokenizer.decode(&ids, args.skip_special) }));
    Ok(())
}

/// Ids such as `1,2,3`, `1 2 3` or `[1, 2, 3]`.
fn parse_ids(text: &str) -> Result<Vec<u32>> {
    let text = text.trim();
    let text = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let words = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    words
        .map(|word| word.parse().map_err(|_| Error::BadRequest(format!("{word:?} is not a token id; use 1,2,3"))))
        .collect()
}
