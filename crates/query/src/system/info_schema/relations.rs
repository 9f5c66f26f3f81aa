//! Tables, columns, constraints, views, sequences and indexes, with Spanner's columns in `tables`
//! and `columns`, and its tables `indexes`, `index_columns` and `column_options`.

use std::sync::LazyLock;

use braid_catalog::{
    CheckOption, Column, Deferral, IndexConstraint, InterleaveForm, RefAction, Refined, Sequence,
    id_of_oid,
};
use braid_sql::session::{Shown, checked_columns, deparsed, row_deletion_policy};
use braid_sql::views::may_write;
use braid_types::{
    DEFAULT_COLLATION, Datum, IntervalFields, SqlResult, SqlType, quote_ident, system_type_name,
};

use super::{declared_types, unused, usage};
use crate::system::defaults::shown_default;
use crate::system::definition;
use crate::system::relations::{Listed, SystemColumn, listed};
use crate::system::table::{Rows, SystemTable, View, text};

pub(super) type Made = SqlResult<Vec<Vec<Datum>>>;

/// A table of `information_schema`.
pub fn table(name: &str) -> Option<SystemTable> {
    let t = |layout: &'static str, rows: Rows| Some(SystemTable { layout, rows, oid: 0 });
    match name {
        "tables" => t(
            "table_catalog name, table_schema name, table_name name, table_type text, \
             self_referencing_column_name name, reference_generation text, \
             user_defined_type_catalog name, user_defined_type_schema name, \
             user_defined_type_name name, is_insertable_into yes_or_no, is_typed yes_or_no, \
             commit_action text, parent_table_name name, on_delete_action text, \
             interleave_type text, spanner_state text, \
             row_deletion_policy_expression text",
            tables,
        ),
        "columns" => t(
            "table_catalog name, table_schema name, table_name name, column_name name, \
             ordinal_position int4, column_default text, is_nullable yes_or_no, data_type text, \
             character_maximum_length int4, character_octet_length int4, numeric_precision int4, \
             numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, \
             interval_type text, interval_precision int4, character_set_catalog name, \
             character_set_schema name, character_set_name name, collation_catalog name, \
             collation_schema name, collation_name name, domain_catalog name, domain_schema name, \
             domain_name name, udt_catalog name, udt_schema name, udt_name name, \
             scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, \
             dtd_identifier name, is_self_referencing yes_or_no, is_identity yes_or_no, \
             identity_generation text, identity_start text, identity_increment text, \
             identity_maximum text, identity_minimum text, identity_cycle yes_or_no, \
             is_generated text, generation_expression text, is_updatable yes_or_no, \
             spanner_type text, is_stored yes_or_no, spanner_state text",
            columns,
        ),
        "key_column_usage" => t(
            "constraint_catalog name, constraint_schema name, constraint_name name, \
             table_catalog name, table_schema name, table_name name, column_name name, \
             ordinal_position int4, position_in_unique_constraint int4",
            key_column_usage,
        ),
        "constraint_column_usage" => t(
            "table_catalog name, table_schema name, table_name name, column_name name, \
             constraint_catalog name, constraint_schema name, constraint_name name",
            constraint_column_usage,
        ),
        "table_constraints" => t(
            "constraint_catalog name, constraint_schema name, constraint_name name, \
             table_catalog name, table_schema name, table_name name, constraint_type text, \
             is_deferrable yes_or_no, initially_deferred yes_or_no, enforced yes_or_no, \
             nulls_distinct yes_or_no",
            table_constraints,
        ),
        "check_constraints" => t(
            "constraint_catalog name, constraint_schema name, constraint_name name, \
             check_clause text",
            check_constraints,
        ),
        "referential_constraints" => t(
            "constraint_catalog name, constraint_schema name, constraint_name name, \
             unique_constraint_catalog name, unique_constraint_schema name, \
             unique_constraint_name name, match_option text, update_rule text, delete_rule text",
            referential_constraints,
        ),
        "schemata" => t(
            "catalog_name name, schema_name name, schema_owner name, \
             default_character_set_catalog name, default_character_set_schema name, \
             default_character_set_name name, sql_path text",
            schemata,
        ),
        "views" => t(
            "table_catalog name, table_schema name, table_name name, view_definition text, \
             check_option text, is_updatable yes_or_no, is_insertable_into yes_or_no, \
             is_trigger_updatable yes_or_no, is_trigger_deletable yes_or_no, \
             is_trigger_insertable_into yes_or_no",
            views,
        ),
        "sequences" => t(
            "sequence_catalog name, sequence_schema name, sequence_name name, data_type text, \
             numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, \
             start_value text, minimum_value text, maximum_value text, increment text, \
             cycle_option yes_or_no",
            sequences,
        ),
        "indexes" => t(
            "table_catalog name, table_schema name, table_name name, index_name name, \
             index_type text, parent_table_name name, is_unique yes_or_no, \
             is_null_filtered yes_or_no, index_state text, spanner_is_managed yes_or_no",
            indexes,
        ),
        "index_columns" => t(
            "table_catalog name, table_schema name, table_name name, index_name name, \
             index_type text, column_name name, ordinal_position int4, column_ordering text, \
             is_nullable yes_or_no",
            index_columns,
        ),
        "information_schema_catalog_name" => {
            t("catalog_name name", |v| Ok(vec![vec![text(v.database)]]))
        }
        other => declared_types::table(other)
            .or_else(|| usage::table(other))
            .or_else(|| other_table(other)),
    }
}

