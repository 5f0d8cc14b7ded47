//! Metadata values.

use super::cursor::{Cursor, Parse};
use super::limits::{MAX_ARRAY_ELEMENTS, MAX_STRING_BYTES};

/// A metadata value, with the type it has in the file.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each variant is the GGUF type of its name")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(String),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// An array of a metadata value, stored compactly: vocabularies have hundreds of thousands of elements.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each variant is the GGUF type of its name")]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    F32(Vec<f32>),
    Bool(Vec<bool>),
    Strings(StringArray),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

/// Strings in one buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StringArray {
    text: String,
    /// Where each string ends in `text`.
    ends: Vec<u32>,
}

impl StringArray {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at an index.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)? as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        Some(&self.text[start..end])
    }

    /// The strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let from = std::mem::replace(&mut start, end as usize);
            &self.text[from..end as usize]
        })
    }
}

impl<S: AsRef<str>> FromIterator<S> for StringArray {
    /// # Panics
    /// When the strings are longer than 4 GiB together.
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut array = StringArray::default();
        for string in strings {
            array.text.push_str(string.as_ref());
            let Ok(end) = u32::try_from(array.text.len()) else { panic!("strings of more than 4 GiB") };
            array.ends.push(end);
        }
        array
    }
}

impl Value {
    /// Name of the type, with the number of elements for an array.
    pub fn type_name(&self) -> String {
        match self {
            Value::U8(_) => "u8".to_owned(),
            Value::I8(_) => "i8".to_owned(),
            Value::U16(_) => "u16".to_owned(),
            Value::I16(_) => "i16".to_owned(),
            Value::U32(_) => "u32".to_owned(),
            Value::I32(_) => "i32".to_owned(),
            Value::F32(_) => "f32".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(array) => format!("array of {} {}", array.len(), array.element_name()),
            Value::U64(_) => "u64".to_owned(),
            Value::I64(_) => "i64".to_owned(),
            Value::F64(_) => "f64".to_owned(),
        }
    }

    /// Reads a value with the type id before it.
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Parse<Value> {
        let start = cursor.clone();
        Ok(match cursor.u32()? {
            0 => Value::U8(u8::from_le_bytes(cursor.array()?)),
            1 => Value::I8(i8::from_le_bytes(cursor.array()?)),
            2 => Value::U16(u16::from_le_bytes(cursor.array()?)),
            3 => Value::I16(i16::from_le_bytes(cursor.array()?)),
            4 => Value::U32(u32::from_le_bytes(cursor.array()?)),
            5 => Value::I32(i32::from_le_bytes(cursor.array()?)),
            6 => Value::F32(f32::from_le_bytes(cursor.array()?)),
            7 => Value::Bool(parse_bool(&cursor.clone(), cursor.array()?)?),
            8 => Value::String(cursor.string("bytes of a string", MAX_STRING_BYTES)?.to_owned()),
            9 => Value::Array(Array::parse(cursor)?),
            10 => Value::U64(u64::from_le_bytes(cursor.array()?)),
            11 => Value::I64(i64::from_le_bytes(cursor.array()?)),
            12 => Value::F64(f64::from_le_bytes(cursor.array()?)),
            id => return start.bad(format!("value type {id}, 0 to 12 are known")),
        })
    }
}

impl Array {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Array::U8(values) => values.len(),
            Array::I8(values) => values.len(),
            Array::U16(values) => values.len(),
            Array::I16(values) => values.len(),
            Array::U32(values) => values.len(),
            Array::I32(values) => values.len(),
            Array::F32(values) => values.len(),
            Array::Bool(values) => values.len(),
            Array::Strings(values) => values.len(),
            Array::U64(values) => values.len(),
            Array::I64(values) => values.len(),
            Array::F64(values) => values.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn element_name(&self) -> &'static str {
        match self {
            Array::U8(_) => "u8",
            Array::I8(_) => "i8",
            Array::U16(_) => "u16",
            Array::I16(_) => "i16",
            Array::U32(_) => "u32",
            Array::I32(_) => "i32",
            Array::F32(_) => "f32",
            Array::Bool(_) => "bool",
            Array::Strings(_) => "string",
            Array::U64(_) => "u64",
            Array::I64(_) => "i64",
            Array::F64(_) => "f64",
        }
    }

    fn parse(cursor: &mut Cursor<'_>) -> Parse<Array> {
        let start = cursor.clone();
        let id = cursor.u32()?;
        // Bytes that the shortest element takes; a string is at least its length.
        let unit_bytes = match id {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            9 => return start.bad("an array of arrays, which no model needs".to_owned()),
            _ => return start.bad(format!("array element type {id}, 0 to 12 are known")),
        };
        let len = cursor.count("array elements", MAX_ARRAY_ELEMENTS, unit_bytes)?;
        Ok(match id {
            0 => Array::U8(numbers(cursor, len, u8::from_le_bytes)?),
            1 => Array::I8(numbers(cursor, len, i8::from_le_bytes)?),
            2 => Array::U16(numbers(cursor, len, u16::from_le_bytes)?),
            3 => Array::I16(numbers(cursor, len, i16::from_le_bytes)?),
            4 => Array::U32(numbers(cursor, len, u32::from_le_bytes)?),
            5 => Array::I32(numbers(cursor, len, i32::from_le_bytes)?),
            6 => Array::F32(numbers(cursor, len, f32::from_le_bytes)?),
            7 => Array::Bool(bools(cursor, len)?),
            8 => Array::Strings(strings(cursor, len)?),
            10 => Array::U64(numbers(cursor, len, u64::from_le_bytes)?),
            11 => Array::I64(numbers(cursor, len, i64::from_le_bytes)?),
            _ => Array::F64(numbers(cursor, len, f64::from_le_bytes)?),
        })
    }
}

fn numbers<const N: usize, T>(cursor: &mut Cursor<'_>, len: usize, from: fn([u8; N]) -> T) -> Parse<Vec<T>> {
    let (values, _) = cursor.take(len * N)?.as_chunks::<N>();
    Ok(values.iter().map(|bytes| from(*bytes)).collect())
}

fn parse_bool(at: &Cursor<'_>, [byte]: [u8; 1]) -> Parse<bool> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => at.bad(format!("a bool of {byte}, 0 or 1 expected")),
    }
}

fn bools(cursor: &mut Cursor<'_>, len: usize) -> Parse<Vec<bool>> {
    let start = cursor.clone();
    cursor.take(len)?.iter().map(|&byte| parse_bool(&start, [byte])).collect()
}

/// Walks the strings once before storing any: a read that stops in the middle of a vocabulary allocates nothing.
fn strings(cursor: &mut Cursor<'_>, len: usize) -> Parse<StringArray> {
    let mut ahead = cursor.clone();
    let mut text_bytes = 0;
    for _ in 0..len {
        text_bytes += ahead.string("bytes of a string", MAX_STRING_BYTES)?.len();
    }
    let mut array = StringArray { text: String::with_capacity(text_bytes), ends: Vec::with_capacity(len) };
    for _ in 0..len {
        array.text.push_str(cursor.string("bytes of a string", MAX_STRING_BYTES)?);
        let Ok(end) = u32::try_from(array.text.len()) else {
            return cursor.bad("strings of more than 4 GiB".to_owned());
        };
        array.ends.push(end);
    }
    Ok(array)
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Value::U32(value)
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Value::F32(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::String(value.to_owned())
    }
}

impl From<Array> for Value {
    fn from(value: Array) -> Self {
        Value::Array(value)
    }
}
