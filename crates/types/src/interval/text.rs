//! Intervals to text, in the forms of `IntervalStyle`.

use crate::datetime::{MICROS_PER_SECOND, time_text};
use crate::{Interval, IntervalForm};

/// Writes an interval.
pub(crate) fn interval_text(value: &Interval, form: IntervalForm) -> String {
    match form {
        IntervalForm::Postgres => postgres(value),
        IntervalForm::Verbose => verbose(value),
        IntervalForm::Sql => standard(value),
        IntervalForm::Iso => iso(value),
    }
}

/// Hours, minutes, seconds and microseconds, all with the sign of the whole.
fn clock(micros: i64) -> (i64, i64, i64, i64) {
    let seconds = micros / MICROS_PER_SECOND;
    (seconds / 3600, seconds / 60 % 60, seconds % 60, micros % MICROS_PER_SECOND)
}

/// `5` or `5.25`, without sign.
fn seconds_text(seconds: i64, micros: i64, two_digits: bool) -> String {
    let (seconds, micros) = (seconds.abs(), micros.abs());
    let mut text = if two_digits { format!("{seconds:02}") } else { seconds.to_string() };
    if micros != 0 {
        text.push('.');
        text.push_str(format!("{micros:06}").trim_end_matches('0'));
    }
    text
}

/// `@ 1 year 2 mons 3 days 4 hours 5 mins 6.7 secs ago`
fn verbose(value: &Interval) -> String {
    let (hours, minutes, seconds, micros) = clock(value.micros);
    let parts = [
        (i64::from(value.months / 12), "year"),
        (i64::from(value.months % 12), "mon"),
        (i64::from(value.days), "day"),
        (hours, "hour"),
        (minutes, "min"),
    ];
    let mut text = String::from("@");
    // The first field that is not zero decides the sign of the whole.
    let mut negative = None;
    for (amount, unit) in parts {
        if amount == 0 {
            continue;
        }
        let flip = *negative.get_or_insert(amount < 0);
        let shown = if flip { -amount } else { amount };
        let plural = if shown == 1 { "" } else { "s" };
        text.push_str(&format!(" {shown} {unit}{plural}"));
    }
    if seconds != 0 || micros != 0 {
        let below = seconds < 0 || micros < 0;
        let flip = *negative.get_or_insert(below);
        let sign = if below != flip { "-" } else { "" };
        let plural = if seconds.abs() == 1 && micros == 0 { "" } else { "s" };
        text.push_str(&format!(" {sign}{} sec{plural}", seconds_text(seconds, micros, false)));
    }
    match negative {
        None => text.push_str(" 0"),
        Some(true) => text.push_str(" ago"),
        Some(false) => {}
    }
    text
}

/// `1-2`, `3 4:05:06`, or all fields with signs when they are mixed.
fn standard(value: &Interval) -> String {
    let (hours, minutes, seconds, micros) = clock(value.micros);
    let (years, months) = (value.months / 12, value.months % 12);
    let has_negative = value.months < 0 || value.days < 0 || value.micros < 0;
    let has_positive = value.months > 0 || value.days > 0 || value.micros > 0;
    let time =
        || format!("{}:{:02}:{}", hours.abs(), minutes.abs(), seconds_text(seconds, micros, true));
    let has_year_month = value.months != 0;
    let has_day_time = value.days != 0 || value.micros != 0;
    if !has_negative && !has_positive {
        return "0".to_string();
    }
    if (has_negative && has_positive) || (has_year_month && has_day_time) {
        let sign = |negative: bool| if negative { '-' } else { '+' };
        return format!(
            "{}{}-{} {}{} {}{}",
            sign(value.months < 0),
            years.abs(),
            months.abs(),
            sign(value.days < 0),
            value.days.unsigned_abs(),
            sign(value.micros < 0),
            time()
        );
    }
    let sign = if has_negative { "-" } else { "" };
    if has_year_month {
        return format!("{sign}{}-{}", years.abs(), months.abs());
    }
    match value.days {
        0 => format!("{sign}{}", time()),
        days => format!("{sign}{} {}", days.unsigned_abs(), time()),
    }
}

/// `P1Y2M3DT4H5M6.7S`
fn iso(value: &Interval) -> String {
    let (hours, minutes, seconds, micros) = clock(value.micros);
    let mut text = String::from("P");
    let put = |amount: i64, unit: char, text: &mut String| {
        if amount != 0 {
            text.push_str(&format!("{amount}{unit}"));
        }
    };
    put(i64::from(value.months / 12), 'Y', &mut text);
    put(i64::from(value.months % 12), 'M', &mut text);
    put(i64::from(value.days), 'D', &mut text);
    if value.micros != 0 {
        text.push('T');
        put(hours, 'H', &mut text);
        put(minutes, 'M', &mut text);
        if seconds != 0 || micros != 0 {
            let sign = if seconds < 0 || micros < 0 { "-" } else { "" };
            text.push_str(&format!("{sign}{}S", seconds_text(seconds, micros, false)));
        }
    }
    if text == "P" { "PT0S".to_string() } else { text }
}

/// Writes in the `postgres` style: `1 year 2 mons 3 days 04:05:06.7`.
fn postgres(value: &Interval) -> String {
    let mut text = String::new();
    let mut negative_before = false;
    let mut part = |amount: i32, unit: &str, text: &mut String| {
        if amount == 0 {
            return;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        if negative_before && amount > 0 {
            text.push('+');
        }
        text.push_str(&format!("{amount} {unit}"));
        if amount != 1 {
            text.push('s');
        }
        negative_before = amount < 0;
    };
    part(value.months / 12, "year", &mut text);
    part(value.months % 12, "mon", &mut text);
    part(value.days, "day", &mut text);
    if value.micros != 0 || text.is_empty() {
        if !text.is_empty() {
            text.push(' ');
        }
        if value.micros < 0 {
            text.push('-');
        } else if negative_before {
            text.push('+');
        }
        let magnitude = value.micros.unsigned_abs();
        let hours = magnitude / (3_600 * MICROS_PER_SECOND as u64);
        let rest = (magnitude % (3_600 * MICROS_PER_SECOND as u64)) as i64;
        let tail = time_text(rest);
        text.push_str(&format!("{hours:02}{}", &tail[2..]));
    }
    text
}
