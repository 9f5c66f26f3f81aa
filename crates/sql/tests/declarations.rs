//! Every way to declare an interleaving wrongly, and what is said about it.

use crate::harness;

use crate::harness::{database, error, rows, run, session, state};
use braid_sql::Session;

/// (statement, SQLSTATE, part of the message)
const WRONG: &[(&str, &str, &str)] = &[
    (
        "create table c (a int, b int, z int, primary key (a, z)) interleave in parent p",
        "42P16",
        "table \"c\" does not reference parent key column \"b\"",
    ),
    (
        "create table c (x int, b int, primary key (x, b)) interleave in parent p on delete cascade",
        "42P16",
        "table \"c\" does not reference parent key column \"a\"",
    ),
    (
        "create table c (z int, a int, b int, primary key (z, a, b desc)) interleave in parent p",
        "42P16",
        "table \"c\" references parent key column \"a\" at incorrect position 2",
    ),
    (
        "create table c (a text, b int, primary key (a, b desc)) interleave in parent p",
        "42P16",
        "references parent key column \"a\" with incorrect type text (should be integer)",
    ),
    (
        "create table c (a int, b int, primary key (a, b)) interleave in parent p",
        "42P16",
        "references parent key column \"b\" with incorrect order ASC (should be DESC)",
    ),
    (
        "create table c (a int, b int, z int, primary key (a, b desc)) interleave in parent p (a)",
        "42P16",
        "declared interleaved columns (a) must match the parent's primary key (a, b DESC)",
    ),
    (
        "create table c (a int, b int, z int, primary key (a, b desc, z)) interleave in parent p (a, z)",
        "42P16",
        "declared interleaved columns (a, z) must be a prefix of the primary key (a, b DESC, z)",
    ),
    (
        "create table c (a int, b int, primary key (a, b desc)) interleave in parent p (a, nope)",
        "42703",
        "column \"nope\" named in INTERLEAVE does not exist",
    ),
    (
        "create table c (a int, b int, primary key (a, b desc)) interleave in parent missing",
        "42P01",
        "relation \"missing\" does not exist",
    ),
    (
        "create table c (a int, b int, primary key (a, b desc)) interleave in parent c",
        "42P01",
        "relation \"c\" does not exist",
    ),
    (
        "create table c (a int, b int, primary key (a, b desc)) interleave in parent v",
        "42809",
        "cannot interleave table \"c\" in sequence \"v\"",
    ),
    (
        "create table c (a int, b int) interleave in parent p",
        "42P16",
        "interleaved table \"c\" has no primary key",
    ),
    (
        "create table c (a int primary key) interleave in parent nokey",
        "42P16",
        "parent table \"nokey\" has no primary key",
    ),
    (
        "create table c (a int, b int, primary key (a, b desc)) interleave in p on delete cascade",
        "42P16",
        "ON DELETE cannot be given for table \"c\": INTERLEAVE IN is for locality only",
    ),
    (
        "create table c (a int, b int, primary key (a, b desc)) interleave in parent p on delete set null",
        "42P16",
        "ON DELETE of INTERLEAVE IN PARENT must be CASCADE, NO ACTION or RESTRICT",
    ),
    (
        "create table c (a int, b int, primary key (a, b desc)) interleave in parent p (a, b) cascade",
        "0A000",
        "the shorthand CASCADE or RESTRICT after INTERLEAVE",
    ),
    (
        "create table c (a int, b int, primary key (a, b desc)) interleave in parent p interleave in parent p",
        "42P16",
        "a table can be interleaved in one parent only",
    ),
    (
        "create index i on k (b) interleave in p",
        "42P16",
        "index \"i\" does not reference index parent key column \"a\"",
    ),
    (
        "create index i on k (a, b, n) interleave in p",
        "42P16",
        "index \"i\" references index parent key column \"b\" with incorrect order",
    ),
    (
        "create index i on k (a, b desc, n) interleave in other",
        "42P16",
        "\"other\" is not an ancestor of \"k\"",
    ),
    (
        "create index i on k (a, b desc, n) include (n) interleave in p on delete cascade",
        "42P16",
        "ON DELETE cannot be given for index \"i\"",
    ),
    (
        "create index i on k (a, b desc, x) storing (n) interleave in p",
        "42P16",
        "index \"i\" specifies stored column \"n\" which is a key of table \"k\"",
    ),
    (
        "create index i on k (a, b desc, x) interleave in p (a)",
        "42P16",
        "declared interleaved columns (a) must match",
    ),
    (
        "create index i on k (a, b desc, x) interleave in missing",
        "42P01",
        "relation \"missing\" does not exist",
    ),
    ("drop table p", "2BP01", "cannot drop table p because other objects depend on it"),
    ("truncate p", "0A000", "cannot truncate table \"p\": it is interleaved by table \"k\""),
    ("alter table p set on delete cascade", "42P16", "table \"p\" is not interleaved"),
    ("alter table loc set on delete cascade", "42P16", "cannot SET ON DELETE on table \"loc\""),
    ("alter table k alter a type bigint", "42P16", "it is shared along the interleaving"),
    ("alter table p drop column a", "42P16", "cannot drop the primary key of table \"p\""),
    ("alter table k drop constraint k_pkey", "42P16", "it is interleaved"),
    ("alter table other drop interleave", "42P16", "table \"other\" is not interleaved"),
    ("insert into k values (8, 8, 8, 8)", "23503", "violates its interleave constraint"),
    ("create table c (id int primary key deferrable, a int)", "0A000", "a DEFERRABLE primary key"),
];

