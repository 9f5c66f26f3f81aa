//! SET and RESET CLUSTER SETTING, DENY QUERY, ALLOW QUERY.

use braid_parser::{Denied, DenyQuery, SetCluster};
use braid_settings::{Action, Kind, Match, Rule, Setting, Stored, setting};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};

use crate::database::Database;
use crate::session::Session;
use crate::session::settings::Settings;
use crate::statement::registry::entry_of;

/// A rule that is over is kept for so long, to be seen.
const OVER_MICROS: i64 = 24 * 3600 * 1_000_000;

impl Session {
    /// SET and RESET CLUSTER SETTING.
    pub(crate) fn set_cluster(&mut self, s: &SetCluster) -> SqlResult<()> {
        self.not_in_a_block("SET CLUSTER SETTING")?;
        let by = self.now_and_who().1;
        let version = self.state().db().set_for_cluster(&s.name, s.value.as_deref(), &by)?;
        self.tell_of_version(version, s.for_all_nodes)
    }

    /// DENY QUERY; the number of the rule.
    pub(crate) fn deny_query(&mut self, deny: &DenyQuery) -> SqlResult<u32> {
        self.not_in_a_block("DENY QUERY")?;
        let rule = self.rule(deny)?;
        let now = rule.at_micros;
        let most = self.state().db().cluster_settings().max_rules();
        let (id, version) = self.state().db().change_cluster_settings(|picture| {
            picture.rules.retain(|_, rule| !rule.is_over(now - OVER_MICROS));
            if picture.rules.len() >= most {
                let text = format!("there are {most} rules of DENY QUERY already");
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, text)
                    .with_hint("It is the cluster setting sql.denied_queries.max_rules."));
            }
            // As each version comes once, so does each number.
            let id = u32::try_from(picture.version).unwrap_or(u32::MAX);
            picture.rules.insert(id, rule.clone());
            Ok(id)
        })?;
        let Rule { by, text, made_by, .. } = &rule;
        tracing::warn!(rule = id, by = by.name(), text, made_by, "statements are denied");
        self.tell_of_version(version, false)?;
        Ok(id)
    }

    fn rule(&self, deny: &DenyQuery) -> SqlResult<Rule> {
        let (by, text) = match &deny.what {
            Denied::Exact(text) => (Match::Exact, text.clone()),
            Denied::Fingerprint(text) => (Match::Fingerprint, text.clone()),
            Denied::QueryId(id) => (Match::Fingerprint, self.text_of(*id)?),
            Denied::Regex(text) => (Match::Regex, text.clone()),
        };
        match by {
            Match::Regex => drop(braid_settings::rule::compiled(&text)?),
            Match::Exact | Match::Fingerprint => check_statement(&text)?,
        }
        let (at_micros, made_by) = self.now_and_who();
        let until = match (&deny.until, &deny.interval) {
            (Some(until), _) => Some((until.clone(), SqlType::TimestampTz)),
            (None, Some(interval)) => Some((interval.clone(), SqlType::Interval)),
            (None, None) => None,
        };
        let until_micros =
            until.map(|(text, ty)| self.end_of_rule(&text, &ty, at_micros)).transpose()?;
        Ok(Rule {
            by,
            text,
            user: deny.user.clone(),
            application: deny.application.clone(),
            until_micros,
            action: if deny.dry_run { Action::DryRun } else { Action::Reject },
            reason: deny.reason.clone(),
            at_micros,
            made_by,
        })
    }

    /// The text of a statement that statistics know by this number.
    fn text_of(&self, id: i64) -> SqlResult<String> {
        let known = self.state().db().statements().all().into_iter().find(|s| s.id == id);
        let known = known.filter(|s| s.text.len() < crate::runtime::statements::TEXT_MAX);
        known.map(|s| s.text).ok_or_else(|| {
            let text = format!("no statement with query id {id} is known on this node");
            SqlError::new(SqlState::UNDEFINED_OBJECT, text)
                .with_hint("Give its text: DENY QUERY FINGERPRINT 'select ..'.")
        })
    }

    fn end_of_rule(&self, text: &str, ty: &SqlType, now: i64) -> SqlResult<i64> {
        let end = match Datum::parse(text, ty, self.input_style())? {
            Datum::TimestampTz(at) => at,
            Datum::Interval(span) => braid_scalar::add_interval(now, &span)?,
            _ => now,
        };
        if end <= now {
            let text = format!("a rule that ends at \"{text}\" is over already");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text));
        }
        Ok(end)
    }

    /// ALLOW QUERY: the rule of this number, or all. How many there were.
    pub(crate) fn allow_query(&mut self, which: Option<u32>) -> SqlResult<usize> {
        self.not_in_a_block("ALLOW QUERY")?;
        let (gone, version) = self.state().db().change_cluster_settings(|picture| {
            let before = picture.rules.len();
            picture.rules.retain(|id, _| which.is_some_and(|which| which != *id));
            match (before - picture.rules.len(), which) {
                (0, Some(id)) => {
                    let text = format!("there is no rule {id} of DENY QUERY");
                    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text)
                        .with_hint("SHOW DENIED QUERIES lists them."))
                }
                (gone, _) => Ok(gone),
            }
        })?;
        let (_, by) = self.now_and_who();
        tracing::warn!(rule = which, gone, by, "statements are allowed again");
        self.tell_of_version(version, false)?;
        Ok(gone)
    }

    fn not_in_a_block(&self, what: &str) -> SqlResult<()> {
        if !self.is_open() {
            return Ok(());
        }
        let text = format!("{what} cannot run inside a transaction block");
        Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, text))
    }

    fn now_and_who(&self) -> (i64, String) {
        (self.state().db().clock_micros(), self.state().asks_as().0)
    }
}

impl Database {
    /// Sets a cluster setting, or gives it its default; the version from which on it holds.
    ///
    /// # Errors
    /// 42704, 22023, and as [`Database::change_cluster_settings`].
    pub(crate) fn set_for_cluster(
        &self,
        name: &str,
        value: Option<&str>,
        by: &str,
    ) -> SqlResult<u64> {
        let known = setting(name)?;
        let value = value.map(|value| checked(known, value)).transpose()?;
        let at_micros = self.clock_micros();
        let (before, version) = self.change_cluster_settings(|picture| {
            let before = picture.values.remove(known.name).map(|stored| stored.value);
            if let Some(value) = value.clone() {
                let (version, by) = (picture.version, by.to_string());
                let stored = Stored { value, version, before: before.clone(), at_micros, by };
                picture.values.insert(known.name.to_string(), stored);
            }
            Ok(before)
        })?;
        let shown = |value: Option<&str>| value.unwrap_or(known.default).to_string();
        let (before, now) = (shown(before.as_deref()), shown(value.as_deref()));
        tracing::info!(name = known.name, before, now, by, version, "a cluster setting is changed");
        Ok(version)
    }
}

fn checked(known: &Setting, value: &str) -> SqlResult<String> {
    known.checked(value, |name, value| {
        debug_assert!(matches!(known.kind, Kind::SessionDefault(_)));
        Settings::check_all(&[(name.to_string(), value.to_string())])
    })
}

/// A statement that can be denied: one, that can be read, and not one of those by which rules end.
fn check_statement(text: &str) -> SqlResult<()> {
    let statements = braid_parser::parse_script(text)?;
    let refused = |why: &str| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, why));
    let [statement] = &statements[..] else {
        return refused("a rule names exactly one statement");
    };
    if entry_of(statement)?.never_denied {
        return refused("that statement is never denied: rules could not be ended any more");
    }
    Ok(())
}
