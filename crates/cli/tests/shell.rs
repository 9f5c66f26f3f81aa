//! `braid sql` as people and scripts use it: formats, files, commands, cancelling, demos.

#![expect(clippy::disallowed_methods, reason = "the tests play the user, who has real files")]

mod support;

use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use support::Node;

const BRAID: &str = env!("CARGO_BIN_EXE_braid");

/// A node, and a folder for files beside its store.
struct Place {
    node: Node,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let node = Node::start(&folder.path().join("store"));
        Place { node, folder }
    }

    /// Runs a script that comes through a pipe; what is printed and what went wrong.
    fn script(&self, arguments: &[&str], script: &str) -> (bool, String, String) {
        let mut shell = Command::new(BRAID)
            .args(["sql", &self.node.url])
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the shell starts");
        // It may end before it has read all.
        let _written = shell.stdin.take().expect("piped").write_all(script.as_bytes());
        ended(shell.wait_with_output().expect("the shell ends"))
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).expect("a file can be written");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

fn ended(output: Output) -> (bool, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn rows_are_shown_in_each_format() {
    let place = Place::new();
    let query = "select 7 as n, 'a,b' as t union all select null, '' order by 1;";
    let shown = |format: &str| {
        let (fine, out, err) = place.script(&["--format", format], query);
        assert!(fine, "{format}: {err}");
        out
    };
    assert_eq!(shown("csv"), "n,t\n7,\"a,b\"\n,\"\"\n");
    assert_eq!(shown("tsv"), "n\tt\n7\ta,b\nNULL\t\n");
    assert_eq!(shown("json"), "{\"n\": 7, \"t\": \"a,b\"}\n{\"n\": null, \"t\": \"\"}\n");
    let table = "|    n | t   |\n|------|-----|\n|    7 | a,b |\n| NULL |     |\n(2 rows)\n";
    assert_eq!(shown("table"), table);
    assert_eq!(shown("expanded").lines().next(), Some("-[ row 1 ]-"));
    let (fine, out, _) =
        place.script(&["--format", "csv"], "create table t (a int); insert into t values (1);");
    assert!(fine && out.is_empty(), "a program wants rows only: {out}");
}

#[test]
fn commands_work_on_the_statement_in_front_of_them() {
    let place = Place::new();
    place.write("inner.sql", "\\echo from a file\nselect 'inner' as x;\n");
    let script = "create table t (a int primary key, b text);\n\
        insert into t select i, 'b' || i from generate_series(1, 3) g(i);\n\
        select a, b from t order by a \\gx\n\
        select format('insert into t values (%s, ''made'')', a + 10) from t order by a \\gexec\n\
        select count(*) as all_of_them from t \\g counted.txt\n\
        \\i inner.sql\n\
        \\null nothing\n\
        select null as x;\n\
        \\copy (select * from t where a < 3 order by a) to 'out.csv' with (format csv)\n\
        truncate t;\n\
        \\copy t (a, b) from out.csv csv\n\
        \\copy (select count(*) from t) to stdout\n\
        \\o rest.txt\nselect 'hidden' as x;\n\\o\n\
        \\d t\n\\dt t*\n\\conninfo\n\\echo done\n\\q\nselect 'not reached';\n";
    let (fine, out, err) = place.script(&[], script);
    assert!(fine, "{out}\n{err}");
    for wanted in [
        "CREATE TABLE",
        "INSERT 0 3",
        "-[ row 3 ]-\na | 3\nb | b3\n",
        "INSERT 0 1",
        "from a file",
        "| inner |",
        "| nothing |",
        "COPY 2\n",
        "Columns of t",
        "PRIMARY KEY (a)",
        "as user \"root\"",
        "done\n",
    ] {
        assert!(out.contains(wanted), "{wanted}:\n{out}");
    }
    assert!(!out.contains("hidden") && !out.contains("not reached"), "{out}");
    assert!(place.read("counted.txt").contains("6 |"), "{}", place.read("counted.txt"));
    assert_eq!(place.read("out.csv"), "1,b1\n2,b2\n");
    assert!(place.read("rest.txt").contains("hidden"));
}

#[test]
fn errors_show_their_place_and_end_a_script() {
    let place = Place::new();
    let (fine, out, err) = place.script(&[], "select 1,\n  nothing from pg_class;\nselect 2;\n");
    assert!(!fine && !out.contains('2'), "{out}");
    assert!(err.contains("(SQLSTATE 42703)"), "{err}");
    assert!(err.contains("LINE 2:   nothing from pg_class;\n          ^"), "{err}");
    for (script, wanted) in [
        ("\\nothing\n", "unknown command \\nothing"),
        ("\\i there_is_no_such.sql\n", "there_is_no_such.sql: "),
        ("\\copy t from 'x.csv'\n", "x.csv: "),
        ("\\d there_is_none\n", "there_is_none"),
        ("\\kill 2\n", "braid demo --nodes 3"),
        ("copy pg_class from stdin;\n", "pg_class"),
    ] {
        let (fine, out, err) = place.script(&[], script);
        assert!(!fine && err.contains(wanted), "{script}: {out}\n{err}");
    }
    place.write("twice.sql", "\\i twice.sql\n");
    let (fine, _, err) = place.script(&["-f", "twice.sql"], "");
    assert!(!fine && err.contains("include each other"), "{err}");
}

#[test]
fn who_has_read_enough_of_the_output_is_no_failure() {
    let place = Place::new();
    let query = "select g, repeat('x', 100) from generate_series(1, 200000) g";
    let mut shell = Command::new(BRAID)
        .args(["sql", &place.node.url, "--format", "csv", "-c", query])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the shell starts");
    let mut begin = [0; 1024];
    shell.stdout.take().expect("piped").read_exact(&mut begin).expect("rows come");
    let (fine, _, err) = ended(shell.wait_with_output().expect("the shell ends"));
    assert!(fine && err.is_empty(), "{err}");
}

/// What others see of running statements.
fn running(place: &Place) -> i64 {
    let mut client = Client::connect(&place.node.url, NoTls).expect("a client");
    let sql = "select count(*) from pg_stat_activity where state = 'active' and query ~ '^select pg_sleep'";
    client.query_one(sql, &[]).expect("it answers").get(0)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn interrupt(shell: &Child) {
    let pid = shell.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().expect("a signal can be sent");
    assert!(sent.success());
}

#[test]
fn an_interrupt_cancels_the_statement() {
    let place = Place::new();
    let shell = Command::new(BRAID)
        .args(["sql", &place.node.url, "-c", "select pg_sleep(600)"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the shell starts");
    until("it runs", || running(&place) == 1);
    interrupt(&shell);
    let (fine, _, err) = ended(shell.wait_with_output().expect("the shell ends"));
    assert!(!fine && err.contains("57014"), "{err}");
    until("nothing is left of it", || running(&place) == 0);
}

#[test]
fn a_watched_statement_runs_until_an_interrupt() {
    let place = Place::new();
    let mut shell = Command::new(BRAID)
        .args([
            "sql",
            &place.node.url,
            "-c",
            "select 'seen' as x \\watch 0.05",
            "-c",
            "select 'after'",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the shell starts");
    let mut out = shell.stdout.take().expect("piped");
    let mut seen = String::new();
    let mut part = [0; 256];
    while seen.matches("seen").count() < 3 {
        let read = out.read(&mut part).expect("it goes on");
        seen.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    interrupt(&shell);
    out.read_to_string(&mut seen).expect("it ends");
    let (_, _, err) = ended(shell.wait_with_output().expect("the shell ends"));
    // It was asleep, or a statement was on its way and was cancelled.
    assert!(seen.contains("after") || err.contains("57014"), "{seen}\n{err}");
}

#[test]
fn a_demo_of_three_nodes_loses_one_and_gets_it_back() {
    let output = Command::new(BRAID)
        .args(["demo", "--nodes", "3", "--port", "0", "-c", "\\nodes", "-c", "\\kill 3"])
        .args(["-c", "insert into customers values (1000, 'One', 'Graz')"])
        .args(["-c", "select count(*) from customers", "-c", "\\start 3", "-c", "\\nodes"])
        .output()
        .expect("the demo runs");
    let (fine, out, err) = ended(output);
    assert!(fine, "{out}\n{err}");
    assert_eq!(out.matches("  runs").count(), 6, "{out}");
    assert!(out.contains("Node 3 is killed: the others are a majority"), "{out}");
    assert!(out.contains("INSERT 0 1") && out.contains(" 101 |"), "{out}");
    assert!(out.contains("Node 3 is started."), "{out}");
}

#[test]
fn the_tour_runs_to_its_end() {
    let step = ["-c", "\\tour"];
    let steps: Vec<&str> = std::iter::repeat_n(step, 8).flatten().collect();
    let output = Command::new(BRAID)
        .args(["demo", "--port", "0", "--http-port", "0"])
        .args(&steps)
        .output()
        .expect("the demo runs");
    let (fine, out, err) = ended(output);
    assert!(fine, "{out}\n{err}");
    assert!(out.contains("That was the tour."), "{out}");
    assert!(out.contains("family read of orders (same pass)"), "one pass over a family: {out}");
    assert!(out.contains("range delete: customers, orders, order_lines"), "{out}");
    let before = out.split("lines_before").nth(2).unwrap_or_default();
    assert!(before.contains(" 100 |"), "the past: {out}");
}
