//! All that a node knows of its statements and sessions.

use std::sync::OnceLock;

use braid_catalog::SchemaLease;
use braid_import::Folder;

use super::advisory::AdvisoryLocks;
use super::channels::Channels;
use super::sessions::Sessions;
use super::statements::{ENTRIES_MAX, Statements};
use super::transactions::Transactions;
use crate::over_nodes::OverNodes;

/// See the [module documentation](self).
pub(crate) struct Runtime {
    pub(crate) statements: Statements,
    pub(crate) transactions: Transactions,
    pub(crate) sessions: Sessions,
    pub(crate) advisory: AdvisoryLocks,
    pub(crate) channels: Channels,
    /// Where files for IMPORT are, once somebody has said it.
    pub(crate) import_folder: OnceLock<Folder>,
    /// Settings that sessions of this node begin with.
    pub(crate) defaults: OnceLock<Vec<(String, String)>>,
    /// In a cluster, what says that the catalog stays as it is.
    pub(crate) schema_lease: SchemaLease,
    /// What sessions of different nodes have in common.
    pub(crate) over_nodes: OverNodes,
    /// Other nodes work on the same tables.
    pub(crate) shared: bool,
    /// When the node began, microseconds since 2000.
    pub(crate) begun_micros: i64,
}

impl Runtime {
    /// Nothing yet.
    pub(crate) fn new(now_micros: i64, shared: bool) -> Runtime {
        let statements = Statements::new(ENTRIES_MAX, now_micros);
        Runtime {
            statements,
            transactions: Transactions::new(ENTRIES_MAX),
            sessions: Sessions::default(),
            advisory: AdvisoryLocks::default(),
            channels: Channels::default(),
            import_folder: OnceLock::new(),
            defaults: OnceLock::new(),
            schema_lease: SchemaLease::default(),
            over_nodes: OverNodes::default(),
            begun_micros: now_micros,
            shared,
        }
    }
}
