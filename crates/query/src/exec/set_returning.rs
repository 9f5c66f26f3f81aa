//! Set-returning functions: one row of arguments gives a list of records, which the plan unnests.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use braid_types::json::{self, Shape};
use braid_types::jsonb::serde_json::Value;
use braid_types::{Datum, Interval, SqlError, SqlResult, SqlState, SqlType, jsonb, numeric};
use datafusion::arrow::array::{BinaryBuilder, ListBuilder};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::scalar::{next_id, signature};
use crate::arrow_form::{self, Reader};
use crate::error::to_df;

/// Rows that one call may give: they are in memory at once.
const MAX_ROWS: usize = 20_000_000;

/// Code of a function: arguments to rows.
pub type Code = Arc<dyn Fn(&[Datum]) -> SqlResult<Vec<Vec<Datum>>> + Send + Sync>;

/// A set-returning function chosen for its argument types.
#[derive(Clone)]
pub struct SetFunction {
    /// Name.
    pub name: String,
    /// Types its arguments are converted to.
    pub args: Vec<SqlType>,
    /// Columns of its rows.
    pub columns: Vec<(String, SqlType)>,
    /// Code.
    pub code: Code,
}

fn code(f: impl Fn(&[Datum]) -> SqlResult<Vec<Vec<Datum>>> + Send + Sync + 'static) -> Code {
    Arc::new(f)
}

fn one_column(name: &str, args: Vec<SqlType>, ret: SqlType, code: Code) -> SetFunction {
    SetFunction { name: name.to_string(), args, columns: vec![(name.to_string(), ret)], code }
}

fn too_many() -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "a set-returning function gave too many rows")
        .with_hint(format!("At most {MAX_ROWS} rows of one call are held in memory."))
}

/// Picks the function for argument types.
///
/// # Errors
/// 42883 when there is none.
pub fn resolve(name: &str, given: &[SqlType]) -> SqlResult<SetFunction> {
    series(name, given)
        .or_else(|| arrays(name, given))
        .or_else(|| documents(name, given))
        .ok_or_else(|| {
            let types: Vec<String> = given.iter().map(SqlType::base_name).collect();
            SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {name}({}) does not exist", types.join(", ")),
            )
        })
}

fn series(name: &str, given: &[SqlType]) -> Option<SetFunction> {
    use SqlType as T;
    let wide = |t: &T| matches!(t, T::Int8);
    Some(match (name, given) {
        ("generate_series", [a, b] | [a, b, _])
            if matches!(a, T::Numeric(_)) || matches!(b, T::Numeric(_)) =>
        {
            let args = vec![T::Numeric(None); given.len()];
            one_column(name, args, T::Numeric(None), code(numeric_series))
        }
        ("generate_series", [a, b, _])
            if matches!(a, T::Timestamp | T::Date | T::TimestampTz)
                || matches!(b, T::Timestamp | T::Date | T::TimestampTz) =>
        {
            let ty = if *a == T::Timestamp { T::Timestamp } else { T::TimestampTz };
            let args = vec![ty.clone(), ty.clone(), T::Interval];
            one_column(name, args, ty, code(time_series))
        }
        ("generate_series", [_, _] | [_, _, _]) => {
            let ty = if given.iter().any(wide) { T::Int8 } else { T::Int4 };
            let args = vec![ty.clone(); given.len()];
            one_column(name, args, ty, code(integer_series))
        }
        _ => return None,
    })
}

