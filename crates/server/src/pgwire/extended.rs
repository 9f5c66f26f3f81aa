//! The extended protocol: statements are parsed once, bound to parameters as portals, and run.
//!
//! ```text
//!   Parse "s" "SELECT ... $1"   statement s: plan, parameter types
//!   Bind  "p" from "s" (7)      portal p: plan + values
//!   Execute "p" max 100         rows 1..100, PortalSuspended
//!   Execute "p" max 100         rows 101.., CommandComplete
//!   Sync                        end of the implicit transaction, ReadyForQuery
//! ```

use braid_rows::Row;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use braid_sql::answer::Answer;
use braid_sql::object_names::names_objects;
use braid_sql::session::transaction::aborted;
use braid_sql::{ColumnInfo, Outcome, Prepared, Rows, Session};
use braid_types::{Datum, SqlError, SqlState, checked_text};
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    BindComplete, CloseComplete, ParseComplete, PortalSuspended,
};
use pgwire::messages::response::EmptyQueryResponse;

use super::connection::Connection;
use super::copy;
use super::errors::Failure;
use super::message::{Bind, Message, Parse, Target};
use super::rows::{self, Format, RowWriter};
use super::wire::Wire;

/// Portals of one connection, by name, and the statement without a name. Statements with a name
/// are the session's, which knows them from PREPARE, too.
#[derive(Default)]
pub(crate) struct Extended {
    unnamed: Option<Arc<Prepared>>,
    pub(super) portals: Portals,
}

/// By name. Nearly always it is the one without a name, which needs no hash.
#[derive(Default)]
pub(super) struct Portals {
    unnamed: Option<Portal>,
    named: HashMap<String, Portal>,
}

impl Portals {
    pub(super) fn get(&self, name: &str) -> Option<&Portal> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(name) }
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Portal> {
        if name.is_empty() { self.unnamed.take() } else { self.named.remove(name) }
    }

    pub(super) fn put(&mut self, name: &str, portal: Portal) {
        if name.is_empty() {
            self.unnamed = Some(portal);
        } else {
            self.named.insert(name.to_string(), portal);
        }
    }

    pub(super) fn clear(&mut self) {
        self.unnamed = None;
        self.named.clear();
    }
}

pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) parameters: Vec<Datum>,
    formats: Vec<Format>,
    pub(super) state: PortalState,
}

pub(super) enum PortalState {
    Fresh,
    Open {
        rows: Rows,
        rest: VecDeque<Row>,
    },
    /// Ran to its end; the tag is what another Execute answers.
    Finished(Cow<'static, str>),
}

impl Extended {
    pub(crate) fn drop_unnamed(&mut self) {
        self.unnamed = None;
        self.portals.unnamed = None;
    }

    /// Portals live as long as their transaction.
    pub(crate) fn close_transaction_portals(&mut self, session: &Session) {
        if session.tx_status() == b'I' {
            self.portals.clear();
        }
    }
}

/// What PostgreSQL answers when a portal that is at its end is executed once more.
pub(super) fn said_again(tag: &str) -> Cow<'static, str> {
    if tag.starts_with("SELECT") { "SELECT 0".into() } else { tag.to_string().into() }
}

/// Says which columns come, if any.
fn describe_columns(
    wire: &mut Wire,
    columns: Option<&[ColumnInfo]>,
    formats: &[Format],
) -> Result<(), Failure> {
    match columns {
        Some(columns) => rows::describe(wire, columns, formats)?,
        None => wire.send(&NoData::new())?,
    }
    Ok(())
}

