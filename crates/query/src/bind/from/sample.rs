//! TABLESAMPLE: some rows of a table, by chance.
//!
//! ```text
//!   row 7 ─ its key and the seed ─► a number below 2^64 ─► below so many percent of that? it stays
//! ```
//! The number says nothing but chance, and is the same each time for one key and one seed: with
//! REPEATABLE a table that has not changed gives the same rows, and one that has gives those again
//! that are still there. SYSTEM has no pages to take or leave: it takes rows, as BERNOULLI does.

use braid_scalar::{EvalContext, Scope, Volatility, bind_unsettled, coerce};
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use sqlparser::ast;

use super::Item;
use crate::arrow_form;
use crate::bind::Binder;
use crate::error::from_df;
use crate::exec::scalar::{RowFunction, RowUdf};

/// Whether a row stays, by its key.
struct Sampled {
    seed: u64,
    /// Numbers below this stay.
    below: u128,
}

impl RowFunction for Sampled {
    fn call(&self, key: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
        let mut bytes = self.seed.to_be_bytes().to_vec();
        key.iter().for_each(|value| arrow_form::pack(value, &mut bytes));
        Ok(Datum::Bool(u128::from(number(&bytes)) < self.below))
    }
}

/// FNV-1a, and then the end of MurmurHash3, since FNV leaves the high bits of short texts alike.
fn number(bytes: &[u8]) -> u64 {
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, fnv);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

impl Binder<'_> {
    /// Some rows of a table.
    pub(super) fn sampled(&mut self, item: Item, kind: &ast::TableSampleKind) -> SqlResult<Item> {
        let ast::TableSampleKind::AfterTableAlias(sample) = kind else {
            return Err(SqlError::syntax("syntax error at or near \"tablesample\""));
        };
        let key: Vec<(Expr, SqlType)> = (0..item.origins.len())
            .filter(|at| item.origins[*at].is_some_and(|origin| origin.key))
            .map(|at| {
                let ty = item.relation.scope.columns()[at].ty.clone();
                (item.relation.columns[at].clone(), ty)
            })
            .collect();
        if key.is_empty() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "TABLESAMPLE clause can only be applied to tables and materialized views",
            ));
        }
        let sampled = Sampled { below: self.percentage(sample)?, seed: self.seed(sample)? };
        let stays = RowUdf::call_expr(
            "sampled".to_string(),
            Box::new(sampled),
            key,
            SqlType::Bool,
            Volatility::Immutable,
            None,
        );
        let mut item = item;
        item.relation.plan = LogicalPlanBuilder::from(item.relation.plan)
            .filter(stays)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok(item)
    }

    /// The part of all numbers that stays.
    fn percentage(&mut self, sample: &ast::TableSample) -> SqlResult<u128> {
        use ast::TableSampleMethod::{Bernoulli, System};
        if !matches!(sample.name, Some(Bernoulli | System)) {
            let name = sample.name.as_ref().map(ToString::to_string).unwrap_or_default();
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("tablesample method {} does not exist", name.to_lowercase()),
            ));
        }
        let given = match &sample.quantity {
            Some(ast::TableSampleQuantity { parenthesized: true, value, unit: None })
                if sample.bucket.is_none() && sample.offset.is_none() =>
            {
                value
            }
            _ => return Err(SqlError::syntax("syntax error in TABLESAMPLE")),
        };
        let percent = match self.sample_argument(given, &SqlType::Float8)? {
            Some(Datum::Float8(percent)) => percent,
            Some(_) => {
                let text = "TABLESAMPLE parameter cannot be null";
                return Err(SqlError::new(SqlState("2202H"), text));
            }
            // Of an execution to come: it is bound again.
            None => 0.0,
        };
        if !(0.0..=100.0).contains(&percent) {
            let text = "sample percentage must be between 0 and 100";
            return Err(SqlError::new(SqlState("2202H"), text));
        }
        Ok((percent / 100.0 * 2f64.powi(64)) as u128)
    }

    /// REPEATABLE, or something else each time.
    fn seed(&mut self, sample: &ast::TableSample) -> SqlResult<u64> {
        let Some(seed) = &sample.seed else {
            return Ok(self.bind_anew().map_or(0, |eval| eval.session.random_u64()));
        };
        let given = ast::Expr::Value(seed.value.clone());
        Ok(match self.sample_argument(&given, &SqlType::Float8)? {
            Some(Datum::Float8(seed)) => (seed + 0.0).to_bits(),
            _ => 0,
        })
    }

    fn sample_argument(&mut self, expr: &ast::Expr, ty: &SqlType) -> SqlResult<Option<Datum>> {
        let scope = Scope::empty();
        let bound = self.isolated(|b| bind_unsettled(expr, &scope, b))?;
        let bound = coerce(bound, ty, CastContext::Assignment, self)?;
        self.value_now(&bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_fall_evenly() {
        for seed in 0..4u64 {
            let sampled = Sampled { seed, below: 1 << 61 };
            let stays = |n: &i64| {
                let key = [Datum::Int8(*n)];
                let kept = sampled.call(&key, &EvalContext::constant()).unwrap();
                matches!(kept, Datum::Bool(true))
            };
            let count = (0..80_000).filter(stays).count();
            assert!((9_700..10_300).contains(&count), "an eighth, not {count}");
        }
    }
}
