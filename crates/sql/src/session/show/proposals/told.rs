//! What is told of a proposal: the statement, how large families become, and what changes.

use std::sync::Arc;

use braid_catalog::{RefAction, Table};
use braid_rows::Row;
use braid_types::{Datum, quote_ident};

use super::super::super::Context;
use super::find::{Proposal, Verdict, names, proposals};

/// Names of the columns.
pub(in crate::session::show) const COLUMNS: &[&str] = &[
    "table_name",
    "parent_table",
    "proposal",
    "statement",
    "foreign_key",
    "rows",
    "parent_rows",
    "rows_in_each",
    "most_in_one",
    "bytes_in_each",
    "changes",
    "remarks",
];

/// Families of so many rows of one table are worth a second thought: a row of the parent stands for
/// a part of the table rather than for something that is read whole.
const MANY_ROWS: f64 = 100_000.0;

/// A line for each foreign key between two tables of the database, and for each table whose key
/// begins with another's although no foreign key says so; parents first. Or those of one table.
pub(in crate::session::show) fn rows(ctx: &Context, only: Option<&Arc<Table>>) -> Vec<Row> {
    let all = proposals(ctx);
    let wanted = |p: &&Proposal| only.is_none_or(|t| p.child.id == t.id || p.parent.id == t.id);
    all.iter().filter(wanted).map(|p| row(ctx, p, &all)).collect()
}

/// A line about a proposal.
fn row(ctx: &Context, p: &Proposal, all: &[Proposal]) -> Row {
    let text = |s: String| if s.is_empty() { Datum::Null } else { Datum::text(s) };
    let verdict = match &p.verdict {
        Verdict::Ready => "ready",
        Verdict::NewKey => "new key",
        Verdict::Another(..) => "alternative",
        Verdict::Done => "done",
        Verdict::No(_) => "no",
    };
    let size = Size::of(ctx, p);
    let number = |n: Option<f64>| n.map_or(Datum::Null, |n| Datum::text(format!("{}", n.round())));
    let each = size.each.map_or(Datum::Null, |n| Datum::text(format!("{n:.1}")));
    let key = p.key.as_ref().map(|fk| fk.name.clone()).unwrap_or_default();
    vec![
        Datum::text(qualified(ctx, &p.child)),
        Datum::text(qualified(ctx, &p.parent)),
        Datum::text(verdict),
        text(statement(ctx, p)),
        text(key),
        number(size.rows),
        number(size.parent_rows),
        each,
        number(size.most),
        number(size.bytes),
        text(changes(p).join("; ")),
        text(remarks(ctx, p, all, &size).join("; ")),
    ]
}

/// A table's name as statements take it: with its schema, unless that is `public`.
fn qualified(ctx: &Context, t: &Table) -> String {
    match ctx.schema_name(t.schema) {
        schema if schema == "public" => quote_ident(&t.name),
        schema => format!("{}.{}", quote_ident(&schema), quote_ident(&t.name)),
    }
}

