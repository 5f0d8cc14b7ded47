//! Text to token ids and back.

use std::borrow::Cow;

use super::byte_level::{self, ByteLevel};
use super::pre_tokenizer::{DEFAULT, Family};
use super::sentencepiece::{SPACE, SentencePiece};
use super::special::{Fragment, Roles, Splitter};
use super::vocab::{TokenKind, Vocab};
use crate::gguf::Metadata;
use crate::{Error, Result};

enum Algorithm {
    ByteLevel(Box<ByteLevel>),
    SentencePiece(Box<SentencePiece>),
}

/// A model's tokeniser, as its file describes it.
///
/// Text is turned into the ids that llama.cpp gives. One thing is stricter: without `parse_special` no text becomes
/// a control token, not even where the vocabulary would lead there.
pub struct Tokenizer {
    vocab: Vocab,
    algorithm: Algorithm,
    roles: Roles,
    splitter: Splitter,
    add_bos: bool,
    add_eos: bool,
    /// A space is put before text at the start and after special tokens.
    add_space_prefix: bool,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { vocab, roles, .. } = self;
        f.debug_struct("Tokenizer").field("vocab_size", &vocab.len()).field("roles", roles).finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Reads the tokeniser from a model's metadata.
    ///
    /// # Errors
    /// `unsupported_model` for a kind or pre-tokeniser that is not supported, naming those that are;
    /// `corrupt_model` when the vocabulary contradicts itself.
    pub fn from_metadata(metadata: &Metadata) -> Result<Self> {
        let model = metadata.str("tokenizer.ggml.model")?;
        let sentencepiece = match model {
            "llama" => true,
            "gpt2" => false,
            _ => {
                return Err(Error::UnsupportedModel(format!(
                    "tokenizer.ggml.model: the tokenizer {model:?} is not supported; these are: gpt2, llama"
                )));
            }
        };
        let scores = metadata.opt_f32s("tokenizer.ggml.scores")?;
        let mut vocab = Vocab::new(
            metadata.strings("tokenizer.ggml.tokens")?.iter(),
            metadata.opt_i32s("tokenizer.ggml.token_type")?.as_deref(),
            scores.as_deref().filter(|_| sentencepiece),
        )?;
        if sentencepiece && scores.is_none() {
            return Err(Error::CorruptModel("tokenizer.ggml.scores is missing; a llama vocabulary needs it".into()));
        }
        let roles = Roles::new(metadata, &mut vocab, sentencepiece)?;
        let splitter = Splitter::new(&vocab);
        let (algorithm, default_add_bos) = if sentencepiece {
            (Algorithm::SentencePiece(Box::new(SentencePiece::new(&vocab, roles.unknown))), true)
        } else {
            let family = Family::named(metadata.opt_str("tokenizer.ggml.pre")?.unwrap_or(DEFAULT))?;
            let merges = metadata.strings("tokenizer.ggml.merges")?;
            (Algorithm::ByteLevel(Box::new(ByteLevel::new(&vocab, merges.iter(), family)?)), family.add_bos)
        };
        let flag = |name: &str| metadata.opt_bool(&format!("tokenizer.ggml.{name}"));
        let add_bos = flag("add_bos_token")?.unwrap_or(default_add_bos);
        let add_eos = flag("add_eos_token")?.unwrap_or(false);
        for (add, id, name) in [(add_bos, roles.bos, "bos"), (add_eos, roles.eos, "eos")] {
            if add && id.is_none() {
                return Err(Error::CorruptModel(format!(
                    "tokenizer.ggml.add_{name}_token is true, but there is no tokenizer.ggml.{name}_token_id"
                )));
            }
        }
        let add_space_prefix = sentencepiece && flag("add_space_prefix")?.unwrap_or(true);
        Ok(Self { vocab, algorithm, roles, splitter, add_bos, add_eos, add_space_prefix })
    }

