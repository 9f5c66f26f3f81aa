//! Joins along the hierarchy: one pass over the families gives what lookups row by row give.

use crate::harness;

use crate::harness::{database, rows, run, session, state};
use braid_env::random::Random;
use braid_sql::Session;

/// The same rows in an interleaved hierarchy, in one with siblings between, and in flat tables, whose
/// joins are lookups; `k` is layout only, so it also has rows without a parent.
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
    create table c3 (id int primary key, city text);
    create table s5 (id int, s int, primary key (id, s));
    create table o3 (id int, o int, n int, primary key (id, o));
    create table l3 (id int, o int, l int, t text, primary key (id, o, l));
    create table k3 (id int, o int, l int, k int, primary key (id, o, l, k));
";

/// Fills both hierarchies alike: parents without children, children of several, gaps.
fn fill(s: &mut Session) {
    run(s, SCHEMA);
    for i in 1..10 {
        let city = ["'x'", "'y'", "null"][i % 3];
        for c in ["c", "c2", "c3"] {
            run(s, &format!("insert into {c} values ({i}, {city})"));
        }
        for n in 0..i % 3 {
            let row = format!("({i}, {n})");
            run(s, &format!("insert into s2 values {row}; insert into s5 values {row}"));
        }
        for o in (1..5).filter(|o| i % 4 != 0 && (i + o) % 3 != 0) {
            let row = format!("({i}, {o}, {})", i * o % 5);
            for o in ["o", "o2", "o3"] {
                run(s, &format!("insert into {o} values {row}"));
            }
            run(s, &format!("insert into s3 values ({i}, {o}, 1)"));
            for l in (1..4).filter(|l| (i + o + l) % 2 == 0) {
                let row = format!("({i}, {o}, {l}, 'l{l}')");
                for l in ["l", "l2", "l3"] {
                    run(s, &format!("insert into {l} values {row}"));
                }
                run(s, &format!("insert into s4 values ({i}, {o}, {l}, 1)"));
            }
        }
    }
    for row in ["(1, 1, 2, 1)", "(1, 1, 2, 2)", "(1, 1, 3, 9)", "(5, 3, 2, 1)", "(77, 1, 1, 1)"] {
        for k in ["k", "k2", "k3"] {
            run(s, &format!("insert into {k} values {row}"));
        }
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
                            let named = format!(" {table}{two} {table} ");
                            text = text.replace(&format!(" {table} "), &named);
                        }
                    }
                    text
                };
                let (one, two, flat) = (sql(""), sql("2"), sql("3"));
                // Siblings between are passed over, where they are few.
                for one in [&one, &two] {
                    let plan = rows(s, &format!("explain {one}")).join("\n");
                    assert!(plan.contains("same pass"), "{one}\n{plan}");
                }
                assert_eq!(rows(s, &one), rows(s, &two), "{one}");
                compared += 1;
                if filter != "true" {
                    let plan = rows(s, &format!("explain {flat}")).join("\n");
                    assert!(!plan.contains("same pass"), "{flat}\n{plan}");
                    assert_eq!(rows(s, &one), rows(s, &flat), "{one}");
                }
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

/// A random query over a customer's family: joins, questions and values of siblings and of what lies
/// in them. Tables are named in braces.
fn question(r: &mut Random) -> String {
    let pick = |r: &mut Random, all: &[&str]| (*r.pick(all)).to_string();
    let mut from = "{c} c".to_string();
    let has_o = r.below(2) == 0;
    if has_o {
        let on = pick(r, &["", " and o.n > 1", " and o.o <> c.id"]);
        from += &format!("{} join {{o}} o on o.id = c.id{on}", pick(r, &["", " left"]));
        if r.below(2) == 0 {
            let join = pick(r, &["", " left"]);
            from += &format!("{join} join {{l}} l on l.id = o.id and l.o = o.o");
        }
    }
    if !has_o || r.below(2) == 0 {
        let on = pick(r, &["", " and s.s > 0"]);
        from += &format!("{} join {{s}} s on s.id = c.id{on}", pick(r, &["", " left"]));
    }
    let inner = [
        "{o} x where x.id = c.id",
        "{o} x where x.id = c.id and x.n > 1",
        "{s} x where x.id = c.id",
        "{l} x where x.id = c.id",
        "{l} x where x.id = c.id and x.t <> 'l2'",
        "{k} x where x.id = c.id",
    ];
    let mut list = "*".to_string();
    for _ in 0..r.below(3) {
        let value =
            pick(r, &["count(*)", "max(x)", "json_agg(x.id)", "array_agg(x.id)", "sum(x.id)"]);
        let value = if value == "max(x)" { "max(x.id)".into() } else { value };
        list += &format!(", (select {value} from {})", pick(r, &inner));
    }
    let filter = pick(r, &["c.id between 2 and 7", "c.id in (1, 5, 9)", "c.id = 5", "c.id < 9"]);
    let mut sql = format!("select {list} from {from} where {filter}");
    if r.below(3) == 0 {
        sql += &pick(r, &[" and c.city <> 'x'", " and c.city is null"]);
    }
    if r.below(2) == 0 {
        let not = pick(r, &["", "not "]);
        sql += &format!(" and {not}exists (select 1 from {})", pick(r, &inner));
    }
    if r.below(4) == 0 {
        sql += " limit 3";
    }
    sql
}

