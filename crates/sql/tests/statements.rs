//! DDL, DML and own plans, by feature.

use crate::harness;

use crate::harness::{database, error, rows, run, session, state, tag};

#[test]
fn insert_select_update_delete() {
    let s = &mut session(&database());
    run(s, "create table t (id int primary key, name text not null default 'x', n numeric(6,2))");
    assert_eq!(tag(s, "insert into t values (1, 'a', 1.5), (2, 'b', null)"), "INSERT 0 2");
    assert_eq!(rows(s, "insert into t (id) values (3) returning id, name, n"), ["3|x|NULL"]);
    assert_eq!(rows(s, "select * from t order by id"), ["1|a|1.50", "2|b|NULL", "3|x|NULL"]);
    assert_eq!(rows(s, "select name from t where id = 2"), ["b"]);
    assert_eq!(rows(s, "select id from t where id in (3, 1) order by id desc"), ["3", "1"]);
    assert_eq!(rows(s, "select id + 1 as k from t where id > 1 order by id limit 1"), ["3"]);
    assert_eq!(
        rows(s, "select count(*), sum(id), max(name), avg(id) from t"),
        ["3|6|x|2.0000000000000000"]
    );
    assert_eq!(
        rows(s, "update t set name = name || '!' where id >= 2 returning name"),
        ["b!", "x!"]
    );
    assert_eq!(tag(s, "update t set id = id + 1"), "UPDATE 3");
    assert_eq!(tag(s, "delete from t where name like 'b%'"), "DELETE 1");
    assert_eq!(rows(s, "select id from t order by id"), ["2", "4"]);
    assert_eq!(tag(s, "delete from t"), "DELETE 2");
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
    assert_eq!(rows(s, "select 1, 'a' as b"), ["1|a"]);
}

#[test]
fn extremes_read_one_row() {
    let s = &mut session(&database());
    run(s, "create table t (a int, b int, c int, primary key (a, b desc)); create index on t (c)");
    run(s, "insert into t values (1, 1, 7), (1, 5, null), (2, 3, 9), (3, 8, 2)");
    for (sql, want) in [
        ("select min(a) from t", "1"),
        ("select max(a) from t where a < 3", "2"),
        ("select min(b) from t where a = 1", "1"),
        ("select max(b) from t where a = 1", "5"),
        ("select max(b) from t where a = 9", "NULL"),
        ("select max(c) from t", "9"),
        ("select min(b) from t", "1"),
        ("select min(b) from t where a = 1 and c is null", "5"),
    ] {
        assert_eq!(rows(s, sql), [want], "{sql}");
    }
    let plan = rows(s, "explain analyze select max(b) from t where a = 1").join("\n");
    assert!(plan.contains("first row of the key") && plan.contains("rows scanned: 1"), "{plan}");
}

#[test]
fn constraint_errors_are_postgres() {
    let s = &mut session(&database());
    run(s, "create table t (id int primary key, a int unique, b int not null check (b > 0))");
    run(s, "insert into t values (1, 1, 1)");
    let e = error(s, "insert into t values (1, 2, 1)");
    assert_eq!(e.message(), "duplicate key value violates unique constraint \"t_pkey\"");
    assert_eq!(e.detail(), Some("Key (id)=(1) already exists."));
    let e = error(s, "insert into t values (2, 1, 1)");
    assert_eq!(e.constraint(), Some("t_a_key"));
    let e = error(s, "insert into t values (2, 2, null)");
    assert_eq!(
        (e.state().0, e.message()),
        ("23502", "null value in column \"b\" of relation \"t\" violates not-null constraint")
    );
    assert_eq!(e.detail(), Some("Failing row contains (2, 2, null)."));
    let e = error(s, "insert into t values (2, 2, 0)");
    assert_eq!(e.message(), "new row for relation \"t\" violates check constraint \"t_b_check\"");
    run(s, "insert into t values (5, null, 1), (6, null, 1)");
    assert_eq!(state(s, "select nothing from t"), "42703");
    assert_eq!(state(s, "insert into missing values (1)"), "42P01");
    assert_eq!(state(s, "create table t (x int)"), "42P07");
}

