//! Running aggregates over SQL values.
//!
//! [`Running`] takes one row of arguments at a time and gives the aggregate of all so far. Its
//! state can be taken apart into values and merged, for aggregation that spills.

use std::sync::Arc;

use super::pairs;
use braid_scalar::{EvalContext, json_key, json_text, to_json};
use braid_types::json::quoted;
use braid_types::jsonb::serde_json::{Map, Value};
use braid_types::numeric::{self, BigDecimal};
use braid_types::{ArrayValue, Datum, Interval, SqlError, SqlResult, SqlState, SqlType, jsonb};

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `count(x)`, `count(*)` without argument.
    Count,
    /// `sum`.
    Sum,
    /// `avg`.
    Avg,
    /// `min`.
    Min,
    /// `max`.
    Max,
    /// `bool_and`, `every`.
    And,
    /// `bool_or`.
    Or,
    /// `bit_and`.
    BitAnd,
    /// `bit_or`.
    BitOr,
    /// `array_agg`.
    Array,
    /// `string_agg`.
    String,
    /// `jsonb_agg`; with the flag `json_agg`.
    Json(bool),
    /// `jsonb_object_agg`; with the flag `json_object_agg`.
    JsonObject(bool),
    /// `bit_xor`.
    BitXor,
    /// `corr` and its family of two doubles.
    Pairs(PairKind),
    /// Variance and its root: sample or population.
    Spread {
        /// Divide by n - 1.
        sample: bool,
        /// Take the root.
        root: bool,
    },
    /// `percentile_cont(x)`, `percentile_disc(x)`; the fraction is the first argument.
    Percentile {
        /// Interpolate.
        continuous: bool,
    },
    /// `mode()`.
    Mode,
    /// Any value of the group (the first).
    First,
}

/// Aggregates over pairs (Y, X) of doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PairKind {
    /// `corr`.
    Corr,
    /// `covar_pop`.
    CovarPop,
    /// `covar_samp`.
    CovarSamp,
    /// `regr_slope`.
    Slope,
    /// `regr_intercept`.
    Intercept,
    /// `regr_r2`.
    R2,
    /// `regr_count`.
    Count,
    /// `regr_avgx`.
    AvgX,
    /// `regr_avgy`.
    AvgY,
    /// `regr_sxx`.
    Sxx,
    /// `regr_syy`.
    Syy,
    /// `regr_sxy`.
    Sxy,
}

/// The type of the aggregate's result.
///
/// # Errors
/// 42883 when the function does not exist for these types.
pub fn result_type(kind: Kind, name: &str, args: &[SqlType]) -> SqlResult<SqlType> {
    use SqlType as T;
    let first = args.first().cloned().unwrap_or(T::Unknown);
    let missing = || {
        let types: Vec<String> = args.iter().map(SqlType::base_name).collect();
        SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {name}({}) does not exist", types.join(", ")),
        )
        .with_hint(
            "No function matches the given name and argument types. You might need to add \
             explicit type casts.",
        )
    };
    Ok(match (kind, &first) {
        (Kind::Count, _) => T::Int8,
        (Kind::Sum, T::Int2 | T::Int4) => T::Int8,
        (Kind::Sum, T::Int8 | T::Numeric(_)) => T::Numeric(None),
        (Kind::Sum, T::Float4 | T::Float8 | T::Interval) => first,
        (Kind::Avg, T::Int2 | T::Int4 | T::Int8 | T::Numeric(_)) => T::Numeric(None),
        (Kind::Avg, T::Float4 | T::Float8) => T::Float8,
        (Kind::Avg, T::Interval) => first,
        (Kind::Min | Kind::Max, T::Bool | T::Uuid | T::Json | T::Jsonb | T::Bytea | T::Record) => {
            return Err(missing());
        }
        (Kind::Min | Kind::Max, T::Varchar(_) | T::Name | T::CharByte) => T::Text,
        (Kind::Min | Kind::Max | Kind::First, ty) => ty.base(),
        (Kind::And | Kind::Or, T::Bool) => T::Bool,
        (Kind::BitAnd | Kind::BitOr | Kind::BitXor, T::Int2 | T::Int4 | T::Int8) => first,
        (Kind::Pairs(PairKind::Count), _) => T::Int8,
        (Kind::Pairs(_), _) => T::Float8,
        (Kind::Array, ty) => ty.base().array_of()?,
        (Kind::String, T::Bytea) => T::Bytea,
        (Kind::String, ty) if ty.is_text_like() || *ty == T::Unknown => T::Text,
        (Kind::Json(true) | Kind::JsonObject(true), _) => T::Json,
        (Kind::Json(false) | Kind::JsonObject(false), _) => T::Jsonb,
        (Kind::Spread { .. }, T::Float4 | T::Float8) => T::Float8,
        (Kind::Spread { .. }, T::Int2 | T::Int4 | T::Int8 | T::Numeric(_)) => T::Numeric(None),
        (Kind::Percentile { continuous: true }, _) => match args.get(1) {
            Some(T::Interval) => T::Interval,
            _ => T::Float8,
        },
        (Kind::Percentile { .. }, _) => args.get(1).cloned().ok_or_else(missing)?,
        (Kind::Mode, ty) => ty.clone(),
        _ => return Err(missing()),
    })
}

