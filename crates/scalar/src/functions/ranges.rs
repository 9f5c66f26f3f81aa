//! Functions and operators over ranges.

use std::sync::Arc;

use braid_types::{Datum, RangeKind, RangeValue, SqlError, SqlResult, SqlState, SqlType};

use super::text_of;
use crate::EvalContext;
use crate::registry::{Eval, Table};

fn range(value: &Datum) -> &RangeValue {
    match value {
        Datum::Range(range) => range,
        _ => unreachable!("strict functions are called with what their signature says"),
    }
}

fn made(range: RangeValue) -> SqlResult<Datum> {
    Ok(Datum::Range(Arc::new(range)))
}

/// A range of two bounds, `[)` unless a third argument says which belong to it.
pub(crate) fn constructed(kind: &RangeKind, a: &[Datum]) -> SqlResult<Datum> {
    let bad = |hint: bool, message: &str| {
        let state = if hint { SqlState::SYNTAX_ERROR } else { SqlState("22000") };
        let e = SqlError::new(state, message);
        if hint { e.with_hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".") } else { e }
    };
    let with = match a.get(2) {
        None => (true, false),
        Some(Datum::Null) => {
            return Err(bad(false, "range constructor flags argument must not be null"));
        }
        Some(flags) => match text_of(flags) {
            "[]" => (true, true),
            "[)" => (true, false),
            "(]" => (false, true),
            "()" => (false, false),
            _ => return Err(bad(true, "invalid range bound flags")),
        },
    };
    made(RangeValue::new(kind, a[0].clone(), a[1].clone(), with)?)
}

/// The smaller, or the greater, of two ranges by one of their bounds.
fn outer<'a>(x: &'a RangeValue, y: &'a RangeValue, lower: bool, least: bool) -> &'a RangeValue {
    let order = if lower { x.cmp_lower(y) } else { x.cmp_upper(y) };
    if order.is_le() == least { x } else { y }
}

fn merged(x: &RangeValue, y: &RangeValue) -> RangeValue {
    match (x.empty, y.empty) {
        (true, _) => y.clone(),
        (_, true) => x.clone(),
        _ => RangeValue::between(outer(x, y, true, true), outer(x, y, false, false)),
    }
}

fn united(x: &RangeValue, y: &RangeValue) -> SqlResult<Datum> {
    let whole = x.empty || y.empty || x.overlaps(y) || x.touches(y) || y.touches(x);
    if whole {
        return made(merged(x, y));
    }
    Err(SqlError::new(SqlState("22000"), "result of range union would not be contiguous"))
}

fn common(x: &RangeValue, y: &RangeValue) -> SqlResult<Datum> {
    if !x.overlaps(y) {
        return made(RangeValue::empty(&x.kind));
    }
    made(RangeValue::between(outer(x, y, true, false), outer(x, y, false, true)))
}

/// The first range without the second.
fn without(x: &RangeValue, y: &RangeValue) -> SqlResult<Datum> {
    if !x.overlaps(y) {
        return made(x.clone());
    }
    let (before, behind) = (x.cmp_lower(y).is_lt(), x.cmp_upper(y).is_gt());
    match (before, behind) {
        (true, true) => Err(SqlError::new(
            SqlState("22000"),
            "result of range difference would not be contiguous",
        )),
        (false, false) => made(RangeValue::empty(&x.kind)),
        (true, false) => made(RangeValue::new(
            &x.kind,
            x.lower.clone(),
            y.lower.clone(),
            (x.with_lower, !y.with_lower),
        )?),
        (false, true) => made(RangeValue::new(
            &x.kind,
            y.upper.clone(),
            x.upper.clone(),
            (!y.with_upper, x.with_upper),
        )?),
    }
}

fn is_before(x: &RangeValue, y: &RangeValue) -> bool {
    !x.empty && !y.empty && x.end_beside_start(y).is_lt()
}

fn construct<const KIND: usize>(a: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
    constructed(&RangeKind::ALL[KIND], a)
}

const CONSTRUCTORS: [Eval; 6] = [
    construct::<0>,
    construct::<1>,
    construct::<2>,
    construct::<3>,
    construct::<4>,
    construct::<5>,
];

