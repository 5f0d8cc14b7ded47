//! References within a schema, as llguidance is told of them: it takes their steps as they are written and cannot name a
//! property with a `/`. Where a reference has escapes, all of them lead to copies under plain names instead.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::pointer;
use super::schema::map_schemas;

/// Where the copies are: nothing else is referred to then.
const DEFINITIONS: &str = "$defs";

/// The schema that a reference names. `#/` is the whole, as it is for llguidance, which is what most who write it want.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&target(reference)?)
}

/// What a reference points to, as it is told to people and found in a schema.
pub(super) fn target(reference: &str) -> Option<String> {
    pointer(reference).map(|pointer| if pointer == "/" { String::new() } else { pointer })
}

/// A schema without escapes in its references, and what is copied: the pointer to each definition, in order. `references` are
/// those that are followed from the root.
pub(super) fn without_escapes(root: &Value, references: &HashSet<&str>) -> (Value, Vec<String>) {
    if !references.iter().any(|reference| reference.contains(['~', '%'])) {
        return (root.clone(), Vec::new());
    }
    let mut pointers: Vec<String> = references.iter().filter_map(|reference| target(reference)).collect();
    pointers.sort_unstable();
    pointers.dedup();
    let names: HashMap<&str, usize> = (0..).zip(&pointers).map(|(index, pointer)| (pointer.as_str(), index)).collect();
    let copy = |(index, pointer): (usize, &String)| {
        let part = root.pointer(pointer).cloned().unwrap_or_default();
        (index.to_string(), renamed(part, &names))
    };
    let copies: Map<String, Value> = pointers.iter().enumerate().map(copy).collect();
    let mut plain = renamed(root.clone(), &names);
    if let Value::Object(fields) = &mut plain {
        fields.insert(DEFINITIONS.to_owned(), copies.into());
    }
    (plain, pointers)
}

/// A schema whose references lead to the copies.
fn renamed(schema: Value, names: &HashMap<&str, usize>) -> Value {
    let mut schema = map_schemas(schema, &|part| renamed(part, names));
    if let Some(Value::String(reference)) = schema.get_mut("$ref")
        && let Some(index) = target(reference).and_then(|pointer| names.get(pointer.as_str()).copied())
    {
        *reference = format!("#/{DEFINITIONS}/{index}");
    }
    schema
}

/// The place in the original of a place in a schema with copies.
pub(super) fn original(path: String, pointers: &[String]) -> String {
    let copy =
        path.strip_prefix(&format!("/{DEFINITIONS}/")).map(|rest| rest.split_at(rest.find('/').unwrap_or(rest.len())));
    let pointer = copy.and_then(|(index, rest)| Some((pointers.get(index.parse::<usize>().ok()?)?, rest)));
    pointer.map_or_else(|| path.clone(), |(pointer, rest)| format!("{pointer}{rest}"))
}
