//! Which unique keys ON CONFLICT catches.
//!
//! ```text
//!   ON CONFLICT (tenant, lower(email)) WHERE active
//!     users_pkey     (id)                                     another key
//!     users_email    (tenant, lower(email)) WHERE active      this one
//!     users_login    (tenant, login)                          another key
//! ```
//! A list of columns and expressions means every unique key of exactly those, in any order; that
//! of a partial index only if the WHERE behind the list implies its predicate. If parameters stand
//! in there, each execution tells.

use std::borrow::Cow;

use braid_parser::Inference;
use braid_scalar::{
    Bound, EvalContext, Node, ParamTypes, Volatility, beginning, ident_name, object_name_parts,
};
use braid_types::{Mark, Place, SqlError, SqlResult, SqlState};
use sqlparser::ast;

use super::target::Target;
use super::writer::TableInfo;
use crate::session::Context;
use braid_planner::implied::implies;
use braid_rows::IndexLayout;

/// Unique keys: `None` is the primary key, else a position among the secondary indexes.
type Keys = Vec<Option<usize>>;

/// The caught keys.
pub(super) enum Arbiters {
    /// These.
    Fixed(Keys),
    /// Those of which the conditions imply the predicate, once their parameters have values.
    ByValues { keys: Keys, conditions: Vec<Bound> },
}

impl Arbiters {
    /// The keys of an execution.
    ///
    /// # Errors
    /// 42P10 if there are none; those of computing the conditions.
    pub(super) fn now(
        &self,
        ctx: &Context,
        info: &TableInfo,
    ) -> SqlResult<Cow<'_, [Option<usize>]>> {
        let (keys, conditions) = match self {
            Arbiters::Fixed(keys) => return Ok(Cow::Borrowed(keys)),
            Arbiters::ByValues { keys, conditions } => (keys, conditions),
        };
        let conditions: Vec<Bound> =
            conditions.iter().map(|c| with_values(c, &ctx.eval)).collect::<SqlResult<_>>()?;
        let caught = |key: &Option<usize>| {
            key.is_none_or(|at| is_implied(&info.layout.indexes[at], &conditions))
        };
        some(keys.iter().copied().filter(caught).collect()).map(Cow::Owned)
    }
}

/// A condition with values in the place of what does not look at the row.
fn with_values(e: &Bound, eval: &EvalContext) -> SqlResult<Bound> {
    let fixed = e.columns().is_empty() && e.volatility() != Volatility::Volatile;
    if fixed && e.as_const().is_none() {
        return Ok(Bound::constant(e.eval(&[], eval)?, e.ty().clone()));
    }
    let mut failed = None;
    let mapped = e.map_children(&mut |part| {
        with_values(part, eval).unwrap_or_else(|e| {
            failed = Some(e);
            part.clone()
        })
    });
    failed.map_or(Ok(mapped), Err)
}

fn is_implied(index: &IndexLayout, conditions: &[Bound]) -> bool {
    index.predicate.as_ref().is_none_or(|p| implies(conditions, &p.condition, 0))
}

fn some(keys: Keys) -> SqlResult<Keys> {
    match keys.is_empty() {
        false => Ok(keys),
        true => Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
        )),
    }
}

/// The keys that ON CONFLICT catches.
pub(super) fn of(
    info: &TableInfo,
    target: &Target,
    (c, inference): (&ast::OnConflict, Option<&Inference>),
    params: &mut ParamTypes,
) -> SqlResult<Arbiters> {
    let keys = match (&c.conflict_target, inference) {
        (_, Some(inference)) => return inferred(info, target, inference, params),
        (None, None) => {
            if matches!(c.action, ast::OnConflictAction::DoUpdate(_)) {
                return Err(SqlError::syntax(
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                ));
            }
            info.layout.indexes.iter().try_for_each(check_immediate)?;
            let indexes = info.layout.indexes.iter().enumerate();
            let unique = indexes.filter(|(_, i)| i.index.unique).map(|(n, _)| Some(n));
            std::iter::once(None).chain(unique).collect()
        }
        (Some(ast::ConflictTarget::Columns(names)), None) => {
            let elements = names.iter().cloned().map(ast::Expr::Identifier).collect();
            return inferred(info, target, &Inference { elements, predicate: None }, params);
        }
        (Some(ast::ConflictTarget::OnConstraint(name)), None) => {
            vec![constraint(info, object_name_parts(name).pop().unwrap_or_default())?]
        }
    };
    Ok(Arbiters::Fixed(keys))
}

