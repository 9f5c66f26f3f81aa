//! The error that reaches a client: SQLSTATE plus primary message, detail and hint.

use std::fmt;

/// A five-character SQLSTATE code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub &'static str);

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl SqlState {
    /// The state of this code, if it is one that has a name here.
    pub fn of_code(code: &str) -> Option<SqlState> {
        SqlState::KNOWN.iter().copied().find(|state| state.0 == code)
    }
}

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl SqlState {
            $($(#[$doc])* pub const $name: SqlState = SqlState($code);)*

            /// By the name that PostgreSQL's PL/pgSQL has for the condition.
            pub fn named(name: &str) -> Option<SqlState> {
                $(if name.eq_ignore_ascii_case(stringify!($name)) {
                    return Some(SqlState($code));
                })*
                None
            }

            /// All of these.
            const KNOWN: &[SqlState] = &[$(SqlState($code)),*];
        }
    };
}

states! {
    /// Successful completion.
    SUCCESSFUL_COMPLETION = "00000";
    /// A warning.
    WARNING = "01000";
    /// RAISE EXCEPTION.
    RAISE_EXCEPTION = "P0001";
    /// Malformed or unexpected protocol message.
    PROTOCOL_VIOLATION = "08P01";
    /// The feature exists in PostgreSQL but not here.
    FEATURE_NOT_SUPPORTED = "0A000";
    /// More than one row from a scalar subquery.
    CARDINALITY_VIOLATION = "21000";
    /// Text longer than its column.
    STRING_DATA_RIGHT_TRUNCATION = "22001";
    /// Bits of another number than their type has.
    STRING_DATA_LENGTH_MISMATCH = "22026";
    /// A subscript outside of what it may be.
    ARRAY_SUBSCRIPT_ERROR = "2202E";
    /// A part of a negative length.
    SUBSTRING_ERROR = "22011";
    /// Number outside its type's bounds.
    NUMERIC_VALUE_OUT_OF_RANGE = "22003";
    /// Date or time outside its type's bounds.
    DATETIME_FIELD_OVERFLOW = "22008";
    /// NULL where there must be a value.
    NULL_VALUE_NOT_ALLOWED = "22004";
    /// Division by zero.
    DIVISION_BY_ZERO = "22012";
    /// Bytes that are not valid in the encoding.
    CHARACTER_NOT_IN_REPERTOIRE = "22021";
    /// A parameter value that makes no sense.
    INVALID_PARAMETER_VALUE = "22023";
    /// A character that the other encoding does not have.
    UNTRANSLATABLE_CHARACTER = "22P05";
    /// Malformed text form of a value.
    INVALID_TEXT_REPRESENTATION = "22P02";
    /// Malformed binary form of a value.
    INVALID_BINARY_REPRESENTATION = "22P03";
    /// Malformed COPY or IMPORT input.
    BAD_COPY_FILE_FORMAT = "22P04";
    /// Malformed date or time.
    INVALID_DATETIME_FORMAT = "22007";
    /// Restrict violation.
    RESTRICT_VIOLATION = "23001";
    /// NULL in a NOT NULL column.
    NOT_NULL_VIOLATION = "23502";
    /// Foreign key or interleaved parent missing, or still referenced.
    FOREIGN_KEY_VIOLATION = "23503";
    /// Duplicate key.
    UNIQUE_VIOLATION = "23505";
    /// CHECK constraint false.
    CHECK_VIOLATION = "23514";
    /// A cursor that stands on no row that could be meant.
    INVALID_CURSOR_STATE = "24000";
    /// Statement not allowed in this transaction state.
    ACTIVE_SQL_TRANSACTION = "25001";
    /// Write in a read-only transaction.
    READ_ONLY_SQL_TRANSACTION = "25006";
    /// No transaction in progress.
    NO_ACTIVE_SQL_TRANSACTION = "25P01";
    /// Transaction is aborted until ROLLBACK.
    IN_FAILED_SQL_TRANSACTION = "25P02";
    /// Unknown prepared statement.
    INVALID_SQL_STATEMENT_NAME = "26000";
    /// Objects still depend on this one.
    DEPENDENT_OBJECTS_STILL_EXIST = "2BP01";
    /// Unknown portal.
    INVALID_CURSOR_NAME = "34000";
    /// Cursor exists.
    DUPLICATE_CURSOR = "42P03";
    /// Unknown savepoint.
    INVALID_SAVEPOINT = "3B001";
    /// Unknown database.
    INVALID_CATALOG_NAME = "3D000";
    /// Unknown schema.
    INVALID_SCHEMA_NAME = "3F000";
    /// Transactions conflicted: run the transaction again.
    SERIALIZATION_FAILURE = "40001";
    /// Nobody knows whether a statement has happened.
    STATEMENT_COMPLETION_UNKNOWN = "40003";
    /// Deadlock: run the transaction again.
    DEADLOCK_DETECTED = "40P01";
    /// Malformed statement.
    SYNTAX_ERROR = "42601";
    /// Not permitted.
    INSUFFICIENT_PRIVILEGE = "42501";
    /// Cast that does not exist.
    CANNOT_COERCE = "42846";
    /// GROUP BY violation.
    GROUPING_ERROR = "42803";
    /// Types that do not fit.
    DATATYPE_MISMATCH = "42804";
    /// Parameter type cannot be told.
    INDETERMINATE_DATATYPE = "42P18";
    /// Two collations where one is needed.
    COLLATION_MISMATCH = "42P21";
    /// Nothing says which collation is meant.
    INDETERMINATE_COLLATION = "42P22";
    /// Wrong object kind.
    WRONG_OBJECT_TYPE = "42809";
    /// A name that is cut.
    NAME_TOO_LONG = "42622";
    /// Unknown column.
    UNDEFINED_COLUMN = "42703";
    /// Unknown function or operator.
    UNDEFINED_FUNCTION = "42883";
    /// Unknown table.
    UNDEFINED_TABLE = "42P01";
    /// Unknown parameter.
    UNDEFINED_PARAMETER = "42P02";
    /// Unknown object of another kind.
    UNDEFINED_OBJECT = "42704";
    /// Column named twice.
    DUPLICATE_COLUMN = "42701";
    /// Database exists.
    DUPLICATE_DATABASE = "42P04";
    /// Prepared statement exists.
    DUPLICATE_PREPARED_STATEMENT = "42P05";
    /// Schema exists.
    DUPLICATE_SCHEMA = "42P06";
    /// Table, index, view or sequence exists.
    DUPLICATE_TABLE = "42P07";
    /// Alias used twice.
    DUPLICATE_ALIAS = "42712";
    /// Object of another kind exists.
    DUPLICATE_OBJECT = "42710";
    /// A name that cannot be one.
    INVALID_NAME = "42602";
    /// Ambiguous column name.
    AMBIGUOUS_COLUMN = "42702";
    /// Ambiguous function or operator.
    AMBIGUOUS_FUNCTION = "42725";
    /// Bad column reference.
    INVALID_COLUMN_REFERENCE = "42P10";
    /// Bad column definition.
    INVALID_COLUMN_DEFINITION = "42611";
    /// Bad foreign key.
    INVALID_FOREIGN_KEY = "42830";
    /// A cursor that cannot be as it was declared.
    INVALID_CURSOR_DEFINITION = "42P11";
    /// Bad table definition (also interleave declarations).
    INVALID_TABLE_DEFINITION = "42P16";
    /// Bad default.
    INVALID_OBJECT_DEFINITION = "42P17";
    /// Disk full.
    DISK_FULL = "53100";
    /// Memory budget exceeded.
    OUT_OF_MEMORY = "53200";
    /// Statement, key or nesting over a limit.
    PROGRAM_LIMIT_EXCEEDED = "54000";
    /// Statement too deeply nested or long.
    STATEMENT_TOO_COMPLEX = "54001";
    /// Too many columns.
    TOO_MANY_COLUMNS = "54011";
    /// Object not in the needed state.
    OBJECT_NOT_IN_PREREQUISITE_STATE = "55000";
    /// Object is in use.
    OBJECT_IN_USE = "55006";
    /// NOWAIT lock not available.
    LOCK_NOT_AVAILABLE = "55P03";
    /// An administrator has switched it off, or denied it.
    OPERATOR_INTERVENTION = "57000";
    /// Cancelled by the user or a time-out.
    QUERY_CANCELED = "57014";
    /// Server is shutting down.
    ADMIN_SHUTDOWN = "57P01";
    /// What is needed is not there at the moment.
    CANNOT_CONNECT_NOW = "57P03";
    /// I/O failure.
    IO_ERROR = "58030";
    /// A configuration file or directory is in use.
    LOCK_FILE_EXISTS = "F0001";
    /// A bug in this server.
    INTERNAL_ERROR = "XX000";
    /// Stored data fails its checks.
    DATA_CORRUPTED = "XX001";
}

