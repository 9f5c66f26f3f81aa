//! Families that are erased one after the other, through all nodes: what each costs, and what stays.
//!
//! `BRAID_FAMILIES=1000 BRAID_FAMILY_ROWS=10000 cargo test --workspace --test three_nodes erased --
//! --nocapture` runs the long form.

use super::*;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Each tenth family stays.
fn stays(family: u64) -> bool {
    family.is_multiple_of(10)
}

/// A number of the statement's statistics in an EXPLAIN ANALYZE as JSON.
fn statistic(explained: &str, name: &str) -> u64 {
    let (_, rest) = explained.split_once(&format!("\"{name}\":")).expect(name);
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{name}: {explained}"))
}

/// Erases a family by one statement: how many ranges had to agree, and how many spans are deleted.
fn erase(client: &mut Client, family: u64) -> (u64, u64) {
    let sql = format!("EXPLAIN (ANALYZE, FORMAT JSON) DELETE FROM parent WHERE id = {family}");
    for _ in 0..200 {
        match client.simple_query(&sql) {
            Ok(messages) => {
                let text = messages.iter().find_map(|message| match message {
                    postgres::SimpleQueryMessage::Row(row) => row.get(0),
                    _ => None,
                });
                let text = text.expect("a plan");
                // What is sent to another node, and what comes back, has bytes; nothing is sent to
                // one that was killed and is still thought to lead the range.
                let calls = statistic(text, "remote_server_calls");
                let bytes = statistic(text, "network_bytes");
                assert!(bytes > calls || (bytes == 0 && calls <= 1), "{text}");
                assert!(statistic(text, "ranges_touched") > 0, "{text}");
                return (statistic(text, "participants"), statistic(text, "span_deletes"));
            }
            Err(error) => {
                assert!(matches!(ended(Err(error), client), Ended::Not), "family {family}");
            }
        }
    }
    panic!("{sql}: never done");
}

fn load(cluster: &Cluster, families: u64, of_each: u64) {
    std::thread::scope(|scope| {
        for n in 0..3 {
            scope.spawn(move || {
                let mut client = cluster.client(n as usize);
                for family in (n..families).step_by(3) {
                    // Not to be compressed away; again, if nobody knows what became of it.
                    let sql = format!(
                        "INSERT INTO parent VALUES ({family}, 'all of it') ON CONFLICT DO NOTHING;
                         INSERT INTO child SELECT {family}, g, md5(g::text || '{family}')
                             FROM generate_series(1, {of_each}) g ON CONFLICT DO NOTHING"
                    );
                    while !matches!(ended(client.batch_execute(&sql), &mut client), Ended::Done) {
                        if client.is_closed() {
                            client = cluster.client(n as usize);
                        }
                    }
                }
            });
        }
    });
}

/// What must be there, as each of these nodes tells it: families that stay, whole.
fn only_some_are_left(clients: &mut [Client], families: u64, of_each: u64) {
    let kept = (0..families).filter(|family| stays(*family));
    let (count, sum) = kept.fold((0, 0), |(count, sum), family| (count + 1, sum + family));
    let (count, sum, rows_of) = (count as i64, sum as i64, of_each as i64);
    for client in clients {
        let parents = "SELECT count(*), sum(id)::bigint FROM parent";
        assert_eq!(rows(client, parents), [[count, sum]]);
        let children = "SELECT count(*), coalesce(sum(id), 0)::bigint FROM child";
        assert_eq!(rows(client, children), [[count * rows_of, sum * rows_of]]);
    }
}

/// Seconds since then.
fn since(begun: u64) -> f64 {
    (WallClock.monotonic_nanos() - begun) as f64 / 1e9
}

#[test]
fn erased_families_are_one_tombstone_and_one_participant_each_and_their_room_comes_back() {
    let (families, of_each) = (number("BRAID_FAMILIES", 30), number("BRAID_FAMILY_ROWS", 300));
    const ARGUMENTS: [&str; 4] = ["--gc-window-seconds", "5", "--max-memory", "96"];
    let limit = 4 * PATIENCE + Duration::from_millis(families * of_each);
    let cluster = Cluster::start(limit, &ARGUMENTS);
    let mut client = cluster.client(0);
    create_families(&mut client);
    let (third, half) = (families / 3, families / 2);
    run(
        &mut client,
        &format!("ALTER TABLE parent SPLIT AT VALUES ({third}), ({}), ({})", 2 * third, families),
    );
    let begun = WallClock.monotonic_nanos();
    load(&cluster, families, of_each);
    println!("{families} families of {of_each} rows loaded in {:.1} s", since(begun));
    let mut clients: Vec<Client> = (0..3).map(|n| cluster.client(n)).collect();

    // All nodes are there.
    let written = |n: usize| cluster.metric(n, "braid_lsm_range_tombstones_total");
    let before: Vec<u64> = (0..3).map(written).collect();
    let begun = WallClock.monotonic_nanos();
    let gone = |from: u64, to: u64| (from..to).filter(|family| !stays(*family));
    for family in gone(0, half) {
        let costs = erase(&mut clients[family as usize % 3], family);
        assert_eq!(costs, (1, 1), "family {family}: participants, tombstones");
    }
    let count = gone(0, half).count() as u64;
    println!("{count} families erased in {:.2} s", since(begun));
    let until = WallClock.monotonic_nanos() + PATIENCE.as_nanos() as u64;
    loop {
        // A follower applies it a moment later.
        let new: Vec<u64> = (0..3).map(|n| written(n) - before[n]).collect();
        if new == [count; 3] {
            break;
        }
        let over = new.iter().any(|new| *new > count);
        assert!(!over && WallClock.monotonic_nanos() < until, "{new:?}, not {count} on each");
        WallClock.sleep(Duration::from_millis(50));
    }

    // One is away, and hears of the others when it is back.
    cluster.kill(2);
    for family in gone(half, families) {
        let costs = erase(&mut clients[family as usize % 2], family);
        assert_eq!(costs, (1, 1), "family {family}: participants, tombstones");
    }
    cluster.run(2);
    clients[2] = cluster.client(2);
    only_some_are_left(&mut clients, families, of_each);

    let kept = (0..families).filter(|family| stays(*family)).count() as u64;
    // A row of md5 and its keys takes less than 100 bytes in files, also twice.
    let most = (kept * of_each * 100).max(64 << 10);
    let begun = WallClock.monotonic_nanos();
    room_comes_back(&mut clients, most);
    println!("less than {most} bytes are left on each node after {:.1} s", since(begun));

    // Each has what the others have: whoever is away, two of them serve it.
    for away in 0..3 {
        let node = cluster.nodes[away].lock().take();
        node.expect("it runs").terminate();
        let mut others: Vec<Client> =
            (0..3).filter(|n| *n != away).map(|n| cluster.client(n)).collect();
        only_some_are_left(&mut others, families, of_each);
        cluster.run(away);
    }
}
