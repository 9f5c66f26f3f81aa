//! What a family is good for where tables lie in several ranges: it is written by one participant,
//! as the views tell.

use super::*;

const SCHEMA: &str = "
    CREATE TABLE parent_i (id bigint PRIMARY KEY, note text);
    CREATE TABLE child_i (id bigint, n bigint, PRIMARY KEY (id, n))
        INTERLEAVE IN PARENT parent_i ON DELETE CASCADE;
    CREATE TABLE parent_f (id bigint PRIMARY KEY, note text);
    CREATE TABLE child_f (id bigint, n bigint, PRIMARY KEY (id, n));
    ALTER TABLE parent_i SPLIT AT VALUES (0), (10);
    ALTER TABLE parent_f SPLIT AT VALUES (0);
    ALTER TABLE child_f SPLIT AT VALUES (0)";

/// Writes a parent and three children in one transaction, until that was done.
fn write(client: &mut Client, tables: &str, id: i64) {
    let sql = format!(
        "BEGIN; INSERT INTO parent_{tables} VALUES ({id}, 'a');
         INSERT INTO child_{tables} VALUES ({id}, 1), ({id}, 2), ({id}, 3); COMMIT"
    );
    for _ in 0..100 {
        if matches!(ended(client.batch_execute(&sql), client), Ended::Done) {
            return;
        }
    }
    panic!("{sql}: never done");
}

#[test]
fn a_family_is_written_by_one_participant_and_flat_tables_by_two() {
    let cluster = Cluster::start(2 * PATIENCE, &[]);
    let mut clients: Vec<Client> = (0..3).map(|n| cluster.client(n)).collect();
    run(&mut clients[0], SCHEMA);
    for id in 0..20 {
        for tables in ["i", "f"] {
            // Each node counts for itself.
            write(&mut clients[id as usize % 3], tables, id);
        }
    }
    let mut calls = 0;
    for client in &mut clients {
        let told = |client: &mut Client, view: &str, tables: &str| {
            let sql = format!(
                "SELECT sum(writing_commits)::bigint, sum(distributed_commits)::bigint,
                        (10 * sum(avg_participants * writing_commits)
                            / sum(writing_commits))::bigint,
                        sum(remote_calls)::bigint, (sum(network_bytes) > 0)::int::bigint,
                        (sum(total_commit_time) > 0)::int::bigint
                 FROM {view} WHERE query ILIKE 'insert into parent_{tables}%'"
            );
            rows(client, &sql).remove(0)
        };
        let view = "braid_transaction_statistics";
        for (tables, participants) in [("i", 10), ("f", 20)] {
            let told = told(client, view, tables);
            let [commits, distributed, average, remote, bytes, time] = told[..] else {
                panic!("{told:?}")
            };
            assert!(commits >= 6, "{tables}: {told:?}");
            assert_eq!(distributed, if tables == "f" { commits } else { 0 }, "{tables}: {told:?}");
            assert_eq!((average, time), (participants, 1), "{tables}: {told:?}");
            assert_eq!(remote > 0, bytes == 1, "{tables}: {told:?}");
            calls += remote;
        }
    }
    // Not every range is led by the node that was asked.
    assert!(calls > 0);
}
