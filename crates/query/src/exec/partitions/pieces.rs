//! A scan that several threads read: pieces of its spans, taken one after the other.
//!
//! ```text
//!   span      |----------|---------|----------|---------|     cut by stored bytes, into more
//!   threads   1          2         1          2 ...           pieces than there are threads
//! ```
//! A thread that is done with a piece takes the next, so that nobody waits for the one whose piece
//! was the largest. Where there are many spans, a piece is some of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_catalog::kv_error;
use braid_kv::{KeySpan, Txn};
use braid_planner::access::Access;
use braid_types::SqlResult;
use parking_lot::{Condvar, Mutex};

/// Pieces for each thread.
const FOR_EACH: usize = 6;
/// Stored bytes of a piece at least.
const LEAST_BYTES: u64 = 256 << 10;

/// What is left to read of a scan.
#[derive(Debug)]
pub(in crate::exec) struct Pieces {
    pub(in crate::exec) access: Access,
    left: VecDeque<Vec<KeySpan>>,
}

impl Pieces {
    /// Cuts the spans of an access for so many threads.
    pub(in crate::exec) fn new(
        txn: &Txn,
        access: Access,
        spans: Vec<KeySpan>,
        threads: usize,
    ) -> SqlResult<Pieces> {
        let wanted = threads * FOR_EACH;
        let left = if spans.len() >= wanted {
            spans.chunks(spans.len().div_ceil(wanted)).map(<[KeySpan]>::to_vec).collect()
        } else {
            let parts = wanted / spans.len().max(1);
            let mut left = VecDeque::new();
            for span in &spans {
                let cut = txn.divide(span, parts, LEAST_BYTES).map_err(kv_error)?;
                left.extend(cut.into_iter().map(|piece| vec![piece]));
            }
            left
        };
        Ok(Pieces { access, left })
    }

    /// The next piece.
    pub(in crate::exec) fn take(&mut self) -> Option<Vec<KeySpan>> {
        self.left.pop_front()
    }
}

/// Streams of an execution that other threads hold: its statement does not end before they do.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    reading: Mutex<usize>,
    stopped: Condvar,
    ended: AtomicBool,
}

/// One of them, as long as it lives.
#[derive(Debug)]
pub(in crate::exec) struct Reading(Arc<Readers>);

impl Readers {
    pub(in crate::exec) fn begin(self: &Arc<Self>) -> Reading {
        *self.reading.lock() += 1;
        Reading(self.clone())
    }

    /// Nobody wants any more rows. Returns when nobody reads any more: within a batch, once whoever
    /// would have taken the rows is gone.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.settle();
    }

    /// Waits until nobody reads any more.
    pub(crate) fn settle(&self) {
        let mut reading = self.reading.lock();
        while *reading > 0 {
            self.stopped.wait(&mut reading);
        }
    }

    /// Whether nobody wants any more rows.
    pub(in crate::exec) fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        *self.0.reading.lock() -= 1;
        self.0.stopped.notify_all();
    }
}
