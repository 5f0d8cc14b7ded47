//! What must always hold, verified the slow way.

use super::chain::Chain;
use super::manager::Tables;
use super::{BLOCK_SIZE, KvManager, blocks_for};

impl KvManager {
    /// Verifies what must always hold: K1 (reference counts), K2 (a block that will be written is held once and not
    /// cached), K3 to K5 (the prefix cache's nodes), K6 (tables hold the cache's own blocks) and the part of K8 that a
    /// state can show (a table has exactly the blocks that its tokens need).
    ///
    /// # Errors
    /// The first invariant that is broken, in words.
    pub fn check(&self) -> Result<(), String> {
        for (index, group) in self.cache.groups.iter().enumerate() {
            let mut holders = vec![0; group.pool.num_blocks()];
            for (id, tables) in &self.tables {
                let table = &tables.groups[index];
                let copy = tables.chain.as_ref().and_then(|chain| chain.copy.as_ref());
                let source = copy.map(|copy| &copy.sources[index]);
                table.held().iter().chain(source).for_each(|&block| holders[block as usize] += 1);
                if table.blocks().len() != blocks_for(tables.num_tokens) {
                    let len = table.blocks().len();
                    return Err(format!("K8: {id:?} has {len} blocks for {} tokens", tables.num_tokens));
                }
                if group.config.window.is_none() && table.num_released() > 0 {
                    return Err(format!("K8: {id:?} has let go of blocks that see the whole context"));
                }
            }
            group.pool.check(&holders).map_err(|problem| format!("group {index}: {problem}"))?;
            for (id, tables) in &self.tables {
                self.check_written(index, tables).map_err(|problem| format!("{problem} of {id:?}"))?;
                if let Some(chain) = &tables.chain {
                    self.check_chain(index, tables, chain).map_err(|problem| format!("{problem} of {id:?}"))?;
                }
            }
        }
        self.cache.check_nodes()
    }

    /// K2 for the blocks that may still be written: the last one if it is not full, and those not committed yet.
    fn check_written(&self, group: usize, tables: &Tables) -> Result<(), String> {
        let is_partial = !tables.num_tokens.is_multiple_of(BLOCK_SIZE);
        let num_blocks = tables.groups[group].blocks().len();
        let first_open = tables.chain.as_ref().map_or(num_blocks - usize::from(is_partial), |chain| chain.num_blocks);
        let pool = &self.cache.groups[group].pool;
        for index in first_open..num_blocks {
            let Some(block) = tables.groups[group].held_at(index) else { continue };
            let is_shared = pool.ref_count(block) != 1 && (is_partial && index + 1 == num_blocks);
            if is_shared || pool.node(block).is_some() {
                return Err(format!("K2: block {block} is still written and shared or cached: entry {index}"));
            }
        }
        Ok(())
    }

    /// K6: the blocks that a table holds of its committed prefix are those of the cache's nodes.
    fn check_chain(&self, group: usize, tables: &Tables, chain: &Chain) -> Result<(), String> {
        let path = self.cache.path_to(chain.last);
        if path.len() != chain.num_blocks {
            return Err(format!("K6: {} blocks committed, {} nodes", chain.num_blocks, path.len()));
        }
        for (index, &node) in path.iter().enumerate() {
            let held = tables.groups[group].held_at(index);
            if held.is_some() && held != self.cache.block_of(node, group) {
                return Err(format!("K6: entry {index} is a duplicate of the cache's own block"));
            }
        }
        Ok(())
    }
}
