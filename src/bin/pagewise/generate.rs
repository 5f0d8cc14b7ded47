//! `generate`: continues a text or answers a conversation.

use crate::device::{self, DeviceArgs, MemoryArgs, NativeModel};
use crate::output::{self, printable};
use crate::template;
use pagewise::engine::{
    Engine, EngineOptions, Event, FinishReason, Request, SamplingParams, Timings, TokenLogprob, TokenLogprobs, Usage,
};
use pagewise::gguf::Gguf;
use pagewise::model::{Logits, ModelOptions};
use pagewise::text::{Constraint, Schema, Tokenizer};
use pagewise::{Error, Result};
use pollster::block_on;
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Generate text.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GGUF file, or the first part of a split one.
    model: PathBuf,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Tokens of the answer, at most; until the context is full by default.
    #[arg(long, value_name = "TOKENS")]
    max_tokens: Option<usize>,
    /// End the answer before this text (repeatable).
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// End the answer at this token (repeatable).
    #[arg(long, value_name = "ID")]
    stop_token_id: Vec<u32>,
    /// Add to a token's logit before drawing; `-inf` forbids it (repeatable).
    #[arg(long, value_name = "ID=VALUE", value_parser = logit_bias)]
    logit_bias: Vec<(u32, f32)>,
    /// Draw no other tokens than these (repeatable).
    #[arg(long, value_name = "ID")]
    allowed_token_id: Vec<u32>,
    /// Tell how probable each token was, and so many of the most probable ones, under the model's own distribution: at the
    /// end, or under `logprobs` with --json.
    #[arg(long, value_name = "NUM", value_parser = clap::value_parser!(u8).range(0..=20))]
    logprobs: Option<u8>,
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print one JSON object at the end instead of the text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the answer has to be.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct ConstraintArgs {
    /// JSON that the JSON Schema in this file allows.
    #[arg(long, value_name = "FILE")]
    json_schema: Option<PathBuf>,
    /// Text that this regular expression matches as a whole.
    #[arg(long, value_name = "EXPRESSION")]
    regex: Option<String>,
    /// Text that the Lark grammar in this file derives from `start`.
    #[arg(long, value_name = "FILE")]
    grammar: Option<PathBuf>,
}

impl ConstraintArgs {
    fn constraint(&self) -> Result<Option<Constraint>> {
        let field = |path: &Path| path.display().to_string();
        if let Some(path) = &self.json_schema {
            let schema = Schema { name: "schema".into(), json: read_text(path)?, field: field(path) };
            return Ok(Some(Constraint::JsonSchema(schema)));
        }
        if let Some(path) = &self.grammar {
            let (grammar, schemas) = (read_text(path)?, Vec::new());
            return Ok(Some(Constraint::Lark { grammar, schemas, field: field(path) }));
        }
        Ok(self.regex.clone().map(|pattern| Constraint::Regex { pattern, field: "--regex".into() }))
    }
}

fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Error::BadRequest(format!("{}: {error}", path.display())))
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Input {
    /// Text to continue.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// JSON file with a list of messages to answer, {role, content}, as `template` takes it.
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
}

/// Flags that decide how tokens are drawn.
#[derive(Debug, clap::Args)]
pub(crate) struct SamplingArgs {
    /// 0 to 2; 0 always takes the most probable token.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    temperature: f32,
    /// Draw among this many most probable tokens; 0 means all.
    #[arg(long, default_value_t = 0)]
    top_k: u32,
    /// Draw among the most probable tokens that together reach this probability.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    top_p: f32,
    /// Drop tokens less probable than this share of the most probable one.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    min_p: f32,
    /// Above 1 makes tokens of the prompt and the answer less likely.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    repetition_penalty: f32,
    /// Taken from a token's logit once per time it is in the answer.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    frequency_penalty: f32,
    /// Taken from a token's logit if it is in the answer.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    presence_penalty: f32,
    /// Equal seeds give equal answers; taken from the clock by default.
    #[arg(long)]
    seed: Option<u64>,
}

impl SamplingArgs {
    /// The seed that was asked for, or one from the clock.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(seed_from_clock)
    }

    /// The same for the engine.
    pub(crate) fn params(&self, seed: u64) -> SamplingParams {
        SamplingParams {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            seed: Some(seed),
        }
    }
}

