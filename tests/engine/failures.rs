//! Failed steps, cancelled requests.

use pagewise::Error;
use pagewise::engine::{EngineOptions, Event};

use crate::fake::{Setup, VOCAB_SIZE, request};
use crate::sampling::reference;

#[test]
fn a_wrong_result_fails_the_requests_of_its_step_and_nothing_else() {
    let options = EngineOptions { max_running: 2, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    let requests = [0, 1, 2].map(|salt| request(10, 5, salt));
    let ids = requests.each_ref().map(|request| runner.submit(request));
    runner.step();
    let error = Error::WrongResult("NaN logits".to_owned());
    runner.outcomes.borrow_mut().push_back(Err(error.clone()));
    let events = runner.step();
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| matches!(event, Event::Failed { .. })), "no token of the step is used");
    runner.finish();
    for (id, request) in ids.iter().zip(&requests) {
        let answer = &runner.answers[id];
        let is_last = *id == ids[2];
        assert_eq!(answer.error, (!is_last).then(|| error.clone()));
        assert_eq!(answer.ids, reference(request, if is_last { 5 } else { 1 }));
    }
    // And the engine serves on.
    assert_eq!(runner.answer(&requests[0]).ids, reference(&requests[0], 5));
}

#[test]
fn a_lost_device_fails_all_requests() {
    let options = EngineOptions { max_running: 1, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    for salt in 0..3 {
        runner.submit(&request(10, 5, salt));
    }
    runner.step();
    let error = Error::DeviceLost("unplugged".to_owned());
    runner.outcomes.borrow_mut().push_back(Err(error.clone()));
    runner.step();
    assert!(!runner.engine.has_work());
    assert!(runner.answers.values().all(|answer| answer.error == Some(error.clone())));
    runner.finish();
}

#[test]
fn an_id_out_of_vocabulary_fails_its_request_only() {
    let draw = |row: &crate::fake::Row| if row.tokens.len() == 12 { 260 } else { crate::fake::hash(row) };
    let mut runner = Setup { draw: Box::new(draw), ..Setup::default() }.build();
    let [bad, good] = [10, 20].map(|num_prompt| runner.submit(&request(num_prompt, 5, 0)));
    runner.finish();
    let error = format!("token id 260 sampled, below {VOCAB_SIZE} allowed");
    assert_eq!(runner.answers[&bad].error, Some(Error::WrongResult(error)));
    assert_eq!(runner.answers[&bad].ids.len(), 2);
    assert_eq!(runner.answers[&good].ids, reference(&request(20, 5, 0), 5));
}

#[test]
fn a_cancelled_request_frees_everything_at_any_point() {
    // Waiting, during the prompt, during the answer, preempted, and after the end.
    for steps_before in 0..16 {
        let options = EngineOptions { budget_tokens: 8, ..EngineOptions::default() };
        let groups = vec![pagewise::kv::GroupConfig { num_blocks: 3, window: None }];
        let mut runner = Setup { options, groups, ..Setup::default() }.build();
        let first = runner.submit(&request(15, 6, 0));
        let second = runner.submit(&request(15, 6, 1));
        for _ in 0..steps_before {
            runner.step();
        }
        let is_live = runner.answers[&second].end.is_none();
        assert_eq!(runner.engine.cancel(second), is_live, "after {steps_before} steps");
        assert!(!runner.engine.cancel(second));
        runner.finish();
        assert_eq!(runner.answers[&first].ids, reference(&request(15, 6, 0), 6));
    }
}
