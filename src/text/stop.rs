//! Stop strings in streamed text.

/// What [`StopStrings::push`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Streamed {
    /// Text that may be shown now.
    pub text: String,
    /// Whether a stop string was found. The text before it is in `text`, and everything after it is dropped.
    pub stopped: bool,
}

/// Ends a stream at the first stop string, never showing a part of one.
///
/// Text that could be the beginning of a stop string is held back until it is decided. The stop string that is
/// complete first ends the text; if several are complete at one character, the longest. How the text is cut into
/// pieces does not matter.
#[derive(Debug, Clone)]
pub struct StopStrings {
    stops: Vec<String>,
    held: String,
    stopped: bool,
}

impl StopStrings {
    /// Watches for any of these; empty strings are ignored.
    pub fn new(stops: Vec<String>) -> Self {
        let stops = stops.into_iter().filter(|stop| !stop.is_empty()).collect();
        Self { stops, held: String::new(), stopped: false }
    }

    /// Takes the next piece of text. After a stop nothing comes out any more.
    pub fn push(&mut self, text: &str) -> Streamed {
        if self.stopped {
            return Streamed { text: String::new(), stopped: true };
        }
        self.held.push_str(text);
        let found = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str()).map(|at| (at + stop.len(), at)));
        if let Some((_, start)) = found.min() {
            self.held.truncate(start);
            self.stopped = true;
            return Streamed { text: std::mem::take(&mut self.held), stopped: true };
        }
        let undecided = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - undecided);
        Streamed { text: std::mem::replace(&mut self.held, rest), stopped: false }
    }

    /// Ends the text and returns what was held back: it did not become a stop string.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Length of the longest end of `text` that `stop` begins with, in bytes.
pub(super) fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len() - 1);
    (1..=longest).rev().find(|&len| text.as_bytes().ends_with(&stop.as_bytes()[..len])).unwrap_or(0)
}
