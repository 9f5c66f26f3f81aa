//! `pg_catalog`: the tables that clients and drivers read.
//!
//! Oids of user objects are their ids plus 16384; types have PostgreSQL's oids. Tables about things
//! that are not here (triggers, rules, policies, publications) exist and are empty.

use std::sync::Arc;

use braid_catalog::{
    Catalog, Check, Column, Deferral, IndexColumn, IndexConstraint, Partition, RefAction, Schema,
    Table, oid_of,
};
use braid_sql::session::{
    SessionState, Shown, ShownSetting, checked_columns, duration_ms, shown_settings,
};
use braid_types::{ArrayValue, Datum, Interval, MICROS_PER_SECOND, SqlResult, SqlType, TimeZone};

use super::absent::EMPTY;
use super::code;
use super::defaults::shown_default;
use super::definition::{check_text, foreign_key_text, index_text, key_text};
use super::info_schema::referenced;
use super::relations::{init_privileges, listed, pg_attribute, pg_class};
use super::table::{
    INFORMATION_SCHEMA, PG_CATALOG, ROOT, SystemTable, View, attnums, constraint_oid, default_oid,
    empty, flag, int2_vector, object, oid_vector, shown_indexes, text,
};
use super::{comments, dependencies, opened, partitions, qualified, roles, type_rows};
use braid_sql::session::{said_of_check, waiting};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// A table of `pg_catalog`.
pub fn table(name: &str) -> Option<SystemTable> {
    let nothing = EMPTY.iter().find(|(n, _)| *n == name);
    relations(name)
        .or_else(|| lists(name))
        .or_else(|| opened::table(name))
        .or_else(|| server(name))
        .or_else(|| roles::table(name))
        .or_else(|| comments::table(name))
        .or_else(|| dependencies::table(name))
        .or_else(|| partitions::table(name))
        .or_else(|| nothing.map(|(_, layout)| SystemTable { layout, rows: empty, oid: 0 }))
}

fn made(layout: &'static str, rows: super::table::Rows) -> Option<SystemTable> {
    Some(SystemTable { layout, rows, oid: 0 })
}

/// Tables about relations and their parts.
fn relations(name: &str) -> Option<SystemTable> {
    match name {
        "pg_class" => made(
            "oid oid, relname name, relnamespace oid, reltype oid, reloftype oid, \
             relowner oid, relam oid, relfilenode oid, reltablespace oid, relpages int4, \
             reltuples float4, relallvisible int4, reltoastrelid oid, relhasindex bool, \
             relisshared bool, relpersistence char, relkind char, relnatts int2, \
             relchecks int2, relhasrules bool, relhastriggers bool, relhassubclass bool, \
             relrowsecurity bool, relforcerowsecurity bool, relispopulated bool, \
             relreplident char, relispartition bool, relrewrite oid, relfrozenxid xid, \
             relminmxid xid, relacl aclitem[], reloptions text[], relpartbound pg_node_tree",
            pg_class,
        ),
        "pg_namespace" => {
            made("oid oid, nspname name, nspowner oid, nspacl aclitem[]", pg_namespace)
        }
        "pg_attribute" => made(
            "attrelid oid, attname name, atttypid oid, attstattarget int4, attlen int2, \
             attnum int2, attndims int4, attcacheoff int4, atttypmod int4, attbyval bool, \
             attalign char, attstorage char, attcompression char, attnotnull bool, \
             atthasdef bool, atthasmissing bool, attidentity char, attgenerated char, \
             attisdropped bool, attislocal bool, attinhcount int4, attcollation oid, \
             attacl aclitem[], attoptions text[], attfdwoptions text[], attmissingval anyarray",
            pg_attribute,
        ),
        "pg_attrdef" => made("oid oid, adrelid oid, adnum int2, adbin pg_node_tree", pg_attrdef),
        "pg_type" => made(
            "oid oid, typname name, typnamespace oid, typowner oid, typlen int2, \
             typbyval bool, typtype char, typcategory char, typispreferred bool, \
             typisdefined bool, typdelim char, typrelid oid, typsubscript regproc, typelem oid, \
             typarray oid, typinput regproc, typoutput regproc, typreceive regproc, \
             typsend regproc, typmodin regproc, typmodout regproc, typanalyze regproc, \
             typalign char, typstorage char, typnotnull bool, typbasetype oid, typtypmod int4, \
             typndims int4, typcollation oid, typdefaultbin pg_node_tree, typdefault text, \
             typacl aclitem[]",
            type_rows::pg_type,
        ),
        "pg_opclass" => made(
            "oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid, \
             opcintype oid, opcdefault bool, opckeytype oid",
            type_rows::pg_opclass,
        ),
        "pg_range" => made(
            "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, \
             rngcanonical regproc, rngsubdiff regproc",
            type_rows::pg_range,
        ),
        "pg_index" => made(
            "indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, indisunique bool, \
             indnullsnotdistinct bool, indisprimary bool, indisexclusion bool, \
             indimmediate bool, indisclustered bool, indisvalid bool, indcheckxmin bool, \
             indisready bool, indislive bool, indisreplident bool, indkey int2vector, \
             indcollation oidvector, indclass oidvector, indoption int2vector, \
             indexprs pg_node_tree, indpred pg_node_tree",
            pg_index,
        ),
        "pg_constraint" => made(
            "oid oid, conname name, connamespace oid, contype char, condeferrable bool, \
             condeferred bool, convalidated bool, conrelid oid, contypid oid, conindid oid, \
             conparentid oid, confrelid oid, confupdtype char, confdeltype char, \
             confmatchtype char, conislocal bool, coninhcount int4, connoinherit bool, \
             conkey int2[], confkey int2[], conpfeqop oid[], conppeqop oid[], \
             conffeqop oid[], confdelsetcols int2[], conexclop oid[], conbin pg_node_tree",
            pg_constraint,
        ),
        _ => parts(name),
    }
}

