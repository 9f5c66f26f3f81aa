//! IMPORT PGDUMP: dumps that are damaged, dry runs that tell all, statements that are left out.

use crate::harness;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::harness::import_files::{Files, ended, mutate};
use crate::harness::{error, rows, run, state, try_run};
use crate::import::packed;
use braid_env::fs::{CrashPolicy, DiskFs, MemFs, read_all};
use braid_env::random::Random;
use braid_keys::system;
use braid_kv::{KeySpan, ScanOptions, TxnOptions};
use braid_sql::{Database, Outcome, Session};
use parking_lot::Mutex;

const PLAIN: &str = r#"--
-- PostgreSQL database dump
--
SET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE TYPE public.mood AS ENUM ('sad', 'it''s; happy');
CREATE TABLE public.people (
    id integer NOT NULL,
    name text DEFAULT 'x;y'::text,
    mood public.mood,
    CONSTRAINT named CHECK ((name <> ''::text))
);
CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS $_$ BEGIN RETURN NEW; -- ;
END $_$;
COPY public.people (id, name, mood) FROM stdin;
1	tab\there	sad
2	\N	it's; happy
3	back\\slash	\N
\.
INSERT INTO public.people VALUES (4, 'semi;colon', NULL);
ALTER TABLE ONLY public.people ADD CONSTRAINT people_pkey PRIMARY KEY (id);
CREATE TABLE public.notes (person integer NOT NULL, n integer NOT NULL, note text);
COPY public.notes (person, n, note) FROM stdin;
1	1	one
1	2	two
3	1	three
\.
ALTER TABLE ONLY public.notes ADD CONSTRAINT notes_pkey PRIMARY KEY (person, n);
ALTER TABLE ONLY public.notes
    ADD CONSTRAINT notes_person_fkey FOREIGN KEY (person) REFERENCES public.people(id) ON DELETE CASCADE;
"#;

fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

/// Loads whose transactions have neither committed nor been cleaned up after.
fn pending_loads(db: &Arc<Database>) -> usize {
    let txn = db.coordinator().begin(TxnOptions::default()).unwrap();
    let (start, end) = system::pending_loads();
    let mut scan = txn.scan(KeySpan::new(start, end), ScanOptions::default()).unwrap();
    let mut count = 0;
    while scan.next().unwrap().is_some() {
        count += 1;
    }
    count
}

fn relations(s: &mut Session) -> Vec<String> {
    let mut out = Vec::new();
    for schema in rows(s, "show schemas") {
        if !schema.starts_with("pg_") && schema != "information_schema" {
            out.extend(rows(s, &format!("show tables from {schema}")));
            out.push(schema);
        }
    }
    out
}

/// Damaged dumps, plain and archives: an error that names its place and leaves nothing, or a whole
/// dump; never a panic. BRAID_SEEDS says how many.
#[test]
fn mutated_dumps_are_errors_or_whole_and_never_half() {
    let (first, rounds) =
        (given("BRAID_FIRST_SEED").unwrap_or(1), given("BRAID_SEEDS").unwrap_or(150));
    let archives = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/dumps");
    let mut seeds = vec![PLAIN.as_bytes().to_vec()];
    let dump = |name: &str| read_all(&DiskFs, &archives.join(name)).unwrap();
    seeds.extend(["custom.dump", "piped.dump", "tar.dump"].map(dump));
    let compressed = ["gzip", "zstd", "bzip2"].map(|how| packed(PLAIN.as_bytes(), how));
    let first_packed = seeds.len();
    seeds.extend(compressed);
    // Every kind of object and type; it takes its time.
    let every = dump("claimed.sql");
    let files = Files::new();
    let mut open = None;
    for seed in first..first + rounds {
        let random = &mut Random::seeded(seed);
        let (at, of_every) = (random.below(seeds.len() as u64) as usize, random.below(16) == 0);
        let mut content = if of_every { every.clone() } else { seeds[at].clone() };
        for _ in 0..random.between(1, 4) {
            mutate(&mut content, random);
        }
        files.put("m", &content);
        // After one that was whole, a new database.
        let (_, s) = open.get_or_insert_with(|| files.database());
        let before = relations(s);
        let packing = match (of_every, at.checked_sub(first_packed)) {
            (false, Some(which)) => ["gzip", "zstd", "bzip2"][which],
            _ => "none",
        };
        let other = ["", "", ", dry_run", ", memory = '16MB'"][random.below(4) as usize];
        let sql = format!(
            "import pgdump 'm' with ignore_unsupported_statements, decompress = {packing}{other}"
        );
        match try_run(s, &sql, &[]) {
            Ok(_) if other.contains("dry_run") => assert_eq!(relations(s), before, "seed {seed}"),
            Ok(_) => open = None,
            Err(e) => {
                let told = format!("{} {}", e.message(), e.detail().unwrap_or_default());
                assert!(told.contains("\"m\""), "seed {seed}: {e:?} names no file");
                let places = ["line ", "byte ", "entry ", "header", "table of contents"];
                let has_place = places.iter().any(|place| told.contains(place));
                assert!(has_place, "seed {seed}: {told} names no place");
                assert!(!e.state().0.starts_with("XX"), "seed {seed}: {e:?}");
                assert_eq!(relations(s), before, "seed {seed}: {e:?}");
            }
        }
    }
}

