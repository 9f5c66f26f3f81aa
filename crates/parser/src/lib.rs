//! From text to statements: sqlparser's PostgreSQL dialect inside a shell of our own.
//!
//! ```text
//!   text ─ tokens ─ split at ';' ─┬─ our own statements: SHOW, SET, BEGIN, COPY, IMPORT, ..
//!                                 ├─ lifted clauses: INTERLEAVE, AS OF SYSTEM TIME, inline INDEX
//!                                 └─ the rest: sqlparser
//! ```
//!
//! The shell works on tokens: it recognises what sqlparser has no grammar for, cuts those tokens
//! out, and hands over the rest. Identifiers inside [`Kind`] are folded as PostgreSQL folds them.
//!
//! Limits: [`MAX_SCRIPT_BYTES`] of text, [`MAX_DEPTH`] levels of nesting, [`MAX_OPERATORS`] and
//! [`MAX_CONNECTIVES`] in a row, else SQLSTATE 54001.

mod absent;
mod access;
mod comment;
mod control;
mod copy;
mod cursor;
mod explain;
mod fingerprint;
mod functions;
mod insert;
mod lexical;
mod maintenance;
mod materialized;
mod position;
mod reserved;
mod rewrites;
mod script;
mod sequence;
mod shape;
mod spellings;
mod sql_cursor;
mod statement;
mod table;
mod user_types;

use std::sync::Arc;

use braid_types::encodings::Encoding;
use braid_types::{SqlError, SqlState};
use sqlparser::ast;

pub use absent::DropAbsent;
pub use access::{
    Access, GrantKind, GrantObjects, GrantPrivileges, OwnedKind, OwnerChange, RoleChange, RoleName,
    RoleOption, SettingChange,
};
pub use comment::{Comment, Commented};
pub use control::cluster::SetCluster;
pub use explain::{ExplainFormat, ExplainOptions};
pub use fingerprint::{Digests, Fingerprint};
pub use functions::block::{
    Block, Condition, Does, Handler, Level, Raise, RaiseOption, Step, is_code, named_state,
    parse_block, with_caught,
};
pub use functions::function::{
    CreateFunction, FunctionBody, FunctionChange, FunctionClause, FunctionParam, FunctionRef,
    FunctionReturns, ParamMode,
};
pub use insert::{Inference, InsertClauses, Overriding, take_clauses};
pub use materialized::{CreateMaterialized, MaterializedChange, Refresh};
pub use rewrites::collations::take_collation;
pub use rewrites::current_of::cursor_of;
pub use rewrites::exclusion::{Exclusion, take_exclusion};
pub use rewrites::grouping::{DISTINCT_SETS, INNER_SETS};
pub use rewrites::join_alias::take_join_alias;
pub use rewrites::lexemes::escaped_texts::with_standard_texts;
pub use rewrites::locking::is_moved;
pub use rewrites::merge::{MERGE_DEFAULTS, MERGE_NOTHING};
pub use rewrites::no_inherit::take_no_inherit;
pub use rewrites::recursion::{Cycle, Recursion, Search, take_recursion};
pub use rewrites::rows_from::{ROWS_FROM, WITH_COLUMNS, column_list};
pub use rewrites::set_columns::take_set_columns;
pub use rewrites::shown::shown;
pub use rewrites::subscripts::subscript;
pub use script::{parse_expr, parse_query, parse_script};
pub use shape::{Literal, LiteralKind, Shape};
pub use spellings::{STAR_EXCEPT, take_included};
pub use sql_cursor::{DeclareCursor, FetchRows, Steps};
pub use table::identity::named_sequence;
pub use table::like::{LikeClause, LikeOptions};
pub use table::null_keys::take_null_keys;
pub use table::partition::{
    CreatePartition, ForValues, PartitionBy, PartitionChange, PartitionStrategy, RangeLimit,
};
pub use table::several::Several;
pub use table::storage::{StorageOptions, Triggers};
pub use user_types::attributes::AttributeChange;
pub use user_types::collation::{CollationChange, CollationMade, CollationStatement};
pub use user_types::domain::{CreateDomain, DomainChange};

