//! Tables that move into a parent, out of one, to another one, to another primary key: all that was
//! there is there afterwards, under every access path, and what does not fit changes nothing.

use crate::harness::{database, error, rows, run, session, state, tag};
use braid_sql::Session;

/// Lines of each of 15 orders: more than 10,000 rows are moved by sorted runs.
const MANY: u32 = 800;

const SCHEMA: &str = "
    create table c (id int primary key, name text);
    create table d (id int primary key, name text);
    create table o (id int, o int, n int, primary key (id, o));
    create table l (id int, o int, l int, n int, t text, primary key (id, o, l))
        interleave in parent o on delete cascade;
    create index o_n on o (n);
    create unique index o_u on o (o, id);
    create index l_n on l (n);
    create index l_in_o on l (id, o, n) interleave in o;
    create index l_in_l on l (id, o, l, t) interleave in l;
    create table far (k int primary key, id int, o int, foreign key (id, o) references o);";

fn filled(lines: u32) -> Session {
    let mut s = session(&database());
    run(&mut s, SCHEMA);
    for id in 1..=5 {
        run(
            &mut s,
            &format!("insert into c values ({id}, 'c{id}'); insert into d values ({id}, 'd')"),
        );
        for o in 1..=3 {
            run(&mut s, &format!("insert into o values ({id}, {o}, {})", id * 10 + o));
            let values: Vec<String> =
                (0..lines).map(|l| format!("({id}, {o}, {l}, {}, 'text {l}')", l % 7)).collect();
            run(&mut s, &format!("insert into l values {}", values.join(", ")));
        }
    }
    run(&mut s, "insert into far values (1, 2, 2), (2, 5, 1)");
    s
}

/// What all tables hold, by every access path.
fn contents(s: &mut Session) -> Vec<String> {
    let mut out = Vec::new();
    for sql in [
        "select * from c",
        "select * from o order by id, o",
        "select * from l order by id, o, l",
        "select id, o from o where n = 21",
        "select id from o where o = 3 and id = 4",
        "select id, o, l from l where n = 3 order by id, o, l",
        "select l from l where id = 2 and o = 1 and n = 3 order by l",
        "select l from l where id = 2 and o = 1 and l = 3 and t = 'text 3'",
        "select * from far",
        "select count(*) from l where id between 2 and 4",
    ] {
        out.push(format!("{sql}: {}", rows(s, sql).join(" ")));
    }
    out
}

/// What still holds for writers.
fn rules(s: &mut Session) {
    for (sql, code) in [
        ("insert into o values (1, 1, 1)", "23505"),
        ("insert into l values (1, 1, 1, 1, 'x')", "23505"),
        ("insert into l values (1, 99, 1, 1, 'x')", "23503"),
        ("delete from o where id = 2 and o = 2", "23503"),
    ] {
        assert_eq!(state(s, sql), code, "{sql}");
    }
    run(s, "begin; delete from o where id = 3 and o = 1");
    assert_eq!(rows(s, "select count(*) from l where id = 3 and o = 1"), ["0"]);
    run(s, "rollback");
}

