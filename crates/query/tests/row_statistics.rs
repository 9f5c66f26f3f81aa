//! What ANALYZE has found out, as PostgreSQL's tables show it.

use crate::harness::Db;

/// Tables with a column of every type.
const SETUP: &str = include_str!("row_statistics/setup.sql");
/// What PostgreSQL 15 answers to [`QUERY`] after them and `default_statistics_target = 4`.
const POSTGRESQL: &str = include_str!("row_statistics/postgresql15.txt");

/// Widths of `jsonb`, and of what PostgreSQL stores compressed, are its own.
const QUERY: &str = "select tablename, attname, null_frac, \
     case when attname not in ('doc', 'long') then avg_width end, n_distinct, \
     most_common_vals, most_common_freqs, histogram_bounds, correlation \
     from pg_stats where schemaname = 'public' order by tablename, attname";

fn analyzed() -> Db {
    let mut db = Db::new();
    db.run(SETUP);
    db.run("set default_statistics_target = 4; analyze");
    db
}

#[test]
fn statistics_of_small_tables_are_those_of_postgresql() {
    let mut db = analyzed();
    let ours = db.run(QUERY);
    let theirs: Vec<&str> = POSTGRESQL.lines().collect();
    let differ = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours != theirs);
    let differ: Vec<String> = differ.map(|(a, b)| format!("{a}\n{b}\n")).collect();
    assert!(differ.is_empty(), "ours, PostgreSQL's:\n{}", differ.join("\n"));
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn sizes_of_tables_and_what_was_written_to_them() {
    let mut db = analyzed();
    db.check(&[
        (
            "select relname, reltuples, relpages from pg_class \
             where relname in ('t', 't_pkey', 'empty', 'single', 'pg_class') order by 1",
            "empty|0|0; pg_class|-1|0; single|1|1; t|1000|112; t_pkey|1000|0",
        ),
        (
            "select relname, n_live_tup, n_tup_ins, n_mod_since_analyze, analyze_count, \
             last_analyze > now() - interval '1 hour', last_autoanalyze \
             from pg_stat_user_tables order by 1",
            "empty|0|0|0|1|t|; single|1|1|0|1|t|; t|1000|1000|0|1|t|",
        ),
        (
            "select staattnum, stakind1, stakind2, stakind3, stanumbers1, stavalues2 \
             from pg_statistic where starelid = 't'::regclass and staattnum in (1, 3) order by 1",
            "1|2|3|0||; 3|1|2|3|{0.009,0.009,0.009,0.009}|{4,28,52,76,100}",
        ),
    ]);
    db.run("create table fresh (a int primary key); delete from t where id <= 10");
    db.run("update single set b = 'x'; insert into fresh values (1), (2)");
    db.check(&[
        (
            "select relname, reltuples from pg_class where relname in ('fresh', 'fresh_pkey') \
             order by 1",
            "fresh|-1; fresh_pkey|0",
        ),
        (
            "select relname, n_live_tup, n_tup_ins, n_tup_upd, n_tup_del, n_mod_since_analyze \
             from pg_stat_all_tables where n_mod_since_analyze > 0 order by 1",
            "fresh|2|2|0|0|2; single|1|1|1|0|1; t|990|1000|0|10|10",
        ),
        ("select count(*) from pg_stats where tablename = 'fresh'", "0"),
        ("select count(*) from pg_stat_sys_tables", "0"),
    ]);
    db.run("analyze pg_class; analyze");
    db.check(&[("select reltuples from pg_class where relname = 'fresh'", "2")]);
}

/// Rows of a table, and what is known of its columns: `n_distinct` of pg_stats by name.
fn sampled(db: &mut Db, table: &str) -> (f64, impl Fn(&str) -> f64 + use<>) {
    let rows = db.run(&format!("select reltuples from pg_class where relname = '{table}'"));
    let rows: f64 = rows[0].parse().unwrap();
    let query = "select attname, case when n_distinct < 0 then -n_distinct * reltuples \
                 else n_distinct end from pg_stats, pg_class \
                 where relname = tablename and tablename =";
    let columns = db.run(&format!("{query} '{table}'"));
    let distinct = move |name: &str| -> f64 {
        let mut found = columns.iter().filter_map(|line| line.split_once('|'));
        let (_, n) = found.find(|(column, _)| *column == name).unwrap();
        n.parse().unwrap()
    };
    (rows, distinct)
}

