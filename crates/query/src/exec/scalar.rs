//! Our scalar expressions as DataFusion functions.
//!
//! A whole bound subtree becomes one function whose arguments are the columns it uses, so CASE and
//! COALESCE keep their laziness and errors are those of `braid_scalar`. A batch is computed over
//! its columns (`exec/vector`) where that goes, else row by row.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use braid_catalog::memory_error;
use braid_env::memory::{Account, Held};
use braid_scalar::{Bound, EvalContext, Volatility};
use braid_types::{Datum, SqlError, SqlState, SqlType};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility as DfVolatility,
};

use parking_lot::Mutex;

use super::execution::{Execution, Place};
use super::vector::Program;
use crate::arrow_form::{self, Reader};
use crate::error::to_df;
use crate::planning::check_stop;

/// A number no other function of this process has: functions are equal only to themselves.
pub fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Code of a row function.
pub(crate) trait RowFunction: Send + Sync {
    /// The result for one row of arguments.
    fn call(&self, args: &[Datum], ctx: &EvalContext) -> braid_types::SqlResult<Datum>;

    /// The results for a batch, where that needs no look at each row. `None`: row by row.
    fn batch(&self, args: &[ColumnarValue], rows: usize, ctx: &EvalContext) -> Option<ArrayRef> {
        let _ = (args, rows, ctx);
        None
    }

    /// Whether it gives the same for the same arguments, and does nothing else.
    fn is_pure(&self) -> bool {
        false
    }

    /// Whether it wants to know the rows of a batch beforehand.
    fn looks_ahead(&self) -> bool {
        false
    }

    /// The number of the field, if it gives one of a record.
    fn field(&self) -> Option<usize> {
        None
    }

    /// Told the rows of a batch before the calls for them.
    fn expect(&self, _rows: &[Vec<Datum>], _ctx: &EvalContext) {}
}

/// A function that is called once for each row.
pub(crate) struct RowUdf {
    id: u64,
    label: String,
    arg_types: Vec<SqlType>,
    ret: SqlType,
    /// Carrier of the result when it is not the result type's.
    carrier: DataType,
    signature: Signature,
    code: Box<dyn RowFunction>,
    /// Where the execution is that it looks at; `None` if it looks at its arguments alone.
    place: Option<Arc<Place>>,
    /// It is a condition that never fails and goes over columns: scans may ask it for any row.
    for_scans: bool,
}

impl fmt::Debug for RowUdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl PartialEq for RowUdf {
    fn eq(&self, other: &RowUdf) -> bool {
        self.id == other.id
    }
}

impl Eq for RowUdf {}

impl Hash for RowUdf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// The signature of a function with `n` arguments of any type.
pub fn signature(n: usize, volatility: Volatility) -> Signature {
    let volatility = match volatility {
        Volatility::Immutable => DfVolatility::Immutable,
        Volatility::Stable => DfVolatility::Stable,
        Volatility::Volatile => DfVolatility::Volatile,
    };
    if n == 0 { Signature::nullary(volatility) } else { Signature::any(n, volatility) }
}

impl RowUdf {
    /// Makes a call of a new function.
    pub(crate) fn call_expr(
        label: String,
        code: Box<dyn RowFunction>,
        args: Vec<(Expr, SqlType)>,
        ret: SqlType,
        volatility: Volatility,
        place: Option<Arc<Place>>,
    ) -> Expr {
        let carrier = arrow_form::data_type(&ret);
        RowUdf::call_carried(label, code, args, (ret, carrier), volatility, place)
    }

    /// As [`RowUdf::call_expr`], with another carrier than that of the result's type.
    fn call_carried(
        label: String,
        code: Box<dyn RowFunction>,
        args: Vec<(Expr, SqlType)>,
        (ret, carrier): (SqlType, DataType),
        volatility: Volatility,
        place: Option<Arc<Place>>,
    ) -> Expr {
        let (exprs, arg_types): (Vec<Expr>, Vec<SqlType>) = args.into_iter().unzip();
        let udf = RowUdf {
            id: next_id(),
            label,
            signature: signature(arg_types.len(), volatility),
            arg_types,
            carrier,
            ret,
            code,
            place,
            for_scans: false,
        };
        ScalarUDF::new_from_impl(udf).call(exprs)
    }

