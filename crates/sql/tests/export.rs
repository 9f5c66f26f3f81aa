//! EXPORT: files that IMPORT takes back, whole or not at all.

use crate::harness::import_files::Files;
use crate::harness::{error, rows, run, state, tag};
use braid_env::fs::{DiskFs, FileSystem};
use braid_sql::Session;

/// Every type that can be a column's, and values at their edges.
const TYPES: &[(&str, &[&str])] = &[
    ("bool", &["true", "false"]),
    ("int2", &["-32768", "32767"]),
    ("int4", &["-2147483648", "2147483647"]),
    ("int8", &["-9223372036854775808", "9223372036854775807"]),
    ("oid", &["0", "4294967295"]),
    ("float4", &["1e-38", "'NaN'", "'-Infinity'", "0.1"]),
    ("float8", &["1.7976931348623157e308", "'NaN'", "'Infinity'", "-0.0"]),
    ("numeric", &["'NaN'", "'-Infinity'", "1e-200", "123456789012345678901234567890.000"]),
    ("numeric(9,2)", &["1234567.89", "-0.01", "5"]),
    ("numeric(18,0)", &["999999999999999999", "-1"]),
    ("numeric(38,10)", &["1234567890123456789012345678.0123456789", "-0.0000000001"]),
    ("numeric(50,5)", &["123456789012345678901234567890123456789012345.12345"]),
    ("numeric(3,-2)", &["12300"]),
    ("text", &["''", "' lead'", "E'a\\tb\\nc\\r\\n'", "'\"quoted\", \\\\N'", "'\\.'", "'häß→☃'"]),
    ("varchar(5)", &["'ab   '", "''"]),
    ("char(4)", &["'ab'", "''"]),
    ("name", &["'a_name'"]),
    ("bytea", &["'\\x'", "'\\x00ff0a2c22'"]),
    ("date", &["'0044-03-15 BC'", "'2024-02-29'", "'5874897-12-31'"]),
    ("time", &["'00:00'", "'24:00:00'", "'23:59:59.999999'"]),
    ("timetz", &["'00:00+14'", "'12:34:56.789-08:30'"]),
    ("timestamp", &["'0001-01-01 00:00 BC'", "'1969-12-31 23:59:59.999999'"]),
    ("timestamptz", &["'2024-03-31 02:30:00+01'", "'1900-01-01 00:00Z'"]),
    ("interval", &["'-1 year 2 months -3 days 04:05:06.7'", "'0'", "'-00:00:00.000001'"]),
    ("uuid", &["'00000000-0000-0000-0000-0000000000ff'"]),
    ("jsonb", &["'null'", "'{\"a\": [1, null, \"x\\\\ny\"]}'", "'\"\"'", "'1.50'"]),
    ("json", &["'{\"b\":  1, \"a\": 2}'", "'null'"]),
    ("inet", &["'10.0.0.1/8'", "'::1'"]),
    ("cidr", &["'10.0.0.0/8'"]),
    ("macaddr", &["'08:00:2b:01:02:03'"]),
    ("macaddr8", &["'08:00:2b:01:02:03:04:05'"]),
    ("bit(3)", &["B'101'"]),
    ("varbit", &["B''", "B'10011'"]),
    ("money", &["'$1,234.56'", "'-$0.01'"]),
    ("int4range", &["'[1,5)'", "'empty'", "'(,)'"]),
    ("tstzrange", &["'[2020-01-01 00:00Z,)'"]),
    ("mood", &["'it''s; happy'", "'sad'"]),
    ("int4[]", &["'{}'", "'{1,NULL,-3}'"]),
    ("text[]", &["'{\"\",NULL,\"a,\\\"b\",NULL}'", "'{\"NULL\"}'"]),
    ("numeric(9,2)[]", &["'{1.50,NULL}'"]),
    ("timestamptz[]", &["'{\"2020-01-01 00:00Z\"}'"]),
    ("uuid[]", &["'{00000000-0000-0000-0000-0000000000ff}'"]),
    ("mood[]", &["'{sad}'"]),
    ("jsonb[]", &["'{\"{\\\"a\\\": 1}\"}'"]),
];

