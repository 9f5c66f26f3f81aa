//! Functions and operators over `time with time zone`.

use braid_types::ordered::timetz::{at, moved, of, parts};
use braid_types::{Datum, MICROS_PER_DAY, MICROS_PER_SECOND, SqlError, SqlResult, check_timestamp};

use super::datetime::{unit_name, unknown_unit, zone_by_interval, zone_of};
use super::{interval_of, text_of};
use crate::EvalContext;
use crate::refinement::round_seconds;
use crate::registry::{Eval, Table};

fn parts_of(value: &Datum) -> (i64, i32) {
    match value {
        Datum::Ordered(value) => parts(value),
        _ => (0, 0),
    }
}

fn made(micros: i64, east: i32) -> SqlResult<Datum> {
    Ok(Datum::Ordered(of(micros, east)))
}

/// A field in millionths, and how many digits behind the point EXTRACT shows.
pub(super) fn field(unit: &str, value: &Datum) -> SqlResult<(i128, i64)> {
    let (micros, east) = parts_of(value);
    let whole = |v: i64| Ok((i128::from(v) * 1_000_000, 0));
    let seconds = micros % (60 * MICROS_PER_SECOND);
    match unit_name(unit) {
        "hour" => whole(micros / (3600 * MICROS_PER_SECOND)),
        "minute" => whole(micros / (60 * MICROS_PER_SECOND) % 60),
        "second" => Ok((seconds.into(), 6)),
        "milliseconds" => Ok((i128::from(seconds) * 1_000, 3)),
        "microseconds" => whole(seconds),
        "epoch" => Ok((i128::from(micros - i64::from(east) * MICROS_PER_SECOND), 6)),
        "timezone" => whole(east.into()),
        "timezone_hour" => whole((east / 3600).into()),
        "timezone_minute" => whole((east / 60 % 60).into()),
        _ => Err(unknown_unit(unit, "time with time zone")),
    }
}

/// A time so much later, within its day.
pub(super) fn later(value: &Datum, by: i64) -> SqlResult<Datum> {
    shifted(value, by)
}

fn shifted(value: &Datum, by: i64) -> SqlResult<Datum> {
    let (micros, east) = parts_of(value);
    made(micros.wrapping_add(by).rem_euclid(MICROS_PER_DAY), east)
}

/// The moment of a time on a day.
fn on_day(day: &Datum, time: &Datum) -> SqlResult<Datum> {
    let Datum::Date(day) = day else { return Ok(Datum::Null) };
    match *day {
        i32::MAX => return Ok(Datum::TimestampTz(i64::MAX)),
        i32::MIN => return Ok(Datum::TimestampTz(i64::MIN)),
        _ => {}
    }
    let (micros, east) = parts_of(time);
    let local = i128::from(*day) * i128::from(MICROS_PER_DAY) + i128::from(micros);
    let utc = local - i128::from(east) * i128::from(MICROS_PER_SECOND);
    let range = |_: SqlError| {
        SqlError::new(braid_types::SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
    };
    Ok(Datum::TimestampTz(check_timestamp(utc).map_err(range)?))
}

fn current(c: &EvalContext) -> Datum {
    Datum::Ordered(at(c.transaction_micros, &c.style.zone))
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add("+(timetz, interval) timetz", |a, _| shifted(&a[0], interval_of(&a[1]).micros));
    t.add("+(interval, timetz) timetz", |a, _| shifted(&a[1], interval_of(&a[0]).micros));
    t.add("-(timetz, interval) timetz", |a, _| {
        shifted(&a[0], interval_of(&a[1]).micros.wrapping_neg())
    });
    t.add("+(date, timetz) timestamptz", |a, _| on_day(&a[0], &a[1]));
    t.add("+(timetz, date) timestamptz", |a, _| on_day(&a[1], &a[0]));
    t.add("timezone(text, timetz) timetz", |a, c| {
        let zone = zone_of(text_of(&a[0]))?;
        match &a[1] {
            Datum::Ordered(time) => {
                Ok(Datum::Ordered(moved(time, zone.offset_at_utc(c.transaction_micros))))
            }
            _ => Ok(Datum::Null),
        }
    })
    .stable();
    t.add("timezone(interval, timetz) timetz", |a, c| {
        let zone = zone_by_interval(&a[0])?;
        match &a[1] {
            Datum::Ordered(time) => {
                Ok(Datum::Ordered(moved(time, zone.offset_at_utc(c.transaction_micros))))
            }
            _ => Ok(Datum::Null),
        }
    })
    .stable();
    let time: Eval = |_, c| Ok(current(c));
    t.add("current_time() timetz -- the time of day at which the transaction began", time).stable();
    t.add("current_time(int4) timetz", |a, c| {
        Ok(round_seconds(current(c), super::i64_of(&a[0]).clamp(0, 6) as u8))
    })
    .stable();
}
