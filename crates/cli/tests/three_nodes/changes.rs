//! Indexes and constraints that are added to tables with rows while others write through other
//! nodes, and while the node that adds them is killed.

use super::*;

const VALUES: i64 = 40;

/// Whoever reads by the index sees what whoever reads all rows sees.
fn index_is_right(client: &mut Client, index: &str) {
    let plan = client.query("EXPLAIN SELECT count(*) FROM t WHERE v = 7", &[]).expect("a plan");
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    assert!(plan.iter().any(|line| line.contains(index)), "{plan:?}");
    let all = rows(client, "SELECT v, count(*), sum(id)::bigint FROM t GROUP BY v ORDER BY v");
    assert!(!all.is_empty());
    for v in -1..=VALUES {
        let sql = format!("SELECT v, count(*), sum(id)::bigint FROM t WHERE v = {v} GROUP BY v");
        let found: Vec<_> = all.iter().filter(|row| row[0] == v).cloned().collect();
        assert_eq!(rows(client, &sql), found, "v = {v}");
    }
}

/// Writers of all kinds at the first two nodes while `work` runs at the third.
fn beside_writers(cluster: &Cluster, work: impl FnOnce()) {
    let (stop, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stops = StopsWriters(&stop);
        for n in 0..2u64 {
            let (stop, writes) = (&stop, &writes);
            scope.spawn(move || {
                let (mut client, mut random) = (cluster.client(n as usize), Random::seeded(n));
                while !stop.load(Ordering::SeqCst) {
                    let (id, v) = (random.below(2_000), random.below(VALUES as u64));
                    let sql = match random.below(4) {
                        0 => format!("DELETE FROM t WHERE id = {id}"),
                        1 => format!(
                            "INSERT INTO t VALUES ({id}, {v}) ON CONFLICT (id) DO UPDATE SET v = {v}"
                        ),
                        2 => format!("UPDATE t SET v = {v} WHERE id BETWEEN {id} AND {id} + 20"),
                        _ => format!("UPDATE t SET v = {v} WHERE id = {id}"),
                    };
                    run(&mut client, &sql);
                    writes.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        while writes.load(Ordering::SeqCst) < 20 {
            WallClock.sleep(Duration::from_millis(10));
        }
        let before = writes.load(Ordering::SeqCst);
        work();
        assert!(writes.load(Ordering::SeqCst) > before, "nobody could write meanwhile");
    });
}

fn fails(client: &mut Client, sql: &str, state: &str) {
    let error = client.batch_execute(sql).expect_err(sql);
    assert_eq!(error.code().map(|code| code.code()), Some(state), "{sql}: {error:?}");
}

fn filled(cluster: &Cluster) -> Client {
    let mut client = cluster.client(2);
    run(
        &mut client,
        "CREATE TABLE t (id bigint PRIMARY KEY, v bigint);
         INSERT INTO t SELECT g, g % 40 FROM generate_series(0, 1999) g;
         INSERT INTO t VALUES (5000, 77)",
    );
    run(&mut client, "ALTER TABLE t SPLIT AT VALUES (500), (1000), (1500)");
    client
}

#[test]
fn indexes_and_constraints_are_added_while_others_write_through_other_nodes() {
    let cluster = Cluster::start(3 * PATIENCE, &[]);
    let mut client = filled(&cluster);
    beside_writers(&cluster, || {
        run(&mut client, "CREATE INDEX by_v ON t (v)");
        run(&mut client, "ALTER TABLE t ADD CONSTRAINT not_negative CHECK (v >= 0)");
        run(&mut client, "ALTER TABLE t ALTER COLUMN v SET NOT NULL");
        // What a row does not allow is refused, and nothing of it stays.
        fails(&mut client, "CREATE UNIQUE INDEX one_v ON t (v)", "23505");
        fails(&mut client, "ALTER TABLE t ADD CONSTRAINT small CHECK (v < 50)", "23514");
        run(&mut client, "CREATE UNIQUE INDEX one ON t (id, v)");
        run(&mut client, "CREATE TABLE u (id bigint PRIMARY KEY REFERENCES t ON DELETE CASCADE)");
    });
    for n in 0..3 {
        index_is_right(&mut cluster.client(n), "by_v");
    }
    let mut other = cluster.client(0);
    run(&mut other, "INSERT INTO t VALUES (9000, 1)");
    fails(&mut other, "INSERT INTO t VALUES (9001, -1)", "23514");
    fails(&mut other, "INSERT INTO t VALUES (9001, NULL)", "23502");
    run(&mut other, "INSERT INTO t VALUES (9001, 39)");
    run(&mut client, "CREATE TABLE w (n bigint); INSERT INTO w VALUES (9000), (9001)");
    run(&mut client, "ALTER TABLE w ADD FOREIGN KEY (n) REFERENCES t");
    fails(&mut other, "INSERT INTO w VALUES (9002)", "23503");
    fails(&mut other, "DELETE FROM t WHERE id = 9000", "23503");
    let ends = "SELECT count(*) FROM pg_indexes WHERE tablename = 't'";
    assert_eq!(rows(&mut other, ends), [[3]]);
}

/// What it has half done is taken back by the others, whatever step it had come to.
#[test]
fn an_index_whose_node_is_killed_in_the_middle_is_taken_back_and_can_be_made_again() {
    let cluster = Cluster::start(3 * PATIENCE, &[]);
    let mut client = filled(&cluster);
    let wall = WallClock;
    for wait_millis in [0, 300, 900] {
        beside_writers(&cluster, || {
            client.batch_execute("SET backfill_rows_per_second = 500").expect("it is set");
            std::thread::scope(|scope| {
                let create = scope.spawn(|| client.batch_execute("CREATE INDEX by_v ON t (v)"));
                let mut other = cluster.client(0);
                let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
                let running = |client: &mut Client| {
                    let all = client.query("SHOW JOBS", &[]).expect("it is shown");
                    let text = |row: &postgres::Row, n| row.try_get::<_, String>(n);
                    let is = |row: &postgres::Row, n| text(row, n).is_ok_and(|t| t == "running");
                    all.iter().any(|row| (0..row.len()).any(|n| is(row, n)))
                };
                while !running(&mut other) {
                    assert!(wall.monotonic_nanos() < until, "it does not begin");
                    wall.sleep(Duration::from_millis(20));
                }
                wall.sleep(Duration::from_millis(wait_millis));
                cluster.kill(2);
                assert!(create.join().expect("it ends").is_err());
                while running(&mut other) {
                    assert!(wall.monotonic_nanos() < until, "nobody takes it back");
                    wall.sleep(Duration::from_millis(50));
                }
            });
        });
        cluster.run(2);
        client = cluster.client(2);
    }
    let mut other = cluster.client(1);
    beside_writers(&cluster, || run(&mut other, "CREATE INDEX by_v ON t (v)"));
    for n in 0..3 {
        index_is_right(&mut cluster.client(n), "by_v");
    }
}
