//! What a statement of a dump is, by the words that it begins with.

use braid_types::{SqlError, SqlState};

const LARGE_OBJECTS: &str = "large objects are not supported";
const STATISTICS: &str = "statistics over several columns are not supported";
const COUNTED: &str = "rows are counted here";
const REPLICATION: &str = "replication is not supported";
const OPERATORS: &str = "operators of one's own are not supported";
const FOREIGN: &str = "data of other servers is not supported";
const TRIGGERS: &str = "triggers are not supported";
const RULES: &str = "rules are not supported";

/// Statements that say nothing about rows, with what is said of them.
const IGNORED: &[(&[&str], &str)] = &[
    (&["create", "extension"], "extensions are not supported"),
    (&["comment", "on", "extension"], "extensions are not supported"),
    (&["alter", "extension"], "extensions are not supported"),
    (&["create", "database"], "the session's database takes the dump"),
    (&["alter", "database"], "the session's database takes the dump"),
    (&["create", "function"], "only functions in SQL are supported"),
    (&["create", "or", "replace", "function"], "only functions in SQL are supported"),
    (&["create", "procedure"], "procedures are not supported"),
    (&["create", "or", "replace", "procedure"], "procedures are not supported"),
    (&["alter", "procedure"], "procedures are not supported"),
    (&["create", "aggregate"], "aggregates are not supported"),
    (&["alter", "aggregate"], "aggregates are not supported"),
    (&["create", "operator"], OPERATORS),
    (&["alter", "operator"], OPERATORS),
    (&["create", "cast"], "casts of one's own are not supported"),
    (&["create", "conversion"], "conversions of one's own are not supported"),
    (&["create", "default", "conversion"], "conversions of one's own are not supported"),
    (&["create", "transform"], "languages are not supported"),
    (&["create", "access", "method"], "access methods of one's own are not supported"),
    (&["create", "text", "search"], "text search is not supported"),
    (&["alter", "text", "search"], "text search is not supported"),
    (&["create", "foreign", "data", "wrapper"], FOREIGN),
    (&["alter", "foreign", "data", "wrapper"], FOREIGN),
    (&["create", "server"], FOREIGN),
    (&["alter", "server"], FOREIGN),
    (&["create", "user", "mapping"], FOREIGN),
    (&["create", "trigger"], TRIGGERS),
    (&["alter", "trigger"], TRIGGERS),
    (&["create", "constraint", "trigger"], TRIGGERS),
    (&["comment", "on", "trigger"], TRIGGERS),
    (&["create", "event", "trigger"], TRIGGERS),
    (&["alter", "event", "trigger"], TRIGGERS),
    (&["create", "rule"], RULES),
    (&["create", "policy"], "row security is not supported"),
    (&["alter", "policy"], "row security is not supported"),
    (&["create", "publication"], REPLICATION),
    (&["alter", "publication"], REPLICATION),
    (&["create", "subscription"], REPLICATION),
    (&["alter", "subscription"], REPLICATION),
    (&["create", "language"], "languages are not supported"),
    (&["create", "or", "replace", "language"], "languages are not supported"),
    (&["create", "statistics"], STATISTICS),
    (&["alter", "statistics"], STATISTICS),
    (&["select", "*", "from", "pg_catalog.pg_restore_relation_stats"], COUNTED),
    (&["select", "*", "from", "pg_catalog.pg_restore_attribute_stats"], COUNTED),
    (&["security", "label"], "labels are not supported"),
    (&["select", "pg_catalog.lo_create"], LARGE_OBJECTS),
    (&["select", "pg_catalog.lo_open"], LARGE_OBJECTS),
    (&["select", "pg_catalog.lowrite"], LARGE_OBJECTS),
    (&["select", "pg_catalog.lo_close"], LARGE_OBJECTS),
    (&["alter", "large", "object"], LARGE_OBJECTS),
    (&["comment", "on", "large", "object"], LARGE_OBJECTS),
    (&["begin"], "all of a dump is one transaction"),
    (&["start", "transaction"], "all of a dump is one transaction"),
    (&["commit"], "all of a dump is one transaction"),
    (&["end"], "all of a dump is one transaction"),
];

