//! Circles of waiting that lead over several ranges.
//!
//! ```text
//!   range a     2 waits for 1          told: 1 waits for 2 elsewhere      a circle of 1 and 2
//!   range b     1 waits for 2  ── Waits ──► coordinator of 1 ── WaitsFor ──► where 1 has locks
//! ```
//!
//! A table of locks finds the circles that it can see. For others each waiting transaction is told
//! now and then who waits for whom from there on, as far as its range knows; its coordinator passes
//! that on to the ranges in which it has locks, since only there somebody waits for it. So what is
//! known grows by one step with each turn, until some range sees the circle.
//!
//! Of a circle the youngest transaction fails, when it was seen twice: what was said elsewhere may
//! be over by now. It is believed for a while only, and is taken back when the wait is over.

use std::collections::BTreeSet;

use braid_consensus::Result;
use braid_kv::TxnId as LockTxn;

use crate::locking::{Locking, WaitsFor};
use crate::replica::{Replica, Tried};
use crate::request::{Answer, LockStop};

/// What was said of waits elsewhere is believed for so long, in microseconds.
const BELIEVED_MICROS: u64 = 5_000_000;

/// Who waits for whom.
type Waits = BTreeSet<(LockTxn, LockTxn)>;

/// All that are reached from one.
fn reached(waits: &Waits, from: LockTxn) -> BTreeSet<LockTxn> {
    let (mut all, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(txn) = todo.pop() {
        let next = waits.range((txn, LockTxn(0))..=(txn, LockTxn(u64::MAX)));
        todo.extend(next.map(|(_, on)| *on).filter(|on| all.insert(*on)));
    }
    all
}

impl Locking {
    /// Who waits for whom, from a transaction on.
    fn waits_from(&self, from: LockTxn) -> Waits {
        let told: Waits = self.elsewhere.values().flat_map(|(waits, _)| waits).copied().collect();
        let (mut all, mut seen, mut todo) = (Waits::new(), BTreeSet::from([from]), vec![from]);
        while let Some(txn) = todo.pop() {
            let elsewhere = told.range((txn, LockTxn(0))..=(txn, LockTxn(u64::MAX)));
            let on = elsewhere.map(|(_, on)| *on).chain(self.table.whom(txn));
            for on in on.collect::<Vec<_>>() {
                all.insert((txn, on));
                if seen.insert(on) {
                    todo.push(on);
                }
            }
        }
        all
    }
}

impl Replica {
    /// Somebody who may have locks here waits in another range.
    pub(crate) fn waits_for(&mut self, txn: LockTxn, waits: &[(LockTxn, LockTxn)]) -> Tried {
        match waits.is_empty() {
            true => drop(self.locking.elsewhere.remove(&txn)),
            false => {
                let now = self.clocks.wall.now_micros();
                self.locking.elsewhere.insert(txn, (waits.to_vec(), now));
            }
        }
        Tried::Answer(Answer::Fine)
    }

    /// A tick: now and then it ends circles, and tells all who wait for locks who waits for whom.
    pub(crate) fn look_for_deadlocks(&mut self) -> Result<()> {
        self.locking.ticks += 1;
        if !self.locking.ticks.is_multiple_of(self.options.deadlock_ticks.max(1)) {
            return Ok(());
        }
        let now = self.clocks.wall.now_micros();
        self.locking.elsewhere.retain(|_, (_, said)| *said + BELIEVED_MICROS > now);
        for mut waiter in std::mem::take(&mut self.locking.waiters) {
            let txn = waiter.ask.request.txn;
            let Some(WaitsFor::Lock(wait)) = waiter.on.as_ref().filter(|on| on.is_for_lock())
            else {
                self.locking.waiters.push(waiter);
                continue;
            };
            let waits = self.locking.waits_from(txn);
            // Those that it reaches and that reach it.
            let is_in_circle = |other: &LockTxn| reached(&waits, *other).contains(&txn);
            let circle: Vec<LockTxn> =
                reached(&waits, txn).into_iter().filter(is_in_circle).collect();
            let held_up = circle.iter().any(|txn| self.locking.table.is_held_up_by(wait, *txn));
            if !circle.is_empty() && !held_up {
                // It waits only behind others who wait.
                self.locking.table.let_pass(wait);
            }
            // What was said elsewhere may be over by now; then it is so at the next look.
            let was_in_circle =
                std::mem::replace(&mut waiter.in_circle, circle.last() == Some(&txn));
            if was_in_circle && waiter.in_circle && self.locking.table.take_back(wait) {
                let names: Vec<String> =
                    circle.iter().map(|txn| format!("transaction {}", txn.0)).collect();
                waiter.on = None;
                waiter.locked.stop = Some(LockStop::Deadlock(names.join(" waits for ")));
                self.answer_locked(waiter);
                continue;
            }
            let answer = Answer::Waits { waits: waits.into_iter().collect() };
            let askers = std::mem::take(&mut waiter.askers);
            self.answers.extend(askers.into_iter().map(|asker| (asker, answer.clone())));
            self.locking.waiters.push(waiter);
        }
        self.advance_locks()
    }
}
