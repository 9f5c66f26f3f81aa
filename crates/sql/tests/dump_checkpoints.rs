//! IMPORT PGDUMP that does not end in one go: another process goes on from the last checkpoint, and
//! all of it is as if there had been one.

use crate::harness;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::harness::import_files::{Files, ended};
use crate::harness::{rows, run, state, try_run};
use braid_env::fs::{CrashPolicy, DiskFs, FileSystem, MemFs, read_all};
use braid_env::random::Random;
use braid_keys::system;
use braid_kv::{KeySpan, ScanOptions, TxnOptions};
use braid_sql::{Database, Session};
use parking_lot::Mutex;

/// Rows of the large table.
const ROWS: u64 = 3_000;
/// Rows of the one that is filled twice.
const LOOSE: u64 = 1_300;

/// Tables with rows for the transaction's buffer and for loads, by COPY and by INSERT, one of them
/// twice; what is left out, and what needs it; sequences; keys and indexes behind the rows.
fn dump() -> String {
    let mut out = String::from(
        "SET statement_timeout = 0;\n\
         SELECT pg_catalog.set_config('search_path', '', false);\n\
         CREATE EXTENSION IF NOT EXISTS \"uuid-ossp\" WITH SCHEMA public;\n\
         CREATE TYPE public.mood AS ENUM ('sad', 'happy');\n\
         CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;\n\
         CREATE FOREIGN TABLE public.far (id integer) SERVER elsewhere;\n\
         CREATE TABLE public.people (id integer NOT NULL, name text, mood public.mood);\n\
         CREATE SEQUENCE public.people_id_seq AS integer START WITH 1 INCREMENT BY 1 CACHE 1;\n\
         ALTER SEQUENCE public.people_id_seq OWNED BY public.people.id;\n\
         ALTER TABLE ONLY public.people ALTER COLUMN id SET DEFAULT nextval('public.people_id_seq'::regclass);\n\
         CREATE TABLE public.big (id integer NOT NULL, n integer, t text);\n\
         CREATE TABLE public.loose (a integer, b text);\n\
         CREATE VIEW public.sad AS SELECT people.id FROM public.people WHERE people.mood = 'sad'::public.mood;\n\
         COPY public.people (id, name, mood) FROM stdin;\n1\tAda\tsad\n2\t\\N\thappy\n3\tb\\\\s\t\\N\n\\.\n\
         COPY public.far (id) FROM stdin;\n1\n2\n\\.\n\
         COPY public.big (id, n, t) FROM stdin;\n",
    );
    // In an order that is none.
    for n in (0..ROWS).map(|n| n * 7919 % ROWS) {
        out.push_str(&format!("{n}\t{}\t{:0>60}\n", n * 7919 % 1009, n));
    }
    out.push_str("\\.\nCOPY public.loose (a, b) FROM stdin;\n");
    (0..LOOSE).for_each(|n| out.push_str(&format!("{n}\t{n:0>50}\n")));
    out.push_str("\\.\nINSERT INTO public.loose VALUES (1, 'again'), (1, 'again');\n");
    out.push_str("INSERT INTO public.far VALUES (3);\nCOPY public.loose (a, b) FROM stdin;\n");
    (0..LOOSE).for_each(|n| out.push_str(&format!("{n}\t{n:0>50}\n")));
    out.push_str(
        "\\.\n\
         SELECT pg_catalog.setval('public.people_id_seq', 41, true);\n\
         ALTER TABLE ONLY public.people ADD CONSTRAINT people_pkey PRIMARY KEY (id);\n\
         ALTER TABLE ONLY public.big ADD CONSTRAINT big_pkey PRIMARY KEY (id);\n\
         CREATE INDEX big_n ON public.big USING btree (n);\n\
         CREATE UNIQUE INDEX big_t ON public.big USING btree (t);\n\
         ALTER TABLE ONLY public.loose ADD CONSTRAINT loose_big FOREIGN KEY (a) REFERENCES public.big(id);\n\
         COMMENT ON TABLE public.big IS 'it''s big';\n\
         CREATE TRIGGER t AFTER INSERT ON public.big FOR EACH ROW EXECUTE FUNCTION public.f();\n",
    );
    out
}

