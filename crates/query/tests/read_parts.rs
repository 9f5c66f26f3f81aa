//! What a SERIALIZABLE block has read of a row by its key is no more than the columns that its
//! statement looked at: who changes others does not get in its way.

use crate::harness::Db;

fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "create table w (id int primary key, name text, tax numeric(4,4), ytd numeric(12,2));
         create table d (w int, id int, name text, next int, primary key (w, id))
             interleave in parent w (w) on delete cascade;
         create table log (id int primary key, what text);
         create index on w (name) include (tax);
         insert into w select i, 'w' || i, 0.1, 0 from generate_series(1, 5) g(i);
         insert into d select 1 + i % 5, i, 'd' || i, 1 from generate_series(1, 20) g(i)",
    );
    db
}

/// Whether a block that reads, writes elsewhere and commits gets along with what another session
/// does in between.
fn goes_well(read: &str, between: &str) -> bool {
    let mut db = db();
    let mut other = db.another();
    db.run("begin isolation level serializable");
    db.run(read);
    other.run(between);
    db.run("insert into log values (1, 'done')");
    match db.try_run("commit") {
        Ok(_) => true,
        Err(e) => {
            assert_eq!(e.state().0, "40001", "{read} / {between}: {e}");
            false
        }
    }
}

#[test]
fn columns_that_nobody_looked_at_may_change() {
    for (read, between) in [
        ("select tax from w where id = 1", "update w set ytd = ytd + 5 where id = 1"),
        ("select tax from w where id in (1, 2, 9)", "update w set ytd = 7 where id < 3"),
        ("select 1 from w where id = 1", "update w set tax = 0.2, name = null where id = 1"),
        ("select count(*) from w where id = 1", "update w set name = 'x' where id = 1"),
        ("select name from w where id = 1 and tax > 0", "update w set ytd = 1 where id = 1"),
        (
            "select w.tax, d.next from w join d on d.w = w.id where w.id = 1 and d.id = 5",
            "update w set ytd = 1 where id = 1; update d set name = 'y' where w = 1 and id = 5",
        ),
        ("select exists (select 1 from w where id = 3)", "update w set ytd = 1 where id = 1"),
        // There and back.
        (
            "select tax from w where id = 1",
            "update w set tax = 0.3 where id = 1; update w set tax = 0.1 where id = 1",
        ),
        (
            "select tax from w where id = 1",
            "delete from w where id = 1; insert into w values (1, 'new', 0.1, 9)",
        ),
        ("select tax from w where id = 9", "insert into w values (9); delete from w where id = 9"),
    ] {
        assert!(goes_well(read, between), "{read} / {between}");
    }
}

#[test]
fn what_was_looked_at_may_not() {
    for (read, between) in [
        ("select tax from w where id = 1", "update w set tax = 0.2 where id = 1"),
        ("select tax from w where id = 1", "update w set tax = null where id = 1"),
        ("select tax from w where id = 1", "delete from w where id = 1"),
        ("select tax from w where id in (1, 2)", "update w set tax = 0.3 where id = 2"),
        ("select 1 from w where id = 9", "insert into w values (9)"),
        ("select 1 from w where id = 1", "delete from w"),
        ("select name from w where id = 1 and tax > 0", "update w set tax = 0.4 where id = 1"),
        ("select name from w where id = 1 and tax > 5", "update w set tax = 0.4 where id = 1"),
        ("select * from w where id = 1", "update w set ytd = 1 where id = 1"),
        ("select w from w where id = 1", "update w set ytd = 1 where id = 1"),
        ("select name from w where id = 1 order by ytd", "update w set ytd = 1 where id = 1"),
        ("select sum(ytd) from w where id = 1", "update w set ytd = 1 where id = 1"),
        (
            "select (select ytd from w where w.id = d.w) from d where w = 1 and id = 5",
            "update w set ytd = 1 where id = 1",
        ),
        (
            "select tax from w where id = 1; select ytd from w where id = 1",
            "update w set ytd = 1 where id = 1",
        ),
        (
            "select ytd from w where id = 1; select tax from w where id = 1",
            "update w set ytd = 1 where id = 1",
        ),
    ] {
        assert!(!goes_well(read, between), "{read} / {between}");
    }
}

/// A column that rows do not have yet has its default in them.
#[test]
fn columns_that_came_later() {
    let mut db = db();
    db.run("alter table w add column zone text default 'here'");
    let mut other = db.another();
    for (between, goes) in [
        ("update w set zone = null where id = 2", false),
        ("update w set ytd = 1 where id = 2", true),
        ("update w set zone = 'there' where id = 2", false),
        ("update w set ytd = 2 where id = 2", true),
    ] {
        db.run("begin isolation level serializable");
        db.run("select zone from w where id = 2");
        other.run(between);
        db.run("insert into log values (1, 'x')");
        assert_eq!(db.try_run("commit").is_ok(), goes, "{between}");
        db.run("delete from log");
    }
}

/// The block's view moves when a statement meets a newer row: what it has read by columns before
/// is checked by columns then, and at the end again.
#[test]
fn blocks_whose_view_moves() {
    let mut db = db();
    let mut other = db.another();
    for (between, goes) in [
        ("update w set ytd = ytd + 1 where id = 1", true),
        ("update w set tax = tax + 0.1 where id = 1", false),
    ] {
        db.run("begin isolation level serializable");
        db.run("select tax from w where id = 1");
        other.run(between);
        other.run("update d set next = next + 1 where w = 1 and id = 5");
        let moved =
            db.try_run("update d set next = next + 1 where w = 1 and id = 5 returning next");
        assert_eq!(moved.is_ok(), goes, "{between}: {moved:?}");
        if goes {
            other.run("update w set ytd = ytd + 1 where id = 1");
            db.run("commit");
        } else {
            db.run("rollback");
        }
    }
    db.check(&[
        ("select ytd from w where id = 1", "2.00"),
        ("select next from d where id = 5", "4"),
    ]);
}

/// Each reads a column of the row that the other changes: one of them must see the other's change.
#[test]
fn write_skew_between_columns() {
    for (read, skews) in [("tax", true), ("name", false)] {
        let mut db = db();
        let mut other = db.another();
        db.run("begin isolation level serializable");
        other.run("begin isolation level serializable");
        db.run(&format!("select {read} from w where id = 1"));
        other.run("select ytd from w where id = 2");
        db.run("update w set ytd = 9 where id = 2");
        other.run("update w set tax = 0.9 where id = 1");
        db.run("commit");
        assert!(other.try_run("commit").is_err(), "what it has read of row 2 has changed");
        let mut db = self::db();
        let mut other = db.another();
        db.run("begin isolation level serializable");
        other.run("begin isolation level serializable");
        db.run(&format!("select {read} from w where id = 1"));
        other.run("select ytd from w where id = 2");
        other.run("update w set tax = 0.9 where id = 1");
        other.run("commit");
        db.run("update w set ytd = 9 where id = 2");
        assert_eq!(db.try_run("commit").is_ok(), !skews, "{read}");
    }
}
