//! UPDATE and DELETE of the rows that given ones name, without the join.
//!
//! ```text
//!   WITH next AS (SELECT id FROM jobs .. LIMIT 5 FOR UPDATE SKIP LOCKED)
//!   UPDATE jobs j SET state = 'done' FROM next WHERE j.id = next.id RETURNING j.*
//!                                    becomes   WHERE j.id IN (7, 9)
//! ```
//! This is how most queues are written. As a join it is a general query, whose plan takes longer to
//! make than all the rest. Only where the given rows say which rows are meant and nothing else.

use std::ops::ControlFlow;

use braid_scalar::{ident_name, object_name_parts};
use braid_types::Collated;
use sqlparser::ast::{
    self, BinaryOperator, Expr, FromTable, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    Statement, TableFactor, TableWithJoins, UpdateTableFromKind,
};

use super::values::{VALUES_MAX, bare, literal};
use crate::general_query::GivenRows;

/// Takes the join out of a statement. Whether it did.
pub(super) fn without_join(query: &mut ast::Query, given: &[GivenRows]) -> bool {
    let new = match &*query.body {
        SetExpr::Update(Statement::Update(update)) => {
            let Some(UpdateTableFromKind::AfterSet(from)) = &update.from else { return false };
            let values = update.assignments.iter().map(|assignment| &assignment.value);
            let Some(selection) = Joined::new(&update.table, from, given)
                .filter(|joined| joined.leaves_alone(values, update.returning.as_ref()))
                .and_then(|joined| joined.condition(update.selection.as_ref()?))
            else {
                return false;
            };
            let new = ast::Update { from: None, selection: Some(selection), ..update.clone() };
            SetExpr::Update(Statement::Update(new))
        }
        SetExpr::Delete(Statement::Delete(delete)) => {
            let FromTable::WithFromKeyword(target) = &delete.from else { return false };
            let ([target], Some(using)) = (target.as_slice(), &delete.using) else { return false };
            let Some(selection) = Joined::new(target, using, given)
                .filter(|joined| joined.leaves_alone([], delete.returning.as_ref()))
                .and_then(|joined| joined.condition(delete.selection.as_ref()?))
            else {
                return false;
            };
            let new = ast::Delete { using: None, selection: Some(selection), ..delete.clone() };
            SetExpr::Delete(Statement::Delete(new))
        }
        _ => return false,
    };
    *query.body = new;
    true
}

/// Given rows beside the table that is written.
struct Joined<'a> {
    /// What the table is called.
    target: String,
    /// What the rows are called.
    source: String,
    columns: &'a [(String, braid_types::SqlType)],
    rows: &'a [braid_rows::Row],
}

/// Name and alias of a table that stands alone.
fn alone(table: &TableWithJoins) -> Option<(Vec<String>, Option<String>)> {
    if table.joins.is_empty() { named(&table.relation) } else { None }
}

fn named(table: &TableFactor) -> Option<(Vec<String>, Option<String>)> {
    let TableFactor::Table { name, alias, args: None, .. } = table else { return None };
    let parts = object_name_parts(name).iter().map(|part| part.to_string()).collect();
    match alias {
        Some(alias) if !alias.columns.is_empty() => None,
        alias => Some((parts, alias.as_ref().map(|alias| ident_name(&alias.name)))),
    }
}

/// As [`alone`], or of `(SELECT * FROM name) AS alias`: what a query that locks rows has become.
fn alone_or_derived(table: &TableWithJoins) -> Option<(Vec<String>, Option<String>)> {
    let TableFactor::Derived { lateral: false, subquery, alias: Some(alias), .. } = &table.relation
    else {
        return alone(table);
    };
    let (SelectItem::Wildcard(_), from) = bare(subquery)? else { return None };
    let (name, inner) = named(from)?;
    let is_plain = alias.columns.is_empty() && table.joins.is_empty() && inner.is_none();
    // Within a WITH of its own the name may mean something else.
    (is_plain && subquery.with.is_none()).then(|| (name, Some(ident_name(&alias.name))))
}

