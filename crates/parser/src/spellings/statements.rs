//! What Spanner and CockroachDB write otherwise, settled on tokens.
//!
//! ```text
//!   GoogleSQL, CockroachDB                    read as
//!   `Singers`                                 "singers"
//!   SELECT a, FROM t                          SELECT a FROM t
//!   ARRAY(SELECT AS STRUCT c.* FROM c)        ARRAY(SELECT coalesce(c.*) AS c FROM c)
//!   STRUCT(1 AS a, 'x')                       ROW(1, 'x')
//!   a IN UNNEST([1, 2])                       a = ANY([1, 2])
//!   INSERT OR UPDATE t .., UPSERT INTO t ..   INSERT OR REPLACE INTO t ..
//!   .. THEN RETURN a                          .. RETURNING a
//!   GET_NEXT_SEQUENCE_VALUE(SEQUENCE s)       nextval('s')
//!   c INT64 AS (a + 1) STORED                 c INT64 GENERATED ALWAYS AS (a + 1) STORED
//!   ALTER COLUMN c STRING(9) NOT NULL         ALTER COLUMN c TYPE STRING(9), .. SET NOT NULL
//!   t@{FORCE_INDEX=i}, t@i, @{..} SELECT      nothing, with a notice
//!   FAMILY f (a, b)                           nothing, with a notice
//!   CREATE VIEW v SQL SECURITY INVOKER AS     CREATE VIEW v AS
//!   DELETE t WHERE ..                         DELETE FROM t WHERE ..
//! ```
//! None of the left column means anything in PostgreSQL, so nobody loses by it. And a few spellings
//! of PostgreSQL's own: `inet '::1'` is read as `'::1'::inet`, `interval(2) '1.234'` alike, and a
//! set of queries loses the parentheses of its first one.

use braid_types::{SqlError, SqlResult, SqlState, SqlType, quote_ident};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{calls, commit_times, queries};
use crate::cursor::{Cursor, closing, token_is};
use crate::rewrites::pieces::Pieces;
use crate::script::{word, wrap};

type Tokens = Vec<TokenWithSpan>;

/// Rewrites the tokens of one statement. Returns what was left out and is to be told.
pub(crate) fn rewrite(tokens: &mut Tokens) -> SqlResult<Vec<String>> {
    let mut notices = Vec::new();
    hints(tokens, &mut notices);
    upserts(tokens)?;
    bare_delete(tokens);
    forced_drop(tokens);
    let mut at = 0;
    while at < tokens.len() {
        first_of_set(tokens, at);
        match tokens[at].token {
            Token::Mul => queries::star(tokens, at),
            Token::SingleQuotedByteStringLiteral(_) => calls::bytes(tokens, at)?,
            _ => {}
        }
        if let Token::Word(w) = &tokens[at].token
            && w.quote_style.is_none()
        {
            match w.value.to_ascii_lowercase().as_str() {
                "from" => trailing_comma(tokens, &mut at),
                "select" => {
                    select_as_struct(tokens, at)?;
                    queries::as_value(tokens, at);
                }
                "struct" if is_token(tokens, at + 1, &Token::LParen) => one_struct(tokens, at)?,
                "struct" => calls::typed_struct(tokens, at)?,
                "unnest" => {
                    in_unnest(tokens, at);
                    queries::unnest(tokens, at);
                }
                "then" => then_return(tokens, at),
                "get_next_sequence_value" => next_value(tokens, at)?,
                "pending_commit_timestamp" | "allow_commit_timestamp" => {
                    commit_times::rewrite(tokens, at)?;
                }
                "bit_reversed_positive" => reversed_identity(tokens, at)?,
                "exclude" if is(tokens, at + 1, "using") || is_bare_exclusion(tokens, at) => {
                    return Err(SqlError::unsupported("an EXCLUDE constraint").with_hint(
                        "UNIQUE tells equal keys apart; for ranges that must not overlap, take a \
                         lock on what they belong to and look before writing.",
                    ));
                }
                "sql" => security(tokens, at),
                "snapshot" => exported_view(tokens, at)?,
                "normalize" => normal_form(tokens, at),
                "national" | "nchar" => national(tokens, at),
                "using" => sorting_operator(tokens, at)?,
                "current_role" | "current_schema" if at > 0 => called(tokens, at),
                "include" => constraint_include(tokens, at),
                word => {
                    no_xml(tokens, at, word)?;
                    calls::rewrite(tokens, at, word)?;
                    typed_literal(tokens, at);
                }
            }
        }
        at += 1;
    }
    if is(tokens, 0, "create") && tokens.iter().take(4).any(|t| token_is(&t.token, "table")) {
        families(tokens, &mut notices);
        generated(tokens, 1);
    } else if is(tokens, 0, "create") && tokens.iter().take(5).any(|t| token_is(&t.token, "view")) {
        view_options(tokens);
    } else if is(tokens, 0, "create") && is(tokens, 1, "extension") {
        with_options(tokens);
    } else if is(tokens, 0, "alter") && is(tokens, 1, "table") {
        generated(tokens, 0);
        column_types(tokens)?;
    }
    Ok(notices)
}

