//! Tests of `src/text`: the golden files, vocabularies made for the purpose, properties, hostile input.
#![allow(clippy::unwrap_used, reason = "tests")]

mod golden;
mod hostile;
mod prompt_log;
mod stop;
mod support;
mod template;
mod tokenizer;
mod tool_calls;
mod tool_grammars;
mod tool_prompts;
mod tool_schemas;
mod transcripts;
