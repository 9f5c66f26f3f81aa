//! All cluster settings.

use std::sync::OnceLock;

use braid_types::{SqlError, SqlResult, SqlState};

use crate::feature::Feature;

/// What values a setting has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number, at least and at most so much.
    Integer(i64, i64),
    /// What sessions begin with for the setting of this name; it has that one's values.
    SessionDefault(&'static str),
}

impl Kind {
    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bool => "boolean",
            Kind::Integer(..) => "integer",
            Kind::SessionDefault(_) => "session setting",
        }
    }
}

/// One cluster setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name: layer, thing, meaning.
    pub name: &'static str,
    /// What values it has.
    pub kind: Kind,
    /// What holds if nobody has set it. Of a session setting: nothing, its own default holds.
    pub default: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// Those that are no features.
const OTHERS: &[Setting] = &[
    of(
        "autovacuum",
        Kind::Bool,
        "true",
        "whether tables that have changed are analyzed; also ALTER SYSTEM",
    ),
    of("sql.denied_queries.enabled", Kind::Bool, "true", "whether the rules of DENY QUERY hold"),
    of(
        "sql.denied_queries.max_rules",
        Kind::Integer(0, 10_000),
        "1000",
        "how many rules of DENY QUERY there may be",
    ),
    of(
        "sql.row_deletion.enabled",
        Kind::Bool,
        "true",
        "whether rows that are too old by a row deletion policy are taken away",
    ),
    session("sql.defaults.default_transaction_isolation", "default_transaction_isolation"),
    session("sql.defaults.default_transaction_read_only", "default_transaction_read_only"),
    session(
        "sql.defaults.idle_in_transaction_session_timeout",
        "idle_in_transaction_session_timeout",
    ),
    session("sql.defaults.idle_session_timeout", "idle_session_timeout"),
    session("sql.defaults.lock_timeout", "lock_timeout"),
    session("sql.defaults.log_min_duration_statement", "log_min_duration_statement"),
    session("sql.defaults.log_statement", "log_statement"),
    session("sql.defaults.search_path", "search_path"),
    session("sql.defaults.statement_mem", "statement_mem"),
    session("sql.defaults.statement_timeout", "statement_timeout"),
    session("sql.defaults.timezone", "timezone"),
    session("sql.defaults.transaction_timeout", "transaction_timeout"),
];

const fn of(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Setting {
    Setting { name, kind, default, about }
}

const fn session(name: &'static str, of_session: &'static str) -> Setting {
    let about = "what sessions begin with that say nothing else, and RESET returns to";
    of(name, Kind::SessionDefault(of_session), "", about)
}

/// All of them, by name.
pub fn settings() -> &'static [Setting] {
    static ALL: OnceLock<Vec<Setting>> = OnceLock::new();
    ALL.get_or_init(|| {
        let features = Feature::ALL.iter().map(|f| of(f.setting(), Kind::Bool, "true", f.about()));
        let mut all: Vec<Setting> = OTHERS.iter().copied().chain(features).collect();
        all.sort_by_key(|setting| setting.name);
        all
    })
}

/// A setting by its name, in any case.
///
/// # Errors
/// 42704.
pub fn setting(name: &str) -> SqlResult<&'static Setting> {
    let lower = name.to_lowercase();
    let all = settings();
    let found = all.binary_search_by_key(&lower.as_str(), |setting| setting.name);
    found.map(|at| &all[at]).map_err(|_| {
        SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unknown cluster setting \"{name}\""))
            .with_hint("SHOW CLUSTER SETTINGS lists them all.")
    })
}

impl Setting {
    /// A value as it is kept. `of_session` says what a session setting takes.
    ///
    /// # Errors
    /// 22023 for one that it cannot have; those of `of_session`.
    pub fn checked(
        &self,
        value: &str,
        of_session: impl Fn(&str, &str) -> SqlResult<()>,
    ) -> SqlResult<String> {
        let refused = |what: String| {
            let text = format!("invalid value for cluster setting \"{}\": \"{value}\"", self.name);
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text).with_hint(what))
        };
        match self.kind {
            Kind::Bool => match boolean(value) {
                Some(on) => Ok(on.to_string()),
                None => refused("It is a boolean: true or false.".into()),
            },
            Kind::Integer(least, most) => match value.trim().parse::<i64>() {
                Ok(n) if (least..=most).contains(&n) => Ok(n.to_string()),
                _ => refused(format!("It is an integer from {least} to {most}.")),
            },
            Kind::SessionDefault(name) => of_session(name, value).map(|()| value.to_string()),
        }
    }
}

/// A switch, as PostgreSQL's settings take it.
fn boolean(value: &str) -> Option<bool> {
    match value.trim().to_lowercase().as_str() {
        "true" | "on" | "yes" | "1" | "t" | "y" => Some(true),
        "false" | "off" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(_: &str, _: &str) -> SqlResult<()> {
        Ok(())
    }

    #[test]
    fn names_are_in_order_and_defaults_are_values() {
        let all = settings();
        assert!(all.windows(2).all(|pair| pair[0].name < pair[1].name));
        for one in all {
            assert_eq!(setting(&one.name.to_uppercase()).expect("by any case").name, one.name);
            let default = one.checked(one.default, any);
            assert_eq!(default.as_deref().ok(), Some(one.default), "{}", one.name);
        }
        assert_eq!(setting("no.such.thing").map(|s| s.name).unwrap_err().state().0, "42704");
    }

    #[test]
    fn values_are_checked_when_they_are_set() {
        let switch = setting("feature.import.enabled").expect("it is there");
        assert_eq!(switch.checked("OFF", any).as_deref().ok(), Some("false"));
        assert_eq!(switch.checked("maybe", any).unwrap_err().state().0, "22023");
        let count = setting("sql.denied_queries.max_rules").expect("it is there");
        for bad in ["-1", "10001", "", "1.5", "9999999999999999999999"] {
            assert_eq!(count.checked(bad, any).unwrap_err().state().0, "22023", "{bad}");
        }
        let refuses = |name: &str, _: &str| Err(SqlError::syntax(format!("not {name}")));
        let default = setting("sql.defaults.lock_timeout").expect("it is there");
        assert!(default.checked("x", refuses).unwrap_err().message().contains("lock_timeout"));
    }
}
