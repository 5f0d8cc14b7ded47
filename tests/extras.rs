//! What a step is asked besides the tokens that it draws: log-probabilities are those of the model's logits, whatever else
//! changes what is drawn, and an embedding is the mean of its tokens' hidden states. On the CPU executor and on the native
//! adapter.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::rc::Rc;

use common::golden::{open_gpu, tiny_model};
use pagewise::Error;
use pagewise::compute::Executor;
use pagewise::engine::{
    Engine, EngineOptions, Evaluation, Event, Request, RequestId, SamplingParams, TokenLogprobs, evaluate,
};
use pagewise::gguf::{self, ByteSource as _, FileSource, Gguf};
use pagewise::kernels::KvFormat;
use pagewise::model::{Forward as _, Logits as _, Model, ModelOptions, load_cpu, load_gpu};
use pagewise::text::Tokenizer;
use pollster::block_on;

/// How far they may be from what is computed here in double precision.
const TOLERANCE: f64 = 1e-4;

fn options() -> ModelOptions {
    ModelOptions { kv: KvFormat::F32, context_length: Some(128), max_tokens: Some(16), ..ModelOptions::default() }
}

fn engine<E: Executor>(model: Model<E>, gguf: &Gguf, max_steps: usize) -> Engine<Model<E>> {
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
    let groups = model.groups();
    let options = EngineOptions { max_steps_ahead: Some(max_steps), ..EngineOptions::default() };
    Engine::new(model, tokenizer, groups, options)
}

/// Everything that changes what is drawn, and a request that wants to know nothing between two that do.
fn requests(prompt: &[u32]) -> [(Request, usize); 4] {
    let make = |skip: usize, logprobs, sampling| Request {
        prompt: prompt[skip..].to_vec(),
        max_tokens: Some(8),
        sampling,
        logprobs,
        ignore_end_of_generation: true,
        ..Request::default()
    };
    let drawn = SamplingParams { seed: Some(7), temperature: 1.7, top_k: 40, ..SamplingParams::default() };
    let penalised = SamplingParams { repetition_penalty: 1.4, frequency_penalty: 1.0, ..drawn.clone() };
    let biased = vec![(40, 60.0), (41, 60.0), (50, f32::NEG_INFINITY)];
    let masked = Some(vec![5, 40, 41, 99]);
    [
        (make(0, Some(20), SamplingParams::greedy()), 1),
        (make(1, None, drawn.clone()), 2),
        (Request { logit_bias: biased, ..make(2, Some(3), penalised) }, 3),
        (Request { allowed_token_ids: masked, ..make(3, Some(0), drawn) }, 2),
    ]
}

struct Answer {
    ids: Vec<u32>,
    logprobs: Vec<TokenLogprobs>,
    request: Request,
}

