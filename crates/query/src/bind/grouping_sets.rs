//! GROUPING SETS, ROLLUP and CUBE: several groupings in one pass.
//!
//! ```text
//!   GROUP BY ROLLUP (a, b)         sets 0: (a, b)   1: (a)   2: ()
//!   rows x sets                    each row once for each set, with the number of the set
//!   GROUP BY set, a if the set has it, b if the set has it
//! ```
//! The set is part of the key, so sets that are the same twice give their groups twice, and a NULL
//! of the data is another group than a column that is left out. The set () has a group even where
//! there are no rows: then the sets are the outer side of the join, and what is computed for the
//! row of NULLs that it makes is left out again.

use std::collections::BTreeSet;

use braid_parser::{DISTINCT_SETS, INNER_SETS};
use braid_scalar::{Bound, CaseBranch, Node};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::common::{JoinType, ScalarValue};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use sqlparser::ast;

use super::function_table::columns_of;
use super::grouping::{Group, nested_aggregate};
use super::{Binder, column};
use crate::error::from_df;

/// Most sets of one GROUP BY, as in PostgreSQL.
const SETS_MAX: usize = 4096;
/// Most elements of a CUBE, as in PostgreSQL.
const CUBE_MAX: usize = 12;
/// Most arguments of GROUPING: bits of an integer.
const ARGUMENTS_MAX: usize = 31;

/// The sets of a GROUP BY.
#[derive(Clone)]
pub(super) struct GroupingSets {
    /// Where the number of a row's set is, before grouping and after.
    pub(super) slot: usize,
    /// By set, which of the level's groups it has. Groups behind those that were written are in
    /// all sets.
    pub(super) sets: Vec<Vec<bool>>,
    /// A column that is NULL where the input had no row, if that matters.
    pub(super) present: Option<String>,
}

impl GroupingSets {
    /// Whether all sets have a group.
    pub(super) fn all_have(&self, group: usize) -> bool {
        self.sets.iter().all(|set| set.get(group).copied().unwrap_or(true))
    }

    fn number_is(&self, which: impl Fn(&[bool]) -> bool) -> Bound {
        let numbers = self.sets.iter().enumerate().filter(|(_, set)| which(set));
        let numbers = numbers.map(|(n, _)| Bound::constant(Datum::Int4(n as i32), SqlType::Int4));
        let number = Bound::column(self.slot, SqlType::Int4);
        Bound::new(Node::InList(number, numbers.collect(), false), SqlType::Bool)
    }

    /// An expression over groups in the set of its row: those that the set leaves out are NULL.
    pub(super) fn over_groups(&self, groups: &[Group], bound: &Bound) -> Bound {
        match groups.iter().position(|group| group.bound.is_like(bound, 0)) {
            Some(group) => self.value(group, bound),
            None => bound.map_children(&mut |part| self.over_groups(groups, part)),
        }
    }

    /// The value of a group in the set of its row: NULL if the set leaves it out.
    pub(super) fn value(&self, group: usize, bound: &Bound) -> Bound {
        if self.all_have(group) {
            return bound.clone();
        }
        let when = self.number_is(|set| set[group]);
        let branch = CaseBranch { when, then: bound.clone() };
        Bound::new(Node::Case(vec![branch], None), bound.ty().clone())
    }

    /// `GROUPING(..)` of these groups: a bit for each that is left out, the first the highest.
    fn grouping(&self, groups: &[usize]) -> Bound {
        let int = |n: i32| Bound::constant(Datum::Int4(n), SqlType::Int4);
        let bits = |set: &[bool]| {
            let out = |group: &usize| !set.get(*group).copied().unwrap_or(true);
            groups.iter().fold(0, |bits, group| bits << 1 | i32::from(out(group)))
        };
        let mut values: Vec<i32> = self.sets.iter().map(|set| bits(set)).collect();
        values.sort_unstable();
        values.dedup();
        let branch = |value: i32| CaseBranch {
            when: self.number_is(|set| bits(set) == value),
            then: int(value),
        };
        let branches = values.into_iter().map(branch).collect();
        Bound::new(Node::Case(branches, Some(int(0))), SqlType::Int4)
    }
}

/// Keys one by one: those of lists in parentheses, too.
pub(super) fn flat(keys: &[ast::Expr]) -> Vec<&ast::Expr> {
    fn add<'a>(key: &'a ast::Expr, out: &mut Vec<&'a ast::Expr>) {
        match key {
            ast::Expr::Nested(inner) => add(inner, out),
            ast::Expr::Tuple(parts) => parts.iter().for_each(|part| add(part, out)),
            key => out.push(key),
        }
    }
    let mut out = Vec::with_capacity(keys.len());
    keys.iter().for_each(|key| add(key, &mut out));
    out
}

