//! Deadlocks: the graph "waits for" is searched from a transaction that is about to wait.
//!
//! The transaction that closes the circle is the victim, as in PostgreSQL. Most waits cannot close
//! one: a circle leads through somebody who waits for the new waiter, so the search is made only
//! if it has been in somebody's way (`blocking`).
//!
//! Waiting behind another *request* is only a matter of fairness. Where such a wait is part of a
//! circle, the request goes before the other one instead:
//!
//! ```text
//!   A holds /7/1     B wants [/7, /8): waits for A     A wants /7/2: would wait behind B
//! ```

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::TxnId;
use super::table::{Request, State};

impl State {
    /// The circle of transactions that `from`, which waits now, has closed, if it cannot be opened
    /// by letting requests go before others.
    pub(super) fn unsolvable_cycle(&mut self, from: TxnId) -> Option<Vec<TxnId>> {
        loop {
            let cycle = self.cycle(from)?;
            let mut unfair: Vec<Arc<Request>> = Vec::new();
            for (n, txn) in cycle.iter().enumerate() {
                let next = cycle[(n + 1) % cycle.len()];
                let own = self.waiting.get(txn).into_iter().flatten();
                unfair.extend(own.filter(|r| !r.passes() && !self.holds_up(next, r)).cloned());
            }
            if unfair.is_empty() {
                return Some(cycle);
            }
            for request in &unfair {
                self.prefer(request);
            }
            for request in &unfair {
                self.wake(&request.target);
            }
        }
    }

    /// A circle of waits through `from`.
    fn cycle(&self, from: TxnId) -> Option<Vec<TxnId>> {
        if !self.blocking.contains(&from) {
            return None;
        }
        let mut path = vec![from];
        let mut seen = HashSet::new();
        self.leads_back(from, &mut path, &mut seen).then_some(path)
    }

    /// Depth first, with a stack of its own: queues can be long.
    fn leads_back(&self, from: TxnId, path: &mut Vec<TxnId>, seen: &mut HashSet<TxnId>) -> bool {
        let mut todo: Vec<Vec<TxnId>> = vec![self.waits_for(from)];
        while let Some(next) = todo.last_mut() {
            match next.pop() {
                Some(txn) if txn == from => return true,
                Some(txn) if seen.insert(txn) => {
                    path.push(txn);
                    todo.push(self.waits_for(txn));
                }
                Some(_) => {}
                None => {
                    todo.pop();
                    path.pop();
                }
            }
        }
        false
    }

    /// Whom a transaction waits for.
    pub(super) fn waits_for(&self, txn: TxnId) -> Vec<TxnId> {
        let mut out = Vec::new();
        for request in self.waiting.get(&txn).into_iter().flatten() {
            let _ = self.each_in_the_way(request, &mut |blocker| {
                if !out.contains(&blocker) {
                    out.push(blocker);
                }
                ControlFlow::Continue(())
            });
        }
        out
    }
}
