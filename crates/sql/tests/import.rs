//! IMPORT: files into tables, with what is wrong with them told by file, line and column.

use std::path::Path;
use std::sync::Arc;

use crate::harness::import_files::{Files, ended};
use crate::harness::{database, error, rows, run, session, state, tag};
use braid_env::random::Random;
use braid_sql::{Database, Session};

fn detail(s: &mut Session, sql: &str) -> (String, String) {
    let e = error(s, sql);
    (e.state().0.to_string(), e.detail().unwrap_or_default().to_string())
}

#[test]
fn csv_is_read_as_its_options_say() {
    let files = Files::new();
    files.put("a.csv", "id;x\n1;\"o;ne\"\n2;-\n\n").put("b.csv", "id;x\r\n3;c\r\nfour;d\r\n");
    let (_, s) = &mut files.database();
    run(s, "create table t (id int primary key, x text)");
    let sql = "import into t csv data ('a.csv') with delimiter = ';', nullif = '-', skip = '1'";
    assert_eq!(tag(s, sql), "IMPORT 2");
    assert_eq!(rows(s, "select * from t order by id"), ["1|o;ne", "2|NULL"]);
    run(s, "delete from t");
    let all = "import into t csv data ('*.csv') with options (delimiter = ';', header";
    let (found, place) = detail(s, &format!("{all})"));
    assert_eq!((&*found, &*place), ("22P02", "IMPORT INTO t, file \"b.csv\", line 3, column id"));
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
    assert_eq!(tag(s, &format!("{all}, row_limit = '3')")), "IMPORT 3");
    run(s, "delete from t");
    files.put("c.csv", "\u{feff}id,x\n# no row\n1,\"two\nlines\"\n2,\"\"\n3,\n4,#\n");
    let sql = "import into t csv data ('c.csv') with header = 'match', comment = '#'";
    assert_eq!(tag(s, sql), "IMPORT 4");
    let want = ["1|two\nlines", "2|", "3|NULL", "4|#"];
    assert_eq!(rows(s, "select * from t order by id"), want);
    files.put("d.csv", "x,id\nfive,5\n").put("q.csv", "6,6\"\n7,\"a\"b\n8,\"a\"\"b\"\n");
    let (found, place) = detail(s, "import into t csv data ('d.csv') with header = match");
    assert_eq!((&*found, &*place), ("22P04", "file \"d.csv\", line 1"));
    let named = "import into t (x, id) csv data ('nodelocal://1/d.csv') with header = match";
    assert_eq!(tag(s, named), "IMPORT 1");
    let strict = "import into t csv data ('q.csv') with strict_quotes";
    let (found, place) = detail(s, strict);
    assert_eq!((&*found, &*place), ("22P04", "IMPORT INTO t, file \"q.csv\", line 1, column x"));
    let e = error(s, "import into t csv data ('q.csv')");
    assert!(e.message().contains("extra data") || e.message().contains("unterminated"), "{e:?}");
    assert_eq!(state(s, "import into t csv data ('c.csv') with header, max_row_size = 4"), "54000");
}

#[test]
fn compressed_files_and_folders_of_them() {
    use std::io::Write;
    let files = Files::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"1,gzip\n").unwrap();
    let mut twice = gzip.finish().unwrap();
    let mut second = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    second.write_all(b"2,member\n").unwrap();
    twice.extend(second.finish().unwrap());
    let mut bzip = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip.write_all(b"3,bzip2\n").unwrap();
    files.put("in/a.csv.gz", &twice).put("in/b.csv.bz2", bzip.finish().unwrap());
    files.put("in/c.csv.ZST", zstd::encode_all(&b"4,zstd\n"[..], 1).unwrap());
    files.put("in/d.csv", "5,plain\n").put("x.bin", &twice);
    let (_, s) = &mut files.database();
    run(s, "create table t (id int primary key, x text)");
    assert_eq!(tag(s, "import into t csv data ('in/*')"), "IMPORT 5");
    let want = ["1|gzip", "2|member", "3|bzip2", "4|zstd", "5|plain"];
    assert_eq!(rows(s, "select * from t order by id"), want);
    run(s, "delete from t");
    assert_eq!(tag(s, "import into t csv data ('x.bin') with decompress = gzip"), "IMPORT 2");
    files.put("cut.csv.gz", &twice[..twice.len() - 9]);
    let (state, place) = detail(s, "import into t csv data ('cut.csv.gz')");
    assert_eq!(state, "22P04");
    assert!(place.contains("cut.csv.gz"), "{place}");
}

