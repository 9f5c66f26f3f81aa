//! A table moves while others read and write it: a job.
//!
//! ```text
//!   copy        watch both places; all rows as of now, under their new keys
//!   catch up    what was written meanwhile, again and again, until it is little
//!   validate    does every row have its parent?
//!   switch      writers wait: what was written last, and the catalog, in one commit
//! ```
//! Nobody who writes knows of it. New generations keep the copies out of everybody's reach, and a
//! watch of the store ([`braid_kv::Watch`]) tells where to look again. Up to the last commit the
//! tables are what they were; then they are what they shall be, for writers and readers alike.
//!
//! **The last moment.** It needs the tables' locks, which a writer keeps to the end of his
//! transaction. Who waits for them keeps others waiting behind him; so it asks for a moment only,
//! and lets everybody go on if they are not free by then.
//!
//! Canceled or failed, its copies are erased ([`crate::jobs::undo`]). If the node stops in the
//! middle they are erased when it starts again, and the job begins anew.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use braid_catalog::{
    After, Catalog, Relation, Table, change_lock_key, kv_error, table_lock_key, write_changes,
};
use braid_kv::{Isolation, LockMode, Txn, TxnOptions, Wait, Watch};
use braid_parser::{AlterOwn, Kind, Name, Statement};
use braid_types::{SqlError, SqlResult, SqlState};
use parking_lot::{Condvar, Mutex};

use super::changes::{Copies, Seen};
use super::copy::copy;
use super::moving::Moving;
use super::relocate::{self, Place};
use crate::ddl::online::{at, take_back};
use crate::ddl::{Change, backfill, interleave};
use crate::jobs::registry;
use crate::jobs::{Record, State};
use crate::session::Context;

/// How long writers may have to wait for somebody who holds a lock that the switch needs.
const PATIENCE: Duration = Duration::from_millis(20);
/// More, if it has been tried this often.
const TRIES: u32 = 20;
/// It never becomes more than that.
const MOST_PATIENCE: Duration = Duration::from_secs(1);

/// Whether a statement may move a table.
pub(crate) fn may_go_in_steps(kind: &Kind) -> bool {
    place_of(kind).is_some()
}

/// Which table a statement moves, and where.
fn place_of(kind: &Kind) -> Option<(&Name, Place<'_>)> {
    let Kind::AlterTableOwn(name, _, op) = kind else { return None };
    let place = match op {
        AlterOwn::SetInterleave(clause) => Place::Inside(clause),
        AlterOwn::DropInterleave => Place::Alone,
        AlterOwn::PrimaryKey(columns, clause) => Place::Key(columns, clause.as_ref()),
        _ => return None,
    };
    Some((name, place))
}

/// Runs a statement as a job, `again` as one that has begun before; `None` if it is not one to run
/// so.
pub(crate) fn run_in_steps(
    ctx: &Context,
    statement: &Statement,
    again: Option<u32>,
) -> SqlResult<Option<String>> {
    let Some((name, place)) = place_of(&statement.kind) else { return Ok(None) };
    let Some(Relation::Table(table)) = ctx.find_relation(name)? else { return Ok(None) };
    if table.materialized().is_some() || table.partitioning().is_some() {
        return Ok(None);
    }
    let mut change = Change::new(ctx);
    if let Place::Inside(clause) = place
        && !interleave::is_elsewhere(&change, &table, clause)?
    {
        return Ok(None);
    }
    let mut is_empty = true;
    for t in ctx.catalog.subtree(&table) {
        is_empty &= !backfill::has_rows(&change, &backfill::layout(&change, t.id)?)?;
    }
    // A watch tells what commits of this node alone have touched: in a cluster it is done at once,
    // and writers wait.
    if is_empty || ctx.db.is_shared() {
        return Ok(None);
    }
    change.reading = braid_kv::ReadMode::Unrecorded;
    // What is wrong with it is told before anybody is kept out.
    let parent = relocate::wanted(&mut change, &table, place)?.interleave.map(|i| i.parent);
    let affected = hold_changes(ctx, table.id, parent)?;
    let ctx = &at(ctx, ctx.txn.clone(), ctx.db.current_catalog()?);
    let Some(table) = ctx.catalog.table(table.id) else { return Ok(None) };
    let mut change = Change::new(ctx);
    change.reading = braid_kv::ReadMode::Unrecorded;
    let moving = Moving::plan(&mut change, table, place)?;
    let kind = match place {
        Place::Key(..) => "alter primary key",
        _ => "move table",
    };
    let id = again.map_or_else(|| ctx.db.new_ids(1), Ok)?;
    let record = Record {
        run_as: Some(ctx.run_as()),
        copies: moving.copies(&change.catalog),
        ..Record::new(id, kind, &statement.text)
    };
    record.store(ctx.db.coordinator())?;
    let job = ctx.db.jobs().start(record, affected.clone(), ctx.cancel.clone());
    let job = Job { ctx: ctx.clone(), job, affected };
    let result = job.take_steps(&moving);
    ctx.txn.rollback();
    ctx.db.jobs().end(id);
    result.map(|()| Some("ALTER TABLE".into()))
}

