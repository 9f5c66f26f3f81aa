//! Two of three nodes are away: nobody serves anything. Whatever a client of the third one waits
//! for, it stops when it is told to, by a limit of time or by who cancels; and soon by itself, since
//! there are other nodes.

use super::*;

/// A statement that is told to stop does so in much less than the 30 s that it would wait.
const SOON: Duration = Duration::from_secs(12);

/// What of a client's statements waits for nobody knows what, and how it ends when it is stopped.
fn stops(client: &mut Client, sql: &str, ends: &[&str]) {
    let begun = WallClock.monotonic_nanos();
    let error = client.batch_execute(sql).expect_err(sql);
    let took = Duration::from_nanos(WallClock.monotonic_nanos() - begun);
    let state = error.code().map(|code| code.code().to_string()).unwrap_or_default();
    assert!(ends.contains(&state.as_str()), "{sql}: {error}");
    assert!(took < SOON, "{sql}: {took:?}");
    println!("{sql}: {state} after {took:?}");
}

/// Nobody waits for a login until his own patience is over: there are other nodes.
fn sends_clients_away(cluster: &Cluster, n: usize) {
    let url = cluster.nodes[n].lock().as_ref().map(|node| node.url.clone()).expect("it runs");
    let begun = WallClock.monotonic_nanos();
    let error = Client::connect(&url, NoTls).map(drop).expect_err("it serves nobody");
    let took = Duration::from_nanos(WallClock.monotonic_nanos() - begun);
    assert_eq!(error.code().map(|code| code.code()), Some("57P03"), "{error:?}");
    assert!(took < SOON, "{took:?}");
    println!("a new client: 57P03 after {took:?}");
}

#[test]
fn who_waits_for_a_majority_stops_when_he_is_told_to() {
    let cluster = Cluster::start(3 * PATIENCE, &[]);
    let mut client = cluster.client(2);
    let made = "CREATE SEQUENCE s; \
                CREATE TABLE t (id bigint PRIMARY KEY, v bigint); INSERT INTO t VALUES (1, 1)";
    client.batch_execute(made).expect("a majority is there");
    // SET, too, would wait for what it knows of the schema.
    let (mut patient, mut open) = (cluster.client(2), cluster.client(2));
    let (mut limited, mut locking) = (cluster.client(2), cluster.client(2));
    client.batch_execute("SET statement_timeout = '300ms'").expect("it is set");
    open.batch_execute("SET statement_timeout = '300ms'; BEGIN; UPDATE t SET v = 2")
        .expect("a majority is there");
    limited
        .batch_execute(
            "SET lock_timeout = '300ms'; BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT v FROM t",
        )
        .expect("a majority is there");
    locking
        .batch_execute("SET statement_timeout = '300ms'; BEGIN; SELECT FROM t FOR UPDATE NOWAIT")
        .expect_err("somebody has the lock");
    (0..2).for_each(|n| cluster.kill(n));
    // As long as a lease lasts it may be served.
    WallClock.sleep(Duration::from_secs(5));
    sends_clients_away(&cluster, 2);
    // Nor does a client that has been here before wait until its pool gives up.
    for sql in ["SELECT 1", "SELECT * FROM t", "UPDATE t SET v = 3"] {
        stops(&mut patient, sql, &["57P03"]);
    }
    for sql in [
        "SELECT * FROM t",
        "SELECT count(*) FROM t a JOIN t b USING (v)",
        "INSERT INTO t VALUES (3, 3)",
        "UPDATE t SET v = 3",
        "SELECT * FROM t FOR UPDATE",
        "SELECT nextval('s')",
        "CREATE TABLE u (id int)",
        "CREATE INDEX ON t (v)",
        "ANALYZE t",
        "BEGIN",
        "SELECT 1",
    ] {
        stops(&mut client, sql, &["57014"]);
    }
    // It may have been on its way; and what it has locked may be lost by now.
    stops(&mut open, "COMMIT", &["57014", "40003", "40001"]);
    locking.batch_execute("ROLLBACK").expect("nobody is asked for that");
    // What it reads it has waited for already.
    stops(&mut limited, "LOCK TABLE t", &["55P03"]);
    let cancel = patient.cancel_token();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            WallClock.sleep(Duration::from_millis(300));
            cancel.cancel_query(NoTls).expect("it is sent");
        });
        stops(&mut patient, "SELECT * FROM t", &["57014"]);
    });
    (0..2).for_each(|n| cluster.run(n));
    let seen = rows(&mut patient, "SELECT id, v FROM t");
    assert!(seen == [[1, 1]] || seen == [[1, 2]], "{seen:?}");
    assert_eq!(rows(&mut patient, "SELECT count(*) FROM pg_class WHERE relname = 'u'"), [[0]]);
}
