//! Scans over several ranges: what is found, whatever the limits are, and who is asked together.

mod harness;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use braid_cluster::{Reply, Router, Transport};
use braid_consensus::ReplicaId;
use braid_env::clock::{Clock, Hlc, WallClock};
use braid_kv::{ReadAt, ScanMany, ScannedMany, SpanRows, SpanScan, Spans};
use braid_lsm::{CommitTs, KeySpan, RowBatch};
use braid_range::{
    Answer, AnswerTimes, Ask, FIRST_DATA_KEY, NodeId, RangeDescriptor, RangeId, Request,
};
use parking_lot::Mutex;

/// Ranges with one letter each, of which each is on a node of its own, and all keys.
#[derive(Default)]
struct Letters {
    keys: BTreeSet<Vec<u8>>,
    /// Who was asked in each round.
    rounds: Mutex<Vec<Vec<u64>>>,
    /// Each so many requests are not answered together with others.
    refuses: Option<u64>,
    requests: AtomicU64,
    /// What was known of the clock of each node that was asked for rows.
    known: Mutex<Vec<Option<CommitTs>>>,
    /// What the first node's clock would show.
    zero: CommitTs,
    /// It says nothing of its clock.
    silent: Option<NodeId>,
}

/// What a node's clock shows, in the end.
fn clock_of(node: NodeId) -> CommitTs {
    CommitTs(100 * node.0)
}

impl Letters {
    fn answer(&self, node: NodeId, request: &Request) -> Reply {
        let clock = CommitTs(self.zero.0 + clock_of(node).0);
        if let Ask::Clock = &request.ask {
            return Reply { times: AnswerTimes::of(clock), answer: Answer::Fine };
        }
        let Ask::Scan { request: scan, when } = &request.ask else { panic!("{request:?}") };
        self.known.lock().push(when.observed);
        let borders = borders();
        let own = KeySpan::new(
            borders[request.range.0 as usize - 1].clone(),
            borders[request.range.0 as usize].clone(),
        );
        let (mut rows, mut bytes) = (0, 0);
        let mut part = |asked: &SpanScan| {
            assert!(own.start <= asked.span.start && asked.span.end <= own.end, "{asked:?}");
            let here = self.keys.range(asked.span.start.to_vec()..asked.span.end.to_vec());
            let mut found = RowBatch::new();
            let all: Vec<&Vec<u8>> = match scan.reverse {
                true => here.rev().collect(),
                false => here.collect(),
            };
            let mut rest = None;
            for key in all {
                if rows >= scan.rows || bytes >= scan.bytes || found.len() >= asked.rows {
                    rest = Some(match scan.reverse {
                        true => KeySpan::new(asked.span.start.clone(), after(key)),
                        false => KeySpan::new(key.clone(), asked.span.end.clone()),
                    });
                    break;
                }
                found.push(key, b"", CommitTs(1));
                (rows, bytes) = (rows + 1, bytes + key.len());
            }
            SpanRows { rows: Arc::new(found), rest, cursor: None }
        };
        let parts = scan.scans.iter().map(&mut part).collect();
        let scanned =
            ScannedMany { parts, at: CommitTs(9), undurable: None, work: Default::default() };
        Reply { times: AnswerTimes::of(clock), answer: Answer::Scanned(scanned) }
    }
}

impl Transport for Letters {
    fn ask(&self, node: NodeId, request: &Request, _: Duration, _: &AtomicBool) -> Option<Reply> {
        self.rounds.lock().push(vec![request.range.0]);
        Some(self.answer(node, request))
    }

    fn ask_all(
        &self,
        requests: &[(NodeId, Request)],
        _: Duration,
        _: &AtomicBool,
    ) -> Vec<Option<Reply>> {
        self.rounds.lock().push(requests.iter().map(|(_, request)| request.range.0).collect());
        let ask = |(node, request): &(NodeId, Request)| {
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            let is_refused = self.refuses.is_some_and(|each| number.is_multiple_of(each));
            let is_silent = matches!(request.ask, Ask::Clock) && self.silent == Some(*node);
            (!is_refused && !is_silent).then(|| self.answer(*node, request))
        };
        requests.iter().map(ask).collect()
    }

    fn tell(&self, _: NodeId, _: &Request) {}

    fn pause(&self, _: Duration) {}
}

const RANGES: u64 = 8;

/// Up to b, c, .. h, and behind.
fn borders() -> Vec<Vec<u8>> {
    let inner = (1..RANGES).map(|n| vec![b'a' + n as u8]);
    let last = KeySpan::all().end.to_vec();
    [FIRST_DATA_KEY.to_vec()].into_iter().chain(inner).chain([last]).collect()
}

fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

fn router(letters: &Arc<Letters>) -> Router {
    let borders = borders();
    let range = |n: u64| {
        let span = KeySpan::new(borders[n as usize - 1].clone(), borders[n as usize].clone());
        RangeDescriptor::new(RangeId(n), span, vec![(ReplicaId(1), NodeId(n))])
    };
    Router::new(letters.clone(), harness::options((1..=RANGES).map(range).collect()))
}

fn scan(span: KeySpan, rows: usize) -> SpanScan {
    SpanScan { span, rows, more: false, cursor: None }
}

fn request(scans: Vec<SpanScan>, reverse: bool, rows: usize, bytes: usize) -> ScanMany {
    ScanMany {
        scans,
        at: ReadAt::Latest,
        reverse,
        classes: u32::MAX,
        jump: None,
        rows,
        bytes,
        notes: false,
        blocks: false,
    }
}

/// All rows of the spans, each asked for until nothing of it is left.
fn all_rows(router: &Router, mut request: ScanMany) -> Vec<Vec<Vec<u8>>> {
    let mut found = vec![Vec::new(); request.scans.len()];
    let mut numbers: Vec<usize> = (0..found.len()).collect();
    while !numbers.is_empty() {
        let answer = router.scan_many(&request).expect("all answer");
        let before = request.scans.clone();
        let rows = |part: &SpanRows| part.rows.len();
        assert!(answer.parts.iter().map(rows).sum::<usize>() <= request.rows);
        assert!(answer.parts.iter().zip(&before).all(|(part, asked)| rows(part) <= asked.rows));
        let mut left = (Vec::new(), Vec::new());
        for ((n, asked), part) in numbers.iter().zip(&before).zip(answer.parts) {
            found[*n].extend(part.rows.iter().map(|(key, ..)| key.to_vec()));
            if let Some(rest) = part.rest {
                left.0.push(*n);
                left.1.push(scan(rest, asked.rows));
            }
        }
        assert_ne!(left.1, before, "something was found, or is known not to be there");
        (numbers, request.scans) = left;
    }
    found
}

/// A generator of numbers that is right for tests: the same ones for a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }

    fn key(&mut self) -> Vec<u8> {
        let first = b'a' + self.below(RANGES + 1) as u8;
        let more = self.below(3);
        (0..more).fold(vec![first], |mut key, _| {
            key.push(b'0' + self.below(10) as u8);
            key
        })
    }
}

/// Spans anywhere, in any order, also empty ones and the same twice; any limits.
#[test]
fn all_is_found_whatever_the_limits_are() {
    for seed in 0..2_000 {
        let mut random = Numbers(seed);
        let keys = (0..random.below(120)).map(|_| random.key()).collect();
        let refuses = (random.below(3) == 0).then(|| 1 + random.below(4));
        let letters = Arc::new(Letters { keys, refuses, ..Letters::default() });
        let span = |random: &mut Numbers| {
            let (one, other) = (random.key(), random.key());
            KeySpan::new(one.clone().min(other.clone()), one.max(other))
        };
        let some = 1 + random.below(12);
        let spans: Vec<KeySpan> = (0..some).map(|_| span(&mut random)).collect();
        let each = 1 + random.below(20) as usize;
        let scans = spans.iter().map(|span| scan(span.clone(), each)).collect();
        let reverse = random.below(2) == 0;
        let (rows, bytes) = (1 + random.below(50) as usize, 1 + random.below(200) as usize);
        let got = all_rows(&router(&letters), request(scans, reverse, rows, bytes));
        for (span, got) in spans.iter().zip(got) {
            let within = letters.keys.range(span.start.to_vec()..span.end.to_vec());
            let mut all: Vec<Vec<u8>> = within.cloned().collect();
            if reverse {
                all.reverse();
            }
            assert_eq!(got, all, "seed {seed}, {span:?}");
        }
    }
}

