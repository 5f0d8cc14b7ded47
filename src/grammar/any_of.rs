//! An answer that one of several constraints has to allow.
//!
//! One grammar with alternatives would not do: its lexer takes the longest word of any of them, so that what one allows could
//! hide what another does. Here each has a matcher of its own, and those that an answer has left are dropped.

use std::rc::Rc;

use super::{GrammarError, Match, Result};

pub(super) struct AnyOf {
    /// Those that allow the answer as far as it is; not empty.
    parts: Vec<Part>,
    /// Tokens that end an answer.
    ends: Rc<[u32]>,
}

struct Part {
    matcher: Box<dyn Match>,
    /// Whether it allows nothing but an end.
    is_complete: bool,
}

impl AnyOf {
    pub(super) fn new(matchers: Vec<Box<dyn Match>>, ends: Rc<[u32]>) -> Self {
        let parts = matchers.into_iter().map(|matcher| Part { matcher, is_complete: false }).collect();
        Self { parts, ends }
    }
}

impl Match for AnyOf {
    fn mask(&mut self) -> Result<Vec<u32>> {
        let (mut all, mut failure) = (Vec::new(), None);
        for part in self.parts.iter_mut().filter(|part| !part.is_complete) {
            match part.matcher.mask() {
                Ok(mask) if mask.iter().all(|&word| word == 0) => part.is_complete = true,
                Ok(mask) => add(&mut all, &mask),
                // The others may still go on.
                Err(error) => failure = Some(error),
            }
        }
        if let (true, Some(error)) = (all.is_empty(), failure) {
            return Err(error);
        }
        if self.parts.iter().any(|part| part.is_complete) {
            for &end in &*self.ends {
                if let Some(word) = all.get_mut(end as usize / 32) {
                    *word |= 1 << (end % 32);
                }
            }
        }
        Ok(all)
    }

    fn accept(&mut self, token: u32) -> Result<bool> {
        let is_end = self.ends.contains(&token);
        let mut refusal = None;
        self.parts.retain_mut(|part| {
            if part.is_complete {
                return is_end;
            }
            match part.matcher.accept(token) {
                Ok(is_complete) => part.is_complete = is_complete,
                Err(error) => {
                    refusal = Some(error);
                    return false;
                }
            }
            true
        });
        match refusal {
            Some(error) if self.parts.is_empty() => Err(error),
            None if self.parts.is_empty() => Err(GrammarError("the answer is complete".into())),
            _ => Ok(self.parts.iter().all(|part| part.is_complete)),
        }
    }

    fn forced(&mut self) -> Vec<u32> {
        match self.parts.as_mut_slice() {
            [part] if !part.is_complete => part.matcher.forced(),
            _ => Vec::new(),
        }
    }

    fn fork(&self) -> Box<dyn Match> {
        let fork = |part: &Part| Part { matcher: part.matcher.fork(), is_complete: part.is_complete };
        Box::new(Self { parts: self.parts.iter().map(fork).collect(), ends: Rc::clone(&self.ends) })
    }
}

/// The union of two masks.
fn add(all: &mut Vec<u32>, mask: &[u32]) {
    all.resize(all.len().max(mask.len()), 0);
    all.iter_mut().zip(mask).for_each(|(all, word)| *all |= word);
}
