//! The tokens of a model: their texts, kinds and scores, held once and compactly.

use crate::{Error, Result};

/// What a token stands for: `tokenizer.ggml.token_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Ordinary text.
    Normal,
    /// Stands for text that the vocabulary cannot express.
    Unknown,
    /// Steers the model and is never shown.
    Control,
    /// Text that is always one token, whatever the merges say.
    UserDefined,
    /// Takes part in nothing.
    Unused,
    /// One byte, written `<0x0A>`.
    Byte,
}

impl TokenKind {
    fn from_gguf(value: i32) -> Option<Self> {
        Some(match value {
            1 => TokenKind::Normal,
            2 => TokenKind::Unknown,
            3 => TokenKind::Control,
            4 => TokenKind::UserDefined,
            0 | 5 => TokenKind::Unused,
            6 => TokenKind::Byte,
            _ => return None,
        })
    }
}

/// All tokens of a model. A quarter of a million of them take about 5 MB: one string holds every text, and lookup
/// is a binary search over ids sorted by text, which no chosen vocabulary can slow down.
#[derive(Debug)]
pub(super) struct Vocab {
    /// Every token's text, one after the other.
    texts: String,
    /// End of each token's text in `texts`.
    ends: Vec<u32>,
    kinds: Vec<TokenKind>,
    /// One per token, or empty when the model has none.
    scores: Vec<f32>,
    /// Ids of the tokens that are not empty, ascending by text.
    sorted: Vec<u32>,
}

impl Vocab {
    /// Checks and packs a vocabulary.
    ///
    /// # Errors
    /// `corrupt_model` when there is no token, when a token occurs twice, when types or scores are not one per
    /// token or hold impossible values.
    pub(super) fn new<'a>(
        tokens: impl Iterator<Item = &'a str>,
        types: Option<&[i32]>,
        scores: Option<&[f32]>,
    ) -> Result<Self> {
        let mut texts = String::new();
        let mut ends = Vec::new();
        for token in tokens {
            texts.push_str(token);
            ends.push(u32::try_from(texts.len()).map_err(|_| {
                Error::CorruptModel(format!("tokenizer.ggml.tokens: more than {} bytes of text", u32::MAX))
            })?);
        }
        texts.shrink_to_fit();
        ends.shrink_to_fit();
        let num_tokens = ends.len();
        if num_tokens == 0 {
            return Err(Error::CorruptModel("tokenizer.ggml.tokens: no tokens".to_owned()));
        }
        check_length("token_type", types.map(<[_]>::len), num_tokens)?;
        check_length("scores", scores.map(<[_]>::len), num_tokens)?;
        let kinds = match types {
            None => vec![TokenKind::Normal; num_tokens],
            Some(types) => types.iter().enumerate().map(kind).collect::<Result<_>>()?,
        };
        let scores = scores.unwrap_or_default();
        if let Some(id) = scores.iter().position(|score| score.is_nan()) {
            return Err(Error::CorruptModel(format!("tokenizer.ggml.scores: the score of token {id} is not a number")));
        }
        // Adding zero turns -0 into 0, so that comparing bits is comparing scores.
        let scores = scores.iter().map(|score| score + 0.0).collect();
        let mut vocab = Self { texts, ends, kinds, scores, sorted: Vec::new() };
        vocab.sort()?;
        Ok(vocab)
    }

    fn sort(&mut self) -> Result<()> {
        let mut sorted: Vec<u32> = (0u32..).take(self.len()).filter(|&id| !self.text_of(id).is_empty()).collect();
        sorted.sort_unstable_by(|&a, &b| self.text_of(a).cmp(self.text_of(b)));
        if let Some(pair) = sorted.windows(2).find(|pair| self.text_of(pair[0]) == self.text_of(pair[1])) {
            let (first, second) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            return Err(Error::CorruptModel(format!(
                "tokenizer.ggml.tokens: {:?} is both token {first} and token {second}",
                self.text_of(first)
            )));
        }
        self.sorted = sorted;
        Ok(())
    }

    /// Number of tokens.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of a token as the file writes it, or `None` for an id out of range.
    pub(super) fn text(&self, id: u32) -> Option<&str> {
        ((id as usize) < self.len()).then(|| self.text_of(id))
    }

    fn text_of(&self, id: u32) -> &str {
        let index = id as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.texts[start as usize..self.ends[index] as usize]
    }

    /// The token whose text is exactly this.
    pub(super) fn id(&self, text: &str) -> Option<u32> {
        let found = self.sorted.binary_search_by(|&id| self.text_of(id).as_bytes().cmp(text.as_bytes())).ok()?;
        Some(self.sorted[found])
    }

    /// The kind of a token; an id out of range is unused.
    pub(super) fn kind(&self, id: u32) -> TokenKind {
        self.kinds.get(id as usize).copied().unwrap_or(TokenKind::Unused)
    }

    /// Overrides what the file says about a token; an id out of range changes nothing.
    pub(super) fn set_kind(&mut self, id: u32, kind: TokenKind) {
        if let Some(slot) = self.kinds.get_mut(id as usize) {
            *slot = kind;
        }
    }

    /// The score of a token: the higher, the earlier it is merged.
    pub(super) fn score(&self, id: u32) -> f32 {
        self.scores.get(id as usize).copied().unwrap_or(0.0)
    }

    /// All ids, ascending.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        (0u32..).take(self.len())
    }
}

fn kind((id, &value): (usize, &i32)) -> Result<TokenKind> {
    TokenKind::from_gguf(value).ok_or_else(|| {
        Error::CorruptModel(format!("tokenizer.ggml.token_type: token {id} is of type {value}, 0 to 6 exist"))
    })
}

fn check_length(key: &str, found: Option<usize>, num_tokens: usize) -> Result<()> {
    match found {
        Some(found) if found != num_tokens => {
            Err(Error::CorruptModel(format!("tokenizer.ggml.{key}: {found} entries for {num_tokens} tokens")))
        }
        _ => Ok(()),
    }
}
