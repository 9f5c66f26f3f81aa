//! CREATE TYPE .. AS (..), and the fields of such a type.
//!
//! Rows hold the fields of a value by their places and without their types. So while a table has
//! values of the type, names may change and fields may be added: what is missing in a row is NULL.
//! Other changes are refused, as PostgreSQL refuses another type of a field; it can drop one.

use braid_catalog::{Attribute, Refined, TypeKind, UserType, is_type, oid_of, uses_type};
use braid_types::{SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use crate::ddl::column::refined;
use crate::ddl::{Change, user_type};
use braid_parser::{AttributeChange, Name};
use braid_scalar::ident_name;

/// Most fields that a type has, as PostgreSQL has it for tables.
const MAX_FIELDS: usize = 1600;

/// The fields of CREATE TYPE.
pub(in crate::ddl) fn declared(
    c: &Change,
    defs: &[ast::UserDefinedTypeCompositeAttributeDef],
) -> SqlResult<Vec<Attribute>> {
    let mut out: Vec<Attribute> = Vec::new();
    for def in defs {
        let name = ident_name(&def.name);
        if out.iter().any(|a| a.name == name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        let number = out.len() as u32 + 1;
        out.push(field(c, number, name, &def.data_type)?);
    }
    check_count(&out)?;
    Ok(out)
}

fn check_count(fields: &[Attribute]) -> SqlResult<()> {
    if fields.len() <= MAX_FIELDS {
        return Ok(());
    }
    Err(SqlError::new(SqlState("54011"), format!("tables can have at most {MAX_FIELDS} columns")))
}

/// A field of a declared type.
fn field(c: &Change, number: u32, name: String, data_type: &ast::DataType) -> SqlResult<Attribute> {
    let ty = field_type(c, &name, data_type)?;
    let refinement = refined(c, data_type)?;
    Ok(Attribute { number, name, ty, refinement, comment: None })
}

fn field_type(c: &Change, name: &str, data_type: &ast::DataType) -> SqlResult<SqlType> {
    let ty = c.ctx.type_of(data_type)?;
    if matches!(ty, SqlType::Record | SqlType::Void | SqlType::Unknown) {
        return Err(SqlError::new(
            SqlState("42P16"),
            format!("column \"{name}\" has pseudo-type {}", ty.name()),
        ));
    }
    refuse_row_type(c, name, &ty)?;
    Ok(ty)
}

/// Refuses to keep rows without a type of their own: those of tables, whose columns may change, and
/// those that have no names.
pub(in crate::ddl) fn refuse_row_type(c: &Change, name: &str, ty: &SqlType) -> SqlResult<()> {
    let value = ty.element().unwrap_or(ty);
    if *value == SqlType::Record {
        return Err(SqlError::new(
            SqlState("42P16"),
            format!("column \"{name}\" has pseudo-type {}", ty.name()),
        ));
    }
    if as_known_elsewhere(c, ty) == *ty {
        return Ok(());
    }
    let row = value.base_name();
    let hint = format!("CREATE TYPE .. AS (..) with the columns of {row} makes one to use.");
    Err(SqlError::unsupported(format!("column \"{name}\" of the type of a table's rows"))
        .with_hint(hint))
}

/// A type as a descriptor can name it: rows of tables are rows without a type there.
pub(in crate::ddl) fn as_known_elsewhere(c: &Change, ty: &SqlType) -> SqlType {
    match ty {
        SqlType::Composite(row) if c.catalog.user_type_by_oid(row.oid).is_none() => SqlType::Record,
        SqlType::Array(element) => as_known_elsewhere(c, element).array_of(),
        other => other.clone(),
    }
}

/// ALTER TYPE .. ATTRIBUTE.
pub(crate) fn alter(c: &mut Change, name: &Name, changes: &[AttributeChange]) -> SqlResult<String> {
    for change in changes {
        let user = c.ctx.user_type(name)?.ok_or_else(|| user_type::no_type(name))?;
        alter_one(c, &user, change)?;
    }
    Ok("ALTER TYPE".into())
}

/// Expressions and queries are kept as text: one that names the type, or that is kept where values
/// of it are, may name a field.
fn refuse_if_written(c: &Change, ty: &UserType) -> SqlResult<()> {
    let oid = oid_of(ty.id);
    let names = |text: &str| {
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == ty.name)
    };
    let refused = |what: &str, of: &str| Err(user_type::written(ty, "change fields of", what, of));
    for table in c.catalog.tables() {
        let uses = table.columns.iter().any(|column| uses_type(&column.ty, oid));
        // A value is written in quotes.
        let may = |text: &str| uses && text.contains('\'') || names(text);
        for column in &table.columns {
            let own = uses_type(&column.ty, oid);
            if column.default.as_deref().is_some_and(|text| own || names(text)) {
                return refused("a default", &table.name);
            }
            if column.generated.as_deref().is_some_and(may) {
                return refused("a generated column", &table.name);
            }
        }
        if table.kept_checks().any(|check| may(&check.expr)) {
            return refused("a constraint", &table.name);
        }
    }
    for view in c.catalog.views() {
        if view.columns.iter().any(|(_, ty)| uses_type(ty, oid)) {
            return refused("the query", &view.name);
        }
    }
    for (view, definition) in c.catalog.definitions() {
        if names(&definition.query) {
            let (_, name) = c.catalog.qualified_name(view).unwrap_or_default();
            return refused("the query", &name);
        }
    }
    Ok(())
}

fn alter_one(c: &mut Change, user: &UserType, change: &AttributeChange) -> SqlResult<()> {
    let mut new = user.clone();
    let TypeKind::Composite(fields) = &mut new.kind else {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a composite type", user.name),
        ));
    };
    match change {
        AttributeChange::Rename(..) => {}
        AttributeChange::Add(..) => refuse_in_keys(c, user)?,
        _ => refuse_stored(c, user)?,
    }
    refuse_if_written(c, user)?;
    match change {
        AttributeChange::Add(name, data_type) => {
            refuse_named(user, fields, name)?;
            let number = fields.iter().map(|f| f.number).max().unwrap_or(0) + 1;
            let field = field(c, number, name.clone(), data_type)?;
            refuse_itself(c, user, &field)?;
            fields.push(field);
            check_count(fields)?;
        }
        AttributeChange::Drop(name, if_exists) => match place(user, fields, name) {
            Ok(at) => drop(fields.remove(at)),
            Err(e) if *if_exists => c.ctx.notice(format!("{}, skipping", e.message())),
            Err(e) => return Err(e),
        },
        AttributeChange::Retype(name, data_type) => {
            let at = place(user, fields, name)?;
            let new = field(c, fields[at].number, name.clone(), data_type)?;
            refuse_itself(c, user, &new)?;
            fields[at] = Attribute { comment: fields[at].comment.take(), ..new };
        }
        AttributeChange::Rename(from, to) => {
            let at = fields.iter().position(|f| f.name == *from).ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{from}\" does not exist"),
                )
            })?;
            refuse_named(user, fields, to)?;
            fields[at].name.clone_from(to);
        }
    }
    user_type::put(c, new)
}

