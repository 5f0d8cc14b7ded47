//! JSON Schema against the public test suite (draft 2020-12): what a schema does not allow can never be drawn, and whatever is
//! drawn is valid by another library's judgement.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::rc::Rc;

use pagewise_grammar::{Compile, Constraint, FORMATS, GrammarCompiler, Match, Schema, Vocabulary};
use serde_json::Value;

/// Ids 0 to 255 are bytes, 256 ends an answer, the rest are pieces as a tokenizer has them.
const END: u32 = 256;
const PIECES: [&str; 8] = ["\", \"", "\": \"", "true", "null", "{\"", "[1", "\"}", "00"];

fn compiler() -> GrammarCompiler {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let pieces = PIECES.iter().map(|piece| piece.as_bytes().to_vec());
    let words = bytes.chain([b"</s>".to_vec()]).chain(pieces).collect();
    let vocabulary = Vocabulary { words, special: vec![END], end_of_generation: vec![END] };
    GrammarCompiler::new(vocabulary, Rc::new(|text: &str| text.bytes().map(u32::from).collect())).unwrap()
}

fn constraint(schema: &Value) -> Constraint {
    let [name, field] = ["answer", "schema"].map(str::to_owned);
    Constraint::JsonSchema(Schema { name, json: schema.to_string(), field })
}

/// A case of the suite.
#[derive(serde::Deserialize)]
struct Case {
    file: String,
    description: String,
    schema: Value,
    /// Description, instance, whether it is valid.
    tests: Vec<(String, Value, bool)>,
}

