//! One worked example for each rule.

use pagewise::kv::{
    BLOCK_SIZE, BlockView, CacheEvent, EvictReason, GroupConfig, Hit, Miss, MissReason, Policy, PrefixView, Retention,
};

use crate::world::World;

/// Tokens that differ from those of another `salt` from the first one on.
pub fn tokens(num: usize, salt: u32) -> Vec<u32> {
    (0..).map(|index: u32| index * 7 + 1000 * salt).take(num).collect()
}

pub fn plain() -> Retention {
    Retention::default()
}

pub fn reason(hit: &Hit) -> Option<MissReason> {
    hit.miss.map(|miss| miss.reason)
}

#[test]
fn full_blocks_are_shared_and_a_tails_rows_copied() {
    let mut world = World::full(10);
    let prompt = tokens(40, 0);
    assert_eq!(world.run("", &prompt, plain()).num_tokens(), 0);
    assert_eq!(world.kv.stats()[0].empty, 7, "two blocks and a tail are kept");
    let next = [&prompt[..], &[5, 5]].concat();
    let (index, hit) = world.start("", &next, plain()).unwrap();
    assert_eq!((hit.num_tokens(), hit.num_rows(), hit.miss), (40, 8, None));
    world.kv.check().unwrap();
    assert_eq!(world.kv.stats()[0].used, 4, "two shared, the tail as a source and a new one");
    world.compute(index, 2);
    assert_eq!(world.kv.stats()[0].used, 3, "the source is let go of after the copy");
    world.finish(index);
    // The longer tail takes the shorter one's place.
    assert_eq!((world.kv.stats()[0].empty, world.kv.cache_stats().num_nodes), (7, 3));
}

#[test]
fn the_last_token_is_always_computed() {
    let mut world = World::full(10);
    for num in [1, 15, 16, 17, 32, 40] {
        let prompt = tokens(num, u32::try_from(num).unwrap());
        world.run("", &prompt, plain());
        let hit = world.run("", &prompt, plain());
        assert_eq!((hit.num_tokens(), hit.miss), (num - 1, None), "{num} tokens");
    }
}

#[test]
fn what_differs_is_named_with_both_tokens() {
    let mut world = World::full(20);
    let prompt = tokens(60, 0);
    world.run("", &prompt, plain());
    for at in [1, 16, 37, 50] {
        let mut other = prompt.clone();
        other[at] = 5;
        let hit = world.kv.find("", &other);
        assert_eq!(hit.num_tokens(), at);
        let miss = Miss { position: at, reason: MissReason::Differs, expected: Some(prompt[at]), found: Some(5) };
        assert_eq!(hit.miss, Some(miss));
    }
    assert_eq!(reason(&world.kv.find("", &tokens(60, 1))), Some(MissReason::Cold));
}

#[test]
fn the_reason_of_a_miss_is_told() {
    let mut world = World::full(4);
    let prompt = tokens(40, 0);
    assert_eq!(reason(&world.kv.find("", &prompt)), Some(MissReason::Cold));
    world.run("", &prompt, plain());
    assert_eq!(world.kv.find("other", &prompt).num_tokens(), 0, "salted prefixes never meet");
    assert_eq!(reason(&world.kv.find("other", &prompt)), Some(MissReason::Salted));
    world.run("", &tokens(50, 1), plain());
    assert_eq!(reason(&world.kv.find("", &prompt)), Some(MissReason::Evicted));
    world.run("", &prompt, Retention { ttl_ms: Some(10), ..plain() });
    world.kv.set_now(10);
    assert_eq!(reason(&world.kv.find("", &prompt)), Some(MissReason::Expired));
}