/// 0A000 for the calls that SQL/XML has forms of its own for.
fn no_xml(tokens: &Tokens, at: usize, word: &str) -> SqlResult<()> {
    const CALLS: [&str; 7] =
        ["xmlelement", "xmlforest", "xmlparse", "xmlpi", "xmlroot", "xmlserialize", "xmlexists"];
    if !word.starts_with("xml")
        || !CALLS.contains(&word)
        || !is_token(tokens, at + 1, &Token::LParen)
    {
        return Ok(());
    }
    Err(SqlError::unsupported("XML").with_hint("A column of type text keeps it as it is."))
}

/// `EXCLUDE (a WITH =)` as a constraint of a table.
fn is_bare_exclusion(tokens: &Tokens, at: usize) -> bool {
    let named = at > 1 && is(tokens, at - 2, "constraint");
    let begins = at > 0
        && (is_token(tokens, at - 1, &Token::Comma)
            || is_token(tokens, at - 1, &Token::LParen)
            || is(tokens, at - 1, "add"));
    (is(tokens, 0, "create") || is(tokens, 0, "alter"))
        && (1..4).any(|n| is(tokens, n, "table"))
        && is_token(tokens, at + 1, &Token::LParen)
        && (named || begins)
}

/// `DROP DATABASE d WITH (FORCE)`: sessions of others are in nobody's way.
fn forced_drop(tokens: &mut Tokens) {
    if !(is(tokens, 0, "drop") && is(tokens, 1, "database")) || tokens.len() < 6 {
        return;
    }
    let open = tokens.len() - 3;
    if is_token(tokens, open, &Token::LParen)
        && is(tokens, open + 1, "force")
        && is_token(tokens, open + 2, &Token::RParen)
    {
        tokens.truncate(open - usize::from(is(tokens, open - 1, "with")));
    }
}

/// `CREATE VIEW v WITH (security_barrier) AS`: an option without a value is true.
fn view_options(tokens: &mut Tokens) {
    let end = tokens.iter().position(|t| token_is(&t.token, "as")).unwrap_or(0);
    let with = (0..end).find(|at| is(tokens, *at, "with"));
    let Some(open) = with.map(|at| at + 1) else { return };
    let Some(close) = closing(tokens, open).filter(|close| *close < end) else { return };
    for at in (open + 1..close).rev() {
        let before = matches!(tokens[at - 1].token, Token::LParen | Token::Comma);
        let behind = matches!(tokens[at + 1].token, Token::RParen | Token::Comma);
        if before && behind && is_word(tokens, at) {
            tokens.splice(at + 1..at + 1, [wrap(Token::Eq), word("true")]);
        }
    }
}

/// `DELETE t WHERE ..`, without FROM.
fn bare_delete(tokens: &mut Tokens) {
    let at = usize::from(is(tokens, 0, "explain"));
    let at = at + usize::from(at == 1 && is(tokens, 1, "analyze"));
    if is(tokens, at, "delete") && is_word(tokens, at + 1) && !is(tokens, at + 1, "from") {
        tokens.insert(at + 1, word("from"));
    }
}

fn is(tokens: &[TokenWithSpan], at: usize, text: &str) -> bool {
    tokens.get(at).is_some_and(|t| token_is(&t.token, text))
}

fn is_token(tokens: &[TokenWithSpan], at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|t| t.token == *token)
}

fn is_word(tokens: &[TokenWithSpan], at: usize) -> bool {
    matches!(tokens.get(at).map(|t| &t.token), Some(Token::Word(_)))
}

