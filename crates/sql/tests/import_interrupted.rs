//! Imports that somebody or something interrupts at any moment: CANCEL JOB, a disk that is full,
//! DROP of what is loaded. What they took comes back, and what goes on ends with the same rows.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::harness::import_files::{Files, ended};
use crate::harness::{error, rows, run, session, state, try_run};
use braid_env::clock::WallClock;
use braid_env::fs::{FileSystem, MemFs};
use braid_env::random::Random;
use braid_kv::{CommitTs, KeySpan, Store, StoreOptions};
use braid_sql::{Database, NoGeneralQueries, Session, SessionOptions};

const ROWS: u64 = 12_000;

fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

fn seeds(unless_given: u64) -> std::ops::Range<u64> {
    let first = given("BRAID_FIRST_SEED").unwrap_or(1);
    first..first + given("BRAID_SEEDS").unwrap_or(unless_given)
}

fn cells(n: u64) -> [String; 3] {
    let mut random = Random::seeded(n);
    let text: String = (0..8).map(|_| format!("{:016x}", random.next_u64())).collect();
    [n.to_string(), (n * 7919 % 10_007).to_string(), text]
}

/// A table of CSV, and a dump of the same rows with keys and indexes, in an order that makes runs
/// or ssts.
fn put_files(files: &Files, random: &mut Random) {
    let mut numbers: Vec<u64> = (0..ROWS).collect();
    if random.below(2) == 0 {
        random.shuffle(&mut numbers);
    }
    let joined = |by: &str| -> String {
        numbers.iter().map(|n| format!("{}\n", cells(*n).join(by))).collect()
    };
    files.put("a.csv", joined(","));
    files.put(
        "a.sql",
        format!(
            "CREATE TABLE public.t (a integer NOT NULL, b integer, c text);\n\
             COPY public.t (a, b, c) FROM stdin;\n{}\\.\n\
             ALTER TABLE ONLY public.t ADD CONSTRAINT t_pkey PRIMARY KEY (a);\n\
             CREATE INDEX t_b ON public.t (b);\nCREATE INDEX t_c ON public.t (c);\n\
             CREATE TABLE public.u (a integer NOT NULL REFERENCES public.t);\n\
             COPY public.u (a) FROM stdin;\n1\n2\n\\.\n",
            joined("\t")
        ),
    );
}

fn check_whole(s: &mut Session, what: &str) {
    let sums = [(0..ROWS).sum::<u64>(), (0..ROWS).map(|n| n * 7919 % 10_007).sum()];
    let want = format!("{ROWS}|{}|{}", sums[0], sums[1]);
    assert_eq!(rows(s, "select count(*), sum(a), sum(b) from t"), [want], "{what}");
    for n in [0, 77, ROWS - 1] {
        let [a, b, c] = cells(n);
        assert_eq!(rows(s, &format!("select a from t where c = '{c}'")), [&*a], "{what}");
        let by_b = rows(s, &format!("select a from t where b = {b}"));
        assert!(by_b.contains(&a), "{what}");
    }
}

fn bulk_files(fs: &MemFs) -> Vec<String> {
    let folder = Path::new("db/bulk");
    if fs.exists(folder).unwrap() { fs.list(folder).unwrap() } else { Vec::new() }
}

/// A database in these files, and its store.
fn open(files: &Files, fs: &MemFs) -> (Arc<Store>, Arc<Database>) {
    let mut options = StoreOptions::new(Arc::new(fs.clone()), "db", Arc::new(WallClock));
    options.engine.row_class = braid_keys::row_class;
    options.row_form = Some(braid_rows::ROW_FORM);
    let store = Store::open(options).unwrap();
    let db = Database::open(store.coordinator(), Arc::new(NoGeneralQueries)).unwrap();
    db.set_import_folder(&files.0);
    (store, db)
}

