//! `numeric` as bytes that sort as numbers.
//!
//! A non-zero value is `0.d1 d2 d3 .. * 100^e` with base-100 digits, `d1` not zero and no zero at
//! the end. After the tag come `e` (4 bytes, sign flipped) and the digits plus one, then 0. For
//! negative values every byte after the tag is complemented. Display scale is not kept: 1.0 and
//! 1.00 are one key.

use bigdecimal::num_bigint::{BigInt, Sign};
use bigdecimal::{BigDecimal, Zero};
use braid_types::{SqlError, SqlResult, SqlState};

use crate::column::{NUMERIC_NEG, NUMERIC_POS, NUMERIC_ZERO, Reader};

pub(crate) fn encode(out: &mut Vec<u8>, value: &BigDecimal) {
    if value.is_zero() {
        out.push(NUMERIC_ZERO);
        return;
    }
    let (digits, scale) = value.as_bigint_and_exponent();
    let negative = digits.sign() == Sign::Minus;
    out.push(if negative { NUMERIC_NEG } else { NUMERIC_POS });
    let from = out.len();
    let mut text = digits.magnitude().to_str_radix(10);
    // value = 0.text * 10^exp10; pairs must be cut at even powers of ten.
    let mut exp10 = text.len() as i64 - scale;
    if exp10.rem_euclid(2) == 1 {
        text.insert(0, '0');
        exp10 += 1;
    }
    let exp100 = (exp10 / 2) as i32;
    out.extend_from_slice(&((exp100 as u32) ^ (1 << 31)).to_be_bytes());
    let mut pairs: Vec<u8> = text
        .as_bytes()
        .chunks(2)
        .map(|p| (p[0] - b'0') * 10 + p.get(1).map_or(0, |d| d - b'0'))
        .collect();
    while pairs.last() == Some(&0) {
        pairs.pop();
    }
    out.extend(pairs.iter().map(|p| p + 1));
    out.push(0);
    if negative {
        out[from..].iter_mut().for_each(|b| *b = !*b);
    }
}

/// The number, or `None` for infinity.
pub(crate) fn decode(r: &mut Reader<'_>, tag: u8) -> SqlResult<Option<BigDecimal>> {
    if tag == NUMERIC_ZERO {
        return Ok(Some(BigDecimal::zero()));
    }
    let mask = if tag == NUMERIC_NEG { 0xFF } else { 0 };
    let exp = r.array::<4>()?.map(|b| b ^ mask);
    if exp == [0xFF; 4] && tag == NUMERIC_POS {
        return match r.byte()? {
            0 => Ok(None),
            _ => Err(SqlError::new(SqlState::DATA_CORRUPTED, "a key holds a bad numeric")),
        };
    }
    let exp100 = (u32::from_be_bytes(exp) ^ (1 << 31)) as i32;
    let mut text = String::new();
    loop {
        match r.byte()? ^ mask {
            0 => break,
            p @ 1..=100 => text.push_str(&format!("{:02}", p - 1)),
            _ => {
                return Err(SqlError::new(SqlState::DATA_CORRUPTED, "a key holds a bad numeric"));
            }
        }
    }
    let magnitude: BigInt = text
        .parse()
        .map_err(|_| SqlError::new(SqlState::DATA_CORRUPTED, "a key holds an empty numeric"))?;
    let digits = if tag == NUMERIC_NEG { -magnitude } else { magnitude };
    Ok(Some(BigDecimal::new(digits, text.len() as i64 - i64::from(exp100) * 2).normalized()))
}

pub(crate) fn skip(r: &mut Reader<'_>, tag: u8) -> SqlResult<()> {
    debug_assert!(tag == NUMERIC_NEG || tag == NUMERIC_POS);
    let mask = if tag == NUMERIC_NEG { 0xFF } else { 0 };
    r.array::<4>()?;
    while r.byte()? ^ mask != 0 {}
    Ok(())
}
