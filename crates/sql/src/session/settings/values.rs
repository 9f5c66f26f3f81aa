//! Session settings: SET, SHOW, RESET, and which of them clients are told about.
//!
//! Values are text. Known settings are checked; a name with a dot is a custom setting and takes
//! anything. Settings that change nothing here stand in `without_meaning`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::about::{ABOUT, NOTHING};
use super::without_meaning::{self, Form, WITHOUT_MEANING};
use crate::session::transaction::{LEVELS, level_name, level_named};
use braid_types::encodings::Encoding;
use braid_types::{SqlError, SqlResult, SqlState, Style, TimeZone, clip_name};

/// Reported version: what clients switch their behaviour by, then our own name.
pub(crate) const SERVER_VERSION: &str = concat!("15.0 (BraidDB ", env!("CARGO_PKG_VERSION"), ")");

/// (name, default, shown to clients by ParameterStatus under this name or "", can be set)
const KNOWN: &[(&str, &str, &str, bool)] = &[
    ("application_name", "", "application_name", true),
    ("autovacuum", "on", "", false),
    // Sizes and limits that tools ask for before they compute with them.
    ("block_size", "8192", "", false),
    ("backslash_quote", "safe_encoding", "", true),
    ("backfill_rows_per_second", "0", "", true),
    ("bypass_denied_queries", "off", "", true),
    ("bytea_output", "hex", "", true),
    ("check_function_bodies", "on", "", true),
    ("client_encoding", "UTF8", "client_encoding", true),
    ("client_min_messages", "notice", "", true),
    ("compute_query_id", "auto", "", true),
    ("datestyle", "ISO, MDY", "DateStyle", true),
    ("default_statistics_target", "100", "", true),
    ("default_table_access_method", "heap", "", true),
    ("default_tablespace", "", "", true),
    ("default_transaction_deferrable", "off", "", true),
    ("default_transaction_isolation", "serializable", "", true),
    ("default_transaction_read_only", "off", "default_transaction_read_only", true),
    ("escape_string_warning", "on", "", true),
    ("extra_float_digits", "1", "", true),
    ("idle_in_transaction_session_timeout", "0", "", true),
    ("idle_session_timeout", "0", "", true),
    ("in_hot_standby", "off", "in_hot_standby", false),
    ("integer_datetimes", "on", "integer_datetimes", false),
    ("intervalstyle", "postgres", "IntervalStyle", true),
    ("is_superuser", "on", "is_superuser", false),
    ("lc_collate", "C", "", false),
    ("lc_ctype", "C", "", false),
    ("lc_messages", "C", "", true),
    ("lc_monetary", "C", "", true),
    ("lc_numeric", "C", "", true),
    ("lc_time", "C", "", true),
    ("lock_timeout", "0", "", true),
    ("log_min_duration_statement", "-1", "", true),
    ("log_statement", "none", "", true),
    ("max_function_args", "100", "", false),
    ("max_identifier_length", "63", "", false),
    ("max_index_keys", "32", "", false),
    ("max_prepared_transactions", "0", "", false),
    ("max_parallel_maintenance_workers", "2", "", true),
    ("max_parallel_workers_per_gather", "2", "", true),
    ("min_parallel_table_scan_size", "8MB", "", true),
    ("privileges_enforced", "off", "", false),
    ("pg_stat_statements.max", "5000", "", false),
    ("pg_stat_statements.track", "top", "", true),
    ("pg_stat_statements.track_utility", "on", "", true),
    ("quote_all_identifiers", "off", "", true),
    ("role", "none", "", true),
    ("row_security", "on", "", true),
    ("search_path", "\"$user\", public", "", true),
    ("server_encoding", "UTF8", "server_encoding", false),
    ("server_version", SERVER_VERSION, "server_version", false),
    ("server_version_num", "150000", "", false),
    ("session_authorization", "", "session_authorization", true),
    ("session_replication_role", "origin", "", true),
    ("ssl", "off", "", false),
    ("standard_conforming_strings", "on", "standard_conforming_strings", true),
    ("statement_mem", "256MB", "", true),
    ("statement_timeout", "0", "", true),
    ("synchronize_seqscans", "on", "", true),
    ("synchronous_commit", "on", "", true),
    ("timezone", "UTC", "TimeZone", true),
    ("track_activity_query_size", "1024", "", false),
    ("transaction_deferrable", "off", "", true),
    ("transaction_isolation", "", "", true),
    ("transaction_read_only", "", "", true),
    ("transaction_timeout", "0", "", true),
    ("work_mem", "64MB", "", true),
    ("xmloption", "content", "", true),
];