#[test]
fn foreign_keys() {
    let s = &mut session(&database());
    run(s, "create table p (id int primary key, code text unique)");
    run(
        s,
        "create table c (id int primary key, p int references p on delete cascade on update cascade)",
    );
    run(s, "create table n (id int primary key, p int references p on delete set null)");
    run(s, "create table r (id int primary key, code text references p (code))");
    run(s, "insert into p values (1, 'a'), (2, 'b'), (3, 'c')");
    run(s, "insert into c values (1, 1), (2, 1), (3, 2), (4, null)");
    run(s, "insert into n values (1, 1), (2, 2)");
    run(s, "insert into r values (1, 'c')");
    let e = error(s, "insert into c values (9, 9)");
    assert_eq!(
        (e.message(), e.detail()),
        (
            "insert or update on table \"c\" violates foreign key constraint \"c_p_fkey\"",
            Some("Key (p)=(9) is not present in table \"p\".")
        )
    );
    let e = error(s, "delete from p where id = 3");
    assert_eq!(
        (e.message(), e.detail()),
        (
            "update or delete on table \"p\" violates foreign key constraint \"r_code_fkey\" on table \"r\"",
            Some("Key (code)=(c) is still referenced from table \"r\".")
        )
    );
    assert_eq!(tag(s, "delete from p where id = 1"), "DELETE 1");
    assert_eq!(rows(s, "select id from c order by id"), ["3", "4"]);
    assert_eq!(rows(s, "select id, p from n order by id"), ["1|NULL", "2|2"]);
    assert_eq!(state(s, "update p set id = 22 where id = 2"), "23503");
    run(s, "delete from n");
    run(s, "update p set id = 22 where id = 2");
    assert_eq!(rows(s, "select p from c where id = 3"), ["22"]);
    assert_eq!(state(s, "drop table p"), "2BP01");
    run(s, "drop table p cascade");
    run(s, "insert into c values (10, 99)");
    // A row may refer to a row of the same statement.
    run(s, "create table tree (id int primary key, up int references tree on delete cascade)");
    run(s, "insert into tree values (2, 1), (1, null), (3, 2)");
    assert_eq!(tag(s, "delete from tree where id = 1"), "DELETE 1");
    assert_eq!(rows(s, "select count(*) from tree"), ["0"]);
}

#[test]
fn on_conflict() {
    let s = &mut session(&database());
    run(s, "create table t (id int primary key, u int unique, n int default 0)");
    run(s, "insert into t values (1, 10, 1)");
    assert_eq!(
        tag(s, "insert into t values (1, 11, 5), (2, 20, 2) on conflict do nothing"),
        "INSERT 0 1"
    );
    let up = "insert into t values (1, 10, 7) on conflict (id) do update set n = t.n + excluded.n returning n";
    assert_eq!(rows(s, up), ["8"]);
    let up = "insert into t values (9, 10, 7) on conflict (u) do update set n = excluded.n where t.n < 3";
    assert_eq!(tag(s, up), "INSERT 0 0");
    assert_eq!(
        state(s, "insert into t values (5,50,1),(5,51,1) on conflict (id) do update set n = 1"),
        "21000"
    );
    assert_eq!(state(s, "insert into t values (5,50,1) on conflict (n) do nothing"), "42P10");
}

#[test]
fn interleaved_families_and_range_deletes() {
    let s = &mut session(&database());
    run(s, "create table customers (id text primary key, name text)");
    run(
        s,
        "create table orders (id text, o int, day int, primary key (id, o), index by_day (day)) \
            interleave in parent customers on delete cascade",
    );
    run(
        s,
        "create table lines (id text, o int, l int, item text, primary key (id, o, l), \
            unique index (item)) interleave in parent orders on delete cascade",
    );
    let e = error(s, "insert into orders values ('a', 1, 1)");
    assert_eq!(
        (e.state().0, e.detail()),
        ("23503", Some("Key (id)=(a) is not present in parent table \"customers\"."))
    );
    for c in ["a", "b", "c"] {
        run(s, &format!("insert into customers values ('{c}', 'n')"));
        run(s, &format!("insert into orders select '{c}', 1, 5"));
        run(s, &format!("insert into orders values ('{c}', 2, 6), ('{c}', 3, 7)"));
        run(s, &format!("insert into lines values ('{c}', 1, 1, '{c}x'), ('{c}', 2, 1, '{c}y')"));
    }
    assert_eq!(rows(s, "select count(*) from lines"), ["6"]);
    assert_eq!(
        rows(s, "select id, o from orders where day = 6 order by id"),
        ["a|2", "b|2", "c|2"]
    );
    let join = "select c.id, o.o, l.item from customers c join orders o on o.id = c.id \
                left join lines l on l.id = o.id and l.o = o.o where c.id = 'a' order by o.o";
    assert_eq!(rows(s, join), ["a|1|ax", "a|2|ay", "a|3|NULL"]);
    let plan = rows(s, &format!("explain {join}")).join("\n");
    assert!(plan.contains("family read of orders (same pass)"), "{plan}");
    assert!(plan.contains("family read of lines (left, same pass)"), "{plan}");
    let plan = rows(s, "explain delete from customers where id = 'a'").join("\n");
    assert!(plan.contains("range delete: customers, orders, lines"), "{plan}");
    assert_eq!(tag(s, "delete from customers where id = 'a'"), "DELETE 1");
    assert_eq!(rows(s, "select count(*) from orders"), ["6"]);
    // The dead entries of the global indexes are not seen, and do not forbid the values.
    assert_eq!(rows(s, "select id, o from orders where day = 6 order by id"), ["b|2", "c|2"]);
    run(s, "insert into customers values ('a', 'again')");
    run(s, "insert into orders values ('a', 1, 6)");
    run(s, "insert into lines values ('a', 1, 9, 'ax')");
    assert_eq!(state(s, "insert into lines values ('a', 1, 10, 'ax')"), "23505");
    assert_eq!(
        rows(s, "select id, o from orders where day = 6 order by id"),
        ["a|1", "b|2", "c|2"]
    );
    // Inner table: orders 2.. of b with their lines.
    let plan = rows(s, "explain delete from orders where id = 'b' and o >= 2").join("\n");
    assert!(plan.contains("range delete"), "{plan}");
    assert_eq!(tag(s, "delete from orders where id = 'b' and o >= 2"), "DELETE 2");
    assert_eq!(rows(s, "select count(*) from lines where id = 'b'"), ["1"]);
    let plan = rows(s, "explain delete from orders where day = 5").join("\n");
    assert!(plan.contains("one tombstone for each row"), "{plan}");
    assert_eq!(tag(s, "delete from orders where day = 5"), "DELETE 2");
    assert_eq!(tag(s, "delete from customers"), "DELETE 3");
    assert_eq!(rows(s, "select count(*) from lines"), ["0"]);
}

