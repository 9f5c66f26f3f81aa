//! Aggregates as DataFusion functions, also over window frames.
//!
//! Arguments: the aggregate's own, then the keys of its ORDER BY. DISTINCT and ORDER BY are done
//! here, so that their equality and order are SQL's. What has a fold over columns goes there
//! (`exec/folds`); here is the form that takes rows.

use braid_rows::row_memory;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use braid_scalar::{Accumulator as State, AggregateCode, AggregateTypes, OrderKey, first_of_group};
use braid_types::{Datum, GroupKey, SqlType};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature,
    Volatility as DfVolatility,
};

use super::execution::Place;
use super::folds::{self, Groups, Single};
use super::scalar::next_id;
use super::stoppable::check;
use super::windows::Sliding;
use crate::arrow_form::{self, Reader};
use crate::error::to_df;

/// The name of the aggregate that keeps the first value that is not NULL: plans show it of values
/// that are equal. No function of SQL has it.
pub(crate) const FIRST: &str = "first";

/// What an aggregate computes.
pub struct Spec {
    /// The code of the registry.
    pub code: AggregateCode,
    /// Name, for EXPLAIN.
    pub name: String,
    /// Types of its own arguments.
    pub args: Vec<SqlType>,
    /// Result type.
    pub ret: SqlType,
    /// DISTINCT.
    pub distinct: bool,
    /// Whether the call has a FILTER. DataFusion applies it.
    pub filtered: bool,
    /// ORDER BY keys and their types; they follow the arguments.
    pub order: Vec<(OrderKey, SqlType)>,
    /// Keys of WITHIN GROUP; they are the last arguments.
    pub within: Vec<OrderKey>,
    /// For text forms of values.
    pub place: Arc<Place>,
}

impl Spec {
    /// The state of an empty group.
    pub(super) fn start(&self) -> Box<dyn State> {
        (self.code.start)(AggregateTypes { args: &self.args, ret: &self.ret, sorted: &self.within })
    }

