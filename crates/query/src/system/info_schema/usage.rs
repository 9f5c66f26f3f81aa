//! What uses what: columns their types, constraints their tables, views their tables and columns.

use std::collections::BTreeSet;

use braid_catalog::{Refined, Relation, TypeKind, oid_of};
use braid_sql::session::checked_columns;
use braid_sql::views::may_use_column;
use braid_types::SqlType;

use super::relations::{Made, constraints, udt_schema};
use crate::system::table::{Rows, SystemTable, View, text};

/// A table about uses.
pub(super) fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (&'static str, Rows) = match name {
        "column_udt_usage" => (
            "udt_catalog name, udt_schema name, udt_name name, table_catalog name, \
             table_schema name, table_name name, column_name name",
            column_udt_usage,
        ),
        "column_domain_usage" => (
            "domain_catalog name, domain_schema name, domain_name name, table_catalog name, \
             table_schema name, table_name name, column_name name",
            column_domain_usage,
        ),
        "column_column_usage" => (
            "table_catalog name, table_schema name, table_name name, column_name name, \
             dependent_column name",
            column_column_usage,
        ),
        "constraint_table_usage" => (
            "table_catalog name, table_schema name, table_name name, constraint_catalog name, \
             constraint_schema name, constraint_name name",
            constraint_table_usage,
        ),
        "view_table_usage" => (
            "view_catalog name, view_schema name, view_name name, table_catalog name, \
             table_schema name, table_name name",
            view_table_usage,
        ),
        "view_column_usage" => (
            "view_catalog name, view_schema name, view_name name, table_catalog name, \
             table_schema name, table_name name, column_name name",
            view_column_usage,
        ),
        "view_routine_usage" => (
            "table_catalog name, table_schema name, table_name name, specific_catalog name, \
             specific_schema name, specific_name name",
            view_routine_usage,
        ),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

fn column_udt_usage(v: &View<'_>) -> Made {
    let row = |ty: &SqlType, schema: &str, table: &str, column: &str| {
        let mut row = vec![text(v.database), udt_schema(ty), text(ty.internal_name())];
        row.extend([v.database, schema, table, column].map(text));
        row
    };
    let mut rows = Vec::new();
    for (s, t) in v.tables() {
        rows.extend(t.visible_columns().map(|c| row(&c.ty, &s.name, &t.name, &c.name)));
    }
    for view in v.catalog.views() {
        let Some(s) = v.schema(view.schema) else { continue };
        rows.extend(view.columns.iter().map(|(name, ty)| row(ty, &s.name, &view.name, name)));
    }
    Ok(rows)
}

fn column_domain_usage(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (s, t) in v.tables() {
        for c in t.visible_columns() {
            let Some(Refined::Domain(id)) = c.refinement else { continue };
            let Some(domain) = v.catalog.user_type(id) else { continue };
            let Some(schema) = v.schema(domain.schema) else { continue };
            if !matches!(domain.kind, TypeKind::Domain(_)) {
                continue;
            }
            let names = [v.database, &schema.name, &domain.name, v.database];
            rows.push(names.into_iter().chain([&*s.name, &t.name, &c.name]).map(text).collect());
        }
    }
    Ok(rows)
}

/// Columns that generated ones are computed of.
fn column_column_usage(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (s, t) in v.tables() {
        for c in t.visible_columns() {
            let Some(generated) = &c.generated else { continue };
            for used in checked_columns(t, generated).into_iter().filter_map(|id| t.column(id)) {
                rows.push([v.database, &s.name, &t.name, &used.name, &c.name].map(text).to_vec());
            }
        }
    }
    Ok(rows)
}

/// Of a key its own table, of a foreign key the one that it refers to.
fn constraint_table_usage(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for c in constraints(v) {
        let table = match c.foreign {
            Some(fk) => v.catalog.table(fk.parent).map(|parent| &**parent),
            None if c.kind == "CHECK" => None,
            None => Some(c.table),
        };
        let Some(table) = table else { continue };
        let Some(schema) = v.schema(table.schema) else { continue };
        let names = [v.database, &schema.name, &table.name, v.database, c.schema, c.name];
        rows.push(names.map(text).to_vec());
    }
    Ok(rows)
}

/// The views of the session's database, each with a relation that it names.
fn used<'a>(v: &View<'a>) -> Vec<(&'a str, &'a braid_catalog::View, Relation)> {
    let mut out = Vec::new();
    for view in v.catalog.views() {
        let Some(schema) = v.schema(view.schema) else { continue };
        let of: BTreeSet<u32> = view.definition.depends_on.iter().copied().collect();
        for relation in of.into_iter().filter_map(|id| v.catalog.relation_by_id(id)) {
            out.push((schema.name.as_str(), &**view, relation));
        }
    }
    out
}

/// The schema, the name and the columns of a table or view that is used; of no materialized view.
fn shown(v: &View<'_>, relation: &Relation) -> Option<(String, String, Vec<String>)> {
    let (schema, name, columns) = match relation {
        Relation::Table(t) | Relation::Partition(t) if t.materialized().is_none() => {
            (t.schema, &t.name, t.visible_columns().map(|c| c.name.clone()).collect())
        }
        Relation::View(view) => {
            (view.schema, &view.name, view.columns.iter().map(|(name, _)| name.clone()).collect())
        }
        _ => return None,
    };
    Some((v.schema(schema)?.name.clone(), name.clone(), columns))
}

fn view_table_usage(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (schema, view, relation) in used(v) {
        let Some((of, table, _)) = shown(v, &relation) else { continue };
        rows.push([v.database, schema, &view.name, v.database, &of, &table].map(text).to_vec());
    }
    Ok(rows)
}

/// Columns that the text of a view may mean.
fn view_column_usage(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (schema, view, relation) in used(v) {
        let Some((of, table, columns)) = shown(v, &relation) else { continue };
        for column in columns.iter().filter(|c| may_use_column(&view.definition, &table, c)) {
            let names = [v.database, schema, &view.name, v.database, &of, &table, column];
            rows.push(names.map(text).to_vec());
        }
    }
    Ok(rows)
}

fn view_routine_usage(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for view in v.catalog.views() {
        let Some(schema) = v.schema(view.schema) else { continue };
        let of = view.definition.depends_on.iter();
        for f in of.filter_map(|id| v.catalog.function(*id)) {
            let Some(own) = v.schema(f.schema) else { continue };
            let name = format!("{}_{}", f.name, oid_of(f.id));
            let names = [v.database, &schema.name, &view.name, v.database, &own.name, &name];
            rows.push(names.map(text).to_vec());
        }
    }
    Ok(rows)
}
