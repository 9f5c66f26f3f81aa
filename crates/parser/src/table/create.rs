//! CREATE TABLE and CREATE INDEX with our additions.
//!
//! ```text
//!   CREATE TABLE c ( .., INDEX i (x) INTERLEAVE IN p ) PRIMARY KEY (id), INTERLEAVE IN PARENT p
//!                       \___ lifted, read as CREATE INDEX ___/  |         \____ lifted ____/
//!                                     moved into the parentheses
//! ```

use crate::DeleteAction;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{Cursor, closing, fold, token_is};
use crate::script::{parse_all, word, wrap};
use crate::{CreateIndex, CreateTable, InterleaveClause, Kind, TtlClause};

use super::{like, partition, typed};

/// Reads CREATE TABLE and CREATE INDEX; `None` if it is another statement.
pub(crate) fn statement(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    if !c.is_word(0, "create") {
        return Ok(None);
    }
    let at = if c.is_word(1, "unique") { 2 } else { 1 };
    let index =
        c.is_word(at, "index") || (c.is_word(at, "null_filtered") && c.is_word(at + 1, "index"));
    if index {
        return Ok(Some(Kind::CreateIndex(Box::new(create_index(c.rest())?))));
    }
    let n = (1..4).find(|n| c.is_word(*n, "table"));
    match n {
        Some(n)
            if (1..n).all(|i| {
                ["temp", "temporary", "unlogged", "local", "global"].iter().any(|w| c.is_word(i, w))
            }) =>
        {
            if let Some(partition) = partition::create(c)? {
                return Ok(Some(Kind::CreatePartition(Box::new(partition))));
            }
            let mut tokens = c.rest();
            // Only in front of the name: a table may be called that.
            if let Some(at) = (1..n).find(|at| c.is_word(*at, "unlogged")) {
                tokens.remove(at);
            }
            let executed = take_execute(&mut tokens)?;
            let table = Box::new(create_table(tokens)?);
            Ok(Some(match executed {
                Some((name, values)) => Kind::CreateTableExecute(table, name, values),
                None => Kind::CreateTable(table),
            }))
        }
        _ => Ok(None),
    }
}

/// `AS EXECUTE p (values)`: its name and its values; some query is left in its place.
fn take_execute(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<Option<(String, Vec<ast::Expr>)>> {
    let Some(at) = depth_zero(tokens, "as").map(|at| at + 1) else { return Ok(None) };
    if !tokens.get(at).is_some_and(|t| token_is(&t.token, "execute")) {
        return Ok(None);
    }
    let mut c = Cursor::new(tokens[at + 1..].to_vec());
    let name = c.own_name()?;
    let mut values = Vec::new();
    if c.take_token(&Token::LParen) && !c.take_token(&Token::RParen) {
        loop {
            values.push(c.expr()?);
            if !c.take_token(&Token::Comma) {
                break;
            }
        }
        c.expect_token(&Token::RParen)?;
    }
    let end = at + 1 + c.at();
    tokens.splice(at..end, [word("select"), wrap(Token::Number("1".into(), false))]);
    Ok(Some((name, values)))
}

fn create_index(mut tokens: Vec<TokenWithSpan>) -> SqlResult<CreateIndex> {
    let mut interleave_clause = None;
    let null_filtered =
        (1..3).find(|at| tokens.get(*at).is_some_and(|t| token_is(&t.token, "null_filtered")));
    null_filtered.into_iter().for_each(|at| drop(tokens.remove(at)));
    if let Some(at) = depth_zero(&tokens, "interleave") {
        let mut c = Cursor::new(tokens[at..].to_vec());
        interleave_clause = Some(interleave(&mut c)?);
        let used = c.at();
        tokens.drain(at..at + used);
        drop_comma_before(&mut tokens, at);
    }
    let is = |n: usize, w: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, w));
    let only = (2..tokens.len()).find(|n| is(n - 1, "on") && is(*n, "only"));
    only.into_iter().for_each(|at| drop(tokens.remove(at)));
    for t in &mut tokens {
        if token_is(&t.token, "storing") {
            *t = word("include");
        }
    }
    match parse_all(tokens, |p| p.parse_statement())? {
        ast::Statement::CreateIndex(base) => {
            let null_filtered = null_filtered.is_some();
            let (interleave, only) = (interleave_clause, only.is_some());
            Ok(CreateIndex { base, interleave, null_filtered, only })
        }
        _ => Err(SqlError::syntax("syntax error in CREATE INDEX")),
    }
}

fn drop_comma_before(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    if at > 0 && tokens[at - 1].token == Token::Comma {
        tokens.remove(at - 1);
    }
}

