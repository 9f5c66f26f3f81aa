//! CREATE TYPE, ALTER TYPE and DROP TYPE; of composite types what is not in `composite`.
//!
//! Rows hold the places of labels and never their names, so that no change of a type touches a row:
//! RENAME VALUE changes a name, ADD VALUE finds a place between two others.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{Column, Lost, Refined, TypeKind, UserType, is_type, oid_of, uses_type};
use braid_types::{
    Datum, EnumLabel, EnumValue, LABEL_STEP, SqlError, SqlResult, SqlState, SqlType,
};
use sqlparser::ast::{self, AlterTypeAddValuePosition, UserDefinedTypeRepresentation};

use super::range;
use crate::ddl::{Change, alter_column, composite, drop, functions, parts};
use braid_parser::{Name, parse_expr};
use braid_scalar::Scope;

/// Longest label, in bytes, as PostgreSQL has it.
const LABEL_BYTES: usize = 63;

pub(crate) fn create(
    c: &mut Change,
    name: &ast::ObjectName,
    what: Option<&UserDefinedTypeRepresentation>,
) -> SqlResult<String> {
    let labels: &[ast::Ident] = match what {
        Some(UserDefinedTypeRepresentation::Enum { labels }) => labels,
        Some(UserDefinedTypeRepresentation::Composite { .. }) => &[],
        Some(UserDefinedTypeRepresentation::Range { .. }) => &[],
        _ => return Err(SqlError::unsupported("a base type")),
    };
    let (schema, name) = c.ctx.target_schema(&parts(name))?;
    refuse_taken(c, schema, &name)?;
    if let Some(UserDefinedTypeRepresentation::Range { options }) = what {
        range::create(c, (schema, name), options)?;
        c.sync();
        return Ok("CREATE TYPE".into());
    }
    let ids = c.ctx.db.new_ids(2 + labels.len() as u32)?;
    let kind = match what {
        Some(UserDefinedTypeRepresentation::Composite { attributes }) => {
            TypeKind::Composite(composite::declared(c, attributes)?)
        }
        _ => TypeKind::Enum(made_labels(ids, labels)?),
    };
    c.catalog.put_type(UserType { id: ids, schema, name, array: ids + 1, kind, comment: None });
    c.sync();
    Ok("CREATE TYPE".into())
}

/// The labels of a new enum type with these ids.
fn made_labels(ids: u32, labels: &[ast::Ident]) -> SqlResult<Vec<EnumLabel>> {
    let mut made: Vec<EnumLabel> = Vec::new();
    for (at, label) in labels.iter().enumerate() {
        check_label(&label.value)?;
        if made.iter().any(|l| l.label == label.value) {
            return Err(Lost::Duplicate
                .error(
                    "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"",
                )
                .with_table("pg_catalog", "pg_enum")
                .with_constraint("pg_enum_typid_label_index")
                .with_detail(format!(
                    "Key (enumtypid, enumlabel)=({}, {}) already exists.",
                    oid_of(ids),
                    label.value
                )));
        }
        made.push(EnumLabel {
            oid: oid_of(ids + 2 + at as u32),
            place: (at as i64 + 1) * LABEL_STEP,
            label: label.value.clone(),
        });
    }
    Ok(made)
}

pub(in crate::ddl) fn refuse_taken(c: &Change, schema: u32, name: &str) -> SqlResult<()> {
    let is_relation = c.catalog.relation(schema, name).is_some_and(|r| r.kind() != "index");
    let multirange = c.catalog.multirange_in(schema, name).is_some();
    if c.catalog.type_in(schema, name).is_some() || multirange || is_relation {
        return Err(taken(name));
    }
    Ok(())
}

pub(super) fn taken(name: &str) -> SqlError {
    SqlError::new(SqlState::DUPLICATE_OBJECT, format!("type \"{name}\" already exists"))
}