/// Names of tables and views.
fn tables(s: &mut Session) -> Vec<String> {
    rows(s, "show tables").iter().map(|t| t.split('|').nth(1).unwrap().to_string()).collect()
}

/// Everything that can be seen of it. A sequence takes a step.
fn content(s: &mut Session) -> Vec<String> {
    let mut out = tables(s);
    for sql in [
        "select id, name, mood from people",
        "select id, n, t from big",
        "select id from big where n = 7",
        "select n from big where t = '000000000000000000000000000000000000000000000000000000000077'",
        "select a, b from loose",
        "select nextval('people_id_seq')",
    ] {
        let mut found = rows(s, sql);
        found.sort_unstable();
        out.extend(found);
    }
    assert_eq!(state(s, "insert into loose values (-1, 'x')"), "23503");
    assert_eq!(state(s, "insert into big values (3, 3, 'x')"), "23505");
    out
}

const OPTIONS: &str = "ignore_unsupported_statements, log_ignored_statements = 'left.sql'";

fn pending_loads(db: &Arc<Database>) -> usize {
    let txn = db.coordinator().begin(TxnOptions::default()).unwrap();
    let (start, end) = system::pending_loads();
    let mut scan = txn.scan(KeySpan::new(start, end), ScanOptions::default()).unwrap();
    std::iter::from_fn(|| scan.next().unwrap()).count()
}

/// Files of the job go after its state is written, on its own thread.
fn nothing_is_left(db: &Arc<Database>, fs: &MemFs, what: &str) {
    let bulk = Path::new("db/bulk");
    let files = || if fs.exists(bulk).unwrap() { fs.list(bulk).unwrap() } else { Vec::new() };
    for _ in 0..500 {
        if pending_loads(db) == 0 && files().is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what}: {} loads and {:?} are left", pending_loads(db), files());
}

fn fraction(s: &mut Session) -> f64 {
    run(s, "show jobs").rows[0][5].parse().unwrap()
}

/// The disk as it was at each checkpoint, with how many tables had been loaded.
#[derive(Clone, Default)]
struct Clones(Arc<Mutex<Vec<(MemFs, u64)>>>, Arc<AtomicU64>);

impl Clones {
    /// Of the jobs that this database is going to run.
    fn of(db: &Arc<Database>, fs: &MemFs, every: bool) -> Clones {
        let clones = Clones::default();
        let (own, source) = (clones.clone(), fs.clone());
        db.jobs().listen(move |step| {
            if step.name == "loaded" {
                own.1.fetch_add(1, Ordering::SeqCst);
            }
            let mut all = own.0.lock();
            if step.name == "checkpoint" && (every || all.is_empty()) {
                let clone = source.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
                all.push((clone, own.1.load(Ordering::SeqCst)));
            }
        });
        clones
    }

    fn loaded(&self) -> u64 {
        self.1.load(Ordering::SeqCst)
    }

