//! What the engine counts is what it tells.

use pagewise::Error;
use pagewise::engine::{EngineMetrics, EngineOptions, Event, FinishedCounts, Histogram, Timeouts};

use crate::fake::{Answer, Runner, Setup, request};

/// The figures of a histogram that can be told exactly.
fn exact(histogram: &Histogram) -> (u64, f64, Option<f64>) {
    (histogram.count(), histogram.sum(), histogram.max())
}

/// The same of a list.
fn of(values: impl IntoIterator<Item = f64>) -> (u64, f64, Option<f64>) {
    let mut histogram = Histogram::times();
    values.into_iter().for_each(|value| histogram.record(value));
    exact(&histogram)
}

fn ended(runner: &Runner) -> Vec<&Answer> {
    runner.answers.values().filter(|answer| answer.end.is_some()).collect()
}

#[test]
fn totals_are_the_sums_of_what_answers_report() {
    let mut runner = Setup::default().build();
    for (salt, num_prompt) in [(0, 20), (1, 40), (2, 90), (0, 20)] {
        runner.submit(&request(num_prompt, 3 + num_prompt / 10, salt));
    }
    runner.finish();
    runner.submit(&request(40, 5, 1));
    runner.finish();
    let metrics = runner.engine.metrics();
    let usages: Vec<_> = ended(&runner).iter().map(|answer| answer.end.unwrap().1).collect();
    let sum = |value: fn(&pagewise::engine::Usage) -> usize| usages.iter().map(value).sum::<usize>() as u64;
    assert_eq!(metrics.prompt_tokens, sum(|usage| usage.prompt_tokens));
    assert_eq!(metrics.cached_tokens, sum(|usage| usage.cached_tokens));
    assert!(metrics.cached_tokens > 0);
    assert_eq!(metrics.generated_tokens, sum(|usage| usage.completion_tokens));
    // The last token of an answer is drawn and never computed.
    let computed = sum(|usage| usage.total_tokens - usage.cached_tokens - 1);
    assert_eq!(metrics.computed_tokens, computed);
    assert_eq!(metrics.num_finished, FinishedCounts { stop: 0, length: 5 });
    assert_eq!(
        (metrics.prefix_queries, metrics.prefix_hits),
        (sum(|usage| usage.prompt_tokens), metrics.cached_tokens)
    );
    assert_eq!(metrics.prefix_hit_rate(), Some(metrics.cached_tokens as f64 / metrics.prompt_tokens as f64));
    assert_eq!((metrics.num_waiting, metrics.num_running, metrics.kv_usage), (0, 0, 0.0));
}

