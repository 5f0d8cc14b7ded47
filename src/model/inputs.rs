//! A batch as the words that kernels read.

use std::rc::Rc;

use super::batch::{Batch, RowMask, Token};
use super::loaded::Model;
use crate::compute::{Executor, Step};
use crate::kernels::{DRAWN, SAMPLING_WORDS, mask_words};
use crate::{Error, Result};

impl<E: Executor> Model<E> {
    /// Writes a batch into the step's buffers.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<Step> {
        self.layout.limits.check(batch)?;
        let (io, limits) = (self.io, self.layout.limits);
        let mut words = Vec::with_capacity(batch.tokens.len() * 5);
        for token in &batch.tokens {
            let id = match token.token {
                Token::Id(id) => id,
                Token::Drawn(row) => DRAWN | row,
            };
            words.extend([id, token.position, token.sequence, token.slots[0], token.slots[1]]);
        }
        self.executor.write(io.tokens, 0, &words);
        for (group, tables) in batch.tables.iter().enumerate() {
            for (sequence, table) in tables.iter().enumerate() {
                let row = group * limits.max_sequences + sequence;
                self.executor.write(io.tables, row * limits.max_blocks, table);
            }
        }
        self.executor.write(io.rows, 0, &batch.rows);
        self.write_samplings(batch)?;
        words.clear();
        for edit in &batch.edits {
            // Kernels need finite numbers; no logit is anywhere near this.
            words.extend([edit.row, edit.token, edit.seen, edit.count, edit.bias.max(-1e30).to_bits()]);
        }
        self.executor.write(io.edits, 0, &words);
        words.clear();
        words.extend(batch.copies.iter().flat_map(|copy| [copy.group, copy.from, copy.to]));
        self.executor.write(io.copies, 0, &words);
        self.write_extras(batch);
        let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        Ok(Step {
            num_tokens: count(batch.tokens.len()),
            num_rows: count(batch.rows.len()),
            num_edits: count(batch.edits.len()),
            num_copies: count(batch.copies.len()),
            longest: batch.tokens.iter().map(|token| token.position + 1).max().unwrap_or(0),
            num_tops: count(batch.tops.len()),
            num_pools: count(batch.pools.len()),
            reserved: 0,
        })
    }

    /// Writes how tokens are drawn, and the masks.
    pub(super) fn write_samplings(&mut self, batch: &Batch) -> Result<()> {
        let mut words = Vec::with_capacity(batch.sampling.len() * SAMPLING_WORDS);
        let masks = self.write_masks(batch)?;
        for (s, mask) in batch.sampling.iter().zip(masks) {
            words.extend([s.temperature.to_bits(), s.top_k, s.top_p.to_bits(), s.min_p.to_bits()]);
            words.extend([s.repetition_penalty, s.frequency_penalty, s.presence_penalty].map(f32::to_bits));
            #[expect(clippy::cast_possible_truncation, reason = "the two halves of the seed")]
            words.extend([s.seed as u32, (s.seed >> 32) as u32, s.counter, mask]);
        }
        self.executor.write(self.io.samplings, 0, &words);
        Ok(())
    }

    /// Writes the masks that are not on the device yet; returns the number of each row's mask, from 1 on, or 0.
    fn write_masks(&mut self, batch: &Batch) -> Result<Vec<u32>> {
        let num_words = mask_words(self.config.vocab);
        let mut numbers = vec![0; batch.rows.len()];
        for (number, (place, RowMask { row, allowed })) in (1..).zip(batch.masks.iter().enumerate()) {
            if allowed.len() > num_words {
                let asked = allowed.len();
                return Err(Error::BadRequest(format!("a mask of {asked} words, {num_words} are the vocabulary")));
            }
            numbers[*row as usize] = number;
            if self.masks.get(place).is_some_and(|there| Rc::ptr_eq(there, allowed)) {
                continue;
            }
            // What a shorter one says nothing of is forbidden.
            let mut words = allowed.to_vec();
            words.resize(num_words, 0);
            self.executor.write(self.io.masks, place * num_words, &words);
            self.masks.truncate(place);
            self.masks.push(Rc::clone(allowed));
        }
        Ok(numbers)
    }
}
