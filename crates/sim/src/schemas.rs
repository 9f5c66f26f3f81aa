//! A small schema: each number has a *shape*, which transactions go by and changes replace.
//!
//! ```text
//!   a transaction   the shape of n, by the lease or not ── locks it ── notes that it wrote by it
//!   a change        recalls ── locks n ── counts the notes of the shape ── the next shape
//! ```
//! Leases, locks and what is published are the product's (`braid_catalog`); shapes are the names of
//! schemas of its catalog, and what `sql` does with tables is done with them here: see `lock_table`
//! and `lock_for_change` there. Two things must hold.
//!
//! *Nobody writes by a shape that was replaced*: of no shape before the newest there are more notes
//! than the change that replaced it has counted. *Nobody goes by a shape that is not that of the
//! time at which he reads*: to the history a shape is a register, which changes write and others
//! read, so that all is serializable together.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use braid_catalog::{
    Catalog, Schema, bootstrap, change_lock_key, load_catalog, publish, recall_leases, stage,
    table_lock_key,
};
use braid_env::random::Random;
use braid_keys::system;
use braid_kv::{
    Coordinator, Isolation, KvError, KvResult, LockMode, ReadMode, ScanOptions, Txn, TxnOptions,
    Wait,
};
use braid_types::{SqlError, SqlResult};
use braid_workload::history::record::{Key, Op};
use parking_lot::Mutex;

use crate::data;
use crate::desk::Desk;
use crate::line::wrong;
use crate::plan::Plan;
use crate::work::{rows_of, write};

/// The schema whose name is the shape of the first number; the others follow.
const FIRST_SCHEMA: u32 = 100;
/// In the history the shape of a number is the register with this number more.
const FIRST_REGISTER: u32 = 1 << 16;

/// A shape: the number of changes so far, and the value that the last one has written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) number: u64,
    value: u64,
}

impl Shape {
    fn of(catalog: &Catalog, n: u32) -> Shape {
        let name = catalog.schema_by_id(FIRST_SCHEMA + n).map(|schema| schema.name.as_str());
        let parts = name.and_then(|name| name.split_once('.')).unwrap_or(("0", "0"));
        let number = |text: &str| text.parse().expect("shapes are numbers");
        Shape { number: number(parts.0), value: number(parts.1) }
    }

    fn schema(self, n: u32) -> Schema {
        let name = format!("{}.{}", self.number, self.value);
        Schema { id: FIRST_SCHEMA + n, database: 1, name, on_commit: Vec::new() }
    }
}

fn register(n: u32) -> Key {
    Key::Register(FIRST_REGISTER + n)
}

fn is_other(error: SqlError) -> KvError {
    KvError::Unavailable(format!("the catalog: {}", error.message()))
}

fn changed() -> KvError {
    KvError::Unavailable("its shape has changed meanwhile".into())
}

/// Makes the catalog, unless it is there.
pub(crate) fn found(at: &Arc<Coordinator>, plan: &Plan) -> SqlResult<()> {
    bootstrap(at)?;
    let txn = at.begin(TxnOptions::default()).map_err(braid_catalog::kv_error)?;
    let old = load_catalog(&txn)?;
    let mut new = old.clone();
    (0..plan.keys as u32).for_each(|n| new.put_schema(Shape { number: 0, value: 0 }.schema(n)));
    stage(&txn, &old, &mut new, |_| false)?;
    publish(&txn, old.version)?;
    txn.commit().map(drop).map_err(braid_catalog::kv_error)
}

/// The newest catalog.
pub(crate) fn newest(at: &Arc<Coordinator>) -> SqlResult<Arc<Catalog>> {
    let options = TxnOptions { read_only: true, ..TxnOptions::default() };
    let txn = at.begin(options).map_err(braid_catalog::kv_error)?;
    load_catalog(&txn).map(Arc::new)
}

/// What a statement of a transaction goes by.
pub(crate) struct Statement {
    /// The lease that there was before its read timestamp was chosen.
    epoch: Option<u64>,
    catalog: Arc<Catalog>,
}

