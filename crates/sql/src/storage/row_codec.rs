//! The value of a row or index entry: a compact tuple of the columns that the key does not hold.
//!
//! ```text
//!   01 | highest column id at the time of writing | (id delta, length, payload)*
//! ```
//! All numbers are LEB128. NULL columns are left out. A column whose id is above the highest id of
//! the time of writing was added later: it has its table's "missing" value. A reader skips the
//! columns it does not want by their lengths. Columns dropped meanwhile are skipped as well.
//! Byte table: `docs/formats/keys.md`.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use braid_types::{ArrayValue, Datum, Interval, SqlError, SqlResult, SqlState, SqlType};

use super::columns::Stored;

/// First byte of every row value.
pub(crate) const ROW_FORMAT: u8 = 1;

/// Builds a row value. Columns must be added by ascending id.
pub struct RowWriter {
    bytes: Vec<u8>,
    last: u32,
}

impl RowWriter {
    /// Starts a value; `highest` is the table's highest column id so far.
    pub fn new(highest: u32) -> RowWriter {
        let mut bytes = vec![ROW_FORMAT];
        push_varint(&mut bytes, u64::from(highest));
        RowWriter { bytes, last: 0 }
    }

    /// Adds a column; NULL takes no space.
    pub fn column(&mut self, id: u32, value: &Datum) {
        if value.is_null() {
            return;
        }
        debug_assert!(id > self.last, "columns come by ascending id");
        push_varint(&mut self.bytes, u64::from(id - self.last));
        self.last = id;
        let mut payload = Vec::with_capacity(16);
        encode_payload(&mut payload, value);
        push_varint(&mut self.bytes, payload.len() as u64);
        self.bytes.extend_from_slice(&payload);
    }

    /// The value.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads a row value column by column.
pub(crate) struct RowReader<'a> {
    rest: &'a [u8],
    highest: u32,
    last: u32,
}

impl<'a> RowReader<'a> {
    /// Starts reading.
    pub fn new(bytes: &'a [u8]) -> SqlResult<RowReader<'a>> {
        let mut rest = bytes;
        match rest.split_first() {
            Some((&ROW_FORMAT, r)) => rest = r,
            _ => return Err(damaged("unknown row format")),
        }
        let highest = read_varint(&mut rest)? as u32;
        Ok(RowReader { rest, highest, last: 0 })
    }

    /// Highest column id of the table when the row was written.
    pub fn highest(&self) -> u32 {
        self.highest
    }

    /// The next column: its id and payload.
    pub fn next_column(&mut self) -> SqlResult<Option<(u32, &'a [u8])>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let delta = read_varint(&mut self.rest)? as u32;
        self.last = self.last.checked_add(delta).ok_or_else(|| damaged("column id"))?;
        let len = read_varint(&mut self.rest)? as usize;
        if len > self.rest.len() {
            return Err(damaged("column length"));
        }
        let (payload, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(Some((self.last, payload)))
    }
}

/// XX001.
pub(super) fn damaged(what: &str) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, format!("damaged row value: {what}"))
}

/// A number of one byte, which most are, or of more.
#[inline]
fn short_varint(bytes: &mut &[u8]) -> SqlResult<u64> {
    match bytes.split_first() {
        Some((&b, rest)) if b < 0x80 => {
            *bytes = rest;
            Ok(u64::from(b))
        }
        _ => read_varint(bytes),
    }
}

/// Tells where each of the wanted columns, which come by ascending id, lies in a row value: its
/// payload, or `None` for NULL. Looks at nothing behind the last of them.
#[inline]
pub(super) fn locate<'a>(
    value: &'a [u8],
    wanted: &'a [Stored],
    mut found: impl FnMut(usize, Option<&'a [u8]>),
) -> SqlResult<()> {
    let Some((&ROW_FORMAT, mut rest)) = value.split_first() else {
        return Err(damaged("unknown row format"));
    };
    let highest = short_varint(&mut rest)? as u32;
    let absent = |column: &'a Stored| column.missing.as_deref().filter(|_| column.id > highest);
    let (mut at, mut id) = (0, 0u32);
    while at < wanted.len() {
        if rest.is_empty() {
            (at..wanted.len()).for_each(|at| found(at, absent(&wanted[at])));
            break;
        }
        let delta = short_varint(&mut rest)? as u32;
        id = id.checked_add(delta).ok_or_else(|| damaged("column id"))?;
        let len = short_varint(&mut rest)? as usize;
        let (payload, behind) =
            rest.split_at_checked(len).ok_or_else(|| damaged("column length"))?;
        rest = behind;
        while at < wanted.len() && wanted[at].id < id {
            found(at, absent(&wanted[at]));
            at += 1;
        }
        if at < wanted.len() && wanted[at].id == id {
            found(at, Some(payload));
            at += 1;
        }
    }
    Ok(())
}

