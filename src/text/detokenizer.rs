//! Ids to text while they are generated.

use std::rc::Rc;

use super::Tokenizer;

/// Turns ids into text one at a time: whatever it has returned is final.
///
/// A character may span tokens; its bytes are held back until it is whole. Bytes become U+FFFD only once it is
/// certain that they are none. Control tokens add nothing. Pushing all ids of a text and finishing gives exactly
/// what [`Tokenizer::decode`] gives.
#[derive(Debug)]
pub struct Detokenizer {
    tokenizer: Rc<Tokenizer>,
    /// Bytes that may yet become a character: at most three, between calls.
    held: Vec<u8>,
    after_special: bool,
    /// Control tokens that add what they are written as.
    shown: Vec<u32>,
    /// Whether all spaces stay.
    is_verbatim: bool,
}

impl Detokenizer {
    /// Starts at the beginning of a text.
    pub fn new(tokenizer: Rc<Tokenizer>) -> Self {
        Self { tokenizer, held: Vec::new(), after_special: true, shown: Vec::new(), is_verbatim: false }
    }

    /// Starts after a prompt, which decides whether a leading space belongs to the text: it does in the middle of
    /// one, and not after a control token such as the one that opens an answer.
    pub fn after_prompt(tokenizer: Rc<Tokenizer>, prompt: &[u32]) -> Self {
        let after_special = prompt.last().is_none_or(|&id| tokenizer.splits_text(id));
        Self { tokenizer, held: Vec::new(), after_special, shown: Vec::new(), is_verbatim: false }
    }

    /// Starts anywhere and keeps every space that a token has, also where encoding would have put it.
    pub fn verbatim(tokenizer: Rc<Tokenizer>) -> Self {
        Self { tokenizer, held: Vec::new(), after_special: false, shown: Vec::new(), is_verbatim: true }
    }

    /// Has these control tokens add what they are written as.
    pub fn showing(mut self, ids: Vec<u32>) -> Self {
        self.shown = ids;
        self
    }

    /// The bytes that an id would add here, as it is written if it is a control token.
    pub fn peek(&self, id: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.tokenizer.append_token(id, false, &mut (self.after_special && !self.is_verbatim), &mut bytes);
        bytes
    }

    /// Takes the next id and returns the text that is certain now, often nothing.
    pub fn push(&mut self, id: u32) -> String {
        self.after_special &= !self.is_verbatim;
        let hides = !self.shown.contains(&id);
        self.tokenizer.append_token(id, hides, &mut self.after_special, &mut self.held);
        let mut text = String::new();
        let mut whole = 0;
        for chunk in self.held.utf8_chunks() {
            text.push_str(chunk.valid());
            whole += chunk.valid().len();
            let invalid = chunk.invalid();
            // The last bytes may be the beginning of a character.
            if whole + invalid.len() == self.held.len() && is_prefix(invalid) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            whole += invalid.len();
        }
        self.held.drain(..whole);
        text
    }

    /// Ends the text: what is still held back is no character, and becomes U+FFFD.
    pub fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.held).into_owned();
        self.held.clear();
        self.after_special = true;
        text
    }
}

/// Whether more bytes could make a character of these. Nothing is the beginning of one too.
fn is_prefix(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| bytes.is_empty())
}
