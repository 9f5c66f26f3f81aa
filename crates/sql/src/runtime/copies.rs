//! How far each COPY is: `pg_stat_progress_copy`.
//!
//! Who copies holds a [`CopyProgress`] and counts in it; readers find it as long as he does. A COPY
//! that ends, however it does, is gone without being asked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// All of a node.
#[derive(Default)]
pub struct Copies(Mutex<Vec<Weak<CopyProgress>>>);

/// What a COPY is about, and how far it is.
pub struct CopyProgress {
    /// Process id of its session, as clients know it.
    pub pid: i32,
    /// Database of its session.
    pub database: String,
    /// The table; `None` for a query.
    pub table: Option<u32>,
    /// FROM instead of TO.
    pub from: bool,
    /// From or to a file of the node, of so many bytes as far as that is known.
    pub file: Option<u64>,
    counted: [AtomicU64; 3],
}

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Copied {
    /// Bytes of the data.
    Bytes,
    /// Rows of it.
    Rows,
    /// Rows that WHERE or ON_ERROR have left out.
    LeftOut,
}

impl Copies {
    /// A COPY begins.
    pub(crate) fn begin(
        &self,
        (pid, database): (i32, &str),
        table: Option<u32>,
        from: bool,
        file: Option<u64>,
    ) -> Arc<CopyProgress> {
        let counted = Default::default();
        let database = database.to_string();
        let begun = Arc::new(CopyProgress { pid, database, table, from, file, counted });
        let mut all = self.0.lock();
        all.retain(|copy| copy.strong_count() > 0);
        all.push(Arc::downgrade(&begun));
        begun
    }

    /// Those that have not ended.
    pub fn all(&self) -> Vec<Arc<CopyProgress>> {
        self.0.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl CopyProgress {
    /// Adds to a count; only the one who copies does.
    pub(crate) fn add(&self, what: Copied, more: u64) {
        self.counted[what as usize].fetch_add(more, Ordering::Relaxed);
    }

    fn get(&self, what: Copied) -> u64 {
        self.counted[what as usize].load(Ordering::Relaxed)
    }

    /// Bytes of the data so far.
    pub fn bytes(&self) -> u64 {
        self.get(Copied::Bytes)
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.get(Copied::Rows)
    }

    /// Rows left out so far, by WHERE or ON_ERROR.
    pub fn left_out(&self) -> u64 {
        self.get(Copied::LeftOut)
    }
}
