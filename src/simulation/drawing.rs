//! A trace of steps as text.

use std::fmt::Write;

use super::run::{Outcome, RequestOutcome};
use crate::engine::StepTrace;

/// Draws a column per step and a row per request, named by `names`. A number is the tokens that the step computed of the
/// request, `+` says that a token of the answer was drawn; `.` waits; `x` gave up its blocks and waits.
pub fn draw(outcome: &Outcome, names: &[&str]) -> String {
    let label = |index: usize| names.get(index).map_or_else(|| format!("#{index}"), |name| (*name).to_owned());
    let head = ["step", "starts, ms", "tokens"];
    let rows = outcome.requests.len();
    let width = (0..rows).map(|index| label(index).chars().count()).chain(head.map(str::len)).max().unwrap_or(0);
    let mut columns: Vec<Vec<String>> = Vec::new();
    for (index, step) in outcome.steps.iter().enumerate() {
        let num_tokens: usize = step.parts.iter().map(|part| part.end - part.start).sum();
        let mut column = vec![format!("{}", index + 1), format!("{:.0}", step.start_ms), format!("{num_tokens}")];
        column.extend(outcome.requests.iter().map(|request| cell(request, step)));
        columns.push(column);
    }
    let mut text = String::new();
    for row in 0..head.len() + rows {
        let name = head.get(row).map_or_else(|| label(row - head.len()), |name| (*name).to_owned());
        let mut line = format!("{name:width$}");
        for column in &columns {
            let cell_width = column.iter().map(String::len).max().unwrap_or(0);
            // Writing to a string cannot fail.
            let _ = write!(line, "  {:>cell_width$}", column[row]);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn cell(request: &RequestOutcome, step: &StepTrace) -> String {
    if let Some(part) = step.parts.iter().find(|part| part.request == request.request) {
        return format!("{}{}", part.end - part.start, if part.samples { "+" } else { "" });
    }
    let has_ended = request.token_ms.last().is_some_and(|&ms| ms <= step.start_ms);
    if step.preempted.contains(&request.request) {
        "x".to_owned()
    } else if request.at_ms > step.start_ms || has_ended {
        String::new()
    } else {
        ".".to_owned()
    }
}
