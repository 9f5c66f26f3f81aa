//! Values to text, as PostgreSQL prints them with `DateStyle` ISO and `IntervalStyle` postgres.

use crate::datetime::{date_text, time_text, timestamp_text};
use crate::float_text::{float4_text, float8_text};
use crate::interval::interval_text;
use crate::{Datum, Interval, TimeZone, array_text, jsonb, numeric};

impl Datum {
    /// The text form; `None` for NULL. The zone is where `timestamptz` values are shown.
    pub fn to_text(&self, zone: &TimeZone) -> Option<String> {
        Some(match self {
            Datum::Null => return None,
            Datum::Bool(b) => if *b { "t" } else { "f" }.to_string(),
            Datum::Int2(v) => v.to_string(),
            Datum::Int4(v) => v.to_string(),
            Datum::Int8(v) => v.to_string(),
            Datum::Oid(v) => v.to_string(),
            Datum::Float4(v) => float4_text(*v),
            Datum::Float8(v) => float8_text(*v),
            Datum::Numeric(v) => numeric::text(v),
            Datum::NumericNan => "NaN".to_string(),
            Datum::Text(s) => s.to_string(),
            Datum::Bytea(bytes) => {
                let mut out = String::with_capacity(2 + bytes.len() * 2);
                out.push_str("\\x");
                for byte in bytes.iter() {
                    out.push(char::from_digit(u32::from(byte >> 4), 16).expect("below 16"));
                    out.push(char::from_digit(u32::from(byte & 15), 16).expect("below 16"));
                }
                out
            }
            Datum::Date(d) => date_text(*d),
            Datum::Time(t) => time_text(*t),
            Datum::Timestamp(t) => timestamp_text(*t, None),
            Datum::TimestampTz(t) => timestamp_text(*t, Some(zone)),
            Datum::Interval(i) => interval_text(i),
            Datum::Uuid(bytes) => uuid::Uuid::from_bytes(*bytes).hyphenated().to_string(),
            Datum::Jsonb(value) => jsonb::text(value),
            Datum::Array(array) => array_text::write(array.items.iter().map(|i| i.to_text(zone))),
            Datum::Record(fields) => record_text(fields, zone),
        })
    }
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&interval_text(self))
    }
}

/// For logs and messages: NULL prints as `null`, `timestamptz` in UTC.
impl std::fmt::Display for Datum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_text(&TimeZone::utc()).unwrap_or_else(|| "null".to_string()))
    }
}

fn record_text(fields: &[Datum], zone: &TimeZone) -> String {
    let mut out = String::from("(");
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let Some(text) = field.to_text(zone) else {
            continue;
        };
        let quote = text.is_empty()
            || text
                .chars()
                .any(|c| matches!(c, '(' | ')' | ',' | '"' | '\\') || c.is_ascii_whitespace());
        if quote {
            out.push('"');
            for c in text.chars() {
                if matches!(c, '"' | '\\') {
                    out.push(c);
                }
                out.push(c);
            }
            out.push('"');
        } else {
            out.push_str(&text);
        }
    }
    out.push(')');
    out
}
