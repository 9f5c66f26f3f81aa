//! What an import holds: never more than it was given, and what does not fit says so.

use crate::harness::import_files::Files;
use crate::harness::{error, rows, run, state, tag};
use crate::import::{avro_file, packed};
use braid_env::random::Random;
use braid_sql::Session;

const ROWS: u64 = 14_000;

/// About 240 bytes, half of which compress.
fn text(n: u64) -> String {
    let mut random = Random::seeded(n);
    let digits: String = (0..6).map(|_| format!("{:016x}", random.next_u64())).collect();
    format!("{digits}{}", "x".repeat(120))
}

fn shuffled() -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..ROWS).collect();
    Random::seeded(3).shuffle(&mut numbers);
    numbers
}

fn csv(numbers: &[u64]) -> String {
    numbers.iter().map(|n| format!("{n},{},{}\n", n * 7919 % 1_000_003, text(*n))).collect()
}

fn jsonl(numbers: &[u64]) -> String {
    let row = |n: &u64| {
        let (k, t) = (n * 7919 % 1_000_003, text(*n));
        format!("{{\"id\": {n}, \"k\": {k}, \"t\": \"{t}\"}}\n")
    };
    numbers.iter().map(row).collect()
}

const AVRO: &str = r#"{"type": "record", "name": "r", "fields": [
    {"name": "id", "type": "long"}, {"name": "k", "type": "long"},
    {"name": "t", "type": "string"}]}"#;

fn avro(numbers: &[u64], codec: &str, rows_in_a_block: usize) -> Vec<u8> {
    let row = |n: &u64| {
        let mut out = Vec::new();
        avro_file::long(*n as i64, &mut out);
        avro_file::long((n * 7919 % 1_000_003) as i64, &mut out);
        avro_file::bytes(text(*n).as_bytes(), &mut out);
        out
    };
    let blocks: Vec<Vec<Vec<u8>>> =
        numbers.chunks(rows_in_a_block).map(|part| part.iter().map(row).collect()).collect();
    avro_file::file(AVRO, codec, &blocks)
}

fn make_table(s: &mut Session) {
    run(s, "create table t (id int primary key, k int, t text)");
    run(s, "create unique index on t (k); create index on t (t)");
}

/// The peak that an import tells, in MiB.
fn peak(s: &mut Session, sql: &str) -> u64 {
    s.take_notices();
    assert_eq!(tag(s, sql), format!("IMPORT {ROWS}"), "{sql}");
    let notices = s.take_notices();
    let told = notices.iter().find_map(|n| n.message.split("peak memory ").nth(1));
    let told = told.unwrap_or_else(|| panic!("{sql}: nothing went to the disk: {notices:?}"));
    told.split(' ').next().unwrap().parse().unwrap()
}

fn check(s: &mut Session, what: &str) {
    let found = rows(s, "select count(*), sum(id), sum(k) from t");
    let sum = (0..ROWS).sum::<u64>();
    let ks = (0..ROWS).map(|n| n * 7919 % 1_000_003).sum::<u64>();
    assert_eq!(found, [format!("{ROWS}|{sum}|{ks}")], "{what}");
    let one = format!("select id from t where t = '{}'", text(77));
    assert_eq!(rows(s, &one), ["77"], "{what}");
    run(s, "truncate t");
}

