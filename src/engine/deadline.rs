//! When a request is given up.

use super::sampling::bad_value;
use crate::{Error, Result};

/// How long a request may take, in milliseconds from its arrival. Whoever passes a limit fails with `deadline_exceeded` at
/// the top of the next step and frees what it holds; what it computed stays cached.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timeouts {
    /// Until the answer is complete: after that it is of no use to whoever asks.
    pub deadline_ms: Option<f64>,
    /// Until the answer is complete.
    pub total_ms: Option<f64>,
    /// Until its first step begins.
    pub queue_ms: Option<f64>,
}

impl Timeouts {
    /// Checks that every limit is a time.
    pub(super) fn validate(&self) -> Result<()> {
        for (name, limit_ms) in self.named() {
            if let Some(ms) = limit_ms.filter(|ms| !ms.is_finite() || *ms < 0.0) {
                return Err(bad_value(name, ms, "a number of milliseconds, 0 or more"));
            }
        }
        Ok(())
    }

    fn named(&self) -> [(&'static str, Option<f64>); 3] {
        [("deadline_ms", self.deadline_ms), ("timeout_ms.total", self.total_ms), ("timeout_ms.queue", self.queue_ms)]
    }

    /// The same as moments, for a request that arrived at `arrived_ms`.
    pub(super) fn deadlines(&self, arrived_ms: f64) -> Deadlines {
        let [deadline, total, queue] = self
            .named()
            .map(|(name, limit_ms)| limit_ms.map(|limit_ms| Deadline { at_ms: arrived_ms + limit_ms, name, limit_ms }));
        Deadlines { total: earlier(deadline, total), queue }
    }
}

/// A moment after which a request is given up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Deadline {
    pub(super) at_ms: f64,
    name: &'static str,
    limit_ms: f64,
}

impl Deadline {
    pub(super) fn error(&self) -> Error {
        Error::DeadlineExceeded { what: self.name, limit_ms: self.limit_ms }
    }
}

/// The moments that matter to one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    total: Option<Deadline>,
    queue: Option<Deadline>,
}

impl Deadlines {
    /// The same without the one of waiting.
    pub(super) fn without_queue(self) -> Self {
        Self { queue: None, ..self }
    }

    /// The first that comes.
    pub(super) fn next(&self, has_started: bool) -> Option<Deadline> {
        if has_started { self.total } else { earlier(self.total, self.queue) }
    }
}

fn earlier(a: Option<Deadline>, b: Option<Deadline>) -> Option<Deadline> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.at_ms < a.at_ms { b } else { a }),
        (a, b) => a.or(b),
    }
}
