//! What is told of an answer that may have calls.

use serde::Serialize;

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolDelta {
    /// Text of the answer that is no call.
    Content(String),
    /// A call begins; its arguments follow.
    Call {
        /// From 0 on, in the answer.
        index: usize,
        /// Names the call in the conversation.
        id: String,
        /// The function.
        name: String,
    },
    /// More of a call's arguments: pieces of a JSON object.
    Arguments {
        /// Of which call.
        index: usize,
        /// What is new.
        text: String,
    },
    /// What was written as a call and is none, as it was written.
    Malformed {
        /// The call that was begun with it, if one was: it does not count.
        index: Option<usize>,
        /// What the model wrote.
        raw: String,
        /// Why.
        error: ToolCallError,
    },
}

/// Why what should have been a call is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolCallError {
    /// Of which kind.
    pub code: ToolCallErrorKind,
    /// In words.
    pub message: String,
}

/// Kinds of [`ToolCallError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallErrorKind {
    /// It is not in the model's format.
    Malformed,
    /// There is no function of that name.
    UnknownTool,
    /// The answer ended within it.
    Incomplete,
}
