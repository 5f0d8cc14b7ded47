//! Names of the parts of a split file: `model-00001-of-00003.gguf` and so on.

use super::limits::MAX_PARTS;
use crate::{Error, Result};

/// The names of all parts, given the name (or path or URL without a query) of the first. A name that does not say it is a
/// part stands for itself.
///
/// # Errors
/// `bad_request` when it names another part than the first, or too many parts.
pub fn part_names(first: &str) -> Result<Vec<String>> {
    let Some((prefix, number, count)) = split_name(first) else { return Ok(vec![first.to_owned()]) };
    if number != 1 {
        return Err(Error::BadRequest(format!("`{first}` is part {number} of {count}: give the first part")));
    }
    if count == 0 || count > MAX_PARTS {
        return Err(Error::BadRequest(format!("`{first}` names {count} parts, 1 to {MAX_PARTS} allowed")));
    }
    Ok((1..=count).map(|number| format!("{prefix}-{number:05}-of-{count:05}.gguf")).collect())
}

/// Prefix, number and count.
fn split_name(name: &str) -> Option<(&str, usize, usize)> {
    let (rest, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (prefix, number) = rest.rsplit_once('-')?;
    let five_digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !five_digits(number) || !five_digits(count) {
        return None;
    }
    Some((prefix, number.parse().ok()?, count.parse().ok()?))
}
