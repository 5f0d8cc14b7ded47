//! How parameters reach the GPU, and that answers depend on nothing else.

use std::collections::BTreeMap;

use pagewise::engine::{EngineOptions, Request, SamplingParams};
use pagewise::model::{LogitEdit, RowSampling};

use crate::fake::{Row, Runner, Setup, hash, request};

fn sampled(seed: Option<u64>) -> Request {
    let sampling = SamplingParams { seed, ..SamplingParams::default() };
    Request { sampling, ..request(20, 12, 1) }
}

fn first_row(runner: &Runner) -> RowSampling {
    runner.batches.borrow()[0].sampling[0]
}

#[test]
fn greedy_is_temperature_zero() {
    for temperature in [0.0, 1e-4] {
        let mut runner = Setup::default().build();
        let sampling = SamplingParams { temperature, seed: Some(0), ..SamplingParams::default() };
        runner.answer(&Request { sampling, ..request(5, 1, 0) });
        let expected = RowSampling { counter: 5, ..RowSampling::GREEDY };
        assert_eq!(first_row(&runner), expected);
    }
}

#[test]
fn parameters_reach_the_row() {
    let mut runner = Setup::default().build();
    let sampling = SamplingParams {
        temperature: 0.7,
        top_k: 40,
        top_p: 0.0,
        min_p: 0.05,
        repetition_penalty: 1.1,
        frequency_penalty: 0.2,
        presence_penalty: 0.3,
        seed: Some(u64::MAX),
    };
    runner.answer(&Request { sampling, ..request(7, 2, 0) });
    let expected = RowSampling {
        temperature: 0.7,
        top_k: 40,
        top_p: f32::MIN_POSITIVE,
        min_p: 0.05,
        repetition_penalty: 1.1,
        frequency_penalty: 0.2,
        presence_penalty: 0.3,
        seed: u64::MAX,
        counter: 7,
    };
    assert_eq!(first_row(&runner), expected);
    assert_eq!(runner.batches.borrow()[1].sampling[0].counter, 8);
}

#[test]
fn a_repetition_penalty_that_would_overflow_logits_reaches_no_row() {
    for repetition_penalty in [1e-40, f32::MIN_POSITIVE, 1e-3] {
        let mut runner = Setup::default().build();
        let sampling = SamplingParams { repetition_penalty, ..SamplingParams::greedy() };
        runner.answer(&Request { sampling, ..request(5, 1, 0) });
        assert_eq!(first_row(&runner).repetition_penalty, 1e-3);
    }
}

#[test]
fn equal_seeds_give_equal_answers_and_different_ones_do_not() {
    let answer = |seed| Setup::default().build().answer(&sampled(seed)).ids;
    assert_eq!(answer(Some(5)), answer(Some(5)));
    assert_ne!(answer(Some(5)), answer(Some(6)));
}

#[test]
fn requests_without_a_seed_differ_and_repeat_with_the_engines_seed() {
    let two = |seed| {
        let options = EngineOptions { seed, ..EngineOptions::default() };
        let mut runner = Setup { options, ..Setup::default() }.build();
        [runner.answer(&sampled(None)).ids, runner.answer(&sampled(None)).ids]
    };
    let [first, second] = two(1);
    assert_ne!(first, second);
    assert_eq!(two(1), [first, second]);
    assert_ne!(two(1), two(2));
}

/// The edits that the parameters mean, by definition.
fn naive_edits(request: &Request, answer: &[u32]) -> Vec<LogitEdit> {
    let sampling = &request.sampling;
    let (repeats, counts) =
        (sampling.repetition_penalty != 1.0, sampling.frequency_penalty != 0.0 || sampling.presence_penalty != 0.0);
    let mut edits = BTreeMap::new();
    let mut edit = |token| {
        edits.entry(token).or_insert_with(|| {
            let count = answer.iter().filter(|&&other| other == token).count();
            let is_seen = count > 0 || request.prompt.contains(&token) && repeats;
            let count = if counts || repeats { u32::try_from(count).unwrap() } else { 0 };
            let bias =
                request.logit_bias.iter().find(|(other, _)| *other == token).map_or(0.0, |(_, bias)| bias.max(-1e30));
            LogitEdit { row: 0, token, seen: u32::from(is_seen && (counts || repeats)), count, bias }
        });
    };
    request.logit_bias.iter().filter(|(_, bias)| *bias != 0.0).for_each(|(token, _)| edit(*token));
    if repeats {
        request.prompt.iter().chain(answer).for_each(|&token| edit(token));
    } else if counts {
        answer.iter().for_each(|&token| edit(token));
    }
    edits.into_values().collect()
}

/// What the fake answers when asked directly, without any engine.
pub fn reference(request: &Request, num_tokens: usize) -> Vec<u32> {
    let mut answer = Vec::new();
    while answer.len() < num_tokens {
        let tokens = [&request.prompt[..], &answer].concat();
        let counter = u32::try_from(tokens.len()).unwrap();
        let sampling = RowSampling {
            temperature: request.sampling.temperature,
            seed: request.sampling.seed.unwrap_or(0),
            counter,
            ..RowSampling::GREEDY
        };
        answer.push(hash(&Row { tokens: &tokens, sampling, edits: &naive_edits(request, &answer), mask: None }));
    }
    answer
}

#[test]
fn penalties_and_biases_become_edits() {
    let biases = vec![(98, 2.5), (99, f32::NEG_INFINITY), (200, -100.0), (201, 0.0)];
    for (repetition_penalty, frequency_penalty, presence_penalty, logit_bias) in [
        (1.0, 0.0, 0.0, vec![]),
        (1.2, 0.0, 0.0, vec![]),
        (1.0, 0.5, 0.0, vec![]),
        (1.0, 0.0, -0.5, biases.clone()),
        (1.0, 0.0, 0.0, biases.clone()),
        (0.9, 0.5, 0.5, biases),
    ] {
        let sampling =
            SamplingParams { repetition_penalty, frequency_penalty, presence_penalty, ..SamplingParams::greedy() };
        let request = Request { sampling, logit_bias, ..request(20, 40, 3) };
        let mut runner = Setup::default().build();
        let answer = runner.answer(&request);
        for (index, batch) in runner.batches.borrow().iter().enumerate() {
            assert_eq!(batch.edits, naive_edits(&request, &answer.ids[..index]));
        }
        assert_eq!(answer.ids, reference(&request, 40));
    }
}

#[test]
fn edits_name_their_row() {
    let mut runner = Setup::default().build();
    for salt in 0..3 {
        runner.submit(&Request { logit_bias: vec![(salt, 1.0)], ..request(10, 3, salt) });
    }
    runner.finish();
    let batches = runner.batches.borrow();
    let edits: Vec<_> = batches[0].edits.iter().map(|edit| (edit.row, edit.token)).collect();
    assert_eq!(edits, [(0, 0), (1, 1), (2, 2)]);
}
