//! Nodes and the one map that finds them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

use super::order::Rank;
use crate::kv::{BLOCK_SIZE, BlockId};

/// Names a node while it exists.
pub type NodeId = u32;

/// At most this many layer groups: layers that see the whole context, and sliding-window layers.
pub(in crate::kv) const MAX_GROUPS: usize = 2;

/// A node's tokens as the map sorts them: ids plus one, so that 0 means "no token" and a tail sorts right before what it
/// begins.
pub(super) type Key = [u32; BLOCK_SIZE];

/// The key of up to a block's worth of tokens.
///
/// # Panics
/// If a token id is `u32::MAX`, which no vocabulary reaches.
pub(super) fn key(tokens: &[u32]) -> Key {
    let mut key = [0; BLOCK_SIZE];
    for (entry, &token) in key.iter_mut().zip(tokens) {
        *entry = token.checked_add(1).expect("token ids are below u32::MAX");
    }
    key
}

/// Tokens in a key.
pub(super) fn key_len(key: &Key) -> usize {
    key.iter().position(|&entry| entry == 0).unwrap_or(BLOCK_SIZE)
}

/// Tokens that two keys begin with in common.
pub(super) fn common_len(a: &Key, b: &Key) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b && **a != 0).count()
}

/// A node's place in one layer group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slot {
    /// The block that holds its tokens, if it has not been given up.
    pub(super) block: Option<BlockId>,
    /// When the block was let go of last.
    pub(super) tick: u64,
    /// Its place in the order of eviction, while it is there.
    pub(super) rank: Option<Rank>,
}

/// One block's worth of tokens after its parent's.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// `None` for a root, which has no tokens.
    pub(super) parent: Option<NodeId>,
    pub(super) key: Key,
    /// Blocks before this one.
    pub(super) depth: usize,
    pub(super) num_children: usize,
    pub(super) num_pinned_children: usize,
    /// Sequences whose last block in the cache this is: they will look for it here.
    pub(super) num_users: usize,
    /// Of the tokens up to here: only to remember why something is gone, never to find it.
    pub(super) path_hash: u64,
    pub(super) slots: [Slot; MAX_GROUPS],
    /// Implies that its parent is.
    pub(super) is_pinned: bool,
    pub(super) priority: i32,
    /// The block is dropped when it was not used for so long.
    pub(super) ttl_ms: u64,
    /// Tokens of the longest sequence so far that begins like this.
    pub(super) longest: usize,
    pub(super) num_hits: u64,
    pub(super) created_ms: u64,
    pub(super) used_ms: u64,
    /// Of a root its salt, of another node what its prefix is called.
    pub(super) name: Option<Rc<str>>,
}

impl Node {
    pub(super) fn is_tail(&self) -> bool {
        self.parent.is_some() && self.key[BLOCK_SIZE - 1] == 0
    }

    pub(super) fn has_block(&self) -> bool {
        self.slots.iter().any(|slot| slot.block.is_some())
    }

    /// The block in a group, where it is known to be there.
    pub(super) fn block(&self, group: usize) -> BlockId {
        self.slots[group].block.expect("a hit names nodes that have their blocks")
    }

    pub(super) fn expires_ms(&self) -> u64 {
        self.used_ms.saturating_add(self.ttl_ms)
    }
}

/// Nodes, each with the number of tokens that it has in common with what was asked for.
pub(super) type Likeness<'a> = Box<dyn Iterator<Item = (NodeId, usize)> + 'a>;

/// All nodes. The map is ordered, so the tokens that begin most like others are next to them.
#[derive(Debug, Clone, Default)]
pub(super) struct Trie {
    nodes: Vec<Option<Node>>,
    unused: Vec<NodeId>,
    map: BTreeMap<(NodeId, Key), NodeId>,
    roots: BTreeMap<Rc<str>, NodeId>,
}

impl Trie {
    pub(super) fn get(&self, node: NodeId) -> &Node {
        self.nodes[node as usize].as_ref().expect("the id of a live node")
    }

    pub(super) fn get_mut(&mut self, node: NodeId) -> &mut Node {
        self.nodes[node as usize].as_mut().expect("the id of a live node")
    }

    /// The node, if it still exists.
    pub(super) fn find(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(node as usize)?.as_ref()
    }

    pub(super) fn contains(&self, node: NodeId) -> bool {
        self.find(node).is_some()
    }

    /// The root of a salt, if anything is under it.
    pub(super) fn root(&self, salt: &str) -> Option<NodeId> {
        self.roots.get(salt).copied()
    }

