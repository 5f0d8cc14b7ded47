//! An answer under a grammar.

use llguidance::Matcher;
use llguidance::api::StopReason;

use super::{GrammarError, Match, Result};

/// How llguidance says that nothing may come.
const NOTHING_MAY_COME: &str = "NoExtensionBias";

pub(super) struct Guide {
    matcher: Matcher,
    /// Of a mask: llguidance's have room for a token more than there are.
    num_words: usize,
}

impl Guide {
    pub(super) fn new(matcher: Matcher, num_tokens: usize) -> Self {
        Self { matcher, num_words: num_tokens.div_ceil(32) }
    }

    fn error(&self, error: &impl std::fmt::Display) -> GrammarError {
        let why = match self.matcher.stop_reason() {
            StopReason::LexerTooComplex | StopReason::ParserTooComplex => "it is too ambiguous",
            _ => "it cannot go on",
        };
        GrammarError(format!("{why} ({})", first_line(&error.to_string())))
    }
}

impl Match for Guide {
    fn mask(&mut self) -> Result<Vec<u32>> {
        if self.matcher.is_stopped() && !self.matcher.is_error() {
            return Ok(Vec::new());
        }
        // Afterwards it can no longer be asked.
        let may_end = self.matcher.is_accepting().unwrap_or_default();
        match self.matcher.compute_mask() {
            Ok(mask) => Ok(mask.as_slice().iter().copied().take(self.num_words).collect()),
            Err(error) if says_that_nothing_may_come(&error) && may_end => Ok(Vec::new()),
            // Rules may lead to one that derives nothing (`a: "x" a`), which llguidance sees only there.
            Err(error) if says_that_nothing_may_come(&error) => {
                Err(GrammarError("it cannot go on (nothing that begins like this is a whole answer)".into()))
            }
            Err(error) => Err(self.error(&error)),
        }
    }

    fn accept(&mut self, token: u32) -> Result<bool> {
        self.matcher.consume_token(token).map_err(|error| self.error(&error))?;
        Ok(self.matcher.is_stopped())
    }

    fn forced(&mut self) -> Vec<u32> {
        if self.matcher.is_stopped() { Vec::new() } else { self.matcher.compute_ff_tokens() }
    }

    fn fork(&self) -> Box<dyn Match> {
        // States that one answer makes count against its own limit only.
        Box::new(Self { matcher: self.matcher.deep_clone(), ..*self })
    }
}

/// Whether an error is that of a matcher that has nothing to say.
pub(super) fn says_that_nothing_may_come(error: &impl std::fmt::Display) -> bool {
    error.to_string().starts_with(NOTHING_MAY_COME)
}

/// What llguidance says, without what it adds for its own developers and of the references that it followed.
pub(super) fn first_line(message: &str) -> &str {
    let message = message.split("\n<").next().unwrap_or_default();
    message.split("\n  while processing").next().unwrap_or_default().trim()
}
