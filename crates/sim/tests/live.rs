//! Transactions over several ranges that nobody told them of: what is read, locked and validated at
//! their borders.

use std::collections::BTreeMap;
use std::sync::Arc;

use braid_env::random::Random;
use braid_kv::{
    Conflict, Coordinator, Isolation, KeySpan, KvError, LockMode, ScanOptions, Txn, TxnOptions,
    Wait,
};
use braid_sim::{LiveCluster, LiveOptions};
use bytes::Bytes;

fn key(n: u64) -> Bytes {
    format!("k{n:03}").into()
}

/// Three ranges: keys below 100, below 200, and others.
fn cluster() -> (Arc<LiveCluster>, Arc<Coordinator>) {
    let borders = vec![key(100), key(200)];
    let cluster = LiveCluster::start(LiveOptions { borders, ..LiveOptions::default() });
    let coordinator = cluster.coordinator();
    (cluster, coordinator)
}

fn begin(at: &Arc<Coordinator>, isolation: Isolation, batch: usize) -> Arc<Txn> {
    at.begin(TxnOptions { isolation, batch, ..TxnOptions::default() }).expect("begins")
}

fn set(at: &Arc<Coordinator>, n: u64, value: &str) {
    let txn = begin(at, Isolation::Serializable, 1024);
    txn.put(key(n), value.to_string()).expect("puts");
    txn.commit().expect("commits");
}

fn scan(txn: &Arc<Txn>, span: KeySpan, options: ScanOptions) -> Vec<(Bytes, Bytes)> {
    let mut scan = txn.scan(span, options).expect("opens");
    let mut out = Vec::new();
    while let Some(row) = scan.next().expect("scans") {
        out.push(row);
    }
    out
}

#[test]
fn what_is_read_does_not_depend_on_borders() {
    for seed in 0..6 {
        let (cluster, at) = cluster();
        let mut random = Random::seeded(seed);
        let mut model: BTreeMap<Bytes, Bytes> = BTreeMap::new();
        for round in 0..60 {
            let n = random.below(300);
            let txn = begin(&at, Isolation::Serializable, 1 + random.below(9) as usize);
            match random.below(4) {
                0 => {
                    // Inside of one range, also later.
                    let border = [50, 100, 150, 151, 200, 300].into_iter().find(|at| *at > n);
                    let end = key((n + 1 + random.below(30)).min(border.unwrap_or(300)));
                    txn.delete_span(&KeySpan::new(key(n), end.clone())).expect("deletes");
                    model.retain(|k, _| *k < key(n) || *k >= end);
                }
                _ => {
                    txn.put(key(n), format!("v{round}")).expect("puts");
                    model.insert(key(n), format!("v{round}").into());
                }
            }
            txn.commit().expect("commits");
            if round == 30 {
                // The router learns of these from whoever it asks.
                [50, 150, 151].into_iter().for_each(|n| cluster.split(&key(n)));
            }
            let txn = begin(&at, Isolation::RepeatableRead, 1 + random.below(9) as usize);
            let (a, b) = (random.below(300), random.below(300));
            let span = KeySpan::new(key(a.min(b)), key(a.max(b) + 1));
            let inside = model.range(span.start.clone()..span.end.clone());
            let mut expected: Vec<(Bytes, Bytes)> =
                inside.map(|(k, v)| (k.clone(), v.clone())).collect();
            let reverse = random.below(2) == 0;
            if reverse {
                expected.reverse();
            }
            let limit = (random.below(2) == 0).then(|| 1 + random.below(20) as usize);
            expected.truncate(limit.unwrap_or(usize::MAX));
            let options = ScanOptions { reverse, limit, ..ScanOptions::default() };
            assert_eq!(scan(&txn, span, options), expected, "seed {seed}, round {round}");
            let keys: Vec<Bytes> = (0..20).map(|_| key(random.below(300))).collect();
            let got = txn.get_many(&keys, braid_kv::ReadMode::Recorded).expect("gets");
            let expected: Vec<Option<Bytes>> = keys.iter().map(|k| model.get(k).cloned()).collect();
            assert_eq!(got, expected, "seed {seed}, round {round}");
        }
        assert_eq!(cluster.describe().matches("leads").count(), 6, "{}", cluster.describe());
    }
}

