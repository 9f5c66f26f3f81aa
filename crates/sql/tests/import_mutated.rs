//! Damaged files: an error that names its place, or rows; never a panic, never a part of a file.

use crate::harness::import_files::{Files, mutate};
use crate::harness::{rows, run, try_run};
use crate::import::{TYPED, avro_file, packed, parquet_file};
use braid_env::random::Random;
use braid_sql::Session;
use braid_types::SqlError;

/// A file to begin with: its format, how it is compressed, and what is in it.
type Seed = (&'static str, &'static str, Vec<u8>);

fn seeds() -> Vec<Seed> {
    let csv = (0..40)
        .map(|n| {
            format!("{n},\"name {n}\",2020-01-{:02},2020-01-01,1.5,2,t,,\"{{a,b}}\"\n", n % 28 + 1)
        })
        .collect::<String>();
    let json = (0..40)
        .map(|n| format!("{{\"id\": {n}, \"name\": \"n\", \"d\": 1.5, \"tags\": [\"a\", null]}}\n"))
        .collect::<String>();
    let lists = (0..40)
        .map(|n| format!("[{n}, \"n\\u00e9\", null, null, 1.5, 2, true, null, [\"a\"]]\n"))
        .collect::<String>();
    let rows_of = |r: std::ops::Range<i64>| r.map(avro_file::row).collect::<Vec<_>>();
    let mut out: Vec<Seed> = Vec::new();
    for packing in ["none", "gzip", "zstd", "bzip2"] {
        out.push(("csv", packing, packed(csv.as_bytes(), packing)));
        out.push(("jsonl", packing, packed(json.as_bytes(), packing)));
    }
    out.push(("csv", "none", csv.replace('\n', "\r\n").into_bytes()));
    out.push(("jsonl", "none", lists.into_bytes()));
    // Of several members, which are files of their own.
    let (head, tail) = csv.as_bytes().split_at(csv.len() / 2);
    for packing in ["gzip", "zstd", "bzip2"] {
        out.push(("csv", packing, [packed(head, packing), packed(tail, packing)].concat()));
    }
    for codec in 0..4 {
        out.push(("parquet", "", parquet_file::write(&[(0, 20), (20, 40)], codec)));
    }
    for how in 0..8 {
        out.push(("parquet", "", parquet_file::write_otherwise(&[(0, 20), (20, 40)], how)));
    }
    for codec in avro_file::CODECS {
        let blocks = [rows_of(0..20), rows_of(20..40)];
        out.push(("avro", "", avro_file::file(avro_file::SCHEMA, codec, &blocks)));
    }
    out
}

/// A statement that imports `m`; and whether rows may stay behind when it fails.
fn statement(seed: u64, (format, packing, _): &Seed, random: &mut Random) -> (String, bool) {
    let table = ["t", "t", "t", "parted"][random.below(4) as usize];
    let mode = ["auto", "one_pass", "two_pass"][random.below(3) as usize];
    let memory = match *packing {
        "zstd" | "bzip2" => 8,
        _ => 1,
    };
    let mut options = format!("mode = {mode}, memory = '{memory}MB'");
    let mut online = false;
    match random.below(12) {
        0 => (online, options) = (true, "online".into()),
        1 => options.push_str(", dry_run"),
        2 => options.push_str(&format!(", max_bad_rows = 100, reject_file = 'rejected {seed}'")),
        3 => options.push_str(", row_limit = 7"),
        4 => options.push_str(", checkpoint_size = '1kB'"),
        5 if *format == "csv" => options.push_str(", strict_quotes"),
        6 if *format == "csv" => options.push_str(", header = match"),
        _ => {}
    }
    if *format != "csv" {
        options.push_str(", ignore_unknown_fields");
    }
    if !packing.is_empty() {
        options.push_str(&format!(", decompress = {packing}"));
    }
    if *format == "csv" && *packing == "none" && random.below(6) == 0 {
        return (format!("copy {table} from 'm' with (format csv)"), false);
    }
    (format!("import into {table} {format} data ('m') with {options}"), online)
}

fn names_its_place(seed: u64, format: &str, sql: &str, e: &SqlError) {
    let parts = [Some(e.message()), e.detail(), e.context()];
    let told = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    assert!(told.contains("\"m\""), "seed {seed}: {sql}: {e:?} names no file");
    // Of a file without lines: as near as its format tells.
    let places = match format {
        "csv" | "jsonl" => &["line "][..],
        _ => &["row ", "row group ", "block ", "byte ", "header", "footer"][..],
    };
    let has_place = places.iter().any(|place| told.contains(place));
    assert!(has_place, "seed {seed}: {sql}: {e:?} names no place");
    assert!(!e.state().0.starts_with("XX"), "seed {seed}: {sql}: {e:?}");
}

fn count(s: &mut Session) -> u64 {
    let mut of = |table| rows(s, &format!("select count(*) from {table}"))[0].parse::<u64>();
    of("t").unwrap() + of("parted").unwrap()
}

/// BRAID_SEEDS says how many.
#[test]
fn mutated_files_are_errors_or_rows_and_never_half() {
    let given = |name| std::env::var(name).ok().and_then(|n: String| n.parse::<u64>().ok());
    let (first, rounds) =
        (given("BRAID_FIRST_SEED").unwrap_or(1), given("BRAID_SEEDS").unwrap_or(400));
    let files = Files::new();
    let (_, s) = &mut files.database();
    run(s, TYPED);
    run(s, "create table parted (like t including all) partition by range (id)");
    run(s, "create table low partition of parted for values from (minvalue) to (20)");
    run(s, "create table high partition of parted for values from (20) to (maxvalue)");
    let seeds = seeds();
    for seed in first..first + rounds {
        let random = &mut Random::seeded(seed);
        let of = &seeds[random.below(seeds.len() as u64) as usize];
        let mut content = of.2.clone();
        for _ in 0..random.between(1, 6) {
            mutate(&mut content, random);
        }
        files.put("m", &content);
        let (sql, online) = statement(seed, of, random);
        let done = try_run(s, &sql, &[]);
        let there = count(s);
        match done {
            Ok(answer) => {
                // A dry run has none of them.
                let wanted = match sql.contains("dry_run") {
                    true => 0,
                    false => answer.tag.rsplit(' ').next().unwrap().parse().unwrap(),
                };
                assert_eq!(there, wanted, "seed {seed}: {sql}: {}", answer.tag);
            }
            Err(e) => {
                assert!(online || there == 0, "seed {seed}: {sql}: {there} rows, {e:?}");
                names_its_place(seed, of.0, &sql, &e);
            }
        }
        if there > 0 {
            run(s, "delete from t; delete from parted");
        }
        files.remove(&format!("rejected {seed}"));
    }
}

/// A field behind the last column that is wrong itself.
#[test]
fn a_stray_quote_behind_the_last_column_is_an_error_of_its_line() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    run(s, "create table t (a int primary key, b text)");
    files.put("m", "1,x\n2,y,z\"z,3\n4,v\n");
    let e = crate::harness::error(s, "import into t csv data ('m') with strict_quotes");
    assert_eq!((e.state().0, e.detail()), ("22P04", Some("IMPORT INTO t, file \"m\", line 2")));
    let sql = "import into t csv data ('m') with strict_quotes, max_bad_rows = 1";
    run(s, sql);
    assert_eq!(rows(s, "select * from t order by a"), ["1|x", "4|v"]);
}
