//! What users of interleaved tables have complained about elsewhere, one test each: the numbers are
//! those of the table in `docs/interleaving.md`, which names the tests of the others.

use std::sync::Arc;

use crate::harness::{database, error, rows, run, session, state, tag};
use braid_kv::{KeySpan, ScanOptions, TxnOptions};
use braid_sql::{Database, Session};

const SCHEMA: &str = "
    create table c (id int primary key, name text);
    create table o (id int, o int, n int, primary key (id, o))
        interleave in parent c on delete cascade;
    create table l (id int, o int, l int, n int, primary key (id, o, l))
        interleave in parent o on delete cascade;
    create table z (id int, z int, n int, primary key (id, z))
        interleave in parent c on delete cascade;
    create index o_n on o (n);
    create index l_in_c on l (id, n) interleave in c;";

/// Parents, children of each, and theirs.
fn filled(parents: u32, children: u32, lines: u32) -> (Arc<Database>, Session) {
    let db = database();
    let mut s = session(&db);
    run(&mut s, SCHEMA);
    for id in 0..parents {
        run(&mut s, &format!("insert into c values ({id}, 'c')"));
        let numbers: Vec<String> = (0..children).map(|o| format!("({id}, {o}, {o})")).collect();
        for t in ["o", "z"].iter().filter(|_| children > 0) {
            run(&mut s, &format!("insert into {t} values {}", numbers.join(", ")));
        }
        for o in (0..children).filter(|_| lines > 0) {
            let lines: Vec<String> = (0..lines).map(|l| format!("({id}, {o}, {l}, {l})")).collect();
            run(&mut s, &format!("insert into l values {}", lines.join(", ")));
        }
    }
    (db, s)
}

/// A number that EXPLAIN ANALYZE tells of a statement.
fn measured(s: &mut Session, sql: &str, what: &str) -> u64 {
    let told = rows(s, &format!("explain (analyze, buffers) {sql}")).join("\n");
    let at = told.find(what).unwrap_or_else(|| panic!("no {what} in\n{told}"));
    let digits = told[at + what.len()..].chars().take_while(char::is_ascii_digit);
    digits.collect::<String>().parse().unwrap_or_else(|_| panic!("no number in\n{told}"))
}

/// Rows of the engine that a statement has looked at.
fn entries(s: &mut Session, sql: &str) -> u64 {
    measured(s, sql, "entries=")
}

/// All that is stored of rows and entries.
fn stored(db: &Arc<Database>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let txn = db.coordinator().begin(TxnOptions::default()).unwrap();
    let prefix = braid_keys::path::DATA_PREFIX;
    let data = KeySpan::new(vec![prefix], vec![prefix + 1]);
    let mut scan = txn.scan(data, ScanOptions::default()).unwrap();
    let mut out = Vec::new();
    while let Some((key, value)) = scan.next().unwrap() {
        out.push((key.to_vec(), value.to_vec()));
    }
    out
}

#[test]
fn p01_a_scan_of_parents_does_not_read_their_children() {
    // 40,420 rows and entries, of which 20 are wanted. The scan passes over the first few families
    // before it knows that there is much in them, and then leaps.
    let (_db, mut s) = filled(20, 10, 100);
    let looked_at = entries(&mut s, "select id from c");
    assert!(looked_at <= 10_000, "{looked_at}");
    for few in [1, 2, 3] {
        let looked_at = entries(&mut s, &format!("select * from c limit {few}"));
        assert!(looked_at <= 2 * few, "{few}: {looked_at}");
    }
}

#[test]
fn p02_a_point_read_of_a_parent_is_one_key() {
    let (_db, mut s) = filled(3, 20, 20);
    assert_eq!(entries(&mut s, "select * from c where id = 1"), 1);
    assert_eq!(measured(&mut s, "select * from c where id = 1", "point reads: "), 1);
}