    /// The execution that it runs in.
    fn execution(&self) -> braid_types::SqlResult<Arc<Execution>> {
        match &self.place {
            Some(place) if self.signature.volatility != DfVolatility::Immutable => {
                place.execution()
            }
            Some(place) => Ok(place.execution_or_nothing()),
            None => Ok(Place::default().execution_or_nothing()),
        }
    }
}

/// What the values of a batch take while they are made: once as values, and once in the batch.
struct Made {
    held: Held,
    /// Not taken yet.
    bytes: usize,
}

/// They are counted in steps of so many bytes: less than that is what any batch may have.
pub(super) const ANY_BATCH: usize = 8 << 20;
/// A column of a batch has at most so many.
const MOST: usize = 1 << 30;

impl Made {
    fn new(memory: &Arc<Account>) -> Made {
        // The node has to have the room; what a statement may keep is another question.
        let here = memory.pool().account(usize::MAX);
        Made { held: here.hold("values of functions"), bytes: 0 }
    }

    fn count(&mut self, value: &Datum) -> braid_types::SqlResult<()> {
        self.bytes += 2 * size_of_made(value);
        if self.bytes < ANY_BATCH {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.bytes);
        if self.held.bytes() + bytes > 2 * MOST {
            return Err(SqlError::new(
                SqlState::OUT_OF_MEMORY,
                format!("out of memory: values of functions of more than {MOST} bytes at once"),
            ));
        }
        self.held.grow(bytes).map_err(|e| memory_error(&e))
    }
}

/// Bytes of a value, if these may be many.
pub(super) fn size_of_made(value: &Datum) -> usize {
    match value {
        Datum::Text(_) | Datum::Bytea(_) | Datum::Array(_) => value.memory(),
        _ => 0,
    }
}

impl RowUdf {
    /// A batch of arguments as rows.
    fn rows_of(&self, args: &[ColumnarValue], count: usize) -> Result<Vec<Vec<Datum>>> {
        let columns = args.iter().map(|a| a.to_array(count)).collect::<Result<Vec<_>>>()?;
        let readers: Vec<Reader<'_>> = columns.iter().map(|c| Reader::new(c)).collect();
        let row = |at: usize| {
            readers.iter().zip(&self.arg_types).map(|(reader, ty)| reader.get(at, ty)).collect()
        };
        Ok((0..count).map(row).collect())
    }
}

