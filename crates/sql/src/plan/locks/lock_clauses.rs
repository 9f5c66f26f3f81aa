//! FOR UPDATE and FOR SHARE as they are written: which tables of FROM, how strongly, and who waits.

use std::ops::ControlFlow;

use braid_catalog::Table;
use braid_kv::{LockMode, Wait};
use braid_scalar::{ident_name, is_aggregate, object_name_parts};
use braid_types::{SqlError, SqlResult, SqlState};
use braid_walk::Walk;
use sqlparser::ast::{self, GroupByExpr, JoinOperator, SetExpr, TableFactor, Visitor};

use super::super::select::Locking;

/// Something that FROM names.
pub(in crate::plan) struct Named<'a> {
    /// What the query calls it.
    pub(in crate::plan) alias: String,
    pub(in crate::plan) what: What<'a>,
    /// A join may put NULLs in its place.
    nullable: bool,
}

/// What it is.
pub(in crate::plan) enum What<'a> {
    Table(&'a ast::ObjectName),
    Function,
    Subquery,
}

/// How the rows of something are locked: by the strongest clause that is about it.
///
/// PostgreSQL's rules: of several clauses the stronger lock counts, and of how to wait NOWAIT
/// before SKIP LOCKED before waiting.
pub(in crate::plan) fn locking_of(locks: &[ast::LockClause], alias: &str) -> Option<Locking> {
    let about = |lock: &&ast::LockClause| named(lock).is_none_or(|name| name == alias);
    let each = locks.iter().filter(about).map(|lock| {
        let mode = match lock.lock_type {
            ast::LockType::Update => LockMode::Exclusive,
            ast::LockType::Share => LockMode::Shared,
        };
        let wait = match lock.nonblock {
            None => Wait::Block,
            Some(ast::NonBlock::Nowait) => Wait::NoWait,
            Some(ast::NonBlock::SkipLocked) => Wait::SkipLocked,
        };
        Locking { mode, wait }
    });
    let urgency = |wait| match wait {
        Wait::Block => 0,
        Wait::SkipLocked => 1,
        Wait::NoWait => 2,
    };
    each.reduce(|a, b| Locking {
        mode: if a.mode == LockMode::Exclusive { a.mode } else { b.mode },
        wait: if urgency(a.wait) >= urgency(b.wait) { a.wait } else { b.wait },
    })
}

/// The name behind OF.
pub(in crate::plan) fn named(lock: &ast::LockClause) -> Option<String> {
    lock.of.as_ref().and_then(|name| object_name_parts(name).pop())
}

/// As the clause begins, for messages.
pub(in crate::plan) fn clause(locks: &[ast::LockClause]) -> String {
    let kind = locks.first().map_or(ast::LockType::Update, |lock| lock.lock_type);
    format!("FOR {kind}")
}

/// 42809 for what keeps the rows of a query.
pub(in crate::plan) fn check_lockable(table: &Table) -> SqlResult<()> {
    if table.materialized().is_none() {
        return Ok(());
    }
    let text = format!("cannot lock rows in materialized view \"{}\"", table.name);
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text))
}

/// The SELECT of a query whose rows can be locked.
///
/// # Errors
/// 0A000 where a row of the result is no row of a table, as in PostgreSQL; `clause` locks them.
pub(in crate::plan) fn lockable_select<'a>(
    q: &'a ast::Query,
    clause: &str,
) -> SqlResult<&'a ast::Select> {
    let refuse = |what: &str| {
        let text = format!("{clause} is not allowed with {what}");
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text))
    };
    let select = match &*q.body {
        SetExpr::Select(select) => select,
        SetExpr::Values(_) => {
            let text = format!("{clause} cannot be applied to VALUES");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        }
        SetExpr::SetOperation { .. } => return refuse("UNION/INTERSECT/EXCEPT"),
        _ => {
            return Err(SqlError::unsupported(format!("{clause} in this query"))
                .with_hint("Write it inside of the parentheses."));
        }
    };
    let grouped =
        !matches!(&select.group_by, GroupByExpr::Expressions(e, m) if e.is_empty() && m.is_empty());
    if select.distinct.is_some() {
        return refuse("DISTINCT clause");
    } else if grouped {
        return refuse("GROUP BY clause");
    } else if select.having.is_some() {
        return refuse("HAVING clause");
    }
    match calls_that_gather(&select.projection) {
        Some("set-returning functions") => refuse("set-returning functions in the target list"),
        Some(what) => refuse(what),
        None => Ok(select),
    }
}

