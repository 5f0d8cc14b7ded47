//! `logits`: what the model says of given tokens, before sampling.

use crate::device::{self, DeviceArgs, MemoryArgs, NativeModel};
use crate::output::{self, printable};
use pagewise::engine::{Evaluation, evaluate};
use pagewise::model::{Forward, MIN_CONTEXT_LENGTH};
use pagewise::text::Tokenizer;
use pagewise::{Error, Result};
use pollster::block_on;
use std::fmt::Write;
use std::path::PathBuf;

/// Tokens shown of each position in the text output.
const NUM_SHOWN: usize = 10;

/// Compute the logits after given tokens.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GGUF file, or the first part of a split one.
    model: PathBuf,
    /// Token ids from position 0 on.
    #[arg(long, value_name = "ID,...", value_delimiter = ',', required = true)]
    ids: Vec<u32>,
    /// Positions whose logits, those after the token there, are wanted; all by default.
    #[arg(long, value_name = "POSITION,...", value_delimiter = ',')]
    positions: Option<Vec<usize>>,
    /// Tokens computed at a time; as many as the adapter takes by default.
    #[arg(long, value_name = "TOKENS")]
    chunk: Option<usize>,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shape of `logits`: [positions, V].
#[derive(serde::Serialize)]
struct Report {
    positions: Vec<usize>,
    logits: Vec<Vec<f32>>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let ids = &args.ids;
    let positions = args.positions.clone().unwrap_or_else(|| (0..ids.len()).collect());
    let opened = device::open(&args.model)?;
    let gguf = &opened.1;
    let memory = args.memory.with_context_for(ids.len(), MIN_CONTEXT_LENGTH, gguf)?;
    let mut model = NativeModel::load(&opened, &args.device, &memory.options())?;
    let chunk = args.chunk.unwrap_or(model.limits().max_tokens);
    let mut ascending = positions.clone();
    ascending.sort_unstable();
    ascending.dedup();
    let sequence = Evaluation { ids: ids.clone(), positions: ascending.clone() };
    let rows = block_on(evaluate(&mut model, &[sequence], chunk))?.pop().unwrap_or_default();
    let row = |position| ascending.binary_search(position).ok().and_then(|index| rows.get(index)).cloned();
    let logits: Option<Vec<_>> = positions.iter().map(row).collect();
    let logits = logits.ok_or_else(|| Error::WrongResult("a row of logits is missing".into()))?;
    let report = Report { positions, logits };
    if args.json {
        let text = serde_json::to_string(&report).map_err(|error| Error::WrongResult(error.to_string()))?;
        output::print(&(text + "\n"));
    } else {
        let tokenizer = Tokenizer::from_metadata(&gguf.metadata)?;
        output::print(&to_text(&report, ids, &tokenizer));
    }
    Ok(())
}

/// A table of the largest logits of each position.
fn to_text(report: &Report, ids: &[u32], tokenizer: &Tokenizer) -> String {
    let shown = |id: u32| format!("{id:>7}  {}", printable(tokenizer.token_text(id).unwrap_or("?")));
    let mut text = String::new();
    for (&position, logits) in report.positions.iter().zip(&report.logits) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "position {position}, after {}", shown(ids[position]).trim_start());
        let mut best: Vec<(u32, f32)> = (0..).zip(logits.iter().copied()).collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1));
        for &(id, logit) in best.iter().take(NUM_SHOWN) {
            let _ = writeln!(text, "  {logit:>10.4} {}", shown(id));
        }
    }
    text
}
