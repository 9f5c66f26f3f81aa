//! Temporary tables, as their session sees them: where they lie, and how they go with it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use braid_types::{SqlResult, quote_ident};

use super::client::{Session, SessionOptions};
use super::context::Context;
use super::execute::Ran;
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
        self.run_text(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE"))?;
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

/// Drops what sessions of an earlier run have left behind.
pub(crate) fn drop_leftovers(db: &Arc<Database>) -> SqlResult<()> {
    let catalog = db.current_catalog()?;
    for database in catalog.databases() {
        let schemas = catalog.schemas(database.id).filter(|s| is_temporary_schema(&s.name));
        let names: Vec<String> = schemas.map(|s| quote_ident(&s.name)).collect();
        if names.is_empty() {
            continue;
        }
        let options = SessionOptions {
            user: "root".into(),
            database: database.name.clone(),
            ..SessionOptions::default()
        };
        let mut session = Session::new(db.clone(), options)?;
        session.run_text(&format!("DROP SCHEMA {} CASCADE", names.join(", ")))?;
    }
    Ok(())
}
