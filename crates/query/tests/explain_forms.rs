//! EXPLAIN ANALYZE by operator, its forms and options.

use crate::harness::Db;
use serde_json::Value;

fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "create table a (id int primary key, n int);
         create table b (id int primary key, n int, v text);
         create table c (a int, id int, primary key (a, id)) interleave in parent a (a)
             on delete cascade;
         create index by_n on b (n);
         insert into a select g, g % 10 from generate_series(1, 1000) g;
         insert into b select g, g % 50, 'x' from generate_series(1, 300) g;
         insert into c select g, 1 from generate_series(1, 20) g",
    );
    db
}

fn json(db: &mut Db, sql: &str) -> Value {
    let rows = db.run(sql);
    assert_eq!(rows.len(), 1, "one value");
    let all: Value = serde_json::from_str(&rows[0]).unwrap_or_else(|e| panic!("{e}: {}", rows[0]));
    all[0].clone()
}

/// All operators of a kind.
fn find<'a>(plan: &'a Value, kind: &str, out: &mut Vec<&'a Value>) {
    if plan["Node Type"] == kind {
        out.push(plan);
    }
    plan["Plans"].as_array().into_iter().flatten().for_each(|below| find(below, kind, out));
}

fn all<'a>(explained: &'a Value, kind: &str) -> Vec<&'a Value> {
    let mut out = Vec::new();
    find(&explained["Plan"], kind, &mut out);
    out
}

const JOIN: &str = "select b.n, count(*) from a join b on b.n = a.id where a.n < 5 group by b.n";

#[test]
fn operators_of_a_general_plan_say_what_they_did() {
    let mut db = db();
    let explained = json(&mut db, &format!("explain (analyze, buffers, format json) {JOIN}"));
    let answer = db.run(JOIN).len();
    let groups = all(&explained, "Aggregate");
    assert_eq!(groups[0]["Actual Rows"], answer, "{explained}");
    assert_eq!(groups[0]["Actual Loops"], 1);
    let join = all(&explained, "Hash Join")[0];
    let scans = all(&explained, "Seq Scan");
    assert_eq!(scans.len(), 2, "{explained}");
    // What a row costs is counted where it is read.
    let scan = |table: &str| {
        let found = scans.iter().find(|scan| scan["Relation Name"] == table);
        found.unwrap_or_else(|| panic!("{table}: {explained}"))
    };
    assert_eq!((&scan("b")["Actual Rows"], &join["Actual Rows"]), (&300.into(), &144.into()));
    // The join tells which keys can meet: other rows are looked at and not given.
    assert!(scan("a")["Actual Rows"].as_u64() < scan("a")["rows_scanned"].as_u64(), "{explained}");
    assert!(scan("b")["rows_scanned"].as_u64() >= Some(300), "{explained}");
    assert!(scan("b")["bytes_returned"].as_u64() > Some(1_000), "{explained}");
    assert!(scan("b")["Requests"].as_u64() >= Some(1), "{explained}");
    assert!(scan("b")["Shared Hit Blocks"].is_u64(), "{explained}");
    // Times hold those of the inputs.
    let time = |node: &Value| node["Actual Total Time"].as_f64().expect("a time");
    assert!(time(groups[0]) >= time(join) && time(join) >= time(scan("b")), "{explained}");
    assert!(join["Actual Startup Time"].as_f64() <= join["Actual Total Time"].as_f64());
    let statistics = &explained["Query Statistics"];
    let requests: u64 = scans.iter().filter_map(|s| s["Requests"].as_u64()).sum();
    assert_eq!(statistics["store_requests"], requests, "{explained}");
    assert_eq!(statistics["rows_returned"], answer);
    assert_eq!(statistics["remote_server_calls"], 0);
    for name in ["elapsed_time", "cpu_time", "query_plan_creation_time"] {
        assert!(statistics[name].as_f64() > Some(0.0), "{name}: {explained}");
    }
    assert!(explained["Planning Time"].as_f64() > Some(0.0));
    assert!(explained["Execution Time"].as_f64() >= groups[0]["Actual Total Time"].as_f64());
}

#[test]
fn text_has_the_same_behind_its_lines() {
    let mut db = db();
    let lines = db.run(&format!("explain (analyze, buffers) {JOIN}"));
    let scan = lines.iter().position(|l| l.contains("TableScan: b")).expect("a scan");
    assert!(lines[scan].contains("(actual time="), "{lines:#?}");
    assert!(lines[scan].contains(" rows=300 loops=1"), "{lines:#?}");
    assert!(lines[scan + 1].trim_start().starts_with("Buffers: shared hit="), "{lines:#?}");
    assert!(lines[scan + 1].contains(" entries=301 tombstones=0 bytes="), "{lines:#?}");
    assert!(lines.last().is_some_and(|l| l.starts_with("Execution Time: ")), "{lines:#?}");
    let plain = db.run(&format!("explain (analyze, timing off, summary off) {JOIN}"));
    let noisy = |l: &&String| l.contains("time=") || l.contains("Time:") || l.contains("Buffers");
    assert_eq!(plain.iter().find(noisy), None);
    assert!(plain.iter().any(|l| l.contains("(actual rows=144 loops=1")), "{plain:#?}");
    let described = db.run(&format!("explain {JOIN}"));
    assert!(described.iter().all(|l| !l.contains("actual")), "{described:#?}");
}