#[test]
fn no_action_children_stop_a_delete() {
    let s = &mut session(&database());
    run(s, "create table p (id int primary key)");
    run(s, "create table c (id int, n int, primary key (id, n)) interleave in parent p");
    run(s, "create table l (id int, n int, primary key (id, n)) interleave in p");
    run(
        s,
        "insert into p values (1), (2); insert into c values (1, 1); insert into l values (2, 1), (9, 9)",
    );
    assert_eq!(state(s, "delete from p where id = 1"), "23503");
    run(s, "begin; delete from c where id = 1; delete from p where id = 1; commit");
    // A child for locality only survives its parent.
    assert_eq!(tag(s, "delete from p where id = 2"), "DELETE 1");
    assert_eq!(rows(s, "select id, n from l order by id"), ["2|1", "9|9"]);
    run(s, "alter table c set on delete cascade");
    run(s, "insert into p values (5); insert into c values (5, 5)");
    assert_eq!(tag(s, "delete from p where id = 5"), "DELETE 1");
    assert_eq!(rows(s, "select count(*) from c"), ["0"]);
}

#[test]
fn transactions() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "create table t (id int primary key, n int)");
    run(a, "begin; insert into t values (1, 1); savepoint s; insert into t values (2, 2)");
    assert_eq!(rows(b, "select count(*) from t"), ["0"]);
    run(a, "rollback to s; insert into t values (3, 3)");
    assert_eq!(state(a, "insert into t values (3, 3)"), "23505");
    assert_eq!(a.tx_status(), b'E');
    assert_eq!(state(a, "select 1"), "25P02");
    assert_eq!(tag(a, "commit"), "ROLLBACK");
    assert_eq!(rows(a, "select count(*) from t"), ["0"]);
    run(a, "begin; create table u (id int primary key); insert into u values (1)");
    assert_eq!(state(b, "select * from u"), "0A000");
    run(a, "rollback");
    assert_eq!(state(a, "insert into u values (1)"), "42P01");
    // Serializable: write skew is refused.
    run(a, "insert into t values (1, 0), (2, 0)");
    run(a, "begin; select n from t where id = 1; update t set n = 1 where id = 2");
    run(b, "begin; select n from t where id = 2; update t set n = 1 where id = 1");
    let (x, y) = (harness::try_run(a, "commit", &[]), harness::try_run(b, "commit", &[]));
    assert!(x.is_err() || y.is_err(), "write skew went through");
    run(a, "rollback");
    run(b, "rollback");
    assert_eq!(rows(a, "show transaction isolation level"), ["serializable"]);
    run(a, "begin isolation level read committed read only");
    assert_eq!(state(a, "delete from t"), "25006");
    run(a, "rollback");
    assert_eq!(state(a, "select count(*) from t for update"), "0A000");
    assert_eq!(rows(a, "select id from t where id = 1 for update"), ["1"]);
}