/// Values of a session.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    session: BTreeMap<String, String>,
    local: BTreeMap<String, String>,
    /// What RESET returns to: given at connection start.
    startup: BTreeMap<String, String>,
}

fn meaningless(name: &str) -> Option<&'static (&'static str, &'static str, Form)> {
    WITHOUT_MEANING.iter().find(|k| k.0 == name)
}

fn default(name: &str) -> Option<&'static str> {
    known(name).map(|k| k.1).or_else(|| meaningless(name).map(|k| k.1))
}

fn known(name: &str) -> Option<&'static (&'static str, &'static str, &'static str, bool)> {
    KNOWN.iter().find(|k| k.0 == name)
}

/// The name that SHOW heads its column with.
pub(crate) fn shown_name(name: &str) -> &str {
    match known(&name.to_lowercase()) {
        Some((own, _, "", _)) => own,
        Some((_, _, reported, _)) => reported,
        None => name,
    }
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("unrecognized configuration parameter \"{name}\""),
    )
}

/// A setting, as catalogs and the page of settings show it.
#[derive(Clone, Copy, Debug)]
pub struct ShownSetting {
    /// Its name, as clients are told it.
    pub name: &'static str,
    /// What kind of value it has, as `pg_settings` says it.
    pub kind: &'static str,
    /// What it is until somebody says otherwise; empty too where that depends on the session.
    pub default: &'static str,
    /// The values that it takes, if they are few words.
    pub values: &'static [&'static str],
    /// Whether a session can set it.
    pub can_be_set: bool,
    /// Whether it changes anything.
    pub has_meaning: bool,
    /// What it is about.
    pub about: &'static str,
}

/// All settings, by name.
pub fn shown_settings() -> Vec<ShownSetting> {
    let own = KNOWN.iter().map(|(name, default, reported, can_be_set)| {
        let kind = match *default {
            "on" | "off" => "bool",
            number if number.parse::<i64>().is_ok() => "integer",
            _ => "string",
        };
        let about = ABOUT.iter().find(|(known, _)| known == name).map_or("", |(_, about)| about);
        ShownSetting {
            name: if reported.is_empty() { name } else { reported },
            kind,
            default,
            values: &[],
            can_be_set: *can_be_set,
            has_meaning: !about.starts_with("accepted"),
            about,
        }
    });
    let others = WITHOUT_MEANING.iter().map(|(name, default, form)| ShownSetting {
        name,
        kind: form.type_name(),
        default,
        values: match form {
            Form::Word(words) => words,
            _ => &[],
        },
        can_be_set: true,
        has_meaning: false,
        about: NOTHING,
    });
    let mut all: Vec<_> = own.chain(others).collect();
    all.sort_by_key(|setting| setting.name.to_lowercase());
    all
}

impl Settings {
    /// The value of a setting; `None` if there is no such setting.
    pub fn get(&self, name: &str) -> Option<String> {
        let name = name.to_lowercase();
        for map in [&self.local, &self.session, &self.startup] {
            if let Some(v) = map.get(&name) {
                return Some(v.clone());
            }
        }
        default(&name).map(str::to_string)
    }

    /// `DateStyle` with what the given words leave as it is.
    fn date_style(&self, value: &str) -> SqlResult<String> {
        let now = self.style();
        let parsed = Style::parse_dates(value, now.date, now.order);
        let (form, order) = parsed.ok_or_else(|| invalid("DateStyle", value))?;
        Ok(Style::dates_text(form, order).to_string())
    }

