//! MERGE, where PostgreSQL cannot be asked: interleaved tables, many rows, a second session in the
//! way, EXPLAIN.

use crate::harness::Db;

fn families(customers: u32) -> Db {
    let mut db = Db::new();
    db.run(
        "create table customers (c int primary key, name text);
         create table orders (c int, o int, total int, primary key (c, o),
             index (total)) interleave in parent customers on delete cascade;
         create table feed (c int, o int, total int, gone bool)",
    );
    db.run(&format!(
        "insert into customers select g, 'c' || g from generate_series(1, {customers}) g;
         insert into orders select g, n, g * 10 + n
             from generate_series(1, {customers}) g, generate_series(1, 2) n"
    ));
    db
}

#[test]
fn parents_go_with_their_families_and_children_come() {
    let mut db = families(4);
    db.run(
        "merge into customers using (values (1, true), (2, false), (7, false)) f (c, gone)
             on customers.c = f.c
         when matched and gone then delete
         when matched then update set name = name || '*'
         when not matched then insert values (f.c, 'new')",
    );
    let names = "select c, name, (select count(*) from orders o where o.c = customers.c)
                 from customers order by c";
    assert_eq!(db.run(names), ["2|c2*|2", "3|c3|2", "4|c4|2", "7|new|0"]);
    db.run(
        "insert into feed values (2, 1, null, true), (2, 2, 5, false), (7, 1, 70, false);
         merge into orders o using feed f on o.c = f.c and o.o = f.o
         when matched and gone then delete
         when matched then update set total = f.total
         when not matched then insert (c, o, total) values (f.c, f.o, f.total)",
    );
    let orders = "select c, o, total from orders where c in (2, 7) order by c, o";
    assert_eq!(db.run(orders), ["2|2|5", "7|1|70"]);
    assert_eq!(db.run("select c from orders where total = 70"), ["7"]);
    // The key of a parent moves its family.
    db.run(
        "merge into customers using (select 2 as c) f on customers.c = f.c
         when matched then update set c = 20",
    );
    assert_eq!(db.run("select c, o, total from orders where c in (2, 20)"), ["20|2|5"]);
    let orphan = "merge into orders o using (select 99 as c) f on o.c = f.c
                  when not matched then insert values (f.c, 1, 1)";
    assert_eq!(db.try_run(orphan).unwrap_err().state().0, "23503");
    let twice = "merge into customers using (select c from orders) f on customers.c = f.c
                 when matched then delete";
    assert_eq!(db.try_run(twice).unwrap_err().state().0, "21000");
    assert_eq!(db.run("select count(*) from customers"), ["4"]);
}

#[test]
fn many_rows_in_batches() {
    let mut db = families(3_000);
    db.run(
        "insert into feed select g, 1 + g % 3, -g, g % 5 = 0 from generate_series(1, 3000) g;
         merge into orders o using feed f on o.c = f.c and o.o = f.o
         when matched and gone then delete
         when matched then update set total = f.total
         when not matched and not gone then insert values (f.c, f.o, f.total)",
    );
    let counts = "select count(*), count(*) filter (where total < 0),
                         count(*) filter (where o = 3) from orders";
    assert_eq!(db.run(counts), ["6400|2400|800"]);
    assert_eq!(db.run("select count(*) from orders where total between -100 and -1"), ["80"]);
}

#[test]
fn each_level_of_isolation() {
    for level in ["serializable", "repeatable read", "read committed"] {
        let mut db = families(2);
        let mut other = db.another();
        db.run(&format!("begin isolation level {level}; select count(*) from customers"));
        other.run("insert into customers values (5, 'other')");
        let sql = "merge into customers using (values (5)) f (c) on customers.c = f.c
                   when matched then update set name = 'merged'
                   when not matched then insert values (f.c, 'inserted')";
        let merged = db.try_run(sql).and_then(|_| db.try_run("commit"));
        let name = other.run("select name from customers where c = 5");
        match level {
            "read committed" => assert_eq!((merged.is_ok(), name), (true, vec!["merged".into()])),
            _ => {
                // What it read first says that there is no such row.
                assert_eq!(merged.unwrap_err().state().0, "40001", "{level}");
                assert_eq!(name, ["other"]);
            }
        }
    }
}

#[test]
fn explain_names_what_each_clause_does() {
    let mut db = families(2);
    let sql = "merge into orders o using feed f on o.c = f.c and o.o = f.o
               when matched and gone then delete when matched then update set total = f.total
               when not matched then insert values (f.c, f.o, f.total)";
    let plan = db.run(&format!("explain {sql}"));
    for part in
        ["Merge on orders", "  Delete on orders", "  Update on orders", "  Insert on orders"]
    {
        assert!(plan.iter().any(|line| line.starts_with(part)), "{part}: {plan:#?}");
    }
    db.run("insert into feed values (1, 1, 0, true)");
    let ran = db.run(&format!("explain analyze {sql}"));
    assert!(ran[0].contains("rows=1"), "{ran:#?}");
    assert_eq!(db.run("select count(*) from orders"), ["3"]);
}
