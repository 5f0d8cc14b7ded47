//! SentencePiece's BPE: pairs of neighbours are merged, best score first, and what no token covers becomes bytes.
//!
//! The `tokenizers` crate can run such a vocabulary only as half a million explicit merges, in hash maps that hold
//! every text three times: ten times the memory. The scores say the same without any table, so this merges by looking
//! up the joined text, as llama.cpp does.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::vocab::{TokenKind, Vocab};
use crate::{Error, Result};

/// How SentencePiece writes a space inside a token.
pub(super) const SPACE: char = '\u{2581}';

const NONE: u32 = u32::MAX;

/// The byte tokens of a vocabulary, and what to use where there is none.
#[derive(Debug)]
pub(super) struct SentencePiece {
    /// The token that stands for each byte.
    bytes: [Option<u32>; 256],
    unknown: Option<u32>,
}

/// A stretch of the text that is one token so far, linked to its neighbours. Merged away when `len` is 0.
#[derive(Clone, Copy)]
struct Symbol {
    start: u32,
    len: u32,
    previous: u32,
    next: u32,
}

/// Two neighbours that could become one token of `len` bytes.
#[derive(PartialEq)]
struct Bigram {
    score: f32,
    left: u32,
    right: u32,
    len: u32,
}

impl Eq for Bigram {}

impl Ord for Bigram {
    /// The greatest is merged first: the best score, then the leftmost.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.left.cmp(&self.left)).then(other.len.cmp(&self.len))
    }
}

impl PartialOrd for Bigram {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl SentencePiece {
    pub(super) fn new(vocab: &Vocab, unknown: Option<u32>) -> Self {
        let bytes = std::array::from_fn(|byte| {
            let plain = u8::try_from(byte).ok().filter(u8::is_ascii).map(|byte| char::from(byte).to_string());
            vocab.id(&format!("<0x{byte:02X}>")).or_else(|| vocab.id(&plain?))
        });
        Self { bytes, unknown }
    }

    /// Appends the tokens of a text without special tokens. `space_prefix` puts a space before it.
    ///
    /// # Errors
    /// `bad_request` when a character has no token, no byte tokens and there is no unknown token.
    pub(super) fn encode(&self, vocab: &Vocab, text: &str, space_prefix: bool, ids: &mut Vec<u32>) -> Result<()> {
        let mut escaped = String::with_capacity(text.len() + SPACE.len_utf8());
        if space_prefix {
            escaped.push(SPACE);
        }
        escaped.extend(text.chars().map(|c| if c == ' ' { SPACE } else { c }));
        let mut symbols = characters(&escaped)?;
        merge(vocab, &escaped, &mut symbols);
        for symbol in symbols.iter().filter(|symbol| symbol.len > 0) {
            let piece = slice(&escaped, symbol.start, symbol.len);
            match lookup(vocab, piece) {
                Some(id) => ids.push(id),
                None => self.push_bytes(piece, ids)?,
            }
        }
        Ok(())
    }

    fn push_bytes(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        for byte in piece.bytes() {
            let id = self.bytes[usize::from(byte)].or(self.unknown);
            ids.push(id.ok_or_else(|| {
                Error::BadRequest(format!("the model's vocabulary has no token for {piece:?}, nor for its bytes"))
            })?);
        }
        Ok(())
    }
}

/// The token of a stretch of text. Text is never a control token, whatever it reads: those come from
/// [`super::special`] alone.
fn lookup(vocab: &Vocab, text: &str) -> Option<u32> {
    vocab.id(text).filter(|&id| !matches!(vocab.kind(id), TokenKind::Control | TokenKind::Unknown))
}

fn slice(text: &str, start: u32, len: u32) -> &str {
    &text[start as usize..(start + len) as usize]
}

fn characters(text: &str) -> Result<Vec<Symbol>> {
    let too_long = || Error::BadRequest(format!("a text of {} bytes; {} are allowed", text.len(), u32::MAX));
    if u32::try_from(text.len()).is_err() {
        return Err(too_long());
    }
    let mut symbols = Vec::with_capacity(text.len());
    let (mut start, mut index) = (0, 0);
    for c in text.chars() {
        let len = u32::try_from(c.len_utf8()).map_err(|_| too_long())?;
        symbols.push(Symbol { start, len, previous: if index == 0 { NONE } else { index - 1 }, next: index + 1 });
        start += len;
        index += 1;
    }
    if let Some(last) = symbols.last_mut() {
        last.next = NONE;
    }
    Ok(symbols)
}

fn merge(vocab: &Vocab, text: &str, symbols: &mut [Symbol]) {
    let mut queue = BinaryHeap::new();
    let add = |symbols: &[Symbol], queue: &mut BinaryHeap<Bigram>, left: u32, right: u32| {
        if left == NONE || right == NONE {
            return;
        }
        let len = symbols[left as usize].len + symbols[right as usize].len;
        if let Some(id) = lookup(vocab, slice(text, symbols[left as usize].start, len)) {
            queue.push(Bigram { score: vocab.score(id), left, right, len });
        }
    };
    for symbol in symbols.iter().skip(1) {
        add(symbols, &mut queue, symbol.previous, symbol.previous + 1);
    }
    while let Some(bigram) = queue.pop() {
        let (left, right) = (symbols[bigram.left as usize], symbols[bigram.right as usize]);
        // Either side may have been merged since this pair was queued.
        if left.len == 0 || right.len == 0 || left.len + right.len != bigram.len {
            continue;
        }
        symbols[bigram.left as usize].len = bigram.len;
        symbols[bigram.left as usize].next = right.next;
        symbols[bigram.right as usize].len = 0;
        if right.next != NONE {
            symbols[right.next as usize].previous = bigram.left;
        }
        add(symbols, &mut queue, left.previous, bigram.left);
        add(symbols, &mut queue, bigram.left, right.next);
    }
}
