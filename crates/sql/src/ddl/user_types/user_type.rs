//! CREATE TYPE, ALTER TYPE and DROP TYPE; of composite types what is not in `composite`.
//!
//! Rows hold the places of labels and never their names, so that no change of a type touches a row:
//! RENAME VALUE changes a name, ADD VALUE finds a place between two others.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{
    Column, Function, Lost, Refined, TypeKind, UserType, is_type, oid_of, uses_type,
};
use braid_types::{EnumLabel, LABEL_STEP, SqlError, SqlResult, SqlState};
use sqlparser::ast::{self, AlterTypeAddValuePosition, UserDefinedTypeRepresentation};

use super::range;
use crate::ddl::kept::{follow, labels, users};
use crate::ddl::{Change, alter_column, composite, drop, parts, temporary};
use braid_parser::Name;

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
    let (schema, name) = temporary::target_schema(c, &parts(name))?;
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
            let old = new.clone();
            let found = labels_of(&mut new)?;
            let at = place_in(found, from)?;
            if found.iter().any(|l| l.label == *to) {
                return Err(label_exists(to));
            }
            found[at].label = to.clone();
            labels::follow(c, &old, from, to)?;
            put(c, new.clone())?;
            labels::check(c, &new, from, to)?;
            return Ok(tag);
        }
    }
    put(c, new)?;
    Ok(tag)
}

/// RENAME TO.
pub(in crate::ddl) fn rename(c: &mut Change, ty: &UserType, to: &str) -> SqlResult<()> {
    refuse_taken(c, ty.schema, to)?;
    let new = UserType { name: to.to_string(), ..ty.clone() };
    follow::follow_type(c, ty, &new)?;
    put(c, new)
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
    c.catalog.put_type(new);
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
    let old = named(c, name)?;
    let mut new = (*old).clone();
    let Some(schema) = c.catalog.schema(c.ctx.database, schema).cloned() else {
        return Err(crate::session::no_schema(schema));
    };
    if schema.id != new.schema {
        refuse_taken(c, schema.id, &new.name)?;
        if let Some(of) = new.multirange() {
            refuse_taken(c, schema.id, &of.multirange)?;
        }
    }
    new.schema = schema.id;
    follow::follow_type(c, &old, &new)?;
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
            let text = format!("enum label \"{label}\" already exists, skipping");
            c.ctx.notice_in(SqlState::DUPLICATE_OBJECT, text);
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

/// What is in the way of a change, since a text may name the type or a value of it.
pub(in crate::ddl) fn written(ty: &UserType, doing: &str, what: &str, of: &str) -> SqlError {
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

/// Something about what has an id.
type Noted = (u32, String);

/// The columns of a type by table and name, and the same in words with the table's id.
fn columns_of(c: &Change, ty: &UserType, shown: &str) -> (Vec<Noted>, Vec<Noted>) {
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
            let shown = many.as_deref().unwrap_or(shown);
            let brackets = brackets(column);
            let (column, name) = (&column.name, &table.name);
            let line = format!("column {column} of table {name} depends on type {shown}{brackets}");
            lines.push((table.id, line));
        }
    }
    (columns, lines)
}

pub(in crate::ddl) fn drop_type(c: &mut Change, ty: &UserType, cascade: bool) -> SqlResult<()> {
    let oid = oid_of(ty.id);
    let shown = c.catalog.type_name(oid).unwrap_or_default();
    let (columns, mut lines) = columns_of(c, ty, &shown);
    let fields = composite::fields_of(c, ty);
    for (user, field, is_array) in &fields {
        let of = c.catalog.type_name(oid_of(*user)).unwrap_or_default();
        let brackets = if *is_array { "[]" } else { "" };
        let line =
            format!("column {field} of composite type {of} depends on type {shown}{brackets}");
        lines.push((*user, line));
    }
    let domains = domains_over(c, ty);
    for domain in &domains {
        let over = c.catalog.type_name(oid_of(domain.id)).unwrap_or_default();
        lines.push((domain.id, format!("type {over} depends on type {shown}")));
    }
    let mut named = users::of_type(c, ty, &shown);
    lines.append(&mut named.lines);
    let direct = views_with(c, ty).union(named.views()).copied().collect();
    let (views, told) = users::views_over(c, &direct, &format!("type {shown}"));
    lines.extend(told);
    let mut over = drop::functions_over(c, &[oid]);
    let naming = users::functions_naming(c, ty).into_iter();
    over.extend(naming.filter(|f| !drop::functions_over(c, &[oid]).iter().any(|o| o.id == f.id)));
    let line = |f: &Arc<Function>| format!("function {} depends on type {shown}", f.shown());
    lines.extend(over.iter().map(|f| (f.id, line(f))));
    drop::refuse_or_notice(c, cascade, &format!("type {shown}"), &users::in_order(lines))?;
    drop::remove_views(c, views)?;
    c.sync();
    users::remove(c, &named)?;
    users::remove_functions(c, &over.iter().map(|f| f.id).collect::<Vec<_>>())?;
    for (table, column) in columns {
        if let Some(table) = c.catalog.table(table).cloned() {
            alter_column::drop(c, &table, &column, false, true)?;
        }
    }
    for (user, field, _) in fields {
        composite::drop_field(c, user, &field)?;
    }
    for domain in
        domains.iter().filter_map(|d| c.catalog.user_type(d.id).cloned()).collect::<Vec<_>>()
    {
        drop_type(c, &domain, true)?;
    }
    c.catalog.remove(ty.id);
    c.sync();
    Ok(())
}
