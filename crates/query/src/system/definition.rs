//! Descriptors back to SQL, and the functions over the catalog that clients call.

use std::sync::Arc;

use braid_catalog::{Catalog, ForeignKey, Function, Index, Relation, Table, id_of_oid, oid_of};
use braid_scalar::SessionFunctions;
use braid_sql::session::{
    SessionState, Shown, column_names, foreign_key, index_definition, key_column,
};
use braid_types::quote_ident;
use braid_types::{
    ArrayValue, Datum, SqlError, SqlResult, SqlState, SqlType, system_relation, system_type_name,
};

use super::comments::comment;
use super::{activity, names, partitions, qualified, sizes, sql_functions};

/// The oid of the access method `btree`.
const BTREE: u32 = 403;
/// How definitions of indexes name it.
const METHOD: &str = "USING btree ";

/// The key columns of an index, without directions.
pub(crate) fn key_text(t: &Table, i: &Index) -> String {
    let mut out = column_names(t, i.columns.iter().map(|c| c.column));
    if !i.include.is_empty() {
        out.push_str(&format!(") INCLUDE ({}", column_names(t, i.include.iter().copied())));
    }
    out
}

/// `CREATE INDEX` as `pg_get_indexdef` prints it.
pub(crate) fn index_text(c: &Catalog, t: &Table, i: &Index) -> String {
    index_definition(c, t, i, None, (METHOD, Shown::Deparsed))
}

/// Whether a function's last argument asks for a text to be read by people: then it has no more
/// parentheses than were written.
fn shown_how(args: &[Datum]) -> Shown {
    match args.last() {
        Some(Datum::Bool(true)) => Shown::Plain,
        _ => Shown::Deparsed,
    }
}

/// A CHECK constraint.
pub fn check_text(expr: &str) -> String {
    match is_enclosed(expr) {
        true => format!("CHECK ({expr})"),
        false => format!("CHECK (({expr}))"),
    }
}

/// Whether one pair of brackets is around the whole of an expression.
fn is_enclosed(expr: &str) -> bool {
    let (mut depth, mut quote) = (0usize, None);
    for (at, c) in expr.char_indices() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => {
                depth = depth.saturating_sub(1);
                if depth == 0 && at + 1 < expr.len() {
                    return false;
                }
            }
            (None, _) if depth == 0 => return false,
            (None, _) => {}
        }
    }
    !expr.is_empty()
}

/// A foreign key as `pg_get_constraintdef` prints it.
pub(crate) fn foreign_key_text(
    session: &SessionState,
    c: &Catalog,
    t: &Table,
    fk: &ForeignKey,
) -> String {
    foreign_key(c, t, fk, |parent| {
        let shown = session.relation_name(oid_of(parent.id));
        shown.unwrap_or_else(|| quote_ident(&parent.name))
    })
}

fn oid_arg(args: &[Datum], at: usize) -> Option<u32> {
    match args.get(at) {
        Some(Datum::Oid(oid)) => Some(*oid),
        _ => None,
    }
}

/// The index that the first argument is the oid of, and its table.
fn index_arg<'a>(catalog: &'a Catalog, args: &[Datum]) -> Option<(&'a Table, &'a Index)> {
    let id = id_of_oid(oid_arg(args, 0)?)?;
    let (table, index) = catalog.partition_index(id).or_else(|| catalog.index(id))?;
    Some((table, index))
}

fn definition_of(session: &SessionState, catalog: &Catalog, args: &[Datum]) -> Option<String> {
    let (table, index) = index_arg(catalog, args)?;
    match args.get(1) {
        Some(Datum::Int4(n)) if *n > 0 => {
            let at = *n as usize - 1;
            let keys: Vec<u32> = index
                .columns
                .iter()
                .map(|c| c.column)
                .chain(index.include.iter().copied())
                .collect();
            Some(key_column(table, *keys.get(at)?, shown_how(args)))
        }
        _ => Some(match shown_how(args) {
            Shown::Plain => {
                let on = session.relation_name(oid_of(table.id));
                index_definition(catalog, table, index, on, (METHOD, Shown::Plain))
            }
            _ => index_text(catalog, table, index),
        }),
    }
}

