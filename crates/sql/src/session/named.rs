//! Prepared statements with names: PREPARE, EXECUTE, DEALLOCATE, and those of the protocol.

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_types::{Datum, SqlError, SqlResult, SqlState, Style};
use sqlparser::ast::{DataType, Expr, Statement as Sql};

use super::client::Session;
use super::outcome::Outcome;
use super::prepared::Prepared;
use braid_parser::{CreateTable, Kind, Statement};
use braid_scalar::{PreparedStatement, Scope, SessionFunctions};

/// 42809.
fn no_select() -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, "prepared statement is not a SELECT")
}

/// 42704.
fn no_type(oid: u32) -> SqlError {
    let text = format!("parameter type with OID {oid} does not exist");
    SqlError::new(SqlState::UNDEFINED_OBJECT, text)
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
        let values = args.iter().zip(&target.params).map(|(a, ty)| {
            braid_scalar::bind_to(a, ty, &Scope::empty(), &mut none)?.eval(&[], &ctx.eval)
        });
        let mut values = values.collect::<SqlResult<Vec<Datum>>>()?;
        ctx.as_domains(target, &mut values)?;
        Ok(values)
    }

    /// Values of parameters that are of domains, as these want them.
    ///
    /// # Errors
    /// 23502 and 23514 of the domains; those of a value that is too long for them.
    pub fn as_domains(&self, target: &Prepared, values: &mut [Datum]) -> SqlResult<()> {
        match target.domains.is_empty() {
            true => Ok(()),
            false => self.planning_context(None)?.as_domains(target, values),
        }
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

    /// Plans a statement of whose parameters a client has declared some, by the oids of their
    /// types; 0 is none.
    ///
    /// # Errors
    /// 42704 if there is no such type; those of [`Session::prepare`].
    pub fn prepare_declared(
        &mut self,
        statement: Statement,
        oids: &[u32],
    ) -> SqlResult<Arc<Prepared>> {
        let (mut types, mut domains) = (Vec::new(), Vec::new());
        for (at, &oid) in oids.iter().enumerate() {
            let ty = (oid != 0).then(|| self.type_of_oid(oid).ok_or_else(|| no_type(oid)));
            let ty = ty.transpose()?;
            if ty.as_ref().is_some_and(|ty| ty.oid() != oid) {
                domains.push((at, oid));
            }
            types.push(ty);
        }
        Ok(self.prepare(statement, &types)?.of_domains(domains))
    }

    /// Plans a statement and keeps it under a name. PREPARE and the protocol's Parse share their
    /// names: what one makes, EXECUTE, Bind, DEALLOCATE and Close of the other find.
    ///
    /// # Errors
    /// 42P05 if the name is taken; those of [`Session::prepare_declared`].
    pub fn prepare_named(
        &mut self,
        name: &str,
        statement: Statement,
        oids: &[u32],
    ) -> SqlResult<()> {
        self.check_unnamed(name)?;
        let text = statement.text.clone();
        let prepared = self.prepare_declared(statement, oids)?;
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
        let (name, params) = (name.to_string(), kept.param_oids());
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
        let (names, mut domains) = (ctx.no_params(), Vec::new());
        for (at, ty) in types.iter().enumerate() {
            let asked = braid_scalar::refinement_of(ty, names.named_types())?;
            domains.extend(asked.domain_oid().map(|oid| (at, oid)));
        }
        let types =
            types.iter().map(|t| ctx.type_of(t).map(Some)).collect::<SqlResult<Vec<_>>>()?;
        self.check_unnamed(name)?;
        let p = self.prepare_inner(inner.clone(), &types)?.of_domains(domains);
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
            if let Expr::Value(_) = e
                && let Some(literal) = braid_scalar::parameter(e).and_then(|at| literals.get(at))
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