#[test]
fn write_skew_over_a_border_is_caught_only_by_serializable() {
    for (isolation, conflicts) in
        [(Isolation::Serializable, true), (Isolation::RepeatableRead, false)]
    {
        let (_cluster, at) = cluster();
        set(&at, 1, "1");
        set(&at, 201, "1");
        let (a, b) = (begin(&at, isolation, 1024), begin(&at, isolation, 1024));
        assert!(a.get(&key(201)).expect("gets").is_some());
        // A span that goes over all borders, and the rows of it that are not there.
        assert_eq!(scan(&b, KeySpan::new(key(0), key(200)), ScanOptions::default()).len(), 1);
        a.put(key(1), "0").expect("puts");
        b.put(key(201), "0").expect("puts");
        a.commit().expect("commits");
        let second = b.commit();
        let caught = matches!(&second, Err(KvError::Retry { conflict: Conflict::ReadSpan(_) }));
        assert_eq!(caught, conflicts, "{isolation:?}: {second:?}");
        assert!(caught || second.is_ok(), "{second:?}");
    }
}

#[test]
fn a_locked_span_is_locked_in_all_of_its_ranges() {
    let (cluster, at) = cluster();
    let holder = begin(&at, Isolation::ReadCommitted, 1024);
    let span = KeySpan::new(key(90), key(210));
    holder.lock_span(&span, LockMode::Exclusive, Wait::Block).expect("locks");
    let free = |n| {
        let txn = begin(&at, Isolation::ReadCommitted, 1024);
        let locked = txn.lock(&key(n), LockMode::KeyShare, Wait::NoWait);
        assert!(matches!(locked, Ok(_) | Err(KvError::LockNotAvailable)), "{locked:?}");
        locked.is_ok()
    };
    let expected = [(89, true), (90, false), (150, false), (209, false), (210, true)];
    expected.into_iter().for_each(|(n, is_free)| assert_eq!(free(n), is_free, "{n}"));
    // What it writes goes into one of them; in the others its locks are looked after.
    cluster.split(&key(120));
    expected.into_iter().for_each(|(n, is_free)| assert_eq!(free(n), is_free, "{n}"));
    holder.put(key(150), "mine").expect("puts");
    holder.commit().expect("commits");
    expected.into_iter().for_each(|(n, _)| assert!(free(n), "{n}"));
    let all = begin(&at, Isolation::Serializable, 1024);
    assert_eq!(all.get(&key(150)).expect("gets").as_deref(), Some(b"mine".as_slice()));
    assert_eq!(at.describe_locks().lines, "");
}

#[test]
fn writes_into_several_ranges_are_refused_and_nothing_happens() {
    let (cluster, at) = cluster();
    let txn = begin(&at, Isolation::Serializable, 1024);
    txn.put(key(1), "a").expect("puts");
    txn.put(key(101), "b").expect("puts");
    let refused = txn.commit();
    let said = refused.expect_err("two ranges").to_string();
    assert!(said.contains("several ranges"), "{said}");
    let erases = begin(&at, Isolation::Serializable, 1024);
    erases.delete_span(&KeySpan::new(key(90), key(110))).expect("deletes");
    assert!(erases.commit().is_err());
    // Its keys were in one range when it began, and are in two when it commits.
    let txn = begin(&at, Isolation::Serializable, 1024);
    txn.put(key(10), "a").expect("puts");
    txn.put(key(20), "b").expect("puts");
    cluster.split(&key(15));
    assert!(txn.commit().expect_err("two ranges").to_string().contains("several ranges"));
    let all = begin(&at, Isolation::Serializable, 1024);
    let rows = scan(&all, KeySpan::new(key(0), key(300)), ScanOptions::default());
    assert_eq!((rows.len(), at.describe_locks().lines.as_str()), (0, ""));
}