/// Tables about what belongs to relations.
fn parts(name: &str) -> Option<SystemTable> {
    match name {
        "pg_enum" => {
            made("oid oid, enumtypid oid, enumsortorder float4, enumlabel name", type_rows::pg_enum)
        }
        "pg_init_privs" => made(
            "objoid oid, classoid oid, objsubid int4, privtype char, initprivs aclitem[]",
            init_privileges,
        ),
        "pg_sequence" => made(
            "seqrelid oid, seqtypid oid, seqstart int8, seqincrement int8, seqmax int8, \
             seqmin int8, seqcache int8, seqcycle bool",
            pg_sequence,
        ),
        _ => None,
    }
}

/// Readable lists.
fn lists(name: &str) -> Option<SystemTable> {
    match name {
        "pg_sequences" => made(
            "schemaname name, sequencename name, sequenceowner name, data_type regtype, \
             start_value int8, min_value int8, max_value int8, increment_by int8, cycle bool, \
             cache_size int8, last_value int8",
            pg_sequences,
        ),
        "pg_views" => {
            made("schemaname name, viewname name, viewowner name, definition text", pg_views)
        }
        "pg_matviews" => made(
            "schemaname name, matviewname name, matviewowner name, tablespace name, \
             hasindexes bool, ispopulated bool, definition text",
            pg_matviews,
        ),
        "pg_tables" => made(
            "schemaname name, tablename name, tableowner name, tablespace name, \
             hasindexes bool, hasrules bool, hastriggers bool, rowsecurity bool",
            pg_tables,
        ),
        "pg_indexes" => made(
            "schemaname name, tablename name, indexname name, tablespace name, indexdef text",
            |v| {
                Ok(v.stored()
                    .flat_map(|(s, t)| {
                        v.indexes(t).into_iter().map(move |i| {
                            vec![
                                text(s.name.as_str()),
                                text(t.name.as_str()),
                                text(i.name.as_str()),
                                Datum::Null,
                                text(index_text(v.catalog, t, i)),
                            ]
                        })
                    })
                    .collect())
            },
        ),
        _ => None,
    }
}

