//! A node that was alone becomes the first of a cluster, whatever crashes meanwhile; and who cannot
//! become it is told so.

use braid_env::fs::{CrashPolicy, FileSystem, read_all as read_whole};
use braid_kv::{KvResult, ShownRange, Store, StoreOptions, Txn};
use braid_lsm::{CommitTs, Db, KeySpan, ScanOptions};
use braid_node::MemberChanges;
use std::path::Path;

use super::*;

const ALONE: &str = "/node";
const ROWS: u64 = 300;

fn engine() -> Options {
    Options {
        memtable_size: 64 << 10,
        block_cache_size: 1 << 20,
        ballast_size: 0,
        ..Options::default()
    }
}

/// Where the member of a node has its files: inside of where it was alone.
fn options(cluster: &Cluster, n: usize) -> MemberOptions {
    MemberOptions {
        dir: Path::new(ALONE).join("cluster"),
        changes: MemberChanges { alone_dir: Some(ALONE.into()), ..MemberChanges::default() },
        engine: engine(),
        max_range_bytes: 32 << 10,
        ..cluster.options(n)
    }
}

fn open_alone(fs: &Arc<MemFs>) -> Arc<Store> {
    let options = StoreOptions::new(fs.clone(), ALONE, Arc::new(WallClock));
    Store::open(StoreOptions { engine: engine(), ..options }).expect("it opens")
}

fn row(n: u64) -> Bytes {
    format!("row {n:04}").into()
}

/// Rows in files and in the log, older versions of some, and a span that was deleted; and a time at
/// which the older versions were the newest.
fn live_alone(fs: &Arc<MemFs>) -> CommitTs {
    let store = open_alone(fs);
    let commit = |body: &dyn Fn(&Txn) -> KvResult<()>| {
        let txn = store.begin(TxnOptions::default()).expect("it begins");
        body(&txn).expect("nobody else writes");
        txn.commit().expect("nobody else writes")
    };
    let fill = |txn: &Txn, from: u64, to: u64, text: &str| {
        let mut random = Random::seeded(from);
        // Not to be compressed: the range is to be larger than its limit.
        let mut noise =
            || (0..30).map(|_| format!("{:016x}", random.next_u64())).collect::<String>();
        (from..to).try_for_each(|n| txn.put(row(n), format!("{text} {n} {}", noise())))
    };
    commit(&|txn| (0..ACCOUNTS).try_for_each(|n| txn.put(account(n), EACH.to_string())));
    let old = commit(&|txn| fill(txn, 0, ROWS + 100, "old"));
    store.engine().flush().expect("the disk works");
    commit(&|txn| txn.delete_span(&KeySpan::new(row(ROWS), row(ROWS + 100))).map(|_| ()));
    commit(&|txn| fill(txn, 0, ROWS / 2, "new"));
    store.engine().close().expect("the disk works");
    old
}

/// All rows of clients that a store has.
fn rows(store: &Db) -> Vec<(Bytes, Bytes)> {
    let view = store.view(CommitTs(u64::MAX - 1)).expect("it is open");
    let span = KeySpan::new(vec![1], KeySpan::all().end);
    let mut scan = view.scan(span, ScanOptions::default()).expect("the disk works");
    let mut rows = Vec::new();
    while let Some(row) = scan.next_row().expect("the disk works") {
        rows.push((row.key.to_vec().into(), row.value.to_vec().into()));
    }
    rows
}

fn copy_of(disk: &MemFs) -> Arc<MemFs> {
    Arc::new(disk.crash_clone(&mut Random::seeded(1), CrashPolicy::KeepAll))
}

/// The power fails in front of each change of the disk, and each time another part of what was not
/// synced survives: what is left is a node that is alone, or the first of a cluster, and has all
/// rows. Then it starts as the first one.
#[test]
fn a_crash_anywhere_leaves_a_node_alone_or_the_first_of_a_cluster_with_all_rows() {
    let alone = Arc::new(MemFs::new());
    live_alone(&alone);
    let expected = rows(open_alone(&copy_of(&alone)).engine());
    assert_eq!(expected.len() as u64, ACCOUNTS + ROWS);
    let (alone, expected) = (&alone, &expected);
    let lanes = 4;
    let ends = std::thread::scope(|scope| {
        let lane = |first: u64| crash_in_front_of((first..).step_by(lanes), alone, expected);
        let threads: Vec<_> = (0..lanes as u64).map(|n| scope.spawn(move || lane(n))).collect();
        threads.into_iter().map(|t| t.join().expect("it is good")).collect::<Vec<[u64; 2]>>()
    });
    let [left_alone, left_first] = [0, 1].map(|n| ends.iter().map(|end| end[n]).sum::<u64>());
    println!("after a crash alone: {left_alone}, the first of a cluster: {left_first}");
    assert!(left_alone > 2 && left_first > 10, "{left_alone} {left_first}");
}