/// Names in backticks as quoted ones, in lower case as PostgreSQL folds them; nothing inside of
/// quotes and comments changes, and no place in the text.
pub(crate) fn plain_backticks(sql: &str) -> Option<String> {
    if !sql.contains('`') {
        return None;
    }
    let mut out = String::with_capacity(sql.len());
    let mut pieces = Pieces::of(sql);
    while let Some(piece) = pieces.next() {
        let name = sql[piece.at..].strip_prefix('`').and_then(|rest| rest.split_once('`'));
        match name.filter(|(name, _)| !name.contains('"')) {
            Some((name, behind)) => {
                out.push_str(&format!("\"{}\"", name.to_ascii_lowercase()));
                pieces.go_on_at(sql.len() - behind.len());
            }
            None => out.push_str(piece.text),
        }
    }
    Some(out)
}

/// Hints: `@{..}` anywhere, and `t@index` behind FROM, JOIN, UPDATE and INTO.
fn hints(tokens: &mut Tokens, notices: &mut Vec<String>) {
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].token != Token::AtSign {
            at += 1;
            continue;
        }
        let end = if is_token(tokens, at + 1, &Token::LBrace) {
            tokens[at..].iter().position(|t| t.token == Token::RBrace).map(|n| at + n + 1)
        } else {
            (is_word(tokens, at + 1) && names_table(tokens, at)).then_some(at + 2)
        };
        let Some(end) = end else {
            at += 1;
            continue;
        };
        let hint: String = tokens.drain(at..end).map(|t| t.token.to_string()).collect();
        notices.push(format!(
            "hint {hint} is ignored: plans are chosen by what is known of the \
                rows"
        ));
    }
}

/// Whether the words before this place are a table's name.
fn names_table(tokens: &[TokenWithSpan], end: usize) -> bool {
    let mut at = end;
    while at > 0 && is_word(tokens, at - 1) {
        at -= 1;
        if at > 0 && is_token(tokens, at - 1, &Token::Period) {
            at -= 1;
            continue;
        }
        return at < end
            && ["from", "join", "update", "into"].iter().any(|w| at > 0 && is(tokens, at - 1, w));
    }
    false
}

/// `INSERT OR UPDATE [INTO] t`, `INSERT OR IGNORE [INTO] t`, `UPSERT INTO t`. A genuine INSERT OR
/// REPLACE, which would delete the row that is there, is refused.
fn upserts(tokens: &mut Tokens) -> SqlResult<()> {
    let Some(at) =
        (0..tokens.len().min(2)).find(|n| is(tokens, *n, "insert") || is(tokens, *n, "upsert"))
    else {
        return Ok(());
    };
    if is(tokens, at, "upsert") {
        if !is(tokens, at + 1, "into") {
            return Ok(());
        }
        tokens.splice(at..=at, ["insert", "or", "replace"].map(word));
        return Ok(());
    }
    if !is(tokens, at + 1, "or") {
        return Ok(());
    }
    if is(tokens, at + 2, "replace") {
        return Err(SqlError::unsupported("INSERT OR REPLACE")
            .with_hint("Use INSERT OR UPDATE, or INSERT .. ON CONFLICT .. DO UPDATE."));
    }
    if !is(tokens, at + 3, "into") {
        tokens.insert(at + 3, word("into"));
    }
    if is(tokens, at + 2, "update") {
        tokens[at + 2] = word("replace");
    }
    Ok(())
}

/// `inet '1.2.3.4'`, of a type that is no key word: `'1.2.3.4'::inet`.
fn typed_literal(tokens: &mut Tokens, at: usize) {
    let Token::Word(w) = &tokens[at].token else { return };
    let name = w.value.to_ascii_lowercase();
    if name == "interval" && is_token(tokens, at + 1, &Token::LParen) {
        rounded_interval(tokens, at);
        return;
    }
    let is_type =
        w.keyword == Keyword::NoKeyword && SqlType::from_name(&name).is_some() || name == "name";
    let before = at > 0 && is_token(tokens, at - 1, &Token::Period);
    let text = tokens.get(at + 1).map(|t| &t.token);
    if is_type && !before && matches!(text, Some(Token::SingleQuotedString(_))) {
        tokens.swap(at, at + 1);
        tokens.insert(at + 1, wrap(Token::DoubleColon));
    }
}

/// The options of CREATE EXTENSION need no WITH.
fn with_options(tokens: &mut Tokens) {
    let options = ["schema", "version", "cascade"];
    let first = (3..tokens.len()).find(|at| options.iter().any(|word| is(tokens, *at, word)));
    if let Some(first) = first.filter(|first| !is(tokens, first - 1, "with")) {
        tokens.insert(first, word("with"));
    }
}

