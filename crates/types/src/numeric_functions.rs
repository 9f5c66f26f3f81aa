//! `exp`, `ln`, `log`, `power`, `sqrt` of `numeric`: computed on integers with guard digits, with
//! the result scales of PostgreSQL 15.
//!
//! ```text
//!   ln x    = ln(m) + k ln(10), m in [0.1, 1): roots until m is near 1, then a series
//!   exp x   = (exp(x / 2^k))^(2^k), a Taylor series inside
//!   power   = exp(y ln x) for fractions, repeated squaring for whole exponents
//! ```
//! PostgreSQL chooses how many digits to show from an estimate of the result's weight in base
//! 10,000; the estimates here are the same, so that the same digits are shown.

use bigdecimal::num_bigint::BigInt;
use bigdecimal::num_traits::{One, Signed, ToPrimitive, Zero};

use std::f64::consts::LOG10_E;

use super::numeric::{self, BigDecimal, parts, round};
use crate::{SqlError, SqlResult, SqlState};

const MIN_SIG_DIGITS: i64 = 16;
const MAX_DISPLAY: i64 = 1_000;
/// Beyond this, results of `exp` overflow or vanish.
const MAX_RESULT: i64 = 2_000;

fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

fn pow10(n: i64) -> BigInt {
    BigInt::from(10u8).pow(n.max(0) as u32)
}

/// A fixed-point number with `scale` digits after the point.
fn fixed(value: &BigDecimal, scale: i64) -> BigInt {
    let (digits, have) = parts(value);
    if have <= scale { digits * pow10(scale - have) } else { digits / pow10(have - scale) }
}

fn from_fixed(value: BigInt, scale: i64, shown: i64) -> BigDecimal {
    round(&BigDecimal::new(value, scale), shown)
}

/// Base-10000 digits, most significant first, and the weight of the first.
fn base_digits(value: &BigDecimal) -> (Vec<u32>, i64) {
    let (digits, scale) = parts(value);
    if digits.is_zero() {
        return (Vec::new(), 0);
    }
    let pad = (4 - scale.rem_euclid(4)) % 4;
    let text = (digits.abs() * pow10(pad)).to_string();
    let fraction = (scale + pad) / 4;
    let lead = (4 - text.len() % 4) % 4;
    let text = format!("{}{text}", "0".repeat(lead));
    let mut groups: Vec<u32> = text
        .as_bytes()
        .chunks(4)
        .map(|c| c.iter().fold(0, |n, b| n * 10 + u32::from(b - b'0')))
        .collect();
    let weight = groups.len() as i64 - fraction - 1;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    (groups, weight)
}

/// The estimated decimal weight of `ln(value)`.
fn ln_weight(value: &BigDecimal) -> i64 {
    let nine_tenths = BigDecimal::new(9.into(), 1);
    let eleven_tenths = BigDecimal::new(11.into(), 1);
    let near_one = numeric::compare(value, &nine_tenths).is_ge()
        && numeric::compare(value, &eleven_tenths).is_le();
    if near_one {
        let (digits, weight) = base_digits(&numeric::sub(value, &numeric::from_i128(1)));
        return match digits.first() {
            Some(first) => weight * 4 + f64::from(*first).log10() as i64,
            None => 0,
        };
    }
    let (digits, weight) = base_digits(value);
    let Some(first) = digits.first() else { return 0 };
    let (mut lead, mut place) = (f64::from(*first), weight * 4);
    if let Some(second) = digits.get(1) {
        lead = lead * 10_000.0 + f64::from(*second);
        place -= 4;
    }
    let estimate = lead.ln() + place as f64 * std::f64::consts::LN_10;
    estimate.abs().log10() as i64
}

/// `ln(2)` or `ln(10)` and others of small whole numbers, by atanh series.
fn ln_series(value: &BigInt, one: &BigInt) -> BigInt {
    // ln v = 2 atanh((v - 1) / (v + 1)), for v near 1.
    let z = (value - one) * one / (value + one);
    let square = &z * &z / one;
    let mut term = z.clone();
    let mut sum = z;
    let mut k = 3u32;
    loop {
        term = &term * &square / one;
        let part = &term / k;
        if part.is_zero() {
            return sum * 2;
        }
        sum += part;
        k += 2;
    }
}

