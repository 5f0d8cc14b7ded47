//! `chat`: a conversation, a line of standard input a turn. Each turn says what the prefix cache saved.

use crate::device::{self, DeviceArgs, MemoryArgs, NativeModel};
use crate::generate::SamplingArgs;
use crate::{output, template};
use pagewise::engine::{CacheOptions, CacheReport, Engine, EngineOptions, Event, FinishReason, Request};
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

/// Chat with a model: each line of standard input is a turn.
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
    let mut lines = stdin().lock().lines();
    loop {
        if shows_prompt {
            output::print("> ");
        }
        let Some(line) = lines.next() else { return Ok(()) };
        let line = line.map_err(|error| Error::BadRequest(format!("cannot read standard input: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let turn = chat.turn(&line, args)?;
        if args.json {
            output::print_line(&turn.to_json());
        } else {
            let newline = if turn.text.ends_with('\n') { "" } else { "\n" };
            output::print(&format!("{newline}[{}]\n", turn.summary()));
        }
    }
}

/// A model with the conversation so far.
struct Chat {
    engine: Engine<NativeModel>,
    template: ChatTemplate,
    transcripts: Transcripts,
    messages: Vec<Json>,
    seed: u64,
    start: Instant,
}

/// One answer.
struct Turn {
    ids: Vec<u32>,
    text: String,
    reason: FinishReason,
    usage: Usage,
    timings: Timings,
    cache: CacheReport,
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
            engine: Engine::new(model, Rc::clone(&tokenizer), groups, EngineOptions::default()),
            template,
            transcripts: Transcripts::new(tokenizer),
            messages: args.system.iter().map(|text| json!({ "role": "system", "content": text })).collect(),
            seed: args.sampling.seed(),
            start: Instant::now(),
        })
    }

    /// Answers a line, printing the answer on the way unless JSON is wanted.
    fn turn(&mut self, line: &str, args: &Args) -> Result<Turn> {
        self.messages.push(json!({ "role": "user", "content": line }));
        let now_unix_s = template::now_unix_s();
        let options = RenderOptions { add_generation_prompt: true, now_unix_s, ..RenderOptions::default() };
        let prompt = self.template.render(&Json::from(self.messages.clone()), &options)?;
        let prompt_ids = self.transcripts.encode_prompt(&prompt)?;
        let request = Request {
            prompt: prompt_ids.clone(),
            max_tokens: args.max_tokens,
            sampling: args.sampling.params(self.seed),
            cache: CacheOptions { enabled: !args.no_cache, ..CacheOptions::default() },
            ..Request::default()
        };
        let turn = self.answer(request, !args.json)?;
        self.transcripts.remember(&prompt, &prompt_ids, &turn.ids);
        self.messages.push(json!({ "role": "assistant", "content": turn.text }));
        Ok(turn)
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
                        return Ok(Turn { ids, text, reason, usage, timings, cache });
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
        })
    }
}