/// The state of an aggregate.
#[derive(Clone, Debug)]
pub enum Running {
    /// Number of rows.
    Count(i64),
    /// Exact sum of integers.
    Ints(i128, i64),
    /// Exact sum, how many, and what is not finite among them.
    Exact(BigDecimal, i64, Special),
    /// Sum of doubles.
    Float(f64, i64),
    /// Sum of intervals.
    Span(Interval, i64),
    /// One value kept.
    One(Datum),
    /// All values kept.
    List(Vec<Datum>),
    /// n, sum, sum of squares, exact.
    Squares(i64, BigDecimal, BigDecimal),
    /// n, sum, sum of squared distances from the mean.
    Welford(i64, f64, f64),
    /// n, sums of x, of squared distances of x, the same of y, and of products.
    Pairs(Box<[f64; 6]>),
}

/// Which values that are not finite a sum has met.
#[derive(Clone, Copy, Debug, Default)]
pub struct Special {
    nan: bool,
    plus: bool,
    minus: bool,
}

impl Special {
    fn note(&mut self, value: &Datum) {
        match value {
            Datum::NumericInf(true) => self.minus = true,
            Datum::NumericInf(false) => self.plus = true,
            _ => self.nan = true,
        }
    }

    /// The sum, if it is not a number.
    fn sum(self) -> Option<Datum> {
        match (self.nan || (self.plus && self.minus), self.plus, self.minus) {
            (true, _, _) => Some(Datum::NumericNan),
            (_, true, _) => Some(Datum::NumericInf(false)),
            (_, _, true) => Some(Datum::NumericInf(true)),
            _ => None,
        }
    }
}

fn zero() -> BigDecimal {
    numeric::from_i128(0)
}

fn int(value: &Datum) -> i64 {
    match value {
        Datum::Int2(v) => i64::from(*v),
        Datum::Int4(v) => i64::from(*v),
        Datum::Int8(v) => *v,
        _ => 0,
    }
}

fn float(value: &Datum) -> f64 {
    match value {
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        Datum::Numeric(v) => numeric::to_f64(v),
        Datum::NumericNan => f64::NAN,
        Datum::NumericInf(negative) => numeric::infinity(*negative),
        other => int(other) as f64,
    }
}

fn exact(value: &Datum) -> Option<BigDecimal> {
    match value {
        Datum::Numeric(v) => Some((**v).clone()),
        Datum::NumericNan | Datum::NumericInf(_) => None,
        other => Some(numeric::from_i128(int(other).into())),
    }
}

