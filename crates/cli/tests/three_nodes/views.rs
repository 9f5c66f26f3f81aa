//! Views that stay for a whole block, as those of `pg_dump`, beside writers at every node.

use super::*;

/// A block has told its client something before it comes to most ranges, and others write all the
/// time: it sees one state, and is not told to try again. (A lease that moves meanwhile may put it
/// in doubt.)
#[test]
fn a_view_that_stays_is_not_in_doubt_beside_writers() {
    let cluster = Cluster::start(3 * PATIENCE, &[]);
    let mut client = cluster.client(2);
    run(
        &mut client,
        "CREATE TABLE hot (id bigint PRIMARY KEY, n bigint);
         INSERT INTO hot SELECT g, 0 FROM generate_series(0, 23) g",
    );
    run(&mut client, "ALTER TABLE hot SPLIT AT VALUES (3), (6), (9), (12), (15), (18), (21)");
    beside_writers(&cluster, 24, || {
        let sum = "SELECT count(*), sum(n)::bigint FROM hot";
        let all = rows(&mut client, sum);
        let (mut in_doubt, mut last) = (0, all[0][1]);
        for round in 0..24 {
            let modes =
                ["REPEATABLE READ", "REPEATABLE READ, READ ONLY", "SERIALIZABLE, READ ONLY"];
            let begin = format!("BEGIN ISOLATION LEVEL {}", modes[round % 3]);
            client.batch_execute(&begin).expect("it begins");
            assert_eq!(rows(&mut client, "SELECT 1::bigint"), [[1]]);
            WallClock.sleep(Duration::from_millis(20 * round as u64));
            let seen = client.query(sum, &[]).map(|found| found[0].get::<_, i64>(1));
            let again = client.query(sum, &[]).map(|found| found[0].get::<_, i64>(1));
            match (seen, again) {
                (Ok(seen), Ok(again)) => {
                    assert_eq!(seen, again, "{begin}: one state");
                    assert!(seen >= last, "{begin}: {seen}, and {last} before it began");
                    client.batch_execute("COMMIT").expect("it ends");
                    last = rows(&mut client, sum)[0][1];
                    assert!(last >= seen);
                }
                (seen, again) => {
                    println!("{begin}: {seen:?} {again:?}");
                    in_doubt += 1;
                    client.batch_execute("ROLLBACK").expect("it ends");
                }
            }
        }
        assert!(last > all[0][1] + 24, "others have written");
        println!("{in_doubt} of 24 blocks were in doubt");
        assert!(in_doubt <= 6, "{in_doubt} of 24 blocks were in doubt");
    });
}
