//! EXISTS and IN of few rows are steps of own plans; the general plan of the same query, which a
//! subquery in FROM makes it, gives the same answer.

use crate::harness::Db;

fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "create table c (id int primary key, city text, best int);
         create table o (id int, no int, placed date, amount int,
             primary key (id, no)) interleave in parent c on delete cascade;
         create table l (id int, no int, line int, product int, amount int,
             primary key (id, no, line)) interleave in parent o on delete cascade;
         create table p (id int primary key, name text, c int);
         create index l_product on l (product);
         create index p_c on p (c);
         insert into c select i, 'city ' || i % 3, nullif(i % 7, 0) from generate_series(1, 40) g(i);
         insert into o select i, k, date '2026-01-01' + (i * k) % 5, nullif((i + k) % 6, 5)
             from generate_series(1, 40) g(i), generate_series(1, 8) h(k) where (i + k) % 5 <> 0;
         insert into l select i, k, n, nullif((i * 7 + k * 3 + n) % 20, 19), (i + k + n) % 10
             from generate_series(1, 40) g(i), generate_series(1, 8) h(k), generate_series(1, 4) m(n)
             where (i + k) % 5 <> 0 and (k + n) % 3 <> 0;
         insert into p select i, 'p' || i, nullif(i % 11, 10) from generate_series(0, 30) g(i)",
    );
    db
}

const OWN: &[&str] = &[
    "select no from o where id = 7 and exists (select 1 from l where l.id = o.id and l.no = o.no \
        and l.amount > 7)",
    "select no from o where id = 7 and not exists (select * from l where l.id = o.id \
        and l.no = o.no and l.amount > 7)",
    "select no from o where id = 7 and not (exists (select 1 from l where l.id = o.id \
        and l.no = o.no and l.amount > o.amount))",
    "select no, placed from o where id = 7 and no in (select no from l where id = 7 and amount > 4)",
    "select no, placed from o where id = 8 and (no in (select l.no from l where l.id = o.id \
        and amount > 4) and amount > 1)",
    // Names are the inner table's first.
    "select id, no from o where id = 9 and exists (select id from l where id = 9 and no = o.no)",
    "select no from o where id = 9 and no in (select no from l o where o.id = 9 and o.no > 4)",
    "select o.no from o where o.id in (3, 4) and o.amount in (select p.c from p where p.id = o.no)",
    "select id from c where id < 6 and best in (select no from o where o.id = c.id)",
    "select id from c where id < 6 and not exists (select 1 from o where o.id = c.id and no = best)",
    "select count(*), sum(amount) from o where id = 5 and exists (select 1 from l where l.id = o.id \
        and l.no = o.no and product is null)",
    "select placed, count(*) from o where id = 5 and exists (select 1 from l where l.id = o.id \
        and l.no = o.no) group by placed",
    "select c.id, o.no from c join o on o.id = c.id where c.id = 6 and exists (select 1 from l \
        where l.id = o.id and l.no = o.no and l.line = 1) and not exists (select 1 from p \
        where p.id = o.amount)",
    "select c.id, o.no from c left join o on o.id = c.id and o.no > 6 where c.id in (2, 3) \
        and exists (select 1 from p where p.c = c.best)",
    // The value of the outer key instead of its name.
    "select c.id, o.no from c left join o on o.id = 6 and o.no = 99 where c.id = 6 \
        and not exists (select 1 from l where l.id = 6 and l.no = o.no)",
    "select c.id, o.no, o.amount from c left join o on o.id = 6 and o.amount > 1 where c.id = 6 \
        and exists (select 1 from o q where q.id = 6 and q.no >= c.best)",
    "select o.no, l.line from o left join l on l.id = 6 and l.no = o.no and l.line > 2 \
        where o.id = 6 and exists (select 1 from l k where k.id = 6 and k.no = o.no)",
    "select no from o where id = 1000 and exists (select 1 from l where l.id = o.id)",
    "select no from o where id = 7 and exists (select 1 from l where l.id = 1000 + o.id)",
    "select no from o where id = 7 and not exists (select 1 from l where l.id = 1000 + o.id)",
    "select id from p where id = 4 and exists (select 1 from p q where q.id = p.c)",
];

#[test]
fn answers_are_those_of_general_plans() {
    db().check_own_plans(OWN, "is there ");
}

