//! The prefix cache never changes an answer (K9), to the logit: greedy text and the logits it is drawn from with the cache
//! off, cold, warm, partly evicted and in the smallest pool that fits, on the CPU executor and on the native adapter.
//!
//! Longer prompts of the real models run with `PAGEWISE_LONG=1`.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use common::golden::{open_gpu, real_model, tiny_model};
use common::server::open;
use pagewise::Result;
use pagewise::compute::Executor;
use pagewise::engine::{CacheOptions, Engine, EngineOptions, Event, Request, SamplingParams, Usage};
use pagewise::gguf::Gguf;
use pagewise::kernels::KvFormat;
use pagewise::kv::{BLOCK_SIZE, GroupConfig};
use pagewise::model::{Batch, BatchLimits, Forward, Logits as _, Model, ModelOptions, RowSampling, load_cpu, load_gpu};
use pagewise::text::Tokenizer;
use pollster::block_on;

/// How far logits may be apart: keys and values are single precision, but sums differ in their order.
const TOLERANCE: f32 = 1e-3;

/// The logits that tokens were drawn from, by position, of each request, told by its seed.
type Drawn = Rc<RefCell<BTreeMap<u64, BTreeMap<u32, Vec<f32>>>>>;

/// A model that keeps the logits of every row it draws from.
struct Recorder<'a, E: Executor> {
    model: &'a mut Model<E>,
    drawn: Drawn,
    submitted: Option<Batch>,
}

impl<E: Executor> Forward for Recorder<'_, E> {
    fn limits(&self) -> BatchLimits {
        self.model.limits()
    }

    fn submit(&mut self, batch: &Batch) -> Result<()> {
        self.submitted = Some(batch.clone());
        Ok(())
    }

    async fn collect(&mut self) -> Result<Vec<u32>> {
        let batch = self.submitted.take().unwrap();
        let logits = self.model.logits(&batch).await?;
        let mut drawn = self.drawn.borrow_mut();
        let draw = |(row, sampling): (Vec<f32>, &RowSampling)| {
            // Of equals the first, as the sampling kernel does.
            let best = (0..row.len()).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
            drawn.entry(sampling.seed).or_default().insert(sampling.counter, row);
            u32::try_from(best).unwrap()
        };
        Ok(logits.into_iter().zip(&batch.sampling).map(draw).collect())
    }
}

/// A prompt's answer, and the logits of its tokens by position.
#[derive(Default)]
struct Answer {
    ids: Vec<u32>,
    logits: BTreeMap<u32, Vec<f32>>,
    usage: Usage,
}

impl Answer {
    /// Fails unless `actual` is the same answer, drawn from the same logits.
    fn assert_same(&self, actual: &Answer, what: &str) {
        let positions = |answer: &Answer| answer.logits.keys().copied().collect::<Vec<_>>();
        assert_eq!(positions(actual), positions(self), "{what}: positions");
        let rows = self.logits.values().zip(actual.logits.values());
        let distance = |(a, b): (&f32, &f32)| (a - b).abs();
        let worst = rows.flat_map(|(a, b)| a.iter().zip(b)).map(distance).fold(0.0, f32::max);
        println!("{what}: {} tokens cached, largest difference {worst:.1e}", actual.usage.cached_tokens);
        assert!(worst <= TOLERANCE, "{what}: logits differ by {worst}, {TOLERANCE} allowed");
        assert_eq!(actual.ids, self.ids, "{what}: text");
    }
}

/// An engine over the model, with pools of `groups`, no larger than the model's own.
struct Server<'a, E: Executor> {
    engine: Engine<Recorder<'a, E>>,
    drawn: Drawn,
    next_seed: u64,
}

impl<'a, E: Executor> Server<'a, E> {
    fn new(model: &'a mut Model<E>, tokenizer: &Rc<Tokenizer>, groups: Vec<GroupConfig>) -> Self {
        let drawn = Drawn::default();
        let recorder = Recorder { model, drawn: Rc::clone(&drawn), submitted: None };
        let engine = Engine::new(recorder, Rc::clone(tokenizer), groups, EngineOptions::default());
        Self { engine, drawn, next_seed: 0 }
    }

