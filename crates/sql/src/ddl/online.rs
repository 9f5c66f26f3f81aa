//! Schema changes in steps that do not keep writers out.
//!
//! As in "Online, Asynchronous Schema Change in F1" (2013): what is added becomes known to writers
//! before it becomes known to readers, and between two steps everybody who still goes by the step
//! before the last has ended.
//!
//! ```text
//!   index        noting ─ backfill at a fixed timestamp ─ write-only ─ merge the notes ─ public
//!   constraint   enforced for new rows ───── all rows proven at a fixed timestamp ────── public
//!                │                                        │
//!                └ publish, wait for users of the step before (each time)
//! ```
//! **Who uses which step.** A statement that writes a table locks the table's shape at the step
//! that it was planned with (shared, until its transaction ends), and begins anew if that step is
//! not the newest. To publish a step takes no lock; to wait until nobody uses the one before is to
//! ask for its lock exclusively, once. Whoever comes meanwhile locks the new step, and goes on.
//! Over many nodes the same lock is a lease that a node holds for its transactions.
//!
//! **Why there is no delete-only state.** F1 has it so that entries that one node writes do not
//! outlive rows that another, a step behind, deletes. Here such an entry would be dead but harmless
//! (every reader looks at the base row), and what is in the way of a backfill is another thing: its
//! entries lie at its timestamp, and must not come after newer ones. So in the first state writers
//! leave the index alone and note which entries they would have touched; the backfill then fills a
//! place that nobody else writes to, and each note is settled after ([`super::online_index`]).
//!
//! It runs outside of transaction blocks, on tables with rows. In a block the change belongs to the
//! block's transaction, and locks writers out; a table without rows is changed at once, too.
//!
//! A change that fails, is canceled, or whose node stops is undone ([`crate::jobs::undo`]).
//!
//! **In a cluster** all of this is as it is on one node, since steps, locks and notes are keys.
//! Reads at the fixed timestamps may be in doubt because of clocks: such a part is done again. A
//! change whose node is silent for so long that its locks go is taken back by another one; it
//! notices when it publishes its next step.

use std::sync::Arc;

use braid_catalog::{
    Addition, After, Building, Catalog, Table, change_lock_key, kv_error, table_lock_key,
    write_changes,
};
use braid_kv::{Isolation, LockMode, ReadMode, Txn, TxnOptions};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::{self, AlterTableOperation as Op};

use super::{Change, backfill, commit_timestamp, constraint, index, online_index, parts};
use crate::jobs::registry::Job;
use crate::jobs::undo::Undo;
use crate::jobs::{Record, State};
use crate::session::Context;
use braid_parser::{CreateIndex, Kind, Name};
use braid_scalar::ident_name;

/// So often work is done again whose timestamp is in doubt.
const UNCERTAIN_TRIES: usize = 50;

/// What a statement wants to add.
enum Wish<'a> {
    Index(&'a CreateIndex),
    Constraint(&'a ast::TableConstraint),
    NotNull(String),
}

impl<'a> Wish<'a> {
    /// Of a statement that can go in steps: with the name of its table.
    fn of(kind: &'a Kind) -> Option<(Name, Wish<'a>)> {
        match kind {
            Kind::CreateIndex(create) => {
                Some((parts(&create.base.table_name), Wish::Index(create)))
            }
            Kind::Sql(s) => {
                let ast::Statement::AlterTable(a) = &**s else { return None };
                let [op] = a.operations.as_slice() else { return None };
                let wish = match op {
                    Op::AddConstraint {
                        constraint:
                            k @ (ast::TableConstraint::Unique(_)
                            | ast::TableConstraint::Check(_)
                            | ast::TableConstraint::ForeignKey(_)),
                        not_valid: false,
                    } => Wish::Constraint(k),
                    Op::AlterColumn { column_name, op: ast::AlterColumnOperation::SetNotNull } => {
                        Wish::NotNull(ident_name(column_name))
                    }
                    _ => return None,
                };
                Some((parts(&a.name), wish))
            }
            _ => None,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Wish::Index(_) | Wish::Constraint(ast::TableConstraint::Unique(_)) => "create index",
            Wish::Constraint(_) => "add constraint",
            Wish::NotNull(_) => "set not null",
        }
    }

    fn tag(&self) -> &'static str {
        if matches!(self, Wish::Index(_)) { "CREATE INDEX" } else { "ALTER TABLE" }
    }

    /// What is to be added; `None` if there is nothing to do or to say that needs steps.
    fn declare(&self, c: &Change, t: &Table) -> SqlResult<Option<Addition>> {
        Ok(match self {
            Wish::Index(create) => {
                let name = create.base.name.as_ref().and_then(|n| parts(n).pop());
                if name.is_some_and(|name| c.taken(t.schema, &name)) {
                    return Ok(None);
                }
                let (index, expressions) = index::declare(c, t, create)?;
                let built = index.unread.is_none();
                built.then_some(Addition::Index { index, noting: true, expressions })
            }
            Wish::Constraint(k) => match constraint::declare(c, t, k, None)? {
                // Its entries tell nobody that two rows have the same key.
                Addition::Index { index, .. } if index.deferral.is_some() => None,
                Addition::Index { index, expressions, .. } => {
                    Some(Addition::Index { index, noting: true, expressions })
                }
                other => Some(other),
            },
            Wish::NotNull(name) => {
                let column = t.column_named(name).filter(|column| column.nullable);
                column.map(|column| Addition::NotNull(column.id))
            }
        })
    }
}

