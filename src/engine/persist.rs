//! Saving cached prefixes, and bringing them back, perhaps in another engine: nothing is computed again.

use super::Engine;
use super::caching::CacheOptions;
use super::engine::whole_ms;
use super::snapshot::{Header, MAX_SAVED_TOKENS, Record, SnapshotSource};
use crate::kv::{BLOCK_SIZE, BlockId, RestoredBlock, Restoring};
use crate::model::KvBlocks;
use crate::{Error, Result};

/// Words that are read from the device at a time: bounds the memory that saving takes.
const CHUNK_WORDS: usize = 1 << 20;
/// Words written before waiting for the device to take them.
const FLUSH_WORDS: usize = 8 << 20;

/// What was saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct SavedPrefix {
    /// Tokens, in full blocks.
    pub num_tokens: usize,
    /// Blocks, over all layer groups.
    pub num_blocks: usize,
}

/// What came back.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct RestoredPrefix {
    /// Tokens that are cached now, those that were before included.
    pub num_tokens: usize,
    /// Blocks that were brought back, over all layer groups.
    pub num_blocks: usize,
    /// All ids of the prefix that was saved: beyond the tokens, those that did not fit or did not fill a block.
    pub ids: Vec<u32>,
}

impl<F: KvBlocks> Engine<F> {
    /// Hands `sink` what the cache has of a prefix, in full blocks, as bytes that [`Engine::cache_restore`] takes; a few
    /// MiB at a time. Of a sliding window that is what a prompt can see that goes on where the prefix ends.
    ///
    /// # Errors
    /// `bad_request` if nothing of it is cached; those of `sink` and of the device.
    pub async fn cache_save(
        &mut self,
        salt: &str,
        prefix: &[u32],
        now_ms: f64,
        mut sink: impl FnMut(Vec<u8>) -> Result<()>,
    ) -> Result<SavedPrefix> {
        self.kv.set_now(whole_ms(now_ms));
        if prefix.len() > MAX_SAVED_TOKENS {
            let asked = prefix.len();
            return Err(Error::BadRequest(format!("a prefix of {asked} tokens, {MAX_SAVED_TOKENS} can be saved")));
        }
        let path = self.kv.cached_path(salt, prefix);
        if path.is_empty() {
            let message = format!("nothing of the prefix is cached ({BLOCK_SIZE} tokens at least): warm it first");
            return Err(Error::BadRequest(message));
        }
        let has = |block: &Vec<Option<BlockId>>| {
            (0..).zip(block).filter(|(_, block)| block.is_some()).fold(0, |groups, (group, _)| groups | 1_u8 << group)
        };
        let (header, mut bytes) = Header::write(&self.forward.kv_identity(), prefix, path.iter().map(has).collect());
        let records: Vec<_> = header.records().collect();
        let mut next = records.as_slice();
        while !next.is_empty() {
            let mut num_words = 0;
            let fits = |record: &Record| {
                num_words += record.num_words;
                num_words <= CHUNK_WORDS
            };
            let num = next.iter().copied().take_while(fits).count().max(1);
            let (chunk, rest) = next.split_at(num);
            let block = |record: &Record| Some((record.group, path[record.index][record.group]?));
            let blocks: Vec<_> = chunk.iter().filter_map(block).collect();
            let words = self.forward.read_blocks(&blocks).await?;
            let mut words = words.as_slice();
            for record in chunk {
                let (own, others) = words.split_at(record.num_words);
                record.write(own, &mut bytes);
                words = others;
            }
            sink(std::mem::take(&mut bytes))?;
            next = rest;
        }
        Ok(SavedPrefix { num_tokens: path.len() * BLOCK_SIZE, num_blocks: records.len() })
    }

    /// Brings back what [`Engine::cache_save`] wrote, under the salt of `options`, as far as there is room: blocks that are
    /// in use or pinned stay. From then on it is found as if it had been computed here.
    ///
    /// # Errors
    /// `bad_request` for what is no saved prefix, is damaged, or is of another model or KV format: nothing has changed
    /// then. Those of `source` and of the device.
    pub async fn cache_restore<S: SnapshotSource + ?Sized>(
        &mut self,
        source: &S,
        options: &CacheOptions,
        now_ms: f64,
    ) -> Result<RestoredPrefix> {
        self.abort_restore();
        self.kv.set_now(whole_ms(now_ms));
        options.validate()?;
        let header = Header::read(source, &self.forward.kv_identity(), self.tokenizer.vocab_size()).await?;
        let is_saved = |index: usize, group: usize| header.groups[index] & (1 << group) != 0;
        let tokens = &header.ids[..header.groups.len() * BLOCK_SIZE];
        let Some(restoring) = self.kv.begin_restore(&options.salt, tokens, is_saved) else {
            return Ok(RestoredPrefix { ids: header.ids, ..RestoredPrefix::default() });
        };
        // Where an await is dropped, it is given up by whoever comes next.
        let restoring = self.restoring.insert(restoring);
        let filled = fill(&mut self.forward, &header, restoring, source).await;
        let Some(restoring) = self.restoring.take() else { return filled.map(|()| RestoredPrefix::default()) };
        if let Err(error) = filled {
            self.kv.abort_restore(restoring);
            return Err(error);
        }
        let num_tokens = restoring.num_tokens();
        let num_blocks = self.kv.finish_restore(restoring, &options.salt, tokens, options.retention(num_tokens));
        Ok(RestoredPrefix { num_tokens, num_blocks, ids: header.ids })
    }
}

/// Writes the blocks that `restoring` lacks, in the order of the source.
async fn fill<F: KvBlocks, S: SnapshotSource + ?Sized>(
    forward: &mut F,
    header: &Header,
    restoring: &Restoring,
    source: &S,
) -> Result<()> {
    let mut wanted: Vec<_> = restoring.blocks().to_vec();
    wanted.sort_unstable_by_key(|it| (it.index, it.group));
    let mut records = header.records();
    let mut num_words = 0;
    for RestoredBlock { group, block, index } in wanted {
        let record = records.find(|record| (record.index, record.group) == (index, group));
        let record = record.ok_or_else(|| super::snapshot::damaged("a block is missing"))?;
        forward.write_block(group, block, &record.read(source).await?);
        num_words += record.num_words;
        if num_words >= FLUSH_WORDS {
            forward.flush().await?;
            num_words = 0;
        }
    }
    forward.flush().await
}
