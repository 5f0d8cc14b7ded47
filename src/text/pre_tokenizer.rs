//! How a byte-level vocabulary cuts text into words before merging: `tokenizer.ggml.pre`.

use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::{Error, Result};

/// A family of pre-tokenisers.
pub(super) struct Family {
    /// The values of `tokenizer.ggml.pre` that mean it.
    names: &'static [&'static str],
    /// Applied one after the other: each cuts what the ones before left, at the borders of its matches.
    patterns: &'static [&'static str],
    /// A word that is a token is that token, even if no merges lead to it.
    pub(super) ignore_merges: bool,
    /// Whether prompts start with BOS when the file does not say.
    pub(super) add_bos: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// What a file without `tokenizer.ggml.pre` gets.
pub(super) const DEFAULT: &str = "default";

const FAMILIES: [Family; 9] = [
    Family {
        names: &[DEFAULT],
        patterns: &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
        ignore_merges: false,
        add_bos: false,
    },
    Family {
        names: &[
            "gpt-2",
            "phi-2",
            "olmo",
            "mpt",
            "jais",
            "trillion",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "exaone4",
            "granite-docling",
        ],
        patterns: &[GPT2],
        ignore_merges: false,
        add_bos: false,
    },
    Family {
        names: &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"],
        patterns: &[r"\p{N}", GPT2],
        ignore_merges: false,
        add_bos: false,
    },
    Family {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"],
        patterns: &[LLAMA3],
        ignore_merges: true,
        add_bos: true,
    },
    Family { names: &["dbrx", "smaug-bpe"], patterns: &[LLAMA3], ignore_merges: false, add_bos: false },
    Family {
        names: &["qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2", "kormo"],
        patterns: &[QWEN2],
        ignore_merges: false,
        add_bos: false,
    },
    Family { names: &["qwen35"], patterns: &[QWEN35], ignore_merges: false, add_bos: false },
    Family { names: &["tekken"], patterns: &[TEKKEN], ignore_merges: true, add_bos: true },
    Family { names: &["gpt-4o", "llama4", "kanana2"], patterns: &[GPT4O], ignore_merges: false, add_bos: false },
];

impl Family {
    /// The family that a file names.
    ///
    /// # Errors
    /// `unsupported_model` with the names there are.
    pub(super) fn named(name: &str) -> Result<&'static Family> {
        FAMILIES.iter().find(|family| family.names.contains(&name)).ok_or_else(|| {
            let known: Vec<&str> = FAMILIES.iter().flat_map(|family| family.names).copied().collect();
            Error::UnsupportedModel(format!(
                "tokenizer.ggml.pre: the pre-tokenizer {name:?} is not supported; these are: {}",
                known.join(", ")
            ))
        })
    }

    /// Cuts into words and writes each byte as one character of the byte-level alphabet.
    pub(super) fn build(&self) -> Result<Sequence> {
        let mut steps: Vec<PreTokenizerWrapper> = Vec::with_capacity(self.patterns.len() + 1);
        for pattern in self.patterns {
            let pattern = SplitPattern::Regex((*pattern).to_owned());
            let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
            steps.push(split.map_err(|error| Error::UnsupportedModel(format!("pre-tokenizer: {error}")))?.into());
        }
        steps.push(ByteLevel::new(false, false, false).into());
        Ok(Sequence::new(steps))
    }
}
