//! COPY, IMPORT and EXPORT with their options, the old forms included.

use braid_types::encodings::Encoding;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::tokenizer::Token;

use crate::cursor::{Cursor, closing};
use crate::{Copy, CopyFormat, CopyOptions, Export, Import, ImportDump};

pub(crate) fn copy(c: &mut Cursor) -> SqlResult<Copy> {
    let mut out = Copy {
        table: None,
        columns: Vec::new(),
        query: None,
        to: false,
        file: None,
        options: CopyOptions::default(),
        condition: None,
    };
    if c.peek() == Some(&Token::LParen) {
        let tokens = c.rest();
        let end = closing(&tokens, 0).ok_or_else(|| c.unexpected())?;
        let mut inner = tokens[1..end].to_vec();
        crate::insert::mark(&mut inner)?;
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
        while !c.done() && !c.looking_at(&["where"]) {
            copy_legacy_option(c, &mut out.options)?;
        }
    }
    if c.take(&["where"]) {
        if out.to {
            return Err(SqlError::syntax("WHERE clause not allowed with COPY TO"));
        }
        out.condition = Some(c.expr()?);
    }
    check_copy(&out.options, out.to)?;
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
            let name = match c.peek() {
                Some(Token::SingleQuotedString(_)) => c.string()?,
                _ => c.ident()?,
            };
            o.encoding = Some(encoding(&name)?);
        }
        // FREEZE is about PostgreSQL's own storage: nothing to do.
        "freeze" => {
            if !matches!(c.peek(), Some(Token::Comma | Token::RParen)) {
                c.next();
            }
        }
        "force_quote" => {
            o.force_quote = Some(star_or_columns(c)?);
        }
        "force_null" => o.force_null = Some(star_or_columns(c)?),
        "force_not_null" => o.force_not_null = Some(star_or_columns(c)?),
        "on_error" => o.ignore_errors = one_of(c, "ON_ERROR", ["stop", "ignore"])?,
        "log_verbosity" => o.verbose = one_of(c, "LOG_VERBOSITY", ["default", "verbose"])?,
        "reject_limit" => o.reject_limit = Some(reject_limit(c)?),
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
    } else if c.take(&["force", "quote"]) {
        o.force_quote = Some(star_or_list(c)?);
    } else if c.take(&["force", "null"]) {
        o.force_null = Some(star_or_list(c)?);
    } else if c.take(&["force", "not", "null"]) {
        o.force_not_null = Some(star_or_list(c)?);
    } else if c.take(&["encoding"]) {
        o.encoding = Some(encoding(&c.string()?)?);
    } else {
        return Err(c.unexpected());
    }
    Ok(())
}

fn encoding(name: &str) -> SqlResult<Encoding> {
    Encoding::named(name).ok_or_else(|| {
        let text = "argument to option \"encoding\" must be a valid encoding name";
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
    })
}

fn reject_limit(c: &mut Cursor) -> SqlResult<u64> {
    let number = c.next().map(|t| t.to_string()).unwrap_or_default();
    let limit = number.trim_matches('\'').parse().ok().filter(|n| *n > 0);
    limit.ok_or_else(|| {
        let state = SqlState::INVALID_PARAMETER_VALUE;
        SqlError::new(state, format!("REJECT_LIMIT ({number}) must be greater than zero"))
    })
}

fn star_or_columns(c: &mut Cursor) -> SqlResult<Vec<String>> {
    if c.take_token(&Token::Mul) { Ok(Vec::new()) } else { c.ident_list() }
}

/// As [`star_or_columns`], without parentheses.
fn star_or_list(c: &mut Cursor) -> SqlResult<Vec<String>> {
    if c.take_token(&Token::Mul) {
        return Ok(Vec::new());
    }
    let mut names = vec![c.ident()?];
    while c.take_token(&Token::Comma) {
        names.push(c.ident()?);
    }
    Ok(names)
}

