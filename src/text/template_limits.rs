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
    while let Some(start) = rest.find("{{").into_iter().chain(rest.find("{%")).chain(rest.find("{#")).min() {
        let (kind, body) = (rest.as_bytes()[start + 1], &rest[start + 2..]);
        if kind == b'#' {
            // A comment has no code.
            rest = body.find("#}").map_or("", |end| &body[end + 2..]);
            continue;
        }
        let (num_code, after) = measure(body, if kind == b'{' { "}}" } else { "%}" });
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
        rest = after;
    }
    Ok(())
}

/// Characters of code up to the end of a tag, and what follows it.
fn measure<'a>(body: &'a str, end: &str) -> (usize, &'a str) {
    let mut num_code = 0;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, character) in body.char_indices() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if character == '\\' => is_escaped = true,
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if body[at..].starts_with(end) => return (num_code, &body[at + end.len()..]),
            None if character == '"' || character == '\'' => quote = Some(character),
            None => num_code += usize::from(!character.is_whitespace()),
        }
    }
    (num_code, "")
}
