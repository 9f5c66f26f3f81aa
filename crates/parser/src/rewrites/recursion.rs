//! SEARCH and CYCLE of WITH RECURSIVE, for which sqlparser has no form.
//!
//! ```text
//!   t (a, b) AS (..) SEARCH DEPTH FIRST BY a SET o     t (a, b, "\0search depth ..") AS (..)
//!   t AS (..) CYCLE a SET c USING p                    t ("\0cycle a set ..") AS (..)
//! ```
//! So the clauses travel as the name of a column behind the query's own; [`take_recursion`] takes
//! it off and reads it.

use braid_types::SqlResult;
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{Cursor, closing, token_is};
use crate::script::wrap;

const MARK: char = '\0';

/// SEARCH: a column that sorts the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// DEPTH FIRST, else BREADTH FIRST.
    pub depth: bool,
    /// By which columns.
    pub by: Vec<String>,
    /// The new column.
    pub set: String,
}

/// CYCLE: columns that tell a row which was there before on its way, and end that way.
#[derive(Clone, Debug, PartialEq)]
pub struct Cycle {
    /// What tells rows apart.
    pub columns: Vec<String>,
    /// The column that marks such a row.
    pub set: String,
    /// Its value there.
    pub to: ast::Expr,
    /// Its value in others.
    pub default: ast::Expr,
    /// The column of the way.
    pub using: String,
}

/// Both clauses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recursion {
    /// SEARCH.
    pub search: Option<Search>,
    /// CYCLE.
    pub cycle: Option<Cycle>,
}

/// Takes the clauses off the names of a query's columns.
///
/// # Errors
/// 42601.
pub fn take_recursion(names: &mut Vec<String>) -> SqlResult<Option<Recursion>> {
    let Some(text) = names.last().and_then(|name| name.strip_prefix(MARK)) else { return Ok(None) };
    let mut c = Cursor::new(crate::script::tokenize(text)?);
    let found = read(&mut c)?;
    c.expect_end()?;
    names.pop();
    Ok(Some(found))
}

fn read(c: &mut Cursor) -> SqlResult<Recursion> {
    let mut found = Recursion::default();
    if c.take(&["search"]) {
        let depth = c.take(&["depth"]);
        if !depth {
            c.expect(&["breadth"])?;
        }
        c.expect(&["first", "by"])?;
        let by = names(c)?;
        c.expect(&["set"])?;
        found.search = Some(Search { depth, by, set: c.ident()? });
    }
    if c.take(&["cycle"]) {
        let columns = names(c)?;
        c.expect(&["set"])?;
        let set = c.ident()?;
        let (to, default) = if c.take(&["to"]) {
            let to = c.expr_before(&[&["default"]])?;
            c.expect(&["default"])?;
            (to, c.expr_before(&[&["using"]])?)
        } else {
            let value = |yes| ast::Expr::value(ast::Value::Boolean(yes));
            (value(true), value(false))
        };
        c.expect(&["using"])?;
        found.cycle = Some(Cycle { columns, set, to, default, using: c.ident()? });
    }
    Ok(found)
}

fn names(c: &mut Cursor) -> SqlResult<Vec<String>> {
    let mut names = vec![c.ident()?];
    while c.take_token(&Token::Comma) {
        names.push(c.ident()?);
    }
    Ok(names)
}

/// Moves the clauses behind each query of WITH to its name.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at < tokens.len() {
        if let Some(name) = query(tokens, at) {
            let mut c = Cursor::new(tokens[at..].to_vec());
            if read(&mut c).is_ok() {
                let end = at + c.at();
                let clause = spaced(&tokens[at..end]);
                tokens.drain(at..end);
                mark(tokens, name, &clause);
            }
        }
        at += 1;
    }
}

/// The text of tokens.
pub(super) fn spaced(tokens: &[TokenWithSpan]) -> String {
    let mut out = String::new();
    for token in tokens.iter().map(|t| &t.token) {
        if !out.is_empty() && *token != Token::Comma {
            out.push(' ');
        }
        out.push_str(&token.to_string());
    }
    out
}

/// Where the name of a query of WITH ends, which ends itself before this place, where one of the
/// clauses begins.
fn query(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|t| token_is(&t.token, text));
    let searches = is(at, "search") && (is(at + 1, "depth") || is(at + 1, "breadth"));
    if tokens[at - 1].token != Token::RParen || !(searches || is(at, "cycle")) {
        return None;
    }
    let open = opening(tokens, at - 1)?;
    let mut before = open;
    if before > 0 && is(before - 1, "materialized") {
        before -= 1;
        before -= usize::from(before > 0 && is(before - 1, "not"));
    }
    let name = before.checked_sub(2)?;
    is(before - 1, "as").then_some(name)
}

/// The parenthesis that the one at `close` closes.
fn opening(tokens: &[TokenWithSpan], close: usize) -> Option<usize> {
    (0..close)
        .rev()
        .find(|open| tokens[*open].token == Token::LParen && closing(tokens, *open) == Some(close))
}

/// Writes the mark behind the name of a query, or behind the names of its columns.
fn mark(tokens: &mut Vec<TokenWithSpan>, name: usize, clause: &str) {
    let mark = wrap(Token::make_word(&format!("{MARK}{clause}"), Some('"')));
    match tokens[name].token {
        Token::RParen => {
            tokens.splice(name..name, [wrap(Token::Comma), mark]);
        }
        _ => {
            let list = [wrap(Token::LParen), mark, wrap(Token::RParen)];
            tokens.splice(name + 1..name + 1, list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(sql: &str) -> Vec<String> {
        let query = crate::parse_query(sql).unwrap();
        let ctes = query.with.unwrap().cte_tables;
        ctes[0].alias.columns.iter().map(|c| c.name.value.clone()).collect()
    }

    #[test]
    fn clauses_are_names_of_columns() {
        let mut names = columns(
            "with recursive t (a, b) as (select 1) search depth first by a, \"B\" set o \
             cycle a set c to 'y' default 'n' using p, u as (select 2) select 3",
        );
        let found = take_recursion(&mut names).unwrap().unwrap();
        assert_eq!(names, ["a", "b"]);
        let search = found.search.unwrap();
        assert_eq!(
            (search.depth, search.by.join(" "), search.set.as_str()),
            (true, "a B".into(), "o")
        );
        let cycle = found.cycle.unwrap();
        let names = [cycle.columns.join(" "), cycle.set, cycle.using];
        assert_eq!(names, ["a", "c", "p"]);
        assert_eq!([cycle.to, cycle.default].map(|e| e.to_string()), ["'y'", "'n'"]);
        let mut names = columns(
            "with recursive t as not materialized (select 1) cycle a set c using p select 3",
        );
        assert!(take_recursion(&mut names).unwrap().unwrap().search.is_none());
        assert!(names.is_empty());
    }

    #[test]
    fn other_words_stay() {
        let kept = "select * from (select 1) cycle";
        assert!(crate::parse_query(kept).is_ok());
        let broken = "with recursive t (a) as (select 1) search depth first by a select 1";
        assert_eq!(crate::parse_query(broken).unwrap_err().state().0, "42601");
    }
}
