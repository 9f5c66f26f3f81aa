//! The functions of a window operator, and what they look at.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, MutableArrayData, NullArray, RecordBatch, RecordBatchOptions, make_array,
};
use datafusion::arrow::compute::{SortColumn, concat};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::utils::evaluate_partition_ranges;
use datafusion::logical_expr::Accumulator;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::windows::{
    PlainAggregateWindowExpr, StandardWindowExpr, WindowAggExec, WindowExpr,
};

use crate::exec::aggregate::is_filtered;

/// Bytes that a function's result takes for a row while it is computed.
pub(super) const RESULT_BYTES: usize = 96;

/// A function.
pub(super) enum Function {
    /// An aggregate that has one result for all rows of a partition.
    Constant(Arc<dyn WindowExpr>),
    /// Any other.
    General(Arc<dyn WindowExpr>),
}

/// See the [module documentation](self).
pub(super) struct Functions {
    pub(super) all: Vec<Function>,
    partition: Vec<PhysicalSortExpr>,
    /// Of each column of the input, whether a general function or the partition looks at it.
    columns: Vec<bool>,
    /// The input's columns, those that are not looked at without a type.
    pub(super) schema: SchemaRef,
}

impl Functions {
    pub(super) fn of(window: &WindowAggExec) -> Result<Functions> {
        let input = window.input().schema();
        let mut columns = vec![false; input.fields().len()];
        let mut all = Vec::new();
        let partition = window.partition_by_sort_keys()?;
        let keys = partition.iter().flat_map(|key| collect_columns(&key.expr));
        keys.for_each(|column| columns[column.index()] = true);
        for function in window.window_expr().iter().cloned() {
            if is_constant(&*function) {
                all.push(Function::Constant(function));
                continue;
            }
            let exprs = function.all_expressions();
            let exprs = [exprs.args, exprs.partition_by_exprs, exprs.order_by_exprs].concat();
            let seen = exprs.iter().flat_map(collect_columns);
            seen.for_each(|column| columns[column.index()] = true);
            if !tells_all(&*function) {
                columns.fill(true);
            }
            all.push(Function::General(function));
        }
        let fields = input.fields().iter().zip(&columns).map(|(field, seen)| match seen {
            true => Arc::clone(field),
            false => Arc::new(Field::new(field.name(), DataType::Null, true)),
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Functions { all, partition, columns, schema })
    }

    /// A copy of what is looked at of a batch.
    pub(super) fn narrow(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let columns = batch.columns().iter().zip(&self.columns).map(|(column, seen)| match seen {
            true => copy(column),
            false => Ok(Arc::new(NullArray::new(rows)) as ArrayRef),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let (schema, columns) = (self.schema.clone(), columns.collect::<Result<_>>()?);
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// What the results of general functions take while they are computed of such rows.
    pub(super) fn result_bytes(&self, narrow: &RecordBatch) -> usize {
        let mut bytes = 0;
        for function in &self.all {
            let Function::General(function) = function else { continue };
            bytes += narrow.num_rows() * RESULT_BYTES;
            // A value may be one of the arguments, and is there as a value and in the result.
            let wide = function.field().is_ok_and(|f| f.data_type().primitive_width().is_none());
            bytes += if wide { 2 * narrow.get_array_memory_size() } else { 0 };
        }
        bytes
    }

    /// The values that make a partition.
    pub(super) fn partitions(&self, batch: &RecordBatch) -> Result<Vec<SortColumn>> {
        self.partition.iter().map(|key| key.evaluate_to_sort_column(batch)).collect()
    }

    /// The results of the general functions over whole partitions.
    pub(super) fn results(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let general = self.all.iter().filter_map(|function| match function {
            Function::General(function) => Some(function),
            Function::Constant(_) => None,
        });
        let ranges = evaluate_partition_ranges(batch.num_rows(), &self.partitions(batch)?)?;
        general
            .map(|function| {
                let parts = ranges
                    .iter()
                    .map(|range| function.evaluate(&batch.slice(range.start, range.len())));
                let parts = parts.collect::<Result<Vec<_>>>()?;
                let parts: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
                Ok(concat(&parts)?)
            })
            .collect()
    }

    /// States of the constant functions for a new partition.
    pub(super) fn states(&self) -> Result<Vec<Box<dyn Accumulator>>> {
        self.constants().filter_map(aggregate).map(|a| a.create_accumulator()).collect()
    }

    pub(super) fn constants(&self) -> impl Iterator<Item = &Arc<dyn WindowExpr>> {
        self.all.iter().filter_map(|function| match function {
            Function::Constant(function) => Some(function),
            Function::General(_) => None,
        })
    }
}

fn aggregate(
    function: &Arc<dyn WindowExpr>,
) -> Option<&datafusion::physical_expr::aggregate::AggregateFunctionExpr> {
    let plain = function.as_any().downcast_ref::<PlainAggregateWindowExpr>()?;
    Some(plain.get_aggregate_expr())
}

/// Whether it is an aggregate of all rows of the partition.
fn is_constant(function: &dyn WindowExpr) -> bool {
    let frame = function.get_window_frame();
    let whole = frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded();
    whole && function.as_any().is::<PlainAggregateWindowExpr>() && tells_all(function)
}

/// Whether all that a function looks at is in its expressions: a FILTER is not.
fn tells_all(function: &dyn WindowExpr) -> bool {
    let any = function.as_any();
    match any.downcast_ref::<PlainAggregateWindowExpr>() {
        Some(aggregate) => !is_filtered(aggregate.get_aggregate_expr().fun()),
        None => any.is::<StandardWindowExpr>(),
    }
}

/// An array of its own, that keeps nothing else alive.
pub(super) fn copy(array: &ArrayRef) -> Result<ArrayRef> {
    let data = array.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, data.len());
    copy.try_extend(0, 0, data.len())?;
    Ok(make_array(copy.freeze()))
}
