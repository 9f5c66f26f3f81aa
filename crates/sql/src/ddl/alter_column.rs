//! ALTER TABLE on columns.
//!
//! Adding a column with a constant default, dropping one, renaming, widening a type: only the
//! descriptor changes. Rows are rewritten where a stored value must change: a volatile default, a
//! generated column, a type with another stored form ([`super::alter_type`]).

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use braid_catalog::{Column, MissingValue, Refined, Relation, Sequence, Table};
use braid_types::{Datum, SqlError, SqlResult, SqlState, TimeZone, quote_ident};
use sqlparser::ast;

use super::column::{self, check_default};
use super::{
    Change, alter, alter_type, backfill, bad_table, constraint, domain, drop as drops, index,
    partitions, parts, primary_key, sequence, truncate, ttl,
};
use crate::session::Notice;
use braid_parser::{parse_expr, take_collation};
use braid_rows::TableLayout;
use braid_rows::table_scope;
use braid_scalar::{Scope, Volatility, ident_name};

pub(super) fn no_column(t: &Table, name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" of relation \"{}\" does not exist", t.name),
    )
}

pub(super) fn add(
    c: &mut Change,
    t: &Arc<Table>,
    def: &ast::ColumnDef,
    if_not_exists: bool,
) -> SqlResult<()> {
    let name = ident_name(&def.name);
    if t.column_named(&name).is_some() {
        if if_not_exists {
            let text =
                format!("column \"{name}\" of relation \"{}\" already exists, skipping", t.name);
            c.ctx.notice_in(SqlState::DUPLICATE_COLUMN, text);
            return Ok(());
        }
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{name}\" of relation \"{}\" already exists", t.name),
        ));
    }
    let old = backfill::layout(c, t.id)?;
    let mut new = (**t).clone();
    let declared = column::declare(c, &mut new, def)?;
    c.put(new.clone());
    column::finish(c, &mut new, std::slice::from_ref(&declared), "ALTER")?;
    let at = new.columns.len() - 1;
    let per_row = fill_default(c, &mut new, at, &old)?;
    let nullable = new.columns[at].nullable;
    let empty_value = new.columns[at].missing.is_none() && !per_row;
    let table = c.put(new);
    if !nullable && empty_value && backfill::has_rows(c, &old)? {
        return Err(SqlError::new(
            SqlState::NOT_NULL_VIOLATION,
            format!("column \"{name}\" of relation \"{}\" contains null values", t.name),
        )
        .with_table(c.ctx.schema_name(t.schema), &t.name)
        .with_column(&name));
    }
    if per_row {
        let filler = crate::dml::defaults::Filler::new(&c.ctx, &table)?;
        let ctx = c.ctx.clone();
        backfill::rewrite(c, &old, t.id, |mut row| {
            row.push(Datum::Null);
            filler.fill_one(&ctx, &mut row, at)?;
            Ok(row)
        })?;
    }
    // As the rewrite has left it.
    for k in &declared.constraints {
        let table = c.stored(t.id)?;
        match k {
            ast::TableConstraint::PrimaryKey(key) => {
                let column = table.column_named(&name).map(|column| column.id);
                primary_key::add(c, &table, key, column)?;
            }
            other => constraint::add(c, &mut (*table).clone(), other, Some(&name))?,
        }
    }
    Ok(())
}

/// Notes a constant default as the value of old rows; `true` if each row needs its own value.
fn fill_default(c: &Change, t: &mut Table, at: usize, old: &Arc<TableLayout>) -> SqlResult<bool> {
    let col = &mut t.columns[at];
    if col.generated.is_some() || col.sequence.is_some() {
        return Ok(true);
    }
    let domain = match col.refinement {
        Some(Refined::Domain(id)) => c.catalog.domain(id).and_then(|d| d.default.clone()),
        _ => None,
    };
    let Some(text) = col.default.clone().or(domain) else {
        if col.refinement.is_some() && backfill::has_rows(c, old)? {
            domain::judge_new_column(c, col, &Datum::Null)?;
        }
        return Ok(false);
    };
    let bound = braid_scalar::bind_to(
        &parse_expr(&text)?,
        &col.ty,
        &Scope::empty(),
        &mut c.ctx.no_params(),
    )?;
    if bound.volatility() == Volatility::Volatile {
        return Ok(true);
    }
    let value = domain::judge_new_column(c, col, &bound.eval(&[], &c.ctx.eval)?)?;
    col.missing = value.to_text(TimeZone::utc()).map(MissingValue);
    Ok(false)
}

