//! Nodes that are lost for ever, others that take their place, and one that leaves, while clients
//! write: with `braid start --join` and `braid node`, as an operator does it.

use std::process::Command;

use super::*;

/// Runs `braid node` until it is through; what it says.
pub fn braid_node(peer: &str, arguments: &[&str]) -> Result<String, String> {
    let built = env!("CARGO_BIN_EXE_braid").to_string();
    let output = Command::new(std::env::var("BRAID_BINARY").unwrap_or(built))
        .args(["node", "--peer", peer])
        .args(arguments)
        .output()
        .expect("the binary starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// The nodes that have a replica of the first range, as one of them says.
fn replicas(client: &mut Client) -> String {
    let shown = ranges(client, "SHOW RANGES");
    shown.first().map(|row| row.join(" ")).expect("there is a range")
}

/// Of each range the zones of its replicas, as the views say; and how many replicas each node has.
fn zones(client: &mut Client) -> (Vec<String>, Vec<i64>) {
    let texts = |client: &mut Client, sql: &str| -> Vec<(String, i64)> {
        let rows = client.query(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let sql = "SELECT string_agg(n.locality, ' ' ORDER BY n.locality), r.range_id \
               FROM braid_ranges r JOIN braid_nodes n \
               ON n.node_id::text = ANY (string_to_array(r.replicas, ',')) GROUP BY 2";
    let ranges = texts(client, sql).into_iter().map(|(zones, _)| zones).collect();
    let counts = texts(client, "SELECT locality, replicas FROM braid_nodes ORDER BY node_id");
    (ranges, counts.into_iter().map(|(_, count)| count).collect())
}

/// Waits until it is so, or says how it is.
fn until_zones(client: &mut Client, wanted: impl Fn(&[String], &[i64]) -> bool) {
    let wall = WallClock;
    let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
    loop {
        let (ranges, counts) = zones(client);
        if wanted(&ranges, &counts) {
            return;
        }
        assert!(wall.monotonic_nanos() < until, "{ranges:?} {counts:?}");
        wall.sleep(Duration::from_millis(100));
    }
}

#[test]
fn replicas_are_in_different_zones_as_far_as_there_are_some() {
    let cluster = Cluster::new(4 * PATIENCE, &["--dead-after-seconds", "6"]);
    let zone = |n: usize| ["z=a", "z=a", "z=b", "z=c", "z=c"][n];
    let start = |n: usize| cluster.run_with(n, &["--locality", zone(n)]);
    std::thread::scope(|scope| (0..3).for_each(|n| drop(scope.spawn(move || start(n)))));
    let mut client = cluster.client(2);
    create_tables(&mut client);
    run(&mut client, "ALTER TABLE account SPLIT AT VALUES (3), (5), (7), (9)");
    until_zones(&mut client, |ranges, _| ranges.iter().all(|zones| zones == "z=a z=a z=b"));
    let status = braid_node(&cluster.members[0], &["status"]).expect("it answers");
    assert!(status.lines().any(|l| l.starts_with("3 ") && l.ends_with(", z=b")), "{status}");
    // There is a third zone: one of two of zone a goes, of each range.
    start(3);
    until_zones(&mut client, |ranges, counts| {
        let all = ranges.iter().all(|zones| zones == "z=a z=b z=c");
        all && counts[0] + counts[1] == counts[2] && counts[2] == counts[3]
    });
    // Another one in the same zone shares with the one that is there, and with nobody else.
    start(4);
    until_zones(&mut client, |ranges, counts| {
        let all = ranges.iter().all(|zones| zones == "z=a z=b z=c");
        all && counts[3] + counts[4] == counts[2] && counts[4] + 1 >= counts[3]
    });
    // It is started again without being told, and knows it. A zone that is lost is lost: whoever is
    // there has three replicas of each range.
    cluster.kill(4);
    cluster.run(4);
    cluster.kill(2);
    drop(client);
    let mut client = cluster.client(4);
    until_zones(&mut client, |ranges, counts| {
        let two = ["z=a z=a z=c", "z=a z=c z=c"];
        ranges.iter().all(|zones| two.contains(&zones.as_str())) && counts[2] == 0
    });
    let odd = Command::new(env!("CARGO_BIN_EXE_braid"))
        .args(["start", "--data", "/nowhere", "--locality", "somewhere"])
        .output()
        .expect("the binary starts");
    let said = String::from_utf8_lossy(&odd.stderr).into_owned();
    assert!(!odd.status.success() && said.contains("no tier of a locality"), "{said}");
}

/// What `/healthz?ready` of a node answers.
fn ready(cluster: &Cluster, n: usize) -> String {
    let mut stream = TcpStream::connect(&cluster.http[n]).expect("it listens");
    let request = b"GET /healthz?ready=1 HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    stream.write_all(request).expect("it is sent");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("it answers");
    page
}

#[test]
fn who_waits_for_a_cluster_is_told_when_it_serves_and_where_clients_should_not_go() {
    let cluster = Cluster::new(2 * PATIENCE, &[]);
    let refused = Command::new(env!("CARGO_BIN_EXE_braid"))
        .args(["init", "--peer", &cluster.members[0], "--wait-seconds", "1"])
        .output()
        .expect("the binary starts");
    assert!(!refused.status.success(), "nobody is there");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            Command::new(env!("CARGO_BIN_EXE_braid"))
                .args(["init", "--peer", &cluster.members[0]])
                .output()
                .expect("the binary starts")
        });
        (0..3).for_each(|n| {
            drop(scope.spawn({
                let c = &cluster;
                move || c.run(n)
            }))
        });
        let said = waits.join().expect("no panic");
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success(), "{said:?}");
        assert_eq!(text.lines().filter(|line| line.contains(" member,")).count(), 3, "{text}");
    });
    assert!(ready(&cluster, 0).starts_with("HTTP/1.1 200"));
    braid_node(&cluster.members[0], &["drain"]).expect("it does so");
    assert!(ready(&cluster, 0).starts_with("HTTP/1.1 503"), "it gives its leases away");
    braid_node(&cluster.members[0], &["undrain"]).expect("it does so");
    assert!(ready(&cluster, 0).starts_with("HTTP/1.1 200"));
    cluster.kill(1);
    cluster.kill(2);
    let wall = WallClock;
    let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
    while ready(&cluster, 0).starts_with("HTTP/1.1 200") {
        assert!(wall.monotonic_nanos() < until, "it has no majority");
        wall.sleep(Duration::from_millis(50));
    }
    assert!(ready(&cluster, 0).contains("majority"));
}

