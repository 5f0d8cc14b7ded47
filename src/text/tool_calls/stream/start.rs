//! Answers that are either calls or text, as a request has it that asks for a format of the text: their first characters decide.
//! Text is handed on as it is, whatever it looks like: it has to stay what was asked for.

use super::super::ToolFormat;
use super::{State, ToolStream};

impl ToolStream {
    /// The same for an answer that is either calls, as a [`super::super::ToolGrammar`] has them, or text.
    #[must_use]
    pub fn calls_or_text(mut self) -> Self {
        self.state = State::Undecided;
        self
    }

    /// Waits until it is clear what the answer is; false if more text is needed.
    pub(super) fn decide(&mut self) -> bool {
        let heads = self.heads();
        if heads.iter().any(|head| self.pending.starts_with(head.as_str())) {
            self.state = State::Outside;
        } else if !heads.iter().any(|head| head.starts_with(self.pending.as_str())) {
            self.state = State::Text;
        } else {
            return false;
        }
        true
    }

    /// How calls begin.
    fn heads(&self) -> Vec<String> {
        let opener = self.format.opener().to_owned();
        match self.format {
            ToolFormat::Llama3 => {
                let heads = self.tools.iter().map(|tool| self.format.json_head(&tool.name));
                heads.chain([opener]).collect()
            }
            _ => vec![opener],
        }
    }

    /// Hands text on.
    pub(super) fn pass_on(&mut self) -> bool {
        let text = std::mem::take(&mut self.pending);
        self.emit_content(&text);
        false
    }
}
