//! What functions inside expressions see of their session.
//!
//! Shared by reference with running plans, so everything changeable is behind one lock. The lock
//! is never held while other locks of the database are taken.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use braid_catalog::{Catalog, Relation, Sequence, TypeKind, UserType, id_of_oid, oid_of};
use braid_env::memory::Account;
use braid_env::random::Fractions;
use braid_kv::{Tally, TxnId, TxnOptions};
use braid_parser::IsolationLevel;
use braid_types::encodings::Encoding;
use braid_types::{
    Datum, MAX_IDENTIFIER, SqlError, SqlResult, SqlState, SqlType, Style, clip_name,
};
use parking_lot::{Condvar, Mutex};

use super::context::{Notice, canceled};
use super::cursors::KnownCursors;
use super::settings::{Settings, duration_ms, least_notice, memory_bytes};
use super::temporary::{is_temporary_schema, schema_of};
use super::transaction::{Modes, level_named};
use super::type_names::{find_type, types_in_reach};
use crate::bulk::LOAD_MEMORY;
use crate::database::Database;
use crate::ddl::tables::apart::Apart;
use crate::general_query::SideBySide;
use crate::runtime::channels::{Asked, AskedList};
use crate::runtime::log::Logged;
use braid_scalar::{Advisory, EvalContext, OpenCursor, PreparedStatement, SessionFunctions};
use braid_types::quote_ident;

/// See the [module documentation](self).
pub struct SessionState {
    db: Arc<Database>,
    /// The user.
    pub user: String,
    /// The session's database.
    pub database: String,
    pid: i32,
    /// Whether its transaction may hold some.
    pub(super) locks_in_transaction: AtomicBool,
    /// The moment that the block sees; 0 outside of one.
    view: AtomicU64,
    /// Whether it has made temporary tables.
    temporary: AtomicBool,
    pub(super) cancel: Arc<AtomicBool>,
    pub(super) notices: Arc<Mutex<Vec<Notice>>>,
    /// LISTEN and NOTIFY that wait for the end of the transaction.
    pub(super) asked: Mutex<AskedList>,
    /// Whether there ever were some.
    pub(super) listens: AtomicBool,
    /// Prepared statements, as catalogs show them.
    pub(super) prepared: Mutex<BTreeMap<String, PreparedStatement>>,
    /// Cursors, as catalogs show them.
    pub(super) cursors: Arc<KnownCursors>,
    /// Of a job that runs statements: who pays for all of them, and what one load may hold.
    payer: OnceLock<(Arc<Account>, usize)>,
    shared: Mutex<Shared>,
}

struct Shared {
    /// What the statement that runs has set apart.
    apart: Option<Apart>,
    /// Transaction blocks and savepoints keep those of their begin.
    settings: Arc<Settings>,
    /// What statements need of the settings in every run; gone when a setting changes.
    derived: Option<Arc<Derived>>,
    catalog: Arc<Catalog>,
    /// The session's database in it.
    database: u32,
    /// Of the open block.
    modes: Option<Modes>,
    current_values: HashMap<u32, i64>,
    last_sequence: Option<u32>,
    /// What `random()` gives after `setseed`.
    fractions: Option<Fractions>,
    reports: Vec<(String, String)>,
}

/// Settings in the form in which statements use them.
pub(crate) struct Derived {
    pub(crate) style: Style,
    /// `client_encoding`; `None` if texts need not be changed for it.
    pub(crate) client_encoding: Option<Encoding>,
    pub(crate) search_path: Arc<Vec<String>>,
    pub(crate) modes: Modes,
    pub(crate) lock_timeout: Option<Duration>,
    pub(crate) async_commit: bool,
    pub(crate) timeouts: Timeouts,
    /// Whether foreign keys are asked: `session_replication_role` is not `replica`.
    pub(crate) asks_references: bool,
    /// Threads that help a statement that builds something.
    pub(crate) maintenance_workers: usize,
    /// Threads that may read for one query.
    pub(crate) side_by_side: SideBySide,
    /// What a change in steps may read in a second; 0: as much as it can.
    pub(crate) backfill_rate: u64,
    /// Which executions are counted.
    pub(crate) counts: Counting,
    /// How important a message must be for the client to hear it.
    pub(crate) least_notice: u8,
    pub(crate) log: Logging,
    /// Internal: tests compare answers of different sizes.
    pub(crate) sizes: Sizes,
}

