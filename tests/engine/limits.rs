//! What is refused at the door, with what was asked and what is allowed.

use pagewise::Error;
use pagewise::engine::{Batching, EngineOptions, MAX_LOGIT_BIAS, MAX_STOP_STRINGS, Request, SamplingParams};
use pagewise::kv::GroupConfig;

use crate::fake::{Setup, VOCAB_SIZE, request};

/// The error of a request that differs from a good one by `change`.
fn refusal(change: impl FnOnce(&mut Request)) -> Error {
    let mut runner = Setup::default().build();
    let mut request = request(4, 4, 0);
    change(&mut request);
    let error = runner.engine.submit(request, 0.0).unwrap_err();
    assert!(!runner.engine.has_work());
    error
}

#[test]
fn values_out_of_range_are_named_with_asked_and_allowed() {
    type Change = fn(&mut Request);
    let cases: [(Change, &str); 23] = [
        (|r| r.sampling.temperature = -0.1, "temperature: -0.1 asked, 0 to 2 allowed"),
        (|r| r.sampling.temperature = 2.5, "temperature: 2.5 asked, 0 to 2 allowed"),
        (|r| r.sampling.temperature = f32::NAN, "temperature: NaN asked, 0 to 2 allowed"),
        (|r| r.sampling.top_p = 1.1, "top_p: 1.1 asked, 0 to 1 allowed"),
        (|r| r.sampling.min_p = -1.0, "min_p: -1 asked, 0 to 1 allowed"),
        (|r| r.sampling.frequency_penalty = 3.0, "frequency_penalty: 3 asked, -2 to 2 allowed"),
        (|r| r.sampling.presence_penalty = -3.0, "presence_penalty: -3 asked, -2 to 2 allowed"),
        (|r| r.sampling.repetition_penalty = 0.0, "repetition_penalty: 0 asked, above 0 and at most 2 allowed"),
        (
            |r| r.sampling.repetition_penalty = f32::INFINITY,
            "repetition_penalty: inf asked, above 0 and at most 2 allowed",
        ),
        (|r| r.logit_bias = vec![(3, 101.0)], "logit_bias: 101 asked, -100 to 100 allowed"),
        (|r| r.logit_bias = vec![(3, f32::NAN)], "logit_bias: NaN asked, -100 to 100 allowed"),
        (|r| r.logit_bias = vec![(260, 1.0)], "logit_bias token: 260 asked, below 260 allowed"),
        (|r| r.logit_bias = vec![(3, 1.0), (3, 0.0)], "logit_bias: token 3 twice asked, each token once allowed"),
        (|r| r.prompt.clear(), "prompt: 0 tokens asked, at least 1 allowed"),
        (|r| r.prompt[2] = 260, "prompt: token id 260 asked, below 260 allowed"),
        (|r| r.stop_token_ids = vec![999], "stop_token_ids: token id 999 asked, below 260 allowed"),
        (|r| r.allowed_token_ids = Some(vec![]), "allowed_token_ids: 0 ids asked, 1 to 260 allowed"),
        (|r| r.allowed_token_ids = Some(vec![1; 261]), "allowed_token_ids: 261 ids asked, 1 to 260 allowed"),
        (|r| r.allowed_token_ids = Some(vec![3, 260]), "allowed_token_ids: token id 260 asked, below 260 allowed"),
        (|r| r.max_tokens = Some(0), "max_tokens: 0 asked, at least 1 allowed"),
        (|r| r.stop = vec!["x".into(); MAX_STOP_STRINGS + 1], "stop: 17 strings asked, at most 16 allowed"),
        (|r| r.stop = vec![String::new()], "stop: a string of 0 bytes asked, 1 to 1024 bytes allowed"),
        (|r| r.stop = vec!["x".repeat(1025)], "stop: a string of 1025 bytes asked, 1 to 1024 bytes allowed"),
    ];
    for (change, message) in cases {
        assert_eq!(refusal(change), Error::BadRequest(message.to_owned()));
    }
    let many = |r: &mut Request| r.logit_bias = vec![(0, 1.0); MAX_LOGIT_BIAS + 1];
    assert_eq!(refusal(many), Error::BadRequest("logit_bias: 1025 asked, at most 1024 entries allowed".to_owned()));
}

#[test]
fn the_ends_of_the_ranges_are_allowed() {
    for (low, penalty) in [(true, -2.0), (false, 2.0)] {
        let sampling = SamplingParams {
            temperature: if low { 0.0 } else { 2.0 },
            top_p: if low { 0.0 } else { 1.0 },
            min_p: if low { 0.0 } else { 1.0 },
            repetition_penalty: if low { 0.01 } else { 2.0 },
            frequency_penalty: penalty,
            presence_penalty: penalty,
            ..SamplingParams::default()
        };
        sampling.validate().unwrap();
    }
}

