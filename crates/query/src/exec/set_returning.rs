//! Set-returning functions and LATERAL subqueries: one row of arguments gives records.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use braid_scalar::{Builtin, Code, Columns, Rows, Volatility, resolve};
use braid_types::{Datum, SqlError, SqlResult, SqlType};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::execution::Place;
use super::scalar::{next_id, signature};
use super::subquery::Subquery;

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
    fn rows(&self, args: &[Datum]) -> SqlResult<Rows> {
        if self.function.strict && args.iter().any(Datum::is_null) {
            return Ok(Vec::new().into_iter().collect());
        }
        match self.function.code {
            Code::Rows(code, _) => code(args, &self.place.execution()?.eval),
            _ => Err(SqlError::internal("no function of rows")),
        }
    }
}

/// Records, one after the other: the fields of each.
pub(super) type RecordRows = Box<dyn Iterator<Item = SqlResult<Vec<Datum>>> + Send>;

/// Where the records of a list come from.
pub(crate) enum Records {
    /// A function; with the flag each record ends with its number.
    Function(SetFunction, bool),
    Subquery(Box<Subquery>),
    /// The arguments themselves, row after row: VALUES with columns of these types.
    Values(Vec<SqlType>, usize),
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Records {
    /// What a call that gives a list stands for.
    pub(crate) fn of(call: &ScalarUDF) -> Option<Arc<Records>> {
        let list = call.inner().downcast_ref::<ListUdf>()?;
        Some(list.records.clone())
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Records::Function(function, _) => function.function.name,
            Records::Subquery(..) => "lateral_subquery",
            Records::Values(..) => "values",
        }
    }

    pub(super) fn arg_types(&self) -> Vec<SqlType> {
        match self {
            Records::Function(function, _) => function.args.clone(),
            Records::Subquery(subquery) => {
                subquery.outer.iter().map(|(_, ty)| ty.clone()).collect()
            }
            Records::Values(types, rows) => {
                types.iter().cycle().take(types.len() * rows).cloned().collect()
            }
        }
    }

    /// Rows of arguments that are going to be asked for.
    pub(super) fn expect(&self, given: &[Vec<Datum>]) {
        if let Records::Subquery(subquery) = self {
            subquery.expect(given);
        }
    }

    /// The records for one row of arguments.
    pub(super) fn rows(&self, args: &[Datum]) -> SqlResult<RecordRows> {
        Ok(match self {
            Records::Function(function, ordinality) => {
                let rows = function.rows(args)?.into_iter();
                if !*ordinality {
                    return Ok(Box::new(rows));
                }
                Box::new(rows.zip(1_i64..).map(|(row, number)| {
                    let mut row = row?;
                    row.push(Datum::Int8(number));
                    Ok(row)
                }))
            }
            Records::Subquery(subquery) => {
                let rows = subquery.rows(args)?;
                Box::new((0..rows.len()).map(move |n| Ok(rows[n].clone())))
            }
            Records::Values(types, _) => {
                let rows = args.chunks(types.len()).map(|row| Ok(row.to_vec()));
                Box::new(rows.collect::<Vec<_>>().into_iter())
            }
        })
    }
}

/// The function for DataFusion, which plans with lists of records. None of them is ever made: see
/// [`super::project_set`].
struct ListUdf {
    id: u64,
    records: Arc<Records>,
    signature: Signature,
}

impl ListUdf {
    fn call(records: Records, args: Vec<Expr>) -> Expr {
        let signature = signature(args.len(), Volatility::Volatile);
        let udf = ListUdf { id: next_id(), records: Arc::new(records), signature };
        ScalarUDF::new_from_impl(udf).call(args)
    }
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
    ListUdf::call(Records::Function(function, ordinality), args)
}

/// A call that gives the rows of a subquery.
pub(crate) fn subquery_expr(subquery: Subquery, args: Vec<Expr>) -> Expr {
    ListUdf::call(Records::Subquery(Box::new(subquery)), args)
}

/// How many rows a call gives, if it is one of [`values_expr`].
pub(crate) fn values_rows(call: &ScalarUDF) -> Option<usize> {
    match *call.inner().downcast_ref::<ListUdf>()?.records {
        Records::Values(_, rows) => Some(rows),
        _ => None,
    }
}

/// A call that gives rows of its arguments.
pub(crate) fn values_expr(types: Vec<SqlType>, rows: Vec<Vec<Expr>>) -> Expr {
    let records = Records::Values(types, rows.len());
    ListUdf::call(records, rows.into_iter().flatten().collect())
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

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("a list of {} is to be unnested", self.name())
    }
}
