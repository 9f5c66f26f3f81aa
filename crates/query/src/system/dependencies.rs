//! `pg_depend` and `pg_rewrite`: what needs what. Tools that dump a database order its objects by
//! it, and look for the sequences that columns own.

use braid_catalog::{Definition, Relation, Table, TypeKind, oid_of};
use braid_sql::session::checked_columns;
use braid_types::oid::{CITEXT, CITEXT_ARRAY};
use braid_types::{Datum, SqlResult};

use super::info_schema::referenced;
use super::table::{SystemTable, View, constraint_oid, default_oid, flag, rule_oid, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// Oids of catalogs.
const CLASS: u32 = 1259;
const TYPE: u32 = 1247;
const ATTRDEF: u32 = 2604;
const PROC: u32 = 1255;
const REWRITE: u32 = 2618;
const CONSTRAINT: u32 = 2606;
const NAMESPACE: u32 = 2615;
const EXTENSION: u32 = 3079;

/// A table about dependencies.
pub fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (_, super::table::Rows) = match name {
        "pg_depend" => (
            "classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, \
             refobjsubid int4, deptype char",
            pg_depend,
        ),
        "pg_rewrite" => (
            "oid oid, rulename name, ev_class oid, ev_type char, ev_enabled char, \
             is_instead bool, ev_qual pg_node_tree, ev_action pg_node_tree",
            pg_rewrite,
        ),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

/// An object, or a column: the catalog that it is in, its oid, its number.
type Place = (u32, u32, u32);

fn row(what: Place, needs: Place, how: &str) -> Vec<Datum> {
    let place =
        |(class, oid, part): Place| [Datum::Oid(class), Datum::Oid(oid), Datum::Int4(part as i32)];
    place(what).into_iter().chain(place(needs)).chain([text(how)]).collect()
}

/// What extensions bring: dumps leave that to them.
fn of_extensions(v: &View<'_>) -> Vec<Vec<Datum>> {
    let Some(extension) = v.catalog.extension(v.database_id, "citext") else { return Vec::new() };
    let brought = |ty: u32| row((TYPE, ty, 0), (EXTENSION, extension.oid, 0), "e");
    [CITEXT, CITEXT_ARRAY].map(brought).into()
}

fn pg_depend(v: &View<'_>) -> Made {
    let mut rows = of_extensions(v);
    for s in v.catalog.sequences() {
        if v.schema(s.schema).is_some() {
            rows.push(row((CLASS, oid_of(s.id), 0), (NAMESPACE, oid_of(s.schema), 0), "n"));
        }
        let Some((table, column)) = s.owned_by else { continue };
        let found = v.catalog.table(table).and_then(|t| t.column(column));
        let how = if found.is_some_and(|c| c.identity.is_some()) { "i" } else { "a" };
        rows.push(row((CLASS, oid_of(s.id), 0), (CLASS, oid_of(table), column), how));
    }
    for (schema, t) in v.stored() {
        let own = (CLASS, oid_of(t.id), 0);
        rows.push(row(own, (NAMESPACE, oid_of(schema.id), 0), "n"));
        columns(v, t, &mut rows);
        indexes(v, t, &mut rows);
        constraints(v, t, &mut rows);
        // So that a function over its rows comes behind it in a dump.
        let of_rows = (TYPE, v.catalog.row_type(t).oid, 0);
        rows.push(row(of_rows, (CLASS, oid_of(t.id), 0), "i"));
        if let Some(p) = t.window() {
            rows.push(row((CLASS, oid_of(p.id), 0), (CLASS, oid_of(p.parent), 0), "a"));
            for i in &p.indexes {
                rows.push(row((CLASS, oid_of(i.id), 0), (CLASS, oid_of(i.of), 0), "P"));
            }
        }
    }
    for view in v.catalog.views().filter(|view| v.schema(view.schema).is_some()) {
        let schema = (NAMESPACE, oid_of(view.schema), 0);
        rows.push(row((CLASS, oid_of(view.id), 0), schema, "n"));
        let of_rows = (TYPE, v.catalog.row_type_of_view(view).oid, 0);
        rows.push(row(of_rows, (CLASS, oid_of(view.id), 0), "i"));
    }
    for (view, definition) in definitions(v) {
        let rule = (REWRITE, rule_oid(view), 0);
        rows.push(row(rule, (CLASS, oid_of(view), 0), "i"));
        for needed in &definition.depends_on {
            let class = if v.catalog.function(*needed).is_some() { PROC } else { CLASS };
            rows.push(row(rule, (class, oid_of(*needed), 0), "n"));
        }
    }
    for f in v.catalog.functions() {
        let types = f.params.iter().map(|p| &p.ty).chain([&f.returns]);
        let mut seen = Vec::new();
        for ty in types.map(|ty| ty.element().unwrap_or(ty).oid()) {
            if ty >= oid_of(0) && !seen.contains(&ty) {
                seen.push(ty);
                rows.push(row((PROC, oid_of(f.id), 0), (TYPE, ty, 0), "n"));
            }
        }
    }
    for user in v.catalog.user_types() {
        if let TypeKind::Composite(fields) = &user.kind {
            let own = (CLASS, oid_of(user.id), 0);
            rows.push(row(own, (TYPE, oid_of(user.id), 0), "i"));
            for field in fields {
                let ty = field.ty.element().unwrap_or(&field.ty).oid();
                if ty >= oid_of(0) {
                    rows.push(row((own.0, own.1, field.number), (TYPE, ty, 0), "n"));
                }
            }
        }
        let TypeKind::Domain(domain) = &user.kind else { continue };
        let base = domain.base.element().unwrap_or(&domain.base).oid();
        if base >= oid_of(0) {
            rows.push(row((TYPE, oid_of(user.id), 0), (TYPE, base, 0), "n"));
        }
    }
    Ok(rows)
}

/// Defaults belong to their columns, and those of serial columns need sequences.
fn columns(v: &View<'_>, t: &Table, rows: &mut Vec<Vec<Datum>>) {
    for c in t.visible_columns() {
        let column = (CLASS, oid_of(t.id), c.id);
        if c.generated.is_some() || c.default.is_some() {
            let default = (ATTRDEF, default_oid(t.id, c.id), 0);
            rows.push(row(default, column, "a"));
            let own = c.sequence.filter(|_| c.default.is_some()).map(oid_of);
            let named = || named_sequence(v, c.default.as_deref()?);
            if let Some(sequence) = own.or_else(named) {
                rows.push(row(default, (CLASS, sequence, 0), "n"));
            }
        }
        let ty = c.ty.element().unwrap_or(&c.ty).oid();
        if ty >= oid_of(0) {
            rows.push(row(column, (TYPE, ty, 0), "n"));
        }
    }
}

/// An index belongs to its constraint, which belongs to columns; or it belongs to columns.
fn indexes(v: &View<'_>, t: &Table, rows: &mut Vec<Vec<Datum>>) {
    for (at, i) in v.indexes(t).into_iter().enumerate() {
        let index = (CLASS, oid_of(i.id), 0);
        let is_constraint = i.id == t.primary.id || i.constraint.is_some();
        let dependent = match is_constraint {
            true => (CONSTRAINT, constraint_oid(t.id, at), 0),
            false => index,
        };
        if is_constraint {
            rows.push(row(index, dependent, "i"));
        }
        let declared = i.columns.iter().map(|c| c.column).chain(i.include.iter().copied());
        let expressions = declared.clone().filter_map(|c| t.column(c)?.expression.as_deref());
        let mut needed: Vec<u32> = declared
            .clone()
            .filter(|c| t.column(*c).is_some_and(|c| c.expression.is_none()))
            .chain(expressions.chain(i.predicate.as_deref()).flat_map(|e| checked_columns(t, e)))
            .collect();
        // Nothing else would lead to the table.
        if needed.is_empty() || declared.clone().any(|c| !needed.contains(&c)) {
            needed.push(0);
        }
        needed.sort_unstable();
        needed.dedup();
        rows.extend(needed.iter().map(|c| row(dependent, (CLASS, oid_of(t.id), *c), "a")));
    }
}

/// What is checked belongs to its columns; a foreign key needs those that it refers to, with their
/// index.
fn constraints(v: &View<'_>, t: &Table, rows: &mut Vec<Vec<Datum>>) {
    for (at, check) in t.checks.iter().enumerate() {
        let own = (CONSTRAINT, constraint_oid(t.id, 200 + at), 0);
        let columns = checked_columns(t, &check.expr);
        for how in ["a", "n"] {
            rows.extend(columns.iter().map(|c| row(own, (CLASS, oid_of(t.id), *c), how)));
        }
    }
    for fk in &t.foreign_keys {
        let own = (CONSTRAINT, oid_of(fk.id), 0);
        rows.extend(fk.columns.iter().map(|c| row(own, (CLASS, oid_of(t.id), *c), "a")));
        let there = |c: &u32| row(own, (CLASS, oid_of(fk.parent), *c), "n");
        rows.extend(fk.parent_columns.iter().map(there));
        if let Some((_, index)) = referenced(v, fk) {
            rows.push(row(own, (CLASS, oid_of(index.id), 0), "n"));
        }
    }
}

/// The oid of the sequence in a default `nextval('name')` that is not the column's own.
fn named_sequence(v: &View<'_>, default: &str) -> Option<u32> {
    let name = default.split_once("nextval('")?.1.split_once('\'')?.0;
    v.eval.session.relation_oid(name).ok()?
}

/// Views of both kinds of the session's database, and their queries.
fn definitions<'a>(v: &View<'a>) -> impl Iterator<Item = (u32, &'a Definition)> {
    let (catalog, database) = (v.catalog, v.database_id);
    catalog.definitions().filter(move |(view, _)| {
        let schema = match catalog.relation_by_id(*view) {
            Some(Relation::Table(t) | Relation::Partition(t)) => t.schema,
            Some(Relation::View(view)) => view.schema,
            _ => return false,
        };
        catalog.schema_by_id(schema).is_some_and(|s| s.database == database)
    })
}

/// The rule that makes a view of a relation.
fn pg_rewrite(v: &View<'_>) -> Made {
    let rule = |(view, definition): (u32, &Definition)| {
        vec![
            Datum::Oid(rule_oid(view)),
            text("_RETURN"),
            Datum::Oid(oid_of(view)),
            text("1"),
            text("O"),
            flag(true),
            text("<>"),
            text(definition.query.as_str()),
        ]
    };
    Ok(definitions(v).map(rule).collect())
}
