//! SEARCH and CYCLE of WITH RECURSIVE: the query written with the columns that they stand for.
//!
//! ```text
//!   t (a, b) AS (start UNION ALL step) SEARCH DEPTH FIRST BY a SET o CYCLE b SET c USING p
//!
//!   t (a, b, o, c, p) AS (
//!     WITH RECURSIVE t (a, b, o, c, p) AS (
//!       SELECT a, b, ARRAY[ROW(a)], false, ARRAY[ROW(b)] FROM (start)
//!       UNION ALL
//!       SELECT a, b, array_append(o, ROW(a)), CASE WHEN ROW(b) = ANY (p) THEN true ELSE false END,
//!              array_append(p, ROW(b))
//!       FROM (step, that also gives t.o, t.c and t.p, and goes on from rows that are NOT t.c))
//!     SELECT a, b, o, c, p FROM t)
//! ```
//! BREADTH FIRST counts the steps in a column of its own, and makes rows of that at the end. Inside
//! of the step the new columns are hidden from its stars, as PostgreSQL has it.

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_parser::{Cycle, Recursion, Search, take_recursion};
use braid_scalar::{ident_name, names_itself, object_name_parts};
use braid_types::{Mark, Place, SqlError, SqlResult, SqlState, SqlType, quote_ident};
use braid_walk::{Walk, WalkMut};
use sqlparser::ast::{self, Expr, Ident, SetExpr, Visitor, VisitorMut};

use super::{Binder, Cte};
use crate::system::parse_query;

/// What begins the names of columns that a recursive term's stars do not show. No name that can be
/// typed has that character.
pub(super) const HIDDEN: char = '\u{1}';

/// A query of WITH that says more than sqlparser knows.
struct Clauses<'a> {
    name: &'a str,
    query: &'a ast::Query,
    clauses: &'a Recursion,
}

/// The new columns, in their order: the name, how a row starts it and how a step goes on.
struct Added {
    name: String,
    start: String,
    step: String,
    /// What the query gives at the end.
    shown: String,
}

