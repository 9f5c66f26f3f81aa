//! INSERT, UPDATE, DELETE.
use braid_types::{SqlError, SqlResult};
use sqlparser::ast;

use crate::expr::ParamTypes;
use crate::general_query::{ColumnInfo, Row};
use crate::parse::Overriding;
use crate::session::Context;

/// What a writing statement did.
#[derive(Debug, Default)]
pub struct Written {
    /// Rows of the named table.
    pub count: u64,
    /// RETURNING.
    pub returning: Option<Vec<Row>>,
}

macro_rules! stub {
    ($n:ident) => {
        /// Stub.
        pub struct $n;
        impl $n {
            /// RETURNING columns.
            pub fn columns(&self) -> Option<Vec<ColumnInfo>> {
                None
            }
            /// Runs it.
            pub fn run(&self, _ctx: &Context) -> SqlResult<Written> {
                Err(SqlError::unsupported("this statement"))
            }
            /// EXPLAIN.
            pub fn explain(&self, _ctx: &Context, _analyze: bool) -> SqlResult<Vec<String>> {
                Err(SqlError::unsupported("this statement"))
            }
        }
    };
}
stub!(InsertPlan);
stub!(UpdatePlan);
stub!(DeletePlan);
impl InsertPlan {
    /// Plans.
    pub fn new(
        _: &Context,
        _: &ast::Insert,
        _: Option<Overriding>,
        _: &mut ParamTypes,
    ) -> SqlResult<Self> {
        Err(SqlError::unsupported("INSERT"))
    }
}
impl UpdatePlan {
    /// Plans.
    pub fn new(_: &Context, _: &ast::Update, _: &mut ParamTypes) -> SqlResult<Self> {
        Err(SqlError::unsupported("UPDATE"))
    }
}
impl DeletePlan {
    /// Plans.
    pub fn new(_: &Context, _: &ast::Delete, _: &mut ParamTypes) -> SqlResult<Self> {
        Err(SqlError::unsupported("DELETE"))
    }
}
