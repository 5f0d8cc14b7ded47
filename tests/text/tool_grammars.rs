//! What answers with calls may look like: texts that a grammar takes and those that it does not, in every format, with marks
//! that are control tokens and marks that are text.

use std::rc::Rc;

use pagewise::text::{Constraint, Schema, Tool, ToolChoice, ToolDelta, ToolFormat, ToolGrammar, ToolStream};
use pagewise_grammar::{Compile, GrammarCompiler, Match, Vocabulary};
use serde_json::{Value, json};

/// Ids 0 to 255 are bytes, then one that ends an answer, then the marks.
const END: u32 = 256;
const MARKS: [&str; 7] = [
    "<tool_call>",
    "</tool_call>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
    "<start_function_call>",
    "<end_function_call>",
    "<escape>",
];

fn compiler() -> GrammarCompiler {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let marks = MARKS.iter().map(|mark| mark.as_bytes().to_vec());
    let words = bytes.chain([b"</s>".to_vec()]).chain(marks).collect();
    let special = (END..END + 8).collect();
    let vocabulary = Vocabulary { words, special, end_of_generation: vec![END] };
    GrammarCompiler::new(vocabulary, Rc::new(|text: &str| text.bytes().map(u32::from).collect())).unwrap()
}

fn control(mark: &str) -> Option<u32> {
    (257..).zip(MARKS).find(|(_, known)| *known == mark).map(|(id, _)| id)
}

/// The tokens of a text.
fn tokens(text: &str, has_marks: bool) -> Vec<u32> {
    let (mut rest, mut ids) = (text, Vec::new());
    while !rest.is_empty() {
        let mark = MARKS.iter().find(|mark| has_marks && rest.starts_with(**mark));
        let (id, len) = mark.map_or((u32::from(rest.as_bytes()[0]), 1), |mark| (control(mark).unwrap(), mark.len()));
        ids.push(id);
        rest = match rest.get(len..) {
            Some(rest) => rest,
            None => {
                // Within a character.
                let len = rest.chars().next().unwrap().len_utf8();
                ids.extend(rest.as_bytes()[1..len].iter().map(|&byte| u32::from(byte)));
                &rest[len..]
            }
        };
    }
    ids
}

fn allows(matcher: &mut dyn Match, id: u32) -> bool {
    matcher.mask().unwrap().get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 != 0)
}

/// Whether a constraint takes a text as a whole answer, each token only if the mask allows it.
fn takes(start: &dyn Match, ids: &[u32]) -> bool {
    let mut matcher = start.fork();
    let mut is_complete = false;
    for &id in ids {
        if is_complete || !allows(&mut *matcher, id) {
            return false;
        }
        is_complete = matcher.accept(id).unwrap();
    }
    is_complete || { matcher.mask().unwrap().is_empty() } || allows(&mut *matcher, END)
}

pub(crate) fn tools(parameters: Option<Value>, is_strict: bool) -> Vec<Tool> {
    let other = Tool { name: "other".into(), parameters: None, is_strict: false };
    vec![Tool { name: "f".into(), parameters, is_strict }, other]
}

/// A compiled grammar, with marks as control tokens and as text.
pub(crate) struct Compiled {
    format: ToolFormat,
    tools: Vec<Tool>,
    of: [(Box<dyn Match>, bool); 2],
}

pub(crate) fn compile(format: ToolFormat, tools: Vec<Tool>, choice: ToolChoice, text: Option<&Constraint>) -> Compiled {
    try_compile(format, tools, choice, text).unwrap_or_else(|error| panic!("{format:?}: {error}"))
}

pub(crate) fn try_compile(
    format: ToolFormat,
    tools: Vec<Tool>,
    choice: ToolChoice,
    text: Option<&Constraint>,
) -> Result<Compiled, String> {
    let of = |has_marks: bool| {
        let grammar = ToolGrammar::new(format, &tools, choice, true, |mark| control(mark).filter(|_| has_marks))
            .map_err(|error| {
                assert_eq!(error.code(), "bad_request");
                error.to_string()
            })?;
        let grammar = grammar.unwrap();
        let constraint = match text {
            Some(text) => grammar.or(text.clone()),
            None => grammar.into(),
        };
        let matcher = compiler().compile(&constraint).map_err(|error| format!("{error}\n{constraint:#?}"))?;
        Ok::<_, String>((matcher, has_marks))
    };
    let of = [of(true)?, of(false)?];
    Ok(Compiled { format, tools, of })
}

