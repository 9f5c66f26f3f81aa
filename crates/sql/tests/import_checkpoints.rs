//! Imports that do not end in one go: crashes, restarts, full disks.

use crate::harness;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::harness::import_files::{Files, ended};
use crate::harness::{error, rows, run};
use braid_env::fs::{CrashPolicy, FileSystem, MemFs};
use braid_env::random::Random;
use braid_sql::Session;
use parking_lot::Mutex;

const ROWS: u64 = 12_000;

fn line(n: u64) -> String {
    format!("{n},{},{:0>120}\n", n * 7919 % 10_007, n)
}

fn content(s: &mut Session) -> Vec<String> {
    let mut all = rows(s, "select a, b, c from t");
    all.sort_unstable();
    for b in 0..20 {
        all.extend(rows(s, &format!("select count(*) from t where b = {b}")));
    }
    all
}

/// How many rows there are, and how many of them are different.
fn counts(s: &mut Session) -> (u64, u64) {
    let mut all = rows(s, "select a from t");
    let count = all.len() as u64;
    all.sort_unstable();
    all.dedup();
    (count, all.len() as u64)
}

fn bulk_files(fs: &MemFs) -> Vec<String> {
    let folder = Path::new("db/bulk");
    if fs.exists(folder).unwrap() { fs.list(folder).unwrap() } else { Vec::new() }
}

/// Rows come in an order that makes ssts, or one that makes runs; compressed or not.
fn put_files(files: &Files, random: &mut Random) {
    let mut numbers: Vec<u64> = (0..ROWS).collect();
    if random.below(2) == 0 {
        random.shuffle(&mut numbers);
    }
    for (n, part) in numbers.chunks(ROWS as usize / 3).enumerate() {
        let text: String = part.iter().map(|n| line(*n)).collect();
        let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
        files.remove(&format!("{n}.csv"));
        files.remove(&format!("{n}.csv.zst"));
        match random.below(2) {
            0 => files.put(&format!("{n}.csv"), text),
            _ => files.put(&format!("{n}.csv.zst"), packed),
        };
    }
}

/// At any moment, with any part of what was not synced: afterwards everything is there once. The
/// rows have no key of their own, so that those that came twice would stay.
#[test]
fn a_crash_at_any_moment_goes_on_from_the_last_checkpoint() {
    let given = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let (first, rounds) =
        (given("BRAID_FIRST_SEED").unwrap_or(1), given("BRAID_SEEDS").unwrap_or(24));
    let (mut from_note, mut again, mut done) = (0, 0, 0);
    for seed in first..first + rounds {
        let random = &mut Random::seeded(seed);
        let files = Files::new();
        put_files(&files, random);
        let mode = ["one_pass", "two_pass", "auto", "online"][random.below(4) as usize];
        let way = if mode == "online" {
            "online".into()
        } else {
            // Decompression takes one of them.
            format!("mode = {mode}, memory = '2MB', checkpoint_size = '200kB'")
        };
        let fs = MemFs::new();
        let (db, s) = &mut files.database_on(&fs);
        run(s, "create table t (a int, b int, c text); create index on t (b)");
        let crash: Arc<Mutex<Option<MemFs>>> = Arc::default();
        let (seen, wanted) = (AtomicU64::new(0), random.below(9));
        let (slot, source) = (crash.clone(), fs.clone());
        let policy = [CrashPolicy::LoseAll, CrashPolicy::Random(50), CrashPolicy::KeepAll];
        let policy = policy[random.below(3) as usize];
        if random.below(2) == 0 {
            // Right behind a checkpoint.
            db.jobs().listen(move |step| {
                if step.name == "checkpoint" && seen.fetch_add(1, Ordering::Relaxed) == wanted {
                    let clone = source.crash_clone(&mut Random::seeded(seed), policy);
                    slot.lock().get_or_insert(clone);
                }
            });
        } else {
            fs.arm_crash(random.below(160), Random::seeded(seed), policy);
        }
        run(s, &format!("import into t csv data ('*.csv*') with {way}"));
        let want = content(s);
        assert_eq!(rows(s, "select count(*) from t"), [ROWS.to_string()]);
        assert_eq!(bulk_files(&fs), Vec::<String>::new(), "seed {seed} {mode}");
        let crashed = crash.lock().take().or_else(|| fs.take_crash());
        let crashed = crashed.unwrap_or_else(|| fs.crash_clone(random, policy));
        let (db, s) = &mut files.database_on(&crashed);
        let jobs = run(s, "show jobs").rows;
        let Some(job) = jobs.first() else { continue };
        if bulk_files(&crashed).iter().any(|name| name.ends_with("-note")) {
            from_note += 1;
        }
        if job[3] == "running" {
            assert_eq!(db.resume_jobs().unwrap(), 1, "seed {seed}");
            let (state, error) = ended(s, &job[0]);
            assert_eq!(state, "succeeded", "seed {seed} {mode}: {error}");
            again += 1;
        } else {
            db.resume_jobs().unwrap();
            done += 1;
        }
        assert!(content(s) == want, "seed {seed} {mode}: {:?}", rows(s, "select count(*) from t"));
        assert_eq!(bulk_files(&crashed), Vec::<String>::new(), "seed {seed} {mode}");
    }
    let told = format!("{from_note} from a note, {again} again, {done} done");
    assert!(rounds < 20 || (from_note > 4 && again > 8), "{told}");
}