/// First place of a word outside of parentheses.
pub(super) fn depth_zero(tokens: &[TokenWithSpan], w: &str) -> Option<usize> {
    let mut depth = 0i32;
    for (i, t) in tokens.iter().enumerate() {
        match t.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ if depth == 0 && token_is(&t.token, w) => return Some(i),
            _ => {}
        }
    }
    None
}

/// `SELECT .. INTO t FROM ..`, as `CREATE TABLE t AS SELECT .. FROM ..`; `None` without INTO.
pub(crate) fn select_into(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let first = tokens.first()?;
    if !token_is(&first.token, "select") && !token_is(&first.token, "with") {
        return None;
    }
    let at = depth_zero(tokens, "into")?;
    if ["insert", "merge"].iter().any(|word| at > 0 && token_is(&tokens[at - 1].token, word)) {
        return None;
    }
    let mut c = Cursor::new(tokens[at + 1..].to_vec());
    let mut temporary = false;
    while ["temp", "temporary", "unlogged", "local", "global", "table"].iter().any(|word| {
        let taken = c.take(&[word]);
        temporary |= taken && word.starts_with("temp");
        taken
    }) {}
    let name = c.at();
    c.name().ok()?;
    let mut out = vec![word("create")];
    out.extend(temporary.then(|| word("temporary")));
    out.push(word("table"));
    out.extend_from_slice(&tokens[at + 1 + name..at + 1 + c.at()]);
    out.push(word("as"));
    out.extend_from_slice(&tokens[..at]);
    out.extend(c.rest());
    Some(out)
}

/// Takes WITH DATA or WITH NO DATA from the end; true if it is the latter.
pub(crate) fn take_data_clause(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let ends = |tokens: &[TokenWithSpan], words: &[&str]| {
        tokens.len() > words.len()
            && words.iter().rev().zip(tokens.iter().rev()).all(|(w, t)| token_is(&t.token, w))
    };
    let no_data = ends(tokens, &["with", "no", "data"]);
    if no_data {
        tokens.truncate(tokens.len() - 3);
    } else if ends(tokens, &["with", "data"]) {
        tokens.truncate(tokens.len() - 2);
    }
    no_data
}

/// `TABLE t`, if it stands there, as the query that it means.
pub(crate) fn spell_out_table(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    if tokens.get(at).is_some_and(|t| token_is(&t.token, "table")) {
        tokens.splice(at..=at, [word("select"), wrap(Token::Mul), word("from")]);
    }
}

/// Takes what sqlparser does not read of CREATE TABLE .. AS: names of columns, WITH NO DATA and
/// TABLE as a query. The names, and whether the table stays empty.
fn lift_as(tokens: &mut Vec<TokenWithSpan>) -> (Vec<String>, bool) {
    let Some(at) = depth_zero(tokens, "as") else { return (Vec::new(), false) };
    let no_data = take_data_clause(tokens);
    spell_out_table(tokens, at + 1);
    let mut names = Vec::new();
    if let Some(open) = tokens[..at].iter().position(|t| t.token == Token::LParen)
        && let Some(close) = closing(tokens, open)
    {
        for (n, t) in tokens[open + 1..close].iter().enumerate() {
            match &t.token {
                Token::Word(w) if n % 2 == 0 => names.push(fold(w)),
                Token::Comma if n % 2 == 1 => {}
                // Columns with types, or options of storage.
                _ => return (Vec::new(), no_data),
            }
        }
        if close < at {
            tokens.drain(open..=close);
        }
    }
    (names, no_data)
}

fn create_table(mut tokens: Vec<TokenWithSpan>) -> SqlResult<CreateTable> {
    let (mut clause, mut ttl, mut by) = (None, None, None);
    let (mut indexes, mut likes) = (Vec::new(), Vec::new());
    let of = typed::lift(&mut tokens)?;
    let (names, no_data) = lift_as(&mut tokens);
    let open = tokens.iter().position(|t| t.token == Token::LParen);
    let as_select = depth_zero(&tokens, "as");
    if let Some(open) = open.filter(|o| as_select.is_none_or(|a| *o < a))
        && let Some(close) = closing(&tokens, open)
    {
        let mut tail: Vec<_> = tokens.drain(close + 1..).collect();
        by = partition::lift(&mut tail)?;
        ttl = lift_ttl(&mut tail)?;
        clause = lift_interleave(&mut tail)?;
        let key = lift_primary_key(&mut tail)?;
        let body: Vec<_> = tokens.drain(open + 1..close).collect();
        let table = tokens[..open].to_vec();
        let mut items = Vec::new();
        for item in split_items(body) {
            if is_inline_index(&item) {
                indexes.push(inline_index(&table, item)?);
            } else {
                items.push(item);
            }
        }
        likes = like::lift(&mut items)?;
        items.extend(key);
        let mut inside = Vec::new();
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                inside.push(wrap(Token::Comma));
            }
            inside.extend(item);
        }
        tokens.splice(open + 1..open + 1, inside);
        tokens.extend(tail);
    } else {
        clause = lift_interleave(&mut tokens)?.or(clause);
    }
    match parse_all(tokens, |p| p.parse_statement())? {
        ast::Statement::CreateTable(base) => {
            let interleave = clause;
            Ok(CreateTable { base, interleave, indexes, ttl, names, no_data, by, likes, of })
        }
        _ => Err(SqlError::syntax("syntax error in CREATE TABLE")),
    }
}

