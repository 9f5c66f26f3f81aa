//! Queues: rows that a locking step names are written by their keys, however that is written.

use crate::harness::Db;

const FIRST: &str =
    "SELECT id FROM jobs WHERE state = 'ready' ORDER BY run_at LIMIT 3 FOR UPDATE SKIP LOCKED";

fn jobs() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE jobs (id bigint PRIMARY KEY, state text NOT NULL, run_at int NOT NULL);
         CREATE INDEX ON jobs (state, run_at);
         INSERT INTO jobs SELECT g, 'ready', 100 - g FROM generate_series(1, 60) AS g;",
    );
    db
}

#[test]
fn rows_that_a_step_names_are_written_by_their_keys() {
    let forms = [
        format!(
            "WITH next AS ({FIRST}) UPDATE jobs j SET state = 'x' FROM next WHERE j.id = next.id"
        ),
        format!(
            "UPDATE jobs SET state = 'x' FROM ({FIRST}) AS n WHERE jobs.id = n.id RETURNING jobs.*"
        ),
        format!("UPDATE jobs SET state = 'x' WHERE id IN ({FIRST})"),
        format!("WITH next AS ({FIRST}) DELETE FROM jobs j USING next WHERE next.id = j.id"),
        format!("DELETE FROM jobs USING ({FIRST}) AS n WHERE jobs.id = n.id AND state = 'ready'"),
    ];
    for form in forms {
        let mut db = jobs();
        let plan = db.run(&format!("EXPLAIN ANALYZE {form}")).join("\n");
        assert!(!plan.contains("general plan") && !plan.contains("full scan"), "{form}\n{plan}");
        assert_eq!(db.run("SELECT count(*) FROM jobs WHERE state = 'ready'"), ["57"], "{form}");
        let left = "SELECT count(*) FROM jobs WHERE state = 'ready' AND id IN (60, 59, 58)";
        assert_eq!(db.run(left), ["0"], "{form}");
    }
}

#[test]
fn rows_that_say_more_than_which_are_joined() {
    let forms = [
        format!(
            "WITH next AS ({FIRST}) UPDATE jobs j SET state = 'x' FROM next WHERE j.id < next.id"
        ),
        format!(
            "WITH next AS ({FIRST}) UPDATE jobs j SET run_at = next.id FROM next WHERE j.id = next.id"
        ),
        format!(
            "UPDATE jobs SET state = 'x' FROM ({FIRST}) AS n WHERE jobs.id = n.id RETURNING n.id"
        ),
    ];
    for form in forms {
        let plan = jobs().run(&format!("EXPLAIN ANALYZE {form}")).join("\n");
        assert!(plan.contains("general plan"), "{form}\n{plan}");
    }
}

/// Conditions beside the join are handed on, some of them as text.
#[test]
fn other_conditions_keep_their_parentheses() {
    let or = "(j.run_at < 0 OR j.id IN (SELECT 59 UNION SELECT 7))";
    let forms = [
        format!(
            "WITH next AS ({FIRST}) DELETE FROM jobs j USING next WHERE j.id = next.id AND {or}"
        ),
        format!(
            "WITH next AS ({FIRST}) DELETE FROM jobs j USING next WHERE {or} AND (next.id = j.id)"
        ),
        format!(
            "WITH next AS ({FIRST}) UPDATE jobs j SET state = 'x' FROM next WHERE ((j.id = next.id) AND {or})"
        ),
    ];
    for form in forms {
        let mut db = jobs();
        db.run(&form);
        let left =
            "SELECT id FROM jobs WHERE state = 'ready' AND id IN (7, 58, 59, 60) ORDER BY id";
        assert_eq!(db.run(left), ["7", "58", "60"], "{form}");
    }
}