impl ScalarUDFImpl for RowUdf {
    fn name(&self) -> &str {
        &self.label
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        check_stop()?;
        Ok(self.carrier.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let varying = args.args.iter().any(|a| matches!(a, ColumnarValue::Array(_)));
        let once = !varying && self.signature.volatility != DfVolatility::Volatile;
        let rows = if once { 1 } else { args.number_rows };
        let execution = self.execution().map_err(to_df)?;
        if self.code.looks_ahead() {
            let rows = self.rows_of(&args.args, rows)?;
            self.code.expect(&rows, &execution.eval);
        }
        if !once && let Some(array) = self.code.batch(&args.args, rows, &execution.eval) {
            return Ok(ColumnarValue::Array(array));
        }
        let columns = args
            .args
            .iter()
            .map(|a| match a {
                ColumnarValue::Array(array) => Ok((array.clone(), true)),
                ColumnarValue::Scalar(value) => Ok((value.to_array()?, false)),
            })
            .collect::<Result<Vec<(ArrayRef, bool)>>>()?;
        let readers: Vec<(Reader<'_>, bool)> =
            columns.iter().map(|(array, varies)| (Reader::new(array), *varies)).collect();
        let mut out = Vec::with_capacity(rows);
        let mut made = Made::new(&execution.memory);
        let mut row = Vec::with_capacity(readers.len());
        for at in 0..rows {
            row.clear();
            for ((reader, varies), ty) in readers.iter().zip(&self.arg_types) {
                row.push(reader.get(if *varies { at } else { 0 }, ty));
            }
            execution.eval.session.check_interrupt().map_err(to_df)?;
            let value = self.code.call(&row, &execution.eval).map_err(to_df)?;
            made.count(&value).map_err(to_df)?;
            out.push(value);
        }
        let array = arrow_form::build_carried(&self.carrier, &self.ret, out.iter());
        if once {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

/// A bound expression over its arguments.
struct BoundCode {
    bound: Bound,
    /// The same over columns.
    program: Option<Program>,
    /// Batches that the program could not compute, less those that it could.
    unfit: AtomicI64,
}

/// A program that fails so much more often than not is given up.
const UNFIT_MAX: i64 = 8;

impl RowFunction for BoundCode {
    fn is_pure(&self) -> bool {
        self.bound.volatility() != Volatility::Volatile
    }

    fn call(&self, args: &[Datum], ctx: &EvalContext) -> braid_types::SqlResult<Datum> {
        self.bound.eval(args, ctx)
    }

    fn batch(&self, args: &[ColumnarValue], rows: usize, ctx: &EvalContext) -> Option<ArrayRef> {
        let program = self.program.as_ref()?;
        let unfit = self.unfit.load(Ordering::Relaxed);
        if unfit >= UNFIT_MAX {
            return None;
        }
        let array = program.eval(args, rows, ctx);
        self.unfit.store((unfit + if array.is_some() { -1 } else { 1 }).max(0), Ordering::Relaxed);
        array
    }

    fn looks_ahead(&self) -> bool {
        self.bound.has_applied()
    }

    fn expect(&self, rows: &[Vec<Datum>], ctx: &EvalContext) {
        self.bound.expect(rows.iter().map(Vec::as_slice).collect(), ctx);
    }
}

/// What a call of a bound expression is to the optimizer.
struct Call {
    label: String,
    code: Box<dyn RowFunction>,
    /// It has no kernel.
    by_row: bool,
}

impl Call {
    /// The code of an expression whose values travel as `carrier`.
    fn new(bound: Bound, args: &[(Expr, SqlType)], carrier: &DataType) -> Call {
        let types: Vec<SqlType> = args.iter().map(|(_, ty)| ty.clone()).collect();
        let program = Program::compile(&bound, &types, carrier);
        let sql = bound.to_sql(&|at| format!("#{at}"));
        let by_row = program.as_ref().is_none_or(Program::by_row);
        let label = if by_row { format!("by row: {sql}") } else { sql };
        let unfit = AtomicI64::new(0);
        Call { label, code: Box::new(BoundCode { bound, program, unfit }), by_row }
    }
}

/// A call that evaluates `bound`, whose column ordinals are positions in `args`.
pub(crate) fn bound_expr(bound: Bound, place: &Arc<Place>, args: Vec<(Expr, SqlType)>) -> Expr {
    let (ret, volatility) = (bound.ty().clone(), bound.volatility());
    let call = Call::new(bound, &args, &arrow_form::data_type(&ret));
    RowUdf::call_expr(call.label, call.code, args, ret, volatility, Some(place.clone()))
}

/// As [`bound_expr`] for a condition that never fails.
pub(crate) fn total_expr(bound: Bound, place: &Arc<Place>, args: Vec<(Expr, SqlType)>) -> Expr {
    let volatility = bound.volatility();
    let call = Call::new(bound, &args, &DataType::Boolean);
    let for_scans = !call.by_row && volatility != Volatility::Volatile;
    let (exprs, arg_types): (Vec<Expr>, Vec<SqlType>) = args.into_iter().unzip();
    let udf = RowUdf {
        id: next_id(),
        label: call.label,
        signature: signature(arg_types.len(), volatility),
        arg_types,
        carrier: DataType::Boolean,
        ret: SqlType::Bool,
        code: call.code,
        place: Some(place.clone()),
        for_scans,
    };
    ScalarUDF::new_from_impl(udf).call(exprs)
}

/// Whether an expression is a condition that scans may ask of any row.
pub(crate) fn is_for_scans(expr: &Expr) -> bool {
    let Expr::ScalarFunction(call) = expr else { return false };
    call.func.inner().downcast_ref::<RowUdf>().is_some_and(|udf| udf.for_scans)
}

/// As [`bound_expr`] for a numeric whose values travel as decimals of 128 or 256 bits.
pub(crate) fn decimal_expr(
    bound: Bound,
    place: &Arc<Place>,
    args: Vec<(Expr, SqlType)>,
    carrier: DataType,
) -> Expr {
    let (ret, volatility) = (bound.ty().clone(), bound.volatility());
    let call = Call::new(bound, &args, &carrier);
    RowUdf::call_carried(
        call.label,
        call.code,
        args,
        (ret, carrier),
        volatility,
        Some(place.clone()),
    )
}

/// Whether an expression is one of [`pinned_expr`], and nothing that it calls is volatile.
pub(crate) fn is_only_pinned(expr: &Expr) -> bool {
    let Expr::ScalarFunction(call) = expr else { return false };
    let udf = call.func.inner().downcast_ref::<RowUdf>();
    udf.is_some_and(|udf| udf.code.is_pure())
}

/// As [`bound_expr`], but nothing moves it: for conditions that can fail.
pub(crate) fn pinned_expr(bound: Bound, place: &Arc<Place>, args: Vec<(Expr, SqlType)>) -> Expr {
    let ret = bound.ty().clone();
    let call = Call::new(bound, &args, &arrow_form::data_type(&ret));
    RowUdf::call_expr(call.label, call.code, args, ret, Volatility::Volatile, Some(place.clone()))
}

/// Sort keys of packed values of a type.
struct SortKey(SqlType);

/// So many keys of a batch are kept: often there are few different values.
const KEYS_KEPT: usize = 256;

impl RowFunction for SortKey {
    fn call(&self, args: &[Datum], _: &EvalContext) -> braid_types::SqlResult<Datum> {
        Ok(arrow_form::sort_key(&args[0]).map_or(Datum::Null, |k| Datum::Bytea(k.into())))
    }

    fn batch(&self, args: &[ColumnarValue], _: usize, _: &EvalContext) -> Option<ArrayRef> {
        let [ColumnarValue::Array(array)] = args else { return None };
        let values = array.as_binary_opt::<i32>()?;
        let reader = Reader::new(values);
        let mut keys: HashMap<&[u8], Vec<u8>> = HashMap::new();
        let mut out = BinaryBuilder::with_capacity(values.len(), values.len() * 8);
        for at in 0..values.len() {
            if values.is_null(at) {
                out.append_null();
            } else if let Some(key) = keys.get(values.value(at)) {
                out.append_value(key);
            } else {
                let key = arrow_form::sort_key(&reader.get(at, &self.0));
                out.append_option(key.as_ref());
                if let (Some(key), true) = (key, keys.len() < KEYS_KEPT) {
                    keys.insert(values.value(at), key);
                }
            }
        }
        Some(Arc::new(out.finish()))
    }
}

/// Floats as Arrow compares them: one NaN, which is the greatest, and one zero.
struct FloatKey;

impl RowFunction for FloatKey {
    fn call(&self, args: &[Datum], _: &EvalContext) -> braid_types::SqlResult<Datum> {
        Ok(match &args[0] {
            Datum::Float4(v) if v.is_nan() => Datum::Float4(f32::NAN),
            Datum::Float4(v) => Datum::Float4(v + 0.0),
            Datum::Float8(v) if v.is_nan() => Datum::Float8(f64::NAN),
            Datum::Float8(v) => Datum::Float8(v + 0.0),
            _ => Datum::Null,
        })
    }

    fn batch(&self, args: &[ColumnarValue], _: usize, _: &EvalContext) -> Option<ArrayRef> {
        let [ColumnarValue::Array(array)] = args else { return None };
        Some(match array.data_type() {
            DataType::Float32 => {
                let key = |v: f32| if v.is_nan() { f32::NAN } else { v + 0.0 };
                Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(key))
            }
            DataType::Float64 => {
                let key = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
                Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(key))
            }
            _ => return None,
        })
    }
}

/// The value as it is: only its carrier changes.
struct Same;

impl RowFunction for Same {
    fn call(&self, args: &[Datum], _: &EvalContext) -> braid_types::SqlResult<Datum> {
        Ok(args[0].clone())
    }
}

/// An expression that compares as SQL compares: itself for native types, else its key.
pub(crate) fn sortable(expr: Expr, ty: &SqlType) -> Expr {
    if arrow_form::is_native(ty) {
        return expr;
    }
    match ty {
        SqlType::Float4 | SqlType::Float8 => shared(Shared::Key, ty, ty),
        _ => shared(Shared::Key, ty, &SqlType::Bytea),
    }
    .call(vec![expr])
}

/// A value of one type in the carrier of another that holds it as well: a declared numeric as any
/// numeric.
pub(crate) fn carried(expr: Expr, from: &SqlType, to: &SqlType) -> Expr {
    if arrow_form::data_type(from) == arrow_form::data_type(to) {
        return expr;
    }
    shared(Shared::Carrier, from, to).call(vec![expr])
}

/// Functions of which there is one for each pair of types.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Shared {
    Key,
    Carrier,
}

/// One function for each pair of types: equal calls of equal expressions are equal to the
/// optimizer.
fn shared(what: Shared, from: &SqlType, to: &SqlType) -> ScalarUDF {
    type Made = HashMap<(Shared, SqlType, SqlType), ScalarUDF>;
    static MADE: OnceLock<Mutex<Made>> = OnceLock::new();
    // Carriers of values that have a key do not depend on modifiers.
    let from = if what == Shared::Key { from.base() } else { from.clone() };
    let mut made = MADE.get_or_init(Mutex::default).lock();
    let function = made.entry((what, from.clone(), to.clone())).or_insert_with(|| {
        let (label, code): (String, Box<dyn RowFunction>) = match (what, &from) {
            (Shared::Carrier, _) => (to.base_name(), Box::new(Same)),
            (_, SqlType::Float4 | SqlType::Float8) => ("key".to_string(), Box::new(FloatKey)),
            _ => ("key".to_string(), Box::new(SortKey(from.clone()))),
        };
        ScalarUDF::new_from_impl(RowUdf {
            id: next_id(),
            label,
            signature: signature(1, Volatility::Immutable),
            arg_types: vec![from],
            carrier: arrow_form::data_type(to),
            ret: to.clone(),
            code,
            place: None,
            for_scans: false,
        })
    });
    function.clone()
}

struct Field(usize);

impl RowFunction for Field {
    fn call(&self, args: &[Datum], _: &EvalContext) -> braid_types::SqlResult<Datum> {
        Ok(match &args[0] {
            Datum::Record(fields) => fields.get(self.0).cloned().unwrap_or(Datum::Null),
            _ => Datum::Null,
        })
    }

    fn field(&self) -> Option<usize> {
        Some(self.0)
    }
}

/// The number and the type of the field that a call of [`record_field`] gives.
pub(crate) fn field_of(call: &ScalarUDF) -> Option<(usize, &SqlType)> {
    let udf = call.inner().downcast_ref::<RowUdf>()?;
    Some((udf.code.field()?, &udf.ret))
}

/// A field of a record.
pub(crate) fn record_field(expr: Expr, at: usize, ty: &SqlType) -> Expr {
    RowUdf::call_expr(
        format!("field {at}"),
        Box::new(Field(at)),
        vec![(expr, SqlType::Record)],
        ty.clone(),
        Volatility::Immutable,
        None,
    )
}
