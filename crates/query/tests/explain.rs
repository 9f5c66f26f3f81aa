//! EXPLAIN told in scripts: `testscripts/explain/*.txt`. Every kind of statement, every path of our
//! own plans, and for those that are not taken the reason.
//!
//! A script is SQL. Printed are the rows of each statement, or its error; `BRAID_REWRITE=1` writes
//! them anew.

use crate::harness::Db;

#[test]
fn scripts_of_explain() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testscripts/explain");
    braid_script::check(folder, Db::new, |db, lines| {
        let mut out: Vec<String> = Vec::new();
        for statement in lines.join("\n").split_inclusive(';') {
            match db.try_run(statement) {
                Ok(rows) => out.extend(rows),
                Err(e) => {
                    out.push(format!("{}: {}", e.state().0, e.message()));
                    out.extend(e.hint().map(|hint| format!("  hint: {hint}")));
                }
            }
        }
        out.join("\n")
    });
}
