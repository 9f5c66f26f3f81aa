//! Locking reads of any query: FOR UPDATE and FOR SHARE over joins, subqueries, and all that our
//! own plans do not take.
//!
//! ```text
//!   SELECT list FROM a JOIN b .. WHERE .. ORDER BY .. LIMIT 5 FOR UPDATE OF a SKIP LOCKED
//!
//!   query    SELECT list, a.key FROM a JOIN b .. WHERE .. ORDER BY ..
//!   locks    row by row in this order, until LIMIT has its rows
//! ```
//! The query is read at the statement's view. A row that somebody has changed since then ends the
//! try, as everywhere: the statement runs again, with a newer view and the locks that it has
//! (`session::retry`), so what it returns is true of the rows that it has locked.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use braid_catalog::{Relation, Table, kv_error};
use braid_kv::{LockItem, Target, Wait};
use braid_scalar::{Bound, ParamTypes, ident_name, object_name_parts};
use braid_types::{SqlError, SqlResult, SqlState, SqlType, quote_ident};
use braid_walk::Walk;
use bytes::Bytes;
use sqlparser::ast::{self, Visitor};

use super::super::build::limits;
use super::super::select::{Locking, count};
use super::lock_clauses::{What, check_lockable, clause, lockable_select, locked_in};
use super::lock_within::{append, open};
use crate::explain::{Explained, PlanLine};
use crate::general_query::{ColumnInfo, GeneralPlan, RowStream, RunContext};
use crate::session::{Context, VecRows};
use braid_rows::Row;
use braid_rows::TableLayout;

/// A planned locking read.
pub struct LockedPlan {
    rows: Arc<dyn GeneralPlan>,
    columns: Vec<ColumnInfo>,
    tables: Vec<LockedTable>,
    limit: Option<Bound>,
    offset: Option<Bound>,
    /// Tables whose rows are passed over if they are not free, and that the query reads for nothing
    /// else.
    passed_over: Arc<[u32]>,
}

/// A table whose rows are locked.
struct LockedTable {
    layout: Arc<TableLayout>,
    locking: Locking,
    /// Where in a row of the query its key stands.
    key: Range<usize>,
}

impl LockedPlan {
    /// The tables whose rows it locks.
    pub(crate) fn locked_tables(&self) -> Vec<u32> {
        self.tables.iter().map(|locked| locked.layout.table.id).collect()
    }

    /// Plans a query that ends with a locking clause.
    ///
    /// # Errors
    /// 0A000 where its rows cannot be locked; what is wrong with it otherwise.
    pub(crate) fn new(
        ctx: &Context,
        q: &ast::Query,
        params: &mut ParamTypes,
    ) -> SqlResult<LockedPlan> {
        lockable_select(q, &clause(&q.locks))?;
        let mut opened = q.clone();
        let mut tables = Vec::new();
        let mut keys = Vec::new();
        for inner in open(ctx, &mut opened)? {
            let first = keys.len();
            keys.extend(inner.key);
            let layout = Arc::new(TableLayout::new(&ctx.catalog, &inner.table)?);
            tables.push(LockedTable { layout, locking: inner.locking, key: first..keys.len() });
        }
        let q = &opened;
        let select = lockable_select(q, &clause(&q.locks))?;
        for (named, locking) in locked_in(select, &q.locks)? {
            let own = q.locks.iter().any(|lock| lock.of.is_some());
            let table = match named.what {
                What::Table(name) => table_of(ctx, q, name, own)?,
                What::Function if own => return Err(refused(q, "a function")),
                What::Function => None,
                // Its tables are among those that are locked already.
                What::Subquery => None,
            };
            let Some(table) = table else { continue };
            let alias = quote_ident(&named.alias);
            let columns = table.primary.columns.iter().filter_map(|k| table.column(k.column));
            let first = keys.len();
            keys.extend(columns.map(|c| format!("{alias}.{}", quote_ident(&c.name))));
            let layout = Arc::new(TableLayout::new(&ctx.catalog, &table)?);
            tables.push(LockedTable { layout, locking, key: first..keys.len() });
        }
        let passed_over = passed_over(ctx, q, &tables);
        let declared: Vec<Option<SqlType>> =
            (0..params.len()).map(|at| params.get(at).cloned()).collect();
        let query = with_keys(q, &keys)?;
        let rows = ctx.db.general().plan(&query, &ctx.plan_context(), &declared)?;
        for (at, ty) in rows.param_types().iter().enumerate() {
            params.decide(at, ty);
        }
        params.note_domains(rows.param_domains());
        if q.fetch.is_some() {
            return Err(SqlError::unsupported(format!("WITH TIES with {}", clause(&q.locks))));
        }
        let (limit, offset) = limits(q, params)?;
        let width = rows.columns().len() - keys.len();
        for table in &mut tables {
            table.key = table.key.start + width..table.key.end + width;
        }
        let columns = rows.columns()[..width].to_vec();
        Ok(LockedPlan { rows, columns, tables, limit, offset, passed_over })
    }