    fn take(&self) -> Vec<(MemFs, u64)> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Imports a dump, and again from the disk as it was at each checkpoint: what is there in the end,
/// what is told, and what is written to files, is the same. How many checkpoints there were.
fn goes_on_from_everywhere(
    files: &Files,
    (name, options): (&str, &str),
    content: &dyn Fn(&mut Session) -> Vec<String>,
) -> usize {
    let fs = MemFs::new();
    let (db, s) = &mut files.database_on(&fs);
    let clones = Clones::of(db, &fs, true);
    files.remove("left.sql");
    run(s, &format!("import pgdump '{name}' with {options}, detached"));
    let job = run(s, "show jobs").rows[0][0].clone();
    let (state, e) = ended(s, &job);
    assert_eq!(state, "succeeded", "{name}: {e}");
    let last = name.trim_end_matches('/').rsplit('/').next().unwrap();
    let report = format!("{last}-{job}.report");
    let outside = |files: &Files| {
        let left = files.names().contains(&"left.sql".to_string());
        (files.text(&report), left.then(|| files.text("left.sql")))
    };
    let (want, told, loaded) = (content(s), outside(files), clones.loaded());
    let clones = clones.take();
    // Every fourth one, others for other files; all of them by flag.
    let step = if std::env::var("BRAID_ALL_CHECKPOINTS").is_ok() { 1 } else { 4 };
    for (n, (fs, before)) in clones.iter().enumerate().skip(name.len() % step).step_by(step) {
        let what = format!("{name}, checkpoint {n} of {}", clones.len());
        files.remove(&report);
        files.remove("left.sql");
        let (db, s) = &mut files.database_on(fs);
        let again = Clones::of(db, fs, false);
        assert_eq!(tables(s), Vec::<String>::new(), "{what}");
        let so_far = fraction(s);
        assert_eq!(db.resume_jobs().unwrap(), 1, "{what}");
        assert!(fraction(s) >= so_far, "{what}");
        let (state, e) = ended(s, &job);
        assert_eq!(state, "succeeded", "{what}: {e}");
        assert_eq!(content(s), want, "{what}");
        assert_eq!(outside(files), told, "{what}");
        assert_eq!(again.loaded(), loaded - before, "{what} was not used");
        nothing_is_left(db, fs, &what);
    }
    clones.len()
}

#[test]
fn each_checkpoint_of_a_dump_leads_to_the_same_end() {
    let files = Files::new();
    let text = dump();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    files.put("d.sql.gz", gz.finish().unwrap()).put("d.sql", &text);
    let all = format!("{OPTIONS}, checkpoint_size = '1'");
    let count = goes_on_from_everywhere(&files, ("d.sql", &all), &content);
    assert!(count > 40, "{count}");
    let some = format!("{OPTIONS}, checkpoint_size = '30kB'");
    let count = goes_on_from_everywhere(&files, ("d.sql.gz", &some), &content);
    assert!(count > 5, "{count}");
    let limited =
        format!("{OPTIONS}, checkpoint_size = '40kB', row_limit = 2000, skip_foreign_keys");
    let counts = |s: &mut Session| {
        rows(s, "select count(*) from big").into_iter().chain(tables(s)).collect()
    };
    assert!(goes_on_from_everywhere(&files, ("d.sql", &limited), &counts) > 4);
}

/// Dumps that pg_dump has written, in each of its formats.
#[test]
fn archives_go_on_from_each_checkpoint() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/dumps");
    let files = Files::new();
    for name in ["custom.dump", "piped.dump", "tar.dump"] {
        files.put(name, read_all(&DiskFs, &from.join(name)).unwrap());
    }
    for name in DiskFs.list(&from.join("directory")).unwrap() {
        let content = read_all(&DiskFs, &PathBuf::from(&from).join("directory").join(&name));
        files.put(&format!("directory/{name}"), content.unwrap());
    }
    let content = |s: &mut Session| {
        let mut out = Vec::new();
        for schema in rows(s, "show schemas") {
            if schema.starts_with("pg_") || schema == "information_schema" {
                continue;
            }
            for table in rows(s, &format!("show tables from {schema}")) {
                let fields: Vec<&str> = table.split('|').collect();
                out.push(table.clone());
                if fields[2] == "table" {
                    let name = format!("\"{schema}\".\"{}\"", fields[1]);
                    let mut found = rows(s, &format!("select * from {name}"));
                    found.sort_unstable();
                    out.extend(found);
                }
            }
        }
        out
    };
    let mut all = BTreeMap::new();
    for name in ["custom.dump", "piped.dump", "tar.dump", "directory"] {
        // One of them has an INSERT for each row.
        let size = if name == "piped.dump" { "4kB" } else { "1" };
        let options = format!("ignore_unsupported_statements, checkpoint_size = '{size}'");
        let count = goes_on_from_everywhere(&files, (name, &options), &content);
        assert!(count > 5, "{name}: {count}");
        all.insert(name, count);
    }
    println!("checkpoints: {all:?}");
}

/// Each process comes one checkpoint further, and then it is gone: in the end all is there, and what
/// is shown of the progress has never gone back.
#[test]
fn a_dump_whose_node_stops_after_each_checkpoint_comes_to_its_end() {
    let files = Files::new();
    files.put("d.sql", dump());
    let options = format!("{OPTIONS}, checkpoint_size = '20kB'");
    let mut fs = MemFs::new();
    let (mut processes, mut last, mut want) = (0, 0.0, None);
    loop {
        let (db, s) = &mut files.database_on(&fs);
        let clones = Clones::of(db, &fs, false);
        if processes == 0 {
            run(s, &format!("import pgdump 'd.sql' with {options}, detached"));
        } else {
            let now = fraction(s);
            assert!(now >= last, "from {last} to {now}");
            last = now;
            assert_eq!(db.resume_jobs().unwrap(), 1);
        }
        assert!(fraction(s) >= last, "{processes}");
        let job = run(s, "show jobs").rows[0][0].clone();
        let (state, e) = ended(s, &job);
        assert_eq!(state, "succeeded", "{processes}: {e}");
        let found = content(s);
        assert_eq!(&found, want.get_or_insert(found.clone()), "{processes}");
        processes += 1;
        files.remove("left.sql");
        let Some((next, _)) = clones.take().pop() else { break };
        fs = next;
    }
    assert!(processes > 10 && last > 0.9, "{processes} {last}");
}