/// Which statements are written to the node's log.
pub(crate) struct Logging {
    /// `log_statement`: as they begin.
    pub(crate) begun: Logged,
    /// `log_min_duration_statement` in nanoseconds: once they have taken so long.
    pub(crate) slow: Option<u64>,
}

/// How much a transaction asks and holds at once.
pub(crate) struct Sizes {
    /// Keys, rows or locks that one request to the store asks for at most.
    pub(crate) batch: usize,
    /// Bytes that writes may take before they go to disk, and locks before tables are locked
    /// instead; `None`: by the node's memory.
    pub(crate) memory: Option<usize>,
    /// Bytes that one statement may hold.
    pub(crate) statement: usize,
}

/// Whose executions are counted by fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counting {
    /// `pg_stat_statements.track` is not `none`, and `compute_query_id` not `off`.
    pub(crate) queries: bool,
    /// `pg_stat_statements.track_utility`.
    pub(crate) utilities: bool,
}

/// Limits of time that the server watches over, because they hold while nothing of the session
/// runs, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// `statement_timeout`.
    pub statement: Option<Duration>,
    /// `transaction_timeout`.
    pub transaction: Option<Duration>,
    /// `idle_in_transaction_session_timeout`.
    pub idle_in_transaction: Option<Duration>,
    /// `idle_session_timeout`.
    pub idle: Option<Duration>,
}

impl Derived {
    fn new(settings: &Settings, user: &str, pid: i32) -> Derived {
        let get = |n: &str| settings.get(n).unwrap_or_default();
        let limit = |n: &str| duration_ms(&get(n)).filter(|ms| *ms > 0).map(Duration::from_millis);
        Derived {
            style: settings.style(),
            client_encoding: Encoding::named(&get("client_encoding")).filter(|e| !e.is_same()),
            // The session's temporary tables come before everything.
            search_path: Arc::new(
                [schema_of(pid)].into_iter().chain(settings.search_path(user)).collect(),
            ),
            counts: Counting {
                queries: get("pg_stat_statements.track") != "none"
                    && get("compute_query_id") != "off",
                utilities: get("pg_stat_statements.track_utility") == "on",
            },
            least_notice: least_notice(&get("client_min_messages")),
            log: Logging {
                begun: Logged::of(&get("log_statement")),
                slow: duration_ms(&get("log_min_duration_statement"))
                    .map(|ms| ms.saturating_mul(1_000_000)),
            },
            modes: Modes {
                level: level_named(&get("default_transaction_isolation"))
                    .unwrap_or(IsolationLevel::Serializable),
                read_only: get("default_transaction_read_only") == "on",
                deferrable: get("default_transaction_deferrable") == "on",
            },
            lock_timeout: limit("lock_timeout"),
            async_commit: get("synchronous_commit") == "off",
            sizes: Sizes {
                batch: get("braid.request_batch")
                    .parse()
                    .ok()
                    .filter(|rows| *rows > 0)
                    .unwrap_or_else(|| TxnOptions::default().batch),
                memory: memory_bytes(&get("braid.transaction_mem")),
                statement: memory_bytes(&get("statement_mem")).unwrap_or(usize::MAX),
            },
            backfill_rate: get("backfill_rows_per_second").parse().unwrap_or(0),
            maintenance_workers: get("max_parallel_maintenance_workers").parse().unwrap_or(0),
            side_by_side: SideBySide {
                helpers: get("max_parallel_workers_per_gather").parse().unwrap_or(0),
                least_bytes: memory_bytes(&get("min_parallel_table_scan_size"))
                    .map_or(u64::MAX, |bytes| bytes as u64),
            },
            asks_references: get("session_replication_role") != "replica",
            timeouts: Timeouts {
                statement: limit("statement_timeout"),
                transaction: limit("transaction_timeout"),
                idle_in_transaction: limit("idle_in_transaction_session_timeout"),
                idle: limit("idle_session_timeout"),
            },
        }
    }
}

