//! Where two prompts part, and why.

use serde::Serialize;
use serde_json::Value;

use super::advice;
use super::change::{Change, Context, change, common_prefix, similarity};
use super::prompt::{Origin, Prompt, Segment};
use super::structure::restructured;
use crate::Result;

/// Characters shown of what both prompts have before the difference, of the difference, and after it.
const SHOWN: [usize; 3] = [40, 80, 20];

/// Below this, two texts were not made from one another.
const UNLIKE: f64 = 0.3;

/// Why a prompt does not continue an earlier one. The first four are no fault: nothing could be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The prompts are equal.
    Identical,
    /// The next prompt goes on where the previous one ended.
    Appended,
    /// The next prompt is the front of the previous one.
    Shortened,
    /// Another conversation, which shares what is before it.
    NewConversation,
    /// A date or a time.
    Timestamp,
    /// A UUID.
    Uuid,
    /// An id of a user, a request or a session.
    Identifier,
    /// A number that counts.
    Counter,
    /// White space only.
    Whitespace,
    /// The same lines, fields or tools in another order.
    Order,
    /// Another model.
    ModelChanged,
    /// Another chat template.
    TemplateChanged,
    /// Other tools, or tools described otherwise.
    ToolsChanged,
    /// An answer of the history lost (or got) its thinking text.
    ThinkingStripped,
    /// Text about the user in what all users share.
    UserText,
    /// A text was changed.
    Edited,
    /// Messages are missing before others that stayed.
    Deleted,
    /// Messages were put before others that stayed.
    Inserted,
    /// The same messages in another order.
    Reordered,
    /// Several messages became fewer, such as a summary, before others that stayed.
    HistoryRewritten,
}

/// Which part of a prompt is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The model, which everything depends on.
    Model,
    /// The chat template, which everything depends on.
    Template,
    /// The tool list; it is taken to be in front, where hosted APIs put it.
    Tools,
    /// A message.
    Message,
    /// A plain text, or a request's `system`.
    Text,
}

/// Where two prompts part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The kind of place.
    pub part: Part,
    /// Index of the message in the next prompt (in the previous one, if the next is shorter).
    pub message: Option<usize>,
    /// The message's role.
    pub role: Option<String>,
    /// Characters that are equal in this part before the first difference.
    pub character: usize,
}

/// One prompt's text around the difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// What both have.
    pub before: String,
    /// What differs.
    pub text: String,
    /// What follows.
    pub after: String,
}

/// What sizes are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Unicode characters, without what a template adds.
    Characters,
    /// Tokens, from `token_counts`; inside of a part by the share of its characters.
    Tokens,
}

/// Sizes of the prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Size {
    /// What is counted.
    pub unit: Unit,
    /// Of the previous prompt.
    pub previous: usize,
    /// Of the next prompt.
    pub next: usize,
    /// What both have at their fronts: as much as a cache can reuse.
    pub shared: usize,
    /// What was computed for the previous prompt and cannot be reused.
    pub lost: usize,
}

/// Shares, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fraction {
    /// Of the previous prompt, what is lost.
    pub lost: f64,
    /// Of the next prompt, what can be reused.
    pub reused: f64,
}

/// What the doctor found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Whether the prompts part before one of them ends.
    pub miss: bool,
    /// Why.
    pub cause: Cause,
    /// Further causes in the same text: they would be next.
    pub also: Vec<Cause>,
    /// Where; `None` when they do not part.
    pub place: Option<Place>,
    /// The previous prompt there.
    pub previous: Option<Side>,
    /// The next prompt there.
    pub next: Option<Side>,
    /// Sizes.
    pub size: Size,
    /// Shares.
    pub fraction: Fraction,
    /// One or two sentences on what was found.
    pub summary: String,
    /// What to move or to change; `None` when there is nothing to do.
    pub advice: Option<String>,
}

