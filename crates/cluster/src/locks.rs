//! Locks, range by range in their order.
//!
//! A span over several ranges is locked in pieces; it is held when all of them are.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use braid_kv::{Grant, KvError, KvResult, LockItem, LockMany, LockedMany, Target, TxnId};
use braid_range::{Answer, Ask, LockAsk, Locked, RangeId};

use crate::patience::Patience;
use crate::router::{Router, Sent, unexpected};
use crate::routes::Route;

/// Whoever waits for a lock with a limit of time hears within that and so long that nobody serves
/// the range.
const SERVED_IN: Duration = Duration::from_millis(500);
/// So long it is tried to take a request back.
const GIVE_UP_PATIENCE: Duration = Duration::from_millis(100);

/// A part of an item that lies in one range.
pub(crate) struct Piece {
    /// Of the request.
    item: usize,
    pub(crate) target: Target,
}

impl Router {
    pub(crate) fn lock_all(&self, request: &LockMany, stop: &AtomicBool) -> LockedMany {
        let mut out = LockedMany::default();
        let mut grants: Vec<(usize, Grant)> = Vec::new();
        let result = self.lock_pieces(request, stop, &mut grants, &mut out.waited_nanos);
        out.error = result.err();
        let mut pieces = grants.into_iter().peekable();
        while let Some((item, mut grant)) = pieces.next() {
            while let Some((_, other)) = pieces.next_if(|(next, _)| *next == item) {
                grant = worse(grant, other);
            }
            let last = pieces.peek().is_none();
            let whole = !last || out.error.is_none() || grant == Grant::Newer;
            // Of an item that was not granted in all of its ranges, the caller holds nothing that
            // it knows of; what it has of it goes when it ends.
            if whole || self.is_one_piece(&request.items[item].target) {
                out.grants.push(grant);
            }
        }
        out
    }

    fn is_one_piece(&self, target: &Target) -> bool {
        self.pieces_of(0, target).is_ok_and(|pieces| pieces.len() == 1)
    }

    pub(crate) fn pieces_of(&self, item: usize, target: &Target) -> KvResult<Vec<(Route, Piece)>> {
        match target {
            Target::Key(key) => {
                Ok(vec![(self.route(key)?, Piece { item, target: target.clone() })])
            }
            Target::Span(span) => {
                let piece = |(route, span)| (route, Piece { item, target: Target::Span(span) });
                Ok(self.pieces(span)?.into_iter().map(piece).collect())
            }
        }
    }