#[test]
fn nothing_is_read_outside_of_the_folder() {
    let files = Files::new();
    let outside = Files::new();
    outside.put("secret.csv", "1,x\n");
    files.put("in/a.csv", "1,x\n");
    let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, files.0.join(name)).unwrap();
    link(&outside.0.join("secret.csv"), "link.csv");
    link(&outside.0, "linked");
    link(&files.0.join("in/a.csv"), "own.csv");
    let (_, s) = &mut files.database();
    run(s, "create table t (id int primary key, x text)");
    let secret = outside.0.join("secret.csv").display().to_string();
    let up = format!("../{}/secret.csv", outside.0.file_name().unwrap().to_str().unwrap());
    let through = format!("in/../{up}");
    for path in [&*secret, "link.csv", "linked/secret.csv", "link*", &up, &through, "/etc/passwd"] {
        assert_eq!(state(s, &format!("import into t csv data ('{path}')")), "42501", "{path}");
    }
    assert_eq!(state(s, "import into t csv data ('none.csv')"), "58P01");
    assert_eq!(state(s, "import into t csv data ('none*')"), "58P01");
    assert_eq!(state(s, "import into t csv data ('in')"), "42809");
    assert_eq!(state(s, "import into t csv data ('s3://bucket/a.csv')"), "0A000");
    assert_eq!(state(s, "import into t csv data ('a.csv') with nonsense"), "22023");
    run(s, "begin");
    assert_eq!(state(s, "import into t csv data ('own.csv')"), "25001");
    run(s, "rollback");
    let whole = files.0.join("in/a.csv").display().to_string();
    assert_eq!(tag(s, "import into t csv data ('own.csv')"), "IMPORT 1");
    run(s, "delete from t");
    assert_eq!(tag(s, &format!("import into t csv data ('{whole}')")), "IMPORT 1");
    let mut bare = session(&database());
    run(&mut bare, "create table t (id int primary key, x text)");
    assert_eq!(state(&mut bare, "import into t csv data ('own.csv')"), "55000");
}

#[test]
fn json_lines_keep_what_csv_cannot() {
    let files = Files::new();
    let lines = concat!(
        r#"{"id": 1, "n": 12345678901234567890.123456789, "j": {"b": 1, "a": [1, null]}}"#,
        "\n\n",
        r#"[2, null, [1, 2.50], ["x", null]]"#,
        "\n",
        r#"{"id": 3, "j": null, "tags": ["a,b", "\""], "n": 1e3}"#,
        "\n"
    );
    files.put("a.jsonl", lines);
    let (_, s) = &mut files.database();
    run(s, "create table t (id int primary key, n numeric default 7, j jsonb, tags text[])");
    assert_eq!(tag(s, "import into t jsonl data ('a.jsonl')"), "IMPORT 3");
    let want = [
        "1|12345678901234567890.123456789|{\"a\": [1, null], \"b\": 1}|NULL",
        "2|NULL|[1, 2.50]|{x,NULL}",
        "3|1000|NULL|{\"a,b\",\"\\\"\"}",
    ];
    assert_eq!(rows(s, "select * from t order by id"), want);
    for (line, state, says) in [
        ("{\"id\": \"x\"}", "22P02", "line 1, column id"),
        ("{\"id\": 9, \"id2\": 1}", "42703", "line 1"),
        ("{\"id\": {}}", "42804", "line 1, column id"),
        ("{\"id\": [1]}", "42804", "line 1, column id"),
        ("[1]", "22P04", "line 1"),
        ("{\"id\": 1", "22P04", "line 1"),
        ("7", "22P04", "line 1"),
        ("{\"id\": null}", "23502", "line 1, column id"),
    ] {
        files.put("bad.jsonl", line);
        let found = detail(s, "import into t jsonl data ('bad.jsonl')");
        assert_eq!(found.0, state, "{line}");
        assert!(found.1.contains(&format!("file \"bad.jsonl\", {says}")), "{line}: {}", found.1);
    }
    files.put("more.jsonl", "{\"id\": 9, \"id2\": 1}");
    let sql = "import into t jsonl data ('more.jsonl') with ignore_unknown_fields";
    assert_eq!(tag(s, sql), "IMPORT 1");
    assert_eq!(rows(s, "select n from t where id = 9"), ["7"]);
}

/// Tables of all sorts, and rows for them.
const TABLES: &str = "
    create table p (id int primary key); create table r (id int primary key);
    create table flat (p int, k int, u int unique, n int default 5 check (n < 100), t text,
        r int references r, primary key (p, k)); create index on flat (t, n); create index on flat (n) where n > 50;
    create unique index on flat ((u + 1)); 
    create table inside (p int, k int, u int unique, n int default 5 check (n < 100), t text,
        r int references r, primary key (p, k)) interleave in parent p (p) on delete cascade;
    create index on inside (t, n); create index on inside (p, n) interleave in p";