/// Natural logarithm in fixed point with `scale` digits; the value is above zero.
fn ln_fixed(value: &BigDecimal, scale: i64) -> BigInt {
    let (digits, have) = parts(value);
    let length = digits.to_string().len() as i64;
    // value = m * 10^k with m in [0.1, 1).
    let k = length - have;
    let work = scale + 12 + k.unsigned_abs().to_string().len() as i64;
    let one = pow10(work);
    let mut m =
        if length <= work { digits * pow10(work - length) } else { digits / pow10(length - work) };
    // Square roots bring m near 1; each doubles the logarithm.
    let near = &one / 100u32;
    let mut doubled = 0u32;
    let extra = pow10(8);
    m *= &extra;
    let fine = &one * &extra;
    let near = near * &extra;
    while (&m - &fine).abs() > near {
        m = (&m * &fine).sqrt();
        doubled += 1;
    }
    let mut result = ln_series(&m, &fine) << doubled;
    if k != 0 {
        result += ln_ten(&fine) * k;
    }
    let drop = work + 8 - scale;
    result / pow10(drop)
}

fn ln_ten(one: &BigInt) -> BigInt {
    // ln 10 = 3 ln 2 + ln 1.25, ln 2 = 2 atanh(1/3).
    let two: BigInt = one * 2;
    let quarter: BigInt = one * 5 / 4;
    ln_series(&two, one) * 3 + ln_series(&quarter, one)
}

/// `ln` with so many digits after the point.
fn ln_to(value: &BigDecimal, scale: i64) -> BigDecimal {
    let guard = scale.max(0) + 4;
    from_fixed(ln_fixed(value, guard), guard, scale)
}

fn check_logarithm(value: &BigDecimal) -> SqlResult<()> {
    let (digits, _) = parts(value);
    let domain = |message: &str| Err(SqlError::new(SqlState("2201E"), message));
    if digits.is_zero() {
        return domain("cannot take logarithm of zero");
    }
    if digits.is_negative() {
        return domain("cannot take logarithm of a negative number");
    }
    Ok(())
}

/// Natural logarithm.
///
/// # Errors
/// 2201E for zero and negative values.
pub fn ln(value: &BigDecimal) -> SqlResult<BigDecimal> {
    check_logarithm(value)?;
    let scale = (MIN_SIG_DIGITS - ln_weight(value)).max(parts(value).1).clamp(0, MAX_DISPLAY);
    Ok(ln_to(value, scale))
}

/// Logarithm to a base.
///
/// # Errors
/// 2201E for zero and negative values; 22012 for base 1.
pub fn log(base: &BigDecimal, value: &BigDecimal) -> SqlResult<BigDecimal> {
    check_logarithm(base)?;
    check_logarithm(value)?;
    let weight = ln_weight(value) - ln_weight(base);
    let scale =
        (MIN_SIG_DIGITS - weight).max(parts(base).1).max(parts(value).1).clamp(0, MAX_DISPLAY);
    let digits = scale + 24;
    let (above, below) = (ln_fixed(value, digits), ln_fixed(base, digits));
    if below.is_zero() {
        return Err(numeric::division_by_zero());
    }
    Ok(from_fixed(above * pow10(digits) / below, digits, scale))
}

/// Square root.
///
/// # Errors
/// 2201F for negative values.
pub fn sqrt(value: &BigDecimal) -> SqlResult<BigDecimal> {
    numeric::sqrt(value)
}

