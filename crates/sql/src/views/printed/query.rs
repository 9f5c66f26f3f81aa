//! Queries: SELECT, VALUES, UNION and its like, WITH.

use std::rc::Rc;

use braid_catalog::{Catalog, Definition};
use braid_parser::parse_query;
use braid_scalar::{
    Deparsed, FURTHER_LEFT, InnerQueries, Level, Within, deparse_column, deparse_query, further_in,
    ident_name, object_name_parts,
};
use braid_types::{SqlType, TypeCategory, quote_ident};
use sqlparser::ast::{self, Expr, SetExpr, TableFactor};

use super::clauses::{Reader, append, sorted_by_number};

/// How the text of a view is to be made.
pub struct Printer<'a> {
    /// All descriptors.
    pub catalog: &'a Catalog,
    /// The view's database.
    pub database: u32,
    /// What a relation is called, by its id.
    pub name_of: &'a dyn Fn(u32) -> String,
    /// With no more parentheses than people need.
    pub for_people: bool,
}

/// The columns of a query.
pub(super) type Columns = Vec<(String, SqlType)>;

/// What is around a query.
#[derive(Clone)]
pub(super) struct Around<'a> {
    pub(super) definition: &'a Definition,
    /// The queries of WITH that it can name, with their columns.
    pub(super) with: Vec<(String, Columns)>,
    /// What relations of the queries around it are shown as.
    taken: Vec<String>,
    /// Relations of the query itself, and what they are shown as.
    pub(super) own: Vec<(String, String)>,
    /// The relations of the queries around it, the nearest first.
    pub(super) levels: Vec<Rc<Level>>,
}

/// What the columns of a query are called.
#[derive(Clone, Copy)]
pub(super) enum Names<'n> {
    /// So, in a view.
    Given(&'n [&'n str]),
    /// As the query says; nobody sees the names of those that are not `visible`.
    Own { visible: bool },
}

/// A part of UNION and its like.
enum Operand<'q> {
    Set(&'q SetExpr),
    Leaf(&'q SetExpr),
    /// With an order, a limit or a WITH of its own: it stands in parentheses.
    Whole(&'q ast::Query),
}

impl<'q> Operand<'q> {
    fn of(body: &'q SetExpr) -> Operand<'q> {
        match body {
            SetExpr::Query(query) => {
                let bare = query.with.is_none()
                    && query.order_by.is_none()
                    && query.limit_clause.is_none()
                    && query.fetch.is_none()
                    && query.locks.is_empty();
                if bare { Operand::of(&query.body) } else { Operand::Whole(query) }
            }
            SetExpr::SetOperation { .. } => Operand::Set(body),
            other => Operand::Leaf(other),
        }
    }
}

/// Prints the queries in expressions of a query.
pub(super) struct Inside<'p, 'a> {
    pub(super) printer: &'p Printer<'a>,
    /// The query's, with its own relations.
    pub(super) around: &'p Around<'a>,
    pub(super) level: &'p Level,
}

impl InnerQueries for Inside<'_, '_> {
    fn inner(&self, query: &ast::Query) -> Option<(String, Vec<SqlType>)> {
        let around = self.around.within(self.level);
        let (text, columns) = self.printer.query(query, Names::Own { visible: false }, &around)?;
        Some((text, columns.into_iter().map(|(_, ty)| ty).collect()))
    }
}

impl Inside<'_, '_> {
    pub(super) fn within(&self) -> Within<'_> {
        Within { level: self.level, around: &self.around.levels, queries: self }
    }

    pub(super) fn read(&self, expr: &Expr) -> Option<Deparsed> {
        deparse_query(expr, self.within())
    }
}

impl<'a> Around<'a> {
    /// For a query that sees the relations of this one.
    pub(super) fn within(&self, level: &Level) -> Around<'a> {
        let mut inner = self.clone();
        inner.levels.insert(0, Rc::new(level.clone()));
        inner
    }

    /// With the relations of a query, which get other names where theirs are taken.
    fn with_relations(&self, names: Vec<String>) -> Option<Around<'a>> {
        let mut inner = Around { own: Vec::new(), ..self.clone() };
        for name in names {
            if inner.own.iter().any(|(own, _)| *own == name) {
                return None;
            }
            let mut numbers = 1..;
            let mut shown = name.clone();
            while inner.taken.contains(&shown) {
                shown = format!("{name}_{}", numbers.next()?);
            }
            inner.taken.push(shown.clone());
            inner.own.push((name, shown));
        }
        Some(inner)
    }
}