impl Binder<'_> {
    /// A query of WITH as it is bound where it is named.
    pub(super) fn cte_entry(&mut self, cte: &ast::Cte, may_recur: bool) -> SqlResult<Cte> {
        let name = ident_name(&cte.alias.name);
        let names = cte.alias.columns.iter().map(|c| ident_name(&c.name));
        let mut columns: Vec<String> = names.collect();
        let recursive = may_recur && names_itself(&cte.query, &name);
        let Some(clauses) = take_recursion(&mut columns)? else {
            let query = Arc::new((*cte.query).clone());
            return Ok(Cte::Query { name, columns, query, recursive });
        };
        let of = Clauses { name: &name, query: &cte.query, clauses: &clauses };
        let query = match recursive {
            true => self.searched(&of, &mut columns),
            // What is wrong in it is told before.
            false => {
                self.isolated(|b| b.query(&cte.query))?;
                Err(SqlError::syntax("WITH query is not recursive"))
            }
        };
        let start = cte.alias.name.span.start;
        let mark = Mark::Word(cte.alias.name.value.clone());
        let place = Place { line: start.line, column: start.column, mark };
        let query = query.map_err(|e| match e.message().starts_with("WITH query") {
            true => e.or_place(Some(place)),
            false => e,
        })?;
        Ok(Cte::Query { name, columns, query: Arc::new(query), recursive: false })
    }

    /// The query with the columns that its clauses add, whose names are put behind those given.
    ///
    /// # Errors
    /// PostgreSQL's, 42601 most of them.
    fn searched(&mut self, of: &Clauses<'_>, columns: &mut Vec<String>) -> SqlResult<ast::Query> {
        let SetExpr::SetOperation { left, right, op: ast::SetOperator::Union, set_quantifier } =
            &*of.query.body
        else {
            return Err(SqlError::syntax("WITH query is not recursive"));
        };
        let (base, step) = (operand(left), operand(right));
        if base.is_none() {
            let text = "with a SEARCH or CYCLE clause, the left side of the UNION must be a SELECT";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        }
        let Some(SetExpr::Select(step)) = step else {
            return Err(SqlError::syntax(
                "with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT",
            ));
        };
        let types = self.name_columns(of, left, columns)?;
        let is_plain = |item: &ast::SelectItem| {
            matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. })
        };
        if step.projection.iter().all(is_plain) && step.projection.len() != columns.len() {
            return Err(SqlError::syntax("each UNION query must have the same number of columns"));
        }
        let Recursion { search, cycle } = of.clauses;
        let new =
            search.iter().map(|s| &s.set).chain(cycle.iter().flat_map(|c| [&c.set, &c.using]));
        new.filter(|name| columns.contains(name)).try_for_each(|name| check_clear(step, name))?;
        check_names(search.as_ref(), cycle.as_ref(), columns)?;
        if let Some(cycle) = cycle {
            self.check_marks(cycle)?;
            let compared = columns.iter().zip(&types).filter(|(c, _)| cycle.columns.contains(c));
            compared.map(|(_, ty)| ty).try_for_each(|ty| ty.check_comparable("equality"))?;
        }
        let added = added(search.as_ref(), cycle.as_ref());
        let step = self.step(of.name, step, &added, cycle.as_ref())?;
        let list = list(columns);
        let start = of_each(&added, |a| &a.start);
        let text = format!("SELECT {list}{start} FROM (SELECT 1) AS \"*TLOCRN*\" ({list})");
        let left = derived(&text, (**left).clone())?;
        let hidden = of_each(&added, |a| &a.name);
        let next = of_each(&added, |a| &a.step);
        let text = format!("SELECT {list}{next} FROM (SELECT 1) AS \"*TROCRN*\" ({list}{hidden})");
        let right = derived(&text, SetExpr::Select(Box::new(step)))?;
        let name = quote_ident(of.name);
        let shown = of_each(&added, |a| &a.shown);
        let mut whole = parse_query(&format!(
            "WITH RECURSIVE {name} ({list}{hidden}) AS (SELECT 1) SELECT {list}{shown} FROM {name}"
        ))?;
        let body = SetExpr::SetOperation {
            left: Box::new(left),
            op: ast::SetOperator::Union,
            set_quantifier: *set_quantifier,
            right: Box::new(right),
        };
        if let Some(cte) = whole.with.as_mut().and_then(|with| with.cte_tables.first_mut()) {
            *cte.query = ast::Query { body: Box::new(body), ..of.query.clone() };
        }
        columns.extend(search.iter().map(|s| s.set.clone()));
        columns.extend(cycle.iter().flat_map(|c| [c.set.clone(), c.using.clone()]));
        Ok(whole)
    }

    /// 42804 for values of the mark that have no type in common.
    fn check_marks(&mut self, cycle: &Cycle) -> SqlResult<()> {
        // The type of ELSE is looked at first.
        let text = format!("SELECT CASE WHEN true THEN {} ELSE {} END", cycle.default, cycle.to);
        let query = parse_query(&text)?;
        let bound = self.isolated(|b| b.query(&query));
        let bound = bound.map_err(|e| match e.message().strip_prefix("CASE types ") {
            Some(types) => SqlError::new(e.state(), format!("CYCLE types {types}")),
            None => e,
        })?;
        bound.columns.iter().try_for_each(|mark| mark.ty.check_comparable("equality"))
    }

    /// Names all columns of the query; gives their types.
    fn name_columns(
        &mut self,
        of: &Clauses<'_>,
        base: &SetExpr,
        columns: &mut Vec<String>,
    ) -> SqlResult<Vec<SqlType>> {
        let known = self.ctes.len();
        let bound = self.isolated(|b| {
            if let Some(with) = &of.query.with {
                b.add_ctes(with, of.query)?;
            }
            b.set_expr(base)
        });
        self.ctes.truncate(known);
        let bound = bound?;
        super::cte::check_width(of.name, columns, &bound)?;
        let more = bound.columns[columns.len()..].iter().map(|c| c.name.clone());
        columns.extend(more.collect::<Vec<_>>());
        Ok(bound.columns.into_iter().map(|c| c.ty).collect())
    }

    /// The recursive term, which gives the new columns of the row before as well.
    fn step(
        &mut self,
        name: &str,
        step: &ast::Select,
        added: &[Added],
        cycle: Option<&Cycle>,
    ) -> SqlResult<ast::Select> {
        let mut step = step.clone();
        let mut factors = step.from.iter();
        let Some(alias) = factors.find_map(|from| reference(from, name)) else {
            let text = format!(
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" \
                 must be at the top level of its right-hand SELECT"
            );
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        };
        let names: Vec<&str> = added.iter().map(|a| plain(&a.name)).collect();
        let column =
            |name: &str| Expr::CompoundIdentifier([alias.as_str(), name].map(quoted).to_vec());
        let mut qualified = Qualified { names: &names, column: &column };
        let _ = step.walk_mut(&mut qualified);
        let items = names.iter().map(|name| ast::SelectItem::UnnamedExpr(column(name)));
        step.projection.extend(items);
        if let Some(cycle) = cycle {
            let open = Expr::BinaryOp {
                left: Box::new(column(&cycle.set)),
                op: ast::BinaryOperator::NotEq,
                right: Box::new(cycle.to.clone()),
            };
            step.selection = Some(match step.selection.take() {
                None => open,
                Some(own) => Expr::BinaryOp {
                    left: Box::new(Expr::Nested(Box::new(own))),
                    op: ast::BinaryOperator::And,
                    right: Box::new(open),
                },
            });
        }
        Ok(step)
    }
}