impl Shared {
    fn derive(&mut self, session: &SessionState) -> &Arc<Derived> {
        let new = || Arc::new(Derived::new(&self.settings, &session.user, session.pid));
        self.derived.get_or_insert_with(new)
    }

    /// Nearly always it is the one of the statement before.
    fn look_at(&mut self, catalog: &Arc<Catalog>, database: &str) {
        if !Arc::ptr_eq(&self.catalog, catalog) {
            self.catalog = catalog.clone();
            self.database = catalog.database(database).map_or(0, |d| d.id);
        }
    }
}

/// 42622 for a name of a client that is too long for one.
pub(super) fn cut_value(setting: &str, given: &str) -> Option<Notice> {
    let cut = given.len() > MAX_IDENTIFIER && setting.eq_ignore_ascii_case("application_name");
    cut.then(|| Notice {
        severity: "NOTICE",
        state: SqlState::NAME_TOO_LONG,
        message: format!("identifier \"{given}\" will be truncated to \"{}\"", clip_name(given)),
        detail: None,
        hint: None,
    })
}

impl SessionState {
    pub(super) fn new(
        db: Arc<Database>,
        user: String,
        database: String,
        settings: Settings,
        catalog: Arc<Catalog>,
        backend: (Option<i32>, Arc<AtomicBool>),
    ) -> SessionState {
        let (pid, cancel) = backend;
        let pid = pid.unwrap_or_else(|| db.new_pid());
        let shared = Shared {
            apart: None,
            settings: Arc::new(settings),
            derived: None,
            database: catalog.database(&database).map_or(0, |d| d.id),
            catalog,
            modes: None,
            current_values: HashMap::new(),
            fractions: None,
            last_sequence: None,
            reports: Vec::new(),
        };
        let notices = Arc::default();
        SessionState {
            db,
            user,
            database,
            pid,
            locks_in_transaction: AtomicBool::new(false),
            view: AtomicU64::new(0),
            temporary: AtomicBool::new(false),
            cancel,
            notices,
            asked: Mutex::default(),
            listens: AtomicBool::new(false),
            prepared: Mutex::default(),
            cursors: Arc::default(),
            payer: OnceLock::new(),
            shared: Mutex::new(shared),
        }
    }

    /// From now on statements hold what they hold as part of an account, and a load of them so many
    /// bytes. Said once.
    pub(crate) fn pay_from(&self, account: &Arc<Account>, load: usize) {
        let said_before = self.payer.set((account.clone(), load));
        debug_assert!(said_before.is_ok(), "it is said once");
    }

    /// An account for a statement that may hold so much.
    pub(super) fn account(&self, limit: usize) -> Arc<Account> {
        match self.payer.get() {
            Some((account, _)) => account.part(limit),
            None => self.db.coordinator().memory().account(limit),
        }
    }

    /// Memory of one bulk load, in bytes.
    pub(crate) fn load_memory(&self) -> usize {
        self.payer.get().map_or(LOAD_MEMORY, |(_, load)| *load)
    }

    /// Keeps what the statement has set apart, until it commits.
    pub(crate) fn set_apart(&self, apart: Apart) {
        self.shared.lock().apart = Some(apart);
    }

    /// The catalog before a transaction has set something apart, if it has.
    pub(crate) fn before_apart(&self, txn: TxnId) -> Option<Arc<Catalog>> {
        let shared = self.shared.lock();
        shared.apart.as_ref().filter(|apart| apart.txn == txn).map(|apart| apart.old.clone())
    }

