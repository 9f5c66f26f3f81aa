//! Whether a statement may be planned, and may run.
//!
//! It is asked twice: what is denied may be so since it kills whoever plans it, and what was
//! planned before somebody denied it may run for long. Where nothing is switched off and no rule is
//! there, both times are one load.

use std::sync::OnceLock;

use braid_parser::{Digests, Statement};
use braid_settings::{Asked, Match, Rule};
use braid_types::{Datum, SqlError, SqlResult, SqlState, Style};

use super::features;
use crate::session::Session;
use crate::statement::Entry;
use crate::statement::registry::entry_of;

/// The digest of a rule's statement.
pub(crate) fn digest(text: &str, by: Match) -> u64 {
    let Digests { loose, exact } = Digests::of(text);
    let all = if by == Match::Exact { exact } else { loose };
    all.first().copied().unwrap_or_default()
}

impl Session {
    /// 57000 if a statement must not be planned.
    pub(crate) fn check_planned(&self, statement: &Statement) -> SqlResult<()> {
        if !self.state().db().cluster_settings().restricts() {
            return Ok(());
        }
        // What is of no type is refused elsewhere, and better.
        let Ok(entry) = entry_of(statement) else { return Ok(()) };
        self.check(statement, entry, &OnceLock::new(), false)
    }

    /// 57000 if a statement must not run.
    pub(crate) fn check_run(
        &self,
        statement: &Statement,
        entry: &Entry,
        digests: &OnceLock<Digests>,
    ) -> SqlResult<()> {
        match self.state().db().cluster_settings().restricts() {
            true => self.check(statement, entry, digests, true),
            false => Ok(()),
        }
    }

    fn check(
        &self,
        statement: &Statement,
        entry: &Entry,
        digests: &OnceLock<Digests>,
        runs: bool,
    ) -> SqlResult<()> {
        let live = self.state().db().cluster_settings();
        features::check(live, statement, entry)?;
        if entry.never_denied || self.state().passes_rules() {
            return Ok(());
        }
        let Digests { loose, exact } = digests.get_or_init(|| Digests::of(&statement.text));
        let (user, application) = self.state().asks_as();
        let asked = Asked {
            user: &user,
            application: &application,
            text: &statement.text,
            loose,
            exact,
            now_micros: self.state().db().clock_micros(),
        };
        match live.judge(&asked, runs).denied {
            Some((id, rule)) => Err(denied(id, &rule)),
            None => Ok(()),
        }
    }
}

fn denied(id: u32, rule: &Rule) -> SqlError {
    let reason = rule.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    let text =
        format!("the statement is denied by rule {id} of the database administrator{reason}");
    let until = match rule.until_micros {
        Some(until) => {
            let text = Datum::Timestamp(until).to_text(Style::utc()).unwrap_or_default();
            format!("until {text} UTC")
        }
        None => "until somebody allows it".to_string(),
    };
    let detail = format!("{} has denied it, {until}.", rule.made_by);
    SqlError::new(SqlState::OPERATOR_INTERVENTION, text)
        .with_detail(detail)
        .with_hint(format!("SHOW DENIED QUERIES lists the rules; ALLOW QUERY {id} ends this one."))
}