/// What a select list calls that makes its rows other ones than those of FROM.
pub(crate) fn calls_that_gather(list: &[ast::SelectItem]) -> Option<&'static str> {
    list.iter().find_map(|item| match item.walk(&mut Calls(0)) {
        ControlFlow::Break(what) => Some(what),
        ControlFlow::Continue(()) => None,
    })
}

/// Looks for calls of aggregates and window functions; subqueries have their own. How deep it is in
/// them.
struct Calls(usize);

impl Visitor for Calls {
    type Break = &'static str;

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<&'static str> {
        self.0 += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<&'static str> {
        self.0 -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<&'static str> {
        let ast::Expr::Function(f) = expr else { return ControlFlow::Continue(()) };
        if self.0 > 0 {
            return ControlFlow::Continue(());
        }
        let name = object_name_parts(&f.name).pop().unwrap_or_default();
        if f.over.is_some() {
            ControlFlow::Break("window functions")
        } else if is_aggregate(&name) {
            ControlFlow::Break("aggregate functions")
        } else if braid_scalar::is_set_returning(&name) {
            ControlFlow::Break("set-returning functions")
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// What FROM names, and is to be locked.
///
/// # Errors
/// 42P01 for a name behind OF that FROM does not have; 0A000 for the side of an outer join that may
/// be NULL.
pub(in crate::plan) fn locked_in<'a>(
    select: &'a ast::Select,
    locks: &[ast::LockClause],
) -> SqlResult<Vec<(Named<'a>, Locking)>> {
    let mut all = Vec::new();
    for from in &select.from {
        joined(from, false, &mut all);
    }
    check_names(&all, locks)?;
    let mut out = Vec::new();
    for one in all {
        let Some(locking) = locking_of(locks, &one.alias) else { continue };
        if one.nullable {
            let text = "cannot be applied to the nullable side of an outer join";
            let text = format!("{} {text}", clause(locks));
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        }
        out.push((one, locking));
    }
    Ok(out)
}

fn check_names(all: &[Named<'_>], locks: &[ast::LockClause]) -> SqlResult<()> {
    for lock in locks {
        let Some(name) = named(lock) else { continue };
        if !all.iter().any(|one| one.alias == name) {
            let clause = clause(std::slice::from_ref(lock));
            return Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{name}\" in {clause} clause not found in FROM clause"),
            ));
        }
    }
    Ok(())
}

fn joined<'a>(from: &'a ast::TableWithJoins, nullable: bool, out: &mut Vec<Named<'a>>) {
    let first = out.len();
    factor(&from.relation, nullable, out);
    for join in &from.joins {
        let (left, right) = match &join.join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (false, true),
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
            JoinOperator::FullOuter(_) => (true, true),
            _ => (false, false),
        };
        out[first..].iter_mut().for_each(|one| one.nullable |= left);
        factor(&join.relation, nullable || right, out);
    }
}

fn factor<'a>(factor: &'a TableFactor, nullable: bool, out: &mut Vec<Named<'a>>) {
    let (alias, what) = match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => {
            return joined(table_with_joins, nullable, out);
        }
        TableFactor::Table { name, alias, args: None, .. } => {
            let own = || object_name_parts(name).pop().unwrap_or_default();
            (alias.as_ref().map_or_else(own, |a| ident_name(&a.name)), What::Table(name))
        }
        TableFactor::Derived { alias, .. } => (alias_of(alias.as_ref()), What::Subquery),
        TableFactor::Table { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::TableFunction { alias, .. } => (alias_of(alias.as_ref()), What::Function),
        _ => (String::new(), What::Function),
    };
    out.push(Named { alias, what, nullable });
}

fn alias_of(alias: Option<&ast::TableAlias>) -> String {
    alias.map(|a| ident_name(&a.name)).unwrap_or_default()
}
