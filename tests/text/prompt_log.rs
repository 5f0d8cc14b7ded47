//! Whether a prompt was not reused because of what the template wrote.

use std::rc::Rc;

use pagewise::kv::{GroupConfig, KvManager, Miss, MissReason, Retention};
use pagewise::text::{ChatTemplate, LoggedPrompt, Prompt, PromptLog, RenderOptions, Tokenizer, Transcripts};
use serde_json::{Value, json};

use super::support::{CONTROL, byte_level};

/// Writes what deployed templates write around the messages: a date, a tool list, an option.
const TEMPLATE: &str = "<|s|>system\nYou are a helpful assistant. Today is {{ strftime_now('%d %b %Y') }}.\n\
    {%- if tools %}Tools: {{ tools | tojson }}\n{% endif %}{%- if terse %}Be brief.\n{% endif %}<|e|>\n\
    {%- for m in messages %}<|s|>{{ m.role }}\n{{ m.content }}<|e|>\n{% endfor %}\n\
    {%- if add_generation_prompt %}<|s|>assistant\n{% endif %}";

/// 2026-07-26, and a day later.
const DAY: i64 = 1_785_024_000;
const NEXT_DAY: i64 = DAY + 86_400;

/// All that decides over a miss, without a model.
struct World {
    kv: KvManager,
    template: ChatTemplate,
    tokenizer: Rc<Tokenizer>,
    transcripts: Transcripts,
    log: PromptLog,
}

impl World {
    fn new() -> Self {
        let entries = byte_level("smollm", &[("a", "b")], &[("<|s|>", CONTROL), ("<|e|>", CONTROL)]);
        let tokenizer = Rc::new(Tokenizer::from_metadata(&entries.metadata()).unwrap());
        Self {
            kv: KvManager::new(vec![GroupConfig { num_blocks: 200, window: None }]),
            template: ChatTemplate::new(TEMPLATE, Vec::new()).unwrap(),
            transcripts: Transcripts::new(tokenizer.clone()),
            tokenizer,
            log: PromptLog::default(),
        }
    }

    fn prompt(&mut self, messages: &Value, options: &RenderOptions) -> Prompt {
        let text = self.template.render(messages, options).unwrap();
        let ids = self.transcripts.encode_prompt(&text).unwrap();
        let add_generation_prompt = options.add_generation_prompt;
        Prompt { messages: Some(messages.clone()), add_generation_prompt, text: Some(text), ids, tools: None }
    }

    /// Computes a prompt and its answer, which ends with a control token.
    fn answer(&mut self, salt: &str, prompt: Prompt, answer: &str) {
        let new = self.tokenizer.encode(&format!("{answer}<|e|>"), false, true).unwrap();
        let ids = [&prompt.ids[..], &new].concat();
        let hit = self.kv.find(salt, &ids);
        let id = self.kv.start(salt, &hit, ids.len(), Rc::new(Retention::default()));
        self.kv.grow(id, ids.len()).unwrap();
        self.kv.commit(id, &ids, ids.len());
        self.kv.finish(id, &ids, ids.len());
        if let Some(text) = &prompt.text {
            self.transcripts.remember(text, &prompt.ids, &new);
        }
        self.log.remember(LoggedPrompt { salt: salt.to_owned(), prompt, answer: answer.to_owned(), ids });
    }

    fn miss(&self, salt: &str, prompt: &Prompt) -> Option<Miss> {
        self.kv.find(salt, &prompt.ids).miss
    }

    /// Whether the template is to blame for a miss that differs.
    fn blames(&self, salt: &str, prompt: &Prompt, options: &RenderOptions) -> bool {
        let miss = self.miss(salt, prompt).unwrap();
        assert_eq!(miss.reason, MissReason::Differs);
        let render = |messages: &Value, add_generation_prompt: bool| {
            self.template.render(messages, &RenderOptions { add_generation_prompt, ..options.clone() })
        };
        let encode = |text: &str| self.transcripts.peek_prompt(text);
        let earlier = self.log.parting(salt, &prompt.ids, miss.position, miss.expected.unwrap());
        earlier.is_some_and(|earlier| earlier.is_template_changed(prompt, miss.position, render, encode).unwrap())
    }
}

fn on(now_unix_s: i64, extra: &Value) -> RenderOptions {
    let extra = extra.as_object().cloned().unwrap_or_default();
    RenderOptions { add_generation_prompt: true, now_unix_s, extra }
}

fn chat(contents: &[&str]) -> Value {
    let role = |index: usize| ["user", "assistant"][index % 2];
    contents.iter().enumerate().map(|(index, text)| json!({ "role": role(index), "content": text })).collect()
}

#[test]
fn another_date_tool_list_or_option_is_the_templates() {
    let plain = on(DAY, &Value::Null);
    for options in [
        on(NEXT_DAY, &Value::Null),
        on(DAY, &json!({ "tools": [{ "name": "search" }] })),
        on(DAY, &json!({ "terse": true })),
    ] {
        for next in [&["abc?"][..], &["abc?", "Yes.", "Why?"], &["Quite another question"]] {
            let mut world = World::new();
            let first = world.prompt(&chat(&["abc?"]), &plain);
            world.answer("", first, "Yes.");
            let next = world.prompt(&chat(next), &options);
            assert!(world.blames("", &next, &options), "{:?}", next.text);
            // And the other way round: what it wrote is gone again.
            world.answer("", next, "No.");
            let back = world.prompt(&chat(&["abc!"]), &plain);
            assert_eq!(world.miss("", &back).map(|miss| miss.reason), Some(MissReason::Differs));
            assert!(!world.blames("", &back, &plain), "the nearest is the first again, of which the message differs");
        }
    }
}