#[test]
fn p03_a_scan_of_children_does_not_walk_their_siblings() {
    let (_db, mut s) = filled(3, 5, 0);
    for part in 0..4 {
        let rows: Vec<String> =
            (0..500).map(|z| format!("(1, {}, 0)", 10 + part * 500 + z)).collect();
        run(&mut s, &format!("insert into z values {}", rows.join(", ")));
    }
    let looked_at = entries(&mut s, "select * from o where id = 1");
    assert!(looked_at <= 5 + 1, "{looked_at}");
}

#[test]
fn p04_the_plan_says_when_a_condition_is_no_prefix_of_the_key() {
    let (_db, mut s) = filled(2, 2, 2);
    let plan = |s: &mut Session, sql: &str| rows(s, &format!("explain {sql}")).join("\n");
    assert!(plan(&mut s, "select * from l where n = 3").contains("full scan of l"));
    assert!(plan(&mut s, "select * from l where id = 1 and n = 3").contains("using l_in_c"));
}

#[test]
fn p07_adding_and_dropping_columns_rewrites_nothing() {
    let (db, mut s) = filled(5, 4, 3);
    let before = stored(&db);
    run(&mut s, "alter table c add column more int not null default 7");
    run(&mut s, "alter table o add column more text default 'x'");
    run(&mut s, "alter table l drop column n cascade");
    run(&mut s, "alter table z rename column n to m");
    assert_eq!(rows(&mut s, "select more from c where id = 2"), ["7"]);
    assert_eq!(rows(&mut s, "select more from o where id = 2 and o = 1"), ["x"]);
    let after = stored(&db);
    assert!(after.iter().all(|row| before.contains(row)), "rows were written");
}

#[test]
fn p08_a_dropped_hierarchy_is_gone_with_its_indexes() {
    let (_db, mut s) = filled(3, 3, 3);
    let refused = error(&mut s, "drop table c");
    let told = format!("{} {}", refused.message(), refused.detail().unwrap_or_default());
    assert!(["o", "l", "z"].iter().any(|t| told.contains(t)), "{told}");
    run(&mut s, "drop table c cascade");
    for t in ["c", "o", "l", "z"] {
        assert_eq!(state(&mut s, &format!("insert into {t} values (1)")), "42P01", "{t}");
    }
    // Names and places are free again.
    run(&mut s, SCHEMA);
    assert_eq!(rows(&mut s, "select count(*) from o where n = 1"), ["0"]);
    assert_eq!(rows(&mut s, "select count(*) from l"), ["0"]);
}

#[test]
fn p12_a_key_in_the_middle_of_a_chain_names_what_is_in_the_way() {
    let (_db, mut s) = filled(3, 3, 3);
    let change = "alter table o alter primary key using columns (o, id)";
    let refused = error(&mut s, change);
    assert!(refused.message().contains("\"l\""), "{refused}");
    assert!(refused.hint().is_some_and(|hint| hint.contains("DROP INTERLEAVE")), "{refused}");
    run(&mut s, "alter table l drop interleave");
    run(&mut s, change);
    assert_eq!(rows(&mut s, "select count(*) from o"), ["9"]);
}

#[test]
fn p14_what_cannot_be_set_for_a_child_is_refused() {
    let (_db, mut s) = filled(1, 1, 1);
    for sql in [
        "alter table o configure zone using num_replicas = 3",
        "create table part (id int, k int, primary key (id, k)) interleave in parent c (id) partition by range (id)",
    ] {
        let code = state(&mut s, sql);
        assert!(["0A000", "42601"].contains(&code), "{sql}: {code}");
    }
}

#[test]
fn p16_a_cascade_of_many_rows_counts_the_parent() {
    let (_db, mut s) = filled(2, 60, 200);
    assert_eq!(measured(&mut s, "delete from c where id = 0", "tombstones: "), 1);
    assert_eq!(rows(&mut s, "select count(*), min(id) from l"), ["12000|1"]);
    assert_eq!(tag(&mut s, "delete from c"), "DELETE 1");
    for t in ["c", "o", "l", "z"] {
        assert_eq!(rows(&mut s, &format!("select count(*) from {t}")), ["0"], "{t}");
    }
    assert_eq!(rows(&mut s, "select count(*) from o where n = 5"), ["0"]);
}

