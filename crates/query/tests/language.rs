//! What statements mean, where other engines (and ours, before) mean something else: against the
//! answers PostgreSQL 15 gives.

use crate::harness::Db;

fn small() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id int PRIMARY KEY, a int, m int, n numeric);
         INSERT INTO t VALUES (1, 0, 5, 1.5), (2, 4, 6, 1.50), (3, 10, 7, NULL), (4, NULL, 8, 3);
         CREATE TABLE u (a numeric, b int); INSERT INTO u VALUES (1.5, 1), (3.0, 2);
         CREATE TABLE v (a numeric, c int); INSERT INTO v VALUES (1.50, 10), (4, 20);
         CREATE SEQUENCE s;",
    );
    db
}

/// Runs statements that must fail with this SQLSTATE.
fn fails(db: &mut Db, cases: &[(&str, &str)]) {
    for (sql, state) in cases {
        match db.try_run(sql) {
            Ok(rows) => panic!("{sql}: {rows:?}, want {state}"),
            Err(e) => assert_eq!(e.state().0, *state, "{sql}: {e}"),
        }
    }
}

#[test]
fn operators_do_not_swallow_signs() {
    small().check(&[
        ("SELECT id FROM t WHERE a>-2 AND m<>-1 ORDER BY id", "1; 2; 3"),
        ("SELECT 5-+3, 5+-3, 2*-3, 3*--x\n1", "2|2|-6|3"),
        ("SELECT 2 IN ((SELECT 2),-1), 3 IN ((SELECT 2) + 1), 2 IN ((SELECT 2))", "t|t|t"),
    ]);
}

#[test]
fn locks_stand_on_either_side_of_limit() {
    small().check(&[
        ("SELECT id FROM t ORDER BY id FOR UPDATE LIMIT 1", "1"),
        ("SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE", "1"),
        ("SELECT id FROM t ORDER BY id FOR SHARE OF t NOWAIT OFFSET 2 LIMIT 1", "3"),
    ]);
}

#[test]
fn nothing_is_an_internal_error() {
    let mut db = small();
    db.check(&[
        ("SELECT 1 FROM t HAVING 1<2", "1"),
        ("SELECT 1 FROM t HAVING 1>2", ""),
        ("SELECT count(*) FROM (SELECT DISTINCT ON (random()) id FROM t) d", "4"),
        ("SELECT x.b, y.c FROM u x JOIN v y ON y.a=x.a AND x.a=y.a", "1|10"),
        ("SELECT array(SELECT array[a,m] FROM t)", "{{0,5},{4,6},{10,7},{NULL,8}}"),
        ("SELECT nth_value(a, m - 4) OVER (ORDER BY id) FROM t", "0; 4; 10; "),
        ("SELECT lag(a, 7 - m) OVER (ORDER BY id) FROM t", "; 0; 10; "),
    ]);
    fails(
        &mut db,
        &[
            (
                "SELECT array(SELECT CASE WHEN id > 1 THEN array[a, m] ELSE array[a] END FROM t)",
                "2202E",
            ),
            ("SELECT array_fill(array[1], array[2])", "42883"),
            (
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL
                   SELECT n + 1 FROM t WHERE id IN (SELECT n FROM r)) SELECT * FROM r",
                "42P19",
            ),
            ("SELECT 7%-4", "42883"),
        ],
    );
}

#[test]
fn conditions_are_computed_only_where_they_are_wanted() {
    let mut db = small();
    db.check(&[
        ("SELECT a, count(*) FROM t WHERE a<>0 AND 10/a>=1 GROUP BY a ORDER BY a", "4|1; 10|1"),
        ("SELECT CASE WHEN 1=1 THEN 1 ELSE 2/0 END", "1"),
        ("SELECT CASE WHEN 1=1 THEN 1 ELSE 2/0 END, count(*) FROM t", "1|4"),
        ("SELECT coalesce(max(m), 1/0) FROM t", "8"),
        ("SELECT count(*) FROM t WHERE a=0 OR 10/a>=1", "3"),
        ("SELECT t.id FROM t JOIN u ON u.a=t.n WHERE 8/(t.a-10)<100 ORDER BY 1", "1; 2"),
        ("SELECT sum(CASE WHEN a=0 THEN 0 ELSE 20/a END) FROM t WHERE id IN (1,2,3)", "7"),
        (
            "SELECT id FROM t WHERE CASE WHEN a=0 THEN false ELSE (SELECT 10/t.a)>1 END
             ORDER BY id",
            "2",
        ),
    ]);
    fails(
        &mut db,
        &[("SELECT 1/0", "22012"), ("SELECT CASE WHEN true THEN 1 ELSE 'x'::int END", "22P02")],
    );
}

