//! Temporary tables, as their session sees them: where they lie, and how they go with it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use braid_types::{SqlResult, quote_ident};

use super::client::{Session, SessionOptions};
use super::context::Context;
use super::execute::Ran;
use super::transaction::Modes;
use crate::database::Database;
use crate::ddl::temporary;

/// How the names of schemas of temporary tables begin.
const PREFIX: &str = "pg_temp_";

/// The schema of the temporary tables of the session with this number.
pub(super) fn schema_of(pid: i32) -> String {
    format!("{PREFIX}{pid}")
}

/// Whether a schema holds temporary tables.
pub(crate) fn is_temporary_schema(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

impl Session {
    /// ON COMMIT of the session's tables, as a part of the transaction that is about to commit.
    pub(super) fn clear_at_commit(&mut self) -> SqlResult<()> {
        let Some(open) = self.open.as_ref().filter(|o| !o.is_failed()) else { return Ok(()) };
        if !self.state.made_temporary() || open.txn.read_only() {
            return Ok(());
        }
        let ctx = self.context(open.txn.clone(), open.catalog.clone(), Arc::default());
        if !temporary::is_due(&ctx) {
            return Ok(());
        }
        let (_, new) = crate::ddl::run(&ctx, Box::new(temporary::at_commit))?;
        let (new, seen_by) = ctx.stage(new)?;
        if let Some(open) = &mut self.open {
            open.has_changed(new, seen_by);
        }
        Ok(())
    }

    /// As [`Session::clear_at_commit`], of a statement that is a transaction of its own.
    pub(super) fn clear_after(&self, ctx: &Context, ran: &mut Ran) -> SqlResult<()> {
        if !self.state.made_temporary() || ctx.txn.read_only() {
            return Ok(());
        }
        let catalog = ran.catalog.as_ref().map_or(&ctx.catalog, |(catalog, _)| catalog).clone();
        let ctx = Context { catalog, ..ctx.clone() };
        if temporary::is_due(&ctx) {
            let (_, new) = crate::ddl::run(&ctx, Box::new(temporary::at_commit))?;
            ran.catalog = Some(ctx.stage(new)?);
        }
        Ok(())
    }

    /// Drops the session's temporary tables.
    pub(crate) fn drop_temporary(&mut self) -> SqlResult<()> {
        if !self.state.made_temporary() {
            return Ok(());
        }
        let schema = quote_ident(&self.state.temporary_schema());
        // In a READ ONLY transaction, too.
        let modes = self.state.modes();
        self.state.set_modes(Some(Modes { read_only: false, ..modes }));
        let dropped = self.run_text(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE"));
        self.state.set_modes(self.open.as_ref().map(|open| open.modes));
        dropped?;
        // Nobody has asked for it, so nobody is told.
        self.notices.lock().clear();
        Ok(())
    }

    /// The session ends: whoever has stopped it, its tables go.
    pub(super) fn end_temporary(&mut self) {
        if self.state.made_temporary() {
            self.rollback();
            self.cancel = Arc::new(AtomicBool::new(false));
            if let Err(e) = self.drop_temporary() {
                tracing::warn!("temporary tables are left until the next start: {e}");
            }
        }
    }
}

/// Bits of a session's number that tell sessions of a node apart; its node's number is above them:
/// whoever asks one node to end a session of another one does not end somebody else's.
const NODE_SHIFT: u32 = 23;

/// The number of a session: the `count`th of a node, which is 0 for one that is alone.
pub fn session_number(node: u64, count: i32) -> i32 {
    (node as i32) << NODE_SHIFT | count
}

/// The greatest count of [`session_number`].
pub fn sessions_most(node: u64) -> i32 {
    if node == 0 { i32::MAX } else { (1 << NODE_SHIFT) - 1 }
}

/// The node of a session's number.
pub(crate) fn node_of_session(number: i32) -> u64 {
    u64::try_from(number >> NODE_SHIFT).unwrap_or(0)
}

/// Whose temporary tables a schema holds: the node's number.
fn node_of(schema: &str) -> Option<u64> {
    schema.strip_prefix(PREFIX)?.parse::<i32>().ok().map(node_of_session)
}

/// Drops what sessions that are gone have left behind, where `is_gone` says so of their node.
fn drop_of(db: &Arc<Database>, is_gone: impl Fn(u64) -> bool) -> SqlResult<()> {
    let catalog = db.current_catalog()?;
    for database in catalog.databases() {
        let schemas = catalog.schemas(database.id).filter(|s| is_temporary_schema(&s.name));
        let left = schemas.filter(|s| node_of(&s.name).is_none_or(&is_gone));
        let names: Vec<String> = left.map(|s| quote_ident(&s.name)).collect();
        if names.is_empty() {
            continue;
        }
        let options = SessionOptions {
            user: "root".into(),
            database: database.name.clone(),
            ..SessionOptions::default()
        };
        let mut session = Session::new(db.clone(), options)?;
        session.run_text(&format!("DROP SCHEMA IF EXISTS {} CASCADE", names.join(", ")))?;
    }
    Ok(())
}

/// Drops what sessions of an earlier run have left behind.
pub(crate) fn drop_leftovers(db: &Arc<Database>) -> SqlResult<()> {
    drop_of(db, |_| true)
}

impl Database {
    /// Drops the temporary tables that sessions of nodes have left behind which do not belong to
    /// the cluster any more; `first`: and those of this node, whose process has just begun and has
    /// no sessions yet. Does nothing where there are no other nodes. Blocks until the schema is
    /// changed, if there are any.
    ///
    /// # Errors
    /// Of the schema change; the next call tries again.
    pub fn drop_temporary_of_gone(self: &Arc<Self>, first: bool) -> SqlResult<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let own = self.home().map(|home| home.holder.node);
        let nodes = self.coordinator().describe_nodes();
        let gone = |node: u64| nodes.iter().any(|n| n.id == node && n.state == "gone");
        // 0: this one, before it was the first of a cluster.
        drop_of(self, |node| (first && (node == 0 || Some(node) == own)) || gone(node))
    }
}