/// What somebody who has to run again has lost against. Statistics count by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryReason {
    /// Somebody else has written what it wants to write or to lock.
    WriteConflict,
    /// What it has read was changed before it committed.
    ReadConflict,
    /// By clocks alone nobody can tell whether what it reads was there before it began.
    UncertainRead,
    /// Its waiting would have closed a circle.
    Deadlock,
    /// A lease has moved, or it took too long: its locks, or what it reads, are not kept any more.
    LeaseLost,
    /// A table is not any more what it was planned with.
    SchemaChange,
}

impl RetryReason {
    /// All of them, in the order of their numbers.
    pub const ALL: [RetryReason; 6] = [
        RetryReason::WriteConflict,
        RetryReason::ReadConflict,
        RetryReason::UncertainRead,
        RetryReason::Deadlock,
        RetryReason::LeaseLost,
        RetryReason::SchemaChange,
    ];
}

/// What a statement failed with. Boxed inside, so that `Result` stays small.
#[derive(Clone)]
pub struct SqlError(Box<Fields>);

/// Where in a script something stands, as the parser's tokens tell it, and what it is: texts of
/// views and functions are bound as well, whose places mean nothing in the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: u64,
    /// In characters, from 1.
    pub column: u64,
    /// What is there.
    pub mark: Mark,
}

