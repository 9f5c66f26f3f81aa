//! The binary as a user runs it: exit codes, what is printed, what is refused.

#![expect(clippy::disallowed_methods, reason = "the tests play the user, who has real files")]

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use support::Node;

fn braid(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_braid")).args(arguments).output().expect("the binary runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn demo_shows_a_hierarchy_that_one_delete_erases() {
    let output = braid(&[
        "demo",
        "--port",
        "0",
        "--http-port",
        "0",
        "-c",
        "EXPLAIN DELETE FROM customers WHERE id = 7",
        "-c",
        "SELECT count(*) AS before FROM order_lines WHERE id = 7",
        "-c",
        "DELETE FROM customers WHERE id = 7; SELECT count(*) AS after FROM order_lines WHERE id = 7",
    ]);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(text.contains("range delete: customers, orders, order_lines"), "{text}");
    assert!(text.contains(" 100 |"), "100 lines before: {text}");
    assert!(text.contains("DELETE 1") && text.contains(" 0 |"), "none after: {text}");
}

#[test]
fn sql_takes_statements_and_copy_data_from_a_pipe() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let node = Node::start(&directory.path().join("store"));
    let mut shell = Command::new(env!("CARGO_BIN_EXE_braid"))
        .args(["sql", "--url", &node.url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the shell starts");
    let script = "CREATE TABLE t (a int PRIMARY KEY,\n b text);\nCOPY t FROM STDIN;\n1\tx;y\n2\t\\N\n\\.\n\
                  SELECT 'it;s' AS quoted, count(*) FROM t;\n\\d t\nSELECT no_such_column FROM t;\n\
                  SELECT 'not reached';";
    shell.stdin.take().expect("piped").write_all(script.as_bytes()).expect("the shell reads");
    let output = shell.wait_with_output().expect("the shell ends");
    let text = stdout(&output);
    assert!(text.contains("COPY 2"), "{text}");
    assert!(text.contains("| it;s   |     2 |"), "{text}");
    assert!(text.contains("Columns of t") && text.contains("PRIMARY KEY"), "{text}");
    assert!(!output.status.success(), "the first error ends a script");
    assert!(stderr(&output).contains("42703") && !text.contains("not reached"), "{text}");
}

#[test]
fn import_names_the_line_of_a_bad_row_and_applies_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let node = Node::start(&directory.path().join("store"));
    let mut client = node.client();
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b text)").expect("creates");
    let import = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).expect("the file is written");
        braid(&["import", "t", path.to_str().expect("text"), "--header", "--url", &node.url])
    };
    let good = import("good.csv", "a,b\n1,one\n2,\"two, with \"\"quotes\"\"\nand a break\"\n");
    assert!(good.status.success() && stdout(&good).contains("2 rows"), "{}", stderr(&good));
    let bad = import("bad.csv", "a,b\n3,three\nfour,4\n");
    let text = stderr(&bad);
    assert!(!bad.status.success(), "a bad row fails the import");
    assert!(text.contains("22P02") && text.contains("line 3"), "{text}");
    let rows = client.query_one("SELECT count(*) FROM t", &[]).expect("counts");
    assert_eq!(rows.get::<_, i64>(0), 2, "nothing of the bad file is there");
}

#[test]
fn a_directory_has_one_node() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("store");
    let _node = Node::start(&data);
    let data = data.to_str().expect("text");
    let second = braid(&["start", "--listen", "127.0.0.1:0", "--http", "off", "--data", data]);
    assert!(!second.status.success());
    assert!(stderr(&second).contains("in use"), "{}", stderr(&second));
}

#[test]
fn only_loopback_addresses_are_listened_on() {
    let output = braid(&["start", "--listen", "0.0.0.0:0", "--data", "never-created"]);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("loopback"), "{}", stderr(&output));
    assert!(!Path::new("never-created").exists());
}

#[test]
fn check_finds_a_flipped_byte_and_names_its_place() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("store");
    let node = Node::start(&data);
    let mut client = node.client();
    client
        .batch_execute("CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x')")
        .expect("writes");
    drop(client);
    drop(node);
    let dir = data.to_str().expect("text");
    let healthy = braid(&["debug", "check", dir]);
    assert!(healthy.status.success(), "{}{}", stdout(&healthy), stderr(&healthy));
    let keys = stdout(&braid(&["debug", "keys", dir]));
    assert!(keys.contains("/Table/") && keys.contains("/System/"), "{keys}");

    let current = std::fs::read_to_string(data.join("CURRENT")).expect("a store has it");
    let name = current.split_whitespace().next().expect("it names the manifest");
    let manifest = data.join(name);
    let mut bytes = std::fs::read(&manifest).expect("readable");
    bytes[25] ^= 0x10;
    std::fs::write(&manifest, bytes).expect("writable");
    let damaged = braid(&["debug", "check", dir]);
    assert!(!damaged.status.success(), "a flipped byte fails the check");
    let text = format!("{}{}", stdout(&damaged), stderr(&damaged));
    assert!(text.contains("MANIFEST") && text.contains("offset"), "{text}");
    let start = braid(&["start", "--listen", "127.0.0.1:0", "--http", "off", "--data", dir]);
    assert!(!start.status.success(), "a damaged store is not served");
}