fn quoted(table: &Table, columns: &[u32]) -> String {
    let name = |id: &u32| quote_ident(table.key_name(*id));
    columns.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The statement that does it; nothing if that cannot be.
fn statement(ctx: &Context, p: &Proposal) -> String {
    let Some(verdict) = p.possible() else { return String::new() };
    let (child, parent) = (qualified(ctx, &p.child), qualified(ctx, &p.parent));
    let inside = format!("INTERLEAVE IN PARENT {parent} ({})", quoted(&p.child, &p.own));
    if *verdict == Verdict::Ready {
        return format!("ALTER TABLE {child} SET {inside}");
    }
    let mut key: Vec<String> = Vec::new();
    for (id, theirs) in p.own.iter().zip(&p.parent.primary.columns) {
        key.push(key_column(&p.child, *id, theirs.desc));
    }
    for own in p.child.primary.columns.iter().filter(|k| !p.own.contains(&k.column)) {
        key.push(key_column(&p.child, own.column, own.desc));
    }
    format!("ALTER TABLE {child} ALTER PRIMARY KEY USING COLUMNS ({}) {inside}", key.join(", "))
}

fn key_column(t: &Table, id: u32, desc: bool) -> String {
    let name = quote_ident(t.key_name(id));
    if desc { format!("{name} DESC") } else { name }
}

/// Rows as far as ANALYZE knows them.
struct Size {
    rows: Option<f64>,
    parent_rows: Option<f64>,
    /// Rows of the child in one of the parent.
    each: Option<f64>,
    most: Option<f64>,
    bytes: Option<f64>,
}

impl Size {
    fn of(ctx: &Context, p: &Proposal) -> Size {
        let known = ctx.db.statistics(&p.child);
        let parent = ctx.db.statistics(&p.parent);
        let (rows, parent_rows) = (known.as_ref().map(|k| k.rows), parent.map(|k| k.rows));
        let each = match (rows, parent_rows) {
            (Some(rows), Some(of)) if of >= 1.0 => Some(rows / of),
            _ => None,
        };
        // Of several columns nobody knows which values come together.
        let column = match &p.own[..] {
            [one] => p.child.ordinal(*one),
            _ => None,
        };
        let most = known.as_ref().and_then(|known| {
            if p.verdict == Verdict::Done {
                return known.family.map(|family| family.most);
            }
            let column = known.column(column?)?;
            let often = column.common.first().map(|(_, part)| part * known.rows);
            Some(often.unwrap_or(0.0).max(known.rows * column.fraction_of_equal_unknown()))
        });
        let bytes = known.as_ref().and_then(|known| Some(known.row_bytes * each?));
        Size { rows, parent_rows, each, most, bytes }
    }
}

/// What changes for those who use the tables.
fn changes(p: &Proposal) -> Vec<String> {
    let Some(verdict) = p.possible() else { return Vec::new() };
    let (child, parent) = (&p.child.name, &p.parent.name);
    let mut out = vec![
        format!("rows of {child} lie behind their row of {parent}: both are read in one pass"),
        "to write both touches one place of the store, and one range of a cluster".into(),
    ];
    match p.key.as_ref().map(|fk| fk.on_delete) {
        Some(RefAction::Cascade) => {
            out.push(format!("DELETE FROM {parent} takes them along by one range delete"));
        }
        Some(_) => out.push(format!("DELETE FROM {parent} looks for them in one span")),
        None => {}
    }
    if *verdict == Verdict::NewKey {
        let old = names(&p.child, &p.child.key_columns());
        out.push(format!(
            "({old}) becomes a unique index: a row by it alone takes a look-up more, and rows no \
             longer lie in its order"
        ));
    }
    let begins = |i: &&braid_catalog::Index| {
        !i.is_unique()
            && i.predicate.is_none()
            && i.columns.len() <= p.own.len()
            && i.columns.iter().zip(&p.own).all(|(k, id)| k.column == *id)
    };
    for index in p.child.indexes.iter().filter(begins) {
        out.push(format!("index {} is not needed any more: the key begins so", index.name));
    }
    out
}

/// What else is worth to know.
fn remarks(ctx: &Context, p: &Proposal, all: &[Proposal], size: &Size) -> Vec<String> {
    let mut out = Vec::new();
    match &p.verdict {
        Verdict::No(why) => return vec![why.clone()],
        Verdict::Done => return out,
        Verdict::Another(best, _) => {
            let name = ctx.catalog.table(*best).map(|t| t.name.clone()).unwrap_or_default();
            out.push(format!("{} lies better in {name}", p.child.name));
        }
        Verdict::Ready | Verdict::NewKey => {}
    }
    if p.key.is_none() {
        out.push("only the columns' names say so: there is no foreign key".into());
    }
    if size.rows.is_none() || size.parent_rows.is_none() {
        let missing = if size.rows.is_none() { &p.child } else { &p.parent };
        out.push(format!("ANALYZE {} tells how many rows there are", qualified(ctx, missing)));
    }
    if size.each.is_some_and(|n| n >= MANY_ROWS) {
        out.push(format!(
            "very many rows of {} for each of {}: seldom read whole, a foreign key may do as well",
            p.child.name, p.parent.name
        ));
    }
    if p.possible() == Some(&Verdict::NewKey) {
        out.extend(keys_below(p, all));
    }
    out
}

/// Tables that lie in the child by its present key, or would: with its new key they need columns
/// that they do not have.
fn keys_below(p: &Proposal, all: &[Proposal]) -> Vec<String> {
    let mut out = Vec::new();
    for below in all.iter().filter(|b| b.parent.id == p.child.id && b.possible().is_some()) {
        let has = |id: &&u32| {
            let name = p.child.key_name(**id);
            below.child.column_named(name).is_some()
        };
        let missing: Vec<u32> = p.own.iter().filter(|id| !has(id)).copied().collect();
        let (table, inside) = (&below.child.name, &p.child.name);
        out.push(match missing.is_empty() {
            true => format!("{table} lies in {inside} then by a key with all of its columns"),
            false => format!(
                "{table} cannot lie in {inside} then, unless it gets {} in front of its own key",
                names(&p.child, &missing)
            ),
        });
    }
    out
}