/// Whether the name of a relation finds it without its schema.
fn visible(session: &SessionState, catalog: &Catalog, oid: u32) -> Option<bool> {
    if let Some(of_system) = system_relation(oid) {
        return Some(in_search_path(session, of_system.schema));
    }
    let id = id_of_oid(oid)?;
    let Some((_, name)) = catalog.qualified_name(id) else {
        // A composite type is a relation, too.
        return type_is_visible(session, catalog, oid);
    };
    let database = catalog.database(&session.database)?.id;
    let found = catalog.resolve(database, &session.search_path(), &name);
    Some(found.is_some_and(|found| found.id() == id))
}

/// Whether names of a schema of the system need no schema.
fn in_search_path(session: &SessionState, schema: &str) -> bool {
    schema == "pg_catalog" || session.search_path().iter().any(|s| s == schema)
}

/// Whether the name of a type finds it without its schema; `None`: there is no such type.
fn type_is_visible(session: &SessionState, catalog: &Catalog, oid: u32) -> Option<bool> {
    if SqlType::from_oid(oid, -1).is_some() {
        return Some(true);
    }
    if let Some(name) = system_type_name(oid) {
        let schema = name.split_once('.').map_or("pg_catalog", |(schema, _)| schema);
        return Some(in_search_path(session, schema));
    }
    let Some(braid_catalog::NamedType { user, name, .. }) = catalog.by_oid(oid) else {
        // Rows of a relation are called as it is.
        return visible(session, catalog, oid_of(catalog.relation_of_rows(oid)?));
    };
    let database = catalog.database(&session.database)?.id;
    let found = catalog.resolve_named(database, &session.search_path(), name);
    // Types that are built in are found first.
    Some(SqlType::from_name(name).is_none() && found.is_some_and(|t| t.id == user.id))
}

/// Whether the name of a collation finds it without its schema; `None`: there is none.
fn collation_is_visible(session: &SessionState, catalog: &Catalog, oid: u32) -> Option<bool> {
    let collation = catalog.collation_by_oid(oid)?;
    let built_in = |name: &str| braid_types::built_in_collations().iter().any(|c| c.name == name);
    let Some(id) = id_of_oid(oid) else { return Some(true) };
    let database = catalog.database(&session.database)?.id;
    let found = catalog.resolve_collation(database, &session.search_path(), &collation.name);
    Some(!built_in(&collation.name) && found.is_some_and(|c| c.id == id))
}

/// The function of a user that is asked for.
fn own_function<'a>(catalog: &'a Catalog, args: &[Datum]) -> Option<&'a Arc<Function>> {
    sql_functions::function(catalog, oid_arg(args, 0)?)
}

/// Whether a call without a schema finds a function.
fn function_is_visible(session: &SessionState, catalog: &Catalog, f: &Function) -> bool {
    let database = catalog.database(&session.database).map_or(0, |d| d.id);
    let found = catalog.resolve_functions(database, &session.search_path(), &f.name);
    found.iter().any(|known| known.id == f.id)
}

/// The catalog that a comment is looked for in, by the name that the caller gives.
fn class_arg(args: &[Datum]) -> Option<u32> {
    match args.get(1) {
        Some(Datum::Text(name)) => Some(braid_scalar::system_oid(name).unwrap_or(0)),
        _ => None,
    }
}

fn serial_sequence(session: &SessionState, catalog: &Catalog, args: &[Datum]) -> Option<String> {
    let (Datum::Text(table), Datum::Text(column)) = (args.first()?, args.get(1)?) else {
        return None;
    };
    let oid = session.relation_oid(table).ok()??;
    let table = catalog.table(id_of_oid(oid)?)?;
    let sequence = table.column_named(column)?.sequence?;
    let (schema, name) = catalog.qualified_name(sequence)?;
    Some(format!("{}.{}", quote_ident(&schema), quote_ident(&name)))
}

