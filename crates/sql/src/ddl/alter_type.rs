//! ALTER COLUMN .. TYPE, with all that hangs on the column: its default is cast along, its checks
//! and foreign keys are proven again, keys and generated columns forbid what they cannot follow.

use std::sync::Arc;

use braid_catalog::{Refined, Table};
use braid_types::{CastContext, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use super::column::{check_default, table_scope};
use super::{Change, alter, backfill, bad_table, composite, constraint, index, ttl};
use crate::storage::computed::Computed;
use braid_parser::parse_expr;
use braid_scalar::Bound;

/// Whether a stored value of one type is a stored value of the other with the same meaning.
fn same_stored_form(from: &SqlType, to: &SqlType) -> bool {
    match (from, to) {
        (SqlType::Int2, SqlType::Int4 | SqlType::Int8) | (SqlType::Int4, SqlType::Int8) => true,
        (SqlType::Varchar(_), SqlType::Text | SqlType::Varchar(None)) => true,
        (SqlType::Text, SqlType::Text | SqlType::Varchar(None)) => true,
        (SqlType::Varchar(Some(a)), SqlType::Varchar(Some(b))) => a <= b,
        (SqlType::Numeric(_), SqlType::Numeric(None)) => true,
        (a, b) => a == b,
    }
}

/// What the type is changed to.
pub(super) struct Target {
    pub(super) ty: SqlType,
    pub(super) refinement: Option<Refined>,
}

/// Whether USING says no more than that the column is cast to its new type.
fn is_plain_cast(c: &Change, using: &ast::Expr, column: &str, to: &SqlType) -> bool {
    let ast::Expr::Cast { expr, data_type, .. } = using else { return false };
    let ast::Expr::Identifier(ident) = &**expr else { return false };
    braid_scalar::ident_name(ident) == column && c.ctx.type_of(data_type).is_ok_and(|ty| ty == *to)
}

/// Changes the type of the column at position `at`.
pub(super) fn run(
    c: &mut Change,
    t: &Arc<Table>,
    at: usize,
    to: &Target,
    using: Option<&ast::Expr>,
) -> SqlResult<()> {
    let ty = &to.ty;
    composite::refuse_row_type(c, &t.columns[at].name, ty)?;
    let old_type = t.columns[at].ty.clone();
    let id = t.columns[at].id;
    let name = &t.columns[at].name;
    ttl::refuse_used(t, id)?;
    alter::refuse_if_column_viewed(c, t, name, "alter the type of a column of table")?;
    let in_key = t.all_indexes().any(|i| i.columns.iter().any(|k| k.column == id));
    let shared = t.interleave.as_ref().is_some_and(|i| i.columns.contains(&id))
        || c.catalog.interleaved_children(t.id).next().is_some()
            && t.primary.columns.iter().any(|k| k.column == id);
    if shared && old_type != *ty {
        return Err(bad_table(format!(
            "cannot alter column \"{name}\" of table \"{}\": it is shared along the interleaving",
            t.name
        ))
        .with_hint("Parent and child key columns must have the same type."));
    }
    refuse_generated_from(c, t, at)?;
    let mut new = (**t).clone();
    new.columns[at].ty = ty.clone();
    new.columns[at].refinement = to.refinement;
    let computed = renew_expressions(c, &mut new, id)?;
    convert_default(c, &mut new, at, &old_type)?;
    check_keys(c, &new, at)?;
    // What is asked of values now was asked before, or nothing is asked.
    let as_refined = to.refinement.is_none() || to.refinement == t.columns[at].refinement;
    let plain = using.is_none_or(|e| is_plain_cast(c, e, &t.columns[at].name, ty));
    if plain && as_refined && !computed && same_stored_form(&old_type, ty) {
        let table = c.put(new);
        return check_again(c, &table, at);
    }
    if in_key {
        return Err(SqlError::unsupported(format!(
            "changing the type of key column \"{name}\" from {} to {}",
            old_type.name(),
            ty.name()
        ))
        .with_hint("Drop the index first, or create a new table and copy the rows."));
    }
    let convert = match using {
        Some(e) => Some(braid_scalar::bind_to(e, ty, &table_scope(t), &mut c.ctx.no_params())?),
        None => {
            if !braid_types::cast_exists(&old_type, ty)
                .is_some_and(|k| matches!(k, CastContext::Implicit | CastContext::Assignment))
            {
                return Err(SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("column \"{name}\" cannot be cast automatically to type {}", ty.name()),
                )
                .with_hint(format!("You might need to specify \"USING {name}::{}\".", ty.name())));
            }
            None
        }
    };
    rewrite(c, t, new, at, convert.as_ref())
}

