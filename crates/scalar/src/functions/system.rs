//! Functions about the session, sequences and the system catalog.

use braid_types::numeric::{self, BigDecimal};
use braid_types::oid::{pseudo_type_name, pseudo_type_oid};
use braid_types::{
    Datum, SqlError, SqlResult, SqlState, SqlType, quote_ident, system_type_name, system_type_oid,
};

use super::{bool_of, f64_of, i64_of, interval_of, text_of};
use crate::array_operators::array;
use crate::registry::{Eval, Table};
use crate::type_name::written_type;
use crate::{EvalContext, system_oid};

/// Oid of the one user.
const ROOT: u32 = 10;

fn oid(value: &Datum) -> u32 {
    match value {
        Datum::Oid(v) => *v,
        other => i64_of(other) as u32,
    }
}

/// What clients take for the server's version.
const VERSION: &str =
    concat!("PostgreSQL 15.0 (BraidDB ", env!("CARGO_PKG_VERSION"), ") compatible");

fn session(t: &mut Table) {
    let user: Eval = |_, c| Ok(Datum::text(c.session.current_user()));
    for name in [
        "current_user() name -- name of the user",
        "user() name -- name of the user",
        "current_role() name -- name of the user",
    ] {
        t.add(name, user).stable();
    }
    t.add("session_user() name -- name of the user that is connected", |_, c| {
        Ok(Datum::text(c.session.session_user()))
    })
    .stable();
    let database: Eval = |_, c| Ok(Datum::text(c.session.current_database()));
    t.add("current_database() name -- name of the database", database).stable();
    t.add("current_catalog() name -- name of the database", database).stable();
    t.add("current_schema() name -- where new tables go", |_, c| {
        Ok(c.session.current_schemas(false).into_iter().next().map_or(Datum::Null, Datum::text))
    })
    .stable();
    t.add("current_schemas(bool) name[] -- schemas that are searched", |a, c| {
        let names = c.session.current_schemas(bool_of(&a[0]));
        Ok(array(SqlType::Name, names.into_iter().map(Datum::text).collect()))
    })
    .stable();
    t.add("version() text -- name and version of the server", |_, _| Ok(Datum::text(VERSION)))
        .stable();
    t.add("current_setting(text) text -- value of a setting", |a, c| {
        match c.session.setting(text_of(&a[0])) {
            Some(value) => Ok(Datum::text(value)),
            None => Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("unrecognized configuration parameter \"{}\"", text_of(&a[0])),
            )),
        }
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
    t.add("set_config(text, text, bool) text -- changes a setting", |a, c| {
        Ok(Datum::text(c.session.set_setting(text_of(&a[0]), text_of(&a[1]), bool_of(&a[2]))?))
    })
    .volatile();
    t.add(
        "braid_cursor_key(anyelement, text, int4, int4) anyelement -- a column of the key of the \
         row that a cursor stands on: what WHERE CURRENT OF is made of",
        |a, c| {
            let at = |value: &Datum| u32::try_from(i64_of(value)).unwrap_or(u32::MAX);
            c.session.cursor_key(text_of(&a[1]), at(&a[2]), at(&a[3]) as usize)
        },
    )
    .lax()
    .stable();
    t.add("pg_backend_pid() int4 -- number of the session", |_, c| {
        Ok(Datum::Int4(c.session.backend_pid()))
    })
    .stable();
    t.add("pg_is_in_recovery() bool -- false", |_, _| Ok(Datum::Bool(false))).stable();
    t.add("inet_server_addr() text -- NULL: connections are not told apart by address", |_, _| {
        Ok(Datum::Null)
    })
    .stable();
    t.add("inet_server_port() int4 -- NULL: connections are not told apart by port", |_, _| {
        Ok(Datum::Null)
    })
    .stable();
    let uuid: Eval = |_, c| {
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&c.session.random_u64().to_be_bytes());
        bytes[8..].copy_from_slice(&c.session.random_u64().to_be_bytes());
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Ok(Datum::Uuid(bytes))
    };
    t.add("gen_random_uuid() uuid -- a random UUID", uuid).volatile();
    t.add("uuid_generate_v4() uuid -- a random UUID", uuid).volatile();
    t.add("generate_uuid() uuid -- a random UUID, as Spanner calls it", uuid).volatile();
}

