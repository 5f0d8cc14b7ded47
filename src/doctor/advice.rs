//! What was found, in words.

use super::explain::{Cause, Explanation, Part, Place, Side, Unit};

/// Characters of a side that fit in a sentence.
const QUOTED: usize = 48;

/// One or two sentences: what differs where, and what that costs.
pub(super) fn summary(found: &Explanation, num_messages: usize) -> String {
    let what = match (&found.place, found.cause) {
        (None, cause) => return fits(cause, found),
        (Some(place), cause) => format!("{} {}", subject(cause, num_messages), location(place, cause)),
    };
    let both = [&found.previous, &found.next].map(|side| side.as_ref().map(quote).unwrap_or_default());
    let change = if both[0] == both[1] { String::new() } else { format!(": {} became {}", both[0], both[1]) };
    format!("{what}{change}. {}", cost(found))
}

fn fits(cause: Cause, found: &Explanation) -> String {
    let what = match cause {
        Cause::Identical => "The prompts are equal",
        Cause::Shortened => "The next prompt is the front of the previous one",
        _ => "The next prompt continues the previous one",
    };
    format!("{what}: {} % of it can be reused.", percent(found.fraction.reused))
}

fn subject(cause: Cause, num_messages: usize) -> String {
    let messages = if num_messages == 1 { "1 message".to_owned() } else { format!("{num_messages} messages") };
    match cause {
        Cause::Identical | Cause::Appended | Cause::Shortened => "Nothing changes".to_owned(),
        Cause::NewConversation => "Another conversation begins".to_owned(),
        Cause::Timestamp => "A date or time changes".to_owned(),
        Cause::Uuid => "A UUID changes".to_owned(),
        Cause::Identifier => "An id changes".to_owned(),
        Cause::Counter => "A counter changes".to_owned(),
        Cause::Whitespace => "White space changes".to_owned(),
        Cause::Order => "The same items come in another order".to_owned(),
        Cause::ModelChanged => "The model changes".to_owned(),
        Cause::TemplateChanged => "The chat template changes".to_owned(),
        Cause::ToolsChanged => "The tools change".to_owned(),
        Cause::ThinkingStripped => "The thinking text of an answer comes or goes".to_owned(),
        Cause::UserText => "Text about the user changes".to_owned(),
        Cause::Edited => "The text changes".to_owned(),
        Cause::Deleted => format!("{messages} are gone"),
        Cause::Inserted => format!("{messages} were put in"),
        Cause::Reordered => "The same messages come in another order".to_owned(),
        Cause::HistoryRewritten => format!("{messages} were replaced by fewer"),
    }
}

fn location(place: &Place, cause: Cause) -> String {
    let is_inside = !matches!(
        cause,
        Cause::Deleted | Cause::Inserted | Cause::Reordered | Cause::HistoryRewritten | Cause::NewConversation
    );
    let character = if is_inside { format!("at character {} of ", place.character) } else { "at ".to_owned() };
    let role = place.role.as_ref().map(|role| format!(" ({role})")).unwrap_or_default();
    match place.part {
        Part::Model | Part::Template => "under the whole prompt".to_owned(),
        Part::Tools => format!("{character}the tool list"),
        Part::Text if role.is_empty() => format!("{character}the text"),
        Part::Text => format!("{character}the system prompt"),
        Part::Message => format!("{character}message {}{role}", place.message.unwrap_or(0)),
    }
}

fn quote(side: &Side) -> String {
    let mut text: String = side.text.chars().take(QUOTED).flat_map(char::escape_debug).collect();
    if side.text.chars().count() > QUOTED {
        text.push('…');
    }
    format!("\"{text}\"")
}

fn percent(fraction: f64) -> String {
    // 100 % is said only of everything.
    let percent = (fraction * 100.0).round();
    format!("{:.0}", if fraction < 1.0 { percent.min(99.0) } else { percent })
}

fn cost(found: &Explanation) -> String {
    let unit = match found.size.unit {
        Unit::Characters => "characters",
        Unit::Tokens => "tokens",
    };
    let (lost, all) = (found.size.lost, found.size.previous);
    format!("{} % of the previous prompt is lost ({lost} of {all} {unit}).", percent(found.fraction.lost))
}

/// What to do; `None` when the loss is what was asked for.
pub(super) fn advice(found: &Explanation) -> Option<String> {
    let is_system = found.place.as_ref().is_some_and(|place| {
        place.part != Part::Message || place.role.as_deref().is_some_and(|role| role.starts_with("system"))
    });
    let text = match found.cause {
        Cause::Identical | Cause::Appended | Cause::Shortened | Cause::NewConversation => return None,
        Cause::Timestamp => {
            "Take the date and time out of the text that stays; put them into the last user message, or round them to \
             the day and keep them behind everything else."
        }
        Cause::Uuid | Cause::Identifier => {
            "Leave ids out of the prompt: keep them in headers or metadata. If the model has to know one, put it into \
             the last user message."
        }
        Cause::Counter => "Leave the counter out, or put it into the last user message.",
        Cause::Whitespace => {
            "Build this text in one place, so that line ends, indentation and trailing blanks are always the same."
        }
        Cause::Order => "Sort what has no order of its own (keys, tools, lists of facts) before it is written out.",
        Cause::ModelChanged => "A cache belongs to one model: keep a conversation on the model that it began with.",
        Cause::TemplateChanged => "Keep one chat template, with the same options, for a whole conversation.",
        Cause::ToolsChanged => {
            "Send the same tools in every request, in the same order, and forbid by `tool_choice` or by instruction what \
             must not be used now."
        }
        Cause::ThinkingStripped => {
            "Decide once whether answers keep their thinking text in the history. Dropping it costs the answer that \
             loses it and everything after it, once for each turn."
        }
        Cause::UserText => {
            "Keep the system prompt the same for all users; put what is known of this user behind it, into a message of \
             its own."
        }
        Cause::Edited if is_system => {
            "Keep the text in front the same in every request; put what varies into the last user message."
        }
        Cause::Edited => return None,
        Cause::Deleted => {
            "Drop old messages rarely and many at once, not one for each turn: everything behind a cut is computed again."
        }
        Cause::Inserted => {
            "Add context at the end, before the newest message, and leave earlier messages as they were."
        }
        Cause::Reordered => "Keep messages in the order in which they were first sent.",
        Cause::HistoryRewritten => {
            "Summarise in large steps: after a summary keep the prompt growing at its end for many turns."
        }
    };
    Some(text.to_owned())
}
