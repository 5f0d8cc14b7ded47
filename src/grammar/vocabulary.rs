//! A model's tokens as the bytes that grammars read.

use std::rc::Rc;
use std::sync::Arc;

use send_wrapper::SendWrapper;
use toktrie::{INVALID_TOKEN, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use super::limits::{MAX_TOKEN_BYTES, MAX_VOCABULARY_BYTES};
use super::{GrammarError, Result};

/// A model's tokens.
pub struct Vocabulary {
    /// What each token adds to an answer.
    pub words: Vec<Vec<u8>>,
    /// Ids that are not text: control tokens, whose words are what the file calls them. Ascending.
    pub special: Vec<u32>,
    /// Ids that end an answer. Ascending.
    pub end_of_generation: Vec<u32>,
}

/// How the model's tokenizer writes a text that goes on from another.
pub type Encode = dyn Fn(&str) -> Vec<u32>;

struct Environment {
    trie: TokTrie,
    /// Everything happens on one thread; llguidance would allow several.
    encode: SendWrapper<Rc<Encode>>,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        let tokens = self.trie.tokenize_with_greedy_fallback(bytes, |text| (self.encode)(text));
        // Some tokenizers change a text, a space at its beginning for one; what is forced must be what was asked.
        if self.trie.decode_raw(&tokens) == bytes { tokens } else { self.trie.greedy_tokenize(bytes) }
    }
}

/// The trie of a vocabulary, and how text becomes tokens.
pub(super) fn environment(vocabulary: Vocabulary, encode: Rc<Encode>) -> Result<TokEnv> {
    let Vocabulary { mut words, special, end_of_generation } = vocabulary;
    let is_special = |id: u32| special.binary_search(&id).is_ok() || end_of_generation.binary_search(&id).is_ok();
    for (id, word) in (0..).zip(&mut words) {
        if is_special(id) && !word.is_empty() {
            // Text never has this byte, so no grammar matches the token by accident; `<name>` in a grammar does.
            word.insert(0, TokTrie::SPECIAL_TOKEN_MARKER);
        }
        if word.len() > MAX_TOKEN_BYTES {
            word.clear();
        }
    }
    let num_bytes: usize = words.iter().map(Vec::len).sum();
    if num_bytes > MAX_VOCABULARY_BYTES || words.len() >= 1 << 22 {
        let error = format!("a vocabulary of {num_bytes} bytes, at most {MAX_VOCABULARY_BYTES} can be constrained");
        return Err(GrammarError(error));
    }
    let num_tokens = u32::try_from(words.len()).unwrap_or(u32::MAX);
    let trie = TokTrie::from(&TokRxInfo::new(num_tokens, INVALID_TOKEN), &words);
    let ends: Vec<u32> = end_of_generation.into_iter().filter(|&id| id < num_tokens).collect();
    let trie = if ends.is_empty() { trie } else { trie.with_eos_tokens(&ends) };
    Ok(Arc::new(Environment { trie, encode: SendWrapper::new(encode) }))
}
