//! `braid import` and TPC-C's files, on a real node that may be killed.

mod support;

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use postgres::{Client, SimpleQueryMessage};
use support::Node;

fn braid(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_braid")).args(arguments).output().expect("the binary runs")
}

fn text(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn rows(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    let answer = client.simple_query(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let row = |m: SimpleQueryMessage| match m {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|n| row.get(n).unwrap_or("NULL").to_string()).collect())
        }
        _ => None,
    };
    answer.into_iter().filter_map(row).collect()
}

fn put(folder: &Path, name: &str, content: &str) {
    use braid_env::fs::{DiskFs, FileSystem};
    DiskFs.create_dir_all(folder).expect("a folder can be made");
    let file = DiskFs.create(&folder.join(name)).expect("a file can be made");
    file.write_at(content.as_bytes(), 0).expect("and written");
}

#[test]
fn files_of_the_node_are_imported_as_jobs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = directory.path().join("store");
    let folder = store.join("import");
    put(&folder, "a.csv", "id,x\n1,one\n2,two\n");
    put(&folder, "b.tsv", "3\tthree\n");
    put(&folder, "c.jsonl", "{\"id\": 4}\n{\"id\": \"five\"}\n");
    let node = Node::start(&store);
    let client = &mut node.client();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, x text)").expect("creates");
    let import =
        |rest: &[&str]| braid(&[&["import", "t", "--url", &node.url, "--on-node"], rest].concat());
    let report = import(&["a.csv", "--header", "--dry-run"]);
    assert!(text(&report).contains("rows that fit: 2"), "{}", text(&report));
    assert!(import(&["a.csv", "--header"]).status.success());
    assert!(import(&["b.tsv"]).status.success());
    let bad = import(&["c.jsonl"]);
    assert!(!bad.status.success(), "a bad row fails the import");
    assert!(text(&bad).contains("file \"c.jsonl\", line 2, column id"), "{}", text(&bad));
    let good = import(&["c.jsonl", "-o", "max_bad_rows=1", "-o", "reject_file=bad"]);
    assert!(good.status.success(), "{}", text(&good));
    assert!(folder.join("bad").exists());
    let found = rows(client, "SELECT id, x FROM t ORDER BY id");
    assert_eq!(found, [["1", "one"], ["2", "two"], ["3", "three"], ["4", "NULL"]]);
    assert!(text(&import(&["../secret.csv"])).contains("not below the node's folder"));
    assert!(text(&import(&["what"])).contains("--format"));
}

#[test]
fn a_killed_node_goes_on_with_tpcc_in_random_order() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = directory.path().join("store");
    let files = store.join("import/tpcc");
    let dir = files.display().to_string();
    let made = braid(&["workload", "tpcc", "fixtures", "--dir", &dir, "--shuffle-stock"]);
    assert!(text(&made).contains(" rows, "), "{}", text(&made));
    let node = Node::start(&store);
    let script = braid_env::fs::read_all(&braid_env::fs::DiskFs, &files.join("load.sql"));
    let script = String::from_utf8(script.expect("the script is there")).expect("text");
    let (tables, imports): (Vec<&str>, Vec<&str>) =
        script.lines().partition(|l| l.starts_with("CREATE"));
    assert_eq!((tables.len(), imports.len()), (9, 9));
    let client = &mut node.client();
    for table in tables {
        client.batch_execute(table).expect(table);
    }
    let small = ["warehouse ", "item ", "district ", "new_order "];
    let loads = |l: &&&str| small.iter().any(|t| l.contains(&format!("INTO {t}")));
    for import in imports.iter().filter(loads) {
        rows(client, import);
    }
    let stock = imports.iter().find(|l| l.contains("INTO stock ")).expect("an import of it");
    let stock = stock.replace(';', " WITH detached;");
    let job = rows(client, &stock)[0][0].clone();
    std::thread::sleep(Duration::from_millis(700));
    node.kill();
    let node = Node::start(&store);
    let client = &mut node.client();
    let state = |client: &mut Client| {
        let jobs = rows(client, "SHOW JOBS");
        jobs.into_iter().find(|j| j[0] == job).expect("the job is known").swap_remove(3)
    };
    for _ in 0..1200 {
        if state(client) != "running" {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(state(client), "succeeded");
    for (table, count) in
        [("item", 100_000), ("stock", 100_000), ("district", 10), ("new_order", 9_000)]
    {
        let counted = rows(client, &format!("SELECT count(*) FROM {table}"));
        assert_eq!(counted[0][0], count.to_string(), "{table}");
    }
    let sum = "SELECT count(DISTINCT s_i_id), min(s_i_id), max(s_i_id) FROM stock";
    assert_eq!(rows(client, sum)[0], ["100000", "1", "100000"]);
}
