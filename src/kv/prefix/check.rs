//! The invariants of the cache, verified the slow way.

use std::collections::BTreeSet;

use super::PrefixCache;
use super::order::Rank;
use super::trie::{Node, NodeId};
use crate::kv::BlockId;

impl PrefixCache {
    /// The nodes from the first block to `last`.
    pub(in crate::kv) fn path_to(&self, last: NodeId) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut next = last;
        while let Some(parent) = self.trie.get(next).parent {
            path.push(next);
            next = parent;
        }
        path.reverse();
        path
    }

    /// A node's block in a group, if it has not been given up.
    pub(in crate::kv) fn block_of(&self, id: NodeId, group: usize) -> Option<BlockId> {
        self.trie.get(id).slots[group].block
    }

    /// K3, K4, K5 and the books: children, pins, orders and expiries are what the nodes say.
    ///
    /// # Errors
    /// The first thing that is wrong, in words.
    pub(in crate::kv) fn check_nodes(&self) -> Result<(), String> {
        let nodes: Vec<_> = self.trie.iter().collect();
        let mut num_children = vec![(0, 0); nodes.iter().map(|(id, _)| *id as usize + 1).max().unwrap_or(0)];
        for (id, node) in &nodes {
            if let Some(parent) = node.parent {
                num_children[parent as usize].0 += 1;
                num_children[parent as usize].1 += usize::from(node.is_pinned);
                if self.trie.child(parent, &node.key) != Some(*id) {
                    return Err(format!("K4: the map does not lead to node {id}"));
                }
                self.check_node(*id, node, self.trie.get(parent))?;
            }
        }
        for (id, node) in &nodes {
            if num_children[*id as usize] != (node.num_children, node.num_pinned_children) {
                return Err(format!("K4: node {id} has {:?} children (pinned)", num_children[*id as usize]));
            }
            let is_needed = node.has_block() || node.num_children > 0 || node.num_users > 0;
            if !is_needed || (node.is_tail() && node.num_children > 0) {
                return Err(format!("K3: node {id} is a tail with children, or nothing needs it"));
            }
        }
        self.check_orders(&nodes)
    }

    fn check_node(&self, id: NodeId, node: &Node, parent: &Node) -> Result<(), String> {
        for (index, group) in self.groups.iter().enumerate() {
            let Some(block) = node.slots[index].block else {
                if group.config.window.is_none() {
                    return Err(format!("K4: node {id} has lost its block in group {index}"));
                }
                continue;
            };
            if group.pool.node(block) != Some(id) {
                return Err(format!("K4: block {block} of group {index} does not know its node {id}"));
            }
            let parent_is_root = parent.parent.is_none();
            let parent_refs = parent.slots[index].block.map(|block| group.pool.ref_count(block));
            if group.config.window.is_none() && !parent_is_root {
                let Some(parent_refs) = parent_refs else {
                    return Err(format!("K4: node {id} has a block, its parent none"));
                };
                if group.pool.ref_count(block) > 0 && parent_refs == 0 {
                    return Err(format!("K4: the block of node {id} is held, its parent's is not"));
                }
            }
        }
        if node.is_pinned && !parent.is_pinned && parent.parent.is_some() {
            return Err(format!("node {id} is pinned, its parent is not"));
        }
        Ok(())
    }

    fn check_orders(&self, nodes: &[(NodeId, &Node)]) -> Result<(), String> {
        let mut expiries = BTreeSet::new();
        for (index, group) in self.groups.iter().enumerate() {
            let free = || nodes.iter().filter(|(_, node)| self.is_free(index, node));
            let listed = || free().filter(|(_, node)| self.may_go(index, node));
            let order: BTreeSet<_> = listed().map(|(id, node)| Rank::new(self.policy, *id, node, index)).collect();
            if order != group.order {
                return Err(format!("K5: group {index} gives up {:?}, not {order:?}", group.order));
            }
            if nodes
                .iter()
                .any(|(id, node)| node.slots[index].rank.is_some_and(|rank| rank.node != *id || !order.contains(&rank)))
                || nodes.iter().filter(|(_, node)| node.slots[index].rank.is_some()).count() != order.len()
            {
                return Err(format!("K5: nodes of group {index} do not know their ranks"));
            }
            let num_pinned_free = free().filter(|(_, node)| node.is_pinned).count();
            if num_pinned_free != group.num_pinned_free {
                return Err(format!("{num_pinned_free} pinned blocks are free, {} counted", group.num_pinned_free));
            }
            let num_cached = nodes.iter().filter(|(_, node)| node.slots[index].block.is_some()).count();
            if num_cached
                != (0..).take(group.pool.num_blocks()).filter(|&block| group.pool.node(block).is_some()).count()
            {
                return Err(format!("K4: blocks of group {index} are cached under no node"));
            }
            if index == self.primary {
                let may_expire = |node: &Node| !node.is_pinned && node.expires_ms() < u64::MAX;
                expiries.extend(listed().filter(|(_, n)| may_expire(n)).map(|(id, n)| (n.expires_ms(), *id)));
            }
        }
        if expiries != self.expiries {
            return Err(format!("{:?} may expire, not {expiries:?}", self.expiries));
        }
        Ok(())
    }
}
