//! Answers that have to be something: what is drawn, what is taken without drawing, and how they end.

use pagewise::engine::{Event, FinishReason, Request};
use pagewise::text::{Constraint, Schema};
use serde_json::Value;

use super::fake::{END, Runner, Setup, bytes, request};

/// A record with a choice, a number and a list.
const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "kind": {"enum": ["fruit", "vegetable"]},
        "num_pieces": {"type": "integer", "minimum": 0, "maximum": 99},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 2}
    },
    "required": ["kind", "num_pieces", "tags"],
    "additionalProperties": false
}"#;

fn json_schema(json: &str) -> Constraint {
    let [name, field] = ["answer", "response_format.json_schema.schema"].map(str::to_owned);
    Constraint::JsonSchema(Schema { name, json: json.to_owned(), field })
}

fn regex(pattern: &str) -> Constraint {
    Constraint::Regex { pattern: pattern.to_owned(), field: "regex".to_owned() }
}

fn lark(grammar: &str) -> Constraint {
    Constraint::Lark { grammar: grammar.to_owned(), schemas: Vec::new(), field: "grammar".to_owned() }
}

fn constrained(constraint: Constraint, max_tokens: usize, salt: u32) -> Request {
    Request { constraint: Some(constraint), ..request(20, max_tokens, salt) }
}

fn setup(jumps_ahead: bool) -> Runner {
    let mut setup = Setup::default();
    setup.options.jumps_ahead = jumps_ahead;
    setup.build()
}

/// Whether it is what [`SCHEMA`] asks.
fn is_valid(text: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(text) else { return false };
    let tags = fields["tags"].as_array();
    let is_tag = |tag: &Value| tag.as_str().is_some_and(|tag| tag.chars().count() <= 5);
    fields.keys().eq(["kind", "num_pieces", "tags"])
        && ["fruit", "vegetable"].contains(&fields["kind"].as_str().unwrap_or_default())
        && fields["num_pieces"].as_u64().is_some_and(|num| num <= 99)
        && tags.is_some_and(|tags| tags.len() <= 2 && tags.iter().all(is_tag))
}

