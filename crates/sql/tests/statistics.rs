//! ANALYZE: what planners are told about tables, flat and inside of others.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use crate::harness::{run, session, state, try_run};
use braid_env::clock::WallClock;
use braid_env::fs::MemFs;
use braid_env::random::Random;
use braid_kv::{Store, StoreOptions, TxnOptions};
use braid_planner::{ColumnStatistics, TableStatistics};
use braid_rows::TableLayout;
use braid_sql::session::Session;
use braid_sql::{Database, NoGeneralQueries};
use braid_types::Datum;

fn open(fs: &MemFs) -> (Arc<Store>, Arc<Database>) {
    let mut options = StoreOptions::new(Arc::new(fs.clone()), "db", Arc::new(WallClock));
    options.engine.row_class = braid_keys::row_class;
    let store = Store::open(options).unwrap();
    let db = Database::open(store.coordinator(), Arc::new(NoGeneralQueries)).unwrap();
    (store, db)
}

fn database() -> Arc<Database> {
    open(&MemFs::new()).1
}

fn layout(db: &Arc<Database>, name: &str) -> TableLayout {
    let catalog = db.current_catalog().unwrap();
    let table = catalog.tables().find(|t| t.name == name).unwrap();
    TableLayout::new(&catalog, table).unwrap()
}

fn statistics(db: &Arc<Database>, name: &str) -> Option<Arc<TableStatistics>> {
    db.statistics(&layout(db, name).table)
}

fn column(db: &Arc<Database>, table: &str, name: &str) -> ColumnStatistics {
    let all = statistics(db, table).unwrap();
    let at = layout(db, table).table.columns.iter().position(|c| c.name == name).unwrap();
    all.column(at).unwrap().clone()
}

fn rows(db: &Arc<Database>, name: &str) -> f64 {
    db.estimated_rows(&layout(db, name))
}

/// Inserts one row for each number, in statements of some thousand.
fn fill(
    s: &mut Session,
    table: &str,
    numbers: std::ops::Range<usize>,
    row: impl Fn(usize) -> String,
) {
    let all: Vec<usize> = numbers.collect();
    for part in all.chunks(5_000) {
        let values: Vec<String> = part.iter().map(|n| row(*n)).collect();
        run(s, &format!("insert into {table} values {}", values.join(", ")));
    }
}

#[test]
fn values_of_a_table_that_is_read_whole() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create table t (id int primary key, kind text, n int, price numeric(10,2), j json)");
    assert!(statistics(&db, "t").is_none());
    assert_eq!(rows(&db, "t"), 0.0);
    fill(s, "t", 0..1_000, |n| {
        let kind = ["often", "often", "often", "rare"][n % 4];
        let n_or_null = if n % 10 == 0 { "NULL".into() } else { (n / 3).to_string() };
        format!("({n}, '{kind}', {n_or_null}, {n}.25, '{{}}')")
    });
    assert_eq!(rows(&db, "t"), 1_000.0, "what was written is counted");
    assert_eq!(run(s, "analyze t").tag, "ANALYZE");

    let all = statistics(&db, "t").unwrap();
    assert_eq!((all.rows, all.family), (1_000.0, None));
    assert!((20.0..60.0).contains(&all.row_bytes), "{}", all.row_bytes);
    let id = column(&db, "t", "id");
    assert_eq!((id.distinct, id.null_fraction, id.correlation), (1_000.0, 0.0, Some(1.0)));
    assert_eq!((id.common.len(), id.histogram.len(), id.width), (0, 101, 4.0));
    let kind = column(&db, "t", "kind");
    assert_eq!((kind.distinct, kind.histogram.len()), (2.0, 0));
    let common: Vec<f64> = kind.common.iter().map(|(_, part)| *part).collect();
    assert_eq!(common, [0.75, 0.25]);
    assert_eq!(kind.fraction_equal(&Datum::text("rare")), 0.25);
    assert_eq!(kind.fraction_of_equal_unknown(), 0.5);
    let n = column(&db, "t", "n");
    assert_eq!((n.null_fraction, n.distinct), (0.1, 334.0));
    let below = n.fraction_between(Unbounded, Excluded(&Datum::Int4(100)));
    assert!((below - 0.27).abs() < 0.02, "{below}");
    let price = column(&db, "t", "price");
    let cents = |text: &str| Datum::Numeric(Arc::new(text.parse().unwrap()));
    let some = price.fraction_between(Included(&cents("250")), Excluded(&cents("500")));
    assert!((some - 0.25).abs() < 0.02, "{some}");
    let json = column(&db, "t", "j");
    assert_eq!((json.common.len(), json.histogram.len(), json.distinct), (0, 0, 0.0));
}

