//! Constraints: UNIQUE, CHECK, FOREIGN KEY. Adding one checks the rows that are there.

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_catalog::{
    Addition, Check, Deferral, ForeignKey, Index, IndexColumn, IndexConstraint, RefAction, Table,
    choose_constraint_name,
};
use braid_types::{SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use super::{
    Change, alter, backfill, bad_table, exists, index, named_relations, partitions, parts,
    temporary,
};
use crate::session::Context;
use braid_parser::{Name, parse_expr, take_included, take_no_inherit, take_set_columns};
use braid_rows::table_scope;
use braid_scalar::ident_name;

/// 0A000 for a primary key whose check is to be put off: rows lie under it.
pub(super) fn refuse_deferrable(c: Option<&ast::ConstraintCharacteristics>) -> SqlResult<()> {
    match deferral(c)? {
        None => Ok(()),
        Some(_) => Err(SqlError::unsupported("a DEFERRABLE primary key")
            .with_hint("Foreign keys and UNIQUE can be checked at the end of the transaction.")),
    }
}

/// When a constraint is checked; `None`: it is not DEFERRABLE.
fn deferral(c: Option<&ast::ConstraintCharacteristics>) -> SqlResult<Option<Deferral>> {
    let Some(c) = c else { return Ok(None) };
    if c.enforced == Some(false) {
        return Err(SqlError::unsupported("a constraint that is NOT ENFORCED"));
    }
    let deferred = matches!(c.initially, Some(ast::DeferrableInitial::Deferred));
    match c.deferrable {
        Some(false) if deferred => {
            Err(SqlError::syntax("constraint declared INITIALLY DEFERRED must be DEFERRABLE"))
        }
        _ if deferred => Ok(Some(Deferral::Deferred)),
        Some(true) => Ok(Some(Deferral::Immediate)),
        _ => Ok(None),
    }
}

/// ALTER CONSTRAINT: when a foreign key is checked.
///
/// # Errors
/// 42704 if there is none of that name, 42809 for a constraint of another kind.
pub(super) fn alter(
    c: &mut Change,
    t: &Arc<Table>,
    name: &str,
    characteristics: &ast::ConstraintCharacteristics,
) -> SqlResult<()> {
    let deferral = deferral(Some(characteristics))?;
    let mut new = (**t).clone();
    let Some(fk) = new.foreign_keys.iter_mut().find(|fk| fk.name == name) else {
        let of = format!("constraint \"{name}\" of relation \"{}\"", t.name);
        return Err(match name_taken(t, name) {
            true => {
                let text = format!("{of} is not a foreign key constraint");
                SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
            }
            false => SqlError::new(SqlState::UNDEFINED_OBJECT, format!("{of} does not exist")),
        });
    };
    fk.deferral = deferral;
    let parent = fk.parent;
    c.lock_chain(&c.stored(parent)?)?;
    c.put(new);
    Ok(())
}

/// The ids of foreign keys and of indexes of unique keys by their names, for SET CONSTRAINTS.
pub(crate) fn deferrable(ctx: &Context, names: &[Name]) -> SqlResult<Vec<u32>> {
    let mut out = Vec::new();
    for name in names {
        let bare = name.last().cloned().unwrap_or_default();
        let schemas: Vec<&str> = match name.len() {
            1 => ctx.search_path.iter().map(String::as_str).collect(),
            n => vec![&name[n - 2]],
        };
        let within = |t: &&Arc<Table>| {
            let own = ctx.catalog.schema_by_id(t.schema);
            own.is_some_and(|s| s.database == ctx.database && schemas.contains(&s.name.as_str()))
        };
        let mut found = Vec::new();
        let mut fixed = false;
        for t in ctx.catalog.tables().filter(within) {
            for i in t.all_indexes().filter(|i| i.constraint.is_some() && i.name == bare) {
                fixed |= i.deferral.is_none();
                found.push(i.id);
            }
            fixed |= t.checks.iter().any(|k| k.name == bare);
            for fk in t.foreign_keys.iter().filter(|fk| fk.name == bare) {
                fixed |= fk.deferral.is_none();
                found.push(fk.id);
            }
        }
        if fixed {
            let text = format!("constraint \"{bare}\" is not deferrable");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
        }
        if found.is_empty() {
            let text = format!("constraint \"{}\" does not exist", name.join("."));
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text));
        }
        out.extend(found);
    }
    Ok(out)
}