/// Waiting, and what old clients ask for.
fn waiting(t: &mut Table) {
    t.add("pg_sleep(float8) void -- waits for so many seconds", |a, c| {
        c.session.sleep((f64_of(&a[0]).max(0.0) * 1e6) as i64)?;
        Ok(Datum::text(""))
    })
    .volatile();
    t.add("pg_sleep_for(interval) void -- waits for so long", |a, c| {
        c.session.sleep(i64::try_from(interval_of(&a[0]).length()).unwrap_or(i64::MAX))?;
        Ok(Datum::text(""))
    })
    .volatile();
    t.add("pg_sleep_until(timestamptz) void -- waits until then", |a, c| {
        let Datum::TimestampTz(until) = a[0] else { return Ok(Datum::Null) };
        c.session.sleep(until.saturating_sub(c.session.clock_micros()).max(0))?;
        Ok(Datum::text(""))
    })
    .volatile();
    t.add("getpgusername() name -- the user, as old clients ask for it", |_, c| {
        Ok(Datum::text(c.session.current_user()))
    })
    .stable();
    t.add(
        "nameconcatoid(name, oid) name -- a name and a number, as they make one of a function",
        |a, _| {
            let behind = format!("_{}", oid(&a[1]));
            let mut name = text_of(&a[0]).to_string();
            while name.len() + behind.len() > 63 {
                name.pop();
            }
            Ok(Datum::text(name + &behind))
        },
    );
}

/// What is asked of servers, and has an answer that does not change: they have no WAL that others
/// could follow, and no transactions in a row.
fn of_servers(t: &mut Table) {
    for entry in [
        "pg_current_wal_lsn() pg_lsn -- NULL: no replica follows a position",
        "pg_current_wal_insert_lsn() pg_lsn -- NULL, as `pg_current_wal_lsn`",
        "pg_current_wal_flush_lsn() pg_lsn -- NULL, as `pg_current_wal_lsn`",
        "pg_last_wal_receive_lsn() pg_lsn -- NULL: nothing is received",
        "pg_last_wal_replay_lsn() pg_lsn -- NULL: nothing is replayed",
        "pg_last_xact_replay_timestamp() timestamptz -- NULL: nothing is replayed",
        "pg_current_logfile() text -- NULL: the node writes to its standard error",
        "pg_current_logfile(text) text",
        "pg_relation_filenode(regclass) oid -- NULL: tables have no files of their own",
        "pg_column_compression(any) text -- NULL: values are compressed together",
        "pg_collation_actual_version(oid) text -- NULL: collations keep their version",
        "pg_get_replica_identity_index(regclass) regclass -- NULL: nobody follows changes",
    ] {
        t.add(entry, |_, _| Ok(Datum::Null)).stable();
    }
    t.add("pg_trigger_depth() int4 -- 0: there are no triggers", |_, _| Ok(Datum::Int4(0)))
        .stable();
    t.add("pg_reload_conf() bool -- true: a node reads its options when it starts", |_, _| {
        Ok(Datum::Bool(true))
    })
    .volatile();
    t.add("pg_safe_snapshot_blocking_pids(int4) int4[] -- none: nobody waits for that", |_, _| {
        Ok(array(SqlType::Int4, Vec::new()))
    })
    .volatile();
    t.add("pg_jit_available() bool -- false", |_, _| Ok(Datum::Bool(false))).stable();
    t.add("pg_stat_clear_snapshot() void -- nothing: each look is at another moment", |_, _| {
        Ok(Datum::text(""))
    })
    .volatile();
    for entry in [
        "pg_is_wal_replay_paused() bool -- fails: the server does not recover",
        "pg_get_wal_replay_pause_state() text -- fails: the server does not recover",
    ] {
        t.add(entry, |_, _| {
            let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            let hint = "Recovery control functions can only be executed during recovery.";
            Err(SqlError::new(state, "recovery is not in progress").with_hint(hint))
        })
        .volatile();
    }
    // Rows of catalogs are of the transaction that looks at them.
    t.add("age(oid) int4 -- how many transactions ago one was: 0", |_, _| Ok(Datum::Int4(0)))
        .stable();
    t.add("mxid_age(oid) int4 -- how many groups of lockers ago one was: 0", |_, _| {
        Ok(Datum::Int4(0))
    })
    .stable();
}

fn statistics(t: &mut Table) {
    t.add("pg_stat_statements_reset() void -- forgets the statistics of statements", |_, c| {
        c.session.reset_statements(None, None);
        Ok(Datum::text(""))
    })
    .volatile();
    // A zero means any, and there is one user.
    t.add(
        "pg_stat_statements_reset(oid, oid, int8) void -- of a user, a database, a queryid",
        |a, c| {
            let (user, database, id) = (oid(&a[0]), oid(&a[1]), i64_of(&a[2]));
            if user == 0 || user == ROOT {
                let database = Some(database).filter(|oid| *oid != 0);
                c.session.reset_statements(database, Some(id).filter(|id| *id != 0));
            }
            Ok(Datum::text(""))
        },
    )
    .volatile();
}