#[test]
fn what_belongs_to_other_rows_or_columns_is_not_used() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create table t (a int primary key, b int, c text)");
    run(s, "insert into t values (1, 1, 'x'), (2, 2, 'y'); analyze t");
    run(s, "alter table t drop column b");
    assert_eq!(column(&db, "t", "c").distinct, 2.0, "columns are known by their ids");
    run(s, "alter table t add column b int");
    let at = layout(&db, "t").table.columns.iter().position(|c| c.name == "b").unwrap();
    assert!(statistics(&db, "t").unwrap().column(at).is_none());
    run(s, "alter table t alter column c type int using 1");
    let at = layout(&db, "t").table.columns.iter().position(|c| c.name == "c").unwrap();
    assert!(statistics(&db, "t").is_none_or(|all| all.column(at).is_none()), "another type");
    run(s, "analyze t; truncate t");
    assert!(statistics(&db, "t").is_none(), "those rows are gone");
    run(s, "analyze t");
    assert_eq!(statistics(&db, "t").unwrap().rows, 0.0);
    run(s, "drop table t; create table t (a int primary key, b int, c text)");
    assert!(statistics(&db, "t").is_none());
}

#[test]
fn single_columns_blocks_and_mistakes() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create table t (a int primary key, b int); create view v as select a from t");
    run(s, "insert into t values (1, 1), (2, 1); analyze t (b)");
    let all = statistics(&db, "t").unwrap();
    assert!(all.column(0).is_none() && all.column(1).is_some());
    run(s, "insert into t values (3, 2); analyze t (a)");
    let all = statistics(&db, "t").unwrap();
    let distinct = |at: usize| all.column(at).unwrap().distinct;
    assert_eq!((all.rows, distinct(0), distinct(1)), (3.0, 3.0, 1.5), "b is half of the rows");

    run(s, "begin; insert into t values (4, 4); analyze; rollback");
    assert_eq!(statistics(&db, "t").unwrap().rows, 4.0, "a block sees what it wrote");
    assert_eq!(run(s, "vacuum (analyze) t").tag, "VACUUM");
    assert_eq!(statistics(&db, "t").unwrap().rows, 3.0);
    run(s, "begin read only; analyze t; commit; analyze v");
    for (sql, expected) in [
        ("analyze nowhere", "42P01"),
        ("analyze t (x)", "42703"),
        ("analyze t (a, a)", "42701"),
        ("analyze t (a) b", "42601"),
        ("set default_statistics_target = 0", "22023"),
    ] {
        assert_eq!(state(s, sql), expected, "{sql}");
    }
    run(s, "set default_statistics_target = 1");
    fill(s, "t", 10..5_000, |n| format!("({n}, {})", n % 100));
    run(s, "analyze t");
    let b = column(&db, "t", "b");
    assert!(b.common.len() <= 1 && b.histogram.len() <= 2, "{b:?}");
    assert!(try_run(s, "analyze verbose t", &[]).is_ok());
}

#[test]
fn columns_have_targets_of_their_own() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create table t (a int primary key, b int, c int); set default_statistics_target = 3");
    fill(s, "t", 0..2_000, |n| format!("({n}, {}, {})", n % 50, n % 50));
    run(
        s,
        "alter table t alter column b set statistics 20; alter table t alter c set statistics 0",
    );
    run(s, "analyze t");
    assert_eq!(column(&db, "t", "a").histogram.len(), 4);
    assert_eq!(column(&db, "t", "b").common.len(), 20);
    assert!(statistics(&db, "t").unwrap().column(2).is_none(), "nobody wants to know");
    run(s, "alter table t alter b set statistics -1; alter table t alter c set statistics 20000");
    run(s, "analyze t");
    assert_eq!((column(&db, "t", "b").common.len(), column(&db, "t", "c").common.len()), (3, 50));
    for (sql, expected) in [
        ("alter table t alter b set statistics -2", "22023"),
        ("alter table t alter x set statistics 2", "42703"),
        ("alter table t alter b set statistics many", "42601"),
    ] {
        assert_eq!(state(s, sql), expected, "{sql}");
    }
}

