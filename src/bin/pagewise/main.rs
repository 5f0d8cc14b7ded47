//! The native command line. Each subcommand is a file; results go to standard output, errors to standard error, or to
//! standard output as `{"error": {"code", "message"}}` under `--json`. Exit status: 0, 1 for an error, 2 for wrong usage.

#[cfg(not(target_arch = "wasm32"))]
mod bench;
#[cfg(not(target_arch = "wasm32"))]
mod chat;
#[cfg(not(target_arch = "wasm32"))]
mod detokenize;
#[cfg(not(target_arch = "wasm32"))]
mod device;
#[cfg(not(target_arch = "wasm32"))]
mod embed;
#[cfg(not(target_arch = "wasm32"))]
mod explain;
#[cfg(not(target_arch = "wasm32"))]
mod generate;
#[cfg(not(target_arch = "wasm32"))]
mod inspect;
#[cfg(not(target_arch = "wasm32"))]
mod logits;
#[cfg(not(target_arch = "wasm32"))]
mod memory;
#[cfg(not(target_arch = "wasm32"))]
mod output;
#[cfg(not(target_arch = "wasm32"))]
mod template;
#[cfg(not(target_arch = "wasm32"))]
mod tokenize;
#[cfg(not(target_arch = "wasm32"))]
mod tuning;

#[cfg(not(target_arch = "wasm32"))]
mod cli {
    use crate::{
        bench, chat, detokenize, embed, explain, generate, inspect, logits, memory, output, template, tokenize,
    };
    use clap::{Parser, Subcommand};
    use std::process::ExitCode;

    /// A language-model engine for the web page, run natively.
    #[derive(Debug, Parser)]
    #[command(version, max_term_width = 100)]
    struct Cli {
        #[command(subcommand)]
        command: Command,
    }

    #[derive(Debug, Subcommand)]
    enum Command {
        Inspect(inspect::Args),
        Tokenize(tokenize::Args),
        Detokenize(detokenize::Args),
        Template(template::Args),
        Logits(logits::Args),
        Generate(generate::Args),
        Embed(embed::Args),
        Chat(chat::Args),
        Bench(bench::Args),
        Explain(explain::Args),
        Memory(memory::Args),
    }

    pub(super) fn run() -> ExitCode {
        match Cli::parse().command {
            Command::Inspect(args) => output::finish(inspect::run(&args), args.json),
            Command::Tokenize(args) => output::finish(tokenize::run(&args), true),
            Command::Detokenize(args) => output::finish(detokenize::run(&args), true),
            Command::Template(args) => output::finish(template::run(&args), args.json),
            Command::Logits(args) => output::finish(logits::run(&args), args.json),
            Command::Generate(args) => output::finish(generate::run(&args), args.json),
            Command::Embed(args) => output::finish(embed::run(&args), args.json),
            Command::Chat(args) => output::finish(chat::run(&args), args.json),
            Command::Bench(args) => output::finish(bench::run(&args), args.json),
            Command::Explain(args) => output::finish(explain::run(&args), args.json),
            Command::Memory(args) => output::finish(memory::run(&args), args.json),
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    cli::run()
}

/// The page has its own entry, in the library.
#[cfg(target_arch = "wasm32")]
fn main() {}
