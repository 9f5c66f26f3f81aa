//! Which statement it is, for those that we read ourselves: sqlparser does not know them, or not
//! all of them.

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::tokenizer::Token;

use crate::Kind;
use crate::absent;
use crate::access::access;
use crate::comment::comment;
use crate::control::cluster;
use crate::control::transaction::{
    alter_system, chain, job, modes, set, show, take_transaction_word, variable,
};
use crate::copy::{copy, export, import, import_dump};
use crate::cursor::Cursor;
use crate::explain::explain;
use crate::functions::function::function;
use crate::maintenance::maintenance;
use crate::materialized::materialized;
use crate::script::parse_nested;
use crate::sequence::sequence_or_alter;
use crate::sql_cursor::sql_cursor;
use crate::table::{partition, several, storage};
use crate::user_types::attributes::attributes;
use crate::user_types::collation::collation;
use crate::user_types::domain::domain;

/// What to do without two-phase commit.
const TWO_PHASES: &str = "A transaction over a cluster is one commit.";

/// Reads a statement of ours; `None` if it is not one.
pub(crate) fn statement(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let kind = if c.take(&["begin"]) || c.take(&["start", "transaction"]) {
        take_transaction_word(c);
        Kind::Begin(modes(c)?)
    } else if c.take(&["commit"]) || c.take(&["end"]) {
        if c.take(&["prepared"]) {
            return Ok(Some(Kind::Refused("COMMIT PREPARED".into(), TWO_PHASES)));
        }
        take_transaction_word(c);
        Kind::Commit(chain(c)?)
    } else if c.take(&["rollback"]) || c.take(&["abort"]) {
        take_transaction_word(c);
        if c.take(&["to"]) {
            c.take(&["savepoint"]);
            Kind::RollbackTo(c.own_name()?)
        } else {
            Kind::Rollback(chain(c)?)
        }
    } else if c.take(&["savepoint"]) {
        Kind::Savepoint(c.own_name()?)
    } else if c.take(&["release"]) {
        c.take(&["savepoint"]);
        Kind::Release(c.own_name()?)
    } else if c.take(&["alter", "system"]) {
        alter_system(c)?
    } else if let Some(kind) = cluster::setting(c)? {
        kind
    } else if c.take(&["set"]) {
        set(c)?
    } else if c.take(&["reset"]) {
        if c.take(&["all"]) { Kind::Reset(None) } else { Kind::Reset(Some(variable(c)?)) }
    } else if c.take(&["show"]) {
        Kind::Show(show(c)?)
    } else if c.take(&["explain"]) {
        return explain(c).map(Some);
    } else if c.take(&["copy"]) {
        Kind::Copy(Box::new(copy(c)?))
    } else if c.take(&["import", "into"]) {
        Kind::Import(Box::new(import(c)?))
    } else if c.take(&["import", "pgdump"]) {
        Kind::ImportDump(Box::new(import_dump(c)?))
    } else if c.take(&["export", "into"]) {
        Kind::Export(Box::new(export(c)?))
    } else if c.looking_at(&["prepare", "transaction"]) {
        return Ok(Some(Kind::Refused("PREPARE TRANSACTION".into(), TWO_PHASES)));
    } else if c.take(&["prepare"]) {
        return prepare(c).map(Some);
    } else if c.take(&["execute"]) {
        execute(c)?
    } else if c.take(&["deallocate"]) {
        deallocate(c)?
    } else if c.take(&["discard"]) {
        Kind::Discard(c.ident()?)
    } else if c.take(&["do"]) {
        anonymous_block(c)?
    } else if c.take(&["cancel", "job"]) {
        Kind::CancelJob(job(c)?)
    } else if c.take(&["pause", "job"]) {
        Kind::PauseJob(job(c)?)
    } else if c.take(&["resume", "job"]) {
        Kind::ResumeJob(job(c)?)
    } else if let Some(kind) = of_subject(c)? {
        kind
    } else {
        return Ok(no_op(c));
    };
    c.expect_end()?;
    Ok(Some(kind))
}

fn deallocate(c: &mut Cursor) -> SqlResult<Kind> {
    c.take(&["prepare"]);
    Ok(Kind::Deallocate(if c.take(&["all"]) { None } else { Some(c.own_name()?) }))
}

/// Statements that have files of their own.
fn of_subject(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let subjects = [
        cluster::denied,
        access,
        comment,
        maintenance,
        materialized,
        sql_cursor,
        domain,
        collation,
        function,
        attributes,
        partition::change,
        storage::change,
        absent::statement,
        several::statement,
        sequence_or_alter,
        channel,
    ];
    for read in subjects {
        if let Some(kind) = read(c)? {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

/// LISTEN, NOTIFY, UNLISTEN.
fn channel(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    Ok(Some(if c.take(&["listen"]) {
        Kind::Listen(c.own_name()?)
    } else if c.take(&["unlisten"]) {
        Kind::Unlisten(if c.take_token(&Token::Mul) { None } else { Some(c.own_name()?) })
    } else if c.take(&["notify"]) {
        let channel = c.own_name()?;
        let payload = if c.take_token(&Token::Comma) { Some(c.string()?) } else { None };
        Kind::Notify(channel, payload)
    } else {
        return Ok(None);
    }))
}

fn no_op(c: &Cursor) -> Option<Kind> {
    for (word, tag) in
        [("checkpoint", "CHECKPOINT"), ("reindex", "REINDEX"), ("cluster", "CLUSTER")]
    {
        if c.is_word(0, word) {
            return Some(Kind::NoOp(tag, vec![]));
        }
    }
    None
}

/// DO: its body is read when it runs.
fn anonymous_block(c: &mut Cursor) -> SqlResult<Kind> {
    let mut language = None;
    let mut body = None;
    while !c.done() {
        if language.is_none() && c.take(&["language"]) {
            language = Some(c.ident()?);
        } else if body.is_none() {
            body = Some(c.text()?);
        } else {
            return Err(c.unexpected());
        }
    }
    let body = body.ok_or_else(|| SqlError::syntax("no inline code specified"))?;
    match language.as_deref() {
        None | Some("plpgsql") => Ok(Kind::Do(body)),
        Some("sql") => Err(SqlError::unsupported("language \"sql\" for inline code")),
        Some(other) => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("language \"{other}\" does not exist"),
        )),
    }
}

fn prepare(c: &mut Cursor) -> SqlResult<Kind> {
    let name = c.own_name()?;
    let mut types = Vec::new();
    if c.take_token(&Token::LParen) {
        loop {
            types.push(c.with_parser(|p| p.parse_data_type())?);
            if !c.take_token(&Token::Comma) {
                break;
            }
        }
        c.expect_token(&Token::RParen)?;
    }
    c.expect(&["as"])?;
    if c.done() {
        return Err(c.unexpected());
    }
    Ok(Kind::Prepare(name, types, parse_nested(c.rest())?))
}

fn execute(c: &mut Cursor) -> SqlResult<Kind> {
    let name = c.own_name()?;
    let mut args = Vec::new();
    if c.take_token(&Token::LParen) {
        loop {
            args.push(c.expr()?);
            if !c.take_token(&Token::Comma) {
                break;
            }
        }
        c.expect_token(&Token::RParen)?;
    }
    Ok(Kind::Execute(name, args))
}
