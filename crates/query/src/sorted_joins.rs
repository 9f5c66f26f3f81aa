//! Joins that need no memory for their whole input.
//!
//! A hash join is the fast way, but it must hold one side, and cannot spill it. When it is refused
//! the memory before any row has left the plan, the statement is planned once more with its joins
//! on sorted inputs: sorts spill.
//!
//! ```text
//!   HashJoin (refused)           SortMergeJoin
//!     a                   ──►      Sort (spills)  a
//!     b                            Sort (spills)  b
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
use datafusion::physical_plan::projection::ProjectionExec;

/// Whether a hash join was refused its memory.
pub(crate) fn refused(e: &DataFusionError) -> bool {
    matches!(e.find_root(), DataFusionError::ResourcesExhausted(m) if m.contains("HashJoinInput"))
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