/// Tables with little in them, and about things that are not here.
fn other_table(name: &str) -> Option<SystemTable> {
    let mut rows: Rows = crate::system::table::empty;
    let layout = match name {
        "column_options" => {
            rows = column_options;
            "table_catalog name, table_schema name, table_name name, column_name name, \
             option_name text, option_type text, option_value text"
        }
        other => unused::layout(other)?,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

pub(super) fn yes_no(value: bool) -> Datum {
    text(if value { "YES" } else { "NO" })
}

fn table_name(v: &View<'_>, id: u32) -> Datum {
    v.catalog.table(id).map_or(Datum::Null, |t| text(t.name.as_str()))
}

fn tables(v: &View<'_>) -> Made {
    let row = |schema: &str, name: &str, kind: &str, writable: bool| {
        let mut row = vec![Datum::Null; 17];
        row[0] = text(v.database);
        row[1] = text(schema);
        row[2] = text(name);
        row[3] = text(kind);
        row[9] = yes_no(writable);
        row[10] = text("NO");
        row
    };
    let mut rows = Vec::new();
    for (s, t) in v.tables() {
        let mut r = row(
            &s.name,
            &t.name,
            if s.name.starts_with("pg_temp_") { "LOCAL TEMPORARY" } else { "BASE TABLE" },
            true,
        );
        if let Some(i) = &t.interleave {
            r[12] = table_name(v, i.parent);
            let enforced = i.form == InterleaveForm::Enforced;
            r[13] = if enforced { text(i.on_delete.sql()) } else { Datum::Null };
            r[14] = text(if i.form == InterleaveForm::Locality { "IN" } else { "IN PARENT" });
        }
        r[15] = text("COMMITTED");
        r[16] = row_deletion_policy(t).map_or(Datum::Null, text);
        rows.push(r);
    }
    for view in v.catalog.views() {
        if let Some(s) = v.schema(view.schema) {
            let writable = may_write(v.catalog, view).is_some();
            rows.push(row(&s.name, &view.name, "VIEW", writable));
        }
    }
    for r in listed().iter().map(|of| of.relation) {
        let kind = if r.is_view { "VIEW" } else { "BASE TABLE" };
        rows.push(row(r.schema, r.name, kind, false));
    }
    Ok(rows)
}

pub(super) fn number(value: i32) -> Datum {
    Datum::Int4(value)
}

/// What the standard calls a type.
pub(in crate::system) fn data_type(ty: &SqlType) -> Datum {
    match ty {
        SqlType::Array(_) => text("ARRAY"),
        ty if ty.user_name().is_some() || *ty == SqlType::Citext => text("USER-DEFINED"),
        other => text(other.base_name()),
    }
}

/// The schema that a type is in, of arrays that of their elements.
pub(in crate::system) fn udt_schema(ty: &SqlType) -> Datum {
    let ty = ty.element().unwrap_or(ty);
    if *ty == SqlType::Citext {
        return text("public");
    }
    let user = ty.user_name();
    text(user.map_or("pg_catalog", |(schema, _)| schema))
}

pub(super) fn column_row(
    database: &str,
    schema: &str,
    table: &str,
    name: &str,
    at: i32,
    ty: &SqlType,
) -> Vec<Datum> {
    let mut row = vec![Datum::Null; 47];
    row[0] = text(database);
    row[1] = text(schema);
    row[2] = text(table);
    row[3] = text(name);
    row[4] = number(at);
    row[6] = yes_no(true);
    row[7] = data_type(ty);
    match ty {
        SqlType::Varchar(Some(n)) => {
            row[8] = number(*n as i32);
            row[9] = number((*n as i32).saturating_mul(4));
        }
        SqlType::Char(n) => {
            row[8] = number(*n as i32);
            row[9] = number((*n as i32).saturating_mul(4));
        }
        SqlType::Bit(n) | SqlType::Varbit(Some(n)) => row[8] = number(*n as i32),
        SqlType::Text | SqlType::Varchar(None) => row[9] = number(1_073_741_824),
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => {
            row[10] = number(i32::from(ty.type_len()) * 8);
            row[11] = number(2);
            row[12] = number(0);
        }
        SqlType::Float4 | SqlType::Float8 => {
            row[10] = number(if *ty == SqlType::Float4 { 24 } else { 53 });
            row[11] = number(2);
        }
        SqlType::Numeric(Some((p, s))) => {
            row[10] = number(i32::from(*p));
            row[11] = number(10);
            row[12] = number(i32::from(*s));
        }
        SqlType::Numeric(None) => row[11] = number(10),
        SqlType::Date => row[13] = number(0),
        SqlType::Time
        | SqlType::TimeTz
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Interval => row[13] = number(6),
        _ => {}
    }
    row[25] = text(database);
    row[26] = udt_schema(ty);
    row[27] = text(ty.internal_name());
    row[32] = text(at.to_string());
    [33, 34, 40].into_iter().for_each(|at| row[at] = text("NO"));
    row[41] = text("NEVER");
    row[43] = yes_no(true);
    row[44] = text(ty.name());
    row[46] = text("COMMITTED");
    row
}

/// Database, schema and name of a collation other than that of the database.
pub(super) fn collation_names(v: &View<'_>, oid: Option<u32>) -> [Datum; 3] {
    let Some(own) = oid.and_then(|oid| v.catalog.collation_by_oid(oid)) else {
        return [Datum::Null, Datum::Null, Datum::Null];
    };
    let user = id_of_oid(own.oid).and_then(|id| v.catalog.user_collation(id));
    let schema = user.and_then(|user| v.schema(user.schema));
    let schema = schema.map_or("pg_catalog", |schema| &schema.name);
    [text(v.database), text(schema), text(own.name.as_str())]
}

/// A column's default; a serial column's sequence has its schema if the search path needs it.
fn default(v: &View<'_>, c: &Column) -> Option<String> {
    let shown = shown_default(c)?;
    if c.sequence.is_none() && shown.contains("val(") {
        let asked = [text(shown.as_str()), Datum::Oid(0)];
        let named = v.eval.session.catalog_function("pg_get_expr", &asked).ok().flatten();
        return match named {
            Some(Datum::Text(named)) => Some(named.to_string()),
            _ => Some(shown),
        };
    }
    let Some(id) = c.sequence.filter(|_| shown.starts_with("nextval(")) else { return Some(shown) };
    let (schema, name) = v.catalog.qualified_name(id)?;
    let visible = v.catalog.resolve(v.database_id, v.search_path, &name).map(|r| r.id());
    let mut called = quote_ident(&name);
    if visible != Some(id) {
        called = format!("{}.{called}", quote_ident(&schema));
    }
    Some(format!("nextval('{}'::regclass)", called.replace('\'', "''")))
}

fn columns(v: &View<'_>) -> Made {
    let mut rows = columns_of_users(v);
    rows.extend(columns_of_system(v));
    Ok(rows)
}

fn columns_of_users(v: &View<'_>) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    for (s, t) in v.tables() {
        for c in t.visible_columns() {
            let mut row = column_row(v.database, &s.name, &t.name, &c.name, c.id as i32, &c.ty);
            row[19..22].clone_from_slice(&collation_names(
                v,
                c.options.collation.as_ref().map(|own| own.oid),
            ));
            let user = match c.refinement {
                Some(Refined::Domain(id)) => v.catalog.user_type(id),
                _ => None,
            };
            if let (Some(user), Some(schema)) = (user, user.and_then(|u| v.schema(u.schema))) {
                row[22] = text(v.database);
                row[23] = text(schema.name.as_str());
                row[24] = text(user.name.as_str());
            }
            match c.refinement {
                Some(Refined::Precision(digits)) => row[13] = number(i32::from(digits)),
                Some(Refined::Fields(typmod)) => {
                    let (fields, digits) = IntervalFields::of_typmod(typmod);
                    row[13] = number(digits.map_or(6, i32::from));
                    let digits = digits.map(|digits| format!("({digits})")).unwrap_or_default();
                    let named = fields.map(|f| format!("{f}{digits}").to_uppercase());
                    row[14] = named.map_or(Datum::Null, text);
                }
                _ => {}
            }
            row[5] = default(v, c).map_or(Datum::Null, text);
            row[6] = yes_no(c.nullable);
            if let Some(identity) = c.identity {
                row[34] = text("YES");
                row[35] = text(match identity {
                    braid_catalog::Identity::Always => "ALWAYS",
                    braid_catalog::Identity::ByDefault => "BY DEFAULT",
                });
                let own = v.catalog.sequences().find(|s| Some(s.id) == c.sequence);
                if let Some(s) = own {
                    let numbers = [s.start, s.increment, s.max, s.min];
                    for (at, n) in (36..).zip(numbers) {
                        row[at] = text(n.to_string());
                    }
                    row[40] = yes_no(s.cycle);
                }
            }
            if let Some(expr) = &c.generated {
                row[41] = text("ALWAYS");
                row[42] = text(deparsed(t, expr, Shown::Deparsed).unwrap_or_else(|| expr.clone()));
                row[45] = yes_no(true);
            }
            if c.commit_time {
                row[44] = text("spanner.commit_timestamp");
            }
            rows.push(row);
        }
    }
    for view in v.catalog.views() {
        let Some(s) = v.schema(view.schema) else { continue };
        let writable = may_write(v.catalog, view);
        for (at, (name, ty)) in view.columns.iter().enumerate() {
            let mut row = column_row(v.database, &s.name, &view.name, name, at as i32 + 1, ty);
            let own = view.collations.get(at).copied().flatten();
            row[19..22].clone_from_slice(&collation_names(v, own));
            row[43] = yes_no(writable.as_ref().is_some_and(|columns| columns[at]));
            rows.push(row);
        }
    }
    rows
}

fn columns_of_system(v: &View<'_>) -> impl Iterator<Item = Vec<Datum>> {
    let database = text(v.database);
    SYSTEM_COLUMNS.iter().map(move |row| {
        let mut row = row.clone();
        for (at, beside) in [(0, 1), (19, 20), (22, 23), (25, 26)] {
            if !row[beside].is_null() {
                row[at] = database.clone();
            }
        }
        row
    })
}

/// Columns of the relations of the system, without the database: in each they are the same.
static SYSTEM_COLUMNS: LazyLock<Vec<Vec<Datum>>> = LazyLock::new(|| {
    let rows = listed().iter().flat_map(|of| {
        let columns = of.columns.iter().enumerate();
        columns.map(|(at, column)| system_column_row(of, at, column))
    });
    rows.collect()
});

/// A column of a relation of the system, to which nobody writes.
fn system_column_row(of: &Listed, at: usize, column: &SystemColumn) -> Vec<Datum> {
    let relation = of.relation;
    let (schema, number) = (relation.schema, at as i32 + 1);
    let mut row = column_row("", schema, relation.name, column.name, number, &column.ty);
    row[6] = yes_no(!relation.requires(at, column.name));
    // That of the database needs no name.
    if ![0, DEFAULT_COLLATION].contains(&of.collation(column)) {
        (row[20], row[21]) = (text("pg_catalog"), text("C"));
    }
    row[43] = yes_no(false);
    let own = system_type_name(column.declared).filter(|_| column.declared != column.ty.oid());
    let Some(own) = own else { return row };
    match own.strip_prefix("information_schema.") {
        Some(domain) => {
            (row[23], row[24]) = (text(schema), text(domain));
        }
        None if own.ends_with("[]") => row[27] = text(format!("_{}", own.trim_end_matches("[]"))),
        None => {
            row[7] = text(own.as_str());
            row[27] = text(own);
        }
    }
    row
}

fn column_options(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (s, t) in v.tables() {
        for c in t.visible_columns().filter(|c| c.commit_time) {
            let names = [v.database, &s.name, &t.name, &c.name];
            let option = ["allow_commit_timestamp", "BOOL", "TRUE"];
            rows.push(names.into_iter().chain(option).map(text).collect());
        }
    }
    Ok(rows)
}

/// (schema, table, constraint name, kind, own columns, unique constraint's columns' places).
pub(super) struct Constraint<'a> {
    pub(super) schema: &'a str,
    pub(super) table: &'a braid_catalog::Table,
    pub(super) name: &'a str,
    pub(super) kind: &'static str,
    columns: Vec<u32>,
    pub(super) foreign: Option<&'a braid_catalog::ForeignKey>,
    deferral: Option<Deferral>,
}

