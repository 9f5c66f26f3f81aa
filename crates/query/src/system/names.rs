//! `regnamespace`, `regrole`, `regproc`, `regprocedure`, `regoper`, `regoperator`: oids that are
//! written and shown as names.

use std::sync::Arc;

use braid_catalog::{Catalog, Function, id_of_oid, oid_of};
use braid_scalar::{Builtin, ParamTypes, type_functions};
use braid_sql::session::{SessionState, types_in_reach};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, quote_ident};

use super::code;
use super::sql_functions::type_text;
use super::table::{INFORMATION_SCHEMA, PG_CATALOG};

/// What makes access methods and subscripts what they are, by oid.
const HANDLERS: [(u32, &str); 9] = [
    (6179, "array_subscript_handler"),
    (6180, "raw_array_subscript_handler"),
    (3, "heap_tableam_handler"),
    (330, "bthandler"),
    (331, "hashhandler"),
    (332, "gisthandler"),
    (333, "ginhandler"),
    (334, "spghandler"),
    (335, "brinhandler"),
];

/// The oid behind a name: of which type, and the name.
pub(super) fn oid_of_name(
    session: &SessionState,
    catalog: &Arc<Catalog>,
    args: &[Datum],
) -> SqlResult<Option<Datum>> {
    let [Datum::Text(ty), Datum::Text(text)] = args else { return Ok(None) };
    let name = text.trim();
    let missing = |state, what: &str| {
        let shown = SessionState::split_name(name).join(".");
        SqlError::new(SqlState(state), format!("{what} \"{shown}\" does not exist"))
    };
    let bare = SessionState::split_name(name.split('(').next().unwrap_or(name));
    let bare = bare.last().map_or("", String::as_str);
    let oid = match &**ty {
        "regnamespace" => {
            let database = catalog.database(&session.database).map_or(0, |d| d.id);
            match bare {
                "pg_catalog" => PG_CATALOG,
                "information_schema" => INFORMATION_SCHEMA,
                own => match catalog.schema(database, own) {
                    Some(schema) => oid_of(schema.id),
                    None => return Err(missing("3F000", "schema")),
                },
            }
        }
        "regcollation" => {
            let database = catalog.database(&session.database).map_or(0, |d| d.id);
            let types = types_in_reach(catalog, database, &session.search_path());
            let params = ParamTypes::default().with_types(types);
            params.collation(&SessionState::split_name(name))?.oid
        }
        "regoper" | "regoperator" => operator_of(name, &**ty == "regoperator")?,
        "regrole" => {
            catalog.role_oid(bare, &session.user).ok_or_else(|| missing("42704", "role"))?
        }
        _ => {
            if let Some(oid) = own_function(session, catalog, name)? {
                return Ok(Some(Datum::Oid(oid)));
            }
            let mut found = code::functions().filter(|(_, f)| f.name == bare);
            let wanted = arguments(name);
            let fits = |f: &Builtin| wanted.as_ref().is_none_or(|w| *w == shown_arguments(f));
            let first = found.by_ref().find(|(_, f)| fits(f));
            let more = wanted.is_none() && found.next().is_some();
            match first {
                Some(_) if more => {
                    return Err(SqlError::new(
                        SqlState("42725"),
                        format!("more than one function named \"{name}\""),
                    ));
                }
                Some((oid, _)) => oid,
                None => match type_functions().iter().find(|f| f.name == bare) {
                    Some(f) => f.oid,
                    None => return Err(missing("42883", "function")),
                },
            }
        }
    };
    Ok(Some(Datum::Oid(oid)))
}

/// The oid of an operator, by its name alone or with the types beside it: `+(int,int)`,
/// `-(NONE,int)`.
fn operator_of(name: &str, with_types: bool) -> SqlResult<u32> {
    let symbol = name.split('(').next().unwrap_or(name).trim();
    let bare = symbol.strip_prefix("pg_catalog.").unwrap_or(symbol);
    let wanted = if with_types { arguments(name) } else { None };
    if with_types && wanted.is_none() {
        let state = SqlState::INVALID_TEXT_REPRESENTATION;
        return Err(SqlError::new(state, "expected a left parenthesis"));
    }
    let shown = |oid| match oid {
        0 => "none".to_string(),
        oid => SqlType::from_oid(oid, -1).map_or(String::new(), |ty| ty.base_name()),
    };
    let fits = |o: &&code::Operator| {
        o.name == bare
            && wanted.as_ref().is_none_or(|types| *types == [shown(o.left), shown(o.right)])
    };
    let mut found = code::operators().filter(fits);
    match (found.next(), found.next()) {
        (None, _) => Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("operator does not exist: {name}"),
        )),
        (Some(_), Some(_)) => Err(SqlError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("more than one operator named {name}"),
        )),
        (Some(one), None) => Ok(one.oid),
    }
}

/// An operator as its type shows it: with its schema where the name alone is not enough.
fn shown_operator(o: &code::Operator, with_types: bool) -> String {
    let shown = |oid| match oid {
        0 => "NONE".to_string(),
        oid => SqlType::from_oid(oid, -1).map_or("-".to_string(), |ty| ty.base_name()),
    };
    if with_types {
        return format!("{}({},{})", o.name, shown(o.left), shown(o.right));
    }
    match code::operators().filter(|other| other.name == o.name).count() {
        1 => o.name.to_string(),
        _ => format!("pg_catalog.{}", o.name),
    }
}

