//! Chat templates: the ways of the model families, and the bounds.

use std::time::{Duration, Instant};

use pagewise::Error;
use pagewise::text::{ChatTemplate, RenderOptions};
use serde_json::{Value, json};

use crate::support::{CONTROL, byte_level};

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new(source, vec![("bos_token", "<s>".to_owned()), ("eos_token", "</s>".to_owned())]).unwrap()
}

fn options(extra: &Value) -> RenderOptions {
    let extra = extra.as_object().cloned().unwrap_or_default();
    RenderOptions { add_generation_prompt: true, now_unix_s: 1_735_689_600, extra }
}

fn render_with(source: &str, messages: &Value, extra: &Value) -> Result<String, Error> {
    template(source).render(messages, &options(extra))
}

fn render(source: &str, messages: &Value) -> String {
    render_with(source, messages, &Value::Null).unwrap()
}

fn chat() -> Value {
    json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": " Hi "},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello."},
        {"role": "user", "content": "Bye"},
    ])
}

#[test]
fn llama3_style() {
    let source = r#"{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- endif %}
{{- "<|system|>" + date_string + "\n" + system + "<|eot|>" }}
{%- for message in messages %}
    {{- '<|' + message['role'] + '|>' + message['content'] | trim + '<|eot|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>' }}
{%- endif %}
"#;
    assert_eq!(
        render(source, &chat()),
        "<s><|system|>01 Jan 2025\nBe brief.<|eot|><|user|>Hi<|eot|>\
         <|assistant|><think>\nhm\n</think>\n\nHello.<|eot|><|user|>Bye<|eot|><|assistant|>"
    );
}