    /// Result columns.
    pub(crate) fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// Runs it: all of its rows are locked when this returns, so that it can be tried again.
    ///
    /// # Errors
    /// Conflicts, after which the statement is tried again; 55P03 with NOWAIT; those of the query.
    pub(crate) fn run(&self, ctx: &Context) -> SqlResult<Box<dyn RowStream>> {
        let limit = count(&self.limit, "LIMIT", ctx)?;
        let mut skip = count(&self.offset, "OFFSET", ctx)?.unwrap_or(0);
        let mut left = limit.unwrap_or(u64::MAX);
        // Rows that are somebody's must not move away, nor go with their table.
        self.tables.iter().try_for_each(|table| ctx.lock_shape(&table.layout.table))?;
        let run = ctx.run_context_of(&*self.rows);
        let run = RunContext { passed_over: self.passed_over.clone(), ..run };
        let mut stream = self.rows.execute(&run)?;
        let mut out: Vec<Row> = Vec::new();
        while left > 0
            && let Some(batch) = stream.next_batch()?
        {
            let mut batch = batch.into_iter().peekable();
            while left > 0 && batch.peek().is_some() {
                ctx.check_cancel()?;
                let wanted = usize::try_from(left.saturating_add(skip)).unwrap_or(usize::MAX);
                let most = wanted.min((ctx.txn.batch_max() / self.tables.len().max(1)).max(1));
                let piece: Vec<Row> = batch.by_ref().take(most).collect();
                let first = out.len();
                for row in self.lock_all(ctx, piece)? {
                    if skip > 0 {
                        skip -= 1;
                    } else {
                        left -= 1;
                        out.push(row);
                    }
                }
                ctx.keep_rows("locked rows", &out[first..])?;
            }
        }
        Ok(Box::new(VecRows::new(out)))
    }

    /// Locks rows, those that are free in one request; without those that are passed over.
    fn lock_all(&self, ctx: &Context, rows: Vec<Row>) -> SqlResult<Vec<Row>> {
        let mut keyed = Vec::new();
        for row in rows {
            let keys = self.tables.iter().map(|table| {
                let key = table.layout.rows.prefix(&row[table.key.clone()])?;
                Ok(Bytes::from(key))
            });
            keyed.push((keys.collect::<SqlResult<Vec<Bytes>>>()?, row));
        }
        if keyed.len() > 1 {
            self.ask_ahead(ctx, &keyed)?;
        }
        let mut out = Vec::new();
        for (keys, mut row) in keyed {
            let each = self.tables.iter().zip(&keys);
            let taken = each.map(|(table, key)| table.locking.take(ctx, key, &table.layout.table));
            if taken.collect::<SqlResult<Vec<bool>>>()?.contains(&false) {
                continue;
            }
            row.truncate(self.columns.len());
            out.push(row);
        }
        Ok(out)
    }

