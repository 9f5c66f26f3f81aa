//! Joins along the hierarchy: one pass over the families gives what lookups row by row give.

mod harness;

use braid_sql::Session;
use harness::{database, rows, run, session};

/// The same rows in an interleaved hierarchy and in one with a sibling between, whose joins are
/// lookups; `k` is layout only, so it also has rows without a parent.
const SCHEMA: &str = "
    create table c (id int primary key, city text);
    create table o (id int, o int, n int, primary key (id, o))
        interleave in parent c on delete cascade;
    create table l (id int, o int, l int, t text, primary key (id, o, l))
        interleave in parent o on delete cascade;
    create table k (id int, o int, l int, k int, primary key (id, o, l, k)) interleave in l;
    create table c2 (id int primary key, city text);
    create table s2 (id int, s int, primary key (id, s)) interleave in parent c2 on delete cascade;
    create table o2 (id int, o int, n int, primary key (id, o))
        interleave in parent c2 on delete cascade;
    create table s3 (id int, o int, s int, primary key (id, o, s))
        interleave in parent o2 on delete cascade;
    create table l2 (id int, o int, l int, t text, primary key (id, o, l))
        interleave in parent o2 on delete cascade;
    create table s4 (id int, o int, l int, s int, primary key (id, o, l, s))
        interleave in parent l2 on delete cascade;
    create table k2 (id int, o int, l int, k int, primary key (id, o, l, k)) interleave in l2;
";

/// Fills both hierarchies alike: parents without children, children of several, gaps.
fn fill(s: &mut Session) {
    run(s, SCHEMA);
    for i in 1..10 {
        let city = ["'x'", "'y'", "null"][i % 3];
        run(s, &format!("insert into c values ({i}, {city}); insert into c2 values ({i}, {city})"));
        run(s, &format!("insert into s2 values ({i}, 1)"));
        for o in (1..5).filter(|o| i % 4 != 0 && (i + o) % 3 != 0) {
            let row = format!("({i}, {o}, {})", i * o % 5);
            run(s, &format!("insert into o values {row}; insert into o2 values {row}"));
            run(s, &format!("insert into s3 values ({i}, {o}, 1)"));
            for l in (1..4).filter(|l| (i + o + l) % 2 == 0) {
                let row = format!("({i}, {o}, {l}, 'l{l}')");
                run(s, &format!("insert into l values {row}; insert into l2 values {row}"));
                run(s, &format!("insert into s4 values ({i}, {o}, {l}, 1)"));
            }
        }
    }
    for row in ["(1, 1, 2, 1)", "(1, 1, 2, 2)", "(1, 1, 3, 9)", "(5, 3, 2, 1)", "(77, 1, 1, 1)"] {
        run(s, &format!("insert into k values {row}; insert into k2 values {row}"));
    }
}

#[test]
fn one_pass_joins_like_lookups() {
    let s = &mut session(&database());
    fill(s);
    // A lookup needs a narrow start, hence the WHERE of each.
    let froms = [
        "c join o on o.id = c.id",
        "c left join o on o.id = c.id",
        "c left join o on o.id = c.id left join l on l.id = o.id and l.o = o.o",
        "c left join o on o.id = c.id and o.n > 1 left join l on l.id = o.id and l.o = o.o",
        "c join o on o.id = c.id left join l on l.id = o.id and l.o = o.o and l.t <> 'l2'",
        "c left join o on o.id = c.id join l on l.id = o.id and l.o = o.o",
        "c join o on o.id = c.id join l on l.id = o.id and l.o = o.o \
         left join k on k.id = l.id and k.o = l.o and k.l = l.l",
        "o left join l on l.id = o.id and l.o = o.o",
        "l join k on k.id = l.id and k.o = l.o and k.l = l.l",
    ];
    let wheres = ["true", "@.id between 2 and 7", "@.id in (1, 5, 9)", "@.id = 5", "@.id > 99"];
    let mut compared = 0;
    for from in froms {
        let first = &from[..1];
        for extra in ["", " and o.n <> 2", " and (o.o is null or o.o > 1)"] {
            if !extra.is_empty() && !from.contains("o on") && first != "o" {
                continue;
            }
            for filter in wheres {
                let sql = |two: &str| {
                    let mut text =
                        format!("select * from {from} where {}{extra}", filter.replace('@', first));
                    if !two.is_empty() {
                        for table in ["c", "o", "l", "k"] {
                            text =
                                text.replace(&format!(" {table} "), &format!(" {table}2 {table} "));
                        }
                    }
                    text
                };
                let (one, two) = (sql(""), sql("2"));
                let plan = rows(s, &format!("explain {one}")).join("\n");
                assert!(plan.contains("same pass"), "{one}\n{plan}");
                let plan = rows(s, &format!("explain {two}")).join("\n");
                assert!(!plan.contains("same pass"), "{two}\n{plan}");
                assert_eq!(rows(s, &one), rows(s, &two), "{one}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 100, "{compared}");
}

#[test]
fn a_pass_sees_the_transactions_own_rows_and_conflicts_with_others() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    fill(a);
    let join = "select c.id, o.o, o.n from c left join o on o.id = c.id where c.id in (4, 5)";
    assert_eq!(rows(a, join), ["4|NULL|NULL", "5|2|0", "5|3|0"]);
    run(a, "begin; insert into o values (4, 1, 7); delete from o where id = 5 and o = 2");
    assert_eq!(rows(a, join), ["4|1|7", "5|3|0"]);
    run(a, "delete from c where id = 5");
    assert_eq!(rows(a, join), ["4|1|7"]);
    run(b, "insert into o values (4, 2, 8)");
    let error = harness::state(a, "commit");
    assert_eq!(error, "40001", "the pass has read the span that got a row");
    assert_eq!(rows(b, join), ["4|2|8", "5|2|0", "5|3|0"]);
}
