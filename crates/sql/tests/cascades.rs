//! Families go and move as a whole, whatever names their rows and whoever refers to them.

use crate::harness::{database, error, rows, run, session, state, tag};
use braid_sql::Session;

const SCHEMA: &str = "
    create table c (id int primary key, name text, n int);
    create table o (id int, o int, n int, primary key (id, o))
        interleave in parent c on delete cascade;
    create table l (id int, o int, l int, n int, primary key (id, o, l))
        interleave in parent o on delete cascade;
    create index by_n on l (n);
    create index in_c on l (id, n) interleave in c;";

fn filled() -> Session {
    let mut s = session(&database());
    run(&mut s, SCHEMA);
    for id in 1..=8 {
        run(&mut s, &format!("insert into c values ({id}, 'n{}', {id})", id % 3));
        for o in 1..=3 {
            run(&mut s, &format!("insert into o values ({id}, {o}, {})", id + o));
            run(&mut s, &format!("insert into l values ({id}, {o}, 1, {id}), ({id}, {o}, 2, {o})"));
        }
    }
    s
}

/// What a statement did: rows, tombstones, point writes, index entries, probes.
fn work(s: &mut Session, sql: &str) -> [u64; 5] {
    let lines = rows(s, &format!("explain (analyze, timing off, summary off) {sql}"));
    let last = lines.last().unwrap_or_else(|| panic!("{sql}"));
    let value = |name: &str| {
        let (_, rest) = last.split_once(&format!("{name}: ")).unwrap_or_else(|| panic!("{last}"));
        rest.split(',').next().unwrap().trim().parse().unwrap()
    };
    ["rows", "tombstones", "point writes", "index entries", "probes"].map(value)
}

#[test]
fn every_form_of_naming_parents_takes_the_fast_path() {
    for (filter, parents, tombstones) in [
        ("id = 2", 1, 1),
        ("id = 2 returning *", 1, 1),
        ("id = 2.0", 1, 1),
        ("id + 0 = 2", 1, 1),
        ("id = 2 or id = 5 or id = 6", 3, 2),
        ("(id, name) in ((2, 'n2'), (7, 'n1'), (8, 'n1'))", 2, 2),
        ("id in (1, 2, 3, 7)", 4, 2),
        ("id between 2 and 5", 4, 1),
        ("id between 2 and 5 returning id, name", 4, 1),
        ("name = 'n1'", 3, 3),
        ("name = 'n1' and id > 3", 2, 2),
        ("n = 2 and name = 'n2'", 1, 1),
        ("true", 8, 1),
        ("id > 99", 0, 0),
        ("name = 'nobody'", 0, 0),
    ] {
        let s = &mut filled();
        let sql = format!("delete from c where {filter}");
        let left: Vec<String> = {
            run(s, "begin");
            let gone = tag(s, &sql);
            assert_eq!(gone, format!("DELETE {parents}"), "{sql}");
            let left = rows(s, "select id from c");
            run(s, "rollback");
            left
        };
        let done = work(s, &sql);
        // One write: the record by which readers of indexes know what is gone.
        assert_eq!(done, [parents, tombstones, tombstones.min(1), 0, 0], "{sql}");
        for table in ["c", "o", "l"] {
            let mut ids = rows(s, &format!("select id from {table} order by id"));
            ids.dedup();
            assert_eq!(ids, left, "{sql}: {table}");
        }
        for by_index in ["n >= 0", "id >= 0 and n >= 0"] {
            let found = rows(s, &format!("select count(*) from l where {by_index}"));
            assert_eq!(found, [(left.len() * 6).to_string()], "{sql}: {by_index}");
        }
    }
}

#[test]
fn rows_of_deleted_families_come_back_as_they_were() {
    let s = &mut filled();
    let got = rows(s, "delete from c where id in (2, 3) returning id, name, n * 2");
    assert_eq!(got, ["2|n2|4", "3|n0|6"]);
    let got = rows(s, "delete from c where id between 4 and 5 returning *");
    assert_eq!(got, ["4|n1|4", "5|n2|5"]);
    assert_eq!(rows(s, "delete from c where id > 5 and n < 8 returning id"), ["6", "7"]);
    let got = rows(s, "delete from o where id = 1 and o > 1 returning o, n");
    assert_eq!(got, ["2|3", "3|4"]);
    assert_eq!(rows(s, "select count(*) from l"), ["8"]);
}