/// What `pg_get_functiondef` and its relatives tell of a function.
fn function_text(
    session: &SessionState,
    catalog: &Catalog,
    name: &str,
    args: &[Datum],
) -> Option<String> {
    let own = own_function(catalog, args);
    let builtin = || oid_arg(args, 0);
    match (name, own) {
        ("pg_get_functiondef", own) => own.map(|f| sql_functions::definition(session, catalog, f)),
        ("pg_get_function_sqlbody", own) => own.and_then(|f| sql_functions::sql_body(f)),
        ("pg_get_function_result", Some(f)) => Some(sql_functions::result(session, f)),
        ("pg_get_function_result", None) => builtin().and_then(names::result_of),
        (_, Some(f)) => {
            let with_defaults = name == "pg_get_function_arguments";
            Some(sql_functions::arguments(session, f, with_defaults))
        }
        (_, None) => builtin().and_then(names::arguments_of),
    }
}

/// What `pg_get_viewdef` tells of a view, by its oid or its name.
///
/// # Errors
/// 42P01 for a name that nothing has.
fn view_text(
    session: &SessionState,
    catalog: &Catalog,
    args: &[Datum],
) -> SqlResult<Option<String>> {
    let oid = match args.first() {
        Some(Datum::Text(name)) => match session.relation_oid(name)? {
            None => {
                let text = format!("relation \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, text));
            }
            found => found,
        },
        _ => oid_arg(args, 0),
    };
    // With a width it is for people, too.
    let for_people = matches!(args.get(1), Some(Datum::Bool(true) | Datum::Int4(_)));
    let view = oid.and_then(id_of_oid);
    Ok(view.and_then(|id| qualified::view_text(session, catalog, id, for_people)))
}

/// Which columns of a relation can be written to; `None` if none of its rows can.
fn writable_columns(catalog: &Catalog, args: &[Datum]) -> Option<Vec<bool>> {
    match catalog.relation_by_id(id_of_oid(oid_arg(args, 0)?)?)? {
        Relation::View(view) => braid_sql::views::may_write(catalog, &view),
        Relation::Table(t) if t.materialized().is_some() => None,
        Relation::Table(t) | Relation::Partition(t) => {
            Some(t.visible_columns().map(|_| true).collect())
        }
        _ => None,
    }
}

/// `pg_relation_is_updatable` and `pg_column_is_updatable`.
fn updatable(name: &str, catalog: &Catalog, args: &[Datum]) -> Datum {
    let columns = writable_columns(catalog, args);
    if name == "pg_relation_is_updatable" {
        return Datum::Int4(if columns.is_some() { 4 | 8 | 16 } else { 0 });
    }
    let at = match args.get(1) {
        Some(Datum::Int2(number)) => usize::try_from(number - 1).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    Datum::Bool(columns.is_some_and(|all| all.get(at).copied().unwrap_or(false)))
}

/// `pg_index_column_has_property` and `pg_index_has_property`; `None` is NULL: no such index,
/// column or property.
fn index_property(catalog: &Catalog, args: &[Datum]) -> Option<bool> {
    let (table, index) = index_arg(catalog, args)?;
    let is_read = index.unread.is_none();
    match args {
        [_, Datum::Text(name)] => match name.to_lowercase().as_str() {
            "bitmap_scan" => Some(true),
            "clusterable" | "index_scan" | "backward_scan" => Some(is_read),
            _ => None,
        },
        [_, Datum::Int4(number), Datum::Text(name)] => {
            let at = usize::try_from(*number).ok()?.checked_sub(1)?;
            let name = name.to_lowercase();
            let Some(key) = index.columns.get(at) else {
                table.column(*index.include.get(at - index.columns.len())?)?;
                return match name.as_str() {
                    "orderable" | "distance_orderable" => Some(false),
                    "returnable" => Some(is_read),
                    _ => None,
                };
            };
            match name.as_str() {
                "asc" => Some(is_read && !key.desc),
                "desc" => Some(is_read && key.desc),
                "nulls_first" => Some(is_read && key.nulls_first),
                "nulls_last" => Some(is_read && !key.nulls_first),
                "orderable" | "returnable" | "search_array" | "search_nulls" => Some(is_read),
                "distance_orderable" => Some(false),
                _ => None,
            }
        }
        _ => None,
    }
}

/// `pg_indexam_has_property`, of the one access method whose indexes are read.
fn method_property(args: &[Datum]) -> Option<bool> {
    let [Datum::Oid(BTREE), Datum::Text(name)] = args else { return None };
    match name.to_lowercase().as_str() {
        "can_order" | "can_unique" | "can_multi_col" | "can_include" => Some(true),
        // No constraint EXCLUDE is taken.
        "can_exclude" => Some(false),
        _ => None,
    }
}

/// `pg_sequence_last_value`.
fn last_value(
    session: &SessionState,
    catalog: &Catalog,
    oid: Option<u32>,
) -> SqlResult<Option<Datum>> {
    let Some(oid) = oid else { return Ok(None) };
    match id_of_oid(oid).and_then(|id| catalog.relation_by_id(id)) {
        Some(Relation::Sequence(s)) => {
            let (last, called) = session.db().sequence_position(&s)?;
            Ok(called.then_some(Datum::Int8(last)))
        }
        _ => {
            let name = session.relation_name(oid).unwrap_or_else(|| oid.to_string());
            let text = format!("\"{name}\" is not a sequence");
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text))
        }
    }
}

