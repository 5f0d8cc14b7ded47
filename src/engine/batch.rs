//! A plan as the flat arrays that the model reads.

use super::running::Running;
use super::scheduler::Part;
use crate::kv::KvManager;
use crate::model::{Batch, MAX_GROUPS, RowCopy, RowMask, RowTop, TokenPool, TokenRow};

/// Builds the arrays of a step.
///
/// # Panics
/// If a table lacks a slot that the plan needs.
pub(super) fn assemble(plan: &[Part], running: &[Running], kv: &KvManager) -> Batch {
    let num_groups = kv.num_groups();
    assert!(num_groups <= MAX_GROUPS, "{num_groups} layer groups, at most {MAX_GROUPS}");
    let mut batch = Batch { tables: vec![Vec::with_capacity(plan.len()); num_groups], ..Batch::default() };
    for (sequence_index, part) in plan.iter().enumerate() {
        let running = &running[part.index];
        let Running { sequence, table, num_pending, .. } = running;
        // Where a part of it is in flight, that one makes them.
        let copies = if running.is_in_flight() { Vec::new() } else { kv.copies(*table) };
        for copy in copies {
            let row = |row| RowCopy { group: narrow(copy.group), from: copy.from + row, to: copy.to + row };
            batch.copies.extend((0..copy.num_rows).map(row));
        }
        if sequence.embeds {
            batch.pools.push(TokenPool { first: narrow(batch.tokens.len()), num: narrow(part.end - part.start) });
        }
        for position in part.start..part.end {
            let mut slots = [0; MAX_GROUPS];
            for (group, slot) in slots.iter_mut().enumerate().take(num_groups) {
                *slot = kv.table(*table, group).slot(position);
            }
            batch.tokens.push(TokenRow {
                token: running.token(position),
                position: narrow(position),
                sequence: narrow(sequence_index),
                slots,
            });
        }
        for (group, tables) in batch.tables.iter_mut().enumerate() {
            tables.push(kv.table(*table, group).blocks().to_vec());
        }
        if part.samples {
            for choice in std::iter::once(sequence).chain(&sequence.choices) {
                let row = narrow(batch.rows.len());
                batch.rows.push(narrow(batch.tokens.len() - 1));
                batch.sampling.push(choice.row(*num_pending));
                batch.edits.extend(choice.edits.of_row(row));
                batch.tops.extend(sequence.logprobs.map(|num| RowTop { row, num: narrow(num) }));
                batch.masks.extend(choice.edits.mask().map(|allowed| RowMask { row, allowed }));
            }
        }
    }
    batch
}

/// The parts that draw under a constraint: each one's index among the running sequences, and its first row.
pub(super) fn guided(plan: &[Part], running: &[Running]) -> Vec<(usize, u32)> {
    let mut row = 0;
    let mut guided = Vec::new();
    for part in plan.iter().filter(|part| part.samples) {
        let sequence = &running[part.index].sequence;
        if sequence.is_guided() {
            guided.push((part.index, row));
        }
        row += narrow(1 + sequence.choices.len());
    }
    guided
}

/// The masks of those parts' rows.
pub(super) fn guide_masks(guided: &[(usize, u32)], running: &mut [Running]) -> Vec<RowMask> {
    let mut masks = Vec::new();
    for &(index, first) in guided {
        let of_row = |(place, allowed)| RowMask { row: first + narrow(place), allowed };
        masks.extend(running[index].sequence.guide_masks().map(of_row));
    }
    masks
}

/// A length or index as the GPU counts.
///
/// # Panics
/// If it exceeds 32 bits, which the context length and the batch's limits rule out.
pub(super) fn narrow(value: usize) -> u32 {
    u32::try_from(value).expect("bounded by the context length")
}