/// An integer's payload.
#[inline]
pub(super) fn decode_integer(mut payload: &[u8]) -> SqlResult<i64> {
    short_varint(&mut payload).map(unzigzag)
}

/// What a numeric's payload is at a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecimalOf {
    /// So many units of the scale.
    Number(i128),
    /// NaN.
    NotANumber,
    /// Infinite, too large, or with more digits than the scale.
    Unfit,
}

/// A numeric's payload as a number of units of 10^-`scale`.
#[inline]
pub(super) fn decode_decimal(payload: &[u8], scale: i64) -> SqlResult<DecimalOf> {
    if payload.is_empty() {
        return Ok(DecimalOf::NotANumber);
    }
    let mut digits = payload;
    let own = unzigzag(short_varint(&mut digits)?);
    let Some(top) = digits.last().filter(|_| digits.len() <= 16) else {
        return Ok(DecimalOf::Unfit);
    };
    let mut wide = if *top >= 0x80 { [0xFF; 16] } else { [0; 16] };
    wide[..digits.len()].copy_from_slice(digits);
    let value = i128::from_le_bytes(wide);
    if own == scale {
        return Ok(DecimalOf::Number(value));
    }
    let power = |n: i64| u32::try_from(n).ok().and_then(|n| 10i128.checked_pow(n));
    let scaled = match power(scale - own) {
        Some(factor) => value.checked_mul(factor),
        None => power(own - scale).filter(|by| value % by == 0).map(|by| value / by),
    };
    Ok(scaled.map_or(DecimalOf::Unfit, DecimalOf::Number))
}

/// LEB128.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

pub(crate) fn read_varint(bytes: &mut &[u8]) -> SqlResult<u64> {
    let mut v = 0u64;
    for shift in (0..64).step_by(7) {
        let (&b, rest) = bytes.split_first().ok_or_else(|| damaged("number"))?;
        *bytes = rest;
        v |= u64::from(b & 0x7F) << shift;
        if b < 0x80 {
            return Ok(v);
        }
    }
    Err(damaged("number"))
}

fn zigzag(v: i64) -> u64 {
    ((v << 1) ^ (v >> 63)) as u64
}

fn unzigzag(v: u64) -> i64 {
    ((v >> 1) as i64) ^ -((v & 1) as i64)
}