#[test]
fn a_subtree_moves_in_about_and_out() {
    // Few rows go through the transaction, many by sorted runs.
    for lines in [4, MANY] {
        let s = &mut filled(lines);
        let before = contents(s);
        for (change, plan) in [
            ("alter table o set interleave in parent c on delete cascade", "range delete: c, o, l"),
            ("alter table o set interleave in d", "stays: o"),
            ("alter table o set interleave in parent c", "check: no rows of o"),
            ("alter table o set interleave in parent d on delete cascade", "range delete: c"),
            ("alter table o drop interleave", "row by row"),
            ("alter table l drop interleave", "row by row"),
        ] {
            let l_had_parent = change.starts_with("alter table o");
            assert_eq!(tag(s, change), "ALTER TABLE", "{change}");
            assert_eq!(contents(s), before, "{change}");
            if l_had_parent {
                rules(s);
            }
            let table = if change.contains(" d") && !change.contains("drop") { "d" } else { "c" };
            let shown = rows(s, &format!("explain delete from {table} where id = 1")).join("\n");
            if table == "c" && !change.contains("drop") {
                assert!(shown.contains(plan), "{change}\n{shown}");
            }
        }
        run(s, "delete from far; alter table l set interleave in parent o on delete cascade");
        run(s, "alter table o set interleave in parent c on delete cascade");
        assert_eq!(tag(s, "delete from c where id < 5"), "DELETE 4");
        assert_eq!(rows(s, "select count(*), min(id) from o"), ["3|5"]);
        assert_eq!(rows(s, "select count(*) from l"), [(3 * lines).to_string()]);
        assert_eq!(rows(s, "select count(*) from l where n >= 0"), [(3 * lines).to_string()]);
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let s = &mut filled(3);
    run(s, "insert into o values (77, 1, 0); create table w (id text primary key)");
    let before = contents(s);
    for (sql, code) in [
        ("alter table o set interleave in parent c on delete cascade", "23503"),
        ("alter table o set interleave in parent l", "42P16"),
        ("alter table c set interleave in parent o", "42P16"),
        ("alter table o set interleave in parent w", "42P16"),
        ("alter table c drop interleave", "42P16"),
        ("alter table o alter primary key using columns (o, id)", "42P16"),
        ("alter table l alter primary key using columns (n)", "23505"),
        ("alter table l alter primary key using columns (nope)", "42703"),
        ("alter table l alter primary key using columns (n, n)", "42701"),
        ("alter table l alter primary key using columns (o, l) interleave in parent o", "42P16"),
    ] {
        assert_eq!(state(s, sql), code, "{sql}");
        assert_eq!(contents(s), before, "{sql}");
    }
    let refused = error(s, "alter table o alter primary key using columns (o, id)");
    assert!(refused.message().contains("\"l\""), "{refused:?}");
    // For locality only, no parent is asked for.
    run(s, "alter table o set interleave in c");
    assert_eq!(contents(s), before);
    run(s, "begin; alter table o drop interleave; insert into c values (77, 'x')");
    run(s, "alter table o set interleave in parent c on delete cascade");
    assert_eq!(tag(s, "delete from c where id = 77"), "DELETE 1");
    assert_eq!(rows(s, "select count(*) from o where id = 77"), ["0"]);
    run(s, "rollback");
    assert_eq!(contents(s), before);
    assert_eq!(rows(s, "select id from o where id = 77"), ["77"]);
}

#[test]
fn a_primary_key_changes_and_the_old_one_stays_unique() {
    let s = &mut filled(4);
    run(s, "delete from l where n <> 2 or o > 1; update l set n = id * 5");
    run(s, "alter table l alter primary key using columns (n desc)");
    assert_eq!(rows(s, "select n, id from l"), ["25|5", "20|4", "15|3", "10|2", "5|1"]);
    assert_eq!(rows(s, "select n from l where id = 3 and o = 1"), ["15"]);
    assert_eq!(rows(s, "select l from l where t = 'text 2' and id = 4"), ["2"]);
    assert_eq!(state(s, "insert into l values (1, 1, 2, 99, '')"), "23505");
    assert_eq!(state(s, "insert into l values (9, 9, 9, 25, '')"), "23505");
    run(s, "insert into l values (9, 9, 9, 30, '')");
    let shown = rows(s, "show create table l").join("\n");
    assert!(
        shown.contains("PRIMARY KEY (n DESC)") && shown.contains("UNIQUE (id, o, l)"),
        "{shown}"
    );
    assert!(!shown.contains("INTERLEAVE IN o"), "{shown}");
    // With its clause, in one step; others refer to the old key by the index that is left.
    run(
        s,
        "create table q (a int, id int, v int, primary key (a)); insert into q values (1, 2, 3)",
    );
    run(s, "create table to_q (a int references q); insert into to_q values (1)");
    run(
        s,
        "alter table q alter primary key using columns (id, a) interleave in parent c (id) on delete cascade",
    );
    assert_eq!(rows(s, "select * from q where id = 2"), ["1|2|3"]);
    assert_eq!(state(s, "insert into q values (2, 99, 0)"), "23503");
    assert_eq!(state(s, "insert into to_q values (5)"), "23503");
    assert_eq!(state(s, "delete from c where id = 2"), "23503");
    run(s, "delete from to_q");
    assert_eq!(tag(s, "delete from c where id = 2"), "DELETE 1");
    assert_eq!(rows(s, "select count(*) from q"), ["0"]);
    // The off-ramp: without a clause, the table lies in no parent.
    run(s, "alter table q alter primary key using columns (id, a)");
    assert_eq!(state(s, "alter table q drop interleave"), "42P16");
}

#[test]
fn readers_of_the_past_and_other_sessions_go_on() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, SCHEMA);
    run(a, "insert into c values (1, 'a'), (2, 'b'); insert into o values (1, 1, 5), (2, 1, 6)");
    run(b, "begin isolation level repeatable read; select * from c");
    run(
        a,
        "alter table o set interleave in parent c on delete cascade; delete from c where id = 1",
    );
    assert_eq!(rows(b, "select id, n from o"), ["1|5", "2|6"]);
    assert_eq!(rows(b, "select id from o where n = 5"), ["1"]);
    run(b, "commit");
    assert_eq!(rows(b, "select id, n from o"), ["2|6"]);
    assert_eq!(state(b, "insert into o values (1, 2, 3)"), "23503");
    run(b, "insert into o values (2, 2, 3)");
    assert_eq!(rows(a, "select id, o from o where n = 3"), ["2|2"]);
    let held = rows(a, "explain select * from c join o on o.id = c.id where c.id = 2").join("\n");
    assert!(held.contains("same pass"), "{held}");
}

