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
//! What was said elsewhere may be over. Ranges that tell each other the same wait would keep it
//! alive for ever, so each report has an *age*: since when the range in which somebody waits has
//! not said so itself. Of two reports about a transaction the younger one counts, and an old one
//! counts no more.
//!
//! Of a circle the youngest transaction fails, when all waits of the circle were seen again after
//! the circle was seen: since a wait that was seen twice was there in between, all of them were
//! there at once. (Clocks of ranges are not compared, so the time that a report was on its way is
//! not counted: a transaction may fail over a circle that broke while reports about it travelled.)

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use braid_consensus::Result;
use braid_kv::TxnId as LockTxn;

use crate::locking::{Locking, WaitsFor};
use crate::replica::{Replica, Tried};
use crate::request::{Answer, LockStop, WaitReport};

/// What was said of waits elsewhere is believed for so long, in microseconds.
const BELIEVED_MICROS: u64 = 5_000_000;

/// What is known of one transaction's wait.
#[derive(Debug, Clone)]
struct Known {
    /// The transaction's step that waits: another step is another wait.
    step: u64,
    /// Nobody: it does not wait.
    whom: Vec<LockTxn>,
    /// When the range in which it waits has said so, by the clock here.
    seen: u64,
}

/// Waits, wherever they are.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownWaits {
    by_txn: BTreeMap<LockTxn, Known>,
}

/// A circle that may be one: the transactions in it with their steps, each of which waits for the
/// next one, and the last for the first.
#[derive(Debug)]
pub(crate) struct Suspected {
    circle: Vec<(LockTxn, u64)>,
    since: u64,
}

impl KnownWaits {
    /// Takes up what somebody has said, unless something younger is known.
    fn hear(&mut self, report: &WaitReport, now: u64) {
        let seen = now.saturating_sub(report.age_micros);
        if self.by_txn.get(&report.txn).is_none_or(|known| known.seen < seen) {
            let (step, whom) = (report.step, report.whom.clone());
            self.by_txn.insert(report.txn, Known { step, whom, seen });
        }
    }

    /// A transaction does not wait.
    fn waits_no_more(&mut self, txn: LockTxn, now: u64) {
        self.by_txn.insert(txn, Known { step: 0, whom: Vec::new(), seen: now });
    }

    pub(crate) fn forget(&mut self, txn: LockTxn) {
        self.by_txn.remove(&txn);
    }

    fn forget_old(&mut self, now: u64) {
        self.by_txn.retain(|_, known| known.seen + BELIEVED_MICROS > now);
    }

    fn whom(&self, txn: LockTxn) -> &[LockTxn] {
        self.by_txn.get(&txn).map_or(&[], |known| &known.whom)
    }

