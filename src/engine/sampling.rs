//! Sampling parameters as people know them from OpenAI's API, and what they become for the GPU, which samples.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::rc::Rc;

use super::Request;
use crate::model::{LogitEdit, RowSampling};
use crate::{Error, Result};

/// The most logits that one request may bias.
pub const MAX_LOGIT_BIAS: usize = 1024;

/// Below this temperature the most probable token is taken: dividing by less could overflow.
const GREEDY_BELOW: f32 = 1e-3;

/// A lower repetition penalty counts as this one: dividing by less could overflow, and a row that is not finite ends its whole step.
const LEAST_REPETITION_PENALTY: f32 = 1e-3;

/// The bias of a forbidden token: no logit comes near it, and unlike infinity it leaves NaN checks their meaning.
const FORBIDDEN: f32 = -1e30;

/// How tokens are drawn. The default is OpenAI's: temperature 1 over the whole vocabulary.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingParams {
    /// 0 to 2; 0 always takes the most probable token.
    pub temperature: f32,
    /// Draw among this many most probable tokens; 0 means all.
    pub top_k: u32,
    /// 0 to 1: draw among the most probable tokens that together reach this probability; 1 means all.
    pub top_p: f32,
    /// 0 to 1: drop tokens less probable than this share of the most probable one.
    pub min_p: f32,
    /// Above 0 to 2: above 1 makes tokens of the prompt and the answer less likely; 1 means none.
    pub repetition_penalty: f32,
    /// -2 to 2: taken from a token's logit once per time it is in the answer.
    pub frequency_penalty: f32,
    /// -2 to 2: taken from a token's logit if it is in the answer.
    pub presence_penalty: f32,
    /// Equal seeds give equal answers. `None` takes one from the engine's own.
    pub seed: Option<u64>,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            seed: None,
        }
    }
}

impl SamplingParams {
    /// Always the most probable token.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    /// Checks every range.
    ///
    /// # Errors
    /// `bad_request` naming the parameter, what was asked and what is allowed.
    pub fn validate(&self) -> Result<()> {
        in_range("temperature", self.temperature, 0.0..=2.0)?;
        in_range("top_p", self.top_p, 0.0..=1.0)?;
        in_range("min_p", self.min_p, 0.0..=1.0)?;
        in_range("frequency_penalty", self.frequency_penalty, -2.0..=2.0)?;
        in_range("presence_penalty", self.presence_penalty, -2.0..=2.0)?;
        let penalty = self.repetition_penalty;
        if penalty > 0.0 && penalty <= 2.0 {
            Ok(())
        } else {
            Err(bad_value("repetition_penalty", penalty, "above 0 and at most 2"))
        }
    }

    /// The row for the GPU; its counter is set for each token.
    pub(super) fn row(&self, seed: u64) -> RowSampling {
        let is_greedy = self.temperature < GREEDY_BELOW;
        RowSampling {
            temperature: if is_greedy { 0.0 } else { self.temperature },
            top_k: self.top_k,
            // The smallest set that reaches 0 would be empty; the most probable token is what people mean.
            top_p: self.top_p.max(f32::MIN_POSITIVE),
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty.max(LEAST_REPETITION_PENALTY),
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            seed,
            counter: 0,
        }
    }

    fn penalises_answer(&self) -> bool {
        self.frequency_penalty != 0.0 || self.presence_penalty != 0.0 || self.penalises_prompt()
    }

    fn penalises_prompt(&self) -> bool {
        self.repetition_penalty != 1.0
    }
}

/// The error for a value out of range.
pub(super) fn bad_value(name: &str, asked: impl Display, allowed: impl Display) -> Error {
    Error::BadRequest(format!("{name}: {asked} asked, {allowed} allowed"))
}

fn in_range(name: &str, asked: f32, allowed: RangeInclusive<f32>) -> Result<()> {
    if allowed.contains(&asked) {
        return Ok(());
    }
    Err(bad_value(name, asked, format_args!("{} to {}", allowed.start(), allowed.end())))
}