/// `SET TRANSACTION SNAPSHOT 'id'` as `SET TRANSACTION AS OF SYSTEM TIME 'n'`: what is exported is
/// the moment that a transaction sees.
fn exported_view(tokens: &mut Tokens, at: usize) -> SqlResult<()> {
    let Some(Token::SingleQuotedString(id)) = tokens.get(at + 1).map(|t| &t.token) else {
        return Ok(());
    };
    if at != 2 || !(is(tokens, 0, "set") && is(tokens, 1, "transaction")) {
        return Ok(());
    }
    let hex = |part: &str| (part.len() == 8).then(|| u64::from_str_radix(part, 16).ok()).flatten();
    let moment = match id.split('-').collect::<Vec<_>>().as_slice() {
        [high, low, "1"] => hex(high).zip(hex(low)).map(|(high, low)| high << 32 | low),
        _ => None,
    };
    let Some(moment) = moment else {
        let text = format!("invalid snapshot identifier: \"{id}\"");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text));
    };
    let mut words = ["as", "of", "system", "time"].map(word).to_vec();
    words.push(wrap(Token::SingleQuotedString(moment.to_string())));
    tokens.splice(at..at + 2, words);
    Ok(())
}

/// `normalize(x, NFC)`, whose form is a word: a text here.
fn normal_form(tokens: &mut Tokens, at: usize) {
    if !is_token(tokens, at + 1, &Token::LParen) {
        return;
    }
    let Some(close) = closing(tokens, at + 1) else { return };
    let form = ["nfc", "nfd", "nfkc", "nfkd"].into_iter().find(|w| is(tokens, close - 1, w));
    if let Some(form) = form.filter(|_| is_token(tokens, close - 2, &Token::Comma)) {
        tokens[close - 1] = wrap(Token::SingleQuotedString(form.to_uppercase()));
    }
}

/// `national character [varying]` and `nchar varying` as types: there is one character set.
fn national(tokens: &mut Tokens, at: usize) {
    if is(tokens, at, "nchar") {
        if is(tokens, at + 1, "varying") {
            tokens[at] = word("character");
        }
        return;
    }
    // `(national char(3))` is a column of that name.
    let begins = at == 0
        || matches!(tokens[at - 1].token, Token::LParen | Token::Comma)
        || ["column", "add", "exists"].iter().any(|word| is(tokens, at - 1, word));
    if !begins && (is(tokens, at + 1, "character") || is(tokens, at + 1, "char")) {
        tokens.remove(at);
    }
}

/// `current_role` and `current_schema` where they are values, which are called without parentheses.
fn called(tokens: &mut Tokens, at: usize) {
    let names_roles = ["grant", "revoke", "alter", "set", "reset", "drop", "reassign", "show"];
    let is_value = !names_roles.iter().any(|word| is(tokens, 0, word))
        && !is(tokens, at - 1, "authorization")
        && !is(tokens, at - 1, "as")
        && !is_token(tokens, at - 1, &Token::Period);
    if is_value && !is_token(tokens, at + 1, &Token::LParen) {
        tokens.splice(at + 1..at + 1, [wrap(Token::LParen), wrap(Token::RParen)]);
    }
}

/// ORDER BY x USING <: ASC, and USING >: DESC.
fn sorting_operator(tokens: &mut Tokens, at: usize) -> SqlResult<()> {
    let token = |n: usize| tokens.get(at + n).map(|t| &t.token);
    // OPERATOR(schema.<): there is one operator of that name.
    let called = is(tokens, at + 1, "operator") && token(2) == Some(&Token::LParen);
    let first = match (called, token(4)) {
        (true, Some(Token::Period)) => 5,
        (true, _) => 3,
        (false, _) => 1,
    };
    let (direction, length) = match [token(first), token(first + 1), token(first + 2)] {
        [Some(Token::Lt), ..] => ("asc", 1),
        [Some(Token::Gt), ..] => ("desc", 1),
        // Texts by their bytes, as they always are.
        [Some(Token::CustomBinaryOperator(sign)), ..] if sign == "~<~" => ("asc", 1),
        [Some(Token::CustomBinaryOperator(sign)), ..] if sign == "~>~" => ("desc", 1),
        [Some(other @ (Token::Eq | Token::Neq | Token::LtEq | Token::GtEq)), ..] => {
            let text = format!("operator {other} is not a valid ordering operator");
            let hint =
                "Ordering operators must be \"<\" or \">\" members of btree operator families.";
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text).with_hint(hint));
        }
        _ => return Ok(()),
    };
    let end = first + length + usize::from(called);
    tokens.splice(at..at + end, [word(direction)]);
    Ok(())
}

