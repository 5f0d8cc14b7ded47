//! Kept ids of conversations.

use std::rc::Rc;

use pagewise::text::{Tokenizer, Transcripts};

use super::support::{CONTROL, byte_level};

fn tokenizer() -> Rc<Tokenizer> {
    let entries = byte_level("smollm", &[("a", "b")], &[("<|start|>", CONTROL), ("<|end|>", CONTROL)]);
    Rc::new(Tokenizer::from_metadata(&entries.metadata()).unwrap())
}

fn id(tokenizer: &Tokenizer, text: &str) -> u32 {
    let ids = tokenizer.encode(text, false, true).unwrap();
    assert_eq!(ids.len(), 1, "{text} is one token");
    ids[0]
}

#[test]
fn an_answer_is_continued_as_it_was_generated_not_as_it_would_be_encoded() {
    let tokenizer = tokenizer();
    let mut transcripts = Transcripts::new(tokenizer.clone());
    let prompt = "<|start|>ab<|end|><|start|>";
    let ids = transcripts.encode_prompt(prompt).unwrap();
    assert_eq!(ids, tokenizer.encode_prompt(prompt).unwrap());
    // The model may say "ab" in two tokens, though encoding makes one of them.
    let answer = [id(&tokenizer, "a"), id(&tokenizer, "b"), id(&tokenizer, "<|end|>")];
    transcripts.remember(prompt, &ids, &answer);

    let next = "<|start|>ab<|end|><|start|>ab<|end|><|start|>b<|end|><|start|>";
    let kept = transcripts.encode_prompt(next).unwrap();
    assert_eq!(kept[..ids.len()], ids);
    assert_eq!(kept[ids.len()..ids.len() + 3], answer);
    assert_eq!(tokenizer.decode(&kept, false), next);
    assert_ne!(kept, tokenizer.encode_prompt(next).unwrap(), "encoding again would have lost the answer's ids");
}

#[test]
fn an_edited_answer_is_encoded_anew() {
    let tokenizer = tokenizer();
    let mut transcripts = Transcripts::new(tokenizer.clone());
    let prompt = "<|start|>";
    let ids = transcripts.encode_prompt(prompt).unwrap();
    transcripts.remember(prompt, &ids, &[id(&tokenizer, "a"), id(&tokenizer, "b"), id(&tokenizer, "<|end|>")]);
    for edited in ["<|start|>abb<|end|><|start|>", "<|start|>a<|end|>", "ab<|end|><|start|>"] {
        assert_eq!(transcripts.encode_prompt(edited).unwrap(), tokenizer.encode_prompt(edited).unwrap(), "{edited}");
    }
}

#[test]
fn an_answer_that_was_cut_off_is_only_continued_at_a_control_token() {
    let tokenizer = tokenizer();
    let mut transcripts = Transcripts::new(tokenizer.clone());
    let ids = transcripts.encode_prompt("<|start|>").unwrap();
    transcripts.remember("<|start|>", &ids, &[id(&tokenizer, "a")]);
    // "a" goes on as "ab", which is one token: the cut would show.
    let merged = tokenizer.encode_prompt("<|start|>ab<|end|>").unwrap();
    assert_eq!(transcripts.encode_prompt("<|start|>ab<|end|>").unwrap(), merged);
    assert_eq!(transcripts.encode_prompt("<|start|>a<|end|>").unwrap().len(), 3);
}

#[test]
fn peeking_gives_the_same_ids_and_is_no_use_of_the_conversation() {
    let tokenizer = tokenizer();
    let [start, a, b, end] = ["<|start|>", "a", "b", "<|end|>"].map(|text| id(&tokenizer, text));
    let next = "<|start|>ab<|end|><|start|>";
    let kept = [start, a, b, end, start];
    for is_used in [true, false] {
        let mut transcripts = Transcripts::new(tokenizer.clone());
        transcripts.remember("<|start|>", &[start], &[a, b, end]);
        for index in 0..64 {
            assert_eq!(transcripts.peek_prompt(next).unwrap(), kept);
            if is_used {
                assert_eq!(transcripts.encode_prompt(next).unwrap(), kept);
            }
            transcripts.remember(&"b".repeat(index), &[b], &[end]);
        }
        assert_eq!(transcripts.peek_prompt(next).unwrap() == kept, is_used);
    }
}

#[test]
fn the_longest_conversation_wins_and_clear_forgets() {
    let tokenizer = tokenizer();
    let mut transcripts = Transcripts::new(tokenizer.clone());
    let [a, b, end] = ["a", "b", "<|end|>"].map(|text| id(&tokenizer, text));
    let ids = tokenizer.encode_prompt("<|start|>").unwrap();
    transcripts.remember("<|start|>", &ids, &[a, b, end]);
    let longer = [ids.as_slice(), &[a, b, end, ids[0]]].concat();
    transcripts.remember("<|start|>ab<|end|><|start|>", &longer, &[a, b, a, b, end]);
    let text = "<|start|>ab<|end|><|start|>abab<|end|>b";
    let kept = transcripts.encode_prompt(text).unwrap();
    assert_eq!(kept, [longer.as_slice(), &[a, b, a, b, end, b]].concat());
    transcripts.clear();
    assert_eq!(transcripts.encode_prompt(text).unwrap(), tokenizer.encode_prompt(text).unwrap());
}