/// Longest accepted text, in bytes.
pub(crate) const MAX_SCRIPT_BYTES: usize = 16 << 20;
/// Deepest accepted nesting.
pub const MAX_DEPTH: usize = 200;
/// What sqlparser counts for [`MAX_DEPTH`]: a subquery in brackets is several levels to it.
const READER_DEPTH: usize = 4 * MAX_DEPTH;
/// Most operators in a row, as in `1 + 1 + 1`: each is one level of the parsed expression.
pub(crate) const MAX_OPERATORS: usize = 5_000;
/// Most AND, OR, UNION and the like in a row.
pub(crate) const MAX_CONNECTIVES: usize = 20_000;

/// What ON DELETE of an interleaved table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteAction {
    /// Children are deleted with their parent.
    Cascade,
    /// A parent with children cannot be deleted; asked at the end of the statement.
    NoAction,
    /// The same, asked at once.
    Restrict,
}

/// ISOLATION LEVEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    /// Transactions behave as if run one after the other.
    Serializable,
    /// One snapshot for the whole transaction.
    RepeatableRead,
    /// A new snapshot for each statement.
    ReadCommitted,
    /// The same under another name, as in PostgreSQL.
    ReadUncommitted,
}

/// One parsed statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its text, without the semicolon.
    pub text: Arc<str>,
    /// What it says.
    pub kind: Arc<Kind>,
    /// `AS OF SYSTEM TIME` expression.
    pub as_of: Option<Arc<ast::Expr>>,
    /// What was read and left out, for the client.
    pub notices: Arc<[Notice]>,
    /// Where its text begins in the script.
    pub start: Start,
}

/// What a client is told of how its statement was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// SQLSTATE.
    pub state: SqlState,
    /// Text.
    pub message: String,
}

/// Where a text begins in a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// From 1.
    pub line: u64,
    /// In characters, from 1.
    pub column: u64,
    /// Characters of the script before it.
    pub chars: usize,
}

impl Start {
    /// Where a script begins.
    pub(crate) const FIRST: Start = Start { line: 1, column: 1, chars: 0 };

    /// The place behind a text that begins here.
    pub(crate) fn behind(self, text: &str) -> Start {
        let mut place = self;
        for c in text.chars() {
            place.chars += 1;
            match c {
                '\n' => (place.line, place.column) = (place.line + 1, 1),
                _ => place.column += 1,
            }
        }
        place
    }
}

impl Statement {
    /// An error with its position in the script, if it knows its line and column in there, and what
    /// stands there is what it is about: parts of other texts are bound, too, such as views.
    pub fn locate(&self, error: SqlError) -> SqlError {
        if error.position().is_some() {
            return error;
        }
        let of = |place| position::of(&self.text, self.start, place, error.message());
        let found = error.place().and_then(of).or_else(|| {
            let only = || position::of_only(&self.text, self.start, &error);
            self.is_planned_anew().then(only).flatten()
        });
        match found {
            Some(position) => error.with_position(position),
            None => error,
        }
    }

    /// Whether it may be planned as a query that is written out of its parts: places in there are
    /// none of the script.
    fn is_planned_anew(&self) -> bool {
        use ast::Statement::{Delete, Merge, Update};
        match &*self.kind {
            Kind::Sql(statement) => matches!(**statement, Update(_) | Delete(_) | Merge(_)),
            Kind::Explain { statement, .. } | Kind::Prepare(_, _, statement) => {
                statement.is_planned_anew()
            }
            _ => false,
        }
    }
}

/// A dotted name, folded.
pub type Name = Vec<String>;

