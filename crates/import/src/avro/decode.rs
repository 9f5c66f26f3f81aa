//! Rows from the bytes of a block.

use bigdecimal::num_bigint::BigInt;
use braid_types::{Datum, Interval, SqlType};
use serde_json::{Map, Value as Json};

use super::schema::{Meaning, Named, Schema, Schemas};
use crate::parquet::{EPOCH_MICROS, decimal};
use crate::target::Value;

/// Values may nest as deep as this.
const DEPTH_MAX: usize = 64;
const EPOCH_DAYS: i32 = 10_957;

/// Bytes that are taken from the front.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

type Taken<T> = Result<T, String>;

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, n: usize) -> Taken<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("it is cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn long(&mut self) -> Taken<i64> {
        let mut out = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            out |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok((out >> 1) as i64 ^ -((out & 1) as i64));
            }
        }
        Err("a number is too long".into())
    }

    fn int(&mut self) -> Taken<i32> {
        i32::try_from(self.long()?).map_err(|_| "an int is out of range".into())
    }

    /// Bytes with their length in front.
    pub(super) fn bytes(&mut self) -> Taken<&'a [u8]> {
        let length = self.long()?;
        self.take(usize::try_from(length).map_err(|_| "a length is negative")?)
    }

    pub(super) fn text(&mut self) -> Taken<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| "text that is not UTF-8".into())
    }

    /// The count of a block of an array or map; 0 at its end.
    pub(super) fn block(&mut self) -> Taken<u64> {
        let count = self.long()?;
        if count < 0 {
            // Then its size in bytes follows, for those who leave it out.
            self.long()?;
        }
        Ok(count.unsigned_abs())
    }
}

/// A value of a row.
pub(super) fn value(bytes: &mut Bytes, schema: &Schema, all: &Schemas) -> Taken<Value> {
    nested(bytes, schema, all, 0)
}

fn nested(bytes: &mut Bytes, schema: &Schema, all: &Schemas, depth: usize) -> Taken<Value> {
    if depth > DEPTH_MAX {
        return Err("a value is nested too deeply".into());
    }
    Ok(match schema {
        Schema::Null => Value::Null,
        Schema::Boolean => match bytes.take(1)?[0] {
            b @ 0..=1 => Value::Typed(Datum::Bool(b == 1), SqlType::Bool),
            _ => return Err("a boolean is neither 0 nor 1".into()),
        },
        Schema::Int(meaning) => int(bytes.int()?, *meaning)?,
        Schema::Long(meaning) => long(bytes.long()?, *meaning)?,
        Schema::Float => {
            let raw = bytes.take(4)?.try_into().expect("four bytes");
            Value::Typed(Datum::Float4(f32::from_le_bytes(raw)), SqlType::Float4)
        }
        Schema::Double => {
            let raw = bytes.take(8)?.try_into().expect("eight bytes");
            Value::Typed(Datum::Float8(f64::from_le_bytes(raw)), SqlType::Float8)
        }
        Schema::Bytes(meaning) => raw(bytes.bytes()?, *meaning)?,
        Schema::Text(_) => Value::Text(bytes.text()?.into()),
        Schema::Array(item) => {
            let mut items = Vec::new();
            loop {
                let count = bytes.block()?;
                if count == 0 {
                    break;
                }
                for _ in 0..checked(count, bytes)? {
                    items.push(nested(bytes, item, all, depth + 1)?);
                }
            }
            Value::List(items)
        }
        Schema::Map(value) => {
            let mut out = Map::new();
            loop {
                let count = bytes.block()?;
                if count == 0 {
                    break;
                }
                for _ in 0..checked(count, bytes)? {
                    let key = bytes.text()?.to_string();
                    out.insert(key, json(nested(bytes, value, all, depth + 1)?));
                }
            }
            Value::Json(Json::Object(out))
        }
        Schema::Union(branches) => {
            let branch = usize::try_from(bytes.long()?).ok().and_then(|n| branches.get(n));
            let branch = branch.ok_or("a union has no such branch")?;
            nested(bytes, branch, all, depth + 1)?
        }
        Schema::Named(number) => named(bytes, &all.named[*number], all, depth)?,
    })
}

/// A count of things of which each takes bytes or nothing at all: those are not to be believed.
fn checked(count: u64, bytes: &Bytes) -> Taken<u64> {
    if count > bytes.0.len() as u64 + (1 << 16) {
        return Err("it has more elements than bytes".into());
    }
    Ok(count)
}