#[test]
fn steps_of_own_plans_say_what_they_did() {
    let mut db = db();
    let sql = "select a.id, b.v from a join b on b.id = a.n where a.id <= 40";
    let explained = json(&mut db, &format!("explain (analyze, format json) {sql}"));
    let steps = all(&explained, "Index Scan");
    assert_eq!(steps.len(), 2, "{explained}");
    assert_eq!((&steps[0]["Relation Name"], &steps[0]["Actual Rows"]), (&"a".into(), &40.into()));
    // Rows of n 0 have no partner.
    assert_eq!((&steps[1]["Actual Rows"], &steps[1]["Actual Loops"]), (&36.into(), &40.into()));
    assert_eq!(steps[0]["Index Cond"], "id <= 40");
    let time = |step: &Value| step["Actual Total Time"].as_f64().expect("a time");
    assert!(time(steps[0]) >= time(steps[1]), "{explained}");
    // One pass over families is measured as a whole.
    let sql = "select * from a join c on c.a = a.id";
    let lines = db.run(&format!("explain (analyze, timing off, summary off) {sql}"));
    assert!(lines[0].contains("(actual rows=20 loops=1 requests="), "{lines:#?}");
    assert!(lines[1].contains("same pass") && !lines[1].contains("actual"), "{lines:#?}");
}

#[test]
fn writers_say_what_they_wrote() {
    let mut db = db();
    let explained =
        json(&mut db, "explain (analyze, format json) update b set v = 'y' where n = 7");
    let plan = &explained["Plan"];
    assert_eq!((&plan["Node Type"], &plan["Actual Rows"]), (&"ModifyTable".into(), &6.into()));
    assert_eq!(plan["Plans"][0]["Index Name"], "by_n");
    assert_eq!(explained["Query Statistics"]["point_writes"], 6, "{explained}");
    let lines =
        db.run("explain (analyze, wal, timing off, summary off) delete from a where id = 3");
    assert!(lines.contains(&"WAL: point writes=0 span deletes=1".to_string()), "{lines:#?}");
    // It was run.
    assert_eq!(db.run("select count(*) from c"), ["19"]);
}

#[test]
fn yaml_says_what_json_says() {
    let mut db = db();
    let sql = "select v from b where n = 7";
    let yaml = db.run(&format!("explain (format yaml) {sql}"));
    let want = "- Plan: \n    Node Type: \"Index Scan\"\n    Relation Name: \"b\"\n    \
                Index Name: \"by_n\"\n    Operation: \"index lookup on b using by_n\"\n    \
                Plan Rows: 10\n    Index Cond: \"n = 7\"";
    assert_eq!(yaml, [want]);
    let xml = db.run(&format!("explain (format xml) {sql} and v <> '<&>'"));
    let want = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n    \
                <Plan>\n      <Node-Type>Index Scan</Node-Type>\n      \
                <Relation-Name>b</Relation-Name>\n";
    let xml = xml.join("\n");
    assert!(xml.starts_with(want), "{xml}");
    assert!(xml.contains("'&lt;&amp;&gt;'"), "{xml}");
    assert!(xml.ends_with("\n    </Plan>\n  </Query>\n</explain>"), "{xml}");
    let lists = db.run("explain (format xml) update b set v = 'y' where n = 7").join("\n");
    assert!(lists.contains("\n      <Plans>\n        <Plan>\n"), "{lists}");
    let explained = json(&mut db, &format!("explain (format json) {sql}"));
    assert_eq!(explained["Plan"]["Index Cond"], "n = 7");
    assert!(explained.get("Execution Time").is_none() && explained.get("Planning Time").is_none());
    let explained = json(&mut db, &format!("explain (summary, settings, format json) {sql}"));
    assert!(explained["Planning Time"].is_f64() && explained["Settings"].is_object());
}

#[test]
fn settings_that_differ_are_shown() {
    let mut db = db();
    db.run("set work_mem = '1MB'");
    let lines = db.run("explain (settings) select 1");
    assert_eq!(lines, ["result", "Settings: work_mem = '1MB'"]);
}

#[test]
fn a_bundle_has_all_that_is_needed_elsewhere() {
    let mut db = db();
    db.run("set work_mem = '1MB'");
    let sql = "select count(*) from c join b on b.id = c.a";
    let text = db.run(&format!("explain analyze (debug) {sql}")).join("\n");
    let mut from = 0;
    for part in [
        "-- Version",
        "BraidDB",
        "-- Statement",
        "-- Settings",
        "SET work_mem = '1MB'",
        "-- Schema",
        // What a table is interleaved in is needed to create it.
        "CREATE TABLE public.a",
        "CREATE TABLE public.b",
        "CREATE TABLE public.c",
        "-- Statistics",
        "-- Plan",
        "(actual time=",
        "Buffers: ",
        "Execution Time: ",
    ] {
        let at = text[from..].find(part).unwrap_or_else(|| panic!("{part}:\n{text}"));
        from += at;
    }
    let schema = text.split("-- Schema\n").nth(1).and_then(|s| s.split("-- Statistics").next());
    let mut other = Db::new();
    other.run(schema.expect("a schema"));
    assert_eq!(other.run(sql), ["0"]);
}
