//! What sessions do at this moment, and what was done in each database: `pg_stat_activity`,
//! `pg_locks`, `pg_stat_database`, `pg_stat_progress_copy`, and what is asked of a server as a
//! whole.
//!
//! What has no meaning here is NULL. Each look is at another moment, even in one transaction.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use braid_catalog::{Catalog, Table, oid_of};
use braid_keys::{path, pretty, system};
use braid_kv::{LockMode, ShownLock, Target};
use braid_scalar::{AdvisoryKey, SessionFunctions};
use braid_sql::Database;
use braid_sql::jobs::Record;
use braid_sql::runtime::{Activity, AdvisoryLock, CopyProgress, SeenSession, State};
use braid_sql::session::SessionState;
use braid_types::{ArrayValue, Datum, Ordered, OrderedKind, SqlResult, SqlType, Style};

use super::statistics::number;
use super::table::{ROOT, SystemTable, View, flag, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// What functions say of the session, its connection and the node; `None` for other functions.
pub(super) fn function(session: &SessionState, name: &str, args: &[Datum]) -> Option<Datum> {
    let sessions = session.db().sessions();
    let own = || sessions.all().into_iter().find(|a| a.pid == session.backend_pid());
    Some(match (name, args) {
        ("pg_postmaster_start_time" | "pg_conf_load_time", _) => {
            Datum::TimestampTz(session.db().begun_micros())
        }
        ("txid_current" | "txid_current_if_assigned", _) => {
            Datum::Int8(own().map_or(0, |a| a.transaction() as i64))
        }
        ("pg_current_xact_id" | "pg_current_xact_id_if_assigned", _) => {
            let number = own().map_or(0, |a| a.transaction()).to_be_bytes();
            Ordered::from_bytes(OrderedKind::Xid8, &number).map_or(Datum::Null, Datum::Ordered)
        }
        ("current_query", _) => own().map_or(Datum::Null, |a| text(a.now().text)),
        ("inet_client_port", _) => {
            let client = own().and_then(|a| a.client);
            client.map_or(Datum::Null, |client| Datum::Int4(client.port().into()))
        }
        ("pg_blocking_pids", [Datum::Int4(pid)]) => blocking(session.db(), *pid),
        _ => return None,
    })
}

/// Sessions that keep one waiting.
fn blocking(db: &Database, pid: i32) -> Datum {
    let sessions = db.all_sessions();
    let waits = sessions.iter().find(|a| a.pid == pid).map(|a| a.transaction);
    let locks = db.coordinator().describe_locks().locks;
    let requests = locks.iter().filter(|l| !l.granted && Some(l.txn.0) == waits);
    let holders = requests.flat_map(|request| locks.iter().filter(|lock| lock.blocks(request)));
    let pids: HashMap<u64, i32> = sessions.iter().map(|a| (a.transaction, a.pid)).collect();
    let mut found: BTreeSet<i32> = holders.filter_map(|l| pids.get(&l.txn.0).copied()).collect();
    let mut numbers = db.advisory_locks();
    numbers.extend(db.advisory_locks_elsewhere().unwrap_or_default());
    for request in numbers.iter().filter(|l| !l.granted && l.pid == pid) {
        let is_other = |l: &&AdvisoryLock| {
            let same = (l.database, l.key) == (request.database, request.key);
            same && l.granted && l.pid != pid && !(l.shared && request.shared)
        };
        found.extend(numbers.iter().filter(is_other).map(|l| l.pid));
    }
    let items = found.into_iter().map(Datum::Int4).collect();
    Datum::Array(Arc::new(ArrayValue::list(SqlType::Int4, items)))
}

/// A table about the server as a whole.
fn of_server(name: &str) -> Option<SystemTable> {
    let (layout, rows): (&'static str, super::table::Rows) = match name {
        // There are no checkpoints: what they would count is NULL.
        "pg_stat_bgwriter" => (
            "checkpoints_timed int8, checkpoints_req int8, checkpoint_write_time float8, \
             checkpoint_sync_time float8, buffers_checkpoint int8, buffers_clean int8, \
             maxwritten_clean int8, buffers_backend int8, buffers_backend_fsync int8, \
             buffers_alloc int8, stats_reset timestamptz",
            unknown,
        ),
        "pg_stat_wal" => (
            "wal_records int8, wal_fpi int8, wal_bytes numeric, wal_buffers_full int8, \
             wal_write int8, wal_sync int8, wal_write_time float8, wal_sync_time float8, \
             stats_reset timestamptz",
            unknown,
        ),
        "pg_stat_archiver" => (
            "archived_count int8, last_archived_wal text, last_archived_time timestamptz, \
             failed_count int8, last_failed_wal text, last_failed_time timestamptz, \
             stats_reset timestamptz",
            pg_stat_archiver,
        ),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

/// A table about this moment.
pub(super) fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (&'static str, super::table::Rows) = match name {
        "pg_stat_activity" => (
            "datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name, \
             application_name text, client_addr inet, client_hostname text, client_port int4, \
             backend_start timestamptz, xact_start timestamptz, query_start timestamptz, \
             state_change timestamptz, wait_event_type text, wait_event text, state text, \
             backend_xid xid, backend_xmin xid, query_id int8, query text, backend_type text",
            pg_stat_activity,
        ),
        "pg_stat_ssl" => (
            "pid int4, ssl bool, version text, cipher text, bits int4, client_dn text, \
             client_serial numeric, issuer_dn text",
            pg_stat_ssl,
        ),
        "pg_stat_gssapi" => {
            ("pid int4, gss_authenticated bool, principal text, encrypted bool", pg_stat_gssapi)
        }
        "braid_active_statements" => (
            "pid int4, database name, username name, query_id int8, query text, \
             query_start timestamptz, tries int8, requests int8, entries_read int8, \
             tombstones_met int8, blocks_read int8, blocks_from_disk int8, bytes_read int8, \
             lock_waits int8, lock_wait_time float8, memory_bytes int8, memory_peak_bytes int8",
            active_statements,
        ),
        "pg_locks" => (
            "locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, \
             transactionid xid, classid oid, objid oid, objsubid int2, virtualtransaction text, \
             pid int4, mode text, granted bool, fastpath bool, waitstart timestamptz, key text",
            pg_locks,
        ),
        "pg_stat_progress_copy" => (
            "pid int4, datid oid, datname name, relid oid, command text, type text, \
             bytes_processed int8, bytes_total int8, tuples_processed int8, tuples_excluded int8",
            pg_stat_progress_copy,
        ),
        "pg_stat_progress_create_index" => (
            "pid int4, datid oid, datname name, relid oid, index_relid oid, command text, \
             phase text, lockers_total int8, lockers_done int8, current_locker_pid int8, \
             blocks_total int8, blocks_done int8, tuples_total int8, tuples_done int8, \
             partitions_total int8, partitions_done int8",
            pg_stat_progress_create_index,
        ),
        "pg_stat_database_conflicts" => (
            "datid oid, datname name, confl_tablespace int8, confl_lock int8, \
             confl_snapshot int8, confl_bufferpin int8, confl_deadlock int8",
            pg_stat_database_conflicts,
        ),
        "pg_stat_database" => (
            "datid oid, datname name, numbackends int4, xact_commit int8, xact_rollback int8, \
             blks_read int8, blks_hit int8, tup_returned int8, tup_fetched int8, \
             tup_inserted int8, tup_updated int8, tup_deleted int8, conflicts int8, \
             temp_files int8, temp_bytes int8, deadlocks int8, checksum_failures int8, \
             checksum_last_failure timestamptz, blk_read_time float8, blk_write_time float8, \
             session_time float8, active_time float8, idle_in_transaction_time float8, \
             sessions int8, sessions_abandoned int8, sessions_fatal int8, sessions_killed int8, \
             stats_reset timestamptz",
            pg_stat_database,
        ),
        _ => return of_server(name),
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

fn locks(v: &View<'_>) -> Vec<ShownLock> {
    v.database_object.coordinator().describe_locks().locks
}

fn time(micros: Option<i64>) -> Datum {
    micros.map_or(Datum::Null, Datum::TimestampTz)
}

/// An address of a client.
fn address(ip: &IpAddr) -> Datum {
    Datum::parse(&ip.to_string(), &SqlType::Inet, Style::utc()).unwrap_or(Datum::Null)
}

/// The one row of a view that has always one, of which nothing is known.
fn unknown(_: &View<'_>) -> Made {
    Ok(vec![Vec::new()])
}

/// Nothing is archived.
fn pg_stat_archiver(_: &View<'_>) -> Made {
    Ok(vec![vec![number(0), Datum::Null, Datum::Null, number(0)]])
}

/// Nobody is in the way of a recovery: there is none that goes on beside readers.
fn pg_stat_database_conflicts(v: &View<'_>) -> Made {
    let row = |database: &braid_catalog::Database| {
        let mut row = vec![Datum::Oid(oid_of(database.id)), text(database.name.as_str())];
        row.extend([0; 5].map(number));
        row
    };
    Ok(v.catalog.databases().map(|d| row(d)).collect())
}

/// No connection is encrypted.
fn pg_stat_ssl(v: &View<'_>) -> Made {
    let row = |a: Arc<Activity>| vec![Datum::Int4(a.pid), flag(false)];
    Ok(v.database_object.sessions().all().into_iter().map(row).collect())
}

fn pg_stat_gssapi(v: &View<'_>) -> Made {
    let row = |a: Arc<Activity>| vec![Datum::Int4(a.pid), flag(false), Datum::Null, flag(false)];
    Ok(v.database_object.sessions().all().into_iter().map(row).collect())
}

fn pg_stat_activity(v: &View<'_>) -> Made {
    let mut waiting = HashMap::new();
    for lock in locks(v).into_iter().filter(|lock| !lock.granted) {
        waiting.insert(lock.txn.0, kind(&lock.target));
    }
    let row = |a: SeenSession| {
        let now = a.now;
        let database = v.catalog.database(&a.database);
        let (class, event) = match now.state {
            State::Active => match waiting.get(&a.transaction) {
                Some(kind) => (text("Lock"), text(*kind)),
                None => (Datum::Null, Datum::Null),
            },
            _ => (text("Client"), text("ClientRead")),
        };
        vec![
            database.map_or(Datum::Null, |d| Datum::Oid(oid_of(d.id))),
            text(a.database.as_str()),
            Datum::Int4(a.pid),
            Datum::Null,
            Datum::Oid(ROOT),
            text(a.user.as_str()),
            text(a.application),
            a.client.map_or(Datum::Null, |c| address(&c.ip())),
            Datum::Null,
            a.client.map_or(Datum::Null, |c| Datum::Int4(i32::from(c.port()))),
            Datum::TimestampTz(a.begun),
            time(now.transaction_since),
            time(now.text_since),
            Datum::TimestampTz(now.since),
            class,
            event,
            text(state_name(now.state)),
            Datum::Null,
            Datum::Null,
            a.fingerprint.map_or(Datum::Null, Datum::Int8),
            text(now.text),
            text("client backend"),
        ]
    };
    Ok(v.database_object.all_sessions().into_iter().map(row).collect())
}

/// How far each COPY is. As in PostgreSQL, 0 is the table of a query and an unknown length.
fn pg_stat_progress_copy(v: &View<'_>) -> Made {
    let row = |copy: Arc<CopyProgress>| {
        let database = v.catalog.database(&copy.database);
        let command = if copy.from { "COPY FROM" } else { "COPY TO" };
        let kind = if copy.file.is_some() { "FILE" } else { "PIPE" };
        let mut row = vec![
            Datum::Int4(copy.pid),
            database.map_or(Datum::Null, |d| Datum::Oid(oid_of(d.id))),
            text(copy.database.as_str()),
            Datum::Oid(copy.table.map_or(0, oid_of)),
            text(command),
            text(kind),
        ];
        let total = copy.file.unwrap_or(0);
        row.extend([copy.bytes(), total, copy.rows(), copy.left_out()].map(number));
        row
    };
    Ok(v.database_object.sessions().copies().all().into_iter().map(row).collect())
}

/// How far indexes are that are made beside writers. Blocks are hundredths of the present phase:
/// nobody counts those of a table.
fn pg_stat_progress_create_index(v: &View<'_>) -> Made {
    let sessions = v.database_object.sessions().all();
    let row = |job: Record| {
        let index = job.index?;
        let of = |t: &&Arc<Table>| t.all_indexes().any(|i| i.id == index);
        let table = v.catalog.tables().find(of);
        let database = table.and_then(|t| v.catalog.schema_by_id(t.schema)).map(|s| s.database);
        let name = database.and_then(|id| v.catalog.databases().find(|d| d.id == id));
        let runs = |a: &&Arc<Activity>| {
            let now = a.now();
            now.state == State::Active && now.text.contains(job.statement.trim())
        };
        let id = |id: Option<u32>| id.map_or(Datum::Null, |id| Datum::Oid(oid_of(id)));
        let phase = match job.step.as_str() {
            "backfill" => "building index: scanning table",
            "ingest" => "building index: loading tuples in tree",
            "merge" | "validate" => "index validation: scanning table",
            "wait for users" => "waiting for writers before build",
            "wait for noting users" => "waiting for writers before validation",
            _ => "initializing",
        };
        let concurrently = job.statement.to_lowercase().contains("concurrently");
        let command = if concurrently { "CREATE INDEX CONCURRENTLY" } else { "CREATE INDEX" };
        let mut row = vec![
            sessions.iter().find(runs).map_or(Datum::Null, |a| Datum::Int4(a.pid)),
            id(database),
            name.map_or(Datum::Null, |d| text(d.name.as_str())),
            id(table.map(|t| t.id)),
            id(Some(index)),
            text(command),
            text(phase),
        ];
        let done = (job.fraction * 100.0) as u64;
        row.extend([0, 0, 0, 100, done, 0, 0, 0, 0].map(number));
        Some(row)
    };
    Ok(v.database_object.jobs().running().into_iter().filter_map(row).collect())
}

/// Statements that run, and how far each has come.
fn active_statements(v: &View<'_>) -> Made {
    let row = |a: Arc<Activity>| {
        let (now, progress) = (a.now(), a.progress().unwrap_or_default());
        if now.state != State::Active {
            return None;
        }
        let work = progress.work;
        let mut row = vec![
            Datum::Int4(a.pid),
            text(a.database.as_str()),
            text(a.user.as_str()),
            a.fingerprint().map_or(Datum::Null, Datum::Int8),
            text(now.text),
            time(now.text_since),
            number(progress.tries),
            number(progress.requests),
        ];
        let looked = [work.entries, work.tombstones, work.blocks, work.blocks_from_disk];
        row.extend(looked.map(number));
        row.extend([number(work.bytes), number(progress.lock_waits)]);
        row.push(Datum::Float8(progress.lock_wait_nanos as f64 / 1e6));
        row.extend([progress.memory as u64, progress.memory_peak as u64].map(number));
        Some(row)
    };
    Ok(v.database_object.sessions().all().into_iter().filter_map(row).collect())
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Active => "active",
        State::Idle => "idle",
        State::IdleInTransaction => "idle in transaction",
        State::IdleInFailedTransaction => "idle in transaction (aborted)",
    }
}

fn start(target: &Target) -> &[u8] {
    match target {
        Target::Key(key) => key,
        Target::Span(span) => &span.start,
    }
}

/// What PostgreSQL calls such a lock. A span of keys has no name there.
fn kind(target: &Target) -> &'static str {
    match target {
        _ if system::locked_table(start(target)).is_some() => "relation",
        Target::Key(_) => "tuple",
        Target::Span(_) => "span",
    }
}

/// The relation that a lock is in.
fn relation(catalog: &Catalog, target: &Target) -> Option<u32> {
    if let Some(table) = system::locked_table(start(target)) {
        return Some(table);
    }
    let id = path::elements(start(target)).ok()?.last()?.id;
    let table = catalog.table(id).map(|table| table.id);
    table.or_else(|| catalog.index(id).map(|(table, _)| table.id))
}

/// PostgreSQL's names for locks of tables, and what it takes on a row for each strength.
fn mode_name(lock: &ShownLock) -> &'static str {
    let is_table = system::locked_table(start(&lock.target)).is_some();
    match lock.mode {
        LockMode::KeyShare => "AccessShareLock",
        LockMode::Shared if is_table => "AccessShareLock",
        LockMode::Shared => "RowShareLock",
        LockMode::NoKeyExclusive => "ExclusiveLock",
        LockMode::Exclusive => "AccessExclusiveLock",
    }
}

fn pg_locks(v: &View<'_>) -> Made {
    let sessions = v.database_object.all_sessions();
    let pids: HashMap<u64, i32> = sessions.iter().map(|a| (a.transaction, a.pid)).collect();
    let row = |lock: ShownLock| {
        let relation = relation(v.catalog, &lock.target);
        let key = match &lock.target {
            Target::Key(key) => pretty::key(key),
            Target::Span(span) => pretty::span(&span.start, &span.end),
        };
        let mut row = vec![
            text(kind(&lock.target)),
            Datum::Oid(oid_of(v.database_id)),
            relation.map_or(Datum::Null, |id| Datum::Oid(oid_of(id))),
        ];
        row.resize(10, Datum::Null);
        row.push(text(lock.txn.0.to_string()));
        row.push(pids.get(&lock.txn.0).map_or(Datum::Null, |pid| Datum::Int4(*pid)));
        row.extend([text(mode_name(&lock)), flag(lock.granted), flag(false), Datum::Null]);
        row.push(text(key));
        row
    };
    let mut on_numbers = v.database_object.advisory_locks();
    on_numbers.extend(v.database_object.advisory_locks_elsewhere()?);
    Ok(locks(v).into_iter().map(row).chain(on_numbers.iter().map(advisory)).collect())
}

/// A lock on a number: one number is split into two halves.
fn advisory(lock: &AdvisoryLock) -> Vec<Datum> {
    let halves = match lock.key {
        AdvisoryKey::One(key) => (((key as u64) >> 32) as u32, key as u32, 1),
        AdvisoryKey::Two(first, second) => (first as u32, second as u32, 2),
    };
    let mode = if lock.shared { "ShareLock" } else { "ExclusiveLock" };
    let mut row = vec![text("advisory"), Datum::Oid(oid_of(lock.database))];
    row.resize(7, Datum::Null);
    row.extend([Datum::Oid(halves.0), Datum::Oid(halves.1), Datum::Int2(halves.2)]);
    row.extend([Datum::Null, Datum::Int4(lock.pid), text(mode), flag(lock.granted), flag(false)]);
    row.extend([Datum::Null, Datum::Null]);
    row
}

fn pg_stat_database(v: &View<'_>) -> Made {
    let row = |database: &braid_catalog::Database| {
        let (done, connected) = v.database_object.sessions().done(&database.name);
        let [found, read] = done.blocks();
        let [inserted, updated, deleted] = done.rows_written();
        let mut row = vec![
            Datum::Oid(oid_of(database.id)),
            text(database.name.as_str()),
            Datum::Int4(i32::try_from(connected).unwrap_or(i32::MAX)),
            number(done.commits()),
            number(done.rollbacks()),
            number(read),
            number(found),
        ];
        row.extend([done.rows_read(), done.rows_given(), inserted, updated, deleted].map(number));
        row.extend([Datum::Null, Datum::Null, Datum::Null, number(done.deadlocks())]);
        row
    };
    Ok(v.catalog.databases().map(|d| row(d)).collect())
}
