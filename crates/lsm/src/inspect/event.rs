//! What the engine does, as typed events: to a listener, and to a ring of the last 10,000.
//!
//! ```text
//!   JobBegan    job 7, compaction (L0 to base), inputs ...
//!   JobEnded    job 7, outputs ..., bytes, entries dropped by rule, nanoseconds, how it ended
//!   Edited      every change of the version: reason, ssts taken away and added
//! ```
//!
//! A job that ends installed has its `Edited` just before its `JobEnded`. Jobs may end without
//! being installed: a structural edit came in between, or they failed. Listeners are called from
//! the thread that does the work, at times under engine locks: they must be quick and must not
//! call the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_env::clock::Clock;
use parking_lot::Mutex;

use crate::compaction::{CompactionReason, JobOutput};
use crate::versions::{Edit, SstFacts, Version};

/// So many events are kept.
const KEPT: usize = 10_000;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Counts up from 1 at open.
    pub number: u64,
    /// Microseconds since 1970.
    pub time: u64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A flush or compaction began.
    JobBegan {
        /// Names the job in its end.
        job: u64,
        /// What it does.
        what: JobKind,
        /// Level of its outputs.
        output_level: usize,
        /// Ssts that it reads; none for a flush.
        inputs: Vec<EventSst>,
        /// Bytes that it reads, of memtables or ssts.
        bytes: u64,
    },
    /// It ended.
    JobEnded {
        /// Which one.
        job: u64,
        /// How.
        outcome: JobOutcome,
        /// Ssts that it wrote or moved.
        outputs: Vec<EventSst>,
        /// Bytes that it wrote.
        bytes: u64,
        /// Entries that it left out.
        dropped: DropCounts,
        /// How long it took.
        nanos: u64,
    },
    /// The version changed; durable.
    Edited {
        /// Why: "flush", "ingest", "level size" and so on.
        reason: String,
        /// Ssts that are not live any more.
        gone: Vec<EventSst>,
        /// Ssts that are live now.
        added: Vec<EventSst>,
    },
    /// Background work stopped.
    Failed {
        /// Why.
        error: String,
    },
}

/// Kinds of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// Memtables become ssts.
    Flush,
    /// Ssts are merged or moved.
    Compaction(CompactionReason),
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobOutcome {
    /// Its outputs are live.
    Installed,
    /// A structural edit changed its inputs; its outputs were removed.
    Outdated,
    /// With an error.
    Failed(String),
}

/// An sst in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSst {
    /// Its number.
    pub number: u64,
    /// Its level.
    pub level: usize,
    /// Its bytes; of a part of a file, its share.
    pub bytes: u64,
    /// Whether it is a part of a file.
    pub is_virtual: bool,
}

/// Entries that a job left out, by the rule that allowed it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropCounts {
    /// The same entry came from an upper layer.
    pub repeated: u64,
    /// A newer version of the key at or below the gc threshold.
    pub shadowed: u64,
    /// A range tombstone at or below the threshold covers it.
    pub covered: u64,
    /// A delete with nothing below it.
    pub elided: u64,
    /// Range tombstones that were covered or had nothing below them.
    pub tombstones: u64,
}

impl DropCounts {
    /// All point entries together.
    pub fn entries(&self) -> u64 {
        self.repeated + self.shadowed + self.covered + self.elided
    }
}

/// Gets every event; see the module for what it must not do.
pub trait EventListener: Send + Sync {
    /// Called once per event, in order of their numbers except between threads.
    fn event(&self, event: &Event);
}

/// The ring and the listener of a store.
pub(crate) struct Events {
    clock: Arc<dyn Clock>,
    listener: Option<Arc<dyn EventListener>>,
    ring: Mutex<VecDeque<Event>>,
    last: AtomicU64,
    jobs: AtomicU64,
}

impl Events {
    pub(crate) fn new(clock: Arc<dyn Clock>, listener: Option<Arc<dyn EventListener>>) -> Events {
        let (last, jobs) = (AtomicU64::new(0), AtomicU64::new(0));
        Events { clock, listener, ring: Mutex::default(), last, jobs }
    }

    pub(crate) fn emit(&self, kind: EventKind) {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let event = Event { number, time: self.clock.now_micros(), kind };
        if let Some(listener) = &self.listener {
            listener.event(&event);
        }
        let mut ring = self.ring.lock();
        if ring.len() >= KEPT {
            ring.pop_front();
        }
        ring.push_back(event);
    }

    /// The last events, oldest first.
    pub(crate) fn recent(&self) -> Vec<Event> {
        self.ring.lock().iter().cloned().collect()
    }

    /// A job begins; the ticket goes into its output.
    pub(crate) fn began(
        &self,
        what: JobKind,
        output_level: usize,
        inputs: Vec<EventSst>,
        bytes: u64,
    ) -> JobTicket {
        let job = self.jobs.fetch_add(1, Ordering::Relaxed) + 1;
        self.emit(EventKind::JobBegan { job, what, output_level, inputs, bytes });
        JobTicket { job, start: self.clock.monotonic_nanos() }
    }

    pub(crate) fn ended(&self, ticket: JobTicket, outcome: JobOutcome, output: &JobOutput) {
        let nanos = self.clock.monotonic_nanos().saturating_sub(ticket.start);
        self.emit(EventKind::JobEnded {
            job: ticket.job,
            outcome,
            outputs: output.ssts.iter().map(EventSst::of).collect(),
            bytes: output.bytes_out,
            dropped: output.dropped,
            nanos,
        });
    }

    /// An edit was made durable; `before`: the version that it changed.
    pub(crate) fn edited(&self, edit: &Edit, before: &Version) {
        let Some(reason) = &edit.reason else { return };
        let mut gone = Vec::new();
        // Most edits of a load only add.
        if !edit.dropped.is_empty() {
            let dropped = before.ssts().filter(|sst| edit.dropped.contains(&sst.file_no));
            gone.extend(dropped.map(|sst| EventSst::of(sst)));
        }
        self.emit(EventKind::Edited {
            reason: reason.to_string(),
            gone,
            added: edit.added.iter().map(EventSst::of).collect(),
        });
    }
}

/// Which job, and since when.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JobTicket {
    job: u64,
    start: u64,
}

impl EventSst {
    pub(crate) fn of(facts: &SstFacts) -> EventSst {
        let (number, level, bytes) = (facts.file_no, facts.level, facts.size);
        EventSst { number, level, bytes, is_virtual: facts.is_virtual() }
    }
}