/// Appends a value's payload; its type is known to the reader.
pub(crate) fn encode_payload(out: &mut Vec<u8>, value: &Datum) {
    match value {
        Datum::Null => {}
        Datum::Bool(b) => out.push(u8::from(*b)),
        Datum::Int2(v) => push_varint(out, zigzag(i64::from(*v))),
        Datum::Int4(v) | Datum::Date(v) => push_varint(out, zigzag(i64::from(*v))),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => {
            push_varint(out, zigzag(*v));
        }
        Datum::Oid(v) => push_varint(out, zigzag(i64::from(*v))),
        Datum::Float4(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Numeric(v) => {
            let (digits, scale) = v.as_bigint_and_exponent();
            push_varint(out, zigzag(scale));
            out.extend_from_slice(&digits.to_signed_bytes_le());
        }
        Datum::NumericNan => {}
        // A finite number has at least one byte after its scale.
        Datum::NumericInf(negative) => push_varint(out, zigzag(if *negative { -1 } else { 1 })),
        Datum::Json(text) => out.extend_from_slice(text.as_bytes()),
        Datum::Text(s) => out.extend_from_slice(s.as_bytes()),
        Datum::Bytea(b) => out.extend_from_slice(b),
        Datum::Uuid(u) => out.extend_from_slice(u),
        Datum::Interval(i) => {
            push_varint(out, zigzag(i64::from(i.months)));
            push_varint(out, zigzag(i64::from(i.days)));
            push_varint(out, zigzag(i.micros));
        }
        Datum::Jsonb(j) => out.extend_from_slice(braid_types::jsonb::text(j).as_bytes()),
        Datum::Array(a) => {
            for item in &a.items {
                if item.is_null() {
                    push_varint(out, 0);
                } else {
                    let mut payload = Vec::new();
                    encode_payload(&mut payload, item);
                    push_varint(out, payload.len() as u64 + 1);
                    out.extend_from_slice(&payload);
                }
            }
        }
        Datum::Record(_) => debug_assert!(false, "no column has type record"),
    }
}

/// The value of a payload.
///
/// # Errors
/// XX001 if the payload is not of this type.
pub(crate) fn decode_payload(mut b: &[u8], ty: &SqlType) -> SqlResult<Datum> {
    let int = |b: &mut &[u8]| read_varint(b).map(unzigzag);
    let narrow = |_| damaged("integer out of range");
    Ok(match ty {
        SqlType::Bool => Datum::Bool(b.first() == Some(&1)),
        SqlType::Int2 => Datum::Int2(int(&mut b)?.try_into().map_err(narrow)?),
        SqlType::Int4 => Datum::Int4(int(&mut b)?.try_into().map_err(narrow)?),
        SqlType::Int8 => Datum::Int8(int(&mut b)?),
        SqlType::Date => Datum::Date(int(&mut b)?.try_into().map_err(narrow)?),
        SqlType::Time => Datum::Time(int(&mut b)?),
        SqlType::Timestamp => Datum::Timestamp(int(&mut b)?),
        SqlType::TimestampTz => Datum::TimestampTz(int(&mut b)?),
        SqlType::Oid | SqlType::Regclass | SqlType::Regtype => {
            Datum::Oid(int(&mut b)?.try_into().map_err(narrow)?)
        }
        SqlType::Float4 => {
            Datum::Float4(f32::from_le_bytes(b.try_into().map_err(|_| damaged("real"))?))
        }
        SqlType::Float8 => {
            Datum::Float8(f64::from_le_bytes(b.try_into().map_err(|_| damaged("double"))?))
        }
        SqlType::Numeric(_) if b.is_empty() => Datum::NumericNan,
        SqlType::Json => {
            Datum::Json(std::str::from_utf8(b).map_err(|_| damaged("json is not UTF-8"))?.into())
        }
        SqlType::Numeric(_) => {
            let scale = int(&mut b)?;
            if b.is_empty() {
                return Ok(Datum::NumericInf(scale < 0));
            }
            Datum::Numeric(Arc::new(BigDecimal::new(BigInt::from_signed_bytes_le(b), scale)))
        }
        SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::Name
        | SqlType::CharByte => {
            Datum::text(std::str::from_utf8(b).map_err(|_| damaged("text is not UTF-8"))?)
        }
        SqlType::Bytea => Datum::Bytea(b.into()),
        SqlType::Uuid => Datum::Uuid(b.try_into().map_err(|_| damaged("uuid"))?),
        SqlType::Interval => Datum::Interval(Interval {
            months: int(&mut b)?.try_into().map_err(narrow)?,
            days: int(&mut b)?.try_into().map_err(narrow)?,
            micros: int(&mut b)?,
        }),
        SqlType::Jsonb => {
            let text = std::str::from_utf8(b).map_err(|_| damaged("jsonb is not UTF-8"))?;
            Datum::Jsonb(Arc::new(serde_json::from_str(text).map_err(|_| damaged("jsonb"))?))
        }
        SqlType::Array(element) => {
            let mut items = Vec::new();
            while !b.is_empty() {
                let n = read_varint(&mut b)? as usize;
                if n == 0 {
                    items.push(Datum::Null);
                    continue;
                }
                if n - 1 > b.len() {
                    return Err(damaged("array"));
                }
                let (payload, rest) = b.split_at(n - 1);
                b = rest;
                items.push(decode_payload(payload, element)?);
            }
            Datum::Array(Arc::new(ArrayValue { element: (**element).clone(), items }))
        }
        SqlType::Record | SqlType::Void | SqlType::Unknown => return Err(damaged("type")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_skipping() {
        let mut w = RowWriter::new(9);
        w.column(2, &Datum::Int4(-7));
        w.column(3, &Datum::Null);
        w.column(5, &Datum::text("héllo"));
        w.column(9, &Datum::Numeric(Arc::new("-12.500".parse().unwrap())));
        let bytes = w.finish();
        let mut r = RowReader::new(&bytes).unwrap();
        assert_eq!(r.highest(), 9);
        let (id, p) = r.next_column().unwrap().unwrap();
        assert_eq!(
            (id, decode_payload(p, &SqlType::Int4).unwrap().to_string_for_test()),
            (2, "-7".into())
        );
        let (id, _) = r.next_column().unwrap().unwrap();
        assert_eq!(id, 5);
        let (id, p) = r.next_column().unwrap().unwrap();
        let d = decode_payload(p, &SqlType::Numeric(None)).unwrap();
        assert_eq!((id, d.to_string_for_test()), (9, "-12.500".into()));
        assert!(r.next_column().unwrap().is_none());
        for cut in 0..bytes.len() {
            if let Ok(mut r) = RowReader::new(&bytes[..cut]) {
                while let Ok(Some(_)) = r.next_column() {}
            }
        }
    }

    #[test]
    fn located_columns_are_those_that_are_read_and_damage_has_one_name() {
        let mut w = RowWriter::new(200);
        let values = [
            (2, SqlType::Int4, Datum::Int4(-70_000)),
            (3, SqlType::Text, Datum::text("a text")),
            (
                7,
                SqlType::Numeric(Some((9, 2))),
                Datum::Numeric(Arc::new("-12.50".parse().unwrap())),
            ),
            (150, SqlType::Int8, Datum::Int8(i64::MIN)),
        ];
        values.iter().for_each(|(id, _, value)| w.column(*id, value));
        let whole = w.finish();
        let missing = Datum::text("missing");
        let wanted = [1, 2, 3, 4, 7, 150, 199, 200, 201].map(|id| Stored::new(id, &missing));
        let mut cases: Vec<Vec<u8>> = (0..=whole.len()).map(|n| whole[..n].to_vec()).collect();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xFF;
            cases.push(changed);
        }
        for bytes in cases {
            let read = || -> SqlResult<_> {
                let mut reader = RowReader::new(&bytes)?;
                let mut found = vec![None; wanted.len()];
                for (column, found) in wanted.iter().zip(&mut found) {
                    *found = column.missing.as_deref().filter(|_| column.id > reader.highest());
                }
                while let Some((id, payload)) = reader.next_column()? {
                    if let Some(at) = wanted.iter().position(|column| column.id == id) {
                        found[at] = Some(payload);
                    }
                }
                Ok(found)
            };
            let mut located = vec![None; wanted.len()];
            let told = locate(&bytes, &wanted, |at, payload| located[at] = payload);
            match (read(), told) {
                (Ok(found), Ok(())) => assert_eq!(located, found, "{bytes:?}"),
                (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
                // What lies behind the last wanted column is not looked at.
                (Err(_), Ok(())) => assert!(bytes != whole),
                (Ok(_), Err(error)) => panic!("{bytes:?}: {error}"),
            }
        }
    }

    #[test]
    fn decimals_are_the_numbers_that_rows_hold() {
        for text in ["0", "1.5", "-0.01", "99999999999999999999999999999999999.99", "7", "1e5"] {
            let number: BigDecimal = text.parse().unwrap();
            let mut payload = Vec::new();
            encode_payload(&mut payload, &Datum::Numeric(Arc::new(number.clone())));
            let expected = (number * BigDecimal::from(100)).to_string().parse::<BigDecimal>();
            let DecimalOf::Number(units) = decode_decimal(&payload, 2).unwrap() else {
                panic!("{text} fits");
            };
            assert_eq!(BigDecimal::from(units), expected.unwrap(), "{text}");
        }
        let unfit = |value: Datum| {
            let mut payload = Vec::new();
            encode_payload(&mut payload, &value);
            decode_decimal(&payload, 2).unwrap()
        };
        let number = |text: &str| Datum::Numeric(Arc::new(text.parse().unwrap()));
        assert_eq!(unfit(number("1.005")), DecimalOf::Unfit);
        assert_eq!(unfit(number("1e40")), DecimalOf::Unfit);
        assert_eq!(unfit(Datum::NumericInf(true)), DecimalOf::Unfit);
        assert_eq!(unfit(Datum::NumericNan), DecimalOf::NotANumber);
    }

    trait ForTest {
        fn to_string_for_test(&self) -> String;
    }
    impl ForTest for Datum {
        fn to_string_for_test(&self) -> String {
            self.to_text(braid_types::TimeZone::utc()).unwrap()
        }
    }
}
