//! Whatever the schedule, answers are those of a request alone.

use pagewise::Error;
use pagewise::engine::{Batching, EngineOptions, FinishReason, Request, RequestId, SamplingParams, Timeouts};
use pagewise::kv::GroupConfig;
use proptest::prelude::*;

use crate::fake::{Runner, Setup, request};
use crate::sampling::reference;

/// Tokens of each step.
fn step_sizes(runner: &Runner) -> Vec<usize> {
    runner.batches.borrow().iter().map(|batch| batch.tokens.len()).collect()
}

fn pool(num_blocks: usize) -> Vec<GroupConfig> {
    vec![GroupConfig { num_blocks, window: None }]
}

#[test]
fn a_long_prompt_is_computed_in_parts() {
    let mut expected = None;
    for (budget_tokens, sizes) in
        [(100, vec![50, 1, 1]), (20, vec![20, 20, 10, 1, 1]), (7, vec![7, 7, 7, 7, 7, 7, 7, 1, 1, 1])]
    {
        let options = EngineOptions { budget_tokens, ..EngineOptions::default() };
        let mut runner = Setup { options, ..Setup::default() }.build();
        let answer = runner.answer(&request(50, 3, 0));
        assert_eq!(step_sizes(&runner), sizes);
        assert_eq!(&answer.ids, expected.get_or_insert(answer.ids.clone()));
    }
}

#[test]
fn two_interleaved_sequences_answer_as_they_do_alone() {
    let requests = [request(33, 20, 1), request(50, 12, 2)];
    let mut runner = Setup::default().build();
    let ids = requests.each_ref().map(|request| runner.submit(request));
    runner.finish();
    let batches = runner.batches.borrow();
    assert!(batches.iter().any(|batch| batch.rows.len() == 2), "they ran in one batch");
    for (id, request) in ids.iter().zip(&requests) {
        let alone = Setup::default().build().answer(request);
        assert_eq!(runner.answers[id].ids, alone.ids);
        assert_eq!(runner.answers[id].text, alone.text);
    }
}