fn told(s: &mut Session, sql: &str) -> Vec<String> {
    let line = |r: Vec<String>| format!("{} {} {}: {}", r[0], r[1], r[2], r[3]);
    run(s, sql).rows.into_iter().map(line).collect()
}

#[test]
fn a_dry_run_goes_on_behind_what_fails_and_tells_all() {
    let files = Files::new();
    let wrong = PLAIN.replace("3\tback", "three\tback").replace(
        "CREATE TABLE public.notes",
        "CREATE FOREIGN TABLE b (i int) SERVER s;\nCREATE TABLE public.notes",
    );
    files.put("good.sql", PLAIN).put("wrong.sql", &wrong);
    let (_, s) = &mut files.database();
    let found = told(s, "import pgdump 'good.sql' with dry_run");
    let totals: Vec<&String> = found.iter().filter(|l| l.starts_with("total")).collect();
    assert_eq!(totals[0], "total NULL tables: 2");
    assert_eq!(totals[1], "total NULL rows: 6");
    assert_eq!(totals[5], "total NULL statements that fail: 0");
    assert!(totals[4].starts_with("total NULL peak memory in bytes: "), "{totals:?}");
    let found = told(s, "import pgdump 'wrong.sql' with dry_run");
    let wrongs: Vec<&String> = found.iter().filter(|l| l.starts_with("wrong")).collect();
    // The COPY, the foreign table, and the foreign key whose rows are not there.
    assert_eq!(wrongs.len(), 3, "{found:#?}");
    assert!(
        wrongs[0].contains("22P02") && wrongs[0].contains("line 3, column id"),
        "{}",
        wrongs[0]
    );
    assert!(wrongs[1].starts_with("wrong 22 CREATE FOREIGN TABLE"), "{}", wrongs[1]);
    assert!(wrongs[2].contains("23503"), "{}", wrongs[2]);
    assert!(found.contains(&"loaded 24 public.notes: 3 rows".to_string()), "{found:#?}");
    assert_eq!(rows(s, "show tables"), Vec::<String>::new());
    assert_eq!(state(s, "import pgdump 'wrong.sql'"), "22P02");
    assert_eq!(rows(s, "show tables"), Vec::<String>::new());
}

#[test]
fn what_is_left_out_is_written_whole_to_a_file() {
    let files = Files::new();
    files.put("d.sql", PLAIN);
    let (_, s) = &mut files.database();
    run(s, "import pgdump 'd.sql' with log_ignored_statements = 'left.sql', skip_foreign_keys");
    let left = files.text("left.sql");
    assert!(
        left.contains(
            "-- line 13: only functions in SQL are supported\nCREATE FUNCTION public.f()"
        ),
        "{left}"
    );
    assert!(left.contains("RETURN NEW; -- ;\nEND $_$;\n"), "{left}");
    assert!(
        left.contains("-- line 29: skip_foreign_keys\nALTER TABLE ONLY public.notes"),
        "{left}"
    );
    assert_eq!(rows(s, "select count(*) from notes"), ["3"]);
    run(s, "drop table notes; drop table people; drop type mood");
    let again = "import pgdump 'd.sql' with log_ignored_statements = 'left.sql'";
    assert_eq!(state(s, again), "58P02", "a file that is there is kept");
    for (option, wanted) in [
        ("log_ignored_statements = '../x'", "42501"),
        ("nonsense", "22023"),
        ("dry_run, dry_run", "22023"),
        ("interleave = 'a b c'", "22023"),
    ] {
        assert_eq!(state(s, &format!("import pgdump 'd.sql' with {option}")), wanted, "{option}");
    }
    assert_eq!(rows(s, "show tables"), Vec::<String>::new());
}

