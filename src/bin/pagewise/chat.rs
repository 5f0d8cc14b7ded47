//! `chat`: a conversation, a line of standard input a turn. Each turn says what the prefix cache saved.
//!
//! A message that no longer fits in the context is refused, and the conversation stays as it was; or, if that is wanted,
//! the oldest turns are left out, as many as halve it: the next turns then find their beginning in the cache again.

use crate::device::{self, DeviceArgs, MemoryArgs, NativeModel};
use crate::generate::SamplingArgs;
use crate::{output, template};
use pagewise::engine::{CacheOptions, CacheReport, Engine, Event, FinishReason, Request};
use pagewise::engine::{Timings, Usage};
use pagewise::model::{Logits, ModelOptions};
use pagewise::text::{ChatTemplate, RenderOptions, Tokenizer, Transcripts};
use pagewise::{Error, Result};
use pollster::block_on;
use serde_json::{Value as Json, json};
use std::io::{BufRead, IsTerminal, stdin};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

/// What to do with a message that no longer fits in the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Overflow {
    /// Refuse it; the conversation stays as it is.
    Error,
    /// Leave out the oldest turns, but never the system prompt.
    DropOldest,
}

/// Chat with a model: each line of standard input is a turn; `/undo` takes back the last one, `/clear` all of them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GGUF file, or the first part of a split one.
    model: PathBuf,
    /// What the model is told before the conversation.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Tokens of an answer, at most; until the context is full by default.
    #[arg(long, value_name = "TOKENS")]
    max_tokens: Option<usize>,
    /// What to do with a message that no longer fits in the context.
    #[arg(long, value_enum, default_value = "error")]
    overflow: Overflow,
    /// Compute every prompt anew.
    #[arg(long)]
    no_cache: bool,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print one line of JSON per turn instead of the text.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut chat = Chat::open(args)?;
    let shows_prompt = !args.json && stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut lines = stdin().lock().split(b'\n');
    loop {
        if shows_prompt {
            output::print("> ");
        }
        let Some(line) = lines.next() else { return Ok(()) };
        let line = line.map_err(|error| Error::BadRequest(format!("cannot read standard input: {error}")))?;
        let Ok(line) = std::str::from_utf8(&line) else {
            refuse(&Error::BadRequest("a line that is no UTF-8".to_owned()), args);
            continue;
        };
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.trim().is_empty() {
            continue;
        }
        match line.trim() {
            "/undo" => report(&chat.undo(), args),
            "/clear" => report(&chat.clear(), args),
            _ => match chat.turn(line, args) {
                Ok(turn) if args.json => output::print_line(&turn.to_json()),
                Ok(turn) => output::print(&turn.ending()),
                Err(error @ Error::ContextTooLong { .. }) => refuse(&error, args),
                Err(error) => return Err(error),
            },
        }
    }
}

/// Says what a command did.
fn report(&Shortened { taken_back, left }: &Shortened, args: &Args) {
    if args.json {
        output::print_line(&json!({ "taken_back_turns": taken_back, "turns": left }));
    } else {
        output::print(&format!("[{} taken back, {left} left]\n", turns(taken_back)));
    }
}

/// Says that a message was refused.
fn refuse(error: &Error, args: &Args) {
    if args.json {
        output::print_line(&json!({ "error": output::error_json(error) }));
    } else if !matches!(error, Error::ContextTooLong { .. }) {
        output::print(&format!("[not sent: {error}]\n"));
    } else {
        output::print(&format!(
            "[not sent: {error}. Shorten it, take back the last turn with /undo or all with /clear; \
             --overflow drop-oldest would leave out the oldest turns]\n"
        ));
    }
}

fn turns(num: usize) -> String {
    format!("{num} {}", if num == 1 { "turn" } else { "turns" })
}

/// What `/undo` and `/clear` did to a conversation, in turns.
struct Shortened {
    taken_back: usize,
    left: usize,
}

/// A model with the conversation so far.
struct Chat {
    engine: Engine<NativeModel>,
    template: ChatTemplate,
    transcripts: Transcripts,
    /// The system prompt, if there is one; then turns: a message and its answer each.
    messages: Vec<Json>,
    num_system: usize,
    seed: u64,
    start: Instant,
}

/// A conversation to be answered.
struct Prompt {
    messages: Vec<Json>,
    text: String,
    ids: Vec<u32>,
    /// Turns that it lacks.
    left_out: usize,
}

/// One answer.
struct Turn {
    ids: Vec<u32>,
    text: String,
    reason: FinishReason,
    usage: Usage,
    timings: Timings,
    cache: CacheReport,
    /// Turns that the prompt lacked.
    left_out: usize,
    /// Whether it ended because nothing more fits.
    is_full: bool,
}

impl Chat {
    fn open(args: &Args) -> Result<Self> {
        let opened = device::open(&args.model)?;
        let template = template::of_model(&opened.1)?;
        let tokenizer = Rc::new(Tokenizer::from_metadata(&opened.1.metadata)?);
        let options = ModelOptions { max_sequences: Some(1), ..args.memory.options() };
        let model = NativeModel::load(&opened, &args.device, &options)?;
        let groups = model.groups();
        Ok(Self {
            engine: Engine::new(model, Rc::clone(&tokenizer), groups, args.device.engine_options()),
            template,
            transcripts: Transcripts::new(tokenizer),
            messages: args.system.iter().map(|text| json!({ "role": "system", "content": text })).collect(),
            num_system: usize::from(args.system.is_some()),
            seed: args.sampling.seed(),
            start: Instant::now(),
        })
    }

