//! Functions of users as the catalogs show them: `pg_proc`, `information_schema.routines` and
//! `parameters`, and the texts that `pg_get_functiondef` and its like give.

use std::fmt::Write;
use std::sync::Arc;

use braid_catalog::{Catalog, Function, Mode, Parameter, Stability, id_of_oid, oid_of};
use braid_scalar::SessionFunctions;
use braid_sql::session::SessionState;
use braid_types::{ArrayValue, Datum, SqlResult, SqlType, quote_ident};

use super::defaults::parameter_default;
use super::info_schema::{data_type, udt_schema};
use super::roles::{acl, owner};
use super::table::{SystemTable, View, flag, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// Oid of the language `sql`.
pub(super) const SQL: u32 = 14;

/// A function by its oid.
pub(super) fn function(catalog: &Catalog, oid: u32) -> Option<&Arc<Function>> {
    catalog.function(id_of_oid(oid)?)
}

/// Functions of the session's database.
pub(super) fn all<'a>(v: &View<'a>) -> impl Iterator<Item = (&'a str, &'a Function)> {
    let (catalog, database) = (v.catalog, v.database_id);
    catalog.functions().filter_map(move |f| {
        let schema = catalog.schema_by_id(f.schema).filter(|s| s.database == database)?;
        Some((schema.name.as_str(), &**f))
    })
}

fn list(element: SqlType, items: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(ArrayValue::list(element, items)))
}

/// Rows of `pg_proc`.
pub(super) fn proc_rows(v: &View<'_>) -> Vec<Vec<Datum>> {
    all(v).map(|(_, f)| proc_row(v, f)).collect()
}

fn proc_row(v: &View<'_>, f: &Function) -> Vec<Datum> {
    let oids = |p: &Parameter| Datum::Oid(p.ty.oid());
    let inputs: Vec<Datum> = f.inputs().map(oids).collect();
    let plain = f.params.iter().all(|p| p.mode == Mode::In);
    let of_all = |one: &dyn Fn(&Parameter) -> Datum| f.params.iter().map(one).collect();
    let all_types = if plain { Datum::Null } else { list(SqlType::Oid, of_all(&oids)) };
    let letter = |p: &Parameter| text(p.mode.letter());
    let modes = if plain { Datum::Null } else { list(SqlType::CharByte, of_all(&letter)) };
    let name = |p: &Parameter| text(p.name.as_deref().unwrap_or_default());
    let names = match f.params.iter().any(|p| p.name.is_some()) {
        true => list(SqlType::Text, of_all(&name)),
        false => Datum::Null,
    };
    let defaults: Vec<String> = f.params.iter().filter_map(default_of).collect();
    let variadic = f.params.iter().find(|p| p.mode == Mode::Variadic);
    let variadic = variadic.and_then(|p| p.ty.element()).map_or(0, SqlType::oid);
    let source = if f.returned { "" } else { f.body.as_str() };
    vec![
        Datum::Oid(oid_of(f.id)),
        text(f.name.as_str()),
        Datum::Oid(oid_of(f.schema)),
        owner(v, f.id),
        Datum::Oid(SQL),
        number(&f.remarks.cost),
        number(&f.remarks.rows),
        Datum::Oid(variadic),
        Datum::Oid(0),
        text("f"),
        flag(f.remarks.definer),
        flag(f.remarks.leakproof),
        flag(f.strict),
        flag(f.set),
        text(match f.stability {
            Stability::Immutable => "i",
            Stability::Stable => "s",
            Stability::Volatile => "v",
        }),
        text(f.remarks.parallel.to_string()),
        Datum::Int2(inputs.len() as i16),
        Datum::Int2(defaults.len() as i16),
        Datum::Oid(f.returns.oid()),
        Datum::Array(Arc::new(ArrayValue::vector(SqlType::Oid, inputs))),
        all_types,
        modes,
        names,
        if defaults.is_empty() { Datum::Null } else { text(defaults.join(", ")) },
        Datum::Null,
        text(source),
        Datum::Null,
        body_of_return(f).map_or(Datum::Null, text),
        Datum::Null,
        acl(v, f.id),
    ]
}

fn number(text: &str) -> Datum {
    text.parse().map_or(Datum::Null, Datum::Float4)
}

fn body_of_return(f: &Function) -> Option<String> {
    f.returned.then(|| format!("RETURN {}", f.body))
}

/// A type by the name that the session's search path finds it by.
pub(super) fn type_text(session: &SessionState, ty: &SqlType) -> String {
    session.type_name(ty.oid()).unwrap_or_else(|| ty.base_name())
}

/// A parameter's default as PostgreSQL prints it.
fn default_of(p: &Parameter) -> Option<String> {
    Some(parameter_default(p.default.as_ref()?, &p.ty))
}