fn pg_tables(v: &View<'_>) -> Made {
    let row = |schema: &str, name: &str, owner: Datum, indexed: bool| {
        let mut row = vec![text(schema), text(name), owner, Datum::Null, flag(indexed)];
        row.extend([false; 3].map(flag));
        row
    };
    let own = v
        .tables()
        .into_iter()
        .map(|(s, t)| row(&s.name, &t.name, roles::owner_name(v, t.id), !v.indexes(t).is_empty()));
    let owner = roles::role_name(v, ROOT);
    let of_system = listed().iter().map(|of| of.relation).filter(|r| !r.is_view);
    let of_system = of_system.map(|r| row(r.schema, r.name, owner.clone(), false));
    Ok(own.chain(of_system).collect())
}

fn pg_views(v: &View<'_>) -> Made {
    let views = v.catalog.views().filter_map(|view| Some((v.schema(view.schema)?, view)));
    let row = |(s, view): (&Arc<Schema>, &Arc<braid_catalog::View>)| {
        vec![
            text(s.name.as_str()),
            text(view.name.as_str()),
            roles::owner_name(v, view.id),
            v.query_of(view.id, &view.definition),
        ]
    };
    // Those of the system are no queries.
    let owner = roles::role_name(v, ROOT);
    let of_system = listed().iter().map(|of| of.relation).filter(|r| r.is_view);
    let of_system = of_system.map(|r| vec![text(r.schema), text(r.name), owner.clone()]);
    Ok(views.map(row).chain(of_system).collect())
}

fn pg_matviews(v: &View<'_>) -> Made {
    let row = |(s, t): (&Arc<Schema>, &Arc<Table>)| {
        let view = t.materialized()?;
        Some(vec![
            text(s.name.as_str()),
            text(t.name.as_str()),
            roles::owner_name(v, t.id),
            Datum::Null,
            flag(!v.indexes(t).is_empty()),
            flag(view.populated),
            v.query_of(t.id, &view.definition),
        ])
    };
    Ok(v.stored().filter_map(row).collect())
}

/// Tables about the server as a whole.
fn server(name: &str) -> Option<SystemTable> {
    match name {
        "pg_database" => made(
            "oid oid, datname name, datdba oid, encoding int4, datlocprovider char, \
             datistemplate bool, datallowconn bool, datconnlimit int4, datfrozenxid xid, \
             datminmxid xid, dattablespace oid, datcollate text, datctype text, \
             daticulocale text, datcollversion text, datacl aclitem[]",
            pg_database,
        ),
        "pg_am" => made("oid oid, amname name, amhandler regproc, amtype char", |_| {
            Ok(vec![
                vec![Datum::Oid(2), text("heap"), Datum::Oid(3), text("t")],
                vec![Datum::Oid(403), text("btree"), Datum::Oid(330), text("i")],
                vec![Datum::Oid(405), text("hash"), Datum::Oid(331), text("i")],
                vec![Datum::Oid(783), text("gist"), Datum::Oid(332), text("i")],
                vec![Datum::Oid(2742), text("gin"), Datum::Oid(333), text("i")],
                vec![Datum::Oid(4000), text("spgist"), Datum::Oid(334), text("i")],
                vec![Datum::Oid(3580), text("brin"), Datum::Oid(335), text("i")],
            ])
        }),
        "pg_proc" => made(
            "oid oid, proname name, pronamespace oid, proowner oid, prolang oid, \
             procost float4, prorows float4, provariadic oid, prosupport regproc, prokind char, \
             prosecdef bool, proleakproof bool, proisstrict bool, proretset bool, \
             provolatile char, proparallel char, pronargs int2, pronargdefaults int2, \
             prorettype oid, proargtypes oidvector, proallargtypes oid[], proargmodes char[], \
             proargnames text[], proargdefaults pg_node_tree, protrftypes oid[], prosrc text, \
             probin text, prosqlbody pg_node_tree, proconfig text[], proacl aclitem[]",
            code::pg_proc,
        ),
        "pg_operator" => made(
            "oid oid, oprname name, oprnamespace oid, oprowner oid, oprkind char, \
             oprcanmerge bool, oprcanhash bool, oprleft oid, oprright oid, oprresult oid, \
             oprcom oid, oprnegate oid, oprcode regproc, oprrest regproc, oprjoin regproc",
            code::pg_operator,
        ),
        "pg_cast" => made(
            "oid oid, castsource oid, casttarget oid, castfunc oid, castcontext char, \
             castmethod char",
            code::pg_cast,
        ),
        "pg_language" => made(
            "oid oid, lanname name, lanowner oid, lanispl bool, lanpltrusted bool, \
             lanplcallfoid oid, laninline oid, lanvalidator oid, lanacl aclitem[]",
            |_| {
                let row = |(oid, name): (u32, &str)| {
                    let trusted = flag(oid == super::sql_functions::SQL || oid == PLPGSQL);
                    let mut row = vec![Datum::Oid(oid), text(name), Datum::Oid(ROOT)];
                    row.extend([flag(oid == PLPGSQL), trusted]);
                    row.extend([0, 0, 0].map(Datum::Oid));
                    row
                };
                let all = [
                    (12, "internal"),
                    (13, "c"),
                    (super::sql_functions::SQL, "sql"),
                    (PLPGSQL, "plpgsql"),
                ];
                Ok(all.into_iter().map(row).collect())
            },
        ),
        "pg_timezone_names" => made(ZONE_NAMES, pg_timezone_names),
        "pg_timezone_abbrevs" => made(ZONE_ABBREVS, pg_timezone_abbrevs),
        "pg_settings" => made(
            "name text, setting text, unit text, category text, short_desc text, \
             extra_desc text, context text, vartype text, source text, min_val text, \
             max_val text, enumvals text[], boot_val text, reset_val text, sourcefile text, \
             sourceline int4, pending_restart bool",
            pg_settings,
        ),
        "pg_collation" => made(
            "oid oid, collname name, collnamespace oid, collowner oid, collprovider char, \
             collisdeterministic bool, collencoding int4, collcollate text, collctype text, \
             colliculocale text, collversion text",
            type_rows::pg_collation,
        ),
        "pg_tablespace" => {
            made("oid oid, spcname name, spcowner oid, spcacl aclitem[], spcoptions text[]", |_| {
                let row = |(oid, name)| vec![Datum::Oid(oid), text(name), Datum::Oid(ROOT)];
                Ok([(1663, "pg_default"), (1664, "pg_global")].map(row).to_vec())
            })
        }
        _ => None,
    }
}