/// A change that is under way.
pub(super) struct Online {
    /// Its transaction holds the locks that keep other changes away, and does nothing else.
    ctx: Context,
    job: Arc<Job>,
    table: u32,
    /// Tables whose writers have to know of it: the table's and the referenced table's, with all
    /// above them, since deletes there look downwards.
    affected: Vec<u32>,
}

/// Whether a statement is of a kind that can go in steps.
pub(crate) fn may_go_in_steps(kind: &Kind) -> bool {
    Wish::of(kind).is_some()
}

/// Runs a statement in steps; `None` if it is not one to run so.
pub(crate) fn run(ctx: &Context, statement: &braid_parser::Statement) -> SqlResult<Option<String>> {
    let Some((name, wish)) = Wish::of(&statement.kind) else { return Ok(None) };
    let Some(braid_catalog::Relation::Table(table)) = ctx.find_relation(&name)? else {
        return Ok(None);
    };
    // What partitions are told follows at once.
    if table.partitioning().is_some() {
        return Ok(None);
    }
    if table.materialized().is_some() && !matches!(wish, Wish::Index(_)) {
        return Ok(None);
    }
    let change = Change::new(ctx);
    if !backfill::has_rows(&change, &backfill::layout(&change, table.id)?)? {
        return Ok(None);
    }
    let Some(addition) = wish.declare(&change, &table)? else { return Ok(None) };
    let affected = hold_changes(ctx, table.id, &addition)?;
    // What others were about to change is there now.
    let ctx = &at(ctx, ctx.txn.clone(), ctx.db.current_catalog()?);
    let Some(table) = ctx.catalog.table(table.id) else { return Ok(None) };
    let Some(addition) = wish.declare(&Change::new(ctx), table)? else { return Ok(None) };
    commit_timestamp::check_with(ctx, table, &addition)?;
    let record = Record::new(ctx.db.new_ids(1)?, wish.kind(), &statement.text);
    let cancel = ctx.cancel.clone();
    let job = ctx.db.jobs().start(record, affected.clone(), cancel);
    let online = Online { ctx: ctx.clone(), job: job.clone(), table: table.id, affected };
    let result = online.take_steps(addition);
    ctx.txn.rollback();
    ctx.db.jobs().end(job.id());
    result.map(|()| Some(wish.tag().to_string()))
}

/// What a change has done is taken back, since it failed or was canceled.
pub(super) fn take_back(ctx: &Context, job: &Job, error: &SqlError) -> SqlResult<()> {
    let canceled = error.state() == SqlState::QUERY_CANCELED;
    let ends = if canceled { State::Canceled } else { State::Failed };
    let detail = error.detail().map_or_else(String::new, |detail| format!(": {detail}"));
    job.set_state(State::Undoing, Some(format!("{}{detail}", error.message())));
    // Others may go on; and whoever is in the way of taking it back may be waiting for us.
    ctx.txn.rollback();
    ctx.db.undo(Undo::new(job.record(), ends))
}

/// A context for another transaction.
pub(super) fn at(ctx: &Context, txn: Arc<Txn>, catalog: Arc<Catalog>) -> Context {
    Context { txn, catalog, ..ctx.clone() }
}

/// What a change is told that another node has taken back.
fn taken_back() -> SqlError {
    let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
    SqlError::new(state, "the change was taken back, since its node was silent for too long")
        .with_hint("Run it again.")
}

/// Keeps other changes away from all tables that are affected.
fn hold_changes(ctx: &Context, table: u32, addition: &Addition) -> SqlResult<Vec<u32>> {
    let mut held: Vec<u32> = Vec::new();
    loop {
        let catalog = ctx.db.current_catalog()?;
        let mut roots = vec![table];
        if let Addition::ForeignKey(fk) = addition {
            roots.push(fk.parent);
        }
        let tables = roots.iter().filter_map(|id| catalog.table(*id));
        let mut affected: Vec<u32> = tables.flat_map(|t| catalog.chain(t)).map(|t| t.id).collect();
        affected.sort_unstable();
        affected.dedup();
        let new: Vec<u32> = affected.iter().copied().filter(|id| !held.contains(id)).collect();
        if new.is_empty() {
            if !ctx.db.is_shared() {
                return Ok(affected);
            }
            // Whoever builds something there would hold the lock that is ours now.
            let left = affected.iter().filter_map(|id| catalog.table(*id)?.building.as_ref());
            let Some(job) = left.map(|building| building.job).next() else {
                return Ok(affected);
            };
            ctx.db.take_back_orphan(job)?;
            ctx.check_cancel()?;
        }
        for id in new {
            let key = change_lock_key(id);
            ctx.txn.hold(&key, LockMode::Exclusive).map_err(kv_error)?;
            held.push(id);
        }
    }
}