    fn num_turns(&self) -> usize {
        (self.messages.len() - self.num_system) / 2
    }

    /// Takes back the last turn, if there is one.
    fn undo(&mut self) -> Shortened {
        let left = self.num_turns().saturating_sub(1);
        self.shorten_to(left)
    }

    /// Takes back all turns.
    fn clear(&mut self) -> Shortened {
        self.shorten_to(0)
    }

    fn shorten_to(&mut self, left: usize) -> Shortened {
        let taken_back = self.num_turns() - left;
        self.messages.truncate(self.num_system + 2 * left);
        Shortened { taken_back, left }
    }

    /// Answers a line, printing the answer on the way unless JSON is wanted. After an error nothing has changed.
    fn turn(&mut self, line: &str, args: &Args) -> Result<Turn> {
        let prompt = self.fit(json!({ "role": "user", "content": line }), args)?;
        let request = Request {
            prompt: prompt.ids.clone(),
            max_tokens: args.max_tokens,
            sampling: args.sampling.params(self.seed),
            cache: CacheOptions { enabled: !args.no_cache, ..CacheOptions::default() },
            ..Request::default()
        };
        if prompt.left_out > 0 && !args.json {
            output::print(&format!("[the context is full: the oldest {} left out]\n", turns(prompt.left_out)));
        }
        let mut turn = self.answer(request, !args.json)?;
        turn.left_out = prompt.left_out;
        self.transcripts.remember(&prompt.text, &prompt.ids, &turn.ids);
        self.messages = prompt.messages;
        self.messages.push(json!({ "role": "assistant", "content": turn.text }));
        Ok(turn)
    }

    /// The prompt for a new message: of the whole conversation, or of what may be kept of it.
    fn fit(&mut self, message: Json, args: &Args) -> Result<Prompt> {
        let allowed = self.engine.context_length();
        let asked = |prompt: &Prompt| prompt.ids.len().saturating_add(args.max_tokens.unwrap_or(1));
        let mut prompt = self.prompt(&message, 0)?;
        let error = Error::ContextTooLong { asked: asked(&prompt), allowed };
        if asked(&prompt) > allowed && args.overflow == Overflow::DropOldest {
            for left_out in 1..=self.num_turns() {
                prompt = self.prompt(&message, left_out)?;
                if asked(&prompt) <= allowed / 2 {
                    break;
                }
            }
        }
        if asked(&prompt) > allowed { Err(error) } else { Ok(prompt) }
    }

    /// The prompt of the conversation without its first `left_out` turns, and a new message.
    fn prompt(&mut self, message: &Json, left_out: usize) -> Result<Prompt> {
        let (system, rest) = self.messages.split_at(self.num_system);
        let messages = [system, &rest[2 * left_out..], std::slice::from_ref(message)].concat();
        let now_unix_s = template::now_unix_s();
        let options = RenderOptions { add_generation_prompt: true, now_unix_s, ..RenderOptions::default() };
        let text = self.template.render(&Json::from(messages.clone()), &options)?;
        let ids = self.transcripts.encode_prompt(&text)?;
        Ok(Prompt { messages, text, ids, left_out })
    }

    fn answer(&mut self, request: Request, streams: bool) -> Result<Turn> {
        let start = self.start;
        let now = || 1e3 * start.elapsed().as_secs_f64();
        self.engine.submit(request, now())?;
        let (mut ids, mut text) = (Vec::new(), String::new());
        while self.engine.has_work() {
            for event in block_on(self.engine.step(now)) {
                match event {
                    Event::Text { text: more, ids: more_ids, .. } => {
                        if streams && !more.is_empty() {
                            output::print_foreign(&more);
                        }
                        text.push_str(&more);
                        ids.extend(more_ids);
                    }
                    Event::Finished { reason, usage, timings, cache, .. } => {
                        let is_full = usage.total_tokens >= self.engine.context_length();
                        return Ok(Turn { ids, text, reason, usage, timings, cache, left_out: 0, is_full });
                    }
                    Event::Progress { .. } => {}
                    Event::Failed { error, .. } => return Err(error),
                }
            }
        }
        Err(Error::WrongResult("the answer did not end".into()))
    }
}

impl Turn {
    /// What follows the answer.
    fn ending(&self) -> String {
        let newline = if self.text.ends_with('\n') { "" } else { "\n" };
        let full = if self.is_full { "; the context is full" } else { "" };
        format!("{newline}[{}{full}]\n", self.summary())
    }

    fn summary(&self) -> String {
        let Usage { prompt_tokens, cached_tokens, completion_tokens, .. } = self.usage;
        let computed = prompt_tokens - cached_tokens;
        let ttft_ms = self.timings.ttft_ms;
        format!(
            "{cached_tokens} of {prompt_tokens} prompt tokens cached, {computed} computed; \
             {completion_tokens} generated; first after {ttft_ms:.0} ms"
        )
    }

    fn to_json(&self) -> Json {
        json!({
            "ids": self.ids,
            "text": self.text,
            "finish_reason": self.reason.name(),
            "usage": self.usage,
            "timings": self.timings,
            "cache": self.cache,
            "left_out_turns": self.left_out,
        })
    }
}