#[test]
fn no_import_holds_more_than_it_was_given() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    make_table(s);
    let numbers = shuffled();
    let (csv, jsonl) = (csv(&numbers), jsonl(&numbers));
    let (a, b) = csv.split_at(csv[..csv.len() / 2].rfind('\n').unwrap() + 1);
    files.put("1.csv", a).put("2.csv", b).put("a.jsonl", &jsonl);
    files.put("a.csv.gz", packed(csv.as_bytes(), "gzip"));
    files.put("a.csv.zst", packed(csv.as_bytes(), "zstd"));
    files.put("a.csv.bz2", packed(csv.as_bytes(), "bzip2"));
    files.put("a.avro", avro(&numbers, "null", 200));
    files.put("z.avro", avro(&numbers, "zstandard", 200));
    run(s, "create table other (id int, k int primary key, t text)");
    run(s, "import into other csv data ('1.csv', '2.csv')");
    run(s, "export into parquet 'p' with chunk_rows = '7000' from table other");
    let all = [
        ("csv data ('1.csv', '2.csv')", 1),
        ("jsonl data ('a.jsonl')", 1),
        ("csv data ('a.csv.gz')", 1),
        ("csv data ('a.csv.zst')", 4),
        ("csv data ('a.csv.bz2')", 4),
        ("avro data ('a.avro')", 1),
        ("avro data ('z.avro')", 4),
        ("parquet data ('p/*')", 16),
    ];
    for (what, least) in all {
        for mode in ["one_pass", "two_pass", "auto"] {
            for memory in [1, 4, 16] {
                // The last one is more than all rows take.
                if memory < least
                    || memory == 4 && (least < 4 || mode == "two_pass")
                    || memory == 16 && (mode != "auto" || least < 16)
                {
                    continue;
                }
                let sql = format!("import into t {what} with mode = {mode}, memory = '{memory}MB'");
                if memory > 1 {
                    s.take_notices();
                    assert_eq!(tag(s, &sql), format!("IMPORT {ROWS}"));
                    let told = s.take_notices();
                    let told = told.iter().find_map(|n| n.message.split("peak memory ").nth(1));
                    let peak = told.and_then(|told| told.split(' ').next()?.parse::<u64>().ok());
                    assert!(peak.is_none_or(|peak| peak <= memory), "{sql}: {peak:?}");
                } else {
                    let peak = peak(s, &sql);
                    assert!(peak <= memory, "{sql}: {peak}");
                }
                check(s, &sql);
            }
        }
        let sql = format!("import into t {what} with dry_run, memory = '{least}MB'");
        let report = rows(s, &sql);
        let peak = report.iter().find_map(|line| line.strip_prefix("peak memory in bytes|"));
        let peak: u64 = peak.unwrap().parse().unwrap();
        assert!((100 << 10..=least << 20).contains(&peak), "{sql}: {peak}");
    }
}

/// What an error's hint says would do.
fn enough(s: &mut Session, sql: &str) -> String {
    let e = error(s, sql);
    assert_eq!(e.state().0, "53200", "{sql}: {e:?}");
    let hint = e.hint().unwrap_or_default();
    let said = hint.split("memory = '").nth(1).unwrap_or_else(|| panic!("{sql}: {e:?}"));
    said.split('\'').next().unwrap().to_string()
}

#[test]
fn a_long_row_takes_what_it_needs_or_says_how_much_that_is() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    run(s, "create table t (id int primary key, k int unique, t text)");
    let long = |n: u64| "long row ".repeat((1 << 20) / 9 + n as usize);
    let mut numbers: Vec<u64> = (0..20).collect();
    Random::seeded(3).shuffle(&mut numbers);
    let row = |n: &u64| format!("{n},{n},{}\n", long(*n));
    let csv: String = numbers.iter().map(row).collect();
    let json = |n: &u64| format!("{{\"id\": {n}, \"k\": {n}, \"t\": \"{}\"}}\n", long(*n));
    let json: String = numbers.iter().map(json).collect();
    files.put("a.csv", &csv).put("a.jsonl", &json);
    for what in ["csv data ('a.csv')", "jsonl data ('a.jsonl')"] {
        for mode in ["one_pass", "two_pass", "auto"] {
            let sql = |memory: &str| {
                format!("import into t {what} with mode = {mode}, memory = '{memory}'")
            };
            let e = error(s, &sql("4MB"));
            let detail = e.detail().unwrap_or_default();
            assert!(detail.contains("line 1"), "{e:?}");
            assert_eq!(rows(s, "select count(*) from t"), ["0"]);
            let enough = enough(s, &sql("4MB"));
            let wanted: u64 = enough.trim_end_matches("MB").parse().unwrap();
            assert!((10..=24).contains(&wanted), "{enough}");
            s.take_notices();
            assert_eq!(tag(s, &sql(&enough)), "IMPORT 20", "{}", sql(&enough));
            let told = s.take_notices().iter().map(|n| n.message.clone()).collect::<String>();
            if let Some(peak) = told.split("peak memory ").nth(1) {
                let peak: u64 = peak.split(' ').next().unwrap().parse().unwrap();
                assert!(peak <= wanted, "{told}");
            }
            let lengths = rows(s, "select id, length(t) from t order by id");
            for (n, line) in lengths.iter().enumerate() {
                assert_eq!(*line, format!("{n}|{}", long(n as u64).len()));
            }
            run(s, "truncate t");
        }
    }
    // Several files: what one worker lacks another has.
    for n in 0..4 {
        files.put(&format!("{n}.part"), row(&n));
    }
    assert_eq!(tag(s, "import into t csv data ('*.part') with memory = '16MB'"), "IMPORT 4");
}