/// A note of something else than what is there does not count: the dump begins again.
#[test]
fn a_checkpoint_counts_only_if_nothing_else_has_changed() {
    for change in ["file", "schema", "rows", "damage"] {
        let files = Files::new();
        let text = dump();
        files.put("d.sql", &text);
        let fs = MemFs::new();
        let (db, s) = &mut files.database_on(&fs);
        run(s, "create table there (a int primary key); insert into there values (1), (2)");
        if change == "rows" {
            let key = "ALTER TABLE public.loose ADD FOREIGN KEY (a) REFERENCES public.there(a);\n";
            let small = "COPY public.loose (a, b) FROM stdin;\n1\tx\n2\ty\n\\.\n";
            let made = "CREATE TABLE public.loose (a integer, b text);\n";
            files.put("d.sql", format!("{made}{small}{key}CREATE TABLE public.other (a int);\n"));
        }
        let clones = Clones::of(db, &fs, true);
        let sql = "import pgdump 'd.sql' with ignore_unsupported_statements";
        run(
            s,
            &format!("{sql}, checkpoint_size = '10kB'").replace(
                "10kB",
                match change {
                    "rows" => "1",
                    _ => "10kB",
                },
            ),
        );
        let loaded = clones.loaded();
        let (crashed, _) = clones.take().pop().expect("there was a checkpoint");
        let (db, s) = &mut files.database_on(&crashed);
        let (mut wanted, mut count) = ("succeeded", ROWS);
        match change {
            "file" => {
                let more = "COPY public.loose (a, b) FROM stdin;\n5\tx\n\\.\n";
                files.put("d.sql", text.replace("COMMENT ON", &format!("{more}COMMENT ON")));
            }
            "schema" => drop(run(s, "create table new (a int)")),
            "rows" => {
                run(s, "delete from there where a = 2");
                (wanted, count) = ("failed", 0);
            }
            _ => {
                let note = Path::new("db/bulk/").join("note");
                let name = crashed.list(Path::new("db/bulk")).unwrap();
                let name = name.into_iter().find(|n| n.ends_with("-note")).unwrap();
                crashed.open_write(&note.with_file_name(name)).unwrap().write_at(b"x", 9).unwrap();
            }
        }
        let again = Clones::of(db, &crashed, false);
        db.resume_jobs().unwrap();
        let jobs = run(s, "show jobs").rows;
        let (state, e) = ended(s, &jobs[0][0]);
        assert_eq!(state, wanted, "{change}: {e}");
        nothing_is_left(db, &crashed, change);
        if count > 0 {
            assert_eq!(rows(s, "select count(*) from big"), [count.to_string()], "{change}");
            assert!(again.loaded() >= loaded, "{change}");
        } else {
            assert!(e.contains("foreign key"), "{e}");
            assert_eq!(tables(s), ["there"]);
        }
    }
}

/// Whoever cancels a dump that has not begun again gets the space back, at once.
#[test]
fn a_dump_that_is_canceled_before_it_goes_on_leaves_nothing() {
    let files = Files::new();
    files.put("d.sql", dump());
    let fs = MemFs::new();
    let (db, s) = &mut files.database_on(&fs);
    let clones = Clones::of(db, &fs, true);
    run(s, "import pgdump 'd.sql' with ignore_unsupported_statements, checkpoint_size = '30kB'");
    for (crashed, _) in clones.take() {
        let (db, s) = &mut files.database_on(&crashed);
        let job = run(s, "show jobs").rows[0][0].clone();
        run(s, &format!("cancel job {job}"));
        nothing_is_left(db, &crashed, "canceled");
        assert_eq!(run(s, "show jobs").rows[0][3], "canceled");
        assert_eq!(db.resume_jobs().unwrap(), 0);
        assert_eq!(tables(s), Vec::<String>::new());
        run(s, "create table big (a int); insert into big values (1)");
    }
}