#[test]
fn volatile_ctes_are_computed_once() {
    small().check(&[
        ("WITH c AS (SELECT random() r) SELECT x.r = y.r FROM c x, c y", "t"),
        ("WITH c AS (SELECT nextval('s') n) SELECT x.n, y.n FROM c x, c y", "1|1"),
        ("SELECT nextval('s')", "2"),
        (
            "WITH c(k) AS MATERIALIZED (SELECT id FROM t) SELECT count(*) FROM c x JOIN c y USING (k)",
            "4",
        ),
        (
            "SELECT (WITH c AS (SELECT t.m AS z) SELECT p.z + q.z FROM c p, c q) FROM t ORDER BY id",
            "10; 12; 14; 16",
        ),
    ]);
    fails(&mut small(), &[("WITH c(a, b) AS (SELECT 1) SELECT * FROM c", "42P10")]);
}

#[test]
fn select_lists_are_computed_after_the_sort() {
    let mut db = small();
    db.check(&[
        ("SELECT nextval('s'), id FROM t ORDER BY id DESC LIMIT 2", "1|4; 2|3"),
        ("SELECT nextval('s')", "3"),
        (
            "SELECT nextval('s'), m FROM (SELECT DISTINCT m FROM t) d ORDER BY m DESC LIMIT 2",
            "4|8; 5|7",
        ),
        ("SELECT nextval('s')", "6"),
        (
            "SELECT generate_series(1, 3) g, id FROM t ORDER BY id LIMIT 5",
            "1|1; 2|1; 3|1; 1|2; 2|2",
        ),
    ]);
}

/// They give rows as they are asked for: no length of a series is too much.
#[test]
fn set_returning_functions_give_rows_as_they_are_asked_for() {
    small().check(&[
        ("SELECT g FROM generate_series(1, 9000000000000000) g LIMIT 3", "1; 2; 3"),
        ("SELECT g FROM generate_series(1, 9e30, 1.5) g OFFSET 8191 LIMIT 2", "12287.5; 12289.0"),
        (
            "SELECT g::date FROM generate_series(timestamp '2026-02-28', '290000-01-01', '1 day') g \
             LIMIT 2",
            "2026-02-28; 2026-03-01",
        ),
        ("SELECT generate_series(1, 9000000000000000) LIMIT 2", "1; 2"),
        (
            "SELECT g, n FROM generate_series(5, 9000000000000000) WITH ORDINALITY AS x(g, n) \
             OFFSET 10000 LIMIT 1",
            "10005|10001",
        ),
        // In step, until all have ended; rows without any are not there.
        (
            "SELECT id, generate_series(1, a), generate_series(1, 2) FROM t WHERE id < 3 ORDER BY id",
            "1||1; 1||2; 2|1|1; 2|2|2; 2|3|; 2|4|",
        ),
        ("SELECT id, generate_series(1, a) FROM t WHERE a = 0 OR a IS NULL", ""),
        (
            "SELECT id, g FROM t, generate_series(1, m * 2000) g WHERE g % 9973 = 0 ORDER BY id, g",
            "1|9973; 2|9973; 3|9973; 4|9973",
        ),
        (
            "SELECT id, g FROM t LEFT JOIN LATERAL (SELECT x * id AS g FROM generate_series(1, a) x \
             WHERE x % 4 = 0) y ON true ORDER BY id, g",
            "1|; 2|8; 3|12; 3|24; 4|",
        ),
        ("SELECT count(*), sum(g) FROM generate_series(1, 20000) g", "20000|200010000"),
        ("SELECT count(*) FROM generate_series(3, 1) g", "0"),
        ("SELECT g FROM generate_series(2147483645, 2147483647) g", "2147483645; 2147483646; 2147483647"),
    ]);
    fails(
        &mut small(),
        &[
            ("SELECT * FROM generate_series(1, 5, 0)", "22023"),
            ("SELECT 1 / (g - 9000) FROM generate_series(1, 9000000000000000) g", "22012"),
        ],
    );
}

