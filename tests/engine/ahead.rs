//! Steps that are submitted before the ids of those before them are read back.

use pagewise::Error;
use pagewise::engine::{EngineOptions, Event, FinishReason, Request, RequestId, SamplingParams};
use pagewise::kv::GroupConfig;
use pagewise::model::{Batch, Token};

use crate::fake::{Answer, END, Setup, VOCAB_SIZE, bytes, request};
use crate::sampling::reference;

/// An engine that keeps up to `num` steps in flight.
pub fn ahead(num: usize, setup: Setup) -> Setup {
    Setup { options: EngineOptions { max_steps_ahead: Some(num), ..setup.options }, ..setup }
}

fn pool(num_blocks: usize) -> Vec<GroupConfig> {
    vec![GroupConfig { num_blocks, window: None }]
}

/// Tokens of a batch that only the step before knows.
fn num_drawn(batch: &Batch) -> usize {
    batch.tokens.iter().filter(|row| matches!(row.token, Token::Drawn(_))).count()
}

/// What an answer is, apart from times.
fn told(answer: &Answer) -> (&[u32], &str, Option<FinishReason>, Option<&Error>) {
    (&answer.ids, &answer.text, answer.reason(), answer.error.as_ref())
}

#[test]
fn the_device_goes_on_with_what_it_drew_itself() {
    for num in 1..=4 {
        let mut runner = ahead(num, Setup::default()).build();
        let answer = runner.answer(&request(20, 12, 1));
        assert_eq!(answer.ids, reference(&request(20, 12, 1), 12));
        let batches = runner.batches.borrow();
        let expected: Vec<_> = (0..12).map(|step| usize::from(step > 0 && num > 1)).collect();
        assert_eq!(batches.iter().map(num_drawn).collect::<Vec<_>>(), expected, "{num} steps in flight");
        let metrics = runner.engine.metrics();
        assert_eq!((metrics.num_steps_ahead, metrics.overshot_tokens), (if num > 1 { 11 } else { 0 }, 0));
        assert_eq!(metrics.computed_tokens, 20 + 11, "nothing is computed behind max_tokens");
    }
}

#[test]
fn steps_go_ahead_where_the_device_would_wait() {
    // By the runner's clock a step takes 10 ms, and as much passes before the next.
    for (times, max_steps_ahead, is_ahead) in [
        (Some((9.0, 0.5)), None, true),
        (Some((9.0, 0.5)), Some(1), false),
        (Some((19.9, 0.5)), None, false),
        (None, None, false),
    ] {
        let options = EngineOptions { max_steps_ahead, ..EngineOptions::default() };
        let mut runner = Setup { times, options, ..Setup::default() }.build();
        assert_eq!(runner.answer(&request(20, 12, 1)).ids, reference(&request(20, 12, 1), 12));
        assert_eq!(runner.engine.metrics().num_steps_ahead > 0, is_ahead, "{times:?}, at most {max_steps_ahead:?}");
    }
}

#[test]
fn nothing_behind_a_stop_shows_or_counts() {
    let ask = |num: usize, change: fn(&mut Request)| {
        let mut request = Request { prompt: bytes("hi"), ..Request::default() };
        change(&mut request);
        let mut runner = ahead(num, Setup::script(2, bytes("one two three four"))).build();
        let answer = runner.answer(&request);
        let metrics = runner.engine.metrics();
        assert_eq!(metrics.generated_tokens, answer.ids.len() as u64);
        assert_eq!(metrics.num_finished.stop, 1);
        (answer, metrics.overshot_tokens, metrics.computed_tokens)
    };
    let stops: [fn(&mut Request); 3] = [
        |request| request.stop = vec!["two".into()],
        |request| request.stop_token_ids = bytes("w"),
        |request| request.stop = vec!["four!".into()],
    ];
    for change in stops {
        let (expected, overshot, computed) = ask(1, change);
        assert_eq!(overshot, 0);
        for num in 2..=4 {
            let (answer, overshot, more) = ask(num, change);
            assert_eq!(told(&answer), told(&expected));
            let (usage, cache) = (answer.end.unwrap().1, answer.cache);
            assert_eq!((usage, cache), (expected.end.unwrap().1, expected.cache));
            assert_eq!((overshot, more - computed), (num as u64 - 1, num as u64 - 1));
        }
    }
}