    /// Turns text into ids.
    ///
    /// `add_special` puts BOS before and EOS after, as far as the model wants them. `parse_special` reads the texts
    /// of control tokens as those tokens; without it they are plain text, which is right for whatever a user typed.
    /// User-defined tokens are found either way. For a rendered chat template use [`Tokenizer::encode_prompt`].
    ///
    /// # Errors
    /// `bad_request` when the vocabulary cannot express a character.
    pub fn encode(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<u32>> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 2);
        ids.extend(self.roles.bos.filter(|_| add_special && self.add_bos));
        self.encode_fragments(text, parse_special, true, &mut ids)?;
        ids.extend(self.roles.eos.filter(|_| add_special && self.add_eos));
        Ok(ids)
    }

    /// Turns text that goes on from another into ids: as [`Tokenizer::encode`], and no space is put before it.
    ///
    /// # Errors
    /// `bad_request` when the vocabulary cannot express a character.
    pub fn encode_within(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 2);
        self.encode_fragments(text, false, false, &mut ids)?;
        Ok(ids)
    }

    fn encode_fragments(
        &self,
        text: &str,
        parse_special: bool,
        mut after_special: bool,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        for fragment in self.splitter.split(&self.vocab, text, parse_special) {
            match fragment {
                Fragment::Token(id) => ids.push(id),
                Fragment::Text(text) => match &self.algorithm {
                    Algorithm::ByteLevel(model) => model.encode(text, ids)?,
                    Algorithm::SentencePiece(model) => {
                        model.encode(&self.vocab, text, self.add_space_prefix && after_special, ids)?;
                    }
                },
            }
            after_special = matches!(fragment, Fragment::Token(_));
        }
        Ok(())
    }

    /// Turns a prompt, such as a rendered chat template, into the ids to start generation from: control tokens are
    /// parsed; BOS comes first if the model wants it, once, whether or not the text begins with it; EOS is never
    /// added, because an answer is to follow.
    ///
    /// # Errors
    /// `bad_request` when the vocabulary cannot express a character.
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids = self.encode(text, false, true)?;
        if let Some(bos) = self.roles.bos.filter(|&bos| self.add_bos && ids.first() != Some(&bos)) {
            ids.insert(0, bos);
        }
        Ok(ids)
    }

    /// Turns ids into text: the inverse of [`Tokenizer::encode`]. Bytes that are not UTF-8 become U+FFFD, ids out of
    /// range nothing. `skip_special` leaves out control and unknown tokens.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> String {
        let mut bytes = Vec::new();
        let mut at_start = true;
        for &id in ids {
            self.append_token(id, skip_special, &mut at_start, &mut bytes);
        }
        match String::from_utf8_lossy(&bytes) {
            Cow::Owned(text) => text,
            Cow::Borrowed(_) => String::from_utf8(bytes).unwrap_or_default(),
        }
    }

    /// Appends what a token adds to a text. `after_special` says whether it comes first or after a special token,
    /// where encoding puts a space that decoding takes away again; it is updated.
    pub(super) fn append_token(&self, id: u32, skip_special: bool, after_special: &mut bool, bytes: &mut Vec<u8>) {
        if skip_special && self.is_special(id) {
            *after_special = true;
            return;
        }
        let start = bytes.len();
        self.append_bytes(id, bytes);
        if matches!(self.vocab.kind(id), TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined) {
            *after_special = true;
        } else if bytes.len() > start {
            if self.add_space_prefix && *after_special && bytes[start] == b' ' {
                bytes.remove(start);
            }
            *after_special = false;
        }
    }

    fn append_bytes(&self, id: u32, bytes: &mut Vec<u8>) {
        let text = self.vocab.text(id).unwrap_or_default();
        match (self.vocab.kind(id), &self.algorithm) {
            (TokenKind::Unused, _) => {}
            (TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined, _) => bytes.extend(text.as_bytes()),
            (TokenKind::Byte, _) if byte_of(text).is_some() => bytes.extend(byte_of(text)),
            (_, Algorithm::ByteLevel(_)) => byte_level::decode(text, bytes),
            (_, Algorithm::SentencePiece(_)) => bytes.extend(text.replace(SPACE, " ").as_bytes()),
        }
    }

    /// The bytes that a token stands for, special tokens as they are written; `None` for an id out of range.
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.vocab.text(id)?;
        let mut bytes = Vec::new();
        self.append_bytes(id, &mut bytes);
        Some(bytes)
    }

    /// The token as the file writes it, such as `<|im_end|>`; `None` for an id out of range.
    pub fn token_text(&self, id: u32) -> Option<&str> {
        self.vocab.text(id)
    }

    /// Whether a token is left out of what a reader sees: control tokens and the unknown token.
    pub fn is_special(&self, id: u32) -> bool {
        matches!(self.vocab.kind(id), TokenKind::Control | TokenKind::Unknown)
    }

    /// Whether text that comes after this token starts anew, so that its leading space is not part of it.
    pub(super) fn splits_text(&self, id: u32) -> bool {
        self.is_special(id) || self.vocab.kind(id) == TokenKind::UserDefined
    }

    /// Number of tokens.
    pub fn vocab_size(&self) -> usize {
        self.vocab.len()
    }

    /// The token that starts a text.
    pub fn bos(&self) -> Option<u32> {
        self.roles.bos
    }

    /// The token that ends a text.
    pub fn eos(&self) -> Option<u32> {
        self.roles.eos
    }

    /// The token that fills up batches; some templates name it.
    pub fn padding(&self) -> Option<u32> {
        self.roles.padding
    }

    /// Whether generation ends with this token: EOS, or any other end of a turn that the vocabulary has.
    pub fn is_end_of_generation(&self, id: u32) -> bool {
        self.roles.ends_generation(id)
    }

    /// All tokens that end generation, ascending.
    pub fn end_of_generation(&self) -> &[u32] {
        self.roles.end_of_generation()
    }
}

/// The byte of a byte token such as `<0x0A>`.
fn byte_of(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}
