//! Trying a statement until it is done: in a block, or in a transaction of its own.
//!
//! Outside of a transaction block a statement has its own transaction, and runs again by itself
//! when it loses against a concurrent one (up to [`MAX_ATTEMPTS`] times). A SELECT's transaction
//! lives as long as its stream of rows; everything else is complete, durable and committed when
//! [`Session::execute`] returns. Inside a block a statement that meets a newer row runs again by
//! itself too, with its own writes taken back and its locks kept: under READ COMMITTED always,
//! under SERIALIZABLE if what the block read before it is still as it was.

use std::sync::Arc;
use std::time::Duration;

use braid_catalog::{After, SeenBy, kv_error, publish};
use braid_kv::{Isolation, Txn};
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
/// Tries that follow each other at once. After them many want the same, and each goes out of the
/// others' way for a while.
const HASTY_ATTEMPTS: usize = 8;
/// The longest such while, in milliseconds.
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
        let mut attempt = 0;
        let mut begun: Option<Arc<Txn>> = None;
        // Always taken before the read timestamp is chosen.
        let mut epoch = self.db.schema_epoch();
        loop {
            attempt += 1;
            let (txn, catalog) = match begun.take() {
                Some(txn) => {
                    let catalog = self.db.catalog_at(&txn)?;
                    (txn, catalog)
                }
                None => {
                    epoch = self.db.schema_epoch();
                    self.db.begin(options.clone())?
                }
            };
            let ctx = self.context(txn.clone(), catalog, params.clone());
            let ctx = Arc::new(Context { epoch, ..ctx });
            let p = self.replan(p, &ctx)?;
            let error = match run(self, &ctx, &p) {
                Ok(Ran { outcome: Outcome::Rows(rows), catalog: None }) if p.only_reads() => {
                    // The stream owns the transaction; reading needs no commit.
                    return Ok(Outcome::Rows(rows));
                }
                Ok(Ran { outcome: o @ (Outcome::CopyIn(_) | Outcome::CopyOut(_)), .. }) => {
                    return Ok(o);
                }
                Ok(mut ran) => {
                    if let Err(e) = self.clear_after(&ctx, &mut ran) {
                        txn.rollback();
                        return Err(e);
                    }
                    let committed = match &ran.catalog {
                        Some((catalog, _)) => publish(&txn, catalog.version)
                            .and_then(|_| self.db.commit_schema_change(&txn).map_err(kv_error)),
                        None => txn.commit().map(|_| ()).map_err(kv_error),
                    };
                    match committed {
                        Ok(()) => return Ok(ran.outcome),
                        Err(e) => {
                            txn.rollback();
                            e
                        }
                    }
                }
                Err(e) => {
                    // Keeping the locks lets the second try win; a deadlock needs them gone.
                    epoch = self.db.schema_epoch();
                    if After::error(&e) == After::Again && txn.restart().is_ok() {
                        begun = Some(txn);
                    } else {
                        txn.rollback();
                    }
                    e
                }
            };
            if !After::error(&error).is_again() || attempt >= MAX_ATTEMPTS {
                return Err(error);
            }
            ctx.check_cancel()?;
            self.give_way(attempt);
        }
    }
}

impl Session {
    /// After many tries, a while in which the others get on.
    fn give_way(&self, attempt: usize) {
        if attempt > HASTY_ATTEMPTS {
            // Another one for each session and try, so that two do not meet again.
            let own = u64::from(self.state.pid().unsigned_abs()).wrapping_mul(7);
            let while_ms = 1 + own.wrapping_add(attempt as u64 * 5) % LONGEST_WHILE;
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