/// Which of two words an option has: `true` for the second one.
fn one_of(c: &mut Cursor, option: &str, words: [&str; 2]) -> SqlResult<bool> {
    let word = match c.peek() {
        Some(Token::SingleQuotedString(_)) => c.string()?.to_lowercase(),
        _ => c.ident()?,
    };
    match words.iter().position(|known| *known == word) {
        Some(at) => Ok(at == 1),
        None => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("COPY {option} \"{word}\" not recognized"),
        )),
    }
}

fn check_copy(o: &CopyOptions, to: bool) -> SqlResult<()> {
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
    for (given, name) in
        [(o.force_null.is_some(), "force null"), (o.force_not_null.is_some(), "force not null")]
    {
        if given && o.format != CopyFormat::Csv {
            return refuse(&format!("COPY {name} available only in CSV mode"));
        }
        if given && to {
            return refuse(&format!("COPY {name} only available using COPY FROM"));
        }
    }
    if to && (o.ignore_errors || o.reject_limit.is_some()) {
        return refuse("COPY ON_ERROR cannot be used with COPY TO");
    }
    if o.ignore_errors && o.format == CopyFormat::Binary {
        return Err(SqlError::syntax("only ON_ERROR STOP is allowed in BINARY mode"));
    }
    if o.reject_limit.is_some() && !o.ignore_errors {
        let message = "COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    if o.delimiter.is_some_and(|d| d == '\n' || d == '\r' || d == '\\') {
        return refuse("COPY delimiter cannot be newline, carriage return or backslash");
    }
    Ok(())
}

pub(crate) fn import(c: &mut Cursor) -> SqlResult<Import> {
    let table = c.name()?;
    let columns = if c.peek() == Some(&Token::LParen) { c.ident_list()? } else { Vec::new() };
    let format = c.ident()?;
    c.expect(&["data"])?;
    c.expect_token(&Token::LParen)?;
    let mut files = Vec::new();
    loop {
        files.push(c.string()?);
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    c.expect_token(&Token::RParen)?;
    let options = import_options(c)?;
    Ok(Import { table, columns, format, files, options, job: None })
}

pub(crate) fn import_dump(c: &mut Cursor) -> SqlResult<ImportDump> {
    let brackets = c.take_token(&Token::LParen);
    let file = c.string()?;
    if brackets {
        c.expect_token(&Token::RParen)?;
    }
    Ok(ImportDump { file, options: import_options(c)?, job: None })
}

/// `EXPORT INTO CSV 'folder' WITH .. FROM TABLE t`, or `FROM SELECT ..`.
pub(crate) fn export(c: &mut Cursor) -> SqlResult<Export> {
    let format = c.ident()?;
    let folder = c.string()?;
    let options = import_options(c)?;
    c.expect(&["from"])?;
    let is_table = c.looking_at(&["table"]) && !matches!(c.peek_at(1), None | Some(Token::LParen));
    let (mut table, mut query) = (None, None);
    if is_table {
        c.take(&["table"]);
        table = Some(c.name()?);
    } else {
        query = Some(c.with_parser(|p| p.parse_query())?);
    }
    Ok(Export { format, folder, options, table, query })
}

fn import_options(c: &mut Cursor) -> SqlResult<Vec<(String, Option<String>)>> {
    let mut options = Vec::new();
    if c.take(&["with"]) {
        c.take(&["options"]);
        let parens = c.take_token(&Token::LParen);
        loop {
            options.push(import_option(c)?);
            if !c.take_token(&Token::Comma) {
                break;
            }
        }
        if parens {
            c.expect_token(&Token::RParen)?;
        }
    }
    Ok(options)
}

fn import_option(c: &mut Cursor) -> SqlResult<(String, Option<String>)> {
    let name = c.ident()?;
    if !c.take_token(&Token::Eq) {
        return Ok((name, None));
    }
    let value = match c.next() {
        Some(Token::SingleQuotedString(s) | Token::EscapedStringLiteral(s)) => s,
        Some(Token::Number(n, _)) => n,
        Some(Token::Word(w)) => w.value,
        _ => return Err(c.unexpected()),
    };
    Ok((name, Some(value)))
}