/// What GROUP BY lists: alternatives of lists of expressions, if it has sets.
pub(super) fn alternatives(exprs: &[ast::Expr]) -> SqlResult<Option<Vec<Vec<ast::Expr>>>> {
    let has_sets = |e: &ast::Expr| {
        matches!(e, ast::Expr::GroupingSets(_) | ast::Expr::Cube(_) | ast::Expr::Rollup(_))
            || matches!(e, ast::Expr::Tuple(parts) if parts.is_empty())
    };
    if !exprs.iter().any(has_sets) {
        return Ok(None);
    }
    let each = exprs.iter().map(alternatives_of);
    product(&each.collect::<SqlResult<Vec<_>>>()?).map(Some)
}

/// Each alternative of one with each of the others.
fn product(each: &[Vec<Vec<ast::Expr>>]) -> SqlResult<Vec<Vec<ast::Expr>>> {
    let mut out: Vec<Vec<ast::Expr>> = vec![Vec::new()];
    for of_one in each {
        if out.len().saturating_mul(of_one.len()) > SETS_MAX {
            return Err(SqlError::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                format!("too many grouping sets present (maximum {SETS_MAX})"),
            ));
        }
        let with = |set: &Vec<ast::Expr>| -> Vec<Vec<ast::Expr>> {
            of_one.iter().map(|more| [set.as_slice(), more].concat()).collect()
        };
        out = out.iter().flat_map(with).collect();
    }
    Ok(out)
}

/// Without sets that have come already, in whatever order of their expressions.
fn once(mut sets: Vec<Vec<ast::Expr>>) -> Vec<Vec<ast::Expr>> {
    fn bare(e: &ast::Expr) -> String {
        match e {
            ast::Expr::Nested(inner) => bare(inner),
            other => other.to_string(),
        }
    }
    let mut seen = BTreeSet::new();
    sets.retain(|set| seen.insert(set.iter().map(bare).collect::<BTreeSet<_>>()));
    sets
}

/// The lists of expressions that one element of GROUP BY stands for.
fn alternatives_of(e: &ast::Expr) -> SqlResult<Vec<Vec<ast::Expr>>> {
    Ok(match e {
        ast::Expr::Nested(inner) => alternatives_of(inner)?,
        ast::Expr::Tuple(parts) => vec![parts.clone()],
        ast::Expr::GroupingSets(sets) => {
            let each = sets.iter().map(|set| match set.as_slice() {
                [one] => within_sets(one),
                _ => Ok(vec![set.clone()]),
            });
            each.collect::<SqlResult<Vec<_>>>()?.concat()
        }
        ast::Expr::Rollup(parts) => (0..=parts.len()).rev().map(|n| parts[..n].concat()).collect(),
        ast::Expr::Cube(parts) if parts.len() > CUBE_MAX => {
            return Err(SqlError::new(
                SqlState::TOO_MANY_COLUMNS,
                format!("CUBE is limited to {CUBE_MAX} elements"),
            ));
        }
        ast::Expr::Cube(parts) => {
            let subset = |bits: usize| {
                let kept = parts.iter().enumerate().filter(|(n, _)| bits >> n & 1 == 1);
                kept.flat_map(|(_, part)| part.clone()).collect()
            };
            (0..1usize << parts.len()).rev().map(subset).collect()
        }
        other => vec![vec![other.clone()]],
    })
}

/// The lists that an element of GROUPING SETS stands for: sets within it are read as calls.
fn within_sets(e: &ast::Expr) -> SqlResult<Vec<Vec<ast::Expr>>> {
    if let ast::Expr::Nested(inner) = e {
        return within_sets(inner);
    }
    let ast::Expr::Function(call) = e else { return alternatives_of(e) };
    let name = Binder::bare_name(&call.name);
    let elements = || Ok::<_, SqlError>(Binder::arguments(call)?.exprs);
    let parts = || -> SqlResult<Vec<Vec<ast::Expr>>> {
        let part = |e: &ast::Expr| match e {
            ast::Expr::Tuple(parts) => parts.clone(),
            e => vec![e.clone()],
        };
        Ok(elements()?.into_iter().map(part).collect())
    };
    match name.as_str() {
        INNER_SETS => {
            let each = elements()?.into_iter().map(within_sets);
            Ok(each.collect::<SqlResult<Vec<_>>>()?.concat())
        }
        DISTINCT_SETS => {
            let each = elements()?.into_iter().map(within_sets);
            Ok(once(product(&each.collect::<SqlResult<Vec<_>>>()?)?))
        }
        "rollup" => alternatives_of(&ast::Expr::Rollup(parts()?)),
        "cube" => alternatives_of(&ast::Expr::Cube(parts()?)),
        "row" if elements()?.is_empty() => Ok(vec![Vec::new()]),
        _ => Ok(vec![vec![e.clone()]]),
    }
}

