//! Does a WHERE clause imply the predicate of a partial index?
//!
//! ```text
//!   predicate    deleted_at IS NULL AND amount > 10
//!   conditions   deleted_at IS NULL        says it itself
//!                amount IN (20, 30)        each of the values is above 10
//!                amount >= $1              may be anything: no
//! ```
//! Each part of the predicate must follow from one of the conditions. What does not follow by these
//! few rules is taken as not implied: the index is left alone, and nothing is lost but time.

use braid_scalar::{Bound, CmpOp, Node, compare};
use braid_types::Datum;

/// Whether a predicate over a table's columns holds wherever all conditions do. The table's first
/// column has ordinal `offset` in the conditions.
pub fn implies(conditions: &[Bound], predicate: &Bound, offset: usize) -> bool {
    let follows = |part: &Bound| conditions.iter().any(|c| proves(c, part, offset));
    predicate.conjuncts().iter().all(follows)
}

/// Whether one condition implies one part of a predicate.
fn proves(condition: &Bound, part: &Bound, offset: usize) -> bool {
    if condition.is_like(part, offset) {
        return true;
    }
    match condition.node() {
        Node::And(all) if all.iter().any(|c| proves(c, part, offset)) => return true,
        Node::Or(any) if any.iter().all(|c| proves(c, part, offset)) => return true,
        _ => {}
    }
    match part.node() {
        Node::And(all) => all.iter().all(|p| proves(condition, p, offset)),
        Node::Or(any) => any.iter().any(|p| proves(condition, p, offset)),
        Node::IsNull(inner, true) => refuses_null(condition, inner, offset),
        Node::Compare(op, a, b) => match (a.as_const(), b.as_const()) {
            (None, Some(value)) => bounds(condition, a, *op, value, offset),
            (Some(value), None) => bounds(condition, b, op.flipped(), value, offset),
            _ => false,
        },
        Node::InList(needle, list, false) => {
            let Some(values) = values_of(condition, needle, offset) else { return false };
            let listed = |value: &Datum| {
                let same = |v: &Bound| v.as_const().is_some_and(|v| holds(CmpOp::Eq, value, v));
                list.iter().any(same)
            };
            values.into_iter().all(listed)
        }
        Node::Not(inner) => is_truth(condition, inner, false, offset),
        _ => is_truth(condition, part, true, offset),
    }
}

fn holds(op: CmpOp, a: &Datum, b: &Datum) -> bool {
    matches!(compare(op, a, b), Datum::Bool(true))
}

/// `x IS TRUE`, `x = true`, and the same of false.
fn is_truth(condition: &Bound, x: &Bound, truth: bool, offset: usize) -> bool {
    match condition.node() {
        Node::IsTruth(inner, Some(value), false) => *value == truth && inner.is_like(x, offset),
        Node::Compare(CmpOp::Eq, a, b) => {
            let says = |value: &Bound, other: &Bound| {
                matches!(value.as_const(), Some(Datum::Bool(v)) if *v == truth)
                    && other.is_like(x, offset)
            };
            says(a, b) || says(b, a)
        }
        Node::Not(inner) => !truth && inner.is_like(x, offset),
        _ => truth && condition.is_like(x, offset),
    }
}

/// Whether a condition is not true where `x` is NULL.
fn refuses_null(condition: &Bound, x: &Bound, offset: usize) -> bool {
    let is_x = |b: &Bound| b.is_like(x, offset);
    match condition.node() {
        Node::Compare(_, a, b) => is_x(a) || is_x(b),
        Node::InList(needle, ..) | Node::Quantified(_, needle, _, false) => is_x(needle),
        Node::Not(inner) => match inner.node() {
            Node::Compare(_, a, b) => is_x(a) || is_x(b),
            Node::IsNull(inner, false) => is_x(inner),
            _ => is_x(inner),
        },
        Node::IsTruth(inner, Some(_), false) => is_x(inner),
        Node::Call(function, args) => function.strict && args.iter().any(is_x),
        _ => is_x(condition),
    }
}

/// The constants of which `x` is one where a condition holds; `None` if it does not say.
fn values_of<'a>(condition: &'a Bound, x: &Bound, offset: usize) -> Option<Vec<&'a Datum>> {
    match condition.node() {
        Node::Compare(CmpOp::Eq, a, b) if a.is_like(x, offset) => Some(vec![b.as_const()?]),
        Node::Compare(CmpOp::Eq, a, b) if b.is_like(x, offset) => Some(vec![a.as_const()?]),
        Node::InList(needle, list, false) if needle.is_like(x, offset) => {
            list.iter().map(Bound::as_const).collect()
        }
        _ => None,
    }
}

/// Whether a condition implies `x op value`.
fn bounds(condition: &Bound, x: &Bound, op: CmpOp, value: &Datum, offset: usize) -> bool {
    if let Some(values) = values_of(condition, x, offset) {
        return values.into_iter().all(|v| v.is_null() || holds(op, v, value));
    }
    let Node::Compare(own, a, b) = condition.node() else { return false };
    let (own, bound) = match (a.as_const(), b.as_const()) {
        (None, Some(bound)) if a.is_like(x, offset) => (*own, bound),
        (Some(bound), None) if b.is_like(x, offset) => (own.flipped(), bound),
        _ => return false,
    };
    // x own bound; is then x op value?
    match (own, op) {
        (CmpOp::Gt, CmpOp::Gt | CmpOp::Ge | CmpOp::Ne) => holds(CmpOp::Ge, bound, value),
        (CmpOp::Ge, CmpOp::Ge) => holds(CmpOp::Ge, bound, value),
        (CmpOp::Ge, CmpOp::Gt | CmpOp::Ne) => holds(CmpOp::Gt, bound, value),
        (CmpOp::Lt, CmpOp::Lt | CmpOp::Le | CmpOp::Ne) => holds(CmpOp::Le, bound, value),
        (CmpOp::Le, CmpOp::Le) => holds(CmpOp::Le, bound, value),
        (CmpOp::Le, CmpOp::Lt | CmpOp::Ne) => holds(CmpOp::Lt, bound, value),
        _ => false,
    }
}
