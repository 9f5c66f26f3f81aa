//! What is understood of Spanner's and CockroachDB's own grammar: each line is run, and
//! `docs/dialects.md` is written from them (`WRITE_DOCS=1 cargo test --workspace --test query dialects::`).

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::harness::Db;

/// Whose grammar, a statement, the SQLSTATE it is refused with (or nothing), what it does or why not.
struct Line(&'static str, &'static str, &'static str, &'static str);

const SPANNER: &str = "Spanner";
const COCKROACH: &str = "CockroachDB";

const LINES: &[Line] = &[
    Line(
        SPANNER,
        "CREATE TABLE Singers (SingerId INT64 NOT NULL, Name STRING(MAX), Born DATE, Photo \
            BYTES(MAX),) PRIMARY KEY (SingerId)",
        "",
        "GoogleSQL's types, the key behind the columns, a comma after the last",
    ),
    Line(
        SPANNER,
        "CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Year INT64, \
            Decade INT64 AS (Year / 10 * 10) STORED) PRIMARY KEY (SingerId, AlbumId DESC), INTERLEAVE IN PARENT Singers ON DELETE CASCADE",
        "",
        "see `docs/interleaving.md`; generated columns, STORED or not, are kept",
    ),
    Line(
        SPANNER,
        "CREATE TABLE Notes (SingerId INT64 NOT NULL, N INT64) PRIMARY KEY (SingerId, N), \
            INTERLEAVE IN Singers",
        "",
        "for locality only",
    ),
    Line(SPANNER, "ALTER TABLE Albums SET ON DELETE NO ACTION", "", "at once"),
    Line(
        SPANNER,
        "ALTER TABLE Notes SET INTERLEAVE IN PARENT Singers ON DELETE CASCADE",
        "",
        "rows are validated; in one step",
    ),
    Line(
        SPANNER,
        "CREATE INDEX ByYear ON Albums (SingerId, Year) STORING (Decade), INTERLEAVE IN Singers",
        "",
        "also INCLUDE",
    ),
    Line(
        SPANNER,
        "ALTER INDEX ByYear DROP STORED COLUMN Decade",
        "",
        "also ADD; its entries are written anew, writers wait",
    ),
    Line(
        SPANNER,
        "CREATE NULL_FILTERED INDEX ByBirth ON Singers (Born)",
        "",
        "a partial index: `WHERE \"Born\" IS NOT NULL`",
    ),
    Line(
        SPANNER,
        "ALTER TABLE Singers ALTER COLUMN Name STRING(100) NOT NULL",
        "",
        "without NOT NULL the column takes NULLs",
    ),
    Line(
        SPANNER,
        "CREATE SEQUENCE Ids OPTIONS (sequence_kind = 'bit_reversed_positive', skip_range_min \
            = 1, skip_range_max = 1000)",
        "",
        "also `BIT_REVERSED_POSITIVE SKIP RANGE 1, 1000 START COUNTER WITH 1`",
    ),
    Line(SPANNER, "SELECT GET_NEXT_SEQUENCE_VALUE(SEQUENCE Ids)", "", "is nextval"),
    Line(
        SPANNER,
        "INSERT OR UPDATE Singers (SingerId, Name) VALUES (1, 'a'), (2, 'b')",
        "",
        "a row that is there gets the values that are given; its children stay",
    ),
    Line(
        SPANNER,
        "INSERT OR IGNORE INTO Singers (SingerId, Name) VALUES (1, 'x') THEN RETURN SingerId",
        "",
        "is RETURNING",
    ),
    Line(
        SPANNER,
        "INSERT OR REPLACE INTO Singers (SingerId, Name) VALUES (1, 'x')",
        "0A000",
        "it would delete the row, and its children with it",
    ),
    Line(
        SPANNER,
        "SELECT `Name`, FROM Singers@{FORCE_INDEX=_BASE_TABLE} WHERE SingerId IN UNNEST([1, 2])",
        "",
        "backticks; hints are ignored with a notice",
    ),
    Line(
        SPANNER,
        "SELECT s.SingerId, ARRAY(SELECT AS STRUCT a.* FROM Albums a WHERE a.SingerId = \
            s.SingerId) AS albums FROM Singers s",
        "",
        "an array of rows",
    ),
    Line(SPANNER, "SELECT STRUCT(1 AS a, 'x' AS b)", "", "a row; its fields have no names"),
    Line(SPANNER, "SELECT AS STRUCT * FROM Singers", "0A000", "name the table: `s.*`"),
    Line(SPANNER, "SELECT GENERATE_UUID()", "", "of type uuid"),
    Line(
        SPANNER,
        "CREATE TABLE Tagged (Id INT64, Tags ARRAY<STRING(MAX)>, Sizes ARRAY<INT64> NOT NULL) \
         PRIMARY KEY (Id)",
        "",
        "arrays are PostgreSQL's: `text[]`; also `ARRAY<INT64>[1, 2]`",
    ),
    Line(
        SPANNER,
        "CREATE VIEW Names SQL SECURITY INVOKER AS SELECT Singers.Name FROM Singers",
        "",
        "",
    ),
    Line(SPANNER, "CREATE TABLE One (a INT64) PRIMARY KEY ()", "0A000", "declare a key column"),
    Line(
        SPANNER,
        "CREATE TABLE Stamped (Id INT64, At TIMESTAMP OPTIONS (allow_commit_timestamp = true)) \
         PRIMARY KEY (Id)",
        "",
        "also `At SPANNER.COMMIT_TIMESTAMP`; the column is a timestamptz; it cannot be in the future",
    ),
    Line(
        SPANNER,
        "INSERT INTO Stamped (Id, At) VALUES (9, PENDING_COMMIT_TIMESTAMP())",
        "",
        "also in UPDATE, INSERT OR UPDATE, MERGE and the select list of INSERT .. SELECT, and as \
         `SPANNER.PENDING_COMMIT_TIMESTAMP()`; the transaction itself cannot read it",
    ),
    Line(
        SPANNER,
        "ALTER TABLE Stamped ALTER COLUMN At SET OPTIONS (allow_commit_timestamp = null)",
        "",
        "also `= true`: no row may be in the future",
    ),
    Line(
        SPANNER,
        "CREATE TABLE Log (Id INT64, At TIMESTAMP OPTIONS (allow_commit_timestamp = true)) \
         PRIMARY KEY (Id, At DESC)",
        "",
        "also in keys of indexes; on a node alone: not in a cluster",
    ),
    Line(
        SPANNER,
        "INSERT INTO Log (Id, At) VALUES (1, PENDING_COMMIT_TIMESTAMP())",
        "",
        "until its commit the transaction cannot scan where the row is going to be (55000); at most \
         10,000 writes beside such keys",
    ),
    Line(
        SPANNER,
        "CREATE TABLE Counted (Id INT64 GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE)) \
         PRIMARY KEY (Id)",
        "0A000",
        "`CREATE SEQUENCE s BIT_REVERSED_POSITIVE`, and `DEFAULT nextval('s')`",
    ),
    Line(
        SPANNER,
        "SELECT SAFE_CAST('x' AS INT64), SAFE.SUBSTR('abc', 1, -1), SAFE_DIVIDE(1, 0)",
        "",
        "NULL where it fails",
    ),
    Line(
        SPANNER,
        "SELECT IF(TRUE, 1, 2), IFNULL(NULL, 1), COUNTIF(SingerId > 1), LOGICAL_AND(TRUE), \
         ANY_VALUE(Name HAVING MAX SingerId), ARRAY_AGG(Name IGNORE NULLS ORDER BY Name LIMIT 2), \
         STRING_AGG(Name) FROM Singers",
        "",
        "functions of GoogleSQL without a namesake in PostgreSQL are there, with GoogleSQL's meaning: \
         [functions](functions.md); a function of a user goes before one of them. Namesakes are \
         PostgreSQL's: `REGEXP_REPLACE` replaces one match, `SUBSTR` counts no negative places, \
         `FORMAT` has `%s`, `EXTRACT(WEEK ..)` is ISO's, `TIMESTAMP '..'` has no time zone, and `/` of integers cuts \
         off (`SAFE_DIVIDE` and `IEEE_DIVIDE` give a double)",
    ),
    Line(
        SPANNER,
        "SELECT DATE_DIFF(Born, DATE '2000-01-01', WEEK(MONDAY)), DATE_TRUNC(Born, MONTH), \
         DATE_ADD(Born, INTERVAL SingerId DAY), TIMESTAMP_TRUNC(CURRENT_TIMESTAMP(), HOUR, \
         'America/Los_Angeles'), EXTRACT(DAYOFWEEK FROM Born) FROM Singers",
        "",
        "where GoogleSQL takes America/Los_Angeles for granted, it is the session's time zone",
    ),
    Line(
        SPANNER,
        "SELECT ['a', 'b'][OFFSET(0)], ['a', 'b'][SAFE_ORDINAL(3)], o, e FROM \
         UNNEST(GENERATE_ARRAY(1, 3)) AS e WITH OFFSET AS o",
        "",
        "a subscript without such a word counts from 1, and is NULL outside",
    ),
    Line(
        SPANNER,
        "SELECT * EXCEPT (Photo) REPLACE (UPPER(Name) AS Name) FROM Singers",
        "",
        "not in views",
    ),
    Line(SPANNER, "SELECT AS VALUE Name FROM Singers", "", "is `SELECT Name`"),
    Line(
        SPANNER,
        "SELECT Name FROM Singers QUALIFY ROW_NUMBER() OVER (ORDER BY SingerId) = 1",
        "",
        "",
    ),
    Line(
        SPANNER,
        r"SELECT r'\d+', b'a\x00', STRUCT<a INT64, b STRING>(1, 'x')",
        "",
        "bytes have a letter in them, else they are bits of PostgreSQL (`FROM_HEX('3031')` for b'01'); fields of \
         a row have no names; texts in double or triple quotes are names, as in PostgreSQL",
    ),
    Line(SPANNER, "DELETE Singers s WHERE s.SingerId = 77", "", "without FROM"),
    Line(
        SPANNER,
        "UPDATE Singers s SET s.Name = 'c' WHERE s.SingerId = 1",
        "42703",
        "the column alone stands in front of `=`, as in PostgreSQL: `SET Name = 'c'`",
    ),
    Line(
        SPANNER,
        "FROM Singers |> WHERE SingerId < 9 |> EXTEND LENGTH(Name) AS Letters |> AGGREGATE COUNT(*) AS \
         N GROUP BY Letters |> ORDER BY N DESC |> LIMIT 3",
        "",
        "pipes, written as the query that they mean: WHERE, SELECT, DISTINCT, EXTEND, SET, DROP, RENAME, AS, \
         TABLESAMPLE (without REPEATABLE), AGGREGATE (GROUP BY, GROUP AND ORDER BY), ORDER BY, LIMIT, JOIN, UNION, \
         INTERSECT, EXCEPT; not yet PIVOT, CALL",
    ),
    Line(
        SPANNER,
        "SELECT Name, COUNT(*) FROM Singers GROUP BY ALL",
        "",
        "by what has no aggregate in it, and the columns of a star",
    ),
    Line(
        SPANNER,
        "SELECT Name FROM Singers WHERE SingerId = @id",
        "42703",
        "`@` is an operator of PostgreSQL: use `$1`",
    ),
    Line(
        SPANNER,
        "CREATE TABLE Events (Id INT64, At TIMESTAMP) PRIMARY KEY (Id), ROW DELETION POLICY \
         (OLDER_THAN(At, INTERVAL 30 DAY))",
        "",
        "also `TTL INTERVAL '30 days' ON at`; once a minute, see `SHOW ROW DELETION POLICIES`",
    ),
    Line(SPANNER, "ALTER TABLE Events DROP ROW DELETION POLICY", "", "also ADD and REPLACE"),
    Line(
        SPANNER,
        "CREATE CHANGE STREAM Everything FOR ALL",
        "42601",
        "there are no change streams",
    ),
    Line(
        COCKROACH,
        "CREATE TABLE t (id INT PRIMARY KEY, s STRING, d DECIMAL(10, 2), b BYTES, c INT8 AS \
            (id + 1) STORED, INDEX by_s (s) STORING (d), FAMILY f1 (id, s), FAMILY (d))",
        "",
        "INT is PostgreSQL's, four bytes; families are ignored with a notice",
    ),
    Line(
        COCKROACH,
        "CREATE TABLE u (id INT, n INT, PRIMARY KEY (id, n)) INTERLEAVE IN PARENT t (id)",
        "",
        "for locality only, as there",
    ),
    Line(COCKROACH, "CREATE INDEX ON u (id, n) INTERLEAVE IN PARENT t (id)", "", ""),
    Line(
        COCKROACH,
        "UPSERT INTO t (id, s) VALUES (1, 'a')",
        "",
        "as INSERT OR UPDATE; without a list of columns those that are not given get their defaults",
    ),
    Line(COCKROACH, "SELECT * FROM t@by_s WHERE s = 'a'", "", "hints are ignored with a notice"),
    Line(COCKROACH, "DELETE FROM t WHERE s > 'b' ORDER BY s LIMIT 10", "", ""),
    Line(
        COCKROACH,
        "ALTER TABLE u ALTER PRIMARY KEY USING COLUMNS (id, n)",
        "",
        "without a clause, the table lies in no parent afterwards, as there",
    ),
];