impl<'a> Printer<'a> {
    /// The text; `None` for queries that are not known here.
    pub fn text(&self, definition: &'a Definition, names: &[&str]) -> Option<String> {
        let query = parse_query(&definition.query).ok()?;
        let (with, taken, own, levels) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let around = Around { definition, with, taken, own, levels };
        let (text, _) = self.query(&query, Names::Given(names), &around)?;
        Some(text.replace(FURTHER_LEFT, "") + ";")
    }

    /// A query, and its columns.
    pub(super) fn query(
        &self,
        query: &ast::Query,
        names: Names<'_>,
        around: &Around<'a>,
    ) -> Option<(String, Columns)> {
        if !query.locks.is_empty() {
            return None;
        }
        let (with, ctes) = match &query.with {
            Some(with) => self.with(with, &query.body, around)?,
            None => (String::new(), around.with.clone()),
        };
        let around = Around { with: ctes, ..around.clone() };
        let (mut out, columns, is_set) = match Operand::of(&query.body) {
            Operand::Leaf(SetExpr::Select(select)) => {
                let (out, columns) =
                    self.select(select, query.order_by.as_ref(), names, &around)?;
                (out, columns, false)
            }
            Operand::Leaf(SetExpr::Values(values)) if query.order_by.is_none() => {
                let (out, columns) = self.values(values, names, &around)?;
                (out, columns, false)
            }
            Operand::Set(body) => {
                let (mut out, columns) = self.set(body, names, &around)?;
                if let Some(order) = &query.order_by {
                    let words = format!("\n{FURTHER_LEFT}  ORDER BY ");
                    append(&mut out, &words, &sorted_by_number(order, &columns)?);
                }
                (out, columns, true)
            }
            _ => return None,
        };
        out.push_str(&self.limited(query, is_set, &around)?);
        Some((with + &out, columns))
    }

    /// OFFSET, and LIMIT or FETCH FIRST.
    fn limited(&self, query: &ast::Query, is_set: bool, around: &Around<'a>) -> Option<String> {
        let level = Level::default();
        let inside = Inside { printer: self, around, level: &level };
        let left = if is_set { FURTHER_LEFT.to_string() } else { String::new() };
        let count = |expr: &Expr| match expr {
            Expr::Value(value) if matches!(value.value, ast::Value::Null) => Some("ALL".into()),
            other => {
                let read = inside.read(other)?;
                let is_wide = *read.ty() == SqlType::Int8;
                let shown =
                    if is_wide { Deparsed::text_in_query } else { Deparsed::text_below_cast };
                Some(shown(&read, self.for_people))
            }
        };
        let (limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(ast::LimitClause::LimitOffset { limit, offset, limit_by })
                if limit_by.is_empty() =>
            {
                (limit.as_ref(), offset.as_ref())
            }
            _ => return None,
        };
        let mut out = String::new();
        if let Some(offset) = offset {
            out.push_str(&format!("\n{left} OFFSET {}", count(&offset.value)?));
        }
        if let Some(limit) = limit {
            out.push_str(&format!("\n{left} LIMIT {}", count(limit)?));
        }
        if let Some(fetch) = &query.fetch {
            if !fetch.with_ties || fetch.percent {
                return None;
            }
            let most = count(fetch.quantity.as_ref()?)?;
            out.push_str(&format!("\n{left} FETCH FIRST ({most}) ROWS WITH TIES"));
        }
        Some(out)
    }

