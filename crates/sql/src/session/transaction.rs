//! Transaction blocks of a session.
//!
//! ```text
//!   Idle ─ BEGIN ──► Open(explicit) ─ error ──► failed: everything but ROLLBACK is 25P02
//!   Idle ─ several statements in one message ──► Open(implicit), committed at the end
//! ```
//! A statement outside of a block has a transaction of its own and never comes here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_catalog::{Catalog, SeenBy, kv_error, with_own_changes};
use braid_kv::{CommitTs, Isolation, SavepointId, Txn};
use braid_parser::{IsolationLevel, TxnModes};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, TimeZone};
use parking_lot::Mutex;

use super::settings::Settings;
use crate::database::{Database, EPOCH_MICROS};
use crate::dml::deferred::Deferred;
use crate::runtime::transactions::Story;

/// An open transaction of a session.
pub(crate) struct OpenTxn {
    pub(crate) txn: Arc<Txn>,
    pub(crate) catalog: Arc<Catalog>,
    /// BEGIN was said; else several statements of one message.
    pub(crate) explicit: bool,
    /// Raised by a failed statement or stream.
    pub(crate) failure: Arc<Failure>,
    /// Checks that wait for the end.
    pub(crate) deferred: Arc<Deferred>,
    pub(crate) savepoints: Vec<Savepoint>,
    /// Who sees what this transaction has changed of the catalog; none: it changed nothing.
    pub(crate) changed: Option<SeenBy>,
    pub(crate) started_micros: i64,
    pub(crate) statements: u64,
    /// It reads at a given time in the past.
    pub(crate) as_of: bool,
    pub(crate) modes: Modes,
    /// Settings to return to when it rolls back.
    pub(crate) settings: Arc<Settings>,
    pub(crate) epoch: Option<u64>,
    /// What statistics of transactions need of it.
    pub(crate) story: Story,
}

/// Whether a block has failed. A failed block holds no lock longer than its newest savepoint needs:
/// raising the failure takes back what was written, and releases what was locked, since then.
pub(crate) struct Failure {
    raised: AtomicBool,
    txn: Arc<Txn>,
    savepoint: Mutex<Option<SavepointId>>,
}

impl Failure {
    pub(crate) fn new(txn: &Arc<Txn>) -> Arc<Failure> {
        let (raised, savepoint) = (AtomicBool::new(false), Mutex::new(None));
        Arc::new(Failure { raised, txn: txn.clone(), savepoint })
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    pub(crate) fn raise(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            match *self.savepoint.lock() {
                Some(savepoint) => self.txn.rollback_to(savepoint),
                None => self.txn.rollback(),
            }
        }
    }

    /// ROLLBACK TO was said.
    pub(crate) fn lower(&self) {
        self.raised.store(false, Ordering::Release);
    }

    /// Whether the block can return to a savepoint.
    pub(crate) fn has_savepoint(&self) -> bool {
        self.savepoint.lock().is_some()
    }

    /// Sets what a failure returns to.
    pub(crate) fn return_to(&self, savepoint: Option<SavepointId>) {
        *self.savepoint.lock() = savepoint;
    }
}

/// A savepoint: what to return to.
pub(crate) struct Savepoint {
    pub(crate) name: String,
    pub(crate) id: SavepointId,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) changed: Option<SeenBy>,
    pub(crate) settings: Arc<Settings>,
    /// What was asked of channels before it.
    pub(crate) asked: usize,
    pub(crate) modes: Modes,
}

impl OpenTxn {
    /// Whether its view may still be moved: nobody was told anything that was read there. The view
    /// of a block is that of its first statement, as in PostgreSQL.
    pub(crate) fn is_untold(&self) -> bool {
        !self.as_of && self.statements == 0
    }

    /// Whether a statement sees what others have committed since the one before it.
    fn sees_others(&self) -> bool {
        self.is_untold() || self.txn.isolation() == Isolation::ReadCommitted
    }

    /// A statement begins: the view moves, if it may, and the catalog with it. `moved`: the view
    /// has moved for other reasons already. `epoch` was taken before that.
    pub(crate) fn begin_statement(
        &mut self,
        db: &Database,
        moved: bool,
        epoch: Option<u64>,
    ) -> SqlResult<()> {
        if self.is_untold() { self.txn.restart_to_stay() } else { self.txn.begin_statement() }
            .map_err(kv_error)?;
        self.look_at_catalog(db, moved, epoch)
    }

    /// The catalog moves with the view.
    fn look_at_catalog(&mut self, db: &Database, moved: bool, epoch: Option<u64>) -> SqlResult<()> {
        match self.changed {
            None if moved || self.sees_others() => {
                let calm = epoch.is_some() && epoch == self.epoch;
                if !calm || db.schema_epoch() != epoch {
                    self.catalog = db.catalog_at(&self.txn)?;
                }
                self.epoch = epoch;
            }
            Some(SeenBy::Owner) if moved || self.sees_others() => {
                self.catalog = with_own_changes(&self.txn, &self.catalog)?;
            }
            // Nobody else changes what all see, until this block ends.
            _ => {}
        }
        Ok(())
    }

    /// A statement is about to be planned: with the catalog that it is going to run with.
    pub(crate) fn begin_planning(&mut self, db: &Database) -> SqlResult<()> {
        let epoch = db.schema_epoch();
        let known = epoch.is_some() && epoch == self.epoch && self.changed.is_none();
        let fixed = self.changed == Some(SeenBy::All) || !self.sees_others();
        match known || fixed || self.is_failed() {
            true => Ok(()),
            false => {
                if self.is_untold() { self.txn.restart() } else { self.txn.begin_statement() }
                    .map_err(kv_error)?;
                self.look_at_catalog(db, false, epoch)
            }
        }
    }