/// Expressions and predicates of indexes mean something else over another type: those indexes get
/// new entries. Whether there are any.
fn renew_expressions(c: &mut Change, t: &mut Table, id: u32) -> SqlResult<bool> {
    let mut some = false;
    for n in 0..t.indexes.len() {
        let index = t.indexes[n].clone();
        let plain = index.columns.iter().any(|k| k.column == id) || index.include.contains(&id);
        if plain || !index::uses_column(t, &index, id)? {
            continue;
        }
        for computed in Computed::of_table(t)? {
            let own = t.columns[computed.ordinal].id;
            if index.columns.iter().any(|k| k.column == own) {
                t.columns[computed.ordinal].ty = computed.expr.ty().clone();
            }
        }
        index::check_key_types(t, &index.columns)?;
        let inside = c.catalog.interleaved_children(t.id).next().is_some();
        if inside || index.interleave_in.is_some() {
            return Err(SqlError::unsupported(format!(
                "changing the type of a column that index \"{}\" computes with",
                index.name
            ))
            .with_hint("Drop the index first, and create it again behind the change."));
        }
        t.indexes[n].generation = c.new_generation()?;
        some = true;
    }
    Ok(some)
}

/// Gives all rows the value of the new type, and the table its new descriptor.
fn rewrite(
    c: &mut Change,
    t: &Arc<Table>,
    mut new: Table,
    at: usize,
    convert: Option<&Bound>,
) -> SqlResult<()> {
    let (old_type, ty) = (t.columns[at].ty.clone(), new.columns[at].ty.clone());
    let old = backfill::layout(c, t.id)?;
    new.columns[at].missing = None;
    c.put(new);
    let eval = c.ctx.eval.clone();
    let refinement =
        c.ctx.refinement(&c.catalog.table(t.id).expect("just put there").columns[at])?;
    backfill::rewrite(c, &old, t.id, |mut row| {
        let value = match convert {
            Some(e) => e.eval(&row, &eval)?,
            None => crate::dml::assign(&row[at], &old_type, &ty, &eval)?,
        };
        row[at] = refinement.refine(value, &eval)?;
        Ok(row)
    })?;
    let table = c.catalog.table(t.id).expect("it was just altered").clone();
    check_again(c, &table, at)
}

/// A generated column that is made from this one would have to be made again with another meaning.
fn refuse_generated_from(c: &Change, t: &Table, at: usize) -> SqlResult<()> {
    let scope = table_scope(t);
    for column in &t.columns {
        let Some(text) = &column.generated else { continue };
        let bound = braid_scalar::bind(&parse_expr(text)?, &scope, &mut c.ctx.no_params())?;
        if bound.columns().contains(&at) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot alter type of a column used by a generated column",
            )
            .with_detail(format!(
                "Column \"{}\" is used by generated column \"{}\".",
                t.columns[at].name, column.name
            )));
        }
    }
    Ok(())
}

/// The default keeps its value: it is computed in the old type and cast to the new one.
fn convert_default(c: &Change, t: &mut Table, at: usize, old: &SqlType) -> SqlResult<()> {
    let column = &mut t.columns[at];
    let Some(text) = &column.default else { return Ok(()) };
    let cast = CastContext::Assignment;
    let castable = old.same_base(&column.ty)
        || braid_types::cast_exists(old, &column.ty).is_some_and(|k| k <= cast);
    if column.sequence.is_some() || (old.same_base(&column.ty) && castable) {
        return Ok(());
    }
    if !castable {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "default for column \"{}\" cannot be cast automatically to type {}",
                column.name,
                column.ty.name()
            ),
        ));
    }
    let e = parse_expr(&format!("CAST(CAST(({text}) AS {}) AS {})", old.name(), column.ty.name()))?;
    check_default(c, &e, &column.ty)?;
    column.default = Some(e.to_string());
    Ok(())
}

/// Foreign keys of the column and to it must still be comparable.
fn check_keys(c: &Change, t: &Table, at: usize) -> SqlResult<()> {
    let id = t.columns[at].id;
    for fk in t.foreign_keys.iter().filter(|fk| fk.columns.contains(&id)) {
        let own = fk.parent == t.id;
        let parent = if own { Some(t) } else { c.catalog.table(fk.parent).map(|p| &**p) };
        let parent = parent.ok_or_else(|| SqlError::internal("referenced table is gone"))?;
        constraint::check_types(t, parent, &fk.name, &fk.columns, &fk.parent_columns)?;
    }
    for r in c.catalog.referencing_tables(t.id).filter(|r| r.id != t.id) {
        for fk in r.foreign_keys.iter().filter(|fk| fk.parent == t.id) {
            if fk.parent_columns.contains(&id) {
                constraint::check_types(r, t, &fk.name, &fk.columns, &fk.parent_columns)?;
            }
        }
    }
    Ok(())
}

/// CHECK constraints mean something else over another type, and values have changed: rows are
/// looked at again, by constraints on the column.
fn check_again(c: &Change, t: &Arc<Table>, at: usize) -> SqlResult<()> {
    let (scope, id) = (table_scope(t), t.columns[at].id);
    for check in &t.checks {
        let e = parse_expr(&check.expr)?;
        let bound = braid_scalar::bind_bool(&e, "CHECK", &scope, &mut c.ctx.no_params())?;
        if bound.columns().contains(&at) {
            backfill::validate_check(c, t, &check.name, &bound)?;
        }
    }
    if !t.columns[at].nullable {
        backfill::validate_not_null(c, t.id, at)?;
    }
    for fk in t.foreign_keys.iter().filter(|fk| fk.columns.contains(&id)) {
        backfill::validate_foreign_key(c, t, fk)?;
    }
    Ok(())
}