/// Requests that end in every way, on a pool that is short of blocks.
fn mixed(num: usize) -> (Vec<Answer>, u64) {
    let draw = |row: &crate::fake::Row| if row.tokens.len() % 41 == 40 { END } else { crate::fake::hash(row) };
    let setup = Setup { groups: pool(8), draw: Box::new(draw), ..Setup::default() };
    let mut runner = ahead(num, setup).build();
    let mut ids = Vec::new();
    for salt in 0..6 {
        let penalised = SamplingParams { repetition_penalty: 1.2, ..SamplingParams::default() };
        let sampling = if salt % 3 == 2 { penalised } else { SamplingParams::greedy() };
        let asked = Request { sampling, ..request(20 + 9 * salt as usize, 25, salt) };
        ids.extend(runner.submit_choices(&asked, 1 + salt as usize % 2));
        runner.step();
    }
    runner.finish();
    let answers = ids.iter().map(|id| runner.answers[id].clone()).collect();
    (answers, runner.engine.metrics().num_preemptions)
}

#[test]
fn every_answer_is_the_same_whatever_is_in_flight() {
    let (expected, preempted) = mixed(1);
    assert!(preempted > 0);
    assert!(expected.iter().any(|answer| answer.reason() == Some(FinishReason::Stop)));
    for num in 2..=4 {
        let (answers, preempted) = mixed(num);
        assert!(preempted > 0);
        for (answer, expected) in answers.iter().zip(&expected) {
            assert_eq!(told(answer), told(expected), "{num} steps in flight");
        }
    }
}

#[test]
fn whose_draws_depend_on_the_answer_waits_for_it() {
    let sampling = SamplingParams { presence_penalty: 0.5, seed: Some(2), ..SamplingParams::default() };
    let penalised = Request { sampling, ..request(10, 8, 2) };
    let mut runner = ahead(3, Setup::default()).build();
    assert_eq!(runner.answer(&penalised).ids, reference(&penalised, 8));
    assert_eq!(runner.batches.borrow().iter().map(num_drawn).sum::<usize>(), 0);
    // Beside it others run ahead.
    let ids = [&penalised, &request(10, 20, 1)].map(|request| runner.submit(request));
    runner.finish();
    assert_eq!(runner.answers[&ids[0]].ids, reference(&penalised, 8));
    assert_eq!(runner.answers[&ids[1]].ids, reference(&request(10, 20, 1), 20));
    assert!(runner.engine.metrics().num_steps_ahead > 0);
}

#[test]
fn whoever_comes_joins_a_step_that_is_planned_ahead() {
    let mut runner = ahead(2, Setup::default()).build();
    runner.submit(&request(10, 30, 0));
    runner.step();
    let late = runner.submit(&request(10, 3, 1));
    runner.step();
    let batches = runner.batches.borrow();
    let last = batches.last().unwrap();
    assert_eq!((last.tables[0].len(), num_drawn(last)), (2, 1), "its prompt beside a token that is being drawn");
    drop(batches);
    runner.finish();
    assert_eq!(runner.answers[&late].ids, reference(&request(10, 3, 1), 3));
}

