//! What changed inside of one text.

use super::explain::Cause;
use super::values::{Kind, Span, scan};

/// Characters that have to agree behind a difference in white space.
const AGREEMENT: usize = 12;

/// Names of what differs from user to user.
const USER_LABELS: [&str; 26] = [
    "user",
    "name",
    "username",
    "customer",
    "email",
    "location",
    "city",
    "country",
    "language",
    "locale",
    "timezone",
    "plan",
    "subscription",
    "company",
    "employer",
    "profile",
    "preferences",
    "interests",
    "memory",
    "memories",
    "account",
    "member",
    "tier",
    "age",
    "birthday",
    "client",
];

/// Words that say that a label's sentence is about a person.
const PERSONS: [&str; 6] = ["user", "user's", "user’s", "customer", "customer's", "client"];

/// What stands right before a person's name.
const BEFORE_NAME: [&str; 12] = [
    "speaking with",
    "speaking to",
    "talking with",
    "talking to",
    "chatting with",
    "assisting",
    "assistant of",
    "assistant for",
    "assistant to",
    "on behalf of",
    "hello",
    "dear",
];

/// The first difference of two texts and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) cause: Cause,
    /// What else changes further on.
    pub(super) also: Vec<Cause>,
    /// Where the differing value begins, in both texts, and where it ends in each.
    pub(super) start: usize,
    pub(super) ends: [usize; 2],
}

/// How careful to be: people write dates and numbers too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    /// The application wrote the text, so a value that looks generated is.
    pub(super) is_written_by_app: bool,
    /// The text is a message that somebody may just have edited.
    pub(super) may_be_edited: bool,
}

/// Characters that two texts have in common at their fronts.
pub(super) fn common_prefix(a: &[char], b: &[char]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The share of the longer text that the two have in common at both ends.
pub(super) fn similarity(a: &[char], b: &[char]) -> f64 {
    let front = common_prefix(a, b);
    let back = a[front..].iter().rev().zip(b[front..].iter().rev()).take_while(|(a, b)| a == b).count();
    super::explain::ratio(front + back, a.len().max(b.len()))
}

/// Compares two texts that are not equal.
pub(super) fn change(a: &[char], b: &[char], context: Context) -> Change {
    let at = common_prefix(a, b);
    let start = a[..at].iter().rposition(|&c| is_space(c)).map_or(0, |space| space + 1);
    let whole = |cause| Change { cause, also: Vec::new(), start, ends: ends(a, b, at) };
    if is_space_change(a, b, at) {
        return whole(Cause::Whitespace);
    }
    if is_thinking_change(a, b) {
        return whole(Cause::ThinkingStripped);
    }
    if is_order_change(a, b) {
        return whole(Cause::Order);
    }
    let spans = [scan(a), scan(b)];
    let found = [a, b].iter().zip(&spans).map(|(text, spans)| span_at(text, spans, at)).collect::<Option<Vec<Span>>>();
    if let Some([first, second]) = found.as_deref()
        && first.start == second.start
        && (first.is_strong && second.is_strong || !context.may_be_edited)
        && let Some(cause) = value_cause(first.kind, context)
    {
        let also = later_values([a, b], &spans, context).into_iter().filter(|&other| other != cause).collect();
        return Change { cause, also, start: first.start, ends: [first.end, second.end] };
    }
    if context.is_written_by_app && is_user_text(a, b, at) {
        return whole(Cause::UserText);
    }
    whole(Cause::Edited)
}

/// Where the texts meet again: their common end, from a word's end on, is not part of the difference.
fn ends(a: &[char], b: &[char], at: usize) -> [usize; 2] {
    let back = a[at..].iter().rev().zip(b[at..].iter().rev()).take_while(|(a, b)| a == b).count();
    [a, b].map(|text| {
        let end = text.len() - back;
        text[end..].iter().position(|&c| is_space(c)).map_or(text.len(), |len| end + len)
    })
}

fn value_cause(kind: Kind, context: Context) -> Option<Cause> {
    match kind {
        Kind::Timestamp => Some(Cause::Timestamp),
        Kind::Uuid => Some(Cause::Uuid),
        Kind::Identifier => Some(Cause::Identifier),
        Kind::Counter => Some(Cause::Counter),
        Kind::Email => context.is_written_by_app.then_some(Cause::UserText),
    }
}

/// The value that the first difference lies in, or at the end of.
fn span_at(text: &[char], spans: &[Span], at: usize) -> Option<Span> {
    let is_inside = |span: &&Span| span.start <= at && (at < span.end || at == span.end && at == text.len());
    let touches = |span: &&Span| span.start <= at && at <= span.end;
    spans.iter().find(is_inside).or_else(|| spans.iter().find(touches)).copied()
}

/// Causes of all values that differ up to where anything else does.
fn later_values(texts: [&[char]; 2], spans: &[Vec<Span>; 2], context: Context) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut at = [0, 0];
    for (first, second) in spans[0].iter().zip(&spans[1]) {
        if texts[0][at[0]..first.start] != texts[1][at[1]..second.start] {
            break;
        }
        at = [first.end, second.end];
        let is_different = texts[0][first.start..first.end] != texts[1][second.start..second.end];
        if let Some(cause) = value_cause(first.kind, context).filter(|cause| is_different && !causes.contains(cause)) {
            causes.push(cause);
        }
    }
    causes
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}' | '\u{feff}')
}