impl<'a> Joined<'a> {
    fn new(
        target: &TableWithJoins,
        from: &[TableWithJoins],
        given: &'a [GivenRows],
    ) -> Option<Joined<'a>> {
        let [from] = from else { return None };
        let (name, alias) = alone(target)?;
        let target = alias.or_else(|| name.last().cloned())?;
        let (name, alias) = alone_or_derived(from)?;
        let [name] = name.as_slice() else { return None };
        let given = given.iter().find(|given| given.name == *name)?;
        let (columns, rows) = (given.columns.as_deref()?, given.rows.as_deref()?);
        // A literal has no collation.
        let is_plain = given.collations.iter().all(Collated::is_by_bytes);
        let source = alias.unwrap_or_else(|| name.clone());
        let is_fit = is_plain && rows.len() <= VALUES_MAX && source != target;
        is_fit.then_some(Joined { target, source, columns, rows })
    }

    /// Whether an expression may be about the given rows.
    fn names_source(&self, expr: &Expr) -> bool {
        let is_column = |name: &str| self.columns.iter().any(|(column, _)| column == name);
        let found = braid_walk::expressions(expr, |part| {
            let names = match part {
                Expr::Identifier(name) => {
                    let name = ident_name(name);
                    name == self.source || is_column(&name)
                }
                Expr::CompoundIdentifier(parts) => {
                    parts.first().is_some_and(|first| ident_name(first) == self.source)
                }
                Expr::Wildcard(_) => true,
                Expr::QualifiedWildcard(name, _) => {
                    object_name_parts(name).iter().any(|part| **part == *self.source)
                }
                _ => false,
            };
            if names { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found.is_break()
    }

    /// Whether neither the new values nor what is returned is about the given rows.
    fn leaves_alone<'e>(
        &self,
        values: impl IntoIterator<Item = &'e Expr>,
        returning: Option<&Vec<SelectItem>>,
    ) -> bool {
        let is_other = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                !self.names_source(expr)
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                matches!(&*object_name_parts(name), [table] if *table == *self.target)
            }
            _ => false,
        };
        values.into_iter().all(|value| !self.names_source(value))
            && returning.is_none_or(|items| items.iter().all(is_other))
    }

    /// The condition with values: of each pair of columns that have to be equal, those of the rows.
    fn condition(&self, selection: &Expr) -> Option<Expr> {
        let (mut left, mut columns, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for part in conjuncts(selection) {
            match self.pair(part) {
                Some((own, column)) => {
                    left.push(own.clone());
                    columns.push(column);
                }
                None if self.names_source(part) => return None,
                None => others.push(part.clone()),
            }
        }
        let value =
            |row: &braid_rows::Row, column: usize| literal(&row[column], &self.columns[column].1);
        let is_in = match (left.as_slice(), columns.as_slice()) {
            ([], _) => return None,
            _ if self.rows.is_empty() => braid_parser::parse_expr("false").ok()?,
            ([own], [column]) => {
                let list = self.rows.iter().map(|row| value(row, *column));
                let list = list.collect::<Option<Vec<Expr>>>()?;
                Expr::InList { expr: Box::new(own.clone()), list, negated: false }
            }
            _ => {
                let tuple = |row| {
                    let values = columns.iter().map(|column| value(row, *column));
                    values.collect::<Option<Vec<Expr>>>().map(Expr::Tuple)
                };
                let list = self.rows.iter().map(tuple).collect::<Option<Vec<Expr>>>()?;
                Expr::InList { expr: Box::new(Expr::Tuple(left)), list, negated: false }
            }
        };
        let and = |left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        };
        Some(others.into_iter().fold(is_in, and))
    }

    /// A column of the table, and that of the rows which has to be equal to it.
    fn pair<'e>(&self, condition: &'e Expr) -> Option<(&'e Expr, usize)> {
        let condition = without_parentheses(condition);
        let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return None };
        let of = |expr: &Expr, table: &str| match expr {
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [first, column] if ident_name(first) == table => Some(ident_name(column)),
                _ => None,
            },
            _ => None,
        };
        let pair = |own: &'e Expr, given: &Expr| {
            of(own, &self.target)?;
            let name = of(given, &self.source)?;
            let mut named =
                self.columns.iter().enumerate().filter(|(_, (column, _))| *column == name);
            let (at, _) = named.next()?;
            named.next().is_none().then_some((own, at))
        };
        pair(left, right).or_else(|| pair(right, left))
    }
}

/// What has to be true all together; each with the parentheses that it needs as a text.
fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    match without_parentheses(expr) {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            let mut parts = conjuncts(left);
            parts.append(&mut conjuncts(right));
            parts
        }
        _ => vec![expr],
    }
}

fn without_parentheses(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}
