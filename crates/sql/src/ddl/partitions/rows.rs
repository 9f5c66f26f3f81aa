//! Rows that move into a partitioned table or out of it, and rows that go.

use std::sync::Arc;

use braid_catalog::Table;
use braid_parser::{Kind, parse_expr, parse_script};
use braid_scalar::{ParamTypes, bind_bool};
use braid_types::{Datum, SqlError, SqlResult};
use sqlparser::ast::Statement as Sql;

use super::declare::full_name;
use crate::ddl::{Change, backfill};
use crate::dml::DeletePlan;
use crate::dml::table_load::{FEW_BYTES, FEW_ROWS, TableLoad};
use crate::dml::writer::{TableInfo, Writer};
use braid_rows::TableLayout;
use braid_rows::{Row, row_memory, table_scope};

/// Writes the rows of a layout as rows of a table: all, or those for which a condition holds, which
/// then go where they were.
pub(super) fn move_rows(
    c: &Change,
    old: &Arc<TableLayout>,
    table: &Arc<Table>,
    condition: Option<&str>,
) -> SqlResult<()> {
    let info = Arc::new(TableInfo::new(&c.ctx, table)?);
    let from = &old.table;
    let bind = |text: &str| {
        bind_bool(&parse_expr(text)?, "WHERE", &table_scope(from), &mut ParamTypes::default())
    };
    let condition = condition.map(bind).transpose()?;
    let places: Vec<Option<usize>> = table
        .columns
        .iter()
        .map(|col| from.columns.iter().position(|own| !col.hidden && own.name == col.name))
        .collect();
    let moved = |row: &Row| {
        let value = |(at, place): (usize, &Option<usize>)| match place {
            Some(place) => Ok(row[*place].clone()),
            None if info.table().columns[at].is_row_id() => info.filler.default(&c.ctx, at),
            None => Ok(Datum::Null),
        };
        places.iter().enumerate().map(value).collect::<SqlResult<Row>>()
    };
    let mut mover = Mover::new(c, &info);
    backfill::each_row(c, old, |_, row| {
        let wanted = match &condition {
            Some(condition) => condition.eval_bool(&row, &c.ctx.eval)?,
            None => true,
        };
        if wanted {
            mover.add(moved(&row)?)?;
        }
        Ok(())
    })?;
    mover.end()
}

/// Writes rows: a few one by one, many as a load if they go into a table that is new. Holds no more
/// than a few.
struct Mover<'a> {
    c: &'a Change,
    info: &'a Arc<TableInfo>,
    rows: Vec<((), Row)>,
    bytes: usize,
    /// Whether there were more than a few.
    is_many: bool,
    load: Option<TableLoad>,
}

impl<'a> Mover<'a> {
    fn new(c: &'a Change, info: &'a Arc<TableInfo>) -> Mover<'a> {
        Mover { c, info, rows: Vec::new(), bytes: 0, is_many: false, load: None }
    }

    fn add(&mut self, row: Row) -> SqlResult<()> {
        let ctx = &self.c.ctx;
        self.bytes += row_memory(&row);
        self.rows.push(((), row));
        let most = if self.is_many { ctx.txn.batch_max() } else { FEW_ROWS };
        if self.rows.len() < most && self.bytes < FEW_BYTES {
            return Ok(());
        }
        // The change of the catalog is written beside the rows.
        if !std::mem::replace(&mut self.is_many, true)
            && TableLoad::is_possible(ctx, self.info)?
            && TableLoad::is_private(ctx, self.info.table())?
        {
            let memory = ctx.session.load_memory();
            self.load = Some(TableLoad::start_within_change(ctx, self.info, memory)?);
        }
        self.flush()
    }

    fn flush(&mut self) -> SqlResult<()> {
        self.bytes = 0;
        let mut rows = std::mem::take(&mut self.rows).into_iter();
        let mut w = Writer::new(&self.c.ctx);
        w.use_info(self.info)?;
        while rows.len() > 0 {
            let part = rows.by_ref().take(self.c.ctx.txn.batch_max()).collect();
            match &mut self.load {
                Some(load) => load.add(part).map_err(|((), e)| e)?,
                None => w.insert_together(self.info, part).map_err(|(_, e)| e)?,
            }
        }
        w.finish()
    }

    fn end(mut self) -> SqlResult<()> {
        self.flush()?;
        if let Some(load) = self.load {
            load.finish()?;
        }
        Ok(())
    }
}

/// Deletes the rows for which a condition holds.
pub(super) fn delete_rows(c: &Change, old: &Arc<TableLayout>, condition: &str) -> SqlResult<()> {
    let table = c.stored(old.table.id)?;
    delete_from(c, &format!("{} WHERE {condition}", full_name(c, &table)))
}

/// Deletes rows of a table that is locked: by a range delete where the condition is spans of the
/// key, so that it costs the same for many as for few.
pub(super) fn delete_from(c: &Change, what: &str) -> SqlResult<()> {
    let statements = parse_script(&format!("DELETE FROM {what}"))?;
    let kind = statements.first().map(|s| &*s.kind);
    let Some(Kind::Sql(sql)) = kind else {
        return Err(SqlError::internal("a DELETE is none"));
    };
    let Sql::Delete(delete) = &**sql else { return Err(SqlError::internal("a DELETE is none")) };
    DeletePlan::new(&c.ctx, delete, &mut c.ctx.no_params())?.run_alone(&c.ctx)
}
