//! COPY and IMPORT with their options, the old forms included.

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::tokenizer::Token;

use crate::cursor::{Cursor, closing};
use crate::{Copy, CopyFormat, CopyOptions, Import, ImportDump};

pub(crate) fn copy(c: &mut Cursor) -> SqlResult<Copy> {
    let mut out = Copy {
        table: None,
        columns: Vec::new(),
        query: None,
        to: false,
        file: None,
        options: CopyOptions::default(),
    };
    if c.peek() == Some(&Token::LParen) {
        let tokens = c.rest();
        let end = closing(&tokens, 0).ok_or_else(|| c.unexpected())?;
        let inner = tokens[1..end].to_vec();
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
        while !c.done() {
            copy_legacy_option(c, &mut out.options)?;
        }
    }
    check_copy(&out.options)?;
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
            let e = c.string()?;
            if !matches!(e.to_lowercase().replace('-', "").as_str(), "utf8" | "unicode") {
                return Err(SqlError::unsupported(format!("COPY encoding {e}")));
            }
        }
        // FREEZE is about PostgreSQL's own storage: nothing to do.
        "freeze" => {
            if !matches!(c.peek(), Some(Token::Comma | Token::RParen)) {
                c.next();
            }
        }
        "force_quote" => {
            o.force_quote =
                Some(if c.take_token(&Token::Mul) { Vec::new() } else { c.ident_list()? });
        }
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
    } else if c.looking_at(&["where"]) {
        return Err(SqlError::unsupported("COPY .. WHERE"));
    } else {
        return Err(c.unexpected());
    }
    Ok(())
}

fn check_copy(o: &CopyOptions) -> SqlResult<()> {
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
    Ok(ImportDump { file, options: import_options(c)? })
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
