//! Trying a statement until it is done: in a block, or in a transaction of its own.
//!
//! Outside of a transaction block a statement has its own transaction, and runs again by itself
//! when it loses against a concurrent one (up to [`MAX_ATTEMPTS`] times; from the sixth on it locks
//! what it reads, so that others wait and it wins). A SELECT's transaction
//! lives as long as its stream of rows; everything else is complete, durable and committed when
//! [`Session::execute`] returns. Inside a block a statement that meets a newer row runs again by
//! itself too, with its own writes taken back and its locks kept: under READ COMMITTED always,
//! under SERIALIZABLE if what the block read before it is still as it was.

use std::sync::Arc;
use std::time::Duration;

use braid_catalog::{After, Catalog, SeenBy, kv_error, publish};
use braid_kv::{Isolation, Reads, Txn, TxnOptions};
use braid_types::{Datum, SqlError, SqlResult};

use super::client::Session;
use super::context::Context;
use super::execute::{Ran, run};
use super::outcome::Outcome;
use super::prepared::Prepared;
use super::transaction::Failure;
use braid_parser::TxnModes;

/// Tries of a statement outside of a transaction block before the conflict is the client's.
const MAX_ATTEMPTS: usize = 50;
/// Tries that are no more than that. Whoever commits first begins its next statement before the
/// losers know that they have lost, and may go on winning: so after these tries a statement locks
/// what it has read before it reads it again.
const HASTY_ATTEMPTS: usize = 5;
/// Most keys and spans that are locked so.
const INSISTS_MAX: usize = 1024;
/// Where more was read, others are given way for so many milliseconds at most.
const LONGEST_WHILE: u64 = 20;