/// Whether a constraint name is in use on the table.
fn name_taken(t: &Table, name: &str) -> bool {
    t.checks.iter().any(|k| k.name == name)
        || t.foreign_keys.iter().any(|k| k.name == name)
        || t.all_indexes().any(|i| i.constraint.is_some() && i.name == name)
}

fn constraint_exists(t: &Table, name: &str) -> SqlError {
    SqlError::new(
        SqlState::DUPLICATE_OBJECT,
        format!("constraint \"{name}\" for relation \"{}\" already exists", t.name),
    )
}

/// Adds a constraint to a table that is already in the catalog. `column` is set for inline ones.
pub(super) fn add(
    c: &mut Change,
    t: &mut Table,
    k: &ast::TableConstraint,
    column: Option<&str>,
) -> SqlResult<()> {
    if matches!(k, ast::TableConstraint::ForeignKey(_)) {
        // It may refer to the table itself.
        c.put(t.clone());
    }
    let addition = declare(c, t, k, column)?;
    if let Addition::ForeignKey(fk) = &addition {
        let parent = c.catalog.table(fk.parent).cloned();
        c.lock_chain(&parent.ok_or_else(|| SqlError::internal("referenced table is gone"))?)?;
    }
    settle(t, addition.clone());
    let table = c.put(t.clone());
    match &addition {
        Addition::Index { index, .. } => backfill::build_index(c, t.id, index.id),
        other => prove(c, &table, other),
    }
}

/// Adds a constraint that rows which are there need not keep to: ADD CONSTRAINT .. NOT VALID.
pub(super) fn add_unproven(
    c: &mut Change,
    t: &mut Table,
    k: &ast::TableConstraint,
) -> SqlResult<()> {
    let addition = match declare(c, t, k, None)? {
        Addition::Check(check) => Addition::Check(Check { not_valid: true, ..check }),
        Addition::ForeignKey(fk) => {
            let parent = c.catalog.table(fk.parent).cloned();
            c.lock_chain(&parent.ok_or_else(|| SqlError::internal("referenced table is gone"))?)?;
            Addition::ForeignKey(ForeignKey { not_valid: true, ..fk })
        }
        _ => {
            let what = match k {
                ast::TableConstraint::PrimaryKey(_) => "PRIMARY KEY",
                _ => "UNIQUE",
            };
            let text = format!("{what} constraints cannot be marked NOT VALID");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        }
    };
    settle(t, addition);
    c.put(t.clone());
    Ok(())
}

/// VALIDATE CONSTRAINT: all rows are looked at, if that was left out.
pub(super) fn validate(c: &mut Change, t: &Arc<Table>, name: &str) -> SqlResult<()> {
    let mut new = (**t).clone();
    let addition = if let Some(check) = new.checks.iter_mut().find(|k| k.name == name) {
        let open = std::mem::take(&mut check.not_valid);
        open.then(|| Addition::Check(check.clone()))
    } else if let Some(fk) = new.foreign_keys.iter_mut().find(|k| k.name == name) {
        let open = std::mem::take(&mut fk.not_valid);
        open.then(|| Addition::ForeignKey(fk.clone()))
    } else if t.all_indexes().any(|i| i.constraint.is_some() && i.name == name) {
        let text = format!(
            "constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint",
            t.name
        );
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
    } else {
        return Err(alter::no_constraint(t, name));
    };
    let Some(addition) = addition else { return Ok(()) };
    prove(c, t, &addition)?;
    c.put(new);
    Ok(())
}

/// What a constraint adds to a table. Nothing is changed or locked yet.
pub(super) fn declare(
    c: &Change,
    t: &Table,
    k: &ast::TableConstraint,
    column: Option<&str>,
) -> SqlResult<Addition> {
    match k {
        ast::TableConstraint::Unique(u) => {
            let index = unique(c, t, u, column)?;
            Ok(Addition::Index { index, noting: false, expressions: Vec::new() })
        }
        ast::TableConstraint::Check(k) => check(c, t, k, column).map(Addition::Check),
        ast::TableConstraint::ForeignKey(f) => {
            foreign_key(c, t, f, column).map(Addition::ForeignKey)
        }
        other => Err(SqlError::unsupported(format!("the constraint {other}"))),
    }
}

