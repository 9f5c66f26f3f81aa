//! What statements and transactions have done on all nodes together.
//!
//! Each node counts for itself ([`crate::runtime`]), so that counting costs nothing on the way of a
//! statement; who looks asks all others, and adds up. A node that does not answer is left out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::calls::NodeStatistics;
use crate::database::Database;
use crate::runtime::{StatementStatistics, TransactionStatistics};

/// What is counted under the same fingerprint of the same database, added up.
fn summed<T>(
    told: impl Iterator<Item = T>,
    key: fn(&T) -> (u32, i64),
    merge: fn(&mut T, &T),
) -> Vec<T> {
    let mut sums = HashMap::new();
    for told in told {
        match sums.entry(key(&told)) {
            Entry::Vacant(free) => drop(free.insert(told)),
            Entry::Occupied(mut known) => merge(known.get_mut(), &told),
        }
    }
    sums.into_values().collect()
}

impl Database {
    /// Statements of all nodes, each with the sum of what its executions have done.
    pub fn all_statements(&self) -> Vec<StatementStatistics> {
        self.all_statistics().statements
    }

    /// Kinds of transactions of all nodes, of statements that stood alone and of blocks, with the
    /// statements of all nodes.
    pub fn all_transactions(&self) -> (Vec<StatementStatistics>, Vec<TransactionStatistics>) {
        let NodeStatistics { statements, blocks } = self.all_statistics();
        let all = TransactionStatistics::alone(&statements).chain(blocks).collect();
        (statements, all)
    }

    /// What all nodes have counted, together.
    fn all_statistics(&self) -> NodeStatistics {
        let mut all = self.own_statistics();
        for other in self.statistics_of_others() {
            all.statements.extend(other.statements);
            all.blocks.extend(other.blocks);
        }
        NodeStatistics {
            statements: summed(
                all.statements.into_iter(),
                |told| (told.database, told.id),
                |sum, told| sum.tally.merge(&told.tally),
            ),
            blocks: summed(
                all.blocks.into_iter(),
                |told| (told.database, told.id),
                |sum, told| sum.sum.merge(&told.sum),
            ),
        }
    }

    /// What this node has counted.
    pub(super) fn own_statistics(&self) -> NodeStatistics {
        let statements = self.statements().all();
        NodeStatistics { statements, blocks: self.transactions().blocks() }
    }

    /// Forgets those of a database and a fingerprint, on this node; `None`: of any.
    pub(super) fn reset_own_statistics(&self, database: Option<u32>, id: Option<i64>) {
        self.transactions().reset(database, id);
        self.statements().reset(database, id, self.clock_micros());
    }

    /// The same on all nodes that answer.
    pub(crate) fn reset_statistics(&self, database: Option<u32>, id: Option<i64>) {
        self.reset_own_statistics(database, id);
        self.reset_statistics_of_others(database, id);
    }
}
