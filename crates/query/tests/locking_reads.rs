//! FOR UPDATE over joins, subqueries and in WITH: what others may do meanwhile, and what is seen of
//! what they have done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::harness::Db;
use braid_types::SqlResult;

const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

fn owners() -> Db {
    let mut db = Db::new();
    db.run(
        "create table o (id int primary key, name text);
         create table i (id int, k int, v int, primary key (id, k)) interleave in parent o on delete cascade;
         create index on i (v);
         insert into o values (1, 'one'), (2, 'two'), (3, 'three');
         insert into i values (1, 1, 10), (1, 2, 20), (2, 1, 30)",
    );
    db
}

fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().name("beside".into()).spawn(work).expect("a thread")
}

/// Runs a statement on a thread of its own.
fn beside(mut db: Db, sql: &str) -> (Receiver<SqlResult<Vec<String>>>, JoinHandle<Db>) {
    let (told, heard) = channel();
    let sql = sql.to_string();
    let thread = on_thread(move || {
        let _ = told.send(db.try_run(&sql));
        db
    });
    (heard, thread)
}

fn waits(heard: &Receiver<SqlResult<Vec<String>>>) -> bool {
    heard.recv_timeout(Duration::from_millis(100)).is_err()
}

#[test]
fn the_rows_of_a_join_are_locked_and_no_others() {
    for level in LEVELS {
        let mut a = owners();
        a.run(&format!("begin isolation level {level}"));
        let join = "select o.name, i.v from o join i on i.id = o.id where i.v + 0 = 20";
        assert_eq!(a.run(&format!("{join} for update of i")), ["one|20"], "{level}");
        let mut other = a.another();
        other.run("update o set name = 'other' where id = 2; update i set v = 31 where id = 2");
        other.run("update o set name = 'uno' where id = 1");
        let (heard, thread) =
            beside(other, "update i set v = v + 1 where id = 1 and k = 2 returning v");
        assert!(waits(&heard), "{level}");
        a.run("commit");
        assert_eq!(heard.recv().unwrap().unwrap(), ["21"], "{level}");
        let mut other = thread.join().unwrap();
        // Of both tables now, and of the whole family.
        a.run(&format!("begin isolation level {level}"));
        assert_eq!(
            a.run("select o.id from o join i on i.id = o.id where i.v = 31 for update"),
            ["2"]
        );
        let e = other.try_run("select * from o where id = 2 for share nowait").unwrap_err();
        assert_eq!(e.state().0, "55P03", "{level}");
        let e = other
            .try_run("select o.id from o join i on i.id = o.id for update nowait")
            .unwrap_err();
        assert_eq!(e.message(), "could not obtain lock on row in relation \"o\"", "{level}");
        assert_eq!(
            other.run(
                "select o.id, i.k from o join i on i.id = o.id order by 1, 2 for update skip locked"
            ),
            ["1|1", "1|2"],
            "{level}"
        );
        let (heard, thread) = beside(other, "delete from o where id = 2 returning name");
        assert!(waits(&heard), "{level}");
        a.run("rollback");
        assert_eq!(heard.recv().unwrap().unwrap(), ["other"], "{level}");
        thread.join().unwrap();
    }
}

#[test]
fn who_has_waited_sees_what_the_rows_are_now() {
    let mut a = owners();
    a.run("begin; update i set v = 99 where id = 1 and k = 2");
    a.run("update o set name = 'uno' where id = 1");
    let b = a.another();
    let sql =
        "select o.name, i.v from o join i on i.id = o.id where i.v >= 20 order by i.v for update";
    let (heard, thread) = beside(b, sql);
    assert!(waits(&heard));
    a.run("commit");
    assert_eq!(heard.recv().unwrap().unwrap(), ["two|30", "uno|99"]);
    let mut b = thread.join().unwrap();
    // In a block: the view moves at READ COMMITTED, and does not at REPEATABLE READ.
    for level in LEVELS {
        b.run(&format!("begin isolation level {level}; select count(*) from o"));
        a.run("update i set v = v + 1 where id = 1 and k = 2");
        let now = a.run("select v from i where id = 1 and k = 2");
        let seen = b.try_run(
            "select i.v from o join i on i.id = o.id where o.id = 1 and i.k = 2 for update",
        );
        match (level, seen) {
            ("read committed", seen) => assert_eq!(seen.unwrap(), now),
            ("repeatable read", seen) => assert_eq!(seen.unwrap_err().state().0, "40001"),
            // What it has read before is still as it was.
            (_, Ok(seen)) => assert_eq!(seen, now),
            (_, Err(e)) => assert_eq!(e.state().0, "40001"),
        }
        b.run("rollback");
    }
}

