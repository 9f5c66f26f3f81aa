//! Splitting a script into statements and routing each to its reader.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use braid_types::{Place, SqlError, SqlResult, SqlState};
use braid_walk::WalkMut;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

use crate::cursor::{Cursor, token_is};
use crate::rewrites;
use crate::table::create;
use crate::{
    Kind, MAX_CONNECTIVES, MAX_DEPTH, MAX_OPERATORS, MAX_SCRIPT_BYTES, Notice, Start, Statement,
    insert, lexical, reserved, spellings, statement,
};

/// Parses all statements of a text.
///
/// # Errors
/// 42601 with the position in characters; 54001 over the limits.
pub fn parse_script(sql: &str) -> SqlResult<Vec<Statement>> {
    if sql.len() > MAX_SCRIPT_BYTES {
        return Err(SqlError::new(
            SqlState::STATEMENT_TOO_COMPLEX,
            format!("statement of {} bytes exceeds the limit of {MAX_SCRIPT_BYTES}", sql.len()),
        ));
    }
    let place = Places::new(sql);
    let mut tokens = lexed(sql).map_err(|e| place.fix(e))?;
    let mut told = rewrites::lexemes::long_names::cut(&mut tokens).into_iter().peekable();
    let tokens = reshaped(tokens).map_err(|e| place.fix(e))?;
    let mut out = Vec::new();
    let mut chunk = Vec::new();
    let mut start = 0;
    let mut here = Start::FIRST;
    for t in tokens {
        if t.token == Token::SemiColon {
            let end = place.byte(t.span.start);
            let tokens = std::mem::take(&mut chunk);
            let own = std::iter::from_fn(|| told.next_if(|(at, _)| *at < t.span.start));
            out.push(place.statement(tokens, start..end, here, own.collect())?);
            here = here.behind(&sql[start..=end]);
            start = end + 1;
        } else {
            chunk.push(t);
        }
    }
    if !chunk.is_empty() {
        out.push(place.statement(chunk, start..sql.len(), here, told.collect())?);
    } else if out.is_empty() {
        out.push(parse_tokens(chunk, "")?);
    }
    Ok(out)
}

/// The tokens of a text as sqlparser takes them.
pub(crate) fn tokenize(sql: &str) -> SqlResult<Vec<TokenWithSpan>> {
    reshaped(lexed(sql)?)
}

fn lexed(sql: &str) -> SqlResult<Vec<TokenWithSpan>> {
    lexical::tokens(sql).map_err(|e| {
        let error = SqlError::syntax(unfinished(&e.message));
        let error = match e.message.as_str() {
            "invalid Unicode escape" => {
                error.with_hint("Unicode escapes must be \\XXXX or \\+XXXXXX.")
            }
            message if message.starts_with("invalid byte") => {
                SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
            }
            _ => error,
        };
        error.or_at(e.location.line, e.location.column)
    })
}

fn reshaped(mut out: Vec<TokenWithSpan>) -> SqlResult<Vec<TokenWithSpan>> {
    check_nesting(&out)?;
    spellings::pipes::rewrite(&mut out)?;
    rewrite_words(&mut out);
    rewrites::views::recursive::rewrite(&mut out);
    lexical::mark_scalar_queries(&mut out);
    lexical::plain_trims(&mut out);
    lexical::plain_substrings(&mut out);
    lexical::mark_symmetric(&mut out);
    lexical::plain_stars(&mut out);
    lexical::plain_nulls(&mut out);
    lexical::plain_arrays(&mut out);
    lexical::plain_likes(&mut out);
    rewrites::quantified::rewrite(&mut out);
    rewrites::only::rewrite(&mut out);
    rewrites::current_of::rewrite(&mut out);
    rewrites::join_alias::rewrite(&mut out);
    lexical::drop_idle_locks(&mut out)?;
    lexical::fill_selections(&mut out);
    rewrites::exclusion::rewrite(&mut out);
    spellings::parentheses::rewrite(&mut out);
    rewrites::relations::rewrite(&mut out);
    rewrites::frame_bounds::rewrite(&mut out);
    rewrites::grouping::rewrite(&mut out);
    rewrites::collations::rewrite(&mut out);
    rewrites::variadic::rewrite(&mut out);
    rewrites::rows_from::rewrite(&mut out);
    lexical::named_column_lists(&mut out);
    rewrites::fetch_first::rewrite(&mut out)?;
    rewrites::recursion::rewrite(&mut out);
    lexical::move_locks(&mut out);
    lexical::split_locks(&mut out);
    Ok(out)
}