#[test]
fn what_can_never_fit_is_refused() {
    let too_long = |asked, allowed| Error::ContextTooLong { asked, allowed };
    assert_eq!(refusal(|r| *r = request(200, 57, 0)), too_long(257, 256));
    assert_eq!(refusal(|r| *r = Request { max_tokens: None, ..request(256, 1, 0) }), too_long(257, 256));
    assert_eq!(refusal(|r| r.max_tokens = Some(usize::MAX)), too_long(usize::MAX, 256));
    // The pool can be the narrower limit, and a sliding pool too small for its window as well.
    let pools = [vec![(5, None)], vec![(64, None), (5, Some(100))]];
    for groups in pools {
        let groups = groups.into_iter().map(|(num_blocks, window)| GroupConfig { num_blocks, window }).collect();
        let mut runner = Setup { groups, ..Setup::default() }.build();
        assert_eq!(runner.engine.submit(request(80, 1, 0), 0.0), Err(too_long(81, 80)));
        assert_eq!(runner.answer(&request(72, 8, 0)).ids.len(), 8);
    }
}

#[test]
fn a_full_queue_is_refused() {
    let options = EngineOptions { max_running: 1, max_waiting: 2, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    runner.submit(&request(4, 4, 0));
    runner.step();
    runner.submit(&request(4, 4, 1));
    runner.submit(&request(4, 4, 2));
    let full = Error::QueueFull { asked: 3, allowed: 2, retry_after_ms: None };
    assert_eq!(runner.engine.submit(request(4, 4, 3), 0.0), Err(full));
    (0..4).for_each(|_| drop(runner.step()));
    runner.submit(&request(4, 4, 3));
    runner.finish();
}

#[test]
fn who_gets_a_free_slot_is_not_refused() {
    for (batching, num_first) in [(Batching::Continuous, 4), (Batching::Static, 4), (Batching::None, 2)] {
        let options = EngineOptions { max_running: 3, max_waiting: 1, batching, ..EngineOptions::default() };
        let mut runner = Setup { options, ..Setup::default() }.build();
        // All at once on an idle engine: as many as run, and one that waits.
        for salt in 0..num_first {
            runner.submit(&request(4, 8, salt));
        }
        let full = |allowed| Error::QueueFull { asked: allowed + 1, allowed, retry_after_ms: None };
        assert_eq!(runner.engine.submit(request(4, 8, 9), 0.0), Err(full(1)), "{batching:?}");
        runner.step();
        assert_eq!(runner.engine.submit(request(4, 8, 9), 0.0), Err(full(1)), "{batching:?}");
        runner.finish();
    }
    // A static batch that runs takes nobody in, whatever slots it has.
    let batching = Batching::Static;
    let options = EngineOptions { max_running: 3, max_waiting: 1, batching, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    runner.submit(&request(4, 8, 0));
    runner.step();
    runner.submit(&request(4, 8, 1));
    assert!(runner.engine.submit(request(4, 8, 2), 0.0).is_err());
    runner.finish();
}

#[test]
fn more_logit_changes_than_a_batch_takes_are_refused() {
    let mut setup = Setup::default();
    setup.limits.max_edits = 20;
    let mut runner = setup.build();
    let with = |num_prompt, max_tokens, repetition_penalty, presence_penalty| {
        let sampling = SamplingParams { repetition_penalty, presence_penalty, ..SamplingParams::default() };
        Request { sampling, ..request(num_prompt, max_tokens, 0) }
    };
    // The prompt counts only for the repetition penalty, the answer for all.
    for (request, fits) in [
        (with(10, 10, 1.1, 0.0), true),
        (with(10, 11, 1.1, 0.0), false),
        (with(100, 20, 1.0, 0.5), true),
        (with(100, 21, 1.0, 0.5), false),
        (with(100, 100, 1.0, 0.0), true),
    ] {
        let result = runner.engine.submit(request, 0.0);
        match result {
            Ok(_) => assert!(fits),
            Err(error) => {
                assert!(!fits);
                assert!(error.to_string().starts_with(
                    "logits changed by penalties and logit_bias: 21 asked, 20 (a lower max_tokens or no penalties"
                ));
            }
        }
    }
    // Never more than the vocabulary.
    let mut setup = Setup::default();
    setup.limits =
        pagewise::model::BatchLimits { max_edits: VOCAB_SIZE, context_length: 1024, max_blocks: 64, ..setup.limits };
    setup.build().engine.submit(with(100, 500, 1.1, 0.0), 0.0).unwrap();
}