/// `e` to the power of a value, with so many digits after the point.
fn exp_to(value: &BigDecimal, scale: i64) -> SqlResult<BigDecimal> {
    let approximate = numeric::to_f64(value);
    if approximate.abs() >= (MAX_RESULT * 3) as f64 {
        if approximate > 0.0 {
            return Err(overflow());
        }
        return Ok(BigDecimal::new(BigInt::zero(), scale));
    }
    let whole_digits = (approximate * LOG10_E).max(0.0) as i64 + 2;
    // x / 2^k is below 1/1000, then the result is squared k times.
    let mut halvings = 0u32;
    let mut size = approximate.abs();
    while size > 0.001 {
        size /= 2.0;
        halvings += 1;
    }
    let work = (scale + whole_digits).max(0) + i64::from(halvings) + 12;
    let one = pow10(work);
    let x = fixed(value, work) >> halvings;
    let mut sum = &one + &x;
    let mut term = x.clone();
    let mut n = 2u32;
    loop {
        term = &term * &x / &one / n;
        if term.is_zero() || (n > 3 && term == BigInt::from(-1)) {
            break;
        }
        sum += &term;
        n += 1;
    }
    for _ in 0..halvings {
        sum = &sum * &sum / &one;
    }
    Ok(from_fixed(sum, work, scale))
}

/// The scale that shows enough digits of a result of about `10^weight`.
fn shown(weight: f64, at_least: i64) -> i64 {
    let weight = weight.clamp(-(MAX_RESULT as f64), MAX_RESULT as f64);
    (MIN_SIG_DIGITS - weight as i64).max(at_least).clamp(0, MAX_DISPLAY)
}

/// `e` to the power of a value.
///
/// # Errors
/// 22003.
pub fn exp(value: &BigDecimal) -> SqlResult<BigDecimal> {
    let weight = numeric::to_f64(value) * LOG10_E;
    exp_to(value, shown(weight, parts(value).1))
}

fn invalid(message: &str) -> SqlError {
    SqlError::new(SqlState("2201F"), message)
}

