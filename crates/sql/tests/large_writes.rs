//! UPDATE and DELETE of very many rows: memory stays bounded, and the answer is that of any other
//! statement.

use std::sync::Arc;

use crate::harness::{database, error, rows, run, session, state, tag};
use braid_sql::{Database, Session};

const ROWS: usize = 6_000;
/// Less than the rows of one statement take.
const STATEMENT: &str = "512kB";

/// Inserts rows 1 to `count` with these values.
fn fill(s: &mut Session, table: &str, count: usize, values: impl Fn(usize) -> String) {
    for from in (1..=count).step_by(5_000) {
        let part: Vec<String> = (from..(from + 5_000).min(count + 1)).map(&values).collect();
        run(s, &format!("insert into {table} values {}", part.join(", ")));
    }
}

/// A table with rows, indexes, a reference and rows that lie in it.
fn filled(db: &Arc<Database>) -> Session {
    let mut s = session(db);
    run(
        &mut s,
        "create table kinds (k int primary key, name text);
         create table t (id int primary key, k int references kinds, v int check (v < 1000000),
            u int unique, note text);
         create index t_by_v on t (v, k);
         create table inside (id int, no int, w int, primary key (id, no))
            interleave in parent t on delete cascade;
         create index inside_by_w on inside (w)",
    );
    fill(&mut s, "kinds", 10, |n| format!("({}, 'kind')", n - 1));
    fill(&mut s, "t", ROWS, |n| format!("({n}, {}, {n}, -{n}, 'note')", n % 10));
    fill(&mut s, "inside", ROWS, |n| format!("({n}, 1, {n})"));
    run(&mut s, &format!("set statement_mem = '{STATEMENT}'; set braid.transaction_mem = '256kB'"));
    s
}

/// What the table and its indexes have to say; the same if they fit each other.
fn contents(s: &mut Session) -> Vec<String> {
    let by_table = rows(s, "select count(*), sum(v), sum(k), min(id), max(id) from t");
    let by_index = rows(s, "select count(*), sum(v), sum(k) from t where v > -2000000");
    let (table, index) = (by_table[0].clone(), by_index[0].clone());
    assert!(table.starts_with(&index), "{table} in the table, {index} in the index");
    let inside = rows(s, "select count(*), sum(w) from inside");
    assert_eq!(inside, rows(s, "select count(*), sum(w) from inside where w > -2000000"));
    [by_table, inside].concat()
}

#[test]
fn an_update_of_many_rows_takes_little_memory() {
    let db = database();
    let mut s = filled(&db);
    let before = contents(&mut s);
    for level in ["serializable", "repeatable read", "read committed"] {
        run(&mut s, &format!("set default_transaction_isolation = '{level}'"));
        assert_eq!(
            tag(&mut s, "update t set v = v + 1, k = (k + 1) % 10"),
            format!("UPDATE {ROWS}")
        );
        assert_eq!(tag(&mut s, "update inside set w = w + 1"), format!("UPDATE {ROWS}"));
        run(&mut s, "update t set v = v - 1, k = (k + 9) % 10; update inside set w = w - 1");
        assert_eq!(contents(&mut s), before);
        // In a block, with savepoints around it.
        run(&mut s, "begin; savepoint a");
        run(&mut s, "update t set v = 7 where id > 10; savepoint b; update t set v = v + 1, k = 0");
        assert_eq!(rows(&mut s, "select sum(v) from t where v > 0"), [sum_of(8).to_string()]);
        assert_eq!(rows(&mut s, "select v, k from t where id = 500"), ["8|0"]);
        run(&mut s, "rollback to b");
        assert_eq!(rows(&mut s, "select sum(v) from t where v > 0"), [sum_of(7).to_string()]);
        run(&mut s, "rollback to a; commit");
        assert_eq!(contents(&mut s), before, "{level}");
        // What fails late leaves nothing.
        assert_eq!(state(&mut s, "update t set v = v + 995000"), "23514");
        assert_eq!(state(&mut s, "update t set k = id / 590"), "23503");
        assert_eq!(contents(&mut s), before, "{level}");
    }
    // All rows at once would not have fitted.
    assert_eq!(state(&mut s, "update t set u = u - 1000000"), "53200");
    assert!(db.coordinator().describe_locks().locks.is_empty());
}

/// Rows 1 to 10 keep their number, or one more; the others have this one.
fn sum_of(v: usize) -> usize {
    let first: usize = (1..=10).map(|n| n + v - 7).sum();
    first + (ROWS - 10) * v
}