    /// WITH in front of a query, and all that this can name.
    fn with(
        &self,
        with: &ast::With,
        main: &SetExpr,
        around: &Around<'a>,
    ) -> Option<(String, Vec<(String, Columns)>)> {
        let relations = match Operand::of(main) {
            Operand::Leaf(SetExpr::Select(select)) => super::from::relations(&select.from)?,
            _ => Vec::new(),
        };
        let mut inner = around.with_relations(relations)?;
        let mut shown = Vec::new();
        for cte in &with.cte_tables {
            let name = ident_name(&cte.alias.name);
            let called: Vec<String> =
                cte.alias.columns.iter().map(|column| ident_name(&column.name)).collect();
            // SEARCH and CYCLE travel as one.
            if called.iter().any(|name| name.starts_with('\0')) {
                return None;
            }
            let before = inner.with.len();
            if with.recursive
                && let SetExpr::SetOperation { left, .. } = &*cte.query.body
                && let Some((_, columns)) = self.operand(left, Names::Own { visible: true }, &inner)
            {
                inner.with.push((name.clone(), named(columns, &called)));
            }
            let (text, columns) = self.query(&cte.query, Names::Own { visible: true }, &inner)?;
            inner.with.truncate(before);
            let list = match called.as_slice() {
                [] => String::new(),
                called => format!("({})", quoted(called)),
            };
            let kept = match cte.materialized {
                None => "",
                Some(ast::CteAsMaterialized::Materialized) => "MATERIALIZED ",
                Some(ast::CteAsMaterialized::NotMaterialized) => "NOT MATERIALIZED ",
            };
            let (name_shown, text) = (quote_ident(&name), further_in(&text, 8));
            shown.push(format!("{name_shown}{list} AS {kept}(\n        {text}\n        )"));
            inner.with.push((name, named(columns, &called)));
        }
        let words = if with.recursive { "WITH RECURSIVE" } else { "WITH" };
        Some((format!(" {words} {}\n", shown.join(", ")), inner.with))
    }