/// Makes it part of its table.
pub(super) fn settle(t: &mut Table, addition: Addition) {
    match addition {
        Addition::Index { index, expressions, .. } => {
            t.adopt(&expressions);
            t.indexes.push(index);
        }
        Addition::Check(check) => t.checks.push(check),
        Addition::ForeignKey(fk) => t.foreign_keys.push(fk),
        Addition::NotNull(column) => {
            for c in t.columns.iter_mut().filter(|c| c.id == column) {
                c.nullable = false;
            }
        }
    }
}

/// Looks at all rows whether they keep to a new constraint; an index proves itself by its entries.
pub(super) fn prove(c: &Change, t: &Arc<Table>, addition: &Addition) -> SqlResult<()> {
    match addition {
        Addition::Index { .. } => Ok(()),
        Addition::Check(check) => {
            let e = parse_expr(&check.expr)?;
            let scope = table_scope(t);
            let bound = braid_scalar::bind_bool(&e, "CHECK", &scope, &mut c.ctx.no_params())?;
            backfill::validate_check(c, t, &check.name, &bound)
        }
        Addition::ForeignKey(fk) => backfill::validate_foreign_key(c, t, fk),
        Addition::NotNull(column) => {
            let at = t.ordinal(*column).ok_or_else(|| SqlError::internal("column is gone"))?;
            backfill::validate_not_null(c, t.id, at)
        }
    }
}

/// The index of a primary key that is declared for a partition.
pub(super) fn primary_of_partition(
    c: &Change,
    window: &Table,
    p: &ast::PrimaryKeyConstraint,
) -> SqlResult<Index> {
    refuse_deferrable(p.characteristics.as_ref())?;
    let columns = index::key_columns(window, &p.columns)?;
    index::check_key_types(window, &columns)?;
    let name = match &p.name {
        Some(n) => ident_name(n),
        None => choose_constraint_name(&window.name, &[], "pkey", |n| c.taken(window.schema, n)),
    };
    if c.taken(window.schema, &name) {
        return Err(exists(&name));
    }
    let columns = columns.into_iter().map(|k| IndexColumn { nulls_first: k.desc, ..k });
    Ok(Index {
        id: c.new_id()?,
        generation: 1,
        name,
        unique: true,
        deferral: None,
        nulls_not_distinct: false,
        columns: columns.collect(),
        include: Vec::new(),
        interleave_in: None,
        predicate: None,
        constraint: Some(IndexConstraint::Primary),
        of_partition: None,
        unread: None,
        declared: None,
    })
}

fn unique(
    c: &Change,
    t: &Table,
    u: &ast::UniqueConstraint,
    column: Option<&str>,
) -> SqlResult<Index> {
    let deferral = deferral(u.characteristics.as_ref())?;
    let (key, included) = take_included(&u.columns);
    let columns = match column {
        Some(n) => vec![IndexColumn::asc(column_id(t, n)?)],
        None => index::key_columns(t, &key)?,
    };
    index::check_key_types(t, &columns)?;
    let stored = |name: &String| {
        t.column_named(name).map(|c| c.id).ok_or_else(|| {
            let text = format!("column \"{name}\" named in key does not exist");
            SqlError::new(SqlState::UNDEFINED_COLUMN, text)
        })
    };
    let include = included.iter().map(stored).collect::<SqlResult<Vec<_>>>()?;
    let all = columns.iter().map(|k| k.column).chain(include.iter().copied());
    let names: Vec<_> = all.map(|id| t.column(id).map_or("", |c| &c.name)).collect();
    let name = match &u.name {
        Some(n) => ident_name(n),
        None => choose_constraint_name(&t.name, &names, "key", |n| c.taken(t.schema, n)),
    };
    if c.taken(t.schema, &name) {
        return Err(exists(&name));
    }
    let index = Index {
        id: c.new_id()?,
        generation: 1,
        name,
        unique: deferral.is_none(),
        deferral,
        nulls_not_distinct: matches!(u.nulls_distinct, ast::NullsDistinctOption::NotDistinct),
        columns,
        include,
        interleave_in: None,
        predicate: None,
        constraint: Some(IndexConstraint::Unique),
        of_partition: None,
        unread: None,
        declared: None,
    };
    if t.window().is_none() {
        partitions::check_index(t, &index)?;
    }
    Ok(index)
}