/// The parameters as CREATE FUNCTION lists them.
pub(super) fn arguments(s: &SessionState, f: &Function, with_defaults: bool) -> String {
    let shown = f.params.iter().filter(|p| p.mode != Mode::Table);
    let all: Vec<String> = shown.map(|p| parameter(s, p, with_defaults)).collect();
    all.join(", ")
}

fn parameter(s: &SessionState, p: &Parameter, with_default: bool) -> String {
    let mut out = match p.mode {
        Mode::In | Mode::Table => String::new(),
        Mode::Out => "OUT ".to_string(),
        Mode::InOut => "INOUT ".to_string(),
        Mode::Variadic => "VARIADIC ".to_string(),
    };
    if let Some(name) = &p.name {
        let _ = write!(out, "{} ", quote_ident(name));
    }
    out.push_str(&type_text(s, &p.ty));
    if let Some(default) = default_of(p).filter(|_| with_default) {
        let _ = write!(out, " DEFAULT {default}");
    }
    out
}

/// What RETURNS says.
pub(super) fn result(s: &SessionState, f: &Function) -> String {
    let columns = f.params.iter().filter(|p| p.mode == Mode::Table);
    let columns: Vec<String> = columns.map(|p| parameter(s, p, false)).collect();
    match (columns.is_empty(), f.set) {
        (false, _) => format!("TABLE({})", columns.join(", ")),
        (true, true) => format!("SETOF {}", type_text(s, &f.returns)),
        (true, false) => type_text(s, &f.returns),
    }
}

/// What stands behind AS or RETURN, if it stands behind RETURN.
pub(super) fn sql_body(f: &Function) -> Option<String> {
    body_of_return(f)
}

/// `CREATE OR REPLACE FUNCTION`.
pub(super) fn definition(s: &SessionState, catalog: &Catalog, f: &Function) -> String {
    let schema = catalog.schema_by_id(f.schema).map_or("", |s| &s.name);
    let mut out = format!(
        "CREATE OR REPLACE FUNCTION {}.{}({})\n RETURNS {}\n LANGUAGE sql\n",
        quote_ident(schema),
        quote_ident(&f.name),
        arguments(s, f, true),
        result(s, f)
    );
    let clauses = clauses(f);
    if !clauses.is_empty() {
        let _ = writeln!(out, " {}", clauses.join(" "));
    }
    match body_of_return(f) {
        Some(body) => out.push_str(&body),
        None => {
            let mut quote = "function".to_string();
            while f.body.contains(&format!("${quote}$")) {
                quote.push('x');
            }
            let _ = write!(out, "AS ${quote}${}${quote}$", f.body);
        }
    }
    out.push('\n');
    out
}

fn clauses(f: &Function) -> Vec<String> {
    let mut out = Vec::new();
    match f.stability {
        Stability::Immutable => out.push("IMMUTABLE".to_string()),
        Stability::Stable => out.push("STABLE".to_string()),
        Stability::Volatile => {}
    }
    match f.remarks.parallel {
        's' => out.push("PARALLEL SAFE".to_string()),
        'r' => out.push("PARALLEL RESTRICTED".to_string()),
        _ => {}
    }
    let flags = [
        (f.strict, "STRICT"),
        (f.remarks.definer, "SECURITY DEFINER"),
        (f.remarks.leakproof, "LEAKPROOF"),
    ];
    out.extend(flags.iter().filter(|(yes, _)| *yes).map(|(_, word)| word.to_string()));
    if f.remarks.cost != "100" {
        out.push(format!("COST {}", f.remarks.cost));
    }
    if !matches!(&*f.remarks.rows, "0" | "1000") {
        out.push(format!("ROWS {}", f.remarks.rows));
    }
    out
}

