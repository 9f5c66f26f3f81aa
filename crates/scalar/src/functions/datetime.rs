//! Functions over dates, times, timestamps and intervals.

use braid_types::{
    CastContext, Datum, Interval, MICROS_PER_DAY, MICROS_PER_SECOND, OrderedKind, SqlError,
    SqlResult, SqlState, SqlType, Style, TimeZone, UNIX_EPOCH_MICROS, cast, check_date,
    check_timestamp, civil_from_days, days_from_civil, numeric,
};

use braid_types::ordered::timetz;

use super::calendar::{iso_week, weekday_monday};
use super::number_format::{self, Value};
use super::{date_format, date_parse, f64_of, i64_of, interval_of, text_of, zoned_time};
use crate::EvalContext;
use crate::refinement::round_seconds;
use crate::registry::{Eval, Table};

pub(super) fn unknown_unit(unit: &str, ty: &str) -> SqlError {
    const KNOWN: &[&str] = &[
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
        "milliseconds",
        "microseconds",
        "quarter",
        "week",
        "isoyear",
        "dow",
        "isodow",
        "doy",
        "decade",
        "century",
        "millennium",
        "julian",
        "epoch",
        "timezone",
        "timezone_hour",
        "timezone_minute",
    ];
    // Words that mean a time, but no unit.
    const TIMES: &[&str] = &[
        "infinity",
        "+infinity",
        "-infinity",
        "now",
        "today",
        "tomorrow",
        "yesterday",
        "allballs",
    ];
    if KNOWN.contains(&unit_name(unit)) || TIMES.contains(&unit) {
        return SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("unit \"{unit}\" not supported for type {ty}"),
        );
    }
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("unit \"{unit}\" not recognized for type {ty}"),
    )
}

/// A unit's name without plural and short forms.
pub(super) fn unit_name(text: &str) -> &str {
    match text {
        "years" | "y" | "yr" | "yrs" => "year",
        "months" | "mon" | "mons" => "month",
        "days" | "d" => "day",
        "hours" | "h" | "hr" | "hrs" => "hour",
        "minutes" | "m" | "min" | "mins" => "minute",
        "seconds" | "s" | "sec" | "secs" => "second",
        "millisecond" | "ms" | "msec" | "msecs" | "mseconds" | "msecond" => "milliseconds",
        "microsecond" | "us" | "usec" | "usecs" | "useconds" | "usecond" | "microsecon" => {
            "microseconds"
        }
        "weeks" | "w" => "week",
        "qtr" => "quarter",
        "decades" | "dec" | "decs" => "decade",
        "centuries" | "c" | "cent" => "century",
        "millenium" | "millennia" | "mil" | "mils" => "millennium",
        "j" | "jd" => "julian",
        "timezone_h" => "timezone_hour",
        "timezone_m" => "timezone_minute",
        other => other,
    }
}

/// A field's value as micro-units and the number of fraction digits EXTRACT shows.
fn field(
    unit: &str,
    local: i128,
    utc: i128,
    zone_seconds: Option<i32>,
    ty: &str,
) -> SqlResult<(i128, i64)> {
    // Days of `date` reach further than microseconds in 64 bits.
    let days = local.div_euclid(i128::from(MICROS_PER_DAY)) as i64;
    let time = local.rem_euclid(i128::from(MICROS_PER_DAY)) as i64;
    let (year, month, day) = civil_from_days(days);
    let shown_year = if year > 0 { year } else { year - 1 };
    let whole = |v: i64| Ok((i128::from(v) * 1_000_000, 0));
    match unit_name(unit) {
        "year" => whole(shown_year),
        "month" => whole(month),
        "day" => whole(day),
        "hour" => whole(time / (3600 * MICROS_PER_SECOND)),
        "minute" => whole(time / (60 * MICROS_PER_SECOND) % 60),
        "second" => Ok((i128::from(time % (60 * MICROS_PER_SECOND)), 6)),
        "milliseconds" => Ok((i128::from(time % (60 * MICROS_PER_SECOND)) * 1_000, 3)),
        "microseconds" => whole(time % (60 * MICROS_PER_SECOND)),
        "quarter" => whole((month - 1) / 3 + 1),
        "week" => whole(iso_week(days).1),
        "isoyear" => {
            let year = iso_week(days).0;
            whole(if year > 0 { year } else { year - 1 })
        }
        "dow" => whole((weekday_monday(days) + 1) % 7),
        // GoogleSQL's, which has no other names for these.
        "dayofweek" => whole((weekday_monday(days) + 1) % 7 + 1),
        "dayofyear" => whole(days - days_from_civil(year, 1, 1) + 1),
        "isoweek" => whole(iso_week(days).1),
        "isodow" => whole(weekday_monday(days) + 1),
        "doy" => whole(days - days_from_civil(year, 1, 1) + 1),
        "decade" => whole(year.div_euclid(10)),
        "century" => whole(if year > 0 { (year + 99) / 100 } else { -((99 - (year - 1)) / 100) }),
        "millennium" => {
            whole(if year > 0 { (year + 999) / 1000 } else { -((999 - (year - 1)) / 1000) })
        }
        "julian" => {
            let micros = i128::from(days + 2_451_545) * 1_000_000
                + i128::from(time) * 1_000_000 / i128::from(MICROS_PER_DAY);
            Ok((micros, if time == 0 { 0 } else { 6 }))
        }
        "epoch" => Ok((utc + i128::from(UNIX_EPOCH_MICROS), 6)),
        "timezone" | "timezone_hour" | "timezone_minute" => {
            let seconds = i64::from(zone_seconds.ok_or_else(|| unknown_unit(unit, ty))?);
            whole(match unit_name(unit) {
                "timezone" => seconds,
                "timezone_hour" => seconds / 3600,
                _ => seconds / 60 % 60,
            })
        }
        _ => Err(unknown_unit(unit, ty)),
    }
}

