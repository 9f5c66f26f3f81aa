//! TRUNCATE: a new generation in the catalog, O(1) in rows.
//!
//! The keys of a table's rows, and of everything interleaved in them, carry the generation, so all
//! old rows are unreachable at once. Those in spans of their own are also covered by a range
//! tombstone, so that their space comes back; those inside of a parent's families are taken away in
//! the background ([`crate::jobs::reclaim`]). Scans do not meet them: the new generation is of
//! another row class.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{Catalog, Relation, Sequence, Table, kv_error};
use braid_keys::path::generations_upto;
use braid_kv::KeySpan;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;

use crate::ddl::{Change, partitions, parts};

pub(crate) fn run(c: &mut Change, t: &ast::Truncate) -> SqlResult<String> {
    let cascade = matches!(t.cascade, Some(ast::CascadeOption::Cascade));
    let restart = matches!(t.identity, Some(ast::TruncateIdentityOption::Restart));
    let (mut wanted, mut windows) = (BTreeSet::new(), Vec::new());
    for target in &t.table_names {
        let name = parts(&target.name);
        if t.if_exists && c.ctx.find_relation(&name)?.is_none() {
            continue;
        }
        let found = c.ctx.relation(&name)?;
        if let Relation::Table(t) | Relation::Partition(t) = &found
            && target.only
            && t.is_divided()
        {
            let text = "cannot truncate only a partitioned table";
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text).with_hint(
                "Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions directly.",
            ));
        }
        match found {
            Relation::Partition(window) => windows.push(window),
            _ => drop(wanted.insert(c.ctx.table(&name)?.id)),
        }
    }
    for window in windows.iter().filter(|w| !wanted.contains(&w.id)) {
        partitions::empty(c, window)?;
    }
    if cascade {
        let all = closure(&c.catalog, &wanted);
        for id in all.difference(&wanted) {
            if let Some(t) = c.catalog.table(*id) {
                c.ctx.notice(format!("truncate cascades to table \"{}\"", t.name));
            }
        }
        wanted = all;
    } else {
        check_alone(&c.catalog, &wanted)?;
    }
    take_rows(c, &wanted, restart)?;
    Ok("TRUNCATE TABLE".into())
}

/// Takes the rows of tables that nothing else hangs on.
pub(in crate::ddl) fn tables(c: &mut Change, wanted: &BTreeSet<u32>) -> SqlResult<()> {
    check_alone(&c.catalog, wanted)?;
    take_rows(c, wanted, false)
}

/// The same whatever refers to them: somebody knows that nothing does.
pub(super) fn take_rows(c: &mut Change, wanted: &BTreeSet<u32>, restart: bool) -> SqlResult<()> {
    lock(c, wanted)?;
    for id in wanted {
        truncate_one(c, *id, restart)?;
    }
    c.sync();
    Ok(())
}

/// Keeps all others from these tables.
pub(super) fn lock(c: &Change, wanted: &BTreeSet<u32>) -> SqlResult<()> {
    for id in wanted {
        let t = c.catalog.table(*id).cloned().expect("collected from the catalog");
        c.lock_chain(&t)?;
    }
    Ok(())
}

/// The tables and everything interleaved in them or referencing them.
fn closure(catalog: &Catalog, start: &BTreeSet<u32>) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    let mut todo: Vec<u32> = start.iter().copied().collect();
    while let Some(id) = todo.pop() {
        if out.insert(id) {
            todo.extend(catalog.interleaved_children(id).map(|t| t.id));
            todo.extend(catalog.referencing_tables(id).map(|t| t.id));
        }
    }
    out
}

fn check_alone(catalog: &Catalog, wanted: &BTreeSet<u32>) -> SqlResult<()> {
    for id in wanted {
        let Some(t) = catalog.table(*id) else { continue };
        let outside: Vec<_> =
            catalog.interleaved_children(*id).filter(|c| !wanted.contains(&c.id)).collect();
        if let Some(child) = outside.first() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "cannot truncate table \"{}\": it is interleaved by table \"{}\"",
                    t.name, child.name
                ),
            )
            .with_hint(format!(
                "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                child.name
            )));
        }
        if let Some(r) = catalog.referencing_tables(*id).find(|r| !wanted.contains(&r.id)) {
            return Err(referenced(&t.name, &r.name));
        }
    }
    Ok(())
}

/// 0A000 for a table that a foreign key of another one, which stays, refers to.
pub(in crate::ddl) fn referenced(table: &str, by: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "cannot truncate a table referenced in a foreign key constraint",
    )
    .with_detail(format!("Table \"{by}\" references \"{table}\"."))
    .with_hint(format!("Truncate table \"{by}\" at the same time, or use TRUNCATE ... CASCADE."))
}

fn truncate_one(c: &mut Change, id: u32, restart: bool) -> SqlResult<()> {
    let t: Arc<Table> = c.catalog.table(id).expect("collected from the catalog").clone();
    if t.interleave.is_none() {
        erase(c, t.id, t.generation)?;
    }
    c.discard(&t)?;
    let mut new = (*t).clone();
    new.generation = c.next_generation(t.id, t.generation)?;
    for i in &mut new.indexes {
        if i.interleave_in.is_none() {
            erase(c, i.id, i.generation)?;
        }
        i.generation = c.next_generation(i.id, i.generation)?;
    }
    c.catalog.put_table(new);
    if restart {
        for mut seq in owned_sequences(&c.catalog, &t) {
            seq.generation = c.new_generation()?;
            c.catalog.put_sequence(seq);
        }
    }
    Ok(())
}

/// Sequences of a table's serial and identity columns, and those it owns by OWNED BY.
pub(in crate::ddl) fn owned_sequences(catalog: &Catalog, t: &Table) -> Vec<Sequence> {
    let serial: BTreeSet<u32> = t.columns.iter().filter_map(|col| col.sequence).collect();
    let own = |s: &&Arc<Sequence>| {
        serial.contains(&s.id) || s.owned_by.is_some_and(|(table, _)| table == t.id)
    };
    catalog.sequences().filter(own).map(|s| (**s).clone()).collect()
}

/// Puts a range tombstone over a root table or global index, up to its present generation.
pub(in crate::ddl) fn erase(c: &Change, id: u32, generation: u32) -> SqlResult<()> {
    let (start, end) = generations_upto(id, generation);
    c.ctx.txn.delete_span(&KeySpan::new(start, end)).map_err(kv_error)?;
    Ok(())
}