/// INCLUDE of a constraint, which sqlparser does not know. A primary key's index is the table,
/// which has all columns; behind a unique key's columns stand those that are included, marked.
fn constraint_include(tokens: &mut Tokens, at: usize) {
    let between = at > 0 && is_token(tokens, at - 1, &Token::RParen);
    if !between || !is_token(tokens, at + 1, &Token::LParen) {
        return;
    }
    let Some(close) = closing(tokens, at + 1) else { return };
    let mut open = at - 1;
    let mut depth = 0usize;
    while open > 0 {
        match tokens[open].token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        open -= 1;
    }
    let primary = open > 1 && is(tokens, open - 1, "key") && is(tokens, open - 2, "primary");
    let ends = |words: &[&str]| {
        let start = open.checked_sub(words.len());
        start.is_some_and(|start| (start..).zip(words).all(|(at, word)| is(tokens, at, word)))
    };
    let unique = ends(&["unique"])
        || ends(&["unique", "nulls", "distinct"])
        || ends(&["unique", "nulls", "not", "distinct"]);
    if !primary && !unique {
        return;
    }
    let names: Tokens = tokens.drain(at..=close).collect();
    if unique {
        let marked = names[2..names.len() - 1].iter().filter_map(|t| match &t.token {
            Token::Word(w) => {
                let name = match w.quote_style {
                    Some(_) => w.value.clone(),
                    None => w.value.to_ascii_lowercase(),
                };
                Some(wrap(Token::make_word(&format!("{INCLUDED}{name}"), Some('"'))))
            }
            _ => None,
        });
        let marked: Tokens = marked.flat_map(|name| [wrap(Token::Comma), name]).collect();
        tokens.splice(at - 1..at - 1, marked);
    }
}

/// What stands before the name of an included column. No name that can be typed has that character.
const INCLUDED: &str = "\0include ";

/// The columns of a unique key, and the names of those that are included.
pub fn take_included(columns: &[ast::IndexColumn]) -> (Vec<ast::IndexColumn>, Vec<String>) {
    let included = |column: &ast::IndexColumn| match &column.column.expr {
        ast::Expr::Identifier(ident) => ident.value.strip_prefix(INCLUDED).map(str::to_string),
        _ => None,
    };
    let key = columns.iter().filter(|column| included(column).is_none()).cloned().collect();
    (key, columns.iter().filter_map(included).collect())
}

/// `interval(2) '1.234'`, whose digits the parser loses: `'1.234'::interval(2)`.
fn rounded_interval(tokens: &mut Tokens, at: usize) {
    let Some(end) = closing(tokens, at + 1) else { return };
    let text = tokens.get(end + 1).map(|t| &t.token);
    if matches!(text, Some(Token::SingleQuotedString(_))) {
        let text = tokens.remove(end + 1);
        tokens.splice(at..at, [text, wrap(Token::DoubleColon)]);
    }
}

/// `((SELECT a) UNION ..)`, which is no expression to the parser: `(SELECT a UNION ..)`. Only where
/// the parentheses of the first query mean nothing.
fn first_of_set(tokens: &mut Tokens, at: usize) {
    let open = is_token(tokens, at, &Token::LParen) && is_token(tokens, at + 1, &Token::LParen);
    if !open || !is(tokens, at + 2, "select") {
        return;
    }
    let Some(end) = closing(tokens, at + 1) else { return };
    const SETS: [&str; 3] = ["union", "intersect", "except"];
    const ENDS: [&str; 5] = ["order", "limit", "offset", "fetch", "for"];
    let mut depth = 0i32;
    let bare = tokens[at + 2..end].iter().all(|t| {
        match t.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth > 0 || !SETS.iter().chain(&ENDS).any(|word| token_is(&t.token, word))
    });
    if bare && SETS.iter().any(|word| is(tokens, end + 1, word)) {
        tokens.remove(end);
        tokens.remove(at + 1);
    }
}