fn arrays(name: &str, given: &[SqlType]) -> Option<SetFunction> {
    use SqlType as T;
    Some(match (name, given) {
        ("generate_subscripts", [T::Array(_), _]) => {
            let args = vec![given[0].clone(), T::Int4];
            one_column(
                name,
                args,
                T::Int4,
                code(|a| {
                    let n = items(&a[0]).len() as i32;
                    Ok((1..=n).map(|i| vec![Datum::Int4(i)]).collect())
                }),
            )
        }
        ("unnest", [T::Array(element)]) => {
            let ret = (**element).clone();
            one_column(
                name,
                given.to_vec(),
                ret,
                code(|a| Ok(items(&a[0]).iter().map(|i| vec![i.clone()]).collect())),
            )
        }
        ("unnest", [T::Array(_), ..]) if given.iter().all(|t| t.element().is_some()) => {
            let columns = given
                .iter()
                .map(|t| ("unnest".to_string(), t.element().cloned().unwrap_or(T::Text)))
                .collect();
            SetFunction {
                name: name.to_string(),
                args: given.to_vec(),
                columns,
                code: code(|a| {
                    let longest = a.iter().map(|v| items(v).len()).max().unwrap_or(0);
                    Ok((0..longest)
                        .map(|at| {
                            a.iter()
                                .map(|v| items(v).get(at).cloned().unwrap_or(Datum::Null))
                                .collect()
                        })
                        .collect())
                }),
            }
        }
        // There are no partitions.
        ("pg_partition_ancestors", [_]) => SetFunction {
            name: name.to_string(),
            args: vec![T::Regclass],
            columns: vec![("relid".into(), T::Regclass)],
            code: code(|_| Ok(Vec::new())),
        },
        ("_pg_expandarray", [T::Array(element)]) => SetFunction {
            name: name.to_string(),
            args: given.to_vec(),
            columns: vec![("x".into(), (**element).clone()), ("n".into(), T::Int4)],
            code: code(|a| {
                Ok(items(&a[0])
                    .iter()
                    .enumerate()
                    .map(|(at, v)| vec![v.clone(), Datum::Int4(at as i32 + 1)])
                    .collect())
            }),
        },
        _ => return None,
    })
}

fn documents(name: &str, given: &[SqlType]) -> Option<SetFunction> {
    use SqlType as T;
    Some(match (name, given) {
        ("regexp_split_to_table" | "string_to_table", [_, _]) => {
            let regex = name == "regexp_split_to_table";
            one_column(name, vec![T::Text, T::Text], T::Text, code(move |a| split(a, regex)))
        }
        ("jsonb_array_elements", [_]) => {
            let f = code(|a| {
                Ok(json_items(&a[0])?.into_iter().map(|v| vec![jsonb::datum(v)]).collect())
            });
            value_column(name, T::Jsonb, T::Jsonb, f)
        }
        ("jsonb_array_elements_text", [_]) => {
            let f = code(|a| Ok(json_items(&a[0])?.iter().map(|v| vec![json_text(v)]).collect()));
            value_column(name, T::Jsonb, T::Text, f)
        }
        ("json_array_elements" | "json_array_elements_text", [_]) => {
            let as_text = name == "json_array_elements_text";
            let ret = if as_text { T::Text } else { T::Json };
            let f = code(move |a| {
                let items = text_elements(&a[0])?;
                Ok(items.into_iter().map(|v| vec![kept(v, as_text)]).collect())
            });
            value_column(name, T::Json, ret, f)
        }
        ("jsonb_object_keys", [_]) => {
            let f = code(|a| {
                let entries = json_entries(&a[0], "jsonb_object_keys")?;
                Ok(entries.into_iter().map(|(k, _)| vec![Datum::text(k)]).collect())
            });
            one_column(name, vec![T::Jsonb], T::Text, f)
        }
        ("json_object_keys", [_]) => {
            let f = code(|a| {
                let entries = text_entries(&a[0], "json_object_keys")?;
                Ok(entries.into_iter().map(|(k, _)| vec![Datum::text(k)]).collect())
            });
            one_column(name, vec![T::Json], T::Text, f)
        }
        ("jsonb_each" | "jsonb_each_text", [_]) => {
            let as_text = name == "jsonb_each_text";
            let of = if as_text { "jsonb_each_text" } else { "jsonb_each" };
            let ret = if as_text { T::Text } else { T::Jsonb };
            let f = code(move |a| {
                let entries = json_entries(&a[0], of)?.into_iter();
                Ok(entries
                    .map(|(k, v)| {
                        let value = if as_text { json_text(&v) } else { jsonb::datum(v) };
                        vec![Datum::text(k), value]
                    })
                    .collect())
            });
            key_value(name, T::Jsonb, ret, f)
        }
        ("json_each" | "json_each_text", [_]) => {
            let as_text = name == "json_each_text";
            let of = if as_text { "json_each_text" } else { "json_each" };
            let ret = if as_text { T::Text } else { T::Json };
            let f = code(move |a| {
                let entries = text_entries(&a[0], of)?.into_iter();
                Ok(entries.map(|(k, v)| vec![Datum::text(k), kept(v, as_text)]).collect())
            });
            key_value(name, T::Json, ret, f)
        }
        ("regexp_matches", [_, _] | [_, _, _]) => {
            let ret = T::Array(Box::new(T::Text));
            one_column(name, vec![T::Text; given.len()], ret, code(regexp_matches))
        }
        _ => return None,
    })
}

