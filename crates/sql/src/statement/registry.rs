//! All statement types, and which of them a statement is of.

use braid_parser::{Kind, Statement};
use braid_types::{SqlError, SqlResult};

use super::entry::Entry;
use super::{rows, schema, session};

/// All entries. Those that clients send most come first: they are asked in this order.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    [rows::ENTRIES, session::ENTRIES, schema::ENTRIES].into_iter().flatten()
}

/// The entry of a statement.
///
/// # Errors
/// 0A000 if the statement can be read, but no type of ours is its.
pub(crate) fn entry_of(statement: &Statement) -> SqlResult<&'static Entry> {
    entries().find(|entry| entry.claims(statement)).ok_or_else(|| unsupported(&statement.kind))
}

fn unsupported(kind: &Kind) -> SqlError {
    let error = match kind {
        Kind::Refused(what, hint) => return SqlError::unsupported(what).with_hint(*hint),
        Kind::Sql(sql) => {
            let text = sql.to_string();
            // A name or a value is no part of what it is called.
            let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_uppercase());
            let words: Vec<_> = text.split_whitespace().take(2).take_while(is_word).collect();
            SqlError::unsupported(words.join(" "))
        }
        other => SqlError::unsupported(format!("{other:?}")),
    };
    error.with_hint("docs/statements.md lists the statements that are.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(sql: &str) -> Statement {
        let mut all = braid_parser::parse_script(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        assert_eq!(all.len(), 1, "{sql}");
        all.remove(0)
    }

    #[test]
    fn every_example_belongs_to_its_entry_and_to_no_other() {
        for entry in entries() {
            let statement = parse(entry.example);
            let claimed: Vec<&str> =
                entries().filter(|e| e.claims(&statement)).map(|e| e.example).collect();
            assert_eq!(claimed, [entry.example]);
        }
    }

    #[test]
    fn no_entry_lacks_a_property() {
        for Entry { name, example, about, .. } in entries() {
            assert_eq!(*name, name.to_uppercase(), "{example}");
            let ends = about.ends_with('.') || about.contains('\n');
            assert!(!about.is_empty() && !ends, "{name}: one line, no full stop: {about:?}");
        }
    }

    #[test]
    fn what_is_of_no_type_is_refused_by_name_and_with_a_hint() {
        for (sql, what) in [
            ("create policy p on t", "CREATE POLICY"),
            ("create rule r as on insert to t do nothing", "CREATE RULE"),
            ("create statistics s on a, b from t", "CREATE STATISTICS"),
            ("create aggregate a (int) (sfunc = int4pl, stype = int)", "CREATE AGGREGATE"),
            ("create operator === (leftarg = int)", "CREATE OPERATOR"),
            ("create cast (int as text) with inout", "CREATE CAST"),
            ("call p(1)", "CALL"),
            ("load 'library'", "LOAD"),
            ("create procedure p() language sql as 'select 1'", "CREATE PROCEDURE"),
            ("create trigger t before insert on t execute function f()", "CREATE TRIGGER"),
        ] {
            let e = entry_of(&parse(sql)).err().expect(sql);
            assert_eq!(e.state().0, "0A000", "{sql}");
            assert_eq!(e.message(), format!("{what} is not supported"));
            assert!(e.hint().is_some(), "{sql}");
        }
    }
}