#[test]
fn a_delete_of_many_rows_takes_little_memory() {
    let db = database();
    let mut s = filled(&db);
    run(&mut s, "create table flat (id int primary key, v int); create index on flat (v)");
    fill(&mut s, "flat", ROWS, |n| format!("({n}, {n})"));
    run(&mut s, "begin");
    assert_eq!(tag(&mut s, "delete from flat where v % 3 > 0"), "DELETE 4000");
    assert_eq!(rows(&mut s, "select count(*), min(v) from flat where v > 0"), ["2000|3"]);
    run(&mut s, "rollback");
    assert_eq!(rows(&mut s, "select count(*) from flat where v > 0"), [ROWS.to_string()]);
    assert_eq!(tag(&mut s, "delete from flat where v % 3 > 0"), "DELETE 4000");
    assert_eq!(rows(&mut s, "select count(*), min(id) from flat"), ["2000|3"]);
    let answer = run(&mut s, "delete from flat where v % 2 = 0 returning id");
    assert_eq!((answer.rows.len(), answer.tag.as_str()), (1_000, "DELETE 1000"));
    assert_eq!(rows(&mut s, "select count(*), min(v) from flat where v > 0"), ["1000|3"]);
}

#[test]
fn a_family_of_many_rows_moves_with_little_memory() {
    let db = database();
    let mut s = session(&db);
    run(
        &mut s,
        "create table kinds (k int primary key); insert into kinds values (1);
         create table p (id int primary key, name text);
         create table c (id int, no int, u int unique, v int check (v < 1000000), k int references kinds,
            note text, primary key (id, no)) interleave in parent p on delete cascade;
         create index c_by_v on c (v) include (note);
         create index c_inside on c (id, v) interleave in p;
         create table g (id int, no int, n int, w int, primary key (id, no, n))
            interleave in parent c on delete cascade;
         create index g_by_w on g (w);
         create table stays (id int, n int, primary key (id, n)) interleave in p;
         create table refers (r int primary key, id int, no int,
            foreign key (id, no) references c on update cascade);
         insert into p values (1, 'one'), (2, 'two'), (5, 'five');
         insert into c values (2, 1, -1, 5, 1, 'other'); insert into g values (2, 1, 1, 7);
         insert into stays values (1, 1), (2, 1)",
    );
    fill(&mut s, "c", ROWS, |n| format!("(1, {n}, {n}, {n}, 1, 'a note of some length {n}')"));
    fill(&mut s, "g", ROWS, |n| format!("(1, {n}, 1, {n})"));
    run(&mut s, "insert into refers values (1, 1, 17), (2, 2, 1)");
    run(&mut s, &format!("set statement_mem = '{STATEMENT}'; set braid.transaction_mem = '256kB'"));
    let at = |s: &mut Session, id: usize| {
        let all = rows(s, &format!("select count(*), sum(u), sum(v) from c where id = {id}"));
        let by_index = rows(s, "select count(*), sum(v) from c where v > -5");
        let inside = rows(s, &format!("select count(*) from c where id = {id} and v > 0"));
        let note = rows(s, "select note from c where v = 4711");
        let below = rows(s, &format!("select count(*), sum(w) from g where id = {id}"));
        let by_w = rows(s, "select count(*), sum(w) from g where w > 0");
        let unique = rows(s, "select id, no from c where u = 4711");
        (all, by_index, inside, note, below, by_w, unique)
    };
    let before = at(&mut s, 1);
    let moved = |id: usize| {
        let mut there = before.clone();
        there.6 = vec![format!("{id}|4711")];
        there
    };
    assert_eq!(before.0, [format!("{ROWS}|18003000|18003000")]);
    for level in ["serializable", "repeatable read", "read committed"] {
        run(&mut s, &format!("set default_transaction_isolation = '{level}'"));
        assert_eq!(tag(&mut s, "update p set id = 9 where id = 1"), "UPDATE 1");
        assert_eq!(at(&mut s, 9), moved(9), "{level}");
        assert_eq!(rows(&mut s, "select r, id, no from refers order by r"), ["1|9|17", "2|2|1"]);
        assert_eq!(rows(&mut s, "select count(*) from c where id = 1"), ["0"]);
        // With others, past each other, and in a block.
        assert_eq!(tag(&mut s, "begin; savepoint a; update p set id = 11 - id"), "UPDATE 3");
        assert_eq!(rows(&mut s, "select count(*) from c where id = 2"), [ROWS.to_string()]);
        assert_eq!(rows(&mut s, "select u, note from c where id = 9"), ["-1|other"]);
        assert_eq!(rows(&mut s, "select count(*) from g where w > 0"), [(ROWS + 1).to_string()]);
        run(&mut s, "rollback to a");
        assert_eq!(at(&mut s, 9), moved(9), "{level}");
        // What this block has written moves along.
        run(&mut s, "update c set v = v + 1 where no <= 10; update p set id = 1 where id = 9");
        assert_eq!(rows(&mut s, "select sum(v) from c where id = 1"), ["18003010"]);
        run(&mut s, "update c set v = v - 1 where no <= 10; commit");
        assert_eq!(at(&mut s, 1), before, "{level}");
        assert_eq!(rows(&mut s, "select id, n from stays order by id"), ["1|1", "2|1"]);
        // What fails leaves nothing.
        assert_eq!(state(&mut s, "update p set id = 2 where id = 1"), "23505");
        assert_eq!(at(&mut s, 1), before, "{level}");
    }
    assert!(db.coordinator().describe_locks().locks.is_empty());
}