fn unfinished(message: &str) -> String {
    if message.contains("Unterminated") || message.contains("Expected close") {
        format!("unterminated quoted text: {message}")
    } else if ["syntax error", "trailing junk", "invalid Unicode", "invalid byte", "UESCAPE must"]
        .iter()
        .any(|start| message.starts_with(start))
    {
        message.to_string()
    } else {
        format!("syntax error: {message}")
    }
}

/// How deep the parsed statement can be, judged by its tokens: reading, binding and dropping it
/// recurse as deep, and so it must fit the stack of a connection's thread.
fn check_nesting(tokens: &[TokenWithSpan]) -> SqlResult<()> {
    // Operators in a row, those of the levels around included, for each open bracket.
    let mut levels = vec![Chain::default()];
    for t in tokens {
        let last = levels.len() - 1;
        let outer = last.checked_sub(1).map_or(Chain::default(), |outer| levels[outer]);
        let chain = &mut levels[last];
        match &t.token {
            Token::LParen | Token::LBracket => {
                chain.operators += usize::from(t.token == Token::LBracket);
                let inner = *chain;
                levels.push(inner);
            }
            Token::RParen | Token::RBracket if last > 0 => drop(levels.pop()),
            Token::Comma | Token::SemiColon => *chain = outer,
            Token::Word(w) if w.quote_style.is_none() => chain.word(w.keyword),
            Token::Word(_)
            | Token::Number(..)
            | Token::Whitespace(_)
            | Token::Period
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::Placeholder(_)
            | Token::RParen
            | Token::RBracket => {}
            _ => chain.operators += 1,
        }
        let chain = levels.last().copied().unwrap_or_default();
        if levels.len() > MAX_DEPTH + 1 {
            return Err(too_deep());
        }
        if chain.operators > MAX_OPERATORS || chain.connectives > MAX_CONNECTIVES {
            return Err(too_long(chain.operators > MAX_OPERATORS));
        }
    }
    Ok(())
}

/// Operators in a row.
#[derive(Clone, Copy, Default)]
struct Chain {
    operators: usize,
    connectives: usize,
}

impl Chain {
    fn word(&mut self, word: Keyword) {
        match word {
            Keyword::AND
            | Keyword::OR
            | Keyword::UNION
            | Keyword::INTERSECT
            | Keyword::EXCEPT
            | Keyword::JOIN => {
                self.operators = 0;
                self.connectives += 1;
            }
            Keyword::SELECT
            | Keyword::FROM
            | Keyword::WHERE
            | Keyword::ON
            | Keyword::WHEN
            | Keyword::THEN
            | Keyword::ELSE
            | Keyword::END => self.operators = 0,
            Keyword::NOT
            | Keyword::IS
            | Keyword::IN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::SIMILAR
            | Keyword::BETWEEN
            | Keyword::AT
            | Keyword::COLLATE
            | Keyword::NOTNULL
            | Keyword::OPERATOR
            | Keyword::OVERLAPS => self.operators += 1,
            _ => {}
        }
    }
}

fn too_long(operators: bool) -> SqlError {
    let (what, max) = match operators {
        true => ("operators", MAX_OPERATORS),
        false => ("AND, OR, UNION and JOIN", MAX_CONNECTIVES),
    };
    SqlError::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        format!("statement has more than {max} {what} in a row"),
    )
    .with_hint("Use IN or = ANY with an array, parentheses or several statements.")
}