/// A call that makes much of little must not take the memory of the node.
#[test]
fn no_call_makes_a_value_without_bounds() {
    let mut db = small();
    fails(
        &mut db,
        &[
            ("SELECT repeat('x', 100000000)", "54000"),
            ("SELECT replace(repeat('x', 100000), 'x', repeat('y', 1000))", "54000"),
            ("SELECT regexp_replace(repeat('x', 100000), 'x', repeat('y', 1000), 'g')", "54000"),
            ("SELECT string_to_array(repeat('a,', 5000000), ',')", "54000"),
            ("SELECT string_to_array(repeat('a', 5000000), NULL)", "54000"),
            ("SELECT regexp_split_to_array(repeat('a,', 5000000), ',')", "54000"),
            ("SELECT array_fill(1, array[5000000])", "54000"),
            (
                "SELECT array_to_string(array_fill(NULL::text, array[100000]), '', repeat('x', 1000))",
                "54000",
            ),
            ("SELECT format('%s%s', repeat('x', 40000000), repeat('x', 40000000))", "54000"),
            ("SELECT s || s FROM (SELECT repeat('x', 40000000) s) t", "54000"),
            ("SELECT concat(s, s) FROM (SELECT repeat('x', 40000000) s) t", "54000"),
        ],
    );
    db.check(&[
        ("SELECT length(replace(repeat('x', 10), 'x', 'yy')), replace('aXbX', 'X', '')", "20|ab"),
        ("SELECT string_to_array('a,,b', ',', ''), string_to_array('xyz', NULL, 'y')", "{a,NULL,b}|{x,NULL,z}"),
        ("SELECT array_to_string(array[1, NULL, 3], '-', '*'), array_to_string(array[1, NULL, 3], '-')", "1-*-3|1-3"),
        ("SELECT array_to_string('{}'::int[], '-', '*'), array_to_string(array[NULL, 2], ',')", "|2"),
    ]);
}

#[test]
fn rows_have_names() {
    small().check(&[
        ("SELECT r FROM (SELECT 1 AS a, 'x' AS b) r", "(1,x)"),
        ("SELECT t FROM t WHERE id=1", "(1,0,5,1.5)"),
        ("SELECT (r).b FROM (SELECT 1 AS a, 'x' AS b) r", "x"),
        ("SELECT count(c.*), count(DISTINCT c.*) FROM t c", "4|4"),
        ("SELECT json_agg(r) FROM (SELECT 1 AS a, 'x' AS b) r", "[{\"a\":1,\"b\":\"x\"}]"),
        ("SELECT row_to_json(x) FROM (SELECT 1 AS a) x", "{\"a\":1}"),
        ("SELECT to_jsonb(x) FROM (SELECT 1 AS b, 2 AS a) x", "{\"a\": 2, \"b\": 1}"),
        ("SELECT array_agg(r) FROM (SELECT 1 AS a, 'x y' AS b) r", "{\"(1,\\\"x y\\\")\"}"),
        ("SELECT row_to_json(row(1,'z'))", "{\"f1\":1,\"f2\":\"z\"}"),
    ]);
}

#[test]
fn json_keeps_its_text() {
    let mut db = small();
    db.run("CREATE TABLE j (id int PRIMARY KEY, d json)");
    db.run("INSERT INTO j VALUES (1, ' {\"b\" : 1, \"a\":2,  \"b\":3} ')");
    db.check(&[
        ("SELECT d FROM j", " {\"b\" : 1, \"a\":2,  \"b\":3} "),
        ("SELECT d::jsonb, d->>'b', pg_typeof(d) FROM j", "{\"a\": 2, \"b\": 3}|3|json"),
        ("SELECT json_build_object('a', 1, 'b', null)", "{\"a\" : 1, \"b\" : null}"),
        ("SELECT json_object_keys(d) FROM j", "b; a; b"),
    ]);
    fails(&mut db, &[("SELECT d = d FROM j", "42883"), ("INSERT INTO j VALUES (2, '{')", "22P02")]);
}

#[test]
fn dates_come_in_every_order() {
    let mut db = small();
    db.check(&[
        ("SET datestyle = 'ISO, DMY'; SELECT '01/02/2024'::date = '2024-02-01'", "t"),
        ("SET datestyle = 'German'; SHOW datestyle", "German, DMY"),
        ("SET datestyle = 'ISO, MDY'; SELECT '01/02/2024'::date = '2024-01-02'", "t"),
        ("SELECT 'x'::text FROM (SELECT DATE '2024-02-29') d", "x"),
    ]);
}

#[test]
fn styles_change_casts_to_text() {
    let mut db = small();
    db.check(&[
        ("SET datestyle = 'SQL, DMY'; SELECT DATE '2024-02-29'::text", "29/02/2024"),
        ("SET datestyle = 'Postgres, MDY'; SELECT TIMESTAMP '2024-02-29 12:34:56.7'::text",
            "Thu Feb 29 12:34:56.7 2024"),
        ("SET datestyle = 'ISO, MDY'; SET extra_float_digits = 0; SELECT (0.1::float8+0.2)::text",
            "0.3"),
        ("SET extra_float_digits = 1; SELECT (0.1::float8+0.2)::text", "0.30000000000000004"),
        ("SET intervalstyle = 'iso_8601'; SELECT (interval '1 year 2 days 03:04')::text",
            "P1Y2DT3H4M"),
        ("SET intervalstyle = 'postgres_verbose'; SELECT (interval '-1 day 2 hours')::text",
            "@ 1 day -2 hours ago"),
        ("SET intervalstyle = 'sql_standard'; SELECT (interval '1 day 2 hours')::text",
            "1 2:00:00"),
        ("SET bytea_output = 'escape'; SELECT '\\x61ff'::bytea::text", "a\\377"),
    ]);
}

