//! Calls of functions, read from what models write, and conversations with calls as prompts.

use pagewise::text::{Tool, ToolCallErrorKind, ToolDelta, ToolFormat, ToolStream};
use serde_json::{Value, json};

pub(crate) fn tools() -> Value {
    let place =
        json!({ "type": "object", "properties": { "city": { "type": "string" }, "days": { "type": "integer" } } });
    json!([
        { "type": "function", "function": { "name": "weather", "description": "The weather.", "parameters": place } },
        { "type": "function", "function": { "name": "now" } },
    ])
}

/// All that was told of an answer.
#[derive(Debug, Default, PartialEq)]
struct Told {
    content: String,
    /// Names and arguments, in order.
    calls: Vec<(String, String)>,
    errors: Vec<ToolCallErrorKind>,
    ids: Vec<String>,
}

impl Told {
    fn note(&mut self, deltas: Vec<ToolDelta>) {
        for delta in deltas {
            match delta {
                ToolDelta::Content(text) => {
                    assert!(!text.is_empty());
                    self.content.push_str(&text);
                }
                ToolDelta::Call { index, id, name } => {
                    assert_eq!(index, self.ids.len(), "calls are numbered");
                    self.calls.push((name, String::new()));
                    self.ids.push(id);
                }
                ToolDelta::Arguments { index, text } => {
                    assert_eq!(index + 1, self.ids.len(), "arguments are the last call's");
                    assert!(!text.is_empty());
                    self.calls.last_mut().unwrap().1.push_str(&text);
                }
                ToolDelta::Malformed { index, raw, error } => {
                    assert!(!error.message.is_empty());
                    self.content.push_str(&raw);
                    self.errors.push(error.code);
                    if index.is_some() {
                        self.calls.pop();
                    }
                }
            }
        }
    }
}

/// Reads an answer in pieces of so many bytes, whole characters each.
fn read_in(format: ToolFormat, text: &str, size: usize) -> Told {
    let mut stream = ToolStream::new(format, Tool::list(&tools()).unwrap(), 7);
    let (mut told, mut rest) = (Told::default(), text);
    while !rest.is_empty() {
        let end = (size.min(rest.len())..=rest.len()).find(|&end| rest.is_char_boundary(end)).unwrap();
        told.note(stream.push(&rest[..end]));
        rest = &rest[end..];
    }
    told.note(stream.finish());
    assert_eq!(stream.num_complete(), told.calls.len());
    told
}

/// The same however it is cut.
fn read(format: ToolFormat, text: &str) -> Told {
    let whole = read_in(format, text, text.len().max(1));
    for size in [1, 2, 3, 5, 7, 16] {
        assert_eq!(read_in(format, text, size), whole, "{text:?} in pieces of {size}");
    }
    for (_, arguments) in &whole.calls {
        match serde_json::from_str::<Value>(arguments) {
            Ok(value) => assert!(value.is_object()),
            Err(error) => assert!(error.to_string().contains("number out of range"), "{arguments}: {error}"),
        }
    }
    whole
}

fn calls(told: &Told) -> Vec<(&str, &str)> {
    assert_eq!(told.errors, [], "{told:?}");
    told.calls.iter().map(|(name, arguments)| (name.as_str(), arguments.as_str())).collect()
}