/// A table with a column of each type, and as many rows as the longest list has values; and one that
/// is empty and like it.
fn make(s: &mut Session) -> String {
    run(s, "create type mood as enum ('sad', 'it''s; happy')");
    let columns: Vec<String> =
        TYPES.iter().enumerate().map(|(n, (ty, _))| format!("c{n} {ty}")).collect();
    for table in ["t", "back"] {
        run(s, &format!("create table {table} (id int primary key, {})", columns.join(", ")));
    }
    let most = TYPES.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    for row in 0..=most {
        let value = |(ty, values): &(&str, &[&str])| match values.get(row) {
            Some(value) if value.starts_with("B'") => value.to_string(),
            Some(value) if value.contains('\'') => format!("{value}::{ty}"),
            Some(value) => format!("'{value}'::{ty}"),
            None => "NULL".to_string(),
        };
        let values: Vec<String> = TYPES.iter().map(value).collect();
        run(s, &format!("insert into t values ({row}, {})", values.join(", ")));
    }
    let texts: Vec<String> = (0..TYPES.len()).map(|n| format!("c{n}::text")).collect();
    texts.join(", ")
}

#[test]
fn every_type_comes_back_in_every_format() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    let texts = make(s);
    let want = rows(s, &format!("select id, {texts} from t order by id"));
    for (at, (format, options, import)) in [
        ("csv", "", ""),
        (
            "csv",
            "with header, delimiter = '|', nullas = '-', compression = gzip",
            "with header, delimiter = '|', nullif = '-'",
        ),
        ("csv", "with (quote = '''', compression = 'zstd', chunk_rows = 2)", "with (quote = '''')"),
        ("csv", "with escape = '\\', compression = bzip2", "with escape = '\\'"),
        ("parquet", "", ""),
        ("parquet", "with compression = none, chunk_rows = 1", ""),
        ("parquet", "with compression = zstd", ""),
        ("parquet", "with compression = gzip", ""),
    ]
    .into_iter()
    .enumerate()
    {
        // Whoever reads the files has other settings than who wrote them.
        run(
            s,
            "set datestyle = 'German, DMY'; set intervalstyle = 'sql_standard'; set timezone = 'Asia/Tokyo'; set bytea_output = 'escape'; set extra_float_digits = -3",
        );
        let export = format!("export into {format} 'out/{at}' {options} from table t");
        let answer = run(s, &export);
        assert_eq!(answer.tag, format!("EXPORT {}", want.len()), "{export}");
        let counted: u64 = answer.rows.iter().map(|row| row[1].parse::<u64>().unwrap()).sum();
        assert_eq!(counted, want.len() as u64, "{export}");
        run(s, "reset all; delete from back");
        let import = format!("import into back {format} data ('out/{at}/*') {import}");
        assert_eq!(tag(s, &import), format!("IMPORT {}", want.len()), "{import}");
        assert_eq!(rows(s, &format!("select id, {texts} from back order by id")), want, "{export}");
        for row in &answer.rows {
            let length = DiskFs.open(&files.0.join(&row[0])).unwrap().len().unwrap();
            assert_eq!(row[2], length.to_string(), "{export}");
        }
    }
}