/// Where it does not fit it is made smaller: a table with wide rows has statistics, too.
#[test]
fn a_sample_is_as_large_as_there_is_memory() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create table t (a int primary key, half int, b text)");
    fill(s, "t", 0..20_000, |n| format!("({n}, {}, '{n} {}')", n / 2, "x".repeat(200)));
    run(s, "set statement_mem = '1MB'");
    run(s, "analyze t");
    assert_eq!(rows(&db, "t"), 20_000.0, "every row is counted");
    let half = column(&db, "t", "half").distinct;
    assert!((5_000.0..=20_000.0).contains(&half), "{half}");
    run(s, "set statement_mem = '64kB'");
    assert_eq!(state(s, "analyze t"), "53200", "a few rows must fit");
    run(s, "reset statement_mem");
    assert_eq!(db.coordinator().memory().used(), 0);
    run(s, "analyze t");
}

#[test]
fn statistics_survive_a_restart() {
    let fs = MemFs::new();
    let (before, table) = {
        let (_store, db) = open(&fs);
        let s = &mut session(&db);
        run(s, "create table t (a int primary key, b text, c timestamptz, d float8[], e uuid)");
        fill(s, "t", 0..300, |n| {
            let day = n % 28 + 1;
            format!(
                "({n}, 'text {}', '2024-02-{day:02} 12:00+00', '{{{n}, NaN}}', \
                 '00000000-0000-0000-0000-{n:012}')",
                n % 7
            )
        });
        run(s, "analyze");
        (statistics(&db, "t").unwrap(), layout(&db, "t").table)
    };
    let (_store, db) = open(&fs);
    let after = db.statistics(&table).unwrap();
    assert_eq!(format!("{after:?}"), format!("{before:?}"));
    assert_eq!(rows(&db, "t"), 300.0);
    run(&mut session(&db), "drop table t");
    let key = braid_keys::system::statistics(table.id);
    let txn = db.coordinator().begin(braid_kv::TxnOptions::default()).unwrap();
    assert!(txn.get(&key).unwrap().is_none(), "it goes with its table");
}

#[test]
fn tables_inside_of_others_and_the_sizes_of_families() {
    let db = database();
    let s = &mut session(&db);
    run(
        s,
        "create table p (id int primary key, v text);
         create table c (id int, k int, n int, primary key (id, k))
             interleave in parent p on delete cascade;
         create table d (id int, k int, m int, primary key (id, k, m))
             interleave in parent c on delete cascade",
    );
    fill(s, "p", 0..200, |n| format!("({n}, 'v')"));
    // One parent in four has 1 child, one has 3, one has 5, one none.
    let sizes = [0, 1, 3, 5];
    let children: Vec<(usize, usize)> =
        (0..200).flat_map(|p| (0..sizes[p % 4]).map(move |k| (p, k))).collect();
    fill(s, "c", 0..children.len(), |n| format!("({}, {}, 7)", children[n].0, children[n].1));
    fill(s, "d", 0..children.len() * 2, |n| {
        format!("({}, {}, {})", children[n / 2].0, children[n / 2].1, n % 2)
    });
    run(s, "analyze");
    let family = |name: &str| {
        let all = statistics(&db, name).unwrap();
        (all.rows, all.family.map(|f| (f.average, f.most)))
    };
    assert_eq!(family("p"), (200.0, None));
    assert_eq!(family("c"), (450.0, Some((450.0 / 200.0, 5.0))));
    assert_eq!(family("d"), (900.0, Some((2.0, 2.0))));
    assert_eq!(column(&db, "c", "id").distinct, 150.0);
    assert_eq!(rows(&db, "d"), 900.0);
}

