//! Functions about the session, sequences and the system catalog.

use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};

use super::{bool_of, i64_of, text_of};
use crate::EvalContext;
use crate::builtin::{Eval, Table};
use crate::operators::array;

fn oid(value: &Datum) -> u32 {
    match value {
        Datum::Oid(v) => *v,
        other => i64_of(other) as u32,
    }
}

fn session(t: &mut Table) {
    let user: Eval = |_, c| Ok(Datum::text(c.session.current_user()));
    for name in ["current_user() name", "session_user() name", "user() name", "current_role() name"]
    {
        t.add(name, user).stable();
    }
    let database: Eval = |_, c| Ok(Datum::text(c.session.current_database()));
    t.add("current_database() name", database).stable();
    t.add("current_catalog() name", database).stable();
    t.add("current_schema() name", |_, c| {
        Ok(c.session.current_schemas(false).into_iter().next().map_or(Datum::Null, Datum::text))
    })
    .stable();
    t.add("current_schemas(bool) name[]", |a, c| {
        let names = c.session.current_schemas(bool_of(&a[0]));
        Ok(array(SqlType::Name, names.into_iter().map(Datum::text).collect()))
    })
    .stable();
    t.add("version() text", |_, _| {
        Ok(Datum::text(concat!(
            "PostgreSQL 15.0 (BraidDB ",
            env!("CARGO_PKG_VERSION"),
            ") compatible"
        )))
    })
    .stable();
    t.add("current_setting(text) text", |a, c| match c.session.setting(text_of(&a[0])) {
        Some(value) => Ok(Datum::text(value)),
        None => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{}\"", text_of(&a[0])),
        )),
    })
    .stable();
    t.add("current_setting(text, bool) text", |a, c| match c.session.setting(text_of(&a[0])) {
        Some(value) => Ok(Datum::text(value)),
        None if bool_of(&a[1]) => Ok(Datum::Null),
        None => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{}\"", text_of(&a[0])),
        )),
    })
    .stable();
    t.add("set_config(text, text, bool) text", |a, c| {
        Ok(Datum::text(c.session.set_setting(text_of(&a[0]), text_of(&a[1]), bool_of(&a[2]))?))
    })
    .volatile();
    t.add("pg_backend_pid() int4", |_, c| Ok(Datum::Int4(c.session.backend_pid()))).stable();
    t.add("pg_is_in_recovery() bool", |_, _| Ok(Datum::Bool(false))).stable();
    t.add("inet_server_addr() text", |_, _| Ok(Datum::Null)).stable();
    t.add("inet_server_port() int4", |_, _| Ok(Datum::Null)).stable();
    t.add("pg_sleep(float8) void", |_, _| Err(SqlError::unsupported("pg_sleep"))).volatile();
    let uuid: Eval = |_, c| {
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&c.session.random_u64().to_be_bytes());
        bytes[8..].copy_from_slice(&c.session.random_u64().to_be_bytes());
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Ok(Datum::Uuid(bytes))
    };
    t.add("gen_random_uuid() uuid", uuid).volatile();
    t.add("uuid_generate_v4() uuid", uuid).volatile();
}

fn sequences(t: &mut Table) {
    t.add("nextval(regclass) int8", |a, c| Ok(Datum::Int8(c.session.nextval(oid(&a[0]))?)))
        .volatile();
    t.add("currval(regclass) int8", |a, c| Ok(Datum::Int8(c.session.currval(oid(&a[0]))?)))
        .volatile();
    t.add("lastval() int8", |_, c| Ok(Datum::Int8(c.session.lastval()?))).volatile();
    t.add("setval(regclass, int8) int8", |a, c| {
        Ok(Datum::Int8(c.session.setval(oid(&a[0]), i64_of(&a[1]), true)?))
    })
    .volatile();
    t.add("setval(regclass, int8, bool) int8", |a, c| {
        Ok(Datum::Int8(c.session.setval(oid(&a[0]), i64_of(&a[1]), bool_of(&a[2]))?))
    })
    .volatile();
}

