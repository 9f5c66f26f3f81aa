//! The node's schema lease: when its database goes by it, and who keeps it.
//!
//! What it is good for and why nobody is deceived by it stands in `braid_catalog::leases`, when a
//! process has one in `braid_catalog::SchemaLease`.

use std::sync::Arc;
use std::time::Duration;

use braid_catalog::Catalog;
use braid_kv::Txn;
use braid_types::SqlResult;

use crate::database::Database;

impl Database {
    /// The catalog for a transaction, if the node's lease says what it is at its read timestamp.
    pub(crate) fn leased_catalog(&self, txn: &Txn) -> Option<Arc<Catalog>> {
        self.schema_lease().catalog_at(self.coordinator(), txn.read_ts())
    }

    /// Tells leases apart; `None` if there is none. See [`Database::schema_epoch`].
    pub(crate) fn lease_epoch(&self) -> Option<u64> {
        self.schema_lease().epoch(self.coordinator())
    }

    /// Does what is to be done about the node's schema lease: waits up to so long for somebody who
    /// wants it back, and gets one, or the same for longer, if that is of use. Called again and
    /// again by a thread of its own; does nothing where there are no other nodes.
    ///
    /// # Errors
    /// Of the requests; the next call tries again.
    pub fn keep_schema_lease(&self, patience: Duration) -> SqlResult<()> {
        if !self.is_shared() {
            return Ok(());
        }
        self.schema_lease().keep(self.coordinator(), patience, || self.current_catalog())
    }

    /// Gives the lease back: the process ends. Nobody waits for it as long as it still answers.
    ///
    /// # Errors
    /// Of the requests; then others wait until it is over.
    pub fn end_schema_lease(&self) -> SqlResult<()> {
        self.schema_lease().end(self.coordinator())
    }
}