    /// The result of a state.
    pub(super) fn finish(&self, state: &dyn State) -> Result<Datum> {
        state.finish(&self.place.execution_or_nothing().eval).map_err(to_df)
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct SqlAggregate {
    id: u64,
    spec: Arc<Spec>,
    signature: Signature,
}

impl PartialEq for SqlAggregate {
    fn eq(&self, other: &SqlAggregate) -> bool {
        self.id == other.id
    }
}

impl Eq for SqlAggregate {}

impl Hash for SqlAggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// Whether the result of an aggregate depends on the order in which it is given rows.
pub(crate) fn depends_on_order(function: &AggregateUDF) -> bool {
    match function.inner().downcast_ref::<SqlAggregate>() {
        // Of equal values it does not matter which is first.
        Some(own) => own.spec.code.by_order && own.spec.name != FIRST,
        None => !function.order_sensitivity().is_insensitive(),
    }
}

/// What an aggregate of ours computes.
pub(crate) fn spec_of(function: &AggregateUDF) -> Option<&Arc<Spec>> {
    Some(&function.inner().downcast_ref::<SqlAggregate>()?.spec)
}

fn start(spec: &Arc<Spec>, carrier: Option<&DataType>) -> Box<dyn Accumulator> {
    match folds::fold(spec, carrier) {
        Some(fold) => Box::new(Single::new(fold, spec.place.clone())),
        None => Box::new(Grouped::new(spec.clone())),
    }
}

/// Whether the call of an aggregate has, or may have, a FILTER.
pub(crate) fn is_filtered(function: &AggregateUDF) -> bool {
    function.inner().downcast_ref::<SqlAggregate>().is_none_or(|own| own.spec.filtered)
}

/// How an aggregate can be told from its results of parts of a group.
pub(crate) enum Parts {
    /// By itself, of these results.
    Itself,
    /// As their sum.
    Sum,
    /// It takes each value once: by `all`, if the parts are groups of equal values of this type,
    /// of which `first` keeps one.
    Distinct { all: Arc<AggregateUDF>, first: Arc<AggregateUDF>, ty: SqlType },
}

/// See [`Parts`]; `None` for an aggregate that needs all of its group's rows, or shows their order.
pub(crate) fn parts(function: &AggregateUDF) -> Option<Parts> {
    let spec = &function.inner().downcast_ref::<SqlAggregate>()?.spec;
    if !spec.order.is_empty() || sorts_distinct(spec) {
        return None;
    }
    let like = |name: &str, code: AggregateCode, ret: &SqlType| {
        let (args, place) = (spec.args.clone(), spec.place.clone());
        let (name, ret) = (name.to_string(), ret.clone());
        let (order, within) = (Vec::new(), spec.within.clone());
        let (distinct, filtered) = (false, false);
        aggregate(Spec { code, name, args, ret, distinct, filtered, order, within, place })
    };
    let ty = spec.args.first()?;
    match spec.name.as_str() {
        _ if spec.distinct => (spec.args.len() == 1).then(|| Parts::Distinct {
            all: like(&spec.name, spec.code, &spec.ret),
            first: like(FIRST, first_of_group(), ty),
            ty: ty.clone(),
        }),
        "count" => Some(Parts::Sum),
        FIRST | "min" | "max" if *ty == spec.ret => Some(Parts::Itself),
        _ => None,
    }
}

/// The function of a spec.
pub fn aggregate(spec: Spec) -> Arc<AggregateUDF> {
    let n = spec.args.len() + spec.order.len();
    let signature = if n == 0 {
        Signature::nullary(DfVolatility::Immutable)
    } else {
        Signature::any(n, DfVolatility::Immutable)
    };
    let udaf = SqlAggregate { id: next_id(), spec: Arc::new(spec), signature };
    Arc::new(AggregateUDF::new_from_impl(udaf))
}

impl AggregateUDFImpl for SqlAggregate {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(arrow_form::data_type(&self.spec.ret))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(start(&self.spec, first_type(args.expr_fields)))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        folds::fold(&self.spec, first_type(args.expr_fields)).is_some()
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let (spec, carrier) = (self.spec.clone(), first_type(args.expr_fields).cloned());
        let made = Groups::new(Box::new(move || folds::fold(&spec, carrier.as_ref())));
        match made {
            Some(groups) => Ok(Box::new(groups)),
            None => datafusion::common::internal_err!("an aggregate without fold"),
        }
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sliding::new(self.spec.clone())))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if let Some(fold) = folds::fold(&self.spec, first_type(args.input_fields)) {
            return folds::state_fields(args.name, &*fold);
        }
        Ok(vec![Arc::new(Field::new(format!("{}[state]", args.name), DataType::Binary, true))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn default_value(&self, _: &DataType) -> Result<ScalarValue> {
        let empty = self.spec.finish(&*self.spec.start())?;
        Ok(arrow_form::scalar(&empty, &self.spec.ret))
    }
}

fn first_type(fields: &[FieldRef]) -> Option<&DataType> {
    fields.first().map(|field| field.data_type())
}

/// Rows of arguments out of arrays.
pub(super) fn rows(
    spec: &Spec,
    values: &[ArrayRef],
    mut f: impl FnMut(Vec<Datum>) -> Result<()>,
) -> Result<()> {
    let readers: Vec<Reader<'_>> = values.iter().map(|a| Reader::new(a)).collect();
    let types: Vec<&SqlType> =
        spec.args.iter().chain(spec.order.iter().map(|(_, ty)| ty)).collect();
    let count = values.first().map_or(0, |a| a.len());
    for at in 0..count {
        f(readers.iter().zip(&types).map(|(r, ty)| r.get(at, ty)).collect())?;
    }
    Ok(())
}

/// The aggregate of one group.
#[derive(Debug)]
struct Grouped {
    spec: Arc<Spec>,
    running: Box<dyn State>,
    /// Rows kept for sorting.
    kept: Vec<Vec<Datum>>,
    seen: HashSet<GroupKey>,
    bytes: usize,
    asked: bool,
}

impl Grouped {
    fn new(spec: Arc<Spec>) -> Grouped {
        let running = spec.start();
        Grouped { spec, running, kept: Vec::new(), seen: HashSet::new(), bytes: 0, asked: false }
    }

    fn take(&mut self, row: Vec<Datum>) -> Result<()> {
        let own = &row[..self.spec.args.len()];
        if self.spec.distinct && !self.seen.insert(GroupKey(own.to_vec())) {
            return Ok(());
        }
        let grows = self.spec.distinct || !self.spec.order.is_empty() || self.running.keeps_rows();
        if grows {
            self.bytes += row_memory(&row);
        }
        if sorts_distinct(&self.spec) {
            Ok(())
        } else if self.spec.order.is_empty() {
            self.running.update(own).map_err(to_df)
        } else {
            self.kept.push(row);
            Ok(())
        }
    }
}

/// Whether the order of distinct values shows: they are then taken in their own order, as
/// PostgreSQL does, which tells them apart by sorting.
fn sorts_distinct(spec: &Spec) -> bool {
    let floats = spec.args.iter().any(|ty| matches!(ty, SqlType::Float4 | SqlType::Float8));
    let rounds = floats && spec.name != "count";
    spec.distinct && spec.order.is_empty() && (spec.code.by_order || rounds)
}

/// The order of argument lists, NULLs last.
fn by_arguments(a: &[Datum], b: &[Datum]) -> std::cmp::Ordering {
    let each = a.iter().zip(b).map(|(x, y)| match (x.is_null(), y.is_null()) {
        (false, false) => x.cmp_sql(y),
        (x, y) => x.cmp(&y),
    });
    each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
}

fn sorted<'a>(spec: &Spec, kept: &'a [Vec<Datum>]) -> Vec<&'a Vec<Datum>> {
    let mut sorted: Vec<&Vec<Datum>> = kept.iter().collect();
    let first = spec.args.len();
    sorted.sort_by(|a, b| {
        for (at, (key, _)) in spec.order.iter().enumerate() {
            let order = key.compare(&a[first + at], &b[first + at]);
            if order.is_ne() {
                return order;
            }
        }
        match spec.distinct {
            true => by_arguments(&a[..first], &b[..first]),
            false => std::cmp::Ordering::Equal,
        }
    });
    sorted
}