impl Running {
    /// The empty state.
    pub fn new(kind: Kind, args: &[SqlType]) -> Running {
        use SqlType as T;
        let first = args.first().unwrap_or(&T::Unknown);
        match (kind, first) {
            (Kind::Count, _) => Running::Count(0),
            (Kind::Sum | Kind::Avg, T::Int2 | T::Int4 | T::Int8) => Running::Ints(0, 0),
            (Kind::Sum | Kind::Avg, T::Float4 | T::Float8) => Running::Float(0.0, 0),
            (Kind::Sum | Kind::Avg, T::Interval) => Running::Span(Interval::default(), 0),
            (Kind::Sum | Kind::Avg, _) => Running::Exact(zero(), 0, Special::default()),
            (Kind::Pairs(_), _) => Running::Pairs(Box::default()),
            (Kind::Spread { .. }, T::Float4 | T::Float8) => Running::Welford(0, 0.0, 0.0),
            (Kind::Spread { .. }, _) => Running::Squares(0, zero(), zero()),
            (
                Kind::Array
                | Kind::String
                | Kind::Json(_)
                | Kind::JsonObject(_)
                | Kind::Percentile { .. }
                | Kind::Mode,
                _,
            ) => Running::List(Vec::new()),
            _ => Running::One(Datum::Null),
        }
    }

    /// Takes one row of arguments.
    ///
    /// # Errors
    /// 22008 when a sum of intervals overflows.
    pub fn update(&mut self, kind: Kind, args: &[Datum]) -> SqlResult<()> {
        let first = args.first().unwrap_or(&Datum::Bool(true));
        let keeps_nulls =
            matches!(kind, Kind::Array | Kind::Json(_) | Kind::JsonObject(_) | Kind::First);
        let tested = if matches!(kind, Kind::Percentile { .. }) { &args[1] } else { first };
        if tested.is_null() && !keeps_nulls {
            return Ok(());
        }
        match self {
            Running::Count(n) => *n += 1,
            Running::Ints(sum, n) => {
                *sum += i128::from(int(first));
                *n += 1;
            }
            Running::Exact(sum, n, special) => {
                match exact(first) {
                    Some(v) => *sum = numeric::add(sum, &v),
                    None => special.note(first),
                }
                *n += 1;
            }
            Running::Float(sum, n) => {
                let (before, x) = (*sum, float(first));
                // A sum of `real` is one at each step.
                *sum = match first {
                    Datum::Float4(_) if kind == Kind::Sum => f64::from((before + x) as f32),
                    _ => before + x,
                };
                if sum.is_infinite() && before.is_finite() && x.is_finite() {
                    return Err(float_overflow());
                }
                *n += 1;
            }
            Running::Span(sum, n) => {
                if let Datum::Interval(i) = first {
                    *sum = sum.add(i)?;
                }
                *n += 1;
            }
            Running::Squares(n, sum, squares) => {
                if let Some(v) = exact(first) {
                    *sum = numeric::add(sum, &v);
                    *squares = numeric::add(squares, &numeric::mul(&v, &v));
                }
                *n += 1;
            }
            Running::Welford(n, sum, distance) => {
                let x = float(first);
                *n += 1;
                *sum += x;
                if *n > 1 {
                    let count = *n as f64;
                    let away = x * count - *sum;
                    let before = *distance;
                    *distance += away * away / (count * (count - 1.0));
                    let finite = before.is_finite() && x.is_finite();
                    if finite && (sum.is_infinite() || distance.is_infinite()) {
                        return Err(float_overflow());
                    }
                } else if !x.is_finite() {
                    *distance = f64::NAN;
                }
            }
            Running::Pairs(state) => {
                let [_, second, ..] = args else { return Ok(()) };
                if !second.is_null() {
                    let (y, x) = (float(first), float(second));
                    pairs::add(state, y, x)?;
                }
            }
            Running::List(list) => list.extend_from_slice(args),
            Running::One(best) => match kind {
                Kind::First if best.is_null() => *best = first.clone(),
                Kind::First => {}
                _ if best.is_null() => *best = first.clone(),
                Kind::Min if first.cmp_sql(best).is_lt() => *best = first.clone(),
                Kind::Max if first.cmp_sql(best).is_gt() => *best = first.clone(),
                Kind::And => *best = both(best, first, |a, b| a && b),
                Kind::Or => *best = both(best, first, |a, b| a || b),
                Kind::BitAnd => *best = bits(best, first, |a, b| a & b),
                Kind::BitOr => *best = bits(best, first, |a, b| a | b),
                Kind::BitXor => *best = bits(best, first, |a, b| a ^ b),
                _ => {}
            },
        }
        Ok(())
    }

