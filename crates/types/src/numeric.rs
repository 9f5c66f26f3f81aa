//! Exact decimal arithmetic with PostgreSQL's result scales.
//!
//! A value is an integer and a display scale: 1.50 is (150, 2). Addition keeps the larger scale,
//! multiplication adds scales, division picks enough digits for 16 significant ones.

use std::cmp::Ordering;

pub use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::{BigInt, Sign};
use bigdecimal::num_traits::{Signed, ToPrimitive, Zero};

use crate::{Datum, SqlError, SqlResult, SqlState};

const MAX_DISPLAY_SCALE: i64 = 1_000;
const MAX_STORED_SCALE: i64 = 16_383;
const MAX_WHOLE_DIGITS: i64 = 131_072;

/// The double for an infinity of this sign.
pub fn infinity(negative: bool) -> f64 {
    if negative { f64::NEG_INFINITY } else { f64::INFINITY }
}

/// 10 to the power `n`, of those that a word holds.
const fn small_pow10(n: usize) -> i64 {
    const ALL: [i64; 19] = {
        let mut all = [1; 19];
        let mut at = 1;
        while at < all.len() {
            all[at] = all[at - 1] * 10;
            at += 1;
        }
        all
    };
    ALL[n]
}

/// 10 to the power `n`.
fn pow10(n: i64) -> BigInt {
    if n <= 18 {
        return BigInt::from(small_pow10(n.max(0) as usize));
    }
    BigInt::from(10u8).pow(u32::try_from(n.max(0)).unwrap_or(u32::MAX))
}

/// The integer and scale of a value.
pub fn parts(value: &BigDecimal) -> (BigInt, i64) {
    let (digits, scale) = value.as_bigint_and_exponent();
    if scale < 0 { (digits * pow10(-scale), 0) } else { (digits, scale) }
}

/// A datum of a finite value.
///
/// # Errors
/// 22003 when it has more digits than `numeric` may have.
pub fn datum(value: BigDecimal) -> SqlResult<Datum> {
    let (digits, scale) = value.as_bigint_and_exponent();
    if digits.bits() > 40_000 || !(0..=MAX_STORED_SCALE).contains(&scale) {
        let (digits, scale) = parts(&value);
        if digits.to_string().len() as i64 - scale > MAX_WHOLE_DIGITS {
            return Err(overflow());
        }
        let rounded = round(&BigDecimal::new(digits, scale), scale.min(MAX_STORED_SCALE));
        return Ok(Datum::Numeric(rounded.into()));
    }
    Ok(Datum::Numeric(value.into()))
}

fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

/// An integer as numeric.
pub fn from_i128(value: i128) -> BigDecimal {
    BigDecimal::new(BigInt::from(value), 0)
}

/// The integer that a value is at this scale; `None` if that would lose digits or needs more than
/// 38 of them.
pub fn at_scale(value: &BigDecimal, scale: u8) -> Option<i128> {
    let (digits, have) = parts(value);
    let small = match i64::from(scale) - have {
        0 => digits.to_i128()?,
        more @ 1.. => digits.to_i128()?.checked_mul(10i128.checked_pow(more.try_into().ok()?)?)?,
        fewer => {
            let divisor = pow10(-fewer);
            if !(&digits % &divisor).is_zero() {
                return None;
            }
            (digits / divisor).to_i128()?
        }
    };
    (small.unsigned_abs() < 10u128.pow(38)).then_some(small)
}

/// As [`at_scale`], for numbers of up to 32 bytes: two's complement, the lowest byte first.
pub fn at_scale_wide(value: &BigDecimal, scale: u8) -> Option<[u8; 32]> {
    let rounded = round(value, i64::from(scale));
    if compare(&rounded, value).is_ne() {
        return None;
    }
    let bytes = parts(&rounded).0.to_signed_bytes_le();
    let fill = if bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xFF } else { 0 };
    let mut out = [fill; 32];
    out.get_mut(..bytes.len())?.copy_from_slice(&bytes);
    Some(out)
}

/// The value of an integer of any length at a scale: two's complement, the lowest byte first.
pub fn from_scaled_wide(bytes: &[u8], scale: u8) -> BigDecimal {
    BigDecimal::new(BigInt::from_signed_bytes_le(bytes), i64::from(scale))
}

/// The value of an integer at a scale.
pub fn from_scaled(digits: i128, scale: u8) -> BigDecimal {
    BigDecimal::new(BigInt::from(digits), i64::from(scale))
}

