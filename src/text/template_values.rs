//! What the variables of a chat template may hold. Loops can nest lists in lists, or operations that are only carried out when
//! somebody looks, without end, and a namespace can hold itself: reading such a value would overflow the stack or never end.
//! So whatever a `set` tag assigns goes through a filter, and so does what is written.

use std::borrow::Cow;

use minijinja::value::{ObjectRepr, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};

use super::template_limits::{end_of_tag, next_tag};

/// How deep lists and mappings may nest in each other.
const MAX_DEPTH: usize = 64;
/// Values that are looked at for one unit of the budget.
const VALUES_PER_FUEL: u64 = 16;
/// The same where each is written out and held.
const WRITTEN_PER_FUEL: u64 = 1;
/// Digits of a width or a precision that `format` may be asked for.
const MAX_WIDTH_DIGITS: usize = 4;
/// The filters; no names that a template could use by accident.
const KEPT: &str = "__kept";
const KEPT_IN_NAMESPACE: &str = "__kept_in_namespace";

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter(KEPT, |state: &State, value: Value| settle(state, value, true));
    environment.add_filter(KEPT_IN_NAMESPACE, |state: &State, value: Value| settle(state, value, false));
    environment.set_formatter(|output: &mut Output, state: &mut State, value: &Value| {
        Look::new(state, VALUES_PER_FUEL).at(value, 0)?;
        minijinja::escape_formatter(output, state, value)
    });
    environment.set_unknown_method_callback(|state, value, method, arguments| {
        if method == "format" && value.as_str().is_some_and(asks_for_too_much) {
            return Err(invalid("format: a width or precision of more than four digits"));
        }
        minijinja_contrib::pycompat::unknown_method_callback(state, value, method, arguments)
    });
}

/// Checks a value that is about to be written as JSON.
pub(super) fn check_written(state: &State, value: &Value) -> Result<(), Error> {
    Look::new(state, WRITTEN_PER_FUEL).at(value, 0)
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn too_deep() -> Error {
    invalid(format!("lists and mappings nest deeper than the {MAX_DEPTH} levels allowed"))
}

/// The budget, in steps of so many values.
struct Look<'a, 'b, 'c> {
    state: &'a State<'b, 'c>,
    values_per_fuel: u64,
    num_values: u64,
}

impl<'a, 'b, 'c> Look<'a, 'b, 'c> {
    fn new(state: &'a State<'b, 'c>, values_per_fuel: u64) -> Self {
        Self { state, values_per_fuel, num_values: 0 }
    }

    fn count(&mut self) -> Result<(), Error> {
        self.num_values += 1;
        if self.num_values.is_multiple_of(self.values_per_fuel) { self.state.consume_fuel(1) } else { Ok(()) }
    }

    /// Refuses what nests too deep; everything in it costs.
    fn at(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let Some(object) = value.as_object() else { return Ok(()) };
        let repr = object.repr();
        if matches!(repr, ObjectRepr::Plain) {
            return Ok(());
        }
        if depth == MAX_DEPTH {
            return Err(too_deep());
        }
        for item in value.try_iter()? {
            self.count()?;
            match repr {
                ObjectRepr::Map => self.at(&value.get_item(&item)?, depth + 1)?,
                _ => self.at(&item, depth + 1)?,
            }
        }
        Ok(())
    }

    /// The same value without operations that wait to be carried out; `None` where there are none.
    fn carried_out(&mut self, value: &Value, depth: usize, namespaces: bool) -> Result<Option<Value>, Error> {
        let Some(object) = value.as_object() else { return Ok(None) };
        let (repr, name) = (object.repr(), object.type_name());
        if name.ends_with("::Namespace") {
            // What it holds was looked at when it was put there.
            return if namespaces { Ok(None) } else { Err(invalid("a namespace cannot be kept in a namespace")) };
        }
        if matches!(repr, ObjectRepr::Plain) {
            return Ok(None);
        }
        if depth == MAX_DEPTH {
            return Err(too_deep());
        }
        let is_map = matches!(repr, ObjectRepr::Map);
        // Lists that are there are vectors; of mappings, only joined ones wait.
        let is_there = value.is_tuple() || name.contains("::Vec<") || (is_map && !name.contains("Merge"));
        let mut items = Vec::new();
        let mut is_other = !is_there;
        for item in value.try_iter()? {
            self.count()?;
            let content = if is_map { value.get_item(&item)? } else { item.clone() };
            let settled = self.carried_out(&content, depth + 1, namespaces)?;
            is_other |= settled.is_some();
            items.push((item, settled.unwrap_or(content)));
        }
        Ok(match (is_other, is_map) {
            (false, _) => None,
            (true, true) => Some(Value::from_pairs(items)),
            (true, false) => Some(items.into_iter().map(|(_, content)| content).collect()),
        })
    }
}

fn settle(state: &State, value: Value, namespaces: bool) -> Result<Value, Error> {
    // Most are text and numbers.
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
        return Ok(value);
    }
    let settled = Look::new(state, VALUES_PER_FUEL).carried_out(&value, 0, namespaces)?;
    Ok(settled.unwrap_or(value))
}

/// Whether a format has a number in braces that is longer than any width or precision in use.
fn asks_for_too_much(format: &str) -> bool {
    let (mut num_open, mut num_digits) = (0_usize, 0);
    for byte in format.bytes() {
        match byte {
            b'{' => num_open += 1,
            b'}' => num_open = num_open.saturating_sub(1),
            _ => {}
        }
        num_digits = if num_open > 0 && byte.is_ascii_digit() { num_digits + 1 } else { 0 };
        if num_digits > MAX_WIDTH_DIGITS {
            return true;
        }
    }
    false
}

/// Puts what `set` tags assign through the filters.
pub(super) fn with_kept_values(source: &str) -> String {
    let mut text = String::with_capacity(source.len() + source.len() / 8);
    let mut rest = source;
    while let Some((start, kind)) = next_tag(rest) {
        let (head, body) = rest.split_at(start + 2);
        text.push_str(head);
        let len = end_of_tag(body, kind);
        let (tag, after) = body.split_at(len);
        rest = after;
        let assignment = if kind == b'%' { assignment(tag) } else { None };
        match assignment {
            None => text.push_str(tag),
            Some((target, value, end)) => {
                let filter = if target.contains('.') { KEPT_IN_NAMESPACE } else { KEPT };
                text.push_str(&format!("{target}=({value})|{filter} {end}"));
            }
        }
        if kind == b'%' && word(tag) == "raw" {
            let end = rest.find("endraw").unwrap_or(rest.len());
            text.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    text.push_str(rest);
    text
}

fn word(tag: &str) -> &str {
    let tag = tag.trim_start_matches(['-', '+']).trim_start();
    tag.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
}

/// What stands before the `=` of a `set` tag, what after it, and the sign for white space at its end.
fn assignment(tag: &str) -> Option<(&str, &str, &str)> {
    if word(tag) != "set" {
        return None;
    }
    let (target, value) = tag.split_once('=')?;
    // A block whose text goes through filters, which have arguments.
    if target.contains('|') {
        return None;
    }
    let trimmed = value.trim_end();
    let end = if trimmed.ends_with(['-', '+']) { &trimmed[trimmed.len() - 1..] } else { "" };
    Some((target, &trimmed[..trimmed.len() - end.len()], end))
}