    /// The aggregate of what was taken so far.
    ///
    /// # Errors
    /// 22003 when the result does not fit its type.
    pub fn finish(
        &self,
        kind: Kind,
        args: &[SqlType],
        ret: &SqlType,
        ctx: &EvalContext,
    ) -> SqlResult<Datum> {
        match self {
            Running::Count(n) => Ok(Datum::Int8(*n)),
            Running::Ints(_, 0)
            | Running::Exact(_, 0, _)
            | Running::Float(_, 0)
            | Running::Span(_, 0) => Ok(Datum::Null),
            Running::Ints(sum, n) if kind == Kind::Avg => numeric::datum(numeric::div(
                &numeric::from_i128(*sum),
                &numeric::from_i128((*n).into()),
            )?),
            Running::Ints(sum, _) if *ret == SqlType::Int8 => {
                i64::try_from(*sum).map(Datum::Int8).map_err(|_| {
                    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
                })
            }
            Running::Ints(sum, _) => numeric::datum(numeric::from_i128(*sum)),
            Running::Exact(_, _, special) if special.sum().is_some() => {
                Ok(special.sum().unwrap_or(Datum::NumericNan))
            }
            Running::Exact(sum, n, _) if kind == Kind::Avg => {
                numeric::datum(numeric::div(sum, &numeric::from_i128((*n).into()))?)
            }
            Running::Exact(sum, _, _) => numeric::datum(sum.clone()),
            Running::Float(sum, n) if kind == Kind::Avg => Ok(Datum::Float8(sum / *n as f64)),
            Running::Float(sum, _) if *ret == SqlType::Float4 => Ok(Datum::Float4(*sum as f32)),
            Running::Float(sum, _) => Ok(Datum::Float8(*sum)),
            Running::Span(sum, n) if kind == Kind::Avg => {
                Ok(Datum::Interval(sum.mul(1.0 / *n as f64)?))
            }
            Running::Span(sum, _) => Ok(Datum::Interval(*sum)),
            Running::One(best) => Ok(best.clone()),
            Running::Squares(n, sum, squares) => spread(kind, *n, sum, squares),
            Running::Welford(n, _, distance) => {
                let Kind::Spread { sample, root } = kind else { return Ok(Datum::Null) };
                let divisor = if sample { n - 1 } else { *n };
                if divisor <= 0 {
                    return Ok(Datum::Null);
                }
                let variance = distance / divisor as f64;
                Ok(Datum::Float8(if root { variance.sqrt() } else { variance }))
            }
            Running::Pairs(state) => Ok(match kind {
                Kind::Pairs(kind) => pairs::finish(kind, state),
                _ => Datum::Null,
            }),
            Running::List(list) => finish_list(kind, list, args, ret, ctx),
        }
    }

    /// The state as values.
    pub fn to_parts(&self) -> Vec<Datum> {
        let exact = |v: &BigDecimal| Datum::Numeric(Arc::new(v.clone()));
        match self {
            Running::Count(n) => vec![Datum::Int8(*n)],
            Running::Ints(sum, n) => vec![exact(&numeric::from_i128(*sum)), Datum::Int8(*n)],
            Running::Exact(sum, n, s) => {
                let flag = Datum::Bool;
                vec![exact(sum), Datum::Int8(*n), flag(s.nan), flag(s.plus), flag(s.minus)]
            }
            Running::Float(sum, n) => vec![Datum::Float8(*sum), Datum::Int8(*n)],
            Running::Span(sum, n) => vec![Datum::Interval(*sum), Datum::Int8(*n)],
            Running::One(value) => vec![value.clone()],
            Running::List(list) => list.clone(),
            Running::Squares(n, sum, squares) => {
                vec![Datum::Int8(*n), exact(sum), exact(squares)]
            }
            Running::Welford(n, sum, distance) => {
                vec![Datum::Int8(*n), Datum::Float8(*sum), Datum::Float8(*distance)]
            }
            Running::Pairs(state) => state.iter().map(|v| Datum::Float8(*v)).collect(),
        }
    }