#[test]
fn a_failed_step_takes_with_it_who_was_in_it_and_nobody_else() {
    for num in 1..=4 {
        let mut runner = ahead(num, Setup::default()).build();
        let failing = [0, 1].map(|salt| runner.submit(&request(20, 12, salt)));
        runner.step();
        // Only in steps behind the one that fails.
        let late = runner.submit(&request(40, 6, 2));
        if num > 1 {
            runner.step();
        }
        let error = Error::WrongResult("NaN logits".to_owned());
        runner.outcomes.borrow_mut().push_back(Err(error.clone()));
        let before = failing.map(|id| runner.answers[&id].ids.len());
        let is_late_in_it = num == 1;
        runner.step();
        for (id, before) in failing.iter().zip(before) {
            assert_eq!(runner.answers[id].error.as_ref(), Some(&error));
            assert_eq!(runner.answers[id].ids.len(), before, "no token of the step is used");
        }
        runner.finish();
        let late = &runner.answers[&late];
        match is_late_in_it || late.error.is_some() {
            true => assert!(num <= 2, "{num} in flight: it was in a step behind"),
            false => assert_eq!(late.ids, reference(&request(40, 6, 2), 6)),
        }
        assert_eq!(
            runner.answer(&request(20, 12, 0)).ids,
            reference(&request(20, 12, 0), 12),
            "and the engine serves on"
        );
    }
}

#[test]
fn a_lost_device_ends_everything_in_flight() {
    for num in 1..=4 {
        let mut runner = ahead(num, Setup::default()).build();
        let ids = [0, 1].map(|salt| runner.submit(&request(20, 12, salt)));
        runner.step();
        let error = Error::DeviceLost("unplugged".to_owned());
        // Every step from then on.
        (0..num).for_each(|_| runner.outcomes.borrow_mut().push_back(Err(error.clone())));
        runner.step();
        assert!(ids.iter().all(|id| runner.answers[id].error.as_ref() == Some(&error)));
        let mut num_steps = 0;
        while runner.engine.has_work() {
            assert_eq!(runner.step(), []);
            num_steps += 1;
        }
        assert_eq!(num_steps, num - 1, "what is in flight is collected");
    }
}

#[test]
fn a_dropped_step_goes_on_and_is_collected_first() {
    for num in 1..=4 {
        let mut runner = ahead(num, Setup::default()).build();
        let ids = [0, 1].map(|salt| runner.submit(&request(50, 9, salt)));
        while runner.engine.has_work() {
            assert!(runner.drop_step() && runner.drop_step());
            runner.step();
        }
        for (salt, id) in (0..).zip(ids) {
            assert_eq!(runner.answers[&id].ids, reference(&request(50, 9, salt), 9));
        }
        let metrics = runner.engine.metrics();
        assert_eq!(metrics.num_steps, runner.batches.borrow().len() as u64, "no step is computed twice");
    }
}

#[test]
fn whoever_is_cancelled_with_steps_in_flight_is_heard_of_no_more() {
    for (num, steps_before) in (1..=4).flat_map(|num| (1..8).map(move |steps| (num, steps))) {
        let mut runner = ahead(num, Setup { groups: pool(6), ..Setup::default() }).build();
        let [first, second] = [0, 1].map(|salt| runner.submit(&request(30, 12, salt)));
        (0..steps_before).for_each(|_| drop(runner.step()));
        let events_of = |events: Vec<Event>, id: RequestId| events.iter().filter(|event| event.request() == id).count();
        assert!(runner.engine.cancel(first));
        runner.engine.kv().check().unwrap();
        while runner.engine.has_work() {
            assert_eq!(events_of(runner.step(), first), 0);
        }
        assert_eq!(runner.answers[&second].ids, reference(&request(30, 12, 1), 12));
        // What it computed is found, and what was in flight did not spoil it.
        let again = runner.answer(&request(30, 12, 0));
        assert!(again.cache.read_tokens > 0);
        assert_eq!(again.ids, reference(&request(30, 12, 0), 12));
    }
}

#[test]
fn choices_are_told_apart_though_some_leave_while_their_tokens_are_drawn() {
    let sampling = SamplingParams { seed: Some(3), ..SamplingParams::default() };
    let asked = Request { sampling, ..request(20, 8, 0) };
    let mut whole = ahead(1, Setup::default()).build();
    let expected = whole.submit_choices(&asked, 3);
    whole.finish();
    for (num, gone) in (1..=4).flat_map(|num| [[0, 1], [0, 2], [1, 2]].map(|gone| (num, gone))) {
        let mut runner = ahead(num, Setup::default()).build();
        let ids = runner.submit_choices(&asked, 3);
        // Their first tokens are being drawn.
        assert!(runner.drop_step());
        assert!(gone.iter().all(|&index| runner.engine.cancel(ids[index])));
        runner.finish();
        let left = (0..3).find(|index| !gone.contains(index)).unwrap();
        assert_eq!(
            runner.answers[&ids[left]].ids, whole.answers[&expected[left]].ids,
            "{num} in flight, {gone:?} left"
        );
        assert_eq!(runner.engine.metrics().overshot_tokens, 2);
    }
}

