//! [`Session`]: what the connection of a client holds and asks.
//!
//! Preparing is in [`super::prepare`], running in [`super::execute`].

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use braid_kv::{Shown, Tally};
use braid_types::encodings::Encoding;
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType, Style};
use foldhash::HashMap;
use parking_lot::Mutex;

use super::context::Notice;
use super::cursors::Cursor;
use super::prepared::Prepared;
use super::settings::{Settings, importance};
use super::shapes::Shapes;
use super::state::{SessionState, cut_value};
use super::transaction::OpenTxn;
use crate::database::Database;
use crate::object_names::ObjectNames;
use crate::runtime::measure::Measure;
use crate::runtime::{Activity, State};
use braid_parser::Statement;

/// How a session starts.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// User name.
    pub user: String,
    /// Database name.
    pub database: String,
    /// Settings given by the client: `application_name`, `client_encoding`, `TimeZone`, ..
    pub settings: Vec<(String, String)>,
    /// Raised by a cancel request; the server lowers it before each message.
    pub cancel: Arc<AtomicBool>,
    /// The process id that the client was told; `None`: any.
    pub pid: Option<i32>,
    /// Where the client is.
    pub client: Option<SocketAddr>,
}

/// One client's session. Not shared between threads at a time.
pub struct Session {
    pub(super) db: Arc<Database>,
    pub(super) state: Arc<SessionState>,
    pub(super) cancel: Arc<AtomicBool>,
    pub(super) open: Option<OpenTxn>,
    pub(super) notices: Arc<Mutex<Vec<Notice>>>,
    /// What answers wait for, so that a crash does not take back what they say.
    pub(super) shown: Arc<Shown>,
    pub(super) named: HashMap<String, Arc<Prepared>>,
    pub(super) cache: HashMap<Arc<str>, Arc<Prepared>>,
    /// Cursors by name.
    pub(super) cursors: HashMap<String, Cursor>,
    /// Plans of statements that come again with other literals.
    pub(super) shapes: Shapes,
    /// What runs now.
    pub(super) measuring: Option<Box<Measure>>,
    /// What others see of it.
    pub(super) activity: Arc<Activity>,
    /// When the statement of now began, microseconds since 1970.
    pub(super) begun: Cell<i64>,
}

