//! Stop rules, text, finish reasons, usage and timings.

use pagewise::engine::{FinishReason, Request};

use crate::fake::{Answer, END, Setup, bytes, request};

/// The answer to "hi" of a model that says `says` and then ends.
fn ask(says: &str, change: impl FnOnce(&mut Request)) -> Answer {
    let mut request = Request { prompt: bytes("hi"), ..Request::default() };
    change(&mut request);
    Setup::script(2, bytes(says)).build().answer(&request)
}

#[test]
fn an_answer_ends_with_the_models_own_token() {
    let answer = ask("Hello", |_| {});
    assert_eq!((answer.text.as_str(), answer.reason()), ("Hello", Some(FinishReason::Stop)));
    assert_eq!(answer.ids, [bytes("Hello"), vec![END]].concat());
    let (_, usage, _) = answer.end.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (2, 6, 8));
}

#[test]
fn the_models_own_end_can_be_ignored() {
    let answer = ask("Hello", |request| {
        request.ignore_end_of_generation = true;
        request.max_tokens = Some(8);
    });
    assert_eq!((answer.ids.len(), answer.reason()), (8, Some(FinishReason::Length)));
    assert_eq!(answer.ids[5..], [END; 3]);
}

#[test]
fn max_tokens_ends_an_answer() {
    let answer = ask("Hello", |request| request.max_tokens = Some(3));
    assert_eq!((answer.text.as_str(), answer.ids.len(), answer.reason()), ("Hel", 3, Some(FinishReason::Length)));
}

#[test]
fn an_end_that_comes_with_the_last_token_counts_as_stop() {
    let answer = ask("Hello", |request| request.max_tokens = Some(6));
    assert_eq!((answer.text.as_str(), answer.reason()), ("Hello", Some(FinishReason::Stop)));
}

#[test]
fn a_stop_token_ends_an_answer_and_is_not_text() {
    let answer = ask("Hello", |request| request.stop_token_ids = bytes("l"));
    assert_eq!((answer.text.as_str(), answer.reason()), ("He", Some(FinishReason::Stop)));
    assert_eq!(answer.ids, bytes("Hel"));
}

#[test]
fn a_stop_string_across_tokens_ends_an_answer_and_never_shows() {
    let answer = ask("one two three", |request| request.stop = vec!["two".into(), "three".into()]);
    assert_eq!((answer.text.as_str(), answer.reason()), ("one ", Some(FinishReason::Stop)));
    assert_eq!(answer.ids, bytes("one two"));
}

#[test]
fn text_that_only_begins_like_a_stop_string_comes_in_the_end() {
    for (says, max_tokens) in [("one tw", None), ("one twist", Some(6))] {
        let answer = ask(says, |request| {
            request.stop = vec!["two".into()];
            request.max_tokens = max_tokens;
        });
        assert_eq!(answer.text, "one tw");
    }
}

#[test]
fn what_may_begin_a_stop_string_is_held_back() {
    let mut runner = Setup::script(2, bytes("a two")).build();
    let request = Request { prompt: bytes("hi"), stop: vec!["tx".into()], ..Request::default() };
    let id = runner.submit(&request);
    for expected in ["a", "a ", "a ", "a tw", "a two"] {
        runner.step();
        assert_eq!(runner.answers[&id].text, expected);
    }
}

#[test]
fn a_character_that_spans_tokens_comes_whole() {
    let mut runner = Setup::script(2, bytes("é🦀")).build();
    let id = runner.submit(&Request { prompt: bytes("hi"), ..Request::default() });
    for expected in ["", "é", "é", "é", "é", "é🦀"] {
        runner.step();
        assert_eq!(runner.answers[&id].text, expected);
    }
    let answer = ask("é", |request| request.max_tokens = Some(1));
    assert_eq!(answer.text, "\u{fffd}", "half a character at the end is shown as such");
}

#[test]
fn an_answer_that_goes_on_in_the_middle_of_a_text_keeps_its_leading_space() {
    let answer =
        Setup::script(2, vec![257, 258]).build().answer(&Request { prompt: bytes("hi"), ..Request::default() });
    assert_eq!(answer.text, " one two");
    let after_end = Request { prompt: vec![104, END], ..Request::default() };
    assert_eq!(Setup::script(2, vec![257, 258]).build().answer(&after_end).text, "one two");
}

#[test]
fn a_full_context_ends_an_answer() {
    let mut setup = Setup::default();
    // Not all of the third block.
    setup.limits.context_length = 45;
    setup.limits.max_blocks = 3;
    let mut runner = setup.build();
    assert_eq!(runner.engine.context_length(), 45);
    let answer = runner.answer(&Request { max_tokens: None, ..request(40, 1, 0) });
    assert_eq!((answer.ids.len(), answer.reason()), (5, Some(FinishReason::Length)));
}

#[test]
fn timings_follow_the_clock() {
    let mut runner = Setup::default().build();
    // 100 tokens in steps of 64: the second step draws the first token.
    let id = runner.submit(&request(100, 3, 0));
    runner.clock_ms.set(500.0);
    runner.finish();
    // Every step asks for the time when it starts and when it ends, 10 ms apart.
    let (_, _, timings) = runner.answers[&id].end.unwrap();
    assert_eq!((timings.queue_ms, timings.ttft_ms), (510.0, 540.0));
    assert_eq!(timings.tpot_ms, Some(20.0));
    assert_eq!(timings.prefill_tokens_per_s, Some(100.0 / 0.030));
    assert_eq!(timings.decode_tokens_per_s, Some(50.0));
    let (_, _, timings) = runner.answer(&request(10, 1, 0)).end.unwrap();
    assert_eq!((timings.tpot_ms, timings.decode_tokens_per_s), (None, None));
}
