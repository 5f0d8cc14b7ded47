//! Vocabularies made for the purpose, and properties.

use std::rc::Rc;

use pagewise::text::{Detokenizer, Tokenizer};
use proptest::prelude::*;

use crate::support::{CONTROL, Entries, NORMAL, UNUSED, USER, byte_level, sentencepiece};

fn tokenizer(entries: Entries) -> Rc<Tokenizer> {
    Rc::new(Tokenizer::from_metadata(&entries.metadata()).unwrap())
}

/// The tokens of a text in a vocabulary that merges any two of some characters: where two single ones stay apart,
/// there is a border between words.
fn words(pre: &str, text: &str) -> Vec<String> {
    let letters = ["a", "b", "1", "2", "3", " ", "\n", "!", "'", "s", "S"];
    let pairs: Vec<(&str, &str)> = letters.iter().flat_map(|&left| letters.map(|right| (left, right))).collect();
    let tokenizer = tokenizer(byte_level(pre, &pairs, &[("<eos>", CONTROL)]).set("bos_token_id", 0));
    let ids = tokenizer.encode(text, false, false).unwrap();
    ids.iter().map(|&id| tokenizer.decode(&[id], false)).collect()
}

#[test]
fn pre_tokenizers_cut_where_they_should() {
    let cases: [(&str, &str, &[&str]); 12] = [
        ("gpt-2", "a 12!\n\nb", &["a", " ", "12", "!", "\n", "\n", "b"]),
        ("gpt-2", "a's b'S", &["a", "'s", " b", "'", "S"]),
        ("smollm", "12 3", &["1", "2", " ", "3"]),
        ("default", "12!a", &["12", "!", "a"]),
        ("default", "123 1", &["12", "3", " ", "1"]),
        ("llama-bpe", "a'S 12!\n", &["a", "'S", " ", "12", "!\n"]),
        ("llama-bpe", "!a  \nb", &["!a", "  ", "\n", "b"]),
        ("dbrx", "a\n\n", &["a", "\n\n"]),
        ("qwen2", "12 a'S", &["1", "2", " a", "'S"]),
        ("qwen35", "12!\n", &["1", "2", "!\n"]),
        ("tekken", "12a", &["1", "2", "a"]),
        ("gpt-4o", "12a's", &["12", "a'", "s"]),
    ];
    for (pre, text, expected) in cases {
        assert_eq!(words(pre, text), expected, "{pre}: {text:?}");
    }
}

#[test]
fn merges_go_by_rank_then_from_the_left() {
    let tokenizer = tokenizer(byte_level("gpt-2", &[("b", "c"), ("a", "b"), ("a", "a"), ("ab", "c")], &[]));
    let encode = |text| tokenizer.encode(text, false, false).unwrap();
    let (a, b, c) = (u32::from(b'a'), u32::from(b'b'), u32::from(b'c'));
    assert_eq!(encode("abc"), [a, 256]);
    assert_eq!(encode("abab"), [257, 257]);
    assert_eq!(encode("aaa"), [258, a]);
    assert_eq!(encode("cab"), [c, 257]);
    assert_eq!(encode("bb"), [b, b]);
}

#[test]
fn llama3_takes_a_word_that_is_a_token_whatever_the_merges() {
    let merges = [("b", "c"), ("a", "b"), ("ab", "c")];
    assert_eq!(
        tokenizer(byte_level("llama-bpe", &merges, &[("<|eot_id|>", CONTROL)]).set("bos_token_id", 259))
            .encode("abc", false, false)
            .unwrap(),
        [258]
    );
    assert_eq!(
        tokenizer(byte_level("dbrx", &merges, &[])).encode("abc", false, false).unwrap(),
        [u32::from(b'a'), 256]
    );
}

#[test]
fn scores_decide_what_sentencepiece_merges() {
    let tokenizer = tokenizer(sentencepiece(&[
        ("▁", -9.0, NORMAL),
        ("a", -9.0, NORMAL),
        ("b", -9.0, NORMAL),
        ("c", -9.0, NORMAL),
        ("ab", -2.0, NORMAL),
        ("bc", -1.0, NORMAL),
        ("▁a", -3.0, NORMAL),
        ("aa", -1.0, NORMAL),
        ("abc", -8.0, NORMAL),
    ]));
    let encode = |text| tokenizer.encode(text, true, false).unwrap();
    assert_eq!(encode("abc"), [1, 265, 264], "▁a bc: the best score first");
    assert_eq!(encode("aaa"), [1, 259, 266, 260], "equal scores: the leftmost");
    assert_eq!(encode("é"), [1, 259, 3 + 0xC3, 3 + 0xA9], "bytes where there is no token");
    assert_eq!(encode(""), [1]);
}

