//! Commits: into one range, or into several.
//!
//! ```text
//!   one range     Commit ──────────────────────────────────────► at C
//!   reads or      Validate through H  (elsewhere)
//!   locks also    Commit not after H  (where it writes) ───────► at C <= H
//!   elsewhere       too late: what was read elsewhere is prepared, too
//!   several       Prepare ──► bounds  (all but the anchor)
//!                 Commit not before the bounds  (anchor) ──────► at C, answered
//!                 Resolve at C  (the others), Settle  (anchor)   later
//! ```
//!
//! The anchor is the range of the first key that is written. Until it is asked to commit, nothing
//! can have happened: whatever fails before comes to nothing, and is said to have failed. From then
//! on the anchor alone knows.
//!
//! A commit that relies on a lease on locks must not happen after that, wherever it writes.
//!
//! A range may turn out to be several at any moment. Then everything is cut anew, and asked for
//! again under the same name: what was prepared is found prepared, on both sides of the new border.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use braid_env::clock::Hlc;
use braid_kv::{
    Commit, Committed, Conflict, KvError, KvResult, LeaseLimit, Reads, Tally, Target, TxnId,
    Validate,
};
use braid_lsm::{CommitTs, KeySpan};
use braid_range::{
    Anchor, Answer, Ask, CommitAsk, Decision, HeldLocks, NodeId, PrepareAsk, RangeId,
    TxnId as CommitName, Unfinished, Write,
};
use bytes::Bytes;

use crate::patience::Patience;
use crate::router::{Router, Sent, unexpected};
use crate::routes::Route;

/// A commit may come so much later than what it has read elsewhere was validated. At most half of
/// the bound of clocks: nobody says anything about a time that its clock does not know.
const VALIDATED_AHEAD_MICROS: u64 = 100_000;
/// So often a commit is cut anew or begun anew.
const TRIES: usize = 30;
/// A commit that is on its way when its statement is told to stop is waited for for so long.
const COMMIT_GRACE: Duration = Duration::from_secs(1);
/// Before a commit is begun anew whom another one was in the way.
const YIELD_PAUSE: Duration = Duration::from_millis(5);

/// A transaction of which not all ranges are known to know what has become of it.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    txn: CommitName,
    decision: Decision,
    anchor: Anchor,
}

/// What a transaction has to do with one range.
struct Part {
    route: Route,
    writes: Vec<Write>,
    reads: Reads,
    locks: Option<HeldLocks>,
}

impl Part {
    /// From the first to the last key.
    fn hull(&self) -> KeySpan {
        let points = self.reads.points.iter().map(|read| KeySpan::point(&read.key));
        let reads = points.chain(self.reads.spans.iter().cloned());
        let all = reads.chain(self.writes.iter().map(Write::span));
        let all = all.chain(self.locks.iter().map(|locks| locks.span.clone()));
        all.reduce(joined).expect("a part has something")
    }
}

/// One try to commit, under one name.
struct Attempt {
    name: CommitName,
    anchor: Bytes,
    /// Where it may be prepared.
    prepared: BTreeMap<Bytes, KeySpan>,
    /// What is only read or locked is prepared as well: to validate it takes too long.
    thorough: bool,
    /// The anchor was asked to commit. Copies of the request may arrive at any time: from now on
    /// the anchor decides.
    asked: bool,
}

impl Attempt {
    fn new(name: CommitName, anchor: Bytes, thorough: bool) -> Attempt {
        Attempt { name, anchor, prepared: BTreeMap::new(), thorough, asked: false }
    }

    /// It has happened.
    fn committed(&self, at: CommitTs) -> Committed {
        Committed { at, participants: 1 + self.prepared.len() as u64 }
    }

    fn prepares(&mut self, hull: KeySpan) {
        let known = self.prepared.entry(hull.start.clone()).or_insert_with(|| hull.clone());
        *known = joined(known.clone(), hull);
    }
}

/// What came of a try.
enum Came {
    Committed(CommitTs, NodeId),
    /// Ranges have moved, or it was too late: once more.
    Again,
    /// It is over under this name, and nothing has happened.
    Anew,
}

fn joined(one: KeySpan, other: KeySpan) -> KeySpan {
    KeySpan::new(one.start.min(other.start), one.end.max(other.end))
}