#[test]
fn a_duplicate_is_swapped_for_the_caches_own_block_and_freed() {
    let mut world = World::full(10);
    let prompt = tokens(33, 0);
    let (first, _) = world.start("", &prompt, plain()).unwrap();
    let (second, _) = world.start("", &prompt, plain()).unwrap();
    world.compute(first, 33);
    world.compute(second, 33);
    assert_eq!(world.kv.stats()[0].used, 4, "two full blocks, and one of each that is not full");
    let blocks = |index: usize| world.kv.table(world.live[index].id, 0).blocks()[..2].to_vec();
    assert_eq!(blocks(first), blocks(second));
    assert_eq!(world.kv.cache_stats().num_duplicates, 2);
    world.kv.check().unwrap();
}

#[test]
fn a_child_is_given_up_before_its_parent_whatever_their_priorities() {
    let mut world = World::full(4);
    let prompt = tokens(32, 0);
    world.run("", &prompt[..16], Retention { priority: -5, ..plain() });
    world.run("", &prompt, Retention { priority: 5, ttl_ms: Some(1000), ..plain() });
    world.run("", &tokens(33, 1), plain());
    let mut cached = world.cached();
    cached.sort_unstable();
    assert_eq!(cached, [(0, 0), (0, 0), (0, 16), (0, 32)], "of the first prompt only its start is left");
}

#[test]
fn a_held_child_keeps_its_parent() {
    let mut world = World::full(5);
    world.run("", &tokens(33, 0), plain());
    let (index, hit) = world.start("", &tokens(34, 0), plain()).unwrap();
    assert_eq!(hit.num_tokens(), 33);
    world.compute(index, 1);
    assert_eq!(world.kv.clear(), 1, "only the tail that was copied is not held");
    world.kv.check().unwrap();
    assert_eq!(world.kv.find("", &tokens(34, 0)).num_tokens(), 32);
}

#[test]
fn least_recently_used_goes_first_after_lower_priority() {
    let mut world = World::full(6);
    let prompts = [0, 1, 2].map(|salt| tokens(32, salt));
    world.run("", &prompts[0], Retention { priority: 1, ..plain() });
    world.run("", &prompts[1], plain());
    world.run("", &prompts[2], plain());
    world.run("", &prompts[1], plain());
    world.run("", &tokens(16, 3), plain());
    let found = |world: &World| [0, 1, 2].map(|index| world.kv.find("", &prompts[index]).num_tokens());
    assert_eq!(found(&world), [31, 31, 16], "the one not used since goes first, its end first of all");
    world.run("", &tokens(48, 4), plain());
    assert_eq!(found(&world), [31, 0, 0], "then the other of low priority");
}

#[test]
fn time_to_live_counts_from_the_last_use() {
    let mut world = World::full(10);
    let prompt = tokens(40, 0);
    let keep = Retention { ttl_ms: Some(100), breakpoints: vec![(20, 300)], ..plain() };
    world.run("", &prompt, keep.clone());
    world.kv.set_now(90);
    assert_eq!(world.run("", &prompt, keep).num_tokens(), 39);
    world.kv.set_now(189);
    assert_eq!(world.kv.find("", &prompt).num_tokens(), 39);
    world.kv.set_now(190);
    world.kv.check().unwrap();
    assert_eq!(world.kv.find("", &prompt).num_tokens(), 32, "the breakpoint's blocks are kept longer");
    let is_expiry = |event: &CacheEvent| matches!(event, CacheEvent::Expired { .. });
    let expired = world.kv.take_events().into_iter().filter(is_expiry).collect::<Vec<_>>();
    assert_eq!(expired, [CacheEvent::Expired { position: 32, num_tokens: 8, group: 0 }]);
    world.kv.set_now(390);
    assert_eq!(world.cached(), []);
    assert_eq!(world.kv.cache_stats().num_expired, 3);
}