/// What a statement says.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Nothing but white space and comments.
    Empty,
    /// Everything that sqlparser knows and that needs no addition of ours.
    Sql(Box<ast::Statement>),
    /// DO, with its body.
    Do(String),
    /// LISTEN.
    Listen(String),
    /// UNLISTEN; `None`: all channels.
    Unlisten(Option<String>),
    /// NOTIFY with its payload.
    Notify(String, Option<String>),
    /// SET CONSTRAINTS: some by name or all, whether they wait.
    SetConstraints(Option<Vec<Name>>, bool),
    /// LOCK TABLE.
    LockRelations {
        /// The tables.
        tables: Vec<Name>,
        /// Of a mode that conflicts with writing.
        keeps_writers_out: bool,
        /// NOWAIT.
        nowait: bool,
    },
    /// INSERT.
    Insert(Box<ast::Insert>, Box<InsertClauses>),
    /// CREATE TABLE.
    CreateTable(Box<CreateTable>),
    /// CREATE TABLE .. AS EXECUTE: the table, with some query in the place of that of the prepared
    /// statement of this name, and the values for its parameters.
    CreateTableExecute(Box<CreateTable>, String, Vec<ast::Expr>),
    /// CREATE TABLE .. PARTITION OF.
    CreatePartition(Box<CreatePartition>),
    /// ATTACH and DETACH PARTITION.
    Partition(Box<PartitionChange>),
    /// CREATE MATERIALIZED VIEW.
    CreateMaterialized(Box<CreateMaterialized>),
    /// REFRESH MATERIALIZED VIEW.
    Refresh(Refresh),
    /// ALTER MATERIALIZED VIEW; the flag is IF EXISTS.
    AlterMaterialized(Name, bool, MaterializedChange),
    /// ALTER VIEW with what can be changed of a view; the flag is IF EXISTS.
    AlterView(Name, bool, MaterializedChange),
    /// CREATE INDEX.
    CreateIndex(Box<CreateIndex>),
    /// ALTER TABLE in a form of ours.
    AlterTableOwn(Name, bool, AlterOwn),
    /// ALTER TABLE with actions of which some are ours.
    AlterTableParts(Several),
    /// CREATE SCHEMA with what is to lie in it.
    CreateSchemaWith(Several),
    /// ALTER TABLE and ALTER INDEX with options that change nothing.
    StorageOptions(Box<StorageOptions>),
    /// ALTER TABLE .. SPLIT AT VALUES.
    SplitTable(SplitTable),
    /// ALTER INDEX [IF EXISTS] .. RENAME TO.
    RenameIndex {
        /// The index.
        index: Name,
        /// Whether it need not be there.
        if_exists: bool,
        /// Its new name.
        new: String,
    },
    /// ALTER INDEX .. ADD or DROP STORED COLUMN.
    StoredColumn {
        /// The index.
        index: Name,
        /// The column.
        column: String,
        /// Whether it is added.
        add: bool,
    },
    /// CREATE SEQUENCE.
    CreateSequence {
        /// Of the sequence.
        name: Name,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// It goes with its session.
        temporary: bool,
        /// Its options.
        change: SequenceChange,
    },
    /// ALTER SEQUENCE.
    AlterSequence(Name, bool, SequenceChange),
    /// CREATE DOMAIN.
    CreateDomain(Box<CreateDomain>),
    /// ALTER DOMAIN.
    AlterDomain(Name, DomainChange),
    /// DROP DOMAIN; the flags are IF EXISTS and CASCADE.
    DropDomains(Vec<Name>, bool, bool),
    /// CREATE FUNCTION.
    CreateFunction(Box<CreateFunction>),
    /// ALTER FUNCTION.
    AlterFunction(FunctionRef, FunctionChange),
    /// DROP FUNCTION; the flags are IF EXISTS and CASCADE.
    DropFunctions(Vec<FunctionRef>, bool, bool),
    /// ALTER TYPE .. ADD, DROP, ALTER, RENAME ATTRIBUTE.
    AlterAttributes(Name, Vec<AttributeChange>),
    /// Roles and privileges.
    Access(Box<Access>),
    /// ALTER .. OWNER TO.
    Owner(Box<OwnerChange>),
    /// COMMENT ON.
    Comment(Comment),
    /// ALTER TYPE and ALTER DOMAIN .. SET SCHEMA.
    AlterTypeSchema(Name, String),
    /// CREATE DATABASE; the flag is IF NOT EXISTS.
    CreateDatabase(String, bool),
    /// SET.
    Set(SetVar),
    /// SET CLUSTER SETTING, and RESET.
    SetCluster(SetCluster),
    /// DENY QUERY.
    DenyQuery(Box<DenyQuery>),
    /// ALLOW QUERY: the rule of this number, or all.
    AllowQuery(Option<u32>),
    /// ALTER SYSTEM SET; RESET has no values.
    AlterSystem(SetVar),
    /// RESET name, or all.
    Reset(Option<String>),
    /// SHOW.
    Show(Show),
    /// BEGIN.
    Begin(TxnModes),
    /// COMMIT; the flag is AND CHAIN.
    Commit(bool),
    /// ROLLBACK; the flag is AND CHAIN.
    Rollback(bool),
    /// SAVEPOINT.
    Savepoint(String),
    /// ROLLBACK TO.
    RollbackTo(String),
    /// RELEASE.
    Release(String),
    /// SET TRANSACTION.
    SetTransaction(TxnModes),
    /// SET SESSION CHARACTERISTICS AS TRANSACTION.
    SetSessionTransaction(TxnModes),
    /// EXPLAIN.
    Explain {
        /// How.
        options: ExplainOptions,
        /// The explained statement.
        statement: Statement,
    },
    /// COPY.
    Copy(Box<Copy>),
    /// IMPORT PGDUMP.
    ImportDump(Box<ImportDump>),
    /// EXPORT INTO.
    Export(Box<Export>),
    /// IMPORT INTO .. DATA.
    Import(Box<Import>),
    /// PREPARE name (types) AS statement.
    Prepare(String, Vec<ast::DataType>, Statement),
    /// EXECUTE name (values).
    Execute(String, Vec<ast::Expr>),
    /// DEALLOCATE name, or all.
    Deallocate(Option<String>),
    /// DECLARE CURSOR.
    DeclareCursor(Box<DeclareCursor>),
    /// FETCH and MOVE.
    Fetch(FetchRows),
    /// CLOSE a cursor, or all.
    CloseCursor(Option<String>),
    /// DISCARD ALL and friends.
    Discard(String),
    /// ANALYZE, and VACUUM with the option of that name.
    Analyze(Analyze),
    /// VACUUM, CHECKPOINT and others that need nothing done: the command tag and the tables that
    /// are named, which must exist.
    NoOp(&'static str, Vec<Name>),
    /// CANCEL JOB.
    CancelJob(u32),
    /// PAUSE JOB.
    PauseJob(u32),
    /// RESUME JOB.
    ResumeJob(u32),
    /// Known and refused, with what it is called.
    Refused(String, &'static str),
    /// CREATE, ALTER or DROP COLLATION.
    Collation(Box<CollationStatement>),
    /// DROP of an object of a kind that is not here.
    DropAbsent(DropAbsent),
}

/// ALTER TABLE .. SPLIT AT VALUES.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitTable {
    /// Which table.
    pub table: Name,
    /// If there is no such table, nothing happens.
    pub if_exists: bool,
    /// The first values of its primary key, for each border.
    pub borders: Vec<Vec<ast::Expr>>,
}

