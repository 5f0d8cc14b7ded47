//! Answers that have to be calls: whatever the model would draw, what it writes can be read back.

use pagewise::engine::{FinishReason, Request};
use pagewise::text::{Constraint, Tool, ToolChoice, ToolDelta, ToolFormat, ToolGrammar, ToolStream};
use serde_json::{Value, json};

use super::fake::{Setup, request};

fn tools(is_strict: bool) -> Vec<Tool> {
    let properties =
        json!({ "city": { "enum": ["Bern", "Rome"] }, "days": { "type": "integer", "minimum": 0, "maximum": 9 } });
    let parameters =
        json!({ "type": "object", "properties": properties, "required": ["city"], "additionalProperties": false });
    let weather = json!({ "name": "weather", "parameters": parameters, "strict": is_strict });
    let list = [weather, json!({ "name": "now" })].map(|function| json!({ "type": "function", "function": function }));
    Tool::list(&Value::from(list.to_vec())).unwrap()
}

/// The text of an answer drawn by a grammar, and the calls that are read in it.
fn answer(format: ToolFormat, choice: ToolChoice, is_parallel: bool, salt: u32) -> (FinishReason, String, Vec<String>) {
    let tools = tools(choice == ToolChoice::Auto);
    let grammar = ToolGrammar::new(format, &tools, choice, is_parallel, |_| None).unwrap().unwrap();
    let asked = Request { constraint: Some(grammar.into()), ..request(20, 160, salt) };
    let answer = Setup::default().build().answer(&asked);
    assert_eq!(answer.error, None, "{format:?}");
    let (reason, ..) = answer.end.unwrap();
    let mut stream = ToolStream::new(format, tools, 0);
    let (mut names, mut is_broken) = (Vec::new(), false);
    for delta in stream.push(&answer.text).into_iter().chain(stream.finish()) {
        match delta {
            ToolDelta::Call { name, .. } => names.push(name),
            ToolDelta::Malformed { .. } => is_broken = true,
            ToolDelta::Content(text) => {
                assert!(choice == ToolChoice::Auto, "{format:?}: {text:?} of {:?}", answer.text)
            }
            ToolDelta::Arguments { .. } => {}
        }
    }
    assert!(!is_broken || reason == FinishReason::Length, "{format:?}: {:?}", answer.text);
    (reason, answer.text, names)
}

#[test]
fn required_and_named_calls_can_be_read_back() {
    for format in ToolFormat::ALL {
        let mut num_whole = 0;
        for salt in 0..12 {
            let (reason, text, names) = answer(format, ToolChoice::Required, true, salt);
            if reason == FinishReason::Stop {
                num_whole += 1;
                assert!(!names.is_empty(), "{format:?}: {text}");
            }
            let (reason, text, names) = answer(format, ToolChoice::Only(1), false, salt);
            assert!(names == ["now"] || reason == FinishReason::Length, "{format:?}: {text}");
        }
        assert!(num_whole > 0, "{format:?}: every answer was cut");
    }
}

#[test]
fn strict_arguments_keep_to_their_schema_where_the_model_is_free() {
    for format in ToolFormat::ALL {
        for salt in 0..12 {
            answer(format, ToolChoice::Auto, true, salt);
        }
    }
}

#[test]
fn answers_are_calls_or_the_text_that_was_asked_for() {
    let pattern = "(red|green|blue)( (red|green|blue)){0,3}";
    for format in ToolFormat::ALL {
        let (mut num_calls, mut num_texts) = (0, 0);
        for salt in 0..24 {
            let tools = tools(true);
            let grammar = ToolGrammar::new(format, &tools, ToolChoice::Required, false, |_| None).unwrap().unwrap();
            let text = Constraint::Regex { pattern: pattern.to_owned(), field: "regex".to_owned() };
            let asked = Request { constraint: Some(grammar.or(text)), ..request(20, 200, salt) };
            let answer = Setup::default().build().answer(&asked);
            assert_eq!(answer.error, None, "{format:?}");
            let (reason, ..) = answer.end.unwrap();
            let mut stream = ToolStream::new(format, tools, 0).calls_or_text();
            let (mut content, mut arguments, mut name) = (String::new(), String::new(), None);
            for delta in stream.push(&answer.text).into_iter().chain(stream.finish()) {
                match delta {
                    ToolDelta::Content(more) => content += &more,
                    ToolDelta::Call { name: called, .. } => name = Some(called),
                    ToolDelta::Arguments { text, .. } => arguments += &text,
                    ToolDelta::Malformed { .. } => assert_eq!(reason, FinishReason::Length, "{}", answer.text),
                }
            }
            if reason == FinishReason::Length {
                continue;
            }
            match name {
                None => {
                    num_texts += 1;
                    assert_eq!(content, answer.text);
                    assert!(content.split(' ').all(|word| ["red", "green", "blue"].contains(&word)), "{content}");
                }
                Some(name) => {
                    num_calls += 1;
                    let arguments: Value = serde_json::from_str(&arguments).unwrap();
                    let is_valid = name == "now" || arguments["city"] == "Bern" || arguments["city"] == "Rome";
                    assert!(content.is_empty() && is_valid, "{}", answer.text);
                }
            }
        }
        assert!(num_calls > 0 && num_texts > 0, "{format:?}: {num_calls} and {num_texts}");
    }
}
