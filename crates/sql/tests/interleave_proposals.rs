//! SHOW INTERLEAVE PROPOSALS: what is proposed can be done as it says, and changes no answer.

use crate::harness::{database, rows, run, session};
use braid_sql::Session;

/// Lines as `child in parent: proposal`, with remarks if there are any.
fn proposed(s: &mut Session) -> Vec<String> {
    let told = run(s, "show interleave proposals").rows;
    let line = |r: Vec<String>| match &*r[11] {
        "NULL" => format!("{} in {}: {}", r[0], r[1], r[2]),
        _ => format!("{} in {}: {} ({})", r[0], r[1], r[2], r[11]),
    };
    told.into_iter().map(line).collect()
}

fn statement(s: &mut Session, child: &str, parent: &str) -> String {
    let told = run(s, "show interleave proposals").rows;
    let found = told.into_iter().find(|r| r[0] == child && r[1] == parent);
    found.unwrap_or_else(|| panic!("{child} in {parent} is not proposed"))[3].clone()
}

const SHOP: &str = "
    create table customers (id int primary key, name text);
    create table countries (code text primary key);
    create table orders (id int primary key, customer int not null references customers on delete cascade,
      country text references countries);
    create index orders_customer on orders (customer);
    create table lines (order_id int references orders on delete cascade, n int, what text, primary key (order_id, n));
    create table roles (id int primary key);
    create table customer_roles (customer int references customers, role int references roles, primary key (customer, role));";

#[test]
fn foreign_keys_and_primary_keys_tell_what_could_lie_in_what() {
    let s = &mut session(&database());
    run(s, SHOP);
    run(s, "insert into customers values (1, 'a'), (2, 'b'), (3, 'c'); insert into countries values ('x');
        insert into orders values (10, 1, 'x'), (11, 1, null), (12, 2, 'x');
        insert into lines values (10, 1, 'p'), (10, 2, 'q'), (10, 3, 'r'), (12, 1, 's');
        insert into roles values (5); insert into customer_roles values (1, 5), (3, 5);
        analyze");
    assert_eq!(
        proposed(s),
        [
            "orders in countries: no (column country may be NULL: such rows lie in none)",
            "customer_roles in customers: ready",
            "orders in customers: new key (lines cannot lie in orders then, unless it gets customer in front of its own key)",
            "customer_roles in roles: alternative (customer_roles lies better in customers)",
            "lines in orders: ready",
        ]
    );
    let told = run(s, "show interleave proposals from lines").rows;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0][3], "ALTER TABLE lines SET INTERLEAVE IN PARENT orders (order_id)");
    // rows, rows of the parent, on average, at most
    assert_eq!(told[0][4..9], ["lines_order_id_fkey", "4", "3", "1.3", "3"]);
    assert!(told[0][10].contains("one range delete"), "{}", told[0][10]);
    assert_eq!(
        statement(s, "orders", "customers"),
        "ALTER TABLE orders ALTER PRIMARY KEY USING COLUMNS (customer, id) INTERLEAVE IN PARENT customers (customer)"
    );
    let told = run(s, "show interleave proposals from orders").rows;
    let changes = &told.iter().find(|r| r[1] == "customers").unwrap()[10];
    assert!(changes.contains("index orders_customer is not needed"), "{changes}");
    assert!(changes.contains("(id) becomes a unique index"), "{changes}");
}

/// What the tables hold, and what a delete takes along.
fn answers(s: &mut Session) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    for table in ["customers", "orders", "lines", "customer_roles"] {
        let mut all = rows(s, &format!("select * from {table}"));
        all.sort();
        out.push(all);
    }
    run(s, "begin; delete from customer_roles; delete from customers where id = 1");
    for table in ["orders", "lines"] {
        let mut all = rows(s, &format!("select * from {table}"));
        all.sort();
        out.push(all);
    }
    run(s, "rollback");
    out
}

#[test]
fn what_is_proposed_can_be_done_and_changes_no_answer() {
    for chosen in [
        &[("lines", "orders"), ("customer_roles", "customers")][..],
        &[("orders", "customers"), ("customer_roles", "customers")],
        &[("customer_roles", "roles")],
    ] {
        for block in [false, true] {
            let s = &mut session(&database());
            run(s, SHOP);
            run(s, "insert into customers values (1, 'a'), (2, 'b'); insert into countries values ('x');
                insert into orders values (10, 1, 'x'), (11, 1, null), (12, 2, 'x');
                insert into lines values (10, 1, 'p'), (10, 2, 'q'), (12, 1, 's');
                insert into roles values (5); insert into customer_roles values (1, 5)");
            let before = answers(s);
            if block {
                run(s, "begin");
            }
            for (child, parent) in chosen {
                let sql = statement(s, child, parent);
                run(s, &sql);
            }
            if block {
                run(s, "commit");
            }
            for (child, parent) in chosen {
                let told = run(s, &format!("show interleave proposals from {child}")).rows;
                let there = told.iter().find(|r| r[1] == *parent).unwrap();
                assert_eq!((&*there[2], &*there[3]), ("done", "NULL"), "{there:?}");
            }
            assert_eq!(answers(s), before, "{chosen:?}");
        }
    }
}

#[test]
fn what_cannot_be_is_told_with_the_reason() {
    let s = &mut session(&database());
    run(s, "create table p (a int primary key, u int unique not null, b bigint unique not null);
        create table self (id int primary key, boss int not null references self);
        create table unkeyed (p int not null references p);
        create table by_unique (u int references p (u), n int, primary key (u, n));
        create table survivor (p int not null references p on delete set null, n int primary key);
        create table pair (a int, b int, primary key (a, b desc));
        create table swapped (b int, a int, n int, primary key (a, b, n), foreign key (b, a) references pair (b, a));
        create table named (a int, n int, primary key (a, n));
        create table ring1 (id int primary key, other int not null);
        create table ring2 (id int primary key, other int not null references ring1);
        alter table ring1 add foreign key (other) references ring2");
    let told = proposed(s);
    for wanted in [
        "self in self: no (rows that refer to rows of their own table)",
        "unkeyed in p: no (unkeyed has no primary key)",
        "by_unique in p: no (the foreign key refers to (u), and the primary key of p is (a))",
        "survivor in p: no (ON DELETE SET NULL: rows outlive the one that they refer to)",
        "named in p: ready (only the columns' names say so: there is no foreign key; ANALYZE named tells how many rows there are)",
    ] {
        assert!(told.iter().any(|line| line == wanted), "{wanted}\nis not in {told:#?}");
    }
    // The directions differ: only another key can do it.
    let sql = statement(s, "swapped", "pair");
    assert!(sql.contains("USING COLUMNS (a, b DESC, n)"), "{sql}");
    run(s, "insert into pair values (1, 2); insert into swapped values (2, 1, 3)");
    run(s, &sql);
    assert_eq!(rows(s, "select * from swapped"), ["2|1|3"]);
    let circle: Vec<&String> = told.iter().filter(|line| line.contains("a circle")).collect();
    assert_eq!(circle.len(), 1, "{told:#?}");
}