/// Names the new columns by the recursive reference, where the step speaks of them.
struct Qualified<'a, F: Fn(&str) -> Expr> {
    names: &'a [&'a str],
    column: &'a F,
}

impl<F: Fn(&str) -> Expr> VisitorMut for Qualified<'_, F> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && let name = ident_name(name)
            && self.names.contains(&name.as_str())
        {
            *expr = (self.column)(&name);
        }
        ControlFlow::Continue(())
    }
}

/// 42702 for a new column that is called as another of the query, if the step speaks of it.
fn check_clear(step: &ast::Select, name: &str) -> SqlResult<()> {
    struct Search<'a>(&'a str);
    impl Visitor for Search<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let last = match expr {
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            match last.is_some_and(|name| ident_name(name) == self.0) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    match step.walk(&mut Search(name)).is_break() {
        true => {
            let text = format!("column reference \"{name}\" is ambiguous");
            Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, text))
        }
        false => Ok(()),
    }
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// One operand of UNION without parentheses, unless it is a set operation itself.
fn operand(body: &SetExpr) -> Option<&SetExpr> {
    match body {
        SetExpr::SetOperation { .. } => None,
        SetExpr::Query(query)
            if query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() =>
        {
            operand(&query.body)
        }
        body => Some(body),
    }
}

/// What a table among those joined is called, if it is the query's own.
pub(super) fn reference(from: &ast::TableWithJoins, name: &str) -> Option<String> {
    let joined = from.joins.iter().map(|join| &join.relation);
    std::iter::once(&from.relation).chain(joined).find_map(|factor| match factor {
        ast::TableFactor::Table { name: own, alias, args: None, .. }
            if *object_name_parts(own) == [name] =>
        {
            Some(alias.as_ref().map_or_else(|| name.to_string(), |a| ident_name(&a.name)))
        }
        ast::TableFactor::NestedJoin { table_with_joins, alias: None } => {
            reference(table_with_joins, name)
        }
        _ => None,
    })
}

/// A query over a subquery, whose place is kept in its FROM.
fn derived(text: &str, of: SetExpr) -> SqlResult<SetExpr> {
    let query = parse_query(text)?;
    let SetExpr::Select(mut select) = *query.body else {
        return Err(SqlError::internal("a SELECT that is none"));
    };
    if let ast::TableFactor::Derived { subquery, .. } = &mut select.from[0].relation {
        *subquery.body = of;
    }
    Ok(SetExpr::Select(select))
}

