//! Arithmetic of dates and timestamps, and their fields.

use std::sync::Arc;

use braid_scalar::{Bound, add_interval};
use braid_types::{
    Datum, Interval, MICROS_PER_DAY, SqlType, check_date, check_timestamp, civil_from_days,
    days_from_civil, push_numeric,
};
use datafusion::arrow::array::{ArrayRef, AsArray, BinaryBuilder};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type};

use super::compile::{Compiled, Compiler};
use super::value::{Fit, Unfit, Vector, try_each, try_zip};

/// The kernel of a function or operator of dates and timestamps.
pub(super) fn call(
    compiler: &Compiler<'_>,
    bound: &Bound,
    name: &str,
    args: &[Bound],
) -> Option<Compiled> {
    let [a, b] = args else { return None };
    let date = |e: &Bound| *e.ty() == SqlType::Date;
    match name {
        "extract" | "date_part" => {
            let Datum::Text(unit) = a.as_const()? else { return None };
            field(compiler, unit, b, name == "extract")
        }
        "date_trunc" if *b.ty() == SqlType::Timestamp => {
            let Datum::Text(unit) = a.as_const()? else { return None };
            truncated(compiler, unit, b)
        }
        "+" if date(a) && *b.ty() == SqlType::Int4 => moved(compiler, a, b, 1),
        "+" if date(b) && *a.ty() == SqlType::Int4 => moved(compiler, b, a, 1),
        "-" if date(a) && *b.ty() == SqlType::Int4 => moved(compiler, a, b, -1),
        "-" if date(a) && date(b) => between(compiler, a, b),
        "+" if *bound.ty() == SqlType::Timestamp => match (a.as_const(), b.as_const()) {
            (_, Some(Datum::Interval(i))) => shifted(compiler, a, *i),
            (Some(Datum::Interval(i)), _) => shifted(compiler, b, *i),
            _ => None,
        },
        "-" if *bound.ty() == SqlType::Timestamp => match b.as_const()? {
            Datum::Interval(i) => shifted(compiler, a, i.neg().ok()?),
            _ => None,
        },
        _ => None,
    }
}

fn infinite(days: i32) -> bool {
    days == i32::MAX || days == i32::MIN
}

/// A date so many days later.
fn moved(compiler: &Compiler<'_>, date: &Bound, days: &Bound, sign: i64) -> Option<Compiled> {
    let (date, days) = (compiler.compile(date)?, compiler.compile(days)?);
    let shell = Compiled::new(DataType::Int32, &[&date, &days], |_, _| Err(Unfit)).risky();
    Some(shell.code(move |frame, ctx| {
        type T = Int32Type;
        let (a, b) = (date.run(frame, ctx)?, days.run(frame, ctx)?);
        try_zip::<T, T, T>((&a, &b), frame.rows(), &DataType::Int32, |a, b| match infinite(a) {
            true => Some(a),
            false => check_date(i64::from(a) + sign * i64::from(b)).ok(),
        })
    }))
}

/// Days between two dates.
fn between(compiler: &Compiler<'_>, a: &Bound, b: &Bound) -> Option<Compiled> {
    let (a, b) = (compiler.compile(a)?, compiler.compile(b)?);
    let shell = Compiled::new(DataType::Int32, &[&a, &b], |_, _| Err(Unfit)).risky();
    Some(shell.code(move |frame, ctx| {
        type T = Int32Type;
        let (a, b) = (a.run(frame, ctx)?, b.run(frame, ctx)?);
        try_zip::<T, T, T>((&a, &b), frame.rows(), &DataType::Int32, |a, b| {
            match infinite(a) || infinite(b) {
                true => None,
                false => a.checked_sub(b),
            }
        })
    }))
}

/// A date or timestamp by a constant interval later.
fn shifted(compiler: &Compiler<'_>, when: &Bound, by: Interval) -> Option<Compiled> {
    let date = match when.ty() {
        SqlType::Date => true,
        SqlType::Timestamp => false,
        _ => return None,
    };
    let when = compiler.compile(when)?;
    let shell = Compiled::new(DataType::Int64, &[&when], |_, _| Err(Unfit)).risky();
    Some(shell.code(move |frame, ctx| {
        let value = when.run(frame, ctx)?;
        let out = &DataType::Int64;
        match date {
            false => try_each::<Int64Type, Int64Type>(&value, out, |t| add_interval(t, &by).ok()),
            true => try_each::<Int32Type, Int64Type>(&value, out, |days| match days {
                i32::MAX => Some(i64::MAX),
                i32::MIN => Some(i64::MIN),
                days => {
                    let micros = i128::from(days) * i128::from(MICROS_PER_DAY);
                    add_interval(check_timestamp(micros).ok()?, &by).ok()
                }
            }),
        }
    }))
}