impl Compiled {
    fn takes(&self, text: &str) -> bool {
        let [with, without] = self.of.each_ref().map(|(start, has_marks)| takes(&**start, &tokens(text, *has_marks)));
        assert_eq!(
            with, without,
            "{:?}: {text:?} with marks that are tokens, and with marks that are text",
            self.format
        );
        with
    }

    /// Whether it takes a call of `f`; what it takes is read back as the same.
    pub(crate) fn takes_call(&self, arguments: &Value) -> bool {
        let text = written(self.format, "f", arguments);
        let takes = self.takes(&text);
        if takes {
            assert_eq!(read(self.format, &self.tools, &text), [("f".to_owned(), arguments.clone())], "{text}");
        }
        takes
    }
}

/// JSON with a space behind each comma and colon.
fn spaced(value: &Value) -> String {
    let all = |texts: Vec<String>| texts.join(", ");
    match value {
        Value::Array(values) => format!("[{}]", all(values.iter().map(spaced).collect())),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), spaced(value));
            format!("{{{}}}", all(fields.iter().map(field).collect()))
        }
        other => other.to_string(),
    }
}

/// A call as grammars have it.
fn written(format: ToolFormat, name: &str, arguments: &Value) -> String {
    let json = |key: &str| format!("{{\"name\": \"{name}\", \"{key}\": {}}}", spaced(arguments));
    match format {
        ToolFormat::Hermes => format!("<tool_call>\n{}\n</tool_call>", json("arguments")),
        ToolFormat::Llama3 => json("parameters"),
        ToolFormat::Mistral => format!("[TOOL_CALLS][{}]", json("arguments")),
        ToolFormat::FunctionGemma => {
            format!("<start_function_call>call:{name}{}<end_function_call>", marked(arguments))
        }
        ToolFormat::Gemma => {
            let fields = arguments.as_object().unwrap().iter();
            let fields = fields.map(|(key, value)| format!("{key}={}", python(value))).collect::<Vec<_>>();
            format!("```tool_code\n{name}({})\n```", fields.join(", "))
        }
    }
}

fn python(value: &Value) -> String {
    let all = |texts: Vec<String>| texts.join(", ");
    match value {
        Value::Null => "None".into(),
        Value::Bool(is) => if *is { "True" } else { "False" }.into(),
        Value::Array(values) => format!("[{}]", all(values.iter().map(python).collect())),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), python(value));
            format!("{{{}}}", all(fields.iter().map(field).collect()))
        }
        other => other.to_string(),
    }
}

fn marked(value: &Value) -> String {
    let all = |texts: Vec<String>| texts.join(",");
    match value {
        Value::String(text) => format!("<escape>{text}<escape>"),
        Value::Array(values) => format!("[{}]", all(values.iter().map(marked).collect())),
        Value::Object(fields) => {
            format!("{{{}}}", all(fields.iter().map(|(key, value)| format!("{key}:{}", marked(value))).collect()))
        }
        other => other.to_string(),
    }
}

/// The calls of an answer.
fn read(format: ToolFormat, tools: &[Tool], text: &str) -> Vec<(String, Value)> {
    let mut stream = ToolStream::new(format, tools.to_vec(), 0).calls_or_text();
    let mut calls: Vec<(String, String)> = Vec::new();
    for delta in stream.push(text).into_iter().chain(stream.finish()) {
        match delta {
            ToolDelta::Call { name, .. } => calls.push((name, String::new())),
            ToolDelta::Arguments { text, .. } => calls.last_mut().unwrap().1.push_str(&text),
            ToolDelta::Content(_) => {}
            ToolDelta::Malformed { raw, error, .. } => panic!("{raw}: {error:?}"),
        }
    }
    calls.into_iter().map(|(name, arguments)| (name, serde_json::from_str(&arguments).unwrap())).collect()
}

/// Nearly everything that JSON has.
pub(crate) fn anything() -> Value {
    json!({ "a": "text, \"quoted\"", "b_2": [1, -2.5, true, null, [], {}], "c": { "d": { "e": "" } }, "f": false })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
        "required": ["city"],
        "additionalProperties": false,
    })
}

