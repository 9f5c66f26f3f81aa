//! What binding and evaluation need to know of the outside: parameters, clock, session.

use std::sync::{Arc, LazyLock};

use braid_types::{
    Collation, Datum, SqlError, SqlResult, SqlState, SqlType, Style, built_in_collation,
    no_collation,
};
use sqlparser::ast;

use crate::{Bound, Refinement, Scope, UserBody, UserFunction};

/// Types and functions that users have made, by name.
pub trait TypeNames: std::fmt::Debug + Send + Sync {
    /// The type that a name means, with its schema if one is written; of a domain, the type that
    /// its values have.
    fn user_type(&self, parts: &[String]) -> Option<SqlType>;

    /// What a domain, or a type with fields of domains, asks of its values; `None` if the name
    /// means neither.
    ///
    /// # Errors
    /// Those of binding its conditions.
    fn domain(&self, parts: &[String]) -> SqlResult<Option<Refinement>>;

    /// What is asked of values of a type, whatever it is called.
    ///
    /// # Errors
    /// Those of binding conditions.
    fn refinement_of_type(&self, ty: &SqlType) -> SqlResult<Refinement>;

    /// The oid of the arrays of a type of a user.
    fn array_oid(&self, element: u32) -> Option<u32>;

    /// The collation of a user that a name means, with its schema if one is written.
    ///
    /// # Errors
    /// 3F000 if there is no such schema.
    fn collation(&self, parts: &[String]) -> SqlResult<Option<Arc<Collation>>>;

    /// Functions of a name, with its schema if one is written.
    ///
    /// # Errors
    /// When one cannot be read.
    fn functions(&self, parts: &[String]) -> SqlResult<Vec<Arc<UserFunction>>>;

    /// The body of one of them.
    ///
    /// # Errors
    /// When it cannot be read.
    fn body(&self, function: u32) -> SqlResult<UserBody>;
}

/// Types of `$1`, `$2`, ... as far as they are known. The first use that tells a type decides it.
/// And which types can be named at all.
#[derive(Clone, Debug, Default)]
pub struct ParamTypes {
    types: Vec<Option<SqlType>>,
    /// Parameters that are of a domain, or arrays of one, with its oid: their types are those that
    /// its values are kept as.
    domains: Vec<(usize, u32)>,
    named: Option<Arc<dyn TypeNames>>,
    /// Functions of users whose bodies this is bound in.
    active: Vec<u32>,
    /// Functions of users that were called.
    called: Vec<u32>,
}

impl ParamTypes {
    /// Starts from the types that the client declared.
    pub fn new(declared: &[Option<SqlType>]) -> ParamTypes {
        ParamTypes { types: declared.to_vec(), ..ParamTypes::default() }
    }

    /// With types that users have made.
    pub fn with_types(mut self, named: Option<Arc<dyn TypeNames>>) -> ParamTypes {
        self.named = named;
        self
    }

    /// The types that users have made and that can be named here.
    pub fn named_types(&self) -> Option<&dyn TypeNames> {
        self.named.as_deref()
    }

    /// The collation that a name means, with its schema if one is written.
    ///
    /// # Errors
    /// 42704 if there is none; 3F000 if there is no such schema.
    pub fn collation(&self, parts: &[String]) -> SqlResult<Arc<Collation>> {
        let built_in = match parts {
            [name] => built_in_collation(name),
            [schema, name] if schema == "pg_catalog" => built_in_collation(name),
            _ => None,
        };
        if let Some(known) = built_in {
            return Ok(known.clone());
        }
        let own = self.named_types().map(|names| names.collation(parts)).transpose()?;
        own.flatten().ok_or_else(|| no_collation(&parts.join(".")))
    }

    /// What is asked of values of a type by the types of its parts.
    ///
    /// # Errors
    /// Those of binding conditions of domains.
    pub fn refinement_of_type(&self, ty: &SqlType) -> SqlResult<Refinement> {
        self.named_types().map_or_else(|| Ok(Refinement::default()), |t| t.refinement_of_type(ty))
    }

    /// The same, to be kept.
    pub(crate) fn names(&self) -> Option<Arc<dyn TypeNames>> {
        self.named.clone()
    }

    /// For binding the bodies of these functions in each other.
    pub(crate) fn within(mut self, active: Vec<u32>) -> ParamTypes {
        self.active = active;
        self
    }

