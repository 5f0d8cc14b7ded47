//! `embed`: texts as vectors.

use crate::device::{self, DeviceArgs, MemoryArgs, NativeModel};
use crate::output;
use pagewise::engine::{Engine, Event, Request, RequestId};
use pagewise::model::Logits;
use pagewise::text::Tokenizer;
use pagewise::{Error, Result};
use pollster::block_on;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

/// Texts that are handed to the engine at once.
const AT_ONCE: usize = 64;

/// Embed texts: of each, the mean of its tokens' last hidden states, of length 1.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GGUF file, or the first part of a split one.
    model: PathBuf,
    /// The texts.
    #[arg(required = true)]
    texts: Vec<String>,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print JSON, `{"embeddings": [[...]], "prompt_tokens": 0}`, instead of how near each text is to each.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let opened = device::open(&args.model)?;
    let tokenizer = Rc::new(Tokenizer::from_metadata(&opened.1.metadata)?);
    let prompts: Vec<_> = args.texts.iter().map(|text| tokenizer.encode(text, true, false)).collect::<Result<_>>()?;
    let num_tokens = prompts.iter().map(Vec::len).sum::<usize>();
    let model = NativeModel::load(&opened, &args.device, &args.memory.options())?;
    let groups = model.groups();
    let mut engine = Engine::new(model, tokenizer, groups, args.device.engine_options());
    let embeddings = embed(&mut engine, prompts)?;
    if args.json {
        output::print_json(&json!({ "embeddings": embeddings, "prompt_tokens": num_tokens }));
    } else {
        for a in &embeddings {
            let cosine = |b: &Vec<f32>| format!("{:7.4}", a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>());
            output::print(&(embeddings.iter().map(cosine).collect::<Vec<_>>().join(" ") + "\n"));
        }
    }
    Ok(())
}

/// The embedding of each prompt.
fn embed(engine: &mut Engine<NativeModel>, prompts: Vec<Vec<u32>>) -> Result<Vec<Vec<f32>>> {
    let start = Instant::now();
    let now = || 1e3 * start.elapsed().as_secs_f64();
    let mut found = Vec::with_capacity(prompts.len());
    for prompts in prompts.chunks(AT_ONCE) {
        let mut values: BTreeMap<RequestId, Option<Vec<f32>>> = BTreeMap::new();
        for prompt in prompts {
            let request = Request { prompt: prompt.clone(), embeds: true, ..Request::default() };
            values.insert(engine.submit(request, now())?, None);
        }
        while engine.has_work() {
            for event in block_on(engine.step(now)) {
                match event {
                    Event::Finished { request, embedding, .. } => drop(values.insert(request, embedding)),
                    Event::Failed { error, .. } => return Err(error),
                    Event::Text { .. } | Event::Progress { .. } => {}
                }
            }
        }
        found.extend(values.into_values());
    }
    let all: Option<Vec<_>> = found.into_iter().collect();
    all.ok_or_else(|| Error::WrongResult("an embedding is missing".into()))
}
