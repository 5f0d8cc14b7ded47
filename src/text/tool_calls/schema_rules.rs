//! Rules of a grammar for arguments that keep to a schema, where they are no JSON.
//!
//! What is written alike in JSON (numbers, Python's texts) is left to its schema; the rest is a part of JSON Schema. The
//! invariant to remember: rules allow nothing that the schema does not. They may allow less: no further properties beside
//! those that the schema names, numbers of up to 15 digits. What they cannot keep to is an error that names its place.

mod finite;
mod leaves;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::super::grammar::{ANNOTATIONS, pointer};
use super::ToolSchema;
use super::notation::{Notation, quoted};
use crate::{Error, Result};

type Fields = Map<String, Value>;

/// Schemas within each other, references followed.
const MAX_DEPTH: usize = 64;

const OF_OBJECTS: [&str; 3] = ["properties", "required", "additionalProperties"];
const OF_ARRAYS: [&str; 3] = ["items", "minItems", "maxItems"];
const OF_TEXTS: [&str; 4] = ["minLength", "maxLength", "pattern", "format"];
const OF_NUMBERS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const OF_ALL: [&str; 6] = ["type", "const", "enum", "anyOf", "allOf", "$ref"];

/// Writes the rules of one tool's arguments.
pub(super) struct SchemaRules<'a> {
    notation: &'a Notation,
    root: &'a Value,
    /// What the names of rules begin with.
    prefix: String,
    /// What errors call the schema.
    field: String,
    rules: String,
    num_rules: usize,
    schemas: Vec<ToolSchema>,
    /// The rules of what references lead to, by pointer.
    targets: HashMap<String, String>,
}

/// An expression of arguments, the rules that it names, and the schemas that these name.
pub(super) type Arguments = (String, String, Vec<ToolSchema>);

impl<'a> SchemaRules<'a> {
    pub(super) fn new(notation: &'a Notation, root: &'a Value, prefix: String, field: String) -> Self {
        let (rules, schemas, targets) = Default::default();
        Self { notation, root, prefix, field, rules, num_rules: 0, schemas, targets }
    }

    /// The arguments that the schema allows.
    pub(super) fn arguments(mut self) -> Result<Arguments> {
        let arguments = self.call(self.root, "", 0)?;
        self.check_targets()?;
        Ok((arguments, self.rules, self.schemas))
    }

    fn error(&self, path: &str, message: impl std::fmt::Display) -> Error {
        Error::BadRequest(format!("{}{path}: {message}", self.field))
    }

    /// Puts an expression under a name of its own.
    fn rule(&mut self, expression: &str) -> String {
        let name = self.name();
        self.define(&name, expression);
        name
    }

    fn name(&mut self) -> String {
        self.num_rules += 1;
        format!("{}_{}", self.prefix, self.num_rules)
    }

    fn define(&mut self, name: &str, expression: &str) {
        self.rules.push_str(&format!("{name}: {expression}\n"));
    }