/// Statements that would end the transaction of the dump, or part it.
const OF_TRANSACTIONS: &[&[&str]] = &[
    &["rollback"],
    &["abort"],
    &["savepoint"],
    &["release"],
    &["prepare", "transaction"],
    &["commit", "prepared"],
];

/// Statements about roles and what they may do, and comments. One that fails, mostly because a role
/// or a thing is not here, says nothing about rows: it is left out.
const RIGHTS: &[&[&str]] = &[
    &["comment", "on"],
    &["set", "session", "authorization"],
    &["grant"],
    &["revoke"],
    &["alter", "default", "privileges"],
    &["create", "role"],
    &["alter", "role"],
    &["create", "user"],
    &["alter", "user"],
];

/// Statements that take something away that may be in use.
const DESTRUCTIVE: &[&[&str]] = &[&["drop"], &["truncate"], &["delete"]];

/// What a statement begins with, in lower case, and how it ends: enough to tell what it is.
pub(super) fn words(text: &str) -> Vec<String> {
    const HEAD: usize = 2000;
    const TAIL: usize = 200;
    let end = |at: usize| text.floor_char_boundary(at);
    let mut known = text[..end(HEAD)].to_lowercase();
    if text.len() > HEAD + TAIL {
        // A COPY of a thousand columns says only there where its rows come from.
        known.push(' ');
        known.push_str(&text[end(text.len() - TAIL)..].to_lowercase());
    } else {
        known = text.to_lowercase();
    }
    known
        .split(|c: char| c.is_whitespace() || "(),".contains(c))
        .filter(|w| !w.is_empty())
        .map(str::to_string)
        .collect()
}

pub(super) fn starts(words: &[String], with: &[&str]) -> bool {
    words.len() >= with.len() && words.iter().zip(with).all(|(a, b)| a == b)
}

pub(super) fn ignored(words: &[String]) -> Option<&'static str> {
    let extension = [&["create", "extension"][..], &["comment", "on", "extension"]];
    let brings_type = extension.iter().any(|with| starts(words, with))
        && words.iter().any(|word| word == "citext");
    if is_of_function(words) || brings_type {
        return None;
    }
    if let Some((_, why)) = IGNORED.iter().find(|(with, _)| starts(words, with)) {
        return Some(why);
    }
    if !starts(words, &["alter"]) {
        return None;
    }
    let has = |pair: &[&str]| words.windows(pair.len()).any(|w| starts(w, pair));
    let turns = |what: &str| {
        let how = ["enable", "disable", "always", "replica"];
        words
            .windows(3)
            .any(|w| how.contains(&&*w[0]) && w[1] == what && !["all", "user"].contains(&&*w[2]))
    };
    if starts(words, &["alter", "table"]) && turns("trigger") {
        return Some(TRIGGERS);
    }
    if starts(words, &["alter", "table"]) && turns("rule") {
        return Some(RULES);
    }
    if has(&["row", "level", "security"]) {
        return Some("row security is not supported");
    }
    let physical = has(&["cluster", "on"]) || has(&["replica", "identity"]);
    (physical || has(&["set", "storage"]) || has(&["set", "compression"]))
        .then_some("says how PostgreSQL stores rows")
}

/// Whether a statement makes a function in SQL, or is about some function. One that fails, mostly
/// because the function was left out, says nothing about rows.
pub(super) fn is_of_function(words: &[String]) -> bool {
    let in_sql = |pair: &[String]| pair[0] == "language" && pair[1].trim_matches('\'') == "sql";
    let made = [&["create", "function"][..], &["create", "or", "replace", "function"]];
    let about = [&["alter", "function"][..], &["comment", "on", "function"]];
    about.iter().any(|with| starts(words, with))
        || made.iter().any(|with| starts(words, with)) && words.windows(2).any(in_sql)
}

/// Whether a statement is about roles, owners or rights, or a comment.
pub(super) fn is_of_rights(words: &[String]) -> bool {
    let owner = || words.windows(2).any(|w| starts(w, &["owner", "to"]));
    RIGHTS.iter().any(|with| starts(words, with)) || starts(words, &["alter"]) && owner()
}