pub(super) fn drop(
    c: &mut Change,
    t: &Arc<Table>,
    name: &str,
    if_exists: bool,
    cascade: bool,
) -> SqlResult<()> {
    let Some(col) = t.column_named(name) else {
        if if_exists {
            c.ctx.notice(format!(
                "column \"{name}\" of relation \"{}\" does not exist, skipping",
                t.name
            ));
            return Ok(());
        }
        return Err(no_column(t, name));
    };
    ttl::refuse_used(t, col.id)?;
    partitions::refuse_key(t, col.id, "drop")?;
    let id = col.id;
    let mut lines = Vec::new();
    let mut unlink = Vec::new();
    for r in c.catalog.referencing_tables(t.id) {
        for fk in
            r.foreign_keys.iter().filter(|k| k.parent == t.id && k.parent_columns.contains(&id))
        {
            lines.push(format!(
                "constraint {} on table {} depends on column {name} of table {}",
                fk.name, r.name, t.name
            ));
            unlink.push((r.id, fk.name.clone()));
        }
    }
    let (views, used) = drops::views_of_column(c, t, name);
    lines.extend(used);
    let own = sequences_of(c, t, id);
    let defaults = sequence::defaults_of(c, &own, &|table, col| table.id == t.id && col.id == id)?;
    lines.extend(sequence::lines(&defaults));
    drops::refuse_or_notice(c, cascade, &format!("column {name} of table {}", t.name), &lines)?;
    sequence::forget_defaults(c, &defaults)?;
    drops::remove_views(c, views)?;
    drops::remove_foreign_keys(c, unlink)?;
    if t.primary.columns.iter().any(|k| k.column == id) {
        let t = c.stored(t.id)?;
        primary_key::end(c, &t)?;
    }
    forget_column(c, t, id, name, cascade)
}

/// The sequences that go with a column.
fn sequences_of(c: &Change, t: &Table, id: u32) -> BTreeSet<u32> {
    let own = t.column(id).and_then(|column| column.sequence);
    let all = truncate::owned_sequences(&c.catalog, t).into_iter();
    let goes = |s: &Sequence| s.owned_by == Some((t.id, id)) || own == Some(s.id);
    all.filter(goes).map(|s| s.id).collect()
}

/// Removes a column with the indexes and constraints of its own table that use it.
fn forget_column(
    c: &mut Change,
    t: &Arc<Table>,
    id: u32,
    name: &str,
    cascade: bool,
) -> SqlResult<()> {
    let current = c.catalog.table(t.id).expect("still there").clone();
    for i in &current.indexes {
        if index::uses_column(&current, i, id)? {
            let now = c.catalog.table(t.id).expect("still there").clone();
            drops::remove_index(c, &now, i.id, cascade)?;
        }
    }
    let mut new = (**c.catalog.table(t.id).expect("still there")).clone();
    let scope = table_scope(&new);
    let ordinal = new.ordinal(id).expect("found by name");
    let uses = |text: &str| -> SqlResult<bool> {
        let b = braid_scalar::bind(&parse_expr(text)?, &scope, &mut c.ctx.no_params())?;
        Ok(b.columns().contains(&ordinal))
    };
    let mut checks = Vec::new();
    for k in &new.checks {
        if !uses(&k.expr)? {
            checks.push(k.clone());
        }
    }
    for x in &new.columns {
        if let Some(g) = &x.generated
            && uses(g)?
        {
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!(
                    "cannot drop column {name} of table {} because generated column {} uses it",
                    t.name, x.name
                ),
            ));
        }
    }
    new.checks = checks;
    new.foreign_keys.retain(|k| !k.columns.contains(&id));
    for owned in sequences_of(c, t, id) {
        c.catalog.remove(owned);
    }
    new.columns.remove(ordinal);
    c.put(new);
    Ok(())
}