/// Why `next` does not continue `previous`. Both are a text, a list of messages in OpenAI's shape, or a request: an object
/// with `messages` or `prompt`, and optionally `system`, `tools`, `model`, `template` (any name of the chat template) and
/// `token_counts` (one number for each message; tools, in front, may be counted or not).
///
/// # Errors
/// `bad_request` for anything else.
pub fn explain(previous: &Value, next: &Value) -> Result<Explanation> {
    let prompts = [Prompt::parse(previous, "previous")?, Prompt::parse(next, "next")?];
    Ok(compare([&prompts[0], &prompts[1]]))
}

/// `part` of `whole`; 0 of nothing.
pub(super) fn ratio(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a share is shown with a few digits")]
    let ratio = part as f64 / whole.max(1) as f64;
    ratio
}

/// A difference, before it is put in words.
struct Finding {
    change: Change,
    place: Option<Place>,
    /// Messages that were deleted, inserted or otherwise moved.
    num_messages: usize,
}

fn compare(prompts: [&Prompt; 2]) -> Explanation {
    let [previous, next] = prompts;
    let segments = [&previous.segments[..], &next.segments[..]];
    let num_same = segments[0].iter().zip(segments[1]).take_while(|(a, b)| a.is_same(b)).count();
    let at = match [segments[0].get(num_same), segments[1].get(num_same)] {
        [Some(a), Some(b)] if a.role == b.role => common_prefix(&a.text, &b.text),
        _ => 0,
    };
    let mut shared = (num_same, at);
    let finding = if previous.model != next.model && previous.model.is_some() && next.model.is_some() {
        shared = (0, 0);
        whole_prompt(Part::Model, Cause::ModelChanged)
    } else if previous.template != next.template {
        shared = (0, 0);
        whole_prompt(Part::Template, Cause::TemplateChanged)
    } else {
        find(segments, num_same, at)
    };
    let sides = finding.place.as_ref().map(|place| sides(prompts, num_same, place.part, &finding.change));
    let is_miss = finding.place.is_some();
    let size = measure(prompts, shared, is_miss);
    let fraction = Fraction { lost: ratio(size.lost, size.previous), reused: ratio(size.shared, size.next) };
    let [previous, next] = sides.map_or([None, None], |sides| sides.map(Some));
    let mut explanation = Explanation {
        miss: is_miss,
        cause: finding.change.cause,
        also: finding.change.also,
        place: finding.place,
        previous,
        next,
        size,
        fraction,
        summary: String::new(),
        advice: None,
    };
    explanation.advice = advice::advice(&explanation);
    explanation.summary = advice::summary(&explanation, finding.num_messages);
    explanation
}

fn whole_prompt(part: Part, cause: Cause) -> Finding {
    let change = Change { cause, also: Vec::new(), start: 0, ends: [0, 0] };
    Finding { change, place: Some(Place { part, message: None, role: None, character: 0 }), num_messages: 0 }
}

/// The difference behind `num_same` equal segments and `at` equal characters.
fn find(segments: [&[Segment]; 2], num_same: usize, at: usize) -> Finding {
    let [previous, next] = segments.map(|segments| &segments[num_same..]);
    let simple = |cause| Change { cause, also: Vec::new(), start: at, ends: [at, at] };
    let is_end = |rest: &[Segment]| rest.is_empty() || rest.len() == 1 && rest[0].text.len() == at;
    let is_same_role = || previous[0].role == next[0].role;
    let no_miss = match (previous.is_empty(), next.is_empty()) {
        (true, true) => Some(Cause::Identical),
        (true, false) => Some(Cause::Appended),
        (false, true) => Some(Cause::Shortened),
        _ if is_end(previous) && is_same_role() => Some(Cause::Appended),
        _ if is_end(next) && is_same_role() => Some(Cause::Shortened),
        _ => None,
    };
    if let Some(cause) = no_miss {
        return Finding { change: simple(cause), place: None, num_messages: 0 };
    }
    let (a, b) = (&previous[0], &next[0]);
    let (part, message) = match b.origin {
        Origin::Tools => (Part::Tools, None),
        Origin::Message(index) => (Part::Message, Some(index)),
        Origin::Text => (Part::Text, None),
    };
    let is_tools = a.origin == Origin::Tools || part == Part::Tools;
    let part = if is_tools { Part::Tools } else { part };
    let role = Some(b.role.clone()).filter(|role| !role.is_empty() && !is_tools);
    let place = Some(Place { part, message: message.filter(|_| !is_tools), role, character: at });
    let (change, num_messages) = if is_tools {
        (tools_change(a, b, at), 0)
    } else if let Some((cause, num_messages)) = restructured(previous, next) {
        (Change { ends: [a.text.len(), b.text.len()], ..simple(cause) }, num_messages)
    } else {
        (text_change(segments, num_same, at), 0)
    };
    Finding { change, place, num_messages }
}

