//! An answer, taken apart as it comes: content, calls, and what should have been a call.

mod code;
mod start;

use std::rc::Rc;

use super::super::stop::overlap;
use super::ids::call_id;
use super::json_call::JsonCall;
use super::marked_call::MarkedCall;
use super::named_call::NamedCall;
use super::{Draft, Status, Tool, ToolCallError, ToolCallErrorKind, ToolDelta, ToolFormat};

/// Who reads a call.
#[derive(Debug)]
enum Reader {
    Json(JsonCall),
    Named(NamedCall),
    Marked(MarkedCall),
    /// Code, which is read when it is complete.
    Python(String),
}

#[derive(Debug)]
enum State {
    /// At the beginning of an answer that is either calls or text.
    Undecided,
    /// In an answer that is text.
    Text,
    /// Not in a call.
    Outside,
    /// Behind an opener or a call: another may follow.
    Between,
    Call(Reader, Draft),
    Broken(ToolCallError),
}

/// Reads an answer piece by piece; how it is cut does not matter.
#[derive(Debug)]
pub struct ToolStream {
    format: ToolFormat,
    tools: Rc<[Tool]>,
    key: u64,
    state: State,
    /// Text that is not read yet.
    pending: String,
    /// What was read since the opener or the last complete call, as it is written.
    raw: String,
    /// White space that is content if content follows.
    spaces: String,
    /// Calls that were told of.
    num_calls: usize,
    /// Those of them that are complete.
    num_complete: usize,
    /// Whether the region has a call that is complete.
    has_call: bool,
    /// Whether the call that is being read was told of.
    is_told: bool,
    /// Whether nothing but white space came so far, where a call may begin without an opener.
    is_at_start: bool,
    /// Whether it began so.
    is_bare: bool,
    /// Whether white space that comes now is behind a call.
    is_after_call: bool,
    out: Vec<ToolDelta>,
}

impl ToolStream {
    /// Reads calls of `tools`; `key` makes their ids ([`super::call_ids_key`]).
    pub fn new(format: ToolFormat, tools: Vec<Tool>, key: u64) -> Self {
        Self {
            format,
            tools: tools.into(),
            key,
            state: State::Outside,
            pending: String::new(),
            raw: String::new(),
            spaces: String::new(),
            num_calls: 0,
            num_complete: 0,
            has_call: false,
            is_told: false,
            is_at_start: format == ToolFormat::Llama3,
            is_bare: false,
            is_after_call: false,
            out: Vec::new(),
        }
    }

    /// Calls that are complete and can be made.
    pub fn num_complete(&self) -> usize {
        self.num_complete
    }

    /// Takes the next piece of the answer.
    pub fn push(&mut self, text: &str) -> Vec<ToolDelta> {
        self.pending.push_str(text);
        while match self.state {
            State::Undecided => self.decide(),
            State::Text => self.pass_on(),
            State::Outside => self.scan(),
            State::Between => self.go_on(),
            State::Call(Reader::Python(_), _) => self.read_code(),
            State::Call(..) => self.read(),
            State::Broken(_) => self.skip(),
        } {}
        std::mem::take(&mut self.out)
    }

    /// Ends the answer.
    pub fn finish(&mut self) -> Vec<ToolDelta> {
        let rest = std::mem::take(&mut self.pending);
        match std::mem::replace(&mut self.state, State::Outside) {
            State::Undecided | State::Text => self.emit_content(&rest),
            State::Outside => self.content(&rest),
            // Nothing, or the beginning of a mark: the answer was cut there.
            State::Between if self.has_call => {}
            State::Call(Reader::Python(code), _) => {
                self.end_code(&(code + &rest), "");
            }
            State::Between | State::Call(..) => {
                self.raw.push_str(&rest);
                self.give_up(ToolCallErrorKind::Incomplete, "the answer ended within a call".into());
                self.end_region();
            }
            State::Broken(error) => {
                self.raw.push_str(&rest);
                self.state = State::Broken(error);
                self.end_region();
            }
        }
        if self.num_calls == 0 && !self.spaces.is_empty() {
            let spaces = std::mem::take(&mut self.spaces);
            self.emit_content(&spaces);
        }
        std::mem::take(&mut self.out)
    }

