//! GROUP BY and DISTINCT of few rows are own plans; the general plan of the same query, which a
//! value of rows in FROM makes it, gives the same answer.

use crate::harness::Db;

fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "create table c (id int primary key, city text);
         create table o (id int, no int, placed date, state text, v numeric(10,2), j json,
             primary key (id, no)) interleave in parent c on delete cascade;
         create table l (id int, no int, line int, product int, amount int,
             primary key (id, no, line)) interleave in parent o on delete cascade;
         create index l_product on l (product);
         insert into c select i, 'city ' || i % 3 from generate_series(1, 40) g(i);
         insert into o select i, k, date '2026-01-01' + (i * k) % 5,
             case when k % 4 = 0 then null else 'state ' || k % 3 end,
             case k % 3 when 0 then 1.5 when 1 then 1.50 end, '{}'
             from generate_series(1, 40) g(i), generate_series(1, 8) h(k) where (i + k) % 5 <> 0;
         insert into l select i, k, n, (i * 7 + k * 3 + n) % 20, (i + k + n) % 10
             from generate_series(1, 40) g(i), generate_series(1, 8) h(k), generate_series(1, 4) m(n)
             where (i + k) % 5 <> 0 and (k + n) % 3 <> 0;
         analyze",
    );
    db
}

const GROUPED: &[&str] = &[
    "select state, count(*) from o where id = 7 group by state",
    "select state, count(distinct v), sum(distinct no) from o where id in (7, 8) group by state",
    "select state, percentile_disc(0.5) within group (order by no) from o where id = 7 group by 1",
    "select distinct state from o where id = 7",
    "select distinct state, v from o where id between 3 and 5",
    "select distinct * from c where id < 10",
    "select v, count(*), min(placed), max(no) from o where id in (3, 9, 11) group by v",
    "select o.no, o.placed, count(*), sum(l.amount) from o join l on l.id = o.id and l.no = o.no \
        where o.id = 7 group by o.no, o.placed",
    "select c.city, count(o.no), count(*) from c left join o on o.id = c.id where c.id < 9 \
        group by c.city",
    "select c.city, sum(l.amount), avg(l.amount) from c join o on o.id = c.id \
        join l on l.id = o.id and l.no = o.no where c.id = 12 group by 1",
    "select amount % 3 as m, count(*) from l where id = 8 group by amount % 3",
    "select product, max(amount) from l where product between 3 and 5 group by product",
    "select count(*), state from o where id = 7 group by state, placed",
    "select id, id + 1 as next, id from c where id in (4, 5) group by id, id + 1",
    "select state, count(*) from o where id = 1000 group by state",
    "select state is null, bool_or(no > 3) from o where id = 6 and no > 1 group by state is null",
];

#[test]
fn groups_are_those_of_general_plans() {
    let mut db = db();
    for sql in GROUPED {
        let plan = db.run(&format!("explain {sql}")).join("\n");
        assert!(plan.contains("group: ") && !plan.contains("general plan"), "{sql}\n{plan}");
        let general = format!("select x.* from ({sql}) x, (values (row(1))) o (o)");
        assert!(db.run(&format!("explain {general}")).join("\n").contains("general plan"));
        let (mut own, mut other) = (db.run(sql), db.run(&general));
        own.sort();
        other.sort();
        // Which form of an equal number is shown is nobody's promise.
        let plain = |rows: &[String]| rows.join("\n").replace("1.50", "1.5");
        assert_eq!(plain(&own), plain(&other), "{sql}");
    }
}

#[test]
fn groups_are_sorted_and_cut() {
    let mut db = db();
    db.check(&[
        ("select state, count(*) from o where id = 7 group by state order by 2 desc, 1", {
            "state 1|2; state 2|2; state 0|1; |1"
        }),
        ("select state, count(*) as n from o where id = 7 group by state order by state", {
            "state 0|1; state 1|2; state 2|2; |1"
        }),
        (
            "select state, count(*) as n from o where id = 7 group by state \
             order by state nulls first limit 2",
            "|1; state 0|1",
        ),
        (
            "select state, count(*) as n from o where id = 7 group by state \
             order by count(*) desc, state offset 1 limit 2",
            "state 2|2; state 0|1",
        ),
        ("select distinct state from o where id = 7 order by state desc nulls last limit 1", {
            "state 2"
        }),
        ("select distinct v from o where id in (7, 8) and v is not null", "1.50"),
        ("select no from o where id = 7 group by no limit 0", ""),
        // An aggregate without rows, and one with groups without rows.
        ("select count(*) from o where id = 1000", "0"),
        ("select count(*) from o where id = 1000 group by id", ""),
    ]);
}

#[test]
fn what_is_more_than_that_is_general() {
    let mut db = db();
    for sql in [
        "select state from o where id = 7 group by state having count(distinct (no, id)) > 1",
        "select state as s, count(*) from o where id = 7 group by s",
        "select state, array_agg(distinct no order by no) from o where id = 7 group by state",
        "select state, count(*) over () from o where id = 7 group by state",
        "select state from o where id = 7 group by rollup (state)",
        "select distinct state from o where id = 7 order by state || 'x', state",
        "select c.city, count(*) from c join o on o.id = c.id group by c.city",
    ] {
        let found = db.try_run(&format!("explain {sql}"));
        if let Ok(plan) = found {
            assert!(plan.join("\n").contains("general plan"), "{sql}\n{}", plan.join("\n"));
        }
    }
    for (sql, state) in [
        ("select state, no from o where id = 7 group by state", "42803"),
        ("select distinct state from o where id = 7 order by no", "42P10"),
        ("select j from o where id = 7 group by j", "42883"),
        ("select distinct j from o where id = 7", "42883"),
        ("select state, count(*) from o where id = 7 group by 3", "42P10"),
        ("select state, count(*) from o where id = 7 group by state order by 3", "42P10"),
        ("select state, count(*) from o where id = 7 group by state for update", "0A000"),
        ("select distinct state from o where id = 7 for update", "0A000"),
        ("select count(*) from o where id = 7 group by count(*)", "42803"),
        ("select sum(10 / (no - 2)) from o where id = 7 group by state", "22012"),
    ] {
        let error = db.try_run(sql).expect_err(sql);
        assert_eq!(error.state().0, state, "{sql}: {error}");
    }
}

#[test]
fn groups_with_parameters_are_planned_once_and_are_bounded() {
    let mut db = db();
    for id in 1..6 {
        let own = db.run(&format!("select state, count(*) from o where id = {id} group by state"));
        let general = db.run(&format!(
            "select * from (select state, count(*) from o where id = {id} group by state) x"
        ));
        let sorted = |mut rows: Vec<String>| {
            rows.sort();
            rows
        };
        assert_eq!(sorted(own), sorted(general));
    }
    db.run("set statement_mem = '64kB'");
    let wide = "select distinct repeat(id || '-' || no, 2000) from o where id between 1 and 30";
    assert!(db.run(&format!("explain {wide}")).join("\n").contains("group: "));
    assert_eq!(db.try_run(wide).expect_err("too much").state().0, "53200");
}
