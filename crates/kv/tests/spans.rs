//! The seam: what is asked of the far side are requests of plain data, and the answers are the same
//! whoever carries them, however they are cut, and whatever was forgotten in between.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use braid_env::clock::WallClock;
use braid_env::fs::MemFs;
use braid_env::random::Random;
use braid_kv::{
    Begun, Commit, CommitTs, Committed, Coordinator, GetMany, GotMany, Grant, Isolation, Jump,
    KeySpan, KvError, KvResult, LockItem, LockMany, LockMode, LockReport, LockedMany, PointRead,
    ReadAt, ReadMode, Reads, ScanMany, ScanOptions, ScannedMany, SpanScan, Spans, Store,
    StoreOptions, Target, Txn, TxnId, TxnOptions, Validate, Wait, Watch, Watched,
};
use bytes::Bytes;

fn store() -> Arc<Store> {
    let fs = Arc::new(MemFs::new());
    Store::open(StoreOptions::new(fs, Path::new("db"), Arc::new(WallClock))).expect("opens")
}

fn begin(at: &Arc<Coordinator>, batch: usize) -> Arc<Txn> {
    at.begin(TxnOptions { batch, ..TxnOptions::default() }).expect("begins")
}

fn key(n: u64) -> String {
    format!("k{n:03}")
}

fn fill(store: &Arc<Store>, rows: u64) {
    let txn = store.begin(TxnOptions::default()).expect("begins");
    for n in 0..rows {
        txn.put(key(n), format!("v{n}")).expect("puts");
    }
    txn.commit().expect("commits");
}

fn all(txn: &Arc<Txn>, options: ScanOptions) -> Vec<(Bytes, Bytes)> {
    let mut scan = txn.scan(KeySpan::new("k", "l"), options).expect("opens");
    let mut out = Vec::new();
    while let Some(row) = scan.next().expect("scans") {
        out.push(row);
    }
    out
}

/// Carries every request to another thread and its answer back, so that neither can be anything
/// but data; loses the number of every cursor on the way, if told so.
struct Carried {
    store: Arc<Store>,
    loses_cursors: bool,
    carried: AtomicU64,
}

impl Carried {
    fn over<R: Send>(&self, work: impl FnOnce(&Store) -> R + Send) -> R {
        self.carried.fetch_add(1, Ordering::Relaxed);
        std::thread::scope(|scope| scope.spawn(|| work(&self.store)).join().expect("answers"))
    }
}

impl Spans for Carried {
    fn begin(&self, as_of: Option<CommitTs>) -> KvResult<Begun> {
        Spans::begin(&*self.store, as_of)
    }
    fn refresh(&self, txn: TxnId, old: CommitTs) -> CommitTs {
        self.store.refresh(txn, old)
    }
    fn leave(&self, txn: TxnId, read_ts: CommitTs) {
        self.store.leave(txn, read_ts);
    }
    fn all_younger_than(&self, txn: TxnId) -> bool {
        Spans::all_younger_than(&*self.store, txn)
    }
    fn unique_number(&self) -> i64 {
        Spans::unique_number(&*self.store)
    }
    fn wall_clock_us(&self) -> u64 {
        Spans::wall_clock_us(&*self.store)
    }
    fn get_many(&self, request: &GetMany) -> KvResult<GotMany> {
        let request = request.clone();
        self.over(move |store| store.get_many(&request))
    }
    fn scan_many(&self, request: &ScanMany) -> KvResult<ScannedMany> {
        let mut request = request.clone();
        if self.loses_cursors {
            for scan in &mut request.scans {
                scan.cursor.take().into_iter().for_each(|cursor| self.store.close_cursor(cursor));
            }
        }
        self.over(move |store| store.scan_many(&request))
    }
    fn divide(&self, span: &KeySpan, parts: usize, least: u64) -> KvResult<Vec<Bytes>> {
        let span = span.clone();
        self.over(move |store| store.divide(&span, parts, least))
    }
    fn stored_bytes(&self, span: &KeySpan) -> KvResult<u64> {
        let span = span.clone();
        self.over(move |store| store.stored_bytes(&span))
    }
    fn close_cursor(&self, cursor: u64) {
        self.store.close_cursor(cursor);
    }
    fn lock_many(&self, request: LockMany, stop: &AtomicBool) -> LockedMany {
        self.over(move |store| store.lock_many(request, stop))
    }
    fn release(&self, txn: TxnId, targets: &[Target], ended: bool) {
        let targets = targets.to_vec();
        self.over(move |store| store.release(txn, &targets, ended));
    }
    fn validate(&self, request: &Validate) -> KvResult<()> {
        let request = request.clone();
        self.over(move |store| store.validate(&request))
    }
    fn commit(&self, request: Commit) -> KvResult<Committed> {
        self.over(move |store| Spans::commit(store, request))
    }
    fn takes_files(&self) -> bool {
        self.store.takes_files()
    }
    fn gives_key_times(&self) -> bool {
        self.store.gives_key_times()
    }