/// Asks the session's catalog; a function it does not know gives `otherwise`.
fn ask(name: &str, a: &[Datum], ctx: &EvalContext, otherwise: Datum) -> SqlResult<Datum> {
    Ok(ctx.session.catalog_function(name, a)?.unwrap_or(otherwise))
}

macro_rules! catalog {
    ($t:ident, $($name:literal, [$($args:literal),*], $ret:literal, $otherwise:expr;)*) => {
        $($(
            $t.add(concat!($name, "(", $args, ") ", $ret), |a, c| ask($name, a, c, $otherwise))
                .stable();
        )*)*
    };
}

fn catalog(t: &mut Table) {
    catalog! { t,
        "pg_get_expr", ["text, oid", "text, oid, bool"], "text", Datum::Null;
        "pg_get_indexdef", ["oid", "oid, int4, bool"], "text", Datum::Null;
        "pg_get_constraintdef", ["oid", "oid, bool"], "text", Datum::Null;
        "pg_get_viewdef", ["oid", "oid, bool"], "text", Datum::Null;
        "pg_get_triggerdef", ["oid", "oid, bool"], "text", Datum::Null;
        "pg_get_ruledef", ["oid", "oid, bool"], "text", Datum::Null;
        "pg_get_functiondef", ["oid"], "text", Datum::Null;
        "pg_get_function_result", ["oid"], "text", Datum::Null;
        "pg_get_function_arguments", ["oid"], "text", Datum::Null;
        "pg_get_function_identity_arguments", ["oid"], "text", Datum::Null;
        "pg_get_serial_sequence", ["text, text"], "text", Datum::Null;
        "pg_get_partkeydef", ["oid"], "text", Datum::Null;
        "pg_get_statisticsobjdef_columns", ["oid"], "text", Datum::Null;
        "pg_get_userbyid", ["oid"], "name", Datum::text("root");
        "pg_table_is_visible", ["oid"], "bool", Datum::Bool(true);
        "pg_type_is_visible", ["oid"], "bool", Datum::Bool(true);
        "pg_function_is_visible", ["oid"], "bool", Datum::Bool(true);
        "pg_operator_is_visible", ["oid"], "bool", Datum::Bool(true);
        "pg_collation_is_visible", ["oid"], "bool", Datum::Bool(true);
        "pg_opclass_is_visible", ["oid"], "bool", Datum::Bool(true);
        "pg_statistics_obj_is_visible", ["oid"], "bool", Datum::Bool(true);
        "pg_ts_config_is_visible", ["oid"], "bool", Datum::Bool(true);
        "obj_description", ["oid", "oid, name"], "text", Datum::Null;
        "col_description", ["oid, int4"], "text", Datum::Null;
        "shobj_description", ["oid, name"], "text", Datum::Null;
        "pg_relation_size", ["regclass", "regclass, text"], "int8", Datum::Int8(0);
        "pg_table_size", ["regclass"], "int8", Datum::Int8(0);
        "pg_indexes_size", ["regclass"], "int8", Datum::Int8(0);
        "pg_total_relation_size", ["regclass"], "int8", Datum::Int8(0);
        "pg_database_size", ["oid", "name"], "int8", Datum::Int8(0);
        "pg_relation_is_publishable", ["regclass"], "bool", Datum::Bool(false);
        "pg_tablespace_location", ["oid"], "text", Datum::text("");
        "pg_encoding_to_char", ["int4"], "name", Datum::text("UTF8");
        "pg_char_to_encoding", ["name"], "int4", Datum::Int4(6);
        "pg_stat_get_numscans", ["oid"], "int8", Datum::Int8(0);
        "txid_current", [""], "int8", Datum::Int8(1);
        "pg_postmaster_start_time", [""], "timestamptz", Datum::Null;
        "pg_conf_load_time", [""], "timestamptz", Datum::Null;
        "pg_my_temp_schema", [""], "oid", Datum::Oid(0);
        "to_regtype", ["text"], "regtype", Datum::Null;
    }
}

