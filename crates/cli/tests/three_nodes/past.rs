//! What was, any node reads from its own replicas.

use super::*;

const COUNT: &str = "SELECT count(*) FROM t AS OF SYSTEM TIME";

/// Reads of the past that a node has made of its own replicas, or of others nearby.
fn near_reads(cluster: &Cluster, n: usize) -> u64 {
    cluster.metric(n, "braid_cluster_follower_reads_total")
}

#[test]
fn the_past_is_read_without_asking_other_nodes_also_when_these_are_gone() {
    let cluster = Cluster::start(2 * PATIENCE, &[]);
    let mut clients: Vec<Client> = (0..3).map(|n| cluster.client(n)).collect();
    let schema = "CREATE TABLE t (id bigint PRIMARY KEY);
                  INSERT INTO t SELECT g FROM generate_series(1, 100) g";
    run(&mut clients[0], schema);
    let wall = WallClock;
    let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
    // Leases may move meanwhile; two of three nodes do not serve the range.
    let reads_by_itself = loop {
        wall.sleep(Duration::from_millis(200));
        let by_itself = (0..3).find(|n| {
            let before = near_reads(&cluster, *n);
            let sql = format!("{COUNT} follower_read_timestamp()");
            // Three seconds ago the table was not there, at first.
            let count = clients[*n].query_one(&sql, &[]).map(|row| row.get::<_, i64>(0));
            count.is_ok_and(|count| count == 100) && near_reads(&cluster, *n) > before
        });
        if let Some(n) = by_itself {
            break n;
        }
        assert!(wall.monotonic_nanos() < until, "nobody reads the past by itself");
    };
    let own = &mut clients[reads_by_itself];
    let then = own.query_one("SELECT follower_read_timestamp()::text", &[]).expect("it is told");
    let then: String = then.get(0);
    (0..3).filter(|n| *n != reads_by_itself).for_each(|n| cluster.kill(n));
    let alone = rows(own, &format!("{COUNT} '{then}'"));
    assert_eq!(alone, [[100]]);
}

/// What was validated for a commit elsewhere is written a little ahead of the clock by whoever comes
/// next. What a node tells to be the time has all that it has acknowledged, nevertheless, and
/// nothing that came after that.
#[test]
fn the_time_that_is_told_has_what_was_acknowledged_before() {
    let cluster = Cluster::start(2 * PATIENCE, &[]);
    let mut clients: Vec<Client> = (0..3).map(|n| cluster.client(n)).collect();
    let schema = "CREATE TABLE t (id bigint PRIMARY KEY); CREATE TABLE u (id bigint PRIMARY KEY);
                  INSERT INTO t SELECT g FROM generate_series(1, 100) g";
    run(&mut clients[0], schema);
    run(&mut clients[0], "ALTER TABLE t SPLIT AT VALUES (50)");
    run(&mut clients[0], "ALTER TABLE u SPLIT AT VALUES (0)");
    for round in 0..30i64 {
        let own = &mut clients[round as usize % 3];
        let elsewhere = format!(
            "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM t WHERE id > 50;
             INSERT INTO u VALUES ({round}); COMMIT"
        );
        run(own, &elsewhere);
        run(own, &format!("INSERT INTO t VALUES ({})", 1_000 + round));
        let then = own.query_one("SELECT clock_timestamp()::text", &[]).expect("it is told");
        let then: String = then.get(0);
        run(own, "DELETE FROM t WHERE id = 1");
        run(own, "INSERT INTO t VALUES (1)");
        run(own, &format!("INSERT INTO t VALUES ({})", 2_000 + round));
        let seen = rows(own, &format!("{COUNT} '{then}'"));
        assert_eq!(seen, [[100 + 2 * round + 1]], "round {round}, as of {then}");
    }
}