/// All tables whose writers it concerns, from roots downwards: what moves, what it lies in and will
/// lie in, and what refers to it.
fn concerned(catalog: &Catalog, table: u32, parent: Option<u32>) -> Vec<u32> {
    let mut out: Vec<u32> = Vec::new();
    let of = |id: u32| catalog.table(id).cloned();
    for t in parent.into_iter().chain([table]).filter_map(of) {
        out.extend(catalog.chain(&t).iter().map(|t| t.id));
    }
    for t in of(table).iter().flat_map(|t| catalog.subtree(t)) {
        out.push(t.id);
        out.extend(catalog.referencing_tables(t.id).map(|t| t.id));
    }
    let mut seen = BTreeSet::new();
    out.retain(|id| seen.insert(*id));
    out
}

/// Keeps other changes away from all tables that it concerns.
fn hold_changes(ctx: &Context, table: u32, parent: Option<u32>) -> SqlResult<Vec<u32>> {
    let mut held: BTreeSet<u32> = BTreeSet::new();
    loop {
        let catalog = ctx.db.current_catalog()?;
        let concerned = concerned(&catalog, table, parent);
        if concerned.iter().all(|id| held.contains(id)) {
            return match concerned.iter().filter_map(|id| catalog.table(*id)).find(is_building) {
                Some(t) => Err(changed(t)),
                None => Ok(concerned),
            };
        }
        for id in concerned.into_iter().collect::<BTreeSet<_>>() {
            if held.insert(id) {
                ctx.txn.hold(&change_lock_key(id), LockMode::Exclusive).map_err(kv_error)?;
            }
        }
    }
}

fn is_building(t: &&Arc<Table>) -> bool {
    t.building.is_some()
}

fn changed(t: &Table) -> SqlError {
    braid_catalog::Lost::Replanned
        .error(format!("table \"{}\" was changed by a concurrent schema change", t.name))
}

/// A move that is under way.
pub(super) struct Job {
    /// Its transaction holds the locks that keep other changes away, and does nothing else.
    ctx: Context,
    job: Arc<registry::Job>,
    /// From roots downwards.
    affected: Vec<u32>,
}

impl Job {
    /// How much of the present step is done.
    pub(super) fn progress(&self, fraction: f64) {
        self.job.progress(fraction);
    }

    /// A context whose transaction sees all that is committed.
    pub(super) fn now(&self) -> SqlResult<Context> {
        self.begin(None)
    }

    /// Runs and commits a short transaction until it does not meet others.
    pub(super) fn again(&self, work: impl Fn(&Context) -> SqlResult<()>) -> SqlResult<()> {
        loop {
            let ctx = self.now()?;
            ctx.check_cancel()?;
            let result = work(&ctx).and_then(|()| ctx.txn.commit().map(|_| ()).map_err(kv_error));
            match result {
                Err(e) if After::error(&e).is_again() => {}
                other => return other,
            }
        }
    }

    fn begin(&self, lock_timeout: Option<Duration>) -> SqlResult<Context> {
        let options = TxnOptions {
            isolation: Isolation::RepeatableRead,
            cancel: Some(self.ctx.cancel.clone()),
            lock_timeout,
            ..TxnOptions::default()
        };
        let (txn, catalog) = self.ctx.db.begin(options)?;
        Ok(at(&self.ctx, txn, catalog))
    }

    fn take_steps(&self, moving: &Moving) -> SqlResult<()> {
        let result = self.complete(moving);
        let Err(e) = &result else { return result };
        if e.state() == SqlState::QUERY_CANCELED && self.ctx.db.jobs().is_stopping() {
            return result;
        }
        take_back(&self.ctx, &self.job, e)?;
        result
    }

    fn complete(&self, moving: &Moving) -> SqlResult<()> {
        self.job.step("copy");
        let (old, new) = self.watches(moving);
        let coordinator = self.ctx.db.coordinator();
        let (old, new) = (coordinator.watch(old), coordinator.watch(new));
        let prev = self.now()?;
        copy(self, moving, &prev)?;
        let seen = Seen::default();
        let mut copies = Copies { job: self, moving, old, new, prev, has_parents: false, seen };
        self.job.step("catch up");
        self.catch_up(&mut copies)?;
        if moving.parent.is_some() {
            self.job.step("validate");
            moving.check_all(&copies.prev)?;
            copies.has_parents = true;
            self.catch_up(&mut copies)?;
        }
        self.job.step("switch");
        let mut tries = 0;
        while !self.switch(&mut copies, tries)? {
            tries += 1;
            self.pause(PATIENCE)?;
            self.catch_up(&mut copies)?;
        }
        Ok(())
    }

