//! Prefixes that are saved and brought back: into engines that are empty, full, busy, of another model; and bytes that are
//! not what was saved.

use std::cell::Cell;
use std::task::Context;

use pagewise::engine::{CacheOptions, MAX_SAVED_TOKENS, RestoredPrefix, SavedPrefix, SnapshotSource};
use pagewise::kv::{CacheEvent, GroupConfig};
use pagewise::model::{KvBlocks as _, Xxh64};
use pagewise::{Error, Result};
use pollster::block_on;

use crate::fake::{Runner, Setup, request};

fn groups(num_blocks: usize, is_sliding: bool) -> Vec<GroupConfig> {
    let full = GroupConfig { num_blocks, window: None };
    let sliding = GroupConfig { num_blocks: 12, window: Some(20) };
    if is_sliding { vec![full, sliding] } else { vec![full] }
}

fn engine(num_blocks: usize, is_sliding: bool) -> Runner {
    Setup { groups: groups(num_blocks, is_sliding), ..Setup::default() }.build()
}

fn save(runner: &mut Runner, salt: &str, prefix: &[u32]) -> Result<(SavedPrefix, Vec<u8>)> {
    let mut bytes = Vec::new();
    let sink = |chunk: Vec<u8>| {
        bytes.extend(chunk);
        Ok(())
    };
    let saved = block_on(runner.engine.cache_save(salt, prefix, runner.clock_ms.get(), sink))?;
    Ok((saved, bytes))
}

fn restore(runner: &mut Runner, bytes: &[u8], salt: &str) -> Result<RestoredPrefix> {
    let options = CacheOptions { salt: salt.to_owned(), ..CacheOptions::default() };
    let restored = block_on(runner.engine.cache_restore(bytes, &options, runner.clock_ms.get()));
    runner.engine.kv().check().unwrap();
    restored
}

/// What an engine saved that had answered `request(70, 4, 0)`.
fn saved(is_sliding: bool) -> Vec<u8> {
    let mut runner = engine(64, is_sliding);
    runner.answer(&request(70, 4, 0));
    save(&mut runner, "", &request(70, 4, 0).prompt).unwrap().1
}

fn is_empty(runner: &Runner) -> bool {
    let stats = runner.engine.kv().stats();
    runner.engine.cache_stats().num_nodes == 0 && stats.iter().all(|stats| stats.empty == stats.num_blocks)
}

/// The message of a `bad_request`, after which nothing may have changed.
fn refused(runner: &mut Runner, bytes: &[u8]) -> String {
    let Err(Error::BadRequest(message)) = restore(runner, bytes, "") else { panic!("it is not refused") };
    assert!(is_empty(runner), "{message}: something is left");
    message
}

#[test]
fn what_was_saved_is_found_in_a_new_engine_and_the_answer_is_the_same() {
    for is_sliding in [false, true] {
        let asked = request(70, 4, 0);
        let expected = engine(64, is_sliding).answer(&asked);
        let mut old = engine(64, is_sliding);
        old.answer(&asked);
        let (saved, bytes) = save(&mut old, "", &asked.prompt).unwrap();
        let num_blocks = if is_sliding { 4 + 2 } else { 4 };
        assert_eq!(saved, SavedPrefix { num_tokens: 64, num_blocks });
        let mut new = engine(64, is_sliding);
        let restored = restore(&mut new, &bytes, "").unwrap();
        assert_eq!(restored, RestoredPrefix { num_tokens: 64, num_blocks, ids: asked.prompt.clone() });
        let is_restored = |event: &CacheEvent| matches!(event, CacheEvent::Restored { .. });
        assert_eq!(
            new.engine.cache_events().iter().filter(|event| is_restored(event)).count(),
            1 + usize::from(is_sliding)
        );
        let answer = new.answer(&asked);
        assert_eq!((answer.ids, answer.cache.read_tokens), (expected.ids, 64));
        let again = restore(&mut new, &bytes, "").unwrap();
        assert_eq!((again.num_tokens, again.num_blocks), (64, 0), "it is there");
    }
}

#[test]
fn where_all_layers_have_windows_their_reach_comes_back() {
    let sliding =
        || Setup { groups: vec![GroupConfig { num_blocks: 12, window: Some(20) }], ..Setup::default() }.build();
    let asked = request(70, 4, 0);
    let expected = sliding().answer(&asked);
    let mut old = sliding();
    old.answer(&asked);
    let (saved, bytes) = save(&mut old, "", &asked.prompt).unwrap();
    assert_eq!(saved, SavedPrefix { num_tokens: 64, num_blocks: 2 });
    let mut new = sliding();
    assert_eq!(restore(&mut new, &bytes, "").unwrap().num_tokens, 64);
    let answer = new.answer(&asked);
    assert_eq!((answer.ids, answer.cache.read_tokens), (expected.ids, 64));
}