#[test]
fn the_sizes_of_families_are_seen_in_pieces_too() {
    let (store, db) = open(&MemFs::new());
    let s = &mut session(&db);
    run(
        s,
        "create table p (id int primary key, v text);
         create table c (id int, k int, v text, primary key (id, k))
             interleave in parent p on delete cascade",
    );
    // What cannot be compressed.
    let random = &mut Random::seeded(3);
    let texts: Vec<String> = (0..20_000)
        .map(|_| (0..12).map(|_| format!("{:016x}", random.next_u64())).collect())
        .collect();
    fill(s, "p", 0..2_000, |n| format!("({n}, 'v')"));
    fill(s, "c", 0..20_000, |n| format!("({}, {}, '{}')", n / 10, n % 10, texts[n]));
    store.engine().flush().unwrap();
    run(s, "set braid.analyze_whole_bytes = 1; set default_statistics_target = 5; analyze");
    let all = statistics(&db, "c").unwrap();
    assert!(all.rows != 20_000.0 && (all.rows / 20_000.0 - 1.0).abs() < 0.1, "{}", all.rows);
    let family = all.family.unwrap();
    assert!((family.average - 10.0).abs() < 0.5 && family.most == 10.0, "{family:?}");
    let id = column(&db, "c", "id").distinct;
    assert!((id / 2_000.0 - 1.0).abs() < 0.15, "{id}");
    let p = statistics(&db, "p").unwrap().rows;
    assert!((p / 2_000.0 - 1.0).abs() < 0.15, "{p}");
    let estimated = rows(&db, "c");
    run(s, "delete from p where id < 100");
    let fewer = estimated - rows(&db, "c");
    assert!((fewer - 1_000.0).abs() < 150.0, "{fewer}");
}

#[test]
fn rows_are_estimated_by_bytes_where_nothing_else_is_known() {
    let fs = MemFs::new();
    {
        let (store, db) = open(&fs);
        let s = &mut session(&db);
        run(s, "create table t (a int primary key, b int8, c text)");
        fill(s, "t", 0..20_000, |n| format!("({n}, {}, '{:032x}')", n * 7919, n * n * 7919));
        store.engine().flush().unwrap();
    }
    let (_store, db) = open(&fs);
    let said = rows(&db, "t");
    assert!((5_000.0..80_000.0).contains(&said), "{said}");
}

#[test]
fn rows_are_counted_as_they_are_written() {
    let db = database();
    let s = &mut session(&db);
    run(
        s,
        "create table p (id int primary key, v text);
         create table c (id int, k int, primary key (id, k)) interleave in parent p on delete cascade;
         create table r (id int primary key, p int references p on delete cascade)",
    );
    fill(s, "p", 0..100, |n| format!("({n}, 'v')"));
    fill(s, "c", 0..300, |n| format!("({}, {})", n / 3, n % 3));
    fill(s, "r", 0..100, |n| format!("({n}, {n})"));
    assert_eq!((rows(&db, "p"), rows(&db, "c")), (100.0, 300.0));
    run(s, "analyze; delete from c where id = 5");
    assert_eq!(rows(&db, "c"), 297.0);
    run(s, "update p set v = 'w' where id < 7; delete from p where id between 10 and 19");
    assert_eq!((rows(&db, "p"), rows(&db, "r")), (90.0, 90.0), "references cascade");
    run(s, "drop table r; delete from p where id between 20 and 29");
    assert_eq!(rows(&db, "p"), 80.0);
    assert_eq!(rows(&db, "c"), 297.0 - 30.0 - 30.0, "by what a family holds");
    run(s, "create table w (a int primary key, b int); insert into w values (1, 1), (2, 2)");
    run(s, "analyze w; alter table w alter column b type text using b::text || 'x'");
    assert_eq!(rows(&db, "w"), 2.0, "rows that were written anew");
    run(s, "create table big as select 1 as x; insert into big select x from big");
    assert_eq!(rows(&db, "big"), 2.0);
}

#[test]
fn plans_are_made_again_when_statistics_change_markedly() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create table t (a int primary key, b int)");
    let statement = || "select b from t where a = 3".to_string();
    let kept = |s: &mut Session| {
        let parsed = s.parse_script(&statement()).unwrap().remove(0);
        s.prepare(parsed, &[]).unwrap()
    };
    let (first, version) = (kept(s), db.statistics_version());
    assert!(Arc::ptr_eq(&first, &kept(s)));
    fill(s, "t", 0..1_000, |n| format!("({n}, {n})"));
    run(s, "analyze");
    let second = kept(s);
    assert!(!Arc::ptr_eq(&first, &second) && db.statistics_version() > version);
    let version = db.statistics_version();
    fill(s, "t", 1_000..1_010, |n| format!("({n}, {n})"));
    run(s, "analyze");
    assert!(Arc::ptr_eq(&second, &kept(s)), "much the same");
    assert_eq!(db.statistics_version(), version);
    assert_eq!(rows(&db, "t"), 1_010.0);
}