fn make_tables(s: &mut Session) {
    run(s, TABLES);
    for (table, rows) in [("p", 100), ("r", 10)] {
        let values: Vec<String> = (0..rows).map(|n| format!("({n})")).collect();
        run(s, &format!("insert into {table} values {}", values.join(", ")));
    }
}

fn line(n: u64) -> String {
    let t = if n.is_multiple_of(7) { String::new() } else { format!("text {}", n * 7919 % 1000) };
    format!("{},{n},{},{},{t},{}\n", n % 100, n * 31 % 1_000_003, n % 100, n % 10)
}

/// An interleaved table and a flat one, from rows in every order, hold what INSERT makes of them.
#[test]
fn an_import_holds_what_inserts_make_in_every_order() {
    const ROWS: u64 = 3000;
    let files = Files::new();
    let (_, s) = &mut files.database();
    make_tables(s);
    let content = |s: &mut Session, table: &str| {
        let mut all = rows(s, &format!("select * from {table} order by p, k"));
        all.extend(rows(s, &format!("select p, k from {table} where t = 'text 838' order by k")));
        all.extend(rows(s, &format!("select u from {table} where u = 31")));
        all
    };
    for n in 0..ROWS {
        let row = line(n).trim().to_string();
        let cells: Vec<String> = row
            .split(',')
            .enumerate()
            .map(|(at, c)| match (at, c) {
                (4, "") => "null".into(),
                (4, c) => format!("'{c}'"),
                (_, c) => c.into(),
            })
            .collect();
        run(s, &format!("insert into flat values ({})", cells.join(", ")));
    }
    let want = content(s, "flat");
    let mut sorted: Vec<u64> = (0..ROWS).collect();
    sorted.sort_by_key(|n| (n % 100, *n));
    let mut shuffled = sorted.clone();
    Random::seeded(7).shuffle(&mut shuffled);
    let reversed: Vec<u64> = sorted.iter().rev().copied().collect();
    for (order, numbers) in [("sorted", sorted), ("random", shuffled), ("reversed", reversed)] {
        let (a, b) = numbers.split_at(numbers.len() / 3);
        files.put("1.csv", a.iter().map(|n| line(*n)).collect::<String>());
        files.put("2.csv", b.iter().map(|n| line(*n)).collect::<String>());
        for table in ["flat", "inside"] {
            run(s, &format!("delete from {table}"));
            let sql = format!("import into {table} csv data ('1.csv', '2.csv')");
            assert_eq!(tag(s, &sql), format!("IMPORT {ROWS}"), "{order}");
            assert!(content(s, table) == want, "{order} {table}");
        }
    }
    // Into a table that has rows: those stay, and the new ones come.
    run(s, "delete from flat where k >= 1000");
    files.put("3.csv", (1000..ROWS).map(line).collect::<String>());
    run(s, "import into flat csv data ('3.csv')");
    assert!(content(s, "flat") == want);
}

#[test]
fn violations_name_their_place_and_nothing_stays() {
    let files = Files::new();
    let (db, s) = &mut files.database();
    make_tables(s);
    let good = |n: u64| (0..n).map(line).collect::<String>();
    for (bad, state, says) in [
        ("5,5000,90001,100,x,1", "23514", "line 301"),
        ("5,5000,90001,1,x,77", "23503", "line 301"),
        ("5,5000,90001,1,x", "22P04", "line 301"),
        ("5,,90001,1,x,1", "23502", "line 301, column k"),
        ("5,5000,90001,1,\u{0}x,1", "22021", "line 301, column t"),
        ("0,0,90001,1,x,1", "23505", "line 301"),
        ("5,5000,31,1,x,1", "23505", "line 301"),
        ("5,5000,99999999999,1,x,1", "22003", "line 301, column u"),
    ] {
        files.put("bad.csv", format!("{}{bad}\n{}", good(300), line(300)));
        for table in ["flat", "inside"] {
            let found = detail(s, &format!("import into {table} csv data ('bad.csv')"));
            assert_eq!(found.0, state, "{bad}");
            let place = format!("IMPORT INTO {table}, file \"bad.csv\", {says}");
            assert!(found.1.contains(&place), "{bad}: {}", found.1);
            assert_eq!(rows(s, &format!("select count(*) from {table}")), ["0"], "{bad}");
        }
    }
    // The other row with the key is told, too; of a stored one there is none.
    files.put("bad.csv", format!("{}0,0,90001,1,x,1\n", good(5)));
    let (_, places) = detail(s, "import into flat csv data ('bad.csv')");
    assert!(places.contains("The same key is in file \"bad.csv\", line 1."), "{places}");
    run(s, "insert into flat values (3, 333, 0, 0)");
    files.put("bad.csv", good(5));
    let (_, place) = detail(s, "import into flat csv data ('bad.csv')");
    assert!(place.contains("file \"bad.csv\", line 1"), "the unique 0: {place}");
    run(s, "delete from p where id = 4");
    let (state, place) = detail(s, "import into inside csv data ('bad.csv')");
    assert_eq!(state, "23503", "the interleave parent");
    assert!(place.contains("line 5"), "{place}");
    assert_eq!(db.coordinator().describe_locks().lines, "");
    let jobs = rows(s, "show jobs");
    assert!(jobs.iter().all(|j| j.contains("|failed|")), "{jobs:?}");
}