fn near(said: f64, truth: f64, ratio: f64) -> bool {
    said.max(truth) / said.min(truth).max(1e-9) < ratio
}

#[test]
fn a_large_table_is_sampled_from_all_over() {
    let mut db = Db::new();
    db.run(
        "create table big (id int primary key, few int, many int, hash text, beside int, n int);
         insert into big select i, i % 12, (i::int8 * 7919 % 9973)::int, md5(i::text), i / 10,
             case when (i::int8 * 7919 % 9973) % 4 = 0 then null when i < 10000 then i else 77 end
             from generate_series(0, 99999) g(i);
         set braid.analyze_whole_bytes = 1; set default_statistics_target = 10; analyze big",
    );
    let (rows, distinct) = sampled(&mut db, "big");
    assert!(rows != 100_000.0 && near(rows, 100_000.0, 1.1), "{rows}");
    for (column, truth, ratio) in [
        ("id", 100_000.0, 1.1),
        ("few", 12.0, 1.01),
        ("many", 9_973.0, 1.3),
        ("hash", 100_000.0, 1.1),
        ("beside", 10_000.0, 4.0),
    ] {
        assert!(near(distinct(column), truth, ratio), "{column}: {}", distinct(column));
    }
    db.check(&[
        (
            "select abs(null_frac - 0.25) < 0.04, \
             most_common_vals, most_common_freqs[1] between 0.62 and 0.73 \
             from pg_stats where tablename = 'big' and attname = 'n'",
            "t|{77}|t",
        ),
        (
            "select correlation > 0.99, array_length(histogram_bounds::int[], 1), \
             (histogram_bounds::int[])[1] < 500, (histogram_bounds::int[])[11] > 99500, \
             abs((histogram_bounds::int[])[6] - 50000) < 4000 \
             from pg_stats where tablename = 'big' and attname = 'id'",
            "t|11|t|t|t",
        ),
    ]);
}

#[test]
fn large_families_are_sampled_from_all_over() {
    let mut db = Db::new();
    db.run(
        "create table p (id int primary key, v text);
         create table c (id int, k int, n text, primary key (id, k)) interleave in parent p;
         create table d (id int, k int, m int, n text, primary key (id, k, m))
             interleave in parent c;
         insert into p select i, 'p' || i % 7 from generate_series(1, 4000) g(i);
         insert into c select i / 5, i % 5, md5(i::text) from generate_series(5, 20004) g(i);
         insert into d select i / 20, i / 4 % 5, i % 4, md5(i::text)
             from generate_series(20, 80019) g(i);
         create table seldom (id int, k int, primary key (id, k)) interleave in parent p;
         insert into seldom select i * 100, 1 from generate_series(1, 30) g(i);
         set braid.analyze_whole_bytes = 1; set default_statistics_target = 10; analyze",
    );
    assert_eq!(sampled(&mut db, "seldom").0, 30.0, "few rows among many are counted");
    let (rows, distinct) = sampled(&mut db, "d");
    assert!(near(rows, 80_000.0, 1.1), "{rows}");
    assert!(near(distinct("id"), 4_000.0, 1.2), "{}", distinct("id"));
    assert!(near(distinct("k"), 5.0, 1.01) && near(distinct("m"), 4.0, 1.01));
    assert!(near(distinct("n"), 80_000.0, 1.1), "{}", distinct("n"));
    let (rows, distinct) = sampled(&mut db, "c");
    assert!(near(rows, 20_000.0, 1.15), "{rows}");
    assert!(near(distinct("id"), 4_000.0, 1.2), "{}", distinct("id"));
    let (rows, distinct) = sampled(&mut db, "p");
    assert!(near(rows, 4_000.0, 1.25) && distinct("v") == 7.0, "{rows}");
}