/// ANALYZE, or VACUUM (ANALYZE).
#[derive(Clone, Debug, PartialEq)]
pub struct Analyze {
    /// The command tag.
    pub tag: &'static str,
    /// Says what it does.
    pub verbose: bool,
    /// Tables with the columns that are named; no tables, no columns: all.
    pub tables: Vec<(Name, Vec<String>)>,
}

/// An INTERLEAVE clause of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct InterleaveClause {
    /// Parent table.
    pub parent: Name,
    /// With the word PARENT.
    pub in_parent: bool,
    /// Column list.
    pub columns: Option<Vec<String>>,
    /// ON DELETE.
    pub on_delete: Option<DeleteAction>,
}

/// CREATE TABLE with our additions.
#[derive(Clone, Debug)]
pub struct CreateTable {
    /// sqlparser's part.
    pub base: ast::CreateTable,
    /// INTERLEAVE.
    pub interleave: Option<InterleaveClause>,
    /// Indexes declared inside the parentheses.
    pub indexes: Vec<CreateIndex>,
    /// Names of columns before AS.
    pub names: Vec<String>,
    /// WITH NO DATA.
    pub no_data: bool,
    /// ROW DELETION POLICY or TTL.
    pub ttl: Option<TtlClause>,
    /// PARTITION BY.
    pub by: Option<PartitionBy>,
    /// LIKE.
    pub likes: Vec<LikeClause>,
    /// OF: the type whose fields are its columns.
    pub of: Option<Name>,
}

/// `OLDER_THAN(column, INTERVAL n DAY)` or `TTL INTERVAL 'interval' ON column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TtlClause {
    /// The column.
    pub column: String,
    /// How old a row may become.
    pub interval: String,
}

/// CREATE INDEX with our additions.
#[derive(Clone, Debug)]
pub struct CreateIndex {
    /// sqlparser's part.
    pub base: ast::CreateIndex,
    /// NULL_FILTERED, Spanner's: rows with a NULL in the key have no entries.
    pub null_filtered: bool,
    /// `INTERLEAVE IN [PARENT] t [(cols)]`.
    pub interleave: Option<InterleaveClause>,
    /// ONLY: partitions do not get it.
    pub only: bool,
}

