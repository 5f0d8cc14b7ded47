//! What a chat template may look like before it is parsed: the parser and the compiler recurse into long expressions and
//! long chains of `elif`, and a hostile file must not overflow the stack.

use crate::{Error, Result};

/// Characters of one tag that are neither white space nor text in quotes. The longest in use have a few hundred.
pub(super) const MAX_TAG_CODE: usize = 2048;
/// `elif` tags of a template.
pub(super) const MAX_ELIFS: usize = 256;

/// Checks the sizes of all tags.
///
/// # Errors
/// `unsupported_model` with what was found and what is allowed.
pub(super) fn check(source: &str) -> Result<()> {
    let mut rest = source;
    let mut num_elifs = 0;
    while let Some((start, kind)) = next_tag(rest) {
        let body = &rest[start + 2..];
        if kind == b'#' {
            // A comment has no code.
            rest = &body[end_of_tag(body, kind)..];
            continue;
        }
        let (num_code, len) = measure(body, if kind == b'{' { "}}" } else { "%}" });
        if num_code > MAX_TAG_CODE {
            return Err(Error::UnsupportedModel(format!(
                "the chat template has a tag with {num_code} characters of code; {MAX_TAG_CODE} are allowed"
            )));
        }
        num_elifs +=
            usize::from(kind == b'%' && body.trim_start_matches(['-', '+', ' ', '\t', '\n']).starts_with("elif"));
        if num_elifs > MAX_ELIFS {
            return Err(Error::UnsupportedModel(format!(
                "the chat template has more than {MAX_ELIFS} elif tags, which is all that are allowed"
            )));
        }
        rest = &body[len..];
    }
    Ok(())
}

/// Where the next tag starts, and the second byte of its opening.
pub(super) fn next_tag(text: &str) -> Option<(usize, u8)> {
    let start = text.find("{{").into_iter().chain(text.find("{%")).chain(text.find("{#")).min()?;
    Some((start, text.as_bytes()[start + 1]))
}

/// Bytes of a tag behind its opening, without its end; all that is left where it has none.
pub(super) fn end_of_tag(body: &str, kind: u8) -> usize {
    match kind {
        b'#' => body.find("#}").unwrap_or(body.len()),
        b'{' => measure(body, "}}").1,
        _ => measure(body, "%}").1,
    }
}

/// Characters of code up to the end of a tag, and the bytes before it.
fn measure(body: &str, end: &str) -> (usize, usize) {
    let mut num_code = 0;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, character) in body.char_indices() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if character == '\\' => is_escaped = true,
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if body[at..].starts_with(end) => return (num_code, at),
            None if character == '"' || character == '\'' => quote = Some(character),
            None => num_code += usize::from(!character.is_whitespace()),
        }
    }
    (num_code, body.len())
}
