//! The key-value part of a header.

use super::value::{Array, StringArray, Value};
use crate::{Error, Result};
use std::collections::HashMap;

/// Metadata in file order, with getters that say what they wanted when they do not find it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    entries: Vec<(String, Value)>,
    /// Key to index in `entries`.
    index: HashMap<String, usize>,
}

/// A required and an optional getter of one type.
macro_rules! getters {
    ($required:ident, $optional:ident, $type:ty, $what:literal, $convert:expr) => {
        #[doc = concat!("The ", $what, " under a key.")]
        ///
        /// # Errors
        /// `corrupt_model` when the key is missing or has another type.
        pub fn $required(&self, key: &str) -> Result<$type> {
            self.$optional(key)?.ok_or_else(|| missing(key, $what))
        }

        #[doc = concat!("The ", $what, " under a key, if the key is there.")]
        ///
        /// # Errors
        /// `corrupt_model` when it has another type.
        pub fn $optional(&self, key: &str) -> Result<Option<$type>> {
            let Some(value) = self.get(key) else { return Ok(None) };
            let convert: fn(&Value) -> Option<$type> = $convert;
            convert(value).map(Some).ok_or_else(|| mismatch(key, $what, value))
        }
    };
}

impl Metadata {
    /// Metadata of these entries.
    ///
    /// # Errors
    /// `corrupt_model` when a key occurs twice.
    pub fn new(entries: impl IntoIterator<Item = (String, Value)>) -> Result<Self> {
        let mut metadata = Self::default();
        for (key, value) in entries {
            if let Err(key) = metadata.insert(key, value) {
                return Err(Error::CorruptModel(format!("metadata key `{key}` occurs twice")));
            }
        }
        Ok(metadata)
    }

    /// Adds an entry, or gives its key back if there is one like it already.
    pub(super) fn insert(&mut self, key: String, value: Value) -> Result<(), String> {
        if self.index.contains_key(&key) {
            return Err(key);
        }
        self.index.insert(key.clone(), self.entries.len());
        self.entries.push((key, value));
        Ok(())
    }

    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.index.get(key).map(|&index| &self.entries[index].1)
    }

    /// All entries in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    getters!(str, opt_str, &str, "string", |value| match value {
        Value::String(text) => Some(text),
        _ => None,
    });

    getters!(u32, opt_u32, u32, "integer from 0 to 4294967295", |value| {
        integer(value).and_then(|value| u32::try_from(value).ok())
    });

    getters!(u64, opt_u64, u64, "integer from 0 to 18446744073709551615", |value| {
        integer(value).and_then(|value| u64::try_from(value).ok())
    });

    getters!(f32, opt_f32, f32, "float", |value| match value {
        Value::F32(value) => Some(*value),
        #[allow(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
        Value::F64(value) => Some(*value as f32),
        _ => None,
    });

    getters!(bool, opt_bool, bool, "bool", |value| match value {
        Value::Bool(value) => Some(*value),
        _ => None,
    });

    getters!(strings, opt_strings, &StringArray, "array of strings", |value| match value {
        Value::Array(Array::Strings(strings)) => Some(strings),
        _ => None,
    });

    getters!(u32s, opt_u32s, Vec<u32>, "array of integers from 0 to 4294967295", |value| integers(value));

    getters!(i32s, opt_i32s, Vec<i32>, "array of 32-bit signed integers", |value| integers(value));

    getters!(f32s, opt_f32s, Vec<f32>, "array of floats", |value| match value {
        Value::Array(Array::F32(values)) => Some(values.clone()),
        #[allow(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
        Value::Array(Array::F64(values)) => Some(values.iter().map(|&value| value as f32).collect()),
        _ => None,
    });

    getters!(bools, opt_bools, &[bool], "array of bools", |value| match value {
        Value::Array(Array::Bool(values)) => Some(values.as_slice()),
        _ => None,
    });
}

fn missing(key: &str, what: &str) -> Error {
    Error::CorruptModel(format!("metadata key `{key}` is missing; a value of type {what} is needed"))
}

fn mismatch(key: &str, what: &str, value: &Value) -> Error {
    let found = match integer(value) {
        Some(number) => format!("{} {number}", value.type_name()),
        None => value.type_name(),
    };
    Error::CorruptModel(format!("metadata key `{key}`: {what} wanted, {found} found"))
}

/// Any integer type as one that holds them all.
fn integer(value: &Value) -> Option<i128> {
    Some(match *value {
        Value::U8(value) => value.into(),
        Value::I8(value) => value.into(),
        Value::U16(value) => value.into(),
        Value::I16(value) => value.into(),
        Value::U32(value) => value.into(),
        Value::I32(value) => value.into(),
        Value::U64(value) => value.into(),
        Value::I64(value) => value.into(),
        _ => return None,
    })
}

/// An array of any integer type, if every element fits in `T`.
fn integers<T>(value: &Value) -> Option<Vec<T>>
where
    T: TryFrom<u8> + TryFrom<i8> + TryFrom<u16> + TryFrom<i16>,
    T: TryFrom<u32> + TryFrom<i32> + TryFrom<u64> + TryFrom<i64>,
{
    fn all<F: Copy, T: TryFrom<F>>(values: &[F]) -> Option<Vec<T>> {
        values.iter().map(|&value| T::try_from(value).ok()).collect()
    }
    let Value::Array(array) = value else { return None };
    match array {
        Array::U8(values) => all(values),
        Array::I8(values) => all(values),
        Array::U16(values) => all(values),
        Array::I16(values) => all(values),
        Array::U32(values) => all(values),
        Array::I32(values) => all(values),
        Array::U64(values) => all(values),
        Array::I64(values) => all(values),
        _ => None,
    }
}