#[test]
fn bad_rows_may_be_left_out_up_to_a_number() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    make_tables(s);
    run(s, "insert into flat values (1, 999, 77, 1)");
    // Misfits, violations, and keys that come twice or are there already.
    let lines = [
        "1,1,1,1,a,1",
        "x,2,2,1,a,1",
        "1,3,3,100,a,1",
        "1,1,4,1,a,1",
        "1,5,1,1,a,1",
        "1,6,77,1,a,1",
        "1,7,6,1,a,50",
        "1,8",
        "1,9,9,1,a,1",
        "1,999,10,1,a,1",
        "1,11,4,1,a,1",
    ];
    files.put("a.csv", lines.join("\n"));
    let sql = "import into flat csv data ('a.csv') with max_bad_rows =";
    let e = error(s, &format!("{sql} 7"));
    assert!(e.hint().unwrap_or_default().contains("max_bad_rows = 7"), "{e:?}");
    assert_eq!(rows(s, "select count(*) from flat"), ["1"]);
    assert_eq!(files.names(), ["a.csv"]);
    assert_eq!(tag(s, &format!("{sql} 8, reject_file = 'bad.jsonl'")), "IMPORT 3");
    let kept = rows(s, "select k, u from flat order by p, k");
    assert_eq!(kept, ["1|1", "9|9", "11|4", "999|77"]);
    let rejected: Vec<serde_json::Value> =
        files.text("bad.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let of = |key: &str| rejected.iter().map(|r| r[key].to_string()).collect::<Vec<_>>();
    assert_eq!(of("line"), ["2", "3", "4", "5", "6", "7", "8", "10"]);
    let states = ["22P02", "23514", "23505", "23505", "23505", "23503", "22P04", "23505"];
    assert_eq!(of("sqlstate"), states.map(|s| format!("\"{s}\"")));
    assert_eq!(rejected[0]["row"], "x,2,2,1,a,1");
    assert_eq!(rejected[0]["column"], "p");
    assert_eq!(state(s, &format!("{sql} 8, reject_file = 'bad.jsonl'")), "58P02");
    assert_eq!(rows(s, "select k, u from flat where u = 4"), ["11|4"]);
}

#[test]
fn a_dry_run_tells_all_and_changes_nothing() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    make_tables(s);
    let lines = ["1,1,1,1,a,1", "x,2,2,1,a,1", "1,3,3,100,a,1", "1,1,4,1,a,1", "1,5,5,1,a,1"];
    files.put("a.csv", lines.join("\n"));
    for table in ["flat", "inside"] {
        let sql = format!("import into {table} csv data ('a.csv') with dry_run");
        let report = run(s, &sql).rows;
        let value = |name: &str| {
            report.iter().find(|r| r[0] == name).map(|r| r[1].clone()).unwrap_or_default()
        };
        assert_eq!(value("rows"), "5");
        assert_eq!(value("rows that fit"), "2");
        assert_eq!(value("rows that do not fit"), "3");
        assert!(value("file \"a.csv\", line 2, column p").starts_with("22P02: "), "{report:?}");
        assert!(value("file \"a.csv\", line 3").starts_with("23514: "), "{report:?}");
        assert!(value("file \"a.csv\", line 4").starts_with("23505: "), "{report:?}");
        assert!(value("bytes before compression").parse::<u64>().unwrap() > 50);
        assert_eq!(rows(s, &format!("select count(*) from {table}")), ["0"]);
    }
    assert_eq!(rows(s, "show jobs"), [""; 0]);
}

pub(crate) mod parquet_file {
    use std::sync::Arc;

    use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
    use parquet::data_type::{
        BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArrayType, Int32Type, Int64Type,
    };
    use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::ColumnPath;

