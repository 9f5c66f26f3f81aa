//! One client's conversation, from startup to goodbye.
//!
//! The loop reads a message, answers it, and sends what has gathered when the client waits. After
//! an error in an extended-protocol message everything up to the next Sync is skipped, as the
//! protocol demands.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use braid_sql::answer::Answer;
use braid_sql::{Cause, ColumnInfo, Database, Outcome, Prepared, Rows, Session, SessionOptions};
use braid_types::{SqlError, SqlState};
use pgwire::messages::response::{
    CommandComplete, EmptyQueryResponse, NotificationResponse, ReadyForQuery, TransactionStatus,
};
use pgwire::messages::startup::{Authentication, BackendKeyData, ParameterStatus};

use super::copy;
use super::errors::{Failure, Fatal, error_response, notice_response, sayable};
use super::extended::Extended;
use super::message::{Frame, Message, is_extended};
use super::rows::{self, Format, RowWriter};
use super::startup::{self, Greeting};
use super::wire::{Heard, Wire};
use crate::backends::{Backend, Backends, Registration};
use crate::workers::Workers;

/// A session with its client.
pub(crate) struct Connection {
    pub(crate) wire: Wire,
    pub(crate) session: Session,
    pub(crate) extended: Extended,
    /// An extended-protocol message failed: skip to Sync.
    skip_to_sync: bool,
    /// Settings as the client knows them.
    reported: HashMap<String, String>,
    // Last: the place is given back when all else is gone.
    registration: Registration,
}

/// Bytes of the process id that a notification begins with.
const PID: usize = 4;

/// Who says who it is waits no longer than this for a node that does not reach the ranges of the
/// catalog. Clients that know of other nodes try these then; their own patience ends after 10 s
/// mostly. A range whose leaseholder died is served again sooner.
const LOGIN_PATIENCE: Duration = Duration::from_secs(8);

/// Why a thread has nothing more to do for a connection.
pub(crate) enum Pause {
    /// The client is silent: somebody else watches until it speaks.
    Silence,
    /// The conversation is over.
    End,
}

/// Sends a FATAL error; the caller closes the connection.
pub(crate) fn tell_and_close(wire: &mut Wire, e: &SqlError) -> Result<(), Fatal> {
    wire.send_text(&error_response("FATAL", e), 0)?;
    wire.flush()
}

fn open_session(
    database: Arc<Database>,
    backend: &Backend,
    user: String,
    mut parameters: BTreeMap<String, String>,
) -> Result<Session, SqlError> {
    let name = parameters.remove("database").unwrap_or_else(|| user.clone());
    // Unknown `_pq_` extensions are not settings.
    parameters.retain(|name, _| name != "replication" && !name.starts_with("_pq_."));
    let mut settings = match parameters.remove("options") {
        Some(options) => startup::settings_of(&options)?,
        None => Vec::new(),
    };
    // What a client says by itself comes after its options.
    settings.extend(parameters);
    let options = SessionOptions {
        user,
        database: name,
        settings,
        cancel: Arc::clone(backend.interrupt.flag()),
        pid: Some(backend.pid),
        client: backend.socket.peer_addr().ok(),
    };
    backend.statement.begin(Some(LOGIN_PATIENCE));
    let session = Session::new(database, options);
    backend.statement.end();
    let in_vain = backend.interrupt.cause() == Some(Cause::StatementTimeout);
    // It was raised for this alone.
    backend.interrupt.begin_statement();
    match session {
        Err(_) if in_vain => Err(no_login()),
        other => other,
    }
}

/// 57P03: clients that know of other nodes go there.
fn no_login() -> SqlError {
    let text = "the node cannot take clients now: it does not reach the ranges of the catalog";
    SqlError::new(SqlState("57P03"), text).with_hint(
        "Connect to another node. This one serves clients again when it reaches a majority of the \
         nodes.",
    )
}

