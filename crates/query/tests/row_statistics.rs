//! What ANALYZE has found out, as PostgreSQL's tables show it.

mod harness;

use harness::Db;

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
            "empty|0|0; single|1|1; t|1000|112; t_pkey|1000|0",
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