impl Binder<'_> {
    /// Notes the sets of this level; by set, which groups it has.
    pub(super) fn note_sets(&mut self, sets: Vec<Vec<bool>>) {
        let name = self.fresh("set");
        let slot = self.add_column(&name, SqlType::Int4);
        let empty = sets.iter().any(|set| !set.contains(&true));
        let present = empty.then(|| self.fresh("present"));
        self.level().grouping = Some(GroupingSets { slot, sets, present });
    }

    /// `GROUPING(a, b)`.
    pub(super) fn grouping_call(&mut self, function: &ast::Function) -> SqlResult<Bound> {
        if self.queries_out(function)? > 0 {
            let found = self.one_level_out(|b| b.grouping_call(function).map(Some))?;
            let outer = found.ok_or_else(|| SqlError::internal("GROUPING of no query"))?;
            return Ok(self.brought_in(outer));
        }
        if self.level().aggregating.inside {
            return Err(nested_aggregate());
        }
        let given = Self::arguments(function)?;
        let strange = || {
            SqlError::new(
                SqlState::GROUPING_ERROR,
                "arguments to GROUPING must be grouping expressions of the associated query level",
            )
        };
        if given.exprs.len() > ARGUMENTS_MAX {
            return Err(SqlError::new(
                SqlState("54023"),
                "GROUPING must have fewer than 32 arguments",
            ));
        }
        let mut groups = Vec::with_capacity(given.exprs.len());
        for expr in given.exprs {
            let bound = self.settled(expr)?;
            let is_it = |g: &super::grouping::Group| {
                bound.as_column() == Some(g.slot) || bound.is_like(&g.bound, 0)
            };
            groups.push(self.level().groups.iter().position(is_it).ok_or_else(strange)?);
        }
        Ok(match &self.level().grouping {
            Some(sets) => sets.grouping(&groups),
            None => Bound::constant(Datum::Int4(0), SqlType::Int4),
        })
    }

    /// The rows that are grouped: each once for each set.
    pub(super) fn rows_by_set(
        &mut self,
        plan: LogicalPlan,
        sets: &GroupingSets,
    ) -> SqlResult<LogicalPlan> {
        let number = |n: usize| vec![lit(ScalarValue::Int32(Some(n as i32)))];
        let name = self.slot_name(sets.slot);
        let numbers = LogicalPlanBuilder::values((0..sets.sets.len()).map(number).collect())
            .and_then(|b| b.project([column("column1").alias(name)]));
        let joined = match &sets.present {
            None => numbers.and_then(|b| b.cross_join(plan)),
            Some(present) => {
                let own = columns_of(&plan).into_iter();
                let own = own.chain([lit(true).alias(present.clone())]);
                let rows = LogicalPlanBuilder::from(plan).project(own);
                rows.and_then(LogicalPlanBuilder::build).and_then(|rows| {
                    numbers.and_then(|b| b.join_on(rows, JoinType::Left, [lit(true)]))
                })
            }
        };
        joined.and_then(LogicalPlanBuilder::build).map_err(from_df)
    }

    /// The groups without those of the row that stands for no rows; `rows` counts the others.
    pub(super) fn without_absent(
        &mut self,
        plan: LogicalPlan,
        sets: &GroupingSets,
        rows: &str,
    ) -> SqlResult<LogicalPlan> {
        let empty = sets.sets.iter().enumerate().filter(|(_, set)| !set.contains(&true));
        let empty = empty.map(|(n, _)| lit(ScalarValue::Int32(Some(n as i32)))).collect();
        let number = column(&self.slot_name(sets.slot));
        let kept = column(rows).gt(lit(0i64)).or(number.in_list(empty, false));
        LogicalPlanBuilder::from(plan)
            .filter(kept)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)
    }
}

/// Counts the rows of a group that are none of NULLs.
pub(super) fn count_present(present: &str) -> Expr {
    count(column(present))
}