impl Session {
    pub(super) fn run_in_block(
        &mut self,
        p: &Arc<Prepared>,
        params: Arc<[Datum]>,
    ) -> SqlResult<Outcome> {
        if p.statement.as_of.is_some() {
            return Err(SqlError::unsupported("AS OF SYSTEM TIME inside of a transaction block")
                .with_hint("Say it at the start: BEGIN AS OF SYSTEM TIME .."));
        }
        let mut attempt = 0;
        // Set when the read timestamp has moved for this statement: the schema epoch before that.
        let mut moved: Option<Option<u64>> = None;
        loop {
            attempt += 1;
            let open = self.open.as_mut().expect("the caller checked");
            let committed_each = open.txn.isolation() == Isolation::ReadCommitted;
            // Nothing was told to the client before the first statement has run, so that it may
            // start over with a newer view.
            let first = open.is_untold();
            let epoch = moved.unwrap_or_else(|| self.db.schema_epoch());
            open.begin_statement(&self.db, moved.is_some(), epoch)?;
            let is_alone = open.changed == Some(SeenBy::All);
            let (txn, catalog) = (open.txn.clone(), open.catalog.clone());
            let mark = txn.begin_retryable();
            let may_retry = !is_alone || committed_each || first;
            let ctx = Arc::new(self.context(txn.clone(), catalog, params.clone()));
            let p = self.replan(p, &ctx)?;
            match run(self, &ctx, &p) {
                Ok(ran) => {
                    let open = self.open.as_mut().expect("a statement does not end its block");
                    open.statements += u64::from(!p.shows_a_setting());
                    if let Some((catalog, seen_by)) = ran.catalog {
                        self.state.set_catalog(&catalog);
                        open.has_changed(catalog, seen_by);
                    }
                    return Ok(fail_late(ran.outcome, &open.failure));
                }
                // Before the first row went to the client nobody knows of this try.
                Err(e)
                    if may_retry && After::error(&e) == After::Again && attempt < MAX_ATTEMPTS =>
                {
                    let epoch = self.db.schema_epoch();
                    if !first && txn.retry_statement(mark).is_err() {
                        return Err(e);
                    }
                    self.loses(&e);
                    moved = Some(epoch);
                    ctx.check_cancel()?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    pub(super) fn run_alone(
        &mut self,
        p: &Arc<Prepared>,
        params: Arc<[Datum]>,
    ) -> SqlResult<Outcome> {
        let mut options = self.txn_options(&TxnModes::default(), p.statement.as_of.as_deref())?;
        options.read_only |= p.only_reads() || self.explains_what_only_reads(p);
        let mut tries = Tries::default();
        loop {
            let error = match self.begin_try(&mut tries, &options) {
                Ok(begun) => match self.try_alone(p, &params, begun, &mut tries) {
                    Ok(outcome) => return Ok(outcome),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if !After::error(&error).is_again() || tries.count >= MAX_ATTEMPTS {
                return Err(error);
            }
            self.loses(&error);
            tries.give_way(self.state.pid());
        }
    }

    /// The transaction of the next try, with the schema epoch before it and the catalog at it.
    fn begin_try(&self, tries: &mut Tries, options: &TxnOptions) -> SqlResult<Begun> {
        tries.count += 1;
        if let Some(txn) = tries.kept.take() {
            tries.insist(&txn)?;
            let epoch = self.db.schema_epoch();
            if txn.restart().is_ok() {
                return Ok(Begun { catalog: self.db.catalog_at(&txn)?, txn, epoch });
            }
            txn.rollback();
        }
        // Always taken before the read timestamp is chosen.
        let epoch = self.db.schema_epoch();
        let (txn, catalog) = self.db.begin(options.clone())?;
        if tries.read.is_none() {
            return Ok(Begun { txn, catalog, epoch });
        }
        tries.insist(&txn)?;
        let epoch = self.db.schema_epoch();
        txn.restart().map_err(kv_error)?;
        Ok(Begun { catalog: self.db.catalog_at(&txn)?, txn, epoch })
    }

    /// Runs the statement in a transaction, and commits that.
    fn try_alone(
        &mut self,
        p: &Arc<Prepared>,
        params: &Arc<[Datum]>,
        begun: Begun,
        tries: &mut Tries,
    ) -> SqlResult<Outcome> {
        let Begun { txn, catalog, epoch } = begun;
        let ctx = self.context(txn.clone(), catalog, params.clone());
        let ctx = Arc::new(Context { epoch, ..ctx });
        let p = self.replan(p, &ctx)?;
        // What a try before this one has set apart is not what this one commits.
        drop(self.state.take_apart());
        match run(self, &ctx, &p) {
            // The stream owns the transaction; reading needs no commit.
            Ok(Ran { outcome: Outcome::Rows(rows), catalog: None }) if p.only_reads() => {
                Ok(Outcome::Rows(rows))
            }
            Ok(Ran { outcome: Outcome::CopyOut(o), .. }) if !o.wrote() => Ok(Outcome::CopyOut(o)),
            Ok(Ran { outcome: o @ Outcome::CopyIn(_), .. }) => Ok(o),
            Ok(mut ran) => {
                tries.note(&txn);
                let cleared = self.clear_after(&ctx, &mut ran);
                let committed = cleared.and_then(|()| self.state.say_asked(&txn)).and_then(|()| {
                    match &ran.catalog {
                        Some((catalog, _)) => publish(&txn, catalog.version)
                            .and_then(|_| self.db.commit_schema_change(&txn).map_err(kv_error)),
                        None => ctx.commit_load(),
                    }
                });
                if committed.is_err() {
                    txn.rollback();
                }
                committed.map(|()| ran.outcome)
            }
            Err(e) => {
                tries.note(&txn);
                // Keeping the locks lets the next try win; a deadlock needs them gone.
                if After::error(&e) == After::Again {
                    tries.kept = Some(txn);
                } else {
                    txn.rollback();
                }
                Err(e)
            }
        }
    }
}

/// A transaction for one try.
struct Begun {
    txn: Arc<Txn>,
    catalog: Arc<Catalog>,
    /// The schema epoch before its read timestamp was chosen.
    epoch: Option<u64>,
}

/// What a statement knows of its tries so far.
#[derive(Default)]
struct Tries {
    count: usize,
    /// The transaction of the last one, with its locks.
    kept: Option<Arc<Txn>>,
    /// What the last one has read, if there were many.
    read: Option<Reads>,
}

impl Tries {
    /// Before the commit, or after a failure: what a later try may have to insist on.
    fn note(&mut self, txn: &Txn) {
        if self.count >= HASTY_ATTEMPTS
            && let Some(read) = txn.reads_so_far(INSISTS_MAX)
        {
            self.read = Some(read);
        }
    }

    /// Sees to it that what was read before cannot be changed before this try has ended.
    fn insist(&self, txn: &Txn) -> SqlResult<()> {
        self.read.as_ref().map_or(Ok(()), |read| txn.hold_reads(read)).map_err(kv_error)
    }

    /// Where there is nothing to insist on, a while in which the others get on.
    fn give_way(&self, session: i32) {
        if self.count > HASTY_ATTEMPTS && self.read.is_none() {
            // Another one for each session and try, so that two do not meet again.
            let own = u64::from(session.unsigned_abs()).wrapping_mul(7);
            let while_ms = 1 + own.wrapping_add(self.count as u64 * 5) % LONGEST_WHILE;
            std::thread::sleep(Duration::from_millis(while_ms));
        }
    }
}

/// Makes errors in the middle of a stream fail the block.
fn fail_late(outcome: Outcome, failure: &Arc<Failure>) -> Outcome {
    match outcome {
        Outcome::Rows(rows) => Outcome::Rows(rows.failing(failure.clone())),
        other => other,
    }
}