fn split_items(body: Vec<TokenWithSpan>) -> Vec<Vec<TokenWithSpan>> {
    let mut items = vec![Vec::new()];
    let mut depth = 0i32;
    for t in body {
        match t.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth -= 1,
            Token::Comma if depth == 0 => {
                items.push(Vec::new());
                continue;
            }
            _ => {}
        }
        items.last_mut().expect("never empty").push(t);
    }
    // A trailing comma, as Spanner's grammar allows before `) PRIMARY KEY`.
    if items.len() > 1 && items.last().is_some_and(Vec::is_empty) {
        items.pop();
    }
    if items.len() == 1 && items[0].is_empty() {
        items.clear();
    }
    items
}

fn is_inline_index(item: &[TokenWithSpan]) -> bool {
    let is = |n: usize, w: &str| item.get(n).is_some_and(|t| token_is(&t.token, w));
    let paren = |n: usize| item.get(n).is_some_and(|t| t.token == Token::LParen);
    (is(0, "index") && (paren(1) || paren(2))) || (is(0, "unique") && is(1, "index"))
}

/// `[UNIQUE] INDEX [name] (..) rest` as `CREATE [UNIQUE] INDEX [name] ON table (..) rest`.
fn inline_index(create: &[TokenWithSpan], item: Vec<TokenWithSpan>) -> SqlResult<CreateIndex> {
    let at = create.iter().position(|t| token_is(&t.token, "table")).map_or(0, |i| i + 1);
    let mut table = &create[at..];
    if table.len() > 3 && token_is(&table[0].token, "if") {
        table = &table[3..];
    }
    let open = item
        .iter()
        .position(|t| t.token == Token::LParen)
        .ok_or_else(|| SqlError::syntax("syntax error in INDEX"))?;
    let mut tokens = vec![word("create")];
    tokens.extend_from_slice(&item[..open]);
    tokens.push(word("on"));
    tokens.extend_from_slice(table);
    tokens.extend_from_slice(&item[open..]);
    create_index(tokens)
}

fn lift_interleave(tail: &mut Vec<TokenWithSpan>) -> SqlResult<Option<InterleaveClause>> {
    let Some(at) = depth_zero(tail, "interleave") else { return Ok(None) };
    let mut c = Cursor::new(tail[at..].to_vec());
    let clause = interleave(&mut c)?;
    let used = c.at();
    tail.drain(at..at + used);
    drop_comma_before(tail, at);
    if depth_zero(tail, "interleave").is_some() {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            "a table can be interleaved in one parent only",
        ));
    }
    Ok(Some(clause))
}

fn lift_ttl(tail: &mut Vec<TokenWithSpan>) -> SqlResult<Option<TtlClause>> {
    let is = |n: usize, w: &str| tail.get(n).is_some_and(|t| token_is(&t.token, w));
    let begins = |n: usize| {
        (is(n, "row") && is(n + 1, "deletion")) || (is(n, "ttl") && is(n + 1, "interval"))
    };
    let Some(at) = (0..tail.len()).find(|n| begins(*n)) else { return Ok(None) };
    let mut c = Cursor::new(tail[at..].to_vec());
    let clause = ttl(&mut c)?;
    let used = c.at();
    tail.drain(at..at + used);
    drop_comma_before(tail, at);
    Ok(Some(clause))
}

/// `ROW DELETION POLICY (OLDER_THAN(column, INTERVAL n DAY))`, `TTL INTERVAL 'n days' ON column`.
pub(crate) fn ttl(c: &mut Cursor) -> SqlResult<TtlClause> {
    if c.take(&["ttl", "interval"]) {
        let interval = c.string()?;
        c.expect(&["on"])?;
        return Ok(TtlClause { column: c.own_name()?, interval });
    }
    c.expect(&["row", "deletion", "policy"])?;
    c.expect_token(&Token::LParen)?;
    c.expect(&["older_than"])?;
    c.expect_token(&Token::LParen)?;
    let column = c.own_name()?;
    c.expect_token(&Token::Comma)?;
    c.expect(&["interval"])?;
    let interval = match c.peek() {
        Some(Token::SingleQuotedString(_)) => c.string()?,
        _ => {
            let days = c.integer()?;
            c.expect(&["day"])?;
            format!("{days} days")
        }
    };
    c.expect_token(&Token::RParen)?;
    c.expect_token(&Token::RParen)?;
    Ok(TtlClause { column, interval })
}