#[test]
fn special_tokens_split_text_only_when_asked() {
    let entries = sentencepiece(&[
        ("▁", -9.0, NORMAL),
        ("a", -9.0, NORMAL),
        ("<", -9.0, NORMAL),
        ("s>", -9.0, NORMAL),
        ("<u>", 0.0, USER),
        ("<u><u>", 0.0, USER),
        ("s", -9.0, NORMAL),
        (">", -9.0, NORMAL),
    ]);
    let tokenizer = tokenizer(entries);
    let encode = |text, special| tokenizer.encode(text, false, special).unwrap();
    assert_eq!(encode("a<s>a", true), [259, 260, 1, 259, 260], "a space after a special token too");
    assert_eq!(encode("a<s>", false), [259, 260, 261, 262], "never a control token, though the merge leads to one");
    for special in [false, true] {
        assert_eq!(encode("<u><u><u>a", special), [264, 263, 259, 260], "the longest first");
    }
    assert_eq!(tokenizer.decode(&encode("a<s>a<u>", true), true), "aa<u>");
    assert_eq!(tokenizer.decode(&encode("a<s>a<u>", true), false), "a<s>a<u>");
}

#[test]
fn longer_special_tokens_win_wherever_they_are() {
    let tokenizer = tokenizer(byte_level("gpt-2", &[], &[("ab", CONTROL), ("bcd", CONTROL), ("<unk>", USER)]));
    assert_eq!(tokenizer.encode("abcd", false, true).unwrap(), [u32::from(b'a'), 257]);
    assert_eq!(tokenizer.encode("abab", false, true).unwrap(), [256, 256]);
}

#[test]
fn bos_and_eos_come_as_the_file_says() {
    let base = || sentencepiece(&[("a", 0.0, NORMAL)]).set("add_space_prefix", false);
    let both = |entries| tokenizer(entries).encode("a", true, true).unwrap();
    assert_eq!(both(base()), [1, 259], "llama adds BOS unless told otherwise");
    assert_eq!(both(base().set("add_bos_token", false)), [259]);
    assert_eq!(both(base().set("add_eos_token", true)), [1, 259, 2]);
    assert_eq!(both(base().set("bos_token_id", 2)), [2, 259]);
    let gpt2 = || byte_level("gpt-2", &[], &[("<s>", CONTROL)]).set("bos_token_id", 256).set("eos_token_id", 256);
    assert_eq!(both(gpt2()), [97], "gpt2 adds none unless told otherwise");
    assert_eq!(both(gpt2().set("add_bos_token", true)), [256, 97]);
    assert_eq!(both(gpt2().set("pre", "llama-bpe")), [256, 97], "but Llama 3 does");
}

#[test]
fn a_prompt_has_one_bos_and_no_eos() {
    let entries = sentencepiece(&[("a", 0.0, NORMAL)]).set("add_space_prefix", false).set("add_eos_token", true);
    let with_bos = tokenizer(entries.clone());
    assert_eq!(with_bos.encode_prompt("<s>a").unwrap(), [1, 259]);
    assert_eq!(with_bos.encode_prompt("a").unwrap(), [1, 259]);
    assert_eq!(with_bos.encode_prompt("").unwrap(), [1]);
    assert_eq!(with_bos.encode_prompt("<s><s>a").unwrap(), [1, 1, 259], "what the template wrote is kept");
    let without = tokenizer(entries.set("add_bos_token", false));
    assert_eq!(without.encode_prompt("a").unwrap(), [259]);
}

#[test]
fn turns_end_with_every_token_that_is_known_to_end_them() {
    let names = [("<|eot_id|>", NORMAL), ("<|endoftext|>", CONTROL), ("<|file_sep|>", CONTROL), ("<x>", CONTROL)];
    let tokens = tokenizer(byte_level("gpt-2", &[], &names).set("eos_token_id", 259));
    assert_eq!(tokens.end_of_generation(), [256, 257, 258, 259]);
    assert!(tokens.is_end_of_generation(259) && !tokens.is_end_of_generation(97) && !tokens.is_end_of_generation(9999));
    assert!(tokens.is_special(256), "a token that looks like control is control");

    let harmony = [("<|end|>", CONTROL), ("<|return|>", CONTROL), ("<|call|>", CONTROL), ("<|channel|>", CONTROL)];
    let tokens = tokenizer(byte_level("gpt-2", &[], &harmony));
    assert_eq!(tokens.end_of_generation(), [257, 258], "after <|end|> another message follows");
    assert_eq!(tokens.decode(&[256, 257, 258, 259], true), "<|end|><|channel|>");
    assert_eq!(tokens.token_text(258), Some("<|call|>"));

    let named = byte_level("gpt-2", &[], &[("<a>", CONTROL), ("<b>", CONTROL), ("<c>", CONTROL)]);
    let named = named.set("eos_token_id", 256).set("eot_token_id", 257).set("eom_token_id", 258);
    assert_eq!(tokenizer(named).end_of_generation(), [256, 257, 258]);
}