/// Unique keys of exactly these columns and expressions.
fn inferred(
    info: &TableInfo,
    target: &Target,
    inference: &Inference,
    params: &mut ParamTypes,
) -> SqlResult<Arbiters> {
    let table = &target.table;
    let scope = target.scope();
    let (mut columns, mut expressions) = (Vec::new(), Vec::new());
    for element in &inference.elements {
        match plain(element) {
            ast::Expr::Identifier(name) => {
                let column = arbiter(target, name, inference.elements.first())?;
                columns.push(table.columns[column].id);
            }
            e => expressions.push(target.settle(braid_scalar::bind(e, &scope, params)?)?),
        }
    }
    columns.sort_unstable();
    columns.dedup();
    let conditions = match &inference.predicate {
        Some(e) => target.settle(braid_scalar::bind_bool(e, "WHERE", &scope, params)?)?.conjuncts(),
        None => Vec::new(),
    };
    let by_values = conditions.iter().any(has_parameter);
    let mut found = Vec::new();
    let mut key = table.key_columns();
    key.sort_unstable();
    if !table.has_row_id() && key == columns && expressions.is_empty() {
        found.push(None);
    }
    for (n, i) in info.layout.indexes.iter().enumerate() {
        let implied = by_values || is_implied(i, &conditions);
        if i.index.is_unique() && implied && is_key(info, i, &columns, &expressions) {
            check_immediate(i)?;
            found.push(Some(n));
        }
    }
    let keys = some(found)?;
    Ok(match by_values {
        true => Arbiters::ByValues { keys, conditions },
        false => Arbiters::Fixed(keys),
    })
}

fn has_parameter(e: &Bound) -> bool {
    matches!(e.node(), Node::Param(_)) || e.children().into_iter().any(has_parameter)
}

/// The column that ON CONFLICT names.
fn arbiter(target: &Target, name: &ast::Ident, first: Option<&ast::Expr>) -> SqlResult<usize> {
    target.ordinal(&ident_name(name)).map_err(|e| match e.state() {
        SqlState::UNDEFINED_COLUMN => {
            let text = format!("column \"{}\" does not exist", ident_name(name));
            let open = |place| Place { mark: Mark::Behind("(".to_string()), ..place };
            SqlError::new(e.state(), text).or_place(first.and_then(beginning).map(open))
        }
        _ => e,
    })
}

/// An element without the parentheses and the collation that it may have.
fn plain(e: &ast::Expr) -> &ast::Expr {
    match e {
        ast::Expr::Nested(inner) => plain(inner),
        ast::Expr::Collate { expr, .. } => plain(expr),
        e => e,
    }
}

/// Whether an index has exactly these columns, in order of their ids, and expressions as its key.
fn is_key(info: &TableInfo, i: &IndexLayout, columns: &[u32], expressions: &[Bound]) -> bool {
    let computed = |id: u32| {
        let own = info.table().ordinal(id);
        info.layout.computed.iter().find(|c| Some(c.ordinal) == own)
    };
    let (mut plain, mut own) = (Vec::new(), Vec::new());
    for key in &i.index.columns {
        match computed(key.column) {
            Some(computed) => own.push(&computed.expr),
            None => plain.push(key.column),
        }
    }
    plain.sort_unstable();
    let listed = |e: &&Bound| expressions.iter().any(|x| x.is_like(e, 0));
    let kept = |x: &Bound| own.iter().any(|e| x.is_like(e, 0));
    plain == columns && own.iter().all(listed) && expressions.iter().all(kept)
}

/// A key that is looked at later cannot tell whether a row is there already.
///
/// # Errors
/// 55000.
fn check_immediate(i: &IndexLayout) -> SqlResult<()> {
    match i.index.deferral {
        None => Ok(()),
        Some(_) => Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as \
             arbiters",
        )),
    }
}

/// The key of a constraint.
fn constraint(info: &TableInfo, name: String) -> SqlResult<Option<usize>> {
    let table = info.table();
    if table.primary.name == name && !table.has_row_id() {
        return Ok(None);
    }
    let mut indexes = info.layout.indexes.iter();
    let at = indexes.position(|i| i.index.name == name && i.index.constraint.is_some());
    at.map_or(Ok(()), |at| check_immediate(&info.layout.indexes[at]))?;
    at.map(Some).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{name}\" for table \"{}\" does not exist", table.name),
        )
    })
}
