//! Several answers to one prompt.

use pagewise::Error;
use pagewise::engine::{
    CacheOptions, EngineOptions, FinishReason, MAX_CHOICES, Request, RequestId, SamplingParams, Timeouts,
};
use pagewise::kv::GroupConfig;

use crate::fake::{END, Row, Runner, Setup, hash, request};
use crate::sampling::reference;

fn computed(runner: &Runner) -> usize {
    runner.batches.borrow().iter().map(|batch| batch.tokens.len()).sum()
}

fn sampled(num_prompt: usize, max_tokens: usize) -> Request {
    let sampling = SamplingParams { temperature: 0.8, seed: Some(7), ..SamplingParams::default() };
    Request { sampling, ..request(num_prompt, max_tokens, 3) }
}

fn finished(runner: &mut Runner, ids: &[RequestId]) -> Vec<Vec<u32>> {
    runner.finish();
    ids.iter().map(|id| runner.answers[id].ids.clone()).collect()
}

#[test]
fn the_prompt_is_computed_once() {
    for num_prompt in [1, 15, 16, 17, 31, 32, 33, 50] {
        let mut runner = Setup::default().build();
        let ids = runner.submit_choices(&sampled(num_prompt, 6), 4);
        let answers = finished(&mut runner, &ids);
        assert_eq!(computed(&runner), num_prompt + 4 * 5, "{num_prompt} tokens");
        assert_eq!(answers[0], reference(&sampled(num_prompt, 6), 6), "the first is that of n = 1");
        let distinct: std::collections::BTreeSet<_> = answers.iter().collect();
        assert_eq!(distinct.len(), 4, "each has a seed of its own");
        for id in &ids {
            let (reason, usage, _) = runner.answers[id].end.unwrap();
            assert_eq!((reason, usage.prompt_tokens, usage.completion_tokens), (FinishReason::Length, num_prompt, 6));
            assert_eq!(usage.cached_tokens, 0);
        }
    }
}

#[test]
fn equal_seeds_give_equal_choices() {
    let answers = || {
        let mut runner = Setup::default().build();
        let ids = runner.submit_choices(&sampled(20, 6), 3);
        finished(&mut runner, &ids)
    };
    assert_eq!(answers(), answers());
}

#[test]
fn greedy_choices_are_equal() {
    let asked = Request { sampling: SamplingParams::greedy(), ..request(40, 8, 1) };
    let mut runner = Setup::default().build();
    let ids = runner.submit_choices(&asked, 3);
    for answer in finished(&mut runner, &ids) {
        assert_eq!(answer, reference(&asked, 8));
    }
}

#[test]
fn choices_that_find_no_place_wait_and_still_answer() {
    // Two slots for four; or blocks for little more than one.
    for (max_running, num_blocks) in [(2, 64), (8, 4), (1, 4)] {
        let options = EngineOptions { max_running, ..EngineOptions::default() };
        let groups = vec![GroupConfig { num_blocks, window: None }];
        let mut runner = Setup { options, groups, ..Setup::default() }.build();
        let ids = runner.submit_choices(&sampled(33, 12), 4);
        let answers = finished(&mut runner, &ids);
        let mut wide = Setup::default().build();
        let wide_ids = wide.submit_choices(&sampled(33, 12), 4);
        assert_eq!(answers, finished(&mut wide, &wide_ids));
    }
}

#[test]
fn without_the_cache_full_blocks_of_the_prompt_are_still_computed_once() {
    let cache = CacheOptions { enabled: false, ..CacheOptions::default() };
    let asked = Request { cache, ..sampled(33, 6) };
    let mut runner = Setup::default().build();
    let ids = runner.submit_choices(&asked, 3);
    let answers = finished(&mut runner, &ids);
    let mut cached = Setup::default().build();
    let cached_ids = cached.submit_choices(&sampled(33, 6), 3);
    assert_eq!(answers, finished(&mut cached, &cached_ids));
    assert_eq!(computed(&runner), 33 + 3 * 5 + 2, "the others compute the prompt's last token for themselves");
    assert!(runner.engine.cache_blocks().iter().all(|view| view.cached.is_none()), "nothing is left of it");
}

#[test]
fn choices_without_the_cache_that_find_no_place_wait_and_still_answer() {
    let cache = CacheOptions { enabled: false, ..CacheOptions::default() };
    let asked = Request { cache, ..sampled(33, 12) };
    for (max_running, num_blocks) in [(2, 64), (8, 5), (8, 4), (1, 4)] {
        let options = EngineOptions { max_running, ..EngineOptions::default() };
        let groups = vec![GroupConfig { num_blocks, window: None }];
        let mut runner = Setup { options, groups, ..Setup::default() }.build();
        let ids = runner.submit_choices(&asked, 4);
        let answers = finished(&mut runner, &ids);
        let mut wide = Setup::default().build();
        let wide_ids = wide.submit_choices(&asked, 4);
        assert_eq!(answers, finished(&mut wide, &wide_ids));
    }
}

