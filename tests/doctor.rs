//! The prompt doctor against a table of prompts with the right answers (`tests/data/doctor.json`), false alarms included.
#![allow(clippy::unwrap_used, reason = "tests")]

use pagewise::Error;
use pagewise::doctor::{Cause, Explanation, Part, Side, Unit, explain};
use proptest::prelude::*;
use serde_json::{Value, json};

fn table() -> Vec<Value> {
    serde_json::from_str(include_str!("data/doctor.json")).unwrap()
}

/// What of a case's right answer the doctor got wrong.
fn wrong_answers(case: &Value) -> Vec<String> {
    let found = explain(&case["previous"], &case["next"]).unwrap();
    let json = serde_json::to_value(&found).unwrap();
    let mut wrong = Vec::new();
    let mut check = |what: &str, found: &Value, right: &Value| {
        if !right.is_null() && found != right {
            wrong.push(format!("{}: {what} is {found}, not {right}", case["name"]));
        }
    };
    for key in ["cause", "miss", "also"] {
        check(key, &json[key], &case[key]);
    }
    for key in ["part", "message", "character"] {
        check(key, &json["place"][key], &case[key]);
    }
    check("advice", &json["advice"].is_string().into(), &case["advice"]);
    let texts = json!([json["previous"]["text"], json["next"]["text"]]);
    check("texts", &texts, &case["texts"]);
    if case["lost"].is_number() {
        check("lost", &json!(found.fraction.lost), &json!(case["lost"].as_f64()));
    }
    wrong
}

#[test]
fn the_table() {
    let table = table();
    assert!(table.len() >= 40, "{} cases", table.len());
    let wrong: Vec<String> = table.iter().flat_map(wrong_answers).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

#[test]
fn the_table_knows_every_cause() {
    let table = table();
    for cause in [
        Cause::Identical,
        Cause::Appended,
        Cause::Shortened,
        Cause::NewConversation,
        Cause::Timestamp,
        Cause::Uuid,
        Cause::Identifier,
        Cause::Counter,
        Cause::Whitespace,
        Cause::Order,
        Cause::ModelChanged,
        Cause::TemplateChanged,
        Cause::ToolsChanged,
        Cause::ThinkingStripped,
        Cause::UserText,
        Cause::Edited,
        Cause::Deleted,
        Cause::Inserted,
        Cause::Reordered,
        Cause::HistoryRewritten,
    ] {
        let name = serde_json::to_value(cause).unwrap();
        assert!(table.iter().any(|case| case["cause"] == name), "{name}");
    }
}

fn system_and_user(system: &str) -> Value {
    json!([{ "role": "system", "content": system }, { "role": "user", "content": "0123456789" }])
}

#[test]
fn sizes_in_characters_and_in_tokens() {
    let [previous, next] = ["Day: 2025-01-01", "Day: 2025-01-02"].map(system_and_user);
    let found = explain(&previous, &next).unwrap();
    assert_eq!(
        (found.size.unit, found.size.previous, found.size.shared, found.size.lost),
        (Unit::Characters, 25, 14, 11)
    );
    assert!((found.fraction.lost - 11.0 / 25.0).abs() < 1e-9 && (found.fraction.reused - 14.0 / 25.0).abs() < 1e-9);
    let counted = |messages: &Value| json!({ "messages": messages, "token_counts": [30, 70] });
    let found = explain(&counted(&previous), &counted(&next)).unwrap();
    assert_eq!((found.size.unit, found.size.previous, found.size.shared, found.size.lost), (Unit::Tokens, 100, 28, 72));
    // Counts of one prompt alone are of no use.
    assert_eq!(explain(&counted(&previous), &next).unwrap().size.unit, Unit::Characters);
}

#[test]
fn both_sides_are_shown_and_told() {
    let [previous, next] = ["Be kind. It is 10:00 now.", "Be kind. It is 10:07 now."].map(system_and_user);
    let found = explain(&previous, &next).unwrap();
    let side = |text: &str| Side { before: "Be kind. It is ".into(), text: text.into(), after: " now.".into() };
    assert_eq!((found.previous, found.next), (Some(side("10:00")), Some(side("10:07"))));
    let place = found.place.unwrap();
    assert_eq!(
        (place.part, place.message, place.role.as_deref(), place.character),
        (Part::Message, Some(0), Some("system"), 19)
    );
    let summary = "A date or time changes at character 19 of message 0 (system): \"10:00\" became \"10:07\". \
                   46 % of the previous prompt is lost (16 of 35 characters).";
    assert_eq!(found.summary, summary);
    assert!(found.advice.unwrap().contains("last user message"));
}

#[test]
fn long_differences_are_cut() {
    let [previous, next] = ["a".repeat(5000), "é".repeat(5000)];
    let found = explain(&json!(previous), &json!(next)).unwrap();
    assert!(found.previous.unwrap().text.chars().count() <= 81);
    assert!(found.next.unwrap().text.ends_with('…'));
}

#[test]
fn what_is_no_prompt_is_refused() {
    let bad = [
        json!(3),
        json!(null),
        json!({}),
        json!({ "messages": 3 }),
        json!(["Hi"]),
        json!([{ "content": "Hi" }]),
        json!({ "messages": [{ "role": "user", "content": "Hi" }], "token_counts": [1, 2, 3] }),
        json!({ "messages": [{ "role": "user", "content": "Hi" }], "token_counts": [-1] }),
        json!({ "messages": [{ "role": "user", "content": "Hi" }], "token_counts": "many" }),
    ];
    for value in bad {
        for (previous, next) in [(&value, &json!("Hi")), (&json!("Hi"), &value)] {
            let error = explain(previous, next).unwrap_err();
            assert!(matches!(error, Error::BadRequest(_)), "{value}: {error}");
        }
    }
}

/// What scanners look at, and other text.
const PIECES: [&str; 26] = [
    "2025-01-01",
    "T10:00",
    "Monday",
    ", ",
    "id: ",
    "#",
    "12",
    "é",
    "\n",
    " ",
    "<think>",
    "</think>",
    "user_id",
    "9f1c2b3a-0d4e-4f5a-8b6c-7d8e9f0a1b2c",
    "1740823200",
    "a@b.c",
    "Name: ",
    "x7Kq92mLp0aZ41",
    "{",
    "日本",
    "May ",
    "31st",
    "_",
    "-",
    ".",
    ":",
];

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..12).prop_map(|pieces| pieces.concat())
}

