//! What is said of a table that a statement reads and names where it is not in reach.
//!
//! ```text
//!   SELECT orders.id FROM orders o          Perhaps you meant to reference the table alias "o".
//!   SELECT * FROM t, (SELECT t.a) s         There is an entry for table "t", but ..
//! ```
//! Who binds names knows what is in reach. What else the statement reads is looked for here, once
//! that has failed, in the parsed tree: up to the place of the name, as PostgreSQL reads it.

use std::ops::ControlFlow;

use braid_parser::Kind;
use braid_scalar::{ident_name, object_name_parts};
use braid_types::{SqlError, SqlState};
use braid_walk::{Visitor, Walk};
use sqlparser::ast::{
    self, Expr, FromTable, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    Spanned, TableFactor, TableObject, TableWithJoins, UpdateTableFromKind,
};
use sqlparser::tokenizer::Location;

/// The error, with PostgreSQL's words where it is one of these.
pub(crate) fn told(e: SqlError, kind: &Kind) -> SqlError {
    const MISSING: &str = "missing FROM-clause entry for table \"";
    let table = e.message().strip_prefix(MISSING).and_then(|rest| rest.strip_suffix('"'));
    let (Some(table), place) = (table, e.place().cloned()) else { return e };
    let at = place.as_ref().map(|place| Location { line: place.line, column: place.column });
    // What is bound as a text of its own tells places in that.
    let found = match search(kind, table, at) {
        ControlFlow::Continue(()) if at.is_some() => search(kind, table, None),
        found => found,
    };
    let Some(hint) = found.break_value().flatten() else { return e };
    let text = format!("invalid reference to FROM-clause entry for table \"{table}\"");
    SqlError::new(SqlState::UNDEFINED_TABLE, text).with_hint(hint).or_place(place)
}

fn search(kind: &Kind, table: &str, at: Option<Location>) -> ControlFlow<Option<String>> {
    let mut search = Search { table, at, levels: Vec::new(), own: Vec::new() };
    match kind {
        Kind::Sql(statement) => statement.walk(&mut search),
        Kind::Insert(insert, _) => {
            search.levels.push(Level { entries: of_insert(insert), ..Level::default() });
            insert.walk(&mut search)
        }
        _ => ControlFlow::Continue(()),
    }
}

/// A table of FROM: its name, if it has one, what it is called, and where it stands.
struct Entry {
    name: Option<String>,
    called: String,
    start: Location,
}

/// What one SELECT, UPDATE, DELETE or INSERT reads.
#[derive(Default)]
struct Level {
    entries: Vec<Entry>,
    /// In how many parts of its FROM the walk is.
    within: usize,
    /// A query whose only SELECT has not been met yet.
    waits: bool,
}

struct Search<'a> {
    table: &'a str,
    /// Where the name stands; of what was bound as a text of its own that is not known.
    at: Option<Location>,
    levels: Vec<Level>,
    /// For each SELECT around: whether it has a level of its own.
    own: Vec<bool>,
}

