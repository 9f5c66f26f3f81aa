//! What statements and transactions have done on all nodes together.
//!
//! Each node counts for itself ([`crate::runtime`]), so that counting costs nothing on the way of a
//! statement; who looks asks all others, and adds up. A node that does not answer is left out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::calls::NodeStatistics;
use crate::database::Database;
use crate::runtime::{StatementStatistics, TransactionStatistics};

impl Database {
    /// Statements of all nodes, each with the sum of what its executions have done.
    pub fn all_statements(&self) -> Vec<StatementStatistics> {
        let others = self.statistics_of_others().into_iter().flat_map(|other| other.statements);
        let mut sums = HashMap::new();
        for told in self.statements().all().into_iter().chain(others) {
            match sums.entry((told.database, told.id)) {
                Entry::Vacant(free) => drop(free.insert(told)),
                Entry::Occupied(mut known) => known.get_mut().tally.merge(&told.tally),
            }
        }
        sums.into_values().collect()
    }

    /// Kinds of transactions of all nodes, of statements that stood alone and of blocks, with the
    /// statements of all nodes.
    pub fn all_transactions(&self) -> (Vec<StatementStatistics>, Vec<TransactionStatistics>) {
        let statements = self.all_statements();
        let others = self.statistics_of_others().into_iter().flat_map(|other| other.blocks);
        let mut sums = HashMap::new();
        for told in self.transactions().blocks().into_iter().chain(others) {
            match sums.entry((told.database, told.id)) {
                Entry::Vacant(free) => drop(free.insert(told)),
                Entry::Occupied(mut known) => known.get_mut().sum.merge(&told.sum),
            }
        }
        let all = TransactionStatistics::alone(&statements).chain(sums.into_values()).collect();
        (statements, all)
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