impl Session {
    /// Starts a session.
    ///
    /// # Errors
    /// 3D000 if there is no such database; 22023 for a bad setting.
    pub fn new(db: Arc<Database>, options: SessionOptions) -> SqlResult<Session> {
        let stops = Tally::stop_by(&options.cancel);
        let catalog = db.current_catalog()?;
        drop(stops);
        if catalog.database(&options.database).is_none() {
            return Err(SqlError::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("database \"{}\" does not exist", options.database),
            ));
        }
        let (mut settings, mut refused) = (Settings::default(), Vec::new());
        let of_cluster = db.cluster_settings().session_defaults();
        for (name, value) in of_cluster.iter().chain(db.defaults()) {
            settings.set_startup(name, value)?;
        }
        // Work of the node's own goes by none of what is set for roles and databases.
        if options.pid.is_some() {
            let database = catalog.database(&options.database).map_or(0, |database| database.id);
            let role = catalog.acting_role(&options.user);
            for (name, value) in catalog.session_settings(database, role) {
                // What an earlier build took and this one does not keeps nobody out.
                refused.extend(settings.set_startup(&name, &value).err());
            }
        }
        for (name, value) in &options.settings {
            settings.set_startup(name, value)?;
        }
        let cut: Vec<Notice> =
            options.settings.iter().filter_map(|(name, value)| cut_value(name, value)).collect();
        let state = SessionState::new(
            db.clone(),
            options.user,
            options.database,
            settings,
            catalog,
            (options.pid, options.cancel.clone()),
        );
        let notices = state.notices.clone();
        notices.lock().extend(refused.into_iter().map(Notice::warning).chain(cut));
        let state = Arc::new(state);
        let begun = db.clock_micros();
        let activity = db.sessions().open(&state, options.client, begun);
        Ok(Session {
            db,
            state,
            cancel: options.cancel,
            open: None,
            notices,
            shown: Arc::default(),
            named: HashMap::default(),
            cache: HashMap::default(),
            cursors: HashMap::default(),
            shapes: Shapes::default(),
            measuring: None,
            activity,
            begun: Cell::new(begun),
        })
    }

    /// The part that running statements share.
    pub fn state(&self) -> &Arc<SessionState> {
        &self.state
    }

    /// How values of the client are read. What names a moment (`now`, `tomorrow`) means that of the
    /// transaction.
    pub fn input_style(&self) -> Style {
        let now = self.open.as_ref().map_or_else(|| self.db.clock_micros(), |o| o.started_micros);
        Style { now, ..self.state.style() }
    }

    /// What must be settled before bytes leave for the client: see [`Shown::settle`].
    pub fn shown(&self) -> Arc<Shown> {
        self.shown.clone()
    }

    /// The type with this oid, built in or made by a user.
    pub(crate) fn type_of_oid(&self, oid: u32) -> Option<SqlType> {
        SqlType::from_oid(oid, -1)
            .or_else(|| self.planning_context(None).ok()?.catalog.sql_type_by_oid(oid))
    }

    /// The value of a parameter of `regclass` and its like, whose text is a name.
    ///
    /// # Errors
    /// As of a cast: 42P01 and others if there is nothing of that name.
    pub fn object_named(&self, name: &str, ty: &SqlType) -> SqlResult<Datum> {
        let planning = self.planning_context(None)?;
        self.state.set_catalog(&planning.catalog);
        let ctx = self.state.eval_now();
        let (name, context) = (Datum::text(name), CastContext::Explicit);
        braid_scalar::convert_datum(&name, &SqlType::Text, ty, context, &ctx)
    }

    /// What values of `regclass` and its like are shown as to the client.
    pub fn object_names(&self) -> ObjectNames {
        ObjectNames::new(self.state.eval_now())
    }

    /// The encoding that the client has asked for; `None` if texts need not be changed for it.
    pub fn client_encoding(&self) -> Option<Encoding> {
        self.state.client_encoding()
    }

    /// Parses a text into statements; see [`braid_parser::parse_script`].
    pub fn parse_script(&self, sql: &str) -> SqlResult<Vec<Statement>> {
        self.begins(sql);
        match self.state.has_escaping_texts(sql) {
            true => braid_parser::parse_script(&braid_parser::with_standard_texts(sql)?),
            false => braid_parser::parse_script(sql),
        }
    }

    /// `I` idle, `T` in a transaction block, `E` in a failed one.
    pub fn tx_status(&self) -> u8 {
        match &self.open {
            Some(o) if o.is_failed() => b'E',
            Some(o) if o.explicit => b'T',
            _ => b'I',
        }
    }

    /// The client says something that begins or goes on with this text.
    pub(super) fn begins(&self, text: &str) {
        let open = self.open.as_ref().map(|o| o.started_micros);
        self.begun.set(self.db.clock_micros());
        self.activity.begin(text, self.begun.get(), open);
    }

    /// The client has its answer, and nothing runs until it speaks. Whether settings have changed
    /// by that.
    pub fn rests(&self) -> bool {
        let mut ended = false;
        if self.open.is_none() {
            // Those of a statement without a block, which was a transaction.
            ended = self.state.end_local_settings();
            self.state.end_transaction_locks();
            // What a statement without a block has asked by pg_notify.
            self.state.post_asked();
        }
        let state = match &self.open {
            None => State::Idle,
            Some(open) if open.is_failed() => State::IdleInFailedTransaction,
            Some(_) => State::IdleInTransaction,
        };
        let open = self.open.as_ref().map(|o| o.started_micros);
        self.activity.rest(state, self.db.clock_micros(), open);
        ended
    }

    /// Gives back memory that only saves time, because the client is silent: plans of statements
    /// that were not prepared by name are made again when they come again.
    pub fn rest(&mut self) {
        self.cache = HashMap::default();
        self.shapes = Shapes::default();
    }

    /// Messages since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let mut all = std::mem::take(&mut *self.notices.lock());
        if !all.is_empty() {
            let least = self.state.derived().least_notice;
            all.retain(|notice| importance(notice.severity) >= least);
        }
        all
    }

    /// Settings that are not as when nobody had said anything.
    pub(crate) fn changed_settings(&self) -> Vec<(String, String)> {
        self.state.changed_settings()
    }

    /// Settings to tell the client about, changed since the last call.
    pub fn take_parameter_changes(&mut self) -> Vec<(String, String)> {
        self.state.take_reports()
    }

    /// All settings that clients are told about at the start.
    pub fn parameters(&self) -> Vec<(String, String)> {
        self.state.settings().reported()
    }

    pub(crate) fn warn(&self, state: SqlState, message: &str) {
        self.notices.lock().push(Notice {
            severity: "WARNING",
            state,
            message: message.into(),
            detail: None,
            hint: None,
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end_temporary();
        self.db.sessions().close(&self.activity);
    }
}