/// Goes on behind the checkpoint, which the number of rows that are read again shows.
#[test]
fn what_was_read_before_a_checkpoint_is_not_read_again() {
    for mode in ["one_pass", "two_pass", "auto"] {
        let files = Files::new();
        files.put("a.csv", (0..ROWS).map(line).collect::<String>());
        let fs = MemFs::new();
        let (db, s) = &mut files.database_on(&fs);
        // Each row that is put takes a number.
        run(s, "create sequence numbers");
        run(s, "create table t (a int, b int, c text, n bigint default nextval('numbers'))");
        let slot: Arc<Mutex<Vec<MemFs>>> = Arc::default();
        let (clones, source) = (slot.clone(), fs.clone());
        db.jobs().listen(move |step| {
            if step.name == "checkpoint" {
                let clone = source.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
                clones.lock().push(clone);
            }
        });
        let options = format!("mode = {mode}, memory = '1MB', checkpoint_size = '300kB'");
        run(s, &format!("import into t (a, b, c) csv data ('a.csv') with {options}"));
        let mut clones = std::mem::take(&mut *slot.lock());
        assert!(clones.len() >= 3, "{mode}: {}", clones.len());
        let last = clones.pop().unwrap();
        let (db, s) = &mut files.database_on(&last);
        let job = run(s, "show jobs").rows[0][0].clone();
        db.resume_jobs().unwrap();
        let (state, e) = ended(s, &job);
        assert_eq!(state, "succeeded", "{mode}: {e}");
        assert_eq!(counts(s), (ROWS, ROWS), "{mode}");
        let highest = rows(s, "select n from t").iter().map(|n| n.parse::<u64>().unwrap()).max();
        let highest = highest.unwrap();
        assert!(highest < ROWS + ROWS / 2, "{mode}: {highest}");
    }
}

/// A note that says something else than what is there does not count.
#[test]
fn a_checkpoint_counts_only_if_nothing_else_has_changed() {
    for change in ["files", "parent", "table", "damage"] {
        let files = Files::new();
        files.put("a.csv", (0..ROWS).map(line).collect::<String>());
        let fs = MemFs::new();
        let (db, s) = &mut files.database_on(&fs);
        run(
            s,
            "create table p (b int primary key);
             create table t (a int, b int references p, c text)",
        );
        let keys: Vec<String> = (0..10_007).map(|n| format!("({n})")).collect();
        run(s, &format!("insert into p values {}", keys.join(", ")));
        let slot: Arc<Mutex<Option<MemFs>>> = Arc::default();
        let (clone, source) = (slot.clone(), fs.clone());
        db.jobs().listen(move |step| {
            if step.name == "checkpoint" {
                let made = source.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
                *clone.lock() = Some(made);
            }
        });
        let options = "memory = '1MB', checkpoint_size = '300kB'";
        run(s, &format!("import into t csv data ('a.csv') with {options}"));
        let crashed = slot.lock().take().expect("there was a checkpoint");
        let (db, s) = &mut files.database_on(&crashed);
        let job = run(s, "show jobs").rows[0][0].clone();
        let (mut wanted, mut count) = ("succeeded", ROWS);
        match change {
            "files" => {
                files.put("a.csv", (0..ROWS + 5).map(line).collect::<String>());
                count = ROWS + 5;
            }
            "parent" => {
                run(s, "delete from p where b = 0");
                (wanted, count) = ("failed", 0);
            }
            "table" => {
                run(s, "alter table t add column d int default 7");
                run(s, "alter table t drop column d");
            }
            _ => {
                let name = bulk_files(&crashed).into_iter().find(|n| !n.ends_with("-note"));
                let path = Path::new("db/bulk").join(name.unwrap());
                crashed.open_write(&path).unwrap().set_len(10).unwrap();
            }
        }
        db.resume_jobs().unwrap();
        let (state, error) = ended(s, &job);
        assert_eq!(state, wanted, "{change}: {error}");
        assert_eq!(rows(s, "select count(*) from t"), [count.to_string()], "{change}");
        let left = left_in_the_end(&crashed);
        assert_eq!(left, Vec::<String>::new(), "{change}");
    }
}