fn logit_bias(text: &str) -> Result<(u32, f32), String> {
    let (id, value) = text.split_once('=').ok_or("ID=VALUE is wanted")?;
    let id = id.parse().map_err(|error| format!("token id {id:?}: {error}"))?;
    let value = value.parse().map_err(|error| format!("value {value:?}: {error}"))?;
    Ok((id, value))
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let opened = device::open(&args.model)?;
    let gguf = &opened.1;
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata)?);
    let seed = args.sampling.seed();
    let mut request = args.request(args.input.ids(gguf, &tokenizer)?, seed);
    request.constraint = args.constraint.constraint()?;
    let options = ModelOptions { max_sequences: Some(1), ..args.memory.options() };
    let model = NativeModel::load(&opened, &args.device, &options)?;
    let answer = answer(model, tokenizer, args.device.engine_options(), request, !args.json)?;
    if args.json {
        output::print_json(&answer.to_json(seed));
    } else {
        if !answer.text.ends_with('\n') {
            output::print("\n");
        }
        output::print(&answer.logprobs.iter().map(shown).collect::<String>());
    }
    Ok(())
}

impl Args {
    fn request(&self, prompt: Vec<u32>, seed: u64) -> Request {
        Request {
            prompt,
            max_tokens: self.max_tokens,
            sampling: self.sampling.params(seed),
            logit_bias: self.logit_bias.clone(),
            allowed_token_ids: Some(self.allowed_token_id.clone()).filter(|ids| !ids.is_empty()),
            stop: self.stop.clone(),
            stop_token_ids: self.stop_token_id.clone(),
            logprobs: self.logprobs.map(usize::from),
            ..Request::default()
        }
    }
}

impl Input {
    fn ids(&self, gguf: &Gguf, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
        let Some(path) = &self.messages else {
            return tokenizer.encode_prompt(self.prompt.as_deref().unwrap_or_default());
        };
        tokenizer.encode_prompt(&template::render(gguf, path, true)?)
    }
}

fn seed_from_clock() -> u64 {
    // A clock before 1970 is no reason to fail.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(since.subsec_nanos()))
}

/// A token's line: its logprob, and the most probable ones with theirs.
fn shown(logprobs: &TokenLogprobs) -> String {
    let one = |token: &TokenLogprob| {
        let text = printable(&String::from_utf8_lossy(&token.bytes));
        format!("{:>9.4} {:>7} {text}", token.logprob, token.id)
    };
    let top = logprobs.top.iter().map(one).collect::<Vec<_>>().join("  ");
    let between = if top.is_empty() { "" } else { "  |" };
    format!("{}{between}{top}\n", one(&logprobs.token))
}

/// The same as JSON.
fn logprobs_json(logprobs: &TokenLogprobs) -> Json {
    let one = |token: &TokenLogprob| json!({ "id": token.id, "logprob": token.logprob, "bytes": token.bytes });
    let mut json = one(&logprobs.token);
    json["top_logprobs"] = logprobs.top.iter().map(one).collect();
    json
}

struct Answer {
    ids: Vec<u32>,
    /// One per id, if they were asked for.
    logprobs: Vec<TokenLogprobs>,
    text: String,
    reason: FinishReason,
    usage: Usage,
    timings: Timings,
    adapter: String,
}

impl Answer {
    fn to_json(&self, seed: u64) -> Json {
        let mut json = json!({
            "ids": self.ids,
            "text": self.text,
            "finish_reason": self.reason.name(),
            "usage": self.usage,
            "timings": self.timings,
            "seed": seed,
            "adapter": self.adapter,
        });
        if !self.logprobs.is_empty() {
            json["logprobs"] = self.logprobs.iter().map(logprobs_json).collect();
        }
        json
    }
}

/// Runs one request to its end, printing its text on the way if `streams`.
fn answer(
    model: NativeModel,
    tokenizer: Rc<Tokenizer>,
    options: EngineOptions,
    request: Request,
    streams: bool,
) -> Result<Answer> {
    let (groups, adapter) = (model.groups(), model.adapter().to_owned());
    let mut engine = Engine::new(model, tokenizer, groups, options);
    let start = Instant::now();
    let now = || 1e3 * start.elapsed().as_secs_f64();
    engine.submit(request, now())?;
    let (mut ids, mut text, mut logprobs) = (Vec::new(), String::new(), Vec::new());
    while engine.has_work() {
        for event in block_on(engine.step(now)) {
            match event {
                Event::Text { text: more, ids: more_ids, logprobs: more_logprobs, .. } => {
                    if streams && !more.is_empty() {
                        output::print_foreign(&more);
                    }
                    text.push_str(&more);
                    ids.extend(more_ids);
                    logprobs.extend(more_logprobs);
                }
                Event::Finished { reason, usage, timings, .. } => {
                    return Ok(Answer { ids, logprobs, text, reason, usage, timings, adapter });
                }
                Event::Progress { .. } => {}
                Event::Failed { error, .. } => return Err(error),
            }
        }
    }
    Err(Error::WrongResult("the answer did not end".into()))
}
