//! IMPORT on three nodes: files of the node that is asked, rows for all, and a job that its node
//! goes on with after a crash.

use super::*;

const ROWS: usize = 30_000;

/// Rows of a table with a foreign order of its second index.
#[allow(clippy::disallowed_methods, reason = "a client's file, not a database")]
fn write_rows(path: &std::path::Path, from: usize, upto: usize) {
    let line = |n: usize| format!("{n},{},row {n} of many\n", n * 7_919 % 1_000_003);
    let text: String = (from..upto).map(line).collect();
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    std::fs::write(path, text).expect("it can be written");
}

/// The number of the newest job.
fn last_job(client: &mut Client) -> i64 {
    let shown = client.simple_query("SHOW JOBS").expect("they are shown");
    let ids = shown.iter().filter_map(|message| match message {
        postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    ids.max().expect("there is one")
}

fn answered(client: &mut Client, sql: &str) -> Option<String> {
    let error = client.batch_execute(sql).err()?;
    let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error:?}"));
    Some(format!("{} {}", error.code().code(), error.message()))
}

#[test]
fn files_of_one_node_become_rows_of_all_also_after_a_crash() {
    let cluster = Cluster::start(4 * PATIENCE, &[]);
    let mut clients: Vec<Client> = (0..3).map(|n| cluster.client(n)).collect();
    run(&mut clients[0], "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, s text)");
    run(&mut clients[0], "CREATE INDEX ON t (n); CREATE TABLE u (id int PRIMARY KEY REFERENCES t)");
    let file = cluster.data(1).join("import/rows.csv");
    write_rows(&file, 0, ROWS);
    let refused = answered(&mut clients[0], "IMPORT INTO t CSV DATA ('rows.csv')");
    assert!(refused.is_some_and(|e| e.starts_with("58P01")), "it is a file of the second node");

    let count = "SELECT count(*), count(DISTINCT n) FROM t WHERE n >= 0";
    let all = vec![vec![ROWS as i64, ROWS as i64]];
    run(&mut clients[1], "IMPORT INTO t CSV DATA ('rows.csv')");
    for client in &mut clients {
        assert_eq!(rows(client, count), all);
        assert_eq!(rows(client, "SELECT id::int8, n::int8 FROM t WHERE n = 7919"), [[1, 7919]]);
    }
    // Into rows that are there it is one commit; what is wrong leaves everything as it was.
    write_rows(&cluster.data(1).join("import/more.csv"), ROWS - 1, ROWS + 10);
    let taken = answered(&mut clients[1], "IMPORT INTO t CSV DATA ('more.csv')").expect("taken");
    assert!(taken.starts_with("23505"), "{taken}");
    assert_eq!(rows(&mut clients[2], count), all);
    run(&mut clients[1], "TRUNCATE t, u");

    // Its node dies in the middle, and goes on with it when it is back.
    run(&mut clients[1], "IMPORT INTO t CSV DATA ('rows.csv') WITH DETACHED");
    let job = last_job(&mut clients[0]);
    // Another node hands it on; at its end there is nothing to pause.
    for order in ["PAUSE JOB", "RESUME JOB"] {
        let said = answered(&mut clients[0], &format!("{order} {job}"));
        assert!(said.as_ref().is_none_or(|e| e.starts_with("55000")), "{said:?}");
    }
    cluster.kill(1);
    let dead = answered(&mut clients[0], &format!("PAUSE JOB {job}"));
    assert!(
        dead.as_ref().is_some_and(|e| e.starts_with("57P03") || e.starts_with("55000")),
        "{dead:?}"
    );
    drop(clients.remove(1));
    assert!(matches!(rows(&mut clients[0], count)[0][0], 0 | 30_000), "all or nothing");
    cluster.run(1);
    let mut client = cluster.client(1);
    let wall = WallClock;
    let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
    while rows(&mut client, count) != all {
        assert!(wall.monotonic_nanos() < until, "it does not go on");
        wall.sleep(Duration::from_millis(50));
    }
    assert_eq!(rows(&mut clients[1], count), all);
}

/// Several clients of several nodes fill one table, which is empty for the first of them only.
#[test]
fn copies_into_one_table_come_one_after_the_other() {
    let cluster = Cluster::start(3 * PATIENCE, &[]);
    run(&mut cluster.client(0), "CREATE TABLE t (id int PRIMARY KEY, n int)");
    std::thread::scope(|threads| {
        for part in 0..3 {
            let cluster = &cluster;
            threads.spawn(move || {
                let mut client = cluster.client(part);
                let mut rows = client.copy_in("COPY t FROM STDIN").expect("it takes rows");
                for n in 0..15_000 {
                    let line = format!("{}\t{n}\n", n * 3 + part);
                    rows.write_all(line.as_bytes()).expect("it takes rows");
                }
                assert_eq!(rows.finish().expect("it is committed"), 15_000);
            });
        }
    });
    let mut client = cluster.client(1);
    assert_eq!(rows(&mut client, "SELECT count(*), max(id)::int8 FROM t"), [[45_000, 44_999]]);
}
