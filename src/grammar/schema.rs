//! JSON Schemas are checked before they are compiled: what is not supported is an error that says where, never ignored.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::limits::{MAX_BYTES, MAX_COUNT, MAX_DEPTH, MAX_PROPERTIES, MAX_SCHEMAS};
use super::references::{original, resolve, target, without_escapes};
use super::{ANNOTATIONS, GrammarError, Result, Schema};

/// Keywords that decide what is allowed.
pub const KEYWORDS: [&str; 27] = [
    "type",
    "const",
    "enum",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "minProperties",
    "maxProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];

/// What `format` may be.
pub const FORMATS: [&str; 10] =
    ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// Keywords that hold schemas by name, in a list, and by themselves.
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
const LISTS: [&str; 5] = ["anyOf", "oneOf", "allOf", "prefixItems", "items"];
const SINGLES: [&str; 3] = ["items", "additionalProperties", "additionalItems"];
/// Keywords that count.
const COUNTS: [&str; 6] = ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"];

/// How llguidance is told things of its own, in a schema.
const OPTIONS: &str = "x-guidance";

/// Dates and times as the calendar has them. llguidance's know neither which years are leap years, nor when a minute has 61
/// seconds; here none has.
const DATE: &str = concat!(
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])",
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))",
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)",
);
const TIME: &str = concat!(
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?",
    r"(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])",
);

/// Schemas that are compiled by themselves to find which is to blame.
const MAX_BLAMED: usize = 200;

/// A schema that can be compiled.
pub(super) struct Checked {
    /// As llguidance is told it.
    pub(super) value: Value,
    /// Where its definitions are in the original, if they are elsewhere.
    copied: Vec<String>,
}

impl Checked {
    /// The place in the original of a place in `value`.
    pub(super) fn path(&self, path: String) -> String {
        if self.copied.is_empty() { path } else { original(path, &self.copied) }
    }
}

/// Reads a schema and checks what it asks.
pub(super) fn check(schema: &Schema) -> Result<Checked> {
    let Schema { json, field, .. } = schema;
    if json.len() > MAX_BYTES {
        return Err(GrammarError(format!("{field}: {} bytes asked, {MAX_BYTES} allowed", json.len())));
    }
    let root: Value = serde_json::from_str(json).map_err(|error| GrammarError(format!("{field}: {error}")))?;
    let mut walk = Walk { field, root: &root, followed: HashSet::new(), num_schemas: 0 };
    walk.visit(&root, String::new(), 0)?;
    let (plain, copied) = without_escapes(&root, &walk.followed);
    Ok(Checked { value: with_exact_formats(plain), copied })
}

/// The schema with those directly within it changed.
pub(super) fn map_schemas(schema: Value, change: &dyn Fn(Value) -> Value) -> Value {
    let Value::Object(fields) = schema else { return schema };
    let within = |(key, value): (String, Value)| {
        let value = match value {
            Value::Object(map) if MAPS.contains(&key.as_str()) => {
                map.into_iter().map(|(name, part)| (name, change(part))).collect()
            }
            Value::Array(list) if LISTS.contains(&key.as_str()) => list.into_iter().map(change).collect(),
            part if SINGLES.contains(&key.as_str()) => change(part),
            other => other,
        };
        (key, value)
    };
    Value::Object(fields.into_iter().map(within).collect())
}

/// Adds a pattern where there is a date or a time, to the schemas within as well.
fn with_exact_formats(schema: Value) -> Value {
    let mut schema = map_schemas(schema, &with_exact_formats);
    let Value::Object(fields) = &mut schema else { return schema };
    let pattern = match fields.get("format").and_then(Value::as_str) {
        Some("date") => Some(format!("^{DATE}$")),
        Some("time") => Some(format!("^{TIME}$")),
        Some("date-time") => Some(format!("^{DATE}[tT]{TIME}$")),
        _ => None,
    };
    if let Some(pattern) = pattern
        && let Some(own) = fields.insert("pattern".to_owned(), pattern.into())
    {
        let all = fields.entry("allOf").or_insert_with(|| json!([]));
        all.as_array_mut().into_iter().for_each(|all| all.push(json!({"pattern": own.clone()})));
    }
    schema
}

/// The schema with how JSON is to be written: on one line, as `json.dumps` of Python does. Bounded white space keeps models
/// from writing nothing else, and what is fixed need not be drawn.
pub(super) fn with_style(schema: &Value) -> Value {
    let mut fields = match schema {
        Value::Object(fields) => fields.clone(),
        // The schema that allows everything, or nothing.
        Value::Bool(true) => Map::new(),
        other => Map::from_iter([("allOf".to_owned(), json!([other]))]),
    };
    let style = json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
    fields.insert(OPTIONS.to_owned(), style);
    Value::Object(fields)
}

struct Walk<'a> {
    field: &'a str,
    root: &'a Value,
    /// References whose target was visited.
    followed: HashSet<&'a str>,
    num_schemas: usize,
}

impl<'a> Walk<'a> {
    fn error(&self, path: &str, message: impl std::fmt::Display) -> GrammarError {
        GrammarError(format!("{}{path}: {message}", self.field))
    }