#[test]
fn wrong_declarations_are_refused_with_reason_and_hint() {
    let s = &mut session(&database());
    run(s, "create table p (a int, b int, x int, primary key (a, b desc))");
    run(
        s,
        "create table k (a int, b int, n int, x int, primary key (a, b desc, n)) interleave in parent p",
    );
    run(s, "create table loc (a int, b int, n int, primary key (a, b desc, n)) interleave in p");
    run(
        s,
        "create table other (id int primary key); create table nokey (a int); create sequence v",
    );
    run(s, "insert into p values (1, 1, 1); insert into k values (1, 1, 1, 1)");
    let before = rows(s, "show tables");
    for (sql, want, part) in WRONG {
        let e = error(s, sql);
        assert_eq!(e.state().0, *want, "{sql}\n{e:?}");
        assert!(e.message().contains(part), "{sql}\n{e:?}");
        if *want == "42P16" {
            assert!(
                e.hint().is_some()
                    || sql.contains("interleave in parent p interleave")
                    || sql.contains("p (a)"),
                "no hint: {sql}\n{e:?}"
            );
        }
    }
    assert_eq!(rows(s, "show tables"), before);
}

#[test]
fn every_form_works() {
    let s = &mut session(&database());
    run(s, "create table p (a int primary key)");
    run(
        s,
        "create table enforced (x int, n int, primary key (x, n)) interleave in parent p (x) on delete cascade",
    );
    run(s, "create table spanner (a int, n int, primary key (a, n)) interleave in parent p");
    run(
        s,
        "create table crdb (a int references p on delete cascade, n int, primary key (a, n)) interleave in parent p (a)",
    );
    run(s, "create table loc (a int, n int, primary key (a, n)) interleave in p");
    run(s, "create table one (a int primary key, x text) interleave in parent p on delete cascade");
    run(s, "insert into p values (1), (2)");
    assert_eq!(state(s, "insert into enforced values (3, 3)"), "23503");
    assert_eq!(state(s, "insert into spanner values (3, 3)"), "23503");
    assert_eq!(state(s, "insert into crdb values (3, 3)"), "23503");
    run(s, "insert into loc values (3, 3)");
    run(s, "insert into one values (1, 'x')");
    assert_eq!(state(s, "insert into one values (1, 'y')"), "23505");
    assert_eq!(
        rows(s, "select p.a, one.x from p left join one on one.a = p.a where p.a > 0 order by p.a"),
        ["1|x", "2|NULL"]
    );
    // Locality only, switched to enforcing: every row is checked.
    assert_eq!(state(s, "alter table loc set interleave in parent p on delete cascade"), "23503");
    run(s, "delete from loc; alter table loc set interleave in parent p on delete cascade");
    assert_eq!(state(s, "insert into loc values (3, 3)"), "23503");
    run(s, "alter table loc set interleave in p");
    run(s, "insert into loc values (3, 3)");
    run(s, "truncate p cascade");
    assert_eq!(rows(s, "select count(*) from loc"), ["0"]);
    // What is interleaved for locality only depends on nothing: it moves out and keeps its rows.
    run(s, "insert into p values (4); insert into loc values (4, 1), (5, 2)");
    run(s, "insert into crdb values (4, 9)");
    run(s, "create index loc_n on loc (n)");
    assert_eq!(state(s, "drop table p"), "2BP01");
    run(s, "drop table p cascade");
    assert_eq!(rows(s, "show tables").len(), 2);
    assert_eq!(rows(s, "select * from loc order by 1"), ["4|1", "5|2"]);
    assert_eq!(rows(s, "select * from loc where n = 2"), ["5|2"]);
    assert_eq!(rows(s, "select * from crdb"), ["4|9"]);
    run(s, "insert into loc values (6, 3); insert into crdb values (3, 3)");
    run(s, "delete from loc where n = 2; drop table loc, crdb");
    assert_eq!(rows(s, "show tables").len(), 0);
}

