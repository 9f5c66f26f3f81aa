//! Plans for when memory is short: what cannot spill is done by what can.
//!
//! A hash join and a sort that keeps the first rows only are the fast ways, but the one must hold
//! one side, and the other as many rows as are asked for, and neither can spill them. When one of
//! them is refused the memory before any row has left the plan, the statement is planned once more:
//!
//! ```text
//!   HashJoin (refused)           SortMergeJoin
//!     a                   ──►      Sort (spills)  a
//!     b                            Sort (spills)  b
//!
//!   Sort, first n rows    ──►    Limit n
//!     a                            Sort (spills)  a
//! ```
//! Not every join can be turned: NOT IN over NULLs, joins without an equality, and keys whose order
//! among equals is not that of bytes stay as they are.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

/// Whether an operator was refused memory that another one can do without.
pub(crate) fn refused(e: &DataFusionError) -> bool {
    let DataFusionError::ResourcesExhausted(m) = e.find_root() else { return false };
    m.contains("HashJoinInput") || m.contains("TopK")
}

/// Turns hash joins into joins of sorted inputs. Runs before the rule that adds sorts.
#[derive(Debug)]
pub(crate) struct SortedJoins;

impl PhysicalOptimizerRule for SortedJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match node.downcast_ref::<HashJoinExec>() {
            Some(join) if can_be_sorted(join)? => Ok(Transformed::yes(sorted(join)?)),
            _ => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "sorted_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Sorts everything where only the first rows are asked for. Runs after the rules that tell sorts
/// how many rows these are.
#[derive(Debug)]
pub(crate) struct WholeSorts;

impl PhysicalOptimizerRule for WholeSorts {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(sort) = node.downcast_ref::<SortExec>() else {
                return Ok(Transformed::no(node));
            };
            let Some(rows) = sort.fetch() else { return Ok(Transformed::no(node)) };
            let whole: Arc<dyn ExecutionPlan> = Arc::new(sort.with_fetch(None));
            Ok(Transformed::yes(match sort.preserve_partitioning() {
                true => Arc::new(LocalLimitExec::new(whole, rows)),
                false => Arc::new(GlobalLimitExec::new(whole, 0, Some(rows))),
            }))
        })
        .data()
    }

    fn name(&self) -> &str {
        "whole_sorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn can_be_sorted(join: &HashJoinExec) -> Result<bool> {
    let schema = join.left().schema();
    let mut ordered = !join.on().is_empty();
    for (left, _) in join.on() {
        ordered &= matches!(
            left.data_type(&schema)?,
            DataType::Boolean
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::UInt32
                | DataType::UInt64
                | DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::FixedSizeBinary(_)
                | DataType::Decimal128(..)
                | DataType::Date32
                | DataType::Timestamp(_, None)
        );
    }
    Ok(ordered && !join.null_aware)
}

fn sorted(join: &HashJoinExec) -> Result<Arc<dyn ExecutionPlan>> {
    let on = join.on().to_vec();
    let order = vec![SortOptions::default(); on.len()];
    let merged: Arc<dyn ExecutionPlan> = Arc::new(SortMergeJoinExec::try_new(
        Arc::clone(join.left()),
        Arc::clone(join.right()),
        on,
        join.filter().cloned(),
        *join.join_type(),
        order,
        join.null_equality(),
    )?);
    let Some(kept) = &join.projection else { return Ok(merged) };
    let schema = merged.schema();
    let columns = kept.iter().map(|&at| {
        let name = schema.field(at).name();
        (Arc::new(Column::new(name, at)) as _, name.clone())
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), merged)?))
}
