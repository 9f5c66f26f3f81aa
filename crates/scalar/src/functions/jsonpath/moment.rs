//! What `.datetime()` gives: a date, a time or both, perhaps with the zone that was written.

use std::cmp::Ordering;

use braid_types::ordered::timetz;
use braid_types::{
    CastContext, Datum, Ordered, SqlError, SqlResult, SqlState, SqlType, Style, TimeZone, cast,
};

use crate::functions::date_parse::{Parsed, standard};
use crate::functions::json_text::iso_text;

/// A date, a time or both.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    value: Datum,
    ty: SqlType,
    /// Seconds east of UTC, where a zone belongs to it.
    east: i32,
}

/// The forms of ISO 8601 that need no template, in the order in which they are tried.
const FORMS: [&str; 19] = [
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd HH24:MI:SS.USTZH",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

/// Reads a text by a template, or in a form of ISO 8601.
///
/// # Errors
/// 22007, 22008; 22031 for a text in no such form.
pub(super) fn read(text: &str, template: Option<&str>) -> SqlResult<Moment> {
    if let Some(template) = template {
        return standard(text, template).map(Moment::of);
    }
    let found = FORMS.iter().find_map(|form| standard(text, form).ok());
    found.map(Moment::of).ok_or_else(|| {
        let message = format!("datetime format is not recognized: \"{text}\"");
        SqlError::new(SqlState("22031"), message)
            .with_hint("Use a datetime template argument to specify the input data format.")
    })
}

impl Moment {
    fn of(parsed: Parsed) -> Moment {
        let Parsed { value, east } = parsed;
        Moment { ty: value.implied_type(), value, east: east.unwrap_or(0) }
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self.ty {
            SqlType::Date => "date",
            SqlType::Time => "time without time zone",
            SqlType::TimeTz => "time with time zone",
            SqlType::Timestamp => "timestamp without time zone",
            _ => "timestamp with time zone",
        }
    }

    /// As JSON shows it: ISO 8601, in the zone that was written.
    pub(super) fn text(&self) -> String {
        match &self.value {
            Datum::Ordered(time) => zoned_time(time),
            Datum::Time(_) => self.value.to_text(Style::utc()).unwrap_or_default(),
            other => iso_text(other, TimeZone::Fixed(self.east)),
        }
    }

    /// How two of them are ordered; `None` if they are of kinds that have no order.
    ///
    /// # Errors
    /// 0A000 if one has a zone, the other none, and the function may not take the session's.
    pub(super) fn compare(
        &self,
        other: &Moment,
        zone: Option<&Style>,
    ) -> SqlResult<Option<Ordering>> {
        let timed = |m: &Moment| matches!(m.ty, SqlType::Time | SqlType::TimeTz);
        if timed(self) != timed(other) {
            return Ok(None);
        }
        let common = common_type(&self.ty, &other.ty);
        let moved = |m: &Moment| -> SqlResult<Datum> {
            if m.ty == common {
                return Ok(m.value.clone());
            }
            let zoned = matches!(common, SqlType::TimeTz | SqlType::TimestampTz);
            let style = match zone {
                None if zoned => return Err(no_zone(&m.ty, &common)),
                None => &Style::utc(),
                Some(style) => style,
            };
            cast(&m.value, &m.ty, &common, CastContext::Explicit, *style).or_else(|e| {
                match m.value {
                    // A date beyond all timestamps is before or behind them.
                    Datum::Date(days) if common == SqlType::Timestamp => {
                        Ok(Datum::Timestamp(far(days)))
                    }
                    Datum::Date(days) => Ok(Datum::TimestampTz(far(days))),
                    _ => Err(e),
                }
            })
        };
        Ok(Some(moved(self)?.cmp_sql(&moved(other)?)))
    }
}

fn far(days: i32) -> i64 {
    if days < 0 { i64::MIN } else { i64::MAX }
}

/// The one of two types that has all that both have.
fn common_type(a: &SqlType, b: &SqlType) -> SqlType {
    let rank = |ty: &SqlType| match ty {
        SqlType::Date | SqlType::Time => 0,
        SqlType::Timestamp => 1,
        _ => 2,
    };
    if rank(a) >= rank(b) { a.clone() } else { b.clone() }
}

fn no_zone(from: &SqlType, to: &SqlType) -> SqlError {
    let (from, to) = (from.internal_name(), to.internal_name());
    let text = format!("cannot convert value from {from} to {to} without time zone usage");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
        .with_hint("Use *_tz() function for time zone support.")
}

fn zoned_time(time: &Ordered) -> String {
    let (micros, east) = timetz::parts(time);
    let shown = Datum::Time(micros).to_text(Style::utc()).unwrap_or_default();
    let (sign, away) = if east < 0 { ('-', -east) } else { ('+', east) };
    let seconds = match away % 60 {
        0 => String::new(),
        seconds => format!(":{seconds:02}"),
    };
    format!("{shown}{sign}{:02}:{:02}{seconds}", away / 3600, away / 60 % 60)
}
