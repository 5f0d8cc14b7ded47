//! Stop strings.

use pagewise::text::{StopStrings, Streamed};
use proptest::prelude::*;

/// What must come out: the text up to the stop string that is complete first, the longest of those.
fn naive(text: &str, stops: &[String]) -> (String, bool) {
    for end in text.char_indices().map(|(at, c)| at + c.len_utf8()) {
        let longest =
            stops.iter().filter(|stop| !stop.is_empty() && text[..end].ends_with(*stop)).map(String::len).max();
        if let Some(len) = longest {
            return (text[..end - len].to_owned(), true);
        }
    }
    (text.to_owned(), false)
}

fn streamed(pieces: &[String], stops: &[String]) -> (String, bool) {
    let mut watcher = StopStrings::new(stops.to_vec());
    let (mut text, mut stopped) = (String::new(), false);
    for piece in pieces {
        let out = watcher.push(piece);
        assert!(!stopped || out == Streamed { text: String::new(), stopped: true }, "text after a stop");
        text += &out.text;
        stopped = out.stopped;
    }
    text += &watcher.finish();
    (text, stopped)
}

proptest! {
    #[test]
    fn any_cutting_gives_what_a_search_of_the_whole_text_gives(
        pieces in prop::collection::vec("[abé]{0,4}", 0..12),
        stops in prop::collection::vec("[abé]{0,4}", 0..4),
    ) {
        prop_assert_eq!(streamed(&pieces, &stops), naive(&pieces.concat(), &stops));
    }

    #[test]
    fn no_more_is_held_back_than_could_become_a_stop_string(
        pieces in prop::collection::vec("[abé]{0,4}", 0..12),
        stop in "[abé]{1,5}",
    ) {
        let mut watcher = StopStrings::new(vec![stop.clone()]);
        let (mut seen, mut shown) = (String::new(), String::new());
        for piece in pieces {
            seen += &piece;
            let out = watcher.push(&piece);
            shown += &out.text;
            if out.stopped {
                break;
            }
            let held = seen.strip_prefix(&shown).expect("what is shown is what was written");
            prop_assert!(stop.starts_with(held) && held.len() < stop.len());
        }
    }
}

#[test]
fn a_stop_string_across_pieces_is_never_seen() {
    let mut watcher = StopStrings::new(vec!["</tool>".to_owned(), String::new()]);
    assert_eq!(watcher.push("x < y </"), Streamed { text: "x < y ".to_owned(), stopped: false });
    assert_eq!(watcher.push("to"), Streamed::default());
    assert_eq!(watcher.push("e</tool> more"), Streamed { text: "</toe".to_owned(), stopped: true });
    assert_eq!(watcher.push("more"), Streamed { text: String::new(), stopped: true });
    assert_eq!(watcher.finish(), "");
}

#[test]
fn without_stop_strings_nothing_is_held_back() {
    let mut watcher = StopStrings::new(Vec::new());
    assert_eq!(watcher.push("anything"), Streamed { text: "anything".to_owned(), stopped: false });
}
