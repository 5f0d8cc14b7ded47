//! What is kept for how long: one example for each rule that a longer run would hide.

use pagewise::kv::{CacheEvent, GroupConfig, MissReason, Retention};

use crate::rules::{plain, reason, tokens};
use crate::world::World;

fn found(world: &World, num: usize, salt: u32) -> usize {
    world.kv.find("", &tokens(num + 1, salt)).num_tokens()
}

#[test]
fn a_longer_block_takes_the_place_of_the_tail_that_it_begins_with() {
    let mut world = World::full(10);
    world.run("", &tokens(40, 0), plain());
    let mut branch = tokens(40, 0);
    branch[36] = 5;
    world.run("", &branch, plain());
    assert_eq!(world.kv.cache_stats().num_nodes, 4, "two blocks and two tails");
    world.run("", &tokens(48, 0), plain());
    assert_eq!(world.kv.cache_stats().num_nodes, 4, "a full block instead of the first tail");
    world.run("", &branch[..38], plain());
    assert_eq!(world.kv.cache_stats().num_nodes, 4, "a shorter one is there already");
    assert_eq!(world.kv.take_events().iter().filter(|event| matches!(event, CacheEvent::Evicted { .. })).count(), 1);
}

#[test]
fn rows_that_were_never_copied_are_no_tail() {
    let sliding = GroupConfig { num_blocks: 4, window: Some(20) };
    let mut world = World::new(vec![GroupConfig { num_blocks: 40, window: None }, sliding]);
    let after = |next: &[u32]| [&tokens(20, 0), next].concat();
    // Eight tails of which the window's blocks are gone, and behind them one that is whole.
    (1..=8).for_each(|next| drop(world.run("", &after(&[next]), plain())));
    world.run("", &after(&[1000]), plain());
    world.run("", &tokens(32, 9), plain());
    let (index, hit) = world.start("", &after(&[500, 7]), plain()).unwrap();
    assert_eq!((hit.num_tokens(), hit.num_rows()), (20, 4));
    let before = world.kv.cache_stats();
    world.finish(index);
    assert_eq!(world.kv.cache_stats(), before, "it ended before anything was copied");
    world.kv.check().unwrap();
}

#[test]
fn pinned_blocks_go_after_all_others() {
    let mut world = World::full(4);
    world.run("", &tokens(32, 0), Retention { pin_tokens: 32, priority: -9, ..plain() });
    world.run("", &tokens(16, 1), Retention { priority: 9, ..plain() });
    world.run("", &tokens(32, 2), plain());
    assert_eq!([found(&world, 32, 0), found(&world, 16, 1)], [32, 0]);
}

#[test]
fn what_has_expired_goes_before_anything_that_has_not() {
    let mut world = World::full(3);
    let short = |priority| Retention { priority, breakpoints: vec![(16, 10)], ..plain() };
    // The first block is too old, but the second, which has no limit, hangs on it.
    world.run("", &tokens(16, 0), short(5));
    world.run("", &tokens(32, 0), short(0));
    world.run("", &tokens(16, 1), Retention { priority: 1, ..plain() });
    world.kv.set_now(100);
    assert_eq!([found(&world, 32, 0), found(&world, 16, 1)], [32, 16]);
    world.kv.take_events();
    world.run("", &tokens(32, 2), plain());
    assert_eq!([found(&world, 16, 0), found(&world, 16, 1)], [0, 16], "though its priority is higher");
    let is_expiry = |event: &CacheEvent| *event == CacheEvent::Expired { position: 0, num_tokens: 16, group: 0 };
    assert!(world.kv.take_events().iter().any(is_expiry));
}

#[test]
fn the_longest_of_several_times_and_the_highest_priority_count() {
    let mut world = World::full(4);
    let keep = |ttl_ms, priority| Retention { ttl_ms: Some(ttl_ms), priority, ..plain() };
    world.run("", &tokens(16, 0), keep(300, 3));
    world.run("", &tokens(17, 0), keep(100, 1));
    world.kv.set_now(250);
    assert_eq!(found(&world, 16, 0), 16);
    world.run("", &tokens(16, 1), Retention { priority: 2, ..plain() });
    world.run("", &tokens(48, 2), plain());
    assert_eq!([found(&world, 16, 0), found(&world, 16, 1)], [16, 0]);
    world.kv.set_now(300);
    assert_eq!(found(&world, 16, 0), 0);
}

#[test]
fn a_hit_uses_what_lies_before_the_window_too() {
    let mut world = World::new(vec![GroupConfig { num_blocks: 10, window: Some(20) }]);
    let keep = Retention { ttl_ms: Some(100), ..plain() };
    world.run("", &tokens(64, 0), keep.clone());
    world.kv.set_now(90);
    assert_eq!(world.run("", &tokens(65, 0), keep).num_tokens(), 64);
    world.kv.set_now(150);
    assert!(world.cached().contains(&(0, 0)), "a shorter prompt will want it");
    assert_eq!(found(&world, 16, 0), 16);
}

#[test]
fn a_breakpoint_reaches_the_blocks_that_begin_before_it() {
    for (at, kept) in [(32, 32), (33, 48), (0, 0), (1, 16)] {
        let mut world = World::full(4);
        world.run("", &tokens(48, 0), Retention { ttl_ms: Some(10), breakpoints: vec![(at, 100)], ..plain() });
        world.kv.set_now(50);
        assert_eq!(found(&world, 48, 0), kept, "a breakpoint at {at}");
    }
}

#[test]
fn a_look_at_a_later_time_changes_nothing() {
    let mut world = World::full(10);
    world.run("", &tokens(40, 0), Retention { ttl_ms: Some(100), breakpoints: vec![(16, 200)], ..plain() });
    world.kv.take_events();
    let before = (world.kv.cache_stats(), world.kv.blocks());
    for (now_ms, num_tokens, why) in
        [(99, 40, None), (100, 16, Some(MissReason::Expired)), (200, 0, Some(MissReason::Expired))]
    {
        let hit = world.kv.find_at(now_ms, "", &tokens(41, 0));
        assert_eq!((hit.num_tokens(), reason(&hit)), (num_tokens, why), "at {now_ms} ms");
        assert_eq!((world.kv.cache_stats(), world.kv.blocks()), before);
    }
    assert_eq!(world.kv.take_events(), []);
    assert_eq!(found(&world, 40, 0), 40);
}