/// The language of DO blocks. Its number is one of the system's, so that dumps leave it out.
const PLPGSQL: u32 = 13_545;

fn pg_namespace(v: &View<'_>) -> Made {
    let mut rows = vec![
        vec![Datum::Oid(PG_CATALOG), text("pg_catalog"), Datum::Oid(ROOT), Datum::Null],
        vec![
            Datum::Oid(INFORMATION_SCHEMA),
            text("information_schema"),
            Datum::Oid(ROOT),
            Datum::Null,
        ],
    ];
    for s in v.schemas() {
        let (owner, acl) = (roles::owner(v, s.id), roles::acl(v, s.id));
        rows.push(vec![object(s.id), text(s.name.as_str()), owner, acl]);
    }
    Ok(rows)
}

fn pg_attrdef(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (_, t) in v.tables() {
        for c in t.visible_columns() {
            if let Some(expr) = c.generated.clone().or_else(|| shown_default(c)) {
                rows.push(vec![
                    Datum::Oid(default_oid(t.id, c.id)),
                    object(t.id),
                    Datum::Int2(c.id as i16),
                    text(expr),
                ]);
            }
        }
    }
    Ok(rows)
}

/// Oid of the collation of a column.
pub(super) fn column_collation(c: &Column) -> u32 {
    c.options.collation.as_ref().map_or_else(|| collation(&c.ty), |own| own.oid)
}

/// Oid of the collation of a type.
pub(super) fn collation(ty: &SqlType) -> u32 {
    let of = ty.element().unwrap_or(ty);
    match of {
        // Names sort as in "C".
        SqlType::Name => 950,
        of if (of.is_text_like() || *of == SqlType::Citext) && *of != SqlType::CharByte => 100,
        _ => 0,
    }
}

/// `attnum` of a column of a key; expressions have none.
fn number(t: &Table, id: u32) -> u32 {
    t.column(id).map_or(0, |c| if c.expression.is_some() { 0 } else { id })
}