fn too_deep() -> SqlError {
    SqlError::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        format!("statement is nested deeper than {MAX_DEPTH} levels"),
    )
}

/// Small differences between sqlparser's grammar and PostgreSQL's that a token rewrite settles.
fn rewrite_words(tokens: &mut Vec<TokenWithSpan>) {
    let mut i = 0;
    while i < tokens.len() {
        let is = |n: usize, w: &str| tokens.get(i + n).is_some_and(|t| token_is(&t.token, w));
        if is(0, "for") && is(1, "no") && is(2, "key") && is(3, "update") {
            tokens.drain(i + 1..i + 3);
        } else if is(0, "for") && is(1, "key") && is(2, "share") {
            tokens.remove(i + 1);
        } else if is(0, "collation")
            && is(1, "for")
            && tokens.get(i + 2).is_some_and(|t| t.token == Token::LParen)
        {
            // COLLATION FOR (..) is the call of a function.
            tokens[i].token = Token::make_word("pg_collation_for", None);
            tokens.remove(i + 1);
        } else if (is(0, "string") || is(0, "bytes"))
            && tokens.get(i + 1).is_some_and(|t| t.token == Token::LParen)
            && is(2, "max")
            && tokens.get(i + 3).is_some_and(|t| t.token == Token::RParen)
        {
            tokens.drain(i + 1..i + 4);
        }
        i += 1;
    }
}

/// An unquoted word token.
pub(crate) fn word(text: &str) -> TokenWithSpan {
    wrap(Token::make_word(text, None))
}

pub(crate) fn wrap(token: Token) -> TokenWithSpan {
    TokenWithSpan::new(token, Span::empty())
}

fn parse_tokens(mut tokens: Vec<TokenWithSpan>, text: &str) -> SqlResult<Statement> {
    crate::table::identity::order_options(&mut tokens)?;
    crate::table::key_storage::take_out(&mut tokens)?;
    crate::table::null_keys::rewrite(&mut tokens);
    rewrites::no_inherit::rewrite(&mut tokens);
    rewrites::set_columns::rewrite(&mut tokens)?;
    rewrites::nested_joins::rewrite(&mut tokens)?;
    rewrites::whole_rows::rewrite(&mut tokens);
    let told = |message| Notice { state: SqlState::SUCCESSFUL_COMPLETION, message };
    let notices = spellings::rewrite(&mut tokens)?.into_iter().map(told).collect();
    let as_of = lift_as_of(&mut tokens)?;
    let kind = parse_kind(tokens, text)?;
    reserved::check(&kind)?;
    let (kind, as_of) = (Arc::new(kind), as_of.map(Arc::new));
    Ok(Statement { text: Arc::from(text), kind, as_of, notices, start: Start::default() })
}

/// Parses the statement that starts here (after EXPLAIN, PREPARE .. AS).
pub(crate) fn parse_nested(tokens: Vec<TokenWithSpan>) -> SqlResult<Statement> {
    let text: Vec<String> = tokens.iter().map(|t| t.token.to_string()).collect();
    parse_tokens(tokens, &text.join(" "))
}

fn parse_kind(tokens: Vec<TokenWithSpan>, text: &str) -> SqlResult<Kind> {
    if tokens.is_empty() {
        return Ok(Kind::Empty);
    }
    let into = create::select_into(&tokens);
    let mut c = Cursor::new(into.unwrap_or(tokens));
    if let Some(kind) = statement::statement(&mut c)? {
        return Ok(kind);
    }
    if let Some(kind) = create::statement(&mut c)? {
        return Ok(kind);
    }
    let mut tokens = c.rest();
    if token_is(&tokens[0].token, "table") && tokens.len() > 1 {
        // TABLE t = SELECT * FROM t
        tokens.splice(0..1, [word("select"), wrap(Token::Mul), word("from")]);
    }
    if token_is(&tokens[0].token, "drop") && tokens.len() > 3 {
        tokens.retain(|t| !token_is(&t.token, "concurrently"));
    }
    rewrites::merge::rewrite(&mut tokens)?;
    rewrites::views::check_option::rewrite(&mut tokens)?;
    rewrites::subscripts::rewrite(&mut tokens);
    let clauses = insert::lift(&mut tokens)?;
    let locks = lexical::holds_locks(&tokens);
    let statement = parse_all(tokens, |p| p.parse_statement())?;
    let _ = text;
    Ok(match statement {
        ast::Statement::Insert(i) => Kind::Insert(Box::new(i), Box::new(clauses)),
        s if locks => Kind::Sql(Box::new(rewrites::locking::move_into_with(s)?)),
        s => Kind::Sql(Box::new(s)),
    })
}

