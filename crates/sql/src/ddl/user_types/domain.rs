//! CREATE DOMAIN and ALTER DOMAIN.
//!
//! A column of a domain is a column of its base type that remembers the domain. What the domain
//! says is asked when a row is written, so a change of the domain looks at the rows there are.

use std::sync::Arc;

use braid_catalog::{
    Check, Column, Domain, Refined, Table, TypeKind, UserType, choose_constraint_name,
};
use braid_types::{Datum, IntervalFields, SqlError, SqlResult, SqlState, shown_type_name};

use crate::ddl::column::refined;
use crate::ddl::{Change, backfill, composite, named_relations, temporary, user_type};
use crate::session::{judged, value_scope};
use braid_parser::{CreateDomain, DomainChange, Name};
use braid_scalar::Refinement;

pub(crate) fn create(c: &mut Change, d: &CreateDomain) -> SqlResult<String> {
    let (schema, name) = temporary::target_schema(c, &d.name)?;
    user_type::refuse_taken(c, schema, &name)?;
    let base = c.ctx.type_of(&d.base)?;
    composite::refuse_row_type(c, &name, &base)?;
    let types = c.ctx.no_params();
    let refinement = braid_scalar::refinement_of(&d.base, types.named_types())?;
    let over = refined(c, &d.base)?
        .filter(|over| matches!(over, Refined::Domain(_) | Refined::Elements(_)));
    let inner = match over {
        Some(Refined::Domain(id)) => c.catalog.domain(id),
        _ => None,
    };
    let collation = match &d.collation {
        Some(name) => crate::ddl::column::collation(c, name, &base)?,
        None => crate::ddl::column::of_domain(c, over),
    };
    let mut domain = Domain {
        base,
        collation: collation.map(|own| own.oid),
        precision: refinement.precision,
        fields: refinement.fields.map(|f| IntervalFields::typmod(Some(f), refinement.precision)),
        over,
        not_null: d.not_null,
        // That of the inner one as it is now.
        default: inner.and_then(|inner| inner.default.clone()),
        checks: Vec::new(),
    };
    if d.default.is_some() {
        set_default(c, (&name, &mut domain), d.default.as_ref())?;
    }
    for (given, condition) in &d.checks {
        add_check(c, &mut domain, &name, given.as_deref(), condition)?;
    }
    let id = c.ctx.db.new_ids(2)?;
    let kind = TypeKind::Domain(Box::new(domain));
    c.catalog.put_type(UserType { id, schema, name, array: id + 1, kind, comment: None });
    c.sync();
    Ok("CREATE DOMAIN".into())
}

fn set_default(
    c: &Change,
    (name, domain): (&str, &mut Domain),
    default: Option<&sqlparser::ast::Expr>,
) -> SqlResult<()> {
    let kept = |e| crate::ddl::column::check_default(c, e, (name, &domain.base));
    domain.default = default.map(kept).transpose()?;
    Ok(())
}

/// Adds a condition; gives its name.
fn add_check(
    c: &Change,
    domain: &mut Domain,
    of: &str,
    given: Option<&str>,
    condition: &sqlparser::ast::Expr,
) -> SqlResult<String> {
    let taken = |name: &str| domain.checks.iter().any(|k| k.name == name);
    let name = match given {
        Some(name) if taken(name) => {
            return Err(SqlError::new(
                SqlState::DUPLICATE_OBJECT,
                format!("constraint \"{name}\" for domain \"{of}\" already exists"),
            ));
        }
        Some(name) => name.to_string(),
        None => choose_constraint_name(of, &[], "check", taken),
    };
    if braid_parser::take_no_inherit(condition).1 {
        let text = "check constraints for domains cannot be marked NO INHERIT";
        return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, text));
    }
    let scope = value_scope(&domain.base);
    braid_scalar::bind_bool(condition, "CHECK", &scope, &mut c.ctx.no_params())?;
    let expr = named_relations::kept(c, condition);
    domain.checks.push(Check { name: name.clone(), expr, not_valid: false, no_inherit: false });
    Ok(name)
}

/// A type with all of a domain's base type: a descriptor knows of a type of a user no more than its
/// oid.
fn resolved(c: &Change, user: &UserType) -> UserType {
    let mut new = user.clone();
    if let (TypeKind::Domain(domain), Some(base)) = (&mut new.kind, c.catalog.sql_type(user)) {
        domain.base = base;
    }
    new
}