/// DROP EXPRESSION: the values stay, and are the user's from now on.
pub(super) fn drop_expression(
    c: &mut Change,
    t: &Arc<Table>,
    name: &str,
    if_exists: bool,
) -> SqlResult<()> {
    let at = t.column_named(name).and_then(|column| t.ordinal(column.id));
    let at = at.ok_or_else(|| no_column(t, name))?;
    if t.columns[at].generated.is_none() {
        let text = format!(
            "column \"{name}\" of relation \"{}\" is not a stored generated column",
            t.name
        );
        if if_exists {
            c.ctx.notice(format!("{text}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text));
    }
    let mut new = (**t).clone();
    new.columns[at].generated = None;
    c.put(new);
    Ok(())
}

/// SET STATISTICS: how much ANALYZE keeps of a column; -1: as much as the setting says, 0: nothing.
pub(super) fn set_statistics(
    c: &mut Change,
    t: &Arc<Table>,
    name: &str,
    target: i64,
) -> SqlResult<()> {
    const MOST: i64 = 10_000;
    let Some(col) = t.column_named(name) else { return Err(no_column(t, name)) };
    if target < -1 {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("statistics target {target} is too low"),
        ));
    }
    if target > MOST {
        c.ctx.notices.lock().push(Notice {
            severity: "WARNING",
            state: SqlState::INVALID_PARAMETER_VALUE,
            message: format!("lowering statistics target to {MOST}"),
            detail: None,
            hint: None,
        });
    }
    let mut new = (**t).clone();
    let at = t.ordinal(col.id).expect("found by name");
    new.columns[at].options.statistics = u32::try_from(target.min(MOST)).ok();
    c.put(new);
    Ok(())
}

/// 42703, as PostgreSQL says it of a column that is renamed.
fn no_such(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
}

pub(super) fn rename(c: &mut Change, t: &Arc<Table>, old: &str, new: String) -> SqlResult<()> {
    let Some(col) = t.column_named(old) else { return Err(no_such(old)) };
    column::check_name(&new)?;
    if t.column_named(&new).is_some() {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{new}\" of relation \"{}\" already exists", t.name),
        ));
    }
    alter::refuse_if_column_viewed(c, t, old, "rename a column of table")?;
    let id = col.id;
    let mut table = (**t).clone();
    for k in &mut table.checks {
        k.expr = rename_in(&k.expr, old, &new)?;
    }
    for x in &mut table.columns {
        for text in x.generated.iter_mut().chain(&mut x.expression) {
            *text = rename_in(text, old, &new)?;
        }
        if x.id == id {
            x.name = new.clone();
        }
    }
    for predicate in table.indexes.iter_mut().filter_map(|i| i.predicate.as_mut()) {
        *predicate = rename_in(predicate, old, &new)?;
    }
    partitions::rename_column(&mut table, |text| rename_in(text, old, &new))?;
    c.put(table);
    Ok(())
}