#[test]
fn what_is_cached_is_read_while_steps_are_in_flight() {
    let asked = request(40, 20, 0);
    let mut runner = ahead(4, Setup::default()).build();
    runner.submit(&asked);
    (0..3).for_each(|_| drop(runner.step()));
    assert!(runner.engine.has_work());
    let mut bytes = Vec::new();
    let sink = |more: Vec<u8>| {
        bytes.extend(more);
        Ok(())
    };
    let saved = pollster::block_on(runner.engine.cache_save("", &asked.prompt, 0.0, sink)).unwrap();
    assert_eq!(saved.num_tokens, 32);
    runner.finish();
    let mut other = ahead(4, Setup::default()).build();
    other.submit(&request(30, 9, 3));
    other.step();
    let options = pagewise::engine::CacheOptions::default();
    let restored = pollster::block_on(other.engine.cache_restore(bytes.as_slice(), &options, 0.0)).unwrap();
    assert_eq!(restored.num_tokens, 32);
    other.finish();
    let answer = other.answer(&asked);
    assert_eq!((answer.cache.read_tokens, answer.ids), (32, reference(&asked, 20)));
}

#[test]
fn a_mask_lets_no_other_token_through_and_hinders_nobody() {
    let ids = vec![100, 103, 259];
    let asked = Request { allowed_token_ids: Some(ids.clone()), ..request(20, 30, 0) };
    let mut answers = Vec::new();
    for num in 1..=4 {
        let mut runner = ahead(num, Setup::default()).build();
        let free = runner.submit(&request(9, 30, 1));
        let masked = runner.submit_choices(&asked, 2);
        runner.finish();
        assert_eq!(runner.answers[&free].ids, reference(&request(9, 30, 1), 30));
        answers.push(masked.iter().map(|id| runner.answers[id].ids.clone()).collect::<Vec<_>>());
        let batches = runner.batches.borrow();
        let masks: Vec<_> = batches.iter().flat_map(|batch| &batch.masks).map(|mask| &mask.allowed).collect();
        assert!(masks.iter().all(|mask| std::ptr::eq(mask.as_ptr(), masks[0].as_ptr())), "one mask, made once");
        assert_eq!(masks[0].len(), VOCAB_SIZE.div_ceil(32));
        assert_eq!(batches.iter().any(|batch| !batch.masks.is_empty() && num_drawn(batch) > 1), num > 1);
    }
    assert!(answers.iter().all(|answer| answer == &answers[0]));
    let drawn: std::collections::BTreeSet<_> = answers[0].iter().flatten().copied().collect();
    assert_eq!(drawn.into_iter().collect::<Vec<_>>(), ids);
}

#[test]
fn the_model_is_free_when_all_answers_have_ended() {
    let mut runner = ahead(4, Setup::script(2, bytes("one"))).build();
    let id = runner.submit(&Request { prompt: bytes("hi"), ..Request::default() });
    runner.step();
    let busy = pollster::block_on(runner.engine.forward_alone()).map(drop);
    assert!(matches!(busy, Err(Error::BadRequest(_))), "{busy:?}");
    while runner.answers[&id].end.is_none() {
        runner.step();
    }
    assert!(runner.engine.has_work(), "steps are in flight");
    assert!(pollster::block_on(runner.engine.forward_alone()).is_ok());
    assert!(!runner.engine.has_work());
    assert_eq!(runner.answer(&Request { prompt: bytes("ho"), ..Request::default() }).text, "one");
}