#[test]
fn arguments_of_functions_that_are_not_strict_are_any_object() {
    for format in ToolFormat::ALL {
        for parameters in [None, Some(json!({})), Some(schema()), Some(json!({ "type": "object", "not": {} }))] {
            let grammar = compile(format, tools(parameters, false), ToolChoice::Required, None);
            for arguments in [json!({}), json!({ "city": 1 }), anything()] {
                assert!(grammar.takes_call(&arguments), "{format:?}: {arguments}");
            }
            assert!(grammar.takes(&written(format, "other", &anything())), "{format:?}");
            assert!(!grammar.takes(&written(format, "nobody", &json!({}))), "{format:?}");
            assert!(!grammar.takes("Hello"), "{format:?}");
        }
        let only = compile(format, tools(None, false), ToolChoice::Only(0), None);
        assert!(!only.takes(&written(format, "other", &json!({}))), "{format:?}");
    }
    for format in [ToolFormat::Hermes, ToolFormat::Llama3, ToolFormat::Mistral] {
        let grammar = compile(format, tools(None, false), ToolChoice::Required, None);
        for arguments in [json!([]), json!(1), json!("{}"), json!(null)] {
            assert!(!grammar.takes(&written(format, "f", &arguments)), "{format:?}: {arguments}");
        }
    }
}

#[test]
fn arguments_of_strict_functions_keep_to_their_schema() {
    for format in ToolFormat::ALL {
        let grammar = compile(format, tools(Some(schema()), true), ToolChoice::Required, None);
        for (arguments, is_allowed) in [
            (json!({ "city": "Bern" }), true),
            (json!({ "city": "", "days": -3 }), true),
            (json!({}), false),
            (json!({ "days": 3 }), false),
            (json!({ "city": 3 }), false),
            (json!({ "city": "Bern", "days": 1.5 }), false),
            (json!({ "city": "Bern", "x": 1 }), false),
        ] {
            assert_eq!(grammar.takes_call(&arguments), is_allowed, "{format:?}: {arguments}");
        }
        assert!(grammar.takes(&written(format, "other", &anything())), "{format:?}: the other is not strict");
        // What says nothing allows any object, and what is not there no arguments.
        for open in [json!({}), json!({ "type": "object" }), json!({ "type": ["object", "null"] })] {
            let any = compile(format, tools(Some(open), true), ToolChoice::Required, None);
            assert!(any.takes_call(&anything()) && any.takes_call(&json!({})), "{format:?}");
            assert!(!any.takes(&written(format, "f", &json!({})).replace("{}", "[]").replace("f()", "f([])")));
        }
        let none = compile(format, tools(None, true), ToolChoice::Required, None);
        assert!(none.takes_call(&json!({})) && !none.takes_call(&json!({ "a": 1 })), "{format:?}");
        let wrong = try_compile(format, tools(Some(json!({ "type": "string" })), true), ToolChoice::Auto, None);
        let error = wrong.err().unwrap();
        assert!(error.contains("tools[0].function.parameters/type: arguments are an object"), "{format:?}: {error}");
    }
}

#[test]
fn text_may_come_before_strict_calls_where_the_model_is_free() {
    for format in ToolFormat::ALL {
        let grammar = compile(format, tools(Some(schema()), true), ToolChoice::Auto, None);
        let call = written(format, "f", &json!({ "city": "Bern" }));
        for (text, is_allowed) in [
            ("Hello.\n".to_owned(), true),
            (call.clone(), true),
            (written(format, "f", &json!({})), false),
            (format!("I look.\n{call}"), true),
            ("a < b <tool <start [TOOL ``` {".to_owned(), true),
        ] {
            assert_eq!(grammar.takes(&text), is_allowed, "{format:?}: {text}");
        }
    }
}