#[derive(Debug, Clone, Copy, Default)]
struct Edit {
    is_seen: bool,
    count: u32,
    bias: f32,
}

/// The changes to one sequence's logits. Holds an entry exactly for each token whose logit changes.
#[derive(Debug, Clone)]
pub(super) struct LogitEdits {
    edits: BTreeMap<u32, Edit>,
    counts_answer: bool,
    /// The tokens that may be drawn, a bit each; shared by all that ask for the same.
    mask: Option<Rc<[u32]>>,
}

impl LogitEdits {
    /// The edits before the first token is drawn.
    ///
    /// # Errors
    /// `bad_request` for a bias out of range, outside the vocabulary, or given twice.
    pub(super) fn new(request: &Request, vocab_size: usize) -> Result<Self> {
        let Request { logit_bias, prompt, sampling, .. } = request;
        if logit_bias.len() > MAX_LOGIT_BIAS {
            let allowed = format_args!("at most {MAX_LOGIT_BIAS} entries");
            return Err(bad_value("logit_bias", logit_bias.len(), allowed));
        }
        let mut edits = BTreeMap::<u32, Edit>::new();
        for &(token, bias) in logit_bias {
            // Negative infinity forbids a token outright.
            if bias != f32::NEG_INFINITY {
                in_range("logit_bias", bias, -100.0..=100.0)?;
            }
            if token as usize >= vocab_size {
                return Err(bad_value("logit_bias token", token, format_args!("below {vocab_size}")));
            }
            let bias = bias.max(FORBIDDEN);
            if edits.insert(token, Edit { bias, ..Edit::default() }).is_some() {
                return Err(bad_value("logit_bias", format_args!("token {token} twice"), "each token once"));
            }
        }
        edits.retain(|_, edit| edit.bias != 0.0);
        if sampling.penalises_prompt() {
            prompt.iter().for_each(|&token| edits.entry(token).or_default().is_seen = true);
        }
        let mask = request.allowed_token_ids.as_ref().map(|ids| mask_of(ids, vocab_size));
        Ok(Self { edits, counts_answer: sampling.penalises_answer(), mask })
    }

    /// Whether the changes depend on the answer so far.
    pub(super) fn counts_answer(&self) -> bool {
        self.counts_answer
    }

    /// The tokens that may be drawn next, if not all.
    pub(super) fn mask(&self) -> Option<Rc<[u32]>> {
        self.mask.clone()
    }

    /// Takes note of a token of the answer.
    pub(super) fn push(&mut self, token: u32) {
        if self.counts_answer {
            let edit = self.edits.entry(token).or_default();
            edit.is_seen = true;
            edit.count += 1;
        }
    }

    /// Logits that are changed now.
    pub(super) fn len(&self) -> usize {
        self.edits.len()
    }

    /// Logits that may be changed after `num_answer` more tokens.
    pub(super) fn most(&self, num_answer: usize, vocab_size: usize) -> usize {
        if self.counts_answer { vocab_size.min(self.len() + num_answer) } else { self.len() }
    }

    /// The edits of row `row` of a batch, by token.
    pub(super) fn of_row(&self, row: u32) -> impl Iterator<Item = LogitEdit> + '_ {
        self.edits.iter().map(move |(&token, edit)| LogitEdit {
            row,
            token,
            seen: u32::from(edit.is_seen),
            count: edit.count,
            bias: edit.bias,
        })
    }
}

/// A mask that allows `ids` of a vocabulary.
fn mask_of(ids: &[u32], vocab_size: usize) -> Rc<[u32]> {
    let mut words = vec![0; vocab_size.div_ceil(32)];
    ids.iter().for_each(|id| words[*id as usize / 32] |= 1 << (id % 32));
    words.into()
}

/// The seed of a request that brings none: the `index`-th value of the SplitMix64 sequence of `seed`
/// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub(super) fn derived_seed(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
