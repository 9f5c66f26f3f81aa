//! ALTER FUNCTION and DROP FUNCTION, and which function a statement means.

use std::sync::Arc;

use braid_catalog::{Function, same_types};
use braid_parser::{FunctionChange, FunctionRef};
use braid_types::{SqlError, SqlResult, SqlState, SqlType};

use super::create;
use crate::ddl::Change;
use crate::ddl::access::roles;
use crate::ddl::kept::{follow, users};

/// The function that a statement means.
///
/// # Errors
/// 42883 if there is none, 42725 if several have the name and no types are given.
pub(in crate::ddl) fn find(c: &Change, of: &FunctionRef) -> SqlResult<Arc<Function>> {
    let (schema, name) = c.ctx.split(&of.name)?;
    let named: Vec<Arc<Function>> = match schema {
        None => c.catalog.resolve_functions(c.ctx.database, &c.ctx.search_path, &name),
        Some(schema) => {
            let schema = c.catalog.schema(c.ctx.database, &schema);
            let id = schema.ok_or_else(|| crate::session::no_schema(&of.name[0]))?.id;
            c.catalog.functions_in(id, &name).cloned().collect()
        }
    };
    let undefined = |text: String| SqlError::new(SqlState::UNDEFINED_FUNCTION, text);
    let shown = of.name.join(".");
    let Some(inputs) = &of.inputs else {
        return match named.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(undefined(format!("could not find a function named \"{shown}\""))),
            _ => Err(SqlError::new(
                SqlState::AMBIGUOUS_FUNCTION,
                format!("function name \"{shown}\" is not unique"),
            )
            .with_hint("Specify the argument list to select the function unambiguously.")),
        };
    };
    let types: Vec<SqlType> =
        inputs.iter().map(|ty| c.ctx.type_of(ty)).collect::<SqlResult<_>>()?;
    let wanted: Vec<&SqlType> = types.iter().collect();
    let found = named.into_iter().find(|f| same_types(&f.signature(), &wanted));
    found.ok_or_else(|| {
        let types: Vec<String> = types.iter().map(SqlType::base_name).collect();
        undefined(format!("function {shown}({}) does not exist", types.join(", ")))
    })
}

/// DROP FUNCTION.
pub(crate) fn drop(
    c: &mut Change,
    all: &[FunctionRef],
    if_exists: bool,
    cascade: bool,
) -> SqlResult<String> {
    let mut found = Vec::new();
    for of in all {
        match find(c, of) {
            Ok(f) => found.push(f),
            Err(e) if if_exists && e.state() != SqlState::AMBIGUOUS_FUNCTION => {
                let inputs: Vec<String> =
                    of.inputs.iter().flatten().map(|t| t.to_string().to_lowercase()).collect();
                let (name, inputs) = (of.name.join("."), inputs.join(","));
                c.ctx.notice(format!("function {name}({inputs}) does not exist, skipping"));
            }
            Err(e) => return Err(e),
        }
    }
    for f in found {
        users::remove_function(c, &f, cascade)?;
    }
    Ok("DROP FUNCTION".into())
}

/// ALTER FUNCTION.
pub(crate) fn alter(
    c: &mut Change,
    of: &FunctionRef,
    change: &FunctionChange,
) -> SqlResult<String> {
    let mut new = (*find(c, of)?).clone();
    match change {
        FunctionChange::Owner(role) => roles::give_function(c, new.id, role)?,
        FunctionChange::Clauses(clauses) => {
            clauses.iter().try_for_each(|clause| create::apply(&mut new, clause))?;
        }
        FunctionChange::Rename(to) => {
            let old = new.clone();
            new.name = to.clone();
            refuse_taken(c, &new)?;
            rename(c, &old, &new, "RENAME")?;
        }
        FunctionChange::Schema(to) => {
            let schema = c.catalog.schema(c.ctx.database, to);
            let schema = schema.ok_or_else(|| crate::session::no_schema(to))?.id;
            if schema != new.schema {
                let old = new.clone();
                new.schema = schema;
                refuse_taken(c, &new)?;
                rename(c, &old, &new, "SET SCHEMA")?;
            }
        }
    }
    c.catalog.put_function(new);
    c.sync();
    Ok("ALTER FUNCTION".into())
}

/// What calls a function calls it by its new name. Of several functions of a name a text does not
/// tell which is called.
fn rename(c: &mut Change, old: &Function, new: &Function, what: &str) -> SqlResult<()> {
    let lines = users::in_order(users::of_function(c, old).lines);
    if lines.is_empty() {
        return Ok(());
    }
    let others = c.catalog.functions().filter(|f| f.name == old.name && f.id != old.id).count();
    if others == 0 && braid_scalar::overloads(&old.name).is_empty() {
        return follow::follow_function(c, old, new);
    }
    Err(SqlError::unsupported(format!(
        "ALTER FUNCTION .. {what} of a function that is in use and has others of its name"
    ))
    .with_detail(lines.join("\n"))
    .with_hint("Make the function under its new name, then change what calls it."))
}

fn refuse_taken(c: &Change, new: &Function) -> SqlResult<()> {
    match create::same(c, new).filter(|old| old.id != new.id) {
        None => Ok(()),
        Some(_) => {
            let types: Vec<String> = new.inputs().map(|p| p.ty.base_name()).collect();
            let (name, schema) = (&new.name, c.ctx.schema_name(new.schema));
            let text = format!(
                "function {name}({}) already exists in schema \"{schema}\"",
                types.join(", ")
            );
            Err(SqlError::new(SqlState("42723"), text))
        }
    }
}
