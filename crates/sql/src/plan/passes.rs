//! Which steps of a chain are answered by one pass over families.
//!
//! ```text
//!   SELECT no FROM orders WHERE id = $1 AND no IN (SELECT no FROM lines WHERE id = $2)
//!
//!   $1 = 7, $2 = 7    lines are looked for inside of the orders: one pass
//!   $1 = 7, $2 = 8    they lie elsewhere: a lookup for each order
//! ```
//! A plan outlives the values that it was made for, so it keeps both ways where parameters decide
//! between them, and each execution takes the one that is right for its values. Drivers give each
//! occurrence of a value a parameter of its own.

use braid_planner::Same;
use braid_scalar::{Bound, EvalContext, Node};

use super::family::whole_passes;
use super::gather::Gather;
use super::select::Step;
use crate::session::Context;

/// Which steps are one pass.
pub(super) struct Passes {
    /// For each step, the last step that one pass beginning there covers.
    pub(super) ends: Vec<usize>,
    /// The first of them is one over tables that are not one chain.
    pub(super) gather: Option<Gather>,
}

impl Passes {
    fn plan(ctx: &Context, steps: &[Step], locks: bool, same: Same<'_>) -> Passes {
        let mut ends = whole_passes(steps, &ctx.catalog, same);
        let gather = if locks { None } else { Gather::plan(ctx, steps, &ends, same) };
        ends[0] = gather.as_ref().map_or(ends[0], |gather| gather.last);
        Passes { ends, gather }
    }
}

/// The passes of a plan, whatever the values of parameters are.
pub(super) struct AllPasses {
    /// Those that are always right.
    always: Passes,
    /// Pairs of parameters, and the passes if both of each pair have the same value.
    alike: Option<(Vec<(usize, usize)>, Passes)>,
}

impl AllPasses {
    /// Finds them for these steps. A pass goes forward only.
    pub(super) fn plan(ctx: &Context, steps: &[Step], reverse: bool, locks: bool) -> AllPasses {
        // A value of no table's rows has none to lie in, and first rows are found row by row.
        let alone = steps.first().is_none_or(|first| first.value.is_some());
        if reverse || alone || steps.iter().any(|step| step.first.is_some()) {
            let always = Passes { ends: (0..steps.len()).collect(), gather: None };
            return AllPasses { always, alike: None };
        }
        let always = Passes::plan(ctx, steps, locks, &|a, b| a.is_like(b, 0));
        let pairs = pairs(steps);
        let paired = |a: &Bound, b: &Bound| match (a.node(), b.node()) {
            (Node::Param(a), Node::Param(b)) => pairs.contains(&(*a.min(b), *a.max(b))),
            _ => false,
        };
        let alike = (!pairs.is_empty())
            .then(|| Passes::plan(ctx, steps, locks, &|a, b| a.is_like(b, 0) || paired(a, b)));
        let alike = alike.filter(|alike| alike.ends != always.ends);
        AllPasses { always, alike: alike.map(|alike| (pairs, alike)) }
    }

    /// Whether the pairs of parameters have the same values in this execution.
    pub(super) fn are_alike(&self, eval: &EvalContext) -> bool {
        let equal = |(a, b): &(usize, usize)| match (eval.param(*a), eval.param(*b)) {
            (Ok(a), Ok(b)) => !a.is_null() && !b.is_null() && a.cmp_sql(&b).is_eq(),
            _ => false,
        };
        self.alike.as_ref().is_some_and(|(pairs, _)| pairs.iter().all(equal))
    }

    /// Those of an execution, of which [`AllPasses::are_alike`] has told so.
    pub(super) fn of(&self, alike: bool) -> &Passes {
        match &self.alike {
            Some((_, passes)) if alike => passes,
            _ => &self.always,
        }
    }
}

/// Parameters that stand in the same place of the keys of two steps.
fn pairs(steps: &[Step]) -> Vec<(usize, usize)> {
    let (mut out, mut all) = (Vec::new(), Vec::new());
    steps.iter().for_each(|step| step.with_nested(&mut all));
    for (n, inner) in all.iter().enumerate() {
        for outer in &all[..n] {
            if outer.access.index.is_some() || inner.access.index.is_some() {
                continue;
            }
            for at in 0..outer.access.eq_len().min(inner.access.eq_len()) {
                let (Some(a), Some(b)) = (outer.access.single(at), inner.access.single(at)) else {
                    continue;
                };
                if let (Node::Param(one), Node::Param(other)) = (a.node(), b.node())
                    && one != other
                    && a.ty() == b.ty()
                {
                    out.push((*one.min(other), *one.max(other)));
                }
            }
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}