/// An expression over a table's columns that does not name the table: it is kept as text, and the
/// table may get another name.
pub(in crate::ddl) fn with_bare_columns(c: &Change, t: &Table, e: &ast::Expr) -> ast::Expr {
    let mut e = e.clone();
    let schema = c.ctx.schema_name(t.schema);
    let _ = braid_walk::expressions_mut(&mut e, |e| {
        if let ast::Expr::CompoundIdentifier(names) = e {
            let own = match names.as_slice() {
                [table, column] => (ident_name(table) == t.name).then_some(column),
                [in_schema, table, column] => {
                    let ours = ident_name(table) == t.name && ident_name(in_schema) == schema;
                    ours.then_some(column)
                }
                _ => None,
            };
            if let Some(column) = own.filter(|column| t.column_named(&ident_name(column)).is_some())
            {
                *e = ast::Expr::Identifier(column.clone());
            }
        }
        ControlFlow::<()>::Continue(())
    });
    e
}

fn check(
    c: &Change,
    t: &Table,
    k: &ast::CheckConstraint,
    column: Option<&str>,
) -> SqlResult<Check> {
    let scope = table_scope(t);
    let (expr, no_inherit) = take_no_inherit(&k.expr);
    if no_inherit && t.is_divided() {
        let text = format!("cannot add NO INHERIT constraint to partitioned table \"{}\"", t.name);
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, text));
    }
    let expr = with_bare_columns(c, t, expr);
    let bound = match braid_scalar::bind_bool(&expr, "CHECK", &scope, &mut c.ctx.no_params()) {
        Err(e) if braid_scalar::needs_general_query(&e) => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use subquery in check constraint",
            ));
        }
        other => other?,
    };
    let used: Vec<_> = bound.columns().into_iter().map(|o| t.columns[o].name.clone()).collect();
    let part: Vec<&str> = match (column, used.as_slice()) {
        (Some(n), _) => vec![n],
        (None, [one]) => vec![one],
        _ => vec![],
    };
    let name = match &k.name {
        Some(n) => ident_name(n),
        None => choose_constraint_name(&t.name, &part, "check", |n| name_taken(t, n)),
    };
    if name_taken(t, &name) {
        return Err(constraint_exists(t, &name));
    }
    Ok(Check { name, expr: named_relations::kept(c, &expr), not_valid: false, no_inherit })
}

fn column_id(t: &Table, name: &str) -> SqlResult<u32> {
    t.column_named(name).map(|c| c.id).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" referenced in foreign key constraint does not exist"),
        )
    })
}

pub(super) fn action(a: Option<ast::ReferentialAction>) -> RefAction {
    match a {
        None | Some(ast::ReferentialAction::NoAction) => RefAction::NoAction,
        Some(ast::ReferentialAction::Restrict) => RefAction::Restrict,
        Some(ast::ReferentialAction::Cascade) => RefAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => RefAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => RefAction::SetDefault,
    }
}

