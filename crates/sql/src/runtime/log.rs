//! Statements in the node's log: those that are slow, and those that `log_statement` names.
//!
//! ```text
//!   INFO braid::statement: slow statement pid=7 user=app database=shop duration_ms=812.4
//!        planning_ms=0.9 rows=12 requests=4 bytes=711 lock_wait_ms=0 entries=12 blocks=3
//!        blocks_from_disk=0 memory_peak=81920 tries=1 query_id=-61.. statement=..
//! ```
//! Both have the target `braid::statement`, so that `BRAID_LOG=braid::statement=off,info` hides
//! them. The text is as the client sent it, cut like that of `pg_stat_activity`.

use braid_kv::TxnStats;

use super::sessions::Activity;

/// What `log_statement` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Logged {
    #[default]
    None,
    /// Changes of the schema.
    Ddl,
    /// And everything else that writes.
    Mod,
    All,
}

impl Logged {
    pub(crate) fn of(setting: &str) -> Logged {
        match setting {
            "ddl" => Logged::Ddl,
            "mod" => Logged::Mod,
            "all" => Logged::All,
            _ => Logged::None,
        }
    }
}

/// A statement that is about to run.
pub(crate) fn statement(activity: &Activity) {
    tracing::info!(
        target: "braid::statement",
        pid = activity.pid,
        user = activity.user,
        database = activity.database,
        statement = activity.now().text,
        "statement"
    );
}

/// What an execution came to.
pub(crate) struct Ended {
    pub(crate) nanos: u64,
    pub(crate) planned_nanos: u64,
    pub(crate) rows: u64,
    pub(crate) tries: u64,
    pub(crate) memory_peak: u64,
    pub(crate) before: TxnStats,
    pub(crate) after: TxnStats,
}

/// A statement that took long.
pub(crate) fn slow(activity: &Activity, ended: &Ended) {
    let milliseconds = |nanos: u64| (nanos / 1_000) as f64 / 1e3;
    let work = ended.after.work.since(ended.before.work);
    tracing::info!(
        target: "braid::statement",
        pid = activity.pid,
        user = activity.user,
        database = activity.database,
        application = activity.application(),
        duration_ms = milliseconds(ended.nanos),
        planning_ms = milliseconds(ended.planned_nanos),
        rows = ended.rows,
        requests = ended.after.requests - ended.before.requests,
        bytes = work.bytes,
        lock_wait_ms = milliseconds(
            ended.after.lock_wait_nanos - ended.before.lock_wait_nanos
        ),
        entries = work.entries,
        blocks = work.blocks,
        blocks_from_disk = work.blocks_from_disk,
        memory_peak = ended.memory_peak,
        tries = ended.tries,
        query_id = activity.fingerprint().unwrap_or_default(),
        statement = activity.now().text,
        "slow statement"
    );
}
