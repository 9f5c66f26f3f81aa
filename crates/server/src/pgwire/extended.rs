//! The extended protocol: statements are parsed once, bound to parameters as portals, and run.
//!
//! ```text
//!   Parse "s" "SELECT ... $1"   statement s: plan, parameter types
//!   Bind  "p" from "s" (7)      portal p: plan + values
//!   Execute "p" max 100         rows 1..100, PortalSuspended
//!   Execute "p" max 100         rows 101.., CommandComplete
//!   Sync                        end of the implicit transaction, ReadyForQuery
//! ```

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;

use braid_sql::{ColumnInfo, Outcome, Prepared, Row, Rows, Session};
use braid_types::{Datum, SqlError, SqlState, SqlType};
use pgwire::messages::PgWireFrontendMessage as Message;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete,
    PortalSuspended,
};
use pgwire::messages::response::EmptyQueryResponse;

use super::connection::Connection;
use super::copy;
use super::errors::Failure;
use super::rows::{self, Format, RowWriter};

/// Statements and portals of one connection. The empty name is the unnamed one.
#[derive(Default)]
pub(crate) struct Extended {
    statements: HashMap<String, Arc<Prepared>>,
    portals: HashMap<String, Portal>,
}

struct Portal {
    prepared: Arc<Prepared>,
    parameters: Vec<Datum>,
    formats: Vec<Format>,
    state: PortalState,
}

enum PortalState {
    Fresh,
    Open {
        rows: Rows,
        rest: VecDeque<Row>,
    },
    /// Ran to its end; the tag is what another Execute answers.
    Finished(String),
}

impl Extended {
    pub(crate) fn drop_unnamed(&mut self) {
        self.statements.remove("");
        self.portals.remove("");
    }

    /// Portals live as long as their transaction.
    pub(crate) fn close_transaction_portals(&mut self, session: &Session) {
        if session.tx_status() == b'I' {
            self.portals.clear();
        }
    }

    fn statement(&self, name: &str) -> Result<&Arc<Prepared>, SqlError> {
        self.statements.get(name).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_SQL_STATEMENT_NAME,
                format!("prepared statement \"{name}\" does not exist"),
            )
        })
    }
}

fn unknown_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}

