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

use braid_scalar::{Bound, CaseBranch, CmpOp, Node, Volatility};
use braid_types::{Datum, SqlResult, SqlType};
use datafusion::logical_expr::Expr;

use super::lift::subquery_of;
use super::{Binder, Slot};

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
        braid_scalar::can_fail(bound, &|column| self.is_short_column(column))
    }

    /// Whether a numeric is computed from so few digits that it cannot become too long.
    pub(super) fn is_short(&self, bound: &Bound) -> bool {
        braid_scalar::is_short(bound, &|column| self.is_short_column(column))
    }

    fn is_short_column(&self, column: &Bound) -> bool {
        let Some(at) = column.as_column() else { return false };
        self.levels.last().is_some_and(|level| {
            let declared = |slot: &Slot| slot.ty.typmod() >= 0;
            level.short.contains(&at) || level.slots.get(at).is_some_and(declared)
        })
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