    fn ingest(&self, files: &[PathBuf], at: CommitTs) -> KvResult<()> {
        self.store.ingest(files, at)
    }
    fn watch(&self, watch: Watch) -> u64 {
        self.over(move |store| Spans::watch(store, watch))
    }
    fn watched(&self, watch: u64, upto: CommitTs) -> Watched {
        self.over(move |store| Spans::watched(store, watch, upto))
    }
    fn unwatch(&self, watch: u64) {
        self.over(move |store| Spans::unwatch(store, watch));
    }
    fn await_durable(&self, ts: CommitTs) -> KvResult<()> {
        self.over(move |store| store.await_durable(ts))
    }
    fn describe_locks(&self) -> LockReport {
        self.store.describe_locks()
    }
}

fn carried(store: &Arc<Store>, loses_cursors: bool) -> (Arc<Carried>, Arc<Coordinator>) {
    let carried = AtomicU64::new(0);
    let carried = Arc::new(Carried { store: store.clone(), loses_cursors, carried });
    (carried.clone(), store.coordinator_through(carried))
}

/// Random reads and writes; what they answered, as text.
fn history(at: &Arc<Coordinator>, batch: usize, seed: u64) -> String {
    let mut random = Random::seeded(seed);
    let mut out = String::new();
    for _ in 0..12 {
        let txn = begin(at, batch);
        for _ in 0..random.below(12) {
            let (a, b) = (random.below(300), random.below(300));
            let (low, high) = (key(a.min(b)), key(a.max(b) + 1));
            match random.below(7) {
                0 => txn.put(key(a), format!("w{b}")).expect("puts"),
                1 => txn.delete(key(a)).expect("deletes"),
                2 => drop(txn.delete_span(&KeySpan::new(key(a), key(a + 9))).expect("deletes")),
                3 => {
                    let keys = (a..a + 20).map(|n| Bytes::from(key(n)));
                    txn.get_ahead(keys, ReadMode::Recorded).expect("asks");
                    let got = (a..a + 20).map(|n| txn.get(key(n).as_bytes()).expect("gets"));
                    out.push_str(&format!("{:?}\n", got.collect::<Vec<_>>()));
                }
                4 => {
                    let spans: Vec<KeySpan> =
                        (0..5).map(|n| KeySpan::new(key(n * 50), key(n * 50 + a % 40))).collect();
                    txn.scan_ahead(&spans, &ScanOptions::default()).expect("asks");
                    for span in spans.into_iter().filter(|span| !span.is_empty()) {
                        let mut scan = txn.scan(span, ScanOptions::default()).expect("opens");
                        while let Some(row) = scan.next().expect("scans") {
                            out.push_str(&format!("{row:?} "));
                        }
                        out.push('\n');
                    }
                }
                _ => {
                    let reverse = random.below(2) == 0;
                    let limit = Some(random.below(80) as usize).filter(|n| *n > 3);
                    let options = ScanOptions { reverse, limit, ..ScanOptions::default() };
                    let mut scan = txn.scan(KeySpan::new(low, high), options).expect("opens");
                    while let Some(row) = scan.next().expect("scans") {
                        out.push_str(&format!("{row:?} "));
                        if !reverse && random.below(9) == 0 {
                            scan.seek(key(random.below(300)).as_bytes()).expect("seeks");
                        }
                    }
                    out.push('\n');
                }
            }
        }
        match random.below(4) {
            0 => txn.rollback(),
            _ => assert!(txn.commit().expect("commits") > CommitTs::ZERO),
        }
    }
    out
}

