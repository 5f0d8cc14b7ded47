//! Answers under a schema, on models: on the CPU executor, and on the native adapter, which computes while masks are made.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::rc::Rc;

use common::golden::{open_gpu, tiny_model};
use common::server::open;
use pagewise::compute::Executor;
use pagewise::engine::{Engine, EngineOptions, Event, FinishReason, Request, SamplingParams};
use pagewise::gguf::Gguf;
use pagewise::model::{Logits as _, Model, ModelOptions, load_cpu, load_gpu};
use pagewise::text::{Constraint, Schema, Tokenizer, Tool, ToolChoice, ToolDelta, ToolFormat, ToolGrammar, ToolStream};
use pollster::block_on;
use serde_json::{Value, json};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "maxLength": 12},
            "size": {"enum": ["small", "medium", "large"]},
            "year": {"type": "integer", "minimum": 1900, "maximum": 2099},
        },
        "required": ["title", "size", "year"],
        "additionalProperties": false,
    })
}

/// An answer's ids, text, and why it ended.
type Answer = (Vec<u32>, String, FinishReason);

/// The constraint of most answers here.
fn constraint() -> Constraint {
    Constraint::JsonSchema(Schema { name: "answer".into(), json: schema().to_string(), field: "schema".into() })
}

/// Answers of a model to the same prompt: greedy, and drawn from seeds; and the steps that they took.
fn answers<E: Executor>(model: Model<E>, gguf: &Gguf, prompt: &[u32], jumps_ahead: bool) -> (Vec<Answer>, u64) {
    answers_of(model, gguf, prompt, jumps_ahead, &constraint())
}

fn answers_of<E: Executor>(
    model: Model<E>,
    gguf: &Gguf,
    prompt: &[u32],
    jumps_ahead: bool,
    constraint: &Constraint,
) -> (Vec<Answer>, u64) {
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
    let groups = model.groups();
    let mut engine = Engine::new(model, tokenizer, groups, EngineOptions { jumps_ahead, ..EngineOptions::default() });
    let mut answers = Vec::new();
    for seed in 0..4_u8 {
        let request = Request {
            prompt: prompt.to_vec(),
            max_tokens: Some(90),
            sampling: SamplingParams {
                temperature: f32::from(seed.min(1)),
                seed: Some(seed.into()),
                ..SamplingParams::default()
            },
            constraint: Some(constraint.clone()),
            ..Request::default()
        };
        engine.submit(request, 0.0).unwrap();
        let (mut ids, mut text) = (Vec::new(), String::new());
        while engine.has_work() {
            for event in block_on(engine.step(|| 0.0)) {
                match event {
                    Event::Text { ids: more, text: piece, .. } => {
                        ids.extend(more);
                        text += &piece;
                    }
                    Event::Finished { reason, .. } => answers.push((std::mem::take(&mut ids), text.clone(), reason)),
                    Event::Progress { .. } => {}
                    Event::Failed { error, .. } => panic!("{error}"),
                }
            }
        }
    }
    (answers, engine.metrics().num_steps)
}

fn check(answers: &[Answer]) {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let mut num_whole = 0;
    for (_, text, reason) in answers {
        match reason {
            FinishReason::Length => assert!(serde_json::from_str::<Value>(text).is_err(), "{text} was whole"),
            FinishReason::Stop => {
                let value = serde_json::from_str(text).unwrap();
                assert!(validator.is_valid(&value), "{text}");
                num_whole += 1;
            }
        }
    }
    assert!(num_whole > 0, "{answers:?}");
}

#[test]
fn tiny_models_answer_with_what_the_schema_allows() {
    for name in ["tiny-llama", "tiny-gemma3"] {
        let (path, prompts) = tiny_model(name);
        let (gguf, source) = open(&path);
        let load = || block_on(load_cpu(&gguf, &source, &ModelOptions::default())).unwrap();
        let (ahead, num_ahead) = answers(load(), &gguf, &prompts[0].ids, true);
        check(&ahead);
        let (plain, num_plain) = answers(load(), &gguf, &prompts[0].ids, false);
        assert_eq!(ahead, plain, "{name}: with and without taking what is forced");
        assert!(num_ahead < num_plain, "{name}: {num_ahead} and {num_plain} steps");
    }
}

#[test]
fn tiny_models_answer_with_calls_or_what_the_schema_allows() {
    let (path, prompts) = tiny_model("tiny-llama");
    let (gguf, source) = open(&path);
    let load = || block_on(load_cpu(&gguf, &source, &ModelOptions::default())).unwrap();
    let parameters = json!({ "type": "object", "properties": { "city": { "enum": ["Bern", "Rome"] } },
        "required": ["city"], "additionalProperties": false });
    let function = json!({ "name": "weather", "parameters": parameters, "strict": true });
    let tools = Tool::list(&json!([{ "type": "function", "function": function }])).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for format in ToolFormat::ALL {
        let calls = ToolGrammar::new(format, &tools, ToolChoice::Required, false, |_| None).unwrap().unwrap();
        let either = calls.or(constraint());
        let (ahead, _) = answers_of(load(), &gguf, &prompts[0].ids, true, &either);
        let (plain, _) = answers_of(load(), &gguf, &prompts[0].ids, false, &either);
        assert_eq!(ahead, plain, "{format:?}: with and without taking what is forced");
        for (_, text, reason) in ahead.iter().filter(|(.., reason)| *reason == FinishReason::Stop) {
            let mut stream = ToolStream::new(format, tools.clone(), 0).calls_or_text();
            let deltas: Vec<_> = stream.push(text).into_iter().chain(stream.finish()).collect();
            match deltas.as_slice() {
                [ToolDelta::Content(content)] => {
                    assert_eq!(content, text);
                    assert!(validator.is_valid(&serde_json::from_str(text).unwrap()), "{format:?}: {text}");
                }
                [ToolDelta::Call { name, .. }, ToolDelta::Arguments { .. }] => assert_eq!(name, "weather"),
                other => panic!("{format:?}: {text}: {other:?} ({reason:?})"),
            }
        }
    }
}

#[test]
fn masks_are_made_while_the_adapter_computes() {
    let (path, prompts) = tiny_model("tiny-llama");
    let (gguf, source) = open(&path);
    let options = ModelOptions::default();
    let (on_cpu, _) = answers(block_on(load_cpu(&gguf, &source, &options)).unwrap(), &gguf, &prompts[0].ids, true);
    for gpu in open_gpu() {
        let model = block_on(load_gpu(&gguf, &source, gpu, &options, |_| Ok(()))).unwrap();
        let (on_gpu, _) = answers(model, &gguf, &prompts[0].ids, true);
        check(&on_gpu);
        assert_eq!(on_gpu[0], on_cpu[0], "greedy");
    }
}