fn place(user: &UserType, fields: &[Attribute], name: &str) -> SqlResult<usize> {
    fields.iter().position(|f| f.name == *name).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" of relation \"{}\" does not exist", user.name),
        )
    })
}

fn refuse_named(user: &UserType, fields: &[Attribute], name: &str) -> SqlResult<()> {
    if !fields.iter().any(|f| f.name == *name) {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::DUPLICATE_COLUMN,
        format!("column \"{name}\" of relation \"{}\" already exists", user.name),
    ))
}

fn refuse_itself(c: &Change, user: &UserType, field: &Attribute) -> SqlResult<()> {
    let holds = |id: u32| {
        field.refinement.is_some_and(|refined| refined.names(id))
            || uses_type(&field.ty, oid_of(id))
    };
    if !c.catalog.types_over(user.id).into_iter().any(holds) {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState("42P16"),
        format!("composite type {} cannot be made a member of itself", user.name),
    ))
}

/// Refuses what would change values that tables keep.
fn refuse_stored(c: &Change, user: &UserType) -> SqlResult<()> {
    for table in c.catalog.tables() {
        if let Some(column) = table.columns.iter().find(|column| column.has_type(user.id)) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "cannot alter type \"{}\" because column \"{}.{}\" uses it",
                    user.name, table.name, column.name
                ),
            ));
        }
    }
    Ok(())
}

/// Refuses what would change keys: a row with one field more is another key.
fn refuse_in_keys(c: &Change, user: &UserType) -> SqlResult<()> {
    for table in c.catalog.tables() {
        let building = table.building_index().map(|(index, _)| index);
        let keys = table.all_indexes().chain(building).flat_map(|index| &index.columns);
        for column in keys.filter_map(|key| table.column(key.column)) {
            if column.has_type(user.id) {
                return Err(SqlError::unsupported(format!(
                    "a new field of type \"{}\" while column \"{}.{}\" is part of a key or index",
                    user.name, table.name, column.name
                ))
                .with_hint("Drop the index first, and create it again afterwards."));
            }
        }
    }
    Ok(())
}

/// The fields of composite types that are of a type, or of its arrays: type, field, and whether
/// they are arrays.
pub(in crate::ddl) fn fields_of(c: &Change, ty: &UserType) -> Vec<(u32, String, bool)> {
    let mut found = Vec::new();
    for user in c.catalog.user_types() {
        if let TypeKind::Composite(fields) = &user.kind {
            // In PostgreSQL's order.
            let named = |f: &&Attribute| {
                f.refinement.is_some_and(|refined| refined.names(ty.id))
                    || is_type(&f.ty, oid_of(ty.id))
            };
            let of_type = fields.iter().rev().filter(named);
            found.extend(of_type.map(|f| {
                let is_array = !matches!(f.refinement, Some(Refined::Domain(_)));
                (user.id, f.name.clone(), is_array && f.ty.element().is_some())
            }));
        }
    }
    found
}

/// Takes a field out of its type.
pub(in crate::ddl) fn drop_field(c: &mut Change, user: u32, name: &str) -> SqlResult<()> {
    let Some(user) = c.catalog.user_type(user).cloned() else { return Ok(()) };
    alter_one(c, &user, &AttributeChange::Drop(name.to_string(), false))
}