/// Cuts `AS OF SYSTEM TIME expr` out, wherever it stands outside of quotes.
fn lift_as_of(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<Option<ast::Expr>> {
    let Some(at) = tokens.windows(4).position(|w| {
        ["as", "of", "system", "time"].iter().zip(w).all(|(word, t)| token_is(&t.token, word))
    }) else {
        return Ok(None);
    };
    let mut depth = 0usize;
    let mut end = at + 4;
    while let Some(t) = tokens.get(end) {
        match &t.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => break,
            Token::Word(w) if depth == 0 && ends_as_of(w) => break,
            _ => {}
        }
        end += 1;
    }
    let mut lifted: Vec<_> = tokens.drain(at..end).collect();
    lifted.drain(..4);
    if lifted.is_empty() {
        return Err(SqlError::syntax("AS OF SYSTEM TIME needs a time"));
    }
    parse_all(lifted, |p| p.parse_expr()).map(Some)
}

fn ends_as_of(w: &Word) -> bool {
    w.quote_style.is_none()
        && matches!(
            w.keyword,
            Keyword::WHERE
                | Keyword::ORDER
                | Keyword::GROUP
                | Keyword::HAVING
                | Keyword::WINDOW
                | Keyword::LIMIT
                | Keyword::OFFSET
                | Keyword::FETCH
                | Keyword::FOR
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::READ
                | Keyword::ISOLATION
        )
}

/// Parses all tokens with one of sqlparser's entries.
pub(crate) fn parse_all<T: WalkMut>(
    tokens: Vec<TokenWithSpan>,
    f: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> SqlResult<T> {
    let mut c = Cursor::new(tokens);
    let out = c.with_parser(f)?;
    c.expect_end()?;
    Ok(out)
}

/// Parses one expression, for instance a stored DEFAULT.
pub fn parse_expr(sql: &str) -> SqlResult<ast::Expr> {
    parse_all(tokenize(sql)?, |p| p.parse_expr())
}

/// Parses one query, for instance a stored view.
pub fn parse_query(sql: &str) -> SqlResult<Box<ast::Query>> {
    parse_all(tokenize(sql)?, |p| p.parse_query())
}

/// The SQL error for sqlparser's; its position is a line and a column until [`Places::fix`].
pub(crate) fn from_parser(e: &ParserError) -> SqlError {
    match e {
        ParserError::RecursionLimitExceeded => too_deep(),
        ParserError::TokenizerError(m) | ParserError::ParserError(m) => parser_error(m),
    }
}

pub(crate) fn parser_error(m: &str) -> SqlError {
    let (body, place) = match m.rfind(" at Line: ") {
        Some(i) => (&m[..i], Some(&m[i + 10..])),
        None => (m, None),
    };
    let mut error = match body.rsplit_once("found: ") {
        Some((_, "EOF")) => SqlError::syntax("syntax error at end of input"),
        Some((_, found)) => SqlError::syntax(format!("syntax error at or near \"{found}\"")),
        None => SqlError::syntax(format!("syntax error: {body}")),
    };
    if let Some(expected) = body.strip_prefix("Expected: ").and_then(|b| b.rsplit_once(", found: "))
    {
        error = error.with_detail(format!("Expected: {}.", expected.0));
    }
    if let Some((line, column)) = place.and_then(|p| p.split_once(", Column: "))
        && let (Ok(line), Ok(column)) = (line.parse(), column.parse())
    {
        error = error.or_at(line, column);
    }
    error
}

/// Finds bytes and characters by line and column.
pub(crate) struct Places<'a> {
    sql: &'a str,
    /// (byte, character) of each line's start.
    lines: Vec<(usize, usize)>,
    /// What was found last, with its byte: the next is often on the same line.
    last: Cell<(Location, usize)>,
}

