//! Which expressions can raise errors, and conditions that must not raise them for rows that other
//! conditions reject.
//!
//! ```text
//!   WHERE a <> 0 AND 10 / a >= 1 AND t.k = u.k
//!     a <> 0         cannot fail: a filter of its own, pushed down as far as it goes
//!     t.k = u.k      a key of the join
//!     10 / a >= 1    can fail: one filter `a <> 0 AND t.k = u.k AND 10 / a >= 1`, computed row by
//!                    row from left to right, which stays above the join
//! ```

use braid_scalar::{Bound, CmpOp, Node, QuantifiedOp};
use braid_types::{CastContext, SqlResult, SqlType, cast_exists};
use datafusion::logical_expr::Expr;

use super::Binder;

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
    "&",
    "|",
    "#",
    "~",
    "extract",
    "date_part",
    "array_position",
    "array_to_string",
    "string_to_array",
    "pg_table_is_visible",
    "pg_get_expr",
    "format_type",
    "pg_get_userbyid",
    "obj_description",
    "col_description",
    "pg_get_indexdef",
    "pg_get_constraintdef",
    "has_table_privilege",
    "has_schema_privilege",
];

/// Whether a conversion gives a value for every argument.
fn total_cast(from: &SqlType, to: &SqlType, context: CastContext) -> bool {
    let unlimited = to.typmod() < 0;
    unlimited
        && (from.same_base(to)
            || matches!(to, SqlType::Text | SqlType::Varchar(None))
            || (context == CastContext::Implicit
                && cast_exists(from, to) == Some(CastContext::Implicit)
                && (from.is_integer() || from.is_text_like())))
}

/// Whether computing an expression can raise an error, or runs a subquery.
pub(super) fn can_fail(bound: &Bound) -> bool {
    let own = match bound.node() {
        Node::Call(function, _) => !TOTAL.contains(&function.name),
        Node::Cast(inner, context) => !total_cast(inner.ty(), bound.ty(), *context),
        Node::Quantified(QuantifiedOp::Function(_), ..) | Node::Apply(..) => true,
        _ => false,
    };
    own || bound.children().into_iter().any(can_fail)
}

/// An equality between different columns on its two sides: what joins are made of.
fn joins(bound: &Bound) -> bool {
    let Node::Compare(CmpOp::Eq, left, right) = bound.node() else { return false };
    let (l, r) = (left.columns(), right.columns());
    !l.is_empty() && !r.is_empty() && l.is_disjoint(&r)
}

impl Binder<'_> {
    /// The filters of a condition, in the order in which they are put upon each other. With
    /// `joined` it stands over tables, else over groups.
    pub(super) fn filters(&mut self, condition: &Bound, joined: bool) -> SqlResult<Vec<Expr>> {
        let conjuncts = condition.conjuncts();
        let (plain, risky): (Vec<Bound>, Vec<Bound>) =
            conjuncts.into_iter().partition(|c| joins(c) || !can_fail(c));
        let mut filters = Vec::new();
        for part in &plain {
            filters.push(self.plan_expr(part)?);
        }
        if !risky.is_empty() {
            let guarded = Bound::and(plain.into_iter().chain(risky).collect());
            filters.push(self.pinned(&guarded, joined)?);
        }
        Ok(filters)
    }
}
