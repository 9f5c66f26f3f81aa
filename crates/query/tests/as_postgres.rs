//! What PostgreSQL answers, told in scripts: `testscripts/postgres/*.txt`.
//!
//! A script is SQL, one session from its beginning to its end. Printed are the rows of each
//! statement, or its error with SQLSTATE, detail and hint. `scripts/as-postgres` plays the same
//! statements on PostgreSQL and compares: what a block says must be what both say, unless a comment
//! above it tells how it `differs:`.

mod harness;

use harness::Db;

#[test]
fn scripts_answer_as_postgres_does() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testscripts/postgres");
    braid_script::check(folder, Db::new, |db, lines| {
        let mut out: Vec<String> = Vec::new();
        for statement in lines.join("\n").split_inclusive(';') {
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
