//! Sessions of three nodes beside rows: advisory locks, LISTEN and NOTIFY, temporary tables.

use postgres::fallible_iterator::FallibleIterator;

use super::*;

fn is_free(client: &mut Client, lock: i64) -> bool {
    let sql = format!("SELECT pg_try_advisory_lock({lock})");
    client.query_one(&sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e:?}")).get(0)
}

/// What a client hears within a moment.
fn heard(client: &mut Client, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut notifications = client.notifications();
    let mut waiting = notifications.timeout_iter(PATIENCE);
    while all.len() < count {
        let next = waiting.next().expect("the connection lives").expect("somebody has said it");
        all.push(format!("{}:{}", next.channel(), next.payload()));
    }
    all
}

#[test]
fn what_sessions_have_in_common_they_have_over_all_nodes() {
    let cluster = Cluster::start(3 * PATIENCE, &[]);
    let mut clients: Vec<Client> = (0..3).map(|n| cluster.client(n)).collect();

    // A migration tool's lock.
    assert!(is_free(&mut clients[0], 7));
    assert!(!is_free(&mut clients[1], 7) && !is_free(&mut clients[2], 7));
    let sql = "SELECT objid::int8, count(*) FROM pg_locks WHERE locktype = 'advisory' GROUP BY 1";
    for client in &mut clients {
        assert_eq!(rows(client, sql), [[7, 1]], "every node shows it");
    }
    run(&mut clients[0], "SELECT pg_advisory_unlock(7)");
    assert!(is_free(&mut clients[1], 7));

    // What is said on one node is heard on the others, idle or not, in the order of commits.
    run(&mut clients[0], "CREATE TABLE jobs (id int PRIMARY KEY)");
    for client in &mut clients {
        run(client, "LISTEN jobs");
    }
    for n in 0..6 {
        let client = &mut clients[n % 3];
        run(client, &format!("BEGIN; INSERT INTO jobs VALUES ({n}); NOTIFY jobs, '{n}'; COMMIT"));
    }
    run(&mut clients[1], "BEGIN; NOTIFY jobs, 'never'; ROLLBACK");
    let all: Vec<String> = (0..6).map(|n| format!("jobs:{n}")).collect();
    for client in &mut clients {
        assert_eq!(heard(client, 6), all);
    }
    let wall = WallClock;
    let mut longest = Duration::ZERO;
    for n in 0..10 {
        let begun = wall.monotonic_nanos();
        run(&mut clients[0], &format!("SELECT pg_notify('jobs', 'again {n}')"));
        assert_eq!(heard(&mut clients[2], 1), [format!("jobs:again {n}")]);
        longest = longest.max(Duration::from_nanos(wall.monotonic_nanos() - begun));
    }
    println!("another node's client hears a message after {longest:?} at most, of 10");

    // Temporary tables of the same name, with all that tables have.
    for (n, client) in clients.iter_mut().enumerate() {
        run(client, "CREATE TEMP TABLE own (n int PRIMARY KEY, m serial, t text)");
        run(client, "CREATE INDEX ON own (t)");
        run(
            client,
            &format!("INSERT INTO own (n, t) SELECT g, 'x' FROM generate_series(0, {n}) g"),
        );
        run(client, "CREATE TEMP VIEW many AS SELECT count(*) AS c, max(m) AS m FROM own");
    }
    for (n, client) in clients.iter_mut().enumerate() {
        let count = n as i64 + 1;
        assert_eq!(rows(client, "SELECT c, m::int8 FROM many"), [[count, count]]);
    }

    // Every node shows what the sessions of all do, and can stop them.
    let pid: i32 = clients[2].query_one("SELECT pg_backend_pid()", &[]).expect("a number").get(0);
    let shown =
        "SELECT count(*), count(DISTINCT pid) FROM pg_stat_activity WHERE datname = 'defaultdb'";
    assert_eq!(rows(&mut clients[0], shown), [[3, 3]]);
    std::thread::scope(|threads| {
        let (stopper, sleeper) = clients.split_at_mut(2);
        let sleeps = threads.spawn(|| sleeper[0].batch_execute("SELECT pg_sleep(60)"));
        let active = format!(
            "SELECT count(*), count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active' \
             AND query = 'SELECT pg_sleep(60)'"
        );
        while rows(&mut stopper[0], &active) != [[1, 1]] {
            wall.sleep(Duration::from_millis(10));
        }
        let stopped = stopper[1].query_one("SELECT pg_cancel_backend($1)", &[&pid]);
        assert!(stopped.expect("an answer").get::<_, bool>(0));
        let error = sleeps.join().expect("no panic").expect_err("it was stopped");
        assert_eq!(error.code().map(|code| code.code()), Some("57014"), "{error}");
    });
    let ended = clients[1].query_one("SELECT pg_terminate_backend($1)", &[&pid]);
    assert!(ended.expect("an answer").get::<_, bool>(0));
    assert!(clients[2].batch_execute("SELECT 1").is_err(), "its session has ended");
    clients[2] = cluster.client(2);
    run(&mut clients[2], "CREATE TEMP TABLE own (n int)");

    // A node dies with locks and temporary tables.
    assert!(is_free(&mut clients[2], 8));
    cluster.kill(2);
    let begun = wall.monotonic_nanos();
    let lost = clients.pop().expect("three");
    let free = || wall.monotonic_nanos() - begun;
    run(&mut clients[0], "SELECT pg_advisory_lock(8)");
    let took = Duration::from_nanos(free());
    println!("a lock of a node that was killed is free after {took:?}");
    assert!(took < PATIENCE, "{took:?}");
    drop(lost);
    cluster.run(2);
    clients.push(cluster.client(2));
    let left = "SELECT count(*), count(*) FROM pg_namespace WHERE nspname LIKE 'pg\\_temp\\_%'";
    assert_eq!(rows(&mut clients[2], left), [[2, 2]], "those of the two that live");
    assert!(!is_free(&mut clients[2], 8));
    run(&mut clients[2], "CREATE TEMP TABLE own (n int); LISTEN jobs");
    run(&mut clients[0], "NOTIFY jobs, 'back'");
    assert_eq!(heard(&mut clients[2], 1), ["jobs:back"]);
}

/// What is done in steps on a node alone is done at once.
#[test]
fn tables_with_rows_move_while_writers_wait() {
    let cluster = Cluster::start(3 * PATIENCE, &[]);
    let mut clients: Vec<Client> = (0..2).map(|n| cluster.client(n)).collect();
    run(
        &mut clients[0],
        "CREATE TABLE p (id int PRIMARY KEY, n int); CREATE TABLE c (id int, k int, n int, PRIMARY KEY (id, k))",
    );
    run(&mut clients[0], "INSERT INTO p SELECT g, 0 FROM generate_series(1, 500) g");
    run(
        &mut clients[0],
        "INSERT INTO c SELECT g, k, 1 FROM generate_series(1, 500) g, generate_series(1, 8) k",
    );
    run(&mut clients[1], "ALTER TABLE c SET INTERLEAVE IN PARENT p ON DELETE CASCADE");
    assert_eq!(rows(&mut clients[0], "SELECT count(*), sum(n) FROM c"), [[4000, 4000]]);
    run(&mut clients[0], "DELETE FROM p WHERE id <= 100");
    assert_eq!(rows(&mut clients[1], "SELECT count(*), sum(n) FROM c"), [[3200, 3200]]);
    run(&mut clients[1], "ALTER TABLE c ALTER PRIMARY KEY USING COLUMNS (id, k, n)");
    assert_eq!(rows(&mut clients[0], "SELECT count(*), sum(n) FROM c"), [[3200, 3200]]);
}
