//! EXPLAIN and its options, as PostgreSQL takes them, and DEBUG, which is ours.
//!
//! ```text
//!   EXPLAIN SELECT ..                               EXPLAIN ANALYZE VERBOSE SELECT ..
//!   EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ..   EXPLAIN ANALYZE (DEBUG) SELECT ..
//! ```

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::tokenizer::Token;

use crate::Kind;
use crate::cursor::Cursor;
use crate::script::parse_nested;

/// How EXPLAIN shows a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExplainFormat {
    /// Lines.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// One YAML document.
    Yaml,
    /// One XML document.
    Xml,
}

/// Options of EXPLAIN. What was not said is `None` where it depends on others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExplainOptions {
    /// Runs it.
    pub analyze: bool,
    /// Shows more: settings, what was looked at.
    pub verbose: bool,
    /// Estimates.
    pub costs: Option<bool>,
    /// Settings that are not as at the start.
    pub settings: bool,
    /// What was looked at in the store.
    pub buffers: bool,
    /// What was written.
    pub wal: bool,
    /// Times of operators.
    pub timing: Option<bool>,
    /// Times of all of it.
    pub summary: Option<bool>,
    /// See [`ExplainFormat`].
    pub format: ExplainFormat,
    /// All that somebody needs who was not there.
    pub debug: bool,
    /// The trees in which its tables lie.
    pub interleave: bool,
}

impl ExplainOptions {
    /// Whether operators show their times.
    pub fn shows_times(&self) -> bool {
        self.analyze && self.timing.unwrap_or(true)
    }

    /// Whether planning and execution time are shown.
    pub fn shows_summary(&self) -> bool {
        self.summary.unwrap_or(self.analyze)
    }

    /// Those that make no sense without ANALYZE.
    fn check(&self) -> SqlResult<()> {
        let alone =
            [("WAL", self.wal), ("TIMING", self.timing == Some(true)), ("DEBUG", self.debug)];
        match alone.into_iter().find(|(_, on)| *on && !self.analyze) {
            None => Ok(()),
            Some((name, _)) => Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("EXPLAIN option {name} requires ANALYZE"),
            )),
        }
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> SqlResult<()> {
        match name {
            "analyze" | "analyse" => self.analyze = boolean(name, value)?,
            "verbose" => self.verbose = boolean(name, value)?,
            "costs" => self.costs = Some(boolean(name, value)?),
            "settings" => self.settings = boolean(name, value)?,
            "buffers" => self.buffers = boolean(name, value)?,
            "wal" => self.wal = boolean(name, value)?,
            "timing" => self.timing = Some(boolean(name, value)?),
            "summary" => self.summary = Some(boolean(name, value)?),
            "debug" => self.debug = boolean(name, value)?,
            "interleave" => self.interleave = boolean(name, value)?,
            "format" => self.format = format(value.unwrap_or_default())?,
            _ => {
                let message = format!("unrecognized EXPLAIN option \"{name}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
        }
        Ok(())
    }
}

fn boolean(name: &str, value: Option<&str>) -> SqlResult<bool> {
    match value {
        None | Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        Some(_) => {
            let message = format!("{name} requires a Boolean value");
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}

fn format(value: &str) -> SqlResult<ExplainFormat> {
    match value {
        "text" => Ok(ExplainFormat::Text),
        "json" => Ok(ExplainFormat::Json),
        "yaml" => Ok(ExplainFormat::Yaml),
        "xml" => Ok(ExplainFormat::Xml),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("unrecognized value for EXPLAIN option \"format\": \"{value}\""),
        )),
    }
}

/// Reads it, behind the word EXPLAIN.
pub(crate) fn explain(c: &mut Cursor) -> SqlResult<Kind> {
    let mut options = ExplainOptions::default();
    if has_options(c) {
        read(c, &mut options)?;
    } else {
        if c.take(&["analyze"]) || c.take(&["analyse"]) {
            options.analyze = true;
        }
        options.verbose = c.take(&["verbose"]);
        if options.analyze && has_options(c) {
            read(c, &mut options)?;
        }
    }
    options.check()?;
    if c.done() {
        return Err(c.unexpected());
    }
    Ok(Kind::Explain { options, statement: parse_nested(c.rest())? })
}

/// Whether options in brackets follow: not a query in brackets.
fn has_options(c: &Cursor) -> bool {
    let query = ["select", "values", "with", "table"].iter().any(|word| c.is_word(1, word));
    c.peek() == Some(&Token::LParen) && c.peek_at(1) != Some(&Token::LParen) && !query
}

fn read(c: &mut Cursor, options: &mut ExplainOptions) -> SqlResult<()> {
    c.expect_token(&Token::LParen)?;
    loop {
        let name = c.ident()?;
        let value = match c.peek() {
            Some(Token::Comma | Token::RParen) => None,
            _ => c.next().map(|t| t.to_string().trim_matches('\'').to_lowercase()),
        };
        options.set(&name, value.as_deref())?;
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    c.expect_token(&Token::RParen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(sql: &str) -> SqlResult<ExplainOptions> {
        let statement = crate::parse_script(sql)?.remove(0);
        match &*statement.kind {
            Kind::Explain { options, statement } => {
                assert_eq!(&*statement.text.replace(' ', ""), "select1", "{sql}");
                Ok(*options)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_are_postgres_and_debug() {
        let none = ExplainOptions::default();
        let analyze = ExplainOptions { analyze: true, ..none };
        for (sql, want) in [
            ("explain select 1", none),
            ("explain analyze select 1", analyze),
            ("explain analyze verbose select 1", ExplainOptions { verbose: true, ..analyze }),
            (
                "explain (analyze, timing off) select 1",
                ExplainOptions { timing: Some(false), ..analyze },
            ),
            (
                "explain (format 'JSON', costs false, buffers 1) select 1",
                ExplainOptions {
                    format: ExplainFormat::Json,
                    costs: Some(false),
                    buffers: true,
                    ..none
                },
            ),
            (
                "explain (analyze off, verbose, settings on, summary) select 1",
                ExplainOptions { verbose: true, settings: true, summary: Some(true), ..none },
            ),
            ("explain (interleave) select 1", ExplainOptions { interleave: true, ..none }),
            ("explain analyze (debug) select 1", ExplainOptions { debug: true, ..analyze }),
        ] {
            assert_eq!(options(sql).unwrap_or_else(|e| panic!("{sql}: {e}")), want, "{sql}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_as_in_postgres() {
        for (sql, state, message) in [
            ("explain (speed) select 1", "42601", "unrecognized EXPLAIN option \"speed\""),
            ("explain (analyze maybe) select 1", "42601", "analyze requires a Boolean value"),
            ("explain (wal) select 1", "22023", "EXPLAIN option WAL requires ANALYZE"),
            ("explain (timing on) select 1", "22023", "EXPLAIN option TIMING requires ANALYZE"),
            (
                "explain (format html) select 1",
                "22023",
                "unrecognized value for EXPLAIN option \"format\": \"html\"",
            ),
        ] {
            let e = options(sql).expect_err(sql);
            assert_eq!((e.state().0, e.message()), (state, message), "{sql}");
        }
    }

    #[test]
    fn a_query_in_brackets_is_no_option() {
        for sql in ["explain (select 1)", "explain analyze ((select 1))", "explain (values (1))"] {
            let statement = crate::parse_script(sql).expect(sql).remove(0);
            assert!(matches!(&*statement.kind, Kind::Explain { .. }), "{sql}");
        }
    }
}