    /// What was set apart last; only where there are other nodes something is.
    pub(crate) fn take_apart(&self) -> Option<Apart> {
        if !self.db.is_shared() {
            return None;
        }
        self.shared.lock().apart.take()
    }

    /// The schema of the session's temporary tables, whether there is one or not.
    pub fn temporary_schema(&self) -> String {
        schema_of(self.pid)
    }

    /// Whether a name means that schema.
    pub(crate) fn is_own_temporary(&self, schema: &str) -> bool {
        schema == "pg_temp" || schema == self.temporary_schema()
    }

    /// 25006 if the transaction is READ ONLY, and the sequence is not the session's own.
    fn check_moves(&self, what: &str, s: &Sequence) -> SqlResult<()> {
        let is_own = || {
            let schema = self.catalog().schema_by_id(s.schema).map(|schema| schema.name.clone());
            schema.is_some_and(|name| self.is_own_temporary(&name))
        };
        if self.modes().read_only && !is_own() {
            return Err(SqlError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {what} in a read-only transaction"),
            ));
        }
        Ok(())
    }

    /// The session makes a temporary table.
    pub(crate) fn has_temporary(&self) {
        self.temporary.store(true, Ordering::Relaxed);
    }

    /// Whether it has made one.
    pub(super) fn made_temporary(&self) -> bool {
        self.temporary.load(Ordering::Relaxed)
    }

    /// Process id as clients know it.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// The value of a setting.
    /// Who asks, and from which application: as rules name them.
    pub(crate) fn asks_as(&self) -> (String, String) {
        let application = self.settings_get("application_name").unwrap_or_default();
        (self.current_user(), application)
    }

    /// Whether rules of DENY QUERY are passed over.
    pub(crate) fn passes_rules(&self) -> bool {
        self.settings_get("bypass_denied_queries").as_deref() == Some("on")
    }

    pub(crate) fn settings_get(&self, name: &str) -> Option<String> {
        self.shared.lock().settings.get(name)
    }

    /// Whether a script may have backslashes in texts which escape something.
    pub(super) fn has_escaping_texts(&self, sql: &str) -> bool {
        sql.contains('\\')
            && self.settings_get("standard_conforming_strings").as_deref() == Some("off")
    }

    /// The database object.
    pub fn db(&self) -> &Arc<Database> {
        &self.db
    }

    /// The catalog of the running statement.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.lock().catalog.clone()
    }

    /// The id of the session's database.
    pub(super) fn database_id(&self) -> u32 {
        self.shared.lock().database
    }

    /// What the open block was begun with; without one, what a transaction would be.
    pub(crate) fn modes(&self) -> Modes {
        let own = self.shared.lock().modes;
        own.unwrap_or_else(|| self.derived().modes)
    }

    /// A block begins with these modes, or ends.
    pub(super) fn set_modes(&self, modes: Option<Modes>) {
        self.shared.lock().modes = modes;
    }

    pub(super) fn set_catalog(&self, catalog: &Arc<Catalog>) {
        self.shared.lock().look_at(catalog, &self.database);
    }

    /// A statement begins with this catalog: the settings that it runs by, and the id of the
    /// session's database.
    pub(super) fn begin_with(&self, catalog: &Arc<Catalog>) -> (Arc<Derived>, u32) {
        let mut s = self.shared.lock();
        s.look_at(catalog, &self.database);
        (s.derive(self).clone(), s.database)
    }

    /// The settings as they are now.
    pub(super) fn settings(&self) -> Arc<Settings> {
        self.shared.lock().settings.clone()
    }

    /// Changes settings.
    pub(super) fn change_settings<T>(&self, f: impl FnOnce(&mut Settings) -> T) -> T {
        let mut s = self.shared.lock();
        s.derived = None;
        f(Arc::make_mut(&mut s.settings))
    }

    /// Takes back what was set since then, and notes it for the client.
    pub(super) fn restore_settings(&self, before: Arc<Settings>) {
        {
            let mut s = self.shared.lock();
            if Arc::ptr_eq(&s.settings, &before) {
                return;
            }
            s.derived = None;
            s.settings = before;
        }
        self.report_all();
    }

    /// Forgets what SET LOCAL has set, and notes it for the client: the transaction has ended.
    /// Whether there were any.
    pub(super) fn end_local_settings(&self) -> bool {
        let ends = self.shared.lock().settings.has_local();
        if ends {
            self.change_settings(Settings::end_transaction);
            self.report_all();
        }
        ends
    }

    pub(crate) fn derived(&self) -> Arc<Derived> {
        self.shared.lock().derive(self).clone()
    }

    /// Sets a setting and notes the change for the client.
    pub(super) fn set(&self, name: &str, value: &str, local: bool) -> SqlResult<String> {
        let mut s = self.shared.lock();
        s.derived = None;
        let given = value;
        let (value, report) = Arc::make_mut(&mut s.settings).set(name, value, local)?;
        self.notices.lock().extend(cut_value(name, given));
        if let Some(report) = report {
            s.reports.push((report.to_string(), value.clone()));
        }
        Ok(value)
    }

    /// Notes all reported settings for the client: some may have changed.
    pub(super) fn report_all(&self) {
        let mut s = self.shared.lock();
        let all = s.settings.reported();
        s.reports.extend(all);
    }

    pub(super) fn take_reports(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.shared.lock().reports)
    }

    /// The effective search path.
    pub fn search_path(&self) -> Vec<String> {
        self.derived().search_path.to_vec()
    }

    /// Threads that may help a statement that builds something.
    pub(crate) fn maintenance_workers(&self) -> usize {
        self.derived().maintenance_workers
    }

    /// Rows that a change in steps may read in a second, if that is limited.
    pub(crate) fn backfill_rate(&self) -> Option<u64> {
        Some(self.derived().backfill_rate).filter(|rate| *rate > 0)
    }

    /// The name of the type of the extension `citext`, with the schema if it is not in reach.
    fn citext_name(&self, catalog: &Catalog, is_array: bool) -> Option<String> {
        let installed = catalog.extension(self.database_id(), "citext")?;
        let schema = catalog.schema_by_id(id_of_oid(installed.schema)?)?;
        let prefix = match self.search_path().contains(&schema.name) {
            true => String::new(),
            false => format!("{}.", quote_ident(&schema.name)),
        };
        Some(format!("{prefix}citext{}", if is_array { "[]" } else { "" }))
    }

    /// The client's encoding; `None` if texts need not be changed for it.
    pub(crate) fn client_encoding(&self) -> Option<Encoding> {
        self.derived().client_encoding
    }

    /// The limits of time as they are set now.
    pub fn timeouts(&self) -> Timeouts {
        self.shared.lock().derive(self).timeouts
    }

    /// Settings that are not as when nobody had said anything.
    pub(crate) fn changed_settings(&self) -> Vec<(String, String)> {
        self.settings().changed()
    }

    /// The session's time zone.
    pub fn style(&self) -> Style {
        self.shared.lock().derive(self).style
    }

    pub(super) fn forget_sequences(&self) {
        let mut s = self.shared.lock();
        s.current_values.clear();
        s.last_sequence = None;
    }

    /// As `nextval`, of a sequence that the statement itself may have made.
    pub(crate) fn next_of(&self, s: &Sequence) -> SqlResult<i64> {
        self.check_moves("nextval()", s)?;
        let _stops = Tally::stop_by(&self.cancel);
        let (oid, value) = (oid_of(s.id), self.db.nextval(s)?);
        let mut shared = self.shared.lock();
        shared.current_values.insert(oid, value);
        shared.last_sequence = Some(oid);
        Ok(value)
    }

    fn sequence(&self, oid: u32) -> SqlResult<Arc<Sequence>> {
        let catalog = self.catalog();
        match id_of_oid(oid).and_then(|id| catalog.relation_by_id(id)) {
            Some(Relation::Sequence(s)) => Ok(s),
            Some(other) => Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "\"{}\" is not a sequence",
                    catalog.qualified_name(other.id()).map(|n| n.1).unwrap_or_default()
                ),
            )),
            None => Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("could not open relation with OID {oid}"),
            )),
        }
    }

    /// Splits `a.b`, `"A".b` into folded parts, each as long as a name can be.
    pub fn split_name(name: &str) -> Vec<String> {
        let mut parts = vec![String::new()];
        let mut chars = name.trim().chars().peekable();
        let mut quoted = false;
        while let Some(c) = chars.next() {
            let last = parts.last_mut().expect("starts with one part");
            match c {
                '"' if quoted && chars.peek() == Some(&'"') => {
                    chars.next();
                    last.push('"');
                }
                '"' => quoted = !quoted,
                '.' if !quoted => parts.push(String::new()),
                c if quoted => last.push(c),
                c => last.extend(c.to_lowercase()),
            }
        }
        parts.iter_mut().for_each(|part| part.truncate(clip_name(part).len()));
        parts
    }

    /// A statement begins, which sees the state of this moment.
    pub(super) fn note_view(&self, view: u64) {
        self.view.store(view, Ordering::Relaxed);
    }

    /// By what other sessions can see what this one's block sees: SET TRANSACTION SNAPSHOT.
    ///
    /// # Errors
    /// 25P01 outside of a block.
    pub fn exported_view(&self) -> SqlResult<String> {
        match self.view.load(Ordering::Relaxed) {
            0 => Err(super::transaction::no_transaction("pg_export_snapshot()")),
            view => Ok(format!("{:08X}-{:08X}-1", view >> 32, view & 0xffff_ffff)),
        }
    }

    /// An evaluation context for what no statement has begun.
    pub(super) fn eval_now(self: &Arc<Self>) -> EvalContext {
        let now = self.db.clock_micros();
        self.eval_context(Arc::default(), self.style(), now, now)
    }

    /// An evaluation context of this session.
    pub(crate) fn eval_context(
        self: &Arc<Self>,
        params: Arc<[Datum]>,
        style: Style,
        transaction_micros: i64,
        statement_micros: i64,
    ) -> EvalContext {
        EvalContext {
            params,
            statement_micros,
            transaction_micros,
            style: Style { now: transaction_micros, ..style },
            session: self.clone(),
            large: None,
        }
    }
}