    /// Functions whose bodies are being bound around this.
    pub fn active(&self) -> &[u32] {
        &self.active
    }

    /// Makes a function one of those, or takes the last one away.
    pub fn set_active(&mut self, active: Vec<u32>) {
        self.active = active;
    }

    /// Notes that a function of a user is called.
    pub fn note_called(&mut self, function: u32) {
        if !self.called.contains(&function) {
            self.called.push(function);
        }
    }

    /// Forgets those after the first so many: a body's calls are not its caller's.
    pub fn forget_called(&mut self, from: usize) {
        self.called.truncate(from);
    }

    /// Functions of users that were called, not counting those that their bodies call.
    pub fn called(&self) -> &[u32] {
        &self.called
    }

    /// Type of the parameter with this zero-based index, if decided.
    pub fn get(&self, index: usize) -> Option<&SqlType> {
        self.types.get(index).and_then(Option::as_ref)
    }

    /// Notes that the parameter is used.
    pub(crate) fn mention(&mut self, index: usize) {
        if self.types.len() <= index {
            self.types.resize(index + 1, None);
        }
    }

    /// Decides the type of a parameter that has none yet.
    pub fn decide(&mut self, index: usize, ty: &SqlType) {
        self.mention(index);
        let slot = &mut self.types[index];
        if slot.is_none() {
            *slot = Some(ty.clone());
        }
    }

    /// The same of a parameter that becomes a value of a domain, or an array of such, by its oid.
    pub fn decide_domain(&mut self, index: usize, ty: &SqlType, oid: u32) {
        if self.get(index).is_none() {
            self.domains.push((index, oid));
        }
        self.decide(index, ty);
    }

    /// Takes over which parameters another planning has found to be of domains.
    pub fn note_domains(&mut self, domains: &[(usize, u32)]) {
        let is_known = |index| self.domains.iter().any(|(known, _)| *known == index);
        let new: Vec<_> = domains.iter().filter(|(index, _)| !is_known(*index)).copied().collect();
        self.domains.extend(new);
    }

    /// The parameters that are of domains, or arrays of them, with their oids.
    pub fn domains(&self) -> &[(usize, u32)] {
        &self.domains
    }

    /// Number of parameters mentioned so far.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether no parameter was mentioned.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// All types; a parameter that nothing decided is text.
    pub fn finish(&self) -> Vec<SqlType> {
        self.types.iter().map(|t| t.clone().unwrap_or(SqlType::Text)).collect()
    }
}

/// The surroundings of a binding.
pub trait BindContext {
    /// Parameter types, read and decided during binding.
    fn params(&mut self) -> &mut ParamTypes;

    /// Called for every node before the normal binding; `Some` replaces it. The general planner
    /// takes aggregates, windows and subqueries here.
    fn intercept(&mut self, expr: &ast::Expr, scope: &Scope) -> SqlResult<Option<Bound>> {
        let _ = (expr, scope);
        Ok(None)
    }
}

impl BindContext for ParamTypes {
    fn params(&mut self) -> &mut ParamTypes {
        self
    }
}

/// What an advisory lock is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdvisoryKey {
    /// One number.
    One(i64),
    /// Two, which are apart from all single ones.
    Two(i32, i32),
}

/// What is done with an advisory lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvisoryCall {
    /// Wait for it.
    Lock,
    /// Take it if it is free.
    TryLock,
    /// Give it back.
    Unlock,
}

/// A call of one of the functions over advisory locks.
#[derive(Clone, Copy, Debug)]
pub struct Advisory {
    /// What is done.
    pub call: AdvisoryCall,
    /// The lock.
    pub key: AdvisoryKey,
    /// Together with others who share it.
    pub shared: bool,
    /// Until the transaction ends, not the session.
    pub in_transaction: bool,
}