    /// Adds a state taken apart by [`Running::to_parts`].
    ///
    /// # Errors
    /// As [`Running::update`].
    pub fn merge(&mut self, kind: Kind, parts: &[Datum]) -> SqlResult<()> {
        let number = |at: usize| parts.get(at).and_then(exact).unwrap_or_else(zero);
        let whole = |at: usize| parts.get(at).map_or(0, int);
        match self {
            Running::Count(n) => *n += whole(0),
            Running::Ints(sum, n) => {
                *sum += numeric::to_i128(&number(0)).unwrap_or(0);
                *n += whole(1);
            }
            Running::Exact(sum, n, special) => {
                let set = |at: usize| matches!(parts.get(at), Some(Datum::Bool(true)));
                *sum = numeric::add(sum, &number(0));
                *n += whole(1);
                special.nan |= set(2);
                special.plus |= set(3);
                special.minus |= set(4);
            }
            Running::Pairs(state) => {
                let other: Vec<f64> = parts.iter().map(float).collect();
                if let Ok(other) = <[f64; 6]>::try_from(other) {
                    pairs::merge(state, &other)?;
                }
            }
            Running::Float(sum, n) => {
                let (before, other) = (*sum, parts.first().map_or(0.0, float));
                *sum += other;
                if sum.is_infinite() && before.is_finite() && other.is_finite() {
                    return Err(float_overflow());
                }
                *n += whole(1);
            }
            Running::Span(sum, n) => {
                if let Some(Datum::Interval(i)) = parts.first() {
                    *sum = sum.add(i)?;
                }
                *n += whole(1);
            }
            Running::One(_) => {
                if let Some(value) = parts.first() {
                    self.update(kind, std::slice::from_ref(value))?;
                }
            }
            Running::List(list) => list.extend_from_slice(parts),
            Running::Squares(n, sum, squares) => {
                *n += whole(0);
                *sum = numeric::add(sum, &number(1));
                *squares = numeric::add(squares, &number(2));
            }
            Running::Welford(n, sum, distance) => {
                let (n2, sum2) = (whole(0), parts.get(1).map_or(0.0, float));
                let distance2 = parts.get(2).map_or(0.0, float);
                if *n == 0 {
                    (*n, *sum, *distance) = (n2, sum2, distance2);
                } else if n2 > 0 {
                    let (a, b) = (*n as f64, n2 as f64);
                    let away = *sum / a - sum2 / b;
                    *distance += distance2 + a * b * away * away / (a + b);
                    *sum += sum2;
                    *n += n2;
                }
            }
        }
        Ok(())
    }
}

fn float_overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

fn both(a: &Datum, b: &Datum, op: fn(bool, bool) -> bool) -> Datum {
    match (a, b) {
        (Datum::Bool(a), Datum::Bool(b)) => Datum::Bool(op(*a, *b)),
        _ => Datum::Null,
    }
}

fn bits(a: &Datum, b: &Datum, op: fn(i64, i64) -> i64) -> Datum {
    let result = op(int(a), int(b));
    match a {
        Datum::Int2(_) => Datum::Int2(result as i16),
        Datum::Int4(_) => Datum::Int4(result as i32),
        _ => Datum::Int8(result),
    }
}

fn spread(kind: Kind, n: i64, sum: &BigDecimal, squares: &BigDecimal) -> SqlResult<Datum> {
    let Kind::Spread { sample, root } = kind else { return Ok(Datum::Null) };
    let divisor = if sample { n - 1 } else { n };
    if divisor <= 0 {
        return Ok(Datum::Null);
    }
    let count = numeric::from_i128(n.into());
    let above = numeric::sub(&numeric::mul(&count, squares), &numeric::mul(sum, sum));
    if numeric::compare(&above, &numeric::from_i128(0)).is_le() {
        // No digits are shown of a zero, as PostgreSQL has it.
        return numeric::datum(numeric::from_i128(0));
    }
    let below = numeric::mul(&count, &numeric::from_i128(divisor.into()));
    let variance = numeric::div(&above, &below)?;
    let scale = numeric::parts(&variance).1;
    numeric::datum(if root { numeric::sqrt_to(&variance, scale)? } else { variance })
}

