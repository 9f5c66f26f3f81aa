//! DELETE of a span of the key of a table in which nothing is interleaved: many rows go by one
//! tombstone, and that makes no difference but in cost.

use std::sync::Arc;

use crate::harness::actors::Stage;
use crate::harness::{database, rows, run, session, state, tag, try_run};
use braid_env::clock::WallClock;
use braid_env::fs::MemFs;
use braid_env::random::Random;
use braid_kv::{CommitTs, Store, StoreOptions};
use braid_sql::{Database, NoGeneralQueries, Session};

const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

/// What a statement did: rows, tombstones, point writes, index entries, probes.
fn work(s: &mut Session, sql: &str) -> [u64; 5] {
    let lines = rows(s, &format!("explain (analyze, timing off, summary off) {sql}"));
    let last = lines.last().unwrap_or_else(|| panic!("{sql}"));
    let value = |name: &str| {
        let (_, rest) = last.split_once(&format!("{name}: ")).unwrap_or_else(|| panic!("{last}"));
        rest.split(',').next().unwrap().trim().parse().unwrap()
    };
    ["rows", "tombstones", "point writes", "index entries", "probes"].map(value)
}

/// Inserts so many rows, as `row` says them.
fn fill(s: &mut Session, into: &str, count: usize, row: impl Fn(usize) -> String) {
    let values: Vec<String> = (0..count).map(row).collect();
    for part in values.chunks(5_000) {
        run(s, &format!("insert into {into} values {}", part.join(", ")));
    }
}

fn plan(s: &mut Session, sql: &str) -> String {
    rows(s, &format!("explain {sql}")).join("\n")
}

#[test]
fn many_rows_go_by_one_tombstone_for_each_span() {
    let s = &mut session(&database());
    run(s, "create table t (g int, k int, v text, primary key (g, k))");
    fill(s, "t", 100_000, |n| format!("({}, {}, 'v')", n / 20_000, n % 20_000));
    for (filter, count, tombstones) in [
        ("g = 0 and k >= 10 and k < 19990", 19_980, 1),
        ("g = 0", 20, 0),
        ("g = 1 and k < 200", 200, 0),
        ("g = 1 and k between 200 and 999 or g = 3 and k < 5000", 5_800, 2),
        ("(g, k) >= (4, 1000)", 19_000, 2),
        ("g in (1, 3)", 34_000, 2),
        ("g = any ('{2, 7}')", 20_000, 2),
        ("g >= 0", 1_000, 1),
        ("g >= 0", 0, 0),
    ] {
        let done = work(s, &format!("delete from t where {filter}"));
        assert_eq!(
            done,
            [count, tombstones, if tombstones > 0 { 0 } else { count }, 0, 0],
            "{filter}"
        );
        assert_eq!(rows(s, &format!("select count(*) from t where {filter}")), ["0"], "{filter}");
    }
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
    // Without any condition; and what comes again.
    fill(s, "t", 1_000, |n| format!("(1, {n}, 'v')"));
    run(s, "begin; delete from t");
    fill(s, "t", 1_000, |n| format!("(1, {n}, 'w')"));
    assert_eq!(rows(s, "select count(*), min(v) from t"), ["1000|w"]);
    run(s, "commit");
    assert_eq!(rows(s, "select count(*), min(v) from t"), ["1000|w"]);
}

#[test]
fn the_plan_says_which_way_and_why() {
    let s = &mut session(&database());
    run(s, "create table t (g int, k int, v int, primary key (g, k)); create index t_v on t (v)");
    let says = plan(s, "delete from t where g = 1 and k > 5");
    assert!(says.contains("range delete: t, row by row if they are few"), "{says}");
    assert!(says.contains("entries left to the background: t_v"), "{says}");
    let says = plan(s, "delete from t where g = 1 and k = 5");
    assert!(says.contains("row by row: single rows by their keys"), "{says}");
    let says = plan(s, "delete from t where g = 1 and v = 5");
    assert!(says.contains("(v = 5) is not a span of the primary key"), "{says}");
}