impl Statement {
    /// By the catalog as of the transaction's read timestamp.
    pub(crate) fn of(desk: &Desk, txn: &Arc<Txn>, epoch: Option<u64>) -> KvResult<Statement> {
        let leased = desk.lease.catalog_at(&desk.coordinator, txn.read_ts());
        let catalog = match leased {
            Some(catalog) => catalog,
            None => Arc::new(load_catalog(txn).map_err(is_other)?),
        };
        Ok(Statement { epoch, catalog })
    }

    pub(crate) fn shape(&self, n: u32) -> Shape {
        Shape::of(&self.catalog, n)
    }

    /// Uses a number: its shape is what it reads of it, and stays so if that is locked.
    pub(crate) fn uses(&self, desk: &Desk, txn: &Arc<Txn>, n: u32, locks: bool) -> KvResult<Op> {
        txn.depend_on(&system::shape(n))?;
        if locks {
            self.lock(desk, txn, n)?;
        }
        self.looks_at(txn, n)
    }

    /// Locks the shape, as `lock_table` of `sql` does.
    fn lock(&self, desk: &Desk, txn: &Arc<Txn>, n: u32) -> KvResult<()> {
        let key = table_lock_key(n, 0);
        if txn.holds(&key, LockMode::Shared) || txn.holds_under_lease(&key) {
            return Ok(());
        }
        self.check_newest(desk, n)?;
        if !txn.lock_under_lease(&key)? {
            txn.hold_after(&key, LockMode::Shared, Wait::Block)?;
        }
        self.check_newest(desk, n)
    }

    fn check_newest(&self, desk: &Desk, n: u32) -> KvResult<()> {
        if self.epoch.is_some() && desk.lease.epoch(&desk.coordinator) == self.epoch {
            return Ok(());
        }
        let options = TxnOptions { read_only: true, ..TxnOptions::default() };
        let now = desk.coordinator.begin(options)?;
        let newest = Statement::of(desk, &now, None)?;
        if newest.shape(n) == self.shape(n) { Ok(()) } else { Err(changed()) }
    }

    /// Compares the shape with the notes of those who have written by it, all as of one time.
    pub(crate) fn looks_at(&self, txn: &Arc<Txn>, n: u32) -> KvResult<Op> {
        let shape = self.shape(n);
        let (written, counted) = notes(txn, n)?;
        for number in written.keys().chain(counted.keys()) {
            let (is, was) = (written.get(number), counted.get(number));
            let is_good = match number.cmp(&shape.number) {
                std::cmp::Ordering::Less => is.copied().unwrap_or(0) == *was.unwrap_or(&u64::MAX),
                std::cmp::Ordering::Equal => was.is_none(),
                std::cmp::Ordering::Greater => false,
            };
            if !is_good {
                let (now, read) = (shape.number, txn.read_ts());
                wrong(format!(
                    "by shape {number} of {n}, which has shape {now} at {read:?}, {is:?} have \
                     written; {was:?} had when it was replaced"
                ));
            }
        }
        Ok(Op::Get { key: register(n), value: shape.value })
    }
}

type Counts = std::collections::BTreeMap<u64, u64>;

/// How many have written by each shape of a number, and how many were counted.
fn notes(txn: &Arc<Txn>, n: u32) -> KvResult<(Counts, Counts)> {
    let options = ScanOptions { mode: ReadMode::Unrecorded, ..ScanOptions::default() };
    let mut rows = Vec::new();
    for span in data::stamp_spans(n) {
        let mut scan = txn.scan(span, options)?;
        while let Some(row) = scan.next()? {
            rows.push(row);
        }
    }
    Ok(data::stamps(&rows))
}

/// Looks at all shapes, and at nothing else.
pub(crate) fn look(desk: &Desk, plan: &Plan, ops: &Mutex<Vec<Op>>) -> KvResult<()> {
    look_at_all(desk, plan, ops)?.commit().map(drop)
}

/// Looks at all shapes, and at what clients have for themselves.
pub(crate) fn survey(desk: &Desk, plan: &Plan, ops: &Mutex<Vec<Op>>) -> KvResult<()> {
    let txn = look_at_all(desk, plan, ops)?;
    ops.lock().extend(seen_own(&txn)?);
    txn.commit().map(drop)
}

