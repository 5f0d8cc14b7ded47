//! What a caller asks an answer to be.

use serde::{Deserialize, Serialize};

/// Keywords of a schema that decide nothing. So are all that begin with `x-`.
pub const ANNOTATIONS: [&str; 15] = [
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$defs",
    "definitions",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
];

/// What an answer has to be, as plain data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Constraint {
    /// JSON that a schema allows, on one line, with a space behind each comma and colon.
    JsonSchema(Schema),
    /// Text that a regular expression matches from its first to its last byte, in the syntax of Rust's `regex`.
    Regex {
        /// The expression.
        pattern: String,
        /// What errors call it, such as `regex`.
        field: String,
    },
    /// Text that a grammar derives from its rule `start`, in llguidance's variant of Lark.
    Lark {
        /// The grammar. `@name` stands for JSON that the schema of that name allows.
        grammar: String,
        /// Schemas that the grammar names.
        #[serde(default)]
        schemas: Vec<Schema>,
        /// What errors call it, such as `grammar`.
        field: String,
    },
    /// What at least one of several allows.
    AnyOf {
        /// At least one.
        parts: Vec<Constraint>,
    },
}

/// A JSON Schema of draft 2020-12.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Schema {
    /// What a grammar calls it: letters, digits, `_` and `-`. Of no meaning where it is alone.
    pub name: String,
    /// The schema as JSON. The order of its properties is the order of the answer's.
    pub json: String,
    /// What errors call it, such as `tools[0].function.parameters`: what is behind it is a path within the schema.
    pub field: String,
}

impl Constraint {
    /// Any JSON object; `field` is what errors call it.
    pub fn json_object(field: &str) -> Self {
        let (name, json) = ("object".to_owned(), r#"{"type":"object"}"#.to_owned());
        Self::JsonSchema(Schema { name, json, field: field.to_owned() })
    }
}
