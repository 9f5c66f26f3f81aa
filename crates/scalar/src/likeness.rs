//! Whether two bound expressions say the same: how a condition finds the index on its expression.
//!
//! ```text
//!   index on    lower(#1)                            columns of the table
//!   condition   lower(#5) = $1                       the table's first column is #4 of the join
//!               └──────┘ is like the index's, 4 columns further
//! ```
//! Both were made by the same binder, so trees that mean the same by the rules of PostgreSQL's
//! `equal()` are built alike: the same nodes, overloads and types. Nothing is known of algebra.

use std::sync::Arc;

use braid_types::{Datum, TimeZone};

use crate::{Bound, Node, QuantifiedOp};

impl Bound {
    /// Whether it says of columns from `offset` on what `other` says of columns from the first on.
    pub fn is_like(&self, other: &Bound, offset: usize) -> bool {
        if self.ty() != other.ty() || !same_node(self.node(), other.node(), offset) {
            return false;
        }
        let (own, others) = (self.children(), other.children());
        own.len() == others.len()
            && own.into_iter().zip(others).all(|(own, other)| own.is_like(other, offset))
    }
}

/// Whether two constants are the same, to the last digit that is shown.
fn same_constant(a: &Datum, b: &Datum) -> bool {
    match (a.is_null(), b.is_null()) {
        (true, true) => true,
        (false, false) => a.to_text(TimeZone::utc()) == b.to_text(TimeZone::utc()),
        _ => false,
    }
}

fn same_operator(a: &QuantifiedOp, b: &QuantifiedOp) -> bool {
    match (a, b) {
        (QuantifiedOp::Compare(a), QuantifiedOp::Compare(b)) => a == b,
        (QuantifiedOp::Function(a), QuantifiedOp::Function(b)) => std::ptr::eq(*a, *b),
        _ => false,
    }
}

/// Whether two nodes are of the same kind; their parts are compared one by one.
fn same_node(own: &Node, other: &Node, offset: usize) -> bool {
    match (own, other) {
        (Node::Const(a), Node::Const(b)) => same_constant(a, b),
        (Node::Column(a), Node::Column(b)) => *a == *b + offset,
        (Node::Param(a), Node::Param(b)) => a == b,
        (Node::Compare(a, ..), Node::Compare(b, ..)) => a == b,
        (Node::IsDistinct(_, _, a), Node::IsDistinct(_, _, b))
        | (Node::IsNull(_, a), Node::IsNull(_, b))
        | (Node::InList(_, _, a), Node::InList(_, _, b))
        | (Node::Extreme(_, a), Node::Extreme(_, b)) => a == b,
        (Node::IsTruth(_, a, m), Node::IsTruth(_, b, n)) => a == b && m == n,
        (Node::Quantified(a, _, _, m), Node::Quantified(b, _, _, n)) => {
            same_operator(a, b) && m == n
        }
        (Node::Cast(_, a), Node::Cast(_, b)) => a == b,
        (Node::Case(a, m), Node::Case(b, n)) => a.len() == b.len() && m.is_some() == n.is_some(),
        (Node::Row(_, a), Node::Row(_, b)) => a == b,
        (Node::Field(_, a), Node::Field(_, b)) => a == b,
        (Node::Slice(_, a), Node::Slice(_, b)) => {
            let given =
                |(low, high): &(Option<Bound>, Option<Bound>)| (low.is_some(), high.is_some());
            a.iter().map(given).eq(b.iter().map(given))
        }
        (Node::Call(a, _), Node::Call(b, _)) => std::ptr::eq(*a, *b),
        (Node::Apply(a, _), Node::Apply(b, _)) => Arc::ptr_eq(a, b),
        (Node::And(_), Node::And(_))
        | (Node::Or(_), Node::Or(_))
        | (Node::Not(_), Node::Not(_))
        | (Node::Coalesce(_), Node::Coalesce(_))
        | (Node::NullIf(..), Node::NullIf(..))
        | (Node::Array(_), Node::Array(_)) => true,
        (Node::Subscript(_, a), Node::Subscript(_, b)) => a.len() == b.len(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use braid_types::SqlType;

    use super::*;
    use crate::{ParamTypes, Scope, bind};

    fn bound(text: &str) -> Bound {
        let columns = [("a", SqlType::Int4), ("s", SqlType::Text), ("j", SqlType::Jsonb)];
        let columns = columns.map(|(name, ty)| (name.to_string(), ty, true));
        let scope = Scope::table("t", None, columns);
        let expr = parsed(text);
        bind(&expr, &scope, &mut ParamTypes::default()).expect(text)
    }

    /// This crate stands below our parser.
    fn parsed(text: &str) -> sqlparser::ast::Expr {
        let dialect = sqlparser::dialect::PostgreSqlDialect {};
        let parser = sqlparser::parser::Parser::new(&dialect);
        parser.try_with_sql(text).and_then(|mut p| p.parse_expr()).expect(text)
    }

    #[test]
    fn the_same_text_is_alike_and_another_is_not() {
        let texts = [
            "lower(s)",
            "upper(s)",
            "a + 1",
            "a + 2",
            "1 + a",
            "a > 1",
            "a >= 1",
            "j ->> 'x'",
            "j ->> 'y'",
            "j -> 'x'",
            "coalesce(s, 'x')",
            "case when a > 1 then s end",
            "case when a > 1 then s else 'z' end",
            "a in (1, 2)",
            "a not in (1, 2)",
            "s is null",
            "s is not null",
            "a::bigint",
            "s like 'x%'",
        ];
        for (m, one) in texts.iter().enumerate() {
            for (n, other) in texts.iter().enumerate() {
                assert_eq!(bound(one).is_like(&bound(other), 0), m == n, "{one} / {other}");
            }
        }
    }

    #[test]
    fn columns_may_be_elsewhere_by_the_offset_only() {
        let moved = bound("lower(s)").remap_columns(&|at| at + 4);
        assert!(moved.is_like(&bound("lower(s)"), 4));
        assert!(!moved.is_like(&bound("lower(s)"), 3));
    }
}