    /// The greedy continuations of prompts by `num` tokens, computed side by side.
    fn answers(&mut self, prompts: &[&[u32]], num: usize, enabled: bool) -> Vec<Answer> {
        let mut submit = |prompt: &&[u32]| {
            self.next_seed += 1;
            let request = Request {
                prompt: prompt.to_vec(),
                max_tokens: Some(num),
                // Greedy: the seed is a name.
                sampling: SamplingParams { seed: Some(self.next_seed), ..SamplingParams::greedy() },
                ignore_end_of_generation: true,
                cache: CacheOptions { enabled, ..CacheOptions::default() },
                ..Request::default()
            };
            (self.engine.submit(request, 0.0).unwrap(), self.next_seed)
        };
        let requests: Vec<_> = prompts.iter().map(&mut submit).collect();
        let mut answers: Vec<_> = requests.iter().map(|_| Answer::default()).collect();
        let index = |id| requests.iter().position(|&(request, _)| request == id).unwrap();
        while self.engine.has_work() {
            for event in block_on(self.engine.step(|| 0.0)) {
                match event {
                    Event::Text { request, ids, .. } => answers[index(request)].ids.extend(ids),
                    Event::Finished { request, usage, .. } => answers[index(request)].usage = usage,
                    Event::Progress { .. } => {}
                    Event::Failed { error, .. } => panic!("{error}"),
                }
            }
        }
        for (answer, (_, seed)) in answers.iter_mut().zip(&requests) {
            answer.logits = self.drawn.borrow_mut().remove(seed).unwrap();
        }
        answers
    }

    fn answer(&mut self, prompt: &[u32], num: usize, enabled: bool) -> Answer {
        self.answers(&[prompt], num, enabled).remove(0)
    }
}

/// The fewest blocks in which a sequence of `num_tokens` tokens fits.
fn least(groups: &[GroupConfig], num_tokens: usize) -> Vec<GroupConfig> {
    let all = num_tokens.div_ceil(BLOCK_SIZE);
    let blocks = |window: usize| all.min((window - 1).div_ceil(BLOCK_SIZE) + 1);
    let of = |group: &GroupConfig| GroupConfig { num_blocks: group.window.map_or(all, blocks), ..*group };
    groups.iter().map(of).collect()
}

/// Pools of which `choose` says how many blocks one has, given its group and its blocks in `a` and in `b`.
fn pools(
    [groups, a, b]: [&[GroupConfig]; 3],
    choose: impl Fn(&GroupConfig, usize, usize) -> usize,
) -> Vec<GroupConfig> {
    let pool = |((group, a), b): ((&GroupConfig, &GroupConfig), &GroupConfig)| {
        let num_blocks = choose(group, a.num_blocks, b.num_blocks);
        assert!(num_blocks <= group.num_blocks, "{num_blocks} blocks of {}", group.num_blocks);
        GroupConfig { num_blocks, ..*group }
    };
    groups.iter().zip(a).zip(b).map(pool).collect()
}

