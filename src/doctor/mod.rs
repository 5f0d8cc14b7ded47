//! The prompt doctor: why a prompt does not continue an earlier one, and what to move so that it does.
//!
//! [`explain`] compares two prompts as a prefix cache does, from the front to the first difference, and then asks what
//! kind of difference it is: something that changes by itself (a time, an id, a counter), a rewritten history, or a new
//! conversation that shares what it can. It knows requests and texts only: no model, no tokeniser, no cache. Prompts
//! are JSON, in the shapes that hosted APIs take, so it serves those as well.
//!
//! The rule of thumb behind every advice: a prefix cache reuses a prompt up to the first character that differs, so what
//! changes belongs behind what stays.

mod advice;
mod change;
mod cursor;
mod explain;
mod prompt;
mod structure;
mod timestamp;
mod values;

pub use explain::{Cause, Explanation, Fraction, Part, Place, Side, Size, Unit, explain};
