//! One client's conversation, from startup to goodbye.
//!
//! The loop reads a message, answers it, and sends what has gathered when the client waits. After
//! an error in an extended-protocol message everything up to the next Sync is skipped, as the
//! protocol demands.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_sql::{ColumnInfo, Database, Outcome, Rows, Session, SessionOptions};
use braid_types::{SqlError, SqlState};
use pgwire::messages::PgWireFrontendMessage as Message;
use pgwire::messages::response::{
    CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus,
};
use pgwire::messages::startup::{Authentication, BackendKeyData, ParameterStatus};

use super::errors::{Failure, Fatal, error_response, notice_response};
use super::extended::Extended;
use super::rows::{self, Format, RowWriter};
use super::wire::Wire;
use super::{copy, startup};
use crate::cancel::Registration;

/// A session with its client.
pub(crate) struct Connection {
    pub(crate) wire: Wire,
    pub(crate) session: Session,
    pub(crate) extended: Extended,
    cancel: Arc<AtomicBool>,
    /// An extended-protocol message failed: skip to Sync.
    skip_to_sync: bool,
    /// Settings as the client knows them.
    reported: HashMap<String, String>,
}

/// Serves a session until the client leaves. Errors that end it have been told to the client.
pub(crate) fn serve(
    mut wire: Wire,
    database: Arc<Database>,
    registration: &Registration,
    parameters: BTreeMap<String, String>,
) -> Result<(), Fatal> {
    let store = Arc::clone(database.store());
    let session = match open_session(database, registration, parameters) {
        Ok(session) => session,
        Err(e) => return tell_and_close(&mut wire, &e),
    };
    let shown = session.shown();
    let failed = |e| Fatal::Told(braid_catalog::kv_error(e));
    wire.set_gate(Box::new(move || shown.settle(&store).map_err(failed)));
    wire.send(&Authentication::Ok)?;
    let reported: HashMap<String, String> = session.parameters().into_iter().collect();
    for (name, value) in &reported {
        wire.send(&ParameterStatus::new(name.clone(), value.clone()))?;
    }
    wire.send(&BackendKeyData::new(registration.pid, startup::secret_key(registration.secret)))?;
    let mut connection = Connection {
        wire,
        session,
        extended: Extended::default(),
        cancel: Arc::clone(&registration.cancel),
        skip_to_sync: false,
        reported,
    };
    connection.ready()?;
    match connection.run() {
        Err(Fatal::Told(e)) => tell_and_close(&mut connection.wire, &e),
        other => other,
    }
}

/// Sends a FATAL error; the caller closes the connection.
pub(crate) fn tell_and_close(wire: &mut Wire, e: &SqlError) -> Result<(), Fatal> {
    wire.send(&error_response("FATAL", e))?;
    wire.flush()
}

fn open_session(
    database: Arc<Database>,
    registration: &Registration,
    mut parameters: BTreeMap<String, String>,
) -> Result<Session, SqlError> {
    let user = parameters.remove("user").ok_or_else(|| {
        SqlError::new(SqlState("28000"), "no PostgreSQL user name specified in startup packet")
    })?;
    let name = parameters.remove("database").unwrap_or_else(|| user.clone());
    // `options` and unknown `_pq_` extensions are not settings.
    parameters
        .retain(|name, _| name != "options" && name != "replication" && !name.starts_with("_pq_."));
    let options = SessionOptions {
        user,
        database: name,
        settings: parameters.into_iter().collect(),
        cancel: Arc::clone(&registration.cancel),
    };
    Session::new(database, options)
}

impl Connection {
    fn run(&mut self) -> Result<(), Fatal> {
        while let Some(message) = self.wire.read()? {
            if self.skip_to_sync && !matches!(message, Message::Sync(_) | Message::Terminate(_)) {
                continue;
            }
            match message {
                Message::Query(query) => self.simple_query(&query.query)?,
                Message::Terminate(_) => return Ok(()),
                Message::Sync(_) => {
                    self.skip_to_sync = false;
                    self.end_implicit()?;
                    self.ready()?;
                }
                Message::Flush(_) => self.wire.flush()?,
                // Left over from a COPY that failed on our side.
                Message::CopyData(_) | Message::CopyDone(_) | Message::CopyFail(_) => {}
                message if message.is_extended_query() => {
                    if let Err(failure) = self.extended_message(message) {
                        self.skip_to_sync = true;
                        self.fail(failure)?;
                    }
                }
                _ => return Err(Fatal::protocol("message not expected here")),
            }
        }
        Ok(())
    }