fn cases() -> Vec<Case> {
    let lines = include_str!("data/json-schema-suite/cases.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// JSON as answers are written: on one line, with a space behind commas and colons.
fn write(value: &Value, text: &mut String) {
    let separate = |text: &mut String, index: usize| text.push_str(if index > 0 { ", " } else { "" });
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(text, index);
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (index, (name, item)) in fields.iter().enumerate() {
                separate(text, index);
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push_str(": ");
                write(item, text);
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

/// The instance with its outermost fields in every order, as grammars have an order of their own.
fn orders(instance: &Value) -> Vec<Value> {
    let Value::Object(fields) = instance else { return vec![instance.clone()] };
    let mut orders: Vec<Vec<&String>> = vec![Vec::new()];
    for name in fields.keys().take(5) {
        let mut longer = Vec::new();
        for order in &orders {
            for at in 0..=order.len() {
                let mut order = order.clone();
                order.insert(at, name);
                longer.push(order);
            }
        }
        orders = longer;
    }
    let rest: Vec<_> = fields.keys().skip(5).collect();
    let field = |name: &String| (name.clone(), fields[name].clone());
    orders.iter().map(|order| Value::Object(order.iter().chain(&rest).map(|&name| field(name)).collect())).collect()
}

/// Whether a matcher takes a text as a whole answer, byte by byte, each only if the mask allows it.
fn takes(start: &dyn Match, instance: &Value) -> bool {
    let mut text = String::new();
    write(instance, &mut text);
    let mut matcher = start.fork();
    let mut is_complete = false;
    for byte in text.bytes() {
        if is_complete || matcher.accept(u32::from(byte)).map(|complete| is_complete = complete).is_err() {
            return false;
        }
    }
    is_complete || allows(&matcher.mask().unwrap_or_default(), END)
}

fn allows(mask: &[u32], id: u32) -> bool {
    mask.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 != 0)
}

/// Valid instances that cannot be drawn, by the case's file and the test's description: integers written as `1.0`, leap seconds,
/// and rare forms of addresses.
const NARROWER: [(&str, &str); 25] = [
    ("const", "float -2.0 is valid"),
    ("const", "float zero is valid"),
    ("const", "float one is valid"),
    ("const", "float is valid"),
    ("enum", "float zero is valid"),
    ("enum", "float one is valid"),
    ("enum", "[0.0] is valid"),
    ("enum", "[1.0] is valid"),
    ("type", "a float with zero fractional part is an integer"),
    ("optional/format/date-time", "a valid date-time with a leap second, UTC"),
    ("optional/format/date-time", "a valid date-time with a leap second, with minus offset"),
    ("optional/format/time", "a valid time string with leap second, Zulu"),
    ("optional/format/time", "valid leap second, large negative time-offset"),
    ("optional/format/time", "valid leap second, large positive time-offset"),
    ("optional/format/time", "valid leap second, negative time-offset"),
    ("optional/format/time", "valid leap second, positive time-offset"),
    ("optional/format/time", "valid leap second, zero time-offset"),
    ("optional/format/email", "a quoted string with a @ in the local part is valid"),
    ("optional/format/email", "a quoted string with a double dot in the local part is valid"),
    ("optional/format/email", "a quoted string with a space in the local part is valid"),
    ("optional/format/email", "an IPv6-address-literal after the @ is valid"),
    ("optional/format/ipv6", "a long valid ipv6"),
    ("optional/format/ipv6", "mixed format with double colons between the sections"),
    ("optional/format/ipv6", "mixed format with leading double colons (ipv4-mapped ipv6 address)"),
    ("optional/format/ipv6", "mixed format with the ipv4 section as decimal octets"),
];

/// Cases of the suite whose schema is refused: they refer to other documents or by name, count with `2.0`, have schemas in
/// `oneOf` that overlap or `patternProperties` that do, use `not` or `propertyNames`, or allow nothing.
const NUM_REFUSED: usize = 43;

#[test]
fn the_suite() {
    let compiler = compiler();
    let mut refused = Vec::new();
    let (mut num_valid, mut num_invalid) = (0, 0);
    let (mut too_wide, mut too_narrow) = (Vec::new(), BTreeSet::new());
    for case in cases() {
        let start = match compiler.compile(&constraint(&case.schema)) {
            Ok(start) => start,
            Err(error) => {
                refused.push(format!("{} | {}: {error}", case.file, case.description));
                continue;
            }
        };
        for (description, instance, is_valid) in &case.tests {
            let is_taken = orders(instance).iter().any(|instance| takes(&*start, instance));
            let name = format!("{} | {} | {description}", case.file, case.description);
            match (is_valid, is_taken) {
                (true, true) => num_valid += 1,
                (false, false) => num_invalid += 1,
                (false, true) => too_wide.push(name),
                (true, false) if !NARROWER.contains(&(&case.file, description)) => {
                    too_narrow.insert(name);
                }
                (true, false) => {}
            }
        }
    }
    println!("{num_valid} valid and {num_invalid} invalid instances; schemas refused: {refused:#?}");
    assert_eq!(refused.len(), NUM_REFUSED, "{refused:#?}");
    assert_eq!(too_wide, Vec::<String>::new(), "invalid, and taken");
    assert_eq!(too_narrow, BTreeSet::new(), "valid, and not taken");
    assert_eq!((num_valid, num_invalid), (379, 358));
}

/// A draw from a seed: the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, num: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % num as u64).unwrap()
    }
}

/// Draws an answer of up to `max` tokens, readily ended; `None` if it was cut. What is drawn under a mask must be accepted, what
/// is forced must be all that the mask allows.
fn draw(start: &dyn Match, dice: &mut Dice, max: usize) -> Option<String> {
    let mut matcher = start.fork();
    let mut text = Vec::new();
    let word = |id: u32| match id {
        0..=255 => vec![u8::try_from(id).unwrap()],
        _ => PIECES[id as usize - 257].as_bytes().to_vec(),
    };
    for num in 0..max {
        let forced = if dice.below(2) == 0 { matcher.forced() } else { Vec::new() };
        let mask = matcher.mask().unwrap();
        let allowed: Vec<u32> = (0..END + 1 + 8).filter(|&id| allows(&mask, id)).collect();
        assert!(!allowed.is_empty(), "a dead end behind {:?}", String::from_utf8_lossy(&text));
        // Ever more readily: the end, or what closes.
        let closing = [END, u32::from(b'"'), u32::from(b'}'), u32::from(b']'), 263];
        let readily = closing.iter().copied().find(|id| allowed.contains(id) && dice.below(max) < num * 4);
        let id = readily.unwrap_or_else(|| allowed[dice.below(allowed.len())]);
        if let Some(&first) = forced.first() {
            assert_eq!(allowed, [first], "forced");
        }
        if id == END {
            return Some(String::from_utf8(text).unwrap());
        }
        text.extend(word(id));
        if matcher.accept(id).unwrap() {
            return Some(String::from_utf8(text).unwrap());
        }
    }
    None
}

#[test]
fn what_is_drawn_is_valid() {
    let compiler = compiler();
    let mut dice = Dice(1);
    let (mut num_whole, mut num_cut) = (0, 0);
    for case in cases() {
        let Ok(start) = compiler.compile(&constraint(&case.schema)) else { continue };
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).should_validate_formats(true);
        let validator = options.build(&case.schema).unwrap();
        for _ in 0..4 {
            let Some(text) = draw(&*start, &mut dice, 120) else {
                num_cut += 1;
                continue;
            };
            num_whole += 1;
            if text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 15) {
                // The validator counts with floats.
                continue;
            }
            let value: Value = match serde_json::from_str(&text) {
                Ok(value) => value,
                // JSON, but no number of 64 bits.
                Err(error) if error.to_string().contains("number out of range") => continue,
                Err(error) => panic!("{text}: {error}"),
            };
            assert!(validator.is_valid(&value), "{text} is not valid for {} ({})", case.schema, case.file);
        }
    }
    assert!(num_whole > 3 * num_cut, "{num_whole} whole, {num_cut} cut");
}

