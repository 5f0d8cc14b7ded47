//! References as JSON pointers.

/// The JSON pointer that a `$ref` within its own document is: `#/$defs/a%25b` is `/$defs/a%b`. `None` for what names another
/// document or an anchor, and for broken escapes.
pub fn pointer(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || u8::try_from(char::from(rest.next()?).to_digit(16)?).ok();
                digit()? << 4 | digit()?
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}
