//! Prepared statements with names: PREPARE, EXECUTE, DEALLOCATE, and those of the protocol.

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, Style};
use sqlparser::ast::{DataType, Expr, Statement as Sql, Value};

use super::client::Session;
use super::outcome::Outcome;
use super::prepared::Prepared;
use braid_parser::{CreateTable, Kind, Statement};
use braid_scalar::{PreparedStatement, Scope, SessionFunctions};

/// 42809.
fn no_select() -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, "prepared statement is not a SELECT")
}

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
        let text = statement.text.clone();
        let prepared = self.prepare(statement, declared)?;
        self.keep_prepared(name, prepared, text, false);
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
        self.state.prepared.lock().remove(name);
    }

    /// Forgets all.
    pub(super) fn forget_prepared(&mut self) {
        self.named.clear();
        self.state.prepared.lock().clear();
    }

    fn keep_prepared(&mut self, name: &str, kept: Arc<Prepared>, text: Arc<str>, from_sql: bool) {
        let micros = self.state.clock_micros();
        let (name, params) = (name.to_string(), kept.params.clone());
        let shown = PreparedStatement { name: name.clone(), text, micros, params, from_sql };
        self.state.prepared.lock().insert(name.clone(), shown);
        self.named.insert(name, kept);
    }

    /// PREPARE name (types) AS statement; `text` is all of it.
    pub(crate) fn prepare_as(
        &mut self,
        name: &str,
        types: &[DataType],
        inner: &Statement,
        text: &Arc<str>,
    ) -> SqlResult<()> {
        let ctx = self.planning_context(None)?;
        let types =
            types.iter().map(|t| ctx.type_of(t).map(Some)).collect::<SqlResult<Vec<_>>>()?;
        self.check_unnamed(name)?;
        let p = self.prepare_inner(inner.clone(), &types)?;
        self.keep_prepared(name, p, text.clone(), true);
        Ok(())
    }

    /// EXECUTE name (values).
    pub(crate) fn execute_named(&mut self, name: &str, values: &[Expr]) -> SqlResult<Outcome> {
        let target = self.named(name)?;
        let params = self.execute_args(&target, name, values)?;
        self.execute_inner(&target, params)
    }

    /// CREATE TABLE .. AS EXECUTE: as if its query were written there, with these values in it.
    pub(crate) fn create_executed(
        &mut self,
        table: &CreateTable,
        name: &str,
        values: &[Expr],
    ) -> SqlResult<Outcome> {
        let target = self.named(name)?;
        let mut query = match &*target.statement.kind {
            Kind::Sql(sql) => match &**sql {
                Sql::Query(query) => query.clone(),
                _ => return Err(no_select()),
            },
            _ => return Err(no_select()),
        };
        let params = self.execute_args(&target, name, values)?;
        let literals = params.iter().zip(&target.params).map(|(value, ty)| {
            let text = match value.to_text(Style::utc()) {
                Some(text) => format!("'{}'", text.replace('\'', "''")),
                None => "NULL".to_string(),
            };
            braid_parser::parse_expr(&format!("({text}::{})", ty.name()))
        });
        let literals = literals.collect::<SqlResult<Vec<_>>>()?;
        let _: ControlFlow<()> = braid_walk::expressions_mut(&mut *query, |e| {
            if let Expr::Value(value) = e
                && let Value::Placeholder(place) = &value.value
                && let Some(at) = place.strip_prefix('$').and_then(|n| n.parse::<usize>().ok())
                && let Some(literal) = at.checked_sub(1).and_then(|at| literals.get(at))
            {
                *e = literal.clone();
            }
            ControlFlow::Continue(())
        });
        let mut table = table.clone();
        table.base.query = Some(query);
        let kind = Arc::new(Kind::CreateTable(Box::new(table)));
        let text: Arc<str> = format!("CREATE TABLE AS {}", target.statement.text).into();
        let plain = Statement { kind, text, ..target.statement.clone() };
        self.run_inside(plain)
    }

    /// DEALLOCATE; `None`: all.
    pub(crate) fn deallocate(&mut self, name: Option<&str>) -> SqlResult<()> {
        match name {
            None => self.forget_prepared(),
            Some(name) => {
                self.named(name)?;
                self.close_prepared(name);
            }
        }
        Ok(())
    }
}
