//! Vocabularies that contradict themselves: a typed error, never a panic.

use pagewise::gguf::{Array, Value};
use pagewise::text::{ChatTemplate, RenderOptions, Tokenizer};
use proptest::prelude::*;

use crate::support::{CONTROL, Entries, NORMAL, byte_level, byte_text, floats, ints, sentencepiece, strings};

fn error(entries: Entries) -> (String, &'static str) {
    let error = Tokenizer::from_metadata(&entries.metadata()).expect_err("must not load");
    (error.to_string(), error.code())
}

fn bytes() -> Entries {
    byte_level("gpt-2", &[("a", "b")], &[("<s>", CONTROL)])
}

fn pieces() -> Entries {
    sentencepiece(&[("a", 0.0, NORMAL), ("▁", -1.0, NORMAL)])
}

#[test]
fn what_contradicts_itself_is_corrupt_and_says_where() {
    let cases = [
        (bytes().without("tokens"), "tokenizer.ggml.tokens"),
        (bytes().set("tokens", strings(Vec::<String>::new())), "no tokens"),
        (bytes().set("tokens", strings(["a", "b", "a"])).without("token_type"), "\"a\" is both token 0 and token 2"),
        (bytes().set("tokens", 3_u32), "tokenizer.ggml.tokens"),
        (bytes().set("token_type", ints([1; 3])), "token_type: 3 entries for 258 tokens"),
        (bytes().set("token_type", ints([7; 258])), "token 0 is of type 7"),
        (bytes().set("token_type", ints([-1; 258])), "token 0 is of type -1"),
        (bytes().set("token_type", "normal"), "token_type"),
        (bytes().without("merges"), "tokenizer.ggml.merges"),
        (bytes().set("merges", strings(["ab"])), "merge 0, \"ab\", is not two tokens"),
        (bytes().set("merges", strings([""])), "is not two tokens"),
        (bytes().set("merges", strings(["a b", "a zz"])), "merge 1, \"a zz\", needs \"zz\""),
        (bytes().set("merges", strings(["a "])), "needs \"\", which is not a token"),
        (bytes().set("merges", strings(["b a"])), "needs \"ba\", which is not a token"),
        (bytes().set("merges", strings(["é a"])), "needs"),
        (bytes().set("bos_token_id", 258), "bos_token_id: token 258 of a vocabulary of 258"),
        (bytes().set("eot_token_id", u32::MAX), "eot_token_id"),
        (bytes().set("fim_pad_token_id", 999), "fim_pad_token_id"),
        (bytes().set("add_bos_token", true), "no tokenizer.ggml.bos_token_id"),
        (bytes().set("add_eos_token", true), "no tokenizer.ggml.eos_token_id"),
        (bytes().set("add_bos_token", 1_u32), "add_bos_token"),
        (pieces().set("scores", floats([0.0; 3])), "scores: 3 entries for 261 tokens"),
        (pieces().set("scores", floats([f32::NAN; 261])), "the score of token 0 is not a number"),
        (pieces().without("scores"), "scores is missing"),
        (pieces().set("scores", Value::Array(Array::Bool(vec![true]))), "scores"),
        (pieces().set("unknown_token_id", 261), "unknown_token_id"),
        (pieces().without("model"), "tokenizer.ggml.model"),
    ];
    for (entries, expected) in cases {
        let (message, code) = error(entries);
        assert!(message.contains(expected), "{message:?} should say {expected:?}");
        assert_eq!(code, "corrupt_model", "{message}");
    }
}

#[test]
fn what_is_not_supported_is_named_with_what_is() {
    let (message, code) = error(bytes().set("pre", "made-up"));
    assert_eq!(code, "unsupported_model");
    for word in ["\"made-up\"", "default", "gpt-2", "smollm", "llama-bpe", "qwen2"] {
        assert!(message.contains(word), "{message}");
    }
    let (message, code) = error(bytes().set("model", "bert"));
    assert_eq!((message.contains("\"bert\"") && message.contains("gpt2, llama"), code), (true, "unsupported_model"));
}

#[test]
fn odd_vocabularies_that_others_load_are_loaded() {
    let mut tokens: Vec<String> = (0..=255_u8).map(|byte| crate::support::byte_char(byte).to_string()).collect();
    tokens.extend([String::new(), String::new()]);
    let tokenizer =
        Tokenizer::from_metadata(&bytes().set("tokens", strings(tokens)).set("merges", strings([""; 0])).metadata());
    let tokenizer = tokenizer.expect("empty tokens are only placeholders");
    assert_eq!(tokenizer.token_bytes(256), Some(Vec::new()));
    // The merge would make a token that ends the text; a user cannot type that.
    let entries = byte_level("gpt-2", &[("<", "/s>")], &[("/s>", NORMAL)]);
    let tokenizer = Tokenizer::from_metadata(&entries.metadata()).expect("merges to control tokens are left out");
    assert_eq!(tokenizer.encode("</s>", false, true).unwrap(), [256]);
    assert!(tokenizer.encode("</s>", false, false).unwrap().len() > 1);
}