#[test]
fn pinned_blocks_are_given_up_only_for_a_lone_sequence() {
    let mut world = World::full(4);
    let prompt = tokens(33, 0);
    world.run("", &prompt, Retention { pin_tokens: 32, ttl_ms: Some(10), ..plain() });
    world.kv.set_now(1000);
    assert_eq!(world.kv.find("", &prompt).num_tokens(), 32, "they do not expire");
    assert_eq!(world.kv.stats()[0].pinned, 2);
    let other = tokens(40, 1);
    let cold = world.kv.find("", &other);
    assert!(!world.kv.admits_hit(&cold, 40, false) && world.kv.admits_hit(&cold, 40, true));
    assert!(world.kv.admits_hit(&world.kv.find("", &prompt), 64, false), "but who uses them is admitted");
    assert_eq!(world.kv.unpin("", &prompt), 32);
    assert!(world.kv.admits_hit(&cold, 40, false));
    assert_eq!(world.kv.pin("", &prompt), 32);
    world.run("", &other, plain());
    world.kv.check().unwrap();
    assert_eq!(world.kv.find("", &prompt).num_tokens(), 16);
}

#[test]
fn unpinning_a_prefix_leaves_what_a_longer_one_needs() {
    let mut world = World::full(10);
    let prompt = tokens(64, 0);
    world.run("", &prompt, plain());
    assert_eq!(world.kv.pin("", &prompt[..50]), 48);
    assert_eq!(world.kv.unpin("", &prompt[..20]), 0);
    assert_eq!(world.kv.unpin("", &prompt), 48);
    assert_eq!(world.kv.cache_stats().num_pinned, 0);
}

#[test]
fn tail_aware_gives_up_first_what_the_next_turn_can_afford_to_compute() {
    // 40 tokens are affordable: 8 new ones and 32 of the conversation.
    let policy = Policy::TailAware { ttft_target_ms: 20, prefill_tokens_per_s: 2000, next_turn_tokens: 8 };
    let after = |policy| {
        let mut world = World::full(10);
        world.kv.set_policy(policy);
        world.run("", &tokens(96, 0), plain());
        world.run("", &tokens(32, 1), plain());
        world.run("", &tokens(32, 2), plain());
        world.run("", &tokens(64, 3), plain());
        world.kv.check().unwrap();
        [(96, 0), (32, 1), (32, 2)].map(|(num, salt)| world.kv.find("", &tokens(num + 1, salt)).num_tokens())
    };
    assert_eq!(after(Policy::Lru), [32, 32, 32]);
    // Of the long one it keeps the first 64 tokens: without them its next turn would be late.
    assert_eq!(after(policy), [64, 0, 32]);
}

#[test]
fn a_policy_can_be_changed_at_any_time() {
    let mut world = World::full(10);
    world.run("", &tokens(96, 0), plain());
    world.run("", &tokens(64, 1), plain());
    world.kv.set_policy(Policy::TailAware { ttft_target_ms: 64, prefill_tokens_per_s: 1000, next_turn_tokens: 0 });
    world.kv.check().unwrap();
    world.run("", &tokens(96, 2), plain());
    assert_eq!(world.kv.find("", &tokens(97, 0)).num_tokens(), 32, "what it needs");
    assert_eq!(world.kv.find("", &tokens(65, 1)).num_tokens(), 32, "it needs nothing, but is younger");
}

fn sliding(window: usize) -> World {
    World::new(vec![GroupConfig { num_blocks: 20, window: None }, GroupConfig { num_blocks: 4, window: Some(window) }])
}

#[test]
fn a_sliding_group_needs_only_the_window_before_the_hit() {
    let mut world = sliding(20);
    let prompt = tokens(100, 0);
    let (index, _) = world.start("", &prompt, plain()).unwrap();
    (0..10).for_each(|_| world.compute(index, 10));
    world.finish(index);
    // The last four blocks are there, in a pool of four.
    assert_eq!(world.kv.find("", &tokens(101, 0)).num_tokens(), 100);
    let hit = world.kv.find("", &tokens(60, 0));
    assert_eq!((hit.num_tokens(), reason(&hit)), (0, Some(MissReason::Evicted)));
    let (index, hit) = world.start("", &tokens(101, 0), plain()).unwrap();
    assert_eq!(hit.num_rows(), 4);
    assert_eq!(world.kv.stats()[1].used, 3, "a block of the window, the tail and the new one");
    world.compute(index, 1);
    world.kv.check().unwrap();
}