fn pg_index(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (_, t) in v.stored() {
        for i in v.indexes(t) {
            let keys = i.columns.len();
            let included = i.include.iter().copied();
            let list = |c: &IndexColumn| t.column(c.column).and_then(|c| c.expression.as_deref());
            let list: Vec<&str> = i.columns.iter().filter_map(list).collect();
            let expressions = match list.is_empty() {
                true => Datum::Null,
                false => text(list.join(", ")),
            };
            let options =
                i.columns.iter().map(|c| u32::from(c.desc) + if c.nulls_first { 2 } else { 0 });
            rows.push(vec![
                object(i.id),
                object(t.id),
                Datum::Int2((keys + i.include.len()) as i16),
                Datum::Int2(keys as i16),
                flag(i.is_unique() || i.id == t.primary.id),
                flag(i.nulls_not_distinct),
                flag(i.id == t.primary.id),
                flag(false),
                flag(i.deferral.is_none()),
                flag(false),
                flag(true),
                flag(false),
                flag(true),
                flag(true),
                flag(false),
                int2_vector(i.columns.iter().map(|c| number(t, c.column)).chain(included)),
                oid_vector(
                    i.columns.iter().map(|k| t.column(k.column).map_or(0, column_collation)),
                ),
                oid_vector(type_rows::operator_classes(t, i)),
                int2_vector(options),
                expressions,
                i.predicate.as_ref().map_or(Datum::Null, |p| text(p.as_str())),
            ]);
        }
    }
    Ok(rows)
}

fn action(a: RefAction) -> &'static str {
    match a {
        RefAction::NoAction => "a",
        RefAction::Restrict => "r",
        RefAction::Cascade => "c",
        RefAction::SetNull => "n",
        RefAction::SetDefault => "d",
    }
}

/// The constraint of what a partition is in, of which one of its indexes has its name.
fn parent_constraint(catalog: &Catalog, p: &Partition, index: u32) -> Option<u32> {
    let of = p.indexes.iter().find(|i| i.id == index)?.of;
    let parent = catalog.shown_table(p.parent)?;
    let id = match parent.window() {
        Some(window) => window.indexes.iter().find(|i| i.of == of)?.id,
        None => of,
    };
    let at = shown_indexes(parent).iter().position(|i| i.id == id)?;
    Some(constraint_oid(parent.id, at))
}

/// `conislocal` and `coninhcount`.
fn inheritance(inherited: bool) -> (Datum, Datum) {
    (flag(!inherited), Datum::Int4(i32::from(inherited)))
}

/// The columns of a CHECK.
fn checked(t: &Table, check: &Check) -> Datum {
    let columns = checked_columns(t, &check.expr);
    if columns.is_empty() { Datum::Null } else { attnums(columns) }
}