#[test]
fn tables_that_change_much_are_analyzed_by_themselves() {
    let db = database();
    let go_on = || db.analyze_changed(&|| false).unwrap();
    let s = &mut session(&db);
    run(s, "create table t (a int primary key, b int); create table u (a int primary key)");
    fill(s, "t", 0..50, |n| format!("({n}, {n})"));
    assert!(!go_on() && !go_on(), "50 rows are few");
    run(s, "insert into t values (50, 50)");
    assert!(go_on() && !go_on());
    assert_eq!(statistics(&db, "t").unwrap().rows, 51.0);
    run(s, "update t set b = 1");
    assert!(!go_on() && !go_on(), "51 of 55");
    run(s, "delete from t where a < 5");
    assert!(!go_on(), "somebody writes at the moment");
    assert!(go_on() && !go_on());
    assert_eq!(column(&db, "t", "b").distinct, 1.0);

    let seen = db.table_activity(&layout(&db, "t").table);
    assert_eq!((seen.inserted, seen.updated, seen.deleted, seen.modified), (51, 51, 5, 0));
    assert_eq!((seen.analyzes, seen.auto_analyzes), (0, 2));
    assert!(seen.last_analyze.is_none() && seen.last_auto_analyze.is_some());
    fill(s, "u", 0..5_000, |n| format!("({n})"));
    assert!(!db.analyze_changed(&|| true).unwrap() && statistics(&db, "u").is_none(), "stopped");
    let looks = std::cell::Cell::new(0);
    let ending = || {
        looks.set(looks.get() + 1);
        looks.get() > 10
    };
    assert!(!db.analyze_changed(&ending).unwrap() && looks.get() == 11, "at any row");
    assert!(go_on() && statistics(&db, "u").is_some());
    run(s, "truncate t, u");
    assert!(!go_on() && !go_on(), "what is gone needs no statistics");
}

/// Nodes that begin at the same time would all read the same tables.
#[test]
fn a_table_is_analyzed_by_one_node_at_a_time() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create table t (a int primary key)");
    fill(s, "t", 0..100, |n| format!("({n})"));
    let id = layout(&db, "t").table.id;
    let elsewhere = db.coordinator().begin(TxnOptions::default()).unwrap();
    elsewhere.put(braid_keys::system::analyzing(id), "claimed").unwrap();
    assert!(!db.analyze_changed(&|| false).unwrap() && statistics(&db, "t").is_none());
    elsewhere.rollback();
    assert!(db.analyze_changed(&|| false).unwrap() && statistics(&db, "t").is_some());
}

#[test]
fn the_background_can_be_turned_off() {
    let fs = MemFs::new();
    let shown = |s: &mut Session| run(s, "show autovacuum").rows.remove(0).remove(0);
    {
        let (_store, db) = open(&fs);
        let s = &mut session(&db);
        run(s, "create table t (a int primary key)");
        assert_eq!(shown(s), "on");
        assert_eq!(run(s, "alter system set autovacuum to off").tag, "ALTER SYSTEM");
        for (sql, expected) in [
            ("set autovacuum = on", "55P02"),
            ("alter system set autovacuum = 3", "22023"),
            ("alter system set nonsense = 3", "42704"),
            ("alter system set work_mem = '1MB'", "0A000"),
            ("alter system set local autovacuum = on", "42601"),
            ("alter system autovacuum = on", "42601"),
        ] {
            assert_eq!(state(s, sql), expected, "{sql}");
        }
        run(s, "begin");
        assert_eq!(state(s, "alter system reset autovacuum"), "25001");
        run(s, "rollback");
    }
    let (_store, db) = open(&fs);
    let s = &mut session(&db);
    assert_eq!(shown(s), "off");
    fill(s, "t", 0..100, |n| format!("({n})"));
    assert!(!db.analyze_changed(&|| false).unwrap());
    run(s, "alter system reset autovacuum");
    assert!(db.analyze_changed(&|| false).unwrap());
}

#[test]
fn a_process_that_begins_looks_for_tables_of_which_nothing_is_known() {
    let fs = MemFs::new();
    {
        let (store, db) = open(&fs);
        let s = &mut session(&db);
        run(s, "create table v (a int primary key, b text); create table w (a int primary key)");
        fill(s, "v", 0..20_000, |n| format!("({n}, md5('{n}'))"));
        store.engine().flush().unwrap();
    }
    let (_store, db) = open(&fs);
    assert!(db.analyze_changed(&|| false).unwrap());
    assert_eq!(statistics(&db, "v").unwrap().rows, 20_000.0);
    assert!(!db.analyze_changed(&|| false).unwrap(), "once");
}
