//! Conversations with calls as prompts, and what of them is encoded as it was generated.

use std::rc::Rc;

use pagewise::text::{
    CallLog, ChatTemplate, RenderOptions, Tokenizer, ToldAnswer, Tool, ToolChoice, ToolDelta, ToolFormat, ToolGrammar,
    ToolStream, Transcripts, call_ids_key, render_chat,
};
use serde_json::{Value, json};

use super::support::{CONTROL, USER, byte_level};
use super::tool_calls::tools;

/// What knows nothing of tools.
const PLAIN: &str = "{% for m in messages %}<|im_start|>{{ m['role'] + '\n' + m['content'] }}<|im_end|>\n{% endfor %}\
                     {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
/// In the way of Qwen's and Hermes' templates.
const KNOWING: &str = "{% if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}\
    {% for m in messages %}{% if m.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n\
    {% elif m.tool_calls %}<|im_start|>assistant\n{{ m.content }}{% for call in m.tool_calls %}{% if not loop.first or m.content %}{{ '\n' }}{% endif %}\
    {{ '<tool_call>\n{\"name\": \"' + call.function.name + '\", \"arguments\": ' + (call.function.arguments | tojson) + '}\n</tool_call>' }}{% endfor %}<|im_end|>\n\
    {% else %}<|im_start|>{{ m.role + '\n' + m.content }}<|im_end|>\n{% endif %}{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new(source, Vec::new()).unwrap()
}

fn options() -> RenderOptions {
    RenderOptions { add_generation_prompt: true, ..RenderOptions::default() }
}

fn question() -> Value {
    json!({ "role": "user", "content": "Weather?" })
}

