//! Schema changes.
use braid_catalog::Catalog;
use braid_types::{SqlError, SqlResult};

use crate::parse::Statement;
use crate::session::Context;

/// Runs a schema change: the command tag and the new catalog.
pub fn run(_ctx: &Context, s: &Statement) -> SqlResult<(String, Option<Catalog>)> {
    Err(SqlError::unsupported(&*s.text))
}