/// Two prompts of different beginnings, answered with `num` tokens each, in every state of the cache.
fn check<E: Executor>(name: &str, model: &mut Model<E>, gguf: &Gguf, [a, b]: [&[u32]; 2], num: usize) {
    let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
    let groups = model.groups();
    let mut server = Server::new(model, &tokenizer, groups.clone());
    let [expected, expected_b] = [a, b].map(|prompt| server.answer(prompt, num, false));
    let turn = [a, &expected.ids, &b[1..4]].concat();
    let expected_turn = server.answer(&turn, num, false);
    assert_eq!(expected.usage.cached_tokens + expected_b.usage.cached_tokens, 0);

    let cold = server.answer(a, num, true);
    assert_eq!(cold.usage.cached_tokens, 0);
    expected.assert_same(&cold, &format!("{name}, cold"));
    let warm = server.answer(a, num, true);
    assert_eq!(warm.usage.cached_tokens, a.len() - 1);
    expected.assert_same(&warm, &format!("{name}, warm"));
    let second = server.answer(&turn, num, true);
    assert_eq!(second.usage.cached_tokens, a.len() + num - 1);
    expected_turn.assert_same(&second, &format!("{name}, second turn"));

    // The other answer takes the place of this one's end, or of its first block, which no window reaches any more.
    let [all_a, all_b] = [a, b].map(|prompt| (prompt.len() + num).div_ceil(BLOCK_SIZE));
    let [least_a, least_b] = [a, b].map(|prompt| least(&groups, prompt.len() + num));
    let small = pools([&groups, &least_a, &least_b], |group, a, b| match group.window {
        None => a.max(b + 1),
        Some(_) => all_a + all_b - 1,
    });
    let mut server = Server::new(model, &tokenizer, small);
    expected.assert_same(&server.answer(a, num, true), &format!("{name}, cold, small pool"));
    expected_b.assert_same(&server.answer(b, num, true), &format!("{name}, evicting"));
    assert!(server.engine.cache_stats().num_evicted > 0);
    let partly = server.answer(a, num, true);
    let most = a.len() - if groups[0].window.is_none() { 2 } else { 1 };
    assert!((1..=most).contains(&partly.usage.cached_tokens), "{name}: {:?}", partly.usage);
    expected.assert_same(&partly, &format!("{name}, partly evicted"));

    // Side by side there is room for both prompts, not for the answers: one is preempted where blocks
    // are not given back on the way.
    if num > BLOCK_SIZE {
        let [prompt_a, prompt_b] = [a, b].map(|prompt| least(&groups, prompt.len()));
        let prompts = pools([&groups, &prompt_a, &prompt_b], |_, a, b| a + b);
        let mut server = Server::new(model, &tokenizer, prompts);
        let both = server.answers(&[a, b], num, true);
        let is_preempted = server.engine.metrics().num_preemptions > 0;
        assert!(is_preempted || groups[0].window.is_some(), "{name}: nothing is preempted");
        expected.assert_same(&both[0], &format!("{name}, beside another"));
        expected_b.assert_same(&both[1], &format!("{name}, preempted"));
    }

    let mut server = Server::new(model, &tokenizer, least_a);
    for round in ["cold", "warm"] {
        expected.assert_same(&server.answer(a, num, true), &format!("{name}, smallest pool, {round}"));
    }
}

fn options(context_length: usize) -> ModelOptions {
    ModelOptions { kv: KvFormat::F32, context_length: Some(context_length), ..ModelOptions::default() }
}

#[test]
fn tiny_models_draw_from_the_same_logits() {
    for name in ["tiny-llama", "tiny-gemma3"] {
        let (path, prompts) = tiny_model(name);
        let (gguf, source) = open(&path);
        let prompts = [&prompts[0].ids, &prompts[1].ids].map(Vec::as_slice);
        let mut model = block_on(load_cpu(&gguf, &source, &options(256))).unwrap();
        check(&format!("{name} on the CPU"), &mut model, &gguf, prompts, 24);
        for gpu in open_gpu() {
            let mut model = block_on(load_gpu(&gguf, &source, gpu, &options(256), |_| Ok(()))).unwrap();
            let tuning = model.executor().gpu().tuning();
            let name = format!("{name}, {} lanes, {} tokens a step", tuning.lanes, tuning.max_tokens);
            check(&name, &mut model, &gguf, prompts, 24);
        }
    }
}

/// On the native adapter; `prompts` are named in the reference values.
fn check_real(model: &str, prompts: [&str; 2], num: usize) {
    let Some(reference) = real_model(model) else { return };
    let (gguf, source) = open(&reference.path);
    let named = |name| reference.prompts.iter().find(|p| p.name == format!("{model} {name}")).unwrap();
    let prompts = prompts.map(|name| named(name).ids.as_slice());
    let context = prompts[0].len() + prompts[1].len() + 2 * num + 2 * BLOCK_SIZE;
    let mut loaded = block_on(load_gpu(&gguf, &source, open_gpu().remove(0), &options(context), |_| Ok(()))).unwrap();
    check(model, &mut loaded, &gguf, prompts, num);
}

#[test]
fn smollm2_draws_from_the_same_logits() {
    check_real("smollm2", ["raw_code", "chat_system"], 4);
}

#[test]
fn gemma3_draws_from_the_same_logits() {
    check_real("gemma3", ["raw_multilingual", "raw_code"], 4);
}

/// Longer than a window of Gemma 3, and with answers so long that one is preempted.
#[test]
fn long_prompts_draw_from_the_same_logits() {
    if std::env::var("PAGEWISE_LONG").is_err() {
        return;
    }
    check_real("smollm2", ["chat_single", "chat_multi_turn"], 24);
    check_real("gemma3", ["raw_long_swa", "raw_code"], 24);
}