pub(super) fn constraints<'a>(v: &View<'a>) -> Vec<Constraint<'a>> {
    let mut out = Vec::new();
    for (s, t) in v.tables() {
        for i in v.indexes(t) {
            let kind = if i.id == t.primary.id {
                "PRIMARY KEY"
            } else if i.constraint == Some(IndexConstraint::Unique) {
                "UNIQUE"
            } else {
                continue;
            };
            let columns = i.columns.iter().map(|c| c.column).collect();
            out.push(Constraint {
                schema: &s.name,
                table: t,
                name: &i.name,
                kind,
                columns,
                foreign: None,
                deferral: i.deferral,
            });
        }
        for fk in &t.foreign_keys {
            out.push(Constraint {
                schema: &s.name,
                table: t,
                name: &fk.name,
                kind: "FOREIGN KEY",
                columns: fk.columns.clone(),
                foreign: Some(fk),
                deferral: fk.deferral,
            });
        }
        for c in &t.checks {
            out.push(Constraint {
                schema: &s.name,
                table: t,
                name: &c.name,
                kind: "CHECK",
                columns: Vec::new(),
                foreign: None,
                deferral: None,
            });
        }
    }
    out
}

/// The unique index of the referenced table that a foreign key leans on.
pub(in crate::system) fn referenced<'a>(
    v: &View<'a>,
    fk: &braid_catalog::ForeignKey,
) -> Option<(&'a braid_catalog::Table, &'a braid_catalog::Index)> {
    let parent = v.catalog.table(fk.parent)?;
    let index = parent.all_indexes().find(|i| {
        (i.unique && i.predicate.is_none() || i.id == parent.primary.id)
            && i.columns.len() == fk.parent_columns.len()
            && i.columns.iter().all(|c| fk.parent_columns.contains(&c.column))
    })?;
    Some((parent, index))
}