#[test]
fn few_of_many_rows_take_their_entries_along() {
    let s = &mut session(&database());
    run(s, "create table t (k int primary key, v int); create index on t (v)");
    fill(s, "t", 40_000, |n| format!("({n}, {n})"));
    run(s, "analyze t");
    // Somebody would look through 40,000 entries for 500 dead ones.
    assert_eq!(work(s, "delete from t where k < 500"), [500, 0, 1_000, 500, 0]);
    assert_eq!(work(s, "delete from t where k < 5000"), [4_500, 1, 1, 0, 0]);
    assert_eq!(rows(s, "select count(*) from t where v < 6000"), ["1000"]);
    // Many spans with few rows each.
    run(s, "create table m (g int, k int, primary key (g, k))");
    fill(s, "m", 4_000, |n| format!("({}, {n})", n / 10));
    let list: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let done = work(s, &format!("delete from m where g in ({})", list.join(", ")));
    assert_eq!(done, [3_000, 0, 3_000, 0, 0]);
    assert_eq!(rows(s, "select count(*), min(g) from m"), ["1000|300"]);
}

/// Twins: `a` is deleted from by spans, `b` by the same conditions with one that no span says.
const TWINS: &str = "
    create table {} (g int, k int, u int, s text, primary key (g, k DIRECTION));
    create unique index {}_u on {} (u);
    create index {}_s on {} (s) where u > 50;
    create index {}_gu on {} (g, (u % 7));
    create table {}_c (id int primary key, g int, k int, foreign key (g, k) references {} on delete ACTION);
    INDEX
    create table {}_d (g int, k int, n int, primary key (g, k, n), foreign key (g, k) references {} on delete cascade);";

fn condition(r: &mut Random) -> String {
    let (g, k) = (r.below(4), r.below(1_500));
    let more = k + 200 + r.below(900);
    match r.below(9) {
        0 => "true".into(),
        1 => format!("g = {g}"),
        2 => format!("g = {g} and k >= {k} and k < {more}"),
        3 => format!("g in ({g}, {})", r.below(4)),
        4 => format!("g = {g} and k < {k} or g = {} and k > {more}", r.below(4)),
        5 => format!("(g, k) > ({g}, {k})"),
        6 => format!("g = any ('{{{g}, 1}}') and k > {k}"),
        7 => format!("g >= {g} and g < 3"),
        _ => format!("g = {g} and k between {k} and {more}"),
    }
}

fn statement(r: &mut Random) -> String {
    let (g, k) = (r.below(4), r.below(2_000));
    match r.below(12) {
        0..=3 => {
            let row = |n: u64| format!("({g}, {}, {}, 's{}')", k + n, g * 5_000 + k + n, n % 5);
            let values: Vec<String> = (0..400).map(row).collect();
            format!("insert into {{}} values {} on conflict do nothing", values.join(", "))
        }
        4 => format!(
            "update {{}} set s = 'x', u = u + 20000 where g = {g} and k < {k} and u < 20000"
        ),
        5 => format!(
            "insert into {{}}_c values ({0}, {g}, {1}) on conflict do nothing",
            r.below(99),
            k % 700
        ),
        6 => {
            let values: Vec<String> =
                (0..300).map(|n| format!("({g}, {}, {n})", k % 700)).collect();
            format!("insert into {{}}_d values {} on conflict do nothing", values.join(", "))
        }
        7 => format!("delete from {{}} where ({}){{+}} returning g, k, u", condition(r)),
        _ => format!("delete from {{}} where ({}){{+}}", condition(r)),
    }
}

fn outcome(s: &mut Session, sql: &str) -> String {
    match try_run(s, sql, &[]) {
        Ok(mut answer) => {
            answer.rows.sort();
            format!("{} {:?}", answer.tag, answer.rows)
        }
        Err(e) => e.state().0.to_string(),
    }
}

fn contents(s: &mut Session, twin: &str) -> Vec<Vec<String>> {
    let queries = [
        "select * from {}",
        "select g, k from {} where u >= 0",
        "select u from {} where u > 300",
        "select count(*) from {} where u < 7000",
        "select g, k from {} where s = 's1' and u > 50",
        "select k, u from {} where g = 1 and u % 7 = 3",
        "select * from {}_c",
        "select count(*), min(n) from {}_d where g > 0",
    ];
    let of = |q: &&str| {
        let mut found = rows(s, &q.replace("{}", twin));
        found.sort();
        found
    };
    queries.iter().map(of).collect()
}