impl Connection {
    /// Makes a session for a client that has said who it is, and greets it. A refusal has been
    /// told to the client: `None`.
    pub(crate) fn open(
        greeting: Greeting,
        mut parameters: BTreeMap<String, String>,
        database: Arc<Database>,
        backends: &Backends,
        max: usize,
    ) -> Result<Option<Box<Connection>>, Fatal> {
        let Greeting { mut wire, registration, .. } = greeting;
        let backend = Arc::clone(&registration.backend);
        let user = parameters.remove("user").ok_or_else(|| {
            SqlError::new(SqlState("28000"), "no PostgreSQL user name specified in startup packet")
        });
        let coordinator = Arc::clone(database.coordinator());
        let session = user.and_then(|user| {
            backends.promote(&registration, &user, max)?;
            open_session(database, &backend, user, parameters)
        });
        let session = match session {
            Ok(session) => session,
            Err(e) => {
                tell_and_close(&mut wire, &e)?;
                return Ok(None);
            }
        };
        let shown = session.shown();
        let failed = |e| Fatal::Told(braid_catalog::kv_error(e));
        wire.set_gate(Box::new(move || coordinator.settle(&shown).map_err(failed)));
        wire.send(&Authentication::Ok)?;
        wire.encoding = session.client_encoding();
        let reported: HashMap<String, String> = session.parameters().into_iter().collect();
        for (name, value) in &reported {
            wire.send_text(&ParameterStatus::new(name.clone(), value.clone()), 0)?;
        }
        wire.send(&BackendKeyData::new(backend.pid, startup::secret_key(backend.secret)))?;
        let mut connection = Box::new(Connection {
            wire,
            session,
            extended: Extended::default(),
            skip_to_sync: false,
            reported,
            registration,
        });
        connection.ready()?;
        Ok(Some(connection))
    }

    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.registration.backend
    }

    /// Serves the client until it is silent or leaves. What ends the session has been told to it.
    pub(crate) fn serve(&mut self, workers: &Workers) -> Result<Pause, Fatal> {
        match self.run(workers) {
            Err(Fatal::Told(e)) => {
                tell_and_close(&mut self.wire, &e)?;
                Ok(Pause::End)
            }
            other => other,
        }
    }

    /// Gives back memory that only saves time.
    pub(crate) fn rest(&mut self) {
        self.wire.rest();
        // One that others may have something to tell is parked in every pause.
        if !self.session.listens() {
            self.session.rest();
        }
    }

    fn run(&mut self, workers: &Workers) -> Result<Pause, Fatal> {
        let mut answered = false;
        loop {
            self.check_session()?;
            if !answered && self.wire.nothing_queued() {
                self.send_notifications()?;
                self.wire.flush()?;
            }
            if answered && workers.crowded() && self.wire.nothing_queued() {
                return Ok(Pause::Silence);
            }
            self.wire.listens(self.session.listens()).map_err(Fatal::Disconnected)?;
            let heard = self.wire.read()?;
            if matches!(heard, Heard::Message(_) | Heard::Refused(..)) {
                self.backend().idle.end();
                self.backend().idle_in_transaction.end();
            }
            let goes_on = match heard {
                Heard::Message(frame)
                    if self.skip_to_sync && !matches!(frame.kind, b'S' | b'X') =>
                {
                    true
                }
                Heard::Message(frame) => self.answer(frame)?,
                Heard::Refused(..) if self.skip_to_sync => true,
                Heard::Refused(kind, e) => {
                    self.refuse(kind, e)?;
                    true
                }
                Heard::Silence => return Ok(Pause::Silence),
                Heard::End => {
                    // The end of the input may be our own doing.
                    self.check_session()?;
                    false
                }
            };
            if !goes_on {
                return Ok(Pause::End);
            }
            answered = true;
        }
    }

    /// Whether somebody has ended the session.
    fn check_session(&self) -> Result<(), Fatal> {
        match self.backend().interrupt.cause() {
            // What it sent before it left is still answered.
            Some(Cause::Gone) | None => Ok(()),
            Some(cause) if cause.ends_session() => Err(Fatal::Told(cause.error())),
            Some(_) => Ok(()),
        }
    }

    /// Whether somebody has stopped the statement, while it waits for the client.
    pub(crate) fn check_interrupt(&self) -> Result<(), Failure> {
        match self.backend().interrupt.cause() {
            Some(cause) => Err(Failure::Sql(cause.error())),
            None => Ok(()),
        }
    }

    /// Answers one message; `false` after a goodbye.
    fn answer(&mut self, frame: Frame) -> Result<bool, Fatal> {
        let kind = frame.kind;
        let frame = match self.wire.encoding {
            None => frame,
            Some(encoding) => match frame.in_utf8(encoding) {
                Ok(frame) => frame,
                Err(_) if self.skip_to_sync => return Ok(true),
                Err(e) => return self.refuse(kind, e).map(|()| true),
            },
        };
        match Message::decode(&frame) {
            Ok(Message::Query(text)) => self.simple_query(text)?,
            Ok(Message::Terminate) => return Ok(false),
            Ok(Message::Sync) => {
                self.skip_to_sync = false;
                self.end_implicit()?;
                self.ready()?;
            }
            Ok(Message::Flush) => {
                self.send_notices()?;
                self.wire.flush()?;
            }
            // Left over from a COPY that failed on our side.
            Ok(Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_)) => {}
            Ok(Message::FunctionCall) => {
                let e = SqlError::unsupported("the function call message")
                    .with_hint("Call the function by SELECT.");
                self.fail(Failure::Sql(e))?;
                self.end_implicit()?;
                self.ready()?;
            }
            Ok(message) => {
                if let Err(failure) = self.extended_message(message) {
                    self.skip_to_sync = true;
                    self.fail(failure)?;
                }
            }
            Err(e) => self.refuse(kind, e)?,
        }
        Ok(true)
    }

    /// Answers a message that cannot be taken.
    fn refuse(&mut self, kind: u8, e: SqlError) -> Result<(), Fatal> {
        self.fail(Failure::Sql(e))?;
        if is_extended(kind) {
            self.skip_to_sync = true;
        } else if !matches!(kind, b'd' | b'c' | b'f') {
            self.skip_to_sync = false;
            self.end_implicit()?;
            self.ready()?;
        }
        Ok(())
    }

    /// Reports a failure. Statement errors are sent, others end the connection.
    fn fail(&mut self, failure: Failure) -> Result<(), Fatal> {
        match failure {
            Failure::Fatal(fatal) => Err(fatal),
            Failure::Sql(e) => {
                self.session.fail();
                self.backend().statement.end();
                let e = self.cause_of(e)?;
                self.send_notices()?;
                let e = sayable(e, self.wire.encoding);
                self.wire.send_text(&error_response("ERROR", &e), 0)?;
                // At once: a client in a pipeline may wait for it before it says Sync.
                self.wire.flush()
            }
        }
    }

    /// Running statements only know that they were stopped; who did it stands here.
    fn cause_of(&self, e: SqlError) -> Result<SqlError, Fatal> {
        let cause = self.backend().interrupt.cause();
        match cause {
            Some(Cause::Gone) if e.state() == SqlState::QUERY_CANCELED => {
                Err(Fatal::Disconnected(std::io::ErrorKind::ConnectionAborted.into()))
            }
            Some(cause) if cause.ends_session() => Err(Fatal::Told(cause.error())),
            Some(cause) if e.state() == SqlState::QUERY_CANCELED => Ok(cause.error()),
            _ => Ok(e),
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
        self.check_session()?;
        self.send_notices()?;
        let backend = self.backend();
        backend.statement.end();
        let limits = self.session.state().timeouts();
        if self.session.tx_status() == b'I' {
            backend.transaction.end();
            backend.idle.begin(limits.idle);
        } else {
            backend.idle_in_transaction.begin(limits.idle_in_transaction);
        }
        if self.session.rests() {
            self.send_notices()?;
        }
        self.send_notifications()?;
        let status = match self.session.tx_status() {
            b'I' => TransactionStatus::Idle,
            b'T' => TransactionStatus::Transaction,
            _ => TransactionStatus::Error,
        };
        self.wire.send(&ReadyForQuery::new(status))?;
        self.wire.flush()
    }

    /// Tells the client what others have said on its channels.
    fn send_notifications(&mut self) -> Result<(), Fatal> {
        for told in self.session.take_notifications() {
            let (channel, payload) = (told.channel.to_string(), told.payload.to_string());
            self.wire.send_text(&NotificationResponse::new(told.pid, channel, payload), PID)?;
        }
        Ok(())
    }

    pub(crate) fn send_notices(&mut self) -> Result<(), Fatal> {
        for notice in self.session.take_notices() {
            let mut e = SqlError::new(notice.state, notice.message);
            if let Some(detail) = notice.detail {
                e = e.with_detail(detail);
            }
            if let Some(hint) = notice.hint {
                e = e.with_hint(hint);
            }
            self.wire.send_text(&notice_response(notice.severity, &e), 0)?;
        }
        for (name, value) in self.session.take_parameter_changes() {
            if self.reported.get(&name) != Some(&value) {
                self.reported.insert(name.clone(), value.clone());
                self.wire.encoding = self.session.client_encoding();
                self.wire.send_text(&ParameterStatus::new(name, value), 0)?;
            }
        }
        Ok(())
    }

    /// A statement begins: a cancel request that came while nothing ran is forgotten, and its
    /// time runs.
    pub(crate) fn begin_statement(&self) {
        let backend = self.backend();
        backend.interrupt.begin_statement();
        let limits = self.session.state().timeouts();
        backend.statement.begin(limits.statement);
        backend.transaction.begin(limits.transaction);
    }

    fn simple_query(&mut self, text: &str) -> Result<(), Fatal> {
        self.begin_statement();
        self.extended.drop_unnamed();
        if let Err(failure) = self.run_script(text) {
            self.fail(failure)?;
        }
        self.end_implicit()?;
        self.ready()
    }

    fn run_script(&mut self, text: &str) -> Result<(), Failure> {
        if let Some((prepared, outcome)) = self.session.run_shape(text)? {
            return self.send_outcome(&prepared, outcome);
        }
        let statements = self.session.parse_script(text)?;
        if statements.len() > 1 {
            // Several statements in one message are one transaction, unless they say otherwise.
            self.session.begin_implicit()?;
        }
        for statement in statements {
            self.begin_statement();
            if self.is_of_portal(&statement.kind)? {
                continue;
            }
            let prepared = self.session.prepare(statement, &[])?;
            let outcome = self.session.execute(&prepared, Vec::new())?;
            self.send_outcome(&prepared, outcome)?;
        }
        Ok(())
    }

    /// Tells the client what a statement of a simple query gave.
    fn send_outcome(&mut self, prepared: &Prepared, outcome: Outcome) -> Result<(), Failure> {
        match outcome {
            Outcome::Rows(mut rows) => {
                let columns = prepared.columns().unwrap_or_default();
                let format = match self.session.fetches_binary(prepared) {
                    true => [Format::Binary],
                    false => [Format::Text],
                };
                // A constant that fails has no columns: PostgreSQL computes those while it plans.
                // Of rows that are read the client has heard before one of them fails.
                let first = rows.next_answer();
                if first.is_ok() || !prepared.is_without_from() {
                    rows::describe(&mut self.wire, columns, &format)?;
                }
                let first = first?;
                let tag = self.send_rows(first, &mut rows, columns, &format)?;
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
        Ok(())
    }

    /// Sends all rows of a simple query. Returns the command tag.
    fn send_rows(
        &mut self,
        first: Option<Answer>,
        rows: &mut Rows,
        columns: &[ColumnInfo],
        formats: &[Format],
    ) -> Result<String, Failure> {
        let mut writer = RowWriter::new(&self.session, columns, formats);
        let mut batch = first;
        while let Some(rows_now) = batch {
            writer.send_all(&mut self.wire, &rows_now)?;
            batch = rows.next_answer()?;
        }
        Ok(rows.tag())
    }

    pub(crate) fn complete(&mut self, tag: String) -> Result<(), Fatal> {
        self.backend().statement.end();
        self.send_notices()?;
        self.wire.send(&CommandComplete::new(tag))
    }
}