/// What stands at a [`Place`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A word that the message has.
    Named,
    /// This word, or the beginning of this literal.
    Word(String),
    /// What is meant are these words or this sign right in front of it, with nothing between but
    /// space and opening brackets.
    Behind(String),
}

#[derive(Clone)]
struct Fields {
    state: SqlState,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    context: Option<String>,
    /// 1-based character position in the statement text.
    position: Option<usize>,
    /// The same before somebody works it out.
    place: Option<Place>,
    schema: Option<String>,
    table: Option<String>,
    datatype: Option<String>,
    column: Option<String>,
    constraint: Option<String>,
    /// The function of PostgreSQL that reports this, where drivers look for it.
    routine: Option<&'static str>,
    retry_reason: Option<RetryReason>,
}

/// Shorthand for results of statements.
pub type SqlResult<T> = Result<T, SqlError>;

impl SqlError {
    /// An error with its SQLSTATE and primary message.
    pub fn new(state: SqlState, message: impl Into<String>) -> SqlError {
        SqlError(Box::new(Fields {
            state,
            message: message.into(),
            detail: None,
            hint: None,
            context: None,
            position: None,
            place: None,
            schema: None,
            table: None,
            datatype: None,
            column: None,
            constraint: None,
            routine: None,
            retry_reason: None,
        }))
    }

    /// 0A000: the feature is not here; say what is instead in a hint.
    pub fn unsupported(what: impl fmt::Display) -> SqlError {
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// 42601.
    pub fn syntax(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::SYNTAX_ERROR, message)
    }

