//! Statements that we read ourselves, because sqlparser does not know them or not all of them.

use crate::IsolationLevel;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::tokenizer::Token;

use crate::cursor::{Cursor, closing};
use crate::script::parse_nested;
use crate::{
    AlterOwn, Copy, CopyFormat, CopyOptions, Import, Kind, SequenceChange, SetVar, Show, TxnModes,
    create,
};

/// Reads a statement of ours; `None` if it is not one.
pub(crate) fn statement(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let kind = if c.take(&["begin"]) || c.take(&["start", "transaction"]) {
        take_transaction_word(c);
        Kind::Begin(modes(c)?)
    } else if c.take(&["commit"]) || c.take(&["end"]) {
        if c.take(&["prepared"]) {
            return Ok(Some(Kind::Refused("COMMIT PREPARED".into())));
        }
        take_transaction_word(c);
        Kind::Commit(chain(c)?)
    } else if c.take(&["rollback"]) || c.take(&["abort"]) {
        take_transaction_word(c);
        if c.take(&["to"]) {
            c.take(&["savepoint"]);
            Kind::RollbackTo(c.ident()?)
        } else {
            Kind::Rollback(chain(c)?)
        }
    } else if c.take(&["savepoint"]) {
        Kind::Savepoint(c.ident()?)
    } else if c.take(&["release"]) {
        c.take(&["savepoint"]);
        Kind::Release(c.ident()?)
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
    } else if c.looking_at(&["prepare", "transaction"]) {
        return Ok(Some(Kind::Refused("PREPARE TRANSACTION".into())));
    } else if c.take(&["prepare"]) {
        return prepare(c).map(Some);
    } else if c.take(&["execute"]) {
        execute(c)?
    } else if c.take(&["deallocate"]) {
        c.take(&["prepare"]);
        if c.take(&["all"]) { Kind::Deallocate(None) } else { Kind::Deallocate(Some(c.ident()?)) }
    } else if c.take(&["discard"]) {
        Kind::Discard(c.ident()?)
    } else if c.take(&["cancel", "job"]) {
        Kind::CancelJob(job(c)?)
    } else if let Some(kind) = sequence_or_alter(c)? {
        kind
    } else {
        return Ok(no_op(c));
    };
    c.expect_end()?;
    Ok(Some(kind))
}

