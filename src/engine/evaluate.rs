//! Logits of given tokens, without sampling: for comparing the model with reference values.

use super::batch::narrow;
use crate::kv::{KvManager, TableId};
use crate::model::{Batch, Logits, MAX_GROUPS, RowSampling, Token, TokenRow};
use crate::{Error, Result};

/// Tokens to compute, and where logits are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// Token ids from position 0 on.
    pub ids: Vec<u32>,
    /// Positions whose logits (those after the token there) are wanted, ascending.
    pub positions: Vec<usize>,
}

/// Computes all sequences side by side, `chunk` tokens of each in a step, and returns per sequence the logits at its
/// positions. Shape of an inner list: [positions, V].
///
/// # Errors
/// `bad_request` for an id or a position out of range, `context_too_long` when the pools are too small, and those of the
/// model.
pub async fn evaluate<M: Logits>(model: &mut M, sequences: &[Evaluation], chunk: usize) -> Result<Vec<Vec<Vec<f32>>>> {
    let limits = model.limits();
    let vocab = model.vocab();
    for Evaluation { ids, positions } in sequences {
        if let Some(id) = ids.iter().find(|&&id| id as usize >= vocab) {
            return Err(Error::BadRequest(format!("token id {id}, {vocab} in the vocabulary")));
        }
        if positions.iter().any(|&position| position >= ids.len()) || !positions.is_sorted() {
            return Err(Error::BadRequest(format!("positions {positions:?} of {} tokens", ids.len())));
        }
    }
    if chunk == 0 || chunk * sequences.len() > limits.max_tokens {
        let (asked, allowed) = (chunk * sequences.len(), limits.max_tokens);
        return Err(Error::BadRequest(format!("{asked} tokens in a step, 1 to {allowed} allowed")));
    }
    let mut kv = KvManager::new(model.groups());
    let tables: Vec<TableId> = sequences.iter().map(|_| kv.create()).collect();
    let mut logits = vec![Vec::new(); sequences.len()];
    let longest = sequences.iter().map(|sequence| sequence.ids.len()).max().unwrap_or(0);
    let mut first = 0;
    while first < longest {
        // A step has room for so many rows of logits; positions close together shorten it.
        let num = steps_of(chunk, first, sequences, limits.max_rows);
        let (batch, owners) = assemble(&mut kv, &tables, sequences, first, num)?;
        for (owner, row) in owners.into_iter().zip(model.logits(&batch).await?) {
            logits[owner].push(row);
        }
        tables.iter().for_each(|&table| kv.release_unreachable(table, first + num));
        first += num;
    }
    Ok(logits)
}

/// How many tokens of each sequence, `chunk` at most, ask for no more than `max_rows` rows of logits.
fn steps_of(chunk: usize, first: usize, sequences: &[Evaluation], max_rows: usize) -> usize {
    let rows = |num: usize| {
        let wanted = |s: &Evaluation| s.positions.iter().filter(|&&p| (first..first + num).contains(&p)).count();
        sequences.iter().map(wanted).sum::<usize>()
    };
    (1..=chunk).rev().find(|&num| rows(num) <= max_rows).unwrap_or(1)
}

/// The batch of positions `first..first + num` of every sequence that has them, and the sequence of each of its rows.
fn assemble(
    kv: &mut KvManager,
    tables: &[TableId],
    sequences: &[Evaluation],
    first: usize,
    num: usize,
) -> Result<(Batch, Vec<usize>)> {
    let num_groups = kv.num_groups();
    let mut batch = Batch { tables: vec![Vec::new(); num_groups], ..Batch::default() };
    let mut owners = Vec::new();
    for (owner, (sequence, &table)) in sequences.iter().zip(tables).enumerate() {
        let end = (first + num).min(sequence.ids.len());
        if first >= end {
            continue;
        }
        let allowed = kv.longest_sequence();
        kv.grow(table, end).ok_or(Error::ContextTooLong { asked: sequence.ids.len(), allowed })?;
        let index = narrow(batch.tables[0].len());
        for position in first..end {
            let mut slots = [0; MAX_GROUPS];
            for (group, slot) in slots.iter_mut().enumerate().take(num_groups) {
                *slot = kv.table(table, group).slot(position);
            }
            if sequence.positions.binary_search(&position).is_ok() {
                batch.rows.push(narrow(batch.tokens.len()));
                batch.sampling.push(RowSampling::GREEDY);
                owners.push(owner);
            }
            let token = Token::Id(sequence.ids[position]);
            batch.tokens.push(TokenRow { token, position: narrow(position), sequence: index, slots });
        }
        for (group, batch_tables) in batch.tables.iter_mut().enumerate() {
            batch_tables.push(kv.table(table, group).blocks().to_vec());
        }
    }
    Ok((batch, owners))
}