    /// The fields of a schema, if all can be kept to.
    fn fields<'s>(&self, schema: &'s Value, path: &str, depth: usize) -> Result<&'s Fields> {
        if depth > MAX_DEPTH {
            return Err(self.error(
                path,
                format_args!("schemas are over {MAX_DEPTH} deep within each other, references followed"),
            ));
        }
        let Value::Object(fields) = schema else {
            return Err(self.error(path, format_args!("a schema that allows something is needed, not {schema}")));
        };
        let kinds: [&[&str]; 5] = [&OF_ALL, &OF_OBJECTS, &OF_ARRAYS, &OF_TEXTS, &OF_NUMBERS];
        let mut known = kinds.concat();
        if *self.notation != Notation::Python {
            known.retain(|key| !matches!(*key, "pattern" | "format"));
        }
        if let Some(key) = fields.keys().find(|key| !is_annotation(key) && !known.contains(&key.as_str())) {
            let (format, known) = (self.notation.format().name(), known.join(", "));
            let what = format_args!("{key} is not supported in calls in the format {format}; supported are {known}");
            return Err(self.error(path, what));
        }
        Ok(fields)
    }

    /// Refuses what would have to hold beside a keyword.
    fn alone(&self, fields: &Fields, keyword: &str, path: &str) -> Result<()> {
        match fields.keys().find(|key| !is_annotation(key) && *key != keyword && *key != "type") {
            Some(key) => Err(self.error(path, format_args!("{key} beside {keyword} is not supported"))),
            None => Ok(()),
        }
    }

    /// What stands for a schema, if something does: the schema that it refers to, its alternatives or its only part, each
    /// with its place.
    fn others(&self, fields: &'a Fields, path: &str) -> Result<Option<Vec<(&'a Value, String)>>> {
        if let Some(reference) = fields.get("$ref") {
            self.alone(fields, "$ref", path)?;
            let place =
                reference.as_str().and_then(pointer).map(|place| if place == "/" { String::new() } else { place });
            let target = place.and_then(|place| Some((self.root.pointer(&place)?, place)));
            let lost = || self.error(&format!("{path}/$ref"), format_args!("{reference} is not there"));
            return Ok(Some(vec![target.ok_or_else(lost)?]));
        }
        for keyword in ["anyOf", "allOf"] {
            let Some(parts) = fields.get(keyword) else { continue };
            self.alone(fields, keyword, path)?;
            let parts = parts.as_array().filter(|parts| !parts.is_empty() && (keyword == "anyOf" || parts.len() == 1));
            let parts = parts.ok_or_else(|| {
                let needed = if keyword == "anyOf" { "a list that is not empty" } else { "a list of one schema" };
                self.error(&format!("{path}/{keyword}"), format_args!("{needed} is needed"))
            })?;
            let place = |(index, part)| (part, format!("{path}/{keyword}/{index}"));
            return Ok(Some(parts.iter().enumerate().map(place).collect()));
        }
        Ok(None)
    }

    /// The arguments of a call.
    fn call(&mut self, schema: &'a Value, path: &str, depth: usize) -> Result<String> {
        let fields = self.fields(schema, path, depth)?;
        if let Some(others) = self.others(fields, path)? {
            let calls = others.iter().map(|(part, place)| self.call(part, place, depth + 1));
            return calls.collect::<Result<Vec<_>>>().map(|calls| one_of(&calls));
        }
        if let Some(key) = ["const", "enum"].into_iter().find(|key| fields.contains_key(*key)) {
            return Err(self.error(path, format_args!("{key} is not supported for all arguments together")));
        }
        let types = self.types(fields, path)?;
        if !types.is_empty() && !types.contains(&"object") {
            return Err(self.error(&format!("{path}/type"), "arguments are an object"));
        }
        if *self.notation != Notation::Python {
            return self.object(fields, path, depth);
        }
        Ok(match self.members(fields, path, depth, &Notation::argument)? {
            Members::Any => self.notation.any_arguments().to_owned(),
            Members::Of(value) => format!("(KEY \"=\" {value} (\", \" KEY \"=\" {value})*)?"),
            Members::These(first) => first,
        })
    }

    /// A value.
    fn value(&mut self, schema: &'a Value, path: &str, depth: usize) -> Result<String> {
        if *schema == Value::Bool(true) {
            return Ok("value".to_owned());
        }
        let fields = self.fields(schema, path, depth)?;
        if let Some(others) = self.others(fields, path)? {
            let is_reference = fields.contains_key("$ref");
            let mut options = Vec::with_capacity(others.len());
            for (part, place) in &others {
                options.push(match is_reference {
                    true => self.target(part, place, depth)?,
                    false => self.value(part, place, depth + 1)?,
                });
            }
            return Ok(one_of(&options));
        }
        let types = self.types(fields, path)?;
        if let Some(keyword) = ["const", "enum"].into_iter().find(|key| fields.contains_key(*key)) {
            self.alone(fields, keyword, path)?;
            return self.literals(&fields[keyword], keyword, &types, path);
        }
        if types.is_empty() {
            return Ok("value".to_owned());
        }
        let options = types.iter().map(|kind| match *kind {
            "null" => Ok(self.notation.null().to_owned()),
            "boolean" => Ok(self.notation.boolean().to_owned()),
            "integer" | "number" => Ok(self.number(kind, fields, path)),
            "string" => self.text(fields, path),
            "array" => self.array(fields, path, depth),
            "object" => self.object(fields, path, depth),
            other => Err(self.error(&format!("{path}/type"), format_args!("there is no type {other:?}"))),
        });
        options.collect::<Result<Vec<_>>>().map(|options| one_of(&options))
    }

    /// The rule of what a reference leads to: recursion ends there.
    fn target(&mut self, schema: &'a Value, place: &str, depth: usize) -> Result<String> {
        if let Some(name) = self.targets.get(place) {
            return Ok(name.clone());
        }
        let name = self.name();
        self.targets.insert(place.to_owned(), name.clone());
        let value = self.value(schema, place, depth + 1)?;
        self.define(&name, &value);
        Ok(name)
    }

    /// The types that a schema names, or that its keywords are for; none if any will do.
    fn types(&self, fields: &'a Fields, path: &str) -> Result<Vec<&'a str>> {
        let has = |keys: &[&str]| keys.iter().any(|key| fields.contains_key(*key));
        let wrong = || self.error(&format!("{path}/type"), "a type or a list of types is needed");
        match fields.get("type") {
            Some(Value::String(kind)) => Ok(vec![kind]),
            Some(Value::Array(kinds)) if !kinds.is_empty() => {
                kinds.iter().map(|kind| kind.as_str().ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
            None if has(&OF_OBJECTS) => Ok(vec!["object"]),
            None if has(&OF_ARRAYS) => Ok(vec!["array"]),
            None if has(&OF_TEXTS) => Ok(vec!["string"]),
            None if has(&OF_NUMBERS) => Ok(vec!["number"]),
            None => Ok(Vec::new()),
        }
    }

    fn array(&mut self, fields: &'a Fields, path: &str, depth: usize) -> Result<String> {
        let (min, max) = self.counts(fields, ["minItems", "maxItems"], path)?;
        if max == Some(0) {
            return Ok(quoted("[]"));
        }
        let item = match fields.get("items") {
            Some(schema) => self.value(schema, &format!("{path}/items"), depth + 1)?,
            None => "value".to_owned(),
        };
        let item = self.rule(&item);
        let up_to = max.map_or_else(String::new, |max| (max - 1).to_string());
        let more = match max {
            Some(1) => String::new(),
            _ => format!(" ({} {item}){{{},{up_to}}}", self.notation.comma(), min.saturating_sub(1)),
        };
        let items = if min == 0 { format!("({item}{more})?") } else { format!("{item}{more}") };
        Ok(self.rule(&format!("{} {items} {}", quoted("["), quoted("]"))))
    }

    fn object(&mut self, fields: &'a Fields, path: &str, depth: usize) -> Result<String> {
        let (open, close, comma) = (quoted("{"), quoted("}"), self.notation.comma());
        let expression = match self.members(fields, path, depth, &Notation::key)? {
            Members::Any => return Ok("object".to_owned()),
            Members::Of(value) => {
                let key = self.notation.any_key();
                format!("{open} ({key} {value} ({comma} {key} {value})*)? {close}")
            }
            Members::These(first) => format!("{open} {first} {close}"),
        };
        Ok(self.rule(&expression))
    }

    /// What an object has within, in the order of the schema. `write` is how a name is written.
    fn members(
        &mut self,
        fields: &'a Fields,
        path: &str,
        depth: usize,
        write: &dyn Fn(&Notation, &str) -> Option<String>,
    ) -> Result<Members> {
        const ANY: &Value = &Value::Bool(true);
        let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
        let required: Vec<&str> = required.filter_map(Value::as_str).collect();
        let named = fields.get("properties").and_then(Value::as_object);
        let mut members: Vec<(&str, &Value)> =
            named.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema)).collect();
        let unnamed = required.iter().filter(|name| named.is_none_or(|named| !named.contains_key(**name)));
        members.extend(unnamed.map(|name| (*name, ANY)));
        if members.is_empty() {
            return Ok(match fields.get("additionalProperties") {
                None | Some(Value::Bool(true)) => Members::Any,
                Some(Value::Bool(false)) => Members::These("\"\"".to_owned()),
                Some(schema) => {
                    let value = self.value(schema, &format!("{path}/additionalProperties"), depth + 1)?;
                    Members::Of(self.rule(&value))
                }
            });
        }
        // From the last to the first: what may follow where nothing was written yet, and behind something.
        let (mut first, mut rest) = ("\"\"".to_owned(), "\"\"".to_owned());
        let comma = self.notation.comma();
        for (name, schema) in members.iter().rev() {
            let here = format!("{path}/properties/{}", name.replace('~', "~0").replace('/', "~1"));
            let key = write(self.notation, name).ok_or_else(|| {
                let format = self.notation.format().name();
                self.error(&here, format_args!("this name cannot be written in the format {format}"))
            })?;
            let value = self.value(schema, &here, depth + 1)?;
            let member = self.rule(&format!("{key} {value}"));
            let or = |next: &str| if required.contains(name) { String::new() } else { format!(" | {next}") };
            let (begun, going) =
                (format!("{member} {rest}{}", or(&first)), format!("{comma} {member} {rest}{}", or(&rest)));
            first = self.rule(&begun);
            rest = self.rule(&going);
        }
        Ok(Members::These(first))
    }
}

/// What an object may have within.
enum Members {
    /// Anything.
    Any,
    /// Any names, with values of this rule.
    Of(String),
    /// What this rule allows.
    These(String),
}

fn is_annotation(key: &str) -> bool {
    ANNOTATIONS.contains(&key) || key.starts_with("x-")
}

fn one_of(options: &[String]) -> String {
    match options {
        [one] => one.clone(),
        _ => format!("({})", options.join(" | ")),
    }
}
