//! DROP and TRUNCATE of a partition: its rows go.

use braid_catalog::Table;
use braid_types::{SqlError, SqlResult, SqlState};

use super::Divided;
use super::declare::full_name;
use super::detach::remove_from;
use super::rows::delete_from;
use crate::ddl::{Change, backfill, truncate};

/// 2BP01 or 0A000 where foreign keys refer to the table: PostgreSQL has them depend on each
/// partition.
fn check_unreferenced(c: &Change, window: &Table, what: &str) -> SqlResult<()> {
    let Some(r) = c.catalog.referencing_tables(window.id).next() else { return Ok(()) };
    if what == "truncate" {
        return Err(truncate::referenced(&window.name, &r.name));
    }
    let fk = r.foreign_keys.iter().find(|fk| fk.parent == window.id);
    let fk = fk.map_or("", |fk| fk.name.as_str());
    Err(SqlError::new(
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot drop table {} because other objects depend on it", window.name),
    )
    .with_detail(format!("constraint {fk} on table {} depends on table {}", r.name, window.name))
    .with_hint("Drop the foreign key first: it is of the whole table."))
}

/// TRUNCATE of a partition.
pub(in crate::ddl) fn empty(c: &mut Change, window: &Table) -> SqlResult<()> {
    check_unreferenced(c, window, "truncate")?;
    c.lock_chain(&c.stored(window.id)?)?;
    backfill::renew_view(c, &*backfill::layout(c, window.id)?)?;
    delete_from(c, &full_name(c, window))
}

/// DROP TABLE of a partition: its rows go.
pub(in crate::ddl) fn drop_partition(c: &mut Change, window: &Table) -> SqlResult<()> {
    check_unreferenced(c, window, "drop")?;
    let table = c.stored(window.id)?;
    c.lock_chain(&table)?;
    backfill::renew_view(c, &*backfill::layout(c, window.id)?)?;
    delete_from(c, &full_name(c, window))?;
    let own = window.window().cloned().ok_or_else(|| SqlError::internal("no partition"))?;
    let parent = Divided { id: own.parent, name: table.name.clone(), table };
    remove_from(c, &parent, &own)
}