/// `GENERATED .. AS IDENTITY (BIT_REVERSED_POSITIVE)`.
fn reversed_identity(tokens: &[TokenWithSpan], at: usize) -> SqlResult<()> {
    let open = tokens[..at].iter().rposition(|t| t.token == Token::LParen);
    if !open.is_some_and(|open| open > 0 && is(tokens, open - 1, "identity")) {
        return Ok(());
    }
    Err(SqlError::unsupported("an identity column of kind BIT_REVERSED_POSITIVE").with_hint(
        "Use CREATE SEQUENCE s BIT_REVERSED_POSITIVE, and a column with DEFAULT nextval('s').",
    ))
}

fn trailing_comma(tokens: &mut Tokens, at: &mut usize) {
    if *at > 0 && is_token(tokens, *at - 1, &Token::Comma) {
        tokens.remove(*at - 1);
        *at -= 1;
    }
}

/// `SELECT AS STRUCT items`: one row value.
fn select_as_struct(tokens: &mut Tokens, at: usize) -> SqlResult<()> {
    if !(is(tokens, at + 1, "as") && is(tokens, at + 2, "struct")) {
        return Ok(());
    }
    let mut depth = 0i32;
    let start = at + 3;
    let end = (start..tokens.len()).find(|n| match &tokens[*n].token {
        Token::LParen | Token::LBracket => {
            depth += 1;
            false
        }
        Token::RParen | Token::RBracket => {
            depth -= 1;
            depth < 0
        }
        t => depth == 0 && token_is(t, "from"),
    });
    let end = end.unwrap_or(tokens.len());
    let items: Tokens = tokens.drain(start..end).collect();
    tokens.drain(at + 1..start);
    let whole = items.len() == 3
        && is_word(&items, 0)
        && items[1].token == Token::Period
        && items[2].token == Token::Mul;
    let row = if whole {
        // As an argument it is the row, whatever columns are called. The name alone would be the
        // column of that name.
        let name = items[0].clone();
        let mut row = vec![word("coalesce"), wrap(Token::LParen)];
        row.extend(items);
        row.extend([wrap(Token::RParen), word("as"), name]);
        row
    } else {
        let mut row = vec![word("row"), wrap(Token::LParen)];
        row.extend(without_names(items)?);
        row.push(wrap(Token::RParen));
        row
    };
    tokens.splice(at + 1..at + 1, row);
    Ok(())
}

/// `STRUCT(a AS x, b)` as `ROW(a, b)`.
fn one_struct(tokens: &mut Tokens, at: usize) -> SqlResult<()> {
    let Some(end) = closing(tokens, at + 1) else { return Ok(()) };
    let items: Tokens = tokens.drain(at + 2..end).collect();
    tokens.splice(at + 2..at + 2, without_names(items)?);
    tokens[at] = word("row");
    Ok(())
}

/// Items of a STRUCT without their names: rows have none.
fn without_names(items: Tokens) -> SqlResult<Tokens> {
    if items.len() == 1 && items[0].token == Token::Mul {
        return Err(SqlError::unsupported("SELECT AS STRUCT *")
            .with_hint("Name the table: SELECT AS STRUCT t.* FROM t."));
    }
    let mut out = Tokens::new();
    let mut depth = 0i32;
    let mut items = items.into_iter().peekable();
    while let Some(t) = items.next() {
        match &t.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth -= 1,
            _ if depth == 0 && token_is(&t.token, "as") => {
                items.next();
                continue;
            }
            _ => {}
        }
        out.push(t);
    }
    if out.last().is_some_and(|t| t.token == Token::Comma) {
        out.pop();
    }
    Ok(out)
}

/// `x [NOT] IN UNNEST(array)` as `x = ANY (array)`, `x <> ALL (array)`.
fn in_unnest(tokens: &mut Tokens, at: usize) {
    if at == 0 || !is(tokens, at - 1, "in") || !is_token(tokens, at + 1, &Token::LParen) {
        return;
    }
    if at > 1 && is(tokens, at - 2, "not") {
        tokens.splice(at - 2..=at, [wrap(Token::Neq), word("all")]);
        // The place that comes next is the same.
        tokens.insert(at, wrap(Token::LParen));
        tokens.remove(at + 1);
    } else {
        tokens.splice(at - 1..=at, [wrap(Token::Eq), word("any")]);
    }
}

