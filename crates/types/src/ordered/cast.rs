//! Conversions between these types, and from and to others.

use super::inet::{full_text, network_of};
use super::{Ordered, OrderedKind, bits, macaddr, money, timetz, xid8};
use crate::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType, Style, numeric};

/// The least context of a cast from or to one of these types, apart from those from and to text.
pub(crate) fn exists(from: &SqlType, to: &SqlType) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    use SqlType as T;
    Some(match (from, to) {
        (T::Cidr, T::Inet) => Implicit,
        (T::Inet, T::Cidr) => Assignment,
        (T::Macaddr, T::Macaddr8) | (T::Macaddr8, T::Macaddr) => Implicit,
        (T::Bit(_), T::Varbit(_)) | (T::Varbit(_), T::Bit(_)) => Implicit,
        (T::Int4 | T::Int8, T::Bit(_)) | (T::Bit(_), T::Int4 | T::Int8) => Explicit,
        (T::Numeric(_) | T::Int4 | T::Int8, T::Money) | (T::Money, T::Numeric(_)) => Assignment,
        (T::Time, T::TimeTz) => Implicit,
        (T::TimeTz, T::Time) | (T::TimestampTz, T::TimeTz) => Assignment,
        (T::Citext, T::Text | T::Varchar(_)) => Implicit,
        // As `xid` comes here.
        (T::Xid8, T::Oid) => Explicit,
        (T::Citext, T::Char(_)) | (T::Text | T::Varchar(_) | T::Char(_), T::Citext) => Assignment,
        _ => return None,
    })
}

/// Converts a value; `None` if text is in between, or there is no such cast.
pub(crate) fn convert(value: &Datum, to: &SqlType, style: &Style) -> Option<SqlResult<Datum>> {
    let ordered = match value {
        Datum::Ordered(ordered) => ordered,
        other => return from_other(other, to, style),
    };
    Some(match (ordered.kind(), to) {
        (OrderedKind::Inet, SqlType::Cidr) => {
            Ok(Datum::Ordered(network_of(ordered).network().value(OrderedKind::Cidr)))
        }
        // As a name it is what is shown.
        (OrderedKind::Inet, to) if to.is_text_like() && *to != SqlType::Name => {
            Ok(Datum::text(full_text(&network_of(ordered))))
        }
        (_, SqlType::Inet | SqlType::Varbit(_)) | (OrderedKind::Varbit, SqlType::Bit(_)) => {
            let kind = OrderedKind::of(to)?;
            Ok(Datum::Ordered(ordered.with_kind(kind)))
        }
        (OrderedKind::Macaddr, SqlType::Macaddr8) => {
            Ok(Datum::Ordered(macaddr::of(&macaddr::extended(ordered.bytes()))))
        }
        (OrderedKind::Macaddr8, SqlType::Macaddr) => shortened(ordered.bytes()),
        (OrderedKind::Bit, SqlType::Int4) => integer(ordered, 32, "integer"),
        (OrderedKind::Bit, SqlType::Int8) => integer(ordered, 64, "bigint"),
        (OrderedKind::Money, SqlType::Numeric(_)) => {
            let cents = i128::from(money::cents(ordered));
            Ok(Datum::Numeric(numeric::from_scaled(cents, 2).into()))
        }
        (OrderedKind::Xid8, SqlType::Oid) => Ok(Datum::Oid(xid8::number(ordered) as u32)),
        (OrderedKind::TimeTz, SqlType::Time) => Ok(Datum::Time(timetz::parts(ordered).0)),
        _ => return None,
    })
}

fn from_other(value: &Datum, to: &SqlType, style: &Style) -> Option<SqlResult<Datum>> {
    let made = match (value, to) {
        (Datum::Int4(v), SqlType::Bit(n)) => bits::of_integer((*v).into(), (*n).max(1) as usize),
        (Datum::Int8(v), SqlType::Bit(n)) => bits::of_integer(*v, (*n).max(1) as usize),
        (Datum::Int4(_) | Datum::Int8(_) | Datum::Numeric(_), SqlType::Money) => {
            return Some(number_to_money(value));
        }
        (Datum::NumericNan | Datum::NumericInf(_), SqlType::Money) => {
            let what = if matches!(value, Datum::NumericNan) { "NaN" } else { "infinity" };
            return Some(Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot convert {what} to bigint"),
            )));
        }
        (Datum::Time(micros), SqlType::TimeTz) => {
            timetz::of(*micros, style.zone.offset_at_utc(style.now))
        }
        (Datum::TimestampTz(micros), SqlType::TimeTz) => match *micros {
            i64::MIN | i64::MAX => return Some(Ok(Datum::Null)),
            micros => timetz::at(micros, &style.zone),
        },
        _ => return None,
    };
    Some(Ok(Datum::Ordered(made)))
}

fn number_to_money(value: &Datum) -> SqlResult<Datum> {
    let cents = match value {
        Datum::Int4(v) => Some(i128::from(*v) * 100),
        Datum::Int8(v) => Some(i128::from(*v) * 100),
        Datum::Numeric(v) => numeric::at_scale(&numeric::round(v, 2), 2),
        _ => None,
    };
    let too_large = |_| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range");
    let cents = i64::try_from(cents.unwrap_or(i128::MAX)).map_err(too_large)?;
    Ok(Datum::Ordered(money::of(cents)))
}

fn shortened(eight: &[u8]) -> SqlResult<Datum> {
    if eight[3..5] == [0xFF, 0xFE] {
        return Ok(Datum::Ordered(macaddr::of(&[&eight[..3], &eight[5..]].concat())));
    }
    Err(SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "macaddr8 data out of range to convert to macaddr",
    )
    .with_hint(
        "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, \
         for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to \
         macaddr.",
    ))
}

fn integer(value: &Ordered, width: usize, name: &str) -> SqlResult<Datum> {
    let number = bits::to_integer(value, width).ok_or_else(|| {
        SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"))
    })?;
    Ok(if width == 32 { Datum::Int4(number as i32) } else { Datum::Int8(number) })
}
