//! Answers come in columns where nothing but columns is selected; they say what rows say.

use crate::harness::Db;
use braid_sql::answer::Answer;
use braid_sql::{Outcome, Rows};
use braid_types::TimeZone;

/// A table of all types with its twin of texts, children inside of parents, and a long table.
fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "create type mood as enum ('sad', 'ok', 'happy');
         create table every (id int primary key, b bool, i2 int2, i8 int8, f4 float4, f8 float8,
             n numeric, n2 numeric(8,2), t text, v varchar(10), c char(5), y bytea, u uuid, d date,
             ti time, ts timestamp, tz timestamptz, iv interval, j json, jb jsonb, a int[], m mood,
             o oid, nm name);
         insert into every (id) values (1), (5);
         insert into every values
             (2, true, -3, 9223372036854775807, 1.5, 'NaN', 123.4500, -0.05, 'tÄxt', 'v', 'c',
              '\\xde00', '11111111-2222-3333-4444-555555555555', '2024-02-29', '12:34:56.7',
              '2024-01-01 00:00:00', '2024-01-01 00:00:00+02', '1 mon 2 days', '{\"b\": 1,  \"a\":2}',
              '{\"b\": 1,  \"a\":2}', '{1,NULL,3}', 'ok', 4294967295, 'nm'),
             (3, false, 0, 0, '-Infinity', -0.0, 'NaN', 0, '', '', '', '', null, 'infinity', '24:00',
              '-infinity', 'infinity', '-1 day', '[]', '[]', '{}', 'happy', 0, ''),
             (4, null, null, -1, 0.1, 1e300, 1e40, 999999.99, repeat('long ', 500), null, 'abcde',
              null, null, '0001-01-01 BC', null, null, null, null, null, null, null, null, null, null);
         alter table every add column late int default 7;
         insert into every (id, late) values (6, null);
         create table p (id bigint, k text, x int, more text default 'more',
             primary key (id desc, k));
         create table q (id bigint, k text, n int, note text, primary key (id desc, k, n))
             interleave in parent p on delete cascade;
         insert into p select i, 'k' || i % 3, i from generate_series(1, 50) g(i);
         insert into q select id, k, n, 'note ' || n from p, generate_series(1, 5) g(n);
         create index q_n on q (n);
         create index p_x on p (x desc);
         create table many (id int primary key, t text);
         insert into many select i, 'text ' || i from generate_series(1, 10000) g(i)",
    );
    db
}

/// What a query has to give.
fn open(db: &mut Db, query: &str) -> Rows {
    let statement = db.session.parse_script(query).unwrap().remove(0);
    let prepared = db.session.prepare(statement, &[]).unwrap();
    match db.session.execute(&prepared, Vec::new()) {
        Ok(Outcome::Rows(rows)) => rows,
        _ => panic!("{query}"),
    }
}

fn next(rows: &mut Rows, columns: bool) -> Option<Answer> {
    match columns {
        true => rows.next_answer().unwrap(),
        false => rows.next_batch().unwrap().map(Answer::Rows),
    }
}

/// The rows as lines, and whether any came in columns.
fn rows(db: &mut Db, query: &str, columns: bool) -> (Vec<String>, bool) {
    let mut rows = open(db, query);
    let (mut lines, mut any) = (Vec::new(), false);
    while let Some(batch) = next(&mut rows, columns) {
        any |= matches!(batch, Answer::Columns(_));
        let count = batch.rows();
        let batch = batch.into_rows();
        assert_eq!(batch.len(), count);
        for row in batch {
            let text = |v: &braid_types::Datum| v.to_text(TimeZone::utc());
            lines.push(row.iter().map(|v| format!("{:?}", text(v))).collect::<Vec<_>>().join("|"));
        }
    }
    assert_eq!(rows.tag(), format!("SELECT {}", lines.len()), "{query}");
    (lines, any)
}

