//! `tokenize`: text to ids.

use crate::output;
use pagewise::Result;
use pagewise::text::Tokenizer;
use serde_json::json;
use std::path::PathBuf;

/// Turn text into token ids, as JSON: `{"ids": [...], "pieces": [...]}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GGUF file, or the first part of a split one.
    model: PathBuf,
    /// The text.
    text: String,
    /// Read the texts of special tokens, such as `<|im_end|>`, as those tokens.
    #[arg(long)]
    special: bool,
    /// Put BOS before and EOS after, as far as the model wants them.
    #[arg(long)]
    add_special: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (_, gguf) = output::open_model(&args.model)?;
    let tokenizer = Tokenizer::from_metadata(&gguf.metadata)?;
    let ids = tokenizer.encode(&args.text, args.add_special, args.special)?;
    let pieces: Vec<String> = ids.iter().filter_map(|&id| tokenizer.token_bytes(id)).map(lossy).collect();
    output::print_line(&json!({ "ids": ids, "pieces": pieces }));
    Ok(())
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
