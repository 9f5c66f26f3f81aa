//! Operators over `money`.

use braid_types::ordered::money::{cents, of, out_of_range};
use braid_types::{Datum, SqlResult, numeric};

use super::{f64_of, i64_of};
use crate::registry::Table;

fn cents_of(value: &Datum) -> i64 {
    match value {
        Datum::Ordered(value) => cents(value),
        _ => 0,
    }
}

fn money(cents: Option<i64>) -> SqlResult<Datum> {
    cents.map(|c| Datum::Ordered(of(c))).ok_or_else(out_of_range)
}

/// A number of cents that a double is, rounded.
fn rounded(value: f64) -> SqlResult<Datum> {
    let value = value.round_ties_even();
    // The first double above the greatest integer is 2^63.
    let fits = value >= -(2f64.powi(63)) && value < 2f64.powi(63);
    money(fits.then_some(value as i64))
}

/// The sum of two values.
pub(crate) fn add(x: &Datum, y: &Datum) -> SqlResult<Datum> {
    money(cents_of(x).checked_add(cents_of(y)))
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add("+(money, money) money", |a, _| add(&a[0], &a[1]));
    t.add("-(money, money) money", |a, _| money(cents_of(&a[0]).checked_sub(cents_of(&a[1]))));
    t.add("/(money, money) float8", |a, _| {
        if cents_of(&a[1]) == 0 {
            return Err(numeric::division_by_zero());
        }
        Ok(Datum::Float8(cents_of(&a[0]) as f64 / cents_of(&a[1]) as f64))
    });
    for signature in ["*(money, int2) money", "*(money, int4) money", "*(money, int8) money"] {
        t.add(signature, |a, _| money(cents_of(&a[0]).checked_mul(i64_of(&a[1]))));
    }
    for signature in ["*(int2, money) money", "*(int4, money) money", "*(int8, money) money"] {
        t.add(signature, |a, _| money(cents_of(&a[1]).checked_mul(i64_of(&a[0]))));
    }
    for signature in ["/(money, int2) money", "/(money, int4) money", "/(money, int8) money"] {
        t.add(signature, |a, _| match i64_of(&a[1]) {
            0 => Err(numeric::division_by_zero()),
            by => money(cents_of(&a[0]).checked_div(by)),
        });
    }
    for signature in ["*(money, float4) money", "*(money, float8) money"] {
        t.add(signature, |a, _| rounded(cents_of(&a[0]) as f64 * f64_of(&a[1])));
    }
    for signature in ["*(float4, money) money", "*(float8, money) money"] {
        t.add(signature, |a, _| rounded(cents_of(&a[1]) as f64 * f64_of(&a[0])));
    }
    for signature in ["/(money, float4) money", "/(money, float8) money"] {
        t.add(signature, |a, _| {
            if f64_of(&a[1]) == 0.0 {
                return Err(numeric::division_by_zero());
            }
            rounded(cents_of(&a[0]) as f64 / f64_of(&a[1]))
        });
    }
}