impl Drop for SessionState {
    fn drop(&mut self) {
        self.end_advisory_locks();
        self.close_channels();
    }
}

/// How often a sleeper looks whether he shall stop.
const NAP: Duration = Duration::from_millis(10);

/// A name as it has to be written: with its schema where the search path does not find it.
fn shown_name(is_visible: bool, schema: &str, name: &str) -> String {
    let name = quote_ident(name);
    if is_visible { name } else { format!("{}.{name}", quote_ident(schema)) }
}

impl SessionFunctions for SessionState {
    fn advisory(&self, advisory: Advisory) -> SqlResult<bool> {
        self.advisory_lock(advisory)
    }

    fn notify(&self, channel: &str, payload: &str) -> SqlResult<()> {
        self.ask(Asked::notify(self.pid, channel, payload)?)
    }

    fn listening(&self) -> Vec<Arc<str>> {
        self.channels()
    }

    fn prepared_statements(&self) -> Vec<PreparedStatement> {
        self.prepared.lock().values().cloned().collect()
    }

    fn cursors(&self) -> Vec<OpenCursor> {
        self.cursors.lock().values().map(|known| known.open.clone()).collect()
    }

    fn cursor_key(&self, cursor: &str, table: u32, column: usize) -> SqlResult<Datum> {
        self.key_under_cursor(cursor, table, column)
    }

