//! The seam to general queries: SELECTs that our own point, span and family plans do not take.
//!
//! `braid-query` implements [`GeneralQueries`] on DataFusion; the server injects it into
//! [`crate::Database::open`]. This crate never names DataFusion. DML uses the same seam: for
//! `INSERT .. SELECT`, `UPDATE .. FROM` and friends it builds the SELECT that yields the rows to
//! write and runs that.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use braid_catalog::{Catalog, Column, id_of_oid};
use braid_env::memory::Account;
use braid_kv::Txn;
use braid_rows::Row;
use braid_types::{Collated, Datum, SqlResult, SqlType};
use sqlparser::ast;

use crate::answer::Answer;
use crate::database::Database;
use crate::explain::Explained;
use crate::session::SessionState;
use crate::session::types_in_reach;
use braid_scalar::{EvalContext, TypeNames};

/// A result column as clients see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnInfo {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: SqlType,
    /// OID of the table it comes from; 0 if computed.
    pub table_oid: u32,
    /// Column number in that table; 0 if computed.
    pub attnum: i16,
    /// Type modifier as the wire shows it; -1 for none.
    pub modifier: i32,
    /// Collation.
    pub collation: Collated,
}

impl ColumnInfo {
    /// A computed column.
    pub fn computed(name: impl Into<String>, ty: SqlType) -> ColumnInfo {
        let modifier = ty.typmod();
        let collation = Collated::Default;
        ColumnInfo { name: name.into(), ty, table_oid: 0, attnum: 0, modifier, collation }
    }

    /// Table oid and number, if it is a plain column of a table.
    pub(crate) fn origin(&self) -> Option<(u32, i16)> {
        (self.table_oid != 0).then_some((self.table_oid, self.attnum))
    }

    /// Takes over what its column was declared with beyond the type: `timestamp(3)`.
    pub(crate) fn as_declared(&mut self, catalog: &Catalog) {
        if let Some(modifier) = self.of_column(catalog, Column::typmod) {
            self.modifier = modifier;
        }
    }

    /// Something of the column of a table that it is, if it still has its type.
    pub(crate) fn of_column<T>(&self, catalog: &Catalog, what: fn(&Column) -> T) -> Option<T> {
        let table = catalog.shown_table(id_of_oid(self.table_oid)?)?;
        let column = table.column(u32::try_from(self.attnum).ok()?)?;
        (column.ty == self.ty).then(|| what(column))
    }
}

/// Rows, pulled in batches. Dropping it early ends the work behind it.
pub trait RowStream: Send {
    /// The next rows, never an empty batch; `None` at the end, and again when asked again.
    ///
    /// Blocks. Checks the cancel flag.
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>>;

    /// As [`RowStream::next_batch`], in columns where the stream has them so.
    fn next_answer(&mut self) -> SqlResult<Option<Answer>> {
        Ok(self.next_batch()?.map(Answer::Rows))
    }
}

/// How the names of columns begin that a subquery gives besides those that it was written with:
/// keys of the rows behind it. They are hidden, and nobody can type them.
pub const KEY_COLUMN: &str = "\0key ";

/// Rows that an earlier part of the statement has made, under the name that WITH gives them.
#[derive(Clone)]
pub struct GivenRows {
    /// What queries call them.
    pub name: String,
    /// Their columns; none if that part returns nothing.
    pub columns: Option<Vec<(String, SqlType)>>,
    /// The collations of these; of those that are not told that of the database.
    pub collations: Vec<Collated>,
    /// Table oid and number of those that are plain columns of a table.
    pub origins: Vec<Option<(u32, i16)>>,
    /// They are rows of the table that their columns are of, if those are all of its columns.
    pub of_table: bool,
    /// They, once that part has run.
    pub rows: Option<Arc<Vec<Row>>>,
}

/// What planning may look at.
#[derive(Clone)]
pub struct PlanContext {
    /// Descriptors as the transaction sees them.
    pub catalog: Arc<Catalog>,
    /// Name of the session's database.
    pub database: String,
    /// Effective search path, `pg_catalog` not included unless the user put it there.
    pub search_path: Vec<String>,
    /// The user.
    pub user: String,
    /// The database object, for live facts (settings, sessions).
    pub db: Arc<Database>,
    /// Evaluation context of the session, for constants known at planning; its `params` are empty.
    pub eval: EvalContext,
    /// Raised when the client cancels: planning stops with 57014.
    pub cancel: Arc<AtomicBool>,
    /// Rows that the query finds by name before it looks for tables.
    pub given: Arc<Vec<GivenRows>>,
}