    pub const SCHEMA: &str = "message m {
        required int64 id; optional binary name (utf8); optional int32 day (date);
        optional int64 at (timestamp(micros, true)); optional int32 price (decimal(9, 2));
        optional double d; required boolean b; optional fixed_len_byte_array(16) u (uuid);
        optional group tags (list) { repeated group list { optional binary element (utf8); } } }";

    /// Row groups of rows `from..to`; every third optional value is NULL.
    pub fn write(groups: &[(i64, i64)], codec: usize) -> Vec<u8> {
        let codec = [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(GzipLevel::default()),
            Compression::ZSTD(ZstdLevel::default()),
        ][codec];
        write_as(groups, WriterProperties::builder().set_compression(codec))
    }

    /// The same as other programs write it: small pages, of either version, and all encodings.
    pub fn write_otherwise(groups: &[(i64, i64)], how: usize) -> Vec<u8> {
        let version = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0][how % 2];
        let mut properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_compression([Compression::UNCOMPRESSED, Compression::SNAPPY][how / 4 % 2])
            .set_data_page_size_limit(64)
            .set_write_batch_size(4);
        if how / 2 % 2 == 1 {
            properties = properties.set_dictionary_enabled(false);
            for (column, encoding) in [
                ("id", Encoding::DELTA_BINARY_PACKED),
                ("day", Encoding::DELTA_BINARY_PACKED),
                ("name", Encoding::DELTA_BYTE_ARRAY),
                ("d", Encoding::BYTE_STREAM_SPLIT),
            ] {
                properties = properties.set_column_encoding(ColumnPath::from(column), encoding);
            }
        }
        write_as(groups, properties)
    }

    fn write_as(groups: &[(i64, i64)], how: WriterPropertiesBuilder) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
        let properties = Arc::new(how.build());
        let mut out = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut out, schema, properties).unwrap();
        for (from, to) in groups {
            let ids: Vec<i64> = (*from..*to).collect();
            let some: Vec<i64> = ids.iter().copied().filter(|n| n % 3 != 0).collect();
            let levels: Vec<i16> = ids.iter().map(|n| i16::from(n % 3 != 0)).collect();
            let text = |n: &i64| ByteArray::from(format!("name {n}").into_bytes());
            let mut group = writer.next_row_group().unwrap();
            macro_rules! column {
                ($ty:ty, $values:expr, $levels:expr, $rep:expr) => {{
                    let mut column = group.next_column().unwrap().unwrap();
                    column.typed::<$ty>().write_batch(&$values, $levels, $rep).unwrap();
                    column.close().unwrap();
                }};
            }
            let int = |f: fn(i64) -> i32| some.iter().map(|n| f(*n)).collect::<Vec<i32>>();
            column!(Int64Type, ids, None, None);
            let names: Vec<ByteArray> = some.iter().map(text).collect();
            column!(ByteArrayType, names, Some(&levels), None);
            column!(Int32Type, int(|n| n as i32), Some(&levels), None);
            let at: Vec<i64> = some.iter().map(|n| n * 1_000_001).collect();
            column!(Int64Type, at, Some(&levels), None);
            column!(Int32Type, int(|n| -(n as i32) * 100 - 5), Some(&levels), None);
            let doubles: Vec<f64> = some.iter().map(|n| *n as f64 / 4.0).collect();
            column!(DoubleType, doubles, Some(&levels), None);
            let odd: Vec<bool> = ids.iter().map(|n| n % 2 == 1).collect();
            column!(BoolType, odd, None, None);
            let uuids: Vec<_> =
                some.iter().map(|n| ByteArray::from(vec![*n as u8; 16]).into()).collect();
            column!(FixedLenByteArrayType, uuids, Some(&levels), None);
            // By number: NULL, [], [NULL], ["name 3", "name 3"].
            let (mut def, mut rep, mut tags) = (Vec::new(), Vec::new(), Vec::new());
            for n in &ids {
                match n % 4 {
                    3 => {
                        def.extend([3, 3]);
                        rep.extend([0, 1]);
                        tags.extend([text(n), text(n)]);
                    }
                    level => {
                        def.push(level as i16);
                        rep.push(0);
                    }
                }
            }
            column!(ByteArrayType, tags, Some(&def), Some(&rep));
            group.close().unwrap();
        }
        writer.close().unwrap();
        out
    }
}

pub(crate) const TYPED: &str =
    "create table t (id bigint primary key, name text, day date, at timestamptz,
    price numeric(9, 2), d float8, b bool, u uuid, tags text[]); create index on t (name)";

