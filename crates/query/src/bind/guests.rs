//! Clauses of GoogleSQL in a SELECT: stars with exceptions, and QUALIFY.

use std::ops::ControlFlow;

use braid_parser::STAR_EXCEPT;
use braid_scalar::{Bound, bind_bool, ident_name, object_name_parts};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, SelectItem};

use super::Binder;
use super::select::Item;

/// `t.* EXCEPT (a) REPLACE (b AS c)`, as the parser hands it on: a call.
pub(super) struct StarExcept<'a> {
    table: Option<String>,
    except: Vec<String>,
    replace: Vec<(String, &'a Expr)>,
    /// Columns, and what they are called then.
    rename: Vec<(String, String)>,
}

impl<'a> StarExcept<'a> {
    /// What an item of a select list says, if it is one.
    pub(super) fn of(item: &'a Expr) -> SqlResult<Option<StarExcept<'a>>> {
        let Expr::Function(call) = item else { return Ok(None) };
        if object_name_parts(&call.name) != [STAR_EXCEPT] {
            return Ok(None);
        }
        let strange = || SqlError::syntax("syntax error in EXCEPT or REPLACE of a star");
        let FunctionArguments::List(list) = &call.args else { return Err(strange()) };
        let mut args = list.args.iter();
        let table = match args.next() {
            Some(FunctionArg::Unnamed(FunctionArgExpr::Wildcard)) => None,
            Some(FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name))) => {
                object_name_parts(name).pop()
            }
            _ => return Err(strange()),
        };
        let exprs = args.map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Ok(e),
            _ => Err(strange()),
        });
        let exprs = exprs.collect::<SqlResult<Vec<&Expr>>>()?;
        let is_mark = |e: &Expr, mark: &str| match e {
            Expr::Value(v) => v.value.clone().into_string().is_some_and(|text| text == mark),
            _ => false,
        };
        let name = |e: &Expr| match e {
            Expr::Identifier(ident) => Ok(ident_name(ident)),
            _ => Err(strange()),
        };
        let marks = ["except", "replace", "rename"];
        let of = |mark: &str| {
            let begin =
                exprs.iter().position(|e| is_mark(e, mark)).map_or(exprs.len(), |at| at + 1);
            let rest = &exprs[begin..];
            let end = rest.iter().position(|e| marks.iter().any(|mark| is_mark(e, mark)));
            &rest[..end.unwrap_or(rest.len())]
        };
        let except = of("except").iter().map(|e| name(e)).collect::<SqlResult<_>>()?;
        let rename = of("rename").chunks(2).map(|pair| match pair {
            [old, new] => Ok((name(old)?, name(new)?)),
            _ => Err(strange()),
        });
        let rename = rename.collect::<SqlResult<_>>()?;
        let pairs = of("replace").chunks(2);
        let replace = pairs.map(|pair| match pair {
            [value, shown] => Ok((name(shown)?, *value)),
            _ => Err(strange()),
        });
        let replace = replace.collect::<SqlResult<_>>()?;
        Ok(Some(StarExcept { table, except, replace, rename }))
    }
}

impl Binder<'_> {
    /// The columns of a star without those that are excepted, and others for some.
    pub(super) fn star_except(
        &mut self,
        star: &StarExcept<'_>,
        items: &mut Vec<Item>,
    ) -> SqlResult<()> {
        let mut all = Vec::new();
        self.star(star.table.as_deref(), &mut all)?;
        let replaced = star.replace.iter().map(|(name, _)| name);
        let renamed = star.rename.iter().map(|(name, _)| name);
        if let Some(name) = star
            .except
            .iter()
            .chain(replaced)
            .chain(renamed)
            .find(|name| !all.iter().any(|item| item.name == **name))
        {
            let text = format!("column \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, text)
                .with_detail("EXCEPT, REPLACE and RENAME behind a star name columns of it."));
        }
        let before = items.len();
        for item in all {
            if star.except.contains(&item.name) {
                continue;
            }
            let other = star.replace.iter().find(|(name, _)| *name == item.name);
            let shown = star.rename.iter().find(|(name, _)| *name == item.name);
            let name = shown.map_or_else(|| item.name.clone(), |(_, shown)| shown.clone());
            let bound = match other {
                Some((_, value)) => self.settled(value)?,
                None => item.bound,
            };
            items.push(Item { name, bound });
        }
        match items.len() == before {
            true => Err(SqlError::syntax("EXCEPT leaves no column of the star")),
            false => Ok(()),
        }
    }

    /// The condition of QUALIFY, which may name what the select list computes.
    pub(super) fn qualify(&mut self, select: &ast::Select) -> SqlResult<Option<Bound>> {
        let Some(condition) = &select.qualify else { return Ok(None) };
        let scope = self.level().scope.clone();
        let mut condition = condition.clone();
        let _ = braid_walk::expressions_mut(&mut condition, |expr| {
            if let Expr::Identifier(ident) = expr
                && !matches!(scope.find(&[ident_name(ident)]), Ok(Some(_)))
                && let Some(value) = aliased(select, &ident_name(ident))
            {
                *expr = Expr::Nested(Box::new(value.clone()));
            }
            ControlFlow::<()>::Continue(())
        });
        bind_bool(&condition, "QUALIFY", &scope, self).map(Some)
    }
}

/// What the select list computes under a name.
fn aliased<'a>(select: &'a ast::Select, name: &str) -> Option<&'a Expr> {
    select.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if ident_name(alias) == name => Some(expr),
        _ => None,
    })
}
