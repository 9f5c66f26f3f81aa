//! Watches: where something was written since somebody asked.
//!
//! A leaseholder keeps no watch. It is asked whether anything in a span is newer than the time of
//! the last question, which the store knows. So a watch is a time and some spans here, and what it
//! tells is coarse: nothing was written into a span, or somewhere in it. Whoever watches looks at
//! all that he is told of, and so misses nothing.

use std::collections::BTreeMap;

use braid_kv::{Reads, Validate, Watch, Watched};
use braid_lsm::{CommitTs, KeySpan};
use parking_lot::Mutex;

use crate::router::Router;

struct Open {
    spans: Vec<KeySpan>,
    /// What was written up to here was told of, or is older than the watch.
    told: CommitTs,
}

/// All that are open.
#[derive(Default)]
pub(crate) struct Watches {
    open: Mutex<(u64, BTreeMap<u64, Open>)>,
}

impl Watches {
    pub(crate) fn close(&self, number: u64) {
        self.open.lock().1.remove(&number);
    }
}

impl Router {
    pub(crate) fn open_watch(&self, watch: Watch) -> u64 {
        let told = self.now();
        // From here on nothing is written at or below that time. A range that does not say so may
        // have been written to: all of it is new then.
        let settled = watch.spans.iter().all(|span| self.is_unwritten(span, told, told).is_some());
        let told = if settled { told } else { CommitTs::ZERO };
        let mut open = self.watches.open.lock();
        open.0 += 1;
        let number = open.0;
        open.1.insert(number, Open { spans: watch.spans, told });
        number
    }

    pub(crate) fn look_at_watch(&self, number: u64, upto: CommitTs) -> Watched {
        let (spans, told) = match self.watches.open.lock().1.get(&number) {
            Some(open) => (open.spans.clone(), open.told),
            None => return Watched::default(),
        };
        let mut out = Watched::default();
        let mut settled = true;
        for span in spans {
            let unwritten = self.is_unwritten(&span, told, upto);
            settled &= unwritten.is_some();
            if unwritten != Some(true) {
                // It may have been a deleted span as well.
                out.touched.push(span);
                out.lost = true;
            }
        }
        out.touched.sort_by(|a, b| a.start.cmp(&b.start));
        if settled && let Some(open) = self.watches.open.lock().1.get_mut(&number) {
            open.told = upto;
        }
        out
    }

    /// Whether nothing in a span is newer than `since`, and nothing up to `through` will come.
    /// `None`: nobody says so.
    fn is_unwritten(&self, span: &KeySpan, since: CommitTs, through: CommitTs) -> Option<bool> {
        let pieces = self.pieces(span).ok()?;
        let mut unwritten = true;
        for (_, piece) in pieces {
            let reads = Reads { points: Vec::new(), spans: vec![piece] };
            match self.validate_reads(&Validate { floor: since, through, reads }) {
                Ok(()) => {}
                Err(braid_kv::KvError::Retry { .. }) => unwritten = false,
                Err(_) => return None,
            }
        }
        Some(unwritten)
    }
}
