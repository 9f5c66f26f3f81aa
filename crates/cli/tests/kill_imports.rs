//! Imports of a node that is killed again and again: in the end all rows are there, once.
//!
//! `BRAID_KILLS=100` for as many kills; `BRAID_FIRST_SEED` for other moments.

mod support;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use braid_env::fs::{DiskFs, FileSystem};
use braid_env::random::Random;
use postgres::{Client, SimpleQueryMessage};
use support::Node;

const ROWS: u64 = 60_000;
/// Little memory and many checkpoints: runs, ssts and notes are there at any moment.
const OPTIONS: &str = "header, memory = '2MB', checkpoint_size = '400KB'";

fn given(name: &str, unless: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(unless)
}

fn rows(client: &mut Client, sql: &str) -> Vec<String> {
    let answer = client.simple_query(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let line = |m: SimpleQueryMessage| match m {
        SimpleQueryMessage::Row(row) => {
            let fields = (0..row.len()).map(|n| row.get(n).unwrap_or("NULL"));
            Some(fields.collect::<Vec<_>>().join("|"))
        }
        _ => None,
    };
    answer.into_iter().filter_map(line).collect()
}

/// Four files of rows in random order, one of them compressed.
fn put_files(folder: &Path, random: &mut Random) {
    DiskFs.create_dir_all(folder).expect("a folder can be made");
    let mut keys: Vec<u64> = (0..ROWS).collect();
    for at in (1..keys.len()).rev() {
        keys.swap(at, random.below(at as u64 + 1) as usize);
    }
    for (part, keys) in keys.chunks(ROWS as usize / 4).enumerate() {
        let line = |n: &u64| format!("{n},{},\"name {}\"\n", n * 7 % 1000, n * n);
        let text = format!("id,n,t\n{}", keys.iter().map(line).collect::<String>());
        let (name, bytes) = match part {
            3 => {
                let to = flate2::Compression::fast();
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), to);
                packed.write_all(text.as_bytes()).expect("memory takes it");
                ("part-3.csv.gz".to_string(), packed.finish().expect("and the rest"))
            }
            _ => (format!("part-{part}.csv"), text.into_bytes()),
        };
        let file = DiskFs.create(&folder.join(name)).expect("a file can be made");
        file.write_at(&bytes, 0).expect("and written");
    }
}

/// All that can be seen of the table, by its rows and by each of its indexes.
fn content(client: &mut Client) -> Vec<String> {
    let mut out = Vec::new();
    for sql in [
        "SELECT count(*), sum(id), sum(n), count(DISTINCT id), md5(string_agg(t, ',' ORDER BY id)) FROM t",
        "SELECT count(*), sum(n) FROM t WHERE n >= 0",
        "SELECT n, count(*) FROM t WHERE n BETWEEN 10 AND 12 GROUP BY n ORDER BY n",
        "SELECT id FROM t WHERE t = 'name 3600' ORDER BY id",
    ] {
        out.extend(rows(client, sql));
    }
    out
}

#[test]
fn an_import_that_is_killed_again_and_again_is_there_once() {
    let kills = given("BRAID_KILLS", 6);
    let mut random = Random::seeded(given("BRAID_FIRST_SEED", 1));
    let (mut killed, mut wanted, mut resumed) = (0, None, 0);
    while killed < kills {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = directory.path().join("store");
        // The same files each time: what is there in the end is the same, too.
        put_files(&store.join("import"), &mut Random::seeded(7));
        let mut node = Node::start(&store);
        let client = &mut node.client();
        rows(client, "CREATE TABLE t (id int PRIMARY KEY, n int CHECK (n >= 0), t text)");
        rows(client, "CREATE UNIQUE INDEX by_t ON t (t); CREATE INDEX by_n ON t (n, t)");
        rows(client, "INSERT INTO t VALUES (-1, 5, 'was there')");
        let pauses = random.below(4) == 0;
        let mode = ["auto", "one_pass", "two_pass"][random.below(3) as usize];
        let sql =
            format!("IMPORT INTO t CSV DATA ('part-*') WITH {OPTIONS}, mode = '{mode}', detached");
        let job = rows(client, &sql)[0].split('|').next().expect("a job").to_string();
        let mut last = 0.0;
        let mut here: u64 = 0;
        loop {
            // The later, the longer: it has to come to its end, too.
            std::thread::sleep(Duration::from_millis(random.below(1_000 + 300 * here)));
            let client = &mut node.client();
            let found = rows(client, "SHOW JOBS");
            let found = found.iter().find(|j| j.starts_with(&format!("{job}|")));
            let fields: Vec<&str> = found.expect("the job is known").split('|').collect();
            let fraction: f64 = fields[fields.len() - 2].parse().unwrap_or(0.0);
            let state = fields[fields.len() - 4];
            assert!(fraction >= last, "progress went back from {last} to {fraction}");
            match state {
                "succeeded" => break,
                "running" => {}
                other => panic!("job {job} is {other}: {found:?}"),
            }
            if pauses && here.is_multiple_of(2) {
                rows(client, &format!("PAUSE JOB {job}"));
            }
            // Only what a checkpoint has counts after a kill.
            last = 0.0;
            killed += 1;
            here += 1;
            node.kill();
            node = Node::start(&store);
            let client = &mut node.client();
            assert_eq!(rows(client, "SELECT count(*) FROM t WHERE id = -1"), ["1"]);
            let count = rows(client, "SELECT count(*) FROM t")[0].clone();
            assert!(count == "1" || count == (ROWS + 1).to_string(), "{count} rows are there");
            if rows(client, "SHOW JOBS").iter().any(|j| j.contains("|paused|")) {
                rows(client, &format!("RESUME JOB {job}"));
                resumed += 1;
            }
        }
        let client = &mut node.client();
        let found = content(client);
        assert_eq!(found, *wanted.get_or_insert_with(|| found.clone()), "mode {mode}");
        assert_eq!(found[0].split('|').next(), Some((ROWS + 1).to_string().as_str()));
        println!("{here} kills, mode {mode}, {resumed} resumed so far");
    }
}