    /// How values look as text.
    pub fn style(&self) -> Style {
        let get = |n: &str| self.get(n).unwrap_or_default();
        let zone = TimeZone::parse_setting(&get("timezone")).map_or(TimeZone::utc(), |z| z.0);
        let iso = Style::iso(zone);
        let (date, order) = Style::parse_dates(&get("datestyle"), iso.date, iso.order)
            .unwrap_or((iso.date, iso.order));
        Style {
            zone,
            date,
            order,
            interval: Style::parse_interval_form(&get("intervalstyle")).unwrap_or_default(),
            float_digits: get("extra_float_digits").parse().unwrap_or(1),
            bytea_escape: get("bytea_output") == "escape",
            now: 0,
        }
    }

    /// 42704 if there is no such setting.
    pub(in crate::session) fn known(&self, name: &str) -> SqlResult<()> {
        let there = known(name).is_some() || meaningless(name).is_some() || name.contains('.');
        if there { Ok(()) } else { Err(unknown(name)) }
    }

    /// Sets a value; returns the checked form and the name for ParameterStatus, if reported.
    pub fn set(
        &mut self,
        name: &str,
        value: &str,
        local: bool,
    ) -> SqlResult<(String, Option<&'static str>)> {
        let name = name.to_lowercase();
        self.known(&name)?;
        let entry = known(&name);
        if entry.is_some_and(|e| !e.3) {
            return Err(SqlError::new(
                SqlState("55P02"),
                format!("parameter \"{name}\" cannot be changed"),
            ));
        }
        let value = match name.as_str() {
            "datestyle" => self.date_style(value)?,
            _ => check(&name, value)?,
        };
        let map = if local { &mut self.local } else { &mut self.session };
        map.insert(name.clone(), value.clone());
        if !local {
            self.local.remove(&name);
        }
        Ok((value, entry.map(|e| e.2).filter(|n| !n.is_empty())))
    }

    /// A value given by the client at the start of the connection.
    pub(crate) fn set_startup(&mut self, name: &str, value: &str) -> SqlResult<()> {
        let name = name.to_lowercase();
        self.known(&name)?;
        let value = match name.as_str() {
            "datestyle" => self.date_style(value)?,
            _ => check(&name, value)?,
        };
        self.startup.insert(name, value);
        Ok(())
    }

    /// Settings that are not as when nobody had said anything.
    pub(crate) fn changed(&self) -> Vec<(String, String)> {
        let maps = [&self.startup, &self.session, &self.local];
        let mut names: Vec<&String> = maps.into_iter().flat_map(BTreeMap::keys).collect();
        names.sort();
        names.dedup();
        let changed = |name: &&String| {
            let value = self.get(name).unwrap_or_default();
            (default(name) != Some(value.as_str())).then(|| ((*name).clone(), value))
        };
        names.iter().filter_map(changed).collect()
    }

    /// Settings that somebody has given, whatever they are, with their present values.
    pub(crate) fn given(&self) -> Vec<(String, String)> {
        let maps = [&self.startup, &self.session, &self.local];
        let names: BTreeSet<&String> = maps.into_iter().flat_map(BTreeMap::keys).collect();
        names.into_iter().map(|name| (name.clone(), self.get(name).unwrap_or_default())).collect()
    }

    /// Whether sessions can begin with these.
    pub(crate) fn check_all(settings: &[(String, String)]) -> SqlResult<()> {
        let mut all = Settings::default();
        settings.iter().try_for_each(|(name, value)| all.set_startup(name, value))
    }

    /// RESET; `None` resets all.
    pub fn reset(&mut self, name: Option<&str>) -> SqlResult<()> {
        match name {
            None => {
                self.session.clear();
                self.local.clear();
            }
            Some(n) => {
                self.known(n)?;
                self.session.remove(n);
                self.local.remove(n);
            }
        }
        Ok(())
    }