fn finish_list(
    kind: Kind,
    list: &[Datum],
    args: &[SqlType],
    ret: &SqlType,
    ctx: &EvalContext,
) -> SqlResult<Datum> {
    let width = args.len().max(1);
    if list.is_empty() {
        return Ok(Datum::Null);
    }
    match kind {
        Kind::Array => {
            let element = ret.element().cloned().unwrap_or(SqlType::Text);
            Ok(Datum::Array(Arc::new(ArrayValue { element, items: list.to_vec() })))
        }
        Kind::String if *ret == SqlType::Bytea => {
            let mut out = Vec::new();
            for (at, pair) in list.chunks(width).enumerate() {
                if let (true, Some(Datum::Bytea(d))) = (at > 0, pair.get(1)) {
                    out.extend_from_slice(d);
                }
                if let Datum::Bytea(b) = &pair[0] {
                    out.extend_from_slice(b);
                }
            }
            Ok(Datum::Bytea(out.into()))
        }
        Kind::String => {
            let mut out = String::new();
            for (at, pair) in list.chunks(width).enumerate() {
                if let (true, Some(Datum::Text(d))) = (at > 0, pair.get(1)) {
                    out.push_str(d);
                }
                if let Datum::Text(s) = &pair[0] {
                    out.push_str(s);
                }
            }
            Ok(Datum::text(out))
        }
        Kind::Json(true) => {
            let rows = matches!(list[0], Datum::Record(_) | Datum::Array(_));
            let items: Vec<String> = list.iter().map(|v| json_text(v, ctx, false)).collect();
            let text = items.join(if rows { ", \n " } else { ", " });
            Ok(Datum::Json(format!("[{text}]").into()))
        }
        Kind::Json(false) => {
            let items = list.iter().map(|v| to_json(v, ctx)).collect::<SqlResult<_>>()?;
            Ok(jsonb::datum(jsonb::normalize(Value::Array(items))?))
        }
        Kind::JsonObject(true) => {
            let mut fields = Vec::new();
            for pair in list.chunks(width) {
                let key = json_key(&pair[0], ctx)?;
                fields.push(format!("{} : {}", quoted(&key), json_text(&pair[1], ctx, false)));
            }
            Ok(Datum::Json(format!("{{ {} }}", fields.join(", ")).into()))
        }
        Kind::JsonObject(false) => {
            let mut map = Map::new();
            for pair in list.chunks(width) {
                map.insert(json_key(&pair[0], ctx)?, to_json(&pair[1], ctx)?);
            }
            Ok(jsonb::datum(jsonb::normalize(Value::Object(map))?))
        }
        Kind::Percentile { continuous } => percentile(list, continuous),
        Kind::Mode => {
            let mut sorted = list.to_vec();
            sorted.sort_by(Datum::cmp_sql);
            let mut best: (usize, &Datum) = (0, &sorted[0]);
            for run in sorted.chunk_by(|a, b| a.cmp_sql(b).is_eq()) {
                if run.len() > best.0 {
                    best = (run.len(), &run[0]);
                }
            }
            Ok(best.1.clone())
        }
        _ => Ok(Datum::Null),
    }
}

fn percentile(list: &[Datum], continuous: bool) -> SqlResult<Datum> {
    let fraction = float(&list[0]);
    if !(0.0..=1.0).contains(&fraction) {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("percentile value {fraction} is not between 0 and 1"),
        ));
    }
    let mut values: Vec<&Datum> = list.chunks(2).map(|pair| &pair[1]).collect();
    values.sort_by(|a, b| a.cmp_sql(b));
    if !continuous {
        let at = ((fraction * values.len() as f64).ceil() as usize).max(1) - 1;
        return Ok(values[at.min(values.len() - 1)].clone());
    }
    let position = fraction * (values.len() - 1) as f64;
    let (low, high) = (position.floor() as usize, position.ceil() as usize);
    let share = position - low as f64;
    if let (Datum::Interval(a), Datum::Interval(b)) = (values[low], values[high]) {
        return Ok(Datum::Interval(a.add(&b.add(&a.neg()?)?.mul(share)?)?));
    }
    let (a, b) = (float(values[low]), float(values[high]));
    Ok(Datum::Float8(a + (b - a) * share))
}