impl Router {
    pub(crate) fn commit_writes(&self, request: &Commit) -> KvResult<Committed> {
        let writes = self.writes_of(&request.writes)?;
        let Some(first) = writes.first() else {
            return Err(KvError::Unavailable("a commit without a write".into()));
        };
        let anchor = first.span().start;
        let reads = request.reads.clone().unwrap_or_default();
        let name = CommitName { began: self.now(), number: request.txn.0 };
        let mut attempt = Attempt::new(name, anchor, false);
        let mut why = KvError::Retry { conflict: Conflict::Abandoned };
        for _ in 0..TRIES {
            match self.try_commit(request, (&writes, &reads), &mut attempt) {
                Ok(Came::Committed(at, by)) => {
                    self.is_decided(&attempt, Decision::Committed { at, by });
                    return Ok(attempt.committed(at));
                }
                Ok(Came::Again) => {}
                Ok(Came::Anew) => {
                    if let Decision::Committed { at, .. } = self.give_up(&attempt)? {
                        return Ok(attempt.committed(at));
                    }
                    self.transport.pause(YIELD_PAUSE);
                    let name = CommitName { began: self.now(), number: self.new_txn().0 };
                    attempt = Attempt::new(name, attempt.anchor, attempt.thorough);
                }
                // The anchor knows; it is asked by whoever meets what is prepared.
                Err(error @ KvError::OutcomeUnknown(_)) => return Err(error),
                Err(error) => {
                    why = error;
                    break;
                }
            }
        }
        match self.give_up(&attempt)? {
            Decision::Committed { at, .. } => Ok(attempt.committed(at)),
            Decision::Aborted => Err(why),
        }
    }

    fn send_commit(&self, route: &Route, ask: &CommitAsk) -> KvResult<Sent> {
        let stop = Tally::stop_flag();
        self.send_within(route, &|_| Ask::Commit(ask.clone()), self.commit_patience(&stop))
    }

