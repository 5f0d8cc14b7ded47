//! Text to token ids and back: tokeniser, chat template, tool calls, incremental detokeniser, stop strings, grammars.
//!
//! Knows nothing of models, requests or clocks. The invariant to remember: decoding the ids of a text gives the
//! text, and a stream of pieces joined is the text decoded at once.

mod byte_level;
mod detokenizer;
mod grammar;
mod pre_tokenizer;
mod prompt_log;
mod sentencepiece;
mod special;
mod stop;
mod template;
mod template_functions;
mod template_limits;
mod template_values;
mod tokenizer;
mod tool_calls;
mod transcripts;
mod vocab;

pub use detokenizer::Detokenizer;
pub use grammar::{Compile, Constraint, GrammarError, Grammars, Match, Schema};
pub use prompt_log::{LoggedPrompt, Prompt, PromptLog};
pub use stop::{StopStrings, Streamed};
pub use template::{ChatTemplate, RenderOptions};
pub use tokenizer::Tokenizer;
pub use tool_calls::{
    CallLog, ToldAnswer, Tool, ToolCallError, ToolCallErrorKind, ToolChoice, ToolDelta, ToolFormat, ToolGrammar,
    ToolSchema, ToolStream, ToolSupport, call_ids_key, render_chat,
};
pub use transcripts::Transcripts;
