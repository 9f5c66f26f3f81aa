//! Joins by USING and NATURAL: equality of columns that have one name, of which one is left.

use braid_parser::take_join_alias;
use braid_scalar::{Bound, ParamTypes, Scope, ScopeColumn, object_name_parts};
use braid_types::SqlResult;
use sqlparser::ast::{BinaryOperator, Expr, Ident, JoinConstraint};

/// The conditions of such a join, whose right side are the columns from `begin` on; names mean
/// those of the left side then. `None`: general plans know how to, or what is wrong.
pub(super) fn merged(
    constraint: &JoinConstraint,
    begin: usize,
    scope: &mut Scope,
    params: &mut ParamTypes,
) -> SqlResult<Option<Vec<Bound>>> {
    let Some(names) = names(constraint, begin, scope)? else { return Ok(None) };
    let mut pairs = Vec::new();
    let mut conditions = Vec::new();
    for name in &names {
        let named = |range: std::ops::Range<usize>| {
            let mut found = range.filter(|at| is_named(&scope.columns()[*at], name));
            found.next().filter(|_| found.next().is_none())
        };
        let sides = (named(0..begin), named(begin..scope.len()));
        let (Some(left), Some(right)) = sides else { return Ok(None) };
        let (one, other) = (&scope.columns()[left], &scope.columns()[right]);
        // What is left has a type that both can be cast to.
        if one.ty != other.ty || one.collation != other.collation {
            return Ok(None);
        }
        let (Some(one), Some(other)) = (qualified(one), qualified(other)) else { return Ok(None) };
        let (left_side, right_side) = (Box::new(one), Box::new(other));
        let equal = Expr::BinaryOp { left: left_side, op: BinaryOperator::Eq, right: right_side };
        conditions
            .extend(braid_scalar::bind_bool(&equal, "JOIN/USING", scope, params)?.conjuncts());
        pairs.push((left, right));
    }
    scope.merge(&pairs);
    Ok(Some(conditions))
}

/// The names that both sides have in common, or that are given.
fn names(
    constraint: &JoinConstraint,
    begin: usize,
    scope: &Scope,
) -> SqlResult<Option<Vec<String>>> {
    match constraint {
        JoinConstraint::Using(names) => {
            let mut names: Vec<String> =
                names.iter().map(|n| object_name_parts(n).pop().unwrap_or_default()).collect();
            let has_alias = take_join_alias(&mut names).is_some();
            let is_twice = (1..names.len()).any(|at| names[..at].contains(&names[at]));
            Ok((!has_alias && !is_twice).then_some(names))
        }
        JoinConstraint::Natural => {
            let right = &scope.columns()[begin..];
            let left = scope.expand_star(None)?.into_iter().filter(|at| *at < begin);
            let common = left
                .map(|at| scope.columns()[at].name.clone())
                .filter(|name| right.iter().any(|column| is_named(column, name)));
            // Without any it is every pair, which has no conditions of its own.
            Ok(Some(common.collect()))
        }
        JoinConstraint::On(_) | JoinConstraint::None => Ok(None),
    }
}

/// Whether a name alone means a column.
fn is_named(column: &ScopeColumn, name: &str) -> bool {
    column.name == name && !column.hidden && !column.merged
}

/// A column by the name of its table.
fn qualified(column: &ScopeColumn) -> Option<Expr> {
    let quoted = |name: &str| Ident::with_quote('"', name);
    let table = column.table.as_deref()?;
    Some(Expr::CompoundIdentifier(vec![quoted(table), quoted(&column.name)]))
}
