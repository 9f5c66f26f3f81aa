//! Folds beside the row form: random groups, filters, states merged, groups given up early.

use std::sync::Arc;

use braid_scalar::{Code, EvalContext, resolve};
use braid_types::{Datum, GroupKey, SqlType, numeric};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::{Groups, Single, fold};
use crate::arrow_form::{self, Reader};
use crate::error::from_df;
use crate::exec::aggregate::{FIRST, Spec};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn spec(name: &str, arg: &SqlType) -> Spec {
    let choice = resolve(name, std::slice::from_ref(arg), false).expect("an aggregate");
    let Code::Aggregate(code) = choice.function.code else { panic!("{name} is no aggregate") };
    Spec {
        code,
        name: name.to_string(),
        args: choice.args,
        ret: choice.ret,
        distinct: false,
        filtered: false,
        order: Vec::new(),
        within: Vec::new(),
        place: Arc::default(),
    }
}

fn value(r: &mut Random, ty: &SqlType, wild: bool) -> Datum {
    if r.below(5) == 0 {
        return Datum::Null;
    }
    let small = r.below(200) as i64 - 90;
    let edge = wild && r.below(4) == 0;
    match ty {
        SqlType::Bool => Datum::Bool(r.below(3) == 0),
        SqlType::Int2 => Datum::Int2(if edge { i16::MAX } else { small as i16 }),
        SqlType::Int4 => Datum::Int4(if edge { i32::MIN } else { small as i32 }),
        SqlType::Int8 => Datum::Int8(if edge { i64::MAX } else { small }),
        SqlType::Oid => Datum::Oid(small.unsigned_abs() as u32),
        SqlType::Float4 => {
            let edges = [f32::NAN, f32::INFINITY, -0.0, f32::MAX];
            Datum::Float4(if edge { edges[r.below(4) as usize] } else { small as f32 / 8.0 })
        }
        SqlType::Float8 => {
            let edges = [f64::NAN, f64::NEG_INFINITY, -0.0, f64::MAX];
            Datum::Float8(if edge { edges[r.below(4) as usize] } else { small as f64 / 8.0 })
        }
        SqlType::Numeric(Some((precision, scale))) => {
            if edge && r.below(9) == 0 {
                return Datum::NumericNan;
            }
            let digits = match edge {
                true => 10i128.pow(u32::from(*precision)) - 1,
                false => i128::from(small),
            };
            Datum::Numeric(Arc::new(numeric::from_scaled(digits, *scale as u8)))
        }
        SqlType::Numeric(_) => match (edge, r.below(6)) {
            (true, 0) => Datum::NumericNan,
            (true, 1) => Datum::NumericInf(r.below(2) == 0),
            (true, 2) => {
                let nines = numeric::from_scaled(10i128.pow(37), 3);
                Datum::Numeric(Arc::new(numeric::mul(&nines, &nines)))
            }
            (true, _) => Datum::Numeric(Arc::new(numeric::from_scaled(i128::MAX / 2, 30))),
            (false, scale) => {
                Datum::Numeric(Arc::new(numeric::from_scaled(small.into(), scale as u8)))
            }
        },
        SqlType::Text | SqlType::Varchar(_) => {
            Datum::text(["", "a", "ab", "b", "é"][r.below(5) as usize])
        }
        SqlType::Date => Datum::Date(small as i32),
        SqlType::Timestamp => Datum::Timestamp(small),
        SqlType::TimestampTz => Datum::TimestampTz(small),
        SqlType::Time => Datum::Time(small.abs()),
        other => panic!("no values of {other}"),
    }
}

/// A column of arguments: in the carrier of its type, or as wide decimals.
fn column(ty: &SqlType, carrier: &DataType, values: &[Datum]) -> ArrayRef {
    arrow_form::build_carried(carrier, ty, values.iter())
}

fn shown(result: Result<ArrayRef, datafusion::error::DataFusionError>, ty: &SqlType) -> String {
    match result {
        Ok(array) => {
            let reader = Reader::new(&array);
            let values: Vec<Datum> = (0..array.len()).map(|at| reader.get(at, ty)).collect();
            format!("{values:?}")
        }
        Err(e) => from_df(e).to_string(),
    }
}

/// What the row form makes of the rows of each group.
fn by_rows(spec: &Spec, groups: usize, rows: &[(usize, Datum)]) -> String {
    let types = braid_scalar::AggregateTypes { args: &spec.args, ret: &spec.ret, sorted: &[] };
    let mut states: Vec<_> = (0..groups).map(|_| (spec.code.start)(types)).collect();
    for (group, value) in rows {
        if let Err(e) = states[*group].update(std::slice::from_ref(value)) {
            return e.to_string();
        }
    }
    let mut values = Vec::new();
    for state in states {
        match state.finish(&EvalContext::constant()) {
            Ok(value) => values.push(value),
            Err(e) => return e.to_string(),
        }
    }
    format!("{values:?}")
}