#[test]
fn time_zones_have_posix_signs() {
    let mut db = small();
    let shown = "SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00'::text";
    db.check(&[
        (&format!("SET timezone = '+02:00'; {shown}"), "2023-12-31 22:00:00-02"),
        ("SHOW timezone", "+02:00"),
        (&format!("SET timezone = 2; {shown}"), "2024-01-01 02:00:00+02"),
        (&format!("SET TIME ZONE 'UTC+3'; {shown}"), "2023-12-31 21:00:00-03"),
        ("SET timezone = 'UTC'; SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AT TIME ZONE '+02:00'",
            "2023-12-31 22:00:00"),
    ]);
}

#[test]
fn oids_are_shown_as_names() {
    small().check(&[
        ("SELECT pg_typeof(id), 't'::regclass FROM t WHERE id=1", "integer|t"),
        ("SELECT pg_typeof(1.5)", "numeric"),
        ("SELECT min(id), pg_typeof(sum(a)) FROM t", "1|bigint"),
    ]);
}

#[test]
fn wrong_input_is_refused() {
    fails(
        &mut small(),
        &[
            ("SELECT jsonb_set('1', '{a}', '2')", "22023"),
            ("SELECT '\"x\"'::jsonb #- '{a}'", "22023"),
            ("WITH c(a, b) AS (SELECT 1) SELECT * FROM c", "42P10"),
            ("VACUUM missing", "42P01"),
            ("ANALYZE t, missing (a)", "42P01"),
            ("VACUUM (VERBOSE) public.missing", "42P01"),
        ],
    );
    small().run("VACUUM; ANALYZE t (a), public.u; VACUUM FULL ANALYZE v; VACUUM (FREEZE) t");
}

/// The first row of each group is that of an order which begins with the groups.
#[test]
fn distinct_on_goes_with_the_first_keys_of_order_by() {
    let mut db = small();
    db.run(
        "CREATE TABLE g (id int PRIMARY KEY, a int, b int);
         INSERT INTO g VALUES (1, 1, 5), (2, 1, 4), (3, 2, 4), (4, 2, 3)",
    );
    for sql in [
        "SELECT DISTINCT ON (a) a, id FROM g ORDER BY id",
        "SELECT DISTINCT ON (a, b) id FROM g ORDER BY a, id, b",
        "SELECT DISTINCT ON (a + 1) id FROM g ORDER BY a",
    ] {
        fails(&mut db, &[(sql, "42P10")]);
    }
    db.check(&[
        // Names are those of the result first.
        ("SELECT DISTINCT ON (a) a AS b, b AS a FROM g ORDER BY g.b, id", "2|3; 1|4; 1|5"),
        ("SELECT DISTINCT ON (a) a, id FROM g ORDER BY a, b", "1|2; 2|4"),
        ("SELECT DISTINCT ON (a, b) id FROM g ORDER BY b DESC, a, id", "1; 2; 3; 4"),
        ("SELECT DISTINCT ON (a) id FROM g ORDER BY a DESC, a, id", "3; 1"),
        ("SELECT DISTINCT ON (a + 1) id FROM g ORDER BY a + 1, id DESC", "2; 4"),
        ("SELECT DISTINCT ON (1) a, id FROM g ORDER BY 1, id DESC", "1|2; 2|4"),
        ("SELECT count(*) FROM (SELECT DISTINCT ON (a, b) id FROM g ORDER BY a) x", "4"),
        ("SELECT count(*) FROM (SELECT DISTINCT ON (a) * FROM g) x", "2"),
    ]);
}

