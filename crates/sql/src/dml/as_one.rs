//! Parts of one statement that write: all read the state before it.
//!
//! ```text
//!   WITH gone AS (DELETE ..), new AS (INSERT ..) UPDATE ..
//!        read before │ write      read before │ write
//! ```
//! Reads look back to where the statement began ([`braid_kv::Txn::look_back`]); writing sees all.
//! A row is written by the first part that names it: others pass it by, as in PostgreSQL. What a
//! part finds changed all the same was changed by a referential action, and that is done on top of
//! which. Questions for the end of the statement wait until its last part has written.

use std::collections::HashSet;

use braid_catalog::kv_error;
use braid_kv::{LookBack, SavepointId};
use braid_types::{Datum, SqlError, SqlResult, SqlState};
use bytes::Bytes;
use parking_lot::Mutex;

use super::later::Later;
use super::merge::hit_twice;
use super::writer::{TableInfo, Writer};
use crate::session::Context;
use braid_rows::Row;
use braid_rows::scan::get_row;

/// A row of a part: its key, as it was before the statement, and what the part makes of it.
pub(super) type Change = (Bytes, Row, Row);

/// What the parts of a statement share while it runs.
pub(crate) struct AsOne {
    since: SavepointId,
    /// Keys of rows that a part has written.
    written: Mutex<HashSet<Bytes>>,
    /// Questions for the end.
    later: Mutex<Vec<Later>>,
    /// Whether a part is an UPDATE, so that a row that is gone may stand somewhere else.
    moves: bool,
}

impl AsOne {
    /// A statement begins.
    pub(super) fn begin(ctx: &Context, moves: bool) -> AsOne {
        let since = ctx.txn.savepoint();
        AsOne { since, written: Mutex::default(), later: Mutex::default(), moves }
    }

    /// Where it began.
    pub(super) fn since(&self) -> SavepointId {
        self.since
    }

    /// A part has written a row.
    pub(super) fn wrote(&self, key: &Bytes) -> bool {
        self.written.lock().insert(key.clone())
    }

    /// Leaves questions for the end of the statement.
    pub(super) fn leave(&self, later: &mut Vec<Later>) {
        self.later.lock().append(later);
    }

    /// Answers what was left; `ctx` is the whole statement's.
    pub(super) fn finish(&self, ctx: &Context) -> SqlResult<()> {
        Writer::ending(ctx, std::mem::take(&mut *self.later.lock())).finish()
    }

    /// The updates of a part that are still to be made, each with the row as it is now.
    pub(super) fn updates(
        &self,
        ctx: &Context,
        info: &TableInfo,
        changes: Vec<Change>,
    ) -> SqlResult<Vec<Change>> {
        let mut out = Vec::with_capacity(changes.len());
        for (key, old, new) in changes {
            if !self.wrote(&key) {
                ctx.passed_by()?;
                continue;
            }
            let Some((key, now)) = get_row(&ctx.txn, &info.layout, key)? else {
                return Err(touched_by_action(info));
            };
            // A column that an action has set, and this part has not, is as the action left it.
            let set = old.iter().zip(&new).zip(&now).map(|((old, new), now)| {
                let is_action = is_same(old, new) && !is_same(old, now);
                if is_action { now.clone() } else { new.clone() }
            });
            let new: Row = set.collect();
            self.written.lock().insert(Bytes::from(info.layout.row_key(&new)?));
            out.push((key, now, new));
        }
        Ok(out)
    }

    /// The deletes of a part that are still to be made; `found` keeps the rows that count for it.
    pub(super) fn deletes(
        &self,
        ctx: &Context,
        info: &TableInfo,
        found: &mut Vec<(Bytes, Row)>,
    ) -> SqlResult<Vec<(Bytes, Row)>> {
        let mut out = Vec::with_capacity(found.len());
        let before = found.len();
        found.retain(|(key, _)| self.wrote(key));
        if found.len() < before {
            ctx.passed_by()?;
        }
        for (key, _) in found.iter() {
            match get_row(&ctx.txn, &info.layout, key.clone())? {
                Some(row) => out.push(row),
                None if self.moves => return Err(touched_by_action(info)),
                // A cascade was here before: its row counts here too.
                None => {}
            }
        }
        Ok(out)
    }
}

fn is_same(a: &Datum, b: &Datum) -> bool {
    match (a.is_null(), b.is_null()) {
        (false, false) => a.cmp_sql(b).is_eq(),
        (a, b) => a == b,
    }
}

fn touched_by_action(info: &TableInfo) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!(
            "writing rows of \"{}\" that a referential action of the same statement deletes or \
             moves is not supported",
            info.table().name
        ),
    )
    .with_hint("Write them in a statement of their own.")
}

impl Context {
    /// Lets reads see the state before the statement, if it has several parts.
    pub(super) fn look_back(&self) -> SqlResult<Option<LookBack>> {
        let one = self.with.as_ref().and_then(|with| with.as_one.as_ref());
        one.map(|one| self.txn.look_back(one.since).map_err(kv_error)).transpose()
    }

    /// A row is left as it is, since it was written before, or is named twice.
    ///
    /// # Errors
    /// 21000 in MERGE.
    pub(super) fn passed_by(&self) -> SqlResult<()> {
        match self.with.as_ref().is_some_and(|with| with.once) {
            true => Err(hit_twice()),
            false => Ok(()),
        }
    }

    /// The statement that this one is a part of.
    pub(super) fn as_one(&self) -> Option<&AsOne> {
        self.with.as_ref()?.as_one.as_deref()
    }
}
