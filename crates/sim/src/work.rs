//! What the thread of a client does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use braid_env::random::Random;
use braid_kv::{
    Conflict, Isolation, KvError, KvResult, LockMode, ScanOptions, Txn, TxnOptions, Wait,
};
use braid_range::Write;
use braid_workload::history::record::{Key, Op, Outcome};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::client::{Step, steps};
use crate::data;
use crate::desk::Desk;
use crate::line::{Baton, Said, Word, pause};
use crate::past::Past;
use crate::plan::Plan;
use crate::schemas::{self, Statement};

/// From one look of a lease's keeper to the next.
const KEEPER_PAUSE: Duration = Duration::from_millis(10);

/// What a client's transactions are for.
#[derive(Clone, Copy)]
pub(crate) enum Task {
    /// They look at what others go by. As long as they need not ask, nothing leaves their node.
    Look,
    /// They read something, and nothing else.
    Read,
    /// They write, and change the schema.
    Write,
}

/// One word after the other, to the end of the world.
pub(crate) fn work(
    desk: &Arc<Desk>,
    (plan, task): (&Plan, Task),
    baton: Baton,
    seed: u64,
    ops: &Mutex<Vec<Op>>,
) {
    let baton = baton.take();
    let mut random = Random::seeded(seed);
    let mut past = Past::default();
    let mut word = baton.words.recv().ok();
    while let Some(next) = word {
        // What is broken on purpose is found without it, and sooner.
        let looks =
            plan.sabotage.is_none() && matches!((&next, task), (Word::Begin(_), Task::Write));
        if looks && random.chance(1, 3) {
            past.look(desk, plan, &mut random);
        }
        let run = match next {
            Word::Begin(value) => match task {
                Task::Look => schemas::look(desk, plan, ops),
                Task::Read => read(desk, random.below(plan.keys) as u32, ops),
                Task::Write => write_or_change(desk, plan, &mut random, value, ops),
            },
            Word::Look(n) => {
                past.look_at_all(desk);
                look(desk, plan, n, ops);
                Ok(())
            }
            Word::Found => {
                while schemas::found(&desk.coordinator, plan).is_err() {
                    pause(Duration::from_millis(20));
                }
                Ok(())
            }
            Word::Keep => {
                keep(desk);
                Ok(())
            }
            Word::Tidy => tidy(desk, plan),
            Word::Reply(_) => return,
        };
        let (outcome, why) = match run {
            Ok(()) => (Outcome::Committed, None),
            Err(KvError::OutcomeUnknown(why)) => (Outcome::Unknown, Some(why)),
            Err(why) => (Outcome::Aborted, Some(why.to_string())),
        };
        word = baton.say(Said::Done { outcome, why });
    }
}

fn write_or_change(
    desk: &Desk,
    plan: &Plan,
    random: &mut Random,
    value: u64,
    ops: &Mutex<Vec<Op>>,
) -> KvResult<()> {
    desk.router.housekeep();
    match plan.clients.changes {
        Some(often) if random.chance(often, 1_000) => {
            schemas::change(desk, random.below(plan.keys) as u32, value | 1, ops)
        }
        None if random.chance(1, 8) => survey(desk, plan, random, ops),
        _ => transaction(desk, plan, random, value, ops),
    }
}

/// Looks at several things, one after the other, from a time that stays the same. It has told
/// somebody of the first one when it comes to the next, so that it cannot begin again.
fn survey(desk: &Desk, plan: &Plan, random: &mut Random, ops: &Mutex<Vec<Op>>) -> KvResult<()> {
    let txn = desk.coordinator.begin(TxnOptions { read_only: true, ..TxnOptions::default() })?;
    txn.restart_to_stay()?;
    for key in steps(random, plan).into_iter().flat_map(|step| step.reads()) {
        let found = rows(&txn, key)?;
        ops.lock().extend(data::seen(&found, key));
        pause(Duration::from_micros(random.below(100_000)));
    }
    txn.commit().map(drop)
}

/// Reads a register.
fn read(desk: &Desk, n: u32, ops: &Mutex<Vec<Op>>) -> KvResult<()> {
    let options = TxnOptions { read_only: true, ..TxnOptions::default() };
    let (txn, key) = (desk.coordinator.begin(options)?, Key::Register(n));
    let found = rows(&txn, key)?;
    ops.lock().extend(data::seen(&found, key));
    txn.commit().map(drop)
}

/// Keeps the process's lease as the thread of a node does.
fn keep(desk: &Desk) {
    while !desk.ends.load(Ordering::Relaxed) {
        // The next round tries again.
        let newest = || schemas::newest(&desk.coordinator);
        let _ = desk.lease.keep(&desk.coordinator, Duration::ZERO, newest);
        pause(KEEPER_PAUSE);
    }
    while desk.lease.end(&desk.coordinator).is_err() {
        pause(KEEPER_PAUSE);
    }
}

/// Some time passes, and what is old by then is brought to its end.
fn tidy(desk: &Desk, plan: &Plan) -> KvResult<()> {
    let unused = Mutex::default();
    for _ in 0..3 {
        pause(Duration::from_secs(4));
        // Ranges are learned of by asking for keys.
        (0..plan.keys as u32).for_each(|n| look(desk, plan, n, &unused));
        desk.router.housekeep();
        desk.router.recover()?;
    }
    Ok(())
}