fn one_seed(seed: u64) {
    let r = &mut Random::seeded(seed);
    let s = &mut session(&database());
    let action = *r.pick(&["no action", "cascade", "set null", "restrict"]);
    let direction = *r.pick(&["asc", "desc"]);
    let index = *r.pick(&["", "create index on {}_c (g, k);"]);
    let schema = TWINS.replace("DIRECTION", direction).replace("ACTION", action);
    let schema = schema.replace("INDEX", index);
    ["a", "b"].iter().for_each(|twin| {
        run(s, &schema.replace("{}", twin));
    });
    let mut open = false;
    for step in 0..40 {
        let control = match r.below(8) {
            0 if !open => Some(format!("begin isolation level {}", r.pick(&LEVELS))),
            0 | 1 if open => Some((*r.pick(&["commit", "rollback", "rollback to x"])).to_string()),
            2 if open => Some("savepoint x".into()),
            _ => None,
        };
        if let Some(control) = control {
            let worked = try_run(s, &control, &[]).is_ok();
            open = match control.split(' ').next() {
                Some("begin") => true,
                Some("savepoint") => open,
                _ if control == "rollback to x" => open,
                _ => false,
            };
            if !worked && open {
                run(s, "rollback");
                open = false;
            }
        }
        let sql = statement(r);
        let (a, b) = (sql.replace("{}", "a").replace("{+}", ""), sql.replace("{}", "b"));
        // In a block an error ends it for both.
        let point = if open { "savepoint each" } else { "select 1" };
        run(s, point);
        let first = outcome(s, &a);
        if open && first.len() == 5 {
            run(s, "rollback to each");
        }
        run(s, point);
        let second = outcome(s, &b.replace("{+}", " and u + 0 > -1"));
        if open && second.len() == 5 {
            run(s, "rollback to each");
        }
        let story = &a[..a.len().min(120)];
        assert_eq!(first, second, "seed {seed}, step {step}, {action}: {story}");
        if step % 4 == 3 {
            let (of_a, of_b) = (contents(s, "a"), contents(s, "b"));
            assert!(of_a == of_b, "seed {seed}, step {step}, {action}, {direction}: {story}");
        }
    }
}

#[test]
fn spans_and_rows_give_the_same_answers() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
    };
    let first = number("BRAID_FIRST_SEED", 1);
    for seed in first..first + number("BRAID_SEEDS", 4) {
        one_seed(seed);
    }
}

/// A table of 2,000 rows with an index.
fn filled() -> Arc<Database> {
    let db = database();
    let s = &mut session(&db);
    run(
        s,
        "create table t (k int primary key, v int); create index on t (v); create table o (k int)",
    );
    fill(s, "t", 2_000, |n| format!("({}, 1)", n * 2));
    db
}

#[test]
fn who_inserts_first_is_not_waited_for() {
    for level in LEVELS {
        for end in ["commit", "rollback"] {
            let db = filled();
            let mut stage = Stage::new(&db, 2, "");
            stage.run(0, &format!("begin isolation level {level}")).unwrap();
            stage.run(0, "insert into t values (3, 7)").unwrap();
            stage.run(1, &format!("begin isolation level {level}")).unwrap();
            assert_eq!(stage.run(1, "delete from t where k < 3000").unwrap().tag, "DELETE 1500");
            stage.run(1, "commit").unwrap();
            stage.run(0, end).unwrap();
            let s = &mut session(&db);
            let left = if end == "commit" { "501" } else { "500" };
            assert_eq!(rows(s, "select count(*) from t"), [left], "{level} {end}");
            assert_eq!(rows(s, "select count(*) from t where v > 0"), [left], "{level} {end}");
        }
    }
}

#[test]
fn who_inserts_after_it_waits_and_goes_on() {
    for level in LEVELS {
        for end in ["commit", "rollback"] {
            let db = filled();
            let mut stage = Stage::new(&db, 3, "");
            stage.run(0, &format!("begin isolation level {level}")).unwrap();
            assert_eq!(stage.run(0, "delete from t where k < 3000").unwrap().tag, "DELETE 1500");
            // Outside of the span nobody waits; readers never do.
            stage.run(1, "insert into t values (3001, 7)").unwrap();
            let count = stage.run(1, "select count(*) from t").unwrap().rows;
            assert_eq!(count, [["2001"]], "{level}");
            stage.send(1, "insert into t values (3, 7), (4, 7) on conflict do nothing");
            stage.send(2, "update t set v = 9 where k = 2");
            assert!(stage.waits(1) && stage.waits(2), "{level}");
            stage.run(0, end).unwrap();
            let (inserted, updated) = match end {
                "commit" => ("INSERT 0 2", "UPDATE 0"),
                _ => ("INSERT 0 1", "UPDATE 1"),
            };
            assert_eq!(stage.take(1).unwrap().tag, inserted, "{level} {end}");
            assert_eq!(stage.take(2).unwrap().tag, updated, "{level} {end}");
            let s = &mut session(&db);
            let left = if end == "commit" { "503" } else { "2002" };
            assert_eq!(rows(s, "select count(*) from t"), [left], "{level} {end}");
            assert_eq!(rows(s, "select count(*) from t where v > 0"), [left], "{level} {end}");
        }
    }
}