#[test]
fn requests_that_are_carried_as_data_are_answered_the_same() {
    for seed in 0..20 {
        let of = |batch: usize, carry: Option<bool>| {
            let store = store();
            fill(&store, 300);
            let at = match carry {
                None => store.coordinator(),
                Some(loses) => carried(&store, loses).1,
            };
            let told = history(&at, batch, seed);
            assert_eq!(store.open_cursors(), 0, "a scan has left its cursor behind");
            assert_eq!(at.describe_locks().lines, "");
            told
        };
        let direct = of(1024, None);
        let same = |told: String, how: &str| {
            let differs = direct.lines().zip(told.lines()).find(|(a, b)| a != b);
            assert_eq!(differs, None, "{how}, seed {seed}");
            assert_eq!(direct.len(), told.len(), "{how}, seed {seed}");
        };
        same(of(1, None), "one by one");
        same(of(7, None), "by sevens");
        same(of(1024, Some(false)), "carried");
        same(of(5, Some(true)), "carried without cursors");
    }
}

#[test]
fn a_scan_goes_on_at_every_key_with_the_same_answer() {
    let store = store();
    fill(&store, 60);
    let whole = KeySpan::new("k", "l");
    let at = Spans::begin(&*store, None).expect("begins").read_ts;
    for reverse in [false, true] {
        for with_cursor in [false, true] {
            for rows in 1..=61 {
                let ask = |span: KeySpan, cursor: Option<u64>| {
                    let scan = SpanScan { span, rows, more: with_cursor, cursor };
                    let answer = store.scan_many(&ScanMany {
                        scans: vec![scan],
                        at: ReadAt::Time(at),
                        reverse,
                        classes: u32::MAX,
                        jump: None,
                        rows: usize::MAX,
                        bytes: usize::MAX,
                        notes: false,
                        blocks: false,
                    });
                    answer.expect("scans").parts.remove(0)
                };
                let mut found = Vec::new();
                let mut part = ask(whole.clone(), None);
                loop {
                    assert!(part.rows.len() <= rows);
                    found.extend(part.rows.iter().map(|(key, ..)| Bytes::copy_from_slice(key)));
                    let Some(rest) = part.rest else { break };
                    // Somebody writes in between, where the scan has been and where it will come.
                    fill(&store, 60);
                    part = ask(rest, part.cursor);
                }
                let mut expected: Vec<Bytes> = (0..60).map(|n| key(n).into()).collect();
                if reverse {
                    expected.reverse();
                }
                assert_eq!(found, expected, "{rows} rows, reverse {reverse}");
            }
        }
    }
    assert_eq!(store.open_cursors(), 0);
}

#[test]
fn an_answer_ends_at_its_rows_and_bytes_over_all_spans() {
    let store = store();
    fill(&store, 30);
    let at = ReadAt::Latest;
    let scans = |n: u64| -> Vec<SpanScan> {
        let span = |n: u64| KeySpan::new(key(n * 10), key(n * 10 + 10));
        (0..n).map(|n| SpanScan { span: span(n), rows: 8, more: false, cursor: None }).collect()
    };
    let request = |rows: usize, bytes: usize| ScanMany {
        scans: scans(3),
        at,
        reverse: false,
        classes: u32::MAX,
        jump: None,
        rows,
        bytes,
        notes: true,
        blocks: false,
    };
    let lengths = |request: &ScanMany| -> Vec<(usize, Option<Bytes>)> {
        let answer: ScannedMany = store.scan_many(request).expect("scans");
        answer.parts.into_iter().map(|p| (p.rows.len(), p.rest.map(|rest| rest.start))).collect()
    };
    let after = |n: u64| Some(Bytes::from([key(n).as_bytes(), b"\0"].concat()));
    let at_start = |n: u64| Some(Bytes::from(key(n)));
    let cut = lengths(&request(12, usize::MAX));
    assert_eq!(cut, [(8, after(7)), (4, after(13)), (0, at_start(20))]);
    let cut = lengths(&request(usize::MAX, 1));
    assert_eq!(cut, [(1, after(0)), (0, at_start(10)), (0, at_start(20))]);
}