    /// Looks for an opener; false if more text is needed.
    fn scan(&mut self) -> bool {
        if self.is_at_start {
            match self.pending.trim_start().chars().next() {
                None => return false,
                Some('{') => {
                    (self.is_bare, self.is_at_start) = (true, false);
                    self.begin_region("");
                    return true;
                }
                Some(_) => self.is_at_start = false,
            }
        }
        let opener = self.format.opener();
        if let Some(at) = self.pending.find(opener) {
            let rest = self.pending.split_off(at + opener.len());
            let text = std::mem::replace(&mut self.pending, rest);
            self.content(&text[..at]);
            self.begin_region(opener);
            return true;
        }
        let undecided = overlap(&self.pending, opener);
        let rest = self.pending.split_off(self.pending.len() - undecided);
        let text = std::mem::replace(&mut self.pending, rest);
        self.content(&text);
        false
    }

    fn begin_region(&mut self, opener: &str) {
        self.raw = opener.to_owned();
        self.has_call = false;
        self.is_told = false;
        self.state = State::Between;
    }

    /// Behind an opener or a call.
    fn go_on(&mut self) -> bool {
        for (mark, is_end) in [(self.format.closer(), true), (Some(self.format.opener()), false)] {
            let Some(mark) = mark else { continue };
            if self.pending.starts_with(mark) {
                self.pending.drain(..mark.len());
                self.raw.push_str(mark);
                match (is_end, self.has_call) {
                    (true, true) => self.end_region(),
                    (true, false) => {
                        self.give_up(ToolCallErrorKind::Malformed, "there is no call within".into());
                        self.end_region();
                    }
                    (false, _) => self.begin_region(mark),
                }
                return true;
            }
            if !self.pending.is_empty() && mark.starts_with(self.pending.as_str()) {
                return false;
            }
        }
        let Some(c) = self.pending.chars().next() else { return false };
        let reader = match (self.format, c) {
            (ToolFormat::Gemma, _) if !self.has_call => Some(Reader::Python(String::new())),
            (ToolFormat::FunctionGemma, 'c') if !self.has_call => Some(Reader::Marked(MarkedCall::default())),
            (ToolFormat::FunctionGemma | ToolFormat::Gemma, _) => None,
            (_, '{') => Some(Reader::Json(JsonCall::new())),
            (ToolFormat::Mistral, c) if c.is_alphabetic() || c == '_' => Some(Reader::Named(NamedCall::default())),
            _ => None,
        };
        if let Some(reader) = reader {
            self.is_told = false;
            self.state = State::Call(reader, Draft::default());
        } else if c.is_whitespace() || matches!(c, ',' | ';' | '[' | ']') {
            self.pending.drain(..c.len_utf8());
            self.raw.push(c);
        } else if self.has_call {
            // Whatever follows is no call any more.
            self.end_region();
        } else {
            self.give_up(ToolCallErrorKind::Malformed, format!("{c:?} where a call is needed"));
        }
        true
    }

    /// Reads a call as far as it is there.
    fn read(&mut self) -> bool {
        let mut pending = std::mem::take(&mut self.pending);
        let mut end = 0;
        for (at, c) in pending.char_indices() {
            end = at + c.len_utf8();
            self.raw.push(c);
            let State::Call(reader, draft) = &mut self.state else { break };
            let status = match reader {
                Reader::Json(call) => call.push(c, draft),
                Reader::Named(call) => call.push(c, draft),
                Reader::Marked(call) => call.push(c, draft),
                Reader::Python(_) => Ok(Status::More),
            };
            match status.map_err(|why| (ToolCallErrorKind::Malformed, why)).and_then(|status| self.tell(status)) {
                Ok(Status::More) => continue,
                Ok(Status::Done) => self.state = State::Between,
                Err((kind, why)) => self.give_up(kind, why),
            }
            break;
        }
        pending.drain(..end);
        self.pending = pending;
        !matches!(self.state, State::Call(..))
    }