#[test]
fn explain_says_why_not() {
    let s = &mut session(&database());
    run(s, "create table p (id int primary key, x int)");
    run(
        s,
        "create table c (id int references p on delete cascade, n int, u int, primary key (id, n)) interleave in parent p (id)",
    );
    run(
        s,
        "create table g (id int, n int, m int, primary key (id, n, m)) interleave in parent c on delete cascade",
    );
    let why = |s: &mut braid_sql::Session, sql: &str| rows(s, &format!("explain {sql}")).join("\n");
    // CockroachDB's form: the foreign key makes the children go along.
    assert!(why(s, "delete from p where id = 1").contains("range delete: p, c, g"));
    assert!(why(s, "delete from p where id between 1 and 5").contains("range delete"));
    assert!(why(s, "delete from c where id = 1").contains("range delete: c, g"));
    for (sql, reason) in [
        ("delete from p where x = 1", "is not a span of the primary key"),
        ("delete from c where id > 1", "the spans would also hold rows of table p"),
    ] {
        let shown = why(s, sql);
        assert!(
            shown.contains("one tombstone for each row: ") && shown.contains(reason),
            "{shown}"
        );
    }
    assert!(why(s, "delete from g where id = 1").contains("row by row: "));
    run(s, "create table o (id int primary key, p int references p on delete set null)");
    assert!(
        why(s, "delete from p where id = 1")
            .contains("cascade: foreign key o_p_fkey of o (ON DELETE SET NULL)")
    );
    run(s, "drop table o; create table o (id int primary key, p int references p)");
    assert!(why(s, "delete from p where id = 1").contains("check: foreign key o_p_fkey of o"));
    run(
        s,
        "insert into p values (1, 0), (2, 0), (3, 0); insert into c values (1, 1, 1); insert into o values (1, 2)",
    );
    assert_eq!(state(s, "delete from p where id <= 2"), "23503");
    assert_eq!(harness::tag(s, "delete from p where id = 1"), "DELETE 1");
    run(s, "create table l (id int, n int, primary key (id, n)) interleave in p");
    assert!(why(s, "delete from p where id = 1").contains("stays: l (for locality only)"));
}