#[test]
fn a_jump_passes_over_what_lies_inside_of_a_row() {
    let store = store();
    let txn = store.begin(TxnOptions::default()).expect("begins");
    for row in ["a", "b", "c"] {
        txn.put(row, "row").expect("puts");
        for n in 0..5 {
            txn.put(format!("{row}/{n}"), "inside").expect("puts");
        }
    }
    txn.commit().expect("commits");
    let scan = SpanScan { span: KeySpan::new("a", "z"), rows: 2, more: true, cursor: None };
    let mut request = ScanMany {
        scans: vec![scan],
        at: ReadAt::Latest,
        reverse: false,
        classes: u32::MAX,
        jump: Some(Jump { classes: u32::MAX, suffix: Bytes::from_static(b"\xff") }),
        rows: usize::MAX,
        bytes: usize::MAX,
        notes: false,
        blocks: false,
    };
    let first = store.scan_many(&request).expect("scans");
    let keys = |answer: &ScannedMany| -> Vec<Bytes> {
        answer.parts[0].rows.iter().map(|(key, ..)| Bytes::copy_from_slice(key)).collect()
    };
    assert_eq!(keys(&first), ["a", "b"]);
    let rest = first.parts[0].rest.clone().expect("c is left");
    assert_eq!(rest.start.as_ref() as &[u8], b"b\xff");
    request.at = ReadAt::Time(first.at);
    let cursor = first.parts[0].cursor;
    request.scans = vec![SpanScan { span: rest, rows: 2, more: true, cursor }];
    let second = store.scan_many(&request).expect("scans");
    assert_eq!((keys(&second), &second.parts[0].rest), (vec![Bytes::from("c")], &None));
}

fn locks(keys: &[&str]) -> Vec<LockItem> {
    let target = |key: &&str| Target::Key(Bytes::copy_from_slice(key.as_bytes()));
    let item = |key| LockItem { target: target(key), mode: LockMode::Exclusive, check: true };
    keys.iter().map(item).collect()
}

fn wait_until(what: impl Fn() -> bool) {
    while !what() {
        std::thread::yield_now();
    }
}

#[test]
fn lock_many_waits_in_its_order_and_keeps_what_it_has() {
    let store = store();
    let at = store.coordinator();
    let (first, second) = (begin(&at, 1024), begin(&at, 1024));
    first.lock(b"b", LockMode::Exclusive, Wait::Block).expect("is free");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| second.lock_many(locks(&["a", "b", "c"])));
        wait_until(|| at.describe_locks().waiting == 1);
        let held = at.describe_locks().lines;
        let own = format!("held Exclusive by {}", second.id().0);
        assert!(held.contains(&format!("a {own}")), "before the one that is not free: {held}");
        assert!(!held.contains(&format!("c {own}")), "behind it: {held}");
        first.rollback();
        waiter.join().expect("ends").expect("locks");
    });
    assert_eq!(at.describe_locks().lines.lines().count(), 3);
    second.rollback();
    assert_eq!(at.describe_locks(), LockReport::default());
}

#[test]
fn lock_many_without_waiting_tells_how_far_it_came() {
    let store = store();
    fill(&store, 3);
    let at = store.coordinator();
    let (first, second) = (begin(&at, 1024), begin(&at, 1024));
    first.lock(b"b", LockMode::Exclusive, Wait::Block).expect("is free");
    let ask = |wait: Wait| {
        let (txn, items, timeout) = (second.id(), locks(&["a", "b", "c"]), None);
        let request = LockMany { txn, items, read_ts: second.read_ts(), wait, timeout };
        store.lock_many(request, &AtomicBool::new(false))
    };
    let stopped = ask(Wait::NoWait);
    assert_eq!(stopped.grants, [Grant::Held]);
    assert!(matches!(stopped.error, Some(KvError::LockNotAvailable)));
    let passed = ask(Wait::SkipLocked);
    assert_eq!(passed.grants, [Grant::Held, Grant::Skipped, Grant::Held]);
    assert!(passed.error.is_none());
    // What is newer than the asker's view is told with the lock, which stays.
    fill(&store, 3);
    let (txn, timeout) = (second.id(), None);
    let items = locks(&["k000", "k001"]);
    let request = LockMany { txn, items, read_ts: second.read_ts(), wait: Wait::Block, timeout };
    let conflict = store.lock_many(request, &AtomicBool::new(false));
    assert_eq!(conflict.grants, [Grant::Newer]);
    assert!(matches!(conflict.error, Some(KvError::Retry { .. })));
}

