//! Differences between lists of messages.

use super::explain::Cause;
use super::prompt::Segment;

/// What happened to the messages from the first difference on, and how many it happened to; `None` when it happened
/// inside of a message.
pub(super) fn restructured(previous: &[Segment], next: &[Segment]) -> Option<(Cause, usize)> {
    if previous.is_empty() || next.is_empty() {
        return None;
    }
    // All that follows is the same: one message was changed.
    if previous.len() > 1 && next.len() > 1 && is_prefix(&previous[1..], &next[1..]) {
        return None;
    }
    if let Some(num_inserted) = insertion(previous, next) {
        return Some((Cause::Inserted, num_inserted));
    }
    let is_kept = |segment: &&Segment| next.iter().any(|other| segment.is_same(other));
    if previous.len() > 1 && previous.iter().filter(is_kept).count() == previous.len() {
        return Some((Cause::Reordered, previous.len()));
    }
    if let Some(num_deleted) = (1..previous.len()).find(|&from| is_prefix(&previous[from..], next)) {
        return Some((Cause::Deleted, num_deleted));
    }
    // Several messages that became fewer, before others that stayed: a summary.
    for from in 2..previous.len() {
        for to in 1..from.min(next.len()) {
            if is_prefix(&previous[from..], &next[to..]) {
                return Some((Cause::HistoryRewritten, from));
            }
        }
    }
    None
}

/// Whether as much of `next` as there is continues as `messages` do.
fn is_prefix(messages: &[Segment], next: &[Segment]) -> bool {
    !next.is_empty() && messages.iter().zip(next).all(|(a, b)| a.is_same(b))
}

/// Messages of `next` before the first of `previous`, if all of `previous` follow in their order.
fn insertion(previous: &[Segment], next: &[Segment]) -> Option<usize> {
    let mut later = next.iter();
    let is_subsequence = previous.iter().all(|message| later.any(|other| other.is_same(message)));
    let first = previous.first()?;
    next.iter().position(|other| other.is_same(first)).filter(|&at| at > 0 && is_subsequence)
}