/// A table that is not supported, what belongs to it and what needs it; functions that are not
/// supported in defaults, checks, views and indexes.
const LEFT_OUT: &str = r#"SELECT pg_catalog.lo_create('2121');
CREATE DOMAIN public.odd AS integer CONSTRAINT odd_check CHECK (public.good(VALUE)) CONSTRAINT low CHECK ((VALUE < 50));
CREATE EXTENSION IF NOT EXISTS "uuid-ossp" WITH SCHEMA public;
CREATE FUNCTION public.stamp() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 7; END $$;
CREATE FUNCTION public.good(n integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN n > 0; END $$;
CREATE FOREIGN TABLE public.far (id integer NOT NULL, name text) SERVER elsewhere;
CREATE TABLE public.near (
    id integer DEFAULT public.stamp() NOT NULL,
    u text DEFAULT public.uuid_generate_v4(),
    n integer DEFAULT 5,
    far_id integer,
    CONSTRAINT good CHECK (public.good(n)),
    CONSTRAINT small CHECK ((n < 100))
);
CREATE VIEW public.stamped AS SELECT near.id, public.stamp() AS s FROM public.near;
CREATE VIEW public.of_far AS SELECT far.id FROM public.far;
COPY public.far (id, name) FROM stdin;
1	one; CREATE TABLE x
2	\N
\.
COPY public.near (id, u, n, far_id) FROM stdin;
1	a	1	1
2	b	2	2
3	c	99	\N
\.
INSERT INTO public.far VALUES (3, 'three');
INSERT INTO public.far VALUES (4, 'four;');
INSERT INTO public.near (id) VALUES (4);
ALTER TABLE ONLY public.far ADD CONSTRAINT far_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.near ADD CONSTRAINT near_pkey PRIMARY KEY (id);
CREATE INDEX near_good ON public.near USING btree (public.good(n));
CREATE INDEX near_n ON public.near USING btree (n);
ALTER TABLE ONLY public.near ADD CONSTRAINT near_far FOREIGN KEY (far_id) REFERENCES public.far(id);
"#;

#[test]
fn what_is_left_out_takes_its_rows_and_what_needs_it_along() {
    let files = Files::new();
    files.put("d.sql", LEFT_OUT);
    let (_, s) = &mut files.database();
    let e = error(s, "import pgdump 'd.sql'");
    assert!(e.hint().unwrap_or_default().contains("ignore_unsupported_statements"), "{e:?}");
    assert_eq!(rows(s, "show tables"), Vec::<String>::new());
    let found = told(s, "import pgdump 'd.sql' with ignore_unsupported_statements");
    let has = |begin: &str, what: &str| {
        let line = found.iter().find(|l| l.starts_with(begin));
        let line = line.unwrap_or_else(|| panic!("{begin}: {found:#?}"));
        assert!(line.contains(what), "{line}");
    };
    has("ignored 1 SELECT", "large objects");
    has("changed 2 CREATE DOMAIN public.odd", "function public.good(integer) does not exist");
    has("ignored 6 CREATE FOREIGN TABLE public.far", "0A000");
    has("changed 7 CREATE TABLE public.near", "function public.stamp() does not exist");
    has("changed 7 CREATE TABLE public.near", "public.uuid_generate_v4() does not exist");
    has("changed 7 CREATE TABLE public.near", "public.good(integer) does not exist");
    has("ignored 15 CREATE VIEW public.stamped", "needs public.stamp");
    has("ignored 16 CREATE VIEW public.of_far", "");
    has("ignored 17 public.far", "2 rows of a table that is left out (line 6)");
    has("loaded 21 public.near", "3 rows");
    has("ignored NULL public.far", "2 INSERT statements");
    has("ignored 29 ALTER TABLE ONLY public.far", "needs public.far");
    has("ignored 31 CREATE INDEX near_good", "needs public.good");
    has("ignored 33 ALTER TABLE ONLY public.near", "needs public.far");
    assert_eq!(
        rows(s, "select id, u, n from near where id > 0"),
        ["1|a|1", "2|b|2", "3|c|99", "4|NULL|5"]
    );
    assert_eq!(state(s, "insert into near (id, n) values (5, 100)"), "23514", "a check of its own");
    assert_eq!(state(s, "insert into near (id) values (4)"), "23505");
    run(s, "create table of_odd (o odd); insert into of_odd values (-5)");
    assert_eq!(state(s, "insert into of_odd values (50)"), "23514");
    // A dry run tells the same and changes nothing.
    let (_, s) = &mut files.database();
    let dry = told(s, "import pgdump 'd.sql' with dry_run, ignore_unsupported_statements");
    assert!(dry.contains(&"total NULL statements that fail: 0".to_string()), "{dry:#?}");
    assert!(found.iter().all(|line| dry.contains(line)), "{dry:#?}");
}

/// What was not proven of the origin's rows is not proven here, and holds for new ones.
#[test]
fn a_constraint_that_is_not_valid_stays_so() {
    let files = Files::new();
    let text = "CREATE TABLE a (n int);\nINSERT INTO a VALUES (1), (-1);\n\
                ALTER TABLE a ADD CONSTRAINT p CHECK ((n > 0)) NOT VALID;\n\
                ALTER TABLE a ADD CONSTRAINT q CHECK ((n > -5)) NOT VALID;\n";
    files.put("a.sql", text);
    let (_, s) = &mut files.database();
    let found = told(s, "import pgdump 'a.sql'");
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(state(s, "insert into a values (-9)"), "23514");
    assert_eq!(state(s, "insert into a values (-2)"), "23514");
    assert_eq!(state(s, "alter table a validate constraint p"), "23514");
    run(s, "alter table a validate constraint q; alter table a drop constraint p");
    run(s, "insert into a values (-2)");
    files.put("b.sql", text.replace(" NOT VALID", "").replace(" a ", " b "));
    assert_eq!(state(s, "import pgdump 'b.sql'"), "23514");
}

/// A dump is one transaction, whatever it says; functions may have statements in them.
#[test]
fn a_dump_neither_ends_its_transaction_nor_parts_it() {
    let files = Files::new();
    let text = "BEGIN;\nCREATE TABLE a (n int);\nINSERT INTO a VALUES (1);\nCOMMIT;\n\
                CREATE FUNCTION f() RETURNS int LANGUAGE sql\nBEGIN ATOMIC\n SELECT 1;\nEND;\n";
    files.put("good.sql", text);
    let (_, s) = &mut files.database();
    run(s, "import pgdump 'good.sql' with dry_run");
    assert_eq!(rows(s, "show tables"), Vec::<String>::new());
    for end in ["ROLLBACK", "ABORT", "SAVEPOINT x", "PREPARE TRANSACTION 'x'", "CREATE NONSENSE"] {
        files.put("bad.sql", format!("{text}{end};\nCREATE TABLE b (n int);\n"));
        let e = error(s, "import pgdump 'bad.sql'");
        assert!(["0A000", "42601"].contains(&e.state().0), "{end}: {e:?}");
        assert_eq!(rows(s, "show tables"), Vec::<String>::new(), "{end}");
    }
    run(s, "import pgdump 'good.sql'");
    assert_eq!(rows(s, "select n from a"), ["1"]);
}

/// Rows enough for loads that do not go through the transaction's buffer.
fn large(count: u64) -> String {
    let mut out = String::from(
        "CREATE SEQUENCE public.runs;\n\
         CREATE TABLE public.big (id integer NOT NULL, n integer, t text);\n\
         COPY public.big (id, n, t) FROM stdin;\n",
    );
    for n in 0..count {
        out.push_str(&format!("{n}\t{}\t{:0>150}\n", n * 7919 % 1009, n));
    }
    out.push_str(
        "\\.\n\
         ALTER TABLE ONLY public.big ADD CONSTRAINT big_pkey PRIMARY KEY (id);\n\
         CREATE INDEX big_n ON public.big USING btree (n);\n\
         CREATE TABLE public.small (a integer);\n\
         COPY public.small (a) FROM stdin;\n1\n2\n\\.\n",
    );
    out
}

const BIG: u64 = 12_000;

fn content(s: &mut Session) -> Vec<String> {
    let mut all = rows(s, "select id, n from big");
    all.sort_unstable();
    let count = all.len();
    all.dedup();
    let mut out = vec![format!("{count} rows, {} different", all.len())];
    out.extend(rows(s, "select count(*) from big where n between 3 and 90"));
    out.push(rows(s, "select a from small").join(" "));
    out
}

/// A dump is a job: it answers at once, pauses, goes on, is canceled, and leaves a report.
#[test]
fn a_dump_is_a_job_that_nobody_has_to_wait_for() {
    let files = Files::new();
    files.put("big.sql", large(BIG));
    let (db, s) = &mut files.database();
    let pauser = Mutex::new(harness::session(db));
    db.jobs().listen(move |step| {
        if step.name == "read" {
            run(&mut pauser.lock(), &format!("pause job {}", step.job));
        }
    });
    let started = told(s, "import pgdump 'big.sql' with detached");
    let job = started[0].split(' ').nth(3).unwrap().trim_end_matches(':').to_string();
    let state_of = |s: &mut Session| {
        let jobs = run(s, "show jobs").rows;
        jobs.into_iter().find(|j| j[0] == job).expect("the job is known")[3].clone()
    };
    for _ in 0..500 {
        if state_of(s) == "paused" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(state_of(s), "paused");
    assert_eq!(rows(s, "show tables"), Vec::<String>::new());
    run(s, &format!("resume job {job}"));
    assert_eq!(ended(s, &job).0, "succeeded");
    assert_eq!(rows(s, "select count(*) from big"), [BIG.to_string()]);
    let report = files.text(&format!("big.sql-{job}.report"));
    assert!(report.contains("\"subject\":\"public.big\""), "{report}");
    for (options, wanted) in [("detached, dry_run", "22023"), ("detached = 7", "22023")] {
        assert_eq!(state(s, &format!("import pgdump 'big.sql' with {options}")), wanted);
    }
    assert_eq!(state(s, "import pgdump 'none.sql' with detached"), "58P01");
}

/// What a dump that is canceled, or tried, has brought to the disk goes soon.
#[test]
fn nothing_is_left_of_a_dump_that_was_canceled_or_tried() {
    for way in ["cancel", "fail", "dry_run"] {
        let files = Files::new();
        let mut text = large(BIG);
        if way == "fail" {
            text.push_str("CREATE TABLE public.small (a integer);\n");
        }
        files.put("big.sql", text);
        let fs = MemFs::new();
        let (db, s) = &mut files.database_on(&fs);
        let canceler = Mutex::new(harness::session(db));
        let seen = AtomicU64::new(0);
        let cancels = way == "cancel";
        db.jobs().listen(move |step| {
            if cancels && step.name == "loaded" && seen.fetch_add(1, Ordering::Relaxed) == 0 {
                run(&mut canceler.lock(), &format!("cancel job {}", step.job));
            }
        });
        let sql = "import pgdump 'big.sql'";
        match way {
            "cancel" => assert_eq!(state(s, sql), "57014"),
            "fail" => assert_eq!(state(s, sql), "42P07"),
            _ => drop(run(s, &format!("{sql} with dry_run"))),
        }
        let s = &mut harness::session(db);
        assert_eq!(rows(s, "show tables"), Vec::<String>::new(), "{way}");
        let wanted = match way {
            "cancel" => "canceled",
            "fail" => "failed",
            _ => "succeeded",
        };
        assert_eq!(run(s, "show jobs").rows[0][3], wanted);
        assert_eq!(pending_loads(db), 0, "{way}");
        // And once more, whole.
        files.put("big.sql", large(BIG));
        run(s, sql);
        assert_eq!(content(s)[0], format!("{BIG} rows, {BIG} different"));
    }
}

fn copy_in(s: &mut Session, sql: &str, data: &[u8]) {
    let statement = s.parse_script(sql).unwrap().pop().unwrap();
    let prepared = s.prepare(statement, &[]).unwrap();
    let Outcome::CopyIn(mut copy) = s.execute(&prepared, Vec::new()).unwrap() else {
        panic!("{sql} wants no data")
    };
    copy.feed(data).unwrap();
    copy.finish().unwrap();
}

/// What a load has brought to the disk before its transaction ends is erased when that has rolled
/// back, and never before.
#[test]
fn a_load_is_erased_only_if_its_transaction_has_gone() {
    let (db, mut s) = Files::new().database();
    let data: String = (0..BIG).map(|n| format!("{n}\t{n:0>150}\n")).collect();
    for end in ["commit", "rollback"] {
        run(&mut s, "begin; create table t (a int, b text)");
        copy_in(&mut s, "copy t from stdin", data.as_bytes());
        assert_eq!(pending_loads(&db), 1, "not a load: {end}");
        db.go_on_with_jobs().unwrap();
        assert_eq!(pending_loads(&db), 1);
        run(&mut s, "create index on t (a)");
        db.go_on_with_jobs().unwrap();
        run(&mut s, end);
        db.go_on_with_jobs().unwrap();
        assert_eq!(pending_loads(&db), 0, "{end}");
        if end == "commit" {
            assert_eq!(rows(&mut s, "select count(*) from t"), [BIG.to_string()]);
            assert_eq!(rows(&mut s, "select count(*) from t where a = 77"), ["1"]);
            run(&mut s, "drop table t");
        } else {
            assert_eq!(rows(&mut s, "show tables"), Vec::<String>::new());
        }
    }
}

/// At any moment, with any part of what was not synced: afterwards everything is there once.
#[test]
fn a_dump_that_a_crash_interrupts_goes_on_and_is_there_once() {
    let (first, rounds) =
        (given("BRAID_FIRST_SEED").unwrap_or(1), given("BRAID_SEEDS").unwrap_or(16));
    let files = Files::new();
    files.put("big.sql", large(BIG));
    let (mut again, mut done) = (0, 0);
    for seed in first..first + rounds {
        let random = &mut Random::seeded(seed);
        let fs = MemFs::new();
        let (_, s) = &mut files.database_on(&fs);
        let policy = [CrashPolicy::LoseAll, CrashPolicy::Random(50), CrashPolicy::KeepAll];
        let policy = policy[random.below(3) as usize];
        let size = ["512MB", "1", "40kB", "300kB"][random.below(4) as usize];
        let most = if size == "512MB" { 60 } else { 400 };
        fs.arm_crash(random.below(most), Random::seeded(seed), policy);
        run(s, &format!("import pgdump 'big.sql' with checkpoint_size = '{size}'"));
        let want = content(s);
        let crashed = fs.take_crash().unwrap_or_else(|| fs.crash_clone(random, policy));
        let (db, s) = &mut files.database_on(&crashed);
        let jobs = run(s, "show jobs").rows;
        let Some(job) = jobs.first() else { continue };
        if job[3] == "running" {
            assert_eq!(rows(s, "show tables"), Vec::<String>::new(), "seed {seed}");
            assert_eq!(db.resume_jobs().unwrap(), 1, "seed {seed}");
            let (state, error) = ended(s, &job[0]);
            assert_eq!(state, "succeeded", "seed {seed}: {error}");
            again += 1;
        } else {
            assert_eq!(db.resume_jobs().unwrap(), 0, "seed {seed}");
            done += 1;
        }
        assert_eq!(content(s), want, "seed {seed}");
        assert_eq!(pending_loads(db), 0, "seed {seed}");
    }
    assert!(rounds < 16 || (again > 4 && done > 0), "{again} again, {done} done");
}

/// The disk is full: the job waits, and goes on when there is room.
#[test]
fn a_full_disk_lets_a_dump_wait_until_it_is_resumed() {
    let files = Files::new();
    files.put("big.sql", large(BIG));
    let fs = MemFs::new();
    let (db, s) = &mut files.database_on(&fs);
    fs.set_capacity(fs.used() + (200 << 10));
    let e = error(s, "import pgdump 'big.sql'");
    assert_eq!(e.state().0, "53100", "{e:?}");
    assert!(e.hint().unwrap_or_default().contains("RESUME JOB"), "{e:?}");
    fs.set_capacity(u64::MAX);
    assert_eq!(rows(s, "show tables"), Vec::<String>::new());
    let job = run(s, "show jobs").rows[0].clone();
    if job[3] == "paused" {
        assert!(job[6].contains("room on the disk"), "{job:?}");
    }
    run(s, &format!("resume job {}", job[0]));
    let (state, error) = ended(s, &job[0]);
    assert_eq!(state, "succeeded", "{error}");
    assert_eq!(rows(s, "select count(*) from big"), [BIG.to_string()]);
    assert_eq!(pending_loads(db), 0);
}