    /// Whether SET LOCAL has set any.
    pub(crate) fn has_local(&self) -> bool {
        !self.local.is_empty()
    }

    /// Forgets SET LOCAL values: the transaction ended.
    pub(crate) fn end_transaction(&mut self) {
        self.local.clear();
    }

    /// Settings that clients are told about, with their values.
    pub fn reported(&self) -> Vec<(String, String)> {
        KNOWN
            .iter()
            .filter(|k| !k.2.is_empty())
            .map(|k| (k.2.to_string(), self.get(k.0).unwrap_or_default()))
            .collect()
    }

    /// The effective search path for a user: `"$user"` replaced, quotes taken off.
    pub fn search_path(&self, user: &str) -> Vec<String> {
        let text = self.get("search_path").unwrap_or_default();
        text.split(',')
            .map(str::trim)
            .filter(|s| !s.is_empty())
            .map(|s| match s.strip_prefix('"').and_then(|s| s.strip_suffix('"')) {
                Some(q) => q.replace("\"\"", "\""),
                None => s.to_lowercase(),
            })
            .map(|s| if s == "$user" { user.to_string() } else { s })
            .collect()
    }
}

pub(in crate::session) fn invalid(name: &str, value: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"{name}\": \"{value}\""),
    )
}

/// What `on` and `off` may be called: also by the beginnings of these words that tell them apart.
pub(in crate::session) fn boolean(value: &str) -> Option<&'static str> {
    let word = value.trim().to_lowercase();
    let begins = |whole: &str| !word.is_empty() && whole.starts_with(word.as_str());
    match word.as_str() {
        "on" | "1" => Some("on"),
        "of" | "off" | "0" => Some("off"),
        _ if begins("true") || begins("yes") => Some("on"),
        _ if begins("false") || begins("no") => Some("off"),
        _ => None,
    }
}

/// `on` or `off`.
///
/// # Errors
/// 22023 if the value is neither.
pub(in crate::session) fn switch(name: &str, value: &str) -> SqlResult<&'static str> {
    boolean(value).ok_or_else(|| {
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("parameter \"{name}\" requires a Boolean value"),
        )
    })
}