/// Year, month or day of the day that a date or a timestamp is in. Those of an infinite one are no
/// such numbers.
fn field(compiler: &Compiler<'_>, unit: &str, when: &Bound, exact: bool) -> Option<Compiled> {
    let pick: fn((i64, i64, i64)) -> i64 = match unit {
        "year" => |(year, _, _)| if year > 0 { year } else { year - 1 },
        "month" => |(_, month, _)| month,
        "day" => |(_, _, day)| day,
        _ => return None,
    };
    let date = match when.ty() {
        SqlType::Date => true,
        SqlType::Timestamp => false,
        _ => return None,
    };
    let when = compiler.compile(when)?;
    let out = if exact { DataType::Binary } else { DataType::Float64 };
    let shell = Compiled::new(out, &[&when], |_, _| Err(Unfit)).risky();
    Some(shell.code(move |frame, ctx| {
        let value = when.run(frame, ctx)?;
        let numbers = match date {
            true => try_each::<Int32Type, Int64Type>(&value, &DataType::Int64, |days| {
                // A double is made of a timestamp, which dates reach beyond.
                let reached = check_timestamp(i128::from(days) * i128::from(MICROS_PER_DAY));
                (!infinite(days) && (exact || reached.is_ok()))
                    .then(|| pick(civil_from_days(i64::from(days))))
            })?,
            false => try_each::<Int64Type, Int64Type>(&value, &DataType::Int64, |micros| {
                (micros != i64::MAX && micros != i64::MIN)
                    .then(|| pick(civil_from_days(micros.div_euclid(MICROS_PER_DAY))))
            })?,
        };
        match exact {
            true => Ok(numbers.with(packed(&numbers)?)),
            false => {
                super::value::each::<Int64Type, Float64Type>(&numbers, &DataType::Float64, |v| {
                    v as f64
                })
            }
        }
    }))
}

/// A timestamp cut off to a unit.
fn truncated(compiler: &Compiler<'_>, unit: &str, when: &Bound) -> Option<Compiled> {
    /// The day on which the unit begins that a day is in.
    type Start = fn(i64) -> i64;
    let (step, start): (i64, Option<Start>) = match unit {
        "second" => (MICROS_PER_DAY / 86_400, None),
        "minute" => (MICROS_PER_DAY / 1_440, None),
        "hour" => (MICROS_PER_DAY / 24, None),
        "day" => (MICROS_PER_DAY, None),
        "month" => (
            MICROS_PER_DAY,
            Some(|day| {
                let (year, month, _) = civil_from_days(day);
                days_from_civil(year, month, 1)
            }),
        ),
        "quarter" => (
            MICROS_PER_DAY,
            Some(|day| {
                let (year, month, _) = civil_from_days(day);
                days_from_civil(year, (month - 1) / 3 * 3 + 1, 1)
            }),
        ),
        "year" => (MICROS_PER_DAY, Some(|day| days_from_civil(civil_from_days(day).0, 1, 1))),
        _ => return None,
    };
    let when = compiler.compile(when)?;
    let shell = Compiled::new(DataType::Int64, &[&when], |_, _| Err(Unfit)).risky();
    Some(shell.code(move |frame, ctx| {
        let value = when.run(frame, ctx)?;
        try_each::<Int64Type, Int64Type>(&value, &DataType::Int64, |micros| {
            if micros == i64::MAX || micros == i64::MIN {
                return Some(micros);
            }
            let cut = match start {
                None => i128::from(micros.div_euclid(step)) * i128::from(step),
                Some(start) => {
                    i128::from(start(micros.div_euclid(step))) * i128::from(MICROS_PER_DAY)
                }
            };
            check_timestamp(cut).ok()
        })
    }))
}

/// Whole numbers as numerics of any kind.
fn packed(numbers: &Vector) -> Fit<ArrayRef> {
    let numbers = numbers.inner().as_primitive_opt::<Int64Type>().ok_or(Unfit)?;
    let mut builder = BinaryBuilder::with_capacity(numbers.len(), numbers.len() * 10);
    let mut bytes = Vec::new();
    for number in numbers.iter() {
        match number {
            None => builder.append_null(),
            Some(number) => {
                bytes.clear();
                if !push_numeric(i128::from(number), 0, &mut bytes) {
                    return Err(Unfit);
                }
                builder.append_value(&bytes);
            }
        }
    }
    Ok(Arc::new(builder.finish()))
}