fn privileges(t: &mut Table) {
    let allowed: Eval = |_, _| Ok(Datum::Bool(true));
    for signature in [
        "has_table_privilege(oid, text) bool",
        "has_table_privilege(text, text) bool",
        "has_table_privilege(name, oid, text) bool",
        "has_table_privilege(name, text, text) bool",
        "has_column_privilege(oid, int2, text) bool",
        "has_any_column_privilege(oid, text) bool",
        "has_sequence_privilege(oid, text) bool",
        "has_sequence_privilege(text, text) bool",
        "has_schema_privilege(oid, text) bool",
        "has_schema_privilege(text, text) bool",
        "has_schema_privilege(name, text, text) bool",
        "has_database_privilege(oid, text) bool",
        "has_database_privilege(text, text) bool",
        "has_database_privilege(name, text, text) bool",
        "has_function_privilege(oid, text) bool",
        "has_type_privilege(oid, text) bool",
        "has_tablespace_privilege(oid, text) bool",
        "pg_has_role(name, text) bool",
        "pg_has_role(oid, text) bool",
        "pg_has_role(name, oid, text) bool",
        "row_security_active(oid) bool",
    ] {
        t.add(
            signature,
            if signature.starts_with("row_") { |_, _| Ok(Datum::Bool(false)) } else { allowed },
        )
        .stable();
    }
}

fn describing(t: &mut Table) {
    t.add("to_regclass(text) regclass", |a, c| {
        Ok(c.session.relation_oid(text_of(&a[0]))?.map_or(Datum::Null, Datum::Oid))
    })
    .stable();
    t.add("format_type(oid, int4) text", |a, _| {
        let Datum::Oid(oid) = &a[0] else { return Ok(Datum::Null) };
        let typmod = match &a[1] {
            Datum::Int4(m) => *m,
            _ => -1,
        };
        Ok(Datum::text(match SqlType::from_oid(*oid, typmod) {
            Some(SqlType::Char(_)) if typmod < 0 && !a[1].is_null() => "bpchar".to_string(),
            Some(ty) if typmod < 0 => ty.base_name(),
            Some(ty) => ty.name(),
            None if *oid == 0 => "-".to_string(),
            None => "???".to_string(),
        }))
    })
    .lax();
    t.add("pg_size_pretty(int8) text", |a, _| {
        let mut size = i64_of(&a[0]);
        for unit in ["bytes", "kB", "MB", "GB", "TB"] {
            if size.abs() < 10 * 1024 || unit == "TB" {
                return Ok(Datum::text(format!("{size} {unit}")));
            }
            size = (size + 512) / 1024;
        }
        Ok(Datum::Null)
    });
    t.add("pg_column_size(any) int4", |a, _| {
        let mut bytes = Vec::new();
        a[0].to_binary(&a[0].implied_type(), &mut bytes);
        Ok(Datum::Int4(bytes.len() as i32))
    });
    for signature in ["pg_advisory_lock(int8) void", "pg_advisory_xact_lock(int8) void"] {
        t.add(signature, |_, _| {
            Err(SqlError::unsupported("an advisory lock").with_hint("Lock a row instead."))
        })
        .volatile();
    }
    t.add("pg_cancel_backend(int4) bool", |a, c| signal(&a[0], false, c)).volatile();
    t.add("pg_terminate_backend(int4) bool", |a, c| signal(&a[0], true, c)).volatile();
}

/// Stops the statement of another session, or the session.
fn signal(pid: &Datum, terminate: bool, c: &EvalContext) -> SqlResult<Datum> {
    Ok(match pid {
        Datum::Int4(pid) => Datum::Bool(c.session.signal_backend(*pid, terminate)),
        _ => Datum::Null,
    })
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    session(t);
    sequences(t);
    catalog(t);
    privileges(t);
    describing(t);
}
