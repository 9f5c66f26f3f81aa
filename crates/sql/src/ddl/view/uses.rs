//! What a view's query uses of a table, as far as its text tells.
//!
//! Views keep their query as text, in which what it gives is written out (`stars.rs`). So a column
//! that the text nowhere names is not used, unless something stands for all columns: a star inside,
//! NATURAL, a whole row. Whoever is in doubt takes it for used.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use braid_catalog::Definition;
use braid_parser::{parse_query, take_join_alias};
use braid_scalar::{ident_name, object_name_parts};
use braid_types::SqlResult;
use braid_walk::{Walk, WalkMut};
use sqlparser::ast::{
    self, Expr, JoinConstraint, JoinOperator, SelectItem, SetExpr, TableFactor, Visitor, VisitorMut,
};

use super::stars::ident;

/// Whether a query may use a column of a table.
pub fn may_use_column(definition: &Definition, table: &str, column: &str) -> bool {
    let Ok(query) = parse_query(&definition.query) else { return true };
    let mut names = Names::default();
    let _ = query.walk(&mut names);
    let is_it = |(of, name): &(Option<String>, String)| {
        let of = of.as_ref().and_then(|of| names.relations.get(of));
        name == column && of.is_none_or(|of| of.contains(table))
            || names.relations.contains_key(name)
    };
    names.all_columns || names.used.iter().any(is_it)
}

/// Names that a query uses as columns, and what its relations are called.
#[derive(Default)]
struct Names {
    /// With what stands in front of them.
    used: BTreeSet<(Option<String>, String)>,
    /// What they are called, and which tables that may be.
    relations: BTreeMap<String, BTreeSet<String>>,
    /// Something stands for whatever columns there are.
    all_columns: bool,
}

impl Names {
    fn note_body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => {
                let star = |item: &SelectItem| {
                    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
                };
                self.all_columns |= select.projection.iter().any(star);
                for join in select.from.iter().flat_map(|from| &from.joins) {
                    self.note_join(&join.join_operator);
                }
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.note_body(left);
                self.note_body(right);
            }
            // Queries inside are met by themselves.
            SetExpr::Query(_) | SetExpr::Values(_) => {}
            _ => self.all_columns = true,
        }
    }

    fn note_join(&mut self, join: &JoinOperator) {
        let constraint = match join {
            JoinOperator::Join(c)
            | JoinOperator::Inner(c)
            | JoinOperator::Left(c)
            | JoinOperator::LeftOuter(c)
            | JoinOperator::Right(c)
            | JoinOperator::RightOuter(c)
            | JoinOperator::FullOuter(c)
            | JoinOperator::CrossJoin(c) => c,
            _ => {
                self.all_columns = true;
                return;
            }
        };
        match constraint {
            JoinConstraint::Using(columns) => {
                let mut names: Vec<String> = columns.iter().flat_map(object_name_parts).collect();
                take_join_alias(&mut names);
                let names = names.into_iter();
                self.used.extend(names.map(|name| (None, name)));
            }
            JoinConstraint::Natural => self.all_columns = true,
            JoinConstraint::On(_) | JoinConstraint::None => {}
        }
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        self.note_body(&query.body);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let table = object_name_parts(name).pop().unwrap_or_default();
                let called = alias.as_ref().map_or(table.clone(), |alias| ident_name(&alias.name));
                self.relations.entry(called).or_default().insert(table);
                // Columns under other names.
                self.all_columns |= alias.as_ref().is_some_and(|a| !a.columns.is_empty());
            }
            // Joins in brackets have constraints of their own.
            TableFactor::NestedJoin { .. } => self.all_columns = true,
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => {
                self.used.insert((None, ident_name(name)));
            }
            Expr::CompoundIdentifier(parts) => {
                let of = parts.len().checked_sub(2).map(|at| ident_name(&parts[at]));
                self.used.extend(parts.last().map(|name| (of, ident_name(name))));
            }
            Expr::CompoundFieldAccess { .. } | Expr::QualifiedWildcard(..) => {
                self.all_columns = true;
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// A view's query after a table of this name got another one; `None` if the text does not tell
/// which of its names mean that table.
///
/// # Errors
/// Of a text that cannot be read.
pub(crate) fn with_table_renamed(
    definition: &Definition,
    schema: &str,
    old: &str,
    new: &str,
) -> SqlResult<Option<String>> {
    let mut query = parse_query(&definition.query)?;
    let mut renamer = Renamer { schema, old, new, is_unsure: false };
    let _ = query.walk(&mut renamer);
    let _ = query.walk_mut(&mut renamer);
    Ok((!renamer.is_unsure).then(|| query.to_string()))
}

struct Renamer<'a> {
    schema: &'a str,
    old: &'a str,
    new: &'a str,
    is_unsure: bool,
}

/// What is in the way.
impl Visitor for Renamer<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        self.is_unsure |= ctes.into_iter().any(|cte| ident_name(&cte.alias.name) == self.old);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        // `schema.table.column`: an alias has no schema.
        if let Expr::CompoundIdentifier(parts) = expr {
            let table = parts.len().checked_sub(2).map(|at| ident_name(&parts[at]));
            self.is_unsure |= parts.len() > 2 && table.is_some_and(|table| table == self.old);
        }
        ControlFlow::Continue(())
    }
}

impl VisitorMut for Renamer<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let parts = object_name_parts(name);
        let is_it = match parts.as_slice() {
            [table] => table == self.old,
            [.., schema, table] => table == self.old && schema == self.schema,
            [] => false,
        };
        if is_it && let Some(last) = name.0.last_mut() {
            *last = ast::ObjectNamePart::Identifier(ident(self.new));
            // What the query says of it goes on to say it by the old name.
            alias.get_or_insert_with(|| ast::TableAlias {
                explicit: false,
                name: ident(self.old),
                columns: Vec::new(),
                at: None,
            });
            // Given its old name back, it needs no other one.
            let is_own = |alias: &mut ast::TableAlias| {
                alias.columns.is_empty() && ident_name(&alias.name) == self.new
            };
            alias.take_if(is_own);
        }
        ControlFlow::Continue(())
    }
}
