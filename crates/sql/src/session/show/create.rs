//! Descriptors back to SQL: what SHOW CREATE prints can be executed and gives the same table.

use std::sync::Arc;

use braid_catalog::{
    Catalog, Check, Column, Deferral, ForeignKey, Identity, Index, IndexConstraint, InterleaveForm,
    Materialized, RefAction, Refined, Relation, Sequence, Table, choose_name, id_of_oid, oid_of,
};
use braid_parser::parse_expr;
use braid_rows::table_scope;
use braid_scalar::Deparsed;
use braid_types::{IntervalFields, SqlError, SqlResult, SqlType};

use super::super::Context;
use crate::partitions::{bound_text, key_text};
use braid_types::quote_ident;

/// The statement that creates a relation.
pub(crate) fn create_statement(ctx: &Context, r: &Relation) -> SqlResult<String> {
    Ok(match r {
        Relation::Table(t) => match t.materialized() {
            Some(view) => create_materialized(&ctx.catalog, t, view),
            None => create_table(&ctx.catalog, t),
        },
        Relation::View(v) => format!(
            "CREATE VIEW {} ({}) AS {}{}",
            qualified(&ctx.catalog, v.id),
            v.columns.iter().map(|c| quote_ident(&c.0)).collect::<Vec<_>>().join(", "),
            braid_parser::shown(&v.definition.query),
            v.check_option
                .map(|option| format!(" WITH {} CHECK OPTION", option.sql()))
                .unwrap_or_default()
        ),
        Relation::Sequence(s) => create_sequence(&ctx.catalog, s),
        Relation::Partition(window) => create_partition(&ctx.catalog, window)?,
        Relation::Index(t, id) => {
            let i = t.index(*id).ok_or_else(|| SqlError::internal("index without table"))?;
            create_index(&ctx.catalog, t, i)
        }
    })
}

fn create_partition(c: &Catalog, window: &Table) -> SqlResult<String> {
    let own = window.window().ok_or_else(|| SqlError::internal("no partition"))?;
    let key = own.key.as_ref().map(|key| format!(" PARTITION BY {}", key_text(window, key)));
    Ok(format!(
        "CREATE TABLE {} PARTITION OF {} {}{}",
        qualified(c, own.id),
        qualified(c, own.parent),
        bound_text(window, own)?,
        key.unwrap_or_default()
    ))
}

fn qualified(c: &Catalog, id: u32) -> String {
    let (schema, name) = c.qualified_name(id).unwrap_or_default();
    format!("{}.{}", quote_ident(&schema), quote_ident(&name))
}

/// With its indexes, as statements of their own.
fn create_materialized(c: &Catalog, t: &Table, view: &Materialized) -> String {
    let mut out = format!(
        "CREATE MATERIALIZED VIEW {} ({}) AS {}{}",
        qualified(c, t.id),
        column_names(t, t.visible_columns().map(|c| c.id)),
        braid_parser::shown(&view.definition.query),
        if view.populated { "" } else { " WITH NO DATA" }
    );
    for index in &t.indexes {
        out.push_str(&format!(";\n{}", create_index(c, t, index)));
    }
    out
}

fn create_sequence(c: &Catalog, s: &Sequence) -> String {
    let ty = match s.ty {
        SqlType::Int8 => String::new(),
        _ => format!(" AS {}", s.ty.name()),
    };
    if let Some(reversed) = &s.reversed {
        let skip = reversed.skip.map(|(a, b)| format!(" SKIP RANGE {a}, {b}")).unwrap_or_default();
        return format!(
            "CREATE SEQUENCE {} BIT_REVERSED_POSITIVE{skip} START COUNTER WITH {} CACHE {}",
            qualified(c, s.id),
            s.start,
            s.cache
        );
    }
    format!(
        "CREATE SEQUENCE {}{ty} START WITH {} INCREMENT BY {} MINVALUE {} MAXVALUE {} CACHE {}{}",
        qualified(c, s.id),
        s.start,
        s.increment,
        s.min,
        s.max,
        s.cache,
        if s.cycle { " CYCLE" } else { "" }
    )
}