fn key_column_usage(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for c in constraints(v) {
        for (at, id) in c.columns.iter().enumerate() {
            let Some(column) = c.table.column(*id) else { continue };
            let place = c.foreign.and_then(|fk| {
                let (_, index) = referenced(v, fk)?;
                index.columns.iter().position(|k| k.column == fk.parent_columns[at])
            });
            rows.push(vec![
                text(v.database),
                text(c.schema),
                text(c.name),
                text(v.database),
                text(c.schema),
                text(c.table.name.as_str()),
                text(column.name.as_str()),
                number(at as i32 + 1),
                place.map_or(Datum::Null, |p| number(p as i32 + 1)),
            ]);
        }
    }
    Ok(rows)
}

fn constraint_column_usage(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for c in constraints(v) {
        let (table, columns) = match c.foreign {
            Some(fk) => match v.catalog.table(fk.parent) {
                Some(parent) => (&**parent, fk.parent_columns.clone()),
                None => continue,
            },
            None => {
                let check = c.table.checks.iter().find(|k| c.kind == "CHECK" && k.name == c.name);
                let checked = check.map(|k| checked_columns(c.table, &k.expr));
                (c.table, checked.unwrap_or_else(|| c.columns.clone()))
            }
        };
        let schema = v.schema(table.schema).map_or(c.schema, |s| s.name.as_str());
        for id in columns {
            let Some(column) = table.column(id) else { continue };
            rows.push(vec![
                text(v.database),
                text(schema),
                text(table.name.as_str()),
                text(column.name.as_str()),
                text(v.database),
                text(c.schema),
                text(c.name),
            ]);
        }
    }
    Ok(rows)
}