#[test]
fn ddl_changes() {
    let s = &mut session(&database());
    run(s, "create table t (id serial primary key, a int); insert into t (a) values (1), (2)");
    assert_eq!(rows(s, "select id, a from t order by id"), ["1|1", "2|2"]);
    run(s, "alter table t add column b text default 'd', add column c int");
    run(s, "insert into t (a) values (3)");
    assert_eq!(rows(s, "select b, c from t order by id"), ["d|NULL", "d|NULL", "d|NULL"]);
    run(s, "alter table t alter b drop default; insert into t (a) values (4)");
    assert_eq!(rows(s, "select b from t where a = 4"), ["NULL"]);
    assert_eq!(rows(s, "select b from t where a = 1"), ["d"]);
    assert_eq!(state(s, "alter table t alter c set not null"), "23502");
    run(s, "alter table t drop column b; alter table t rename column c to cc");
    run(s, "create unique index t_a on t (a)");
    assert_eq!(state(s, "insert into t (a) values (4)"), "23505");
    assert_eq!(rows(s, "select id from t where a = 3"), ["3"]);
    run(s, "alter table t add constraint pos check (a > 0)");
    assert_eq!(state(s, "alter table t add check (a > 1)"), "23514");
    run(s, "alter table t alter a type bigint; alter table t rename to t2");
    assert_eq!(rows(s, "select a from t2 order by a desc limit 2"), ["4", "3"]);
    run(s, "truncate t2 restart identity; insert into t2 (a) values (7)");
    assert_eq!(rows(s, "select id, a from t2"), ["1|7"]);
    run(s, "create table plain (x int, y text); insert into plain values (2, 'b'), (1, 'a')");
    run(s, "alter table only plain add constraint plain_pkey primary key (x)");
    assert_eq!(rows(s, "select x, y from plain where x = 2"), ["2|b"]);
    assert_eq!(state(s, "insert into plain values (1, 'z')"), "23505");
    run(s, "create sequence q start 5 increment 2");
    assert_eq!(rows(s, "select nextval('q')"), ["5"]);
    assert_eq!(rows(s, "select nextval('q')"), ["7"]);
    run(
        s,
        "create schema other; create table other.t (id int primary key); drop schema other cascade",
    );
    run(s, "drop table t2, plain");
    assert_eq!(rows(s, "show tables").len(), 0);
}

#[test]
fn show_create_round_trips() {
    let s = &mut session(&database());
    run(s, "create table p (a text, b int, primary key (a, b desc))");
    run(
        s,
        "create table c (x text, y int, z int generated always as identity, v numeric(5,1) default 1.5, \
            constraint pk primary key (x, y desc, z), unique (v), check (v > 0), index (x, y desc, v) include (z2) interleave in p, z2 int) \
            interleave in parent p (x, y) on delete cascade",
    );
    let one = rows(s, "show create table c")[0].split_once('|').unwrap().1.to_string();
    run(s, "drop table c");
    run(s, &one);
    let two = rows(s, "show create table c")[0].split_once('|').unwrap().1.to_string();
    assert_eq!(one, two);
}

/// What asyncpg's pool says before it lends a connection again.
#[test]
fn a_pool_can_reset_its_connections() {
    let s = &mut session(&database());
    run(s, "set search_path = elsewhere");
    assert_eq!(rows(s, "select pg_advisory_unlock_all()"), [""]);
    assert_eq!(tag(s, "close all"), "CLOSE CURSOR ALL");
    assert_eq!(tag(s, "unlisten *"), "UNLISTEN");
    run(s, "reset all");
    assert_eq!(rows(s, "show search_path"), ["\"$user\", public"]);
    // One with a name cannot be there.
    assert_eq!(state(s, "close c"), "34000");
    assert_eq!(state(s, "move 5 from c"), "34000");
}

#[test]
fn a_node_alone_has_no_ranges_to_show() {
    let s = &mut session(&database());
    run(s, "create table t (id int primary key)");
    for sql in ["show ranges", "show ranges from table t", "SHOW RANGES IN t"] {
        assert_eq!(state(s, sql), "0A000", "{sql}");
    }
    assert!(error(s, "show ranges").message().contains("alone"));
    assert_eq!(state(s, "show ranges from table"), "42601");
    assert_eq!(state(s, "show ranges of t"), "42601");
    assert_eq!(state(s, "alter table t split at values (1)"), "0A000");
    assert_eq!(state(s, "alter table u split at values (1)"), "42P01");
    assert_eq!(tag(s, "alter table if exists u split at values (1)"), "ALTER TABLE");
    assert_eq!(state(s, "alter table t split at (1)"), "42601");
    assert_eq!(state(s, "alter table t split at values ()"), "42601");
    assert_eq!(state(s, "alter table t split at values (1),"), "42601");
}