/// Own ALTER TABLE forms.
#[derive(Clone, Debug)]
pub enum AlterOwn {
    /// SET ON DELETE.
    SetOnDelete(DeleteAction),
    /// SET INTERLEAVE IN.
    SetInterleave(InterleaveClause),
    /// ADD, ALTER, REPLACE or DROP of a row deletion policy.
    SetTtl(Option<TtlClause>),
    /// DROP INTERLEAVE.
    DropInterleave,
    /// ALTER PRIMARY KEY USING COLUMNS: names, with whether they descend.
    PrimaryKey(Vec<(String, bool)>, Option<InterleaveClause>),
    /// SET SCHEMA.
    SetSchema(String),
    /// ALTER COLUMN .. SET STATISTICS.
    SetStatistics(String, i64),
    /// ALTER COLUMN .. RESTART, SET GENERATED and options of an identity column: whether it is
    /// ALWAYS, if that is said.
    Identity(String, Option<bool>, Box<SequenceChange>),
    /// ALTER COLUMN .. DROP IDENTITY; the flag is IF EXISTS.
    DropIdentity(String, bool),
    /// ALTER COLUMN .. DROP EXPRESSION; the flag is IF EXISTS.
    DropExpression(String, bool),
    /// ALTER CONSTRAINT: when it is checked.
    Constraint(String, ast::ConstraintCharacteristics),
    /// ALTER COLUMN .. SET OPTIONS (allow_commit_timestamp), or its TYPE: whether it is allowed.
    SetCommitTime(String, bool),
}

/// Options of CREATE SEQUENCE and ALTER SEQUENCE; outer `None` = not named.
#[derive(Clone, Debug, Default)]
pub struct SequenceChange {
    /// AS type.
    pub ty: Option<ast::DataType>,
    /// INCREMENT BY.
    pub increment: Option<i64>,
    /// MINVALUE; inner `None` is NO MINVALUE.
    pub min: Option<Option<i64>>,
    /// MAXVALUE.
    pub max: Option<Option<i64>>,
    /// START.
    pub start: Option<i64>,
    /// RESTART; inner `None` is without a value.
    pub restart: Option<Option<i64>>,
    /// CACHE.
    pub cache: Option<i64>,
    /// CYCLE.
    pub cycle: Option<bool>,
    /// BIT_REVERSED_POSITIVE: a counter whose bits are handed out in reverse.
    pub reversed: bool,
    /// SKIP RANGE; inner `None` is NO SKIP RANGE.
    pub skip: Option<Option<(i64, i64)>>,
    /// OWNED BY table.column; inner `None` is NONE.
    pub owned_by: Option<Option<Name>>,
    /// RENAME TO.
    pub rename: Option<String>,
    /// SET SCHEMA.
    pub schema: Option<String>,
}

/// SET name = values.
#[derive(Clone, Debug)]
pub struct SetVar {
    /// LOCAL.
    pub local: bool,
    /// Lower-case name.
    pub name: String,
    /// Values; `None` is DEFAULT.
    pub values: Option<Vec<String>>,
}

/// How a statement is named that is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// By its text, with its constants.
    Exact(String),
    /// By its text, whatever its constants.
    Fingerprint(String),
    /// As statistics name it.
    QueryId(i64),
    /// By an expression that matches a part of its text.
    Regex(String),
}

/// DENY QUERY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyQuery {
    /// Which statements.
    pub what: Denied,
    /// Only those of this user.
    pub user: Option<String>,
    /// Only those from this `application_name`.
    pub application: Option<String>,
    /// Until this time.
    pub until: Option<String>,
    /// For so long.
    pub interval: Option<String>,
    /// They are counted only.
    pub dry_run: bool,
    /// Why.
    pub reason: Option<String>,
}

/// What SHOW shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    /// A setting.
    Variable(String),
    /// All settings.
    All,
    /// Tables of the search path (or of a schema).
    Tables(Option<String>),
    /// Databases.
    Databases,
    /// Schemas.
    Schemas,
    /// Columns of a table.
    Columns(Name),
    /// Indexes of a table.
    Indexes(Name),
    /// Constraints of a table.
    Constraints(Name),
    /// Sequences.
    Sequences,
    /// Views.
    Views,
    /// Schema changes and other long work.
    Jobs,
    /// All cluster settings.
    ClusterSettings,
    /// The value of one.
    ClusterSetting(String),
    /// The value of one as each node has it.
    ClusterSettingOfNodes(String),
    /// Rules of DENY QUERY.
    DeniedQueries,
    /// Ranges of a cluster: all, or those in which rows or index entries of a table may be.
    Ranges(Option<Name>),
    /// The range in which a row of a table is, or would be: the values of its primary key, or the
    /// first of them.
    RangeOfRow(Name, Vec<ast::Expr>),
    /// Row deletion policies.
    Policies,
    /// Tables and indexes as they lie in each other: all, or those around a table.
    InterleaveTree(Option<Name>),
    /// Tables that could lie in others: all, or what has to do with a table.
    InterleaveProposals(Option<Name>),
    /// CREATE TABLE, VIEW or SEQUENCE statement.
    Create(Name),
}

