//! [`Divided`]: a table, or a partition of one, that is divided into partitions.

use std::sync::Arc;

use braid_catalog::{Partitioning, Relation, Table};
use braid_parser::Name;
use braid_types::{SqlError, SqlResult, SqlState};

use super::indexes;
use crate::ddl::Change;

/// What is divided: a table, or a partition that is divided itself.
pub(super) struct Divided {
    /// The table that holds the rows.
    pub(super) table: Arc<Table>,
    /// The id of the table or of the partition.
    pub(super) id: u32,
    /// Its name.
    pub(super) name: String,
}

impl Divided {
    /// By name.
    ///
    /// # Errors
    /// 42P01; 42P17 if it is not partitioned.
    pub(super) fn named(c: &Change, name: &Name) -> SqlResult<Divided> {
        let found = c.ctx.relation(name)?;
        let id = found.id();
        let (Relation::Table(t) | Relation::Partition(t)) = &found else {
            return Err(not_partitioned(name));
        };
        let table = c.stored(t.id)?;
        match table.partitioning() {
            Some(divided) if divided.key_of(id).is_some() => {}
            _ => return Err(not_partitioned(name)),
        }
        Ok(Divided { id, name: t.name.clone(), table })
    }

    /// As [`Divided::named`], in the words of ALTER TABLE.
    pub(super) fn of_alter_table(c: &Change, name: &Name) -> SqlResult<Divided> {
        Divided::named(c, name).map_err(|e| match e.state() {
            SqlState::INVALID_OBJECT_DEFINITION => {
                let bare = name.last().map_or("", String::as_str);
                let text = format!("table \"{bare}\" is not partitioned");
                SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, text)
            }
            _ => e,
        })
    }

    /// All partitions of its table.
    pub(super) fn partitioning(&self) -> SqlResult<&Partitioning> {
        self.table
            .partitioning()
            .ok_or_else(|| SqlError::internal("a table without its partitions"))
    }
}

fn not_partitioned(name: &Name) -> SqlError {
    let bare = name.last().map_or("", String::as_str);
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, format!("\"{bare}\" is not partitioned"))
}

/// Changes how a table is divided.
pub(super) fn redivide(
    c: &mut Change,
    table: u32,
    work: impl FnOnce(&mut Partitioning),
) -> SqlResult<Arc<Table>> {
    let mut new = (*c.stored(table)?).clone();
    if let Some(divided) = new.partitioning_mut() {
        work(divided);
    }
    indexes::renew_predicates(&mut new)?;
    Ok(c.put(new))
}
