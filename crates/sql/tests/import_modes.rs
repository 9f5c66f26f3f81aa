//! IMPORT in all of its modes: whatever way rows take, the table holds what INSERT makes of them.

use crate::harness;

use crate::harness::import_files::Files;
use crate::harness::{error, rows, run, state, tag};
use braid_env::random::Random;
use braid_sql::Session;

const ROWS: u64 = 8_000;

fn make_tables(s: &mut Session) {
    run(s, "create table p (id int primary key, n int); create table other (id int primary key)");
    run(
        s,
        "create table flat (id int, k int, t text, o int references other, primary key (id, k));
         create index on flat (t); create unique index on flat (k)",
    );
    run(
        s,
        "create table inside (id int, k int, t text, o int references other, primary key (id, k))
             interleave in parent p;
         create index on inside (t); create unique index on inside (k)",
    );
    for (table, columns) in [("p", 2), ("other", 1)] {
        let values: Vec<String> =
            (0..1000).map(|n| format!("({})", vec![n.to_string(); columns].join(", "))).collect();
        run(s, &format!("insert into {table} values {}", values.join(", ")));
    }
}

/// A row long enough for a thousand of them to fill a part of a megabyte.
fn line(n: u64) -> String {
    let text = format!("{:05}{}", n * 7919 % 100_003, "x".repeat(400));
    format!("{},{n},{text},{}\n", n / 100, n % 1000)
}

fn orders() -> Vec<(&'static str, Vec<u64>)> {
    let sorted: Vec<u64> = (0..ROWS).collect();
    let mut random = sorted.clone();
    Random::seeded(1).shuffle(&mut random);
    let mut nearly = sorted.clone();
    nearly.chunks_mut(50).for_each(|part| Random::seeded(2).shuffle(part));
    // Most rows in order, some of them anywhere.
    let mut strays = sorted.clone();
    for n in (0..ROWS as usize).step_by(100) {
        strays.swap(n, (n * 37 + 11) % ROWS as usize);
    }
    let reversed = sorted.iter().rev().copied().collect();
    vec![
        ("sorted", sorted),
        ("nearly sorted", nearly),
        ("strays", strays),
        ("reversed", reversed),
        ("random", random),
    ]
}

fn content(s: &mut Session, table: &str) -> Vec<String> {
    let mut all = rows(s, &format!("select * from {table} order by id, k"));
    for n in (0..100_003).step_by(9999) {
        let sql = format!("select k from {table} where t = '{n:05}{}'", "x".repeat(400));
        all.extend(rows(s, &sql));
    }
    all.extend(rows(s, &format!("select id from {table} where k = 4711")));
    all
}

#[test]
fn all_modes_hold_the_same_rows_in_every_order() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    make_tables(s);
    // What INSERT makes of them.
    for n in (0..ROWS).step_by(1000) {
        let values = |n: u64| {
            let row = line(n);
            let cells: Vec<&str> = row.trim().split(',').collect();
            format!("({}, {}, '{}', {})", cells[0], cells[1], cells[2], cells[3])
        };
        let values: Vec<String> = (n..n + 1000).map(values).collect();
        run(s, &format!("insert into flat values {}", values.join(", ")));
    }
    let want = content(s, "flat");
    let all = std::env::var("BRAID_ALL_SIZES").is_ok();
    for (n, (order, numbers)) in orders().into_iter().enumerate() {
        let (a, b) = numbers.split_at(numbers.len() / 2);
        files.put("1.csv", a.iter().map(|n| line(*n)).collect::<String>());
        files.put("2.csv", b.iter().map(|n| line(*n)).collect::<String>());
        for mode in ["mode = one_pass", "mode = two_pass", "mode = 'auto'", "online"] {
            if mode == "online" && !["strays", "random"].contains(&order) {
                continue;
            }
            // Each mode with every second order; all of them by flag.
            let is_short = mode == ["mode = one_pass", "mode = two_pass"][n % 2];
            if is_short && order != "random" && !all {
                continue;
            }
            let memory = if mode == "online" { "" } else { ", memory = '1MB'" };
            let tables = if order == "random" { &["flat", "inside"][..] } else { &["inside"] };
            for table in tables {
                run(s, &format!("truncate {table}"));
                let sql = format!("import into {table} csv data ('1.csv', '2.csv')");
                let imported = tag(s, &format!("{sql} with {mode}{memory}"));
                assert_eq!(imported, format!("IMPORT {ROWS}"), "{order} {mode} {table}");
                assert!(content(s, table) == want, "{order} {mode} {table}");
            }
        }
    }
}

/// What went to the disk, as the notice says it: ssts, runs, parts.
fn ways(s: &mut Session, sql: &str) -> [usize; 3] {
    s.take_notices();
    run(s, sql);
    let notices = s.take_notices();
    let told = notices.iter().find(|n| n.message.contains("went to the disk"));
    let told = &told.unwrap_or_else(|| panic!("{notices:?}")).message;
    let numbers = told.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty());
    let numbers: Vec<usize> = numbers.map(|n| n.parse().unwrap()).collect();
    [numbers[0], numbers[1], numbers[2]]
}

