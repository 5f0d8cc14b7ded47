//! Calls in a block of code, which is read when it is complete.

use std::rc::Rc;

use super::super::super::stop::overlap;
use super::super::{ToolCallErrorKind, python};
use super::{Reader, State, ToolStream};

impl ToolStream {
    /// Gathers code up to its end.
    pub(super) fn read_code(&mut self) -> bool {
        let closer = self.format.closer().unwrap_or_default();
        let State::Call(Reader::Python(code), _) = &mut self.state else { return true };
        let (len, is_end) = match self.pending.find(closer) {
            Some(at) => (at, true),
            None => (self.pending.len() - overlap(&self.pending, closer), false),
        };
        let rest = self.pending.split_off(len);
        let text = std::mem::replace(&mut self.pending, rest);
        code.push_str(&text);
        if is_end {
            let code = std::mem::take(code);
            self.pending.drain(..closer.len());
            self.end_code(&code, closer);
        }
        is_end
    }

    /// Reads code that ended with `closer`. Calls count that can be read, up to where it cannot go on.
    pub(super) fn end_code(&mut self, code: &str, closer: &str) {
        self.state = State::Between;
        let tools = Rc::clone(&self.tools);
        let mut calls = python::Calls::new(code, &tools);
        loop {
            let before = calls.rest();
            let next = calls.next();
            let is_known = matches!(&next, Ok(Some((name, _))) if tools.iter().any(|tool| &tool.name == name));
            if is_known && matches!(self.state, State::Broken(_)) {
                // What is broken ends here.
                self.end_region();
            }
            self.raw.push_str(&before[..before.len() - calls.rest().len()]);
            let result = match next {
                Ok(None) => break,
                Ok(Some((name, arguments))) => self.begin_call(name).map(|()| self.end_call(&arguments)),
                Err(why) => Err((ToolCallErrorKind::Malformed, why)),
            };
            if let Err((kind, why)) = result {
                let is_end = kind == ToolCallErrorKind::Malformed;
                self.give_up(kind, why);
                if is_end {
                    self.raw.push_str(calls.rest());
                    break;
                }
            }
        }
        if !self.has_call && !matches!(self.state, State::Broken(_)) {
            self.give_up(ToolCallErrorKind::Malformed, "there is no call within".into());
        }
        self.raw.push_str(closer);
        self.end_region();
    }
}
