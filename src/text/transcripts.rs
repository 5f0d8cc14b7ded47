//! The ids of conversations, kept: a follow-up turn is encoded as what was computed plus what is new.
//!
//! Encoding the text of an answer again may give other ids than the model generated, and every one after the first
//! difference would have to be computed anew. So the ids of a prompt with its answer are remembered under their text, and a
//! prompt that begins with that text begins with those ids. The invariant to remember: the ids returned always decode to
//! the prompt.

use std::collections::VecDeque;
use std::rc::Rc;

use super::Tokenizer;
use crate::Result;

/// Conversations remembered, at most.
const MAX_TRANSCRIPTS: usize = 64;
/// Bytes of text remembered, at most.
const MAX_TEXT_BYTES: usize = 8 << 20;

#[derive(Debug)]
struct Transcript {
    text: String,
    ids: Vec<u32>,
}

/// Remembers conversations, the latest first.
#[derive(Debug)]
pub struct Transcripts {
    tokenizer: Rc<Tokenizer>,
    entries: VecDeque<Transcript>,
    text_bytes: usize,
}

impl Transcripts {
    /// Remembers nothing yet.
    pub fn new(tokenizer: Rc<Tokenizer>) -> Self {
        Self { tokenizer, entries: VecDeque::new(), text_bytes: 0 }
    }

    /// Remembers that the prompt `text`, which was encoded as `ids`, was answered with `answer`. What the answer's
    /// ids decode to is found here, the control token that ended it included.
    pub fn remember(&mut self, text: &str, ids: &[u32], answer: &[u32]) {
        let mut answered = text.to_owned();
        let mut stream = super::Detokenizer::after_prompt(self.tokenizer.clone(), ids);
        for &id in answer {
            answered.push_str(&stream.push(id));
            if self.tokenizer.is_special(id) {
                answered.push_str(self.tokenizer.token_text(id).unwrap_or_default());
            }
        }
        answered.push_str(&stream.finish());
        if answered.contains(char::REPLACEMENT_CHARACTER) || answered.len() > MAX_TEXT_BYTES {
            // Half a character would not be found again.
            return;
        }
        self.entries.retain(|entry| entry.text != answered);
        self.entries.push_front(Transcript { text: answered, ids: [ids, answer].concat() });
        self.text_bytes = self.entries.iter().map(|entry| entry.text.len()).sum();
        while self.entries.len() > MAX_TRANSCRIPTS || self.text_bytes > MAX_TEXT_BYTES {
            let dropped = self.entries.pop_back();
            self.text_bytes -= dropped.map_or(0, |entry| entry.text.len());
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.text_bytes = 0;
    }

    /// The ids of a rendered prompt: those of the longest conversation that it continues, then its new text's.
    ///
    /// # Errors
    /// As [`Tokenizer::encode_prompt`].
    pub fn encode_prompt(&mut self, prompt: &str) -> Result<Vec<u32>> {
        let longest = self.longest(prompt);
        let ids = self.encode_after(longest, prompt);
        if let Some(entry) = longest.and_then(|index| self.entries.remove(index)) {
            self.entries.push_front(entry);
        }
        ids
    }

    /// The same without being remembered as used.
    ///
    /// # Errors
    /// As [`Tokenizer::encode_prompt`].
    pub fn peek_prompt(&self, prompt: &str) -> Result<Vec<u32>> {
        self.encode_after(self.longest(prompt), prompt)
    }

    /// Bytes of a rendered prompt that are encoded as they were before.
    pub fn continued_len(&self, prompt: &str) -> usize {
        let longest = self.longest(prompt).and_then(|index| self.entries.get(index));
        longest.map_or(0, |entry| entry.text.len())
    }

    /// The index of the longest conversation that a prompt continues.
    fn longest(&self, prompt: &str) -> Option<usize> {
        let continued = |(_, entry): &(usize, &Transcript)| self.may_continue(entry, prompt);
        let entries = self.entries.iter().enumerate().filter(continued);
        entries.max_by_key(|(_, entry)| entry.text.len()).map(|(index, _)| index)
    }

    fn encode_after(&self, continued: Option<usize>, prompt: &str) -> Result<Vec<u32>> {
        let Some(entry) = continued.and_then(|index| self.entries.get(index)) else {
            return self.tokenizer.encode_prompt(prompt);
        };
        let rest = self.tokenizer.encode(&prompt[entry.text.len()..], false, true)?;
        Ok([entry.ids.as_slice(), &rest].concat())
    }

    /// Whether the prompt begins with the transcript and may be cut there: next to a control token, where no token can
    /// span the cut.
    fn may_continue(&self, entry: &Transcript, prompt: &str) -> bool {
        let Some(rest) = prompt.strip_prefix(entry.text.as_str()) else { return false };
        if rest.is_empty() || entry.ids.last().is_some_and(|&id| self.tokenizer.is_special(id)) {
            return true;
        }
        let first = self.tokenizer.encode(rest, false, true).ok().and_then(|ids| ids.first().copied());
        first.is_some_and(|id| self.tokenizer.is_special(id))
    }
}