#[test]
fn times_are_those_of_the_answers() {
    let options = EngineOptions { max_running: 2, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    for salt in 0..4 {
        runner.submit(&request(20, 2 + salt as usize, salt));
    }
    let (mut num_steps, mut rows) = (0, Vec::new());
    while runner.engine.has_work() {
        runner.step();
        num_steps += 1;
        rows.push(runner.batches.borrow().last().unwrap().tables[0].len() as f64);
    }
    let metrics = runner.engine.metrics();
    let timings: Vec<_> = ended(&runner).iter().map(|answer| answer.end.unwrap().2).collect();
    assert_eq!(exact(&metrics.ttft_ms), of(timings.iter().map(|timings| timings.ttft_ms)));
    assert_eq!(exact(&metrics.queue_ms), of(timings.iter().map(|timings| timings.queue_ms)));
    assert_eq!(exact(&metrics.tpot_ms), of(timings.iter().filter_map(|timings| timings.tpot_ms)));
    // The clock moves by 10 ms each time that it is asked: at the start and at the end of a step.
    assert_eq!(exact(&metrics.step_ms), of(vec![10.0; num_steps]));
    assert_eq!(metrics.num_steps, num_steps as u64);
    assert_eq!(exact(&metrics.inter_token_ms), of(vec![20.0; 1 + 2 + 3 + 4]));
    let whole = |timings: &pagewise::engine::Timings, salt: usize| timings.ttft_ms + 20.0 * (1 + salt) as f64;
    assert_eq!(exact(&metrics.e2e_ms), of(timings.iter().enumerate().map(|(salt, timings)| whole(timings, salt))));
    assert_eq!(metrics.step_tokens.sum(), metrics.computed_tokens as f64);
    assert_eq!(exact(&metrics.step_sequences), of(rows));
    assert_eq!((metrics.gpu_step_ms.count(), metrics.encode_ms.count()), (0, 0), "the fake keeps no time");
}

#[test]
fn choices_share_their_prompt_and_count_for_themselves_from_the_first_token_on() {
    let mut runner = Setup::default().build();
    runner.submit_choices(&request(40, 6, 0), 3);
    runner.finish();
    let metrics = runner.engine.metrics();
    assert_eq!((metrics.prompt_tokens, metrics.cached_tokens, metrics.generated_tokens), (40, 0, 18));
    assert_eq!(metrics.computed_tokens, 40 + 3 * 5);
    assert_eq!(metrics.num_finished.length, 3);
    assert_eq!([&metrics.queue_ms, &metrics.ttft_ms, &metrics.e2e_ms].map(Histogram::count), [1, 3, 3]);
    assert_eq!(metrics.inter_token_ms.count(), 15);
}

#[test]
fn whatever_ends_otherwise_is_counted_by_its_kind() {
    let options = EngineOptions { max_running: 1, max_waiting: 4, ..EngineOptions::default() };
    let mut runner = Setup { options, ..Setup::default() }.build();
    let count = |metrics: &EngineMetrics| {
        let EngineMetrics { num_cancelled, num_rejected, num_expired, num_failed, num_out_of_memory, .. } = *metrics;
        [num_cancelled, num_rejected, num_expired, num_failed, num_out_of_memory]
    };
    let first = runner.submit(&request(10, 50, 0));
    runner.step();
    let late = pagewise::engine::Request {
        timeouts: Timeouts { queue_ms: Some(5.0), ..Timeouts::default() },
        ..request(10, 5, 1)
    };
    runner.submit(&late);
    let waiting = [2, 3, 4].map(|salt| runner.submit(&request(10, 5, salt)));
    let refused = runner.engine.submit(request(10, 5, 5), 0.0);
    assert!(matches!(refused, Err(Error::QueueFull { asked: 5, allowed: 4, .. })), "{refused:?}");
    assert_eq!(runner.engine.metrics().num_waiting, 4);
    assert!(runner.engine.cancel(waiting[0]) && !runner.engine.cancel(waiting[0]));
    runner.step();
    assert_eq!(count(&runner.engine.metrics()), [1, 1, 1, 0, 0]);
    let error = Error::OutOfMemory { what: "a buffer".to_owned(), asked: 2, allowed: 1 };
    runner.outcomes.borrow_mut().push_back(Err(error.clone()));
    assert_eq!(runner.step(), [Event::Failed { request: first, error }]);
    let lost = Error::DeviceLost("unplugged".to_owned());
    runner.outcomes.borrow_mut().push_back(Err(lost));
    runner.step();
    let metrics = runner.engine.metrics();
    assert_eq!(count(&metrics), [1, 1, 1, 3, 1]);
    assert_eq!((metrics.num_finished, metrics.e2e_ms.count()), (FinishedCounts::default(), 0));
}

#[test]
fn usage_of_the_pools_and_preemptions_are_seen() {
    let mut setup = Setup::default();
    setup.groups[0].num_blocks = 8;
    let mut runner = setup.build();
    runner.submit(&request(60, 60, 0));
    runner.submit(&request(30, 60, 1));
    runner.step();
    let metrics = runner.engine.metrics();
    assert_eq!(metrics.kv_usage, metrics.kv[0].used as f64 / 8.0);
    assert!(metrics.kv_usage > 0.0);
    runner.finish();
    let metrics = runner.engine.metrics();
    assert!(metrics.num_preemptions > 0);
    assert_eq!(metrics.prompt_tokens, 90, "once, whatever is computed again");
    assert_eq!(metrics.queue_ms.count(), 2);
}
