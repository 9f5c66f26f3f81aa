//! Common table expressions that are computed once: those that call a volatile function, those
//! that are named more than once, those declared MATERIALIZED.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use braid_scalar::object_name_parts;
use braid_sql::GivenRows;
use braid_types::{SqlError, SqlResult, SqlState, SqlType};
use braid_walk::Walk;
use sqlparser::ast::{self, Visitor};

use super::from::Item;
use super::{Binder, Bounded, Cte};
use crate::exec::materialized::Materialized;
use crate::exec::table::Source;

/// What a query says about a name.
struct Facts<'a> {
    name: &'a str,
    uses: usize,
}

impl Visitor for Facts<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ast::ObjectName) -> ControlFlow<()> {
        self.uses += usize::from(*object_name_parts(relation) == [self.name]);
        ControlFlow::Continue(())
    }
}

/// How often a query names a table.
fn uses(query: &ast::Query, name: &str) -> usize {
    let mut facts = Facts { name, uses: 0 };
    let _ = query.walk(&mut facts);
    facts.uses
}

impl Binder<'_> {
    /// The CTE as one that is computed once, if it is to be: `whole` is the query with its WITH.
    pub(super) fn shared_cte(
        &mut self,
        cte: &ast::Cte,
        whole: &ast::Query,
        entry: &Cte,
    ) -> SqlResult<Option<Cte>> {
        let Cte::Query { name, columns, query, recursive } = entry else { return Ok(None) };
        let volatile = self.params.calls_volatile(&**query);
        let wanted = match &cte.materialized {
            Some(ast::CteAsMaterialized::Materialized) => true,
            Some(ast::CteAsMaterialized::NotMaterialized) => volatile,
            None => volatile || uses(whole, name) - uses(&cte.query, name) > 1,
        };
        // Inside of a recursive term the work table changes from step to step.
        if !wanted || self.ctes.iter().any(|c| matches!(c, Cte::Work { .. })) {
            return Ok(None);
        }
        let before = self.level().outer.len();
        let bound = self.isolated(|b| {
            if *recursive { b.recursive_query(name, columns, query) } else { b.query(query) }
        })?;
        if self.level().outer.len() > before {
            // It depends on the row around it: each use computes it for that row.
            self.level().outer.truncate(before);
            return Ok(None);
        }
        check_width(name, columns, &bound)?;
        let shown: Vec<(String, SqlType)> = bound
            .columns
            .iter()
            .enumerate()
            .map(|(at, c)| (columns.get(at).unwrap_or(&c.name).clone(), c.ty.clone()))
            .collect();
        let collations = bound.columns.iter().map(|c| c.collation.clone()).collect();
        let origins = bound.columns.iter().map(|c| c.origin).collect();
        let names = names_apart(shown.iter().map(|(name, _)| name.as_str()));
        let columns = bound.columns.into_iter().zip(names).map(|(c, name)| c.expr.alias(name));
        let rows = Materialized::new(bound.plan, columns.collect(), volatile)?;
        let (name, rows) = (name.clone(), Arc::new(rows));
        Ok(Some(Cte::Shared { name, columns: shown, collations, origins, rows }))
    }
}

impl Binder<'_> {
    /// Judges a query that nobody names: it is not computed, but it must be right.
    pub(super) fn check_unused(
        &mut self,
        cte: &ast::Cte,
        whole: &ast::Query,
        entry: &Cte,
    ) -> SqlResult<()> {
        let Cte::Query { name, columns, query, recursive } = entry else { return Ok(()) };
        if uses(whole, name) > uses(&cte.query, name) {
            return Ok(());
        }
        let before = self.level().outer.len();
        let bound = self.isolated(|b| {
            if *recursive { b.recursive_query(name, columns, query) } else { b.query(query) }
        })?;
        self.level().outer.truncate(before);
        check_width(name, columns, &bound)
    }
}

/// Names of columns that may be called the same, which the engine must tell apart.
pub(super) fn names_apart<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    let apart = |(at, name): (usize, &'a str)| match seen.insert(name) {
        true => name.to_string(),
        false => format!("{name}\0{at}"),
    };
    names.enumerate().map(apart).collect()
}

/// 0A000 if something in a query of WITH writes: only the WITH of a whole statement may have such,
/// and that is taken apart before its queries come here.
pub(super) fn check_only_reads(query: &ast::Query) -> SqlResult<()> {
    struct Writing;
    impl Visitor for Writing {
        type Break = ();
        fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
            use ast::SetExpr::{Delete, Insert, Merge, Update};
            match &*query.body {
                Insert(_) | Update(_) | Delete(_) | Merge(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    if query.walk(&mut Writing).is_break() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "WITH clause containing a data-modifying statement must be at the top level",
        ));
    }
    Ok(())
}

impl Binder<'_> {
    /// The rows of an earlier part of the statement.
    pub(super) fn given_item(&mut self, given: GivenRows, shown: &str) -> SqlResult<Item> {
        let GivenRows { name, columns, collations, origins, of_table, rows } = given;
        let columns = columns.ok_or_else(|| {
            SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("WITH query \"{name}\" does not have a RETURNING clause"),
            )
        })?;
        self.bind_anew();
        let rows = Source::Given(rows.unwrap_or_default());
        let mut item = self.scan_item(&name, shown, None, columns, rows)?;
        item.collate(collations);
        let mut item = self.coming_from(item, origins);
        item.origins.iter_mut().flatten().for_each(|origin| origin.whole = of_table);
        Ok(item)
    }
}

/// 42P10 for more column names than columns.
pub(super) fn check_width(name: &str, columns: &[String], bound: &Bounded) -> SqlResult<()> {
    if columns.len() > bound.columns.len() {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "WITH query \"{name}\" has {} columns available but {} columns specified",
                bound.columns.len(),
                columns.len()
            ),
        ));
    }
    Ok(())
}
