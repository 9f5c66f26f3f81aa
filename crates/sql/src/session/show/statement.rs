//! SHOW statements.

use std::sync::Arc;

use braid_catalog::{Catalog, Index, Table};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, TimeZone};

use super::super::Context;
use super::super::settings::{ShownSetting, shown_settings};
use crate::cluster_settings::shown;
use crate::database::EPOCH_MICROS;
use crate::general_query::ColumnInfo;
use braid_parser::Show;
use braid_rows::Row;
use braid_scalar::SessionFunctions;

/// Result columns of a SHOW.
pub(crate) fn columns(s: &Show) -> Vec<ColumnInfo> {
    let names: &[&str] = match s {
        Show::Variable(n) => {
            return vec![ColumnInfo::computed(
                super::super::settings::shown_name(n),
                SqlType::Text,
            )];
        }
        Show::All => &["name", "setting", "description"],
        Show::Tables(_) => &["schema_name", "table_name", "type", "parent_table"],
        Show::Databases => &["database_name"],
        Show::Schemas => &["schema_name"],
        Show::Columns(_) => &["column_name", "data_type", "is_nullable", "column_default"],
        Show::Indexes(_) => {
            &["table_name", "index_name", "unique", "columns", "storing", "interleaved_in"]
        }
        Show::Constraints(_) => &["table_name", "constraint_name", "constraint_type", "details"],
        Show::Sequences => &["schema_name", "sequence_name"],
        Show::Views => &["schema_name", "view_name"],
        Show::Jobs => &["id", "kind", "statement", "state", "step", "fraction", "error"],
        Show::Ranges(_) | Show::RangeOfRow(..) => super::ranges::COLUMNS,
        Show::ClusterSettings => shown::SETTING_COLUMNS,
        Show::ClusterSetting(name) => return vec![ColumnInfo::computed(name, SqlType::Text)],
        Show::ClusterSettingOfNodes(_) => shown::NODE_COLUMNS,
        Show::DeniedQueries => shown::RULE_COLUMNS,
        Show::Policies => &["table_name", "policy", "deleted_rows", "undeletable_rows", "last_run"],
        Show::InterleaveProposals(_) => super::proposals::COLUMNS,
        Show::InterleaveTree(_) => &["tree", "kind", "key", "on_delete", "rows"],
        Show::Create(_) => &["table_name", "create_statement"],
    };
    names.iter().map(|n| ColumnInfo::computed(*n, SqlType::Text)).collect()
}

fn t(s: impl AsRef<str>) -> Datum {
    Datum::text(s.as_ref())
}

/// Result rows of a SHOW.
pub(crate) fn rows(ctx: &Context, s: &Show) -> SqlResult<Vec<Row>> {
    let c = &ctx.catalog;
    let own = |schema: u32| c.schema_by_id(schema).is_some_and(|s| s.database == ctx.database);
    Ok(match s {
        Show::Variable(n) => vec![vec![t(variable(ctx, n)?)]],
        Show::All => settings(ctx),
        Show::Tables(schema) => tables(ctx, schema.as_deref()),
        Show::Databases => c.databases().map(|d| vec![t(&d.name)]).collect(),
        Show::Schemas => c.schemas(ctx.database).map(|s| vec![t(&s.name)]).collect(),
        Show::Columns(n) => columns_of(&*ctx.stored(n)?),
        Show::Indexes(n) => {
            let table = ctx.stored(n)?;
            let shown = |i: &&Index| !(i.id == table.primary.id && table.has_row_id());
            table.all_indexes().filter(shown).map(|i| index(c, &table, i)).collect()
        }
        Show::Constraints(n) => {
            let table = ctx.table(n)?;
            super::create::constraints(c, &table)
                .into_iter()
                .map(|(name, kind, def)| vec![t(&table.name), t(name), t(kind), t(def)])
                .collect()
        }
        Show::Sequences => c
            .sequences()
            .filter(|s| own(s.schema))
            .map(|s| vec![t(ctx.schema_name(s.schema)), t(&s.name)])
            .collect(),
        Show::Views => c
            .views()
            .filter(|v| own(v.schema))
            .map(|v| vec![t(ctx.schema_name(v.schema)), t(&v.name)])
            .collect(),
        Show::Jobs => super::super::jobs::rows(ctx)?,
        Show::Ranges(of) => {
            let of = of.as_ref().map(|name| ctx.table(name)).transpose()?;
            super::ranges::rows(ctx, of.as_ref())?
        }
        Show::RangeOfRow(table, values) => super::ranges::of_row(ctx, table, values)?,
        Show::ClusterSettings => as_texts(ctx, shown::setting_rows(ctx.db.cluster_settings())),
        Show::ClusterSetting(name) => shown::value(&ctx.db, name)?,
        Show::ClusterSettingOfNodes(name) => shown::of_nodes(&ctx.db, name)?,
        Show::DeniedQueries => {
            let now = ctx.db.clock_micros();
            as_texts(ctx, shown::denied_queries(ctx.db.cluster_settings(), now))
        }
        Show::Policies => policies(ctx),
        Show::InterleaveProposals(n) => {
            let only = n.as_ref().map(|n| ctx.table(n)).transpose()?;
            super::proposals::rows(ctx, only.as_ref())
        }
        Show::InterleaveTree(n) => {
            let only = n.as_ref().map(|n| ctx.table(n)).transpose()?;
            super::tree::rows(ctx, only.as_ref())
        }
        Show::Create(n) => {
            let r = ctx.relation(n)?;
            vec![vec![t(n.join(".")), t(super::create::create_statement(ctx, &r)?)]]
        }
    })
}