/// An error that has nothing to do with the statement: of the disk, of memory, or a cancel.
pub(super) fn is_of_node(e: &SqlError) -> bool {
    ["53", "57", "58", "XX"].iter().any(|class| e.state().0.starts_with(class))
}

/// Whether a statement would end the transaction of the dump before its end, or part it.
pub(super) fn is_of_transactions(words: &[String]) -> bool {
    OF_TRANSACTIONS.iter().any(|with| starts(words, with))
}

pub(super) fn destroys(words: &[String]) -> bool {
    let drops = |w: &String| w == "drop";
    let column = words.windows(2).any(|w| drops(&w[0]) && ["not", "default"].contains(&&*w[1]));
    DESTRUCTIVE.iter().any(|with| starts(words, with))
        || starts(words, &["alter", "table"]) && words.iter().any(drops) && !column
}

/// A statement of PostgreSQL that we cannot read is one that we do not support.
pub(super) fn is_unsupported(e: &SqlError) -> bool {
    matches!(e.state(), SqlState::FEATURE_NOT_SUPPORTED | SqlState::SYNTAX_ERROR)
}

/// Whether a statement attaches the index of a partition to that of its table.
pub(super) fn attaches_index(words: &[String]) -> bool {
    starts(words, &["alter", "index"])
        && words.windows(2).any(|w| starts(w, &["attach", "partition"]))
}

/// Whether a statement makes a table that may have rows in the dump, or a type of their values.
pub(super) fn makes_table(words: &[String]) -> bool {
    let made = ["table", "type", "domain"];
    starts(words, &["create"]) && words.iter().take(4).any(|w| made.contains(&&**w))
}

pub(super) fn is_foreign_key(words: &[String]) -> bool {
    starts(words, &["alter", "table"]) && words.windows(2).any(|w| starts(w, &["foreign", "key"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_apart_by_their_words() {
        let why = |text: &str| ignored(&words(text)).is_some();
        assert!(why("CREATE OR REPLACE FUNCTION f()\nRETURNS int\nLANGUAGE plpgsql AS $$ $$"));
        let function = |text: &str| is_of_function(&words(text)) && !why(text);
        assert!(function(
            "CREATE FUNCTION f() RETURNS int\n    LANGUAGE sql\n    AS $$ select 1 $$"
        ));
        assert!(function("ALTER FUNCTION public.f() OWNER TO me"));
        assert!(why("ALTER TABLE t CLUSTER ON i"));
        assert!(why("ALTER TABLE public.t ENABLE ALWAYS TRIGGER x"));
        assert!(!why("ALTER TABLE public.t DISABLE TRIGGER ALL"));
        // Its rows may be in the dump.
        assert!(!why("CREATE FOREIGN TABLE far (a int) SERVER s"));
        let wide: Vec<String> = (0..1_500).map(|n| format!("column_{n}")).collect();
        let wide = format!("COPY t ({}) FROM stdin", wide.join(", "));
        assert!(words(&wide).contains(&"stdin".to_string()));
        let of_rights = |text: &str| is_of_rights(&words(text));
        assert!(of_rights("ALTER TABLE ONLY public.t OWNER TO me"));
        assert!(of_rights("GRANT ALL ON t TO me") && !of_rights("CREATE TABLE owner (\"to\" int)"));
        assert!(
            !why("CREATE TABLE \"grant\" (a int)") && !why("ALTER TABLE t ADD PRIMARY KEY (a)")
        );
        let takes = |text: &str| destroys(&words(text));
        assert!(takes("DROP TABLE IF EXISTS t") && takes("TRUNCATE t"));
        assert!(takes("ALTER TABLE IF EXISTS ONLY t DROP CONSTRAINT IF EXISTS k"));
        assert!(!takes("ALTER TABLE t ALTER COLUMN a DROP DEFAULT"));
        let key = "ALTER TABLE ONLY a ADD CONSTRAINT c FOREIGN KEY (b) REFERENCES d(e)";
        assert!(is_foreign_key(&words(key)));
    }
}