/// What all tables hold, as text, whatever the types of their keys are.
fn as_text(s: &mut Session) -> Vec<String> {
    let mut out = Vec::new();
    for sql in [
        "select id::text from c",
        "select id::text, o::text, n from o",
        "select id::text, o::text, l, n, t from l",
        "select id::text, o::text from o where n = 21",
        "select id::text, o::text, l from l where n = 3",
        "select id::text, o::text from o where o::text = '3' and n < 40",
        "select k, id::text, o::text from far",
    ] {
        let mut found = rows(s, sql);
        // Texts have another order than numbers.
        found.sort();
        out.push(format!("{sql}: {}", found.join(" ")));
    }
    out
}

#[test]
fn a_shared_key_column_changes_its_type_in_all_tables_of_the_hierarchy() {
    for lines in [4, MANY] {
        let s = &mut filled(lines);
        run(s, "alter table o set interleave in parent c on delete cascade");
        let before = as_text(s);
        assert!(error(s, "alter table l alter id type bigint").hint().unwrap().contains("\"c\""));
        assert!(error(s, "alter table l alter o type bigint").hint().unwrap().contains("\"o\""));
        // Stored alike: nothing moves.
        run(s, "alter table c alter id type bigint");
        assert_eq!(as_text(s), before);
        rules(s);
        for table in ["c", "o", "l"] {
            let ty = format!("select pg_typeof(id)::text from {table} limit 1");
            assert_eq!(rows(s, &ty), ["bigint"], "{table}");
        }
        run(s, "insert into c values (5000000000, 'big'); insert into o values (5000000000, 1, 0)");
        assert_eq!(tag(s, "delete from c where id = 5000000000"), "DELETE 1");
        assert_eq!(rows(s, "select count(*) from o where id > 1000"), ["0"]);
        // Both key columns, down to the leaf; foreign keys from outside do not fit any more.
        assert_eq!(state(s, "alter table c alter id type text"), "42804");
        assert_eq!(state(s, "alter table o alter o type text"), "42804");
        run(s, "alter table far drop constraint far_id_o_fkey");
        for (change, sure) in [
            ("alter table o alter o type text", "insert into o values (1, '1', 1)"),
            ("alter table c alter id type text", "insert into o values ('1', '1', 1)"),
            ("alter table c alter id type varchar(1)", "insert into c values ('1', 'x')"),
        ] {
            run(s, &format!("begin; {change}"));
            assert_eq!(as_text(s), before, "{change}");
            run(s, "rollback");
            assert_eq!(as_text(s), before, "{change}");
            run(s, change);
            assert_eq!(as_text(s), before, "{change}");
            assert_eq!(state(s, sure), "23505", "{change}");
        }
        assert_eq!(state(s, "insert into l values ('9', '1', 1, 1, '')"), "23503");
        let plan = rows(s, "explain delete from c where id = '1'").join("\n");
        assert!(plan.contains("range delete: c, o, l"), "{plan}");
        assert_eq!(tag(s, "delete from c where id = '1'"), "DELETE 1");
        assert_eq!(rows(s, "select count(*) from l where id = '1'"), ["0"]);
        assert_eq!(rows(s, "select count(*) from l where n >= 0"), [(12 * lines).to_string()]);
        assert_eq!(state(s, "alter table c alter id type text using id || 'x'"), "0A000");
        assert_eq!(state(s, "alter table c alter id type int"), "42804");
    }
}

