//! COMMENT ON.

use braid_catalog::{Relation, TypeKind, UserType, View};
use braid_parser::{Comment, Commented, FunctionRef, Name};
use braid_types::{SqlError, SqlResult, SqlState};

use super::access::grant;
use super::access::roles::{no_role, type_id, wrong_kind};
use super::{Change, collation, functions, user_type};

/// Runs COMMENT ON; gives the command tag.
pub(crate) fn comment(c: &mut Change, statement: &Comment) -> SqlResult<String> {
    // A comment of nothing is none, as in PostgreSQL.
    let text = statement.text.clone().filter(|text| !text.is_empty());
    let name = &statement.name;
    let bare = name.last().map_or("", String::as_str);
    match statement.kind {
        Commented::Relation(wanted) => relation(c, name, wanted, text)?,
        Commented::Column => column(c, name, text)?,
        Commented::Type(_) => user_type::comment(c, name, text)?,
        Commented::Schema => {
            let schema = c.catalog.schema(c.ctx.database, bare);
            let id = schema.ok_or_else(|| crate::session::no_schema(bare))?.id;
            c.catalog.note(id, |notes| notes.comment = text);
        }
        Commented::Database => {
            let Some(database) = c.catalog.database(bare) else {
                let text = format!("database \"{bare}\" does not exist");
                return Err(SqlError::new(SqlState("3D000"), text));
            };
            let id = database.id;
            c.catalog.note(id, |notes| notes.comment = text);
        }
        Commented::Role => {
            let role = c.catalog.role_named(bare).map(|r| r.id);
            let known = c.catalog.role_oid(bare, &c.ctx.session.user).is_some();
            let Some(id) = role else {
                return Err(match known {
                    true => SqlError::unsupported("a comment on a role that is always there"),
                    false => no_role(bare),
                });
            };
            c.catalog.note(id, |notes| notes.comment = text);
        }
        Commented::Collation => collation::comment(c, name, text)?,
        Commented::Extension => extension(c, bare)?,
        Commented::TableConstraint => table_constraint(c, name, text)?,
        Commented::DomainConstraint => domain_constraint(c, name, text)?,
        Commented::Function => {
            let of = FunctionRef { name: name.clone(), inputs: statement.inputs.clone() };
            let id = functions::find(c, &of)?.id;
            c.catalog.note(id, |notes| notes.comment = text);
        }
        Commented::Other(what) => {
            return Err(SqlError::unsupported(format!("COMMENT ON {}", what.to_uppercase())));
        }
    }
    c.sync();
    Ok("COMMENT".to_string())
}

/// Extensions that are built in have a text of their own.
fn extension(c: &Change, name: &str) -> SqlResult<()> {
    if c.catalog.extension(c.ctx.database, name).is_some() {
        return Ok(());
    }
    let text = format!("extension \"{name}\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text))
}

fn relation(c: &mut Change, name: &Name, wanted: &str, text: Option<String>) -> SqlResult<()> {
    let found = c.ctx.relation(name)?;
    if found.kind() != wanted {
        return Err(wrong_kind(name, wanted));
    }
    match found {
        Relation::Table(t) => {
            let mut t = (*t).clone();
            t.comment = text;
            c.put(t);
        }
        Relation::View(v) => c.catalog.put_view(View { comment: text, ..(*v).clone() }),
        other => c.catalog.note(other.id(), |notes| notes.comment = text),
    }
    Ok(())
}

fn column(c: &mut Change, name: &Name, text: Option<String>) -> SqlResult<()> {
    let Some((column, table)) = name.split_last().filter(|(_, table)| !table.is_empty()) else {
        return Err(SqlError::syntax("column name must be qualified"));
    };
    if let Some(ty) = c.ctx.user_type(table)?
        && matches!(ty.kind, TypeKind::Composite(_))
    {
        return field(c, &ty, column, text);
    }
    let found = c.ctx.relation(&table.to_vec())?;
    let id = grant::column(c, found.id(), column).map_err(|_| {
        let relation = table.join(".");
        let text = format!("column \"{column}\" of relation \"{relation}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_COLUMN, text)
    })?;
    match found {
        Relation::Table(t) => {
            let mut t = (*t).clone();
            let mut columns = t.columns.iter_mut();
            if let Some(found) = columns.find(|col| col.id == id) {
                found.comment = text;
            }
            c.put(t);
        }
        other => c.catalog.note(other.id(), |notes| {
            match text {
                Some(text) => notes.column_comments.insert(id, text),
                None => notes.column_comments.remove(&id),
            };
        }),
    }
    Ok(())
}

/// COMMENT ON COLUMN of a composite type.
fn field(c: &mut Change, ty: &UserType, name: &str, text: Option<String>) -> SqlResult<()> {
    let mut ty = ty.clone();
    let TypeKind::Composite(fields) = &mut ty.kind else { return Ok(()) };
    let Some(field) = fields.iter_mut().find(|f| f.name == name) else {
        let text = format!("column \"{name}\" of relation \"{}\" does not exist", ty.name);
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, text));
    };
    field.comment = text;
    c.catalog.put_type(ty);
    c.sync();
    Ok(())
}

fn note_constraint(c: &mut Change, id: u32, constraint: &str, text: Option<String>) {
    c.catalog.note(id, |notes| {
        match text {
            Some(text) => notes.constraints.insert(constraint.to_string(), text),
            None => notes.constraints.remove(constraint),
        };
    });
}

fn no_constraint(constraint: &str, of: &str) -> SqlError {
    let text = format!("constraint \"{constraint}\" for {of} does not exist");
    SqlError::new(SqlState::UNDEFINED_OBJECT, text)
}

fn table_constraint(c: &mut Change, name: &Name, text: Option<String>) -> SqlResult<()> {
    let Some((constraint, table)) = name.split_last() else { return Ok(()) };
    let table = c.ctx.table(&table.to_vec())?;
    if !table.has_constraint(constraint) {
        return Err(no_constraint(constraint, &format!("table \"{}\"", table.name)));
    }
    note_constraint(c, table.id, constraint, text);
    Ok(())
}

fn domain_constraint(c: &mut Change, name: &Name, text: Option<String>) -> SqlResult<()> {
    let Some((constraint, domain)) = name.split_last() else { return Ok(()) };
    let id = type_id(c, &domain.to_vec())?;
    let known = c.catalog.user_type(id).is_some_and(|ty| match &ty.kind {
        TypeKind::Domain(domain) => domain.checks.iter().any(|check| check.name == *constraint),
        TypeKind::Enum(_) | TypeKind::Composite(_) | TypeKind::Range(_) => false,
    });
    if !known {
        let of = format!("domain {}", domain.last().map_or("", String::as_str));
        return Err(no_constraint(constraint, &of));
    }
    note_constraint(c, id, constraint, text);
    Ok(())
}