fn foreign_key(
    c: &Change,
    t: &Table,
    f: &ast::ForeignKeyConstraint,
    column: Option<&str>,
) -> SqlResult<ForeignKey> {
    let deferral = deferral(f.characteristics.as_ref())?;
    let name = parts(&f.foreign_table);
    let parent = c.ctx.table(&name).map_err(|e| match e.state() {
        SqlState::WRONG_OBJECT_TYPE => SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!(
                "referenced relation \"{}\" is not a table",
                name.last().map_or("", String::as_str)
            ),
        ),
        _ => e,
    })?;
    temporary::check_reference(c, t, &parent)?;
    let names: Vec<String> = match column {
        Some(n) => vec![n.to_string()],
        None => f.columns.iter().map(ident_name).collect(),
    };
    let columns = names.iter().map(|n| column_id(t, n)).collect::<SqlResult<Vec<_>>>()?;
    let (referred, set) = take_set_columns(&f.referred_columns);
    let parent_columns = referenced_columns(&parent, &referred)?;
    let set_on_delete = set.iter().map(|n| column_id(t, n)).collect::<SqlResult<Vec<_>>>()?;
    if columns.len() != parent_columns.len() {
        return Err(SqlError::new(
            SqlState::INVALID_FOREIGN_KEY,
            "number of referencing and referenced columns for foreign key disagree",
        ));
    }
    if let Some(at) = set_on_delete.iter().position(|id| !columns.contains(id)) {
        let text = "referenced in ON DELETE SET action must be part of foreign key";
        let text = format!("column \"{}\" {text}", set[at]);
        return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, text));
    }
    let refs: Vec<_> = names.iter().map(String::as_str).collect();
    let name = match &f.name {
        Some(n) => ident_name(n),
        None => choose_constraint_name(&t.name, &refs, "fkey", |n| name_taken(t, n)),
    };
    if name_taken(t, &name) {
        return Err(constraint_exists(t, &name));
    }
    check_types(t, &parent, &name, &columns, &parent_columns)?;
    check_key(&parent, &parent_columns)?;
    let fk = ForeignKey {
        name,
        id: c.new_id()?,
        columns,
        parent: parent.id,
        parent_columns,
        on_delete: action(f.on_delete),
        set_on_delete,
        on_update: action(f.on_update),
        match_full: matches!(f.match_kind, Some(ast::ConstraintReferenceMatchKind::Full)),
        deferral,
        not_valid: false,
    };
    if matches!(f.match_kind, Some(ast::ConstraintReferenceMatchKind::Partial)) {
        return Err(SqlError::unsupported("MATCH PARTIAL"));
    }
    Ok(fk)
}

fn referenced_columns(parent: &Table, names: &[&ast::Ident]) -> SqlResult<Vec<u32>> {
    if names.is_empty() {
        if parent.has_row_id() {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("there is no primary key for referenced table \"{}\"", parent.name),
            ));
        }
        return Ok(parent.key_columns());
    }
    names.iter().map(|n| column_id(parent, &ident_name(n))).collect()
}

/// That rows of a referenced table are told apart by these columns.
///
/// # Errors
/// 42830; 55000 if it is made sure of too late.
fn check_key(parent: &Table, columns: &[u32]) -> SqlResult<()> {
    if is_key(parent, columns, |i| i.unique) {
        return Ok(());
    }
    let name = &parent.name;
    Err(match is_key(parent, columns, Index::is_unique) {
        true => SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("cannot use a deferrable unique constraint for referenced table \"{name}\""),
        ),
        false => SqlError::new(
            SqlState::INVALID_FOREIGN_KEY,
            format!(
                "there is no unique constraint matching given keys for referenced table \"{name}\""
            ),
        ),
    })
}

fn is_key(parent: &Table, columns: &[u32], unique: impl Fn(&Index) -> bool) -> bool {
    let mut wanted = columns.to_vec();
    wanted.sort_unstable();
    parent
        .all_indexes()
        .filter(|i| unique(i) && i.predicate.is_none())
        .filter(|i| !(i.id == parent.primary.id && parent.has_row_id()))
        .any(|i| {
            let mut have: Vec<_> = i.columns.iter().map(|c| c.column).collect();
            have.sort_unstable();
            have == wanted
        })
}

/// Whether values of both types have equal key bytes exactly if they are equal.
pub(super) fn comparable(a: &SqlType, b: &SqlType) -> bool {
    let plain_text = |t: &SqlType| matches!(t, SqlType::Text | SqlType::Varchar(_) | SqlType::Name);
    a.same_base(b) || (a.is_integer() && b.is_integer()) || (plain_text(a) && plain_text(b))
}

pub(super) fn check_types(
    t: &Table,
    parent: &Table,
    name: &str,
    own: &[u32],
    theirs: &[u32],
) -> SqlResult<()> {
    for (a, b) in own.iter().zip(theirs) {
        let (Some(a), Some(b)) = (t.column(*a), parent.column(*b)) else {
            return Err(bad_table("foreign key names a missing column"));
        };
        if !comparable(&a.ty, &b.ty) {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("foreign key constraint \"{name}\" cannot be implemented"),
            )
            .with_detail(format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                a.name,
                b.name,
                a.ty.name(),
                b.ty.name()
            )));
        }
    }
    Ok(())
}