#[test]
fn spans_of_more_and_more_ranges_are_read_together() {
    let keys = (0..RANGES).map(|n| vec![b'a' + n as u8, b'k']).collect();
    let letters = Arc::new(Letters { keys, ..Letters::default() });
    let at = |n: u64, more: u8| vec![b'a' + n as u8, more];
    let family = |n: u64| scan(KeySpan::new(at(n, b'j'), at(n, b'l')), 9);
    let scans: Vec<SpanScan> = (0..RANGES).map(family).collect();
    let answer = router(&letters).scan_many(&request(scans.clone(), false, 1_000, 1_000_000));
    let parts = answer.expect("all answer").parts;
    assert!(parts.iter().all(|part| part.rows.len() == 1 && part.rest.is_none()), "{parts:?}");
    assert_eq!(*letters.rounds.lock(), [vec![1], vec![2, 3], vec![4, 5, 6, 7], vec![8]]);

    // Each has one row, and three are wanted.
    letters.rounds.lock().clear();
    let answer = router(&letters).scan_many(&request(scans.clone(), false, 3, 1_000_000));
    let parts = answer.expect("it answers").parts;
    assert_eq!(parts.iter().map(|part| part.rows.len()).sum::<usize>(), 3);
    assert_eq!(*letters.rounds.lock(), [vec![1], vec![2, 3]]);
    letters.rounds.lock().clear();

    // Who wants one row asks one range.
    let answer = router(&letters).scan_many(&request(scans, false, 1, 1_000_000));
    let parts = answer.expect("it answers").parts;
    assert_eq!(parts.iter().map(|part| part.rows.len()).sum::<usize>(), 1);
    assert_eq!(*letters.rounds.lock(), [[1]]);
}

#[test]
fn a_span_over_ranges_is_read_in_more_and_more_of_them_together() {
    let letters = Arc::new(Letters { keys: [b"ek".to_vec()].into(), ..Letters::default() });
    let scans = vec![scan(KeySpan::new("b", "g"), 9), scan(KeySpan::new("g", "h"), 9)];
    let answer = router(&letters).scan_many(&request(scans, false, 100, 1_000));
    let parts = answer.expect("all answer").parts;
    assert_eq!((parts[0].rows.len(), &parts[0].rest), (1, &None));
    assert_eq!((parts[1].rows.len(), &parts[1].rest), (0, &None));
    assert_eq!(*letters.rounds.lock(), [vec![2], vec![3, 4], vec![5, 6, 7]]);
    letters.rounds.lock().clear();

    // From the end, and no more than is wanted.
    let keys: BTreeSet<Vec<u8>> = (0..RANGES).map(|n| vec![b'a' + n as u8, b'k']).collect();
    let letters = Arc::new(Letters { keys, ..Letters::default() });
    let scans = vec![scan(KeySpan::new("a", "h"), 9)];
    let answer = router(&letters).scan_many(&request(scans, true, 4, 1_000));
    let part = answer.expect("all answer").parts.remove(0);
    let keys: Vec<&[u8]> = part.rows.iter().map(|(key, ..)| key).collect();
    assert_eq!(keys, [b"gk", b"fk", b"ek", b"dk"]);
    assert_eq!(part.rest, Some(KeySpan::new("a", "d")));
    assert_eq!(*letters.rounds.lock(), [vec![7], vec![6, 5], vec![4]]);
}

/// Whoever reads several ranges asks for the clocks of all that serve them first, once; who reads
/// one does not.
#[test]
fn clocks_of_many_are_seen_before_their_ranges_are_read() {
    let keys = (0..RANGES).map(|n| vec![b'a' + n as u8, b'k']).collect();
    let letters = Arc::new(Letters { keys, ..Letters::default() });
    let router = router(&letters);
    let all = || request(vec![scan(KeySpan::new("a", "zz"), 9)], false, 1_000, 1_000_000);
    // Who serves them gets known by that.
    let rows = all_rows(&router, all());
    assert_eq!(rows[0].len(), RANGES as usize);
    letters.rounds.lock().clear();
    router.scan_many(&all()).expect("it answers");
    // Its own clock is that of the reader.
    let of_nodes = 0;
    let mut rounds = std::mem::take(&mut *letters.rounds.lock());
    assert_eq!(rounds.remove(0), vec![of_nodes; RANGES as usize - 1]);
    assert_eq!(rounds, [vec![1], vec![2, 3], vec![4, 5, 6, 7], vec![8]]);
    letters.rounds.lock().clear();
    letters.known.lock().clear();
    let some = request(vec![scan(KeySpan::new("c", "f"), 9)], false, 1_000, 1_000_000);
    router.scan_many(&some).expect("it answers");
    assert_eq!(*letters.rounds.lock(), [vec![of_nodes; 3], vec![3], vec![4, 5]]);
    assert_eq!(*letters.known.lock(), [3, 4, 5].map(|node| Some(clock_of(NodeId(node)))));
    letters.rounds.lock().clear();
    let one = request(vec![scan(KeySpan::new("c", "cz"), 9)], false, 1_000, 1_000_000);
    router.scan_many(&one).expect("it answers");
    assert_eq!(*letters.rounds.lock(), [[3]]);
}