const IN_COLUMNS: &[&str] = &[
    "select * from every",
    "select t, id, t, late from every where id > 2",
    "select late, c, n from every where id between 2 and 4 order by id desc",
    "select id, x from p",
    "select k, id from p where id between 10 and 20 order by id desc, k",
    "select note from q where id = 7",
    "select n, note, k from q where id = 7 and k = 'k1' order by n desc limit 2",
    "select id from many limit 3000",
    "select * from many where id > 100",
    "select t from many where id >= 5 and id < 9000 limit 1",
    // By an index that does not tell all.
    "select id, note from q where n between 2 and 3",
    "select note, k from q where n in (1, 5) limit 7",
    "select note, n from q where n = 4 order by id desc, k",
    "select k, x, id, more from p where x > 40",
    // Alternatives that are spans.
    "select id, k, n, note from q where (id, k, n) > (20, 'k1', 3) limit 25",
    "select t, id from many where (id > 9990 or id < 3) order by id desc",
    // General plans.
    "select * from (select t, count(distinct (id, 1)) from every group by t having count(*) < 9) x order by t",
    "select m.t, p.x from many m join p on p.x = m.id and m.t <> 'text 3' order by m.id",
    "select e.*, late + 1 from every e where t <> 'x' or late is null order by random() limit 0 offset 0",
];

#[test]
fn columns_say_what_rows_say() {
    let mut db = db();
    for query in IN_COLUMNS {
        let (in_rows, no) = rows(&mut db, query, false);
        let (in_columns, yes) = rows(&mut db, query, true);
        assert_eq!(in_rows, in_columns, "{query}");
        assert!(!no && (yes || in_rows.is_empty()), "{query}");
    }
}

/// Aggregates over columns, and the same over rows: a condition that the spans do not tell.
const AGGREGATES: &[(&str, &str, &str)] = &[
    ("count(*), count(n), sum(n), max(note), min(k)", "q", "id = 7"),
    ("count(*)", "every", "id > 1"),
    (
        "sum(i2), avg(n2), max(t), min(d), max(late), bool_and(b), count(distinct c)",
        "every",
        "id < 6",
    ),
    ("string_agg(t, ','), array_agg(id), sum(id + late)", "every", "id between 2 and 4"),
    ("sum(id), max(t), count(t)", "many", "id > 100"),
    ("count(*), sum(x)", "p", "id between 10 and 30"),
    ("max(id), min(id)", "many", "id < 0"),
];

#[test]
fn aggregates_of_columns_are_those_of_rows() {
    let mut db = db();
    let writes = "begin; delete from many where id < 5000; insert into p values (15, 'new', 99)";
    for before in ["select 1", writes] {
        db.run(before);
        for (list, table, keys) in AGGREGATES {
            let plain = db.run(&format!("select {list} from {table} where {keys}"));
            let by_rows = format!("select {list} from {table} where {keys} and id + 0 = id");
            assert_eq!(plain, db.run(&by_rows), "{list}");
        }
    }
}

#[test]
fn own_writes_are_among_the_columns() {
    let mut db = db();
    db.run("begin");
    db.run(
        "update many set t = 'mine' where id % 500 = 0; delete from many where id between 3 and 2000;
         insert into many values (0, null), (20000, 'last'); delete from p where id = 9;
         insert into q select id, k, 9, 'ninth' from p where id < 20",
    );
    for query in IN_COLUMNS {
        let in_rows = rows(&mut db, query, false).0;
        assert_eq!(in_rows, rows(&mut db, query, true).0, "{query}");
    }
    assert_eq!(rows(&mut db, "select t from many where id in (0, 2500)", true).0.len(), 2);
}

/// Entries of an index stay behind when a family is erased, and when its rows come back with other
/// values.
#[test]
fn entries_of_erased_rows_are_no_rows() {
    let mut db = db();
    let queries = [
        "select id, k, n, note from q where n >= 2 and n <= 4",
        "select note from q where n = 3 limit 20",
        "select note, n from q where n > 4 order by n desc, id, k desc",
        "select k, x, id, more from p where x > 10",
    ];
    let same = |db: &mut Db| {
        let mut found = 0;
        for query in queries {
            let (in_rows, _) = rows(db, query, false);
            let (in_columns, columns) = rows(db, query, true);
            assert_eq!(in_rows, in_columns, "{query}");
            assert!(columns || in_rows.is_empty(), "{query}");
            found += in_rows.len();
        }
        found
    };
    let before = same(&mut db);
    let steps = [
        "delete from p where id between 10 and 20",
        "begin",
        "delete from p where id in (1, 50)",
        "insert into p values (12, 'k0', 12), (50, 'k2', 5)",
        "insert into q values (12, 'k0', 3, 'again'), (50, 'k2', 9, 'again'), (50, 'k2', 4, null)",
        "commit",
        "delete from p where id > 40",
        "begin",
        "truncate p, q",
        "rollback",
    ];
    let mut counts = vec![before];
    for step in steps {
        db.run(step);
        counts.push(same(&mut db));
    }
    assert!(counts[1] < before && counts[4] > counts[3], "{counts:?}");
}