fn check_label(label: &str) -> SqlResult<()> {
    if label.len() <= LABEL_BYTES {
        return Ok(());
    }
    Err(SqlError::new(SqlState::INVALID_NAME, format!("invalid enum label \"{label}\""))
        .with_detail(format!("Labels must be {LABEL_BYTES} bytes or less.")))
}

pub(in crate::ddl) fn no_type(name: &Name) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{}\" does not exist", name.join(".")))
}

/// The type that a statement changes.
fn named(c: &Change, name: &Name) -> SqlResult<Arc<UserType>> {
    if let Some(ty) = c.ctx.user_type(name)? {
        return Ok(ty);
    }
    match c.ctx.range_of_multirange(name)? {
        Some(range) => {
            let range = c.catalog.type_name(oid_of(range.id)).unwrap_or_default();
            let text = format!("changing the multirange type \"{}\" alone", name.join("."));
            Err(SqlError::unsupported(text)
                .with_hint(format!("It belongs to the range type {range}.")))
        }
        None => Err(no_type(name)),
    }
}

/// Changes a type; statements that use its tables are planned anew.
pub(crate) fn alter(c: &mut Change, a: &ast::AlterType) -> SqlResult<String> {
    let name = parts(&a.name);
    let mut new = (*named(c, &name)?).clone();
    let tag = "ALTER TYPE".to_string();
    match &a.operation {
        ast::AlterTypeOperation::Rename(to) => {
            rename(c, &new, &braid_scalar::ident_name(&to.new_name))?;
            return Ok(tag);
        }
        ast::AlterTypeOperation::AddValue(add) => {
            if !add_value(c, &mut new, add)? {
                return Ok(tag);
            }
        }
        ast::AlterTypeOperation::RenameValue(rename) => {
            let (from, to) = (&rename.from.value, &rename.to.value);
            check_label(to)?;
            refuse_if_written(c, &new, "rename a value of")?;
            let labels = labels_of(&mut new)?;
            let at = place_in(labels, from)?;
            if labels.iter().any(|l| l.label == *to) {
                return Err(label_exists(to));
            }
            labels[at].label = to.clone();
        }
    }
    put(c, new)?;
    Ok(tag)
}

/// RENAME TO.
pub(in crate::ddl) fn rename(c: &mut Change, ty: &UserType, to: &str) -> SqlResult<()> {
    refuse_if_written(c, ty, "rename")?;
    refuse_taken(c, ty.schema, to)?;
    put(c, UserType { name: to.to_string(), ..ty.clone() })
}

/// # Errors
/// 42809 for what is no enum type.
fn labels_of(ty: &mut UserType) -> SqlResult<&mut Vec<EnumLabel>> {
    match &mut ty.kind {
        TypeKind::Enum(labels) => Ok(labels),
        TypeKind::Domain(_) | TypeKind::Composite(_) | TypeKind::Range(_) => {
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("{} is not an enum", ty.name)))
        }
    }
}

/// Puts a type in the place of what it was.
pub(in crate::ddl) fn put(c: &mut Change, new: UserType) -> SqlResult<()> {
    lock_users(c, &new)?;
    let (id, defaults) = (new.id, constant_defaults(c, &new)?);
    c.catalog.put_type(new);
    write_defaults(c, id, &defaults);
    c.sync();
    Ok(())
}

/// COMMENT ON TYPE.
pub(in crate::ddl) fn comment(c: &mut Change, name: &Name, text: Option<String>) -> SqlResult<()> {
    let mut new = (*named(c, name)?).clone();
    new.comment = text;
    c.catalog.put_type(new);
    c.sync();
    Ok(())
}

/// SET SCHEMA of a type.
pub(crate) fn set_schema(c: &mut Change, name: &Name, schema: &str) -> SqlResult<String> {
    let mut new = (*named(c, name)?).clone();
    let Some(schema) = c.catalog.schema(c.ctx.database, schema).cloned() else {
        return Err(crate::session::no_schema(schema));
    };
    if schema.id != new.schema {
        refuse_if_written(c, &new, "move")?;
        refuse_taken(c, schema.id, &new.name)?;
        if let Some(of) = new.multirange() {
            refuse_taken(c, schema.id, &of.multirange)?;
        }
    }
    new.schema = schema.id;
    put(c, new)?;
    Ok("ALTER TYPE".into())
}