/// A table of `information_schema` about functions.
pub(super) fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (_, super::table::Rows) = match name {
        "routines" => (ROUTINES, routines),
        "parameters" => (PARAMETERS, parameters),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

const ROUTINES: &str = "specific_catalog name, specific_schema name, specific_name \
     name, routine_catalog name, routine_schema name, routine_name name, routine_type text, \
     module_catalog name, module_schema name, module_name name, udt_catalog name, \
     udt_schema name, udt_name name, data_type text, character_maximum_length int4, \
     character_octet_length int4, character_set_catalog name, character_set_schema name, \
     character_set_name name, collation_catalog name, collation_schema name, collation_name \
     name, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, \
     datetime_precision int4, interval_type text, interval_precision int4, type_udt_catalog \
     name, type_udt_schema name, type_udt_name name, scope_catalog name, scope_schema name, \
     scope_name name, maximum_cardinality int4, dtd_identifier name, routine_body text, \
     routine_definition text, external_name text, external_language text, parameter_style \
     text, is_deterministic yes_or_no, sql_data_access text, is_null_call yes_or_no, \
     sql_path text, schema_level_routine yes_or_no, max_dynamic_result_sets int4, \
     is_user_defined_cast yes_or_no, \
     is_implicitly_invocable yes_or_no, security_type text, to_sql_specific_catalog name, \
     to_sql_specific_schema name, to_sql_specific_name name, as_locator yes_or_no, created \
     timestamptz, last_altered timestamptz, new_savepoint_level yes_or_no, is_udt_dependent \
     yes_or_no, result_cast_from_data_type text, result_cast_as_locator yes_or_no, \
     result_cast_char_max_length int4, result_cast_char_octet_length int4, \
     result_cast_char_set_catalog name, result_cast_char_set_schema name, \
     result_cast_char_set_name name, result_cast_collation_catalog name, \
     result_cast_collation_schema name, result_cast_collation_name name, \
     result_cast_numeric_precision int4, result_cast_numeric_precision_radix int4, \
     result_cast_numeric_scale int4, result_cast_datetime_precision int4, \
     result_cast_interval_type text, result_cast_interval_precision int4, \
     result_cast_type_udt_catalog name, result_cast_type_udt_schema name, \
     result_cast_type_udt_name name, result_cast_scope_catalog name, \
     result_cast_scope_schema name, result_cast_scope_name name, \
     result_cast_maximum_cardinality int4, result_cast_dtd_identifier name";

const PARAMETERS: &str = "specific_catalog name, specific_schema name, specific_name name, \
     ordinal_position int4, parameter_mode text, is_result yes_or_no, as_locator yes_or_no, \
     parameter_name name, data_type text, character_maximum_length int4, \
     character_octet_length int4, character_set_catalog name, character_set_schema name, \
     character_set_name name, collation_catalog name, collation_schema name, \
     collation_name name, numeric_precision int4, numeric_precision_radix int4, \
     numeric_scale int4, datetime_precision int4, interval_type text, interval_precision int4, \
     udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, \
     scope_name name, maximum_cardinality int4, dtd_identifier name, parameter_default text";

/// `f_16500`, unique among overloads.
pub(super) fn specific_name(f: &Function) -> Datum {
    text(format!("{}_{}", f.name, oid_of(f.id)))
}

fn yes_no(yes: bool) -> Datum {
    text(if yes { "YES" } else { "NO" })
}

fn routines(v: &View<'_>) -> Made {
    let row = |(schema, f): (&str, &Function)| {
        let mut row = vec![
            text(v.database),
            text(schema),
            specific_name(f),
            text(v.database),
            text(schema),
            text(f.name.as_str()),
            text("FUNCTION"),
        ];
        row.resize(13, Datum::Null);
        row.push(data_type(&f.returns));
        row.resize(28, Datum::Null);
        row.extend([text(v.database), udt_schema(&f.returns), text(f.returns.internal_name())]);
        row.resize(35, Datum::Null);
        row.extend([
            text("0"),
            text("SQL"),
            if f.returned { text("") } else { text(f.body.as_str()) },
            Datum::Null,
            text("SQL"),
            text("GENERAL"),
            yes_no(f.stability == Stability::Immutable),
            text("MODIFIES"),
            yes_no(f.strict),
            Datum::Null,
            text("YES"),
            Datum::Int4(0),
            Datum::Null,
            Datum::Null,
            text(if f.remarks.definer { "DEFINER" } else { "INVOKER" }),
        ]);
        row.resize(53, Datum::Null);
        row.push(text("NO"));
        row.resize(57, Datum::Null);
        row.push(text("NO"));
        row
    };
    Ok(all(v).map(row).collect())
}

fn parameters(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (schema, f) in all(v) {
        for (at, p) in f.params.iter().enumerate() {
            let mut row = vec![
                text(v.database),
                text(schema),
                specific_name(f),
                Datum::Int4(at as i32 + 1),
                text(match p.mode {
                    Mode::In | Mode::Variadic => "IN",
                    Mode::Out | Mode::Table => "OUT",
                    Mode::InOut => "INOUT",
                }),
                text("NO"),
                text("NO"),
                p.name.as_deref().map_or(Datum::Null, text),
                data_type(&p.ty),
            ];
            // Modifiers are no part of a function's types.
            row.resize(23, Datum::Null);
            row.extend([text(v.database), udt_schema(&p.ty), text(p.ty.internal_name())]);
            row.resize(30, Datum::Null);
            row.push(text((at + 1).to_string()));
            row.push(default_of(p).map_or(Datum::Null, text));
            rows.push(row);
        }
    }
    Ok(rows)
}