/// What clients have for themselves.
pub(crate) fn seen_own(txn: &Arc<Txn>) -> KvResult<Vec<Op>> {
    rows_of(txn, data::own_registers()).map(|rows| data::seen_own(&rows))
}

/// Looks at all shapes; the transaction that does.
fn look_at_all(desk: &Desk, plan: &Plan, ops: &Mutex<Vec<Op>>) -> KvResult<Arc<Txn>> {
    let epoch = desk.lease.epoch(&desk.coordinator);
    let options = TxnOptions { read_only: true, ..TxnOptions::default() };
    let txn = desk.coordinator.begin(options)?;
    let statement = Statement::of(desk, &txn, epoch)?;
    let shapes = (0..plan.keys as u32).map(|n| (n, statement.shape(n).value));
    ops.lock().extend(shapes.map(|(n, value)| Op::Get { key: register(n), value }));
    Ok(txn)
}

/// Goes by the shapes of two numbers, of which it writes one, and writes what nobody else does:
/// when its commit arrives, nothing keeps it from happening but what it goes by.
pub(crate) fn write_own(
    desk: &Desk,
    plan: &Plan,
    random: &mut Random,
    (key, value): (Key, u64),
    ops: &Mutex<Vec<Op>>,
) -> KvResult<()> {
    let epoch = desk.lease.epoch(&desk.coordinator);
    let txn = desk.coordinator.begin(TxnOptions::default())?;
    let statement = Statement::of(desk, &txn, epoch)?;
    let looked_at = random.below(plan.keys) as u32;
    let written = (looked_at + 1) % plan.keys as u32;
    for (n, locks) in [(looked_at, false), (written, true)] {
        let shape = statement.uses(desk, &txn, n, locks)?;
        ops.lock().push(shape);
    }
    // By what was there the order of what is written is known.
    ops.lock().extend(data::seen(&rows_of(&txn, data::span(key))?, key));
    write(&txn, data::write(key, value))?;
    ops.lock().push(Op::Write { key, value });
    txn.put(data::stamp(written, statement.shape(written).number, value), Vec::new())?;
    let is_leased = has_leased(&txn, plan);
    txn.commit()?;
    desk.tally.leased.fetch_add(u64::from(is_leased), Ordering::Relaxed);
    Ok(())
}

/// Whether a transaction has locks under a lease.
pub(crate) fn has_leased(txn: &Txn, plan: &Plan) -> bool {
    (0..plan.keys as u32).any(|n| txn.holds_under_lease(&table_lock_key(n, 0)))
}

/// Replaces the shape of a number, as a change of a table does that is done in one transaction.
pub(crate) fn change(desk: &Desk, n: u32, value: u64, ops: &Mutex<Vec<Op>>) -> KvResult<()> {
    let isolation = Isolation::ReadCommitted;
    let txn = desk.coordinator.begin(TxnOptions { isolation, ..TxnOptions::default() })?;
    let begun = desk.coordinator.wall_clock_us();
    recall_leases(&txn).map_err(is_other)?;
    let micros = desk.coordinator.wall_clock_us().saturating_sub(begun);
    desk.tally.recalled_micros.fetch_max(micros, Ordering::Relaxed);
    txn.hold(&change_lock_key(n), LockMode::Exclusive)?;
    txn.hold(&table_lock_key(n, 0), LockMode::Exclusive)?;
    txn.begin_statement()?;
    let statement = Statement::of(desk, &txn, None)?;
    let shape = statement.shape(n);
    let seen = statement.looks_at(&txn, n)?;
    ops.lock().push(seen);
    let (written, _) = notes(&txn, n)?;
    let count = written.get(&shape.number).copied().unwrap_or(0);
    txn.put(data::stamp_count(n, shape.number), data::bytes(&[count]))?;
    let mut new = (*statement.catalog).clone();
    new.put_schema(Shape { number: shape.number + 1, value }.schema(n));
    txn.put(system::shape(n), value.to_be_bytes().to_vec())?;
    stage(&txn, &statement.catalog, &mut new, |_| false).map_err(is_other)?;
    publish(&txn, statement.catalog.version).map_err(is_other)?;
    ops.lock().push(Op::Write { key: register(n), value });
    txn.commit()?;
    desk.tally.changed.fetch_add(1, Ordering::Relaxed);
    Ok(())
}
