//! What PostgreSQL answers, told in scripts: `testscripts/postgres/*.txt`.
//!
//! A script is SQL, one session from its beginning to its end. Printed are the rows of each
//! statement, or its error with SQLSTATE, detail and hint. `scripts/as-postgres` plays the same
//! statements on PostgreSQL and compares: what a block says must be what both say, unless a comment
//! above it tells how it `differs:`.

use crate::harness::Db;

#[test]
fn scripts_answer_as_postgres_does() {
    play(concat!(env!("CARGO_MANIFEST_DIR"), "/testscripts/postgres"));
}

/// What GoogleSQL has besides, with its documentation's answers: `testscripts/googlesql/*.txt`.
#[test]
fn scripts_of_googlesql_answer_as_spanner_does() {
    play(concat!(env!("CARGO_MANIFEST_DIR"), "/testscripts/googlesql"));
}

fn play(folder: &str) {
    braid_script::check(folder, Db::new, |db, lines| {
        let mut out: Vec<String> = Vec::new();
        for statement in statements(&lines.join("\n")) {
            match db.try_run(statement) {
                Ok(rows) => out.extend(rows),
                Err(e) => {
                    out.push(format!("{}: {}", e.state().0, e.message()));
                    let detail = e.detail().into_iter().flat_map(str::lines);
                    out.extend(detail.map(|line| format!("  detail: {line}")));
                    out.extend(e.hint().map(|hint| format!("  hint: {hint}")));
                }
            }
        }
        out.join("\n")
    });
}

/// The statements of a text, each with its semicolon; one in quotes of either kind ends none.
fn statements(text: &str) -> Vec<&str> {
    let (mut out, mut start, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let quoted = match rest.as_bytes()[0] {
            b'\'' => Some("'".to_string()),
            b'$' => rest[1..].find('$').map(|end| rest[..end + 2].to_string()),
            _ => None,
        };
        let word = |tag: &String| tag.chars().all(|c| c == '\'' || c == '$' || c.is_alphanumeric());
        match quoted.filter(word) {
            Some(tag) => {
                let inside = &rest[tag.len()..];
                at += inside.find(&tag).map_or(rest.len(), |end| end + 2 * tag.len());
            }
            None => {
                at += rest.chars().next().map_or(1, char::len_utf8);
                if rest.starts_with(';') {
                    out.push(&text[start..at]);
                    start = at;
                }
            }
        }
    }
    if !text[start..].is_empty() {
        out.push(&text[start..]);
    }
    out
}