fn interval_field(unit: &str, i: &Interval) -> SqlResult<(i128, i64)> {
    let whole = |v: i64| Ok((i128::from(v) * 1_000_000, 0));
    let seconds = i.micros % (60 * MICROS_PER_SECOND);
    match unit_name(unit) {
        "year" => whole(i64::from(i.months / 12)),
        "month" => whole(i64::from(i.months % 12)),
        "quarter" => whole(i64::from(i.months % 12 / 3 + 1)),
        "decade" => whole(i64::from(i.months / 120)),
        "century" => whole(i64::from(i.months / 1200)),
        "millennium" => whole(i64::from(i.months / 12_000)),
        "day" => whole(i64::from(i.days)),
        "hour" => whole(i.micros / (3600 * MICROS_PER_SECOND)),
        "minute" => whole(i.micros / (60 * MICROS_PER_SECOND) % 60),
        "second" => Ok((i128::from(seconds), 6)),
        "milliseconds" => Ok((i128::from(seconds) * 1_000, 3)),
        "microseconds" => whole(seconds),
        "epoch" => {
            // A year counts 365.25 days here, a month 30 days.
            let years = i128::from(i.months / 12) * 31_557_600;
            let months = i128::from(i.months % 12) * 30 * 86_400;
            let days = i128::from(i.days) * 86_400;
            Ok(((years + months + days) * 1_000_000 + i128::from(i.micros), 6))
        }
        _ => Err(unknown_unit(unit, "interval")),
    }
}

/// The length of an interval as a double, added up in PostgreSQL's order: each step rounds.
fn interval_seconds(i: &Interval) -> f64 {
    const DAY: f64 = 86_400.0;
    let mut seconds = i.micros as f64 / 1e6;
    seconds += 365.25 * DAY * f64::from(i.months / 12);
    seconds += 30.0 * DAY * f64::from(i.months % 12);
    seconds + DAY * f64::from(i.days)
}

/// The field of any date/time value, `None` for infinities.
fn any_field(unit: &str, value: &Datum, ctx: &EvalContext) -> SqlResult<Option<(i128, i64)>> {
    Ok(Some(match value {
        Datum::Timestamp(t) | Datum::TimestampTz(t) if *t == i64::MAX || *t == i64::MIN => {
            return Ok(None);
        }
        Datum::Date(d) if *d == i32::MAX || *d == i32::MIN => return Ok(None),
        Datum::Timestamp(t) => {
            let t = i128::from(*t);
            field(unit, t, t, None, "timestamp without time zone")?
        }
        Datum::Date(d) => {
            let (value, digits) = {
                let t = i128::from(*d) * i128::from(MICROS_PER_DAY);
                field(unit, t, t, None, "date")?
            };
            if matches!(
                unit_name(unit),
                "hour" | "minute" | "second" | "milliseconds" | "microseconds"
            ) {
                return Err(unknown_unit(unit, "date"));
            }
            (value, if unit == "epoch" { 0 } else { digits })
        }
        Datum::TimestampTz(t) => field(
            unit,
            i128::from(ctx.style.zone.to_local(*t)),
            i128::from(*t),
            Some(ctx.style.zone.offset_at_utc(*t)),
            "timestamp with time zone",
        )?,
        Datum::Time(t) => match unit_name(unit) {
            "hour" if *t == MICROS_PER_DAY => (24_000_000, 0),
            "hour" | "minute" | "second" | "milliseconds" | "microseconds" => {
                field(unit, i128::from(*t), i128::from(*t), None, "time")?
            }
            "epoch" => (i128::from(*t), 6),
            _ => return Err(unknown_unit(unit, "time without time zone")),
        },
        Datum::Interval(i) => interval_field(unit, i)?,
        Datum::Ordered(_) => zoned_time::field(unit, value)?,
        _ => return Ok(None),
    }))
}