/// How often it was alone afterwards, and how often the first of a cluster.
fn crash_in_front_of(
    changes: impl Iterator<Item = u64>,
    alone: &MemFs,
    expected: &[(Bytes, Bytes)],
) -> [u64; 2] {
    let mut left = [0, 0];
    for change in changes {
        let mut cluster = Cluster::new();
        cluster.disks[0] = copy_of(alone);
        let survives = [CrashPolicy::LoseAll, CrashPolicy::Random(50), CrashPolicy::KeepAll];
        let policy = survives[change as usize / 4 % 3];
        cluster.disks[0].arm_crash(change, Random::seeded(change), policy);
        let member = Member::start(options(&cluster, 0)).expect("it starts");
        let crashed = cluster.disks[0].take_crash();
        member.stop();
        let Some(after) = crashed.map(Arc::new) else { return left };
        let dir = options(&cluster, 0).dir;
        let is_first = Member::lives_in(&*after, &dir).expect("it reads");
        left[usize::from(is_first)] += 1;
        if !is_first {
            let store = open_alone(&copy_of(&after));
            assert!(rows(store.engine()) == expected, "alone after change {change}");
            assert!(!Member::has_marked(store.engine()).expect("it reads"));
        }
        cluster.disks[0] = after;
        // Twice: what is there after a crash must not be made anew the next time either.
        for _ in 0..2 {
            let again = Member::start(options(&cluster, 0)).expect("it starts again");
            assert!(rows(again.store()) == expected, "after change {change}");
            assert!(Member::has_marked(again.store()).expect("it reads"));
            again.stop();
        }
    }
    left
}