/// Rounds half away from zero to `scale` digits after the point; negative scales round to tens.
pub fn round(value: &BigDecimal, scale: i64) -> BigDecimal {
    let (digits, old) = parts(value);
    if scale >= old {
        return BigDecimal::new(digits * pow10(scale - old), scale);
    }
    let divisor = pow10(old - scale);
    let half = &divisor / 2u8;
    let magnitude = (digits.abs() + half) / &divisor;
    let rounded = if digits.is_negative() { -magnitude } else { magnitude };
    if scale < 0 {
        BigDecimal::new(rounded * pow10(-scale), 0)
    } else {
        BigDecimal::new(rounded, scale)
    }
}

/// Cuts digits off towards zero.
pub fn trunc(value: &BigDecimal, scale: i64) -> BigDecimal {
    let (digits, old) = parts(value);
    if scale >= old {
        return BigDecimal::new(digits * pow10(scale - old), scale);
    }
    let cut = digits / pow10(old - scale);
    if scale < 0 { BigDecimal::new(cut * pow10(-scale), 0) } else { BigDecimal::new(cut, scale) }
}

/// Largest integer not above (or with `up`, smallest not below) the value.
pub fn floor(value: &BigDecimal, up: bool) -> BigDecimal {
    let (digits, scale) = parts(value);
    let divisor = pow10(scale);
    let quotient = &digits / &divisor;
    let rest = &digits - &quotient * &divisor;
    let adjusted = match (rest.sign(), up) {
        (Sign::Minus, false) => quotient - 1,
        (Sign::Plus, true) => quotient + 1,
        _ => quotient,
    };
    BigDecimal::new(adjusted, 0)
}

/// Sum.
pub fn add(a: &BigDecimal, b: &BigDecimal) -> BigDecimal {
    let (x, sx) = parts(a);
    let (y, sy) = parts(b);
    let scale = sx.max(sy);
    BigDecimal::new(x * pow10(scale - sx) + y * pow10(scale - sy), scale)
}

/// Difference.
pub fn sub(a: &BigDecimal, b: &BigDecimal) -> BigDecimal {
    add(a, &neg(b))
}

/// Opposite.
pub fn neg(a: &BigDecimal) -> BigDecimal {
    let (x, s) = parts(a);
    BigDecimal::new(-x, s)
}

/// Product.
pub fn mul(a: &BigDecimal, b: &BigDecimal) -> BigDecimal {
    let (x, sx) = parts(a);
    let (y, sy) = parts(b);
    let product = BigDecimal::new(x * y, sx + sy);
    if sx + sy > MAX_STORED_SCALE { round(&product, MAX_STORED_SCALE) } else { product }
}

/// Weight of the first base-10000 digit, and that digit.
fn leading(digits: &BigInt, scale: i64) -> (i64, u32) {
    if digits.is_zero() {
        return (0, 0);
    }
    let text = digits.abs().to_string();
    let whole = text.len() as i64 - scale;
    let weight = (whole - 1).div_euclid(4);
    let first_len = whole - weight * 4;
    let mut first = 0;
    for at in 0..first_len as usize {
        first = first * 10 + text.as_bytes().get(at).map_or(0, |b| u32::from(b - b'0'));
    }
    (weight, first)
}

/// The scale PostgreSQL gives to a quotient.
fn div_scale(x: &BigInt, sx: i64, y: &BigInt, sy: i64) -> i64 {
    let (w1, f1) = leading(x, sx);
    let (w2, f2) = leading(y, sy);
    let mut weight = w1 - w2;
    if f1 <= f2 {
        weight -= 1;
    }
    (16 - weight * 4).max(sx).max(sy).clamp(0, MAX_DISPLAY_SCALE)
}

/// Division by zero, 22012.
pub fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// Quotient.
///
/// # Errors
/// 22012.
pub fn div(a: &BigDecimal, b: &BigDecimal) -> SqlResult<BigDecimal> {
    let (x, sx) = parts(a);
    let (y, sy) = parts(b);
    if y.is_zero() {
        return Err(division_by_zero());
    }
    let scale = div_scale(&x, sx, &y, sy);
    Ok(div_to(&x, sx, &y, sy, scale))
}

fn div_to(x: &BigInt, sx: i64, y: &BigInt, sy: i64, scale: i64) -> BigDecimal {
    // One digit more than asked, then round: x / y = (x * 10^(scale + 1 + sy - sx)) / y.
    let shift = scale + 1 + sy - sx;
    let (numerator, denominator) =
        if shift >= 0 { (x * pow10(shift), y.clone()) } else { (x.clone(), y * pow10(-shift)) };
    let half_away = {
        // The extra digit alone decides half away from zero, as truncation only lowers it.
        let quotient = numerator / denominator;
        BigDecimal::new(quotient, scale + 1)
    };
    round(&half_away, scale)
}

/// Integer part of the quotient, towards zero.
///
/// # Errors
/// 22012.
pub fn div_trunc(a: &BigDecimal, b: &BigDecimal) -> SqlResult<BigDecimal> {
    let (x, sx) = parts(a);
    let (y, sy) = parts(b);
    if y.is_zero() {
        return Err(division_by_zero());
    }
    Ok(BigDecimal::new((x * pow10(sy)) / (y * pow10(sx)), 0))
}