#[test]
fn an_answer_can_be_saved_and_continued() {
    let mut old = engine(64, true);
    let asked = request(40, 30, 0);
    let first = old.answer(&asked);
    let turn = [asked.prompt.as_slice(), &first.ids, &[99; 5]].concat();
    let (saved, bytes) = save(&mut old, "", &turn[..70]).unwrap();
    assert_eq!(saved.num_tokens, 64);
    let mut new = engine(64, true);
    assert_eq!(restore(&mut new, &bytes, "").unwrap().ids, turn[..70]);
    let second = pagewise::engine::Request { prompt: turn, ..asked };
    let expected = engine(64, true).answer(&second);
    let answer = new.answer(&second);
    assert_eq!((answer.ids, answer.cache.read_tokens), (expected.ids, 64));
}

#[test]
fn the_salt_is_the_callers() {
    let mut runner = engine(64, false);
    restore(&mut runner, &saved(false), "tenant").unwrap();
    assert_eq!(runner.answer(&request(70, 4, 0)).cache.read_tokens, 0);
    let prompt = request(70, 4, 0).prompt;
    assert!(save(&mut runner, "nobody", &prompt).is_err());
    assert_eq!(save(&mut runner, "tenant", &prompt).unwrap().0.num_tokens, 64);
    let long = "s".repeat(257);
    assert!(matches!(restore(&mut runner, &saved(false), &long), Err(Error::BadRequest(_))));
}

#[test]
fn saving_needs_something_that_is_cached() {
    let mut runner = engine(64, false);
    for prefix in [vec![], vec![97; 15], vec![97; 40], vec![97; MAX_SAVED_TOKENS + 1]] {
        let Err(Error::BadRequest(message)) = save(&mut runner, "", &prefix) else { panic!("it is not refused") };
        assert!(message.contains("warm it first") || prefix.len() > MAX_SAVED_TOKENS, "{message}");
    }
    let failing = |_: Vec<u8>| Err(Error::Cancelled);
    runner.answer(&request(70, 4, 0));
    let prompt = request(70, 4, 0).prompt;
    assert_eq!(block_on(runner.engine.cache_save("", &prompt, 0.0, failing)), Err(Error::Cancelled));
}

#[test]
fn where_there_is_little_room_the_first_blocks_come_back() {
    let mut small = engine(3, false);
    let restored = restore(&mut small, &saved(false), "").unwrap();
    assert_eq!((restored.num_tokens, restored.num_blocks), (48, 3));
    let expected = engine(64, false).answer(&request(47, 1, 0));
    assert_eq!(small.answer(&request(47, 1, 0)).ids, expected.ids);
    // A window would have to be there where the blocks end.
    let mut small = engine(3, true);
    assert_eq!(restore(&mut small, &saved(true), "").unwrap().num_tokens, 0);
    assert!(is_empty(&small));
}

#[test]
fn requests_that_run_are_left_alone() {
    let mut runner = engine(12, false);
    let asked = request(100, 8, 3);
    let expected = engine(64, false).answer(&asked).ids;
    let id = runner.submit(&asked);
    runner.step();
    runner.step();
    let restored = restore(&mut runner, &saved(false), "").unwrap();
    assert_eq!(restored.num_tokens, 64, "four blocks beside the eight of the request");
    runner.finish();
    assert_eq!(runner.answers[&id].ids, expected);
}

#[test]
fn every_flipped_byte_is_noticed() {
    for is_sliding in [false, true] {
        let bytes = saved(is_sliding);
        let mut runner = engine(64, is_sliding);
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                refused(&mut runner, &changed);
            }
        }
        assert_eq!(restore(&mut runner, &bytes, "").unwrap().num_tokens, 64);
    }
}

#[test]
fn bytes_that_are_missing_or_too_many_are_noticed() {
    let bytes = saved(true);
    let mut runner = engine(64, true);
    (0..bytes.len()).for_each(|len| drop(refused(&mut runner, &bytes[..len])));
    refused(&mut runner, &[bytes.as_slice(), &[0]].concat());
    refused(&mut runner, &[&[0], bytes.as_slice()].concat());
}

/// The length of a header.
fn header_len(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize
}

