//! Does the order of the keys give the order that was asked for?
//!
//! ```text
//!   steps   point read on c (id = 7), family read of o (customer = c.id)
//!   keys    c.id [fixed], o.customer [fixed], o.id asc
//!   ORDER BY o.id         yes          ORDER BY o.id DESC      no (a join goes forward only)
//! ```

use super::select::{SortKey, Step};

/// How an order is met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Met {
    Forward,
    Backward,
    No,
}

/// Whether the chain of steps yields rows in this order.
pub(super) fn met(steps: &[Step], sort: &[SortKey]) -> Met {
    // Rows of which the first are wanted come in an order of their own.
    let end = steps.iter().position(|s| s.first.is_some()).unwrap_or(steps.len());
    met_by(&steps[..end], steps, sort)
}

/// The same of what one step finds for a row of the steps before.
pub(super) fn met_within(step: &Step, sort: &[SortKey]) -> Met {
    let only = std::slice::from_ref(step);
    met_by(only, only, sort)
}

/// As [`met`], where some of the steps have an order.
fn met_by(ordered: &[Step], steps: &[Step], sort: &[SortKey]) -> Met {
    if sort.is_empty() {
        return Met::Forward;
    }
    let mut sequence = Vec::new();
    let mut fixed = Vec::new();
    for s in ordered {
        let layout = s.access.layout(&s.layout);
        for (n, k) in layout.columns().iter().enumerate() {
            let at = s.offset + k.ordinal;
            if n < s.access.eq_len() && s.access.is_single(n) {
                fixed.push(at);
            } else {
                sequence.push((at, k.dir.desc, k.dir.nulls_first));
            }
        }
        // A left join's rows of NULLs break the order of its own columns, and rows that were made
        // have none.
        if s.left || s.made.is_some() {
            break;
        }
    }
    let mut direction = None;
    let mut keys = sequence.into_iter();
    for want in sort {
        let Some(at) = want.expr.as_column() else { return Met::No };
        if fixed.contains(&at) {
            continue;
        }
        let Some((have, desc, nulls_first)) = keys.next() else { return Met::No };
        if have != at {
            return Met::No;
        }
        let nullable = steps
            .iter()
            .find(|s| at >= s.offset && at < s.offset + s.layout.table.columns.len())
            .is_none_or(|s| s.layout.table.columns[at - s.offset].nullable);
        let reverse = desc != want.desc;
        if nullable && (nulls_first != reverse) != want.nulls_first {
            return Met::No;
        }
        if *direction.get_or_insert(reverse) != reverse {
            return Met::No;
        }
    }
    match direction {
        Some(true) if !steps[1..].iter().any(Step::multiplies) => Met::Backward,
        Some(true) => Met::No,
        _ => Met::Forward,
    }
}
