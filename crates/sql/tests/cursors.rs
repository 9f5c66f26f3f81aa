//! Cursors that keep more rows than fit into memory: what they kept is what the query gave.

use crate::harness::{database_on, rows, run, session, state};
use braid_env::fs::{FileSystem, MemFs};
use braid_sql::Session;
use std::path::Path;

const ROWS: usize = 3_000;

/// A table with columns of many kinds, NULLs among them.
fn filled(files: &MemFs) -> Session {
    let mut s = session(&database_on(files.clone()));
    run(
        &mut s,
        "create type mood as enum ('sad', 'fine');
         create table t (id int primary key, note text, price numeric, at timestamptz, doc jsonb,
            raw json, list int[], names text[], key uuid, mood mood, within int4range, bits bytea,
            ratio float8, day date, span interval, net inet)",
    );
    for from in (0..ROWS).step_by(500) {
        let row = |n: usize| {
            let note = format!("note {n} {}", "x".repeat(n % 700));
            match n % 7 {
                0 => format!("({n}, '{note}')"),
                _ => format!(
                    "({n}, '{note}', {n}.50, '2026-01-01 00:00:{:02}+00', '{{\"b\": {n}, \"a\": null}}',
                     '{{\"b\":{n}, \"a\":1}}', '{{{n}, null}}', '[0:1]={{a,\"b c\"}}',
                     '00000000-0000-0000-0000-{n:012}', 'fine', '[{n},{})', '\\x00{:02x}', {n}.25,
                     '2026-02-03', '1 mon 2 days 00:00:{:02}', '10.0.0.{}')",
                    n % 60, n + 3, n % 256, n % 60, n % 200
                ),
            }
        };
        let (short, long): (Vec<usize>, Vec<usize>) =
            (from..from + 500).partition(|n| n.is_multiple_of(7));
        let list = |rows: Vec<usize>| rows.into_iter().map(row).collect::<Vec<_>>().join(", ");
        run(&mut s, &format!("insert into t (id, note) values {}", list(short)));
        run(&mut s, &format!("insert into t values {}", list(long)));
    }
    run(&mut s, "set statement_mem = '512kB'");
    s
}

/// Files that hold what sessions keep.
fn kept(files: &MemFs) -> usize {
    let folder = Path::new("db/bulk");
    let names = if files.exists(folder).unwrap() { files.list(folder).unwrap() } else { vec![] };
    names.iter().filter(|name| name.ends_with(".kept")).count()
}

#[test]
fn a_cursor_that_outlives_its_block_keeps_any_number_of_rows() {
    let files = MemFs::new();
    let mut s = filled(&files);
    let all = rows(&mut s, "select * from t order by id");
    run(&mut s, "begin; declare c cursor with hold for select * from t order by id; commit");
    run(&mut s, "delete from t");
    assert_eq!(kept(&files), 1, "they do not fit into memory");
    assert_eq!(rows(&mut s, "fetch all from c"), all);
    assert_eq!(rows(&mut s, "fetch from c"), Vec::<String>::new());
    let back: Vec<String> = all.iter().rev().cloned().collect();
    assert_eq!(rows(&mut s, "fetch backward all from c"), back);
    for n in [1, 2, 1_700, 3, 2_999, 3_000] {
        assert_eq!(rows(&mut s, &format!("fetch absolute {n} from c")), [all[n - 1].clone()]);
    }
    assert_eq!(rows(&mut s, "fetch absolute 3001 from c"), Vec::<String>::new());
    assert_eq!(rows(&mut s, "fetch prior from c"), [all[2_999].clone()]);
    run(&mut s, "close c");
    assert_eq!(kept(&files), 0);
}