/// What a field of an infinite value is: infinite if it grows with time, else NULL.
fn infinite_field(unit: &str, value: &Datum) -> SqlResult<Option<f64>> {
    let negative = matches!(
        value,
        Datum::Timestamp(i64::MIN) | Datum::TimestampTz(i64::MIN) | Datum::Date(i32::MIN)
    );
    let ty = match value {
        Datum::Date(_) => "date",
        Datum::Timestamp(_) => "timestamp without time zone",
        _ => "timestamp with time zone",
    };
    match unit_name(unit) {
        "year" | "decade" | "century" | "millennium" | "julian" | "isoyear" | "epoch" => {
            Ok(Some(if negative { f64::NEG_INFINITY } else { f64::INFINITY }))
        }
        "hour" | "minute" | "second" | "milliseconds" | "microseconds" if ty == "date" => {
            Err(unknown_unit(unit, ty))
        }
        "timezone" | "timezone_hour" | "timezone_minute" if ty == "date" => {
            Err(unknown_unit(unit, ty))
        }
        "month" | "day" | "hour" | "minute" | "second" | "milliseconds" | "microseconds"
        | "quarter" | "week" | "dow" | "isodow" | "doy" | "timezone" | "timezone_hour"
        | "timezone_minute" => Ok(None),
        _ => Err(unknown_unit(unit, ty)),
    }
}

/// The Julian day with the fraction of the day.
fn julian(value: &Datum, ctx: &EvalContext) -> SqlResult<Option<numeric::BigDecimal>> {
    let local = match value {
        Datum::Timestamp(t) => *t,
        Datum::TimestampTz(t) => ctx.style.zone.to_local(*t),
        _ => return Ok(None),
    };
    let day = local.div_euclid(MICROS_PER_DAY) + 2_451_545;
    let share = numeric::div(
        &numeric::from_i128(local.rem_euclid(MICROS_PER_DAY).into()),
        &numeric::from_i128(MICROS_PER_DAY.into()),
    )?;
    Ok(Some(numeric::add(&numeric::from_i128(day.into()), &share)))
}

fn is_infinite_value(value: &Datum) -> bool {
    match value {
        Datum::Timestamp(t) | Datum::TimestampTz(t) => infinite(*t),
        Datum::Date(d) => *d == i32::MAX || *d == i32::MIN,
        _ => false,
    }
}

fn extract(a: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
    let unit = text_of(&a[0]).to_lowercase();
    if is_infinite_value(&a[1]) {
        let found = infinite_field(&unit, &a[1])?;
        return Ok(found.map_or(Datum::Null, |v| Datum::NumericInf(v < 0.0)));
    }
    if unit == "julian"
        && let Some(value) = julian(&a[1], ctx)?
    {
        return numeric::datum(value);
    }
    match any_field(&unit, &a[1], ctx)? {
        None => Ok(Datum::Null),
        Some((value, digits)) => {
            let exact = numeric::BigDecimal::new(value.into(), 6);
            numeric::datum(numeric::round(&exact, digits))
        }
    }
}

fn date_part(a: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
    let unit = text_of(&a[0]).to_lowercase();
    // A date counts as a timestamp here, with the range of timestamps.
    let value = match &a[1] {
        Datum::Date(_) => {
            cast(&a[1], &SqlType::Date, &SqlType::Timestamp, CastContext::Implicit, ctx.style)?
        }
        other => other.clone(),
    };
    if is_infinite_value(&value) {
        return Ok(infinite_field(&unit, &value)?.map_or(Datum::Null, Datum::Float8));
    }
    if unit == "julian"
        && let Some(value) = julian(&value, ctx)?
    {
        return Ok(Datum::Float8(numeric::to_f64(&value)));
    }
    if let ("epoch", Datum::Interval(i)) = (unit.as_str(), &value) {
        return Ok(Datum::Float8(interval_seconds(i)));
    }
    if let ("epoch", Datum::Ordered(time)) = (unit.as_str(), &value)
        && time.kind() == OrderedKind::TimeTz
    {
        // The zone comes behind the division, as in PostgreSQL: digits differ otherwise.
        let (micros, east) = timetz::parts(time);
        return Ok(Datum::Float8(micros as f64 / 1e6 - f64::from(east)));
    }
    Ok(match any_field(&unit, &value, ctx)? {
        None => Datum::Null,
        Some((value, _)) => Datum::Float8(value as f64 / 1e6),
    })
}

/// Cuts a local timestamp to a unit.
fn truncate(unit: &str, local: i64) -> SqlResult<i64> {
    check_timestamp(i128::from(truncated(unit, local)?))
}

fn truncated(unit: &str, local: i64) -> SqlResult<i64> {
    let days = local.div_euclid(MICROS_PER_DAY);
    let time = local.rem_euclid(MICROS_PER_DAY);
    let (year, month, _) = civil_from_days(days);
    let at_day = |d: i64| d * MICROS_PER_DAY;
    let within = |step: i64| at_day(days) + time / step * step;
    Ok(match unit_name(unit) {
        "microseconds" => local,
        "milliseconds" => within(1_000),
        "second" => within(MICROS_PER_SECOND),
        "minute" => within(60 * MICROS_PER_SECOND),
        "hour" => within(3600 * MICROS_PER_SECOND),
        "day" => at_day(days),
        "week" => at_day(days - weekday_monday(days)),
        "month" => at_day(days_from_civil(year, month, 1)),
        "quarter" => at_day(days_from_civil(year, (month - 1) / 3 * 3 + 1, 1)),
        "year" => at_day(days_from_civil(year, 1, 1)),
        "decade" => at_day(days_from_civil(year.div_euclid(10) * 10, 1, 1)),
        "century" => at_day(days_from_civil((year - 1).div_euclid(100) * 100 + 1, 1, 1)),
        "millennium" => at_day(days_from_civil((year - 1).div_euclid(1000) * 1000 + 1, 1, 1)),
        _ => return Err(not_truncated(unit, "timestamp without time zone")),
    })
}

