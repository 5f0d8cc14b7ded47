//! Values that have no schemas within: constants, numbers, texts.

use serde_json::{Value, json};

use super::super::ToolSchema;
use super::{Fields, OF_NUMBERS, OF_TEXTS, SchemaRules, one_of};
use crate::Result;

/// Elements and characters that can be counted.
const MAX_COUNT: u64 = 100_000;
/// The largest number of fifteen digits.
const MAX_NUMBER: u64 = 999_999_999_999_999;

impl SchemaRules<'_> {
    /// Values that a schema counts up.
    pub(super) fn literals(&self, given: &Value, keyword: &str, types: &[&str], path: &str) -> Result<String> {
        let values = match given {
            Value::Array(values) if keyword == "enum" => values.iter().collect(),
            value if keyword == "const" => vec![value],
            _ => return Err(self.error(&format!("{path}/enum"), "a list is needed")),
        };
        let is_allowed = |value: &&&Value| types.is_empty() || types.iter().any(|kind| is_of(value, kind));
        let mut options = Vec::new();
        for value in values.iter().filter(is_allowed) {
            let literal = self.notation.literal(value);
            let written = literal.ok_or_else(|| {
                let format = self.notation.format().name();
                self.error(
                    &format!("{path}/{keyword}"),
                    format_args!("{value} cannot be written in the format {format}"),
                )
            })?;
            options.push(format!("({written})"));
        }
        if options.is_empty() {
            return Err(self.error(&format!("{path}/{keyword}"), "there is no value that is allowed"));
        }
        Ok(one_of(&options))
    }

    /// A number.
    pub(super) fn number(&mut self, kind: &str, fields: &Fields, path: &str) -> String {
        let mut schema = picked(fields, &OF_NUMBERS);
        if schema.is_empty() {
            return if kind == "integer" { "INTEGER" } else { "NUMBER" }.to_owned();
        }
        // Where there is no end, the one that every reader of numbers knows.
        let limit = |keys: [&str; 2]| keys.iter().find_map(|key| fields.get(*key)?.as_f64());
        let (min, max) = (limit(["minimum", "exclusiveMinimum"]), limit(["maximum", "exclusiveMaximum"]));
        #[allow(clippy::cast_precision_loss, reason = "it has 50 bits")]
        let end = MAX_NUMBER as f64;
        if max.is_none() && min.is_none_or(|min| min < end) {
            schema.insert("maximum".to_owned(), MAX_NUMBER.into());
        }
        if min.is_none() && max.is_none_or(|max| max > -end) {
            schema.insert("minimum".to_owned(), json!(-MAX_NUMBER.cast_signed()));
        }
        schema.insert("type".to_owned(), kind.into());
        self.json(schema.into(), path)
    }

    /// A text.
    pub(super) fn text(&mut self, fields: &Fields, path: &str) -> Result<String> {
        let mut schema = picked(fields, &OF_TEXTS);
        if schema.is_empty() {
            return Ok(self.notation.any_text());
        }
        let (min, max) = self.counts(fields, ["minLength", "maxLength"], path)?;
        if let Some(text) = self.notation.text(min, max) {
            return Ok(text);
        }
        schema.insert("type".to_owned(), "string".into());
        Ok(self.json(schema.into(), path))
    }

    /// What a schema says of how many there have to be.
    pub(super) fn counts(&self, fields: &Fields, keys: [&str; 2], path: &str) -> Result<(u64, Option<u64>)> {
        let count = |key: &str| {
            let wrong = || self.error(&format!("{path}/{key}"), format_args!("0 to {MAX_COUNT} are allowed"));
            let value = fields.get(key).map(|value| value.as_u64().filter(|&num| num <= MAX_COUNT).ok_or_else(wrong));
            value.transpose()
        };
        let (min, max) = (count(keys[0])?.unwrap_or(0), count(keys[1])?);
        match max.is_some_and(|max| max < min) {
            true => Err(self.error(path, format_args!("{} is more than {}", keys[0], keys[1]))),
            false => Ok((min, max)),
        }
    }

    /// What JSON's own rules are for.
    fn json(&mut self, schema: Value, path: &str) -> String {
        let name = self.name();
        let field = format!("{}{path}", self.field);
        self.schemas.push(ToolSchema { name: name.clone(), schema, field });
        format!("@{name}")
    }
}

/// The keywords of a schema that are among these.
fn picked(fields: &Fields, keys: &[&str]) -> Fields {
    fields
        .iter()
        .filter(|(key, _)| keys.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn is_of(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => kind == "number" || kind == "integer" && !number.is_f64(),
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    }
}