/// The oid of a function of a user that a name means, with types or without them.
fn own_function(session: &SessionState, catalog: &Catalog, name: &str) -> SqlResult<Option<u32>> {
    let database = catalog.database(&session.database).map_or(0, |d| d.id);
    let parts = SessionState::split_name(name.split('(').next().unwrap_or(name));
    let found: Vec<Arc<Function>> = match parts.as_slice() {
        [bare] => catalog.resolve_functions(database, &session.search_path(), bare),
        [schema, bare] => match catalog.schema(database, schema) {
            Some(schema) => catalog.functions_in(schema.id, bare).cloned().collect(),
            None => Vec::new(),
        },
        _ => Vec::new(),
    };
    let wanted = arguments(name);
    let types = |f: &Function| -> Vec<String> {
        f.signature().into_iter().map(|ty| type_text(session, ty)).collect()
    };
    let mut fits = found.iter().filter(|f| wanted.as_ref().is_none_or(|w| *w == types(f)));
    match (fits.next(), fits.next()) {
        (Some(_), Some(_)) => Err(SqlError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("more than one function named \"{name}\""),
        )),
        (found, _) => Ok(found.map(|f| oid_of(f.id))),
    }
}

/// Names of the types in `f(int, text)`; `None` without brackets.
fn arguments(name: &str) -> Option<Vec<String>> {
    let inner = name.split_once('(')?.1.trim_end().strip_suffix(')')?;
    let name = |ty: &str| {
        let ty = ty.trim().to_lowercase();
        SqlType::from_name(&ty).map_or(ty, |ty| ty.base_name())
    };
    Some(inner.split(',').filter(|ty| !ty.trim().is_empty()).map(name).collect())
}

fn shown_arguments(f: &Builtin) -> Vec<String> {
    f.args.iter().map(code::argument_name).collect()
}

/// The types of a function's arguments.
pub(super) fn arguments_of(oid: u32) -> Option<String> {
    let f = code::function(oid)?;
    let mut shown = shown_arguments(f);
    if let Some(last) = shown.last_mut().filter(|_| f.variadic) {
        *last = format!("VARIADIC {last}");
    }
    Some(shown.join(", "))
}

/// The type of a function's result.
pub(super) fn result_of(oid: u32) -> Option<String> {
    let f = code::function(oid)?;
    let rows = f.kind() == braid_scalar::FunctionKind::SetReturning;
    Some(format!("{}{}", if rows { "SETOF " } else { "" }, code::argument_name(&f.ret)))
}

/// The name of an oid: of which type, and the oid.
pub(super) fn name_of_oid(
    session: &SessionState,
    catalog: &Catalog,
    args: &[Datum],
) -> Option<Datum> {
    let [Datum::Text(ty), Datum::Oid(oid)] = args else { return None };
    if let Some(f) = id_of_oid(*oid).and_then(|id| catalog.function(id))
        && matches!(&**ty, "regproc" | "regprocedure")
    {
        let typed = &**ty == "regprocedure";
        return Some(Datum::text(shown_function(session, catalog, f, typed)));
    }
    let name = match &**ty {
        "regnamespace" => match *oid {
            PG_CATALOG => "pg_catalog".to_string(),
            INFORMATION_SCHEMA => "information_schema".to_string(),
            own => quote_ident(&catalog.schema_by_id(id_of_oid(own)?)?.name).to_string(),
        },
        "regcollation" => {
            let own = catalog.collation_by_oid(*oid)?;
            let name = quote_ident(&own.name).to_string();
            let Some(user) = id_of_oid(*oid).and_then(|id| catalog.user_collation(id)) else {
                return Some(Datum::text(name));
            };
            let database = catalog.database(&session.database).map_or(0, |d| d.id);
            let found = catalog.resolve_collation(database, &session.search_path(), &own.name);
            let schema = catalog.schema_by_id(user.schema).map_or("", |s| &s.name);
            match found.is_some_and(|found| found.id == user.id) {
                true => name,
                false => format!("{}.{name}", quote_ident(schema)),
            }
        }
        "regoper" | "regoperator" => {
            let found = code::operators().find(|o| o.oid == *oid)?;
            shown_operator(found, &**ty == "regoperator")
        }
        "regrole" => quote_ident(&catalog.role_name(*oid, &session.user)?).to_string(),
        "regprocedure" => {
            let f = code::function(*oid)?;
            format!("{}({})", f.name, shown_arguments(f).join(","))
        }
        _ => match code::function(*oid) {
            Some(f) => f.name.to_string(),
            None => {
                let of_type = type_functions().iter().find(|f| f.oid == *oid).map(|f| f.name);
                let handler = || HANDLERS.iter().find(|(known, _)| known == oid).map(|(_, n)| *n);
                of_type.or_else(handler)?.to_string()
            }
        },
    };
    Some(Datum::text(name))
}

/// A function of a user by its name, with its schema where that is needed.
fn shown_function(session: &SessionState, catalog: &Catalog, f: &Function, typed: bool) -> String {
    let database = catalog.database(&session.database).map_or(0, |d| d.id);
    let found = catalog.resolve_functions(database, &session.search_path(), &f.name);
    let schema = catalog.schema_by_id(f.schema).map_or("", |s| &s.name);
    let name = match found.iter().any(|known| known.id == f.id) {
        true => quote_ident(&f.name).to_string(),
        false => format!("{}.{}", quote_ident(schema), quote_ident(&f.name)),
    };
    let types: Vec<String> = f.signature().into_iter().map(|ty| type_text(session, ty)).collect();
    if typed { format!("{name}({})", types.join(",")) } else { name }
}