fn whole<'a>(spec: &Spec, rows: impl Iterator<Item = &'a Vec<Datum>>) -> Result<Datum> {
    let mut running = spec.start();
    for row in rows {
        running.update(&row[..spec.args.len()]).map_err(to_df)?;
    }
    spec.finish(&*running)
}

impl Accumulator for Grouped {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let spec = self.spec.clone();
        rows(&spec, values, |row| self.take(row))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.asked {
            check(&self.spec.place.execution_or_nothing().cancel)?;
        }
        // A window asks once more for each row, and a list may be long.
        self.asked = true;
        let spec = &self.spec;
        let value = if sorts_distinct(spec) {
            let mut rows: Vec<&Vec<Datum>> = self.seen.iter().map(|k| &k.0).collect();
            rows.sort_by(|a, b| by_arguments(a, b));
            whole(spec, rows.into_iter())?
        } else if spec.order.is_empty() {
            spec.finish(&*self.running)?
        } else {
            whole(spec, sorted(spec, &self.kept).into_iter())?
        };
        Ok(arrow_form::scalar(value, &spec.ret))
    }

    fn size(&self) -> usize {
        // A table grows by being copied into one of twice the size.
        let tables = 2 * (self.seen.capacity() + self.kept.capacity()) * size_of::<GroupKey>();
        size_of::<Self>() + self.bytes * (1 + self.running.copies_at_end()) + tables
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        // Kept and distinct rows travel as rows, the others as the running state.
        let parts: Vec<Datum> = if self.spec.order.is_empty() && !self.spec.distinct {
            self.running.parts()
        } else if self.spec.order.is_empty() {
            self.seen.iter().map(|k| Datum::record(k.0.clone())).collect()
        } else {
            self.kept.iter().map(|row| Datum::record(row.clone())).collect()
        };
        let record = Datum::record(parts);
        Ok(vec![arrow_form::scalar(&record, &SqlType::Record)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(states) = states.first() else { return Ok(()) };
        let reader = Reader::new(states);
        for at in 0..states.len() {
            let Datum::Record(parts) = reader.get(at, &SqlType::Record) else { continue };
            if self.spec.order.is_empty() && !self.spec.distinct {
                self.running.merge(&parts).map_err(to_df)?;
                continue;
            }
            for part in parts.iter() {
                if let Datum::Record(row) = part {
                    self.take(row.to_vec())?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use braid_scalar::{Code, resolve};

    use super::*;

    fn spec(name: &str, distinct: bool) -> Spec {
        let choice = resolve(name, &[SqlType::Int8], false).expect("an aggregate");
        let Code::Aggregate(code) = choice.function.code else { panic!("{name}") };
        let (name, args, ret) = (name.to_string(), choice.args, choice.ret);
        let (filtered, order, place) = (false, Vec::new(), Arc::default());
        let within = Vec::new();
        Spec { code, name, args, ret, distinct, filtered, order, within, place }
    }

    #[test]
    fn what_is_kept_is_counted_with_what_the_end_needs_and_tables_with_room_to_be_copied() {
        let values: Vec<Datum> = (0..10_000).map(Datum::Int8).collect();
        let column = arrow_form::build(&SqlType::Int8, values.iter());
        let rows: usize = values.iter().map(|v| row_memory(std::slice::from_ref(v))).sum();
        for (name, copies) in [("array_agg", 2), ("json_agg", 2), ("jsonb_agg", 3)] {
            let mut list = Grouped::new(Arc::new(spec(name, false)));
            list.update_batch(std::slice::from_ref(&column)).expect("taken");
            let counted = list.size() as f64 / rows as f64;
            let wanted = f64::from(1 + copies);
            assert!((wanted..wanted + 0.1).contains(&counted), "{name}: {counted} times");
        }
        let spec = spec("count", true);
        let fold = folds::fold(&spec, Some(column.data_type())).expect("a fold");
        let mut set = Single::new(fold, Arc::default());
        set.update_batch(std::slice::from_ref(&column)).expect("taken");
        let members = values.len() * size_of::<i64>();
        assert!(set.size() > 2 * members + members / 2, "{} for {members}", set.size());
    }
}
