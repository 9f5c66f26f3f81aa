//! Subqueries as values of few rows are steps of own plans; the general plan of the same query,
//! which a subquery in FROM makes it, gives the same answer.

use crate::harness::Db;

fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "create table c (id int primary key, city text, best int);
         create table o (id int, no int, placed date, amount int,
             primary key (id, no)) interleave in parent c on delete cascade;
         create table l (id int, no int, line int, product int, amount numeric(8,2),
             primary key (id, no, line)) interleave in parent o on delete cascade;
         create table p (id int primary key, name text, c int);
         create index l_product on l (product);
         create index p_c on p (c) include (name);
         insert into c select i, 'city ' || i % 3, nullif(i % 7, 0) from generate_series(1, 40) g(i);
         insert into o select i, k, date '2026-01-01' + (i * k) % 5, nullif((i + k) % 6, 5)
             from generate_series(1, 40) g(i), generate_series(1, 8) h(k) where (i + k) % 5 <> 0;
         insert into l select i, k, n, nullif((i * 7 + k * 3 + n) % 20, 19), (i + k + n) % 10 / 4.0
             from generate_series(1, 40) g(i), generate_series(1, 8) h(k), generate_series(1, 4) m(n)
             where (i + k) % 5 <> 0 and (k + n) % 3 <> 0;
         insert into p select i, 'p' || i, nullif(i % 11, 10) from generate_series(0, 30) g(i)",
    );
    db
}

const OWN: &[&str] = &[
    "select city, (select count(*) from o where o.id = c.id) from c where id = 7",
    "select city, (select sum(amount) from o where o.id = c.id) s from c where id in (7, 8, 1000)",
    "select (select max(no) from o where o.id = c.id) + 1 as more, \
        coalesce((select min(amount) from o where id = c.id and no > 100), -1) from c where id = 9",
    "select no, (select avg(l.amount) from l where l.id = o.id and l.no = o.no), \
        (select count(product) from l where l.id = o.id and l.no = o.no and line > 1) \
        from o where id = 7",
    // A row, or none.
    "select id, (select name from p where p.id = c.best), (select c from p where id = c.best) \
        from c where id < 9",
    "select id, (select coalesce(name, 'none') || c.city from p where p.id = c.best + 100) \
        from c where id < 9",
    // Beside joins, conditions that ask, and aggregates.
    "select c.id, o.no, (select count(*) from l where l.id = o.id and l.no = o.no) from c \
        join o on o.id = c.id where c.id in (3, 4) and exists (select 1 from l where l.id = o.id \
        and l.no = o.no and l.product > 10)",
    "select c.id, o.no, (select sum(line) from l where l.id = o.id and l.no = o.no) from c \
        left join o on o.id = c.id and o.no > 6 where c.id in (2, 3)",
    "select count(*), sum(amount) from o where id = 5 \
        and no > (select count(*) from l where l.id = o.id and l.no = o.no)",
    "select no from o where id = 6 and amount = (select max(product) from l where l.id = o.id \
        and l.no = o.amount) and no <> 3",
    "select * from o where id = 6 and (select count(*) from l where l.id = o.id and l.no = o.no) = 3",
    "select c.*, (select count(*) from p where p.c = c.id) from c where id = 3",
    "select (select city from c where c.id = o.id), (select city from c where c.id = o.no) from o \
        where id = 4",
    "select id, (select 5 from p where p.id = c.best) is null from c where id < 12",
];

#[test]
fn answers_are_those_of_general_plans() {
    db().check_own_plans(OWN, "(value: ");
}

