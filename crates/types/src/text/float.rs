//! Floating-point text: the shortest digits that read back to the same value, laid out as
//! PostgreSQL lays them out.

use crate::text_in::is_blank;
use crate::{SqlError, SqlResult, SqlState};

/// Writes a double.
pub(crate) fn float8_text(value: f64, extra_digits: i8) -> String {
    special(value).unwrap_or_else(|| match extra_digits {
        1.. => layout(&shortest8(value), 15),
        less => rounded(value, 15 + i32::from(less)),
    })
}

/// C's `%.*g`: so many significant digits, zeros at the end cut.
fn rounded(value: f64, digits: i32) -> String {
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    layout(&format!("{mantissa}e{exponent}"), digits)
}

/// Writes a single.
pub(crate) fn float4_text(value: f32, extra_digits: i8) -> String {
    special(f64::from(value)).unwrap_or_else(|| match extra_digits {
        1.. => layout(&shortest4(value), 6),
        less => rounded(f64::from(value), 6 + i32::from(less)),
    })
}

/// The shortest digits that lie strictly between the neighbours' midpoints; of two that are as near
/// the value, the even one.
fn shortest8(value: f64) -> String {
    let text = format!("{value:e}");
    let digits = text.bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count();
    if is_midpoint(&text, value) {
        let longer = (digits..17).map(|n| trimmed(&format!("{value:.n$e}")));
        let inside = |t: &String| t.parse() == Ok(value) && !is_midpoint(t, value);
        return longer.into_iter().find(inside).unwrap_or(text);
    }
    let even = format!("{value:.*e}", digits.saturating_sub(1));
    if even.parse() == Ok(value) { even } else { text }
}

/// The shortest digits that lie strictly between the neighbours' midpoints: PostgreSQL does not
/// count on ties being read back to even. Of two that are as near the value, the even one.
fn shortest4(value: f32) -> String {
    let text = format!("{value:e}");
    let middle = |other: f32| (f64::from(value) + f64::from(other)) / 2.0;
    let inside = |t: &String| {
        let exact: f64 = t.parse().unwrap_or(0.0);
        let ends = [middle(value.next_up()), middle(value.next_down())];
        t.parse() == Ok(value) && !ends.contains(&exact)
    };
    let digits = text.bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count();
    if inside(&text) {
        let even = format!("{value:.*e}", digits.saturating_sub(1));
        return if inside(&even) { even } else { text };
    }
    (digits..9).map(|n| trimmed(&format!("{value:.n$e}"))).find(inside).unwrap_or(text)
}

/// Without zeros at the end of the digits.
fn trimmed(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    format!("{mantissa}e{exponent}")
}

/// Whether a decimal is exactly the middle between a double and one of its neighbours. So short a
/// decimal can only be that where doubles lie more than 1 apart.
fn is_midpoint(scientific: &str, value: f64) -> bool {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let behind = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let (Ok(digits), Ok(exponent)) = (digits.parse::<u128>(), exponent.parse::<i32>()) else {
        return false;
    };
    // The decimal is digits * 10^ten; more than 23 fives do not fit into 54 bits.
    let ten = exponent - behind as i32;
    if value.abs() < 2f64.powi(53) || !(0..=23).contains(&ten) {
        return false;
    }
    let odd = digits * 5u128.pow(ten as u32);
    let bits = value.abs().to_bits();
    let fraction = u128::from(bits & ((1 << 52) - 1)) | (1 << 52);
    let two = (bits >> 52) as i32 - 1075;
    // Midpoints are (2 * fraction +- 1) * 2^(two - 1); at a power of two the lower one is nearer.
    let same = |fraction: u128, two: i32| {
        odd.trailing_zeros() as i32 + ten == fraction.trailing_zeros() as i32 + two
            && odd >> odd.trailing_zeros() == fraction >> fraction.trailing_zeros()
    };
    let below =
        if fraction == 1 << 52 { (4 * fraction - 1, two - 2) } else { (2 * fraction - 1, two - 1) };
    same(2 * fraction + 1, two - 1) || same(below.0, below.1)
}

fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        Some("NaN".to_string())
    } else if value.is_infinite() {
        Some(if value > 0.0 { "Infinity" } else { "-Infinity" }.to_string())
    } else {
        None
    }
}

/// `1.25e3` to `1250`; exponents below -4 or from `limit` on stay scientific.
fn layout(scientific: &str, limit: i32) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if exponent < -4 || exponent >= limit {
        let mut text = format!("{sign}{}", &digits[..1]);
        if digits.len() > 1 {
            text.push('.');
            text.push_str(&digits[1..]);
        }
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        text.push_str(&format!("e{exponent_sign}{:02}", exponent.abs()));
        return text;
    }
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        format!("{sign}{digits}{}", "0".repeat(whole - digits.len()))
    } else {
        format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
    }
}

/// Reads a double.
pub(crate) fn parse_float8(text: &str) -> SqlResult<f64> {
    let trimmed = text.trim_matches(is_blank);
    let value = parse_special(trimmed).or_else(|| plain(trimmed)?.parse().ok());
    match value {
        None => Err(bad("double precision", text)),
        Some(v) if range_lost(v, trimmed) => Err(out_of_range("double precision", text)),
        Some(v) => Ok(v),
    }
}

/// Reads a single.
pub(crate) fn parse_float4(text: &str) -> SqlResult<f32> {
    let trimmed = text.trim_matches(is_blank);
    let value: Option<f32> =
        parse_special(trimmed).map(|v| v as f32).or_else(|| plain(trimmed)?.parse().ok());
    match value {
        None => Err(bad("real", text)),
        Some(v) if range_lost(f64::from(v), trimmed) => Err(out_of_range("real", text)),
        Some(v) => Ok(v),
    }
}

fn plain(text: &str) -> Option<&str> {
    let ok =
        text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    if ok && !text.is_empty() { Some(text) } else { None }
}

fn parse_special(text: &str) -> Option<f64> {
    match text.to_ascii_lowercase().as_str() {
        "nan" => Some(f64::NAN),
        "inf" | "infinity" | "+inf" | "+infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn range_lost(value: f64, text: &str) -> bool {
    let digits = text.split(['e', 'E']).next().unwrap_or("");
    let written_zero = !digits.bytes().any(|b| (b'1'..=b'9').contains(&b));
    (value.is_infinite() && parse_special(text).is_none()) || (value == 0.0 && !written_zero)
}

fn bad(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {type_name}: \"{text}\""),
    )
}

fn out_of_range(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("\"{}\" is out of range for type {type_name}", text.trim()),
    )
}
