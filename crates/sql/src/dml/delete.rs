//! DELETE: by range tombstones where that is right, else row by row.

use std::collections::HashSet;
use std::sync::Arc;

use braid_catalog::kv_error;
use braid_kv::ReadMode;
use braid_types::{SqlError, SqlResult};
use bytes::Bytes;
use sqlparser::ast;

use super::Written;
use super::range_delete::RangeDelete;
use super::source::Source;
use super::target::{Returning, Target, bind_returning, returned};
use super::update::{key_items, key_query};
use super::writer::{TableInfo, Writer};
use crate::explain::{Explained, PlanLine, writing};
use crate::general_query::{ColumnInfo, Row};
use crate::plan::access::Access;
use crate::plan::rows::collect_rows;
use crate::session::Context;
use crate::storage::scan::get_row;
use braid_scalar::ParamTypes;

/// A planned DELETE.
pub struct DeletePlan {
    info: Arc<TableInfo>,
    how: How,
    returning: Option<Returning>,
}

enum How {
    /// One tombstone per span.
    Range(Box<RangeDelete>),
    /// Row by row, with the reason why not by tombstone.
    Rows { access: Box<Access>, reason: String },
    /// Rows named by a query that yields keys.
    General(Source),
}

impl DeletePlan {
    /// Plans a DELETE.
    pub fn new(
        ctx: &Context,
        delete: &ast::Delete,
        params: &mut ParamTypes,
    ) -> SqlResult<DeletePlan> {
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) =
            &delete.from;
        let [one] = from.as_slice() else {
            return Err(SqlError::syntax("DELETE needs one table"));
        };
        if !one.joins.is_empty() || !delete.order_by.is_empty() || delete.limit.is_some() {
            return Err(SqlError::unsupported("DELETE with JOIN, ORDER BY or LIMIT")
                .with_hint("Use DELETE .. USING, or a subquery that names the rows."));
        }
        let target = Target::factor(ctx, &one.relation)?;
        let info = Arc::new(TableInfo::new(ctx, &target.table)?);
        let returning =
            bind_returning(delete.returning.as_deref(), &target, delete.using.is_some(), params)?;
        let own = if delete.using.is_none() {
            let mut tried = params.clone();
            let filter = match &delete.selection {
                Some(e) => {
                    braid_scalar::bind_bool(e, "WHERE", &target.scope(), &mut tried).map(Some)
                }
                None => Ok(None),
            };
            match filter {
                Ok(filter) => {
                    *params = tried;
                    Some(filter)
                }
                Err(e) if braid_scalar::needs_general_query(&e) => None,
                Err(e) => return Err(e),
            }
        } else {
            None
        };
        let how = match own {
            Some(filter) => {
                let primary = Access::primary(&info.layout, filter.as_ref());
                match RangeDelete::plan(ctx, &info, primary, returning.is_some())? {
                    Ok(range) => How::Range(Box::new(range)),
                    Err(reason) => {
                        let access = Access::choose(&info.layout, filter.as_ref());
                        How::Rows { access: Box::new(access), reason }
                    }
                }
            }
            None => {
                let mut from = vec![one.to_string()];
                from.extend(delete.using.iter().flatten().map(ToString::to_string));
                let items = key_items(&target);
                How::General(key_query(ctx, &items, &from, delete.selection.as_ref(), params)?)
            }
        };
        Ok(DeletePlan { info, how, returning })
    }

    /// RETURNING columns.
    pub fn columns(&self) -> Option<Vec<ColumnInfo>> {
        self.returning.as_ref().map(|r| r.columns.clone())
    }

    /// Runs it.
    pub fn run(&self, ctx: &Context) -> SqlResult<Written> {
        let mut w = Writer::new(ctx);
        w.use_info(&self.info)?;
        let found: Vec<(Bytes, Row)> = match &self.how {
            How::Range(r) if r.is_too_wide(ctx, &self.info)? => {
                collect_rows(ctx, &self.info.layout, r.access())?
            }
            How::Range(r) => {
                return Ok(Written { count: r.run(ctx, &self.info)?, returning: None });
            }
            How::Rows { access, .. } => collect_rows(ctx, &self.info.layout, access)?,
            How::General(source) => {
                let mut seen = HashSet::new();
                let mut keys = Vec::new();
                for values in source.rows(ctx)? {
                    let key = self.info.layout.rows.prefix(&values)?;
                    if seen.insert(key.clone()) {
                        keys.push(Bytes::from(key));
                    }
                }
                let mut out = Vec::new();
                for part in keys.chunks(ctx.txn.batch_max()) {
                    let ask = part.iter().cloned();
                    ctx.txn.get_ahead(ask, ReadMode::Recorded).map_err(kv_error)?;
                    for key in part {
                        out.extend(get_row(&ctx.txn, &self.info.layout, key.clone())?);
                    }
                }
                out
            }
        };
        w.delete(&self.info, &found)?;
        w.finish()?;
        let count = found.len() as u64;
        let rows: Vec<Row> = found.into_iter().map(|(_, r)| r).collect();
        let returning = returned(ctx, self.returning.as_ref(), &rows)?;
        Ok(Written { count, returning })
    }

    /// EXPLAIN.
    pub fn explain(&self, ctx: &Context, analyze: bool) -> SqlResult<Explained> {
        let mut lines: Vec<PlanLine> = Vec::new();
        match &self.how {
            How::Range(r) => {
                lines.extend(r.explain(ctx, &self.info)?.into_iter().map(PlanLine::from))
            }
            How::Rows { access, reason } => {
                lines.push(format!("  row by row: {reason}").into());
                lines.extend(crate::plan::rows::describe(&self.info.layout, access, "  "));
            }
            How::General(source) => {
                lines.push(PlanLine::from("  row by row: the rows are named by a query"));
                lines.extend(source.explain(ctx)?);
            }
        }
        let run = analyze.then_some(|| Ok(self.run(ctx)?.count));
        writing(ctx, "Delete", &self.info.table().name, lines, run)
    }
}
