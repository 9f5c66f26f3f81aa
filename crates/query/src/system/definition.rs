//! Functions over the catalog.
use braid_sql::session::SessionState;
use braid_types::{Datum, SqlResult};

/// See `GeneralQueries::catalog_function`.
pub fn catalog_function(
    session: &SessionState,
    name: &str,
    args: &[Datum],
) -> SqlResult<Option<Datum>> {
    let _ = (session, name, args);
    Ok(None)
}