impl Places<'_> {
    pub(crate) fn new(sql: &str) -> Places<'_> {
        let mut lines = vec![(0, 0)];
        for (chars, (byte, c)) in sql.char_indices().enumerate() {
            if c == '\n' {
                lines.push((byte + 1, chars + 1));
            }
        }
        Places { sql, lines, last: Cell::new((Location::new(1, 1), 0)) }
    }

    pub(crate) fn byte(&self, at: Location) -> usize {
        let (last, known) = self.last.get();
        let (start, first) = match last.line == at.line && last.column <= at.column {
            true => (known, last.column),
            false => {
                let line = (at.line as usize).saturating_sub(1);
                (self.lines.get(line).unwrap_or(&(0, 0)).0, 1)
            }
        };
        let column = at.column.saturating_sub(first) as usize;
        let found = self.sql[start..].char_indices().nth(column);
        let byte = found.map_or(self.sql.len(), |(i, _)| start + i);
        self.last.set((at, byte));
        byte
    }

    /// The statement that these tokens are, of the script's bytes `within`, which begin `here`.
    fn statement(
        &self,
        tokens: Vec<TokenWithSpan>,
        within: Range<usize>,
        here: Start,
        told: Vec<rewrites::lexemes::long_names::Told>,
    ) -> SqlResult<Statement> {
        let all = &self.sql[within];
        let text = all.trim_start();
        let start = here.behind(&all[..all.len() - text.len()]);
        let mut statement = parse_tokens(tokens, text.trim_end()).map_err(|e| self.fix(e))?;
        if !told.is_empty() {
            let own = statement.notices.iter().cloned();
            statement.notices = told.into_iter().map(|(_, notice)| notice).chain(own).collect();
        }
        Ok(Statement { start, ..statement })
    }

    /// Turns a line and a column into a character position.
    fn fix(&self, e: SqlError) -> SqlError {
        let Some(&Place { line, column, .. }) = e.place() else { return e };
        let line = (line as usize).saturating_sub(1);
        let (_, chars) = *self.lines.get(line).unwrap_or(&(0, 0));
        e.with_position(chars + column as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_and_positions() {
        let s = parse_script("select 1; ; select ';' -- x;\n;").unwrap();
        assert_eq!(s.len(), 3);
        assert_eq!(&*s[0].text, "select 1");
        assert!(matches!(*s[1].kind, Kind::Empty));
        let e = parse_script("select 1;\nselect 1 2").unwrap_err();
        assert_eq!(e.state().0, "42601");
        assert!(e.position().unwrap() > 10, "{e:?}");
        assert_eq!(parse_script("selec 1").unwrap_err().position(), Some(1));
        assert!(matches!(*parse_script("").unwrap()[0].kind, Kind::Empty));
    }

    #[test]
    fn as_of_is_lifted() {
        let s = parse_script("select * from t as of system time '-10s' where a = 1").unwrap();
        assert!(s[0].as_of.is_some());
        for sql in [
            "begin as of system time '-10s'",
            "select 1 from t join u using (a) as of system time '-10s' where a = 1",
            "select sum(a) over w from t as of system time '-10s' window w as (order by a)",
        ] {
            assert!(parse_script(sql).unwrap()[0].as_of.is_some(), "{sql}");
        }
    }

    #[test]
    fn depth_is_limited() {
        let deep = format!("select {}1{}", "(".repeat(5000), ")".repeat(5000));
        assert_eq!(parse_script(&deep).unwrap_err().state().0, "54001");
    }
}