#[test]
fn a_deadlock_through_lock_many_has_one_victim() {
    let store = store();
    let at = store.coordinator();
    let (first, second) = (begin(&at, 1024), begin(&at, 1024));
    first.lock_many(locks(&["a", "b"])).expect("free");
    second.lock_many(locks(&["c", "d"])).expect("free");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| first.lock_many(locks(&["x", "c"])));
        wait_until(|| at.describe_locks().waiting == 1);
        let victim = second.lock_many(locks(&["y", "b"]));
        assert!(matches!(victim, Err(KvError::Deadlock { .. })), "{victim:?}");
        second.rollback();
        waiter.join().expect("ends").expect("the other one goes on");
    });
}

#[test]
fn validation_tells_what_a_commit_has_changed() {
    let store = store();
    fill(&store, 10);
    let floor = Spans::begin(&*store, None).expect("begins").read_ts;
    let ask = |points: &[&str], spans: &[(&str, &str)]| {
        let point = |key: &&str| PointRead { key: Bytes::from(key.to_string()), part: None };
        let points = points.iter().map(point).collect();
        let spans = spans.iter().map(|(a, b)| KeySpan::new(a.to_string(), b.to_string())).collect();
        let through = store.now();
        store.validate(&Validate { floor, through, reads: Reads { points, spans } })
    };
    ask(&["k001"], &[("k", "l")]).expect("nothing happened yet");
    let txn = store.begin(TxnOptions::default()).expect("begins");
    txn.put("k001", "new").expect("puts");
    txn.delete_span(&KeySpan::new("k005", "k007")).expect("deletes");
    txn.commit().expect("commits");
    ask(&["k000", "k002"], &[("k002", "k005"), ("k007", "l")]).expect("nothing there");
    for (points, spans) in [
        (vec!["k001"], vec![]),
        (vec!["k006"], vec![]),
        (vec![], vec![("k", "k002")]),
        (vec!["k003"], vec![("k006", "k008")]),
    ] {
        let told = ask(&points, &spans);
        assert!(matches!(told, Err(KvError::Retry { .. })), "{points:?} {spans:?}: {told:?}");
    }
}

#[test]
fn what_was_asked_ahead_of_a_lock_is_asked_again_after_it() {
    let store = store();
    fill(&store, 5);
    let at = store.coordinator();
    let txn = begin(&at, 1024);
    let keys = || (0..5).map(|n| Bytes::from(key(n)));
    txn.get_ahead(keys(), ReadMode::Latest).expect("asks");
    txn.get_ahead(keys(), ReadMode::Unrecorded).expect("asks");
    let other = store.begin(TxnOptions::default()).expect("begins");
    other.put(key(3), "newer").expect("puts");
    other.commit().expect("commits");
    txn.hold(key(3).as_bytes(), LockMode::KeyShare).expect("is free again");
    let read = |mode| txn.get_as(key(3).as_bytes(), mode).expect("gets").expect("is there");
    assert_eq!(read(ReadMode::Latest), "newer", "its lock was granted after that commit");
    assert_eq!(read(ReadMode::Unrecorded), "v3", "its view has not moved");
    let spans = [KeySpan::new(key(0), key(2)), KeySpan::new(key(2), key(5))];
    let options = ScanOptions { mode: ReadMode::Latest, ..ScanOptions::default() };
    let rows = txn.scan_ahead(&spans, &options).expect("asks");
    assert_eq!(rows.iter().map(|rows| rows.len()).sum::<usize>(), 5);
    // Own writes are laid over what was said before they were made.
    txn.delete(key(4)).expect("deletes");
    txn.put(key(3), "own").expect_err("somebody else has written it");
    let mut scan = txn.scan(spans[1].clone(), options).expect("opens");
    let mut values = Vec::new();
    while let Some((_, value)) = scan.next().expect("scans") {
        values.push(value);
    }
    assert_eq!(values, ["v2", "newer"]);
}

