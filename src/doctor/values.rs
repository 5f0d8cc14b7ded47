//! Stretches of text that change by themselves: times, ids, counters.

use super::cursor::Cursor;
use super::timestamp::timestamp;

/// What a stretch of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Timestamp,
    Uuid,
    Identifier,
    Counter,
    Email,
}

/// A stretch of text, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
    /// So special that hardly anyone types it.
    pub(super) is_strong: bool,
}

/// Beginnings that services give their ids, before `_` or `-`.
const ID_PREFIXES: [&str; 29] = [
    "req",
    "request",
    "user",
    "usr",
    "sess",
    "session",
    "thread",
    "msg",
    "run",
    "chatcmpl",
    "call",
    "cus",
    "customer",
    "acct",
    "account",
    "org",
    "conv",
    "conversation",
    "trace",
    "order",
    "client",
    "tenant",
    "evt",
    "id",
    "toolu",
    "resp",
    "asst",
    "chat",
    "job",
];

/// Parts of a label that say that an id follows.
const ID_LABELS: [&str; 10] = ["id", "uid", "guid", "uuid", "nonce", "hash", "trace", "session", "seed", "ref"];

/// Words before a number that counts.
const COUNTER_LABELS: [&str; 25] = [
    "turn",
    "turns",
    "message",
    "messages",
    "request",
    "requests",
    "count",
    "counter",
    "attempt",
    "attempts",
    "step",
    "iteration",
    "round",
    "seq",
    "sequence",
    "index",
    "call",
    "calls",
    "retry",
    "retries",
    "remaining",
    "used",
    "left",
    "visit",
    "revision",
];

/// Words after a counted noun: "12 messages so far".
const COUNTED: [&str; 6] = ["so", "left", "remaining", "used", "sent", "until"];

/// The stretches of a text, in order; they do not overlap.
pub(super) fn scan(text: &[char]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if !is_start(text, at) {
            at += 1;
            continue;
        }
        match value(text, at) {
            Some(span) => {
                at = span.end;
                spans.push(span);
            }
            None => at += 1,
        }
    }
    spans
}

/// Values begin where a word does, or behind the `_` of a longer name.
fn is_start(text: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| text[before]);
    text[at].is_alphanumeric() && !before.is_some_and(char::is_alphanumeric)
}

fn value(text: &[char], start: usize) -> Option<Span> {
    let span = |end, kind, is_strong| Some(Span { start, end, kind, is_strong });
    if let Some(end) = uuid(text, start) {
        return span(end, Kind::Uuid, true);
    }
    if let Some((end, is_strong)) = timestamp(text, start) {
        return span(end, Kind::Timestamp, is_strong);
    }
    let end = run(text, start, |c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '+'));
    if let Some(end) = email(text, start, end) {
        return span(end, Kind::Email, false);
    }
    let end = run(text, start, |c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let word: String = text[start..end].iter().collect();
    if is_prefixed(&word) || is_random(&word) {
        return span(end, Kind::Identifier, true);
    }
    let label = label(text, start);
    if label.iter().any(|part| ID_LABELS.contains(&part.as_str())) {
        return span(end, Kind::Identifier, false);
    }
    let is_counted = label.iter().any(|part| COUNTER_LABELS.contains(&part.as_str()))
        || start > 0 && text[start - 1] == '#'
        || counts(text, end);
    (is_integer(text, start, end) && is_counted).then_some(Span { start, end, kind: Kind::Counter, is_strong: false })
}

fn run(text: &[char], start: usize, is_part: impl Fn(char) -> bool) -> usize {
    text[start..].iter().position(|&c| !is_part(c)).map_or(text.len(), |len| start + len)
}

/// 8-4-4-4-12 hexadecimal digits.
fn uuid(text: &[char], start: usize) -> Option<usize> {
    let mut cursor = Cursor::new(text, start);
    for (group, len) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            cursor.eat('-')?;
        }
        (cursor.skip(|c| c.is_ascii_hexdigit()) == len).then_some(())?;
    }
    cursor.is_boundary().then_some(cursor.at)
}

fn email(text: &[char], start: usize, end: usize) -> Option<usize> {
    let at = start + text[start..end].iter().position(|&c| c == '@')?;
    let end = (at..end).rev().find(|&last| text[last].is_alphanumeric()).map(|last| last + 1)?;
    text[at..end].contains(&'.').then_some(end)
}

/// `req_8f3a2c`, `user-4821`
fn is_prefixed(word: &str) -> bool {
    word.split_once(['_', '-']).is_some_and(|(prefix, tail)| {
        ID_PREFIXES.contains(&prefix.to_lowercase().as_str())
            && tail.len() >= 3
            && tail.contains(|c: char| c.is_ascii_digit())
    })
}

/// Long, and letters and digits in turns: no word, no number.
fn is_random(word: &str) -> bool {
    if word.len() < 12 || !word.chars().all(|c| c.is_ascii_alphanumeric()) {
        return false;
    }
    let is_digit: Vec<bool> = word.chars().map(|c| c.is_ascii_digit()).collect();
    let num_turns = is_digit.windows(2).filter(|pair| pair[0] != pair[1]).count();
    num_turns >= 4 || word.len() >= 16 && num_turns >= 1 && word.chars().all(|c| c.is_ascii_hexdigit())
}

/// The parts of the name that a value is given under: `["user", "id"]` before the value of `"user_id": 7`, of `userId=7`
/// and of `User ID: 7`. Empty when what is before is not a name.
fn label(text: &[char], start: usize) -> Vec<String> {
    let is_glue = |c: &char| matches!(c, ' ' | ':' | '=' | '#' | '"' | '\'' | '(' | '`' | '*');
    let glue = text[..start].iter().rev().take_while(|c| is_glue(c)).count();
    let end = start - glue;
    if glue == 0 || end == 0 {
        return Vec::new();
    }
    let is_part = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let len = text[..end].iter().rev().take_while(|c| is_part(c)).count();
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for &c in &text[end - len..end] {
        if matches!(c, '_' | '-') || c.is_uppercase() && was_lower {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase();
        if c.is_alphanumeric() {
            parts.iter_mut().next_back().into_iter().for_each(|part| part.extend(c.to_lowercase()));
        }
    }
    parts
}

/// Digits only, and no part of a fraction, a version or a range.
fn is_integer(text: &[char], start: usize, end: usize) -> bool {
    let touches = |at: Option<&char>| at.is_some_and(|&c| matches!(c, '.' | ','));
    let is_digit = |at: Option<&char>| at.is_some_and(char::is_ascii_digit);
    text[start..end].iter().all(char::is_ascii_digit)
        && end - start <= 9
        && !(touches(text.get(end)) && is_digit(text.get(end + 1)))
        && !(start >= 2 && touches(text.get(start - 1)) && is_digit(text.get(start - 2)))
}

/// Whether "messages so far" or the like follows.
fn counts(text: &[char], end: usize) -> bool {
    let mut cursor = Cursor::new(text, end);
    cursor.skip(|c| c == ' ');
    let noun = cursor.word();
    cursor.skip(|c| c == ' ');
    noun.ends_with('s') && COUNTED.contains(&cursor.word().as_str())
}
