//! Prepared statements with names: PREPARE, EXECUTE, DEALLOCATE, and those of the protocol.

use std::sync::Arc;

use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{DataType, Expr};

use super::client::Session;
use super::outcome::Outcome;
use super::prepared::Prepared;
use braid_parser::Statement;
use braid_scalar::Scope;

impl Session {
    pub(crate) fn named(&self, name: &str) -> SqlResult<Arc<Prepared>> {
        self.named.get(name).cloned().ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_SQL_STATEMENT_NAME,
                format!("prepared statement \"{name}\" does not exist"),
            )
        })
    }

    /// Values for the parameters of a prepared statement.
    pub(crate) fn execute_args(
        &mut self,
        target: &Prepared,
        name: &str,
        args: &[Expr],
    ) -> SqlResult<Vec<Datum>> {
        if args.len() != target.params.len() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("wrong number of parameters for prepared statement \"{name}\""),
            )
            .with_detail(format!(
                "Expected {} parameters but got {}.",
                target.params.len(),
                args.len()
            )));
        }
        let ctx = self.planning_context(None)?;
        let mut none = ctx.no_params();
        args.iter()
            .zip(&target.params)
            .map(|(a, ty)| {
                braid_scalar::bind_to(a, ty, &Scope::empty(), &mut none)?.eval(&[], &ctx.eval)
            })
            .collect()
    }

    /// 42P05 if a prepared statement has this name.
    fn check_unnamed(&self, name: &str) -> SqlResult<()> {
        if self.named.contains_key(name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        Ok(())
    }

    /// Plans a statement and keeps it under a name. PREPARE and the protocol's Parse share their
    /// names: what one makes, EXECUTE, Bind, DEALLOCATE and Close of the other find.
    ///
    /// # Errors
    /// 42P05 if the name is taken; those of [`Session::prepare`].
    pub fn prepare_named(
        &mut self,
        name: &str,
        statement: Statement,
        declared: &[Option<SqlType>],
    ) -> SqlResult<()> {
        self.check_unnamed(name)?;
        let prepared = self.prepare(statement, declared)?;
        self.named.insert(name.to_string(), prepared);
        Ok(())
    }

    /// The prepared statement of this name.
    ///
    /// # Errors
    /// 26000.
    pub fn prepared(&self, name: &str) -> SqlResult<Arc<Prepared>> {
        self.named(name)
    }

    /// Forgets the prepared statement of this name, if there is one.
    pub fn close_prepared(&mut self, name: &str) {
        self.named.remove(name);
    }

    /// PREPARE name (types) AS statement.
    pub(crate) fn prepare_as(
        &mut self,
        name: &str,
        types: &[DataType],
        inner: &Statement,
    ) -> SqlResult<()> {
        let ctx = self.planning_context(None)?;
        let types =
            types.iter().map(|t| ctx.type_of(t).map(Some)).collect::<SqlResult<Vec<_>>>()?;
        self.check_unnamed(name)?;
        let p = self.prepare_inner(inner.clone(), &types)?;
        self.named.insert(name.to_string(), p);
        Ok(())
    }

    /// EXECUTE name (values).
    pub(crate) fn execute_named(&mut self, name: &str, values: &[Expr]) -> SqlResult<Outcome> {
        let target = self.named(name)?;
        let params = self.execute_args(&target, name, values)?;
        self.execute_inner(&target, params)
    }

    /// DEALLOCATE; `None`: all.
    pub(crate) fn deallocate(&mut self, name: Option<&str>) -> SqlResult<()> {
        match name {
            None => self.named.clear(),
            Some(name) => {
                self.named(name)?;
                self.named.remove(name);
            }
        }
        Ok(())
    }
}
