//! DO: statements of a block one after the other, in one transaction.
//!
//! ```text
//!   BEGIN .. EXCEPTION   a place to return to ─ steps ─┬─ all done: the place is forgotten
//!                                                      └─ an error that a handler is for:
//!                                                         back to the place, its steps
//! ```
//! Each statement is planned when its turn comes, so that it sees what those before it have made.

use braid_parser::{Block, Does, Level, Step, parse_block};
use braid_types::{Datum, SqlError, SqlResult, SqlState, Style};

use crate::session::{Notice, Outcome, Rows, Session};

/// What nobody can call a savepoint.
const PLACE: &str = "\u{1}block";

/// Whether a block goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Return,
}

impl Session {
    /// Runs the body of DO. Outside of a block it is a transaction of its own.
    ///
    /// # Errors
    /// Those of its statements, with the line in CONTEXT.
    pub(crate) fn run_block(&mut self, body: &str) -> SqlResult<Outcome> {
        let block = parse_block(body)?;
        let alone = !self.is_open();
        if alone {
            self.begin_implicit()?;
        }
        let result = self.block_of(&block);
        if result.is_err() {
            self.fail();
        }
        if alone {
            self.end_implicit()?;
        }
        result.map(|_| Outcome::Done("DO".into()))
    }

    fn block_of(&mut self, block: &Block) -> SqlResult<Then> {
        if block.handlers.is_empty() {
            return self.steps(&block.steps);
        }
        self.mark(PLACE)?;
        let error = match self.steps(&block.steps) {
            Ok(then) => return self.unmark(PLACE).map(|()| then),
            Err(error) => error,
        };
        let code = error.state().0;
        let meant = block.handlers.iter().find(|h| h.conditions.iter().any(|c| c.is_met_by(code)));
        // After a conflict with others, the transaction begins anew or not at all.
        let Some(handler) = meant.filter(|_| !code.starts_with("40")) else { return Err(error) };
        self.return_to(PLACE)?;
        self.unmark(PLACE)?;
        self.steps(&handler.steps)
    }

    fn steps(&mut self, steps: &[Step]) -> SqlResult<Then> {
        for step in steps {
            if self.step(step)? == Then::Return {
                return Ok(Then::Return);
            }
        }
        Ok(Then::GoOn)
    }

    fn step(&mut self, step: &Step) -> SqlResult<Then> {
        let at = |e, what: &str, text: Option<&str>| located(e, step.line, what, text);
        match &step.does {
            Does::Nothing => {}
            Does::Return => return Ok(Then::Return),
            Does::Block(block) => return self.block_of(block),
            Does::Sql(text) => {
                self.statement_of(text).map_err(|e| at(e, "SQL statement", Some(text)))?;
            }
            Does::Perform(text) => {
                self.unheard(text).map_err(|e| at(e, "PERFORM", Some(text)))?;
            }
            Does::Dynamic(e) => {
                let text = self.value_of(e).map_err(|e| at(e, "EXECUTE", None))?;
                let Some(text) = text.to_text(Style::utc()) else {
                    let e = "query string argument of EXECUTE is null";
                    let e = SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, e);
                    return Err(at(e, "EXECUTE", None));
                };
                self.unheard(&text).map_err(|e| at(e, "EXECUTE", Some(&text)))?;
            }
            Does::If(branches, otherwise) => {
                for (condition, steps) in branches {
                    let value = self.value_of(&format!("({condition})::boolean"));
                    if matches!(value.map_err(|e| at(e, "IF", None))?, Datum::Bool(true)) {
                        return self.steps(steps);
                    }
                }
                return self.steps(otherwise);
            }
            Does::Raise(level, format, args) => {
                self.raise(*level, format, args).map_err(|e| at(e, "RAISE", None))?;
            }
        }
        Ok(Then::GoOn)
    }

    /// Runs statements; the rows of the last, if it has any.
    fn rows_of(&mut self, text: &str) -> SqlResult<Option<Rows>> {
        match self.run_text(text)? {
            Some(Outcome::Rows(rows)) => Ok(Some(rows)),
            Some(Outcome::CopyIn(_) | Outcome::CopyOut(_)) => {
                Err(SqlError::unsupported("COPY to or from the client in DO"))
            }
            Some(Outcome::Done(_) | Outcome::Empty) | None => Ok(None),
        }
    }

    /// A statement that gives no rows.
    fn statement_of(&mut self, text: &str) -> SqlResult<()> {
        if self.rows_of(text)?.is_none() {
            return Ok(());
        }
        let e = "query has no destination for result data";
        let e = SqlError::new(SqlState::SYNTAX_ERROR, e);
        let word = text.split_whitespace().next().unwrap_or_default().to_lowercase();
        Err(match word.as_str() {
            "insert" | "update" | "delete" | "merge" => e,
            _ => {
                e.with_hint("If you want to discard the results of a SELECT, use PERFORM instead.")
            }
        })
    }

    /// A statement whose rows nobody wants.
    fn unheard(&mut self, text: &str) -> SqlResult<()> {
        if let Some(mut rows) = self.rows_of(text)? {
            while rows.next_batch()?.is_some() {}
        }
        Ok(())
    }

    fn value_of(&mut self, expression: &str) -> SqlResult<Datum> {
        let mut first = None;
        if let Some(mut rows) = self.rows_of(&format!("SELECT {expression}"))? {
            while let Some(batch) = rows.next_batch()? {
                first = first.or(batch.into_iter().flatten().next());
            }
        }
        Ok(first.unwrap_or(Datum::Null))
    }

    fn raise(&mut self, level: Level, format: &str, args: &[String]) -> SqlResult<()> {
        let mut message = String::new();
        let mut values = Vec::new();
        for arg in args {
            let text = self.value_of(&format!("({arg})::text"))?.to_text(Style::utc());
            values.push(text.unwrap_or_else(|| "<NULL>".into()));
        }
        let (mut values, mut rest) = (values.into_iter(), format);
        while let Some((before, after)) = rest.split_once('%') {
            message.push_str(before);
            rest = match after.strip_prefix('%') {
                Some(after) => {
                    message.push('%');
                    after
                }
                None => {
                    message.push_str(&values.next().unwrap_or_default());
                    after
                }
            };
        }
        message.push_str(rest);
        let (severity, state) = match level {
            Level::Exception => return Err(SqlError::new(SqlState::RAISE_EXCEPTION, message)),
            Level::Debug => ("DEBUG", SqlState::SUCCESSFUL_COMPLETION),
            Level::Notice => ("NOTICE", SqlState::SUCCESSFUL_COMPLETION),
            Level::Warning => ("WARNING", SqlState::WARNING),
        };
        self.tell(Notice { severity, state, message, detail: None });
        Ok(())
    }
}

/// Where in the body it was, as PostgreSQL says it. A place inside of the statement is none of the
/// client's text.
fn located(e: SqlError, line: u64, what: &str, text: Option<&str>) -> SqlError {
    if e.context().is_some_and(|context| context.contains("inline_code_block")) {
        return e;
    }
    let own = format!("PL/pgSQL function inline_code_block line {line} at {what}");
    let inner = e.context().map(|context| format!("{context}\n")).unwrap_or_default();
    let statement = text.map(|text| format!("SQL statement \"{text}\"\n")).unwrap_or_default();
    e.without_place().with_context(format!("{inner}{statement}{own}"))
}