/// Takes away what nobody can reach, as if nobody could look into the past.
fn take_away(store: &Store, db: &Arc<Database>) {
    let before = store.gc_window();
    store.set_gc_window(Duration::ZERO);
    db.go_on_with_jobs().unwrap();
    store.advance_gc().unwrap();
    db.reclaim(CommitTs(u64::MAX), usize::MAX).unwrap();
    store.engine().compact_span(&KeySpan::all()).unwrap();
    store.set_gc_window(before);
}

/// Waits until the store is not larger than it may be.
fn space_comes_back((store, db): (&Store, &Arc<Database>), fs: &MemFs, most: u64, what: &str) {
    for tries in 0.. {
        take_away(store, db);
        let left = bulk_files(fs);
        if fs.used() <= most && left.is_empty() {
            return;
        }
        assert!(tries < 200, "{what}: {} of {most} bytes, {left:?}", fs.used());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn sql_of(way: &str, random: &mut Random) -> String {
    let checkpoints = ["200kB", "512MB"][random.below(2) as usize];
    match way {
        "dump" => format!("import pgdump 'a.sql' with checkpoint_size = '{checkpoints}'"),
        _ => {
            let mode = ["one_pass", "two_pass", "auto"][random.below(3) as usize];
            format!(
                "import into t csv data ('a.csv') with mode = {mode}, memory = '1MB', \
                 checkpoint_size = '{checkpoints}'"
            )
        }
    }
}

#[test]
fn one_that_is_canceled_at_any_moment_gives_its_space_back() {
    let (mut canceled, mut done) = (0, 0);
    for seed in seeds(8) {
        let random = &mut Random::seeded(seed);
        let files = Files::new();
        put_files(&files, random);
        let fs = MemFs::new();
        let (store, db) = &open(&files, &fs);
        let s = &mut session(db);
        let way = ["import", "dump"][(seed % 2) as usize];
        if way == "import" {
            run(s, "create table t (a int primary key, b int, c text)");
            run(s, "create index on t (b); create index on t (c)");
        }
        let sql = sql_of(way, random);
        let what = format!("seed {seed}: {sql}");
        let before = fs.used();
        let other = &mut session(db);
        let after =
            Duration::from_micros(random.below(given("BRAID_MOST_MS").unwrap_or(900) * 1000));
        let ran = std::thread::scope(|scope| {
            let importing = scope.spawn(|| try_run(s, &sql, &[]));
            while rows(other, "show jobs").is_empty() {
                std::thread::yield_now();
            }
            std::thread::sleep(after);
            let job = run(other, "show jobs").rows[0][0].clone();
            // It may have ended just now.
            let _ended = try_run(other, &format!("cancel job {job}"), &[]);
            importing.join().unwrap()
        });
        let s = &mut session(db);
        let job = run(s, "show jobs").rows[0].clone();
        match ran {
            Ok(_) => {
                assert_eq!(job[3], "succeeded", "{what}");
                check_whole(s, &what);
                done += 1;
            }
            Err(e) => {
                assert_eq!((e.state().0, &*job[3]), ("57014", "canceled"), "{what}: {e:?}");
                let left = match way {
                    "import" => rows(s, "select count(*) from t"),
                    _ => rows(s, "show tables"),
                };
                assert_eq!(left.concat(), if way == "import" { "0" } else { "" }, "{what}");
                space_comes_back((store, db), &fs, before + (400 << 10), &what);
                canceled += 1;
                // Nobody is kept out.
                run(s, &sql);
                check_whole(s, &what);
            }
        }
    }
    assert!(canceled > 0, "{canceled} canceled, {done} done");
}

#[test]
fn a_disk_that_is_full_at_any_moment_lets_it_wait_for_room() {
    let mut waited = 0;
    for seed in seeds(6) {
        let random = &mut Random::seeded(seed);
        let files = Files::new();
        put_files(&files, random);
        let fs = MemFs::new();
        let (store, db) = &open(&files, &fs);
        let s = &mut session(db);
        let way = ["import", "dump"][(seed % 2) as usize];
        if way == "import" {
            run(s, "create table t (a int primary key, b int, c text)");
            run(s, "create index on t (b); create index on t (c)");
        }
        let sql = sql_of(way, random);
        let what = format!("seed {seed}: {sql}");
        fs.set_capacity(fs.used() + random.between(40 << 10, 3 << 20));
        let mut ran = try_run(s, &sql, &[]).map(|_| ()).map_err(|e| (e.state().0, e.to_string()));
        let mut rounds = 0;
        while let Err((state, message)) = &ran {
            assert_eq!(*state, "53100", "{what}: {message}");
            waited += 1;
            rounds += 1;
            // Somebody makes room: not enough at first. What a try before has erased comes back
            // when nobody may look into the past so far.
            fs.set_capacity(u64::MAX);
            take_away(store, db);
            if rounds < 4 {
                fs.set_capacity(fs.used() + random.between(300 << 10, 5 << 20));
            }
            let s = &mut session(db);
            let job = run(s, "show jobs").rows[0].clone();
            // Where there is not even room to write that down, it counts as running.
            assert!(["paused", "running"].contains(&&*job[3]), "{what}: {job:?}");
            if job[3] == "paused" {
                assert!(job[6].contains("room on the disk"), "{what}: {job:?}");
            }
            let resumed = try_run(s, &format!("resume job {}", job[0]), &[]);
            if let Err(e) = resumed {
                assert_eq!(e.state().0, "53100", "{what}: {e:?}");
                continue;
            }
            let mut looks = 0;
            ran = loop {
                let now = run(s, "show jobs").rows[0].clone();
                match &*now[3] {
                    "succeeded" => break Ok(()),
                    "paused" => break Err(("53100", now[6].clone())),
                    "running" => {}
                    other => panic!("{what}: {other} {now:?}"),
                }
                looks += 1;
                assert!(looks < 12_000, "{what}: {now:?}");
                std::thread::sleep(Duration::from_millis(5));
            };
        }
        fs.set_capacity(u64::MAX);
        let s = &mut session(db);
        check_whole(s, &what);
        space_comes_back((store, db), &fs, u64::MAX, &what);
    }
    assert!(waited > 0);
}

/// Whoever wants to take away what is being loaded waits, and can when the import was canceled.
#[test]
fn what_is_being_loaded_cannot_be_taken_away_meanwhile() {
    let files = Files::new();
    put_files(&files, &mut Random::seeded(1));
    let (db, other) = &mut files.database();
    run(other, "create database shop");
    let options = SessionOptions {
        user: "root".into(),
        database: "shop".into(),
        ..SessionOptions::default()
    };
    let s = &mut Session::new(db.clone(), options).unwrap();
    run(s, "create table t (a int primary key, b int, c text); create index on t (b)");
    let pausing = parking_lot::Mutex::new(session(db));
    db.jobs().listen(move |step| {
        if step.name == "read" {
            run(&mut pausing.lock(), &format!("pause job {}", step.job));
        }
    });
    let job = run(s, "import into t csv data ('a.csv') with detached").rows[0][0].clone();
    while run(s, "show jobs").rows[0][3] != "paused" {
        std::thread::sleep(Duration::from_millis(5));
    }
    db.jobs().listen(|_| {});
    run(s, "set lock_timeout = '100ms'");
    for sql in
        ["drop table t", "truncate t", "alter table t add x int", "drop schema public cascade"]
    {
        assert_eq!(state(s, sql), "55P03", "{sql}");
    }
    run(other, "set lock_timeout = '100ms'");
    for sql in ["drop database shop", "drop database shop with (force)"] {
        assert_eq!(state(other, sql), "55P03", "{sql}");
    }
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
    run(s, &format!("cancel job {job}"));
    assert_eq!(ended(s, &job).0, "canceled");
    run(s, "drop table t");
    let e = error(s, "import into t csv data ('a.csv')");
    assert_eq!(e.state().0, "42P01");
    run(other, "drop database shop");
}
