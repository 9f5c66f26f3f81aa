//! Objects of PostgreSQL that are not here: refused by their name and with a way out, instead of as
//! a syntax error; and DROP of one, which there is none of.
//!
//! ```text
//!   CREATE RULE r AS ..                    0A000, CREATE RULE is not supported
//!   DROP TRIGGER IF EXISTS t ON orders     a notice
//! ```

use braid_types::SqlResult;

use sqlparser::tokenizer::Token;

use crate::cursor::Cursor;
use crate::{Kind, Name};

/// A kind of object.
struct Absent {
    /// How statements say it.
    words: &'static [&'static str],
    /// How messages say it.
    noun: &'static str,
    /// Whether its name goes with ON and a relation.
    of_relation: bool,
    hint: &'static str,
}

const fn absent(
    words: &'static [&'static str],
    noun: &'static str,
    of_relation: bool,
    hint: &'static str,
) -> Absent {
    Absent { words, noun, of_relation, hint }
}

const ELSEWHERE: &str = "What other servers hold can be brought here: IMPORT, COPY.";
const BUILT_IN: &str = "Types, operators and functions are those that are built in; functions in \
                        SQL can be added: CREATE FUNCTION.";
const BLOCKS: &str =
    "Blocks of statements are run by DO; functions have one query: CREATE FUNCTION.";
const WRITES: &str = "Generated columns, defaults, foreign keys with actions and MERGE do much of \
                      what triggers and rules are for.";
const SEARCH: &str = "Text search is not here; LIKE, regular expressions and jsonb are.";
const COPIES: &str = "A cluster replicates by itself; EXPORT and COPY TO give rows to others.";

const STORE: &str = "All is in the directory of the store.";
const PARENTS: &str = "Write the columns of both tables out, or keep them in one table with a \
                       column that tells their kinds apart.";
const LIKE: &str = "Write CREATE TABLE x (LIKE the_type).";

const KINDS: &[Absent] = &[
    absent(&["rule"], "rule", true, WRITES),
    absent(&["trigger"], "trigger", true, WRITES),
    absent(&["constraint", "trigger"], "trigger", true, WRITES),
    absent(&["event", "trigger"], "event trigger", false, WRITES),
    absent(&["policy"], "policy", true, "Views with WITH CHECK OPTION limit what is written."),
    absent(&["aggregate"], "aggregate", false, BUILT_IN),
    absent(&["operator", "class"], "operator class", false, BUILT_IN),
    absent(&["operator", "family"], "operator family", false, BUILT_IN),
    absent(&["operator"], "operator", false, BUILT_IN),
    absent(&["cast"], "cast", false, BUILT_IN),
    absent(&["transform"], "transform", false, BUILT_IN),
    absent(&["conversion"], "conversion", false, "Text is UTF-8."),
    absent(&["text", "search", "configuration"], "text search configuration", false, SEARCH),
    absent(&["text", "search", "dictionary"], "text search dictionary", false, SEARCH),
    absent(&["text", "search", "parser"], "text search parser", false, SEARCH),
    absent(&["text", "search", "template"], "text search template", false, SEARCH),
    absent(&["publication"], "publication", false, COPIES),
    absent(&["subscription"], "subscription", false, COPIES),
    absent(&["server"], "server", false, ELSEWHERE),
    absent(&["foreign", "data", "wrapper"], "foreign-data wrapper", false, ELSEWHERE),
    absent(&["foreign", "table"], "foreign table", false, ELSEWHERE),
    absent(&["user", "mapping"], "user mapping", false, ELSEWHERE),
    absent(&["procedure"], "procedure", false, BLOCKS),
    absent(&["language"], "language", false, "Functions are in SQL: LANGUAGE sql."),
    absent(&["access", "method"], "access method", false, BUILT_IN),
    absent(&["tablespace"], "tablespace", false, STORE),
    absent(
        &["statistics"],
        "statistics object",
        false,
        "ANALYZE keeps statistics of each column; plans know no others.",
    ),
];

/// DROP of what is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropAbsent {
    /// What the command is called.
    pub tag: String,
    /// What messages call it.
    pub noun: &'static str,
    /// Its name.
    pub name: String,
    /// The relation that it would belong to.
    pub of: Option<Name>,
    /// IF EXISTS.
    pub if_exists: bool,
}