    /// UNION and its like: another operation stands in parentheses, and on the right any.
    fn set(
        &self,
        body: &SetExpr,
        names: Names<'_>,
        around: &Around<'a>,
    ) -> Option<(String, Columns)> {
        let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return None };
        let is_all = |quantifier: &ast::SetQuantifier| match quantifier {
            ast::SetQuantifier::All => Some(true),
            ast::SetQuantifier::None | ast::SetQuantifier::Distinct => Some(false),
            _ => None,
        };
        let all = is_all(set_quantifier)?;
        let (text, columns) = self.operand(left, names, around)?;
        let encloses = match Operand::of(left) {
            Operand::Set(SetExpr::SetOperation { op: own, set_quantifier, .. }) => {
                own != op || is_all(set_quantifier)? != all
            }
            _ => false,
        };
        let mut out = match encloses {
            true => format!("(\n        {}\n) {op}", further_in(&text, 8)),
            false => format!("{text}\n{op}"),
        };
        out.push_str(if all { " ALL" } else { "" });
        let behind = match names {
            Names::Own { .. } => Names::Own { visible: false },
            given => given,
        };
        let (text, more) = self.operand(right, behind, around)?;
        match Operand::of(right) {
            Operand::Set(_) => {
                out.push_str(&format!(" (\n        {}\n)", further_in(&text, 8)));
            }
            _ => out.push_str(&format!("\n{text}")),
        }
        if columns.len() != more.len() {
            return None;
        }
        let both = columns.into_iter().zip(more).map(|((name, a), (_, b))| {
            // A text may have had no type.
            let is_sure = a.category() == b.category() && a.category() != TypeCategory::String;
            let common = if is_sure { braid_scalar::common_type(&[&a, &b]) } else { None };
            Some((name, if a == b { a } else { common? }))
        });
        Some((out, both.collect::<Option<_>>()?))
    }

    /// A side of it.
    fn operand(
        &self,
        body: &SetExpr,
        names: Names<'_>,
        around: &Around<'a>,
    ) -> Option<(String, Columns)> {
        match Operand::of(body) {
            Operand::Set(body) => self.set(body, names, around),
            Operand::Leaf(SetExpr::Select(select)) => self.select(select, None, names, around),
            Operand::Leaf(SetExpr::Values(values)) => self.values(values, names, around),
            Operand::Leaf(_) => None,
            Operand::Whole(query) => {
                let (text, columns) = self.query(query, names, around)?;
                Some((format!("({text})"), columns))
            }
        }
    }

    /// VALUES, whose columns have names of their own: to give them others takes a SELECT.
    fn values(
        &self,
        values: &ast::Values,
        names: Names<'_>,
        around: &Around<'a>,
    ) -> Option<(String, Columns)> {
        let level = Level::default();
        let inside = Inside { printer: self, around, level: &level };
        let width = values.rows.first()?.content.len();
        if values.rows.iter().any(|row| row.content.len() != width) {
            return None;
        }
        let column = |at: usize| {
            deparse_column(values.rows.iter().map(|row| &row.content[at]), inside.within())
        };
        let columns: Vec<(Vec<Deparsed>, SqlType)> =
            (0..width).map(column).collect::<Option<_>>()?;
        let row = |n: usize| {
            let values = columns.iter().map(|(values, ty)| match values[n].ty() == ty {
                true => values[n].text_in_query(self.for_people),
                false => values[n].text_below_cast(self.for_people),
            });
            format!("({})", values.collect::<Vec<_>>().join(","))
        };
        let rows: Vec<String> = (0..values.rows.len()).map(row).collect();
        let text = format!(" VALUES {}", rows.join(", "));
        let own = |at: usize| format!("column{}", at + 1);
        let types = columns.into_iter().map(|(_, ty)| ty);
        let columns: Columns = types.enumerate().map(|(at, ty)| (own(at), ty)).collect();
        let Names::Given(given) = names else { return Some((text, columns)) };
        if given.len() != width {
            return None;
        }
        if given.iter().zip(&columns).all(|(given, own)| *given == own.0) {
            return Some((text, columns));
        }
        let items = columns.iter().zip(given).map(|((own, _), given)| match own == given {
            true => format!("\"*VALUES*\".{own}"),
            false => format!("\"*VALUES*\".{own} AS {}", quote_ident(given)),
        });
        let items: Vec<String> = items.collect();
        let text = format!(
            " SELECT {}\n   FROM ({}) \"*VALUES*\"",
            items.join(",\n    "),
            text.trim_start()
        );
        let names: Vec<String> = given.iter().map(ToString::to_string).collect();
        Some((text, named(columns, &names)))
    }

    /// One SELECT, with what orders its rows.
    fn select(
        &self,
        select: &ast::Select,
        order: Option<&ast::OrderBy>,
        names: Names<'_>,
        around: &Around<'a>,
    ) -> Option<(String, Columns)> {
        if select.into.is_some() || select.qualify.is_some() {
            return None;
        }
        let around = around.with_relations(super::from::relations(&select.from)?)?;
        let mut level = Level::default();
        let from = select.from.iter().map(|from| self.from(from, &around, &mut level));
        let from: Vec<String> = from.collect::<Option<_>>()?;
        let inside = Inside { printer: self, around: &around, level: &level };
        let items = super::clauses::items(&select.projection, &level)?;
        let reader = Reader { inside: &inside, items: &items, for_people: self.for_people };
        let own: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
        let (called, visible) = match names {
            Names::Given(names) => (names, true),
            Names::Own { visible } => (own.as_slice(), visible),
        };
        let (list, columns) = reader.list(called, visible)?;
        let mut out = String::from(" SELECT");
        append(&mut out, &reader.distinct(select.distinct.as_ref(), called)?, &list);
        if !from.is_empty() {
            out.push_str(&format!("\n   FROM {}", from.join(",\n    ")));
        }
        reader.clauses(select, &mut out)?;
        if !select.named_window.is_empty() {
            append(&mut out, "\n  WINDOW ", &reader.windows(&select.named_window)?);
        }
        if let Some(order) = order {
            append(&mut out, "\n  ORDER BY ", &reader.order(order, called)?);
        }
        Some((out, columns))
    }
}

/// The columns of a query with the names of a list, as far as it goes.
pub(super) fn named(mut columns: Columns, names: &[String]) -> Columns {
    for (column, name) in columns.iter_mut().zip(names) {
        column.0.clone_from(name);
    }
    columns
}

/// A list of names.
pub(super) fn quoted(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| quote_ident(name)).collect();
    names.join(", ")
}

/// What the relation of a factor of FROM is called; `None` if it is none that is known.
pub(super) fn called(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(ident_name(&alias.name)),
        TableFactor::Table { name, alias: None, .. }
        | TableFactor::Function { name, alias: None, .. } => object_name_parts(name).pop(),
        TableFactor::UNNEST { alias: None, .. } => Some("unnest".into()),
        _ => None,
    }
}