fn sequences(t: &mut Table) {
    t.add("nextval(regclass) int8 -- the next value of a sequence", |a, c| {
        Ok(Datum::Int8(c.session.nextval(oid(&a[0]))?))
    })
    .volatile();
    t.add(
        "currval(regclass) int8 -- the last value that this session took from a sequence",
        |a, c| Ok(Datum::Int8(c.session.currval(oid(&a[0]))?)),
    )
    .volatile();
    t.add("lastval() int8 -- the last value that this session took from any sequence", |_, c| {
        Ok(Datum::Int8(c.session.lastval()?))
    })
    .volatile();
    t.add("setval(regclass, int8) int8 -- sets a sequence", |a, c| {
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
    ($t:ident, $(
        $name:literal, [$($args:literal),*], $ret:literal, $otherwise:expr, $about:literal;
    )*) => {
        $($(
            $t.add(
                concat!($name, "(", $args, ") ", $ret, " -- ", $about),
                |a, c| ask($name, a, c, $otherwise),
            )
            .stable();
        )*)*
    };
}

fn catalog(t: &mut Table) {
    catalog! { t,
        "acldefault", ["\"char\", oid"], "text[]", Datum::Null,
            "privileges on an object of which nothing is said";
        "getdatabaseencoding", [""], "name", Datum::text("UTF8"),
            "name of the encoding";
        "pg_conversion_is_visible", ["oid"], "bool", Datum::Bool(true),
            "true";
        "pg_get_expr", ["text, oid", "text, oid, bool"], "text", Datum::Null,
            "text of a stored expression";
        "pg_get_indexdef", ["oid", "oid, int4, bool"], "text", Datum::Null,
            "definition of an index";
        "pg_index_has_property", ["regclass, text"], "bool", Datum::Null,
            "whether an index has a property (`clusterable`, `index_scan`, ..)";
        "pg_index_column_has_property", ["regclass, int4, text"], "bool", Datum::Null,
            "whether a column of an index has a property (`asc`, `nulls_first`, `orderable`, ..)";
        "pg_indexam_has_property", ["oid, text"], "bool", Datum::Null,
            "whether an access method has a property (`can_order`, `can_unique`, ..)";
        "pg_get_constraintdef", ["oid", "oid, bool"], "text", Datum::Null,
            "definition of a constraint";
        "pg_get_viewdef", ["oid", "oid, bool", "oid, int4", "text", "text, bool"], "text",
            Datum::Null, "text of a view";
        "pg_relation_is_updatable", ["regclass, bool"], "int4", Datum::Int4(0),
            "what can be done through a relation: 4 UPDATE, 8 INSERT, 16 DELETE";
        "pg_column_is_updatable", ["regclass, int2, bool"], "bool", Datum::Bool(false),
            "whether a column can be written to";
        "pg_get_triggerdef", ["oid", "oid, bool"], "text", Datum::Null,
            "NULL: there are no triggers";
        "pg_get_ruledef", ["oid", "oid, bool"], "text", Datum::Null,
            "NULL: there are no rules";
        "pg_get_functiondef", ["oid"], "text", Datum::Null,
            "definition of a function of a user";
        "pg_get_function_result", ["oid"], "text", Datum::Null,
            "type of a function's result";
        "pg_get_function_arguments", ["oid"], "text", Datum::Null,
            "types of a function's arguments";
        "pg_get_function_identity_arguments", ["oid"], "text", Datum::Null,
            "types of a function's arguments";
        "pg_get_function_sqlbody", ["oid"], "text", Datum::Null,
            "what a function of a user returns, if it says RETURN";
        "pg_opfamily_is_visible", ["oid"], "bool", Datum::Null,
            "NULL: there are none";
        "pg_ts_dict_is_visible", ["oid"], "bool", Datum::Null,
            "NULL: there are none";
        "pg_ts_parser_is_visible", ["oid"], "bool", Datum::Null,
            "NULL: there are none";
        "pg_ts_template_is_visible", ["oid"], "bool", Datum::Null,
            "NULL: there are none";
        "pg_tablespace_size", ["oid", "name"], "int8", Datum::Int8(0),
            "bytes of a tablespace";
        "pg_get_serial_sequence", ["text, text"], "text", Datum::Null,
            "sequence behind a column";
        "pg_sequence_last_value", ["regclass"], "int8", Datum::Null,
            "the last value that a sequence gave; NULL if it gave none";
        "pg_get_partkeydef", ["oid"], "text", Datum::Null,
            "by what a table is partitioned";
        "pg_get_partition_constraintdef", ["oid"], "text", Datum::Null,
            "what the rows of a partition have in common";
        "pg_partition_root", ["regclass"], "regclass", Datum::Null,
            "the table that a partition is of";
        "pg_describe_object", ["oid, oid, int4"], "text", Datum::Null,
            "a relation, as messages call it";
        "pg_export_snapshot", [""], "text", Datum::Null,
            "what SET TRANSACTION SNAPSHOT takes to see what this transaction sees";
        "pg_get_statisticsobjdef_columns", ["oid"], "text", Datum::Null,
            "NULL";
        "pg_get_userbyid", ["oid"], "name", Datum::text("root"),
            "name of a role";
        "pg_table_is_visible", ["oid"], "bool", Datum::Bool(true),
            "whether its name needs no schema";
        "pg_type_is_visible", ["oid"], "bool", Datum::Bool(true),
            "whether its name needs no schema";
        "pg_function_is_visible", ["oid"], "bool", Datum::Bool(true),
            "whether its name needs no schema";
        "pg_operator_is_visible", ["oid"], "bool", Datum::Bool(true),
            "whether its name needs no schema";
        "pg_collation_is_visible", ["oid"], "bool", Datum::Bool(true),
            "whether its name needs no schema";
        "pg_opclass_is_visible", ["oid"], "bool", Datum::Bool(true),
            "whether its name needs no schema";
        "pg_statistics_obj_is_visible", ["oid"], "bool", Datum::Null,
            "NULL: there are none";
        "pg_ts_config_is_visible", ["oid"], "bool", Datum::Null,
            "NULL: there are none";
    }
    comments_and_sizes(t);
}

fn comments_and_sizes(t: &mut Table) {
    catalog! { t,
        "obj_description", ["oid", "oid, name"], "text", Datum::Null,
            "comment on an object";
        "col_description", ["oid, int4"], "text", Datum::Null,
            "comment on a column";
        "shobj_description", ["oid, name"], "text", Datum::Null,
            "comment on a shared object";
        "pg_relation_size", ["regclass", "regclass, text"], "int8", Datum::Int8(0),
            "bytes of a table";
        "pg_table_size", ["regclass"], "int8", Datum::Int8(0),
            "bytes of a table";
        "pg_indexes_size", ["regclass"], "int8", Datum::Int8(0),
            "bytes of a table's indexes";
        "pg_total_relation_size", ["regclass"], "int8", Datum::Int8(0),
            "bytes of a table with its indexes";
        "pg_database_size", ["oid", "name"], "int8", Datum::Int8(0),
            "bytes of a database";
        "pg_relation_is_publishable", ["regclass"], "bool", Datum::Bool(false),
            "false";
        "pg_tablespace_location", ["oid"], "text", Datum::text(""),
            "an empty text";
        "pg_stat_get_numscans", ["oid"], "int8", Datum::Int8(0),
            "0";
        "txid_current", [""], "int8", Datum::Int8(1),
            "a number of the transaction";
        "pg_current_xact_id", [""], "xid8", Datum::Null,
            "a number of the transaction";
        "pg_current_xact_id_if_assigned", [""], "xid8", Datum::Null,
            "the same: every transaction has a number";
        "txid_current_if_assigned", [""], "int8", Datum::Int8(1),
            "the same: every transaction has a number";
        "current_query", [""], "text", Datum::Null,
            "the statements that the client sent";
        "pg_postmaster_start_time", [""], "timestamptz", Datum::Null,
            "when the node began";
        "pg_conf_load_time", [""], "timestamptz", Datum::Null,
            "when the node began: it reads its options then";
        "inet_client_port", [""], "int4", Datum::Null,
            "the port that the session's connection comes from";
        "pg_blocking_pids", ["int4"], "int4[]", Datum::Null,
            "the sessions whose locks one waits for";
        "pg_my_temp_schema", [""], "oid", Datum::Oid(0),
            "the schema of the session's temporary tables; 0 if it has none";
        "pg_is_other_temp_schema", ["oid"], "bool", Datum::Bool(false),
            "whether a schema has the temporary tables of another session";
    }
}

fn privileges(t: &mut Table) {
    // Objects and roles by name or by oid; of no role: of the own one.
    catalog! { t,
        "has_table_privilege", ["text, text", "oid, text", "name, text, text", "name, oid, text",
            "oid, text, text", "oid, oid, text"],
            "bool", Datum::Bool(true),
            "whether a role was granted something on a table";
        "has_any_column_privilege", ["text, text", "oid, text", "name, text, text",
            "name, oid, text", "oid, text, text", "oid, oid, text"],
            "bool", Datum::Bool(true),
            "whether on any column of a table";
        "has_sequence_privilege", ["text, text", "oid, text", "name, text, text", "name, oid, text",
            "oid, text, text", "oid, oid, text"],
            "bool", Datum::Bool(true),
            "whether on a sequence";
        "has_schema_privilege", ["text, text", "oid, text", "name, text, text", "name, oid, text",
            "oid, text, text", "oid, oid, text"],
            "bool", Datum::Bool(true),
            "whether on a schema";
        "has_database_privilege", ["text, text", "oid, text", "name, text, text", "name, oid, text",
            "oid, text, text", "oid, oid, text"],
            "bool", Datum::Bool(true),
            "whether on a database";
        "has_type_privilege", ["text, text", "oid, text", "name, text, text", "name, oid, text",
            "oid, text, text", "oid, oid, text"],
            "bool", Datum::Bool(true),
            "whether on a type";
        "has_function_privilege", ["text, text", "oid, text", "name, text, text", "name, oid, text",
            "oid, text, text", "oid, oid, text"],
            "bool", Datum::Bool(true),
            "true: everybody may call functions";
        "has_language_privilege", ["text, text", "oid, text", "name, text, text",
            "name, oid, text", "oid, text, text", "oid, oid, text"],
            "bool", Datum::Bool(true),
            "true: everybody may write functions in SQL";
        "has_parameter_privilege", ["text, text", "name, text, text", "oid, text, text"],
            "bool", Datum::Bool(true),
            "true: everybody may change settings";
        "has_tablespace_privilege", ["text, text", "oid, text", "name, text, text",
            "name, oid, text", "oid, text, text", "oid, oid, text"],
            "bool", Datum::Bool(true),
            "true: there are no tablespaces";
        "pg_has_role", ["text, text", "oid, text", "name, text, text", "name, oid, text",
            "oid, text, text", "oid, oid, text"],
            "bool", Datum::Bool(true),
            "whether a role is another, or a member of it";
        "has_column_privilege", ["text, text, text", "text, int2, text", "oid, text, text",
            "oid, int2, text", "name, text, text, text", "name, text, int2, text",
            "name, oid, text, text", "name, oid, int2, text", "oid, text, text, text",
            "oid, text, int2, text", "oid, oid, text, text", "oid, oid, int2, text"],
            "bool", Datum::Bool(true),
            "whether a role was granted something on a column";
    }
    t.add("row_security_active(regclass) bool -- false", |_, _| Ok(Datum::Bool(false))).stable();
}

/// The oid of a type by its name, or as a statement spells it.
fn named_type(name: &str, c: &EvalContext) -> SqlResult<Option<u32>> {
    let lowered = name.to_lowercase();
    let built_in = SqlType::from_name(&lowered).map(|ty| ty.oid());
    let built_in = built_in.or_else(|| pseudo_type_oid(&lowered));
    let of_user = || c.session.type_oid(name);
    let found = built_in.or_else(of_user).or_else(|| system_type_oid(name));
    match (found, written_type(name)) {
        (Some(oid), _) => Ok(Some(oid)),
        (None, Some(Err(e))) if e.state() != SqlState::UNDEFINED_OBJECT => Err(e),
        (None, written) => Ok(written.and_then(|ty| Some(ty.ok()?.oid()))),
    }
}

fn describing(t: &mut Table) {
    t.add("to_regclass(text) regclass -- oid of a table, NULL if there is none", |a, c| {
        let name = text_of(&a[0]);
        let found = c.session.relation_oid(name)?.or_else(|| system_oid(name));
        Ok(found.map_or(Datum::Null, Datum::Oid))
    })
    .stable();
    t.add("format_type(oid, int4) text -- a type's name", |a, c| {
        let Datum::Oid(oid) = &a[0] else { return Ok(Datum::Null) };
        let typmod = match &a[1] {
            Datum::Int4(m) => *m,
            _ => -1,
        };
        if let Some(name) = c.session.type_name(*oid) {
            return Ok(Datum::text(name));
        }
        if let Some(name) = crate::type_name::name_with_precision(*oid, typmod) {
            return Ok(Datum::text(name));
        }
        Ok(Datum::text(match SqlType::from_oid(*oid, typmod) {
            Some(SqlType::Char(_)) if typmod < 0 && !a[1].is_null() => "bpchar".to_string(),
            Some(ty) if typmod < 0 => ty.base_name(),
            Some(ty) => ty.name(),
            None if *oid == 0 => "-".to_string(),
            None => match pseudo_type_name(*oid) {
                Some(name) => quote_ident(name).to_string(),
                None => system_type_name(*oid).unwrap_or_else(|| "???".to_string()),
            },
        }))
    })
    .lax()
    .stable();
    t.add("to_regtype(text) regtype -- oid of a type, NULL if there is none", |a, c| {
        Ok(named_type(text_of(&a[0]), c)?.map_or(Datum::Null, Datum::Oid))
    })
    .stable();
    t.add(
        "satisfies_hash_partition(oid, int4, int4, ...any) bool -- whether values leave this \
         remainder: of the table, modulus, remainder, the values of its key",
        |a, _| satisfies_hash(a),
    )
    .lax();
    t.add("pg_size_pretty(int8) text -- bytes in words", |a, _| {
        size_pretty(&numeric::from_i128(i64_of(&a[0]).into()))
    });
    t.add("pg_size_pretty(numeric) text", |a, _| match &a[0] {
        Datum::Numeric(size) => size_pretty(size),
        other => Ok(Datum::text(format!("{other} PB"))),
    });
    t.add("pg_column_size(any) int4 -- bytes of a value", |a, _| {
        let mut bytes = Vec::new();
        a[0].to_binary(&a[0].implied_type(), &mut bytes);
        Ok(Datum::Int4(bytes.len() as i32))
    });
    t.add("pg_cancel_backend(int4) bool -- stops the statement of a session", |a, c| {
        signal(&a[0], false, c)
    })
    .volatile();
    t.add("pg_terminate_backend(int4) bool -- ends a session", |a, c| signal(&a[0], true, c))
        .volatile();
}

/// Whether the hash of a partition key leaves a remainder.
fn satisfies_hash(a: &[Datum]) -> SqlResult<Datum> {
    let (modulus, remainder) = match (&a[1], &a[2]) {
        (Datum::Null, _) | (_, Datum::Null) => return Ok(Datum::Bool(false)),
        (modulus, remainder) => (i64_of(modulus), i64_of(remainder)),
    };
    let bad = |text: &str| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text));
    if modulus <= 0 {
        return bad("modulus for hash partition must be an integer value greater than zero");
    }
    if remainder < 0 {
        return bad(
            "remainder for hash partition must be an integer value greater than or equal to zero",
        );
    }
    if remainder >= modulus {
        return bad("remainder for hash partition must be less than modulus");
    }
    match crate::functions::partition_hash(&a[3..]) {
        Some(hash) => Ok(Datum::Bool(hash % modulus as u64 == remainder as u64)),
        None => Err(SqlError::unsupported("the hash of a value of this type")
            .with_hint("Integers, text, uuid, dates and timestamps can be hashed.")),
    }
}