#[test]
fn a_cursor_that_scrolls_goes_back_over_any_number_of_rows() {
    let files = MemFs::new();
    let mut s = filled(&files);
    let all = rows(&mut s, "select * from t order by id");
    run(&mut s, "begin; declare c scroll cursor for select * from t order by id");
    assert_eq!(rows(&mut s, "fetch 2000 from c"), all[..2_000]);
    assert_eq!(rows(&mut s, "fetch absolute 17 from c"), [all[16].clone()]);
    assert_eq!(rows(&mut s, "fetch last from c"), [all[2_999].clone()]);
    assert_eq!(rows(&mut s, "fetch relative -2000 from c"), [all[999].clone()]);
    assert_eq!(rows(&mut s, "fetch all from c"), all[1_000..]);
    run(&mut s, "rollback");
    assert_eq!(kept(&files), 0);
}

/// Rows without a type of their own cannot be written down: they must fit.
#[test]
fn rows_of_no_type_are_kept_in_memory() {
    let files = MemFs::new();
    let mut s = filled(&files);
    run(
        &mut s,
        "begin; declare c cursor with hold for select row(id, 1) from t where id < 9; commit",
    );
    assert_eq!(rows(&mut s, "fetch 2 from c"), ["(0,1)", "(1,1)"]);
    let large = "declare d cursor with hold for select row(id, note) from t";
    assert_eq!(state(&mut s, large), "53200");
    assert_eq!(kept(&files), 0);
}

#[test]
fn the_row_under_a_cursor_is_changed_wherever_it_lies() {
    let db = database_on(MemFs::new());
    let (mut s, mut other) = (session(&db), session(&db));
    run(
        &mut s,
        "create table a (id int primary key, n int);
         create table b (id int, no int, n int, primary key (id, no))
            interleave in parent a on delete cascade;
         insert into a values (1, 1), (2, 2), (3, 3);
         insert into b values (1, 1, 11), (1, 2, 12), (2, 1, 21), (3, 1, 31)",
    );
    // A child, then a parent with its children.
    run(&mut s, "begin; declare c cursor for select n from b where no = 1 for update");
    run(&mut s, "fetch 2 from c; update b set n = -n where current of c");
    run(&mut s, "declare d cursor for select n from a where id = 1; fetch d");
    assert_eq!(state(&mut s, "delete from b where current of d"), "24000");
    run(&mut s, "rollback; begin; declare c cursor for select n from b where no = 1 for update");
    run(&mut s, "fetch 2 from c; update b set n = -n where current of c");
    run(&mut s, "declare d cursor for select n from a where id = 1; fetch d");
    run(&mut s, "delete from a where current of d; commit");
    assert_eq!(rows(&mut s, "select id from a order by id"), ["2", "3"]);
    assert_eq!(rows(&mut s, "select id, no, n from b order by id"), ["2|1|-21", "3|1|31"]);
    // What others have done meanwhile is there at READ COMMITTED, and the row is still that row.
    run(&mut s, "begin isolation level read committed; declare c cursor for select id from a");
    run(&mut s, "fetch c");
    run(&mut other, "update a set n = 20");
    run(&mut s, "update a set n = n + 1 where current of c; fetch c");
    run(&mut other, "delete from a where id = 3");
    run(&mut s, "update a set n = 0 where current of c; commit");
    assert_eq!(rows(&mut s, "select id, n from a"), ["2|21"]);
    // Elsewhere somebody else was first.
    run(&mut s, "begin isolation level repeatable read; declare c cursor for select id from a");
    run(&mut s, "fetch c");
    run(&mut other, "update a set n = 1");
    assert_eq!(state(&mut s, "update a set n = 2 where current of c"), "40001");
    run(&mut s, "rollback");
}

#[test]
fn a_cursor_of_which_nothing_is_said_goes_back_while_it_is_small() {
    let mut s = filled(&MemFs::new());
    run(&mut s, "begin; declare c cursor for select id from t order by id");
    run(&mut s, "fetch 100 from c");
    assert_eq!(rows(&mut s, "fetch backward 2 from c"), ["98", "97"]);
    run(&mut s, "declare d cursor for select * from t order by id; move 2900 in d");
    assert_eq!(rows(&mut s, "fetch d").len(), 1);
    assert_eq!(state(&mut s, "fetch prior from d"), "55000");
}
