//! Foreign keys and interleave parents between two sessions, at every mix of isolation levels: no
//! order of steps may leave an orphan.

use crate::harness::actors::Stage;
use crate::harness::{database, rows, run, session};

const LEVELS: [&str; 3] = ["serializable", "repeatable read", "read committed"];

/// What one side does, and how the tables are declared.
struct Case {
    name: &'static str,
    child: &'static str,
    comes: &'static str,
    goes: &'static str,
}

const KEY: &str = "create table c (id int primary key, p int default 1 references p";

fn cases() -> Vec<Case> {
    let flat = |name, action: &'static str, comes, goes| Case { name, child: action, comes, goes };
    vec![
        flat("no action", "", INSERT, "delete from p where id = 1"),
        flat("restrict", "on delete restrict", INSERT, "delete from p where id = 1"),
        flat("cascade", "on delete cascade", INSERT, "delete from p where id = 1"),
        flat("set null", "on delete set null", INSERT, "delete from p where id = 1"),
        flat("set default", "on delete set default", INSERT, "delete from p where id = 1"),
        flat("delete returning", "", INSERT, "delete from p where id = 1 returning id"),
        flat("delete by expression", "on delete cascade", INSERT, "delete from p where id + 0 = 1"),
        flat("key update", "on update no action", INSERT, "update p set id = 7 where id = 1"),
        flat("key update cascade", "on update cascade", INSERT, "update p set id = 7 where id = 1"),
        flat("key update null", "on update set null", INSERT, "update p set id = 7 where id = 1"),
        flat("repointed", "", "update c set p = 1 where id = 9", "delete from p where id = 1"),
        flat(
            "repointed cascade",
            "on delete cascade",
            "update c set p = 1 where id = 9",
            "delete from p where id = 1",
        ),
        flat(
            "upsert",
            "",
            "insert into c values (9, 1) on conflict (id) do update set p = excluded.p",
            "delete from p where id = 1",
        ),
        flat(
            "insert select",
            "",
            "insert into c select id, 1 from p where id = 1",
            "delete from p where id = 1",
        ),
        // What one sets to its default, the other takes away.
        flat(
            "default goes too",
            "on delete set default",
            "delete from p where id = 2",
            "delete from p where id = 1",
        ),
        flat(
            "default is renamed",
            "on delete set default on update cascade",
            "delete from p where id = 2",
            "update p set id = 7 where id = 1",
        ),
    ]
}

const INSERT: &str = "insert into c values (1, 1)";

/// Both orders of arrival, both orders of commit, blocks and single statements.
/// `references` and `keys` are queries for what children name and what parents have.
fn no_orphans(case: &Case, schema: &str, references: &str, keys: &str) {
    for a in LEVELS {
        for b in LEVELS {
            for child_first in [true, false] {
                for blocks in [(true, true), (true, false), (false, true)] {
                    let db = database();
                    run(&mut session(&db), schema);
                    let mut stage = Stage::new(&db, 2, "");
                    let (comes, goes) = ((0, case.comes, a, blocks.0), (1, case.goes, b, blocks.1));
                    let order = if child_first { [comes, goes] } else { [goes, comes] };
                    for (who, _, level, block) in order {
                        let begin = if block {
                            // The view of the block is older than what the other one does.
                            format!("begin isolation level {level}; select count(*) from p")
                        } else {
                            format!("set default_transaction_isolation = '{level}'")
                        };
                        stage.run(who, &begin).unwrap();
                    }
                    for (who, sql, _, _) in order {
                        stage.send(who, sql);
                    }
                    // The first to have an answer ends first; that lets the other one go on.
                    let waits = stage.waits(order[0].0);
                    for (who, ..) in if waits { [order[1], order[0]] } else { order } {
                        stage.finish(who);
                    }
                    let s = &mut session(&db);
                    let label = format!(
                        "{}: {a} beside {b}, child first {child_first}, {blocks:?}",
                        case.name
                    );
                    let keys = rows(s, keys);
                    for reference in rows(s, references) {
                        assert!(keys.contains(&reference), "{label}: {reference} is an orphan");
                    }
                    assert_eq!(db.coordinator().describe_locks().lines, "", "{label}");
                }
            }
        }
    }
}

#[test]
fn foreign_keys_hold_at_every_mix_of_levels() {
    for case in cases() {
        let schema = format!(
            "create table p (id int primary key, n int); insert into p values (1, 0), (2, 0);
             {KEY} {}); insert into c values (9, 2)",
            case.child
        );
        no_orphans(&case, &schema, "select p from c where p is not null", "select id from p");
    }
}

#[test]
fn references_by_a_unique_key_hold_at_every_mix_of_levels() {
    for goes in ["delete from p where id = 1", "update p set u = 8 where id = 1"] {
        let case = Case { name: goes, child: "", comes: INSERT, goes };
        let schema = "create table p (id int primary key, u int unique);
             insert into p values (1, 1), (2, 2);
             create table c (id int primary key, p int references p (u))";
        no_orphans(&case, schema, "select p from c where p is not null", "select u from p");
    }
}

#[test]
fn interleaved_children_have_parents_at_every_mix_of_levels() {
    for goes in [
        "delete from p where id = 1",
        "delete from p where id = 1 returning id",
        "delete from p where id + 0 = 1",
        "update p set id = 7 where id = 1",
    ] {
        for action in ["cascade", "no action"] {
            let case = Case { name: goes, child: "", comes: INSERT, goes };
            let schema = format!(
                "create table p (id int primary key, n int); insert into p values (1, 0), (2, 0);
                 create table c (id int, k int, primary key (id, k))
                     interleave in parent p on delete {action}"
            );
            no_orphans(&case, &schema, "select id from c", "select id from p");
        }
    }
}

#[test]
fn references_into_a_family_from_outside_hold_at_every_mix_of_levels() {
    for action in ["no action", "restrict", "cascade", "set null"] {
        for goes in ["delete from p where id = 1", "delete from k where id = 1 and k = 1"] {
            let case =
                Case { name: action, child: "", comes: "insert into c values (1, 1, 1)", goes };
            let schema = format!(
                "create table p (id int primary key);
                 create table k (id int, k int, primary key (id, k)) interleave in parent p on delete cascade;
                 insert into p values (1), (2); insert into k values (1, 1), (2, 1);
                 create table c (n int primary key, id int, k int,
                    foreign key (id, k) references k on delete {action})"
            );
            let references = "select id, k from c where id is not null";
            no_orphans(&case, &schema, references, "select id, k from k");
        }
    }
}

#[test]
fn an_update_of_the_parent_does_not_wait_for_its_children() {
    for level in LEVELS {
        let db = database();
        run(
            &mut session(&db),
            "create table p (id int primary key, n int); insert into p values (1, 0);
             create table c (id int, k int, primary key (id, k)) interleave in parent p on delete cascade",
        );
        let mut stage = Stage::new(&db, 2, "");
        for who in 0..2 {
            stage.run(who, &format!("begin isolation level {level}")).unwrap();
        }
        stage.run(0, "insert into c values (1, 1)").unwrap();
        stage.run(1, "insert into c values (1, 2)").unwrap();
        stage.run(0, "update p set n = n + 1 where id = 1").unwrap();
        stage.run(0, "commit").unwrap();
        stage.run(1, "commit").unwrap();
        assert_eq!(rows(&mut session(&db), "select count(*) from c"), ["2"]);
    }
}
