//! Two hundred requests of every kind at once, and what must be true of them.

use std::cell::Cell;
use std::collections::BTreeMap;

use pagewise::Error;
use pagewise::engine::{Engine, Event, Request, RequestId, SamplingParams, Timeouts};
use pagewise::kv::{BLOCK_SIZE, blocks_for};
use pagewise::model::Forward;
use pollster::block_on;

/// Requests of a round.
pub(crate) const NUM_REQUESTS: usize = 200;

/// Numbers that look random (`SplitMix64`): the same for the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap()
    }

    fn one_in(&mut self, num: usize) -> bool {
        self.below(num) == 0
    }
}

/// A request, and when its owner gives it up.
pub(crate) struct Asked {
    pub(crate) request: Request,
    abort_after_steps: Option<usize>,
}

/// A round: prompts of a few families that share beginnings, answers of 1 to 24 tokens, all priorities; some are given
/// up, some have a deadline, some do without the cache. Token ids are below `vocab`.
pub(crate) fn round(seed: u64, vocab: usize) -> Vec<Asked> {
    let mut random = Random(seed);
    let one = |_| {
        let family = random.below(12);
        let num_shared = random.below(50);
        let num_own = 1 + random.below(20);
        let shared = (0..num_shared).map(|at| 3 + (family * 31 + at * 7) % (vocab - 3));
        let mut prompt: Vec<_> = shared.map(|id| u32::try_from(id).unwrap()).collect();
        prompt.extend((0..num_own).map(|_| u32::try_from(3 + random.below(vocab - 3)).unwrap()));
        let deadline_ms = random.one_in(5).then(|| 10.0 * (1 + random.below(100)) as f64);
        let mut request = Request {
            prompt,
            max_tokens: Some(1 + random.below(24)),
            sampling: SamplingParams::greedy(),
            ignore_end_of_generation: true,
            priority: i32::try_from(random.below(3)).unwrap() - 1,
            timeouts: Timeouts { deadline_ms, ..Timeouts::default() },
            reports_progress: random.one_in(4),
            ..Request::default()
        };
        request.cache.enabled = !random.one_in(10);
        request.cache.pin = random.one_in(20);
        request.cache.salt = if random.one_in(10) { "tenant".into() } else { String::new() };
        Asked { request, abort_after_steps: random.one_in(6).then(|| random.below(60)) }
    };
    (0..NUM_REQUESTS).map(one).collect()
}

/// Blocks of a pool that holds a fifth of a round, but any request alone.
pub(crate) fn fifth(round: &[Asked]) -> usize {
    let blocks = |asked: &Asked| blocks_for(asked.request.prompt.len() + asked.request.max_tokens.unwrap());
    round.iter().map(blocks).sum::<usize>().div_ceil(5).max(128 / BLOCK_SIZE)
}

/// How a round went.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) finished: usize,
    pub(crate) expired: usize,
    pub(crate) aborted: usize,
}

/// Serves a round that arrives within its first steps. Every answer must be what `alone` says, and nothing may be held
/// afterwards. The clock advances by 10 ms a step.
pub(crate) fn serve<F: Forward>(
    engine: &mut Engine<F>,
    round: &[Asked],
    mut alone: impl FnMut(usize) -> Vec<u32>,
) -> Outcome {
    let clock_ms = Cell::new(0.0);
    let mut ids: BTreeMap<RequestId, usize> = BTreeMap::new();
    let mut answers: Vec<Vec<u32>> = vec![Vec::new(); round.len()];
    let mut ends: Vec<Option<Result<(), Error>>> = vec![None; round.len()];
    let mut outcome = Outcome::default();
    let mut next = 0;
    let mut step = 0;
    while next < round.len() || engine.has_work() {
        for asked in round.iter().skip(next).take(10) {
            ids.insert(engine.submit(asked.request.clone(), clock_ms.get()).unwrap(), next);
            next += 1;
        }
        for (&id, &index) in &ids {
            if round[index].abort_after_steps == Some(step) && engine.cancel(id) {
                assert!(ends[index].replace(Err(Error::Cancelled)).is_none());
                outcome.aborted += 1;
            }
        }
        let events = block_on(engine.step(|| {
            clock_ms.set(clock_ms.get() + 5.0);
            clock_ms.get()
        }));
        engine.kv().check().unwrap();
        for event in events {
            let index = ids[&event.request()];
            assert!(ends[index].is_none(), "nothing follows the end");
            match event {
                Event::Text { ids, .. } => answers[index].extend(ids),
                Event::Finished { .. } => ends[index] = Some(Ok(())),
                Event::Failed { error, .. } => ends[index] = Some(Err(error)),
                Event::Progress { .. } => {}
            }
        }
        step += 1;
        assert!(step < 100_000, "no end");
    }
    for (index, end) in ends.iter().enumerate() {
        let expected = alone(index);
        match end.as_ref().expect("every request ends") {
            Ok(()) => {
                assert_eq!(answers[index], expected, "request {index}");
                outcome.finished += 1;
            }
            Err(error) => {
                outcome.expired += usize::from(matches!(error, Error::DeadlineExceeded { .. }));
                assert!(matches!(error, Error::DeadlineExceeded { .. } | Error::Cancelled), "{error}");
                assert!(expected.starts_with(&answers[index]), "request {index}, not finished");
            }
        }
    }
    assert!(engine.kv().stats().iter().all(|stats| stats.used == 0), "blocks leak");
    engine.cache_clear();
    let stats = engine.kv().stats();
    assert!(stats.iter().all(|stats| stats.empty == stats.num_blocks), "the cache leaks: {stats:?}");
    assert_eq!(engine.cache_stats().num_nodes, 0);
    outcome
}
