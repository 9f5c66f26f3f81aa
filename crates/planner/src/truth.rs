//! Estimates beside the truth: data of many shapes is generated, a part of it drawn, and what is
//! said of fractions and distinct values compared with counting.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included, Unbounded};

use braid_env::random::Random;
use braid_types::{Datum, SqlType};

use crate::estimate::{Sampled, Scale, Values, summarize};
use crate::record::statistics_of;
use crate::statistics::ColumnStatistics;

const ROWS: usize = 40_000;
const DRAWN: usize = 6_000;

/// A column: its type, and what makes its values.
type Shape = (&'static str, SqlType, fn(&mut Random, usize) -> Datum);

fn shapes() -> Vec<Shape> {
    let days = SqlType::Date;
    vec![
        ("even", SqlType::Int4, |r, _| Datum::Int4(r.below(100_000) as i32)),
        ("few", SqlType::Int4, |r, _| Datum::Int4(r.below(20) as i32)),
        ("unique", SqlType::Int8, |_, n| Datum::Int8(n as i64 * 7)),
        ("steep", SqlType::Int4, |r, _| Datum::Int4((10_000 / (1 + r.below(5_000))) as i32)),
        ("days", days, |r, _| Datum::Date((r.below(60) * r.below(60)) as i32)),
        ("squares", SqlType::Float8, |r, _| Datum::Float8((r.below(1 << 20) as f64).powi(2))),
        ("texts", SqlType::Text, |r, _| {
            let letter = |r: &mut Random| char::from(b'a' + r.below(26).min(r.below(26)) as u8);
            Datum::text(std::iter::repeat_with(|| letter(r)).take(6).collect::<String>())
        }),
        ("nulls", SqlType::Int4, |r, _| match r.below(3) {
            0 => Datum::Int4(r.below(1_000) as i32),
            _ => Datum::Null,
        }),
        ("one", SqlType::Int4, |_, _| Datum::Int4(1)),
        ("two_hills", SqlType::Int4, |r, _| {
            let hill = (r.below(100) + r.below(100)) as i32;
            Datum::Int4(if r.below(5) == 0 { 1_000_000 + hill } else { hill })
        }),
    ]
}

fn estimated(data: &[Datum], ty: &SqlType, target: usize, r: &mut Random) -> ColumnStatistics {
    let mut left = DRAWN;
    let mut values = Values::default();
    for (n, value) in data.iter().enumerate() {
        // So that each set of so many is as likely as another.
        if r.below((data.len() - n) as u64) < left as u64 {
            values.push(Sampled::new(value.clone()));
            left -= 1;
        }
    }
    let scale = Scale { rows: data.len() as f64, target };
    statistics_of(&summarize(values, ty, scale, None), scale.rows)
}

fn part(data: &[Datum], holds: impl Fn(&Datum) -> bool) -> f64 {
    data.iter().filter(|v| !v.is_null() && holds(v)).count() as f64 / data.len() as f64
}

#[test]
fn fractions_of_generated_data_are_near_the_truth() {
    for (name, ty, make) in shapes() {
        let r = &mut Random::seeded(7);
        let data: Vec<Datum> = (0..ROWS).map(|n| make(r, n)).collect();
        for target in [10, 100] {
            let known = estimated(&data, &ty, target, r);
            let nulls = data.iter().filter(|v| v.is_null()).count() as f64 / ROWS as f64;
            assert!((known.null_fraction - nulls).abs() < 0.02, "{name} {nulls} {known:?}");
            // A bucket may lie at both ends of a range.
            let most = 0.025 + 1.0 / target as f64;
            for _ in 0..50 {
                let [a, b] = [0, 1].map(|_| &data[r.below(ROWS as u64) as usize]);
                if a.is_null() || b.is_null() {
                    continue;
                }
                let (low, high) = if a.cmp_sql(b).is_le() { (a, b) } else { (b, a) };
                let said = known.fraction_between(Included(low), Included(high));
                let true_part = part(&data, |v| v.cmp_sql(low).is_ge() && v.cmp_sql(high).is_le());
                assert!(
                    (said - true_part).abs() < most,
                    "{name} {low:?} {high:?} {said} {true_part}"
                );
                let said = known.fraction_between(Unbounded, Excluded(low));
                let true_part = part(&data, |v| v.cmp_sql(low).is_lt());
                assert!((said - true_part).abs() < most, "{name} < {low:?} {said} {true_part}");
                let said = known.fraction_equal(low);
                let true_part = part(&data, |v| v.cmp_sql(low).is_eq());
                assert!((said - true_part).abs() < 0.02, "{name} = {low:?} {said} {true_part}");
            }
        }
    }
}

#[test]
fn distinct_values_of_generated_data_are_near_the_truth() {
    for (name, ty, make) in shapes() {
        let r = &mut Random::seeded(11);
        let data: Vec<Datum> = (0..ROWS).map(|n| make(r, n)).collect();
        let shown = data.iter().filter(|v| !v.is_null()).map(|v| format!("{v:?}"));
        let truth = shown.collect::<BTreeSet<_>>().len() as f64;
        let said = estimated(&data, &ty, 100, r).distinct;
        let ratio = said.max(truth) / said.min(truth);
        // Steep distributions hide their rare values from every sample.
        let most = if name == "steep" { 2.0 } else { 1.35 };
        assert!(ratio < most, "{name}: {said} for {truth}");
    }
}