#[test]
fn workers_take_jobs_in_every_way_that_queues_are_written() {
    let ways = [
        "update q set state = 'taken' where id = (select id from q where state = 'new' order by id
         for update skip locked limit 1) returning id",
        "delete from q where id in (select id from q where state = 'new' order by id limit 1
         for update skip locked) returning id",
        "with next as (select id from q where state = 'new' order by id limit 1 for update skip locked)
         update q set state = 'taken' from next where next.id = q.id returning q.id",
        "delete from q using (select id from q where state = 'new' order by id limit 1
         for update skip locked) s where s.id = q.id returning q.id",
        "with next as materialized (select q.id from q join w on w.id = q.worker where state = 'new'
         order by q.id limit 1 for update of q skip locked)
         update q set state = 'taken' where id in (select id from next) returning id",
    ];
    for (level, way) in LEVELS.iter().flat_map(|level| ways.iter().map(move |way| (level, way))) {
        if *level == "serializable" && way.contains("using") {
            // What is passed over was joined before that, so it may have to be tried again.
            continue;
        }
        let mut db = Db::new();
        db.run(
            "create table w (id int primary key); insert into w values (1);
             create table q (id int primary key, state text, worker int);
             create index on q (state, id);
             insert into q select g, 'new', 1 from generate_series(1, 9) g",
        );
        let mut workers: Vec<Db> = (0..3).map(|_| db.another()).collect();
        let mut taken = Vec::new();
        for _ in 0..3 {
            for worker in &mut workers {
                worker.run(&format!("begin isolation level {level}"));
                taken.extend(worker.run(way));
            }
            workers.iter_mut().for_each(|worker| drop(worker.run("commit")));
        }
        let all: Vec<String> = (1..=9).map(|id| id.to_string()).collect();
        assert_eq!(taken, all, "{level}: {way}");
        assert_eq!(db.run(way), Vec::<String>::new(), "{level}: {way}");
    }
}

#[test]
fn many_workers_at_once_take_each_job_once() {
    let mut db = Db::new();
    db.run(
        "create table q (id int primary key, state text, kind int);
         create table kind (id int primary key, name text);
         insert into kind select g, 'k' || g from generate_series(0, 6) g;
         insert into q select g, 'new', g % 7 from generate_series(1, 300) g",
    );
    let workers = (0..4).map(|_| {
        let mut db = db.another();
        on_thread(move || {
            let mut mine = Vec::new();
            loop {
                let rows = db.run(
                    "with next as (select q.id, name from q join kind on kind.id = q.kind
                     where state = 'new' order by q.id limit 5 for update of q skip locked)
                     update q set state = 'done' from next where next.id = q.id returning q.id",
                );
                if rows.is_empty()
                    && db.run("select 1 from q where state = 'new' limit 1").is_empty()
                {
                    return mine;
                }
                mine.extend(rows);
            }
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut all: Vec<u32> =
        workers.into_iter().flat_map(|w| w.join().unwrap()).map(|id| id.parse().unwrap()).collect();
    all.sort_unstable();
    assert_eq!(all, (1..=300).collect::<Vec<u32>>());
}

/// Each reads all rows and changes one: whoever commits first begins again before the others know
/// that they have lost. They win by locking what they read, and nobody is told of a conflict.
#[test]
fn nobody_loses_for_ever() {
    let mut db = Db::new();
    db.run(
        "create table counter (id int primary key, n int, filler text);
         insert into counter select g, 0, repeat('x', 100) from generate_series(1, 400) g",
    );
    let workers = (0..4).map(|worker| {
        let mut db = db.another();
        on_thread(move || {
            for _ in 0..40 {
                db.run(&format!(
                    "update counter set n = (select max(n) from counter where filler <> 'y') + 1
                     where id = {worker} + 1 + (select count(*) from counter) - 400"
                ));
            }
        })
    });
    let workers: Vec<_> = workers.collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    // Each saw what all before it had done.
    assert_eq!(db.run("select max(n), count(*) filter (where n > 0) from counter"), ["160|4"]);
    let failed = db.run("select sum(errors)::text from braid_statement_statistics");
    assert_eq!(failed, ["0"]);
}

/// It takes longer than others need to change what it has read, each time: without a lock it would
/// lose until nobody tries any more.
#[test]
fn a_slow_statement_wins_against_a_quick_one() {
    let mut db = Db::new();
    db.run(
        "create table busy (id int primary key, n int);
         create table sums (id int primary key, n bigint);
         insert into busy select g, 0 from generate_series(1, 20) g",
    );
    let stop = Arc::new(AtomicBool::new(false));
    let (mut other, seen) = (db.another(), stop.clone());
    let quick = on_thread(move || {
        let mut done = 0;
        while !seen.load(Ordering::Relaxed) {
            other.run("update busy set n = n + 1 where id = 7");
            done += 1;
        }
        done
    });
    let slow = db.try_run(
        "insert into sums select 1, sum(n) + length(cast(pg_sleep(0.03) as text)) from busy",
    );
    stop.store(true, Ordering::Relaxed);
    let done: i64 = quick.join().unwrap();
    slow.expect("it wins");
    let sum: i64 = db.run("select n from sums")[0].parse().unwrap();
    assert!((1..=done).contains(&sum), "{sum} of {done}");
}

#[test]
fn parameters_limits_and_many_rows() {
    let mut db = owners();
    db.run("insert into i select 3, g, g from generate_series(1, 10000) g");
    let all = db.run(
        "begin; select i.k from o join i on i.id = o.id where o.id = 3 order by i.k for update",
    );
    assert_eq!((all.len(), all[9_999].as_str()), (10_000, "10000"));
    let explained = db.run("explain select o.name from o join i on i.id = o.id for update of o");
    assert!(explained[0].starts_with("lock rows: o (Exclusive)"), "{explained:?}");
    db.run(
        "commit; prepare p (int, bigint, bigint) as select i.k from o join i on i.id = o.id
         where o.id = $1 order by i.k limit $2 offset $3 for update",
    );
    assert_eq!(db.run("execute p (3, 2, 5)"), ["6", "7"]);
    assert_eq!(db.run("execute p (3, 0, 5)"), Vec::<String>::new());
    assert_eq!(db.run("execute p (3, null, 9999)"), ["10000"]);
    let e = db.try_run("execute p (3, -1, 0)").unwrap_err();
    assert_eq!(e.state().0, "2201W");
}
