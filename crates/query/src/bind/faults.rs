//! Which expressions can raise errors, and conditions that must not raise them for rows that other
//! conditions reject.
//!
//! ```text
//!   WHERE a <> 0 AND 10 / a >= 1 AND t.k = u.k
//!     a <> 0         cannot fail: a filter of its own, pushed down as far as it goes
//!     t.k = u.k      a key of the join
//!     10 / a >= 1    can fail: one filter `a <> 0 AND t.k = u.k AND 10 / a >= 1`, computed row by
//!                    row from left to right, which stays above the join
//!     t.k IN (..)    can fail as a whole: a filter of its own as well
//! ```

use std::sync::Arc;

use braid_scalar::{Bound, CaseBranch, CmpOp, Node, QuantifiedOp, Volatility};
use braid_types::{CastContext, Datum, SqlResult, SqlType, cast_exists, numeric};
use datafusion::logical_expr::Expr;

use super::lift::subquery_of;
use super::{Binder, Slot};

/// Functions and operators that give a value for every argument.
const TOTAL: &[&str] = &[
    "||",
    "lower",
    "upper",
    "length",
    "char_length",
    "character_length",
    "octet_length",
    "btrim",
    "ltrim",
    "rtrim",
    "initcap",
    "strpos",
    "starts_with",
    "^@",
    "replace",
    "reverse",
    "md5",
    "concat",
    "concat_ws",
    "left",
    "right",
    "translate",
    "cardinality",
    "array_length",
    "array_upper",
    "array_lower",
    "@>",
    "<@",
    "&&",
    "?",
    "?|",
    "?&",
    "jsonb_typeof",
    "now",
    "current_date",
    "current_timestamp",
    "current_user",
    "current_database",
    "current_schema",
    "isfinite",
    "->",
    "->>",
    "#>",
    "#>>",
    "coalesce",
    "sign",
    "ceil",
    "floor",
    "round",
    "trunc",
    "array_to_string",
    "blank_padded",
    "collation_class",
    "collation_key",
    "collated_text",
    "string_to_array",
    "pg_table_is_visible",
    "pg_get_expr",
    "format_type",
    "pg_get_userbyid",
    "obj_description",
    "col_description",
    "pg_get_indexdef",
    "pg_get_constraintdef",
];

/// Fields that every date and moment has.
const FIELDS: &[&str] = &[
    "century",
    "day",
    "decade",
    "dow",
    "doy",
    "epoch",
    "isodow",
    "isoyear",
    "millennium",
    "month",
    "quarter",
    "week",
    "year",
];

/// Whether a conversion gives a value for every argument.
fn total_cast(from: &SqlType, to: &SqlType, context: CastContext) -> bool {
    let unlimited = to.typmod() < 0;
    unlimited
        && (from.same_base(to)
            || widens(from, to)
            || matches!(to, SqlType::Text | SqlType::Varchar(None))
            || (context == CastContext::Implicit
                && cast_exists(from, to) == Some(CastContext::Implicit)
                && (from.is_integer() || from.is_text_like())))
}

/// Whether each number of a type is one of the other, or near one.
fn widens(from: &SqlType, to: &SqlType) -> bool {
    use SqlType::{Float4, Float8, Int2, Int4, Int8, Numeric};
    match to {
        Numeric(_) | Float8 => {
            matches!(from, Int2 | Int4 | Int8) || (from, to) == (&Float4, &Float8)
        }
        Float4 => matches!(from, Int2 | Int4 | Int8),
        Int8 => matches!(from, Int2 | Int4),
        Int4 => matches!(from, Int2),
        _ => false,
    }
}

/// Whether this is a number, a date or a time that parameters give, all but as it is: what can be
/// wrong with it is wrong for all rows, and PostgreSQL says so before it looks at any.
fn is_given(bound: &Bound) -> bool {
    use SqlType as T;
    let plain = |ty: &SqlType| {
        ty.is_integer()
            || matches!(ty, T::Numeric(_) | T::Date | T::Timestamp | T::TimestampTz | T::Interval)
    };
    match bound.node() {
        Node::Const(_) | Node::Param(_) => true,
        Node::Cast(inner, _) => plain(inner.ty()) && plain(bound.ty()) && is_given(inner),
        Node::Call(function, args) => {
            matches!(function.name, "+" | "-" | "*")
                && plain(bound.ty())
                && args.iter().all(is_given)
        }
        _ => false,
    }
}

/// Whether an argument is a number of at least this much.
fn at_least(bound: Option<&Bound>, least: i32) -> bool {
    matches!(bound.and_then(Bound::as_const), Some(Datum::Int4(n)) if *n >= least)
}