fn groups_of(name: &str, ty: &SqlType, carrier: &DataType) -> Groups {
    let (name, ty, carrier) = (name.to_string(), ty.clone(), carrier.clone());
    Groups::new(Box::new(move || fold(&spec(&name, &ty), Some(&carrier))))
        .unwrap_or_else(|| panic!("no fold"))
}

fn check(name: &str, ty: &SqlType, carrier: &DataType, r: &mut Random, wild: bool) {
    let spec = spec(name, ty);
    let count = 1 + r.below(6) as usize;
    let rows = r.below(60) as usize;
    let places: Vec<usize> = (0..rows).map(|_| r.below(count as u64) as usize).collect();
    let values: Vec<Datum> = (0..rows).map(|_| value(r, ty, wild)).collect();
    let filter: Option<BooleanArray> = (r.below(2) == 0)
        .then(|| (0..rows).map(|_| [Some(true), Some(false), None][r.below(3) as usize]).collect());
    let kept = |at: &usize| filter.as_ref().is_none_or(|f| f.is_valid(*at) && f.value(*at));
    let taken: Vec<(usize, Datum)> =
        (0..rows).filter(kept).map(|at| (places[at], values[at].clone())).collect();
    let want = by_rows(&spec, count, &taken);
    let column = column(ty, carrier, &values);
    let label = format!("{name}({ty}) by {carrier} of {taken:?}");

    // In two batches, the first groups given up before the others.
    let half = rows / 2;
    let part = |from: usize, to: usize| filter.as_ref().map(|f| f.slice(from, to - from));
    let mut whole = groups_of(name, ty, carrier);
    let run = |fold: &mut Groups, from: usize, to: usize| {
        let batch = [column.slice(from, to - from)];
        fold.update_batch(&batch, &places[from..to], part(from, to).as_ref(), count)
    };
    let first = run(&mut whole, 0, half).and_then(|()| run(&mut whole, half, rows));
    let got = shown(first.and_then(|()| whole.evaluate(EmitTo::All)), &spec.ret);
    assert_eq!(got, want, "{label}");

    // Floats round by the order in which they are added: their states are merged elsewhere.
    if matches!(ty, SqlType::Float4 | SqlType::Float8) && matches!(name, "sum" | "avg") {
        return;
    }
    let merged = || {
        let (mut left, mut right) = (groups_of(name, ty, carrier), groups_of(name, ty, carrier));
        run(&mut left, 0, half)?;
        run(&mut right, half, rows)?;
        let mut last = groups_of(name, ty, carrier);
        let all: Vec<usize> = (0..count).collect();
        let early = 1.min(count);
        let first = left.state(EmitTo::First(early))?;
        last.merge_batch(&first, &all[..early], count)?;
        last.merge_batch(&left.state(EmitTo::All)?, &all[early..], count)?;
        let states = right.state(EmitTo::All)?;
        last.merge_batch(&states, &all[..states[0].len()], count)?;
        last.evaluate(EmitTo::All)
    };
    if half > 0 && !want.contains("out of range") {
        assert_eq!(shown(merged(), &spec.ret), want, "merged {label}");
        let direct = || {
            let fold = groups_of(name, ty, carrier);
            let states = fold.convert_to_state(std::slice::from_ref(&column), filter.as_ref())?;
            let mut last = groups_of(name, ty, carrier);
            last.merge_batch(&states, &places, count)?;
            last.evaluate(EmitTo::All)
        };
        assert_eq!(shown(direct(), &spec.ret), want, "converted {label}");
    }
}

#[test]
fn folds_give_what_the_row_form_gives() {
    use SqlType as T;
    let numerics =
        [T::Numeric(Some((15, 2))), T::Numeric(Some((38, 0))), T::Numeric(Some((30, 4)))];
    let ints = [T::Int2, T::Int4, T::Int8];
    let floats = [T::Float4, T::Float8];
    let others = [T::Text, T::Date, T::Timestamp, T::TimestampTz, T::Time, T::Oid];
    let mut r = Random(0x5EED_1234_ABCD);
    let mut cases: Vec<(&str, T)> = Vec::new();
    for ty in ints.iter().chain(&floats).chain(&numerics) {
        cases.extend(["sum", "avg", "min", "max", "count"].map(|name| (name, ty.clone())));
    }
    cases.extend(["sum", "avg", "count"].map(|name| (name, T::Numeric(None))));
    for ty in &others {
        cases.extend(["min", "max", "count"].map(|name| (name, ty.clone())));
    }
    cases.extend(["bool_and", "bool_or", "every", "count"].map(|name| (name, T::Bool)));
    for (name, ty) in &cases {
        for round in 0..40 {
            check(name, ty, &arrow_form::data_type(ty), &mut r, round % 2 == 1);
        }
        if matches!((*name, ty), ("sum" | "avg" | "count", T::Numeric(Some(_)))) {
            let scale = arrow_form::decimal_scale(ty).expect("declared");
            for round in 0..40 {
                check(name, ty, &DataType::Decimal256(76, scale as i8), &mut r, round % 2 == 1);
            }
        }
    }
}