fn place_in(labels: &[EnumLabel], label: &str) -> SqlResult<usize> {
    labels.iter().position(|l| l.label == label).ok_or_else(|| {
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("\"{label}\" is not an existing enum label"),
        )
    })
}

fn label_exists(label: &str) -> SqlError {
    SqlError::new(SqlState::DUPLICATE_OBJECT, format!("enum label \"{label}\" already exists"))
}

/// Adds a label; `false` if it is there already and that is allowed.
fn add_value(c: &Change, ty: &mut UserType, add: &ast::AlterTypeAddValue) -> SqlResult<bool> {
    let label = &add.value.value;
    check_label(label)?;
    let labels = labels_of(ty)?;
    if labels.iter().any(|l| l.label == *label) {
        if add.if_not_exists {
            c.ctx.notice(format!("enum label \"{label}\" already exists, skipping"));
            return Ok(false);
        }
        return Err(label_exists(label));
    }
    let at = match &add.position {
        None => labels.len(),
        Some(AlterTypeAddValuePosition::Before(other)) => place_in(labels, &other.value)?,
        Some(AlterTypeAddValuePosition::After(other)) => place_in(labels, &other.value)? + 1,
    };
    let below = at.checked_sub(1).map(|at| labels[at].place);
    let place = match (below, labels.get(at).map(|l| l.place)) {
        (None, None) => LABEL_STEP,
        (Some(below), None) => below + LABEL_STEP,
        (None, Some(above)) => above - LABEL_STEP,
        (Some(below), Some(above)) if above - below > 1 => below + (above - below) / 2,
        (Some(_), Some(_)) => {
            return Err(SqlError::unsupported("a label where so many were put before")
                .with_hint("Create a new type and change the columns to it."));
        }
    };
    labels.insert(at, EnumLabel { oid: oid_of(c.new_id()?), place, label: label.clone() });
    Ok(true)
}

/// Excludes all who use tables with columns of the type.
pub(in crate::ddl) fn lock_users(c: &Change, ty: &UserType) -> SqlResult<()> {
    let all = c.catalog.types_over(ty.id);
    for table in c.catalog.tables() {
        if table.columns.iter().any(|column| all.iter().any(|id| column.has_type(*id))) {
            c.ctx.lock_for_change(table.id)?;
        }
    }
    Ok(())
}

/// Expressions are kept as text: one that says the name of a type or of a value would mean nothing
/// when that has another name. Defaults that are one value can be written anew:
/// [`write_defaults`].
pub(in crate::ddl) fn refuse_if_written(c: &Change, ty: &UserType, doing: &str) -> SqlResult<()> {
    let oid = oid_of(ty.id);
    let names = |text: &str| {
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let many = ty.multirange().map(|of| of.multirange.as_str());
        words.any(|word| word == ty.name || Some(word) == many)
    };
    // A value is named in quotes.
    let quotes = |text: &str| text.contains('\'');
    for table in c.catalog.tables() {
        for column in &table.columns {
            let own = uses_type(&column.ty, oid);
            let default = column.default.as_deref().filter(|text| own || names(text));
            if let Some(default) = default
                && constant_of(c, default, &column.ty)?.is_none()
            {
                return Err(written(ty, doing, "a default", &table.name));
            }
            let may = |text: &str| own && quotes(text) || names(text);
            if column.generated.as_deref().is_some_and(may) {
                return Err(written(ty, doing, "a generated column", &table.name));
            }
        }
        let uses = table.columns.iter().any(|column| uses_type(&column.ty, oid));
        let may = |text: &str| uses && quotes(text) || names(text);
        if table.kept_checks().any(|check| may(&check.expr)) {
            return Err(written(ty, doing, "a constraint", &table.name));
        }
    }
    for view in c.catalog.views() {
        if view.columns.iter().any(|(_, ty)| uses_type(ty, oid)) {
            return Err(written(ty, doing, "the query", &view.name));
        }
    }
    for (view, definition) in c.catalog.definitions() {
        if names(&definition.query) {
            let (_, name) = c.catalog.qualified_name(view).unwrap_or_default();
            return Err(written(ty, doing, "the query", &name));
        }
    }
    Ok(())
}

