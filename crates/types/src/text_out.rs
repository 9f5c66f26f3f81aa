//! Values to text, as PostgreSQL prints them.

use crate::datetime::time_text;
use crate::datetime_text::{date_text, timestamp_text};
use crate::interval::interval_text;
use crate::text::float::{float4_text, float8_text};
use crate::{Datum, Interval, IntervalForm, Style, array, jsonb, numeric, range, user_type};

impl Datum {
    /// The text form; `None` for NULL. A time zone alone means PostgreSQL's default style in it.
    pub fn to_text(&self, style: impl Into<Style>) -> Option<String> {
        let style = &style.into();
        Some(match self {
            Datum::Null => return None,
            Datum::Bool(b) => if *b { "t" } else { "f" }.to_string(),
            Datum::Int2(v) => v.to_string(),
            Datum::Int4(v) => v.to_string(),
            Datum::Int8(v) => v.to_string(),
            Datum::Oid(v) => v.to_string(),
            Datum::Float4(v) => float4_text(*v, style.float_digits),
            Datum::Float8(v) => float8_text(*v, style.float_digits),
            Datum::Numeric(v) => numeric::text(v),
            Datum::NumericNan => "NaN".to_string(),
            Datum::NumericInf(false) => "Infinity".to_string(),
            Datum::NumericInf(true) => "-Infinity".to_string(),
            Datum::Text(s) => s.to_string(),
            Datum::Json(text) => text.to_string(),
            Datum::Bytea(bytes) if style.bytea_escape => escaped(bytes),
            Datum::Bytea(bytes) => {
                let mut out = String::with_capacity(2 + bytes.len() * 2);
                out.push_str("\\x");
                for byte in bytes.iter() {
                    out.push(char::from_digit(u32::from(byte >> 4), 16).expect("below 16"));
                    out.push(char::from_digit(u32::from(byte & 15), 16).expect("below 16"));
                }
                out
            }
            Datum::Date(d) => date_text(*d, style),
            Datum::Time(t) => time_text(*t),
            Datum::Timestamp(t) => timestamp_text(*t, false, style),
            Datum::TimestampTz(t) => timestamp_text(*t, true, style),
            Datum::Interval(i) => interval_text(i, style.interval),
            Datum::Uuid(bytes) => uuid::Uuid::from_bytes(*bytes).hyphenated().to_string(),
            Datum::Jsonb(value) => jsonb::text(value),
            Datum::Enum(value) => value.label().to_string(),
            Datum::Ordered(value) => value.text(),
            Datum::Geometry(shape) => shape.text(style),
            Datum::Range(value) => range::write(value, style),
            Datum::Multirange(value) => range::multi::write(value, style),
            Datum::Array(array) => array::text::write(array, style),
            Datum::Record(fields) => user_type::text::write(fields, style),
        })
    }
}

/// `bytea` in the old form: printable characters as they are, others in octal.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7e => out.push(char::from(*byte)),
            other => out.push_str(&format!("\\{other:03o}")),
        }
    }
    out
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&interval_text(self, IntervalForm::Postgres))
    }
}

/// For logs and messages: NULL prints as `null`, `timestamptz` in UTC.
impl std::fmt::Display for Datum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_text(Style::utc()).unwrap_or_else(|| "null".to_string()))
    }
}

/// In double quotes, of which those inside are doubled, as are backslashes.
pub(crate) fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('"');
}