/// The tables of VACUUM and ANALYZE: options, then names with optional columns.
fn named_tables(c: &Cursor) -> Vec<crate::Name> {
    let mut c = c.clone();
    c.next();
    let skip_list = |c: &mut Cursor| {
        if c.peek() == Some(&Token::LParen) {
            while c.next().is_some_and(|t| t != Token::RParen) {}
        }
    };
    skip_list(&mut c);
    while ["full", "freeze", "verbose", "analyze", "analyse"].iter().any(|w| c.take(&[w])) {}
    let mut names: Vec<crate::Name> = Vec::new();
    while let Ok(name) = c.name() {
        names.push(name);
        skip_list(&mut c);
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    names
}

fn no_op(c: &Cursor) -> Option<Kind> {
    let refused =
        ["declare", "fetch", "close", "listen", "unlisten", "notify", "do", "lock", "merge"];
    for (word, tag) in [
        ("vacuum", "VACUUM"),
        ("analyze", "ANALYZE"),
        ("analyse", "ANALYZE"),
        ("checkpoint", "CHECKPOINT"),
        ("reindex", "REINDEX"),
        ("cluster", "CLUSTER"),
    ] {
        if c.is_word(0, word) {
            let tables = if tag == "VACUUM" || tag == "ANALYZE" { named_tables(c) } else { vec![] };
            return Some(Kind::NoOp(tag, tables));
        }
    }
    refused.iter().find(|w| c.is_word(0, w)).map(|w| Kind::Refused(w.to_uppercase()))
}

fn take_transaction_word(c: &mut Cursor) {
    if !c.take(&["transaction"]) {
        c.take(&["work"]);
    }
}

fn chain(c: &mut Cursor) -> SqlResult<bool> {
    if c.take(&["and", "no", "chain"]) {
        return Ok(false);
    }
    Ok(c.take(&["and", "chain"]))
}

fn modes(c: &mut Cursor) -> SqlResult<TxnModes> {
    let mut m = TxnModes::default();
    while !c.done() {
        if c.take(&["isolation", "level"]) {
            m.isolation = Some(isolation(c)?);
        } else if c.take(&["read", "only"]) {
            m.read_only = Some(true);
        } else if c.take(&["read", "write"]) {
            m.read_only = Some(false);
        } else if !(c.take(&["not", "deferrable"])
            || c.take(&["deferrable"])
            || c.take_token(&Token::Comma))
        {
            return Err(c.unexpected());
        }
    }
    Ok(m)
}

fn isolation(c: &mut Cursor) -> SqlResult<IsolationLevel> {
    if c.take(&["serializable"]) {
        Ok(IsolationLevel::Serializable)
    } else if c.take(&["repeatable", "read"]) {
        Ok(IsolationLevel::RepeatableRead)
    } else if c.take(&["read", "committed"]) || c.take(&["read", "uncommitted"]) {
        Ok(IsolationLevel::ReadCommitted)
    } else {
        Err(c.unexpected())
    }
}

fn variable(c: &mut Cursor) -> SqlResult<String> {
    if c.take(&["time", "zone"]) {
        return Ok("timezone".into());
    }
    if c.take(&["transaction", "isolation", "level"]) {
        return Ok("transaction_isolation".into());
    }
    if c.take(&["session", "authorization"]) {
        return Ok("session_authorization".into());
    }
    Ok(c.name()?.join(".").to_lowercase())
}

fn set(c: &mut Cursor) -> SqlResult<Kind> {
    if c.take(&["session", "characteristics", "as", "transaction"]) {
        return Ok(Kind::SetSessionTransaction(modes(c)?));
    }
    if c.take(&["transaction"]) {
        if c.take(&["snapshot"]) {
            return Err(SqlError::unsupported("SET TRANSACTION SNAPSHOT"));
        }
        return Ok(Kind::SetTransaction(modes(c)?));
    }
    let local = c.take(&["local"]);
    if !local && !c.looking_at(&["session", "authorization"]) {
        c.take(&["session"]);
    }
    if c.take(&["constraints"]) {
        while c.next().is_some() {}
        return Ok(Kind::NoOp("SET CONSTRAINTS", Vec::new()));
    }
    if c.take(&["time", "zone"]) {
        let values = set_values(c)?;
        let values = values.filter(|v| v != &["local"]);
        return Ok(Kind::Set(SetVar { local, name: "timezone".into(), values }));
    }
    if c.take(&["names"]) {
        let values = set_values(c)?;
        return Ok(Kind::Set(SetVar { local, name: "client_encoding".into(), values }));
    }
    if c.take(&["schema"]) {
        let values = Some(vec![c.string()?]);
        return Ok(Kind::Set(SetVar { local, name: "search_path".into(), values }));
    }
    if c.take(&["role"]) || c.looking_at(&["session", "authorization"]) {
        return Ok(Kind::Refused("SET ROLE".into()));
    }
    let name = c.name()?.join(".").to_lowercase();
    if !c.take(&["to"]) {
        c.expect_token(&Token::Eq)?;
    }
    let values = set_values(c)?;
    Ok(Kind::Set(SetVar { local, name, values }))
}

fn set_values(c: &mut Cursor) -> SqlResult<Option<Vec<String>>> {
    if c.take(&["default"]) {
        return Ok(None);
    }
    let mut out = Vec::new();
    loop {
        let minus = c.take_token(&Token::Minus);
        let text = match c.next() {
            Some(Token::Word(w)) => crate::cursor::fold(&w),
            Some(Token::Number(n, _)) => n,
            Some(Token::SingleQuotedString(s) | Token::EscapedStringLiteral(s)) => s,
            _ => return Err(c.unexpected()),
        };
        out.push(if minus { format!("-{text}") } else { text });
        if !c.take_token(&Token::Comma) {
            return Ok(Some(out));
        }
    }
}

fn job(c: &mut Cursor) -> SqlResult<u32> {
    match c.next() {
        Some(Token::Number(text, _)) => text.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| SqlError::syntax("CANCEL JOB wants the id of a job, as SHOW JOBS lists it"))
}

fn show(c: &mut Cursor) -> SqlResult<Show> {
    let from = |c: &mut Cursor| c.take(&["from"]) || c.take(&["in"]);
    Ok(if c.take(&["all"]) {
        Show::All
    } else if c.take(&["tables"]) {
        Show::Tables(if from(c) { Some(c.ident()?) } else { None })
    } else if c.take(&["databases"]) {
        Show::Databases
    } else if c.take(&["schemas"]) {
        Show::Schemas
    } else if c.take(&["sequences"]) {
        Show::Sequences
    } else if c.take(&["views"]) {
        Show::Views
    } else if c.take(&["jobs"]) {
        Show::Jobs
    } else if c.take(&["columns"]) {
        c.expect(&["from"])?;
        Show::Columns(c.name()?)
    } else if c.take(&["index"]) || c.take(&["indexes"]) || c.take(&["indices"]) {
        c.expect(&["from"])?;
        Show::Indexes(c.name()?)
    } else if c.take(&["constraints"]) {
        c.expect(&["from"])?;
        Show::Constraints(c.name()?)
    } else if c.take(&["create"]) {
        let _ = c.take(&["table"]) || c.take(&["view"]) || c.take(&["sequence"]);
        Show::Create(c.name()?)
    } else {
        Show::Variable(variable(c)?)
    })
}

fn explain(c: &mut Cursor) -> SqlResult<Kind> {
    let mut analyze = false;
    if c.peek() == Some(&Token::LParen) {
        c.next();
        loop {
            let name = c.ident()?;
            let value = match c.peek() {
                Some(Token::Comma | Token::RParen) => None,
                _ => c.next().map(|t| t.to_string().to_lowercase()),
            };
            if name.starts_with("analy") {
                analyze = !matches!(value.as_deref(), Some("false" | "off" | "0"));
            }
            if !c.take_token(&Token::Comma) {
                break;
            }
        }
        c.expect_token(&Token::RParen)?;
    }
    loop {
        if c.take(&["analyze"]) || c.take(&["analyse"]) {
            analyze = true;
        } else if !c.take(&["verbose"]) {
            break;
        }
    }
    if c.done() {
        return Err(c.unexpected());
    }
    Ok(Kind::Explain { analyze, statement: parse_nested(c.rest())? })
}

fn prepare(c: &mut Cursor) -> SqlResult<Kind> {
    let name = c.ident()?;
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
    let name = c.ident()?;
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

fn copy(c: &mut Cursor) -> SqlResult<Copy> {
    let mut out = Copy {
        table: None,
        columns: Vec::new(),
        query: None,
        to: false,
        file: None,
        options: CopyOptions::default(),
    };
    if c.peek() == Some(&Token::LParen) {
        let tokens = c.rest();
        let end = closing(&tokens, 0).ok_or_else(|| c.unexpected())?;
        let inner = tokens[1..end].to_vec();
        out.query = Some(crate::script::parse_all(inner, |p| p.parse_query())?);
        for _ in 0..=end {
            c.next();
        }
    } else {
        out.table = Some(c.name()?);
        if c.peek() == Some(&Token::LParen) {
            out.columns = c.ident_list()?;
        }
    }
    out.to = if c.take(&["to"]) {
        true
    } else {
        c.expect(&["from"])?;
        false
    };
    if c.take(&["stdin"]) || c.take(&["stdout"]) {
    } else if c.take(&["program"]) {
        return Err(SqlError::unsupported("COPY .. PROGRAM"));
    } else {
        out.file = Some(c.string()?);
    }
    c.take(&["with"]);
    if c.take_token(&Token::LParen) {
        loop {
            copy_option(c, &mut out.options)?;
            if !c.take_token(&Token::Comma) {
                break;
            }
        }
        c.expect_token(&Token::RParen)?;
    } else {
        while !c.done() {
            copy_legacy_option(c, &mut out.options)?;
        }
    }
    check_copy(&out.options)?;
    Ok(out)
}

fn one_char(c: &mut Cursor, what: &str) -> SqlResult<char> {
    let s = c.string()?;
    let mut chars = s.chars();
    match (chars.next(), chars.next()) {
        (Some(ch), None) if ch.is_ascii() => Ok(ch),
        _ => {
            Err(SqlError::unsupported(format!("COPY {what} that is not one single-byte character")))
        }
    }
}

fn copy_option(c: &mut Cursor, o: &mut CopyOptions) -> SqlResult<()> {
    let name = c.ident()?;
    match name.as_str() {
        "format" => {
            let format = match c.peek() {
                Some(Token::SingleQuotedString(_)) => c.string()?,
                _ => c.ident()?,
            };
            o.format = match format.as_str() {
                "text" => CopyFormat::Text,
                "csv" => CopyFormat::Csv,
                "binary" => CopyFormat::Binary,
                other => {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("COPY format \"{other}\" not recognized"),
                    ));
                }
            };
        }
        "delimiter" => o.delimiter = Some(one_char(c, "delimiter")?),
        "null" => o.null = Some(c.string()?),
        "quote" => o.quote = Some(one_char(c, "quote")?),
        "escape" => o.escape = Some(one_char(c, "escape")?),
        "header" => {
            o.header = match c.peek() {
                Some(Token::Comma | Token::RParen) => true,
                _ => {
                    let v = c.next().map(|t| t.to_string().to_lowercase()).unwrap_or_default();
                    let v = v.trim_matches('\'');
                    o.header_match = v == "match";
                    !matches!(v, "false" | "off" | "0")
                }
            };
        }
        "encoding" => {
            let e = c.string()?;
            if !matches!(e.to_lowercase().replace('-', "").as_str(), "utf8" | "unicode") {
                return Err(SqlError::unsupported(format!("COPY encoding {e}")));
            }
        }
        // FREEZE is about PostgreSQL's own storage: nothing to do.
        "freeze" => {
            if !matches!(c.peek(), Some(Token::Comma | Token::RParen)) {
                c.next();
            }
        }
        "force_quote" => {
            o.force_quote =
                Some(if c.take_token(&Token::Mul) { Vec::new() } else { c.ident_list()? });
        }
        other => {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("option \"{other}\" not recognized"),
            ));
        }
    }
    Ok(())
}