#[test]
fn json_is_not_sorted_and_not_grouped() {
    let mut db = small();
    db.run(
        "CREATE TABLE d (id int PRIMARY KEY, j json, a json[]);
         INSERT INTO d VALUES (1, '1', '{1}'), (2, '2', '{2}');",
    );
    for sql in [
        "SELECT j FROM d GROUP BY j",
        "SELECT a FROM d GROUP BY a",
        "SELECT DISTINCT j FROM d",
        "SELECT DISTINCT ON (j) id FROM d",
        "SELECT id FROM d ORDER BY j",
        "SELECT j FROM d ORDER BY 1",
        "SELECT id FROM d GROUP BY id, j ORDER BY j",
        "SELECT count(DISTINCT j) FROM d",
        "SELECT array_agg(DISTINCT j) FROM d",
        "SELECT array_agg(id ORDER BY j) FROM d",
        "SELECT mode() WITHIN GROUP (ORDER BY j) FROM d",
        "SELECT rank() OVER (ORDER BY j) FROM d",
        "SELECT rank() OVER (PARTITION BY j ORDER BY id) FROM d",
        "SELECT j FROM d UNION SELECT j FROM d",
        "SELECT j FROM d EXCEPT ALL SELECT j FROM d",
        "SELECT j FROM d UNION ALL SELECT j FROM d ORDER BY 1",
        "WITH RECURSIVE r AS (SELECT j FROM d UNION SELECT j FROM r) SELECT * FROM r",
        "SELECT array_to_json(ARRAY[id]) FROM d GROUP BY 1",
    ] {
        fails(&mut db, &[(sql, "42883")]);
    }
    db.check(&[
        ("SELECT j FROM d UNION ALL SELECT j FROM d WHERE id=1 LIMIT 0", ""),
        ("SELECT count(j), json_agg(j ORDER BY id) FROM d", "2|[1, 2]"),
        ("SELECT j::jsonb FROM d GROUP BY j::jsonb ORDER BY 1", "1; 2"),
    ]);
}

#[test]
fn distinct_arguments_come_sorted() {
    small().check(&[
        (
            "SELECT array_agg(DISTINCT x) FROM (VALUES (3.5::float8), (NULL), ('-Infinity'), (1e16),
             (0), (3.5)) v(x)",
            "{-Infinity,0,3.5,1e+16,NULL}",
        ),
        ("SELECT string_agg(DISTINCT x, ',') FROM (VALUES ('c'), ('a'), ('b'), ('a')) v(x)", "a,b,c"),
        (
            "SELECT string_agg(DISTINCT x, y ORDER BY y) FROM (VALUES ('b','1'), ('a','1'), \
             ('c','0')) v(x, y)",
            "c1a1b",
        ),
        ("SELECT jsonb_agg(DISTINCT x) FROM (VALUES (3), (1), (2), (1)) v(x)", "[1, 2, 3]"),
        ("SELECT sum(DISTINCT x) FROM (VALUES (1e16::float8), (1), (-1e16)) v(x)", "0"),
    ]);
}

#[test]
fn sums_of_doubles_overflow() {
    let largest = "1.7976931348623157e308::float8";
    fails(
        &mut small(),
        &[
            (&format!("SELECT regr_avgx({largest}, id), 1 FROM t"), "22003"),
            (&format!("SELECT regr_avgy(id, {largest}) FROM t"), "22003"),
            ("SELECT regr_sxx(1, x) FROM (VALUES (1e200::float8), (-1e200)) v(x)", "22003"),
        ],
    );
    small().check(&[
        ("SELECT regr_avgy('Infinity'::float8, id) FROM t", "Infinity"),
        ("SELECT sum(x) FROM (VALUES ('Infinity'::float8), (1)) v(x)", "Infinity"),
        ("SELECT avg(x), sum(x) FROM (VALUES (3e38::float4), (1), (-3e38)) v(x)", "0|0"),
        ("SELECT regr_avgx(1, x) FROM (VALUES ('Infinity'::float8), ('-Infinity')) v(x)", "NaN"),
    ]);
}

#[test]
fn window_arguments_out_of_range_are_named() {
    let frame = |f: &str| format!("SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN {f}) FROM t");
    fails(
        &mut small(),
        &[
            ("SELECT ntile(0) OVER () FROM t", "22014"),
            ("SELECT nth_value(id, 0) OVER () FROM t", "22016"),
            (&frame("UNBOUNDED FOLLOWING AND CURRENT ROW"), "42P20"),
            (&frame("CURRENT ROW AND UNBOUNDED PRECEDING"), "42P20"),
            (&frame("CURRENT ROW AND 1 PRECEDING"), "42P20"),
            (&frame("1 FOLLOWING AND 1 PRECEDING"), "42P20"),
            (&frame("1 FOLLOWING AND CURRENT ROW"), "42P20"),
        ],
    );
    small().check(&[
        ("SELECT ntile(2) OVER (ORDER BY id) FROM t", "1; 1; 2; 2"),
        (&frame("1 FOLLOWING AND 2 FOLLOWING"), "5; 7; 4; "),
    ]);
}