#[test]
fn distinct_values_are_counted_as_the_row_form_counts_them() {
    use SqlType as T;
    let types = [T::Int4, T::Int8, T::Float8, T::Text, T::Date, T::Numeric(Some((15, 2)))];
    let mut r = Random(0xD157_14C7);
    for ty in types.iter().flat_map(|ty| std::iter::repeat_n(ty, 20)) {
        let values: Vec<Datum> = (0..60).map(|_| value(&mut r, ty, true)).collect();
        let places: Vec<usize> = (0..60).map(|_| r.below(3) as usize).collect();
        let mut sets = vec![std::collections::HashSet::new(); 3];
        for (group, value) in places.iter().zip(&values).filter(|(_, v)| !v.is_null()) {
            sets[*group].insert(GroupKey(vec![value.clone()]));
        }
        let want: Vec<Datum> = sets.iter().map(|s| Datum::Int8(s.len() as i64)).collect();
        let (owned, carrier) = (ty.clone(), arrow_form::data_type(ty));
        let made = || {
            let (owned, carrier) = (owned.clone(), carrier.clone());
            Groups::new(Box::new(move || {
                let mut one = spec("count", &owned);
                (one.args, one.distinct) = (vec![owned.clone()], true);
                fold(&one, Some(&carrier))
            }))
            .expect("a fold")
        };
        let column = arrow_form::build(ty, values.iter());
        let mut halves = [made(), made()];
        for (at, half) in halves.iter_mut().enumerate() {
            let batch = [column.slice(at * 30, 30)];
            half.update_batch(&batch, &places[at * 30..][..30], None, 3).expect("takes");
        }
        let mut last = made();
        for mut half in halves {
            let states = half.state(EmitTo::All).expect("a state");
            last.merge_batch(&states, &[0, 1, 2], 3).expect("merges");
        }
        assert_eq!(shown(last.evaluate(EmitTo::All), &T::Int8), format!("{want:?}"), "{ty}");
    }
}

#[test]
fn the_first_value_of_a_group_is_kept() {
    for (ty, values) in [
        (SqlType::Interval, ["NULL", "1 day", "24 hours"]),
        (SqlType::Text, ["NULL", "b", "a"]),
        (SqlType::Float8, ["NULL", "-0", "0"]),
    ] {
        let parsed: Vec<Datum> = values
            .iter()
            .map(|text| match *text {
                "NULL" => Datum::Null,
                text => Datum::parse(text, &ty, braid_types::Style::utc()).expect("a value"),
            })
            .collect();
        let array = arrow_form::build(&ty, parsed.iter());
        let fold = super::extremes::first(array.data_type()).expect("a fold");
        let mut single = Single::new(fold, Arc::default());
        single.update_batch(&[array]).expect("takes");
        let kept = arrow_form::from_scalar(&single.evaluate().expect("gives"), &ty);
        assert_eq!(format!("{kept:?}"), format!("{:?}", parsed[1]));
    }
}

#[test]
fn values_behind_pointers_are_counted_and_given_back() {
    let text = SqlType::Text;
    let texts: Vec<Datum> = (0..100).map(|n| Datum::text(format!("{n:01000}"))).collect();
    let array = arrow_form::build(&text, texts.iter());
    let groups: Vec<usize> = (0..100).collect();
    for (name, distinct) in [("count", true), ("max", false), (FIRST, false)] {
        let made = Box::new(move || {
            // The registry does not have the first of them.
            let mut one = spec(if name == FIRST { "max" } else { name }, &SqlType::Text);
            (one.name, one.args) = (name.to_string(), vec![SqlType::Text]);
            one.distinct = distinct;
            fold(&one, Some(&DataType::Utf8))
        });
        let mut all = Groups::new(made).expect("a fold");
        for _ in 0..2 {
            // The same values again take no more.
            all.update_batch(std::slice::from_ref(&array), &groups, None, 100).expect("takes");
            let size = all.size();
            assert!((100_000..120_000).contains(&size), "{name}: {size}");
        }
        all.state(EmitTo::First(60)).expect("a state");
        let size = all.size();
        assert!((40_000..60_000).contains(&size), "{name} of 40 groups: {size}");
    }
}

#[test]
fn one_group_can_be_looked_at_again() {
    let spec = spec("sum", &SqlType::Int4);
    let fold = fold(&spec, Some(&DataType::Int32)).expect("a fold");
    let mut single = Single::new(fold, Arc::default());
    let batch = arrow_form::build(&SqlType::Int4, [Datum::Int4(2), Datum::Int4(3)].iter());
    for want in ["5", "10"] {
        single.update_batch(std::slice::from_ref(&batch)).expect("takes");
        assert_eq!(single.evaluate().expect("gives").to_string(), want);
    }
}

#[test]
fn distinct_and_ordered_aggregates_keep_rows() {
    let mut one = spec("sum", &SqlType::Int4);
    one.distinct = true;
    assert!(fold(&one, Some(&DataType::Int32)).is_none());
}
