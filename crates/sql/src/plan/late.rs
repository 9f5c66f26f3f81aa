//! Steps that wait until it is known which rows are wanted: behind ORDER BY and LIMIT.
//!
//! ```text
//!   SELECT name, (SELECT count(*) FROM orders o WHERE o.id = c.id) FROM customers c
//!   ORDER BY name LIMIT 10
//!     step 1   full scan of customers      2,000 rows
//!     sort     the first 10 of them
//!     step 2   span read on orders         for these
//! ```
//! Those at the end can wait of which each gives one row for each row before it, whatever it finds:
//! values of subqueries, and LEFT JOINs by a whole key; and of which the order wants nothing to
//! know. What they would have computed for other rows nobody sees, as in PostgreSQL.

use super::passes::Passes;
use super::select::{Parts, SortKey, Step};

impl Parts {
    /// The first step that waits; as many as there are steps: none.
    pub(super) fn late_from(&self, alike: bool) -> usize {
        let waits = self.limit.is_some() && self.locking.is_none() && self.output.is_plain();
        match waits {
            true => late_from(&self.steps, &self.sort, self.passes.of(alike)),
            false => self.steps.len(),
        }
    }
}

/// The first step that waits, if rows that are shown one by one are sorted and only some of them
/// are wanted.
fn late_from(steps: &[Step], sort: &[SortKey], passes: &Passes) -> usize {
    if sort.is_empty() {
        return steps.len();
    }
    let sorted_by = sort.iter().flat_map(|key| key.expr.columns()).max();
    let can_wait =
        |step: &Step| step.gives_one_row() && sorted_by.is_none_or(|column| column < step.offset);
    let waiting = steps.iter().skip(1).rev().take_while(|step| can_wait(step)).count();
    // What is read in one pass with others is there anyway.
    let mut at = 0;
    while at < steps.len() - waiting {
        at = passes.ends[at] + 1;
    }
    at
}

impl Step {
    /// Whether it gives one row for each row before it.
    fn gives_one_row(&self) -> bool {
        let one = self.value.is_some()
            || self.left
                && self.made.is_none()
                && self.first.is_none()
                && self.access.is_one_point(&self.layout);
        one && self.after.is_empty() && self.semi.is_none()
    }
}
