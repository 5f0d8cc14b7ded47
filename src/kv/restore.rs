//! Prefixes that are written out, and brought back later: which blocks, never what is in them.
//!
//! Bringing one back is a sequence whose blocks are filled by somebody else than the model. Until that is done, only the
//! sequence holds them: nobody else is handed one, nothing finds them, and giving up leaves no trace. Then they enter the
//! cache as those of any sequence do. The invariant to remember: what the cache knows has been written.

use std::rc::Rc;

use super::chain::{Chain, advance};
use super::manager::Tables;
use super::prefix::{Hit, NodeId};
use super::{BLOCK_SIZE, BlockId, BlockTable, KvManager, Retention, TableId};

/// Blocks that are being filled. It has to be given to [`KvManager::finish_restore`] or [`KvManager::abort_restore`].
#[derive(Debug)]
pub struct Restoring {
    id: TableId,
    num_blocks: usize,
    blocks: Vec<RestoredBlock>,
}

/// A block to be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoredBlock {
    /// Layer group.
    pub group: usize,
    /// Its number in the group's pool.
    pub block: BlockId,
    /// The stretch of the prefix that it is to hold: tokens from `index x BLOCK_SIZE` on.
    pub index: usize,
}

impl Restoring {
    /// Tokens that will be there.
    pub fn num_tokens(&self) -> usize {
        self.num_blocks * BLOCK_SIZE
    }

    /// The blocks that have to be filled, by group and then by index: those that the cache does not have.
    pub fn blocks(&self) -> &[RestoredBlock] {
        &self.blocks
    }
}

impl KvManager {
    /// What a prompt that goes on where `tokens` end would find of them in full blocks: for each its place in every layer
    /// group, `None` where no window reaches back to it.
    pub fn cached_path(&self, salt: &str, tokens: &[u32]) -> Vec<Vec<Option<BlockId>>> {
        let nodes = self.cache.path(salt, tokens);
        let Hit { nodes, .. } = self.cache.without_tail(Hit { nodes, ..Hit::default() });
        let num_groups = self.num_groups();
        let place = |(index, &node): (usize, &NodeId)| {
            let in_group =
                |group| (index >= self.first_reached(group, nodes.len())).then(|| self.cache.block(node, group));
            (0..num_groups).map(in_group).collect()
        };
        nodes.iter().enumerate().map(place).collect()
    }

    /// Takes the blocks that are missing of the prefix `tokens` before it can be found under `salt`, giving up others but
    /// never held or pinned ones. `is_saved` says for an index and a group whether that block can be filled. Where not all
    /// fit, as many as do from the start on; `None` if that is none.
    pub fn begin_restore(
        &mut self,
        salt: &str,
        tokens: &[u32],
        is_saved: impl Fn(usize, usize) -> bool,
    ) -> Option<Restoring> {
        let path = self.cache.path(salt, tokens);
        let num_blocks = self.most_restorable(&path, tokens.len() / BLOCK_SIZE, is_saved)?;
        // What is there is held first, so that it is not given up for the rest.
        let hold = |group: usize| {
            let first = self.first_reached(group, num_blocks);
            let block = |index: usize| self.cache.block_of(*path.get(index)?, group);
            (first, (first..num_blocks).map(block).collect::<Vec<_>>())
        };
        let held: Vec<_> = (0..self.num_groups()).map(hold).collect();
        for (group, (_, blocks)) in held.iter().enumerate() {
            blocks.iter().flatten().for_each(|&block| self.cache.hold(group, block));
        }
        let (mut groups, mut fresh) = (Vec::new(), Vec::new());
        for (group, (first, blocks)) in held.into_iter().enumerate() {
            // Entries before the window are never read.
            let mut table = vec![0; first];
            for (index, there) in (first..).zip(blocks) {
                table.push(there.unwrap_or_else(|| {
                    let block = self.cache.take(group).expect("most_restorable() counted the free blocks");
                    fresh.push(RestoredBlock { group, block, index });
                    block
                }));
            }
            groups.push(BlockTable::new(table, first));
        }
        let id = self.insert(Tables { groups, num_tokens: num_blocks * BLOCK_SIZE, chain: None });
        Some(Restoring { id, num_blocks, blocks: fresh })
    }

    /// Takes note that all blocks of `restoring` are filled: from now on the prefix is found. `salt` and `tokens` are
    /// those that it began with. Returns the number of blocks that entered the cache.
    pub fn finish_restore(
        &mut self,
        restoring: Restoring,
        salt: &str,
        tokens: &[u32],
        retention: Rc<Retention>,
    ) -> usize {
        let Restoring { id, num_blocks, blocks } = restoring;
        let root = self.cache.root_or_new(salt);
        self.cache.move_user(None, Some(root));
        let tables = self.tables.get_mut(&id).expect("the tables of a prefix that is being restored");
        let mut chain = Chain::new(root, 0, retention, None);
        for block in tokens.chunks_exact(BLOCK_SIZE).take(num_blocks) {
            advance(&mut self.cache, &mut chain, &mut tables.groups, block);
        }
        // Where somebody computed the same meanwhile, the cache has theirs.
        let entered = blocks.iter().filter(|it| tables.groups[it.group].held_at(it.index) == Some(it.block));
        let entered: Vec<_> = entered.copied().collect();
        self.cache.note_turn(chain.last, num_blocks * BLOCK_SIZE);
        tables.chain = Some(chain);
        for run in entered.chunk_by(|a, b| (a.group, a.index + 1) == (b.group, b.index)) {
            self.cache.note_restored(run[0].index * BLOCK_SIZE, run.len() * BLOCK_SIZE, run[0].group);
        }
        self.release(id);
        entered.len()
    }

    /// Lets go of blocks that were not filled, or not all of them.
    pub fn abort_restore(&mut self, restoring: Restoring) {
        self.release(restoring.id);
    }

    /// The first of `num_blocks` blocks that a query right after them can see.
    fn first_reached(&self, group: usize, num_blocks: usize) -> usize {
        self.cache.groups[group].config.num_unreachable(num_blocks * BLOCK_SIZE).min(num_blocks)
    }

    /// The most blocks of a prefix, up to `most`, of which everything that a query after them sees is there already (in
    /// the nodes of `path`) or can be filled, for which there is room.
    fn most_restorable(&self, path: &[NodeId], most: usize, is_saved: impl Fn(usize, usize) -> bool) -> Option<usize> {
        // Sums over the blocks before each index: those that cannot be had, and those that take a free one.
        let sums = |group: usize| {
            let mut sums = vec![(0, 0)];
            for index in 0..most {
                let there = path.get(index).filter(|&&node| self.cache.block_of(node, group).is_some());
                let is_missing = there.is_none() && !is_saved(index, group);
                let takes_free = there.is_none_or(|&node| self.cache.counts_as_free(group, node, false));
                let (num_missing, num_free) = sums[index];
                sums.push((num_missing + usize::from(is_missing), num_free + usize::from(takes_free)));
            }
            sums
        };
        let sums: Vec<_> = (0..self.num_groups()).map(sums).collect();
        let fits = |&num_blocks: &usize| {
            sums.iter().enumerate().all(|(group, sums)| {
                let (start, end) = (sums[self.first_reached(group, num_blocks)], sums[num_blocks]);
                end.0 == start.0 && end.1 - start.1 <= self.cache.num_free(group, false)
            })
        };
        (1..=most).rev().find(fits)
    }
}