/// The value of a default that is one value of an enum type.
fn constant_of(c: &Change, text: &str, ty: &SqlType) -> SqlResult<Option<EnumValue>> {
    let expr = parse_expr(text)?;
    let bound = braid_scalar::bind_to(&expr, ty, &Scope::empty(), &mut c.ctx.no_params())?;
    Ok(match bound.as_const() {
        Some(Datum::Enum(value)) => Some(value.clone()),
        _ => None,
    })
}

/// Writes the defaults that are one value of a type with the names of now; `before` finds them.
fn write_defaults(c: &mut Change, ty: u32, before: &[(u32, u32, i64)]) {
    for (table, column, place) in before {
        let Some(mut table) = c.catalog.table(*table).map(|t| (**t).clone()) else { continue };
        for own in table.columns.iter_mut().filter(|own| own.id == *column) {
            if let SqlType::Enum(now) = &own.ty
                && now.oid == oid_of(ty)
                && let Some(label) = now.label_at(*place)
            {
                let label = label.label.replace('\'', "''");
                own.default = Some(format!("'{label}'::{}", now.shown_name()));
            }
        }
        c.catalog.put_table(table);
    }
}

/// Table, column and value of the defaults that are one value of a type.
fn constant_defaults(c: &Change, ty: &UserType) -> SqlResult<Vec<(u32, u32, i64)>> {
    let mut found = Vec::new();
    for table in c.catalog.tables() {
        for column in table.columns.iter().filter(|own| uses_type(&own.ty, oid_of(ty.id))) {
            let Some(text) = &column.default else { continue };
            if let Some(value) = constant_of(c, text, &column.ty)? {
                found.push((table.id, column.id, value.place));
            }
        }
    }
    Ok(found)
}

fn written(ty: &UserType, doing: &str, what: &str, of: &str) -> SqlError {
    SqlError::new(
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot {doing} type {} because {what} of \"{of}\" may name it", ty.name),
    )
    .with_hint("Drop what names it first, and create it again afterwards.")
}

/// DROP DOMAIN.
pub(crate) fn drop_domains(
    c: &mut Change,
    names: &[Name],
    if_exists: bool,
    cascade: bool,
) -> SqlResult<String> {
    for name in names {
        if let Some(ty) = c.ctx.user_type(name)?
            && !matches!(ty.kind, TypeKind::Domain(_))
        {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a domain", name.join(".")),
            ));
        }
    }
    drop_named(c, names, if_exists, cascade)?;
    Ok("DROP DOMAIN".into())
}

/// DROP TYPE: columns of the type stand in the way, or go along with CASCADE.
pub(crate) fn drop_types(
    c: &mut Change,
    names: &[ast::ObjectName],
    if_exists: bool,
    cascade: bool,
) -> SqlResult<()> {
    let names: Vec<Name> = names.iter().map(parts).collect();
    drop_named(c, &names, if_exists, cascade)
}

fn drop_named(c: &mut Change, names: &[Name], if_exists: bool, cascade: bool) -> SqlResult<()> {
    for name in names {
        match c.ctx.user_type(name)? {
            Some(ty) => drop_type(c, &ty, cascade)?,
            None if c.ctx.range_of_multirange(name)?.is_some() => {
                range::refuse_multirange(c, name)?;
            }
            None if if_exists => {
                c.ctx.notice(format!("type \"{}\" does not exist, skipping", name.join(".")));
            }
            None => return Err(no_type(name)),
        }
    }
    Ok(())
}