/// The error for a unit that nothing is cut off to.
fn not_truncated(unit: &str, ty: &str) -> SqlError {
    match unit_name(unit) {
        "timezone" | "timezone_hour" | "timezone_minute" | "week" => unknown_unit(unit, ty),
        _ => SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("unit \"{unit}\" not recognized for type {ty}"),
        ),
    }
}

fn infinite(micros: i64) -> bool {
    micros == i64::MAX || micros == i64::MIN
}

fn truncate_interval(unit: &str, i: &Interval) -> SqlResult<Interval> {
    let months = |n: i32| Interval { months: i.months / n * n, ..Interval::default() };
    let micros = |n: i64| Interval { micros: i.micros / n * n, ..*i };
    Ok(match unit_name(unit) {
        "microseconds" => *i,
        "milliseconds" => micros(1_000),
        "second" => micros(MICROS_PER_SECOND),
        "minute" => micros(60 * MICROS_PER_SECOND),
        "hour" => micros(3600 * MICROS_PER_SECOND),
        "day" => Interval { micros: 0, ..*i },
        "month" => months(1),
        "quarter" => months(3),
        "year" => months(12),
        "decade" => months(120),
        "century" => months(1200),
        "millennium" => months(12_000),
        _ => return Err(not_truncated(unit, "interval")),
    })
}

fn truncating(t: &mut Table) {
    t.add("date_trunc(text, timestamp) timestamp -- cut off to a unit", |a, _| match &a[1] {
        Datum::Timestamp(t) if infinite(*t) => Ok(a[1].clone()),
        Datum::Timestamp(t) => Ok(Datum::Timestamp(truncate(&text_of(&a[0]).to_lowercase(), *t)?)),
        _ => Ok(Datum::Null),
    });
    fn cut(unit: &Datum, value: &Datum, zone: &TimeZone) -> SqlResult<Datum> {
        match value {
            Datum::TimestampTz(t) if infinite(*t) => Ok(value.clone()),
            Datum::TimestampTz(t) => {
                let local = truncated(&text_of(unit).to_lowercase(), zone.to_local(*t))?;
                Ok(Datum::TimestampTz(check_timestamp(i128::from(zone.to_utc(local)))?))
            }
            _ => Ok(Datum::Null),
        }
    }
    t.add("date_trunc(text, timestamptz) timestamptz", |a, c| cut(&a[0], &a[1], &c.style.zone))
        .stable();
    t.add("date_trunc(text, timestamptz, text) timestamptz", |a, _| match &a[1] {
        Datum::TimestampTz(t) if infinite(*t) => Ok(a[1].clone()),
        value => cut(&a[0], value, &zone_of(text_of(&a[2]))?),
    });
    t.add("date_trunc(text, interval) interval", |a, _| {
        let unit = text_of(&a[0]).to_lowercase();
        Ok(Datum::Interval(truncate_interval(&unit, &interval_of(&a[1]))?))
    });
    t.add(
        "date_bin(interval, timestamp, timestamp) timestamp \
         -- the start of the bin that the time is in",
        |a, _| Ok(Datum::Timestamp(bin_of(a)?)),
    );
    t.add("date_bin(interval, timestamptz, timestamptz) timestamptz", |a, _| {
        Ok(Datum::TimestampTz(bin_of(a)?))
    });
}

fn bin_of(a: &[Datum]) -> SqlResult<i64> {
    let (value, origin) = match (&a[1], &a[2]) {
        (
            Datum::Timestamp(v) | Datum::TimestampTz(v),
            Datum::Timestamp(o) | Datum::TimestampTz(o),
        ) => (*v, *o),
        _ => (0, 0),
    };
    if infinite(value) {
        return Ok(value);
    }
    if infinite(origin) {
        return Err(overflow("origin out of range".to_string()));
    }
    let stride = interval_of(&a[0]);
    if stride.months != 0 {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let too_far = || overflow("interval out of range".to_string());
    let width = i64::try_from(stride.length()).map_err(|_| too_far())?;
    if width <= 0 {
        return Err(SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "stride must be greater than zero",
        ));
    }
    let distance = value.checked_sub(origin).ok_or_else(too_far)?;
    let steps = i128::from(distance.div_euclid(width));
    check_timestamp(i128::from(origin) + steps * i128::from(width))
}

/// The zone that lies so far east of UTC.
pub(super) fn zone_by_interval(value: &Datum) -> SqlResult<TimeZone> {
    let interval = interval_of(value);
    if interval.months != 0 || interval.days != 0 {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("interval time zone \"{interval}\" must not include months or days"),
        ));
    }
    Ok(TimeZone::Fixed((interval.micros / MICROS_PER_SECOND) as i32))
}

