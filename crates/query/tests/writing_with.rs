//! WITH over statements that write, where PostgreSQL cannot be asked: interleaved tables, many rows,
//! a second session in the way, EXPLAIN.

use crate::harness::Db;

/// A family of three tables: customers, orders, lines.
fn families(customers: u32) -> Db {
    let mut db = Db::new();
    db.run(
        "create table customers (c int primary key, name text);
         create table orders (c int, o int, total int, primary key (c, o),
             index (total)) interleave in parent customers on delete cascade;
         create table lines (c int, o int, l int, primary key (c, o, l))
             interleave in parent orders on delete cascade",
    );
    db.run(&format!(
        "insert into customers select g, 'c' || g from generate_series(1, {customers}) g;
         insert into orders select g, n, g * 10 + n
             from generate_series(1, {customers}) g, generate_series(1, 3) n;
         insert into lines select c, o, n from orders, generate_series(1, 2) n"
    ));
    db
}

const COUNTS: &str = "select (select count(*) from customers), (select count(*) from orders), \
                      (select count(*) from lines)";

#[test]
fn a_family_goes_and_its_children_are_still_seen() {
    let mut db = families(4);
    let sql = "with gone as (delete from customers where c = 2 returning c, name),
                    below as (delete from orders where c = 2 returning o),
                    deeper as (delete from lines where c = 2 and o = 1 returning l)
               select (select count(*) from gone), (select count(*) from below),
                      (select count(*) from deeper), (select count(*) from lines where c = 2)";
    assert_eq!(db.run(sql), ["1|3|2|6"]);
    assert_eq!(db.run(COUNTS), ["3|9|18"]);
    assert_eq!(db.run("select count(*) from orders where total between 20 and 29"), ["0"]);
}

#[test]
fn children_are_written_beside_their_parents() {
    let mut db = families(2);
    let sql = "with p as (insert into customers values (7, 'seven') returning c),
                    o as (insert into orders select c, 1, 70 from p returning c, o)
               insert into lines select c, o, n from o, generate_series(1, 3) n returning l";
    assert_eq!(db.run(sql), ["1", "2", "3"]);
    assert_eq!(db.run(COUNTS), ["3|7|15"]);
    let moved = "with old as (delete from customers where c = 7 returning c, name)
                 insert into customers select c + 1, name from old returning c, name";
    assert_eq!(db.run(moved), ["8|seven"]);
    assert_eq!(db.run(COUNTS), ["3|6|12"]);
    // What the cascade has taken cannot be updated as well: refused, and nothing has happened.
    let both = "with p as (delete from customers where c = 1)
                update orders set total = 0 where c = 1";
    let e = db.try_run(both).unwrap_err();
    assert_eq!(e.state().0, "0A000");
    assert!(e.hint().is_some(), "{e}");
    assert_eq!(db.run(COUNTS), ["3|6|12"]);
    assert_eq!(db.run("select total from orders where c = 1 order by o"), ["11", "12", "13"]);
}

#[test]
fn many_rows_in_batches() {
    let mut db = families(3_000);
    let sql = "with gone as (delete from customers where c % 3 = 0 returning c),
                    up as (update orders set total = -total where c % 3 = 1 returning c, o, total),
                    copied as (insert into orders select c, o + 10, total from up returning total)
               select (select count(*) from gone), (select count(*) from up),
                      (select count(*) from copied where total < 0),
                      (select count(*) from orders), (select min(total) from orders)";
    assert_eq!(db.run(sql), ["1000|3000|3000|9000|11"]);
    assert_eq!(db.run(COUNTS), ["2000|9000|12000"]);
    assert_eq!(db.run("select count(*) from orders where total < 0"), ["6000"]);
}

#[test]
fn each_level_of_isolation_and_a_retry() {
    for level in ["serializable", "repeatable read", "read committed"] {
        let mut db = families(3);
        let mut other = db.another();
        db.run(&format!("begin isolation level {level}; select count(*) from orders where c = 9"));
        other.run("update orders set total = 500 where c = 1 and o = 1");
        let sql = "with gone as (delete from orders where c = 1 and total < 100 returning o)
                   update customers set name = 'left' where c in (select c from orders
                   where total >= 100) returning c";
        match db.try_run(sql) {
            // The others look at what was there when the block, or the statement, began.
            Ok(rows) => {
                let expected: &[&str] = if level == "repeatable read" { &[] } else { &["1"] };
                assert_eq!(rows, expected, "{level}");
                db.run("commit");
                let left = if level == "repeatable read" { "0" } else { "1" };
                assert_eq!(db.run("select count(*) from orders where c = 1"), [left], "{level}");
            }
            Err(e) => {
                assert_eq!((e.state().0, level), ("40001", "repeatable read"));
                db.run("rollback");
                assert_eq!(db.run("select count(*) from orders where c = 1"), ["3"]);
            }
        }
    }
}

#[test]
fn explain_shows_the_parts_and_runs_them_only_when_asked() {
    let mut db = families(2);
    let sql = "with gone as (delete from orders where c = 1 returning o) select count(*) from gone";
    let plan = db.run(&format!("explain {sql}"));
    let has = |what: &str| plan.iter().any(|line| line.contains(what));
    assert!(has("CTE gone") && has("Delete on orders"), "{plan:#?}");
    assert_eq!(db.run(COUNTS), ["2|6|12"]);
    let ran = db.run(&format!("explain analyze {sql}"));
    assert!(ran[0].contains("actual"), "{ran:#?}");
    assert_eq!(db.run(COUNTS), ["2|3|6"]);
}

#[test]
fn a_name_of_with_hides_a_table_for_reading_only() {
    let mut db = families(2);
    let sql = "with orders as (delete from lines where c = 1 returning l)
               delete from orders using orders as o2 where orders.o = o2.l and orders.c = 1
               returning orders.o";
    assert_eq!(db.run(sql), ["1", "2"]);
    assert_eq!(db.run(COUNTS), ["2|4|6"]);
}