fn list(columns: &[String]) -> String {
    let columns: Vec<String> = columns.iter().map(|name| quote_ident(name)).collect();
    columns.join(", ")
}

/// The row of some columns.
fn row(columns: &[String]) -> String {
    format!("ROW({})", list(columns))
}

/// What each new column is, behind others.
fn of_each<'a>(added: &'a [Added], part: impl Fn(&'a Added) -> &'a String) -> String {
    let parts = added.iter().map(|a| match part(a) {
        name if name.starts_with(HIDDEN) => format!(", {}", quote_ident(name)),
        text => format!(", {text}"),
    });
    parts.collect()
}

fn plain(name: &str) -> &str {
    name.trim_start_matches(HIDDEN)
}

fn added(search: Option<&Search>, cycle: Option<&Cycle>) -> Vec<Added> {
    let mut all = Vec::new();
    let hidden = |name: &str| format!("{HIDDEN}{name}");
    if let Some(Search { depth, by, set }) = search {
        let (name, row) = (hidden(set), row(by));
        let own = quote_ident(&name);
        all.push(match depth {
            true => Added {
                start: format!("ARRAY[{row}]"),
                step: format!("array_append({own}, {row})"),
                shown: own.clone(),
                name,
            },
            false => Added {
                start: "CAST(0 AS int8)".to_string(),
                step: format!("{own} + 1"),
                shown: format!("ROW({own}, {})", list(by)),
                name,
            },
        });
    }
    if let Some(Cycle { columns, set, to, default, using }) = cycle {
        let (mark, way, row) = (hidden(set), hidden(using), row(columns));
        let (own_mark, own_way) = (quote_ident(&mark), quote_ident(&way));
        all.push(Added {
            start: format!("CASE WHEN false THEN {to} ELSE {default} END"),
            step: format!("CASE WHEN {row} = ANY ({own_way}) THEN {to} ELSE {default} END"),
            shown: own_mark,
            name: mark,
        });
        all.push(Added {
            start: format!("ARRAY[{row}]"),
            step: format!("array_append({own_way}, {row})"),
            shown: own_way.clone(),
            name: way,
        });
    }
    all
}

fn check_names(
    search: Option<&Search>,
    cycle: Option<&Cycle>,
    columns: &[String],
) -> SqlResult<()> {
    let listed = |what: &str, given: &[String]| {
        for (at, name) in given.iter().enumerate() {
            if !columns.contains(name) {
                let text = format!("{what} column \"{name}\" not in WITH query column list");
                return Err(SqlError::syntax(text));
            }
            if given[..at].contains(name) {
                let text = format!("{what} column \"{name}\" specified more than once");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, text));
            }
        }
        Ok(())
    };
    let free = |what: &str, name: &String| match columns.contains(name) {
        true => Err(SqlError::syntax(format!(
            "{what} column name \"{name}\" already used in WITH query column list"
        ))),
        false => Ok(()),
    };
    let differ = |a: (&str, &String), b: (&str, &String)| match a.1 == b.1 {
        true => Err(SqlError::syntax(format!(
            "{} column name and {} column name are the same",
            a.0, b.0
        ))),
        false => Ok(()),
    };
    if let Some(search) = search {
        listed("search", &search.by)?;
        free("search sequence", &search.set)?;
    }
    if let Some(cycle) = cycle {
        listed("cycle", &cycle.columns)?;
        free("cycle mark", &cycle.set)?;
        free("cycle path", &cycle.using)?;
        differ(("cycle mark", &cycle.set), ("cycle path", &cycle.using))?;
    }
    if let (Some(search), Some(cycle)) = (search, cycle) {
        let own = ("search sequence", &search.set);
        differ(own, ("cycle mark", &cycle.set))?;
        differ(own, ("cycle path", &cycle.using))?;
    }
    Ok(())
}
