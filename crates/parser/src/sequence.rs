//! Sequences, databases, and what ALTER TABLE and ALTER TYPE have that sqlparser does not know.

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use crate::cursor::Cursor;
use crate::spellings::commit_times;
use crate::table::create;
use crate::{AlterOwn, Kind, SequenceChange, SplitTable};

/// Takes CREATE .. SEQUENCE; whether it is temporary. One that is unlogged is kept like any other.
fn create_sequence(c: &mut Cursor) -> Option<bool> {
    let mut probe = c.clone();
    let mut begun = probe.take(&["create"]);
    let scoped = probe.take(&["local"]) || probe.take(&["global"]);
    let temporary = probe.take(&["temp"]) || probe.take(&["temporary"]);
    begun &= temporary || !scoped;
    if !scoped && !temporary {
        probe.take(&["unlogged"]);
    }
    let is_it = begun && probe.take(&["sequence"]);
    if is_it {
        *c = probe;
    }
    is_it.then_some(temporary)
}

pub(crate) fn sequence_or_alter(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    if let Some(temporary) = create_sequence(c) {
        let if_not_exists = c.take(&["if", "not", "exists"]);
        let name = c.name()?;
        let change = sequence_options(c)?;
        return Ok(Some(Kind::CreateSequence { name, if_not_exists, temporary, change }));
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
    if c.looking_at(&["alter", "type"]) || c.looking_at(&["alter", "domain"]) {
        return alter_type(c);
    }
    if c.looking_at(&["alter", "index"]) {
        return alter_index(c);
    }
    if c.looking_at(&["alter", "table"]) {
        let mut probe = c.clone();
        probe.take(&["alter", "table"]);
        let if_exists = probe.take(&["if", "exists"]);
        probe.take(&["only"]);
        let Ok(name) = probe.name() else { return Ok(None) };
        if probe.take(&["split", "at"]) {
            probe.expect(&["values"])?;
            let borders = rows_of_values(&mut probe)?;
            *c = probe;
            return Ok(Some(Kind::SplitTable(SplitTable { table: name, if_exists, borders })));
        }
        let own = if probe.take(&["set", "on", "delete"]) {
            AlterOwn::SetOnDelete(create::delete_action(&mut probe)?)
        } else if probe.looking_at(&["set", "interleave"]) {
            probe.next();
            AlterOwn::SetInterleave(create::interleave(&mut probe)?)
        } else if let Some(own) = row_deletion(&mut probe) {
            own?
        } else if probe.take(&["drop", "interleave"]) {
            AlterOwn::DropInterleave
        } else if probe.take(&["alter", "primary", "key", "using", "columns"]) {
            let columns = directed(&mut probe)?;
            let clause = match probe.looking_at(&["interleave"]) {
                true => Some(create::interleave(&mut probe)?),
                false => None,
            };
            AlterOwn::PrimaryKey(columns, clause)
        } else if probe.take(&["set", "schema"]) {
            AlterOwn::SetSchema(probe.own_name()?)
        } else if probe.take(&["alter", "constraint"]) {
            altered_constraint(&mut probe)?
        } else if let Some(own) = column_option(&mut probe) {
            own?
        } else {
            return Ok(None);
        };
        *c = probe;
        return Ok(Some(Kind::AlterTableOwn(name, if_exists, own)));
    }
    Ok(None)
}

/// `(a, b), (c)`.
pub(crate) fn rows_of_values(c: &mut Cursor) -> SqlResult<Vec<Vec<ast::Expr>>> {
    let mut rows = Vec::new();
    loop {
        c.expect_token(&Token::LParen)?;
        let mut row = vec![c.expr()?];
        while c.take_token(&Token::Comma) {
            row.push(c.expr()?);
        }
        c.expect_token(&Token::RParen)?;
        rows.push(row);
        if !c.take_token(&Token::Comma) {
            return Ok(rows);
        }
    }
}

/// ALTER INDEX in a form that is read here.
fn alter_index(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    for read in [renamed_index, stored_column] {
        let mut probe = c.clone();
        if let Some(change) = read(&mut probe)? {
            *c = probe;
            return Ok(Some(change));
        }
    }
    Ok(None)
}

/// `ALTER INDEX [IF EXISTS] i RENAME TO j`; `None` if it is another change.
fn renamed_index(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    c.take(&["alter", "index"]);
    let if_exists = c.take(&["if", "exists"]);
    let Ok(index) = c.name() else { return Ok(None) };
    if !c.take(&["rename", "to"]) {
        return Ok(None);
    }
    Ok(Some(Kind::RenameIndex { index, if_exists, new: c.own_name()? }))
}

/// `ALTER INDEX i ADD | DROP STORED COLUMN c`, also `INCLUDE [COLUMN] c`; `None` if it is another
/// change.
fn stored_column(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    c.take(&["alter", "index"]);
    let Ok(index) = c.name() else { return Ok(None) };
    let add = match (c.take(&["add"]), c.take(&["drop"])) {
        (false, false) => return Ok(None),
        (add, _) => add,
    };
    if c.take(&["include"]) {
        c.take(&["column"]);
    } else if !c.take(&["stored", "column"]) {
        return Ok(None);
    }
    Ok(Some(Kind::StoredColumn { index, column: c.own_name()?, add }))
}

/// `ADD | REPLACE | ALTER | DROP ROW DELETION POLICY`, `ADD | ALTER | DROP TTL`; `None` if it is
/// another change: `ADD ttl interval` is a column.
fn row_deletion(c: &mut Cursor) -> Option<SqlResult<AlterOwn>> {
    if c.take(&["drop", "row", "deletion", "policy"]) || c.take(&["drop", "ttl"]) {
        return Some(Ok(AlterOwn::SetTtl(None)));
    }
    let verb = ["add", "alter", "replace"].iter().any(|verb| c.is_word(0, verb));
    let policy = c.is_word(1, "row") && c.is_word(2, "deletion");
    let ttl = c.is_word(1, "ttl")
        && c.is_word(2, "interval")
        && matches!(c.peek_at(3), Some(Token::SingleQuotedString(_)));
    if !verb || !(policy || ttl) {
        return None;
    }
    c.next();
    Some(create::ttl(c).map(|clause| AlterOwn::SetTtl(Some(clause))))
}

/// `(a, b DESC)`.
fn directed(c: &mut Cursor) -> SqlResult<Vec<(String, bool)>> {
    c.expect_token(&Token::LParen)?;
    let mut out = Vec::new();
    loop {
        let name = c.ident()?;
        let desc = c.take(&["desc"]);
        if !desc {
            c.take(&["asc"]);
        }
        out.push((name, desc));
        if !c.take_token(&Token::Comma) {
            c.expect_token(&Token::RParen)?;
            return Ok(out);
        }
    }
}

/// Where a type lies; `None` for what sqlparser knows.
fn alter_type(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let mut probe = c.clone();
    let _ = probe.take(&["alter", "type"]) || probe.take(&["alter", "domain"]);
    let Ok(name) = probe.name() else { return Ok(None) };
    if !probe.take(&["set", "schema"]) {
        return Ok(None);
    }
    let schema = probe.ident()?;
    *c = probe;
    Ok(Some(Kind::AlterTypeSchema(name, schema)))
}

/// `ALTER [COLUMN] c SET STATISTICS n`, `SET OPTIONS (allow_commit_timestamp = ..)` and what means
/// the same; `None` if it is another change of a column.
fn column_option(c: &mut Cursor) -> Option<SqlResult<AlterOwn>> {
    if !c.take(&["alter"]) {
        return None;
    }
    c.take(&["column"]);
    let column = c.ident().ok()?;
    let declared = c.take(&["type"]) || c.take(&["set", "data", "type"]);
    if declared {
        let name = c.name().is_ok_and(|name| name.iter().eq(["spanner", "commit_timestamp"]));
        return (name && c.done()).then_some(Ok(AlterOwn::SetCommitTime(column, true)));
    }
    if c.take(&["drop", "expression"]) {
        let if_exists = c.take(&["if", "exists"]);
        return Some(Ok(AlterOwn::DropExpression(column, if_exists)));
    }
    if let Some(change) = identity(c, &column) {
        return Some(change);
    }
    if c.take(&["set", "options"]) {
        let allow = commit_times::option(c);
        return Some(allow.map(|allow| AlterOwn::SetCommitTime(column, allow)));
    }
    c.take(&["set", "statistics"])
        .then(|| c.integer().map(|target| AlterOwn::SetStatistics(column, target)))
}

/// What follows ALTER CONSTRAINT.
fn altered_constraint(c: &mut Cursor) -> SqlResult<AlterOwn> {
    let name = c.ident()?;
    let mut out = ast::ConstraintCharacteristics::default();
    while !c.done() {
        if out.deferrable.is_none() && c.take(&["deferrable"]) {
            out.deferrable = Some(true);
        } else if out.deferrable.is_none() && c.take(&["not", "deferrable"]) {
            out.deferrable = Some(false);
        } else if out.initially.is_none() && c.take(&["initially", "deferred"]) {
            out.initially = Some(ast::DeferrableInitial::Deferred);
        } else if out.initially.is_none() && c.take(&["initially", "immediate"]) {
            out.initially = Some(ast::DeferrableInitial::Immediate);
        } else {
            return Err(c.unexpected());
        }
    }
    Ok(AlterOwn::Constraint(name, out))
}

/// `SET GENERATED ALWAYS`, `RESTART WITH 7`, `SET INCREMENT BY 2`, `DROP IDENTITY` of a column;
/// `None` if it is another change.
fn identity(c: &mut Cursor, column: &str) -> Option<SqlResult<AlterOwn>> {
    let column = column.to_string();
    if c.take(&["drop", "identity"]) {
        let if_exists = c.take(&["if", "exists"]);
        return Some(Ok(AlterOwn::DropIdentity(column, if_exists)));
    }
    const SET: [&str; 7] =
        ["generated", "increment", "minvalue", "maxvalue", "start", "cache", "cycle"];
    let set = c.is_word(0, "set") && (c.is_word(1, "no") || SET.iter().any(|w| c.is_word(1, w)));
    if !set && !c.is_word(0, "restart") {
        return None;
    }
    let mut always = None;
    let mut options = Vec::new();
    while !c.done() {
        c.take(&["set"]);
        if c.take(&["generated", "always"]) {
            always = Some(true);
        } else if c.take(&["generated", "by", "default"]) {
            always = Some(false);
        } else {
            options.extend(c.rest().into_iter().take(1));
            c.next();
        }
    }
    let options = sequence_options(&mut Cursor::new(options));
    Some(options.map(|options| AlterOwn::Identity(column, always, Box::new(options))))
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
        } else if c.take(&["bit_reversed_positive"]) {
            s.reversed = true;
        } else if c.take(&["options"]) || c.take(&["set", "options"]) {
            spanner_options(c, &mut s)?;
        } else if c.take(&["no", "skip", "range"]) {
            s.skip = Some(None);
        } else if c.take(&["skip", "range"]) {
            let from = c.integer()?;
            c.take_token(&Token::Comma);
            s.skip = Some(Some((from, c.integer()?)));
        } else if c.take(&["restart", "counter"]) {
            c.take(&["with"]);
            s.restart = Some(Some(c.integer()?));
        } else if c.take(&["start"]) {
            c.take(&["counter"]);
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
            s.rename = Some(c.own_name()?);
        } else if c.take(&["set", "schema"]) {
            s.schema = Some(c.own_name()?);
        } else if c.take(&["owner", "to"]) {
            c.ident()?;
        } else {
            return Err(c.unexpected());
        }
    }
    Ok(s)
}

/// GoogleSQL's `OPTIONS (sequence_kind = 'bit_reversed_positive', skip_range_min = 1, ..)`.
fn spanner_options(c: &mut Cursor, s: &mut SequenceChange) -> SqlResult<()> {
    c.expect_token(&Token::LParen)?;
    let (mut least, mut most) = (None, None);
    while !c.take_token(&Token::RParen) {
        let name = c.ident()?;
        c.expect_token(&Token::Eq)?;
        match name.as_str() {
            "sequence_kind" => {
                let kind = c.string()?;
                if kind != "bit_reversed_positive" {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("sequence kind \"{kind}\" is not known"),
                    )
                    .with_hint("The kind is bit_reversed_positive."));
                }
                s.reversed = true;
            }
            "skip_range_min" => least = Some(c.integer()?),
            "skip_range_max" => most = Some(c.integer()?),
            "start_with_counter" => s.start = Some(c.integer()?),
            _ => return Err(c.unexpected()),
        }
        c.take_token(&Token::Comma);
    }
    match (least, most) {
        (Some(from), Some(to)) => s.skip = Some(Some((from, to))),
        (None, None) => {}
        _ => {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "skip_range_min and skip_range_max belong together",
            ));
        }
    }
    Ok(())
}
