//! Priorities, time limits, and the modes of batching.

use pagewise::Error;
use pagewise::engine::{Batching, EngineOptions, Event, Priority, Progress, Request, RequestId, StepTrace, Timeouts};
use pagewise::kv::GroupConfig;

use crate::fake::{Runner, Setup, request};
use crate::sampling::reference;

fn pool(num_blocks: usize) -> Vec<GroupConfig> {
    vec![GroupConfig { num_blocks, window: None }]
}

fn one_at_a_time() -> Runner {
    let options = EngineOptions { max_running: 1, ..EngineOptions::default() };
    Setup { options, ..Setup::default() }.build()
}

fn with_priority(priority: i32, salt: u32) -> Request {
    Request { priority, ..request(4, 3, salt) }
}

/// Requests in the order in which their answers ended.
fn finish_in_order(runner: &mut Runner) -> Vec<RequestId> {
    let mut order = Vec::new();
    while runner.engine.has_work() {
        for event in runner.step() {
            if let Event::Finished { request, .. } = event {
                order.push(request);
            }
        }
    }
    order
}

fn traces(runner: &mut Runner) -> Vec<StepTrace> {
    runner.finish();
    runner.engine.take_trace()
}

#[test]
fn higher_priority_goes_first_and_arrival_decides_among_equals() {
    let mut runner = one_at_a_time();
    let levels = [Priority::Batch, Priority::Normal, Priority::Interactive, Priority::Normal].map(Priority::level);
    let ids = levels.map(|level| runner.submit(&with_priority(level, 0)));
    assert_eq!(finish_in_order(&mut runner), [ids[2], ids[1], ids[3], ids[0]]);
}