fn messages() -> impl Strategy<Value = Value> {
    let role = proptest::sample::select(&["system", "user", "assistant"][..]);
    let message = (role, text()).prop_map(|(role, content)| json!({ "role": role, "content": content }));
    proptest::collection::vec(message, 0..6).prop_map(Value::Array)
}

/// What holds of every answer.
fn check(found: &Explanation) {
    let size = &found.size;
    assert!(size.shared <= size.previous.min(size.next), "{size:?}");
    assert!([found.fraction.lost, found.fraction.reused].iter().all(|share| (0.0..=1.0).contains(share)));
    assert_eq!(found.miss, found.place.is_some());
    assert_eq!(found.miss, found.previous.is_some() && found.next.is_some());
    assert_eq!(size.lost, if found.miss { size.previous - size.shared } else { 0 });
    assert!(!found.summary.is_empty() && (found.miss || found.advice.is_none()));
}

proptest! {
    #[test]
    fn any_two_texts(a in text(), b in text(), shared in text()) {
        let found = explain(&json!(format!("{shared}{a}")), &json!(format!("{shared}{b}"))).unwrap();
        check(&found);
        prop_assert!(found.size.shared >= shared.chars().count().min(found.size.next));
        prop_assert_eq!(found.cause == Cause::Identical, a == b);
        let appended = explain(&json!(a), &json!(format!("{a}{b}!"))).unwrap();
        prop_assert_eq!(appended.cause, Cause::Appended);
    }

    #[test]
    fn any_two_lists(a in messages(), b in messages()) {
        check(&explain(&a, &b).unwrap());
        prop_assert_eq!(explain(&a, &a).unwrap().cause, Cause::Identical);
        let mut longer = a.clone();
        longer.as_array_mut().unwrap().push(json!({ "role": "user", "content": "more" }));
        prop_assert_eq!(explain(&a, &longer).unwrap().cause, Cause::Appended);
    }
}