impl Online {
    fn take_steps(&self, addition: Addition) -> SqlResult<()> {
        if let Addition::Index { index, .. } = &addition {
            self.job.set_index(index.id);
        }
        // One that was given up may have left users of the step before the present one.
        self.wait_for_users()?;
        self.job.step("announce");
        self.publish(Some(&addition), true)?;
        let result = self.complete(addition);
        if let Err(e) = &result {
            take_back(&self.ctx, &self.job, e)?;
        }
        result
    }

    fn complete(&self, addition: Addition) -> SqlResult<()> {
        self.job.step("wait for users");
        self.wait_for_users()?;
        if let Addition::Index { index, expressions, .. } = &addition {
            online_index::fill(self)?;
            self.job.step("enforce");
            let (index, expressions) = (index.clone(), expressions.clone());
            let kept = Addition::Index { index, noting: false, expressions };
            self.publish(Some(&kept), true)?;
            self.job.step("wait for noting users");
            self.wait_for_users()?;
            self.until_certain(|| online_index::merge_notes(self))?;
        } else {
            self.job.step("validate");
            self.until_certain(|| {
                let mut c = Change::new(&self.now()?);
                c.reading = ReadMode::Unrecorded;
                let table = self.table_of(&c.ctx)?;
                constraint::prove(&c, &table, &addition)
            })?;
        }
        self.job.step("complete");
        self.publish(None, false)
    }

    /// Does something that reads at a timestamp of its own again while that is in doubt.
    pub(super) fn until_certain(&self, work: impl Fn() -> SqlResult<()>) -> SqlResult<()> {
        for _ in 0..UNCERTAIN_TRIES {
            match work() {
                Err(e) if After::error(&e).is_again() => self.ctx.check_cancel()?,
                other => return other,
            }
        }
        work()
    }

    pub(super) fn job(&self) -> &Job {
        &self.job
    }

    /// A context whose transaction sees all that is committed.
    pub(super) fn now(&self) -> SqlResult<Context> {
        let options = TxnOptions {
            isolation: Isolation::RepeatableRead,
            cancel: Some(self.ctx.cancel.clone()),
            ..TxnOptions::default()
        };
        let (txn, catalog) = self.ctx.db.begin(options)?;
        Ok(at(&self.ctx, txn, catalog))
    }

    pub(super) fn table_of(&self, ctx: &Context) -> SqlResult<Arc<Table>> {
        let table = ctx.catalog.table(self.table).cloned();
        table.ok_or_else(|| SqlError::internal("a table went while it was changed"))
    }

    /// Publishes what the table is building, or, with `None`, that it is a part of the table from
    /// now on. `new_step`: writers have to do something else than before.
    fn publish(&self, building: Option<&Addition>, new_step: bool) -> SqlResult<()> {
        loop {
            let ctx = self.now()?;
            self.ctx.check_cancel()?;
            match self.try_publish(&ctx, building, new_step) {
                Err(e) if After::error(&e).is_again() => {}
                other => return other,
            }
        }
    }

    fn try_publish(
        &self,
        ctx: &Context,
        building: Option<&Addition>,
        new_step: bool,
    ) -> SqlResult<()> {
        let mut new = (*ctx.catalog).clone();
        let mut table = (*self.table_of(ctx)?).clone();
        let job = self.job.id();
        let mut record = self.job.record();
        let found = table.building.as_ref().map(|building| building.job);
        match building {
            Some(addition) => {
                let begun = matches!(addition, Addition::Index { noting: false, .. });
                if begun && found != Some(job) {
                    return Err(taken_back());
                }
                if let Addition::Index { expressions, .. } = addition {
                    table.adopt(expressions);
                }
                table.building = Some(Building { job, addition: addition.clone() });
            }
            None => {
                record.state = State::Succeeded;
                record.fraction = 1.0;
                let built = table.building.take().filter(|b| b.job == job);
                let built = built.ok_or_else(taken_back)?;
                online_index::erase_notes(ctx, &built.addition)?;
                constraint::settle(&mut table, built.addition);
            }
        }
        new.put_table(table);
        for id in self.affected.iter().filter(|_| new_step) {
            if let Some(t) = new.table(*id) {
                let next = Table { step: t.step + 1, ..(**t).clone() };
                new.put_table(next);
            }
        }
        write_changes(&ctx.txn, &ctx.catalog, &mut new)?;
        record.put(&ctx.txn)?;
        if building.is_none() {
            Record::forget_old(&ctx.txn)?;
        }
        ctx.db.commit_schema_change(&ctx.txn).map_err(kv_error)
    }

    /// Waits until nobody goes by the step before the newest.
    fn wait_for_users(&self) -> SqlResult<()> {
        let catalog = self.ctx.db.current_catalog()?;
        let tables = self.affected.iter().filter_map(|id| catalog.table(*id));
        for t in tables.filter(|t| t.step > 0) {
            let key = table_lock_key(t.id, t.step - 1);
            self.ctx.txn.await_key(&key, LockMode::Exclusive).map_err(kv_error)?;
        }
        Ok(())
    }
}
