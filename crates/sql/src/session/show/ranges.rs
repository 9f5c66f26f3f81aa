//! SHOW RANGES: how a cluster has parted its keys.
//!
//! ```text
//!   range_id   start_key        end_key          replicas   leaseholder   bytes   moves
//!   1          /System          /customers/512   1,2,3      2             2013326
//!   281492..   /customers/512   /Max             1,2,3      2             1874310   node 3 is dead
//! ```
//!
//! The view `braid_ranges` has the same, and `braid_nodes` counts it for each node.
//!
//! It is what this node has applied, so it is told also when nobody serves. Keys are values of
//! rows: who may not read a table sees only that a range begins inside of it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use braid_catalog::{Catalog, Index, Privileges, Securable, Table, kv_error};
use braid_keys::Direction;
use braid_keys::path::elements;
use braid_keys::pretty::named_key;
use braid_kv::{KeySpan, ShownRange};
use braid_types::{Datum, SqlError, SqlResult, SqlType};

use sqlparser::ast::Expr;

use super::super::Context;
use super::super::split::key_of;
use braid_parser::Name;
use braid_rows::Row;
use braid_rows::TableLayout;
use braid_scalar::SessionFunctions;

/// Names of the columns.
pub(super) const COLUMNS: &[&str] =
    &["range_id", "start_key", "end_key", "replicas", "leaseholder", "bytes", "moves"];

/// Who looks at ranges, and by which names.
#[derive(Clone, Copy)]
pub struct RangeViewer<'a> {
    /// All descriptors.
    pub catalog: &'a Arc<Catalog>,
    /// The user.
    pub user: &'a str,
    /// Id of the session's database.
    pub database: u32,
    /// Schemas whose names are left out.
    pub search_path: &'a [String],
}

fn all(ctx: &Context) -> SqlResult<Vec<ShownRange>> {
    ctx.db.coordinator().describe_ranges().map_err(kv_error)?.ok_or_else(|| {
        SqlError::unsupported("SHOW RANGES on a node that is alone")
            .with_hint("Only the members of a cluster part their keys into ranges.")
    })
}

/// The range in which a row of a table is, or would be.
pub(super) fn of_row(ctx: &Context, table: &Name, values: &[Expr]) -> SqlResult<Vec<Row>> {
    let ranges = all(ctx)?;
    let table = ctx.table(table)?;
    let key = key_of(ctx, &table, values, "SHOW RANGE .. FOR ROW")?;
    let there: Vec<ShownRange> = ranges.into_iter().filter(|r| r.span.contains(&key)).collect();
    Ok(shown(ctx, &there))
}

/// The ranges in key order: all, or those in which rows or index entries of a table may be.
pub(super) fn rows(ctx: &Context, of: Option<&Arc<Table>>) -> SqlResult<Vec<Row>> {
    let mut ranges = all(ctx)?;
    if let Some(table) = of {
        let layout = TableLayout::new(&ctx.catalog, table)?;
        let mut spans = vec![layout.rows.whole_span()];
        spans.extend(layout.indexes.iter().map(|index| index.layout.whole_span()));
        ranges.retain(|range| spans.iter().any(|span| span.overlaps(&range.span)));
    }
    Ok(shown(ctx, &ranges))
}

fn shown(ctx: &Context, ranges: &[ShownRange]) -> Vec<Row> {
    let user = ctx.session.current_user();
    let (catalog, search_path) = (&ctx.catalog, ctx.search_path.as_slice());
    let borders =
        Borders::new(RangeViewer { catalog, user: &user, database: ctx.database, search_path });
    let text = |n: u64| Datum::text(n.to_string());
    let row = |range: &ShownRange| {
        let replicas: Vec<String> = range.replicas.iter().map(u64::to_string).collect();
        vec![
            text(range.id),
            Datum::text(borders.shown(&range.span.start)),
            Datum::text(borders.shown(&range.span.end)),
            Datum::text(replicas.join(",")),
            range.leaseholder.map_or(Datum::Null, text),
            text(range.bytes),
            range.moves.as_ref().map_or(Datum::Null, |moves| Datum::text(moves.as_str())),
        ]
    };
    ranges.iter().map(row).collect()
}