#[test]
fn parquet_files_of_several_row_groups_and_codecs() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    run(s, TYPED);
    run(s, "set timezone = 'UTC'");
    for codec in 0..4 {
        files.put("a.parquet", parquet_file::write(&[(0, 5), (5, 3000), (3000, 3001)], codec));
        assert_eq!(tag(s, "import into t parquet data ('a.parquet')"), "IMPORT 3001");
        assert_eq!(rows(s, "select count(*) from t where name is null"), ["1001"]);
        let want = [
            "0|NULL|NULL|NULL|NULL|NULL|f|NULL|NULL",
            "1|name 1|1970-01-02|1970-01-01 00:00:01.000001+00|-1.05|0.25|t|\
             01010101-0101-0101-0101-010101010101|{}",
            "2|name 2|1970-01-03|1970-01-01 00:00:02.000002+00|-2.05|0.5|f|\
             02020202-0202-0202-0202-020202020202|{NULL}",
            "3|NULL|NULL|NULL|NULL|NULL|t|NULL|{\"name 3\",\"name 3\"}",
        ];
        assert_eq!(rows(s, "select * from t where id < 4 order by id"), want);
        assert_eq!(
            rows(s, "select id, tags from t where name = 'name 2999'"),
            ["2999|{\"name 2999\",\"name 2999\"}"]
        );
        run(s, "delete from t");
    }
    run(s, "create table n (id int primary key, name varchar(6), price int check (price > -900))");
    let sql = "import into n parquet data ('a.parquet')";
    assert_eq!(state(s, sql), "42703", "day has no column");
    let (state, place) = detail(s, &format!("{sql} with ignore_unknown_fields"));
    assert_eq!(
        (&*state, &*place),
        ("22001", "IMPORT INTO n, file \"a.parquet\", row 11, column name")
    );
    run(s, "alter table n alter column name type text");
    let (state, place) = detail(s, &format!("{sql} with ignore_unknown_fields"));
    assert_eq!(state, "23514");
    assert!(place.contains("file \"a.parquet\", row 902"), "{place}");
    run(s, "create table wrong (id bigint, tags int[])");
    let sql = "import into wrong parquet data ('a.parquet') with ignore_unknown_fields";
    let (state, place) = detail(s, sql);
    assert_eq!(state, "22P02");
    assert!(place.contains("row 4, column tags"), "{place}");
    let whole = parquet_file::write(&[(0, 50)], 1);
    for (name, content) in [
        ("empty", &[][..]),
        ("no footer", &whole[..whole.len() - 9]),
        ("other", b"PAR1 but nothing else PAR1"),
    ] {
        files.put("bad.parquet", content);
        let e = error(s, "import into t parquet data ('bad.parquet')");
        assert_eq!(e.state().0, "22P04", "{name}");
        assert!(e.message().contains("bad.parquet"), "{name}: {e}");
    }
}

pub(crate) mod avro_file {
    use std::io::Write;

    pub fn long(n: i64, out: &mut Vec<u8>) {
        let mut rest = ((n << 1) ^ (n >> 63)) as u64;
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    pub fn bytes(b: &[u8], out: &mut Vec<u8>) {
        long(b.len() as i64, out);
        out.extend_from_slice(b);
    }

    pub const CODECS: [&str; 5] = ["null", "deflate", "snappy", "zstandard", "bzip2"];

    fn compress(codec: &str, data: &[u8]) -> Vec<u8> {
        match codec {
            "null" => data.to_vec(),
            "deflate" => {
                let level = flate2::Compression::fast();
                let mut out = flate2::write::DeflateEncoder::new(Vec::new(), level);
                out.write_all(data).unwrap();
                out.finish().unwrap()
            }
            "snappy" => {
                let mut out = snap::raw::Encoder::new().compress_vec(data).unwrap();
                let mut crc = flate2::Crc::new();
                crc.update(data);
                out.extend(crc.sum().to_be_bytes());
                out
            }
            "zstandard" => zstd::encode_all(data, 1).unwrap(),
            _ => {
                let level = bzip2::Compression::fast();
                let mut out = bzip2::write::BzEncoder::new(Vec::new(), level);
                out.write_all(data).unwrap();
                out.finish().unwrap()
            }
        }
    }

    /// A file of blocks, each with its rows encoded.
    pub fn file(schema: &str, codec: &str, blocks: &[Vec<Vec<u8>>]) -> Vec<u8> {
        let mut out = b"Obj\x01".to_vec();
        long(2, &mut out);
        bytes(b"avro.schema", &mut out);
        bytes(schema.as_bytes(), &mut out);
        bytes(b"avro.codec", &mut out);
        bytes(codec.as_bytes(), &mut out);
        long(0, &mut out);
        let sync = *b"sixteen bytes ok";
        out.extend(sync);
        for rows in blocks {
            long(rows.len() as i64, &mut out);
            bytes(&compress(codec, &rows.concat()), &mut out);
            out.extend(sync);
        }
        out
    }

    pub const SCHEMA: &str = r#"{"type": "record", "name": "r", "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9,
            "scale": 2}},
        {"name": "d", "type": "double"}, {"name": "b", "type": "boolean"},
        {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "tags", "type": {"type": "array", "items": ["string", "null"]}}]}"#;

    pub fn row(n: i64) -> Vec<u8> {
        let mut out = Vec::new();
        long(n, &mut out);
        if n % 3 == 0 {
            out.extend([0, 0]);
        } else {
            long(1, &mut out);
            bytes(format!("name {n}").as_bytes(), &mut out);
            long(1, &mut out);
            long(n, &mut out);
        }
        long(n * 1001, &mut out);
        bytes(&(-(n as i32) * 100 - 5).to_be_bytes(), &mut out);
        out.extend((n as f64 / 4.0).to_le_bytes());
        out.push((n % 2) as u8);
        bytes(format!("{n:08}-0000-0000-0000-000000000000").as_bytes(), &mut out);
        if n % 4 > 0 {
            long(-2, &mut out);
            let mut block = Vec::new();
            long(0, &mut block);
            bytes(b"a", &mut block);
            long(1, &mut block);
            bytes(&block, &mut out);
        }
        out.push(0);
        out
    }
}