/// All rows, read as of a time or now.
fn read_all(at: &Arc<Coordinator>, as_of: Option<CommitTs>) -> Vec<Option<Bytes>> {
    let options = || TxnOptions { as_of, read_only: true, ..TxnOptions::default() };
    for _ in 0..600 {
        let txn = at.begin(options()).expect("it begins");
        match (0..ROWS + 100).map(|n| txn.get(&row(n))).collect() {
            Ok(rows) => return rows,
            Err(KvError::Unavailable(_) | KvError::Retry { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }
    panic!("never answered");
}

/// Until each range has three replicas that vote; how many ranges there are.
fn until_replicated(at: &Member) -> usize {
    let mut shown = None;
    for _ in 0..1_200 {
        shown = at.coordinator().describe_ranges().ok().flatten();
        let is_well = |range: &ShownRange| range.replicas.len() == 3 && range.moves.is_none();
        if shown.iter().flatten().count() > 1 && shown.iter().flatten().all(is_well) {
            return shown.iter().flatten().count();
        }
        WallClock.sleep(Duration::from_millis(100));
    }
    panic!("replicas do not come: {shown:?}");
}

#[test]
fn a_node_that_was_alone_becomes_the_first_and_the_others_get_what_it_has() {
    let mut cluster = Cluster::new();
    let old = live_alone(&cluster.disks[0]);
    let first = Member::start(options(&cluster, 0)).expect("it starts");
    // It serves before anybody else is there.
    let newest = read_all(first.coordinator(), None);
    assert_eq!(newest.iter().flatten().count() as u64, ROWS);
    assert_eq!(sum(first.coordinator()), ACCOUNTS * EACH);
    let others: Vec<Member> =
        [1, 2].map(|n| Member::start(options(&cluster, n)).expect("it starts")).into();
    let mut random = Random::seeded(1);
    (0..20).for_each(|_| transfer(others[1].coordinator(), &mut random));
    println!("{} ranges", until_replicated(&first));
    // The first one is lost for ever.
    first.stop();
    drop(first);
    cluster.disks[0] = Arc::new(MemFs::new());
    for member in &others {
        assert!(read_all(member.coordinator(), None) == newest, "now");
        let past = read_all(member.coordinator(), Some(old));
        assert_eq!(past.len() as u64, ROWS + 100);
        let is_old = |row: &Option<Bytes>| row.as_ref().is_some_and(|v| v.starts_with(b"old "));
        assert!(past.iter().all(is_old), "the past is there, too");
        transfer(member.coordinator(), &mut random);
        assert_eq!(sum(member.coordinator()), ACCOUNTS * EACH);
        assert!(!member.has_failed());
    }
    // An empty disk in its place is not let in, and founds nothing that they would join.
    let emptied = MemberOptions { join_patience: Duration::ZERO, ..options(&cluster, 0) };
    if let Ok(emptied) = Member::start(emptied) {
        WallClock.sleep(Duration::from_millis(500));
        assert!(emptied.members().iter().all(|(n, _, there)| *n == NodeId(1) || !there));
    }
    assert_eq!(sum(others[0].coordinator()), ACCOUNTS * EACH);
}

/// Others that start first wait for the one that has the rows: without it they are no cluster.
#[test]
fn founders_without_rows_wait_for_the_one_that_has_them() {
    let cluster = Cluster::new();
    live_alone(&cluster.disks[0]);
    let early = MemberOptions { join_patience: Duration::ZERO, ..options(&cluster, 1) };
    let early = Member::start(early).map(|_| ()).expect_err("nobody is there");
    assert!(matches!(&early, MemberError::NotJoined(_)), "{early}");
    std::thread::scope(|scope| {
        let start = |n: usize| Member::start(options(&cluster, n)).expect("it starts");
        let waiting: Vec<_> = [1, 2].map(|n| scope.spawn(move || start(n))).into();
        WallClock.sleep(Duration::from_millis(500));
        let first = start(0);
        let others: Vec<Member> =
            waiting.into_iter().map(|thread| thread.join().expect("it starts")).collect();
        until_replicated(&first);
        drop(first);
        assert_eq!(sum(others[0].coordinator()), ACCOUNTS * EACH);
    });
}

#[test]
fn a_store_of_a_node_alone_that_cannot_be_the_first_is_left_as_it_is() {
    let mut cluster = Cluster::new();
    let alone = Arc::new(MemFs::new());
    live_alone(&alone);
    let why = |cluster: &Cluster, n: usize, members: Vec<SocketAddr>| {
        let own = MemberOptions { members, join_patience: Duration::ZERO, ..options(cluster, n) };
        Member::start(own).map(|_| ()).expect_err("it cannot be one").to_string()
    };
    let all = cluster.members.clone();
    // Not the first one; one that joins; too few.
    cluster.disks[1] = copy_of(&alone);
    assert!(why(&cluster, 1, all.clone()).contains("it can be the first founder"));
    assert!(why(&cluster, 1, vec![all[0]]).contains("it can be the first founder"));
    assert!(why(&cluster, 1, vec![all[1]]).contains("3, 5, 7 or 9 members"));
    assert!(!cluster.disks[1].exists(&options(&cluster, 1).dir.join("member")).expect("it reads"));
    assert_eq!(rows(open_alone(&cluster.disks[1]).engine()).len() as u64, ACCOUNTS + ROWS);

    // Where the first one was, its store is gone, or it is looked for elsewhere.
    cluster.disks[0] = copy_of(&alone);
    let first = Member::start(options(&cluster, 0)).expect("it starts");
    assert_eq!(sum(first.coordinator()), ACCOUNTS * EACH);
    drop(first);
    let gone = |cluster: &Cluster, change: &dyn Fn(&mut MemberOptions)| {
        let mut own = options(cluster, 0);
        change(&mut own);
        Member::start(own).map(|_| ()).expect_err("something is gone").to_string()
    };
    assert!(gone(&cluster, &|own| own.changes.alone_dir = None).contains("must not come back"));
    assert!(
        gone(&cluster, &|own| own.changes.alone_dir = Some("/else".into())).contains("is gone")
    );
    // An older copy of what the node had when it was alone, beside the files of the member.
    let (served, older) = (cluster.disks[0].clone(), copy_of(&alone));
    for folder in ["/node/cluster", "/node/cluster/raft"] {
        older.create_dir_all(Path::new(folder)).expect("the disk works");
        for name in served.list(Path::new(folder)).expect("it is there") {
            let path = Path::new(folder).join(name);
            if let Ok(bytes) = read_whole(&*served, &path) {
                let file = older.create(&path).expect("the disk works");
                file.write_at(&bytes, 0).expect("the disk works");
            }
        }
    }
    cluster.disks[0] = older;
    let exchanged = gone(&cluster, &|_| {});
    assert!(exchanged.contains("not the store that the raft log was written with"), "{exchanged}");
    cluster.disks[0] = served;
    cluster.disks[0]
        .rename(Path::new("/node/CURRENT"), Path::new("/node/gone"))
        .expect("it is renamed");
    assert!(gone(&cluster, &|_| {}).contains("must not come back"));
}

/// There is nobody who could take its leases, and it keeps them: to wait for that is in vain.
#[test]
fn who_is_alone_so_far_does_not_wait_for_somebody_who_takes_its_leases() {
    let mut cluster = Cluster::new();
    let alone = Arc::new(MemFs::new());
    live_alone(&alone);
    cluster.disks[0] = alone;
    let first = Member::start(options(&cluster, 0)).expect("it starts");
    assert_eq!(sum(first.coordinator()), ACCOUNTS * EACH);
    let begun = WallClock.monotonic_nanos();
    assert!(!first.drain(Duration::from_secs(60)), "nobody can have taken them");
    let waited = Duration::from_nanos(WallClock.monotonic_nanos() - begun);
    assert!(first.led_ranges() > 0);
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    drop(first);
    // What was there is there.
    let first = Member::start(options(&cluster, 0)).expect("it starts");
    assert_eq!(sum(first.coordinator()), ACCOUNTS * EACH);
}
