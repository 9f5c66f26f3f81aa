//! What statements have done, as tables: PostgreSQL's `pg_stat_statements` of version 1.10, and
//! `braid_statement_statistics` with what PostgreSQL has no column for.

use braid_catalog::oid_of;
use braid_kv::Network;
use braid_sql::runtime::{Lost, StatementStatistics, Times};
use braid_types::{Datum, RetryReason, SqlResult};

use super::table::{ROOT, SystemTable, View, flag, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// A table about what happens.
pub(super) fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (&'static str, super::table::Rows) = match name {
        "pg_stat_statements" => (
            "userid oid, dbid oid, toplevel bool, queryid int8, query text, plans int8, \
             total_plan_time float8, min_plan_time float8, max_plan_time float8, \
             mean_plan_time float8, stddev_plan_time float8, calls int8, total_exec_time float8, \
             min_exec_time float8, max_exec_time float8, mean_exec_time float8, \
             stddev_exec_time float8, rows int8, shared_blks_hit int8, shared_blks_read int8, \
             shared_blks_dirtied int8, shared_blks_written int8, local_blks_hit int8, \
             local_blks_read int8, local_blks_dirtied int8, local_blks_written int8, \
             temp_blks_read int8, temp_blks_written int8, blk_read_time float8, \
             blk_write_time float8, temp_blk_read_time float8, temp_blk_write_time float8, \
             wal_records int8, wal_fpi int8, wal_bytes numeric, jit_functions int8, \
             jit_generation_time float8, jit_inlining_count int8, jit_inlining_time float8, \
             jit_optimization_count int8, jit_optimization_time float8, \
             jit_emission_count int8, jit_emission_time float8",
            pg_stat_statements,
        ),
        "pg_stat_statements_info" => ("dealloc int8, stats_reset timestamptz", |v| {
            let (forgotten, reset) = v.database_object.statements().info();
            Ok(vec![vec![number(forgotten), Datum::TimestampTz(reset)]])
        }),
        "braid_statement_statistics" => (
            "database_id oid, query_id int8, query text, calls int8, errors int8, retries int8, \
             rows int8, requests int8, memory_peak_bytes int8, entries_read int8, \
             tombstones_met int8, blocks_read int8, blocks_from_disk int8, bytes_read int8, \
             lock_waits int8, lock_wait_time float8, ranges_touched int8, remote_calls int8, \
             network_bytes int8, network_time float8, write_conflicts int8, \
             read_conflicts int8, uncertain_reads int8, deadlocks int8, leases_lost int8, \
             schema_changes int8, plans int8, total_plan_time float8, total_exec_time float8, \
             mean_exec_time float8, max_exec_time float8, stddev_exec_time float8",
            braid_statement_statistics,
        ),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

pub(super) fn number(value: u64) -> Datum {
    Datum::Int8(i64::try_from(value).unwrap_or(i64::MAX))
}

fn milliseconds(t: &Times) -> [Datum; 5] {
    [t.total, t.min, t.max, t.mean(), t.deviation()].map(Datum::Float8)
}

/// Milliseconds of nanoseconds.
pub(super) fn time(nanos: u64) -> Datum {
    Datum::Float8(nanos as f64 / 1e6)
}

/// Columns about what went to other nodes, and about tries that were lost.
pub(super) fn sent_and_lost(network: Network, lost: &Lost) -> Vec<Datum> {
    let sent = [number(network.calls), number(network.bytes), time(network.nanos)];
    sent.into_iter().chain(RetryReason::ALL.map(|reason| number(lost.get(reason)))).collect()
}

fn all(v: &View<'_>) -> Vec<StatementStatistics> {
    v.database_object.all_statements()
}

/// What has no meaning here is NULL, so that nobody takes it for a zero that was counted.
fn pg_stat_statements(v: &View<'_>) -> Made {
    let row = |s: StatementStatistics| {
        let mut row = vec![
            Datum::Oid(ROOT),
            Datum::Oid(oid_of(s.database)),
            flag(true),
            Datum::Int8(s.id),
            text(s.text),
            number(s.tally.plans.count),
        ];
        row.extend(milliseconds(&s.tally.plans));
        row.push(number(s.tally.executions.count));
        row.extend(milliseconds(&s.tally.executions));
        let work = s.tally.work;
        let found = work.blocks - work.blocks_from_disk;
        row.extend([s.tally.rows, found, work.blocks_from_disk].map(number));
        row
    };
    // As in PostgreSQL, a statement that only ever failed is not there.
    Ok(all(v).into_iter().filter(|s| s.tally.executions.count > 0).map(row).collect())
}

fn braid_statement_statistics(v: &View<'_>) -> Made {
    let row = |s: StatementStatistics| {
        let t = &s.tally;
        let [total, _, max, mean, deviation] = milliseconds(&t.executions);
        let mut row = vec![
            Datum::Oid(oid_of(s.database)),
            Datum::Int8(s.id),
            text(s.text),
            number(t.executions.count),
            number(t.errors),
            number(t.retries),
            number(t.rows),
            number(t.requests),
            number(t.memory_peak),
            number(t.work.entries),
            number(t.work.tombstones),
            number(t.work.blocks),
            number(t.work.blocks_from_disk),
            number(t.work.bytes),
            number(t.lock_waits),
            Datum::Float8(t.lock_wait_time),
            number(t.ranges_touched),
        ];
        row.extend(sent_and_lost(t.network, &t.lost));
        let plans = [number(t.plans.count), Datum::Float8(t.plans.total)];
        row.extend(plans.into_iter().chain([total, mean, max, deviation]));
        row
    };
    Ok(all(v).into_iter().map(row).collect())
}
