//! Queries that lock rows, inside of other statements, go into WITH.
//!
//! ```text
//!   DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
//!
//!   WITH "locked rows 1" AS (SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
//!   DELETE FROM jobs WHERE id = (SELECT * FROM "locked rows 1")
//! ```
//! So they run once, before what is around them, and nothing but WITH needs to know how rows are
//! locked. PostgreSQL runs such a query when it comes to it: never, once or, in the inner side of a
//! join, again and again with other rows each time, which its users are warned of. One that depends
//! on the query around it cannot go there; whoever plans it says so ([`is_moved`]).

use std::ops::ControlFlow;

use braid_types::{SqlError, SqlResult};
use braid_walk::{Walk, WalkMut};
use sqlparser::ast::{self, SetExpr, Statement, Visitor, VisitorMut};

use crate::lexical::not_with_sets;

/// What names of queries begin with that were moved.
const PREFIX: &str = "locked rows ";

/// Whether a query of WITH stood somewhere else when the statement was written.
pub fn is_moved(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Moves them.
///
/// # Errors
/// 0A000 where the rows of a set operation would be locked, or those of a part of one.
pub(crate) fn move_into_with(statement: Statement) -> SqlResult<Statement> {
    if let ControlFlow::Break(error) = statement.walk(&mut OfSets(Vec::new())) {
        return Err(error);
    }
    Ok(moved_into_with(statement))
}

/// Finds locks on rows of set operations. Of a recursive query it is said otherwise that it locks
/// nothing: those are passed over, by their places.
struct OfSets(Vec<*const ast::Query>);

impl Visitor for OfSets {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<SqlError> {
        for with in query.with.iter().filter(|with| with.recursive) {
            self.0.extend(with.cte_tables.iter().map(|cte| std::ptr::from_ref(&*cte.query)));
        }
        let is_set = matches!(&*query.body, SetExpr::SetOperation { .. });
        if !is_set || self.0.contains(&std::ptr::from_ref(query)) {
            return ControlFlow::Continue(());
        }
        match query.locks.first().or_else(|| lock_of_part(&query.body)) {
            Some(lock) => ControlFlow::Break(not_with_sets(&format!("FOR {}", lock.lock_type))),
            None => ControlFlow::Continue(()),
        }
    }
}

/// What locks a part of a set operation.
fn lock_of_part(body: &SetExpr) -> Option<&ast::LockClause> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            lock_of_part(left).or_else(|| lock_of_part(right))
        }
        SetExpr::Query(query) => query.locks.first().or_else(|| lock_of_part(&query.body)),
        _ => None,
    }
}

fn moved_into_with(statement: Statement) -> Statement {
    let mut moved = 0;
    match statement {
        Statement::Query(mut query) => {
            in_query(&mut query, &mut moved);
            Statement::Query(query)
        }
        Statement::Update(_) | Statement::Delete(_) | Statement::Merge(_) => {
            let mut statement = statement;
            let ctes = inside(&mut statement, &mut moved);
            if ctes.is_empty() {
                return statement;
            }
            let body = match statement {
                Statement::Update(_) => SetExpr::Update(statement),
                Statement::Delete(_) => SetExpr::Delete(statement),
                _ => SetExpr::Merge(statement),
            };
            let mut query = empty_query();
            *query.body = body;
            add(&mut query, ctes);
            Statement::Query(query)
        }
        other => other,
    }
}

/// What a query, or one of its WITH, locks itself stays: those are no queries inside of others.
fn in_query(query: &mut ast::Query, moved: &mut usize) {
    let mut ctes = Vec::new();
    let mut with = query.with.take();
    for mut cte in with.iter_mut().flat_map(|with| with.cte_tables.drain(..)) {
        let locks = std::mem::take(&mut cte.query.locks);
        ctes.extend(inside(&mut *cte.query, moved));
        cte.query.locks = locks;
        ctes.push(cte);
    }
    let locks = std::mem::take(&mut query.locks);
    ctes.extend(inside(query, moved));
    (query.with, query.locks) = (with, locks);
    add(query, ctes);
}

/// Adds queries to those of WITH.
fn add(query: &mut ast::Query, ctes: Vec<ast::Cte>) {
    if ctes.is_empty() {
        return;
    }
    let with = query.with.get_or_insert_with(|| empty_with(PREFIX).0);
    with.cte_tables = ctes;
}

/// Takes the locking queries out of something.
fn inside(node: &mut impl WalkMut, moved: &mut usize) -> Vec<ast::Cte> {
    let mut taker = Taker { moved, ctes: Vec::new() };
    let _ = node.walk_mut(&mut taker);
    taker.ctes
}

struct Taker<'a> {
    moved: &'a mut usize,
    ctes: Vec<ast::Cte>,
}

impl VisitorMut for Taker<'_> {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        if query.locks.is_empty() {
            return ControlFlow::Continue(());
        }
        *self.moved += 1;
        let (mut with, rest) = empty_with(&format!("{PREFIX}{}", self.moved));
        if let Some(mut cte) = with.cte_tables.pop() {
            *cte.query = std::mem::replace(query, rest);
            self.ctes.push(cte);
        }
        ControlFlow::Continue(())
    }
}

/// A WITH that names one query so, and a query of all its rows.
fn empty_with(name: &str) -> (ast::With, ast::Query) {
    let text = format!("WITH \"{name}\" AS (SELECT 1) SELECT * FROM \"{name}\"");
    let mut query = crate::parse_query(&text).expect("it is a query");
    let with = query.with.take().expect("it has a WITH");
    (with, *query)
}

fn empty_query() -> Box<ast::Query> {
    crate::parse_query("SELECT 1").expect("it is a query")
}

#[cfg(test)]
mod tests {
    use crate::{Kind, parse_script};

    fn moved(sql: &str) -> String {
        let all = parse_script(sql).unwrap();
        match &*all[0].kind {
            Kind::Sql(statement) => statement.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn locking_queries_inside_of_others_run_before_them() {
        assert_eq!(
            moved("DELETE FROM q WHERE id = (SELECT id FROM q LIMIT 1 FOR UPDATE SKIP LOCKED)"),
            "WITH \"locked rows 1\" AS (SELECT id FROM q LIMIT 1 FOR UPDATE SKIP LOCKED) \
             DELETE FROM q WHERE id = (SELECT * FROM \"locked rows 1\")"
        );
        let own = "WITH a AS (SELECT * FROM t FOR UPDATE)";
        let share = "SELECT * FROM u FOR SHARE";
        let main = "SELECT * FROM b FOR UPDATE";
        assert_eq!(
            moved(&format!("{own}, b AS (SELECT * FROM ({share}) s) {main}")),
            format!(
                "{own}, \"locked rows 1\" AS ({share}), \
                 b AS (SELECT * FROM (SELECT * FROM \"locked rows 1\") s) {main}"
            )
        );
        let plain = "UPDATE t SET a = (SELECT 1) WHERE b IN (SELECT 2)";
        assert_eq!(moved(plain), plain);
    }
}
