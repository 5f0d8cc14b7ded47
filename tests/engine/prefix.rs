//! The prefix cache in the engine: it saves work and never changes an answer.

use pagewise::Error;
use pagewise::engine::{Breakpoint, CacheOptions, EngineOptions, FinishReason, Request, SamplingParams};
use pagewise::kv::{CacheEvent, EvictReason, GroupConfig, MissReason, Policy};
use proptest::prelude::*;

use crate::fake::{Answer, Runner, Setup, request};
use crate::sampling::reference;

fn pool(num_blocks: usize) -> Vec<GroupConfig> {
    vec![GroupConfig { num_blocks, window: None }]
}

/// Tokens that went through the model since the last call.
fn computed(runner: &Runner) -> usize {
    runner.batches.borrow_mut().drain(..).map(|batch| batch.tokens.len()).sum()
}

/// The next turn of a conversation: the prompt, its answer and `num_new` tokens.
fn follow_up(request: &Request, answer: &Answer, num_new: usize) -> Request {
    let new = (0..).map(|index: u32| 97 + index * 5 % 26).take(num_new);
    Request { prompt: request.prompt.iter().chain(&answer.ids).copied().chain(new).collect(), ..request.clone() }
}

fn miss(answer: &Answer) -> Option<(usize, MissReason)> {
    answer.cache.miss.map(|miss| (miss.position, miss.reason))
}

#[test]
fn a_second_turn_computes_exactly_what_is_new() {
    for sliding in [None, Some(40), Some(7)] {
        let mut groups = pool(64);
        groups.extend(sliding.map(|window| GroupConfig { num_blocks: 32, window: Some(window) }));
        let mut runner = Setup { groups, ..Setup::default() }.build();
        let mut asked = request(50, 9, 0);
        let mut answer = runner.answer(&asked);
        assert_eq!(computed(&runner), 50 + 8);
        for num_new in [1, 5, 16, 30] {
            asked = follow_up(&asked, &answer, num_new);
            let num_known = asked.prompt.len() - num_new - 1;
            answer = runner.answer(&asked);
            // The last token of an answer was drawn, not computed; nor is it now the one of this answer.
            assert_eq!(computed(&runner), 1 + num_new + 8);
            let (_, usage, _) = answer.end.unwrap();
            assert_eq!((usage.prompt_tokens, usage.cached_tokens), (asked.prompt.len(), num_known));
            assert_eq!((answer.cache.read_tokens, answer.cache.miss), (num_known, None));
            assert_eq!(answer.ids, reference(&asked, 9));
        }
    }
}

#[test]
fn an_edited_message_reuses_up_to_the_first_difference() {
    let mut runner = Setup::default().build();
    let asked = request(100, 5, 0);
    runner.answer(&asked);
    for at in [70, 33, 16, 3] {
        computed(&runner);
        let mut edited = asked.clone();
        edited.prompt[at] = 200 + u32::try_from(at).unwrap() % 50;
        let answer = runner.answer(&edited);
        assert_eq!(computed(&runner), 100 - at + 4);
        assert_eq!(miss(&answer), Some((at, MissReason::Differs)));
        let found = answer.cache.miss.unwrap();
        assert_eq!((found.expected, found.found), (Some(asked.prompt[at]), Some(edited.prompt[at])));
        assert_eq!(answer.ids, reference(&edited, 5));
    }
}

#[test]
fn parallel_requests_with_a_common_prefix_compute_it_once() {
    // A step has room for the first prompt and half of another.
    let mut runner = Setup::default().build();
    let requests: Vec<_> = (0..4)
        .map(|index| {
            let mut request = request(40, 5, 0);
            request.prompt.extend([150 + index, 3]);
            request
        })
        .collect();
    let ids: Vec<_> = requests.iter().map(|request| runner.submit(request)).collect();
    runner.finish();
    assert_eq!(computed(&runner), 42 + 4 + 3 * (10 + 4), "two blocks are computed once");
    for (id, request) in ids.iter().zip(&requests) {
        assert_eq!(runner.answers[id].ids, reference(request, 5));
    }
    assert_eq!(runner.engine.cache_stats().num_duplicates, 0);
}

