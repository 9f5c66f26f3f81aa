//! ALTER TABLE .. ADD PRIMARY KEY, and DROP CONSTRAINT of one: rows lie under their primary keys,
//! so they move to other keys, under a new generation.
//!
//! A table without one keeps its rows under a hidden row id. ALTER PRIMARY KEY goes from one key to
//! another at once, in steps that keep nobody out ([`crate::ddl::moves`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{Catalog, IndexColumn, Table, choose_constraint_name};
use braid_parser::parse_query;
use braid_scalar::ident_name;
use braid_types::{Datum, SqlResult, SqlState};
use sqlparser::ast;

use super::create_table;
use crate::ddl::{Change, backfill, bad_table, constraint, drop, exists, index, partitions};
use crate::dml::source::Source;
use crate::session::Context;

/// Gives a table without a primary key one; `column` is that of an inline declaration.
pub(in crate::ddl) fn add(
    c: &mut Change,
    t: &Arc<Table>,
    p: &ast::PrimaryKeyConstraint,
    column: Option<u32>,
) -> SqlResult<()> {
    constraint::refuse_deferrable(p.characteristics.as_ref())?;
    if !t.has_row_id() {
        return Err(bad_table(format!(
            "multiple primary keys for table \"{}\" are not allowed",
            t.name
        )));
    }
    let columns = match column {
        Some(column) => vec![IndexColumn::asc(column)],
        None => index::key_columns(t, &p.columns)?,
    };
    let name = match &p.name {
        Some(n) => ident_name(n),
        None => choose_constraint_name(&t.name, &[], "pkey", |n| c.taken(t.schema, n)),
    };
    if c.taken(t.schema, &name) {
        return Err(exists(&name));
    }
    let old = backfill::layout(c, t.id)?;
    for k in &columns {
        let ordinal = t.ordinal(k.column).expect("resolved just now");
        if t.columns[ordinal].nullable {
            backfill::validate_not_null(c, t.id, ordinal)?;
        }
    }
    let hidden = t.columns.iter().position(|x| x.is_row_id()).expect("it has a row id");
    let mut new = (**t).clone();
    create_table::set_primary(&mut new, columns, name)?;
    partitions::check_index(&new, &new.primary)?;
    new.columns.remove(hidden);
    rekey(c, &mut new)?;
    c.put(new);
    backfill::rewrite(c, &old, t.id, |mut row| {
        row.remove(hidden);
        Ok(row)
    })
}

/// Takes a table's primary key away; what refers to it goes along with CASCADE. Its columns go on
/// to hold no NULL.
pub(in crate::ddl) fn drop(c: &mut Change, t: &Arc<Table>, cascade: bool) -> SqlResult<()> {
    let what = format!("constraint {} on table {}", t.primary.name, t.name);
    let without = without_key(t);
    let leaning = drop::foreign_keys_that_need(c, &without, &t.primary.columns);
    let needs = |(r, fk): &(Arc<Table>, String)| {
        format!("constraint {fk} on table {} depends on index {}", r.name, t.primary.name)
    };
    let mut lines: Vec<String> = leaning.iter().map(needs).collect();
    let views = views_by_key(c, without)?;
    lines.extend(
        views
            .iter()
            .filter_map(|view| c.catalog.relation_by_id(*view))
            .map(|view| format!("{} depends on {what}", drop::called(c, &view))),
    );
    drop::refuse_or_notice(c, cascade, &what, &lines)?;
    let mut above = drop::dependent_views(c, &views);
    above.extend(views);
    drop::remove_views(c, above)?;
    drop::remove_foreign_keys(c, leaning.into_iter().map(|(r, fk)| (r.id, fk)))?;
    let t = c.stored(t.id)?;
    end(c, &t)
}

/// The table under a row id that nobody sees.
fn without_key(t: &Table) -> Table {
    let mut without = t.clone();
    without.primary.constraint = None;
    create_table::add_row_id(&mut without);
    without
}

/// Views that show columns which they do not group by, since the key tells them: of the table
/// `without` it they mean nothing.
fn views_by_key(c: &Change, without: Table) -> SqlResult<BTreeSet<u32>> {
    let id = without.id;
    let mut catalog = c.catalog.clone();
    catalog.put_table(without);
    let catalog = Arc::new(catalog);
    let mut out = BTreeSet::new();
    for (view, definition) in c.catalog.definitions() {
        if !definition.depends_on.contains(&id) || c.catalog.relation_by_id(view).is_none() {
            continue;
        }
        let query = parse_query(&definition.query)?;
        let search_path = Arc::new(definition.search_path.clone());
        let fails = |catalog: &Arc<Catalog>| {
            let ctx = Context {
                catalog: catalog.clone(),
                search_path: search_path.clone(),
                ..c.ctx.clone()
            };
            let planned = Source::plan_query(&ctx, &query);
            planned.is_err_and(|e| e.state() == SqlState::GROUPING_ERROR)
        };
        if fails(&catalog) && !fails(&c.ctx.catalog) {
            out.insert(view);
        }
    }
    Ok(out)
}

/// 42P16 if the rows of other tables lie under this one's key.
pub(in crate::ddl) fn refuse_parent(c: &Change, t: &Table, what: &str) -> SqlResult<()> {
    let children: Vec<_> =
        c.catalog.interleaved_children(t.id).map(|t| format!("\"{}\"", t.name)).collect();
    if children.is_empty() {
        return Ok(());
    }
    let (name, children) = (&t.name, children.join(", "));
    let text =
        format!("cannot {what} the primary key of table \"{name}\": {children} interleaved in it");
    Err(bad_table(text).with_hint("Take them out first: ALTER TABLE .. DROP INTERLEAVE."))
}

/// As [`drop()`], where nothing refers to it any more.
///
/// # Errors
/// 42P16 if the key is what keeps families together.
pub(in crate::ddl) fn end(c: &mut Change, t: &Arc<Table>) -> SqlResult<()> {
    refuse_parent(c, t, "drop")?;
    if t.interleave.is_some() {
        return Err(bad_table(format!(
            "cannot drop the primary key of table \"{}\": it is interleaved",
            t.name
        ))
        .with_hint("ALTER PRIMARY KEY USING COLUMNS .. INTERLEAVE IN .. changes it."));
    }
    let old = backfill::layout(c, t.id)?;
    let mut new = without_key(t);
    new.primary.name = choose_constraint_name(&t.name, &[], "rowid", |n| c.taken(t.schema, n));
    for i in new.indexes.iter_mut().filter(|i| i.interleave_in.is_some()) {
        let text = format!("index \"{}\" is not interleaved in \"{}\" any more", i.name, t.name);
        c.ctx.notice(text);
        i.interleave_in = None;
    }
    rekey(c, &mut new)?;
    c.put(new);
    let db = c.ctx.db.clone();
    backfill::rewrite(c, &old, t.id, |mut row| {
        row.push(Datum::Int8(db.new_row_id()));
        Ok(row)
    })
}

/// New generations: entries name rows by their keys, so every index starts anew. The key is another
/// index than before.
fn rekey(c: &Change, t: &mut Table) -> SqlResult<()> {
    t.primary.id = c.new_id()?;
    t.generation = c.next_generation(t.id, t.generation)?;
    for i in &mut t.indexes {
        i.generation = c.next_generation(i.id, i.generation)?;
    }
    Ok(())
}
