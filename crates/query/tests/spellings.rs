//! Statements in Spanner's and CockroachDB's spelling do what they say there.

use crate::harness::Db;

fn rows(s: &mut Db, sql: &str) -> Vec<String> {
    s.run(sql)
}

fn run(s: &mut Db, sql: &str) {
    s.run(sql);
}

fn state(s: &mut Db, sql: &str) -> &'static str {
    match s.try_run(sql) {
        Ok(rows) => panic!("{sql} should have failed, answered {rows:?}"),
        Err(e) => e.state().0,
    }
}

#[test]
fn googlesql_writes() {
    let s = &mut Db::new();
    run(s, "CREATE TABLE Singers (
              SingerId INT64 NOT NULL, `Name` STRING(20), Bytes BYTES(MAX), Twice INT64 AS (SingerId * 2) STORED,
              Next INT64 AS (SingerId + 1),
            ) PRIMARY KEY (SingerId DESC)");
    run(s, "INSERT INTO `Singers` (SingerId, Name) VALUES (1, 'a'), (2, 'b')");
    let got = rows(
        s,
        "INSERT OR UPDATE Singers (SingerId, Name) VALUES (2, 'B'), (3, 'c')
                       THEN RETURN SingerId, `name`, Twice, Next",
    );
    assert_eq!(got, ["2|B|4|3", "3|c|6|4"]);
    assert_eq!(
        rows(
            s,
            "INSERT OR IGNORE INTO Singers (SingerId, Name) VALUES (3, 'z'), (4, 'd') THEN \
                RETURN SingerId"
        ),
        ["4"]
    );
    assert_eq!(state(s, "INSERT OR REPLACE INTO Singers (SingerId) VALUES (1)"), "0A000");
    assert_eq!(state(s, "INSERT INTO Singers (SingerId) VALUES (1)"), "23505");
    run(s, "UPSERT INTO Singers (SingerId) VALUES (1), (5)");
    assert_eq!(
        rows(s, "UPDATE Singers SET Name = 'x' WHERE SingerId > 3 THEN RETURN SingerId, Name"),
        ["5|x", "4|x"]
    );
    assert_eq!(
        rows(s, "DELETE FROM Singers WHERE SingerId IN UNNEST([4, 5, 6]) THEN RETURN SingerId"),
        ["5", "4"]
    );
    assert_eq!(rows(s, "select singerid, name from singers"), ["3|c", "2|B", "1|a"]);
    assert_eq!(
        rows(
            s,
            "SELECT SingerId, FROM Singers@{FORCE_INDEX=_BASE_TABLE} WHERE SingerId NOT IN \
                UNNEST(ARRAY[1, 3])"
        ),
        ["2"]
    );
    // An upsert keeps the children: it never deletes the row that is there.
    run(
        s,
        "CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId INT64) PRIMARY KEY (SingerId \
        DESC, AlbumId),
              INTERLEAVE IN PARENT Singers ON DELETE CASCADE",
    );
    run(
        s,
        "INSERT INTO Albums VALUES (1, 7); INSERT OR UPDATE Singers (SingerId, Name) VALUES \
            (1, 'A')",
    );
    assert_eq!(rows(s, "SELECT AlbumId FROM Albums"), ["7"]);
    run(s, "ALTER TABLE Singers ALTER COLUMN Name STRING(30) NOT NULL");
    assert_eq!(state(s, "INSERT INTO Singers (SingerId) VALUES (9)"), "23502");
    run(s, "ALTER TABLE Singers ALTER COLUMN Name STRING(MAX)");
    run(s, "INSERT INTO Singers (SingerId) VALUES (9)");
    run(
        s,
        "CREATE VIEW Names SQL SECURITY INVOKER AS SELECT Singers.Name FROM Singers WHERE \
            SingerId < 3",
    );
    assert_eq!(rows(s, "@{OPTIMIZER_VERSION=2} SELECT * FROM Names ORDER BY 1"), ["A", "B"]);
    assert_eq!(state(s, "CREATE TABLE One (a INT64) PRIMARY KEY ()"), "0A000");
}