/// Found by the corpus of expressions against PostgreSQL 15.
#[test]
fn parts_of_a_union_come_in_their_order() {
    let mut db = Db::new();
    db.run(
        "create table big (id int primary key); create table small (id int primary key);
         insert into big select * from generate_series(1, 20000); insert into small values (-1)",
    );
    for _ in 0..20 {
        let rows = db.run("select * from big union all select * from small union all select 0");
        assert_eq!(rows.len(), 20_002);
        assert_eq!(rows[20_000..], ["-1", "0"]);
        db.check(&[("select 3 union all select 2 union all select 1", "3; 2; 1")]);
    }
    db.check(&[(
        "select count(*) from small s join (select id from big union all select id - 20001 \
         from big) u on u.id = s.id",
        "1",
    )]);
}

#[test]
fn what_the_corpus_found_in_windows_and_sets() {
    let mut db = small();
    db.check(&[
        ("SELECT ntile(NULL) OVER (ORDER BY id), lag(m, NULL) OVER (ORDER BY id) FROM t LIMIT 1", "|"),
        ("SELECT nth_value(m, NULL) OVER (ORDER BY id) FROM t WHERE id = 1", ""),
        ("SELECT id, lag(m, 1, id * 100) OVER (ORDER BY id) FROM t ORDER BY id", "1|100; 2|5; 3|6; 4|7"),
        ("SELECT NULL UNION SELECT 1 ORDER BY 1", "1; "),
        ("SELECT '7' UNION ALL SELECT 1", "7; 1"),
        ("SELECT stddev(x) FROM (VALUES (1::numeric), ('NaN')) v(x)", "NaN"),
        (
            "SELECT json_agg(x) FROM (VALUES (NULL::int[]), ('{1}')) v(x)",
            "[null, \n [1]]",
        ),
        ("SELECT * FROM unnest(NULL::int[], ARRAY['a'])", "|a"),
        ("SELECT generate_subscripts(ARRAY[1, 2], 2)", ""),
        ("SELECT pg_typeof(x)::text FROM generate_series('2024-01-01'::date, '2024-01-01', '1 day') x",
            "timestamp with time zone"),
    ]);
    fails(
        &mut db,
        &[
            ("SELECT NULL UNION SELECT NULL UNION SELECT 1", "42804"),
            ("SELECT mode() WITHIN GROUP (ORDER BY id) OVER () FROM t", "0A000"),
            ("SELECT string_agg('a', 1) FROM t", "42883"),
            ("SELECT * FROM string_to_table('a', 1)", "42883"),
            ("SELECT * FROM generate_series('NaN'::numeric, 1)", "22023"),
            ("SELECT sum('1') FROM t", "42725"),
        ],
    );
}

#[test]
fn documents_are_sorted_as_documents() {
    small().check(&[(
        "SELECT v FROM (VALUES ('null'::jsonb), ('[1, 2]'), ('{\"a\": 1}'), ('\"x\"'), ('1.5'), ('[]'), \
         ('true'), ('{}'), ('[3]'), ('10'), ('[[]]')) t(v) ORDER BY v",
        "[]; null; \"x\"; 1.5; 10; true; [3]; [[]]; [1, 2]; {}; {\"a\": 1}",
    )]);
}

#[test]
fn trims_without_characters() {
    small().check(&[(
        "SELECT trim(leading from ' x '), trim(from ' x '), trim(both 'x' from 'xax')",
        "x |x|a",
    )]);
}

#[test]
fn between_symmetric_takes_its_bounds_in_any_order() {
    small().check(&[
        ("SELECT id FROM t WHERE a BETWEEN SYMMETRIC 5 AND 0 ORDER BY id", "1; 2"),
        ("SELECT id FROM t WHERE a NOT BETWEEN SYMMETRIC 4+1 AND 1-1 ORDER BY id", "3"),
        ("SELECT a BETWEEN ASYMMETRIC 5 AND 0, a BETWEEN 5 AND 0 FROM t WHERE id=2", "f|f"),
        (
            "SELECT count(*) FROM t x JOIN t y ON x.id BETWEEN SYMMETRIC y.id AND 2
             WHERE x.a BETWEEN SYMMETRIC 10 AND -1 AND y.id < 4",
            "5",
        ),
        ("SELECT NULL BETWEEN SYMMETRIC 1 AND 2", ""),
    ]);
    fails(&mut small(), &[("SELECT !! 5", "0A000"), ("SELECT 1 BETWEEN !! 5 AND 6 + ", "42601")]);
    let mut db = small();
    db.run("CREATE TABLE k (a int CHECK (a BETWEEN SYMMETRIC 9 AND 3)); INSERT INTO k VALUES (4)");
    fails(&mut db, &[("INSERT INTO k VALUES (10)", "23514")]);
}

