//! kill -9 during a write load: every acknowledged transaction is there, no half of any.
//!
//! Readers remember the entries that they saw: what was shown must be there as well.
//!
//! Each round starts the real binary on a real directory, lets several clients move money between
//! accounts, kills the process without warning, starts it again and looks. The store is kept from
//! round to round, so that damage would pile up.
//!
//! `BRAID_KILLS=200 cargo test --workspace --test kill -- --nocapture` runs the long form;
//! the default is a few rounds. `BRAID_SEED` chooses the moments.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use braid_env::random::Random;
use braid_workload::bank;
use support::Node;

const ACCOUNTS: i64 = 50;
const CLIENTS: u64 = 3;
const READERS: u64 = 2;

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Reads the ledger, whole or of one account, until the node is gone or `stop` is raised; returns
/// the entries that it was shown.
fn watch(client: &mut postgres::Client, random: &mut Random, stop: &AtomicBool) -> Vec<i64> {
    let mut seen = std::collections::BTreeSet::new();
    while !stop.load(Ordering::Relaxed) {
        let text = match random.below(4) {
            0 => "SELECT entry FROM ledger".to_string(),
            1 => "SELECT max(entry) FROM ledger HAVING count(*) > 0".to_string(),
            _ => format!("SELECT entry FROM ledger WHERE id = {}", random.below(ACCOUNTS as u64)),
        };
        match client.query(&text, &[]) {
            Ok(rows) => seen.extend(rows.iter().map(|row| row.get::<_, i64>(0))),
            Err(_) => break,
        }
    }
    seen.into_iter().collect()
}

/// Lets clients move money until `stop` is raised; returns the entries that were acknowledged or
/// shown to others.
fn move_money(
    node: &Node,
    random: &mut Random,
    next_entry: &Arc<AtomicI64>,
    end: impl FnOnce(),
) -> Vec<i64> {
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (mut client, mut random) = (node.client(), Random::seeded(random.next_u64()));
            let (next_entry, stop) = (Arc::clone(next_entry), Arc::clone(&stop));
            std::thread::Builder::new()
                .spawn(move || {
                    let mut done = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let entry = next_entry.fetch_add(1, Ordering::Relaxed);
                        match bank::transfer(&mut client, &mut random, ACCOUNTS, entry) {
                            Ok(acknowledged) => done.extend(acknowledged),
                            // The node is dead; whether this one is there is open.
                            Err(_) => break,
                        }
                    }
                    done
                })
                .expect("a thread can be started")
        })
        .collect();
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (mut client, mut random) = (node.client(), Random::seeded(random.next_u64()));
            let stop = Arc::clone(&stop);
            std::thread::Builder::new()
                .spawn(move || watch(&mut client, &mut random, &stop))
                .expect("a thread can be started")
        })
        .collect();
    end();
    stop.store(true, Ordering::Relaxed);
    let all = writers.into_iter().chain(readers);
    all.flat_map(|client| client.join().expect("a client does not panic")).collect()
}

/// The same without kills: what is wrong here has nothing to do with crashes.
#[test]
fn concurrent_transfers_keep_the_books() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let node = Node::start(&directory.path().join("store"));
    bank::create(&mut node.client(), ACCOUNTS).expect("the tables are created");
    let next_entry = Arc::new(AtomicI64::new(1));
    let mut random = Random::seeded(env("BRAID_SEED", 1));
    let mut acknowledged: Vec<i64> = Vec::new();
    for round in 0..env("BRAID_ROUNDS", 5) {
        acknowledged.extend(move_money(&node, &mut random, &next_entry, || {
            std::thread::sleep(Duration::from_millis(300));
        }));
        bank::check(&mut node.client(), ACCOUNTS, &acknowledged)
            .expect("the check runs")
            .unwrap_or_else(|e| panic!("round {round}: {e}"));
    }
    println!("{} transactions, the books are right", acknowledged.len());
    assert!(!acknowledged.is_empty(), "the load must have committed something");
}

#[test]
fn acknowledged_transactions_survive_kill_9() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("store");
    let kills = env("BRAID_KILLS", 4);
    let seed = env("BRAID_SEED", 1);
    println!("{kills} kills, seed {seed}");
    let mut random = Random::seeded(seed);
    bank::create(&mut Node::start(&data).client(), ACCOUNTS).expect("the tables are created");

    let next_entry = Arc::new(AtomicI64::new(1));
    let mut acknowledged: Vec<i64> = Vec::new();
    for round in 0..kills {
        let node = Node::start(&data);
        let verdict = bank::check(&mut node.client(), ACCOUNTS, &acknowledged);
        verdict.expect("the check runs").unwrap_or_else(|e| panic!("round {round}: {e}"));
        let before = acknowledged.len();
        let pause = Duration::from_millis(random.between(30, 400));
        acknowledged.extend(move_money(&node, &mut random, &next_entry, || {
            std::thread::sleep(pause);
            node.kill();
        }));
        println!("round {round}: {} acknowledged", acknowledged.len() - before);
    }
    let node = Node::start(&data);
    bank::check(&mut node.client(), ACCOUNTS, &acknowledged)
        .expect("the check runs")
        .unwrap_or_else(|e| panic!("at the end: {e}"));
    println!("{} transactions acknowledged over {kills} kills, none lost", acknowledged.len());
    assert!(!acknowledged.is_empty(), "the load must have committed something");
}

/// An end in order gives back what a node has reserved of its sequences; after kill -9 numbers may
/// be left out, and none comes twice.
#[test]
fn sequences_go_on_after_an_end_in_order_and_repeat_nothing_after_kill_9() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("store");
    let next = |node: &Node, n: usize| -> Vec<i64> {
        let mut client = node.client();
        let mut one = || client.query_one("SELECT nextval('ticket')", &[]).expect("a number");
        (0..n).map(|_| one().get(0)).collect()
    };
    let node = Node::start(&data);
    node.client().batch_execute("CREATE SEQUENCE ticket START 100").expect("it is made");
    assert_eq!(next(&node, 1), [100]);
    node.terminate();
    let node = Node::start(&data);
    assert_eq!(next(&node, 2), [101, 102]);
    node.terminate();
    let mut last = 102;
    for _ in 0..3 {
        let node = Node::start(&data);
        let numbers = next(&node, 3);
        assert!(
            numbers[0] > last && numbers.is_sorted_by(|a, b| a < b),
            "{numbers:?} after {last}"
        );
        last = numbers[2];
        node.kill();
    }
    let node = Node::start(&data);
    let from = next(&node, 1)[0];
    assert!(from > last);
    // With a client that is still there, and one in the middle of a block.
    let mut idle = node.client();
    idle.batch_execute("BEGIN; SELECT nextval('ticket')").expect("a number");
    node.terminate();
    assert_eq!(next(&Node::start(&data), 1), [from + 2]);
}
