//! What INSERT, UPDATE and DELETE did, for EXPLAIN ANALYZE.

use braid_env::clock::{Clock, WallClock};
use braid_kv::TxnStats;
use braid_types::SqlResult;

use super::lines::{Actual, Explained, PlanLine};
use crate::dml::Written;
use crate::session::Context;

/// A piece of work that is measured.
pub(crate) struct Timed {
    begun: u64,
    before: TxnStats,
}

impl Timed {
    pub(crate) fn begin(ctx: &Context) -> Timed {
        Timed { begun: WallClock.monotonic_nanos(), before: ctx.txn.stats() }
    }

    /// What the transaction did since, and how long that took. No rows, no loops.
    pub(crate) fn end(self, ctx: &Context) -> Actual {
        let (nanos, after) = (WallClock.monotonic_nanos() - self.begun, ctx.txn.stats());
        Actual {
            nanos: Some((nanos, nanos)),
            requests: after.requests - self.before.requests,
            network: after.network.since(self.before.network),
            work: after.work.since(self.before.work),
            ..Actual::default()
        }
    }
}

/// A statement that writes, above lines that say where its rows come from; run, if asked to.
pub(crate) fn writing(
    ctx: &Context,
    verb: &str,
    table: &str,
    below: Vec<PlanLine>,
    run: Option<impl FnOnce() -> SqlResult<Written>>,
) -> SqlResult<Explained> {
    let mut head = PlanLine::operator(format!("{verb} on {table}"), "ModifyTable", Some(table));
    let mut lines = below;
    let mut rows = None;
    if let Some(run) = run {
        let timed = Timed::begin(ctx);
        let before = timed.before;
        let Written { count, work, .. } = run()?;
        let actual = timed.end(ctx);
        let after = ctx.txn.stats();
        head.ran(Actual { rows: count, loops: 1, ..actual });
        lines.push(PlanLine::from(format!(
            "  rows: {count}, tombstones: {}, point writes: {}, index entries: {}, probes: {}, \
             requests: {}",
            after.span_deletes - before.span_deletes,
            after.writes - before.writes,
            work.entries,
            work.probes,
            actual.requests
        )));
        rows = Some(count);
    }
    lines.insert(0, head);
    Ok(Explained { lines, rows })
}