    fn advisory_unlock_all(&self) {
        self.unlock_all_advisory();
    }

    fn check_interrupt(&self) -> SqlResult<()> {
        if self.cancel.load(Ordering::Relaxed) { Err(canceled()) } else { Ok(()) }
    }

    fn sleep(&self, micros: i64) -> SqlResult<()> {
        let until = self.db.clock_micros().saturating_add(micros);
        let (nobody, never) = (Mutex::new(()), Condvar::new());
        loop {
            self.check_interrupt()?;
            let left = until.saturating_sub(self.db.clock_micros());
            let Ok(left @ 1..) = u64::try_from(left) else { return Ok(()) };
            never.wait_for(&mut nobody.lock(), NAP.min(Duration::from_micros(left)));
        }
    }

    fn current_user(&self) -> String {
        let role = self.settings_get("role").filter(|role| role != "none");
        role.unwrap_or_else(|| self.session_user())
    }

    fn session_user(&self) -> String {
        let set = self.settings_get("session_authorization").filter(|user| !user.is_empty());
        set.unwrap_or_else(|| self.user.clone())
    }

    fn current_database(&self) -> String {
        self.database.clone()
    }

    fn current_schemas(&self, implicit: bool) -> Vec<String> {
        let catalog = self.catalog();
        let db = self.database_id();
        let mut path: Vec<String> = self
            .search_path()
            .into_iter()
            .filter(|s| {
                catalog.schema(db, s).is_some() || s == "pg_catalog" || s == "information_schema"
            })
            .filter(|s| implicit || !is_temporary_schema(s))
            .collect();
        if implicit && !path.iter().any(|s| s == "pg_catalog") {
            let behind = usize::from(path.first().is_some_and(|s| is_temporary_schema(s)));
            path.insert(behind, "pg_catalog".into());
        }
        path
    }