#[test]
fn running_sequences_come_before_waiting_ones() {
    let options = EngineOptions { budget_tokens: 16, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    runner.submit(&request(4, 5, 0));
    runner.step();
    runner.submit(&request(40, 2, 1));
    runner.finish();
    // The second takes what the first leaves of each step.
    assert_eq!(step_sizes(&runner), [4, 16, 16, 11, 2]);
    assert_eq!(runner.batches.borrow()[1].tokens[0].position, 4);
}

#[test]
fn max_running_bounds_what_runs_at_once() {
    let options = EngineOptions { max_running: 2, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    for salt in 0..5 {
        runner.submit(&request(4, 3, salt));
    }
    runner.step();
    assert_eq!((runner.engine.metrics().num_running, runner.engine.metrics().num_waiting), (2, 3));
    runner.finish();
    assert!(runner.batches.borrow().iter().all(|batch| batch.tables[0].len() <= 2));
}

#[test]
fn out_of_blocks_the_youngest_is_preempted_and_still_answers_the_same() {
    let requests = [request(30, 30, 0), request(30, 30, 1), request(30, 30, 2)];
    let mut runner = Setup { groups: pool(8), ..Setup::default() }.build();
    let ids = requests.each_ref().map(|request| runner.submit(request));
    let mut order = Vec::new();
    while runner.engine.has_work() {
        for event in runner.step() {
            if let pagewise::engine::Event::Finished { request, .. } = event {
                order.push(request);
            }
        }
    }
    assert_eq!(order, ids, "the oldest is never the one to yield");
    assert!(runner.engine.metrics().num_preemptions > 0);
    assert_eq!(runner.engine.metrics().kv[0].peak, 8);
    for (id, request) in ids.iter().zip(&requests) {
        assert_eq!(runner.answers[id].ids, reference(request, 30));
    }
}

#[test]
fn nothing_is_admitted_in_a_step_that_preempts() {
    // Two of 16 tokens fill two blocks of three; growing by one takes the third, then the second must yield.
    let mut runner = Setup { groups: pool(3), ..Setup::default() }.build();
    runner.submit(&request(16, 8, 0));
    runner.submit(&request(16, 8, 1));
    runner.step();
    runner.submit(&request(1, 1, 2));
    runner.step();
    let metrics = runner.engine.metrics();
    assert_eq!((metrics.num_preemptions, metrics.num_running, metrics.num_waiting), (1, 1, 2));
    // The third would fit, but the second was there before it.
    runner.step();
    assert_eq!(runner.engine.metrics().num_waiting, 2);
    runner.finish();
}

#[test]
fn a_sequence_is_admitted_when_all_its_blocks_are_free() {
    let mut runner = Setup { groups: pool(4), ..Setup::default() }.build();
    runner.submit(&request(10, 20, 0));
    runner.step();
    runner.submit(&request(49, 4, 1));
    runner.step();
    assert_eq!((runner.engine.metrics().num_running, runner.engine.metrics().num_waiting), (1, 1));
    runner.finish();
    assert_eq!(runner.engine.metrics().num_preemptions, 0);
}

#[test]
fn a_sliding_group_needs_blocks_for_its_window_only() {
    let groups = vec![GroupConfig { num_blocks: 16, window: None }, GroupConfig { num_blocks: 3, window: Some(20) }];
    let mut runner = Setup { groups, ..Setup::default() }.build();
    let asked = request(150, 100, 0);
    let answer = runner.answer(&asked);
    assert_eq!(answer.ids, reference(&asked, 100));
    assert_eq!(runner.engine.metrics().num_preemptions, 0);
    assert_eq!((runner.engine.metrics().kv[0].peak, runner.engine.metrics().kv[1].peak), (16, 3));
}

#[test]
fn rows_and_edits_that_do_not_fit_wait_for_another_step() {
    let mut setup = Setup::default();
    setup.limits.max_rows = 2;
    setup.limits.max_edits = 30;
    let mut runner = setup.build();
    let sampling = SamplingParams { repetition_penalty: 1.5, ..SamplingParams::greedy() };
    let requests = [0, 1, 2].map(|salt| Request { sampling: sampling.clone(), ..request(10, 10, salt) });
    let ids = requests.each_ref().map(|request| runner.submit(request));
    runner.finish();
    for (id, request) in ids.iter().zip(&requests) {
        assert_eq!(runner.answers[id].ids, reference(request, 10));
    }
}

/// What happens before a step.
#[derive(Debug, Clone)]
enum Act {
    Submit {
        asked: Box<Request>,
        num_choices: usize,
    },
    Cancel {
        index: usize,
    },
    /// A step fails: the next that is collected.
    Fail,
    /// A step is dropped while it waits.
    Drop,
    Nothing,
}

fn act() -> impl Strategy<Value = Act> {
    let submit = (
        (1..80_usize, 1..30_usize, 0..9_u32),
        prop_oneof![Just(0.0_f32), Just(0.8)],
        prop_oneof![Just(1.0_f32), Just(1.1)],
        -2..3_i32,
        prop_oneof![3 => Just(None), 1 => (0.0..400.0_f64).prop_map(Some)],
        prop_oneof![3 => Just(1_usize), 1 => 2..4_usize],
    );
    let submit = submit.prop_map(|(shape, temperature, repetition_penalty, priority, deadline_ms, num_choices)| {
        let (num_prompt, max_tokens, salt) = shape;
        let seed = Some(u64::from(salt));
        let sampling = SamplingParams { temperature, repetition_penalty, seed, ..SamplingParams::default() };
        let timeouts = Timeouts { deadline_ms, ..Timeouts::default() };
        let asked = Request { sampling, priority, timeouts, ..request(num_prompt, max_tokens, salt) };
        Act::Submit { asked: Box::new(asked), num_choices }
    });
    prop_oneof![
        4 => submit,
        1 => any::<usize>().prop_map(|index| Act::Cancel { index }),
        1 => prop_oneof![5 => Just(Act::Drop), 1 => Just(Act::Fail)],
        6 => Just(Act::Nothing),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_do_not_depend_on_the_schedule(
        acts in proptest::collection::vec(act(), 1..40),
        num_blocks in 7..30_usize,
        sliding in proptest::option::of((1..40_usize, 0..6_usize)),
        budget_tokens in 1..50_usize,
        max_rows in 3..5_usize,
        max_edits in 90..200_usize,
        batching in prop_oneof![4 => Just(Batching::Continuous), 1 => Just(Batching::Static), 1 => Just(Batching::None)],
        chunked_prefill in prop_oneof![3 => Just(true), 1 => Just(false)],
        step_target_ms in proptest::option::of(1.0..40.0_f64),
        num_ahead in 1..5_usize,
        stops in any::<bool>(),
    ) {
        let mut setup = Setup { groups: pool(num_blocks), ..Setup::default() };
        // At least the blocks that the window can touch; up to that, a sequence could not be of any length.
        setup.groups.extend(sliding.map(|(window, spare)| {
            GroupConfig { num_blocks: window.div_ceil(16) + 1 + spare, window: Some(window) }
        }));
        setup.options = EngineOptions {
            budget_tokens,
            batching,
            chunked_prefill,
            step_target_ms,
            priority_step_ms: 100.0,
            max_steps_ahead: Some(num_ahead),
            ..setup.options
        };
        setup.limits.max_rows = max_rows;
        setup.limits.max_edits = max_edits;
        let mut runner = setup.build();
        let mut asked: Vec<(RequestId, Vec<u32>, bool)> = Vec::new();
        let mut cancelled = Vec::new();
        let mut has_failed = false;
        for act in acts {
            match act {
                Act::Submit { asked: mut request, num_choices } => {
                    // Any token ends an answer in one of 20 places.
                    request.stop_token_ids.extend(stops.then_some(100));
                    let ids = runner.submit_choices(&request, num_choices);
                    let timed = request.timeouts != Timeouts::default();
                    let expected = alone(&request, num_choices).into_iter().map(|ids| until_stop(ids, &request));
                    asked.extend(ids.into_iter().zip(expected).map(|(id, ids)| (id, ids, timed)));
                }
                Act::Cancel { index } if !asked.is_empty() => {
                    let id = asked[index % asked.len()].0;
                    let answer = &runner.answers[&id];
                    let is_live = answer.end.is_none() && answer.error.is_none() && !cancelled.contains(&id);
                    prop_assert_eq!(runner.engine.cancel(id), is_live);
                    if is_live {
                        cancelled.push(id);
                    }
                    runner.engine.kv().check().unwrap();
                }
                Act::Fail => {
                    has_failed = true;
                    runner.outcomes.borrow_mut().push_back(Err(Error::WrongResult("NaN logits".to_owned())));
                }
                Act::Drop => drop(runner.drop_step()),
                _ => {}
            }
            runner.step();
        }
        runner.finish();
        let metrics = runner.engine.metrics();
        let num_drawn: usize = runner.batches.borrow().iter().map(|batch| batch.rows.len()).sum();
        let num_told: usize = runner.answers.values().map(|answer| answer.ids.len()).sum();
        prop_assert_eq!(metrics.generated_tokens, num_told as u64);
        prop_assert!(has_failed || num_told as u64 + metrics.overshot_tokens == num_drawn as u64);
        prop_assert!(num_ahead > 1 || metrics.num_steps_ahead == 0);
        for (id, expected, timed) in &asked {
            let answer = &runner.answers[id];
            if cancelled.contains(id) || ((*timed || has_failed) && answer.error.is_some()) {
                prop_assert!(answer.end.is_none() && expected.starts_with(&answer.ids));
            } else {
                prop_assert_eq!(&answer.ids, expected);
                let is_stopped = stops && expected.last() == Some(&100);
                let reason = if is_stopped { FinishReason::Stop } else { FinishReason::Length };
                prop_assert_eq!(answer.reason(), Some(reason));
            }
        }
    }
}

/// An answer up to its first stop token.
fn until_stop(ids: Vec<u32>, request: &Request) -> Vec<u32> {
    let end = ids.iter().position(|id| request.stop_token_ids.contains(id)).map_or(ids.len(), |at| at + 1);
    ids[..end].to_vec()
}

/// The choices of a request that has the engine for itself.
fn alone(request: &Request, num_choices: usize) -> Vec<Vec<u32>> {
    let mut runner = Setup::default().build();
    let asked = Request { timeouts: Timeouts::default(), stop_token_ids: Vec::new(), ..request.clone() };
    let ids = runner.submit_choices(&asked, num_choices);
    runner.finish();
    let answers: Vec<_> = ids.iter().map(|id| runner.answers[id].ids.clone()).collect();
    assert_eq!(answers[0], reference(request, request.max_tokens.unwrap()));
    answers
}
