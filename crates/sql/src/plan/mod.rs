//! Own plans.
pub mod access;
pub mod rows;

use braid_types::{SqlError, SqlResult};
use sqlparser::ast;

use crate::expr::ParamTypes;
use crate::general_query::{ColumnInfo, RowStream};
use crate::session::Context;

/// Stub.
pub struct SelectPlan;

impl SelectPlan {
    /// Columns.
    pub fn columns(&self) -> &[ColumnInfo] {
        &[]
    }
    /// FOR UPDATE or FOR SHARE.
    pub fn locks_rows(&self) -> bool {
        false
    }
    /// Runs.
    pub fn run(&self, _ctx: &Context) -> SqlResult<Box<dyn RowStream>> {
        Err(SqlError::unsupported("SELECT"))
    }
    /// EXPLAIN.
    pub fn explain(&self, _ctx: &Context, _analyze: bool) -> SqlResult<Vec<String>> {
        Err(SqlError::unsupported("SELECT"))
    }
}

/// Plans a query if it is one of ours.
pub fn plan_query(
    _: &Context,
    _: &ast::Query,
    _: &mut ParamTypes,
) -> SqlResult<Option<SelectPlan>> {
    Ok(None)
}