#[test]
fn lost_nodes_are_replaced_and_one_leaves_while_clients_write() {
    let cluster = Cluster::start(4 * PATIENCE, &[]);
    let mut client = cluster.client(0);
    create_tables(&mut client);
    run(&mut client, "ALTER TABLE account SPLIT AT VALUES (4), (8)");
    let peer = |n: usize| cluster.members[n].clone();
    let seen = Seen::default();
    std::thread::scope(|scope| {
        let (cluster, seen) = (&cluster, &seen);
        let _stops = StopsWriters(&seen.stop);
        (0..3).for_each(|n| drop(scope.spawn(move || transfers(cluster, n, seen))));
        seen.wait_for(20);
        let refused = braid_node(&peer(0), &["decommission", "3"]).expect_err("three are needed");
        assert!(refused.contains("start a node that joins first"), "{refused}");
        // The third one's disk is lost.
        cluster.kill(2);
        std::fs::remove_dir_all(cluster.data(2)).expect("it is there");
        seen.wait_for(10);
        cluster.run(3);
        // It dies while it gets what there is, and comes back.
        cluster.kill(3);
        cluster.run(3);
        let gap = longest_gap(seen, || {
            let said = braid_node(&peer(0), &["decommission", "3"]).expect("it is carried out");
            assert!(said.contains("not let in again"), "{said}");
        });
        println!("n3 replaced by n4: at most {gap:?} without a commit");
        // The new one counts: without the second there is a majority with it.
        cluster.kill(1);
        seen.wait_for(10);
        cluster.run(1);
        // The first one leaves for a fifth. All of them are asked to let go while they write.
        cluster.run(4);
        let gap = longest_gap(seen, || {
            let said = braid_node(&peer(1), &["decommission", "1"]).expect("it is carried out");
            assert!(said.contains("not let in again"), "{said}");
        });
        println!("n1 left for n5: at most {gap:?} without a commit");
        cluster.kill(0);
        seen.wait_for(10);
    });
    let status = braid_node(&peer(1), &["status"]).expect("it answers");
    for line in ["1 ", "3 "] {
        let line = status.lines().find(|known| known.starts_with(line)).expect("it is listed");
        assert!(line.ends_with(" gone"), "{status}");
    }
    assert!(status.starts_with("replicas of each range: 3"), "{status}");
    let shown = replicas(&mut cluster.client(4));
    assert!(shown.contains("2,4,5") || shown.contains("{2,4,5}"), "{shown}");
    let acknowledged = seen.acknowledged.lock().clone();
    println!("{} transfers", acknowledged.len());
    [1, 3, 4].into_iter().for_each(|n| check(&mut cluster.client(n), &acknowledged));
}