/// Transaction modes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TxnModes {
    /// ISOLATION LEVEL.
    pub isolation: Option<IsolationLevel>,
    /// READ ONLY / READ WRITE.
    pub read_only: Option<bool>,
    /// DEFERRABLE: kept and shown. Nobody has to wait for a safe view here.
    pub deferrable: Option<bool>,
}

/// Format of COPY data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyFormat {
    /// PostgreSQL's text format.
    #[default]
    Text,
    /// CSV.
    Csv,
    /// PostgreSQL's binary format.
    Binary,
}

/// Options of COPY.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CopyOptions {
    /// FORMAT.
    pub format: CopyFormat,
    /// DELIMITER.
    pub delimiter: Option<char>,
    /// NULL.
    pub null: Option<String>,
    /// HEADER.
    pub header: bool,
    /// HEADER MATCH: the names in it must be those of the columns.
    pub header_match: bool,
    /// QUOTE.
    pub quote: Option<char>,
    /// ESCAPE.
    pub escape: Option<char>,
    /// FORCE_QUOTE columns; empty list is `*`.
    pub force_quote: Option<Vec<String>>,
    /// FORCE_NULL columns: what stands for NULL does so between quotes, too; empty list is `*`.
    pub force_null: Option<Vec<String>>,
    /// FORCE_NOT_NULL columns: nothing stands for NULL; empty list is `*`.
    pub force_not_null: Option<Vec<String>>,
    /// ENCODING; else the client's.
    pub encoding: Option<Encoding>,
    /// ON_ERROR ignore: rows are left out whose values do not fit.
    pub ignore_errors: bool,
    /// LOG_VERBOSITY verbose: each of these is told.
    pub verbose: bool,
    /// REJECT_LIMIT: more of them end the COPY.
    pub reject_limit: Option<u64>,
}

/// COPY.
#[derive(Clone, Debug)]
pub struct Copy {
    /// Table, or `None` with a query.
    pub table: Option<Name>,
    /// Columns; empty = all.
    pub columns: Vec<String>,
    /// Query of `COPY (query) TO`.
    pub query: Option<Box<ast::Query>>,
    /// TO instead of FROM.
    pub to: bool,
    /// File name; `None` is STDIN or STDOUT.
    pub file: Option<String>,
    /// Options.
    pub options: CopyOptions,
    /// WHERE: rows of the input for which it is not true are left out.
    pub condition: Option<ast::Expr>,
}

/// IMPORT PGDUMP.
#[derive(Clone, Debug)]
pub struct ImportDump {
    /// The dump.
    pub file: String,
    /// WITH options: lower-case name and value.
    pub options: Vec<(String, Option<String>)>,
    /// The job that does it, if it is one that goes on.
    pub job: Option<u32>,
}

/// EXPORT INTO: of a table, or of a query.
#[derive(Clone, Debug)]
pub struct Export {
    /// What the files are to hold, in lower case: `csv`.
    pub format: String,
    /// Where they are to be.
    pub folder: String,
    /// WITH options: lower-case name and value.
    pub options: Vec<(String, Option<String>)>,
    /// Table.
    pub table: Option<Name>,
    /// Query.
    pub query: Option<Box<ast::Query>>,
}

/// IMPORT INTO.
#[derive(Clone, Debug)]
pub struct Import {
    /// Table.
    pub table: Name,
    /// Columns; empty = all.
    pub columns: Vec<String>,
    /// What the files hold, in lower case: `csv`.
    pub format: String,
    /// Files.
    pub files: Vec<String>,
    /// WITH options: lower-case name and value.
    pub options: Vec<(String, Option<String>)>,
    /// The job's id, if it has one already: of a statement that does not wait for it.
    pub job: Option<u32>,
}
