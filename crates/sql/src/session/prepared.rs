//! Prepared statements: a statement with its plan for one picture of the catalog.

use std::sync::Arc;

use braid_catalog::Catalog;
use braid_types::SqlType;

use crate::dml::{DeletePlan, InsertPlan, UpdatePlan};
use crate::general_query::{ColumnInfo, GeneralPlan};
use crate::plan::SelectPlan;
use braid_parser::Statement;

/// A statement that was planned and can be executed.
pub struct Prepared {
    pub(crate) statement: Statement,
    pub(crate) plan: Plan,
    pub(crate) columns: Option<Vec<ColumnInfo>>,
    pub(crate) params: Vec<SqlType>,
    /// The catalog it was planned with: another one means planning again.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) search_path: Arc<Vec<String>>,
}

/// How a statement is run.
pub(crate) enum Plan {
    /// Own SELECT.
    Select(Arc<SelectPlan>),
    /// DataFusion's.
    General(Arc<dyn GeneralPlan>),
    /// INSERT.
    Insert(Arc<InsertPlan>),
    /// UPDATE.
    Update(Arc<UpdatePlan>),
    /// DELETE.
    Delete(Arc<DeletePlan>),
    /// Run from the parsed statement.
    Utility,
}

impl Prepared {
    /// Types of `$1`, `$2`, ...
    pub fn param_types(&self) -> &[SqlType] {
        &self.params
    }

    /// Result columns, if it returns rows.
    pub fn columns(&self) -> Option<&[ColumnInfo]> {
        self.columns.as_deref()
    }

    /// The statement.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }
}
