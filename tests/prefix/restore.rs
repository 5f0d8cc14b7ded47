//! Prefixes that are saved and brought back: one example for each rule.

use std::rc::Rc;

use pagewise::kv::{CacheEvent, GroupConfig, RestoredBlock, Retention};

use crate::rules::{plain, tokens};
use crate::world::{Saved, World};

/// A world with `num_blocks` blocks, and what an equal one had of the first `num` tokens.
fn elsewhere(num_blocks: usize, num: usize) -> (World, Saved) {
    let mut world = World::full(40);
    world.run("", &tokens(num, 0), plain());
    (World::full(num_blocks), world.save("", &tokens(num, 0)))
}

fn restore(world: &mut World, saved: &Saved, retention: Retention) -> (usize, usize) {
    let restoring = world.begin_restore(saved).unwrap();
    world.kv.check().unwrap();
    let num_tokens = restoring.num_tokens();
    let entered = world.finish_restore(restoring, saved, retention);
    world.kv.check().unwrap();
    (num_tokens, entered)
}

fn found(world: &World, salt: u32, num: usize) -> usize {
    world.kv.find("", &tokens(num + 1, salt)).num_tokens()
}

#[test]
fn full_blocks_come_back_and_are_told() {
    let (mut world, saved) = elsewhere(10, 40);
    assert_eq!(saved.tokens, tokens(32, 0));
    assert_eq!(restore(&mut world, &saved, plain()), (32, 2));
    assert_eq!(found(&world, 0, 40), 32);
    assert_eq!(world.kv.take_events(), [CacheEvent::Restored { position: 0, num_tokens: 32, group: 0 }]);
    let stats = world.kv.cache_stats();
    assert_eq!((stats.num_restored, stats.written_tokens, stats.num_blocks), (2, 0, 2));
    assert_eq!(world.run("", &tokens(40, 0), plain()).num_tokens(), 32);
}

#[test]
fn blocks_that_are_there_are_kept() {
    let (mut world, saved) = elsewhere(4, 64);
    world.run("", &tokens(32, 0), plain());
    world.kv.take_events();
    let restoring = world.begin_restore(&saved).unwrap();
    let wanted: Vec<_> = restoring.blocks().iter().map(|&RestoredBlock { index, .. }| index).collect();
    assert_eq!(wanted, [2, 3], "all four fit because the first two are shared");
    assert_eq!(world.finish_restore(restoring, &saved, plain()), 2);
    assert_eq!(world.kv.take_events(), [CacheEvent::Restored { position: 32, num_tokens: 32, group: 0 }]);
    assert_eq!(restore(&mut world, &saved, plain()), (64, 0), "a second time there is nothing to do");
    assert_eq!(world.kv.take_events(), []);
}

#[test]
fn as_many_as_fit_come_back_and_neither_held_nor_pinned_blocks_go_for_them() {
    let (mut world, saved) = elsewhere(5, 64);
    world.run("", &tokens(16, 1), Retention { pin_tokens: 16, ..plain() });
    world.run("", &tokens(16, 2), plain());
    let (held, _) = world.start("", &tokens(16, 3), plain()).unwrap();
    world.compute(held, 16);
    assert_eq!(restore(&mut world, &saved, plain()), (48, 3), "one block is pinned, one held");
    assert_eq!([1, 2, 3, 0].map(|salt| found(&world, salt, 64)), [16, 0, 16, 48]);
    let (held, _) = world.start("", &tokens(48, 4), plain()).unwrap();
    world.compute(held, 48);
    assert!(world.begin_restore(&saved).is_none(), "no room at all");
}

#[test]
fn nothing_is_found_before_it_is_there_and_giving_up_leaves_no_trace() {
    let (mut world, saved) = elsewhere(4, 48);
    let restoring = world.begin_restore(&saved).unwrap();
    world.kv.check().unwrap();
    assert_eq!(found(&world, 0, 48), 0);
    assert!(world.start("", &tokens(17, 1), plain()).is_none(), "three of four blocks are taken");
    world.kv.abort_restore(restoring);
    assert_eq!(found(&world, 0, 48), 0);
    assert_eq!((world.kv.stats()[0].empty, world.kv.cache_stats().num_nodes), (4, 0));
    assert_eq!(world.kv.take_events(), []);
}