/// Rows that are fetched while their transaction goes on to write.
#[test]
fn entries_that_die_while_rows_are_fetched_are_no_rows() {
    let mut db = db();
    db.run(
        "create table wide (id int primary key, v int, note text);
         create table narrow (id int, n int, primary key (id, n)) interleave in parent wide
             on delete cascade;
         create index wide_v on wide (v);
         insert into wide select i, i, 'note ' || i from generate_series(1, 2000) g(i);
         begin",
    );
    let mut rows = open(&mut db, "select id, v, note from wide where v > 0");
    let first = next(&mut rows, true).unwrap();
    assert!(matches!(first, Answer::Columns(_)) && first.rows() < 500);
    let plan = db.run("explain delete from wide where id between 1000 and 1900").join(" ");
    assert!(plan.contains("range delete"), "{plan}");
    db.run("delete from wide where id between 1000 and 1900");
    db.run("insert into wide values (1500, -5, 'another')");
    let mut count = first.rows();
    while let Some(batch) = next(&mut rows, true) {
        for row in batch.into_rows() {
            assert!(row[1].to_text(TimeZone::utc()).unwrap() != "-5");
            count += 1;
        }
    }
    assert_eq!(count, 2000 - 901);
}

#[test]
fn both_kinds_of_batches_go_on_with_each_other() {
    let mut db = db();
    for columns_first in [true, false] {
        let mut rows = open(&mut db, "select id, t from many");
        let (mut ids, mut columns) = (Vec::new(), columns_first);
        while let Some(batch) = next(&mut rows, columns) {
            ids.extend(batch.into_rows().iter().map(|row| row[0].to_text(TimeZone::utc())));
            columns = !columns;
        }
        let all: Vec<_> = (1..=10000).map(|id: i32| Some(id.to_string())).collect();
        assert_eq!(ids, all);
    }
}

#[test]
fn what_columns_showed_is_validated() {
    let mut db = db();
    let mut other = db.another();
    db.run("begin isolation level serializable");
    let (lines, columns) = rows(&mut db, "select n, note from q where id = 7", true);
    assert!(columns && lines.len() == 5);
    other.run("insert into q values (7, 'k1', 6, 'a phantom')");
    db.run("update many set t = 'seen ' || 5 where id = 1");
    let error = db.try_run("commit").unwrap_err();
    assert_eq!(error.state().0, "40001");
}

/// Who reads rows by entries of an index depends on these rows, not on erasures elsewhere.
#[test]
fn reads_by_an_index_depend_on_their_rows() {
    for (other_does, is_lost) in [
        ("delete from p where id = 100", false),
        ("delete from p where id = 7", true),
        ("update q set note = 'new' where id = 7 and n = 2", true),
        ("insert into q values (3, 'k0', 2, 'a phantom')", true),
        ("update q set note = 'new' where id = 7 and n = 4", false),
    ] {
        let mut db = db();
        let mut other = db.another();
        db.run("delete from p where id = 3; insert into p values (3, 'k0', 3), (100, 'k0', 100)");
        db.run("insert into q values (100, 'k0', 9, 'elsewhere')");
        db.run("begin isolation level serializable");
        let (lines, columns) = rows(&mut db, "select id, note from q where n = 2", true);
        assert!(columns && lines.len() == 49, "{lines:?}");
        other.run(other_does);
        db.run("update many set t = 'seen' where id = 1");
        let ended = db.try_run("commit");
        assert_eq!(ended.is_err(), is_lost, "{other_does}: {ended:?}");
    }
}