/// Whether only white space differs, as far as can be seen from the first difference on.
fn is_space_change(a: &[char], b: &[char], at: usize) -> bool {
    let is_at_space = |text: &[char]| text.get(at).copied().is_some_and(is_space);
    if !is_at_space(a) && !is_at_space(b) {
        return false;
    }
    let rest =
        |text: &[char]| -> Vec<char> { text[at..].iter().copied().filter(|&c| !is_space(c)).take(AGREEMENT).collect() };
    rest(a) == rest(b)
}

/// Whether the texts are equal but for `<think>...</think>`.
fn is_thinking_change(a: &[char], b: &[char]) -> bool {
    let [a, b] = [a, b].map(|text| text.iter().collect::<String>());
    let [bare_a, bare_b] = [&a, &b].map(|text| without_thinking(text));
    (bare_a.len() != a.len() || bare_b.len() != b.len()) && bare_a.trim() == bare_b.trim()
}

fn without_thinking(text: &str) -> String {
    let (mut bare, mut rest) = (String::new(), text);
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        rest = text;
        bare.clear();
        while let Some((before, inside)) = rest.split_once(open) {
            bare.push_str(before);
            // Thinking that was cut off goes to the end.
            rest = inside.split_once(close).map_or("", |(_, after)| after);
        }
        if !bare.is_empty() || rest.len() != text.len() {
            break;
        }
    }
    bare + rest
}

/// Whether the texts consist of the same items, lines or fields, in another order.
fn is_order_change(a: &[char], b: &[char]) -> bool {
    let items = |text: &[char]| -> Vec<String> {
        let text: String = text.iter().collect();
        let is_border = |c: char| matches!(c, '\n' | ',' | ';' | '{' | '}' | '[' | ']');
        let items = text.split(is_border).map(|item| item.trim().trim_end_matches('.').to_owned());
        let mut items: Vec<String> = items.filter(|item| !item.is_empty()).collect();
        items.sort_unstable();
        items
    };
    let [a, b] = [items(a), items(b)];
    a.len() > 1 && a == b
}

/// Whether what differs is told to be somebody's: by a label, by the sentence, or by the heading above.
fn is_user_text(a: &[char], b: &[char], at: usize) -> bool {
    let start = a[..at].iter().rposition(|&c| !(c.is_alphanumeric() || c == '_')).map_or(0, |before| before + 1);
    let before: String = a[..start].iter().flat_map(|c| c.to_lowercase()).collect();
    let line = before.rsplit('\n').next().unwrap_or_default();
    is_labelled(line) || is_about_user(line) || is_named(line, [a, b], start) || is_under_heading(&before)
}

fn last_words(text: &str, count: usize) -> Vec<&str> {
    let is_border = |c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '’'));
    let words: Vec<&str> = text.split(is_border).filter(|word| !word.is_empty()).collect();
    words[words.len().saturating_sub(count)..].to_vec()
}

/// `Name: `, `"language": "`, `<location>`
fn is_labelled(line: &str) -> bool {
    let Some(end) = line.rfind([':', '=', '>']) else { return false };
    let label = last_words(&line[..end], 2);
    let parts = label.iter().flat_map(|word| word.split('_'));
    line[end..].chars().count() < 40 && parts.into_iter().any(|part| USER_LABELS.contains(&part))
}

/// "The user's name is ", "The customer lives in "
fn is_about_user(line: &str) -> bool {
    let words = last_words(line, 5);
    let is_verb =
        |word: &&str| matches!(*word, "is" | "in" | "at" | "named" | "called" | "prefers" | "likes" | "speaks");
    words.last().is_some_and(is_verb) && words.iter().any(|word| PERSONS.contains(word))
}

/// "You are talking to Alice"
fn is_named(line: &str, texts: [&[char]; 2], start: usize) -> bool {
    let is_name = |text: &[char]| text.get(start).is_some_and(|c| c.is_uppercase());
    texts.into_iter().all(is_name) && BEFORE_NAME.iter().any(|words| line.trim_end().ends_with(words))
}

/// Whether the nearest heading (`# ...`, `<...>`, `...:`) is about the user.
fn is_under_heading(before: &str) -> bool {
    let mut lines = before.rsplit('\n').skip(1).map(str::trim);
    let is_heading = |line: &&str| line.starts_with(['#', '<']) || line.ends_with(':');
    let Some(heading) = lines.find(is_heading) else { return false };
    let about = ["user", "customer", "profile", "memory", "memories", "preferences"];
    let parts = last_words(heading, 6);
    !heading.starts_with("</") && parts.iter().flat_map(|word| word.split('_')).any(|word| about.contains(&word))
}