/// What is told of one range.
const TOLD: &[(&str, &str, Eval)] = &[
    ("isempty", "whether a range has no value", |a, _| Ok(Datum::Bool(range(&a[0]).empty))),
    ("lower_inc", "whether the lower bound belongs to it", |a, _| {
        Ok(Datum::Bool(range(&a[0]).with_lower))
    }),
    ("upper_inc", "whether the upper bound belongs to it", |a, _| {
        Ok(Datum::Bool(range(&a[0]).with_upper))
    }),
    ("lower_inf", "whether it has no lower bound", |a, _| {
        Ok(Datum::Bool(!range(&a[0]).empty && range(&a[0]).lower.is_null()))
    }),
    ("upper_inf", "whether it has no upper bound", |a, _| {
        Ok(Datum::Bool(!range(&a[0]).empty && range(&a[0]).upper.is_null()))
    }),
];

/// What is told of two ranges.
const COMPARED: &[(&str, &str, Eval)] = &[
    ("@>", "whether all of the other lies in it", |a, _| {
        Ok(Datum::Bool(range(&a[0]).contains(range(&a[1]))))
    }),
    ("<@", "whether all of it lies in the other", |a, _| {
        Ok(Datum::Bool(range(&a[1]).contains(range(&a[0]))))
    }),
    ("&&", "whether they have a value in common", |a, _| {
        Ok(Datum::Bool(range(&a[0]).overlaps(range(&a[1]))))
    }),
    ("<<", "whether it ends before the other", |a, _| {
        Ok(Datum::Bool(is_before(range(&a[0]), range(&a[1]))))
    }),
    (">>", "whether it begins behind the other", |a, _| {
        Ok(Datum::Bool(is_before(range(&a[1]), range(&a[0]))))
    }),
    ("&<", "whether it does not reach beyond the other", |a, _| {
        let (x, y) = (range(&a[0]), range(&a[1]));
        Ok(Datum::Bool(!x.empty && !y.empty && x.cmp_upper(y).is_le()))
    }),
    ("&>", "whether it does not begin before the other", |a, _| {
        let (x, y) = (range(&a[0]), range(&a[1]));
        Ok(Datum::Bool(!x.empty && !y.empty && x.cmp_lower(y).is_ge()))
    }),
    ("-|-", "whether they are neighbours", |a, _| {
        let (x, y) = (range(&a[0]), range(&a[1]));
        Ok(Datum::Bool(!x.empty && !y.empty && (x.touches(y) || y.touches(x))))
    }),
];

/// What is made of two ranges.
const COMBINED: &[(&str, &str, Eval)] = &[
    ("+", "both together", |a, _| united(range(&a[0]), range(&a[1]))),
    ("*", "what both have", |a, _| common(range(&a[0]), range(&a[1]))),
    ("-", "the first without the other", |a, _| without(range(&a[0]), range(&a[1]))),
    ("range_merge", "the smallest range that has both", |a, _| {
        made(merged(range(&a[0]), range(&a[1])))
    }),
];

/// Adds the functions of this file. Signatures are made once for each type of ranges.
pub(super) fn fill(t: &mut Table) {
    let text = |signature: String| -> &'static str { signature.leak() };
    let mut types = Vec::new();
    for (at, kind) in RangeKind::ALL.into_iter().enumerate() {
        let e = kind.element().internal_name();
        let r = SqlType::Range(kind).internal_name();
        t.add(
            text(format!("{r}({e}, {e}) {r} -- a range from one value to another")),
            CONSTRUCTORS[at],
        )
        .lax();
        t.add(text(format!("{r}({e}, {e}, text) {r}")), CONSTRUCTORS[at]).lax();
        types.push((r, e));
    }
    // Those that users make: their constructors are in `user_functions`.
    types.push(("anyrange".to_string(), "anyelement".to_string()));
    for (r, e) in types {
        t.add(text(format!("lower({r}) {e}")), |a, _| Ok(range(&a[0]).lower.clone()));
        t.add(text(format!("upper({r}) {e}")), |a, _| Ok(range(&a[0]).upper.clone()));
        for (name, about, code) in TOLD {
            t.add(text(format!("{name}({r}) bool -- {about}")), *code);
        }
        for (name, about, code) in COMPARED {
            t.add(text(format!("{name}({r}, {r}) bool -- {about}")), *code);
        }
        for (name, about, code) in COMBINED {
            t.add(text(format!("{name}({r}, {r}) {r} -- {about}")), *code);
        }
        t.add(text(format!("@>({r}, {e}) bool")), |a, _| Ok(Datum::Bool(range(&a[0]).has(&a[1]))));
        t.add(text(format!("<@({e}, {r}) bool")), |a, _| Ok(Datum::Bool(range(&a[1]).has(&a[0]))));
    }
}
