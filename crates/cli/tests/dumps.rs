//! pg_dump against a real node: what it writes is read back, and dumped again as it was.
//! `scripts/dump-round-trip` restores into PostgreSQL, too. Skipped where pg_dump is not installed.

mod support;

use std::process::{Command, Output};

use support::Node;

const OBJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dumps/objects.sql");

/// Whether PostgreSQL's programs are here, of a version that is claimed.
fn programs() -> bool {
    let version = |program: &str| {
        let output = Command::new(program).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().find_map(|w| w.split('.').next()?.parse::<u32>().ok())
    };
    let found = [version("pg_dump"), version("psql")];
    found.iter().all(|v| v.is_some_and(|v| (15..=17).contains(&v)))
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("the program runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    output
}

fn psql(url: &str, arguments: &[&str]) {
    succeed(Command::new("psql").args(["-X", "-q", "-v", "ON_ERROR_STOP=1", url]).args(arguments));
}

/// A dump, without what pg_dump says of itself.
fn dump(url: &str) -> String {
    let output = succeed(Command::new("pg_dump").arg(url));
    let text = String::from_utf8(output.stdout).expect("a dump is text");
    let own = |line: &&str| {
        !["\\restrict", "\\unrestrict", "-- Dumped"].iter().any(|head| line.starts_with(head))
    };
    text.lines().filter(own).collect::<Vec<_>>().join("\n")
}

/// A node with two databases, into one of which a dump of the other can be read; `None` where
/// PostgreSQL's programs are not here.
struct Pair {
    node: Node,
    folder: tempfile::TempDir,
}

impl Pair {
    fn start() -> Option<Pair> {
        if !programs() {
            println!("skipped: psql and pg_dump 15 to 17 are not here");
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let node = Node::start(folder.path());
        for database in ["dumped", "restored"] {
            psql(&node.url, &["-c", &format!("CREATE DATABASE {database}")]);
        }
        Some(Pair { node, folder })
    }

    fn at(&self, database: &str) -> String {
        self.node.url.replace("defaultdb", database)
    }

    /// Reads a script into the first database, its dump into the other one, and returns the dumps
    /// of both.
    fn dumps(&self, script: &str) -> (String, String) {
        psql(&self.at("dumped"), &["-f", script]);
        let file = self.folder.path().join("dump.sql");
        let file = file.to_str().expect("a path of ASCII");
        succeed(Command::new("pg_dump").args(["-f", file, &self.at("dumped")]));
        psql(&self.at("restored"), &["-f", file]);
        (dump(&self.at("dumped")), dump(&self.at("restored")))
    }
}

#[test]
fn what_pg_dump_writes_comes_back() {
    let Some(pair) = Pair::start() else { return };
    psql(&pair.node.url, &["-c", "CREATE ROLE reader"]);
    let (first, second) = pair.dumps(OBJECTS);
    for part in [
        "CREATE TABLE shop.people (",
        "COPY shop.people (",
        "CREATE VIEW shop.a_happier AS",
        "CREATE FUNCTION shop.a_person(wanted text, years integer DEFAULT 1)",
        "COMMENT ON FUNCTION shop.a_person(wanted text, years integer) IS",
        "CREATE DOMAIN shop.positive",
        "CREATE TYPE shop.address AS (",
        "COMMENT ON COLUMN shop.address.street IS",
        "GRANT SELECT,INSERT ON TABLE shop.people TO reader;",
        "COMMENT ON CONSTRAINT short ON shop.people IS",
    ] {
        assert!(first.contains(part), "{part}\n{first}");
    }
    for (one, other) in first.lines().zip(second.lines()) {
        assert_eq!(one, other);
    }
    assert_eq!(first.len(), second.len());
}

/// A dump that PostgreSQL 15 has written.
const PARTITIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dumps/partitions.sql");

#[test]
fn partitioned_tables_of_postgresql_come_back() {
    let Some(pair) = Pair::start() else { return };
    let (first, second) = pair.dumps(PARTITIONS);
    let original = std::fs::read_to_string(PARTITIONS).expect("the dump is there");
    let telling = |line: &&str| {
        [
            "PARTITION BY",
            "ATTACH PARTITION",
            "COPY",
            "CREATE INDEX",
            "CREATE UNIQUE INDEX",
            "COMMENT",
        ]
        .iter()
        .any(|word| line.contains(word))
            || line.contains('\t')
    };
    // Expressions are shown as they were written, and not as PostgreSQL has parsed them.
    let own_form = |line: &&str| line.contains("only_24") || line.starts_with("--");
    for line in original.lines().filter(telling).filter(|line| !own_form(line)) {
        assert!(first.lines().any(|own| own == line), "{line}\n{first}");
    }
    assert_eq!(first, second);
}
