//! What of a dump is not there, since it was left out: what needs it is left out, too.
//!
//! ```text
//!   CREATE TABLE t ..   left out ─► COPY t, INSERT INTO t     rows are read over, and counted
//!                                ─► ALTER TABLE t, a view ..   "needs t, which is left out"
//! ```
//! A dump is whole in itself: what it names and is not here is something that was left out, or that
//! an extension has.

use std::collections::BTreeMap;

use braid_types::{SqlError, SqlState};
use serde::{Deserialize, Serialize};

use super::kinds::starts;

/// Words between CREATE and a name.
const BEFORE_NAMES: &[&str] = &[
    "create",
    "or",
    "replace",
    "temp",
    "temporary",
    "unlogged",
    "foreign",
    "materialized",
    "recursive",
    "unique",
    "concurrently",
    "table",
    "view",
    "type",
    "domain",
    "function",
    "procedure",
    "aggregate",
    "sequence",
    "collation",
    "index",
    "schema",
    "if",
    "not",
    "exists",
];

/// See the [module documentation](self).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Absent {
    /// Lines of what was left out, by its name as the dump writes it.
    lines: BTreeMap<String, u64>,
    /// INSERT statements of tables that were left out.
    inserts: BTreeMap<String, u64>,
    /// Where the first extension was left out.
    extension: Option<u64>,
}

impl Absent {
    /// A statement was left out.
    pub(super) fn add(&mut self, line: u64, text: &str, words: &[String]) {
        if starts(words, &["create", "extension"]) {
            self.extension.get_or_insert(line);
        } else if let Some(name) = made_by(text, words) {
            self.lines.entry(name).or_insert(line);
        }
    }

    /// The line at which a relation was left out, by its name as the dump writes it.
    pub(super) fn line_of(&self, name: &str) -> Option<u64> {
        self.lines.get(name).copied()
    }

    /// Whether an INSERT is one into a table that was left out; counts it.
    pub(super) fn takes_insert(&mut self, text: &str, words: &[String]) -> bool {
        if !starts(words, &["insert", "into"]) {
            return false;
        }
        let rest = text.trim_start()["insert".len()..].trim_start();
        let name = name_at(rest["into".len()..].trim_start());
        let is_absent = self.lines.contains_key(name);
        if is_absent {
            *self.inserts.entry(name.to_string()).or_default() += 1;
        }
        is_absent
    }

    /// The INSERT statements that were read over: table, its line, how many.
    pub(super) fn inserts(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.inserts.iter().map(|(name, count)| (&**name, self.lines[name], *count))
    }

    /// Why a statement fails, if it is for something that was left out.
    pub(super) fn cause(&self, e: &SqlError) -> Option<String> {
        if !is_undefined(e) {
            return None;
        }
        let named = |(name, _): &(&String, &u64)| mentions(e.message(), name);
        if let Some((name, line)) = self.lines.iter().find(named) {
            return Some(format!("needs {name}, which is left out (line {line})"));
        }
        let extension = self.extension?;
        let may_have = [SqlState::UNDEFINED_FUNCTION, SqlState::UNDEFINED_OBJECT];
        may_have.contains(&e.state()).then(|| {
            let what = e.message();
            format!("{what}, which an extension may have (line {extension})")
        })
    }
}

/// Whether an error says that something is not there.
pub(super) fn is_undefined(e: &SqlError) -> bool {
    [
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_OBJECT,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::UNDEFINED_COLUMN,
        SqlState::INVALID_SCHEMA_NAME,
    ]
    .contains(&e.state())
}

/// The name of what a statement makes, as it is written.
fn made_by(text: &str, words: &[String]) -> Option<String> {
    starts(words, &["create"]).then_some(())?;
    let mut rest = text.trim_start();
    loop {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        if !BEFORE_NAMES.contains(&&*rest[..end].to_lowercase()) {
            break;
        }
        rest = rest[end..].trim_start();
    }
    Some(name_at(rest)).filter(|name| !name.is_empty()).map(str::to_string)
}

/// The name that a text begins with, as it is written.
pub(super) fn name_at(text: &str) -> &str {
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        !quoted && (c.is_whitespace() || "(,;".contains(c))
    });
    &text[..end.unwrap_or(text.len())]
}

/// Whether a message names something, with its schema or without.
fn mentions(message: &str, name: &str) -> bool {
    let plain = name.replace('"', "");
    let last = plain.rsplit_once('.').map_or(&*plain, |(_, last)| last);
    let is_word = |at: usize, len: usize| {
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        !message[..at].ends_with(|c| part(c) || c == '.') && !message[at + len..].starts_with(part)
    };
    let whole =
        |wanted: &str| message.match_indices(wanted).any(|(at, found)| is_word(at, found.len()));
    whole(&plain) || whole(&format!("\"{last}\"")) || whole(&format!("{last}("))
}

#[cfg(test)]
mod tests {
    use super::super::kinds::words;
    use super::*;

    #[test]
    fn what_is_made_has_a_name() {
        for (text, name) in [
            ("CREATE TABLE public.t (\n a int)", Some("public.t")),
            ("CREATE FOREIGN TABLE b (i int) SERVER s", Some("b")),
            (
                "CREATE TABLE IF NOT EXISTS \"My (odd)\".\"T\"\"x\" (a int)",
                Some("\"My (odd)\".\"T\"\"x\""),
            ),
            ("CREATE FUNCTION public.f(a integer) RETURNS int", Some("public.f")),
            ("CREATE MATERIALIZED VIEW m AS SELECT 1", Some("m")),
            ("ALTER TABLE t ADD COLUMN a int", None),
        ] {
            assert_eq!(made_by(text, &words(text)).as_deref(), name, "{text}");
        }
        for (text, name) in [("public.t (a, b) FROM stdin", "public.t"), ("t(a)", "t"), ("", "")] {
            assert_eq!(name_at(text), name);
        }
    }

    #[test]
    fn causes_are_what_was_left_out() {
        let mut absent = Absent::default();
        let text = "CREATE TABLE public.\"T\" (a point)";
        absent.add(7, text, &words(text));
        let e = |text: &str| SqlError::new(SqlState::UNDEFINED_TABLE, text);
        let cause = |text: &str| absent.cause(&e(text));
        assert!(cause("relation \"public.T\" does not exist").is_some());
        assert!(cause("relation \"T\" does not exist").is_some());
        assert_eq!(cause("relation \"public.Th\" does not exist"), None);
        assert_eq!(cause("relation \"my_public.T\" does not exist"), None);
        let other = SqlError::new(SqlState::DIVISION_BY_ZERO, "relation \"T\"");
        assert_eq!(absent.cause(&other), None);
        let insert = "INSERT INTO public.\"T\" VALUES ('(1,2)')";
        assert!(absent.takes_insert(insert, &words(insert)));
        assert!(!absent.takes_insert("INSERT INTO t VALUES (1)", &words("INSERT INTO t")));
        assert_eq!(absent.inserts().collect::<Vec<_>>(), [("public.\"T\"", 7, 1)]);
    }
}
