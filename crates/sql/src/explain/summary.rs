//! What is known of a statement as a whole once it was explained.

use braid_kv::{Network, TxnStats, Work};
use braid_parser::ExplainOptions;
use serde_json::{Map, Value, json};

use super::text::{buffers, milliseconds, network};

/// See the [module documentation](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) planning_nanos: u64,
    /// If it was run.
    pub(crate) ran: Option<Ran>,
    /// Settings that are not as at the start: name and value.
    pub(crate) settings: Vec<(String, String)>,
}

/// What running it came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ran {
    pub(crate) nanos: u64,
    /// On a core, as far as its own thread goes.
    pub(crate) cpu_nanos: Option<u64>,
    pub(crate) rows: u64,
    pub(crate) memory_peak: u64,
    pub(crate) before: TxnStats,
    pub(crate) after: TxnStats,
    /// Ranges that have to agree on what its transaction has written so far, if they were counted.
    pub(crate) participants: Option<u64>,
}

impl Ran {
    fn requests(&self) -> u64 {
        self.after.requests - self.before.requests
    }

    fn network(&self) -> Network {
        self.after.network.since(self.before.network)
    }

    fn work(&self) -> Work {
        self.after.work.since(self.before.work)
    }
}

impl Summary {
    /// Lines behind those of the plan.
    pub(super) fn text(&self, options: &ExplainOptions, out: &mut Vec<String>) {
        if options.settings && !self.settings.is_empty() {
            let shown = |(name, value): &(String, String)| format!("{name} = '{value}'");
            let all: Vec<String> = self.settings.iter().map(shown).collect();
            out.push(format!("Settings: {}", all.join(", ")));
        }
        if let Some(ran) = &self.ran {
            if options.buffers {
                out.push(buffers(ran.requests(), ran.work()));
            }
            if options.wal {
                let (before, after) = (&ran.before, &ran.after);
                out.push(format!(
                    "WAL: point writes={} span deletes={}",
                    after.writes - before.writes,
                    after.span_deletes - before.span_deletes
                ));
            }
        }
        if options.shows_summary() {
            out.push(format!("Planning Time: {} ms", milliseconds(self.planning_nanos)));
            if let Some(ran) = &self.ran {
                out.push(format!("Memory: peak={}kB", ran.memory_peak.div_ceil(1024)));
                let (before, after) = (&ran.before, &ran.after);
                // Of a node that is alone there is nothing to say.
                let touched = ran.after.ranges_touched;
                if touched > 0 || ran.participants > Some(1) {
                    let participants = ran.participants.map_or("many".into(), |n| n.to_string());
                    out.push(format!("Ranges: touched={touched} participants={participants}"));
                }
                out.extend(network(ran.network()));
                if after.lock_waits > before.lock_waits {
                    let waited = after.lock_wait_nanos - before.lock_wait_nanos;
                    out.push(format!("Waited for Locks: {} ms", milliseconds(waited)));
                }
                out.push(format!("Execution Time: {} ms", milliseconds(ran.nanos)));
            }
        }
    }

    /// Members beside `Plan`: PostgreSQL's, and Spanner's names in an object of their own.
    pub(super) fn members(&self, options: &ExplainOptions, out: &mut Map<String, Value>) {
        if options.settings {
            let all = self.settings.iter().map(|(name, value)| (name.clone(), json!(value)));
            out.insert("Settings".into(), Value::Object(all.collect()));
        }
        if options.shows_summary() {
            out.insert("Planning Time".into(), time(self.planning_nanos));
        }
        let Some(ran) = &self.ran else { return };
        if options.analyze {
            out.insert("Triggers".into(), json!([]));
        }
        if options.shows_summary() {
            out.insert("Execution Time".into(), time(ran.nanos));
            out.insert("Query Statistics".into(), self.statistics(ran));
        }
    }

    fn statistics(&self, ran: &Ran) -> Value {
        let (work, before, after) = (ran.work(), &ran.before, &ran.after);
        json!({
            "rows_returned": ran.rows,
            "rows_scanned": work.entries,
            "deleted_rows_scanned": work.tombstones,
            "bytes_returned": work.bytes,
            "elapsed_time": time(ran.nanos),
            "cpu_time": ran.cpu_nanos.map(time),
            "query_plan_creation_time": time(self.planning_nanos),
            "remote_server_calls": ran.network().calls,
            "network_bytes": ran.network().bytes,
            "network_time": time(ran.network().nanos),
            "ranges_touched": after.ranges_touched,
            "store_requests": ran.requests(),
            "point_reads": after.gets - before.gets,
            "point_writes": after.writes - before.writes,
            "span_deletes": after.span_deletes - before.span_deletes,
            "blocks_found": work.blocks - work.blocks_from_disk,
            "blocks_read": work.blocks_from_disk,
            "memory_peak_bytes": ran.memory_peak,
            "lock_waits": after.lock_waits - before.lock_waits,
            "lock_wait_time": time(after.lock_wait_nanos - before.lock_wait_nanos),
            "participants": ran.participants,
        })
    }
}

/// Milliseconds, three digits behind the point, as in PostgreSQL.
pub(super) fn time(nanos: u64) -> Value {
    json!((nanos as f64 / 1e3).round() / 1e3)
}
