//! Tokens with a meaning of their own: which ones a vocabulary has, and where a text names them.

use super::vocab::{TokenKind, Vocab};
use crate::gguf::Metadata;
use crate::{Error, Result};

/// Texts that end a turn in some family of models. A file marks one of them as its `eos`; a model often ends with
/// another, so all that the vocabulary has count, as in llama.cpp.
const END_OF_GENERATION: [&str; 23] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|fim_pad|>",
];

/// Roles that code models mark by text alone. The first of each row that the vocabulary has is a control token; of
/// the rows with `true` it ends generation, because nothing useful follows it.
const FILL_IN_ROLES: [(&str, &[&str], bool); 6] = [
    ("fim_pre", &["<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>"], false),
    ("fim_suf", &["<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>"], false),
    ("fim_mid", &["<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>"], false),
    ("fim_pad", &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"], true),
    ("fim_rep", &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"], true),
    ("fim_sep", &["<|file_sep|>"], true),
];

/// Markers of the harmony format that have to be seen by whoever parses the answer.
const ALWAYS_SHOWN: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// The tokens of a vocabulary that have a role.
#[derive(Debug)]
pub(super) struct Roles {
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) unknown: Option<u32>,
    pub(super) padding: Option<u32>,
    /// Ascending.
    end_of_generation: Vec<u32>,
}

impl Roles {
    /// Reads the roles from the file, adds those that only the texts tell, and corrects the kinds of their tokens.
    ///
    /// # Errors
    /// `corrupt_model` when a role names an id out of range.
    pub(super) fn new(metadata: &Metadata, vocab: &mut Vocab, sentencepiece: bool) -> Result<Self> {
        let given = |name: &str| role(metadata, vocab, name);
        // Files of the llama kind may leave out the three ids that SentencePiece gives by default.
        let default = |id: u32| Some(id).filter(|&id| sentencepiece && (id as usize) < vocab.len());
        let bos = given("bos")?.or_else(|| default(1));
        let eos = given("eos")?.or_else(|| default(2));
        let unknown = given("unknown")?.or_else(|| default(0));
        let padding = given("padding")?;
        let mut ends: Vec<u32> = [eos, given("eot")?, given("eom")?].into_iter().flatten().collect();
        for (name, texts, ends_generation) in FILL_IN_ROLES {
            let id = match role(metadata, vocab, name)? {
                Some(id) => Some(id),
                None => {
                    let found = texts.iter().find_map(|text| vocab.id(text));
                    found.inspect(|&id| vocab.set_kind(id, TokenKind::Control))
                }
            };
            ends.extend(id.filter(|_| ends_generation));
        }
        for text in END_OF_GENERATION {
            ends.extend(vocab.id(text).inspect(|&id| vocab.set_kind(id, TokenKind::Control)));
        }
        for text in ALWAYS_SHOWN {
            vocab.id(text).inspect(|&id| vocab.set_kind(id, TokenKind::UserDefined));
        }
        let has = |text| vocab.id(text).is_some_and(|id| ends.contains(&id));
        let calls = has("<|call|>") || has("<|calls|>");
        let not_end = [
            // In these formats a message ends here, and another one of the same turn follows.
            ("<|end|>", TokenKind::UserDefined, calls && (has("<|return|>") || has("<|flush|>"))),
            // Here it is the HTML tag.
            ("</s>", TokenKind::Normal, has("<|tool_response>")),
        ];
        for (text, kind, applies) in not_end {
            if let Some(id) = vocab.id(text).filter(|_| applies) {
                ends.retain(|&end| end != id);
                vocab.set_kind(id, kind);
            }
        }
        ends.sort_unstable();
        ends.dedup();
        Ok(Self { bos, eos, unknown, padding, end_of_generation: ends })
    }

    pub(super) fn ends_generation(&self, id: u32) -> bool {
        self.end_of_generation.binary_search(&id).is_ok()
    }

    /// All tokens that end generation, ascending.
    pub(super) fn end_of_generation(&self) -> &[u32] {
        &self.end_of_generation
    }
}

fn role(metadata: &Metadata, vocab: &Vocab, name: &str) -> Result<Option<u32>> {
    let key = format!("tokenizer.ggml.{name}_token_id");
    match metadata.opt_u32(&key)? {
        Some(id) if id as usize >= vocab.len() => {
            Err(Error::CorruptModel(format!("{key}: token {id} of a vocabulary of {}", vocab.len())))
        }
        found => Ok(found),
    }
}

/// A stretch of a text.
#[derive(Debug, PartialEq)]
pub(super) enum Fragment<'a> {
    /// Text to be tokenised; never empty.
    Text(&'a str),
    /// A token that the text names.
    Token(u32),
}

/// Finds tokens that a text names.
#[derive(Debug)]
pub(super) struct Splitter {
    /// Tokens that split a text, by length of their text in bytes, longest first; ids ascending by text.
    groups: Vec<(usize, Vec<u32>)>,
    /// Whether any of them begins with this byte.
    first_bytes: [bool; 256],
}

impl Splitter {
    pub(super) fn new(vocab: &Vocab) -> Self {
        let splits = |kind| matches!(kind, TokenKind::Control | TokenKind::UserDefined | TokenKind::Unknown);
        let text = |&id: &u32| vocab.text(id).unwrap_or_default();
        let mut ids: Vec<u32> = vocab.ids().filter(|&id| splits(vocab.kind(id)) && !text(&id).is_empty()).collect();
        ids.sort_unstable_by(|a, b| text(b).len().cmp(&text(a).len()).then(text(a).cmp(text(b))));
        let mut first_bytes = [false; 256];
        for id in &ids {
            first_bytes[usize::from(text(id).as_bytes()[0])] = true;
        }
        let groups = ids.chunk_by(|a, b| text(a).len() == text(b).len());
        let groups = groups.map(|group| (text(&group[0]).len(), group.to_vec())).collect();
        Self { groups, first_bytes }
    }

    /// Splits a text at user-defined tokens and, if `special`, at control tokens too. Longer tokens are found first
    /// wherever they are, as in llama.cpp; among tokens of one length the leftmost wins.
    pub(super) fn split<'a>(&self, vocab: &Vocab, text: &'a str, special: bool) -> Vec<Fragment<'a>> {
        let mut fragments = vec![Fragment::Text(text)];
        for (len, ids) in &self.groups {
            if text.len() < *len || !(special || ids.iter().any(|&id| vocab.kind(id) == TokenKind::UserDefined)) {
                continue;
            }
            let mut split = Vec::with_capacity(fragments.len());
            for fragment in fragments {
                match fragment {
                    Fragment::Text(text) => self.split_at_group(vocab, text, *len, ids, special, &mut split),
                    token @ Fragment::Token(_) => split.push(token),
                }
            }
            fragments = split;
        }
        fragments.retain(|fragment| *fragment != Fragment::Text(""));
        fragments
    }

    fn split_at_group<'a>(
        &self,
        vocab: &Vocab,
        text: &'a str,
        len: usize,
        ids: &[u32],
        special: bool,
        fragments: &mut Vec<Fragment<'a>>,
    ) {
        let (mut start, mut position) = (0, 0);
        while position + len <= text.len() {
            let found = self.first_bytes[usize::from(text.as_bytes()[position])]
                .then(|| text.get(position..position + len))
                .flatten()
                .and_then(|piece| ids.binary_search_by(|&id| vocab.text(id).unwrap_or_default().cmp(piece)).ok())
                .map(|index| ids[index])
                .filter(|&id| special || vocab.kind(id) == TokenKind::UserDefined);
            if let Some(id) = found {
                fragments.extend((start < position).then(|| Fragment::Text(&text[start..position])));
                fragments.push(Fragment::Token(id));
                position += len;
                start = position;
            } else {
                position += 1;
            }
        }
        fragments.extend((start < text.len()).then(|| Fragment::Text(&text[start..])));
    }
}
