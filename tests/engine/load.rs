//! Many requests of every kind on a small pool, for ten rounds.

use pagewise::engine::EngineOptions;
use pagewise::kv::GroupConfig;

use crate::ahead::ahead;
use crate::fake::{Setup, VOCAB_SIZE};
use crate::load_rounds::{NUM_REQUESTS, fifth, round, serve};
use crate::sampling::reference;

#[test]
fn two_hundred_mixed_requests_all_end_well_ten_times() {
    let rounds: Vec<_> = (0..10).map(|seed| round(seed, VOCAB_SIZE - 4)).collect();
    let num_blocks = rounds.iter().map(|round| fifth(round)).min().unwrap();
    for num_ahead in 1..=4 {
        let mut setup = Setup { groups: vec![GroupConfig { num_blocks, window: None }], ..Setup::default() };
        setup.limits.max_sequences = 128;
        setup.limits.max_rows = 128;
        setup.limits.max_tokens = 256;
        // Deadlines are in the clock's time, so all of them are met or missed alike on any machine.
        setup.options = EngineOptions { priority_step_ms: 500.0, ..EngineOptions::default() };
        let mut engine = ahead(num_ahead, setup).build().engine;
        for round in &rounds {
            let alone = |index: usize| reference(&round[index].request, round[index].request.max_tokens.unwrap());
            let outcome = serve(&mut engine, round, alone);
            assert_eq!(outcome.finished + outcome.expired + outcome.aborted, NUM_REQUESTS);
            assert!(outcome.finished > NUM_REQUESTS / 2 && outcome.expired > 0 && outcome.aborted > 0, "{outcome:?}");
            let metrics = engine.metrics();
            assert_eq!((metrics.num_running, metrics.num_waiting), (0, 0));
        }
        assert!(engine.metrics().num_preemptions > 0, "the pool is too large to matter");
        assert_eq!(engine.metrics().num_steps_ahead > 0, num_ahead > 1);
    }
}