/// Remainder with the sign of the dividend.
///
/// # Errors
/// 22012.
pub fn rem(a: &BigDecimal, b: &BigDecimal) -> SqlResult<BigDecimal> {
    let (x, sx) = parts(a);
    let (y, sy) = parts(b);
    if y.is_zero() {
        return Err(division_by_zero());
    }
    let scale = sx.max(sy);
    Ok(BigDecimal::new((x * pow10(scale - sx)) % (y * pow10(scale - sy)), scale))
}

/// Order of two finite values.
pub fn compare(a: &BigDecimal, b: &BigDecimal) -> Ordering {
    let (x, sx) = parts(a);
    let (y, sy) = parts(b);
    if sx == sy {
        return x.cmp(&y);
    }
    let scale = sx.max(sy);
    (x * pow10(scale - sx)).cmp(&(y * pow10(scale - sy)))
}

/// Square root with at least 16 significant digits.
///
/// # Errors
/// 2201F for negative values.
pub fn sqrt(a: &BigDecimal) -> SqlResult<BigDecimal> {
    let (x, sx) = parts(a);
    if x.is_negative() {
        return Err(SqlError::new(
            SqlState("2201F"),
            "cannot take square root of a negative number",
        ));
    }
    let (weight, _) = leading(&x, sx);
    let result_weight = (weight + 1) * 4 / 2 - 1;
    let scale = (16 - result_weight).max(sx).clamp(0, MAX_DISPLAY_SCALE);
    sqrt_to(a, scale)
}

/// Square root with so many digits after the point.
///
/// # Errors
/// 2201F for negative values.
pub fn sqrt_to(a: &BigDecimal, scale: i64) -> SqlResult<BigDecimal> {
    let (x, sx) = parts(a);
    if x.is_negative() {
        return Err(SqlError::new(
            SqlState("2201F"),
            "cannot take square root of a negative number",
        ));
    }
    let shift = 2 * (scale + 1) - sx;
    let shifted = if shift >= 0 { x * pow10(shift) } else { x / pow10(-shift) };
    Ok(round(&BigDecimal::new(shifted.sqrt(), scale + 1), scale))
}

/// Nearest double.
pub fn to_f64(value: &BigDecimal) -> f64 {
    text(value).parse().unwrap_or(f64::NAN)
}

/// From a finite double with this many significant digits.
pub(crate) fn from_f64(value: f64, digits: usize) -> Option<BigDecimal> {
    if !value.is_finite() {
        return None;
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e')?;
    let exponent: i64 = exponent.parse().ok()?;
    let mut value = parse(mantissa)?;
    let (mut digits, mut scale) = parts(&value);
    scale -= exponent;
    let ten = BigInt::from(10u8);
    while scale > 0 && (&digits % &ten).is_zero() {
        digits /= &ten;
        scale -= 1;
    }
    if digits.is_zero() {
        scale = 0;
    }
    value = BigDecimal::new(digits, scale);
    let (digits, scale) = parts(&value);
    Some(BigDecimal::new(digits, scale))
}

/// Rounded half away from zero to an integer, if it fits.
pub fn to_i128(value: &BigDecimal) -> Option<i128> {
    parts(&round(value, 0)).0.to_i128()
}

/// A number of at most 18 digits that is written as most are, `-12.50`; `None` for all else.
fn parse_short(text: &str) -> Option<BigDecimal> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !(1..=19).contains(&digits.len()) {
        return None;
    }
    let (mut value, mut point) = (0i64, None);
    for (at, byte) in digits.bytes().enumerate() {
        match byte {
            b'0'..=b'9' if at < 18 || point.is_some() => {
                value = value * 10 + i64::from(byte - b'0');
            }
            b'.' if point.is_none() && at > 0 => point = Some(at),
            _ => return None,
        }
    }
    let scale = point.map_or(0, |point| digits.len() - point - 1);
    if point.is_some() && scale == 0 {
        return None;
    }
    let value = if digits.len() < text.len() { -value } else { value };
    Some(BigDecimal::new(BigInt::from(value), scale as i64))
}

/// Parses plain and scientific notation; no surrounding blanks, no specials.
pub fn parse(text: &str) -> Option<BigDecimal> {
    parse_short(text).or_else(|| parse_any(text))
}