#[test]
fn what_a_cancelled_or_preempted_request_computed_is_kept() {
    let options = EngineOptions { budget_tokens: 10, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    let asked = request(60, 5, 0);
    let id = runner.submit(&asked);
    (0..4).for_each(|_| drop(runner.step()));
    runner.engine.cancel(id);
    computed(&runner);
    assert_eq!(runner.answer(&asked).cache.read_tokens, 40);

    // Seven blocks: the second is preempted while its first ones can still be kept.
    let mut runner = Setup { groups: pool(7), ..Setup::default() }.build();
    let requests = [request(30, 40, 1), request(40, 20, 2)];
    let ids = requests.each_ref().map(|request| runner.submit(request));
    runner.finish();
    assert_eq!(runner.engine.metrics().num_preemptions, 1);
    assert!(computed(&runner) < 69 + 59 + 40, "the second did not start all over");
    for (id, request) in ids.iter().zip(&requests) {
        assert_eq!(runner.answers[id].ids, reference(request, request.max_tokens.unwrap()));
        assert_eq!(runner.answers[id].cache.read_tokens, 0, "its own blocks are no hit");
    }
}

#[test]
fn a_prompt_can_be_warmed() {
    let mut runner = Setup::default().build();
    let asked = request(50, 5, 0);
    let warm = runner.answer(&Request { prefill_only: true, max_tokens: None, ..asked.clone() });
    assert_eq!((warm.ids.len(), warm.reason(), warm.text.as_str()), (0, Some(FinishReason::Length), ""));
    assert!(runner.batches.borrow().iter().all(|batch| batch.rows.is_empty()));
    assert_eq!((computed(&runner), warm.cache.written_tokens), (50, 50));
    let answer = runner.answer(&asked);
    assert_eq!((answer.cache.read_tokens, answer.ids), (49, reference(&asked, 5)));
    // Once more, when all is there.
    runner.answer(&Request { prefill_only: true, ..asked });
}

#[test]
fn the_cache_can_be_refused_and_salted() {
    let mut runner = Setup::default().build();
    let asked = request(50, 5, 0);
    let with = |change: fn(&mut CacheOptions)| {
        let mut request = asked.clone();
        change(&mut request.cache);
        request
    };
    let disabled = with(|cache| cache.enabled = false);
    for _ in 0..2 {
        let answer = runner.answer(&disabled);
        assert_eq!((answer.cache.written_tokens, miss(&answer)), (0, Some((0, MissReason::Disabled))));
    }
    assert_eq!(miss(&runner.answer(&asked)), Some((0, MissReason::Cold)));
    let salted = runner.answer(&with(|cache| cache.salt = "tenant".to_owned()));
    assert_eq!((salted.cache.read_tokens, miss(&salted)), (0, Some((0, MissReason::Salted))));
    assert_eq!(runner.answer(&with(|cache| cache.salt = "tenant".to_owned())).cache.read_tokens, 49);
    let long = with(|cache| cache.salt = "x".repeat(257));
    let error = "cache salt: 257 bytes asked, at most 256 allowed";
    assert_eq!(runner.engine.submit(long, 0.0), Err(Error::BadRequest(error.to_owned())));
}

#[test]
fn retention_is_the_requests() {
    let mut runner = Setup::default().build();
    let mut asked = request(50, 1, 0);
    asked.cache.ttl_ms = Some(50);
    asked.cache.breakpoints = vec![Breakpoint { position: 32, ttl_ms: 1000 }];
    asked.cache.name = Some("system".to_owned());
    asked.cache.pin = true;
    asked.cache.priority = 7;
    runner.answer(&asked);
    let prefixes = runner.engine.cache_prefixes();
    let named = prefixes.iter().find(|prefix| prefix.name.as_deref() == Some("system")).unwrap();
    assert_eq!((named.tokens.len(), named.is_pinned, named.priority), (32, true, 7));
    runner.clock_ms.set(500.0);
    let answer = runner.answer(&asked);
    assert_eq!(answer.cache.read_tokens, 32);
    runner.clock_ms.set(5000.0);
    runner.answer(&request(5, 1, 3));
    assert_eq!(runner.engine.cache_unpin("", &asked.prompt), 32);
    runner.answer(&request(5, 1, 4));
    assert_eq!(miss(&runner.answer(&asked)), Some((0, MissReason::Expired)));
    runner.engine.cache_events();
    assert_eq!(runner.engine.cache_pin("", &asked.prompt), 48);
    assert!(runner.engine.cache_clear() > 0);
    let dropped = |event: &CacheEvent| matches!(event, CacheEvent::Evicted { reason: EvictReason::Asked, .. });
    assert!(runner.engine.cache_events().iter().all(dropped));
    assert!(runner.engine.cache_blocks().iter().all(|view| view.cached.is_none()));
}

#[test]
fn pins_yield_to_a_request_that_could_not_run_otherwise() {
    let mut runner = Setup { groups: pool(6), ..Setup::default() }.build();
    let mut pinned = request(64, 1, 0);
    pinned.cache.pin = true;
    runner.answer(&pinned);
    // 32 tokens fit beside the pinned ones, 80 only without.
    let small = [request(14, 10, 1), request(14, 10, 2)];
    for request in &small {
        runner.submit(request);
    }
    runner.finish();
    assert_eq!(runner.answer(&pinned).cache.read_tokens, 63);
    let large = request(80, 10, 3);
    assert_eq!(runner.answer(&large).ids, reference(&large, 10));
}

#[test]
fn nothing_that_a_failed_step_touched_is_reused() {
    let options = EngineOptions { budget_tokens: 32, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    let asked = request(50, 5, 0);
    let id = runner.submit(&asked);
    runner.step();
    runner.outcomes.borrow_mut().push_back(Err(Error::WrongResult("NaN logits".to_owned())));
    runner.step();
    assert!(runner.answers[&id].error.is_some());
    computed(&runner);
    let answer = runner.answer(&asked);
    assert_eq!((answer.cache.read_tokens, computed(&runner)), (0, 54), "even its first step's blocks are suspect");
}

/// A request of a random conversation, and how it is asked for.
#[derive(Debug, Clone)]
struct Turn {
    /// Which earlier prompt with its answer it goes on from, and how much of it is kept.
    history: usize,
    keep: usize,
    num_new: usize,
    max_tokens: usize,
    priority: i32,
    ttl_ms: Option<u64>,
    pin: bool,
    salt: bool,
    steps_after: usize,
    is_cancelled: bool,
}

fn turn() -> impl Strategy<Value = Turn> {
    let shape = (any::<usize>(), any::<usize>(), 1..40_usize, 1..20_usize, 0..12_usize);
    let wishes = (0..3_i32, proptest::option::of(0..300_u64), prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    (shape, wishes, prop::bool::weighted(0.1)).prop_map(|(shape, wishes, is_cancelled)| {
        let (history, keep, num_new, max_tokens, steps_after) = shape;
        let (priority, ttl_ms, pin, salt) = wishes;
        Turn { history, keep, num_new, max_tokens, priority, ttl_ms, pin, salt, steps_after, is_cancelled }
    })
}

fn ask(turn: &Turn, histories: &[Vec<u32>], longest: usize) -> Request {
    let history = &histories[turn.history % histories.len()];
    let mut prompt = history[..turn.keep % (history.len() + 1)].to_vec();
    prompt.extend((0..).map(|index: u32| 97 + index % 3).take(turn.num_new));
    prompt.truncate(longest - turn.max_tokens);
    let salt = if turn.salt { "other".to_owned() } else { String::new() };
    let (priority, ttl_ms, pin) = (turn.priority, turn.ttl_ms, turn.pin);
    let cache = CacheOptions { priority, ttl_ms, pin, salt, ..CacheOptions::default() };
    let sampling = SamplingParams::greedy();
    Request { prompt, max_tokens: Some(turn.max_tokens), sampling, cache, ..Request::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    // Off, cold, warm, partly evicted, in the smallest pool: the answer is the model's.
    #[test]
    fn the_cache_never_changes_an_answer(
        turns in proptest::collection::vec(turn(), 1..30),
        num_blocks in 7..24_usize,
        sliding in proptest::option::of((1..40_usize, 0..6_usize)),
        budget_tokens in 1..50_usize,
        max_copies in 0..40_usize,
        is_tail_aware in any::<bool>(),
    ) {
        let mut setup = Setup { groups: pool(num_blocks), ..Setup::default() };
        setup.groups.extend(sliding.map(|(window, spare)| {
            GroupConfig { num_blocks: window.div_ceil(16) + 1 + spare, window: Some(window) }
        }));
        setup.options.budget_tokens = budget_tokens;
        setup.limits.max_copies = max_copies;
        if is_tail_aware {
            setup.options.cache_policy =
                Policy::TailAware { ttft_target_ms: 30, prefill_tokens_per_s: 1000, next_turn_tokens: 10 };
        }
        let mut runner = setup.build();
        let longest = runner.engine.context_length().min(112);
        let mut histories = vec![Vec::new()];
        let mut asked = Vec::new();
        for turn in &turns {
            let request = ask(turn, &histories, longest);
            let expected = reference(&request, turn.max_tokens);
            histories.push([&request.prompt[..], &expected].concat());
            let id = runner.submit(&request);
            (0..turn.steps_after).for_each(|_| drop(runner.step()));
            if turn.is_cancelled {
                runner.engine.cancel(id);
                runner.engine.kv().check().unwrap();
            } else {
                asked.push((id, expected));
            }
        }
        runner.finish();
        for (id, expected) in asked {
            prop_assert_eq!(&runner.answers[&id].ids, &expected);
        }
    }
}