/// Views of both kinds with columns of a type: they go with it as a whole.
fn views_with(c: &Change, ty: &UserType) -> BTreeSet<u32> {
    let oid = oid_of(ty.id);
    let views = c.catalog.views();
    let views = views.filter(|v| v.columns.iter().any(|(_, ty)| uses_type(ty, oid))).map(|v| v.id);
    let kept = c.catalog.tables().filter(|t| t.materialized().is_some());
    let kept = kept.filter(|t| t.columns.iter().any(|column| column.has_type(ty.id)));
    views.chain(kept.map(|t| t.id)).collect()
}

/// The domains over a type, or over its arrays.
fn domains_over(c: &Change, ty: &UserType) -> Vec<UserType> {
    let over = |user: &&Arc<UserType>| match &user.kind {
        TypeKind::Domain(domain) => {
            domain.over.is_some_and(|over| over.names(ty.id))
                || is_type(&domain.base, oid_of(ty.id))
        }
        _ => false,
    };
    c.catalog.user_types().filter(over).map(|user| (**user).clone()).collect()
}

pub(in crate::ddl) fn drop_type(c: &mut Change, ty: &UserType, cascade: bool) -> SqlResult<()> {
    let oid = oid_of(ty.id);
    let shown = c.catalog.type_name(oid).unwrap_or_default();
    let brackets = |column: &Column| match column.refinement {
        Some(Refined::Domain(_)) => "",
        _ if column.ty.element().is_some() => "[]",
        _ => "",
    };
    let (mut columns, mut lines) = (Vec::new(), Vec::new());
    for table in c.catalog.tables().filter(|t| t.materialized().is_none()) {
        // In PostgreSQL's order.
        for column in table.columns.iter().rev().filter(|column| column.names_type(ty.id)) {
            columns.push((table.id, column.name.clone()));
            let many = column.ty.element().unwrap_or(&column.ty).made_range();
            let many = many.and_then(|(_, name)| c.catalog.type_name(name.oid));
            let shown = many.as_ref().unwrap_or(&shown);
            let brackets = brackets(column);
            let (column, table) = (&column.name, &table.name);
            lines.push(format!(
                "column {column} of table {table} depends on type {shown}{brackets}"
            ));
        }
    }
    let fields = composite::fields_of(c, ty);
    for (user, field, is_array) in &fields {
        let of = c.catalog.type_name(oid_of(*user)).unwrap_or_default();
        let brackets = if *is_array { "[]" } else { "" };
        lines.push(format!(
            "column {field} of composite type {of} depends on type {shown}{brackets}"
        ));
    }
    let domains = domains_over(c, ty);
    for domain in &domains {
        let over = c.catalog.type_name(oid_of(domain.id)).unwrap_or_default();
        lines.push(format!("type {over} depends on type {shown}"));
    }
    let views = views_with(c, ty);
    for view in views.iter().filter_map(|id| c.catalog.relation_by_id(*id)) {
        lines.push(format!("{} depends on type {shown}", drop::called(c, &view)));
    }
    let over = drop::functions_over(c, &[oid]);
    lines.extend(over.iter().map(|f| format!("function {} depends on type {shown}", f.shown())));
    drop::refuse_or_notice(c, cascade, &format!("type {shown}"), &lines)?;
    functions::remove_all(c, &over.iter().map(|f| f.id).collect::<Vec<_>>())?;
    let dependents = drop::dependent_views(c, &views);
    drop::remove_views(c, dependents.into_iter().chain(views))?;
    c.sync();
    for (table, column) in columns {
        if let Some(table) = c.catalog.table(table).cloned() {
            alter_column::drop(c, &table, &column, false, true)?;
        }
    }
    for (user, field, _) in fields {
        composite::drop_field(c, user, &field)?;
    }
    for domain in domains {
        drop_type(c, &domain, true)?;
    }
    c.catalog.remove(ty.id);
    c.sync();
    Ok(())
}