pub(crate) fn alter(c: &mut Change, name: &Name, change: &DomainChange) -> SqlResult<String> {
    let tag = "ALTER DOMAIN".to_string();
    let Some(user) = c.ctx.user_type(name)? else { return Err(user_type::no_type(name)) };
    let mut new = resolved(c, &user);
    let TypeKind::Domain(domain) = &mut new.kind else {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a domain", name.join(".")),
        ));
    };
    let no_constraint = |constraint: &str| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{constraint}\" of domain \"{}\" does not exist", user.name),
        )
    };
    // What existing rows have to keep to from now on.
    let mut proven = None;
    match change {
        DomainChange::Default(e) => set_default(c, (&user.name, domain), e.as_ref())?,
        DomainChange::NotNull(not_null) => {
            domain.not_null = *not_null;
            proven = not_null.then(|| Domain { checks: Vec::new(), ..(**domain).clone() });
        }
        DomainChange::Add(given, condition, not_valid) => {
            let added = add_check(c, domain, &user.name, given.as_deref(), condition)?;
            let mut only = (**domain).clone();
            only.not_null = false;
            only.checks.retain(|check| check.name == added);
            proven = (!not_valid).then_some(only);
        }
        DomainChange::Drop(constraint, if_exists) => {
            let before = domain.checks.len();
            domain.checks.retain(|check| check.name != *constraint);
            if domain.checks.len() == before {
                if !if_exists {
                    return Err(no_constraint(constraint));
                }
                c.ctx.notice(format!(
                    "constraint \"{constraint}\" of domain \"{}\" does not exist, skipping",
                    user.name
                ));
            }
        }
        DomainChange::Validate(constraint) => {
            let mut only = (**domain).clone();
            only.not_null = false;
            only.checks.retain(|check| check.name == *constraint);
            if only.checks.is_empty() {
                return Err(no_constraint(constraint));
            }
            proven = Some(only);
        }
        DomainChange::RenameConstraint(from, to) => {
            let found = domain.checks.iter_mut().find(|check| check.name == *from);
            found.ok_or_else(|| no_constraint(from))?.name.clone_from(to);
        }
        DomainChange::Rename(to) => {
            user_type::rename(c, &new, to)?;
            return Ok(tag);
        }
    }
    user_type::lock_users(c, &new)?;
    if let Some(domain) = proven {
        prove(c, &new, &domain)?;
    }
    c.catalog.put_type(new);
    c.touch_users(user.id);
    Ok(tag)
}

/// Looks at the values of all columns of a domain, and of domains over it. Values within others
/// are not looked for.
fn prove(c: &Change, user: &UserType, domain: &Domain) -> SqlResult<()> {
    let (domains, holders) = (c.catalog.domains_over(user.id), c.catalog.types_over(user.id));
    let is_plain =
        |column: &Column| domains.iter().any(|id| column.refinement == Some(Refined::Domain(*id)));
    for table in c.catalog.tables() {
        let holds = |column: &&Column| holders.iter().any(|id| column.has_type(*id));
        let inside = |column: &&Column| holds(column) && !is_plain(column);
        if let Some(column) = table.columns.iter().find(inside) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "cannot alter type \"{}\" because column \"{}.{}\" uses it",
                    user.name, table.name, column.name
                ),
            ));
        }
    }
    let name = shown_type_name(&c.ctx.schema_name(user.schema), &user.name);
    let base = c.catalog.sql_type(user).unwrap_or_else(|| domain.base.clone());
    let refinement = judged(domain, name, &base, &mut c.ctx.no_params())?;
    let tables: Vec<Arc<Table>> = c.catalog.tables().cloned().collect();
    for table in tables {
        for (at, column) in table.columns.iter().enumerate().rev() {
            if is_plain(column) {
                prove_column(c, &table, at, &refinement)?;
            }
        }
    }
    Ok(())
}

fn prove_column(
    c: &Change,
    table: &Arc<Table>,
    at: usize,
    refinement: &Refinement,
) -> SqlResult<()> {
    let layout = backfill::layout(c, table.id)?;
    backfill::each_row(c, &layout, |_, row| {
        refinement.refine(row[at].clone(), &c.ctx.eval).map(drop).map_err(|e| {
            let (column, table_name) = (&table.columns[at].name, &table.name);
            let message = match e.state() {
                SqlState::NOT_NULL_VIOLATION => {
                    format!("column \"{column}\" of table \"{table_name}\" contains null values")
                }
                SqlState::CHECK_VIOLATION => format!(
                    "column \"{column}\" of table \"{table_name}\" contains values that violate \
                     the new constraint"
                ),
                _ => return e,
            };
            SqlError::new(e.state(), message)
                .with_table(c.ctx.schema_name(table.schema), table_name)
                .with_column(column)
        })
    })?;
    Ok(())
}

/// That the value of a new column in rows that are there already is one of its domain.
pub(in crate::ddl) fn judge_new_column(
    c: &Change,
    column: &Column,
    value: &Datum,
) -> SqlResult<Datum> {
    c.ctx.refinement(column)?.refine(value.clone(), &c.ctx.eval)
}
