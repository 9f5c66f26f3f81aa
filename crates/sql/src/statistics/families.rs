//! Which families are the largest: cut where stored bytes come to equal parts, a tree has its cuts
//! where much lies.
//!
//! ```text
//!   bytes     |..|........................|.|.|..|...    families 1 to 7; 2 is large
//!   cuts            ^     ^     ^     ^        ^         four in 2, one in 5
//!   asked           how many bytes do 2 and 5 have?
//! ```
//! A family that is larger than a part has a cut inside, so none of these is missed; of smaller
//! ones some are found. What has been written last, and is in memory only, does not count.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{Catalog, Table, kv_error};
use braid_kv::TxnOptions;
use braid_types::{Datum, SqlResult};

use crate::database::Database;
use braid_rows::TableLayout;

/// At most so many parts of a tree.
const PARTS: usize = 256;
/// Bytes of a part at least.
const LEAST_BYTES: u64 = 16 << 10;

/// A family that was found.
#[derive(Clone, Debug)]
pub struct LargeFamily {
    /// The values of the root row's key.
    pub key: Vec<Datum>,
    /// About how many bytes it has in files.
    pub bytes: u64,
    /// Of all bytes of the tree.
    pub share: f64,
}

impl Database {
    /// About how many bytes the rows of a root table have in files, with all that lies in them.
    ///
    /// # Errors
    /// Of the store.
    pub fn tree_bytes(&self, catalog: &Catalog, root: &Arc<Table>) -> SqlResult<u64> {
        let layout = TableLayout::new(catalog, root)?;
        self.coordinator().stored_bytes(&layout.rows.whole_span()).map_err(kv_error)
    }

    /// The largest families of a root table, the largest first.
    ///
    /// # Errors
    /// Of the store.
    pub fn large_families(
        &self,
        catalog: &Catalog,
        root: &Arc<Table>,
    ) -> SqlResult<Vec<LargeFamily>> {
        let layout = TableLayout::new(catalog, root)?;
        let span = layout.rows.whole_span();
        let options = TxnOptions { read_only: true, ..TxnOptions::default() };
        let txn = self.coordinator().begin(options).map_err(kv_error)?;
        let all = txn.stored_bytes(&span).map_err(kv_error)?.max(1);
        let parts = txn.divide(&span, PARTS, LEAST_BYTES).map_err(kv_error)?;
        let mut heads: BTreeSet<Vec<u8>> = BTreeSet::new();
        for part in parts.iter().skip(1) {
            heads.extend(layout.rows.head_of(&part.start)?);
        }
        let mut out = Vec::with_capacity(heads.len());
        for head in heads {
            let bytes = txn.stored_bytes(&TableLayout::family_span(&head)).map_err(kv_error)?;
            let mut row = vec![Datum::Null; root.columns.len()];
            if layout.rows.decode(&head, &mut row, None)? {
                let key = layout.rows.columns().iter().map(|k| row[k.ordinal].clone()).collect();
                out.push(LargeFamily { key, bytes, share: bytes as f64 / all as f64 });
            }
        }
        out.sort_by_key(|family| std::cmp::Reverse(family.bytes));
        Ok(out)
    }
}