/// One that pauses stays as it is when its node is killed, until it is resumed.
#[test]
fn a_dump_that_pauses_goes_on_from_its_checkpoint_in_another_process() {
    let files = Files::new();
    files.put("d.sql", dump());
    let fs = MemFs::new();
    let (db, s) = &mut files.database_on(&fs);
    let (loaded, pauser) = (AtomicU64::new(0), Mutex::new(harness::session(db)));
    db.jobs().listen(move |step| match step.name {
        "loaded" => drop(loaded.fetch_add(1, Ordering::SeqCst)),
        "checkpoint" if loaded.load(Ordering::SeqCst) == 2 => {
            run(&mut pauser.lock(), &format!("pause job {}", step.job));
        }
        _ => {}
    });
    let sql = "import pgdump 'd.sql' with ignore_unsupported_statements";
    run(s, &format!("{sql}, checkpoint_size = '20kB', detached"));
    let job = run(s, "show jobs").rows[0][0].clone();
    for _ in 0..1_000 {
        if run(s, "show jobs").rows[0][3] == "paused" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let crashed = fs.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
    run(s, &format!("cancel job {job}"));
    let (db, s) = &mut files.database_on(&crashed);
    let again = Clones::of(db, &crashed, false);
    assert_eq!(db.resume_jobs().unwrap(), 0);
    // What takes away what is left behind leaves it alone.
    db.go_on_with_jobs().unwrap();
    assert!(pending_loads(db) > 0);
    assert_eq!(run(s, "show jobs").rows[0][3], "paused");
    run(s, &format!("resume job {job}"));
    let (state, e) = ended(s, &job);
    assert_eq!(state, "succeeded", "{e}");
    assert_eq!(again.loaded(), 2);
    assert_eq!(rows(s, "select count(*) from big"), [ROWS.to_string()]);
    nothing_is_left(db, &crashed, "paused");
}

/// The disk is full: the dump waits, and goes on from its last checkpoint.
#[test]
fn a_full_disk_lets_a_dump_wait_and_go_on_from_its_checkpoint() {
    let files = Files::new();
    files.put("d.sql", dump());
    let mut from_checkpoint = 0;
    for kilobytes in [100, 200, 300, 350, 400, 450, 500] {
        let fs = MemFs::new();
        let (db, s) = &mut files.database_on(&fs);
        let counting = Clones::of(db, &fs, false);
        fs.set_capacity(fs.used() + (kilobytes << 10));
        let sql = "import pgdump 'd.sql' with ignore_unsupported_statements";
        let Err(e) = try_run(s, &format!("{sql}, checkpoint_size = '20kB'"), &[]) else { continue };
        assert_eq!(e.state().0, "53100", "{e:?}");
        fs.set_capacity(u64::MAX);
        let (before, job) = (counting.loaded(), run(s, "show jobs").rows[0].clone());
        if job[3] == "succeeded" {
            // The commit has happened, and only its way to the disk has failed.
            assert_eq!(rows(s, "select count(*) from big"), [ROWS.to_string()]);
            continue;
        }
        assert!(e.hint().unwrap_or_default().contains("RESUME JOB"), "{e:?}");
        let job = job[0].clone();
        assert_eq!(tables(s), Vec::<String>::new());
        // The store finds out by and by that there is room again.
        let again = |s: &mut Session| {
            db.go_on_with_jobs().is_ok() && try_run(s, &format!("resume job {job}"), &[]).is_ok()
        };
        while !again(s) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let (state, e) = ended(s, &job);
        assert_eq!(state, "succeeded", "{kilobytes}: {e}");
        assert_eq!(rows(s, "select count(*) from big"), [ROWS.to_string()], "{kilobytes}");
        assert_eq!(
            rows(s, "select count(*) from loose"),
            [(2 * LOOSE + 2).to_string()],
            "{kilobytes}"
        );
        nothing_is_left(db, &fs, "full");
        from_checkpoint += u64::from(counting.loaded() - before < 4 && before > 0);
    }
    assert!(from_checkpoint > 0);
}
