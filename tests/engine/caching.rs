//! What the engine tells about the prefix cache: sums by group, and what it would do.

use pagewise::Error;
use pagewise::engine::{CacheGroup, CacheReport, MAX_CACHE_GROUPS, Request};
use pagewise::kv::{GroupConfig, MissReason};

use crate::fake::{Runner, Setup, request};

fn grouped(key: &str, salt: u32) -> Request {
    let mut request = request(40, 2, salt);
    request.cache.group = Some(key.to_owned());
    request
}

/// Everything of the cache that a look at it could change.
fn state(runner: &mut Runner) -> String {
    let engine = &mut runner.engine;
    let shown = (engine.cache_stats(), engine.cache_blocks(), engine.cache_prefixes(), engine.cache_groups());
    format!("{shown:?} {:?}", engine.metrics())
}

/// An engine that answered `requests`; the time is then `now_ms`.
fn after(requests: &[&Request], now_ms: f64) -> Runner {
    let mut runner = Setup::default().build();
    requests.iter().for_each(|request| drop(runner.answer(request)));
    runner.engine.cache_events();
    runner.clock_ms.set(now_ms);
    runner
}

#[test]
fn requests_are_summed_by_their_group() {
    let mut runner = Setup::default().build();
    runner.answer(&grouped("a", 0));
    runner.answer(&grouped("a", 0));
    runner.answer(&request(40, 2, 0));
    let mut refused = grouped("b", 0);
    refused.cache.enabled = false;
    runner.answer(&refused);
    let group = |key: &str, num_requests, num_hits, prompt_tokens, cached_tokens| CacheGroup {
        key: key.to_owned(),
        num_requests,
        num_hits,
        prompt_tokens,
        cached_tokens,
    };
    let (groups, num_forgotten) = runner.engine.cache_groups();
    assert_eq!((&groups[..], num_forgotten), (&[group("b", 1, 0, 40, 0), group("a", 2, 1, 80, 39)][..], 0));
    assert_eq!(groups.iter().map(CacheGroup::hit_rate).collect::<Vec<_>>(), [0.0, 39.0 / 80.0]);
    assert!(runner.engine.cache_prefixes().iter().all(|prefix| prefix.name.is_none()), "a group names no prefix");
    let long = grouped(&"x".repeat(257), 0);
    let error = "cache group: 257 bytes asked, at most 256 allowed";
    assert_eq!(runner.engine.submit(long, 0.0), Err(Error::BadRequest(error.to_owned())));
}

#[test]
fn a_request_that_was_preempted_counts_once() {
    let mut runner = Setup { groups: vec![GroupConfig { num_blocks: 6, window: None }], ..Setup::default() }.build();
    let mut requests = [grouped("a", 0), grouped("a", 9)];
    requests.iter_mut().for_each(|request| request.max_tokens = Some(20));
    for request in &requests {
        runner.submit(request);
    }
    runner.finish();
    assert!(runner.engine.metrics().num_preemptions > 0, "both do not fit");
    let (groups, _) = runner.engine.cache_groups();
    assert_eq!((groups[0].num_requests, groups[0].prompt_tokens), (2, 80));
}

#[test]
fn several_answers_are_one_request_whichever_is_cancelled() {
    for cancelled in [None, Some(0), Some(1)] {
        let mut runner = Setup::default().build();
        let ids = runner.submit_choices(&grouped("a", 0), 3);
        if let Some(index) = cancelled {
            assert!(runner.engine.cancel(ids[index]));
        }
        runner.finish();
        let (groups, _) = runner.engine.cache_groups();
        assert_eq!((groups[0].num_requests, groups[0].prompt_tokens), (1, 40), "{cancelled:?}");
    }
}

