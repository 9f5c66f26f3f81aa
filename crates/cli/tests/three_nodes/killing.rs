//! Two of five nodes are killed at the same time, again and again, while whole families are written,
//! grow and are erased through all of them: none is ever there in part.
//!
//! `BRAID_KILLS=50 cargo test --workspace --test three_nodes two_of_five -- --nocapture` runs the long
//! form: so many times two.

use super::*;

/// Rows that nobody else writes, one in each range: whether the range is served.
const PROBES: [i64; 4] = [1, 501, 1_001, 1_501];
/// Children that a family begins with.
const CHILDREN: i64 = 3;

/// What a writer knows of the families that it alone writes: how many children each may have, and
/// `None` for no family.
#[derive(Default)]
struct Known(std::collections::BTreeMap<i64, BTreeSet<Option<i64>>>);

impl Known {
    /// A transaction that makes it so has ended like this.
    fn note(&mut self, family: i64, becomes: Option<i64>, end: &Ended) {
        let may = self.0.entry(family).or_insert_with(|| BTreeSet::from([None]));
        match end {
            Ended::Done => *may = BTreeSet::from([becomes]),
            Ended::Not => {}
            Ended::Unknown => drop(may.insert(becomes)),
        }
    }
}

/// Writes its families until the test ends.
fn write_families(cluster: &Cluster, n: usize, seen: &Seen) -> Known {
    let (mut random, mut known) = (Random::seeded(100 + n as u64), Known::default());
    let mut client = cluster.client(n);
    while !seen.stop.load(Ordering::SeqCst) {
        // Far from each other: they lie in several ranges.
        let family = 2 * (random.below(200) * NODES as u64 + n as u64) as i64;
        let before = known.0.get(&family).cloned().unwrap_or_else(|| BTreeSet::from([None]));
        let [before] = Vec::from_iter(before)[..] else {
            // Nobody knows what it is like, and what was asked for last may be on its way.
            continue;
        };
        let (sql, becomes) = match before {
            None => (
                format!(
                    "BEGIN;
                     INSERT INTO parent VALUES ({family}, 'whole');
                     INSERT INTO child SELECT {family}, g, 'first' FROM generate_series(1, {CHILDREN}) g;
                     COMMIT"
                ),
                Some(CHILDREN),
            ),
            Some(children) if random.chance(2, 3) => (
                format!("INSERT INTO child VALUES ({family}, {children} + 1, 'more')"),
                Some(children + 1),
            ),
            Some(_) => (format!("DELETE FROM parent WHERE id = {family}"), None),
        };
        let result = client.batch_execute(&sql);
        let end = ended(result, &mut client);
        known.note(family, becomes, &end);
        match end {
            Ended::Done => drop(seen.count.fetch_add(1, Ordering::SeqCst)),
            Ended::Unknown if client.is_closed() => client = cluster.client(n),
            Ended::Not | Ended::Unknown => {}
        }
    }
    known
}

/// Each family is there as its writer knows, whole or not at all.
fn families_are_whole(client: &mut Client, known: &[Known]) {
    let parents = rows(client, "SELECT id FROM parent");
    let parents: BTreeSet<i64> = parents.into_iter().map(|row| row[0]).collect();
    let children = rows(client, "SELECT id, count(*), max(n) FROM child GROUP BY id");
    let children: std::collections::BTreeMap<i64, (i64, i64)> =
        children.into_iter().map(|row| (row[0], (row[1], row[2]))).collect();
    assert!(children.keys().all(|id| parents.contains(id)), "children without a parent");
    for (family, may) in known.iter().flat_map(|known| &known.0) {
        let is_there = parents.contains(family);
        let (count, last) = children.get(family).copied().unwrap_or_default();
        assert_eq!(count, last, "family {family} has lost a child in the middle");
        let has = is_there.then_some(count);
        assert!(may.contains(&has), "family {family}: {has:?}, not one of {may:?}");
    }
}

#[test]
fn two_of_five_nodes_are_killed_and_every_family_is_whole() {
    let kills = std::env::var("BRAID_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let limit = 3 * PATIENCE + kills as u32 * Duration::from_secs(60);
    let cluster = Cluster::found(NODES, limit, &[]);
    let mut client = cluster.client(0);
    create_families(&mut client);
    run(&mut client, "ALTER TABLE parent SPLIT AT VALUES (500), (1000), (1500)");
    for id in PROBES {
        run(&mut client, &format!("INSERT INTO parent VALUES ({id}, 'new')"));
    }
    // Three of each at first: two nodes at once would be too many.
    members::braid_node(&cluster.members[1], &["replicas", "5"]).expect("there are five nodes");
    let wall = WallClock;
    let begun = wall.monotonic_nanos();
    loop {
        let shown = ranges(&mut client, "SHOW RANGES");
        // In the order in which they have come.
        let on_all = |range: &Vec<String>| {
            let nodes: BTreeSet<&str> = range[3].split(',').collect();
            nodes.len() == NODES
        };
        if shown.iter().all(on_all) {
            break;
        }
        let waited = Duration::from_nanos(wall.monotonic_nanos() - begun);
        assert!(waited < PATIENCE, "{shown:?}");
        wall.sleep(Duration::from_millis(200));
    }
    let (seen, mut gaps) = (Seen::default(), Vec::new());
    let mut random = Random::seeded(5);
    let known: Vec<Known> = std::thread::scope(|scope| {
        let (cluster, seen) = (&cluster, &seen);
        let write = |n: usize| scope.spawn(move || write_families(cluster, n, seen));
        let writers: Vec<_> = (0..NODES).map(write).collect();
        let stops = StopsWriters(&seen.stop);
        for kill in 0..kills {
            seen.wait_for(40);
            let one = random.below(NODES as u64) as usize;
            let two = (one + 1 + random.below(NODES as u64 - 1) as usize) % NODES;
            let killed_at = wall.monotonic_nanos();
            [one, two].into_iter().for_each(|n| cluster.kill(n));
            // All ranges are served again, whoever led them.
            let mut client = cluster.client(one);
            for id in PROBES {
                run(&mut client, &format!("UPDATE parent SET note = 'seen' WHERE id = {id}"));
            }
            let served = Duration::from_nanos(wall.monotonic_nanos() - killed_at);
            println!(
                "kill {}: nodes {} and {}, all served after {served:?}",
                kill + 1,
                one + 1,
                two + 1
            );
            gaps.push(served);
            seen.wait_for(20);
            [one, two].into_iter().for_each(|n| cluster.run(n));
        }
        drop(stops);
        writers.into_iter().map(|writer| writer.join().expect("it writes")).collect()
    });
    gaps.sort();
    println!(
        "all ranges served after {:?}, the median, {:?} at most",
        gaps[gaps.len() / 2],
        gaps.last()
    );
    let families: usize = known.iter().map(|known| known.0.len()).sum();
    println!("{} transactions, {families} families", seen.count.load(Ordering::SeqCst));
    assert!(families > 20);
    (0..NODES).for_each(|n| families_are_whole(&mut cluster.client(n), &known));
}