/// Whether a call gives a value for every row because of what its arguments are.
fn total_call(name: &str, args: &[Bound]) -> bool {
    match name {
        // Only a backslash at the end of a pattern is an error.
        "~~" | "!~~" | "~~*" | "!~~*" => match args {
            [_, pattern] => match pattern.as_const() {
                Some(Datum::Text(text)) => !text.contains('\\'),
                value => value.is_some_and(Datum::is_null),
            },
            _ => false,
        },
        // Other fields and units are refused; what becomes a moment first may lie too far away.
        "extract" | "date_part" => match args {
            [field, of] => {
                let known = |d: &Datum| matches!(d, Datum::Text(t) if FIELDS.contains(&&**t));
                let total = match of.ty() {
                    SqlType::Timestamp | SqlType::TimestampTz => true,
                    SqlType::Date => name == "extract",
                    _ => false,
                };
                total && field.as_const().is_some_and(known)
            }
            _ => false,
        },
        // Bit strings and addresses must be alike, patterns well-formed.
        "&" | "|" | "#" | "~" => args.iter().all(|arg| arg.ty().is_integer()),
        // Names may be nobody's.
        "has_table_privilege" | "has_schema_privilege" => {
            args.iter().all(|arg| *arg.ty() == SqlType::Oid || arg.as_const().is_some())
        }
        "substring" | "substr" => {
            args.len() > 1
                && args[1..].iter().all(|a| *a.ty() == SqlType::Int4)
                && (args.len() == 2 || at_least(args.get(2), 0))
        }
        _ => false,
    }
}

/// A comparison of a date with a midnight as one of two dates: the conversion of the date could
/// fail, and spans and native columns know nothing of it.
pub(super) fn without_casts(bound: &Bound) -> Bound {
    let Node::Compare(op, left, right) = bound.node() else {
        return bound.map_children(&mut without_casts);
    };
    let date = |side: &Bound| match side.node() {
        Node::Cast(inner, _) if *side.ty() == SqlType::Timestamp => {
            (*inner.ty() == SqlType::Date).then(|| inner.clone())
        }
        _ => None,
    };
    let midnight = |side: &Bound| match side.as_const() {
        Some(Datum::Timestamp(at)) if at % DAY_US == 0 => {
            let day = i32::try_from(at / DAY_US).ok()?;
            Some(Bound::constant(Datum::Date(day), SqlType::Date))
        }
        _ => None,
    };
    let sides = match (date(left), midnight(right), midnight(left), date(right)) {
        (Some(l), Some(r), _, _) | (_, _, Some(l), Some(r)) => Some((l, r)),
        _ => None,
    };
    match sides {
        Some((l, r)) => Bound::new(Node::Compare(*op, l, r), SqlType::Bool),
        None => bound.map_children(&mut without_casts),
    }
}

/// The numeric 0.
fn zero() -> Datum {
    Datum::Numeric(Arc::new(numeric::from_i128(0)))
}

/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;

/// An equality between different columns on its two sides: what joins are made of.
fn joins(bound: &Bound) -> bool {
    let Node::Compare(CmpOp::Eq, left, right) = bound.node() else { return false };
    let (l, r) = (left.columns(), right.columns());
    !l.is_empty() && !r.is_empty() && l.is_disjoint(&r)
}

/// The parts of a disjunction, or the expression itself.
fn alternatives(bound: &Bound) -> Vec<Bound> {
    match bound.node() {
        Node::Or(parts) => parts.iter().flat_map(alternatives).collect(),
        _ => vec![bound.clone()],
    }
}

/// Whether two expressions give the same value for each row.
fn same(a: &Bound, b: &Bound) -> bool {
    a.ty() == b.ty()
        && a.volatility() != Volatility::Volatile
        && a.columns() == b.columns()
        && a.to_string() == b.to_string()
}