fn table_constraints(v: &View<'_>) -> Made {
    Ok(constraints(v)
        .into_iter()
        .map(|c| {
            vec![
                text(v.database),
                text(c.schema),
                text(c.name),
                text(v.database),
                text(c.schema),
                text(c.table.name.as_str()),
                text(c.kind),
                yes_no(c.deferral.is_some()),
                yes_no(c.deferral == Some(Deferral::Deferred)),
                text("YES"),
                if c.kind == "UNIQUE" { text("YES") } else { Datum::Null },
            ]
        })
        .collect())
}

fn check_constraints(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (s, t) in v.tables() {
        for c in &t.checks {
            rows.push(vec![
                text(v.database),
                text(s.name.as_str()),
                text(c.name.as_str()),
                text(match deparsed(t, &c.expr, Shown::Deparsed) {
                    Some(shown) => format!("({shown})"),
                    None => check_text(&c.expr),
                }),
            ]);
        }
    }
    rows.extend(declared_types::domain_checks(v));
    Ok(rows)
}

/// A condition as it was written.
pub(super) fn check_text(condition: &str) -> String {
    definition::check_text(condition)["CHECK ".len()..].to_string()
}

fn rule(action: RefAction) -> Datum {
    text(action.sql())
}

fn referential_constraints(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (s, t) in v.tables() {
        for fk in &t.foreign_keys {
            let target = referenced(v, fk);
            let schema = target.and_then(|(p, _)| v.schema(p.schema)).map(|s| s.name.clone());
            rows.push(vec![
                text(v.database),
                text(s.name.as_str()),
                text(fk.name.as_str()),
                text(v.database),
                schema.map_or(Datum::Null, text),
                target.map_or(Datum::Null, |(_, i)| text(i.name.as_str())),
                text(if fk.match_full { "FULL" } else { "NONE" }),
                rule(fk.on_update),
                rule(fk.on_delete),
            ]);
        }
    }
    Ok(rows)
}