    /// All that are reached from one, itself only if it waits for itself.
    fn reached(&self, from: LockTxn) -> BTreeSet<LockTxn> {
        let (mut all, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(txn) = todo.pop() {
            todo.extend(self.whom(txn).iter().copied().filter(|on| all.insert(*on)));
        }
        all
    }

    /// What is to be said of a transaction's wait, and of those behind it.
    fn reports(&self, from: LockTxn, now: u64) -> Vec<WaitReport> {
        let mut about = self.reached(from);
        about.insert(from);
        let report = |txn: LockTxn| {
            let Known { step, whom, seen } = self.by_txn.get(&txn)?.clone();
            let age_micros = now.saturating_sub(seen);
            (!whom.is_empty()).then_some(WaitReport { txn, step, whom, age_micros })
        };
        about.into_iter().filter_map(report).collect()
    }

    /// A shortest circle in which a transaction is the youngest.
    fn circle_of_youngest(&self, youngest: LockTxn) -> Option<Vec<(LockTxn, u64)>> {
        let mut reached_from = BTreeMap::new();
        let mut todo = VecDeque::from([youngest]);
        while let Some(txn) = todo.pop_front() {
            for on in self.whom(txn).iter().copied().filter(|on| *on <= youngest) {
                if reached_from.contains_key(&on) {
                    continue;
                }
                reached_from.insert(on, txn);
                if on != youngest {
                    todo.push_back(on);
                    continue;
                }
                let mut circle = Vec::new();
                let mut at = txn;
                loop {
                    circle.push((at, self.by_txn.get(&at)?.step));
                    if at == youngest {
                        circle.reverse();
                        return Some(circle);
                    }
                    at = *reached_from.get(&at)?;
                }
            }
        }
        None
    }

    /// Whether each of a circle still waits for the next one, by the same step.
    fn holds(&self, circle: &[(LockTxn, u64)]) -> bool {
        let next = circle.iter().cycle().skip(1);
        circle.iter().zip(next).all(|((txn, step), (on, _))| {
            self.by_txn.get(txn).is_some_and(|k| k.step == *step && k.whom.contains(on))
        })
    }

    /// Whether all waits of a circle were seen at a time or later.
    fn were_seen_since(&self, circle: &[(LockTxn, u64)], since: u64) -> bool {
        circle.iter().all(|(txn, _)| self.by_txn.get(txn).is_some_and(|k| k.seen >= since))
    }

    /// A look at one transaction: what to suspect from now on, and whether it was suspected
    /// rightly.
    fn suspect(
        &self,
        txn: LockTxn,
        before: Option<Suspected>,
        now: u64,
    ) -> (Option<Suspected>, bool) {
        if let Some(before) = before.filter(|before| self.holds(&before.circle)) {
            let sure = self.were_seen_since(&before.circle, before.since);
            return (Some(before), sure);
        }
        let circle = self.circle_of_youngest(txn);
        (circle.map(|circle| Suspected { circle, since: now }), false)
    }
}

impl Locking {
    /// What was said of waits elsewhere, and what is so here.
    fn known_waits(&self, now: u64) -> KnownWaits {
        let mut all = self.elsewhere.clone();
        for waiter in &self.waiters {
            let (txn, step) = (waiter.ask.request.txn, waiter.ask.step);
            let whom = match waiter.on.as_ref().is_some_and(WaitsFor::is_for_lock) {
                true => self.table.whom(txn),
                false => Vec::new(),
            };
            all.by_txn.insert(txn, Known { step, whom, seen: now });
        }
        all
    }
}

impl Replica {
    /// Somebody who may have locks here waits in another range.
    pub(crate) fn waits_for(&mut self, txn: LockTxn, waits: &[WaitReport]) -> Tried {
        let now = self.clocks.wall.now_micros();
        waits.iter().for_each(|report| self.locking.elsewhere.hear(report, now));
        if waits.is_empty() {
            self.locking.elsewhere.waits_no_more(txn, now);
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
        self.locking.elsewhere.forget_old(now);
        if self.locking.waiters.is_empty() {
            return Ok(());
        }
        let mut waits = self.locking.known_waits(now);
        for mut waiter in std::mem::take(&mut self.locking.waiters) {
            let txn = waiter.ask.request.txn;
            let Some(WaitsFor::Lock(wait)) = waiter.on.as_ref().filter(|on| on.is_for_lock())
            else {
                self.locking.waiters.push(waiter);
                continue;
            };
            // Those that it reaches and that reach it.
            let mut in_circles = waits.reached(txn);
            in_circles.retain(|other| waits.reached(*other).contains(&txn));
            let held_up = in_circles.iter().any(|txn| self.locking.table.is_held_up_by(wait, *txn));
            if !in_circles.is_empty() && !held_up {
                // It waits only behind others who wait.
                self.locking.table.let_pass(wait);
            }
            let (suspected, sure) = waits.suspect(txn, waiter.suspected.take(), now);
            if let Some(Suspected { circle, .. }) = suspected.as_ref().filter(|_| sure)
                && self.locking.table.take_back(wait)
            {
                let names: Vec<String> =
                    circle.iter().map(|(txn, _)| format!("transaction {}", txn.0)).collect();
                waits.waits_no_more(txn, now);
                waiter.on = None;
                waiter.locked.stop = Some(LockStop::Deadlock(names.join(" waits for ")));
                self.answer_locked(waiter);
                continue;
            }
            waiter.suspected = suspected;
            let answer = Answer::Waits { waits: waits.reports(txn, now) };
            let askers = std::mem::take(&mut waiter.askers);
            self.answers.extend(askers.into_iter().map(|asker| (asker, answer.clone())));
            self.locking.waiters.push(waiter);
        }
        self.advance_locks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(txn: u64, step: u64, whom: &[u64], age_micros: u64) -> WaitReport {
        let whom = whom.iter().copied().map(LockTxn).collect();
        WaitReport { txn: LockTxn(txn), step, whom, age_micros }
    }

    fn known(reports: &[WaitReport], now: u64) -> KnownWaits {
        let mut waits = KnownWaits::default();
        reports.iter().for_each(|report| waits.hear(report, now));
        waits
    }

    #[test]
    fn the_youngest_of_each_circle_is_found_and_nobody_else() {
        let waits = known(
            &[
                report(1, 1, &[2], 0),
                report(2, 1, &[3, 1], 0),
                report(3, 7, &[1], 0),
                report(9, 1, &[1], 0),
            ],
            100,
        );
        let circle = |txn: u64| waits.circle_of_youngest(LockTxn(txn));
        assert_eq!(circle(3), Some(vec![(LockTxn(3), 7), (LockTxn(1), 1), (LockTxn(2), 1)]));
        assert_eq!(circle(2), Some(vec![(LockTxn(2), 1), (LockTxn(1), 1)]));
        assert_eq!(circle(1), None, "it is older than the others");
        assert_eq!(circle(9), None, "it only waits for some that are in circles");
    }

    #[test]
    fn a_wait_that_two_ranges_tell_each_other_grows_old() {
        let (mut one, mut other) = (KnownWaits::default(), KnownWaits::default());
        // 5 waits for 6, which has ended: nobody says that any more but these two.
        one.hear(&report(5, 1, &[6], 0), 0);
        let mut now = 0;
        for _ in 0..200 {
            now += 100_000;
            one.reports(LockTxn(5), now).iter().for_each(|told| other.hear(told, now));
            now += 100_000;
            other.reports(LockTxn(5), now).iter().for_each(|told| one.hear(told, now));
            one.forget_old(now);
            other.forget_old(now);
        }
        assert!(one.reports(LockTxn(5), now).is_empty() && other.by_txn.is_empty());
    }

    #[test]
    fn of_two_reports_the_younger_one_counts() {
        let mut waits = known(&[report(5, 2, &[6], 10)], 1_000);
        waits.hear(&report(5, 1, &[7], 500), 1_001);
        assert_eq!(waits.whom(LockTxn(5)), [LockTxn(6)]);
        waits.hear(&report(5, 3, &[8], 5), 1_001);
        assert_eq!(waits.whom(LockTxn(5)), [LockTxn(8)]);
        waits.waits_no_more(LockTxn(5), 1_002);
        waits.hear(&report(5, 3, &[8], 50), 1_010);
        assert!(waits.reached(LockTxn(5)).is_empty(), "that is over");
    }

    #[test]
    fn a_circle_counts_when_all_of_it_was_seen_again_by_the_same_steps() {
        let told = |one: u64, two: u64, step: u64, now: u64| {
            known(&[report(1, step, &[2], one), report(2, 1, &[1], two)], now)
        };
        let look = |waits: &KnownWaits, before, now| waits.suspect(LockTxn(2), before, now);
        let (first, sure) = look(&told(300, 0, 1, 1_000), None, 1_000);
        assert!(first.is_some() && !sure);
        // One of the waits is what was known before.
        let (second, sure) = look(&told(400, 0, 1, 1_100), first, 1_100);
        assert!(second.is_some() && !sure);
        // It is another wait.
        let (third, sure) = look(&told(0, 0, 2, 1_200), second, 1_200);
        assert!(third.as_ref().is_some_and(|third| third.since == 1_200) && !sure);
        let (fourth, sure) = look(&told(50, 0, 2, 1_300), third, 1_300);
        assert!(fourth.is_some() && sure);
        let (none, sure) = look(&known(&[report(2, 1, &[1], 0)], 1_400), fourth, 1_400);
        assert!(none.is_none() && !sure);
    }
}