#[test]
fn many_rows_of_a_leaf_are_one_span_and_few_are_not() {
    let s = &mut filled();
    let values: Vec<String> = (10..1_010).map(|l| format!("(1, 1, {l}, {l})")).collect();
    run(s, &format!("insert into l values {}", values.join(", ")));
    assert_eq!(work(s, "delete from l where id = 1 and o = 1 and l < 20"), [12, 0, 36, 24, 0]);
    assert_eq!(work(s, "delete from l where id = 1 and o = 1"), [990, 1, 1, 0, 0]);
    assert_eq!(rows(s, "select count(*) from l where id = 1"), ["4"]);
    assert_eq!(rows(s, "select count(*) from l where n >= 20"), ["0"]);
    assert_eq!(rows(s, "select count(*) from l where id = 1 and n >= 0"), ["4"]);
    run(s, "insert into l values (1, 1, 30, 30)");
    assert_eq!(rows(s, "select l from l where n = 30"), ["30"]);
    // Others of the transaction, and those who look back, see what is theirs.
    let values: Vec<String> = (0..500).map(|l| format!("(2, 1, {}, 0)", l + 10)).collect();
    run(s, &format!("begin; insert into l values {}", values.join(", ")));
    assert_eq!(tag(s, "savepoint a; delete from l where id = 2 and o = 1"), "DELETE 502");
    assert_eq!(rows(s, "select count(*) from l where id = 2"), ["4"]);
    run(s, "rollback to a");
    assert_eq!(rows(s, "select count(*) from l where id = 2"), ["506"]);
    let gone = rows(s, "delete from l where id = 2 and o = 1 and l >= 10 returning l");
    assert_eq!(gone.len(), 500);
    run(s, "commit");
    assert_eq!(rows(s, "select count(*) from l where id = 2"), ["6"]);
}

#[test]
fn what_is_interleaved_for_locality_only_stays_with_all_below_it() {
    let s = &mut filled();
    run(
        s,
        "create table k (id int, o int, k int, n int, primary key (id, o, k)) interleave in o;
         create table m (id int, o int, k int, m int, primary key (id, o, k, m))
             interleave in parent k on delete cascade;
         create index k_in_c on k (id, n) interleave in c;
         create index k_in_k on k (id, o, k, n) interleave in k;
         insert into k values (1, 1, 1, 5), (1, 1, 2, 6), (1, 3, 1, 7), (2, 1, 1, 8), (4, 4, 4, 9);
         insert into m values (1, 1, 1, 1), (1, 3, 1, 1), (4, 4, 4, 4)",
    );
    // Two places in the family of 1, one in that of 2, none in that of 3: and entries of an index.
    let done = work(s, "delete from c where id <= 3");
    assert_eq!(done[0], 3);
    assert!(done[1] > 4 && done[1] < 12, "{done:?}");
    assert_eq!(rows(s, "select id, o from o where id < 4"), Vec::<String>::new());
    assert_eq!(rows(s, "select id, o from l where id < 4"), Vec::<String>::new());
    let all = ["1|1|1|5", "1|1|2|6", "1|3|1|7", "2|1|1|8", "4|4|4|9"];
    assert_eq!(rows(s, "select * from k"), all);
    assert_eq!(rows(s, "select * from k where id = 1 and n > 5"), ["1|1|2|6", "1|3|1|7"]);
    assert_eq!(rows(s, "select n from k where id = 1 and o = 3 and k = 1"), ["7"]);
    assert_eq!(rows(s, "select * from m"), ["1|1|1|1", "1|3|1|1", "4|4|4|4"]);
    // Its own rows go with what is below them, although nothing is above any more.
    assert_eq!(work(s, "delete from k where id = 1 and o = 1 and k = 1")[..2], [1, 1]);
    assert_eq!(rows(s, "select * from m"), ["1|3|1|1", "4|4|4|4"]);
    assert_eq!(rows(s, "select * from k where id = 1 and n > 0"), ["1|1|2|6", "1|3|1|7"]);
}

