//! Calls written as a name and then arguments: `name[ARGS]{…}`, as Mistral's newer models do.

use super::json_call::JsonCall;
use super::{Draft, Status};

const ARGS: &str = "[ARGS]";
const CALL_ID: &str = "[CALL_ID]";
/// Bytes before the arguments.
const MAX_HEAD_BYTES: usize = 512;

/// Reads one call.
#[derive(Debug, Default)]
pub(super) struct NamedCall {
    head: String,
    arguments: Option<JsonCall>,
}

impl NamedCall {
    /// Takes the next character.
    pub(super) fn push(&mut self, c: char, draft: &mut Draft) -> Result<Status, String> {
        if let Some(arguments) = &mut self.arguments {
            return arguments.push(c, draft);
        }
        if c != '{' {
            self.head.push(c);
            return match self.head.len() > MAX_HEAD_BYTES {
                true => Err(format!("{MAX_HEAD_BYTES} bytes without arguments")),
                false => Ok(Status::More),
            };
        }
        let head = self.head.split_once(ARGS).map_or(self.head.as_str(), |(head, _)| head);
        let name = head.split_once(CALL_ID).map_or(head, |(name, _)| name).trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(format!("{name:?} is no name of a function"));
        }
        draft.name = Some(name.to_owned());
        self.arguments.insert(JsonCall::arguments()).push(c, draft)
    }
}