    /// The catalog was changed.
    pub(crate) fn has_changed(&mut self, catalog: Arc<Catalog>, seen_by: SeenBy) {
        self.catalog = catalog;
        if self.changed != Some(SeenBy::All) {
            self.changed = Some(seen_by);
        }
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.failure.is_raised()
    }

    pub(crate) fn fail(&self) {
        self.failure.raise();
    }

    /// After the list of savepoints has changed.
    pub(crate) fn savepoints_changed(&self) {
        self.failure.return_to(self.savepoints.last().map(|s| s.id));
    }

    /// The position of the newest savepoint of this name.
    pub(crate) fn savepoint(&self, name: &str) -> SqlResult<usize> {
        self.savepoints.iter().rposition(|s| s.name == name).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_SAVEPOINT,
                format!("savepoint \"{name}\" does not exist"),
            )
        })
    }
}

/// 25P02.
pub fn aborted() -> SqlError {
    SqlError::new(
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}

/// 25P01.
pub(crate) fn no_transaction(what: &str) -> SqlError {
    SqlError::new(
        SqlState::NO_ACTIVE_SQL_TRANSACTION,
        format!("{what} can only be used in transaction blocks"),
    )
}

/// What a transaction is begun with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modes {
    /// Its level by the name that was said.
    pub(crate) level: IsolationLevel,
    /// READ ONLY.
    pub(crate) read_only: bool,
    /// DEFERRABLE.
    pub(crate) deferrable: bool,
}

impl Modes {
    /// These, where others do not say otherwise.
    pub(crate) fn with(self, other: &TxnModes) -> Modes {
        Modes {
            level: other.isolation.unwrap_or(self.level),
            read_only: other.read_only.unwrap_or(self.read_only),
            deferrable: other.deferrable.unwrap_or(self.deferrable),
        }
    }

    /// The setting of this name that shows one of them.
    pub(crate) fn setting(self, name: &str) -> Option<&'static str> {
        let flag = |on: bool| if on { "on" } else { "off" };
        match name {
            "transaction_isolation" => Some(level_name(self.level)),
            "transaction_read_only" => Some(flag(self.read_only)),
            "transaction_deferrable" => Some(flag(self.deferrable)),
            _ => None,
        }
    }
}

impl From<Modes> for TxnModes {
    fn from(modes: Modes) -> TxnModes {
        TxnModes {
            isolation: Some(modes.level),
            read_only: Some(modes.read_only),
            deferrable: Some(modes.deferrable),
        }
    }
}

/// Levels by their names.
pub(crate) const LEVELS: [(IsolationLevel, &str); 4] = [
    (IsolationLevel::Serializable, "serializable"),
    (IsolationLevel::RepeatableRead, "repeatable read"),
    (IsolationLevel::ReadCommitted, "read committed"),
    (IsolationLevel::ReadUncommitted, "read uncommitted"),
];

/// As SQL says it.
pub(crate) fn level_name(level: IsolationLevel) -> &'static str {
    LEVELS.iter().find(|(own, _)| *own == level).map_or("", |(_, name)| name)
}

/// The level of a name, in any case.
pub(crate) fn level_named(name: &str) -> Option<IsolationLevel> {
    LEVELS.iter().find(|(_, own)| own.eq_ignore_ascii_case(name)).map(|(level, _)| *level)
}

/// What kv calls a level of the grammar.
pub(crate) fn isolation_at(level: IsolationLevel) -> Isolation {
    match level {
        IsolationLevel::Serializable => Isolation::Serializable,
        IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
        IsolationLevel::ReadCommitted | IsolationLevel::ReadUncommitted => Isolation::ReadCommitted,
    }
}

/// The timestamp that an AS OF SYSTEM TIME value means: an interval (`-10s`), a timestamp, or an
/// engine timestamp as a decimal number.
pub(crate) fn as_of_timestamp(value: &Datum, now_us: u64, zone: &TimeZone) -> SqlResult<CommitTs> {
    let bad = |text: &str| {
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("AS OF SYSTEM TIME: \"{text}\" is neither a timestamp nor a negative interval"),
        )
        .with_hint("For example: AS OF SYSTEM TIME '-10s', or '2026-01-31 12:00:00+00'.")
    };
    let at = |micros_2000: i64| {
        u64::try_from(i128::from(micros_2000) + i128::from(EPOCH_MICROS))
            .map(braid_kv::Coordinator::timestamp_at)
            .map_err(|_| bad("timestamp before 1970"))
    };
    match value {
        Datum::TimestampTz(t) | Datum::Timestamp(t) => at(*t),
        Datum::Interval(i) => {
            let back = i.length();
            if back > 0 {
                return Err(bad("a positive interval"));
            }
            let us = i128::from(now_us) + back;
            u64::try_from(us)
                .map(braid_kv::Coordinator::timestamp_at)
                .map_err(|_| bad("too far back"))
        }
        Datum::Int8(v) => u64::try_from(*v).map(CommitTs).map_err(|_| bad(&v.to_string())),
        Datum::Numeric(n) => n.to_string().parse().map(CommitTs).map_err(|_| bad(&n.to_string())),
        Datum::Text(s) => {
            let text = s.trim();
            if let Ok(v) = text.parse::<u64>() {
                return Ok(CommitTs(v));
            }
            if text.starts_with('-')
                && let Ok(i) = Datum::parse(text, &SqlType::Interval, zone)
            {
                return as_of_timestamp(&i, now_us, zone);
            }
            match Datum::parse(text, &SqlType::TimestampTz, zone) {
                Ok(t) => as_of_timestamp(&t, now_us, zone),
                Err(_) => Err(bad(text)),
            }
        }
        other => Err(bad(&format!("{other:?}"))),
    }
}