/// Why `auto` did what it did, as notices of the last statement say it.
fn reasons(s: &mut Session, sql: &str) -> Vec<String> {
    s.take_notices();
    run(s, sql);
    let notices = s.take_notices().into_iter().map(|n| n.message.clone());
    notices.filter(|n| n.starts_with("auto made")).collect()
}

#[test]
fn auto_says_what_it_did_and_why() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    run(s, "create table t (p int, k int primary key, t text, o int)");
    let import = "import into t csv data ('a.csv') with memory = '1MB'";
    // In order up to the middle, then in none: it changes its mind, and says so.
    let turns = |numbers: &[u64]| {
        let mut turns = numbers.to_vec();
        let (_, late) = turns.split_at_mut(ROWS as usize / 2);
        Random::seeded(3).shuffle(late);
        turns
    };
    let mut orders = orders();
    orders.push(("turns", turns(&orders[0].1)));
    for (order, numbers) in orders {
        files.put("a.csv", numbers.iter().map(|n| line(*n)).collect::<String>());
        run(s, "truncate t");
        let told = reasons(s, import);
        let [told] = &told[..] else { panic!("{order}: {told:?}") };
        let has = |part: &str| assert!(told.contains(part), "{order}: {told}");
        let changed = told.contains("changed its mind");
        match order {
            "sorted" | "reversed" => {
                has("auto made finished ssts, as one_pass does, from ");
                has(" of rows: 100 % of the first buffer came in order, up to 0 % of a later one");
            }
            "nearly sorted" => has("auto made finished ssts, as one_pass does, from "),
            "random" => has("auto made sorted runs from "),
            _ => has("finished ssts from "),
        }
        assert_eq!(changed, ["strays", "turns"].contains(&order), "{order}: {told}");
        // Modes that were asked for are no choice.
        for mode in ["one_pass", "two_pass"] {
            run(s, "truncate t");
            assert!(reasons(s, &format!("{import}, mode = {mode}")).is_empty(), "{mode}");
        }
    }
    // Each index has an order of its own.
    run(s, "truncate t; create index of_text on t (t)");
    files.put("a.csv", (0..ROWS).map(line).collect::<String>());
    let told = reasons(s, import);
    assert!(
        told.len() == 2
            && told[0].contains("finished ssts")
            && told[0].contains(" of rows: 100 %")
            && told[1].starts_with("auto made sorted runs from ")
            && told[1].contains(" of entries of \"of_text\": "),
        "{told:?}"
    );
}

#[test]
fn auto_goes_by_the_order_of_the_rows_and_of_each_index() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    run(s, "create table t (p int, k int primary key, t text, o int)");
    for (order, numbers) in orders() {
        files.put("a.csv", numbers.iter().map(|n| line(*n)).collect::<String>());
        let mut import = |mode: &str| {
            run(s, "truncate t");
            ways(s, &format!("import into t csv data ('a.csv') with mode = {mode}, memory = '1MB'"))
        };
        let [ssts, runs, parts] = import("auto");
        match order {
            "sorted" | "nearly sorted" | "reversed" => assert!(ssts > 1 && runs == 0, "{order}"),
            "random" => assert!(runs > 1 && ssts == 0, "{ssts} {runs}"),
            // The first buffer is in order.
            _ => assert!(runs > 1 && ssts <= 3, "{order}: {ssts} {runs}"),
        }
        assert_eq!(parts, 0);
        let [ssts, runs, _] = import("one_pass");
        assert!(ssts > 1 && runs == 0, "{order}");
        let [ssts, runs, parts] = import("two_pass");
        assert!(ssts == 0 && runs == 0 && parts > 3, "{order}: {ssts} {runs} {parts}");
    }
    // An index in another order than the rows.
    run(s, "truncate t; create index on t (t)");
    files.put("a.csv", (0..ROWS).map(line).collect::<String>());
    let [ssts, runs, _] = ways(s, "import into t csv data ('a.csv') with memory = '1MB'");
    assert!(ssts > 1 && runs > 1, "{ssts} {runs}");
}