/// Bytes in the largest unit of which there are at least ten (twenty halves): the last step is
/// rounded, those before it are cut off.
fn size_pretty(bytes: &BigDecimal) -> SqlResult<Datum> {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let whole = |v: i128| numeric::from_i128(v);
    let cut =
        |v: &BigDecimal, by: i128| -> SqlResult<BigDecimal> { numeric::div_trunc(v, &whole(by)) };
    let mut size = bytes.clone();
    for (at, unit) in UNITS.iter().enumerate() {
        let limit = if at == 0 { 10 * 1024 } else { 20 * 1024 - 1 };
        if at + 1 == UNITS.len() || numeric::compare(&size.abs(), &whole(limit)).is_lt() {
            if at > 0 {
                let one = if numeric::compare(&size, &whole(0)).is_lt() { -1 } else { 1 };
                size = cut(&numeric::add(&size, &whole(one)), 2)?;
            }
            return Ok(Datum::text(format!("{} {unit}", numeric::text(&size))));
        }
        // Halves of the next unit.
        size = cut(&size, if at == 0 { 512 } else { 1024 })?;
    }
    Ok(Datum::Null)
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
    waiting(t);
    of_servers(t);
    statistics(t);
    sequences(t);
    catalog(t);
    privileges(t);
    describing(t);
}