impl Search<'_> {
    /// Breaks with the hint, if the name that begins here is the one.
    fn look(&self, start: Location, name: &str) -> ControlFlow<Option<String>> {
        match self.at {
            Some(at) if at == start => ControlFlow::Break(self.hint(start)),
            None if name == self.table && !self.is_in_reach() => {
                ControlFlow::Break(self.hint(start))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// Whether the name that stands here is one that FROM gives to what follows.
    fn is_in_reach(&self) -> bool {
        self.levels.iter().any(|level| {
            level.within == 0 && level.entries.iter().any(|entry| entry.called == self.table)
        })
    }

    fn hint(&self, start: Location) -> Option<String> {
        self.levels.iter().rev().find_map(|level| {
            let inside = level.within > 0;
            let before = |a: Location, b: Location| (a.line, a.column) < (b.line, b.column);
            let reads = |e: &&Entry| !inside || before(e.start, start);
            let is_it =
                |e: &&Entry| e.called == self.table || e.name.as_deref() == Some(self.table);
            let entry = level.entries.iter().filter(reads).find(is_it)?;
            Some(match entry.called != self.table && !inside {
                true => {
                    format!("Perhaps you meant to reference the table alias \"{}\".", entry.called)
                }
                false => format!(
                    "There is an entry for table \"{}\", but it cannot be referenced from this \
                     part of the query.",
                    entry.called
                ),
            })
        })
    }
}

fn of_tables<'a>(tables: impl IntoIterator<Item = &'a TableWithJoins>) -> Vec<Entry> {
    let mut out = Vec::new();
    for table in tables {
        of_factor(&table.relation, &mut out);
        table.joins.iter().for_each(|join| of_factor(&join.relation, &mut out));
    }
    out
}

fn of_factor(factor: &TableFactor, out: &mut Vec<Entry>) {
    let (name, alias) = match factor {
        TableFactor::Table { name, alias, args, .. } => {
            (args.is_none().then(|| object_name_parts(name).pop()).flatten(), alias)
        }
        TableFactor::Derived { alias, .. } | TableFactor::Function { alias, .. } => (None, alias),
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            return out.extend(of_tables([&**table_with_joins]));
        }
        TableFactor::NestedJoin { alias, .. } => (None, alias),
        _ => return,
    };
    let called = alias.as_ref().map(|alias| ident_name(&alias.name)).or_else(|| name.clone());
    if let Some(called) = called {
        out.push(Entry { name, called, start: factor.span().start });
    }
}

fn of_insert(insert: &ast::Insert) -> Vec<Entry> {
    let TableObject::TableName(name) = &insert.table else { return Vec::new() };
    let start = name.span().start;
    let name = object_name_parts(name).pop();
    let alias = insert.table_alias.as_ref().map(|alias| ident_name(&alias.alias));
    let target = alias.or_else(|| name.clone()).map(|called| Entry { name, called, start });
    let excluded = || Entry { name: None, called: "excluded".to_string(), start };
    target.into_iter().chain(insert.on.as_ref().map(|_| excluded())).collect()
}

/// What an UPDATE or a DELETE reads.
fn of_statement(statement: &ast::Statement) -> Option<Vec<Entry>> {
    match statement {
        ast::Statement::Update(update) => {
            let from = match &update.from {
                Some(
                    UpdateTableFromKind::AfterSet(list) | UpdateTableFromKind::BeforeSet(list),
                ) => list.as_slice(),
                None => &[],
            };
            Some(of_tables([&update.table].into_iter().chain(from)))
        }
        ast::Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(list) | FromTable::WithoutKeyword(list)) = &delete.from;
            Some(of_tables(list.iter().chain(delete.using.iter().flatten())))
        }
        _ => None,
    }
}

impl Visitor for Search<'_> {
    type Break = Option<String>;

    fn pre_visit_statement(&mut self, statement: &ast::Statement) -> ControlFlow<Self::Break> {
        let entries = of_statement(statement).unwrap_or_default();
        self.levels.push(Level { entries, ..Level::default() });
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, _: &ast::Statement) -> ControlFlow<Self::Break> {
        self.levels.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        // ORDER BY stands outside of the only SELECT, and sees what that reads.
        let level = match &*query.body {
            SetExpr::Select(select) => {
                Level { entries: of_tables(&select.from), waits: true, ..Level::default() }
            }
            _ => Level::default(),
        };
        self.levels.push(level);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Self::Break> {
        self.levels.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        let waits = self.levels.last_mut().is_some_and(|l| std::mem::take(&mut l.waits));
        if !waits {
            let entries = of_tables(&select.from);
            self.levels.push(Level { entries, ..Level::default() });
        }
        self.own.push(!waits);
        select.projection.iter().try_for_each(|item| match item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(n), _) => {
                let name = object_name_parts(n).pop();
                self.look(n.span().start, name.as_deref().unwrap_or_default())
            }
            _ => ControlFlow::Continue(()),
        })
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<Self::Break> {
        if self.own.pop() == Some(true) {
            self.levels.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<Self::Break> {
        if let Some(level) = self.levels.last_mut() {
            level.within += 1;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<Self::Break> {
        if let Some(level) = self.levels.last_mut() {
            level.within -= 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::CompoundIdentifier(parts) => {
                let table = parts.len().checked_sub(2).map(|at| ident_name(&parts[at]));
                self.look(parts[0].span.start, table.as_deref().unwrap_or_default())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