/// `THEN RETURN` of a statement that writes: outside of CASE.
fn then_return(tokens: &mut Tokens, at: usize) {
    let writes = ["insert", "update", "delete", "with"].iter().any(|w| is(tokens, 0, w));
    let open = |w: &str| tokens[..at].iter().filter(|t| token_is(&t.token, w)).count();
    if writes && is(tokens, at + 1, "return") && open("case") == open("end") {
        tokens.splice(at..at + 2, [word("returning")]);
    }
}

fn next_value(tokens: &mut Tokens, at: usize) -> SqlResult<()> {
    if !is_token(tokens, at + 1, &Token::LParen) || !is(tokens, at + 2, "sequence") {
        return Ok(());
    }
    let Some(end) = closing(tokens, at + 1) else { return Ok(()) };
    let mut c = Cursor::new(tokens[at + 3..end].to_vec());
    let name: Vec<String> = c.name()?.iter().map(|part| quote_ident(part)).collect();
    c.expect_end()?;
    let name = wrap(Token::SingleQuotedString(name.join(".")));
    tokens.splice(at..end, [word("nextval"), wrap(Token::LParen), name]);
    Ok(())
}

/// SQL SECURITY of a view.
fn security(tokens: &mut Tokens, at: usize) {
    let view = is(tokens, 0, "create") && tokens.iter().take(4).any(|t| token_is(&t.token, "view"));
    let whose = is(tokens, at + 2, "invoker") || is(tokens, at + 2, "definer");
    if view && is(tokens, at + 1, "security") && whose && is(tokens, at + 3, "as") {
        tokens.drain(at..at + 3);
    }
}

/// `FAMILY [name] (columns)` among the items of CREATE TABLE.
fn families(tokens: &mut Tokens, notices: &mut Vec<String>) {
    let mut at = 1;
    while at < tokens.len() {
        let first = is_token(tokens, at - 1, &Token::LParen);
        let item = (first || is_token(tokens, at - 1, &Token::Comma)) && is(tokens, at, "family");
        let open = at + 1 + usize::from(is_word(tokens, at + 1));
        // A column of this name has numbers in its type's parentheses.
        let columns = is_token(tokens, open, &Token::LParen) && is_word(tokens, open + 1);
        let end = if item && columns { closing(tokens, open) } else { None };
        // What goes on behind it, or is checked, is a call of the function.
        let alone = |end: usize| {
            is_token(tokens, end + 1, &Token::Comma) || is_token(tokens, end + 1, &Token::RParen)
        };
        let checked = first && at > 1 && is(tokens, at - 2, "check");
        let end = end.filter(|end| alone(*end) && !checked);
        match end {
            Some(end) => {
                let start = if first { at } else { at - 1 };
                let more = first && is_token(tokens, end + 1, &Token::Comma);
                tokens.drain(start..=end + usize::from(more));
                notices.push("column families are ignored: a row is stored as a whole".into());
                at = start.max(1);
            }
            None => at += 1,
        }
    }
    notices.dedup();
}

/// `AS (expression) [STORED | VIRTUAL]` of a column, at this depth of parentheses.
fn generated(tokens: &mut Tokens, at_depth: i32) {
    let mut depth = 0i32;
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            // What follows is the query that fills the table.
            _ if depth < at_depth && is(tokens, at, "as") => return,
            _ if depth == at_depth
                && is(tokens, at, "as")
                && at > 0
                && !is(tokens, at - 1, "always")
                && is_token(tokens, at + 1, &Token::LParen) =>
            {
                let Some(end) = closing(tokens, at + 1) else { return };
                // Values of virtual columns are kept too, and are the same.
                match is(tokens, end + 1, "virtual") {
                    true => tokens[end + 1] = word("stored"),
                    false if is(tokens, end + 1, "stored") => {}
                    false => tokens.insert(end + 1, word("stored")),
                }
                tokens.splice(at..at, ["generated", "always"].map(word));
                at = end + 3;
            }
            _ => {}
        }
        at += 1;
    }
}