/// What functions ask of the session that runs the statement. Every method has a default that
/// says what an expression without session (a test, a constant) gets.
pub trait SessionFunctions: Send + Sync {
    /// `current_user`.
    fn current_user(&self) -> String {
        "root".to_string()
    }
    /// `session_user`.
    fn session_user(&self) -> String {
        self.current_user()
    }
    /// `current_database()`, `current_catalog`.
    fn current_database(&self) -> String {
        "defaultdb".to_string()
    }
    /// The effective search path, without `pg_catalog` unless asked for.
    fn current_schemas(&self, implicit: bool) -> Vec<String> {
        if implicit {
            vec!["pg_catalog".to_string(), "public".to_string()]
        } else {
            vec!["public".to_string()]
        }
    }
    /// Now, in microseconds since 2000-01-01 UTC (`clock_timestamp()`).
    fn clock_micros(&self) -> i64 {
        0
    }
    /// 64 random bits (`random()`, `gen_random_uuid()`).
    fn random_u64(&self) -> u64 {
        0
    }
    /// A number from 0 to below 1 (`random()`).
    fn random(&self) -> f64 {
        (self.random_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// `setseed`: what [`Self::random`] gives from now on follows from this.
    fn seed_random(&self, seed: f64) {
        let _ = seed;
    }
    /// Process id shown to the client.
    fn backend_pid(&self) -> i32 {
        0
    }
    /// Functions over advisory locks: whether the lock was taken, or given back.
    fn advisory(&self, advisory: Advisory) -> SqlResult<bool> {
        let _ = advisory;
        Err(SqlError::unsupported("an advisory lock here"))
    }
    /// `pg_advisory_unlock_all`.
    fn advisory_unlock_all(&self) {}
    /// `pg_notify`.
    fn notify(&self, channel: &str, payload: &str) -> SqlResult<()> {
        let _ = (channel, payload);
        Err(SqlError::unsupported("a notification here"))
    }
    /// `pg_listening_channels`.
    fn listening(&self) -> Vec<Arc<str>> {
        Vec::new()
    }
    /// Prepared statements with names, by name.
    fn prepared_statements(&self) -> Vec<PreparedStatement> {
        Vec::new()
    }
    /// Cursors of DECLARE, by name.
    fn cursors(&self) -> Vec<OpenCursor> {
        Vec::new()
    }
    /// A column of the key of the row of a table, by its id, that a cursor stands on.
    ///
    /// # Errors
    /// 34000, 24000.
    fn cursor_key(&self, cursor: &str, table: u32, column: usize) -> SqlResult<Datum> {
        let _ = (cursor, table, column);
        Err(SqlError::unsupported("WHERE CURRENT OF here"))
    }
    /// `pg_sleep`: so many microseconds.
    fn sleep(&self, micros: i64) -> SqlResult<()> {
        let _ = micros;
        Err(SqlError::unsupported("pg_sleep here"))
    }
    /// What computes for long asks now and then whether the statement has to stop.
    ///
    /// # Errors
    /// 57014, and those of a session that ends.
    fn check_interrupt(&self) -> SqlResult<()> {
        Ok(())
    }
    /// `pg_cancel_backend`, `pg_terminate_backend`: whether there is such a session.
    fn signal_backend(&self, pid: i32, terminate: bool) -> bool {
        let _ = (pid, terminate);
        false
    }
    /// `pg_stat_statements_reset`: of a database and of a fingerprint; `None`: of any.
    fn reset_statements(&self, database: Option<u32>, id: Option<i64>) {
        let _ = (database, id);
    }
    /// `nextval` of the sequence with this oid.
    fn nextval(&self, sequence: u32) -> SqlResult<i64> {
        let _ = sequence;
        Err(SqlError::unsupported("nextval here"))
    }
    /// `currval` of the sequence with this oid.
    fn currval(&self, sequence: u32) -> SqlResult<i64> {
        let _ = sequence;
        Err(SqlError::unsupported("currval here"))
    }
    /// `lastval()`.
    fn lastval(&self) -> SqlResult<i64> {
        Err(SqlError::unsupported("lastval here"))
    }
    /// `setval` of the sequence with this oid.
    fn setval(&self, sequence: u32, value: i64, is_called: bool) -> SqlResult<i64> {
        let _ = (sequence, value, is_called);
        Err(SqlError::unsupported("setval here"))
    }
    /// Oid of the table, index, view or sequence that a (possibly quoted, qualified) name means.
    fn relation_oid(&self, name: &str) -> SqlResult<Option<u32>> {
        let _ = name;
        Ok(None)
    }
    /// Oid of the type of a user that a (possibly quoted, qualified) name means.
    fn type_oid(&self, name: &str) -> Option<u32> {
        let _ = name;
        None
    }
    /// Name of the type of a user, or of arrays of one, with this oid.
    fn type_name(&self, oid: u32) -> Option<String> {
        let _ = oid;
        None
    }
    /// Name of a relation as `regclass` prints it: qualified only when not in the search path.
    fn relation_name(&self, oid: u32) -> Option<String> {
        let _ = oid;
        None
    }
    /// `current_setting`; `None` when there is no such setting.
    fn setting(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }
    /// `set_config`.
    fn set_setting(&self, name: &str, value: &str, local: bool) -> SqlResult<String> {
        let _ = (name, value, local);
        Err(SqlError::unsupported("set_config here"))
    }
    /// Catalog functions (`pg_get_indexdef`, `pg_get_constraintdef`, `pg_get_viewdef`,
    /// `pg_get_expr`, `pg_table_is_visible`, `pg_get_userbyid`, `obj_description`,
    /// `col_description`, `pg_relation_size`, ...): `None` means the function is not known here.
    fn catalog_function(&self, name: &str, args: &[Datum]) -> SqlResult<Option<Datum>> {
        let _ = (name, args);
        Ok(None)
    }
}

/// A prepared statement, as `pg_prepared_statements` shows it.
#[derive(Clone, Debug)]
pub struct PreparedStatement {
    /// Its name.
    pub name: String,
    /// What the client sent.
    pub text: Arc<str>,
    /// When, in microseconds since 2000-01-01 UTC.
    pub micros: i64,
    /// Types of its parameters, by oid.
    pub params: Vec<u32>,
    /// By PREPARE, not by the protocol.
    pub from_sql: bool,
}

/// A cursor of DECLARE, as `pg_cursors` shows it.
#[derive(Clone, Debug)]
pub struct OpenCursor {
    /// Its name.
    pub name: String,
    /// The statement that declared it.
    pub text: Arc<str>,
    /// It outlives its transaction.
    pub holds: bool,
    /// Simple queries get its rows in binary form.
    pub binary: bool,
    /// It goes back, too.
    pub scrolls: bool,
    /// When it was declared, in microseconds since 2000-01-01 UTC.
    pub micros: i64,
}

/// A session that has nothing: for constants and tests.
#[derive(Debug)]
pub struct NoSession;

impl SessionFunctions for NoSession {}

/// Who has to know of values that take much memory.
pub trait LargeValues: Send + Sync {
    /// A value of so many bytes is about to be handed on.
    ///
    /// # Errors
    /// 53200 when there is no room for it.
    fn pass(&self, bytes: usize) -> SqlResult<()>;
}

/// Lets no large value pass.
struct NoLargeValues;

impl LargeValues for NoLargeValues {
    fn pass(&self, bytes: usize) -> SqlResult<()> {
        let what = format!("a plan does not keep a value of {bytes} bytes");
        Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, what))
    }
}