#[test]
fn violations_are_found_in_every_mode_and_nothing_stays() {
    let files = Files::new();
    let (db, s) = &mut files.database();
    make_tables(s);
    let last = ROWS - 1;
    for (bad, wanted) in [
        (format!("{},{last},twice,1\n", last / 100), "23505"),
        (format!("0,{},taken,1\n", last + 1), "ok"),
        (format!("1,{last},a unique number,1\n"), "23505"),
        (format!("1,{},o,5000\n", ROWS + 7), "23503"),
    ] {
        let content = (0..ROWS).map(line).collect::<String>();
        files.put("1.csv", content).put("2.csv", &bad);
        for mode in ["one_pass", "two_pass", "auto"] {
            for table in ["flat", "inside"] {
                run(s, &format!("truncate {table}"));
                let sql = format!(
                    "import into {table} csv data ('*.csv') with mode = {mode}, memory = '1MB'"
                );
                if wanted == "ok" {
                    run(s, &sql);
                    continue;
                }
                let e = error(s, &sql);
                assert_eq!(e.state().0, wanted, "{mode} {table} {bad}");
                let detail = e.detail().unwrap_or_default();
                assert!(detail.contains("file \"2.csv\", line 1"), "{mode} {table}: {detail}");
                assert_eq!(rows(s, &format!("select count(*) from {table}")), ["0"]);
                // Into a table that has the row already.
                run(s, &format!("insert into {table} values (3, 345, 'here', 1)"));
                files.put("3.csv", line(345));
                let one = "import into TABLE csv data ('3.csv') with memory = '1MB', mode = MODE";
                let one = one.replace("TABLE", table).replace("MODE", mode);
                assert_eq!(state(s, &one), "23505");
                files.remove("3.csv");
            }
        }
    }
    assert_eq!(db.coordinator().describe_locks().lines, "");
}

#[test]
fn the_first_file_that_fails_is_told_however_many_are_read_side_by_side() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    run(s, "create table t (p int, k int primary key, t text, o int)");
    for n in 0..6u64 {
        let rows: String = (n * 2000..(n + 1) * 2000).map(line).collect();
        let bad = if n >= 1 { "x,1,bad,1\n" } else { "" };
        files.put(&format!("{n}.csv"), format!("{rows}{bad}"));
    }
    for _ in 0..5 {
        let e = error(s, "import into t csv data ('?.csv')");
        let detail = e.detail().unwrap_or_default();
        assert!(detail.contains("file \"1.csv\", line 2001, column p"), "{detail}");
    }
}

#[test]
fn memory_is_kept_and_told() {
    let files = Files::new();
    let (_, s) = &mut files.database();
    run(s, "create table t (p int, k int primary key, t text, o int); create index on t (t)");
    let (_, random) = orders().pop().unwrap();
    files.put("a.csv", random.iter().map(|n| line(*n)).collect::<String>());
    for mode in ["one_pass", "two_pass", "auto"] {
        run(s, "truncate t");
        s.take_notices();
        run(s, &format!("import into t csv data ('a.csv') with mode = {mode}, memory = '2MB'"));
        let told = s.take_notices().iter().map(|n| n.message.clone()).collect::<String>();
        let peak = told.rsplit("peak memory ").next().unwrap().split(' ').next().unwrap();
        // What is read ahead is 8 MiB, and there are some more.
        assert!(peak.parse::<u64>().unwrap() <= 16, "{mode}: {told}");
    }
    let report = rows(s, "import into t csv data ('a.csv') with dry_run, memory = '2MB'");
    let peak = report.iter().find_map(|line| line.strip_prefix("peak memory in bytes|"));
    assert!((1..16 << 20).contains(&peak.unwrap().parse::<u64>().unwrap()), "{report:?}");
}

#[test]
fn an_online_import_stays_as_far_as_it_came() {
    let files = Files::new();
    let (db, s) = &mut files.database();
    run(s, "create table t (a int primary key, b int references t)");
    let good: String = (0..3000).map(|n| format!("{n},{}\n", n / 2)).collect();
    files.put("a.csv", format!("{good}0,0\n5000,4999\n5001,0\n"));
    // Rows that refer to each other, and a reader beside it.
    let beside = &mut harness::session(db);
    run(beside, "begin isolation level repeatable read; select count(*) from t");
    let e = error(s, "import into t csv data ('a.csv') with online");
    assert_eq!(e.state().0, "23505");
    let detail = e.detail().unwrap();
    assert!(detail.contains("line 3001") && detail.contains("rows before it were"), "{detail}");
    let count: u64 = rows(s, "select count(*) from t")[0].parse().unwrap();
    assert!(detail.contains(&format!("{count} rows before it")), "{count}: {detail}");
    assert!((1..=3000).contains(&count) && count.is_multiple_of(1024));
    assert_eq!(rows(beside, "select count(*) from t"), ["0"]);
    run(s, "delete from t");
    let sql = "import into t csv data ('a.csv') with online, max_bad_rows = 2";
    assert_eq!(tag(s, sql), "IMPORT 3001");
    assert_eq!(rows(s, "select count(*) from t"), ["3001"]);
    let rejected = files.names().into_iter().find(|n| n.ends_with(".rejected")).unwrap();
    let rejected = files.text(&rejected);
    assert!(rejected.contains("23505") && rejected.contains("23503"), "{rejected}");
    assert_eq!(state(s, "import into t csv data ('a.csv') with online, mode = auto"), "22023");
    assert_eq!(state(s, "import into t csv data ('a.csv') with online, dry_run"), "22023");
}
