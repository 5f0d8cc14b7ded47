//! From sampled ids to text, and the rules that end an answer.

use std::rc::Rc;

use super::Request;
use super::events::{TokenLogprob, TokenLogprobs};
use crate::model::RowScores;
use crate::text::{Detokenizer, StopStrings, Streamed, Tokenizer};

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FinishReason {
    /// The model ended it, or a stop string or stop token did.
    Stop,
    /// `max_tokens` are generated, or the context is full.
    Length,
}

impl FinishReason {
    /// OpenAI's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

/// The text of one answer as it grows. Only whole characters come out, and nothing that may begin a stop string.
pub(super) struct Output {
    tokenizer: Rc<Tokenizer>,
    detokenizer: Detokenizer,
    stop_strings: StopStrings,
    stop_token_ids: Vec<u32>,
    ignore_end_of_generation: bool,
    /// Tokens that may still come.
    num_left: usize,
}

impl Output {
    /// An empty answer of up to `max_tokens` tokens.
    pub(super) fn new(request: &Request, tokenizer: &Rc<Tokenizer>, max_tokens: usize) -> Self {
        Self {
            detokenizer: match request.constraint {
                // What the grammar has read is what is shown, a space at the beginning included.
                Some(_) => Detokenizer::verbatim(Rc::clone(tokenizer)),
                None => Detokenizer::after_prompt(Rc::clone(tokenizer), &request.prompt),
            }
            .showing(request.shown_token_ids.clone()),
            tokenizer: Rc::clone(tokenizer),
            stop_strings: StopStrings::new(request.stop.clone()),
            stop_token_ids: request.stop_token_ids.clone(),
            ignore_end_of_generation: request.ignore_end_of_generation,
            num_left: max_tokens,
        }
    }

    /// Tokens that may still come.
    pub(super) fn num_left(&self) -> usize {
        self.num_left
    }

    /// Takes the next id; returns the text that may be shown now, and why the answer ends with it, if it does.
    pub(super) fn push(&mut self, id: u32) -> (String, Option<FinishReason>) {
        self.num_left -= 1;
        if self.is_stop_token(id) {
            return (self.finish(), Some(FinishReason::Stop));
        }
        let piece = self.detokenizer.push(id);
        let Streamed { text, stopped } = self.stop_strings.push(&piece);
        if stopped {
            return (text, Some(FinishReason::Stop));
        }
        if self.num_left == 0 {
            return (text + &self.finish(), Some(FinishReason::Length));
        }
        (text, None)
    }

    /// What to tell of the next id, before it is pushed.
    pub(super) fn logprobs(&self, id: u32, scores: &RowScores) -> TokenLogprobs {
        let tell = |id, logprob| TokenLogprob { id, logprob, bytes: self.detokenizer.peek(id) };
        let top = scores.top.iter().map(|&(id, logprob)| tell(id, logprob)).collect();
        TokenLogprobs { token: tell(id, scores.drawn), top, is_end: self.is_stop_token(id) }
    }

    fn is_stop_token(&self, id: u32) -> bool {
        let is_end = !self.ignore_end_of_generation && self.tokenizer.is_end_of_generation(id);
        is_end || self.stop_token_ids.contains(&id)
    }

    /// Ends the answer; returns what was held back, up to a stop string that only ends there.
    pub(super) fn finish(&mut self) -> String {
        let rest = self.detokenizer.finish();
        self.stop_strings.push(&rest).text + &self.stop_strings.finish()
    }
}