#[test]
fn hermes() {
    let format = ToolFormat::Hermes;
    let told = read(
        format,
        "Let me see.\n\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Köln\"}}\n</tool_call>",
    );
    assert_eq!((told.content.as_str(), calls(&told)), ("Let me see.", vec![("weather", "{\"city\": \"Köln\"}")]));
    // Two, the second with the keys the other way round, without arguments, and text behind.
    let text = "<tool_call>{\"name\":\"weather\",\"arguments\":{\"days\":-1.5e3,\"city\":null}}</tool_call>\n \
                <tool_call>\n{\"arguments\": {}, \"name\": \"now\"}\n</tool_call>\n\nDone. ";
    let told = read(format, text);
    assert_eq!(told.content, "Done.");
    assert_eq!(calls(&told), [("weather", "{\"days\":-1.5e3,\"city\":null}"), ("now", "{}")]);
    let told = read(format, "<tool_call>{\"name\": \"now\"}</tool_call>");
    assert_eq!(calls(&told), [("now", "{}")], "no arguments are none");
    // Arguments as a text of JSON, brackets and quotes in texts, and a line break that JSON does not allow.
    let text = r#"<tool_call>{"name": "weather", "arguments": "{\"city\": \"a\"}"}</tool_call>"#;
    assert_eq!(calls(&read(format, text)), [("weather", r#"{"city": "a"}"#)]);
    let text = "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"}]\\\"</tool_call>\n\", \"x\": [1, {\"y\": []}]}}</tool_call>";
    let expected = "{\"city\": \"}]\\\"</tool_call>\\n\", \"x\": [1, {\"y\": []}]}";
    assert_eq!(calls(&read(format, text)), [("weather", expected)]);
    let numbers = "{\"a\": [-0, 0.50, 1e5, -97E+818994, 123456789012345678901234567890]}";
    let told = read(format, &format!("<tool_call>{{\"name\": \"weather\", \"arguments\": {numbers}}}</tool_call>"));
    assert_eq!(told.calls, [("weather".to_owned(), numbers.to_owned())], "numbers that nobody here can count with");
    // Without its end, as where the answer stops at it.
    assert_eq!(calls(&read(format, "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}")), [("now", "{}")]);
}

#[test]
fn text_is_content_as_it_is() {
    for format in ToolFormat::ALL {
        for text in [
            "",
            "Hello <tool",
            "a\n\nb \n",
            " {\"name\": \"Bob\", \"age\": 3}",
            "`` [TOOL <|python",
            "x { \"name\": ",
            "😀 ```py",
        ] {
            let told = read(format, text);
            assert_eq!((told.content.as_str(), told.calls.len(), told.errors.len()), (text, 0, 0), "{format:?}");
        }
    }
}

#[test]
fn what_is_no_call_comes_back_as_it_was_written() {
    use ToolCallErrorKind::{Incomplete, Malformed, UnknownTool};
    let cases = [
        (ToolFormat::Hermes, "<tool_call>\n{'name': 'now'}\n</tool_call>", Malformed),
        (ToolFormat::Hermes, "Well: <tool_call>{\"name\": \"nobody\", \"arguments\": {}}</tool_call>", UnknownTool),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Be", Incomplete),
        (ToolFormat::Hermes, "<tool_call>", Incomplete),
        (ToolFormat::Hermes, "<tool_call></tool_call>", Malformed),
        (ToolFormat::Hermes, "<tool_call>{\"arguments\": {}}</tool_call>", Malformed),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"now\", \"arguments\": [1]}</tool_call>", Malformed),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"now\", \"arguments\": 1}</tool_call>", Malformed),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": tru}}</tool_call>", Malformed),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 01}}</tool_call>", Malformed),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1.}}</tool_call>", Malformed),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1e}}</tool_call>", Malformed),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\" 1}}</tool_call>", Malformed),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": \"\\x\"}}</tool_call>", Malformed),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"now\", \"arguments\": {]}</tool_call>", Malformed),
        (ToolFormat::Llama3, "<|python_tag|>print(1)", Malformed),
        (ToolFormat::Llama3, "{\"name\": \"weather\", \"parameters\": {\"city\": ", Incomplete),
        (ToolFormat::Mistral, "[TOOL_CALLS][{\"name\": \"nobody\"}]", UnknownTool),
        (ToolFormat::Mistral, "[TOOL_CALLS]weather[ARGS]{\"city\": ", Incomplete),
        (ToolFormat::FunctionGemma, "<start_function_call>call:weather{city:<escape>a", Incomplete),
        (ToolFormat::FunctionGemma, "<start_function_call>weather{}<end_function_call>", Malformed),
        (ToolFormat::FunctionGemma, "<start_function_call>call:weather{city}<end_function_call>", Malformed),
        (ToolFormat::Gemma, "```tool_code\nweather(city=1 + 2)\n```", Malformed),
        (ToolFormat::Gemma, "```tool_code\nweather(city=\"a", Malformed),
        (ToolFormat::Gemma, "```tool_code\n```", Malformed),
    ];
    for (format, text, kind) in cases {
        let told = read(format, text);
        assert_eq!(
            told,
            Told { content: text.to_owned(), errors: vec![kind], ids: told.ids.clone(), ..Told::default() },
            "{text}"
        );
    }
    // The others still count.
    let bad = "<tool_call>{\"name\": 1}</tool_call>";
    let told = read(
        ToolFormat::Hermes,
        &format!("<tool_call>{{\"name\": \"now\"}}</tool_call>\n{bad}\n<tool_call>{{\"name\": \"now\"}}</tool_call>"),
    );
    assert_eq!((told.content.as_str(), told.calls.len(), told.errors.len()), (bad, 2, 1));
}

