//! `memory`: what keys and values take, of a model file or of numbers.

use crate::output::{self, grouped, printable};
use clap::ArgGroup;
use pagewise::model::{KV_FORMATS, KvMemory, KvShape, ModelConfig};
use pagewise::{Error, Result};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Calculate the memory of the KV cache, of a model file or of a model's numbers.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("shape").required(true).multiple(false).args(["model", "layers"]))]
pub(crate) struct Args {
    /// GGUF file, or the first part of a split one.
    model: Option<PathBuf>,
    /// Layers, sliding-window ones included.
    #[arg(long, requires_all = ["kv_heads", "head_dim", "context"])]
    layers: Option<usize>,
    /// Heads of keys and values.
    #[arg(long, requires = "layers")]
    kv_heads: Option<usize>,
    /// Values of a head.
    #[arg(long, requires = "layers")]
    head_dim: Option<usize>,
    /// Layers that see only a window.
    #[arg(long, requires_all = ["layers", "window"])]
    sliding_layers: Option<usize>,
    /// Tokens that such a layer sees.
    #[arg(long, value_name = "TOKENS", requires = "sliding_layers")]
    window: Option<usize>,
    /// Tokens; of a model file, if not given, as many as it was trained for.
    #[arg(long, value_name = "TOKENS")]
    context: Option<usize>,
    /// Format of keys and values.
    #[arg(long, default_value = "f16", value_parser = KV_FORMATS)]
    kv: String,
    /// Contexts of that length at once, nothing shared.
    #[arg(long, default_value_t = 1)]
    sequences: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (name, shape, context) = shape(args)?;
    let memory = shape.memory(&args.kv, context, args.sequences)?;
    if args.json {
        output::print_json(&to_json(args, &shape, context, &memory));
    } else {
        output::print(&to_text(args, &name, &shape, context, &memory)?);
    }
    Ok(())
}

/// The model's name, its numbers and the context.
fn shape(args: &Args) -> Result<(String, KvShape, usize)> {
    if let Some(path) = &args.model {
        let (_, gguf) = output::open_model(path)?;
        let config = ModelConfig::from_gguf(&gguf)?;
        let context = args.context.unwrap_or(config.context_length);
        return Ok((printable(&config.name), KvShape::of(&config), context));
    }
    let given = |value: Option<usize>, flag: &str| value.ok_or_else(|| Error::BadRequest(format!("{flag} is needed")));
    let layers = given(args.layers, "--layers")?;
    let sliding_layers = args.sliding_layers.unwrap_or(0);
    let full_layers = layers.checked_sub(sliding_layers).ok_or_else(|| {
        Error::BadRequest(format!("{sliding_layers} sliding-window layers, of {layers} layers in all"))
    })?;
    let shape = KvShape {
        full_layers,
        sliding_layers,
        window: args.window.unwrap_or(0),
        kv_heads: given(args.kv_heads, "--kv-heads")?,
        head_dim: given(args.head_dim, "--head-dim")?,
    };
    Ok(("KV cache".to_owned(), shape, given(args.context, "--context")?))
}

fn to_json(args: &Args, shape: &KvShape, context: usize, memory: &KvMemory) -> Value {
    json!({
        "full_layers": shape.full_layers,
        "sliding_layers": shape.sliding_layers,
        "window": shape.window,
        "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "context": context,
        "sequences": args.sequences,
        "kv": args.kv,
        "memory": memory,
    })
}

fn to_text(args: &Args, name: &str, shape: &KvShape, context: usize, memory: &KvMemory) -> Result<String> {
    let mut text = format!("{name}: {} layers", shape.full_layers + shape.sliding_layers);
    if shape.sliding_layers > 0 {
        let (layers, window) = (shape.sliding_layers, grouped(shape.window as u64));
        text.push_str(&format!(" ({layers} with a window of {window} tokens)"));
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, ", {} KV heads of {} values", shape.kv_heads, shape.head_dim);
    let each = if args.sequences == 1 { String::new() } else { format!("{} times ", grouped(args.sequences as u64)) };
    let _ = writeln!(text, "{each}{} tokens\n", grouped(context as u64));
    for format in KV_FORMATS {
        let memory = shape.memory(format, context, args.sequences)?;
        let mark = if format == args.kv { "*" } else { " " };
        let [total, token] = [memory.total_bytes, memory.bytes_per_token].map(binary_size);
        let _ = write!(text, "{mark} {format:5} {total:>12} {token:>12} a token");
        if shape.sliding_layers > 0 {
            let beyond = binary_size(memory.bytes_per_token_beyond_window);
            let _ = write!(text, ", {beyond} beyond the window");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "\n{}: {} bytes", args.kv, grouped(memory.total_bytes));
    Ok(text)
}

/// Bytes in the power of 1024 that fits: caches are sized in those.
fn binary_size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
    let mut size = bytes as f64;
    let mut unit = 0;
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    while size >= 1024.0 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{size:.2} {}", units[unit]) }
}