fn schemata(v: &View<'_>) -> Made {
    let row = |name: &str| vec![text(v.database), text(name), text(v.user)];
    let mut rows = vec![row("pg_catalog"), row("information_schema")];
    rows.extend(v.schemas().map(|s| row(&s.name)));
    Ok(rows)
}

fn views(v: &View<'_>) -> Made {
    Ok(v.catalog
        .views()
        .filter_map(|view| Some((v.schema(view.schema)?, view)))
        .map(|(s, view)| {
            vec![
                text(v.database),
                text(s.name.as_str()),
                text(view.name.as_str()),
                v.query_of(view.id, &view.definition),
                text(view.check_option.map_or("NONE", CheckOption::sql)),
                yes_no(may_write(v.catalog, view).is_some()),
                yes_no(may_write(v.catalog, view).is_some()),
                text("NO"),
                text("NO"),
                text("NO"),
            ]
        })
        .chain(listed().iter().map(|of| of.relation).filter(|r| r.is_view).map(|r| {
            // Of these there are no queries.
            let names = [v.database, r.schema, r.name].map(text);
            let no = [false; 5].map(yes_no);
            names.into_iter().chain([Datum::Null, text("NONE")]).chain(no).collect()
        }))
        .collect())
}

fn sequences(v: &View<'_>) -> Made {
    // Those of identity columns are a part of their column.
    let of_identity = |s: &Sequence| {
        let column = s.owned_by.and_then(|(table, column)| v.catalog.table(table)?.column(column));
        column.is_some_and(|column| column.identity.is_some())
    };
    Ok(v.catalog
        .sequences()
        .filter(|s| !of_identity(s))
        .filter_map(|s| Some((v.schema(s.schema)?, s)))
        .map(|(schema, s)| {
            vec![
                text(v.database),
                text(schema.name.as_str()),
                text(s.name.as_str()),
                text(s.ty.base_name()),
                number(i32::from(s.ty.type_len()) * 8),
                number(2),
                number(0),
                text(s.start.to_string()),
                text(s.min.to_string()),
                text(s.max.to_string()),
                text(s.increment.to_string()),
                yes_no(s.cycle),
            ]
        })
        .collect())
}