#[test]
fn families_with_siblings_answer_as_flat_tables() {
    let s = &mut session(&database());
    fill(s);
    // One family that is too large to be gathered.
    let text = "x".repeat(4_000);
    for part in 0..4 {
        let values: Vec<String> =
            (0..100).map(|l| format!("(9, 4, {}, '{text}')", 10 + part * 100 + l)).collect();
        for l in ["l2", "l3"] {
            let values = values.join(", ");
            let o = l.replace('l', "o");
            if part == 0 {
                run(s, &format!("insert into {o} values (9, 4, 9) on conflict do nothing"));
            }
            run(s, &format!("insert into {l} values {values}"));
        }
    }
    let mut r = Random::seeded(7);
    let mut passes = 0;
    for n in 0..600 {
        let sql = question(&mut r);
        let of = |names: [&str; 5]| {
            ["{c}", "{o}", "{l}", "{s}", "{k}"]
                .iter()
                .zip(names)
                .fold(sql.clone(), |sql, (from, to)| sql.replace(from, to))
        };
        let inside = of(["c2", "o2", "l2", "s2", "k2"]);
        let flat = of(["c3", "o3", "l3", "s5", "k3"]);
        let plan = rows(s, &format!("explain {inside}")).join("\n");
        passes += usize::from(plan.contains("same pass"));
        assert_eq!(rows(s, &inside), rows(s, &flat), "{n}: {inside}\n{plan}");
    }
    assert!(passes > 250, "{passes}");
}

#[test]
fn a_family_with_siblings_is_one_request() {
    let db = database();
    let s = &mut session(&db);
    fill(s);
    let sql = "select c.city, (select count(*) from o2 where o2.id = c.id),
                      (select json_agg(s2.s) from s2 where s2.id = c.id)
               from c2 c where c.id between 2 and 6";
    let plan = rows(s, &format!("explain {sql}")).join("\n");
    assert_eq!(plan.matches("same pass").count(), 2, "{plan}");
    let requests = |s: &mut Session, sql: &str| {
        let ran = rows(s, &format!("explain analyze {sql}")).join("\n");
        let found = ran.lines().find(|line| line.contains("requests"));
        found.unwrap_or_else(|| panic!("{ran}")).to_string()
    };
    let together = requests(s, sql);
    assert!(together.contains("requests: 1") || together.contains("requests=1"), "{together}");
    // What nobody wants lies between in numbers: looked up.
    for part in 0..4 {
        let values: Vec<String> =
            (0..500).map(|n| format!("(5, {})", 100 + part * 500 + n)).collect();
        run(s, &format!("insert into s2 values {}", values.join(", ")));
    }
    let sql = "select c.city, (select count(*) from o2 where o2.id = c.id),
                      (select count(*) from l2 where l2.id = c.id)
               from c2 c where c.id between 2 and 6";
    let plan = rows(s, &format!("explain {sql}")).join("\n");
    assert!(!plan.contains("same pass"), "{plan}");
}

#[test]
fn explain_draws_what_a_statement_touches() {
    let s = &mut session(&database());
    fill(s);
    let drawn = |s: &mut Session, sql: &str| {
        let all = rows(s, &format!("explain (interleave) {sql}"));
        let at = all.iter().position(|line| line == "Interleave Tree:");
        at.map_or(Vec::new(), |at| all[at + 1..].to_vec())
    };
    assert_eq!(
        drawn(s, "select * from c join o on o.id = c.id where c.id = 5"),
        [
            "  c        point read on c",
            "    o      family read of o (same pass)",
            "      l    -",
            "        k  -",
        ]
    );
    assert_eq!(
        drawn(s, "delete from c where id = 5"),
        [
            "  c        Delete on c; range delete",
            "    o      range delete",
            "      l    range delete",
            "        k  stays",
        ]
    );
    // What lies in no tree has none.
    assert!(drawn(s, "select * from o3 where id = 5").is_empty());
    assert_eq!(state(s, "explain (interleave, format json) select * from c"), "0A000");
}