/// A header with its checksum made right again.
fn forged(bytes: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let (mut bytes, end) = (bytes.to_vec(), header_len(bytes) - 8);
    change(&mut bytes[..end]);
    let checksum = Xxh64::of(0, &bytes[..end]);
    bytes[end..end + 8].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn a_forged_header_brings_nothing_back_whatever_it_says() {
    let try_it = |runner: &mut Runner, bytes: &[u8]| match restore(runner, bytes, "") {
        // A list of blocks of which no beginning can be had is no error.
        Ok(RestoredPrefix { num_tokens: 0, .. }) => assert!(is_empty(runner)),
        _ => drop(refused(runner, bytes)),
    };
    for is_sliding in [false, true] {
        let bytes = saved(is_sliding);
        let mut runner = engine(64, is_sliding);
        for at in 0..header_len(&bytes) - 8 {
            for value in [0, 1, 2, 3, 4, 15, 0x7f, 0x80, 0xff] {
                if bytes[at] != value {
                    try_it(&mut runner, &forged(&bytes, |header| header[at] = value));
                }
            }
            for value in [u32::MAX, 1 << 31, 1 << 20, 0] {
                let new = value.to_le_bytes();
                if at + 4 <= header_len(&bytes) - 8 && bytes[at..at + 4] != new {
                    try_it(&mut runner, &forged(&bytes, |header| header[at..at + 4].copy_from_slice(&new)));
                }
            }
        }
    }
}

#[test]
fn records_in_each_others_place_are_noticed() {
    let bytes = saved(false);
    let (start, len) = (header_len(&bytes), 16 * 2 * 4 + 8);
    assert_eq!(start + 4 * len, bytes.len());
    let mut swapped = bytes.clone();
    swapped[start..start + 2 * len].rotate_left(len);
    assert!(refused(&mut engine(64, false), &swapped).contains("checksum of tokens 0 to 16"));
}

#[test]
fn another_model_or_format_is_named() {
    let bytes = saved(false);
    let refusal = |change: fn(&mut Runner)| {
        let mut runner = engine(64, false);
        change(&mut runner);
        refused(&mut runner, &bytes)
    };
    let weights = refusal(|runner| block_on(runner.engine.forward_alone()).unwrap().identity.model = 2);
    assert!(weights.contains("another quantisation"), "{weights}");
    let model = refusal(|runner| {
        let identity = &mut block_on(runner.engine.forward_alone()).unwrap().identity;
        (identity.model, identity.name) = (2, "other".to_owned());
    });
    assert!(model.contains(r#"than "other": of "fake""#), "{model}");
    let format = refusal(|runner| block_on(runner.engine.forward_alone()).unwrap().identity.kv = "f16");
    assert!(format.contains("keys and values in f32, the engine in f16"), "{format}");
    let words = refusal(|runner| block_on(runner.engine.forward_alone()).unwrap().identity.block_words[0] = 64);
    assert!(words.contains("[32] words"), "{words}");
    let mut runner = engine(64, false);
    assert!(refused(&mut runner, &bytes[..7]).contains("no saved prefix"));
    assert!(refused(&mut runner, b"GGUF and many more bytes").contains("no saved prefix"));
    let version = forged(&bytes, |header| header[8] = 9);
    assert!(refused(&mut runner, &version).contains("version 9, version 1 is read here"));
    // Two engines with the same are the same, whatever they are called.
    block_on(runner.engine.forward_alone()).unwrap().identity.name = "renamed".to_owned();
    assert_eq!(runner.engine.forward().kv_identity().model, 1);
    assert!(restore(&mut runner, &bytes, "").is_ok());
}

/// Bytes of which reading fails after a while.
struct Failing<'a> {
    bytes: &'a [u8],
    num_reads: Cell<usize>,
}

impl SnapshotSource for Failing<'_> {
    fn len(&self) -> u64 {
        SnapshotSource::len(self.bytes)
    }

    async fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let num_left = self.num_reads.get();
        self.num_reads.set(num_left.checked_sub(1).ok_or_else(|| Error::Network("gone".into()))?);
        self.bytes.read(offset, len).await
    }
}

#[test]
fn a_source_or_a_device_that_fails_leaves_nothing_behind() {
    let bytes = saved(true);
    let options = CacheOptions::default();
    for num_reads in 0..8 {
        let mut runner = engine(64, true);
        let source = Failing { bytes: &bytes, num_reads: Cell::new(num_reads) };
        let restored = block_on(runner.engine.cache_restore(&source, &options, 0.0));
        assert_eq!(restored, Err(Error::Network("gone".into())), "after {num_reads} reads");
        assert!(is_empty(&runner));
    }
    let mut runner = engine(64, true);
    runner.outcomes.borrow_mut().push_back(Err(Error::DeviceLost("away".into())));
    assert_eq!(restore(&mut runner, &bytes, ""), Err(Error::DeviceLost("away".into())));
    assert!(is_empty(&runner));
}

#[test]
fn a_restore_that_is_dropped_holds_nothing_for_long() {
    let bytes = saved(false);
    let mut runner = engine(8, false);
    let options = CacheOptions::default();
    {
        let mut pending = Box::pin(runner.engine.cache_restore(bytes.as_slice(), &options, 0.0));
        let waker = std::task::Waker::noop();
        assert!(pending.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    assert_eq!(runner.engine.kv().stats()[0].used, 4);
    assert_eq!(runner.answer(&request(100, 4, 0)).cache.read_tokens, 0, "all eight blocks are to be had");
    assert_eq!(runner.engine.kv().stats()[0].used, 0);
}

#[test]
fn what_is_asked_of_a_request_can_be_asked_of_what_comes_back() {
    let mut runner = engine(6, false);
    let options = CacheOptions { pin: true, priority: 3, name: Some("system".into()), ..CacheOptions::default() };
    block_on(runner.engine.cache_restore(saved(false).as_slice(), &options, 0.0)).unwrap();
    runner.answer(&request(20, 4, 7));
    runner.answer(&request(20, 4, 8));
    let prefixes = runner.engine.cache_prefixes();
    let prefix = prefixes.iter().find(|it| it.name.as_deref() == Some("system")).unwrap();
    assert_eq!((prefix.is_pinned, prefix.priority, prefix.tokens.len()), (true, 3, 64));
    assert_eq!(runner.engine.cache_stats().num_restored, 4);
}