fn copy_legacy_option(c: &mut Cursor, o: &mut CopyOptions) -> SqlResult<()> {
    if c.take(&["csv"]) {
        o.format = CopyFormat::Csv;
    } else if c.take(&["binary"]) {
        o.format = CopyFormat::Binary;
    } else if c.take(&["header"]) {
        o.header = true;
    } else if c.take(&["delimiter"]) || c.take(&["delimiters"]) {
        c.take(&["as"]);
        o.delimiter = Some(one_char(c, "delimiter")?);
    } else if c.take(&["null"]) {
        c.take(&["as"]);
        o.null = Some(c.string()?);
    } else if c.take(&["quote"]) {
        c.take(&["as"]);
        o.quote = Some(one_char(c, "quote")?);
    } else if c.take(&["escape"]) {
        c.take(&["as"]);
        o.escape = Some(one_char(c, "escape")?);
    } else if c.looking_at(&["where"]) {
        return Err(SqlError::unsupported("COPY .. WHERE"));
    } else {
        return Err(c.unexpected());
    }
    Ok(())
}

fn check_copy(o: &CopyOptions) -> SqlResult<()> {
    let refuse = |m: &str| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, m.to_string()));
    if o.format != CopyFormat::Csv {
        if o.quote.is_some() || o.escape.is_some() || o.force_quote.is_some() {
            return refuse("COPY quote, escape and force quote are available only in CSV mode");
        }
        if o.format == CopyFormat::Binary && (o.delimiter.is_some() || o.null.is_some() || o.header)
        {
            return refuse("COPY options cannot be given in BINARY mode");
        }
    }
    if o.delimiter.is_some_and(|d| d == '\n' || d == '\r' || d == '\\') {
        return refuse("COPY delimiter cannot be newline, carriage return or backslash");
    }
    Ok(())
}