impl Connection {
    pub(crate) fn extended_message(&mut self, message: Message) -> Result<(), Failure> {
        match message {
            Message::Parse(parse) => self.parse(parse),
            Message::Bind(bind) => self.bind(bind),
            Message::Describe(describe) => self.describe(describe),
            Message::Execute(execute) => self.execute(execute),
            Message::Close(close) => self.close(close),
            _ => Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, "message not expected").into()),
        }
    }

    fn parse(&mut self, parse: Parse) -> Result<(), Failure> {
        self.begin_cancellable();
        let name = parse.name.unwrap_or_default();
        if !name.is_empty() && self.extended.statements.contains_key(&name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            )
            .into());
        }
        let types = parse
            .type_oids
            .iter()
            .map(|&oid| match oid {
                0 => Ok(None),
                oid => SqlType::from_oid(oid, -1).map(Some).ok_or_else(|| {
                    SqlError::new(
                        SqlState::UNDEFINED_OBJECT,
                        format!("parameter type with OID {oid} does not exist"),
                    )
                }),
            })
            .collect::<Result<Vec<Option<SqlType>>, SqlError>>()?;
        let mut statements = self.session.parse_script(&parse.query)?;
        if statements.len() > 1 {
            return Err(SqlError::syntax(
                "cannot insert multiple commands into a prepared statement",
            )
            .into());
        }
        let statement = statements.pop().expect("an empty text is one empty statement");
        let prepared = self.session.prepare(statement, &types)?;
        self.extended.statements.insert(name, prepared);
        self.wire.send(&ParseComplete::new())?;
        Ok(())
    }

    fn bind(&mut self, bind: Bind) -> Result<(), Failure> {
        let statement = bind.statement_name.unwrap_or_default();
        let prepared = Arc::clone(self.extended.statement(&statement)?);
        let types = prepared.param_types();
        if bind.parameters.len() != types.len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement \"{statement}\" \
                     requires {}",
                    bind.parameters.len(),
                    types.len()
                ),
            )
            .into());
        }
        let formats = rows::formats(&bind.parameter_format_codes)?;
        if formats.len() > 1 && formats.len() != types.len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                "bind message has another number of formats than of parameters",
            )
            .into());
        }
        let style = self.session.state().style();
        let mut parameters = Vec::with_capacity(types.len());
        for (i, (value, ty)) in bind.parameters.iter().zip(types).enumerate() {
            let format = rows::format_of(&formats, i);
            parameters.push(rows::decode(value.as_deref(), ty, format, &style)?);
        }
        let portal = Portal {
            prepared,
            parameters,
            formats: rows::formats(&bind.result_column_format_codes)?,
            state: PortalState::Fresh,
        };
        self.extended.portals.insert(bind.portal_name.unwrap_or_default(), portal);
        self.wire.send(&BindComplete::new())?;
        Ok(())
    }

    fn describe(&mut self, describe: Describe) -> Result<(), Failure> {
        let name = describe.name.unwrap_or_default();
        let (columns, formats): (Option<Vec<ColumnInfo>>, Vec<Format>) = match describe.target_type
        {
            b'S' => {
                let prepared = Arc::clone(self.extended.statement(&name)?);
                let oids = prepared.param_types().iter().map(SqlType::oid).collect();
                self.wire.send(&ParameterDescription::new(oids))?;
                (prepared.columns().map(<[_]>::to_vec), Vec::new())
            }
            _ => {
                let portal =
                    self.extended.portals.get(&name).ok_or_else(|| unknown_portal(&name))?;
                (portal.prepared.columns().map(<[_]>::to_vec), portal.formats.clone())
            }
        };
        match columns {
            Some(columns) => rows::describe(&mut self.wire, &columns, &formats)?,
            None => self.wire.send(&NoData::new())?,
        }
        Ok(())
    }

    fn close(&mut self, close: Close) -> Result<(), Failure> {
        let name = close.name.unwrap_or_default();
        match close.target_type {
            b'S' => drop(self.extended.statements.remove(&name)),
            _ => drop(self.extended.portals.remove(&name)),
        }
        self.wire.send(&CloseComplete::new())?;
        Ok(())
    }

    fn execute(&mut self, execute: Execute) -> Result<(), Failure> {
        self.begin_cancellable();
        let name = execute.name.unwrap_or_default();
        let mut portal =
            self.extended.portals.remove(&name).ok_or_else(|| unknown_portal(&name))?;
        let result = self.run_portal(&mut portal, execute.max_rows.max(0) as usize);
        if result.is_ok() {
            self.extended.portals.insert(name, portal);
        }
        result
    }

    fn run_portal(&mut self, portal: &mut Portal, max_rows: usize) -> Result<(), Failure> {
        if matches!(portal.state, PortalState::Fresh) {
            // Alone before its Sync, a statement commits by itself (and can be retried); with
            // company, or when its rows are fetched in pieces, it shares a transaction up to Sync.
            if max_rows > 0 || !self.wire.next_is(b'S') {
                self.session.begin_implicit()?;
            }
            let parameters = std::mem::take(&mut portal.parameters);
            match self.session.execute(&portal.prepared, parameters)? {
                Outcome::Rows(rows) => {
                    portal.state = PortalState::Open { rows, rest: VecDeque::new() };
                }
                Outcome::Done(tag) => {
                    portal.state = PortalState::Finished(tag.clone());
                    return Ok(self.complete(tag)?);
                }
                Outcome::CopyIn(copy_in) => {
                    let tag = copy::receive(self, copy_in)?;
                    portal.state = PortalState::Finished(tag.clone());
                    return Ok(self.complete(tag)?);
                }
                Outcome::CopyOut(copy_out) => {
                    let tag = copy::send(self, *copy_out)?;
                    portal.state = PortalState::Finished(tag.clone());
                    return Ok(self.complete(tag)?);
                }
                Outcome::Empty => {
                    portal.state = PortalState::Finished(String::new());
                    return Ok(self.wire.send(&EmptyQueryResponse::new())?);
                }
            }
        }
        self.send_portal_rows(portal, max_rows)
    }

    fn send_portal_rows(&mut self, portal: &mut Portal, max_rows: usize) -> Result<(), Failure> {
        let mut writer = RowWriter {
            columns: portal.prepared.columns().unwrap_or_default(),
            formats: &portal.formats,
            style: self.session.state().style(),
            scratch: Vec::new(),
        };
        let mut sent = 0;
        let tag = match &mut portal.state {
            PortalState::Fresh => unreachable!("a fresh portal was executed above"),
            // As PostgreSQL answers for a portal that is at its end.
            PortalState::Finished(tag) => {
                let tag = if tag.starts_with("SELECT") { "SELECT 0".into() } else { tag.clone() };
                return Ok(self.complete(tag)?);
            }
            PortalState::Open { rows, rest } => loop {
                while let Some(row) = rest.pop_front() {
                    writer.send(&mut self.wire, &row)?;
                    sent += 1;
                    if sent == max_rows {
                        break;
                    }
                }
                if max_rows > 0 && sent == max_rows {
                    self.wire.send(&PortalSuspended::new())?;
                    return Ok(());
                }
                match rows.next_batch()? {
                    Some(batch) => rest.extend(batch),
                    // The tag counts the rows of this Execute, not those of earlier pieces.
                    None if rows.tag().starts_with("SELECT ") => break format!("SELECT {sent}"),
                    None => break rows.tag(),
                }
            },
        };
        portal.state = PortalState::Finished(tag.clone());
        Ok(self.complete(tag)?)
    }
}