    fn clock_micros(&self) -> i64 {
        self.db.clock_micros()
    }

    fn random_u64(&self) -> u64 {
        self.db.random_u64()
    }

    fn random(&self) -> f64 {
        match self.shared.lock().fractions.as_mut() {
            Some(seeded) => seeded.next_fraction(),
            None => (self.random_u64() >> 11) as f64 / (1u64 << 53) as f64,
        }
    }

    fn seed_random(&self, seed: f64) {
        self.shared.lock().fractions = Some(Fractions::seeded(seed));
    }

    fn backend_pid(&self) -> i32 {
        self.pid
    }

    fn signal_backend(&self, pid: i32, terminate: bool) -> bool {
        let known = self.db.signal_session(pid, terminate);
        if !known {
            self.notices.lock().push(Notice {
                severity: "WARNING",
                state: SqlState("01000"),
                message: format!("PID {pid} is not a PostgreSQL server process"),
                detail: None,
                hint: None,
            });
        }
        known
    }

    fn reset_statements(&self, database: Option<u32>, id: Option<i64>) {
        let database = database.map(|oid| id_of_oid(oid).unwrap_or(0));
        self.db.reset_statistics(database, id);
    }

    fn nextval(&self, sequence: u32) -> SqlResult<i64> {
        self.next_of(&*self.sequence(sequence)?)
    }

