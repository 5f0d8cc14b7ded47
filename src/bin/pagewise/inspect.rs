//! `inspect`: what is in a model file. Reads its header only.

use crate::output::{self, printable};
use pagewise::Result;
use pagewise::gguf::{Array, Gguf, TensorInfo, Value};
use pagewise::quant::Format;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Elements shown of an array.
const ARRAY_HEAD: usize = 8;
/// Characters shown of a string in the text output.
const STRING_HEAD: usize = 80;

/// Show what a model file contains.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GGUF file, or the first part of a split one.
    model: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (source, gguf) = output::open_model(&args.model)?;
    let num_parts = pagewise::gguf::ByteSource::num_parts(&source);
    if args.json {
        output::print_json(&to_json(&gguf, num_parts));
    } else {
        output::print(&to_text(&gguf, num_parts));
    }
    Ok(())
}

/// Tensors, weights and bytes of one format.
struct Share {
    format: Format,
    num_tensors: usize,
    num_elements: u64,
    size_bytes: u64,
}

fn num_elements(tensor: &TensorInfo) -> u64 {
    tensor.row_elements() as u64 * tensor.num_rows() as u64
}

/// The formats that occur, largest share of bytes first.
fn shares(gguf: &Gguf) -> Vec<Share> {
    let share = |format| {
        let tensors = || gguf.tensors.iter().filter(|tensor| tensor.format == format);
        Share {
            format,
            num_tensors: tensors().count(),
            num_elements: tensors().map(num_elements).sum(),
            size_bytes: tensors().map(|tensor| tensor.size_bytes).sum(),
        }
    };
    let mut shares: Vec<Share> = Format::ALL.into_iter().map(share).filter(|share| share.num_tensors > 0).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.size_bytes));
    shares
}

fn to_json(gguf: &Gguf, num_parts: usize) -> Json {
    let metadata: serde_json::Map<String, Json> =
        gguf.metadata.iter().map(|(key, value)| (key.to_owned(), value_json(value))).collect();
    let formats = shares(gguf).into_iter().map(|share| {
        json!({
            "format": share.format.name(),
            "num_tensors": share.num_tensors,
            "num_elements": share.num_elements,
            "size_bytes": share.size_bytes,
        })
    });
    let tensors = gguf.tensors.iter().map(|tensor| {
        json!({
            "name": tensor.name,
            "shape": tensor.shape,
            "format": tensor.format.name(),
            "part": tensor.part,
            "offset": tensor.offset,
            "size_bytes": tensor.size_bytes,
        })
    });
    json!({
        "architecture": text_under(gguf, "general.architecture"),
        "name": text_under(gguf, "general.name"),
        "num_parts": num_parts,
        "file_bytes": gguf.file_bytes,
        "tensor_bytes": gguf.tensor_bytes(),
        "num_tensors": gguf.tensors.len(),
        "num_elements": gguf.tensors.iter().map(num_elements).sum::<u64>(),
        "formats": formats.collect::<Json>(),
        "metadata": metadata,
        "tensors": tensors.collect::<Json>(),
    })
}