/// `pg_sequence_parameters`: start, least, most, step, whether it begins again, cache, type.
fn sequence_parameters(
    session: &SessionState,
    catalog: &Catalog,
    oid: Option<u32>,
) -> SqlResult<Option<Datum>> {
    let Some(oid) = oid else { return Ok(None) };
    let Some(Relation::Sequence(s)) = id_of_oid(oid).and_then(|id| catalog.relation_by_id(id))
    else {
        let name = session.relation_name(oid).unwrap_or_else(|| oid.to_string());
        let text = format!("\"{name}\" is not a sequence");
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
    };
    let ty = i64::from(s.ty.oid());
    let all = [s.start, s.min, s.max, s.increment, i64::from(s.cycle), s.cache, ty];
    let items = all.into_iter().map(Datum::Int8).collect();
    Ok(Some(Datum::Array(ArrayValue::list(SqlType::Int8, items).into())))
}

/// Functions over the catalog that other files have.
fn function_elsewhere(
    session: &SessionState,
    catalog: &Catalog,
    name: &str,
    args: &[Datum],
) -> SqlResult<Option<Datum>> {
    match name {
        "pg_export_snapshot" => return Ok(Some(Datum::text(session.exported_view()?))),
        "pg_sequence_parameters" => {
            return sequence_parameters(session, catalog, oid_arg(args, 0));
        }
        "pg_sequence_last_value" => return last_value(session, catalog, oid_arg(args, 0)),
        "pg_describe_object" => {
            let described = oid_arg(args, 1).and_then(|oid| {
                if let Some(of_system) = system_relation(oid) {
                    let kind = if of_system.is_view { "view" } else { "table" };
                    return Some(format!("{kind} {}", of_system.shown()));
                }
                let kind = catalog.relation_by_id(id_of_oid(oid)?)?.kind();
                Some(format!("{kind} {}", session.relation_name(oid)?))
            });
            return Ok(described.map(Datum::text));
        }
        _ => {}
    }
    if let Some(found) = partitions::function(catalog, name, oid_arg(args, 0))? {
        return Ok(Some(found));
    }
    if let Some(found) = activity::function(session, name, args) {
        return Ok(Some(found));
    }
    if name.ends_with("_temp_schema") {
        return Ok(temporary_schema(session, catalog, args));
    }
    match sizes::function(session, catalog, name, args)? {
        Some(found) => Ok(Some(found)),
        None => super::privileges::function(session, name, args),
    }
}

