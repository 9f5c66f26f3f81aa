//! What writers will need next, made by background work before they do.
//!
//! ```text
//!   the next wal segment      a file and its blocks    when the current one is half full
//!   the next key filter       2 MiB of zeros           when the current memtable is half full
//!   chunks of its arena       2 MiB each               when few spare ones are left
//! ```
//!
//! Each of these takes as long as a thousand small writes. Whoever comes before they are ready
//! makes what it needs itself: nothing depends on them but the slowest write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::memtable::{KeyFilter, prepare_chunks, wants_chunks};
use crate::store::Store;

/// A memtable of so many bytes needs no large chunks: it does not care what other stores of this
/// process, which share them, use up.
const FEW_BYTES: usize = 256 << 10;

/// What is ready.
#[derive(Default)]
pub(crate) struct Prepared {
    filter: Mutex<Option<KeyFilter>>,
    has_filter: AtomicBool,
    /// A task was queued and has not run.
    queued: AtomicBool,
}

impl Store {
    /// Queues the work if there is any. `bytes`: how large the mutable memtable is.
    #[inline]
    pub(crate) fn prepare_if_due(self: &Arc<Store>, bytes: usize) {
        let filling = bytes >= self.options.memtable_size / 2;
        let filter = filling && !self.prepared.has_filter.load(Ordering::Relaxed);
        let chunks = bytes >= FEW_BYTES && wants_chunks();
        if (filter || chunks || self.wal.wants_segment())
            && !self.prepared.queued.swap(true, Ordering::AcqRel)
        {
            self.spawn(move |store| store.prepare(filter));
        }
    }

    fn prepare(&self, filter: bool) {
        self.prepared.queued.store(false, Ordering::Release);
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        if self.wal.wants_segment() {
            self.wal.prepare_segment();
        }
        if wants_chunks() {
            prepare_chunks();
        }
        if filter && !self.prepared.has_filter.load(Ordering::Relaxed) {
            let filter = KeyFilter::for_memtable_of(self.options.memtable_size);
            *self.prepared.filter.lock() = Some(filter);
            self.prepared.has_filter.store(true, Ordering::Release);
        }
    }

    /// An empty filter for the next memtable.
    pub(crate) fn take_filter(&self) -> KeyFilter {
        let ready = self.prepared.filter.lock().take();
        self.prepared.has_filter.store(false, Ordering::Release);
        ready.unwrap_or_else(|| KeyFilter::for_memtable_of(self.options.memtable_size))
    }
}