#[test]
fn what_was_computed_meanwhile_is_kept_instead() {
    let (mut world, saved) = elsewhere(10, 32);
    let restoring = world.begin_restore(&saved).unwrap();
    world.run("", &tokens(16, 0), plain());
    assert_eq!(world.finish_restore(restoring, &saved, plain()), 1, "the other is a duplicate (K6)");
    world.kv.check().unwrap();
    assert_eq!(world.kv.cache_stats().num_duplicates, 1);
}

#[test]
fn what_comes_back_is_retained_as_asked() {
    let (mut world, saved) = elsewhere(3, 32);
    let retention = Retention { pin_tokens: 32, name: Some((32, "system".into())), ..plain() };
    restore(&mut world, &saved, retention);
    world.run("", &tokens(16, 1), plain());
    world.run("", &tokens(16, 2), plain());
    assert_eq!([0, 1, 2].map(|salt| found(&world, salt, 32)), [32, 0, 16]);
    let prefixes = world.kv.prefixes();
    assert!(
        prefixes.iter().any(|it| it.name.as_deref() == Some("system") && it.is_pinned && it.tokens == saved.tokens)
    );
    let (mut world, saved) = elsewhere(3, 32);
    restore(&mut world, &saved, Retention { ttl_ms: Some(10), ..plain() });
    world.kv.set_now(10);
    assert_eq!(found(&world, 0, 32), 0);
}

#[test]
fn a_window_is_saved_as_far_as_it_reaches_back() {
    let groups = |num_full| {
        let sliding = GroupConfig { num_blocks: 4, window: Some(20) };
        vec![GroupConfig { num_blocks: num_full, window: None }, sliding]
    };
    let mut world = World::new(groups(10));
    let (index, _) = world.start("", &tokens(80, 0), plain()).unwrap();
    (0..5).for_each(|_| world.compute(index, 16));
    world.finish(index);
    let path = world.kv.cached_path("", &tokens(80, 0));
    let there: Vec<_> = path.iter().map(|block| (block[0].is_some(), block[1].is_some())).collect();
    // The next query is at 80 and sees positions from 61 on.
    assert_eq!(there, [(true, false), (true, false), (true, false), (true, true), (true, true)]);
    let saved = world.save("", &tokens(80, 0));
    let mut world = World::new(groups(10));
    assert_eq!(restore(&mut world, &saved, plain()), (80, 7));
    assert_eq!(found(&world, 0, 80), 80);
    let [full, window] = [(0, 80, 0), (48, 32, 1)];
    let event = |(position, num_tokens, group)| CacheEvent::Restored { position, num_tokens, group };
    assert_eq!(world.kv.take_events(), [event(full), event(window)]);
    // A shorter prefix would need what its window saw.
    assert!(World::new(groups(4)).begin_restore(&saved).is_none());
    // What a window has given up since is filled again, in nodes that are still there.
    world.kv.clear();
    let (index, _) = world.start("", &tokens(80, 0), plain()).unwrap();
    (0..5).for_each(|_| world.compute(index, 16));
    world.finish(index);
    let (index, _) = world.start("", &tokens(48, 1), plain()).unwrap();
    (0..3).for_each(|_| world.compute(index, 16));
    world.finish(index);
    assert!(found(&world, 0, 80) < 80);
    let (num_tokens, entered) = restore(&mut world, &saved, plain());
    assert_eq!(num_tokens, 80);
    assert!((1..=2).contains(&entered), "{entered} blocks of the window");
    assert_eq!(found(&world, 0, 80), 80);
}

#[test]
fn only_what_can_be_filled_comes_back() {
    let mut world = World::full(10);
    let restoring = world.kv.begin_restore("", &tokens(48, 0), |index, _| index != 2).unwrap();
    assert_eq!(restoring.num_tokens(), 32);
    let retention = Rc::new(plain());
    assert_eq!(world.kv.finish_restore(restoring, "", &tokens(48, 0), retention), 2);
    assert!(world.kv.begin_restore("", &tokens(15, 0), |_, _| true).is_none(), "less than a block");
    assert!(world.kv.begin_restore("", &tokens(48, 1), |index, _| index > 0).is_none(), "without its beginning");
}