/// Nodes whose clocks are ahead of the reader's, and by which time.
fn letters_ahead() -> (CommitTs, Arc<Letters>) {
    let keys = (0..RANGES).map(|n| vec![b'a' + n as u8, b'k']).collect();
    let ahead = CommitTs(Hlc::from_micros(WallClock.now_micros() + 100_000));
    (ahead, Arc::new(Letters { keys, zero: ahead, ..Letters::default() }))
}

/// Their clocks may be ahead of the reader's: what they have written up to there is in doubt.
#[test]
fn clocks_that_are_ahead_of_the_reader_are_taken_as_they_are() {
    let (ahead, letters) = letters_ahead();
    let router = router(&letters);
    let early = router.begin(None).expect("it begins");
    let all = || request(vec![scan(KeySpan::new("a", "zz"), 9)], false, 1_000, 1_000_000);
    // Who serves them gets known by that.
    router.scan_many(&all()).expect("it answers");
    letters.known.lock().clear();
    let at = ReadAt::Time(early.read_ts);
    router.scan_many(&ScanMany { at, ..all() }).expect("it answers");
    let known = |n: u64| match n {
        1 => Some(early.read_ts),
        _ => Some(CommitTs(ahead.0 + clock_of(NodeId(n)).0)),
    };
    assert!(early.read_ts < ahead);
    assert_eq!(*letters.known.lock(), (1..=RANGES).map(known).collect::<Vec<_>>());
    router.leave(early.txn, early.read_ts);
}

/// The time that clients are told has what was stamped before, also by clocks that are ahead, and
/// nothing that is stamped later. To ask for it does not lift the clock.
#[test]
fn the_time_that_is_told_is_between_what_was_stamped_and_what_will_be() {
    let (ahead, letters) = letters_ahead();
    let router = router(&letters);
    let told = || Hlc::from_micros(router.told_clock_us());
    assert!(told() < ahead.0, "nobody was heard of");
    let all = request(vec![scan(KeySpan::new("a", "zz"), 9)], false, 1_000, 1_000_000);
    router.scan_many(&all).expect("it answers");
    let first = told();
    assert!(clock_of(NodeId(RANGES)).0 + ahead.0 < first, "{first}");
    assert!((0..1_000).all(|_| told() == first));
    let begun = router.begin(None).expect("it begins");
    assert!(first < begun.read_ts.0);
    assert!(begun.read_ts.0 < told());
    router.leave(begun.txn, begun.read_ts);
}

/// Whoever keeps a view takes one above all clocks that it hears of, and asks no more. Of a node
/// that does not say what its clock shows, it knows nothing then.
#[test]
fn a_view_that_stays_is_above_all_clocks() {
    let keys = (0..RANGES).map(|n| vec![b'a' + n as u8, b'k']).collect();
    let ahead = CommitTs(Hlc::from_micros(WallClock.now_micros() + 100_000));
    let silent = Some(NodeId(4));
    let letters = Arc::new(Letters { keys, zero: ahead, silent, ..Letters::default() });
    let router = router(&letters);
    let all = |at| ScanMany {
        at: ReadAt::Time(at),
        ..request(vec![scan(KeySpan::new("a", "zz"), 9)], false, 1_000, 1_000_000)
    };
    let begun = router.begin(None).expect("it begins");
    let at = router.settle(begun.txn, begun.read_ts);
    // All may do so who have replicas, whoever it is.
    assert_eq!(*letters.rounds.lock(), [vec![0; RANGES as usize - 1]]);
    assert_eq!(all_rows(&router, all(at))[0].len(), RANGES as usize);
    letters.rounds.lock().clear();
    letters.known.lock().clear();
    let at = router.settle(begun.txn, at);
    assert_eq!(*letters.rounds.lock(), [vec![0; RANGES as usize - 1]]);
    assert!(clock_of(NodeId(RANGES)).0 + ahead.0 < at.0, "{at:?}");
    all_rows(&router, all(at));
    // The clock of who was silent is asked for once more.
    assert_eq!(letters.rounds.lock()[1], [0]);
    let known = |n: u64| match n {
        1 => Some(at),
        4 => None,
        _ => Some(CommitTs(ahead.0 + clock_of(NodeId(n)).0)),
    };
    assert_eq!(*letters.known.lock(), (1..=RANGES).map(known).collect::<Vec<_>>());
    router.leave(begun.txn, at);
}
