//! Strict arguments in the formats whose calls are no JSON: what of a schema can be kept to, and errors for the rest.

use pagewise::text::{ToolChoice, ToolFormat};
use serde_json::{Value, json};

use super::tool_grammars::{anything, compile, tools, try_compile};

/// Everything that the formats without JSON can keep to.
fn rich_schema() -> Value {
    json!({
        "type": "object",
        "description": "d",
        "properties": {
            "place": { "$ref": "#/$defs/a~1place" },
            "unit": { "enum": ["C", "F (old)", null, 1.5, ["x", 1], { "k": true }] },
            "kind": { "type": "string", "enum": ["a", "ab", 3] },
            "fixed": { "const": false },
            "short": { "type": "string", "minLength": 1, "maxLength": 3 },
            "num": { "type": "integer", "minimum": 1, "maximum": 12 },
            "real": { "type": "number", "exclusiveMinimum": 0 },
            "maybe": { "anyOf": [{ "type": "boolean" }, { "type": "null" }], "default": null },
            "many": { "type": ["string", "integer"] },
            "tags": { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 3 },
            "two": { "items": { "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 } },
            "none": { "type": "array", "maxItems": 0 },
            "map": { "type": "object", "additionalProperties": { "type": "integer" } },
            "free": {},
            "tree": { "allOf": [{ "$ref": "#/$defs/tree" }] },
        },
        "required": ["place"],
        "additionalProperties": false,
        "$defs": {
            "a/place": {
                "type": "object",
                "properties": { "x": { "type": "number" }, "y": { "type": "number" }, "z": { "type": "number" } },
                "required": ["y"],
                "additionalProperties": false,
            },
            "tree": {
                "type": "object",
                "properties": { "v": { "type": "integer" }, "sub": { "type": "array", "items": { "$ref": "#/$defs/tree" } } },
                "required": ["v"],
                "additionalProperties": false,
            },
        },
    })
}

#[test]
fn what_the_formats_without_json_can_keep_to() {
    let place = |more: Value| {
        let mut all = json!({ "place": { "y": 1 } });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    for format in [ToolFormat::FunctionGemma, ToolFormat::Gemma] {
        let grammar = compile(format, tools(Some(rich_schema()), true), ToolChoice::Required, None);
        for allowed in [
            json!({ "place": { "x": 1, "y": -2.5, "z": 0 } }),
            json!({ "place": { "y": 1, "z": 0 } }),
            place(json!({ "unit": "C" })),
            place(json!({ "unit": "F (old)" })),
            place(json!({ "unit": null })),
            place(json!({ "unit": 1.5 })),
            place(json!({ "unit": ["x", 1] })),
            place(json!({ "unit": { "k": true } })),
            place(json!({ "kind": "a" })),
            place(json!({ "kind": "ab", "fixed": false })),
            place(json!({ "short": "é\"'" })),
            place(json!({ "num": 12, "real": 0.5 })),
            place(json!({ "maybe": true })),
            place(json!({ "maybe": null, "many": "x" })),
            place(json!({ "many": 7 })),
            place(json!({ "tags": ["", "b", "c"] })),
            place(json!({ "two": [[1, 2], [3, 4]], "none": [] })),
            place(json!({ "two": [] })),
            place(json!({ "map": {} })),
            place(json!({ "map": { "a": 1, "b_2": 2 } })),
            place(json!({ "free": anything() })),
            place(json!({ "tree": { "v": 1, "sub": [{ "v": 2, "sub": [] }, { "v": 3 }] } })),
        ] {
            assert!(grammar.takes_call(&allowed), "{format:?}: {allowed}");
            assert!(jsonschema::is_valid(&rich_schema(), &allowed), "{allowed}");
        }
        for refused in [
            json!({}),
            json!({ "place": {} }),
            json!({ "place": { "y": true } }),
            json!({ "place": { "y": 1, "w": 1 } }),
            place(json!({ "unit": "K" })),
            place(json!({ "kind": 3 })),
            place(json!({ "kind": "abc" })),
            place(json!({ "fixed": true })),
            place(json!({ "short": "" })),
            place(json!({ "short": "abcd" })),
            place(json!({ "num": 13 })),
            place(json!({ "num": 0 })),
            place(json!({ "real": 0 })),
            place(json!({ "maybe": 1 })),
            place(json!({ "many": true })),
            place(json!({ "tags": [] })),
            place(json!({ "tags": ["a", "b", "c", "d"] })),
            place(json!({ "two": [[1]] })),
            place(json!({ "none": [1] })),
            place(json!({ "map": { "a": "1" } })),
            place(json!({ "tree": { "v": 1, "sub": [{}] } })),
        ] {
            assert!(!grammar.takes_call(&refused), "{format:?}: {refused}");
        }
    }
    let when = json!({ "properties": { "when": { "type": "string", "format": "date" } }, "required": ["when"] });
    let dated = compile(ToolFormat::Gemma, tools(Some(when), true), ToolChoice::Required, None);
    assert!(dated.takes_call(&json!({ "when": "2024-02-29" })) && !dated.takes_call(&json!({ "when": "2023-02-29" })));
}

#[test]
fn what_the_formats_without_json_cannot_keep_to_is_named() {
    let of = |format, property: Value| {
        let schema = json!({ "type": "object", "properties": { "a": { "items": property } } });
        let error = try_compile(format, tools(Some(schema), true), ToolChoice::Auto, None).err().unwrap();
        let path = error.strip_prefix("tools[0].function.parameters/properties/a/items").map(str::to_owned);
        path.unwrap_or_else(|| panic!("{error}"))
    };
    for format in [ToolFormat::FunctionGemma, ToolFormat::Gemma] {
        for (property, error) in [
            (json!({ "oneOf": [{}] }), ": oneOf is not supported in calls in the format "),
            (json!({ "type": "object", "patternProperties": {} }), ": patternProperties is not supported"),
            (json!({ "type": "array", "uniqueItems": true }), ": uniqueItems is not supported"),
            (json!({ "anyOf": [{}], "minimum": 1 }), ": minimum beside anyOf is not supported"),
            (json!({ "enum": [1], "minimum": 1 }), ": minimum beside enum is not supported"),
            (json!({ "allOf": [{}, {}] }), "/allOf: a list of one schema is needed"),
            (json!({ "$ref": "#/$defs/none" }), "/$ref: \"#/$defs/none\" is not there"),
            (json!({ "type": "string", "enum": [1] }), "/enum: there is no value that is allowed"),
            (json!({ "type": "text" }), "/type: there is no type \"text\""),
            (json!({ "type": "string", "maxLength": 1_000_000 }), "/maxLength: 0 to 100000 are allowed"),
            (json!({ "type": "array", "minItems": 2, "maxItems": 1 }), ": minItems is more than maxItems"),
            (json!(false), ": a schema that allows something is needed, not false"),
            (json!({ "items": [{}] }), "/items: a schema that allows something is needed"),
        ] {
            let told = of(format, property.clone());
            assert!(told.starts_with(error), "{format:?}: {property}: {told}");
        }
    }
    let marked = ToolFormat::FunctionGemma;
    assert!(
        of(marked, json!({ "pattern": "a" }))
            .starts_with(": pattern is not supported in calls in the format functiongemma")
    );
    let told = of(marked, json!({ "const": "<escape>" }));
    assert!(told.starts_with("/const: \"<escape>\" cannot be written in the format functiongemma"), "{told}");
    let told = of(marked, json!({ "properties": { "a b": {} } }));
    assert!(told.starts_with("/properties/a b: this name cannot be written in the format functiongemma"), "{told}");
    assert!(of(ToolFormat::Gemma, json!({ "pattern": "(" })).starts_with("/pattern: "));
    let named = json!({ "properties": { "a-b": {} } });
    let error = try_compile(ToolFormat::Gemma, tools(Some(named), true), ToolChoice::Auto, None).err().unwrap();
    assert!(error.starts_with("tools[0].function.parameters/properties/a-b: this name cannot"), "{error}");
    for (endless, place) in [
        (json!({ "$ref": "#" }), ""),
        (
            json!({ "properties": { "a": { "$ref": "#/properties/a" } } }),
            "/properties/a: no value that ends is allowed",
        ),
        (
            json!({ "properties": { "a": { "$ref": "#/$defs/b" } }, "$defs": { "b": { "items": { "$ref": "#/$defs/b" }, "minItems": 1 } } }),
            "/$defs/b: no value that ends is allowed",
        ),
        (json!({ "properties": { "a": { "$ref": "#" } }, "required": ["a"] }), ": no value that ends is allowed"),
    ] {
        let error =
            try_compile(ToolFormat::Gemma, tools(Some(endless), true), ToolChoice::Required, None).err().unwrap();
        assert!(error.starts_with(&format!("tools[0].function.parameters{place}")), "{error}");
    }
    let deep = (0..100).fold(json!({}), |schema, _| json!({ "items": schema }));
    let deep = json!({ "properties": { "a": deep } });
    assert!(try_compile(marked, tools(Some(deep), true), ToolChoice::Auto, None).err().unwrap().contains("64 deep"));
}