fn text_under<'a>(gguf: &'a Gguf, key: &str) -> Option<&'a str> {
    match gguf.metadata.get(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Plain values as they are; of an array its type, its length and its first elements.
fn value_json(value: &Value) -> Json {
    match value {
        Value::U8(value) => json!(value),
        Value::I8(value) => json!(value),
        Value::U16(value) => json!(value),
        Value::I16(value) => json!(value),
        Value::U32(value) => json!(value),
        Value::I32(value) => json!(value),
        Value::U64(value) => json!(value),
        Value::I64(value) => json!(value),
        Value::F32(value) => f32_json(*value),
        Value::F64(value) => json!(value),
        Value::Bool(value) => json!(value),
        Value::String(value) => json!(value),
        Value::Array(array) => {
            json!({ "type": value.type_name(), "len": array.len(), "first": head_json(array) })
        }
    }
}

fn head_json(array: &Array) -> Json {
    fn head<T: serde::Serialize>(values: &[T]) -> Json {
        values.iter().take(ARRAY_HEAD).map(|value| json!(value)).collect()
    }
    match array {
        Array::U8(values) => head(values),
        Array::I8(values) => head(values),
        Array::U16(values) => head(values),
        Array::I16(values) => head(values),
        Array::U32(values) => head(values),
        Array::I32(values) => head(values),
        Array::U64(values) => head(values),
        Array::I64(values) => head(values),
        Array::F64(values) => head(values),
        Array::Bool(values) => head(values),
        Array::F32(values) => values.iter().take(ARRAY_HEAD).map(|&value| f32_json(value)).collect(),
        Array::Strings(values) => values.iter().take(ARRAY_HEAD).map(|value| json!(value)).collect(),
    }
}

/// The shortest decimal that is this f32: 1e-5, not 0.000009999999747378752.
fn f32_json(value: f32) -> Json {
    value.to_string().parse::<f64>().map_or(Json::Null, |value| json!(value))
}

fn to_text(gguf: &Gguf, num_parts: usize) -> String {
    let mut text = String::new();
    let name = printable(text_under(gguf, "general.name").unwrap_or("unnamed model"));
    let architecture = printable(text_under(gguf, "general.architecture").unwrap_or("unknown architecture"));
    let elements: u64 = gguf.tensors.iter().map(num_elements).sum();
    line(&mut text, format_args!("{name} ({architecture})"));
    line(
        &mut text,
        format_args!(
            "{} in {num_parts} {}; {} tensors, {} weights, {}",
            size(gguf.file_bytes),
            if num_parts == 1 { "file" } else { "files" },
            gguf.tensors.len(),
            grouped(elements),
            size(gguf.tensor_bytes()),
        ),
    );
    line(&mut text, format_args!("\nFormats"));
    for Share { format, num_tensors, num_elements, size_bytes } in shares(gguf) {
        let [elements, bytes] = [grouped(num_elements), size(size_bytes)];
        line(
            &mut text,
            format_args!("  {:5} {num_tensors:6} tensors {elements:>16} weights {bytes:>10}", format.name()),
        );
    }
    line(&mut text, format_args!("\nMetadata"));
    for (key, value) in gguf.metadata.iter() {
        line(&mut text, format_args!("  {} = {}", printable(key), printable(&value_text(value))));
    }
    line(&mut text, format_args!("\nTensors"));
    let width = gguf.tensors.iter().map(|tensor| printable(&tensor.name).chars().count()).max().unwrap_or(0);
    for TensorInfo { name, shape, format, part, size_bytes, .. } in &gguf.tensors {
        let part = if num_parts == 1 { String::new() } else { format!("  part {}", part + 1) };
        let [name, shape, bytes] = [printable(name), format!("{shape:?}"), size(*size_bytes)];
        line(&mut text, format_args!("  {name:width$}  {:5} {shape:>16} {bytes:>10}{part}", format.name()));
    }
    text
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{arguments}");
}

/// A value on one line.
fn value_text(value: &Value) -> String {
    match value {
        Value::Array(array) => {
            let more = if array.len() > ARRAY_HEAD { ", ..." } else { "" };
            let head = head_json(array).to_string();
            format!("{}: {}{more}]", value.type_name(), head.trim_end_matches(']'))
        }
        Value::String(string) if string.chars().count() > STRING_HEAD => {
            let head: String = string.chars().take(STRING_HEAD).collect();
            format!("{} ... ({} bytes)", json!(head), string.len())
        }
        other => value_json(other).to_string(),
    }
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the unit that fits.
fn size(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "two digits are shown")]
    let bytes_f = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes_f / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes_f / 1e6),
        _ => format!("{:.2} GB", bytes_f / 1e9),
    }
}
