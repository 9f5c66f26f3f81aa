//! Conditions that a scan checks itself, before it decodes the other columns.
//!
//! Only what cannot fail is taken: it is checked for all rows, also for those that another
//! condition would have refused. What can fail stays in the filter above the scan, which sees the
//! rows that are left.

use std::fmt;
use std::sync::Arc;

use braid_sql::storage::Column;
use braid_types::{SqlError, SqlResult};
use datafusion::arrow::array::{Array, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{and, filter_record_batch, prep_null_mask_filter};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;

use super::columns::record_batch;
use super::constant::is_constant;
use crate::error::from_df;

/// Whether a condition over columns of this schema can be checked by the scan.
pub(super) fn is_for_scan(expr: &Expr, schema: &Schema) -> bool {
    let again = |e: &Expr| is_for_scan(e, schema);
    let operand = |e: &Expr| is_operand(e, schema);
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And | Operator::Or => again(left) && again(right),
            op => is_comparison(*op) && operand(left) && operand(right),
        },
        Expr::Not(e)
        | Expr::IsTrue(e)
        | Expr::IsFalse(e)
        | Expr::IsUnknown(e)
        | Expr::IsNotTrue(e)
        | Expr::IsNotFalse(e)
        | Expr::IsNotUnknown(e) => again(e),
        // What the optimizer makes of conditions.
        Expr::Literal(value, _) => matches!(value, ScalarValue::Boolean(_) | ScalarValue::Null),
        Expr::IsNull(e) | Expr::IsNotNull(e) => operand(e) || again(e),
        Expr::InList(InList { expr, list, .. }) => operand(expr) && list.iter().all(operand),
        Expr::Between(Between { expr, low, high, .. }) => {
            operand(expr) && operand(low) && operand(high)
        }
        Expr::Column(c) => {
            schema.field_with_name(&c.name).is_ok_and(|f| *f.data_type() == DataType::Boolean)
        }
        _ => false,
    }
}

fn is_comparison(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// A column, perhaps widened, or a value.
fn is_operand(expr: &Expr, schema: &Schema) -> bool {
    let column = |e: &Expr| match e {
        Expr::Column(c) => schema.field_with_name(&c.name).ok().map(|f| f.data_type().clone()),
        _ => None,
    };
    match expr {
        Expr::Literal(..) => true,
        Expr::Cast(cast) => column(&cast.expr).is_some_and(|from| {
            matches!(
                (from, cast.field.data_type()),
                (DataType::Int16, DataType::Int32 | DataType::Int64)
                    | (DataType::Int32, DataType::Int64)
            )
        }),
        other => is_constant(other) || column(other).is_some(),
    }
}

/// The conditions of a scan.
#[derive(Clone)]
pub(super) struct ScanFilter {
    /// Over columns of `schema`.
    conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// Which columns of the table they are about.
    pub(super) columns: Vec<usize>,
    schema: SchemaRef,
}

impl fmt::Debug for ScanFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions: Vec<String> = self.conditions.iter().map(ToString::to_string).collect();
        f.write_str(&conditions.join(" AND "))
    }
}

impl ScanFilter {
    /// Those of the filters that the scan of a table with this schema checks; `None` if there are
    /// none.
    ///
    /// # Errors
    /// What DataFusion reports when it plans an expression.
    pub(super) fn new(
        filters: &[Expr],
        schema: &SchemaRef,
        session: &dyn Session,
    ) -> Result<Option<ScanFilter>> {
        let mut columns = Vec::new();
        let taken: Vec<&Expr> = filters.iter().filter(|e| is_for_scan(e, schema)).collect();
        for filter in &taken {
            filter.apply(|e| {
                if let Expr::Column(column) = e {
                    columns.push(schema.index_of(&column.name)?);
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        if taken.is_empty() {
            return Ok(None);
        }
        columns.sort_unstable();
        columns.dedup();
        let schema = Arc::new(schema.project(&columns)?);
        let named = DFSchema::try_from(schema.clone())?;
        let conditions =
            taken.into_iter().map(|filter| session.create_physical_expr(filter.clone(), &named));
        let conditions = conditions.collect::<Result<_>>()?;
        Ok(Some(ScanFilter { conditions, columns, schema }))
    }

    /// Of these rows, which pass; `None`: all.
    ///
    /// # Errors
    /// Of constants that cannot be computed.
    pub(super) fn choose(&self, columns: Vec<Column>, rows: usize) -> SqlResult<Option<Vec<u32>>> {
        let mask = self.mask(&record_batch(columns, rows, &self.schema)?)?;
        if mask.true_count() == rows {
            return Ok(None);
        }
        Ok(Some(mask.values().set_indices_u32().collect()))
    }

    /// The rows of a batch that pass; `probe` holds their columns that the conditions are about.
    ///
    /// # Errors
    /// As [`ScanFilter::choose`].
    pub(super) fn filter(
        &self,
        batch: &RecordBatch,
        probe: &RecordBatch,
    ) -> SqlResult<RecordBatch> {
        let mask = self.mask(probe)?;
        filter_record_batch(batch, &mask).map_err(|e| SqlError::internal(e.to_string()))
    }

    /// The columns that [`ScanFilter::filter`] looks at.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Without NULLs.
    fn mask(&self, probe: &RecordBatch) -> SqlResult<BooleanArray> {
        let mut mask: Option<BooleanArray> = None;
        for condition in &self.conditions {
            let value = condition.evaluate(probe).and_then(|v| v.into_array(probe.num_rows()));
            let value = value.map_err(from_df)?;
            if *value.data_type() == DataType::Null {
                return Ok(BooleanArray::from(vec![false; probe.num_rows()]));
            }
            let value = value.as_any().downcast_ref::<BooleanArray>();
            let value =
                value.ok_or_else(|| SqlError::internal("a condition that is no boolean"))?;
            let value = match value.null_count() {
                0 => value.clone(),
                _ => prep_null_mask_filter(value),
            };
            let both = match mask {
                None => value,
                Some(mask) => and(&mask, &value).map_err(|e| SqlError::internal(e.to_string()))?,
            };
            if !both.has_true() {
                return Ok(both);
            }
            mask = Some(both);
        }
        mask.ok_or_else(|| SqlError::internal("a filter without conditions"))
    }
}