impl Binder<'_> {
    /// Whether computing an expression can raise an error, or runs a subquery.
    pub(super) fn can_fail(&self, bound: &Bound) -> bool {
        if is_given(bound) {
            return false;
        }
        let own = match bound.node() {
            Node::Call(function, args) => {
                !TOTAL.contains(&function.name)
                    && !total_call(function.name, args)
                    && !self.is_short(bound)
            }
            Node::Cast(inner, context) => !total_cast(inner.ty(), bound.ty(), *context),
            Node::Quantified(QuantifiedOp::Function(_), ..) | Node::Apply(..) => true,
            _ => false,
        };
        own || bound.children().into_iter().any(|c| self.can_fail(c))
    }

    /// Whether a numeric is computed from so few digits that it cannot become too long: PostgreSQL
    /// has room for 131,072 of them, declared types for 1,000.
    pub(super) fn is_short(&self, bound: &Bound) -> bool {
        if !matches!(bound.ty(), SqlType::Numeric(_)) {
            return false;
        }
        match bound.node() {
            Node::Const(_) => true,
            Node::Column(at) => self.levels.last().is_some_and(|level| {
                let declared = |slot: &Slot| slot.ty.typmod() >= 0;
                level.short.contains(at) || level.slots.get(*at).is_some_and(declared)
            }),
            Node::Cast(inner, _) => inner.ty().is_integer() || self.is_short(inner),
            Node::Call(function, args) => match (function.name, args.as_slice()) {
                ("+" | "-" | "*", args) => args.iter().all(|a| self.is_short(a)),
                ("/", [dividend, divisor]) => {
                    let sign = divisor.as_const().map(|d| d.cmp_sql(&zero()));
                    self.is_short(dividend) && sign.is_some_and(std::cmp::Ordering::is_ne)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// `(a AND x) OR (a AND y)` as `a` and `x OR y`: what stands in every alternative can be the
    /// key of a join, or bound a scan. Only what cannot fail is computed for more rows than before.
    fn factored(&self, conjunct: Bound) -> Vec<Bound> {
        let mut parts: Vec<Vec<Bound>> =
            alternatives(&conjunct).iter().map(Bound::conjuncts).collect();
        let [first, others @ ..] = parts.as_slice() else { return vec![conjunct] };
        if others.is_empty() {
            return vec![conjunct];
        }
        let everywhere =
            |c: &&Bound| others.iter().all(|part| part.iter().any(|other| same(c, other)));
        let mut out: Vec<Bound> =
            first.iter().filter(|c| !self.can_fail(c)).filter(everywhere).cloned().collect();
        if out.is_empty() {
            return vec![conjunct];
        }
        for part in &mut parts {
            part.retain(|c| !out.iter().any(|common| same(common, c)));
        }
        // An alternative that says nothing else holds wherever the common part does.
        if parts.iter().all(|part| !part.is_empty()) {
            out.push(Bound::or(parts.into_iter().map(Bound::and).collect()));
        }
        out
    }

    /// The arguments of an aggregate with a FILTER: none is computed for a row that the filter
    /// rejects.
    pub(super) fn behind_filter(&self, filter: Option<&Bound>, args: Vec<Bound>) -> Vec<Bound> {
        let Some(filter) = filter.filter(|f| f.volatility() != Volatility::Volatile) else {
            return args;
        };
        let guarded = |arg: Bound| {
            if !self.can_fail(&arg) {
                return arg;
            }
            let ty = arg.ty().clone();
            let branch = CaseBranch { when: filter.clone(), then: arg };
            Bound::new(Node::Case(vec![branch], None), ty)
        };
        args.into_iter().map(guarded).collect()
    }

    /// Whether a condition can fail only as a whole, because of a subquery that is the same for all
    /// rows: it goes down to the table that it is about, as in PostgreSQL.
    fn fails_alike(&self, condition: &Bound) -> bool {
        let mut inner = condition;
        while let Node::Not(deeper) = inner.node() {
            inner = deeper;
        }
        let Some((applied, args)) = subquery_of(inner) else { return false };
        let is_fixed =
            applied.subquery.outer.is_empty() && condition.volatility() != Volatility::Volatile;
        is_fixed && !args.is_empty() && args.iter().all(|arg| !self.can_fail(arg))
    }

    /// The filters of a condition, in the order in which they are put upon each other. With
    /// `joined` it stands over tables, else over groups.
    pub(super) fn filters(&mut self, condition: &Bound, joined: bool) -> SqlResult<Vec<Expr>> {
        let conjuncts: Vec<Bound> =
            condition.conjuncts().into_iter().flat_map(|c| self.factored(c)).collect();
        let (plain, risky): (Vec<Bound>, Vec<Bound>) =
            conjuncts.into_iter().partition(|c| joins(c) || !self.can_fail(c));
        let (alike, risky): (Vec<Bound>, Vec<Bound>) =
            risky.into_iter().partition(|c| self.fails_alike(c));
        let mut filters = Vec::new();
        for part in plain.iter().chain(&alike) {
            filters.push(self.plan_expr(part)?);
        }
        if !risky.is_empty() {
            let guarded = Bound::and(plain.into_iter().chain(alike).chain(risky).collect());
            filters.push(self.pinned(&guarded, joined)?);
        }
        Ok(filters)
    }
}
