//! VACUUM, ANALYZE and LOCK: options in brackets or as words, then tables with optional columns.

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::tokenizer::Token;

use crate::cursor::Cursor;
use crate::{Analyze, Kind, Name};

/// Words that stand in front of the tables, in the order in which VACUUM takes them.
const VACUUM_WORDS: [&str; 5] = ["full", "freeze", "verbose", "analyze", "analyse"];
/// Options in brackets that change nothing here.
const VACUUM_OPTIONS: [&str; 9] = [
    "full",
    "freeze",
    "disable_page_skipping",
    "skip_locked",
    "index_cleanup",
    "process_main",
    "process_toast",
    "truncate",
    "parallel",
];

/// Options of one statement.
#[derive(Default)]
struct Options {
    verbose: bool,
    analyze: bool,
}

/// Reads VACUUM or ANALYZE; `None` if it is neither.
pub(crate) fn maintenance(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    if c.take(&["lock"]) {
        return lock_table(c).map(Some);
    }
    if c.take(&["vacuum"]) {
        let options = options(c, "VACUUM", &VACUUM_WORDS, &VACUUM_OPTIONS)?;
        let tables = tables(c)?;
        if options.analyze {
            let verbose = options.verbose;
            return Ok(Some(Kind::Analyze(Analyze { tag: "VACUUM", verbose, tables })));
        }
        if tables.iter().any(|(_, columns)| !columns.is_empty()) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "ANALYZE option must be specified when a column list is provided",
            ));
        }
        let names = tables.into_iter().map(|(name, _)| name).collect();
        return Ok(Some(Kind::NoOp("VACUUM", names)));
    }
    if c.take(&["analyze"]) || c.take(&["analyse"]) {
        let options = options(c, "ANALYZE", &["verbose"], &["skip_locked"])?;
        let (verbose, tables) = (options.verbose, tables(c)?);
        return Ok(Some(Kind::Analyze(Analyze { tag: "ANALYZE", verbose, tables })));
    }
    Ok(None)
}

fn options(c: &mut Cursor, tag: &str, words: &[&str], others: &[&str]) -> SqlResult<Options> {
    let mut out = Options::default();
    if !c.take_token(&Token::LParen) {
        for word in words {
            if c.take(&[word]) {
                out.verbose |= *word == "verbose";
                out.analyze |= word.starts_with("analy");
            }
        }
        return Ok(out);
    }
    loop {
        let name = c.ident()?;
        let value = match c.peek() {
            Some(Token::Comma | Token::RParen) | None => None,
            Some(_) => c.next().map(|t| t.to_string().trim_matches('\'').to_lowercase()),
        };
        let on = || match value.as_deref() {
            None | Some("on" | "true" | "1") => Ok(true),
            Some("off" | "false" | "0") => Ok(false),
            Some(_) => Err(SqlError::syntax(format!("{name} requires a Boolean value"))),
        };
        match name.as_str() {
            "verbose" => out.verbose = on()?,
            "analyze" | "analyse" if tag == "VACUUM" => out.analyze = on()?,
            other if others.contains(&other) => {}
            other => {
                return Err(SqlError::syntax(format!("unrecognized {tag} option \"{other}\"")));
            }
        }
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    c.expect_token(&Token::RParen)?;
    Ok(out)
}

/// Names with the columns that are given for them; none: all.
fn tables(c: &mut Cursor) -> SqlResult<Vec<(Name, Vec<String>)>> {
    let mut out = Vec::new();
    if c.done() {
        return Ok(out);
    }
    loop {
        let name = c.name()?;
        let columns = if c.peek() == Some(&Token::LParen) { c.ident_list()? } else { Vec::new() };
        out.push((name, columns));
        if !c.take_token(&Token::Comma) {
            return Ok(out);
        }
    }
}

/// What follows LOCK.
fn lock_table(c: &mut Cursor) -> SqlResult<Kind> {
    c.take(&["table"]);
    let mut tables = Vec::new();
    loop {
        c.take(&["only"]);
        tables.push(c.name()?);
        c.take_token(&Token::Mul);
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    let mut keeps_writers_out = true;
    if c.take(&["in"]) {
        let weak = [["access", "share"], ["row", "share"], ["row", "exclusive"]];
        let strong: [&[&str]; 5] = [
            &["share", "update", "exclusive"],
            &["share", "row", "exclusive"],
            &["access", "exclusive"],
            &["share"],
            &["exclusive"],
        ];
        keeps_writers_out = !weak.iter().any(|mode| c.take(mode));
        if keeps_writers_out && !strong.iter().any(|mode| c.take(mode)) {
            return Err(c.unexpected());
        }
        c.expect(&["mode"])?;
    }
    let nowait = c.take(&["nowait"]);
    Ok(Kind::LockRelations { tables, keeps_writers_out, nowait })
}
#[cfg(test)]
mod tests {
    use crate::{Kind, parse_script};

    fn read(text: &str) -> Result<String, String> {
        match parse_script(text) {
            Err(e) => Err(e.message().to_string()),
            Ok(statements) => Ok(match &*statements[0].kind {
                Kind::Analyze(a) => format!("{} {} {:?}", a.tag, a.verbose, a.tables),
                Kind::NoOp(tag, names) => format!("{tag}: {names:?}"),
                other => panic!("{other:?}"),
            }),
        }
    }

    #[test]
    fn options_tables_and_columns() {
        let cases = [
            ("analyze", "ANALYZE false []"),
            ("ANALYSE Verbose t", r#"ANALYZE true [(["t"], [])]"#),
            (
                "analyze s.t (a, \"B\"), u",
                r#"ANALYZE false [(["s", "t"], ["a", "B"]), (["u"], [])]"#,
            ),
            ("analyze (verbose off, skip_locked) t", r#"ANALYZE false [(["t"], [])]"#),
            ("vacuum full freeze verbose analyze t (a)", r#"VACUUM true [(["t"], ["a"])]"#),
            ("vacuum (analyze, parallel 2, verbose) t", r#"VACUUM true [(["t"], [])]"#),
            ("vacuum (analyze false) t", r#"VACUUM: [["t"]]"#),
            ("vacuum freeze t, u", r#"VACUUM: [["t"], ["u"]]"#),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = [
            ("analyze (full) t", "unrecognized ANALYZE option \"full\""),
            ("analyze (verbose maybe) t", "verbose requires a Boolean value"),
            ("vacuum t (a)", "ANALYZE option must be specified when a column list is provided"),
        ];
        for (text, message) in wrong {
            assert_eq!(read(text), Err(message.to_string()), "{text}");
        }
        for text in ["analyze t,", "analyze t (a", "analyze t u", "vacuum (analyze"] {
            assert!(read(text).unwrap_err().starts_with("syntax error"), "{text}");
        }
    }
}