#[test]
fn a_character_without_any_token_is_an_error_or_unknown() {
    let tiny = |unknown| {
        bytes()
            .set("model", "llama")
            .set("tokens", strings(["<unk>", "a", unknown]))
            .set("token_type", ints([2, 1, 1]))
            .set("scores", floats([0.0; 3]))
            .set("add_bos_token", false)
            .set("add_space_prefix", false)
    };
    let tokenizer = Tokenizer::from_metadata(&tiny("b").metadata()).unwrap();
    assert_eq!(tokenizer.encode("acb", false, false).unwrap(), [1, 0, 2]);
    assert_eq!(tokenizer.decode(&[1, 0, 2], true), "ab");
}

#[test]
fn a_template_whose_tokens_do_not_exist_is_corrupt() {
    let metadata = bytes().set("chat_template", "{{ bos_token }}").set("bos_token_id", 5000).metadata();
    assert_eq!(ChatTemplate::from_metadata(&metadata).expect_err("out of range").code(), "corrupt_model");
}

proptest! {
    #[test]
    fn no_vocabulary_panics(
        tokens in prop::collection::btree_map("[ab<>▁ ]{0,3}", (0..7, prop::num::f32::ANY), 1..12),
        merges in prop::collection::vec("[ab ▁é]{0,5}", 0..6),
        id in 0_u32..16,
        sentencepiece: bool,
        text in "[ab<> ▁é]{0,12}",
    ) {
        let entries = bytes()
            .set("model", if sentencepiece { "llama" } else { "gpt2" })
            .set("tokens", strings(tokens.keys()))
            .set("token_type", ints(tokens.values().map(|&(kind, _)| kind)))
            .set("scores", floats(tokens.values().map(|&(_, score)| score)))
            .set("merges", strings(if sentencepiece { Vec::new() } else { merges }))
            .set("eos_token_id", id);
        if let Ok(tokenizer) = Tokenizer::from_metadata(&entries.metadata()) {
            if let Ok(ids) = tokenizer.encode(&text, true, true) {
                prop_assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
            }
            tokenizer.decode(&[id, u32::MAX, 0], false);
            tokenizer.token_bytes(id);
        }
    }

    #[test]
    fn merges_of_any_tokens_never_panic(merges in prop::collection::vec("[abc]{1,3} [abc]{1,3}", 0..8)) {
        let merges: Vec<String> = merges.iter().map(|merge| merge.split(' ').map(byte_text).collect::<Vec<_>>().join(" ")).collect();
        if let Ok(tokenizer) = Tokenizer::from_metadata(&bytes().set("merges", strings(merges)).metadata()) {
            prop_assert_eq!(tokenizer.decode(&tokenizer.encode("abcabc", false, false).unwrap(), false), "abcabc");
        }
    }
}

/// Found by trying: each of these overflowed the stack of the template's parser or compiler.
#[test]
fn templates_that_nest_without_brackets_are_refused_and_those_within_the_limits_fit_a_small_stack() {
    let chains: [fn(usize) -> String; 6] = [
        |n| format!("{{{{ a{} }}}}", ".a".repeat(n)),
        |n| format!("{{{{ {}1 }}}}", "-".repeat(n)),
        |n| format!("{{{{ {}1 }}}}", "not ".repeat(n)),
        |n| format!("{{{{ a{} }}}}", "~a".repeat(n)),
        |n| format!("{{{{ a{} }}}}", "|trim".repeat(n)),
        |n| format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(n)),
    ];
    // What a browser gives WebAssembly.
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let run = move || {
        for chain in chains {
            let error = ChatTemplate::new(&chain(30_000), Vec::new()).unwrap_err();
            assert_eq!(error.code(), "unsupported_model", "{error}");
            // The longest that the limits let through is parsed, or refused, without harm.
            for n in [250, 400, 680, 1023, 2040] {
                let _ = ChatTemplate::new(&chain(n), Vec::new())
                    .map(|template| template.render(&serde_json::json!([]), &RenderOptions::default()).map(drop));
            }
        }
    };
    small.spawn(run).unwrap().join().unwrap();
}