fn import(c: &mut Cursor) -> SqlResult<Import> {
    let table = c.name()?;
    let columns = if c.peek() == Some(&Token::LParen) { c.ident_list()? } else { Vec::new() };
    c.expect(&["csv", "data"])?;
    c.expect_token(&Token::LParen)?;
    let mut files = Vec::new();
    loop {
        files.push(c.string()?);
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    c.expect_token(&Token::RParen)?;
    let mut options = Vec::new();
    if c.take(&["with"]) {
        let parens = c.take_token(&Token::LParen);
        loop {
            let name = c.ident()?;
            let value = if c.take_token(&Token::Eq) {
                Some(match c.next() {
                    Some(Token::SingleQuotedString(s) | Token::EscapedStringLiteral(s)) => s,
                    Some(Token::Number(n, _)) => n,
                    Some(Token::Word(w)) => w.value,
                    _ => return Err(c.unexpected()),
                })
            } else {
                None
            };
            options.push((name, value));
            if !c.take_token(&Token::Comma) {
                break;
            }
        }
        if parens {
            c.expect_token(&Token::RParen)?;
        }
    }
    Ok(Import { table, columns, files, options })
}

fn sequence_or_alter(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    if c.take(&["create", "sequence"]) || c.take(&["create", "temp", "sequence"]) {
        let if_not_exists = c.take(&["if", "not", "exists"]);
        let name = c.name()?;
        return Ok(Some(Kind::CreateSequence(name, if_not_exists, sequence_options(c)?)));
    }
    if c.take(&["alter", "sequence"]) {
        let if_exists = c.take(&["if", "exists"]);
        let name = c.name()?;
        return Ok(Some(Kind::AlterSequence(name, if_exists, sequence_options(c)?)));
    }
    if c.take(&["create", "database"]) {
        let if_not_exists = c.take(&["if", "not", "exists"]);
        let name = c.ident()?;
        // OWNER, ENCODING, TEMPLATE and friends: one encoding, one owner, nothing to choose.
        while c.next().is_some() {}
        return Ok(Some(Kind::CreateDatabase(name, if_not_exists)));
    }
    if c.looking_at(&["alter", "table"]) {
        let mut probe = c.clone();
        probe.take(&["alter", "table"]);
        let if_exists = probe.take(&["if", "exists"]);
        probe.take(&["only"]);
        let Ok(name) = probe.name() else { return Ok(None) };
        let own = if probe.take(&["set", "on", "delete"]) {
            AlterOwn::SetOnDelete(create::delete_action(&mut probe)?)
        } else if probe.looking_at(&["set", "interleave"]) {
            probe.next();
            AlterOwn::SetInterleave(create::interleave(&mut probe)?)
        } else if probe.take(&["set", "schema"]) {
            AlterOwn::SetSchema(probe.ident()?)
        } else {
            return Ok(None);
        };
        *c = probe;
        return Ok(Some(Kind::AlterTableOwn(name, if_exists, own)));
    }
    Ok(None)
}

fn sequence_options(c: &mut Cursor) -> SqlResult<SequenceChange> {
    let mut s = SequenceChange::default();
    while !c.done() {
        if c.take(&["as"]) {
            s.ty = Some(c.with_parser(|p| p.parse_data_type())?);
        } else if c.take(&["increment"]) {
            c.take(&["by"]);
            s.increment = Some(c.integer()?);
        } else if c.take(&["no", "minvalue"]) {
            s.min = Some(None);
        } else if c.take(&["minvalue"]) {
            s.min = Some(Some(c.integer()?));
        } else if c.take(&["no", "maxvalue"]) {
            s.max = Some(None);
        } else if c.take(&["maxvalue"]) {
            s.max = Some(Some(c.integer()?));
        } else if c.take(&["start"]) {
            c.take(&["with"]);
            s.start = Some(c.integer()?);
        } else if c.take(&["restart"]) {
            let explicit = c.take(&["with"]) || matches!(c.peek(), Some(Token::Number(..)));
            s.restart = Some(if explicit { Some(c.integer()?) } else { None });
        } else if c.take(&["cache"]) {
            s.cache = Some(c.integer()?);
        } else if c.take(&["no", "cycle"]) {
            s.cycle = Some(false);
        } else if c.take(&["cycle"]) {
            s.cycle = Some(true);
        } else if c.take(&["owned", "by", "none"]) {
            s.owned_by = Some(None);
        } else if c.take(&["owned", "by"]) {
            s.owned_by = Some(Some(c.name()?));
        } else if c.take(&["rename", "to"]) {
            s.rename = Some(c.ident()?);
        } else if c.take(&["owner", "to"]) {
            c.ident()?;
        } else {
            return Err(c.unexpected());
        }
    }
    Ok(s)
}