/// Milliseconds of `100`, `100ms`, `5s`, `2min`, `1h`.
pub fn duration_ms(value: &str) -> Option<u64> {
    let v = value.trim();
    let digits = v.find(|c: char| !c.is_ascii_digit()).unwrap_or(v.len());
    let n: u64 = v[..digits].parse().ok()?;
    let factor = match v[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    n.checked_mul(factor)
}

/// Milliseconds in the largest unit that leaves no rest, as SHOW has them: `5s`; 0 has none.
fn duration_text(ms: u64) -> String {
    const UNITS: [(u64, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")];
    let whole = UNITS.iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    whole.map_or_else(|| ms.to_string(), |(unit, name)| format!("{}{name}", ms / unit))
}

/// Bytes of `64MB`, `1GB`, `100kB`, `512B`; a bare number counts kilobytes, as in PostgreSQL.
pub(crate) fn memory_bytes(value: &str) -> Option<usize> {
    let v = value.trim();
    let digits = v.find(|c: char| !c.is_ascii_digit()).unwrap_or(v.len());
    let n: usize = v[..digits].parse().ok()?;
    let factor = match v[digits..].trim() {
        "B" => 1,
        "" | "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    n.checked_mul(factor)
}

fn encoding(value: &str) -> SqlResult<String> {
    match Encoding::named(value) {
        // As PostgreSQL shows it to drivers that ask for it by this name.
        Some(Encoding::UTF8) if value == "UNICODE" => Ok(value.to_string()),
        // Bytes of SQL_ASCII are passed through; text must be UTF-8 all the same.
        Some(encoding) if encoding.is_supported() => Ok(encoding.name().to_string()),
        Some(encoding) => {
            let name = encoding.name();
            let detail = format!("Conversion between {name} and UTF8 is not supported.");
            let text = format!("invalid value for parameter \"client_encoding\": \"{value}\"");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).with_detail(detail))
        }
        None => Err(invalid("client_encoding", value)),
    }
}

/// Values of `client_min_messages`, each with the least important message that is sent.
const LEAST_MESSAGES: [(&str, &str); 9] = [
    ("debug5", "DEBUG"),
    ("debug4", "DEBUG"),
    ("debug3", "DEBUG"),
    ("debug2", "DEBUG"),
    ("debug1", "DEBUG"),
    ("log", "LOG"),
    ("notice", "NOTICE"),
    ("warning", "WARNING"),
    ("error", "ERROR"),
];

fn least_message(value: &str) -> SqlResult<String> {
    match value.trim().to_lowercase().as_str() {
        "debug" => Ok("debug2".into()),
        "info" => Ok("info".into()),
        other => one_of("client_min_messages", other, &LEAST_MESSAGES.map(|(name, _)| name)),
    }
}

/// How important a message of a severity is; clients always hear an INFO, which somebody asked for.
pub(in crate::session) fn importance(severity: &str) -> u8 {
    match severity {
        "DEBUG" => 0,
        "LOG" => 1,
        "NOTICE" => 2,
        "WARNING" => 3,
        _ => 4,
    }
}

/// How important a message must be, by the value of `client_min_messages`.
pub(in crate::session) fn least_notice(value: &str) -> u8 {
    let found = LEAST_MESSAGES.iter().find(|(name, _)| *name == value);
    importance(found.map_or("NOTICE", |(_, severity)| severity))
}

/// 22023 for what is no level of isolation.
pub(in crate::session) fn no_level(name: &str, value: &str) -> SqlError {
    let names = LEVELS.map(|(_, name)| name).join(", ");
    invalid(name, value).with_hint(format!("Available values: {names}."))
}

/// The name of a client, which the system's views and logs show.
fn printable(name: &str) -> String {
    let shown = |byte: u8| if (32..127).contains(&byte) { char::from(byte) } else { '?' };
    clip_name(name).bytes().map(shown).collect()
}

fn zone(value: &str) -> SqlResult<String> {
    let zone = TimeZone::parse_setting(value).map(|(_, name)| name);
    zone.ok_or_else(|| invalid("TimeZone", value))
}

fn check(name: &str, value: &str) -> SqlResult<String> {
    let ok = |v: &str| Ok(v.to_string());
    match name {
        "timezone" => zone(value),
        "application_name" => Ok(printable(value)),
        "client_encoding" => encoding(value),
        "client_min_messages" => least_message(value),
        "default_transaction_isolation" | "transaction_isolation" => {
            let level = level_named(value).ok_or_else(|| no_level(name, value))?;
            ok(level_name(level))
        }
        "synchronous_commit" => match boolean(value) {
            Some(value) => ok(value),
            None => one_of(name, value, &["local", "remote_write", "remote_apply", "on", "off"]),
        },
        "transaction_read_only" => ok(switch(name, value)?),
        _ if known(name).is_some_and(|entry| ["on", "off"].contains(&entry.1)) => {
            ok(switch(name, value)?)
        }
        "log_min_duration_statement" if value.trim() == "-1" => ok("-1"),
        "lock_timeout"
        | "statement_timeout"
        | "transaction_timeout"
        | "idle_in_transaction_session_timeout"
        | "idle_session_timeout"
        | "log_min_duration_statement" => {
            duration_ms(value).map(duration_text).ok_or_else(|| invalid(name, value))
        }
        "backslash_quote" => one_of(name, value, &["safe_encoding", "on", "off"]),
        "log_statement" => one_of(name, value, &["none", "ddl", "mod", "all"]),
        "compute_query_id" => one_of(name, value, &["auto", "regress", "on", "off"]),
        "pg_stat_statements.track" => one_of(name, value, &["none", "top", "all"]),
        // Less would not even plan.
        "statement_mem" => match memory_bytes(value) {
            Some(bytes) if bytes >= 64 << 10 => ok(value.trim()),
            _ => Err(invalid(name, value).with_hint("At least 64kB; units: B, kB, MB, GB, TB.")),
        },
        "intervalstyle" => match Style::parse_interval_form(value) {
            Some(_) => ok(&value.trim().to_lowercase()),
            None => Err(invalid("IntervalStyle", value).with_hint(
                "Available values: postgres, postgres_verbose, sql_standard, iso_8601.",
            )),
        },
        "bytea_output" => one_of(name, value, &["escape", "hex"]),
        "session_replication_role" => one_of(name, value, &["origin", "replica", "local"]),
        "extra_float_digits" => ok(number_in(name, value, -15..=3)?),
        "default_statistics_target" => ok(number_in(name, value, 1..=10_000)?),
        "min_parallel_table_scan_size" | "work_mem" => match memory_bytes(value) {
            Some(_) => ok(value.trim()),
            None if value.trim().starts_with(|c: char| c.is_ascii_digit()) => {
                Err(invalid(name, value).with_hint(
                    "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".",
                ))
            }
            None => Err(invalid(name, value)),
        },
        "max_parallel_maintenance_workers" | "max_parallel_workers_per_gather" => {
            ok(number_in(name, value, 0..=1024)?)
        }
        "backfill_rows_per_second" => ok(number_in(name, value, 0..=i64::from(i32::MAX))?),
        _ => match meaningless(name) {
            Some((.., form)) => without_meaning::check(name, value, *form),
            None => ok(value),
        },
    }
}

/// One of some words, in small letters.
pub(super) fn one_of(name: &str, value: &str, words: &[&str]) -> SqlResult<String> {
    let word = value.trim().to_lowercase();
    match words.contains(&word.as_str()) {
        true => Ok(word),
        false => {
            Err(invalid(name, value).with_hint(format!("Available values: {}.", words.join(", "))))
        }
    }
}

/// The text of a whole number in a range.
fn number_in<'a>(name: &str, value: &'a str, range: RangeInclusive<i64>) -> SqlResult<&'a str> {
    let value = value.trim();
    match value.parse::<i64>() {
        Ok(number) if range.contains(&number) => Ok(value),
        Ok(_) => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!(
                "{value} is outside the valid range for parameter \"{name}\" ({} .. {})",
                range.start(),
                range.end()
            ),
        )),
        Err(_) => Err(invalid(name, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_and_scoped() {
        let mut s = Settings::default();
        assert!(s.set("nonsense", "1", false).is_err());
        s.set("my.thing", "1", false).unwrap();
        assert_eq!(s.get("MY.thing").as_deref(), Some("1"));
        s.set("lock_timeout", "5s", true).unwrap();
        assert_eq!(s.get("lock_timeout").as_deref(), Some("5s"));
        s.end_transaction();
        assert_eq!(s.get("lock_timeout").as_deref(), Some("0"));
        s.set("statement_timeout", "2min", false).unwrap();
        assert_eq!(s.get("statement_timeout").as_deref(), Some("2min"));
        assert!(s.set("transaction_timeout", "soon", false).is_err());
        assert!(s.set("timezone", "Nowhere/City", false).is_err());
        for name in ["UTF8", "utf-8", "'utf-8'", "Unicode"] {
            s.set("client_encoding", name, false).unwrap();
            assert_eq!(s.get("client_encoding").as_deref(), Some("UTF8"), "{name}");
        }
        s.set("client_encoding", "iso-8859-1", false).unwrap();
        assert_eq!(s.get("client_encoding").as_deref(), Some("LATIN1"));
        for name in ["", "latin", "MULE_INTERNAL", "EUC_TW"] {
            assert!(s.set("client_encoding", name, false).is_err(), "{name}");
        }
        s.set("search_path", "a, \"B c\", $user", false).unwrap();
        assert_eq!(s.search_path("root"), ["a", "B c", "root"]);
    }
}