impl PlanContext {
    /// Id of the session's database; 0 if it was dropped meanwhile.
    pub fn database_id(&self) -> u32 {
        self.catalog.database(&self.database).map_or(0, |d| d.id)
    }

    /// Types of users that can be named.
    pub fn types(&self) -> Option<Arc<dyn TypeNames>> {
        types_in_reach(&self.catalog, self.database_id(), &self.search_path)
    }
}

/// What running a plan may use.
#[derive(Clone)]
pub struct RunContext {
    /// The transaction; all reads go through it.
    pub txn: Arc<Txn>,
    /// As at planning, but of the running transaction.
    pub plan: PlanContext,
    /// Parameters, clock, session. `eval.params` holds the values of `$1`, `$2`, ...
    pub eval: EvalContext,
    /// Raised when the client cancels: stop with 57014.
    pub cancel: Arc<AtomicBool>,
    /// What the statement holds.
    pub memory: Arc<Account>,
    /// Whether several threads may read for it.
    pub side_by_side: SideBySide,
    /// Tables, by id, whose rows that others work on are passed over: the answer promises nothing
    /// about rows that it does not have, so the commit does not depend on them.
    pub passed_over: Arc<[u32]>,
}

/// Whether several threads may read for one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SideBySide {
    /// How many besides the first; there are no more threads than cores.
    /// `max_parallel_workers_per_gather`.
    pub helpers: usize,
    /// Bytes of a table from which on it is worth it. `min_parallel_table_scan_size`.
    pub least_bytes: u64,
}

impl SideBySide {
    /// One thread reads.
    pub const NEVER: SideBySide = SideBySide { helpers: 0, least_bytes: u64::MAX };
}

/// A planned query; may be run many times while the catalog's version stays.
pub trait GeneralPlan: Send + Sync {
    /// Result columns.
    fn columns(&self) -> &[ColumnInfo];
    /// Types of `$1`, `$2`, ...
    fn param_types(&self) -> &[SqlType];
    /// Of these the ones that are of domains, or arrays of them, with their oids.
    fn param_domains(&self) -> &[(usize, u32)] {
        &[]
    }
    /// Functions of users that it calls, not counting those that their bodies call.
    fn called(&self) -> &[u32] {
        &[]
    }
    /// Runs it.
    fn execute(&self, run: &RunContext) -> SqlResult<Box<dyn RowStream>>;
    /// The plan as lines; with `analyze` it is run (rows thrown away), and its operators say what
    /// they did. `as_kept`: the plan that executions share, not one for the values of this one.
    fn explain(&self, run: &RunContext, analyze: bool, as_kept: bool) -> SqlResult<Explained>;
}

/// Plans general queries.
pub trait GeneralQueries: Send + Sync {
    /// Functions over the catalog that expressions call (`pg_get_indexdef`, `format_type`, ..);
    /// `None` if the name is not known.
    fn catalog_function(
        &self,
        session: &SessionState,
        name: &str,
        args: &[Datum],
    ) -> SqlResult<Option<Datum>> {
        let _ = (session, name, args);
        Ok(None)
    }

    /// Whether its plans read columns: then large tables are for it.
    fn reads_columns(&self) -> bool {
        false
    }

    /// Plans a query. `declared` are parameter types that the client gave; others are inferred.
    fn plan(
        &self,
        query: &ast::Query,
        context: &PlanContext,
        declared: &[Option<SqlType>],
    ) -> SqlResult<Arc<dyn GeneralPlan>>;
}

/// Refuses every general query: for tools and tests that need none.
#[derive(Debug)]
pub struct NoGeneralQueries;

impl GeneralQueries for NoGeneralQueries {
    fn plan(
        &self,
        _query: &ast::Query,
        _context: &PlanContext,
        _declared: &[Option<SqlType>],
    ) -> SqlResult<Arc<dyn GeneralPlan>> {
        Err(braid_types::SqlError::unsupported("a general query without the query engine"))
    }
}