impl Connection {
    pub(crate) fn extended_message(&mut self, message: Message<'_>) -> Result<(), Failure> {
        match message {
            Message::Parse(parse) => self.parse(parse),
            Message::Bind(bind) => self.bind(bind),
            Message::Describe(describe) => self.describe(describe),
            Message::Execute { portal, max_rows } => self.execute(portal, max_rows),
            Message::Close(close) => self.close(close),
            _ => Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, "message not expected").into()),
        }
    }

    fn parse(&mut self, parse: Parse<'_>) -> Result<(), Failure> {
        self.begin_statement();
        if parse.name.is_empty() {
            // Gone even if the new one turns out to be wrong.
            self.extended.unnamed = None;
        }
        let mut statements = self.session.parse_script(parse.query)?;
        if statements.len() > 1 {
            return Err(SqlError::syntax(
                "cannot insert multiple commands into a prepared statement",
            )
            .into());
        }
        let statement = statements.pop().expect("an empty text is one empty statement");
        if parse.name.is_empty() {
            let prepared = self.session.prepare_declared(statement, &parse.type_oids)?;
            self.extended.unnamed = Some(prepared);
        } else {
            self.session.prepare_named(parse.name, statement, &parse.type_oids)?;
        }
        self.wire.send(&ParseComplete::new())?;
        Ok(())
    }

    fn bind(&mut self, bind: Bind<'_>) -> Result<(), Failure> {
        self.begin_statement();
        let statement = bind.statement;
        let prepared = self.statement(statement)?;
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
        let formats = rows::formats(bind.parameter_formats)?;
        if formats.len() > 1 && formats.len() != types.len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                "bind message has another number of formats than of parameters",
            )
            .into());
        }
        let style = self.session.input_style();
        let mut parameters = Vec::with_capacity(types.len());
        for (i, (value, ty)) in bind.parameters.iter().zip(types).enumerate() {
            let format = rows::format_of(&formats, i);
            let recoded;
            let value = &match (self.wire.encoding, *value) {
                (Some(encoding), Some(bytes)) => {
                    recoded = rows::in_utf8(bytes, ty, format, encoding)?;
                    Some(&recoded[..])
                }
                (_, value) => value,
            };
            parameters.push(match *value {
                Some(name) if names_objects(ty) && format == Format::Text => {
                    self.session.object_named(checked_text(name)?, ty)?
                }
                value => rows::decode(value, ty, format, &style)?,
            });
        }
        self.session.as_domains(&prepared, &mut parameters)?;
        let portal = Portal {
            prepared,
            parameters,
            formats: rows::formats(bind.result_formats)?,
            state: PortalState::Fresh,
        };
        if !bind.portal.is_empty() && self.extended.portals.get(bind.portal).is_some() {
            return Err(SqlError::new(
                SqlState("42P03"),
                format!("cursor \"{}\" already exists", bind.portal),
            )
            .into());
        }
        self.extended.portals.put(bind.portal, portal);
        self.wire.send(&BindComplete::new())?;
        Ok(())
    }

    fn statement(&self, name: &str) -> Result<Arc<Prepared>, SqlError> {
        if !name.is_empty() {
            return self.session.prepared(name);
        }
        self.extended.unnamed.clone().ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_SQL_STATEMENT_NAME,
                "unnamed prepared statement does not exist",
            )
        })
    }

    fn describe(&mut self, target: Target<'_>) -> Result<(), Failure> {
        match target {
            Target::Statement(name) => {
                let prepared = self.statement(name)?;
                self.wire.send(&ParameterDescription::new(prepared.param_oids()))?;
                describe_columns(&mut self.wire, prepared.columns(), &[])
            }
            Target::Portal(name) => {
                match self.extended.portals.get(name) {
                    Some(p) => describe_columns(&mut self.wire, p.prepared.columns(), &p.formats),
                    // Cursors of SQL are portals too.
                    None => match self.session.cursor_columns(name) {
                        Ok(columns) => describe_columns(&mut self.wire, Some(&columns), &[]),
                        Err(_) => Err(self.no_portal(name).into()),
                    },
                }
            }
        }
    }

    /// What is said of a portal that is not there. A transaction that has failed has taken its own
    /// along, and refuses what is asked of them as all else.
    fn no_portal(&self, name: &str) -> SqlError {
        if self.session.tx_status() == b'E' {
            return aborted();
        }
        SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
    }

    fn close(&mut self, target: Target<'_>) -> Result<(), Failure> {
        match target {
            Target::Statement("") => self.extended.unnamed = None,
            Target::Statement(name) => self.session.close_prepared(name),
            Target::Portal(name) => drop(self.extended.portals.take(name)),
        }
        self.wire.send(&CloseComplete::new())?;
        Ok(())
    }

    fn execute(&mut self, name: &str, max_rows: i32) -> Result<(), Failure> {
        self.begin_statement();
        let portal = self.extended.portals.take(name);
        let mut portal = portal.ok_or_else(|| self.no_portal(name))?;
        let result = self.run_portal(&mut portal, max_rows.max(0) as usize);
        if result.is_ok() {
            self.extended.portals.put(name, portal);
        }
        result
    }

    fn run_portal(&mut self, portal: &mut Portal, max_rows: usize) -> Result<(), Failure> {
        let is_fresh = matches!(portal.state, PortalState::Fresh);
        if !is_fresh && self.session.tx_status() == b'E' {
            return Err(aborted().into());
        }
        if is_fresh {
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
                    portal.state = PortalState::Finished(said_again(&tag));
                    return Ok(self.complete(tag)?);
                }
                Outcome::CopyIn(copy_in) => {
                    let tag = copy::receive(self, copy_in)?;
                    portal.state = PortalState::Finished(said_again(&tag));
                    return Ok(self.complete(tag)?);
                }
                Outcome::CopyOut(copy_out) => {
                    let tag = copy::send(self, *copy_out)?;
                    portal.state = PortalState::Finished(said_again(&tag));
                    return Ok(self.complete(tag)?);
                }
                Outcome::Empty => {
                    portal.state = PortalState::Finished("".into());
                    return Ok(self.wire.send(&EmptyQueryResponse::new())?);
                }
            }
        }
        self.send_portal_rows(portal, max_rows)
    }

    fn send_portal_rows(&mut self, portal: &mut Portal, max_rows: usize) -> Result<(), Failure> {
        let columns = portal.prepared.columns().unwrap_or_default();
        let mut writer = RowWriter::new(&self.session, columns, &portal.formats);
        let mut sent = 0;
        let tag = match &mut portal.state {
            PortalState::Fresh => unreachable!("a fresh portal was executed above"),
            PortalState::Finished(tag) => return Ok(self.complete(tag.to_string())?),
            PortalState::Open { rows, rest } => loop {
                while let Some(row) = rest.pop_front() {
                    writer.send(&mut self.wire, &row)?;
                    sent += 1;
                    if sent == max_rows {
                        break;
                    }
                }
                if max_rows > 0 && sent == max_rows {
                    rows.pause();
                    self.backend().statement.end();
                    self.wire.send(&PortalSuspended::new())?;
                    return Ok(());
                }
                let batch = match max_rows {
                    0 => rows.next_answer()?,
                    _ => rows.next_batch()?.map(Answer::Rows),
                };
                match batch {
                    // All of them are wanted.
                    Some(batch) if max_rows == 0 => {
                        writer.send_all(&mut self.wire, &batch)?;
                        sent += batch.rows();
                    }
                    Some(batch) => rest.extend(batch.into_rows()),
                    // The tag counts the rows of this Execute, not those of earlier pieces.
                    None if rows.is_select() => break format!("SELECT {sent}"),
                    None => break rows.tag(),
                }
            },
        };
        portal.state = PortalState::Finished(said_again(&tag));
        Ok(self.complete(tag)?)
    }
}