#[test]
fn own_writes_orders_and_limits() {
    let mut db = db();
    let sql = "select no from o where id = 7 and exists (select 1 from l where l.id = o.id \
        and l.no = o.no) order by no";
    db.check(&[(sql, "1; 2; 4; 5; 6; 7")]);
    db.run(
        "begin; delete from l where id = 7 and no = 2; insert into o values (7, 9); \
            insert into l values (7, 9, 1)",
    );
    db.check(&[
        (sql, "1; 4; 5; 6; 7; 9"),
        (&format!("{sql} desc limit 2"), "9; 7"),
        (&format!("{sql} limit 2 offset 1"), "4; 5"),
        (
            "select no from o where id = 7 and not exists (select 1 from l where l.id = o.id \
            and l.no = o.no)",
            "2",
        ),
    ]);
    db.run("delete from c where id = 7");
    db.check(&[(sql, "")]);
    db.run("rollback");
    db.check(&[(sql, "1; 2; 4; 5; 6; 7")]);
}

#[test]
fn parameters_of_one_value_make_one_pass_and_others_do_not() {
    let mut db = db();
    let both = "o.placed from o where o.id = $1 and";
    let shapes = [
        format!("select no, {both} no in (select no from l where id = $2 and amount > 4)"),
        format!("select no, {both} exists (select 1 from l where id = $2 and no = o.no)"),
        format!(
            "select no, {both} not exists (select 1 from l where id = $2 and no = o.no \
            and amount > 7)"
        ),
        "select o.no, l.line from o left join l on l.id = $2 and l.no = o.no and l.amount > 2 \
            where o.id = $1"
            .into(),
    ];
    for (n, shape) in shapes.iter().enumerate() {
        db.run(&format!("prepare q{n}(int, int) as {shape}"));
        let mut found = 0;
        for (a, b) in [("7", "8"), ("7", "7"), ("8", "7"), ("8", "8"), ("7", "null")] {
            let values = format!("({a}, {b})");
            let plan = db.run(&format!("explain execute q{n}{values}")).join("\n");
            assert_eq!(plan.contains("same pass"), a == b, "{shape} {values}\n{plan}");
            let literal = shape.replace("$1", a).replace("$2", b);
            let mut general =
                db.run(&format!("select x.* from ({literal}) x, (values (row(1))) o (o)"));
            let mut own = db.run(&format!("execute q{n}{values}"));
            own.sort();
            general.sort();
            assert_eq!(own, general, "{shape} {values}\n{plan}");
            found += if a == b { own.len() } else { 0 };
        }
        assert!(found > 0, "{shape}");
    }
}

#[test]
fn what_is_more_than_that_is_general_and_errors_are_the_same() {
    let mut db = db();
    for sql in [
        "select no from o where id = 7 and no not in (select no from l where id = 7)",
        "select no from o where id = 7 and exists (select count(*) from l where l.id = 1000)",
        "select no from o where id = 7 and exists (select 1 from l where l.id = o.id limit 0)",
        "select no from o where id = 7 and (exists (select 1 from l where l.id = o.id) or no = 1)",
        "select no from o where id = 7 and exists (select 1 from l where l.amount = o.amount)",
        "select id from c where exists (select 1 from o where o.id = c.id)",
        "select no from o where id = 7 and exists (select 1 from l, p where l.id = o.id)",
        // The same for all rows around it.
        "select no from o where id = 7 and exists (select 1 from l where l.id = 7 and amount = 5)",
        "select no from o where id = 7 and exists (select 1 from l where l.id = o.id group by no)",
    ] {
        let plan = db.run(&format!("explain {sql}")).join("\n");
        assert!(plan.contains("general plan"), "{sql}\n{plan}");
    }
    for (sql, state) in [
        (
            "select no from o where id = 7 and exists (select nope from l where l.id = o.id)",
            "42703",
        ),
        ("select no from o where id = 7 and exists (select 1 from l where l.id = o.nope)", "42703"),
        ("select no from o where id = 7 and no in (select id, no from l where id = 7)", "42601"),
        ("select no from o where id = 7 and placed in (select no from l where id = 7)", "42883"),
        (
            "select no from o where id = 7 and exists (select 1 from l where l.id = o.id \
                and l.no = o.no and 10 / (amount - 9) > 0)",
            "22012",
        ),
        ("select l.no from o where id = 7 and exists (select 1 from l where l.id = o.id)", "42P01"),
    ] {
        let error = db.try_run(sql).expect_err(sql);
        assert_eq!(error.state().0, state, "{sql}: {error}");
    }
    db.check(&[(
        "select count(*) from o where id = 7 and no > 100 and exists (select 1 from l \
            where l.id = o.id and 10 / (amount - 9) > 0)",
        "0",
    )]);
}

#[test]
fn what_was_asked_for_is_validated() {
    let mut db = db();
    let mut other = db.another();
    db.run("begin");
    db.run(
        "select no from o where id = 7 and not exists (select 1 from l where l.id = o.id \
            and l.no = o.no and l.amount = 77)",
    );
    other.run("insert into l values (7, 4, 9, 0, 77)");
    db.run("insert into p values (100, 'there was none', 0)");
    assert_eq!(db.try_run("commit").expect_err("it was there").state().0, "40001");
}