    fn lock_pieces(
        &self,
        request: &LockMany,
        stop: &AtomicBool,
        grants: &mut Vec<(usize, Grant)>,
        waited_nanos: &mut u64,
    ) -> KvResult<()> {
        let whole = |(n, item): (usize, &LockItem)| Piece { item: n, target: item.target.clone() };
        let mut left: Vec<Piece> = request.items.iter().enumerate().map(whole).collect();
        left.reverse();
        while !left.is_empty() {
            let mut group: Vec<Piece> = Vec::new();
            let mut here: Option<Route> = None;
            while let Some(piece) = left.pop() {
                let mut pieces = self.pieces_of(piece.item, &piece.target)?.into_iter();
                let Some((route, first)) = pieces.next() else { continue };
                if here.as_ref().is_some_and(|here| here.range != route.range) {
                    left.push(piece);
                    break;
                }
                here = Some(route);
                group.push(first);
                let rest: Vec<Piece> = pieces.map(|(_, piece)| piece).collect();
                let leaves = !rest.is_empty();
                left.extend(rest.into_iter().rev());
                if leaves {
                    break;
                }
            }
            let Some(route) = here else { break };
            match self.lock_in(&route, request, &group, stop)? {
                None => left.extend(group.into_iter().rev()),
                Some(locked) => {
                    *waited_nanos += locked.waited_nanos;
                    let items = group.iter().map(|piece| piece.item);
                    grants.extend(items.zip(locked.grants));
                    if let Some(stop) = locked.stop {
                        return Err(stop.into());
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes locks in one range. `None`: it has other keys.
    fn lock_in(
        &self,
        route: &Route,
        request: &LockMany,
        pieces: &[Piece],
        stop: &AtomicBool,
    ) -> KvResult<Option<Locked>> {
        let item = |piece: &Piece| LockItem {
            target: piece.target.clone(),
            ..request.items[piece.item].clone()
        };
        let items = pieces.iter().map(item).collect();
        let txn = request.txn;
        let (step, session) = {
            let mut txns = self.txns.lock();
            txns.asks_for_locks(txn, route.range);
            (txns.step(txn), txns.session(txn, route.range))
        };
        let ask = LockAsk { request: LockMany { items, ..request.clone() }, step, session };
        // The range counts how long it is waited for somebody else's lock, from when it serves.
        let served_in = request.timeout.map(|most| most.saturating_add(SERVED_IN));
        let patience = self.patience(Some(stop));
        let time = served_in.map_or(patience.time, |most| most.min(patience.time));
        let sent =
            self.send_within(route, &|_| Ask::Lock(ask.clone()), Patience { time, ..patience });
        let sent = match sent {
            Err(KvError::Canceled) => self.give_up_lock(route, txn, step, KvError::Canceled)?,
            Err(KvError::Unavailable(_)) if time < patience.time => {
                self.give_up_lock(route, txn, step, KvError::LockTimeout)?
            }
            sent => sent?,
        };
        if self.txns.lock().is_said_to_wait(txn) {
            self.say_who_waits(txn, route.range, Vec::new());
        }
        match sent {
            Sent::Moved => Ok(None),
            Sent::Answer(Answer::Locked(locked)) => {
                let granted = pieces.iter().zip(&locked.grants);
                let granted = granted.map(|(piece, _)| piece.target.clone());
                let session = (route.range, locked.session);
                self.txns.lock().has_locks(txn, session, granted);
                Ok(Some(locked))
            }
            Sent::Answer(other) => Err(unexpected(other)),
        }
    }

    /// Takes a request for locks back, if somebody hears that soon. If nobody does they may be
    /// granted nevertheless, and go when the transaction ends.
    fn give_up_lock(&self, route: &Route, txn: TxnId, step: u64, why: KvError) -> KvResult<Sent> {
        let patience = Patience::of(GIVE_UP_PATIENCE, None);
        match self.send_within(route, &|_| Ask::GiveUp { txn, step }, patience) {
            Ok(Sent::Answer(Answer::Locked(locked))) => Ok(Sent::Answer(Answer::Locked(locked))),
            _ => Err(why),
        }
    }

    /// Gives locks back. What is not heard of goes when the transaction ends.
    pub(crate) fn release_all(&self, txn: TxnId, targets: &[Target], ended: bool) {
        if ended {
            // The lock goes before anybody is asked.
            let ranges = self.txns.lock().take_sessions(txn);
            return ranges.into_iter().for_each(|range| self.end_in(txn, range));
        }
        let mut by_range: Vec<(RangeId, Vec<Target>)> = Vec::new();
        for target in targets {
            for (route, piece) in self.pieces_of(0, target).unwrap_or_default() {
                match by_range.iter_mut().find(|(range, _)| *range == route.range) {
                    Some((_, targets)) => targets.push(piece.target),
                    None => by_range.push((route.range, vec![piece.target])),
                }
            }
        }
        for (range, targets) in by_range {
            let step = self.txns.lock().step(txn);
            self.tell(range, Ask::Release { txn, step, targets, ended: false });
        }
    }

    /// A transaction has nothing left in a range.
    pub(crate) fn end_in(&self, txn: TxnId, range: RangeId) {
        // No step comes behind it.
        let step = u64::MAX;
        self.tell(range, Ask::Release { txn, step, targets: Vec::new(), ended: true });
    }
}

/// What became of a target of which two parts came to that.
fn worse(one: Grant, other: Grant) -> Grant {
    match (one, other) {
        (Grant::Newer, _) | (_, Grant::Newer) => Grant::Newer,
        (Grant::Skipped, _) | (_, Grant::Skipped) => Grant::Skipped,
        (Grant::Held, Grant::Held) => Grant::Held,
    }
}
