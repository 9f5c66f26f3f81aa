//! Everything a read needs, as one immutable value behind an atomic pointer.

use std::sync::Arc;

use crate::memtable::Memtable;

/// The layers of the store at a moment. Replaced as a whole, never changed.
pub(crate) struct State {
    /// Receives writes.
    pub(crate) mutable: Arc<Memtable>,
    /// Sealed, not flushed yet; newest first.
    pub(crate) immutable: Vec<Arc<Memtable>>,
}

impl State {
    /// All memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.mutable).chain(&self.immutable)
    }
}