/// Everything that evaluation may look at beside the row.
#[derive(Clone)]
pub struct EvalContext {
    /// Values of `$1`, `$2`, ... in their decided types.
    pub params: Arc<[Datum]>,
    /// Start of the statement, microseconds since 2000-01-01 UTC.
    pub statement_micros: i64,
    /// Start of the transaction: `now()`.
    pub transaction_micros: i64,
    /// How the session wants dates, intervals and floats read and shown, and its time zone.
    pub style: Style,
    /// The session.
    pub session: Arc<dyn SessionFunctions>,
    /// Who pays for large values; nobody for constants and tests.
    pub large: Option<Arc<dyn LargeValues>>,
}

impl EvalContext {
    /// For constants and tests: no parameters, time zero, UTC, no session.
    pub fn constant() -> EvalContext {
        EvalContext {
            params: Arc::from(Vec::new()),
            statement_micros: 0,
            transaction_micros: 0,
            style: Style::utc(),
            session: Arc::new(NoSession),
            large: None,
        }
    }

    /// For what a plan keeps of expressions without columns: as [`EvalContext::constant`], but a
    /// call that makes a large value fails. It is computed when it is wanted, and paid for.
    pub(crate) fn folding() -> EvalContext {
        static NONE: LazyLock<Arc<dyn LargeValues>> = LazyLock::new(|| Arc::new(NoLargeValues));
        EvalContext { large: Some(NONE.clone()), ..EvalContext::constant() }
    }

    /// The value of a parameter.
    ///
    /// # Errors
    /// 42P02 when the client gave no such parameter.
    pub fn param(&self, index: usize) -> SqlResult<Datum> {
        self.params.get(index).cloned().ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter ${}", index + 1),
            )
        })
    }
}