fn page(lines: &[Line]) -> String {
    let mut out = String::from(
        "# Spanner's and CockroachDB's grammar\n\nWhat is understood besides PostgreSQL's. \
            Each line \
         is run by `crates/query/tests/dialects.rs`,\nwhich writes this page.\n",
    );
    for system in [SPANNER, COCKROACH] {
        let _ = write!(out, "\n## {system}\n\n| statement | | |\n|---|---|---|\n");
        for Line(_, sql, state, note) in lines.iter().filter(|line| line.0 == system) {
            let verdict = if state.is_empty() { "yes".into() } else { format!("no ({state})") };
            let _ = writeln!(out, "| {} | {verdict} | {note} |", cell(sql));
        }
    }
    out
}

/// As code in a table; a backtick within is doubled around.
fn cell(sql: &str) -> String {
    let sql = sql.replace('|', "\\|");
    match sql.contains('`') {
        true => format!("`` {sql} ``"),
        false => format!("`{sql}`"),
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a page of the repository, not a database")]
fn every_line_is_true_and_the_page_says_so() {
    let mut db = Db::new();
    for Line(_, sql, state, _) in LINES {
        match (db.try_run(sql), *state) {
            (Ok(_), "") => {}
            (Err(e), state) if e.state().0 == state => {}
            (answer, state) => panic!("{sql}\n{answer:?}, want {state:?}"),
        }
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/dialects.md");
    let text = page(LINES);
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(&path, &text).expect("the page can be written");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, text, "docs/dialects.md is stale: run with WRITE_DOCS=1");
}
