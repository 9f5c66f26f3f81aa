//! Foreign keys from elsewhere into spans that go: which rows refer to something in there?

use std::sync::Arc;

use braid_catalog::{ForeignKey, Table};
use braid_kv::{KeySpan, ReadMode};
use braid_types::{Datum, SqlResult};
use bytes::Bytes;

use super::doomed::{Doomed, holds};
use super::fate::Incoming;
use crate::dml::ahead::{self, Referring};
use crate::dml::references::{find_by_key, lookup_of, reference_values, rows_with};
use crate::session::Context;
use braid_rows::Row;
use braid_rows::{TableLayout, TableScan};

/// Rows that refer to a table of which spans go: is what they refer to among it? Asks for many at
/// once.
struct Probe<'a> {
    ctx: &'a Context,
    /// What goes, sorted.
    gone: &'a [KeySpan],
    incoming: &'a Incoming,
    /// Rows, and what they refer to.
    waiting: Vec<(Bytes, Row, Vec<Datum>)>,
    found: Vec<(Bytes, Row)>,
    /// Rows that were looked at.
    asked: u64,
    /// One row is enough.
    one: bool,
}

/// The rows that refer by a foreign key to what goes, with their keys; only the first one, if one
/// is enough. And how many rows were looked at for that.
pub(super) fn referring(
    ctx: &Context,
    incoming: &Incoming,
    doomed: &Doomed,
    gone: &[KeySpan],
    one: bool,
) -> SqlResult<(Vec<(Bytes, Row)>, u64)> {
    let from = &incoming.from;
    let (waiting, found) = (Vec::new(), Vec::new());
    let mut probe = Probe { ctx, gone, incoming, waiting, found, asked: 0, one };
    let leading = leading(incoming, doomed);
    let nothing = vec![Datum::Null; leading.len()];
    // Without such an index, once over all of it, however many keys there are.
    if lookup_of(from, &leading, &nothing).1.is_empty() {
        let all = vec![from.rows.whole_span()];
        let mut scan = TableScan::new(ctx.txn.clone(), from.clone(), all, None, false)
            .reading(ReadMode::Latest);
        while let Some((key, row)) = scan.next_row()? {
            probe.take(key, row)?;
            if probe.is_over() {
                break;
            }
        }
    } else {
        probe.look_up(doomed, &leading)?;
    }
    probe.decide()?;
    Ok((probe.found, probe.asked))
}

/// Columns of the referencing table by which candidates are found: the deleted keys' leading
/// columns, as far as the foreign key holds them.
pub(super) fn leading(incoming: &Incoming, doomed: &Doomed) -> Vec<u32> {
    let Incoming { fk, to, .. } = incoming;
    let given = doomed.heads.first().map_or(0, Vec::len).min(to.rows.columns().len());
    to.rows.columns()[..given]
        .iter()
        .map_while(|k| fk.parent_columns.iter().position(|p| *p == k.column))
        .map(|p| fk.columns[p])
        .collect()
}

impl Probe<'_> {
    fn is_over(&self) -> bool {
        self.one && !self.found.is_empty()
    }

    fn look_up(&mut self, doomed: &Doomed, leading: &[u32]) -> SqlResult<()> {
        let (ctx, from) = (self.ctx, &self.incoming.from);
        let mut heads: Vec<&[Datum]> =
            doomed.heads.iter().map(|head| &head[..leading.len()]).collect();
        heads.dedup_by(|a, b| a.iter().zip(b.iter()).all(|(a, b)| a.cmp_sql(b).is_eq()));
        for part in heads.chunks(ctx.txn.batch_max()) {
            ctx.check_cancel()?;
            let mut referring = Referring::new(ctx);
            for values in part {
                referring.rows_with(from, leading, values)?;
            }
            referring.ask()?;
            for values in part {
                for (key, row) in rows_with(ctx, from, leading, values, usize::MAX)? {
                    self.take(key, row)?;
                }
            }
            if self.is_over() {
                break;
            }
        }
        Ok(())
    }

    fn take(&mut self, key: Bytes, row: Row) -> SqlResult<()> {
        self.asked += 1;
        // A row that goes along does not count.
        if !self.incoming.strict && holds(self.gone, &key) {
            return Ok(());
        }
        let values = reference_values(&self.incoming.from.table, &self.incoming.fk, &row)?;
        if let Some(values) = values {
            self.waiting.push((key, row, values));
        }
        if self.waiting.len() >= self.ctx.txn.batch_max() { self.decide() } else { Ok(()) }
    }

    /// About those that came so far.
    fn decide(&mut self) -> SqlResult<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let (ctx, Incoming { fk, to, .. }) = (self.ctx, self.incoming);
        if waiting.len() > 1 {
            ahead::of_probes(ctx, to, fk, waiting.iter().map(|(_, _, values)| values))?;
        }
        for (own, row, values) in waiting {
            let found = find_by_key(ctx, to, &fk.parent_columns, &values)?;
            if found.is_some_and(|key| holds(self.gone, &key)) {
                ctx.keep_rows("rows that refer to deleted ones", [&row])?;
                self.found.push((own, row));
            }
        }
        Ok(())
    }
}

/// The referenced columns of a parent row, as far as the referencing row tells them.
pub(super) fn parent_row_of(
    from: &TableLayout,
    fk: &ForeignKey,
    parent: &Arc<Table>,
    row: &Row,
) -> Row {
    let mut out = vec![Datum::Null; parent.columns.len()];
    for (own, theirs) in fk.columns.iter().zip(&fk.parent_columns) {
        if let (Some(a), Some(b)) = (from.table.ordinal(*own), parent.ordinal(*theirs)) {
            out[b] = row[a].clone();
        }
    }
    out
}
