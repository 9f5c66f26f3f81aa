//! What is written like an expression but is no function: CASE, IN, subscripts, LIKE .. ESCAPE.
//!
//! An entry is a form with a `{}` for each part. Parts are expressions of their own, in
//! parentheses, so that a difference can be shrunk into them.

/// The type of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The type that is wanted.
    Same,
    /// A type chosen once for the whole construct.
    Other,
    /// The same as an array.
    Array,
    /// Elements of the wanted array.
    Element,
    /// An array of the wanted type.
    ArrayOfSame,
    /// A type by name.
    Of(&'static str),
}

/// One construct.
pub(super) struct Construct {
    pub(super) label: &'static str,
    pub(super) parts: &'static [Part],
    pub(super) form: &'static str,
}

use Part::{Array, ArrayOfSame, Element, Of, Other, Same};

macro_rules! construct {
    ($label:literal, [$($part:expr),*], $form:literal) => {
        Construct { label: $label, parts: &[$($part),*], form: $form }
    };
}

/// Those that give any type.
const ANY_TYPE: &[Construct] = &[
    construct!("CASE", [Of("bool"), Same, Same], "CASE WHEN {} THEN {} ELSE {} END"),
    construct!("COALESCE", [Same, Same], "coalesce({}, {})"),
    construct!("NULLIF", [Same, Same], "nullif({}, {})"),
    construct!("GREATEST", [Same, Same], "greatest({}, {})"),
    construct!("GREATEST", [Same, Same], "least({}, {})"),
    construct!("CASE x", [Other, Other, Same], "CASE {} WHEN {} THEN {} END"),
];

/// Those that give elements of arrays.
const ELEMENT: &[Construct] = &[
    construct!("subscript", [ArrayOfSame], "{}[2]"),
    construct!("subscript", [ArrayOfSame, Of("int4")], "{}[{}]"),
];

/// Those that give arrays.
const ARRAY: &[Construct] = &[
    construct!("ARRAY", [Element, Element], "ARRAY[{}, {}]"),
    construct!("ARRAY", [Element], "ARRAY[{}]"),
    construct!("slice", [Same], "{}[2:3]"),
    construct!("slice", [Same, Of("int4")], "{}[:{}]"),
];

const TEXT: &[Construct] = &[
    construct!("SUBSTRING", [Of("text"), Of("int2")], "substring({} FROM {})"),
    construct!("SUBSTRING", [Of("text"), Of("int2")], "substring({} FROM {} FOR 3)"),
    construct!("OVERLAY", [Of("text"), Of("text")], "overlay({} PLACING {} FROM 2)"),
    construct!("OVERLAY", [Of("text"), Of("text")], "overlay({} PLACING {} FROM 2 FOR 1)"),
    construct!("TRIM", [Of("text"), Of("text")], "trim(BOTH {} FROM {})"),
    construct!("TRIM", [Of("text")], "trim(LEADING FROM {})"),
    construct!("TRIM", [Of("text"), Of("text")], "trim(TRAILING {} FROM {})"),
    construct!("COLLATE", [Of("text")], "{} COLLATE \"C\""),
];

const INT4: &[Construct] = &[
    construct!("POSITION", [Of("text"), Of("text")], "position(({}) IN ({}))"),
    construct!("EXTRACT", [Of("timestamp")], "extract(DAY FROM {})::int4"),
];

const TIMESTAMP: &[Construct] =
    &[construct!("AT TIME ZONE", [Of("timestamptz")], "{} AT TIME ZONE 'America/New_York'")];
const TIMESTAMPTZ: &[Construct] =
    &[construct!("AT TIME ZONE", [Of("timestamp")], "{} AT TIME ZONE 'Asia/Kolkata'")];

const BOOL: &[Construct] = &[
    construct!("comparison", [Other, Other], "{} = {}"),
    construct!("comparison", [Other, Other], "{} <> {}"),
    construct!("comparison", [Other, Other], "{} < {}"),
    construct!("comparison", [Other, Other], "{} <= {}"),
    construct!("comparison", [Other, Other], "{} > {}"),
    construct!("comparison", [Other, Other], "{} >= {}"),
    construct!("IS DISTINCT FROM", [Other, Other], "{} IS DISTINCT FROM {}"),
    construct!("IS DISTINCT FROM", [Other, Other], "{} IS NOT DISTINCT FROM {}"),
    construct!("BETWEEN", [Other, Other, Other], "{} BETWEEN {} AND {}"),
    construct!("BETWEEN", [Other, Other, Other], "{} NOT BETWEEN {} AND {}"),
    construct!("BETWEEN", [Other, Other, Other], "{} BETWEEN SYMMETRIC {} AND {}"),
    construct!("BETWEEN", [Other, Other, Other], "{} NOT BETWEEN SYMMETRIC {} AND {}"),
    construct!("IN", [Other, Other, Other], "{} IN ({}, {})"),
    construct!("IN", [Other, Other, Other], "{} NOT IN ({}, {})"),
    construct!("AND", [Of("bool"), Of("bool")], "{} AND {}"),
    construct!("AND", [Of("bool"), Of("bool")], "{} OR {}"),
    construct!("NOT", [Of("bool")], "NOT {}"),
    construct!("IS TRUE", [Of("bool")], "{} IS TRUE"),
    construct!("IS TRUE", [Of("bool")], "{} IS NOT FALSE"),
    construct!("IS TRUE", [Of("bool")], "{} IS UNKNOWN"),
    construct!("IS NULL", [Other], "{} IS NULL"),
    construct!("ANY", [Element, Array], "{} = ANY ({})"),
    construct!("ANY", [Element, Array], "{} <> ANY ({})"),
    construct!("ANY", [Element, Array], "{} < ALL ({})"),
    construct!("ANY", [Element, Array], "{} >= ALL ({})"),
    construct!("LIKE", [Of("text"), Of("text")], "{} LIKE {} ESCAPE '^'"),
    construct!("LIKE", [Of("text")], "{} LIKE 'a%'"),
    construct!("LIKE", [Of("text")], "{} NOT LIKE '%^%_' ESCAPE '^'"),
    construct!("LIKE", [Of("text")], "{} ILIKE '%B_' ESCAPE ''"),
    construct!("SIMILAR TO", [Of("text")], "{} SIMILAR TO '(a|b)%'"),
    construct!("SIMILAR TO", [Of("text")], "{} SIMILAR TO '[[:alpha:]]+_?'"),
    construct!("SIMILAR TO", [Of("text")], "{} NOT SIMILAR TO 'a#%{1,2}' ESCAPE '#'"),
    construct!("row comparison", [Other, Of("int4"), Other, Of("int4")], "({}, {}) < ({}, {})"),
    construct!("row comparison", [Other, Of("text"), Other, Of("text")], "({}, {}) = ({}, {})"),
];

/// The constructs that give a type.
pub(super) fn giving(ty: &str, elements: &[&str]) -> Vec<&'static Construct> {
    let own: &[Construct] = match ty {
        "bool" => BOOL,
        "text" => TEXT,
        "int4" => INT4,
        "timestamp" => TIMESTAMP,
        "timestamptz" => TIMESTAMPTZ,
        ty if ty.starts_with('_') => ARRAY,
        _ => &[],
    };
    let element: &[Construct] = if elements.contains(&ty) { ELEMENT } else { &[] };
    // Documents as text have no order: which error comes first says nothing.
    let ordered = |c: &&Construct| ty != "json" || c.label != "GREATEST";
    ANY_TYPE.iter().filter(ordered).chain(own).chain(element).collect()
}