    /// For what decides whether a transaction has happened: to stop means not to know.
    fn commit_patience<'a>(&self, stop: &'a Option<Arc<AtomicBool>>) -> Patience<'a> {
        Patience { grace: COMMIT_GRACE, ..self.patience(stop.as_deref()) }
    }

    /// Ends a try that cannot go on. It may have happened nevertheless.
    fn give_up(&self, attempt: &Attempt) -> KvResult<Decision> {
        if attempt.prepared.is_empty() {
            return Ok(Decision::Aborted);
        }
        let stop = Tally::stop_flag();
        let decision = match attempt.asked {
            false => Decision::Aborted,
            true => match self.decide(attempt.name, &attempt.anchor, self.commit_patience(&stop)) {
                Err(KvError::Unavailable(why)) => return Err(KvError::OutcomeUnknown(why)),
                decision => decision?,
            },
        };
        self.is_decided(attempt, decision);
        Ok(decision)
    }

    fn try_commit(
        &self,
        request: &Commit,
        (writes, reads): (&[Write], &Reads),
        attempt: &mut Attempt,
    ) -> KvResult<Came> {
        let mut parts = self.parts(request, writes, reads)?;
        let has_anchor = |part: &Part| part.writes.iter().any(|w| w.span().start == attempt.anchor);
        let at = parts.iter().position(has_anchor).expect("the anchor is written");
        let own = parts.swap_remove(at);
        let (writers, others): (Vec<Part>, Vec<Part>) =
            parts.into_iter().partition(|part| attempt.thorough || !part.writes.is_empty());
        // First of all: nothing is prepared while this waits.
        let mut not_after = None;
        if !others.is_empty() {
            let through = self.validated_through();
            if !self.validate_parts(&others, (request.read_ts, through))?.is_empty() {
                return Ok(Came::Again);
            }
            not_after = Some(through);
        }
        let not_before = match self.prepare_parts(&writers, request, attempt)? {
            Ok(bound) => bound,
            Err(came) => return Ok(came),
        };
        // As late as can be: it may have been got for longer meanwhile.
        let limit = request.not_after.as_ref().map(LeaseLimit::now);
        let not_after = [not_after, limit].into_iter().flatten().min();
        let participants: Vec<KeySpan> = attempt.prepared.values().cloned().collect();
        let anchor = Anchor { key: attempt.anchor.clone(), participants };
        let anchor = Some(anchor).filter(|anchor| !anchor.participants.is_empty());
        let ask = CommitAsk {
            txn: attempt.name,
            read_at: request.read_ts,
            reads: own.reads.clone(),
            locks: own.locks.clone(),
            not_after,
            not_before,
            writes: own.writes.clone(),
            anchor,
        };
        attempt.asked = true;
        match self.send_commit(&own.route, &ask) {
            // It may have been proposed by somebody who did not come to answer.
            Err(KvError::Unavailable(reason)) => Err(KvError::OutcomeUnknown(reason)),
            Err(error) => Err(error),
            Ok(Sent::Moved) => Ok(Came::Again),
            Ok(Sent::Answer(Answer::Committed { at, by })) => Ok(Came::Committed(at, by)),
            Ok(Sent::Answer(Answer::TooLate)) if not_after == limit => {
                // The lease is over under which it has locks, unless it has been got for longer.
                match request.not_after.as_ref().map(LeaseLimit::now) > limit {
                    true => Ok(Came::Again),
                    false => Err(KvError::Retry { conflict: Conflict::LocksLost }),
                }
            }
            Ok(Sent::Answer(Answer::TooLate)) => {
                attempt.thorough = true;
                Ok(Came::Again)
            }
            Ok(Sent::Answer(Answer::Yield | Answer::Aborted)) => Ok(Came::Anew),
            Ok(Sent::Answer(other)) => Err(unexpected(other)),
        }
    }

    /// Prepares parts; returns the highest of their bounds, or what has come of the try.
    fn prepare_parts(
        &self,
        parts: &[Part],
        request: &Commit,
        attempt: &mut Attempt,
    ) -> KvResult<Result<CommitTs, Came>> {
        // Before it is sent: the answer may be lost.
        parts.iter().for_each(|part| attempt.prepares(part.hull()));
        let asks = parts.iter().map(|part| {
            let ask = PrepareAsk {
                txn: attempt.name,
                owner: request.txn,
                locks: part.locks.clone(),
                anchor: attempt.anchor.clone(),
                read_at: request.read_ts,
                reads: part.reads.clone(),
                writes: part.writes.clone(),
            };
            (&part.route, Ask::Prepare(ask))
        });
        let mut not_before = CommitTs::ZERO;
        for sent in self.send_to_all(asks.collect()) {
            match sent? {
                Sent::Moved => return Ok(Err(Came::Again)),
                Sent::Answer(Answer::Prepared { bound }) => not_before = not_before.max(bound),
                // It was not asked to commit, so it has not happened.
                Sent::Answer(Answer::Yield | Answer::Aborted | Answer::OutcomeUnknown) => {
                    return Ok(Err(Came::Anew));
                }
                Sent::Answer(other) => return Err(unexpected(other)),
            }
        }
        Ok(Ok(not_before))
    }

    /// Whether nothing of this has changed since its floor.
    pub(crate) fn validate_reads(&self, request: &Validate) -> KvResult<()> {
        let times = (request.floor, request.through);
        let mut parts = Parts::new(self);
        self.add_reads(&request.reads, &mut parts)?;
        while !parts.parts.is_empty() {
            let mut left = Parts::new(self);
            for part in self.validate_parts(&parts.parts, times)? {
                self.add_reads(&part.reads, &mut left)?;
            }
            parts = left;
        }
        Ok(())
    }

    /// Validates parts; returns those whose ranges have other keys, which are not validated.
    fn validate_parts<'a>(
        &self,
        parts: &'a [Part],
        (floor, through): (CommitTs, CommitTs),
    ) -> KvResult<Vec<&'a Part>> {
        let ask = |part: &Part| {
            let (locks, reads) = (part.locks.clone(), part.reads.clone());
            Ask::Validate { locks, floor, through, reads }
        };
        let asks = parts.iter().map(|part| (&part.route, ask(part))).collect();
        let mut moved = Vec::new();
        for (part, sent) in parts.iter().zip(self.send_to_all(asks)) {
            match sent? {
                Sent::Moved => moved.push(part),
                Sent::Answer(Answer::Fine) => {}
                Sent::Answer(other) => return Err(unexpected(other)),
            }
        }
        Ok(moved)
    }

    /// Up to when others promise that nothing changes.
    fn validated_through(&self) -> CommitTs {
        // By the wall: a clock that others have lifted is not lifted on and on.
        let ahead = VALIDATED_AHEAD_MICROS.min(self.options.max_clock_offset_micros / 2);
        let ahead = Hlc::from_micros(self.options.wall.now_micros() + ahead);
        self.now().max(CommitTs(ahead))
    }

    /// What a transaction has to do with which ranges, as far as these are known.
    fn parts(&self, request: &Commit, writes: &[Write], reads: &Reads) -> KvResult<Vec<Part>> {
        let mut parts = Parts::new(self);
        for write in writes {
            match write {
                Write::DeleteSpan(span) => {
                    for (route, piece) in self.pieces(span)? {
                        parts.of(route).writes.push(Write::DeleteSpan(piece));
                    }
                }
                Write::Put(key, _) | Write::Delete(key) => {
                    parts.at(key)?.writes.push(write.clone());
                }
            }
        }
        self.add_reads(reads, &mut parts)?;
        self.add_locks(request.txn, &mut parts)?;
        Ok(parts.parts)
    }

    /// What was read, where it was.
    fn add_reads(&self, reads: &Reads, parts: &mut Parts<'_>) -> KvResult<()> {
        for read in &reads.points {
            parts.at(&read.key)?.reads.points.push(read.clone());
        }
        for span in &reads.spans {
            for (route, piece) in self.pieces(span)? {
                parts.of(route).reads.spans.push(piece);
            }
        }
        Ok(())
    }

    /// The locks of a transaction, where it has them.
    fn add_locks(&self, owner: TxnId, parts: &mut Parts<'_>) -> KvResult<()> {
        let (locked, sessions) = self.txns.lock().locks(owner);
        for target in &locked {
            let span = match target {
                Target::Key(key) => KeySpan::point(key),
                Target::Span(span) => span.clone(),
            };
            for (route, piece) in self.pieces(&span)? {
                let Some(session) = sessions.get(&route.range).copied() else { continue };
                let part = parts.of(route);
                let span = match part.locks.take() {
                    Some(locks) => joined(locks.span, piece),
                    None => piece,
                };
                part.locks = Some(HeldLocks { owner, session, span });
            }
        }
        Ok(())
    }

    /// Whether a transaction has all the locks that it was given. It had them when it got the last
    /// one: each is there before that, and after it.
    pub(crate) fn has_all_locks(&self, txn: TxnId) -> KvResult<()> {
        for _ in 0..TRIES {
            let mut parts = Parts::new(self);
            self.add_locks(txn, &mut parts)?;
            // Nothing was read, so nothing is promised.
            if self.validate_parts(&parts.parts, (self.now(), CommitTs::ZERO))?.is_empty() {
                return Ok(());
            }
        }
        Err(KvError::Unavailable("its ranges are split all the time".into()))
    }

    /// The fate of a transaction is known: whoever is prepared for it is told, now if that can be
    /// done without waiting, and until all have said that they know.
    fn is_decided(&self, attempt: &Attempt, decision: Decision) {
        if attempt.prepared.is_empty() {
            return;
        }
        let participants: Vec<KeySpan> = attempt.prepared.values().cloned().collect();
        for span in &participants {
            for (route, piece) in self.pieces(span).unwrap_or_default() {
                let (txn, span) = (attempt.name, Some(piece));
                self.post(&route, Ask::Resolve { txn, decision, span });
            }
        }
        let anchor = Anchor { key: attempt.anchor.clone(), participants };
        self.decided.lock().push(Decided { txn: attempt.name, decision, anchor });
    }

    /// Tells those of what was decided who may not have heard of it.
    pub fn finish_decided(&self) {
        let decided = self.decided.lock().clone();
        for one in decided {
            if self.finish(&one).is_ok() {
                self.decided.lock().retain(|other| other.txn != one.txn);
            }
        }
    }

    /// Of how many transactions somebody may not have heard what was decided.
    pub fn unfinished(&self) -> usize {
        self.decided.lock().len()
    }

    fn finish(&self, one: &Decided) -> KvResult<()> {
        let Decided { txn, decision, anchor } = one;
        for span in &anchor.participants {
            let mut left = vec![span.clone()];
            while let Some(span) = left.pop() {
                for (route, piece) in self.pieces(&span)? {
                    let (decision, there) = (*decision, Some(piece.clone()));
                    let ask = Ask::Resolve { txn: *txn, decision, span: there };
                    match self.send(&route, &|_| ask.clone())? {
                        Sent::Moved => left.push(piece),
                        Sent::Answer(Answer::Fine) => {}
                        Sent::Answer(other) => return Err(unexpected(other)),
                    }
                }
            }
        }
        if matches!(decision, Decision::Aborted) {
            return Ok(());
        }
        let settle = |key| Ask::Settle { txn: *txn, anchor: key };
        self.ask_anchor(&anchor.key, &settle, self.patience(None)).map(drop)
    }

    fn ask_anchor(
        &self,
        key: &Bytes,
        ask: &dyn Fn(Bytes) -> Ask,
        patience: Patience<'_>,
    ) -> KvResult<Answer> {
        loop {
            let route = self.route(key)?;
            let sent = self.send_within(&route, &|_| ask(key.clone()), patience)?;
            if let Sent::Answer(answer) = sent {
                return Ok(answer);
            }
        }
    }

    /// What has become of a transaction. If nothing has, nothing will.
    fn decide(
        &self,
        txn: CommitName,
        anchor: &Bytes,
        patience: Patience<'_>,
    ) -> KvResult<Decision> {
        match self.ask_anchor(anchor, &|anchor| Ask::Decide { txn, anchor }, patience)? {
            Answer::Committed { at, by } => Ok(Decision::Committed { at, by }),
            Answer::Aborted => Ok(Decision::Aborted),
            other => Err(unexpected(other)),
        }
    }

    /// Gets a transaction out of the way that was left there.
    pub(crate) fn unblock(
        &self,
        route: &Route,
        txn: CommitName,
        anchor: &Bytes,
        patience: Patience<'_>,
    ) -> KvResult<()> {
        let decision = self.decide(txn, anchor, patience)?;
        let ask = Ask::Resolve { txn, decision, span: None };
        match self.send_within(route, &|_| ask.clone(), patience)? {
            Sent::Moved | Sent::Answer(Answer::Fine) => Ok(()),
            Sent::Answer(other) => Err(unexpected(other)),
        }
    }

    /// Brings transactions over several ranges to their end whose coordinators do not, in the
    /// ranges that are led at home and have some; without a home, in all that are known. Returns
    /// how many. No range is asked that has nothing to say: it would not sleep any more.
    pub fn recover(&self) -> KvResult<usize> {
        let mut count = 0;
        let (home, routes) = (self.options.home, || self.routes().into_iter());
        let concerned: Vec<Route> = match home.map(|home| self.unfinished_on(home)).transpose()? {
            None => routes().collect(),
            Some(unfinished) if unfinished.is_empty() => return Ok(0),
            Some(unfinished) => {
                routes().filter(|route| unfinished.contains(&route.range)).collect()
            }
        };
        for route in concerned {
            let Sent::Answer(Answer::Unfinished(Unfinished { prepared, decided })) =
                self.send(&route, &|_| Ask::Unfinished)?
            else {
                continue;
            };
            count += prepared.len() + decided.len();
            for (txn, anchor) in prepared {
                self.unblock(&route, txn, &anchor, self.patience(None))?;
            }
            for (txn, decision, anchor) in decided {
                self.finish(&Decided { txn, decision, anchor })?;
            }
        }
        Ok(count)
    }

    /// The ranges that a node leads and that have transactions which are not at their end.
    fn unfinished_on(&self, node: NodeId) -> KvResult<BTreeSet<RangeId>> {
        match self.ask_node(node, Ask::UnfinishedRanges) {
            Some(Answer::Ranges(ranges)) => Ok(ranges.into_iter().map(|range| range.id).collect()),
            Some(other) => Err(unexpected(other)),
            None => Err(KvError::Unavailable("this node's replicas do not answer".into())),
        }
    }
}

