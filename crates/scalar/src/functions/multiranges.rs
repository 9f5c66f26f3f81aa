//! Functions and operators over several ranges, and over those beside one.
//!
//! An operand that is one range is taken for a list of it where that means the same.

use std::sync::Arc;

use braid_types::{
    Datum, MultirangeValue, RangeKind, RangeValue, SqlError, SqlResult, SqlState, SqlType,
};

use crate::EvalContext;
use crate::registry::{Eval, Rows, Table};

/// A list of ranges, or of one.
fn many(value: &Datum) -> Arc<MultirangeValue> {
    match value {
        Datum::Multirange(many) => many.clone(),
        Datum::Range(one) => Arc::new(MultirangeValue::new(&one.kind, vec![(**one).clone()])),
        _ => unreachable!("strict functions are called with what their signature says"),
    }
}

fn made(value: MultirangeValue) -> SqlResult<Datum> {
    Ok(Datum::Multirange(Arc::new(value)))
}

fn range(value: RangeValue) -> Datum {
    Datum::Range(Arc::new(value))
}

fn flag(value: bool) -> SqlResult<Datum> {
    Ok(Datum::Bool(value))
}

/// The smallest range that has all of it.
fn whole(value: &Datum) -> RangeValue {
    many(value).whole()
}

/// A list of the arguments.
pub(crate) fn listed(kind: &RangeKind, args: &[Datum]) -> SqlResult<Datum> {
    if let [Datum::Null] = args {
        return Ok(Datum::Null);
    }
    let mut ranges = Vec::new();
    for arg in args {
        match arg {
            Datum::Range(range) => ranges.push((**range).clone()),
            _ => {
                let text = "multirange values cannot contain null members";
                return Err(SqlError::new(SqlState("22004"), text));
            }
        }
    }
    made(MultirangeValue::new(kind, ranges))
}

fn construct<const KIND: usize>(a: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
    listed(&RangeKind::ALL[KIND], a)
}

const CONSTRUCTORS: [Eval; 6] = [
    construct::<0>,
    construct::<1>,
    construct::<2>,
    construct::<3>,
    construct::<4>,
    construct::<5>,
];

/// What is told of one list.
const TOLD: &[(&str, &str, Eval)] = &[
    ("isempty", "whether a list of ranges has no value", |a, _| flag(whole(&a[0]).empty)),
    ("lower_inc", "whether its lower bound belongs to it", |a, _| flag(whole(&a[0]).with_lower)),
    ("upper_inc", "whether its upper bound belongs to it", |a, _| flag(whole(&a[0]).with_upper)),
    ("lower_inf", "whether it has no lower bound", |a, _| {
        let whole = whole(&a[0]);
        flag(!whole.empty && whole.lower.is_null())
    }),
    ("upper_inf", "whether it has no upper bound", |a, _| {
        let whole = whole(&a[0]);
        flag(!whole.empty && whole.upper.is_null())
    }),
];

/// What is told of two, of which one may be a single range.
const COMPARED: &[(&str, &str, Eval)] = &[
    ("@>", "whether all of the other lies in it", |a, _| flag(many(&a[0]).contains(&many(&a[1])))),
    ("<@", "whether all of it lies in the other", |a, _| flag(many(&a[1]).contains(&many(&a[0])))),
    ("&&", "whether they have a value in common", |a, _| flag(many(&a[0]).overlaps(&many(&a[1])))),
    ("<<", "whether it ends before the other", |a, _| {
        flag(is_before(&whole(&a[0]), &whole(&a[1])))
    }),
    (">>", "whether it begins behind the other", |a, _| {
        flag(is_before(&whole(&a[1]), &whole(&a[0])))
    }),
    ("&<", "whether it does not reach beyond the other", |a, _| {
        let (x, y) = (whole(&a[0]), whole(&a[1]));
        flag(!x.empty && !y.empty && x.cmp_upper(&y).is_le())
    }),
    ("&>", "whether it does not begin before the other", |a, _| {
        let (x, y) = (whole(&a[0]), whole(&a[1]));
        flag(!x.empty && !y.empty && x.cmp_lower(&y).is_ge())
    }),
    ("-|-", "whether they are neighbours", |a, _| {
        let (x, y) = (whole(&a[0]), whole(&a[1]));
        flag(!x.empty && !y.empty && (x.touches(&y) || y.touches(&x)))
    }),
];

/// What is made of two lists.
const COMBINED: &[(&str, &str, Eval)] = &[
    ("+", "what either has", |a, _| made(many(&a[0]).united(&many(&a[1])))),
    ("*", "what both have", |a, _| made(many(&a[0]).common(&many(&a[1])))),
    ("-", "the first without the other", |a, _| made(many(&a[0]).without(&many(&a[1]))?)),
];

fn is_before(x: &RangeValue, y: &RangeValue) -> bool {
    !x.empty && !y.empty && x.end_beside_start(y).is_lt()
}

fn unnest(a: &[Datum], _: &EvalContext) -> SqlResult<Rows> {
    let many = many(&a[0]);
    Ok(Rows::numbered(many.ranges().len(), move |at| vec![range(many.ranges()[at].clone())]))
}

/// Adds the functions of this file. Signatures are made once for each type of ranges.
pub(super) fn fill(t: &mut Table) {
    let text = |signature: String| -> &'static str { signature.leak() };
    let mut types = Vec::new();
    for (at, kind) in RangeKind::ALL.into_iter().enumerate() {
        let own = [SqlType::Multirange(kind.clone()), SqlType::Range(kind.clone()), kind.element()];
        let [m, r, e] = own.map(|ty| ty.internal_name());
        t.add(text(format!("{m}() {m} -- a list of ranges")), CONSTRUCTORS[at]);
        t.add(text(format!("{m}(...{r}) {m}")), CONSTRUCTORS[at]).lax();
        t.add(text(format!("multirange({r}) {m} -- a list of one range")), CONSTRUCTORS[at]);
        types.push([m, r, e]);
    }
    // Those that users make: their constructors are in `user_functions`.
    t.add("multirange(anyrange) anymultirange", |a, _| made((*many(&a[0])).clone()));
    types.push(["anymultirange", "anyrange", "anyelement"].map(str::to_string));
    for [m, r, e] in types {
        t.add(text(format!("lower({m}) {e}")), |a, _| Ok(whole(&a[0]).lower));
        t.add(text(format!("upper({m}) {e}")), |a, _| Ok(whole(&a[0]).upper));
        t.add(text(format!("range_merge({m}) {r} -- the smallest range that has all")), |a, _| {
            Ok(range(whole(&a[0])))
        });
        t.rows(text(format!("unnest({m}) {r} -- the ranges of a list")), unnest);
        for (name, about, code) in TOLD {
            t.add(text(format!("{name}({m}) bool -- {about}")), *code);
        }
        for (name, about, code) in COMPARED {
            for (x, y) in [(&m, &m), (&m, &r), (&r, &m)] {
                t.add(text(format!("{name}({x}, {y}) bool -- {about}")), *code);
            }
        }
        for (name, about, code) in COMBINED {
            t.add(text(format!("{name}({m}, {m}) {m} -- {about}")), *code);
        }
        t.add(text(format!("@>({m}, {e}) bool")), |a, _| flag(many(&a[0]).has(&a[1])));
        t.add(text(format!("<@({e}, {m}) bool")), |a, _| flag(many(&a[1]).has(&a[0])));
    }
}
