//! DISTINCT ON: the first row of each group, in an order that begins with what tells groups apart.

use braid_scalar::Bound;
use braid_types::SqlResult;
use sqlparser::ast::{Expr, OrderByOptions};

use crate::plan::groups::same;
use crate::plan::select::SortKey;

/// What DISTINCT ON compares, and an order in which equal rows come one behind the other. `None`
/// where general plans know more, or that something is wrong.
///
/// # Errors
/// Those of `key`, which binds what is written there as ORDER BY would.
pub(in crate::plan) fn bind(
    on: &[Expr],
    sort: &mut Vec<SortKey>,
    mut key: impl FnMut(&Expr) -> SqlResult<Bound>,
) -> SqlResult<Option<Vec<Bound>>> {
    let all = on.iter().map(&mut key).collect::<SqlResult<Vec<Bound>>>()?;
    if !all.iter().all(|e| e.collation().is_by_bytes()) {
        return Ok(None);
    }
    let mut left: Vec<&Bound> = all.iter().collect();
    for by in &*sort {
        if left.is_empty() {
            break;
        }
        let before = left.len();
        left.retain(|e| !same(e, &by.expr));
        let again = || all.iter().any(|e| same(e, &by.expr));
        if left.len() == before && !again() {
            return Ok(None);
        }
    }
    let plain = OrderByOptions { asc: None, nulls_first: None };
    let more: Vec<SortKey> = left.into_iter().map(|e| SortKey::by(e.clone(), &plain)).collect();
    sort.extend(more);
    Ok(Some(all))
}
