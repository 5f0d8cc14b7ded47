//! An answer under a grammar.

use llguidance::Matcher;
use llguidance::api::StopReason;

use super::{GrammarError, Match, Result};

/// How llguidance says that nothing may come.
const NOTHING_MAY_COME: &str = "NoExtensionBias";

pub(super) struct Guide(pub(super) Matcher);

impl Guide {
    fn error(&self, error: &impl std::fmt::Display) -> GrammarError {
        let why = match self.0.stop_reason() {
            StopReason::LexerTooComplex | StopReason::ParserTooComplex => "it is too ambiguous",
            _ => "it cannot go on",
        };
        GrammarError(format!("{why} ({})", first_line(&error.to_string())))
    }
}

impl Match for Guide {
    fn mask(&mut self) -> Result<Vec<u32>> {
        if self.0.is_stopped() && !self.0.is_error() {
            return Ok(Vec::new());
        }
        match self.0.compute_mask() {
            Ok(mask) => Ok(mask.as_slice().to_vec()),
            Err(error) if error.to_string().starts_with(NOTHING_MAY_COME) => Ok(Vec::new()),
            Err(error) => Err(self.error(&error)),
        }
    }

    fn accept(&mut self, token: u32) -> Result<bool> {
        self.0.consume_token(token).map_err(|error| self.error(&error))?;
        Ok(self.0.is_stopped())
    }

    fn forced(&mut self) -> Vec<u32> {
        if self.0.is_stopped() { Vec::new() } else { self.0.compute_ff_tokens() }
    }

    fn fork(&self) -> Box<dyn Match> {
        // States that one answer makes count against its own limit only.
        Box::new(Self(self.0.deep_clone()))
    }
}

/// What llguidance says, without what it adds for its own developers.
pub(super) fn first_line(message: &str) -> &str {
    message.split("\n<").next().unwrap_or_default().trim()
}
