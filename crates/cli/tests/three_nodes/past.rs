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