#[test]
fn children_that_must_not_be_there_are_asked_for() {
    let s = &mut filled();
    run(
        s,
        "create table i (id int, i int, primary key (id, i)) interleave in parent c;
         insert into i values (3, 1)",
    );
    for sql in [
        "delete from c",
        "delete from c where id = 3",
        "delete from c where name = 'n0'",
        "delete from c where id = 3 returning *",
    ] {
        let e = error(s, sql);
        assert_eq!(e.state().0, "23503", "{sql}");
        let detail = e.detail().unwrap_or_default();
        assert_eq!(detail, "Key (id)=(3) still has rows interleaved from table \"i\".", "{sql}");
    }
    assert_eq!(rows(s, "select count(*) from l"), ["48"]);
    assert_eq!(work(s, "delete from c where id <> 3")[..2], [7, 2]);
    // A row that goes by another key in the same statement is in nobody's way.
    run(
        s,
        "create table j (id int, j int, o int, primary key (id, j),
             foreign key (id, o) references o on delete cascade) interleave in parent c;
         delete from i; insert into j values (3, 1, 2)",
    );
    assert_eq!(tag(s, "delete from c where id = 3"), "DELETE 1");
    assert_eq!(rows(s, "select count(*) from j"), ["0"]);
    run(s, "insert into c values (3, 'a', 1); insert into j values (3, 1, null)");
    assert_eq!(state(s, "delete from c where id = 3"), "23503");
}

#[test]
fn rows_elsewhere_that_refer_to_a_family_do_what_they_declare() {
    let s = &mut filled();
    run(
        s,
        "create table nulls (k int primary key, id int references c on delete set null);
         create index on nulls (id);
         create table defaults (k int primary key, id int default 8 references c
             on delete set default);
         create table far (k int primary key, id int, o int,
             foreign key (id, o) references o on delete cascade);
         create table far_in (k int, n int, primary key (k, n))
             interleave in parent far on delete cascade;
         insert into nulls values (1, 1), (2, 2), (3, 3);
         insert into defaults values (1, 1), (2, 2), (3, 3);
         insert into far values (1, 1, 1), (2, 2, 3), (3, 3, 1);
         insert into far_in values (1, 1), (1, 2), (2, 1), (3, 1)",
    );
    let done = work(s, "delete from c where id < 3");
    assert_eq!((done[0], done[1]), (2, 2), "the families of c, and those of far: {done:?}");
    assert!(done[4] >= 6, "rows that were asked: {done:?}");
    assert_eq!(rows(s, "select * from nulls"), ["1|NULL", "2|NULL", "3|3"]);
    assert_eq!(rows(s, "select * from defaults"), ["1|8", "2|8", "3|3"]);
    assert_eq!(rows(s, "select * from far"), ["3|3|1"]);
    assert_eq!(rows(s, "select * from far_in"), ["3|1"]);
    assert_eq!(state(s, "delete from c where id = 8"), "23503", "the default goes itself");
    // A row inside of the family that refers across families.
    run(
        s,
        "create table x (id int, x int, other int references c on delete cascade,
             primary key (id, x)) interleave in parent c on delete cascade;
         insert into x values (4, 1, 5), (4, 2, 4), (5, 1, 4), (6, 1, 5), (7, 1, 7)",
    );
    assert_eq!(tag(s, "delete from c where id = 5"), "DELETE 1");
    assert_eq!(rows(s, "select id, x from x"), ["4|2", "7|1"]);
    // Restrict and no action, by what the family holds deep below.
    run(
        s,
        "create table r (k int primary key, id int, o int, l int,
             foreign key (id, o, l) references l on delete restrict);
         insert into r values (1, 6, 2, 1)",
    );
    for sql in ["delete from c where id = 6", "delete from c where n = 6", "delete from o"] {
        assert_eq!(state(s, sql), "23503", "{sql}");
    }
    assert_eq!(tag(s, "delete from c where id <> 6 and id <> 3 and id <> 8"), "DELETE 2");
    run(s, "delete from r");
    assert_eq!(tag(s, "delete from c where n = 6"), "DELETE 1");
}