fn exchange(calls: Value) -> Value {
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": format!("result of {id}") });
    json!([question(), { "role": "assistant", "content": "", "tool_calls": calls }, result("call_a"), result("call_b")])
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

#[test]
fn what_a_template_knows_is_found_by_rendering() {
    let support = template(PLAIN).tool_support();
    assert!(!support.takes_tools && !support.takes_results);
    let support = template(KNOWING).tool_support();
    assert!(support.takes_tools && support.takes_results);
}

#[test]
fn a_template_that_knows_tools_gets_them_with_arguments_as_objects() {
    let calls = json!([call("call_a", "weather", "{\"city\":\"Bern\"}"), call("call_b", "now", "{}")]);
    let text =
        render_chat(&template(KNOWING), &exchange(calls), Some(&tools()), ToolFormat::Hermes, &options()).unwrap();
    assert!(
        text.contains("{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>\n<tool_call>"),
        "{text}"
    );
    assert!(
        text.contains("\"description\": \"The weather.\"") && text.contains("result of call_b\n</tool_response>"),
        "{text}"
    );
    // Where it has to be text, it stays text.
    let joins = KNOWING.replace("(call.function.arguments | tojson)", "call.function.arguments");
    let calls = json!([call("call_a", "weather", "{\"city\":\"Bern\"}")]);
    let text =
        render_chat(&template(&joins), &exchange(calls), Some(&tools()), ToolFormat::Hermes, &options()).unwrap();
    assert!(text.contains("\"arguments\": {\"city\":\"Bern\"}}"), "{text}");
}

#[test]
fn any_other_template_is_told_in_words() {
    let calls = json!([call("call_a", "weather", "{\"city\": \"Bern\"}"), call("call_b", "now", "{}")]);
    for format in ToolFormat::ALL {
        let text = render_chat(&template(PLAIN), &exchange(calls.clone()), Some(&tools()), format, &options()).unwrap();
        assert!(text.starts_with("<|im_start|>system\nYou can call these functions, one a line:"), "{text}");
        assert!(text.contains("{\"name\":\"now\"}") && text.ends_with("<|im_start|>assistant\n"), "{text}");
        // Both results in one turn of the user's, and the calls as the model would write them.
        assert_eq!(text.matches("<|im_start|>user").count(), 2, "{text}");
        let (_, answer) = text.split_once("<|im_start|>assistant\n").unwrap();
        let (answer, rest) = answer.split_once("<|im_end|>").unwrap();
        assert!(rest.contains("result of call_a") && rest.contains("result of call_b"), "{text}");
        let mut stream = ToolStream::new(format, Tool::list(&tools()).unwrap(), 0);
        let mut told = stream.push(answer);
        told.extend(stream.finish());
        assert_eq!(stream.num_complete(), 2, "{format:?} {answer:?}: {told:?}");
        assert!(
            !told.iter().any(|delta| matches!(delta, ToolDelta::Content(_) | ToolDelta::Malformed { .. })),
            "{told:?}"
        );
    }
    // Behind a system message that is there.
    let messages = json!([{ "role": "system", "content": "Be brief." }, question()]);
    let text = render_chat(&template(PLAIN), &messages, Some(&tools()), ToolFormat::Hermes, &options()).unwrap();
    assert!(text.starts_with("<|im_start|>system\nBe brief.\n\nYou can call"), "{text}");
    // Without tools nothing changes.
    let plain = render_chat(&template(PLAIN), &messages, None, ToolFormat::Hermes, &options()).unwrap();
    assert_eq!(plain, template(PLAIN).render(&messages, &options()).unwrap());
}

#[test]
fn mistrals_templates_get_ids_of_nine_letters() {
    let source = KNOWING
        .replace("{{ m.content }}\n</tool_response>", "{{ m.tool_call_id ~ m.name ~ m.content }}\n</tool_response>");
    let calls = json!([call("call_a", "weather", "{}"), call("call_b", "now", "{}")]);
    let text =
        render_chat(&template(&source), &exchange(calls), Some(&tools()), ToolFormat::Mistral, &options()).unwrap();
    let (_, rest) = text.split_once("<tool_response>\n").unwrap();
    let (id, _) = rest.split_once("weather").unwrap();
    assert!(id.len() == 9 && id.bytes().all(|c| c.is_ascii_alphanumeric()), "{text}");
}

#[test]
fn the_format_is_what_the_template_shows_unless_one_is_asked_for() {
    let of = |source: &str| ToolFormat::of_template(source);
    assert_eq!(of(KNOWING), Some(ToolFormat::Hermes));
    assert_eq!(of("{{ '[TOOL_CALLS]' }}"), Some(ToolFormat::Mistral));
    assert_eq!(of("{{ '<|python_tag|>' }}"), Some(ToolFormat::Llama3));
    assert_eq!(of("{{ '<start_function_call>' }}"), Some(ToolFormat::FunctionGemma));
    assert_eq!(of("```tool_code"), Some(ToolFormat::Gemma));
    assert_eq!(of("<tool_call>\n<function=name>\n<parameter=key>"), None);
    assert_eq!(of(PLAIN), None);
    assert_eq!(ToolFormat::choose(None, Some(&template(PLAIN))), Ok(ToolFormat::Hermes));
    assert_eq!(ToolFormat::choose(Some(ToolFormat::Gemma), Some(&template(KNOWING))), Ok(ToolFormat::Gemma));
    // What takes tools and shows no call is not guessed at.
    let unknown = template(&KNOWING.replace("<tool_call>", "<other>").replace("</tool_call>", "</other>"));
    assert!(ToolFormat::choose(None, Some(&unknown)).unwrap_err().to_string().contains("toolFormat"));
    ToolFormat::ALL.iter().for_each(|format| assert_eq!(ToolFormat::named(format.name()), Some(*format)));
}

/// The next turn begins with the very ids that were computed and generated, though the model wrote its call in a way that
/// neither the template nor the tokeniser would.
#[test]
fn the_turn_behind_a_call_continues_what_was_generated() {
    let special =
        [("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<tool_call>", USER), ("</tool_call>", CONTROL)];
    let tokenizer = byte_level("smollm", &[("n", "a"), ("na", "m")], &special).set("eos_token_id", 259_u32);
    let tokenizer = Rc::new(Tokenizer::from_metadata(&tokenizer.metadata()).unwrap());
    for source in [PLAIN, KNOWING] {
        let template = template(source);
        let mut transcripts = Transcripts::new(Rc::clone(&tokenizer));
        let mut log = CallLog::default();
        let messages = json!([question()]);
        let prompt = render_chat(&template, &messages, Some(&tools()), ToolFormat::Hermes, &options()).unwrap();
        let ids = transcripts.encode_prompt(&prompt).unwrap();
        // Compact, where a template writes spaces, and letter by letter.
        let raw = "\n<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Bern\"}}</tool_call>";
        let special = |text: &str| tokenizer.encode(text, false, true).unwrap();
        let letters = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
        let json = raw.trim_start().trim_start_matches("<tool_call>").trim_end_matches("</tool_call>");
        let answer =
            [letters("\n"), special("<tool_call>"), letters(json), special("</tool_call>"), special("<|im_end|>")]
                .concat();
        assert_ne!(special(raw), answer[..answer.len() - 1], "it would be encoded otherwise");
        transcripts.remember(&prompt, &ids, &answer);
        let mut stream = ToolStream::new(ToolFormat::Hermes, Tool::list(&tools()).unwrap(), call_ids_key(1, &ids, 0));
        let (mut told, mut message) =
            (ToldAnswer::default(), json!({ "role": "assistant", "content": "", "tool_calls": [] }));
        for delta in stream.push(raw).into_iter().chain(stream.finish()) {
            told.note(&delta);
            match delta {
                ToolDelta::Call { id, name, .. } => message["tool_calls"] = json!([call(&id, &name, "")]),
                ToolDelta::Arguments { text, .. } => message["tool_calls"][0]["function"]["arguments"] = text.into(),
                other => panic!("{other:?}"),
            }
        }
        log.remember(told, raw.to_owned());
        let result = json!({ "role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "Rain." });
        let next = json!([question(), message, result]);
        let render = |messages: &Value| {
            render_chat(&template, messages, Some(&tools()), ToolFormat::Hermes, &options()).unwrap()
        };
        let written = render(&log.as_written(&next).unwrap());
        assert!(transcripts.continued_len(&written) > transcripts.continued_len(&render(&next)), "{source}");
        let next_ids = transcripts.encode_prompt(&written).unwrap();
        assert!(next_ids.starts_with(&[ids, answer].concat()), "{source}");
        assert_eq!(tokenizer.decode(&next_ids, false), written);
        // Somebody else's call, or a changed one, is none of ours.
        for (field, value) in [("id", "call_x"), ("arguments", "{}"), ("name", "now")] {
            let mut other = next.clone();
            let call = &mut other[1]["tool_calls"][0];
            if field == "id" {
                call[field] = value.into()
            } else {
                call["function"][field] = value.into()
            }
            assert_eq!(log.as_written(&other), None, "{field}");
        }
    }
}

#[test]
fn answers_that_have_to_be_calls_have_a_grammar() {
    let tools = Tool::list(&tools()).unwrap();
    let of = |format, choice, is_parallel| ToolGrammar::new(format, &tools, choice, is_parallel, |_| None).unwrap();
    assert_eq!(of(ToolFormat::Hermes, ToolChoice::Auto, true), None, "the model is free");
    for format in ToolFormat::ALL {
        let grammar = of(format, ToolChoice::Required, true).unwrap();
        assert!(grammar.lark.contains("weather") && grammar.lark.contains("now"), "{}", grammar.lark);
        let only = of(format, ToolChoice::Only(1), false).unwrap();
        assert!(!only.lark.contains("weather") && !only.lark.contains("call)*"), "{}", only.lark);
    }
    let grammar = of(ToolFormat::Hermes, ToolChoice::Required, true).unwrap();
    let schemas: Vec<_> = grammar.schemas.iter().map(|schema| (schema.name.as_str(), schema.field.as_str())).collect();
    assert_eq!(schemas, [("tool_0", "tools[0].function.parameters"), ("tool_1", "tools[1].function.parameters")]);
    assert_eq!(grammar.schemas[0].schema, json!({ "type": "object" }), "what is not strict is any object");
    let ids = ToolGrammar::new(ToolFormat::Hermes, &tools, ToolChoice::Required, true, |text| {
        (text == "<tool_call>").then_some(9)
    });
    assert!(ids.unwrap().unwrap().lark.contains("open: <[9]>\n"));
    let strict: Vec<_> = tools.iter().map(|tool| Tool { is_strict: true, ..tool.clone() }).collect();
    let free = |format| ToolGrammar::new(format, &strict, ToolChoice::Auto, true, |_| None);
    assert!(free(ToolFormat::Hermes).unwrap().unwrap().lark.starts_with("start: TEXT | OPENED calls"));
    assert!(free(ToolFormat::Gemma).unwrap().unwrap().lark.starts_with("start: TEXT | OPENED calls"));
}