#[test]
fn conditions_of_a_subquery_come_before_those_around_it() {
    small().check(&[
        ("SELECT * FROM (SELECT id, 10/a AS z FROM t WHERE a<>0) x WHERE z>=2 ORDER BY id", "2|2"),
        (
            "WITH x AS (SELECT id, 10/a AS z FROM t WHERE a<>0) SELECT x.id FROM x JOIN t USING (id)
             WHERE z>=1 ORDER BY id",
            "2; 3",
        ),
        (
            "SELECT z FROM (SELECT 10/a AS z FROM t WHERE a>4 UNION ALL
                            SELECT m/a FROM t WHERE a<>0) x WHERE z<2 ORDER BY z",
            "0; 1; 1",
        ),
        ("SELECT count(*) FROM (SELECT '7'::int + a AS z FROM t WHERE a<5) x WHERE z>7", "1"),
        ("SELECT m FROM t GROUP BY m HAVING min(a)<>0 AND 40/min(a)>4 ORDER BY m", "6"),
        (
            "SELECT t.m FROM t JOIN t y USING (id) GROUP BY t.m HAVING min(y.a)<>0 AND
             40/min(y.a)>=4 ORDER BY t.m",
            "6; 7",
        ),
    ]);
}

#[test]
fn exists_does_not_compute_what_nobody_sees() {
    small().check(&[
        ("SELECT exists(SELECT 1/0 FROM t)", "t"),
        ("SELECT NOT exists(SELECT 10/a FROM t WHERE id=1)", "f"),
        (
            "SELECT id FROM t WHERE exists(SELECT t.m/u.b, 1/0 FROM u WHERE u.b=t.id) ORDER BY id",
            "1; 2",
        ),
        ("SELECT exists(SELECT FROM t WHERE false)", "f"),
        ("SELECT exists(SELECT sum(a) FROM t WHERE false)", "t"),
    ]);
    fails(&mut small(), &[("SELECT exists(SELECT nope FROM t)", "42703")]);
}

#[test]
fn rows_that_an_outer_join_did_not_find_are_null() {
    small().check(&[
        ("SELECT count(u.*), count(u), count(t) FROM t LEFT JOIN u ON u.b=t.id", "2|2|4"),
        (
            "SELECT t.id, u FROM t LEFT JOIN u ON u.b=t.id ORDER BY 1 LIMIT 3",
            "1|(1.5,1); 2|(3.0,2); 3|",
        ),
        ("SELECT t FROM u LEFT JOIN t ON t.id=u.b+3 ORDER BY u.b", "(4,,8,3); "),
        ("SELECT count(s) FROM t LEFT JOIN (SELECT b, a FROM u) s ON s.b=t.id", "2"),
        ("SELECT count(x) FROM t RIGHT JOIN (SELECT NULL::int AS k) x ON x.k=t.id", "1"),
        ("SELECT (u).b FROM t LEFT JOIN u ON u.b=t.id ORDER BY t.id LIMIT 3", "1; 2; "),
        ("SELECT row_to_json(u) FROM t LEFT JOIN u ON u.b=t.id ORDER BY t.id DESC LIMIT 1", ""),
        ("SELECT u IS NULL FROM t LEFT JOIN u ON u.b=t.id ORDER BY t.id LIMIT 3", "f; f; t"),
    ]);
}

#[test]
fn whole_rows_are_values() {
    small().check(&[
        ("SELECT count(*) FROM t WHERE t = t", "4"),
        ("SELECT count(*) FROM t x JOIN t y ON x = y", "4"),
        ("SELECT t.* IS NULL FROM t WHERE id=3", "f"),
        ("SELECT (t).* FROM t WHERE id=1", "1|0|5|1.5"),
        ("SELECT t::text, length(t::text) FROM t WHERE id=3", "(3,10,7,)|9"),
        ("SELECT (1, NULL) = (1, NULL), (1, 2) = (1, 3)", "|f"),
    ]);
}

#[test]
fn set_functions_follow_the_order_asked_for() {
    small().check(&[
        ("SELECT generate_series(1,3), m FROM t ORDER BY id DESC LIMIT 4", "1|8; 2|8; 3|8; 1|7"),
        ("SELECT generate_series(1,2), id FROM t ORDER BY m DESC, a LIMIT 3", "1|4; 2|4; 1|3"),
        ("SELECT unnest(array[id, 9]) FROM t ORDER BY -id", "4; 9; 3; 9; 2; 9; 1; 9"),
    ]);
    let mut db = small();
    db.run("SELECT nextval('s') FROM t ORDER BY random() LIMIT 1");
    db.check(&[("SELECT currval('s')", "1")]);
}