#[test]
fn avro_files_of_several_blocks_and_codecs() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    run(s, TYPED);
    run(s, "set timezone = 'UTC'");
    for codec in avro_file::CODECS {
        let blocks: Vec<Vec<Vec<u8>>> =
            [0..3, 3..3, 3..2500].map(|r| r.map(avro_file::row).collect()).to_vec();
        files.put("a.avro", avro_file::file(avro_file::SCHEMA, codec, &blocks));
        assert_eq!(tag(s, "import into t avro data ('a.avro')"), "IMPORT 2500", "{codec}");
        let want = [
            "0|NULL|NULL|1970-01-01 00:00:00+00|-0.05|0|f|00000000-0000-0000-0000-000000000000|{}",
            "1|name 1|1970-01-02|1970-01-01 00:00:01.001+00|-1.05|0.25|t|\
             00000001-0000-0000-0000-000000000000|{a,NULL}",
        ];
        assert_eq!(rows(s, "select * from t where id < 2 order by id"), want, "{codec}");
        assert_eq!(rows(s, "select count(*) from t where name is null"), ["834"]);
        run(s, "delete from t");
    }
    let nested = r#"{"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"},
        {"name": "j", "type": {"type": "map", "values": {"type": "record", "name": "x.in",
            "fields": [{"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}},
                {"name": "n", "type": "double"}, {"name": "again", "type": ["null", "e"]}]}}}]}"#;
    let row = |id: u8, symbol: u8| {
        let mut row = vec![id << 1, 2];
        avro_file::bytes(b"k", &mut row);
        row.push(symbol << 1);
        row.extend(1.5f64.to_le_bytes());
        row.extend([2, 0, 0]);
        row
    };
    run(s, "create table j (id int primary key, j jsonb)");
    files.put("j.avro", avro_file::file(nested, "null", &[vec![row(1, 1)]]));
    assert_eq!(tag(s, "import into j avro data ('j.avro')"), "IMPORT 1");
    let want = ["1|{\"k\": {\"e\": \"B\", \"n\": 1.5, \"again\": \"A\"}}"];
    assert_eq!(rows(s, "select * from j"), want);
    files.put("j.avro", avro_file::file(nested, "null", &[vec![row(2, 1), row(3, 2)]]));
    let (state, place) = detail(s, "import into j avro data ('j.avro')");
    assert_eq!((&*state, &*place), ("22P04", "file \"j.avro\", row 2"));
    let whole = avro_file::file(avro_file::SCHEMA, "snappy", &[vec![avro_file::row(1)]]);
    let mut flipped = whole.clone();
    let at = flipped.len() - 30;
    flipped[at] ^= 1;
    let lzma = avro_file::file(avro_file::SCHEMA, "null", &[]);
    let lzma = String::from_utf8_lossy(&lzma).replace("null", "lzma").into_bytes();
    for (content, state) in
        [(&whole[..whole.len() - 3], "22P04"), (&flipped[..], "22P04"), (b"Obj", "22P04")]
    {
        files.put("bad.avro", content);
        let e = error(s, "import into t avro data ('bad.avro')");
        assert_eq!(e.state().0, state);
        assert!(e.message().contains("bad.avro"), "{e}");
    }
    assert!(!lzma.is_empty());
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
}

/// Bytes as a file of some compression.
pub(crate) fn packed(bytes: &[u8], packing: &str) -> Vec<u8> {
    use std::io::Write;
    match packing {
        "gzip" => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        }
        "bzip2" => {
            let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        }
        "zstd" => zstd::encode_all(bytes, 1).unwrap(),
        _ => bytes.to_vec(),
    }
}