/// Power.
///
/// # Errors
/// 22003 on overflow, 2201F for what has no real result.
pub fn power(base: &BigDecimal, exponent: &BigDecimal) -> SqlResult<BigDecimal> {
    let (b, _) = parts(base);
    let (e, _) = parts(exponent);
    if b.is_zero() && e.is_negative() {
        return Err(invalid("zero raised to a negative power is undefined"));
    }
    let whole = numeric::compare(&numeric::trunc(exponent, 0), exponent).is_eq();
    if b.is_negative() && !whole {
        return Err(invalid(
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    if whole && let Some(n) = numeric::to_i128(exponent).and_then(|n| i32::try_from(n).ok()) {
        return whole_power(base, n);
    }
    if b.is_zero() {
        return Ok(BigDecimal::new(BigInt::zero(), MIN_SIG_DIGITS));
    }
    let odd = whole && (numeric::trunc(exponent, 0).as_bigint_and_exponent().0 % 2u8).is_one();
    let magnitude = base.abs();
    let ln_weight = ln_weight(&magnitude);
    let rough = numeric::to_f64(&ln_to(&magnitude, (8 - ln_weight).clamp(0, MAX_DISPLAY)))
        * numeric::to_f64(exponent);
    if rough.abs() > MAX_RESULT as f64 * 3.01 {
        if rough > 0.0 {
            return Err(overflow());
        }
        return Ok(BigDecimal::new(BigInt::zero(), MAX_DISPLAY));
    }
    let weight = rough * LOG10_E;
    let scale = shown(weight, parts(base).1.max(parts(exponent).1));
    let digits = (scale + weight as i64).max(0) + 30 + exponent_digits(exponent);
    let product = numeric::mul(&ln_to(&magnitude, digits), exponent);
    let result = exp_to(&product, scale)?;
    Ok(if b.is_negative() && odd { numeric::neg(&result) } else { result })
}

fn exponent_digits(exponent: &BigDecimal) -> i64 {
    let (digits, scale) = parts(exponent);
    (digits.to_string().len() as i64 - scale).max(0)
}

fn whole_power(base: &BigDecimal, n: i32) -> SqlResult<BigDecimal> {
    let scale = MIN_SIG_DIGITS.max(parts(base).1).clamp(0, MAX_DISPLAY);
    let (digits, have) = parts(base);
    match n {
        0 => return Ok(round(&numeric::from_i128(1), scale)),
        1 => return Ok(round(base, scale)),
        2 => return Ok(round(&numeric::mul(base, base), scale)),
        _ if digits.is_zero() => return Ok(BigDecimal::new(BigInt::zero(), scale)),
        _ => {}
    }
    let (groups, weight) = base_digits(base);
    let (mut lead, mut place) = (0f64, weight * 4 + 4);
    for group in groups.iter().take(4) {
        lead = lead * 10_000.0 + f64::from(*group);
        place -= 4;
    }
    let estimate = f64::from(n) * (lead.log10() + place as f64);
    if estimate > 3.0 * 32_767.0 * 4.0 {
        return Err(overflow());
    }
    if estimate + 1.0 < -(scale as f64) || estimate + 1.0 < -(MAX_DISPLAY as f64) {
        return Ok(BigDecimal::new(BigInt::zero(), scale));
    }
    // So many significant digits are kept on the way.
    let keep = (1 + scale + estimate as i64).max(1) + 16 + f64::from(n).abs().log10() as i64 * 2;
    let keep = if n < 0 { keep + (-2.0 * estimate.min(0.0)) as i64 + 16 } else { keep };
    let cut = |value: BigInt, scale: i64| -> (BigInt, i64) {
        let extra = value.bits() as i64 * 3 / 10 - keep;
        if extra > 32 { (value / pow10(extra), scale - extra) } else { (value, scale) }
    };
    let (mut result, mut result_scale) = (BigInt::one(), 0i64);
    let (mut square, mut square_scale) = (digits, have);
    let mut left = n.unsigned_abs();
    loop {
        if left & 1 == 1 {
            (result, result_scale) = cut(&result * &square, result_scale + square_scale);
        }
        left >>= 1;
        if left == 0 {
            break;
        }
        (square, square_scale) = cut(&square * &square, square_scale * 2);
    }
    if n > 0 {
        let value = BigDecimal::new(result, result_scale);
        return Ok(round(&value, scale));
    }
    // 1 / (result * 10^-result_scale), rounded half away from zero.
    let shift = scale + 2 + result_scale;
    let quotient = if shift >= 0 { pow10(shift) / result } else { BigInt::zero() };
    Ok(round(&BigDecimal::new(quotient, scale + 2), scale))
}

/// `n!`.
///
/// # Errors
/// 22003.
pub fn factorial(n: i64) -> SqlResult<BigDecimal> {
    if n < 0 {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "factorial of a negative number is undefined",
        ));
    }
    if n > 32_177 {
        return Err(overflow());
    }
    let mut product = BigInt::one();
    for k in 2..=n {
        product *= k.to_u32().unwrap_or(1);
    }
    Ok(BigDecimal::new(product, 0))
}

/// Greatest common divisor.
pub fn gcd(a: &BigDecimal, b: &BigDecimal) -> BigDecimal {
    let (x, sx) = parts(a);
    let (y, sy) = parts(b);
    let scale = sx.max(sy);
    let (mut x, mut y) = ((x * pow10(scale - sx)).abs(), (y * pow10(scale - sy)).abs());
    while !y.is_zero() {
        (x, y) = (y.clone(), x % y);
    }
    BigDecimal::new(x, scale)
}

/// Least common multiple.
///
/// # Errors
/// None for finite values; the signature is that of a division.
pub fn lcm(a: &BigDecimal, b: &BigDecimal) -> SqlResult<BigDecimal> {
    let (x, y) = (numeric::parts(a).0, numeric::parts(b).0);
    let scale = parts(a).1.max(parts(b).1);
    if x.is_zero() || y.is_zero() {
        return Ok(BigDecimal::new(BigInt::zero(), scale));
    }
    let quotient = numeric::div_trunc(a, &gcd(a, b))?;
    Ok(round(&numeric::mul(&quotient, b).abs(), scale))
}