#[test]
fn structs_are_rows() {
    let s = &mut Db::new();
    run(s, "create table p (id int primary key); create table c (id int, n int, v text, \
        primary key (id, n))
              interleave in parent p; insert into p values (1), (2); insert into c values (1, 1, 'x'), (1, 2, null)");
    for (sql, want) in [
        (
            "select id, array(select as struct c.* from c where c.id = p.id) from p",
            vec![r#"1|{"(1,1,x)","(1,2,)"}"#, "2|{}"],
        ),
        (
            "select id, array(select as struct c.n as a, upper(c.v), from c where c.id = p.id \
                order by n desc) from p where id = 1",
            vec![r#"1|{"(2,)","(1,X)"}"#],
        ),
        (
            "select array(select as struct 7 as seven, c.* from c where c.id = p.id) from p \
                where id = 1",
            vec![r#"{"(7,1,1,x)","(7,1,2,)"}"#],
        ),
        ("select struct(1 as a, 'b' as b)", vec!["(1,b)"]),
        ("select row(c.*, 1) from c where n = 1", vec!["(1,1,x,1)"]),
        ("select row(c.*) = row(1, 1, 'x') from c where n = 1", vec!["t"]),
    ] {
        assert_eq!(rows(s, sql), want, "{sql}");
    }
    // A column that is called like its table is not the row.
    run(s, "create table same (same int primary key, v text); insert into same values (1, 'x')");
    for (sql, want) in [
        ("select array(select as struct same.* from same)", r#"{"(1,x)"}"#),
        ("select as struct same.* from same", "(1,x)"),
        ("select to_json(same.*) from same", r#"{"same":1,"v":"x"}"#),
        ("select json_agg(same.*) from same", r#"[{"same":1,"v":"x"}]"#),
        ("select to_json(same) from same", "1"),
        (
            "select p.id, (select to_json(same.*) from same where same.same = p.id) from p \
                where id = 1",
            r#"1|{"same":1,"v":"x"}"#,
        ),
    ] {
        assert_eq!(rows(s, sql), [want], "{sql}");
    }
    assert_eq!(state(s, "select array(select as struct * from c)"), "0A000");
    assert_eq!(state(s, "select row(x.*) from c"), "42P01");
    assert_eq!(state(s, "select to_json(x.*) from c"), "42P01");
}

#[test]
fn bit_reversed_sequences() {
    let s = &mut Db::new();
    run(s, "create sequence a bit_reversed_positive");
    let got = rows(s, "select nextval('a') from generate_series(1, 4)");
    assert_eq!(
        got,
        [
            "4611686018427387904",
            "2305843009213693952",
            "6917529027641081856",
            "1152921504606846976"
        ]
    );
    assert_eq!(
        rows(s, "select currval('a'), lastval()"),
        ["1152921504606846976|1152921504606846976"]
    );
    run(
        s,
        "create sequence b options (sequence_kind = 'bit_reversed_positive', skip_range_min = 1,
              skip_range_max = 4611686018427387904, start_with_counter = 1)",
    );
    // All that are not above the half are left out.
    let got = rows(
        s,
        "select get_next_sequence_value(sequence b) > 4611686018427387904 from \
            generate_series(1, 20)",
    );
    assert!(got.iter().all(|v| v == "t"), "{got:?}");
    run(s, "create sequence d bit_reversed_positive skip range 1, 1000 start counter with 50");
    let shown = rows(s, "show create sequence d").join("");
    assert!(
        shown.contains("BIT_REVERSED_POSITIVE SKIP RANGE 1, 1000 START COUNTER WITH 50 CACHE 1"),
        "{shown}"
    );
    let first = rows(s, "select nextval('d')");
    assert_eq!(first, [((50u64.reverse_bits() >> 1) as i64).to_string()]);
    run(s, "alter sequence d restart counter with 50");
    assert_eq!(rows(s, "select nextval('d')"), first);
    run(s, "alter sequence d no skip range");
    run(
        s,
        "create table t (id bigint primary key default nextval('d'), v int); insert into t (v) \
            values (1), (2)",
    );
    assert_eq!(rows(s, "select count(distinct id), min(id) > 0 from t"), ["2|t"]);
    for (sql, code) in [
        ("select setval('d', 1)", "0A000"),
        ("create sequence e bit_reversed_positive increment 2", "22023"),
        ("create sequence e as int bit_reversed_positive", "22023"),
        ("create sequence e bit_reversed_positive skip range 5, 1", "22023"),
        ("create sequence e options (sequence_kind = 'other')", "22023"),
        ("create sequence e options (skip_range_min = 1)", "22023"),
        ("create sequence e; alter sequence e bit_reversed_positive", "22023"),
        ("alter sequence e skip range 1, 2", "22023"),
    ] {
        assert_eq!(state(s, sql), code, "{sql}");
    }
}

#[test]
fn cockroachdb_tables_and_hints() {
    let s = &mut Db::new();
    run(
        s,
        "CREATE TABLE t (id INT PRIMARY KEY, s STRING, d DECIMAL(10, 2), b BYTES, n INT8, c \
        INT AS (n + 1) STORED,
              INDEX by_s (s), FAMILY f1 (id, s), FAMILY (d, b, n, c))",
    );
    run(s, "UPSERT INTO t (id, s, n) VALUES (1, 'a', 2); UPSERT INTO t (id, n) VALUES (1, 3)");
    for from in
        ["t@primary", "t@by_s", "t@{FORCE_INDEX=by_s}", "defaultdb.public.t@{NO_FULL_SCAN}", "t"]
    {
        assert_eq!(rows(s, &format!("SELECT s, c FROM {from} WHERE id = 1")), ["a|4"], "{from}");
    }
    run(
        s,
        "create table family (family numeric(10, 2), a int); insert into family values (1.5, 2)",
    );
    assert_eq!(rows(s, "select family, @ (-a) from family"), ["1.50|2"]);
}

#[test]
fn information_schema_tells_of_interleaving_and_policies() {
    let s = &mut Db::new();
    run(
        s,
        "create table p (id int primary key, at timestamptz) ttl interval '3 days' on at;
         create table c (id int, n int, primary key (id, n)) interleave in parent p on delete cascade;
         create table k (id int, n int, primary key (id, n)) interleave in p;
         create index inside on c (id, n) interleave in p",
    );
    let got = rows(
        s,
        "select table_name, parent_table_name, on_delete_action, interleave_type, spanner_state,
                row_deletion_policy_expression
         from information_schema.tables where table_schema = 'public' order by 1",
    );
    let want = [
        "c|p|CASCADE|IN PARENT|COMMITTED|",
        "k|p||IN|COMMITTED|",
        "p||||COMMITTED|OLDER_THAN(at, INTERVAL '3 days')",
    ];
    assert_eq!(got, want);
    let got = rows(
        s,
        "select index_name, parent_table_name from information_schema.indexes
         where index_name = 'inside'",
    );
    assert_eq!(got, ["inside|p"]);
}

#[test]
fn arrays_of_googlesql() {
    let s = &mut Db::new();
    run(
        s,
        "CREATE TABLE tagged (id INT64, tags ARRAY<STRING(MAX)>, sizes ARRAY<INT64> NOT NULL,
             short ARRAY<STRING(3)>) PRIMARY KEY (id)",
    );
    run(s, "INSERT INTO tagged VALUES (1, ['a', 'b'], ARRAY<INT64>[1, 2], ARRAY<STRING(MAX)>[])");
    assert_eq!(
        rows(s, "SELECT tags[2], sizes[1] + 1, pg_typeof(sizes), pg_typeof(tags) FROM tagged"),
        ["b|2|bigint[]|text[]"]
    );
    assert_eq!(
        rows(s, "SELECT ARRAY<INT64>[1, 2] || ARRAY<INT64>[3], CAST(['4'] AS ARRAY<INT64>)"),
        ["{1,2,3}|{4}"]
    );
    assert_eq!(state(s, "INSERT INTO tagged VALUES (2, [], NULL, [])"), "23502");
    assert_eq!(state(s, "INSERT INTO tagged VALUES (2, [], ARRAY<INT64>[], ['long'])"), "22001");
    run(s, "ALTER TABLE tagged ADD COLUMN more ARRAY<DATE>");
    assert_eq!(rows(s, "SELECT more FROM tagged WHERE id = 1 AND array [1] < array [2]"), [""]);
}

#[test]
fn rows_of_nothing_but_a_key_are_returned() {
    let s = &mut Db::new();
    run(s, "CREATE TABLE t (k INT PRIMARY KEY); ALTER TABLE t ADD COLUMN v INT");
    run(s, "UPSERT INTO t (k) VALUES (1), (1); UPSERT INTO t (k, v) VALUES (1, 5)");
    assert_eq!(rows(s, "UPSERT INTO t (k) VALUES (1), (2) RETURNING *"), ["1|5", "2|"]);
    assert_eq!(rows(s, "INSERT OR UPDATE t (k) VALUES (2) THEN RETURN k"), ["2"]);
    assert_eq!(rows(s, "INSERT OR IGNORE INTO t (k) VALUES (2), (3) THEN RETURN k"), ["3"]);
    assert_eq!(rows(s, "SELECT count(*) FROM t"), ["3"]);
}

#[test]
fn upsert_without_a_list_writes_defaults() {
    let s = &mut Db::new();
    run(s, "CREATE TABLE t (k INT PRIMARY KEY, a INT DEFAULT 5, b TEXT, c INT AS (a + 1) STORED)");
    run(s, "INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y')");
    assert_eq!(rows(s, "UPSERT INTO t VALUES (1), (3) RETURNING *"), ["1|5||6", "3|5||6"]);
    assert_eq!(rows(s, "UPSERT INTO t (k) VALUES (2) RETURNING *"), ["2|2|y|3"]);
    assert_eq!(rows(s, "UPSERT INTO t (k, b) VALUES (2, 'z') RETURNING *"), ["2|2|z|3"]);
    assert_eq!(rows(s, "UPSERT INTO t VALUES (2, 7) RETURNING *"), ["2|7||8"]);
    assert_eq!(rows(s, "UPSERT INTO t SELECT 2, 9 RETURNING *"), ["2|9||10"]);
    assert_eq!(rows(s, "INSERT OR IGNORE INTO t VALUES (2), (4) THEN RETURN k"), ["4"]);
    run(s, "CREATE TABLE i (k INT PRIMARY KEY, n INT GENERATED ALWAYS AS IDENTITY, v INT)");
    run(s, "UPSERT INTO i (k, v) VALUES (1, 1); UPSERT INTO i (k, v) VALUES (1, 2)");
    assert_eq!(rows(s, "SELECT * FROM i"), ["1|1|2"]);
}