#[test]
fn qwen3_style() {
    let source = r#"{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '<|im_end|>\n' }}
{%- endif %}
{%- set ns = namespace(multi_step=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string and not(message.content.startswith('<r>') and message.content.endswith('</r>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is defined and message.reasoning_content is not none %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in message.content %}
            {%- set content = message.content.split('</think>')[-1].lstrip('\n') %}
            {%- set reasoning = message.content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last %}
            {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"#;
    let tail = "<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n\
                <|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(render(source, &chat()), tail);
    let extra = json!({"tools": [{"name": "f<'é>", "n": [1, 2.5, null, true], "o": {}}], "enable_thinking": false});
    assert_eq!(
        render_with(source, &chat(), &extra).unwrap(),
        format!(
            "<|im_start|>system\n\n{{\"name\": \"f<'é>\", \"n\": [1, 2.5, null, true], \"o\": {{}}}}<|im_end|>\n{tail}<think>\n\n</think>\n\n"
        )
    );
}

#[test]
fn gemma_style() {
    let source = r#"{{ bos_token }}{%- if messages[0]['role'] == 'system' -%}
    {%- set first = messages[0]['content'] + '\n\n' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\n' + (first if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
"#;
    let messages = json!([
        {"role": "system", "content": "S"},
        {"role": "user", "content": [{"type": "text", "text": " a "}, {"type": "image"}]},
        {"role": "assistant", "content": "b"},
    ]);
    assert_eq!(
        render(source, &messages),
        "<s><start_of_turn>user\nS\n\na<end_of_turn>\n<start_of_turn>model\nb<end_of_turn>\n<start_of_turn>model\n"
    );
    let error = render_with(source, &json!([{"role": "assistant", "content": "b"}]), &Value::Null).unwrap_err();
    assert_eq!(error.code(), "bad_request");
    assert!(error.to_string().ends_with(": Conversation roles must alternate user/assistant"), "{error}");
}

#[test]
fn smollm_style() {
    let source = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '[default]\n' }}\
                  {% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}\
                  {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}\n";
    assert_eq!(
        render(source, &json!([{"role": "user", "content": "{{ x }}"}])),
        "[default]\n<|im_start|>user\n{{ x }}<|im_end|>\n<|im_start|>assistant\n"
    );
}

#[test]
fn idioms_of_other_templates() {
    let cases = [
        ("{% generation %}a{% endgeneration %}{%- generation -%} b {%- endgeneration -%} c", "abc"),
        ("{% if true %}\n  x\n  {% endif %}\ny", "  x\ny"),
        (
            "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            "02",
        ),
        ("{% macro m(x, y='d') %}{{ x }}{{ y }}{% endmacro %}{{ m('a') }}{{ m('b', y='c') }}", "adbc"),
        (
            "{% set d = {'k': 1, 'j': [true, none]} %}{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
            "k=1;j=[True, None];",
        ),
        ("{{ {'b': 1, 'a': 'é'} | tojson(indent=2) }}", "{\n  \"b\": 1,\n  \"a\": \"é\"\n}"),
        ("{{ {'b': 1, 'a': {}} | tojson(sort_keys=true) }}", "{\"a\": {}, \"b\": 1}"),
        ("{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | length }}", "2"),
        ("{{ (messages | first).get('x', 'none') }}{{ messages[-1]['content'].upper() }}", "noneBYE"),
        ("{{ 'a,b'.split(',')[1] ~ ('x' if tools is none else 'y') }}", "bx"),
        ("{{ messages[0].role | capitalize }}{{ 'a-b' | replace('-', '+') }}{{ [1, 2] | join('/') }}", "Systema+b1/2"),
        ("{{ 'x' in messages[0] }}{{ 'role' in messages[0] }}{{ documents is none }}", "FalseTrueTrue"),
        ("{{ strftime_now('%Y-%m-%d') }}{{ eos_token }}", "2025-01-01</s>"),
        ("{{ undefined_name }}{{ undefined_name is defined }}", "False"),
        ("{{ messages[0] is mapping and messages is sequence and messages[0].role is string }}", "True"),
        ("{{- '  a'.lstrip() + 'b  '.rstrip() }}  {#- note #}", "ab"),
        ("a\n", "a"),
    ];
    for (source, expected) in cases {
        assert_eq!(render(source, &chat()), expected, "{source}");
    }
}

#[test]
fn what_a_template_cannot_do_has_a_typed_error() {
    let cases = [
        ("{{ messages[0].x.y }}", "bad_request"),
        ("{{ 1 + 'a' }}", "bad_request"),
        ("{{ 'a' | made_up }}", "unsupported_model"),
        ("{{ made_up('a') }}", "unsupported_model"),
        ("{{ strftime_now('%Q') }}", "bad_request"),
        ("{% include 'other' %}", "unsupported_model"),
    ];
    for (source, code) in cases {
        let error =
            ChatTemplate::new(source, Vec::new()).and_then(|template| template.render(&chat(), &options(&Value::Null)));
        assert_eq!(error.expect_err(source).code(), code, "{source}");
    }
    for source in ["{% if %}", "{{ a", "{% for x in y %}", "{% made_up %}"] {
        assert_eq!(ChatTemplate::new(source, Vec::new()).expect_err(source).code(), "unsupported_model", "{source}");
    }
    let long = "a".repeat((1 << 20) + 1);
    assert!(ChatTemplate::new(&long, Vec::new()).unwrap_err().to_string().contains("1048577"));
}

#[test]
fn hostile_templates_end_soon_and_stay_small() {
    let start = Instant::now();
    let sources = [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(64) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
        "{{ 'a' * 2000000000 }}",
        "{{ range(100000000) | list | length }}",
        "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}",
        "{% set x = 'a' * 1000000 %}{% for i in range(30) %}{{ x }}{% endfor %}",
    ];
    for source in sources {
        let error = render_with(source, &chat(), &Value::Null).expect_err(source);
        assert_eq!(error.code(), "bad_request", "{source}: {error}");
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Each of these overflowed the stack, or went on for ever, beside the budget.
#[test]
fn values_that_nest_or_wait_without_end_are_refused() {
    let grow = |value: &str, then: &str| {
        let kept = format!("{{% for i in range(99999) %}}{{% set ns.x = {value} %}}{{% endfor %}}");
        format!("{{% set ns = namespace(x=[1]) %}}{kept}{{{{ {then} }}}}")
    };
    let doubled = "{% set x = x + x %}".repeat(64);
    let sources = [
        "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}".to_owned(),
        "{% set ns = namespace() %}{%- set ns.a = [{'b': ns}] -%}{{ ns | tojson }}".to_owned(),
        grow("[ns.x]", "ns.x | tojson"),
        grow("{'a': ns.x}", "ns.x"),
        grow("ns.x + ns.x", "ns.x | length"),
        grow("ns.x[0:]", "ns.x | length"),
        grow("[(ns.x[0] if i else ns.x) | chain(range(2))]", "ns.x | length"),
        grow("ns.x | chain(range(2)) | reverse", "ns.x | length"),
        format!("{{% set x = [1] %}}{doubled}{{{{ x | length }}}}"),
        format!("{{% set x = [1] %}}{}{{{{ x | tojson }}}}", "{% set x = [x] %}".repeat(9999)),
        "{{ [[0] * 10000] * 10000 | tojson }}".to_owned(),
        "{{ ([[0] * 10000] * 10000) | list | tojson | length }}".to_owned(),
        "{{ '{:1000000000}'.format(1) }}".to_owned(),
        "{% macro f(x, n) %}{{ f([[[[[[x]]]]]], n - 1) if n else x }}{% endmacro %}{{ f(1, 40) }}".to_owned(),
    ];
    // What a browser gives WebAssembly.
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let run = move || {
        for source in &sources {
            let start = &source[..source.len().min(120)];
            let error = render_with(source, &chat(), &Value::Null).expect_err(start);
            assert_eq!(error.code(), "bad_request", "{start}: {error}");
        }
    };
    small.spawn(run).unwrap().join().unwrap();
}

#[test]
fn what_set_tags_assign_stays_what_it_is() {
    let cases = [
        ("{% set a, b = 1, 2 %}{{ a }}{{ b }}", "12"),
        ("{%- set a = 'x=%}' -%} {{ a }}", "x=%}"),
        ("{% set a = 1 if false else 'no' %}{{ a }}", "no"),
        ("{% set a | upper %}x=y{% endset %}{{ a }}", "X=Y"),
        ("{% set a = [1] + [2] %}{{ a }} {{ a | length }}", "[1, 2] 2"),
        ("{% set a = (1, 2) %}{{ a }}", "(1, 2)"),
        (
            "{% set ns = namespace(l=[]) %}{% for i in range(3) %}{% set ns.l = ns.l + [{'i': i}] %}{% endfor %}{{ ns.l | tojson }}",
            "[{\"i\": 0}, {\"i\": 1}, {\"i\": 2}]",
        ),
        ("{% set a = messages[0] %}{{ a.role }}{% set b = messages[1:] %}{{ b[0].role }}", "systemuser"),
        ("{% raw %}{% set a = 1 %}{% endraw %}", "{% set a = 1 %}"),
        ("{% set a = range(3) %}{% for i in a %}{{ i }}{% endfor %}{{ a == [0, 1, 2] }}", "012True"),
        ("{{ '{:>5}|{:.2f}'.format(7, 1.5) }}", "    7|1.50"),
    ];
    for (source, text) in cases {
        assert_eq!(render(source, &chat()), text, "{source}");
    }
}

#[test]
fn a_long_chat_is_within_bounds() {
    let messages: Value = (0..2000)
        .map(|turn| json!({"role": if turn % 2 == 0 { "user" } else { "assistant" }, "content": "word ".repeat(100)}))
        .collect();
    let source = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}";
    assert!(render(source, &messages).len() > 1_000_000);
}

#[test]
fn tokens_and_template_come_from_the_file() {
    let entries = byte_level("gpt-2", &[], &[("<s>", CONTROL), ("</s>", CONTROL)])
        .set("bos_token_id", 256)
        .set("eos_token_id", 257)
        .set("chat_template", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ pad_token is defined }}");
    let template = ChatTemplate::from_metadata(&entries.clone().metadata()).unwrap().unwrap();
    assert_eq!(template.render(&chat(), &RenderOptions::default()).unwrap(), "<s>Be brief.</s>False");
    assert!(template.source().starts_with("{{ bos_token }}"));
    let broken = entries.clone().set("chat_template", "{% if %}").metadata();
    assert_eq!(ChatTemplate::from_metadata(&broken).unwrap_err().code(), "unsupported_model");
    assert!(ChatTemplate::from_metadata(&entries.without("chat_template").metadata()).unwrap().is_none());
}
