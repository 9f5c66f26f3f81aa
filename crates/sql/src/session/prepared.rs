//! Prepared statements: a statement with its plan for one picture of the catalog.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use braid_catalog::Catalog;
use braid_types::SqlType;
use parking_lot::Mutex;
use sqlparser::ast::{self, SetExpr};

use super::Context;
use super::cursors::CursorTable;
use crate::copy::copied_table;
use crate::dml::{DeletePlan, InsertPlan, MergePlan, UpdatePlan, WithPlan};
use crate::general_query::{ColumnInfo, GeneralPlan};
use crate::plan::SelectPlan;
use crate::plan::locked::LockedPlan;
use crate::runtime::statements::Counted;
use crate::statement::{Effect, Entry};
use braid_parser::{DeclareCursor, Digests, Kind, Show, Statement};

/// A statement that was planned and can be executed.
pub struct Prepared {
    pub(crate) statement: Statement,
    /// What its type says.
    pub(crate) entry: &'static Entry,
    pub(crate) plan: Plan,
    pub(crate) columns: Option<Vec<ColumnInfo>>,
    pub(crate) params: Vec<SqlType>,
    /// Of these the ones that are of domains, or arrays of them, with their oids.
    pub(crate) domains: Vec<(usize, u32)>,
    pub(crate) basis: Basis,
    /// Where its executions are counted.
    pub(crate) counted: Mutex<Option<Arc<Counted>>>,
    /// Nanoseconds that planning took; 0 once they were counted.
    pub(crate) planned: AtomicU64,
    /// Whether literals stand behind its parameters ([`super::shapes`]).
    pub(crate) is_of_shape: bool,
    /// By what it is denied, once somebody denies anything.
    pub(crate) digests: OnceLock<Digests>,
    /// The same statement planned for what has changed since: whoever holds this one uses that.
    pub(crate) newer: Mutex<Option<Arc<Prepared>>>,
}

/// What a plan was made by: another one means planning again.
pub(crate) struct Basis {
    catalog: Arc<Catalog>,
    search_path: Arc<Vec<String>>,
    /// What was known of the tables' rows: see [`crate::Database::statistics_version`].
    statistics: u64,
    asks_references: bool,
}

impl Basis {
    pub(super) fn of(ctx: &Context, statistics: u64) -> Basis {
        Basis {
            catalog: ctx.catalog.clone(),
            search_path: ctx.search_path.clone(),
            statistics,
            asks_references: ctx.asks_references(),
        }
    }
}

/// How a statement is run.
pub(crate) enum Plan {
    /// Own SELECT.
    Select(Arc<SelectPlan>),
    /// DataFusion's.
    General(Arc<dyn GeneralPlan>),
    /// SELECT whose rows are locked, and that is none of ours.
    Locked(Arc<LockedPlan>),
    /// INSERT.
    Insert(Arc<InsertPlan>),
    /// UPDATE.
    Update(Arc<UpdatePlan>),
    /// DELETE.
    Delete(Arc<DeletePlan>),
    /// MERGE.
    Merge(Arc<MergePlan>),
    /// WITH over what writes.
    With(Arc<WithPlan>),
    /// DECLARE CURSOR.
    Declare(Arc<DeclarePlan>),
    /// Run from the parsed statement.
    Utility,
}

/// A cursor and the plan of its rows.
pub(crate) struct DeclarePlan {
    pub(crate) cursor: DeclareCursor,
    /// Of a query.
    pub(crate) rows: Plan,
    pub(crate) columns: Vec<ColumnInfo>,
    /// The tables whose keys stand behind the columns of its rows.
    pub(crate) tables: Vec<CursorTable>,
}

impl Prepared {
    /// Types of `$1`, `$2`, ...
    pub fn param_types(&self) -> &[SqlType] {
        &self.params
    }

    /// The types of `$1`, `$2`, ... as clients are told them: of a domain the domain.
    pub fn param_oids(&self) -> Vec<u32> {
        let mut oids: Vec<u32> = self.params.iter().map(SqlType::oid).collect();
        for (at, domain) in &self.domains {
            if let Some(oid) = oids.get_mut(*at) {
                *oid = *domain;
            }
        }
        oids
    }

    /// The same with parameters that were declared as ones of domains. Nobody else has it yet.
    pub(super) fn of_domains(self: Arc<Self>, declared: Vec<(usize, u32)>) -> Arc<Prepared> {
        if declared.is_empty() {
            return self;
        }
        match Arc::try_unwrap(self) {
            Ok(mut own) => {
                own.domains.extend(declared);
                Arc::new(own)
            }
            Err(shared) => shared,
        }
    }

    /// Result columns, if it returns rows.
    pub fn columns(&self) -> Option<&[ColumnInfo]> {
        self.columns.as_deref()
    }

    /// The statement.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// Whether the plan is good for this catalog, and for what is known of the tables now.
    pub(super) fn fits(&self, ctx: &Context) -> bool {
        let basis = &self.basis;
        Arc::ptr_eq(&basis.catalog, &ctx.catalog)
            && basis.search_path == ctx.search_path
            && basis.statistics == ctx.db.statistics_version()
            && basis.asks_references == ctx.asks_references()
    }

    /// Whether it can run in a read-only transaction whose end nobody waits for.
    pub(crate) fn only_reads(&self) -> bool {
        match self.entry.effect {
            Effect::Reads => true,
            Effect::None | Effect::Writes | Effect::AsExplained => false,
            Effect::AsPlanned => match &self.plan {
                Plan::Select(s) => !s.locks_rows(),
                Plan::General(_) => true,
                _ => false,
            },
        }
    }

    /// Whether all tables whose rows it writes or locks are temporary ones.
    pub(crate) fn only_writes_temporary(&self, ctx: &Context) -> bool {
        let tables = match &self.plan {
            Plan::Select(s) => s.locked_table().into_iter().collect(),
            Plan::Locked(l) => l.locked_tables(),
            Plan::Insert(i) => vec![i.table()],
            Plan::Update(u) => vec![u.table()],
            Plan::Delete(d) => vec![d.table()],
            Plan::Merge(m) => m.written_tables(),
            Plan::With(w) => w.written_tables(),
            Plan::Utility => match &*self.statement.kind {
                Kind::Copy(c) if !c.to => copied_table(ctx, c).map_or(Vec::new(), |t| vec![t.id]),
                _ => Vec::new(),
            },
            Plan::General(_) | Plan::Declare(_) => Vec::new(),
        };
        !tables.is_empty() && tables.iter().all(|id| ctx.is_temporary(*id))
    }

    /// SHOW of a setting: it looks at nothing that a view of the data shows.
    pub(super) fn shows_a_setting(&self) -> bool {
        matches!(&*self.statement.kind, Kind::Show(Show::Variable(_)))
    }

    /// Whether it is a query without FROM: what fails of it mostly are constants, which PostgreSQL
    /// computes while it plans.
    pub fn is_without_from(&self) -> bool {
        let Kind::Sql(statement) = &*self.statement.kind else { return false };
        let ast::Statement::Query(query) = &**statement else { return false };
        matches!(&*query.body, SetExpr::Select(select) if select.from.is_empty())
    }

    /// What error messages call it.
    pub(super) fn name(&self) -> &'static str {
        match &self.plan {
            Plan::Select(s) if s.locks_rows() => "SELECT FOR UPDATE",
            Plan::Locked(_) => "SELECT FOR UPDATE",
            Plan::With(w) => w.verb(),
            _ => self.entry.name,
        }
    }
}