#[test]
fn a_family_moves_with_the_key_of_its_head() {
    let s = &mut filled();
    run(
        s,
        "create unique index uo on o (n, id);
         create table g (id int, g int, twice int generated always as (id * 2) stored,
             primary key (id, g)) interleave in parent c on delete no action;
         create table k (id int, o int, k int, primary key (id, o, k)) interleave in o;
         create table far (k int primary key, id int, o int,
             foreign key (id, o) references o on update cascade);
         insert into g (id, g) values (2, 1);
         insert into k values (2, 1, 1);
         insert into far values (1, 2, 3), (2, 3, 3)",
    );
    let before = rows(s, "select o, l, n from l where id = 2");
    let done = work(s, "update c set id = 20 where id = 2");
    assert_eq!(done[0], 1);
    assert!((1..4).contains(&done[1]), "one tombstone but for what stays: {done:?}");
    assert_eq!(rows(s, "select o, l, n from l where id = 20"), before);
    assert_eq!(rows(s, "select * from c where id in (2, 20)"), ["20|n2|2"]);
    assert_eq!(rows(s, "select o, n from o where id = 20"), ["1|3", "2|4", "3|5"]);
    assert_eq!(rows(s, "select * from g"), ["20|1|40"]);
    assert_eq!(rows(s, "select id from k"), ["2"], "has no part in it");
    assert_eq!(rows(s, "select id, o from far"), ["20|3", "3|3"]);
    for (sql, want) in [
        ("select id from l where n = 2 and o = 3", vec!["20"]),
        ("select id, o from o where n = 3 and id = 2", vec![]),
        ("select id, o from o where n = 3 and id = 20", vec!["20|1"]),
        ("select o, l from l where id = 20 and n = 1", vec!["1|2"]),
        ("select o, l from l where id = 2 and n >= 0", vec![]),
    ] {
        assert_eq!(rows(s, sql), want, "{sql}");
    }
    // A row inside goes to another parent, with what lies in it.
    run(s, "update o set id = 4, o = 9 where id = 20 and o = 1");
    assert_eq!(rows(s, "select l, n from l where id = 4 and o = 9"), ["1|2", "2|1"]);
    assert_eq!(state(s, "update o set id = 77 where id = 4 and o = 9"), "23503");
    assert_eq!(state(s, "update c set id = 4 where id = 20"), "23505");
    // All at once, over each other.
    run(s, "update c set id = id + 1 where id between 3 and 8");
    assert_eq!(rows(s, "select n from l where id = 5 and o = 9"), ["2", "1"]);
    assert_eq!(rows(s, "select id from far"), ["20", "4"]);
    let counts = rows(s, "select count(*) from l where id between 4 and 9");
    assert_eq!(counts, [(6 * 6 + 2).to_string()]);
}

#[test]
fn a_move_ends_with_its_savepoint_and_sees_own_rows() {
    let db = database();
    let (s, other) = (&mut session(&db), &mut session(&db));
    run(s, SCHEMA);
    run(s, "insert into c values (1, 'a', 1), (2, 'b', 2); insert into o values (1, 1, 1)");
    run(s, "begin; insert into o values (1, 2, 2); insert into l values (1, 2, 3, 4)");
    run(s, "savepoint a; update c set id = 10 where id = 1");
    assert_eq!(rows(s, "select id, o from o"), ["10|1", "10|2"]);
    assert_eq!(rows(s, "select id, o, l from l where n = 4"), ["10|2|3"]);
    run(s, "update c set id = 3 - id where id < 3; update c set id = 12 where id = 10");
    assert_eq!(state(s, "insert into o values (10, 1, 1)"), "23503");
    run(s, "rollback to a");
    assert_eq!(rows(s, "select id, o from o"), ["1|1", "1|2"]);
    run(s, "update c set id = 3 - id where id in (1, 2)");
    assert_eq!(rows(s, "select id, name from c"), ["1|b", "2|a"]);
    assert_eq!(rows(s, "select id, o from o"), ["2|1", "2|2"]);
    run(s, "commit");
    assert_eq!(rows(other, "select id, o from o"), ["2|1", "2|2"]);
    assert_eq!(rows(other, "select id, o, l from l where id = 2 and n = 4"), ["2|2|3"]);
    let e = rows(other, "explain update c set id = 5 where id = 2");
    assert!(e.contains(&"  families move: o, l".to_string()), "{e:?}");
}