#[test]
fn what_a_view_does_not_show_stays() {
    for level in LEVELS {
        let db = filled();
        let mut stage = Stage::new(&db, 2, "");
        stage.run(0, &format!("begin isolation level {level}; select * from o")).unwrap();
        stage.run(1, "insert into t values (3, 7)").unwrap();
        let deleted = stage.run(0, "delete from t where k < 3000");
        let left = match level {
            "repeatable read" => {
                assert_eq!(deleted.unwrap().tag, "DELETE 1500");
                501
            }
            // The statement, or the block so far, sees the newer state.
            _ => {
                assert_eq!(deleted.unwrap().tag, "DELETE 1501", "{level}");
                500
            }
        };
        stage.run(0, "commit").unwrap();
        let s = &mut session(&db);
        assert_eq!(rows(s, "select count(*) from t"), [left.to_string()], "{level}");
        assert_eq!(rows(s, "select count(*) from t where v > 0"), [left.to_string()], "{level}");
        // A row that has changed is in the way of a view that is kept.
        let mut stage = Stage::new(&filled(), 2, "");
        stage.run(0, &format!("begin isolation level {level}; select * from o")).unwrap();
        stage.run(1, "update t set v = 5 where k = 2").unwrap();
        let deleted = stage.run(0, "delete from t where k < 3000");
        match level {
            "repeatable read" => assert_eq!(deleted.unwrap_err().state().0, "40001"),
            _ => assert_eq!(deleted.unwrap().tag, "DELETE 1500", "{level}"),
        }
    }
}

#[test]
fn references_are_asked_for_all_rows_together() {
    let s = &mut session(&database());
    run(
        s,
        "create table p (k int primary key);
         create table c (id int primary key, k int references p); create index on c (k);
         create table tree (id int primary key, up int references tree);
         create table cut (id int primary key, k int references p on delete set null)",
    );
    fill(s, "p", 3_000, |n| format!("({n})"));
    run(s, "insert into c values (1, 2500), (2, null); insert into cut values (1, 5), (2, 2900)");
    let refused = try_run(s, "delete from p where k > 2000", &[]).err().unwrap();
    assert_eq!(refused.state().0, "23503");
    assert_eq!(refused.detail(), Some("Key (k)=(2500) is still referenced from table \"c\"."));
    assert_eq!(work(s, "delete from p where k < 2000")[..2], [2_000, 1]);
    assert_eq!(rows(s, "select * from cut"), ["1|NULL", "2|2900"]);
    // Many that refer elsewhere, found by an index: each row asks for its own.
    run(s, "delete from c; delete from cut; delete from p");
    fill(s, "p", 50_000, |n| format!("({n})"));
    fill(s, "c", 20_000, |n| format!("({n}, {})", 1_000 + n));
    assert_eq!(work(s, "delete from p where k < 500")[..2], [500, 0]);
    assert_eq!(work(s, "delete from p where k >= 40000")[..2], [10_000, 1]);
    assert_eq!(state(s, "delete from p where k > 20000"), "23503");
    // Rows that refer to each other.
    fill(s, "tree", 2_000, |n| {
        format!("({n}, {})", if n == 0 { "null".into() } else { (n - 1).to_string() })
    });
    assert_eq!(state(s, "delete from tree where id < 1500"), "23503");
    assert_eq!(work(s, "delete from tree where id >= 500")[..2], [1_500, 1]);
    assert_eq!(tag(s, "delete from tree"), "DELETE 500");
}

#[test]
fn entries_that_are_left_are_taken_away() {
    let fs = MemFs::new();
    let mut options = StoreOptions::new(Arc::new(fs), "db", Arc::new(WallClock));
    options.engine.row_class = braid_keys::row_class;
    let store = Store::open(options).unwrap();
    let db = Database::open(store.coordinator(), Arc::new(NoGeneralQueries)).unwrap();
    let s = &mut session(&db);
    run(s, "create table t (k int primary key, v int, u int unique); create index on t (v)");
    fill(s, "t", 3_000, |n| format!("({n}, {n}, {n})"));
    run(s, "delete from t where k between 1000 and 1999");
    // Values of rows that are gone are free, also for many rows at once.
    fill(s, "t", 500, |n| format!("({}, {}, {})", 5_000 + n, 1_200 + n, 1_200 + n));
    assert_eq!(state(s, "insert into t values (9000, 0, 1300)"), "23505");
    assert_eq!(rows(s, "select k from t where u = 1300"), ["5100"]);
    assert_eq!(rows(s, "select count(*) from t where v between 1000 and 1999"), ["500"]);
    db.reclaim(CommitTs(u64::MAX), 1_000_000).unwrap();
    // Those of u were taken over by new rows.
    assert_eq!(db.reclaimed().dead_entries, 1_500);
    assert_eq!(rows(s, "select count(*) from t where v between 1000 and 1999"), ["500"]);
    assert_eq!(rows(s, "select count(*) from t where u > 0"), ["2499"]);
}

