//! How PostgreSQL stores the index of a key, and rows of a table, which nothing here goes by: read,
//! checked for what it names, and taken out, since sqlparser has no form for it.
//!
//! ```text
//!   PRIMARY KEY (a) WITH (fillfactor='90') USING INDEX TABLESPACE pg_default     PRIMARY KEY (a)
//!   CREATE TABLE t (a int) USING heap                                  CREATE TABLE t (a int)
//!   CREATE INDEX ON t (a) TABLESPACE pg_default                        CREATE INDEX ON t (a)
//! ```

use braid_types::SqlResult;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::create::depth_zero;
use super::storage::{PARAMETERS, PARAMETERS_OF_TABLES, missing, parameters};
use crate::cursor::{Cursor, closing, fold, token_is};

/// Takes it out of CREATE TABLE, ALTER TABLE and CREATE INDEX.
///
/// # Errors
/// 22023 for a parameter that is not known, 42704 for a tablespace or an access method.
pub(crate) fn take_out(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let is = |tokens: &[TokenWithSpan], at: usize, word: &str| {
        tokens.get(at).is_some_and(|t| token_is(&t.token, word))
    };
    if is(tokens, 0, "create") && (is(tokens, 1, "index") || is(tokens, 2, "index")) {
        return tablespace_of_index(tokens);
    }
    let table = (1..4).any(|at| is(tokens, at, "table"));
    if !table || !is(tokens, 0, "create") && !is(tokens, 0, "alter") {
        return Ok(());
    }
    let mut at = 0;
    while at + 1 < tokens.len() {
        let told = is(tokens, at + 1, "with") || is(tokens, at + 1, "using");
        if told && ends_key(tokens, at) {
            let mut c = Cursor::new(tokens[at + 1..].to_vec());
            of_index(&mut c)?;
            tokens.drain(at + 1..at + 1 + c.at());
        }
        at += 1;
    }
    if is(tokens, 0, "create") {
        access_method(tokens)?;
        of_table(tokens)?;
    }
    Ok(())
}

/// Whether what a key is of ends here.
fn ends_key(tokens: &[TokenWithSpan], at: usize) -> bool {
    const WORDS: [&str; 4] = ["key", "unique", "distinct", "include"];
    let is_of_key = |at: usize| WORDS.iter().any(|word| token_is(&tokens[at].token, word));
    if tokens[at].token != Token::RParen {
        return is_of_key(at);
    }
    let opens =
        |open: &usize| tokens[*open].token == Token::LParen && closing(tokens, *open) == Some(at);
    (1..at).rev().find(opens).is_some_and(|open| is_of_key(open - 1))
}

/// Reads what tells of storage here, and leaves the rest.
fn of_index(c: &mut Cursor) -> SqlResult<()> {
    if c.is_word(0, "with") && c.peek_at(1) == Some(&Token::LParen) {
        c.next();
        c.next();
        parameters(c, PARAMETERS)?;
    }
    if c.take(&["using", "index", "tablespace"]) {
        let given = c.ident()?;
        if given != "pg_default" {
            return Err(missing("tablespace", &given));
        }
    }
    Ok(())
}

/// TABLESPACE behind the columns of an index.
fn tablespace_of_index(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let Some(at) = depth_zero(tokens, "tablespace") else { return Ok(()) };
    let stands = match &tokens[at - 1].token {
        Token::RParen => true,
        Token::Word(before) => fold(before) == "distinct",
        _ => false,
    };
    let Some(Token::Word(given)) = tokens.get(at + 1).map(|t| &t.token) else { return Ok(()) };
    let given = fold(given);
    match (stands, given.as_str()) {
        (false, _) => return Ok(()),
        (true, "pg_default") => {}
        (true, _) => return Err(missing("tablespace", &given)),
    }
    tokens.drain(at..at + 2);
    Ok(())
}

/// WITH (..) or WITHOUT OIDS behind the columns of a table, or its name.
fn of_table(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let end = depth_zero(tokens, "as").unwrap_or(tokens.len());
    if let Some(at) = depth_zero(&tokens[..end], "without")
        && tokens.get(at + 1).is_some_and(|t| token_is(&t.token, "oids"))
    {
        tokens.drain(at..at + 2);
        return Ok(());
    }
    let Some(mut at) = depth_zero(&tokens[..end], "with") else { return Ok(()) };
    // FOR VALUES WITH (MODULUS 2, REMAINDER 0).
    if token_is(&tokens[at - 1].token, "values") {
        let Some(next) = depth_zero(&tokens[at + 1..end], "with") else { return Ok(()) };
        at += next + 1;
    }
    if tokens.get(at + 1).is_none_or(|t| t.token != Token::LParen) {
        return Ok(());
    }
    let mut c = Cursor::new(tokens[at + 2..].to_vec());
    parameters(&mut c, PARAMETERS_OF_TABLES)?;
    tokens.drain(at..at + 2 + c.at());
    Ok(())
}

/// USING behind the columns of a table, or its name.
fn access_method(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let Some(at) = depth_zero(tokens, "using") else { return Ok(()) };
    if depth_zero(tokens, "as").is_some_and(|of_query| of_query < at) {
        return Ok(());
    }
    let Some(Token::Word(given)) = tokens.get(at + 1).map(|t| &t.token) else { return Ok(()) };
    let given = fold(given);
    if given != "heap" {
        return Err(missing("access method", &given));
    }
    tokens.drain(at..at + 2);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::parse_script;

    #[test]
    fn storage_of_keys_and_tables_is_read_over() {
        for sql in [
            "create table t (a int primary key with (fillfactor = 70), b int)",
            "create table t (a int, unique (a) include (b) with (fillfactor = '70') deferrable)",
            "create table t (a int, unique (a) using index tablespace pg_default)",
            "create unique index on t (a) include (b) tablespace pg_default where a > 1",
            "alter table only s.t add constraint k primary key (a) with (deduplicate_items = off)",
            "create table t (a int) using heap with (fillfactor = 10)",
            "create table t using heap as select 1",
            "create table t (a int) with (fillfactor='40', toast.autovacuum_enabled = off)",
            "create table t (a int) with (autovacuum_enabled, oids = false) tablespace pg_default",
            "create table t (a int) partition by range (a) with (parallel_workers = -1)",
            "create table t with (toast.vacuum_truncate) as select 1",
            "create table t (a int) without oids",
            "create table t partition of p for values with (modulus 2, remainder 0)",
            "create table t partition of p for values with (modulus 2, remainder 0) with (oids)",
            "create table t as with x (a) as (select 1) select * from x",
            "create table t as select * from a join b using (c)",
            "alter table t add constraint k primary key using index i",
        ] {
            assert!(parse_script(sql).is_ok(), "{sql}: {:?}", parse_script(sql));
        }
        for (sql, state) in [
            ("create table t (a int primary key with (what = 70))", "22023"),
            ("create table t (a int primary key using index tablespace fast)", "42704"),
            ("create index i on t (a) tablespace fast", "42704"),
            ("create table t (a int) using columnar", "42704"),
            ("create table t (a int) with (what = 70)", "22023"),
        ] {
            assert_eq!(parse_script(sql).unwrap_err().state().0, state, "{sql}");
        }
    }
}