/// Parts that grow.
struct Parts<'a> {
    router: &'a Router,
    parts: Vec<Part>,
    by_range: BTreeMap<RangeId, usize>,
    /// Where what is known to be a range's begins: up to where, and which part that is.
    by_start: BTreeMap<Bytes, (Bytes, usize)>,
}

impl<'a> Parts<'a> {
    fn new(router: &'a Router) -> Parts<'a> {
        Parts { router, parts: Vec::new(), by_range: BTreeMap::new(), by_start: BTreeMap::new() }
    }

    fn of(&mut self, route: Route) -> &mut Part {
        let KeySpan { start, end } = route.span.clone();
        let at = *self.by_range.entry(route.range).or_insert_with(|| {
            let (writes, reads) = (Vec::new(), Reads::default());
            self.parts.push(Part { route, writes, reads, locks: None });
            self.parts.len() - 1
        });
        self.by_start.insert(start, (end, at));
        &mut self.parts[at]
    }

    /// The part of a key.
    fn at(&mut self, key: &[u8]) -> KvResult<&mut Part> {
        let known = self.by_start.range::<[u8], _>((Unbounded, Included(key))).next_back();
        match known.filter(|(_, (end, _))| key < end.as_ref()) {
            Some((_, (_, at))) => Ok(&mut self.parts[*at]),
            None => {
                let route = self.router.route(key)?;
                Ok(self.of(route))
            }
        }
    }
}