#[test]
fn who_holds_which_block_can_be_told() {
    let mut runner = Setup::default().build();
    let ids: Vec<_> = (0..2).map(|_| runner.submit(&request(40, 30, 0))).collect();
    // The second goes on from what the first has computed: two full blocks.
    while runner.engine.cache_holders().iter().filter(|(id, ..)| *id == ids[1]).count() < 3 {
        runner.step();
    }
    let holders = runner.engine.cache_holders();
    for view in runner.engine.cache_blocks() {
        let num = holders.iter().filter(|&&(_, group, block)| (group, block) == (view.group, view.block)).count();
        assert_eq!(num, view.num_holders as usize, "{view:?}");
    }
    assert_eq!(runner.engine.cache_blocks().iter().filter(|view| view.num_holders == 2).count(), 2);
    runner.finish();
    assert_eq!(runner.engine.cache_holders(), []);
    let nodes: Vec<_> = runner.engine.cache_blocks().iter().filter_map(|view| Some(view.cached?.node)).collect();
    assert!(runner.engine.cache_prefixes().iter().all(|prefix| nodes.contains(&prefix.node)), "prefixes end in blocks");
}

#[test]
fn the_group_that_was_used_longest_ago_is_forgotten() {
    let mut runner = Setup::default().build();
    for index in 0..MAX_CACHE_GROUPS {
        runner.answer(&grouped(&index.to_string(), 0));
    }
    runner.answer(&grouped("0", 0));
    runner.answer(&grouped("new", 0));
    let (groups, num_forgotten) = runner.engine.cache_groups();
    assert_eq!((groups.len(), num_forgotten), (MAX_CACHE_GROUPS, 1));
    assert_eq!([&groups[0], &groups[1]].map(|group| (group.key.as_str(), group.num_requests)), [("new", 1), ("0", 2)]);
    assert!(groups.iter().all(|group| group.key != "1"));
}

#[test]
fn explaining_says_what_a_request_would_find_and_changes_nothing() {
    let asked = request(50, 5, 0);
    let with = |request: &Request, change: fn(&mut Request)| {
        let mut request = request.clone();
        change(&mut request);
        request
    };
    let expiring = with(&request(50, 5, 1), |request| request.cache.ttl_ms = Some(100));
    let cases = [
        (asked.clone(), (49, None)),
        (with(&asked, |edited| edited.prompt[20] = b'!'.into()), (20, Some(MissReason::Differs))),
        (with(&asked, |salted| salted.cache.salt = "tenant".to_owned()), (0, Some(MissReason::Salted))),
        (with(&asked, |refused| refused.cache.enabled = false), (0, Some(MissReason::Disabled))),
        (expiring.clone(), (0, Some(MissReason::Expired))),
        (with(&request(9, 1, 3), |grouped| grouped.cache.group = Some("a".to_owned())), (0, Some(MissReason::Cold))),
    ];
    for (request, expected) in cases {
        let mut runner = after(&[&asked, &expiring], 1000.0);
        let before = state(&mut runner);
        let explained = runner.engine.cache_explain(&request, 1000.0).unwrap();
        assert_eq!((explained.read_tokens, explained.miss.map(|miss| miss.reason)), expected);
        assert_eq!(state(&mut runner), before);
        assert_eq!(runner.engine.cache_events(), []);
        let answer = runner.answer(&request);
        assert_eq!(CacheReport { written_tokens: 0, ..answer.cache }, explained, "and so it is when it comes");
    }
}

#[test]
fn explaining_knows_that_rows_may_not_be_copied() {
    let mut setup = Setup::default();
    setup.limits.max_copies = 0;
    let mut runner = setup.build();
    runner.answer(&request(50, 5, 0));
    let explained = runner.engine.cache_explain(&request(50, 5, 0), 0.0).unwrap();
    assert_eq!(explained.read_tokens, 48);
    assert_eq!(runner.answer(&request(50, 5, 0)).cache.read_tokens, 48);
}

#[test]
fn explaining_refuses_what_could_not_be_answered() {
    let runner = Setup::default().build();
    let allowed = runner.engine.context_length();
    let found = runner.engine.cache_explain(&request(allowed, 1, 0), 0.0);
    assert_eq!(found, Err(Error::ContextTooLong { asked: allowed + 1, allowed }));
    let mut bad = request(5, 1, 0);
    bad.prompt.clear();
    assert!(matches!(runner.engine.cache_explain(&bad, 0.0), Err(Error::BadRequest(_))));
}
