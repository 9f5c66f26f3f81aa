//! Keeping a span of the tree free of compactions for a while.

use std::sync::Arc;

use super::job::JobOutput;
use super::picker::spec_for_span;
use super::unit::Unit;
use crate::error::Result;
use crate::inspect::JobOutcome;
use crate::key::KeySpan;
use crate::store::Store;

/// While it is held, no compaction overlaps the span. Flushes go on.
pub(crate) struct Reservation {
    store: Arc<Store>,
    id: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.store.background.unreserve(self.id);
    }
}

impl Store {
    /// Reserves a span: waits for other reservations there and for running compactions, and lets
    /// no new one begin. Blocks.
    pub(crate) fn reserve(self: &Arc<Store>, span: &KeySpan) -> Result<Reservation> {
        let id = loop {
            if let Some(id) = self.background.try_reserve(span) {
                break id;
            }
            self.await_progress()?;
        };
        let reservation = Reservation { store: self.clone(), id };
        while self.background.is_touched(span) {
            self.await_progress()?;
        }
        Ok(reservation)
    }

    /// Compacts everything in a span to the bottom level.
    pub(crate) fn compact_to_bottom(self: &Arc<Store>, span: &KeySpan) -> Result<()> {
        self.flush_all()?;
        let mut span = span.clone();
        loop {
            let reservation = self.reserve(&span)?;
            let version = self.state.load().version.clone();
            let Some(spec) = spec_for_span(&version, &span) else { return Ok(()) };
            let hull = spec.hull();
            if span.covers(&hull) {
                self.background.enter();
                let unit = Unit::whole(spec);
                let done = self.run_compaction(&unit).and_then(|(edit, output)| {
                    let fits = self.install(&edit, |_| {})?;
                    if fits {
                        self.note_compaction(&unit.spec, &output);
                    } else {
                        self.discard(&output);
                    }
                    Ok(fits)
                });
                self.background.leave();
                drop(reservation);
                self.schedule();
                if done? {
                    return Ok(());
                }
                continue;
            }
            // Ssts reach out of the span: that much more must stand still.
            super::widen(&mut span, &hull);
        }
    }

    pub(crate) fn note_compaction(&self, spec: &super::spec::Spec, output: &JobOutput) {
        self.counters.compaction.compacted(spec, output);
        self.events.ended(output.ticket, JobOutcome::Installed, output);
    }
}