#[test]
fn own_writes_orders_limits_and_names() {
    let mut db = db();
    let sql = "select no, (select count(*) from l where l.id = o.id and l.no = o.no) n from o \
        where id = 7";
    let by_no = format!("{sql} order by no");
    db.check(&[(&by_no, "1|3; 2|2; 4|3; 5|2; 6|3; 7|3")]);
    db.run("begin; delete from l where id = 7 and no = 2; insert into o values (7, 9)");
    db.check(&[
        (&by_no, "1|3; 2|0; 4|3; 5|2; 6|3; 7|3; 9|0"),
        (&format!("{sql} order by n, no desc limit 3"), "9|0; 2|0; 5|2"),
        (&format!("{sql} order by 2 desc, 1 limit 2 offset 1"), "4|3; 6|3"),
        (&format!("{sql} order by no desc limit 2"), "9|0; 7|3"),
    ]);
    db.run("delete from c where id = 7");
    db.check(&[(&by_no, "")]);
    db.run("rollback");
    db.run(
        "prepare s(int) as select city, (select count(*) from o where o.id = c.id and no > $1) \
        from c where id = 7",
    );
    db.check(&[("execute s(3)", "city 1|4"), ("execute s(null)", "city 1|0")]);
    let titles = db.titles(
        "select (select count(*) from o where o.id = c.id), (select city from c d where d.id = c.id), \
            ((select max(no) from o where o.id = c.id) + 1), (select min(no) from o where o.id = c.id) \
            as least, (select max(no) from o where o.id = c.id)::text from c where id = 7",
    );
    assert_eq!(titles, ["count", "city", "?column?", "least", "max"]);
}

#[test]
fn what_is_computed_of_an_aggregate_is_a_step_too() {
    let mut db = db();
    let sql = "select (select count(*) + 1 from o where o.id = c.id), \
            (select count(*) from o where o.id = c.id) + 1 from c where id = 7";
    let plan = db.run(&format!("explain {sql}")).join("\n");
    assert!(!plan.contains("general plan"), "{plan}");
    let row = db.run(sql).join("");
    let (one, other) = row.split_once('|').unwrap();
    assert_eq!(one, other);
}

#[test]
fn what_is_more_than_that_is_general_and_errors_are_the_same() {
    let mut db = db();
    for sql in [
        "select (select count(*) from o) from c where id = 7",
        "select (select count(*) from o where id = 7) from c where id = 7",
        "select (select count(*) from o where o.id = c.id limit 0) from c where id = 7",
        "select (select distinct placed from o where o.id = c.id order by placed limit 1) from c \
            where id = 7",
        "select case when id = 8 then (select count(*) from o where o.id = c.id) end from c \
            where id = 7",
        "select (select count(*) from o where o.id = c.id) from c",
        "select best, (select count(*) from p where p.c = c.best) from c where id < 5 group by best",
        "select id from c where id = 7 and (best = 3 or (select count(*) from o \
            where o.id = c.id) > 3)",
        "select (select count(*) from o, l where o.id = c.id) from c where id = 7",
    ] {
        let plan = db.run(&format!("explain {sql}")).join("\n");
        assert!(plan.contains("general plan"), "{sql}\n{plan}");
        db.run(sql);
    }
    for (sql, state) in [
        ("select (select no from o where o.id = c.id) from c where id = 7", "21000"),
        (
            "select city from c where id = 7 and best = (select no from o where o.id = c.id)",
            "21000",
        ),
        ("select (select nope from o where o.id = c.id) from c where id = 7", "42703"),
        // The aggregate is the outer query's, as all its columns are.
        ("select (select max(c.best) from o where o.id = c.id) from c where id = 7", "42803"),
        ("select (select no, placed from o where o.id = c.id) from c where id = 7", "42601"),
        ("select (select sum(placed) from o where o.id = c.id) from c where id = 7", "42883"),
        ("select 1 + (select city from c d where d.id = c.id) from c where id = 7", "42883"),
        (
            "select (select sum(10 / (no - 2)) from o where o.id = c.id) from c where id = 7",
            "22012",
        ),
    ] {
        let error = db.try_run(sql).expect_err(sql);
        assert_eq!(error.state().0, state, "{sql}: {error}");
        let general = db
            .try_run(&format!("select x.* from ({sql}) x, (values (row(1))) o (o)"))
            .expect_err(sql);
        assert_eq!(general.state().0, state, "{sql}: {general}");
    }
}

#[test]
fn what_was_read_is_validated() {
    let mut db = db();
    let mut other = db.another();
    db.run("begin");
    db.run("select (select count(*) from o where o.id = c.id) from c where id = 7");
    other.run("insert into o values (7, 99)");
    db.run("insert into p values (100, 'so many', 0)");
    assert_eq!(db.try_run("commit").expect_err("there are more").state().0, "40001");
}