fn named(bytes: &mut Bytes, named: &Named, all: &Schemas, depth: usize) -> Taken<Value> {
    match named {
        Named::Record(fields) => {
            let mut out = Map::new();
            for (name, schema) in fields {
                out.insert(name.clone(), json(nested(bytes, schema, all, depth + 1)?));
            }
            Ok(Value::Json(Json::Object(out)))
        }
        Named::Enum(symbols) => {
            let symbol = usize::try_from(bytes.long()?).ok().and_then(|n| symbols.get(n));
            Ok(Value::Text(symbol.ok_or("an enum has no such symbol")?.clone()))
        }
        Named::Fixed(size, meaning) => raw(bytes.take(*size)?, *meaning),
        Named::Open => Err("a type is not whole".into()),
    }
}

fn int(v: i32, meaning: Meaning) -> Taken<Value> {
    Ok(match meaning {
        Meaning::Date => {
            let days = v.checked_sub(EPOCH_DAYS).ok_or("a date is out of range")?;
            Value::Typed(Datum::Date(days), SqlType::Date)
        }
        Meaning::Time(_) => long(i64::from(v), meaning)?,
        _ => Value::Typed(Datum::Int4(v), SqlType::Int4),
    })
}

fn long(v: i64, meaning: Meaning) -> Taken<Value> {
    let micros = |per_second: i64| match per_second {
        1_000_000_000 => Ok(v.div_euclid(1000)),
        n => v.checked_mul(1_000_000 / n).ok_or("a time is out of range"),
    };
    Ok(match meaning {
        Meaning::Time(unit) => {
            let micros = micros(unit)?;
            if !(0..=86_400_000_000).contains(&micros) {
                return Err("a time of day is out of range".into());
            }
            Value::Typed(Datum::Time(micros), SqlType::Time)
        }
        Meaning::Timestamp(unit, instant) => {
            let v = micros(unit)?.checked_sub(EPOCH_MICROS).ok_or("a time is out of range")?;
            match instant {
                true => Value::Typed(Datum::TimestampTz(v), SqlType::TimestampTz),
                false => Value::Typed(Datum::Timestamp(v), SqlType::Timestamp),
            }
        }
        _ => Value::Typed(Datum::Int8(v), SqlType::Int8),
    })
}

fn raw(v: &[u8], meaning: Meaning) -> Taken<Value> {
    Ok(match meaning {
        Meaning::Decimal(scale) => {
            decimal(BigInt::from_signed_bytes_be(v), scale).map_err(|e| e.to_string())?
        }
        Meaning::Uuid if v.len() == 16 => {
            Value::Typed(Datum::Uuid(v.try_into().expect("sixteen bytes")), SqlType::Uuid)
        }
        Meaning::Duration if v.len() == 12 => {
            let part = |n: usize| u32::from_le_bytes(v[n..n + 4].try_into().expect("four bytes"));
            let small = |n: usize| i32::try_from(part(n)).map_err(|_| "a duration is too long");
            let (months, days) = (small(0)?, small(4)?);
            let interval = Interval { months, days, micros: i64::from(part(8)) * 1000 };
            Value::Typed(Datum::Interval(interval), SqlType::Interval)
        }
        _ => Value::Typed(Datum::Bytea(v.into()), SqlType::Bytea),
    })
}

/// What is inside of a record or map.
fn json(value: Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Json(json) => json,
        Value::Text(text) => Json::String(text),
        Value::List(items) => Json::Array(items.into_iter().map(json).collect()),
        Value::Typed(Datum::Bool(b), _) => Json::Bool(b),
        Value::Typed(datum, _) => {
            let text = datum.to_text(braid_types::TimeZone::utc()).unwrap_or_default();
            match datum {
                Datum::Int4(_) | Datum::Int8(_) | Datum::Numeric(_) => {
                    serde_json::from_str(&text).unwrap_or(Json::String(text))
                }
                Datum::Float4(v) if v.is_finite() => {
                    serde_json::from_str(&text).unwrap_or(Json::String(text))
                }
                Datum::Float8(v) if v.is_finite() => {
                    serde_json::from_str(&text).unwrap_or(Json::String(text))
                }
                _ => Json::String(text),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_zigzag() {
        let read = |b: &[u8]| Bytes(b).long();
        assert_eq!(read(&[0]), Ok(0));
        assert_eq!(read(&[1]), Ok(-1));
        assert_eq!(read(&[0x80, 1]), Ok(64));
        let least = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(read(&least), Ok(i64::MIN));
        assert!(read(&[0xff; 11]).is_err() && read(&[0x80]).is_err());
    }
}
