//! Answers that were asked for ahead, many at once, before the statement comes to need them one by
//! one.
//!
//! ```text
//!   a statement over rows r1 r2 r3 ..       get_ahead k1 k2 k3 ..      one request
//!     for each row, in order: get k1 ..                                answered from here
//! ```
//!
//! What lies here is what the far side said, without the transaction's own writes: those are laid
//! over it when it is used, as over any answer. So asking ahead changes how often is asked, and
//! nothing else:
//!
//! * An answer as of the read timestamp is right for as long as the timestamp is.
//! * An answer about the newest state is right for as long as the locks that protect it, which the
//!   transaction held when it asked. Any lock that is granted later makes all of them useless: its
//!   holder must see what happened before.

use std::sync::Arc;

use braid_env::memory::{Held, Pool};
use braid_lsm::{CommitTs, KeySpan};
use bytes::Bytes;
use foldhash::HashMap;

use crate::locks::LockMode;
use crate::spans::{ReadAt, SpanRows};

/// Bytes that may lie here. When half of it is new, what is older is forgotten: a statement uses
/// what it has asked for last.
const BYTES_MAX: usize = 8 << 20;
/// What an answer takes besides its keys and values.
const ANSWER_BYTES: usize = 120;

/// What of a scan decides its rows, besides the span.
pub(crate) type Classes = u32;

/// See the [module's page](self). Most transactions never ask ahead: then it is nothing.
#[derive(Default)]
pub(crate) struct Ahead {
    told: Option<Box<Told>>,
}

/// What was told.
pub(crate) struct Told {
    then: Answers,
    latest: Answers,
    /// What `then` holds is as of this timestamp.
    read_ts: CommitTs,
    /// Keys that nobody held in the way of this mode, and nothing newer was there.
    awaited: HashMap<Bytes, LockMode>,
    memory: Held,
}

/// Answers about one state.
#[derive(Default)]
struct Answers {
    new: Lot,
    old: Lot,
}

/// Answers of about the same age.
#[derive(Default)]
struct Lot {
    points: HashMap<Bytes, Option<Bytes>>,
    spans: HashMap<SpanKey, SpanAnswer>,
    bytes: usize,
}

type SpanKey = (Bytes, Bytes, Classes);

/// The first rows of a span.
struct SpanAnswer {
    rows: SpanRows,
    at: CommitTs,
    /// So many scans were foreseen.
    uses: usize,
}

impl Answers {
    fn has_no_spans(&self) -> bool {
        self.new.spans.is_empty() && self.old.spans.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.has_no_spans() && self.new.points.is_empty() && self.old.points.is_empty()
    }

    fn span(&mut self, key: &SpanKey) -> Option<&mut SpanAnswer> {
        self.new.spans.get_mut(key).or_else(|| self.old.spans.get_mut(key))
    }

    fn forget_old(&mut self) {
        self.old = std::mem::take(&mut self.new);
    }

    fn bytes(&self) -> usize {
        self.new.bytes + self.old.bytes
    }
}

impl Ahead {
    /// To add answers to.
    pub(crate) fn told(&mut self, pool: &Arc<Pool>) -> &mut Told {
        self.told.get_or_insert_with(|| {
            let memory = pool.account(usize::MAX).hold("answers asked for ahead");
            let (then, latest) = (Answers::default(), Answers::default());
            let (read_ts, awaited) = (CommitTs::ZERO, HashMap::default());
            Box::new(Told { then, latest, read_ts, awaited, memory })
        })
    }

    /// What was said about a key: `None` if nothing.
    pub(crate) fn point(&self, key: &[u8], at: ReadAt) -> Option<&Option<Bytes>> {
        let answers = self.told.as_ref()?.of(at)?;
        answers.new.points.get(key).or_else(|| answers.old.points.get(key))
    }