#[test]
fn recursive_queries_that_postgres_refuses() {
    let with = |step: &str| {
        format!("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL {step}) SELECT * FROM r LIMIT 9")
    };
    let steps = [
        "SELECT max(n)+1 FROM r WHERE n<3",
        "SELECT a.n+1 FROM r a, r b WHERE a.n<3",
        "SELECT t.id FROM t LEFT JOIN r ON t.id=r.n WHERE n<3",
        "SELECT t.id FROM r RIGHT JOIN t ON t.id=r.n WHERE n<3",
    ];
    for step in steps {
        fails(&mut small(), &[(&with(step), "42P19")]);
    }
    fails(
        &mut small(),
        &[("WITH RECURSIVE r(n) AS (SELECT n FROM r UNION ALL SELECT 1) SELECT * FROM r", "42P19")],
    );
    small().check(&[
        (&with("SELECT n+(SELECT max(b) FROM u) FROM r WHERE n<4"), "1; 3; 5"),
        (&with("SELECT r.n+1 FROM r LEFT JOIN t ON t.id=r.n WHERE r.n<3"), "1; 2; 3"),
        (
            &with("SELECT n+count(*) OVER () FROM r WHERE n<3")
                .replace("SELECT 1", "SELECT 1::int8"),
            "1; 2; 3",
        ),
    ]);
}

#[test]
fn casts_name_their_columns_by_the_outermost_type() {
    small().check(&[
        (
            "SELECT row_to_json(x) FROM (SELECT '2024-01-01'::date::text) x",
            "{\"text\":\"2024-01-01\"}",
        ),
        (
            "SELECT row_to_json(x) FROM (SELECT CASE WHEN true THEN 1 ELSE 2 END::text) x",
            "{\"text\":\"1\"}",
        ),
        (
            "SELECT row_to_json(x) FROM (SELECT id::text::varchar, N'a' FROM t WHERE id=1) x",
            "{\"id\":\"1\",\"bpchar\":\"a\"}",
        ),
        ("SELECT row_to_json(x) FROM (SELECT lower('A')::varchar) x", "{\"lower\":\"a\"}"),
    ]);
}

#[test]
fn arrays_compare_with_arrays_of_their_kind() {
    fails(
        &mut small(),
        &[
            ("SELECT array[1] = array[1::int8]", "42883"),
            ("SELECT array[1] @> array[1::int8]", "42883"),
            ("SELECT array[1] && array[1.5]", "42883"),
            ("SELECT array['a'::varchar] <@ array['a'::text]", "42883"),
        ],
    );
    small().check(&[
        ("SELECT array[1.5::numeric(5,2)] = array[1.50], '{1}' = array[1]", "t|t"),
        ("SELECT 1 = ANY(array[1::int8]), array_cat(array[1], array[2::int8])", "t|{1,2}"),
    ]);
}

#[test]
fn windows_are_refused_for_the_reason_that_postgres_gives() {
    fails(
        &mut small(),
        &[
            ("SELECT lead(id, 3, 1/0) OVER (ORDER BY id) FROM t", "22012"),
            (
                "SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY 'x'::uuid) OVER () FROM t",
                "22P02",
            ),
            ("SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY id) OVER () FROM t", "0A000"),
        ],
    );
}

/// In the query of an INSERT a literal or parameter without a type is what the column wants.
#[test]
fn literals_of_an_inserting_query_take_the_columns_types() {
    let mut db = Db::new();
    db.run("CREATE TABLE w (id int PRIMARY KEY, d date, n numeric(6,2), s varchar(3))");
    db.run("INSERT INTO w SELECT i, '2026-11-23', NULL, 'ab' FROM generate_series(1, 2) AS g(i)");
    db.run("INSERT INTO w (s, id, n) SELECT NULL, '7', '1.005'");
    assert_eq!(
        db.run("SELECT * FROM w ORDER BY 1"),
        ["1|2026-11-23||ab", "2|2026-11-23||ab", "7||1.01|"]
    );
    let refused = [
        ("INSERT INTO w SELECT 8, NULL, NULL, 'long'", "value too long for type"),
        ("INSERT INTO w SELECT 8, 'no date'", "invalid input syntax for type date"),
        ("INSERT INTO w SELECT 8, 5", "column \"d\" is of type date but expression is of type"),
        ("INSERT INTO w SELECT DISTINCT 8, '2026-11-23'", "expression is of type text"),
    ];
    for (sql, want) in refused {
        let error = db.try_run(sql).expect_err(sql).to_string();
        assert!(error.contains(want), "{sql}\n{error}");
    }
    let sql = "INSERT INTO w SELECT $1, $2, $3, $4 FROM w WHERE id = 7";
    let statement = db.session.parse_script(sql).expect("parses").remove(0);
    let prepared = db.session.prepare(statement, &[]).expect("plans");
    use braid_types::SqlType::{Date, Int4, Numeric, Varchar};
    let types = prepared.param_types();
    assert!(matches!(types, [Int4, Date, Numeric(_), Varchar(_)]), "{types:?}");
}