fn text_constraints() -> [(Constraint, &'static [&'static str], &'static [&'static str]); 4] {
    let [name, field] = ["answer", "response_format.json_schema.schema"].map(str::to_owned);
    let json = json!({ "type": "object", "properties": { "name": { "type": "string" }, "year": { "type": "integer" } },
        "required": ["name"], "additionalProperties": false })
    .to_string();
    let schema = Constraint::JsonSchema(Schema { name, json, field });
    let regex = |pattern: &str| Constraint::Regex { pattern: pattern.to_owned(), field: "regex".to_owned() };
    let lark = Constraint::Lark {
        grammar: "start: item+\nitem: \"<\" /[a-z_]+/ \">\" | \"`\" | \"[\" /[A-Z]+/ | \"{\" /[a-z\"]+/ \"}\"\n"
            .to_owned(),
        schemas: Vec::new(),
        field: "grammar".to_owned(),
    };
    [
        (
            schema,
            &["{\"name\": \"f\"}", "{\"name\": \"<tool_call>\", \"year\": 3}"],
            &["{}", "Hello", "{\"title\": 1}"],
        ),
        (regex("yes|no|"), &["yes", "no", ""], &["maybe", "yes "]),
        (regex("(.|\\n)*"), &["anything", "<tool", "{\"name\": \"f\"", "\n"], &[]),
        (lark, &["<t>", "<tool_>", "```", "[TOOL", "{name}", "{\"name\"}", "<tool_call><a>"], &["", "<>", "`x"]),
    ]
}

#[test]
fn an_answer_is_calls_or_the_text_that_was_asked_for() {
    for format in ToolFormat::ALL {
        for is_strict in [false, true] {
            for (constraint, texts, others) in text_constraints() {
                let tools = tools(Some(schema()), is_strict);
                let either = compile(format, tools.clone(), ToolChoice::Required, Some(&constraint));
                for text in texts.iter().filter(|text| !MARKS.iter().any(|mark| text.contains(mark))) {
                    assert!(either.takes(text), "{format:?}: {text}");
                }
                for text in others {
                    assert!(!either.takes(text), "{format:?}: {text}");
                }
                assert!(either.takes_call(&json!({ "city": "Bern", "days": 2 })), "{format:?}");
                // Where any text will do, so does what only looks like a call, if its marks are text.
                if others.is_empty() {
                    continue;
                }
                assert_eq!(either.takes_call(&anything()), !is_strict, "{format:?}");
                assert!(!either.takes(&written(format, "nobody", &json!({}))), "{format:?}");
                // With the marks as text, a text that has one is still a text.
                let (start, _) = &either.of[1];
                for text in texts {
                    assert!(takes(&**start, &tokens(text, false)), "{format:?}: {text}");
                }
            }
        }
    }
}

#[test]
fn errors_of_both_are_told() {
    let bad = Constraint::Regex { pattern: "(".to_owned(), field: "regex".to_owned() };
    let broken = Some(json!({ "properties": { "a": { "not": {} } } }));
    for format in ToolFormat::ALL {
        let error = try_compile(format, tools(None, false), ToolChoice::Required, Some(&bad)).err().unwrap();
        assert!(error.starts_with("regex: "), "{error}");
        let (_, text) = (0, &text_constraints()[1].0);
        let error = try_compile(format, tools(broken.clone(), true), ToolChoice::Required, Some(text)).err().unwrap();
        assert!(
            error.contains("tools[0].function.parameters/properties/a: not is not supported"),
            "{format:?}: {error}"
        );
    }
}

#[test]
fn one_of_several_constraints_may_end_where_another_goes_on() {
    let regex = |pattern: &str| Constraint::Regex { pattern: pattern.to_owned(), field: "regex".to_owned() };
    let parts = vec![regex("a"), regex("ab+"), Constraint::AnyOf { parts: vec![regex("ac"), regex("abx")] }];
    let start = compiler().compile(&Constraint::AnyOf { parts }).unwrap();
    for (text, is_allowed) in [
        ("a", true),
        ("ab", true),
        ("abb", true),
        ("ac", true),
        ("abx", true),
        ("", false),
        ("acb", false),
        ("abbx", false),
    ] {
        assert_eq!(takes(&*start, &tokens(text, false)), is_allowed, "{text}");
    }
    // Behind the only one that is left, what must follow is known, and nothing behind its end.
    let mut matcher = start.fork();
    assert!(!matcher.accept(u32::from(b'a')).unwrap());
    assert!(matcher.forced().is_empty());
    let mut other = matcher.fork();
    assert!(other.accept(u32::from(b'c')).unwrap(), "complete");
    assert!(other.mask().unwrap().is_empty());
    assert!(other.accept(u32::from(b'c')).is_err());
    assert!(matcher.accept(END).unwrap(), "an end is taken where one may end");
}
