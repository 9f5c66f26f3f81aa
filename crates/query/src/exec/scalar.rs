//! Our scalar expressions as DataFusion functions, evaluated row by row.
//!
//! A whole bound subtree becomes one function whose arguments are the columns it uses, so CASE and
//! COALESCE keep their laziness and errors are those of `braid_scalar`.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use braid_scalar::{Bound, EvalContext, Volatility};
use braid_types::{Datum, SqlType};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility as DfVolatility,
};

use parking_lot::Mutex;

use super::execution::{Execution, Place};
use crate::arrow_form::{self, Reader};
use crate::error::to_df;

/// A number no other function of this process has: functions are equal only to themselves.
pub fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Code of a row function.
pub(crate) trait RowFunction: Send + Sync {
    /// The result for one row of arguments.
    fn call(&self, args: &[Datum], ctx: &EvalContext) -> braid_types::SqlResult<Datum>;
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
        let (exprs, arg_types): (Vec<Expr>, Vec<SqlType>) = args.into_iter().unzip();
        let udf = RowUdf {
            id: next_id(),
            label,
            signature: signature(arg_types.len(), volatility),
            arg_types,
            carrier: arrow_form::data_type(&ret),
            ret,
            code,
            place,
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

impl ScalarUDFImpl for RowUdf {
    fn name(&self) -> &str {
        &self.label
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.carrier.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let varying = args.args.iter().any(|a| matches!(a, ColumnarValue::Array(_)));
        let once = !varying && self.signature.volatility != DfVolatility::Volatile;
        let rows = if once { 1 } else { args.number_rows };
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
        let execution = self.execution().map_err(to_df)?;
        let mut out = Vec::with_capacity(rows);
        let mut row = Vec::with_capacity(readers.len());
        for at in 0..rows {
            row.clear();
            for ((reader, varies), ty) in readers.iter().zip(&self.arg_types) {
                row.push(reader.get(if *varies { at } else { 0 }, ty));
            }
            out.push(self.code.call(&row, &execution.eval).map_err(to_df)?);
        }
        if once {
            let value = out.pop().unwrap_or(Datum::Null);
            return Ok(ColumnarValue::Scalar(arrow_form::scalar(&value, &self.ret)));
        }
        Ok(ColumnarValue::Array(arrow_form::build(&self.ret, out.iter())))
    }
}

/// A bound expression over its arguments.
struct BoundCode(Bound);

impl RowFunction for BoundCode {
    fn call(&self, args: &[Datum], ctx: &EvalContext) -> braid_types::SqlResult<Datum> {
        self.0.eval(args, ctx)
    }
}

/// A call that evaluates `bound`, whose column ordinals are positions in `args`.
pub(crate) fn bound_expr(bound: Bound, place: &Arc<Place>, args: Vec<(Expr, SqlType)>) -> Expr {
    let label = bound.to_sql(&|at| format!("#{at}"));
    let ret = bound.ty().clone();
    let volatility = bound.volatility();
    let code = Box::new(BoundCode(bound));
    RowUdf::call_expr(label, code, args, ret, volatility, Some(place.clone()))
}

/// As [`bound_expr`], but nothing moves it: for conditions that can fail.
pub(crate) fn pinned_expr(bound: Bound, place: &Arc<Place>, args: Vec<(Expr, SqlType)>) -> Expr {
    let label = bound.to_sql(&|at| format!("#{at}"));
    let ret = bound.ty().clone();
    let code = Box::new(BoundCode(bound));
    RowUdf::call_expr(label, code, args, ret, Volatility::Volatile, Some(place.clone()))
}

struct SortKey;

impl RowFunction for SortKey {
    fn call(&self, args: &[Datum], _: &EvalContext) -> braid_types::SqlResult<Datum> {
        Ok(arrow_form::sort_key(&args[0]).map_or(Datum::Null, |k| Datum::Bytea(k.into())))
    }
}

/// An expression that compares as SQL compares: itself for native types, else its sort key.
pub(crate) fn sortable(expr: Expr, ty: &SqlType) -> Expr {
    if arrow_form::is_native(ty) {
        return expr;
    }
    key_function(ty).call(vec![expr])
}

/// One function for each type: equal keys of equal expressions are equal to the optimizer.
fn key_function(ty: &SqlType) -> ScalarUDF {
    static KEYS: OnceLock<Mutex<HashMap<SqlType, ScalarUDF>>> = OnceLock::new();
    let mut keys = KEYS.get_or_init(Mutex::default).lock();
    let made = keys.entry(ty.base()).or_insert_with(|| {
        ScalarUDF::new_from_impl(RowUdf {
            id: next_id(),
            label: "key".to_string(),
            signature: signature(1, Volatility::Immutable),
            arg_types: vec![ty.base()],
            carrier: arrow_form::data_type(&SqlType::Bytea),
            ret: SqlType::Bytea,
            code: Box::new(SortKey),
            place: None,
        })
    });
    made.clone()
}

struct Field(usize);

impl RowFunction for Field {
    fn call(&self, args: &[Datum], _: &EvalContext) -> braid_types::SqlResult<Datum> {
        Ok(match &args[0] {
            Datum::Record(fields) => fields.get(self.0).cloned().unwrap_or(Datum::Null),
            _ => Datum::Null,
        })
    }
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