/// The schema of the session's temporary tables; of one that is given, whether it is another's.
fn temporary_schema(session: &SessionState, catalog: &Catalog, args: &[Datum]) -> Option<Datum> {
    let (own, database) = (session.temporary_schema(), catalog.database(&session.database));
    if args.is_empty() {
        let own = database.and_then(|d| catalog.schema(d.id, &own));
        return Some(Datum::Oid(own.map_or(0, |own| oid_of(own.id))));
    }
    let schema = id_of_oid(oid_arg(args, 0)?).and_then(|id| catalog.schema_by_id(id));
    let name = schema.map_or("", |schema| &schema.name);
    Some(Datum::Bool(name.starts_with("pg_temp_") && name != own))
}

/// Functions over the catalog; `None` leaves the answer to the function's default.
///
/// # Errors
/// 3F000 for a schema that is not there.
pub fn catalog_function(
    session: &SessionState,
    name: &str,
    args: &[Datum],
) -> SqlResult<Option<Datum>> {
    let catalog = session.catalog();
    let database = catalog.database(&session.database).map_or(0, |d| d.id);
    let as_text = |t: Option<String>| t.map(Datum::text);
    let with_types =
        |t: Option<String>| t.map(|t| Datum::text(qualified::with_types(session, &catalog, t)));
    Ok(match name {
        "pg_get_expr" => match args.first() {
            Some(Datum::Text(text)) => {
                let how = shown_how(args);
                let shown = qualified::expression(session, &catalog, text, oid_arg(args, 1), how);
                with_types(Some(shown))
            }
            other => other.cloned(),
        },
        "pg_function_is_visible" => Some(Datum::Bool(match own_function(&catalog, args) {
            Some(f) => function_is_visible(session, &catalog, f),
            None => true,
        })),
        "pg_collation_is_visible" => {
            let oid = oid_arg(args, 0);
            oid.and_then(|oid| collation_is_visible(session, &catalog, oid)).map(Datum::Bool)
        }
        _ if name.starts_with("pg_get_function") => {
            as_text(function_text(session, &catalog, name, args))
        }
        "regin" => names::oid_of_name(session, &catalog, args)?,
        "regout" => names::name_of_oid(session, &catalog, args),
        "pg_get_indexdef" => with_types(definition_of(session, &catalog, args)),
        "pg_index_has_property" | "pg_index_column_has_property" => {
            index_property(&catalog, args).map(Datum::Bool)
        }
        "pg_indexam_has_property" => method_property(args).map(Datum::Bool),
        "pg_get_constraintdef" => with_types(oid_arg(args, 0).and_then(|oid| {
            super::pg_tables::constraint_text(session, &catalog, (database, oid), shown_how(args))
        })),
        "pg_get_viewdef" => with_types(view_text(session, &catalog, args)?),
        "pg_relation_is_updatable" | "pg_column_is_updatable" => {
            Some(updatable(name, &catalog, args))
        }
        "pg_get_serial_sequence" => as_text(serial_sequence(session, &catalog, args)),
        "pg_get_userbyid" => oid_arg(args, 0).map(|oid| {
            let name = catalog.role_name(oid, &session.user);
            Datum::text(name.unwrap_or_else(|| format!("unknown (OID={oid})")))
        }),
        "pg_table_is_visible" => Some(Datum::Bool(
            oid_arg(args, 0).is_some_and(|oid| visible(session, &catalog, oid).unwrap_or(false)),
        )),
        "pg_type_is_visible" => oid_arg(args, 0)
            .and_then(|oid| type_is_visible(session, &catalog, oid))
            .map(Datum::Bool)
            .or(Some(Datum::Null)),
        "obj_description" | "shobj_description" => as_text(
            oid_arg(args, 0).and_then(|oid| comment(&catalog, database, oid, class_arg(args), 0)),
        ),
        "col_description" => {
            let column = match args.get(1) {
                Some(Datum::Int4(n)) => *n,
                _ => 0,
            };
            as_text(oid_arg(args, 0).and_then(|oid| comment(&catalog, database, oid, None, column)))
        }
        _ => return function_elsewhere(session, &catalog, name, args),
    })
}
