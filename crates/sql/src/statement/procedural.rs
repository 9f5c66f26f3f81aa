//! DO: statements of a block one after the other, in one transaction.
//!
//! ```text
//!   BEGIN .. EXCEPTION   a place to return to ─ steps ─┬─ all done: the place is forgotten
//!                                                      └─ an error that a handler is for:
//!                                                         back to the place, its steps
//! ```
//! Each statement is planned when its turn comes, so that it sees what those before it have made.

use std::collections::BTreeSet;

use braid_parser::{
    Block, Does, Level, Raise, RaiseOption, Step, is_code, named_state, parse_block, with_caught,
};
use braid_types::{Datum, SqlError, SqlResult, SqlState, Style};
use parking_lot::Mutex;

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
        let result = self.block_of(&block, None);
        if result.is_err() {
            self.fail();
        }
        if alone {
            self.end_implicit()?;
        }
        result.map(|_| Outcome::Done("DO".into()))
    }

    /// `caught` is the error that the handler around it is for, if it stands in one.
    fn block_of(&mut self, block: &Block, caught: Option<&SqlError>) -> SqlResult<Then> {
        if block.handlers.is_empty() {
            return self.steps(&block.steps, caught);
        }
        self.mark(PLACE)?;
        let error = match self.steps(&block.steps, caught) {
            Ok(then) => return self.unmark(PLACE).map(|()| then),
            Err(error) => error,
        };
        let code = error.state().0;
        let meant = block.handlers.iter().find(|h| h.conditions.iter().any(|c| c.is_met_by(code)));
        // After a conflict with others, the transaction begins anew or not at all.
        let Some(handler) = meant.filter(|_| !code.starts_with("40")) else { return Err(error) };
        self.return_to(PLACE)?;
        self.unmark(PLACE)?;
        self.steps(&handler.steps, Some(&error))
    }

    fn steps(&mut self, steps: &[Step], caught: Option<&SqlError>) -> SqlResult<Then> {
        for step in steps {
            if self.step(step, caught)? == Then::Return {
                return Ok(Then::Return);
            }
        }
        Ok(Then::GoOn)
    }

    fn step(&mut self, step: &Step, caught: Option<&SqlError>) -> SqlResult<Then> {
        let filled = |text: &str| match caught {
            Some(error) => with_caught(text, error),
            None => text.to_string(),
        };
        let at = |e, what: &str, text: Option<&str>| located(e, step.line, what, text);
        match &step.does {
            Does::Nothing => {}
            Does::Return => return Ok(Then::Return),
            Does::Block(block) => return self.block_of(block, caught),
            Does::Sql(text) => {
                self.statement_of(&filled(text)).map_err(|e| at(e, "SQL statement", Some(text)))?;
            }
            Does::Perform(text) => {
                self.unheard(&filled(text)).map_err(|e| at(e, "PERFORM", Some(text)))?;
            }
            Does::Dynamic(e) => {
                let text = self.value_of(&filled(e)).map_err(|e| at(e, "EXECUTE", None))?;
                let Some(text) = text.to_text(Style::utc()) else {
                    let e = "query string argument of EXECUTE is null";
                    let e = SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, e);
                    return Err(at(e, "EXECUTE", None));
                };
                self.unheard(&text).map_err(|e| at(e, "EXECUTE", Some(&text)))?;
            }
            Does::If(branches, otherwise) => {
                for (condition, steps) in branches {
                    let value = self.value_of(&format!("({})::boolean", filled(condition)));
                    if matches!(value.map_err(|e| at(e, "IF", None))?, Datum::Bool(true)) {
                        return self.steps(steps, caught);
                    }
                }
                return self.steps(otherwise, caught);
            }
            Does::Raise(raise) => self.raise(raise, &filled).map_err(|e| at(e, "RAISE", None))?,
            Does::RaiseAgain => {
                let error = caught.cloned().unwrap_or_else(|| {
                    let text =
                        "RAISE without parameters cannot be used outside an exception handler";
                    SqlError::new(SqlState("0Z002"), text)
                });
                return Err(at(error, "RAISE", None));
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

    /// The text of RAISE with its values.
    fn raised_text(
        &mut self,
        (format, args): &(String, Vec<String>),
        filled: &dyn Fn(&str) -> String,
    ) -> SqlResult<String> {
        let mut message = String::new();
        let mut values = Vec::new();
        for arg in args {
            let text = self.value_of(&format!("({})::text", filled(arg)))?.to_text(Style::utc());
            values.push(text.unwrap_or_else(|| "<NULL>".into()));
        }
        let (mut values, mut rest) = (values.into_iter(), format.as_str());
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
        Ok(message)
    }

    /// The options of RAISE with their values; each is said once.
    fn raise_options(
        &mut self,
        raise: &Raise,
        filled: &dyn Fn(&str) -> String,
    ) -> SqlResult<Vec<(RaiseOption, String)>> {
        let mut out: Vec<(RaiseOption, String)> = Vec::new();
        for (option, value) in &raise.options {
            let value = self.value_of(&format!("({})::text", filled(value)))?.to_text(Style::utc());
            let value = value.ok_or_else(|| {
                let text = "RAISE statement option cannot be null";
                SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, text)
            })?;
            let said = out.iter().any(|(known, _)| known == option)
                || (*option == RaiseOption::Message && raise.text.is_some())
                || (*option == RaiseOption::Code && raise.condition.is_some());
            if said {
                let text = format!("RAISE option already specified: {}", option.name());
                return Err(SqlError::syntax(text));
            }
            out.push((*option, value));
        }
        Ok(out)
    }

    fn raise(&mut self, raise: &Raise, filled: &dyn Fn(&str) -> String) -> SqlResult<()> {
        let message = match &raise.text {
            Some(text) => Some(self.raised_text(text, filled)?),
            None => None,
        };
        let options = self.raise_options(raise, filled)?;
        let said = |wanted| {
            let found = options.iter().find(|(option, _)| *option == wanted);
            found.map(|(_, value)| value.clone())
        };
        let condition = raise.condition.clone().or_else(|| said(RaiseOption::Code));
        let state = match &condition {
            Some(condition) => raised_state(condition)?,
            None if raise.level == Level::Exception => SqlState::RAISE_EXCEPTION,
            None if raise.level == Level::Warning => SqlState::WARNING,
            None => SqlState::SUCCESSFUL_COMPLETION,
        };
        let message = message.or_else(|| said(RaiseOption::Message)).or(condition);
        let message = message.unwrap_or_else(|| match raise.level {
            Level::Exception => state.0.to_string(),
            _ => SqlState::SUCCESSFUL_COMPLETION.0.to_string(),
        });
        let (detail, hint) = (said(RaiseOption::Detail), said(RaiseOption::Hint));
        let severity = match raise.level {
            Level::Exception => {
                let of = |e: SqlError| {
                    let e = match (said(RaiseOption::Schema), said(RaiseOption::Table)) {
                        (None, None) => e,
                        (schema, table) => {
                            e.with_table(schema.unwrap_or_default(), table.unwrap_or_default())
                        }
                    };
                    let e = said(RaiseOption::Column).into_iter().fold(e, SqlError::with_column);
                    said(RaiseOption::Constraint).into_iter().fold(e, SqlError::with_constraint)
                };
                let e =
                    detail.into_iter().fold(SqlError::new(state, message), SqlError::with_detail);
                return Err(of(hint.into_iter().fold(e, SqlError::with_hint)));
            }
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Notice => "NOTICE",
            Level::Warning => "WARNING",
        };
        self.tell(Notice { severity, state, message, detail, hint });
        Ok(())
    }
}

/// What a condition of RAISE is: an SQLSTATE of anybody's, or the name of one.
fn raised_state(condition: &str) -> SqlResult<SqlState> {
    match is_code(condition).then(|| own_state(condition)).flatten() {
        Some(state) => Ok(state),
        None => named_state(condition),
    }
}

/// The state of any code. Those that applications make up are kept for ever, so there are only so
/// many of them.
fn own_state(code: &str) -> Option<SqlState> {
    static OWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    const MOST: usize = 10_000;
    if let Some(known) = SqlState::of_code(code) {
        return Some(known);
    }
    let mut own = OWN.lock();
    if let Some(known) = own.get(code) {
        return Some(SqlState(known));
    }
    if own.len() >= MOST {
        return None;
    }
    let kept: &'static str = Box::leak(code.to_string().into_boxed_str());
    own.insert(kept);
    Some(SqlState(kept))
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
