//! ALTER INDEX .. ADD and DROP STORED COLUMN: which columns the entries of an index hold besides
//! their key. The entries are written anew, in a new generation.

use braid_catalog::{Relation, Table};
use braid_parser::Name;
use braid_types::{SqlError, SqlResult, SqlState};

use crate::ddl::{Change, backfill, bad_table, truncate};

/// Adds a column to the entries of an index, or takes it out.
pub(crate) fn store_column(
    c: &mut Change,
    name: &Name,
    column: &str,
    add: bool,
) -> SqlResult<String> {
    let shown = name.join(".");
    let wrong = |message: String| SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
    let Relation::Index(t, id) = c.ctx.relation(name)? else {
        return Err(wrong(format!("\"{shown}\" is not an index")));
    };
    c.lock_chain(&t)?;
    let Some(t) = c.catalog.table(t.id).cloned() else {
        return Err(SqlError::internal("the table of an index is gone"));
    };
    let Some(at) = t.indexes.iter().position(|i| i.id == id) else {
        return Err(wrong(format!("\"{shown}\" is a primary key"))
            .with_hint("The entries of a primary key are the rows: they hold all columns."));
    };
    let include = changed(&t, at, column, add)?;
    let old = t.indexes[at].clone();
    let mut new = (*t).clone();
    new.indexes[at].include = include;
    new.indexes[at].generation = c.next_generation(id, old.generation)?;
    match old.interleave_in {
        None => truncate::erase(c, id, old.generation)?,
        Some(lies_in) => c.discard_index(lies_in, &old)?,
    }
    c.put(new);
    backfill::build_index(c, t.id, id)?;
    Ok("ALTER INDEX".into())
}

/// The stored columns as they will be.
fn changed(t: &Table, at: usize, column: &str, add: bool) -> SqlResult<Vec<u32>> {
    let index = &t.indexes[at];
    let found = t.column_named(column).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{}\" does not exist", t.name),
        )
    })?;
    let is_stored = index.include.contains(&found.id);
    if !add {
        if !is_stored {
            return Err(bad_table(format!(
                "index \"{}\" does not store column \"{column}\"",
                index.name
            )));
        }
        return Ok(index.include.iter().copied().filter(|id| *id != found.id).collect());
    }
    if is_stored {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("index \"{}\" stores column \"{column}\" already", index.name),
        ));
    }
    let key = index.columns.iter().chain(&t.primary.columns);
    if key.clone().any(|k| k.column == found.id) {
        return Err(bad_table(format!(
            "column \"{column}\" is in every entry of index \"{}\" as a key",
            index.name
        ))
        .with_hint("Only other columns can be stored."));
    }
    let mut include = index.include.clone();
    include.push(found.id);
    Ok(include)
}