fn parse_any(text: &str) -> Option<BigDecimal> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => {
            let exponent = &rest[at + 1..];
            let digits = exponent.trim_start_matches(['+', '-']);
            if digits.is_empty() || exponent.len() - digits.len() > 1 {
                return None;
            }
            (&rest[..at], exponent.parse::<i64>().ok()?)
        }
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    if !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    if exponent.abs() > 200_000 || whole.len() + fraction.len() > 200_000 {
        return None;
    }
    let mut all = String::with_capacity(whole.len() + fraction.len());
    all.push_str(whole);
    all.push_str(fraction);
    let mut digits = BigInt::parse_bytes(all.as_bytes(), 10)?;
    if negative {
        digits = -digits;
    }
    let scale = fraction.len() as i64 - exponent;
    Some(if scale < 0 {
        BigDecimal::new(digits * pow10(-scale), 0)
    } else {
        BigDecimal::new(digits, scale)
    })
}

/// Writes all digits, never scientific.
pub fn text(value: &BigDecimal) -> String {
    let (digits, scale) = parts(value);
    let magnitude = digits.abs().to_string();
    let scale = scale as usize;
    let mut out = String::new();
    if digits.is_negative() {
        out.push('-');
    }
    if scale == 0 {
        out.push_str(&magnitude);
    } else if magnitude.len() <= scale {
        out.push_str("0.");
        out.push_str(&"0".repeat(scale - magnitude.len()));
        out.push_str(&magnitude);
    } else {
        out.push_str(&magnitude[..magnitude.len() - scale]);
        out.push('.');
        out.push_str(&magnitude[magnitude.len() - scale..]);
    }
    out
}

/// Whether a value is one of `numeric(precision, scale)` as it stands. `false` may be wrong.
pub(crate) fn fits(value: &BigDecimal, precision: u16, scale: i16) -> bool {
    let (digits, have) = value.as_bigint_and_scale();
    if have != i64::from(scale) || precision > 18 {
        return false;
    }
    digits.to_i64().is_some_and(|d| d.unsigned_abs() < small_pow10(precision.into()) as u64)
}

/// Fits a value to `numeric(precision, scale)`.
///
/// # Errors
/// 22003 with PostgreSQL's detail.
pub fn fit(value: &BigDecimal, precision: u16, scale: i16) -> SqlResult<BigDecimal> {
    let rounded = round(value, i64::from(scale));
    let (digits, have) = parts(&rounded);
    let whole = i64::from(precision) - i64::from(scale);
    let limit = pow10(whole + have);
    if digits.abs() >= limit {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")
            .with_detail(format!(
                "A field with precision {precision}, scale {scale} must round to an absolute value \
             less than {}{}.",
                if whole == 0 { String::new() } else { "10^".to_string() },
                if whole == 0 { "1".to_string() } else { whole.to_string() },
            )));
    }
    Ok(rounded)
}

/// The value without trailing zeros: equal values give equal results.
pub fn normalized(value: &BigDecimal) -> (BigInt, i64) {
    let (mut digits, mut scale) = parts(value);
    let ten = BigInt::from(10u8);
    if digits.is_zero() {
        return (digits, 0);
    }
    while scale > 0 && (&digits % &ten).is_zero() {
        digits /= &ten;
        scale -= 1;
    }
    (digits, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_are_read_as_all_are() {
        let digits = "1234567890123456789012";
        let mut short = 0;
        for whole in 0..=20 {
            for fraction in 0..=20 {
                for sign in ["", "-", "+"] {
                    for (before, after) in [("", ""), ("0", ""), ("", "e1"), ("", "."), (".", "")] {
                        let (a, b) = (&digits[..whole], &digits[22 - fraction..]);
                        let point = if fraction > 0 { "." } else { "" };
                        let text = format!("{sign}{before}{a}{point}{b}{after}");
                        let Some(read) = parse_short(&text) else { continue };
                        short += 1;
                        let any = parse_any(&text).expect("it is a number");
                        assert_eq!(read.as_bigint_and_scale(), any.as_bigint_and_scale(), "{text}");
                    }
                }
            }
        }
        assert!(short > 500, "{short}");
        for none in ["", "-", ".", "5.", ".5", "1.2.3", "--1", "1 ", "1_0", "NaN", "1e2"] {
            assert_eq!(parse_short(none), None, "{none:?}");
        }
    }

    #[test]
    fn what_fits_as_it_stands_is_not_changed_by_fitting() {
        let mut fitting = 0;
        for text in ["0", "0.00", "1", "-1.5", "12.34", "99999999.99", "-100000000.00", "1e20"] {
            let value = parse(text).expect("it is a number");
            for (precision, scale) in (1..20).flat_map(|p| (-2..6).map(move |s| (p, s))) {
                if fits(&value, precision, scale) {
                    fitting += 1;
                    let fitted = fit(&value, precision, scale).expect("it fits");
                    assert_eq!(fitted.as_bigint_and_scale(), value.as_bigint_and_scale());
                }
            }
        }
        assert!(fitting > 50, "{fitting}");
    }
}