#[test]
fn a_priority_is_a_head_start_so_nothing_starves() {
    let options = EngineOptions { max_running: 1, priority_step_ms: 50.0, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    runner.submit(&request(4, 3, 0));
    runner.step();
    let patient = runner.submit(&with_priority(0, 1));
    // A new one of higher priority at every step: only those within 50 ms can come before it.
    let mut others = Vec::new();
    for _ in 0..100 {
        others.push(runner.submit(&with_priority(1, 2)));
        runner.step();
    }
    let end = runner.answers[&patient].end.as_ref().map(|(_, _, timings)| timings.queue_ms);
    assert!(end.is_some_and(|queue_ms| queue_ms < 250.0), "{end:?}");
    assert!(others.iter().any(|id| runner.answers[id].end.is_none()), "the others outnumber what can be served");
}

#[test]
fn who_comes_before_takes_the_place_of_who_comes_after() {
    for (max_running, num_blocks) in [(1, 64), (8, 6)] {
        let options = EngineOptions { max_running, ..EngineOptions::default() };
        let mut runner = Setup { options, groups: pool(num_blocks), ..Setup::default() }.build();
        runner.engine.set_tracing(true);
        let slow = Request { priority: -1, ..request(60, 20, 0) };
        let fast = Request { priority: 1, ..request(40, 5, 1) };
        let slow_id = runner.submit(&slow);
        runner.step();
        runner.step();
        let fast_id = runner.submit(&fast);
        let steps = traces(&mut runner);
        assert_eq!(steps[2].preempted, [slow_id], "at once");
        assert_eq!(steps[2].parts[0].request, fast_id);
        assert_eq!(runner.answers[&fast_id].ids, reference(&fast, 5));
        assert_eq!(runner.answers[&slow_id].ids, reference(&slow, 20));
        assert_eq!(runner.engine.metrics().num_preemptions, 1);
    }
}

#[test]
fn equals_never_displace_each_other() {
    let options = EngineOptions { max_running: 1, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    let ids = [0, 1, 2].map(|salt| runner.submit(&request(20, 4, salt)));
    assert_eq!(finish_in_order(&mut runner), ids);
    assert_eq!(runner.engine.metrics().num_preemptions, 0);
}

#[test]
fn who_waits_for_a_prefix_that_is_computed_lets_others_pass() {
    let mut setup = Setup::default();
    setup.limits.max_tokens = 130;
    let mut runner = setup.build();
    let ids = [request(120, 2, 0), request(121, 2, 0), request(10, 2, 1)].map(|asked| runner.submit(&asked));
    assert_eq!(finish_in_order(&mut runner), [ids[0], ids[2], ids[1]], "the third did not wait for the second");
    assert_eq!(runner.answers[&ids[1]].cache.read_tokens, 112);
    // The prefix was computed once.
    assert_eq!(runner.engine.metrics().computed_tokens, (120 + 1) + (9 + 1) + (10 + 1));
}

#[test]
fn time_limits_end_requests_and_free_what_they_hold() {
    let limits = [
        (Timeouts { deadline_ms: Some(35.0), ..Timeouts::default() }, "deadline_ms", 35.0),
        (Timeouts { total_ms: Some(45.0), ..Timeouts::default() }, "timeout_ms.total", 45.0),
        (Timeouts { queue_ms: Some(15.0), ..Timeouts::default() }, "timeout_ms.queue", 15.0),
        (Timeouts { deadline_ms: Some(90.0), total_ms: Some(70.0), queue_ms: Some(80.0) }, "timeout_ms.total", 70.0),
    ];
    for (timeouts, what, limit_ms) in limits {
        let mut runner = one_at_a_time();
        let busy = runner.submit(&request(4, 100, 0));
        let waiting = runner.submit(&Request { timeouts, ..request(4, 3, 1) });
        runner.finish();
        let error = Error::DeadlineExceeded { what, limit_ms };
        assert_eq!(runner.answers[&waiting].error, Some(error.clone()));
        assert_eq!(error.code(), "deadline_exceeded");
        assert!(runner.answers[&busy].end.is_some());
    }
    // While it runs, the limit on waiting does not matter any more, the others do.
    let queue = Timeouts { queue_ms: Some(15.0), ..Timeouts::default() };
    let mut runner = one_at_a_time();
    assert!(runner.answer(&Request { timeouts: queue, ..request(4, 30, 0) }).error.is_none());
    let total = Timeouts { total_ms: Some(95.0), ..Timeouts::default() };
    let asked = Request { timeouts: total, ..request(100, 30, 1) };
    let answer = runner.answer(&asked);
    assert!(matches!(answer.error, Some(Error::DeadlineExceeded { .. })));
    assert!(!answer.ids.is_empty() && answer.ids.len() < 30);
    // What it computed is kept.
    assert!(runner.answer(&request(100, 1, 1)).cache.read_tokens >= 99);
}

#[test]
fn time_limits_that_are_no_times_are_refused() {
    let mut runner = Setup::default().build();
    for ms in [-1.0, f64::NAN, f64::INFINITY] {
        let timeouts = Timeouts { queue_ms: Some(ms), ..Timeouts::default() };
        let error = runner.engine.submit(Request { timeouts, ..request(4, 4, 0) }, 0.0).unwrap_err();
        let text = format!("timeout_ms.queue: {ms} asked, a number of milliseconds, 0 or more allowed");
        assert_eq!(error, Error::BadRequest(text));
    }
    for priority in [-1001, 1001, i32::MIN, i32::MAX] {
        let error = runner.engine.submit(Request { priority, ..request(4, 4, 0) }, 0.0).unwrap_err();
        assert_eq!(error, Error::BadRequest(format!("priority: {priority} asked, -1000 to 1000 allowed")));
    }
    assert!(!runner.engine.has_work());
}

#[test]
fn a_full_queue_says_when_to_come_again() {
    let options = EngineOptions { max_running: 1, max_waiting: 1, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    runner.answer(&request(4, 5, 0));
    runner.submit(&request(4, 5, 1));
    runner.step();
    runner.submit(&request(4, 5, 2));
    let error = runner.engine.submit(request(4, 5, 3), 0.0).unwrap_err();
    // The first answer took five steps of 20 ms, less what the clock advanced before the first began.
    assert_eq!(error, Error::QueueFull { asked: 2, allowed: 1, retry_after_ms: Some(90) });
    runner.finish();
}

#[test]
fn progress_is_told_to_those_who_ask() {
    let options = EngineOptions { max_running: 1, budget_tokens: 20, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    runner.answer(&request(30, 2, 1));
    let busy = runner.submit(&request(4, 2, 0));
    let quiet = runner.submit(&request(4, 2, 2));
    let asked = Request { reports_progress: true, ..request(70, 2, 1) };
    let id = runner.submit(&asked);
    runner.finish();
    assert!(runner.answers[&busy].progress.is_empty() && runner.answers[&quiet].progress.is_empty());
    let progress = &runner.answers[&id].progress;
    let mut positions: Vec<_> = progress
        .iter()
        .filter_map(|progress| match progress {
            Progress::Waiting { position, estimated_wait_ms } => {
                assert!(estimated_wait_ms.is_some_and(|ms| ms >= 0.0));
                Some(*position)
            }
            Progress::Prefill { .. } => None,
        })
        .collect();
    let num_waiting = positions.len();
    positions.dedup();
    assert_eq!(positions, [1, 0]);
    // 30 tokens and the first of the two drawn ones, which this prompt has not: 30 are cached.
    let computed = [50, 70].map(|computed| Progress::Prefill { total: 70, cached: 30, computed });
    assert_eq!(progress[num_waiting..], computed);
}

#[test]
fn a_static_batch_runs_until_its_last_answer_ends() {
    let options = EngineOptions { max_running: 2, batching: Batching::Static, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    runner.engine.set_tracing(true);
    let asked = [request(4, 2, 0), request(4, 9, 1), request(4, 2, 2), request(4, 3, 3)];
    let ids = asked.each_ref().map(|request| runner.submit(request));
    let steps = traces(&mut runner);
    let first_of = |id| steps.iter().position(|step| step.parts.iter().any(|part| part.request == id));
    let firsts = ids.map(first_of);
    assert_eq!(firsts, [Some(0), Some(0), Some(9), Some(9)]);
    for (id, request) in ids.iter().zip(&asked) {
        assert_eq!(runner.answers[id].ids, reference(request, request.max_tokens.unwrap()));
    }
}

#[test]
fn a_static_batch_is_filled_though_its_prompts_take_several_steps() {
    let options =
        EngineOptions { max_running: 3, batching: Batching::Static, budget_tokens: 16, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    for salt in 0..4 {
        runner.submit(&request(30, 2, salt));
    }
    runner.step();
    assert_eq!((runner.engine.metrics().num_running, runner.engine.metrics().num_waiting), (3, 1));
    runner.finish();
}

#[test]
fn without_batching_one_answer_follows_the_other() {
    let options = EngineOptions { batching: Batching::None, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    let ids = [0, 1, 2].map(|salt| runner.submit(&request(20, 4, salt)));
    assert_eq!(finish_in_order(&mut runner), ids);
    assert!(runner.batches.borrow().iter().all(|batch| batch.tables[0].len() == 1));
}

#[test]
fn without_chunked_prefill_prompts_are_whole_and_alone() {
    let options = EngineOptions { chunked_prefill: false, ..EngineOptions::default() };
    let mut setup = Setup { options, ..Setup::default() };
    setup.limits.max_tokens = 40;
    let mut runner = setup.build();
    runner.engine.set_tracing(true);
    let first = runner.submit(&request(4, 20, 0));
    runner.step();
    runner.step();
    // 30 and 20 do not fit in one step of 40; 100 fits in none and is cut.
    let later = [(30, 1), (20, 2), (100, 3)].map(|(num_prompt, salt)| runner.submit(&request(num_prompt, 3, salt)));
    let steps = traces(&mut runner);
    for step in &steps {
        let num_prefilling = step.parts.iter().filter(|part| part.end - part.start > 1).count();
        assert!(num_prefilling == 0 || num_prefilling == step.parts.len(), "{step:?}");
    }
    let sizes: Vec<_> =
        steps[2..].iter().map(|step| step.parts.iter().map(|part| part.end - part.start).sum::<usize>()).collect();
    assert_eq!(sizes[..5], [30, 20, 40, 40, 20]);
    let answers = [(first, request(4, 20, 0)), (later[2], request(100, 3, 3))];
    for (id, request) in answers {
        assert_eq!(runner.answers[&id].ids, reference(&request, request.max_tokens.unwrap()));
    }
}

#[test]
fn a_step_target_shortens_steps_and_cuts_them() {
    let mut runner = Setup::default().build();
    // The fake's clock advances by 10 ms in a step: one of 5 ms is out of reach.
    runner.engine.set_step_target(Some(5.0));
    runner.answer(&request(64, 5, 0));
    let batches = runner.batches.take();
    let shape: Vec<_> = batches.iter().map(|batch| (batch.tokens.len(), batch.num_submits)).collect();
    assert_eq!(shape[..3], [(32, 1), (32, 2), (1, 1)], "the first step knows nothing; a token is little of 32");
    runner.engine.set_step_target(None);
    runner.answer(&request(64, 5, 1));
    assert_eq!(runner.batches.borrow()[0].tokens.len(), 64);
}

#[test]
fn the_trace_tells_what_each_step_held() {
    let mut runner = Setup::default().build();
    runner.answer(&request(4, 2, 0));
    assert!(runner.engine.take_trace().is_empty(), "nobody asked");
    runner.engine.set_tracing(true);
    let id = runner.submit(&request(30, 2, 1));
    let steps = traces(&mut runner);
    let parts: Vec<_> = steps
        .iter()
        .map(|step| step.parts.iter().map(|p| (p.request, p.start, p.end, p.samples)).collect::<Vec<_>>())
        .collect();
    assert_eq!(parts, [vec![(id, 0, 30, true)], vec![(id, 30, 31, true)]]);
    assert!(steps.iter().all(|step| step.end_ms > step.start_ms && step.parts[0].num_prompt == 30));
    assert!(runner.engine.take_trace().is_empty(), "each step is told once");
}

#[test]
fn coming_again_is_never_now() {
    // An answer that took no measurable time.
    let options = EngineOptions { max_running: 1, max_waiting: 1, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    let still = |runner: &mut crate::fake::Runner| drop(pollster::block_on(runner.engine.step(|| 0.0)));
    runner.engine.submit(request(4, 1, 0), 0.0).unwrap();
    still(&mut runner);
    runner.engine.submit(request(4, 5, 1), 0.0).unwrap();
    still(&mut runner);
    runner.engine.submit(request(4, 5, 2), 0.0).unwrap();
    let error = runner.engine.submit(request(4, 5, 3), 0.0).unwrap_err();
    assert_eq!(error, Error::QueueFull { asked: 2, allowed: 1, retry_after_ms: Some(1) });
}

#[test]
fn whether_something_was_computed_can_be_asked() {
    let options = EngineOptions { max_running: 1, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    let [first, second] = [0, 1].map(|salt| runner.submit(&request(4, 3, salt)));
    assert!(!runner.engine.has_started(first));
    runner.step();
    assert_eq!([first, second].map(|id| runner.engine.has_started(id)), [true, false]);
    runner.engine.cancel(first);
    assert!(!runner.engine.has_started(first), "it is gone");
    runner.finish();
}