fn tools_change(a: &Segment, b: &Segment, at: usize) -> Change {
    let whole = |cause| Change { cause, also: Vec::new(), start: at, ends: [a.text.len(), b.text.len()] };
    if a.origin != b.origin {
        return whole(Cause::ToolsChanged);
    }
    let change = change(&a.text, &b.text, Context { is_written_by_app: true, may_be_edited: false });
    match change.cause {
        Cause::Timestamp | Cause::Uuid | Cause::Identifier | Cause::Counter | Cause::Order => change,
        _ => whole(Cause::ToolsChanged),
    }
}

/// The difference inside of a message or a plain text.
fn text_change(segments: [&[Segment]; 2], num_same: usize, at: usize) -> Change {
    let [a, b] = segments.map(|segments| &segments[num_same]);
    let whole = |cause| Change { cause, also: Vec::new(), start: at, ends: [a.text.len(), b.text.len()] };
    if a.role != b.role {
        return whole(Cause::Edited);
    }
    // Somebody who edits a message has it answered anew, so nothing follows it.
    let is_last = num_same + 1 == segments[1].len();
    let context =
        Context { is_written_by_app: a.is_written_by_app(), may_be_edited: is_last && !a.is_written_by_app() };
    let change = change(&a.text, &b.text, context);
    let is_first_word = !segments[0][..num_same].iter().any(|segment| segment.role == a.role);
    let may_be_new = a.role == "user" || a.origin == Origin::Text && a.role.is_empty();
    if change.cause == Cause::Edited && may_be_new && is_first_word && similarity(&a.text, &b.text) < UNLIKE {
        return whole(Cause::NewConversation);
    }
    change
}

fn measure(prompts: [&Prompt; 2], shared: (usize, usize), is_miss: bool) -> Size {
    let [previous, next] = prompts;
    let in_tokens = previous.tokens.is_some() && next.tokens.is_some();
    let [num_previous, num_next] = prompts.map(|prompt| prompt.size(prompt.segments.len(), 0, in_tokens));
    let shared = prompts.map(|prompt| prompt.size(shared.0, shared.1, in_tokens)).into_iter().min().unwrap_or(0);
    let lost = if is_miss { num_previous - shared } else { 0 };
    let unit = if in_tokens { Unit::Tokens } else { Unit::Characters };
    Size { unit, previous: num_previous, next: num_next, shared, lost }
}

/// Both prompts around a difference.
fn sides(prompts: [&Prompt; 2], num_same: usize, part: Part, change: &Change) -> [Side; 2] {
    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
    let named = |text: String| Side { before: String::new(), text, after: String::new() };
    match part {
        Part::Model => prompts.map(|prompt| named(name(&prompt.model))),
        Part::Template => prompts.map(|prompt| named(name(&prompt.template))),
        _ => [0, 1].map(|index| {
            let text = prompts[index].segments.get(num_same).map_or(&[][..], |segment| &segment.text);
            side(text, change.start, change.ends[index])
        }),
    }
}

fn side(text: &[char], start: usize, end: usize) -> Side {
    let start = start.min(text.len());
    let end = end.clamp(start, text.len());
    let collect = |range: std::ops::Range<usize>| text[range].iter().collect::<String>();
    let mut shown = collect(start..end.min(start + SHOWN[1]));
    if end > start + SHOWN[1] {
        shown.push('…');
    }
    Side {
        before: collect(start.saturating_sub(SHOWN[0])..start),
        text: shown,
        after: collect(end..text.len().min(end + SHOWN[2])),
    }
}