#[test]
fn answers_are_valid_or_cut() {
    let (mut num_whole, mut num_cut) = (0, 0);
    for salt in 0..40 {
        let answer = setup(true).answer(&constrained(json_schema(SCHEMA), 100, salt));
        let (reason, usage, _) = answer.end.unwrap();
        assert_eq!(usage.completion_tokens, answer.ids.len(), "forced tokens count");
        match reason {
            FinishReason::Stop => assert!(is_valid(&answer.text), "{}", answer.text),
            FinishReason::Length => assert_eq!(answer.ids.len(), 100),
        }
        let counter = if reason == FinishReason::Stop { &mut num_whole } else { &mut num_cut };
        *counter += 1;
    }
    assert!(num_whole > 30, "{num_whole} whole and {num_cut} cut");
    let answer = setup(true).answer(&constrained(json_schema(SCHEMA), 10, 0));
    assert_eq!((answer.reason(), answer.ids.len()), (Some(FinishReason::Length), 10), "cut within what is forced");
    assert!(answer.text.starts_with(r#"{"kind": "#));
}

#[test]
fn what_is_forced_is_computed_in_few_steps_and_changes_nothing() {
    let (mut num_drawn, mut num_steps) = (0, [0, 0]);
    for salt in 0..20 {
        for temperature in [0.0, 1.0] {
            let mut request = constrained(json_schema(SCHEMA), 120, salt);
            request.sampling.temperature = temperature;
            let [ahead, plain] = [true, false].map(|jumps_ahead| {
                let mut runner = setup(jumps_ahead);
                let answer = runner.answer(&request);
                num_steps[usize::from(jumps_ahead)] += runner.batches.borrow().len();
                (answer.ids, answer.text, answer.end.map(|(reason, usage, _)| (reason, usage)))
            });
            assert_eq!(ahead, plain);
            num_drawn += ahead.0.len();
        }
    }
    assert!(num_steps[0] >= num_drawn, "without it every token takes a step");
    assert!(num_steps[1] * 3 < num_steps[0] * 2, "{num_steps:?}");
}

#[test]
fn answers_are_the_same_whatever_happens_to_their_blocks() {
    let requests: Vec<_> = (0..6).map(|salt| constrained(json_schema(SCHEMA), 100, salt)).collect();
    let alone: Vec<_> = requests.iter().map(|request| setup(true).answer(request)).collect();
    for caches in [false, true] {
        let mut setup = Setup::default();
        // Room for two of them: the rest is preempted again and again.
        setup.groups[0].num_blocks = 14;
        let mut runner = setup.build();
        let make = |request: &Request| {
            let mut request = request.clone();
            request.cache.enabled = caches;
            request
        };
        let ids: Vec<_> = requests.iter().map(|request| runner.submit(&make(request))).collect();
        runner.finish();
        assert!(runner.engine.metrics().num_preemptions > 0);
        for (id, alone) in ids.iter().zip(&alone) {
            assert_eq!(runner.answers[id].text, alone.text);
            assert_eq!(runner.answers[id].ids, alone.ids);
        }
    }
    // Again, with everything cached that the first time computed.
    let mut runner = setup(true);
    let first = runner.answer(&requests[0]);
    let second = runner.answer(&requests[0]);
    assert_eq!(first.ids, second.ids);
    assert!(second.cache.read_tokens > 0);
}

#[test]
fn a_failed_step_does_not_move_the_grammar() {
    // The other request's failure makes a step in flight void; it is computed again.
    let mut runner = setup(true);
    let alone = setup(true).answer(&constrained(json_schema(SCHEMA), 100, 1));
    let id = runner.submit(&constrained(json_schema(SCHEMA), 100, 1));
    for _ in 0..5 {
        assert!(runner.drop_step(), "a step waits for the device");
        runner.step();
    }
    runner.finish();
    assert_eq!(runner.answers[&id].text, alone.text);
}

#[test]
fn choices_differ_and_each_is_valid() {
    let mut runner = setup(true);
    let ids = runner.submit_choices(&constrained(json_schema(SCHEMA), 200, 3), 4);
    runner.finish();
    let texts: std::collections::BTreeSet<_> = ids.iter().map(|id| runner.answers[id].text.clone()).collect();
    assert!(texts.len() > 1);
    for id in ids {
        let answer = &runner.answers[&id];
        assert!(answer.reason() == Some(FinishReason::Length) || is_valid(&answer.text), "{}", answer.text);
    }
}

#[test]
fn an_end_is_drawn_only_where_the_grammar_accepts() {
    let mut lengths = std::collections::BTreeSet::new();
    for salt in 0..30 {
        let answer = setup(true).answer(&constrained(regex("(ab)+"), 40, salt));
        let text = answer.text.clone();
        assert!(
            answer.reason() == Some(FinishReason::Length) || !text.is_empty() && text.len().is_multiple_of(2),
            "{text}"
        );
        assert!(text.as_bytes().chunks(2).all(|pair| b"ab".starts_with(pair)), "{text}");
        let has_end = answer.ids.contains(&END);
        assert_eq!(has_end, answer.reason() == Some(FinishReason::Stop), "it could always go on");
        lengths.insert(text.len());
    }
    assert!(lengths.len() > 2, "{lengths:?}");
}

#[test]
fn where_nothing_may_follow_the_answer_ends_without_a_draw() {
    let answer = setup(true).answer(&constrained(regex("yes"), 40, 0));
    assert_eq!((answer.text.as_str(), answer.reason()), ("yes", Some(FinishReason::Stop)));
    assert_eq!(answer.ids, bytes("yes"), "no end was needed");
    let answer = setup(true).answer(&constrained(regex("yes"), 3, 0));
    assert_eq!(answer.reason(), Some(FinishReason::Stop), "complete with the last token that it may have");
    let request = Request { ignore_end_of_generation: true, ..constrained(regex("(ab)+"), 200, 0) };
    let answer = setup(true).answer(&request);
    assert_eq!(answer.reason(), Some(FinishReason::Stop), "whoever ignores ends cannot go on behind a complete answer");
}

#[test]
fn rules_of_stopping_and_penalties_still_hold() {
    let with = |change: fn(&mut Request)| {
        let mut request = constrained(lark(r#"start: "abcabc" /[xyz]{30}/"#), 100, 5);
        change(&mut request);
        setup(true).answer(&request)
    };
    let answer = with(|request| request.stop = vec!["ca".into()]);
    assert_eq!((answer.text.as_str(), answer.reason()), ("ab", Some(FinishReason::Stop)), "within what is forced");
    assert_eq!(answer.ids, bytes("abca"));
    let answer = with(|request| request.stop = vec!["no such".into()]);
    assert_eq!((answer.text.len(), answer.reason()), (36, Some(FinishReason::Stop)), "what was held back is shown");
    let answer = with(|request| request.sampling.frequency_penalty = 1.0);
    assert_eq!(answer.text.len(), 36);
    let answer = with(|request| request.logit_bias = vec![(u32::from(b'x'), -100.0)]);
    assert_eq!(answer.text.len(), 36, "a bias does not make a token impossible that is needed");
    let answer = with(|request| request.stop_token_ids = vec![u32::from(b'b')]);
    assert_eq!(answer.reason(), Some(FinishReason::Stop));
}

#[test]
fn one_step_is_in_flight_for_a_constrained_answer_and_others_run_ahead() {
    let mut setup = Setup::default();
    setup.options.max_steps_ahead = Some(3);
    let mut runner = setup.build();
    let plain = runner.submit(&request(20, 60, 7));
    let guided = runner.submit(&constrained(json_schema(SCHEMA), 60, 1));
    runner.finish();
    let alone = self::setup(true);
    let mut alone = alone;
    assert_eq!(runner.answers[&guided].text, alone.answer(&constrained(json_schema(SCHEMA), 60, 1)).text);
    assert_eq!(runner.answers[&plain].ids.len(), 60);
    assert!(runner.engine.metrics().num_steps_ahead > 0);
}

#[test]
fn leading_spaces_are_what_the_grammar_says() {
    // This tokenizer puts a space before a text, and takes one away again.
    let answer = setup(true).answer(&constrained(regex(" one two"), 40, 0));
    assert_eq!(answer.text, " one two");
}

#[test]
fn cancelling_leaves_nothing() {
    let mut runner = setup(true);
    let id = runner.submit(&constrained(json_schema(SCHEMA), 100, 0));
    runner.step();
    assert!(runner.engine.cancel(id));
    runner.finish();
}

#[test]
fn errors_name_the_place() {
    let refusal = |constraint| {
        let mut runner = setup(true);
        let error = runner.engine.submit(constrained(constraint, 40, 0), 0.0).unwrap_err();
        assert_eq!(error.code(), "bad_request");
        error.to_string()
    };
    let schema = |json| refusal(json_schema(json));
    let here = "response_format.json_schema.schema";
    for (json, place, what) in [
        (r#"{"properties": {"a": {"pattern": "("}}}"#, "/properties/a/pattern", "("),
        (r#"{"properties": {"a": {"type": "string", "format": "colour"}}}"#, "/properties/a/format", "date-time"),
        (r#"{"properties": {"a": {"not": {}}}}"#, "/properties/a", "not is not supported"),
        (r#"{"items": {"uniqueItems": true}}"#, "/items", "uniqueItems is not supported"),
        (r#"{"x-guidance": {"lenient": true}}"#, "", "x-guidance is not supported"),
        (r##"{"items": {"$ref": "#/$defs/none"}}"##, "/items/$ref", "is not there"),
        (r#"{"items": {"oneOf": [{"type": "string"}, {"type": ["string", "null"]}]}}"#, "/items", "oneOf"),
        (r#"{"anyOf": [{"properties": 3}]}"#, "/anyOf/0", "properties"),
        (r#"{"maxItems": 1000000}"#, "/maxItems", "100000"),
        (r#"{"type": "#, "", "EOF"),
        ("3", "", "an object or a boolean"),
    ] {
        let error = schema(json);
        assert!(error.starts_with(&format!("{here}{place}: ")), "{error}");
        assert!(error.contains(what), "{error}");
    }
    assert_eq!(refusal(regex("a(")), "regex: unclosed group, at character 2");
    assert_eq!(refusal(regex("a\n(")), "regex: unclosed group");
    assert!(refusal(lark("start: missing")).starts_with("grammar: "));
    assert!(refusal(lark("")).starts_with("grammar: "));
    for nothing in [regex(r"[^\s\S]"), lark("start: start")] {
        assert!(refusal(nothing).ends_with(": it allows no text, not even an empty one"));
    }
    let both = Request { allowed_token_ids: Some(vec![97]), ..constrained(regex("a"), 4, 0) };
    assert!(setup(true).engine.submit(both, 0.0).unwrap_err().to_string().contains("allowed_token_ids"));
}

#[test]
fn a_dead_end_is_an_error_and_no_complete_answer() {
    let endless =
        r##"{"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1, "$defs": {"a": {"$ref": "#/$defs/a"}}}"##;
    for constraint in [lark("start: \"x\" a\na: a"), lark("start: \"x\" B\nB: /[^\\s\\S]/"), json_schema(endless)] {
        let answer = setup(true).answer(&constrained(constraint, 40, 0));
        let error = answer.error.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(error.contains("cannot go on"), "{:?}: {error}", answer.text);
        assert_eq!(answer.reason(), None);
    }
}

#[test]
fn schemas_within_a_grammar_are_checked_and_named() {
    let constraint = |json: &str| {
        let schema = Schema { name: "args".into(), json: json.into(), field: "tools[0].function.parameters".into() };
        let (grammar, field) = (r#"start: "<call>" @args "</call>""#.into(), "tool_choice".into());
        Constraint::Lark { grammar, schemas: vec![schema], field }
    };
    let json = r#"{"type": "object", "properties": {"city": {"enum": ["Rome"]}}, "required": ["city"], "additionalProperties": false}"#;
    let answer = setup(true).answer(&constrained(constraint(json), 100, 0));
    assert_eq!(answer.text, r#"<call>{"city": "Rome"}</call>"#);
    assert_eq!(answer.reason(), Some(FinishReason::Stop));
    let mut runner = setup(true);
    let bad = constrained(constraint(r#"{"properties": {"a": {"not": {}}}}"#), 10, 0);
    let error = runner.engine.submit(bad, 0.0).unwrap_err().to_string();
    assert!(error.starts_with("tools[0].function.parameters/properties/a: "), "{error}");
}

#[test]
fn hostile_constraints_are_refused_at_once() {
    let refused = |constraint| setup(true).engine.submit(constrained(constraint, 40, 0), 0.0).unwrap_err().to_string();
    let nested = |depth: usize| format!("{}{{}}{}", r#"{"items":"#.repeat(depth), "}".repeat(depth));
    assert!(refused(json_schema(&nested(100))).contains("deep"));
    let chain: Vec<_> =
        (0..500).map(|i| format!(r##""d{i}": {{"items": {{"$ref": "#/$defs/d{}"}}}}"##, i + 1)).collect();
    let chain = format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d500": {{}}}}}}"##, chain.join(","));
    assert!(refused(json_schema(&chain)).contains("deep"));
    assert!(refused(json_schema(&" ".repeat(300_000))).contains("bytes"));
    let properties: Vec<_> = (0..1001).map(|i| format!(r#""p{i}": {{}}"#)).collect();
    let many = refused(json_schema(&format!(r#"{{"properties": {{{}}}}}"#, properties.join(","))));
    assert!(many.contains("schema/properties: 1001 properties asked, at most 1000"), "{many}");
    assert!(refused(regex(&"(".repeat(5000))).contains("deep"));
    assert!(refused(lark(&format!("start: {}", "(".repeat(5000)))).contains("deep"));
    // What multiplies out.
    let wide = |key: &str| {
        let options: Vec<_> = (0..40).map(|i| format!(r#"{{"properties": {{"a{i}": {{"const": {i}}}}}}}"#)).collect();
        format!(r#"{{"{key}": [{}]}}"#, options.join(","))
    };
    let all: Vec<_> = (0..10).map(|_| wide("anyOf")).collect();
    assert!(refused(json_schema(&format!(r#"{{"allOf": [{}]}}"#, all.join(",")))).contains("too large"));
}

#[test]
fn what_takes_too_much_ends_its_own_answer_only() {
    let ambiguous = "start: a\n a: a a | /[a-z]/ | /[a-m]/ |";
    // Which of the last 90 characters were an `a` is a state each.
    let wide = "(.*a.{90})+z";
    for constraint in [lark(ambiguous), regex(wide), regex("((a{1,1000}b){1,1000}c){1,1000}(d|e){5000}")] {
        let mut runner = setup(true);
        let id = runner.submit(&constrained(constraint, 200, 0));
        let other = runner.submit(&request(20, 60, 7));
        runner.finish();
        assert_eq!(runner.answers[&other].reason(), Some(FinishReason::Length), "others go on");
        let answer = &runner.answers[&id];
        match &answer.error {
            Some(error) => assert_eq!(error.code(), "bad_request"),
            None => assert!(answer.reason().is_some()),
        }
    }
}

#[test]
fn a_compiled_constraint_is_used_again() {
    // As many as are kept, and one more; answers do not depend on it.
    let mut runner = setup(true);
    for round in 0..2 {
        for i in 0..10 {
            let answer = runner.answer(&constrained(regex(&format!("x{i}")), 10, round));
            assert_eq!(answer.text, format!("x{i}"));
        }
    }
    assert!(runner.step().iter().all(|event| !matches!(event, Event::Failed { .. })));
}