/// GoogleSQL's `) PRIMARY KEY (a, b)` as a table constraint.
fn lift_primary_key(tail: &mut Vec<TokenWithSpan>) -> SqlResult<Option<Vec<TokenWithSpan>>> {
    let is = |n: usize, w: &str| tail.get(n).is_some_and(|t| token_is(&t.token, w));
    if !(is(0, "primary") && is(1, "key")) {
        return Ok(None);
    }
    if tail.get(3).is_some_and(|t| t.token == Token::RParen) {
        return Err(SqlError::unsupported("PRIMARY KEY () of a table with at most one row")
            .with_hint("Declare a key column with a CHECK that allows one value."));
    }
    let end = closing(tail, 2).ok_or_else(|| SqlError::syntax("syntax error in PRIMARY KEY"))?;
    Ok(Some(tail.drain(..=end).collect()))
}

/// `INTERLEAVE IN [PARENT] p [(cols)] [ON DELETE action]`.
pub(crate) fn interleave(c: &mut Cursor) -> SqlResult<InterleaveClause> {
    c.expect(&["interleave", "in"])?;
    let in_parent = c.take(&["parent"]);
    let parent = c.name()?;
    let columns = if c.peek() == Some(&Token::LParen) { Some(c.ident_list()?) } else { None };
    let on_delete = if c.take(&["on", "delete"]) { Some(delete_action(c)?) } else { None };
    if c.looking_at(&["cascade"]) || c.looking_at(&["restrict"]) {
        return Err(SqlError::unsupported("the shorthand CASCADE or RESTRICT after INTERLEAVE")
            .with_hint("Write ON DELETE CASCADE or ON DELETE RESTRICT."));
    }
    Ok(InterleaveClause { parent, in_parent, columns, on_delete })
}

pub(crate) fn delete_action(c: &mut Cursor) -> SqlResult<DeleteAction> {
    if c.take(&["cascade"]) {
        Ok(DeleteAction::Cascade)
    } else if c.take(&["no", "action"]) {
        Ok(DeleteAction::NoAction)
    } else if c.take(&["restrict"]) {
        Ok(DeleteAction::Restrict)
    } else if c.take(&["set", "null"]) || c.take(&["set", "default"]) {
        Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            "ON DELETE of INTERLEAVE IN PARENT must be CASCADE, NO ACTION or RESTRICT",
        )
        .with_hint(
            "A child row cannot live without its parent row; use a foreign key for SET NULL.",
        ))
    } else {
        Err(c.unexpected())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_script;

    fn table(sql: &str) -> CreateTable {
        match &*parse_script(sql).unwrap()[0].kind {
            Kind::CreateTable(t) => (**t).clone(),
            k => panic!("{k:?}"),
        }
    }

    #[test]
    fn both_grammars() {
        let t = table(
            "create table c (id int, n int, primary key (id, n)) interleave in parent p (id)",
        );
        let i = t.interleave.unwrap();
        assert_eq!((i.in_parent, i.columns, i.on_delete), (true, Some(vec!["id".into()]), None));
        let t = table(
            "CREATE TABLE c (id STRING(MAX) NOT NULL, n INT64, b BYTES(10),) PRIMARY KEY (id, n), \
             INTERLEAVE IN PARENT s.p ON DELETE CASCADE",
        );
        assert_eq!(t.base.columns.len(), 3);
        assert_eq!(t.base.constraints.len(), 1);
        let i = t.interleave.unwrap();
        assert_eq!(
            (i.parent, i.on_delete),
            (vec!["s".into(), "p".into()], Some(DeleteAction::Cascade))
        );
        let t = table(
            "create table if not exists c (id int primary key, x int, index by_x (x) storing (id) \
             interleave in parent c (id), unique index (x)) interleave in p",
        );
        assert_eq!(t.indexes.len(), 2);
        assert_eq!(t.indexes[0].base.include.len(), 1);
        assert!(!t.interleave.unwrap().in_parent);
    }

    #[test]
    fn index_suffix() {
        let s = parse_script("create unique index i on t (a, b desc) include (c), interleave in p")
            .unwrap();
        let Kind::CreateIndex(i) = &*s[0].kind else { panic!() };
        assert!(i.base.unique && i.interleave.is_some());
    }
}