    /// The first rows of a span, if they were asked for. They can be used as often as was foreseen;
    /// if there is more in the span than these, once: the rest is for one scan.
    pub(crate) fn take_span(
        &mut self,
        span: &KeySpan,
        classes: Classes,
        at: ReadAt,
    ) -> Option<(SpanRows, CommitTs)> {
        let told = self.told.as_mut()?;
        if told.of(at)?.has_no_spans() {
            return None;
        }
        let key = (span.start.clone(), span.end.clone(), classes);
        let answers = told.of_mut(at);
        let answer = answers.span(&key)?;
        answer.uses = answer.uses.saturating_sub(1);
        if answer.uses > 0 && answer.rows.rest.is_none() {
            return Some((answer.rows.clone(), answer.at));
        }
        let answer = answers.new.spans.remove(&key).or_else(|| answers.old.spans.remove(&key))?;
        Some((answer.rows, answer.at))
    }

    /// Whether the first rows of a span are there. They will be used so many times more.
    pub(crate) fn uses_span(
        &mut self,
        span: &KeySpan,
        classes: Classes,
        at: ReadAt,
        uses: usize,
    ) -> bool {
        let Some(told) = self.told.as_mut() else { return false };
        if told.of(at).is_none_or(Answers::has_no_spans) {
            return false;
        }
        let key = (span.start.clone(), span.end.clone(), classes);
        let Some(answer) = told.of_mut(at).span(&key) else { return false };
        answer.uses += uses;
        true
    }

    /// Whether a key was found free since the answers were last forgotten.
    pub(crate) fn was_awaited(&self, key: &[u8], mode: LockMode) -> bool {
        let found = self.told.as_ref().and_then(|told| told.awaited.get(key));
        found.is_some_and(|found| *found >= mode)
    }

    /// A lock was granted: what was newest before need not be so now.
    pub(crate) fn lock_granted(&mut self) {
        if let Some(told) = &mut self.told
            && !told.latest.is_empty()
        {
            told.latest = Answers::default();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.told = None;
    }
}

impl Told {
    fn of(&self, at: ReadAt) -> Option<&Answers> {
        match at {
            ReadAt::Latest => Some(&self.latest),
            ReadAt::Time(ts) => Some(&self.then).filter(|_| ts == self.read_ts),
        }
    }

    fn of_mut(&mut self, at: ReadAt) -> &mut Answers {
        match at {
            ReadAt::Latest => &mut self.latest,
            ReadAt::Time(ts) => {
                if ts != self.read_ts {
                    self.then = Answers::default();
                    self.read_ts = ts;
                }
                &mut self.then
            }
        }
    }

    /// Values of keys, of one answer.
    pub(crate) fn add_points(
        &mut self,
        told: impl ExactSizeIterator<Item = (Bytes, Option<Bytes>)>,
        at: ReadAt,
    ) {
        let lot = &mut self.of_mut(at).new;
        lot.points.reserve(told.len());
        for (key, value) in told {
            lot.bytes += key.len() + value.as_ref().map_or(0, Bytes::len) + ANSWER_BYTES;
            lot.points.insert(key, value);
        }
        self.count(at);
    }

    pub(crate) fn add_span(
        &mut self,
        span: KeySpan,
        classes: Classes,
        (rows, seen_at): (SpanRows, CommitTs),
        at: ReadAt,
        uses: usize,
    ) {
        let of_rows = rows.rows.memory() + ANSWER_BYTES;
        let lot = &mut self.of_mut(at).new;
        lot.bytes += span.start.len() + span.end.len() + ANSWER_BYTES + of_rows;
        let answer = SpanAnswer { rows, at: seen_at, uses };
        lot.spans.insert((span.start, span.end, classes), answer);
        self.count(at);
    }

    /// A key was found free for a moment.
    pub(crate) fn awaited(&mut self, key: Bytes, mode: LockMode) {
        self.awaited.insert(key, mode);
    }

    /// There is no need for answers: what has no room is asked for again.
    fn count(&mut self, at: ReadAt) {
        let answers = self.of_mut(at);
        if answers.new.bytes > BYTES_MAX / 2 {
            answers.forget_old();
        }
        if self.memory.resize(self.then.bytes() + self.latest.bytes()).is_err() {
            self.then = Answers::default();
            self.latest = Answers::default();
            self.memory.release();
        }
    }
}