    /// XX000: a bug in this server.
    pub fn internal(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::INTERNAL_ERROR, message)
    }

    /// Adds the detail field.
    pub fn with_detail(mut self, detail: impl Into<String>) -> SqlError {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds the hint field.
    pub fn with_hint(mut self, hint: impl Into<String>) -> SqlError {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds what was being done, for instance which line of a COPY was read.
    pub fn with_context(mut self, context: impl Into<String>) -> SqlError {
        self.0.context = Some(context.into());
        self
    }

    /// Adds the 1-based character position in the statement text.
    pub fn with_position(mut self, position: usize) -> SqlError {
        self.0.position = Some(position);
        self
    }

    /// Says against what it was lost, if running again may help.
    pub fn with_retry_reason(mut self, reason: RetryReason) -> SqlError {
        self.0.retry_reason = Some(reason);
        self
    }

    /// Against what it was lost, if running again may help.
    pub fn retry_reason(&self) -> Option<RetryReason> {
        self.0.retry_reason
    }

    /// Adds the table (and schema) that the error is about.
    pub fn with_table(mut self, schema: impl Into<String>, table: impl Into<String>) -> SqlError {
        self.0.schema = Some(schema.into());
        self.0.table = Some(table.into());
        self
    }

    /// Adds the type (and schema) that the error is about.
    pub fn with_datatype(mut self, schema: impl Into<String>, name: impl Into<String>) -> SqlError {
        self.0.schema = Some(schema.into());
        self.0.datatype = Some(name.into());
        self
    }

    /// Adds the column that the error is about.
    pub fn with_column(mut self, column: impl Into<String>) -> SqlError {
        self.0.column = Some(column.into());
        self
    }

    /// Adds the constraint that the error is about.
    pub fn with_constraint(mut self, constraint: impl Into<String>) -> SqlError {
        self.0.constraint = Some(constraint.into());
        self
    }

    /// Adds the name of PostgreSQL's function that reports this error: some drivers tell errors of
    /// one SQLSTATE apart by it.
    pub fn with_routine(mut self, routine: &'static str) -> SqlError {
        self.0.routine = Some(routine);
        self
    }

    /// The SQLSTATE.
    pub fn state(&self) -> SqlState {
        self.0.state
    }
    /// The primary message.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// The detail, if any.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }
    /// The hint, if any.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
    /// What was being done, if it was told.
    pub fn context(&self) -> Option<&str> {
        self.0.context.as_deref()
    }
    /// Tells the line and the column of what is wrong, unless something inside of it was told.
    pub fn or_at(self, line: u64, column: u64) -> SqlError {
        self.or_place(Some(Place { line, column, mark: Mark::Named }))
    }

    /// As [`SqlError::or_at`], of a place that may not be known.
    pub fn or_place(mut self, place: Option<Place>) -> SqlError {
        if self.0.place.is_none() && self.0.position.is_none() {
            self.0.place = place.filter(|place| place.line > 0);
        }
        self
    }

    /// Forgets where it was: in a text that the client does not have.
    pub fn without_place(mut self) -> SqlError {
        (self.0.place, self.0.position) = (None, None);
        self
    }

    /// The place, if it was told.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// The 1-based character position in the statement, if known.
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }
    /// The reporting function of PostgreSQL, where drivers look for it.
    pub fn routine(&self) -> Option<&'static str> {
        self.0.routine
    }
    /// The schema, if the error is about one object.
    pub fn schema(&self) -> Option<&str> {
        self.0.schema.as_deref()
    }
    /// The table, if the error is about one.
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }
    /// The type, if the error is about one.
    pub fn datatype(&self) -> Option<&str> {
        self.0.datatype.as_deref()
    }
    /// The column, if the error is about one.
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }
    /// The constraint, if the error is about one.
    pub fn constraint(&self) -> Option<&str> {
        self.0.constraint.as_deref()
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.0.message, self.0.state.0)?;
        if let Some(detail) = self.detail() {
            write!(f, "\nDETAIL: {detail}")?;
        }
        if let Some(hint) = self.hint() {
            write!(f, "\nHINT: {hint}")?;
        }
        if let Some(context) = self.context() {
            write!(f, "\nCONTEXT: {context}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SqlError {}