#[test]
fn queries_are_exported_in_parts_of_a_size() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    run(s, "create table n (id int primary key, t text)");
    for part in 0..10 {
        let values: Vec<String> =
            (0..1000).map(|n| format!("({}, repeat('x', 50))", part * 1000 + n)).collect();
        run(s, &format!("insert into n values {}", values.join(",")));
    }
    let sql =
        "export into csv 'n' with chunk_size = '100KB' from select id, t from n where id < 5000";
    let answer = run(s, sql);
    assert!((3..=5).contains(&answer.rows.len()), "{:?}", answer.rows);
    assert!(answer.rows[0][0].starts_with("n/export-") && answer.rows[0][0].ends_with("-0000.csv"));
    run(s, "create table m (id int primary key, t text)");
    assert_eq!(tag(s, "import into m csv data ('n/*.csv')"), "IMPORT 5000");
    assert_eq!(
        rows(s, "select count(*), sum(id), min(t) from m"),
        [format!("5000|12497500|{}", "x".repeat(50))]
    );
    // Again into the same folder: other names.
    run(s, sql);
    // No rows: a file that says so.
    let answer = run(s, "export into parquet 'none' from select id, t from n where id < 0");
    assert_eq!((answer.rows.len(), &*answer.rows[0][1]), (1, "0"));
    assert_eq!(tag(s, "import into m parquet data ('none/*.parquet')"), "IMPORT 0");
    // In a block, rows of the block.
    run(s, "begin; insert into n values (-1, 'own')");
    assert_eq!(tag(s, "export into csv '.' from select * from n where id < 1"), "EXPORT 2");
    run(s, "rollback");
    run(s, "begin read only");
    assert_eq!(tag(s, "export into csv 'read' from table n"), "EXPORT 10000");
    run(s, "commit");
}

#[test]
fn what_fails_leaves_no_file() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    run(s, "create table t (id int primary key, d date, n numeric(5,2), a int[], ts timestamp)");
    for id in 1..=10 {
        run(s, &format!("insert into t values ({id}, '2020-01-01', 1, '{{1}}', '2020-01-01')"));
    }
    run(s, "create table dec (a text)");
    for (column, value) in [
        ("d", "'infinity'"),
        ("n", "'NaN'"),
        ("a", "'{{1,2}}'"),
        ("a", "'[0:0]={1}'"),
        ("ts", "'-infinity'"),
    ] {
        run(s, &format!("begin; update t set {column} = {value} where id = 7"));
        let e = error(s, "export into parquet 'x' with chunk_rows = 2 from table t");
        assert_eq!(e.state().0, "0A000");
        assert!(e.message().contains(&format!("column \"{column}\"")), "{e}");
        run(s, "rollback");
        assert_eq!(DiskFs.list(&files.0.join("x")).unwrap(), Vec::<String>::new());
        run(s, &format!("begin; update t set {column} = {value} where id = 7"));
        let sql = format!("export into parquet 'y' from select {column}::text as a from t");
        assert_eq!(tag(s, &sql), "EXPORT 10");
        run(s, "rollback");
    }
    assert_eq!(tag(s, "import into dec parquet data ('y/*')"), "IMPORT 50");
    assert_eq!(state(s, "export into csv 'x' from select 1 / (id - 5) from t"), "22012");
    assert_eq!(DiskFs.list(&files.0.join("x")).unwrap(), Vec::<String>::new());
    for (sql, wanted) in [
        ("export into csv '../x' from table t", "42501"),
        ("export into csv '/tmp/x' from table t", "42501"),
        ("export into csv 's3://b/x' from table t", "0A000"),
        ("export into orc 'x' from table t", "0A000"),
        ("export into csv 'x' with chunk_rows = 0 from table t", "22023"),
        ("export into csv 'x' with compression = snappy from table t", "22023"),
        ("export into parquet 'x' with compression = bzip2 from table t", "22023"),
        ("export into parquet 'x' with header from table t", "22023"),
        ("export into csv 'x' with header, header from table t", "22023"),
        ("export into csv 'x' with nullas = 'a,b' from table t", "22023"),
        ("export into csv 'x' from table nowhere", "42P01"),
        ("export into csv 'x' from table t where id = 1", "42601"),
        ("export into parquet 'x' from select id, id from t", "42701"),
        ("export into csv 'x'", "42601"),
    ] {
        assert_eq!(state(s, sql), wanted, "{sql}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/tmp", files.0.join("out")).unwrap();
        assert_eq!(state(s, "export into csv 'out/braid-export' from table t"), "42501");
        assert!(!std::path::Path::new("/tmp/braid-export").exists());
    }
}
