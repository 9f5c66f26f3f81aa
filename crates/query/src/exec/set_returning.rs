//! Set-returning functions and LATERAL subqueries: one row of arguments gives a list of records,
//! which the plan unnests.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use braid_scalar::{Builtin, Code, Columns, Volatility, resolve};
use braid_types::{Datum, SqlError, SqlResult, SqlType};
use datafusion::arrow::array::{BinaryBuilder, ListBuilder};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::execution::Place;
use super::scalar::{next_id, signature};
use super::subquery::Subquery;
use crate::arrow_form::{self, Reader};
use crate::error::to_df;

/// A set-returning function chosen for its argument types.
#[derive(Clone)]
pub struct SetFunction {
    /// The entry of the registry.
    pub function: &'static Builtin,
    /// Types its arguments are converted to.
    pub args: Vec<SqlType>,
    /// Columns of its rows.
    pub columns: Vec<(String, SqlType)>,
    /// Clock and session of the execution.
    pub place: Arc<Place>,
}

/// Picks the function for argument types.
///
/// # Errors
/// 42883 when there is none, 42725 when several fit.
pub fn choose(name: &str, given: &[SqlType], place: &Arc<Place>) -> SqlResult<SetFunction> {
    let choice = resolve(name, given, false)?;
    let Code::Rows(_, columns) = choice.function.code else {
        return Err(SqlError::internal(format!("{name} gives no rows")));
    };
    let element = |ty: &SqlType| ty.element().cloned().unwrap_or_else(|| ty.clone());
    let columns = match columns {
        Columns::One => vec![(name.to_string(), choice.ret)],
        Columns::Elements => choice.args.iter().map(|ty| (name.to_string(), element(ty))).collect(),
        Columns::Named(list) => {
            let of = |ty: &str| match ty {
                "anyelement" => choice.args.first().map(element),
                ty => SqlType::from_name(ty),
            };
            let typed = |(name, ty): &(&str, &str)| {
                let ty = of(ty).ok_or_else(|| SqlError::internal(format!("no type {ty}")))?;
                Ok((name.to_string(), ty))
            };
            list.iter().map(typed).collect::<SqlResult<_>>()?
        }
    };
    Ok(SetFunction { function: choice.function, args: choice.args, columns, place: place.clone() })
}

impl SetFunction {
    /// The rows for one row of arguments; a NULL argument of a strict function gives none.
    fn rows(&self, args: &[Datum]) -> SqlResult<Vec<Vec<Datum>>> {
        if self.function.strict && args.iter().any(Datum::is_null) {
            return Ok(Vec::new());
        }
        match self.function.code {
            Code::Rows(code, _) => code(args, &self.place.execution()?.eval),
            _ => Err(SqlError::internal("no function of rows")),
        }
    }
}

/// Where the records of a list come from.
enum Records {
    Function(SetFunction),
    /// With the flag, a subquery without rows gives NULL instead of an empty list.
    Subquery(Box<Subquery>, bool),
}

impl Records {
    fn name(&self) -> &str {
        match self {
            Records::Function(function) => function.function.name,
            Records::Subquery(..) => "lateral_subquery",
        }
    }

    fn arg_types(&self) -> Vec<SqlType> {
        match self {
            Records::Function(function) => function.args.clone(),
            Records::Subquery(subquery, _) => {
                subquery.outer.iter().map(|(_, ty)| ty.clone()).collect()
            }
        }
    }

    fn rows(&self, args: &[Datum]) -> SqlResult<Vec<Vec<Datum>>> {
        match self {
            Records::Function(function) => function.rows(args),
            Records::Subquery(subquery, _) => Ok(subquery.rows(args)?.to_vec()),
        }
    }
}

/// The function for DataFusion: gives a list of records.
struct ListUdf {
    id: u64,
    records: Records,
    ordinality: bool,
    signature: Signature,
}

impl fmt::Debug for ListUdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.records.name())
    }
}

impl PartialEq for ListUdf {
    fn eq(&self, other: &ListUdf) -> bool {
        self.id == other.id
    }
}

impl Eq for ListUdf {}

impl Hash for ListUdf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// A call that gives a list of records; with `ordinality` each ends with its number.
pub(crate) fn list_expr(function: SetFunction, ordinality: bool, args: Vec<Expr>) -> Expr {
    let signature = signature(args.len(), Volatility::Volatile);
    let udf =
        ListUdf { id: next_id(), records: Records::Function(function), ordinality, signature };
    ScalarUDF::new_from_impl(udf).call(args)
}

/// A call that gives the rows of a subquery; with `outer` NULL where there are none.
pub(crate) fn subquery_expr(subquery: Subquery, outer: bool, args: Vec<Expr>) -> Expr {
    let signature = signature(args.len(), Volatility::Volatile);
    let records = Records::Subquery(Box::new(subquery), outer);
    let udf = ListUdf { id: next_id(), records, ordinality: false, signature };
    ScalarUDF::new_from_impl(udf).call(args)
}

impl ScalarUDFImpl for ListUdf {
    fn name(&self) -> &str {
        self.records.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Binary, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns =
            args.args.iter().map(|a| a.to_array(args.number_rows)).collect::<Result<Vec<_>>>()?;
        let readers: Vec<Reader<'_>> = columns.iter().map(|c| Reader::new(c)).collect();
        let mut lists = ListBuilder::new(BinaryBuilder::new());
        let mut bytes = Vec::new();
        let types = self.records.arg_types();
        let read = |at: usize| -> Vec<Datum> {
            readers.iter().zip(&types).map(|(reader, ty)| reader.get(at, ty)).collect()
        };
        let given: Vec<Vec<Datum>> = (0..args.number_rows).map(read).collect();
        if let Records::Subquery(subquery, _) = &self.records {
            subquery.expect(&given);
        }
        for row in given {
            let rows = self.records.rows(&row).map_err(to_df)?;
            if rows.is_empty() && matches!(self.records, Records::Subquery(_, true)) {
                lists.append(false);
                continue;
            }
            for (number, mut record) in rows.into_iter().enumerate() {
                if self.ordinality {
                    record.push(Datum::Int8(number as i64 + 1));
                }
                bytes.clear();
                arrow_form::pack(&Datum::record(record), &mut bytes);
                lists.values().append_value(&bytes);
            }
            lists.append(true);
        }
        Ok(ColumnarValue::Array(Arc::new(lists.finish())))
    }
}
