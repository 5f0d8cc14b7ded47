//! Reading a text from some position on.

/// A position in a text, moved by what is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a [char],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [char], at: usize) -> Self {
        Self { text, at }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    /// Reads a character that `is_wanted`.
    pub(super) fn take(&mut self, is_wanted: impl Fn(char) -> bool) -> Option<char> {
        let found = self.peek().filter(|&c| is_wanted(c))?;
        self.at += 1;
        Some(found)
    }

    pub(super) fn eat(&mut self, wanted: char) -> Option<()> {
        self.take(|c| c == wanted).map(drop)
    }

    /// Reads all characters that are `is_wanted`; their number.
    pub(super) fn skip(&mut self, is_wanted: impl Fn(char) -> bool) -> usize {
        let start = self.at;
        while self.take(&is_wanted).is_some() {}
        self.at - start
    }

    /// A number of `least` to `most` decimal digits, all that there are.
    pub(super) fn number(&mut self, least: usize, most: usize) -> Option<u64> {
        let start = self.at;
        let len = self.skip(|c| c.is_ascii_digit());
        if !(least..=most).contains(&len) {
            return None;
        }
        self.text[start..self.at].iter().collect::<String>().parse().ok()
    }

    /// A run of letters, in lower case.
    pub(super) fn word(&mut self) -> String {
        let start = self.at;
        self.skip(char::is_alphabetic);
        self.text[start..self.at].iter().flat_map(|c| c.to_lowercase()).collect()
    }

    /// Whether a word or number has ended here.
    pub(super) fn is_boundary(&self) -> bool {
        !self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_')
    }
}