    pub(super) fn root_or_new(&mut self, salt: &str, now_ms: u64) -> NodeId {
        if let Some(&root) = self.roots.get(salt) {
            return root;
        }
        let name: Rc<str> = salt.into();
        let root =
            Node { path_hash: salt_hash(salt), name: Some(Rc::clone(&name)), ..blank(None, [0; BLOCK_SIZE], now_ms) };
        let root = self.add(root);
        self.roots.insert(name, root);
        root
    }

    pub(super) fn roots(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.roots.values().copied()
    }

    /// The salt that a node is under.
    pub(super) fn salt(&self, mut node: NodeId) -> Rc<str> {
        while let Some(parent) = self.get(node).parent {
            node = parent;
        }
        self.get(node).name.clone().unwrap_or_default()
    }

    pub(super) fn child(&self, parent: NodeId, key: &Key) -> Option<NodeId> {
        self.map.get(&(parent, *key)).copied()
    }

    /// Children in order of their keys.
    pub(super) fn children(&self, parent: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.map.range((parent, [0; BLOCK_SIZE])..=(parent, [u32::MAX; BLOCK_SIZE])).map(|(_, &node)| node)
    }

    /// Children whose tokens begin most like `key`, the most alike first on either side.
    pub(super) fn nearest(&self, parent: NodeId, key: &Key) -> [Likeness<'_>; 2] {
        let key = *key;
        let likeness = move |((_, other), node): (&(NodeId, Key), &NodeId)| (*node, common_len(other, &key));
        let after = self.map.range((parent, key)..=(parent, [u32::MAX; BLOCK_SIZE])).map(likeness);
        let before = self.map.range((parent, [0; BLOCK_SIZE])..(parent, key)).rev().map(likeness);
        [Box::new(before), Box::new(after)]
    }

    /// The child with these tokens, and whether it is new: then it has no block yet, and the parent's count of children
    /// is the caller's.
    pub(super) fn child_or_new(&mut self, parent: NodeId, key: Key, now_ms: u64) -> (NodeId, bool) {
        let next = self.next_id();
        match self.map.entry((parent, key)) {
            Entry::Occupied(entry) => return (*entry.get(), false),
            Entry::Vacant(entry) => entry.insert(next),
        };
        let above = self.get(parent);
        let depth = above.parent.map_or(0, |_| above.depth + 1);
        let path_hash = path_hash(above.path_hash, &key);
        (self.add(Node { depth, path_hash, ..blank(Some(parent), key, now_ms) }), true)
    }

    /// The id that [`Trie::add`] will give.
    fn next_id(&self) -> NodeId {
        let fresh = || NodeId::try_from(self.nodes.len()).expect("there are no more nodes than blocks and sequences");
        self.unused.last().copied().unwrap_or_else(fresh)
    }

    fn add(&mut self, node: Node) -> NodeId {
        let id = self.next_id();
        match self.unused.pop() {
            Some(_) => self.nodes[id as usize] = Some(node),
            None => self.nodes.push(Some(node)),
        }
        id
    }

    /// Forgets a node. Its parent's counts are the caller's.
    pub(super) fn remove(&mut self, id: NodeId) -> Node {
        let node = self.nodes[id as usize].take().expect("the id of a live node");
        assert!(node.num_children == 0 && node.num_users == 0 && !node.has_block(), "the node is in use");
        match (node.parent, &node.name) {
            (Some(parent), _) => self.map.remove(&(parent, node.key)),
            (None, name) => name.as_ref().and_then(|salt| self.roots.remove(salt)),
        };
        self.unused.push(id);
        node
    }

    /// Every node, roots included.
    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        (0..).zip(&self.nodes).filter_map(|(id, node)| Some((id, node.as_ref()?)))
    }

    /// Nodes that have tokens.
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }
}

fn blank(parent: Option<NodeId>, key: Key, now_ms: u64) -> Node {
    Node {
        parent,
        key,
        depth: 0,
        num_children: 0,
        num_pinned_children: 0,
        num_users: 0,
        path_hash: 0,
        slots: [Slot::default(); MAX_GROUPS],
        is_pinned: false,
        priority: i32::MIN,
        ttl_ms: 0,
        longest: 0,
        num_hits: 0,
        created_ms: now_ms,
        used_ms: now_ms,
        name: None,
    }
}

/// The hash of a path that goes on with `key`.
pub(super) fn path_hash(parent: u64, key: &Key) -> u64 {
    key.iter().fold(parent, |hash, &entry| mix(hash, u64::from(entry)))
}

/// The hash of the empty path under a salt.
pub(super) fn salt_hash(salt: &str) -> u64 {
    salt.bytes().fold(0, |hash, byte| mix(hash, u64::from(byte)))
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) ^ value
}