#[test]
fn references_are_pointers_with_escapes() {
    let compiler = compiler();
    let allowed = |reference: &str, property: &str, value: &str| {
        let schema = serde_json::json!({
            "type": "object",
            "properties": { property: { "$ref": reference } },
            "required": [property],
            "additionalProperties": false,
            "$defs": {
                "a/b": { "const": "slash" },
                "a~b": { "const": "tilde" },
                "a%b c": { "const": "percent" },
                "~1": { "const": "twice" },
                "list": { "anyOf": [{ "const": "first" }, { "$ref": "#/$defs/a~1b" }] },
                "": { "const": "empty" },
                "d": { "x-of": { "a/b": { "items": { "$ref": "#/$defs/a%7E1b" }, "type": "array", "minItems": 1 } } },
            },
        });
        let start = compiler.compile(&constraint(&schema)).unwrap_or_else(|error| panic!("{reference}: {error}"));
        let value: Value = serde_json::from_str(value).unwrap();
        takes(&*start, &serde_json::json!({ property: value }))
    };
    for (reference, value) in [
        ("#/$defs/a~1b", "\"slash\""),
        ("#/%24defs/a~1b", "\"slash\""),
        ("#/$defs/a~0b", "\"tilde\""),
        ("#/$defs/a%7E0b", "\"tilde\""),
        ("#/$defs/a%25b%20c", "\"percent\""),
        ("#/$defs/~01", "\"twice\""),
        ("#/$defs/list/anyOf/0", "\"first\""),
        ("#/$defs/list", "\"slash\""),
        ("#/$defs/", "\"empty\""),
        ("#/$defs/d/x-of/a~1b", "[\"slash\", \"slash\"]"),
    ] {
        assert!(allowed(reference, "p", value), "{reference}");
        assert!(!allowed(reference, "p", "\"no\""), "{reference}");
    }
    // A property with a slash, and a schema that leads back into itself.
    let schema = serde_json::json!({
        "properties": { "a/b": { "type": "array", "items": { "$ref": "#/properties/a~1b" } }, "whole": { "$ref": "#" } },
        "type": "object",
        "additionalProperties": false,
    });
    let start = compiler.compile(&constraint(&schema)).unwrap();
    assert!(takes(&*start, &serde_json::json!({ "a/b": [[], [[]]], "whole": { "a/b": [] } })));
    assert!(!takes(&*start, &serde_json::json!({ "a/b": [1] })));
    assert!(!takes(&*start, &serde_json::json!({ "whole": { "a/b": [1] } })));
    for (broken, place) in [
        ("#/$defs/a~1b", "schema/properties/p/$ref: "),
        ("#/$defs/a%b", "schema/properties/p/$ref: "),
        ("#/$defs/%FF", "schema/properties/p/$ref: "),
        ("other.json#/$defs/a", "schema/properties/p/$ref: "),
        ("#name", "schema/properties/p/$ref: "),
        ("#/$defs/bad~1pattern", "schema/$defs/bad~1pattern/items/pattern: "),
        ("#/$defs/bad%25not", "schema/$defs/bad%not/items: "),
    ] {
        let definitions = serde_json::json!({
            "bad/pattern": { "items": { "pattern": "(" } },
            "x": {},
            "bad%not": { "items": { "not": {} } },
        });
        let mut schema = serde_json::json!({ "properties": { "p": { "$ref": broken } }, "$defs": definitions });
        if !broken.contains("not") {
            schema["$defs"].as_object_mut().unwrap().remove("bad%not");
        }
        let error = compiler.compile(&constraint(&schema)).err().unwrap().to_string();
        assert!(error.starts_with(place), "{broken}: {error}");
    }
}

#[test]
fn every_format_compiles() {
    let compiler = compiler();
    for format in FORMATS {
        let schema = serde_json::json!({"type": "string", "format": format});
        assert!(compiler.compile(&constraint(&schema)).is_ok(), "{format}");
    }
}