/// The zone of a name.
pub(super) fn zone_of(name: &str) -> SqlResult<TimeZone> {
    TimeZone::parse(name).ok_or_else(|| unknown_zone(name))
}

/// The moment of a local time in a zone that is named. A number is how far east, as in literals,
/// and not how far west.
fn in_zone(local: i64, name: &str) -> SqlResult<i64> {
    if !name.starts_with(['+', '-']) {
        return Ok(zone_of(name)?.to_utc(local));
    }
    let text = format!("2000-01-01 00:00:00{name}");
    match Datum::parse(&text, &SqlType::TimestampTz, Style::utc()) {
        Ok(Datum::TimestampTz(west)) => Ok(local + west),
        _ => Err(unknown_zone(name)),
    }
}

fn unknown_zone(name: &str) -> SqlError {
    let text = format!("time zone \"{name}\" not recognized");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
}

fn zones(t: &mut Table) {
    fn to_utc(zone: &TimeZone, value: &Datum) -> SqlResult<Datum> {
        Ok(match value {
            Datum::Timestamp(t) if infinite(*t) => Datum::TimestampTz(*t),
            Datum::Timestamp(t) => {
                Datum::TimestampTz(check_timestamp(i128::from(zone.to_utc(*t)))?)
            }
            _ => Datum::Null,
        })
    }
    fn to_local(zone: &TimeZone, value: &Datum) -> SqlResult<Datum> {
        Ok(match value {
            Datum::TimestampTz(t) if infinite(*t) => Datum::Timestamp(*t),
            Datum::TimestampTz(t) => {
                Datum::Timestamp(check_timestamp(i128::from(zone.to_local(*t)))?)
            }
            _ => Datum::Null,
        })
    }
    t.add(
        "timezone(text, timestamp) timestamptz \
         -- AT TIME ZONE: local time of a zone, or the instant of it",
        |a, _| match &a[1] {
            Datum::Timestamp(t) if infinite(*t) => Ok(Datum::TimestampTz(*t)),
            local => to_utc(&zone_of(text_of(&a[0]))?, local),
        },
    );
    t.add("timezone(text, timestamptz) timestamp", |a, _| match &a[1] {
        Datum::TimestampTz(t) if infinite(*t) => Ok(Datum::Timestamp(*t)),
        utc => to_local(&zone_of(text_of(&a[0]))?, utc),
    });
    t.add("timezone(interval, timestamp) timestamptz", |a, _| {
        if let Datum::Timestamp(t) = a[1]
            && infinite(t)
        {
            return Ok(Datum::TimestampTz(t));
        }
        to_utc(&zone_by_interval(&a[0])?, &a[1])
    });
    t.add("timezone(interval, timestamptz) timestamp", |a, _| {
        if let Datum::TimestampTz(t) = a[1]
            && infinite(t)
        {
            return Ok(Datum::Timestamp(t));
        }
        to_local(&zone_by_interval(&a[0])?, &a[1])
    });
}

/// Leaseholders close a time once a second; a message may be lost, and clocks differ.
const FOLLOWERS_BEHIND_MICROS: i64 = 3_000_000;

fn clocks(t: &mut Table) {
    let transaction: Eval = |_, c| Ok(Datum::TimestampTz(c.transaction_micros));
    t.add("now() timestamptz -- when the transaction began", transaction).stable();
    t.add("current_timestamp() timestamptz -- when the transaction began", transaction).stable();
    t.add("transaction_timestamp() timestamptz -- when the transaction began", transaction)
        .stable();
    t.add("statement_timestamp() timestamptz -- when the statement began", |_, c| {
        Ok(Datum::TimestampTz(c.statement_micros))
    })
    .stable();
    t.add("clock_timestamp() timestamptz -- the time now, changing within a statement", |_, c| {
        Ok(Datum::TimestampTz(c.session.clock_micros()))
    })
    .volatile();
    t.add(
        "follower_read_timestamp() timestamptz -- a moment before the statement began at which \
         every replica of a cluster can be read: for AS OF SYSTEM TIME",
        |_, c| Ok(Datum::TimestampTz(c.statement_micros - FOLLOWERS_BEHIND_MICROS)),
    )
    .stable();
    t.add(
        "pending_commit_timestamp() timestamptz -- when the row is committed: only as a value of \
         INSERT and UPDATE",
        |_, _| {
            Err(SqlError::unsupported(
                "PENDING_COMMIT_TIMESTAMP() in an expression, a query or a DEFAULT",
            )
            .with_hint("It can be a value of INSERT .. VALUES and of UPDATE .. SET."))
        },
    )
    .volatile();
    t.add("timeofday() text -- the time now, as text", |_, c| {
        Ok(Datum::text(
            Datum::TimestampTz(c.session.clock_micros()).to_text(c.style).unwrap_or_default(),
        ))
    })
    .volatile();
    let local: Eval = |_, c| Ok(Datum::Timestamp(c.style.zone.to_local(c.transaction_micros)));
    t.add("localtimestamp() timestamp -- as `current_timestamp`, without time zone", local)
        .stable();
    t.add("current_date() date -- the day on which the transaction began", |_, c| {
        let local = c.style.zone.to_local(c.transaction_micros);
        Ok(Datum::Date(check_date(local.div_euclid(MICROS_PER_DAY))?))
    })
    .stable();
    let time: Eval = |_, c| {
        Ok(Datum::Time(c.style.zone.to_local(c.transaction_micros).rem_euclid(MICROS_PER_DAY)))
    };
    t.add("localtime() time -- as `current_time`, without time zone", time).stable();
    // With so many digits of seconds.
    t.add("current_timestamp(int4) timestamptz", |a, c| {
        Ok(round_seconds(Datum::TimestampTz(c.transaction_micros), digits(&a[0])))
    })
    .stable();
    t.add("localtimestamp(int4) timestamp", |a, c| {
        let local = c.style.zone.to_local(c.transaction_micros);
        Ok(round_seconds(Datum::Timestamp(local), digits(&a[0])))
    })
    .stable();
    t.add("localtime(int4) time", |a, c| {
        let local = c.style.zone.to_local(c.transaction_micros);
        Ok(round_seconds(Datum::Time(local.rem_euclid(MICROS_PER_DAY)), digits(&a[0])))
    })
    .stable();
}