#[test]
fn what_was_delivered_is_not_reported_again() {
    use ToolCallErrorKind::{Incomplete, Malformed, UnknownTool};
    let now = "{\"name\": \"now\", \"arguments\": {}}";
    let cases = [
        (ToolFormat::Hermes, format!("<tool_call>{now}{{bad}}</tool_call>"), "{bad}</tool_call>", Malformed),
        (ToolFormat::Hermes, format!("<tool_call>{now} {{\"name\": \"no"), " {\"name\": \"no", Incomplete),
        (ToolFormat::Llama3, "{\"name\": \"now\"}; {\"name\": 1}".into(), "; {\"name\": 1}", Malformed),
        (
            ToolFormat::Mistral,
            format!("[TOOL_CALLS][{now}, {{\"name\": \"nobody\"}}]"),
            ", {\"name\": \"nobody\"}]",
            UnknownTool,
        ),
        (ToolFormat::Gemma, "```tool_code\nnow()\nnobody()\n```".into(), "\nnobody()\n```", UnknownTool),
        (ToolFormat::Gemma, "```tool_code\nnow()\nweather(1 + 2)\n```".into(), "\nweather(1 + 2)\n```", Malformed),
        (ToolFormat::Gemma, "```tool_code\nnow() and more".into(), " and more", Malformed),
        (ToolFormat::Gemma, "```tool_code\nnobody()\nnow()\n```".into(), "```tool_code\nnobody()", UnknownTool),
    ];
    for (format, text, raw, kind) in cases {
        let told = read(format, &text);
        assert_eq!(told.calls, [("now".to_owned(), "{}".to_owned())], "{text}");
        assert_eq!((told.content.as_str(), told.errors), (raw, vec![kind]), "{text}");
    }
    // Two that are none, and one between them.
    let told = read(ToolFormat::Gemma, "```tool_code\nnobody()\nnow()\nnobody(a=1); more\n```\nWell.");
    assert_eq!(told.content, "```tool_code\nnobody()\nnobody(a=1); more\n```Well.");
    assert_eq!((told.calls.len(), told.errors), (1, vec![UnknownTool, UnknownTool]));
}

/// An answer that is either calls or text.
fn either(format: ToolFormat, text: &str) -> Told {
    let read = |size: usize| {
        let mut stream = ToolStream::new(format, Tool::list(&tools()).unwrap(), 7).calls_or_text();
        let mut told = Told::default();
        text.as_bytes().chunks(size).for_each(|piece| told.note(stream.push(std::str::from_utf8(piece).unwrap())));
        told.note(stream.finish());
        told
    };
    let whole = read(text.len().max(1));
    assert_eq!(read(1), whole, "{text:?}");
    whole
}

#[test]
fn an_answer_that_is_either_calls_or_text_is_decided_by_its_beginning() {
    for format in ToolFormat::ALL {
        for text in [
            "",
            " ",
            "<",
            "{\"name\": \"we",
            "{\"name\": \"now\"}",
            "{\"name\": \"now\", \"size\": 3} \n",
            "{\"text\": \"<tool_call>[TOOL_CALLS]```tool_code\\n<start_function_call>call:now{}\"}\n\n",
            "[TOOL",
            " <tool_call>{\"name\": \"now\"}</tool_call>",
        ] {
            let told = either(format, text);
            assert_eq!(told, Told { content: text.into(), ..Told::default() }, "{format:?}: {text:?}");
        }
    }
    let now = "{\"name\": \"now\", \"arguments\": {}}";
    for (format, text) in [
        (ToolFormat::Hermes, format!("<tool_call>\n{now}\n</tool_call>")),
        (ToolFormat::Llama3, "{\"name\": \"now\", \"parameters\": {}}".into()),
        (ToolFormat::Llama3, "<|python_tag|>{\"name\": \"now\", \"parameters\": {}}".into()),
        (ToolFormat::Mistral, format!("[TOOL_CALLS][{now}]")),
        (ToolFormat::FunctionGemma, "<start_function_call>call:now{}<end_function_call>".into()),
        (ToolFormat::Gemma, "```tool_code\nnow()\n```".into()),
    ] {
        assert_eq!(calls(&either(format, &text)), [("now", "{}")], "{format:?}");
    }
}

#[test]
fn llama3() {
    let format = ToolFormat::Llama3;
    let call = "{\"name\": \"weather\", \"parameters\": {\"city\": \"Rome\"}}";
    let expected = [("weather", "{\"city\": \"Rome\"}")];
    for text in
        [call.to_owned(), format!("\n{call}"), format!("<|python_tag|>{call}"), format!("Well. <|python_tag|>{call}\n")]
    {
        assert_eq!(calls(&read(format, &text)), expected, "{text}");
    }
    let two = format!("{{\"type\": \"function\", \"name\": \"now\", \"parameters\": {{}}}}; {call}");
    assert_eq!(calls(&read(format, &two)), [("now", "{}"), expected[0]]);
    // An answer in JSON is none, even if it has a name, and what follows a call is text.
    let json = "{\"name\": \"Bob\", \"parameters\": {\"a\": 1}}";
    assert_eq!(read(format, json).content, json);
    let told = read(format, &format!("{call}\nThat is it: {{}}"));
    assert_eq!((calls(&told).len(), told.content.as_str()), (1, "That is it: {}"));
}