/// Waits until a query's only row is this one, its values as text.
pub fn until_shown(client: &mut Client, sql: &str, expected: &str) {
    let wall = WallClock;
    let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
    loop {
        let rows = ranges(client, sql);
        let shown: Vec<String> = rows.iter().map(|row| row.join(" ")).collect();
        if shown == [expected] {
            return;
        }
        assert!(wall.monotonic_nanos() < until, "{sql}: {shown:?}, not {expected}");
        wall.sleep(Duration::from_millis(200));
    }
}

/// A node whose process stands still takes what it is sent, and does not answer. After a few seconds
/// nobody asks it any more: lookups that go through all nodes do not wait for it.
#[test]
fn a_node_that_stands_still_is_soon_not_waited_for() {
    const MOST: Duration = Duration::from_millis(1_500);
    let cluster = Cluster::start(2 * PATIENCE, &[]);
    let mut client = cluster.client(0);
    create_tables(&mut client);
    run(&mut client, "ALTER TABLE account SPLIT AT VALUES (4), (8)");
    until_shown(&mut client, "SELECT DISTINCT replicas FROM braid_ranges", "1,2,3");
    let wall = WallClock;
    let pid = cluster.nodes[2].lock().as_ref().expect("it runs").pid().to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill is there").success());
    };
    signal("-STOP");
    // Its leases end, and so does its connection.
    wall.sleep(Duration::from_secs(8));
    run(&mut client, "UPDATE account SET balance = balance");
    let timed = |what: &str, work: &mut dyn FnMut()| {
        let from = wall.monotonic_nanos();
        work();
        let took = Duration::from_nanos(wall.monotonic_nanos() - from);
        println!("{what}: {took:?}");
        took
    };
    let status = timed("braid node status", &mut || {
        let said = braid_node(&cluster.members[0], &["status"]).expect("it answers");
        assert!(said.contains("not connected, "), "{said}");
        assert!(!said.contains("not known"), "{said}");
    });
    let shown = timed("SHOW RANGES", &mut || drop(ranges(&mut client, "SHOW RANGES")));
    let nodes = timed("braid_nodes", &mut || {
        until_shown(
            &mut client,
            "SELECT state FROM braid_nodes WHERE node_id = 3",
            "not connected",
        );
    });
    let write = timed("UPDATE", &mut || run(&mut client, "UPDATE account SET balance = balance"));
    signal("-CONT");
    for (what, took) in [("status", status), ("ranges", shown), ("nodes", nodes), ("w", write)] {
        assert!(took < MOST, "{what}: {took:?}");
    }
    until_shown(&mut client, "SELECT state FROM braid_nodes WHERE node_id = 3", "member");
    check(&mut cluster.client(2), &BTreeSet::new());
}

/// Nobody asks for it: whoever is silent for long is replaced as soon as another node is there.
#[test]
fn a_dead_node_is_replaced_by_itself_and_gets_its_share_anew_when_it_comes_back() {
    const SHOWN: &str = "SELECT DISTINCT replicas, moves FROM braid_ranges";
    let nodes = |node: u64| {
        format!(
            "SELECT state, (replicas > 0)::text, (leases > 0)::text FROM braid_nodes \
             WHERE node_id = {node}"
        )
    };
    let cluster = Cluster::start(4 * PATIENCE, &["--dead-after-seconds", "5"]);
    let mut client = cluster.client(0);
    create_tables(&mut client);
    run(&mut client, "ALTER TABLE account SPLIT AT VALUES (4), (8)");
    until_shown(&mut client, SHOWN, "1,2,3 ");
    let count = "SELECT count(*)::text FROM braid_nodes";
    until_shown(&mut client, count, "3");
    until_shown(&mut client, &nodes(3), "member true true");
    cluster.kill(2);
    until_shown(&mut client, SHOWN, "1,2,3 node 3 is dead, there is no other node");
    until_shown(&mut client, &nodes(3), "not connected true false");
    cluster.run(3);
    until_shown(&mut client, SHOWN, "1,2,4 ");
    until_shown(&mut client, &nodes(3), "not connected false false");
    until_shown(&mut client, &nodes(4), "member true true");
    let of_show = ranges(&mut client, "SHOW RANGES");
    assert!(of_show.iter().all(|range| range[3] == "1,2,4" && range[6].is_empty()), "{of_show:?}");
    // With the new one there is a majority; and the old one is of use again.
    cluster.kill(1);
    run(&mut cluster.client(0), "UPDATE account SET balance = balance");
    cluster.run(1);
    cluster.run(2);
    let back = "SELECT state FROM braid_nodes WHERE node_id = 3 AND replicas > 0";
    until_shown(&mut cluster.client(0), back, "member");
    until_shown(&mut cluster.client(3), count, "4");
}
