//! Functions that tell how many bytes something has in files, about: see `statistics/sizes.rs` of
//! `braid_sql`.

use braid_catalog::{Catalog, id_of_oid};
use braid_sql::session::SessionState;
use braid_sql::statistics::SizeOf;
use braid_types::{Datum, SqlError, SqlResult, SqlState, system_relation};

/// The answer of one of these functions; `None` if the name is another one's.
///
/// # Errors
/// 22023 for a fork that is none, 3D000 and 42704 for databases and tablespaces that are not there.
pub(super) fn function(
    session: &SessionState,
    catalog: &Catalog,
    name: &str,
    args: &[Datum],
) -> SqlResult<Option<Datum>> {
    let of = match name {
        "pg_relation_size" | "pg_table_size" => SizeOf::Relation,
        "pg_indexes_size" => SizeOf::Indexes,
        "pg_total_relation_size" => SizeOf::Total,
        "pg_database_size" => return of_database(session, catalog, args).map(Some),
        "pg_tablespace_size" => return of_tablespace(session, catalog, args).map(Some),
        _ => return Ok(None),
    };
    if let Some(Datum::Text(fork)) = args.get(1)
        && &**fork != "main"
    {
        return match &**fork {
            "fsm" | "vm" | "init" => Ok(Some(Datum::Int8(0))),
            _ => Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid fork name")
                .with_hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".")),
        };
    }
    let relation = match args.first() {
        // Those of the system are made when they are read.
        Some(Datum::Oid(oid)) if system_relation(*oid).is_some() => return Ok(Some(number(0))),
        Some(Datum::Oid(oid)) => id_of_oid(*oid).and_then(|id| catalog.relation_by_id(id)),
        _ => None,
    };
    let bytes = match relation {
        Some(relation) => session.db().relation_bytes(catalog, &relation, of)?,
        None => None,
    };
    Ok(Some(bytes.map_or(Datum::Null, number)))
}

fn number(bytes: u64) -> Datum {
    Datum::Int8(i64::try_from(bytes).unwrap_or(i64::MAX))
}

fn of_database(session: &SessionState, catalog: &Catalog, args: &[Datum]) -> SqlResult<Datum> {
    let named = |name: &str| catalog.databases().find(|database| database.name == name);
    let id = match args.first() {
        Some(Datum::Text(name)) => match named(name) {
            Some(database) => database.id,
            None => {
                let text = format!("database \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, text));
            }
        },
        Some(Datum::Oid(oid)) => match id_of_oid(*oid) {
            Some(id) => id,
            None => return Ok(Datum::Null),
        },
        _ => return Ok(Datum::Null),
    };
    match catalog.databases().any(|database| database.id == id) {
        true => session.db().database_bytes(catalog, id).map(number),
        false => Ok(Datum::Null),
    }
}

/// There is one tablespace, in which everything is.
fn of_tablespace(session: &SessionState, catalog: &Catalog, args: &[Datum]) -> SqlResult<Datum> {
    match args.first() {
        Some(Datum::Text(name)) if &**name != "pg_default" => {
            let text = format!("tablespace \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text));
        }
        Some(Datum::Oid(oid)) if *oid != 1663 => return Ok(Datum::Null),
        _ => {}
    }
    let mut bytes = 0;
    for database in catalog.databases() {
        bytes += session.db().database_bytes(catalog, database.id)?;
    }
    Ok(number(bytes))
}