/// Renames a column inside a stored expression.
fn rename_in(text: &str, old: &str, new: &str) -> SqlResult<String> {
    let mut e = parse_expr(text)?;
    let change = |i: &mut ast::Ident| {
        if ident_name(i) == old {
            *i = match quote_ident(new) == new {
                true => ast::Ident::new(new),
                false => ast::Ident::with_quote('"', new),
            };
        }
    };
    let _ = braid_walk::expressions_mut(&mut e, |e| {
        match e {
            ast::Expr::Identifier(i) => change(i),
            ast::Expr::CompoundIdentifier(parts) => {
                if let Some(last) = parts.last_mut() {
                    change(last);
                }
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    Ok(e.to_string())
}

/// Columns that hold no NULL by what they are.
fn refuse_nulls(t: &Table, column: &Column) -> SqlResult<()> {
    let name = &column.name;
    if t.primary.columns.iter().any(|k| k.column == column.id) {
        return Err(bad_table(format!("column \"{name}\" is in a primary key")));
    }
    if column.identity.is_some() {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("column \"{name}\" of relation \"{}\" is an identity column", t.name),
        ));
    }
    Ok(())
}

pub(super) fn alter(
    c: &mut Change,
    t: &Arc<Table>,
    name: &str,
    op: &ast::AlterColumnOperation,
) -> SqlResult<()> {
    let Some(col) = t.column_named(name) else { return Err(no_column(t, name)) };
    let at = t.ordinal(col.id).expect("found by name");
    let mut new = (**t).clone();
    match op {
        ast::AlterColumnOperation::SetNotNull => {
            backfill::validate_not_null(c, t.id, at)?;
            new.columns[at].nullable = false;
        }
        ast::AlterColumnOperation::DropNotNull => {
            refuse_nulls(t, &new.columns[at])?;
            new.columns[at].nullable = true;
        }
        ast::AlterColumnOperation::SetDefault { value } => {
            if new.columns[at].identity.is_some() || new.columns[at].generated.is_some() {
                return Err(SqlError::syntax(format!(
                    "column \"{name}\" of relation \"{}\" is an identity or generated column",
                    t.name
                )));
            }
            let kept = check_default(c, value, (name, &new.columns[at].ty))?;
            new.columns[at].default = Some(kept);
            set_sequence_of_default(c, &mut new, at)?;
        }
        ast::AlterColumnOperation::DropDefault => {
            new.columns[at].default = None;
            new.columns[at].sequence =
                new.columns[at].sequence.filter(|_| new.columns[at].identity.is_some());
        }
        ast::AlterColumnOperation::SetDataType { data_type, using, .. } => {
            partitions::refuse_key(t, col.id, "alter")?;
            let (ty, refinement) = (c.ctx.type_of(data_type)?, column::refined(c, data_type)?);
            let (collation, using) = take_collation(using.as_ref());
            let collation = match collation {
                Some(name) => column::collation(c, &parts(name), &ty)?,
                None => column::of_domain(c, refinement),
            };
            let to = alter_type::Target { ty, refinement, collation };
            return alter_type::run(c, t, at, &to, using);
        }
        ast::AlterColumnOperation::AddGenerated { generated_as, sequence_options } => {
            let mut option = ast::ColumnOptionDef {
                name: None,
                option: ast::ColumnOption::Generated {
                    generated_as: generated_as.unwrap_or(ast::GeneratedAs::ByDefault),
                    sequence_options: sequence_options.clone(),
                    generation_expr: None,
                    generation_expr_mode: None,
                    generated_keyword: true,
                },
            };
            option.name = None;
            column::make_identity(c, &mut new, at, &option)?;
        }
    }
    c.put(new);
    Ok(())
}

/// `SET DEFAULT nextval('own sequence')` of a dump makes the column serial again.
fn set_sequence_of_default(c: &Change, t: &mut Table, at: usize) -> SqlResult<()> {
    let named = match &t.columns[at].default {
        Some(default) => match parse_expr(default)? {
            ast::Expr::Function(call) => sequence::sequence_of_call(&call),
            _ => None,
        },
        None => None,
    };
    let found = match named {
        Some(name) => c.ctx.find_relation(&name)?,
        None => None,
    };
    let owner = Some((t.id, t.columns[at].id));
    t.columns[at].sequence = match found {
        Some(Relation::Sequence(s)) if s.owned_by == owner => Some(s.id),
        _ => None,
    };
    Ok(())
}