#[test]
fn a_failed_sequence_leaves_nothing_behind_that_others_do_not_hold() {
    let mut world = World::full(10);
    let (first, _) = world.start("", &tokens(40, 0), plain()).unwrap();
    world.compute(first, 16);
    let mut other = tokens(40, 0);
    other[20] = 5;
    let (second, hit) = world.start("", &other, plain()).unwrap();
    assert_eq!(hit.num_tokens(), 16);
    world.compute(second, 24);
    world.kv.discard(world.live.remove(second).id);
    world.kv.check().unwrap();
    assert_eq!(world.cached(), [(0, 0)]);
    world.kv.discard(world.live.remove(first).id);
    assert_eq!(world.cached(), []);
}

#[test]
fn listings_name_prefixes_and_count_hits() {
    let mut world = World::full(10);
    world.kv.set_now(5);
    let prompt = tokens(40, 0);
    world.run("", &prompt, Retention { name: Some((32, "system".to_owned())), priority: 3, ..plain() });
    world.kv.set_now(7);
    world.run("", &tokens(33, 0), plain());
    let views = world.kv.prefixes();
    assert_eq!(views.len(), 2);
    let named = views.iter().find(|view| view.name.is_some()).unwrap();
    // The node of the second block, whatever its number.
    let is_second = |view: &&BlockView| view.cached.is_some_and(|cached| cached.position == 16);
    let node = world.kv.blocks().iter().find(is_second).unwrap().cached.unwrap().node;
    let expected = PrefixView {
        node,
        name: Some("system".to_owned()),
        salt: String::new(),
        tokens: prompt[..32].to_vec(),
        num_blocks: 2,
        created_ms: 5,
        used_ms: 7,
        expires_ms: None,
        num_hits: 1,
        priority: 3,
        is_pinned: false,
        is_held: false,
    };
    assert_eq!(*named, expected);
    assert_eq!(views.iter().find(|view| view.name.is_none()).unwrap().tokens, prompt);
    let stats = world.kv.cache_stats();
    assert_eq!((stats.num_lookups, stats.num_hits, stats.read_tokens, stats.written_tokens), (2, 1, 32, 40));
}

#[test]
fn eviction_on_request_takes_what_begins_so() {
    let mut world = World::full(20);
    let prompt = tokens(40, 0);
    let mut branch = prompt.clone();
    branch[34] = 5;
    world.run("", &prompt, plain());
    world.run("", &branch, plain());
    world.run("a", &prompt, plain());
    assert_eq!(world.kv.evict("", &prompt[..36]), 1, "only the tail that goes on like this");
    assert_eq!(world.kv.evict("", &[9, 9]), 0);
    assert_eq!(world.kv.evict("", &prompt[..BLOCK_SIZE]), 3);
    assert_eq!(world.kv.evict("", &[]), 0);
    assert_eq!(world.kv.evict("a", &[]), 3);
    assert_eq!(world.kv.stats()[0].empty, 20);
}

#[test]
fn events_tell_what_happened() {
    let mut world = World::full(3);
    world.run("", &tokens(40, 0), plain());
    let stored = |position, num_tokens| CacheEvent::Stored { position, num_tokens };
    assert_eq!(world.kv.take_events(), [stored(0, 32), stored(32, 8)]);
    world.run("", &tokens(32, 0), plain());
    assert_eq!(
        world.kv.take_events(),
        [
            CacheEvent::Hit { num_tokens: 31 },
            CacheEvent::Evicted { position: 32, num_tokens: 8, group: 0, reason: EvictReason::Capacity }
        ]
    );
    assert_eq!(world.kv.take_events(), []);
}
