//! Walks along interleave declarations: chains upwards, subtrees downwards.
//!
//! ```text
//!   customers <- orders <- lines        chain(lines)      = [customers, orders, lines]
//!             <- notes                  subtree(customers) = [customers, orders, lines, notes]
//! ```

use std::sync::Arc;

use crate::descriptor::Table;
use crate::snapshot::Catalog;

/// Deepest allowed nesting, the root counted as level 1.
pub const MAX_DEPTH: usize = 16;

impl Catalog {
    /// From the root of the hierarchy down to the table itself.
    pub fn chain(&self, table: &Arc<Table>) -> Vec<Arc<Table>> {
        let mut chain = vec![table.clone()];
        let mut at = table.clone();
        // The bound keeps a damaged catalog from looping for ever; `check` reports it.
        while let Some(parent) = at.interleave.as_ref().and_then(|i| self.table(i.parent)) {
            if chain.len() > MAX_DEPTH {
                break;
            }
            chain.push(parent.clone());
            at = parent.clone();
        }
        chain.reverse();
        chain
    }

    /// The table and everything interleaved below it, parents first, siblings by id.
    pub fn subtree(&self, table: &Arc<Table>) -> Vec<Arc<Table>> {
        let mut out = Vec::new();
        let mut stack = vec![table.clone()];
        while let Some(t) = stack.pop() {
            let mut children: Vec<_> = self.interleaved_children(t.id).cloned().collect();
            children.sort_by_key(|c| std::cmp::Reverse(c.id));
            out.push(t);
            if out.len() > 100_000 {
                break;
            }
            stack.extend(children);
        }
        out
    }

    /// Whether `ancestor` is the table itself or above it in its hierarchy.
    pub fn is_self_or_ancestor(&self, ancestor: u32, table: &Arc<Table>) -> bool {
        self.chain(table).iter().any(|t| t.id == ancestor)
    }

    /// Nesting level, 1 for a root.
    pub fn depth(&self, table: &Arc<Table>) -> usize {
        self.chain(table).len()
    }
}