/// Files of loads that stay. They go after the job's state is written, on its own thread.
fn left_in_the_end(fs: &MemFs) -> Vec<String> {
    for _ in 0..500 {
        let left = bulk_files(fs);
        if left.is_empty() {
            return left;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    bulk_files(fs)
}

/// The disk is full: the import pauses with the reason, and goes on when there is room.
#[test]
fn a_full_disk_lets_an_import_pause_until_it_is_resumed() {
    for (mode, compare) in [("one_pass", true), ("two_pass", true), ("auto", true), ("auto", false)]
    {
        let files = Files::new();
        let mut numbers: Vec<u64> = (0..ROWS).collect();
        Random::seeded(4).shuffle(&mut numbers);
        files.put("a.csv", numbers.iter().map(|n| line(*n)).collect::<String>());
        let fs = MemFs::new();
        let (_, s) = &mut files.database_on(&fs);
        run(s, "create table t (a int, b int, c text); create index on t (b)");
        let before = fs.used();
        fs.set_capacity(before + (200 << 10));
        let options = format!("mode = {mode}, memory = '1MB', checkpoint_size = '300kB'");
        let e = error(s, &format!("import into t csv data ('a.csv') with {options}"));
        assert_eq!(e.state().0, "53100", "{mode}: {e:?}");
        let hint = e.hint().unwrap_or_default().to_string();
        assert!(hint.contains("RESUME JOB"), "{hint}");
        fs.set_capacity(u64::MAX);
        let job = run(s, "show jobs").rows[0].clone();
        if job[3] == "paused" {
            assert!(job[6].contains("room on the disk"), "{job:?}");
        }
        assert_eq!(rows(s, "select count(*) from t"), ["0"]);
        if compare {
            run(s, &format!("resume job {}", job[0]));
            let (state, error) = ended(s, &job[0]);
            assert_eq!(state, "succeeded", "{mode}: {error}");
            assert_eq!(counts(s), (ROWS, ROWS), "{mode}");
        } else {
            run(s, &format!("cancel job {}", job[0]));
            assert_eq!(run(s, "show jobs").rows[0][3], "canceled");
            assert_eq!(rows(s, "select count(*) from t"), ["0"]);
        }
        assert_eq!(left_in_the_end(&fs), Vec::<String>::new(), "{mode}");
    }
}

#[test]
fn a_canceled_import_gives_its_space_back() {
    let files = Files::new();
    files.put("a.csv", (0..ROWS).map(line).collect::<String>());
    let fs = MemFs::new();
    let (db, s) = &mut files.database_on(&fs);
    run(s, "create table t (a int, b int, c text)");
    let canceler = Mutex::new(harness::session(db));
    db.jobs().listen(move |step| {
        if step.name == "checkpoint" {
            run(&mut canceler.lock(), &format!("cancel job {}", step.job));
        }
    });
    let options = "memory = '1MB', checkpoint_size = '300kB'";
    let e = error(s, &format!("import into t csv data ('a.csv') with {options}"));
    assert_eq!(e.state().0, "57014");
    let s = &mut harness::session(db);
    assert_eq!(bulk_files(&fs), Vec::<String>::new());
    assert_eq!(run(s, "show jobs").rows[0][3], "canceled");
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
}

/// Rows that were refused in front of a checkpoint are in the file of those, once.
#[test]
fn refused_rows_are_known_behind_a_checkpoint() {
    let files = Files::new();
    let bad = |n: u64| n.is_multiple_of(1000);
    let text = |n: u64| if bad(n) { format!("{n},x,bad\n") } else { line(n) };
    files.put("a.csv", (0..ROWS).map(text).collect::<String>());
    for way in ["memory = '1MB', checkpoint_size = '300kB'", "online"] {
        let fs = MemFs::new();
        let (db, s) = &mut files.database_on(&fs);
        run(s, "create table t (a int, b int, c text)");
        let slot: Arc<Mutex<Option<MemFs>>> = Arc::default();
        let (clone, source) = (slot.clone(), fs.clone());
        db.jobs().listen(move |step| {
            if step.name == "checkpoint" {
                let made = source.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
                *clone.lock() = Some(made);
            }
        });
        let bads = ROWS / 1000;
        let name = format!("{}.rejected", way.len());
        let options = format!("{way}, max_bad_rows = {bads}, reject_file = '{name}'");
        run(s, &format!("import into t csv data ('a.csv') with {options}"));
        let crashed = slot.lock().take().expect("there was a checkpoint");
        files.remove(&name);
        let (db, s) = &mut files.database_on(&crashed);
        let jobs = run(s, "show jobs").rows;
        if jobs[0][3] != "running" {
            continue;
        }
        db.resume_jobs().unwrap();
        let (state, error) = ended(s, &jobs[0][0]);
        assert_eq!(state, "succeeded", "{way}: {error}");
        assert_eq!(rows(s, "select count(*) from t"), [(ROWS - bads).to_string()], "{way}");
        let rejected = files.text(&name);
        assert_eq!(rejected.lines().count() as u64, bads, "{way}: {rejected}");
        assert!(rejected.contains("\"line\":1,"), "{way}: {rejected}");
    }
}