    /// Asks for the locks of many rows at once. Those that are not free are waited for, or passed
    /// over, when their row comes.
    fn ask_ahead(&self, ctx: &Context, rows: &[(Vec<Bytes>, Row)]) -> SqlResult<()> {
        let (mut waiting, mut skipping) = (Vec::new(), Vec::new());
        for (table, at) in self.tables.iter().zip(0..) {
            let items = rows.iter().map(|(keys, _)| LockItem {
                target: Target::Key(keys[at].clone()),
                mode: table.locking.mode,
                check: true,
            });
            match table.locking.wait {
                Wait::SkipLocked => skipping.extend(items),
                Wait::Block | Wait::NoWait => waiting.extend(items),
            }
        }
        if !waiting.is_empty() {
            ctx.txn.lock_ahead(waiting).map_err(kv_error)?;
        }
        if !skipping.is_empty() {
            ctx.txn.lock_ahead_skipping(skipping).map_err(kv_error)?;
        }
        Ok(())
    }

    /// EXPLAIN.
    pub(crate) fn explain(&self, ctx: &Context, analyze: bool) -> SqlResult<Explained> {
        let tables = self
            .tables
            .iter()
            .map(|table| format!("{} ({:?})", table.layout.table.name, table.locking.mode));
        let tables = tables.collect::<Vec<_>>().join(", ");
        let mut lines = vec![PlanLine::operator(format!("lock rows: {tables}"), "LockRows", None)];
        let run = ctx.run_context_of(&*self.rows);
        let below = self.rows.explain(&run, analyze, false)?;
        lines.extend(below.lines.into_iter().map(PlanLine::indented));
        Ok(Explained { lines, rows: below.rows })
    }
}

/// The table that a name in FROM means; `None` for a query of WITH, whose rows are not locked.
/// `own`: the clause names it.
fn table_of(
    ctx: &Context,
    q: &ast::Query,
    name: &ast::ObjectName,
    own: bool,
) -> SqlResult<Option<Arc<Table>>> {
    let parts = object_name_parts(name);
    if let [bare] = parts.as_slice() {
        let within = q.with.iter().flat_map(|with| &with.cte_tables);
        let given = within.into_iter().any(|cte| ident_name(&cte.alias.name) == *bare)
            || ctx.with.as_ref().is_some_and(|with| with.names(bare));
        if given && own {
            return Err(refused(q, "a WITH query"));
        } else if given {
            return Ok(None);
        }
    }
    match ctx.relation(&parts)? {
        Relation::Table(t) | Relation::Partition(t) => {
            check_lockable(&t)?;
            Ok(Some(t))
        }
        other => {
            let text = format!("cannot lock rows in {} \"{}\"", other.kind(), parts.join("."));
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text))
        }
    }
}

/// Tables that SKIP LOCKED is about, and that nothing else in the query names.
fn passed_over(ctx: &Context, q: &ast::Query, tables: &[LockedTable]) -> Arc<[u32]> {
    let skips = |table: &LockedTable| table.locking.wait == Wait::SkipLocked;
    if !tables.iter().any(skips) {
        return Arc::default();
    }
    let mut names = Names(Vec::new());
    let _ = q.walk(&mut names);
    let mut read = Vec::new();
    for name in &names.0 {
        match ctx.relation(name) {
            Ok(Relation::Table(t) | Relation::Partition(t)) => read.push(t.id),
            // Who knows what it reads.
            Ok(Relation::View(_)) => return Arc::default(),
            _ => {}
        }
    }
    let once = |id: &u32| read.iter().filter(|read| *read == id).count() == 1;
    let skipping = tables.iter().filter(|table| skips(table));
    skipping.map(|table| table.layout.table.id).filter(once).collect()
}

/// Collects the relations that are named.
struct Names(Vec<Vec<String>>);

impl Visitor for Names {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ast::ObjectName) -> ControlFlow<()> {
        self.0.push(object_name_parts(relation));
        ControlFlow::Continue(())
    }
}

fn refused(q: &ast::Query, what: &str) -> SqlError {
    let text = format!("{} cannot be applied to {what}", clause(&q.locks));
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
}

/// The query with keys behind its columns, without what comes after locking.
fn with_keys(q: &ast::Query, keys: &[String]) -> SqlResult<ast::Query> {
    let mut query = ast::Query { locks: Vec::new(), limit_clause: None, ..q.clone() };
    if keys.is_empty() {
        return Ok(query);
    }
    if let ast::SetExpr::Select(select) = &mut *query.body {
        append(select, keys)?;
    }
    Ok(query)
}
