//! A commit and a look-up over several ranges: who is asked, and in which order.

mod harness;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use braid_cluster::{Reply, Router, Transport};
use braid_consensus::ReplicaId;
use braid_kv::{
    Commit, Committed, GetMany, GotMany, KeyNames, KvResult, PointRead, ReadAt, Reads, Spans,
    TxnId, Validate, Writes,
};
use braid_lsm::{Batch, CommitTs, KeySpan};
use braid_range::{
    Answer, AnswerTimes, Ask, FIRST_DATA_KEY, NodeId, RangeDescriptor, RangeId, Request,
};
use bytes::Bytes;
use parking_lot::Mutex;

/// Range n is on node n alone. One of them does not come to answer for the first time.
#[derive(Default)]
struct Noted {
    log: Mutex<Vec<String>>,
    slow: Option<u64>,
    refuses: Option<u64>,
    /// The third range is two since somebody looked.
    is_split: bool,
    /// What was validated, and where.
    validated: Mutex<Vec<(u64, Reads)>>,
}

impl Noted {
    fn answer(&self, node: NodeId, request: &Request, how: &str) -> Reply {
        let (what, answer) = match &request.ask {
            Ask::Prepare(_) if self.refuses == Some(node.0) => ("prepare", Answer::Aborted),
            Ask::Prepare(_) if self.slow == Some(node.0) && how == "together" => {
                ("prepare", Answer::Again)
            }
            Ask::Prepare(_) => ("prepare", Answer::Prepared { bound: CommitTs(100 * node.0) }),
            Ask::Commit(ask) => {
                assert_eq!(ask.not_before, CommitTs(400), "the highest bound");
                ("commit", Answer::Committed { at: CommitTs(1_000), by: node })
            }
            Ask::Get { .. } if self.slow == Some(node.0) && how == "together" => {
                ("get", Answer::Again)
            }
            Ask::Get { keys, .. } => {
                let values = keys.iter().cloned().map(Some).collect();
                ("get", Answer::Got(GotMany { values, ..GotMany::default() }))
            }
            Ask::Validate { reads, .. } => {
                let span = halves().into_iter().find(|half| half.id == request.range);
                let here = span.map_or(KeySpan::all(), |half| half.span);
                let fits = reads.points.iter().all(|read| here.contains(&read.key))
                    && reads.spans.iter().all(|read| here.covers(read));
                match self.is_split && !fits {
                    true => ("validate", Answer::WrongRange { known: halves().to_vec() }),
                    false => {
                        self.validated.lock().push((node.0, reads.clone()));
                        ("validate", Answer::Fine)
                    }
                }
            }
            other => panic!("{other:?}"),
        };
        self.log.lock().push(format!("{what} at {} {how}", node.0));
        Reply { times: AnswerTimes::of(CommitTs(1)), answer }
    }
}

impl Transport for Noted {
    fn ask(&self, node: NodeId, request: &Request, _: Duration, _: &AtomicBool) -> Option<Reply> {
        Some(self.answer(node, request, "alone"))
    }

    fn ask_all(
        &self,
        requests: &[(NodeId, Request)],
        _: Duration,
        _: &AtomicBool,
    ) -> Vec<Option<Reply>> {
        let ask =
            |(node, request): &(NodeId, Request)| Some(self.answer(*node, request, "together"));
        requests.iter().map(ask).collect()
    }

    fn tell(&self, _: NodeId, _: &Request) {}

    fn pause(&self, _: Duration) {}
}

/// What the third range has become.
fn halves() -> [RangeDescriptor; 2] {
    let half = |id: u64, start: &'static str, end: &'static str| RangeDescriptor {
        generation: 9,
        ..RangeDescriptor::new(
            RangeId(id),
            KeySpan::new(start, end),
            vec![(ReplicaId(1), NodeId(id))],
        )
    };
    [half(3, "c", "cm"), half(5, "cm", "d")]
}

/// Four ranges: up to b, c, d, and behind.
fn router(noted: &Arc<Noted>) -> Router {
    let borders: Vec<Vec<u8>> = (0..=4)
        .map(|n| match n {
            0 => FIRST_DATA_KEY.to_vec(),
            4 => KeySpan::all().end.to_vec(),
            n => vec![b'a' + n],
        })
        .collect();
    let range = |n: u64| {
        let span = KeySpan::new(borders[n as usize - 1].clone(), borders[n as usize].clone());
        RangeDescriptor::new(RangeId(n), span, vec![(ReplicaId(1), NodeId(n))])
    };
    Router::new(noted.clone(), harness::options((1..=4).map(range).collect()))
}