#[test]
fn mistral() {
    let format = ToolFormat::Mistral;
    let list = "[TOOL_CALLS] [{\"name\": \"weather\", \"arguments\": {\"days\": 2}, \"id\": \"a1b2c3d4e\"}, {\"name\": \"now\", \"arguments\": {}}]";
    assert_eq!(calls(&read(format, list)), [("weather", "{\"days\": 2}"), ("now", "{}")]);
    let named = "Yes.[TOOL_CALLS]weather[CALL_ID]123456789[ARGS]{\"days\": 2}[TOOL_CALLS]now[ARGS]{}";
    let told = read(format, named);
    assert_eq!((told.content.as_str(), calls(&told)), ("Yes.", vec![("weather", "{\"days\": 2}"), ("now", "{}")]));
    assert_eq!(calls(&read(format, "[TOOL_CALLS]now{}")), [("now", "{}")]);
    assert_eq!(calls(&read(format, "[TOOL_CALLS]{\"name\": \"now\"}")), [("now", "{}")]);
}

#[test]
fn function_gemma() {
    let format = ToolFormat::FunctionGemma;
    let text = "<start_function_call>call:weather{city:<escape>Sankt \"X\", {a}\n<escape>,days:3}<end_function_call>\
                <start_function_call>call:now{}<end_function_call>";
    assert_eq!(calls(&read(format, text)), [("weather", r#"{"city":"Sankt \"X\", {a}\n","days":3}"#), ("now", "{}")]);
    let text = "<start_function_call>call:weather{a:[1,<escape>b<escape>,{c:true}],d:{},e:[],f: bare word }<end_function_call>";
    assert_eq!(calls(&read(format, text)), [("weather", r#"{"a":[1,"b",{"c":true}],"d":{},"e":[],"f":"bare word"}"#)]);
}

#[test]
fn gemma() {
    let format = ToolFormat::Gemma;
    let text = "I look.\n```tool_code\nweather(city=\"Bern\", days=3)\n```";
    let told = read(format, text);
    assert_eq!((told.content.as_str(), calls(&told)), ("I look.", vec![("weather", r#"{"city":"Bern","days":3}"#)]));
    let text = "```tool_code\n[weather('Bern', 1_000), print(now())]\nweather(city={'a': [True, None, -1.5, (2,)]}, )\n```\nSo.";
    let told = read(format, text);
    assert_eq!(told.content, "So.");
    let expected = [
        ("weather", r#"{"city":"Bern","days":1000}"#),
        ("now", "{}"),
        ("weather", r#"{"city":{"a":[true,null,-1.5,[2]]}}"#),
    ];
    assert_eq!(calls(&told), expected);
    let text = "```tool_code\nweather(city=\"\\u00e9\\b\\u12 \\ud800 \\x\")\n```";
    assert_eq!(calls(&read(format, text)), [("weather", "{\"city\":\"é\\b\\\\u12 \u{fffd} \\\\x\"}")]);
}

#[test]
fn ids_are_unique_and_the_same_for_equal_seeds() {
    let text = "<tool_call>{\"name\": \"now\"}</tool_call><tool_call>{\"name\": \"now\"}</tool_call>";
    let ids = |seed, prompt: &[u32], choice| {
        let key = pagewise::text::call_ids_key(seed, prompt, choice);
        let mut stream = ToolStream::new(ToolFormat::Hermes, Tool::list(&tools()).unwrap(), key);
        let mut told = Told::default();
        told.note(stream.push(text));
        told.ids
    };
    let all = [ids(1, &[1, 2], 0), ids(1, &[1, 2], 1), ids(2, &[1, 2], 0), ids(1, &[1, 2, 3], 0)].concat();
    assert!(
        all.iter()
            .all(|id| id.len() == 29 && id.starts_with("call_") && id[5..].bytes().all(|c| c.is_ascii_alphanumeric()))
    );
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 8, "{all:?}");
    assert_eq!(ids(1, &[1, 2], 0), all[..2]);
}

#[test]
fn hostile_answers_end() {
    let deep = format!("<tool_call>{{\"name\": \"now\", \"arguments\": {}", "{\"a\": ".repeat(10_000));
    assert_eq!(read_in(ToolFormat::Hermes, &deep, 4096).errors, [ToolCallErrorKind::Malformed]);
    let deep = format!("<start_function_call>call:now{{a:{}", "[".repeat(10_000));
    assert_eq!(read_in(ToolFormat::FunctionGemma, &deep, 4096).errors, [ToolCallErrorKind::Malformed]);
    let deep = format!("```tool_code\nnow(a={}", "[".repeat(10_000));
    assert_eq!(read_in(ToolFormat::Gemma, &deep, 4096).errors, [ToolCallErrorKind::Malformed]);
    let long = format!("<tool_call>{{\"{}", "n".repeat(100_000));
    assert_eq!(read_in(ToolFormat::Hermes, &long, 4096).errors, [ToolCallErrorKind::Malformed]);
}
