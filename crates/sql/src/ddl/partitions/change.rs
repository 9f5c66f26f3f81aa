//! ALTER TABLE .. ATTACH and DETACH PARTITION, ALTER INDEX .. ATTACH PARTITION.

use braid_parser::PartitionChange;
use braid_types::SqlResult;

use super::attach::attach;
use super::detach::detach;
use super::indexes;
use crate::ddl::Change;

pub(crate) fn change(c: &mut Change, change: &PartitionChange) -> SqlResult<String> {
    match change {
        PartitionChange::AttachIndex { index, partition } => {
            indexes::attach(c, index, partition)?;
            return Ok("ALTER INDEX".into());
        }
        PartitionChange::Attach { table, if_exists, .. }
        | PartitionChange::Detach { table, if_exists, .. }
            if *if_exists && c.ctx.find_relation(table)?.is_none() =>
        {
            c.ctx.notice(format!("relation \"{}\" does not exist, skipping", table.join(".")));
        }
        PartitionChange::Attach { table, partition, bound, .. } => {
            attach(c, table, partition, bound)?;
        }
        PartitionChange::Detach { table, partition, .. } => detach(c, table, partition)?,
    }
    Ok("ALTER TABLE".into())
}
