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

/// What the view tells of writing commits of all nodes: how many, how many of them in several
/// ranges, in how many ranges together, and what was asked of other nodes. Any node tells the same.
fn told(clients: &mut [Client], tables: &str) -> [i64; 4] {
    let mut all: Vec<[i64; 4]> = Vec::new();
    for client in clients {
        let sql = format!(
            "SELECT sum(writing_commits)::bigint, sum(distributed_commits)::bigint,
                    sum(avg_participants * writing_commits)::bigint,
                    sum(remote_calls)::bigint, (sum(network_bytes) > 0)::int::bigint,
                    (sum(total_commit_time) > 0)::int::bigint
             FROM braid_transaction_statistics WHERE query ILIKE 'insert into parent_{tables}%'"
        );
        let told = rows(client, &sql).remove(0);
        assert_eq!((told[3] > 0, told[5]), (told[4] == 1, 1), "{tables}: {told:?}");
        all.push([0, 1, 2, 3].map(|at: usize| told[at]));
    }
    assert!(all.windows(2).all(|two| two[0] == two[1]), "{tables}: {all:?}");
    all[0]
}

/// Locks of shapes that are in another range are validated, and not prepared there, if the commit
/// happens within 100 ms after that. On a busy machine it may not; so one quiet round is enough.
#[test]
fn a_family_is_written_by_one_participant_and_flat_tables_by_two() {
    let cluster = Cluster::start(2 * PATIENCE, &[]);
    let mut clients: Vec<Client> = (0..3).map(|n| cluster.client(n)).collect();
    run(&mut clients[0], SCHEMA);
    let mut before = [[0; 4]; 2];
    let mut said = Vec::new();
    for round in 0..20 {
        for id in 20 * round..20 * (round + 1) {
            for tables in ["i", "f"] {
                // Each node counts for itself, and is asked by the others.
                write(&mut clients[id as usize % 3], tables, id);
            }
        }
        let now = ["i", "f"].map(|tables| told(&mut clients, tables));
        let [family, flat] =
            [0, 1].map(|at| [0, 1, 2].map(|column: usize| now[at][column] - before[at][column]));
        assert!(family[0] >= 20 && flat[0] >= 20, "{family:?} {flat:?}");
        assert!(flat[1] == flat[0] && flat[2] >= 2 * flat[0], "{flat:?}");
        // Not every range is led by the node that was asked.
        assert!(now[0][3] + now[1][3] > 0);
        said.push((family, flat));
        if family[1..] == [0, family[0]] && flat[2] == 2 * flat[0] {
            return;
        }
        before = now;
    }
    panic!("a family has had two participants in each round: {said:?}");
}
