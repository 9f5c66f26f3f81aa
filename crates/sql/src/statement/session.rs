//! Statements about the session: transactions, settings, prepared statements, reports.

use braid_catalog::Relation;
use braid_kv::Wait;
use braid_parser::{ExplainFormat, ExplainOptions, Kind, Name};
use braid_settings::Feature;
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};

use super::entry::{Effect, Entry, work};
use crate::general_query::ColumnInfo;
use crate::over_nodes::calls::JobWish;
use crate::session::execute::text_rows;
use crate::session::{Context, Outcome, Session, show};

fn done(tag: &str) -> SqlResult<Outcome> {
    Ok(Outcome::Done(tag.to_string()))
}

pub(super) static ENTRIES: &[Entry] = &[
    Entry::session(
        "BEGIN",
        "begin",
        "opens a transaction block: isolation, READ ONLY, AS OF SYSTEM TIME",
        work!(s, Kind::Begin(modes) => |session| {
            session.begin(modes, s.as_of.as_deref())?;
            let start = s.text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("start"));
            done(if start { "START TRANSACTION" } else { "BEGIN" })
        }),
    )
    .never_denied(),
    Entry::session(
        "COMMIT",
        "commit",
        "ends a block and keeps what it did, once it is durable; also END; AND CHAIN",
        work!(Kind::Commit(chain) => |session| {
            let next = session.chained("COMMIT", *chain)?;
            let tag = session.commit_or_roll_back()?;
            session.chain(next)?;
            done(tag)
        }),
    )
    .never_denied()
    .even_if_failed(),
    Entry::session(
        "ROLLBACK",
        "rollback",
        "ends a block and takes back what it did; also ABORT; AND CHAIN",
        work!(Kind::Rollback(chain) => |session| {
            let next = session.chained("ROLLBACK", *chain)?;
            session.roll_back_block();
            session.chain(next)?;
            done("ROLLBACK")
        }),
    )
    .never_denied()
    .even_if_failed(),
    Entry::session(
        "SAVEPOINT",
        "savepoint a",
        "a place in a block to return to",
        work!(Kind::Savepoint(name) => |session| {
            session.savepoint(name)?;
            done("SAVEPOINT")
        }),
    )
    .never_denied(),
    Entry::session(
        "ROLLBACK TO SAVEPOINT",
        "rollback to a",
        "takes back what a block did since the savepoint",
        work!(Kind::RollbackTo(name) => |session| {
            session.rollback_to(name)?;
            done("ROLLBACK")
        }),
    )
    .never_denied()
    .even_if_failed(),
    Entry::session(
        "RELEASE SAVEPOINT",
        "release a",
        "forgets a savepoint and those after it",
        work!(Kind::Release(name) => |session| {
            session.release(name)?;
            done("RELEASE")
        }),
    )
    .never_denied(),
    Entry::session(
        "SET TRANSACTION",
        "set transaction isolation level serializable",
        "modes of the block, before its first query",
        work!(s, Kind::SetTransaction(modes) => |session| {
            session.set_transaction(modes, s.as_of.as_deref())?;
            done("SET")
        }),
    )
    .never_denied(),
    Entry::session(
        "SET CONSTRAINTS",
        "set constraints all deferred",
        "whether deferrable constraints wait for the end of the block",
        work!(Kind::SetConstraints(names, deferred) => |session| {
            session.set_constraints(names.as_deref(), *deferred)?;
            done("SET CONSTRAINTS")
        }),
    )
    .never_denied(),
    Entry::session(
        "SET SESSION CHARACTERISTICS",
        "set session characteristics as transaction read only",
        "modes of the transactions to come",
        work!(Kind::SetSessionTransaction(modes) => |session| {
            session.set_session_modes(modes)?;
            done("SET")
        }),
    )
    .never_denied(),
    Entry::session(
        "SET",
        "set application_name = 'x'",
        "a setting of the session; LOCAL: of the block",
        work!(Kind::Set(variable) => |session| {
            session.set_variable(variable)?;
            done("SET")
        }),
    )
    .never_denied(),
    Entry::session(
        "SET CLUSTER SETTING",
        "set cluster setting feature.import.enabled = true",
        "a setting of all nodes, at once and for good; also RESET CLUSTER SETTING",
        work!(Kind::SetCluster(setting) => |session| {
            session.set_cluster(setting)?;
            let word = if setting.value.is_none() { "RESET" } else { "SET" };
            done(&format!("{word} CLUSTER SETTING"))
        }),
    )
    .never_denied(),
    Entry::session(
        "DENY QUERY",
        "deny query 'select count(*) from nowhere' for '1 hour'",
        "statements fail on all nodes: by text, fingerprint or expression, by user, until a time",
        work!(Kind::DenyQuery(deny) => |session| {
            let rule = Datum::Int8(session.deny_query(deny)?.into());
            Ok(text_rows(vec![vec![rule]], "DENY QUERY").outcome)
        }),
    )
    .never_denied()
    .with_columns(|_, s| match &*s.kind {
        Kind::DenyQuery(_) => Ok(Some(vec![ColumnInfo::computed("rule_id", SqlType::Int8)])),
        _ => Ok(None),
    }),
    Entry::session(
        "ALLOW QUERY",
        "allow query all",
        "ends a rule of DENY QUERY, or all",
        work!(Kind::AllowQuery(which) => |session| {
            let gone = session.allow_query(*which)?;
            done(&format!("ALLOW QUERY {gone}"))
        }),
    )
    .never_denied(),
    Entry::session(
        "ALTER SYSTEM",
        "alter system set autovacuum = on",
        "a setting of all nodes, at once and for good: autovacuum",
        work!(Kind::AlterSystem(variable) => |session| {
            session.alter_system(variable)?;
            done("ALTER SYSTEM")
        }),
    )
    .never_denied(),
    Entry::session(
        "RESET",
        "reset application_name",
        "a setting, or all of them, as at the start of the session",
        work!(Kind::Reset(name) => |session| {
            session.reset(name.as_deref())?;
            done("RESET")
        }),
    )
    .never_denied(),
    Entry::session(
        "PREPARE",
        "prepare q as select 1",
        "plans a statement and keeps it under a name",
        work!(statement, Kind::Prepare(name, types, inner) => |session| {
            session.prepare_as(name, types, inner, &statement.text)?;
            done("PREPARE")
        }),
    ),
    Entry::session(
        "EXECUTE",
        "execute p (1)",
        "runs a prepared statement",
        work!(Kind::Execute(name, values) => |session| session.execute_named(name, values)),
    )
    .never_denied()
    .with_columns(|session, s| match &*s.kind {
        Kind::Execute(name, _) => Ok(session.named(name)?.columns.clone()),
        _ => Ok(None),
    }),
    Entry::session(
        "CREATE TABLE",
        "create table n as execute p (1)",
        "a table of the rows of a prepared statement",
        work!(Kind::CreateTableExecute(table, name, values) => |session| {
            session.create_executed(table, name, values)
        }),
    )
    .of(Feature::SchemaChange),
    Entry::session(
        "DO",
        "do 'begin null; end'",
        "runs a block of statements: IF, RAISE, PERFORM, EXECUTE, EXCEPTION; no variables",
        work!(Kind::Do(body) => |session| session.run_block(body)),
    )
    .of(Feature::Do),
    Entry::session(
        "DEALLOCATE",
        "deallocate p",
        "forgets a prepared statement, or all",
        work!(Kind::Deallocate(name) => |session| {
            session.deallocate(name.as_deref())?;
            done(if name.is_none() { "DEALLOCATE ALL" } else { "DEALLOCATE" })
        }),
    )
    .never_denied(),
    Entry::session(
        "DISCARD",
        "discard plans",
        "forgets what the session has gathered: PLANS, SEQUENCES, TEMP, ALL",
        work!(Kind::Discard(what) => |session| {
            session.discard(what)?;
            done(&format!("DISCARD {}", what.to_uppercase()))
        }),
    )
    .never_denied(),
    Entry::session(
        "CANCEL JOB",
        "cancel job 1",
        "stops long work; SHOW JOBS lists it",
        work!(Kind::CancelJob(id) => |session| {
            session.change_job(*id, JobWish::Cancel)?;
            done("CANCEL JOB")
        }),
    )
    .never_denied(),
    Entry::session(
        "IMPORT PGDUMP",
        "import pgdump 'nowhere.sql'",
        "all of a dump of PostgreSQL, in one transaction",
        work!(statement, Kind::ImportDump(d) => |session| {
            session.import_dump(d, &statement.text)
        }),
    )
    .of(Feature::ImportDump)
    .with_columns(|_, s| match &*s.kind {
        Kind::ImportDump(_) => Ok(Some(crate::import::dump_columns())),
        _ => Ok(None),
    }),
    Entry::session(
        "PAUSE JOB",
        "pause job 1",
        "lets an import wait; what it has locked stays locked",
        work!(Kind::PauseJob(id) => |session| {
            session.change_job(*id, JobWish::Pause)?;
            done("PAUSE JOB")
        }),
    )
    .never_denied(),
    Entry::session(
        "RESUME JOB",
        "resume job 1",
        "lets an import that waits go on",
        work!(Kind::ResumeJob(id) => |session| {
            session.change_job(*id, JobWish::Resume)?;
            done("RESUME JOB")
        }),
    )
    .never_denied(),
    Entry::session(
        "VACUUM",
        "vacuum t",
        "accepted: compactions do the work",
        work!(Kind::NoOp("VACUUM", tables) => |session| nothing_to_do(session, "VACUUM", tables)),
    ),
    Entry::utility(
        "LOCK TABLE",
        "lock table t in share mode",
        "keeps writers out of tables until the end of the block; readers go on in every mode",
        Effect::Reads,
        work!(Kind::LockRelations { tables, keeps_writers_out, nowait } => |_, ctx| {
            lock_tables(ctx, tables, *keeps_writers_out, *nowait)?;
            Ok(Outcome::Done("LOCK TABLE".to_string()).into())
        }),
    ),
    Entry::utility(
        "ANALYZE",
        "analyze t",
        "counts rows and values, of tables or of columns, for planners; also VACUUM (ANALYZE)",
        Effect::Reads,
        work!(Kind::Analyze(a) => |_, ctx| {
            crate::statistics::analyze(ctx, a)?;
            Ok(Outcome::Done(a.tag.to_string()).into())
        }),
    )
    .of(Feature::Analyze),
    Entry::utility(
        "ALTER TABLE SPLIT AT",
        "alter table t split at values (1), (2)",
        "in a cluster: ranges begin in front of these rows; is not rolled back",
        Effect::Writes,
        work!(Kind::SplitTable(s) => |_, ctx| {
            crate::session::split::run(ctx, s)?;
            Ok(Outcome::Done("ALTER TABLE".to_string()).into())
        }),
    )
    .of(Feature::SplitAt),
    Entry::session(
        "CHECKPOINT",
        "checkpoint",
        "accepted: commits are durable without it",
        work!(Kind::NoOp("CHECKPOINT", _) => |_| done("CHECKPOINT")),
    ),
    Entry::session(
        "REINDEX",
        "reindex table t",
        "accepted: indexes do not degrade",
        work!(Kind::NoOp("REINDEX", _) => |_| done("REINDEX")),
    ),
    Entry::session(
        "CLUSTER",
        "cluster t",
        "accepted: rows lie in the order of their primary key",
        work!(Kind::NoOp("CLUSTER", _) => |_| done("CLUSTER")),
    ),
    Entry::session(
        "FETCH",
        "fetch 1 from c",
        "rows of a cursor, onward or back: NEXT, PRIOR, FIRST, LAST, ABSOLUTE, RELATIVE, ALL",
        work!(Kind::Fetch(f) if !f.only_move => |session| session.fetch(f)),
    )
    .with_columns(|session, s| match &*s.kind {
        Kind::Fetch(f) => session.cursor_columns(&f.cursor).map(Some),
        _ => Ok(None),
    }),
    Entry::session(
        "MOVE",
        "move 1 in c",
        "as FETCH, without the rows",
        work!(Kind::Fetch(f) if f.only_move => |session| session.fetch(f)),
    ),
    Entry::session(
        "CLOSE",
        "close all",
        "forgets a cursor, or all",
        work!(Kind::CloseCursor(name) => |session| {
            session.close_cursor(name.as_deref())?;
            done(if name.is_none() { "CLOSE CURSOR ALL" } else { "CLOSE CURSOR" })
        }),
    )
    .never_denied(),
    Entry::session(
        "UNLISTEN",
        "unlisten *",
        "ends LISTEN, of a channel or of all",
        work!(Kind::Unlisten(channel) => |session| {
            session.unlisten(channel.as_deref())?;
            done("UNLISTEN")
        }),
    )
    .never_denied(),
    Entry::session(
        "LISTEN",
        "listen n",
        "has the client told what is said on a channel, from the end of the transaction on",
        work!(Kind::Listen(channel) => |session| {
            session.listen(channel)?;
            done("LISTEN")
        }),
    )
    .of(Feature::Notify),
    Entry::session(
        "NOTIFY",
        "notify n, 'text'",
        "tells all sessions that listen to a channel, when the transaction has committed",
        work!(Kind::Notify(channel, payload) => |session| {
            session.notify(channel, payload.as_deref())?;
            done("NOTIFY")
        }),
    )
    .of(Feature::Notify),
    Entry::session(
        "EMPTY STATEMENT",
        "",
        "white space and comments",
        work!(Kind::Empty => |_| Ok(Outcome::Empty)),
    )
    .never_denied()
    .even_if_failed(),
    Entry::utility(
        "SHOW",
        "show tables",
        "settings, and what lies in the database: SHOW CREATE, SHOW TABLES, SHOW JOBS, SHOW \
         RANGES, SHOW INTERLEAVE TREE, SHOW ROW DELETION POLICIES, SHOW CLUSTER SETTINGS, SHOW \
         DENIED QUERIES",
        Effect::Reads,
        work!(Kind::Show(s) => |_, ctx| Ok(text_rows(show::rows(ctx, s)?, "SHOW"))),
    )
    .never_denied()
    .with_columns(|_, s| match &*s.kind {
        Kind::Show(s) => Ok(Some(show::columns(s))),
        _ => Ok(None),
    }),
    Entry::utility(
        "EXPLAIN",
        "explain select * from t",
        "how a statement would run, and why so; FORMAT JSON, YAML, XML",
        Effect::Reads,
        work!(Kind::Explain { options, statement } if !options.analyze => |session, ctx| {
            explained(session.explain(ctx, statement, options)?, options)
        }),
    )
    .with_columns(query_plan),
    Entry::utility(
        "EXPLAIN ANALYZE",
        "explain analyze select * from t",
        "runs a statement, and says how it ran: rows, times, requests; DEBUG",
        Effect::AsExplained,
        work!(Kind::Explain { options, statement } if options.analyze => |session, ctx| {
            explained(session.explain(ctx, statement, options)?, options)
        }),
    )
    .of(Feature::ExplainAnalyze)
    .with_columns(query_plan),
];