/// Keys and tombstones that a change of a partition of so many rows has written.
fn written(count: usize, change: &str, index: &str) -> (u64, u64) {
    let mut options = StoreOptions::new(Arc::new(MemFs::new()), "db", Arc::new(WallClock));
    options.engine.row_class = braid_keys::row_class;
    let store = Store::open(options).unwrap();
    let db = Database::open(store.coordinator(), Arc::new(NoGeneralQueries)).unwrap();
    let s = &mut session(&db);
    run(
        s,
        "create table t (d date, g int, k int, v int, primary key (d, g, k)) partition by range (d, g);
         create table t1 partition of t for values from ('2024-01-01', 0) to ('2024-02-01', 0);
         create table t2 partition of t for values from ('2024-02-01', 0) to ('2024-02-01', 9);
         create table t3 partition of t for values from ('2024-02-01', 9) to (maxvalue, maxvalue)",
    );
    run(s, index);
    let days = ["2024-01-31', 12", "2024-02-01', 3", "2024-02-01', 9"];
    for day in days {
        fill(s, "t", count, |n| format!("('{day}, {n}, {n})"));
    }
    let metrics = || {
        let metrics = store.engine().metrics();
        (metrics.points_written, metrics.tombstones_written)
    };
    let before = metrics();
    run(s, change);
    let after = metrics();
    assert_eq!(rows(s, "select count(*) from t"), [(2 * count).to_string()], "{change}");
    assert_eq!(rows(s, "select count(*) from t where v >= 0"), [(2 * count).to_string()]);
    assert_eq!(
        rows(s, "select count(*) from t where d = '2024-01-31'"),
        [if change.contains("t1") { "0".into() } else { count.to_string() }]
    );
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn partitions_go_at_the_same_cost_with_few_rows_and_many() {
    for index in ["", "create index on t (v); create unique index on t (v, d, g)"] {
        for change in
            ["drop table t1", "truncate t2", "drop table t2", "truncate t1", "drop table t3"]
        {
            let (some, many) = (written(300, change, index), written(4_000, change, index));
            assert_eq!(some, many, "{change} {index}");
            assert!(many.0 < 20 && many.1 >= 1, "{change}: {many:?}");
        }
    }
}

#[test]
fn a_partition_is_emptied_and_moves_out_in_a_block_and_back() {
    for level in LEVELS {
        let s = &mut session(&database());
        run(
            s,
            "create table t (k int, v int, primary key (k)) partition by range (k);
             create table t1 partition of t for values from (0) to (1000);
             create table t2 partition of t for values from (1000) to (2000);
             create table rest partition of t default; create index on t (v)",
        );
        fill(s, "t", 3_000, |n| format!("({n}, {n})"));
        assert_eq!(work(s, "delete from t2 where k < 1500")[..2], [500, 1], "{level}");
        run(s, &format!("begin isolation level {level}; savepoint a; drop table t1"));
        assert_eq!(rows(s, "select count(*) from t"), ["1500"], "{level}");
        assert_eq!(rows(s, "select count(*) from t where v < 1000"), ["0"], "{level}");
        run(s, "rollback to a; truncate t1");
        run(s, "insert into t1 values (7, 7)");
        assert_eq!(rows(s, "select count(*) from t where v < 1000"), ["1"], "{level}");
        run(s, "rollback to a; alter table t detach partition t1");
        assert_eq!(rows(s, "select count(*) from t1 where v < 1000"), ["1000"], "{level}");
        assert_eq!(rows(s, "select count(*) from t where v < 1000"), ["0"], "{level}");
        run(s, "commit");
        assert_eq!(rows(s, "select count(*) from t"), ["1500"], "{level}");
        assert_eq!(rows(s, "select count(*) from t where k >= 2000"), ["1000"], "{level}");
        run(s, "truncate rest");
        assert_eq!(rows(s, "select count(*), min(k) from t"), ["500|1500"], "{level}");
    }
}