/// All answers, but for one that is cancelled while steps with its rows are in flight.
fn answers<E: Executor>(engine: &mut Engine<Model<E>>, prompt: &[u32]) -> Vec<Answer> {
    let mut answers: BTreeMap<RequestId, Answer> = BTreeMap::new();
    for (request, num) in requests(prompt) {
        let answer = || Answer { ids: Vec::new(), logprobs: Vec::new(), request: request.clone() };
        let ids = engine.submit_choices(request.clone(), num, 0.0).unwrap();
        answers.extend(ids.into_iter().map(|id| (id, answer())));
    }
    let cancelled = *answers.keys().nth(4).unwrap();
    while engine.has_work() {
        for event in block_on(engine.step(|| 0.0)) {
            match event {
                Event::Text { request, ids, logprobs, .. } => {
                    let answer = answers.get_mut(&request).unwrap();
                    answer.ids.extend(ids);
                    answer.logprobs.extend(logprobs);
                    if request == cancelled && answer.ids.len() == 3 {
                        engine.cancel(request);
                    }
                }
                Event::Failed { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
    }
    let answers: Vec<_> = answers.into_values().collect();
    assert_eq!(answers.iter().map(|answer| answer.ids.len()).collect::<Vec<_>>(), [8, 8, 8, 8, 3, 8, 8, 8]);
    answers
}

fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    logits.iter().map(|&logit| f64::from(logit) - sum.ln()).collect()
}

fn check_logprobs(answer: &Answer, logits: &[Vec<f32>], what: &str) {
    let Some(num) = answer.request.logprobs else { return assert!(answer.logprobs.is_empty(), "{what}") };
    assert_eq!(answer.logprobs.len(), answer.ids.len(), "{what}");
    for ((told, &id), logits) in answer.logprobs.iter().zip(&answer.ids).zip(logits) {
        let expected = log_softmax(logits);
        assert_eq!(told.token.id, id, "{what}");
        for token in told.top.iter().chain([&told.token]) {
            let (actual, expected) = (f64::from(token.logprob), expected[token.id as usize]);
            assert!((actual - expected).abs() < TOLERANCE, "{what}: token {}: {actual}, expected {expected}", token.id);
        }
        let mut sorted = expected.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(told.top.len(), num, "{what}");
        for (top, expected) in told.top.iter().zip(sorted) {
            assert!((f64::from(top.logprob) - expected).abs() < TOLERANCE, "{what}: the most probable ones in order");
        }
    }
}

fn check_answers<E: Executor>(engine: &mut Engine<Model<E>>, prompt: &[u32], what: &str) {
    let answers = [1, 4].map(|num| {
        engine.set_max_steps_ahead(Some(num));
        answers(engine, prompt)
    });
    for (one, ahead) in answers[0].iter().zip(&answers[1]) {
        assert_eq!(one.ids, ahead.ids, "{what}");
    }
    let model = block_on(engine.forward_alone()).unwrap();
    let vocab = model.vocab();
    assert!(answers[0][3].ids.iter().any(|id| [40, 41].contains(id)), "the bias has an effect");
    for answer in answers.iter().flatten() {
        let positions = (answer.request.prompt.len() - 1..).take(answer.ids.len()).collect();
        let ids = [answer.request.prompt.as_slice(), &answer.ids].concat();
        let chunk = model.limits().max_tokens;
        let logits = block_on(evaluate(model, &[Evaluation { ids, positions }], chunk)).unwrap();
        assert!(logits[0].iter().all(|row| row.len() == vocab));
        check_logprobs(answer, &logits[0], what);
    }
    let num = |answer: &Answer| answer.logprobs.len();
    assert_eq!(answers[1].iter().map(num).collect::<Vec<_>>(), [8, 0, 0, 8, 3, 8, 8, 8], "{what}");
}

/// The rows of the matrix that makes logits of hidden states.
fn output_rows(source: &FileSource, gguf: &Gguf) -> Vec<Vec<f64>> {
    let name = if gguf.find("output.weight").is_some() { "output.weight" } else { "token_embd.weight" };
    let tensor = gguf.tensor(name).unwrap();
    let size = usize::try_from(tensor.size_bytes).unwrap();
    let bytes = block_on(source.read(tensor.part, tensor.offset, size)).unwrap();
    let values = bytes.chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f64());
    values.collect::<Vec<_>>().chunks(tensor.row_elements()).map(<[f64]>::to_vec).collect()
}

/// Logits are linear in hidden states: the mean of those of all positions points where the output matrix maps the mean.
fn check_embeddings<E: Executor>(engine: &mut Engine<Model<E>>, matrix: &[Vec<f64>], text: &[u32]) {
    let request = |prompt: &[u32]| Request { prompt: prompt.to_vec(), embeds: true, ..Request::default() };
    // Beside an answer, and twice: what is cached must not be left out.
    let answer = Request { embeds: false, max_tokens: Some(5), ..request(text) };
    engine.submit(answer, 0.0).unwrap();
    let asked = [request(text), request(&text[..7]), request(text)];
    let mut found: BTreeMap<RequestId, Vec<f32>> = BTreeMap::new();
    let ids: Vec<_> = asked.iter().map(|request| engine.submit(request.clone(), 0.0).unwrap()).collect();
    while engine.has_work() {
        for event in block_on(engine.step(|| 0.0)) {
            match event {
                Event::Finished { request, embedding: Some(values), usage, .. } => {
                    assert_eq!((usage.completion_tokens, usage.cached_tokens), (0, 0));
                    found.insert(request, values);
                }
                Event::Failed { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
    }
    // Their sums may be added up in other chunks.
    let distance = found[&ids[0]].iter().zip(&found[&ids[2]]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(distance < 1e-5, "{distance}");
    let model = block_on(engine.forward_alone()).unwrap();
    for (id, request) in ids.iter().zip(&asked) {
        let values = &found[id];
        let length: f64 = values.iter().map(|&value| f64::from(value).powi(2)).sum();
        assert!((length - 1.0).abs() < 1e-5, "{length}");
        let ids = request.prompt.clone();
        let positions = (0..ids.len()).collect();
        let logits = block_on(evaluate(model, &[Evaluation { ids, positions }], 4)).unwrap().remove(0);
        let mut mean = vec![0.0; matrix.len()];
        logits.iter().for_each(|row| mean.iter_mut().zip(row).for_each(|(sum, &logit)| *sum += f64::from(logit)));
        let dot = |row: &Vec<f64>| row.iter().zip(values).map(|(a, &b)| a * f64::from(b)).sum::<f64>();
        let mapped: Vec<_> = matrix.iter().map(dot).collect();
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let cosine = product(&mean, &mapped) / (product(&mean, &mean) * product(&mapped, &mapped)).sqrt();
        assert!(cosine > 1.0 - 1e-6, "cosine {cosine}");
    }
}

#[test]
fn log_probabilities_and_embeddings_are_the_models_own() {
    for name in ["tiny-llama", "tiny-gemma3"] {
        let (path, prompts) = tiny_model(name);
        let source = FileSource::open(&path).unwrap();
        let gguf = block_on(gguf::open(&source)).unwrap();
        let prompt = &prompts[0].ids[..20.min(prompts[0].ids.len())];
        let text: Vec<_> = prompt.iter().chain(prompt).chain(prompt).copied().take(50).collect();
        let matrix = output_rows(&source, &gguf);
        let mut cpu = engine(block_on(load_cpu(&gguf, &source, &options())).unwrap(), &gguf, 1);
        check_answers(&mut cpu, prompt, &format!("{name}, CPU"));
        check_embeddings(&mut cpu, &matrix, &text);
        for gpu in open_gpu() {
            let mut gpu = engine(block_on(load_gpu(&gguf, &source, gpu, &options(), |_| Ok(()))).unwrap(), &gguf, 4);
            check_answers(&mut gpu, prompt, &format!("{name}, GPU"));
            check_embeddings(&mut gpu, &matrix, &text);
        }
    }
}

#[test]
fn what_cannot_be_told_is_refused() {
    let (path, prompts) = tiny_model("tiny-llama");
    let source = FileSource::open(&path).unwrap();
    let mut gguf = block_on(gguf::open(&source)).unwrap();
    let prompt = prompts[0].ids.clone();
    let model = || block_on(load_cpu(&gguf, &source, &options())).unwrap();
    let mut asked = engine(model(), &gguf, 1);
    let request = Request { prompt: prompt.clone(), embeds: true, ..Request::default() };
    let error = asked.submit(Request { logprobs: Some(21), embeds: false, ..request.clone() }, 0.0).unwrap_err();
    assert_eq!(error.to_string(), "top_logprobs: 21 asked, 0 to 20 allowed");
    // A text may fill the context, since nothing follows it.
    asked.submit(Request { prompt: vec![5; 128], ..request.clone() }, 0.0).unwrap();
    let error = asked.submit(Request { prompt: vec![5; 129], ..request.clone() }, 0.0).unwrap_err();
    assert_eq!(error, Error::ContextTooLong { asked: 129, allowed: 128 });
    // The last token's hidden state is what this file wants.
    let entries = gguf.metadata.iter().map(|(key, value)| (key.to_owned(), value.clone()));
    let pooling = ("llama.pooling_type".to_owned(), gguf::Value::U32(3));
    gguf.metadata = gguf::Metadata::new(entries.chain([pooling]).collect::<Vec<_>>()).unwrap();
    let mut other = engine(block_on(load_cpu(&gguf, &source, &options())).unwrap(), &gguf, 1);
    let error = other.submit(request, 0.0).unwrap_err();
    assert_eq!(error.code(), "unsupported_model");
}
