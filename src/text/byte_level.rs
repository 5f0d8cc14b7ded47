//! Byte-level BPE: the `gpt2` kind of vocabulary. The work is done by the `tokenizers` crate.
//!
//! Such a vocabulary writes every byte as one printable character, so its tokens are text even where they hold half
//! a character.

use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::{Model, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

use super::pre_tokenizer::Family;
use super::vocab::{TokenKind, Vocab};
use crate::{Error, Result};

/// Words whose tokens are remembered; a chat repeats most of its words.
const CACHED_WORDS: usize = 4096;

/// Pre-tokeniser and merges.
pub(super) struct ByteLevel {
    words: Sequence,
    merges: BPE,
}

impl ByteLevel {
    /// Builds the merge table.
    ///
    /// # Errors
    /// `corrupt_model` when a merge is not two tokens that make a third.
    pub(super) fn new<'a>(vocab: &Vocab, merges: impl Iterator<Item = &'a str>, family: &Family) -> Result<Self> {
        let mut pairs = Vec::new();
        for (rank, merge) in merges.enumerate() {
            pairs.extend(pair(vocab, rank, merge)?);
        }
        // Text is never a control token, whatever it reads.
        let tokens: tokenizers::models::bpe::Vocab = vocab
            .ids()
            .filter(|&id| vocab.kind(id) != TokenKind::Control)
            .filter_map(|id| Some((vocab.text(id)?.to_owned(), id)))
            .filter(|(text, _)| !text.is_empty())
            .collect();
        let merges = BPE::builder()
            .vocab_and_merges(tokens, pairs)
            .ignore_merges(family.ignore_merges)
            .cache_capacity(CACHED_WORDS)
            .build()
            .map_err(|error| Error::CorruptModel(format!("tokenizer.ggml.merges: {error}")))?;
        Ok(Self { words: family.build()?, merges })
    }

    /// Appends the tokens of a text without special tokens. Bytes that the vocabulary does not have are left out,
    /// as every implementation of such vocabularies does.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let failed = |error| Error::BadRequest(format!("the text cannot be tokenised: {error}"));
        let mut words = PreTokenizedString::from(text);
        self.words.pre_tokenize(&mut words).map_err(failed)?;
        for (word, ..) in words.get_splits(OffsetReferential::Normalized, OffsetType::None) {
            ids.extend(self.merges.tokenize(word).map_err(failed)?.iter().map(|token| token.id));
        }
        Ok(())
    }
}

/// One merge, checked. `None` when it leads to or from a control token: no text may.
fn pair(vocab: &Vocab, rank: usize, merge: &str) -> Result<Option<(String, String)>> {
    let corrupt = |why: String| Error::CorruptModel(format!("tokenizer.ggml.merges: merge {rank}, {merge:?}, {why}"));
    // A token may begin with a space, though not in a proper byte-level vocabulary.
    let border = merge.char_indices().skip(1).find(|&(_, c)| c == ' ').map(|(index, _)| index);
    let (left, right) = border
        .map(|index| (&merge[..index], &merge[index + 1..]))
        .ok_or_else(|| corrupt("is not two tokens".to_owned()))?;
    let joined = format!("{left}{right}");
    let mut control = false;
    for text in [left, right, &joined] {
        let id = vocab.id(text).ok_or_else(|| corrupt(format!("needs {text:?}, which is not a token")))?;
        control |= vocab.kind(id) == TokenKind::Control;
    }
    Ok((!control).then(|| (left.to_owned(), right.to_owned())))
}

/// The bytes that a token of such a vocabulary stands for. Characters outside the alphabet stand for themselves.
pub(super) fn decode(text: &str, bytes: &mut Vec<u8>) {
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// The byte that a character of the alphabet stands for: printable Latin-1 is itself, and the 68 other bytes are, in
/// order, the characters from U+0100 on.
fn byte_of(c: char) -> Option<u8> {
    const CONTROLS: u32 = 33;
    const UPPER_CONTROLS: u32 = 34;
    let code = u32::from(c);
    let byte = match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => code,
        0x100..=0x143 => match code - 0x100 {
            low if low < CONTROLS => low,
            high if high < CONTROLS + UPPER_CONTROLS => 0x7F + high - CONTROLS,
            _ => 0xAD,
        },
        _ => return None,
    };
    u8::try_from(byte).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn the_alphabet_is_the_one_that_the_crate_writes() {
        let alphabet = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
        let bytes: BTreeSet<u8> = alphabet.iter().filter_map(|&c| super::byte_of(c)).collect();
        assert_eq!((alphabet.len(), bytes.len()), (256, 256));
        for text in ["héllo\n\t \u{7f}\u{ad}\u{a0}", "\u{0}\u{1f} ~ÿ€😀"] {
            let mut words = tokenizers::PreTokenizedString::from(text);
            let step = tokenizers::pre_tokenizers::byte_level::ByteLevel::new(false, false, false);
            tokenizers::PreTokenizer::pre_tokenize(&step, &mut words).expect("byte level never fails");
            let splits = words.get_splits(tokenizers::OffsetReferential::Normalized, tokenizers::OffsetType::None);
            let mut bytes = Vec::new();
            splits.iter().for_each(|(word, ..)| super::decode(word, &mut bytes));
            assert_eq!(bytes, text.as_bytes());
        }
    }
}