fn key_value(name: &str, of: SqlType, ret: SqlType, code: Code) -> SetFunction {
    SetFunction {
        name: name.to_string(),
        args: vec![of],
        columns: vec![("key".into(), SqlType::Text), ("value".into(), ret)],
        code,
    }
}

/// A value of a json text, as it was written or as SQL text.
fn kept(text: &str, as_text: bool) -> Datum {
    if as_text { braid_scalar::plain_text(text) } else { Datum::Json(text.into()) }
}

fn text_elements(value: &Datum) -> SqlResult<Vec<&str>> {
    let Datum::Json(text) = value else { return Ok(Vec::new()) };
    match json::shape(text) {
        Shape::Array => Ok(json::elements(text)),
        Shape::Object => Err(not_an_array("a non-array")),
        _ => Err(not_an_array("a scalar")),
    }
}

fn not_an_array(what: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("cannot call json_array_elements on {what}"),
    )
}

fn text_entries<'a>(value: &'a Datum, of: &str) -> SqlResult<Vec<(String, &'a str)>> {
    let Datum::Json(text) = value else { return Ok(Vec::new()) };
    let what = match json::shape(text) {
        Shape::Object => {
            let entries = json::entries(text).into_iter();
            return Ok(entries.map(|(k, v)| (k.into_owned(), v)).collect());
        }
        Shape::Array => "an array",
        _ => "a scalar",
    };
    Err(not_an_object(of, what))
}

fn not_an_object(of: &str, what: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("cannot call {of} on {what}"))
}

/// One array of captures for each match; without the flag `g` the first match only.
fn regexp_matches(a: &[Datum]) -> SqlResult<Vec<Vec<Datum>>> {
    let text = |v: &Datum| match v {
        Datum::Text(s) => s.to_string(),
        _ => String::new(),
    };
    let flags = a.get(2).map(text).unwrap_or_default();
    let all = flags.contains('g');
    let found = braid_scalar::regexp_captures(&text(&a[0]), &text(&a[1]), &flags.replace('g', ""))?;
    let limit = if all { usize::MAX } else { 1 };
    Ok(found.into_iter().take(limit).map(|row| vec![row]).collect())
}

fn value_column(name: &str, of: SqlType, ret: SqlType, code: Code) -> SetFunction {
    SetFunction {
        name: name.to_string(),
        args: vec![of],
        columns: vec![("value".to_string(), ret)],
        code,
    }
}

fn items(value: &Datum) -> &[Datum] {
    match value {
        Datum::Array(a) => &a.items,
        _ => &[],
    }
}

fn json_text(value: &Value) -> Datum {
    match value {
        Value::Null => Datum::Null,
        Value::String(s) => Datum::text(s.as_str()),
        other => Datum::text(jsonb::text(other)),
    }
}

fn json_items(value: &Datum) -> SqlResult<Vec<Value>> {
    match value {
        Datum::Jsonb(v) => match &**v {
            Value::Array(items) => Ok(items.clone()),
            Value::Object(_) => Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "cannot extract elements from an object",
            )),
            _ => Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "cannot extract elements from a scalar",
            )),
        },
        _ => Ok(Vec::new()),
    }
}

fn json_entries(value: &Datum, of: &str) -> SqlResult<Vec<(String, Value)>> {
    match value {
        Datum::Jsonb(v) => match &**v {
            Value::Object(map) => Ok(map.iter().map(|(k, v)| (k.clone(), v.clone())).collect()),
            Value::Array(_) => Err(not_an_object(of, "an array")),
            _ => Err(not_an_object(of, "a scalar")),
        },
        _ => Ok(Vec::new()),
    }
}