fn pg_constraint(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (schema, t) in v.tables() {
        let made = |oid: u32, name: &str, kind: &str, index: u32, conkey: Datum, bin: Datum| {
            let mut row = vec![Datum::Null; 26];
            row[0] = Datum::Oid(oid);
            row[1] = text(name);
            row[2] = object(schema.id);
            row[3] = text(kind);
            (row[4], row[5], row[6]) = (flag(false), flag(false), flag(true));
            row[7] = object(t.id);
            row[8] = Datum::Oid(0);
            row[9] = Datum::Oid(index);
            row[10] = Datum::Oid(0);
            row[11] = Datum::Oid(0);
            row[12..15].fill(text(" "));
            row[15] = flag(true);
            row[16] = Datum::Int4(0);
            row[17] = flag(kind != "c");
            row[18] = conkey;
            row[25] = bin;
            row
        };
        for (at, i) in v.indexes(t).into_iter().enumerate() {
            let kind = match i.constraint {
                _ if i.id == t.primary.id => "p",
                Some(IndexConstraint::Primary) => "p",
                Some(IndexConstraint::Unique) => "u",
                None => continue,
            };
            let keys = attnums(i.columns.iter().map(|c| c.column));
            let oid = constraint_oid(t.id, at);
            let mut row = made(oid, &i.name, kind, oid_of(i.id), keys, Datum::Null);
            if let Some(parent) = t.window().and_then(|p| parent_constraint(v.catalog, p, i.id)) {
                row[10] = Datum::Oid(parent);
                (row[15], row[16]) = inheritance(true);
            }
            row[4] = flag(i.deferral.is_some());
            row[5] = flag(i.deferral == Some(Deferral::Deferred));
            rows.push(row);
        }
        for (at, c) in t.checks.iter().enumerate() {
            let oid = constraint_oid(t.id, 200 + at);
            let mut row = made(oid, &c.name, "c", 0, checked(t, c), text(c.expr.as_str()));
            (row[15], row[16]) = inheritance(t.window().is_some_and(|p| !p.has_check(&c.name)));
            row[6] = flag(!c.not_valid);
            row[17] = flag(c.no_inherit);
            rows.push(row);
        }
        for fk in &t.foreign_keys {
            let keys = attnums(fk.columns.iter().copied());
            let index = referenced(v, fk).map_or(0, |(_, index)| oid_of(index.id));
            let mut row = made(oid_of(fk.id), &fk.name, "f", index, keys, Datum::Null);
            row[11] = object(fk.parent);
            row[12] = text(action(fk.on_update));
            row[13] = text(action(fk.on_delete));
            row[14] = text(if fk.match_full { "f" } else { "s" });
            row[4] = flag(fk.deferral.is_some());
            row[5] = flag(fk.deferral == Some(Deferral::Deferred));
            row[6] = flag(!fk.not_valid);
            row[19] = attnums(fk.parent_columns.iter().copied());
            if !fk.set_on_delete.is_empty() {
                row[23] = attnums(fk.set_on_delete.iter().copied());
            }
            rows.push(row);
        }
    }
    rows.extend(type_rows::domain_constraints(v));
    Ok(rows)
}

fn pg_database(v: &View<'_>) -> Made {
    Ok(v.catalog
        .databases()
        .map(|d| {
            vec![
                object(d.id),
                text(d.name.as_str()),
                roles::owner(v, d.id),
                Datum::Int4(6),
                text("c"),
                flag(d.name == "template1"),
                flag(true),
                Datum::Int4(-1),
                Datum::Oid(0),
                Datum::Oid(0),
                Datum::Oid(1663),
                text("C.UTF-8"),
                text("C.UTF-8"),
                Datum::Null,
                Datum::Null,
                roles::acl(v, d.id),
            ]
        })
        .collect())
}

fn pg_sequence(v: &View<'_>) -> Made {
    Ok(v.catalog
        .sequences()
        .filter(|s| v.schema(s.schema).is_some())
        .map(|s| {
            vec![
                object(s.id),
                Datum::Oid(s.ty.oid()),
                Datum::Int8(s.start),
                Datum::Int8(s.increment),
                Datum::Int8(s.max),
                Datum::Int8(s.min),
                Datum::Int8(s.cache),
                flag(s.cycle),
            ]
        })
        .collect())
}

fn pg_sequences(v: &View<'_>) -> Made {
    v.catalog
        .sequences()
        .filter_map(|s| Some((v.schema(s.schema)?, s)))
        .map(|(schema, s)| {
            let (last, called) = v.database_object.sequence_position(s)?;
            let last = if called { Datum::Int8(last) } else { Datum::Null };
            Ok(vec![
                text(schema.name.as_str()),
                text(s.name.as_str()),
                roles::owner_name(v, s.id),
                Datum::Oid(s.ty.oid()),
                Datum::Int8(s.start),
                Datum::Int8(s.min),
                Datum::Int8(s.max),
                Datum::Int8(s.increment),
                flag(s.cycle),
                Datum::Int8(s.cache),
                last,
            ])
        })
        .collect()
}

/// Columns of `pg_timezone_names`.
const ZONE_NAMES: &str = "name text, abbrev text, utc_offset interval, is_dst bool";
/// Columns of `pg_timezone_abbrevs`.
const ZONE_ABBREVS: &str = "abbrev text, utc_offset interval, is_dst bool";