/// LOCK TABLE. The modes that go with writing are kept by every statement anyway.
fn lock_tables(
    ctx: &Context,
    tables: &[Name],
    keeps_writers_out: bool,
    nowait: bool,
) -> SqlResult<()> {
    if ctx.block.is_none() {
        return Err(SqlError::new(
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            "LOCK TABLE can only be used in transaction blocks",
        ));
    }
    for name in tables {
        let table = match ctx.relation(name)? {
            Relation::Table(table) if table.materialized().is_none() => table,
            Relation::Partition(window) => match ctx.catalog.table(window.id) {
                Some(table) => table.clone(),
                None => continue,
            },
            Relation::View(_) => continue,
            other => {
                let kind = match other {
                    Relation::Table(_) => "materialized views",
                    Relation::Sequence(_) => "sequences",
                    _ => "indexes",
                };
                let relation = name.last().map_or("", String::as_str);
                let text = format!("cannot lock relation \"{relation}\"");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
                    .with_detail(format!("This operation is not supported for {kind}.")));
            }
        };
        if keeps_writers_out {
            ctx.lock_writers_out(&table, if nowait { Wait::NoWait } else { Wait::Block })?;
        }
    }
    Ok(())
}

fn query_plan(_: &Session, s: &braid_parser::Statement) -> SqlResult<Option<Vec<ColumnInfo>>> {
    let is_json = matches!(&*s.kind, Kind::Explain { options, .. } if is_json(options));
    let ty = if is_json { SqlType::Json } else { SqlType::Text };
    Ok(Some(vec![ColumnInfo::computed("QUERY PLAN", ty)]))
}

fn is_json(options: &ExplainOptions) -> bool {
    options.format == ExplainFormat::Json && !options.debug
}

fn explained(
    lines: Vec<String>,
    options: &ExplainOptions,
) -> SqlResult<crate::session::execute::Ran> {
    let value = |line: String| match is_json(options) {
        true => Datum::Json(line.into()),
        false => Datum::text(line),
    };
    Ok(text_rows(lines.into_iter().map(|line| vec![value(line)]).collect(), "EXPLAIN"))
}

/// Maintenance that is not needed here: only its tables must exist.
fn nothing_to_do(
    session: &Session,
    tag: &str,
    tables: &[braid_parser::Name],
) -> SqlResult<Outcome> {
    for name in tables {
        let text: Vec<String> = name.iter().map(|part| braid_types::quote_ident(part)).collect();
        let state = &**session.state();
        if braid_types::system_relation_named(&text.join(".")).is_some_and(|found| !found.is_view) {
            continue;
        }
        if braid_scalar::SessionFunctions::relation_oid(state, &text.join("."))?.is_none() {
            return Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{}\" does not exist", name.join(".")),
            ));
        }
    }
    done(tag)
}