    /// Checks a schema at `path` and those within it. References are followed, because compiling follows them too.
    fn visit(&mut self, schema: &'a Value, path: String, depth: usize) -> Result<()> {
        self.num_schemas += 1;
        if self.num_schemas > MAX_SCHEMAS {
            return Err(self.error("", format_args!("it has more than {MAX_SCHEMAS} schemas within it")));
        }
        if depth > MAX_DEPTH {
            let allowed = format_args!("schemas are over {MAX_DEPTH} deep within each other, references followed");
            return Err(self.error(&path, allowed));
        }
        let fields = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(fields) => fields,
            other => return Err(self.error(&path, format_args!("a schema is an object or a boolean, not {other}"))),
        };
        for (key, value) in fields {
            let here = format!("{path}/{}", escaped(key));
            self.check_keyword(key, value, &path, &here)?;
            match value {
                Value::Object(map) if MAPS.contains(&key.as_str()) => {
                    for (name, part) in map {
                        self.visit(part, format!("{here}/{}", escaped(name)), depth + 1)?;
                    }
                }
                Value::Array(list) if LISTS.contains(&key.as_str()) => {
                    for (index, part) in list.iter().enumerate() {
                        self.visit(part, format!("{here}/{index}"), depth + 1)?;
                    }
                }
                part if SINGLES.contains(&key.as_str()) => self.visit(part, here, depth + 1)?,
                Value::String(reference) if key == "$ref" => {
                    let (Some(place), Some(part)) = (target(reference), resolve(self.root, reference)) else {
                        let what =
                            format_args!("{reference:?} is not there; `#` and `#/…`, within the schema, are followed");
                        return Err(self.error(&here, what));
                    };
                    if self.followed.insert(reference) {
                        self.visit(part, place, depth + 1)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_keyword(&self, key: &str, value: &Value, path: &str, here: &str) -> Result<()> {
        let is_annotation = ANNOTATIONS.contains(&key) || key.starts_with("x-") && key != OPTIONS;
        if !is_annotation && !KEYWORDS.contains(&key) {
            let supported = KEYWORDS.join(", ");
            return Err(self.error(path, format_args!("{key} is not supported; supported are {supported}")));
        }
        if COUNTS.contains(&key) && value.as_u64().is_some_and(|count| count > MAX_COUNT) {
            return Err(self.error(here, format_args!("{value} asked, at most {MAX_COUNT} allowed")));
        }
        if let ("properties", Some(num)) = (key, value.as_object().map(Map::len))
            && num > MAX_PROPERTIES
        {
            return Err(self.error(here, format_args!("{num} properties asked, at most {MAX_PROPERTIES} allowed")));
        }
        if key == "format" && !value.as_str().is_some_and(|format| FORMATS.contains(&format)) {
            let supported = FORMATS.join(", ");
            return Err(self.error(here, format_args!("{value} is not supported; supported are {supported}")));
        }
        Ok(())
    }
}

/// A name as a step of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Finds the innermost schema that fails by itself with the same error; returns its path. `compile` says why a schema fails, if
/// it does.
pub(super) fn blame(root: &Value, error: &str, compile: &dyn Fn(&Value) -> Option<String>) -> String {
    let (mut path, mut schema, mut num_left) = (String::new(), root, MAX_BLAMED);
    'descend: while let Value::Object(fields) = schema {
        for (step, part) in parts(fields) {
            if num_left == 0 {
                break 'descend;
            }
            num_left -= 1;
            if compile(&by_itself(part, root)).as_deref() == Some(error) {
                path.push_str(&step);
                schema = part;
                continue 'descend;
            }
        }
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str)
            && let (Some(place), Some(part)) = (target(reference), resolve(root, reference))
            && num_left > 0
            && compile(&by_itself(part, root)).as_deref() == Some(error)
        {
            num_left -= 1;
            (path, schema) = (place, part);
            continue;
        }
        if let Some(pattern) = fields.get("pattern")
            && compile(&json!({"type": "string", "pattern": pattern})).as_deref() == Some(error)
        {
            path.push_str("/pattern");
        }
        break;
    }
    path
}

/// The schemas directly within another, with the steps to them.
fn parts(fields: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut parts = Vec::new();
    for (key, value) in fields {
        let key = key.as_str();
        match value {
            Value::Object(map) if MAPS.contains(&key) => {
                parts.extend(map.iter().map(|(name, part)| (format!("/{key}/{}", escaped(name)), part)));
            }
            Value::Array(list) if LISTS.contains(&key) => {
                parts.extend(list.iter().enumerate().map(|(index, part)| (format!("/{key}/{index}"), part)));
            }
            part if SINGLES.contains(&key) => parts.push((format!("/{key}"), part)),
            _ => {}
        }
    }
    parts
}

/// A part of a schema with the definitions that it may refer to.
fn by_itself(part: &Value, root: &Value) -> Value {
    let mut part = part.clone();
    if let (Value::Object(part), Value::Object(root)) = (&mut part, root) {
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = root.get(key) {
                part.insert(key.to_owned(), definitions.clone());
            }
        }
    }
    part
}