/// Looks at everything of a number, until it has seen it.
fn look(desk: &Desk, plan: &Plan, n: u32, ops: &Mutex<Vec<Op>>) {
    loop {
        ops.lock().clear();
        let seen = || -> KvResult<()> {
            let txn =
                desk.coordinator.begin(TxnOptions { read_only: true, ..TxnOptions::default() })?;
            for key in [Key::List(n), Key::Trail(n), Key::Register(n)] {
                ops.lock().extend(data::seen(&rows(&txn, key)?, key));
            }
            if plan.clients.changes.is_some() {
                let statement = Statement::of(desk, &txn, None)?;
                let shape = statement.looks_at(&txn, n)?;
                ops.lock().push(shape);
            }
            txn.commit().map(drop)
        };
        match seen() {
            Ok(()) => return,
            Err(_) => pause(Duration::from_millis(20)),
        }
    }
}

pub(crate) fn rows(txn: &Arc<Txn>, key: Key) -> KvResult<Vec<(Bytes, Bytes)>> {
    let mut scan = txn.scan(data::span(key), ScanOptions::default())?;
    let mut out = Vec::new();
    while let Some(row) = scan.next()? {
        out.push(row);
    }
    Ok(out)
}

fn write(txn: &Arc<Txn>, writes: Vec<Write>) -> KvResult<()> {
    for write in writes {
        match write {
            Write::Put(key, value) => txn.put(key, value)?,
            Write::Delete(key) => txn.delete(key)?,
            Write::DeleteSpan(span) => drop(txn.delete_span(&span)?),
        }
    }
    Ok(())
}

/// Locks all that there is of something, and sees its newest state from then on.
fn lock(txn: &Arc<Txn>, key: Key) -> KvResult<()> {
    loop {
        txn.begin_statement()?;
        match txn.lock_span(&data::span(key), LockMode::Exclusive, Wait::Block) {
            Err(KvError::Retry { conflict: Conflict::Written(_) | Conflict::WrittenSpan(_) }) => {}
            other => return other.map(drop),
        }
    }
}

/// Writes what a step is to write, over what it has seen.
fn take(
    txn: &Arc<Txn>,
    step: Step,
    seen: &[(Bytes, Bytes)],
    fresh: &mut impl FnMut() -> u64,
) -> KvResult<Vec<Op>> {
    let before = |key| data::values(seen, key);
    Ok(match step {
        Step::Look(_) => Vec::new(),
        Step::Append(key) => {
            let value = fresh();
            write(txn, data::append(key, &before(key), value))?;
            vec![Op::Append { key, value }]
        }
        Step::Overwrite(key, _) => {
            let value = fresh();
            write(txn, data::write(key, value))?;
            vec![Op::Write { key, value }]
        }
        Step::Erase(n) => {
            let (key, trail, value) = (Key::List(n), Key::Trail(n), fresh());
            write(txn, data::append(trail, &before(trail), value))?;
            write(txn, data::erase(key, value))?;
            vec![Op::Append { key: trail, value }, Op::Erase { key, value }]
        }
    })
}

/// One transaction, up to its commit. What fails is rolled back when it is dropped.
///
/// Some read and write without looking back: they lock all that they touch first, and only their
/// locks make them serializable.
fn transaction(
    desk: &Desk,
    plan: &Plan,
    random: &mut Random,
    first: u64,
    ops: &Mutex<Vec<Op>>,
) -> KvResult<()> {
    let most = random.between(200, 3_000);
    let lock_timeout = random.chance(1, 2).then(|| Duration::from_millis(most));
    let batch = random.between(1, 8) as usize;
    let locks = random.chance(1, 3);
    let isolation = if locks { Isolation::ReadCommitted } else { Isolation::Serializable };
    let options = TxnOptions { lock_timeout, batch, isolation, ..TxnOptions::default() };
    let schemas = plan.clients.changes.is_some();
    let mut epoch = schemas.then(|| desk.lease.epoch(&desk.coordinator)).flatten();
    let txn = desk.coordinator.begin(options)?;
    let mut count = 0;
    let mut fresh = || {
        count += 1;
        first | count
    };
    let mut writes = false;
    // What it has written by which shape; written last, so that it does not see them itself.
    let mut notes = Vec::new();
    for step in steps(random, plan) {
        let mut seen: Vec<(Bytes, Bytes)> = Vec::new();
        if schemas {
            if locks {
                epoch = desk.lease.epoch(&desk.coordinator);
                txn.begin_statement()?;
            }
            let statement = Statement::of(desk, &txn, epoch)?;
            let is_write = !matches!(step, Step::Look(_));
            let n = step.number();
            let shape = statement.uses(desk, &txn, n, locks || is_write)?;
            ops.lock().push(shape);
            if is_write {
                notes.push(data::stamp(n, statement.shape(n).number, fresh()));
            }
        }
        if locks {
            step.touches().into_iter().try_for_each(|key| lock(&txn, key))?;
        }
        for key in step.reads() {
            seen.extend(rows(&txn, key)?);
        }
        ops.lock().extend(step.reads().into_iter().flat_map(|key| data::seen(&seen, key)));
        writes |= !matches!(step, Step::Look(_));
        let done = take(&txn, step, &seen, &mut fresh)?;
        ops.lock().extend(done);
    }
    if !writes && !locks && random.chance(1, 2) {
        txn.rollback();
        return Ok(());
    }
    notes.into_iter().try_for_each(|note| txn.put(note, Vec::new()))?;
    if schemas && random.chance(1, 3) {
        // As a block that stays open.
        pause(Duration::from_micros(random.below(2_000_000)));
    }
    let is_leased = schemas && schemas::has_leased(&txn, plan);
    txn.commit()?;
    desk.tally.leased.fetch_add(u64::from(is_leased), Ordering::Relaxed);
    Ok(())
}
