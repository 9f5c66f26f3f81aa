//! Simple aggregates over all rows: count, sum, avg, min, max without DISTINCT, FILTER, GROUP BY.

use std::fmt;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, numeric};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments};

use braid_scalar::{Bound, EvalContext, ParamTypes, Scope, object_name_parts};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

/// One aggregate; its argument is over the joined row. No argument is `count(*)`.
pub(super) struct Aggregate {
    kind: Kind,
    pub(super) arg: Option<Bound>,
    pub(super) ty: SqlType,
}

/// An aggregate in the making.
pub(super) struct State {
    count: i64,
    int: i128,
    float: f64,
    numeric: BigDecimal,
    nan: bool,
    infinite: bool,
    minus_infinite: bool,
    value: Option<Datum>,
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{:?}", self.kind).to_lowercase();
        match &self.arg {
            None => write!(f, "{name}(*)"),
            Some(a) => write!(f, "{name}({a})"),
        }
    }
}

impl Aggregate {
    /// Binds an aggregate call; `None` if it is not one of ours.
    pub(super) fn bind(
        e: &ast::Expr,
        scope: &Scope,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<Aggregate>> {
        let ast::Expr::Function(f) = e else { return Ok(None) };
        if f.filter.is_some() || f.over.is_some() || !f.within_group.is_empty() {
            return Ok(None);
        }
        let FunctionArguments::List(list) = &f.args else { return Ok(None) };
        if list.duplicate_treatment.is_some() || !list.clauses.is_empty() || list.args.len() != 1 {
            return Ok(None);
        }
        let name = object_name_parts(&f.name);
        let kind = match name.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["count"] | ["pg_catalog", "count"] => Kind::Count,
            ["sum"] => Kind::Sum,
            ["avg"] => Kind::Avg,
            ["min"] => Kind::Min,
            ["max"] => Kind::Max,
            _ => return Ok(None),
        };
        let arg = match &list.args[0] {
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if kind == Kind::Count => None,
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => {
                match braid_scalar::bind(e, scope, params) {
                    Ok(b) => Some(b),
                    Err(e) if braid_scalar::needs_general_query(&e) => return Ok(None),
                    Err(e) => return Err(e),
                }
            }
            _ => return Ok(None),
        };
        let arg_type = arg.as_ref().map(|a| a.ty().base());
        let ty = match (kind, &arg_type) {
            (Kind::Count, _) => SqlType::Int8,
            (Kind::Sum, Some(SqlType::Int2 | SqlType::Int4)) => SqlType::Int8,
            (Kind::Sum | Kind::Avg, Some(SqlType::Int8 | SqlType::Numeric(_))) => {
                SqlType::Numeric(None)
            }
            (Kind::Avg, Some(SqlType::Int2 | SqlType::Int4)) => SqlType::Numeric(None),
            (Kind::Sum, Some(SqlType::Float4)) => SqlType::Float4,
            (Kind::Sum | Kind::Avg, Some(SqlType::Float8)) => SqlType::Float8,
            (Kind::Avg, Some(SqlType::Float4)) => SqlType::Float8,
            (
                Kind::Min | Kind::Max,
                Some(
                    t @ (SqlType::Int2
                    | SqlType::Int4
                    | SqlType::Int8
                    | SqlType::Numeric(_)
                    | SqlType::Float4
                    | SqlType::Float8
                    | SqlType::Text
                    | SqlType::Date
                    | SqlType::Time
                    | SqlType::Timestamp
                    | SqlType::TimestampTz
                    | SqlType::Interval),
                ),
            ) => t.clone(),
            _ => return Ok(None),
        };
        Ok(Some(Aggregate { kind, arg, ty }))
    }

    /// For min and max of a bare column: the column, and whether the last value is wanted.
    pub(super) fn extreme(&self) -> Option<(usize, bool)> {
        let at = self.arg.as_ref()?.as_column()?;
        match self.kind {
            Kind::Min => Some((at, false)),
            Kind::Max => Some((at, true)),
            _ => None,
        }
    }

    pub(super) fn start(&self) -> State {
        State {
            count: 0,
            int: 0,
            float: 0.0,
            numeric: numeric::from_i128(0),
            nan: false,
            infinite: false,
            minus_infinite: false,
            value: None,
        }
    }

    pub(super) fn add(&self, s: &mut State, row: &[Datum], eval: &EvalContext) -> SqlResult<()> {
        let Some(arg) = &self.arg else {
            s.count += 1;
            return Ok(());
        };
        let v = arg.eval(row, eval)?;
        if v.is_null() {
            return Ok(());
        }
        s.count += 1;
        match self.kind {
            Kind::Count => {}
            Kind::Sum | Kind::Avg => match v {
                Datum::Int2(v) => s.int += i128::from(v),
                Datum::Int4(v) => s.int += i128::from(v),
                Datum::Int8(v) => s.int += i128::from(v),
                Datum::Float4(v) => s.float += f64::from(v),
                Datum::Float8(v) => s.float += v,
                Datum::Numeric(v) => s.numeric = numeric::add(&s.numeric, &v),
                Datum::NumericNan => s.nan = true,
                Datum::NumericInf(true) => s.minus_infinite = true,
                Datum::NumericInf(false) => s.infinite = true,
                _ => return Err(SqlError::internal("sum over an unexpected type")),
            },
            Kind::Min | Kind::Max => {
                let better = s.value.as_ref().is_none_or(|old| {
                    let o = v.cmp_sql(old);
                    if self.kind == Kind::Min { o.is_lt() } else { o.is_gt() }
                });
                if better {
                    s.value = Some(v);
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(&self, s: State) -> SqlResult<Datum> {
        if self.kind == Kind::Count {
            return Ok(Datum::Int8(s.count));
        }
        if matches!(self.kind, Kind::Min | Kind::Max) {
            return Ok(s.value.unwrap_or(Datum::Null));
        }
        if s.count == 0 {
            return Ok(Datum::Null);
        }
        let integer = self.arg.as_ref().is_some_and(|a| a.ty().is_integer());
        let total = if integer { numeric::from_i128(s.int) } else { s.numeric };
        match (&self.ty, self.kind) {
            (SqlType::Numeric(_), _) if s.nan || (s.infinite && s.minus_infinite) => {
                Ok(Datum::NumericNan)
            }
            (SqlType::Numeric(_), _) if s.infinite || s.minus_infinite => {
                Ok(Datum::NumericInf(s.minus_infinite))
            }
            (SqlType::Int8, _) => i64::try_from(s.int).map(Datum::Int8).map_err(|_| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
            }),
            (SqlType::Numeric(_), Kind::Sum) => Ok(Datum::Numeric(Arc::new(total))),
            (SqlType::Numeric(_), _) => {
                let n = numeric::from_i128(i128::from(s.count));
                numeric::datum(numeric::div(&total, &n)?)
            }
            (SqlType::Float4, _) => Ok(Datum::Float4(s.float as f32)),
            (_, Kind::Avg) => Ok(Datum::Float8(s.float / s.count as f64)),
            _ => Ok(Datum::Float8(s.float)),
        }
    }
}
