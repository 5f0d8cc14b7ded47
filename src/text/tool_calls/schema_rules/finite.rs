//! Schemas that refer to themselves: whether what they allow can ever end.

use std::collections::HashSet;

use serde_json::Value;

use super::super::super::grammar::pointer;
use super::SchemaRules;
use crate::Result;

/// Places that references may lead to.
const MAX_TARGETS: usize = 500;

impl SchemaRules<'_> {
    /// Refuses references to what allows only values without end: an answer could begin one and never finish.
    pub(super) fn check_targets(&self) -> Result<()> {
        if self.targets.len() > MAX_TARGETS {
            return Err(self.error("", format_args!("references lead to more than {MAX_TARGETS} places")));
        }
        let mut open: Vec<&String> = self.targets.keys().collect();
        open.sort_unstable();
        let mut finite = HashSet::new();
        loop {
            let num = open.len();
            open.retain(|place| {
                let is_finite = self.root.pointer(place).is_some_and(|schema| ends(schema, &finite));
                if is_finite {
                    finite.insert((*place).clone());
                }
                !is_finite
            });
            match open.first() {
                None => return Ok(()),
                Some(place) if open.len() == num => return Err(self.error(place, "no value that ends is allowed here")),
                Some(_) => {}
            }
        }
    }
}

/// Whether a value exists that a schema allows, where those at `finite` are known to have one.
fn ends(schema: &Value, finite: &HashSet<String>) -> bool {
    if let Some(reference) = schema["$ref"].as_str() {
        return pointer(reference).is_some_and(|place| finite.contains(if place == "/" { "" } else { &place }));
    }
    for keyword in ["anyOf", "allOf"] {
        if let Some(parts) = schema[keyword].as_array() {
            return parts.iter().any(|part| ends(part, finite));
        }
    }
    let has_type = |kind: &str| schema["type"] == kind;
    if has_type("array") || schema["type"].is_null() && !schema["items"].is_null() {
        let is_empty = schema["minItems"].as_u64().unwrap_or(0) == 0;
        return is_empty || ends(&schema["items"], finite);
    }
    if has_type("object") || schema["type"].is_null() {
        let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        return required.all(|name| ends(&schema["properties"][name], finite));
    }
    true
}