    /// Tells what became known of the call that is being read.
    fn tell(&mut self, status: Status) -> Result<Status, (ToolCallErrorKind, String)> {
        let State::Call(_, draft) = &mut self.state else { return Ok(status) };
        let mut arguments = std::mem::take(&mut draft.arguments);
        if let Some(name) = draft.name.clone().filter(|_| !self.is_told) {
            self.begin_call(name)?;
        } else if !self.is_told {
            // The name comes last.
            if let State::Call(_, draft) = &mut self.state {
                draft.arguments = arguments;
            }
            return match status {
                Status::More => Ok(status),
                Status::Done => Err((ToolCallErrorKind::Malformed, "a call without a name".into())),
            };
        }
        if status == Status::Done {
            let has_arguments = matches!(&self.state, State::Call(_, draft) if draft.has_arguments);
            arguments.push_str(if has_arguments { "" } else { "{}" });
            self.end_call(&arguments);
        } else {
            self.arguments(&arguments);
        }
        Ok(status)
    }

    fn begin_call(&mut self, name: String) -> Result<(), (ToolCallErrorKind, String)> {
        if !self.tools.iter().any(|tool| tool.name == name) {
            return Err((ToolCallErrorKind::UnknownTool, format!("there is no function {name:?}")));
        }
        let (index, id) = (self.num_calls, call_id(self.key, self.num_calls));
        self.out.push(ToolDelta::Call { index, id, name });
        self.num_calls += 1;
        (self.is_told, self.is_after_call) = (true, true);
        self.spaces.clear();
        Ok(())
    }

    fn arguments(&mut self, more: &str) {
        if more.is_empty() {
            return;
        }
        let last = self.num_calls - 1;
        match self.out.last_mut() {
            Some(ToolDelta::Arguments { index, text }) if *index == last => text.push_str(more),
            _ => self.out.push(ToolDelta::Arguments { index: last, text: more.to_owned() }),
        }
    }

    fn end_call(&mut self, arguments: &str) {
        self.arguments(arguments);
        self.num_complete += 1;
        self.has_call = true;
        self.is_told = false;
        // What was handed on is not told again, whatever becomes of the rest.
        self.raw.clear();
    }

    /// What was read since the opener is no call.
    fn give_up(&mut self, code: ToolCallErrorKind, message: String) {
        if self.is_bare && !self.is_told && !self.has_call {
            // It only looked like one.
            let raw = std::mem::take(&mut self.raw);
            self.is_bare = false;
            self.state = State::Outside;
            self.content(&raw);
        } else if !matches!(self.state, State::Broken(_)) {
            self.state = State::Broken(ToolCallError { code, message });
        }
    }

    /// Gathers what is broken up to its end.
    fn skip(&mut self) -> bool {
        let closer = self.format.closer();
        let found = closer.and_then(|closer| self.pending.find(closer).map(|at| at + closer.len()));
        let held = closer.map_or(0, |closer| overlap(&self.pending, closer));
        let rest = self.pending.split_off(found.unwrap_or(self.pending.len() - held));
        let text = std::mem::replace(&mut self.pending, rest);
        self.raw.push_str(&text);
        if found.is_some() {
            self.end_region();
        }
        found.is_some()
    }

    fn end_region(&mut self) {
        let raw = std::mem::take(&mut self.raw);
        if let State::Broken(error) = std::mem::replace(&mut self.state, State::Outside) {
            let index = self.is_told.then(|| self.num_calls - 1);
            if index.is_none() && !self.spaces.is_empty() && !self.is_after_call {
                let spaces = std::mem::take(&mut self.spaces);
                self.emit_content(&spaces);
            }
            self.out.push(ToolDelta::Malformed { index, raw, error });
        }
        (self.is_told, self.is_bare) = (false, false);
    }

    /// Text that is no call. White space around calls is no content.
    fn content(&mut self, text: &str) {
        let rest = text.trim_end();
        if rest.is_empty() {
            self.spaces.push_str(text);
            return;
        }
        let mut all = std::mem::take(&mut self.spaces);
        if std::mem::take(&mut self.is_after_call) {
            all = rest.trim_start().to_owned();
        } else {
            all.push_str(rest);
        }
        self.spaces = text[rest.len()..].to_owned();
        self.emit_content(&all);
    }

    fn emit_content(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.out.last_mut() {
            Some(ToolDelta::Content(content)) => content.push_str(text),
            _ => self.out.push(ToolDelta::Content(text.to_owned())),
        }
    }
}