/// Rows as SHOW gives them: all of text.
fn as_texts(ctx: &Context, rows: Vec<Row>) -> Vec<Row> {
    let style = ctx.session.style();
    let shown = |value: Datum| match value {
        Datum::Null => Datum::Null,
        other => other.to_text(style).map_or(Datum::Null, Datum::text),
    };
    rows.into_iter().map(|row| row.into_iter().map(shown).collect()).collect()
}

/// Row deletion policies, and what they have done since the process began.
fn policies(ctx: &Context) -> Vec<Row> {
    let c = &ctx.catalog;
    let own = |t: &&Arc<Table>| {
        c.schema_by_id(t.schema).is_some_and(|s| s.database == ctx.database)
            && t.upkeep.ttl.is_some()
    };
    c.tables()
        .filter(own)
        .map(|table| {
            let done = ctx.db.expiry().of(table.id);
            let name = format!("{}.{}", ctx.schema_name(table.schema), table.name);
            let policy = super::create::row_deletion_policy(table).unwrap_or_default();
            let last = (done.last_us as i64) - EPOCH_MICROS;
            let last = match done.last_us {
                0 => Datum::Null,
                _ => Datum::TimestampTz(last).to_text(TimeZone::utc()).map_or(Datum::Null, t),
            };
            let (gone, kept) = (done.deleted.to_string(), done.undeletable.to_string());
            vec![t(name), t(policy), t(gone), t(kept), last]
        })
        .collect()
}

fn settings(ctx: &Context) -> Vec<Row> {
    let row = |s: &ShownSetting| {
        let value = variable(ctx, s.name).unwrap_or_default();
        vec![t(s.name), t(value), t(s.about)]
    };
    shown_settings().iter().map(row).collect()
}

/// Tables and views of a schema, or of those on the search path.
fn tables(ctx: &Context, schema: Option<&str>) -> Vec<Row> {
    let c = &ctx.catalog;
    let wanted = |id: u32| {
        let own = c.schema_by_id(id).is_some_and(|s| s.database == ctx.database);
        let name = ctx.schema_name(id);
        own && schema.map_or_else(|| ctx.search_path.contains(&name), |s| name == s)
    };
    let parent = |p: Option<u32>| p.and_then(|p| c.table(p)).map_or(Datum::Null, |p| t(&p.name));
    let mut out: Vec<Row> = c
        .tables()
        .filter(|x| wanted(x.schema))
        .map(|x| {
            let p = parent(x.interleave.as_ref().map(|i| i.parent));
            vec![t(ctx.schema_name(x.schema)), t(&x.name), t(x.kind()), p]
        })
        .collect();
    out.extend(
        c.views()
            .filter(|v| wanted(v.schema))
            .map(|v| vec![t(ctx.schema_name(v.schema)), t(&v.name), t("view"), Datum::Null]),
    );
    out
}

fn columns_of(table: &Table) -> Vec<Row> {
    table
        .visible_columns()
        .map(|col| {
            let null = if col.nullable { "YES" } else { "NO" };
            let default = col.default.as_ref().map_or(Datum::Null, t);
            vec![t(&col.name), t(col.ty.name()), t(null), default]
        })
        .collect()
}

fn index(c: &Catalog, table: &Table, i: &Index) -> Row {
    let name = |id: u32| table.key_name(id);
    let cols: Vec<_> = i
        .columns
        .iter()
        .map(|c| format!("{}{}", name(c.column), if c.desc { " DESC" } else { "" }))
        .collect();
    let storing: Vec<_> = i.include.iter().map(|c| name(*c)).collect();
    let inside = i.interleave_in.and_then(|p| c.table(p)).map_or(Datum::Null, |p| t(&p.name));
    vec![
        t(&table.name),
        t(&i.name),
        t(if i.is_unique() { "t" } else { "f" }),
        t(cols.join(", ")),
        t(storing.join(", ")),
        inside,
    ]
}

fn variable(ctx: &Context, name: &str) -> SqlResult<String> {
    match name {
        "session_authorization" => Ok(ctx.session.session_user()),
        _ => ctx.session.setting(name).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("unrecognized configuration parameter \"{name}\""),
            )
        }),
    }
}
