//! A device that remembers what was written where, next to the manager that decides it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use pagewise::kv::{BLOCK_SIZE, BlockView, GroupConfig, Hit, KvManager, Restoring, Retention, TableId};

/// A slot's contents: stands for all tokens up to its own, and the salt.
pub type Content = u64;

/// What the rows of a sequence hold, by position.
pub fn contents(salt: &str, tokens: &[u32]) -> Vec<Content> {
    let mut state = salt.bytes().fold(1, |state: u64, byte| state.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut next = |token: &u32| {
        state = (state ^ u64::from(*token)).wrapping_mul(0x0100_0000_01b3).rotate_left(27);
        state
    };
    tokens.iter().map(&mut next).collect()
}

#[derive(Debug, Clone)]
pub struct Sequence {
    pub id: TableId,
    pub salt: String,
    pub tokens: Vec<u32>,
    pub num_computed: usize,
}

/// A prefix that was read back from the device.
#[derive(Debug, Clone)]
pub struct Saved {
    pub salt: String,
    /// Of full blocks.
    pub tokens: Vec<u32>,
    /// By block and group: what its rows held.
    rows: Vec<Vec<Option<Vec<Content>>>>,
}

pub struct World {
    pub kv: KvManager,
    pub configs: Vec<GroupConfig>,
    pub live: Vec<Sequence>,
    /// Per group, by slot.
    slots: Vec<Vec<Option<Content>>>,
}

impl World {
    pub fn new(configs: Vec<GroupConfig>) -> Self {
        let slots = configs.iter().map(|config| vec![None; config.num_blocks * BLOCK_SIZE]).collect();
        Self { kv: KvManager::new(configs.clone()), configs, live: Vec::new(), slots }
    }

    /// One group that sees the whole context.
    pub fn full(num_blocks: usize) -> Self {
        Self::new(vec![GroupConfig { num_blocks, window: None }])
    }

    /// Admits a sequence if it fits, with rows to copy or without; returns its index and what it found.
    pub fn start(&mut self, salt: &str, tokens: &[u32], retention: Retention) -> Option<(usize, Hit)> {
        let found = self.kv.find(salt, tokens);
        assert_eq!(found.num_tokens(), self.naive_find(salt, tokens), "the longest hit");
        let shorter = self.kv.without_tail(found.clone());
        let fits = |hit: &Hit| self.kv.admits_hit(hit, tokens.len(), self.live.is_empty());
        let hit = [found, shorter].into_iter().find(fits)?;
        let id = self.kv.start(salt, &hit, tokens.len(), Rc::new(retention));
        let num_computed = hit.num_tokens();
        self.live.push(Sequence { id, salt: salt.to_owned(), tokens: tokens.to_vec(), num_computed });
        Some((self.live.len() - 1, hit))
    }

    /// Computes up to `num_tokens` more tokens of a sequence, as far as there are blocks.
    pub fn compute(&mut self, index: usize, num_tokens: usize) {
        let Sequence { id, salt, tokens, num_computed } = self.live[index].clone();
        let end = tokens.len().min(num_computed + num_tokens).min(self.kv.reach_with(id, self.live.len() == 1));
        if end <= num_computed {
            return;
        }
        self.kv.grow(id, end).unwrap();
        for copy in self.kv.copies(id) {
            for row in 0..copy.num_rows {
                let read = self.slots[copy.group][(copy.from + row) as usize];
                assert!(read.is_some(), "a row that was never written is copied");
                self.write(copy.group, copy.to + row, read);
            }
        }
        let contents = contents(&salt, &tokens);
        for position in num_computed..end {
            for group in 0..self.configs.len() {
                let slot = self.kv.table(id, group).slot(position);
                self.write(group, slot, Some(contents[position]));
                self.read(group, id, position, &contents);
            }
        }
        self.kv.commit(id, &tokens, end);
        self.kv.release_unreachable(id, end);
        self.live[index].num_computed = end;
        // What the next query will see is still there, whatever was swapped.
        (0..self.configs.len()).for_each(|group| self.read(group, id, end - 1, &contents));
    }

    /// K2: what is written is in no cached block and in nobody else's.
    fn write(&mut self, group: usize, slot: u32, content: Option<Content>) {
        let view = self.block(group, slot as usize / BLOCK_SIZE);
        assert!(view.cached.is_none() && view.num_holders == 1, "K2: {view:?} is written");
        self.slots[group][slot as usize] = content;
    }

    fn block(&self, group: usize, block: usize) -> BlockView {
        *self.kv.blocks().iter().find(|view| (view.group, view.block as usize) == (group, block)).unwrap()
    }

    /// K9: what a query sees is what was computed for these very tokens.
    fn read(&self, group: usize, id: TableId, position: usize, contents: &[Content]) {
        let window = self.configs[group].window.unwrap_or(usize::MAX);
        let table = self.kv.table(id, group);
        // A block that no later query reaches may be gone.
        let first = (position + 1).saturating_sub(window).max(table.num_released() * BLOCK_SIZE);
        for (at, content) in contents.iter().enumerate().take(position + 1).skip(first) {
            let found = self.slots[group][table.slot(at) as usize];
            assert_eq!(found, Some(*content), "K9: position {at} in group {group} holds something else");
        }
    }

    pub fn finish(&mut self, index: usize) {
        let Sequence { id, tokens, num_computed, .. } = self.live.remove(index);
        self.kv.finish(id, &tokens, num_computed);
    }

    /// Computes a whole sequence and ends it.
    pub fn run(&mut self, salt: &str, tokens: &[u32], retention: Retention) -> Hit {
        let (index, hit) = self.start(salt, tokens, retention).unwrap();
        self.compute(index, tokens.len());
        assert_eq!(self.live[index].num_computed, tokens.len());
        self.finish(index);
        self.kv.check().unwrap();
        hit
    }

    /// Reads back what is cached of a prefix.
    pub fn save(&self, salt: &str, tokens: &[u32]) -> Saved {
        let path = self.kv.cached_path(salt, tokens);
        let tokens = tokens[..path.len() * BLOCK_SIZE].to_vec();
        let expected = contents(salt, &tokens);
        let mut rows = Vec::new();
        for (index, block) in path.iter().enumerate() {
            let read = |group: usize, block: u32| {
                let first = block as usize * BLOCK_SIZE;
                let rows: Vec<_> =
                    self.slots[group][first..first + BLOCK_SIZE].iter().map(|row| row.unwrap()).collect();
                assert_eq!(rows, expected[index * BLOCK_SIZE..(index + 1) * BLOCK_SIZE], "K9: something else is saved");
                rows
            };
            rows.push((0..).zip(block).map(|(group, block)| block.map(|block| read(group, block))).collect());
        }
        Saved { salt: salt.to_owned(), tokens, rows }
    }

    /// Takes the blocks that a saved prefix lacks.
    pub fn begin_restore(&mut self, saved: &Saved) -> Option<Restoring> {
        self.kv.begin_restore(&saved.salt, &saved.tokens, |index, group| saved.rows[index][group].is_some())
    }

    /// Fills them, and lets them be found.
    pub fn finish_restore(&mut self, restoring: Restoring, saved: &Saved, retention: Retention) -> usize {
        let num_tokens = restoring.num_tokens();
        for restored in restoring.blocks().to_vec() {
            let rows = saved.rows[restored.index][restored.group].clone().expect("only what was saved is asked for");
            for (slot, row) in (restored.block * 16..).zip(rows) {
                self.write(restored.group, slot, Some(row));
            }
        }
        let entered = self.kv.finish_restore(restoring, &saved.salt, &saved.tokens, Rc::new(retention));
        let next = [&saved.tokens[..num_tokens], &[1]].concat();
        assert!(self.kv.find(&saved.salt, &next).num_tokens() >= num_tokens, "what was restored is found");
        entered
    }

    /// Blocks with cached contents, as (group, position of the first row).
    pub fn cached(&self) -> Vec<(usize, usize)> {
        self.kv.blocks().iter().filter_map(|view| Some((view.group, view.cached?.position))).collect()
    }

    /// The longest hit by definition, from what the device holds.
    fn naive_find(&self, salt: &str, tokens: &[u32]) -> usize {
        let contents = contents(salt, tokens);
        // Per node: the contents of its rows in every group that has its block.
        let mut nodes = BTreeMap::<u32, BTreeMap<usize, Vec<Option<Content>>>>::new();
        for view in self.kv.blocks() {
            let Some(cached) = view.cached else { continue };
            let first = view.block as usize * BLOCK_SIZE;
            let rows = self.slots[view.group][first..first + cached.num_tokens].to_vec();
            nodes.entry(cached.node).or_default().insert(view.group, rows);
        }
        let num_groups = self.configs.len();
        let full = |group: usize| {
            let last =
                |groups: &BTreeMap<usize, Vec<Option<Content>>>| groups.get(&group)?.get(BLOCK_SIZE - 1).copied()?;
            nodes.values().filter_map(last).collect::<BTreeSet<_>>()
        };
        let blocks: Vec<_> = (0..num_groups).map(full).collect();
        let has_row = |at: usize| {
            let row = |rows: &Vec<Option<Content>>| rows.get(at % BLOCK_SIZE) == Some(&Some(contents[at]));
            nodes.values().any(|groups| groups.len() == num_groups && groups.values().all(row))
        };
        let is_there = |len: usize| {
            let whole = len / BLOCK_SIZE;
            let sees = |group: usize, block: usize| {
                let first_seen = self.configs[group].window.map_or(0, |window| (len + 1).saturating_sub(window));
                let is_seen = (block + 1) * BLOCK_SIZE > first_seen;
                !is_seen || blocks[group].contains(&contents[(block + 1) * BLOCK_SIZE - 1])
            };
            (0..whole).all(|block| (0..num_groups).all(|group| sees(group, block)))
                && (len.is_multiple_of(BLOCK_SIZE) || has_row(len - 1))
        };
        (0..tokens.len()).rev().find(|&len| is_there(len)).unwrap_or(0)
    }

    /// Every cached block holds what its node says, as far as the live and the remembered sequences can tell.
    pub fn check(&self, known: &BTreeSet<Content>) {
        self.kv.check().unwrap();
        for view in self.kv.blocks() {
            let Some(cached) = view.cached else { continue };
            let last = view.block as usize * BLOCK_SIZE + cached.num_tokens - 1;
            let content = self.slots[view.group][last].expect("a cached block was written");
            assert!(known.contains(&content), "a cached block holds no sequence's tokens");
        }
    }
}