/// The zones that have names, as they are when the transaction begins.
fn pg_timezone_names(v: &View<'_>) -> Made {
    let now = v.eval.transaction_micros;
    let row = |zone: TimeZone| {
        let micros = i64::from(zone.offset_at_utc(now)) * MICROS_PER_SECOND;
        vec![
            text(zone.name()),
            text(zone.abbreviation_at(now)),
            Datum::Interval(Interval { micros, ..Interval::default() }),
            flag(zone.is_summer_at(now)),
        ]
    };
    Ok(TimeZone::all_named().map(row).collect())
}

/// The abbreviations of zones, as they are when the transaction begins.
fn pg_timezone_abbrevs(v: &View<'_>) -> Made {
    let now = v.eval.transaction_micros;
    let row = |(name, zone, summer): (&str, TimeZone, Option<bool>)| {
        let micros = i64::from(zone.offset_at_utc(now)) * MICROS_PER_SECOND;
        vec![
            text(name),
            Datum::Interval(Interval { micros, ..Interval::default() }),
            flag(summer.unwrap_or_else(|| zone.is_summer_at(now))),
        ]
    };
    Ok(TimeZone::all_abbreviations().map(row).collect())
}

fn pg_settings(v: &View<'_>) -> Made {
    let row = |s: &ShownSetting| {
        let value = v.eval.session.setting(s.name)?;
        // Times are whole numbers of their unit here; SHOW says them otherwise.
        let time = |value: &str| {
            let time = duration_ms(value).filter(|_| s.name.ends_with("_timeout"));
            time.map_or_else(|| text(value), |ms| text(ms.to_string()))
        };
        let is_time = s.name.ends_with("_timeout") && duration_ms(&value).is_some();
        let default = if s.default.is_empty() { value.as_str() } else { s.default };
        let words = s.values.iter().map(|word| Datum::text(*word)).collect();
        let words = || Datum::Array(Arc::new(ArrayValue::list(SqlType::Text, words)));
        let has_values = !s.values.is_empty();
        Some(vec![
            text(s.name),
            time(&value),
            if is_time { text("ms") } else { Datum::Null },
            text(if s.has_meaning { "Settings" } else { "Without a meaning" }),
            text(s.about),
            Datum::Null,
            text(if s.can_be_set { "user" } else { "internal" }),
            text(s.kind),
            text(if value == default { "default" } else { "session" }),
            Datum::Null,
            Datum::Null,
            if has_values { words() } else { Datum::Null },
            time(default),
            time(default),
            Datum::Null,
            Datum::Null,
            flag(false),
        ])
    };
    Ok(shown_settings().iter().filter_map(row).collect())
}

/// Text of the constraint with this oid, as `pg_get_constraintdef` prints it.
pub(crate) fn constraint_text(
    session: &SessionState,
    catalog: &Catalog,
    (database, oid): (u32, u32),
    how: Shown,
) -> Option<String> {
    let here = |schema: u32| catalog.schema_by_id(schema).is_some_and(|s| s.database == database);
    let all = catalog.tables().chain(catalog.shown_partitions());
    for t in all.filter(|t| here(t.schema)) {
        for (at, i) in shown_indexes(t).into_iter().enumerate() {
            if constraint_oid(t.id, at) == oid {
                let kind = match (i.id == t.primary.id, i.nulls_not_distinct) {
                    (true, _) => "PRIMARY KEY",
                    (false, false) => "UNIQUE",
                    (false, true) => "UNIQUE NULLS NOT DISTINCT",
                };
                return Some(format!("{kind} ({}){}", key_text(t, i), waiting(i.deferral)));
            }
        }
        for (at, c) in t.checks.iter().enumerate() {
            if constraint_oid(t.id, 200 + at) == oid {
                let text = qualified::check_of(session, catalog, &c.expr, t, how);
                return Some(text + said_of_check(c));
            }
        }
        for fk in &t.foreign_keys {
            if oid_of(fk.id) == oid {
                return Some(foreign_key_text(session, catalog, t, fk));
            }
        }
    }
    Some(match type_rows::domain_check(catalog, oid, how)? {
        (_, Some(shown)) => format!("CHECK ({shown})"),
        (check, None) => check_text(&qualified::expression_of(session, catalog, &check.expr, None)),
    })
}