/// GoogleSQL's `ALTER COLUMN c type [NOT NULL]`: without NOT NULL, the column takes NULLs.
fn column_types(tokens: &mut Tokens) -> SqlResult<()> {
    let Some(at) = tokens
        .windows(2)
        .position(|w| token_is(&w[0].token, "alter") && token_is(&w[1].token, "column"))
    else {
        return Ok(());
    };
    let ty = at + 3;
    let known = ["type", "set", "drop", "add", "restart", "reset"];
    if ty >= tokens.len() || !is_word(tokens, ty) || known.iter().any(|w| is(tokens, ty, w)) {
        return Ok(());
    }
    let mut c = Cursor::new(tokens[ty..].to_vec());
    c.with_parser(|p| p.parse_data_type())?;
    let end = ty + c.at();
    let required = is(tokens, end, "not") && is(tokens, end + 1, "null");
    let last = end + if required { 2 } else { 0 };
    if last < tokens.len() {
        return Ok(());
    }
    tokens.truncate(end);
    let column = tokens[at + 2].clone();
    let verb = if required { "set" } else { "drop" };
    tokens.push(wrap(Token::Comma));
    tokens.extend([word("alter"), word("column"), column]);
    tokens.extend([verb, "not", "null"].map(word));
    tokens.insert(ty, word("type"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_script;

    fn shown(sql: &str) -> String {
        let mut t = crate::lexical::tokens(sql).unwrap();
        rewrite(&mut t).unwrap();
        t.iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn queries() {
        for (sql, want) in [
            ("select a, from t", "select a from t"),
            (
                "select array(select as struct c.* from c), from t",
                "select array ( select coalesce ( c . * ) as c from c ) from t",
            ),
            (
                "select as struct a as x, f(b, c) as y from t",
                "select row ( a , f ( b , c ) ) from t",
            ),
            ("select struct(1 as a, 'x')", "select row ( 1 , 'x' )"),
            ("select 1 where a in unnest([1, 2])", "select 1 where a = any ( [ 1 , 2 ] )"),
            ("select 1 where a not in unnest(b) and c", "select 1 where a <> all ( b ) and c"),
            ("select * from t@{force_index=i} where x", "select * from t where x"),
            ("select * from s.t@primary join u@i on true", "select * from s . t join u on true"),
            ("@{optimizer_version=2} select 1", "select 1"),
            ("select @ -1, a from t", "select @ - 1 , a from t"),
            ("select `a`, '`b`' from `My Table`", "select \"a\" , '`b`' from \"my table\""),
            (
                "select case when a then return end from t",
                "select case when a then return end from t",
            ),
        ] {
            assert_eq!(shown(sql), want, "{sql}");
        }
    }

    #[test]
    fn statements() {
        for (sql, want) in [
            (
                "insert or update t (a) values (1) then return a",
                "insert or replace into t ( a ) values ( 1 ) returning a",
            ),
            ("insert or ignore into t values (1)", "insert or ignore into t values ( 1 )"),
            ("upsert into t values (1)", "insert or replace into t values ( 1 )"),
            (
                "update t set a = case when b then c end then return a",
                "update t set a = case when b then c end returning a",
            ),
            ("select get_next_sequence_value(sequence My.Seq)", "select nextval ( 'my.seq' )"),
            (
                "create table t (a int64, family f (a), b int64 as (a + 1))",
                "create table t ( a int64 , b int64 generated always as ( a + 1 ) stored )",
            ),
            (
                "create table t (family (a, b), a int as (b) virtual, family numeric(10, 2))",
                "create table t ( a int generated always as ( b ) stored , family numeric ( 10 \
                    , 2 ) )",
            ),
            ("create table t (a int) as (select 1)", "create table t ( a int ) as ( select 1 )"),
            (
                "alter table t alter column a string(9) not null",
                "alter table t alter column a type string ( 9 ) , alter column a set not null",
            ),
            ("alter table t alter column a type text", "alter table t alter column a type text"),
            ("create view v sql security invoker as select 1", "create view v as select 1"),
        ] {
            assert_eq!(shown(sql), want, "{sql}");
        }
        assert_eq!(
            parse_script("insert or replace into t values (1)").unwrap_err().state().0,
            "0A000"
        );
        let statements = parse_script("select 1 from t@i; select 2").unwrap();
        assert_eq!((statements[0].notices.len(), statements[1].notices.len()), (1, 0));
    }

    #[test]
    fn backticks_in_quotes_stay() {
        let same = |sql: &str| assert_eq!(plain_backticks(sql).as_deref(), Some(sql));
        same("select '`a`', \"`b`\", $x$`c`$x$ -- `d`\n, /* `e` */ '`'");
        assert_eq!(plain_backticks("select `A`.`b`").as_deref(), Some("select \"a\".\"b\""));
        assert_eq!(plain_backticks("select 1"), None);
    }
}
