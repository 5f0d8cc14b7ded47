//! What an answer has to be, as far as it is: the constraint of one sequence.
//!
//! The mask of a token depends on all before it, so a sequence with a guide never has more than one draw in flight. Its mask
//! is made while the device computes that step, between its layers and the draw ([`crate::model::Forward::submit_masked`]).

use std::rc::Rc;

use crate::text::Match;
use crate::{Error, Result};

/// A matcher, and what it says of the next token.
pub(super) struct Guide {
    matcher: Box<dyn Match>,
    next: Next,
}

/// What may come next.
#[derive(Clone)]
enum Next {
    /// Nobody has asked.
    Unknown,
    /// These tokens.
    Mask(Rc<[u32]>),
    /// Nothing: the answer is complete.
    Nothing,
    /// It cannot be told.
    Failed(Error),
}

impl Guide {
    /// The beginning of an answer.
    pub(super) fn new(matcher: Box<dyn Match>) -> Self {
        Self { matcher, next: Next::Unknown }
    }

    /// Another one, at the same place.
    pub(super) fn fork(&self) -> Self {
        Self { matcher: self.matcher.fork(), next: self.next.clone() }
    }

    /// The tokens that may be drawn. `None` if there are none; [`Guide::end`] says why, and what is drawn is of no use.
    pub(super) fn mask(&mut self) -> Option<Rc<[u32]>> {
        if matches!(self.next, Next::Unknown) {
            self.next = match self.matcher.mask() {
                Ok(mask) if mask.iter().all(|&word| word == 0) => Next::Nothing,
                Ok(mask) => Next::Mask(mask.into()),
                Err(error) => Next::Failed(error.into()),
            };
        }
        match &self.next {
            Next::Mask(mask) => Some(Rc::clone(mask)),
            _ => None,
        }
    }

    /// Whether the answer ends before its next token: it is complete, or cannot go on.
    pub(super) fn end(&self) -> Option<Result<()>> {
        match &self.next {
            Next::Unknown | Next::Mask(_) => None,
            Next::Nothing => Some(Ok(())),
            Next::Failed(error) => Some(Err(error.clone())),
        }
    }

    /// Takes note of the next token.
    pub(super) fn accept(&mut self, id: u32) {
        self.next = match self.matcher.accept(id) {
            Ok(false) => Next::Unknown,
            Ok(true) => Next::Nothing,
            Err(error) => Next::Failed(error.into()),
        };
    }

    /// The tokens that must come next, one after the other.
    pub(super) fn forced(&mut self) -> Vec<u32> {
        if matches!(self.next, Next::Unknown) { self.matcher.forced() } else { Vec::new() }
    }
}
