//! CREATE and DROP EXTENSION: of those that are built in. Nothing but the note comes and goes.

use braid_catalog::{Extension, Installed};
use braid_types::{SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use super::super::Change;
use braid_scalar::ident_name;

fn exists(c: &Change, name: &str) -> bool {
    c.catalog.extension(c.ctx.database, name).is_some()
}

/// The schema that it is put in: the one that is named, or the first of the search path.
fn schema_of(c: &Change, statement: &ast::CreateExtension) -> SqlResult<u32> {
    match &statement.schema {
        Some(schema) => {
            let schema = ident_name(schema);
            let found = c.catalog.schema(c.ctx.database, &schema);
            Ok(found.ok_or_else(|| crate::session::no_schema(&schema))?.id)
        }
        None => Ok(c.ctx.target_schema(&vec![ident_name(&statement.name)])?.0),
    }
}

/// Runs CREATE EXTENSION.
///
/// # Errors
/// 0A000 for one that is not there, 42710 for one that the database has.
pub(crate) fn create(c: &mut Change, statement: &ast::CreateExtension) -> SqlResult<String> {
    let name = ident_name(&statement.name);
    let tag = "CREATE EXTENSION".to_string();
    let Some(extension) = Extension::named(&name) else {
        let text = format!("extension \"{name}\" is not available");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).with_hint(
            "Extensions cannot be added; pg_available_extensions lists those that are built in.",
        ));
    };
    if exists(c, &name) {
        let text = format!("extension \"{name}\" already exists");
        if !statement.if_not_exists {
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, text));
        }
        c.ctx.notice(format!("{text}, skipping"));
        return Ok(tag);
    }
    if let Some(version) = &statement.version
        && version.value != extension.version
    {
        let text = format!(
            "extension \"{name}\" has no installation script nor update path for version \"{}\"",
            version.value
        );
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text));
    }
    let installed = Installed { id: c.new_id()?, schema: schema_of(c, statement)? };
    c.catalog.note(c.ctx.database, |notes| {
        notes.extensions.insert(name, installed);
    });
    c.sync();
    Ok(tag)
}

/// Whether values of a type are, or have within, those of `citext`.
fn is_of_citext(ty: &SqlType) -> bool {
    *ty == SqlType::Citext || ty.parts().any(is_of_citext)
}

/// Something of the database that has such values.
fn user_of_citext(c: &Change) -> Option<String> {
    let here =
        |schema: u32| c.catalog.schema_by_id(schema).is_some_and(|s| s.database == c.ctx.database);
    let column = c.catalog.tables().filter(|table| here(table.schema)).find_map(|table| {
        let column = table.columns.iter().find(|column| is_of_citext(&column.ty))?;
        Some(format!("column {} of table {}", column.name, table.name))
    });
    let of_type = || {
        c.catalog.user_types().filter(|user| here(user.schema)).find_map(|user| {
            let ty = c.catalog.sql_type(user)?;
            is_of_citext(&ty).then(|| format!("type {}", user.name))
        })
    };
    let of_function = || {
        c.catalog.functions().filter(|f| here(f.schema)).find_map(|f| {
            let mut types = f.params.iter().map(|p| &p.ty).chain([&f.returns]);
            types.any(is_of_citext).then(|| format!("function {}", f.name))
        })
    };
    column.or_else(of_type).or_else(of_function)
}

/// Runs DROP EXTENSION. What it brought stays: nothing can depend on it but on the type `citext`.
///
/// # Errors
/// 2BP01 while there are values of `citext`, 42704 for one that the database has not, 0A000 for the
/// one that is always there.
pub(crate) fn drop(c: &mut Change, names: &[ast::Ident], if_exists: bool) -> SqlResult<String> {
    for name in names.iter().map(ident_name) {
        if !exists(c, &name) {
            let text = format!("extension \"{name}\" does not exist");
            if !if_exists {
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text));
            }
            c.ctx.notice(format!("{text}, skipping"));
            continue;
        }
        if Extension::named(&name).is_some_and(Extension::is_always_there) {
            return Err(SqlError::unsupported(format!("dropping extension {name}"))
                .with_hint("DO blocks are part of every database."));
        }
        if name == "citext"
            && let Some(user) = user_of_citext(c)
        {
            let text = "cannot drop extension citext because other objects depend on it";
            return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, text)
                .with_detail(format!("{user} depends on type citext")));
        }
        c.catalog.note(c.ctx.database, |notes| {
            notes.extensions.remove(&name);
        });
        c.sync();
    }
    Ok("DROP EXTENSION".to_string())
}