fn digits(of: &Datum) -> u8 {
    u8::try_from(i64_of(of)).unwrap_or(6)
}

fn overflow(message: String) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

fn make_date(year: i64, month: i64, day: i64) -> SqlResult<i32> {
    let bad = || overflow(format!("date field value out of range: {year}-{month:02}-{day:02}"));
    if year == 0 || !(1..=12).contains(&month) || day < 1 {
        return Err(bad());
    }
    let year_number = if year < 0 { year + 1 } else { year };
    let first = days_from_civil(year_number, month, 1);
    let next = if month == 12 {
        days_from_civil(year_number + 1, 1, 1)
    } else {
        days_from_civil(year_number, month + 1, 1)
    };
    if day > next - first {
        return Err(bad());
    }
    check_date(first + day - 1)
}

fn make_time(hour: i64, minute: i64, second: f64) -> SqlResult<i64> {
    // A second is rounded before it is looked at: the smallest negative ones are none.
    let micros = (second * 1e6).round_ties_even();
    let minutes = hour * 60 + minute;
    let is_time = (0..=24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..=60e6).contains(&micros)
        && minutes * 60 * MICROS_PER_SECOND + micros as i64 <= MICROS_PER_DAY;
    if !is_time {
        return Err(overflow(format!(
            "time field value out of range: {hour}:{minute:02}:{second:02}"
        )));
    }
    Ok(minutes * 60 * MICROS_PER_SECOND + micros as i64)
}

fn constructors(t: &mut Table) {
    t.add("make_date(int4, int4, int4) date -- a date of year, month, day", |a, _| {
        Ok(Datum::Date(make_date(i64_of(&a[0]), i64_of(&a[1]), i64_of(&a[2]))?))
    });
    t.add("make_time(int4, int4, float8) time -- a time of hour, minute, second", |a, _| {
        Ok(Datum::Time(make_time(i64_of(&a[0]), i64_of(&a[1]), f64_of(&a[2]))?))
    });
    fn timestamp(a: &[Datum]) -> SqlResult<i64> {
        let day = make_date(i64_of(&a[0]), i64_of(&a[1]), i64_of(&a[2]))?;
        let time = make_time(i64_of(&a[3]), i64_of(&a[4]), f64_of(&a[5]))?;
        check_timestamp(i128::from(day) * i128::from(MICROS_PER_DAY) + i128::from(time))
    }
    t.add(
        "make_timestamp(int4, int4, int4, int4, int4, float8) timestamp \
         -- a timestamp of its six fields",
        |a, _| Ok(Datum::Timestamp(timestamp(a)?)),
    );
    t.add(
        "make_timestamptz(int4, int4, int4, int4, int4, float8) timestamptz \
         -- a timestamp with time zone of its six fields",
        |a, c| {
            let utc = c.style.zone.to_utc(timestamp(a)?);
            Ok(Datum::TimestampTz(check_timestamp(i128::from(utc))?))
        },
    )
    .stable();
    t.add("make_timestamptz(int4, int4, int4, int4, int4, float8, text) timestamptz", |a, _| {
        let utc = in_zone(timestamp(a)?, text_of(&a[6]))?;
        Ok(Datum::TimestampTz(check_timestamp(i128::from(utc))?))
    })
    .stable();
    t.add(
        "make_interval(int4, int4, int4, int4, int4, int4, float8) interval \
         -- an interval of years, months, weeks, days, hours, minutes, seconds",
        |a, _| {
            if !f64_of(&a[6]).is_finite() {
                return Err(overflow("interval out of range".to_string()));
            }
            Ok(Datum::Interval(Interval {
                months: (i64_of(&a[0]) * 12 + i64_of(&a[1])) as i32,
                days: (i64_of(&a[2]) * 7 + i64_of(&a[3])) as i32,
                micros: (i64_of(&a[4]) * 3600 + i64_of(&a[5]) * 60) * MICROS_PER_SECOND
                    + (f64_of(&a[6]) * 1e6).round() as i64,
            }))
        },
    );
    t.add(
        "to_timestamp(float8) timestamptz -- an instant by a format, or of seconds since 1970",
        |a, _| {
            let seconds = f64_of(&a[0]);
            if seconds.is_nan() {
                return Err(overflow("timestamp cannot be NaN".to_string()));
            }
            if seconds.is_infinite() {
                return Ok(Datum::TimestampTz(if seconds > 0.0 { i64::MAX } else { i64::MIN }));
            }
            // Rounded after the epoch is moved, which loses digits: as PostgreSQL does it.
            let moved = seconds - (UNIX_EPOCH_MICROS / MICROS_PER_SECOND) as f64;
            Ok(Datum::TimestampTz(check_timestamp((moved * 1e6).round_ties_even() as i128)?))
        },
    );
    differences(t);
}