/// Commits a write into each of the first ranges; what came of it, and who was asked.
fn commit(noted: Noted, ranges: u64) -> (KvResult<Committed>, Vec<String>) {
    let noted = Arc::new(noted);
    let router = router(&noted);
    let mut batch = Batch::at(CommitTs(1));
    (1..=ranges).for_each(|n| batch.put(&[b'a' + n as u8 - 1, b'k'], b"v"));
    let done = router.commit(Commit {
        txn: TxnId(7),
        read_ts: CommitTs(5),
        reads: None,
        writes: Writes::Batch(batch),
        names: KeyNames::default(),
        waits: false,
        not_after: None,
    });
    let log = noted.log.lock().clone();
    (done, log)
}

#[test]
fn all_parts_are_prepared_at_the_same_time_and_then_the_anchor_commits() {
    let (done, log) = commit(Noted::default(), 4);
    assert_eq!(done.expect("it commits").participants, 4);
    let together = ["prepare at 2 together", "prepare at 3 together", "prepare at 4 together"];
    let mut prepared = log[..3].to_vec();
    prepared.sort();
    assert_eq!(
        (prepared.as_slice(), &log[3..]),
        (&together.map(String::from)[..], &["commit at 1 alone".into()][..])
    );
}

#[test]
fn who_does_not_come_to_answer_is_asked_again_alone() {
    let (done, mut log) = commit(Noted { slow: Some(3), ..Noted::default() }, 4);
    assert_eq!(done.expect("it commits").participants, 4);
    assert_eq!(log.pop().as_deref(), Some("commit at 1 alone"));
    assert_eq!(log.pop().as_deref(), Some("prepare at 3 alone"));
    assert_eq!(log.len(), 3);
}

#[test]
fn who_refuses_keeps_the_anchor_from_being_asked() {
    let (done, log) = commit(Noted { refuses: Some(2), ..Noted::default() }, 4);
    assert!(done.is_err());
    assert!(log.iter().all(|line| line.starts_with("prepare")), "{log:?}");
}

/// Keys in no order, of which several are in one range, and some more than once.
#[test]
fn keys_of_several_ranges_are_looked_up_at_the_same_time() {
    for slow in [None, Some(3)] {
        let noted = Arc::new(Noted { slow, ..Noted::default() });
        let keys: Vec<Bytes> =
            ["d", "ak", "cz", "b", "c", "a", "d", "zz"].map(Bytes::from).to_vec();
        let request = GetMany { keys: keys.clone(), at: ReadAt::Latest, notes: false };
        let got = router(&noted).get_many(&request).expect("all answer");
        assert_eq!(got.values, keys.into_iter().map(Some).collect::<Vec<_>>());
        let mut log = noted.log.lock().clone();
        if let Some(slow) = slow {
            assert_eq!(log.pop(), Some(format!("get at {slow} alone")));
        }
        assert_eq!(log, [1, 2, 3, 4].map(|n| format!("get at {n} together")));
    }
}

/// Who has other keys than was believed is asked again, and nobody else.
#[test]
fn what_was_read_in_several_ranges_is_validated_at_the_same_time() {
    for is_split in [false, true] {
        let noted = Arc::new(Noted { is_split, ..Noted::default() });
        let point = |key: &'static str| PointRead { key: key.into(), part: None };
        let points = ["d", "ak", "cz", "b", "ca", "a"].map(point).to_vec();
        let spans = vec![KeySpan::new("b", "cn"), KeySpan::new("az", "zz")];
        let reads = Reads { points, spans };
        let request = Validate { floor: CommitTs(5), through: CommitTs(9), reads: reads.clone() };
        router(&noted).validate(&request).expect("nothing has changed");
        let mut log = noted.log.lock().clone();
        if is_split {
            let mut again = log.split_off(4);
            assert_eq!(again.remove(0), "validate at 3 alone", "it says what it has");
            again.sort();
            assert_eq!(again, [3, 5].map(|n| format!("validate at {n} together")));
        }
        log.sort();
        assert_eq!(log, [1, 2, 3, 4].map(|n| format!("validate at {n} together")));
        // Each key of what was read was validated where it is.
        let validated = noted.validated.lock();
        for key in ["a", "ak", "az", "b", "bx", "ca", "cl", "cm", "cmx", "cz", "d", "e", "zy"] {
            let node = match key.as_bytes() {
                [b'c', second, ..] if is_split && *second >= b'm' => 5,
                [first, ..] => 1 + u64::from(first.min(&b'd') - b'a'),
                [] => unreachable!(),
            };
            let is_there = validated.iter().any(|(at, reads)| {
                let in_span = reads.spans.iter().any(|span| span.contains(key.as_bytes()));
                *at == node && (in_span || reads.points.iter().any(|read| read.key == key))
            });
            assert!(is_there, "{key} at {node}: {validated:?}");
        }
    }
}
