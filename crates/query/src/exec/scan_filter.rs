//! Conditions that a scan checks itself, before it decodes the other columns.
//!
//! Only what cannot fail is taken: it is checked for all rows, also for those that another
//! condition would have refused. What can fail stays in the filter above the scan, which sees the
//! rows that are left.
//!
//! After them comes what operators above have learned: which keys a join can use, what a sort with
//! a limit still takes. Most rows may pass that; then it is not asked for every batch.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_rows::Column;
use braid_types::{SqlError, SqlResult};
use datafusion::arrow::array::{Array, BooleanArray, BooleanBufferBuilder, RecordBatch};
use datafusion::arrow::compute::{and, filter_record_batch, prep_null_mask_filter};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use parking_lot::Mutex;

use super::columns::record_batch;
use super::constant::is_constant;
use super::key_set::KeySet;
use super::scalar::is_for_scans;
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
        Expr::ScalarFunction(call) => {
            let own = |e: &Expr| matches!(e, Expr::Column(c) if schema.index_of(&c.name).is_ok());
            is_for_scans(expr) && call.args.iter().all(own)
        }
        _ => false,
    }
}

/// Whether a condition costs much more than comparing two columns.
fn is_function(expr: &Expr) -> bool {
    expr.exists(|e| Ok(is_for_scans(e))).unwrap_or(true)
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

/// Rows after which it is known how many pass.
const TRIAL_ROWS: u64 = 16_384;
/// Batches that go by unasked when most rows pass.
const REST_BATCHES: u64 = 16;

/// How much a learned filter is worth: rows that it was asked about, and that passed.
#[derive(Debug, Default)]
struct Worth {
    asked: AtomicU64,
    passed: AtomicU64,
    /// Batches until it is asked again.
    resting: AtomicU64,
}

impl Worth {
    fn is_asked(&self) -> bool {
        let resting = self.resting.load(Ordering::Relaxed);
        if resting > 0 {
            self.resting.store(resting - 1, Ordering::Relaxed);
        }
        resting == 0
    }

    fn note(&self, asked: usize, passed: usize) {
        let asked = self.asked.fetch_add(asked as u64, Ordering::Relaxed) + asked as u64;
        let passed = self.passed.fetch_add(passed as u64, Ordering::Relaxed) + passed as u64;
        if asked >= TRIAL_ROWS {
            if passed * 4 > asked * 3 {
                self.resting.store(REST_BATCHES, Ordering::Relaxed);
            }
            self.asked.store(0, Ordering::Relaxed);
            self.passed.store(0, Ordering::Relaxed);
        }
    }
}

/// What an operator above has learned, or is going to.
#[derive(Clone)]
struct Learned {
    condition: Arc<dyn PhysicalExpr>,
    worth: Arc<Worth>,
    /// Of the condition as it was seen last: the keys that it lists.
    keys: Arc<Mutex<Option<Listed>>>,
}

/// A condition, and the keys that it lists if it does that.
type Listed = (Arc<dyn PhysicalExpr>, Option<Arc<KeySet>>);

impl Learned {
    fn new(condition: Arc<dyn PhysicalExpr>) -> Learned {
        Learned { condition, worth: Arc::default(), keys: Arc::default() }
    }

    /// The keys that it lists now.
    fn keys(&self) -> SqlResult<Option<Arc<KeySet>>> {
        let Some(changing) = self.condition.downcast_ref::<DynamicFilterPhysicalExpr>() else {
            return Ok(None);
        };
        let now = changing.current().map_err(from_df)?;
        let mut keys = self.keys.lock();
        if let Some((seen, listed)) = &*keys
            && Arc::ptr_eq(seen, &now)
        {
            return Ok(listed.clone());
        }
        let listed = KeySet::of(&now).map(Arc::new);
        *keys = Some((now, listed.clone()));
        Ok(listed)
    }

    /// The rows that pass, without NULLs.
    fn passing(&self, keys: Option<&KeySet>, rows: &RecordBatch) -> SqlResult<BooleanArray> {
        let by_keys = keys.and_then(|keys| keys.passing(rows));
        by_keys.map_or_else(|| passing(&self.condition, rows), Ok)
    }
}

/// The conditions of a scan.
#[derive(Clone)]
pub(super) struct ScanFilter {
    /// Over columns of `schema`, and whether each costs much.
    conditions: Vec<(Arc<dyn PhysicalExpr>, bool)>,
    /// What operators above have learned, over the same columns.
    learned: Vec<Learned>,
    /// Which columns of the table they are about.
    pub(super) columns: Vec<usize>,
    schema: SchemaRef,
}

impl fmt::Debug for ScanFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions: Vec<String> = self.conditions.iter().map(|(e, _)| e.to_string()).collect();
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
        let mut taken: Vec<&Expr> = filters.iter().filter(|e| is_for_scan(e, schema)).collect();
        // Last, for the rows that are left.
        taken.sort_by_key(|e| is_function(e));
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
        let condition = |filter: &Expr| {
            Ok((session.create_physical_expr(filter.clone(), &named)?, is_function(filter)))
        };
        let conditions = taken.into_iter().map(condition).collect::<Result<_>>()?;
        Ok(Some(ScanFilter { conditions, learned: Vec::new(), columns, schema }))
    }

    /// These conditions, and what operators above learn about columns of the scan's output.
    ///
    /// # Errors
    /// What DataFusion reports when it rewrites an expression.
    pub(super) fn learning(
        planned: Option<&ScanFilter>,
        learned: &[Arc<dyn PhysicalExpr>],
        table: &Schema,
    ) -> Result<ScanFilter> {
        let mut columns = planned.map_or_else(Vec::new, |filter| filter.columns.clone());
        for filter in learned {
            for column in collect_columns(filter) {
                columns.push(table.index_of(column.name())?);
            }
        }
        columns.sort_unstable();
        columns.dedup();
        let schema = Arc::new(table.project(&columns)?);
        let here = |e: &Arc<dyn PhysicalExpr>| reassign_expr_columns(e.clone(), &schema);
        let conditions = planned.iter().flat_map(|filter| &filter.conditions);
        let conditions = conditions.map(|(e, costly)| Ok((here(e)?, *costly)));
        let conditions = conditions.collect::<Result<_>>()?;
        let learned = learned.iter().map(|e| Ok(Learned::new(here(e)?)));
        let learned = learned.collect::<Result<_>>()?;
        Ok(ScanFilter { conditions, learned, columns, schema })
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
        for (condition, costly) in &self.conditions {
            let both = narrowed(mask.take(), *costly, probe, |rows| passing(condition, rows))?;
            if !both.has_true() {
                return Ok(both);
            }
            mask = Some(both);
        }
        for learned in &self.learned {
            if !learned.worth.is_asked() {
                continue;
            }
            let before = mask.as_ref().map_or(probe.num_rows(), BooleanArray::true_count);
            let keys = learned.keys()?;
            let passing = |rows: &RecordBatch| learned.passing(keys.as_deref(), rows);
            let both = narrowed(mask.take(), keys.is_none(), probe, passing)?;
            learned.worth.note(before, both.true_count());
            mask = Some(both);
        }
        Ok(mask.unwrap_or_else(|| BooleanArray::from(vec![true; probe.num_rows()])))
    }
}