/// What is said of values that are there, and of two of them.
fn differences(t: &mut Table) {
    t.add("isfinite(timestamp) bool -- whether the value is not infinite", |a, _| {
        Ok(Datum::Bool(!matches!(a[0], Datum::Timestamp(t) if infinite(t))))
    });
    t.add("isfinite(timestamptz) bool", |a, _| {
        Ok(Datum::Bool(!matches!(a[0], Datum::TimestampTz(t) if infinite(t))))
    });
    t.add("isfinite(interval) bool", |_, _| Ok(Datum::Bool(true)));
    t.add("isfinite(date) bool", |a, _| {
        Ok(Datum::Bool(!matches!(a[0], Datum::Date(i32::MAX | i32::MIN))))
    });
    t.add("justify_hours(interval) interval -- 24 hours as a day", |a, _| {
        Ok(Datum::Interval(justified(&interval_of(&a[0]), true, false)?))
    });
    t.add("justify_days(interval) interval -- 30 days as a month", |a, _| {
        Ok(Datum::Interval(justified(&interval_of(&a[0]), false, true)?))
    });
    t.add(
        "justify_interval(interval) interval -- hours as days, days as months, one sign",
        |a, _| Ok(Datum::Interval(justified(&interval_of(&a[0]), true, true)?)),
    );
    t.add("age(timestamp, timestamp) interval -- difference in years, months and days", |a, _| {
        match (&a[0], &a[1]) {
            (Datum::Timestamp(x), Datum::Timestamp(y)) => checked_age(*x, *y),
            _ => Ok(Datum::Null),
        }
    });
    t.add("age(timestamptz, timestamptz) interval", |a, c| match (&a[0], &a[1]) {
        (Datum::TimestampTz(x), Datum::TimestampTz(y)) => {
            let local = |t: i64| if infinite(t) { t } else { c.style.zone.to_local(t) };
            checked_age(local(*x), local(*y))
        }
        _ => Ok(Datum::Null),
    })
    .stable();
    t.add("age(timestamp) interval", |a, c| match &a[0] {
        Datum::Timestamp(x) => checked_age(today(c), *x),
        _ => Ok(Datum::Null),
    })
    .stable();
    t.add("age(timestamptz) interval", |a, c| match &a[0] {
        Datum::TimestampTz(x) => {
            checked_age(today(c), if infinite(*x) { *x } else { c.style.zone.to_local(*x) })
        }
        _ => Ok(Datum::Null),
    })
    .stable();
}

/// Hours over 24 as days, days over 30 as months; what was carried to takes the sign.
fn justified(i: &Interval, hours: bool, days: bool) -> SqlResult<Interval> {
    let (mut months, mut day, mut micros) = (i64::from(i.months), i64::from(i.days), i.micros);
    if hours {
        day += micros / MICROS_PER_DAY;
        micros %= MICROS_PER_DAY;
    }
    if days {
        months += day / 30;
        day %= 30;
        let below = day < 0 || (hours && day == 0 && micros < 0);
        let above = day > 0 || (hours && day == 0 && micros > 0);
        if months > 0 && below {
            (day, months) = (day + 30, months - 1);
        } else if months < 0 && above {
            (day, months) = (day - 30, months + 1);
        }
    }
    if hours {
        if day > 0 && micros < 0 {
            (micros, day) = (micros + MICROS_PER_DAY, day - 1);
        } else if day < 0 && micros > 0 {
            (micros, day) = (micros - MICROS_PER_DAY, day + 1);
        }
    }
    let narrow = |v: i64| i32::try_from(v).map_err(|_| overflow("interval out of range".into()));
    Ok(Interval { months: narrow(months)?, days: narrow(day)?, micros })
}

fn today(ctx: &EvalContext) -> i64 {
    let local = ctx.style.zone.to_local(ctx.transaction_micros);
    local.div_euclid(MICROS_PER_DAY) * MICROS_PER_DAY
}

/// Difference in years, months, days as a calendar counts them.
///
/// # Errors
/// 22008 for infinite timestamps.
fn checked_age(a: i64, b: i64) -> SqlResult<Datum> {
    if infinite(a) || infinite(b) {
        return Err(overflow("timestamp out of range".to_string()));
    }
    Ok(Datum::Interval(age(a, b)))
}