/// First and last border of each of these ranges, as far as somebody may see them.
pub fn shown_borders(viewer: RangeViewer<'_>, ranges: &[ShownRange]) -> Vec<(String, String)> {
    let borders = Borders::new(viewer);
    let shown =
        |range: &ShownRange| (borders.shown(&range.span.start), borders.shown(&range.span.end));
    ranges.iter().map(shown).collect()
}

/// Whose keys there are, by the ids in them.
struct Borders<'a> {
    viewer: RangeViewer<'a>,
    /// Who asks; `None`: somebody who sees everything.
    role: Option<u32>,
    owners: HashMap<u32, (&'a Arc<Table>, Option<&'a Index>)>,
    /// Columns of the keys that were shown, by the ids of their last elements.
    columns: RefCell<HashMap<u32, Vec<(SqlType, Direction)>>>,
}

impl<'a> Borders<'a> {
    fn new(viewer: RangeViewer<'a>) -> Borders<'a> {
        let c = viewer.catalog;
        let role = c.acting_role(viewer.user);
        let role = (!c.is_superuser(role)).then_some(role);
        let mut owners = HashMap::new();
        for table in c.tables() {
            owners.insert(table.id, (table, None));
            owners.extend(table.indexes.iter().map(|index| (index.id, (table, Some(index)))));
        }
        Borders { viewer, role, owners, columns: RefCell::default() }
    }

    /// A border as text, as far as the user may see it.
    fn shown(&self, key: &[u8]) -> String {
        if key == KeySpan::all().end {
            return "/Max".into();
        }
        let name = |id: u32, generation: u32| self.name(id, generation);
        let path = elements(key).unwrap_or_default();
        match path.iter().find(|element| !self.may_see(element.id)) {
            Some(element) => format!("{}/..", named_key(&key[..element.columns], &name, &[])),
            None => {
                let columns = path.last().map(|last| self.columns_of(last.id));
                named_key(key, &name, &columns.unwrap_or_default())
            }
        }
    }

    /// The columns of all keys that end in that table or index; none if they are not known.
    fn columns_of(&self, id: u32) -> Vec<(SqlType, Direction)> {
        let find = || {
            let (table, index) = self.owners.get(&id)?;
            let layout = TableLayout::new(self.viewer.catalog, table).ok()?;
            let keys = match index {
                None => &layout.rows,
                Some(index) => &layout.indexes.iter().find(|i| i.index.id == index.id)?.layout,
            };
            Some(keys.columns().iter().map(|column| (column.ty.clone(), column.dir)).collect())
        };
        let mut known = self.columns.borrow_mut();
        known.entry(id).or_insert_with(|| find().unwrap_or_default()).clone()
    }

    fn may_see(&self, id: u32) -> bool {
        let Some(role) = self.role else { return true };
        let owner = self.owners.get(&id);
        let may = |table: &Table| {
            self.viewer.catalog.may(role, table.id, Securable::Table, Privileges::of("r"))
        };
        owner.is_some_and(|(table, _)| may(table))
    }

    /// What is called so now: the rows of an older generation are gone.
    fn name(&self, id: u32, generation: u32) -> Option<String> {
        let (table, index) = self.owners.get(&id)?;
        let current = index.map_or(table.generation, |index| index.generation);
        let RangeViewer { catalog, database, search_path, .. } = self.viewer;
        let schema = catalog.schema_by_id(table.schema)?;
        let is_near = schema.database == database && search_path.contains(&schema.name);
        let place = if is_near { String::new() } else { format!("{}.", schema.name) };
        let index = index.map_or_else(String::new, |index| format!("@{}", index.name));
        (generation == current).then(|| format!("{place}{}{index}", table.name))
    }
}
