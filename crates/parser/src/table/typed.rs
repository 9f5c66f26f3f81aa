//! `CREATE TABLE t OF type (column options, ..)`: its columns are those of a composite type.
//!
//! ```text
//!   CREATE TABLE t OF s.place                    CREATE TABLE t ()
//!   CREATE TABLE t OF place (street NOT NULL)    CREATE TABLE t (street text NOT NULL)
//! ```
//! sqlparser has no form for it: the type is kept beside what it reads, and a column that says more
//! than its name has some type there.

use braid_types::SqlResult;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::Name;
use crate::cursor::{Cursor, at_commas, closing, token_is};
use crate::script::{word, wrap};

/// Takes the type out of CREATE TABLE; `None` if there is none.
pub(super) fn lift(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<Option<Name>> {
    let is = |at: usize, w: &str| tokens.get(at).is_some_and(|t| token_is(&t.token, w));
    let Some(table) = (1..4).find(|at| is(*at, "table")) else { return Ok(None) };
    let mut c = Cursor::new(tokens[table + 1..].to_vec());
    c.take(&["if", "not", "exists"]);
    if c.name().is_err() || !c.looking_at(&["of"]) {
        return Ok(None);
    }
    let from = table + 1 + c.at();
    c.take(&["of"]);
    let ty = c.name()?;
    let to = table + 1 + c.at();
    tokens.drain(from..to);
    let open = tokens.get(from).is_some_and(|t| t.token == Token::LParen);
    match closing(tokens, from).filter(|_| open) {
        Some(close) => {
            let items = items(&tokens[from + 1..close]);
            tokens.splice(from + 1..close, items);
        }
        None => drop(tokens.splice(from..from, [wrap(Token::LParen), wrap(Token::RParen)])),
    }
    Ok(Some(ty))
}

/// Columns with some type, and constraints.
fn items(body: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    const CONSTRAINTS: [&str; 6] =
        ["constraint", "primary", "unique", "check", "foreign", "exclude"];
    let mut out = Vec::new();
    for mut item in at_commas(body) {
        if !out.is_empty() {
            out.push(wrap(Token::Comma));
        }
        let is = |at: usize, w: &str| item.get(at).is_some_and(|t| token_is(&t.token, w));
        if !item.is_empty() && !CONSTRAINTS.iter().any(|w| is(0, w)) {
            let options = if is(1, "with") && is(2, "options") { 3 } else { 1 };
            item.splice(1..options, [word("text")]);
        }
        out.extend(item);
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::{Kind, parse_script};

    #[test]
    fn a_table_of_a_type_is_read() {
        let read = |sql: &str| match &*parse_script(sql).unwrap()[0].kind {
            Kind::CreateTable(t) => (t.of.clone(), t.base.to_string()),
            k => panic!("{k:?}"),
        };
        let of = |parts: &[&str]| Some(parts.iter().map(|p| p.to_string()).collect::<Vec<_>>());
        for (sql, ty, base) in [
            ("create table t of s.\"P\"", of(&["s", "P"]), "CREATE TABLE t ()"),
            (
                "create table if not exists s.t of p (a with options not null, b default 1, \
                 constraint k check (a > 0))",
                of(&["p"]),
                "CREATE TABLE IF NOT EXISTS s.t (a TEXT NOT NULL, b TEXT DEFAULT 1, \
                 CONSTRAINT k CHECK (a > 0))",
            ),
            ("create table t (a int)", None, "CREATE TABLE t (a INT)"),
        ] {
            assert_eq!(read(sql), (ty, base.to_string()), "{sql}");
        }
        assert!(parse_script("create table t of").is_err());
    }
}