#[test]
fn a_column_of_indexes_inside_families_changes_its_type() {
    for lines in [4, MANY] {
        let s = &mut filled(lines);
        let before = as_text(s);
        let count = (0..lines).filter(|l| l % 7 == 3).count();
        for (table, ty) in [("o", "bigint"), ("l", "smallint"), ("o", "text"), ("l", "bigint")] {
            run(s, "create index o_in on o (id, o, n) interleave in o");
            run(s, &format!("begin; alter table {table} alter n type {ty}; rollback"));
            run(s, &format!("alter table {table} alter n type {ty}"));
            let found = rows(s, "select id, o from o where n::int = 21");
            assert_eq!(found, ["2|1"], "{table} {ty}");
            let text = if ty == "text" { "'21'" } else { "21" };
            let text = if table == "o" { text } else { "n" };
            assert_eq!(
                rows(s, &format!("select id, o from o where id = 2 and n = {text} and o = 1")),
                ["2|1"]
            );
            let in_families = "select count(*) from l where id = 2 and o = 1 and n = 3";
            assert_eq!(rows(s, in_families), [count.to_string()], "{table} {ty}");
            run(s, "drop index o_in");
        }
        run(s, "alter table o alter n type int using n::int");
        assert_eq!(as_text(s), before);
        rules(s);
    }
}

#[test]
fn keys_that_hold_families_together_are_not_dropped() {
    let s = &mut filled(3);
    let before = as_text(s);
    for sql in [
        "alter table o drop constraint o_pkey cascade",
        "alter table l drop constraint l_pkey",
        "alter table l drop column o cascade",
        "alter table o drop column id cascade",
    ] {
        assert_eq!(state(s, sql), "42P16", "{sql}");
        assert!(error(s, sql).hint().is_some(), "{sql}");
        assert_eq!(as_text(s), before, "{sql}");
    }
    run(s, "alter table l drop interleave");
    run(s, "alter table l drop constraint l_pkey");
    assert_eq!(as_text(s), before);
    run(s, "insert into l select * from l where id = 1 and o = 1");
    assert_eq!(rows(s, "select count(*) from l where id = 1 and o = 1"), ["6"]);
    assert_eq!(state(s, "alter table l add primary key (id, o, l)"), "23505");
}