#[test]
fn answers_asked_ahead_do_not_survive_a_new_read_timestamp() {
    let store = store();
    fill(&store, 5);
    let isolation = Isolation::ReadCommitted;
    let txn = store.begin(TxnOptions { isolation, ..TxnOptions::default() }).expect("begins");
    let keys = || (0..5).map(|n| Bytes::from(key(n)));
    txn.get_ahead(keys(), ReadMode::Recorded).expect("asks");
    let other = store.begin(TxnOptions::default()).expect("begins");
    other.put(key(3), "newer").expect("puts");
    other.commit().expect("commits");
    assert_eq!(txn.get(key(3).as_bytes()).expect("gets").expect("is there"), "v3");
    txn.begin_statement().expect("begins");
    assert_eq!(txn.get(key(3).as_bytes()).expect("gets").expect("is there"), "newer");
}

#[test]
fn requests_are_counted_and_grow_with_batches_and_not_with_rows() {
    let store = store();
    fill(&store, 900);
    let (carried, at) = carried(&store, false);
    let txn = begin(&at, 1024);
    let asked = |work: &mut dyn FnMut()| {
        let before = txn.stats().requests;
        work();
        txn.stats().requests - before
    };
    let keys = || (0..900).map(|n| Bytes::from(key(n)));
    let gets = asked(&mut || {
        txn.get_ahead(keys(), ReadMode::Recorded).expect("asks");
        keys().for_each(|key| assert!(txn.get(&key).expect("gets").is_some()));
    });
    assert_eq!(gets, 1);
    let items = keys().map(|key| LockItem {
        target: Target::Key(key),
        mode: LockMode::Exclusive,
        check: true,
    });
    let items: Vec<LockItem> = items.collect();
    let writes = asked(&mut || {
        txn.lock_ahead(items.clone()).expect("asks");
        keys().for_each(|key| txn.put(key, "new").expect("puts"));
    });
    assert_eq!(writes, 1);
    let scan = asked(&mut || assert_eq!(all(&txn, ScanOptions::default()).len(), 900));
    assert!(scan <= 4, "{scan}");
    let commit = asked(&mut || assert!(txn.commit().expect("commits") > CommitTs::ZERO));
    assert_eq!(commit, 1);
    // Besides those: locks were given back, and the commit was waited for.
    let carried = carried.carried.load(Ordering::Relaxed);
    assert!(carried >= txn.stats().requests && carried <= txn.stats().requests + 8, "{carried}");
}

#[test]
fn answers_say_what_was_looked_at() {
    let store = store();
    fill(&store, 500);
    store.engine().flush().expect("flushes");
    let at = store.coordinator();
    let txn = begin(&at, 1024);
    let work = || txn.stats().work;
    assert_eq!(work(), Default::default());
    assert!(txn.get(key(7).as_bytes()).expect("reads").is_some());
    let one = work();
    assert!(one.blocks >= 1 && one.blocks_from_disk <= one.blocks, "{one:?}");
    assert_eq!((one.entries, one.bytes), (1, (key(7).len() + "v7".len()) as u64));
    assert_eq!(all(&txn, ScanOptions::default()).len(), 500);
    let scanned = work().since(one);
    assert_eq!((scanned.entries, scanned.tombstones), (500, 0), "{scanned:?}");
    assert!(scanned.blocks >= 1 && scanned.bytes > 500 * 5, "{scanned:?}");
    // What a transaction knows already is not looked at again.
    let (before, requests) = (work(), txn.stats().requests);
    txn.put(key(7), "new").expect("puts");
    txn.get(key(7).as_bytes()).expect("reads");
    assert_eq!((work(), txn.stats().requests - requests), (before, 1), "the lock");
    txn.rollback();

    let deleting = begin(&at, 1024);
    deleting.delete_span(&KeySpan::new(key(100), key(400))).expect("deletes");
    deleting.commit().expect("commits");
    let txn = begin(&at, 1024);
    assert_eq!(all(&txn, ScanOptions::default()).len(), 200);
    let work = txn.stats().work;
    // Rows below the tombstone are passed over, not looked at.
    assert!(work.tombstones >= 1 && work.entries < 300, "{work:?}");
}