    /// Reports a failure. Statement errors are sent, others end the connection.
    fn fail(&mut self, failure: Failure) -> Result<(), Fatal> {
        match failure {
            Failure::Fatal(fatal) => Err(fatal),
            Failure::Sql(e) => {
                self.session.fail();
                self.send_notices()?;
                self.wire.send(&error_response("ERROR", &e))
            }
        }
    }

    /// Commits the implicit transaction around a message sequence, if one is open.
    fn end_implicit(&mut self) -> Result<(), Fatal> {
        self.extended.close_transaction_portals(&self.session);
        if let Err(e) = self.session.end_implicit() {
            self.fail(Failure::Sql(e))?;
        }
        self.extended.close_transaction_portals(&self.session);
        Ok(())
    }

    /// Tells the client that it may speak, and sends everything queued.
    fn ready(&mut self) -> Result<(), Fatal> {
        self.send_notices()?;
        let status = match self.session.tx_status() {
            b'I' => TransactionStatus::Idle,
            b'T' => TransactionStatus::Transaction,
            _ => TransactionStatus::Error,
        };
        self.wire.send(&ReadyForQuery::new(status))?;
        self.wire.flush()
    }

    pub(crate) fn send_notices(&mut self) -> Result<(), Fatal> {
        for notice in self.session.take_notices() {
            let e = SqlError::new(notice.state, notice.message);
            self.wire.send(&notice_response(notice.severity, &e))?;
        }
        for (name, value) in self.session.take_parameter_changes() {
            if self.reported.get(&name) != Some(&value) {
                self.reported.insert(name.clone(), value.clone());
                self.wire.send(&ParameterStatus::new(name, value))?;
            }
        }
        Ok(())
    }

    /// Forgets a cancel request that came while nothing ran.
    pub(crate) fn begin_cancellable(&self) {
        self.cancel.store(false, Ordering::Relaxed);
    }

    fn simple_query(&mut self, text: &str) -> Result<(), Fatal> {
        self.begin_cancellable();
        self.extended.drop_unnamed();
        if let Err(failure) = self.run_script(text) {
            self.fail(failure)?;
        }
        self.end_implicit()?;
        self.ready()
    }

    fn run_script(&mut self, text: &str) -> Result<(), Failure> {
        let statements = self.session.parse_script(text)?;
        if statements.len() > 1 {
            // Several statements in one message are one transaction, unless they say otherwise.
            self.session.begin_implicit()?;
        }
        for statement in statements {
            let prepared = self.session.prepare(statement, &[])?;
            let columns = prepared.columns().map(<[_]>::to_vec);
            match self.session.execute(&prepared, Vec::new())? {
                Outcome::Rows(mut rows) => {
                    let columns = columns.unwrap_or_default();
                    rows::describe(&mut self.wire, &columns, &[Format::Text])?;
                    let tag = self.send_rows(&mut rows, &columns)?;
                    self.complete(tag)?;
                }
                Outcome::Done(tag) => self.complete(tag)?,
                Outcome::CopyIn(copy_in) => {
                    let tag = copy::receive(self, copy_in)?;
                    self.complete(tag)?;
                }
                Outcome::CopyOut(copy_out) => {
                    let tag = copy::send(self, *copy_out)?;
                    self.complete(tag)?;
                }
                Outcome::Empty => self.wire.send(&EmptyQueryResponse::new())?,
            }
        }
        Ok(())
    }

    /// Sends all rows of a simple query in text form. Returns the command tag.
    fn send_rows(&mut self, rows: &mut Rows, columns: &[ColumnInfo]) -> Result<String, Failure> {
        let style = self.session.state().style();
        let mut writer =
            RowWriter { columns, formats: &[Format::Text], style, scratch: Vec::new() };
        while let Some(batch) = rows.next_batch()? {
            for row in &batch {
                writer.send(&mut self.wire, row)?;
            }
        }
        Ok(rows.tag())
    }

    pub(crate) fn complete(&mut self, tag: String) -> Result<(), Fatal> {
        self.send_notices()?;
        self.wire.send(&CommandComplete::new(tag))
    }
}
