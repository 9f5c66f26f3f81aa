//! Transaction control and settings: BEGIN to ROLLBACK, SET, SHOW.

use braid_types::{SqlError, SqlResult};
use sqlparser::tokenizer::Token;

use crate::cursor::Cursor;
use crate::sequence::rows_of_values;
use crate::{IsolationLevel, Kind, SetVar, Show, TxnModes};

pub(crate) fn take_transaction_word(c: &mut Cursor) {
    if !c.take(&["transaction"]) {
        c.take(&["work"]);
    }
}

pub(crate) fn chain(c: &mut Cursor) -> SqlResult<bool> {
    if c.take(&["and", "no", "chain"]) {
        return Ok(false);
    }
    Ok(c.take(&["and", "chain"]))
}

pub(crate) fn modes(c: &mut Cursor) -> SqlResult<TxnModes> {
    let mut m = TxnModes::default();
    while !c.done() {
        if c.take(&["isolation", "level"]) {
            m.isolation = Some(isolation(c)?);
        } else if c.take(&["read", "only"]) {
            m.read_only = Some(true);
        } else if c.take(&["read", "write"]) {
            m.read_only = Some(false);
        } else if c.take(&["not", "deferrable"]) {
            m.deferrable = Some(false);
        } else if c.take(&["deferrable"]) {
            m.deferrable = Some(true);
        } else if !c.take_token(&Token::Comma) {
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
    } else if c.take(&["read", "committed"]) {
        Ok(IsolationLevel::ReadCommitted)
    } else if c.take(&["read", "uncommitted"]) {
        Ok(IsolationLevel::ReadUncommitted)
    } else {
        Err(c.unexpected())
    }
}

pub(crate) fn variable(c: &mut Cursor) -> SqlResult<String> {
    if c.take(&["time", "zone"]) {
        return Ok("timezone".into());
    }
    if c.take(&["transaction", "isolation", "level"]) {
        return Ok("transaction_isolation".into());
    }
    if c.take(&["session", "authorization"]) {
        return Ok("session_authorization".into());
    }
    Ok(c.any_name()?.join(".").to_lowercase())
}

/// What follows ALTER SYSTEM.
pub(crate) fn alter_system(c: &mut Cursor) -> SqlResult<Kind> {
    if c.take(&["reset"]) {
        return Ok(Kind::AlterSystem(SetVar { local: false, name: variable(c)?, values: None }));
    }
    c.expect(&["set"])?;
    match set(c)? {
        Kind::Set(variable) if !variable.local => Ok(Kind::AlterSystem(variable)),
        _ => Err(c.unexpected()),
    }
}

pub(crate) fn set(c: &mut Cursor) -> SqlResult<Kind> {
    if c.take(&["session", "characteristics", "as", "transaction"]) {
        return Ok(Kind::SetSessionTransaction(modes(c)?));
    }
    if c.take(&["transaction"]) {
        return Ok(Kind::SetTransaction(modes(c)?));
    }
    let local = c.take(&["local"]);
    if !local && !c.looking_at(&["session", "authorization"]) {
        c.take(&["session"]);
    }
    if c.take(&["constraints"]) {
        return set_constraints(c);
    }
    if c.take(&["time", "zone"]) {
        let values = match c.take(&["interval"]) {
            true => Some(vec![zone_interval(c)?]),
            false => set_values(c)?.filter(|v| v != &["local"]),
        };
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
    let role = c.looking_at(&["role"]) && !c.is_word(1, "to");
    if role || c.take(&["session", "authorization"]) {
        c.take(&["role"]);
        let name = if role { "role" } else { "session_authorization" };
        let values = set_values(c)?;
        return Ok(Kind::Set(SetVar { local, name: name.into(), values }));
    }
    let name = c.any_name()?.join(".").to_lowercase();
    if !c.take(&["to"]) {
        c.expect_token(&Token::Eq)?;
    }
    let values = set_values(c)?;
    Ok(Kind::Set(SetVar { local, name, values }))
}

/// `INTERVAL '-08:00' HOUR TO MINUTE`: hours east of UTC, as the setting takes them.
fn zone_interval(c: &mut Cursor) -> SqlResult<String> {
    let text = c.string()?;
    if !c.take(&["hour"]) {
        return Ok(format!("INTERVAL '{text}'"));
    }
    let _ = c.take(&["to", "minute"]);
    let only_hours = text.trim().parse::<f64>().is_ok();
    Ok(if only_hours { format!("INTERVAL '{text} hours'") } else { format!("INTERVAL '{text}'") })
}

/// What follows SET CONSTRAINTS.
fn set_constraints(c: &mut Cursor) -> SqlResult<Kind> {
    let names = match c.take(&["all"]) {
        true => None,
        false => {
            let mut names = vec![c.name()?];
            while c.take_token(&Token::Comma) {
                names.push(c.name()?);
            }
            Some(names)
        }
    };
    let deferred = c.take(&["deferred"]);
    if !deferred {
        c.expect(&["immediate"])?;
    }
    Ok(Kind::SetConstraints(names, deferred))
}

pub(super) fn set_values(c: &mut Cursor) -> SqlResult<Option<Vec<String>>> {
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

pub(crate) fn job(c: &mut Cursor) -> SqlResult<u32> {
    match c.next() {
        Some(Token::Number(text, _)) => text.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| SqlError::syntax("the id of a job is expected, as SHOW JOBS lists it"))
}

pub(crate) fn show(c: &mut Cursor) -> SqlResult<Show> {
    let from = |c: &mut Cursor| c.take(&["from"]) || c.take(&["in"]);
    if let Some(of_cluster) = super::cluster::show(c)? {
        return Ok(of_cluster);
    }
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
    } else if c.take(&["ranges"]) {
        let of_table = from(c);
        let _ = of_table && c.take(&["table"]);
        Show::Ranges(if of_table { Some(c.name()?) } else { None })
    } else if c.take(&["range"]) {
        c.expect(&["from", "table"])?;
        let table = c.name()?;
        c.expect(&["for", "row"])?;
        let mut rows = rows_of_values(c)?;
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Show::RangeOfRow(table, row),
            _ => return Err(SqlError::syntax("SHOW RANGE .. FOR ROW is about one row")),
        }
    } else if c.take(&["row", "deletion", "policies"]) {
        Show::Policies
    } else if c.take(&["interleave", "tree"]) {
        Show::InterleaveTree(if from(c) { Some(c.name()?) } else { None })
    } else if c.take(&["interleave", "proposals"]) {
        Show::InterleaveProposals(if from(c) { Some(c.name()?) } else { None })
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