    fn currval(&self, sequence: u32) -> SqlResult<i64> {
        let s = self.sequence(sequence)?;
        self.shared.lock().current_values.get(&sequence).copied().ok_or_else(|| {
            SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("currval of sequence \"{}\" is not yet defined in this session", s.name),
            )
        })
    }

    fn lastval(&self) -> SqlResult<i64> {
        let shared = self.shared.lock();
        shared.last_sequence.and_then(|s| shared.current_values.get(&s).copied()).ok_or_else(|| {
            SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "lastval is not yet defined in this session",
            )
        })
    }

    fn setval(&self, sequence: u32, value: i64, is_called: bool) -> SqlResult<i64> {
        let s = self.sequence(sequence)?;
        if s.reversed.is_some() {
            return Err(SqlError::unsupported("setval of a bit-reversed sequence")
                .with_hint("Use ALTER SEQUENCE .. RESTART COUNTER WITH ..."));
        }
        self.check_moves("setval()", &s)?;
        let _stops = Tally::stop_by(&self.cancel);
        self.db.setval(&s, value, is_called)?;
        if is_called {
            self.shared.lock().current_values.insert(sequence, value);
        }
        Ok(value)
    }

    fn relation_oid(&self, name: &str) -> SqlResult<Option<u32>> {
        let catalog = self.catalog();
        let db = self.database_id();
        let found = match SessionState::split_name(name).as_slice() {
            [name] => catalog.resolve(db, &self.search_path(), name),
            [schema, name] | [_, schema, name] => {
                let own = self.temporary_schema();
                let schema = if schema == "pg_temp" { &own } else { schema };
                catalog.schema(db, schema).and_then(|s| catalog.relation(s.id, name))
            }
            _ => None,
        };
        if found.is_none() {
            // A composite type is a relation, too.
            let path = self.search_path();
            let ty = find_type(&catalog, db, &path, &SessionState::split_name(name));
            let ty = ty.filter(|ty| matches!(ty.kind, TypeKind::Composite(_)));
            return Ok(ty.map(|ty| oid_of(ty.id)));
        }
        Ok(found.map(|r| oid_of(r.id())))
    }

    fn type_oid(&self, name: &str) -> Option<u32> {
        let catalog = self.catalog();
        let database = self.database_id();
        let (name, is_array) = match name.trim().strip_suffix("[]") {
            Some(element) => (element, true),
            None => (name, false),
        };
        let parts = SessionState::split_name(name);
        if let Some(found) = find_type(&catalog, database, &self.search_path(), &parts) {
            return Some(oid_of(if is_array { found.array } else { found.id }));
        }
        // A name in quotes: the form without them is known by now.
        let built_in = match parts.as_slice() {
            [name] => SqlType::from_name(name),
            [schema, name] if schema == "pg_catalog" => SqlType::from_name(name),
            _ => None,
        };
        let of_user = || {
            let types = types_in_reach(&catalog, database, &self.search_path())?;
            types.user_type(&parts)
        };
        let ty = built_in.or_else(of_user)?;
        Some(if is_array { ty.array_oid() } else { ty.oid() })
    }

    fn type_name(&self, oid: u32) -> Option<String> {
        let catalog = self.catalog();
        if oid == braid_types::oid::CITEXT || oid == braid_types::oid::CITEXT_ARRAY {
            return self.citext_name(&catalog, oid == braid_types::oid::CITEXT_ARRAY);
        }
        let Some(named) = catalog.by_oid(oid) else { return catalog.type_name(oid) };
        let user = named.user;
        // Types that are built in are found first.
        let found = match SqlType::from_name(named.name) {
            None => catalog.resolve_named(self.database_id(), &self.search_path(), named.name),
            Some(_) => None,
        };
        let schema = catalog.schema_by_id(user.schema).map_or("", |schema| &schema.name);
        let name = shown_name(found.map(|t| t.id) == Some(user.id), schema, named.name);
        Some(if named.is_array { format!("{name}[]") } else { name })
    }

    fn relation_name(&self, oid: u32) -> Option<String> {
        let catalog = self.catalog();
        let id = id_of_oid(oid)?;
        let Some((schema, name)) = catalog.qualified_name(id) else {
            let composite = |ty: &&Arc<UserType>| matches!(ty.kind, TypeKind::Composite(_));
            return catalog.user_type(id).filter(composite).and_then(|_| catalog.type_name(oid));
        };
        let db = self.database_id();
        let visible = catalog.resolve(db, &self.search_path(), &name).map(|r| r.id());
        Some(shown_name(visible == Some(id), &schema, &name))
    }

    fn setting(&self, name: &str) -> Option<String> {
        if let Some(value) = self.modes().setting(name) {
            return Some(value.into());
        }
        let of_node = self.db.node_setting(name).map(str::to_string);
        of_node.or_else(|| self.settings_get(name))
    }

    fn set_setting(&self, name: &str, value: &str, local: bool) -> SqlResult<String> {
        self.set(name, value, local)
    }

    fn catalog_function(&self, name: &str, args: &[Datum]) -> SqlResult<Option<Datum>> {
        self.db.general().clone().catalog_function(self, name, args)
    }
}