fn indexes(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (s, t) in v.tables() {
        for i in v.indexes(t) {
            let primary = i.id == t.primary.id;
            rows.push(vec![
                text(v.database),
                text(s.name.as_str()),
                text(t.name.as_str()),
                text(if primary { "PRIMARY_KEY" } else { i.name.as_str() }),
                text(if primary { "PRIMARY_KEY" } else { "INDEX" }),
                i.interleave_in.map_or(Datum::Null, |p| table_name(v, p)),
                yes_no(i.is_unique() || primary),
                text("NO"),
                text("READ_WRITE"),
                text("NO"),
            ]);
        }
    }
    Ok(rows)
}

fn index_columns(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (s, t) in v.tables() {
        for i in v.indexes(t) {
            let primary = i.id == t.primary.id;
            let keys = i.columns.iter().enumerate().map(|(at, c)| {
                let order = if c.desc { "DESC" } else { "ASC" };
                (c.column, number(at as i32 + 1), text(order))
            });
            let included = i.include.iter().map(|c| (*c, Datum::Null, Datum::Null));
            for (id, place, order) in keys.chain(included) {
                let Some(column) = t.column(id) else { continue };
                rows.push(vec![
                    text(v.database),
                    text(s.name.as_str()),
                    text(t.name.as_str()),
                    text(if primary { "PRIMARY_KEY" } else { i.name.as_str() }),
                    text(if primary { "PRIMARY_KEY" } else { "INDEX" }),
                    text(t.key_name(id)),
                    place,
                    order,
                    yes_no(column.nullable),
                ]);
            }
        }
    }
    Ok(rows)
}