/// Names of columns, quoted where they must be, with commas between them.
pub fn column_names(t: &Table, ids: impl IntoIterator<Item = u32>) -> String {
    ids.into_iter()
        .map(|id| quote_ident(t.column(id).map_or("", |c| &c.name)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// An expression over a table's columns as PostgreSQL prints it; `None` where that is not known,
/// and where what was written is wanted.
pub fn deparsed(t: &Table, text: &str, how: Shown) -> Option<String> {
    how.expression(t, text).map(|shown| shown.text(how == Shown::Plain))
}

/// How expressions are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// As they were written, with parentheses around them where they must be.
    Written,
    /// As PostgreSQL prints them for people, where that is known.
    Plain,
    /// As it prints them for programs.
    Deparsed,
}

impl Shown {
    fn expression(self, t: &Table, text: &str) -> Option<Deparsed> {
        if self == Shown::Written {
            return None;
        }
        braid_scalar::deparse(&parse_expr(text).ok()?, &table_scope(t))
    }
}

/// A column of an index's key: its name, or an expression as it must be written.
pub fn key_column(t: &Table, id: u32, how: Shown) -> String {
    match t.column(id).and_then(|c| c.expression.as_ref()) {
        Some(text) => match how.expression(t, text) {
            // Only what looks like a call stands alone.
            Some(shown) if shown.is_call() => shown.text(how == Shown::Plain),
            Some(shown) => format!("({})", shown.text(how == Shown::Plain)),
            None => shown_expression(text),
        },
        None => column_names(t, [id]),
    }
}

/// What a column of an index is called: an expression as it would be in a select list.
pub fn index_column_name(c: &Column, taken: &[String]) -> String {
    let Some(text) = &c.expression else { return c.name.clone() };
    let name = braid_parser::parse_expr(text).map(|e| braid_scalar::output_name(&e));
    let name = name.ok().filter(|name| name != "?column?").unwrap_or_else(|| "expr".into());
    choose_name(&name, |name| taken.iter().any(|t| t == name))
}

/// An expression among the columns of an index: only calls of functions stand without parentheses.
fn shown_expression(text: &str) -> String {
    match braid_parser::parse_expr(text) {
        Ok(sqlparser::ast::Expr::Function(_)) => text.to_string(),
        _ => format!("({text})"),
    }
}

fn key_list(t: &Table, i: &Index, how: Shown) -> String {
    i.columns
        .iter()
        .enumerate()
        .map(|(at, c)| {
            let mut out = key_column(t, c.column, how);
            if let Some(class) = i.class_at(at) {
                out.push_str(&format!(" {class}"));
            }
            if c.desc {
                out.push_str(" DESC");
            }
            if c.nulls_first != c.desc {
                out.push_str(if c.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
            }
            out
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// The key of an index as it is declared, and the columns that it holds besides.
pub(crate) fn index_columns(t: &Table, i: &Index) -> (String, Option<String>) {
    let include = (!i.include.is_empty()).then(|| column_names(t, i.include.iter().copied()));
    (key_list(t, i, Shown::Written), include)
}

/// `CREATE INDEX` of an index.
pub fn create_index(c: &Catalog, t: &Table, i: &Index) -> String {
    index_definition(c, t, i, None, ("", Shown::Written))
}

/// As [`create_index`]; `on`: how the table is called; `method` stands before the key columns.
pub fn index_definition(
    c: &Catalog,
    t: &Table,
    i: &Index,
    on: Option<String>,
    (method, how): (&str, Shown),
) -> String {
    let divided = t.partitioning().is_some_and(|d| d.key_of(t.shown_id()).is_some());
    // As PostgreSQL says it, so that each index of a dump comes with its table or partition.
    let only = if divided && !method.is_empty() { "ONLY " } else { "" };
    let own = Some(i.method()).filter(|own| *own != "btree").map(|own| format!("USING {own} "));
    let method = own.as_deref().unwrap_or(method);
    let mut out = format!(
        "CREATE {}INDEX {} ON {}{} {method}({})",
        if i.is_unique() || i.id == t.primary.id { "UNIQUE " } else { "" },
        quote_ident(&i.name),
        only,
        on.unwrap_or_else(|| qualified(c, t.id)),
        key_list(t, i, how)
    );
    if !i.include.is_empty() {
        out.push_str(&format!(" INCLUDE ({})", column_names(t, i.include.iter().copied())));
    }
    if i.nulls_not_distinct {
        out.push_str(" NULLS NOT DISTINCT");
    }
    if let Some(p) = i.interleave_in {
        out.push_str(&format!(" INTERLEAVE IN {}", qualified(c, p)));
    }
    if let Some(predicate) = &i.predicate {
        match deparsed(t, predicate, how) {
            Some(shown) => out.push_str(&format!(" WHERE {shown}")),
            None if how == Shown::Plain => out.push_str(&format!(" WHERE {predicate}")),
            None => out.push_str(&format!(" WHERE ({predicate})")),
        }
    }
    out
}

/// Text of a foreign key; `name_of` says how its parent is called.
pub fn foreign_key(
    c: &Catalog,
    t: &Table,
    fk: &ForeignKey,
    name_of: impl Fn(&Table) -> String,
) -> String {
    let parent = c.table(fk.parent);
    let mut out = format!(
        "FOREIGN KEY ({}) REFERENCES {}({})",
        column_names(t, fk.columns.iter().copied()),
        parent.map_or(String::new(), |p| name_of(p)),
        parent.map_or(String::new(), |p| column_names(p, fk.parent_columns.iter().copied()))
    );
    if fk.match_full {
        out.push_str(" MATCH FULL");
    }
    if fk.on_update != RefAction::NoAction {
        out.push_str(&format!(" ON UPDATE {}", fk.on_update.sql()));
    }
    if fk.on_delete != RefAction::NoAction {
        out.push_str(&format!(" ON DELETE {}", fk.on_delete.sql()));
    }
    if !fk.set_on_delete.is_empty() {
        out.push_str(&format!(" ({})", column_names(t, fk.set_on_delete.iter().copied())));
    }
    out.push_str(waiting(fk.deferral));
    if fk.not_valid {
        out.push_str(" NOT VALID");
    }
    out
}

/// What a CHECK says behind its condition.
pub fn said_of_check(check: &Check) -> &'static str {
    match (check.no_inherit, check.not_valid) {
        (false, false) => "",
        (true, false) => " NO INHERIT",
        (false, true) => " NOT VALID",
        (true, true) => " NO INHERIT NOT VALID",
    }
}

/// What a constraint says about when it is looked at.
pub fn waiting(deferral: Option<Deferral>) -> &'static str {
    match deferral {
        None => "",
        Some(Deferral::Immediate) => " DEFERRABLE",
        Some(Deferral::Deferred) => " DEFERRABLE INITIALLY DEFERRED",
    }
}

/// Constraints of a table: name, kind, definition.
pub fn constraints(c: &Catalog, t: &Arc<Table>) -> Vec<(String, &'static str, String)> {
    let mut out = Vec::new();
    if !t.has_row_id() {
        let def = format!("PRIMARY KEY ({})", key_list(t, &t.primary, Shown::Written));
        out.push((t.primary.name.clone(), "PRIMARY KEY", def));
    }
    let unique = |i: &&Index| i.constraint == Some(IndexConstraint::Unique);
    for i in t.indexes.iter().filter(unique).filter(|i| i.of_partition.is_none()) {
        let nulls = if i.nulls_not_distinct { " NULLS NOT DISTINCT" } else { "" };
        let columns = column_names(t, i.columns.iter().map(|c| c.column));
        let include = match i.include.as_slice() {
            [] => String::new(),
            include => format!(" INCLUDE ({})", column_names(t, include.iter().copied())),
        };
        let definition = format!("UNIQUE{nulls} ({columns}){include}{}", waiting(i.deferral));
        out.push((i.name.clone(), "UNIQUE", definition));
    }
    for k in &t.checks {
        out.push((k.name.clone(), "CHECK", format!("CHECK ({}){}", k.expr, said_of_check(k))));
    }
    for fk in &t.foreign_keys {
        out.push((fk.name.clone(), "FOREIGN KEY", foreign_key(c, t, fk, |p| qualified(c, p.id))));
    }
    out
}

/// A column's type as it was declared.
pub(crate) fn declared_type(c: &Catalog, column: &Column) -> String {
    match (column.refinement, &column.ty) {
        (None, SqlType::TimestampTz) if column.commit_time => "spanner.commit_timestamp".into(),
        (Some(Refined::Domain(id)), ty) => c.type_name(oid_of(id)).unwrap_or_else(|| ty.name()),
        (Some(Refined::Elements(id)), ty) => match c.type_name(oid_of(id)) {
            Some(name) => format!("{name}[]"),
            None => ty.name(),
        },
        (Some(Refined::Fields(typmod)), ty) => {
            let (fields, digits) = IntervalFields::of_typmod(typmod);
            let fields = fields.map(|fields| format!(" {fields}")).unwrap_or_default();
            let digits = digits.map(|n| format!("({n})")).unwrap_or_default();
            let brackets = if ty.element().is_some() { "[]" } else { "" };
            format!("interval{fields}{digits}{brackets}")
        }
        (Some(Refined::Precision(digits)), ty) => {
            let name = ty.name();
            let (word, rest) = name.split_once(' ').unwrap_or((&name, ""));
            format!("{word}({digits}) {rest}").trim_end().to_string()
        }
        (None, ty) => ty.name(),
    }
}

/// COLLATE of a column, where it is another than its type brings.
pub(crate) fn collate_clause(c: &Catalog, column: &Column) -> String {
    let of_type = match column.refinement {
        Some(Refined::Domain(id) | Refined::Elements(id)) => {
            c.domain(id).and_then(|domain| domain.collation)
        }
        _ => None,
    };
    let own = column.options.collation.as_ref().map(|own| own.oid);
    if own == of_type {
        return String::new();
    }
    let Some(own) = &column.options.collation else { return " COLLATE \"default\"".into() };
    let name = quote_ident(&own.name);
    let user = id_of_oid(own.oid).and_then(|id| c.user_collation(id));
    match user.and_then(|user| c.schema_by_id(user.schema)) {
        Some(schema) => format!(" COLLATE {}.{name}", quote_ident(&schema.name)),
        None => format!(" COLLATE {name}"),
    }
}

/// `CREATE TABLE` of a table, with all that belongs to it. Columns with a sequence of their own
/// print as IDENTITY or serial, so that the statement stands alone.
pub fn create_table(c: &Catalog, t: &Arc<Table>) -> String {
    let mut items = Vec::new();
    for col in t.visible_columns() {
        let serial = col.sequence.is_some() && col.identity.is_none();
        let ty = match (&col.ty, serial) {
            (SqlType::Int2, true) => "smallserial".to_string(),
            (SqlType::Int4, true) => "serial".to_string(),
            (SqlType::Int8, true) => "bigserial".to_string(),
            _ => format!("{}{}", declared_type(c, col), collate_clause(c, col)),
        };
        let mut line = format!("{} {ty}", quote_ident(&col.name));
        if !col.nullable {
            line.push_str(" NOT NULL");
        }
        match col.identity {
            Some(Identity::Always) => line.push_str(" GENERATED ALWAYS AS IDENTITY"),
            Some(Identity::ByDefault) => line.push_str(" GENERATED BY DEFAULT AS IDENTITY"),
            None => {}
        }
        if let Some(g) = &col.generated {
            line.push_str(&format!(" GENERATED ALWAYS AS ({g}) STORED"));
        } else if let Some(d) = col.default.as_ref().filter(|_| !serial) {
            line.push_str(&format!(" DEFAULT {d}"));
        }
        items.push(line);
    }
    for (name, _, def) in constraints(c, t) {
        items.push(format!("CONSTRAINT {} {def}", quote_ident(&name)));
    }
    let alone = |i: &&Index| i.constraint.is_none() && i.of_partition.is_none();
    for i in t.indexes.iter().filter(alone) {
        let full = create_index(c, t, i);
        let on = format!(" ON {}", qualified(c, t.id));
        let inline = full.replacen("CREATE ", "", 1).replacen(&on, "", 1);
        items.push(inline);
    }
    let mut out =
        format!("CREATE TABLE {} (\n    {}\n)", qualified(c, t.id), items.join(",\n    "));
    if let Some(i) = &t.interleave {
        let parent = qualified(c, i.parent);
        let columns = column_names(t, i.columns.iter().copied());
        match i.form {
            InterleaveForm::Enforced => out.push_str(&format!(
                " INTERLEAVE IN PARENT {parent} ({columns}) ON DELETE {}",
                i.on_delete.sql()
            )),
            InterleaveForm::Columns => {
                out.push_str(&format!(" INTERLEAVE IN PARENT {parent} ({columns})"));
            }
            InterleaveForm::Locality => {
                out.push_str(&format!(" INTERLEAVE IN {parent}"));
                let named = c.table(i.parent).map(|p| column_names(p, p.key_columns()));
                if named.is_some_and(|named| named != columns) {
                    out.push_str(&format!(" ({columns})"));
                }
            }
        }
    }
    if let Some(divided) = t.partitioning() {
        out.push_str(&format!(" PARTITION BY {}", key_text(t, &divided.key)));
    }
    if let Some(ttl) = &t.upkeep.ttl {
        let column = column_names(t, [ttl.column]);
        out.push_str(&format!(" TTL INTERVAL '{}' ON {column}", ttl.interval));
    }
    out
}

/// A row deletion policy as Spanner's `information_schema` shows it.
pub fn row_deletion_policy(t: &Table) -> Option<String> {
    let ttl = t.upkeep.ttl.as_ref()?;
    Some(format!("OLDER_THAN({}, INTERVAL '{}')", column_names(t, [ttl.column]), ttl.interval))
}

/// Ids of the columns that a CHECK condition of a table names, for `pg_constraint.conkey`, in the
/// order of the table.
pub fn checked_columns(t: &Table, condition: &str) -> Vec<u32> {
    let bound = parse_expr(condition).and_then(|e| {
        braid_scalar::bind(&e, &table_scope(t), &mut braid_scalar::ParamTypes::default())
    });
    // A condition over types of users is not bound here, and then shown without columns.
    let Ok(bound) = bound else { return Vec::new() };
    bound.columns().into_iter().map(|at| t.columns[at].id).collect()
}
