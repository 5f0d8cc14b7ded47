//! What subcommands print, and how they end.

use pagewise::gguf::{FileSource, Gguf};
use pagewise::{Error, Result};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// Opens a model file (or the first part of a split one) and reads its header.
///
/// # Errors
/// When the file cannot be opened or is not a model.
pub(crate) fn open_model(path: &Path) -> Result<(FileSource, Gguf)> {
    let source = FileSource::open(path)?;
    let gguf = pollster::block_on(pagewise::gguf::open(&source))?;
    Ok((source, gguf))
}

/// Prints text and flushes it. A reader that stops reading, such as `head`, is no error: the process ends quietly.
pub(crate) fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        let status = if error.kind() == ErrorKind::BrokenPipe { 0 } else { 1 };
        std::process::exit(status);
    }
}

/// Prints text that others wrote. What could command a terminal is escaped on one, and left as it is in a pipe.
pub(crate) fn print_foreign(text: &str) {
    if std::io::stdout().is_terminal() {
        let lines: Vec<_> = text.split('\n').map(printable).collect();
        print(&lines.join("\n"));
    } else {
        print(text);
    }
}

/// Prints a JSON value on lines of its own.
pub(crate) fn print_json(value: &serde_json::Value) {
    print(&format!("{value:#}\n"));
}

/// Prints a JSON value on one line.
pub(crate) fn print_line(value: &serde_json::Value) {
    print(&format!("{value}\n"));
}

/// Text from a file, harmless to a terminal: control characters are escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    printable
}

/// A number with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
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
pub(crate) fn size(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "two digits are shown")]
    let bytes_f = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes_f / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes_f / 1e6),
        _ => format!("{:.2} GB", bytes_f / 1e9),
    }
}

/// Reports a subcommand's error, if any, and gives its exit status.
pub(crate) fn finish(result: Result<()>, json: bool) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    report(&error, json);
    ExitCode::FAILURE
}

/// An error as JSON.
pub(crate) fn error_json(error: &Error) -> serde_json::Value {
    serde_json::json!({ "code": error.code(), "message": error.to_string() })
}

fn report(error: &Error, json: bool) {
    if json {
        print_json(&serde_json::json!({ "error": error_json(error) }));
    } else {
        eprintln!("error ({}): {}", error.code(), printable(&error.to_string()));
    }
}