#[test]
fn a_choice_may_end_with_its_first_token() {
    // The first and third end at once.
    for ends in [[true, false, true], [false, true, false], [true, true, true]] {
        let draw = move |row: &Row| {
            let choice = match row.sampling.seed {
                7 => 0,
                seed => 1 + usize::from(seed != derived(1)),
            };
            if row.tokens.len() == 20 && ends[choice] { END } else { hash(row) }
        };
        let mut runner = Setup { draw: Box::new(draw), ..Setup::default() }.build();
        let ids = runner.submit_choices(&sampled(20, 5), 3);
        runner.finish();
        for (id, ends) in ids.iter().zip(ends) {
            let expected = if ends { (FinishReason::Stop, 1) } else { (FinishReason::Length, 5) };
            assert_eq!((runner.answers[id].reason().unwrap(), runner.answers[id].ids.len()), expected);
        }
    }
}

/// The seed of the second choice, found by asking.
fn derived(index: usize) -> u64 {
    let mut runner = Setup::default().build();
    runner.submit_choices(&sampled(20, 5), 3);
    runner.step();
    runner.batches.borrow()[0].sampling[index].seed
}

#[test]
fn each_choice_can_be_cancelled_at_any_point() {
    let cases = (0..3).flat_map(|choice| (0..8).flat_map(move |steps| [1, 2, 4].map(|num| (choice, steps, num))));
    for (cancelled, steps_before, num_ahead) in cases {
        let options = EngineOptions { budget_tokens: 16, max_steps_ahead: Some(num_ahead), ..EngineOptions::default() };
        let mut runner = Setup { options, ..Setup::default() }.build();
        let blocker = runner.submit(&request(20, 4, 0));
        let ids = runner.submit_choices(&sampled(33, 6), 3);
        (0..steps_before).for_each(|_| drop(runner.step()));
        let is_live = runner.answers[&ids[cancelled]].end.is_none();
        assert_eq!(runner.engine.cancel(ids[cancelled]), is_live);
        runner.engine.kv().check().unwrap();
        let answers = finished(&mut runner, &ids);
        let mut whole = Setup::default().build();
        let whole_ids = whole.submit_choices(&sampled(33, 6), 3);
        for (index, expected) in finished(&mut whole, &whole_ids).into_iter().enumerate() {
            if index != cancelled {
                assert_eq!(answers[index], expected, "choice {index}, {cancelled} cancelled after {steps_before}");
            }
        }
        assert!(runner.answers[&blocker].end.is_some());
    }
}

#[test]
fn a_failed_step_and_a_deadline_end_all_choices() {
    let mut runner = Setup::default().build();
    let ids = runner.submit_choices(&sampled(33, 6), 3);
    runner.outcomes.borrow_mut().push_back(Err(Error::WrongResult("NaN logits".to_owned())));
    runner.finish();
    assert!(ids.iter().all(|id| runner.answers[id].error.is_some()));
    let timeouts = Timeouts { deadline_ms: Some(5.0), ..Timeouts::default() };
    let ids = runner.submit_choices(&Request { timeouts, ..sampled(33, 6) }, 3);
    runner.finish();
    assert!(ids.iter().all(|id| matches!(runner.answers[id].error, Some(Error::DeadlineExceeded { .. }))));
}

#[test]
fn more_choices_than_a_step_can_draw_follow() {
    let mut wide = Setup::default();
    wide.limits.max_rows = MAX_CHOICES;
    wide.limits.max_sequences = MAX_CHOICES;
    let mut wide = wide.build();
    let wide_ids = wide.submit_choices(&sampled(50, 6), MAX_CHOICES);
    let expected = finished(&mut wide, &wide_ids);
    for (max_rows, enabled) in [(1, true), (3, true), (4, true), (15, true), (4, false)] {
        let mut setup = Setup::default();
        setup.limits.max_rows = max_rows;
        setup.limits.max_sequences = max_rows;
        let mut runner = setup.build();
        let cache = CacheOptions { enabled, group: Some("key".to_owned()), ..CacheOptions::default() };
        // Only the first waits: what follows has begun with it.
        let timeouts = Timeouts { queue_ms: Some(50.0), ..Timeouts::default() };
        let ids = runner.submit_choices(&Request { cache, timeouts, ..sampled(50, 6) }, MAX_CHOICES);
        assert_eq!(finished(&mut runner, &ids), expected, "{max_rows} rows, cache {enabled}");
        let metrics = runner.engine.metrics();
        assert_eq!((metrics.prompt_tokens, metrics.queue_ms.count()), (50, 1), "it is one request");
        assert_eq!(runner.engine.cache_groups().0[0].num_requests, 1);
        if enabled {
            let num_parts = MAX_CHOICES.div_ceil(max_rows);
            assert!(computed(&runner) <= 50 + 16 * 5 + (num_parts - 1) * 2, "{max_rows} rows: {}", computed(&runner));
        }
    }
}

#[test]
fn a_number_of_choices_out_of_range_is_refused() {
    let mut runner = Setup::default().build();
    for num in [0, MAX_CHOICES + 1, usize::MAX] {
        let error = runner.engine.submit_choices(sampled(4, 4), num, 0.0).unwrap_err();
        assert_eq!(error, Error::BadRequest(format!("n: {num} asked, 1 to 16 allowed")));
    }
    let sampling = SamplingParams { repetition_penalty: 1.5, ..SamplingParams::default() };
    let mut setup = Setup::default();
    setup.limits.max_edits = 60;
    let asked = Request { sampling, ..request(26, 4, 0) };
    let error = setup.build().engine.submit_choices(asked, 3, 0.0).unwrap_err();
    assert!(error.to_string().starts_with("logits changed by penalties and logit_bias: 78 asked, 60"), "{error}");
}