#[test]
fn characters_across_tokens_come_out_whole() {
    let mut stream = Detokenizer::new(tokenizer(byte_level("gpt-2", &[], &[("<|im_end|>", CONTROL)])));
    let mut push = |ids: &[u8]| -> Vec<String> { ids.iter().map(|&byte| stream.push(byte.into())).collect() };
    assert_eq!(push("é".as_bytes()), ["", "é"]);
    assert_eq!(push("😀!".as_bytes()), ["", "", "", "😀", "!"]);
    assert_eq!(push(&[0xF0, 0x9F, b'a']), ["", "", "\u{FFFD}a"], "broken off: certain at the next byte");
    assert_eq!(push(&[0xFF, 0xC0, 0x80]), ["\u{FFFD}", "\u{FFFD}", "\u{FFFD}"], "never a character: at once");
    assert_eq!(push(&[0xE4, 0xBD]), ["", ""]);
    assert_eq!(stream.push(256), "", "a control token shows nothing and breaks nothing off");
    assert_eq!(stream.push(0xA0), "你");
    assert_eq!(stream.push(0xE4), "");
    assert_eq!(stream.finish(), "\u{FFFD}");
    assert_eq!(stream.finish(), "");
}

#[test]
fn a_leading_space_belongs_to_text_that_continues() {
    let tokens =
        tokenizer(sentencepiece(&[("▁a", 0.0, NORMAL), ("▁", -1.0, NORMAL), ("a", -1.0, NORMAL), ("x", 0.0, UNUSED)]));
    assert_eq!(tokens.decode(&[1, 259, 259, 262, 9999], true), "a a");
    let first = |prompt: &[u32]| Detokenizer::after_prompt(tokens.clone(), prompt).push(259);
    assert_eq!((first(&[]), first(&[1]), first(&[1, 261])), ("a".into(), "a".into(), " a".into()));
    assert_eq!(tokens.decode(&tokens.encode("  a", false, false).unwrap(), true), "  a");
}

fn vocabularies() -> Vec<Rc<Tokenizer>> {
    thread_local!(static ALL: Vec<Rc<Tokenizer>> = build_vocabularies());
    ALL.with(Clone::clone)
}

fn build_vocabularies() -> Vec<Rc<Tokenizer>> {
    let merges = [("a", "b"), (" ", "a"), ("ab", "ab"), ("\u{20}", "\u{20}"), ("1", "2")];
    let special = [("<|im_end|>", CONTROL), ("<u>", USER)];
    let pieces = [
        ("▁", -1.0, NORMAL),
        ("a", -2.0, NORMAL),
        ("ab", -3.0, NORMAL),
        ("▁a", -1.0, NORMAL),
        ("▁▁", -2.0, NORMAL),
        ("<u>", 0.0, USER),
        ("é", -2.0, NORMAL),
        ("bé", -1.0, NORMAL),
    ];
    let mut all: Vec<_> = ["gpt-2", "smollm", "default", "qwen2", "dbrx", "qwen35", "gpt-4o"]
        .map(|pre| tokenizer(byte_level(pre, &merges, &special)))
        .into();
    all.push(tokenizer(sentencepiece(&pieces)));
    all.push(tokenizer(sentencepiece(&pieces).set("add_space_prefix", false)));
    all
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(text in "([ab 12éß😀\n]|<u>|<|im_end|>|<s>|\\PC){0,24}", special: bool) {
        // SentencePiece cannot tell this character from a space.
        let text = text.replace('▁', "_");
        for tokenizer in vocabularies() {
            let ids = tokenizer.encode(&text, false, special).unwrap();
            prop_assert_eq!(tokenizer.decode(&ids, false), text.clone());
            let ids = tokenizer.encode(&text, true, special).unwrap();
            if !special {
                prop_assert_eq!(tokenizer.decode(&ids, true), text.clone());
            }
        }
    }

    #[test]
    fn pieces_joined_are_the_text_decoded_at_once(ids in prop::collection::vec(0u32..280, 0..40)) {
        for tokenizer in vocabularies() {
            let mut stream = Detokenizer::new(tokenizer.clone());
            let mut text: String = ids.iter().map(|&id| stream.push(id)).collect();
            text += &stream.finish();
            prop_assert_eq!(text, tokenizer.decode(&ids, true));
        }
    }

    #[test]
    fn a_character_is_never_shown_in_parts(text in "\\PC{0,16}") {
        let text = text.replace('▁', "_");
        for tokenizer in vocabularies() {
            let mut stream = Detokenizer::new(tokenizer.clone());
            let ids = tokenizer.encode(&text, false, false).unwrap();
            let shown: Vec<String> = ids.iter().map(|&id| stream.push(id)).collect();
            prop_assert_eq!(shown.concat(), text.clone(), "nothing is left to finish");
        }
    }
}