#[test]
fn what_no_setting_so_small_can_do_is_said_before_anything_is_read() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    let columns: Vec<String> = (0..24).map(|n| format!("c{n} int")).collect();
    run(s, &format!("create table t ({}, primary key (c0))", columns.join(", ")));
    (1..24).for_each(|n| _ = run(s, &format!("create index on t (c{n})")));
    let row = |n: u64| {
        let fields: Vec<String> = (0..24).map(|c| (n * 7919 % 10_007 + c).to_string()).collect();
        format!("{}\n", fields.join(","))
    };
    // It is not looked at yet.
    files.put("bad.csv", "no row\n").put("a.csv", (0..5000).map(row).collect::<String>());
    let sql = |file: &str, memory: &str| {
        format!("import into t csv data ('{file}') with memory = '{memory}'")
    };
    let enough = enough(s, &sql("bad.csv", "1MB"));
    assert_eq!(state(s, &sql("bad.csv", &enough)), "22P04");
    s.take_notices();
    assert_eq!(tag(s, &sql("a.csv", &enough)), "IMPORT 5000");
    let told = s.take_notices().iter().map(|n| n.message.clone()).collect::<String>();
    let peak = told.split("peak memory ").nth(1).unwrap().split(' ').next().unwrap().to_string();
    let wanted: u64 = enough.trim_end_matches("MB").parse().unwrap();
    assert!(peak.parse::<u64>().unwrap() <= wanted, "{told}");
    assert_eq!(rows(s, "select count(*) from t where c23 >= 0"), ["5000"]);
}

#[test]
fn a_dump_holds_what_it_was_given() {
    let files = Files::new();
    let numbers = shuffled();
    let line = |n: &u64| format!("{n}\t{}\t{}\n", n * 7919 % 1_000_003, text(*n));
    let data: String = numbers.iter().map(line).collect();
    files.put(
        "a.sql",
        format!(
            "CREATE TABLE public.t (id integer NOT NULL, k integer, t text);\n\
             COPY public.t (id, k, t) FROM stdin;\n{data}\\.\n\
             ALTER TABLE ONLY public.t ADD CONSTRAINT t_pkey PRIMARY KEY (id);\n\
             CREATE UNIQUE INDEX t_k ON public.t (k);\nCREATE INDEX t_t ON public.t (t);\n"
        ),
    );
    for memory in [4, 8, 32] {
        let (_, s) = &mut files.database();
        let report = rows(s, &format!("import pgdump 'a.sql' with memory = '{memory}MB'"));
        let peak = report.iter().find(|line| line.contains("peak memory in bytes"));
        let peak: u64 = peak.unwrap().rsplit('|').next().unwrap().parse().unwrap();
        assert!((500 << 10..=memory << 20).contains(&peak), "{memory}: {peak}");
        check(s, "dump");
    }
    let (_, s) = &mut files.database();
    assert_eq!(state(s, "import pgdump 'a.sql' with memory = '1MB'"), "22023");
}