    /// What has to be known: rows that are written where they lie; parents that are written, and
    /// range deletes, where they come to lie.
    fn watches(&self, moving: &Moving) -> (Watch, Watch) {
        let mut old = Watch { spans: vec![moving.first().old.rows.whole_span()], classes: 0 };
        let mut new = Watch { spans: vec![moving.first().now.rows.whole_span()], classes: 0 };
        for one in &moving.tables {
            old.classes |= one.old.rows.class_mask();
        }
        new.classes |= moving.parent.as_ref().map_or(0, |parent| parent.rows.class_mask());
        (old, new)
    }

    /// Brings what was written over, until little is left.
    fn catch_up(&self, copies: &mut Copies<'_>) -> SqlResult<()> {
        loop {
            self.ctx.check_cancel()?;
            let now = self.now()?;
            let is_little = copies.look(&now);
            copies.catch_up(now)?;
            if is_little {
                return Ok(());
            }
        }
    }

    /// Tries to end it; `false` if somebody was in the way, or too much was written.
    fn switch(&self, copies: &mut Copies<'_>, tries: u32) -> SqlResult<bool> {
        self.ctx.check_cancel()?;
        let more = PATIENCE * tries.saturating_sub(TRIES);
        let ctx = self.begin(Some((PATIENCE + more).min(MOST_PATIENCE)))?;
        let done = self.lock_all(&ctx.txn, &ctx.catalog, tries).and_then(|()| {
            // All who wrote have ended; what they wrote is seen from here on.
            ctx.txn.restart().map_err(kv_error)?;
            let locked = ctx.catalog.clone();
            let ctx = at(&ctx, ctx.txn.clone(), ctx.db.catalog_at(&ctx.txn)?);
            if !copies.look(&ctx) {
                return Ok(false);
            }
            copies.finish(&ctx)?;
            self.publish(&ctx, &locked, copies.moving).map(|()| true)
        });
        match done {
            Err(e) if After::error(&e) != After::Never => Ok(false),
            other => other,
        }
    }

    /// Locks the shapes of all tables that it concerns.
    fn lock_all(&self, txn: &Txn, catalog: &Catalog, tries: u32) -> SqlResult<()> {
        for (n, t) in self.affected.iter().filter_map(|id| catalog.table(*id)).enumerate() {
            for step in t.step.saturating_sub(1)..=t.step {
                let key = table_lock_key(t.id, step);
                // To wait with one lock for another may close a circle, and others would pay.
                let waits = n == 0 || tries > TRIES / 2;
                self.lock_one(txn, &key, waits)?;
            }
        }
        Ok(())
    }

    fn lock_one(&self, txn: &Txn, key: &[u8], waits: bool) -> SqlResult<()> {
        if waits {
            return txn.hold(key, LockMode::Exclusive).map_err(kv_error);
        }
        let mut left = 2 * PATIENCE.as_millis();
        loop {
            match txn.lock(key, LockMode::Exclusive, Wait::NoWait) {
                Err(braid_kv::KvError::LockNotAvailable) if left > 0 => {
                    left -= 1;
                    self.pause(Duration::from_micros(500))?;
                }
                other => return other.map(|_| ()).map_err(kv_error),
            }
        }
    }

    /// The catalog changes, the old rows go, the job has succeeded.
    fn publish(&self, ctx: &Context, locked: &Catalog, moving: &Moving) -> SqlResult<()> {
        let step = |catalog: &Catalog, id: u32| catalog.table(id).map(|t| t.step);
        let passed = |id: &&u32| step(&ctx.catalog, **id) != step(locked, **id);
        if let Some(t) = self.affected.iter().find(passed).and_then(|id| locked.table(*id)) {
            return Err(changed(t));
        }
        let mut c = Change::new(ctx);
        moving.put(&mut c)?;
        // Whoever refers to what has moved looks for it where it was.
        for one in &moving.tables {
            let referring: Vec<Table> =
                c.catalog.referencing_tables(one.old.table.id).map(|t| (**t).clone()).collect();
            for t in referring {
                c.catalog.put_table(Table { step: t.step + 1, ..t });
            }
        }
        c.sync();
        for one in &moving.tables {
            relocate::erase(&c, &one.old)?;
        }
        write_changes(&ctx.txn, &ctx.catalog, &mut c.catalog)?;
        let mut record = self.job.record();
        (record.state, record.fraction, record.copies) = (State::Succeeded, 1.0, Vec::new());
        record.put(&ctx.txn)?;
        Record::forget_old(&ctx.txn)?;
        ctx.db.commit_schema_change(&ctx.txn).map_err(kv_error)
    }

    /// Lets others go on for a moment.
    fn pause(&self, time: Duration) -> SqlResult<()> {
        let (nobody, never) = (Mutex::new(()), Condvar::new());
        let _slept = never.wait_for(&mut nobody.lock(), time);
        self.ctx.check_cancel()
    }
}