#[test]
fn an_import_is_a_job_that_can_pause_go_on_and_be_canceled() {
    let files = Files::new();
    let (db, s) = &mut files.database();
    make_tables(s);
    files.put("a.csv", (0..20_000).map(line).collect::<String>());
    for (how, wanted) in [("resume", "succeeded"), ("cancel", "canceled")] {
        run(s, "delete from flat");
        // In front of the first row it is told to pause.
        let paused_by = parking_lot::Mutex::new(session(db));
        db.jobs().listen(move |step| {
            if step.name == "read" {
                run(&mut paused_by.lock(), &format!("pause job {}", step.job));
            }
        });
        let answer = run(s, "import into flat csv data ('a.csv') with detached");
        let job = &answer.rows[0][0];
        assert_eq!(&answer.rows[0][1..3], ["running", "0"]);
        let listed =
            |s: &mut Session| run(s, "show jobs").rows.into_iter().find(|j| j[0] == *job).unwrap();
        while listed(s)[3] != "paused" {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(listed(s)[1], "import");
        assert_eq!(rows(s, "select count(*) from flat"), ["0"]);
        db.jobs().listen(|_| {});
        run(s, &format!("{how} job {job}"));
        let (state, error) = ended(s, job);
        assert_eq!(state, wanted, "{error}");
        let count = if how == "resume" { "20000" } else { "0" };
        assert_eq!(rows(s, "select count(*) from flat"), [count]);
        assert_eq!(error_state(s, &format!("pause job {job}")), "55000");
        run(s, "insert into flat values (1, 1000000, 1000001)");
    }
    // What fails is told where nobody waits, too.
    files.put("b.csv", "1,x,1,1,a,1\n");
    let job = run(s, "import into flat csv data ('b.csv') with detached").rows[0][0].clone();
    let (state, error) = ended(s, &job);
    assert_eq!(state, "failed");
    assert!(error.contains("file \"b.csv\", line 1, column k"), "{error}");
}

fn error_state(s: &mut Session, sql: &str) -> &'static str {
    state(s, sql)
}

/// Whenever the node dies, the import is there once afterwards, whole.
#[test]
fn an_import_that_a_crash_interrupts_begins_again_and_is_there_once() {
    use braid_env::clock::WallClock;
    use braid_env::fs::{CrashPolicy, MemFs};
    use braid_kv::{Store, StoreOptions};
    const ROWS: u64 = 4000;
    let files = Files::new();
    files.put("a.csv", (0..ROWS).map(|n| format!("{n},{}\n", n % 7)).collect::<String>());
    let open = |fs: &MemFs| {
        let mut options = StoreOptions::new(Arc::new(fs.clone()), "db", Arc::new(WallClock));
        options.engine.row_class = braid_keys::row_class;
        let store = Store::open(options).unwrap();
        let general = Arc::new(braid_sql::NoGeneralQueries);
        let db = Database::open(store.coordinator(), general).unwrap();
        db.set_import_folder(&files.0);
        db
    };
    let (mut again, mut never, mut done) = (0, 0, 0);
    let random = &mut Random::seeded(11);
    for round in 0..24 {
        let fs = MemFs::new();
        let db = open(&fs);
        let s = &mut session(&db);
        // No primary key: rows that came twice would stay.
        run(
            s,
            "create table t (a int, b int); create index on t (b); insert into t values (-1, 0)",
        );
        let policy = [CrashPolicy::LoseAll, CrashPolicy::Random(50), CrashPolicy::KeepAll];
        fs.arm_crash(random.below(40), Random::seeded(round), policy[round as usize % 3]);
        run(s, "import into t csv data ('a.csv')");
        let crashed = fs.take_crash().unwrap_or_else(|| fs.crash_clone(random, policy[0]));
        let db = open(&crashed);
        let s = &mut session(&db);
        let jobs = run(s, "show jobs").rows;
        let before = rows(s, "select count(*) from t")[0].clone();
        match jobs.first().map(|j| &*j[3]) {
            None => never += 1,
            Some("succeeded") => done += 1,
            _ => again += 1,
        }
        let resumed = db.resume_jobs().unwrap();
        let whole = (ROWS + 1).to_string();
        match jobs.first() {
            Some(job) if job[3] == "running" => {
                assert_eq!((resumed, &*before), (1, "1"), "round {round}");
                assert_eq!(ended(s, &job[0]).0, "succeeded", "round {round}");
                assert_eq!(rows(s, "select count(*) from t"), [&*whole], "round {round}");
            }
            Some(job) => assert_eq!((&*job[3], &*before), ("succeeded", &*whole), "round {round}"),
            None => assert_eq!((resumed, &*before), (0, "1"), "round {round}"),
        }
        if !jobs.is_empty() {
            let counted = rows(s, "select count(*) from t where b = 3");
            assert_eq!(counted, [(ROWS / 7 + u64::from(ROWS % 7 > 3)).to_string()]);
        }
        assert_eq!(db.resume_jobs().unwrap(), 0);
    }
    assert!(again > 3 && done > 0, "again {again}, never {never}, done {done}");
}