/// Of one row in so many, a condition that costs much is asked for these alone.
const FEW: usize = 3;

/// The rows of a mask that are among the passing ones, too.
fn narrowed(
    mask: Option<BooleanArray>,
    costly: bool,
    probe: &RecordBatch,
    passing: impl FnOnce(&RecordBatch) -> SqlResult<BooleanArray>,
) -> SqlResult<BooleanArray> {
    let internal = |e: ArrowError| SqlError::internal(e.to_string());
    let Some(mask) = mask else { return passing(probe) };
    if !costly || mask.true_count() * FEW > mask.len() {
        return and(&mask, &passing(probe)?).map_err(internal);
    }
    let few = filter_record_batch(probe, &mask).map_err(internal)?;
    let passed = passing(&few)?;
    let mut all = BooleanBufferBuilder::new(mask.len());
    all.append_n(mask.len(), false);
    for (nth, row) in mask.values().set_indices().enumerate() {
        all.set_bit(row, passed.value(nth));
    }
    Ok(BooleanArray::new(all.finish(), None))
}

/// The rows that pass a condition, without NULLs.
fn passing(condition: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> SqlResult<BooleanArray> {
    let value = condition.evaluate(rows).and_then(|v| v.into_array(rows.num_rows()));
    let value = value.map_err(from_df)?;
    if *value.data_type() == DataType::Null {
        return Ok(BooleanArray::from(vec![false; rows.num_rows()]));
    }
    let value = value.as_any().downcast_ref::<BooleanArray>();
    let value = value.ok_or_else(|| SqlError::internal("a condition that is no boolean"))?;
    Ok(match value.null_count() {
        0 => value.clone(),
        _ => prep_null_mask_filter(value),
    })
}