/// Reads a statement about one; `None` if it is another statement.
pub(crate) fn statement(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let mut probe = c.clone();
    if probe.take(&["import", "foreign", "schema"]) {
        while c.next().is_some() {}
        return Ok(Some(Kind::Refused("IMPORT FOREIGN SCHEMA".into(), ELSEWHERE)));
    }
    if let Some(what) = of_other_tables(&probe) {
        while c.next().is_some() {}
        return Ok(Some(what));
    }
    let verb = ["create", "alter", "drop"].into_iter().find(|verb| probe.take(&[verb]));
    let Some(verb) = verb else { return Ok(None) };
    if verb == "create" {
        let _ = probe.take(&["or", "replace"]);
        let _ = probe.take(&["default"]) || probe.take(&["trusted"]);
        probe.take(&["procedural"]);
    } else if verb == "drop" {
        probe.take(&["procedural"]);
    }
    let Some(kind) = KINDS.iter().find(|kind| probe.take(kind.words)) else { return Ok(None) };
    let tag = format!("{verb} {}", kind.words.join(" ")).to_uppercase();
    if verb != "drop" {
        while c.next().is_some() {}
        return Ok(Some(Kind::Refused(tag, kind.hint)));
    }
    let if_exists = probe.take(&["if", "exists"]);
    let mut words = Vec::new();
    let mut of = None;
    while let Some(token) = probe.peek().cloned() {
        if kind.of_relation && probe.take(&["on"]) {
            of = Some(probe.name()?);
            break;
        }
        if probe.is_word(0, "cascade") || probe.is_word(0, "restrict") {
            break;
        }
        words.push(match &token {
            Token::Word(w) => crate::cursor::fold(w),
            other => other.to_string(),
        });
        probe.next();
    }
    if words.is_empty() {
        return Err(probe.unexpected());
    }
    let _ = probe.take(&["cascade"]) || probe.take(&["restrict"]);
    *c = probe;
    let name = words.concat();
    Ok(Some(Kind::DropAbsent(DropAbsent { tag, noun: kind.noun, name, of, if_exists })))
}

/// ALTER TABLE with an action that speaks of what tables have here from nobody: columns of another
/// table or of a type, a tablespace.
fn of_other_tables(c: &Cursor) -> Option<Kind> {
    let mut probe = c.clone();
    if !probe.take(&["alter"]) {
        return None;
    }
    let kind = [&["table"][..], &["index"], &["materialized", "view"]]
        .into_iter()
        .find(|kind| probe.take(kind))?;
    let refused = |action: &str, hint| {
        let tag = format!("ALTER {} .. {action}", kind.join(" ").to_uppercase());
        Some(Kind::Refused(tag, hint))
    };
    if probe.looking_at(&["all", "in", "tablespace"]) {
        return refused("ALL IN TABLESPACE", STORE);
    }
    probe.take(&["if", "exists"]);
    probe.take(&["only"]);
    probe.name().ok()?;
    probe.take_token(&Token::Mul);
    match kind {
        ["table"] if probe.looking_at(&["inherit"]) => refused("INHERIT", PARENTS),
        ["table"] if probe.looking_at(&["no", "inherit"]) => refused("NO INHERIT", PARENTS),
        ["table"] if probe.looking_at(&["of"]) => refused("OF a type", LIKE),
        ["table"] if probe.looking_at(&["not", "of"]) => refused("NOT OF", LIKE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Kind, parse_script};

    fn shown(sql: &str) -> String {
        match &*parse_script(sql).unwrap()[0].kind {
            Kind::Refused(what, _) => what.clone(),
            Kind::DropAbsent(d) => format!("{} {} {:?}", d.tag, d.name, d.of),
            other => format!("{other:?}").chars().take(20).collect(),
        }
    }

    #[test]
    fn what_is_not_here_is_called_by_its_name() {
        for (sql, what) in [
            ("create or replace rule r as on insert to t do nothing", "CREATE RULE"),
            ("create constraint trigger c after insert on t", "CREATE CONSTRAINT TRIGGER"),
            ("create operator === (leftarg = int)", "CREATE OPERATOR"),
            (
                "create operator class o for type int using btree as storage int",
                "CREATE OPERATOR CLASS",
            ),
            ("create trusted procedural language p", "CREATE LANGUAGE"),
            ("alter text search configuration x add mapping", "ALTER TEXT SEARCH CONFIGURATION"),
            ("drop trigger if exists t on s.o cascade", "DROP TRIGGER t Some([\"s\", \"o\"])"),
            ("create procedure p(a int) begin atomic select 1; end", "CREATE PROCEDURE"),
            ("import foreign schema s from server t into u", "IMPORT FOREIGN SCHEMA"),
            ("alter table only a inherit s.b", "ALTER TABLE .. INHERIT"),
            ("alter table if exists a no inherit b", "ALTER TABLE .. NO INHERIT"),
            (
                "alter index all in tablespace x set tablespace pg_default",
                "ALTER INDEX .. ALL IN TABLESPACE",
            ),
            ("drop procedure if exists p(int)", "DROP PROCEDURE p(int) None"),
            ("drop aggregate if exists a(int)", "DROP AGGREGATE a(int) None"),
        ] {
            assert_eq!(shown(sql), what, "{sql}");
        }
    }
}
