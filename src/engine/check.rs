//! What a request must be before it waits.

use super::sampling::{LogitEdits, bad_value};
use super::{Engine, MAX_CHOICES, Request};
use crate::model::Forward;
use crate::{Error, Result};

impl<F: Forward> Engine<F> {
    /// Checks all of a request for several answers that does not depend on others; returns the most tokens of an answer, and
    /// the edits of its logits.
    ///
    /// # Errors
    /// `bad_request` for a value out of range, `context_too_long` if it can never fit.
    pub(super) fn check_request(&self, request: &Request, num_choices: usize) -> Result<(usize, LogitEdits)> {
        let vocab_size = self.tokenizer.vocab_size();
        request.validate(vocab_size)?;
        if request.embeds && self.forward.pool_width().is_none() {
            let why = "this model gives no embeddings: its file asks for another pooling than the mean";
            return Err(Error::UnsupportedModel(why.into()));
        }
        if !(1..=MAX_CHOICES).contains(&num_choices) {
            return Err(bad_value("n", num_choices, format_args!("1 to {MAX_CHOICES}")));
        }
        let allowed = self.context_length();
        // Nothing follows a text that is only embedded.
        let answer = if request.embeds { 0 } else { request.max_tokens.unwrap_or(1) };
        let asked = request.prompt.len().saturating_add(answer);
        if asked > allowed {
            return Err(Error::ContextTooLong { asked, allowed });
        }
        let max_tokens = request.max_tokens.unwrap_or(allowed - request.prompt.len());
        let edits = LogitEdits::new(request, vocab_size)?;
        let most = edits.most(max_tokens, vocab_size).max(num_choices.min(self.limits.max_rows) * edits.len());
        let max_edits = self.limits.max_edits;
        if most > max_edits {
            let allowed = format!("{max_edits} (a lower max_tokens or no penalties would help)");
            return Err(bad_value("logits changed by penalties and logit_bias", most, allowed));
        }
        Ok((max_tokens, edits))
    }
}