fn age(a: i64, b: i64) -> Interval {
    if a < b {
        let back = age(b, a);
        return Interval { months: -back.months, days: -back.days, micros: -back.micros };
    }
    let split = |t: i64| {
        let (y, m, d) = civil_from_days(t.div_euclid(MICROS_PER_DAY));
        (y * 12 + m - 1, d, t.rem_euclid(MICROS_PER_DAY))
    };
    let ((m1, d1, t1), (m2, d2, t2)) = (split(a), split(b));
    let (mut months, mut days, mut micros) = (m1 - m2, d1 - d2, t1 - t2);
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        // Borrow the length of the earlier value's month.
        let (y, m) = (m2.div_euclid(12), m2.rem_euclid(12) + 1);
        let next =
            if m == 12 { days_from_civil(y + 1, 1, 1) } else { days_from_civil(y, m + 1, 1) };
        days += next - days_from_civil(y, m, 1);
        months -= 1;
    }
    Interval { months: months as i32, days: days as i32, micros }
}

/// A format or a value that gives NULL: PostgreSQL has no text for the infinities here.
fn unformatted(a: &[Datum]) -> bool {
    let infinite = match &a[0] {
        Datum::Timestamp(t) | Datum::TimestampTz(t) => infinite(*t),
        _ => false,
    };
    infinite || text_of(&a[1]).is_empty()
}

fn formatting(t: &mut Table) {
    t.add("to_char(timestamp, text) text -- text by a format", |a, _| match &a[0] {
        Datum::Timestamp(t) if !unformatted(a) => {
            Ok(Datum::text(date_format::write_timestamp(*t, None, text_of(&a[1]))?))
        }
        _ => Ok(Datum::Null),
    });
    t.add("to_char(timestamptz, text) text", |a, c| match &a[0] {
        Datum::TimestampTz(t) if !unformatted(a) => Ok(Datum::text(date_format::write_timestamp(
            c.style.zone.to_local(*t),
            Some((&c.style.zone, *t)),
            text_of(&a[1]),
        )?)),
        _ => Ok(Datum::Null),
    })
    .stable();
    t.add("to_char(interval, text) text", |a, _| {
        if unformatted(a) {
            return Ok(Datum::Null);
        }
        Ok(Datum::text(date_format::write_interval(&interval_of(&a[0]), text_of(&a[1]))?))
    });
    let number: Eval = |a, _| {
        let exact;
        let value = match &a[0] {
            Datum::Numeric(n) => Value::Exact(n),
            Datum::NumericNan => Value::Nan,
            Datum::NumericInf(negative) => Value::Infinite(*negative),
            Datum::Float8(f) => Value::Float(*f, 15),
            Datum::Float4(f) => Value::Float(f64::from(*f), 6),
            other => {
                exact = numeric::from_i128(i64_of(other).into());
                match other {
                    Datum::Int4(_) => Value::Whole(&exact, "integer", i64::from(i32::MAX)),
                    _ => Value::Whole(&exact, "bigint", i64::MAX),
                }
            }
        };
        Ok(Datum::text(number_format::write(&value, text_of(&a[1]))?))
    };
    t.add("to_char(int4, text) text", number);
    t.add("to_char(int8, text) text", number);
    t.add("to_char(numeric, text) text", number);
    t.add("to_char(float4, text) text", number);
    t.add("to_char(float8, text) text", number);
    t.add(
        "to_number(text, text) numeric -- a number by a format",
        |a, _| match number_format::read(text_of(&a[0]), text_of(&a[1]))? {
            Some(value) => Ok(value),
            None if text_of(&a[1]).is_empty() => Ok(Datum::Null),
            None => Err(SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                "invalid input syntax for type numeric: \" \"",
            )),
        },
    );
    t.add("to_date(text, text) date -- a date by a format", |a, _| {
        Ok(Datum::Date(check_date(date_parse::date(text_of(&a[0]), text_of(&a[1]))?)?))
    })
    .stable();
    t.add("to_timestamp(text, text) timestamptz", |a, c| {
        let zone = &c.style.zone;
        Ok(Datum::TimestampTz(date_parse::timestamp(text_of(&a[0]), text_of(&a[1]), zone)?))
    })
    .stable();
}

fn extracting(t: &mut Table) {
    for signature in [
        "extract(text, timestamp) numeric -- a field as an exact number",
        "extract(text, date) numeric",
        "extract(text, time) numeric",
        "extract(text, timetz) numeric",
        "extract(text, interval) numeric",
    ] {
        t.add(signature, extract);
    }
    t.add("extract(text, timestamptz) numeric", extract).stable();
    for signature in [
        "date_part(text, timestamp) float8 -- a field as a double",
        "date_part(text, date) float8",
        "date_part(text, time) float8",
        "date_part(text, timetz) float8",
        "date_part(text, interval) float8",
    ] {
        t.add(signature, date_part);
    }
    t.add("date_part(text, timestamptz) float8", date_part).stable();
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    extracting(t);
    truncating(t);
    zones(t);
    clocks(t);
    constructors(t);
    formatting(t);
}