#[test]
fn chains_are_limited() {
    let s = &mut session(&database());
    run(s, "create table t1 (k1 int primary key)");
    for n in 2..=16 {
        let columns: Vec<_> = (1..=n).map(|i| format!("k{i} int")).collect();
        let key: Vec<_> = (1..=n).map(|i| format!("k{i}")).collect();
        run(
            s,
            &format!(
                "create table t{n} ({}, primary key ({})) interleave in parent t{} on delete cascade",
                columns.join(", "),
                key.join(", "),
                n - 1
            ),
        );
    }
    let deep: Vec<_> = (1..=17).map(|i| format!("k{i}")).collect();
    let e = error(
        s,
        &format!(
            "create table t17 ({} int, primary key ({})) interleave in parent t16",
            deep.join(" int, "),
            deep.join(", ")
        ),
    );
    assert!(e.message().contains("too deeply nested; the limit is 16"), "{e:?}");
    for n in 1..=16 {
        let values = vec!["1"; n].join(", ");
        run(s, &format!("insert into t{n} values ({values})"));
    }
    assert_eq!(rows(s, "select count(*) from t16"), ["1"]);
    assert_eq!(
        harness::tag(
            s,
            "delete from t7 where k1 = 1 and k2 = 1 and k3 = 1 and k4 = 1 and k5 = 1 and k6 = 1"
        ),
        "DELETE 1"
    );
    assert_eq!(rows(s, "select count(*) from t16"), ["0"]);
    assert_eq!(rows(s, "select count(*) from t6"), ["1"]);
}

#[test]
fn stored_columns_of_an_index_come_and_go() {
    let s = &mut session(&database());
    run(
        s,
        "create table c (id int primary key);
         create table o (id int, o int, n int, t text, u int, primary key (id, o))
             interleave in parent c on delete cascade;
         create index o_n on o (n);
         create unique index o_in_c on o (id, n) interleave in c;
         insert into c values (1), (2), (3)",
    );
    for id in 1..=3 {
        // Enough for sorted runs.
        let values: Vec<String> =
            (0..4_000).map(|o| format!("({id}, {o}, {}, 'text {o}', {id})", o + 1)).collect();
        run(s, &format!("insert into o values {}", values.join(", ")));
    }
    for (index, sql) in [
        ("o_n", "select t from o where n = 77"),
        ("o_in_c", "select t from o where id = 2 and n = 77"),
    ] {
        let covers = |s: &mut Session| {
            rows(s, &format!("explain {sql}")).join("\n").contains(&format!("{index} (covering)"))
        };
        let found = rows(s, sql);
        assert!(!covers(s), "{index}");
        run(s, &format!("alter index {index} add stored column t"));
        assert!(covers(s), "{index}");
        assert_eq!(rows(s, sql), found, "{index}");
        run(s, "update o set t = 'other' where n = 77");
        assert_eq!(rows(s, sql), vec!["other"; found.len()], "{index}");
        assert_eq!(state(s, &format!("alter index {index} add include column t")), "42701");
        assert_eq!(state(s, &format!("alter index {index} add stored column n")), "42P16");
        assert_eq!(state(s, &format!("alter index {index} add stored column o")), "42P16");
        assert_eq!(state(s, &format!("alter index {index} add stored column x")), "42703");
        assert_eq!(state(s, &format!("alter index {index} drop stored column u")), "42P16");
        // What a block changes goes with it.
        run(s, &format!("begin; alter index {index} drop include t; rollback"));
        assert!(covers(s), "{index}");
        run(s, &format!("alter index {index} drop stored column t"));
        assert!(!covers(s), "{index}");
        assert_eq!(rows(s, sql), vec!["other"; found.len()], "{index}");
        run(s, "update o set t = 'text 76' where n = 77");
    }
    assert_eq!(state(s, "alter index c_pkey add stored column id"), "42809");
    assert_eq!(state(s, "alter index nothing add stored column id"), "42P01");
    assert_eq!(state(s, "insert into o values (1, 9000, 77, 'x', 1)"), "23505");
    run(s, "delete from c where id = 2");
    assert_eq!(rows(s, "select count(*) from o where n = 77"), ["2"]);
}
