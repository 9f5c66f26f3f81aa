//! The benchmark schemas in both layouts, and TPC-H's queries over both: answers do not depend on
//! how rows are stored.

mod support;

use std::process::Command;

use braid_workload::tpcc::{self, Layout};
use support::Node;

fn braid(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_braid"))
        .args(arguments)
        .output()
        .expect("the binary runs");
    let (said, failed) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}\n{said}{failed}");
    said.into_owned()
}

#[test]
fn tpch_answers_alike_interleaved_and_flat() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let nodes = ["interleaved", "flat"].map(|name| Node::start(&directory.path().join(name)));
    let [interleaved, flat] = &nodes;
    let tpch = |url: &str, rest: &[&str]| {
        braid(&[&["workload", "--url", url, "tpch"], rest, &["--scale", "0.01"]].concat())
    };
    let rows = tpch(&interleaved.url, &["init"]);
    assert!(rows.contains(" rows, "), "{rows}");
    tpch(&flat.url, &["init", "--flat"]);
    // It fails when a query does, or when an answer differs.
    let report = tpch(&interleaved.url, &["run", "--rounds", "1", "--other-url", &flat.url]);
    assert_eq!(report.matches("  equal").count(), 22, "{report}");
}

#[test]
fn tpcc_has_its_tables_in_both_layouts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, layout) in [("interleaved", Layout::Interleaved), ("flat", Layout::Flat)] {
        let node = Node::start(&directory.path().join(name));
        let mut client = node.client();
        tpcc::create(&mut client, layout).expect("creates the tables");
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
        let count: i64 = client.query_one(tables, &[]).expect("counts").get(0);
        assert_eq!(count, 9, "{name}");
    }
}

#[test]
fn terminals_of_tpcc_leave_tables_that_fit_each_other() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, layout) in [("interleaved", Layout::Interleaved), ("flat", Layout::Flat)] {
        let node = Node::start(&directory.path().join(name));
        let mut client = node.client();
        tpcc::create(&mut client, layout).expect("creates the tables");
        client.batch_execute(&support::small_tpcc(1)).expect("fills them");
        let settings = tpcc::RunSettings {
            url: node.url.clone(),
            warehouses: 1,
            items: 200,
            customers: 30,
            terminals: 4,
            seconds: 3,
            warm_up: 0,
            seed: 1,
        };
        let report = tpcc::run(&settings).expect("runs");
        assert!(report.per_minute() > 0.0, "{name}\n{report}");
        let wrong = tpcc::inconsistencies(&mut client).expect("asks");
        assert_eq!(wrong, [""; 0], "{name}\n{report}");
        let one_more = "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3";
        client.batch_execute(one_more).expect("updates");
        let wrong = tpcc::inconsistencies(&mut client).expect("asks");
        assert_eq!(wrong.len(), 1, "{name}\n{report}\n{wrong:?}");
    }
}

#[test]
fn deletes_of_each_level_take_what_lies_below() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let node = Node::start(directory.path());
    let rest = ["--levels", "3", "--parents", "6", "--ratio", "3", "--rounds", "2"];
    let few = ["--rows-in-single-delete", "2"];
    // It fails when other rows go than those, or others are counted.
    let report =
        braid(&[&["workload", "--url", &node.url, "interleave"], &rest[..], &few[..]].concat());
    for line in ["3 levels, 2 of level 0, None index", "3 levels, 2 of level 2, Global index"] {
        assert!(report.contains(line), "{report}");
    }
}

/// The corpus that compares with PostgreSQL (`scripts/differential expressions`) finds its way
/// through what a node claims, casts and comparisons included; here it compares two nodes.
#[test]
fn the_corpus_calls_what_a_node_claims() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let nodes = ["one", "other"].map(|name| Node::start(&directory.path().join(name)));
    let [url, other] = nodes.each_ref().map(|node| node.url.as_str());
    let to = ["workload", "--url", url, "corpus", "--postgres-url", other];
    let report = braid(&[&to[..], &["--expressions", "300", "--seed", "7"]].concat());
    assert!(report.contains(" 0 differences of 0 kinds"), "{report}");
}