fn split(a: &[Datum], regex: bool) -> SqlResult<Vec<Vec<Datum>>> {
    // Without a delimiter string_to_table splits into characters.
    if a[0].is_null() || (regex && a[1].is_null()) {
        return Ok(Vec::new());
    }
    let name = if regex { "regexp_split_to_array" } else { "string_to_array" };
    let list = braid_scalar::call_text_function(name, a)?;
    Ok(items(&list).iter().map(|i| vec![i.clone()]).collect())
}

fn integer_series(a: &[Datum]) -> SqlResult<Vec<Vec<Datum>>> {
    let int = |v: &Datum| match v {
        Datum::Int4(i) => i128::from(*i),
        Datum::Int8(i) => i128::from(*i),
        _ => 0,
    };
    let wide = matches!(a[0], Datum::Int8(_));
    let (start, stop) = (int(&a[0]), int(&a[1]));
    let step = a.get(2).map_or(1, int);
    if step == 0 {
        return Err(zero_step());
    }
    let count = ((stop - start) / step + 1).max(0);
    if (step > 0 && start > stop) || (step < 0 && start < stop) {
        return Ok(Vec::new());
    }
    if count > MAX_ROWS as i128 {
        return Err(too_many());
    }
    Ok((0..count)
        .map(|i| {
            let v = start + i * step;
            vec![if wide { Datum::Int8(v as i64) } else { Datum::Int4(v as i32) }]
        })
        .collect())
}

fn zero_step() -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "step size cannot equal zero")
}

fn numeric_series(a: &[Datum]) -> SqlResult<Vec<Vec<Datum>>> {
    let number = |v: &Datum| match v {
        Datum::Numeric(n) => (**n).clone(),
        _ => numeric::from_i128(0),
    };
    let (mut at, stop) = (number(&a[0]), number(&a[1]));
    let step = a.get(2).map_or_else(|| numeric::from_i128(1), number);
    let zero = numeric::from_i128(0);
    let direction = numeric::compare(&step, &zero);
    if direction.is_eq() {
        return Err(zero_step());
    }
    let mut out = Vec::new();
    while numeric::compare(&at, &stop) != direction {
        out.push(vec![numeric::datum(at.clone())?]);
        at = numeric::add(&at, &step);
        if out.len() > MAX_ROWS {
            return Err(too_many());
        }
    }
    Ok(out)
}

fn time_series(a: &[Datum]) -> SqlResult<Vec<Vec<Datum>>> {
    let micros = |v: &Datum| match v {
        Datum::Timestamp(t) | Datum::TimestampTz(t) => *t,
        _ => 0,
    };
    let step = match &a[2] {
        Datum::Interval(i) => *i,
        _ => Interval::default(),
    };
    let forward = step.length() > 0;
    if step.length() == 0 {
        return Err(zero_step());
    }
    let zoned = matches!(a[0], Datum::TimestampTz(_));
    let (mut at, stop) = (micros(&a[0]), micros(&a[1]));
    let mut out = Vec::new();
    while (forward && at <= stop) || (!forward && at >= stop) {
        out.push(vec![if zoned { Datum::TimestampTz(at) } else { Datum::Timestamp(at) }]);
        at = braid_scalar::add_interval(at, &step)?;
        if out.len() > MAX_ROWS {
            return Err(too_many());
        }
    }
    Ok(out)
}

/// The function for DataFusion: gives a list of records.
struct ListUdf {
    id: u64,
    function: SetFunction,
    ordinality: bool,
    signature: Signature,
}

impl fmt::Debug for ListUdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function.name)
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
pub fn list_expr(function: SetFunction, ordinality: bool, args: Vec<Expr>) -> Expr {
    let signature = signature(args.len(), braid_scalar::Volatility::Volatile);
    let udf = ListUdf { id: next_id(), function, ordinality, signature };
    ScalarUDF::new_from_impl(udf).call(args)
}

impl ScalarUDFImpl for ListUdf {
    fn name(&self) -> &str {
        &self.function.name
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
        for at in 0..args.number_rows {
            let row: Vec<Datum> = readers
                .iter()
                .zip(&self.function.args)
                .map(|(reader, ty)| reader.get(at, ty))
                .collect();
            // A NULL argument gives no rows.
            let strict = self.function.name != "string_to_table";
            let rows = if strict && row.iter().any(Datum::is_null) {
                Vec::new()
            } else {
                (self.function.code)(&row).map_err(to_df)?
            };
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