#[test]
fn p17_explain_says_range_delete_or_why_not() {
    let (_db, mut s) = filled(2, 2, 2);
    let plan = |s: &mut Session, sql: &str| rows(s, &format!("explain {sql}")).join("\n");
    for (sql, says) in [
        ("delete from c where id = 1", "range delete: c, o, l, z"),
        ("delete from c where name = 'x'", "is not a span of the primary key"),
        ("delete from o where id = 1 and o = 1", "range delete: o, l"),
        ("delete from l where n = 1", "row by row"),
    ] {
        let plan = plan(&mut s, sql);
        assert!(plan.contains(says), "{sql}\n{plan}");
    }
}

#[test]
fn p18_a_child_that_comes_and_goes_costs_its_parents_nothing() {
    let (_db, mut s) = filled(20, 0, 0);
    for round in 0..30 {
        for id in [3, 4, 11] {
            let rows: Vec<String> = (0..300).map(|z| format!("({id}, {z}, {round})")).collect();
            run(&mut s, &format!("insert into z values {}", rows.join(", ")));
            run(&mut s, &format!("delete from z where id = {id}"));
        }
    }
    // 27,000 rows have come and gone, under 90 tombstones.
    assert_eq!(entries(&mut s, "select * from c where id = 3"), 1);
    let looked_at = entries(&mut s, "select * from z where id = 3");
    assert!(looked_at <= 300, "{looked_at}");
    let looked_at = entries(&mut s, "select id from c where id < 3 or id > 4 and id < 11");
    assert!(looked_at <= 20, "{looked_at}");
    assert_eq!(rows(&mut s, "select count(*) from z"), ["0"]);
}

#[test]
fn p21_a_child_is_inserted_at_the_same_cost_among_few_and_many() {
    let (_db, mut s) = filled(2, 1, 1);
    let cost = |s: &mut Session, o: u32| {
        let sql = format!("insert into o values (1, {o}, 0)");
        let told = rows(s, &format!("explain (analyze, buffers) {sql}")).join("\n");
        let number = |what: &str| -> u64 {
            let at = told.find(what).unwrap_or_else(|| panic!("no {what} in\n{told}"));
            let digits = told[at + what.len()..].chars().take_while(char::is_ascii_digit);
            digits.collect::<String>().parse().unwrap_or_default()
        };
        (number("requests="), number("entries="))
    };
    let few = cost(&mut s, 100_000);
    for part in 0..4 {
        let rows: Vec<String> =
            (0..500).map(|o| format!("(1, {}, 0)", 10 + part * 500 + o)).collect();
        run(&mut s, &format!("insert into o values {}", rows.join(", ")));
    }
    assert_eq!(cost(&mut s, 100_001), few);
}

#[test]
fn p25_one_family_may_be_all_of_the_table() {
    let (_db, mut s) = filled(1, 100, 200);
    // Parts of it cost what they are.
    assert!(entries(&mut s, "select * from l where id = 0 and o = 50") <= 200 + 1);
    let some = entries(&mut s, "select * from o where id = 0 limit 5");
    assert!(some <= 5 * 256, "{some}");
    assert_eq!(tag(&mut s, "delete from o where id = 0 and o = 50"), "DELETE 1");
    assert_eq!(rows(&mut s, "select count(*) from l where id = 0"), ["19800"]);
    run(&mut s, "update c set id = 7 where id = 0");
    assert_eq!(rows(&mut s, "select count(*) from l where id = 7"), ["19800"]);
    assert_eq!(tag(&mut s, "delete from c where id = 7"), "DELETE 1");
    assert_eq!(rows(&mut s, "select count(*) from l"), ["0"]);
}