#[test]
fn a_block_of_many_statements_takes_little_memory() {
    let db = database();
    let mut s = session(&db);
    run(&mut s, "create table t (id int primary key, u text unique)");
    run(&mut s, "set braid.transaction_mem = '64kB'; begin");
    for n in 0..3_000 {
        run(&mut s, &format!("savepoint s; insert into t values ({n}, 'text {n}'); release s"));
        if n % 500 == 499 {
            run(&mut s, "savepoint back; delete from t; rollback to back; release back");
        }
    }
    let locks = db.coordinator().describe_locks().locks.len();
    assert!(locks < 800, "{locks} locks");
    assert_eq!(error(&mut s, "insert into t values (1, 'other')").state().0, "23505");
    run(&mut s, "rollback; begin");
    for n in 0..3_000 {
        run(&mut s, &format!("insert into t values ({n}, 'text {n}')"));
    }
    run(&mut s, "commit");
    assert_eq!(rows(&mut s, "select count(*) from t where u > 'text'"), ["3000"]);
}

#[test]
fn rows_that_do_not_stand_alone_are_written_together() {
    let db = database();
    let mut s = session(&db);
    run(
        &mut s,
        "create table t (id int primary key, u int unique, g int generated always as (v * 2) stored \
            unique, v int);
         create table refers (id int primary key, u int references t (u) on update cascade)",
    );
    fill(&mut s, "t (id, u, v)", 20_000, |n| format!("({n}, {n}, {n})"));
    run(&mut s, "insert into refers values (1, 5)");
    assert_eq!(tag(&mut s, "update t set id = id + 1"), "UPDATE 20000");
    assert_eq!(tag(&mut s, "update t set v = v + 1"), "UPDATE 20000");
    assert_eq!(tag(&mut s, "update t set u = u + 1"), "UPDATE 20000");
    assert_eq!(rows(&mut s, "select u from refers"), ["6"]);
    assert_eq!(rows(&mut s, "select min(id), max(u), sum(g) from t"), ["2|20001|400060000"]);
    run(&mut s, "set statement_mem = '2MB'");
    assert_eq!(state(&mut s, "update t set u = u + 1"), "53200");
    assert_eq!(rows(&mut s, "select min(id), max(u) from t"), ["2|20001"]);
}

#[test]
fn others_wait_for_a_locked_table_and_their_rows_are_waited_for() {
    let db = database();
    let mut s = filled(&db);
    let mut other = session(&db);
    run(&mut other, "set lock_timeout = '200ms'");
    run(&mut s, "begin; update t set note = 'changed'");
    assert_eq!(state(&mut other, "insert into t values (0, 1, 1, 1, 'new')"), "55P03");
    assert_eq!(state(&mut other, "update t set v = 1 where id = 7"), "55P03");
    run(&mut s, "commit");
    run(&mut other, "begin; update t set v = 1 where id = 7");
    run(&mut s, "set lock_timeout = '200ms'");
    assert_eq!(state(&mut s, "update t set note = 'again'"), "55P03");
    run(&mut other, "commit");
    assert_eq!(tag(&mut s, "update t set note = 'again'"), format!("UPDATE {ROWS}"));
    // What came in the meantime makes it begin again, by itself.
    run(&mut other, "insert into t values (0, 1, 1, 1, 'new')");
    assert_eq!(tag(&mut s, "update t set note = 'more'"), format!("UPDATE {}", ROWS + 1));
}