#[test]
fn another_message_is_not_the_templates() {
    let options = on(DAY, &Value::Null);
    let mut world = World::new();
    let first = world.prompt(&chat(&["abc?", "Yes.", "Why?"]), &options);
    world.answer("", first, "So.");
    let system = json!([{ "role": "system", "content": "abc" }, { "role": "user", "content": "abc?" }]);
    let asked = [
        chat(&["abd?", "Yes.", "Why?"]),
        chat(&["abc?", "Yes!", "Why?"]),
        chat(&["abc? And more", "Yes.", "Why?"]),
        chat(&["abc?", "Yes.", "Why?", "Another answer.", "Really?"]),
        system,
    ];
    for messages in &asked {
        let next = world.prompt(messages, &options);
        assert!(!world.blames("", &next, &options), "{messages}");
    }
    // A message in front of the place where the template changes as well.
    let late = "{%- for m in messages %}<|s|>{{ m.role }}\n{{ m.content }}<|e|>\n{% endfor %}{{ strftime_now('%d %b %Y') }}, go on";
    let mut world = World { template: ChatTemplate::new(late, Vec::new()).unwrap(), ..World::new() };
    let first = world.prompt(&chat(&["A long enough question, abc?"]), &options);
    world.answer("", first, "Yes.");
    let tomorrow = on(NEXT_DAY, &Value::Null);
    let edited = world.prompt(&chat(&["A long enough question, abd?"]), &tomorrow);
    assert!(!world.blames("", &edited, &tomorrow));
    let same = world.prompt(&chat(&["A long enough question, abc?"]), &tomorrow);
    assert!(world.blames("", &same, &tomorrow));
}

#[test]
fn it_is_not_said_without_proof() {
    let (today, tomorrow) = (on(DAY, &Value::Null), on(NEXT_DAY, &Value::Null));
    let mut world = World::new();
    let first = world.prompt(&chat(&["abc?"]), &today);
    world.answer("", first.clone(), "Yes.");
    let next = world.prompt(&chat(&["abc?"]), &tomorrow);
    assert!(world.blames("", &next, &tomorrow));
    // The same text, not from messages.
    let text = Prompt { messages: None, ..next.clone() };
    assert!(!world.blames("", &text, &tomorrow));
    // Nobody remembers the prompt that the cache has.
    world.log.clear();
    assert!(!world.blames("", &next, &tomorrow));
    // It is remembered, but not as messages.
    world.answer("", Prompt { messages: None, ..first.clone() }, "Yes.");
    assert!(!world.blames("", &next, &tomorrow));
    // Under another salt it is another's.
    world.answer("tenant", first, "Yes.");
    let miss = world.miss("", &next).unwrap();
    assert_eq!(world.log.parting("", &next.ids, miss.position, miss.expected.unwrap()).unwrap().salt, "");
    assert!(!world.blames("", &next, &tomorrow));
    assert!(world.blames("tenant", &next, &tomorrow));
}

fn logged(salt: &str, ids: &[u32]) -> LoggedPrompt {
    LoggedPrompt { salt: salt.to_owned(), ids: ids.to_vec(), ..LoggedPrompt::default() }
}

#[test]
fn the_most_alike_is_the_latest_that_shares_the_most() {
    let mut log = PromptLog::default();
    assert_eq!(log.most_alike("", &[1]), None);
    for entry in [logged("", &[1, 2, 3]), logged("", &[1, 2, 4]), logged("", &[1, 5]), logged("a", &[1, 2, 9])] {
        log.remember(entry);
    }
    let found = |log: &PromptLog, salt: &str, ids: &[u32]| log.most_alike(salt, ids).map(|entry| entry.ids.clone());
    assert_eq!(found(&log, "", &[1, 2, 9]), Some(vec![1, 2, 4]));
    assert_eq!(found(&log, "", &[1, 2, 3, 9]), Some(vec![1, 2, 3]));
    assert_eq!(found(&log, "", &[7]), Some(vec![1, 5]));
    assert_eq!(found(&log, "b", &[1]), None);
    // What goes on takes the place of what it continues.
    log.remember(logged("", &[1, 5, 6]));
    assert_eq!(found(&log, "", &[1, 5]), Some(vec![1, 5, 6]));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut log = PromptLog::default();
    for index in 0..65 {
        log.remember(logged("", &[index, 1]));
    }
    assert!(log.parting("", &[0], 1, 1).is_none());
    let has = |log: &PromptLog, index: u32| log.parting("", &[index, 2], 1, 1).is_some();
    assert_eq!([0, 1, 64].map(|index| has(&log, index)), [false, true, true], "64 prompts");
    let text = Some("a".repeat(3 << 20));
    for index in 100..102 {
        let mut entry = logged("", &[index, 1]);
        entry.prompt.text.clone_from(&text);
        log.remember(entry);
    }
    assert_eq!([64, 100, 101].map(|index| has(&log, index)), [false, false, true], "8 MiB");
}

#[test]
fn a_conversation_ends_with_its_answer() {
    let prompt = Prompt { messages: Some(chat(&["Hi"])), ..Prompt::default() };
    let entry = LoggedPrompt { answer: "Hello".to_owned(), prompt, ..LoggedPrompt::default() };
    assert_eq!(entry.conversation(), Some(chat(&["Hi", "Hello"])));
    assert_eq!(LoggedPrompt { answer: String::new(), ..entry }.conversation(), Some(chat(&["Hi"])));
    assert_eq!(LoggedPrompt::default().conversation(), None);
}
